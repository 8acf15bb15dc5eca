//! What readers of a log use without its lock: its offsets, where records lie, what was aborted,
//! what was written when. A reader never waits for an append.
//!
//! The log publishes; readers take snapshots. A read names bytes of a file and touches none of
//! them. They stay what they are: appends go behind them, a deletion leaves the open file, and a
//! truncation is a follower's only, above what its leader committed, which is all that consumers
//! are sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use super::config::LogConfig;
use super::epochs::{EpochEnd, Epochs};
use super::fault::Fault;
use super::scan::NEARBY;
use super::segment::Segment;
use super::tail::Placed;
use super::time_index::TimestampOffset;
use super::txn_index::AbortedTxn;
use crate::base::LeaderEpoch;
use crate::os::disk::File;
use crate::protocol::records::batch::Batch;
use crate::protocol::records::iter::walk;

/// A log as its readers see it.
#[derive(Clone, Debug)]
pub(crate) struct LogReader {
    shared: Arc<Shared>,
}

/// What a log publishes.
#[derive(Debug)]
pub(super) struct Shared {
    log_start: AtomicI64,
    log_end: AtomicI64,
    /// Everything below is durable.
    durable: AtomicI64,
    /// First offset of the oldest open transaction; `i64::MAX` without any.
    first_open: AtomicI64,
    /// Transactions whose marker may not be replicated yet, by first offset; they count how many.
    undecided: Mutex<BTreeMap<i64, i64>>,
    undecided_count: AtomicUsize,
    segments: RwLock<Arc<[Arc<Segment>]>>,
    epochs: RwLock<Arc<Epochs>>,
    config: RwLock<Arc<LogConfig>>,
}

/// What a read asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// The first offset wanted; what is found may begin before it, at the start of its batch.
    pub(crate) offset: i64,
    /// Nothing at or beyond this offset is given: high watermark, last stable offset or log end.
    pub(crate) upper: i64,
    pub(crate) max_bytes: usize,
    /// Gives the first batch whole, however large.
    pub(crate) min_one: bool,
}

/// What a read found.
#[derive(Clone, Debug)]
pub(crate) enum Located {
    /// Records.
    Slice(Slice),
    /// Nothing to give, now or within the bytes allowed.
    Empty,
    /// The offset lies below the log's start or beyond its end.
    OutOfRange,
}

/// Bytes of a segment: whole batches, the last of which may be cut.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) file: Arc<File>,
    pub(crate) position: u64,
    pub(crate) len: usize,
    /// Of the first batch.
    pub(crate) base_offset: i64,
    pub(crate) segment_base_offset: i64,
    segment_id: u64,
    /// As the read was given it.
    upper: i64,
}

/// A record found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOffset {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: LeaderEpoch,
}

/// A segment as retention sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentInfo {
    pub(crate) base_offset: i64,
    /// Where the next segment begins, or the log ends.
    pub(crate) next_offset: i64,
    pub(crate) size: u64,
}

impl Shared {
    pub(super) fn new(
        segments: Vec<Arc<Segment>>,
        (log_start, log_end): (i64, i64),
        epochs: Epochs,
        config: Arc<LogConfig>,
    ) -> Arc<Self> {
        Arc::new(Self {
            log_start: AtomicI64::new(log_start),
            log_end: AtomicI64::new(log_end),
            durable: AtomicI64::new(0),
            first_open: AtomicI64::new(i64::MAX),
            undecided: Mutex::default(),
            undecided_count: AtomicUsize::new(0),
            segments: RwLock::new(segments.into()),
            epochs: RwLock::new(Arc::new(epochs)),
            config: RwLock::new(config),
        })
    }

    pub(super) fn log_start(&self) -> i64 {
        self.log_start.load(Ordering::Acquire)
    }

    pub(super) fn log_end(&self) -> i64 {
        self.log_end.load(Ordering::Acquire)
    }

