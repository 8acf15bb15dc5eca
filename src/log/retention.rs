//! Which segments of a log may be deleted: below the log's start, by size, by age
//! (UnifiedLog.deleteOldSegments). The decision is a function of values; carrying it out is at the
//! end.
//!
//! Deleted are whole segments, the oldest first, and only what lies below the high watermark. The
//! active segment goes last and only with all others: a new one is begun before.

use std::sync::Arc;

use tracing::warn;

use super::config::LogConfig;
use super::fault::Fault;
use super::log::{Doomed, Log};
use super::read::LogReader;
use super::segment::Segment;

/// As many segments are deleted at once; a log with more is looked at again.
const AT_ONCE: usize = 64;

/// A segment, as much of it as decides whether it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aged {
    pub(crate) base_offset: i64,
    /// Where the next segment begins, or the log ends.
    pub(crate) next_offset: i64,
    pub(crate) size: u64,
    /// Of its records; where none has a time, when its file was last written.
    pub(crate) newest_ms: i64,
}

/// What a topic's options allow to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) bytes: Option<u64>,
    pub(crate) age_ms: Option<i64>,
}

impl Limits {
    /// Without `delete` in `cleanup.policy` neither age nor size counts.
    pub(crate) fn of(config: &LogConfig) -> Self {
        Self {
            bytes: u64::try_from(config.retention_bytes)
                .ok()
                .filter(|_| config.delete),
            age_ms: Some(config.retention_ms).filter(|ms| config.delete && *ms >= 0),
        }
    }
}

/// Where a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) log_start: i64,
    pub(crate) high_watermark: i64,
    pub(crate) now_ms: i64,
}

/// Why a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Everything in it was deleted by offset.
    LogStart,
    /// The log is larger than it may be.
    Size,
    /// Its newest record is older than it may be.
    Age,
}

/// What is to be deleted now, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The oldest segments, by base offset, with what condemns each.
    pub(crate) gone: Vec<(i64, Reason)>,
    /// When the oldest segment that stays will be too old; `None` while only something else than
    /// time can change the answer.
    pub(crate) next_ms: Option<i64>,
    /// The oldest segment that stays is dated in the future, so that its age says nothing.
    pub(crate) in_the_future: bool,
}

/// Decides what goes, of `segments` oldest first, the last one active.
pub(crate) fn plan(segments: &[Aged], limits: Limits, at: Standing) -> Plan {
    let mut work = Work {
        rest: segments,
        at,
        gone: Vec::new(),
    };
    work.take(Reason::LogStart, |segment, is_active| {
        !is_active && segment.next_offset <= at.log_start
    });
    if let Some(bytes) = limits.bytes {
        let size: u64 = work.rest.iter().map(|segment| segment.size).sum();
        let mut excess = size.checked_sub(bytes);
        work.take(Reason::Size, |segment, _| {
            excess = excess.and_then(|excess| excess.checked_sub(segment.size));
            excess.is_some()
        });
    }
    if let Some(age_ms) = limits.age_ms {
        work.take(Reason::Age, |segment, _| {
            at.now_ms.saturating_sub(segment.newest_ms) > age_ms
        });
    }
    let oldest = work.rest.first().filter(|_| limits.age_ms.is_some());
    Plan {
        next_ms: work.next_ms(limits),
        in_the_future: oldest.is_some_and(|oldest| oldest.newest_ms > at.now_ms),
        gone: work.gone,
    }
}

struct Work<'a> {
    rest: &'a [Aged],
    at: Standing,
    gone: Vec<(i64, Reason)>,
}

