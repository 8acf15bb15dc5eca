//! From what was read to the response: grouped by topic, with new leaders named, without what a
//! session's client knows already.

use std::sync::Arc;

use kafka_protocol::messages::fetch_response::{
    FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kafka_protocol::messages::{BrokerId, FetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex;

use super::plan::{TopicKey, Wanted};
use super::read::Outcome;
use super::session::{NO_SESSION, Session, Turn};
use super::{carries_log_start, knows_storage_error, names_new_leader};
use crate::api::context::Context;
use crate::base::NodeId;
use crate::os::clock;
use crate::protocol::error::ErrorCode;
use crate::protocol::fetch::SlicedFetch;

/// Shapes the response and takes the session a step on.
pub(super) fn answer(
    ctx: &Context,
    wanted: Vec<Wanted>,
    outcomes: Vec<Outcome>,
    turn: &Turn,
    is_follower: bool,
) -> SlicedFetch {
    let mut read: Vec<(Wanted, Outcome)> = wanted.into_iter().zip(outcomes).collect();
    let mut leaders = Vec::new();
    for (wanted, outcome) in &mut read {
        adapt(ctx.version, &mut outcome.data);
        if names_new_leader(ctx.version) {
            leaders.extend(name_new_leader(ctx, wanted, &mut outcome.data));
        }
    }
    let session_id = match turn {
        Turn::Sessionless => NO_SESSION,
        Turn::Opens => open_session(ctx, &read, is_follower),
        Turn::Continues { session, epoch } => match continue_session(session, *epoch, &mut read) {
            Ok(id) => id,
            Err(refused) => return refused,
        },
    };
    let mut sliced = grouped(read);
    sliced.response.session_id = session_id;
    sliced.response.node_endpoints = endpoints(ctx, &leaders);
    sliced
}

/// What older versions cannot say.
fn adapt(version: i16, data: &mut PartitionData) {
    if !knows_storage_error(version) && data.error_code == ErrorCode::KafkaStorageError.code() {
        data.error_code = ErrorCode::NotLeaderOrFollower.code();
    }
    if !carries_log_start(version) {
        data.log_start_offset = -1;
    }
}

fn open_session(ctx: &Context, read: &[(Wanted, Outcome)], is_follower: bool) -> i32 {
    let told = read
        .iter()
        .map(|(wanted, outcome)| (wanted.asked.clone(), &outcome.data));
    let by_id = super::carries_topic_ids(ctx.version);
    let sessions = &ctx.parts.fetch_sessions;
    sessions.create(is_follower, by_id, told, clock::now())
}

/// Leaves out what the session's client knows; the session's id, or the answer to a request that
/// another one has overtaken.
fn continue_session(
    session: &Arc<Mutex<Session>>,
    epoch: i32,
    read: &mut Vec<(Wanted, Outcome)>,
) -> Result<i32, SlicedFetch> {
    let mut session = session.lock();
    if !session.answers(epoch) {
        let mut refused = super::refused(ErrorCode::InvalidFetchSessionEpoch);
        refused.response.session_id = session.id();
        return Err(refused);
    }
    read.retain(|(wanted, outcome)| session.tells(&wanted.asked.key, &outcome.data, outcome.len()));
    Ok(session.id())
}

fn grouped(read: Vec<(Wanted, Outcome)>) -> SlicedFetch {
    let mut sliced = SlicedFetch::default();
    let topics = &mut sliced.response.responses;
    let mut last: Option<TopicKey> = None;
    for (Wanted { asked, .. }, outcome) in read {
        sliced.records.push(outcome.slice);
        match topics
            .last_mut()
            .filter(|_| last.as_ref() == Some(&asked.key.topic))
        {
            Some(topic) => topic.partitions.push(outcome.data),
            None => {
                let mut topic = named(&asked.key.topic);
                topic.partitions.push(outcome.data);
                topics.push(topic);
                last = Some(asked.key.topic);
            }
        }
    }
    sliced
}

fn named(topic: &TopicKey) -> FetchableTopicResponse {
    let named = FetchableTopicResponse::default();
    match topic {
        TopicKey::Name(name) => {
            named.with_topic(TopicName(StrBytes::from_string(name.to_string())))
        }
        TopicKey::Id(id) => named.with_topic_id(id.0.into()),
    }
}

/// Tells a client who was at the wrong node who leads (KIP-951).
fn name_new_leader(ctx: &Context, wanted: &Wanted, data: &mut PartitionData) -> Option<NodeId> {
    let moved = [
        ErrorCode::NotLeaderOrFollower.code(),
        ErrorCode::FencedLeaderEpoch.code(),
    ];
    if !moved.contains(&data.error_code) {
        return None;
    }
    let topic = ctx.image().topics.by_name(wanted.asked.name.as_deref()?)?;
    let partition = topic.partitions.get(&wanted.asked.key.index)?;
    data.current_leader = LeaderIdAndEpoch::default()
        .with_leader_id(BrokerId(partition.leader.0))
        .with_leader_epoch(partition.leader_epoch.0);
    Some(partition.leader)
}

fn endpoints(ctx: &Context, leaders: &[NodeId]) -> Vec<NodeEndpoint> {
    let known = ctx.addresses_of(leaders).into_iter();
    known
        .map(|node| {
            NodeEndpoint::default()
                .with_node_id(BrokerId(node.id.0))
                .with_host(StrBytes::from_string(node.host))
                .with_port(node.port.into())
                .with_rack(node.rack.map(StrBytes::from_string))
        })
        .collect()
}

/// A whole-request error in versions that have no place for one is every partition's error
/// (FetchRequest.getErrorResponse).
pub(super) fn every_partition(
    request: &kafka_protocol::messages::FetchRequest,
    code: ErrorCode,
) -> SlicedFetch {
    let mut response = FetchResponse::default().with_error_code(code.code());
    let mut records = Vec::new();
    for topic in &request.topics {
        let mut answered = FetchableTopicResponse::default().with_topic(topic.topic.clone());
        for partition in &topic.partitions {
            records.push(None);
            answered
                .partitions
                .push(Outcome::failed(partition.partition, code).data);
        }
        response.responses.push(answered);
    }
    SlicedFetch { response, records }
}
