//! What the controller may be asked, and its replies; the layer above translates to messages.

use super::Controller;
use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, ProducerId, TopicId, Uuid};
use crate::machine::ask::asks;
use crate::metadata::image::configs::{Options, Resource};
use crate::metadata::image::quotas::Entity;
use crate::metadata::record::{AccessControlEntryRecord, Endpoint, FeatureRange, Record};
use crate::protocol::error::{ErrorCode, Refusal};

/// A reply, unless the request is refused.
type Decided<T> = Result<T, Refusal>;

asks! {
    Controller;
    RegisterBroker -> Decided<BrokerEpoch>;
    Heartbeat -> Decided<HeartbeatReply>;
    UnregisterBroker -> Decided<()>;
    RegisterController -> Decided<()>;
    CreateTopics -> Decided<Vec<(String, Result<CreatedTopic, Refusal>)>>;
    DeleteTopics -> Decided<Vec<DeletedTopic>>;
    CreatePartitions -> Decided<Vec<(String, Result<(), Refusal>)>>;
    AllocateProducerIds -> Decided<ProducerIdBlock>;
    IncrementalAlterConfigs -> Decided<Vec<(Resource, Result<(), Refusal>)>>;
    AlterConfigs -> Decided<Vec<(Resource, Result<(), Refusal>)>>;
    UpdateFeatures -> Decided<()>;
    AlterPartition -> Decided<PerTopicId<Result<PartitionState, ErrorCode>>>;
    ElectLeaders -> Decided<PerTopic<Result<(), Refusal>>>;
    AlterReassignments -> Decided<PerTopic<Result<(), Refusal>>>;
    AssignReplicas -> Decided<Vec<(DirectoryId, PerTopicId<ErrorCode>)>>;
    CreateAcls -> Decided<()>;
    DeleteAcls -> Decided<()>;
    AlterQuotas -> Decided<Vec<(Entity, Result<(), Refusal>)>>;
    WriteRecords -> Decided<()>;
}

/// Something for each partition of each topic by name, in the order asked.
pub(crate) type PerTopic<T> = Vec<(String, Vec<(i32, T)>)>;

/// Something for each partition of each topic by id, in the order asked.
pub(crate) type PerTopicId<T> = Vec<(TopicId, Vec<(i32, T)>)>;

/// Names and what they are set to, or `None`.
pub(crate) type Named<T> = Vec<(String, Option<T>)>;

/// Partitions of topics by id.
pub(crate) type Partitions = Vec<(TopicId, Vec<i32>)>;

/// The epoch under which a broker is registered.
pub(crate) type BrokerEpoch = i64;

/// A broker process presents itself (BrokerRegistration).
#[derive(Clone, Debug)]
pub(crate) struct RegisterBroker {
    pub(crate) cluster_id: String,
    pub(crate) broker_id: NodeId,
    pub(crate) incarnation_id: Uuid,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) features: Vec<FeatureRange>,
    pub(crate) rack: Option<String>,
    pub(crate) is_migrating_zk_broker: bool,
    pub(crate) directories: Vec<DirectoryId>,
    /// The epoch that the broker noted at its last clean stop, -1 when it did not stop cleanly.
    pub(crate) previous_broker_epoch: i64,
}

/// A broker says that it is alive, and what it wants (BrokerHeartbeat).
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) broker_id: NodeId,
    pub(crate) broker_epoch: BrokerEpoch,
    /// The last offset of the metadata log that the broker has taken in.
    pub(crate) metadata_offset: i64,
    pub(crate) want_fence: bool,
    pub(crate) want_shut_down: bool,
    pub(crate) offline_directories: Vec<DirectoryId>,
}

/// What a broker is told about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatReply {
    /// It knows of its own registration.
    pub(crate) is_caught_up: bool,
    pub(crate) is_fenced: bool,
    pub(crate) in_controlled_shutdown: bool,
    pub(crate) should_shut_down: bool,
}