impl Work<'_> {
    /// Takes segments from the front as long as they are condemned and may go.
    fn take(&mut self, why: Reason, mut is_condemned: impl FnMut(&Aged, bool) -> bool) {
        while let Some((oldest, others)) = self.rest.split_first() {
            let is_active = others.is_empty();
            let may_go = self.may_go(oldest, is_active);
            if !may_go || !is_condemned(oldest, is_active) {
                return;
            }
            self.gone.push((oldest.base_offset, why));
            self.rest = others;
        }
    }

    /// What a follower may not have is kept, and an empty active segment has nothing to delete.
    fn may_go(&self, segment: &Aged, is_active: bool) -> bool {
        self.at.high_watermark >= segment.next_offset && !(is_active && segment.size == 0)
    }

    fn next_ms(&self, limits: Limits) -> Option<i64> {
        let oldest = self.rest.first()?;
        let age_ms = limits.age_ms?;
        self.may_go(oldest, self.rest.len() == 1)
            .then(|| oldest.newest_ms.saturating_add(age_ms).saturating_add(1))
    }
}

/// What a look at a log came to.
#[derive(Debug)]
pub(crate) struct Retained {
    pub(crate) doomed: Doomed,
    pub(crate) plan: Plan,
    /// More is to be deleted at once.
    pub(crate) more: bool,
}

impl LogReader {
    /// Sees to it that no segment is taken for too old on the word of an index alone. To be called
    /// before [`Log::retain`], without the log's lock.
    pub(crate) fn confirm_ages(&self, now_ms: i64) -> Result<(), Fault> {
        let Some(age_ms) = Limits::of(&self.config()).age_ms else {
            return Ok(());
        };
        let segments = self.live();
        // Of the active one the newest time is known as it is written.
        let closed = segments.len().saturating_sub(1).min(AT_ONCE);
        for segment in &segments[..closed] {
            let too_old = |ms: i64| now_ms.saturating_sub(ms) > age_ms;
            let told = segment.newest()?;
            if !too_old(told.timestamp) {
                break;
            }
            match segment.confirm_newest() {
                // No better known than by its index.
                Err(fault) if fault.is_damage() => continue,
                confirmed => confirmed?,
            }
            let known = segment.newest()?;
            if known != told {
                warn!(
                    file = %segment.log.path().display(),
                    "a time index is damaged, the age of its segment is read from the batches"
                );
            }
            if !too_old(known.timestamp) {
                break;
            }
        }
        Ok(())
    }
}

impl Log {
    /// Takes what may be deleted out of the log and renames its files; the log's start is raised.
    pub(crate) fn retain(&mut self, high_watermark: i64, now_ms: i64) -> Result<Retained, Fault> {
        let at = Standing {
            log_start: self.log_start_offset(),
            high_watermark,
            now_ms,
        };
        let (segments, mut plan) = self.condemn(at)?;
        let more = plan.gone.len() > AT_ONCE;
        plan.gone.truncate(AT_ONCE);
        if plan.gone.len() == segments.len() {
            self.roll(self.log_end_offset(), now_ms)?;
        }
        let doomed = match plan.gone.len().checked_sub(1) {
            Some(last) => self.delete_below(segments[last].next_offset)?,
            None => self.doom(Vec::new())?,
        };
        Ok(Retained { doomed, plan, more })
    }

    /// Plans, and reads how old segments are only while those before them go.
    fn condemn(&self, at: Standing) -> Result<(Vec<Aged>, Plan), Fault> {
        let limits = Limits::of(&self.config());
        let infos = self.reader().segments().into_iter();
        let young = infos.map(|info| Aged {
            base_offset: info.base_offset,
            next_offset: info.next_offset,
            size: info.size,
            newest_ms: i64::MAX,
        });
        let mut segments: Vec<Aged> = young.collect();
        let mut known = 0;
        loop {
            let plan = plan(&segments, limits, at);
            let oldest = plan.gone.len();
            if oldest < known || oldest == segments.len() || limits.age_ms.is_none() {
                return Ok((segments, plan));
            }
            let more = (oldest + 1).max(2 * known).min(segments.len());
            let both = segments.iter_mut().zip(&self.segments);
            for (aged, segment) in both.take(more).skip(known.max(oldest)) {
                aged.newest_ms = self.newest_ms(segment, at.now_ms)?;
            }
            known = more;
        }
    }

