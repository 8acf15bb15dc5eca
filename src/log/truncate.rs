//! Cutting a log at its end, which only followers do: to agree with a leader whose log parts from
//! theirs.

use std::sync::Arc;

use super::epochs::Epochs;
use super::fault::{At, Fault};
use super::log::{Doomed, Log};
use super::rebuild;
use super::roll::Active;
use super::segment::Segment;

impl Log {
    /// Cuts off everything at and beyond `offset`; says whether there was anything. What is cut
    /// away in whole segments is returned for removal. The recovery point goes down, and must be
    /// checkpointed before anything is appended: a start must not trust what is written then.
    pub(crate) fn truncate_to(&mut self, offset: i64, now_ms: i64) -> Result<Doomed, Fault> {
        if offset >= self.log_end_offset() {
            return self.doom(Vec::new());
        }
        if offset < self.segments[0].base_offset {
            return self.truncate_fully(offset, now_ms);
        }
        self.is_touched = true;
        self.forget_unbegun()?;
        self.flush.truncated(offset);
        self.shared.set_durable(self.flush.recovery_point());
        self.shared.set_log_end(offset);
        let keep = self
            .segments
            .partition_point(|segment| segment.base_offset <= offset);
        let gone = self.segments.split_off(keep);
        self.shared.set_segments(self.segments.clone());
        let has_gone = !gone.is_empty();
        let doomed = self.doom(gone)?;
        if has_gone {
            // Else a crash could bring them back behind what is written from now on.
            self.cache.disk().sync_dir(&self.folder).at(&self.folder)?;
        }
        let active = Arc::clone(self.active_segment());
        self.tail_batches = self.tail_batches.saturating_sub(active.forget_tail(true));
        active.truncate_to(offset)?;
        self.shared
            .set_log_start(self.log_start_offset().min(offset));
        self.active = Active::new(&self.config(), now_ms);
        self.reload(offset, now_ms)?;
        Ok(doomed)
    }

    /// Drops everything and begins anew, empty, at `offset`.
    pub(crate) fn truncate_fully(&mut self, offset: i64, now_ms: i64) -> Result<Doomed, Fault> {
        let config = self.config();
        self.make()?;
        self.is_touched = true;
        self.forget_unbegun()?;
        self.flush.truncated(offset);
        self.shared.set_durable(self.flush.recovery_point());
        let doomed = self.doom(self.segments.clone())?;
        let segment = Segment::open(
            &self.cache,
            &self.folder,
            offset,
            config.segment_index_bytes,
        )?;
        // A log has a segment, also where its files cannot be made now.
        self.segments = vec![Arc::new(segment)];
        self.shared.set_segments(self.segments.clone());
        self.shared.set_log_start(offset);
        self.shared.set_log_end(offset);
        self.active = Active::new(&config, now_ms);
        // Should this fail, the next append sees to it that the names are durable.
        let is_settled = std::mem::take(&mut self.is_settled);
        self.active_segment().create_files()?;
        self.active_segment().reserve(&config)?;
        self.cache.disk().sync_dir(&self.folder).at(&self.folder)?;
        self.is_settled = is_settled;
        self.store_epochs(Epochs::default())?;
        self.reload(offset, now_ms)?;
        Ok(doomed)
    }

    /// Producers, epochs and snapshots as they are for a log that ends at `end`.
    fn reload(&mut self, end: i64, now_ms: i64) -> Result<(), Fault> {
        let mut epochs = self.epochs.clone();
        if epochs.truncate_end(end) {
            self.store_epochs(epochs)?;
        }
        rebuild::drop_snapshots_above(self.cache.disk(), &self.folder, end)?;
        self.producers = rebuild::rebuild_producers(self, now_ms)?;
        self.shared.clear_undecided();
        self.shared.set_first_open(self.producers.first_open());
        Ok(())
    }
}
