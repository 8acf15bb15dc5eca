//! Committed offsets: commit, fetch, delete, expire; those of transactions wait for their end
//! (org.apache.kafka.coordinator.group.OffsetMetadataManager).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ask::{
    CommitOffsets, CommittedPartition, DeleteOffsets, FetchOffsets, FetchedOffset, FetchedTopic,
    ForgetTopics, PerPartition, WantedTopic,
};
use super::classic_state::{ClassicGroup, State};
use super::group::{Committer, Group};
use super::records::{GroupRecord, NO_EXPIRY, OffsetCommitKey, OffsetCommitValue};
use super::{Deadline, Entry, GroupMachine, Turn};
use crate::base::{LeaderEpoch, TopicId};
use crate::protocol::error::ErrorCode;

pub(crate) use crate::base::ProducerId;

/// Whose transaction something is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) id: ProducerId,
    pub(crate) epoch: i16,
}

/// Offsets by group, topic and partition.
type ByPartition = BTreeMap<Arc<str>, BTreeMap<Arc<str>, BTreeMap<i32, Committed>>>;

/// An offset, and when it was replayed.
#[derive(Clone, Debug, PartialEq)]
struct Committed {
    value: OffsetCommitValue,
    /// Counts commits: of two for one partition the later one holds, also when the earlier one's
    /// transaction ends after it.
    order: u64,
}

/// The offsets of all groups, and those whose transactions are open.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    committed: ByPartition,
    open: HashMap<ProducerId, ByPartition>,
    order: u64,
}

impl Offsets {
    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn set(&mut self, key: &OffsetCommitKey, value: OffsetCommitValue) {
        let order = self.next_order();
        put(&mut self.committed, key, Committed { value, order });
    }

    fn remove(&mut self, key: &OffsetCommitKey) {
        take(&mut self.committed, key);
        // A deletion also ends what a transaction had in mind for the partition.
        for open in self.open.values_mut() {
            take(open, key);
        }
        self.open.retain(|_, open| !open.is_empty());
    }

    /// Takes in a record of an open transaction.
    pub(super) fn hold(&mut self, producer: ProducerId, record: &GroupRecord) {
        let GroupRecord::OffsetCommit(key, Some(value)) = record else {
            // Kafka's transactions write commits alone.
            return;
        };
        let order = self.next_order();
        let value = value.clone();
        put(
            self.open.entry(producer).or_default(),
            key,
            Committed { value, order },
        );
    }

    /// Ends a transaction.
    fn end(&mut self, producer: ProducerId, committed: bool) {
        let Some(open) = self.open.remove(&producer).filter(|_| committed) else {
            return;
        };
        for (group, topics) in open {
            for (topic, partitions) in topics {
                let at = self.committed.entry(group.clone()).or_default();
                let at = at.entry(topic).or_default();
                for (partition, pending) in partitions {
                    let newer = |held: &Committed| held.order > pending.order;
                    if !at.get(&partition).is_some_and(newer) {
                        at.insert(partition, pending);
                    }
                }
            }
        }
    }

    fn get(&self, group: &str, topic: &str, partition: i32) -> Option<&OffsetCommitValue> {
        let found = self.committed.get(group)?.get(topic)?.get(&partition)?;
        Some(&found.value)
    }

    /// Whether an open transaction may still change the offset.
    fn is_open(&self, group: &str, topic: &str, partition: i32) -> bool {
        let holds = |open: &ByPartition| {
            let topics = open.get(group);
            let partitions = topics.and_then(|topics| topics.get(topic));
            partitions.is_some_and(|partitions| partitions.contains_key(&partition))
        };
        self.open.values().any(holds)
    }

    /// Whether a group has offsets, committed or not.
    pub(super) fn has_any(&self, group: &str) -> bool {
        self.committed.contains_key(group) || self.has_open(group)
    }

    /// Whether an open transaction has offsets of this group.
    fn has_open(&self, group: &str) -> bool {
        self.open.values().any(|open| open.contains_key(group))
    }

