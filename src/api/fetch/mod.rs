//! Fetch: versions 4-18.
//!
//! - Waits until min bytes are there or max wait is over; the first partition with records gives
//!   at least one whole batch. A response holds slices of the log, never bytes past what its
//!   reader may see.
//! - v5 log start offset · v7 sessions (KIP-227) · v9 leader epochs (KIP-320) · v11 racks (KIP-392)
//!   · v12 diverging epochs (KIP-595) · v13 topic ids (KIP-516) · v15 replica state (KIP-903) · v16
//!   the new leader (KIP-951) · v17 directory ids (KIP-853) · v18 a follower's high watermark
//!   (KIP-1166)

mod plan;
mod read;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kafka_protocol::messages::fetch_response::{
    FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Notify;

use super::context::Context;
use super::serve::{Refuse, Reply};
use crate::base::TopicId;
use crate::os::clock;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::protocol::fetch::SlicedFetch;
use crate::replica::partition::Isolation;
use plan::{Limits, Wanted};
use read::Outcome;

pub(super) fn carries_topic_ids(version: i16) -> bool {
    version >= 13
}

fn carries_replica_state(version: i16) -> bool {
    version >= 15
}

fn names_new_leader(version: i16) -> bool {
    version >= 16
}

fn knows_storage_error(version: i16) -> bool {
    version >= 6
}

/// The replica id of a consumer.
const CONSUMER: i32 = -1;
/// The replica id of a consumer that reads to the log's end (ReplicaVerificationTool).
const DEBUGGER: i32 = -2;

impl Refuse for FetchRequest {
    type Response = SlicedFetch;

    fn refuse(&self, version: i16, refusal: &Refusal) -> SlicedFetch {
        let mut response = FetchResponse::default();
        if version >= 7 {
            response.error_code = refusal.code.code();
        }
        SlicedFetch {
            response,
            records: Vec::new(),
        }
    }
}

/// Who fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Consumer(Isolation),
    Debugger,
    Replica(i32),
}

impl Reader {
    fn of(request: &FetchRequest, version: i16) -> Result<Self, Refusal> {
        let id = if carries_replica_state(version) {
            request.replica_state.replica_id.0
        } else {
            request.replica_id.0
        };
        Ok(match id {
            DEBUGGER => Self::Debugger,
            id if id <= CONSUMER => Self::Consumer(match request.isolation_level {
                0 => Isolation::Committed,
                1 => Isolation::Stable,
                _ => return Err(ErrorCode::InvalidRequest.into()),
            }),
            id => Self::Replica(id),
        })
    }

    /// How far this reader may see.
    pub(super) fn isolation(self) -> Isolation {
        match self {
            Self::Consumer(isolation) => isolation,
            Self::Debugger | Self::Replica(_) => Isolation::LogEnd,
        }
    }
}

/// Gives records.
pub(super) async fn fetch(
    ctx: Context,
    request: Arc<FetchRequest>,
) -> Result<Reply<SlicedFetch>, Refusal> {
    let reader = Reader::of(&request, ctx.version)?;
    let options = ctx.parts.options.current();
    let limits = Limits::of(&request, options.config.fetch_max_bytes);
    let wanted = plan::wanted(&ctx, &request);
    let outcomes = read::all(&wanted, reader, limits).await;
    if is_enough(&request, &limits, &outcomes) {
        return Ok(Reply::Now(respond(&ctx, &wanted, outcomes)));
    }
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let deadline = clock::now() + wait;
    let waiting = wait_for_more(ctx, wanted, request, reader, limits, deadline);
    Ok(Reply::Later(Box::pin(waiting)))
}

