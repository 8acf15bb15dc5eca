//! Trouble of this layer.

/// What went wrong with a replica; it is ours, no client caused it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The log below.
    #[error(transparent)]
    Log(#[from] crate::log::fault::Fault),
}
