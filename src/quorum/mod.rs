//! The metadata quorum: consensus on the log of metadata records, and the image it adds up to.
//!
//! The Raft log is Kafka's own `__cluster_metadata-0`: one batch is one entry. openraft decides
//! what is committed; none of its types leaves this folder.
//!
//! - `settings`, `open`, `node`: what it is told, what stands on the disk, the thread that runs it
//! - `log`, `segment`, `scan`, `flusher`: the batches in their files, and making them durable
//! - `side`: `quorum-state` and the anchor; `snapshot`: `.checkpoint` files
//! - `entry`, `control`: a batch as an entry; the batches that the quorum writes for itself
//! - `store`, `machine`, `transport`: what openraft asks of us: log, state machine, network;
//!   `wire`: the voters' messages
//! - `observer`: from committed batches to the image; `journal`: the controller's way to append
//! - `shared`, `fault`: what the parts have in common, and what ends them
//!
//! ```text
//! controller ─> QuorumJournal ─> openraft ─> store ─> log ─> flusher ─┐
//!     ▲                             ▲                                 │ durable
//!     │                             └─────────────────────────────────┘
//!     └── Leadership, Image <─ observer <─ machine <─ committed batches
//! ```

mod control;
mod entry;
mod fault;
mod flusher;
mod journal;
mod log;
mod machine;
mod node;
mod observer;
mod open;
mod scan;
mod segment;
mod settings;
mod shared;
mod side;
mod snapshot;
mod store;
mod transport;
mod wire;

#[cfg(test)]
mod crash_world_test;
#[cfg(test)]
mod quorum_test;
#[cfg(test)]
mod voters_test;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::base::{DirectoryId, LeaderEpoch, NodeId};
use crate::metadata::image::Image;
use crate::os::clock;
use crate::os::disk::Disk;
use crate::os::tasks::{self, Tasks};

use fault::At;
use node::{Running, Start};

pub(crate) use fault::Fault;
pub(crate) use journal::QuorumJournal;
pub(crate) use node::Leadership;
#[allow(unused_imports, reason = "the type of what a follower gets")]
pub(crate) use observer::{Follower, Published, Update};
pub(crate) use settings::Settings;
pub(crate) use snapshot::{SnapshotId, formatted};
pub(crate) use transport::{Exchange, Refused};

/// The running quorum of this node.
pub(crate) struct Quorum {
    running: Running,
    leadership: watch::Receiver<Leadership>,
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<()>,
}

/// What DescribeQuorum tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// Who leads.
    pub(crate) leadership: Leadership,
    /// The offset after the last committed record.
    pub(crate) high_watermark: i64,
    /// The voters; how far each is, only the leader knows.
    pub(crate) voters: Vec<VoterState>,
}

/// What DescribeQuorum tells of a voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VoterState {
    pub(crate) id: NodeId,
    pub(crate) directory: DirectoryId,
    /// -1 when unknown.
    pub(crate) log_end_offset: i64,
    /// When it last answered, in milliseconds since 1970; -1 when unknown.
    pub(crate) last_fetch_ms: i64,
    /// When it last had everything, in milliseconds since 1970; -1 when unknown.
    pub(crate) last_caught_up_ms: i64,
}

impl Quorum {
    /// Opens the folder and starts; an only voter begins its election at once. When this returns,
    /// the log is open and the newest snapshot is loaded; watch the leadership for the rest.
    pub(crate) async fn start(
        settings: Settings,
        disk: Disk,
        tasks: &Tasks,
        exchange: Option<Arc<dyn Exchange>>,
    ) -> Result<Self, Fault> {
        let dir = settings.dir.clone();
        let (leadership, told) = watch::channel(Leadership {
            leader: None,
            epoch: LeaderEpoch(0),
        });
        let (ready, started) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let start = Start {
            settings,
            disk,
            exchange,
            leadership,
            ready,
            stop: stopped,
        };
        let thread = tasks::thread_with_runtime("metadata-quorum", move || async move {
            node::run(start).await;
            // Nobody may wait for it any more.
            let _ = end.send(());
        });
        thread.at("start a thread for", &dir)?;
        let running = started.await.unwrap_or(Err(Fault::Ended))?;
        stop_on_fault(tasks, &running);
        Ok(Self {
            running,
            leadership: told,
            stop: Some(stop),
            ended,
        })
    }

    /// Who leads, as it changes.
    pub(crate) fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// The offset after the last committed record, as it grows.
    pub(crate) fn committed(&self) -> watch::Receiver<i64> {
        self.running.shared.committed.subscribe()
    }

    /// The committed image, as it changes.
    pub(crate) fn image(&self) -> watch::Receiver<Published> {
        self.running.shared.board.watch()
    }

