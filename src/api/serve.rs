//! From bytes to a reply: decode, call, refuse, encode; the same for every API.

use std::sync::Arc;

use anyhow::Context as _;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use tracing::error;

use super::context::Context;
use crate::net::{Close, Reply as Sent};
use crate::protocol::chunk::{Chunk, Chunks};
use crate::protocol::error::Refusal;
use crate::protocol::fetch::SlicedFetch;
use crate::protocol::header;
use crate::protocol::produce::Produced;

/// A handler's reply.
pub(super) enum Reply<T> {
    /// The response.
    Now(T),
    /// The response comes when the future ends.
    Later(BoxFuture<'static, T>),
    /// The same, and the connection's next requests wait for it, whatever the API's row says.
    InTurn(BoxFuture<'static, T>),
    /// Nothing is sent.
    Silent,
    /// Nothing can be sent, and the client must notice: the connection is closed.
    Close(String),
}

impl<T> From<T> for Reply<T> {
    fn from(response: T) -> Self {
        Self::Now(response)
    }
}

/// A request whose handler may refuse it as a whole.
pub(super) trait Refuse {
    /// The response of this API.
    type Response;

    /// The response that says no to all of the request.
    fn refuse(&self, version: i16, refusal: &Refusal) -> Self::Response;
}

/// A response that can be put on the wire.
pub(super) trait Respond: Send + 'static {
    /// The whole frame, size first.
    fn into_chunks(self, correlation_id: i32, version: i16) -> anyhow::Result<Chunks>;
}

impl<T: Encodable + HeaderVersion + Send + 'static> Respond for T {
    fn into_chunks(self, correlation_id: i32, version: i16) -> anyhow::Result<Chunks> {
        let flexible = T::header_version(version) >= 1;
        let size = 4 + usize::from(flexible) + self.compute_size(version)?;
        let mut out = BytesMut::with_capacity(4 + size);
        out.put_u32(size.try_into()?);
        header::put_response(&mut out, correlation_id, flexible);
        self.encode(&mut out, version)?;
        debug_assert_eq!(out.len(), 4 + size);
        Ok(vec![Chunk::Bytes(out.freeze())])
    }
}

impl Respond for SlicedFetch {
    fn into_chunks(self, correlation_id: i32, version: i16) -> anyhow::Result<Chunks> {
        self.encode(correlation_id, version)
    }
}

impl Respond for Produced {
    fn into_chunks(self, correlation_id: i32, version: i16) -> anyhow::Result<Chunks> {
        Ok(vec![Chunk::Bytes(self.encode(correlation_id, version)?)])
    }
}

/// A request that was let in: its row was found and its header read.
pub(super) struct Call {
    pub(super) correlation_id: i32,
    pub(super) body: Bytes,
    /// Whether the next requests may be executed while this one's answer is under way.
    pub(super) overlaps: bool,
}

/// Runs a handler on a request.
pub(super) async fn run<R, T, H, F>(context: Context, call: Call, handler: H) -> Result<Sent, Close>
where
    R: Decodable + Refuse<Response = T>,
    T: Respond,
    H: FnOnce(Context, Arc<R>) -> F,
    F: Future<Output = Result<Reply<T>, Refusal>>,
{
    let version = context.version;
    let client_id = context.client_id.clone();
    let correlation_id = call.correlation_id;
    let mut body = call.body;
    let request = Arc::new(R::decode(&mut body, version).map_err(|error| Close {
        cause: format!("the {} body cannot be read: {error}", short_name::<R>()),
        client_id: client_id.clone(),
    })?);
    let reply = match handler(context, request.clone()).await {
        Ok(reply) => reply,
        Err(refusal) => Reply::Now(request.refuse(version, &refusal)),
    };
    let (response, overlaps) = match reply {
        Reply::Now(response) => {
            return encode::<R, T>(response, correlation_id, version, client_id).map(Sent::Now);
        }
        Reply::Later(response) => (response, call.overlaps),
        Reply::InTurn(response) => (response, false),
        Reply::Silent => return Ok(Sent::Silent),
        Reply::Close(cause) => return Err(Close { cause, client_id }),
    };
    Ok(Sent::Later {
        answer: Box::pin(async move {
            encode::<R, T>(response.await, correlation_id, version, client_id)
        }),
        overlaps,
    })
}

fn encode<R, T: Respond>(
    response: T,
    correlation_id: i32,
    version: i16,
    client_id: Option<StrBytes>,
) -> Result<Chunks, Close> {
    let encoded = response
        .into_chunks(correlation_id, version)
        .with_context(|| format!("the answer to {} v{version}", short_name::<R>()));
    encoded.map_err(|error| {
        error!(%error, "an answer cannot be encoded; this is a defect of the broker");
        Close {
            cause: "the answer cannot be encoded".into(),
            client_id,
        }
    })
}

/// The request's name without its path and its word "Request".
fn short_name<R>() -> &'static str {
    let name = std::any::type_name::<R>();
    let name = name.rsplit("::").next().unwrap_or(name);
    name.strip_suffix("Request").unwrap_or(name)
}
