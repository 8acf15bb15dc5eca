//! Topics: create, delete, more partitions (ReplicationControlManager, ControllerApis).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tracing::info;

use crate::base::{LeaderEpoch, NodeId, PartitionEpoch, TopicId};
use crate::metadata::image::configs::{Options, Resource};
use crate::metadata::image::topics::{LeaderRecovery, Partition, Topic};
use crate::metadata::names;
use crate::metadata::record::{Record, RemoveTopicRecord, TopicRecord};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{
    Assignment, CreatePartitions, CreateTopics, CreatedTopic, DeleteTopics, DeletedTopic,
    MorePartitions, NewTopic, TopicRef,
};
use super::placement::{Usable, place};
use super::state::{MAX_RECORDS, State, too_large, within_limit};
use super::{Decided, Decision};

/// The most partitions that one request may make (ReplicationControlManager).
const MAX_PARTITIONS: usize = 10_000;

type Results<T> = Vec<(String, Result<T, Refusal>)>;

impl State {
    /// Makes topics; one that cannot be made does not keep others from being made.
    pub(super) fn create_topics(&self, asked: &CreateTopics) -> Decided<Results<CreatedTopic>> {
        let duplicates = duplicates(asked.topics.iter().map(|topic| topic.name.as_str()));
        let wanted = || {
            let topics = asked.topics.iter();
            topics.filter(|t| !duplicates.contains(t.name.as_str()))
        };
        self.check_total_partitions(wanted())?;
        let mut records = Vec::new();
        let mut reply = Vec::new();
        for topic in wanted() {
            let created = self.create_topic(topic, &mut records);
            reply.push((topic.name.clone(), created));
        }
        for name in duplicates {
            reply.push((name.to_owned(), Err(duplicate_name())));
        }
        let records = within_limit(records)?;
        let records = if asked.validate_only {
            Vec::new()
        } else {
            records
        };
        Ok(Decision { records, reply })
    }

