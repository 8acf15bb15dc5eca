//! Trouble of this layer.

use std::path::Path;

/// What went wrong with a replica; it is ours, no client caused it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The log below.
    #[error(transparent)]
    Log(#[from] crate::log::fault::Fault),
}

impl Fault {
    /// Whether the process was short of something or the disk is full, and what it holds is as good
    /// as before.
    pub(crate) fn is_passing(&self) -> bool {
        let Self::Log(fault) = self;
        fault.is_passing() || fault.is_full()
    }

    /// Whether something that was written is not as it was, which concerns this log alone.
    pub(crate) fn is_damage(&self) -> bool {
        let Self::Log(fault) = self;
        fault.is_damage()
    }

    /// Whether a file was not there.
    pub(crate) fn is_not_found(&self) -> bool {
        let Self::Log(fault) = self;
        fault.is_not_found()
    }

    /// Where it happened.
    pub(crate) fn path(&self) -> &Path {
        let Self::Log(fault) = self;
        fault.path()
    }
}
