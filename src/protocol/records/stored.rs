//! Batches of every format that a log may hold, one after the other.

use super::batch::{BadBatch, Batch, Frame, Header};
use super::build::BatchBuilder;
use super::legacy::LegacyBatch;

/// A whole batch of any format.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored<'a> {
    /// Of magic 2.
    Current(Batch<'a>),
    /// Of magic 0 or 1.
    Legacy(LegacyBatch<'a>),
}

impl<'a> Stored<'a> {
    /// The batch that `bytes` begins with.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, BadBatch> {
        match Frame::parse(bytes)?.magic {
            0 | 1 => LegacyBatch::parse(bytes).map(Self::Legacy),
            _ => Batch::parse(bytes).map(Self::Current),
        }
    }

    /// All its bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Current(batch) => batch.bytes(),
            Self::Legacy(batch) => batch.bytes(),
        }
    }

    /// Compares the stored checksum with the bytes.
    pub(crate) fn check_crc(&self) -> Result<(), BadBatch> {
        match self {
            Self::Current(batch) => batch.check_crc(),
            Self::Legacy(batch) => batch.check_crc(),
        }
    }

    /// The offset of its last record.
    pub(crate) fn last_offset(&self) -> i64 {
        match self {
            Self::Current(batch) => batch.header.last_offset(),
            Self::Legacy(batch) => batch.last_offset(),
        }
    }

    /// Its header; of an old one what that would say in magic 2. Where the first of its messages
    /// lies is only known inside: behind the batch before, which ends at `log_end`.
    pub(crate) fn header(&self, log_end: i64) -> Header {
        match self {
            Self::Current(batch) => batch.header,
            Self::Legacy(batch) => {
                let last = batch.last_offset();
                let nearest = last.saturating_sub(i64::from(i32::MAX));
                let base = log_end.clamp(nearest, last);
                let mut header = BatchBuilder::new(base).header();
                header.last_offset_delta = i32::try_from(last - base).unwrap_or(0);
                header.max_timestamp = batch.max_timestamp();
                header.batch_length = batch.length();
                header
            }
        }
    }
}

/// The batches of a buffer; a cut tail ends them without a word, as with
/// [`Batches`](super::batch::Batches).
#[derive(Clone, Debug)]
pub(crate) struct StoredBatches<'a> {
    rest: &'a [u8],
}

impl<'a> StoredBatches<'a> {
    /// Begins at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for StoredBatches<'a> {
    type Item = Result<Stored<'a>, BadBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match Stored::parse(self.rest) {
            Ok(batch) => {
                self.rest = &self.rest[batch.bytes().len()..];
                Some(Ok(batch))
            }
            Err(BadBatch::CutShort { .. }) => None,
            Err(bad) => {
                self.rest = &[];
                Some(Err(bad))
            }
        }
    }
}
