//! One partition on this node: its role, its log, its high watermark, those who wait for it.
//!
//! Offsets and role are published; only an append takes the log's lock, and a read none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::background::{Background, Doomed};
use super::durable::Durability;
use super::fault::Fault;
use super::isr::Replicas;
use super::moving::Move;
use super::wait::WaitList;
use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition};
use crate::log::append::{self, Checked, Rejection, Rules};
use crate::log::dir::LogDir;
use crate::log::dirs::LogHandle;
use crate::log::flush::Wish;
use crate::log::log::{AppendContext, AppendError, Appended, Log};
use crate::log::producers::{Origin, Proof};
use crate::log::read::{Located, LogReader, Slice, Want};
use crate::metadata::image::topics;
use crate::os::{clock, tasks};
use crate::protocol::error::ErrorCode;

/// An append up to this size runs where it is asked for, unless another holds the log: it costs
/// about as much as the hop to the blocking pool.
const INLINE_BYTES: usize = 256 << 10;

/// The same for a compressed batch, whose bytes say little of the work to check it.
const INLINE_COMPRESSED_BYTES: usize = 1 << 10;

/// What this node is to a partition, as the metadata says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) leader: NodeId,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) partition_epoch: PartitionEpoch,
    pub(crate) replicas: Replicas,
}

impl Role {
    /// The role that a partition's registration gives.
    pub(crate) fn of(registered: &topics::Partition, min_in_sync: usize) -> Self {
        Self {
            leader: registered.leader,
            leader_epoch: registered.leader_epoch,
            partition_epoch: registered.partition_epoch,
            replicas: Replicas {
                all: registered.replicas.clone(),
                in_sync: registered.isr.clone(),
                min_in_sync,
            },
        }
    }
}

#[cfg(test)]
impl Role {
    /// The role of the only replica.
    pub(crate) fn alone(node: NodeId) -> Self {
        Self {
            leader: node,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            replicas: Replicas {
                all: vec![node],
                in_sync: vec![node],
                min_in_sync: 1,
            },
        }
    }
}

/// How far a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// To the log's end: replicas and their verifiers.
    LogEnd,
    /// To the high watermark: consumers.
    Committed,
    /// To the last stable offset: consumers that skip what was aborted.
    Stable,
}

/// The offsets of a partition at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) log_start: i64,
    pub(crate) last_stable: i64,
    pub(crate) high_watermark: i64,
    pub(crate) log_end: i64,
}

impl Offsets {
    /// The first offset that a reader may not see.
    pub(crate) fn end(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::LogEnd => self.log_end,
            Isolation::Committed => self.high_watermark,
            Isolation::Stable => self.last_stable,
        }
    }
}

/// Why an append was not made.
#[derive(Debug)]
pub(crate) enum NotAppended {
    /// The client is told.
    Rejected(Box<Rejection>),
    /// This node cannot serve the partition now.
    Unavailable(ErrorCode),
}

impl From<ErrorCode> for NotAppended {
    fn from(code: ErrorCode) -> Self {
        Self::Unavailable(code)
    }
}

/// A partition that has a replica on this node.
pub(crate) struct Partition {
    pub(crate) name: TopicPartition,
    pub(crate) topic_id: TopicId,
    node: NodeId,
    dir: RwLock<Arc<LogDir>>,
    /// Where the metadata says that its log lies.
    registered: Mutex<Option<DirectoryId>>,
    /// Set while its log is copied to another directory. Locked before the log.
    pub(super) moving: Mutex<Option<Arc<Move>>>,
    reader: LogReader,
    pub(super) log: Arc<Mutex<Log>>,
    role: RwLock<Arc<Role>>,
    high_watermark: AtomicI64,
    pub(super) waiting: Arc<WaitList>,
    gone: AtomicBool,
    offline: AtomicBool,
    pub(super) background: Arc<Background>,
    /// Already on the agenda of a round.
    pub(super) stirred: AtomicBool,
    /// A compaction met what it cannot read.
    pub(super) uncleanable: AtomicBool,
    pub(super) durability: Durability,
}

