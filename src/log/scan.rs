//! Going over the batches of a segment file by their headers, with large sequential reads.
//!
//! Batches of magic 0 and 1 are known by their size, last offset and newest time only; Kafka keeps
//! and serves them, and so do we.

use std::path::PathBuf;
use std::sync::Arc;

use super::fault::{At, Fault};
use crate::os::disk::File;
use crate::protocol::records::batch::{BadBatch, FRAME_LEN, Frame, HEADER_LEN, Header};
use crate::protocol::records::checksum;
use crate::protocol::records::legacy;

/// Bytes read at once when a whole segment is read.
pub(crate) const WHOLE: usize = 1 << 20;
/// Bytes read at once when only headers are wanted.
pub(crate) const HEADERS: usize = 64 << 10;
/// Bytes read at once when a batch is looked for near an index entry.
pub(crate) const NEARBY: usize = 8 << 10;

const CHECKED_FROM: u64 = 21;

/// A batch in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) position: u64,
    pub(crate) size: u64,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    /// `None` for magic 0 and 1.
    pub(crate) header: Option<Header>,
    crc: u32,
}

impl Found {
    /// Where the next batch begins.
    pub(crate) fn end(&self) -> u64 {
        self.position + self.size
    }
}

/// Why a scan ends before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What stands here is no batch.
    Bad { position: u64, source: BadBatch },
    /// The file cannot be read.
    Fault(Fault),
}

impl Stop {
    /// A bad batch where none may be is a fault.
    pub(crate) fn into_fault(self, path: PathBuf) -> Fault {
        match self {
            Self::Bad { position, source } => Fault::Batch {
                path,
                position,
                source,
            },
            Self::Fault(fault) => fault,
        }
    }
}

/// A position that moves from batch to batch.
#[derive(Debug)]
pub(crate) struct Scan {
    file: Arc<File>,
    path: PathBuf,
    position: u64,
    end: u64,
    chunk: usize,
    window: Vec<u8>,
    window_at: u64,
}

impl Scan {
    /// Begins at `from`, which is the start of a batch, and ends at `end`.
    pub(crate) fn new(file: Arc<File>, path: PathBuf, from: u64, end: u64, chunk: usize) -> Self {
        Self {
            file,
            path,
            position: from,
            end,
            chunk,
            window: Vec::new(),
            window_at: from,
        }
    }

    /// Reads so many bytes at once from here on.
    pub(crate) fn read_at_once(&mut self, bytes: usize) {
        self.chunk = bytes;
    }

    /// Where the next batch begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch; its body is not looked at.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, Stop> {
        let found = self.peek()?;
        if let Some(found) = &found {
            self.position = found.end();
        }
        Ok(found)
    }

    /// The next batch, without going on to the one behind it.
    pub(crate) fn peek(&mut self) -> Result<Option<Found>, Stop> {
        if self.position >= self.end {
            return Ok(None);
        }
        let position = self.position;
        let head = self.see(position, HEADER_LEN).map_err(Stop::Fault)?;
        let found = parse(head, position).map_err(|source| Stop::Bad { position, source })?;
        let have = self.end - position;
        if found.size > have {
            let source = BadBatch::CutShort {
                have: usize::try_from(have).unwrap_or(usize::MAX),
                need: usize::try_from(found.size).unwrap_or(usize::MAX),
            };
            return Err(Stop::Bad { position, source });
        }
        Ok(Some(found))
    }

    /// Compares a batch's checksum with its bytes, a window at a time.
    pub(crate) fn check_crc(&mut self, found: &Found) -> Result<(), Stop> {
        let computed = match found.header {
            Some(_) => {
                let mut crc = 0;
                self.pass(found, CHECKED_FROM, |bytes| {
                    crc = checksum::crc32c_append(crc, bytes);
                })?;
                crc
            }
            None => {
                let mut crc = flate2::Crc::new();
                self.pass(found, legacy::CHECKED_FROM as u64, |bytes| {
                    crc.update(bytes)
                })?;
                crc.sum()
            }
        };
        if computed == found.crc {
            return Ok(());
        }
        let source = BadBatch::Checksum {
            stored: found.crc,
            computed,
        };
        Err(Stop::Bad {
            position: found.position,
            source,
        })
    }

    /// The whole batch.
    pub(crate) fn bytes(&self, found: &Found) -> Result<Vec<u8>, Fault> {
        let len = usize::try_from(found.size).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        self.file
            .read_exact_at(&mut bytes, found.position)
            .at(&self.path)?;
        Ok(bytes)
    }

    /// The whole batch, lent from what was read at once.
    pub(crate) fn lend(&mut self, found: &Found) -> Result<&[u8], Fault> {
        let len = usize::try_from(found.size).unwrap_or(usize::MAX);
        let seen = self.see(found.position, len)?;
        Ok(&seen[..seen.len().min(len)])
    }

    fn pass(&mut self, found: &Found, from: u64, mut visit: impl FnMut(&[u8])) -> Result<(), Stop> {
        let mut at = found.position + from;
        while at < found.end() {
            let rest = usize::try_from(found.end() - at).unwrap_or(usize::MAX);
            let seen = self.see(at, 1).map_err(Stop::Fault)?;
            let seen = &seen[..seen.len().min(rest)];
            if seen.is_empty() {
                let source = BadBatch::CutShort {
                    have: 0,
                    need: rest,
                };
                let position = found.position;
                return Err(Stop::Bad { position, source });
            }
            visit(seen);
            at += seen.len() as u64;
        }
        Ok(())
    }

    /// The bytes from `at` on: at least `want` of them unless the scan ends before.
    fn see(&mut self, at: u64, want: usize) -> Result<&[u8], Fault> {
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let window_end = self.window_at + self.window.len() as u64;
        if at < self.window_at || at + want.min(left) as u64 > window_end {
            self.window.resize(self.chunk.max(want).min(left), 0);
            let got = self.file.read_at(&mut self.window, at).at(&self.path)?;
            self.window.truncate(got);
            self.window_at = at;
        }
        let from = usize::try_from(at - self.window_at).unwrap_or(usize::MAX);
        Ok(self.window.get(from..).unwrap_or_default())
    }
}

fn parse(head: &[u8], position: u64) -> Result<Found, BadBatch> {
    let frame = Frame::parse(head)?;
    match frame.magic {
        2 => {
            let header = Header::parse(head)?;
            Ok(Found {
                position,
                size: frame.size as u64,
                base_offset: header.base_offset,
                last_offset: header.last_offset(),
                max_timestamp: header.max_timestamp,
                header: Some(header),
                crc: header.crc,
            })
        }
        0 | 1 => legacy::check_offset(frame.offset).map(|()| Found {
            position,
            size: frame.size as u64,
            base_offset: frame.offset,
            last_offset: frame.offset,
            max_timestamp: legacy_timestamp(head, frame.magic),
            header: None,
            crc: u32::from_be_bytes([head[12], head[13], head[14], head[15]]),
        }),
        magic => Err(BadBatch::Magic(magic)),
    }
}

/// Magic 1 has a timestamp behind its attributes, magic 0 none.
fn legacy_timestamp(head: &[u8], magic: i8) -> i64 {
    let field = head
        .get(FRAME_LEN + 1..)
        .and_then(|rest| rest.first_chunk());
    match field {
        Some(bytes) if magic == 1 => i64::from_be_bytes(*bytes),
        _ => -1,
    }
}
