//! What the coordinator of groups may be asked, and its replies; the layer above translates to
//! messages.

use std::sync::Arc;

use bytes::Bytes;

use super::GroupMachine;
use super::consumer_ask::{
    ConsumerBeat, ConsumerHeartbeat, DescribeConsumerGroups, DescribedConsumerGroup, TakeResolved,
};
use super::offsets::Producer;
use crate::base::TopicId;
use crate::machine::ask::asks;
use crate::protocol::error::{ErrorCode, Refusal};

asks! {
    GroupMachine;
    JoinGroup -> Joined;
    SyncGroup -> Result<Synced, ErrorCode>;
    Heartbeat -> Result<(), ErrorCode>;
    LeaveGroup -> Vec<Result<(), ErrorCode>>;
    CommitOffsets -> Result<PerPartition<Result<(), ErrorCode>>, ErrorCode>;
    FetchOffsets -> Result<Vec<FetchedTopic>, ErrorCode>;
    DeleteOffsets -> Result<PerPartition<Result<(), ErrorCode>>, ErrorCode>;
    ListGroups -> Vec<ListedGroup>;
    DescribeGroups -> Vec<Result<DescribedGroup, Refusal>>;
    DeleteGroups -> Vec<Result<(), ErrorCode>>;
    ForgetTopics -> ();
    ConsumerHeartbeat -> Result<ConsumerBeat, Refusal>;
    DescribeConsumerGroups -> Vec<Result<DescribedConsumerGroup, Refusal>>;
    TakeResolved -> ();
}

/// Something for each partition of each topic, in the order asked.
pub(crate) type PerPartition<T> = Vec<Vec<T>>;

/// Who speaks for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: Arc<str>,
    /// Its address as Java prints it: `/127.0.0.1`.
    pub(crate) host: Arc<str>,
}

/// A member of the classic protocol joins, or joins again (JoinGroup).
#[derive(Clone, Debug)]
pub(crate) struct JoinGroup {
    pub(crate) group: Arc<str>,
    /// Empty for a member that is new.
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) client: Client,
    pub(crate) session_timeout_ms: i32,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) protocol_type: Arc<str>,
    /// What the member can follow, the dearest first, each with its metadata.
    pub(crate) protocols: Vec<(Arc<str>, Bytes)>,
    /// A new member is to come back with the id that it is given (KIP-394).
    pub(crate) needs_member_id: bool,
    /// A leader can be told to keep the assignment as it is (KIP-814).
    pub(crate) may_skip_assignment: bool,
}

/// The answer to a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) error: ErrorCode,
    pub(crate) member: Arc<str>,
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<Arc<str>>,
    pub(crate) protocol: Option<Arc<str>>,
    pub(crate) leader: Arc<str>,
    pub(crate) skip_assignment: bool,
    /// Told to the leader alone.
    pub(crate) members: Vec<JoinedMember>,
}

impl Joined {
    /// A refusal; most name the member that was refused.
    pub(crate) fn refused(error: ErrorCode, member: Arc<str>) -> Self {
        Self {
            error,
            member,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: Arc::from(""),
            skip_assignment: false,
            members: Vec::new(),
        }
    }
}

/// A member as the leader is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinedMember {
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
    /// Its metadata of the protocol that was chosen.
    pub(crate) metadata: Bytes,
}

/// A member asks for its assignment; the leader brings those of all (SyncGroup).
#[derive(Clone, Debug)]
pub(crate) struct SyncGroup {
    pub(crate) group: Arc<str>,
    pub(crate) generation: i32,
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) protocol_type: Option<Arc<str>>,
    pub(crate) protocol: Option<Arc<str>>,
    pub(crate) assignments: Vec<(Arc<str>, Bytes)>,
}

/// A member's assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) protocol_type: Option<Arc<str>>,
    pub(crate) protocol: Option<Arc<str>>,
    pub(crate) assignment: Bytes,
}

/// A member of the classic protocol is alive (Heartbeat).
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) group: Arc<str>,
    pub(crate) generation: i32,
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
}

/// Members leave (LeaveGroup).
#[derive(Clone, Debug)]
pub(crate) struct LeaveGroup {
    pub(crate) group: Arc<str>,
    pub(crate) members: Vec<LeavingMember>,
}

