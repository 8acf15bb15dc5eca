//! The aborted transactions of a segment, in the order of their markers
//! (org.apache.kafka.storage.internals.log.TransactionIndex). The file is made with the first.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fault::{At, Fault};
use super::files::{FileCache, LazyFile};

const ENTRY: usize = 34;
const VERSION: i16 = 0;

/// A transaction that was aborted, and the last stable offset once its marker was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbortedTxn {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// The offset of the marker.
    pub(crate) last_offset: i64,
    pub(crate) last_stable_offset: i64,
}

/// The transaction index of one segment.
#[derive(Debug)]
pub(crate) struct TxnIndex {
    file: LazyFile,
    bytes: AtomicU64,
}

impl TxnIndex {
    /// Opens the index at `path`; an absent one has no entries.
    pub(crate) fn open(cache: &Arc<FileCache>, path: PathBuf) -> Result<Self, Fault> {
        let file = LazyFile::new(cache, path);
        let bytes = file.len()?.unwrap_or(0);
        Ok(Self {
            file,
            bytes: AtomicU64::new(bytes - bytes % ENTRY as u64),
        })
    }

    /// Its file, which need not exist.
    pub(crate) fn file(&self) -> &LazyFile {
        &self.file
    }

    /// Whether it has no transaction.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.load(Ordering::Acquire) == 0
    }

    /// Adds a transaction.
    pub(crate) fn append(&self, aborted: AbortedTxn) -> Result<(), Fault> {
        let at = self.bytes.load(Ordering::Acquire);
        let file = self.file.write()?;
        file.write_all_at(&aborted.to_bytes(), at)
            .at(&self.file.path())?;
        self.bytes.store(at + ENTRY as u64, Ordering::Release);
        Ok(())
    }

    /// All its transactions.
    pub(crate) fn all(&self) -> Result<Vec<AbortedTxn>, Fault> {
        let len = usize::try_from(self.bytes.load(Ordering::Acquire)).unwrap_or(0);
        if len == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; len];
        let file = self.file.read()?;
        file.read_exact_at(&mut bytes, 0).at(&self.file.path())?;
        let (entries, _) = bytes.as_chunks::<ENTRY>();
        entries
            .iter()
            .map(|entry| AbortedTxn::parse(entry).ok_or_else(|| self.malformed()))
            .collect()
    }

    /// Adds to `found` what matters to a read of `from..upper`; says whether nothing further
    /// on can.
    pub(crate) fn collect(
        &self,
        from: i64,
        upper: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool, Fault> {
        for aborted in self.all()? {
            if aborted.last_offset >= from && aborted.first_offset < upper {
                found.push(aborted);
            }
            if aborted.last_stable_offset >= upper {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Forgets the transactions whose marker is at or beyond `offset`.
    pub(crate) fn truncate_to(&self, offset: i64) -> Result<(), Fault> {
        let all = self.all()?;
        let keep = all.partition_point(|aborted| aborted.last_offset < offset);
        if keep == all.len() {
            return Ok(());
        }
        self.cut((keep * ENTRY) as u64)
    }

    /// Forgets everything, also what cannot be read.
    pub(crate) fn reset(&self) -> Result<(), Fault> {
        if self.file.exists() {
            self.cut(0)?;
        }
        Ok(())
    }

    /// Whether its entries can be those of the segment at `base_offset`.
    pub(crate) fn is_plausible(&self, base_offset: i64) -> Result<bool, Fault> {
        match self.all() {
            Ok(all) => {
                let possible = |one: &AbortedTxn| {
                    one.last_offset >= base_offset && one.first_offset < one.last_offset
                };
                let grows = all.is_sorted_by(|one, next| one.last_offset < next.last_offset);
                Ok(grows && all.iter().all(possible))
            }
            Err(Fault::Malformed { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    fn cut(&self, bytes: u64) -> Result<(), Fault> {
        let file = self.file.write()?;
        file.set_len(bytes).at(&self.file.path())?;
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    fn malformed(&self) -> Fault {
        Fault::Malformed {
            path: self.file.path(),
            why: "an entry has an unknown version",
        }
    }
}

impl AbortedTxn {
    fn to_bytes(self) -> [u8; ENTRY] {
        let mut out = [0; ENTRY];
        out[..2].copy_from_slice(&VERSION.to_be_bytes());
        out[2..10].copy_from_slice(&self.producer_id.to_be_bytes());
        out[10..18].copy_from_slice(&self.first_offset.to_be_bytes());
        out[18..26].copy_from_slice(&self.last_offset.to_be_bytes());
        out[26..].copy_from_slice(&self.last_stable_offset.to_be_bytes());
        out
    }

    fn parse(entry: &[u8; ENTRY]) -> Option<Self> {
        let (version, fields) = entry.split_first_chunk()?;
        let (fields, _) = fields.as_chunks::<8>();
        let [a, b, c, d] = fields else {
            return None;
        };
        (i16::from_be_bytes(*version) == VERSION).then(|| Self {
            producer_id: i64::from_be_bytes(*a),
            first_offset: i64::from_be_bytes(*b),
            last_offset: i64::from_be_bytes(*c),
            last_stable_offset: i64::from_be_bytes(*d),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::disk::{Disk, TempDir};

    #[test]
    fn a_read_is_told_of_the_transactions_it_overlaps() {
        let dir = TempDir::new();
        let cache = FileCache::new(Disk, 4);
        let path = dir.path().join("t");
        let index = TxnIndex::open(&cache, path.clone()).unwrap();
        assert!(!index.file().exists());
        let aborted = |first, last, stable| AbortedTxn {
            producer_id: first,
            first_offset: first,
            last_offset: last,
            last_stable_offset: stable,
        };
        let all = [aborted(2, 5, 6), aborted(8, 12, 7), aborted(7, 15, 16)];
        for one in all {
            index.append(one).unwrap();
        }
        let collect = |from, upper| {
            let mut found = Vec::new();
            let done = index.collect(from, upper, &mut found).unwrap();
            (found, done)
        };
        assert_eq!(collect(0, 3), (vec![all[0]], true));
        assert_eq!(collect(6, 8), (vec![all[2]], true));
        assert_eq!(collect(6, 20), (vec![all[1], all[2]], false));
        index.truncate_to(13).unwrap();
        assert_eq!(Disk.read(&path).unwrap().len(), 68);
        let again = TxnIndex::open(&cache, path).unwrap();
        assert_eq!(again.all().unwrap(), all[..2]);
        assert!(again.is_plausible(5).unwrap() && !again.is_plausible(6).unwrap());
    }
}
