//! The batches that the quorum writes for itself: a leader begins, the voters change.
//!
//! Kafka's own record of the voters (KRAFT_VOTERS, from kraft.version 1 on) has no place for joint
//! configurations and learners, so the exact membership travels in a tagged field of ours, which
//! Kafka and its tools skip. At kraft.version 0 a KRAFT_VOTERS record would be believed over
//! controller.quorum.voters; there the field stands on a NoOpRecord.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::base::Uuid;
use crate::metadata::record::{NoOpRecord, Record};
use crate::protocol::codec::{self, Tags, message};
use crate::protocol::records::batch::Batch;
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::control::{
    ControlRecord, LeaderChange, LeaderChangeVoter, Voter, VoterEndpoint,
};
use crate::protocol::records::iter::Records;

use super::entry::{Member, Members};

/// The tag of our field; Kafka's own count from 0.
const MEMBERSHIP_TAG: u32 = 1000;
/// Frame version and kind of a NoOpRecord.
const NO_OP_FRAME: [u8; 2] = [1, 20];
/// What a metadata batch may inflate to; they are written uncompressed and below 8 MiB
/// (KafkaRaftClient.MAX_BATCH_SIZE_BYTES).
pub(super) const INFLATE_MAX: u64 = 64 << 20;

message! {
    /// The exact membership of the Raft group.
    struct Exact {
        configs: Vec<Config>,
        nodes: Vec<Node>,
    }
}

message! {
    /// One of the sets of voters that must agree.
    struct Config {
        voters: Vec<i32>,
    }
}

message! {
    /// A voter or learner.
    struct Node {
        id: i32,
        directory: Uuid,
        endpoints: Vec<Endpoint>,
    }
}

message! {
    /// A listener.
    struct Endpoint {
        name: String,
        host: String,
        port: u16,
    }
}

/// The batch with which a leader begins. openraft does not tell who granted its votes, so all
/// voters are listed.
pub(super) fn leader_change(leader: i32, members: &Members, now_ms: i64) -> Vec<u8> {
    let voters: Vec<_> = members
        .voter_ids()
        .map(|id| LeaderChangeVoter {
            id,
            directory: Uuid::ZERO,
        })
        .collect();
    let change = ControlRecord::LeaderChange(LeaderChange {
        version: 0,
        leader_id: leader,
        granting_voters: voters.clone(),
        voters,
    });
    control_batch(&[(change.key(), change.value())], now_ms)
}

/// The batch from which on `members` vote.
pub(super) fn membership(members: &Members, kraft_version: i16, now_ms: i64) -> Vec<u8> {
    if kraft_version == 0 {
        let tags = exact_tags(members);
        return data_batch(&[Record::NoOp(NoOpRecord { tags })], now_ms);
    }
    control_batch(&[voters_record(members)], now_ms)
}

/// Key and value of Kafka's list of voters, with our field.
pub(super) fn voters_record(members: &Members) -> ([u8; 4], Vec<u8>) {
    let record = ControlRecord::Voters(voters_of(members));
    let mut value = record.value();
    tag_members(&mut value, members);
    (record.key(), value)
}

/// Puts our field into a control record's value, which ends with an empty section of tags.
pub(super) fn tag_members(value: &mut Vec<u8>, members: &Members) {
    let empty = value.pop();
    debug_assert_eq!(empty, Some(0), "the record has no tags yet");
    codec::encode(&exact_tags(members), 0, true, value);
}

/// Our field in the value that `record` was read from.
pub(super) fn tagged_members(record: &ControlRecord, value: &[u8]) -> Option<Members> {
    // What we wrote begins as the record without our field would, up to its empty tag section.
    let plain = record.value();
    let (_, plain) = plain.split_last()?;
    let tags = value.strip_prefix(plain)?;
    exact_in(&codec::decode::<Tags>(tags, 0, true).ok()?)
}

fn exact_tags(members: &Members) -> Tags {
    let mut exact = Vec::new();
    codec::encode(&Exact::from(members), 0, true, &mut exact);
    Tags(vec![(MEMBERSHIP_TAG, Bytes::from(exact))])
}

/// A batch of metadata records, without offset and epoch.
pub(super) fn data_batch(records: &[Record], now_ms: i64) -> Vec<u8> {
    let mut batch = BatchBuilder::new(0);
    for record in records {
        batch.append(now_ms, None, Some(&record.encode()), &[]);
    }
    batch.build().expect("nothing is compressed")
}

/// A control batch, without offset and epoch.
pub(super) fn control_batch(records: &[([u8; 4], Vec<u8>)], now_ms: i64) -> Vec<u8> {
    let mut batch = BatchBuilder::new(0).control();
    for (key, value) in records {
        batch.append(now_ms, Some(key), Some(value), &[]);
    }
    batch.build().expect("nothing is compressed")
}

/// Gives a batch its place; both fields lie outside the checksum.
pub(super) fn place(batch: &mut [u8], base_offset: i64, epoch: i32) {
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[12..16].copy_from_slice(&epoch.to_be_bytes());
}

/// The members that a batch names, if it names any.
pub(super) fn members_in(batch: &Batch<'_>) -> Option<Members> {
    // Batches of records are looked into only where a lone NoOpRecord can stand.
    if !batch.header.is_control() && batch.header.records_count != 1 {
        return None;
    }
    let records = Records::of(batch, INFLATE_MAX).ok()?;
    records.iter().flatten().find_map(|record| {
        let value = record.value?;
        match record.key {
            Some(key) if batch.header.is_control() => members_of_control(key, value),
            Some(_) => None,
            None => members_of_no_op(value),
        }
    })
}

