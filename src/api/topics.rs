//! CreateTopics: versions 2-7. DeleteTopics: versions 1-6. CreatePartitions: versions 0-3.
//!
//! - CreateTopics v4 takes -1 for the defaults (KIP-464), v5 tells what was made (KIP-525), v7 the
//!   topic's id (KIP-516). Answered when the metadata is committed and this broker follows it.
//! - DeleteTopics v3 knows TOPIC_DELETION_DISABLED, v5 carries messages, v6 takes ids (KIP-516).
//!   Answered when the name is free again; files go later.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use crate::base::{NodeId, TopicId};
use crate::config::describe;
use crate::controller::ask::{
    Assignment, CreatePartitions, CreateTopics, CreatedTopic, DeleteTopics, DeletedTopic,
    MorePartitions, NewTopic, TopicRef,
};
use crate::metadata::names;
use crate::protocol::error::{ErrorCode, Refusal};

fn tells_what_was_made(version: i16) -> bool {
    version >= 5
}

fn carries_topic_id(version: i16) -> bool {
    version >= 7
}

fn deletes_by_state(version: i16) -> bool {
    version >= 6
}

/// A refusal's words as the messages hold them: Kafka sends its default sentence where it has no
/// other.
pub(super) fn words(refusal: &Refusal) -> Option<StrBytes> {
    Some(StrBytes::from_string(refusal.words().to_owned()))
}

/// A refusal's own words, for messages where Kafka sends no default sentence (ApiError).
pub(super) fn own_words(refusal: &Refusal) -> Option<StrBytes> {
    refusal.message.as_ref().and_then(|_| words(refusal))
}

impl Refuse for CreateTopicsRequest {
    type Response = CreateTopicsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> CreateTopicsResponse {
        let topics = self
            .topics
            .iter()
            .map(|topic| refused(topic.name.as_str(), refusal));
        let topics = topics.map(|topic| topic.with_error_message(own_words(refusal)));
        CreateTopicsResponse::default().with_topics(topics.collect())
    }
}

/// Makes topics.
pub(super) async fn create(
    ctx: Context,
    request: Arc<CreateTopicsRequest>,
) -> Result<Reply<CreateTopicsResponse>, Refusal> {
    if request.timeout_ms <= 0 {
        return Err(ErrorCode::RequestTimedOut.into());
    }
    let asked = CreateTopics {
        topics: request.topics.iter().map(new_topic).collect(),
        validate_only: request.validate_only,
    };
    let results = ctx.ask(asked).await?;
    let topics = results.into_iter().map(|(name, result)| match result {
        Ok(made) => made_topic(&ctx, &name, &made),
        Err(refusal) => refused(&name, &refusal),
    });
    Ok(CreateTopicsResponse::default()
        .with_topics(topics.collect())
        .into())
}

fn new_topic(topic: &CreatableTopic) -> NewTopic {
    let assignments = topic.assignments.iter().map(|one| Assignment {
        partition: one.partition_index,
        replicas: one.broker_ids.iter().map(|id| NodeId(id.0)).collect(),
    });
    let configs = topic.configs.iter().map(|one| {
        (
            one.name.to_string(),
            one.value.as_ref().map(|value| value.to_string()),
        )
    });
    NewTopic {
        name: topic.name.to_string(),
        num_partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: assignments.collect(),
        configs: configs.collect(),
    }
}

fn made_topic(ctx: &Context, name: &str, made: &CreatedTopic) -> CreatableTopicResult {
    let mut result = CreatableTopicResult::default()
        .with_name(topic_name(name))
        .with_error_message(None);
    if carries_topic_id(ctx.version) {
        result.topic_id = made.topic_id.0.into();
    }
    if tells_what_was_made(ctx.version) {
        let options = ctx.parts.options.current();
        let entries = describe::created_topic(&made.configs, &options.layers);
        let configs = entries.into_iter().map(|entry| {
            CreatableTopicConfigs::default()
                .with_name(StrBytes::from_string(entry.name))
                .with_value(entry.value.map(StrBytes::from_string))
                .with_read_only(entry.read_only)
                .with_config_source(entry.source.id())
                .with_is_sensitive(entry.sensitive)
        });
        result.num_partitions = made.num_partitions;
        result.replication_factor = made.replication_factor;
        result.configs = Some(configs.collect());
    }
    result
}

