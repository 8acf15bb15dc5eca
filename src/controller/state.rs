//! What the controller knows: the image, its settings, and what is soft.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::{DirectoryId, NodeId, Uuid};
use crate::machine::Now;
use crate::metadata::image::Image;
use crate::metadata::image::topics::{Partition, Topic};
use crate::metadata::record::{NoOpRecord, PartitionChangeRecord, Record};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{Election, WriteRecords};
use super::change::Change;
use super::configs::ConfigRules;
use super::sessions::{Deadline, Sessions};
use super::{Decided, Decision};

/// What does not change while a controller runs, and its sources of chance.
pub(crate) struct Settings {
    pub(crate) node_id: NodeId,
    pub(crate) cluster_id: String,
    /// The other controllers; they must be registered before a feature is raised.
    pub(crate) voters: Vec<NodeId>,
    /// broker.session.timeout.ms
    pub(crate) session_timeout: Duration,
    /// num.partitions
    pub(crate) num_partitions: i32,
    /// default.replication.factor
    pub(crate) default_replication_factor: i16,
    /// min.insync.replicas of this node's file
    pub(crate) min_insync_replicas: i32,
    /// unclean.leader.election.enable of this node's file
    pub(crate) unclean_leader_election: bool,
    /// leader.imbalance.check.interval.seconds; `None` unless auto.leader.rebalance.enable
    pub(crate) balance_interval: Option<Duration>,
    /// unclean.leader.election.interval.ms
    pub(crate) unclean_election_interval: Duration,
    /// metadata.max.idle.interval.ms; `None` for 0
    pub(crate) max_idle: Option<Duration>,
    /// What options may be set to.
    pub(crate) rules: Box<dyn ConfigRules>,
    /// A random id that Kafka may give to a topic.
    pub(crate) uuid: Box<dyn Fn() -> Uuid + Send + Sync>,
    /// A random number below a bound.
    pub(crate) below: Box<dyn Fn(u64) -> u64 + Send + Sync>,
}

/// The most records that one request may lead to (QuorumController.MAX_RECORDS_PER_USER_OP).
pub(super) const MAX_RECORDS: usize = 10_000;
/// The most partitions that a round of elections changes (ReplicationControlManager).
pub(super) const MAX_ELECTIONS: usize = 1_000;

pub(super) const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";
const UNCLEAN_LEADER_ELECTION: &str = "unclean.leader.election.enable";

/// The image and what is soft.
pub(super) struct State {
    pub(super) image: Image,
    pub(super) settings: Arc<Settings>,
    pub(super) sessions: Sessions,
}

/// A broker whose state is about to change: the image does not show it yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// It leaves the in-sync replicas and may not lead.
    pub(super) leaves: Option<NodeId>,
    /// It may lead although the image shows it fenced.
    pub(super) comes: Option<NodeId>,
    /// It went down without a clean stop: nor is it eligible.
    pub(super) lost: Option<NodeId>,
}

impl State {
    pub(super) fn new(image: Image, settings: Arc<Settings>, now: Now) -> Self {
        let mut sessions = Sessions::new(settings.session_timeout);
        for broker in image.brokers.sorted() {
            sessions.register(broker.id, broker.fenced, true);
            if !broker.fenced {
                sessions.heard(broker.id, now.instant);
            }
        }
        let rounds = [
            (Deadline::Balance, settings.balance_interval),
            (
                Deadline::UncleanElection,
                Some(settings.unclean_election_interval),
            ),
            (Deadline::Idle, settings.max_idle),
        ];
        for (round, interval) in rounds {
            if let Some(interval) = interval {
                sessions.timers.set(round, now.instant + interval);
            }
        }
        Self {
            image,
            settings,
            sessions,
        }
    }

    /// Moves the committed offset on while nothing happens, so that followers can tell a quiet
    /// cluster from a lost one (KIP-835).
    pub(super) fn write_no_op(&mut self, now: Now) -> Vec<Record> {
        if let Some(interval) = self.settings.max_idle {
            self.sessions
                .timers
                .set(Deadline::Idle, now.instant + interval);
        }
        vec![NoOpRecord::default().into()]
    }

    pub(super) fn write_records(asked: WriteRecords) -> Decided<()> {
        Ok(Decision {
            records: within_limit(asked.records)?,
            reply: (),
        })
    }

    /// The in-sync replicas that a topic needs, never more than it has replicas.
    pub(super) fn min_isr(&self, topic: &Topic) -> usize {
        let set = self
            .image
            .topic_option(&topic.name, self.settings.node_id, MIN_INSYNC_REPLICAS);
        let wanted = set.and_then(|value| value.trim().parse().ok());
        let wanted = wanted.unwrap_or(self.settings.min_insync_replicas);
        let replicas = topic
            .partitions
            .values()
            .next()
            .map_or(0, |p| p.replicas.len());
        usize::try_from(wanted).unwrap_or(0).min(replicas)
    }

