//! A batch: its header in place, what can be checked without reading its records, and several of
//! them in one buffer (org.apache.kafka.common.record.DefaultRecordBatch).
//!
//! Base offset and leader epoch lie outside the checksum, so a broker may set them without
//! touching the rest.

use super::checksum::{crc32c, crc32c_append};
use super::compress::Codec;

/// The bytes before the records.
pub(crate) const HEADER_LEN: usize = 61;
/// The bytes that the length field does not count: the base offset and the length itself.
pub(crate) const PREFIX_LEN: usize = 12;
/// Enough bytes to know a batch's offset, size and magic, whatever its format.
pub(crate) const FRAME_LEN: usize = 17;
/// Where the checksum begins to count.
const CHECKED_FROM: usize = 21;
/// The smallest length field of any format: a magic 0 message with null key and value.
const SMALLEST_LENGTH: i32 = 14;

const CODEC_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// Whose clock set the timestamps of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum TimestampType {
    /// The producer's.
    #[default]
    CreateTime,
    /// The broker's, one time for the whole batch.
    LogAppendTime,
}

/// Why bytes are not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBatch {
    /// The bytes end before the batch does.
    #[error("the batch is cut short: it has {have} of {need} bytes")]
    CutShort { have: usize, need: usize },
    /// The length field is below what any batch needs.
    #[error("the batch's length {0} is below the smallest possible")]
    TooSmall(i32),
    /// The magic is none that this broker reads.
    #[error("the batch has magic {0}")]
    Magic(i8),
    /// The stored checksum is not that of the bytes.
    #[error("the batch's checksum is {stored:08x} but its bytes give {computed:08x}")]
    Checksum { stored: u32, computed: u32 },
    /// The compression bits name no codec.
    #[error("the batch's compression type {0} is unknown")]
    Codec(i16),
    /// The last offset would not fit, or lies before the first.
    #[error("the batch's offsets are impossible: {base} and {delta} more")]
    Offsets { base: i64, delta: i32 },
}

/// What every format has in its first 17 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The base offset; of magic 0 and 1 the offset of the last message.
    pub(crate) offset: i64,
    /// Bytes of the whole batch, prefix included.
    pub(crate) size: usize,
    pub(crate) magic: i8,
}

impl Frame {
    /// Reads the first 17 bytes; the batch itself need not be there in full.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadBatch> {
        let short = BadBatch::CutShort {
            have: bytes.len(),
            need: FRAME_LEN,
        };
        let mut fields = Fields(bytes);
        let offset = fields.i64().ok_or(short)?;
        let length = fields.i32().ok_or(short)?;
        fields.i32().ok_or(short)?;
        let magic = fields.i8().ok_or(short)?;
        let size = usize::try_from(length)
            .ok()
            .filter(|_| length >= SMALLEST_LENGTH)
            .ok_or(BadBatch::TooSmall(length))?
            + PREFIX_LEN;
        Ok(Self {
            offset,
            size,
            magic,
        })
    }
}

/// Whether bytes claim to be a transactional batch, before they are known to be one at all.
pub(crate) fn may_be_transactional(bytes: &[u8]) -> bool {
    let attributes = bytes.get(CHECKED_FROM..CHECKED_FROM + 2);
    attributes.is_some_and(|bits| be_i16(bits, 0) & TRANSACTIONAL != 0)
}

/// The header of a batch of magic 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) base_offset: i64,
    /// Bytes after this field.
    pub(crate) batch_length: i32,
    pub(crate) partition_leader_epoch: i32,
    pub(crate) crc: u32,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: i32,
    /// The time that the records' deltas count from; the delete horizon where that bit is set.
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) records_count: i32,
}

