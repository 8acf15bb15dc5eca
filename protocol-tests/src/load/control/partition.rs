//! A partition of the control broker: one file of batches, and where each of them begins.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::load::batch;
use crate::load::frames::{i32_at, i64_at};
use crate::load::wrong;

/// The bytes before the part of a batch that its length counts.
const LENGTH_END: usize = 12;
/// Where the last offset's distance stands.
const LAST_OFFSET_DELTA: usize = 23;
/// How much of the file is read at once when it is opened again.
const SCAN: usize = 4 << 20;

pub(super) struct Partition {
    pub(super) file: Arc<File>,
    pub(super) size: u64,
    pub(super) end_offset: i64,
    /// The first offset of each batch, and its position.
    index: Vec<(i64, u64)>,
}

impl Partition {
    /// Opens the file and checks every batch in it; the first that is damaged ends the log.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut partition = Self {
            file: Arc::new(file),
            size: 0,
            end_offset: 0,
            index: Vec::new(),
        };
        partition.recover()?;
        Ok(partition)
    }

    fn recover(&mut self) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        let mut buffer = vec![0; SCAN];
        while self.size < len {
            let read = self.file.read_at(&mut buffer, self.size)?;
            let before = self.size;
            let mut at = 0;
            while let Some(size) = batch_size(&buffer[at..read]) {
                if read - at < size || !batch::is_sound(&buffer[at..at + size]) {
                    break;
                }
                self.note(&buffer[at..at + size]);
                at += size;
            }
            if self.size == before {
                break;
            }
        }
        self.file.set_len(self.size)
    }

    fn note(&mut self, batch: &[u8]) {
        self.index.push((self.end_offset, self.size));
        self.end_offset += i64::from(i32_at(batch, LAST_OFFSET_DELTA)) + 1;
        self.size += batch.len() as u64;
    }

    /// Appends a sound batch, which gets its offset; the offset.
    pub(super) fn append(&mut self, bytes: &mut [u8]) -> io::Result<i64> {
        if !batch::is_sound(bytes) {
            return Err(wrong("a damaged batch"));
        }
        let offset = self.end_offset;
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes[LENGTH_END..LENGTH_END + 4].copy_from_slice(&0_i32.to_be_bytes());
        self.file.write_all_at(bytes, self.size)?;
        self.note(bytes);
        Ok(offset)
    }

    /// Where the batch with this offset begins, and how many bytes there are from it on.
    pub(super) fn find(&self, offset: i64) -> (u64, u64) {
        let after = self.index.partition_point(|(first, _)| *first <= offset);
        let position = match after.checked_sub(1) {
            Some(at) if offset < self.end_offset => self.index[at].1,
            _ => self.size,
        };
        (position, self.size - position)
    }
}

fn batch_size(bytes: &[u8]) -> Option<usize> {
    if bytes.len() <= LENGTH_END || i64_at(bytes, 0) < 0 {
        return None;
    }
    let length = usize::try_from(i32_at(bytes, 8)).ok()?;
    Some(LENGTH_END + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::batch::Batch;

    #[test]
    fn a_reopened_partition_ends_before_what_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut partition = Partition::open(&path).unwrap();
        let mut batch = Batch::new(1000, 3);
        for expected in [0, 3, 6] {
            assert_eq!(partition.append(&mut batch.bytes).unwrap(), expected);
        }
        assert_eq!(partition.find(4), (1000, 2000));
        assert_eq!(partition.find(9), (3000, 0));
        partition.file.write_all_at(b"x", 2500).unwrap();
        let again = Partition::open(&path).unwrap();
        assert_eq!((again.end_offset, again.size), (6, 2000));
    }
}
