//! A consumer group: its members, its epochs, what each member shall own and owns (KIP-848;
//! org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup).
//!
//! ```text
//!   Empty       no members
//!   Assigning   the group's epoch is ahead of its target assignment's
//!   Reconciling a member is behind the target assignment
//!   Stable      every member owns what it shall own
//! ```
//!
//! Everything here comes from records. They are taken in any order without a contradiction: a partition belongs to the
//! member that was last said to own it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::ask::Client;
use super::assign::Assignment;
use super::records::{
    ClassicMemberMetadata, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue, ConsumerGroupTargetAssignmentMetadataValue, GroupKey,
    GroupRecord, MemberKey, Nullable, TopicPartitions,
};
use crate::base::TopicId;

/// The member epoch of one that left for good.
pub(super) const LEFT: i32 = -1;
/// The member epoch of a static member that will be back (KIP-345).
pub(super) const AWAY: i32 = -2;

/// Where a member stands between what it owns and what it shall own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    /// It owns what it shall own in its epoch.
    Stable,
    /// It has partitions to give up before it gets its next epoch.
    UnrevokedPartitions,
    /// Partitions that it shall own are not free yet.
    UnreleasedPartitions,
    /// Written by a later release.
    Unknown,
}

impl MemberState {
    const fn code(self) -> i8 {
        match self {
            Self::Stable => 0,
            Self::UnrevokedPartitions => 1,
            Self::UnreleasedPartitions => 2,
            Self::Unknown => 127,
        }
    }

    const fn from_code(code: i8) -> Self {
        match code {
            0 => Self::Stable,
            1 => Self::UnrevokedPartitions,
            2 => Self::UnreleasedPartitions,
            _ => Self::Unknown,
        }
    }
}

/// A member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) id: Arc<str>,
    pub(super) instance: Option<Arc<str>>,
    pub(super) rack: Option<Arc<str>>,
    pub(super) client: Client,
    pub(super) topics: BTreeSet<Arc<str>>,
    /// A pattern of topics; empty for none, as is null.
    pub(super) regex: Option<Arc<str>>,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) assignor: Option<Arc<str>>,
    /// What it brought along, if it speaks the classic protocol.
    pub(super) classic: Option<ClassicMemberMetadata>,
    pub(super) epoch: i32,
    pub(super) previous_epoch: i32,
    pub(super) state: MemberState,
    pub(super) assigned: Assignment,
    /// What it has still to give up.
    pub(super) revoking: Assignment,
}

