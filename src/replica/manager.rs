//! All partitions of this node: it follows the metadata, keeps the log directories, and runs what
//! is due in the background.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tracing::{debug, error, info, warn};

use super::background::{Background, Doomed, Failure};
use super::cleaner_stats;
use super::config::{self, Told};
use super::moving::Moves;
use super::partition::{Partition, Role};
use super::places::Places;
use super::progress::Voice;
use crate::base::{DirectoryId, FastMap, NodeId, TopicId, TopicPartition};
use crate::config::options::Options;
use crate::log::dir::{LogDir, PartitionFolder};
use crate::log::dirs::{FailedDir, Loading, LogDirs, LogHandle, NotMade};
use crate::log::fault::Fault;
use crate::log::recover::Progress;
use crate::metadata::changes::Changes;
use crate::metadata::image::Image;
use crate::metadata::image::configs::ResourceType;
use crate::metadata::image::topics::{self, Topic};
use crate::metadata::names;
use crate::os::disk::Disk;
use crate::os::tasks::Tasks;
use crate::os::{clock, tasks};
use crate::protocol::error::ErrorCode;

/// Partitions that one thread takes up before another helps, and how many threads there may be.
const PER_THREAD: usize = 8;
const THREADS: usize = 16;

/// When logs that could not be made are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A partition as the metadata has it: its topic, its index, its registration.
type Registered<'a> = (&'a Arc<Topic>, i32, &'a Arc<topics::Partition>);

/// The partitions of this node.
pub(crate) struct Manager {
    node: NodeId,
    pub(super) options: Arc<Options>,
    dirs: LogDirs,
    partitions: RwLock<FastMap<(TopicId, i32), Arc<Partition>>>,
    pub(super) background: Arc<Background>,
    /// The metadata as it was followed last; held while it is.
    pub(super) followed: Mutex<Option<Arc<Image>>>,
    /// Partitions whose logs could not be made.
    owed: Mutex<HashSet<(TopicId, i32)>>,
    /// Partitions whose directory is not in use.
    offline: RwLock<HashSet<(TopicId, i32)>>,
    /// Whether what was here at the start is taken up.
    is_loaded: AtomicBool,
    pub(super) cleaner_rounds: Mutex<cleaner_stats::Rounds>,
    pub(super) moves: Moves,
    pub(super) places: Places,
}

impl Manager {
    /// A manager of open directories, without partitions yet.
    pub(crate) fn new(node: NodeId, options: Arc<Options>, dirs: LogDirs) -> Self {
        Self {
            node,
            options,
            dirs,
            partitions: RwLock::default(),
            background: Arc::default(),
            followed: Mutex::default(),
            owed: Mutex::default(),
            offline: RwLock::default(),
            is_loaded: AtomicBool::new(false),
            cleaner_rounds: Mutex::default(),
            moves: Moves::default(),
            places: Places::default(),
        }
    }

    /// The replica of a partition on this node.
    pub(crate) fn partition(&self, topic: TopicId, index: i32) -> Option<Arc<Partition>> {
        self.partitions.read().get(&(topic, index)).cloned()
    }

    /// The same, or why there is none.
    pub(crate) fn find(&self, topic: TopicId, index: i32) -> Result<Arc<Partition>, ErrorCode> {
        if let Some(partition) = self.partition(topic, index) {
            return Ok(partition);
        }
        match self.offline.read().contains(&(topic, index)) {
            true => Err(ErrorCode::KafkaStorageError),
            false => Err(ErrorCode::NotLeaderOrFollower),
        }
    }

