//! Replicas that move from one log directory to another: asked for, copied in the background, put in
//! the place of what they were copied from (ReplicaManager.alterReplicaLogDirs, KIP-113, KIP-858).
//!
//! ```text
//!           caught up              the metadata says so          caught up again
//! Copying ─────────────> Told ────────────────────────> Accepted ───────────────> done
//!    └────────────────────┴── another request ─────────────┴─> given up, the copy is removed
//! ```
//!
//! The metadata names the new directory before the log is there: should the node end between, the
//! log is still found where it was, and the copy goes on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::agenda::Key;
use super::background::Doomed;
use super::manager::Manager;
use super::pace::Pace;
use super::partition::Partition;
use crate::base::{DirectoryId, TopicPartition};
use crate::log::dir::LogDir;
use crate::log::dirs::{LogHandle, Named};
use crate::log::fault::Fault;
use crate::log::layout;
use crate::log::read::LogReader;
use crate::log::relocate::NotCopied;
use crate::metadata::image::Image;
use crate::os::clock;
use crate::os::tasks::{self, Tasks};
use crate::protocol::error::ErrorCode;

/// Bytes copied at once, or one batch that is larger.
const CHUNK: usize = 1 << 20;
/// What is left when appends are held up for the rest.
const REST: u64 = 1 << 20;
/// How often what is left may be so little before appends are held up.
const ROUNDS: usize = 4;
/// A copy is made durable piece by piece: a flush of all at once would hold up everybody's.
const FLUSH: u64 = 64 << 20;
/// When a copy that found no room is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// Directories that are remembered for partitions that are not here yet.
const PREFERRED: usize = 10_000;

/// A replica on its way.
#[derive(Debug)]
pub(crate) struct Move {
    copy: LogHandle,
    stage: Mutex<Stage>,
    is_over: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Copying,
    Told,
    Accepted,
}

impl Move {
    fn new(copy: LogHandle) -> Arc<Self> {
        Arc::new(Self {
            copy,
            stage: Mutex::new(Stage::Copying),
            is_over: AtomicBool::new(false),
        })
    }

    fn goes_to(&self, dir: &LogDir) -> bool {
        self.copy.dir.id() == dir.id()
    }

