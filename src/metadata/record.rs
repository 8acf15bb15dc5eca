//! Every record of the metadata log and its bytes (the schemas in Kafka's `metadata` module).
//!
//! A value is framed as unsigned varints: frame version 1, kind, version; then the fields, always
//! flexible. All versions are read; what is written is what 4.1 writes at metadata.version 27.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::{
    DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, ProducerId, TopicId, Uuid, varint,
};
use crate::protocol::codec::{self, Field, Malformed, Reader, Tags, Writer, message};

const FRAME_VERSION: u32 = 1;

/// In a [`PartitionChangeRecord`]: the leader stays.
pub(crate) const NO_LEADER_CHANGE: NodeId = NodeId(-2);
/// No broker leads the partition.
pub(crate) const NO_LEADER: NodeId = NodeId(-1);

macro_rules! records {
    ($($kind:literal $variant:ident($body:ident) 0..=$last:literal;)*) => {
        /// One record of the metadata log.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Record {
            $(#[doc = concat!("Kind ", $kind, ".")] $variant($body),)*
        }

        impl Record {
            /// The number of the record's schema.
            pub(crate) const fn kind(&self) -> u32 {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            fn read_body(kind: u32, version: i16, input: &[u8]) -> Result<Self, Malformed> {
                match kind {
                    $($kind if (0..=$last).contains(&version) => {
                        codec::decode(input, version, true).map(Self::$variant)
                    })*
                    _ => Err(Malformed::Unknown),
                }
            }

            fn write_body(&self, version: i16, out: &mut Vec<u8>) {
                match self { $(Self::$variant(body) => codec::encode(body, version, true, out),)* }
            }
        }

        $(impl From<$body> for Record {
            fn from(body: $body) -> Self {
                Self::$variant(body)
            }
        })*
    };
}

records! {
    0 RegisterBroker(RegisterBrokerRecord) 0..=3;
    1 UnregisterBroker(UnregisterBrokerRecord) 0..=0;
    2 Topic(TopicRecord) 0..=0;
    3 Partition(PartitionRecord) 0..=2;
    4 Config(ConfigRecord) 0..=0;
    5 PartitionChange(PartitionChangeRecord) 0..=2;
    7 FenceBroker(FenceBrokerRecord) 0..=0;
    8 UnfenceBroker(UnfenceBrokerRecord) 0..=0;
    9 RemoveTopic(RemoveTopicRecord) 0..=0;
    10 DelegationToken(DelegationTokenRecord) 0..=0;
    11 UserScramCredential(UserScramCredentialRecord) 0..=0;
    12 FeatureLevel(FeatureLevelRecord) 0..=0;
    14 ClientQuota(ClientQuotaRecord) 0..=0;
    15 ProducerIds(ProducerIdsRecord) 0..=0;
    17 BrokerRegistrationChange(BrokerRegistrationChangeRecord) 0..=2;
    18 AccessControlEntry(AccessControlEntryRecord) 0..=0;
    19 RemoveAccessControlEntry(RemoveAccessControlEntryRecord) 0..=0;
    20 NoOp(NoOpRecord) 0..=0;
    21 ZkMigrationState(ZkMigrationStateRecord) 0..=0;
    22 RemoveUserScramCredential(RemoveUserScramCredentialRecord) 0..=0;
    23 BeginTransaction(BeginTransactionRecord) 0..=0;
    24 EndTransaction(EndTransactionRecord) 0..=0;
    25 AbortTransaction(AbortTransactionRecord) 0..=0;
    26 RemoveDelegationToken(RemoveDelegationTokenRecord) 0..=0;
    27 RegisterController(RegisterControllerRecord) 0..=0;
    28 ClearElr(ClearElrRecord) 0..=0;
}

impl Record {
    /// Reads the value of a record of the metadata log.
    pub(crate) fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut input = value;
        let mut header = || varint::take_unsigned(&mut input).ok_or(Malformed::Varint);
        let (frame, kind, version) = (header()?, header()?, header()?);
        if frame != FRAME_VERSION {
            return Err(Malformed::Unknown);
        }
        let version = i16::try_from(version).map_err(|_| Malformed::Unknown)?;
        Self::read_body(kind, version, input)
    }

    /// The value of the record in the metadata log.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_as(self.version(), &mut out);
        out
    }

    /// The version that a controller at metadata.version 27 (4.1-IV1) writes.
    pub(crate) fn version(&self) -> i16 {
        match self {
            Self::RegisterBroker(_) => 3,
            Self::Partition(_) | Self::PartitionChange(_) => 2,
            // Only the newest field in use decides (BrokerRegistrationChangeRecord's writers).
            Self::BrokerRegistrationChange(change) => {
                if !change.log_dirs.is_empty() {
                    2
                } else {
                    i16::from(change.in_controlled_shutdown != 0)
                }
            }
            Self::UnregisterBroker(_)
            | Self::Topic(_)
            | Self::Config(_)
            | Self::FenceBroker(_)
            | Self::UnfenceBroker(_)
            | Self::RemoveTopic(_)
            | Self::DelegationToken(_)
            | Self::UserScramCredential(_)
            | Self::FeatureLevel(_)
            | Self::ClientQuota(_)
            | Self::ProducerIds(_)
            | Self::AccessControlEntry(_)
            | Self::RemoveAccessControlEntry(_)
            | Self::NoOp(_)
            | Self::ZkMigrationState(_)
            | Self::RemoveUserScramCredential(_)
            | Self::BeginTransaction(_)
            | Self::EndTransaction(_)
            | Self::AbortTransaction(_)
            | Self::RemoveDelegationToken(_)
            | Self::RegisterController(_)
            | Self::ClearElr(_) => 0,
        }
    }

    fn encode_as(&self, version: i16, out: &mut Vec<u8>) {
        varint::put_unsigned(out, FRAME_VERSION);
        varint::put_unsigned(out, self.kind());
        varint::put_unsigned(out, version.cast_unsigned().into());
        self.write_body(version, out);
    }
}

