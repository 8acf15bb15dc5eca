//! Idempotent and transactional producers of one log: which sequences may come next, which
//! transactions are open, what the last stable offset is
//! (org.apache.kafka.storage.internals.log.ProducerStateManager, KIP-98, KIP-890).
//!
//! ```text
//!            transactional batch                        marker
//! no transaction ───────────────> open (first offset) ────────> decided: listed if aborted
//!       ^  plain batches                │ more batches              │
//!       └───────────────────────────────┴───────────────────────────┘
//! ```
//!
//! Checking and applying are apart: a batch is checked, written, then applied.

use std::collections::{BTreeMap, HashMap};

use super::snapshot::StoredProducer;
use super::txn_index::AbortedTxn;
use crate::protocol::error::ErrorCode;
use crate::protocol::records::batch::Header;

/// How many batches of a producer are remembered to recognise a retry.
const WINDOW: usize = 5;
/// No sequence was seen yet.
const NO_SEQUENCE: i32 = -1;
/// No epoch was seen yet.
const NO_EPOCH: i16 = -1;

/// A batch of a producer, as much of it as recognises a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerBatch {
    pub(crate) first_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) first_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) timestamp: i64,
}

/// What is known of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Producer {
    epoch: i16,
    /// Oldest first, at most [`WINDOW`].
    batches: Vec<ProducerBatch>,
    last_timestamp: i64,
    coordinator_epoch: i32,
    /// Set while a transaction is open.
    txn_first_offset: Option<i64>,
}

impl Producer {
    fn new(epoch: i16) -> Self {
        Self {
            epoch,
            batches: Vec::new(),
            last_timestamp: -1,
            coordinator_epoch: -1,
            txn_first_offset: None,
        }
    }

    fn last_sequence(&self) -> i32 {
        self.batches
            .last()
            .map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn take_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }

    fn is_idle_since(&self, deadline: i64) -> bool {
        self.txn_first_offset.is_none() && self.last_timestamp <= deadline
    }
}

/// Who wants to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A producer: everything is checked.
    Client,
    /// A coordinator of this broker, with markers or records of its own.
    Coordinator,
    /// The leader, whose word a follower takes.
    Replication,
}

/// Proof that a producer's transaction includes this partition; each is good for one transaction
/// (KIP-890).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerificationGuard(u64);

/// Whether a transaction's first batch here must prove that its transaction includes this
/// partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    NotNeeded,
    /// With the guard that a verification gave out, if there was one.
    Needed(Option<VerificationGuard>),
}

/// A verification under way.
#[derive(Clone, Copy, Debug)]
struct Verification {
    guard: VerificationGuard,
    epoch: i16,
    lowest_sequence: i32,
    /// The client bumps its epoch with each transaction (transaction version 2).
    bumps_epoch: bool,
    timestamp: i64,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The batch may be appended.
    Append,
    /// The batch was appended before, here.
    Duplicate(ProducerBatch),
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) committed: bool,
    pub(crate) coordinator_epoch: i32,
}

/// A transaction that a marker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletedTxn {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// The offset of the marker.
    pub(crate) last_offset: i64,
    pub(crate) committed: bool,
    /// The last stable offset once it is completed.
    pub(crate) last_stable_offset: i64,
}

impl CompletedTxn {
    /// What the transaction index is to say of it.
    pub(crate) fn aborted(&self) -> Option<AbortedTxn> {
        (!self.committed).then_some(AbortedTxn {
            producer_id: self.producer_id,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            last_stable_offset: self.last_stable_offset,
        })
    }
}

/// A producer as DescribeProducers shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActiveProducer {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) last_sequence: i32,
    pub(crate) last_timestamp: i64,
    pub(crate) coordinator_epoch: i32,
    pub(crate) txn_start_offset: Option<i64>,
}

/// What must stay in a log for a producer to be known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastRecord {
    /// The last offset of its last batch; `None` after a marker that ended its epoch.
    pub(crate) data_offset: Option<i64>,
    pub(crate) epoch: i16,
}

/// The producers of one log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    by_id: HashMap<i64, Producer>,
    /// Open transactions by their first offset.
    open: BTreeMap<i64, i64>,
    verifications: HashMap<i64, Verification>,
    guards: u64,
}

