//! How the voters talk: openraft's network over [`Exchange`], which carries bytes to another
//! voter and back, and the receiving side.

use std::collections::BTreeMap;
use std::fmt;
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
use openraft::{OptionalSend, Raft, Snapshot, SnapshotMeta, StoredMembership, Vote};
use parking_lot::Mutex;

use crate::base::NodeId;
use crate::os::clock;
use crate::protocol::codec::{Field, Malformed};
use crate::protocol::records::batch::Batches;

use super::control;
use super::entry::{Content, Entry, Member, RaftLog, Types, fixed_members, log_id};
use super::fault::{At, Fault};
use super::log::Basis;
use super::shared::Shared;
use super::side::{Anchor, Side};
use super::snapshot::{self, SnapshotFile, SnapshotId};
use super::wire::{self, Append, Appended, AskVote, Ballot, Install, Point, Request, Voted};

/// An answer of another voter.
pub(crate) type Answer = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// Carries a message to another voter, whose `Quorum::receive` gives the answer.
pub(crate) trait Exchange: Send + Sync + 'static {
    /// Sends a message and waits for the answer.
    fn ask(&self, voter: NodeId, message: Bytes) -> Answer;
}

/// Why a message of another voter gets no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// It is not one of ours.
    #[error("the message is malformed")]
    Malformed(#[from] Malformed),
    /// It comes from another cluster.
    #[error("the message comes from cluster {0}")]
    Cluster(String),
    /// Sender and receiver count the same batches differently.
    #[error("the batch at index {index} ends at offset {theirs} there and not here")]
    Offsets { index: i64, theirs: i64 },
    /// This voter cannot answer any more.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// When another voter last answered, in milliseconds since 1970; -1 when it never did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) last_answer_ms: i64,
    pub(super) last_caught_up_ms: i64,
}

/// Makes links to the other voters.
#[derive(Clone)]
pub(super) struct Peers {
    exchange: Option<Arc<dyn Exchange>>,
    shared: Arc<Shared>,
    cluster_id: Arc<str>,
    seen: Arc<Mutex<BTreeMap<i32, Seen>>>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

impl Peers {
    pub(super) fn new(
        exchange: Option<Arc<dyn Exchange>>,
        shared: Arc<Shared>,
        cluster_id: &str,
    ) -> Self {
        Self {
            exchange,
            shared,
            cluster_id: cluster_id.into(),
            seen: Arc::default(),
        }
    }

    pub(super) fn seen(&self, voter: NodeId) -> Seen {
        let seen = self.seen.lock().get(&voter.0).copied();
        seen.unwrap_or(Seen {
            last_answer_ms: -1,
            last_caught_up_ms: -1,
        })
    }

    /// Answers a message of another voter.
    pub(super) async fn receive(
        &self,
        raft: &Raft<Types>,
        message: &[u8],
    ) -> Result<Bytes, Refused> {
        let request = Request::decode(message)?;
        if request.cluster_id() != &*self.cluster_id {
            return Err(Refused::Cluster(request.cluster_id().to_owned()));
        }
        self.check_offsets(&request)?;
        let stopped = |error: RaftError<i32>| Refused::Fault(super::node::consensus(error));
        match request {
            Request::Append(append) => {
                let answer = raft.append_entries(entries_of(append)).await;
                let answer = answer.map_err(stopped)?;
                Ok(wire::encode(&Appended::new(
                    &answer,
                    &self.shared.log.lock(),
                )))
            }
            Request::AskVote(ask) => {
                let rpc = VoteRequest::new(ask.ballot.vote(), ask.last.id());
                let answer = raft.vote(rpc).await.map_err(stopped)?;
                Ok(wire::encode(&Voted::new(&answer, &self.shared.log.lock())))
            }
            Request::Install(install) => self.install(raft, install).await,
        }
    }

    fn check_offsets(&self, request: &Request) -> Result<(), Refused> {
        let log = self.shared.log.lock();
        let points = request.points();
        match points.iter().find(|point| !point.agrees_with(&log)) {
            None => Ok(()),
            Some(point) => Err(Refused::Offsets {
                index: point.index,
                theirs: point.end_offset,
            }),
        }
    }

    /// Makes the snapshot and the anchor that it brings durable before openraft hears of it, which
    /// would purge the log first and hand over the snapshot afterwards.
    async fn install(&self, raft: &Raft<Types>, install: Install) -> Result<Bytes, Refused> {
        let vote = install.ballot.vote();
        let snapshot = self.keep(&install)?;
        let answer = raft.install_full_snapshot(vote, snapshot).await;
        let answer = answer.map_err(|fatal| Refused::Fault(super::node::consensus(fatal)))?;
        Ok(wire::encode(&Ballot::from(&answer.vote)))
    }

