//! Produce: versions 3-13.
//!
//! - One batch of magic 2 per partition. acks=0 is answered with nothing, and an error with a
//!   closed connection.
//! - v5 log start offset · v7 zstd (KIP-110) · v8 errors by record (KIP-467) · v10 the new leader
//!   (KIP-951) · v11 and v12 change transactions only (KIP-890) · v13 topics by id (KIP-516).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::serve::{Refuse, Reply};
use crate::base::{LeaderEpoch, TopicId};
use crate::log::append::{self, Rejection};
use crate::log::log::Appended;
use crate::log::producers::Origin;
use crate::metadata::image::topics::Topic;
use crate::metadata::names;
use crate::os::clock;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::protocol::produce::Produced;
use crate::protocol::records::batch::{self, Header};
use crate::protocol::records::compress::Codec;
use crate::replica::commit;
use crate::replica::partition::{NotAppended, Partition};

fn carries_topic_ids(version: i16) -> bool {
    version >= 13
}

fn knows_zstd(version: i16) -> bool {
    version >= 7
}

fn carries_record_errors(version: i16) -> bool {
    version >= 8
}

fn names_new_leader(version: i16) -> bool {
    version >= 10
}

/// The records at fault that one answer names, in all its partitions.
const RECORD_ERRORS: usize = 10_000;

/// The client id with which Kafka's own tools may write to internal topics (AdminUtils).
const ADMIN_CLIENT: &str = "__admin_client";

impl Refuse for ProduceRequest {
    type Response = Produced;

    fn refuse(&self, version: i16, refusal: &Refusal) -> Produced {
        let topics = self.topic_data.iter().map(|topic| {
            let outcomes = topic
                .partition_data
                .iter()
                .map(|data| failure(version, data.index, &Failure::from(refusal.clone())));
            topic_response(version, topic, outcomes.collect())
        });
        Produced(ProduceResponse::default().with_responses(topics.collect()))
    }
}

/// What became of one partition's records.
struct Failure {
    refusal: Refusal,
    record_errors: Vec<append::RecordError>,
    log_start_offset: i64,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            record_errors: Vec::new(),
            log_start_offset: -1,
        }
    }
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        Refusal::bare(code).into()
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self {
            refusal: rejection.refusal,
            record_errors: rejection.record_errors,
            log_start_offset: rejection.log_start_offset.unwrap_or(-1),
        }
    }
}

impl From<NotAppended> for Failure {
    fn from(error: NotAppended) -> Self {
        match error {
            NotAppended::Rejected(rejection) => (*rejection).into(),
            NotAppended::Unavailable(code) => code.into(),
        }
    }
}

/// Records that were appended and may have to wait for the other replicas.
struct Written {
    partition: Arc<Partition>,
    epoch: LeaderEpoch,
    appended: Appended,
}

/// Appends records.
pub(super) async fn produce(
    ctx: Context,
    request: Arc<ProduceRequest>,
) -> Result<Reply<Produced>, Refusal> {
    if !(-1..=1).contains(&request.acks) {
        return Err(ErrorCode::InvalidRequiredAcks.into());
    }
    let deadline =
        clock::now() + Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let mut response = ProduceResponse::default();
    let mut waiting = Vec::new();
    refuse_transactional(&request)?;
    let last = last_of_each(&request, ctx.version);
    let mut record_errors = RECORD_ERRORS;
    for (at, topic) in request.topic_data.iter().enumerate() {
        let mut outcomes = Vec::with_capacity(topic.partition_data.len());
        for (place, data) in topic.partition_data.iter().enumerate() {
            let key = key(topic, data.index, ctx.version);
            if last.get(&key).is_some_and(|last| *last != (at, place)) {
                continue;
            }
            let outcome = append_one(&ctx, &request, topic, data).await;
            // A batch may be refused without a wait, and there may be many of them.
            tokio::task::coop::consume_budget().await;
            outcomes.push(match outcome {
                Ok(written) => {
                    if must_wait(request.acks, &written) {
                        let waiting_for = Waiting::of(&written, request.acks);
                        waiting.push(((at, outcomes.len()), waiting_for));
                    }
                    success(ctx.version, data.index, &written.appended)
                }
                Err(mut error) => {
                    error.record_errors.truncate(record_errors);
                    record_errors -= error.record_errors.len();
                    failure(ctx.version, data.index, &error)
                }
            });
        }
        response
            .responses
            .push(topic_response(ctx.version, topic, outcomes));
    }
    if request.acks == 0 {
        return Ok(unanswered(&response));
    }
    name_new_leaders(&ctx, &request, &mut response);
    if waiting.is_empty() {
        return Ok(Reply::Now(Produced(response)));
    }
    let version = ctx.version;
    Ok(Reply::Later(Box::pin(async move {
        for ((topic, place), waiting) in waiting {
            if let Err(code) = waiting.done(deadline).await {
                let outcome = &mut response.responses[topic].partition_responses[place];
                *outcome = failure(version, outcome.index, &code.into());
            }
        }
        Produced(response)
    })))
}

