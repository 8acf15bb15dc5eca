//! Topics and partitions: replicas, leaders, in-sync and eligible replicas, reassignments.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{DirectoryId, FastMap, LeaderEpoch, NodeId, PartitionEpoch, TopicId};
use crate::metadata::changes::Changes;
use crate::metadata::record::{
    NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord, Record, TopicRecord,
};

use super::Contradiction;

/// All topics, by id and by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Topics {
    by_id: Arc<FastMap<TopicId, Arc<Topic>>>,
    by_name: Arc<FastMap<Arc<str>, TopicId>>,
}

/// A topic and its partitions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    pub(crate) id: TopicId,
    pub(crate) partitions: BTreeMap<i32, Arc<Partition>>,
}

/// Whether a leader has caught up with what an unclean election may have lost (KIP-704).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum LeaderRecovery {
    Recovered = 0,
    Recovering = 1,
}

/// Who holds a partition and who leads it (org.apache.kafka.metadata.PartitionRegistration).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// In order of preference; the first is the preferred leader.
    pub(crate) replicas: Vec<NodeId>,
    /// The log directory of each replica, in the same order.
    pub(crate) directories: Vec<DirectoryId>,
    pub(crate) isr: Vec<NodeId>,
    /// Eligible leader replicas: out of the ISR, yet they hold all that is committed (KIP-966).
    pub(crate) elr: Vec<NodeId>,
    /// The last leader, while there is none.
    pub(crate) last_known_elr: Vec<NodeId>,
    pub(crate) removing: Vec<NodeId>,
    pub(crate) adding: Vec<NodeId>,
    /// [`NO_LEADER`] when there is none.
    pub(crate) leader: NodeId,
    pub(crate) recovery: LeaderRecovery,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) partition_epoch: PartitionEpoch,
}

impl Topics {
    /// The topic of an id.
    pub(crate) fn by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// The topic of a name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name).and_then(|id| self.by_id.get(id))
    }

    /// The id of a name.
    pub(crate) fn id(&self, name: &str) -> Option<TopicId> {
        self.by_name.get(name).copied()
    }

    /// All topics, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_id.values()
    }

    /// All topics by name.
    pub(crate) fn sorted(&self) -> Vec<&Arc<Topic>> {
        let mut topics: Vec<_> = self.iter().collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        topics
    }

    /// How many topics there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn create(&mut self, record: &TopicRecord) -> Result<(), Contradiction> {
        if self.by_name.contains_key(&record.name) || self.by_id.contains_key(&record.topic_id) {
            return Err(Contradiction::DuplicateTopic(record.name.to_string()));
        }
        Arc::make_mut(&mut self.by_name).insert(record.name.clone(), record.topic_id);
        let topic = Topic {
            name: record.name.clone(),
            id: record.topic_id,
            partitions: BTreeMap::new(),
        };
        Arc::make_mut(&mut self.by_id).insert(record.topic_id, Arc::new(topic));
        Ok(())
    }

    pub(super) fn remove(&mut self, id: TopicId) -> Result<Arc<str>, Contradiction> {
        let topic = Arc::make_mut(&mut self.by_id)
            .remove(&id)
            .ok_or(Contradiction::UnknownTopic(id))?;
        Arc::make_mut(&mut self.by_name).remove(&topic.name);
        Ok(topic.name.clone())
    }

    pub(super) fn set_partition(&mut self, record: &PartitionRecord) -> Result<(), Contradiction> {
        let partition = Partition::from_record(record)?;
        self.topic_mut(record.topic_id)?
            .partitions
            .insert(record.partition_id, Arc::new(partition));
        Ok(())
    }

    pub(super) fn change_partition(
        &mut self,
        record: &PartitionChangeRecord,
    ) -> Result<(), Contradiction> {
        let (topic, index) = (record.topic_id, record.partition_id);
        let partition = self
            .topic_mut(topic)?
            .partitions
            .get_mut(&index)
            .ok_or(Contradiction::UnknownPartition(topic, index))?;
        *partition = Arc::new(partition.merge(record)?);
        Ok(())
    }

    /// Forgets eligible leader replicas of one topic, or of all by an empty name.
    pub(super) fn clear_elr(&mut self, name: &str, changes: &mut Changes) {
        let ids: Vec<TopicId> = if name.is_empty() {
            self.by_id.keys().copied().collect()
        } else {
            self.id(name).into_iter().collect()
        };
        for id in ids {
            let Some(topic) = self.by_id.get(&id) else {
                continue;
            };
            if !topic.partitions.values().any(|p| p.has_elr()) {
                continue;
            }
            let Ok(topic) = self.topic_mut(id) else {
                continue;
            };
            for (index, partition) in &mut topic.partitions {
                if partition.has_elr() {
                    let partition = Arc::make_mut(partition);
                    partition.elr.clear();
                    partition.last_known_elr.clear();
                    partition.partition_epoch.0 += 1;
                    changes.note_partition(id, *index);
                }
            }
        }
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        for topic in self.sorted() {
            out.push(Record::Topic(TopicRecord {
                name: topic.name.clone(),
                topic_id: topic.id,
            }));
            for (index, partition) in &topic.partitions {
                out.push(partition.to_record(topic.id, *index).into());
            }
        }
    }

    fn topic_mut(&mut self, id: TopicId) -> Result<&mut Topic, Contradiction> {
        Arc::make_mut(&mut self.by_id)
            .get_mut(&id)
            .map(Arc::make_mut)
            .ok_or(Contradiction::UnknownTopic(id))
    }
}

