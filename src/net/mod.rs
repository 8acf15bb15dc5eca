//! Listeners and connections: frames in, replies out, in order.
//!
//! - `listener`: accepts connections. - `limits`: how many and how fast.
//! - `connections`: all of a node; idle ones are closed. - `budget`: what they may hold together.
//! - `buffers`: where their bytes go.
//! - `connection`: one task a connection; order, pipelining, closing.
//! - `writer`: chunks to the wire, spliced or copied.

pub(crate) mod budget;
mod buffers;
pub(crate) mod connection;
pub(crate) mod connections;
mod limits;
pub(crate) mod listener;
pub(crate) mod writer;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kafka_protocol::protocol::StrBytes;

use crate::protocol::chunk::Chunks;
use crate::security::session::Session;

/// What a connection asks of the layer above.
pub(crate) trait Service: Send + Sync + 'static {
    /// The most bytes a frame may have, from its API key once that has arrived.
    fn frame_limit(&self, api_key: Option<i16>) -> usize;

    /// Serves one request. Awaiting it is the ordered half: when it ends, later requests of the
    /// connection may be executed.
    fn call(
        &self,
        session: &Arc<Session>,
        frame: Bytes,
    ) -> BoxFuture<'static, Result<Reply, Close>>;
}

/// A reply, now or later.
pub(crate) enum Reply {
    /// The whole response.
    Now(Chunks),
    /// The response comes when the future ends; until then the next requests are executed only
    /// if `overlaps`.
    Later {
        answer: BoxFuture<'static, Result<Chunks, Close>>,
        overlaps: bool,
    },
    /// Nothing is sent (a Produce with acks=0).
    Silent,
}

/// Why a connection is closed without an answer.
#[derive(Debug)]
pub(crate) struct Close {
    pub(crate) cause: String,
    pub(crate) client_id: Option<StrBytes>,
}

impl Close {
    /// Closes for `cause`; the client is not known by name.
    pub(crate) fn new(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            client_id: None,
        }
    }
}
