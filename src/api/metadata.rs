//! Metadata: versions 0-13. DescribeTopicPartitions: version 0. DescribeCluster: versions 0-2.
//!
//! - Metadata v0 asks for all topics with an empty list, v1 and later with null; v4 may forbid
//!   creation (KIP-361); v8-v10 carry the cluster's authorized operations; v10 adds topic ids, v12
//!   asks by them (KIP-516).
//! - DescribeTopicPartitions pages through topics sorted by name (KIP-966).
//! - DescribeCluster v1 asks for brokers or controllers (KIP-919), v2 for fenced brokers (KIP-1073).

use std::collections::BTreeSet;
use std::sync::Arc;

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeClusterRequest, DescribeClusterResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::access::{ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS, NOT_ASKED};
use super::context::{Address, Context};
use super::serve::{Refuse, Reply};
use super::topics;
use crate::base::{NodeId, TopicId};
use crate::metadata::image::topics::{Partition, Topic};
use crate::metadata::names;
use crate::metadata::view::NoLeader;
use crate::os::random;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::security::session::ListenerKind;

/// The endpoint types of DescribeCluster (org.apache.kafka.common.requests, EndpointType).
const ENDPOINT_BROKER: i8 = 1;
const ENDPOINT_CONTROLLER: i8 = 2;

/// What Metadata is asked about.
enum Wanted<'a> {
    All,
    Names(BTreeSet<&'a str>),
    Ids(BTreeSet<TopicId>),
}

/// Which version carries what.
fn asks_by_id(version: i16) -> bool {
    version >= 12
}

fn may_forbid_creation(version: i16) -> bool {
    version >= 4
}

fn carries_cluster_operations(version: i16) -> bool {
    (8..=10).contains(&version)
}

fn knows_listener_not_found(version: i16) -> bool {
    version >= 6
}

impl Refuse for MetadataRequest {
    type Response = MetadataResponse;

    /// Every topic gets the code, in an otherwise empty answer (MetadataRequest.getErrorResponse).
    fn refuse(&self, version: i16, refusal: &Refusal) -> MetadataResponse {
        let topics = self.topics.iter().flatten().map(|topic| {
            let name = topic.name.clone().unwrap_or_default();
            let known = MetadataResponseTopic::default()
                .with_error_code(refusal.code.code())
                .with_name(Some(name));
            if version >= 10 {
                known.with_topic_id(topic.topic_id)
            } else {
                known
            }
        });
        MetadataResponse::default()
            .with_controller_id(BrokerId(-1))
            .with_topics(topics.collect())
    }
}

/// Tells who leads what, and makes topics that clients name first.
pub(super) async fn metadata(
    ctx: Context,
    request: Arc<MetadataRequest>,
) -> Result<Reply<MetadataResponse>, Refusal> {
    let topics = match wanted(&request, ctx.version)? {
        Wanted::All => ctx
            .image()
            .topics
            .sorted()
            .into_iter()
            .map(|topic| found(&ctx, topic))
            .collect(),
        Wanted::Names(names) => {
            let missing = missing_names(&ctx, &names);
            let may_create = !may_forbid_creation(ctx.version) || request.allow_auto_topic_creation;
            if may_create && ctx.parts.options.file().auto_create_topics_enable {
                topics::auto_create(&ctx, &missing).await;
            }
            names.into_iter().map(|name| by_name(&ctx, name)).collect()
        }
        Wanted::Ids(ids) => ids.into_iter().map(|id| by_id(&ctx, id)).collect(),
    };
    let topics = asked_operations(topics, request.include_topic_authorized_operations);
    let mut response = MetadataResponse::default()
        .with_brokers(brokers(&ctx))
        .with_cluster_id(Some(StrBytes::from_string(ctx.parts.cluster_id.clone())))
        .with_controller_id(BrokerId(any_alive(&ctx)))
        .with_topics(topics);
    if carries_cluster_operations(ctx.version) && request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    Ok(response.into())
}

