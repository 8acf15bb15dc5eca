//! The records inside a batch (org.apache.kafka.common.record.DefaultRecord).
//!
//! [`walk`] checks every record of a batch without copying or keeping any: of a compressed batch
//! it holds one small window of the inflated stream. [`Records`] lends the records of an
//! inflated block, keys, values and headers as they are: header keys may repeat and need not be
//! UTF-8.

use std::borrow::Cow;
use std::io::{self, Read};

use super::batch::{BadBatch, Batch};
use super::compress::{self, Codec, Inflate};
use super::legacy::BadMessages;
use crate::base::varint;

/// Why the records of a batch cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRecord {
    /// The batch itself is wrong.
    #[error(transparent)]
    Batch(#[from] BadBatch),
    /// The block does not inflate, or to more than the limit.
    #[error("the records do not decompress: {0}")]
    Inflate(#[from] io::Error),
    /// The block ends inside a record.
    #[error("record {index} is cut short")]
    CutShort { index: i32 },
    /// A record's parts do not fill its length, or a length is impossible.
    #[error("record {index} has a wrong size")]
    Malformed { index: i32 },
    /// Bytes are left behind the last record.
    #[error("bytes are left behind the last record")]
    TooMany,
    /// Messages of magic 0 or 1 are none.
    #[error(transparent)]
    Messages(#[from] BadMessages),
}

/// What a walk tells of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Its place in the batch, from 0.
    pub(crate) index: i32,
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    /// Bytes of the key; `None` for null.
    pub(crate) key_len: Option<u64>,
    /// Bytes of the value; `None` for null.
    pub(crate) value_len: Option<u64>,
}

/// Walks over the records of a batch: every length is checked, the count must be that of the
/// header, and nothing may be left behind. At most `limit` bytes are inflated.
pub(crate) fn walk(
    batch: &Batch<'_>,
    limit: u64,
    visit: impl FnMut(Shape),
) -> Result<(), BadRecord> {
    let count = batch.header.records_count;
    let bytes = batch.records_bytes();
    let codec = batch.header.codec()?;
    if codec == Codec::None {
        return walk_source(SliceSource(bytes), count, visit);
    }
    let stream = Inflate::new(codec, bytes, limit)?;
    walk_source(StreamSource::new(stream), count, visit)
}

fn walk_source(
    mut source: impl Source,
    count: i32,
    mut visit: impl FnMut(Shape),
) -> Result<(), BadRecord> {
    for index in 0..count {
        visit(walk_record(&mut source, index)?);
    }
    if source.is_at_end()? {
        Ok(())
    } else {
        Err(BadRecord::TooMany)
    }
}

fn walk_record(source: &mut impl Source, index: i32) -> Result<Shape, BadRecord> {
    let size = length(source.varint(index)?, index)?;
    let end = source
        .position()
        .checked_add(size)
        .ok_or(BadRecord::Malformed { index })?;
    source.skip(1, index)?;
    let timestamp_delta = source.varlong(index)?;
    let offset_delta = source.varint(index)?;
    let key_len = skip_nullable(source, end, index)?;
    let value_len = skip_nullable(source, end, index)?;
    let headers = source.varint(index)?;
    if headers < 0 {
        return Err(BadRecord::Malformed { index });
    }
    for _ in 0..headers {
        let key = length(source.varint(index)?, index)?;
        skip_within(source, key, end, index)?;
        skip_nullable(source, end, index)?;
    }
    if source.position() != end {
        return Err(BadRecord::Malformed { index });
    }
    Ok(Shape {
        index,
        timestamp_delta,
        offset_delta,
        key_len,
        value_len,
    })
}

fn skip_nullable(source: &mut impl Source, end: u64, index: i32) -> Result<Option<u64>, BadRecord> {
    let len = source.varint(index)?;
    // Java takes any negative length for null.
    match u64::try_from(len) {
        Ok(len) => skip_within(source, len, end, index).map(|()| Some(len)),
        Err(_) => Ok(None),
    }
}

fn skip_within(source: &mut impl Source, len: u64, end: u64, index: i32) -> Result<(), BadRecord> {
    if len > end.saturating_sub(source.position()) {
        return Err(BadRecord::Malformed { index });
    }
    source.skip(len, index)
}

fn length(value: i32, index: i32) -> Result<u64, BadRecord> {
    u64::try_from(value).map_err(|_| BadRecord::Malformed { index })
}

/// Where a walk takes its bytes from.
trait Source {
    fn varint(&mut self, index: i32) -> Result<i32, BadRecord>;
    fn varlong(&mut self, index: i32) -> Result<i64, BadRecord>;
    fn skip(&mut self, count: u64, index: i32) -> Result<(), BadRecord>;
    /// Grows as bytes are taken; only differences mean something.
    fn position(&self) -> u64;
    fn is_at_end(&mut self) -> Result<bool, BadRecord>;
}

/// Bytes in memory; the position counts what is gone from the front.
struct SliceSource<'a>(&'a [u8]);