    /// Whether a topic would rather lose data than be without a leader.
    pub(super) fn unclean_election(&self, topic: &str) -> bool {
        let set = self
            .image
            .topic_option(topic, self.settings.node_id, UNCLEAN_LEADER_ELECTION);
        set.map_or(self.settings.unclean_leader_election, |value| {
            value.trim().eq_ignore_ascii_case("true")
        })
    }

    /// The election that a change of a topic's partition entails.
    pub(super) fn usual_election(&self, topic: &str) -> Election {
        if self.unclean_election(topic) {
            Election::Unclean
        } else {
            Election::Online
        }
    }

    /// Where a new replica on a broker is taken to be.
    pub(super) fn default_directory(&self, id: NodeId) -> DirectoryId {
        let broker = self.image.brokers.registration(id);
        broker.map_or(DirectoryId::UNASSIGNED, |broker| broker.default_directory())
    }

    /// Whether a broker may lead a partition during a turn.
    fn may_lead(
        &self,
        turn: Turn,
        partition: &Partition,
        id: NodeId,
        moves_to: Option<DirectoryId>,
    ) -> bool {
        if turn.leaves == Some(id) || turn.lost == Some(id) {
            return false;
        }
        let Some(broker) = self.image.brokers.registration(id) else {
            return false;
        };
        (turn.comes == Some(id) || broker.is_active())
            && [partition.directory(id), moves_to]
                .into_iter()
                .flatten()
                .any(|directory| broker.has_online_directory(directory))
    }

    /// Computes a change: `want` says what is wanted beyond what is.
    pub(super) fn change(
        &self,
        topic: &Topic,
        index: i32,
        partition: &Partition,
        turn: Turn,
        want: impl FnOnce(&mut Change<'_>),
    ) -> Option<PartitionChangeRecord> {
        let mut change = Change {
            partition,
            topic_id: topic.id,
            index,
            may_lead: &|id, moves_to| self.may_lead(turn, partition, id, moves_to),
            default_directory: &|id| self.default_directory(id),
            min_isr: self.min_isr(topic),
            elr_enabled: self.image.features.elr_enabled(),
            election: Election::Online,
            isr: partition.isr.clone(),
            replicas: partition.replicas.clone(),
            removing: partition.removing.clone(),
            adding: partition.adding.clone(),
            recovery: partition.recovery,
            unclean_shutdown: turn.lost,
            moved: HashMap::new(),
        };
        want(&mut change);
        change.record()
    }

    /// What a broker's turn makes of the partitions that `concerns` picks
    /// (ReplicationControlManager.generateLeaderAndIsrUpdates).
    pub(super) fn leader_and_isr_updates(
        &self,
        turn: Turn,
        concerns: impl Fn(&Partition) -> bool,
    ) -> Vec<Record> {
        let mut records = Vec::new();
        for topic in self.image.topics.sorted() {
            for (index, partition) in &topic.partitions {
                if !concerns(partition) {
                    continue;
                }
                let record = self.change(topic, *index, partition, turn, |change| {
                    change.election = self.usual_election(&topic.name);
                    change
                        .isr
                        .retain(|id| turn.leaves != Some(*id) && turn.lost != Some(*id));
                });
                records.extend(record.map(Record::from));
            }
        }
        records
    }

    /// Refuses a broker that is not registered under the epoch that it names.
    pub(super) fn check_broker_epoch(&self, id: NodeId, epoch: i64) -> Result<(), Refusal> {
        let words = match self.image.brokers.registration(id) {
            Some(broker) if broker.epoch == epoch => return Ok(()),
            Some(broker) => format!(
                "Expected broker epoch {}, but got broker epoch {epoch}",
                broker.epoch
            ),
            None => format!("No broker registration found for broker id {id}"),
        };
        Err(Refusal::new(ErrorCode::StaleBrokerEpoch, words))
    }
}

/// Refuses what would be too large for one append.
pub(super) fn within_limit(records: Vec<Record>) -> Result<Vec<Record>, Refusal> {
    if records.len() <= MAX_RECORDS {
        Ok(records)
    } else {
        Err(too_large())
    }
}

/// One append cannot hold what a request leads to.
pub(super) fn too_large() -> Refusal {
    let words = "Unable to perform excessively large batch operation.";
    Refusal::new(ErrorCode::PolicyViolation, words)
}
