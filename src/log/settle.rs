//! What the disk must know of a log before a batch is written: its folder, whose it is, and the
//! leader's epoch.

use super::checkpoint::{self, LEADER_EPOCHS};
use super::epochs::Epochs;
use super::fault::{At, Fault};
use super::layout;
use super::log::Log;
use crate::base::{LeaderEpoch, TopicId};
use crate::os::disk::{Disk, Open};

/// What is needed to make the folder of a log that was never written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmade {
    pub(super) topic_id: Option<TopicId>,
}

impl Log {
    /// A new leader's epoch starts where the log ends (or at its first batch, on a follower). It is
    /// stored before the first batch of it is written: without one a start that does not know it ends
    /// up the same, and thousands of logs that are only read cost no sync when a leader takes over.
    pub(crate) fn begin_epoch(&mut self, epoch: LeaderEpoch, start: i64) -> Result<(), Fault> {
        if epoch.0 < 0 || self.epochs.latest() == Some(epoch) {
            return Ok(());
        }
        let mut epochs = self.epochs.clone();
        if epochs.assign(epoch, start) {
            self.shared.set_epochs(epochs.clone());
            self.epochs = epochs;
            self.owes_epoch = true;
            if !self.is_settled {
                // A new log tells of it at once, which costs no sync.
                self.store_epoch()?;
            }
        }
        Ok(())
    }

    fn store_epoch(&mut self) -> Result<(), Fault> {
        if self.owes_epoch && !self.is_unmade() {
            self.write_epochs(&self.epochs)?;
            self.owes_epoch = false;
        }
        Ok(())
    }

    /// Makes the log ready for its first batch of an epoch.
    pub(super) fn ready(&mut self, epoch: LeaderEpoch, start: i64) -> Result<(), Fault> {
        self.make()?;
        self.begin_epoch(epoch, start)?;
        self.store_epoch()?;
        self.settle()
    }

    /// Whether nothing of it is on disk: it was made without a folder, and never written to.
    pub(crate) fn is_unmade(&self) -> bool {
        self.unmade.is_some()
    }

    /// Makes the folder of a log that has none yet.
    pub(super) fn make(&mut self) -> Result<(), Fault> {
        let Some(Unmade { topic_id }) = self.unmade else {
            return Ok(());
        };
        layout::make_folder(self.cache.disk(), &self.folder, topic_id)?;
        self.active_segment().create_files()?;
        self.active_segment().reserve(&self.config())?;
        self.write_epochs(&self.epochs)?;
        (self.unmade, self.owes_epoch) = (None, false);
        Ok(())
    }

    fn write_epochs(&self, epochs: &Epochs) -> Result<(), Fault> {
        let path = self.folder.join(LEADER_EPOCHS);
        let replace = match self.is_settled {
            true => Disk::write_atomically,
            false => Disk::write_in_place,
        };
        checkpoint::write_epochs(self.cache.disk(), &path, &epochs.entries(), replace)
    }

    pub(super) fn store_epochs(&mut self, epochs: Epochs) -> Result<(), Fault> {
        if !self.is_unmade() {
            self.write_epochs(&epochs)?;
        }
        self.shared.set_epochs(epochs.clone());
        (self.epochs, self.owes_epoch) = (epochs, false);
        Ok(())
    }

    /// Takes epochs over that cannot be stored now; the next append stores them.
    pub(super) fn take_epochs(&mut self, epochs: Epochs) {
        self.shared.set_epochs(epochs.clone());
        (self.epochs, self.owes_epoch) = (epochs, true);
    }

    /// Whether an append need not wait for the disk to know this log and its epoch.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled && !self.owes_epoch
    }

    /// Makes the folder, its topic id and its epochs durable before the first batch is written: a
    /// crash may take a folder without batches, which the metadata then asks for again, but must not
    /// leave batches that do not say whose they are (UnifiedLog.maybeFlushMetadataFile).
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        if self.is_settled {
            return Ok(());
        }
        let disk = self.cache.disk();
        for name in [layout::PARTITION_METADATA, LEADER_EPOCHS] {
            let path = self.folder.join(name);
            if disk.exists(&path) {
                let file = disk.open(&path, Open::Read).at(&path)?;
                file.sync_data().at(&path)?;
            }
        }
        disk.sync_dir(&self.folder).at(&self.folder)?;
        if let Some(parent) = self.folder.parent() {
            disk.sync_dir(parent).at(parent)?;
        }
        self.is_settled = true;
        Ok(())
    }
}
