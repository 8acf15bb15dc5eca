//! What can go wrong with the metadata log, all of it final: a node without it must stop.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why the quorum did not start or had to stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The disk refused.
    #[error("the disk refused to {action} {path}: {source}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Damage in the middle of the log: what follows it was acknowledged, so nothing may be cut.
    #[error(
        "the metadata log is damaged: {path} holds no valid batch at byte {position}, \
         but {next_path} has one at byte {next}"
    )]
    Damaged {
        path: PathBuf,
        position: u64,
        next_path: PathBuf,
        next: u64,
    },
    /// A batch does not follow the end of the log.
    #[error("a batch was to be written that does not follow the log's end at offset {end}")]
    Misplaced { end: i64 },
    /// The log begins after offset 0 and nothing tells what came before.
    #[error("the metadata log begins at offset {start} and no snapshot reaches that far")]
    NoSnapshot { start: i64 },
    /// A snapshot cannot be read.
    #[error("the snapshot {path} cannot be read: {reason}")]
    Snapshot { path: PathBuf, reason: &'static str },
    /// A batch with a good checksum holds records that this release cannot read.
    #[error("the record at offset {offset} of the metadata log cannot be read")]
    Record {
        offset: i64,
        source: Box<dyn Error + Send + Sync>,
    },
    /// A small file of the folder has an unknown form.
    #[error("{path} cannot be read")]
    State {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// The consensus core stopped.
    #[error("the metadata quorum stopped")]
    Consensus {
        source: Box<dyn Error + Send + Sync>,
    },
    /// The core's thread ended before it was told to.
    #[error("the thread of the metadata quorum ended")]
    Ended,
}

/// Adds to an I/O error what was tried and where.
pub(super) trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, Fault>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, Fault> {
        self.map_err(|source| Fault::Io {
            action,
            path: path.to_owned(),
            source,
        })
    }
}