fn wanted(request: &MetadataRequest, version: i16) -> Result<Wanted<'_>, Refusal> {
    let Some(topics) = &request.topics else {
        return Ok(Wanted::All);
    };
    if version == 0 && topics.is_empty() {
        return Ok(Wanted::All);
    }
    let has_id = |id: &uuid::Uuid| !id.is_nil();
    if !asks_by_id(version) {
        // The fields are on the wire from v10 on, their use from v12 (KAFKA-14014).
        let odd = topics
            .iter()
            .any(|topic| topic.name.is_none() || has_id(&topic.topic_id));
        if odd {
            return Err(ErrorCode::InvalidRequest.into());
        }
    }
    let ids: BTreeSet<TopicId> = topics
        .iter()
        .filter(|topic| has_id(&topic.topic_id))
        .map(|topic| TopicId(topic.topic_id.into()))
        .collect();
    if !ids.is_empty() {
        return Ok(Wanted::Ids(ids));
    }
    let names = topics
        .iter()
        .map(|topic| topic.name.as_ref().map(|name| name.as_str()));
    match names.collect::<Option<BTreeSet<&str>>>() {
        Some(names) => Ok(Wanted::Names(names)),
        // Kafka fails on a null name without an id and says no more.
        None => Err(ErrorCode::UnknownServerError.into()),
    }
}

fn missing_names<'a>(ctx: &Context, names: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let image = ctx.image();
    let unknown = names
        .iter()
        .copied()
        .filter(|name| image.topics.by_name(name).is_none());
    unknown
        .filter(|name| names::validate(name).is_ok())
        .collect()
}

fn by_name(ctx: &Context, name: &str) -> MetadataResponseTopic {
    if let Some(topic) = ctx.image().topics.by_name(name) {
        return found(ctx, topic);
    }
    let code = match names::validate(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(refusal) => refusal.code,
    };
    MetadataResponseTopic::default()
        .with_error_code(code.code())
        .with_name(Some(topic_name(name)))
        .with_is_internal(names::is_internal(name))
}

fn by_id(ctx: &Context, id: TopicId) -> MetadataResponseTopic {
    match ctx.image().topics.by_id(id) {
        Some(topic) => found(ctx, topic),
        None => MetadataResponseTopic::default()
            .with_error_code(ErrorCode::UnknownTopicId.code())
            .with_name(None)
            .with_topic_id(id.0.into()),
    }
}

fn found(ctx: &Context, topic: &Topic) -> MetadataResponseTopic {
    let partitions = topic.partitions.iter();
    let mut response = MetadataResponseTopic::default()
        .with_name(Some(topic_name(&topic.name)))
        .with_is_internal(names::is_internal(&topic.name))
        .with_partitions(
            partitions
                .map(|(index, it)| partition(ctx, *index, it))
                .collect(),
        );
    if ctx.version >= 10 {
        response.topic_id = topic.id.0.into();
    }
    response
}

fn partition(ctx: &Context, index: i32, it: &Partition) -> MetadataResponsePartition {
    let leader = ctx.image().leader_on(it, &ctx.session.listener);
    let (code, leader_id) = match leader {
        Ok(node) => (ErrorCode::None, node.id.0),
        Err(NoLeader::ListenerNotFound) if knows_listener_not_found(ctx.version) => {
            (ErrorCode::ListenerNotFound, -1)
        }
        Err(NoLeader::ListenerNotFound | NoLeader::NotAvailable) => {
            (ErrorCode::LeaderNotAvailable, -1)
        }
    };
    let mut response = MetadataResponsePartition::default()
        .with_error_code(code.code())
        .with_partition_index(index)
        .with_leader_id(BrokerId(leader_id))
        .with_replica_nodes(node_ids(&it.replicas))
        .with_isr_nodes(node_ids(&it.isr));
    if ctx.version >= 5 {
        response.offline_replicas = node_ids(&ctx.image().offline_replicas(it));
    }
    if ctx.version >= 7 {
        response.leader_epoch = it.leader_epoch.0;
    }
    response
}

fn asked_operations(
    mut topics: Vec<MetadataResponseTopic>,
    asked: bool,
) -> Vec<MetadataResponseTopic> {
    for topic in &mut topics {
        let known = topic.error_code == ErrorCode::None.code();
        topic.topic_authorized_operations = if asked && known {
            ALL_TOPIC_OPERATIONS
        } else {
            NOT_ASKED
        };
    }
    topics
}

fn brokers(ctx: &Context) -> Vec<MetadataResponseBroker> {
    let rack_known = ctx.version >= 1;
    let addresses = ctx.alive_addresses().into_iter().map(|node: Address| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(node.id.0))
            .with_host(StrBytes::from_string(node.host))
            .with_port(node.port.into())
            .with_rack(node.rack.filter(|_| rack_known).map(StrBytes::from_string))
    });
    addresses.collect()
}