impl Partition {
    /// Reads a whole partition.
    pub(crate) fn from_record(record: &PartitionRecord) -> Result<Self, Contradiction> {
        // Records of before KIP-858 name no directories.
        let directories = if record.directories.is_empty() {
            vec![DirectoryId::MIGRATING; record.replicas.len()]
        } else {
            record.directories.clone()
        };
        let partition = Self {
            replicas: record.replicas.clone(),
            directories,
            isr: record.isr.clone(),
            elr: record.eligible_leader_replicas.clone().unwrap_or_default(),
            last_known_elr: record.last_known_elr.clone().unwrap_or_default(),
            removing: record.removing_replicas.clone(),
            adding: record.adding_replicas.clone(),
            leader: record.leader,
            recovery: LeaderRecovery::from_code(record.leader_recovery_state)?,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
        };
        partition.checked(record.topic_id, record.partition_id)
    }

    /// The partition after a change. A named leader, even the same one, begins a new leader epoch.
    pub(crate) fn merge(&self, change: &PartitionChangeRecord) -> Result<Self, Contradiction> {
        fn or<T: Clone>(new: Option<&Vec<T>>, old: &Vec<T>) -> Vec<T> {
            new.unwrap_or(old).clone()
        }
        let recovery = match change.leader_recovery_state {
            -1 => self.recovery,
            code => LeaderRecovery::from_code(code)?,
        };
        let (leader, leader_epoch) = match change.leader {
            NO_LEADER_CHANGE => (self.leader, self.leader_epoch),
            leader => (leader, LeaderEpoch(self.leader_epoch.0.wrapping_add(1))),
        };
        let partition = Self {
            replicas: or(change.replicas.as_ref(), &self.replicas),
            directories: or(change.directories.as_ref(), &self.directories),
            isr: or(change.isr.as_ref(), &self.isr),
            elr: or(change.eligible_leader_replicas.as_ref(), &self.elr),
            last_known_elr: or(change.last_known_elr.as_ref(), &self.last_known_elr),
            removing: or(change.removing_replicas.as_ref(), &self.removing),
            adding: or(change.adding_replicas.as_ref(), &self.adding),
            leader,
            recovery,
            leader_epoch,
            partition_epoch: PartitionEpoch(self.partition_epoch.0.wrapping_add(1)),
        };
        partition.checked(change.topic_id, change.partition_id)
    }

    /// The record that says all of this partition.
    pub(crate) fn to_record(&self, topic_id: TopicId, partition_id: i32) -> PartitionRecord {
        let some = |ids: &Vec<NodeId>| (!ids.is_empty()).then(|| ids.clone());
        PartitionRecord {
            partition_id,
            topic_id,
            replicas: self.replicas.clone(),
            isr: self.isr.clone(),
            removing_replicas: self.removing.clone(),
            adding_replicas: self.adding.clone(),
            leader: self.leader,
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            directories: self.directories.clone(),
            leader_recovery_state: self.recovery.code(),
            eligible_leader_replicas: some(&self.elr),
            last_known_elr: some(&self.last_known_elr),
        }
    }

    /// Whether somebody leads the partition.
    pub(crate) fn has_leader(&self) -> bool {
        self.leader != NO_LEADER
    }

    /// Whether the first replica leads.
    pub(crate) fn has_preferred_leader(&self) -> bool {
        self.replicas.first() == Some(&self.leader)
    }

    /// Whether replicas are being added or removed.
    pub(crate) fn is_reassigning(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// The log directory of a replica.
    pub(crate) fn directory(&self, node: NodeId) -> Option<DirectoryId> {
        let index = self.replicas.iter().position(|replica| *replica == node)?;
        self.directories.get(index).copied()
    }

    fn has_elr(&self) -> bool {
        !self.elr.is_empty() || !self.last_known_elr.is_empty()
    }

    fn checked(self, topic: TopicId, index: i32) -> Result<Self, Contradiction> {
        if self.replicas.len() == self.directories.len() {
            Ok(self)
        } else {
            Err(Contradiction::Directories(topic, index))
        }
    }
}

impl LeaderRecovery {
    /// The state as it is written.
    pub(crate) const fn code(self) -> i8 {
        match self {
            Self::Recovered => 0,
            Self::Recovering => 1,
        }
    }

    /// The state that a number stands for.
    pub(crate) fn from_code(code: i8) -> Result<Self, Contradiction> {
        match code {
            0 => Ok(Self::Recovered),
            1 => Ok(Self::Recovering),
            code => Err(Contradiction::InvalidCode(code, "leader recovery state")),
        }
    }
}