impl Header {
    /// Reads the header; checks that it is one of magic 2 with a possible length and possible
    /// offsets. The records need not be there.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadBatch> {
        let header = Self::parse_any(bytes)?;
        header.check_offsets()?;
        Ok(header)
    }

    /// The same, whatever the offsets are.
    fn parse_any(bytes: &[u8]) -> Result<Self, BadBatch> {
        let short = |need| BadBatch::CutShort {
            have: bytes.len(),
            need,
        };
        let frame = Frame::parse(bytes)?;
        if frame.magic != 2 {
            return Err(BadBatch::Magic(frame.magic));
        }
        if frame.size < HEADER_LEN {
            return Err(BadBatch::TooSmall(be_i32(bytes, 8)));
        }
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or_else(|| short(HEADER_LEN))?;
        Ok(Self::from_bytes(header))
    }

    fn from_bytes(bytes: &[u8; HEADER_LEN]) -> Self {
        Self {
            base_offset: be_i64(bytes, 0),
            batch_length: be_i32(bytes, 8),
            partition_leader_epoch: be_i32(bytes, 12),
            crc: be_i32(bytes, 17).cast_unsigned(),
            attributes: be_i16(bytes, 21),
            last_offset_delta: be_i32(bytes, 23),
            base_timestamp: be_i64(bytes, 27),
            max_timestamp: be_i64(bytes, 35),
            producer_id: be_i64(bytes, 43),
            producer_epoch: be_i16(bytes, 51),
            base_sequence: be_i32(bytes, 53),
            records_count: be_i32(bytes, 57),
        }
    }

    /// The 61 bytes, with the checksum as it stands in the field.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.base_offset.to_be_bytes());
        put(&self.batch_length.to_be_bytes());
        put(&self.partition_leader_epoch.to_be_bytes());
        put(&[2]);
        put(&self.crc.to_be_bytes());
        put(&self.attributes.to_be_bytes());
        put(&self.last_offset_delta.to_be_bytes());
        put(&self.base_timestamp.to_be_bytes());
        put(&self.max_timestamp.to_be_bytes());
        put(&self.producer_id.to_be_bytes());
        put(&self.producer_epoch.to_be_bytes());
        put(&self.base_sequence.to_be_bytes());
        put(&self.records_count.to_be_bytes());
        out
    }

    /// Sets the checksum to that of this header in front of `records`.
    pub(crate) fn seal(&mut self, records: &[u8]) {
        self.crc = crc32c_append(crc32c(&self.to_bytes()[CHECKED_FROM..]), records);
    }

    /// Refuses offsets that no log can hold.
    pub(crate) fn check_offsets(&self) -> Result<(), BadBatch> {
        let possible = self.last_offset_delta >= 0
            && self.base_offset >= 0
            && self
                .base_offset
                .checked_add(i64::from(self.last_offset_delta))
                .is_some_and(|last| last < i64::MAX);
        if possible {
            Ok(())
        } else {
            Err(BadBatch::Offsets {
                base: self.base_offset,
                delta: self.last_offset_delta,
            })
        }
    }

    /// Bytes of the whole batch.
    pub(crate) fn size(&self) -> usize {
        usize::try_from(self.batch_length).map_or(0, |length| length.saturating_add(PREFIX_LEN))
    }

    /// The offset of the last record, also of one that compaction removed.
    pub(crate) fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta))
    }

    /// The offset after the last record.
    pub(crate) fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// The codec of the records.
    pub(crate) fn codec(&self) -> Result<Codec, BadBatch> {
        Codec::from_bits(self.attributes & CODEC_MASK)
            .ok_or(BadBatch::Codec(self.attributes & CODEC_MASK))
    }

    /// Names another codec.
    pub(crate) fn set_codec(&mut self, codec: Codec) {
        self.attributes = (self.attributes & !CODEC_MASK) | codec.bits();
    }

    /// Whose clock set the timestamps.
    pub(crate) fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Says whose clock set the timestamps.
    pub(crate) fn set_timestamp_type(&mut self, of: TimestampType) {
        match of {
            TimestampType::CreateTime => self.attributes &= !LOG_APPEND_TIME,
            TimestampType::LogAppendTime => self.attributes |= LOG_APPEND_TIME,
        }
    }

    /// Whether the records belong to a transaction.
    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Says whether the records belong to a transaction.
    pub(crate) fn set_transactional(&mut self, yes: bool) {
        self.set_bit(TRANSACTIONAL, yes);
    }

    /// Whether the records are for brokers and not for applications.
    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Says whether the records are for brokers.
    pub(crate) fn set_control(&mut self, yes: bool) {
        self.set_bit(CONTROL, yes);
    }

    /// The time from which tombstones and markers of this batch may be removed (KIP-534).
    pub(crate) fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Sets or clears the delete horizon bit; the base timestamp then means the horizon.
    pub(crate) fn set_delete_horizon_bit(&mut self, yes: bool) {
        self.set_bit(DELETE_HORIZON, yes);
    }

    fn set_bit(&mut self, bit: i16, yes: bool) {
        if yes {
            self.attributes |= bit;
        } else {
            self.attributes &= !bit;
        }
    }

    /// Whether a producer with an id wrote the batch.
    pub(crate) fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }

    /// The sequence number of the last record; -1 without sequences.
    pub(crate) fn last_sequence(&self) -> i32 {
        if self.base_sequence == -1 {
            -1
        } else {
            add_sequence(self.base_sequence, self.last_offset_delta)
        }
    }

    /// The timestamp of a record with this delta.
    pub(crate) fn timestamp_of(&self, delta: i64) -> i64 {
        match self.timestamp_type() {
            TimestampType::CreateTime => self.base_timestamp.wrapping_add(delta),
            TimestampType::LogAppendTime => self.max_timestamp,
        }
    }
}

/// Adds to a sequence number; after the largest comes 0 (DefaultRecordBatch.incrementSequence).
pub(crate) fn add_sequence(sequence: i32, more: i32) -> i32 {
    match sequence.checked_add(more) {
        Some(sum) => sum,
        None => more - (i32::MAX - sequence) - 1,
    }
}

