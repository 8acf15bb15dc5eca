//! Batches of magic 0 and 1, as Kafka wrote them before 0.11: one message each, or a wrapper whose
//! value holds messages, compressed (org.apache.kafka.common.record.LegacyRecord and
//! AbstractLegacyRecordBatch; KIP-31, KIP-32).
//!
//! ```text
//! offset 8 | size 4 | crc 4 | magic 1 | attributes 1 | timestamp 8, not in magic 0 |
//! key size 4 | key | value size 4 | value
//! ```
//!
//! A wrapper has the offset of its last message. The messages in one of magic 0 have their own
//! offsets, those in one of magic 1 count from any base. They are never written any more, only
//! kept, served, and made anew as magic 2 by compaction.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use super::batch::{BadBatch, Frame, PREFIX_LEN, TimestampType};
use super::compress::{self, Codec, Inflate};
use super::iter::BadRecord;

/// What a message has at least: prefix, checksum, magic, attributes, and eight bytes that are the
/// timestamp, or in magic 0 the sizes of key and value.
const HEAD_LEN: usize = 26;
/// Where the checksum begins to count.
pub(crate) const CHECKED_FROM: usize = 16;
/// The smallest size field.
const SIZE_MIN: i32 = 14;

const CODEC_MASK: i8 = 0x07;
const LOG_APPEND_TIME: i8 = 0x08;

/// What messages may inflate to: what Kafka can hold, less what magic 2 needs more for a record.
pub(crate) const INFLATED_BYTES_MAX: u64 = i32::MAX as u64 - 1024;

/// Why a batch's messages are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadMessages {
    /// A wrapper has no value.
    #[error("a wrapper has no value")]
    NoValue,
    /// A wrapper holds no whole message.
    #[error("a wrapper holds no message")]
    Empty,
    /// A wrapper names a codec that came with magic 2.
    #[error("a wrapper is compressed with {0:?}, which came later")]
    Codec(Codec),
    /// A message in a wrapper is a wrapper.
    #[error("a message in a wrapper is compressed itself")]
    Nested,
    /// Offsets must grow up to the wrapper's.
    #[error("a message has offset {offset} where {from} to {to} are possible")]
    Offset { offset: i64, from: i64, to: i64 },
    /// A time before 1970.
    #[error("a message has timestamp {0}")]
    Timestamp(i64),
    /// The size of a message, of its key or its value is impossible.
    #[error("a message's sizes do not fit")]
    Size,
}

/// A whole batch of magic 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LegacyBatch<'a> {
    head: Head,
    bytes: &'a [u8],
}

