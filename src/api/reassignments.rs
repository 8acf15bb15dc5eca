//! ListPartitionReassignments: version 0.

use std::sync::Arc;

use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{
    BrokerId, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use crate::base::NodeId;
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