/// A random alive broker: each of them forwards what is the controller's (KIP-500).
fn any_alive(ctx: &Context) -> i32 {
    let alive: Vec<NodeId> = ctx
        .image()
        .alive_brokers()
        .map(|broker| broker.id)
        .collect();
    if alive.is_empty() {
        return -1;
    }
    let index = random::below(alive.len() as u64);
    usize::try_from(index)
        .ok()
        .and_then(|index| alive.get(index))
        .map_or(-1, |id| id.0)
}

fn node_ids(ids: &[NodeId]) -> Vec<BrokerId> {
    ids.iter().map(|id| BrokerId(id.0)).collect()
}

/// A name as the messages hold it.
pub(super) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

impl Refuse for DescribeTopicPartitionsRequest {
    type Response = DescribeTopicPartitionsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> DescribeTopicPartitionsResponse {
        let topics = self.topics.iter().map(|topic| {
            DescribeTopicPartitionsResponseTopic::default()
                .with_error_code(refusal.code.code())
                .with_name(Some(topic.name.clone()))
        });
        DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
    }
}

/// Describes topics page by page.
pub(super) async fn describe_topic_partitions(
    ctx: Context,
    request: Arc<DescribeTopicPartitionsRequest>,
) -> Result<Reply<DescribeTopicPartitionsResponse>, Refusal> {
    let start = page_start(&request)?;
    let names = page_names(&ctx, &request, start.as_ref().map(|start| start.0));
    let most = ctx.parts.options.file().max_request_partition_size_limit;
    let mut left = usize::try_from(request.response_partition_limit.clamp(1, most.max(1)))
        .expect("clamped above zero");
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        let Some(topic) = ctx.image().topics.by_name(&name) else {
            response.topics.push(unknown(&name));
            continue;
        };
        let first = match start {
            Some((at, first)) if *at == *name => first,
            _ => 0,
        };
        if left == 0 {
            response.next_cursor = Some(cursor(&name, first));
            break;
        }
        let rest = topic.partitions.range(first..);
        let page: Vec<_> = rest.clone().take(left).collect();
        left -= page.len();
        let next = rest.map(|(index, _)| *index).nth(page.len());
        let partitions = page
            .into_iter()
            .map(|(index, it)| described(&ctx, *index, it));
        response.topics.push(
            DescribeTopicPartitionsResponseTopic::default()
                .with_name(Some(topic_name(&name)))
                .with_topic_id(topic.id.0.into())
                .with_is_internal(names::is_internal(&name))
                .with_topic_authorized_operations(ALL_TOPIC_OPERATIONS)
                .with_partitions(partitions.collect()),
        );
        if let Some(next) = next {
            response.next_cursor = Some(cursor(&name, next));
            break;
        }
    }
    Ok(response.into())
}

/// Where the page begins, if not at the first topic.
fn page_start(request: &DescribeTopicPartitionsRequest) -> Result<Option<(&str, i32)>, Refusal> {
    let Some(cursor) = &request.cursor else {
        return Ok(None);
    };
    let named = request.topics.is_empty()
        || request
            .topics
            .iter()
            .any(|topic| topic.name == cursor.topic_name);
    if !named || cursor.partition_index < 0 {
        return Err(ErrorCode::InvalidRequest.into());
    }
    Ok(Some((cursor.topic_name.as_str(), cursor.partition_index)))
}