impl Source for SliceSource<'_> {
    fn varint(&mut self, index: i32) -> Result<i32, BadRecord> {
        take_varint(&mut self.0, index)
    }

    fn varlong(&mut self, index: i32) -> Result<i64, BadRecord> {
        take_varlong(&mut self.0, index)
    }

    fn skip(&mut self, count: u64, index: i32) -> Result<(), BadRecord> {
        take(&mut self.0, count, index).map(|_| ())
    }

    fn position(&self) -> u64 {
        // Counts down from the top as the slice shrinks, so that no second field is needed.
        u64::MAX / 2 - self.0.len() as u64
    }

    fn is_at_end(&mut self) -> Result<bool, BadRecord> {
        Ok(self.0.is_empty())
    }
}

const WINDOW: usize = 16 * 1024;
/// The longest varint.
const MARGIN: usize = 10;

/// A stream seen through a window.
struct StreamSource<'a> {
    stream: Inflate<'a>,
    window: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes that left the window.
    gone: u64,
    ended: bool,
}

impl<'a> StreamSource<'a> {
    fn new(stream: Inflate<'a>) -> Self {
        Self {
            stream,
            window: vec![0; WINDOW].into_boxed_slice(),
            start: 0,
            end: 0,
            gone: 0,
            ended: false,
        }
    }

    /// Sees to it that a varint lies in the window, or all that the stream still has.
    fn want(&mut self, count: usize) -> Result<(), BadRecord> {
        if self.end - self.start >= count || self.ended {
            return Ok(());
        }
        self.window.copy_within(self.start..self.end, 0);
        self.gone += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < count && !self.ended {
            self.read_more()?;
        }
        Ok(())
    }

    fn read_more(&mut self) -> Result<(), BadRecord> {
        match self.stream.read(&mut self.window[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn taking<T>(
        &mut self,
        index: i32,
        take: impl FnOnce(&mut &[u8], i32) -> Result<T, BadRecord>,
    ) -> Result<T, BadRecord> {
        self.want(MARGIN)?;
        let mut seen = &self.window[self.start..self.end];
        let before = seen.len();
        let value = take(&mut seen, index)?;
        self.start += before - seen.len();
        Ok(value)
    }
}

impl Source for StreamSource<'_> {
    fn varint(&mut self, index: i32) -> Result<i32, BadRecord> {
        self.taking(index, take_varint)
    }

    fn varlong(&mut self, index: i32) -> Result<i64, BadRecord> {
        self.taking(index, take_varlong)
    }

    fn skip(&mut self, mut count: u64, index: i32) -> Result<(), BadRecord> {
        loop {
            let seen = (self.end - self.start) as u64;
            if count <= seen {
                self.start += usize::try_from(count).expect("it is at most the window");
                return Ok(());
            }
            count -= seen;
            self.gone += self.end as u64;
            (self.start, self.end) = (0, 0);
            if self.ended {
                return Err(BadRecord::CutShort { index });
            }
            self.read_more()?;
        }
    }

    fn position(&self) -> u64 {
        self.gone + self.start as u64
    }

    fn is_at_end(&mut self) -> Result<bool, BadRecord> {
        self.want(1)?;
        Ok(self.start == self.end)
    }
}

fn take_varint(input: &mut &[u8], index: i32) -> Result<i32, BadRecord> {
    // Most lengths and deltas are one byte.
    if let [byte @ 0..0x80, rest @ ..] = input {
        let raw = i32::from(*byte);
        *input = rest;
        return Ok((raw >> 1) ^ -(raw & 1));
    }
    let cut = input.len() < 5;
    varint::take_signed(input).ok_or_else(|| bad_varint(cut, index))
}

fn take_varlong(input: &mut &[u8], index: i32) -> Result<i64, BadRecord> {
    let cut = input.len() < MARGIN;
    varint::take_signed_long(input).ok_or_else(|| bad_varint(cut, index))
}

fn bad_varint(cut: bool, index: i32) -> BadRecord {
    if cut {
        BadRecord::CutShort { index }
    } else {
        BadRecord::Malformed { index }
    }
}

fn take<'a>(input: &mut &'a [u8], count: u64, index: i32) -> Result<&'a [u8], BadRecord> {
    let taken = usize::try_from(count)
        .ok()
        .and_then(|count| input.split_at_checked(count));
    let (head, rest) = taken.ok_or(BadRecord::CutShort { index })?;
    *input = rest;
    Ok(head)
}

