//! Names: the files of a partition, the folders of a log directory, and the two small files of
//! properties (org.apache.kafka.storage.internals.log.LogFileUtils, PartitionMetadataFile).

use std::path::{Path, PathBuf};

use super::checkpoint::Replace;
use super::fault::{At, Fault};
use crate::base::{DirectoryId, TopicId, TopicPartition, Uuid};
use crate::os::disk::{Disk, Open};

/// Scheduled for deletion; removed at start.
pub(crate) const DELETED: &str = ".deleted";
/// Compaction in progress; removed at start.
pub(crate) const CLEANED: &str = ".cleaned";
/// Compaction done; takes the place of what it replaces.
pub(crate) const SWAP: &str = ".swap";
/// A file that was being replaced; removed at start.
const TMP: &str = ".tmp";

/// Identifies a partition's folder.
pub(crate) const PARTITION_METADATA: &str = "partition.metadata";
/// Identifies a log directory.
pub(crate) const META_PROPERTIES: &str = "meta.properties";
/// Held while a process uses the directory.
pub(crate) const LOCK: &str = ".lock";
/// There after an orderly stop only.
pub(crate) const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";

/// The longest name a file system takes.
const NAME_MAX: usize = 255;

/// The kinds of files named after an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Log,
    OffsetIndex,
    TimeIndex,
    TxnIndex,
    Snapshot,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Log,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TxnIndex,
        Self::Snapshot,
    ];

    fn suffix(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::OffsetIndex => "index",
            Self::TimeIndex => "timeindex",
            Self::TxnIndex => "txnindex",
            Self::Snapshot => "snapshot",
        }
    }
}

/// The name of a file: its offset in 20 digits, and its kind.
pub(crate) fn file_name(offset: i64, kind: Kind) -> String {
    format!("{offset:020}.{}", kind.suffix())
}

/// What a file's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    /// A file in use.
    Live { offset: i64, kind: Kind },
    /// The result of a compaction, complete.
    Swap { offset: i64, kind: Kind },
    /// The result of a compaction that was cut short.
    Cleaned { offset: i64 },
    /// Left over from other work that was cut short, or already deleted.
    Leftover,
    /// Anything else.
    Other,
}

impl FileName {
    /// Reads a name.
    pub(crate) fn parse(name: &str) -> Self {
        if [DELETED, TMP].iter().any(|end| name.ends_with(end)) {
            return Self::Leftover;
        }
        if let Some(stem) = name.strip_suffix(CLEANED) {
            return match parse_live(stem) {
                Some((offset, _)) => Self::Cleaned { offset },
                None => Self::Leftover,
            };
        }
        let (stem, is_swap) = match name.strip_suffix(SWAP) {
            Some(stem) => (stem, true),
            None => (name, false),
        };
        match parse_live(stem) {
            Some((offset, kind)) if is_swap => Self::Swap { offset, kind },
            Some((offset, kind)) => Self::Live { offset, kind },
            None => Self::Other,
        }
    }
}

fn parse_live(name: &str) -> Option<(i64, Kind)> {
    let (digits, suffix) = name.split_once('.')?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
    let all_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let offset = digits.parse().ok().filter(|_| all_digits)?;
    Some((offset, kind))
}

/// What a folder of a log directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FolderName {
    Live(TopicPartition),
    /// Deleted, still to be removed.
    Delete,
    /// Belongs to no partition that the cluster knows.
    Stray,
    /// A replica on its way to this directory.
    Future(TopicPartition),
    /// Not a partition's folder.
    Other,
}

impl FolderName {
    /// Reads a name.
    pub(crate) fn parse(name: &str) -> Self {
        for (suffix, is) in [("-delete", Self::Delete), ("-stray", Self::Stray)] {
            if name.ends_with(suffix) && is_marked(name, suffix) {
                return is;
            }
        }
        if name.ends_with("-future") && is_marked(name, "-future") {
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            return parse_partition(stem).map_or(Self::Other, Self::Future);
        }
        parse_partition(name).map_or(Self::Other, Self::Live)
    }
}

fn is_marked(name: &str, suffix: &str) -> bool {
    let stem = &name[..name.len() - suffix.len()];
    stem.rsplit_once('.')
        .is_some_and(|(stem, id)| !id.is_empty() && stem.contains('-'))
}

/// The partition that a folder is named after.
pub(crate) fn parse_partition(name: &str) -> Option<TopicPartition> {
    let (topic, partition) = name.rsplit_once('-')?;
    let digits = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
    if topic.is_empty() || !digits {
        return None;
    }
    Some(TopicPartition::new(topic, partition.parse().ok()?))
}

