//! Time to offset: an entry says that no batch up to its offset is newer than its timestamp
//! (org.apache.kafka.storage.internals.log.TimeIndex). Both columns grow strictly.

use std::path::PathBuf;
use std::sync::Arc;

use super::fault::Fault;
use super::files::{FileCache, LazyFile};
use super::index::Index;

/// The time index of one segment.
#[derive(Debug)]
pub(crate) struct TimeIndex {
    base_offset: i64,
    index: Index<12>,
}

/// The newest timestamp up to an offset, and the last offset of the batch that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampOffset {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

impl TimeIndex {
    /// Opens the index of the segment that begins at `base_offset`.
    pub(crate) fn open(
        cache: &Arc<FileCache>,
        path: PathBuf,
        base_offset: i64,
        max_bytes: usize,
    ) -> Result<Self, Fault> {
        let index = Index::open(cache, path, max_bytes)?;
        Ok(Self { base_offset, index })
    }

    /// The raw index.
    pub(crate) fn raw(&self) -> &Index<12> {
        &self.index
    }

    /// Its file.
    pub(crate) fn file(&self) -> &LazyFile {
        self.index.file()
    }

    /// Whether only the entry that closes the segment still fits.
    pub(crate) fn is_full(&self) -> bool {
        self.index.room() <= 1
    }

    /// Adds an entry when it is newer than the last; the place of the closing entry is kept
    /// free.
    pub(crate) fn append(&self, entry: TimestampOffset) -> Result<(), Fault> {
        if self.is_full() {
            Ok(())
        } else {
            self.close(entry)
        }
    }

    /// Adds the entry that closes the segment, when it is newer than the last.
    pub(crate) fn close(&self, entry: TimestampOffset) -> Result<(), Fault> {
        let last = self.last()?;
        let relative = i32::try_from(entry.offset - self.base_offset);
        let (true, Ok(relative)) = (entry.timestamp > last.timestamp, relative) else {
            return Ok(());
        };
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&entry.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&relative.to_be_bytes());
        self.index.push(bytes)
    }

    /// The last entry that is not newer than `timestamp`, else the beginning.
    pub(crate) fn floor(&self, timestamp: i64) -> Result<TimestampOffset, Fault> {
        let after = self
            .index
            .partition_point(|entry| self.parse(entry).timestamp <= timestamp)?;
        self.before(after)
    }

    /// The last entry, else no time at the beginning.
    pub(crate) fn last(&self) -> Result<TimestampOffset, Fault> {
        self.before(self.index.len())
    }

    /// Forgets the entries at or beyond `offset`, and the zeros behind them.
    pub(crate) fn truncate_to(&self, offset: i64) -> Result<(), Fault> {
        let below = self.base_offset..offset;
        let keep = self.index.partition_point(|entry| {
            *entry != [0; 12] && below.contains(&self.parse(entry).offset)
        })?;
        self.index.truncate(keep);
        Ok(())
    }

    /// Whether its ends can be those of a time index; a zero-filled tail cannot.
    pub(crate) fn is_plausible(&self) -> Result<bool, Fault> {
        if self.index.len() == 0 {
            return Ok(true);
        }
        let first = self.parse(&self.index.read(0)?);
        let last = self.last()?;
        let grows = self.index.len() == 1
            || (first.timestamp < last.timestamp && first.offset < last.offset);
        Ok(grows && first.offset >= self.base_offset)
    }

    fn before(&self, at: usize) -> Result<TimestampOffset, Fault> {
        match at {
            0 => Ok(TimestampOffset {
                timestamp: -1,
                offset: self.base_offset,
            }),
            _ => Ok(self.parse(&self.index.read(at - 1)?)),
        }
    }

    fn parse(&self, entry: &[u8; 12]) -> TimestampOffset {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *entry;
        TimestampOffset {
            timestamp: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            offset: self
                .base_offset
                .saturating_add(i32::from_be_bytes([i, j, k, l]).into()),
        }
    }
}