    fn check_total_partitions<'a>(
        &self,
        topics: impl Iterator<Item = &'a NewTopic>,
    ) -> Result<(), Refusal> {
        let count = |topic: &NewTopic| {
            if !topic.assignments.is_empty() {
                return topic.assignments.len();
            }
            let count = self.partitions_or_default(topic.num_partitions);
            usize::try_from(count).unwrap_or(0)
        };
        let total = topics.map(count).fold(0usize, usize::saturating_add);
        if total <= MAX_PARTITIONS {
            return Ok(());
        }
        let words = "Excessively large number of partitions per request.";
        Err(Refusal::new(ErrorCode::PolicyViolation, words))
    }

    fn partitions_or_default(&self, count: i32) -> i32 {
        if count == -1 {
            self.settings.num_partitions
        } else {
            count
        }
    }

    fn create_topic(
        &self,
        topic: &NewTopic,
        records: &mut Vec<Record>,
    ) -> Result<CreatedTopic, Refusal> {
        self.check_new_name(&topic.name)?;
        let configs = creation_configs(topic)?;
        let config_records = self.new_topic_configs(&Resource::topic(&topic.name), &configs)?;
        let partitions = if topic.assignments.is_empty() {
            self.placed_partitions(topic)?
        } else {
            self.assigned_partitions(topic)?
        };
        let topic_id = self.new_topic_id();
        let first = partitions.first().map_or(0, |p| p.replicas.len());
        let created = CreatedTopic {
            topic_id,
            num_partitions: i32::try_from(partitions.len()).expect("a request's limit"),
            replication_factor: i16::try_from(first).unwrap_or(i16::MAX),
            configs,
        };
        info!(topic = %topic.name, id = %topic_id, partitions = partitions.len(), "a topic is made");
        records.push(Record::Topic(TopicRecord {
            name: topic.name.as_str().into(),
            topic_id,
        }));
        records.extend(config_records);
        push_partitions(records, topic_id, 0, partitions);
        Ok(created)
    }

    fn check_new_name(&self, name: &str) -> Result<(), Refusal> {
        if name == names::CLUSTER_METADATA_TOPIC {
            let words = format!("Creation of internal topic {name} is prohibited.");
            return Err(Refusal::new(ErrorCode::InvalidRequest, words));
        }
        names::validate(name)?;
        if self.image.topics.by_name(name).is_some() {
            let words = format!("Topic '{name}' already exists.");
            return Err(Refusal::new(ErrorCode::TopicAlreadyExists, words));
        }
        let collides = |topic: &&Arc<Topic>| names::collide(&topic.name, name);
        if names::may_collide(name)
            && let Some(other) = self.image.topics.iter().find(collides)
        {
            let other = &other.name;
            let words = format!("Topic '{name}' collides with existing topic: {other}");
            return Err(Refusal::new(ErrorCode::InvalidTopicException, words));
        }
        Ok(())
    }

    fn new_topic_id(&self) -> TopicId {
        loop {
            let id = TopicId((self.settings.uuid)());
            if self.image.topics.by_id(id).is_none() {
                return id;
            }
        }
    }

    fn placed_partitions(&self, topic: &NewTopic) -> Result<Vec<Partition>, Refusal> {
        let count = self.partitions_or_default(topic.num_partitions);
        let factor = match topic.replication_factor {
            -1 => self.settings.default_replication_factor,
            factor => factor,
        };
        if topic.replication_factor < -1 || topic.replication_factor == 0 {
            let words = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, words));
        }
        let Some(count @ 1..) = usize::try_from(count).ok() else {
            let words = "Number of partitions was set to an invalid non-positive value.";
            return Err(Refusal::new(ErrorCode::InvalidPartitions, words));
        };
        self.placed(count, factor).map_err(|refusal| {
            let why = refusal.words();
            let words = format!("Unable to replicate the partition {factor} time(s): {why}");
            Refusal::new(ErrorCode::InvalidReplicationFactor, words)
        })
    }

    /// New partitions where the placement wants them; the words are without their beginning.
    fn placed(&self, count: usize, factor: i16) -> Result<Vec<Partition>, Refusal> {
        let brokers = self.usable_brokers();
        let below = |bound| (self.settings.below)(bound);
        let placed = place(&brokers, count, factor, &below)?;
        let partitions = placed
            .into_iter()
            .map(|replicas| self.new_partition(replicas));
        partitions.collect::<Option<_>>().ok_or_else(|| {
            let words = "All brokers are currently fenced or in controlled shutdown.";
            Refusal::new(ErrorCode::InvalidReplicationFactor, words)
        })
    }

    /// Brokers that are on their way out get nothing new; fenced ones may.
    fn usable_brokers(&self) -> Vec<Usable<'_>> {
        let brokers = self.image.brokers.sorted().into_iter();
        let usable = brokers.filter(|broker| broker.fenced || !broker.in_controlled_shutdown);
        usable
            .map(|broker| Usable {
                id: broker.id,
                rack: broker.rack.as_deref(),
                fenced: broker.fenced,
            })
            .collect()
    }

    fn assigned_partitions(&self, topic: &NewTopic) -> Result<Vec<Partition>, Refusal> {
        let invalid = |words: &'static str| Err(Refusal::new(ErrorCode::InvalidRequest, words));
        if topic.replication_factor != -1 {
            return invalid(
                "A manual partition assignment was specified, but replication factor was not set \
                 to -1.",
            );
        }
        if topic.num_partitions != -1 {
            return invalid(
                "A manual partition assignment was specified, but numPartitions was not set to \
                 -1.",
            );
        }
        let mut partitions = BTreeMap::new();
        let mut factor = None;
        for Assignment {
            partition,
            replicas,
        } in &topic.assignments
        {
            if partitions.contains_key(partition) {
                return Err(bad_assignment(format!(
                    "Found multiple manual partition assignments for partition {partition}"
                )));
            }
            self.check_assignment(replicas, factor)?;
            factor = Some(replicas.len());
            let made = self.assigned_partition(*partition, replicas.clone())?;
            partitions.insert(*partition, made);
        }
        if (0..)
            .zip(partitions.keys())
            .any(|(index, partition)| index != *partition)
        {
            return Err(bad_assignment(
                "partitions should be a consecutive 0-based integer sequence".to_owned(),
            ));
        }
        Ok(partitions.into_values().collect())
    }

    fn assigned_partition(&self, index: i32, replicas: Vec<NodeId>) -> Result<Partition, Refusal> {
        self.new_partition(replicas).ok_or_else(|| {
            bad_assignment(format!(
                "All brokers specified in the manual partition assignment for partition {index} \
                 are fenced or in controlled shutdown."
            ))
        })
    }

    /// Refuses replicas that cannot be
    /// (ReplicationControlManager.validateManualPartitionAssignment).
    pub(super) fn check_assignment(
        &self,
        replicas: &[NodeId],
        factor: Option<usize>,
    ) -> Result<(), Refusal> {
        let refuse = |words: String| Err(bad_assignment(words));
        if replicas.is_empty() {
            let words = "The manual partition assignment includes an empty replica list.";
            return refuse(words.to_owned());
        }
        let mut sorted = replicas.to_vec();
        sorted.sort_unstable();
        let mut before = None;
        for id in &sorted {
            if self.image.brokers.registration(*id).is_none() {
                return refuse(format!(
                    "The manual partition assignment includes broker {id}, but no such broker is \
                     registered."
                ));
            }
            if before == Some(id) {
                return refuse(format!(
                    "The manual partition assignment includes the broker {id} more than once."
                ));
            }
            before = Some(id);
        }
        match factor {
            Some(factor) if factor != replicas.len() => refuse(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this \
                 is not consistent with previous partitions, which have {factor} replica(s).",
                replicas.len()
            )),
            _ => Ok(()),
        }
    }

    /// A partition that nobody wrote to yet; `None` when no replica is active.
    fn new_partition(&self, replicas: Vec<NodeId>) -> Option<Partition> {
        let active = |id: &NodeId| self.image.brokers.is_active(*id);
        let isr: Vec<_> = replicas.iter().copied().filter(active).collect();
        let leader = *isr.first()?;
        let directories = replicas.iter().map(|id| self.default_directory(*id));
        Some(Partition {
            directories: directories.collect(),
            replicas,
            isr,
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            removing: Vec::new(),
            adding: Vec::new(),
            leader,
            recovery: LeaderRecovery::Recovered,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
        })
    }

    /// Removes topics by name or id.
    pub(super) fn delete_topics(&self, asked: &DeleteTopics) -> Decided<Vec<DeletedTopic>> {
        let mut reply = Vec::new();
        let mut found: BTreeMap<TopicId, Vec<TopicRef>> = BTreeMap::new();
        for (topic, times) in counted(&asked.topics) {
            match self.deletable(&topic, times) {
                Ok(id) => found.entry(id).or_default().push(topic),
                Err(refusal) => reply.push(DeletedTopic {
                    topic,
                    result: Err(refusal),
                }),
            }
        }
        let mut records = Vec::new();
        for (topic_id, refs) in found {
            let name = self
                .image
                .topics
                .by_id(topic_id)
                .map(|t| t.name.to_string());
            let result = if refs.len() > 1 {
                let words = "The provided topic name maps to an ID that was already supplied.";
                Err(Refusal::new(ErrorCode::InvalidRequest, words))
            } else {
                info!(topic = name, id = %topic_id, "a topic is removed");
                records.push(Record::RemoveTopic(RemoveTopicRecord { topic_id }));
                Ok(())
            };
            let topic = TopicRef {
                name,
                topic_id: Some(topic_id),
            };
            reply.push(DeletedTopic { topic, result });
        }
        let records = within_limit(records)?;
        Ok(Decision { records, reply })
    }

    fn deletable(&self, topic: &TopicRef, times: usize) -> Result<TopicId, Refusal> {
        let invalid = |words: &'static str| Err(Refusal::new(ErrorCode::InvalidRequest, words));
        match (&topic.name, topic.topic_id) {
            (None, None) => invalid("Neither topic name nor id were specified."),
            (Some(_), Some(_)) => invalid("You may not specify both topic name and topic id."),
            (Some(_), None) if times > 1 => invalid("Duplicate topic name."),
            (None, Some(_)) if times > 1 => invalid("Duplicate topic id."),
            (Some(name), None) => self
                .image
                .topics
                .id(name)
                .ok_or(Refusal::bare(ErrorCode::UnknownTopicOrPartition)),
            (None, Some(id)) => match self.image.topics.by_id(id) {
                Some(_) => Ok(id),
                None => Err(Refusal::bare(ErrorCode::UnknownTopicId)),
            },
        }
    }

    /// Gives topics more partitions.
    pub(super) fn create_partitions(&self, asked: &CreatePartitions) -> Decided<Results<()>> {
        let duplicates = duplicates(asked.topics.iter().map(|topic| topic.name.as_str()));
        let mut reply: Results<()> = Vec::new();
        for name in &duplicates {
            reply.push(((*name).to_owned(), Err(duplicate_name())));
        }
        let mut records = Vec::new();
        for topic in &asked.topics {
            if duplicates.contains(topic.name.as_str()) {
                continue;
            }
            let result = self.add_partitions(topic, &mut records);
            reply.push((topic.name.clone(), result));
            if records.len() > MAX_RECORDS {
                break;
            }
        }
        let records = within_limit(records)?;
        let records = if asked.validate_only {
            Vec::new()
        } else {
            records
        };
        Ok(Decision { records, reply })
    }

    fn add_partitions(
        &self,
        asked: &MorePartitions,
        records: &mut Vec<Record>,
    ) -> Result<(), Refusal> {
        let unknown = Refusal::bare(ErrorCode::UnknownTopicOrPartition);
        let topic = self
            .image
            .topics
            .by_name(&asked.name)
            .ok_or_else(|| unknown.clone())?;
        let first = topic.partitions.values().next().ok_or(unknown)?;
        let now = i32::try_from(topic.partitions.len()).expect("partitions are counted by int32");
        let additional = added(asked, now)?;
        let factor = first.replicas.len();
        let partitions = match &asked.assignments {
            None if additional > MAX_RECORDS => return Err(too_large()),
            None => self.placed(additional, i16::try_from(factor).unwrap_or(i16::MAX))?,
            Some(assignments) if assignments.len() != additional => {
                return Err(bad_assignment(format!(
                    "Attempted to add {additional} additional partition(s), but only {} \
                     assignment(s) were specified.",
                    assignments.len()
                )));
            }
            Some(assignments) => (now..)
                .zip(assignments)
                .map(|(index, replicas)| {
                    self.check_assignment(replicas, Some(factor))?;
                    self.assigned_partition(index, replicas.clone())
                })
                .collect::<Result<_, _>>()?,
        };
        push_partitions(records, topic.id, now, partitions);
        Ok(())
    }
}

