//! Logs that cannot be opened because of what their files hold. Each concerns its partition alone:
//! that is not served, and everything else in the directory is.

use std::sync::Arc;

use tracing::error;

use super::dir::{DoomedFolder, LogDir, PartitionFolder};
use super::dirs::LogDirs;
use super::fault::Fault;
use crate::base::TopicPartition;

/// A log that could not be opened.
#[derive(Debug)]
pub(super) struct Damaged {
    folder: PartitionFolder,
    pub(super) dir: Arc<LogDir>,
}

impl LogDirs {
    /// Notes that a log could not be opened; what is left of it stays as it is.
    pub(super) fn note_damaged(&self, dir: &Arc<LogDir>, folder: &PartitionFolder, fault: &Fault) {
        error!(
            partition = %folder.partition,
            %fault,
            "a log is damaged, its partition is not served: mend or move away its folder, and start \
             the node again"
        );
        let damaged = Damaged {
            folder: folder.clone(),
            dir: Arc::clone(dir),
        };
        let of = folder.partition.clone();
        self.damaged.write().insert(of, damaged);
    }

    /// Takes a log out of use of which files are gone; says whether it was in use.
    pub(crate) fn give_up(&self, of: &TopicPartition) -> bool {
        let Some(handle) = self.logs.write().remove(of) else {
            return false;
        };
        error!(
            partition = %of,
            "files of a log are gone, its partition is not served until the node starts again"
        );
        let folder = PartitionFolder {
            partition: of.clone(),
            path: handle.log.lock().folder().to_owned(),
            topic_id: handle.topic_id,
            is_future: false,
        };
        let dir = handle.dir;
        let damaged = Damaged { folder, dir };
        self.damaged.write().insert(of.clone(), damaged);
        true
    }

    /// Whether a partition has a log here that could not be opened, and no other.
    pub(crate) fn is_damaged(&self, of: &TopicPartition) -> bool {
        self.damaged.read().contains_key(of) && self.log(of).is_none()
    }

    /// Takes the damaged logs of a topic away; what is left of them is to be removed later.
    pub(crate) fn delete_damaged(&self, topic: &str) -> Vec<DoomedFolder> {
        let mut damaged = self.damaged.write();
        let gone = damaged.extract_if(|of, _| &*of.topic == topic);
        let gone = gone.filter_map(|(of, log)| match log.dir.delete_unopened(&log.folder) {
            Ok(doomed) => Some(doomed),
            Err(fault) if fault.is_not_found() => None,
            Err(fault) => {
                error!(partition = %of, %fault, "a damaged log cannot be taken away");
                None
            }
        });
        gone.collect()
    }
}