    pub(super) fn keep(&self, install: &Install) -> Result<Snapshot<Types>, Fault> {
        let Shared { disk, dir, .. } = &*self.shared;
        let id = SnapshotId {
            end_offset: install.last.end_offset,
            epoch: install.last.epoch,
        };
        let anchor = Anchor {
            index: install.last.index.max(0).cast_unsigned() + 1,
            offset: id.end_offset,
            epoch: id.epoch,
        };
        let path = dir.join(id.file_name());
        let content = snapshot::parse(&install.file).map_err(|reason| Fault::Snapshot {
            path: path.clone(),
            reason,
        })?;
        let mut side = Side::read(*disk, dir)?;
        side.pending = Some(anchor);
        side.write(*disk, dir)?;
        disk.write_atomically(&path, &install.file)
            .at("write", &path)?;
        let basis = Basis {
            named: content.members.is_some(),
            members: content
                .members
                .unwrap_or_else(|| fixed_members(&self.shared.voters)),
            kraft_version: content.kraft_version,
        };
        let last = install.last.id();
        let meta = SnapshotMeta {
            last_log_id: last,
            last_membership: StoredMembership::new(last, basis.members.clone()),
            snapshot_id: id.file_name(),
        };
        *self.shared.pending.lock() = Some((anchor, basis));
        let snapshot = Box::new(SnapshotFile { id, path });
        Ok(Snapshot { meta, snapshot })
    }
}

fn entries_of(append: Append) -> AppendEntriesRequest<Types> {
    let first = u64::try_from(append.before.index + 1).unwrap_or(0);
    let mut entries = Vec::new();
    for (index, batch) in (first..).zip(Batches::new(&append.batches).flatten()) {
        entries.push(Entry {
            id: log_id(batch.header.partition_leader_epoch, index),
            content: Content::Stored(
                append.batches.slice_ref(batch.bytes()),
                control::members_in(&batch),
            ),
        });
    }
    AppendEntriesRequest {
        vote: append.ballot.vote(),
        prev_log_id: append.before.id(),
        entries,
        leader_commit: append.committed.id(),
    }
}

impl RaftNetworkFactory<Types> for Peers {
    type Network = Link;

    async fn new_client(&mut self, target: i32, _node: &Member) -> Link {
        Link {
            peers: self.clone(),
            voter: target,
        }
    }
}

/// The link to one other voter.
pub(super) struct Link {
    peers: Peers,
    voter: i32,
}

impl Link {
    fn point(&self, id: Option<RaftLog>) -> Point {
        Point::new(id, &self.peers.shared.log.lock())
    }

    async fn ask<T: Field>(&self, request: Request) -> Result<T, Unreachable> {
        let Some(exchange) = &self.peers.exchange else {
            return Err(unreachable(&io::Error::from(io::ErrorKind::NotConnected)));
        };
        let answer = exchange.ask(NodeId(self.voter), request.encode()).await;
        let bytes = answer.map_err(|error| unreachable(&error))?;
        wire::decode(&bytes).map_err(|bad| unreachable(&bad))
    }

    fn note(&self, answer: &AppendEntriesResponse<i32>, reaches: Option<RaftLog>) {
        if *answer != AppendEntriesResponse::Success {
            return;
        }
        let newest = self.peers.shared.log.lock().newest();
        let mut seen = self.peers.seen(NodeId(self.voter));
        seen.last_answer_ms = clock::wall_ms();
        if reaches.map(|id| id.index) >= newest.map(|(index, _)| index) {
            seen.last_caught_up_ms = seen.last_answer_ms;
        }
        self.peers.seen.lock().insert(self.voter, seen);
    }
}

fn unreachable(error: &(impl std::error::Error + 'static)) -> Unreachable {
    Unreachable::new(error)
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<i32>, RPCError<i32, Member, RaftError<i32>>> {
        let reaches = rpc.entries.last().map(|entry| entry.id).or(rpc.prev_log_id);
        let batches = rpc.entries.iter().filter_map(|entry| match &entry.content {
            Content::Stored(bytes, _) => Some(bytes.as_ref()),
            Content::Blank | Content::Membership(_) | Content::Proposed(_) => None,
        });
        let message = Append {
            cluster_id: self.peers.cluster_id.to_string(),
            ballot: (&rpc.vote).into(),
            before: self.point(rpc.prev_log_id),
            committed: self.point(rpc.leader_commit),
            batches: batches.collect::<Vec<_>>().concat().into(),
        };
        let answered = self.ask::<Appended>(Request::Append(message)).await;
        let answer = answered.map_err(RPCError::Unreachable)?.answer();
        self.note(&answer, reaches);
        Ok(answer)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<i32>,
        _option: RPCOption,
    ) -> Result<VoteResponse<i32>, RPCError<i32, Member, RaftError<i32>>> {
        let message = AskVote {
            cluster_id: self.peers.cluster_id.to_string(),
            ballot: (&rpc.vote).into(),
            last: self.point(rpc.last_log_id),
        };
        let answered = self.ask::<Voted>(Request::AskVote(message)).await;
        Ok(answered.map_err(RPCError::Unreachable)?.answer())
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote<i32>,
        snapshot: Snapshot<Types>,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<i32>, StreamingError<Types, Fatal<i32>>> {
        let path = &snapshot.snapshot.path;
        let file = self.peers.shared.disk.read(path);
        let file = file.map_err(|error| StreamingError::Unreachable(unreachable(&error)))?;
        let mut last = self.point(snapshot.meta.last_log_id);
        last.end_offset = snapshot.snapshot.id.end_offset;
        let message = Install {
            cluster_id: self.peers.cluster_id.to_string(),
            ballot: (&vote).into(),
            last,
            file: file.into(),
        };
        let answered = self.ask::<Ballot>(Request::Install(message)).await;
        let ballot = answered.map_err(StreamingError::Unreachable)?;
        Ok(SnapshotResponse::new(ballot.vote()))
    }
}
