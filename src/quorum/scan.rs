//! Reading a segment batch by batch, and what is done where no valid batch stands.
//!
//! A crash leaves at most a torn tail: one append is under way at a time, and nothing of it was
//! acknowledged. So a bad place may be cut off only if no valid batch follows; otherwise
//! acknowledged records would be lost, and the node must not start. But a disk that loses its power
//! writes the sectors of one append in any order: where one was never written, as its zeros tell,
//! what follows belongs to the same append (etcd's write-ahead log tells torn entries so too).

use std::io;

use crate::os::disk::File;
use crate::protocol::records::batch::{BadBatch, Batch};

/// What a disk writes as a whole.
const SECTOR: u64 = 512;
/// The base offset, with which a batch begins.
const OFFSET_BYTES: u64 = 8;
/// Bytes read at once.
const WINDOW: usize = 1 << 20;

/// What must hold for the next batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) offset: i64,
    pub(super) epoch: i32,
}

/// Offers each valid batch to `found`, from the start of the file on; says where they end.
pub(super) fn batches(
    file: &File,
    mut expected: Expected,
    mut found: impl FnMut(&Batch<'_>),
) -> io::Result<u64> {
    let mut window = Window::new(file)?;
    let mut position = 0;
    while let Some(batch) = window.batch_at(position)? {
        if !fits(&batch, expected) {
            break;
        }
        found(&batch);
        expected = Expected {
            offset: batch.header.next_offset(),
            epoch: batch.header.partition_leader_epoch,
        };
        position += batch.bytes().len() as u64;
    }
    Ok(position)
}

/// The first place from `position` on where a valid batch stands that may belong to the log.
pub(super) fn next_valid(
    file: &File,
    position: u64,
    expected: Expected,
) -> io::Result<Option<u64>> {
    let mut window = Window::new(file)?;
    for at in position..window.len {
        if window.may_begin_at(at)?
            && let Some(batch) = window.batch_at(at)?
            && batch.header.base_offset >= expected.offset
            && batch.header.partition_leader_epoch >= expected.epoch
            && batch.check_crc().is_ok()
        {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Whether a sector between a bad place and the next valid batch was never written: it is all
/// zeros, or from the bad place on.
pub(super) fn is_unwritten(file: &File, position: u64, next: u64) -> io::Result<bool> {
    let mut window = Window::new(file)?;
    let mut at = position;
    // A batch begins with zeros, so that it may seem to begin in a sector that was not written.
    while let end = (at / SECTOR + 1) * SECTOR
        && end < next + OFFSET_BYTES
    {
        let len = usize::try_from(end - at).unwrap_or(usize::MAX);
        if window.bytes_at(at, len)?[..len]
            .iter()
            .all(|byte| *byte == 0)
        {
            return Ok(true);
        }
        at = end;
    }
    Ok(false)
}

fn fits(batch: &Batch<'_>, expected: Expected) -> bool {
    batch.header.base_offset == expected.offset
        && batch.header.partition_leader_epoch >= expected.epoch
        && batch.check_crc().is_ok()
}

/// A part of the file in memory, moved along as it is asked for.
struct Window<'a> {
    file: &'a File,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a File) -> io::Result<Self> {
        Ok(Self {
            file,
            len: file.len()?,
            start: 0,
            bytes: Vec::new(),
        })
    }

    /// The batch whose lengths are possible at `position`; its checksum is not checked.
    fn batch_at(&mut self, position: u64) -> io::Result<Option<Batch<'_>>> {
        let mut need = WINDOW.min(64);
        loop {
            let there = self.bytes_at(position, need)?;
            match Batch::parse(there) {
                Ok(_) => break,
                Err(BadBatch::CutShort { need: whole, .. }) if whole > need => {
                    if position + whole as u64 > self.len {
                        return Ok(None);
                    }
                    need = whole;
                }
                Err(_) => return Ok(None),
            }
        }
        Ok(Batch::parse(self.bytes_at(position, need)?).ok())
    }

    /// A cheap first look: magic 2 where it should be.
    fn may_begin_at(&mut self, position: u64) -> io::Result<bool> {
        Ok(self.bytes_at(position, 17)?.get(16) == Some(&2))
    }

    /// At least `need` bytes from `position` on, fewer only at the end of the file.
    fn bytes_at(&mut self, position: u64, need: usize) -> io::Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        let wanted = (position + need as u64).min(self.len);
        if position < self.start || wanted > end {
            self.bytes.resize(need.max(WINDOW), 0);
            let read = self.file.read_at(&mut self.bytes, position)?;
            self.bytes.truncate(read);
            self.start = position;
        }
        let skip = usize::try_from(position - self.start).unwrap_or(usize::MAX);
        Ok(self.bytes.get(skip..).unwrap_or_default())
    }
}