/// A record, its bytes lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    headers_count: i32,
    headers: &'a [u8],
}

impl<'a> Record<'a> {
    fn parse(input: &mut &'a [u8], index: i32) -> Result<Self, BadRecord> {
        let size = length(take_varint(input, index)?, index)?;
        let mut body = take(input, size, index)?;
        // Inside the body a cut is a wrong size.
        Self::parse_body(&mut body, index).map_err(|bad| match bad {
            BadRecord::CutShort { index } => BadRecord::Malformed { index },
            BadRecord::Batch(_)
            | BadRecord::Inflate(_)
            | BadRecord::Malformed { .. }
            | BadRecord::TooMany
            | BadRecord::Messages(_) => bad,
        })
    }

    fn parse_body(body: &mut &'a [u8], index: i32) -> Result<Self, BadRecord> {
        take(body, 1, index)?;
        let timestamp_delta = take_varlong(body, index)?;
        let offset_delta = take_varint(body, index)?;
        let key = take_nullable(body, index)?;
        let value = take_nullable(body, index)?;
        let headers_count = take_varint(body, index)?;
        let record = Self {
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers_count,
            headers: body,
        };
        if headers_count < 0 {
            return Err(BadRecord::Malformed { index });
        }
        for _ in 0..headers_count {
            take_header(body, index)?;
        }
        if body.is_empty() {
            Ok(record)
        } else {
            Err(BadRecord::Malformed { index })
        }
    }

    /// Its headers in their order, keys as bytes.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut rest = self.headers;
        (0..self.headers_count).map_while(move |index| take_header(&mut rest, index).ok())
    }

    /// How many headers it has.
    pub(crate) fn headers_count(&self) -> i32 {
        self.headers_count
    }

    /// Its headers as they are encoded, without their count.
    pub(crate) fn headers_bytes(&self) -> &'a [u8] {
        self.headers
    }
}

fn take_nullable<'a>(input: &mut &'a [u8], index: i32) -> Result<Option<&'a [u8]>, BadRecord> {
    match u64::try_from(take_varint(input, index)?) {
        Ok(len) => take(input, len, index).map(Some),
        Err(_) => Ok(None),
    }
}

fn take_header<'a>(
    input: &mut &'a [u8],
    index: i32,
) -> Result<(&'a [u8], Option<&'a [u8]>), BadRecord> {
    let len = length(take_varint(input, index)?, index)?;
    let key = take(input, len, index)?;
    Ok((key, take_nullable(input, index)?))
}

/// The records of a batch, inflated if need be, ready to be lent.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    bytes: Cow<'a, [u8]>,
    count: i32,
}

impl<'a> Records<'a> {
    /// Inflates at most `limit` bytes; of an uncompressed batch nothing is copied.
    pub(crate) fn of(batch: &Batch<'a>, limit: u64) -> Result<Self, BadRecord> {
        let bytes = batch.records_bytes();
        let codec = batch.header.codec()?;
        let bytes = if codec == Codec::None {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(compress::inflate(codec, bytes, limit)?)
        };
        Ok(Self {
            bytes,
            count: batch.header.records_count,
        })
    }

