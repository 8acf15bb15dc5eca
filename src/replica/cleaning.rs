//! Compaction in the background: every `log.cleaner.backoff.ms` at the earliest, of partitions in
//! which something changed or grew old, the filthiest first (LogCleaner).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::{debug, error, info};

use super::agenda::{Due, Key};
use super::cleaner_stats::{percent, recopied};
use super::manager::Manager;
use super::pace::Pace;
use super::partition::{Isolation, Partition};
use crate::config::BrokerConfig;
use crate::log::cleanable::Cleanable;
use crate::log::cleaner::{self, Cleaned, Go, Job, Memory, Unfinished};
use crate::log::dir::LogDir;
use crate::log::fault::Fault;
use crate::os::clock;
use crate::os::tasks::{self, Tasks};

/// A long cleaning tells of itself so often.
const TELL: Duration = Duration::from_secs(10);
/// The pace is looked at after so many bytes.
const PACED_BYTES: u64 = 64 << 10;
/// A partition that is worth compacting.
struct Candidate {
    partition: Arc<Partition>,
    /// Where its log lies.
    dir: Arc<LogDir>,
    part: Cleanable,
}

impl Partition {
    /// What of it is worth compacting now, after what is too old is gone, and when to look again.
    fn look(self: &Arc<Self>) -> (Option<Candidate>, Option<i64>) {
        let next_ms = self.retain();
        let is_compacted = self.reader().config().compact;
        if !self.may_be_cleaned() || !is_compacted || self.uncleanable.load(Ordering::Acquire) {
            return (None, next_ms);
        }
        let stable = self.offsets().end(Isolation::Stable);
        let dir = self.dir();
        let cleaned_to = dir.cleaned_to(&self.name);
        let found = self
            .reader()
            .cleanable(stable, cleaned_to, clock::wall_ms());
        match found {
            Ok(part) => {
                let next_ms = [next_ms, part.next_ms].into_iter().flatten().min();
                let candidate = part.is_due.then(|| Candidate {
                    partition: self.clone(),
                    dir,
                    part,
                });
                (candidate, next_ms)
            }
            Err(fault) => {
                self.cannot_clean(fault);
                (None, None)
            }
        }
    }

    /// A directory that fails takes all its logs along; a log that cannot be read is left as it is
    /// (LogCleanerManager.markPartitionUncleanable).
    fn cannot_clean(&self, fault: Fault) {
        match fault {
            Fault::Disk { .. } => self.fail(&fault.into()),
            Fault::Batch { .. }
            | Fault::Records { .. }
            | Fault::Malformed { .. }
            | Fault::Locked { .. }
            | Fault::Foreign { .. } => {
                self.uncleanable.store(true, Ordering::Release);
                error!(partition = %self.name, %fault, "a log is not compacted any more");
            }
        }
    }

    /// A log that is on its way to another directory keeps its segments, for they are being copied;
    /// it is compacted where it arrives (LogManager.abortAndPauseCleaning).
    fn may_be_cleaned(&self) -> bool {
        !self.is_retired() && !self.is_offline() && !self.is_moving()
    }

    fn cleaned(&self, candidate: &Candidate, cleaned: &Cleaned, took: Duration) {
        let Candidate { dir, part, .. } = candidate;
        info!(
            partition = %self.name,
            dirty_from = part.first_dirty,
            dirty_to = cleaned.up_to,
            index_bytes_read = cleaned.map_bytes_read,
            index_records_read = cleaned.map_records_read,
            bytes_read = cleaned.bytes_read,
            bytes_written = cleaned.bytes_written,
            records_read = cleaned.records_read,
            records_written = cleaned.records_written,
            keyless_records = cleaned.keyless,
            clean_time_secs = took.as_secs_f64(),
            buffer_utilization_percent = percent(cleaned.map_utilization),
            cleaner_recopy_percent = recopied(cleaned),
            compaction_delay_secs = part.delay_ms / 1000,
            "a log is compacted"
        );
        if cleaned.up_to < part.first_uncleanable {
            // The memory for keys was full.
            self.stir();
        }
        self.background.appended();
        if self.is_moving() || !Arc::ptr_eq(dir, &self.dir()) {
            // Its copy may have been made of what was there before.
            self.stir();
        } else if let Err(fault) = dir.set_cleaned_to(&self.name, Some(cleaned.up_to)) {
            self.fail(&fault.into());
        }
    }
}

impl Manager {
    /// Compacts what is worth it, until the group stops.
    pub(super) fn run_cleaning(self: &Arc<Self>, tasks: &Tasks) {
        if !self.options.file().log_cleaner_enable {
            return;
        }
        let (this, group) = (self.clone(), tasks.clone());
        tasks.spawn(
            "log-cleaner",
            async move { this.cleaning_rounds(&group).await },
        );
    }

    async fn cleaning_rounds(self: Arc<Self>, tasks: &Tasks) {
        let mut due = Due::default();
        loop {
            tokio::select! {
                biased;
                () = tasks.stopped() => return,
                () = self.background.cleaning.stirred() => {}
                () = due.come() => {}
            }
            let now = clock::now();
            let keys = due.take(&self.background.cleaning, now);
            let at = (now, clock::wall_ms());
            // Waited for also when the node stops: logs are closed only when nobody swaps segments.
            for (key, next_ms) in self.clean_all(keys, tasks).await {
                due.set(key, next_ms, at);
            }
            let rest = self.options.current().config.log_cleaner_backoff_ms;
            let rest = Duration::from_millis(u64::try_from(rest).unwrap_or(0));
            tokio::select! {
                biased;
                () = tasks.stopped() => return,
                () = clock::sleep(rest) => {}
            }
        }
    }