    /// All replicas on this node.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        self.partitions.read().values().cloned().collect()
    }

    /// The log directories.
    pub(crate) fn dirs(&self) -> &LogDirs {
        &self.dirs
    }

    /// Opens the logs that are here and takes up every partition that `image` gives this node.
    /// Logs that the cluster does not know are put aside. Waits for the disk.
    pub(crate) fn load(&self, image: &Arc<Image>) {
        let mut followed = self.followed.lock();
        *followed = Some(image.clone());
        let started = clock::now();
        let told = |of: &TopicPartition| config::of_topic(&self.options, image, &of.topic).log;
        let voice = Voice::new(started);
        let progress = |of: &TopicPartition, progress: Progress| {
            voice.tell(clock::now(), of, progress);
        };
        let threads = self.options.file().num_recovery_threads_per_data_dir;
        let loaded = self.dirs.load(&Loading {
            config_of: &told,
            threads_per_dir: usize::try_from(threads).unwrap_or(1),
            now_ms: clock::wall_ms(),
            progress: &progress,
        });
        for folder in loaded.deleted {
            self.background
                .remove(self.removal_time(), Doomed::Folder(folder));
        }
        self.lose(loaded.failed);
        for double in loaded.doubles {
            self.choose(image, double);
        }
        let on_the_way = self.open_futures(image, loaded.futures);
        self.put_strays_aside(image);
        self.take_up_all(image, image.hosted_by(self.node).collect());
        self.lose(self.dirs.correct_checkpoints());
        for (topic, of) in on_the_way {
            if let Some(partition) = self.partition(topic, of.partition)
                && let Some(copy) = self.dirs.future(&of)
            {
                self.go_on_moving(&partition, copy);
            }
        }
        self.is_loaded.store(true, Ordering::Release);
        let took = clock::now().duration_since(started);
        info!(logs = self.dirs.logs().len(), ?took, "the logs are open");
    }

    fn put_strays_aside(&self, image: &Image) {
        for (of, log) in self.dirs.logs() {
            let known = image.topics.by_name(&of.topic).filter(|topic| {
                log.topic_id.is_none_or(|id| id == topic.id)
                    && topic
                        .partitions
                        .get(&of.partition)
                        .is_some_and(|it| it.replicas.contains(&self.node))
            });
            if known.is_none() {
                warn!(partition = %of, "the cluster does not know this log, it is put aside");
                if let Err(fault) = self.dirs.set_aside(&of) {
                    error!(partition = %of, %fault, "a log cannot be put aside");
                }
            }
        }
    }

    /// A partition has logs in two directories: the node ended while one took the other's place, or
    /// a directory failed then. The one that knows more is used.
    fn choose(&self, image: &Image, double: LogHandle) {
        let of = double.log.lock().partition().clone();
        let Some(present) = self.dirs.log(&of) else {
            self.dirs.choose(&of, double);
            return;
        };
        let registered = registered(image, &of).and_then(|(_, it)| directory_of(it, self.node));
        let known = |one: &LogHandle| {
            let is_meant = Some(one.dir.id()) == registered;
            let of_topic = image.topics.by_name(&of.topic).map(|topic| topic.id);
            let is_of_topic = one.topic_id.is_none() || one.topic_id == of_topic;
            let reader = &one.reader;
            let epoch = reader.latest_epoch().map_or(-1, |epoch| epoch.0);
            (is_of_topic, epoch, reader.log_end_offset(), is_meant)
        };
        let (used, other) = match known(&double) > known(&present) {
            true => (double, present),
            false => (present, double),
        };
        warn!(
            partition = %of,
            used = %used.dir.path().display(),
            other = %other.dir.path().display(),
            "a partition has logs in two directories"
        );
        let is_done = Some(used.dir.id()) == registered;
        self.dirs.choose(&of, used);
        let mut log = other.log.lock();
        let gone = match is_done {
            true => other.dir.delete(&mut log).map(Some),
            false => other.dir.set_aside(&mut log).map(|()| None),
        };
        drop(log);
        match gone {
            Ok(Some(doomed)) => self
                .background
                .remove(self.removal_time(), Doomed::Folder(doomed)),
            Ok(None) => {}
            Err(fault) => self.lose_dir(&other.dir, fault),
        }
    }

    /// Opens the copies that were on their way when the last process ended; gives those whose
    /// original is here.
    fn open_futures(
        &self,
        image: &Image,
        folders: Vec<(PartitionFolder, Arc<LogDir>)>,
    ) -> Vec<(TopicId, TopicPartition)> {
        let mut on_the_way = Vec::new();
        for (folder, dir) in folders {
            let of = folder.partition.clone();
            let known = registered(image, &of).filter(|(topic, it)| {
                folder.topic_id.is_none_or(|id| id == topic.id) && it.replicas.contains(&self.node)
            });
            let original = self.dirs.log(&of);
            let is_there = original
                .as_ref()
                .is_some_and(|log| log.dir.id() == dir.id());
            let told = config::of_topic(&self.options, image, &of.topic).log;
            let opened = self.dirs.open_future(&folder, &dir, told, clock::wall_ms());
            let copy = match opened {
                Ok(copy) => copy,
                Err(fault @ Fault::Disk { .. }) => {
                    self.lose_dir(&dir, fault);
                    continue;
                }
                Err(fault) => {
                    warn!(partition = %of, %fault, "a copy of a log cannot be used");
                    self.background
                        .remove(self.removal_time(), Doomed::Folder(dir.doom(&folder)));
                    continue;
                }
            };
            let Some((topic, it)) = known.filter(|_| !is_there) else {
                warn!(partition = %of, "a copy of a log is of no use any more");
                self.remove_future(&of);
                continue;
            };
            if copy.topic_id.is_none()
                && let Err(fault) = dir.identify_log(&copy.log.lock(), topic.id)
            {
                self.lose_dir(&dir, fault);
                continue;
            }
            if original.is_some() {
                on_the_way.push((topic.id, of));
                continue;
            }
            let is_meant = directory_of(it, self.node) == Some(dir.id());
            if is_meant && !self.dirs.has_offline() && !self.dirs.has_damaged(&of) {
                warn!(partition = %of, "the log that was to move is gone, its copy is used");
                if let Some(Err(fault)) = self.dirs.adopt(&of) {
                    self.lose_dir(&dir, fault);
                }
            } else {
                // What it is a copy of may come back.
                self.dirs.forget_future(&of);
            }
        }
        on_the_way
    }

    fn remove_future(&self, of: &TopicPartition) {
        match self.dirs.delete_future(of) {
            Some((_, Ok(doomed))) => self
                .background
                .remove(self.removal_time(), Doomed::Folder(doomed)),
            Some((dir, Err(fault))) => self.lose_dir(&dir, fault),
            None => {}
        }
    }

    /// Follows a change of the metadata. Waits for the disk.
    pub(crate) fn apply(&self, image: &Arc<Image>, changes: &Changes) {
        let mut followed = self.followed.lock();
        *followed = Some(image.clone());
        for (id, name) in &changes.removed_topics {
            self.remove_topic(*id, name);
        }
        if !changes.removed_topics.is_empty() {
            let failed = self.dirs.sync();
            self.lose(failed);
            self.forget_checkpoints();
        }
        let changed = changes.partitions.iter().flat_map(|(id, indexes)| {
            let topic = image.topics.by_id(*id);
            topic.into_iter().flat_map(|topic| {
                let here = move |index: &i32| Some((topic, *index, topic.partitions.get(index)?));
                indexes.iter().filter_map(here)
            })
        });
        let here = changed.filter(|(_, _, it)| it.replicas.contains(&self.node));
        self.take_up_all(image, here.collect());
        self.apply_options(image, changes);
    }

    /// Tells partitions of options that changed: a topic's own, or those of all.
    fn apply_options(&self, image: &Image, changes: &Changes) {
        let of_all = changes
            .configs
            .iter()
            .any(|resource| resource.kind == ResourceType::Broker);
        let topics = changes
            .configs
            .iter()
            .filter(|one| one.kind == ResourceType::Topic);
        let topics: Vec<&str> = topics.map(|one| one.name.as_str()).collect();
        if !of_all && topics.is_empty() {
            return;
        }
        for partition in self.all() {
            let name = &*partition.name.topic;
            if !of_all && !topics.contains(&name) {
                continue;
            }
            let Told { log, min_in_sync } = config::of_topic(&self.options, image, name);
            partition.with_log(|open| open.set_config(log));
            partition.set_min_in_sync(min_in_sync);
            partition.stir();
        }
    }

    /// Takes up partitions, several at a time where there are many: a new one waits for the disk
    /// several times, and the disk serves several waits at once.
    fn take_up_all(&self, image: &Image, partitions: Vec<Registered<'_>>) {
        let threads = partitions.len().div_ceil(PER_THREAD).min(THREADS);
        let queue = Mutex::new(partitions.into_iter());
        let work = || {
            loop {
                let Some((topic, index, partition)) = queue.lock().next() else {
                    return;
                };
                self.take_up(image, topic, index, partition);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
    }

    fn take_up(&self, image: &Image, topic: &Topic, index: i32, registered: &topics::Partition) {
        let told = config::of_topic(&self.options, image, &topic.name);
        let partition = match self.partition(topic.id, index) {
            Some(partition) => partition,
            None => match self.add(topic, index, registered, &told) {
                Some(partition) => partition,
                None => return,
            },
        };
        partition.set_registered(directory_of(registered, self.node));
        self.follow_move(&partition);
        self.tell_where(&partition);
        let role = Role::of(registered, told.min_in_sync);
        debug!(partition = %partition.name, leader = %role.leader, epoch = %role.leader_epoch, "takes its role");
        if let Err(fault) = partition.take_role(role) {
            self.background.fail(&partition.name, &fault);
        }
        partition.stir();
    }

    fn add(
        &self,
        topic: &Topic,
        index: i32,
        registered: &topics::Partition,
        told: &Told,
    ) -> Option<Arc<Partition>> {
        let of = TopicPartition::new(topic.name.clone(), index);
        let key = (topic.id, index);
        let wanted = directory_of(registered, self.node);
        if self.dirs.is_damaged(&of, topic.id, wanted) {
            // Told of when it was opened. An empty log would hide what is left of it.
            self.offline.write().insert(key);
            return None;
        }
        if !self.may_be_made(&of, wanted) {
            if self.offline.write().insert(key) {
                // An empty log elsewhere would hide what was acknowledged.
                error!(partition = %of, directory = ?wanted, "the directory of a partition is not in use");
            }
            return None;
        }
        let wanted = self.moves.preferred(&of).or(wanted);
        let now_ms = clock::wall_ms();
        let (id, config) = (Some(topic.id), told.log.clone());
        let log = match names::is_internal(&topic.name) {
            true => self.dirs.create_later(&of, id, config, wanted, now_ms),
            false => self.dirs.create(&of, id, config, wanted, now_ms),
        };
        match log {
            Ok(log) => {
                let partition = Arc::new(Partition::new(
                    topic.id,
                    self.node,
                    of,
                    log,
                    self.background.clone(),
                ));
                self.partitions.write().insert(key, partition.clone());
                self.offline.write().remove(&key);
                if self.owed.lock().remove(&key) {
                    info!(partition = %partition.name, "the log could be made at last");
                }
                Some(partition)
            }
            Err(NotMade::Hindered(fault)) => {
                if self.owed.lock().insert(key) {
                    error!(partition = %of, %fault, "a log cannot be made, and is tried again and again");
                }
                self.background.try_again(clock::now() + TRY_AGAIN);
                None
            }
            Err(NotMade::Failed(failed)) => {
                self.lose(vec![failed]);
                self.background.try_again(clock::now());
                // Unless it has to be there, it is made in another directory.
                self.add(topic, index, registered, told)
            }
            Err(NotMade::NoDir) => {
                error!(partition = %of, "there is no log directory for a partition");
                None
            }
        }
    }

    /// Whether a partition's log is here or may be made: it is not in a directory that cannot be
    /// looked into.
    fn may_be_made(&self, of: &TopicPartition, wanted: Option<DirectoryId>) -> bool {
        let is_chosen =
            |id: &DirectoryId| *id != DirectoryId::UNASSIGNED && *id != DirectoryId::MIGRATING;
        let is_here = self.dirs.log(of).is_some();
        match wanted.filter(is_chosen) {
            Some(id) if self.dirs.dir(id).is_some() => true,
            Some(_) => is_here && !self.dirs.has_offline(),
            // At the start it may be anywhere, else it is new.
            None => is_here || !self.dirs.has_offline() || self.is_loaded.load(Ordering::Acquire),
        }
    }

    fn remove_topic(&self, id: TopicId, name: &str) {
        self.offline.write().retain(|(topic, _)| *topic != id);
        for folder in self.dirs.delete_damaged(name) {
            self.background
                .remove(self.removal_time(), Doomed::Folder(folder));
        }
        let mut partitions = self.partitions.write();
        let gone: Vec<_> = partitions
            .extract_if(|(topic, _), _| *topic == id)
            .collect();
        drop(partitions);
        for ((_, index), partition) in gone {
            partition.retire();
            let of = TopicPartition::new(name, index);
            self.give_up(&partition, partition.moving.lock().take());
            if let Err(fault) = partition.dir().set_cleaned_to(&of, None) {
                self.background.fail(&of, &fault.into());
            }
            match self.dirs.delete(&of) {
                Ok(Some(folder)) => self
                    .background
                    .remove(self.removal_time(), Doomed::Folder(folder)),
                Ok(None) => {}
                Err(fault) => self.background.fail(&of, &fault.into()),
            }
        }
    }

    /// Tries again to make the logs that could not be made.
    fn try_again(&self) {
        let followed = self.followed.lock();
        let Some(image) = &*followed else {
            return;
        };
        let owed = self.owed.lock().clone();
        let registered = |(id, index): &(TopicId, i32)| {
            let topic = image.topics.by_id(*id)?;
            let partition = topic.partitions.get(index)?;
            let is_here = partition.replicas.contains(&self.node);
            is_here.then_some((topic, *index, partition))
        };
        let open: Vec<_> = owed.iter().filter_map(registered).collect();
        self.owed.lock().retain(|key| registered(key).is_some());
        self.take_up_all(image, open);
    }

    /// Rewrites the checkpoints without what was deleted. They name partitions, not topic ids: a
    /// new topic of the same name must not find the old one's offsets after a crash.
    fn forget_checkpoints(&self) {
        let mut failed = self.dirs.checkpoint();
        failed.extend(self.checkpoint_high_watermarks());
        self.lose(failed);
    }

    /// When a folder that is deleted now goes: `log.segment.delete.delay.ms` from now.
    pub(super) fn removal_time(&self) -> Instant {
        let delay = self.options.current().config.log_segment_delete_delay_ms;
        clock::now() + Duration::from_millis(u64::try_from(delay).unwrap_or(0))
    }

    /// Runs what is due, until the group stops.
    pub(crate) fn run_background(self: &Arc<Self>, tasks: &Tasks) {
        let this = self.clone();
        let group = tasks.clone();
        tasks.spawn("replica-background", async move {
            this.background_rounds(&group).await
        });
        self.run_retention(tasks);
        self.run_cleaning(tasks);
        self.run_moves(tasks);
    }

    async fn background_rounds(self: &Arc<Self>, tasks: &Tasks) {
        let mut rounds = Rounds::default();
        loop {
            let next = [
                rounds.high_watermarks,
                rounds.points,
                rounds.starts,
                self.background.next_due(),
            ];
            let next = next.into_iter().flatten().min();
            tokio::select! {
                biased;
                () = tasks.stopped() => return,
                () = self.background.changed() => {}
                () = sleep_until(next) => {}
            }
            let now = clock::now();
            let due = rounds.take(now);
            if due.any() {
                // Appends from here on are for the next round.
                self.background.clean();
            } else if self.background.is_dirty() {
                rounds.arm(now, &self.options);
            }
            if !due.any() && !self.background.has_due(now) {
                continue;
            }
            let this = self.clone();
            let work = tasks::blocking(move || this.round(now, due));
            if !work.await.unwrap_or(false) {
                tasks.stop();
                return;
            }
        }
    }

    /// Whether the node can go on: with a directory, and with that of the metadata.
    pub(crate) fn can_go_on(&self) -> bool {
        let dirs = self.dirs.dirs();
        if dirs.is_empty() {
            error!("all log directories have failed, the node stops");
            return false;
        }
        let metadata = self.options.file().metadata_dir();
        let metadata = metadata.map(|path| Disk.absolute(path.as_ref()));
        let is_metadata = |path: &PathBuf| Some(path) == metadata.as_ref();
        let was_here = self.dirs.paths().iter().any(is_metadata);
        if was_here && !dirs.iter().any(|dir| is_metadata(&dir.path().to_owned())) {
            error!(dir = ?metadata, "the directory of the metadata log has failed, the node stops");
            return false;
        }
        true
    }

    /// Does what is due; whether the node can go on.
    fn round(&self, now: Instant, checkpoints: DueCheckpoints) -> bool {
        let due = self.background.take(now);
        for of in due.flushes {
            self.flush(&of);
        }
        for (_, doomed) in due.doomed {
            if let Err(fault) = doomed.remove() {
                warn!(%fault, "deleted files cannot be removed");
            }
        }
        for (of, failure) in due.failed {
            self.fail(&of, failure);
        }
        if due.again.is_some() {
            self.try_again();
        }
        let mut failed = Vec::new();
        if checkpoints.high_watermarks {
            failed.extend(self.checkpoint_high_watermarks());
        }
        if checkpoints.points {
            self.all().iter().for_each(|one| one.anchor_if_due());
            failed.extend(self.dirs.checkpoint_points());
            self.rest();
        }
        if checkpoints.starts {
            failed.extend(self.dirs.checkpoint_starts());
        }
        self.lose(failed);
        self.can_go_on()
    }

    /// Forgets producers that were silent for long, and closes files that nobody writes to.
    fn rest(&self) {
        let now_ms = clock::wall_ms();
        for partition in self.all() {
            partition.with_log(|log| {
                log.expire_producers(now_ms);
                log.rest();
            });
        }
    }

    fn flush(&self, of: &TopicPartition) {
        let topic_id = self.dirs.log(of).and_then(|log| log.topic_id);
        let found = topic_id.and_then(|id| self.partition(id, of.partition));
        if let Some(partition) = found {
            // Trouble is reported where it is met.
            let _ = partition.flush_now();
        }
    }

    fn checkpoint_high_watermarks(&self) -> Vec<FailedDir> {
        let known: HashMap<TopicPartition, i64> = self
            .all()
            .into_iter()
            .map(|partition| (partition.name.clone(), partition.high_watermark()))
            .collect();
        self.dirs
            .checkpoint_high_watermarks(&|of| known.get(of).copied())
    }

    /// Takes the directory out of use in which an operation on a partition failed.
    fn fail(&self, of: &TopicPartition, Failure { path, is_gone }: Failure) {
        let around = self.dirs.around(&path);
        let dir = around.or_else(|| self.dirs.log(of).map(|log| log.dir));
        if let Some(dir) = dir {
            if is_gone && dir.is_there() {
                self.lose_log(of);
                return;
            }
            let fault = Fault::Malformed {
                path: dir.path().to_owned(),
                why: "an operation on it did not succeed",
            };
            self.lose_dir(&dir, fault);
        }
    }

    /// Somebody took files of a log away; its directory is as good as before.
    fn lose_log(&self, of: &TopicPartition) {
        let lost = self.all().into_iter().find(|one| one.name == *of);
        if let Some(partition) = lost
            && self.dirs.give_up(of)
        {
            partition.take_offline();
            self.abandon(&partition);
        }
    }

    /// Takes a directory out of use.
    pub(super) fn lose_dir(&self, dir: &Arc<LogDir>, fault: Fault) {
        let failed = self.dirs.fail(dir, fault);
        self.lose(vec![failed]);
        // Whether the node can go on without is looked at there.
        self.background.try_again(clock::now());
    }

    /// Partitions of directories that failed serve nobody, and nothing moves there any more.
    fn lose(&self, failed: Vec<FailedDir>) {
        for failed in &failed {
            report(failed);
            for partition in self.all() {
                let is_lost = partition.dir().path() == failed.path;
                if is_lost {
                    partition.take_offline();
                }
                let moves_there = partition
                    .copy()
                    .is_some_and(|(_, to)| to.path() == failed.path);
                if is_lost || moves_there {
                    self.abandon(&partition);
                    self.tell_where(&partition);
                }
            }
        }
        if !failed.is_empty() {
            self.places.wake.notify_one();
        }
    }

    /// Closes every log in order. Nothing may be appended afterwards. Waits for the disk.
    pub(crate) fn close(&self, broker_epoch: i64) {
        self.lose(self.checkpoint_high_watermarks());
        let failed = self.dirs.close(broker_epoch);
        failed.iter().for_each(report);
    }
}

/// When checkpoints are due; never while nothing is appended.
#[derive(Default)]
struct Rounds {
    high_watermarks: Option<Instant>,
    points: Option<Instant>,
    starts: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct DueCheckpoints {
    high_watermarks: bool,
    points: bool,
    starts: bool,
}

impl DueCheckpoints {
    fn any(self) -> bool {
        self.high_watermarks || self.points || self.starts
    }
}

impl Rounds {
    fn arm(&mut self, now: Instant, options: &Options) {
        let file = options.file();
        let after = |ms: i64| now + Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let watermarks = after(file.replica_high_watermark_checkpoint_interval_ms);
        let points = after(file.log_flush_offset_checkpoint_interval_ms.into());
        self.high_watermarks.get_or_insert(watermarks);
        self.points.get_or_insert(points);
        let starts = after(file.log_flush_start_offset_checkpoint_interval_ms.into());
        self.starts.get_or_insert(starts);
    }

    fn take(&mut self, now: Instant) -> DueCheckpoints {
        let ripe = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        DueCheckpoints {
            high_watermarks: ripe(&mut self.high_watermarks),
            points: ripe(&mut self.points),
            starts: ripe(&mut self.starts),
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => clock::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A partition by its name, as the metadata has it.
fn registered<'a>(
    image: &'a Image,
    of: &TopicPartition,
) -> Option<(&'a Arc<Topic>, &'a Arc<topics::Partition>)> {
    let topic = image.topics.by_name(&of.topic)?;
    Some((topic, topic.partitions.get(&of.partition)?))
}

/// The directory that the metadata gives a replica, if it says.
fn directory_of(registered: &topics::Partition, node: NodeId) -> Option<DirectoryId> {
    let at = registered.replicas.iter().position(|id| *id == node)?;
    registered.directories.get(at).copied()
}

fn report(failed: &FailedDir) {
    let FailedDir { path, fault } = failed;
    error!(dir = %path.display(), %fault, "the log directory goes offline");
}
