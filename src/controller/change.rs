//! One partition change computed as a record: who leads, who is in sync, who is eligible
//! (org.apache.kafka.controller.PartitionChangeBuilder).
//!
//! Elections look in this order for a live replica: the in-sync replicas; the eligible ones while
//! nobody is in sync; the last known leader, alone and when both are empty, which counts as
//! unclean; any replica, when unclean elections are wanted (KIP-966).

use std::collections::{BTreeSet, HashMap};

use crate::base::{DirectoryId, NodeId, TopicId};
use crate::metadata::image::topics::{LeaderRecovery, Partition};
use crate::metadata::record::{NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord};

use super::ask::Election;

/// A change that is wanted of a partition; what is not said stays.
pub(super) struct Change<'a> {
    pub(super) partition: &'a Partition,
    pub(super) topic_id: TopicId,
    pub(super) index: i32,
    /// Whether a replica is alive, and the directory online that it is in or that it moves to.
    pub(super) may_lead: &'a dyn Fn(NodeId, Option<DirectoryId>) -> bool,
    /// Where a replica that is new to the partition is taken to be.
    pub(super) default_directory: &'a dyn Fn(NodeId) -> DirectoryId,
    pub(super) min_isr: usize,
    pub(super) elr_enabled: bool,
    pub(super) election: Election,
    pub(super) isr: Vec<NodeId>,
    pub(super) replicas: Vec<NodeId>,
    pub(super) removing: Vec<NodeId>,
    pub(super) adding: Vec<NodeId>,
    pub(super) recovery: LeaderRecovery,
    /// Replicas whose broker went down without a clean stop: they may have lost what they had.
    pub(super) unclean_shutdown: Option<NodeId>,
    pub(super) moved: HashMap<NodeId, DirectoryId>,
}

/// The outcome of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elected {
    leader: NodeId,
    unclean: bool,
}

