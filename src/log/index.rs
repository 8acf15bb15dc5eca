//! A sparse index file: entries of a fixed size in growing order, found by bisection with
//! positioned reads (org.apache.kafka.storage.internals.log.AbstractIndex, without its mapping).
//!
//! While its segment is active the file is extended to its full size, sparse, as Kafka does; it
//! is cut to its entries when the segment is rolled or closed. The newest entries are kept in
//! memory and written some at a time, so that few appends pay for one: an index that ends too early
//! only makes a search longer, and after a crash it is made anew. Entries once counted do not
//! change except by a truncation.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::fault::{At, Fault};
use super::files::{FileCache, LazyFile};

/// How many entries are read at once at the end of a search.
const BLOCK: usize = 256;

/// How many entries are written at once.
const UNWRITTEN_MAX: usize = 64;

/// A file of entries of `N` bytes.
#[derive(Debug)]
pub(crate) struct Index<const N: usize> {
    file: LazyFile,
    entries: AtomicUsize,
    max_entries: AtomicUsize,
    /// Whether the file has its full size.
    extended: AtomicBool,
    newest: Mutex<Newest<N>>,
}

/// The entries from place `first` on: the last one, once any was added, and those not written yet.
#[derive(Debug)]
struct Newest<const N: usize> {
    first: usize,
    entries: Vec<[u8; N]>,
    /// So many entries of the index are in the file.
    written: usize,
}

impl<const N: usize> Newest<N> {
    fn at(&self, place: usize) -> Option<[u8; N]> {
        let place = place.checked_sub(self.first)?;
        self.entries.get(place).copied()
    }

    fn unwritten(&self) -> &[[u8; N]] {
        self.entries
            .get(self.written.saturating_sub(self.first)..)
            .unwrap_or_default()
    }

    /// All are in the file now; the last one stays at hand.
    fn note_written(&mut self) {
        self.written = self.first + self.entries.len();
        let before_last = self.entries.len().saturating_sub(1);
        self.entries.drain(..before_last);
        self.first += before_last;
    }

    fn truncate(&mut self, len: usize) {
        self.written = self.written.min(len);
        if len <= self.first {
            self.first = len;
            self.entries = Vec::new();
        } else {
            self.entries.truncate(len - self.first);
        }
    }
}

