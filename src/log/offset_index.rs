//! Offset to position: an entry names the last offset of a batch and where the batch begins,
//! so that an offset is found by one look-up and a short scan
//! (org.apache.kafka.storage.internals.log.OffsetIndex).

use std::path::PathBuf;
use std::sync::Arc;

use super::fault::Fault;
use super::files::{FileCache, LazyFile};
use super::index::Index;

/// The offset index of one segment.
#[derive(Debug)]
pub(crate) struct OffsetIndex {
    base_offset: i64,
    index: Index<8>,
}

/// An entry: the last offset of the batch that begins at the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetPosition {
    pub(crate) offset: i64,
    pub(crate) position: u32,
}

impl OffsetIndex {
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
    pub(crate) fn raw(&self) -> &Index<8> {
        &self.index
    }

    /// Its file.
    pub(crate) fn file(&self) -> &LazyFile {
        self.index.file()
    }

    /// Whether no entry fits any more.
    pub(crate) fn is_full(&self) -> bool {
        self.index.room() == 0
    }

    /// Adds an entry; one that does not fit or does not grow is left out.
    pub(crate) fn append(&self, offset: i64, position: u32) -> Result<(), Fault> {
        let Ok(relative) = i32::try_from(offset - self.base_offset) else {
            return Ok(());
        };
        if self.is_full() {
            return Ok(());
        }
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&relative.to_be_bytes());
        entry[4..].copy_from_slice(&position.to_be_bytes());
        self.index.push(entry)
    }

    /// Where to begin looking for `offset`: the last entry at or below it, else the beginning.
    pub(crate) fn floor(&self, offset: i64) -> Result<OffsetPosition, Fault> {
        let after = self
            .index
            .partition_point(|entry| self.parse(entry).offset <= offset)?;
        self.before(after)
    }

    /// The offset of the first entry at or beyond a position, where there is one.
    pub(crate) fn offset_at_or_after(&self, position: u64) -> Result<Option<i64>, Fault> {
        let at = self
            .index
            .partition_point(|entry| u64::from(self.parse(entry).position) < position)?;
        if at >= self.index.len() {
            return Ok(None);
        }
        Ok(Some(self.parse(&self.index.read(at)?).offset))
    }

    /// The last entry, else the beginning.
    pub(crate) fn last(&self) -> Result<OffsetPosition, Fault> {
        self.before(self.index.len())
    }

    /// Forgets the entries at or beyond `offset`, and the zeros behind them. No entry is of the first
    /// offset, for none is of the first batch.
    pub(crate) fn truncate_to(&self, offset: i64) -> Result<(), Fault> {
        let below = self.base_offset + 1..offset;
        let keep = self
            .index
            .partition_point(|entry| below.contains(&self.parse(entry).offset))?;
        self.index.truncate(keep);
        Ok(())
    }

    /// Whether its entries can be those of a segment of `size` bytes; a zero-filled tail cannot.
    pub(crate) fn is_plausible(&self, size: u64) -> Result<bool, Fault> {
        let last = self.last()?;
        let empty = self.index.len() == 0;
        Ok(empty || (last.offset > self.base_offset && u64::from(last.position) < size))
    }

    fn before(&self, at: usize) -> Result<OffsetPosition, Fault> {
        match at {
            0 => Ok(OffsetPosition {
                offset: self.base_offset,
                position: 0,
            }),
            _ => Ok(self.parse(&self.index.read(at - 1)?)),
        }
    }

    fn parse(&self, entry: &[u8; 8]) -> OffsetPosition {
        let [a, b, c, d, e, f, g, h] = *entry;
        OffsetPosition {
            offset: self
                .base_offset
                .saturating_add(i32::from_be_bytes([a, b, c, d]).into()),
            position: u32::from_be_bytes([e, f, g, h]),
        }
    }
}