/// The control records of a batch; empty for a batch of metadata records.
pub(super) fn control_records(batch: &Batch<'_>) -> Vec<ControlRecord> {
    if !batch.header.is_control() {
        return Vec::new();
    }
    let Ok(records) = Records::of(batch, INFLATE_MAX) else {
        return Vec::new();
    };
    let read = records
        .iter()
        .flatten()
        .filter_map(|record| ControlRecord::read(record.key?, record.value?).ok());
    read.collect()
}

/// The voters as Kafka's record lists them.
pub(super) fn voters_of(members: &Members) -> Vec<Voter> {
    let voter = |id: i32| {
        let member = members.get_node(&id).cloned().unwrap_or_default();
        Voter {
            id,
            directory: member.directory,
            endpoints: member.endpoints,
            min_kraft_version: 0,
            max_kraft_version: 1,
        }
    };
    members.voter_ids().map(voter).collect()
}

/// The members that Kafka's list of voters means.
pub(super) fn members_of(voters: &[Voter]) -> Members {
    let ids: BTreeSet<i32> = voters.iter().map(|voter| voter.id).collect();
    let nodes: BTreeMap<i32, Member> = voters
        .iter()
        .map(|voter| {
            let member = Member {
                directory: voter.directory,
                endpoints: voter.endpoints.clone(),
            };
            (voter.id, member)
        })
        .collect();
    Members::new(vec![ids], nodes)
}

/// The members that a record of the voters names.
pub(super) fn members_of_control(key: &[u8], value: &[u8]) -> Option<Members> {
    let record = ControlRecord::read(key, value).ok()?;
    let ControlRecord::Voters(voters) = &record else {
        return None;
    };
    tagged_members(&record, value).or_else(|| Some(members_of(voters)))
}

fn members_of_no_op(value: &[u8]) -> Option<Members> {
    // Nearly all lone records are of another kind: look before reading.
    if !value.starts_with(&NO_OP_FRAME) {
        return None;
    }
    let Record::NoOp(record) = Record::decode(value).ok()? else {
        return None;
    };
    exact_in(&record.tags)
}

fn exact_in(tags: &Tags) -> Option<Members> {
    let (_, bytes) = tags.0.iter().find(|(tag, _)| *tag == MEMBERSHIP_TAG)?;
    codec::decode::<Exact>(bytes, 0, true).ok().map(Into::into)
}

impl From<&Members> for Exact {
    fn from(members: &Members) -> Self {
        let configs = members.get_joint_config().iter().map(|config| Config {
            voters: config.iter().copied().collect(),
        });
        let nodes = members.nodes().map(|(id, member)| Node {
            id: *id,
            directory: member.directory,
            endpoints: member.endpoints.iter().map(Endpoint::from).collect(),
        });
        Self {
            configs: configs.collect(),
            nodes: nodes.collect(),
        }
    }
}

impl From<Exact> for Members {
    fn from(exact: Exact) -> Self {
        let configs = exact.configs.into_iter();
        let configs = configs.map(|config| config.voters.into_iter().collect());
        let nodes: BTreeMap<i32, Member> = exact
            .nodes
            .into_iter()
            .map(|node| {
                let member = Member {
                    directory: node.directory,
                    endpoints: node.endpoints.into_iter().map(Into::into).collect(),
                };
                (node.id, member)
            })
            .collect();
        Self::new(configs.collect(), nodes)
    }
}

impl From<&VoterEndpoint> for Endpoint {
    fn from(endpoint: &VoterEndpoint) -> Self {
        Self {
            name: endpoint.name.clone(),
            host: endpoint.host.clone(),
            port: endpoint.port,
        }
    }
}

impl From<Endpoint> for VoterEndpoint {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            name: endpoint.name,
            host: endpoint.host,
            port: endpoint.port,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joint() -> Members {
        let member = Member {
            directory: Uuid::ONE,
            endpoints: vec![VoterEndpoint {
                name: "CONTROLLER".into(),
                host: "localhost".into(),
                port: 9093,
            }],
        };
        let nodes: BTreeMap<i32, Member> = (1..=4).map(|id| (id, member.clone())).collect();
        Members::new(vec![[1].into(), [1, 2, 3].into()], nodes)
    }

    #[test]
    fn the_exact_membership_survives_at_either_kraft_version() {
        for kraft_version in [0, 1] {
            let bytes = membership(&joint(), kraft_version, 5);
            let batch = Batch::parse(&bytes).unwrap();
            assert_eq!(batch.header.is_control(), kraft_version == 1);
            assert_eq!(members_in(&batch), Some(joint()));
        }
    }

    #[test]
    fn kafkas_list_of_voters_is_a_membership() {
        let record = ControlRecord::Voters(voters_of(&joint()));
        let bytes = control_batch(&[(record.key(), record.value())], 5);
        let members = members_in(&Batch::parse(&bytes).unwrap()).unwrap();
        assert_eq!(members.voter_ids().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(members.get_node(&2), joint().get_node(&2));
    }

    #[test]
    fn other_batches_name_no_members() {
        let bytes = leader_change(1, &joint(), 5);
        assert_eq!(members_in(&Batch::parse(&bytes).unwrap()), None);
        let bytes = data_batch(&[Record::NoOp(NoOpRecord::default())], 5);
        assert_eq!(members_in(&Batch::parse(&bytes).unwrap()), None);
    }
}
