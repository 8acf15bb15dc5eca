//! Whether a log is worth compacting, and which part of it: decided from values
//! (org.apache.kafka.storage.internals.log.LogCleanerManager).
//!
//! ```text
//! log start        first dirty            first uncleanable           log end
//!    |  compacted before |  to be compacted now   |  open transactions,   |
//!    |                   |                        |  too young, active    |
//! ```

/// A closed segment, as much of it as decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    /// Of its newest record; where none has a time, when its file was last written.
    pub(crate) newest_ms: i64,
    /// Of its first batch, where that counts.
    pub(crate) first_ms: Option<i64>,
}

/// What the topic's options say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wishes {
    /// `min.cleanable.dirty.ratio`
    pub(crate) min_ratio: f64,
    /// `min.compaction.lag.ms`
    pub(crate) min_lag_ms: i64,
    /// `max.compaction.lag.ms`
    pub(crate) max_lag_ms: i64,
}

/// Where a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) log_start: i64,
    pub(crate) last_stable: i64,
    pub(crate) active_base: i64,
    pub(crate) log_end: i64,
    /// The first offset that was not compacted, if that is known.
    pub(crate) cleaned_to: Option<i64>,
    pub(crate) now_ms: i64,
}

/// What could be compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cleanable {
    pub(crate) first_dirty: i64,
    /// The start of a segment: of the first that may not be touched.
    pub(crate) first_uncleanable: i64,
    /// Bytes that were compacted before.
    pub(crate) clean_bytes: u64,
    /// Bytes that would be compacted.
    pub(crate) dirty_bytes: u64,
    /// How long ago the oldest dirty record should have been compacted.
    pub(crate) delay_ms: i64,
    /// Whether it is worth it, or due.
    pub(crate) is_due: bool,
    /// When time alone makes it due, or more of it cleanable.
    pub(crate) next_ms: Option<i64>,
}

impl Cleanable {
    /// The share of the bytes that is dirty: the filthiest log comes first.
    pub(crate) fn ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a share needs no last bits")]
        let ratio = self.dirty_bytes as f64 / all as f64;
        ratio
    }
}

/// Decides, of the closed segments oldest first.
pub(crate) fn cleanable(closed: &[Closed], wishes: Wishes, at: Standing) -> Cleanable {
    let known = at.cleaned_to.unwrap_or(at.log_start);
    // A checkpoint may lie below a start that was raised, or beyond an end that was lost.
    let first_dirty = match (at.log_start..=at.log_end).contains(&known) {
        true => known,
        false => at.log_start,
    };
    let dirty = match first_dirty < at.active_base {
        true => &closed[floor(closed, first_dirty)..],
        false => &[],
    };
    let too_young = |one: &&Closed| {
        wishes.min_lag_ms > 0 && one.newest_ms > at.now_ms.saturating_sub(wishes.min_lag_ms)
    };
    let young = dirty.iter().find(too_young);
    let limit = at
        .last_stable
        .min(at.active_base)
        .min(young.map_or(i64::MAX, |young| young.base_offset))
        .max(first_dirty);
    // Segments are compacted whole: what lies in one with that offset waits for it.
    let first_uncleanable = match closed.get(floor(closed, limit)) {
        Some(last) if limit < at.active_base => last.base_offset,
        Some(_) | None => at.active_base,
    };
    let delay_ms = delay_ms(dirty, wishes, at.now_ms);
    let mut found = Cleanable {
        first_dirty,
        first_uncleanable,
        clean_bytes: bytes(closed, i64::MIN, first_dirty),
        dirty_bytes: bytes(closed, first_dirty, first_uncleanable),
        delay_ms,
        is_due: false,
        next_ms: None,
    };
    found.is_due = found.dirty_bytes > 0 && (delay_ms > 0 || found.ratio() > wishes.min_ratio);
    let grown_up = young.map(|young| young.newest_ms.saturating_add(wishes.min_lag_ms));
    let overdue = firsts(dirty)
        .min()
        .filter(|_| delay_ms == 0 && wishes.max_lag_ms != i64::MAX)
        .map(|first| first.saturating_add(wishes.max_lag_ms).saturating_add(1));
    found.next_ms = [grown_up, overdue].into_iter().flatten().min();
    found
}

fn firsts(dirty: &[Closed]) -> impl Iterator<Item = i64> {
    let firsts = dirty.iter().filter_map(|one| one.first_ms);
    firsts.filter(|first| *first > 0)
}

fn delay_ms(dirty: &[Closed], wishes: Wishes, now_ms: i64) -> i64 {
    let clean_until = now_ms.saturating_sub(wishes.max_lag_ms.max(0));
    let earliest = firsts(dirty).min().unwrap_or(i64::MAX);
    clean_until.saturating_sub(earliest).max(0)
}

/// The bytes of the segments from that of one offset to the last that begins below another.
fn bytes(closed: &[Closed], from: i64, to: i64) -> u64 {
    if from >= to {
        return 0;
    }
    let first = floor(closed, from);
    let below = closed[first..]
        .iter()
        .take_while(|one| one.base_offset < to);
    below.map(|one| one.size).sum()
}

/// The segment that an offset lies in, else the first.
fn floor(closed: &[Closed], offset: i64) -> usize {
    closed
        .partition_point(|one| one.base_offset <= offset)
        .saturating_sub(1)
}

/// A segment, as much of it as decides how segments are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    pub(crate) offset_index_bytes: u64,
    pub(crate) time_index_bytes: u64,
}

