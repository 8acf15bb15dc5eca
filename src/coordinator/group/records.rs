//! The records of `__consumer_offsets` that groups are made of, and their bytes (the schemas in
//! Kafka's `group-coordinator` module).
//!
//! A key is the kind as int16 and the key's fields, never flexible; a value is its version as
//! int16 and its fields; a tombstone has no value. All versions are read; what is written is what
//! 4.1 writes. Kinds that are not known here are skipped, as Kafka does after a downgrade.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::{LeaderEpoch, TopicId};
use crate::protocol::codec::{self, Field, Malformed, Reader, Writer, message};

/// The oldest form of a committed offset; it has the layout of the next kind at version 0.
const LEGACY_OFFSET_COMMIT: i16 = 0;

/// The most bytes that a text of a key may have, and one of a version that is not flexible.
pub(crate) const KEY_TEXT_MAX: usize = 32_767;

/// Room for a key or a value as most are.
const USUAL_BYTES: usize = 128;

/// A commit's time to live is not its own: the group's retention holds.
pub(crate) const NO_EXPIRY: i64 = -1;

macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $kind:literal $variant:ident($key:ident, $value:ident) 0..=$last:literal
            $(flexible $flexible:literal)?;
    )*) => {
        /// One record: its key, and its value or `None` for a tombstone.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum GroupRecord {
            $($(#[$doc])* $variant($key, Option<$value>),)*
        }

        impl GroupRecord {
            /// The number of the record's schema.
            pub(crate) const fn kind(&self) -> i16 {
                match self { $(Self::$variant(..) => $kind,)* }
            }

            /// The group that the record belongs to.
            pub(crate) fn group(&self) -> &Arc<str> {
                match self { $(Self::$variant(key, _) => &key.group,)* }
            }

            /// Whether the record ends what its key names.
            pub(crate) fn is_tombstone(&self) -> bool {
                match self { $(Self::$variant(_, value) => value.is_none(),)* }
            }

            fn read(kind: i16, key: &[u8], value: Option<&[u8]>) -> Result<Option<Self>, Malformed> {
                match kind {
                    $($kind => {
                        let key = codec::decode(key, 0, false)?;
                        let value = value
                            .map(|value| {
                                let (version, body) = framed(value)?;
                                if !(0..=$last).contains(&version) {
                                    return Err(Malformed::Unknown);
                                }
                                codec::decode(body, version, records!(@flexible version $($flexible)?))
                            })
                            .transpose()?;
                        Ok(Some(Self::$variant(key, value)))
                    })*
                    _ => Ok(None),
                }
            }

            fn write_key(&self, out: &mut Vec<u8>) {
                match self { $(Self::$variant(key, _) => codec::encode(key, 0, false, out),)* }
            }

            /// Appends the value's body; false for a tombstone.
            fn write_value(&self, version: i16, out: &mut Vec<u8>) -> bool {
                match self {
                    $(Self::$variant(_, Some(value)) => {
                        codec::encode(value, version, records!(@flexible version $($flexible)?), out);
                        true
                    })*
                    $(Self::$variant(_, None) => false,)*
                }
            }
        }
    };
    (@flexible $version:ident) => { true };
    (@flexible $version:ident $since:literal) => { $version >= $since };
}

records! {
    /// An offset that a group committed.
    1 OffsetCommit(OffsetCommitKey, OffsetCommitValue) 0..=4 flexible 4;
    /// A classic group, whole.
    2 GroupMetadata(GroupKey, GroupMetadataValue) 0..=4 flexible 4;
    /// The epoch of a consumer group.
    3 ConsumerGroupMetadata(GroupKey, ConsumerGroupMetadataValue) 0..=0;
    /// What a consumer group knew of its topics before 4.1; written as a tombstone only.
    4 ConsumerGroupPartitionMetadata(GroupKey, ConsumerGroupPartitionMetadataValue) 0..=0;
    /// A member of a consumer group and what it asked for.
    5 ConsumerGroupMemberMetadata(MemberKey, ConsumerGroupMemberMetadataValue) 0..=0;
    /// The epoch for which a target assignment was computed.
    6 ConsumerGroupTargetAssignmentMetadata(GroupKey, ConsumerGroupTargetAssignmentMetadataValue)
        0..=0;
    /// What a member shall own.
    7 ConsumerGroupTargetAssignmentMember(MemberKey, ConsumerGroupTargetAssignmentMemberValue)
        0..=0;
    /// What a member owns.
    8 ConsumerGroupCurrentMemberAssignment(MemberKey, ConsumerGroupCurrentMemberAssignmentValue)
        0..=0;
    /// The topics that a regular expression of a consumer group stands for.
    16 ConsumerGroupRegularExpression(
        ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue
    ) 0..=0;
}

