//! A shard of groups, told through the testkit; its stories are in the `_test` files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::ask::{
    Client, CommitOffsets, CommittedPartition, CommittedTopic, DeleteGroups, DeleteOffsets,
    DescribeGroups, DescribedGroup, FetchOffsets, FetchedOffset, Heartbeat, JoinGroup, Joined,
    LeaveGroup, LeavingMember, ListGroups, SyncGroup, Synced, WantedTopic,
};
use super::group::Group;
use super::offsets::{Producer, ProducerId};
use super::records::{GroupMetadataValue, GroupRecord, OffsetCommitKey, OffsetCommitValue};
use super::{Entry, GroupMachine, Settings, View};
use crate::base::{TopicId, Uuid};
use crate::config::BrokerConfig;
use crate::config::options::Options;
use crate::machine::ask::Ask;
use crate::machine::testkit::{Rehearsed, Story};
use crate::machine::{Now, Ticket};
use crate::metadata::image::Image;
use crate::protocol::error::{ErrorCode, Refusal};

/// What the records of a shard decide.
#[derive(Debug, PartialEq)]
pub(crate) struct Hard {
    groups: BTreeMap<Arc<str>, Written>,
    offsets: Vec<(OffsetCommitKey, OffsetCommitValue, Option<ProducerId>)>,
}

/// What the records of a group decide.
#[derive(Debug, PartialEq)]
pub(crate) enum Written {
    Classic(Option<GroupMetadataValue>),
    /// As a description and the records that would make the group.
    Consumer(String),
}

impl Rehearsed for GroupMachine {
    type Hard = Hard;

    fn hard(&self) -> Hard {
        // A group that has only given out ids is not written.
        let is_hard = |(_, group): &(&Arc<str>, &Group)| match group {
            Group::Classic(group) => !group.is_unwritten,
            Group::Consumer(_) => true,
        };
        let written = |(id, group): (&Arc<str>, &Group)| match group {
            Group::Classic(group) => (id.clone(), Written::Classic(group.written.clone())),
            Group::Consumer(group) => (id.clone(), Written::Consumer(group.told())),
        };
        Hard {
            groups: self.groups.iter().filter(is_hard).map(written).collect(),
            offsets: self.offsets.told(),
        }
    }

    fn reloaded(&self, records: &[Entry], now: Now) -> Self {
        let mut again = Self::new(self.settings.clone());
        for record in records {
            crate::machine::Machine::replay(&mut again, record);
        }
        again.begin(now);
        again
    }
}

/// The options of most stories: as Kafka's, with a first rebalance of three seconds.
pub(super) const KAFKAS: &[(&str, &str)] = &[("group.initial.rebalance.delay.ms", "3000")];

fn settings(options: &[(&str, &str)], cluster: Arc<Mutex<View>>) -> Arc<Settings> {
    let given: Vec<_> = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let (config, _) = BrokerConfig::from_properties(&given).unwrap();
    let next = AtomicU8::new(1);
    Arc::new(Settings {
        options: Arc::new(Options::new(config)),
        view: Box::new(move || cluster.lock().clone()),
        uuid: Box::new(move || Uuid([next.fetch_add(1, Ordering::Relaxed); 16])),
        record_bytes_max: 10_000,
    })
}

/// A machine that knows of no group, with the options of most stories.
pub(in crate::coordinator) fn empty_machine() -> GroupMachine {
    GroupMachine::new(settings(KAFKAS, nothing_known()))
}

/// A shard of groups being told about.
pub(super) struct Told {
    pub(super) story: Story<GroupMachine>,
    pub(super) cluster: Arc<Mutex<View>>,
    /// Which group the story speaks of.
    pub(super) group: Arc<str>,
    /// What the next joins bring.
    pub(super) wants: Wants,
}

/// What a member brings along when it joins.
#[derive(Clone)]
pub(super) struct Wants {
    pub(super) protocols: Vec<(&'static str, &'static str)>,
    pub(super) kind: &'static str,
    pub(super) instance: Option<&'static str>,
    pub(super) session: Duration,
    pub(super) rebalance: Duration,
    pub(super) version: i16,
}

