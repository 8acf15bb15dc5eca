//! What a fetch wants, and within which bytes.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};

use super::carries_topic_ids;
use crate::api::context::Context;
use crate::base::TopicId;
use crate::metadata::image::Image;
use crate::protocol::error::ErrorCode;
use crate::replica::partition::Partition;

/// The bytes of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) min_bytes: i32,
    /// A negative one fails the first partition that has records, as with Kafka.
    pub(super) max_bytes: i32,
}

impl Limits {
    /// The request's limits, bounded by `fetch.max.bytes`.
    pub(super) fn of(request: &FetchRequest, fetch_max_bytes: i32) -> Self {
        let max_bytes = request.max_bytes.min(fetch_max_bytes);
        Self {
            min_bytes: request.min_bytes.min(max_bytes),
            max_bytes,
        }
    }
}

/// A topic as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TopicKey {
    Name(Arc<str>),
    Id(TopicId),
}

/// A partition as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) topic: TopicKey,
    pub(super) index: i32,
}

/// What a request says of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) fetch_offset: i64,
    pub(super) current_leader_epoch: i32,
    pub(super) last_fetched_epoch: i32,
    pub(super) max_bytes: i32,
}

/// One partition that is asked for. It holds nothing of the request's bytes, as a session may
/// keep it for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) key: Key,
    /// The topic's name, once an id was found to have one; it stays although the topic goes.
    pub(super) name: Option<Arc<str>>,
    pub(super) ask: Ask,
}

impl Asked {
    /// Looks for the name of an id that had none so far.
    pub(super) fn resolve(&mut self, image: &Image) {
        if let (None, TopicKey::Id(id)) = (&self.name, &self.key.topic) {
            self.name = image.topics.by_id(*id).map(|topic| topic.name.clone());
        }
    }
}

/// The partitions that a request lists. Of one listed twice the last word counts, in the place of
/// the first.
pub(super) fn asked(ctx: &Context, request: &FetchRequest) -> Vec<Asked> {
    let count = request.topics.iter().map(|topic| topic.partitions.len());
    let count = count.sum();
    let mut asked: Vec<Asked> = Vec::with_capacity(count);
    let mut places = HashMap::new();
    for topic in &request.topics {
        let (key, name) = name_of(ctx, topic);
        for partition in &topic.partitions {
            let one = Asked {
                key: Key {
                    topic: key.clone(),
                    index: partition.partition,
                },
                name: name.clone(),
                ask: ask(partition),
            };
            // One alone has no twin, as most often.
            let place = match count {
                1 => 0,
                _ => *places.entry(one.key.clone()).or_insert(asked.len()),
            };
            match asked.get_mut(place) {
                Some(there) => *there = one,
                None => asked.push(one),
            }
        }
    }
    asked
}

fn ask(partition: &FetchPartition) -> Ask {
    Ask {
        fetch_offset: partition.fetch_offset,
        current_leader_epoch: partition.current_leader_epoch,
        last_fetched_epoch: partition.last_fetched_epoch,
        max_bytes: partition.partition_max_bytes,
    }
}

fn name_of(ctx: &Context, topic: &FetchTopic) -> (TopicKey, Option<Arc<str>>) {
    let topics = &ctx.image().topics;
    if carries_topic_ids(ctx.version) {
        let id = TopicId(topic.topic_id.into());
        let name = topics.by_id(id).map(|topic| topic.name.clone());
        return (TopicKey::Id(id), name);
    }
    let known = topics.by_name(topic.topic.as_str());
    let name = known.map_or_else(
        || Arc::from(topic.topic.as_str()),
        |topic| topic.name.clone(),
    );
    (TopicKey::Name(name.clone()), Some(name))
}

/// The partitions that a session is to forget.
pub(super) fn forgotten(request: &FetchRequest, by_id: bool) -> impl Iterator<Item = Key> {
    let keys = move |topic: &ForgottenTopic| {
        let key = if by_id {
            TopicKey::Id(TopicId(topic.topic_id.into()))
        } else {
            TopicKey::Name(topic.topic.as_str().into())
        };
        let indexes = topic.partitions.clone().into_iter();
        indexes.map(move |index| Key {
            topic: key.clone(),
            index,
        })
    };
    request.forgotten_topics_data.iter().flat_map(keys)
}

/// One partition that a fetch reads.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) asked: Asked,
    /// The replica on this node, or why there is none.
    pub(super) partition: Result<Arc<Partition>, ErrorCode>,
}

impl Wanted {
    /// Whether the cluster has nothing by that name: such a partition does not end the wait for
    /// the others (KafkaApis.handleFetchRequest keeps it from the replica manager).
    pub(super) fn is_unknown(&self) -> bool {
        matches!(
            self.partition,
            Err(ErrorCode::UnknownTopicId | ErrorCode::UnknownTopicOrPartition)
        )
    }
}

/// Finds the partitions, in the order of the answer: as they were asked for, unknown ones last.
pub(super) fn wanted(ctx: &Context, asked: Vec<Asked>) -> Vec<Wanted> {
    let found = asked.into_iter().map(|asked| Wanted {
        partition: find(ctx, &asked),
        asked,
    });
    let mut wanted: Vec<Wanted> = found.collect();
    wanted.sort_by_key(Wanted::is_unknown);
    wanted
}

fn find(ctx: &Context, asked: &Asked) -> Result<Arc<Partition>, ErrorCode> {
    let Some(name) = &asked.name else {
        return Err(ErrorCode::UnknownTopicId);
    };
    let index = asked.key.index;
    let topic = ctx.image().topics.by_name(name);
    let topic = topic
        .filter(|topic| topic.partitions.contains_key(&index))
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if matches!(asked.key.topic, TopicKey::Id(id) if id != topic.id) {
        // Only a session remembers the name of a topic that is gone.
        return Err(ErrorCode::InconsistentTopicId);
    }
    ctx.parts.replicas.find(topic.id, index)
}