    /// Learns of every change of the image; there is one follower in a node, who must keep taking.
    pub(crate) fn follow(&self) -> Follower {
        self.running.shared.board.follow()
    }

    /// Journal and image for the controller of `epoch`; `None` when this node does not lead in it
    /// (any more). The image holds all that was committed before, and only this journal adds to it.
    pub(crate) fn lead(&self, epoch: LeaderEpoch) -> Option<(QuorumJournal, Arc<Image>)> {
        let journal = QuorumJournal::new(Arc::clone(&self.running.tail), epoch.0)?;
        let image = Arc::clone(&self.image().borrow().image);
        Some((journal, image))
    }

    /// The first fault; the node must stop when there is one.
    pub(crate) fn fault(&self) -> watch::Receiver<Option<Arc<Fault>>> {
        self.running.shared.fault.subscribe()
    }

    /// What DescribeQuorum tells.
    pub(crate) fn describe(&self) -> Description {
        let leadership = *self.leadership.borrow();
        let shared = &self.running.shared;
        let replication = self.running.raft.metrics().borrow().replication.clone();
        let log = shared.log.lock();
        let voters = control::voters_of(log.members()).into_iter().map(|voter| {
            let matched = replication
                .as_ref()
                .and_then(|known| *known.get(&voter.id)?);
            let end = matched.and_then(|id| log.end_of(id.index));
            let seen = self.running.peers.seen(NodeId(voter.id));
            let mut state = VoterState {
                id: NodeId(voter.id),
                directory: DirectoryId(voter.directory),
                log_end_offset: end.unwrap_or(-1),
                last_fetch_ms: seen.last_answer_ms,
                last_caught_up_ms: seen.last_caught_up_ms,
            };
            if leadership.leader == Some(shared.node) && state.id == shared.node {
                state.log_end_offset = log.end_offset();
                state.last_fetch_ms = clock::wall_ms();
                state.last_caught_up_ms = state.last_fetch_ms;
            }
            state
        });
        Description {
            leadership,
            high_watermark: *shared.committed.borrow(),
            voters: voters.collect(),
        }
    }

    /// Committed batches from the one that holds `offset` on, for brokers that fetch: whole
    /// batches, one at least, more up to `bytes_max`. `None` when the offset lies before the log.
    pub(crate) fn read(&self, offset: i64, bytes_max: usize) -> Result<Option<Bytes>, Fault> {
        let committed = *self.running.shared.committed.borrow();
        let log = self.running.shared.log.lock();
        if offset < log.start_offset() {
            return Ok(None);
        }
        let (from, until) = (log.index_of(offset), log.index_of(committed));
        let batches = log.read(from, until, bytes_max)?;
        let bytes: Vec<u8> = batches.into_iter().flat_map(|(_, bytes)| bytes).collect();
        Ok(Some(bytes.into()))
    }

    /// Answers a message that another voter's [`Exchange`] carried here.
    pub(crate) async fn receive(&self, message: &[u8]) -> Result<Bytes, Refused> {
        let Running { raft, peers, .. } = &self.running;
        peers.receive(raft, message).await
    }

    /// The first offset that [`Quorum::read`] gives.
    pub(crate) fn start_offset(&self) -> i64 {
        self.running.shared.log.lock().start_offset()
    }

    /// The newest epoch up to `epoch`, and the offset where it ends (OffsetForLeaderEpoch).
    pub(crate) fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        let log = self.running.shared.log.lock();
        let found = log.end_of_epoch(epoch.0);
        found.map(|(epoch, end)| (LeaderEpoch(epoch), end))
    }

    /// The newest snapshot and its file, for brokers that are behind the log's start.
    pub(crate) fn newest_snapshot(&self) -> Result<Option<(SnapshotId, PathBuf)>, Fault> {
        let shared = &self.running.shared;
        let newest = snapshot::list(shared.disk, &shared.dir)?.pop();
        Ok(newest.map(|id| (id, shared.dir.join(id.file_name()))))
    }

    /// Ends the quorum and the log as Kafka leaves it at a clean stop.
    pub(crate) async fn stop(mut self) -> Result<(), Arc<Fault>> {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        let _ = (&mut self.ended).await;
        match &*self.running.shared.fault.borrow() {
            Some(fault) => Err(Arc::clone(fault)),
            None => Ok(()),
        }
    }
}

/// A node without its metadata log must not go on.
fn stop_on_fault(tasks: &Tasks, running: &Running) {
    let mut fault = running.shared.fault.subscribe();
    let group = tasks.clone();
    tasks.spawn("quorum-fault", async move {
        tokio::select! {
            biased;
            () = group.stopped() => {}
            found = fault.wait_for(Option::is_some) => {
                if found.is_ok() {
                    group.stop();
                }
            }
        }
    });
}