impl Partition {
    /// A partition whose log is open; it serves nothing before it is given a role.
    pub(crate) fn new(
        topic_id: TopicId,
        node: NodeId,
        name: TopicPartition,
        log: LogHandle,
        background: Arc<Background>,
    ) -> Self {
        let high_watermark = log.dir.high_watermark(&name);
        let reader = log.reader;
        let ends = (reader.log_start_offset(), reader.log_end_offset());
        Self {
            name,
            topic_id,
            node,
            reader,
            log: log.log,
            dir: RwLock::new(log.dir),
            registered: Mutex::default(),
            moving: Mutex::default(),
            role: RwLock::new(Arc::new(Role {
                leader: NodeId(-1),
                leader_epoch: LeaderEpoch(-1),
                partition_epoch: PartitionEpoch(-1),
                replicas: Replicas {
                    all: Vec::new(),
                    in_sync: Vec::new(),
                    min_in_sync: 1,
                },
            })),
            high_watermark: AtomicI64::new(high_watermark.clamp(ends.0, ends.1)),
            waiting: Arc::default(),
            gone: AtomicBool::new(false),
            offline: AtomicBool::new(false),
            background,
            stirred: AtomicBool::new(false),
            uncleanable: AtomicBool::new(false),
            durability: Durability::default(),
        }
    }

    /// What this node is to the partition now.
    pub(crate) fn role(&self) -> Arc<Role> {
        self.role.read().clone()
    }

    /// Where its log lies.
    pub(crate) fn dir(&self) -> Arc<LogDir> {
        self.dir.read().clone()
    }

    /// Its log goes on in another directory; told under the log's lock.
    pub(super) fn set_dir(&self, dir: Arc<LogDir>) {
        *self.dir.write() = dir;
    }

    /// Where the metadata says that its log lies.
    pub(super) fn registered(&self) -> Option<DirectoryId> {
        *self.registered.lock()
    }

    /// Takes the directory that the metadata gives.
    pub(super) fn set_registered(&self, id: Option<DirectoryId>) {
        *self.registered.lock() = id;
    }

    /// The log as readers see it.
    pub(crate) fn reader(&self) -> &LogReader {
        &self.reader
    }

    /// Those who wait for this partition.
    pub(crate) fn waiting(&self) -> &Arc<WaitList> {
        &self.waiting
    }

    /// Its offsets now.
    pub(crate) fn offsets(&self) -> Offsets {
        let high_watermark = self.high_watermark.load(Ordering::Acquire);
        Offsets {
            log_start: self.reader.log_start_offset(),
            last_stable: self.reader.last_stable_offset(high_watermark),
            high_watermark,
            log_end: self.reader.log_end_offset(),
        }
    }

    /// The high watermark now.
    pub(crate) fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    /// Takes the role that the metadata gives.
    pub(crate) fn take_role(&self, role: Role) -> Result<(), Fault> {
        // The lock spans both: an append sees the old epoch in role and log, or the new one.
        let mut log = self.log.lock();
        if role.leader == self.node {
            let end = log.log_end_offset();
            log.begin_epoch(role.leader_epoch, end)?;
        }
        *self.role.write() = Arc::new(role);
        drop(log);
        self.advance();
        if self.seen_up_to() < self.reader.log_end_offset() {
            // Of what was read back after a crash nobody waits for the flush.
            self.flush_soon();
        }
        self.waiting.wake();
        Ok(())
    }

    /// Takes another `min.insync.replicas`.
    pub(crate) fn set_min_in_sync(&self, min_in_sync: usize) {
        let mut role = self.role.write();
        if role.replicas.min_in_sync != min_in_sync {
            Arc::make_mut(&mut role).replicas.min_in_sync = min_in_sync;
        }
        drop(role);
        self.advance();
    }

    /// Serves nobody any more: the partition is deleted.
    pub(crate) fn retire(&self) {
        self.gone.store(true, Ordering::Release);
        self.waiting.wake();
    }