    pub(super) fn set_log_start(&self, offset: i64) {
        self.log_start.store(offset, Ordering::Release);
    }

    pub(super) fn set_log_end(&self, offset: i64) {
        self.log_end.store(offset, Ordering::Release);
    }

    pub(super) fn set_durable(&self, offset: i64) {
        self.durable.store(offset, Ordering::Release);
    }

    pub(super) fn set_first_open(&self, offset: Option<i64>) {
        let offset = offset.unwrap_or(i64::MAX);
        self.first_open.store(offset, Ordering::Release);
    }

    /// A transaction ended here; until its marker is replicated it still holds the last stable
    /// offset.
    pub(super) fn add_undecided(&self, first: i64, last: i64) {
        let mut undecided = self.undecided.lock();
        undecided.insert(first, last);
        self.undecided_count
            .store(undecided.len(), Ordering::Release);
    }

    /// Forgets ended transactions that a truncation may have undone.
    pub(super) fn clear_undecided(&self) {
        self.undecided.lock().clear();
        self.undecided_count.store(0, Ordering::Release);
    }

    pub(super) fn segments(&self) -> Arc<[Arc<Segment>]> {
        Arc::clone(&self.segments.read())
    }

    pub(super) fn set_segments(&self, segments: Vec<Arc<Segment>>) {
        *self.segments.write() = segments.into();
    }

    pub(super) fn epochs(&self) -> Arc<Epochs> {
        Arc::clone(&self.epochs.read())
    }

    pub(super) fn set_epochs(&self, epochs: Epochs) {
        *self.epochs.write() = Arc::new(epochs);
    }

    pub(super) fn config(&self) -> Arc<LogConfig> {
        Arc::clone(&self.config.read())
    }

    pub(super) fn set_config(&self, config: Arc<LogConfig>) {
        *self.config.write() = config;
    }
}

