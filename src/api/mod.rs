//! The table: every API this broker serves, its versions, its limits, its handler.
//!
//! A row is all there is to an API besides its handler; ApiVersions answers from the rows.
//!
//! - `serve`: from bytes to a reply, once for all. - `context`: what a handler may touch.
//! - `controller`: where the controller is asked. - `access`: what a session may do. - The other files: one family of APIs each.

mod access;
mod config_changes;
pub(crate) mod configs;
mod consumer_groups;
pub(crate) mod context;
pub(crate) mod controller;
mod elections;
pub(crate) mod fetch;
mod find_coordinator;
mod groups;
mod list_offsets;
mod log_dirs;
mod loggers;
mod metadata;
mod offsets;
mod produce;
pub(crate) mod producers;
mod quorum;
mod reassignments;
mod records;
mod serve;
mod topics;
mod versions;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterPartitionReassignmentsRequest, AlterReplicaLogDirsRequest,
    ApiVersionsRequest, ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteGroupsRequest, DeleteRecordsRequest,
    DeleteTopicsRequest, DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest,
    DescribeLogDirsRequest, DescribeProducersRequest, DescribeQuorumRequest,
    DescribeTopicPartitionsRequest, ElectLeadersRequest, FetchRequest, FindCoordinatorRequest,
    HeartbeatRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest, JoinGroupRequest,
    LeaveGroupRequest, ListConfigResourcesRequest, ListGroupsRequest, ListOffsetsRequest,
    ListPartitionReassignmentsRequest, MetadataRequest, OffsetCommitRequest, OffsetDeleteRequest,
    OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest, SyncGroupRequest,
    UnregisterBrokerRequest, UpdateFeaturesRequest,
};
use kafka_protocol::protocol::HeaderVersion;

use self::context::{Context, Parts};
use self::serve::{Call, Respond};
use crate::net::{Close, Reply, Service};
use crate::protocol::header::{self, Start};
use crate::security::session::{ListenerKind, Session};

/// One API.
struct Row {
    key: i16,
    name: &'static str,
    min: i16,
    max: i16,
    /// The lowest version that ApiVersions tells.
    told_min: i16,
    scope: Scope,
    size: Size,
    /// Whether later requests of a connection are executed while an answer of this API waits.
    overlaps: bool,
    is_flexible: fn(i16) -> bool,
    call: fn(Context, Call) -> BoxFuture<'static, Result<Reply, Close>>,
    /// Refuses whatever request some bytes are; whether they are one.
    #[cfg(test)]
    refuses: fn(&[u8], i16) -> bool,
}

/// On which listeners an API is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Those of brokers.
    Broker,
    /// Those of brokers and of controllers.
    Both,
}

impl Scope {
    fn includes(self, kind: ListenerKind) -> bool {
        match self {
            Self::Both => true,
            Self::Broker => kind == ListenerKind::Broker,
        }
    }
}

/// The most bytes that a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// `socket.request.max.bytes`: it carries records.
    Records,
    /// A list of topics, partitions or groups.
    List,
    /// A few fields.
    Small,
}

/// Lists may hold some ten thousand entries; what is decoded from them is larger than they are.
const LIST_BYTES: usize = 8 << 20;
const SMALL_BYTES: usize = 64 << 10;

macro_rules! apis {
    ($($request:ident $key:literal [$min:literal ..= $max:literal $(, told from $told:literal)?]
       $scope:ident $size:ident $($overlaps:ident)?; $handler:path;)*) => {
        static ROWS: &[Row] = &[$(Row {
            key: $key,
            name: stringify!($request),
            min: $min,
            max: $max,
            told_min: told!($min $(, $told)?),
            scope: Scope::$scope,
            size: Size::$size,
            overlaps: overlaps!($($overlaps)?),
            is_flexible: |version| $request::header_version(version) >= 2,
            call: |context, call| Box::pin(serve::run::<$request, _, _, _>(context, call, $handler)),
            #[cfg(test)]
            refuses: tests::refuses::<$request>,
        }),*];
    };
}

macro_rules! told {
    ($min:literal) => {
        $min
    };
    ($min:literal, $told:literal) => {
        $told
    };
}

macro_rules! overlaps {
    () => {
        false
    };
    (overlapping) => {
        true
    };
}