    /// Whether it is deleted.
    pub(crate) fn is_retired(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Serves nobody any more: its directory failed.
    pub(crate) fn take_offline(&self) {
        self.offline.store(true, Ordering::Release);
        self.waiting.wake();
    }

    /// Whether its directory failed.
    pub(crate) fn is_offline(&self) -> bool {
        self.offline.load(Ordering::Acquire)
    }

    /// Refuses what this node cannot serve as the leader of `epoch`; -1 asks for no epoch.
    pub(crate) fn check_leader(&self, epoch: i32) -> Result<Arc<Role>, ErrorCode> {
        let role = self.check_epoch(epoch)?;
        if role.leader == self.node {
            Ok(role)
        } else {
            Err(ErrorCode::NotLeaderOrFollower)
        }
    }

    /// Refuses what this node cannot serve as a replica in `epoch`; -1 asks for no epoch.
    pub(crate) fn check_epoch(&self, epoch: i32) -> Result<Arc<Role>, ErrorCode> {
        if self.is_offline() {
            return Err(ErrorCode::KafkaStorageError);
        }
        if self.gone.load(Ordering::Acquire) {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        let role = self.role();
        match epoch {
            epoch if epoch < 0 || epoch == role.leader_epoch.0 => Ok(role),
            epoch if epoch < role.leader_epoch.0 => Err(ErrorCode::FencedLeaderEpoch),
            _ => Err(ErrorCode::UnknownLeaderEpoch),
        }
    }

    /// Appends one batch as the leader. `all` demands enough in-sync replicas first (acks=all).
    ///
    /// The batch is checked without the log's lock. What is small and plain is checked and
    /// written right here, unless another append holds the log; all else goes to the blocking
    /// pool.
    pub(crate) async fn append(
        self: &Arc<Self>,
        records: Bytes,
        is_compressed: bool,
        origin: Origin,
        all: bool,
    ) -> Result<Appended, NotAppended> {
        let role = self.check_leader(-1)?;
        self.append_in_role(role, records, is_compressed, origin, all)
            .await
    }

    /// Appends one batch of a coordinator of this node, uncompressed or not, if it still leads in
    /// `epoch` and enough replicas are in sync.
    pub(crate) async fn append_records_of_ours(
        self: &Arc<Self>,
        epoch: LeaderEpoch,
        records: Bytes,
    ) -> Result<(), NotAppended> {
        let role = self.check_leader(epoch.0)?;
        self.append_in_role(role, records, false, Origin::Coordinator, true)
            .await
            .map(|_| ())
    }

    /// Does as `append_records_of_ours` if that needs no wait; else nothing.
    pub(crate) fn append_records_of_ours_now(
        &self,
        epoch: LeaderEpoch,
        records: &Bytes,
    ) -> Option<Result<(), NotAppended>> {
        let role = match self.check_leader(epoch.0) {
            Ok(role) => role,
            Err(code) => return Some(Err(code.into())),
        };
        if !role.replicas.suffice() {
            return Some(Err(ErrorCode::NotEnoughReplicas.into()));
        }
        if records.len() > INLINE_BYTES {
            return None;
        }
        let log = self.free_log()?;
        let appended = self
            .check(records, Origin::Coordinator)
            .and_then(|checked| self.append_locked(log, checked, Origin::Coordinator, &role));
        Some(appended.map(|_| ()))
    }

    /// The log, if it can be written to without waiting; the first append makes the folder durable.
    fn free_log(&self) -> Option<MutexGuard<'_, Log>> {
        self.log.try_lock().filter(|log| log.is_settled())
    }

    async fn append_in_role(
        self: &Arc<Self>,
        role: Arc<Role>,
        records: Bytes,
        is_compressed: bool,
        origin: Origin,
        all: bool,
    ) -> Result<Appended, NotAppended> {
        if all && !role.replicas.suffice() {
            return Err(ErrorCode::NotEnoughReplicas.into());
        }
        let limit = if is_compressed {
            INLINE_COMPRESSED_BYTES
        } else {
            INLINE_BYTES
        };
        if records.len() > limit {
            let this = self.clone();
            let work = move || this.append_waiting(this.check(&records, origin)?, origin, &role);
            return finished(tasks::blocking(work).await);
        }
        let checked = self.check(&records, origin)?;
        if let Some(log) = self.free_log() {
            return self.append_locked(log, checked, origin, &role);
        }
        let this = self.clone();
        let work = move || this.append_waiting(checked, origin, &role);
        finished(tasks::blocking(work).await)
    }

    fn check(&self, records: &Bytes, origin: Origin) -> Result<Checked, NotAppended> {
        let rules = Rules {
            config: &self.reader.config(),
            origin,
            at: &self.name,
            now_ms: clock::wall_ms(),
            log_start_offset: self.reader.log_start_offset(),
        };
        append::check(records, &rules).map_err(|no| NotAppended::Rejected(Box::new(no)))
    }

    /// Appends once the log is free; waits, so not on a runtime thread.
    fn append_waiting(
        &self,
        checked: Checked,
        origin: Origin,
        role: &Role,
    ) -> Result<Appended, NotAppended> {
        self.append_locked(self.log.lock(), checked, origin, role)
    }

    fn append_locked(
        &self,
        mut log: MutexGuard<'_, Log>,
        checked: Checked,
        origin: Origin,
        role: &Role,
    ) -> Result<Appended, NotAppended> {
        // The role may have changed while the lock was awaited.
        if self.role().leader_epoch != role.leader_epoch || self.gone.load(Ordering::Acquire) {
            return Err(ErrorCode::NotLeaderOrFollower.into());
        }
        let context = AppendContext {
            origin,
            leader_epoch: role.leader_epoch,
            now_ms: clock::wall_ms(),
            proof: Proof::NotNeeded,
        };
        let appended = log.append_checked(checked, context);
        drop(log);
        match appended {
            Ok(appended) => {
                self.note(&appended);
                Ok(appended)
            }
            Err(AppendError::Rejected(rejection)) => Err(NotAppended::Rejected(rejection)),
            Err(AppendError::Fault(fault)) => {
                self.fail(&fault.into());
                Err(ErrorCode::KafkaStorageError.into())
            }
            Err(AppendError::Misplaced { .. } | AppendError::Corrupt(_)) => {
                Err(ErrorCode::UnknownServerError.into())
            }
        }
    }

    /// Deletes the records before `offset`, -1 for all that are committed; says where the log
    /// begins now. Segments that lie wholly before it are removed
    /// after `delay`, so that who still reads them finds them.
    pub(crate) async fn delete_records(
        self: &Arc<Self>,
        offset: i64,
        delay: Duration,
    ) -> Result<i64, ErrorCode> {
        let this = self.clone();
        let work = tasks::blocking(move || this.delete_records_locked(offset, delay));
        work.await.unwrap_or(Err(ErrorCode::UnknownServerError))
    }

    fn delete_records_locked(&self, offset: i64, delay: Duration) -> Result<i64, ErrorCode> {
        let mut log = self.log.lock();
        self.check_leader(-1)?;
        let high_watermark = self.high_watermark();
        let offset = if offset == -1 { high_watermark } else { offset };
        if !(0..=high_watermark).contains(&offset) {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let doomed = log.advance_log_start(offset).and_then(|rose| {
            if rose {
                log.delete_below(offset).map(Some)
            } else {
                Ok(None)
            }
        });
        let start = log.log_start_offset();
        drop(log);
        match doomed {
            Ok(Some(doomed)) => {
                self.background.appended();
                if !doomed.is_empty() {
                    self.background
                        .remove(clock::now() + delay, Doomed::Files(doomed));
                }
                self.waiting.wake();
                Ok(start)
            }
            Ok(None) => Ok(start),
            Err(fault) => {
                self.fail(&fault.into());
                Err(ErrorCode::KafkaStorageError)
            }
        }
    }

    /// Reports trouble with the log. A deleted partition's is none: its files are on their way out.
    pub(super) fn fail(&self, fault: &Fault) {
        if !self.gone.load(Ordering::Acquire) {
            self.background.fail(&self.name, fault);
        }
    }

    fn note(&self, appended: &Appended) {
        if appended.flush != Wish::Sometime {
            self.wish_flush(appended);
        }
        if appended.is_duplicate {
            return;
        }
        self.background.appended();
        if appended.rolled {
            self.background.flush(&self.name);
        }
        self.advance();
    }

    /// Raises the high watermark as far as the replicas allow and wakes those who wait.
    pub(super) fn advance(&self) {
        let role = self.role();
        if role.leader != self.node {
            return;
        }
        let end = self.seen_up_to();
        let before = self.high_watermark.load(Ordering::Acquire);
        // No other replica fetches from this node yet, so none of them is heard of.
        let now = role
            .replicas
            .high_watermark(self.node, end, before, |_| before);
        if self.high_watermark.fetch_max(now, Ordering::AcqRel) < now {
            self.waiting.wake();
            self.stir();
        }
    }

    /// Finds records for a reader without waiting where memory suffices, else on the blocking
    /// pool.
    pub(crate) async fn locate(&self, want: Want) -> Result<Located, ErrorCode> {
        if let Some(located) = self.reader.locate_hot(&want) {
            return Ok(located);
        }
        let reader = self.reader.clone();
        self.on_disk(move || reader.locate(&want)).await
    }

    /// The aborted transactions that a reader of `slice` from `offset` on must skip: producer id
    /// and first offset.
    pub(crate) async fn aborted(
        &self,
        offset: i64,
        slice: &Slice,
    ) -> Result<Vec<crate::log::txn_index::AbortedTxn>, ErrorCode> {
        if let Some(none) = self.reader.aborted_hot(slice) {
            return Ok(none);
        }
        let (reader, slice) = (self.reader.clone(), slice.clone());
        self.on_disk(move || reader.aborted(offset, &slice)).await
    }

    /// Reads whole batches from `offset` on, at most so many bytes unless the first one is larger;
    /// nothing at the log's end. Waits for the disk.
    pub(crate) fn read_batches(&self, offset: i64, max_bytes: usize) -> Result<Bytes, Fault> {
        let want = Want {
            offset,
            upper: self.reader.log_end_offset(),
            max_bytes,
            min_one: true,
        };
        let Located::Slice(slice) = self.reader.locate(&want)? else {
            return Ok(Bytes::new());
        };
        let mut bytes = vec![0; slice.len];
        let read = slice.file.read_exact_at(&mut bytes, slice.position);
        read.map_err(|source| crate::log::fault::Fault::Disk {
            path: self.dir().path().to_owned(),
            source,
        })?;
        Ok(bytes.into())
    }

    /// Runs a look at the log's files on the blocking pool. Trouble with the disk takes the partition
    /// offline; what is damaged or was removed is missed by those alone who ask for it.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> Result<T, crate::log::fault::Fault> + Send + 'static,
    ) -> Result<T, ErrorCode> {
        match tasks::blocking(look).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(fault)) => {
                let fault = fault.into();
                self.miss(&fault);
                match Fault::is_damage(&fault) {
                    true => Err(ErrorCode::CorruptMessage),
                    false => Err(ErrorCode::KafkaStorageError),
                }
            }
            Err(_) => Err(ErrorCode::UnknownServerError),
        }
    }

    /// Reports what a reader could not be given.
    fn miss(&self, fault: &Fault) {
        match fault.is_not_found() {
            true => self.background.miss(&self.name, fault),
            false => self.fail(fault),
        }
    }

    /// Runs `work` on the log under its lock; it may wait for the disk, so not on the runtime.
    pub(crate) fn with_log<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        work(&mut self.log.lock())
    }
}

/// What an append on the blocking pool came to; its panic is a defect that is logged there.
fn finished(
    appended: Result<Result<Appended, NotAppended>, tokio::task::JoinError>,
) -> Result<Appended, NotAppended> {
    appended.unwrap_or_else(|_| Err(ErrorCode::UnknownServerError.into()))
}
