//! Produce v13 and Fetch v17 frames of one partition, encoded once and patched from then on, and the
//! fixed places of their answers (KIP-516: both name topics by their ids).

use std::io;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{BrokerId, FetchRequest, ProduceRequest};
use uuid::Uuid;

use super::batch::Batch;
use super::wrong;
use crate::wire::frame;

pub const PRODUCE_VERSION: i16 = 13;
pub const FETCH_VERSION: i16 = 17;

/// Where the correlation id of a request stands: behind size, key and version.
pub(crate) const CORRELATION: usize = 8;

/// A partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub topic: Uuid,
    pub partition: i32,
}

/// A Produce frame, and where its batch begins.
pub struct ProduceFrame {
    pub bytes: Vec<u8>,
    pub batch_at: usize,
}

impl ProduceFrame {
    pub fn new(target: Target, batch: &Batch, acks: i16) -> Self {
        let data = PartitionProduceData::default()
            .with_index(target.partition)
            .with_records(Some(Bytes::from(batch.bytes.clone())));
        let topic = TopicProduceData::default()
            .with_topic_id(target.topic)
            .with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_acks(acks)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        let bytes = frame(PRODUCE_VERSION, 0, &request);
        // Only the tags of partition, topic and request stand behind the records.
        let batch_at = bytes.len() - 3 - batch.bytes.len();
        Self { bytes, batch_at }
    }
}

/// Gives a frame its correlation id.
pub fn set_correlation(frame: &mut [u8], id: i32) {
    frame[CORRELATION..CORRELATION + 4].copy_from_slice(&id.to_be_bytes());
}

/// The bytes of a Produce answer that are looked at, from its size on.
pub const PRODUCE_HEAD: usize = 41;

/// The answer's base offset; an error when it has an error code or another correlation id.
pub fn read_produced(answer: &[u8], correlation: i32) -> io::Result<i64> {
    if answer.len() < PRODUCE_HEAD {
        return Err(wrong(format!("a Produce answer of {} bytes", answer.len())));
    }
    let got = i32_at(answer, 4);
    if got != correlation {
        return Err(wrong(format!("answer {got} in place of {correlation}")));
    }
    match i16_at(answer, 31) {
        0 => Ok(i64_at(answer, 33)),
        code => Err(wrong(format!("error code {code} for a Produce"))),
    }
}

/// A Fetch frame, and where its offset stands.
pub struct FetchFrame {
    pub bytes: Vec<u8>,
    offset_at: usize,
}

/// How a fetch waits and how much it takes.
#[derive(Clone, Copy, Debug)]
pub struct Appetite {
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
}

impl FetchFrame {
    pub fn new(target: Target, appetite: Appetite) -> Self {
        // An offset that no other field looks like tells where the offset stands.
        let mark = 0x0123_4567_89ab_cdef_i64;
        let partition = FetchPartition::default()
            .with_partition(target.partition)
            .with_current_leader_epoch(-1)
            .with_fetch_offset(mark)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_partition_max_bytes(appetite.max_bytes);
        let topic = FetchTopic::default()
            .with_topic_id(target.topic)
            .with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(appetite.max_wait_ms)
            .with_min_bytes(appetite.min_bytes)
            .with_max_bytes(appetite.max_bytes)
            .with_session_epoch(-1)
            .with_topics(vec![topic]);
        let bytes = frame(FETCH_VERSION, 0, &request);
        let mark = mark.to_be_bytes();
        let offset_at = bytes
            .windows(8)
            .position(|window| window == mark)
            .expect("the offset is in the frame");
        Self { bytes, offset_at }
    }

    /// The frame for this offset.
    pub fn at(&mut self, correlation: i32, offset: i64) -> &[u8] {
        set_correlation(&mut self.bytes, correlation);
        self.bytes[self.offset_at..self.offset_at + 8].copy_from_slice(&offset.to_be_bytes());
        &self.bytes
    }
}

/// What stands before the records of a Fetch answer, their length included, at its shortest: all
/// but the further bytes of that length.
pub const FETCH_HEAD: usize = 73;

/// The head of a Fetch answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes of the whole frame, its size included.
    pub frame: usize,
    pub high_watermark: i64,
    /// Where the records begin, and how many bytes they are.
    pub records_at: usize,
    pub records: usize,
}