impl<'a> LegacyBatch<'a> {
    /// The batch that `bytes` begins with.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, BadBatch> {
        let frame = Frame::parse(bytes)?;
        if !matches!(frame.magic, 0 | 1) {
            return Err(BadBatch::Magic(frame.magic));
        }
        check_offset(frame.offset)?;
        let short = || BadBatch::CutShort {
            have: bytes.len(),
            need: frame.size,
        };
        let bytes = bytes.get(..frame.size).ok_or_else(short)?;
        let head = bytes.first_chunk().ok_or_else(short)?;
        let head = Head::parse(head);
        Ok(Self { head, bytes })
    }

    /// All its bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes after the field that says how many.
    pub(crate) fn length(&self) -> i32 {
        i32::try_from(self.bytes.len() - PREFIX_LEN).expect("a field of 32 bits said so")
    }

    /// Compares the stored checksum with the bytes.
    pub(crate) fn check_crc(&self) -> Result<(), BadBatch> {
        let (head, checked) = self.bytes.split_at(CHECKED_FROM);
        let stored = *head.last_chunk().expect("it has a checksum");
        let stored = u32::from_be_bytes(stored);
        let mut crc = flate2::Crc::new();
        crc.update(checked);
        match crc.sum() {
            computed if computed == stored => Ok(()),
            computed => Err(BadBatch::Checksum { stored, computed }),
        }
    }

    /// The offset of its last message.
    pub(crate) fn last_offset(&self) -> i64 {
        self.head.offset
    }

    /// The time of its newest message; -1 in magic 0, which has none.
    pub(crate) fn max_timestamp(&self) -> i64 {
        self.head.timestamp()
    }

    /// Whose clock set the timestamps; in magic 0 nobody's, which magic 2 takes for the producer's.
    pub(crate) fn timestamp_type(&self) -> TimestampType {
        self.head.timestamp_type()
    }

    /// How its messages are compressed.
    pub(crate) fn codec(&self) -> Result<Codec, BadBatch> {
        self.head.codec()
    }

    /// Its messages, inflated if need be, to at most `limit` bytes.
    pub(crate) fn messages(&self, limit: u64) -> Result<Messages<'a>, BadRecord> {
        let Some(wrapped) = self.wrapped()? else {
            return Ok(Messages {
                bytes: Cow::Borrowed(self.bytes),
                inside: Inside::default(),
            });
        };
        let mut bytes = Vec::new();
        wrapped.inflate(limit)?.read_to_end(&mut bytes)?;
        let mut last = None;
        let mut rest = &*bytes;
        while let Some((head, _)) = take_message(&mut rest)? {
            last = Some(head.offset);
        }
        Ok(Messages {
            bytes: Cow::Owned(bytes),
            inside: self.inside(last)?,
        })
    }

    /// Visits offset and timestamp of each message, of which none is held in memory; at most
    /// `limit` bytes are inflated, twice.
    pub(crate) fn walk(
        &self,
        limit: u64,
        mut visit: impl FnMut(i64, i64),
    ) -> Result<(), BadRecord> {
        let Some(wrapped) = self.wrapped()? else {
            visit(self.head.offset, self.head.timestamp());
            return Ok(());
        };
        let mut last = None;
        wrapped.walk(limit, |head| {
            last = Some(head.offset);
            Ok(())
        })?;
        let inside = self.inside(last)?;
        wrapped.walk(limit, |head| {
            head.check_plain()?;
            visit(inside.offset_of(head), inside.timestamp_of(head));
            Ok(())
        })
    }

    /// What a wrapper holds; nothing of a lone message.
    fn wrapped(&self) -> Result<Option<Wrapped<'a>>, BadRecord> {
        let codec = self.codec()?;
        match codec {
            Codec::None => return Ok(None),
            Codec::Gzip | Codec::Snappy | Codec::Lz4 => {}
            Codec::Zstd => return Err(BadMessages::Codec(codec).into()),
        }
        let message = Message {
            offset: self.head.offset,
            timestamp: self.head.timestamp(),
            magic: self.head.magic,
            bytes: self.bytes,
        };
        let value = message.value()?.ok_or(BadMessages::NoValue)?;
        let packed = match self.head.magic {
            // Nobody looks at the checksum of a frame's header here, for it was wrong (KAFKA-3160).
            0 if codec == Codec::Lz4 => Cow::Owned(compress::mend_lz4_header(value)?),
            _ => Cow::Borrowed(value),
        };
        Ok(Some(Wrapped { codec, packed }))
    }

    /// What is to be known of messages in a wrapper, the last of which has this offset in it.
    fn inside(&self, last: Option<i64>) -> Result<Inside, BadRecord> {
        let last = last.ok_or(BadMessages::Empty)?;
        let is_stamped = self.timestamp_type() == TimestampType::LogAppendTime;
        let base = match (self.head.magic, self.head.offset) {
            // Some producers leave the wrapper's offset at 0.
            (0, _) | (_, 0) => 0,
            (_, offset) if offset < last => {
                return Err(BadMessages::Offset {
                    offset: last,
                    from: 0,
                    to: offset,
                }
                .into());
            }
            (_, offset) => offset.wrapping_sub(last),
        };
        Ok(Inside {
            base,
            append_time_ms: is_stamped.then(|| self.max_timestamp()),
            is_wrapped: true,
        })
    }
}