// In the order of their keys. Produce is told from version 0 on since librdkafka concludes from
// its lowest versions what else a broker can do (KAFKA-18659).
apis! {
    // request                     key versions           listeners, size     handler
    ProduceRequest                   0 [3..=13, told from 0] Broker Records overlapping; produce::produce;
    FetchRequest                     1 [4..=18]           Broker List overlapping; fetch::fetch;
    ListOffsetsRequest               2 [1..=10]           Broker List;        list_offsets::list_offsets;
    MetadataRequest                  3 [0..=13]           Broker List;        metadata::metadata;
    OffsetCommitRequest              8 [2..=9]            Broker List;        offsets::commit;
    OffsetFetchRequest               9 [1..=9]            Broker List;        offsets::fetch;
    FindCoordinatorRequest          10 [0..=6]            Broker List;        find_coordinator::find;
    JoinGroupRequest                11 [0..=9]            Broker List;        groups::join;
    HeartbeatRequest                12 [0..=4]            Broker Small;       groups::heartbeat;
    LeaveGroupRequest               13 [0..=5]            Broker List;        groups::leave;
    SyncGroupRequest                14 [0..=5]            Broker List;        groups::sync;
    DescribeGroupsRequest           15 [0..=6]            Broker List;        groups::describe;
    ListGroupsRequest               16 [0..=5]            Broker List;        groups::list;
    ApiVersionsRequest              18 [0..=4]            Both Small;         versions::api_versions;
    CreateTopicsRequest             19 [2..=7]            Both List;          topics::create;
    DeleteTopicsRequest             20 [1..=6]            Both List;          topics::delete;
    DeleteRecordsRequest            21 [0..=2]            Broker List;        records::delete;
    InitProducerIdRequest           22 [0..=5]            Broker Small;       producers::init_producer_id;
    OffsetForLeaderEpochRequest     23 [2..=4]            Broker List;        list_offsets::offset_for_leader_epoch;
    DescribeConfigsRequest          32 [1..=4]            Both List;          configs::describe;
    AlterConfigsRequest             33 [0..=2]            Both List;          config_changes::alter;
    AlterReplicaLogDirsRequest      34 [1..=2]            Broker List;        log_dirs::alter;
    DescribeLogDirsRequest          35 [1..=4]            Broker List;        log_dirs::describe;
    CreatePartitionsRequest         37 [0..=3]            Both List;          topics::create_partitions;
    DeleteGroupsRequest             42 [0..=2]            Broker List;        groups::delete;
    ElectLeadersRequest             43 [0..=2]            Both List;          elections::elect;
    IncrementalAlterConfigsRequest  44 [0..=1]            Both List;          config_changes::incremental_alter;
    AlterPartitionReassignmentsRequest 45 [0..=1]         Both List;          reassignments::alter;
    ListPartitionReassignmentsRequest 46 [0..=0]          Both List;          reassignments::list;
    OffsetDeleteRequest             47 [0..=0]            Broker List;        offsets::delete;
    DescribeQuorumRequest           55 [0..=2]            Both Small;         quorum::describe_quorum;
    UpdateFeaturesRequest           57 [0..=2]            Both Small;         quorum::update_features;
    DescribeClusterRequest          60 [0..=2]            Both Small;         metadata::describe_cluster;
    DescribeProducersRequest        61 [0..=0]            Broker List;        producers::describe_producers;
    UnregisterBrokerRequest         64 [0..=0]            Both Small;         quorum::unregister_broker;
    ConsumerGroupHeartbeatRequest   68 [0..=1]            Broker List;        consumer_groups::heartbeat;
    ConsumerGroupDescribeRequest    69 [0..=1]            Broker List;        consumer_groups::describe;
    ListConfigResourcesRequest      74 [0..=1]            Broker Small;       configs::list_resources;
    DescribeTopicPartitionsRequest  75 [0..=0]            Broker List;        metadata::describe_topic_partitions;
}

const API_VERSIONS_KEY: i16 = 18;

fn row(key: i16) -> Option<&'static Row> {
    let at = ROWS.binary_search_by_key(&key, |row| row.key).ok()?;
    Some(&ROWS[at])
}

/// Serves requests from the table.
pub(crate) struct Table {
    parts: Arc<Parts>,
}

impl Table {
    /// A table over the parts of a running broker.
    pub(crate) fn new(parts: Arc<Parts>) -> Self {
        Self { parts }
    }
}

impl Service for Table {
    fn frame_limit(&self, api_key: Option<i16>) -> usize {
        let file = self.parts.options.file();
        let most = usize::try_from(file.socket_request_max_bytes).unwrap_or(0);
        match api_key.and_then(row).map(|row| row.size) {
            Some(Size::List) => most.min(LIST_BYTES),
            Some(Size::Small) => most.min(SMALL_BYTES),
            // The key has not arrived, or nobody knows it and its frame is refused whole.
            Some(Size::Records) | None => most,
        }
    }