impl Producers {
    /// Takes up stored producers; those idle since `deadline` are left out.
    pub(crate) fn load(stored: Vec<StoredProducer>, deadline: i64) -> Self {
        let mut producers = Self::default();
        for one in stored {
            let producer = from_stored(one);
            if producer.is_idle_since(deadline) {
                continue;
            }
            if let Some(first) = producer.txn_first_offset {
                producers.open.insert(first, one.producer_id);
            }
            producers.by_id.insert(one.producer_id, producer);
        }
        producers
    }

    /// The producers to store, by id.
    pub(crate) fn store(&self) -> Vec<StoredProducer> {
        let mut stored: Vec<_> = self
            .by_id
            .iter()
            .map(|(id, one)| to_stored(*id, one))
            .collect();
        stored.sort_by_key(|one| one.producer_id);
        stored
    }

    /// Takes up producers that `others` knows and this does not, all of whose records lie below
    /// `start`: a copy of what lies beyond does not tell of them.
    pub(crate) fn take_up_missing(&mut self, others: &Self, start: i64) {
        for (id, one) in &others.by_id {
            let is_below = one
                .batches
                .last()
                .is_none_or(|last| last.last_offset < start);
            if !is_below || self.by_id.contains_key(id) {
                continue;
            }
            if let Some(first) = one.txn_first_offset {
                self.open.insert(first, *id);
            }
            self.by_id.insert(*id, one.clone());
        }
    }

    /// Whether none is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Remembers the last batches of producers of which only the last one is known, as a snapshot has
    /// it; `recent` was made from the batches before.
    pub(crate) fn take_up_batches(&mut self, recent: Self) {
        for (id, recent) in recent.by_id {
            if let Some(known) = self.by_id.get_mut(&id)
                && known.epoch == recent.epoch
                && known.batches.last() == recent.batches.last()
            {
                known.batches = recent.batches;
            }
        }
    }

    /// How many producers are known.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The first offset of the oldest open transaction.
    pub(crate) fn first_open(&self) -> Option<i64> {
        self.open.first_key_value().map(|(first, _)| *first)
    }

    /// Whether the producer has a transaction of this epoch open here.
    pub(crate) fn has_open_transaction(&self, id: i64, epoch: i16) -> bool {
        self.by_id
            .get(&id)
            .is_some_and(|one| one.txn_first_offset.is_some() && one.epoch == epoch)
    }

    /// The producers with records here.
    pub(crate) fn active(&self) -> Vec<ActiveProducer> {
        let show = |(id, one): (&i64, &Producer)| ActiveProducer {
            producer_id: *id,
            epoch: one.epoch,
            last_sequence: one.last_sequence(),
            last_timestamp: one.last_timestamp,
            coordinator_epoch: one.coordinator_epoch,
            txn_start_offset: one.txn_first_offset,
        };
        let mut active: Vec<_> = self.by_id.iter().map(show).collect();
        active.sort_by_key(|one| one.producer_id);
        active
    }

    /// What must stay of each producer when the log is compacted.
    pub(crate) fn last_records(&self) -> HashMap<i64, LastRecord> {
        let last = |(id, one): (&i64, &Producer)| {
            let last = LastRecord {
                data_offset: one.batches.last().map(|batch| batch.last_offset),
                epoch: one.epoch,
            };
            (*id, last)
        };
        self.by_id.iter().map(last).collect()
    }

    /// Forgets producers and verifications idle since `deadline`.
    pub(crate) fn expire(&mut self, deadline: i64) {
        self.by_id.retain(|_, one| !one.is_idle_since(deadline));
        self.verifications.retain(|_, one| one.timestamp > deadline);
    }

    /// Begins to verify that a transaction includes this partition; `None` when the producer has
    /// one open here, which needs no proof.
    pub(crate) fn begin_verification(
        &mut self,
        header: &Header,
        bumps_epoch: bool,
        now_ms: i64,
    ) -> Option<VerificationGuard> {
        let id = header.producer_id;
        if self.has_open_transaction(id, header.producer_epoch) {
            return None;
        }
        let guard = VerificationGuard(self.guards);
        let entry = self.verifications.entry(id).or_insert(Verification {
            guard,
            epoch: header.producer_epoch,
            lowest_sequence: header.base_sequence,
            bumps_epoch,
            timestamp: now_ms,
        });
        if entry.guard == guard {
            self.guards += 1;
        }
        if entry.epoch == header.producer_epoch {
            entry.lowest_sequence = entry.lowest_sequence.min(header.base_sequence);
        } else if entry.epoch < header.producer_epoch {
            entry.epoch = header.producer_epoch;
            entry.lowest_sequence = header.base_sequence;
        }
        entry.timestamp = now_ms;
        Some(entry.guard)
    }

