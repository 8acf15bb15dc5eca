//! What goes wrong below a log: the disk, and files that are not what they should be.

use std::io;
use std::path::{Path, PathBuf};

use crate::protocol::records::batch::BadBatch;
use crate::protocol::records::iter::BadRecord;

/// Trouble of ours: the directory it happened in is no longer to be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The operating system refused an operation.
    #[error("{path}: {source}")]
    Disk { path: PathBuf, source: io::Error },
    /// A batch that was whole when it was written is not.
    #[error("{path} at {position}: {source}")]
    Batch {
        path: PathBuf,
        position: u64,
        source: BadBatch,
    },
    /// Records that were whole when they were written are not.
    #[error("{path} at {position}: {source}")]
    Records {
        path: PathBuf,
        position: u64,
        source: BadRecord,
    },
    /// A small file does not read as it should.
    #[error("{path}: {why}")]
    Malformed { path: PathBuf, why: &'static str },
    /// Another process uses the directory.
    #[error(
        "Failed to acquire lock on file .lock in {path}. A Kafka instance in another process or \
         thread is using this directory."
    )]
    Locked { path: PathBuf },
    /// The directory belongs to another node or cluster; the words are Kafka's
    /// (MetaPropertiesEnsemble.verify).
    #[error("{words}")]
    Foreign { path: PathBuf, words: String },
}

impl Fault {
    /// Where it happened.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Disk { path, .. }
            | Self::Batch { path, .. }
            | Self::Records { path, .. }
            | Self::Malformed { path, .. }
            | Self::Locked { path }
            | Self::Foreign { path, .. } => path,
        }
    }

    /// Whether there is no room for what was to be written. Nothing that was written before is in
    /// danger: what does not fit is refused until there is room again. (Apache Kafka takes the
    /// directory out of use.)
    pub(crate) fn is_full(&self) -> bool {
        let Self::Disk { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Whether the process ran out of descriptors or memory: that passes, and says nothing of the
    /// directory.
    pub(crate) fn is_passing(&self) -> bool {
        let Self::Disk { source, .. } = self else {
            return false;
        };
        matches!(
            source.raw_os_error(),
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)
        )
    }

    /// Whether a log that could not be made because of it says nothing of its directory: there is no
    /// room, or something else has its name. Nothing acknowledged is in danger. (Apache Kafka takes
    /// the directory out of use, and ends when it was the last.)
    pub(crate) fn spares_directory(&self) -> bool {
        match self {
            Self::Disk { source, .. } => {
                self.is_passing()
                    || self.is_full()
                    || matches!(
                        source.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
                    )
            }
            Self::Malformed { .. } => true,
            Self::Batch { .. }
            | Self::Records { .. }
            | Self::Locked { .. }
            | Self::Foreign { .. } => false,
        }
    }

    /// Whether something that was written is not as it was: that says nothing of other logs, and the
    /// disk has refused nothing. (Apache Kafka answers CORRUPT_MESSAGE to who reads it, and takes a
    /// directory out of use for a small file.)
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Batch { .. } | Self::Records { .. } | Self::Malformed { .. } => true,
            Self::Disk { .. } | Self::Locked { .. } | Self::Foreign { .. } => false,
        }
    }

    /// Whether a file was not there.
    pub(crate) fn is_not_found(&self) -> bool {
        match self {
            Self::Disk { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Batch { .. }
            | Self::Records { .. }
            | Self::Malformed { .. }
            | Self::Locked { .. }
            | Self::Foreign { .. } => false,
        }
    }
}

/// Names the file that an operation failed on.
pub(crate) trait At<T> {
    /// Turns an error of the disk into a fault at `path`.
    fn at(self, path: &Path) -> Result<T, Fault>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Fault> {
        self.map_err(|source| Fault::Disk {
            path: path.to_owned(),
            source,
        })
    }
}