impl Member {
    /// A member that nothing is known of.
    pub(super) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            instance: None,
            rack: None,
            client: Client {
                id: Arc::from(""),
                host: Arc::from(""),
            },
            topics: BTreeSet::new(),
            regex: Some(Arc::from("")),
            rebalance_timeout_ms: -1,
            assignor: None,
            classic: None,
            epoch: 0,
            previous_epoch: -1,
            state: MemberState::Stable,
            assigned: Assignment::new(),
            revoking: Assignment::new(),
        }
    }

    /// The pattern that it is subscribed to.
    pub(super) fn pattern(&self) -> Option<&Arc<str>> {
        self.regex.as_ref().filter(|regex| !regex.is_empty())
    }

    /// Whether it speaks the classic protocol.
    pub(super) fn is_classic(&self) -> bool {
        self.classic.is_some()
    }

    /// Whether it owns what a target of that epoch wants it to.
    pub(super) fn is_reconciled_to(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }

    /// The next epoch; the one before is remembered, for a member that missed the answer.
    pub(super) fn enter(&mut self, epoch: i32) {
        self.previous_epoch = self.epoch;
        self.epoch = epoch;
    }

    /// The record of what it asked for.
    pub(super) fn metadata_record(&self, group: &Arc<str>) -> GroupRecord {
        let value = ConsumerGroupMemberMetadataValue {
            instance_id: self.instance.clone(),
            rack_id: self.rack.clone(),
            client_id: self.client.id.clone(),
            client_host: self.client.host.clone(),
            subscribed_topic_names: self.topics.iter().cloned().collect(),
            subscribed_topic_regex: self.regex.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            server_assignor: self.assignor.clone(),
            classic: Nullable(self.classic.clone()),
        };
        GroupRecord::ConsumerGroupMemberMetadata(member_key(group, &self.id), Some(value))
    }

    /// The record of what it owns.
    pub(super) fn assignment_record(&self, group: &Arc<str>) -> GroupRecord {
        let value = ConsumerGroupCurrentMemberAssignmentValue {
            member_epoch: self.epoch,
            previous_member_epoch: self.previous_epoch,
            state: self.state.code(),
            assigned_partitions: listed(&self.assigned),
            partitions_pending_revocation: listed(&self.revoking),
        };
        GroupRecord::ConsumerGroupCurrentMemberAssignment(member_key(group, &self.id), Some(value))
    }

    fn take_metadata(&mut self, value: &ConsumerGroupMemberMetadataValue) {
        self.instance = value.instance_id.clone();
        self.rack = value.rack_id.clone();
        self.client = Client {
            id: value.client_id.clone(),
            host: value.client_host.clone(),
        };
        self.topics = value.subscribed_topic_names.iter().cloned().collect();
        self.regex = value.subscribed_topic_regex.clone();
        self.rebalance_timeout_ms = value.rebalance_timeout_ms;
        self.assignor = value.server_assignor.clone();
        self.classic = value.classic.0.clone();
    }

    fn take_assignment(&mut self, value: &ConsumerGroupCurrentMemberAssignmentValue) {
        self.epoch = value.member_epoch;
        self.previous_epoch = value.previous_member_epoch;
        self.state = MemberState::from_code(value.state);
        self.assigned = gathered(&value.assigned_partitions);
        self.revoking = gathered(&value.partitions_pending_revocation);
    }
}

/// The topics that a pattern stood for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Resolved {
    pub(super) topics: BTreeSet<Arc<str>>,
    /// The metadata that it was looked up in.
    pub(super) version: i64,
    pub(super) timestamp_ms: i64,
}

/// How many want a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Subscribers {
    by_name: usize,
    by_regex: usize,
}

/// What is known of the cluster that a group lives in; lost with the coordinator and found out
/// again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The metadata against which the group's topics were last compared.
    pub(super) version: Option<i64>,
    /// Patterns are being looked up.
    pub(super) is_resolving: bool,
    /// In which metadata patterns were last looked up, and when by the wall clock.
    pub(super) resolved: Option<(i64, i64)>,
}

/// A consumer group.
#[derive(Clone, Debug)]
pub(super) struct ConsumerGroup {
    pub(super) id: Arc<str>,
    pub(super) epoch: i32,
    pub(super) metadata_hash: i64,
    pub(super) target_epoch: i32,
    pub(super) members: BTreeMap<Arc<str>, Arc<Member>>,
    pub(super) targets: BTreeMap<Arc<str>, Arc<Assignment>>,
    pub(super) regexes: BTreeMap<Arc<str>, Resolved>,
    /// There is a record that 4.1 does not write any more.
    pub(super) has_partition_metadata: bool,
    /// Which member an instance is.
    instances: HashMap<Arc<str>, Arc<str>>,
    owners: HashMap<TopicId, BTreeMap<i32, Arc<str>>>,
    subscribers: BTreeMap<Arc<str>, Subscribers>,
    patterns: BTreeMap<Arc<str>, usize>,
    classic_members: usize,
}