/// A whole batch of magic 2 whose lengths agree; the checksum is checked when asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) header: Header,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch that `bytes` begins with.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, BadBatch> {
        let batch = Self::parse_any(bytes)?;
        batch.header.check_offsets()?;
        Ok(batch)
    }

    /// The same, whatever its offsets are: who takes it from a client has his own answer to them.
    pub(crate) fn parse_any(bytes: &'a [u8]) -> Result<Self, BadBatch> {
        let header = Header::parse_any(bytes)?;
        let Some(bytes) = bytes.get(..header.size()) else {
            return Err(BadBatch::CutShort {
                have: bytes.len(),
                need: header.size(),
            });
        };
        Ok(Self { header, bytes })
    }

    /// All its bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes after the header, compressed if the batch is.
    pub(crate) fn records_bytes(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Compares the stored checksum with the bytes.
    pub(crate) fn check_crc(&self) -> Result<(), BadBatch> {
        let computed = crc32c(&self.bytes[CHECKED_FROM..]);
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(BadBatch::Checksum {
                stored: self.header.crc,
                computed,
            })
        }
    }
}

/// The batches of a buffer, one after the other; a cut tail ends them without a word, as a fetch
/// may end in the middle of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Begins at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not yet given out.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BadBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match Batch::parse(self.rest) {
            Ok(batch) => {
                self.rest = &self.rest[batch.bytes.len()..];
                Some(Ok(batch))
            }
            Err(BadBatch::CutShort { .. }) => None,
            Err(bad) => {
                self.rest = &[];
                Some(Err(bad))
            }
        }
    }
}

/// Big-endian fields taken from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn i8(&mut self) -> Option<i8> {
        self.take().map(i8::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }
}

fn at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..]
        .first_chunk()
        .expect("the caller has seen enough bytes")
}

fn be_i16(bytes: &[u8], position: usize) -> i16 {
    i16::from_be_bytes(at(bytes, position))
}

fn be_i32(bytes: &[u8], position: usize) -> i32 {
    i32::from_be_bytes(at(bytes, position))
}

fn be_i64(bytes: &[u8], position: usize) -> i64 {
    i64::from_be_bytes(at(bytes, position))
}

#[cfg(test)]
mod tests {
    use super::super::build::BatchBuilder;
    use super::*;

    fn sample() -> Vec<u8> {
        let mut builder = BatchBuilder::new(7);
        builder.append(100, Some(b"k"), Some(b"v"), &[]);
        builder.append(90, None, None, &[]);
        builder.build().unwrap()
    }

    #[test]
    fn a_header_survives_the_round_trip() {
        let bytes = sample();
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.to_bytes(), bytes[..HEADER_LEN]);
        assert_eq!((header.base_offset, header.last_offset()), (7, 8));
        assert_eq!((header.base_timestamp, header.max_timestamp), (100, 100));
        assert_eq!(header.size(), bytes.len());
    }

    #[test]
    fn offset_and_leader_epoch_are_outside_the_checksum() {
        let mut bytes = sample();
        bytes[..8].copy_from_slice(&99i64.to_be_bytes());
        bytes[12..16].copy_from_slice(&5i32.to_be_bytes());
        Batch::parse(&bytes).unwrap().check_crc().unwrap();
        bytes[22] ^= 0x10;
        assert!(Batch::parse(&bytes).unwrap().check_crc().is_err());
    }

    #[test]
    fn batches_end_at_a_cut_tail() {
        let mut bytes = sample();
        bytes.extend(sample());
        for cut in 1..sample().len() {
            let mut batches = Batches::new(&bytes[..bytes.len() - cut]);
            assert!(batches.next().unwrap().is_ok());
            assert!(batches.next().is_none());
            assert_eq!(batches.rest().len(), sample().len() - cut);
        }
    }

    #[test]
    fn impossible_lengths_and_offsets_are_refused() {
        let mut bytes = sample();
        bytes[8..12].copy_from_slice(&13i32.to_be_bytes());
        assert_eq!(Header::parse(&bytes), Err(BadBatch::TooSmall(13)));
        bytes[8..12].copy_from_slice(&(-1i32).to_be_bytes());
        assert_eq!(Header::parse(&bytes), Err(BadBatch::TooSmall(-1)));
        let mut bytes = sample();
        bytes[..8].copy_from_slice(&i64::MAX.to_be_bytes());
        assert!(matches!(
            Header::parse(&bytes),
            Err(BadBatch::Offsets { .. })
        ));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(add_sequence(i32::MAX, 1), 0);
        assert_eq!(add_sequence(i32::MAX - 1, 3), 1);
        assert_eq!(add_sequence(5, 3), 8);
    }
}