/// Looks again at every change of a wanted partition, until there is enough or time is over.
async fn wait_for_more(
    ctx: Context,
    wanted: Vec<Wanted>,
    request: Arc<FetchRequest>,
    reader: Reader,
    limits: Limits,
    deadline: Instant,
) -> SlicedFetch {
    let waker = Arc::new(Notify::new());
    let partitions = wanted.iter().filter_map(|one| one.partition.as_ref().ok());
    let _places: Vec<_> = partitions
        .map(|one| one.waiting().register(&waker))
        .collect();
    let mut late = false;
    loop {
        // Registered first: what came in between is seen by this look.
        let outcomes = read::all(&wanted, reader, limits).await;
        if late || is_enough(&request, &limits, &outcomes) {
            return respond(&ctx, &wanted, outcomes);
        }
        tokio::select! {
            biased;
            () = waker.notified() => {}
            () = clock::sleep_until(deadline) => late = true,
            () = ctx.parts.stopping.stopped() => late = true,
        }
    }
}

/// Whether the answer should go out now (ReplicaManager.fetchMessages).
fn is_enough(request: &FetchRequest, limits: &Limits, outcomes: &[Outcome]) -> bool {
    let bytes: usize = outcomes.iter().map(Outcome::len).sum();
    request.max_wait_ms <= 0
        || limits.min_bytes == 0
        || outcomes.is_empty()
        || bytes >= limits.min_bytes
        || outcomes.iter().any(|outcome| outcome.must_answer)
}

fn respond(ctx: &Context, wanted: &[Wanted], outcomes: Vec<Outcome>) -> SlicedFetch {
    let mut sliced = SlicedFetch::default();
    let mut at = None;
    for (wanted, mut outcome) in wanted.iter().zip(outcomes) {
        if at != Some(wanted.topic) {
            at = Some(wanted.topic);
            let mut topic = FetchableTopicResponse::default();
            if carries_topic_ids(ctx.version) {
                topic.topic_id = wanted.topic_id.0.into();
            } else {
                topic.topic = wanted.name.clone();
            }
            sliced.response.responses.push(topic);
        }
        if !knows_storage_error(ctx.version)
            && outcome.data.error_code == ErrorCode::KafkaStorageError.code()
        {
            outcome.data.error_code = ErrorCode::NotLeaderOrFollower.code();
        }
        if ctx.version < 5 {
            outcome.data.log_start_offset = -1;
        }
        sliced.records.push(outcome.slice);
        if let Some(topic) = sliced.response.responses.last_mut() {
            topic.partitions.push(outcome.data);
        }
    }
    name_new_leaders(ctx, wanted, &mut sliced.response);
    sliced
}

/// Tells clients who were at the wrong node where the right one is (KIP-951).
fn name_new_leaders(ctx: &Context, wanted: &[Wanted], response: &mut FetchResponse) {
    if !names_new_leader(ctx.version) {
        return;
    }
    let moved = [
        ErrorCode::NotLeaderOrFollower.code(),
        ErrorCode::FencedLeaderEpoch.code(),
    ];
    let mut nodes = Vec::new();
    let data = response
        .responses
        .iter_mut()
        .flat_map(|topic| &mut topic.partitions);
    for (wanted, data) in wanted.iter().zip(data) {
        let registered = ctx.image().partition_by_id(wanted.topic_id, wanted.index);
        if moved.contains(&data.error_code)
            && let Some(partition) = registered
        {
            data.current_leader = LeaderIdAndEpoch::default()
                .with_leader_id(BrokerId(partition.leader.0))
                .with_leader_epoch(partition.leader_epoch.0);
            nodes.push(partition.leader);
        }
    }
    if nodes.is_empty() {
        return;
    }
    let known = ctx
        .alive_addresses()
        .into_iter()
        .filter(|node| nodes.contains(&node.id));
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

/// The topic id of a request's topic: its own, or the one that its name has now.
fn id_of(
    ctx: &Context,
    topic: &kafka_protocol::messages::fetch_request::FetchTopic,
) -> Option<TopicId> {
    if carries_topic_ids(ctx.version) {
        return Some(TopicId(topic.topic_id.into()));
    }
    ctx.image().topics.id(topic.topic.as_str())
}
