//! A partition of an internal topic as the journal of the machine that it is led for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI16, Ordering};

use bytes::Bytes;

use super::group::Entry;
use super::group::offsets::Producer;
use super::group::records::GroupRecord;
use crate::base::LeaderEpoch;
use crate::machine::journal::{Committed, Journal, Lost};
use crate::os::clock;
use crate::protocol::error::ErrorCode;
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::compress::Compression;
use crate::protocol::records::control::ControlRecord;
use crate::replica::commit;
use crate::replica::partition::{NotAppended, Partition};

/// Markers have no sequence (RecordBatch.NO_SEQUENCE).
const NO_SEQUENCE: i32 = -1;

/// Records of a transaction each have the first one: their producer does not count them.
const FIRST_SEQUENCE: i32 = 0;

/// What one record adds to a batch besides key and value, at most.
const RECORD_OVERHEAD: usize = 32;

/// A partition under one leader epoch.
pub(super) struct PartitionJournal {
    pub(super) partition: Arc<Partition>,
    pub(super) epoch: LeaderEpoch,
    pub(super) compression: Compression,
    /// Why the journal was lost, for those who waited.
    pub(super) cause: Arc<Cause>,
}

/// The code of what ended a journal; 0 while nothing did.
#[derive(Debug, Default)]
pub(super) struct Cause(AtomicI16);

impl Cause {
    /// What a client of the coordinator is told (CoordinatorOperationExceptionHelper).
    pub(super) fn told(&self) -> ErrorCode {
        match ErrorCode::from_code(self.0.load(Ordering::Acquire)) {
            Some(
                ErrorCode::NotEnoughReplicas
                | ErrorCode::UnknownTopicOrPartition
                | ErrorCode::RequestTimedOut,
            ) => ErrorCode::CoordinatorNotAvailable,
            _ => ErrorCode::NotCoordinator,
        }
    }
}

impl Journal for PartitionJournal {
    type Record = Entry;

    fn end_offset(&self) -> i64 {
        self.partition.reader().log_end_offset()
    }

    fn append_now(&mut self, records: &[Entry]) -> Option<Result<Committed, Lost>> {
        let mut batches = self.batches(records);
        let (Some(batch), true) = (batches.pop(), batches.is_empty()) else {
            return None;
        };
        let appended = self
            .partition
            .append_records_of_ours_now(self.epoch, &batch)?;
        Some(
            appended
                .map(|()| self.committed())
                .map_err(|why| self.lost(&why)),
        )
    }

    async fn append(&mut self, records: &[Entry]) -> Result<Committed, Lost> {
        for batch in self.batches(records) {
            let appended = self.partition.append_records_of_ours(self.epoch, batch);
            appended.await.map_err(|why| self.lost(&why))?;
        }
        Ok(self.committed())
    }
}

impl PartitionJournal {
    fn batches(&self, records: &[Entry]) -> Vec<Bytes> {
        let most = self.partition.reader().config().max_message_bytes;
        batches(records, most, self.compression)
    }

    /// Ends when all that is appended so far is committed.
    fn committed(&self) -> Committed {
        let end = self.end_offset();
        if self.partition.high_watermark() >= end && !self.partition.owes_flush(end) {
            return Box::pin(std::future::ready(Ok(())));
        }
        let (partition, epoch) = (self.partition.clone(), self.epoch);
        Box::pin(async move {
            let committed = commit::reached(&partition, end, epoch).await;
            committed.map_err(|_| Lost)
        })
    }

    fn lost(&self, why: &NotAppended) -> Lost {
        let code = match why {
            NotAppended::Unavailable(code) => *code,
            NotAppended::Rejected(rejection) => {
                let partition = &self.partition.name;
                tracing::error!(%partition, ?rejection, "records of a coordinator are refused");
                ErrorCode::UnknownServerError
            }
        };
        self.cause.0.store(code.code(), Ordering::Release);
        Lost
    }
}

/// Records as batches in their order: those of a transaction apart from others, none larger than
/// `most` unless one record is.
fn batches(entries: &[Entry], most: usize, compression: Compression) -> Vec<Bytes> {
    let mut filling = Filling {
        done: Vec::new(),
        current: None,
        compression,
    };
    let now_ms = clock::wall_ms();
    for entry in entries {
        match entry {
            Entry::Record(record) => filling.add(None, record, now_ms, most),
            Entry::Pending(producer, record) => filling.add(Some(*producer), record, now_ms, most),
            Entry::End {
                producer,
                committed,
                coordinator_epoch,
            } => {
                let control = ControlRecord::EndTransaction {
                    committed: *committed,
                    coordinator_epoch: *coordinator_epoch,
                };
                filling.flush();
                let mut batch = BatchBuilder::new(0)
                    .producer(producer.id.0, producer.epoch, NO_SEQUENCE)
                    .transactional()
                    .control();
                batch.append(now_ms, Some(&control.key()), Some(&control.value()), &[]);
                filling.push(batch);
            }
        }
    }
    filling.flush();
    filling.done
}