    /// Whether `guard` is the proof that an open verification gave out.
    pub(crate) fn is_verified(&self, id: i64, guard: Option<VerificationGuard>) -> bool {
        let entry = self.verifications.get(&id);
        entry.is_some_and(|entry| Some(entry.guard) == guard)
    }

    /// Checks a batch of records. Kafka sends no words with these refusals.
    pub(crate) fn check(
        &self,
        header: &Header,
        origin: Origin,
        proof: Proof,
    ) -> Result<Verdict, ErrorCode> {
        if origin == Origin::Replication {
            return Ok(Verdict::Append);
        }
        let check = Check {
            header,
            known: self.by_id.get(&header.producer_id),
        };
        if origin == Origin::Client
            && let Some(batch) = check.duplicate()
        {
            return Ok(Verdict::Duplicate(batch));
        }
        check.epoch()?;
        if origin == Origin::Client {
            self.check_proof(header, proof)?;
            check.sequence(self.verifications.get(&header.producer_id))?;
        }
        check.transaction()?;
        Ok(Verdict::Append)
    }

    fn check_proof(&self, header: &Header, proof: Proof) -> Result<(), ErrorCode> {
        let (id, epoch) = (header.producer_id, header.producer_epoch);
        let proven = match proof {
            Proof::NotNeeded => true,
            Proof::Needed(guard) => {
                !header.is_transactional()
                    || self.has_open_transaction(id, epoch)
                    || self.is_verified(id, guard)
            }
        };
        proven.then_some(()).ok_or(ErrorCode::InvalidTxnState)
    }

    /// Checks a marker.
    pub(crate) fn check_marker(&self, header: &Header, marker: Marker) -> Result<(), ErrorCode> {
        let known = self.by_id.get(&header.producer_id);
        Check { header, known }.epoch()?;
        let fenced = known.is_some_and(|one| one.coordinator_epoch > marker.coordinator_epoch);
        if fenced {
            return Err(ErrorCode::TransactionCoordinatorFenced);
        }
        Ok(())
    }

    /// What [`Producers::apply_marker`] will say, before anything is written.
    pub(crate) fn completes(&self, header: &Header, marker: Marker) -> Option<CompletedTxn> {
        let producer = self.by_id.get(&header.producer_id)?;
        let first_offset = producer.txn_first_offset?;
        let others = self.open.keys().find(|first| **first != first_offset);
        let last_offset = header.base_offset;
        Some(CompletedTxn {
            producer_id: header.producer_id,
            first_offset,
            last_offset,
            committed: marker.committed,
            last_stable_offset: others.copied().unwrap_or(last_offset + 1),
        })
    }

    /// Takes over a batch of records that is in the log.
    pub(crate) fn apply(&mut self, header: &Header) {
        if !header.has_producer_id() {
            return;
        }
        let (id, epoch) = (header.producer_id, header.producer_epoch);
        let producer = self.by_id.entry(id).or_insert_with(|| Producer::new(epoch));
        producer.take_epoch(epoch);
        if producer.batches.len() == WINDOW {
            producer.batches.remove(0);
        }
        producer.batches.push(ProducerBatch {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            first_offset: header.base_offset,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
        });
        producer.last_timestamp = header.max_timestamp;
        if header.is_transactional() && producer.txn_first_offset.is_none() {
            producer.txn_first_offset = Some(header.base_offset);
            self.open.insert(header.base_offset, id);
        }
        if header.is_transactional() {
            self.verifications.remove(&id);
        }
    }

