//! Moving replicas: first the new ones are added, and when all that stay are in sync the old ones
//! are taken away (ReplicationControlManager.alterPartitionReassignments, KIP-455).

use crate::base::NodeId;
use crate::metadata::image::topics::{Partition, Topic};
use crate::metadata::record::{PartitionChangeRecord, Record};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{AlterReassignments, PerTopic, Reassignment};
use super::state::{State, Turn, within_limit};
use super::{Decided, Decision};

impl State {
    /// Begins, replaces or cancels moves, partition by partition.
    pub(super) fn alter_reassignments(
        &self,
        asked: &AlterReassignments,
    ) -> Decided<PerTopic<Result<(), Refusal>>> {
        let mut records = Vec::new();
        let mut reply = Vec::new();
        for (name, moves) in &asked.topics {
            let results = moves.iter().map(|to| {
                let allowed = asked.allow_replication_factor_change;
                let change = self.reassign(name, to, allowed);
                let result = change.map(|change| records.extend(change.map(Record::from)));
                (to.partition, result)
            });
            reply.push((name.clone(), results.collect()));
        }
        let records = within_limit(records)?;
        Ok(Decision { records, reply })
    }

    fn reassign(
        &self,
        name: &str,
        to: &Reassignment,
        factor_may_change: bool,
    ) -> Result<Option<PartitionChangeRecord>, Refusal> {
        let unknown = |words: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, words);
        let topic = self.image.topics.by_name(name);
        let topic =
            topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
        let index = to.partition;
        let partition = topic.partitions.get(&index);
        let partition = partition
            .ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
        match &to.replicas {
            None => self.cancel(topic, index, partition),
            Some(target) => {
                self.check_assignment(target, None)?;
                if !factor_may_change {
                    check_factor(partition, target)?;
                }
                Ok(self.begin(topic, index, partition, target))
            }
        }
    }

    fn begin(
        &self,
        topic: &Topic,
        index: i32,
        partition: &Partition,
        target: &[NodeId],
    ) -> Option<PartitionChangeRecord> {
        let removing = difference(&partition.replicas, target);
        let adding = difference(target, &partition.replicas);
        self.change(topic, index, partition, Turn::default(), |change| {
            change.replicas = target.iter().chain(&removing).copied().collect();
            // A move in the same direction goes on where it was.
            if !removing.is_empty() {
                change.removing = removing;
            }
            if !adding.is_empty() {
                change.adding = adding;
            }
        })
    }

    /// Takes away what a move was adding and keeps what it was removing.
    fn cancel(
        &self,
        topic: &Topic,
        index: i32,
        partition: &Partition,
    ) -> Result<Option<PartitionChangeRecord>, Refusal> {
        if !partition.is_reassigning() {
            return Err(Refusal::bare(ErrorCode::NoReassignmentInProgress));
        }
        let stays = |id: &NodeId| !partition.adding.contains(id);
        let replicas: Vec<_> = partition.replicas.iter().copied().filter(stays).collect();
        let mut isr: Vec<_> = partition.isr.iter().copied().filter(stays).collect();
        if isr.is_empty() {
            let name = &topic.name;
            let refuse = |words: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, words);
            let first = replicas.first().ok_or_else(|| {
                let words = "Invalid replica assignment: addingReplicas contains all replicas.";
                refuse(words.to_owned())
            })?;
            // Only replicas that are being added are in sync: going back loses data.
            if !self.unclean_election(name) {
                return Err(refuse(format!(
                    "Unable to revert partition assignment for {name}:{index} because it would \
                     require an unclean leader election."
                )));
            }
            isr.push(*first);
        }
        Ok(
            self.change(topic, index, partition, Turn::default(), |change| {
                change.election = self.usual_election(&topic.name);
                change.isr = isr;
                change.replicas = replicas;
                change.removing = Vec::new();
                change.adding = Vec::new();
            }),
        )
    }
}

fn check_factor(partition: &Partition, target: &[NodeId]) -> Result<(), Refusal> {
    let stays = |id: &&NodeId| !partition.removing.contains(id);
    let now = partition.replicas.iter().filter(stays).count();
    if now == target.len() {
        return Ok(());
    }
    let words = format!(
        "The replication factor is changed from {now} to {}",
        target.len()
    );
    Err(Refusal::new(ErrorCode::InvalidReplicationFactor, words))
}

/// What is in `a` and not in `b`, by id.
fn difference(a: &[NodeId], b: &[NodeId]) -> Vec<NodeId> {
    let mut left: Vec<_> = a.iter().copied().filter(|id| !b.contains(id)).collect();
    left.sort_unstable();
    left
}
