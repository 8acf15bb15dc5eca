//! The messages between voters, in a form of our own.
//!
//! Each log id carries the offset where its batch ends. Voters count batches alike only as long as
//! their anchors agree; where they do not, the offsets differ, and the message is refused before
//! openraft can match an entry with another one.

use bytes::Bytes;
use openraft::Vote;
use openraft::raft::{AppendEntriesResponse, VoteResponse};

use crate::base::NodeId;
use crate::protocol::codec::{self, Field, Malformed, message};

use super::entry::{RaftLog, log_id, term_of};
use super::log::MetadataLog;
use super::side::Election;
use super::store::election_of;

const NONE: i32 = -1;

message! {
    /// A vote: of whom, in which epoch, and whether it was won.
    pub(super) struct Ballot {
        epoch: i32,
        leader: i32 = -1,
        voted: i32 = -1,
    }
}

message! {
    /// A log id and the offset where its batch ends; index -1 means none.
    pub(super) struct Point {
        index: i64 = -1,
        epoch: i32 = -1,
        end_offset: i64 = -1,
    }
}

message! {
    /// A leader's batches, or none for a heartbeat.
    pub(super) struct Append {
        cluster_id: String,
        ballot: Ballot,
        before: Point,
        committed: Point,
        batches: Bytes,
    }
}

message! {
    /// A candidate asks for a vote.
    pub(super) struct AskVote {
        cluster_id: String,
        ballot: Ballot,
        last: Point,
    }
}

message! {
    /// A snapshot in place of a log that is no longer there.
    pub(super) struct Install {
        cluster_id: String,
        ballot: Ballot,
        last: Point,
        file: Bytes,
    }
}

message! {
    /// What became of an [`Append`]: 0 all taken, 1 taken up to `matched`, 2 the batch before is
    /// not there, 3 the ballot is higher here.
    pub(super) struct Appended {
        outcome: i8,
        matched: Point,
        ballot: Ballot,
    }
}

message! {
    /// Whether the vote was given.
    pub(super) struct Voted {
        ballot: Ballot,
        granted: bool,
        last: Point,
    }
}

/// A message with what tells its kind.
pub(super) enum Request {
    Append(Append),
    AskVote(AskVote),
    Install(Install),
}

impl Request {
    pub(super) fn encode(&self) -> Bytes {
        match self {
            Self::Append(message) => tagged(0, message),
            Self::AskVote(message) => tagged(1, message),
            Self::Install(message) => tagged(2, message),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (kind, body) = bytes.split_first().ok_or(Malformed::Short)?;
        match kind {
            0 => codec::decode(body, 0, true).map(Self::Append),
            1 => codec::decode(body, 0, true).map(Self::AskVote),
            2 => codec::decode(body, 0, true).map(Self::Install),
            _ => Err(Malformed::Unknown),
        }
    }

    /// The cluster that the sender belongs to.
    pub(super) fn cluster_id(&self) -> &str {
        match self {
            Self::Append(message) => &message.cluster_id,
            Self::AskVote(message) => &message.cluster_id,
            Self::Install(message) => &message.cluster_id,
        }
    }

    /// The places in the log that sender and receiver must agree on.
    pub(super) fn points(&self) -> Vec<&Point> {
        match self {
            Self::Append(message) => vec![&message.before, &message.committed],
            Self::AskVote(message) => vec![&message.last],
            Self::Install(message) => vec![&message.last],
        }
    }
}

fn tagged(kind: u8, message: &impl Field) -> Bytes {
    let mut out = vec![kind];
    codec::encode(message, 0, true, &mut out);
    out.into()
}

/// An answer's bytes.
pub(super) fn encode(answer: &impl Field) -> Bytes {
    let mut out = Vec::new();
    codec::encode(answer, 0, true, &mut out);
    out.into()
}

/// Reads an answer.
pub(super) fn decode<T: Field>(bytes: &[u8]) -> Result<T, Malformed> {
    codec::decode(bytes, 0, true)
}

impl From<&Vote<i32>> for Ballot {
    fn from(vote: &Vote<i32>) -> Self {
        let Election {
            epoch,
            leader,
            voted,
        } = election_of(vote);
        let wire = |id: Option<NodeId>| id.map_or(NONE, |id| id.0);
        Self {
            epoch,
            leader: wire(leader),
            voted: wire(voted),
        }
    }
}

impl Ballot {
    pub(super) fn vote(&self) -> Vote<i32> {
        let of = |id: i32| (id >= 0).then_some(id);
        Vote {
            leader_id: openraft::LeaderId {
                term: term_of(self.epoch),
                voted_for: of(self.leader).or_else(|| of(self.voted)),
            },
            committed: self.leader >= 0,
        }
    }
}

impl Point {
    pub(super) fn new(id: Option<RaftLog>, log: &MetadataLog) -> Self {
        let Some(id) = id else {
            return Self::default();
        };
        Self {
            index: i64::try_from(id.index).unwrap_or(i64::MAX),
            epoch: super::entry::epoch_of(id.leader_id.term),
            end_offset: log.end_of(id.index).unwrap_or(-1),
        }
    }

    pub(super) fn id(&self) -> Option<RaftLog> {
        let index = u64::try_from(self.index).ok()?;
        Some(log_id(self.epoch, index))
    }

    /// Whether this log, where it holds the batch too, has it end at the same offset.
    pub(super) fn agrees_with(&self, log: &MetadataLog) -> bool {
        let Some(id) = self.id() else { return true };
        let ours = log.end_of(id.index);
        let same_batch = match log.place(id.index) {
            Some(place) => place.epoch == self.epoch,
            None => true,
        };
        match ours {
            Some(ours) if same_batch && self.end_offset >= 0 => ours == self.end_offset,
            Some(_) | None => true,
        }
    }
}

impl Appended {
    pub(super) fn new(answer: &AppendEntriesResponse<i32>, log: &MetadataLog) -> Self {
        let mut out = Self::default();
        match answer {
            AppendEntriesResponse::Success => {}
            AppendEntriesResponse::PartialSuccess(matched) => {
                out.outcome = 1;
                out.matched = Point::new(*matched, log);
            }
            AppendEntriesResponse::Conflict => out.outcome = 2,
            AppendEntriesResponse::HigherVote(vote) => {
                out.outcome = 3;
                out.ballot = vote.into();
            }
        }
        out
    }

    pub(super) fn answer(&self) -> AppendEntriesResponse<i32> {
        match self.outcome {
            0 => AppendEntriesResponse::Success,
            1 => AppendEntriesResponse::PartialSuccess(self.matched.id()),
            2 => AppendEntriesResponse::Conflict,
            _ => AppendEntriesResponse::HigherVote(self.ballot.vote()),
        }
    }
}

impl Voted {
    pub(super) fn new(answer: &VoteResponse<i32>, log: &MetadataLog) -> Self {
        Self {
            ballot: (&answer.vote).into(),
            granted: answer.vote_granted,
            last: Point::new(answer.last_log_id, log),
        }
    }

    pub(super) fn answer(&self) -> VoteResponse<i32> {
        VoteResponse {
            vote: self.ballot.vote(),
            vote_granted: self.granted,
            last_log_id: self.last.id(),
        }
    }
}