    fn call(
        &self,
        session: &Arc<Session>,
        frame: Bytes,
    ) -> BoxFuture<'static, Result<Reply, Close>> {
        match self.admit(session, frame) {
            Ok((row, context, call)) => (row.call)(context, call),
            Err(answer) => Box::pin(std::future::ready(answer)),
        }
    }
}

impl Table {
    /// Finds the row and reads the header; an answer of its own for what is not let in.
    fn admit(
        &self,
        session: &Arc<Session>,
        mut frame: Bytes,
    ) -> Result<(&'static Row, Context, Call), Result<Reply, Close>> {
        let Some(start) = Start::of(&frame) else {
            let cause = format!(
                "a frame of {} bytes has no whole request header",
                frame.len()
            );
            return Err(Err(Close::new(cause)));
        };
        let Start {
            api_key,
            api_version: version,
            correlation_id,
        } = start;
        let served = |row: &&Row| row.scope.includes(session.kind);
        let Some(row) = row(api_key).filter(served) else {
            let client_id = header::take(&mut frame, false).unwrap_or_default();
            return Err(Err(Close {
                cause: format!("nobody knows the API key {api_key}"),
                client_id,
            }));
        };
        let client_id = header::take(&mut frame, (row.is_flexible)(version));
        if !(row.min..=row.max).contains(&version) {
            if row.key == API_VERSIONS_KEY {
                return Err(unsupported(correlation_id));
            }
            let cause = format!("{} version {version} is not served", row.api());
            return Err(Err(Close {
                cause,
                client_id: client_id.unwrap_or_default(),
            }));
        }
        let client_id = match client_id {
            Ok(client_id) => client_id,
            Err(error) => {
                let cause = format!("the {} header cannot be read: {error}", row.api());
                return Err(Err(Close::new(cause)));
            }
        };
        let context = Context {
            parts: self.parts.clone(),
            session: session.clone(),
            version,
            client_id,
            metadata: self.parts.metadata.borrow().clone(),
        };
        let call = Call {
            correlation_id,
            // A waiting fetch keeps what its list of partitions became; a long one waits alone.
            overlaps: row.overlaps && (row.size == Size::Records || frame.len() <= SMALL_BYTES),
            body: frame,
        };
        Ok((row, context, call))
    }
}

impl Row {
    fn api(&self) -> &'static str {
        self.name.strip_suffix("Request").unwrap_or(self.name)
    }
}

fn unsupported(correlation_id: i32) -> Result<Reply, Close> {
    let chunks = versions::unsupported().into_chunks(correlation_id, 0);
    chunks
        .map(Reply::Now)
        .map_err(|error| Close::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Decodable;

    use super::serve::{Refuse, Respond};
    use super::*;
    use crate::protocol::error::{ErrorCode, Refusal};

    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        assert!(ROWS.is_sorted_by(|one, next| one.key < next.key));
    }

    /// Reads a request from bytes, whatever follows it, and puts its refusal on the wire.
    pub(super) fn refuses<R>(bytes: &[u8], version: i16) -> bool
    where
        R: Decodable + Refuse<Response: Respond>,
    {
        let mut bytes = Bytes::copy_from_slice(bytes);
        let Ok(request) = R::decode(&mut bytes, version) else {
            return false;
        };
        let refusal = Refusal::new(ErrorCode::InvalidRequest, "no");
        let encoded = request.refuse(version, &refusal).into_chunks(7, version);
        let name = std::any::type_name::<R>();
        assert!(encoded.is_ok(), "{name} v{version}: {:?}", encoded.err());
        true
    }

    #[test]
    fn every_request_can_be_refused_in_every_version() {
        for row in ROWS {
            for version in row.min..=row.max {
                let mut read = 0;
                for seed in 0..400 {
                    read += u32::from((row.refuses)(&small_bytes(seed), version));
                }
                assert!(read > 0, "{} v{version}: no bytes are a request", row.name);
            }
        }
    }

    /// Bytes that are mostly small: counts of one or none, short strings, nulls.
    fn small_bytes(seed: u64) -> Vec<u8> {
        const CHOICE: [u8; 8] = [0, 0, 0, 0, 1, 1, 2, 2];
        let mut state = seed;
        let next = || {
            // Knuth's generator of MMIX: the upper bits are good enough here.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            CHOICE[usize::try_from(state >> 61).expect("below 8")]
        };
        std::iter::repeat_with(next).take(160).collect()
    }
}