    fn newest_ms(&self, segment: &Arc<Segment>, now_ms: i64) -> Result<i64, Fault> {
        let is_active = Arc::ptr_eq(segment, self.active_segment());
        match segment.size() {
            // It stays, however old.
            0 if is_active => Ok(now_ms),
            _ => segment.newest_ms(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 100 bytes and 10 offsets, the newest record of the nth at `times[n]`.
    fn segments(times: &[i64]) -> Vec<Aged> {
        let segment = |(n, newest_ms): (usize, &i64)| Aged {
            base_offset: n as i64 * 10,
            next_offset: n as i64 * 10 + 10,
            size: 100,
            newest_ms: *newest_ms,
        };
        times.iter().enumerate().map(segment).collect()
    }

    fn limits(bytes: Option<u64>, age_ms: Option<i64>) -> Limits {
        Limits { bytes, age_ms }
    }

    fn at(now_ms: i64) -> Standing {
        Standing {
            log_start: 0,
            high_watermark: i64::MAX,
            now_ms,
        }
    }

    fn gone(plan: &Plan) -> Vec<i64> {
        plan.gone.iter().map(|(base, _)| *base).collect()
    }

    #[test]
    fn a_segment_goes_when_its_newest_record_is_older_than_allowed() {
        let all = segments(&[100, 200, 300]);
        let by_age = |now| plan(&all, limits(None, Some(50)), at(now));
        assert!(gone(&by_age(150)).is_empty());
        assert_eq!(by_age(150).next_ms, Some(151));
        assert_eq!(gone(&by_age(151)), [0]);
        assert_eq!(by_age(151).next_ms, Some(251));
        assert_eq!(gone(&by_age(351)), [0, 10, 20]);
        assert_eq!(by_age(351).next_ms, None);
    }

    #[test]
    fn an_older_segment_waits_for_the_one_before_it() {
        let all = segments(&[900, 100, 200]);
        let now = plan(&all, limits(None, Some(50)), at(800));
        assert!(gone(&now).is_empty());
        assert!(now.in_the_future);
        assert_eq!(now.next_ms, Some(951));
    }

    #[test]
    fn size_is_kept_at_or_above_the_limit() {
        let all = segments(&[1, 2, 3, 4]);
        let by_size = |bytes| gone(&plan(&all, limits(Some(bytes), None), at(10)));
        assert!(by_size(400).is_empty() && by_size(301).is_empty());
        assert_eq!(by_size(300), [0]);
        assert_eq!(by_size(150), [0, 10]);
        assert_eq!(by_size(0), [0, 10, 20, 30]);
    }

    #[test]
    fn nothing_goes_that_is_not_committed() {
        let all = segments(&[1, 2, 3]);
        let mut standing = at(1000);
        standing.high_watermark = 19;
        let now = plan(&all, limits(Some(0), Some(1)), standing);
        assert_eq!(now.gone, [(0, Reason::Size)]);
        assert_eq!(now.next_ms, None);
    }

    #[test]
    fn below_the_log_start_all_goes_but_the_active_segment() {
        let all = segments(&[1, 2, 3]);
        let mut standing = at(1);
        standing.log_start = 30;
        let now = plan(&all, limits(None, None), standing);
        assert_eq!(now.gone, [(0, Reason::LogStart), (10, Reason::LogStart)]);
        standing.log_start = 15;
        assert_eq!(gone(&plan(&all, limits(None, None), standing)), [0]);
    }

    #[test]
    fn an_empty_active_segment_stays() {
        let mut all = segments(&[1, 2]);
        all[1].size = 0;
        let now = plan(&all, limits(Some(0), Some(0)), at(100));
        assert_eq!(gone(&now), [0]);
        assert_eq!(now.next_ms, None);
    }
}