/// The value of a wrapper.
struct Wrapped<'a> {
    codec: Codec,
    packed: Cow<'a, [u8]>,
}

impl Wrapped<'_> {
    fn inflate(&self, limit: u64) -> io::Result<Inflate<'_>> {
        Inflate::new(self.codec, &self.packed, limit)
    }

    fn walk(
        &self,
        limit: u64,
        mut visit: impl FnMut(&Head) -> Result<(), BadRecord>,
    ) -> Result<(), BadRecord> {
        let mut stream = BufReader::new(self.inflate(limit)?);
        while let Some(head) = read_head(&mut stream)? {
            let rest = head.size - HEAD_LEN as u64;
            let skipped = io::copy(&mut stream.by_ref().take(rest), &mut io::sink())?;
            if skipped < rest {
                break;
            }
            visit(&head)?;
        }
        Ok(())
    }
}

/// How messages in a wrapper are to be read.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    /// What offsets count from.
    base: i64,
    /// The broker's time for all messages, where it set one.
    append_time_ms: Option<i64>,
    is_wrapped: bool,
}

impl Inside {
    fn offset_of(&self, head: &Head) -> i64 {
        self.base.wrapping_add(head.offset)
    }

    fn timestamp_of(&self, head: &Head) -> i64 {
        match self.append_time_ms {
            Some(time) if head.magic == 1 => time,
            Some(_) | None => head.timestamp(),
        }
    }
}

/// The messages of a batch, ready to be lent.
#[derive(Debug)]
pub(crate) struct Messages<'a> {
    bytes: Cow<'a, [u8]>,
    inside: Inside,
}

impl Messages<'_> {
    /// The messages in order; ends after the first that cannot be read. One that is cut at the end
    /// is left out, as in Kafka.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Message<'_>, BadRecord>> {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || {
            let next = self.next(&mut rest).transpose();
            if matches!(next, Some(Err(_))) {
                rest = &[];
            }
            next
        })
    }

    fn next<'m>(&self, rest: &mut &'m [u8]) -> Result<Option<Message<'m>>, BadRecord> {
        let Some((head, bytes)) = take_message(rest)? else {
            return Ok(None);
        };
        if self.inside.is_wrapped {
            head.check_plain()?;
        }
        Ok(Some(Message {
            offset: self.inside.offset_of(&head),
            timestamp: self.inside.timestamp_of(&head),
            magic: head.magic,
            bytes,
        }))
    }
}

/// A message, its bytes lent. Its sizes are looked at when they are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) offset: i64,
    /// -1 without any.
    pub(crate) timestamp: i64,
    magic: i8,
    /// From its prefix on.
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Its key; `None` for null.
    pub(crate) fn key(&self) -> Result<Option<&'a [u8]>, BadMessages> {
        self.sized(self.key_at())
    }

    /// Its value; `None` for null.
    pub(crate) fn value(&self) -> Result<Option<&'a [u8]>, BadMessages> {
        self.sized(self.value_at()?)
    }

    /// Whether it has a value, which need not be whole.
    pub(crate) fn has_value(&self) -> Result<bool, BadMessages> {
        Ok(self.size(self.value_at()?)?.is_some())
    }

    fn key_at(&self) -> usize {
        match self.magic {
            0 => HEAD_LEN - 8,
            _ => HEAD_LEN,
        }
    }

    fn value_at(&self) -> Result<usize, BadMessages> {
        let key_at = self.key_at();
        let key_len = self.size(key_at)?.unwrap_or(0);
        key_at
            .checked_add(4)
            .and_then(|at| at.checked_add(key_len))
            .ok_or(BadMessages::Size)
    }

    /// A size field; any negative one is null.
    fn size(&self, at: usize) -> Result<Option<usize>, BadMessages> {
        let field = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        let size = i32::from_be_bytes(*field.ok_or(BadMessages::Size)?);
        Ok(usize::try_from(size).ok())
    }

    fn sized(&self, at: usize) -> Result<Option<&'a [u8]>, BadMessages> {
        let Some(len) = self.size(at)? else {
            return Ok(None);
        };
        let rest = self.bytes.get(at + 4..).ok_or(BadMessages::Size)?;
        rest.get(..len).map(Some).ok_or(BadMessages::Size)
    }
}

