//! Trouble of this layer.

/// What went wrong with a replica; it is ours, no client caused it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The log below.
    #[error(transparent)]
    Log(#[from] crate::log::fault::Fault),
}

impl Fault {
    /// Whether the process was short of something, and its disk is as good as before.
    pub(crate) fn is_passing(&self) -> bool {
        let Self::Log(fault) = self;
        fault.is_passing()
    }
}
