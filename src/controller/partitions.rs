//! In-sync replicas as leaders see them, and elections on request or by the clock
//! (ReplicationControlManager).

use std::sync::Arc;
use std::time::Duration;

use tracing::info;

use crate::base::NodeId;
use crate::machine::Now;
use crate::metadata::image::topics::{LeaderRecovery, Partition, Topic};
use crate::metadata::record::{NO_LEADER_CHANGE, Record};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{
    AlterPartition, BrokerEpoch, ElectLeaders, Election, NewIsr, PartitionState, PerTopic,
    PerTopicId,
};
use super::sessions::Deadline;
use super::state::{MAX_ELECTIONS, State, Turn, within_limit};
use super::{Decided, Decision};

impl State {
    /// A leader says who is in sync.
    pub(super) fn alter_partition(
        &self,
        asked: &AlterPartition,
    ) -> Decided<PerTopicId<Result<PartitionState, ErrorCode>>> {
        self.check_broker_epoch(asked.broker_id, asked.broker_epoch)?;
        let mut records = Vec::new();
        let mut reply = Vec::new();
        for (id, partitions) in &asked.topics {
            let topic = self.image.topics.by_id(*id);
            let altered = partitions.iter().map(|new| {
                let altered = topic
                    .ok_or(ErrorCode::UnknownTopicId)
                    .and_then(|topic| self.alter_isr(asked.broker_id, topic, new, &mut records));
                (new.partition, altered)
            });
            reply.push((*id, altered.collect()));
        }
        Ok(Decision { records, reply })
    }

    fn alter_isr(
        &self,
        leader: NodeId,
        topic: &Topic,
        new: &NewIsr,
        records: &mut Vec<Record>,
    ) -> Result<PartitionState, ErrorCode> {
        let partition = topic.partitions.get(&new.partition);
        let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let recovery = self.check_new_isr(leader, partition, new)?;
        let change = self.change(topic, new.partition, partition, Turn::default(), |change| {
            change.election = self.usual_election(&topic.name);
            change.isr = new.isr.iter().map(|(id, _)| *id).collect();
            change.recovery = recovery;
        });
        let Some(change) = change else {
            return Ok(state_of(partition));
        };
        let changed = partition
            .merge(&change)
            .map_err(|_| ErrorCode::InvalidRequest)?;
        let deposed = change.leader != leader && change.leader != NO_LEADER_CHANGE;
        records.push(change.into());
        // The end of a reassignment may take the leader's place from it; it is told to look anew,
        // although the change is made.
        if deposed {
            return Err(ErrorCode::NewLeaderElected);
        }
        Ok(state_of(&changed))
    }

    fn check_new_isr(
        &self,
        leader: NodeId,
        partition: &Partition,
        new: &NewIsr,
    ) -> Result<LeaderRecovery, ErrorCode> {
        // Who knows more than the controller does is talking to one that was replaced.
        if new.leader_epoch > partition.leader_epoch
            || new.partition_epoch > partition.partition_epoch
        {
            return Err(ErrorCode::NotController);
        }
        if new.leader_epoch < partition.leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if leader != partition.leader {
            return Err(ErrorCode::InvalidRequest);
        }
        if new.partition_epoch < partition.partition_epoch {
            return Err(ErrorCode::InvalidUpdateVersion);
        }
        let recovery = LeaderRecovery::from_code(new.leader_recovery_state)
            .map_err(|_| ErrorCode::InvalidRequest)?;
        let recovering = recovery == LeaderRecovery::Recovering;
        if !is_valid_isr(partition, new)
            || (recovering && new.isr.len() > 1)
            || (recovering && partition.recovery == LeaderRecovery::Recovered)
        {
            return Err(ErrorCode::InvalidRequest);
        }
        if !new
            .isr
            .iter()
            .all(|(id, epoch)| self.is_eligible_for_isr(*id, *epoch))
        {
            return Err(ErrorCode::IneligibleReplica);
        }
        Ok(recovery)
    }

    /// A replica may join while its broker is active and the one that fetched (KIP-903).
    fn is_eligible_for_isr(&self, id: NodeId, epoch: BrokerEpoch) -> bool {
        let broker = self.image.brokers.registration(id);
        broker.is_some_and(|broker| broker.is_active() && (epoch == -1 || epoch == broker.epoch))
    }

