//! What a leader does to a batch before it goes into the log: every check, the offsets, the
//! timestamps, and another codec where the topic wants one
//! (org.apache.kafka.storage.internals.log.LogValidator and UnifiedLog.analyzeAndValidateRecords).
//!
//! Nothing here knows a file. The records' bytes are lent through; only a new codec copies them.

use bytes::Bytes;

use super::config::LogConfig;
use super::producers::Origin;
use crate::base::TopicPartition;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::protocol::records::batch::{
    BadBatch, Batch, FRAME_LEN, Frame, HEADER_LEN, Header, TimestampType,
};
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::compress::{self, Codec, Compression};
use crate::protocol::records::iter::{BadRecord, Records, Shape, walk};

/// How many records at fault an answer names.
const RECORD_ERRORS_MAX: usize = 10_000;

/// A record that is at fault, by its place in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordError {
    pub(crate) batch_index: i32,
    pub(crate) message: String,
}

/// Why a batch does not go into the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// Code, and the words that Kafka sends with it, if any.
    pub(crate) refusal: Refusal,
    /// The records at fault, where single ones are.
    pub(crate) record_errors: Vec<RecordError>,
    /// Known when the log itself refused; `None` answers -1.
    pub(crate) log_start_offset: Option<i64>,
}

impl Rejection {
    fn early(refusal: impl Into<Refusal>) -> Self {
        Self {
            refusal: refusal.into(),
            record_errors: Vec::new(),
            log_start_offset: None,
        }
    }

    /// A refusal by the log, whose start is part of the answer.
    pub(crate) fn late(refusal: impl Into<Refusal>, log_start_offset: i64) -> Self {
        Self {
            log_start_offset: Some(log_start_offset),
            ..Self::early(refusal)
        }
    }
}

/// What the checks need to know besides the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) config: &'a LogConfig,
    pub(crate) origin: Origin,
    /// The partition, as messages name it.
    pub(crate) at: &'a TopicPartition,
    pub(crate) now_ms: i64,
    pub(crate) log_start_offset: i64,
}

/// A batch fit for the log: its header still without offset and leader epoch, and its records.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// Sealed: what is set from now on lies outside the checksum.
    pub(crate) header: Header,
    /// Everything behind the header.
    pub(crate) records: Bytes,
    /// The time given to all records, where the topic says so; else -1.
    pub(crate) log_append_time_ms: i64,
}

/// Checks the shape of a Produce request's records: one whole batch of magic 2
/// (ProduceRequest.validateRecords).
pub(crate) fn single_batch(records: &Bytes) -> Result<Header, Rejection> {
    if records.len() < FRAME_LEN {
        return Err(Rejection::early(ErrorCode::InvalidRecord));
    }
    let frame = Frame::parse(records).map_err(shape_refusal)?;
    match frame.magic {
        2 => {}
        0 | 1 => return Err(Rejection::early(ErrorCode::InvalidRecord)),
        magic => {
            let words = format!("Invalid magic found in record: {magic}");
            return Err(Rejection::early(Refusal::new(
                ErrorCode::CorruptMessage,
                words,
            )));
        }
    }
    let batch = Batch::parse_any(records).map_err(shape_refusal)?;
    // A second batch is refused, a cut one behind the first is trimmed.
    let rest = &records[batch.bytes().len()..];
    let has_second = Frame::parse(rest).is_ok_and(|frame| frame.size <= rest.len());
    if has_second {
        return Err(Rejection::early(ErrorCode::InvalidRecord));
    }
    Ok(batch.header)
}

fn shape_refusal(bad: BadBatch) -> Rejection {
    match bad {
        BadBatch::TooSmall(length) if length < 14 => Rejection::early(Refusal::new(
            ErrorCode::CorruptMessage,
            format!("Record size {length} is less than the minimum record overhead (14)"),
        )),
        BadBatch::Magic(_) | BadBatch::Checksum { .. } | BadBatch::TooSmall(_) => {
            Rejection::early(ErrorCode::CorruptMessage)
        }
        BadBatch::CutShort { .. } | BadBatch::Codec(_) | BadBatch::Offsets { .. } => {
            Rejection::early(ErrorCode::InvalidRecord)
        }
    }
}

/// Checks a batch for the log and gives it its timestamps and codec; offsets come later, when
/// its producer was checked too.
pub(crate) fn check(records: &Bytes, rules: &Rules<'_>) -> Result<Checked, Rejection> {
    let batch = Batch::parse_any(records).map_err(shape_refusal)?;
    check_size_and_sum(&batch, rules)?;
    check_header(&batch.header, rules.origin)
        .map_err(|code| Rejection::late(code, rules.log_start_offset))?;
    let found = check_records(&batch, rules)?;
    // Kafka means to number such a batch anew (KAFKA-9080), and some clients count on it.
    let same = batch.header.codec().ok().filter(|_| found.has_gaps);
    let kept = match wanted_codec(&batch.header, rules).or_else(|| same.map(Compression::from)) {
        Some(other) => recompress(&batch, other, rules)?,
        None => keep(&batch, records, found.newest, rules),
    };
    if HEADER_LEN + kept.records.len() > rules.config.max_message_bytes {
        return Err(Rejection::early(ErrorCode::MessageTooLarge));
    }
    if (HEADER_LEN + kept.records.len()) as u64 > rules.config.segment_bytes {
        return Err(Rejection::early(ErrorCode::RecordListTooLarge));
    }
    Ok(kept)
}