impl LogReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The first offset that may be read.
    pub(crate) fn log_start_offset(&self) -> i64 {
        self.shared.log_start()
    }

    /// The offset that the next record will get.
    pub(crate) fn log_end_offset(&self) -> i64 {
        self.shared.log_end()
    }

    /// Everything below is durable.
    pub(crate) fn durable_offset(&self) -> i64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// The settings in force.
    pub(crate) fn config(&self) -> Arc<LogConfig> {
        self.shared.config()
    }

    /// Below it every transaction is decided, and its marker replicated, given that everything
    /// below `high_watermark` is. The watermark must not go down.
    pub(crate) fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        // Before the open ones: a transaction is added here before it leaves there.
        let first_open = self.shared.first_open.load(Ordering::Acquire);
        let stable = high_watermark.min(first_open);
        if self.shared.undecided_count.load(Ordering::Acquire) == 0 {
            return stable.max(self.log_start_offset());
        }
        let mut undecided = self.shared.undecided.lock();
        undecided.retain(|_, last| *last >= high_watermark);
        self.shared
            .undecided_count
            .store(undecided.len(), Ordering::Release);
        let stable = match undecided.first_key_value() {
            Some((first, _)) => stable.min(*first),
            None => stable,
        };
        // A transaction may have begun in what was deleted since.
        stable.max(self.log_start_offset())
    }

    /// Where an epoch ends: the answer of OffsetForLeaderEpoch.
    pub(crate) fn epoch_end(&self, epoch: LeaderEpoch) -> EpochEnd {
        self.shared.epochs().end_of(epoch, self.log_end_offset())
    }

    /// The newest leader epoch with a start in this log.
    pub(crate) fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.shared.epochs().latest()
    }

    /// The leader epoch that an offset belongs to.
    pub(crate) fn epoch_of(&self, offset: i64) -> Option<LeaderEpoch> {
        self.shared.epochs().of_offset(offset)
    }

    /// Its segments, oldest first; the last is the active one.
    pub(crate) fn segments(&self) -> Vec<SegmentInfo> {
        let segments = self.shared.segments();
        let ends = segments.iter().skip(1).map(|next| next.base_offset);
        let ends = ends.chain([self.log_end_offset()]);
        let info = |(segment, next_offset): (&Arc<Segment>, i64)| SegmentInfo {
            base_offset: segment.base_offset,
            next_offset,
            size: segment.size(),
        };
        segments.iter().zip(ends).map(info).collect()
    }

    /// Its segments as they are.
    pub(super) fn live(&self) -> Arc<[Arc<Segment>]> {
        self.shared.segments()
    }

    /// The transactions aborted with a marker at or beyond `from` that began below `upper`.
    pub(super) fn aborted_between(&self, from: i64, upper: i64) -> Result<Vec<AbortedTxn>, Fault> {
        self.fresh(|segments| {
            let first = floor(segments, from).unwrap_or(0);
            let mut found = Vec::new();
            for segment in &segments[first..] {
                if segment.txn_index.collect(from, upper, &mut found)? {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// Looks at the segments; once more when a file is gone and others have taken their place, as
    /// after compaction.
    fn fresh<T>(
        &self,
        mut look: impl FnMut(&[Arc<Segment>]) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        loop {
            let segments = self.shared.segments();
            match look(&segments) {
                Err(fault)
                    if fault.is_not_found() && !Arc::ptr_eq(&segments, &self.shared.segments()) => {
                }
                done => return done,
            }
        }
    }

    /// Whether the segment at a base offset is no longer the active one.
    pub(crate) fn is_closed(&self, segment_base_offset: i64) -> bool {
        let segments = self.shared.segments();
        let active = segments.last();
        active.is_some_and(|active| active.base_offset > segment_base_offset)
    }

    /// Bytes of all its batches.
    pub(crate) fn size(&self) -> u64 {
        let segments = self.shared.segments();
        segments.iter().map(|segment| segment.size()).sum()
    }

    /// Bytes from the batch at `offset` to the batch at `upper`, as far as segments' sizes and
    /// the newest batches tell without reading: what a fetch that waits for bytes counts.
    pub(crate) fn bytes_between(&self, offset: i64, upper: i64) -> u64 {
        let segments = self.shared.segments();
        let mut bytes = 0;
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1).map(|next| next.base_offset);
            if segment.base_offset >= upper || next.is_some_and(|next| next <= offset) {
                continue;
            }
            let end = match next {
                Some(next) if next <= upper => segment.size(),
                Some(_) | None => segment
                    .tail(|tail| tail.end_below(upper))
                    .unwrap_or_else(|| segment.size()),
            };
            let start = match segment.base_offset < offset {
                true => segment.tail(|tail| tail.end_below(offset)).unwrap_or(0),
                false => 0,
            };
            bytes += end.saturating_sub(start);
        }
        bytes
    }

    /// Locates records by memory alone; `None` when that does not suffice, and
    /// [`LogReader::locate`] is to be asked where waiting for the disk hurts nobody.
    pub(crate) fn locate_hot(&self, want: &Want) -> Option<Located> {
        let segments = match self.admit(want) {
            Ok(segments) => segments,
            Err(answer) => return Some(answer),
        };
        let at = floor(&segments, want.offset)?;
        let segment = segments.get(at)?;
        let placed = segment.tail(|tail| tail.find(want.offset))?;
        let end = match segments.get(at + 1) {
            Some(next) if next.base_offset <= want.upper => segment.size(),
            Some(_) | None => segment.tail(|tail| tail.end_below(want.upper))?,
        };
        // Opening a name that was written lately waits for nothing.
        let file = segment.log.read().ok()?;
        Some(cut(want, segment, placed, end, file))
    }

    /// Locates records, with a look at the index and at headers where memory does not suffice.
    pub(crate) fn locate(&self, want: &Want) -> Result<Located, Fault> {
        if let Err(answer) = self.admit(want) {
            return Ok(answer);
        }
        let located = self.fresh(|segments| self.locate_in(segments, want));
        match located {
            // The segment was deleted and its file removed since.
            Err(fault) if fault.is_not_found() && want.offset < self.log_start_offset() => {
                Ok(Located::OutOfRange)
            }
            Ok(_) | Err(_) => located,
        }
    }

    fn locate_in(&self, segments: &[Arc<Segment>], want: &Want) -> Result<Located, Fault> {
        let from = floor(segments, want.offset).unwrap_or(0);
        for (at, segment) in segments.iter().enumerate().skip(from) {
            let Some(placed) = segment.place(want.offset)? else {
                // Compaction removed the rest of this segment.
                continue;
            };
            let end = match segments.get(at + 1) {
                Some(next) if next.base_offset <= want.upper => segment.size(),
                Some(_) | None => segment.end_below(want.upper)?,
            };
            let file = segment.log.read()?;
            return Ok(cut(want, segment, placed, end, file));
        }
        Ok(Located::Empty)
    }

    fn admit(&self, want: &Want) -> Result<Arc<[Arc<Segment>]>, Located> {
        if want.offset < self.log_start_offset() || want.offset > self.log_end_offset() {
            return Err(Located::OutOfRange);
        }
        if want.offset >= want.upper {
            return Err(Located::Empty);
        }
        Ok(self.shared.segments())
    }

    /// The aborted transactions that matter to a reader of `slice`, by memory alone: that is when
    /// there are none.
    pub(crate) fn aborted_hot(&self, slice: &Slice) -> Option<Vec<AbortedTxn>> {
        let segments = self.shared.segments();
        let from = floor(&segments, slice.segment_base_offset).unwrap_or(0);
        let none = segments[from..]
            .iter()
            .all(|segment| segment.txn_index.is_empty());
        none.then(Vec::new)
    }

    /// The aborted transactions that overlap what `slice` holds of offsets from `offset` on, in
    /// the order of their markers.
    pub(crate) fn aborted(&self, offset: i64, slice: &Slice) -> Result<Vec<AbortedTxn>, Fault> {
        let upper = self.fresh(|segments| self.upper_of(segments, slice))?;
        let from = offset.max(slice.segment_base_offset);
        self.aborted_between(from, upper)
    }

    /// An offset beyond all that a slice holds, and not far.
    fn upper_of(&self, segments: &[Arc<Segment>], slice: &Slice) -> Result<i64, Fault> {
        let at = floor(segments, slice.segment_base_offset).unwrap_or(0);
        let Some(segment) = segments.get(at).filter(|one| one.id == slice.segment_id) else {
            // Compacted since: positions mean something else now.
            return Ok(slice.upper);
        };
        let end = slice.position + slice.len as u64;
        let known = match segment.tail(|tail| tail.offset_at(end)) {
            Some(offset) => Some(offset),
            None => segment.offset_index.offset_at_or_after(end)?,
        };
        let next = segments.get(at + 1).map(|next| next.base_offset);
        let upper = known.or(next).unwrap_or(slice.upper);
        Ok(upper.min(slice.upper))
    }

    /// The first record at or after `timestamp`, below `upper`.
    pub(crate) fn offset_by_time(
        &self,
        timestamp: i64,
        upper: i64,
    ) -> Result<Option<TimedOffset>, Fault> {
        self.fresh(|segments| self.offset_by_time_in(segments, timestamp, upper))
    }

    fn offset_by_time_in(
        &self,
        segments: &[Arc<Segment>],
        timestamp: i64,
        upper: i64,
    ) -> Result<Option<TimedOffset>, Fault> {
        let start = self.log_start_offset();
        for segment in segments {
            if segment.newest()?.timestamp < timestamp {
                continue;
            }
            let hit = |offset, time| offset >= start && time >= timestamp;
            let from = segment.time_index.floor(timestamp)?.offset.max(start);
            if let Some(found) = search(segment, from, hit, |newest| newest >= timestamp)? {
                return Ok((found.offset < upper).then_some(found));
            }
        }
        Ok(None)
    }

    /// The first of the newest records, if it lies below `upper`.
    pub(crate) fn newest(&self, upper: i64) -> Result<Option<TimedOffset>, Fault> {
        self.fresh(newest_in)
            .map(|found| found.filter(|found| found.offset < upper))
    }
}

fn newest_in(segments: &[Arc<Segment>]) -> Result<Option<TimedOffset>, Fault> {
    let mut best: Option<(&Segment, TimestampOffset)> = None;
    for segment in segments {
        let newest = segment.newest()?;
        let least = best.map_or(-1, |(_, best)| best.timestamp);
        if newest.timestamp > least {
            best = Some((segment, newest));
        }
    }
    let Some((segment, newest)) = best else {
        return Ok(None);
    };
    let hit = |_, time| time == newest.timestamp;
    search(segment, newest.offset, hit, |of| of == newest.timestamp)
}

/// Looks through the records of batches from the one at `from` on, of those whose newest
/// timestamp is `promising`.
fn search(
    segment: &Segment,
    from: i64,
    hit: impl Fn(i64, i64) -> bool,
    promising: impl Fn(i64) -> bool,
) -> Result<Option<TimedOffset>, Fault> {
    let Some(placed) = segment.place(from)? else {
        return Ok(None);
    };
    let mut scan = segment.scan_from(placed.position, NEARBY)?;
    while let Some(found) = segment.step(&mut scan)? {
        if !promising(found.max_timestamp) {
            continue;
        }
        let Some(header) = found.header else {
            let (offset, timestamp) = (found.last_offset, found.max_timestamp);
            if hit(offset, timestamp) {
                let leader_epoch = LeaderEpoch(-1);
                return Ok(Some(TimedOffset {
                    timestamp,
                    offset,
                    leader_epoch,
                }));
            }
            continue;
        };
        let path = || segment.log.path();
        let bytes = scan.bytes(&found)?;
        let batch = Batch::parse(&bytes).map_err(|source| Fault::Batch {
            path: path(),
            position: found.position,
            source,
        })?;
        let bad = |source| Fault::Records {
            path: path(),
            position: found.position,
            source,
        };
        let mut first = None;
        // A walk, not a list: a stored batch may inflate to anything.
        walk(&batch, u64::MAX, |shape| {
            let offset = header.base_offset + i64::from(shape.offset_delta);
            let timestamp = header.timestamp_of(shape.timestamp_delta);
            if first.is_none() && hit(offset, timestamp) {
                first = Some((offset, timestamp));
            }
        })
        .map_err(bad)?;
        if let Some((offset, timestamp)) = first {
            let leader_epoch = LeaderEpoch(header.partition_leader_epoch);
            return Ok(Some(TimedOffset {
                timestamp,
                offset,
                leader_epoch,
            }));
        }
    }
    Ok(None)
}

/// The segment that `offset` would be in.
pub(super) fn floor(segments: &[Arc<Segment>], offset: i64) -> Option<usize> {
    segments
        .partition_point(|segment| segment.base_offset <= offset)
        .checked_sub(1)
}

/// Bounds what was found by what is wanted.
fn cut(want: &Want, segment: &Segment, first: Placed, end: u64, file: Arc<File>) -> Located {
    let first_size = usize::try_from(first.size).unwrap_or(usize::MAX);
    let room = end.saturating_sub(first.position);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let allowed = match want.min_one {
        true => want.max_bytes.max(first_size),
        false => want.max_bytes,
    };
    let len = allowed.min(room);
    // A first batch that is not whole is of no use to anybody (since Fetch version 3).
    if len < first_size {
        return Located::Empty;
    }
    Located::Slice(Slice {
        file,
        position: first.position,
        len,
        base_offset: first.base_offset,
        segment_base_offset: segment.base_offset,
        segment_id: segment.id,
        upper: want.upper,
    })
}