/// The first bytes of a message.
#[derive(Clone, Copy, Debug)]
struct Head {
    offset: i64,
    /// Bytes of the whole message, prefix included.
    size: u64,
    magic: i8,
    attributes: i8,
    stamp: i64,
}

impl Head {
    /// The caller has seen that the size field is possible.
    fn parse(bytes: &[u8; HEAD_LEN]) -> Self {
        let [prefix @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _] = bytes;
        let (offset, size) = prefix_of(prefix);
        let [.., magic, attributes, a, b, c, d, e, f, g, h] = *bytes;
        Self {
            offset,
            size: u64::try_from(size).unwrap_or(0) + PREFIX_LEN as u64,
            magic: magic.cast_signed(),
            attributes: attributes.cast_signed(),
            stamp: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        }
    }

    fn timestamp(&self) -> i64 {
        match self.magic {
            0 => -1,
            _ => self.stamp,
        }
    }

    fn timestamp_type(&self) -> TimestampType {
        match self.magic {
            0 => TimestampType::CreateTime,
            _ if self.attributes & LOG_APPEND_TIME == 0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    fn codec(&self) -> Result<Codec, BadBatch> {
        let bits = i16::from(self.attributes & CODEC_MASK);
        Codec::from_bits(bits).ok_or(BadBatch::Codec(bits))
    }

    /// Refuses a message that is compressed where none may be.
    fn check_plain(&self) -> Result<(), BadRecord> {
        match self.codec()? {
            Codec::None => Ok(()),
            Codec::Gzip | Codec::Snappy | Codec::Lz4 | Codec::Zstd => {
                Err(BadMessages::Nested.into())
            }
        }
    }
}

/// Refuses an offset that no log can hold.
pub(crate) fn check_offset(offset: i64) -> Result<(), BadBatch> {
    match offset {
        base @ (..0 | i64::MAX) => Err(BadBatch::Offsets { base, delta: 0 }),
        _ => Ok(()),
    }
}

fn prefix_of(bytes: &[u8; PREFIX_LEN]) -> (i64, i32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
    let offset = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
    (offset, i32::from_be_bytes([i, j, k, l]))
}

/// The next message of a block, from its prefix on; nothing where no whole one is left.
fn take_message<'a>(rest: &mut &'a [u8]) -> Result<Option<(Head, &'a [u8])>, BadMessages> {
    let Some(prefix) = rest.first_chunk() else {
        return Ok(None);
    };
    check_size(prefix)?;
    let Some(head) = rest.first_chunk().map(Head::parse) else {
        return Ok(None);
    };
    let len = usize::try_from(head.size).map_err(|_| BadMessages::Size)?;
    let Some((bytes, after)) = rest.split_at_checked(len) else {
        return Ok(None);
    };
    *rest = after;
    Ok(Some((head, bytes)))
}

/// The same of a stream, of which only the head is read.
fn read_head(stream: &mut impl Read) -> Result<Option<Head>, BadRecord> {
    let mut bytes = [0; HEAD_LEN];
    let (prefix, rest) = bytes.split_at_mut(PREFIX_LEN);
    if !fill(stream, prefix)? {
        return Ok(None);
    }
    check_size(prefix.first_chunk().expect("it is as long as a prefix"))?;
    if !fill(stream, rest)? {
        return Ok(None);
    }
    Ok(Some(Head::parse(&bytes)))
}

/// Whether there was enough to fill a buffer. A stream that is broken off is an error.
fn fill(stream: &mut impl Read, mut buffer: &mut [u8]) -> io::Result<bool> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn check_size(prefix: &[u8; PREFIX_LEN]) -> Result<(), BadMessages> {
    match prefix_of(prefix) {
        (_, size) if size < SIZE_MIN => Err(BadMessages::Size),
        _ => Ok(()),
    }
}

/// Messages as Kafka wrote them, for tests.
#[cfg(test)]
pub(crate) mod samples {
    use super::super::compress::{Codec, Compression};

