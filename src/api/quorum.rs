//! DescribeQuorum: versions 0-2. UpdateFeatures: versions 0-2. UnregisterBroker: version 0.
//!
//! - DescribeQuorum v1 tells when voters fetched, v2 their directories and endpoints (KIP-853).
//! - UpdateFeatures v1 has upgrade types and validation alone (KIP-778), v2 one error for all.

use std::sync::Arc;

use kafka_protocol::messages::describe_quorum_request::TopicData as AskedTopic;
use kafka_protocol::messages::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{
    BrokerId, DescribeQuorumRequest, DescribeQuorumResponse, UnregisterBrokerRequest,
    UnregisterBrokerResponse, UpdateFeaturesRequest, UpdateFeaturesResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::serve::{Refuse, Reply};
use super::topics::words;
use crate::base::NodeId;
use crate::controller::ask::{FeatureUpdate, UnregisterBroker, UpdateFeatures, UpgradeType};
use crate::metadata::names::CLUSTER_METADATA_TOPIC;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::quorum::{Description, VoterState};

impl Refuse for DescribeQuorumRequest {
    type Response = DescribeQuorumResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> DescribeQuorumResponse {
        let response = DescribeQuorumResponse::default().with_error_code(refusal.code.code());
        if version >= 2 {
            response.with_error_message(words(refusal))
        } else {
            response
        }
    }
}

/// Tells who the voters are and how far they are.
pub(super) async fn describe_quorum(
    ctx: Context,
    request: Arc<DescribeQuorumRequest>,
) -> Result<Reply<DescribeQuorumResponse>, Refusal> {
    let quorum = ctx.parts.quorum.upgrade();
    let quorum = quorum.ok_or(ErrorCode::BrokerNotAvailable)?;
    // Only the metadata log's one partition can be asked for; with another the whole is refused.
    let known = request.topics.iter().all(is_metadata_log);
    let description = quorum.describe();
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let index = partition.partition_index;
            if known {
                described(ctx.version, index, &description)
            } else {
                unknown(ctx.version, index)
            }
        });
        TopicData::default()
            .with_topic_name(topic.topic_name.clone())
            .with_partitions(partitions.collect())
    });
    let mut response = DescribeQuorumResponse::default().with_topics(topics.collect());
    if ctx.version >= 2 {
        response.error_message = Some(StrBytes::new());
        if known && !request.topics.is_empty() {
            let voters = description.voters.iter();
            response.nodes = voters.map(|voter| node(&ctx, voter.id)).collect();
        }
    }
    Ok(response.into())
}

fn is_metadata_log(topic: &AskedTopic) -> bool {
    topic.topic_name.as_str() == CLUSTER_METADATA_TOPIC
        && matches!(&topic.partitions[..], [only] if only.partition_index == 0)
}

fn described(version: i16, index: i32, quorum: &Description) -> PartitionData {
    let leader = quorum.leadership.leader;
    let voters = quorum
        .voters
        .iter()
        .map(|voter| voter_state(version, voter));
    let mut partition = PartitionData::default()
        .with_partition_index(index)
        .with_leader_id(BrokerId(leader.map_or(-1, |id| id.0)))
        .with_leader_epoch(quorum.leadership.epoch.0)
        .with_high_watermark(quorum.high_watermark)
        .with_current_voters(voters.collect());
    if version >= 2 {
        partition.error_message = Some(StrBytes::new());
    }
    partition
}

fn unknown(version: i16, index: i32) -> PartitionData {
    let code = ErrorCode::UnknownTopicOrPartition;
    let partition = PartitionData::default()
        .with_partition_index(index)
        .with_error_code(code.code());
    if version >= 2 {
        partition.with_error_message(words(&code.into()))
    } else {
        partition
    }
}

fn voter_state(version: i16, voter: &VoterState) -> ReplicaState {
    let mut state = ReplicaState::default()
        .with_replica_id(BrokerId(voter.id.0))
        .with_log_end_offset(voter.log_end_offset);
    if version >= 1 {
        state.last_fetch_timestamp = voter.last_fetch_ms;
        state.last_caught_up_timestamp = voter.last_caught_up_ms;
    }
    if version >= 2 {
        state.replica_directory_id = voter.directory.0.into();
    }
    state
}

fn node(ctx: &Context, id: NodeId) -> Node {
    let registered = ctx.image().controllers.registration(id);
    let endpoints = registered.iter().flat_map(|it| &it.endpoints);
    let listeners = endpoints.map(|endpoint| {
        Listener::default()
            .with_name(StrBytes::from_string(endpoint.name.clone()))
            .with_host(StrBytes::from_string(endpoint.host.clone()))
            .with_port(endpoint.port)
    });
    Node::default()
        .with_node_id(BrokerId(id.0))
        .with_listeners(listeners.collect())
}

impl Refuse for UpdateFeaturesRequest {
    type Response = UpdateFeaturesResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> UpdateFeaturesResponse {
        UpdateFeaturesResponse::default()
            .with_error_code(refusal.code.code())
            .with_error_message(words(refusal))
    }
}

/// Finalizes features at other levels, all of them or none.
pub(super) async fn update_features(
    ctx: Context,
    request: Arc<UpdateFeaturesRequest>,
) -> Result<Reply<UpdateFeaturesResponse>, Refusal> {
    let updates = request.feature_updates.iter();
    let asked = UpdateFeatures {
        updates: updates.map(|one| update(ctx.version, one)).collect(),
        validate_only: ctx.version >= 1 && request.validate_only,
    };
    ctx.ask(asked).await?;
    let mut response = UpdateFeaturesResponse::default();
    if ctx.version <= 1 {
        let updates = request.feature_updates.iter();
        let done = |one: &FeatureUpdateKey| {
            UpdatableFeatureResult::default().with_feature(one.feature.clone())
        };
        response.results = updates.map(done).collect();
    }
    Ok(response.into())
}

fn update(version: i16, asked: &FeatureUpdateKey) -> FeatureUpdate {
    let kind = match (version, asked.upgrade_type) {
        (0, _) if asked.allow_downgrade => UpgradeType::SafeDowngrade,
        (0, _) | (_, 1) => UpgradeType::Upgrade,
        (_, 2) => UpgradeType::SafeDowngrade,
        (_, 3) => UpgradeType::UnsafeDowngrade,
        _ => UpgradeType::Unknown,
    };
    FeatureUpdate {
        name: asked.feature.to_string(),
        level: asked.max_version_level,
        kind,
    }
}

impl Refuse for UnregisterBrokerRequest {
    type Response = UnregisterBrokerResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> UnregisterBrokerResponse {
        UnregisterBrokerResponse::default()
            .with_error_code(refusal.code.code())
            .with_error_message(words(refusal))
    }
}

/// Has the cluster forget a broker.
pub(super) async fn unregister_broker(
    ctx: Context,
    request: Arc<UnregisterBrokerRequest>,
) -> Result<Reply<UnregisterBrokerResponse>, Refusal> {
    let broker_id = NodeId(request.broker_id.0);
    ctx.ask(UnregisterBroker { broker_id }).await?;
    Ok(UnregisterBrokerResponse::default().into())
}