/// A member that leaves; without an id it is removed by its instance (KIP-345).
#[derive(Clone, Debug)]
pub(crate) struct LeavingMember {
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
}

/// Offsets are committed (OffsetCommit, TxnOffsetCommit).
#[derive(Clone, Debug)]
pub(crate) struct CommitOffsets {
    pub(crate) group: Arc<str>,
    /// The generation of a classic group, the member's epoch of another; negative outside a group.
    pub(crate) generation: i32,
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
    /// How long these offsets are kept, when the request says.
    pub(crate) retention_ms: Option<i64>,
    /// The request knows member epochs (OffsetCommit v9, KIP-848).
    pub(crate) knows_epochs: bool,
    /// Whose transaction they are part of.
    pub(crate) producer: Option<Producer>,
    pub(crate) topics: Vec<CommittedTopic>,
}

/// Offsets of one topic.
#[derive(Clone, Debug)]
pub(crate) struct CommittedTopic {
    pub(crate) name: Arc<str>,
    pub(crate) id: TopicId,
    pub(crate) partitions: Vec<CommittedPartition>,
}

/// An offset to commit.
#[derive(Clone, Debug)]
pub(crate) struct CommittedPartition {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Arc<str>,
}

/// Committed offsets are asked for (OffsetFetch).
#[derive(Clone, Debug)]
pub(crate) struct FetchOffsets {
    pub(crate) group: Arc<str>,
    /// `None` asks without being a member.
    pub(crate) member: Option<Arc<str>>,
    pub(crate) epoch: i32,
    /// `None` asks for all.
    pub(crate) topics: Option<Vec<WantedTopic>>,
    /// Offsets that a transaction may still change are refused.
    pub(crate) require_stable: bool,
}

/// Partitions of a topic whose offsets are asked for.
#[derive(Clone, Debug)]
pub(crate) struct WantedTopic {
    pub(crate) name: Arc<str>,
    /// The topic as it is now; zero when nobody knows it.
    pub(crate) id: TopicId,
    pub(crate) partitions: Vec<i32>,
}

/// The offsets of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchedTopic {
    pub(crate) name: Arc<str>,
    pub(crate) partitions: Vec<(i32, Result<FetchedOffset, ErrorCode>)>,
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchedOffset {
    /// -1 when nothing is committed.
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Arc<str>,
}

impl FetchedOffset {
    /// What is told of a partition without a commit.
    pub(crate) fn none() -> Self {
        Self {
            offset: -1,
            leader_epoch: -1,
            metadata: Arc::from(""),
        }
    }
}

/// Committed offsets are to be forgotten (OffsetDelete).
#[derive(Clone, Debug)]
pub(crate) struct DeleteOffsets {
    pub(crate) group: Arc<str>,
    pub(crate) topics: Vec<(Arc<str>, Vec<i32>)>,
}

/// The groups of this shard are asked for (ListGroups); an empty filter lets all pass.
#[derive(Clone, Debug)]
pub(crate) struct ListGroups {
    /// In lower case.
    pub(crate) states: Vec<String>,
    /// In lower case.
    pub(crate) types: Vec<String>,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedGroup {
    pub(crate) group: Arc<str>,
    pub(crate) protocol_type: Arc<str>,
    pub(crate) state: &'static str,
    pub(crate) kind: &'static str,
}

/// Classic groups are asked for in full (DescribeGroups).
#[derive(Clone, Debug)]
pub(crate) struct DescribeGroups {
    pub(crate) groups: Vec<Arc<str>>,
}

/// A classic group in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedGroup {
    pub(crate) state: &'static str,
    pub(crate) protocol_type: Arc<str>,
    /// The protocol's name; empty unless the group is stable.
    pub(crate) protocol: Arc<str>,
    pub(crate) members: Vec<DescribedMember>,
}

/// A member of a classic group in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedMember {
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) client: Client,
    pub(crate) metadata: Bytes,
    pub(crate) assignment: Bytes,
}

/// Groups without members are to be forgotten with their offsets (DeleteGroups).
#[derive(Clone, Debug)]
pub(crate) struct DeleteGroups {
    pub(crate) groups: Vec<Arc<str>>,
}

/// Topics are gone; so are their offsets.
#[derive(Clone, Debug)]
pub(crate) struct ForgetTopics {
    pub(crate) topics: Vec<(Arc<str>, TopicId)>,
}
