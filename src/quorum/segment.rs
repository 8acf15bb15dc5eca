//! One segment of the metadata log: the file of batches and its two sparse indexes, written as
//! Kafka does (org.apache.kafka.storage.internals.log.LogSegment).
//!
//! The indexes are never read by this node, which holds a place for every batch in memory; they
//! are there for Kafka and its tools. So they are neither synced nor preallocated, and opening a
//! segment writes them anew where they do not fit the batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::os::disk::{Disk, File, Open};
use crate::protocol::records::batch::Header;

use super::fault::{At, Fault};

/// Bytes between two entries of an index; Kafka uses its default for the metadata log too.
const INDEX_INTERVAL: u64 = 4096;

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) base: i64,
    pub(super) file: Arc<File>,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    offsets: IndexFile,
    times: IndexFile,
    newest: Option<Newest>,
    last_time: i64,
    since_entry: u64,
}

/// The greatest timestamp so far and the last offset of the batch that holds it.
#[derive(Clone, Copy, Debug)]
struct Newest {
    timestamp: i64,
    offset: i64,
}

impl Segment {
    /// Makes the files of a new segment; the names are durable once the folder is synced.
    pub(super) fn create(disk: Disk, dir: &Path, base: i64) -> Result<Self, Fault> {
        let path = dir.join(file_name(base, "log"));
        let file = disk.open(&path, Open::Write).at("create", &path)?;
        file.set_len(0).at("cut", &path)?;
        let mut segment = Self::over(disk, dir, base, file)?;
        segment.write_indexes()?;
        Ok(segment)
    }

    /// Opens a segment for being told of its batches by [`Segment::found`].
    pub(super) fn open(disk: Disk, dir: &Path, base: i64) -> Result<Self, Fault> {
        let path = dir.join(file_name(base, "log"));
        let file = disk.open(&path, Open::Write).at("open", &path)?;
        Self::over(disk, dir, base, file)
    }

    fn over(disk: Disk, dir: &Path, base: i64, file: File) -> Result<Self, Fault> {
        Ok(Self {
            base,
            file: Arc::new(file),
            path: dir.join(file_name(base, "log")),
            size: 0,
            offsets: IndexFile::open(disk, dir.join(file_name(base, "index")))?,
            times: IndexFile::open(disk, dir.join(file_name(base, "timeindex")))?,
            newest: None,
            last_time: -1,
            since_entry: 0,
        })
    }

    /// Counts a batch that stands at the end of what is known of the file.
    pub(super) fn found(&mut self, header: &Header) {
        let last = header.last_offset();
        if self
            .newest
            .is_none_or(|newest| header.max_timestamp > newest.timestamp)
        {
            self.newest = Some(Newest {
                timestamp: header.max_timestamp,
                offset: last,
            });
        }
        if self.since_entry > INDEX_INTERVAL {
            self.offsets.push(&relative(last, self.base));
            self.offsets.push(&position(self.size));
            self.push_newest();
            self.since_entry = 0;
        }
        let size = header.size() as u64;
        self.size += size;
        self.since_entry += size;
    }

    /// Writes a batch at the end.
    pub(super) fn append(&mut self, header: &Header, batch: &[u8]) -> Result<(), Fault> {
        self.file
            .write_all_at(batch, self.size)
            .at("write", &self.path)?;
        self.found(header);
        self.offsets.write_new()?;
        self.times.write_new()
    }

    /// Ends the segment: the time index gets its closing entry and the batches become durable.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        self.push_newest();
        self.times.write_new()?;
        self.sync()
    }

    /// Makes the batches durable.
    pub(super) fn sync(&self) -> Result<(), Fault> {
        self.file.sync_data().at("sync", &self.path)
    }

    /// Cuts the file to `size`; the caller has told this segment of no batch beyond it.
    pub(super) fn cut(&self, size: u64) -> Result<(), Fault> {
        self.file.set_len(size).at("cut", &self.path)?;
        self.sync()
    }

    /// Brings the index files to what the batches ask for.
    pub(super) fn write_indexes(&mut self) -> Result<(), Fault> {
        self.offsets.write_whole()?;
        self.times.write_whole()
    }

    /// Removes the files.
    pub(super) fn delete(&self, disk: Disk) -> Result<(), Fault> {
        for path in [&self.path, &self.offsets.path, &self.times.path] {
            disk.remove_file(path).at("remove", path)?;
        }
        Ok(())
    }

    fn push_newest(&mut self) {
        let Some(newest) = self.newest else { return };
        if newest.timestamp > self.last_time {
            self.times.push(&newest.timestamp.to_be_bytes());
            self.times.push(&relative(newest.offset, self.base));
            self.last_time = newest.timestamp;
        }
    }
}

/// An index file and what should stand in it.
#[derive(Debug)]
struct IndexFile {
    path: PathBuf,
    file: File,
    content: Vec<u8>,
    written: usize,
}

impl IndexFile {
    fn open(disk: Disk, path: PathBuf) -> Result<Self, Fault> {
        Ok(Self {
            file: disk.open(&path, Open::Write).at("open", &path)?,
            path,
            content: Vec::new(),
            written: 0,
        })
    }

    fn push(&mut self, bytes: &[u8]) {
        self.content.extend_from_slice(bytes);
    }

    fn write_new(&mut self) -> Result<(), Fault> {
        let new = &self.content[self.written..];
        if !new.is_empty() {
            self.file
                .write_all_at(new, self.written as u64)
                .at("write", &self.path)?;
            self.written = self.content.len();
        }
        Ok(())
    }

    fn write_whole(&mut self) -> Result<(), Fault> {
        let mut there = vec![0; self.content.len()];
        let wanted = self.content.len() as u64;
        let same = self.file.len().at("read", &self.path)? == wanted
            && self.file.read_at(&mut there, 0).at("read", &self.path)? == there.len()
            && there == self.content;
        if !same {
            self.file.set_len(0).at("cut", &self.path)?;
            self.file
                .write_all_at(&self.content, 0)
                .at("write", &self.path)?;
        }
        self.written = self.content.len();
        Ok(())
    }
}

/// A file name of the log: twenty digits and a suffix.
pub(super) fn file_name(offset: i64, suffix: &str) -> String {
    format!("{offset:020}.{suffix}")
}

/// The offset in a file name with this suffix.
pub(super) fn offset_in(name: &str, suffix: &str) -> Option<i64> {
    let digits = name.strip_suffix(suffix)?.strip_suffix('.')?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

fn relative(offset: i64, base: i64) -> [u8; 4] {
    i32::try_from(offset - base)
        .expect("a segment is rolled before its offsets leave 31 bits")
        .to_be_bytes()
}

fn position(size: u64) -> [u8; 4] {
    i32::try_from(size)
        .expect("a segment is rolled before its size leaves 31 bits")
        .to_be_bytes()
}
