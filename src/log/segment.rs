//! One segment: a file of batches with its indexes (org.apache.kafka.storage.internals.log.LogSegment).
//!
//! Shared with readers: what they use is either immutable, atomic, or behind a lock held for a few
//! instructions. Only the log that owns it appends and truncates.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::config::LogConfig;
use super::fault::{At, Fault};
use super::files::{FileCache, LazyFile};
use super::layout::{self, Kind};
use super::offset_index::{OffsetIndex, OffsetPosition};
use super::scan::{Found, NEARBY, Scan, Stop};
use super::tail::{Placed, Tail};
use super::time_index::{TimeIndex, TimestampOffset};
use super::txn_index::TxnIndex;
use crate::os::disk::File;

/// How many segments were opened.
static IDS: AtomicU64 = AtomicU64::new(0);

/// A segment of a log.
#[derive(Debug)]
pub(crate) struct Segment {
    /// No other segment of this process has it, also not one that takes this one's place.
    pub(crate) id: u64,
    pub(crate) base_offset: i64,
    pub(crate) log: LazyFile,
    pub(crate) offset_index: OffsetIndex,
    pub(crate) time_index: TimeIndex,
    pub(crate) txn_index: TxnIndex,
    /// Bytes of whole batches; what the file has beyond is not ours.
    size: AtomicU64,
    /// Whether the file is longer than its batches, for those to come.
    is_reserved: AtomicBool,
    /// Read from the time index when it is asked for.
    newest: Mutex<Option<TimestampOffset>>,
    tail: Mutex<Tail>,
}

/// What an appended batch means for the indexes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appending {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    /// Whether this batch gets an entry in the indexes.
    pub(crate) indexed: bool,
}

impl Segment {
    /// Opens the segment that begins at `base_offset`; its files are made when they are written.
    pub(crate) fn open(
        cache: &Arc<FileCache>,
        folder: &Path,
        base_offset: i64,
        index_bytes: usize,
    ) -> Result<Self, Fault> {
        Self::open_as(cache, folder, base_offset, index_bytes, "")
    }