fn page_names(
    ctx: &Context,
    request: &DescribeTopicPartitionsRequest,
    start: Option<&str>,
) -> BTreeSet<String> {
    let names: BTreeSet<String> = if request.topics.is_empty() {
        ctx.image()
            .topics
            .iter()
            .map(|topic| topic.name.to_string())
            .collect()
    } else {
        request
            .topics
            .iter()
            .map(|topic| topic.name.to_string())
            .collect()
    };
    names
        .into_iter()
        .filter(|name| start.is_none_or(|start| &**name >= start))
        .collect()
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let code = match names::validate(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(refusal) => refusal.code,
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(code.code())
        .with_name(Some(topic_name(name)))
        .with_is_internal(names::is_internal(name))
}

fn described(
    ctx: &Context,
    index: i32,
    it: &Partition,
) -> DescribeTopicPartitionsResponsePartition {
    let leader = ctx.image().leader_on(it, &ctx.session.listener);
    let (code, leader_id) = match leader {
        Ok(node) => (ErrorCode::None, node.id.0),
        Err(NoLeader::ListenerNotFound) => (ErrorCode::ListenerNotFound, -1),
        Err(NoLeader::NotAvailable) => (ErrorCode::LeaderNotAvailable, -1),
    };
    DescribeTopicPartitionsResponsePartition::default()
        .with_error_code(code.code())
        .with_partition_index(index)
        .with_leader_id(BrokerId(leader_id))
        .with_leader_epoch(it.leader_epoch.0)
        .with_replica_nodes(node_ids(&it.replicas))
        .with_isr_nodes(node_ids(&it.isr))
        .with_eligible_leader_replicas(Some(node_ids(&it.elr)))
        .with_last_known_elr(Some(node_ids(&it.last_known_elr)))
        .with_offline_replicas(node_ids(&ctx.image().offline_replicas(it)))
}

fn cursor(name: &str, partition: i32) -> Cursor {
    Cursor::default()
        .with_topic_name(topic_name(name))
        .with_partition_index(partition)
}

impl Refuse for DescribeClusterRequest {
    type Response = DescribeClusterResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> DescribeClusterResponse {
        DescribeClusterResponse::default()
            .with_error_code(refusal.code.code())
            .with_error_message(Some(StrBytes::from_string(refusal.words().to_owned())))
    }
}

/// Describes the cluster's brokers.
pub(super) async fn describe_cluster(
    ctx: Context,
    request: Arc<DescribeClusterRequest>,
) -> Result<Reply<DescribeClusterResponse>, Refusal> {
    let asked = if ctx.version == 0 {
        ENDPOINT_BROKER
    } else {
        request.endpoint_type
    };
    let own = endpoint_type(ctx.session.kind);
    if asked != own {
        return Ok(wrong_endpoint(&ctx, asked).into());
    }
    let fenced_too = ctx.version >= 2 && request.include_fenced_brokers;
    let (nodes, controller) = match ctx.session.kind {
        ListenerKind::Controller => (ctx.controller_addresses(), ctx.active_controller()),
        ListenerKind::Broker if fenced_too => (ctx.all_addresses(), any_alive(&ctx)),
        ListenerKind::Broker => (ctx.alive_addresses(), any_alive(&ctx)),
    };
    let listed = nodes.iter().any(|node| node.id.0 == controller);
    let brokers = nodes.into_iter().map(|node| {
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(node.id.0))
            .with_host(StrBytes::from_string(node.host))
            .with_port(node.port.into())
            .with_rack(node.rack.map(StrBytes::from_string))
            .with_is_fenced(ctx.version >= 2 && node.fenced)
    });
    let mut response = DescribeClusterResponse::default()
        .with_endpoint_type(if ctx.version >= 1 {
            own
        } else {
            ENDPOINT_BROKER
        })
        .with_brokers(brokers.collect())
        .with_cluster_id(StrBytes::from_string(ctx.parts.cluster_id.clone()))
        .with_controller_id(BrokerId(if listed { controller } else { -1 }))
        .with_cluster_authorized_operations(NOT_ASKED);
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    Ok(response.into())
}

/// Asked for another kind of node than is known on this listener (KIP-919).
fn wrong_endpoint(ctx: &Context, asked: i8) -> DescribeClusterResponse {
    let own = endpoint_type(ctx.session.kind);
    let (code, words) = match asked {
        ENDPOINT_BROKER | ENDPOINT_CONTROLLER => (
            ErrorCode::MismatchedEndpointType,
            format!(
                "The request was sent to an endpoint of type {}, but we wanted an endpoint of \
                 type {}",
                endpoint_name(own),
                endpoint_name(asked)
            ),
        ),
        other => (
            ErrorCode::UnsupportedEndpointType,
            format!("Unsupported endpoint type {other}"),
        ),
    };
    let mut response = DescribeClusterResponse::default()
        .with_error_code(code.code())
        .with_error_message(Some(StrBytes::from_string(words)));
    if ctx.version >= 1 {
        response.endpoint_type = own;
    }
    response
}

fn endpoint_type(kind: ListenerKind) -> i8 {
    match kind {
        ListenerKind::Broker => ENDPOINT_BROKER,
        ListenerKind::Controller => ENDPOINT_CONTROLLER,
    }
}

fn endpoint_name(endpoint: i8) -> &'static str {
    if endpoint == ENDPOINT_BROKER {
        "BROKER"
    } else {
        "CONTROLLER"
    }
}
