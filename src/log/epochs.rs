//! The leader epochs of a log and where each starts: what a follower needs to find where it parts
//! from its leader (org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache, KIP-101).
//!
//! Epochs and starts both grow strictly. A file beside the segments holds them; writing it is the
//! caller's.

use crate::base::LeaderEpoch;

/// The epochs of one log, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    entries: Vec<Entry>,
}

/// An epoch with the offset of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    epoch: i32,
    start: i64,
}

/// Where an epoch ends, or the closest that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochEnd {
    pub(crate) epoch: LeaderEpoch,
    pub(crate) end_offset: i64,
}

impl EpochEnd {
    /// The answer when nothing is known.
    pub(crate) const UNKNOWN: Self = Self {
        epoch: LeaderEpoch(-1),
        end_offset: -1,
    };
}

impl Epochs {
    /// Takes entries as they were stored; those that do not grow give way to later ones.
    pub(crate) fn load(entries: impl IntoIterator<Item = (i32, i64)>) -> Self {
        let mut epochs = Self::default();
        for (epoch, start) in entries {
            epochs.assign(LeaderEpoch(epoch), start);
        }
        epochs
    }

    /// The entries to store.
    pub(crate) fn entries(&self) -> Vec<(i32, i64)> {
        let pair = |entry: &Entry| (entry.epoch, entry.start);
        self.entries.iter().map(pair).collect()
    }

    /// The newest epoch.
    pub(crate) fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| LeaderEpoch(entry.epoch))
    }

    /// Notes that `epoch` starts at `start`; says whether that is news. Entries that would not lie
    /// below it are dropped.
    pub(crate) fn assign(&mut self, epoch: LeaderEpoch, start: i64) -> bool {
        if epoch.0 < 0 || start < 0 {
            return false;
        }
        let is_news = self
            .entries
            .last()
            .is_none_or(|last| last.epoch != epoch.0 || start < last.start);
        if is_news {
            let stays = |entry: &Entry| entry.epoch < epoch.0 && entry.start < start;
            let keep = self.entries.iter().take_while(|entry| stays(entry)).count();
            self.entries.truncate(keep);
            self.entries.push(Entry {
                epoch: epoch.0,
                start,
            });
        }
        is_news
    }

    /// Where `epoch` ends, if the log ends at `log_end`: the answers of OffsetForLeaderEpoch.
    pub(crate) fn end_of(&self, epoch: LeaderEpoch, log_end: i64) -> EpochEnd {
        let Some(latest) = self.entries.last() else {
            return EpochEnd::UNKNOWN;
        };
        if epoch.0 < 0 || epoch.0 > latest.epoch {
            return EpochEnd::UNKNOWN;
        }
        if epoch.0 == latest.epoch {
            return EpochEnd {
                epoch,
                end_offset: log_end,
            };
        }
        let above = self.entries.partition_point(|entry| entry.epoch <= epoch.0);
        let end_offset = self.entries.get(above).map_or(log_end, |next| next.start);
        let known = above.checked_sub(1).and_then(|at| self.entries.get(at));
        EpochEnd {
            // Below the first known epoch the question itself is the answer.
            epoch: known.map_or(epoch, |entry| LeaderEpoch(entry.epoch)),
            end_offset,
        }
    }

    /// The epoch that `offset` belongs to.
    pub(crate) fn of_offset(&self, offset: i64) -> Option<LeaderEpoch> {
        let above = self.entries.partition_point(|entry| entry.start <= offset);
        let entry = self.entries.get(above.checked_sub(1)?)?;
        Some(LeaderEpoch(entry.epoch))
    }

    /// Forgets what starts at or beyond the new end; says whether anything changed.
    pub(crate) fn truncate_end(&mut self, end: i64) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.start < end);
        self.entries.len() != before
    }

    /// Forgets what lies below the new start, and raises the epoch that reaches into it; says
    /// whether anything changed.
    pub(crate) fn truncate_start(&mut self, start: i64) -> bool {
        let below = self.entries.partition_point(|entry| entry.start <= start);
        let Some(at) = below.checked_sub(1) else {
            return false;
        };
        let changed = at > 0 || self.entries[at].start != start;
        self.entries.drain(..at);
        self.entries[0].start = start;
        changed
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> Epochs {
        Epochs::load([(1, 0), (3, 10), (6, 25)])
    }

    fn end(epoch: i32, end_offset: i64) -> EpochEnd {
        EpochEnd {
            epoch: LeaderEpoch(epoch),
            end_offset,
        }
    }

    #[test]
    fn an_epoch_ends_where_the_next_known_one_starts() {
        let epochs = epochs();
        let ends = |epoch| epochs.end_of(LeaderEpoch(epoch), 40);
        assert_eq!(ends(-1), EpochEnd::UNKNOWN);
        assert_eq!(ends(0), end(0, 0));
        assert_eq!(ends(1), end(1, 10));
        assert_eq!(ends(2), end(1, 10));
        assert_eq!(ends(5), end(3, 25));
        assert_eq!(ends(6), end(6, 40));
        assert_eq!(ends(7), EpochEnd::UNKNOWN);
        assert_eq!(
            Epochs::default().end_of(LeaderEpoch(0), 0),
            EpochEnd::UNKNOWN
        );
    }

    #[test]
    fn a_new_epoch_without_records_gives_way() {
        let mut epochs = epochs();
        assert!(!epochs.assign(LeaderEpoch(6), 30));
        assert!(epochs.assign(LeaderEpoch(7), 25));
        assert_eq!(epochs.entries(), [(1, 0), (3, 10), (7, 25)]);
        assert!(epochs.assign(LeaderEpoch(2), 12));
        assert_eq!(epochs.entries(), [(1, 0), (2, 12)]);
    }

    #[test]
    fn ends_are_cut() {
        let mut epochs = epochs();
        assert_eq!(epochs.of_offset(24), Some(LeaderEpoch(3)));
        assert!(epochs.truncate_start(13));
        assert_eq!(epochs.entries(), [(3, 13), (6, 25)]);
        assert!(!epochs.truncate_start(13));
        assert!(epochs.truncate_end(25));
        assert_eq!(epochs.entries(), [(3, 13)]);
        assert_eq!(epochs.of_offset(12), None);
        assert!(!epochs.truncate_end(26));
    }
}