    fn stage(&self) -> Stage {
        *self.stage.lock()
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Partition {
    /// Whether its log is copied to another directory.
    pub(crate) fn is_moving(&self) -> bool {
        self.moving.lock().is_some()
    }

    /// The copy that is made of its log, and where.
    pub(crate) fn copy(&self) -> Option<(LogReader, Arc<LogDir>)> {
        let moving = self.moving.lock();
        let copy = &moving.as_ref()?.copy;
        Some((copy.reader.clone(), copy.dir.clone()))
    }

    /// Where the metadata shall say that its log is.
    pub(super) fn belongs_in(&self) -> DirectoryId {
        let moving = self.moving.lock();
        match moving.as_ref() {
            Some(way) if way.stage() != Stage::Copying => way.copy.dir.id(),
            Some(_) | None => self.dir().id(),
        }
    }
}

/// Moves that can go on.
#[derive(Debug, Default)]
pub(super) struct Moves {
    ready: Mutex<VecDeque<Key>>,
    wake: Notify,
    /// Where partitions shall be made that are not here yet.
    preferred: Mutex<HashMap<TopicPartition, DirectoryId>>,
}

impl Moves {
    fn add(&self, key: Key) {
        let mut ready = self.ready.lock();
        if !ready.contains(&key) {
            ready.push_back(key);
        }
        self.wake.notify_one();
    }

    async fn next(&self) -> Key {
        loop {
            if let Some(key) = self.take() {
                return key;
            }
            self.wake.notified().await;
        }
    }

    fn take(&self) -> Option<Key> {
        let mut ready = self.ready.lock();
        let key = ready.pop_front();
        if !ready.is_empty() {
            self.wake.notify_one();
        }
        key
    }

    fn prefer(&self, of: &TopicPartition, dir: DirectoryId) {
        let mut preferred = self.preferred.lock();
        if preferred.len() < PREFERRED || preferred.contains_key(of) {
            preferred.insert(of.clone(), dir);
        }
    }

    /// Where a partition shall be made, if somebody has said so.
    pub(super) fn preferred(&self, of: &TopicPartition) -> Option<DirectoryId> {
        self.preferred.lock().remove(of)
    }
}

/// How far a worker came with a move.
pub(super) enum Came {
    /// It waits for somebody, or is over.
    Far,
    /// It goes on after a while.
    Short,
}

impl Manager {
    /// Has replicas move to the directories at these paths, each as if it were asked for alone.
    /// Waits for the disk.
    pub(crate) fn alter_dirs(&self, wishes: &[(TopicPartition, String)]) -> Vec<ErrorCode> {
        let followed = self.followed.lock();
        let image = followed.clone().unwrap_or_default();
        let alter = |(of, path): &(TopicPartition, String)| {
            let altered = self.alter_dir(&image, of, path);
            altered.err().unwrap_or(ErrorCode::None)
        };
        wishes.iter().map(alter).collect()
    }

    fn alter_dir(&self, image: &Image, of: &TopicPartition, path: &str) -> Result<(), ErrorCode> {
        if !layout::has_future_folder(of) {
            return Err(ErrorCode::InvalidTopicException);
        }
        let dir = match self.dirs().named(path) {
            Named::Online(dir) => dir,
            Named::Offline => return Err(ErrorCode::KafkaStorageError),
            Named::Unknown => return Err(ErrorCode::LogDirNotFound),
        };
        let topic = image.topics.by_name(&of.topic);
        let found = topic.map(|topic| self.find(topic.id, of.partition));
        match found {
            Some(Ok(partition)) if partition.is_offline() => Err(ErrorCode::KafkaStorageError),
            Some(Ok(partition)) => self.move_to(&partition, &dir),
            Some(Err(ErrorCode::KafkaStorageError)) => Err(ErrorCode::KafkaStorageError),
            Some(Err(_)) | None => {
                self.moves.prefer(of, dir.id());
                let is_known = topic.is_some_and(|it| it.partitions.contains_key(&of.partition));
                Err(match is_known {
                    true => ErrorCode::ReplicaNotAvailable,
                    false => ErrorCode::UnknownTopicOrPartition,
                })
            }
        }
    }

    fn move_to(&self, partition: &Arc<Partition>, dir: &Arc<LogDir>) -> Result<(), ErrorCode> {
        let mut moving = partition.moving.lock();
        if moving.as_ref().is_some_and(|way| !way.goes_to(dir)) {
            self.give_up(partition, moving.take());
        }
        if moving.is_some() || partition.dir().id() == dir.id() {
            drop(moving);
            self.tell_where(partition);
            return Ok(());
        }
        if self.dirs().has_offline() {
            // There might be a copy already, where it cannot be seen.
            return Err(ErrorCode::KafkaStorageError);
        }
        let begun = self.begin(partition, dir, &mut moving);
        drop(moving);
        self.tell_where(partition);
        begun.map_err(|fault| {
            warn!(partition = %partition.name, %fault, "a replica cannot move");
            if !fault.spares_directory() {
                self.lose_dir(dir, fault);
            }
            ErrorCode::KafkaStorageError
        })
    }

    fn begin(
        &self,
        partition: &Arc<Partition>,
        dir: &Arc<LogDir>,
        moving: &mut MutexGuard<'_, Option<Arc<Move>>>,
    ) -> Result<(), Fault> {
        let of = &partition.name;
        let now_ms = clock::wall_ms();
        let mut log = partition.log.lock();
        if log.is_unmade() {
            self.dirs().move_unmade(of, &mut log, dir, now_ms)?;
            partition.set_dir(dir.clone());
            return Ok(());
        }
        let id = Some(partition.topic_id);
        let copy = self
            .dirs()
            .create_future(of, dir, id, log.config(), now_ms)?;
        log.tell_producers(&mut copy.log.lock());
        drop(log);
        info!(partition = %of, to = %dir.path().display(), "a replica moves to another directory");
        **moving = Some(Move::new(copy));
        self.moves.add(partition.key());
        Ok(())
    }

    /// Goes on with a copy that the last process left.
    pub(super) fn go_on_moving(&self, partition: &Arc<Partition>, copy: LogHandle) {
        let to = copy.dir.path().display().to_string();
        info!(partition = %partition.name, to, "a replica goes on moving to another directory");
        partition.with_log(|log| log.tell_producers(&mut copy.log.lock()));
        *partition.moving.lock() = Some(Move::new(copy));
        self.moves.add(partition.key());
    }

    /// Ends a move and has its copy removed.
    pub(super) fn give_up(&self, partition: &Partition, way: Option<Arc<Move>>) {
        let Some(way) = way else {
            return;
        };
        way.end();
        info!(
            partition = %partition.name,
            to = %way.copy.dir.path().display(),
            "a replica does not move after all"
        );
        match self.dirs().delete_future(&partition.name) {
            Some((_, Ok(doomed))) => self
                .background
                .remove(self.removal_time(), Doomed::Folder(doomed)),
            Some((_, Err(fault))) => self.background.fail(&partition.name, &fault.into()),
            None => {}
        }
        partition.stir();
    }

    /// Ends a move whose directories failed, one or the other; the copy stays where it is.
    pub(super) fn abandon(&self, partition: &Partition) {
        if let Some(way) = partition.moving.lock().take() {
            way.end();
            self.dirs().forget_future(&partition.name);
            warn!(partition = %partition.name, "a replica does not move any more");
        }
    }

    /// The metadata names a directory for a replica.
    pub(super) fn follow_move(&self, partition: &Partition) {
        let registered = partition.registered();
        let moving = partition.moving.lock();
        let Some(way) = moving.as_ref() else {
            return;
        };
        let mut stage = way.stage.lock();
        if *stage == Stage::Told && registered == Some(way.copy.dir.id()) {
            *stage = Stage::Accepted;
            self.moves.add(partition.key());
        }
    }

    /// Copies what is to be moved, until the group stops: several replicas at once, as many as
    /// `num.replica.alter.log.dirs.threads` says.
    pub(super) fn run_moves(self: &Arc<Self>, tasks: &Tasks) {
        let threads = self.options.file().num_replica_alter_log_dirs_threads;
        let threads = threads.and_then(|threads| usize::try_from(threads).ok());
        let pace = Arc::new(Pace::new());
        for _ in 0..threads.unwrap_or_else(|| self.dirs().paths().len()) {
            let (this, group, pace) = (self.clone(), tasks.clone(), pace.clone());
            tasks.spawn("replica-mover", async move {
                this.moves_in_turn(&group, &pace).await;
            });
        }
    }

    async fn moves_in_turn(self: &Arc<Self>, tasks: &Tasks, pace: &Arc<Pace>) {
        loop {
            let key = tokio::select! {
                biased;
                () = tasks.stopped() => return,
                key = self.moves.next() => key,
            };
            let (this, group, pace) = (self.clone(), tasks.clone(), pace.clone());
            // Waited for also when the node stops: logs are closed only when nobody copies them.
            let came = tasks::blocking(move || this.go_on(key, &group, &pace)).await;
            match came {
                Ok(Came::Far) => {}
                Ok(Came::Short) => tokio::select! {
                    biased;
                    () = tasks.stopped() => return,
                    () = clock::sleep(TRY_AGAIN) => self.moves.add(key),
                },
                Err(_) => error!("a replica's move panicked, this is a defect of the broker"),
            }
        }
    }

    /// Goes on with a move as far as it goes.
    pub(super) fn go_on(&self, key: Key, tasks: &Tasks, pace: &Pace) -> Came {
        let Some(partition) = self.partition(key.0, key.1) else {
            return Came::Far;
        };
        let Some(way) = partition.moving.lock().clone() else {
            return Came::Far;
        };
        let is_over = || way.is_over() || partition.is_retired() || partition.is_offline();
        let work = Work {
            partition: &partition,
            way: &way,
            is_over: &|| tasks.is_stopping() || is_over(),
        };
        let copied = work.copy(&|bytes| {
            let rate = self.options.current().move_bytes_per_second();
            pace.hold_up(bytes, rate_of(rate), tasks, is_over);
        });
        let came = copied.and_then(|came| match came {
            true if self.is_accepted(&partition, &way) => self.finish(&partition, &way),
            true | false => Ok(()),
        });
        match came {
            Ok(()) => Came::Far,
            // Whoever ended it took the files along.
            Err(_) if is_over() => Came::Far,
            Err(trouble) => self.not_copied(&partition, &way, trouble),
        }
    }

    /// Whether the metadata names the new directory already; it is told if not.
    fn is_accepted(&self, partition: &Arc<Partition>, way: &Arc<Move>) -> bool {
        let to = way.copy.dir.id();
        let is_registered = partition.registered() == Some(to);
        let mut stage = way.stage.lock();
        let tells = *stage == Stage::Copying && !is_registered;
        *stage = match *stage {
            Stage::Copying | Stage::Told if is_registered => Stage::Accepted,
            Stage::Copying | Stage::Told => Stage::Told,
            Stage::Accepted => Stage::Accepted,
        };
        let is_accepted = *stage == Stage::Accepted;
        drop(stage);
        if tells {
            self.tell_where(partition);
        }
        is_accepted
    }

    /// Copies the rest while nothing can be appended, and puts the copy in the log's place.
    fn finish(&self, partition: &Arc<Partition>, way: &Arc<Move>) -> Result<(), NotCopied> {
        let of = &partition.name;
        // The log's start must not move back, should the node end just after.
        self.dirs().checkpoint_one(&way.copy.dir)?;
        let mut moving = partition.moving.lock();
        let is_ours = moving.as_ref().is_some_and(|one| Arc::ptr_eq(one, way));
        if !is_ours || partition.is_retired() {
            return Ok(());
        }
        let mut log = partition.log.lock();
        let now_ms = clock::wall_ms();
        let end = log.log_end_offset();
        while way.copy.reader.log_end_offset() != end {
            let mut copy = way.copy.log.lock();
            copy.copy_from(partition.reader(), CHUNK, now_ms)?;
        }
        let Some(promoted) = self.dirs().promote(of, &mut log) else {
            return Ok(());
        };
        let promoted = promoted?;
        partition.set_dir(promoted.dir.clone());
        way.end();
        *moving = None;
        drop(log);
        drop(moving);
        let (before, doomed) = promoted.before;
        info!(
            partition = %of,
            from = %before.path().display(),
            to = %promoted.dir.path().display(),
            "a replica has moved to another directory"
        );
        for dir in [&promoted.dir, &before] {
            if let Err(fault) = self.dirs().checkpoint_one(dir) {
                self.lose_dir(dir, fault);
            }
        }
        match doomed {
            Ok(doomed) => self
                .background
                .remove(self.removal_time(), Doomed::Folder(doomed)),
            Err(fault) => self.lose_dir(&before, fault),
        }
        self.tell_where(partition);
        partition.stir();
        Ok(())
    }

    fn not_copied(&self, partition: &Partition, way: &Move, trouble: NotCopied) -> Came {
        match trouble {
            NotCopied::To(fault) | NotCopied::From(fault)
                if fault.is_full() || fault.is_passing() =>
            {
                warn!(partition = %partition.name, %fault, "a replica's move waits");
                Came::Short
            }
            NotCopied::From(fault @ Fault::Disk { .. }) => {
                partition.fail(&fault.into());
                Came::Far
            }
            NotCopied::From(fault) => {
                error!(partition = %partition.name, %fault, "a replica cannot move any further");
                Came::Far
            }
            NotCopied::To(fault) => {
                self.lose_dir(&way.copy.dir, fault);
                Came::Far
            }
        }
    }
}

/// One worker's share of a move.
struct Work<'a> {
    partition: &'a Partition,
    way: &'a Move,
    is_over: &'a dyn Fn() -> bool,
}

impl Work<'_> {
    /// Copies until little is left, all of it durable; whether it came so far.
    fn copy(&self, pay: &dyn Fn(u64)) -> Result<bool, NotCopied> {
        let (log, copy) = (self.partition.reader(), &self.way.copy);
        let (mut unflushed, mut rounds) = (0, 0);
        while !(self.is_over)() {
            let now_ms = clock::wall_ms();
            let copied = copy.log.lock().copy_from(log, CHUNK, now_ms)?;
            pay(copied);
            unflushed += copied;
            let here = copy.reader.log_end_offset();
            let end = log.log_end_offset();
            let follows = here >= log.log_start_offset() && here <= end;
            let is_near = follows && log.bytes_between(here, end) <= REST;
            rounds = if is_near { rounds + 1 } else { 0 };
            // One that is written to all the time is never quite reached.
            let is_close = is_near && (here == end || rounds == ROUNDS);
            if is_close || unflushed >= FLUSH {
                unflushed = 0;
                flush(copy)?;
            }
            if is_close {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn flush(copy: &LogHandle) -> Result<(), Fault> {
    let flush = copy.log.lock().begin_flush()?;
    flush.sync()?;
    copy.log.lock().end_flush(&flush)
}

#[expect(clippy::cast_precision_loss, reason = "a pace needs no last bits")]
fn rate_of(bytes_per_second: i64) -> f64 {
    bytes_per_second as f64
}