/// A broker is forgotten (UnregisterBroker).
#[derive(Clone, Debug)]
pub(crate) struct UnregisterBroker {
    pub(crate) broker_id: NodeId,
}

/// A controller process presents itself (ControllerRegistration).
#[derive(Clone, Debug)]
pub(crate) struct RegisterController {
    pub(crate) controller_id: NodeId,
    pub(crate) incarnation_id: Uuid,
    pub(crate) zk_migration_ready: bool,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) features: Vec<FeatureRange>,
}

/// Topics to make (CreateTopics); who may make them was decided before.
#[derive(Clone, Debug, Default)]
pub(crate) struct CreateTopics {
    pub(crate) topics: Vec<NewTopic>,
    pub(crate) validate_only: bool,
}

/// A topic to make.
#[derive(Clone, Debug)]
pub(crate) struct NewTopic {
    pub(crate) name: String,
    /// -1 for the default, or with assignments.
    pub(crate) num_partitions: i32,
    /// -1 for the default, or with assignments.
    pub(crate) replication_factor: i16,
    pub(crate) assignments: Vec<Assignment>,
    /// The last of a name counts.
    pub(crate) configs: Named<String>,
}

/// The replicas that a partition shall have.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) partition: i32,
    pub(crate) replicas: Vec<NodeId>,
}

/// A topic that was made, or would be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreatedTopic {
    pub(crate) topic_id: TopicId,
    pub(crate) num_partitions: i32,
    pub(crate) replication_factor: i16,
    /// What was set on it; defaults are not listed.
    pub(crate) configs: Options,
}

/// Topics to remove (DeleteTopics); who may remove them was decided before.
#[derive(Clone, Debug)]
pub(crate) struct DeleteTopics {
    pub(crate) topics: Vec<TopicRef>,
}

/// A topic by its name or its id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TopicRef {
    pub(crate) name: Option<String>,
    pub(crate) topic_id: Option<TopicId>,
}

/// What became of one topic; several entries may share one answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeletedTopic {
    pub(crate) topic: TopicRef,
    pub(crate) result: Result<(), Refusal>,
}

/// Topics that shall have more partitions (CreatePartitions).
#[derive(Clone, Debug)]
pub(crate) struct CreatePartitions {
    pub(crate) topics: Vec<MorePartitions>,
    pub(crate) validate_only: bool,
}

/// How many partitions a topic shall have in all.
#[derive(Clone, Debug)]
pub(crate) struct MorePartitions {
    pub(crate) name: String,
    pub(crate) count: i32,
    /// The replicas of each new partition, or chosen when `None`.
    pub(crate) assignments: Option<Vec<Vec<NodeId>>>,
}

/// A broker needs producer ids (AllocateProducerIds).
#[derive(Clone, Debug)]
pub(crate) struct AllocateProducerIds {
    pub(crate) broker_id: NodeId,
    pub(crate) broker_epoch: BrokerEpoch,
}

/// Producer ids that nobody else has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerIdBlock {
    pub(crate) first: ProducerId,
    pub(crate) len: i32,
}

/// What is done to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigOp {
    Set,
    Delete,
    Append,
    Subtract,
}

/// One option's change.
#[derive(Clone, Debug)]
pub(crate) struct ConfigChange {
    pub(crate) name: String,
    pub(crate) op: ConfigOp,
    pub(crate) value: Option<String>,
}

/// Options to change, resource by resource (IncrementalAlterConfigs).
#[derive(Clone, Debug)]
pub(crate) struct IncrementalAlterConfigs {
    pub(crate) resources: Vec<(Resource, Vec<ConfigChange>)>,
    pub(crate) validate_only: bool,
}

/// All options of each resource (AlterConfigs); those not named are unset.
#[derive(Clone, Debug)]
pub(crate) struct AlterConfigs {
    pub(crate) resources: Vec<(Resource, Named<String>)>,
    pub(crate) validate_only: bool,
}

