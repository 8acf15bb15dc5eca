//! Produce responses: what became of each batch, written without the library's detours.
//!
//! Nearly every answer is one partition's success. Its fields are put where they belong; what has
//! more to say (an error, a new leader) is encoded by the message library.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ProduceResponse;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::protocol::Encodable;

use super::header;
use crate::base::varint;

/// First version with the log's start offset.
const LOG_START: i16 = 5;
/// First version with errors by record (KIP-467).
const RECORD_ERRORS: i16 = 8;
/// First version with flexible encoding (KIP-482).
const FLEXIBLE: i16 = 9;
/// First version that names topics by id (KIP-516).
const TOPIC_IDS: i16 = 13;

/// A response of versions from 3 on.
#[derive(Debug, Default)]
pub(crate) struct Produced(pub(crate) ProduceResponse);

impl Produced {
    /// Encodes the whole frame, size first.
    pub(crate) fn encode(&self, correlation_id: i32, version: i16) -> anyhow::Result<Bytes> {
        encode(&self.0, correlation_id, version)
    }
}

fn encode(response: &ProduceResponse, correlation_id: i32, version: i16) -> anyhow::Result<Bytes> {
    let mut writer = Writer {
        version,
        // A buffer that is full needs no second allocation to be shared.
        out: BytesMut::with_capacity(Sizes { version }.all(response)),
    };
    writer.out.put_u32(0);
    header::put_response(&mut writer.out, correlation_id, version >= FLEXIBLE);
    writer.count(response.responses.len())?;
    for topic in &response.responses {
        writer.topic(topic)?;
    }
    writer.tail(response)?;
    let size = u32::try_from(writer.out.len() - 4)?;
    writer.out[..4].copy_from_slice(&size.to_be_bytes());
    Ok(writer.out.freeze())
}

/// What successes take; anything else makes the buffer grow.
struct Sizes {
    version: i16,
}

impl Sizes {
    fn all(&self, response: &ProduceResponse) -> usize {
        let topics = response.responses.iter().map(|topic| self.topic(topic));
        let (frame, throttle_time) = (4 + 4 + self.tags(), 4 + self.tags());
        frame + self.count(response.responses.len()) + topics.sum::<usize>() + throttle_time
    }

    fn topic(&self, topic: &TopicProduceResponse) -> usize {
        let name = topic.name.as_str().len();
        let name = match self.version {
            TOPIC_IDS.. => size_of::<uuid::Uuid>(),
            FLEXIBLE.. => self.count(name) + name,
            _ => 2 + name,
        };
        let count = topic.partition_responses.len();
        name + self.count(count) + count * self.partition() + self.tags()
    }

    fn partition(&self) -> usize {
        let log_start = if self.version >= LOG_START { 8 } else { 0 };
        let no_errors = match self.version {
            FLEXIBLE.. => 2,
            RECORD_ERRORS.. => 4 + 2,
            _ => 0,
        };
        4 + 2 + 8 + 8 + log_start + no_errors + self.tags()
    }

    fn count(&self, count: usize) -> usize {
        match self.version {
            FLEXIBLE.. => u32::try_from(count + 1).map_or(5, varint::unsigned_len),
            _ => 4,
        }
    }

    fn tags(&self) -> usize {
        usize::from(self.version >= FLEXIBLE)
    }
}

struct Writer {
    version: i16,
    out: BytesMut,
}

impl Writer {
    fn is_flexible(&self) -> bool {
        self.version >= FLEXIBLE
    }

    fn count(&mut self, count: usize) -> anyhow::Result<()> {
        let count = u32::try_from(count)?;
        if self.is_flexible() {
            varint::put_unsigned(&mut self.out, count + 1);
        } else {
            self.out.put_u32(count);
        }
        Ok(())
    }

    /// An empty tagged section, where there is one.
    fn no_tags(&mut self) {
        if self.is_flexible() {
            self.out.put_u8(0);
        }
    }

    fn topic(&mut self, topic: &TopicProduceResponse) -> anyhow::Result<()> {
        if self.version >= TOPIC_IDS {
            self.out.put_slice(topic.topic_id.as_bytes());
        } else {
            self.name(topic.name.as_str())?;
        }
        self.count(topic.partition_responses.len())?;
        for partition in &topic.partition_responses {
            if is_success(partition) {
                self.success(partition)?;
            } else {
                partition.encode(&mut self.out, self.version)?;
            }
        }
        self.no_tags();
        Ok(())
    }

