//! Making batches: for internal topics, markers, the metadata log, and when a topic wants another
//! codec than its producers use (org.apache.kafka.common.record.MemoryRecordsBuilder).

use std::io;

use super::batch::{BadBatch, HEADER_LEN, Header, PREFIX_LEN, TimestampType};
use super::compress::{Codec, Compression};
use super::iter::Record;
use crate::base::varint;

/// The headers of a record: key, and value or null.
pub(crate) type Headers<'a> = &'a [(&'a [u8], Option<&'a [u8]>)];

/// The most bytes that a record's length takes.
const LENGTH_MAX: usize = 5;

/// A batch being filled.
#[derive(Clone, Debug)]
pub(crate) struct BatchBuilder {
    header: Header,
    compression: Compression,
    records: Vec<u8>,
    last_delta: i32,
    /// Set when it is not simply the newest of the records.
    max_timestamp: Option<i64>,
    /// Set when times are not counted from the first record's.
    times_from: Option<i64>,
}

impl BatchBuilder {
    /// An empty batch whose first record will have `base_offset`; without producer, at leader
    /// epoch -1, uncompressed.
    pub(crate) fn new(base_offset: i64) -> Self {
        Self {
            header: Header {
                base_offset,
                batch_length: 0,
                partition_leader_epoch: -1,
                crc: 0,
                attributes: 0,
                last_offset_delta: 0,
                base_timestamp: -1,
                max_timestamp: -1,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                records_count: 0,
            },
            compression: Compression::default(),
            records: Vec::new(),
            last_delta: -1,
            max_timestamp: None,
            times_from: None,
        }
    }

    /// An empty batch with everything but the records of another, for some of these. Tombstones and
    /// markers may go from the delete horizon on, from which times are counted then (KIP-534).
    pub(crate) fn like(of: &Header, delete_horizon_ms: Option<i64>) -> Result<Self, BadBatch> {
        let codec = of.codec()?;
        let mut header = *of;
        header.records_count = 0;
        header.last_offset_delta = 0;
        header.max_timestamp = -1;
        header.base_timestamp = -1;
        header.set_delete_horizon_bit(delete_horizon_ms.is_some());
        Ok(Self {
            header,
            compression: Compression::from(codec),
            records: Vec::new(),
            last_delta: -1,
            max_timestamp: match of.timestamp_type() {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(of.max_timestamp),
            },
            times_from: delete_horizon_ms,
        })
    }

    /// Compresses with this.
    #[must_use]
    pub(crate) fn compression(mut self, with: Compression) -> Self {
        self.compression = with;
        self.header.set_codec(with.codec);
        self
    }

    /// Writes this leader epoch.
    #[must_use]
    pub(crate) fn leader_epoch(mut self, epoch: i32) -> Self {
        self.header.partition_leader_epoch = epoch;
        self
    }

    /// Writes for this producer.
    #[must_use]
    pub(crate) fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Marks the batch as part of a transaction.
    #[must_use]
    pub(crate) fn transactional(mut self) -> Self {
        self.header.set_transactional(true);
        self
    }

    /// Marks the batch as one for brokers.
    #[must_use]
    pub(crate) fn control(mut self) -> Self {
        self.header.set_control(true);
        self
    }

    /// Stamps the whole batch with the broker's time.
    #[must_use]
    pub(crate) fn log_append_time(mut self, now_ms: i64) -> Self {
        self.header.set_timestamp_type(TimestampType::LogAppendTime);
        self.max_timestamp = Some(now_ms);
        self
    }