struct Filling {
    done: Vec<Bytes>,
    current: Option<(Option<Producer>, BatchBuilder)>,
    compression: Compression,
}

impl Filling {
    fn add(&mut self, of: Option<Producer>, record: &GroupRecord, now_ms: i64, most: usize) {
        let (key, value) = (record.key(), record.value());
        let size = key.len() + value.as_ref().map_or(0, Vec::len) + RECORD_OVERHEAD;
        let fits = |(whose, batch): &(Option<Producer>, BatchBuilder)| {
            *whose == of && batch.size() + size <= most
        };
        if !self.current.as_ref().is_some_and(fits) {
            self.flush();
        }
        let compression = self.compression;
        let (_, batch) = self.current.get_or_insert_with(|| {
            let batch = BatchBuilder::new(0).compression(compression);
            let batch = match of {
                Some(producer) => batch
                    .producer(producer.id.0, producer.epoch, FIRST_SEQUENCE)
                    .transactional(),
                None => batch,
            };
            (of, batch)
        });
        batch.append(now_ms, Some(&key), value.as_deref(), &[]);
    }

    fn flush(&mut self) {
        if let Some((_, batch)) = self.current.take() {
            self.push(batch);
        }
    }

    fn push(&mut self, batch: BatchBuilder) {
        let built = batch.build().expect("a batch in memory can be built");
        self.done.push(Bytes::from(built));
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::offsets::ProducerId;
    use super::super::group::records::{OffsetCommitKey, OffsetCommitValue};
    use super::*;
    use crate::protocol::records::batch::Batch;
    use crate::protocol::records::iter::Records;

    const PRODUCER: Producer = Producer {
        id: ProducerId(9),
        epoch: 2,
    };

    fn commit(partition: i32) -> GroupRecord {
        let key = OffsetCommitKey {
            group: "g".into(),
            topic: "t".into(),
            partition,
        };
        let value = OffsetCommitValue {
            metadata: "m".repeat(100).into(),
            ..OffsetCommitValue::default()
        };
        GroupRecord::OffsetCommit(key, Some(value))
    }

    /// The records of a batch, in words.
    fn read(bytes: &Bytes) -> Vec<GroupRecord> {
        let batch = Batch::parse(bytes).unwrap();
        batch.check_crc().unwrap();
        let records = Records::of(&batch, 1 << 20).unwrap();
        let record = |it: crate::protocol::records::iter::Record<'_>| {
            GroupRecord::decode(it.key.unwrap(), it.value)
                .unwrap()
                .unwrap()
        };
        records.iter().map(|it| record(it.unwrap())).collect()
    }

    #[test]
    fn a_burst_is_split_where_a_batch_would_grow_too_large() {
        let all: Vec<_> = (0..100).map(commit).collect();
        let entries: Vec<_> = all.iter().cloned().map(Entry::Record).collect();
        let built = batches(&entries, 2000, Compression::default());
        assert!(built.len() > 5);
        assert!(built.iter().all(|batch| batch.len() <= 2000));
        let again: Vec<_> = built.iter().flat_map(read).collect();
        assert_eq!(again, all);
        // What is larger on its own is written all the same: who makes records checks them.
        assert_eq!(batches(&entries[..2], 10, Compression::default()).len(), 2);
    }

    #[test]
    fn a_transaction_has_batches_of_its_own_and_ends_with_a_marker() {
        let entries = [
            Entry::Record(commit(0)),
            Entry::Pending(PRODUCER, commit(1)),
            Entry::Pending(PRODUCER, commit(2)),
            Entry::End {
                producer: PRODUCER,
                coordinator_epoch: 4,
                committed: true,
            },
            Entry::Record(commit(3)),
        ];
        let built = batches(&entries, 1 << 20, Compression::default());
        let headers: Vec<_> = built
            .iter()
            .map(|batch| Batch::parse(batch).unwrap().header)
            .map(|it| {
                (
                    it.records_count,
                    it.producer_id,
                    it.is_transactional(),
                    it.is_control(),
                )
            })
            .collect();
        let expected = [
            (1, -1, false, false),
            (2, 9, true, false),
            (1, 9, true, true),
            (1, -1, false, false),
        ];
        assert_eq!(headers, expected);
    }
}