fn added(asked: &MorePartitions, now: i32) -> Result<usize, Refusal> {
    let refuse = |words: String| Err(Refusal::new(ErrorCode::InvalidPartitions, words));
    if asked.count == now {
        return refuse(format!("Topic already has {now} partition(s)."));
    }
    match usize::try_from(i64::from(asked.count) - i64::from(now)) {
        Ok(additional) => Ok(additional),
        Err(_) => refuse(format!(
            "The topic {} currently has {now} partition(s); {} would not be an increase.",
            asked.name, asked.count
        )),
    }
}

fn push_partitions(
    records: &mut Vec<Record>,
    topic_id: TopicId,
    first: i32,
    partitions: Vec<Partition>,
) {
    let numbered = (first..).zip(partitions);
    records.extend(numbered.map(|(index, p)| Record::from(p.to_record(topic_id, index))));
}

/// What a new topic's options shall be; the last of a name counts.
fn creation_configs(topic: &NewTopic) -> Result<Options, Refusal> {
    let mut configs = Options::new();
    let mut nulls = Vec::new();
    for (name, value) in &topic.configs {
        match value {
            Some(value) => {
                configs.insert(name.clone(), value.clone());
            }
            None => nulls.push(name.as_str()),
        }
    }
    if nulls.is_empty() {
        return Ok(configs);
    }
    let words = format!(
        "Null value not supported for topic configs: {}",
        nulls.join(",")
    );
    Err(Refusal::new(ErrorCode::InvalidConfig, words))
}

/// Names that come more than once.
pub(super) fn duplicates<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

/// Each different entry in order of appearance, and how often it comes.
fn counted(topics: &[TopicRef]) -> Vec<(TopicRef, usize)> {
    let mut counts: Vec<(TopicRef, usize)> = Vec::new();
    let mut places: HashMap<(Option<&str>, Option<TopicId>), usize> = HashMap::new();
    for topic in topics {
        let key = (topic.name.as_deref(), topic.topic_id);
        // Entries that are wrong in themselves are answered one by one.
        let wrong = key.0.is_some() == key.1.is_some();
        match places.get(&key) {
            Some(place) if !wrong => counts[*place].1 += 1,
            _ => {
                places.insert(key, counts.len());
                counts.push((topic.clone(), 1));
            }
        }
    }
    counts
}

fn duplicate_name() -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.")
}

fn bad_assignment(words: String) -> Refusal {
    Refusal::new(ErrorCode::InvalidReplicaAssignment, words)
}
