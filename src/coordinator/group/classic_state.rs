//! A classic group: its members, the protocol they share, where it stands.
//!
//! ```text
//!            first join              all have joined            the leader has synced
//!   Empty ───────────────> Preparing ───────────────> Completing ───────────────> Stable
//!     ^                     │  ^  ^                      │                           │
//!     └── nobody is left ───┘  │  └── a member joins, leaves, changes, or is late ───┘
//!                              └─────────────────────────┘
//! ```
//!
//! `Preparing` is Kafka's PreparingRebalance, `Completing` its CompletingRebalance; a group that is
//! Dead is one that does not exist (org.apache.kafka.coordinator.group.classic.ClassicGroup).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::ask::{Client, DescribedMember, JoinedMember};
use super::records::{ClassicMember, GroupKey, GroupMetadataValue, GroupRecord};
use crate::machine::Ticket;
use crate::protocol::error::ErrorCode;
use crate::protocol::subscription::{self, Subscription};

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has no members.
    Empty,
    /// Members are to join.
    Preparing,
    /// All have joined; the leader is to say who gets what.
    Completing,
    /// Everybody has an assignment.
    Stable,
}

impl State {
    /// The name that clients are told.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Preparing => "PreparingRebalance",
            Self::Completing => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// A member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance: Option<Arc<str>>,
    pub(super) client: Client,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    /// What it can follow, the dearest first, each with its metadata.
    pub(super) protocols: Vec<(Arc<str>, Bytes)>,
    pub(super) assignment: Bytes,
    /// Whom to tell when all have joined.
    pub(super) joining: Option<Ticket>,
    /// Whom to tell when the leader has synced.
    pub(super) syncing: Option<Ticket>,
    /// It has never been told its id in an answer to a join.
    pub(super) is_new: bool,
}

impl Member {
    /// Its metadata of a protocol; nothing when it cannot follow that.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| **name == *protocol);
        found
            .map(|(_, metadata)| metadata.clone())
            .unwrap_or_default()
    }
}

/// A classic group.
#[derive(Clone, Debug)]
pub(super) struct ClassicGroup {
    pub(super) id: Arc<str>,
    pub(super) state: State,
    /// When it got there; not known of what old brokers wrote.
    pub(super) since_ms: Option<i64>,
    pub(super) generation: i32,
    /// `None` until a member has joined: the group keeps offsets and nothing else.
    pub(super) protocol_type: Option<Arc<str>>,
    pub(super) protocol: Option<Arc<str>>,
    pub(super) leader: Option<Arc<str>>,
    pub(super) members: BTreeMap<Arc<str>, Member>,
    /// Which member an instance is (KIP-345).
    instances: HashMap<Arc<str>, Arc<str>>,
    /// Ids given to members that have not come back with them (KIP-394).
    pub(super) pending: BTreeSet<Arc<str>>,
    /// Members that have not synced in this generation.
    pub(super) unsynced: BTreeSet<Arc<str>>,
    /// The first rebalance after `Empty` is under way: it gives others time to join.
    pub(super) initial: Option<Initial>,
    /// What the members subscribe to, where that is known.
    pub(super) subscribed: Option<BTreeSet<Arc<str>>>,
    /// It was made for a join, and its name is to be written when a member is in it.
    pub(super) is_unwritten: bool,
    /// What is written of it; the one part that its records decide.
    pub(super) written: Option<GroupMetadataValue>,
}

/// How much longer the first rebalance may be extended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Initial {
    /// A member joined since the last extension.
    pub(super) has_more: bool,
    pub(super) remaining_ms: i32,
}

impl ClassicGroup {
    /// A group without members.
    pub(super) fn new(id: Arc<str>, now_ms: Option<i64>) -> Self {
        Self {
            id,
            state: State::Empty,
            since_ms: now_ms,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: HashMap::new(),
            pending: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            initial: None,
            subscribed: None,
            is_unwritten: false,
            written: None,
        }
    }

