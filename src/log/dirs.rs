//! All log directories of a node and the logs in them (LogManager).
//!
//! A directory that fails takes its logs with it and leaves the others alone. Which partitions
//! should be here is the cluster's business and the caller's.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tracing::warn;

use super::config::LogConfig;
use super::damaged::Damaged;
use super::dir::{DoomedFolder, Held, Identity, LogDir, PartitionFolder};
use super::fault::Fault;
use super::files::FileCache;
use super::log::Log;
use super::read::LogReader;
use super::recover::Progress;
use crate::base::{DirectoryId, TopicId, TopicPartition};
use crate::os::disk::Disk;

/// The directories that work, and their logs.
#[derive(Debug)]
pub(crate) struct LogDirs {
    /// All that were named, in use or not.
    paths: Vec<PathBuf>,
    dirs: RwLock<Vec<Arc<LogDir>>>,
    pub(super) logs: RwLock<HashMap<TopicPartition, LogHandle>>,
    /// Replicas on their way to another directory, apart from those that are served.
    pub(super) futures: RwLock<HashMap<TopicPartition, LogHandle>>,
    /// Logs that could not be opened for what they hold.
    pub(super) damaged: RwLock<HashMap<TopicPartition, Damaged>>,
    /// Directories that failed since they were opened.
    failed: RwLock<Vec<DirectoryId>>,
}

/// A directory by the path that an operator gives.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    Online(Arc<LogDir>),
    Offline,
    /// It is none of this node's.
    Unknown,
}

/// A log with its lock, and what can be done without it.
#[derive(Clone, Debug)]
pub(crate) struct LogHandle {
    /// Held for a few calls, never across an await.
    pub(crate) log: Arc<Mutex<Log>>,
    pub(crate) reader: LogReader,
    pub(crate) dir: Arc<LogDir>,
    /// `None` when its folder does not say.
    pub(crate) topic_id: Option<TopicId>,
}

/// Trouble that took a directory out of use.
#[derive(Debug)]
pub(crate) struct FailedDir {
    pub(crate) path: PathBuf,
    pub(crate) fault: Fault,
}

/// Why a log was not made.
#[derive(Debug)]
pub(crate) enum NotMade {
    /// Something stood in its way that may go, and that says nothing of its directory.
    Hindered(Fault),
    /// Its directory failed.
    Failed(FailedDir),
    /// There is no directory.
    NoDir,
}

/// How logs are loaded at start.
pub(crate) struct Loading<'a> {
    pub(crate) config_of: &'a (dyn Fn(&TopicPartition) -> Arc<LogConfig> + Sync),
    pub(crate) threads_per_dir: usize,
    pub(crate) now_ms: i64,
    /// Told how far a recovery is, from several threads.
    pub(crate) progress: &'a (dyn Fn(&TopicPartition, Progress) + Sync),
}

/// What loading found besides the logs.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Folders deleted before; their waiting begins anew.
    pub(crate) deleted: Vec<DoomedFolder>,
    /// Replicas on their way here when the last process ended.
    pub(crate) futures: Vec<(PartitionFolder, Arc<LogDir>)>,
    /// Logs of partitions that have another one in another directory, which is in use.
    pub(crate) doubles: Vec<LogHandle>,
    pub(crate) failed: Vec<FailedDir>,
}

impl LogDirs {
    /// Takes the directories into use that can be; at most `open_files_max` closed segments stay
    /// open.
    pub(crate) fn open(
        disk: Disk,
        paths: &[PathBuf],
        identity: &Identity,
        open_files_max: usize,
    ) -> (Self, Vec<FailedDir>) {
        let cache = FileCache::new(disk, open_files_max);
        let paths: Vec<PathBuf> = paths.iter().map(|path| disk.absolute(path)).collect();
        let mut dirs: Vec<Arc<LogDir>> = Vec::new();
        let mut failed = Vec::new();
        for path in &paths {
            let opened = match given_twice(disk, path, &dirs, &paths) {
                Some(fault) => Err(fault),
                None => LogDir::open(&cache, path, identity).and_then(|dir| unlike(dir, &dirs)),
            };
            match opened {
                Ok(dir) => dirs.push(Arc::new(dir)),
                Err(fault) => failed.push(FailedDir {
                    path: path.clone(),
                    fault,
                }),
            }
        }
        let dirs = Self {
            paths,
            dirs: RwLock::new(dirs),
            logs: RwLock::default(),
            futures: RwLock::default(),
            damaged: RwLock::default(),
            failed: RwLock::default(),
        };
        (dirs, failed)
    }