    /// Opens a segment whose files have a suffix after their names.
    pub(crate) fn open_as(
        cache: &Arc<FileCache>,
        folder: &Path,
        base_offset: i64,
        index_bytes: usize,
        suffix: &str,
    ) -> Result<Self, Fault> {
        let path = |kind| folder.join(layout::file_name(base_offset, kind) + suffix);
        let log = LazyFile::new(cache, path(Kind::Log));
        let size = log.len()?.unwrap_or(0);
        let offset_index =
            OffsetIndex::open(cache, path(Kind::OffsetIndex), base_offset, index_bytes)?;
        let time_index = TimeIndex::open(cache, path(Kind::TimeIndex), base_offset, index_bytes)?;
        Ok(Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            base_offset,
            log,
            offset_index,
            time_index,
            txn_index: TxnIndex::open(cache, path(Kind::TxnIndex))?,
            size: AtomicU64::new(size),
            is_reserved: AtomicBool::new(false),
            newest: Mutex::new(None),
            tail: Mutex::default(),
        })
    }

    /// Makes the files of a new segment.
    pub(crate) fn create_files(&self) -> Result<(), Fault> {
        self.log.write()?;
        self.offset_index.file().write()?;
        self.time_index.file().write()?;
        Ok(())
    }

    /// Takes the full size of a segment on the disk, if the topic wants that, until it is closed. What
    /// lies beyond the batches after a crash is cut off like anything else that is none.
    pub(crate) fn reserve(&self, config: &LogConfig) -> Result<(), Fault> {
        if !config.preallocate {
            return Ok(());
        }
        let file = self.log.write()?;
        let bytes = config.segment_bytes.min(i32::MAX as u64);
        file.set_len(bytes.max(self.size())).at(&self.log.path())?;
        self.is_reserved.store(true, Ordering::Release);
        Ok(())
    }

    /// Bytes of its batches.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// When its batches were last written to, by the wall clock.
    pub(crate) fn modified_ms(&self) -> Result<i64, Fault> {
        let path = self.log.path();
        self.log.read()?.modified_ms().at(&path)
    }

    /// The newest timestamp, with the last offset of the batch that has it; -1 without any.
    pub(crate) fn newest(&self) -> Result<TimestampOffset, Fault> {
        self.newest_in(&mut self.newest.lock())
    }

    /// How new it is, in milliseconds since 1970: its newest timestamp, or when it was last written
    /// to where no record has one.
    pub(crate) fn newest_ms(&self) -> Result<i64, Fault> {
        match self.newest() {
            Ok(newest) if newest.timestamp >= 0 => Ok(newest.timestamp),
            // Also where neither index nor batches tell any more.
            Ok(_) => self.modified_ms(),
            Err(fault) if fault.is_damage() => self.modified_ms(),
            Err(fault) => Err(fault),
        }
    }

    fn newest_in(&self, newest: &mut Option<TimestampOffset>) -> Result<TimestampOffset, Fault> {
        if let Some(newest) = newest {
            return Ok(*newest);
        }
        let found = if self.time_index.is_plausible()? {
            self.time_index.last()?
        } else {
            // Somebody damaged it. Without entries a search only takes longer.
            self.time_index.raw().truncate(0);
            self.scan_newest()?
        };
        Ok(*newest.insert(found))
    }

    /// Writes a batch behind the last in one call. When that fails nothing is changed: what was
    /// written of it lies beyond the known size, and is cut off.
    pub(crate) fn append(&self, pieces: &[&[u8]], batch: Appending) -> Result<(), Fault> {
        let file = self.log.write()?;
        let position = self.size();
        let written = match file.write_pieces_at(pieces, position) {
            Ok(()) => self.index(position, batch),
            error => error.at(&self.log.path()),
        };
        if let Err(fault) = written {
            // Should this fail too, the next append overwrites and recovery cuts.
            let _ = file.set_len(position);
            return Err(fault);
        }
        let size = pieces.iter().map(|piece| piece.len() as u64).sum();
        let mut tail = self.tail.lock();
        tail.push(batch.base_offset, batch.last_offset, position, size);
        self.size.store(position + size, Ordering::Release);
        Ok(())
    }

    /// Notes a batch that is already in the file, as recovery does.
    pub(crate) fn index(&self, position: u64, batch: Appending) -> Result<(), Fault> {
        let newest = {
            let mut newest = self.newest.lock();
            let before = self.newest_in(&mut newest)?;
            let mut after = before;
            if batch.max_timestamp > before.timestamp {
                after = TimestampOffset {
                    timestamp: batch.max_timestamp,
                    offset: batch.last_offset,
                };
                *newest = Some(after);
            }
            if !batch.indexed {
                return Ok(());
            }
            (before, after)
        };
        let entries = self.offset_index.raw().len();
        let at = u32::try_from(position).unwrap_or(u32::MAX);
        let added = self
            .offset_index
            .append(batch.last_offset, at)
            .and_then(|()| self.time_index.append(newest.1));
        if added.is_err() {
            self.offset_index.raw().truncate(entries);
            *self.newest.lock() = Some(newest.0);
        }
        added
    }

    /// Drops half of what its tail knows, or all; says how much that was.
    pub(crate) fn forget_tail(&self, all: bool) -> usize {
        let mut tail = self.tail.lock();
        if all { tail.clear() } else { tail.shrink() }
    }

    /// Asks the tail.
    pub(crate) fn tail<T>(&self, ask: impl FnOnce(&Tail) -> T) -> T {
        ask(&self.tail.lock())
    }

    /// The first batch that reaches `offset`, by the index and a short scan.
    pub(crate) fn find(&self, offset: i64) -> Result<Option<Found>, Fault> {
        if self.size() == 0 {
            return Ok(None);
        }
        let mut scan = self.scan_for(offset, NEARBY)?;
        while let Some(found) = self.step(&mut scan)? {
            if found.last_offset >= offset {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Where the first batch that reaches `offset` lies: by the tail if it knows, else by
    /// [`Segment::find`].
    pub(crate) fn place(&self, offset: i64) -> Result<Option<Placed>, Fault> {
        if let Some(placed) = self.tail(|tail| tail.find(offset)) {
            return Ok(Some(placed));
        }
        Ok(self.find(offset)?.map(|found| Placed {
            base_offset: found.base_offset,
            position: found.position,
            size: found.size,
        }))
    }

    /// Where the batches wholly below `offset` end.
    pub(crate) fn end_below(&self, offset: i64) -> Result<u64, Fault> {
        if let Some(end) = self.tail(|tail| tail.end_below(offset)) {
            return Ok(end);
        }
        // The size first: a batch that is appended meanwhile must not be taken for one below.
        let size = self.size();
        let found = self.find(offset)?;
        Ok(found.map_or(size, |found| found.position))
    }

    /// Begins a scan over its batches at a position.
    pub(crate) fn scan_from(&self, position: u64, chunk: usize) -> Result<Scan, Fault> {
        let file = self.log.read()?;
        Ok(Scan::new(
            file,
            self.log.path(),
            position,
            self.size(),
            chunk,
        ))
    }

    /// Begins a scan shortly before `offset`, as the index says. That is a hint: where no batch lies
    /// that fits the entry, the scan begins with the segment. An entry has the last offset of what
    /// was written at its position at once, and older releases wrote several batches at once.
    pub(crate) fn scan_for(&self, offset: i64, chunk: usize) -> Result<Scan, Fault> {
        let entry = self.offset_index.floor(offset)?;
        let mut scan = self.scan_from(entry.position.into(), chunk)?;
        if entry.position == 0 {
            return Ok(scan);
        }
        let fits = match scan.peek() {
            Ok(found) => found.is_some_and(|found| {
                (self.base_offset..=entry.offset).contains(&found.base_offset)
            }),
            Err(Stop::Bad { .. }) => false,
            Err(Stop::Fault(fault)) => return Err(fault),
        };
        match fits {
            true => Ok(scan),
            false => self.scan_from(0, chunk),
        }
    }

    /// The next batch of a scan; a bad one is a fault, for the segment was checked before.
    pub(crate) fn step(&self, scan: &mut Scan) -> Result<Option<Found>, Fault> {
        scan.next().map_err(|stop| stop.into_fault(self.log.path()))
    }

    /// The header of the first batch, for the age of the segment.
    pub(crate) fn first(&self) -> Result<Option<Found>, Fault> {
        if self.size() == 0 {
            return Ok(None);
        }
        let mut scan = self.scan_from(0, NEARBY)?;
        self.step(&mut scan)
    }

    /// Cuts off all batches that reach `offset`.
    pub(crate) fn truncate_to(&self, offset: i64) -> Result<(), Fault> {
        let Some(placed) = self.place(offset)? else {
            return Ok(());
        };
        self.forget_tail(true);
        self.offset_index.truncate_to(offset)?;
        self.time_index.truncate_to(offset)?;
        self.txn_index.truncate_to(offset)?;
        self.set_size(placed.position)?;
        // What the files still have of it must not be met behind what is written from now on.
        self.offset_index.raw().trim()?;
        self.time_index.raw().trim()?;
        *self.newest.lock() = Some(self.scan_newest()?);
        Ok(())
    }

    /// Drops the index entries at or beyond `offset`, and whatever a crash left behind those below;
    /// gives the last one below.
    pub(crate) fn cut_indexes(&self, offset: i64) -> Result<OffsetPosition, Fault> {
        self.offset_index.truncate_to(offset)?;
        self.time_index.truncate_to(offset)?;
        self.txn_index.truncate_to(offset)?;
        *self.newest.lock() = Some(self.time_index.last()?);
        self.offset_index.last()
    }

    /// Whether the files of its indexes end with their entries.
    pub(crate) fn has_exact_indexes(&self) -> Result<bool, Fault> {
        Ok(self.offset_index.raw().is_exact()? && self.time_index.raw().is_exact()?)
    }

    /// Writes out what of its indexes is in memory only, the newest timestamp included.
    pub(crate) fn settle_indexes(&self) -> Result<(), Fault> {
        self.time_index.close(self.newest()?)?;
        self.offset_index.raw().write_out()?;
        self.time_index.raw().write_out()
    }

    /// Cuts the file; batches beyond `size` are gone.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), Fault> {
        self.size.store(size, Ordering::Release);
        let file = self.log.write()?;
        file.set_len(size).at(&self.log.path())
    }

    /// Forgets all index entries, for they are made anew.
    pub(crate) fn reset_indexes(&self) {
        self.offset_index.raw().truncate(0);
        self.time_index.raw().truncate(0);
        *self.newest.lock() = Some(TimestampOffset {
            timestamp: -1,
            offset: self.base_offset,
        });
    }

    /// Finds the newest timestamp: the last index entry, or something newer behind it.
    fn scan_newest(&self) -> Result<TimestampOffset, Fault> {
        let mut newest = self.time_index.last()?;
        let mut scan = self.scan_for(newest.offset, NEARBY)?;
        while let Some(found) = self.step(&mut scan)? {
            if found.max_timestamp > newest.timestamp {
                newest = TimestampOffset {
                    timestamp: found.max_timestamp,
                    offset: found.last_offset,
                };
            }
        }
        Ok(newest)
    }

    /// Sees to it that the newest timestamp is that of a batch: where the batch that it is said to be
    /// of has another, it is looked for among all. An index may be damaged.
    pub(crate) fn confirm_newest(&self) -> Result<(), Fault> {
        let told = self.newest()?;
        if told.timestamp < 0 {
            return Ok(());
        }
        let found = self.find(told.offset)?;
        if found.is_some_and(|found| found.max_timestamp == told.timestamp) {
            return Ok(());
        }
        let mut newest = TimestampOffset {
            timestamp: -1,
            offset: self.base_offset,
        };
        let mut scan = self.scan_from(0, NEARBY)?;
        while let Some(found) = self.step(&mut scan)? {
            if found.max_timestamp > newest.timestamp {
                newest.timestamp = found.max_timestamp;
                newest.offset = found.last_offset;
            }
        }
        let mut known = self.newest.lock();
        // Appended to meanwhile, it knows more.
        if *known == Some(told) {
            *known = Some(newest);
        }
        Ok(())
    }

    /// Closes the segment's indexes: the last time entry is written and what was reserved is
    /// given back. Appending to it again is possible.
    pub(crate) fn seal(&self) -> Result<(), Fault> {
        if self.is_reserved.swap(false, Ordering::AcqRel) {
            self.set_size(self.size())?;
        }
        self.time_index.close(self.newest()?)?;
        self.offset_index.raw().trim()?;
        self.time_index.raw().trim()?;
        self.txn_index.file().release();
        self.log.release();
        Ok(())
    }

    /// Lets its files be closed while nobody appends; the next append opens them again.
    pub(crate) fn rest(&self) {
        // What could not be written stays in memory and is tried again.
        let _ = self.offset_index.raw().write_out();
        let _ = self.time_index.raw().write_out();
        for file in self.lazy_files() {
            file.release();
        }
    }

    /// The files that a flush must sync, the batches first.
    pub(crate) fn files(&self) -> Result<Vec<Arc<File>>, Fault> {
        let mut files = vec![self.log.read()?];
        for file in [
            self.offset_index.file(),
            self.time_index.file(),
            self.txn_index.file(),
        ] {
            if file.exists() {
                files.push(file.read()?);
            }
        }
        Ok(files)
    }

    /// Its files, whether they exist or not.
    pub(crate) fn lazy_files(&self) -> [&LazyFile; 4] {
        [
            &self.log,
            self.offset_index.file(),
            self.time_index.file(),
            self.txn_index.file(),
        ]
    }
}