message! {
    /// A listener of a broker or controller.
    pub(crate) struct Endpoint {
        name: String,
        host: String,
        port: u16,
        security_protocol: i16,
    }
}

message! {
    /// The levels of a feature that a node supports.
    pub(crate) struct FeatureRange {
        name: String,
        min_supported_version: i16,
        max_supported_version: i16,
    }
}

message! {
    /// A broker process presents itself; it replaces what was known of the broker.
    pub(crate) struct RegisterBrokerRecord {
        broker_id: NodeId = NodeId(0),
        [2..] is_migrating_zk_broker: bool,
        incarnation_id: Uuid,
        broker_epoch: i64,
        end_points: Vec<Endpoint>,
        features: Vec<FeatureRange>,
        rack: Option<String>,
        fenced: bool = true,
        [1..] in_controlled_shutdown: bool,
    } tagged {
        [3..] 0 log_dirs: Vec<DirectoryId>,
    }
}

message! {
    /// A broker is forgotten.
    pub(crate) struct UnregisterBrokerRecord {
        broker_id: NodeId = NodeId(0),
        broker_epoch: i64,
    }
}

message! {
    /// A topic exists; its partitions follow.
    pub(crate) struct TopicRecord {
        name: Arc<str> = "".into(),
        topic_id: TopicId = TopicId(Uuid::ZERO),
    }
}

message! {
    /// A partition's whole state.
    pub(crate) struct PartitionRecord {
        partition_id: i32 = -1,
        topic_id: TopicId = TopicId(Uuid::ZERO),
        replicas: Vec<NodeId>,
        isr: Vec<NodeId>,
        removing_replicas: Vec<NodeId>,
        adding_replicas: Vec<NodeId>,
        leader: NodeId = NO_LEADER,
        leader_epoch: LeaderEpoch = LeaderEpoch(-1),
        partition_epoch: PartitionEpoch = PartitionEpoch(-1),
        [1..] directories: Vec<DirectoryId>,
    } tagged {
        0 leader_recovery_state: i8 = 0,
        [2..] 1 eligible_leader_replicas: Option<Vec<NodeId>>,
        [2..] 2 last_known_elr: Option<Vec<NodeId>>,
    }
}

message! {
    /// An option of a resource is set, or unset by null.
    pub(crate) struct ConfigRecord {
        resource_type: i8,
        resource_name: String,
        name: String,
        value: Option<String>,
    }
}

