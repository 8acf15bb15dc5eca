//! A log's records copied into a folder of another directory, and the log going on there.
//!
//! The copy is a log of its own in a `-future` folder until it is complete; it is appended to as a
//! follower appends. Then the two change places: whoever holds the log or reads it notices nothing
//! (ReplicaAlterLogDirsThread, LogManager.replaceCurrentWithFutureLog, KIP-113).

use bytes::Bytes;

use super::fault::{At, Fault};
use super::log::{AppendError, Log};
use super::read::{Located, LogReader, Want};

/// Whose trouble ended a copy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotCopied {
    /// The log cannot be read.
    #[error("it cannot be read: {0}")]
    From(Fault),
    /// The copy cannot be written.
    #[error("its copy cannot be written: {0}")]
    To(#[from] Fault),
}

impl Log {
    /// Brings this copy of a log one step nearer to it, by about so many bytes; says by how many.
    /// What was deleted at the log's start is deleted here, and where the two have nothing in common
    /// any more the copy begins anew.
    pub(crate) fn copy_from(
        &mut self,
        log: &LogReader,
        bytes_max: usize,
        now_ms: i64,
    ) -> Result<u64, NotCopied> {
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let here = self.log_end_offset();
        if here < start || here > end {
            self.truncate_fully(start, now_ms)?.remove()?;
            return Ok(0);
        }
        self.advance_log_start(start)?;
        if here == end {
            return Ok(0);
        }
        let want = Want {
            offset: here,
            upper: end,
            max_bytes: bytes_max,
            min_one: true,
        };
        match log.locate(&want).map_err(NotCopied::From)? {
            Located::Slice(slice) => {
                let mut bytes = vec![0; slice.len];
                let read = slice.file.read_exact_at(&mut bytes, slice.position);
                let path = log.live().first().map(|segment| segment.log.path());
                read.at(&path.unwrap_or_default())
                    .map_err(NotCopied::From)?;
                self.take(&bytes.into(), here, now_ms)
            }
            // A compaction took the last records; the next one's offset is what it is.
            Located::Empty => {
                self.extend_to(end, now_ms)?;
                Ok(0)
            }
            // Deleted since it was looked at.
            Located::OutOfRange => Ok(0),
        }
    }

    fn take(&mut self, bytes: &Bytes, here: i64, now_ms: i64) -> Result<u64, NotCopied> {
        let path = self.partition().to_string().into();
        match self.append_as_follower(bytes, now_ms) {
            Ok(Some(appended)) => Ok(appended.size as u64),
            Ok(None) | Err(AppendError::Misplaced { .. } | AppendError::Rejected(_)) => {
                let why = "no batch follows the last one";
                Err(NotCopied::From(Fault::Malformed { path, why }))
            }
            Err(AppendError::Corrupt(source)) => Err(NotCopied::From(Fault::Batch {
                path,
                position: u64::try_from(here).unwrap_or(0),
                source,
            })),
            Err(AppendError::Fault(fault)) => Err(fault.into()),
        }
    }

    /// Ends at `offset`, somewhere beyond the last record.
    fn extend_to(&mut self, offset: i64, now_ms: i64) -> Result<(), Fault> {
        self.settle()?;
        self.roll(offset, now_ms)?;
        self.shared.set_log_end(offset);
        Ok(())
    }

    /// Tells a copy of producers whose records are all gone: a retry of theirs is one still.
    pub(crate) fn tell_producers(&self, copy: &mut Self) {
        let start = self.log_start_offset();
        copy.producers.take_up_missing(&self.producers, start);
        copy.shared.set_first_open(copy.producers.first_open());
    }

    /// Makes a copy with the same end durable, with the leader epochs that no record tells of.
    pub(super) fn complete(&self, copy: &mut Self) -> Result<(), Fault> {
        debug_assert_eq!(self.log_end_offset(), copy.log_end_offset());
        copy.settle()?;
        if copy.epochs != self.epochs {
            copy.store_epochs(self.epochs.clone())?;
        }
        copy.flush_now()
    }

    /// Goes on in the folder of a complete copy, which becomes what this log was. Readers see the
    /// copy's files from here on, and everything else as it was.
    pub(super) fn change_places(&mut self, copy: &mut Self) {
        std::mem::swap(self, copy);
        // What others hold on to, and what only this log knows of its past.
        std::mem::swap(&mut self.shared, &mut copy.shared);
        std::mem::swap(&mut self.producers, &mut copy.producers);
        std::mem::swap(&mut self.epochs, &mut copy.epochs);
        for log in [&*self, &*copy] {
            log.shared.set_segments(log.segments.clone());
        }
        self.shared.set_durable(self.flush.recovery_point());
        self.set_config(self.config());
    }
}