    /// Refuses another directory that has the id of one of these.
    pub(crate) fn check_unlike(&self, held: &Held) -> Result<(), Fault> {
        match self.dir(held.id()) {
            Some(other) => Err(alike(held.id(), other.path(), held.path())),
            None => Ok(()),
        }
    }

    /// All directories that were named, in their order, in use or not.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The directory at a path, which must be written as the node knows it.
    pub(crate) fn named(&self, path: &str) -> Named {
        let is_it = |one: &Path| one.as_os_str() == path;
        if !self.paths.iter().any(|one| is_it(one)) {
            return Named::Unknown;
        }
        let mut online = self.dirs().into_iter();
        let online = online.find(|dir| is_it(dir.path()));
        online.map_or(Named::Offline, Named::Online)
    }

    /// The directory in use that a file lies in.
    pub(crate) fn around(&self, path: &Path) -> Option<Arc<LogDir>> {
        let around = self.dirs().into_iter();
        around
            .filter(|dir| path.starts_with(dir.path()))
            .max_by_key(|dir| dir.path().as_os_str().len())
    }

    /// Whether a directory that was named is not in use.
    pub(crate) fn has_offline(&self) -> bool {
        self.dirs.read().len() < self.paths.len()
    }

    /// The directories that failed since they were opened.
    pub(crate) fn failed(&self) -> Vec<DirectoryId> {
        self.failed.read().clone()
    }

    /// Opens every log of every directory, several at a time.
    pub(crate) fn load(&self, loading: &Loading<'_>) -> Loaded {
        let mut loaded = Loaded::default();
        for dir in self.dirs() {
            let folders = match dir.folders() {
                Ok(folders) => folders,
                Err(fault) => {
                    loaded.failed.push(self.fail(&dir, fault));
                    continue;
                }
            };
            loaded.deleted.extend(folders.deleted);
            for (folder, fault) in folders.damaged {
                self.note_damaged(&dir, &folder, &fault);
            }
            let (futures, live): (Vec<_>, VecDeque<_>) = split(folders.partitions);
            let futures = futures.into_iter().map(|one| (one, Arc::clone(&dir)));
            loaded.futures.extend(futures);
            match self.load_dir(&dir, live, loading) {
                Ok(doubles) => loaded.doubles.extend(doubles),
                Err(fault) => loaded.failed.push(self.fail(&dir, fault)),
            }
        }
        loaded
    }

