//! One log directory: locked, identified, with its checkpoints and the folders of its partitions.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::checkpoint::{self, CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS};
use super::config::LogConfig;
use super::fault::{At, Fault};
use super::files::FileCache;
use super::layout::{self, CLEAN_SHUTDOWN, FolderName, LOCK, META_PROPERTIES, MetaProperties};
use super::log::Log;
use super::recover::{self, OpenLog, Progress};
use crate::base::{DirectoryId, TopicId, TopicPartition};
use crate::os::disk::{Disk, Lock, Space};
use crate::os::random;

/// Who a directory must belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) cluster_id: String,
    pub(crate) node_id: i32,
}

/// The topic whose only partition is the metadata log.
const CLUSTER_METADATA: &str = "__cluster_metadata";

/// A directory in use by this process.
#[derive(Debug)]
pub(crate) struct LogDir {
    path: PathBuf,
    id: DirectoryId,
    cache: Arc<FileCache>,
    lock: Mutex<Option<Lock>>,
    previous: Previous,
    /// The first offsets that were not compacted, as the file has them.
    cleaned_to: Mutex<HashMap<TopicPartition, i64>>,
    /// Held while its checkpoints are told of its logs and written: two at once would take away each
    /// other's file, and the older word must not come last.
    pub(super) checkpoints: Mutex<()>,
    /// What checkpoints go on to say of logs that are here and not in use.
    kept: Mutex<HashMap<TopicPartition, Kept>>,
}

/// What the checkpoints say of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) recovery_point: i64,
    pub(super) log_start: i64,
    pub(super) high_watermark: i64,
}

/// What the last process left.
#[derive(Debug, Default)]
struct Previous {
    /// Set after an orderly stop.
    clean_broker_epoch: Option<i64>,
    recovery_points: HashMap<TopicPartition, i64>,
    log_starts: HashMap<TopicPartition, i64>,
    high_watermarks: HashMap<TopicPartition, i64>,
}

/// A partition's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionFolder {
    pub(crate) partition: TopicPartition,
    pub(crate) path: PathBuf,
    /// `None` when the folder does not say.
    pub(crate) topic_id: Option<TopicId>,
    /// A replica on its way here, not in use yet.
    pub(crate) is_future: bool,
}

/// What lies in a directory.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    pub(crate) partitions: Vec<PartitionFolder>,
    /// Deleted before, still to be removed.
    pub(crate) deleted: Vec<DoomedFolder>,
    /// Those that do not say any more which topic they are of.
    pub(crate) damaged: Vec<(PartitionFolder, Fault)>,
}

/// A folder that waits for its removal.
#[derive(Debug)]
pub(crate) struct DoomedFolder {
    path: PathBuf,
    disk: Disk,
}

