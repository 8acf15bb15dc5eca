//! The table: every API this broker serves, its versions, its limits, its handler.
//!
//! A row is all there is to an API besides its handler; ApiVersions answers from the rows.
//!
//! - `serve`: from bytes to a reply, once for all. - `context`: what a handler may touch.
//! - `controller`: where the controller is asked. - `access`: what a session may do. - The other files: one family of APIs each.

mod access;
pub(crate) mod configs;
pub(crate) mod context;
pub(crate) mod controller;
pub(crate) mod fetch;
mod list_offsets;
mod metadata;
mod produce;
pub(crate) mod producers;
mod reassignments;
mod serve;
mod topics;
mod versions;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kafka_protocol::messages::{
    ApiVersionsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeTopicPartitionsRequest, FetchRequest,
    InitProducerIdRequest, ListOffsetsRequest, ListPartitionReassignmentsRequest, MetadataRequest,
    OffsetForLeaderEpochRequest, ProduceRequest,
};
use kafka_protocol::protocol::HeaderVersion;

use self::context::{Context, Parts};
use self::serve::{Call, Respond};
use crate::net::{Close, Reply, Service};
use crate::protocol::header::{self, Start};
use crate::security::session::Session;

/// One API.
struct Row {
    key: i16,
    name: &'static str,
    min: i16,
    max: i16,
    /// The lowest version that ApiVersions tells.
    told_min: i16,
    size: Size,
    /// Whether later requests of a connection are executed while an answer of this API waits.
    overlaps: bool,
    is_flexible: fn(i16) -> bool,
    call: fn(Context, Call) -> BoxFuture<'static, Result<Reply, Close>>,
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
       $size:ident $($overlaps:ident)?; $handler:path;)*) => {
        static ROWS: &[Row] = &[$(Row {
            key: $key,
            name: stringify!($request),
            min: $min,
            max: $max,
            told_min: told!($min $(, $told)?),
            size: Size::$size,
            overlaps: overlaps!($($overlaps)?),
            is_flexible: |version| $request::header_version(version) >= 2,
            call: |context, call| Box::pin(serve::run::<$request, _, _, _>(context, call, $handler)),
        }),*];

        /// What ApiVersions tells: key, lowest and highest version.
        static ADVERTISED: &[(i16, i16, i16)] =
            &[$(($key, told!($min $(, $told)?), $max)),*];
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
    // request                     key versions           size               handler
    ProduceRequest                   0 [3..=13, told from 0] Records overlapping; produce::produce;
    FetchRequest                     1 [4..=18]           List overlapping;    fetch::fetch;
    ListOffsetsRequest               2 [1..=10]           List;                list_offsets::list_offsets;
    MetadataRequest                  3 [0..=13]           List;                metadata::metadata;
    ApiVersionsRequest              18 [0..=4]            Small;               versions::api_versions;
    CreateTopicsRequest             19 [2..=7]            List;                topics::create;
    DeleteTopicsRequest             20 [1..=6]            List;                topics::delete;
    InitProducerIdRequest           22 [0..=5]            Small;               producers::init_producer_id;
    OffsetForLeaderEpochRequest     23 [2..=4]            List;                list_offsets::offset_for_leader_epoch;
    DescribeConfigsRequest          32 [1..=4]            List;                configs::describe;
    CreatePartitionsRequest         37 [0..=3]            List;                topics::create_partitions;
    ListPartitionReassignmentsRequest 46 [0..=0]          List;                reassignments::list;
    DescribeClusterRequest          60 [0..=2]            Small;               metadata::describe_cluster;
    DescribeTopicPartitionsRequest  75 [0..=0]            List;                metadata::describe_topic_partitions;
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
        let Some(row) = row(api_key) else {
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
            body: frame,
            overlaps: row.overlaps,
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
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        assert!(ROWS.is_sorted_by(|one, next| one.key < next.key));
        assert!(
            ROWS.iter()
                .zip(ADVERTISED)
                .all(|(row, told)| row.told_min == told.1)
        );
    }
}