impl GroupRecord {
    /// Reads a record; `None` when its kind is not known.
    pub(crate) fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Self>, Malformed> {
        let (kind, key) = framed(key)?;
        let kind = match kind {
            LEGACY_OFFSET_COMMIT => 1,
            other => other,
        };
        Self::read(kind, key, value)
    }

    /// The record's key.
    pub(crate) fn key(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(USUAL_BYTES);
        out.extend_from_slice(&self.kind().to_be_bytes());
        self.write_key(&mut out);
        out
    }

    /// The record's value; `None` for a tombstone.
    pub(crate) fn value(&self) -> Option<Vec<u8>> {
        let version = self.version();
        let mut out = Vec::with_capacity(USUAL_BYTES);
        out.extend_from_slice(&version.to_be_bytes());
        self.write_value(version, &mut out).then_some(out)
    }

    /// The version of the value that 4.1 writes (`GroupCoordinatorRecordHelpers`).
    fn version(&self) -> i16 {
        match self {
            Self::OffsetCommit(_, Some(value)) if value.expire_timestamp != NO_EXPIRY => 1,
            Self::OffsetCommit(..) => 4,
            Self::GroupMetadata(..) => 3,
            Self::ConsumerGroupMetadata(..)
            | Self::ConsumerGroupPartitionMetadata(..)
            | Self::ConsumerGroupMemberMetadata(..)
            | Self::ConsumerGroupTargetAssignmentMetadata(..)
            | Self::ConsumerGroupTargetAssignmentMember(..)
            | Self::ConsumerGroupCurrentMemberAssignment(..)
            | Self::ConsumerGroupRegularExpression(..) => 0,
        }
    }
}

/// The leading int16, and what follows it.
fn framed(input: &[u8]) -> Result<(i16, &[u8]), Malformed> {
    let (number, rest) = input.split_first_chunk().ok_or(Malformed::Short)?;
    Ok((i16::from_be_bytes(*number), rest))
}

message! {
    /// Names a committed offset.
    pub(crate) struct OffsetCommitKey {
        group: Arc<str> = Arc::from(""),
        topic: Arc<str> = Arc::from(""),
        partition: i32,
    }
}

message! {
    /// A committed offset.
    pub(crate) struct OffsetCommitValue {
        offset: i64,
        [3..] leader_epoch: LeaderEpoch = LeaderEpoch(-1),
        metadata: Arc<str> = Arc::from(""),
        commit_timestamp: i64,
        [1..=1] expire_timestamp: i64 = NO_EXPIRY,
    } tagged {
        [4..] 0 topic_id: TopicId = TopicId::ZERO,
    }
}

message! {
    /// Names a group.
    pub(crate) struct GroupKey {
        group: Arc<str> = Arc::from(""),
    }
}

message! {
    /// Names a member of a group.
    pub(crate) struct MemberKey {
        group: Arc<str> = Arc::from(""),
        member: Arc<str> = Arc::from(""),
    }
}

message! {
    /// A classic group.
    pub(crate) struct GroupMetadataValue {
        protocol_type: Arc<str> = Arc::from(""),
        generation: i32,
        protocol: Option<Arc<str>>,
        leader: Option<Arc<str>>,
        [2..] current_state_timestamp: i64 = -1,
        members: Vec<ClassicMember>,
    }
}

message! {
    /// A member of a classic group.
    pub(crate) struct ClassicMember {
        member_id: Arc<str> = Arc::from(""),
        [3..] group_instance_id: Option<Arc<str>>,
        client_id: Arc<str> = Arc::from(""),
        client_host: Arc<str> = Arc::from(""),
        [1..] rebalance_timeout: i32 = -1,
        session_timeout: i32,
        subscription: Bytes,
        assignment: Bytes,
    }
}