    /// Elects leaders on request.
    pub(super) fn elect_leaders(
        &self,
        asked: &ElectLeaders,
    ) -> Decided<PerTopic<Result<(), Refusal>>> {
        let mut records = Vec::new();
        let mut elect = |topic: &str, index: i32| {
            let elected = self.elect_leader(topic, index, asked.election);
            (index, elected.map(|record| records.push(record)))
        };
        let reply = match &asked.partitions {
            Some(topics) => topics
                .iter()
                .map(|(topic, indexes)| {
                    let elected = indexes.iter().map(|index| elect(topic, *index));
                    (topic.clone(), elected.collect())
                })
                .collect(),
            None => self
                .image
                .topics
                .sorted()
                .into_iter()
                .map(|topic| {
                    let elected = topic
                        .partitions
                        .keys()
                        .map(|index| elect(&topic.name, *index));
                    // Nobody asked for those in particular.
                    let told = elected.filter(|(_, elected)| !is_not_needed(elected));
                    (topic.name.to_string(), told.collect())
                })
                .collect(),
        };
        let records = within_limit(records)?;
        Ok(Decision { records, reply })
    }

    fn elect_leader(&self, name: &str, index: i32, election: Election) -> Result<Record, Refusal> {
        let unknown = |words: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, words);
        let topic = self.image.topics.by_name(name);
        let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
        let partition = topic.partitions.get(&index);
        let partition =
            partition.ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
        let (needed, failure) = match election {
            Election::Preferred => (
                !partition.has_preferred_leader(),
                ErrorCode::PreferredLeaderNotAvailable,
            ),
            Election::Unclean | Election::Online => (
                !partition.has_leader(),
                ErrorCode::EligibleLeadersNotAvailable,
            ),
        };
        if !needed {
            return Err(Refusal::bare(ErrorCode::ElectionNotNeeded));
        }
        self.change(topic, index, partition, Turn::default(), |change| {
            change.election = election;
        })
        .map(Record::from)
        .ok_or_else(|| Refusal::bare(failure))
    }

    /// Brings leaders back to the preferred replicas, a bounded number at a time.
    pub(super) fn balance_leaders(&mut self, now: Now) -> Vec<Record> {
        let records = self.elect_where(Election::Preferred, |_, partition| {
            !partition.has_preferred_leader()
        });
        self.again(
            now,
            Deadline::Balance,
            self.settings.balance_interval,
            &records,
        );
        records
    }

    /// Looks again at partitions without a leader whose topics would rather lose data.
    pub(super) fn elect_leaderless(&mut self, now: Now) -> Vec<Record> {
        let records = self.elect_where(Election::Unclean, |topic, partition| {
            !partition.has_leader() && self.unclean_election(&topic.name)
        });
        let interval = Some(self.settings.unclean_election_interval);
        self.again(now, Deadline::UncleanElection, interval, &records);
        records
    }

    fn elect_where(
        &self,
        election: Election,
        concerns: impl Fn(&Topic, &Partition) -> bool,
    ) -> Vec<Record> {
        let partitions = |topic: &Arc<Topic>| {
            let topic = Arc::clone(topic);
            let partitions: Vec<_> = topic.partitions.clone().into_iter().collect();
            partitions
                .into_iter()
                .map(move |(index, p)| (Arc::clone(&topic), index, p))
        };
        let all = self.image.topics.sorted().into_iter().flat_map(partitions);
        let records: Vec<_> = all
            .filter(|(topic, _, partition)| concerns(topic, partition))
            .filter_map(|(topic, index, partition)| {
                self.change(&topic, index, &partition, Turn::default(), |change| {
                    change.election = election;
                })
            })
            .take(MAX_ELECTIONS)
            .map(Record::from)
            .collect();
        if !records.is_empty() {
            info!(?election, partitions = records.len(), "leaders are elected");
        }
        records
    }

    /// Sets the next round; at once when this one was full.
    fn again(&mut self, now: Now, round: Deadline, interval: Option<Duration>, records: &[Record]) {
        let Some(interval) = interval else { return };
        let full = records.len() >= MAX_ELECTIONS;
        let at = if full {
            now.instant
        } else {
            now.instant + interval
        };
        self.sessions.timers.set(round, at);
    }
}

fn is_not_needed(elected: &Result<(), Refusal>) -> bool {
    matches!(elected, Err(refusal) if refusal.code == ErrorCode::ElectionNotNeeded)
}

/// Replicas of the partition, none twice, the leader among them.
fn is_valid_isr(partition: &Partition, new: &NewIsr) -> bool {
    let mut ids: Vec<_> = new.isr.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    let distinct = ids.windows(2).all(|pair| pair[0] != pair[1]);
    distinct
        && ids.iter().all(|id| partition.replicas.contains(id))
        && ids.contains(&partition.leader)
}

fn state_of(partition: &Partition) -> PartitionState {
    PartitionState {
        leader: partition.leader,
        leader_epoch: partition.leader_epoch,
        isr: partition.isr.clone(),
        leader_recovery_state: partition.recovery.code(),
        partition_epoch: partition.partition_epoch,
    }
}