fn check_size_and_sum(batch: &Batch<'_>, rules: &Rules<'_>) -> Result<(), Rejection> {
    if rules.origin == Origin::Client && batch.header.base_offset != 0 {
        let code = ErrorCode::InvalidRecord;
        return Err(Rejection::late(code, rules.log_start_offset));
    }
    if batch.bytes().len() > rules.config.max_message_bytes {
        return Err(Rejection::early(ErrorCode::MessageTooLarge));
    }
    batch
        .check_crc()
        .map_err(|_| Rejection::early(ErrorCode::CorruptMessage))
}

/// What only a client is asked: a true count, no control records, a sequence with its id.
fn check_header(header: &Header, origin: Origin) -> Result<(), ErrorCode> {
    let counted = i64::from(header.last_offset_delta) + 1;
    let is_dishonest = header.records_count <= 0
        || counted != i64::from(header.records_count)
        || header.is_control()
        || (header.has_producer_id() && header.base_sequence < 0);
    if (origin == Origin::Client && is_dishonest) || header.check_offsets().is_err() {
        return Err(ErrorCode::InvalidRecord);
    }
    Ok(())
}

/// What reading the records of a good batch tells.
struct Walked {
    newest: i64,
    /// A compressed batch whose records are not numbered 0, 1, 2 and so on.
    has_gaps: bool,
}

/// Reads every record.
fn check_records(batch: &Batch<'_>, rules: &Rules<'_>) -> Result<Walked, Rejection> {
    let late = |code: ErrorCode| Rejection::late(code, rules.log_start_offset);
    let header = &batch.header;
    let codec = header
        .codec()
        .map_err(|bad| late(unreadable(&bad.into())))?;
    let compressed = codec != Codec::None;
    let mut errors = Errors::default();
    let mut newest = -1;
    let mut has_gaps = false;
    walk(batch, rules.config.inflated_bytes_max, |shape| {
        has_gaps |= compressed && shape.offset_delta != shape.index;
        newest = newest.max(header.timestamp_of(shape.timestamp_delta));
        errors.check(&shape, header, rules);
    })
    .map_err(|bad| late(unreadable(&bad)))?;
    match errors.rejection(rules) {
        Some(rejection) => Err(rejection),
        None => Ok(Walked { newest, has_gaps }),
    }
}

/// The code for records that cannot be read. What does not decompress is no INVALID_RECORD to Kafka
/// but an exception that it did not expect, and CORRUPT_MESSAGE would have clients send it for ever.
fn unreadable(bad: &BadRecord) -> ErrorCode {
    match bad {
        BadRecord::Inflate(error) if compress::is_too_much(error) => ErrorCode::MessageTooLarge,
        BadRecord::Inflate(_) | BadRecord::Batch(_) => ErrorCode::UnknownServerError,
        BadRecord::CutShort { .. }
        | BadRecord::Malformed { .. }
        | BadRecord::TooMany
        | BadRecord::Messages(_) => ErrorCode::InvalidRecord,
    }
}

/// The records at fault, gathered during the walk.
#[derive(Default)]
struct Errors {
    list: Vec<RecordError>,
    total: usize,
    any_timestamp: bool,
}

impl Errors {
    fn check(&mut self, shape: &Shape, header: &Header, rules: &Rules<'_>) {
        // A marker's key is not an application's, and its time is the coordinator's.
        if rules.origin != Origin::Client && header.is_control() {
            return;
        }
        if rules.config.compact && shape.key_len.is_none() {
            self.push(
                shape,
                format!(
                    "Compacted topic cannot accept message without key in topic partition {}",
                    rules.at
                ),
            );
            return;
        }
        let timestamp = header.timestamp_of(shape.timestamp_delta);
        if rules.config.timestamp_type == TimestampType::CreateTime && timestamp != -1 {
            self.check_range(timestamp, shape, header, rules);
        } else if header.timestamp_type() == TimestampType::LogAppendTime {
            self.any_timestamp = true;
            self.push(
                shape,
                format!(
                    "Invalid timestamp type in message {}. Producer should not set timestamp \
                     type to LogAppendTime.",
                    as_java_prints(timestamp, shape, header)
                ),
            );
        }
    }

    fn check_range(&mut self, timestamp: i64, shape: &Shape, header: &Header, rules: &Rules<'_>) {
        let before = rules.config.timestamp_before_max_ms;
        let after = rules.config.timestamp_after_max_ms;
        let age = rules.now_ms.saturating_sub(timestamp);
        if age <= before && age.saturating_neg() <= after {
            return;
        }
        self.any_timestamp = true;
        self.push(
            shape,
            format!(
                "Timestamp {timestamp} of message with offset {} is out of range. The timestamp \
                 should be within [{}, {}]",
                offset_in_request(shape, header),
                rules.now_ms.wrapping_sub(before),
                rules.now_ms.wrapping_add(after)
            ),
        );
    }

