//! The machine of `__consumer_offsets`: the groups of one partition of it, and their offsets.
//!
//! - `ask`: what it may be asked. - `records`: the schemas of its records.
//! - `group`: what kinds of group there are, and every question whose answer depends on the kind.
//! - `classic`: members join and leave. - `rebalance`: the barrier, syncs and heartbeats.
//! - `classic_state`: a classic group.
//! - `offsets`: commit, fetch, delete, expire. - `describe`: what operators see and remove.
//! - `consumer`: what a heartbeat of the consumer protocol comes to. - `members`: carries it out.
//! - `consumer_ask`, `consumer_state`: what is asked of a consumer group, and what it is.
//! - `reconcile`: from what a member owns to what it shall own. - `assign`: server-side assignors.
//! - `subscription`: topics, their hash, patterns looked up. - `re2`: how patterns are read.
//! - `migrate`: groups that change their protocol. - `mixed`: members of both in one group.
//!
//! Offsets and the records of groups are hard state. Who waits for a rebalance, and a generation
//! that has no assignment yet, is soft: Kafka does not write it either, and members join again
//! when it is lost.

pub(crate) mod ask;
pub(crate) mod assign;
mod classic;
mod classic_state;
#[cfg(test)]
mod classic_test;
mod consumer;
pub(crate) mod consumer_ask;
mod consumer_state;
#[cfg(test)]
mod consumer_story;
#[cfg(test)]
mod consumer_test;
#[cfg(test)]
mod consumer_world_test;
mod describe;
#[expect(clippy::module_inception, reason = "the field's name for it")]
mod group;
mod members;
mod migrate;
#[cfg(test)]
mod migrate_test;
mod mixed;
pub(crate) mod offsets;
#[cfg(test)]
mod offsets_test;
mod re2;
mod rebalance;
mod reconcile;
pub(crate) mod records;
#[cfg(test)]
pub(super) mod story;
pub(crate) mod subscription;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::ask::{Answer, Event};
use self::consumer_state::Known;
use self::group::Group;
use self::offsets::Offsets;
use self::records::GroupRecord;
use crate::base::timers::Timers;
use crate::base::{FastMap, Uuid};
use crate::config::options::Options;
use crate::machine::{Machine, Now, Outcome, Ticket};
use crate::metadata::image::Image;

/// The cluster as this broker knows it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) image: Arc<Image>,
    /// The offset of the last record of the metadata in it.
    pub(crate) version: i64,
}

/// What the machine takes from its surroundings.
pub(crate) struct Settings {
    pub(crate) options: Arc<Options>,
    /// The cluster as this broker knows it now.
    pub(crate) view: Box<dyn Fn() -> View + Send + Sync>,
    /// Ids for members.
    pub(crate) uuid: Box<dyn Fn() -> Uuid + Send + Sync>,
    /// The most bytes that a record may have.
    pub(crate) record_bytes_max: usize,
}

/// The groups of one partition.
pub(crate) struct GroupMachine {
    groups: BTreeMap<Arc<str>, Group>,
    offsets: Offsets,
    timers: Timers<Deadline>,
    /// What consumer groups know of the cluster.
    known: FastMap<Arc<str>, Known>,
    settings: Arc<Settings>,
    /// Records make groups from nothing until all are read.
    is_loading: bool,
}

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Deadline {
    /// A member has not been heard of, or has not come back with its id.
    Session(Arc<str>, Arc<str>),
    /// A member of a consumer group has not given up what it was told to.
    Revocation(Arc<str>, Arc<str>),
    /// A member of the classic protocol in a consumer group has not joined when told to.
    MemberJoin(Arc<str>, Arc<str>),
    /// The same, and has not synced after it joined.
    MemberSync(Arc<str>, Arc<str>),
    /// A classic group waits no longer for members to join.
    Join(Arc<str>),
    /// A classic group waits no longer for members to sync.
    Sync(Arc<str>),
    /// Offsets are searched for those to forget.
    Expiry,
}

/// What the machine writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// A record that counts at once.
    Record(GroupRecord),
    /// A record that counts once its producer's transaction is committed.
    Pending(offsets::Producer, GroupRecord),
    /// The end of a transaction.
    End {
        producer: offsets::Producer,
        coordinator_epoch: i32,
        committed: bool,
    },
}

impl Deadline {
    /// The group and the member that it is for.
    fn member(self) -> Option<(Arc<str>, Arc<str>)> {
        match self {
            Self::Session(group, member)
            | Self::Revocation(group, member)
            | Self::MemberJoin(group, member)
            | Self::MemberSync(group, member) => Some((group, member)),
            Self::Join(_) | Self::Sync(_) | Self::Expiry => None,
        }
    }
}

/// What must be done outside.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Patterns of a group are to be looked up, see [`consumer_ask::TakeResolved`].
    LookUp {
        group: Arc<str>,
        patterns: Vec<Arc<str>>,
        view: View,
    },
}

/// One event being handled: when, for whom, and what it has led to so far.
pub(crate) struct Turn {
    pub(crate) now: Now,
    pub(crate) outcome: Outcome<GroupMachine>,
}

impl Turn {
    fn new(now: Now) -> Self {
        Self {
            now,
            outcome: Outcome::default(),
        }
    }

    /// Writes a record.
    pub(crate) fn write(&mut self, record: GroupRecord) {
        self.outcome.records.push(Entry::Record(record));
    }

    /// Answers a caller.
    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.outcome.answers.push((ticket, answer));
    }

    /// The instant that lies so many milliseconds ahead.
    pub(crate) fn after(&self, ms: i32) -> Instant {
        self.now.instant + Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    }
}

