//! openraft's state machine: hands committed batches to the observer and builds snapshots of what
//! they add up to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::storage::RaftStateMachine;
use openraft::{OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta, StoredMembership};

use crate::metadata::image::Image;
use crate::os::{clock, tasks};
use crate::protocol::records::batch::Batch;
use crate::protocol::records::control::ControlRecord;

use super::control;
use super::entry::{Content, Entry, Member, RaftLog, StorageError, Types, log_id};
use super::fault::Fault;
use super::log::Basis;
use super::observer::Observer;
use super::shared::{Led, Shared};
use super::snapshot::{self, Preface, SnapshotFile, SnapshotId};

/// Snapshots that are kept: with the older one goes the log since then, so that a broker that is a
/// little behind need not load a whole image.
const SNAPSHOTS_KEPT: usize = 2;

type Meta = SnapshotMeta<i32, Member>;
type Stored = StoredMembership<i32, Member>;

/// When a snapshot is due (metadata.log.max.record.bytes.between.snapshots and
/// metadata.log.max.snapshot.interval.ms). Looked at only when something was committed: an idle
/// log needs no snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) bytes: u64,
    pub(super) interval: Duration,
}

/// The state machine.
#[derive(Debug)]
pub(super) struct Machine {
    shared: Arc<Shared>,
    observer: Observer,
    applied: Option<RaftLog>,
    schedule: Schedule,
    bytes_since: u64,
    last_snapshot: Instant,
}

impl Machine {
    /// Begins with what the observer already holds: the newest snapshot, or nothing.
    pub(super) fn new(shared: Arc<Shared>, observer: Observer, schedule: Schedule) -> Self {
        let end = observer.position().end_offset;
        let before = shared.log.lock().batch_before(end);
        shared.committed.send_replace(end);
        Self {
            applied: before.map(|(index, epoch)| log_id(epoch, index)),
            shared,
            observer,
            schedule,
            bytes_since: 0,
            last_snapshot: clock::now(),
        }
    }

    fn take_in(&mut self, entries: &[Entry]) -> Result<(), Fault> {
        let batches = entries.iter().filter_map(stored);
        self.observer.replay(batches)?;
        self.bytes_since += entries
            .iter()
            .filter_map(stored)
            .map(|b| b.len() as u64)
            .sum::<u64>();
        self.applied = entries.last().map(|entry| entry.id).or(self.applied);
        let end = self.observer.position().end_offset;
        self.shared.committed.send_replace(end);
        let changes = entries.iter().filter_map(stored).filter_map(leader_in);
        if let Some(led) = changes.last() {
            self.shared.led.send_replace(led);
        }
        if self.is_snapshot_due() {
            self.shared.snapshot_due.notify_one();
        }
        Ok(())
    }

    fn is_snapshot_due(&self) -> bool {
        let waited = clock::now().saturating_duration_since(self.last_snapshot);
        self.bytes_since >= self.schedule.bytes || waited >= self.schedule.interval
    }

    fn members_at(&self, applied: Option<RaftLog>) -> Stored {
        members_at(&self.shared, applied)
    }
}

/// The voters as of a log id, and the entry that names them.
fn members_at(shared: &Shared, applied: Option<RaftLog>) -> Stored {
    let log = shared.log.lock();
    let (index, members) = log.members_at(applied.map(|id| id.index));
    let id = index.and_then(|at| log.place(at).map(|place| log_id(place.epoch, at)));
    Stored::new(id, members.clone())
}

fn stored(entry: &Entry) -> Option<&[u8]> {
    match &entry.content {
        Content::Stored(bytes, _) => Some(bytes),
        Content::Blank | Content::Membership(_) | Content::Proposed(_) => None,
    }
}

