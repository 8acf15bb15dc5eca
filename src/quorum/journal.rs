//! The controller's journal: one append is one batch of the metadata log is one Raft entry.
//!
//! Offsets are given before the batch is written (a broker's epoch is the offset of its own
//! registration), so all appends of a leadership go through one lock, and the store writes a batch
//! only in the leadership and at the offset that it was made for.
//!
//! Kafka's controller also writes a NoOpRecord every metadata.max.idle.interval.ms (500), to let
//! observers see that the committed offset moves. Here an observer is told the committed offset
//! with each answer, and a node that nobody uses should write nothing; so no such records are
//! made, and the option is accepted without effect.

use std::future::ready;
use std::sync::Arc;

use futures_util::FutureExt;
use openraft::Raft;
use parking_lot::Mutex;

use crate::machine::journal::{Committed, Journal, Lost};
use crate::metadata::record::Record;
use crate::os::clock;

use super::control;
use super::entry::{Fate, Proposal, Types};

/// Where the next batch of a leadership goes; nothing when this node does not lead.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<Option<Next>>);

#[derive(Clone, Copy, Debug)]
struct Next {
    epoch: i32,
    offset: i64,
}

impl Tail {
    /// Lets nobody append until the next [`Tail::begin`].
    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }

    /// A leadership begins to append at `offset`.
    pub(super) fn begin(&self, epoch: i32, offset: i64) {
        *self.0.lock() = Some(Next { epoch, offset });
    }

    /// Where the leadership of `epoch` appends next.
    pub(super) fn next_of(&self, epoch: i32) -> Option<i64> {
        let next = *self.0.lock();
        next.filter(|next| next.epoch == epoch)
            .map(|next| next.offset)
    }
}

/// Appends for one leadership.
pub(crate) struct QuorumJournal {
    raft: Raft<Types>,
    tail: Arc<Tail>,
    epoch: i32,
    end_offset: i64,
}

impl QuorumJournal {
    pub(super) fn new(raft: Raft<Types>, tail: Arc<Tail>, epoch: i32) -> Option<Self> {
        let end_offset = tail.next_of(epoch)?;
        Some(Self {
            raft,
            tail,
            epoch,
            end_offset,
        })
    }

    fn propose(&mut self, records: &[Record]) -> Result<Committed, Lost> {
        let count = i64::try_from(records.len()).map_err(|_| Lost)?;
        let batch = control::data_batch(records, clock::wall_ms());
        let mut tail = self.tail.0.lock();
        let next = tail.as_mut().filter(|next| next.epoch == self.epoch);
        let next = next.ok_or(Lost)?;
        let fate = Fate::default();
        let proposal = Proposal {
            epoch: self.epoch,
            base: next.offset,
            batch,
            fate: fate.clone(),
        };
        // Handing over puts the proposal into a channel and waits for nothing.
        let handed = self.raft.client_write_ff(proposal).now_or_never();
        let Some(Ok(answer)) = handed else {
            *tail = None;
            return Err(Lost);
        };
        next.offset += count;
        self.end_offset = next.offset;
        Ok(Box::pin(async move {
            match answer.await {
                Ok(Ok(_)) if !fate.is_refused() => Ok(()),
                Ok(_) | Err(_) => Err(Lost),
            }
        }))
    }
}

impl Journal for QuorumJournal {
    type Record = Record;

    fn end_offset(&self) -> i64 {
        self.end_offset
    }

    fn append(
        &mut self,
        records: &[Record],
    ) -> impl Future<Output = Result<Committed, Lost>> + Send {
        ready(self.propose(records))
    }
}
