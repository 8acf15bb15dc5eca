//! The controller's journal: an append goes whole into one batch of the metadata log, which is one
//! Raft entry.
//!
//! openraft 0.9 waits for the disk entry by entry. So while one entry is on its way, appends
//! gather here and go together into the next: many callers share a sync, one caller waits for
//! none.
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
use openraft::raft::ClientWriteResult;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::machine::journal::{Committed, Journal, Lost};
use crate::metadata::record::Record;
use crate::os::clock;
use crate::os::tasks::Tasks;
use crate::protocol::records::build::BatchBuilder;

use super::entry::{Fate, Proposal, Types};

/// Bytes after which no further append joins a batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES).
const BATCH_BYTES: usize = 8 << 20;

/// Where the leadership of this node appends, and what waits to be proposed.
#[derive(Debug, Default)]
pub(super) struct Tail {
    state: Mutex<Option<State>>,
    queued: Notify,
}

#[derive(Debug)]
struct State {
    epoch: i32,
    /// The offset that the next append gets.
    end: i64,
    /// The offset of the first record that was not proposed yet.
    proposed: i64,
    queue: Vec<Append>,
}

/// What one caller wants written; dropping it tells him that it is lost.
#[derive(Debug)]
struct Append {
    values: Vec<Vec<u8>>,
    now_ms: i64,
    done: oneshot::Sender<()>,
}

/// A batch on its way through openraft.
struct Sent {
    answer: oneshot::Receiver<ClientWriteResult<Types>>,
    fate: Fate,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Tail {
    /// Lets nobody append until the next [`Tail::begin`]; what was not proposed is lost.
    pub(super) fn end(&self) {
        *self.state.lock() = None;
    }

    /// A leadership begins to append at `offset`.
    pub(super) fn begin(&self, epoch: i32, offset: i64) {
        *self.state.lock() = Some(State {
            epoch,
            end: offset,
            proposed: offset,
            queue: Vec::new(),
        });
    }

    /// Where the leadership of `epoch` appends next.
    fn end_of(&self, epoch: i32) -> Option<i64> {
        let state = self.state.lock();
        state
            .as_ref()
            .filter(|state| state.epoch == epoch)
            .map(|state| state.end)
    }

    /// Queues an append; says where the next one goes.
    fn push(&self, epoch: i32, append: Append) -> Result<i64, Lost> {
        let mut state = self.state.lock();
        let state = state.as_mut().filter(|state| state.epoch == epoch);
        let state = state.ok_or(Lost)?;
        state.end += i64::try_from(append.values.len()).map_err(|_| Lost)?;
        state.queue.push(append);
        self.queued.notify_one();
        Ok(state.end)
    }

    /// Proposes what waits, as one batch. Done under the lock, so that whoever ends this
    /// leadership knows that nothing of it is proposed later.
    fn propose(&self, raft: &Raft<Types>) -> Option<Sent> {
        let mut state = self.state.lock();
        let (proposal, waiting) = state.as_mut()?.gather()?;
        let fate = proposal.fate.clone();
        // Handing over puts the proposal into a channel and waits for nothing.
        match raft.client_write_ff(proposal).now_or_never() {
            Some(Ok(answer)) => Some(Sent {
                answer,
                fate,
                waiting,
            }),
            Some(Err(_)) | None => {
                *state = None;
                None
            }
        }
    }
}

impl State {
    /// Takes as many whole appends as one batch may hold.
    fn gather(&mut self) -> Option<(Proposal, Vec<oneshot::Sender<()>>)> {
        let mut batch = BatchBuilder::new(0);
        let mut taken = 0;
        while let Some(append) = self.queue.get(taken)
            && (taken == 0 || batch.size() < BATCH_BYTES)
        {
            for value in &append.values {
                batch.append(append.now_ms, None, Some(value), &[]);
            }
            taken += 1;
        }
        if taken == 0 {
            return None;
        }
        let base = self.proposed;
        self.proposed += i64::from(batch.records_count());
        let waiting = self.queue.drain(..taken).map(|append| append.done);
        let proposal = Proposal {
            epoch: self.epoch,
            base,
            batch: batch.build().expect("nothing is compressed"),
            fate: Fate::default(),
        };
        Some((proposal, waiting.collect()))
    }
}

/// Proposes what is appended, one batch after the other, until told to stop.
pub(super) async fn pump(raft: Raft<Types>, tail: Arc<Tail>, tasks: Tasks) {
    loop {
        tokio::select! {
            biased;
            () = tasks.stopped() => return,
            () = tail.queued.notified() => {}
        }
        while let Some(sent) = tail.propose(&raft) {
            if matches!(sent.answer.await, Ok(Ok(_))) && !sent.fate.is_refused() {
                for done in sent.waiting {
                    // A caller may have gone.
                    let _ = done.send(());
                }
            } else {
                tail.end();
            }
        }
    }
}

/// Appends for one leadership.
pub(crate) struct QuorumJournal {
    tail: Arc<Tail>,
    epoch: i32,
    end_offset: i64,
}

impl QuorumJournal {
    pub(super) fn new(tail: Arc<Tail>, epoch: i32) -> Option<Self> {
        let end_offset = tail.end_of(epoch)?;
        Some(Self {
            tail,
            epoch,
            end_offset,
        })
    }

    fn push(&mut self, records: &[Record]) -> Result<Committed, Lost> {
        let (done, committed) = oneshot::channel();
        if records.is_empty() {
            return Ok(Box::pin(ready(Ok(()))));
        }
        let append = Append {
            values: records.iter().map(Record::encode).collect(),
            now_ms: clock::wall_ms(),
            done,
        };
        self.end_offset = self.tail.push(self.epoch, append)?;
        Ok(Box::pin(async move { committed.await.map_err(|_| Lost) }))
    }
}

impl Journal for QuorumJournal {
    type Record = Record;

    fn end_offset(&self) -> i64 {
        self.end_offset
    }

    fn append_now(&mut self, records: &[Record]) -> Option<Result<Committed, Lost>> {
        Some(self.push(records))
    }

    fn append(
        &mut self,
        records: &[Record],
    ) -> impl Future<Output = Result<Committed, Lost>> + Send {
        ready(self.push(records))
    }
}
