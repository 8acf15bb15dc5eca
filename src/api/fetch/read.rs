//! Reading the wanted partitions: each gives a slice of its log or an error.

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{AbortedTransaction, EpochEndOffset, PartitionData};

use super::plan::{Ask, Asked, Limits, Wanted};
use super::{CONSUMER, Reader};
use crate::base::LeaderEpoch;
use crate::log::epochs::EpochEnd;
use crate::log::read::{Located, Slice, Want};
use crate::protocol::chunk::FileSlice;
use crate::protocol::error::ErrorCode;
use crate::replica::partition::{Isolation, Offsets, Partition};

/// What became of one partition.
pub(super) struct Outcome {
    pub(super) data: PartitionData,
    pub(super) slice: Option<FileSlice>,
    /// The answer must not wait for more: there is an error, a diverging epoch, or records of a
    /// closed segment.
    pub(super) must_answer: bool,
}

impl Outcome {
    /// Bytes of records.
    pub(super) fn len(&self) -> usize {
        self.slice.as_ref().map_or(0, |slice| slice.len)
    }

    fn new(index: i32) -> Self {
        Self {
            data: PartitionData::default()
                .with_partition_index(index)
                .with_aborted_transactions(None)
                .with_records(Some(Bytes::new())),
            slice: None,
            must_answer: false,
        }
    }

    /// An error; offsets are -1 as with every one (FetchResponse.partitionResponse).
    pub(super) fn failed(index: i32, code: ErrorCode) -> Self {
        let mut outcome = Self::new(index);
        outcome.must_answer = true;
        outcome.data.error_code = code.code();
        outcome.data.high_watermark = -1;
        outcome.data.last_stable_offset = -1;
        outcome.data.log_start_offset = -1;
        outcome
    }

    fn read(index: i32, offsets: &Offsets) -> Self {
        let mut outcome = Self::new(index);
        outcome.data.high_watermark = offsets.high_watermark;
        outcome.data.last_stable_offset = offsets.last_stable;
        outcome.data.log_start_offset = offsets.log_start;
        outcome
    }
}

/// Reads all wanted partitions in order, within the limits.
pub(super) async fn all(wanted: &[Wanted], reader: Reader, limits: Limits) -> Vec<Outcome> {
    let mut left = limits.max_bytes;
    let mut min_one = true;
    let mut outcomes = Vec::with_capacity(wanted.len());
    for one in wanted {
        let index = one.asked.key.index;
        let outcome = match &one.partition {
            Ok(partition) => self::one(&one.asked, partition, reader, left, min_one)
                .await
                .unwrap_or_else(|code| Outcome::failed(index, code)),
            Err(code) if one.is_unknown() => unknown(index, *code),
            Err(code) => Outcome::failed(index, *code),
        };
        let len = outcome.len();
        left = left
            .saturating_sub(i32::try_from(len).unwrap_or(i32::MAX))
            .max(0);
        min_one &= len == 0;
        outcomes.push(outcome);
    }
    outcomes
}

/// What is unknown does not end the wait for the others.
fn unknown(index: i32, code: ErrorCode) -> Outcome {
    let mut outcome = Outcome::failed(index, code);
    outcome.must_answer = false;
    outcome.data.aborted_transactions = Some(Vec::new());
    outcome
}

async fn one(
    asked: &Asked,
    partition: &Partition,
    reader: Reader,
    left: i32,
    min_one: bool,
) -> Result<Outcome, ErrorCode> {
    let ask = &asked.ask;
    if partition.is_retired() {
        // Deleted while the fetch waited.
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    admit(partition, reader, ask.current_leader_epoch)?;
    let max_bytes = usize::try_from(ask.max_bytes.min(left));
    let offsets = partition.offsets();
    let mut outcome = Outcome::read(asked.key.index, &offsets);
    if let Some(diverging) = diverging(ask, partition, &offsets)? {
        outcome.data.diverging_epoch = diverging;
        outcome.must_answer = true;
        return Ok(outcome);
    }
    let isolation = reader.isolation();
    let want = Want {
        offset: ask.fetch_offset,
        upper: offsets.end(isolation),
        max_bytes: max_bytes.unwrap_or(0),
        min_one,
    };
    match partition.locate(want).await? {
        Located::OutOfRange => Err(ErrorCode::OffsetOutOfRange),
        Located::Empty => {
            if isolation == Isolation::Stable {
                outcome.data.aborted_transactions = Some(Vec::new());
            }
            Ok(outcome)
        }
        // Kafka notices a negative size only where it would read (LogSegment.read).
        Located::Slice(_) if max_bytes.is_err() => Err(ErrorCode::UnknownServerError),
        Located::Slice(slice) => {
            if isolation == Isolation::Stable {
                outcome.data.aborted_transactions =
                    Some(aborted(partition, ask.fetch_offset, &slice).await?);
            }
            outcome.must_answer = partition.reader().is_closed(slice.segment_base_offset);
            outcome.slice = Some(FileSlice {
                file: slice.file,
                position: slice.position,
                len: slice.len,
            });
            Ok(outcome)
        }
    }
}

fn admit(partition: &Partition, reader: Reader, epoch: i32) -> Result<(), ErrorCode> {
    match reader {
        Reader::Debugger => partition.check_epoch(epoch).map(|_| ()),
        Reader::Consumer(_) => partition.check_leader(epoch).map(|_| ()),
        // No other node has replicas of this one's partitions yet.
        Reader::Replica(id) => {
            let role = partition.check_leader(epoch)?;
            let follows = role.replicas.all.iter().any(|replica| replica.0 == id);
            if follows && id != role.leader.0 && id > CONSUMER {
                Ok(())
            } else {
                Err(ErrorCode::NotLeaderOrFollower)
            }
        }
    }
}

/// Whether the reader followed an epoch that ended earlier than it believes (KIP-595).
fn diverging(
    ask: &Ask,
    partition: &Partition,
    offsets: &Offsets,
) -> Result<Option<EpochEndOffset>, ErrorCode> {
    let epoch = ask.last_fetched_epoch;
    if epoch < 0 {
        return Ok(None);
    }
    let EpochEnd {
        epoch: found,
        end_offset,
    } = partition.reader().epoch_end(LeaderEpoch(epoch));
    if end_offset < 0 || found.0 < 0 || ask.fetch_offset < offsets.log_start {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    if found.0 < epoch || end_offset < ask.fetch_offset {
        return Ok(Some(
            EpochEndOffset::default()
                .with_epoch(found.0)
                .with_end_offset(end_offset),
        ));
    }
    Ok(None)
}

async fn aborted(
    partition: &Partition,
    offset: i64,
    slice: &Slice,
) -> Result<Vec<AbortedTransaction>, ErrorCode> {
    let found = partition.aborted(offset, slice).await?;
    let list = found.into_iter().map(|txn| {
        AbortedTransaction::default()
            .with_producer_id(txn.producer_id.into())
            .with_first_offset(txn.first_offset)
    });
    Ok(list.collect())
}
