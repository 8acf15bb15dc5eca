//! What the parts of the quorum share: the log, what is told outside, and how trouble ends it.

use std::path::PathBuf;
use std::sync::Arc;

use openraft::{AnyError, ErrorSubject, ErrorVerb, StorageIOError};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::error;

use crate::base::{DirectoryId, NodeId};
use crate::os::disk::Disk;

use super::entry::StorageError;
use super::fault::Fault;
use super::flusher::Flusher;
use super::log::{Basis, MetadataLog};
use super::observer::Board;
use super::side::{Anchor, Form, QuorumState};

/// State that more than one part works on; each lock guards a few lines.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) node: NodeId,
    pub(super) directory: DirectoryId,
    pub(super) voters: Vec<NodeId>,
    pub(super) disk: Disk,
    pub(super) dir: PathBuf,
    pub(super) log: Mutex<MetadataLog>,
    pub(super) flusher: Flusher,
    pub(super) board: Arc<Board>,
    /// The offset after the last record known to be committed.
    pub(super) committed: watch::Sender<i64>,
    /// The newest leader change that was replayed.
    pub(super) led: watch::Sender<Led>,
    /// A snapshot that is being put in place of the log.
    pub(super) pending: Mutex<Option<(Anchor, Basis)>>,
    /// The vote of an only voter, not yet written.
    pub(super) late_vote: Mutex<Option<QuorumState>>,
    /// Wakes the one who asks for snapshots.
    pub(super) snapshot_due: Notify,
    pub(super) fault: watch::Sender<Option<Arc<Fault>>>,
}

/// Who began to lead, and in which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Led {
    pub(super) leader: i32,
    pub(super) epoch: i32,
}

impl Shared {
    /// Keeps the first fault for whoever watches, and gives openraft an error that ends it.
    pub(super) fn fail(&self, fault: Fault) -> StorageError {
        let error = AnyError::new(&fault);
        self.report(fault);
        StorageIOError::new(ErrorSubject::Store, ErrorVerb::Write, error).into()
    }

    /// Keeps the first fault; nothing of the log may be believed after it.
    pub(super) fn report(&self, fault: Fault) {
        self.fault.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                let source = std::error::Error::source(&fault).map(ToString::to_string);
                error!(%fault, source, "the metadata log failed, the node must stop");
                *slot = Some(Arc::new(fault));
            }
            first
        });
    }

    /// How `quorum-state` is written now.
    pub(super) fn form(&self, kraft_version: i16) -> Form {
        if kraft_version == 0 {
            Form::Static(self.voters.clone())
        } else {
            Form::Dynamic(self.directory)
        }
    }

    /// Whether nobody else takes part in decisions.
    pub(super) fn is_alone(&self) -> bool {
        is_alone(&self.log.lock(), self.node)
    }
}

/// Whether `node` is the only member, voter or learner.
pub(super) fn is_alone(log: &MetadataLog, node: NodeId) -> bool {
    let mut members = log.members().nodes();
    members.next().is_some_and(|(id, _)| *id == node.0) && members.next().is_none()
}