    /// The topics and partitions of a group, the open ones too.
    fn all_of(&self, group: &str) -> BTreeMap<Arc<str>, BTreeSet<i32>> {
        let mut all: BTreeMap<Arc<str>, BTreeSet<i32>> = BTreeMap::new();
        let maps = std::iter::once(&self.committed).chain(self.open.values());
        for topics in maps.filter_map(|map| map.get(group)) {
            for (topic, partitions) in topics {
                let partitions = partitions.keys().copied();
                all.entry(topic.clone()).or_default().extend(partitions);
            }
        }
        all
    }

    /// What the records decide, for comparing.
    #[cfg(test)]
    pub(super) fn told(&self) -> Vec<(OffsetCommitKey, OffsetCommitValue, Option<ProducerId>)> {
        let mut told = Vec::new();
        let open = self.open.iter().map(|(id, map)| (Some(*id), map));
        for (producer, map) in std::iter::once((None, &self.committed)).chain(open) {
            for (group, topics) in map {
                for (topic, partitions) in topics {
                    for (partition, held) in partitions {
                        let key = key(group, topic, *partition);
                        told.push((key, held.value.clone(), producer));
                    }
                }
            }
        }
        told.sort_by_key(|(key, _, producer)| {
            (
                key.group.clone(),
                key.topic.clone(),
                key.partition,
                *producer,
            )
        });
        told
    }
}

fn put(map: &mut ByPartition, key: &OffsetCommitKey, held: Committed) {
    let topics = map.entry(key.group.clone()).or_default();
    let partitions = topics.entry(key.topic.clone()).or_default();
    partitions.insert(key.partition, held);
}

fn take(map: &mut ByPartition, key: &OffsetCommitKey) {
    let Some(topics) = map.get_mut(&key.group) else {
        return;
    };
    if let Some(partitions) = topics.get_mut(&key.topic) {
        partitions.remove(&key.partition);
        if partitions.is_empty() {
            topics.remove(&key.topic);
        }
    }
    if topics.is_empty() {
        map.remove(&key.group);
    }
}

fn key(group: &Arc<str>, topic: &Arc<str>, partition: i32) -> OffsetCommitKey {
    OffsetCommitKey {
        group: group.clone(),
        topic: topic.clone(),
        partition,
    }
}

fn tombstone(group: &Arc<str>, topic: &Arc<str>, partition: i32) -> GroupRecord {
    GroupRecord::OffsetCommit(key(group, topic, partition), None)
}

// Commit and fetch.
impl GroupMachine {
    pub(super) fn commit(
        &mut self,
        turn: &mut Turn,
        ask: CommitOffsets,
    ) -> Result<PerPartition<Result<(), ErrorCode>>, ErrorCode> {
        self.check_commit(&ask)?;
        self.hear_of_committer(turn, &ask);
        let now_ms = turn.now.wall_ms;
        let most = usize::try_from(self.config().offset_metadata_max_bytes).unwrap_or(usize::MAX);
        let expire_timestamp = match ask.retention_ms {
            Some(ms) => now_ms.saturating_add(ms),
            None => NO_EXPIRY,
        };
        let mut committed = Vec::with_capacity(ask.topics.len());
        for topic in &ask.topics {
            let commit = |one: &CommittedPartition| {
                if one.metadata.len() > most {
                    return Err(ErrorCode::OffsetMetadataTooLarge);
                }
                let value = OffsetCommitValue {
                    offset: one.offset,
                    leader_epoch: LeaderEpoch(one.leader_epoch),
                    metadata: one.metadata.clone(),
                    commit_timestamp: now_ms,
                    expire_timestamp,
                    topic_id: topic.id,
                };
                let key = key(&ask.group, &topic.name, one.partition);
                let record = GroupRecord::OffsetCommit(key, Some(value));
                turn.outcome.records.push(match ask.producer {
                    Some(producer) => Entry::Pending(producer, record),
                    None => Entry::Record(record),
                });
                Ok(())
            };
            committed.push(topic.partitions.iter().map(commit).collect());
        }
        Ok(committed)
    }