    /// Compacts what is worth it of these partitions; says which to look at again without being
    /// asked, and when.
    async fn clean_all(self: &Arc<Self>, keys: HashSet<Key>, tasks: &Tasks) -> Vec<(Key, i64)> {
        let this = self.clone();
        let looked_at = tasks::blocking(move || this.look_at_all(keys)).await;
        let (mut candidates, next) = looked_at.unwrap_or_default();
        // The last is taken first.
        candidates.sort_by(|a, b| a.part.ratio().total_cmp(&b.part.ratio()));
        let ratios = candidates.iter().map(|it| it.part.ratio());
        self.cleaner_rounds.lock().begin(ratios);
        let threads = self.options.current().config.log_cleaner_threads;
        let threads = usize::try_from(threads).unwrap_or(0).min(candidates.len());
        let shared = Arc::new(Shared {
            candidates: Mutex::new(candidates),
            pace: Pace::new(),
            tasks: tasks.clone(),
        });
        let workers = (0..threads).map(|_| {
            let (this, shared) = (self.clone(), shared.clone());
            tasks::blocking(move || this.work_off(&shared))
        });
        for ended in futures_util::future::join_all(workers).await {
            if ended.is_err() {
                self.cleaner_rounds.lock().died();
                error!("a compaction panicked, this is a defect of the broker");
            }
        }
        next
    }

    fn look_at_all(&self, keys: HashSet<Key>) -> (Vec<Candidate>, Vec<(Key, i64)>) {
        let mut candidates = Vec::new();
        let mut next = Vec::new();
        for key in keys {
            let Some(partition) = self.partition(key.0, key.1) else {
                continue;
            };
            let (candidate, next_ms) = partition.look();
            candidates.extend(candidate);
            next.extend(next_ms.map(|next_ms| (key, next_ms)));
        }
        (candidates, next)
    }

    fn work_off(&self, shared: &Shared) {
        loop {
            let Some(candidate) = shared.candidates.lock().pop() else {
                return;
            };
            if shared.tasks.is_stopping() {
                return;
            }
            self.clean_one(&candidate, shared);
        }
    }

    fn clean_one(&self, candidate: &Candidate, shared: &Shared) {
        let Candidate {
            partition, part, ..
        } = candidate;
        let started = clock::now();
        debug!(partition = %partition.name, ?part, "a log is being compacted");
        let mut told = Progress::new(started);
        let cleaned = cleaner::clean(Job {
            log: &partition.log,
            part: *part,
            memory: memory(&self.options.current().config),
            now_ms: clock::wall_ms(),
            pace: &mut |bytes| {
                let paced = told.add(bytes, partition);
                if paced > 0 {
                    self.cleaner_rounds.lock().add_io(paced);
                    let rate = self
                        .options
                        .current()
                        .config
                        .log_cleaner_io_max_bytes_per_second;
                    shared.pace.hold_up(paced, rate, &shared.tasks, || false);
                }
                match shared.tasks.is_stopping() || !partition.may_be_cleaned() {
                    true => Go::Stop,
                    false => Go::On,
                }
            },
            old: &mut |doomed| partition.remove_later(doomed),
        });
        match cleaned {
            Ok(cleaned) => {
                let took = clock::now().duration_since(started);
                let mut rounds = self.cleaner_rounds.lock();
                rounds.add(&cleaned, took, part.delay_ms);
                drop(rounds);
                partition.cleaned(candidate, &cleaned, took);
            }
            Err(Unfinished::GivenUp) => partition.stir(),
            // A deleted partition took its files along.
            Err(Unfinished::Fault(_)) if partition.is_retired() => {}
            Err(Unfinished::Fault(fault)) => partition.cannot_clean(fault),
        }
    }
}

/// What the cleanings of one round share.
struct Shared {
    candidates: Mutex<Vec<Candidate>>,
    pace: Pace,
    tasks: Tasks,
}

/// All cleanings together share the memory and the pace.
fn memory(config: &BrokerConfig) -> Memory {
    let threads = u64::try_from(config.log_cleaner_threads)
        .unwrap_or(1)
        .max(1);
    let bytes = u64::try_from(config.log_cleaner_dedupe_buffer_size).unwrap_or(0);
    let io_bytes = u64::try_from(config.log_cleaner_io_buffer_size).unwrap_or(0);
    Memory {
        map_bytes: bytes / threads,
        load_factor: config.log_cleaner_io_buffer_load_factor,
        io_bytes: usize::try_from(io_bytes / threads / 2).unwrap_or(0),
    }
}

/// How far a cleaning is.
struct Progress {
    started: Instant,
    told: Instant,
    bytes: u64,
    unpaced: u64,
}

impl Progress {
    fn new(now: Instant) -> Self {
        Self {
            started: now,
            told: now,
            bytes: 0,
            unpaced: 0,
        }
    }

    /// Counts bytes; gives those to be paced now.
    fn add(&mut self, bytes: u64, partition: &Partition) -> u64 {
        self.bytes += bytes;
        self.unpaced += bytes;
        if self.unpaced < PACED_BYTES {
            return 0;
        }
        let now = clock::now();
        if now.duration_since(self.told) >= TELL {
            self.told = now;
            let secs = now.duration_since(self.started).as_secs();
            let mib = self.bytes >> 20;
            info!(partition = %partition.name, mib, secs, "a log is being compacted");
        }
        std::mem::take(&mut self.unpaced)
    }
}
