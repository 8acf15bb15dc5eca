//! The active segment: when it is closed, and what takes its place
//! (org.apache.kafka.storage.internals.log.LogSegment.shouldRoll, LocalLog.roll).

use std::sync::Arc;

use super::config::LogConfig;
use super::fault::{At, Fault};
use super::layout::{self, Kind};
use super::log::Log;
use super::segment::Segment;
use crate::os::random;
use crate::protocol::records::batch::Header;

/// Positions in a segment fit an index entry.
const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// What is known of the active segment besides its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) bytes_since_index: u64,
    /// The first batch's newest timestamp, once looked up.
    pub(super) first_timestamp: Option<i64>,
    pub(super) created_ms: i64,
    pub(super) jitter_ms: i64,
    /// Whether it was appended to since [`Log::rest`] looked.
    pub(super) is_busy: bool,
    /// Where the next segment was to begin, of which there may be files: nothing is appended to this
    /// one before that is begun, for a start would take this one to end there.
    pub(super) ended_at: Option<i64>,
}

impl Active {
    pub(super) fn new(config: &LogConfig, now_ms: i64) -> Self {
        let jitter = u64::try_from(config.segment_jitter_ms).unwrap_or(0);
        let jitter = match jitter {
            0 => 0,
            bound => i64::try_from(random::below(bound)).unwrap_or(0),
        };
        Self {
            bytes_since_index: 0,
            first_timestamp: None,
            created_ms: now_ms,
            jitter_ms: jitter.min(config.segment_ms),
            is_busy: true,
            ended_at: None,
        }
    }
}

impl Log {
    /// Whether a batch goes into a new segment.
    pub(super) fn must_roll(
        &mut self,
        header: &Header,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<bool, Fault> {
        let segment = Arc::clone(self.active_segment());
        let size = segment.size();
        let incoming = header.size() as u64;
        let relative = header.last_offset() - segment.base_offset;
        if relative > i64::from(i32::MAX) {
            return Ok(true);
        }
        if self.active.ended_at.is_some() {
            return Ok(true);
        }
        if size == 0 {
            return Ok(false);
        }
        let limit = config.segment_bytes.min(SEGMENT_BYTES_MAX);
        let full = size.saturating_add(incoming) > limit
            || segment.offset_index.is_full()
            || segment.time_index.is_full();
        Ok(full || self.is_aged(&segment, header.max_timestamp, config, now_ms)?)
    }

    /// The age of a segment goes by its records where they have times, else by the clock.
    fn is_aged(
        &mut self,
        segment: &Segment,
        incoming_timestamp: i64,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<bool, Fault> {
        if self.active.first_timestamp.is_none() {
            self.active.first_timestamp = match segment.first() {
                // A damaged batch has no time that counts.
                Err(fault) if fault.is_damage() => Some(-1),
                first => first?.map(|first| first.max_timestamp),
            };
        }
        let waited = match self.active.first_timestamp {
            Some(first) if first >= 0 => incoming_timestamp.saturating_sub(first),
            Some(_) | None => now_ms.saturating_sub(self.active.created_ms),
        };
        Ok(waited > config.segment_ms.saturating_sub(self.active.jitter_ms))
    }

    /// Closes the active segment when it is older than it may be, as retention asks; says
    /// whether it did.
    pub(crate) fn roll_if_aged(&mut self, now_ms: i64) -> Result<bool, Fault> {
        let config = self.config();
        let segment = Arc::clone(self.active_segment());
        let newest = segment.newest()?.timestamp;
        let aged = segment.size() > 0 && self.is_aged(&segment, newest, &config, now_ms)?;
        if aged {
            self.roll(self.log_end_offset(), now_ms)?;
        }
        Ok(aged)
    }

    /// Closes the active segment and begins one at `base_offset`.
    pub(crate) fn roll(&mut self, base_offset: i64, now_ms: i64) -> Result<(), Fault> {
        let config = self.config();
        self.is_touched = true;
        let old = Arc::clone(self.active_segment());
        if old.base_offset == base_offset {
            return Ok(());
        }
        if self.active.ended_at != Some(base_offset) {
            self.forget_unbegun()?;
        }
        let new = Segment::open(
            &self.cache,
            &self.folder,
            base_offset,
            config.segment_index_bytes,
        )?;
        self.active.ended_at = Some(base_offset);
        if let Err(fault) = self.begin_segment(&old, &new) {
            // Where that does not succeed either, it is begun again before anything is appended.
            let _ = self.forget_unbegun();
            return Err(fault);
        }
        self.flush.sealed(old);
        self.segments.push(Arc::new(new));
        self.shared.set_segments(self.segments.clone());
        self.active = Active::new(&config, now_ms);
        Ok(())
    }

    fn begin_segment(&mut self, old: &Segment, new: &Segment) -> Result<(), Fault> {
        new.set_size(0)?;
        new.reset_indexes();
        new.txn_index.reset()?;
        new.create_files()?;
        new.reserve(&self.config())?;
        old.seal()?;
        self.write_snapshot(new.base_offset)
    }

    /// Takes back a segment that could not be begun, for good: the log may go on in the one before,
    /// and a start would have that end where this one begins.
    pub(super) fn forget_unbegun(&mut self) -> Result<(), Fault> {
        let Some(base_offset) = self.active.ended_at else {
            return Ok(());
        };
        let disk = self.cache.disk();
        let path = |kind| layout::path(&self.folder, base_offset, kind);
        for path in Kind::ALL.map(path).iter().filter(|path| disk.exists(path)) {
            disk.remove_file(path).at(path)?;
        }
        disk.sync_dir(&self.folder).at(&self.folder)?;
        self.active.ended_at = None;
        Ok(())
    }

    /// Lets the active segment's files be closed when nobody appended since the last call; the
    /// next append opens them again. For a round over all logs of a node.
    pub(crate) fn rest(&mut self) {
        if !std::mem::take(&mut self.active.is_busy) {
            self.active_segment().rest();
        }
    }
}