fn refused(name: &str, refusal: &Refusal) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(topic_name(name))
        .with_error_code(refusal.code.code())
        .with_error_message(words(refusal))
}

/// Makes topics that clients named before anybody made them, with the broker's defaults. What
/// can't be made is left to the client's next question.
pub(super) async fn auto_create(ctx: &Context, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let options = ctx.parts.options.current();
    let alive = ctx.image().alive_brokers().count();
    let topics = names
        .iter()
        .map(|name| auto_topic(&options.config, alive, name))
        .collect();
    let results = ctx
        .ask(CreateTopics {
            topics,
            validate_only: false,
        })
        .await;
    for (name, result) in results.into_iter().flatten() {
        if let Err(refusal) = result
            && refusal.code != ErrorCode::TopicAlreadyExists
        {
            tracing::info!(topic = name, %refusal, "a topic could not be made for a client");
        }
    }
}

/// What a topic is made with that nobody described (DefaultAutoTopicCreationManager). Where the
/// options do not say how many replicas a coordinators' topic has, there are as many as Kafka's
/// default asks for, or as brokers are there.
fn auto_topic(config: &crate::config::BrokerConfig, alive: usize, name: &str) -> NewTopic {
    let replicas = |option: &str, factor: i16| {
        let most = i16::try_from(alive).unwrap_or(i16::MAX).max(1);
        match config.given.contains_key(option) {
            true => factor,
            false => factor.min(most),
        }
    };
    let compacted = |more: &[(&str, &str)]| {
        let all = [("cleanup.policy", "compact")].iter().chain(more);
        all.map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())))
            .collect()
    };
    let segment = |bytes: i32| bytes.to_string();
    let (num_partitions, replication_factor, configs) = match name {
        names::GROUP_METADATA_TOPIC => (
            config.offsets_topic_num_partitions,
            replicas(
                "offsets.topic.replication.factor",
                config.offsets_topic_replication_factor,
            ),
            compacted(&[
                ("compression.type", "producer"),
                (
                    "segment.bytes",
                    &segment(config.offsets_topic_segment_bytes),
                ),
            ]),
        ),
        names::TRANSACTION_STATE_TOPIC => (
            config.transaction_state_log_num_partitions,
            replicas(
                "transaction.state.log.replication.factor",
                config.transaction_state_log_replication_factor,
            ),
            compacted(&[
                ("compression.type", "uncompressed"),
                ("unclean.leader.election.enable", "false"),
                (
                    "min.insync.replicas",
                    &config.transaction_state_log_min_isr.to_string(),
                ),
                (
                    "segment.bytes",
                    &segment(config.transaction_state_log_segment_bytes),
                ),
            ]),
        ),
        _ => (-1, -1, Vec::new()),
    };
    NewTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        assignments: Vec::new(),
        configs,
    }
}

impl Refuse for DeleteTopicsRequest {
    type Response = DeleteTopicsResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> DeleteTopicsResponse {
        let results = topic_refs(self, version).into_iter().map(|topic| {
            deleted(
                version,
                DeletedTopic {
                    topic,
                    result: Err(refusal.clone()),
                },
            )
        });
        DeleteTopicsResponse::default().with_responses(results.collect())
    }
}

