//! What was appended lately: the boundaries of a segment's newest batches, in memory, so that a
//! reader at the tail is placed without a look at any file.
//!
//! A segment that nobody appends to has none. How many a log keeps in all is up to the log.

use std::collections::VecDeque;

/// A batch: its offsets and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Boundary {
    base_offset: i64,
    last_delta: u32,
    position: u32,
}

impl Boundary {
    fn last_offset(self) -> i64 {
        self.base_offset + i64::from(self.last_delta)
    }
}

/// The newest batches of a segment.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    batches: VecDeque<Boundary>,
    end_position: u64,
}

/// Where a batch lies, by the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) base_offset: i64,
    pub(crate) position: u64,
    pub(crate) size: u64,
}

impl Tail {
    /// Notes a batch behind the last.
    pub(crate) fn push(&mut self, base_offset: i64, last_offset: i64, position: u64, size: u64) {
        let last_delta = u32::try_from(last_offset - base_offset);
        let (Ok(last_delta), Ok(at)) = (last_delta, u32::try_from(position)) else {
            // Not to be described in four bytes: what is known must stay without gaps.
            self.batches.clear();
            return;
        };
        if self.end_position != position {
            self.batches.clear();
        }
        self.batches.push_back(Boundary {
            base_offset,
            last_delta,
            position: at,
        });
        self.end_position = position + size;
    }

    /// Drops the oldest half of what is known; says how much that was.
    pub(crate) fn shrink(&mut self) -> usize {
        let gone = self.batches.len().div_ceil(2);
        self.batches.drain(..gone);
        if self.batches.is_empty() {
            self.batches = VecDeque::new();
        }
        gone
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) -> usize {
        let gone = self.batches.len();
        self.batches = VecDeque::new();
        gone
    }

    /// The first batch that reaches `offset`; `None` when it may lie before what is known, or
    /// nothing reaches it.
    pub(crate) fn find(&self, offset: i64) -> Option<Placed> {
        let at = self.reaching(offset)?;
        let batch = self.batches.get(at)?;
        let end = match self.batches.get(at + 1) {
            Some(next) => u64::from(next.position),
            None => self.end_position,
        };
        let position = u64::from(batch.position);
        Some(Placed {
            base_offset: batch.base_offset,
            position,
            size: end - position,
        })
    }

    /// Where the batches that lie wholly below `offset` end; `None` when that may be before what
    /// is known.
    pub(crate) fn end_below(&self, offset: i64) -> Option<u64> {
        let at = self.reaching(offset)?;
        Some(match self.batches.get(at) {
            Some(batch) => batch.position.into(),
            None => self.end_position,
        })
    }

    /// The base offset of the first batch at or beyond `position`; `None` when it is not known.
    pub(crate) fn offset_at(&self, position: u64) -> Option<i64> {
        let before = |batch: &Boundary| u64::from(batch.position) < position;
        let at = self.batches.partition_point(before);
        let batch = self.batches.get(at)?;
        (at > 0 || u64::from(batch.position) == position).then_some(batch.base_offset)
    }

    fn reaching(&self, offset: i64) -> Option<usize> {
        let first = self.batches.front()?;
        if offset < first.base_offset {
            return None;
        }
        let below = |batch: &Boundary| batch.last_offset() < offset;
        Some(self.batches.partition_point(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail() -> Tail {
        let mut tail = Tail::default();
        tail.push(10, 12, 1000, 100);
        tail.push(13, 13, 1100, 50);
        tail.push(20, 29, 1150, 70);
        tail
    }

    #[test]
    fn an_offset_is_found_in_its_batch_or_the_next() {
        let tail = tail();
        assert_eq!(tail.find(9), None);
        assert_eq!(tail.find(11).unwrap().position, 1000);
        assert_eq!(tail.find(13).unwrap().size, 50);
        assert_eq!(tail.find(15).unwrap().base_offset, 20);
        assert_eq!(tail.find(29).unwrap().size, 70);
        assert_eq!(tail.find(30), None);
    }

    #[test]
    fn the_end_below_an_offset_is_the_start_of_the_batch_that_reaches_it() {
        let tail = tail();
        assert_eq!(tail.end_below(9), None);
        assert_eq!(tail.end_below(10), Some(1000));
        assert_eq!(tail.end_below(13), Some(1100));
        assert_eq!(tail.end_below(30), Some(1220));
        assert_eq!(tail.offset_at(1001), Some(13));
        assert_eq!(tail.offset_at(999), None);
        assert_eq!(tail.offset_at(1220), None);
    }

    #[test]
    fn what_is_dropped_is_not_known() {
        let mut tail = tail();
        assert_eq!(tail.shrink(), 2);
        assert_eq!(tail.find(13), None);
        assert_eq!(tail.find(20).unwrap().position, 1150);
        assert_eq!(tail.clear(), 1);
        assert_eq!(tail.end_below(30), None);
    }
}