impl GroupMachine {
    /// A machine that has read nothing yet.
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self {
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            timers: Timers::default(),
            known: FastMap::default(),
            settings,
            is_loading: true,
        }
    }

    /// All records are read: deadlines run from here on. Nobody waits yet, so that nobody is
    /// answered, and nothing that was read is written again.
    pub(crate) fn begin(&mut self, now: Now) {
        self.is_loading = false;
        let mut turn = Turn::new(now);
        self.begin_classic(&mut turn);
        self.begin_consumers(&turn);
        if !self.groups.is_empty() {
            self.arm_expiry(now.instant);
        }
        debug_assert!(turn.outcome.records.is_empty() && turn.outcome.answers.is_empty());
    }

    /// The options in force.
    fn config(&self) -> &crate::config::BrokerConfig {
        self.settings.options.file()
    }
}

impl Machine for GroupMachine {
    type Event = Event;
    type Record = Entry;
    type Answer = Answer;
    type Effect = Effect;

    fn handle(&mut self, now: Now, ticket: Ticket, event: Event) -> Outcome<Self> {
        let mut turn = Turn::new(now);
        let answer = match event {
            Event::JoinGroup(ask) => {
                self.join(&mut turn, ticket, ask);
                None
            }
            Event::SyncGroup(ask) => {
                self.sync(&mut turn, ticket, ask);
                None
            }
            Event::Heartbeat(ask) => Some(Answer::Heartbeat(self.heartbeat(&turn, &ask))),
            Event::LeaveGroup(ask) => Some(Answer::LeaveGroup(self.leave(&mut turn, ask))),
            Event::CommitOffsets(ask) => Some(Answer::CommitOffsets(self.commit(&mut turn, ask))),
            Event::FetchOffsets(ask) => Some(Answer::FetchOffsets(self.fetch(&ask))),
            Event::DeleteOffsets(ask) => {
                Some(Answer::DeleteOffsets(self.delete_offsets(&mut turn, &ask)))
            }
            Event::ListGroups(ask) => Some(Answer::ListGroups(self.list(&ask))),
            Event::DescribeGroups(ask) => Some(Answer::DescribeGroups(self.describe(&ask))),
            Event::DeleteGroups(ask) => {
                Some(Answer::DeleteGroups(self.delete_groups(&mut turn, &ask)))
            }
            Event::ConsumerHeartbeat(ask) => Some(Answer::ConsumerHeartbeat(
                self.consumer_heartbeat(&mut turn, &ask),
            )),
            Event::DescribeConsumerGroups(ask) => Some(Answer::DescribeConsumerGroups(
                self.describe_consumers(&ask),
            )),
            Event::TakeResolved(ask) => {
                self.take_resolved(&mut turn, ask);
                Some(Answer::TakeResolved(()))
            }
            Event::ForgetTopics(ask) => {
                self.forget_topics(&mut turn, &ask);
                Some(Answer::ForgetTopics(()))
            }
        };
        if let Some(answer) = answer {
            turn.answer(ticket, answer);
        }
        if !turn.outcome.records.is_empty() {
            self.arm_expiry(now.instant);
        }
        turn.outcome
    }

    fn replay(&mut self, entry: &Entry) {
        match entry {
            Entry::Record(record) => self.replay_record(record),
            Entry::Pending(producer, record) => {
                self.offsets.hold(producer.id, record);
                self.keep_group(record.group());
            }
            Entry::End {
                producer,
                committed,
                ..
            } => self.end_transaction(producer.id, *committed),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn expire(&mut self, now: Now) -> Outcome<Self> {
        let mut turn = Turn::new(now);
        let mut fenced = members::Fenced::new();
        while let Some(deadline) = self.timers.pop_due(now.instant) {
            if self.is_overdue(&deadline) {
                if let Some((group, member)) = deadline.member() {
                    fenced.entry(group).or_default().push(member);
                }
                continue;
            }
            match deadline {
                Deadline::Session(group, member) => self.session_ends(&mut turn, &group, &member),
                Deadline::Join(group) => self.joining_ends(&mut turn, &group),
                Deadline::Sync(group) => self.syncing_ends(&mut turn, &group),
                Deadline::Expiry => self.expire_offsets(&mut turn),
                // Whom these were set for did what it was to do, or is gone.
                Deadline::Revocation(..) | Deadline::MemberJoin(..) | Deadline::MemberSync(..) => {}
            }
        }
        for (group, members) in fenced {
            tracing::info!(%group, ?members, "members are overdue and removed");
            self.fence(&mut turn, &group, &members);
        }
        turn.outcome
    }
}

impl GroupMachine {
    fn replay_record(&mut self, record: &GroupRecord) {
        match record {
            GroupRecord::OffsetCommit(key, value) => self.replay_commit(key, value.as_ref()),
            GroupRecord::GroupMetadata(key, value) => {
                self.replay_classic(&key.group, value.as_ref());
            }
            GroupRecord::ConsumerGroupMetadata(..)
            | GroupRecord::ConsumerGroupPartitionMetadata(..)
            | GroupRecord::ConsumerGroupMemberMetadata(..)
            | GroupRecord::ConsumerGroupTargetAssignmentMetadata(..)
            | GroupRecord::ConsumerGroupTargetAssignmentMember(..)
            | GroupRecord::ConsumerGroupCurrentMemberAssignment(..)
            | GroupRecord::ConsumerGroupRegularExpression(..) => self.replay_consumer(record),
        }
    }
}
