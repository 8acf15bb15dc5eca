//! What is due besides requests: checkpoints after appends, flushes after a roll, the removal of
//! deleted folders, directories that failed. Nothing runs while nothing is due.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{error, warn};

use super::agenda::Agenda;
use super::fault::Fault;
use crate::base::TopicPartition;
use crate::log::dir::DoomedFolder;
use crate::log::log;
use crate::os::clock;

/// Operations that are refused for now are told of so often.
const QUIET: Duration = Duration::from_secs(10);

/// What partitions ask of the background.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// Something was appended since the last checkpoint of high watermarks.
    dirty: AtomicBool,
    due: Mutex<Due>,
    wake: Notify,
    /// When an operation that was refused was last told of.
    complained: Mutex<Option<Instant>>,
    /// Partitions in which something may have to be deleted by age or size.
    pub(super) retention: Agenda,
    /// Partitions that are compacted, in which something may have to be.
    pub(super) cleaning: Agenda,
}

/// What is renamed away and waits for its removal.
#[derive(Debug)]
pub(crate) enum Doomed {
    /// A deleted partition's folder.
    Folder(DoomedFolder),
    /// Segments below a log's start.
    Files(log::Doomed),
}

impl Doomed {
    /// Removes it. Waits for the disk.
    pub(crate) fn remove(self) -> Result<(), crate::log::fault::Fault> {
        match self {
            Self::Folder(folder) => folder.remove(),
            Self::Files(files) => files.remove(),
        }
    }
}

/// An operation that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) path: PathBuf,
    /// What it was about was not there.
    pub(crate) is_gone: bool,
}

/// What is due as soon as possible, or at its time.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Logs that closed a segment.
    pub(crate) flushes: HashSet<TopicPartition>,
    /// Logs with records that must be durable soon, with their time.
    pub(crate) flushes_later: Vec<(Instant, TopicPartition)>,
    /// Partitions with which an operation failed.
    pub(crate) failed: Vec<(TopicPartition, Failure)>,
    /// Folders and files to remove, with their time.
    pub(crate) doomed: Vec<(Instant, Doomed)>,
    /// When logs that could not be made are tried again.
    pub(crate) again: Option<Instant>,
}

impl Due {
    /// When the next of what has a time is due.
    fn next(&self) -> Option<Instant> {
        let removals = self.doomed.iter().map(|(at, _)| *at);
        let flushes = self.flushes_later.iter().map(|(at, _)| *at);
        removals.chain(flushes).chain(self.again).min()
    }
}

impl Background {
    /// Notes an append: checkpoints are due after a while.
    pub(crate) fn appended(&self) {
        if !self.dirty.load(Ordering::Relaxed) && !self.dirty.swap(true, Ordering::AcqRel) {
            self.wake.notify_one();
        }
    }

    /// Asks for a flush of what a log has closed.
    pub(crate) fn flush(&self, of: &TopicPartition) {
        self.due.lock().flushes.insert(of.clone());
        self.wake.notify_one();
    }

    /// Asks for a flush at a time.
    pub(crate) fn flush_at(&self, at: Instant, of: &TopicPartition) {
        self.due.lock().flushes_later.push((at, of.clone()));
        self.wake.notify_one();
    }

    /// Reports a fault of a log. Its directory is to be taken out of use, unless that is as good as
    /// before.
    pub(crate) fn fail(&self, of: &TopicPartition, fault: &Fault) {
        if fault.is_passing() {
            if self.may_complain() {
                warn!(partition = %of, %fault, "an operation on a log is refused for now");
            }
            return;
        }
        if fault.is_damage() {
            if self.may_complain() {
                error!(partition = %of, %fault, "a log is damaged, what needs that part is refused");
            }
            return;
        }
        error!(partition = %of, %fault, "an operation on a log failed");
        let failure = Failure {
            path: fault.path().to_owned(),
            is_gone: fault.is_not_found(),
        };
        self.due.lock().failed.push((of.clone(), failure));
        self.wake.notify_one();
    }

    /// Reports that a file of a log was not there for its reader. What is written to the log goes on:
    /// should its directory be gone, that fails before long.
    pub(crate) fn miss(&self, of: &TopicPartition, fault: &Fault) {
        if self.may_complain() {
            error!(partition = %of, %fault, "a file of a log is gone, what it held is not served");
        }
    }

    /// Whether it was quiet about refused operations for long enough: where there is no room, every
    /// append is one.
    fn may_complain(&self) -> bool {
        let mut last = self.complained.lock();
        let now = clock::now();
        if last.is_some_and(|last| now < last + QUIET) {
            return false;
        }
        *last = Some(now);
        true
    }

    /// Has something removed when its time has come.
    pub(crate) fn remove(&self, at: Instant, doomed: Doomed) {
        self.due.lock().doomed.push((at, doomed));
        self.wake.notify_one();
    }

    /// Has logs that could not be made tried again.
    pub(crate) fn try_again(&self, at: Instant) {
        self.due.lock().again = Some(at);
        self.wake.notify_one();
    }

    /// Waits until something new is due.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Whether something was appended since the last round of checkpoints.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// A round of checkpoints begins: the next append asks for another.
    pub(crate) fn clean(&self) {
        self.dirty.store(false, Ordering::Release);
    }

    /// Whether anything besides checkpoints is due now.
    pub(crate) fn has_due(&self, now: Instant) -> bool {
        let due = self.due.lock();
        !due.flushes.is_empty() || !due.failed.is_empty() || due.next().is_some_and(|at| at <= now)
    }

    /// When the next removal, flush or attempt is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.lock().next()
    }

    /// Takes what is due now.
    pub(crate) fn take(&self, now: Instant) -> Due {
        let mut due = self.due.lock();
        let mut taken = std::mem::take(&mut *due);
        let (ripe, waiting) = taken.doomed.into_iter().partition(|(at, _)| *at <= now);
        due.doomed = waiting;
        due.again = taken.again.filter(|at| *at > now);
        taken.again = taken.again.filter(|at| *at <= now);
        taken.doomed = ripe;
        let (ripe, waiting): (Vec<_>, _) = taken
            .flushes_later
            .into_iter()
            .partition(|(at, _)| *at <= now);
        due.flushes_later = waiting;
        taken.flushes_later = Vec::new();
        taken.flushes.extend(ripe.into_iter().map(|(_, of)| of));
        taken
    }
}
