//! Fetch responses as chunks: everything but the records is encoded, the records stay slices of
//! the log.
//!
//! Each partition is encoded by the message library with empty records. The encoding of empty
//! records and the partition's tagged section are its tail; they are cut off, the true length is
//! written, the slice follows, then the tagged section.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::FetchResponse;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::protocol::Encodable;

use super::chunk::{Chunk, Chunks, FileSlice};
use super::header;
use crate::base::varint;

/// First version with flexible encoding (KIP-482).
const FLEXIBLE: i16 = 12;
/// First version that names topics by id (KIP-516).
const TOPIC_IDS: i16 = 13;
/// First version with sessions and a top-level error (KIP-227).
const SESSIONS: i16 = 7;

/// A response whose records are slices: `records[n]` belongs to the n-th partition, counted
/// through all topics. The partitions' own `records` must be empty.
#[derive(Debug, Default)]
pub(crate) struct SlicedFetch {
    pub(crate) response: FetchResponse,
    pub(crate) records: Vec<Option<FileSlice>>,
}

impl SlicedFetch {
    /// Encodes the whole frame, size first.
    pub(crate) fn encode(self, correlation_id: i32, version: i16) -> anyhow::Result<Chunks> {
        let mut writer = Writer::new(version);
        writer.out.put_u32(0);
        header::put_response(&mut writer.out, correlation_id, version >= FLEXIBLE);
        writer.head(&self.response)?;
        let mut records = self.records.into_iter();
        for topic in &self.response.responses {
            writer.topic(topic, &mut records)?;
        }
        writer.tail(self.response)?;
        writer.finish()
    }
}

struct Writer {
    version: i16,
    out: BytesMut,
    /// What comes before the first slice, while its size is not known.
    first: Option<BytesMut>,
    chunks: Chunks,
    written: usize,
}

impl Writer {
    fn new(version: i16) -> Self {
        Self {
            version,
            out: BytesMut::with_capacity(256),
            first: None,
            // The first bytes come last, and with one slice these are all.
            chunks: Vec::with_capacity(3),
            written: 0,
        }
    }

    fn flexible(&self) -> bool {
        self.version >= FLEXIBLE
    }

    fn head(&mut self, response: &FetchResponse) -> anyhow::Result<()> {
        self.out.put_i32(response.throttle_time_ms);
        if self.version >= SESSIONS {
            self.out.put_i16(response.error_code);
            self.out.put_i32(response.session_id);
        }
        self.array_len(response.responses.len())
    }

    fn topic(
        &mut self,
        topic: &FetchableTopicResponse,
        records: &mut impl Iterator<Item = Option<FileSlice>>,
    ) -> anyhow::Result<()> {
        if self.version >= TOPIC_IDS {
            self.out.put_slice(topic.topic_id.as_bytes());
        } else {
            self.string(topic.topic.as_str())?;
        }
        self.array_len(topic.partitions.len())?;
        for partition in &topic.partitions {
            self.partition(partition, records.next().flatten())?;
        }
        if self.flexible() {
            self.out.put_u8(0);
        }
        Ok(())
    }

    fn partition(&mut self, data: &PartitionData, slice: Option<FileSlice>) -> anyhow::Result<()> {
        let start = self.out.len();
        data.encode(&mut self.out, self.version)?;
        let Some(slice) = slice.filter(|slice| slice.len > 0) else {
            return Ok(());
        };
        let tags = self.cut_tail(data, start)?;
        self.records_len(slice.len)?;
        self.push_out();
        self.push(Chunk::File(slice));
        self.out.put_slice(&tags);
        Ok(())
    }

    /// Cuts off the empty records and what follows them; gives back what follows.
    fn cut_tail(&mut self, data: &PartitionData, start: usize) -> anyhow::Result<Bytes> {
        if !self.flexible() {
            self.out.truncate(self.out.len() - 4);
            return Ok(Bytes::new());
        }
        let tags = if has_tags(data) {
            let behind = self.out.len() - self.tags_len(data)?;
            Bytes::copy_from_slice(&self.out[behind..])
        } else {
            Bytes::from_static(&[0])
        };
        self.out.truncate(self.out.len() - tags.len() - 1);
        debug_assert!(self.out.len() >= start);
        Ok(tags)
    }

    /// The length of a partition's tagged section: what the encoding is longer by with it.
    fn tags_len(&self, data: &PartitionData) -> anyhow::Result<usize> {
        let mut plain = data.clone();
        plain.diverging_epoch = Default::default();
        plain.current_leader = Default::default();
        plain.snapshot_id = Default::default();
        plain.unknown_tagged_fields.clear();
        Ok(data.compute_size(self.version)? - plain.compute_size(self.version)? + 1)
    }

