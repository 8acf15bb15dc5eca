//! ListOffsets: versions 1-10. OffsetForLeaderEpoch: versions 2-4.
//!
//! - ListOffsets v4 leader epochs (KIP-320) · v5 OFFSET_NOT_AVAILABLE (KIP-207) · v7 the newest
//!   timestamp (KIP-734) · v8 earliest local, v9 latest tiered (KIP-405, KIP-1005).

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
};

use super::context::Context;
use super::serve::{Refuse, Reply};
use crate::base::LeaderEpoch;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::replica::partition::{Isolation, Partition};

/// Timestamps that mean an offset (ListOffsetsRequest).
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

/// The replica id of a consumer, and of one that may read from any replica.
const CONSUMER: i32 = -1;
const DEBUGGER: i32 = -2;

/// The first version that knows a timestamp's meaning; `None` for what nobody knows.
fn known_since(timestamp: i64) -> Option<i16> {
    match timestamp {
        LATEST | EARLIEST | 0.. => Some(1),
        MAX_TIMESTAMP => Some(7),
        EARLIEST_LOCAL => Some(8),
        LATEST_TIERED => Some(9),
        _ => None,
    }
}

impl Refuse for ListOffsetsRequest {
    type Response = ListOffsetsResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> ListOffsetsResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic
                .partitions
                .iter()
                .map(|ask| answer(version, ask.partition_index, Err(refusal.code)));
            ListOffsetsTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        ListOffsetsResponse::default().with_topics(topics.collect())
    }
}

/// An offset with its time and epoch; -1 where there is none.
#[derive(Clone, Copy)]
struct Found {
    timestamp: i64,
    offset: i64,
    leader_epoch: i32,
}

const NOTHING: Found = Found {
    timestamp: -1,
    offset: -1,
    leader_epoch: -1,
};

/// Finds offsets by time or meaning.
pub(super) async fn list_offsets(
    ctx: Context,
    request: Arc<ListOffsetsRequest>,
) -> Result<Reply<ListOffsetsResponse>, Refusal> {
    let isolation = match (request.replica_id.0, request.isolation_level) {
        (CONSUMER, 0) => Isolation::Committed,
        (CONSUMER, 1) => Isolation::Stable,
        // Kafka trips over it; the request is at fault.
        (CONSUMER, _) => return Err(ErrorCode::InvalidRequest.into()),
        (_, _) => Isolation::LogEnd,
    };
    let mut times: HashMap<(&str, i32), usize> = HashMap::new();
    for topic in &request.topics {
        for ask in &topic.partitions {
            *times
                .entry((topic.name.as_str(), ask.partition_index))
                .or_default() += 1;
        }
    }
    let mut response = ListOffsetsResponse::default();
    for topic in &request.topics {
        let name = topic.name.as_str();
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for ask in &topic.partitions {
            let found = match times.get_mut(&(name, ask.partition_index)) {
                Some(1) => find(&ctx, name, ask, isolation, request.replica_id.0).await,
                // What is asked twice is refused once.
                Some(times @ 2..) => {
                    *times = 0;
                    Err(ErrorCode::InvalidRequest)
                }
                Some(0) | None => continue,
            };
            answers.push(answer(ctx.version, ask.partition_index, found));
        }
        response.topics.push(
            ListOffsetsTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(answers),
        );
    }
    Ok(response.into())
}

async fn find(
    ctx: &Context,
    topic: &str,
    ask: &ListOffsetsPartition,
    isolation: Isolation,
    replica: i32,
) -> Result<Found, ErrorCode> {
    if known_since(ask.timestamp).is_none_or(|since| ctx.version < since) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let partition = hosted(ctx, topic, ask.partition_index)?;
    let epoch = if ctx.version >= 4 {
        ask.current_leader_epoch
    } else {
        -1
    };
    let role = if replica == DEBUGGER {
        partition.check_epoch(epoch)?
    } else {
        partition.check_leader(epoch)?
    };
    let offsets = partition.offsets();
    let upper = offsets.end(isolation);
    match ask.timestamp {
        LATEST => Ok(Found {
            timestamp: -1,
            offset: upper,
            leader_epoch: role.leader_epoch.0,
        }),
        EARLIEST | EARLIEST_LOCAL => {
            let epoch = partition.reader().epoch_of(offsets.log_start);
            Ok(Found {
                timestamp: -1,
                offset: offsets.log_start,
                leader_epoch: epoch.map_or(-1, |epoch| epoch.0),
            })
        }
        LATEST_TIERED => Ok(NOTHING),
        timestamp => by_time(&partition, timestamp, upper).await,
    }
}