struct Waiting {
    partition: Arc<Partition>,
    end: i64,
    epoch: LeaderEpoch,
    /// For all in-sync replicas, not only for the disk.
    all: bool,
}

impl Waiting {
    fn of(written: &Written, acks: i16) -> Self {
        Self {
            partition: written.partition.clone(),
            end: written.appended.last_offset + 1,
            epoch: written.epoch,
            all: acks == -1,
        }
    }

    async fn done(self, deadline: Instant) -> Result<(), ErrorCode> {
        match self.all {
            true => commit::committed(self.partition, self.end, self.epoch, deadline).await,
            false => self.partition.made_durable(self.end).await,
        }
    }
}

fn must_wait(acks: i16, written: &Written) -> bool {
    let end = written.appended.last_offset + 1;
    let owes_flush = written.partition.owes_flush(end);
    match acks {
        -1 => owes_flush || written.partition.high_watermark() < end,
        0 => {
            if owes_flush {
                written.partition.flush_soon();
            }
            false
        }
        _ => owes_flush,
    }
}

/// A topic as the request names it, and a partition.
type Key<'a> = (&'a str, uuid::Uuid, i32);

fn key(topic: &TopicProduceData, index: i32, version: i16) -> Key<'_> {
    if carries_topic_ids(version) {
        ("", topic.topic_id, index)
    } else {
        (topic.name.as_str(), uuid::Uuid::nil(), index)
    }
}

/// Where each partition is named last: that one counts, with one append and one answer. Empty
/// when only one is named, as most often.
fn last_of_each(request: &ProduceRequest, version: i16) -> HashMap<Key<'_>, (usize, usize)> {
    let mut last = HashMap::new();
    if let [topic] = &request.topic_data[..]
        && topic.partition_data.len() == 1
    {
        return last;
    }
    for (at, topic) in request.topic_data.iter().enumerate() {
        for (place, data) in topic.partition_data.iter().enumerate() {
            last.insert(key(topic, data.index, version), (at, place));
        }
    }
    last
}

/// Transactional records without a transactional id fail the whole request, before any append.
fn refuse_transactional(request: &ProduceRequest) -> Result<(), Refusal> {
    let mut records = request
        .topic_data
        .iter()
        .flat_map(|topic| &topic.partition_data);
    let is_transactional = |data: &PartitionProduceData| {
        let records = data.records.as_ref();
        let claims = records.filter(|records| batch::may_be_transactional(records));
        let header = claims.map(append::single_batch);
        matches!(header, Some(Ok(header)) if header.is_transactional())
    };
    if request.transactional_id.is_none() && records.any(is_transactional) {
        return Err(ErrorCode::TransactionalIdAuthorizationFailed.into());
    }
    Ok(())
}

async fn append_one(
    ctx: &Context,
    request: &ProduceRequest,
    topic: &TopicProduceData,
    data: &PartitionProduceData,
) -> Result<Written, Failure> {
    let found = find_topic(ctx, topic)?;
    if !found.partitions.contains_key(&data.index) {
        return Err(ErrorCode::UnknownTopicOrPartition.into());
    }
    let (records, header) = whole_batch(data)?;
    check_batch(ctx, &found.name, &header)?;
    let partition = ctx.parts.replicas.find(found.id, data.index)?;
    let epoch = partition.role().leader_epoch;
    let is_compressed = header.codec() != Ok(Codec::None);
    let appended = partition
        .append(records, is_compressed, Origin::Client, request.acks == -1)
        .await?;
    Ok(Written {
        partition,
        epoch,
        appended,
    })
}

fn find_topic<'a>(ctx: &'a Context, topic: &TopicProduceData) -> Result<&'a Topic, ErrorCode> {
    let topics = &ctx.image().topics;
    if carries_topic_ids(ctx.version) {
        let id = TopicId(topic.topic_id.into());
        topics
            .by_id(id)
            .map(|topic| &**topic)
            .ok_or(ErrorCode::UnknownTopicId)
    } else {
        let found = topics.by_name(topic.name.as_str());
        found
            .map(|topic| &**topic)
            .ok_or(ErrorCode::UnknownTopicOrPartition)
    }
}