    /// The records in order; ends after the first that cannot be read.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Record<'_>, BadRecord>> {
        let mut rest = &*self.bytes;
        let mut next = 0;
        std::iter::from_fn(move || {
            if next >= self.count {
                return None;
            }
            let record = Record::parse(&mut rest, next);
            next = if record.is_ok() { next + 1 } else { self.count };
            Some(record)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::BatchBuilder;
    use super::super::compress::Compression;
    use super::*;

    const ALL: [Codec; 5] = [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ];

    fn sample(codec: Codec) -> Vec<u8> {
        let mut builder = BatchBuilder::new(0).compression(Compression::from(codec));
        let headers: &[(&[u8], Option<&[u8]>)] = &[
            (b"h", Some(b"1")),
            (b"h", None),
            (b"", Some(b"")),
            (b"\xff\xfe", Some(b"\0")),
        ];
        builder.append(1000, Some(b"key"), Some(&[9; 40_000]), headers);
        builder.append(900, None, None, &[]);
        builder.append(2000, Some(b""), Some(b""), &[]);
        builder.build().unwrap()
    }

    #[test]
    fn records_come_out_as_they_went_in() {
        for codec in ALL {
            let bytes = sample(codec);
            let batch = Batch::parse(&bytes).unwrap();
            let records = Records::of(&batch, 1 << 20).unwrap();
            let all: Vec<_> = records.iter().map(Result::unwrap).collect();
            assert_eq!(all.len(), 3, "{codec:?}");
            assert_eq!(all[0].value, Some(&[9; 40_000][..]));
            assert_eq!(all[1].key, None);
            assert_eq!(all[1].timestamp_delta, -100);
            assert_eq!(all[2].value, Some(&b""[..]));
            let headers: Vec<_> = all[0].headers().collect();
            assert_eq!(headers[0], (&b"h"[..], Some(&b"1"[..])));
            assert_eq!(headers[1], (&b"h"[..], None));
            assert_eq!(headers[3].0, b"\xff\xfe");
        }
    }

    #[test]
    fn a_walk_sees_what_the_records_say() {
        for codec in ALL {
            let bytes = sample(codec);
            let batch = Batch::parse(&bytes).unwrap();
            let mut seen = Vec::new();
            walk(&batch, 1 << 20, |shape| seen.push(shape)).unwrap();
            let deltas: Vec<_> = seen.iter().map(|shape| shape.offset_delta).collect();
            assert_eq!(deltas, [0, 1, 2], "{codec:?}");
            let keys: Vec<_> = seen.iter().map(|shape| shape.key_len).collect();
            assert_eq!(keys, [Some(3), None, Some(0)]);
            assert_eq!(seen[0].value_len, Some(40_000));
        }
    }

    #[test]
    fn a_count_that_is_not_true_is_refused() {
        for codec in ALL {
            for (count, short) in [(2, false), (4, true)] {
                let mut bytes = sample(codec);
                bytes[57..61].copy_from_slice(&i32::to_be_bytes(count));
                let batch = Batch::parse(&bytes).unwrap();
                match walk(&batch, 1 << 20, |_| ()) {
                    Err(BadRecord::CutShort { index: 3 }) => assert!(short),
                    Err(BadRecord::TooMany) => assert!(!short),
                    other => panic!("{codec:?}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn a_bomb_is_walked_over_in_a_window_and_stops_at_the_limit() {
        let mut builder = BatchBuilder::new(0).compression(Compression::from(Codec::Zstd));
        builder.append(0, None, Some(&vec![0; 50_000_000]), &[]);
        let bytes = builder.build().unwrap();
        assert!(bytes.len() < 10_000);
        let batch = Batch::parse(&bytes).unwrap();
        walk(&batch, 60_000_000, |_| ()).unwrap();
        assert!(matches!(
            walk(&batch, 40_000_000, |_| ()),
            Err(BadRecord::Inflate(_))
        ));
    }
}