async fn by_time(partition: &Partition, timestamp: i64, upper: i64) -> Result<Found, ErrorCode> {
    let reader = partition.reader().clone();
    let look = move || {
        if timestamp == MAX_TIMESTAMP {
            reader.newest(upper)
        } else {
            reader.offset_by_time(timestamp, upper)
        }
    };
    let found = partition.on_disk(look).await?;
    Ok(found.map_or(NOTHING, |found| Found {
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: found.leader_epoch.0,
    }))
}

fn answer(
    version: i16,
    index: i32,
    found: Result<Found, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    let answer = ListOffsetsPartitionResponse::default().with_partition_index(index);
    match found {
        Ok(found) => {
            let answer = answer
                .with_timestamp(found.timestamp)
                .with_offset(found.offset);
            if version >= 4 {
                answer.with_leader_epoch(found.leader_epoch)
            } else {
                answer
            }
        }
        Err(code) => answer
            .with_error_code(code.code())
            .with_timestamp(-1)
            .with_offset(-1),
    }
}

/// The replica of a partition on this node.
pub(super) fn hosted(ctx: &Context, topic: &str, index: i32) -> Result<Arc<Partition>, ErrorCode> {
    let found = ctx
        .image()
        .topics
        .by_name(topic)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if !found.partitions.contains_key(&index) {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    ctx.parts.replicas.find(found.id, index)
}

impl Refuse for OffsetForLeaderEpochRequest {
    type Response = OffsetForLeaderEpochResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> OffsetForLeaderEpochResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic
                .partitions
                .iter()
                .map(|ask| epoch_answer(ask, Err(refusal.code)));
            OffsetForLeaderTopicResult::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions.collect())
        });
        OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }
}

/// Tells where leader epochs end.
pub(super) async fn offset_for_leader_epoch(
    ctx: Context,
    request: Arc<OffsetForLeaderEpochRequest>,
) -> Result<Reply<OffsetForLeaderEpochResponse>, Refusal> {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|ask| {
            let found = epoch_end(&ctx, topic.topic.as_str(), ask, request.replica_id.0);
            epoch_answer(ask, found)
        });
        OffsetForLeaderTopicResult::default()
            .with_topic(topic.topic.clone())
            .with_partitions(partitions.collect())
    });
    Ok(OffsetForLeaderEpochResponse::default()
        .with_topics(topics.collect())
        .into())
}

fn epoch_end(
    ctx: &Context,
    topic: &str,
    ask: &OffsetForLeaderPartition,
    replica: i32,
) -> Result<(i32, i64), ErrorCode> {
    let partition = hosted(ctx, topic, ask.partition)?;
    if replica == DEBUGGER {
        partition.check_epoch(ask.current_leader_epoch)?;
    } else {
        partition.check_leader(ask.current_leader_epoch)?;
    }
    let end = partition.reader().epoch_end(LeaderEpoch(ask.leader_epoch));
    Ok((end.epoch.0, end.end_offset))
}

fn epoch_answer(
    ask: &OffsetForLeaderPartition,
    found: Result<(i32, i64), ErrorCode>,
) -> EpochEndOffset {
    let answer = EpochEndOffset::default().with_partition(ask.partition);
    match found {
        Ok((epoch, end)) => answer.with_leader_epoch(epoch).with_end_offset(end),
        Err(code) => answer
            .with_error_code(code.code())
            .with_leader_epoch(-1)
            .with_end_offset(-1),
    }
}
