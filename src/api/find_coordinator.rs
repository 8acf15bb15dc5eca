//! FindCoordinator: versions 0-6.
//!
//! - v0 one group · v1 kinds of key, a message · v3 flexible · v4 many keys, an error for each
//!   (KIP-699) · v5 TRANSACTION_ABORTABLE (KIP-890) · v6 keys of share groups (KIP-932)
//! - The first question after groups makes their topic. Kafka answers COORDINATOR_NOT_AVAILABLE
//!   until it is there, and the client waits before it asks again; here the question waits.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::context::{Address, Context};
use super::serve::{Refuse, Reply};
use super::topics;
use crate::coordinator::router;
use crate::metadata::names::GROUP_METADATA_TOPIC;
use crate::protocol::error::{ErrorCode, Refusal};

/// How long a question waits for its topic to be made.
const CREATION: Duration = Duration::from_secs(3);

/// The kinds of key that there are (FindCoordinatorRequest.CoordinatorType).
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

fn has_many_keys(version: i16) -> bool {
    version >= 4
}

fn has_message(version: i16) -> bool {
    version >= 1
}

impl Refuse for FindCoordinatorRequest {
    type Response = FindCoordinatorResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> FindCoordinatorResponse {
        let answers = keys(self, version).map(|key| (key.clone(), Err(refusal.clone())));
        response(version, answers.collect())
    }
}

/// Says which broker keeps a group.
pub(super) async fn find(
    ctx: Context,
    request: Arc<FindCoordinatorRequest>,
) -> Result<Reply<FindCoordinatorResponse>, Refusal> {
    let ctx = match request.key_type {
        GROUP => with_topic(ctx, GROUP_METADATA_TOPIC).await,
        TRANSACTION => {
            let words = "This release serves no transactions.";
            return Err(Refusal::new(ErrorCode::InvalidRequest, words));
        }
        // No share groups are kept here, and Kafka has no words for such keys either.
        SHARE => return Err(Refusal::new(ErrorCode::InvalidRequest, "")),
        _ => return Err(ErrorCode::InvalidRequest.into()),
    };
    let answers = keys(&request, ctx.version).map(|key| {
        let found = coordinator(&ctx, GROUP_METADATA_TOPIC, key);
        (key.clone(), found.map_err(Refusal::bare))
    });
    Ok(response(ctx.version, answers.collect()).into())
}

fn keys(request: &FindCoordinatorRequest, version: i16) -> impl Iterator<Item = &StrBytes> {
    let many = has_many_keys(version);
    let one = (!many).then_some(&request.key);
    let rest = if many {
        &request.coordinator_keys[..]
    } else {
        &[]
    };
    one.into_iter().chain(rest)
}

/// The surroundings in which a coordinators' topic exists, if it can be made in time.
async fn with_topic(mut ctx: Context, topic: &str) -> Context {
    if ctx.image().topics.by_name(topic).is_none() {
        let wanted = [topic];
        let made = topics::auto_create(&ctx, &wanted);
        // Who asks again finds it, or is told again that it is not there.
        let _ = tokio::time::timeout(CREATION, made).await;
        ctx.metadata = ctx.parts.metadata.borrow().clone();
    }
    ctx
}

/// The broker that leads a key's partition.
fn coordinator(ctx: &Context, topic: &str, key: &str) -> Result<Address, ErrorCode> {
    let not_available = ErrorCode::CoordinatorNotAvailable;
    let topic = ctx.image().topics.by_name(topic).ok_or(not_available)?;
    let count = i32::try_from(topic.partitions.len()).map_err(|_| not_available)?;
    let partition = topic.partitions.get(&router::partition_of(key, count));
    let leader = partition.ok_or(not_available)?.leader;
    let addresses = ctx.alive_addresses().into_iter();
    let mut leading = addresses.filter(|address| address.id == leader);
    leading.next().ok_or(not_available)
}

fn response(
    version: i16,
    answers: Vec<(StrBytes, Result<Address, Refusal>)>,
) -> FindCoordinatorResponse {
    let coordinators = answers.into_iter().map(|(key, found)| told(key, found));
    if has_many_keys(version) {
        return FindCoordinatorResponse::default().with_coordinators(coordinators.collect());
    }
    let mut response = FindCoordinatorResponse::default();
    for one in coordinators {
        response.error_code = one.error_code;
        response.node_id = one.node_id;
        response.host = one.host;
        response.port = one.port;
        if has_message(version) {
            let none = StrBytes::from_static_str("NONE");
            let is_error = one.error_code != ErrorCode::None.code();
            response.error_message = one.error_message.filter(|_| is_error).or(Some(none));
        }
    }
    response
}

fn told(key: StrBytes, found: Result<Address, Refusal>) -> Coordinator {
    let told = Coordinator::default().with_key(key);
    match found {
        Ok(address) => told
            .with_node_id(BrokerId(address.id.0))
            .with_host(StrBytes::from_string(address.host))
            .with_port(address.port.into())
            .with_error_message(Some(StrBytes::default())),
        Err(refusal) => told
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(refusal.code.code())
            .with_error_message(Some(StrBytes::from_string(refusal.words().to_owned()))),
    }
}
