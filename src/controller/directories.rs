//! Which log directory holds a replica, and directories that fail (KIP-858).

use std::collections::HashSet;

use tracing::warn;

use crate::base::{DirectoryId, NodeId, TopicId};
use crate::metadata::image::topics::Partition;
use crate::metadata::record::Record;
use crate::protocol::error::ErrorCode;

use super::ask::{AssignReplicas, BrokerEpoch, PerTopicId};
use super::brokers::change;
use super::state::{State, Turn};
use super::{Decided, Decision};

impl State {
    /// Directories that a broker lost: replicas in them leave every ISR. Nothing when all were
    /// lost before.
    pub(super) fn offline(
        &self,
        id: NodeId,
        epoch: BrokerEpoch,
        offline: &[DirectoryId],
    ) -> Vec<Record> {
        let Some(broker) = self.image.brokers.registration(id) else {
            return Vec::new();
        };
        let (lost, left): (Vec<DirectoryId>, Vec<DirectoryId>) =
            broker.directories.iter().partition(|d| offline.contains(d));
        if lost.is_empty() {
            return Vec::new();
        }
        warn!(broker = %id, ?lost, "log directories of the broker are offline");
        let mut records = self.without_where(id, |partition| {
            partition.directory(id).is_some_and(|d| lost.contains(&d))
        });
        records.push(change(id, epoch, |change| change.log_dirs = left));
        records
    }

    fn without_where(&self, id: NodeId, concerns: impl Fn(&Partition) -> bool) -> Vec<Record> {
        let turn = Turn {
            leaves: Some(id),
            ..Turn::default()
        };
        self.leader_and_isr_updates(turn, concerns)
    }

    /// A broker says in which directories its replicas are.
    pub(super) fn assign_replicas(
        &self,
        asked: &AssignReplicas,
    ) -> Decided<Vec<(DirectoryId, PerTopicId<ErrorCode>)>> {
        let id = asked.broker_id;
        self.check_broker_epoch(id, asked.broker_epoch)?;
        let mut records = Vec::new();
        let mut reply = Vec::new();
        let mut gone = HashSet::new();
        for (directory, topics) in &asked.directories {
            let broker = self.image.brokers.registration(id);
            let online = broker.is_some_and(|b| b.has_online_directory(*directory));
            let mut told = Vec::new();
            for (topic, indexes) in topics {
                let results = indexes.iter().map(|index| {
                    let result = self.assign(id, *directory, *topic, *index, &mut records);
                    if result == ErrorCode::None && !online {
                        gone.insert((*topic, *index));
                    }
                    (*index, result)
                });
                told.push((*topic, results.collect()));
            }
            reply.push((*directory, told));
        }
        records.extend(self.leave(id, &gone));
        Ok(Decision { records, reply })
    }

    fn assign(
        &self,
        id: NodeId,
        directory: DirectoryId,
        topic: TopicId,
        index: i32,
        records: &mut Vec<Record>,
    ) -> ErrorCode {
        let Some(topic) = self.image.topics.by_id(topic) else {
            return ErrorCode::UnknownTopicId;
        };
        let Some(partition) = topic.partitions.get(&index) else {
            return ErrorCode::UnknownTopicOrPartition;
        };
        if !partition.replicas.contains(&id) {
            return ErrorCode::NotLeaderOrFollower;
        }
        let change = self.change(topic, index, partition, Turn::default(), |change| {
            change.moved.insert(id, directory);
        });
        records.extend(change.map(Record::from));
        ErrorCode::None
    }

    fn leave(&self, id: NodeId, partitions: &HashSet<(TopicId, i32)>) -> Vec<Record> {
        let turn = Turn {
            leaves: Some(id),
            ..Turn::default()
        };
        let found = partitions.iter().filter_map(|(topic, index)| {
            let topic = self.image.topics.by_id(*topic)?;
            Some((topic, *index, topic.partitions.get(index)?))
        });
        let changes = found.filter_map(|(topic, index, partition)| {
            self.change(topic, index, partition, turn, |change| {
                change.election = self.usual_election(&topic.name);
                change.isr.retain(|replica| *replica != id);
            })
        });
        changes.map(Record::from).collect()
    }
}
