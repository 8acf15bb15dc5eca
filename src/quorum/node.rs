//! The thread that drives openraft: starts it, tells who leads, asks for snapshots, stops it.
//!
//! The core has a thread and a runtime of its own, so that data traffic cannot make it miss its
//! heartbeats. Never hold a `borrow()` of its metrics over an await: the core would wait for it.

use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, Raft, SnapshotPolicy};
use tokio::sync::{oneshot, watch};

use crate::base::{LeaderEpoch, NodeId};
use crate::os::disk::Disk;
use crate::os::tasks::Tasks;

use super::entry::{Types, epoch_of};
use super::fault::{At, Fault};
use super::flusher::Flusher;
use super::journal::{self, Tail};
use super::machine::{Machine, Schedule};
use super::observer::{Board, Observer};
use super::open::{self, Opened};
use super::settings::Settings;
use super::shared::{Led, Shared};
use super::snapshot;
use super::store::Store;
use super::transport::{Exchange, Peers};

/// Who leads the metadata quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leadership {
    /// The leader, once known; this node only after it replayed all that came before it led.
    pub(crate) leader: Option<NodeId>,
    /// The epoch of the leader or of the election under way.
    pub(crate) epoch: LeaderEpoch,
}

/// What the thread is given.
pub(super) struct Start {
    pub(super) settings: Settings,
    pub(super) disk: Disk,
    pub(super) exchange: Option<Arc<dyn Exchange>>,
    pub(super) leadership: watch::Sender<Leadership>,
    pub(super) ready: oneshot::Sender<Result<Running, Fault>>,
    pub(super) stop: oneshot::Receiver<()>,
}

/// What the thread gives back once it runs.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) raft: Raft<Types>,
    pub(super) shared: Arc<Shared>,
    pub(super) tail: Arc<Tail>,
    pub(super) peers: Peers,
}

/// Runs until told to stop or until the core fails.
pub(super) async fn run(start: Start) {
    let began = begin(&start.settings, start.disk, start.exchange).await;
    let running = match began {
        Ok(running) => running,
        Err(fault) => {
            // Whoever started it may have gone; then nobody wants to know.
            let _ = start.ready.send(Err(fault));
            return;
        }
    };
    let _ = start.ready.send(Ok(running.clone()));
    let leadership = start.leadership;
    let tasks = Tasks::new();
    let (raft, tail) = (running.raft.clone(), Arc::clone(&running.tail));
    tasks.spawn("metadata-journal", journal::pump(raft, tail, tasks.clone()));
    let driven = drive(&running, &leadership, start.stop).await;
    leadership.send_modify(|now| now.leader = None);
    running.tail.end();
    tasks.stop();
    finish(&running, driven).await;
    tasks.stop_and_wait().await;
}

async fn begin(
    settings: &Settings,
    disk: Disk,
    exchange: Option<Arc<dyn Exchange>>,
) -> Result<Running, Fault> {
    let opened = open::open(settings, disk)?;
    let (shared, observer, election) = share(settings, disk, opened)?;
    let schedule = Schedule {
        bytes: settings.snapshot_bytes,
        interval: settings.snapshot_interval,
    };
    let alone = shared.is_alone();
    let peers = Peers::new(exchange, Arc::clone(&shared), &settings.cluster_id);
    let machine = Machine::new(Arc::clone(&shared), observer, schedule);
    let store = Store::new(Arc::clone(&shared), election);
    let config = Arc::new(config(settings, alone));
    let raft = Raft::new(settings.node_id.0, config, peers.clone(), store, machine).await;
    let raft = raft.map_err(consensus)?;
    if alone {
        raft.trigger().elect().await.map_err(consensus)?;
    }
    Ok(Running {
        raft,
        shared,
        tail: Arc::default(),
        peers,
    })
}

/// What the parts have in common, with the newest snapshot already taken in.
pub(super) fn share(
    settings: &Settings,
    disk: Disk,
    opened: Opened,
) -> Result<(Arc<Shared>, Observer, super::side::Election), Fault> {
    let board = Board::new();
    let mut observer = Observer::new(Arc::clone(&board));
    if let Some((id, content)) = &opened.snapshot {
        observer.load(*id, content)?;
    }
    let shared = Shared {
        node: settings.node_id,
        directory: settings.directory_id,
        voters: settings.voters.clone(),
        disk,
        flusher: Flusher::start().at("start a thread for", &opened.dir)?,
        dir: opened.dir,
        log: opened.log.into(),
        board,
        committed: watch::Sender::new(0),
        led: watch::Sender::new(Led::default()),
        pending: None.into(),
        late_vote: None.into(),
        snapshot_due: tokio::sync::Notify::new(),
        fault: watch::Sender::new(None),
    };
    Ok((Arc::new(shared), observer, opened.election))
}

