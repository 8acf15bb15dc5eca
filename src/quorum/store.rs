//! The log and the vote as openraft wants them.
//!
//! - What `append` took is readable when it returns; its callback comes from the flusher.
//! - `save_vote` makes the log durable, then the vote, before it returns.
//! - An own vote that was accepted is never read back as such: openraft would lead on in the same
//!   term without a leader change. The next election takes the next term.
//! - No error is passing: each ends the quorum and with it the node.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LeaderId, LogState, OptionalSend, RaftLogReader, Vote};

use crate::base::NodeId;
use crate::metadata::record::{NoOpRecord, Record};
use crate::os::clock;
use crate::protocol::records::batch::Batch;

use super::control;
use super::entry::{Content, Entry, Proposal, RaftLog, StorageError, Types, epoch_of, log_id};
use super::fault::{At, Fault};
use super::log::MetadataLog;
use super::shared::{Shared, is_alone};
use super::side::{Anchor, Election, QuorumState, Side};

/// Bytes of entries that one message to a voter holds at most, if they are more than one.
const REPLICATE_BYTES: usize = 1 << 20;

/// The handle that openraft works with.
#[derive(Clone, Debug)]
pub(super) struct Store {
    shared: Arc<Shared>,
    /// What the file said at the start, raised to the last batch's epoch.
    found: Election,
}

impl Store {
    pub(super) fn new(shared: Arc<Shared>, found: Election) -> Self {
        Self { shared, found }
    }

    fn read(&self, from: u64, until: u64, bytes_max: usize) -> Result<Vec<Entry>, Fault> {
        let log = self.shared.log.lock();
        let start = from.max(log.before_anchor().map_or(0, |(index, _)| index + 1));
        let batches = log.read(start, until, bytes_max)?;
        drop(log);
        let entries = (start..).zip(batches).map(|(index, (place, bytes))| {
            let members = Batch::parse(&bytes).ok();
            let members = members.and_then(|batch| control::members_in(&batch));
            Entry {
                id: log_id(place.epoch, index),
                content: Content::Stored(bytes, members),
            }
        });
        Ok(entries.collect())
    }

    fn write(&self, entries: impl Iterator<Item = Entry>) -> Result<(), Fault> {
        let mut log = self.shared.log.lock();
        for entry in entries {
            let bytes = self.finish(&log, entry);
            log.append(&bytes)?;
        }
        Ok(())
    }

    /// The bytes of an entry as they will stand in the log.
    fn finish(&self, log: &MetadataLog, entry: Entry) -> Vec<u8> {
        let epoch = epoch_of(entry.id.leader_id.term);
        let now_ms = clock::wall_ms();
        let mut batch = match entry.content {
            Content::Stored(bytes, _) => return bytes.into(),
            Content::Blank => control::leader_change(self.shared.node.0, log.members(), now_ms),
            Content::Membership(members) => {
                control::membership(&members, log.kraft_version(), now_ms)
            }
            Content::Proposed(proposal) => accept(proposal, epoch, log.end_offset(), now_ms),
        };
        control::place(&mut batch, log.end_offset(), epoch);
        batch
    }

    fn write_vote(&self, vote: &Vote<i32>) -> Result<(), Fault> {
        let log = self.shared.log.lock();
        let election = election_of(vote);
        let state = QuorumState {
            election,
            form: self.shared.form(log.kraft_version()),
        };
        if is_alone(&log, self.shared.node) {
            // Nobody else can be promised anything. The epoch is taken for good once the leader
            // change of it is durable, and `quorum-state` is never believed below the last batch;
            // so the file is written behind that batch, and nobody waits for it.
            *self.shared.late_vote.lock() = election.leader.map(|_| state);
            return Ok(());
        }
        let Shared { disk, dir, .. } = &*self.shared;
        log.sync()?;
        state.write(*disk, dir)
    }

    /// Lets the flusher write the vote of an only voter.
    fn write_late_vote(&self) {
        let Some(state) = self.shared.late_vote.lock().take() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        self.shared.flusher.run_later(Box::new(move || {
            if let Err(fault) = state.write(shared.disk, &shared.dir) {
                shared.report(fault);
            }
        }));
    }

