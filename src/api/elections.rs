//! ElectLeaders: versions 0-2.
//!
//! - v0 elects preferred leaders only (KIP-183), v1 unclean ones too and has an error of its own
//!   (KIP-460).

use std::sync::Arc;

use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};

use super::context::Context;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use super::topics::words;
use crate::controller::ask::{ElectLeaders, Election};
use crate::protocol::error::{ErrorCode, Refusal};

impl Refuse for ElectLeadersRequest {
    type Response = ElectLeadersResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> ElectLeadersResponse {
        let topics = self.topic_partitions.iter().flatten().map(|topic| {
            let partitions = topic.partitions.iter();
            let refused = partitions.map(|index| elected(*index, &Err(refusal.clone())));
            ReplicaElectionResult::default()
                .with_topic(topic.topic.clone())
                .with_partition_result(refused.collect())
        });
        let response =
            ElectLeadersResponse::default().with_replica_election_results(topics.collect());
        if version >= 1 {
            response.with_error_code(refusal.code.code())
        } else {
            response
        }
    }
}

/// Elects leaders.
pub(super) async fn elect(
    ctx: Context,
    request: Arc<ElectLeadersRequest>,
) -> Result<Reply<ElectLeadersResponse>, Refusal> {
    let election = match (ctx.version, request.election_type) {
        (0, _) | (_, 0) => Election::Preferred,
        (_, 1) => Election::Unclean,
        (_, other) => {
            let words = format!("Unknown election type {other}");
            return Err(Refusal::new(ErrorCode::InvalidRequest, words));
        }
    };
    let partitions = request.topic_partitions.as_ref().map(|topics| {
        let topics = topics.iter();
        topics
            .map(|one| (one.topic.to_string(), one.partitions.clone()))
            .collect()
    });
    let results = ctx
        .ask(ElectLeaders {
            election,
            partitions,
        })
        .await?;
    let topics = results.into_iter().map(|(name, partitions)| {
        let partitions = partitions
            .iter()
            .map(|(index, result)| elected(*index, result));
        ReplicaElectionResult::default()
            .with_topic(topic_name(&name))
            .with_partition_result(partitions.collect())
    });
    Ok(ElectLeadersResponse::default()
        .with_replica_election_results(topics.collect())
        .into())
}

fn elected(index: i32, result: &Result<(), Refusal>) -> PartitionResult {
    let answer = PartitionResult::default().with_partition_id(index);
    match result {
        Ok(()) => answer,
        Err(refusal) => answer
            .with_error_code(refusal.code.code())
            .with_error_message(words(refusal)),
    }
}