/// Reads the head; it needs four bytes more than [`FETCH_HEAD`], or the whole answer.
pub fn read_fetched(answer: &[u8], correlation: i32) -> io::Result<Fetched> {
    if answer.len() < FETCH_HEAD {
        return Err(wrong(format!("a Fetch answer of {} bytes", answer.len())));
    }
    let got = i32_at(answer, 4);
    if got != correlation {
        return Err(wrong(format!("answer {got} in place of {correlation}")));
    }
    for at in [13, 41] {
        let code = i16_at(answer, at);
        if code != 0 {
            return Err(wrong(format!("error code {code} for a Fetch")));
        }
    }
    let (length, bytes) = varint(&answer[FETCH_HEAD - 1..])?;
    Ok(Fetched {
        frame: 4 + usize::try_from(i32_at(answer, 0)).map_err(wrong)?,
        high_watermark: i64_at(answer, 43),
        records_at: FETCH_HEAD - 1 + bytes,
        // One more than the length, and zero for null.
        records: length.saturating_sub(1),
    })
}

fn varint(bytes: &[u8]) -> io::Result<(usize, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(wrong("a length of more than five bytes"))
}

pub(crate) fn i16_at(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use kafka_protocol::messages::produce_response::{
        PartitionProduceResponse, TopicProduceResponse,
    };
    use kafka_protocol::messages::{FetchResponse, ProduceResponse, RequestHeader, ResponseHeader};
    use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

    use super::*;
    use crate::wire::with_length;

    const TARGET: Target = Target {
        topic: Uuid::from_u128(0x1122),
        partition: 3,
    };

    fn answer<T: Encodable + HeaderVersion>(response: &T, version: i16) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        ResponseHeader::default()
            .with_correlation_id(77)
            .encode(&mut bytes, T::header_version(version))
            .unwrap();
        response.encode(&mut bytes, version).unwrap();
        with_length(&bytes)
    }

    fn request<T: Decodable + HeaderVersion>(frame: &[u8], version: i16) -> (RequestHeader, T) {
        let mut bytes = Bytes::copy_from_slice(&frame[4..]);
        let header = RequestHeader::decode(&mut bytes, T::header_version(version)).unwrap();
        (header, T::decode(&mut bytes, version).unwrap())
    }

    #[test]
    fn a_produce_frame_holds_its_batch() {
        let batch = Batch::new(1024, 2);
        let mut frame = ProduceFrame::new(TARGET, &batch, -1);
        set_correlation(&mut frame.bytes, 12);
        assert_eq!(&frame.bytes[frame.batch_at..][..1024], &batch.bytes[..]);
        let (header, request) = request::<ProduceRequest>(&frame.bytes, PRODUCE_VERSION);
        assert_eq!(header.correlation_id, 12);
        assert_eq!(request.topic_data[0].topic_id, TARGET.topic);
    }

    #[test]
    fn a_fetch_frame_takes_its_offset() {
        let appetite = Appetite {
            max_wait_ms: 5,
            min_bytes: 1,
            max_bytes: 1 << 20,
        };
        let mut frame = FetchFrame::new(TARGET, appetite);
        let (header, request) = request::<FetchRequest>(frame.at(9, 12_345), FETCH_VERSION);
        assert_eq!(header.correlation_id, 9);
        assert_eq!(request.topics[0].partitions[0].fetch_offset, 12_345);
    }

    #[test]
    fn a_produce_answer_is_read() {
        let row = |code| {
            let row = PartitionProduceResponse::default()
                .with_error_code(code)
                .with_base_offset(4711);
            let topic = TopicProduceResponse::default().with_partition_responses(vec![row]);
            answer(
                &ProduceResponse::default().with_responses(vec![topic]),
                PRODUCE_VERSION,
            )
        };
        assert_eq!(read_produced(&row(0), 77).unwrap(), 4711);
        assert!(read_produced(&row(6), 77).is_err());
        assert!(read_produced(&row(0), 78).is_err());
    }

    #[test]
    fn a_fetch_answer_is_read() {
        for length in [0, 100, 20_000, 3_000_000] {
            let row = PartitionData::default()
                .with_high_watermark(99)
                .with_records(Some(vec![7; length].into()));
            let topic = FetchableTopicResponse::default().with_partitions(vec![row]);
            let bytes = answer(
                &FetchResponse::default().with_responses(vec![topic]),
                FETCH_VERSION,
            );
            let head = read_fetched(&bytes, 77).unwrap();
            assert_eq!(head.frame, bytes.len());
            assert_eq!(head.records, length);
            assert_eq!(head.high_watermark, 99);
            let records = &bytes[head.records_at..head.records_at + length];
            assert!(records.iter().all(|byte| *byte == 7));
        }
    }
}