    fn check_commit(&self, ask: &CommitOffsets) -> Result<(), ErrorCode> {
        let Some(group) = self.groups.get(&ask.group) else {
            return match ask.generation {
                // Kept for a group that is nothing but its offsets.
                ..0 => Ok(()),
                _ if ask.knows_epochs => Err(ErrorCode::GroupIdNotFound),
                _ => Err(ErrorCode::IllegalGeneration),
            };
        };
        group.check_commit(Committer {
            member: &ask.member,
            instance: ask.instance.as_deref(),
            generation: ask.generation,
            is_transactional: ask.producer.is_some(),
            knows_epochs: ask.knows_epochs,
        })
    }

    /// In the classic protocol a commit counts as a sign of life.
    fn hear_of_committer(&mut self, turn: &Turn, ask: &CommitOffsets) {
        let state = self.classic(&ask.group).map(|group| group.state);
        if ask.producer.is_none() && matches!(state, Some(State::Stable | State::Preparing)) {
            self.hear_of(turn, &ask.group, &ask.member);
        }
    }

    /// Takes in a committed offset, or its end. Whoever commits without a group gets one.
    pub(super) fn replay_commit(
        &mut self,
        key: &OffsetCommitKey,
        value: Option<&OffsetCommitValue>,
    ) {
        let Some(value) = value else {
            self.offsets.remove(key);
            return;
        };
        self.offsets.set(key, value.clone());
        self.keep_group(&key.group);
    }

    /// Takes in the end of a transaction.
    pub(super) fn end_transaction(&mut self, producer: ProducerId, committed: bool) {
        self.offsets.end(producer, committed);
    }

    /// Whoever has offsets and is nothing else is a group all the same.
    pub(super) fn keep_group(&mut self, id: &Arc<str>) {
        if !self.groups.contains_key(id) {
            let group = ClassicGroup::new(id.clone(), None);
            self.groups
                .insert(id.clone(), Group::Classic(Box::new(group)));
        }
    }

    pub(super) fn fetch(&self, ask: &FetchOffsets) -> Result<Vec<FetchedTopic>, ErrorCode> {
        if let Some(group) = self.groups.get(&ask.group) {
            group.check_fetch(ask.member.as_deref(), ask.epoch)?;
        }
        let stable = ask.require_stable;
        let Some(topics) = &ask.topics else {
            return Ok(self.fetch_all(&ask.group, stable));
        };
        let fetch = |topic: &WantedTopic| FetchedTopic {
            name: topic.name.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| {
                    (
                        *partition,
                        self.fetch_one(&ask.group, topic, *partition, stable),
                    )
                })
                .collect(),
        };
        Ok(topics.iter().map(fetch).collect())
    }

    fn fetch_one(
        &self,
        group: &str,
        topic: &WantedTopic,
        partition: i32,
        stable: bool,
    ) -> Result<FetchedOffset, ErrorCode> {
        if stable && self.offsets.is_open(group, &topic.name, partition) {
            return Err(ErrorCode::UnstableOffsetCommit);
        }
        let found = self.offsets.get(group, &topic.name, partition);
        // An offset of another topic that had the same name means nothing to this one.
        let is_of = |value: &&OffsetCommitValue| {
            value.topic_id == TopicId::ZERO
                || topic.id == TopicId::ZERO
                || value.topic_id == topic.id
        };
        Ok(found.filter(is_of).map_or_else(FetchedOffset::none, told))
    }

    fn fetch_all(&self, group: &str, stable: bool) -> Vec<FetchedTopic> {
        let Some(topics) = self.offsets.committed.get(group) else {
            return Vec::new();
        };
        let fetch = |(name, partitions): (&Arc<str>, &BTreeMap<i32, Committed>)| FetchedTopic {
            name: name.clone(),
            partitions: partitions
                .iter()
                .map(|(partition, held)| {
                    let offset = match stable && self.offsets.is_open(group, name, *partition) {
                        true => Err(ErrorCode::UnstableOffsetCommit),
                        false => Ok(told(&held.value)),
                    };
                    (*partition, offset)
                })
                .collect(),
        };
        topics.iter().map(fetch).collect()
    }
}