    fn tail(&mut self, mut response: FetchResponse) -> anyhow::Result<()> {
        if response.node_endpoints.is_empty() && response.unknown_tagged_fields.is_empty() {
            if self.flexible() {
                self.out.put_u8(0);
            }
            return Ok(());
        }
        response.responses.clear();
        let mut whole = BytesMut::new();
        response.encode(&mut whole, self.version)?;
        let sessions = if self.version >= SESSIONS { 2 + 4 } else { 0 };
        let array = if self.flexible() { 1 } else { 4 };
        self.out.put_slice(&whole[4 + sessions + array..]);
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Chunks> {
        self.push_out();
        let size = u32::try_from(self.written - 4)?;
        if let Some(mut first) = self.first {
            first[..4].copy_from_slice(&size.to_be_bytes());
            self.chunks[0] = Chunk::Bytes(first.freeze());
        }
        Ok(self.chunks)
    }

    fn array_len(&mut self, len: usize) -> anyhow::Result<()> {
        let len = u32::try_from(len)?;
        if self.flexible() {
            varint::put_unsigned(&mut self.out, len + 1);
        } else {
            self.out.put_u32(len);
        }
        Ok(())
    }

    fn records_len(&mut self, len: usize) -> anyhow::Result<()> {
        self.array_len(len)
    }

    fn string(&mut self, text: &str) -> anyhow::Result<()> {
        if self.flexible() {
            varint::put_unsigned(&mut self.out, u32::try_from(text.len())? + 1);
        } else {
            self.out.put_u16(u16::try_from(text.len())?);
        }
        self.out.put_slice(text.as_bytes());
        Ok(())
    }

    fn push_out(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let bytes = self.out.split();
        if self.chunks.is_empty() {
            self.written += bytes.len();
            self.first = Some(bytes);
            self.chunks.push(Chunk::Bytes(Bytes::new()));
        } else {
            self.push(Chunk::Bytes(bytes.freeze()));
        }
    }

    fn push(&mut self, chunk: Chunk) {
        self.written += chunk.len();
        self.chunks.push(chunk);
    }
}

fn has_tags(data: &PartitionData) -> bool {
    let plain = PartitionData::default();
    data.diverging_epoch != plain.diverging_epoch
        || data.current_leader != plain.current_leader
        || data.snapshot_id != plain.snapshot_id
        || !data.unknown_tagged_fields.is_empty()
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::fetch_response::{
        AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, NodeEndpoint,
    };
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::os::disk::{Disk, Open, TempDir};

    /// A small seeded generator (splitmix64).
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % bound
        }

        fn once_in(&mut self, bound: u64) -> bool {
            self.below(bound) == 0
        }
    }

    fn partition(chance: &mut Chance, version: i16) -> PartitionData {
        let mut data = PartitionData::default()
            .with_partition_index(i32::try_from(chance.below(9)).unwrap())
            .with_high_watermark(7)
            .with_last_stable_offset(5)
            .with_records(Some(Bytes::new()));
        if version >= 5 {
            data.log_start_offset = 3;
        }
        if chance.once_in(3) {
            let count = chance.below(200);
            let one = AbortedTransaction::default().with_first_offset(9);
            data.aborted_transactions = Some((0..count).map(|_| one.clone()).collect());
        }
        if version >= 12 && chance.once_in(3) {
            data.diverging_epoch = EpochEndOffset::default().with_epoch(3).with_end_offset(8);
        }
        if version >= 12 && chance.once_in(3) {
            data.current_leader = LeaderIdAndEpoch::default().with_leader_epoch(4);
        }
        data
    }

    fn response(chance: &mut Chance, version: i16) -> FetchResponse {
        let mut response = FetchResponse::default().with_throttle_time_ms(11);
        if version >= 7 {
            response = response.with_session_id(12).with_error_code(1);
        }
        if version >= 16 && chance.once_in(2) {
            response.node_endpoints =
                vec![NodeEndpoint::default().with_host(StrBytes::from_static_str("h"))];
        }
        for _ in 0..chance.below(4) {
            let count = chance.below(5);
            let mut topic = FetchableTopicResponse::default()
                .with_partitions((0..count).map(|_| partition(chance, version)).collect());
            if version >= 13 {
                topic.topic_id = uuid::Uuid::from_u128(77);
            } else {
                topic.topic = StrBytes::from_static_str("a-topic").into();
            }
            response.responses.push(topic);
        }
        response
    }

    #[test]
    fn a_sliced_response_equals_the_librarys_own_encoding() {
        let dir = TempDir::new();
        let file = Disk.open(&dir.path().join("log"), Open::New).unwrap();
        let content: Vec<u8> = (0..=255).cycle().take(20_000).collect();
        file.write_all_at(&content, 0).unwrap();
        let file = std::sync::Arc::new(file);
        let mut chance = Chance(42);
        let edges = [1, 61, 126, 127, 128, 16_382, 16_383, 16_384];
        for round in 0..1500 {
            let version = 4 + round % 15;
            let response = response(&mut chance, version);
            let mut full = response.clone();
            let mut records = Vec::new();
            for data in full
                .responses
                .iter_mut()
                .flat_map(|topic| &mut topic.partitions)
            {
                let len = edges[usize::try_from(chance.below(8)).unwrap()];
                let slice = FileSlice {
                    file: file.clone(),
                    position: 100,
                    len,
                };
                let some = !chance.once_in(4);
                records.push(some.then_some(slice));
                if some {
                    data.records = Some(content[100..100 + len].to_vec().into());
                }
            }
            let mut expected = BytesMut::new();
            expected.put_u32(0);
            header::put_response(&mut expected, 99, version >= 12);
            full.encode(&mut expected, version).unwrap();
            let size = u32::try_from(expected.len() - 4).unwrap();
            expected[..4].copy_from_slice(&size.to_be_bytes());

            let chunks = SlicedFetch { response, records }
                .encode(99, version)
                .unwrap();
            let mut got = Vec::new();
            for chunk in chunks {
                match chunk {
                    Chunk::Bytes(bytes) => got.extend_from_slice(&bytes),
                    Chunk::File(slice) => {
                        let mut bytes = vec![0; slice.len];
                        slice
                            .file
                            .read_exact_at(&mut bytes, slice.position)
                            .unwrap();
                        got.extend_from_slice(&bytes);
                    }
                }
            }
            assert!(got == expected, "version {version}, round {round}");
        }
    }
}