    /// Takes over a marker that is in the log; a transaction without records here leaves no
    /// trace but its producer's epoch.
    pub(crate) fn apply_marker(&mut self, header: &Header, marker: Marker) -> Option<CompletedTxn> {
        let completed = self.completes(header, marker);
        let (id, epoch) = (header.producer_id, header.producer_epoch);
        let producer = self.by_id.entry(id).or_insert_with(|| Producer::new(epoch));
        producer.take_epoch(epoch);
        producer.coordinator_epoch = marker.coordinator_epoch;
        producer.last_timestamp = header.max_timestamp;
        if let Some(first_offset) = producer.txn_first_offset.take() {
            self.open.remove(&first_offset);
        }
        self.verifications.remove(&id);
        completed
    }
}

/// One batch against what is known of its producer.
struct Check<'a> {
    header: &'a Header,
    known: Option<&'a Producer>,
}

impl Check<'_> {
    fn duplicate(&self) -> Option<ProducerBatch> {
        let known = self.known?;
        if known.epoch != self.header.producer_epoch {
            return None;
        }
        let sequences = (self.header.base_sequence, self.header.last_sequence());
        let same =
            |batch: &&ProducerBatch| (batch.first_sequence, batch.last_sequence) == sequences;
        known.batches.iter().find(same).copied()
    }

    fn epoch(&self) -> Result<(), ErrorCode> {
        match self.known {
            Some(known) if self.header.producer_epoch < known.epoch => {
                Err(ErrorCode::InvalidProducerEpoch)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn sequence(&self, verification: Option<&Verification>) -> Result<(), ErrorCode> {
        let first = self.header.base_sequence;
        let fresh = self.known.is_none_or(|known| known.batches.is_empty());
        // A client that bumps its epoch with each transaction begins each at 0.
        let unexpected = verification.is_some_and(|verification| {
            (verification.bumps_epoch && first != 0 && fresh)
                || first > verification.lowest_sequence
        });
        if unexpected || !self.continues() {
            return Err(ErrorCode::OutOfOrderSequenceNumber);
        }
        Ok(())
    }

    fn continues(&self) -> bool {
        let first = self.header.base_sequence;
        match self.known {
            None => true,
            Some(known) if known.epoch == NO_EPOCH => true,
            Some(known) if known.epoch != self.header.producer_epoch => first == 0,
            Some(known) => is_next(known.last_sequence(), first),
        }
    }

    fn transaction(&self) -> Result<(), ErrorCode> {
        let open = self.known.is_some_and(|one| one.txn_first_offset.is_some());
        if open && !self.header.is_transactional() {
            return Err(ErrorCode::InvalidTxnState);
        }
        Ok(())
    }
}

fn is_next(last: i32, first: i32) -> bool {
    match last.checked_add(1) {
        Some(next) => first == next,
        None => first == 0,
    }
}

fn from_stored(stored: StoredProducer) -> Producer {
    let mut producer = Producer::new(stored.epoch);
    producer.last_timestamp = stored.timestamp;
    producer.coordinator_epoch = stored.coordinator_epoch;
    producer.txn_first_offset = (stored.txn_first_offset >= 0).then_some(stored.txn_first_offset);
    if stored.last_offset >= 0 {
        let first_sequence = match stored.last_sequence.checked_sub(stored.offset_delta) {
            Some(first) if first >= 0 || stored.last_sequence < 0 => first,
            // The batch crossed the largest sequence.
            Some(first) => first.wrapping_add(i32::MAX).wrapping_add(1),
            None => NO_SEQUENCE,
        };
        producer.batches.push(ProducerBatch {
            first_sequence,
            last_sequence: stored.last_sequence,
            first_offset: stored
                .last_offset
                .saturating_sub(stored.offset_delta.into()),
            last_offset: stored.last_offset,
            timestamp: stored.timestamp,
        });
    }
    producer
}

fn to_stored(producer_id: i64, producer: &Producer) -> StoredProducer {
    let last = producer.batches.last();
    StoredProducer {
        producer_id,
        epoch: producer.epoch,
        last_sequence: producer.last_sequence(),
        last_offset: last.map_or(-1, |batch| batch.last_offset),
        offset_delta: last.map_or(0, |batch| {
            i32::try_from(batch.last_offset - batch.first_offset).unwrap_or(0)
        }),
        timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        txn_first_offset: producer.txn_first_offset.unwrap_or(-1),
    }
}

#[cfg(test)]
#[path = "producers_test.rs"]
mod tests;