    /// A message, its fields as they are given.
    pub(crate) fn message(
        (offset, magic, attributes): (i64, u8, u8),
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Vec<u8> {
        let mut body = vec![magic, attributes];
        if magic > 0 {
            body.extend(timestamp.to_be_bytes());
        }
        for part in [key, value] {
            let size = part.map_or(-1, |part| i32::try_from(part.len()).unwrap());
            body.extend(size.to_be_bytes());
            body.extend(part.unwrap_or_default());
        }
        let mut crc = flate2::Crc::new();
        crc.update(&body);
        let size = i32::try_from(body.len() + 4).unwrap();
        let mut bytes = offset.to_be_bytes().to_vec();
        bytes.extend(size.to_be_bytes());
        bytes.extend(crc.sum().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// A wrapper around messages that are not newer than 2000.
    pub(crate) fn wrapper((offset, magic): (i64, u8), codec: Codec, messages: &[u8]) -> Vec<u8> {
        let value = Compression::from(codec).compress(messages).unwrap();
        let codec = u8::try_from(codec.bits()).unwrap();
        message((offset, magic, codec), 2000, None, Some(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::super::compress::Compression;
    use super::samples::{message, wrapper};
    use super::*;

    fn three(magic: u8, base: i64) -> Vec<u8> {
        let one = |n: i64| message((base + n, magic, 0), 100 - n, Some(b"k"), Some(b"v"));
        [one(0), one(1), one(5)].concat()
    }

    fn read(bytes: &[u8]) -> Vec<(i64, i64)> {
        let batch = LegacyBatch::parse(bytes).unwrap();
        let messages = batch.messages(1 << 20).unwrap();
        let read = messages.iter().map(Result::unwrap);
        let read: Vec<_> = read.map(|one| (one.offset, one.timestamp)).collect();
        let mut walked = Vec::new();
        let visit = |offset, timestamp| walked.push((offset, timestamp));
        batch.walk(1 << 20, visit).unwrap();
        assert_eq!(walked, read);
        read
    }

    #[test]
    fn offsets_in_a_wrapper_count_back_from_its_own() {
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4] {
            let relative = wrapper((45, 1), codec, &three(1, 0));
            assert_eq!(read(&relative), [(40, 100), (41, 99), (45, 95)]);
            let absolute = wrapper((45, 0), codec, &three(0, 40));
            assert_eq!(read(&absolute), [(40, -1), (41, -1), (45, -1)]);
        }
        let alone = message((7, 1, 0), 9, None, None);
        assert_eq!(read(&alone), [(7, 9)]);
    }

    #[test]
    fn a_wrong_checksum_in_an_lz4_header_is_put_up_with_in_magic_0_only() {
        for magic in [0, 1] {
            let mut packed = Compression::from(Codec::Lz4)
                .compress(&three(magic, 0))
                .unwrap();
            packed[6] ^= 1;
            let broken = message((5, magic, 3), 9, None, Some(&packed));
            let batch = LegacyBatch::parse(&broken).unwrap();
            let is_read = batch.messages(1 << 20).is_ok();
            assert_eq!(is_read, magic == 0);
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = message((0, 1, 0), 9, Some(b"k"), Some(&vec![0; 20_000_000]));
        let bytes = wrapper((0, 1), Codec::Gzip, &bomb);
        assert!(bytes.len() < 100_000);
        let batch = LegacyBatch::parse(&bytes).unwrap();
        for limit in [1 << 20, 1 << 24] {
            assert!(matches!(batch.messages(limit), Err(BadRecord::Inflate(_))));
            let walked = batch.walk(limit, |_, _| ());
            assert!(matches!(walked, Err(BadRecord::Inflate(_))));
        }
        batch.walk(1 << 25, |_, _| ()).unwrap();
    }
}