fn config(settings: &Settings, alone: bool) -> Config {
    let election = millis(settings.election_timeout).max(20);
    let (heartbeat, shortest, longest) = if alone {
        // Nobody waits for its heartbeats and it is elected by hand: an idle node does nothing.
        (IDLE_MS, 2 * IDLE_MS, 4 * IDLE_MS)
    } else {
        // openraft draws the timeout once and looks at it only every 1.5 heartbeats. Voters that
        // drew nearly the same would split their votes again and again; so each draws from a part
        // of the range that is its own.
        let voters = settings.voters.len().max(1) as u64;
        let before = |voter: &&NodeId| **voter < settings.node_id;
        let rank = settings.voters.iter().filter(before).count() as u64;
        let part = (election / voters).max(1);
        let shortest = election + rank * part;
        (election / 10, shortest, shortest + part)
    };
    Config {
        cluster_name: settings.cluster_id.clone(),
        heartbeat_interval: heartbeat,
        election_timeout_min: shortest,
        election_timeout_max: longest,
        enable_tick: !alone,
        // Snapshots go by bytes, purging by the snapshots that are kept: both are asked for.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        ..Config::default()
    }
}

/// A period that a timer nobody needs is set to.
const IDLE_MS: u64 = 24 * 3600 * 1000;

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX / 8)
}

/// Follows the core until it ends or is to end.
async fn drive(
    running: &Running,
    leadership: &watch::Sender<Leadership>,
    mut stop: oneshot::Receiver<()>,
) -> Result<(), Fault> {
    let mut server = running.raft.server_metrics();
    let mut whole = running.raft.metrics();
    let mut led = running.shared.led.subscribe();
    loop {
        announce(running, leadership).await?;
        tokio::select! {
            biased;
            _ = &mut stop => return Ok(()),
            changed = server.changed() => changed.map_err(|_| Fault::Ended)?,
            changed = led.changed() => changed.map_err(|_| Fault::Ended)?,
            // The core's last word comes only here; else it changes with every entry.
            ended = whole.wait_for(|metrics| metrics.running_state.is_err()) => {
                let why = ended.ok().and_then(|metrics| metrics.running_state.clone().err());
                return Err(why.map_or(Fault::Ended, consensus));
            }
            () = running.shared.snapshot_due.notified() => snapshot_and_purge(running).await?,
        }
    }
}

/// Tells who leads. Own leadership is told when its leader change was replayed, and nothing that
/// an earlier leadership proposed can reach the log any more.
async fn announce(running: &Running, told: &watch::Sender<Leadership>) -> Result<(), Fault> {
    let (leader, epoch) = {
        let server = running.raft.server_metrics();
        let now = server.borrow();
        (now.current_leader, epoch_of(now.vote.leader_id.term))
    };
    let me = running.shared.node;
    let mut next = Leadership {
        leader: leader.map(NodeId),
        epoch: LeaderEpoch(epoch),
    };
    if next.leader == Some(me) && *told.borrow() != next {
        let began = *running.shared.led.borrow();
        if began
            == (Led {
                leader: me.0,
                epoch,
            })
        {
            lead(running, epoch).await?;
        } else {
            next.leader = None;
        }
    }
    if next.leader != Some(me) {
        running.tail.end();
    }
    told.send_if_modified(|now| {
        let changed = *now != next;
        *now = next;
        changed
    });
    Ok(())
}

/// Opens the journal at the log's end, after everything that was proposed before.
async fn lead(running: &Running, epoch: i32) -> Result<(), Fault> {
    running.tail.end();
    let shared = Arc::clone(&running.shared);
    // Runs in the core between two entries, behind all that is queued.
    let end = running
        .raft
        .with_raft_state(move |_| shared.log.lock().end_offset());
    let end = end.await.map_err(consensus)?;
    running.tail.begin(epoch, end);
    Ok(())
}

/// Builds a snapshot and lets go of the log before the oldest one that is kept.
async fn snapshot_and_purge(running: &Running) -> Result<(), Fault> {
    let before = newest_snapshot(running)?;
    running.raft.trigger().snapshot().await.map_err(consensus)?;
    let shared = &running.shared;
    // Only what an earlier snapshot holds is purged; the one under way is not waited for.
    let ids = snapshot::list(shared.disk, &shared.dir)?;
    let oldest = ids.first().copied().filter(|id| Some(*id) <= before);
    let Some(oldest) = oldest else { return Ok(()) };
    let last = shared.log.lock().batch_before(oldest.end_offset);
    if let Some((index, _)) = last {
        let purged = running.raft.trigger().purge_log(index).await;
        purged.map_err(consensus)?;
    }
    Ok(())
}

fn newest_snapshot(running: &Running) -> Result<Option<snapshot::SnapshotId>, Fault> {
    let shared = &running.shared;
    Ok(snapshot::list(shared.disk, &shared.dir)?.pop())
}

/// Ends the core, then the flusher, then the log; a log in which something failed is left as it is.
async fn finish(running: &Running, driven: Result<(), Fault>) {
    if let Err(fault) = driven {
        running.shared.report(fault);
    }
    // Its error is a panic of the core, which the watch of its state has already told.
    let _ = running.raft.shutdown().await;
    running.shared.flusher.stop();
    if running.shared.fault.borrow().is_none()
        && let Err(fault) = running.shared.log.lock().close()
    {
        running.shared.report(fault);
    }
}

/// Any error of the core, without its type.
pub(super) fn consensus(error: impl std::error::Error + Send + Sync + 'static) -> Fault {
    Fault::Consensus {
        source: error.into(),
    }
}