    /// The group that a record describes.
    pub(super) fn of_record(id: Arc<str>, value: &GroupMetadataValue) -> Self {
        let since_ms = Some(value.current_state_timestamp).filter(|ms| *ms != -1);
        let mut group = Self::new(id, since_ms);
        group.generation = value.generation;
        group.protocol_type = Some(value.protocol_type.clone()).filter(|name| !name.is_empty());
        group.protocol = value.protocol.clone();
        group.leader = value.leader.clone();
        for member in &value.members {
            let protocol = value.protocol.clone().unwrap_or_else(|| Arc::from(""));
            let rebalance_timeout_ms = match member.rebalance_timeout {
                -1 => member.session_timeout,
                known => known,
            };
            if let Some(instance) = &member.group_instance_id {
                group
                    .instances
                    .insert(instance.clone(), member.member_id.clone());
            }
            let loaded = Member {
                instance: member.group_instance_id.clone(),
                client: Client {
                    id: member.client_id.clone(),
                    host: member.client_host.clone(),
                },
                session_timeout_ms: member.session_timeout,
                rebalance_timeout_ms,
                protocols: vec![(protocol, member.subscription.clone())],
                assignment: member.assignment.clone(),
                joining: None,
                syncing: None,
                is_new: false,
            };
            group.members.insert(member.member_id.clone(), loaded);
        }
        if !group.members.is_empty() {
            group.state = State::Stable;
        }
        group.subscribed = group.compute_subscribed();
        group.written = Some(value.clone());
        group
    }

