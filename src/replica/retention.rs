//! Deletion by age and size: every `log.retention.check.interval.ms` at the earliest, of partitions
//! in which something changed or grew old (LogManager.cleanupLogs).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{info, warn};

use super::agenda::{Due, Key};
use super::background::Doomed;
use super::manager::Manager;
use super::partition::Partition;
use crate::log::retention::{Plan, Reason};
use crate::os::clock;
use crate::os::tasks::{self, Tasks};

impl Partition {
    /// Has the next round look at this partition. Costs one load while it is to be looked at anyway.
    pub(crate) fn stir(&self) {
        if !self.stirred.load(Ordering::Relaxed) && !self.stirred.swap(true, Ordering::AcqRel) {
            let agenda = match self.reader().config().compact {
                true => &self.background.cleaning,
                false => &self.background.retention,
            };
            agenda.add(self.key());
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.topic_id, self.name.partition)
    }

    /// Deletes what is too old or too much; says when to look again, by the wall clock.
    pub(super) fn retain(&self) -> Option<i64> {
        // From here on whatever happens puts it on the agenda again.
        self.stirred.store(false, Ordering::Release);
        loop {
            if self.is_retired() || self.is_offline() {
                return None;
            }
            let now_ms = clock::wall_ms();
            match self.reader().confirm_ages(now_ms) {
                // Deleted meanwhile, or no better known than by the index.
                Err(fault) if fault.is_not_found() || fault.is_damage() => {}
                Err(fault) => {
                    self.fail(&fault.into());
                    return None;
                }
                Ok(()) => {}
            }
            let high_watermark = self.high_watermark();
            let retained = self.with_log(|log| log.retain(high_watermark, now_ms));
            let retained = match retained {
                Ok(retained) => retained,
                Err(fault) => {
                    self.fail(&fault.into());
                    return None;
                }
            };
            if retained.plan.in_the_future {
                warn!(partition = %self.name, "the oldest records are dated in the future and stay");
            }
            if retained.plan.gone.is_empty() {
                return retained.plan.next_ms;
            }
            self.tell_deleted(&retained.plan);
            self.background.appended();
            self.remove_later(retained.doomed);
            self.waiting.wake();
            if !retained.more {
                return retained.plan.next_ms;
            }
        }
    }

    /// Removes files after `file.delete.delay.ms`, so that who still reads them finds them.
    pub(super) fn remove_later(&self, doomed: crate::log::log::Doomed) {
        let delay = self.reader().config().file_delete_delay_ms;
        let delay = Duration::from_millis(u64::try_from(delay).unwrap_or(0));
        self.background
            .remove(clock::now() + delay, Doomed::Files(doomed));
    }

    fn tell_deleted(&self, plan: &Plan) {
        let log_start = self.reader().log_start_offset();
        for (reason, why) in [
            (Reason::LogStart, "they lie below the log's start"),
            (Reason::Size, "the log is larger than retention.bytes"),
            (Reason::Age, "they are older than retention.ms"),
        ] {
            let of_reason = plan.gone.iter().filter(|(_, is)| *is == reason);
            let segments: Vec<i64> = of_reason.map(|(base, _)| *base).collect();
            if !segments.is_empty() {
                info!(partition = %self.name, ?segments, log_start, "segments are deleted: {why}");
            }
        }
    }
}

impl Manager {
    /// Deletes what is too old or too much, until the group stops.
    pub(super) fn run_retention(self: &Arc<Self>, tasks: &Tasks) {
        let (this, group) = (self.clone(), tasks.clone());
        tasks.spawn(
            "retention",
            async move { this.retention_rounds(&group).await },
        );
    }

    async fn retention_rounds(self: Arc<Self>, tasks: &Tasks) {
        let file = self.options.file();
        let span = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let every = span(file.log_retention_check_interval_ms);
        let mut round_at = clock::now() + span(file.log_initial_task_delay_ms);
        let mut due = Due::default();
        loop {
            tokio::select! {
                biased;
                () = tasks.stopped() => return,
                () = self.background.retention.stirred() => {}
                () = due.come() => {}
            }
            tokio::select! {
                biased;
                () = tasks.stopped() => return,
                () = clock::sleep_until(round_at) => {}
            }
            let now = clock::now();
            round_at = now + every;
            let keys = due.take(&self.background.retention, now);
            let this = self.clone();
            let looked_at = tasks::blocking(move || this.retain_all(keys)).await;
            let at = (now, clock::wall_ms());
            for (key, next_ms) in looked_at.unwrap_or_default() {
                due.set(key, next_ms, at);
            }
        }
    }

    /// Looks at these partitions; says which to look at again without being asked, and when.
    fn retain_all(&self, keys: HashSet<Key>) -> Vec<(Key, i64)> {
        let partitions = keys
            .into_iter()
            .filter_map(|(topic, index)| self.partition(topic, index));
        let look = |partition: Arc<Partition>| {
            let next_ms = partition.retain();
            // It was not compacted when it was put on the agenda.
            if partition.reader().config().compact {
                partition.stir();
            }
            Some((partition.key(), next_ms?))
        };
        partitions.filter_map(look).collect()
    }
}