impl ConsumerGroup {
    /// A group without members.
    pub(super) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            epoch: 0,
            metadata_hash: 0,
            target_epoch: 0,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            regexes: BTreeMap::new(),
            has_partition_metadata: false,
            instances: HashMap::new(),
            owners: HashMap::new(),
            subscribers: BTreeMap::new(),
            patterns: BTreeMap::new(),
            classic_members: 0,
        }
    }

    /// The state as clients are told.
    pub(super) fn state(&self) -> &'static str {
        let is_behind = |member: &Arc<Member>| !member.is_reconciled_to(self.target_epoch);
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.target_epoch {
            "Assigning"
        } else if self.members.values().any(is_behind) {
            "Reconciling"
        } else {
            "Stable"
        }
    }

    /// The member that an instance is.
    pub(super) fn instance(&self, instance: &str) -> Option<&Arc<Member>> {
        self.members.get(self.instances.get(instance)?)
    }

    /// What a member shall own.
    pub(super) fn target(&self, member: &str) -> Arc<Assignment> {
        self.targets.get(member).cloned().unwrap_or_default()
    }

    /// The member that owns a partition, or has it still to give up.
    pub(super) fn owner(&self, topic: TopicId, partition: i32) -> Option<&Arc<str>> {
        self.owners.get(&topic)?.get(&partition)
    }

    /// Whether a member reads this topic.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        self.subscribers.contains_key(topic)
    }

    /// The topics that some member wants, by name or by pattern.
    pub(super) fn subscribed(&self) -> impl Iterator<Item = &Arc<str>> {
        self.subscribers.keys()
    }

    /// The patterns that members are subscribed to.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &Arc<str>> {
        self.patterns.keys()
    }

    /// How many members are subscribed to a pattern.
    pub(super) fn subscribers_of(&self, pattern: &str) -> usize {
        self.patterns.get(pattern).copied().unwrap_or(0)
    }

    /// How many members speak the classic protocol.
    pub(super) fn classic_members(&self) -> usize {
        self.classic_members
    }

    /// The assignor that most members name; of equally many votes, the name that sorts first.
    pub(super) fn preferred_assignor(&self) -> Option<&Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for name in self.members.values().filter_map(|m| m.assignor.as_ref()) {
            *votes.entry(name).or_default() += 1;
        }
        let most = votes.values().copied().max()?;
        let winner = votes.into_iter().find(|(_, count)| *count == most);
        winner.map(|(name, _)| name)
    }

    /// The key of the records that are about the whole group.
    pub(super) fn key(&self) -> GroupKey {
        GroupKey {
            group: self.id.clone(),
        }
    }

    /// The record of the group's epoch.
    pub(super) fn epoch_record(&self, epoch: i32, metadata_hash: i64) -> GroupRecord {
        let value = ConsumerGroupMetadataValue {
            epoch,
            metadata_hash,
        };
        GroupRecord::ConsumerGroupMetadata(self.key(), Some(value))
    }

    /// The record of what a member shall own.
    pub(super) fn target_record(&self, member: &Arc<str>, target: &Assignment) -> GroupRecord {
        let value = ConsumerGroupTargetAssignmentMemberValue {
            topic_partitions: listed(target),
        };
        let key = member_key(&self.id, member);
        GroupRecord::ConsumerGroupTargetAssignmentMember(key, Some(value))
    }

    /// The record of the epoch of what members shall own.
    pub(super) fn target_epoch_record(&self, assignment_epoch: i32) -> GroupRecord {
        let value = ConsumerGroupTargetAssignmentMetadataValue { assignment_epoch };
        GroupRecord::ConsumerGroupTargetAssignmentMetadata(self.key(), Some(value))
    }

    /// The record of the topics that a pattern stands for.
    pub(super) fn regex_record(&self, regex: &Arc<str>, resolved: Option<Resolved>) -> GroupRecord {
        let key = ConsumerGroupRegularExpressionKey {
            group: self.id.clone(),
            regex: regex.clone(),
        };
        let value = resolved.map(|resolved| ConsumerGroupRegularExpressionValue {
            topics: resolved.topics.into_iter().collect(),
            version: resolved.version,
            timestamp: resolved.timestamp_ms,
        });
        GroupRecord::ConsumerGroupRegularExpression(key, value)
    }

    /// The records that remove a member.
    pub(super) fn member_tombstones(&self, member: &Arc<str>) -> [GroupRecord; 3] {
        let key = member_key(&self.id, member);
        [
            GroupRecord::ConsumerGroupCurrentMemberAssignment(key.clone(), None),
            GroupRecord::ConsumerGroupTargetAssignmentMember(key.clone(), None),
            GroupRecord::ConsumerGroupMemberMetadata(key, None),
        ]
    }

    /// The records that remove the group.
    pub(super) fn tombstones(&self) -> Vec<GroupRecord> {
        let keys = || self.members.keys().map(|id| member_key(&self.id, id));
        let mut records = Vec::new();
        records.extend(keys().map(|k| GroupRecord::ConsumerGroupCurrentMemberAssignment(k, None)));
        records.extend(keys().map(|k| GroupRecord::ConsumerGroupTargetAssignmentMember(k, None)));
        let key = self.key();
        records.push(GroupRecord::ConsumerGroupTargetAssignmentMetadata(
            key.clone(),
            None,
        ));
        records.extend(keys().map(|k| GroupRecord::ConsumerGroupMemberMetadata(k, None)));
        let regexes = self.regexes.keys();
        records.extend(regexes.map(|regex| self.regex_record(regex, None)));
        records.push(GroupRecord::ConsumerGroupPartitionMetadata(
            key.clone(),
            None,
        ));
        records.push(GroupRecord::ConsumerGroupMetadata(key, None));
        records
    }
}