message! {
    /// The epoch of a consumer group, and the hash of what its topics looked like then.
    pub(crate) struct ConsumerGroupMetadataValue {
        epoch: i32,
    } tagged {
        0 metadata_hash: i64,
    }
}

message! {
    /// The topics of a consumer group as Kafka 3.7-4.0 kept them.
    pub(crate) struct ConsumerGroupPartitionMetadataValue {
        topics: Vec<TopicMetadata>,
    }
}

message! {
    /// A topic as Kafka 3.7-4.0 kept it.
    pub(crate) struct TopicMetadata {
        topic_id: TopicId = TopicId::ZERO,
        topic_name: String,
        num_partitions: i32,
        partition_metadata: Vec<PartitionRacks>,
    }
}

message! {
    /// The racks of a partition's replicas.
    pub(crate) struct PartitionRacks {
        partition: i32,
        racks: Vec<String>,
    }
}

message! {
    /// A member of a consumer group and what it asked for.
    pub(crate) struct ConsumerGroupMemberMetadataValue {
        instance_id: Option<Arc<str>>,
        rack_id: Option<Arc<str>>,
        client_id: Arc<str> = Arc::from(""),
        client_host: Arc<str> = Arc::from(""),
        subscribed_topic_names: Vec<Arc<str>>,
        subscribed_topic_regex: Option<Arc<str>>,
        rebalance_timeout_ms: i32 = -1,
        server_assignor: Option<Arc<str>>,
    } tagged {
        // Kafka declares no default, so that its default is an empty struct and null is written.
        0 classic: Nullable<ClassicMemberMetadata> =
            Nullable(Some(ClassicMemberMetadata::default())),
    }
}

message! {
    /// What a member of the classic protocol brought into a consumer group.
    pub(crate) struct ClassicMemberMetadata {
        session_timeout_ms: i32,
        supported_protocols: Vec<ClassicProtocol>,
    }
}

message! {
    /// A protocol that a classic member can follow.
    pub(crate) struct ClassicProtocol {
        name: Arc<str> = Arc::from(""),
        metadata: Bytes,
    }
}

message! {
    /// The epoch of the group for which the target assignment was computed.
    pub(crate) struct ConsumerGroupTargetAssignmentMetadataValue {
        assignment_epoch: i32,
    }
}

message! {
    /// What a member shall own.
    pub(crate) struct ConsumerGroupTargetAssignmentMemberValue {
        topic_partitions: Vec<TopicPartitions>,
    }
}

message! {
    /// Partitions of a topic.
    pub(crate) struct TopicPartitions {
        topic_id: TopicId = TopicId::ZERO,
        partitions: Vec<i32>,
    }
}

message! {
    /// Where a member stands between its assignment and its target.
    pub(crate) struct ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: i32,
        previous_member_epoch: i32,
        state: i8,
        assigned_partitions: Vec<TopicPartitions>,
        partitions_pending_revocation: Vec<TopicPartitions>,
    }
}

message! {
    /// Names a regular expression of a group.
    pub(crate) struct ConsumerGroupRegularExpressionKey {
        group: Arc<str> = Arc::from(""),
        regex: Arc<str> = Arc::from(""),
    }
}

message! {
    /// The topics that a regular expression stood for at a version of the metadata.
    pub(crate) struct ConsumerGroupRegularExpressionValue {
        topics: Vec<Arc<str>>,
        version: i64,
        timestamp: i64,
    }
}

/// A struct in a tagged field that may be null: one byte says whether it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Nullable<T>(pub(crate) Option<T>);