fn leader_in(bytes: &[u8]) -> Option<Led> {
    let batch = Batch::parse(bytes).ok()?;
    let epoch = batch.header.partition_leader_epoch;
    let records = control::control_records(&batch).into_iter();
    let mut leaders = records.filter_map(|record| match record {
        ControlRecord::LeaderChange(change) => Some(change.leader_id),
        ControlRecord::EndTransaction { .. }
        | ControlRecord::SnapshotHeader { .. }
        | ControlRecord::SnapshotFooter
        | ControlRecord::KraftVersion(_)
        | ControlRecord::Voters(_)
        | ControlRecord::Other(_) => None,
    });
    leaders.next().map(|leader| Led { leader, epoch })
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<RaftLog>, Stored), StorageError> {
        Ok((self.applied, self.members_at(self.applied)))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        self.take_in(&entries)
            .map_err(|fault| self.shared.fail(fault))?;
        Ok(vec![(); entries.len()])
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        self.bytes_since = 0;
        self.last_snapshot = clock::now();
        let position = self.observer.position();
        Builder {
            shared: Arc::clone(&self.shared),
            image: self.observer.image(),
            id: position.snapshot_id(),
            last_timestamp: position.last_timestamp,
            applied: self.applied,
            members: self.members_at(self.applied),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<SnapshotFile>, StorageError> {
        // Snapshots arrive whole, as a file that is already durable; this only names a place.
        let id = SnapshotId {
            end_offset: 0,
            epoch: 0,
        };
        Ok(Box::new(SnapshotFile {
            id,
            path: self.shared.dir.join(id.file_name()),
        }))
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta,
        snapshot: Box<SnapshotFile>,
    ) -> Result<(), StorageError> {
        let Shared { disk, dir, .. } = &*self.shared;
        let loaded = snapshot::read(*disk, dir, snapshot.id)
            .and_then(|content| self.observer.load(snapshot.id, &content));
        loaded.map_err(|fault| self.shared.fail(fault))?;
        self.applied = meta.last_log_id;
        self.shared.committed.send_replace(snapshot.id.end_offset);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        current(&self.shared).map_err(|fault| self.shared.fail(fault))
    }
}

/// The newest snapshot of the folder that the log can be continued from.
fn current(shared: &Shared) -> Result<Option<Snapshot<Types>>, Fault> {
    let newest = snapshot::list(shared.disk, &shared.dir)?.pop();
    let Some(id) = newest.filter(|id| id.end_offset > 0) else {
        return Ok(None);
    };
    let before = shared.log.lock().batch_before(id.end_offset);
    let last = before.map(|(index, epoch)| log_id(epoch, index));
    Ok(Some(named(shared, id, last, members_at(shared, last))))
}

fn named(
    shared: &Shared,
    id: SnapshotId,
    last: Option<RaftLog>,
    members: Stored,
) -> Snapshot<Types> {
    let meta = Meta {
        last_log_id: last,
        last_membership: members,
        snapshot_id: id.file_name(),
    };
    let path = shared.dir.join(id.file_name());
    Snapshot {
        meta,
        snapshot: Box::new(SnapshotFile { id, path }),
    }
}

/// Writes one snapshot beside the work of the state machine.
#[derive(Debug)]
pub(super) struct Builder {
    shared: Arc<Shared>,
    image: Option<Image>,
    id: SnapshotId,
    last_timestamp: i64,
    applied: Option<RaftLog>,
    members: Stored,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let built = self.build().await;
        built.map_err(|fault| self.shared.fail(fault))
    }
}

impl Builder {
    async fn build(&mut self) -> Result<Snapshot<Types>, Fault> {
        let Some(image) = self.image.take() else {
            // Within a transaction of records the newest snapshot stays what it is; the next batch
            // asks again.
            return self.stay();
        };
        let preface = self.preface();
        let (shared, id) = (Arc::clone(&self.shared), self.id);
        let written = tasks::blocking(move || write(&shared, id, &preface, &image)).await;
        written.unwrap_or(Err(Fault::Ended))?;
        let members = self.members.clone();
        Ok(named(&self.shared, self.id, self.applied, members))
    }

    fn stay(&self) -> Result<Snapshot<Types>, Fault> {
        let current = current(&self.shared)?;
        let none = SnapshotId {
            end_offset: 0,
            epoch: 0,
        };
        let members = self.members.clone();
        Ok(current.unwrap_or_else(|| named(&self.shared, none, None, members)))
    }

    fn preface(&self) -> Preface {
        let log = self.shared.log.lock();
        Preface {
            last_timestamp: self.last_timestamp,
            basis: Basis {
                members: self.members.membership().clone(),
                named: log.names_members(),
                kraft_version: log.kraft_version(),
            },
        }
    }
}

/// Writes a snapshot and lets go of what no kept one needs.
pub(super) fn write(
    shared: &Shared,
    id: SnapshotId,
    preface: &Preface,
    image: &Image,
) -> Result<(), Fault> {
    let (disk, dir) = (shared.disk, &shared.dir);
    if !disk.exists(&dir.join(id.file_name())) {
        snapshot::write(disk, dir, id, preface, &image.records(), clock::wall_ms())?;
    }
    snapshot::forget_old(disk, dir, SNAPSHOTS_KEPT)?;
    // What comes next begins a file of its own, so that a start never has to read what two
    // snapshots ago was already written down.
    shared.log.lock().roll_at_next();
    Ok(())
}