/// The name of a folder that is to be removed, `-delete`, or that nobody knows, `-stray`; the
/// topic is cut where the name would grow too long.
pub(crate) fn marked_folder(of: &TopicPartition, id: Uuid, suffix: &str) -> String {
    let hex: String = id.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let tail = format!("-{}.{hex}{suffix}", of.partition);
    let room = NAME_MAX - tail.len();
    // Topic names are ASCII, so any cut is between characters.
    let topic = of.topic.get(..room).unwrap_or(&of.topic);
    format!("{topic}{tail}")
}

/// Whether a partition's replica can be on its way anywhere: its folder's name is not cut.
pub(crate) fn has_future_folder(of: &TopicPartition) -> bool {
    future_folder(of, Uuid::ZERO).len() <= NAME_MAX
}

/// The name of a folder whose replica is on its way here.
pub(crate) fn future_folder(of: &TopicPartition, id: Uuid) -> String {
    let hex: String = id.0.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{of}.{hex}-future")
}

/// Reads the topic id of a partition's folder; `None` when it has none. A file of nothing, or of
/// zeros, is one that a crash overtook: no batch was written to that folder yet.
pub(crate) fn read_topic_id(disk: Disk, folder: &Path) -> Result<Option<TopicId>, Fault> {
    let path = folder.join(PARTITION_METADATA);
    if !disk.exists(&path) {
        return Ok(None);
    }
    let text = disk.read(&path).at(&path)?;
    if text.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let text = String::from_utf8(text).ok();
    let id = text.as_deref().and_then(parse_topic_id);
    match id {
        Some(id) => Ok(Some(id)),
        None => Err(Fault::Malformed {
            path,
            why: "not a version and a topic id",
        }),
    }
}

fn parse_topic_id(text: &str) -> Option<TopicId> {
    let mut lines = text.lines();
    let version = lines.next()?.strip_prefix("version:")?.trim();
    let id = lines.next()?.strip_prefix("topic_id:")?.trim();
    if version != "0" {
        return None;
    }
    id.parse().ok().map(TopicId)
}