    fn load_dir(
        &self,
        dir: &Arc<LogDir>,
        folders: VecDeque<PartitionFolder>,
        loading: &Loading<'_>,
    ) -> Result<Vec<LogHandle>, Fault> {
        let queue = Mutex::new(folders);
        let doubles = Mutex::new(Vec::new());
        let first_fault = Mutex::new(None);
        let work = || {
            while first_fault.lock().is_none() {
                let Some(folder) = queue.lock().pop_front() else {
                    break;
                };
                match self.load_log(dir, &folder, loading) {
                    Ok(double) => doubles.lock().extend(double),
                    Err(fault) => {
                        first_fault.lock().get_or_insert(fault);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..loading.threads_per_dir.max(1) {
                scope.spawn(work);
            }
            work();
        });
        let doubles = doubles.into_inner();
        first_fault.into_inner().map_or(Ok(doubles), Err)
    }

    fn load_log(
        &self,
        dir: &Arc<LogDir>,
        folder: &PartitionFolder,
        loading: &Loading<'_>,
    ) -> Result<Option<LogHandle>, Fault> {
        let config = (loading.config_of)(&folder.partition);
        let mut progress = |progress| (loading.progress)(&folder.partition, progress);
        let log = match dir.open_log(folder, config, loading.now_ms, &mut progress) {
            Ok(log) => log,
            Err(fault) if fault.is_damage() => {
                self.note_damaged(dir, folder, &fault);
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let handle = LogHandle::new(log, dir, folder.topic_id);
        let mut logs = self.logs.write();
        if logs.contains_key(&folder.partition) {
            return Ok(Some(handle));
        }
        logs.insert(folder.partition.clone(), handle);
        Ok(None)
    }

    fn register(&self, log: Log, dir: &Arc<LogDir>, topic_id: Option<TopicId>) -> LogHandle {
        let of = log.partition().clone();
        let handle = LogHandle::new(log, dir, topic_id);
        self.logs.write().insert(of, handle.clone());
        handle
    }

    /// Puts another log in the place of a partition's, which is given back.
    pub(crate) fn choose(&self, of: &TopicPartition, handle: LogHandle) -> Option<LogHandle> {
        self.logs.write().insert(of.clone(), handle)
    }

    /// The directories in use.
    pub(crate) fn dirs(&self) -> Vec<Arc<LogDir>> {
        self.dirs.read().clone()
    }

    /// The directory with an id, if it is in use.
    pub(crate) fn dir(&self, id: DirectoryId) -> Option<Arc<LogDir>> {
        self.dirs().into_iter().find(|dir| dir.id() == id)
    }

    /// The log of a partition.
    pub(crate) fn log(&self, of: &TopicPartition) -> Option<LogHandle> {
        self.logs.read().get(of).cloned()
    }

    /// All logs.
    pub(crate) fn logs(&self) -> Vec<(TopicPartition, LogHandle)> {
        let logs = self.logs.read();
        logs.iter()
            .map(|(of, handle)| (of.clone(), handle.clone()))
            .collect()
    }

    /// Makes a log in the directory wanted, or in that with the fewest that has room. A log that is
    /// there already is given back, and told its topic's id if it does not know it.
    pub(crate) fn create(
        &self,
        of: &TopicPartition,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        wanted: Option<DirectoryId>,
        now_ms: i64,
    ) -> Result<LogHandle, NotMade> {
        self.place(of, topic_id, wanted, |dir| {
            dir.create_log(of, topic_id, config.clone(), now_ms)
        })
    }

    /// The same, and its folder is made with the first record: most partitions of the
    /// coordinators' topics never get one.
    pub(crate) fn create_later(
        &self,
        of: &TopicPartition,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        wanted: Option<DirectoryId>,
        now_ms: i64,
    ) -> Result<LogHandle, NotMade> {
        self.place(of, topic_id, wanted, |dir| {
            dir.create_log_later(of, topic_id, config.clone(), now_ms)
        })
    }

    fn place(
        &self,
        of: &TopicPartition,
        topic_id: Option<TopicId>,
        wanted: Option<DirectoryId>,
        make: impl Fn(&LogDir) -> Result<Log, Fault>,
    ) -> Result<LogHandle, NotMade> {
        let not_made = |dir, fault: Fault| match fault.spares_directory() {
            true => NotMade::Hindered(fault),
            false => NotMade::Failed(self.fail(dir, fault)),
        };
        if let Some(known) = self.log(of) {
            let dir = Arc::clone(&known.dir);
            let identified = self.identify(of, known, topic_id);
            return identified.map_err(|fault| not_made(&dir, fault));
        }
        let dirs = match wanted.and_then(|id| self.dir(id)) {
            Some(dir) => vec![dir],
            None => self.emptiest_first(),
        };
        let mut result = Err(NotMade::NoDir);
        for dir in dirs {
            result = match make(&dir) {
                Ok(log) => return Ok(self.register(log, &dir, topic_id)),
                // Another may have room.
                Err(fault) if fault.is_full() => result.or(Err(NotMade::Hindered(fault))),
                Err(fault) => return Err(not_made(&dir, fault)),
            };
        }
        result
    }

    /// A crash may have taken what the folder of an empty log said of itself.
    fn identify(
        &self,
        of: &TopicPartition,
        mut handle: LogHandle,
        topic_id: Option<TopicId>,
    ) -> Result<LogHandle, Fault> {
        if let (None, Some(id)) = (handle.topic_id, topic_id) {
            handle.dir.identify_log(&handle.log.lock(), id)?;
            handle.topic_id = topic_id;
            self.logs.write().insert(of.clone(), handle.clone());
        }
        Ok(handle)
    }

    fn emptiest_first(&self) -> Vec<Arc<LogDir>> {
        let (logs, futures) = (self.logs.read(), self.futures.read());
        let count = |dir: &Arc<LogDir>| {
            let here = |handle: &&LogHandle| Arc::ptr_eq(&handle.dir, dir);
            logs.values().chain(futures.values()).filter(here).count()
        };
        let mut dirs = self.dirs();
        dirs.sort_by_cached_key(count);
        dirs
    }

    /// Takes a log out of use and renames its folder, durably after [`LogDirs::sync`]; what is left
    /// of it is to be removed later.
    pub(crate) fn delete(&self, of: &TopicPartition) -> Result<Option<DoomedFolder>, Fault> {
        let Some(handle) = self.logs.write().remove(of) else {
            return Ok(None);
        };
        let mut log = handle.log.lock();
        if log.is_unmade() {
            return Ok(None);
        }
        handle.dir.delete(&mut log).map(Some)
    }

    /// Takes a log out of use that the cluster does not know, and puts its folder aside.
    pub(crate) fn set_aside(&self, of: &TopicPartition) -> Result<(), Fault> {
        let Some(handle) = self.logs.write().remove(of) else {
            return Ok(());
        };
        let mut log = handle.log.lock();
        if log.is_unmade() {
            return Ok(());
        }
        handle.dir.set_aside(&mut log)
    }

    /// Makes the names of all folders durable.
    pub(crate) fn sync(&self) -> Vec<FailedDir> {
        self.in_each_dir(|dir, _| dir.sync())
    }

    /// Takes a directory out of use with all its logs.
    pub(crate) fn fail(&self, dir: &Arc<LogDir>, fault: Fault) -> FailedDir {
        self.dirs.write().retain(|one| !Arc::ptr_eq(one, dir));
        for logs in [&self.logs, &self.futures] {
            let stays = |handle: &LogHandle| !Arc::ptr_eq(&handle.dir, dir);
            logs.write().retain(|_, handle| stays(handle));
        }
        let stays = |log: &Damaged| !Arc::ptr_eq(&log.dir, dir);
        self.damaged.write().retain(|_, log| stays(log));
        let mut failed = self.failed.write();
        if !failed.contains(&dir.id()) {
            failed.push(dir.id());
        }
        FailedDir {
            path: dir.path().to_owned(),
            fault,
        }
    }

    /// Writes recovery points and log starts of every directory.
    pub(crate) fn checkpoint(&self) -> Vec<FailedDir> {
        self.in_each_dir(checkpoint_dir)
    }

    /// Writes the recovery points alone.
    pub(crate) fn checkpoint_points(&self) -> Vec<FailedDir> {
        self.in_each_dir(write_points)
    }

    /// Writes the log starts alone.
    pub(crate) fn checkpoint_starts(&self) -> Vec<FailedDir> {
        self.in_each_dir(write_starts)
    }

    /// Rewrites the checkpoints that say more than holds of the logs that were loaded: the last
    /// process may have ended between a truncation or a deletion and their writing, and a start
    /// must not believe them of what is appended from now on. A directory in which that does not
    /// succeed is not used.
    pub(crate) fn correct_checkpoints(&self) -> Vec<FailedDir> {
        let mut failed = Vec::new();
        for dir in self.dirs() {
            let _turn = dir.checkpoints.lock();
            let here: HashMap<_, _> = self.in_dir(&dir).into_iter().collect();
            let holds = |of: &TopicPartition| {
                let handle = here.get(of)?;
                let point = handle.log.lock().recovery_point();
                Some((point, handle.reader.log_start_offset()))
            };
            if dir.is_overstated(&holds)
                && let Err(fault) = checkpoint_dir(&dir, &here.into_iter().collect::<Vec<_>>())
            {
                failed.push(self.fail(&dir, fault));
            }
        }
        failed
    }

    /// Writes those of one directory, with the replicas on their way there.
    pub(crate) fn checkpoint_one(&self, dir: &Arc<LogDir>) -> Result<(), Fault> {
        let _turn = dir.checkpoints.lock();
        checkpoint_dir(dir, &self.in_dir(dir))
    }

    /// The logs of a directory, with the replicas on their way there.
    fn in_dir(&self, dir: &Arc<LogDir>) -> Vec<(TopicPartition, LogHandle)> {
        let all = self.logs().into_iter().chain(self.futures());
        all.filter(|(_, handle)| Arc::ptr_eq(&handle.dir, dir))
            .collect()
    }

    /// Writes high watermarks, as the caller knows them.
    pub(crate) fn checkpoint_high_watermarks(
        &self,
        high_watermark_of: &dyn Fn(&TopicPartition) -> Option<i64>,
    ) -> Vec<FailedDir> {
        self.in_each_dir(|dir, logs| {
            let known = |(of, _): &(TopicPartition, LogHandle)| {
                high_watermark_of(of).map(|offset| (of.clone(), offset))
            };
            let known: Vec<_> = logs.iter().filter_map(known).collect();
            dir.write_high_watermarks(&known)
        })
    }

    /// Closes every log and every directory in order.
    pub(crate) fn close(&self, broker_epoch: i64) -> Vec<FailedDir> {
        let mut failed = Vec::new();
        for dir in self.dirs() {
            let _turn = dir.checkpoints.lock();
            let logs = self.in_dir(&dir);
            let closed = logs
                .iter()
                .try_for_each(|(_, handle)| handle.log.lock().close())
                .and_then(|()| checkpoint_dir(&dir, &logs))
                .and_then(|()| dir.close(broker_epoch));
            if let Err(fault) = closed {
                // Without a word about order, so that the next start recovers.
                failed.push(self.fail(&dir, fault));
            }
        }
        failed
    }

    /// Does something in each directory. One that has no room for it keeps what it has: the next
    /// time may succeed.
    fn in_each_dir(
        &self,
        work: impl Fn(&Arc<LogDir>, &[(TopicPartition, LogHandle)]) -> Result<(), Fault>,
    ) -> Vec<FailedDir> {
        let mut failed = Vec::new();
        for dir in self.dirs() {
            let _turn = dir.checkpoints.lock();
            let here = self.in_dir(&dir);
            match work(&dir, &here) {
                Err(fault) if fault.is_full() || fault.is_passing() => {
                    warn!(dir = %dir.path().display(), %fault, "a checkpoint is not written now");
                }
                Err(fault) => failed.push(self.fail(&dir, fault)),
                Ok(()) => {}
            }
        }
        failed
    }
}

impl LogHandle {
    pub(super) fn new(log: Log, dir: &Arc<LogDir>, topic_id: Option<TopicId>) -> Self {
        Self {
            reader: log.reader(),
            log: Arc::new(Mutex::new(log)),
            dir: Arc::clone(dir),
            topic_id,
        }
    }
}

/// Two names of one directory are a mistake (LogManager.createAndValidateLogDirs).
fn given_twice(disk: Disk, path: &Path, dirs: &[Arc<LogDir>], all: &[PathBuf]) -> Option<Fault> {
    let here = disk.canonical(path).ok()?;
    dirs.iter()
        .find(|dir| disk.canonical(dir.path()).is_ok_and(|one| one == here))?;
    let all: Vec<_> = all.iter().map(|path| path.display().to_string()).collect();
    Some(Fault::Foreign {
        path: path.to_owned(),
        words: format!("Duplicate log directory found: {}", all.join(", ")),
    })
}

/// Two directories with one id are a mistake: one was copied (MetaPropertiesEnsemble.verify).
fn unlike(dir: LogDir, others: &[Arc<LogDir>]) -> Result<LogDir, Fault> {
    let Some(other) = others.iter().find(|other| other.id() == dir.id()) else {
        return Ok(dir);
    };
    dir.unlock()?;
    Err(alike(dir.id(), other.path(), dir.path()))
}

fn alike(id: DirectoryId, first: &Path, second: &Path) -> Fault {
    Fault::Foreign {
        path: second.to_owned(),
        words: format!(
            "Duplicate directory ID {id} found. It was the ID of {}, but also of {}",
            first.display(),
            second.display()
        ),
    }
}

fn checkpoint_dir(dir: &Arc<LogDir>, logs: &[(TopicPartition, LogHandle)]) -> Result<(), Fault> {
    write_points(dir, logs)?;
    write_starts(dir, logs)
}

fn write_points(dir: &Arc<LogDir>, logs: &[(TopicPartition, LogHandle)]) -> Result<(), Fault> {
    let point = |(of, handle): &(TopicPartition, LogHandle)| {
        (of.clone(), handle.log.lock().recovery_point())
    };
    let points: Vec<_> = logs.iter().map(point).collect();
    dir.write_recovery_points(&points)?;
    for ((_, handle), (_, point)) in logs.iter().zip(&points) {
        handle.log.lock().checkpointed(*point)?;
    }
    Ok(())
}

fn write_starts(dir: &Arc<LogDir>, logs: &[(TopicPartition, LogHandle)]) -> Result<(), Fault> {
    let start = |(of, handle): &(TopicPartition, LogHandle)| {
        let start = handle.reader.log_start_offset();
        let first = handle.reader.segments().first().map(|one| one.base_offset);
        (first < Some(start)).then(|| (of.clone(), start))
    };
    let starts: Vec<_> = logs.iter().filter_map(start).collect();
    dir.write_log_starts(&starts)
}

fn split(folders: Vec<PartitionFolder>) -> (Vec<PartitionFolder>, VecDeque<PartitionFolder>) {
    let (futures, live): (Vec<_>, Vec<_>) = folders.into_iter().partition(|one| one.is_future);
    (futures, live.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{LeaderEpoch, Uuid};
    use crate::log::checkpoint;
    use crate::log::testkit::{self, CLEAN, CRASH, NOW, batch, client};
    use crate::os::disk::TempDir;

    fn identity() -> Identity {
        Identity {
            cluster_id: "QmFybmFiYXNGaXh0dXJlMQ".into(),
            node_id: 1,
        }
    }

    fn open(path: &Path) -> (LogDirs, Loaded) {
        let (dirs, loaded) = open_any(path);
        assert!(loaded.failed.is_empty(), "{loaded:?}");
        (dirs, loaded)
    }

    fn open_any(path: &Path) -> (LogDirs, Loaded) {
        let (dirs, failed) = LogDirs::open(Disk, &[path.to_owned()], &identity(), 16);
        assert!(failed.is_empty(), "{failed:?}");
        let loaded = dirs.load(&Loading {
            config_of: &|_| Arc::new(LogConfig::default()),
            threads_per_dir: 2,
            now_ms: NOW,
            progress: &|_, _| (),
        });
        (dirs, loaded)
    }

    #[test]
    fn kafkas_directories_are_taken_over_whole() {
        for (archive, epoch) in [(CLEAN, Some(188)), (CRASH, None)] {
            let dir = TempDir::new();
            testkit::unpack(archive, dir.path());
            let (dirs, loaded) = open(dir.path());
            assert_eq!(dirs.logs().len(), 33);
            assert_eq!(loaded.deleted.len(), 1);
            assert_eq!(dirs.dirs()[0].clean_broker_epoch(), epoch);
            assert!(dirs.close(7).is_empty());
            let (again, _) = open(dir.path());
            assert_eq!(again.dirs()[0].clean_broker_epoch(), Some(7));
            let of = TopicPartition::new("deleted-records", 0);
            let log = again.log(&of).unwrap();
            assert_eq!(log.reader.log_start_offset(), 13);
            assert_eq!(log.reader.log_end_offset(), 30);
            assert!(log.topic_id.is_some());
        }
    }

    #[test]
    fn a_directory_is_used_by_one_process_and_one_cluster() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let paths = [dir.path().to_owned()];
        let (_, failed) = LogDirs::open(Disk, &paths, &identity(), 16);
        assert!(matches!(failed[0].fault, Fault::Locked { .. }));
        let other = Identity {
            cluster_id: "other".into(),
            node_id: 1,
        };
        drop(dirs);
        let (_, failed) = LogDirs::open(Disk, &paths, &other, 16);
        assert!(matches!(failed[0].fault, Fault::Foreign { .. }));
    }

    #[test]
    fn a_log_is_made_deleted_and_removed() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let of = TopicPartition::new("new", 3);
        let id = Some(TopicId(Uuid([1; 16])));
        let config = Arc::new(LogConfig::default());
        let handle = dirs.create(&of, id, config, None, NOW).unwrap();
        handle.log.lock().append(&batch(3, 10), client(0)).unwrap();
        let doomed = dirs.delete(&of).unwrap().unwrap();
        assert!(dirs.sync().is_empty());
        assert!(dirs.log(&of).is_none());
        assert!(Disk.exists(doomed.path()));
        let want = crate::log::read::Want {
            offset: 0,
            upper: 3,
            max_bytes: 1000,
            min_one: true,
        };
        assert!(handle.reader.locate_hot(&want).is_some());
        drop((dirs, handle));
        let (_dirs, mut loaded) = open(dir.path());
        let doomed = loaded.deleted.pop().unwrap();
        let path = doomed.path().to_owned();
        doomed.remove().unwrap();
        assert!(!Disk.exists(&path));
    }

    #[test]
    fn a_log_has_no_folder_until_it_is_written_to() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let (used, unused) = (TopicPartition::new("t", 0), TopicPartition::new("t", 1));
        let id = Some(TopicId(Uuid([1; 16])));
        let make = |of| {
            let config = Arc::new(LogConfig::default());
            dirs.create_later(of, id, config, None, NOW).unwrap()
        };
        let (first, second) = (make(&used), make(&unused));
        for handle in [&first, &second] {
            handle.log.lock().begin_epoch(LeaderEpoch(3), 0).unwrap();
            handle.log.lock().rest();
        }
        let folder = |of: &TopicPartition| Disk.exists(&dir.path().join(of.to_string()));
        assert!(!folder(&used) && !folder(&unused));
        let want = |offset| crate::log::read::Want {
            offset,
            upper: 9,
            max_bytes: 1000,
            min_one: true,
        };
        let located = second.reader.locate(&want(0)).unwrap();
        assert!(matches!(located, crate::log::read::Located::Empty));
        first.log.lock().append(&batch(3, 10), client(3)).unwrap();
        assert!(folder(&used));
        assert!(dirs.checkpoint().is_empty());
        assert!(dirs.close(7).is_empty());
        assert!(!folder(&unused));
        drop((first, second, dirs));

        let (dirs, loaded) = open(dir.path());
        assert!(loaded.failed.is_empty());
        assert!(dirs.log(&unused).is_none());
        let again = dirs.log(&used).unwrap();
        assert_eq!(again.topic_id, id);
        assert_eq!(again.reader.log_end_offset(), 3);
        assert_eq!(again.reader.latest_epoch(), Some(LeaderEpoch(3)));
        let config = Arc::new(LogConfig::default());
        dirs.create_later(&unused, id, config, None, NOW).unwrap();
        assert!(dirs.delete(&unused).unwrap().is_none());
        assert!(dirs.log(&unused).is_none());
    }

    #[test]
    fn a_crash_is_noticed_and_nothing_is_lost() {
        let dir = TempDir::new();
        let of = TopicPartition::new("t", 0);
        let (dirs, _) = open(dir.path());
        let config = Arc::new(LogConfig::default());
        let handle = dirs.create(&of, None, config, None, NOW).unwrap();
        handle.log.lock().append(&batch(3, 10), client(0)).unwrap();
        assert!(dirs.checkpoint().is_empty());
        drop((dirs, handle));
        let (dirs, _) = open(dir.path());
        assert_eq!(dirs.dirs()[0].clean_broker_epoch(), None);
        assert_eq!(dirs.log(&of).unwrap().reader.log_end_offset(), 3);
    }

    #[test]
    fn an_empty_log_that_does_not_say_whose_it_is_is_told() {
        let dir = TempDir::new();
        let of = TopicPartition::new("t", 0);
        let id = Some(TopicId(Uuid([1; 16])));
        let config = Arc::new(LogConfig::default());
        let (dirs, _) = open(dir.path());
        let handle = dirs.create(&of, id, config.clone(), None, NOW).unwrap();
        drop((dirs, handle));
        // What a crash of the machine leaves of a file that nobody waited for.
        let path = dir.path().join("t-0/partition.metadata");
        for left in ["version: 0\ntopic_", ""] {
            Disk.replace(&path, left.as_bytes()).unwrap();
            let (dirs, _) = open(dir.path());
            assert_eq!(dirs.log(&of).unwrap().topic_id, None);
        }
        let (dirs, _) = open(dir.path());
        let handle = dirs.create(&of, id, config, None, NOW).unwrap();
        assert_eq!(handle.topic_id, id);
        assert!(!handle.log.lock().is_settled());
        handle.log.lock().append(&batch(3, 10), client(0)).unwrap();
        assert!(handle.log.lock().is_settled());
        drop((dirs, handle));
        let (dirs, _) = open(dir.path());
        let handle = dirs.log(&of).unwrap();
        assert_eq!((handle.topic_id, handle.reader.log_end_offset()), (id, 3));
        assert!(handle.log.lock().is_settled());
        drop((dirs, handle));
        // Where there are records nobody may guess whose they are.
        Disk.replace(&path, b"version: 0\ntopic_").unwrap();
        let (dirs, _) = open(dir.path());
        assert!(dirs.has_damaged(&of) && dirs.log(&of).is_none());
        let doomed = dirs.delete_damaged("t").pop().unwrap();
        assert!(Disk.exists(doomed.path()) && !dirs.has_damaged(&of));
    }

    #[test]
    fn checkpoints_may_be_written_by_several_at_once() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let of = TopicPartition::new("t", 0);
        let made = dirs.create(&of, None, Arc::default(), None, NOW).unwrap();
        made.log.lock().append(&batch(3, 10), client(0)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert!(dirs.checkpoint().is_empty());
                        assert!(dirs.checkpoint_high_watermarks(&|_| Some(3)).is_empty());
                    }
                });
            }
        });
    }

    #[test]
    fn a_damaged_log_and_damaged_checkpoints_leave_the_others_alone() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let (good, bad) = (TopicPartition::new("t", 0), TopicPartition::new("t", 1));
        for of in [&good, &bad] {
            let made = dirs.create(of, None, Arc::default(), None, NOW).unwrap();
            made.log.lock().append(&batch(3, 10), client(0)).unwrap();
        }
        assert!(dirs.close(7).is_empty());
        drop(dirs);
        for name in [
            checkpoint::RECOVERY_POINTS,
            checkpoint::LOG_STARTS,
            checkpoint::HIGH_WATERMARKS,
            checkpoint::CLEANER_OFFSETS,
        ] {
            Disk.replace(&dir.path().join(name), b"\xff\xff 1").unwrap();
        }
        let batches = dir.path().join("t-1/00000000000000000000.log");
        Disk.replace(&batches, &[b'x'; 200]).unwrap();
        let (dirs, loaded) = open(dir.path());
        assert!(loaded.failed.is_empty());
        assert_eq!(dirs.log(&good).unwrap().reader.log_end_offset(), 3);
        assert!(dirs.log(&bad).is_none() && dirs.has_damaged(&bad) && !dirs.has_damaged(&good));
        assert!(dirs.close(8).is_empty());
        assert_eq!(
            Disk.read(&batches).unwrap(),
            [b'x'; 200],
            "it is left as it is"
        );
    }

    #[test]
    fn what_stands_in_the_way_of_a_log_spares_its_directory() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let of = TopicPartition::new("t", 0);
        let make = |dirs: &LogDirs| dirs.create(&of, None, Arc::default(), None, NOW);
        Disk.replace(&dir.path().join("t-0"), b"a file").unwrap();
        assert!(matches!(make(&dirs), Err(NotMade::Hindered(_))));
        Disk.remove_file(&dir.path().join("t-0")).unwrap();
        assert_eq!(make(&dirs).unwrap().reader.log_end_offset(), 0);
        // A directory that is gone is another matter.
        let other = TopicPartition::new("t", 1);
        Disk.remove_dir_all(dir.path()).unwrap();
        let made = dirs.create(&other, None, Arc::default(), None, NOW);
        assert!(matches!(made, Err(NotMade::Failed(_))));
        assert!(matches!(make(&dirs), Err(NotMade::NoDir)));
    }

    #[test]
    fn a_damaged_log_is_opened_as_what_it_was_once_it_is_mended() {
        let dir = TempDir::new();
        let (dirs, _) = open(dir.path());
        let (of, other) = (TopicPartition::new("t", 0), TopicPartition::new("t", 1));
        let (id, stranger) = (TopicId(Uuid([1; 16])), TopicId(Uuid([2; 16])));
        for of in [&of, &other] {
            let made = dirs
                .create(of, Some(id), Arc::default(), None, NOW)
                .unwrap();
            made.log.lock().append(&batch(9, 10), client(0)).unwrap();
            made.log.lock().flush_now().unwrap();
            made.log.lock().advance_log_start(4).unwrap();
        }
        assert!(dirs.checkpoint().is_empty());
        let here = dirs.dirs()[0].id();
        drop(dirs);
        let path = dir.path().join("t-0").join("partition.metadata");
        let good = Disk.read(&path).unwrap();
        Disk.replace(&path, b"version: 0\ntopic_").unwrap();
        let (dirs, _) = open(dir.path());
        assert!(dirs.is_damaged(&of, id, Some(here)));
        assert!(dirs.correct_checkpoints().is_empty() && dirs.checkpoint().is_empty());
        assert!(dirs.close(7).is_empty());
        drop(dirs);
        Disk.replace(&path, &good).unwrap();
        let (dirs, _) = open(dir.path());
        assert_eq!(
            dirs.dirs()[0].clean_broker_epoch(),
            None,
            "it was not closed in order"
        );
        let handle = dirs.log(&of).unwrap();
        assert_eq!(handle.reader.log_start_offset(), 4);
        assert_eq!(handle.log.lock().recovery_point(), 9);
        assert!(dirs.close(7).is_empty());
        drop((dirs, handle));
        // A topic of that name that is another keeps its place.
        let batches = dir.path().join("t-0/00000000000000000000.log");
        Disk.replace(&batches, &[b'x'; 200]).unwrap();
        let (dirs, _) = open(dir.path());
        assert!(dirs.is_damaged(&of, id, None) && !dirs.is_damaged(&of, stranger, None));
        assert!(!dirs.has_damaged(&of) && !Disk.exists(&batches));
        assert!(dirs.close(8).is_empty());
        let (dirs, _) = open(dir.path());
        assert_eq!(dirs.dirs()[0].clean_broker_epoch(), Some(8));
    }
}