    fn name(&mut self, name: &str) -> anyhow::Result<()> {
        if self.is_flexible() {
            self.count(name.len())?;
        } else {
            self.out.put_u16(u16::try_from(name.len())?);
        }
        self.out.put_slice(name.as_bytes());
        Ok(())
    }

    fn success(&mut self, partition: &PartitionProduceResponse) -> anyhow::Result<()> {
        self.out.put_i32(partition.index);
        self.out.put_i16(partition.error_code);
        self.out.put_i64(partition.base_offset);
        self.out.put_i64(partition.log_append_time_ms);
        if self.version >= LOG_START {
            self.out.put_i64(partition.log_start_offset);
        }
        if self.version >= RECORD_ERRORS {
            self.count(0)?;
            // No message.
            match self.is_flexible() {
                true => self.out.put_u8(0),
                false => self.out.put_i16(-1),
            }
        }
        self.no_tags();
        Ok(())
    }

    fn tail(&mut self, response: &ProduceResponse) -> anyhow::Result<()> {
        if response.node_endpoints.is_empty() {
            self.out.put_i32(response.throttle_time_ms);
            self.no_tags();
            return Ok(());
        }
        let rest = ProduceResponse::default()
            .with_throttle_time_ms(response.throttle_time_ms)
            .with_node_endpoints(response.node_endpoints.clone());
        let mut whole = BytesMut::new();
        rest.encode(&mut whole, self.version)?;
        // Behind the count of topics, of which there are none; only flexible versions get here.
        self.out.put_slice(&whole[1..]);
        Ok(())
    }
}

/// Whether there is nothing to tell but where the records lie.
fn is_success(partition: &PartitionProduceResponse) -> bool {
    partition.error_code == 0
        && partition.record_errors.is_empty()
        && partition.error_message.is_none()
        && partition.current_leader.leader_id.0 == -1
        && partition.unknown_tagged_fields.is_empty()
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::produce_response::{
        BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint,
    };
    use kafka_protocol::messages::{BrokerId, TopicName};
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn partition(kind: i32, version: i16) -> PartitionProduceResponse {
        let mut partition = PartitionProduceResponse::default()
            .with_index(kind)
            .with_base_offset(i64::from(kind) << 33)
            .with_log_append_time_ms(-1);
        if version >= LOG_START {
            partition.log_start_offset = 77;
        }
        if kind == 1 {
            partition.error_code = 6;
            if version >= 10 {
                partition.current_leader = LeaderIdAndEpoch::default()
                    .with_leader_id(BrokerId(3))
                    .with_leader_epoch(9);
            }
        }
        if kind == 2 && version >= RECORD_ERRORS {
            partition.error_code = 87;
            partition.error_message = Some(StrBytes::from_static_str("no"));
            partition.record_errors =
                vec![BatchIndexAndErrorMessage::default().with_batch_index(4)];
        }
        partition
    }

    fn response(topics: i32, kinds: i32, version: i16) -> ProduceResponse {
        let topic = |number: i32| {
            let partitions = (0..kinds).map(|kind| partition(kind, version));
            let topic =
                TopicProduceResponse::default().with_partition_responses(partitions.collect());
            if version >= TOPIC_IDS {
                topic.with_topic_id(uuid::Uuid::from_u128(number.unsigned_abs().into()))
            } else {
                topic.with_name(TopicName(StrBytes::from_string(format!("topic-{number}"))))
            }
        };
        let mut response = ProduceResponse::default()
            .with_responses((0..topics).map(topic).collect())
            .with_throttle_time_ms(11);
        if version >= 10 && kinds > 1 {
            response.node_endpoints =
                vec![NodeEndpoint::default().with_host(StrBytes::from_static_str("h"))];
        }
        response
    }

    #[test]
    fn a_response_equals_the_librarys_own_encoding() {
        for version in 3..=13 {
            for (topics, kinds) in [(0, 0), (1, 0), (1, 1), (3, 1), (2, 4), (130, 200)] {
                let response = response(topics, kinds, version);
                let mut expected = BytesMut::new();
                expected.put_u32(0);
                header::put_response(&mut expected, 99, version >= FLEXIBLE);
                response.encode(&mut expected, version).unwrap();
                let size = u32::try_from(expected.len() - 4).unwrap();
                expected[..4].copy_from_slice(&size.to_be_bytes());
                let got = encode(&response, 99, version).unwrap();
                assert!(got == expected, "version {version}, {topics} x {kinds}");
                if kinds <= 1 {
                    assert_eq!(
                        Sizes { version }.all(&response),
                        got.len(),
                        "version {version}"
                    );
                }
            }
        }
    }
}
