//! A sparse index file: entries of a fixed size in growing order, found by bisection with
//! positioned reads (org.apache.kafka.storage.internals.log.AbstractIndex, without its mapping).
//!
//! While its segment is active the file is extended to its full size, sparse, as Kafka does; it
//! is cut to its entries when the segment is rolled or closed. Entries once counted do not change
//! except by a truncation, so readers need no lock.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::fault::{At, Fault};
use super::files::{FileCache, LazyFile};

/// How many entries are read at once at the end of a search.
const BLOCK: usize = 256;

/// A file of entries of `N` bytes.
#[derive(Debug)]
pub(crate) struct Index<const N: usize> {
    file: LazyFile,
    entries: AtomicUsize,
    max_entries: AtomicUsize,
    /// Whether the file has its full size.
    extended: AtomicBool,
}

impl<const N: usize> Index<N> {
    /// Opens the index at `path` and counts its entries by its size; an absent one has none.
    pub(crate) fn open(
        cache: &Arc<FileCache>,
        path: PathBuf,
        max_bytes: usize,
    ) -> Result<Self, Fault> {
        let file = LazyFile::new(cache, path);
        let bytes = match cache.disk().exists(&file.path()) {
            true => file.read()?.len().at(&file.path())?,
            false => 0,
        };
        Ok(Self {
            entries: AtomicUsize::new(usize::try_from(bytes).unwrap_or(usize::MAX) / N),
            file,
            max_entries: AtomicUsize::new(max_bytes / N),
            extended: AtomicBool::new(false),
        })
    }

    /// How many entries it has.
    pub(crate) fn len(&self) -> usize {
        self.entries.load(Ordering::Acquire)
    }

    /// How many entries still fit.
    pub(crate) fn room(&self) -> usize {
        self.max_entries
            .load(Ordering::Relaxed)
            .saturating_sub(self.len())
    }

    /// Changes how large it may grow.
    pub(crate) fn set_max_bytes(&self, max_bytes: usize) {
        self.max_entries.store(max_bytes / N, Ordering::Relaxed);
    }

    /// Its file.
    pub(crate) fn file(&self) -> &LazyFile {
        &self.file
    }

    /// Writes an entry behind the last.
    pub(crate) fn push(&self, entry: [u8; N]) -> Result<(), Fault> {
        let file = self.file.write()?;
        let at = self.len();
        if !self.extended.load(Ordering::Relaxed) {
            let whole = self.max_entries.load(Ordering::Relaxed).max(at + 1) * N;
            file.set_len(whole as u64).at(&self.file.path())?;
            self.extended.store(true, Ordering::Relaxed);
        }
        file.write_all_at(&entry, (at * N) as u64)
            .at(&self.file.path())?;
        self.entries.store(at + 1, Ordering::Release);
        Ok(())
    }

    /// The entry at place `at`, which must be below [`Index::len`].
    pub(crate) fn read(&self, at: usize) -> Result<[u8; N], Fault> {
        let mut entry = [0; N];
        let file = self.file.read()?;
        file.read_exact_at(&mut entry, (at * N) as u64)
            .at(&self.file.path())?;
        Ok(entry)
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Result<Option<[u8; N]>, Fault> {
        match self.len() {
            0 => Ok(None),
            len => self.read(len - 1).map(Some),
        }
    }

    /// How many entries from the start satisfy `is_before`, which must hold for a prefix.
    pub(crate) fn partition_point(
        &self,
        is_before: impl Fn(&[u8; N]) -> bool,
    ) -> Result<usize, Fault> {
        let (mut low, mut high) = (0, self.len());
        while high - low > BLOCK {
            let middle = low + (high - low) / 2;
            if is_before(&self.read(middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == high {
            return Ok(low);
        }
        let mut block = vec![0; (high - low) * N];
        let file = self.file.read()?;
        file.read_exact_at(&mut block, (low * N) as u64)
            .at(&self.file.path())?;
        let (entries, _) = block.as_chunks::<N>();
        Ok(low + entries.partition_point(is_before))
    }

    /// Forgets the entries from place `len` on.
    pub(crate) fn truncate(&self, len: usize) {
        self.entries.fetch_min(len, Ordering::AcqRel);
    }

    /// Cuts the file to its entries and lets it be closed.
    pub(crate) fn trim(&self) -> Result<(), Fault> {
        let file = self.file.write()?;
        file.set_len((self.len() * N) as u64)
            .at(&self.file.path())?;
        self.extended.store(false, Ordering::Relaxed);
        self.file.release();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::disk::{Disk, TempDir};

    #[test]
    fn the_file_is_whole_while_written_and_cut_when_closed() {
        let dir = TempDir::new();
        let cache = FileCache::new(Disk, 4);
        let path = dir.path().join("i");
        let index = Index::<8>::open(&cache, path.clone(), 8003).unwrap();
        for n in 0..900u64 {
            index.push((n * 2).to_be_bytes()).unwrap();
        }
        assert_eq!(index.file().read().unwrap().len().unwrap(), 8000);
        assert_eq!(index.room(), 100);
        for wanted in [0, 1, 2, 3, 999, 1000, 1798, 1799, 5000] {
            let found = index
                .partition_point(|entry| u64::from_be_bytes(*entry) <= wanted)
                .unwrap();
            assert_eq!(found as u64, (wanted / 2 + 1).min(900), "{wanted}");
        }
        index.truncate(10);
        index.trim().unwrap();
        assert_eq!(Disk.read(&path).unwrap().len(), 80);
        let again = Index::<8>::open(&cache, path, 8003).unwrap();
        assert_eq!(again.last().unwrap(), Some(18u64.to_be_bytes()));
    }
}
