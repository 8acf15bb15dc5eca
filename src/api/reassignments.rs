//! AlterPartitionReassignments: versions 0-1. ListPartitionReassignments: version 0.
//!
//! - v1 of the former may forbid another replication factor (KIP-860).

use std::sync::Arc;

use kafka_protocol::messages::alter_partition_reassignments_request::ReassignablePartition;
use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, BrokerId,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use super::topics::words;
use crate::base::NodeId;
use crate::controller::ask::{AlterReassignments, Reassignment};
use crate::metadata::image::topics::{Partition, Topic};
use crate::protocol::error::Refusal;

impl Refuse for ListPartitionReassignmentsRequest {
    type Response = ListPartitionReassignmentsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> ListPartitionReassignmentsResponse {
        ListPartitionReassignmentsResponse::default()
            .with_error_code(refusal.code.code())
            .with_error_message(Some(StrBytes::from_string(refusal.words().to_owned())))
    }
}

/// Lists the partitions whose replicas are moving.
pub(super) async fn list(
    ctx: Context,
    request: Arc<ListPartitionReassignmentsRequest>,
) -> Result<Reply<ListPartitionReassignmentsResponse>, Refusal> {
    let topics = match &request.topics {
        None => ctx
            .image()
            .topics
            .sorted()
            .into_iter()
            .filter_map(|t| ongoing(t, None))
            .collect(),
        Some(asked) => asked
            .iter()
            .filter_map(|one| {
                let topic = ctx.image().topics.by_name(one.name.as_str())?;
                ongoing(topic, Some(&one.partition_indexes))
            })
            .collect(),
    };
    Ok(ListPartitionReassignmentsResponse::default()
        .with_topics(topics)
        .into())
}

fn ongoing(topic: &Topic, only: Option<&Vec<i32>>) -> Option<OngoingTopicReassignment> {
    let wanted = |index: i32| only.is_none_or(|only| only.contains(&index));
    let moving =
        |partition: &Partition| !partition.adding.is_empty() || !partition.removing.is_empty();
    let partitions = topic
        .partitions
        .iter()
        .filter(|(index, it)| wanted(**index) && moving(it));
    let partitions: Vec<_> = partitions
        .map(|(index, it)| {
            OngoingPartitionReassignment::default()
                .with_partition_index(*index)
                .with_replicas(ids(&it.replicas))
                .with_adding_replicas(ids(&it.adding))
                .with_removing_replicas(ids(&it.removing))
        })
        .collect();
    (!partitions.is_empty()).then(|| {
        OngoingTopicReassignment::default()
            .with_name(topic_name(&topic.name))
            .with_partitions(partitions)
    })
}

fn ids(nodes: &[NodeId]) -> Vec<BrokerId> {
    nodes.iter().map(|node| BrokerId(node.0)).collect()
}

impl Refuse for AlterPartitionReassignmentsRequest {
    type Response = AlterPartitionReassignmentsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> AlterPartitionReassignmentsResponse {
        AlterPartitionReassignmentsResponse::default()
            .with_error_code(refusal.code.code())
            .with_error_message(words(refusal))
    }
}

/// Begins, replaces or cancels moves of replicas.
pub(super) async fn alter(
    ctx: Context,
    request: Arc<AlterPartitionReassignmentsRequest>,
) -> Result<Reply<AlterPartitionReassignmentsResponse>, Refusal> {
    let allowed = ctx.version == 0 || request.allow_replication_factor_change;
    let topics = request.topics.iter().map(|topic| {
        let moves = topic.partitions.iter().map(wanted);
        (topic.name.to_string(), moves.collect())
    });
    let asked = AlterReassignments {
        topics: topics.collect(),
        allow_replication_factor_change: allowed,
    };
    let results = ctx.ask(asked).await?;
    let responses = results.into_iter().map(|(name, partitions)| {
        let partitions = partitions
            .iter()
            .map(|(index, result)| moved(*index, result));
        ReassignableTopicResponse::default()
            .with_name(topic_name(&name))
            .with_partitions(partitions.collect())
    });
    let mut response =
        AlterPartitionReassignmentsResponse::default().with_responses(responses.collect());
    if ctx.version >= 1 {
        response.allow_replication_factor_change = allowed;
    }
    Ok(response.into())
}

fn wanted(partition: &ReassignablePartition) -> Reassignment {
    let replicas = partition.replicas.as_ref();
    Reassignment {
        partition: partition.partition_index,
        replicas: replicas.map(|ids| ids.iter().map(|id| NodeId(id.0)).collect()),
    }
}

fn moved(index: i32, result: &Result<(), Refusal>) -> ReassignablePartitionResponse {
    let answer = ReassignablePartitionResponse::default().with_partition_index(index);
    match result {
        Ok(()) => answer,
        // Unlike elsewhere, Kafka sends no default sentence here.
        Err(refusal) => answer
            .with_error_code(refusal.code.code())
            .with_error_message(refusal.message.as_ref().and_then(|_| words(refusal))),
    }
}