    fn purge_until(&self, until: RaftLog) -> Result<(), Fault> {
        let mut log = self.shared.log.lock();
        let Shared { disk, dir, .. } = &*self.shared;
        if until.index < log.next_index() {
            let offset = log.end_of(until.index);
            let anchor = Anchor {
                index: until.index + 1,
                offset: offset.ok_or(Fault::Misplaced {
                    end: log.end_offset(),
                })?,
                epoch: epoch_of(until.leader_id.term),
            };
            let mut side = Side::read(*disk, dir)?;
            side.anchor = Some(anchor);
            side.write(*disk, dir)?;
            return log.purge(anchor);
        }
        // openraft purges before it hands over the snapshot that replaces the log.
        let Some((anchor, basis)) = self.shared.pending.lock().take() else {
            return Err(Fault::NoSnapshot {
                start: log.end_offset(),
            });
        };
        let mut side = Side {
            anchor: Some(anchor),
            pending: Some(anchor),
        };
        side.write(*disk, dir)?;
        log.reset(anchor, basis)?;
        side.pending = None;
        side.write(*disk, dir)
    }
}

/// The proposed batch, or a batch that says nothing in the place of one that came from an earlier
/// leadership of this node.
fn accept(proposal: Proposal, epoch: i32, end: i64, now_ms: i64) -> Vec<u8> {
    if proposal.epoch == epoch && proposal.base == end {
        return proposal.batch;
    }
    proposal.fate.refuse();
    control::data_batch(&[Record::NoOp(NoOpRecord::default())], now_ms)
}

impl RaftLogReader<Types> for Store {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let until = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(until) => *until,
            Bound::Unbounded => u64::MAX,
        };
        self.read(from, until, usize::MAX)
            .map_err(|fault| self.shared.fail(fault))
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        self.read(start, end, REPLICATE_BYTES)
            .map_err(|fault| self.shared.fail(fault))
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let log = self.shared.log.lock();
        let id = |(index, epoch)| log_id(epoch, index);
        Ok(LogState {
            last_purged_log_id: log.before_anchor().map(id),
            last_log_id: log.newest().map(id),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<i32>) -> Result<(), StorageError> {
        self.write_vote(vote)
            .map_err(|fault| self.shared.fail(fault))
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<i32>>, StorageError> {
        Ok(Some(vote_of(self.found, self.shared.node)))
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.write(entries.into_iter())
            .map_err(|fault| self.shared.fail(fault))?;
        let file = self.shared.log.lock().newest_file();
        let shared = Arc::clone(&self.shared);
        let done = Box::new(move |result: std::io::Result<()>| {
            if let Err(error) = &result {
                let error = std::io::Error::new(error.kind(), error.to_string());
                let synced: Result<(), Fault> = Err(error).at("sync", &shared.dir);
                synced.unwrap_or_else(|fault| shared.report(fault));
            }
            callback.log_io_completed(result);
        });
        self.shared.flusher.submit(file, done);
        self.write_late_vote();
        Ok(())
    }

    async fn truncate(&mut self, from: RaftLog) -> Result<(), StorageError> {
        let cut = self.shared.log.lock().truncate(from.index);
        cut.map_err(|fault| self.shared.fail(fault))
    }

    async fn purge(&mut self, until: RaftLog) -> Result<(), StorageError> {
        self.purge_until(until)
            .map_err(|fault| self.shared.fail(fault))
    }
}

/// A committed vote is a leader that was accepted, another one a vote for a candidate.
pub(super) fn election_of(vote: &Vote<i32>) -> Election {
    let whom = vote.leader_id.voted_for.map(NodeId);
    Election {
        epoch: epoch_of(vote.leader_id.term),
        leader: whom.filter(|_| vote.committed),
        voted: whom.filter(|_| !vote.committed),
    }
}

/// The vote that an election means to a node that starts.
pub(super) fn vote_of(election: Election, node: NodeId) -> Vote<i32> {
    let leader_id = LeaderId {
        term: super::entry::term_of(election.epoch),
        voted_for: election.leader.or(election.voted).map(|id| id.0),
    };
    Vote {
        leader_id,
        committed: election.leader.is_some_and(|leader| leader != node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_is_an_election_and_back_but_own_leadership_is_not_restored() {
        for (node, committed) in [(2, true), (2, false)] {
            let mut vote = Vote::new(7, node);
            vote.committed = committed;
            assert_eq!(vote_of(election_of(&vote), NodeId(1)), vote);
        }
        let own = vote_of(election_of(&Vote::new_committed(7, 1)), NodeId(1));
        assert_eq!(own, Vote::new(7, 1));
        let none = Election {
            epoch: 7,
            ..Election::default()
        };
        let vote = vote_of(none, NodeId(1));
        assert_eq!((vote.leader_id.term, vote.leader_id.voted_for), (7, None));
    }
}
