//! Where a machine's records become durable.

use std::future::Future;
use std::pin::Pin;

/// Ends when what was appended is committed, or can no longer be.
pub(crate) type Committed = Pin<Box<dyn Future<Output = Result<(), Lost>> + Send>>;

/// Appends batches in order; each is committed after all before it.
pub(crate) trait Journal: Send {
    /// The machine's records.
    type Record: Send;

    /// The offset that the next record will get.
    fn end_offset(&self) -> i64;

    /// Appends records as `append` does, if that needs no wait; `None` when it may, and nothing was
    /// done.
    fn append_now(&mut self, records: &[Self::Record]) -> Option<Result<Committed, Lost>>;

    /// Appends records as one atomic batch. An error means that nothing was written and that
    /// this node no longer leads: the machine must be dropped.
    fn append(
        &mut self,
        records: &[Self::Record],
    ) -> impl Future<Output = Result<Committed, Lost>> + Send;
}

/// This node no longer leads the journal; what was not committed may or may not survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this node no longer leads the log")]
pub(crate) struct Lost;
