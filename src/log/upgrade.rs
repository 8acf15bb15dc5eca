//! One batch of magic 0 or 1 under compaction: what of it stays, always as a batch of magic 2
//! (org.apache.kafka.common.record.MemoryRecords.filterTo).
//!
//! The new batch begins at the first record that stays and ends at the last. It keeps the codec and
//! whose clock set the times; it has no producer and no leader epoch. Tombstones in it are given
//! their horizon at once (KIP-534).

use super::filter::{Filtered, Kept, Verdict, emptied};
use crate::protocol::records::batch::Header;
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::iter::BadRecord;
use crate::protocol::records::legacy::{BadMessages, INFLATED_BYTES_MAX, LegacyBatch, Message};

/// Decides what of a batch stays; `stays` judges a message.
///
/// Apache Kafka gives up on a log where nothing of the last batch stays. Its offset is kept here as
/// that of any other last batch, by a header.
pub(crate) fn filter(
    batch: &LegacyBatch<'_>,
    verdict: Verdict,
    mut stays: impl FnMut(&Message<'_>) -> Result<bool, BadMessages>,
) -> Result<Filtered, BadRecord> {
    let messages = batch.messages(INFLATED_BYTES_MAX)?;
    let mut kept = Vec::new();
    for message in messages.iter() {
        let message = message?;
        if stays(&message)? {
            kept.push(message);
        }
    }
    let Some(first) = kept.first() else {
        let header = header(batch, batch.last_offset())?;
        return Ok(emptied(&header, verdict));
    };
    let mut has_tombstones = false;
    for message in &kept {
        has_tombstones |= !message.has_value()?;
    }
    let horizon = has_tombstones.then_some(verdict.new_horizon_ms);
    let mut builder = BatchBuilder::like(&header(batch, first.offset)?, horizon)?;
    let mut from = first.offset;
    for message in &kept {
        let delta = check(message, from, first.offset, batch.last_offset())?;
        builder.append_at(delta, message.timestamp, message.key()?, message.value()?);
        from = message.offset + 1;
    }
    Ok(Filtered {
        kept: Kept::Rewritten(builder.build()?),
        records: kept.len() as u64,
    })
}

/// Checks offset and time of a message; gives its place in the batch.
fn check(message: &Message<'_>, from: i64, base: i64, to: i64) -> Result<i32, BadMessages> {
    let Message {
        offset, timestamp, ..
    } = *message;
    if timestamp < -1 {
        return Err(BadMessages::Timestamp(timestamp));
    }
    let delta = i32::try_from(offset.saturating_sub(base));
    match delta {
        Ok(delta) if from >= 0 && (from..=to).contains(&offset) => Ok(delta),
        Ok(_) | Err(_) => Err(BadMessages::Offset { offset, from, to }),
    }
}

/// The header of a batch of magic 2 that begins at `base_offset`, without records.
fn header(batch: &LegacyBatch<'_>, base_offset: i64) -> Result<Header, BadRecord> {
    let mut header = BatchBuilder::new(base_offset).header();
    header.set_codec(batch.codec()?);
    header.set_timestamp_type(batch.timestamp_type());
    header.max_timestamp = batch.max_timestamp();
    Ok(header)
}
