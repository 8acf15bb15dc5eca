//! All partitions of this node: it follows the metadata, keeps the log directories, and runs what
//! is due in the background.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tracing::{debug, error, info, warn};

use super::background::{Background, Doomed};
use super::config::{self, Told};
use super::partition::{Partition, Role};
use super::progress::Voice;
use crate::base::{DirectoryId, FastMap, NodeId, TopicId, TopicPartition};
use crate::config::options::Options;
use crate::log::dirs::{FailedDir, Loading, LogDirs, NotMade};
use crate::log::recover::Progress;
use crate::metadata::changes::Changes;
use crate::metadata::image::Image;
use crate::metadata::image::configs::ResourceType;
use crate::metadata::image::topics::{self, Topic};
use crate::metadata::names;
use crate::os::tasks::Tasks;
use crate::os::{clock, tasks};

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
    followed: Mutex<Option<Arc<Image>>>,
    /// Partitions whose logs could not be made.
    owed: Mutex<HashSet<(TopicId, i32)>>,
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
        }
    }

    /// The replica of a partition on this node.
    pub(crate) fn partition(&self, topic: TopicId, index: i32) -> Option<Arc<Partition>> {
        self.partitions.read().get(&(topic, index)).cloned()
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
        for failed in loaded.failed {
            report(&failed);
        }
        self.put_strays_aside(image);
        self.take_up_all(image, image.hosted_by(self.node).collect());
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
        let wanted = directory_of(registered, self.node);
        let is_lost = |id: &DirectoryId| {
            *id != DirectoryId::UNASSIGNED
                && *id != DirectoryId::MIGRATING
                && self.dirs.dir(*id).is_none()
        };
        if let Some(id) = wanted.filter(is_lost) {
            // An empty log elsewhere would hide what was acknowledged.
            error!(partition = %of, directory = %id, "the directory of a partition is not in use");
            return None;
        }
        let now_ms = clock::wall_ms();
        let (id, config) = (Some(topic.id), told.log.clone());
        let log = match names::is_internal(&topic.name) {
            true => self.dirs.create_later(&of, id, config, wanted, now_ms),
            false => self.dirs.create(&of, id, config, wanted, now_ms),
        };
        let key = (topic.id, index);
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
                None
            }
            Err(NotMade::NoDir) => {
                error!(partition = %of, "there is no log directory for a partition");
                None
            }
        }
    }

    fn remove_topic(&self, id: TopicId, name: &str) {
        let mut partitions = self.partitions.write();
        let gone: Vec<_> = partitions
            .extract_if(|(topic, _), _| *topic == id)
            .collect();
        drop(partitions);
        for ((_, index), partition) in gone {
            partition.retire();
            let of = TopicPartition::new(name, index);
            if let Err(fault) = partition.dir.set_cleaned_to(&of, None) {
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
    fn removal_time(&self) -> Instant {
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
    }

    async fn background_rounds(self: &Arc<Self>, tasks: &Tasks) {
        let mut rounds = Rounds::default();
        loop {
            let next = [
                rounds.high_watermarks,
                rounds.points,
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
                error!("no log directory is left, the node stops");
                tasks.stop();
                return;
            }
        }
    }

    /// Does what is due; whether any directory is still in use.
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
        for of in due.failed {
            self.fail(&of);
        }
        if due.again.is_some() {
            self.try_again();
        }
        let mut failed = Vec::new();
        if checkpoints.high_watermarks {
            failed.extend(self.checkpoint_high_watermarks());
        }
        if checkpoints.points {
            failed.extend(self.dirs.checkpoint());
            self.rest();
        }
        self.lose(failed);
        !self.dirs.dirs().is_empty()
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

    /// Takes the directory of a partition out of use.
    fn fail(&self, of: &TopicPartition) {
        let Some(handle) = self.dirs.log(of) else {
            return;
        };
        let fault = crate::log::fault::Fault::Malformed {
            path: handle.dir.path().to_owned(),
            why: "an operation on it did not succeed",
        };
        let failed = self.dirs.fail(&handle.dir, fault);
        self.lose(vec![failed]);
    }

    /// Partitions of directories that failed serve nobody.
    fn lose(&self, failed: Vec<FailedDir>) {
        for failed in &failed {
            report(failed);
            for partition in self.all() {
                if partition.dir.path() == failed.path {
                    partition.take_offline();
                }
            }
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
}

#[derive(Clone, Copy, Default)]
struct DueCheckpoints {
    high_watermarks: bool,
    points: bool,
}

impl DueCheckpoints {
    fn any(self) -> bool {
        self.high_watermarks || self.points
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
    }

    fn take(&mut self, now: Instant) -> DueCheckpoints {
        let ripe = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        DueCheckpoints {
            high_watermarks: ripe(&mut self.high_watermarks),
            points: ripe(&mut self.points),
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => clock::sleep_until(at).await,
        None => std::future::pending().await,
    }
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