message! {
    /// What changed in a partition; absent fields stay.
    pub(crate) struct PartitionChangeRecord {
        partition_id: i32 = -1,
        topic_id: TopicId = TopicId(Uuid::ZERO),
    } tagged {
        0 isr: Option<Vec<NodeId>>,
        1 leader: NodeId = NO_LEADER_CHANGE,
        2 replicas: Option<Vec<NodeId>>,
        3 removing_replicas: Option<Vec<NodeId>>,
        4 adding_replicas: Option<Vec<NodeId>>,
        5 leader_recovery_state: i8 = -1,
        [2..] 6 eligible_leader_replicas: Option<Vec<NodeId>>,
        [2..] 7 last_known_elr: Option<Vec<NodeId>>,
        [1..] 8 directories: Option<Vec<DirectoryId>>,
    }
}

message! {
    /// A broker is fenced, as old releases said it.
    pub(crate) struct FenceBrokerRecord {
        id: NodeId = NodeId(0),
        epoch: i64,
    }
}

message! {
    /// A broker is unfenced, as old releases said it.
    pub(crate) struct UnfenceBrokerRecord {
        id: NodeId = NodeId(0),
        epoch: i64,
    }
}

message! {
    /// A topic is gone, with its partitions and options.
    pub(crate) struct RemoveTopicRecord {
        topic_id: TopicId = TopicId(Uuid::ZERO),
    }
}

message! {
    /// A delegation token exists or was renewed.
    pub(crate) struct DelegationTokenRecord {
        owner: String,
        requester: String,
        renewers: Vec<String>,
        issue_timestamp: i64,
        max_timestamp: i64,
        expiration_timestamp: i64,
        token_id: String,
    }
}

message! {
    /// A user's SCRAM credential for one mechanism.
    pub(crate) struct UserScramCredentialRecord {
        name: String,
        mechanism: i8,
        salt: Bytes,
        stored_key: Bytes,
        server_key: Bytes,
        iterations: i32,
    }
}

message! {
    /// A feature is finalized at a level; 0 means off.
    pub(crate) struct FeatureLevelRecord {
        name: String,
        feature_level: i16,
    }
}

message! {
    /// One part of a quota's entity; a null name is the default.
    pub(crate) struct QuotaEntityPart {
        entity_type: String,
        entity_name: Option<String>,
    }
}

message! {
    /// A quota of an entity is set or removed.
    pub(crate) struct ClientQuotaRecord {
        entity: Vec<QuotaEntityPart>,
        key: String,
        value: f64,
        remove: bool,
    }
}

message! {
    /// Producer ids below the next one are taken.
    pub(crate) struct ProducerIdsRecord {
        broker_id: NodeId = NodeId(0),
        broker_epoch: i64 = -1,
        next_producer_id: ProducerId = ProducerId(0),
    }
}

message! {
    /// What changed in a broker's registration; zero and empty stay.
    pub(crate) struct BrokerRegistrationChangeRecord {
        broker_id: NodeId = NodeId(0),
        broker_epoch: i64,
    } tagged {
        0 fenced: i8 = 0,
        [1..] 1 in_controlled_shutdown: i8 = 0,
        [2..] 2 log_dirs: Vec<DirectoryId>,
    }
}

message! {
    /// An access control entry exists.
    pub(crate) struct AccessControlEntryRecord {
        id: Uuid,
        resource_type: i8,
        resource_name: String,
        pattern_type: i8,
        principal: String,
        host: String,
        operation: i8,
        permission_type: i8,
    }
}

message! {
    /// An access control entry is gone.
    pub(crate) struct RemoveAccessControlEntryRecord {
        id: Uuid,
    }
}

/// Says nothing, but moves the committed offset; whoever writes it may tag it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NoOpRecord {
    /// Kept as they came; Kafka skips them.
    pub(crate) tags: Tags,
}

impl Field for NoOpRecord {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Tags::read(reader).map(|tags| Self { tags })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        self.tags.write(writer);
    }
}

message! {
    /// A left-over of the move away from ZooKeeper.
    pub(crate) struct ZkMigrationStateRecord {
        zk_migration_state: i8,
    }
}

