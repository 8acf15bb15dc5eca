//! Logs that cannot be opened because of what their files hold, or that somebody took files of. Each
//! concerns its partition alone: that is not served, and everything else in the directory is.

use std::sync::Arc;

use tracing::error;

use super::dir::{DoomedFolder, Kept, LogDir, PartitionFolder};
use super::dirs::LogDirs;
use super::fault::Fault;
use crate::base::{DirectoryId, TopicId, TopicPartition};

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
        let of = &folder.partition;
        self.note(dir, folder.clone(), dir.told(of));
    }

    fn note(&self, dir: &Arc<LogDir>, folder: PartitionFolder, kept: Kept) {
        let of = folder.partition.clone();
        dir.keep(&of, Some(kept));
        let dir = Arc::clone(dir);
        self.damaged.write().insert(of, Damaged { folder, dir });
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
        let kept = Kept {
            recovery_point: handle.log.lock().recovery_point(),
            log_start: handle.reader.log_start_offset(),
            high_watermark: handle.dir.told(of).high_watermark,
        };
        self.note(&handle.dir, folder, kept);
        true
    }

    /// Whether the log of a partition is one that could not be opened: that in the directory that it
    /// is to be in, or any while there is no other. One of another topic of that name is put aside.
    pub(crate) fn is_damaged(
        &self,
        of: &TopicPartition,
        topic_id: TopicId,
        wanted: Option<DirectoryId>,
    ) -> bool {
        let mut all = self.damaged.write();
        let Some(damaged) = all.get(of) else {
            return false;
        };
        let is_of_another = damaged.folder.topic_id.is_some_and(|id| id != topic_id);
        if !is_of_another {
            return Some(damaged.dir.id()) == wanted || self.log(of).is_none();
        }
        match damaged.dir.set_aside_unopened(&damaged.folder) {
            Ok(()) => {
                damaged.dir.keep(of, None);
                all.remove(of);
                false
            }
            Err(fault) => {
                error!(partition = %of, %fault, "a damaged log cannot be put aside");
                true
            }
        }
    }

    /// Whether some log of a partition could not be opened.
    pub(crate) fn has_damaged(&self, of: &TopicPartition) -> bool {
        self.damaged.read().contains_key(of)
    }

    /// Takes the damaged logs of a topic away; what is left of them is to be removed later.
    pub(crate) fn delete_damaged(&self, topic: &str) -> Vec<DoomedFolder> {
        let mut damaged = self.damaged.write();
        let gone = damaged.extract_if(|of, _| &*of.topic == topic);
        let gone = gone.filter_map(|(of, log)| match log.dir.delete_unopened(&log.folder) {
            Ok(doomed) => {
                log.dir.keep(&of, None);
                Some(doomed)
            }
            Err(fault) if fault.is_not_found() => None,
            Err(fault) => {
                error!(partition = %of, %fault, "a damaged log cannot be taken away");
                None
            }
        });
        gone.collect()
    }
}