impl Change<'_> {
    /// The record that makes the change, or `None` when nothing changes.
    pub(super) fn record(mut self) -> Option<PartitionChangeRecord> {
        let mut record = PartitionChangeRecord {
            partition_id: self.index,
            topic_id: self.topic_id,
            ..Default::default()
        };
        let untouched = record.clone();
        self.complete_reassignment();
        let mut elr = self.eligible();
        self.elect(&mut record, &mut elr);
        self.bump_epoch_when_replicas_leave(&mut record);
        self.record_elr(&mut record, elr);
        self.record_isr(&mut record);
        self.record_last_known_leader(&mut record);
        self.record_assignment(&mut record);
        if self.recovery != self.partition.recovery {
            record.leader_recovery_state = self.recovery.code();
        }
        (record != untouched).then_some(record)
    }

    /// A reassignment is complete once all that stay are in sync
    /// (PartitionReassignmentReplicas.maybeCompleteReassignment).
    fn complete_reassignment(&mut self) {
        if self.removing.is_empty() && self.adding.is_empty() {
            return;
        }
        let stays = |id: &NodeId| !self.removing.contains(id);
        let isr: Vec<_> = self.isr.iter().copied().filter(stays).collect();
        let replicas: Vec<_> = self.replicas.iter().copied().filter(stays).collect();
        let nobody_left = isr.is_empty() && !self.removing.is_empty();
        if nobody_left || replicas.is_empty() || !replicas.iter().all(|id| isr.contains(id)) {
            return;
        }
        self.isr = isr;
        self.replicas = replicas;
        self.removing.clear();
        self.adding.clear();
    }

    /// Who would be eligible: all that were in sync or eligible and no longer are in sync, while
    /// the in-sync replicas are too few.
    fn eligible(&self) -> Vec<NodeId> {
        if !self.elr_enabled {
            return self.partition.elr.clone();
        }
        if self.isr.len() >= self.min_isr {
            return Vec::new();
        }
        let candidates: BTreeSet<_> = self
            .partition
            .elr
            .iter()
            .chain(&self.partition.isr)
            .collect();
        candidates
            .into_iter()
            .copied()
            .filter(|id| !self.isr.contains(id) && self.unclean_shutdown != Some(*id))
            .collect()
    }

    fn elect(&mut self, record: &mut PartitionChangeRecord, elr: &mut Vec<NodeId>) {
        let elected = self.winner(elr);
        if elected.leader == self.partition.leader {
            return;
        }
        if elr.contains(&elected.leader) {
            self.isr = vec![elected.leader];
            elr.retain(|id| *id != elected.leader);
        }
        record.leader = elected.leader;
        if elected.unclean {
            // What others had beyond the new leader is lost.
            record.isr = Some(vec![elected.leader]);
            if self.partition.recovery != LeaderRecovery::Recovering {
                record.leader_recovery_state = LeaderRecovery::Recovering.code();
            }
        }
    }

    fn winner(&self, elr: &[NodeId]) -> Elected {
        let valid = |id: &NodeId| self.is_valid_leader(*id, elr);
        let clean = |leader| Elected {
            leader,
            unclean: false,
        };
        let unclean = |leader| Elected {
            leader,
            unclean: true,
        };
        let preferred = self
            .replicas
            .first()
            .filter(|_| self.election == Election::Preferred);
        let candidates = preferred.into_iter();
        let candidates = candidates
            .chain([&self.partition.leader])
            .chain(&self.replicas);
        if let Some(leader) = candidates.copied().find(valid) {
            return clean(leader);
        }
        if let Some(leader) = self.last_known_leader(elr) {
            return unclean(leader);
        }
        if self.election == Election::Unclean
            && let Some(leader) = self.replicas.iter().find(|id| self.may_lead(**id))
        {
            return unclean(*leader);
        }
        clean(NO_LEADER)
    }

    fn is_valid_leader(&self, id: NodeId, elr: &[NodeId]) -> bool {
        let in_sync = self.isr.contains(&id);
        (in_sync || (self.isr.is_empty() && elr.contains(&id))) && self.may_lead(id)
    }

    fn may_lead(&self, id: NodeId) -> bool {
        (self.may_lead)(id, self.moved.get(&id).copied())
    }

    fn last_known_leader(&self, elr: &[NodeId]) -> Option<NodeId> {
        if !self.elr_enabled || !elr.is_empty() || !self.isr.is_empty() {
            return None;
        }
        match self.partition.last_known_elr[..] {
            [only] if self.may_lead(only) => Some(only),
            _ => None,
        }
    }

    /// Followers that leave must be fenced off even when the leader stays.
    fn bump_epoch_when_replicas_leave(&self, record: &mut PartitionChangeRecord) {
        let stay = |id| self.replicas.contains(id);
        if record.leader == NO_LEADER_CHANGE && !self.partition.replicas.iter().all(stay) {
            record.leader = self.partition.leader;
        }
    }

    fn record_elr(&self, record: &mut PartitionChangeRecord, elr: Vec<NodeId>) {
        let clean = record.isr.is_none();
        let elr = if clean && self.elr_enabled {
            elr
        } else {
            Vec::new()
        };
        if elr != self.partition.elr {
            record.eligible_leader_replicas = Some(elr);
        }
    }

    /// Only with eligible leader replicas may nobody be in sync; without, the last one stays.
    fn record_isr(&self, record: &mut PartitionChangeRecord) {
        let may_be_empty = self.elr_enabled || !self.isr.is_empty();
        if record.isr.is_none() && may_be_empty && self.isr != self.partition.isr {
            record.isr = Some(self.isr.clone());
        }
    }

    fn record_last_known_leader(&self, record: &mut PartitionChangeRecord) {
        if !self.elr_enabled {
            return;
        }
        let before = &self.partition.last_known_elr;
        let led = self.partition.leader;
        let stays_led = led != NO_LEADER && record.leader != NO_LEADER;
        if record.isr.as_ref().is_some_and(Vec::is_empty) && *before != [led] {
            record.last_known_elr = Some(vec![led]);
        } else if (record.leader.0 >= 0 || stays_led) && !before.is_empty() {
            record.last_known_elr = Some(Vec::new());
        }
    }

    fn record_assignment(&self, record: &mut PartitionChangeRecord) {
        if !self.replicas.is_empty() {
            let directories: Vec<_> = self.replicas.iter().map(|id| self.directory(*id)).collect();
            if directories != self.partition.directories {
                record.directories = Some(directories);
            }
            if self.replicas != self.partition.replicas {
                record.replicas = Some(self.replicas.clone());
            }
        }
        if self.removing != self.partition.removing {
            record.removing_replicas = Some(self.removing.clone());
        }
        if self.adding != self.partition.adding {
            record.adding_replicas = Some(self.adding.clone());
        }
    }

    fn directory(&self, id: NodeId) -> DirectoryId {
        let moved = self.moved.get(&id).copied();
        let known = moved.or_else(|| self.partition.directory(id));
        known.unwrap_or_else(|| (self.default_directory)(id))
    }
}