/// Features to finalize (UpdateFeatures).
#[derive(Clone, Debug)]
pub(crate) struct UpdateFeatures {
    pub(crate) updates: Vec<FeatureUpdate>,
    pub(crate) validate_only: bool,
}

/// A feature and the level it shall have.
#[derive(Clone, Debug)]
pub(crate) struct FeatureUpdate {
    pub(crate) name: String,
    pub(crate) level: i16,
    pub(crate) kind: UpgradeType,
}

/// Which way a feature's level may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpgradeType {
    Upgrade,
    SafeDowngrade,
    UnsafeDowngrade,
    /// A number that has no meaning.
    Unknown,
}

/// A leader says who is in sync (AlterPartition).
#[derive(Clone, Debug)]
pub(crate) struct AlterPartition {
    pub(crate) broker_id: NodeId,
    pub(crate) broker_epoch: BrokerEpoch,
    pub(crate) topics: Vec<(TopicId, Vec<NewIsr>)>,
}

/// The in-sync replicas that a leader wants for a partition.
#[derive(Clone, Debug)]
pub(crate) struct NewIsr {
    pub(crate) partition: i32,
    pub(crate) leader_epoch: LeaderEpoch,
    /// With the epoch under which each broker fetched, -1 when not known.
    pub(crate) isr: Vec<(NodeId, BrokerEpoch)>,
    pub(crate) leader_recovery_state: i8,
    pub(crate) partition_epoch: PartitionEpoch,
}

/// A partition after its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionState {
    pub(crate) leader: NodeId,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) isr: Vec<NodeId>,
    pub(crate) leader_recovery_state: i8,
    pub(crate) partition_epoch: PartitionEpoch,
}

/// How a leader is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Election {
    /// The first replica if it may lead, else as `Online`.
    Preferred,
    /// The leader stays while it may lead.
    Online,
    /// As `Online`, and any live replica rather than none.
    Unclean,
}

/// Leaders to elect (ElectLeaders).
#[derive(Clone, Debug)]
pub(crate) struct ElectLeaders {
    pub(crate) election: Election,
    /// `None` for all partitions.
    pub(crate) partitions: Option<Vec<(String, Vec<i32>)>>,
}

/// Replicas to move (AlterPartitionReassignments).
#[derive(Clone, Debug)]
pub(crate) struct AlterReassignments {
    pub(crate) topics: Vec<(String, Vec<Reassignment>)>,
    pub(crate) allow_replication_factor_change: bool,
}

/// Where a partition's replicas shall be; `None` cancels a move.
#[derive(Clone, Debug)]
pub(crate) struct Reassignment {
    pub(crate) partition: i32,
    pub(crate) replicas: Option<Vec<NodeId>>,
}

/// A broker says in which directories its replicas are (AssignReplicasToDirs).
#[derive(Clone, Debug)]
pub(crate) struct AssignReplicas {
    pub(crate) broker_id: NodeId,
    pub(crate) broker_epoch: BrokerEpoch,
    pub(crate) directories: Vec<(DirectoryId, Partitions)>,
}

/// Access control entries to add; their ids are given here.
#[derive(Clone, Debug)]
pub(crate) struct CreateAcls {
    pub(crate) entries: Vec<AccessControlEntryRecord>,
}

/// Access control entries to remove.
#[derive(Clone, Debug)]
pub(crate) struct DeleteAcls {
    pub(crate) ids: Vec<Uuid>,
}

/// Quotas to set, or to remove where the value is `None` (AlterClientQuotas).
#[derive(Clone, Debug)]
pub(crate) struct AlterQuotas {
    pub(crate) entities: Vec<(Entity, Named<f64>)>,
    pub(crate) validate_only: bool,
}

/// Records that were decided elsewhere, as SCRAM credentials and delegation tokens are; none of
/// them may contradict the image.
#[derive(Clone, Debug)]
pub(crate) struct WriteRecords {
    pub(crate) records: Vec<Record>,
}