impl<const N: usize> Index<N> {
    /// Opens the index at `path` and counts its entries by its size; an absent one has none.
    pub(crate) fn open(
        cache: &Arc<FileCache>,
        path: PathBuf,
        max_bytes: usize,
    ) -> Result<Self, Fault> {
        let file = LazyFile::new(cache, path);
        let bytes = file.len()?.unwrap_or(0);
        let entries = usize::try_from(bytes).unwrap_or(usize::MAX) / N;
        Ok(Self {
            entries: AtomicUsize::new(entries),
            file,
            max_entries: AtomicUsize::new(max_bytes / N),
            extended: AtomicBool::new(false),
            newest: Mutex::new(Newest {
                first: entries,
                entries: Vec::new(),
                written: entries,
            }),
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

    /// Its file, which may lack the newest entries.
    pub(crate) fn file(&self) -> &LazyFile {
        &self.file
    }

    /// Adds an entry behind the last.
    pub(crate) fn push(&self, entry: [u8; N]) -> Result<(), Fault> {
        let at = self.len();
        if !self.extended.load(Ordering::Relaxed) {
            let whole = self.max_entries.load(Ordering::Relaxed).max(at + 1) * N;
            let file = self.file.write()?;
            file.set_len(whole as u64).at(&self.file.path())?;
            self.extended.store(true, Ordering::Relaxed);
        }
        let mut newest = self.newest.lock();
        newest.entries.push(entry);
        if newest.unwritten().len() >= UNWRITTEN_MAX
            && let Err(fault) = self.write_newest(&mut newest)
        {
            newest.entries.pop();
            return Err(fault);
        }
        self.entries.store(at + 1, Ordering::Release);
        Ok(())
    }

    /// Writes the entries that are in memory only.
    pub(crate) fn write_out(&self) -> Result<(), Fault> {
        self.write_newest(&mut self.newest.lock())
    }

    fn write_newest(&self, newest: &mut Newest<N>) -> Result<(), Fault> {
        let unwritten = newest.unwritten().as_flattened();
        if unwritten.is_empty() {
            return Ok(());
        }
        let file = self.file.write()?;
        file.write_all_at(unwritten, (newest.written * N) as u64)
            .at(&self.file.path())?;
        newest.note_written();
        Ok(())
    }

    /// The entry at place `at`, which must be below [`Index::len`].
    pub(crate) fn read(&self, at: usize) -> Result<[u8; N], Fault> {
        if let Some(entry) = self.newest.lock().at(at) {
            return Ok(entry);
        }
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
        let entries = self.block(low, high)?;
        Ok(low + entries.partition_point(is_before))
    }

    /// The entries at the places from `low` to before `high`.
    fn block(&self, low: usize, high: usize) -> Result<Vec<[u8; N]>, Fault> {
        let mut entries = vec![[0; N]; high - low];
        let in_file = {
            let newest = self.newest.lock();
            let from = newest.first.clamp(low, high);
            for (place, entry) in (from..high).zip(&mut entries[from - low..]) {
                *entry = newest.at(place).unwrap_or(*entry);
            }
            &mut entries[..from - low]
        };
        if !in_file.is_empty() {
            let file = self.file.read()?;
            file.read_exact_at(in_file.as_flattened_mut(), (low * N) as u64)
                .at(&self.file.path())?;
        }
        Ok(entries)
    }

    /// Forgets the entries from place `len` on.
    pub(crate) fn truncate(&self, len: usize) {
        let mut newest = self.newest.lock();
        self.entries.fetch_min(len, Ordering::AcqRel);
        newest.truncate(self.len());
    }

    /// Cuts the file to its entries and lets it be closed.
    pub(crate) fn trim(&self) -> Result<(), Fault> {
        self.write_out()?;
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

    #[test]
    fn entries_in_memory_are_as_good_as_those_in_the_file() {
        let dir = TempDir::new();
        let cache = FileCache::new(Disk, 4);
        let path = dir.path().join("i");
        let index = Index::<8>::open(&cache, path.clone(), 8000).unwrap();
        let entries = |index: &Index<8>| -> Vec<u64> {
            let read = |at| u64::from_be_bytes(index.read(at).unwrap());
            (0..index.len()).map(read).collect()
        };
        let mut expected = Vec::new();
        let add = |expected: &mut Vec<u64>, count: u64| {
            for n in 0..count {
                let entry = expected.last().map_or(n, |last| last + 2);
                expected.push(entry);
                index.push(entry.to_be_bytes()).unwrap();
            }
        };
        let written = || Disk.read(&path).unwrap()[..800].to_vec();
        add(&mut expected, 63);
        assert_eq!(written(), [0; 800], "a few are not worth a write");
        add(&mut expected, 30);
        for cut in [90, 64, 63, 62, 20, 0] {
            for wanted in &expected {
                let found = index.partition_point(|entry| u64::from_be_bytes(*entry) < *wanted);
                let place = expected.partition_point(|entry| entry < wanted);
                assert_eq!(found.unwrap(), place);
            }
            assert_eq!(entries(&index), expected);
            index.truncate(cut);
            expected.truncate(cut);
            assert_eq!(entries(&index), expected);
            add(&mut expected, 5);
        }
        index.write_out().unwrap();
        let bytes: Vec<u8> = expected.iter().flat_map(|n| n.to_be_bytes()).collect();
        assert_eq!(&written()[..bytes.len()], bytes);
        add(&mut expected, 1);
        index.trim().unwrap();
        let again = Index::<8>::open(&cache, path.clone(), 8000).unwrap();
        assert_eq!(entries(&again), expected);
    }
}