/// How large what is put together may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) segment_bytes: u64,
    pub(crate) index_bytes: u64,
    /// Beyond the last offset of the last segment.
    pub(crate) end: i64,
}

/// Puts neighbours together whose sizes allow it before anything is dropped; gives how many go
/// into each new segment.
pub(crate) fn groups(parts: &[Part], bounds: Bounds) -> Vec<usize> {
    let mut groups = Vec::new();
    let mut rest = parts;
    while let Some(first) = rest.first() {
        let mut whole = *first;
        let mut count = 1;
        while let Some(next) = rest.get(count) {
            let after = rest
                .get(count + 1)
                .map_or(bounds.end, |one| one.base_offset);
            whole.size += next.size;
            whole.offset_index_bytes += next.offset_index_bytes;
            whole.time_index_bytes += next.time_index_bytes;
            // An index entry counts offsets from the segment's first in 31 bits.
            let in_reach = after - 1 - first.base_offset <= i64::from(i32::MAX);
            let fits = whole.size <= bounds.segment_bytes
                && whole.offset_index_bytes <= bounds.index_bytes
                && whole.time_index_bytes <= bounds.index_bytes
                && (next.size == 0 || in_reach);
            if !fits {
                break;
            }
            count += 1;
        }
        groups.push(count);
        rest = &rest[count..];
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 100 bytes and 10 offsets.
    fn closed(times: &[(i64, i64)]) -> Vec<Closed> {
        let one = |(n, (first, newest)): (usize, &(i64, i64))| Closed {
            base_offset: n as i64 * 10,
            size: 100,
            newest_ms: *newest,
            first_ms: Some(*first),
        };
        times.iter().enumerate().map(one).collect()
    }

    const WISHES: Wishes = Wishes {
        min_ratio: 0.5,
        min_lag_ms: 0,
        max_lag_ms: i64::MAX,
    };

    fn at(cleaned_to: Option<i64>) -> Standing {
        Standing {
            log_start: 0,
            last_stable: 45,
            active_base: 40,
            log_end: 45,
            cleaned_to,
            now_ms: 1000,
        }
    }

    fn four() -> Vec<Closed> {
        closed(&[(100, 190), (200, 290), (300, 390), (400, 490)])
    }

    #[test]
    fn a_log_is_compacted_when_enough_of_it_is_dirty() {
        let never = cleanable(&four(), WISHES, at(None));
        assert_eq!((never.first_dirty, never.first_uncleanable), (0, 40));
        assert_eq!((never.clean_bytes, never.dirty_bytes), (0, 400));
        assert!(never.is_due && never.next_ms.is_none());
        let half = cleanable(&four(), WISHES, at(Some(20)));
        assert_eq!((half.clean_bytes, half.dirty_bytes), (200, 200));
        assert!(!half.is_due);
        let most = cleanable(&four(), WISHES, at(Some(10)));
        assert!(most.is_due);
        let done = cleanable(&four(), WISHES, at(Some(40)));
        assert_eq!((done.dirty_bytes, done.is_due), (0, false));
    }

    #[test]
    fn a_checkpoint_outside_the_log_counts_for_nothing() {
        let mut standing = at(Some(99));
        standing.log_start = 10;
        assert_eq!(cleanable(&four(), WISHES, standing).first_dirty, 10);
        standing.cleaned_to = Some(5);
        assert_eq!(cleanable(&four(), WISHES, standing).first_dirty, 10);
    }

    #[test]
    fn an_open_transaction_stays_out() {
        let mut standing = at(None);
        standing.last_stable = 25;
        let found = cleanable(&four(), WISHES, standing);
        assert_eq!(found.first_uncleanable, 20);
        assert_eq!(found.dirty_bytes, 200);
        standing.last_stable = 3;
        assert!(!cleanable(&four(), WISHES, standing).is_due);
    }

    #[test]
    fn young_records_wait_for_their_age() {
        let wishes = Wishes {
            min_lag_ms: 650,
            ..WISHES
        };
        let found = cleanable(&four(), wishes, at(None));
        assert_eq!(found.first_uncleanable, 20);
        assert_eq!(found.next_ms, Some(390 + 650));
    }

    #[test]
    fn old_records_are_due_however_clean_the_log_is() {
        let wishes = Wishes {
            max_lag_ms: 650,
            ..WISHES
        };
        let found = cleanable(&four(), wishes, at(Some(20)));
        assert_eq!((found.delay_ms, found.is_due), (50, true));
        let later = cleanable(&four(), wishes, at(Some(30)));
        assert!(!later.is_due);
        assert_eq!(later.next_ms, Some(400 + 650 + 1));
    }

    #[test]
    fn neighbours_are_put_together_within_bounds() {
        let part = |base_offset, size, index| Part {
            base_offset,
            size,
            offset_index_bytes: index,
            time_index_bytes: 0,
        };
        let bounds = Bounds {
            segment_bytes: 250,
            index_bytes: 20,
            end: 60,
        };
        let parts = [
            part(0, 100, 5),
            part(10, 100, 5),
            part(20, 100, 15),
            part(30, 0, 6),
            part(40, 300, 0),
            part(50, 100, 0),
        ];
        assert_eq!(groups(&parts, bounds), [2, 1, 1, 1, 1]);
        let far = [part(0, 1, 0), part(5, 1, 0), part(1 << 31, 1, 0)];
        let bounds = Bounds {
            end: (1 << 31) + 1,
            ..bounds
        };
        assert_eq!(groups(&far, bounds), [2, 1]);
        assert!(groups(&[], bounds).is_empty());
    }
}
