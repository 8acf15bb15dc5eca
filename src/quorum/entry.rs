//! An entry of the Raft log is a log id and a batch of Kafka's format; the types that openraft is
//! told to use.
//!
//! The index of an entry is the ordinal of its batch, its term the leader epoch. On the leader an
//! entry comes without bytes, or with a batch that has no offset and no epoch yet; the store
//! finishes it while appending. Replication and replay read finished batches.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use openraft::entry::{FromAppData, RaftEntry, RaftPayload};
use openraft::impls::OneshotResponder;
use openraft::{CommittedLeaderId, LogId, Membership, RaftLogId, RaftTypeConfig, TokioRuntime};

use crate::base::{NodeId, Uuid};
use crate::protocol::records::control::VoterEndpoint;

use super::snapshot::SnapshotFile;

/// The types of this Raft.
#[derive(Debug, Clone, Copy, Default, Eq, PartialEq, Ord, PartialOrd)]
pub(super) struct Types;

impl RaftTypeConfig for Types {
    type D = Proposal;
    type R = ();
    type NodeId = i32;
    type Node = Member;
    type Entry = Entry;
    type SnapshotData = SnapshotFile;
    type AsyncRuntime = TokioRuntime;
    type Responder = OneshotResponder<Self>;
}

pub(super) type Members = Membership<i32, Member>;
pub(super) type RaftLog = LogId<i32>;
pub(super) type StorageError = openraft::StorageError<i32>;

/// What the quorum knows of a voter: its directory and where it listens (KIP-853).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Member {
    pub(super) directory: Uuid,
    pub(super) endpoints: Vec<VoterEndpoint>,
}

/// A batch that the leader of `epoch` wants at offset `base`.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) epoch: i32,
    pub(super) base: i64,
    pub(super) batch: Vec<u8>,
    pub(super) fate: Fate,
}

/// Tells the proposer that another batch was written in the place of his: it was proposed by an
/// earlier leadership of this node and knows nothing of what came between.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate(Arc<AtomicBool>);

impl Fate {
    pub(super) fn refuse(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// An entry, finished or not.
pub(super) struct Entry {
    pub(super) id: RaftLog,
    pub(super) content: Content,
}

/// What an entry holds.
#[derive(Debug)]
pub(super) enum Content {
    /// A leader begins; its batch is made while appending.
    Blank,
    /// Who votes from here on; its batch is made while appending.
    Membership(Members),
    /// A batch to be written at the end.
    Proposed(Proposal),
    /// A batch as it stands in the log, and the voters that it names.
    Stored(Bytes, Option<Members>),
}

impl RaftLogId<i32> for Entry {
    fn get_log_id(&self) -> &RaftLog {
        &self.id
    }

    fn set_log_id(&mut self, id: &RaftLog) {
        self.id = *id;
    }
}

impl RaftPayload<i32, Member> for Entry {
    fn is_blank(&self) -> bool {
        matches!(self.content, Content::Blank)
    }

    fn get_membership(&self) -> Option<&Members> {
        match &self.content {
            Content::Membership(members) | Content::Stored(_, Some(members)) => Some(members),
            Content::Blank | Content::Proposed(_) | Content::Stored(_, None) => None,
        }
    }
}

impl RaftEntry<i32, Member> for Entry {
    fn new_blank(id: RaftLog) -> Self {
        let content = Content::Blank;
        Self { id, content }
    }

    fn new_membership(id: RaftLog, members: Members) -> Self {
        let content = Content::Membership(members);
        Self { id, content }
    }
}

impl FromAppData<Proposal> for Entry {
    fn from_app_data(proposal: Proposal) -> Self {
        Self {
            id: RaftLog::default(),
            content: Content::Proposed(proposal),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.content {
            Content::Blank => "leader",
            Content::Membership(_) => "voters",
            Content::Proposed(_) => "proposal",
            Content::Stored(_, _) => "batch",
        };
        write!(f, "{} {what}", self.id)
    }
}

/// The log id of a batch.
pub(super) fn log_id(epoch: i32, index: u64) -> RaftLog {
    RaftLog::new(CommittedLeaderId::new(term_of(epoch), 0), index)
}

/// The term of a leader epoch; epochs below zero mean none.
pub(super) fn term_of(epoch: i32) -> u64 {
    u64::from(epoch.max(0).cast_unsigned())
}

/// The leader epoch of a term.
pub(super) fn epoch_of(term: u64) -> i32 {
    i32::try_from(term).expect("terms begin as epochs and grow by one an election")
}

/// The voters of a fixed configuration.
pub(super) fn fixed_members(voters: &[NodeId]) -> Members {
    let ids = voters.iter().map(|id| id.0).collect();
    Members::new(vec![ids], ())
}