/// The partition's batch and its header. Kafka never answers null records; INVALID_RECORD says
/// what is wrong with them.
fn whole_batch(data: &PartitionProduceData) -> Result<(Bytes, Header), Failure> {
    let records = data.records.clone().unwrap_or_default();
    let header = append::single_batch(&records)?;
    Ok((records, header))
}

fn check_batch(ctx: &Context, topic: &str, header: &Header) -> Result<(), Failure> {
    if header.codec() == Ok(Codec::Zstd) && !knows_zstd(ctx.version) {
        let words = format!(
            "Produce requests with version {} are not allowed to use ZStandard compression",
            ctx.version
        );
        return Err(Refusal::new(ErrorCode::UnsupportedCompressionType, words).into());
    }
    let is_admin = ctx
        .client_id
        .as_ref()
        .is_some_and(|id| id.as_str() == ADMIN_CLIENT);
    if names::is_internal(topic) && !is_admin {
        return Err(ErrorCode::InvalidTopicException.into());
    }
    if header.is_transactional() {
        // There are no transactions on this broker: no transactional id is known (KIP-890).
        return Err(ErrorCode::InvalidProducerIdMapping.into());
    }
    Ok(())
}

/// acks=0: an error can only be told by closing the connection (KafkaApis.handleProduceRequest).
fn unanswered(response: &ProduceResponse) -> Reply<Produced> {
    let outcomes = response.responses.iter().flat_map(|topic| {
        topic
            .partition_responses
            .iter()
            .map(move |outcome| (topic, outcome))
    });
    for (topic, outcome) in outcomes {
        if outcome.error_code != ErrorCode::None.code() {
            let code =
                ErrorCode::from_code(outcome.error_code).unwrap_or(ErrorCode::UnknownServerError);
            return Reply::Close(format!(
                "a Produce with acks=0 failed with {code} on {}-{}",
                topic.name.as_str(),
                outcome.index
            ));
        }
    }
    Reply::Silent
}

fn topic_response(
    version: i16,
    topic: &TopicProduceData,
    outcomes: Vec<PartitionProduceResponse>,
) -> TopicProduceResponse {
    let response = TopicProduceResponse::default().with_partition_responses(outcomes);
    if carries_topic_ids(version) {
        response.with_topic_id(topic.topic_id)
    } else {
        response.with_name(topic.name.clone())
    }
}

fn success(version: i16, index: i32, appended: &Appended) -> PartitionProduceResponse {
    let mut outcome = PartitionProduceResponse::default()
        .with_index(index)
        .with_base_offset(appended.first_offset)
        .with_log_append_time_ms(appended.log_append_time_ms);
    if version >= 5 {
        outcome.log_start_offset = appended.log_start_offset;
    }
    outcome
}

fn failure(version: i16, index: i32, failure: &Failure) -> PartitionProduceResponse {
    let mut outcome = PartitionProduceResponse::default()
        .with_index(index)
        .with_error_code(failure.refusal.code.code())
        .with_base_offset(-1)
        .with_log_append_time_ms(-1);
    if version >= 5 {
        outcome.log_start_offset = failure.log_start_offset;
    }
    if carries_record_errors(version) {
        let message = failure.refusal.message.as_deref();
        outcome.error_message = message.map(|words| StrBytes::from_string(words.to_owned()));
        let errors = failure.record_errors.iter().map(|error| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(error.batch_index)
                .with_batch_index_error_message(Some(StrBytes::from_string(error.message.clone())))
        });
        outcome.record_errors = errors.collect();
    }
    outcome
}

/// Tells clients who were at the wrong node where the right one is (KIP-951).
fn name_new_leaders(ctx: &Context, request: &ProduceRequest, response: &mut ProduceResponse) {
    if !names_new_leader(ctx.version) {
        return;
    }
    let mut nodes = Vec::new();
    for (topic, asked) in response.responses.iter_mut().zip(&request.topic_data) {
        let Ok(found) = find_topic(ctx, asked) else {
            continue;
        };
        for outcome in &mut topic.partition_responses {
            if outcome.error_code == ErrorCode::NotLeaderOrFollower.code()
                && let Some(partition) = found.partitions.get(&outcome.index)
            {
                outcome.current_leader = LeaderIdAndEpoch::default()
                    .with_leader_id(BrokerId(partition.leader.0))
                    .with_leader_epoch(partition.leader_epoch.0);
                nodes.push(partition.leader);
            }
        }
    }
    let known = ctx.addresses_of(&nodes).into_iter();
    response.node_endpoints = known
        .map(|node| {
            NodeEndpoint::default()
                .with_node_id(BrokerId(node.id.0))
                .with_host(StrBytes::from_string(node.host))
                .with_port(node.port.into())
                .with_rack(node.rack.map(StrBytes::from_string))
        })
        .collect();
}