message! {
    /// A user's SCRAM credential for one mechanism is gone.
    pub(crate) struct RemoveUserScramCredentialRecord {
        name: String,
        mechanism: i8,
    }
}

message! {
    /// The records from here to the end of the transaction count together or not at all (KIP-868).
    pub(crate) struct BeginTransactionRecord {
    } tagged {
        0 name: Option<String>,
    }
}

message! {
    /// The records since the beginning of the transaction count.
    pub(crate) struct EndTransactionRecord {}
}

message! {
    /// The records since the beginning of the transaction never count.
    pub(crate) struct AbortTransactionRecord {
    } tagged {
        0 reason: Option<String>,
    }
}

message! {
    /// A delegation token is gone.
    pub(crate) struct RemoveDelegationTokenRecord {
        token_id: String,
    }
}

message! {
    /// A controller process presents itself.
    pub(crate) struct RegisterControllerRecord {
        controller_id: NodeId = NodeId(0),
        incarnation_id: Uuid,
        zk_migration_ready: bool,
        end_points: Vec<Endpoint>,
        features: Vec<FeatureRange>,
    }
}

message! {
    /// The eligible leader replicas of a topic, or of all topics by an empty name, are forgotten.
    pub(crate) struct ClearElrRecord {
        topic_name: String,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Kafka 4.1.2's own encodings: name, kind, version and the body's bytes in hex.
    const SAMPLES: &str = include_str!("testdata/records.txt");

    /// The bytes that a line of a test file spells.
    pub(crate) fn unhex(line: &str) -> Vec<u8> {
        let digits = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        line.as_bytes().chunks(2).map(digits).collect()
    }

    fn samples() -> impl Iterator<Item = (u32, i16, Vec<u8>)> {
        SAMPLES.lines().map(|line| {
            let mut words = line.split(' ').skip(1);
            let kind = words.next().unwrap().parse().unwrap();
            let version = words.next().unwrap().parse().unwrap();
            let body = unhex(words.next().unwrap());
            (kind, version, body)
        })
    }

    #[test]
    fn every_record_of_kafka_is_read_and_written_byte_for_byte() {
        let mut seen = std::collections::BTreeSet::new();
        for (kind, version, body) in samples() {
            let record = Record::read_body(kind, version, &body).unwrap();
            assert_eq!(record.kind(), kind);
            let mut out = Vec::new();
            record.write_body(version, &mut out);
            assert_eq!(out, body, "{record:?} version {version}");
            seen.insert(kind);
        }
        assert_eq!(seen.len(), 26);
    }

    #[test]
    fn a_framed_value_is_read_back() {
        for (kind, version, body) in samples() {
            let record = Record::read_body(kind, version, &body).unwrap();
            let mut value = Vec::new();
            record.encode_as(version, &mut value);
            assert_eq!(Record::decode(&value).as_ref(), Ok(&record));
            for end in 0..value.len() {
                assert!(Record::decode(&value[..end]).is_err());
            }
        }
        let end = Record::from(EndTransactionRecord::default());
        assert_eq!(end.encode(), [1, 24, 0, 0]);
        assert_eq!(Record::decode(&[2, 24, 0, 0]), Err(Malformed::Unknown));
        assert_eq!(Record::decode(&[1, 6, 0, 0]), Err(Malformed::Unknown));
        assert_eq!(Record::decode(&[1, 24, 1, 0]), Err(Malformed::Unknown));
    }

    #[test]
    fn a_damaged_value_is_refused_or_read_but_never_a_panic() {
        for (kind, version, body) in samples() {
            for at in 0..body.len() {
                for damage in [0x00, 0x7f, 0x80, 0xff] {
                    let mut body = body.clone();
                    body[at] = damage;
                    let _ = Record::read_body(kind, version, &body);
                }
            }
        }
    }

    #[test]
    fn a_fenced_broker_is_said_in_the_oldest_version_that_can() {
        let mut change = BrokerRegistrationChangeRecord {
            fenced: 1,
            ..Default::default()
        };
        assert_eq!(Record::from(change.clone()).version(), 0);
        change.in_controlled_shutdown = 1;
        assert_eq!(Record::from(change.clone()).version(), 1);
        change.log_dirs.push(DirectoryId::UNASSIGNED);
        assert_eq!(Record::from(change).version(), 2);
    }
}
