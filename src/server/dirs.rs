//! The directories that the options name, taken into use. One that cannot be read or written is left
//! out, and the rest goes on; a mistake is refused: a directory that is in use, or another node's
//! (KafkaRaftServer.initializeLogDirs, LogManager).

use std::path::{Path, PathBuf};

use thiserror::Error;
use tracing::{error, info};

use crate::base::DirectoryId;
use crate::config::BrokerConfig;
use crate::log;
use crate::log::dir::{Held, Identity};
use crate::log::dirs::{FailedDir, LogDirs};
use crate::log::layout::MetaProperties;
use crate::os::disk::Disk;
use crate::os::random;

/// Closed segments that stay open; one descriptor each (three files at most of one segment).
const OPEN_FILES: usize = 4096;

/// The folder of the metadata log, in one directory only.
const METADATA_LOG: &str = "__cluster_metadata-0";

/// Why a node does not start on its directories.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Mistake(#[from] log::fault::Fault),
    #[error("Encountered I/O error in metadata log directory {path}. Cannot continue. ({cause})")]
    Metadata {
        path: PathBuf,
        cause: log::fault::Fault,
    },
    #[error("None of the log directories can be used: {0}")]
    NoneLeft(String),
    #[error(
        "No `meta.properties` found in {}, where the metadata log should be, but in another log \
         directory: is it not mounted?",
        .0.display()
    )]
    NoMetadata(PathBuf),
    #[error(
        "Found unexpected metadata location in data directory `{}` (the configured metadata \
         directory is {}).",
        .0.display(), .1.display()
    )]
    Misplaced(PathBuf, PathBuf),
}

/// The directories of a node, in use.
pub(super) struct Opened {
    pub(super) dirs: LogDirs,
    pub(super) cluster_id: String,
    /// The id of the directory of the metadata log.
    pub(super) metadata_id: DirectoryId,
    /// That directory where it is none of the log directories; to be dropped last.
    pub(super) metadata: Option<Held>,
}

/// Opens them.
pub(super) fn open(config: &BrokerConfig) -> Result<Opened, Fault> {
    let absolute = |path: String| Disk.absolute(path.as_ref());
    let paths: Vec<PathBuf> = config.data_dirs().into_iter().map(absolute).collect();
    let metadata = metadata_dir(config);
    let cluster_id = cluster_id(&paths, &metadata)?;
    for path in paths.iter().filter(|path| **path != metadata) {
        let other = path.join(METADATA_LOG);
        if Disk.exists(&other) {
            return Err(Fault::Misplaced(other, metadata));
        }
    }
    let identity = Identity {
        cluster_id: cluster_id.clone(),
        node_id: config.node_id,
    };
    // Before any other directory says whose it is: where a new node ends in between, the next start
    // must not take the one that says nothing for a disk that is not mounted.
    let held = Held::take(Disk, &metadata, &identity);
    let held = held.map_err(|fault| refuse(&metadata, &metadata, fault))?;
    let metadata_id = held.id();
    // A log directory is held as such.
    let held = (!paths.contains(&metadata)).then_some(held);
    let (dirs, failed) = LogDirs::open(Disk, &paths, &identity, OPEN_FILES);
    let mut reasons = Vec::new();
    for FailedDir { path, fault } in failed {
        if path == metadata || is_mistake(&fault) {
            return Err(refuse(&path, &metadata, fault));
        }
        error!(dir = %path.display(), %fault, "a log directory cannot be used");
        reasons.push(fault.to_string());
    }
    if let Some(held) = &held {
        dirs.check_unlike(held)?;
    }
    if dirs.dirs().is_empty() {
        return Err(Fault::NoneLeft(reasons.join("; ")));
    }
    for dir in dirs.dirs() {
        info!(dir = %dir.path().display(), %cluster_id, "the data lies here");
    }
    Ok(Opened {
        dirs,
        cluster_id,
        metadata_id,
        metadata: held,
    })
}

/// Whether somebody has to put it right before the node may start.
fn is_mistake(fault: &log::fault::Fault) -> bool {
    use log::fault::Fault;
    matches!(fault, Fault::Locked { .. } | Fault::Foreign { .. })
}

fn refuse(path: &Path, metadata: &Path, fault: log::fault::Fault) -> Fault {
    match path == metadata && !is_mistake(&fault) {
        true => unreadable(path, fault),
        false => Fault::Mistake(fault),
    }
}

fn unreadable(path: &Path, cause: log::fault::Fault) -> Fault {
    let path = path.to_owned();
    Fault::Metadata { path, cause }
}

/// The cluster's id: what a directory says, else `CLUSTER_ID`, else a new one. Where any directory
/// says, that of the metadata must: an empty folder there is a disk that is not mounted, and a new
/// cluster in it would not know what the other directories hold.
fn cluster_id(paths: &[PathBuf], metadata: &Path) -> Result<String, Fault> {
    let mut sorted: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    sorted.push(metadata);
    sorted.sort_unstable();
    sorted.dedup();
    let mut known = None;
    let mut is_metadata_known = false;
    for path in sorted {
        let found = MetaProperties::read(Disk, path);
        let found = match found {
            Ok(found) => found,
            Err(fault) if path == metadata => return Err(unreadable(path, fault)),
            // Told of when it is opened.
            Err(_) => continue,
        };
        is_metadata_known |= path == metadata && found.is_some();
        known = known.or_else(|| found?.cluster_id);
    }
    is_metadata_known |= Disk.exists(&metadata.join(METADATA_LOG));
    if known.is_some() && !is_metadata_known {
        return Err(Fault::NoMetadata(metadata.to_owned()));
    }
    let given = std::env::var("CLUSTER_ID").ok().filter(|id| !id.is_empty());
    let new = || given.unwrap_or_else(|| random::uuid().to_string());
    Ok(known.unwrap_or_else(new))
}

/// Where the metadata log lies.
pub(super) fn metadata_dir(config: &BrokerConfig) -> PathBuf {
    let dir = config.metadata_dir();
    Disk.absolute(dir.as_deref().unwrap_or("/tmp/kafka-logs").as_ref())
}