    /// Adds a record at the next offset.
    pub(crate) fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: Headers<'_>,
    ) {
        let delta = self.last_delta + 1;
        let mut encoded = Vec::new();
        for (key, value) in headers {
            put_nullable(&mut encoded, Some(key));
            put_nullable(&mut encoded, *value);
        }
        let count = headers.len().try_into().expect("fewer than 2^31 headers");
        self.put(delta, timestamp, key, value, (count, &encoded));
    }

    /// Adds a record without headers at an offset of its own, which must be beyond the last.
    pub(crate) fn append_at(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) {
        debug_assert!(offset_delta > self.last_delta, "offsets grow");
        self.put(offset_delta, timestamp, key, value, (0, &[]));
    }

    /// Adds a record of another batch at an offset of its own, which must be beyond the last;
    /// its headers are taken as they are encoded.
    pub(crate) fn append_record(&mut self, offset_delta: i32, timestamp: i64, record: &Record<'_>) {
        debug_assert!(offset_delta > self.last_delta, "offsets grow");
        let headers = (record.headers_count(), record.headers_bytes());
        self.put(offset_delta, timestamp, record.key, record.value, headers);
    }

    fn put(
        &mut self,
        delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        (headers_count, headers): (i32, &[u8]),
    ) {
        if self.header.records_count == 0 {
            self.header.base_timestamp = self.times_from.unwrap_or(timestamp);
        }
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.header.base_timestamp);
        let size = 1
            + signed_long_len(timestamp_delta)
            + signed_len(delta)
            + nullable_len(key)
            + nullable_len(value)
            + signed_len(headers_count)
            + headers.len();
        self.records.reserve(LENGTH_MAX + size);
        varint::put_signed(&mut self.records, length(size));
        self.records.push(0);
        varint::put_signed_long(&mut self.records, timestamp_delta);
        varint::put_signed(&mut self.records, delta);
        put_nullable(&mut self.records, key);
        put_nullable(&mut self.records, value);
        varint::put_signed(&mut self.records, headers_count);
        self.records.extend_from_slice(headers);
        self.last_delta = delta;
        self.header.last_offset_delta = delta;
        self.header.records_count += 1;
    }

    /// Says that the batch reaches further than its last record, as after compaction.
    pub(crate) fn reach_to(&mut self, last_offset_delta: i32) {
        self.header.last_offset_delta = last_offset_delta;
    }

    /// What its header says so far.
    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// How many records it has.
    pub(crate) fn records_count(&self) -> i32 {
        self.header.records_count
    }

    /// Bytes so far, before compression.
    pub(crate) fn size(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// The whole batch.
    pub(crate) fn build(mut self) -> io::Result<Vec<u8>> {
        if let Some(newest) = self.max_timestamp {
            self.header.max_timestamp = newest;
        }
        let packed;
        let records = match self.compression.codec {
            Codec::None => &self.records,
            Codec::Gzip | Codec::Snappy | Codec::Lz4 | Codec::Zstd => {
                packed = self.compression.compress(&self.records)?;
                &packed
            }
        };
        self.header.batch_length = (HEADER_LEN - PREFIX_LEN + records.len())
            .try_into()
            .map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.header.seal(records);
        let mut out = Vec::with_capacity(HEADER_LEN + records.len());
        out.extend_from_slice(&self.header.to_bytes());
        out.extend_from_slice(records);
        Ok(out)
    }
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            varint::put_signed(out, length(bytes.len()));
            out.extend_from_slice(bytes);
        }
        None => varint::put_signed(out, -1),
    }
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => signed_len(length(bytes.len())) + bytes.len(),
        None => 1,
    }
}

fn signed_len(value: i32) -> usize {
    varint::unsigned_len(((value << 1) ^ (value >> 31)).cast_unsigned())
}

fn signed_long_len(value: i64) -> usize {
    let raw = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let bits = 64 - (raw | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn length(len: usize) -> i32 {
    len.try_into().expect("a record is smaller than 2 GiB")
}

#[cfg(test)]
mod tests {
    use super::super::batch::Batch;
    use super::super::iter::{Records, walk};
    use super::*;

    #[test]
    fn a_producers_batch_has_all_it_was_given() {
        let mut builder = BatchBuilder::new(40)
            .leader_epoch(3)
            .producer(9, 2, 11)
            .transactional()
            .compression(Compression::from(Codec::Lz4));
        builder.append(5, Some(b"a"), Some(b"b"), &[(b"h", None)]);
        builder.append(i64::MAX, None, Some(b"c"), &[]);
        let bytes = builder.build().unwrap();
        let batch = Batch::parse(&bytes).unwrap();
        batch.check_crc().unwrap();
        let header = batch.header;
        assert_eq!(header.partition_leader_epoch, 3);
        assert_eq!((header.producer_id, header.producer_epoch), (9, 2));
        assert_eq!((header.base_sequence, header.last_sequence()), (11, 12));
        assert_eq!((header.base_offset, header.last_offset()), (40, 41));
        assert_eq!(header.max_timestamp, i64::MAX);
        assert!(header.is_transactional() && !header.is_control());
        walk(&batch, 1 << 20, |_| ()).unwrap();
    }

    #[test]
    fn log_append_time_is_one_for_all() {
        let mut builder = BatchBuilder::new(0).log_append_time(777);
        builder.append(5, None, None, &[]);
        let bytes = builder.build().unwrap();
        let header = Batch::parse(&bytes).unwrap().header;
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(header.timestamp_of(0), 777);
        assert_eq!(header.base_timestamp, 5);
    }

    #[test]
    fn a_copied_record_keeps_its_headers() {
        let mut first = BatchBuilder::new(0);
        first.append(1, Some(b"k"), None, &[(b"x", Some(b"y")), (b"x", None)]);
        let first = first.build().unwrap();
        let records = Records::of(&Batch::parse(&first).unwrap(), 0).unwrap();
        let record = records.iter().next().unwrap().unwrap();
        let mut second = BatchBuilder::new(0);
        second.append_record(4, 1, &record);
        let second = second.build().unwrap();
        let again = Records::of(&Batch::parse(&second).unwrap(), 0).unwrap();
        let copy = again.iter().next().unwrap().unwrap();
        assert_eq!(copy.offset_delta, 4);
        assert_eq!(copy.headers().count(), 2);
        assert_eq!(copy.headers_bytes(), record.headers_bytes());
    }
}