impl DoomedFolder {
    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it; one already gone is no trouble.
    pub(crate) fn remove(self) -> Result<(), Fault> {
        match self.disk.remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(&self.path),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The file that an orderly stop leaves (CleanShutdownFileHandler).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CleanShutdown {
    version: i32,
    broker_epoch: i64,
}

impl LogDir {
    /// Takes a directory into use: makes it if it is not there, locks it, checks or writes whose
    /// it is, and notes how it was left. From here on it counts as not closed in order.
    pub(crate) fn open(
        cache: &Arc<FileCache>,
        path: &Path,
        identity: &Identity,
    ) -> Result<Self, Fault> {
        let disk = cache.disk();
        disk.create_dir_all(path).at(path)?;
        let lock = lock(disk, path)?;
        let id = identify(disk, path, identity)?;
        let previous = Previous::read(disk, path)?;
        let cleaned_to = offsets_or_none(disk, &path.join(CLEANER_OFFSETS))?;
        Ok(Self {
            path: path.to_owned(),
            id,
            cache: Arc::clone(cache),
            lock: Mutex::new(Some(lock)),
            previous,
            cleaned_to: Mutex::new(cleaned_to),
            checkpoints: Mutex::default(),
            kept: Mutex::default(),
        })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its id.
    pub(crate) fn id(&self) -> DirectoryId {
        self.id
    }

    /// Whether it is where it was.
    pub(crate) fn is_there(&self) -> bool {
        self.cache.disk().exists(&self.path.join(META_PROPERTIES))
    }

    /// The broker epoch of the process that closed it in order, if one did.
    pub(crate) fn clean_broker_epoch(&self) -> Option<i64> {
        self.previous.clean_broker_epoch
    }

    /// A partition's high watermark as of the last checkpoint.
    pub(crate) fn high_watermark(&self, of: &TopicPartition) -> i64 {
        self.previous.high_watermarks.get(of).copied().unwrap_or(0)
    }

    /// What the checkpoints of the last process say of a log.
    pub(super) fn told(&self, of: &TopicPartition) -> Kept {
        let from = |map: &HashMap<TopicPartition, i64>| map.get(of).copied().unwrap_or(0);
        Kept {
            recovery_point: from(&self.previous.recovery_points),
            log_start: from(&self.previous.log_starts),
            high_watermark: from(&self.previous.high_watermarks),
        }
    }

    /// Has checkpoints go on to say this of a log that is not in use, so that it can be opened as
    /// what it was; without it, nothing more.
    pub(super) fn keep(&self, of: &TopicPartition, kept: Option<Kept>) {
        let mut all = self.kept.lock();
        match kept {
            Some(kept) => all.insert(of.clone(), kept),
            None => all.remove(of),
        };
    }

    /// Whether a checkpoint of the last process says more of a partition than holds: a recovery
    /// point or a log start beyond these, or any of a log that is not here.
    pub(super) fn is_overstated(
        &self,
        holds: &dyn Fn(&TopicPartition) -> Option<(i64, i64)>,
    ) -> bool {
        let (points, starts) = (&self.previous.recovery_points, &self.previous.log_starts);
        let kept = self.kept.lock();
        let beyond = |of, told: i64, which: fn((i64, i64)) -> i64| {
            let now = holds(of).map(which);
            told > 0 && !kept.contains_key(of) && now.is_none_or(|now| told > now)
        };
        points.iter().any(|(of, told)| beyond(of, *told, |it| it.0))
            || starts.iter().any(|(of, told)| beyond(of, *told, |it| it.1))
    }

    /// The first offset of a partition that was not compacted.
    pub(crate) fn cleaned_to(&self, of: &TopicPartition) -> Option<i64> {
        self.cleaned_to.lock().get(of).copied()
    }

    /// Notes the first offset of a partition that was not compacted; `None` forgets it.
    pub(crate) fn set_cleaned_to(
        &self,
        of: &TopicPartition,
        offset: Option<i64>,
    ) -> Result<(), Fault> {
        let mut all = self.cleaned_to.lock();
        let before = match offset {
            Some(offset) => all.insert(of.clone(), offset),
            None => all.remove(of),
        };
        if before == offset {
            return Ok(());
        }
        let entries = all.iter().map(|(of, offset)| (of, *offset));
        let path = self.path.join(CLEANER_OFFSETS);
        checkpoint::write_offsets(self.cache.disk(), &path, entries)
    }

    /// The space of its file system.
    pub(crate) fn space(&self) -> Result<Space, Fault> {
        self.cache.disk().space(&self.path).at(&self.path)
    }

    /// Lists the folders of partitions.
    pub(crate) fn folders(&self) -> Result<Folders, Fault> {
        let disk = self.cache.disk();
        let mut folders = Folders::default();
        for entry in disk.list(&self.path).at(&self.path)? {
            if !entry.is_dir {
                continue;
            }
            let path = self.path.join(&entry.name);
            let (partition, is_future) = match FolderName::parse(&entry.name) {
                // The metadata log is the quorum's.
                FolderName::Live(partition) if &*partition.topic == CLUSTER_METADATA => continue,
                FolderName::Live(partition) => (partition, false),
                FolderName::Future(partition) => (partition, true),
                FolderName::Delete => {
                    folders.deleted.push(DoomedFolder { path, disk });
                    continue;
                }
                FolderName::Stray | FolderName::Other => continue,
            };
            let (topic_id, damage) = match layout::read_topic_id(disk, &path) {
                Ok(topic_id) => (topic_id, None),
                // A copy's is written before anything of it is durable, and a folder's is durable
                // before its first batch.
                Err(Fault::Malformed { .. }) if is_future || !layout::has_batches(disk, &path)? => {
                    (None, None)
                }
                // Where there are records nobody may guess whose they are.
                Err(fault) if fault.is_damage() => (None, Some(fault)),
                Err(fault) => return Err(fault),
            };
            let folder = PartitionFolder {
                topic_id,
                partition,
                path,
                is_future,
            };
            match damage {
                Some(fault) => folders.damaged.push((folder, fault)),
                None => folders.partitions.push(folder),
            }
        }
        Ok(folders)
    }

    /// A folder that nobody needs any more, as it is.
    pub(crate) fn doom(&self, folder: &PartitionFolder) -> DoomedFolder {
        DoomedFolder {
            path: folder.path.clone(),
            disk: self.cache.disk(),
        }
    }

    /// Opens the log of a folder.
    pub(crate) fn open_log(
        &self,
        folder: &PartitionFolder,
        config: Arc<LogConfig>,
        now_ms: i64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Log, Fault> {
        let is_clean = self.previous.clean_broker_epoch.is_some();
        let offset = |map: &HashMap<TopicPartition, i64>| {
            let known = map.get(&folder.partition).copied();
            // After a crash they may still be about the replica that was here before.
            let is_sure = is_clean || !folder.is_future;
            known.filter(|_| is_sure).unwrap_or(0)
        };
        let open = OpenLog {
            partition: folder.partition.clone(),
            folder: folder.path.clone(),
            cache: Arc::clone(&self.cache),
            config,
            is_clean,
            recovery_point: offset(&self.previous.recovery_points),
            log_start: offset(&self.previous.log_starts),
            now_ms,
        };
        recover::open(open, progress)
    }

    /// Makes the folder of a new partition with an empty log.
    pub(crate) fn create_log(
        &self,
        partition: &TopicPartition,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<Log, Fault> {
        self.create(&partition.to_string(), partition, topic_id, config, now_ms)
    }

    /// An empty log for a new partition, whose folder is made when it is written to.
    pub(crate) fn create_log_later(
        &self,
        partition: &TopicPartition,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<Log, Fault> {
        let disk = self.cache.disk();
        let folder = self.path.join(partition.to_string());
        if disk.exists(&folder) && !disk.list(&folder).at(&folder)?.is_empty() {
            return Err(occupied(folder));
        }
        recover::unmade(&self.opening(partition, folder, config, now_ms), topic_id)
    }

    fn opening(
        &self,
        partition: &TopicPartition,
        folder: PathBuf,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> OpenLog {
        OpenLog {
            partition: partition.clone(),
            folder,
            cache: Arc::clone(&self.cache),
            config,
            is_clean: true,
            recovery_point: 0,
            log_start: 0,
            now_ms,
        }
    }

    /// Tells a log here which topic it is of.
    pub(crate) fn identify_log(&self, log: &Log, topic_id: TopicId) -> Result<(), Fault> {
        let disk = self.cache.disk();
        layout::write_topic_id(disk, log.folder(), topic_id, Disk::write_atomically)
    }

    /// Makes the folder of a replica that is to move here.
    pub(crate) fn create_future_log(
        &self,
        partition: &TopicPartition,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<Log, Fault> {
        let name = layout::future_folder(partition, random::uuid());
        self.create(&name, partition, topic_id, config, now_ms)
    }

    fn create(
        &self,
        name: &str,
        partition: &TopicPartition,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<Log, Fault> {
        let disk = self.cache.disk();
        let folder = self.path.join(name);
        match disk.create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !disk.list(&folder).at(&folder)?.is_empty() {
                    return Err(occupied(folder));
                }
            }
            made => made.at(&folder)?,
        }
        let open = self.opening(partition, folder.clone(), config, now_ms);
        let identified = topic_id.map_or(Ok(()), |id| {
            layout::write_topic_id(disk, &folder, id, Disk::write_in_place)
        });
        let made = identified.and_then(|()| recover::create(&open));
        if made.is_err() {
            // Half a folder would stand in the way of the next attempt.
            let _ = disk.remove_dir_all(&folder);
        }
        made
    }

    /// Gives the folder of a log its name for good, once it has caught up.
    pub(crate) fn promote(&self, log: &mut Log) -> Result<(), Fault> {
        let name = log.partition().to_string();
        self.rename(log, &name)?;
        self.sync()
    }

    /// Renames the folder of a log for removal; the log may still be read, not written. Durable
    /// after [`LogDir::sync`].
    pub(crate) fn delete(&self, log: &mut Log) -> Result<DoomedFolder, Fault> {
        let name = layout::marked_folder(log.partition(), random::uuid(), "-delete");
        self.rename(log, &name)
    }

    /// The same for the folder of a log that could not be opened.
    pub(super) fn delete_unopened(&self, folder: &PartitionFolder) -> Result<DoomedFolder, Fault> {
        self.mark_unopened(folder, "-delete")
    }

    /// Puts aside the folder of a log that could not be opened, and that nobody asks for.
    pub(super) fn set_aside_unopened(&self, folder: &PartitionFolder) -> Result<(), Fault> {
        self.mark_unopened(folder, "-stray").map(drop)
    }

    fn mark_unopened(&self, folder: &PartitionFolder, mark: &str) -> Result<DoomedFolder, Fault> {
        let disk = self.cache.disk();
        let name = layout::marked_folder(&folder.partition, random::uuid(), mark);
        let path = self.path.join(name);
        disk.rename(&folder.path, &path).at(&folder.path)?;
        Ok(DoomedFolder { path, disk })
    }

    /// Puts aside the folder of a log that the cluster does not know.
    pub(crate) fn set_aside(&self, log: &mut Log) -> Result<(), Fault> {
        let name = layout::marked_folder(log.partition(), random::uuid(), "-stray");
        self.rename(log, &name)?;
        self.sync()
    }

    /// Makes the names of its folders durable.
    pub(crate) fn sync(&self) -> Result<(), Fault> {
        self.cache.disk().sync_dir(&self.path).at(&self.path)
    }

    fn rename(&self, log: &mut Log, name: &str) -> Result<DoomedFolder, Fault> {
        let disk = self.cache.disk();
        let to = self.path.join(name);
        disk.rename(log.folder(), &to).at(log.folder())?;
        log.moved_to(&to);
        Ok(DoomedFolder { path: to, disk })
    }

    /// Writes the offsets flushed to disk.
    pub(crate) fn write_recovery_points(
        &self,
        offsets: &[(TopicPartition, i64)],
    ) -> Result<(), Fault> {
        self.write_offsets(RECOVERY_POINTS, offsets, |kept| kept.recovery_point)
    }

    /// Writes the log starts that are not the start of a segment.
    pub(crate) fn write_log_starts(&self, offsets: &[(TopicPartition, i64)]) -> Result<(), Fault> {
        self.write_offsets(LOG_STARTS, offsets, |kept| kept.log_start)
    }

    /// Writes the high watermarks.
    pub(crate) fn write_high_watermarks(
        &self,
        offsets: &[(TopicPartition, i64)],
    ) -> Result<(), Fault> {
        self.write_offsets(HIGH_WATERMARKS, offsets, |kept| kept.high_watermark)
    }

    fn write_offsets(
        &self,
        name: &str,
        offsets: &[(TopicPartition, i64)],
        of_kept: fn(&Kept) -> i64,
    ) -> Result<(), Fault> {
        let kept = self.kept.lock().clone();
        let kept = kept.iter().map(|(of, kept)| (of, of_kept(kept)));
        let kept = kept.filter(|(of, offset)| *offset > 0 && offsets.iter().all(|it| it.0 != **of));
        let entries = offsets.iter().map(|(of, offset)| (of, *offset));
        checkpoint::write_offsets(
            self.cache.disk(),
            &self.path.join(name),
            entries.chain(kept),
        )
    }

    /// Notes that everything was closed in order, and unlocks. All logs must be closed and all
    /// checkpoints written before. With a log that is not in use it is not in order: that is
    /// recovered once it can be opened.
    pub(crate) fn close(&self, broker_epoch: i64) -> Result<(), Fault> {
        if !self.kept.lock().is_empty() {
            return self.unlock();
        }
        let disk = self.cache.disk();
        let path = self.path.join(CLEAN_SHUTDOWN);
        let text = serde_json::to_vec(&CleanShutdown {
            version: 0,
            broker_epoch,
        })
        .expect("two numbers are JSON");
        disk.write_atomically(&path, &text).at(&path)?;
        self.unlock()
    }

    /// Unlocks without a word about order, so that the next start recovers.
    pub(crate) fn unlock(&self) -> Result<(), Fault> {
        let Some(lock) = self.lock.lock().take() else {
            return Ok(());
        };
        give_back(self.cache.disk(), &self.path, lock)
    }
}

fn lock(disk: Disk, path: &Path) -> Result<Lock, Fault> {
    disk.lock(&path.join(LOCK)).map_err(|source| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::WouldBlock {
            Fault::Locked { path }
        } else {
            Fault::Disk { path, source }
        }
    })
}

fn give_back(disk: Disk, path: &Path, lock: Lock) -> Result<(), Fault> {
    let path = path.join(LOCK);
    // Removed while still held: whoever comes next makes a file of its own.
    let removed = disk.remove_file(&path).at(&path);
    drop(lock);
    removed
}

fn occupied(path: PathBuf) -> Fault {
    let why = "a log lies here that this node does not serve; move it away";
    Fault::Malformed { path, why }
}

/// A directory that is this process's alone, whatever it holds: locked until dropped.
#[derive(Debug)]
pub(crate) struct Held {
    path: PathBuf,
    id: DirectoryId,
    disk: Disk,
    lock: Option<Lock>,
}

impl Held {
    /// Takes a directory: makes it if it is not there, locks it, checks or writes whose it is.
    pub(crate) fn take(disk: Disk, path: &Path, identity: &Identity) -> Result<Self, Fault> {
        disk.create_dir_all(path).at(path)?;
        let mut held = Self {
            path: path.to_owned(),
            id: DirectoryId::UNASSIGNED,
            disk,
            lock: Some(lock(disk, path)?),
        };
        held.id = identify(disk, path, identity)?;
        Ok(held)
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its id.
    pub(crate) fn id(&self) -> DirectoryId {
        self.id
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            // One that stays behind locks nobody out.
            let _ = give_back(self.disk, &self.path, lock);
        }
    }
}

/// Checks whose directory it is; one that says nothing is ours from now on.
fn identify(disk: Disk, path: &Path, identity: &Identity) -> Result<DirectoryId, Fault> {
    let found = MetaProperties::read(disk, path)?;
    let mut properties = found.clone().unwrap_or_default();
    if let Some(words) = stranger(&properties, path, identity) {
        let path = path.to_owned();
        return Err(Fault::Foreign { path, words });
    }
    properties.cluster_id = Some(identity.cluster_id.clone());
    properties.node_id = Some(identity.node_id);
    let id = properties
        .directory_id
        .unwrap_or_else(|| DirectoryId(random::uuid()));
    properties.directory_id = Some(id);
    if found.as_ref() != Some(&properties) {
        properties.write(disk, path)?;
    }
    Ok(id)
}

/// What Kafka says of a directory that belongs to another node or cluster
/// (MetaPropertiesEnsemble.verify).
fn stranger(found: &MetaProperties, path: &Path, identity: &Identity) -> Option<String> {
    let file = path.join(META_PROPERTIES);
    let file = file.display();
    let (cluster, node) = (&identity.cluster_id, identity.node_id);
    if let Some(other) = found.cluster_id.as_ref().filter(|other| *other != cluster) {
        return Some(format!(
            "Invalid cluster.id in: {file}. Expected {cluster}, but read {other}"
        ));
    }
    if let Some(other) = found.node_id.filter(|other| *other != node) {
        return Some(format!(
            "Stored node id {other} doesn't match previous node id {node} in {file}. If you moved \
             your data, make sure your configured node id matches. If you intend to create a new \
             node, you should remove all data in your data directories."
        ));
    }
    let reserved = found.directory_id.filter(DirectoryId::is_reserved)?;
    let path = path.display();
    Some(format!(
        "Invalid reserved directory ID {reserved} found in {path}"
    ))
}

impl Previous {
    fn read(disk: Disk, path: &Path) -> Result<Self, Fault> {
        let offsets = |name: &str| offsets_or_none(disk, &path.join(name));
        Ok(Self {
            clean_broker_epoch: take_clean_shutdown(disk, path)?,
            recovery_points: offsets(RECOVERY_POINTS)?,
            log_starts: offsets(LOG_STARTS)?,
            high_watermarks: offsets(HIGH_WATERMARKS)?,
        })
    }
}

/// Reads a checkpoint; a damaged one is as good as none, for the logs tell the same or can be read
/// anew. Only where records were deleted up to an offset inside a segment is not known any more
/// (LogManager.loadLogs).
fn offsets_or_none(disk: Disk, path: &Path) -> Result<HashMap<TopicPartition, i64>, Fault> {
    match checkpoint::read_offsets(disk, path) {
        Ok(offsets) => Ok(offsets.into_iter().collect()),
        Err(fault) if fault.is_damage() => {
            warn!(%fault, "a checkpoint is damaged, the node goes on without it");
            Ok(HashMap::new())
        }
        Err(fault) => Err(fault),
    }
}

/// Reads and removes the note of an orderly stop: a crash while starting is a crash.
fn take_clean_shutdown(disk: Disk, folder: &Path) -> Result<Option<i64>, Fault> {
    let path = folder.join(CLEAN_SHUTDOWN);
    if !disk.exists(&path) {
        return Ok(None);
    }
    let text = disk.read(&path).at(&path)?;
    // Before KIP-966 the file was empty.
    let epoch = serde_json::from_slice::<CleanShutdown>(&text).map_or(-1, |note| note.broker_epoch);
    disk.remove_file(&path).at(&path)?;
    disk.sync_dir(folder).at(folder)?;
    Ok(Some(epoch))
}
