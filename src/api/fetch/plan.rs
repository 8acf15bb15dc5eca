//! What a fetch wants, and within which bytes.

use std::sync::Arc;

use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::{FetchRequest, TopicName};

use super::{carries_topic_ids, id_of};
use crate::api::context::Context;
use crate::base::{TopicId, Uuid};
use crate::protocol::error::ErrorCode;
use crate::replica::partition::Partition;

/// The bytes of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) min_bytes: usize,
    pub(super) max_bytes: usize,
}

impl Limits {
    /// The request's limits, bounded by `fetch.max.bytes`.
    pub(super) fn of(request: &FetchRequest, fetch_max_bytes: i32) -> Self {
        let max_bytes = request.max_bytes.min(fetch_max_bytes);
        Self {
            min_bytes: usize::try_from(request.min_bytes.min(max_bytes)).unwrap_or(0),
            max_bytes: usize::try_from(max_bytes).unwrap_or(0),
        }
    }
}

/// One partition that a fetch asks for.
#[derive(Clone)]
pub(super) struct Wanted {
    /// The place of its topic in the answer.
    pub(super) topic: usize,
    pub(super) name: TopicName,
    pub(super) topic_id: TopicId,
    pub(super) index: i32,
    pub(super) ask: FetchPartition,
    /// The replica on this node, or why there is none.
    pub(super) partition: Result<Arc<Partition>, ErrorCode>,
}

/// The partitions of a request in its order.
pub(super) fn wanted(ctx: &Context, request: &FetchRequest) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (at, topic) in request.topics.iter().enumerate() {
        let id = id_of(ctx, topic);
        for ask in &topic.partitions {
            wanted.push(Wanted {
                topic: at,
                name: topic.topic.clone(),
                topic_id: id.unwrap_or(TopicId(Uuid::ZERO)),
                index: ask.partition,
                ask: ask.clone(),
                partition: find(ctx, id, ask.partition),
            });
        }
    }
    wanted
}

fn find(ctx: &Context, id: Option<TopicId>, index: i32) -> Result<Arc<Partition>, ErrorCode> {
    let topic = id.and_then(|id| ctx.image().topics.by_id(id));
    let Some(topic) = topic else {
        return Err(if carries_topic_ids(ctx.version) {
            ErrorCode::UnknownTopicId
        } else {
            ErrorCode::UnknownTopicOrPartition
        });
    };
    if !topic.partitions.contains_key(&index) {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    let replica = ctx.parts.replicas.partition(topic.id, index);
    replica.ok_or(ErrorCode::NotLeaderOrFollower)
}