/// Removes topics.
pub(super) async fn delete(
    ctx: Context,
    request: Arc<DeleteTopicsRequest>,
) -> Result<Reply<DeleteTopicsResponse>, Refusal> {
    if !ctx.parts.options.current().config.delete_topic_enable {
        let code = if ctx.version < 3 {
            ErrorCode::InvalidRequest
        } else {
            ErrorCode::TopicDeletionDisabled
        };
        return Err(code.into());
    }
    let topics = topic_refs(&request, ctx.version);
    let results = ctx.ask(DeleteTopics { topics }).await?;
    let results = results
        .into_iter()
        .map(|result| deleted(ctx.version, result));
    Ok(DeleteTopicsResponse::default()
        .with_responses(results.collect())
        .into())
}

fn topic_refs(request: &DeleteTopicsRequest, version: i16) -> Vec<TopicRef> {
    if deletes_by_state(version) {
        return request.topics.iter().map(topic_ref).collect();
    }
    let names = request.topic_names.iter();
    names
        .map(|name| TopicRef {
            name: Some(name.to_string()),
            topic_id: None,
        })
        .collect()
}

fn topic_ref(topic: &DeleteTopicState) -> TopicRef {
    let id = topic.topic_id;
    TopicRef {
        name: topic.name.as_ref().map(|name| name.to_string()),
        topic_id: (!id.is_nil()).then(|| TopicId(id.into())),
    }
}

fn deleted(version: i16, answer: DeletedTopic) -> DeletableTopicResult {
    let name = answer.topic.name.as_deref().map(topic_name);
    let mut result = DeletableTopicResult::default();
    // Null names are readable from v6 on only.
    result.name = if deletes_by_state(version) {
        name
    } else {
        Some(name.unwrap_or_default())
    };
    if let (true, Some(id)) = (deletes_by_state(version), answer.topic.topic_id) {
        result.topic_id = id.0.into();
    }
    if let Err(refusal) = answer.result {
        result.error_code = refusal.code.code();
        if version >= 5 {
            result.error_message = words(&refusal);
        }
    }
    result
}

impl Refuse for CreatePartitionsRequest {
    type Response = CreatePartitionsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> CreatePartitionsResponse {
        let results = self
            .topics
            .iter()
            .map(|topic| more_partitions(topic.name.as_str(), &Err(refusal.clone())));
        CreatePartitionsResponse::default().with_results(results.collect())
    }
}

/// Adds partitions to topics.
pub(super) async fn create_partitions(
    ctx: Context,
    request: Arc<CreatePartitionsRequest>,
) -> Result<Reply<CreatePartitionsResponse>, Refusal> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for topic in &request.topics {
        *times.entry(topic.name.as_str()).or_default() += 1;
    }
    let once = request
        .topics
        .iter()
        .filter(|topic| times[topic.name.as_str()] == 1);
    let topics = once.map(|topic| MorePartitions {
        name: topic.name.to_string(),
        count: topic.count,
        assignments: topic.assignments.as_ref().map(|all| {
            let ids = |one: &Vec<_>| {
                one.iter()
                    .map(|id: &kafka_protocol::messages::BrokerId| NodeId(id.0))
                    .collect()
            };
            all.iter().map(|one| ids(&one.broker_ids)).collect()
        }),
    });
    let asked = CreatePartitions {
        topics: topics.collect(),
        validate_only: request.validate_only,
    };
    let mut results = ctx.ask(asked).await?;
    let twice = times.iter().filter(|(_, times)| **times > 1);
    results.extend(twice.map(|(name, _)| {
        let words = "Duplicate topic name.";
        (
            (*name).to_owned(),
            Err(Refusal::new(ErrorCode::InvalidRequest, words)),
        )
    }));
    let results = results
        .iter()
        .map(|(name, result)| more_partitions(name, result));
    Ok(CreatePartitionsResponse::default()
        .with_results(results.collect())
        .into())
}

fn more_partitions(name: &str, result: &Result<(), Refusal>) -> CreatePartitionsTopicResult {
    let answer = CreatePartitionsTopicResult::default().with_name(topic_name(name));
    match result {
        Ok(()) => answer,
        Err(refusal) => answer
            .with_error_code(refusal.code.code())
            .with_error_message(words(refusal)),
    }
}
