//! What compaction tells of its last round (the MBeans of LogCleaner and LogCleanerManager).

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::manager::Manager;
use crate::log::cleaner::Cleaned;
use crate::os::clock;

/// How compaction stands. Shares are in percent; those of a round are of its worst log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CleanerStats {
    /// How much of the dirtiest log that the last round compacted was dirty.
    pub(crate) max_dirty_percent: f64,
    /// Since when the last round ran; `None` before the first.
    pub(crate) since_last_run: Option<Duration>,
    /// Bytes written of those that were read.
    pub(crate) recopy_percent: f64,
    /// How full the memory for keys was.
    pub(crate) buffer_utilization_percent: f64,
    /// How long the longest compaction took.
    pub(crate) clean_time: Duration,
    /// How long after `max.compaction.lag.ms` the latest compaction began.
    pub(crate) compaction_delay: Duration,
    /// Bytes read and written by compaction since the start.
    pub(crate) io_bytes: u64,
    /// Compactions that ended by a defect.
    pub(crate) dead_threads: u64,
    /// Logs that are not compacted any more, by directory; every directory is named.
    pub(crate) uncleanable: Vec<Uncleanable>,
}

/// The logs of a directory that are not compacted any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncleanable {
    pub(crate) directory: PathBuf,
    pub(crate) partitions: u64,
    pub(crate) bytes: u64,
}

/// What the rounds leave for whoever asks.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    last: CleanerStats,
    last_run: Option<Instant>,
}

impl Rounds {
    /// A round begins with logs of these dirty shares, from 0 to 1.
    pub(super) fn begin(&mut self, ratios: impl Iterator<Item = f64>) {
        self.last_run = Some(clock::now());
        let dirtiest = ratios.fold(None, |most: Option<f64>, ratio| {
            Some(most.map_or(ratio, |most| most.max(ratio)))
        });
        // What a round without work says of the one before still holds.
        let Some(dirtiest) = dirtiest else { return };
        self.last = CleanerStats {
            max_dirty_percent: percent(dirtiest),
            io_bytes: self.last.io_bytes,
            dead_threads: self.last.dead_threads,
            ..CleanerStats::default()
        };
    }

    /// A log was compacted.
    pub(super) fn add(&mut self, cleaned: &Cleaned, took: Duration, delay_ms: i64) {
        let last = &mut self.last;
        last.recopy_percent = last.recopy_percent.max(recopied(cleaned));
        let used = percent(cleaned.map_utilization);
        last.buffer_utilization_percent = last.buffer_utilization_percent.max(used);
        last.clean_time = last.clean_time.max(took);
        let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
        last.compaction_delay = last.compaction_delay.max(delay);
    }

    /// So many bytes were read or written.
    pub(super) fn add_io(&mut self, bytes: u64) {
        self.last.io_bytes += bytes;
    }

    /// A compaction ended by a defect.
    pub(super) fn died(&mut self) {
        self.last.dead_threads += 1;
    }
}

/// A share from 0 to 1 in percent, to one decimal.
pub(super) fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// How much of what was read was written again, in percent.
#[expect(clippy::cast_precision_loss, reason = "a share needs no last bits")]
pub(super) fn recopied(cleaned: &Cleaned) -> f64 {
    match cleaned.bytes_read {
        0 => 0.0,
        read => percent(cleaned.bytes_written as f64 / read as f64),
    }
}

impl Manager {
    /// How compaction stands.
    pub(crate) fn cleaner_stats(&self) -> CleanerStats {
        let (mut stats, last_run) = {
            let rounds = self.cleaner_rounds.lock();
            (rounds.last.clone(), rounds.last_run)
        };
        stats.since_last_run = last_run.map(|at| clock::now().duration_since(at));
        stats.uncleanable = self
            .dirs()
            .dirs()
            .iter()
            .map(|dir| Uncleanable {
                directory: dir.path().to_owned(),
                ..Uncleanable::default()
            })
            .collect();
        for partition in self.all() {
            if !partition.uncleanable.load(Ordering::Acquire) {
                continue;
            }
            let dir = partition.dir();
            let mut all = stats.uncleanable.iter_mut();
            if let Some(of) = all.find(|it| it.directory == dir.path()) {
                of.partitions += 1;
                of.bytes += partition.reader().size();
            }
        }
        stats
    }
}