impl<T: Field> Field for Nullable<T> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.unsigned_varint()? {
            0 => Ok(Self(None)),
            _ => T::read(reader).map(|value| Self(Some(value))),
        }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.unsigned_varint(u32::from(self.0.is_some()));
        if let Some(value) = &self.0 {
            value.write(writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Kafka 4.1.2's own encodings: name, kind, version and the bytes in hex, keys and values.
    const SAMPLES: &str = include_str!("testdata/records.txt");

    fn unhex(line: &str) -> Vec<u8> {
        let digits = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        line.as_bytes().chunks(2).map(digits).collect()
    }

    struct Sample {
        is_key: bool,
        kind: i16,
        version: i16,
        body: Vec<u8>,
    }

    fn samples() -> impl Iterator<Item = Sample> {
        SAMPLES.lines().map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            Sample {
                is_key: words[0].ends_with("Key"),
                kind: words[1].parse().unwrap(),
                version: words[2].parse().unwrap(),
                body: unhex(words[3]),
            }
        })
    }

    fn prefixed(number: i16, body: &[u8]) -> Vec<u8> {
        [&number.to_be_bytes(), body].concat()
    }

    /// Kind, version, key and value.
    type Encoded = (i16, i16, Vec<u8>, Option<Vec<u8>>);

    /// Every value of Kafka with a key of its kind; keys with a tombstone.
    fn records() -> Vec<Encoded> {
        let mut last_key = Vec::new();
        samples()
            .map(|sample| {
                if sample.is_key {
                    last_key = prefixed(sample.kind, &sample.body);
                    (sample.kind, 0, last_key.clone(), None)
                } else {
                    let value = prefixed(sample.version, &sample.body);
                    (sample.kind, sample.version, last_key.clone(), Some(value))
                }
            })
            .collect()
    }

    #[test]
    fn every_record_of_kafka_is_read_and_written_byte_for_byte() {
        let mut seen = BTreeSet::new();
        for (kind, version, key, value) in records() {
            let record = GroupRecord::decode(&key, value.as_deref())
                .unwrap()
                .unwrap();
            if kind != LEGACY_OFFSET_COMMIT {
                assert_eq!(record.kind(), kind);
                assert_eq!(record.key(), key);
            }
            let mut out = Vec::with_capacity(USUAL_BYTES);
            out.extend_from_slice(&version.to_be_bytes());
            let written = record.write_value(version, &mut out).then_some(out);
            assert_eq!(written, value, "{record:?} version {version}");
            seen.insert(kind);
        }
        assert_eq!(seen.len(), 10);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (_, _, key, value) in records() {
            let record = GroupRecord::decode(&key, value.as_deref())
                .unwrap()
                .unwrap();
            let again = GroupRecord::decode(&record.key(), record.value().as_deref());
            assert_eq!(again, Ok(Some(record)));
        }
    }

    #[test]
    fn the_newest_version_of_kafka_4_1_is_written() {
        let key = OffsetCommitKey::default();
        let mut commit = OffsetCommitValue::default();
        let record = GroupRecord::OffsetCommit(key.clone(), Some(commit.clone()));
        assert_eq!(record.value().unwrap()[..2], [0, 4]);
        commit.expire_timestamp = 5;
        let record = GroupRecord::OffsetCommit(key, Some(commit));
        assert_eq!(record.value().unwrap()[..2], [0, 1]);
        let record = GroupRecord::GroupMetadata(GroupKey::default(), Some(Default::default()));
        assert_eq!(record.value().unwrap()[..2], [0, 3]);
    }

    #[test]
    fn an_unknown_kind_is_skipped_and_an_unknown_version_refused() {
        assert_eq!(GroupRecord::decode(&[0, 99, 1], Some(&[9])), Ok(None));
        assert_eq!(GroupRecord::decode(&[0, 9], None), Ok(None));
        let unknown = GroupRecord::decode(&[0, 2, 0, 0], Some(&[0, 5]));
        assert_eq!(unknown, Err(Malformed::Unknown));
        assert_eq!(GroupRecord::decode(&[0], None), Err(Malformed::Short));
        let short = GroupRecord::decode(&[0, 2, 0, 0], Some(&[0]));
        assert_eq!(short, Err(Malformed::Short));
    }

    #[test]
    fn a_damaged_record_is_refused_or_read_but_never_a_panic() {
        for (_, _, key, value) in records() {
            let value = value.unwrap_or_default();
            for at in 0..key.len().max(value.len()) {
                for damage in [0x00, 0x7f, 0x80, 0xff] {
                    let mut bad_key = key.clone();
                    if let Some(byte) = bad_key.get_mut(at) {
                        *byte = damage;
                    }
                    let _ = GroupRecord::decode(&bad_key, Some(&value));
                    let mut bad_value = value.clone();
                    if let Some(byte) = bad_value.get_mut(at) {
                        *byte = damage;
                    }
                    let _ = GroupRecord::decode(&key, Some(&bad_value));
                }
                let cut = &value[..at.min(value.len())];
                let _ = GroupRecord::decode(&key, Some(cut));
            }
        }
    }
}