/// Whether anything was ever written to the log of a partition's folder.
pub(crate) fn has_batches(disk: Disk, folder: &Path) -> Result<bool, Fault> {
    for entry in disk.list(folder).at(folder)? {
        let FileName::Live {
            kind: Kind::Log, ..
        } = FileName::parse(&entry.name)
        else {
            continue;
        };
        let path = folder.join(&entry.name);
        if disk.open(&path, Open::Read).at(&path)?.len().at(&path)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the topic id of a partition's folder.
pub(crate) fn write_topic_id(
    disk: Disk,
    folder: &Path,
    id: TopicId,
    replace: Replace,
) -> Result<(), Fault> {
    let path = folder.join(PARTITION_METADATA);
    let text = format!("version: 0\ntopic_id: {id}");
    replace(disk, &path, text.as_bytes()).at(&path)
}

/// Makes the folder of a partition whose first batch is about to be written.
pub(crate) fn make_folder(
    disk: Disk,
    folder: &Path,
    topic_id: Option<TopicId>,
) -> Result<(), Fault> {
    disk.create_dir_all(folder).at(folder)?;
    topic_id.map_or(Ok(()), |id| {
        write_topic_id(disk, folder, id, Disk::write_in_place)
    })
}

/// Who a log directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct MetaProperties {
    pub(crate) cluster_id: Option<String>,
    pub(crate) node_id: Option<i32>,
    pub(crate) directory_id: Option<DirectoryId>,
}

impl MetaProperties {
    /// Reads them from a directory; `None` when it was never formatted.
    pub(crate) fn read(disk: Disk, folder: &Path) -> Result<Option<Self>, Fault> {
        let path = folder.join(META_PROPERTIES);
        if !disk.exists(&path) {
            return Ok(None);
        }
        let text = String::from_utf8(disk.read(&path).at(&path)?).ok();
        match text.as_deref().and_then(Self::parse) {
            Some(properties) => Ok(Some(properties)),
            None => Err(Fault::Malformed {
                path,
                why: "not the properties of a log directory",
            }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut properties = Self::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let (key, value) = line.split_once(['=', ':'])?;
            // Java's writer escapes these two in values.
            let value = value.trim().replace("\\:", ":").replace("\\=", "=");
            match key.trim() {
                "cluster.id" => properties.cluster_id = Some(value),
                "node.id" | "broker.id" => properties.node_id = Some(value.parse().ok()?),
                "directory.id" => {
                    properties.directory_id = Some(DirectoryId(value.parse().ok()?));
                }
                "version" if value != "0" && value != "1" => return None,
                _ => {}
            }
        }
        Some(properties)
    }

    /// Writes them, version 1.
    pub(crate) fn write(&self, disk: Disk, folder: &Path) -> Result<(), Fault> {
        let path = folder.join(META_PROPERTIES);
        let mut text = String::from("#\n");
        if let Some(node) = self.node_id {
            text += &format!("node.id={node}\n");
        }
        if let Some(id) = self.directory_id {
            text += &format!("directory.id={id}\n");
        }
        text += "version=1\n";
        if let Some(cluster) = &self.cluster_id {
            text += &format!("cluster.id={cluster}\n");
        }
        disk.write_atomically(&path, text.as_bytes()).at(&path)
    }
}

/// The path of a file in a partition's folder.
pub(crate) fn path(folder: &Path, offset: i64, kind: Kind) -> PathBuf {
    folder.join(file_name(offset, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::disk::TempDir;

    #[test]
    fn file_names_are_read_as_they_are_written() {
        for kind in Kind::ALL {
            let name = file_name(42, kind);
            assert_eq!(
                FileName::parse(&name),
                FileName::Live { offset: 42, kind },
                "{name}"
            );
            assert_eq!(FileName::parse(&(name + ".deleted")), FileName::Leftover);
        }
        let swap = FileName::parse("00000000000000000007.index.swap");
        let kind = Kind::OffsetIndex;
        assert_eq!(swap, FileName::Swap { offset: 7, kind });
        let cleaned = FileName::parse("00000000000000000007.log.cleaned");
        assert_eq!(cleaned, FileName::Cleaned { offset: 7 });
        assert_eq!(FileName::parse("leader-epoch-checkpoint"), FileName::Other);
        assert_eq!(FileName::parse("7.log"), FileName::Other);
    }

    #[test]
    fn folder_names_are_split_at_the_last_dash() {
        let live = |topic: &str, partition| FolderName::Live(TopicPartition::new(topic, partition));
        assert_eq!(FolderName::parse("a-b-3"), live("a-b", 3));
        assert_eq!(
            FolderName::parse("dots.and_underscores-1-0"),
            live("dots.and_underscores-1", 0)
        );
        let of = TopicPartition::new("t", 1);
        let id = Uuid([0xab; 16]);
        let name = marked_folder(&of, id, "-delete");
        assert_eq!(name, format!("t-1.{}-delete", "ab".repeat(16)));
        assert_eq!(FolderName::parse(&name), FolderName::Delete);
        assert_eq!(
            FolderName::parse(&future_folder(&of, id)),
            FolderName::Future(of)
        );
        assert_eq!(
            FolderName::parse("remote-log-index-cache"),
            FolderName::Other
        );
        let long = TopicPartition::new("x".repeat(249), 0);
        assert_eq!(marked_folder(&long, id, "-stray").len(), 255);
    }

    #[test]
    fn a_directory_says_whose_it_is() {
        let dir = TempDir::new();
        assert_eq!(MetaProperties::read(Disk, dir.path()).unwrap(), None);
        let properties = MetaProperties {
            cluster_id: Some("QmFybmFiYXNGaXh0dXJlMQ".into()),
            node_id: Some(1),
            directory_id: Some(DirectoryId(Uuid([9; 16]))),
        };
        properties.write(Disk, dir.path()).unwrap();
        let read = MetaProperties::read(Disk, dir.path()).unwrap();
        assert_eq!(read, Some(properties));
        let id = TopicId(Uuid([5; 16]));
        assert_eq!(read_topic_id(Disk, dir.path()).unwrap(), None);
        let path = dir.path().join(PARTITION_METADATA);
        for replace in [Disk::write_atomically, Disk::write_in_place] {
            write_topic_id(Disk, dir.path(), id, replace).unwrap();
            assert_eq!(read_topic_id(Disk, dir.path()).unwrap(), Some(id));
            for lost in [&b""[..], &[0; 43]] {
                Disk.write_in_place(&path, lost).unwrap();
                assert_eq!(read_topic_id(Disk, dir.path()).unwrap(), None);
            }
        }
        Disk.write_in_place(&path, b"version: 0").unwrap();
        assert!(read_topic_id(Disk, dir.path()).is_err());
    }
}