// Deletion and expiry.
impl GroupMachine {
    pub(super) fn delete_offsets(
        &self,
        turn: &mut Turn,
        ask: &DeleteOffsets,
    ) -> Result<PerPartition<Result<(), ErrorCode>>, ErrorCode> {
        let group = self.groups.get(&ask.group);
        let group = group.ok_or(ErrorCode::GroupIdNotFound)?;
        group.check_delete_offsets()?;
        let mut deleted = Vec::with_capacity(ask.topics.len());
        for (topic, partitions) in &ask.topics {
            let is_subscribed = group.is_subscribed_to(topic);
            let delete = |partition: &i32| {
                if is_subscribed {
                    return Err(ErrorCode::GroupSubscribedToTopic);
                }
                if self.offsets.get(&ask.group, topic, *partition).is_some() {
                    turn.write(tombstone(&ask.group, topic, *partition));
                }
                Ok(())
            };
            deleted.push(partitions.iter().map(delete).collect());
        }
        Ok(deleted)
    }

    /// Writes the end of everything that a group has committed, or has in mind to.
    pub(super) fn delete_all_offsets(&self, turn: &mut Turn, group: &Arc<str>) {
        for (topic, partitions) in self.offsets.all_of(group) {
            for partition in partitions {
                turn.write(tombstone(group, &topic, partition));
            }
        }
    }

    /// Forgets the offsets of topics that are gone.
    pub(super) fn forget_topics(&self, turn: &mut Turn, ask: &ForgetTopics) {
        for (group, topics) in &self.offsets.committed {
            for (name, id) in &ask.topics {
                let Some(partitions) = topics.get(name) else {
                    continue;
                };
                for (partition, held) in partitions {
                    // A topic of the same name may be there already, and have offsets of its own.
                    let known = held.value.topic_id;
                    if known == TopicId::ZERO || known == *id {
                        turn.write(tombstone(group, name, *partition));
                    }
                }
            }
        }
    }

    /// Sets the next search for what to forget, unless it is set. Without groups there is nothing
    /// to search.
    pub(super) fn arm_expiry(&mut self, now: Instant) {
        if self.timers.is_set(&Deadline::Expiry) {
            return;
        }
        let interval = self.config().offsets_retention_check_interval_ms;
        let interval = Duration::from_millis(u64::try_from(interval).unwrap_or(0));
        self.timers.set(Deadline::Expiry, now + interval);
    }

    /// Forgets offsets whose time is over, and groups that have neither members nor offsets.
    pub(super) fn expire_offsets(&mut self, turn: &mut Turn) {
        let keep_ms = i64::from(self.config().offsets_retention_minutes) * 60_000;
        let now_ms = turn.now.wall_ms;
        for (id, group) in &self.groups {
            let aging = group.aging();
            let mut keeps_any = self.offsets.has_open(id);
            let topics = self.offsets.committed.get(id).into_iter().flatten();
            for (topic, partitions) in topics {
                let is_subscribed = group.is_subscribed_to(topic);
                for (partition, held) in partitions {
                    let stays = is_subscribed
                        || !aging.is_over(&held.value, now_ms, keep_ms)
                        || self.offsets.is_open(id, topic, *partition);
                    if stays {
                        keeps_any = true;
                    } else {
                        turn.write(tombstone(id, topic, *partition));
                    }
                }
            }
            if !keeps_any && group.is_empty() {
                group
                    .tombstones()
                    .into_iter()
                    .for_each(|record| turn.write(record));
            }
        }
        if !self.groups.is_empty() {
            self.arm_expiry(turn.now.instant);
        }
    }
}

fn told(value: &OffsetCommitValue) -> FetchedOffset {
    FetchedOffset {
        offset: value.offset,
        leader_epoch: value.leader_epoch.0,
        metadata: value.metadata.clone(),
    }
}
