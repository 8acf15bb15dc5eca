//! How the voters talk: the seam where more of them plug in.
//!
//! [`Exchange`] carries bytes to another voter and back; what they mean stays here.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use openraft::error::{Fatal, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, Snapshot, Vote};

use crate::base::NodeId;

use super::entry::{Member, Types};
use super::shared::Shared;

/// An answer of another voter.
pub(crate) type Answer = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// Carries a message to another voter.
pub(crate) trait Exchange: Send + Sync + 'static {
    /// Sends a message and waits for the answer.
    fn ask(&self, voter: NodeId, message: Bytes) -> Answer;
}

/// Makes links to the other voters.
#[derive(Clone)]
pub(super) struct Peers {
    exchange: Option<Arc<dyn Exchange>>,
    shared: Arc<Shared>,
}

/// When another voter last answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) last_answer_ms: i64,
    pub(super) last_caught_up_ms: i64,
}

impl Peers {
    pub(super) fn new(exchange: Option<Arc<dyn Exchange>>, shared: Arc<Shared>) -> Self {
        Self { exchange, shared }
    }

    pub(super) fn seen(&self, _voter: NodeId) -> Seen {
        Seen {
            last_answer_ms: -1,
            last_caught_up_ms: -1,
        }
    }
}

pub(super) struct Link;

impl RaftNetworkFactory<Types> for Peers {
    type Network = Link;
    async fn new_client(&mut self, _target: i32, _node: &Member) -> Link {
        Link
    }
}

fn un<E: std::error::Error>() -> RPCError<i32, Member, E> {
    RPCError::Unreachable(Unreachable::new(&io::Error::from(
        io::ErrorKind::Unsupported,
    )))
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        _rpc: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<i32>, RPCError<i32, Member, RaftError<i32>>> {
        Err(un())
    }
    async fn vote(
        &mut self,
        _rpc: VoteRequest<i32>,
        _option: RPCOption,
    ) -> Result<VoteResponse<i32>, RPCError<i32, Member, RaftError<i32>>> {
        Err(un())
    }
    async fn full_snapshot(
        &mut self,
        _vote: Vote<i32>,
        _snapshot: Snapshot<Types>,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<i32>, StreamingError<Types, Fatal<i32>>> {
        Err(StreamingError::Unreachable(Unreachable::new(
            &io::Error::from(io::ErrorKind::Unsupported),
        )))
    }
}