impl Default for Wants {
    fn default() -> Self {
        Self {
            protocols: vec![("range", "of-range")],
            kind: "consumer",
            instance: None,
            session: secs(10),
            rebalance: secs(60),
            version: 9,
        }
    }
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(span: Duration) -> i32 {
    span.as_millis().try_into().unwrap()
}

pub(super) fn arc(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn nothing_known() -> Arc<Mutex<View>> {
    Arc::new(Mutex::new(View {
        image: Arc::new(Image::default()),
        version: 0,
    }))
}

/// A shard with these options.
pub(super) fn shard(options: &[(&str, &str)]) -> Told {
    let cluster = nothing_known();
    let settings = settings(options, cluster.clone());
    let story = Story::new(|now| {
        let mut machine = GroupMachine::new(settings);
        machine.begin(now);
        machine
    });
    Told {
        story,
        cluster,
        group: arc("g"),
        wants: Wants::default(),
    }
}

// What is said.
impl Told {
    pub(super) fn says<A: Ask<GroupMachine>>(&mut self, ask: A) -> Ticket {
        self.story.says(ask.into_event())
    }

    /// Says something that is answered at once.
    pub(super) fn asks<A: Ask<GroupMachine>>(&mut self, ask: A) -> A::Reply {
        let ticket = self.says(ask);
        let answer = self.story.answer(ticket).expect("an answer at once");
        A::reply(answer).expect("the answer to this")
    }

    /// A member with this id, or a new one, joins.
    pub(super) fn joins(&mut self, member: &str) -> Ticket {
        let wants = self.wants.clone();
        self.joins_as(member, &wants)
    }

    pub(super) fn joins_as(&mut self, member: &str, wants: &Wants) -> Ticket {
        let protocols = wants.protocols.iter();
        self.says(JoinGroup {
            group: self.group.clone(),
            member: arc(member),
            instance: wants.instance.map(arc),
            client: Client {
                id: arc("client"),
                host: arc("/127.0.0.1"),
            },
            session_timeout_ms: ms(wants.session),
            rebalance_timeout_ms: ms(wants.rebalance),
            protocol_type: arc(wants.kind),
            protocols: protocols
                .map(|(name, metadata)| (arc(name), Bytes::from_static(metadata.as_bytes())))
                .collect(),
            needs_member_id: wants.version >= 4,
            may_skip_assignment: wants.version >= 9,
        })
    }

    /// A member is given its id and comes back with it.
    pub(super) fn enters(&mut self) -> (Arc<str>, Ticket) {
        let first = self.joins("");
        let told = self.joined(first).expect("an id at once");
        assert_eq!(told.error, ErrorCode::MemberIdRequired);
        let ticket = self.joins(&told.member);
        (told.member, ticket)
    }

    /// A group of so many members, all of them in sync, the leader first.
    pub(super) fn stable(&mut self, count: usize) -> Vec<Arc<str>> {
        let entered: Vec<_> = (0..count).map(|_| self.enters()).collect();
        let mut members = Vec::new();
        for (member, ticket) in entered {
            let told = loop {
                match self.joined(ticket) {
                    Some(told) => break told,
                    None => self.story.sleeps(Duration::from_millis(10)),
                }
            };
            assert_eq!(told.error, ErrorCode::None);
            match told.leader == member {
                true => members.insert(0, member),
                false => members.push(member),
            }
        }
        self.all_sync(&members);
        members
    }

    /// Everybody syncs; the leader, who is the first, gives each its own name.
    pub(super) fn all_sync(&mut self, members: &[Arc<str>]) {
        let generation = self.generation();
        let waiting: Vec<_> = members[1..]
            .iter()
            .map(|member| self.syncs(member, generation, &[]))
            .collect();
        let of_leader = self.syncs(&members[0], generation, members);
        for (member, ticket) in members[1..].iter().zip(waiting) {
            assert_eq!(self.synced(ticket), Some(Ok(member.to_string())));
        }
        assert_eq!(self.synced(of_leader), Some(Ok(members[0].to_string())));
    }

    pub(super) fn syncs(&mut self, member: &str, generation: i32, all: &[Arc<str>]) -> Ticket {
        let named = |member: &Arc<str>| {
            let name = Bytes::copy_from_slice(member.as_bytes());
            (member.clone(), name)
        };
        self.says(SyncGroup {
            group: self.group.clone(),
            generation,
            member: arc(member),
            instance: None,
            protocol_type: None,
            protocol: None,
            assignments: all.iter().map(named).collect(),
        })
    }

    pub(super) fn beats(&mut self, member: &str, generation: i32) -> Result<(), ErrorCode> {
        self.asks(Heartbeat {
            group: self.group.clone(),
            generation,
            member: arc(member),
            instance: None,
        })
    }

    pub(super) fn leaves(&mut self, member: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        let left = self.asks(LeaveGroup {
            group: self.group.clone(),
            members: vec![LeavingMember {
                member: arc(member),
                instance: instance.map(arc),
            }],
        });
        left[0]
    }

    pub(super) fn commits(&mut self, member: &str, generation: i32, offset: i64) -> Committing {
        self.commits_for(member, generation, offset, None)
    }

    pub(super) fn commits_for(
        &mut self,
        member: &str,
        generation: i32,
        offset: i64,
        producer: Option<i64>,
    ) -> Committing {
        let ask = self.commit(member, generation, offset, producer);
        self.asks(ask).map(|told| told[0][0])
    }

    /// A commit for partition 0 of the topic `t`.
    pub(super) fn commit(
        &self,
        member: &str,
        generation: i32,
        offset: i64,
        producer: Option<i64>,
    ) -> CommitOffsets {
        CommitOffsets {
            group: self.group.clone(),
            generation,
            member: arc(member),
            instance: None,
            retention_ms: None,
            knows_epochs: true,
            producer: producer.map(|id| Producer {
                id: ProducerId(id),
                epoch: 0,
            }),
            topics: vec![CommittedTopic {
                name: arc("t"),
                id: TOPIC,
                partitions: vec![CommittedPartition {
                    partition: 0,
                    offset,
                    leader_epoch: 3,
                    metadata: arc("m"),
                }],
            }],
        }
    }

    /// What is committed for partition 0 of `t`, -1 for nothing.
    pub(super) fn offset(&mut self) -> i64 {
        self.fetched(false).map_or(-2, |told| told.offset)
    }

    pub(super) fn fetched(&mut self, require_stable: bool) -> Result<FetchedOffset, ErrorCode> {
        let told = self.asks(FetchOffsets {
            group: self.group.clone(),
            member: None,
            epoch: -1,
            topics: Some(vec![WantedTopic {
                name: arc("t"),
                id: TOPIC,
                partitions: vec![0],
            }]),
            require_stable,
        });
        told.unwrap()[0].partitions[0].1.clone()
    }

    pub(super) fn deletes(&mut self) -> Result<(), ErrorCode> {
        let groups = vec![self.group.clone()];
        self.asks(DeleteGroups { groups })[0]
    }

    pub(super) fn deletes_offset(&mut self) -> Committing {
        let told = self.asks(DeleteOffsets {
            group: self.group.clone(),
            topics: vec![(arc("t"), vec![0])],
        });
        told.map(|told| told[0][0])
    }

    /// A transaction ends, as its marker says.
    pub(super) fn ends(&mut self, producer: i64, committed: bool) {
        self.story.writes(vec![Entry::End {
            producer: Producer {
                id: ProducerId(producer),
                epoch: 0,
            },
            coordinator_epoch: 0,
            committed,
        }]);
    }
}

/// What a commit or a deletion of one offset comes to: for the group, then for the partition.
pub(super) type Committing = Result<Result<(), ErrorCode>, ErrorCode>;

/// The topic `t`.
pub(super) const TOPIC: TopicId = TopicId(Uuid([7; 16]));

// What is seen.
impl Told {
    pub(super) fn joined(&mut self, ticket: Ticket) -> Option<Joined> {
        JoinGroup::reply(self.story.answer(ticket)?)
    }

    /// The code of a join's answer; `None` while it waits.
    pub(super) fn join_code(&mut self, ticket: Ticket) -> Option<ErrorCode> {
        self.joined(ticket).map(|told| told.error)
    }

    /// The assignment that a sync got, as text; `None` while it waits.
    pub(super) fn synced(&mut self, ticket: Ticket) -> Option<Result<String, ErrorCode>> {
        let told = SyncGroup::reply(self.story.answer(ticket)?).expect("a sync's answer");
        let text = |told: Synced| String::from_utf8(told.assignment.to_vec()).unwrap();
        Some(told.map(text))
    }

    pub(super) fn described(&mut self) -> Result<DescribedGroup, Refusal> {
        let groups = vec![self.group.clone()];
        self.asks(DescribeGroups { groups }).remove(0)
    }

    pub(super) fn state(&mut self) -> &'static str {
        self.described().map_or("Dead", |group| group.state)
    }

    pub(super) fn member_count(&mut self) -> usize {
        self.described().map_or(0, |group| group.members.len())
    }

    pub(super) fn generation(&mut self) -> i32 {
        let group = self.group.clone();
        let group = self.story.machine.classic(&group).unwrap();
        group.generation
    }

    pub(super) fn listed(&mut self) -> Vec<String> {
        let all = ListGroups {
            states: Vec::new(),
            types: Vec::new(),
        };
        let told = self.asks(all).into_iter();
        told.map(|one| format!("{} {} {}", one.group, one.protocol_type, one.state))
            .collect()
    }

    /// The records since this was last asked, without those that are not records of groups.
    pub(super) fn written(&mut self) -> Vec<GroupRecord> {
        let entries = self.story.records().into_iter();
        let record = |entry| match entry {
            Entry::Record(record) | Entry::Pending(_, record) => Some(record),
            Entry::End { .. } => None,
        };
        entries.filter_map(record).collect()
    }

    pub(super) fn sleeps(&mut self, span: Duration) {
        self.story.sleeps(span);
    }

    pub(super) fn reloads(&mut self) {
        self.story.reloads();
    }
}