fn member_key(group: &Arc<str>, member: &Arc<str>) -> MemberKey {
    MemberKey {
        group: group.clone(),
        member: member.clone(),
    }
}

/// An assignment as records and messages list it.
pub(super) fn listed(assignment: &Assignment) -> Vec<TopicPartitions> {
    let listed = |(topic, partitions): (&TopicId, &BTreeSet<i32>)| TopicPartitions {
        topic_id: *topic,
        partitions: partitions.iter().copied().collect(),
    };
    assignment.iter().map(listed).collect()
}

fn gathered(listed: &[TopicPartitions]) -> Assignment {
    let mut gathered = Assignment::new();
    for topic in listed.iter().filter(|topic| !topic.partitions.is_empty()) {
        let partitions = topic.partitions.iter().copied();
        gathered
            .entry(topic.topic_id)
            .or_default()
            .extend(partitions);
    }
    gathered
}

#[cfg(test)]
impl ConsumerGroup {
    /// What the records decide, and what follows from it.
    pub(super) fn told(&self) -> String {
        let owners: BTreeMap<_, _> = self.owners.iter().collect();
        let instances: BTreeMap<_, _> = self.instances.iter().collect();
        format!(
            "{:#?}",
            (
                (&self.epoch, &self.metadata_hash, &self.target_epoch),
                (&self.members, &self.targets, &self.regexes),
                (owners, instances, &self.subscribers, &self.patterns),
                (self.classic_members, self.has_partition_metadata),
            )
        )
    }
}

