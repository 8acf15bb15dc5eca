//! Replicas on their way from one directory to another: made, opened again, given up, and put in the
//! place of what they were copied from.
//!
//! ```text
//! names                                             after a crash
//! A/t-0              B/t-0.<id>-future              the copy goes on, or is given up
//! A/t-0              B/t-0                          two: the one that knows more is used
//! A/t-0.<id>-delete  B/t-0                          done
//! ```
//!
//! Each line is durable before the next begins, and nothing is appended between the first and the
//! last. Where the copy ends, all of it is durable before it gets its name (LogManager).

use std::sync::Arc;

use super::config::LogConfig;
use super::dir::{DoomedFolder, LogDir, PartitionFolder};
use super::dirs::{LogDirs, LogHandle};
use super::fault::Fault;
use super::log::Log;
use crate::base::{TopicId, TopicPartition};

/// A log that goes on in another directory.
#[derive(Debug)]
pub(crate) struct Promoted {
    pub(crate) dir: Arc<LogDir>,
    /// Where it lay before, and what is to be removed there.
    pub(crate) before: (Arc<LogDir>, Result<DoomedFolder, Fault>),
}

impl LogDirs {
    /// The copy of a partition's log that is on its way.
    pub(crate) fn future(&self, of: &TopicPartition) -> Option<LogHandle> {
        self.futures.read().get(of).cloned()
    }

    /// All that are on their way.
    pub(crate) fn futures(&self) -> Vec<(TopicPartition, LogHandle)> {
        let futures = self.futures.read();
        let all = futures.iter();
        all.map(|(of, handle)| (of.clone(), handle.clone()))
            .collect()
    }

    /// Makes an empty copy in a directory.
    pub(crate) fn create_future(
        &self,
        of: &TopicPartition,
        dir: &Arc<LogDir>,
        topic_id: Option<TopicId>,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<LogHandle, Fault> {
        let log = dir.create_future_log(of, topic_id, config, now_ms)?;
        Ok(self.keep_future(log, dir, topic_id))
    }

    /// Opens a copy that the last process left.
    pub(crate) fn open_future(
        &self,
        folder: &PartitionFolder,
        dir: &Arc<LogDir>,
        config: Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<LogHandle, Fault> {
        let log = dir.open_log(folder, config, now_ms, &mut |_| ())?;
        Ok(self.keep_future(log, dir, folder.topic_id))
    }

    fn keep_future(&self, log: Log, dir: &Arc<LogDir>, topic_id: Option<TopicId>) -> LogHandle {
        let of = log.partition().clone();
        let handle = LogHandle::new(log, dir, topic_id);
        self.futures.write().insert(of, handle.clone());
        handle
    }

    /// Gives up a copy; what is left of it is to be removed later. Its name is gone for good when
    /// this returns: there may be another copy at once.
    pub(crate) fn delete_future(
        &self,
        of: &TopicPartition,
    ) -> Option<(Arc<LogDir>, Result<DoomedFolder, Fault>)> {
        let handle = self.futures.write().remove(of)?;
        let doomed = handle.dir.delete(&mut handle.log.lock());
        let doomed = doomed.and_then(|doomed| handle.dir.sync().map(|()| doomed));
        Some((handle.dir, doomed))
    }

    /// Takes a copy out of use and leaves it where it is.
    pub(crate) fn forget_future(&self, of: &TopicPartition) {
        self.futures.write().remove(of);
    }

    /// Puts a copy in use whose original is gone.
    pub(crate) fn adopt(&self, of: &TopicPartition) -> Option<Result<LogHandle, Fault>> {
        let handle = self.futures.write().remove(of)?;
        if let Err(fault) = handle.dir.promote(&mut handle.log.lock()) {
            return Some(Err(fault));
        }
        self.logs.write().insert(of.clone(), handle.clone());
        Some(Ok(handle))
    }

    /// Has a log go on as its copy, which must have the same end; `log` is the one that is served,
    /// locked. When this fails the log is as it was, and the copy's directory has failed. `None`
    /// when there is no copy any more.
    pub(crate) fn promote(
        &self,
        of: &TopicPartition,
        log: &mut Log,
    ) -> Option<Result<Promoted, Fault>> {
        let (present, future) = (self.log(of)?, self.future(of)?);
        let mut copy = future.log.lock();
        if let Err(fault) = settle(of, log, &mut copy, &present, &future) {
            return Some(Err(fault));
        }
        log.change_places(&mut copy);
        self.futures.write().remove(of);
        let handle = LogHandle {
            dir: future.dir.clone(),
            ..present.clone()
        };
        self.logs.write().insert(of.clone(), handle);
        let before = present.dir;
        let doomed = before.delete(&mut copy).and_then(|doomed| {
            before.set_cleaned_to(of, None)?;
            before.sync().map(|()| doomed)
        });
        drop(copy);
        Some(Ok(Promoted {
            dir: future.dir,
            before: (before, doomed),
        }))
    }

    /// Moves a log of which nothing is on disk.
    pub(crate) fn move_unmade(
        &self,
        of: &TopicPartition,
        log: &mut Log,
        to: &Arc<LogDir>,
        now_ms: i64,
    ) -> Result<(), Fault> {
        let Some(present) = self.log(of) else {
            return Ok(());
        };
        let mut there = to.create_log_later(of, present.topic_id, log.config(), now_ms)?;
        log.change_places(&mut there);
        let handle = LogHandle {
            dir: to.clone(),
            ..present
        };
        self.logs.write().insert(of.clone(), handle);
        Ok(())
    }
}

/// Makes all of the copy durable, and then its name.
fn settle(
    of: &TopicPartition,
    log: &Log,
    copy: &mut Log,
    present: &LogHandle,
    future: &LogHandle,
) -> Result<(), Fault> {
    log.complete(copy)?;
    let cleaned_to = present.dir.cleaned_to(of);
    future.dir.set_cleaned_to(of, cleaned_to)?;
    future.dir.promote(copy)
}