    /// The record of the group with these assignments (GroupCoordinatorRecordHelpers).
    pub(super) fn record(&self, assignment: impl Fn(&str, &Member) -> Bytes) -> GroupRecord {
        let member = |(id, member): (&Arc<str>, &Member)| ClassicMember {
            member_id: id.clone(),
            group_instance_id: member.instance.clone(),
            client_id: member.client.id.clone(),
            client_host: member.client.host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: self
                .protocol
                .as_ref()
                .map(|protocol| member.metadata(protocol))
                .unwrap_or_default(),
            assignment: assignment(id, member),
        };
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_else(|| Arc::from("")),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            current_state_timestamp: self.since_ms.unwrap_or(-1),
            members: self.members.iter().map(member).collect(),
        };
        GroupRecord::GroupMetadata(self.key(), Some(value))
    }

    /// The record of a group that has just been made for its first member.
    pub(super) fn reserving_record(&self) -> GroupRecord {
        let value = GroupMetadataValue {
            current_state_timestamp: self.since_ms.unwrap_or(-1),
            ..GroupMetadataValue::default()
        };
        GroupRecord::GroupMetadata(self.key(), Some(value))
    }

    /// The key of its record.
    pub(super) fn key(&self) -> GroupKey {
        GroupKey {
            group: self.id.clone(),
        }
    }

    /// Moves to another state.
    pub(super) fn enter(&mut self, state: State, now_ms: i64) {
        self.state = state;
        self.since_ms = Some(now_ms);
    }

    /// Adds a member; the first one of a group leads it and says what type of protocol it has.
    pub(super) fn add(&mut self, id: Arc<str>, member: Member, protocol_type: &Arc<str>) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.clone());
        }
        self.leader.get_or_insert_with(|| id.clone());
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.pending.remove(&id);
        self.members.insert(id, member);
    }

    /// Removes a member or an id that was given to one.
    pub(super) fn remove(&mut self, id: &str) -> Option<Member> {
        self.pending.remove(id);
        self.unsynced.remove(id);
        let member = self.members.remove(id)?;
        if let Some(instance) = &member.instance
            && self.instances.get(instance).is_some_and(|of| **of == *id)
        {
            self.instances.remove(instance);
        }
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Gives a static member its new id; what waited under the old one is for the caller to fence.
    pub(super) fn replace(&mut self, old: &str, new: Arc<str>) -> Option<&mut Member> {
        let member = self.members.remove(old)?;
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        self.unsynced.remove(old);
        self.members.insert(new.clone(), member);
        self.members.get_mut(&new)
    }

    /// Whether this member leads the group.
    pub(super) fn is_leader(&self, id: &str) -> bool {
        self.leader.as_deref() == Some(id)
    }

    /// The member that an instance is.
    pub(super) fn instance(&self, instance: &str) -> Option<&Arc<str>> {
        self.instances.get(instance)
    }

    /// Refuses who is not a member, or no longer the one of its instance.
    pub(super) fn check_member(&self, id: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.instance(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(known) if **known != *id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        match self.members.contains_key(id) {
            true => Ok(()),
            false => Err(ErrorCode::UnknownMemberId),
        }
    }

    /// Whether a member of that type with these protocols can be among the others.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[(Arc<str>, Bytes)]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let is_common = |name: &str| {
            let follows = |member: &Member| member.protocols.iter().any(|(own, _)| **own == *name);
            self.members.values().all(follows)
        };
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|(name, _)| is_common(name))
    }

    /// The protocol with the most votes: each member votes for the dearest of those that all can
    /// follow. Of equally many votes, the name that sorts first.
    pub(super) fn elected_protocol(&self) -> Option<Arc<str>> {
        let mut followers: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.members.values() {
            let own: BTreeSet<_> = member.protocols.iter().map(|(name, _)| name).collect();
            for name in own {
                *followers.entry(name).or_default() += 1;
            }
        }
        let is_common = |name: &Arc<str>| followers.get(name) == Some(&self.members.len());
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.members.values() {
            let dearest = member.protocols.iter().find(|(name, _)| is_common(name));
            if let Some((name, _)) = dearest {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        let winner = votes.into_iter().find(|(_, count)| *count == most);
        winner.map(|(name, _)| name.clone())
    }

    /// Whether everybody who is known has come, those with a fresh id included.
    pub(super) fn all_have_joined(&self) -> bool {
        self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some())
    }

    /// How many wait for the others to join.
    pub(super) fn joining(&self) -> usize {
        let waiting = |member: &&Member| member.joining.is_some();
        self.members.values().filter(waiting).count()
    }

    /// How long a rebalance waits: as long as the most patient member.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        let timeouts = self
            .members
            .values()
            .map(|member| member.rebalance_timeout_ms);
        timeouts.max().unwrap_or(0)
    }

    /// Hands the lead to a member that has joined, if the leader has not; whether somebody leads.
    pub(super) fn elect_joined_leader(&mut self) -> bool {
        let Some(leader) = &self.leader else {
            return false;
        };
        let has_joined = |member: &Member| member.joining.is_some();
        if self.members.get(leader).is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.iter().find(|(_, member)| has_joined(member));
        match joined.map(|(id, _)| id.clone()) {
            Some(id) => {
                self.leader = Some(id);
                true
            }
            None => false,
        }
    }

    /// Begins the next generation with those who are here.
    pub(super) fn next_generation(&mut self, now_ms: i64) {
        self.generation = self.generation.wrapping_add(1);
        self.unsynced.clear();
        self.initial = None;
        if self.members.is_empty() {
            self.protocol = None;
            self.leader = None;
            self.enter(State::Empty, now_ms);
        } else {
            self.protocol = self.elected_protocol();
            for member in self.members.values_mut() {
                member.assignment = Bytes::new();
            }
            self.enter(State::Completing, now_ms);
        }
        self.subscribed = self.compute_subscribed();
    }

    /// All members with their metadata of the chosen protocol, as the leader is told.
    pub(super) fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or("");
        let members = self.members.iter().map(|(id, member)| JoinedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            metadata: member.metadata(protocol),
        });
        members.collect()
    }

    /// All members as an operator is told: their metadata only while the group is stable.
    pub(super) fn described_members(&self) -> Vec<DescribedMember> {
        let is_stable = self.state == State::Stable;
        let protocol = self.protocol.as_deref().filter(|_| is_stable);
        let members = self.members.iter().map(|(id, member)| DescribedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            client: member.client.clone(),
            metadata: protocol
                .map(|protocol| member.metadata(protocol))
                .unwrap_or_default(),
            assignment: member.assignment.clone(),
        });
        members.collect()
    }

    /// Whether its members are consumers.
    pub(super) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(subscription::PROTOCOL_TYPE)
    }

    /// Whether a member may read this topic; consumers whose topics are unknown may read any.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_of_consumers(),
        }
    }

    /// The topics of all subscriptions; `None` when these are not consumers, or one's subscription
    /// cannot be read.
    pub(super) fn compute_subscribed(&self) -> Option<BTreeSet<Arc<str>>> {
        if !self.is_of_consumers() {
            return None;
        }
        let Some(protocol) = &self.protocol else {
            return self.members.is_empty().then(BTreeSet::new);
        };
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            let (_, subscription) = Subscription::decode(&member.metadata(protocol)).ok()?;
            topics.extend(subscription.topics);
        }
        Some(topics)
    }
}