    fn push(&mut self, shape: &Shape, message: String) {
        self.total += 1;
        // A small batch may hold millions of records, and an answer is sent in memory.
        if self.list.len() < RECORD_ERRORS_MAX {
            self.list.push(RecordError {
                batch_index: shape.index,
                message,
            });
        }
    }

    fn rejection(self, rules: &Rules<'_>) -> Option<Rejection> {
        if self.list.is_empty() {
            return None;
        }
        let refusal = if self.any_timestamp {
            Refusal::new(
                ErrorCode::InvalidTimestamp,
                "One or more records have been rejected due to invalid timestamp",
            )
        } else {
            Refusal::new(ErrorCode::InvalidRecord, summary(&self.list, self.total))
        };
        Some(Rejection {
            refusal,
            record_errors: self.list,
            log_start_offset: Some(rules.log_start_offset),
        })
    }
}

/// A record in Java's words: whole when it was read whole, else without its bytes.
fn as_java_prints(timestamp: i64, shape: &Shape, header: &Header) -> String {
    let whole = header.codec() == Ok(Codec::None);
    let (class, null) = if whole {
        ("DefaultRecord", 0)
    } else {
        ("PartialDefaultRecord", -1)
    };
    let size = |len: Option<u64>| len.and_then(|len| i64::try_from(len).ok()).unwrap_or(null);
    format!(
        "{class}(offset={}, timestamp={timestamp}, key={} bytes, value={} bytes)",
        offset_in_request(shape, header),
        size(shape.key_len),
        size(shape.value_len)
    )
}

fn offset_in_request(shape: &Shape, header: &Header) -> i64 {
    header
        .base_offset
        .wrapping_add(i64::from(shape.offset_delta))
}

fn summary(errors: &[RecordError], total: usize) -> String {
    let shown: Vec<_> = errors
        .iter()
        .take(3)
        .map(|error| {
            format!(
                "RecordError(batchIndex={}, message='{}')",
                error.batch_index, error.message
            )
        })
        .collect();
    format!(
        "One or more records have been rejected due to {} record errors in total, and only \
         showing the first three errors at most: [{}]",
        total,
        shown.join(", ")
    )
}

/// The codec to change to; markers stay as they are.
fn wanted_codec(header: &Header, rules: &Rules<'_>) -> Option<Compression> {
    let wanted = rules.config.compression?;
    let differs = header.codec() != Ok(wanted.codec);
    (differs && !header.is_control()).then_some(wanted)
}

/// Keeps the records as they came; the header gets the timestamps of the topic's kind.
fn keep(batch: &Batch<'_>, records: &Bytes, newest: i64, rules: &Rules<'_>) -> Checked {
    let mut header = batch.header;
    let log_append_time_ms = match rules.config.timestamp_type {
        TimestampType::CreateTime => {
            header.max_timestamp = newest;
            -1
        }
        TimestampType::LogAppendTime => {
            header.max_timestamp = rules.now_ms;
            rules.now_ms
        }
    };
    header.set_timestamp_type(rules.config.timestamp_type);
    if header != batch.header {
        header.seal(batch.records_bytes());
    }
    Checked {
        header,
        records: records.slice(HEADER_LEN..batch.bytes().len()),
        log_append_time_ms,
    }
}

/// Builds the batch anew with another codec.
fn recompress(
    batch: &Batch<'_>,
    with: Compression,
    rules: &Rules<'_>,
) -> Result<Checked, Rejection> {
    let late = |code: ErrorCode| Rejection::late(code, rules.log_start_offset);
    let header = &batch.header;
    let mut builder = BatchBuilder::new(0).compression(with).producer(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    );
    if header.is_transactional() {
        builder = builder.transactional();
    }
    let mut log_append_time_ms = -1;
    if rules.config.timestamp_type == TimestampType::LogAppendTime {
        log_append_time_ms = rules.now_ms;
        builder = builder.log_append_time(rules.now_ms);
    }
    let records = Records::of(batch, rules.config.inflated_bytes_max)
        .map_err(|bad| late(unreadable(&bad)))?;
    for (delta, record) in (0i32..).zip(records.iter()) {
        let record = record.map_err(|bad| late(unreadable(&bad)))?;
        let timestamp = header.timestamp_of(record.timestamp_delta);
        builder.append_record(delta, timestamp, &record);
    }
    let built = builder
        .build()
        .map_err(|_| late(ErrorCode::MessageTooLarge))?;
    let built = Bytes::from(built);
    let header = Header::parse(&built).map_err(|_| late(ErrorCode::CorruptMessage))?;
    Ok(Checked {
        header,
        records: built.slice(HEADER_LEN..),
        log_append_time_ms,
    })
}

#[cfg(test)]
#[path = "append_test.rs"]
mod tests;