// Replay: the only place where what records decide is changed.
impl ConsumerGroup {
    /// Takes in a record of this group.
    pub(super) fn replay(&mut self, record: &GroupRecord) {
        match record {
            GroupRecord::ConsumerGroupMetadata(_, value) => {
                let value = value.clone().unwrap_or_default();
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            GroupRecord::ConsumerGroupPartitionMetadata(_, value) => {
                self.has_partition_metadata = value.is_some();
            }
            GroupRecord::ConsumerGroupMemberMetadata(key, value) => match value {
                Some(value) => self.change(&key.member, |member| member.take_metadata(value)),
                None => self.remove(&key.member),
            },
            GroupRecord::ConsumerGroupTargetAssignmentMetadata(_, value) => {
                self.target_epoch = value.as_ref().map_or(-1, |value| value.assignment_epoch);
            }
            GroupRecord::ConsumerGroupTargetAssignmentMember(key, value) => match value {
                Some(value) => {
                    let target = Arc::new(gathered(&value.topic_partitions));
                    self.targets.insert(key.member.clone(), target);
                }
                None => {
                    self.targets.remove(&key.member);
                }
            },
            GroupRecord::ConsumerGroupCurrentMemberAssignment(key, value) => match value {
                Some(value) => self.change(&key.member, |member| member.take_assignment(value)),
                None if self.members.contains_key(&key.member) => {
                    let gone = ConsumerGroupCurrentMemberAssignmentValue {
                        member_epoch: LEFT,
                        previous_member_epoch: LEFT,
                        ..Default::default()
                    };
                    self.change(&key.member, |member| member.take_assignment(&gone));
                }
                None => {}
            },
            GroupRecord::ConsumerGroupRegularExpression(key, value) => {
                self.resolve(&key.regex, value.as_ref());
            }
            GroupRecord::OffsetCommit(..) | GroupRecord::GroupMetadata(..) => {}
        }
    }

    fn change(&mut self, id: &Arc<str>, change: impl FnOnce(&mut Member)) {
        let before = self.members.get(id).cloned();
        let mut after = match &before {
            Some(member) => Member::clone(member),
            None => Member::new(id.clone()),
        };
        change(&mut after);
        if let Some(before) = &before {
            self.discount(before);
        }
        self.count(&after);
        self.members.insert(id.clone(), Arc::new(after));
    }

    fn remove(&mut self, id: &Arc<str>) {
        if let Some(member) = self.members.remove(id) {
            self.discount(&member);
        }
    }

    fn count(&mut self, member: &Member) {
        for topic in &member.topics {
            self.subscribers.entry(topic.clone()).or_default().by_name += 1;
        }
        if let Some(pattern) = member.pattern() {
            *self.patterns.entry(pattern.clone()).or_default() += 1;
        }
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), member.id.clone());
        }
        self.classic_members += usize::from(member.is_classic());
        for (topic, partitions) in member.assigned.iter().chain(&member.revoking) {
            let owners = self.owners.entry(*topic).or_default();
            owners.extend(partitions.iter().map(|p| (*p, member.id.clone())));
        }
    }

    fn discount(&mut self, member: &Member) {
        for topic in &member.topics {
            self.unsubscribe(topic, |subscribers| subscribers.by_name -= 1);
        }
        if let Some(pattern) = member.pattern()
            && let Some(count) = self.patterns.get_mut(pattern)
        {
            *count -= 1;
            if *count == 0 {
                self.patterns.remove(pattern);
            }
        }
        if let Some(instance) = &member.instance
            && self.instances.get(instance) == Some(&member.id)
        {
            self.instances.remove(instance);
        }
        self.classic_members -= usize::from(member.is_classic());
        for (topic, partitions) in member.assigned.iter().chain(&member.revoking) {
            let Some(owners) = self.owners.get_mut(topic) else {
                continue;
            };
            for partition in partitions {
                if owners.get(partition) == Some(&member.id) {
                    owners.remove(partition);
                }
            }
            if owners.is_empty() {
                self.owners.remove(topic);
            }
        }
    }

    fn resolve(&mut self, regex: &Arc<str>, value: Option<&ConsumerGroupRegularExpressionValue>) {
        if let Some(before) = self.regexes.remove(regex) {
            for topic in &before.topics {
                self.unsubscribe(topic, |subscribers| subscribers.by_regex -= 1);
            }
        }
        if let Some(value) = value {
            let resolved = Resolved {
                topics: value.topics.iter().cloned().collect(),
                version: value.version,
                timestamp_ms: value.timestamp,
            };
            for topic in &resolved.topics {
                self.subscribers.entry(topic.clone()).or_default().by_regex += 1;
            }
            self.regexes.insert(regex.clone(), resolved);
        }
    }

    fn unsubscribe(&mut self, topic: &Arc<str>, take: impl FnOnce(&mut Subscribers)) {
        if let Some(subscribers) = self.subscribers.get_mut(topic) {
            take(subscribers);
            if *subscribers == Subscribers::default() {
                self.subscribers.remove(topic);
            }
        }
    }
}
