//! Anchors: places inside a segment from which on a recovery may read it (see [`super::resume`]). An
//! anchor is a snapshot of the producers there, stored once everything below is durable, indexes
//! included; an ordinary flush leaves those of the active segment alone, for no reader needs them
//! durable. Kafka leaves such a snapshot at an orderly stop, after the same syncs
//! (LogManager.shutdown).

use std::io::ErrorKind;

use super::fault::{At, Fault};
use super::flush::Flush;
use super::layout::{self, Kind};
use super::log::Log;
use super::read::floor;
use super::snapshot;

/// A place in a log between two batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: i64,
    pub(super) segment_base: i64,
    /// Bytes of the segment before it.
    pub(super) position: u64,
}

/// The anchors of a log, the newest last.
#[derive(Debug, Default)]
pub(super) struct Anchors(Vec<Place>);

impl Anchors {
    pub(super) fn add(&mut self, anchor: Place) {
        self.0.retain(|one| one.offset != anchor.offset);
        self.0.push(anchor);
    }

    /// Where the segment is anchored that begins at `segment_base`, 0 where it is not.
    pub(super) fn position_in(&self, segment_base: i64) -> u64 {
        let last = self.0.last();
        let here = last.filter(|last| last.segment_base == segment_base);
        here.map_or(0, |last| last.position)
    }

    /// The log was cut at `end`.
    pub(super) fn truncate(&mut self, end: i64) {
        self.0.retain(|one| one.offset <= end);
    }

    /// Takes those out that no recovery begins at any more which goes by this recovery point, or a
    /// later one; that lies in the segment that begins at `segment_base`. Before a recovery point is
    /// stored the anchors of the one before must stay: a recovery that goes by that, and finds none,
    /// makes indexes anew, and a crash then brought one back that vouches for them.
    fn take_outdone(&mut self, recovery_point: i64, segment_base: i64) -> Vec<Place> {
        let is_below = |one: &&Place| one.offset <= recovery_point;
        let newest = self.0.iter().rfind(is_below).copied();
        let (outdone, stay) = self.0.iter().partition(|one| {
            one.segment_base < segment_base || (is_below(one) && Some(**one) != newest)
        });
        self.0 = stay;
        outdone
    }
}

impl Log {
    /// Whether a recovery would go over so many bytes that are durable.
    pub(crate) fn is_anchor_due(&self, bytes: u64) -> bool {
        self.flush.bytes_behind_anchor() >= bytes
    }

    /// Begins a flush that leaves an anchor where the log ends now.
    pub(crate) fn begin_anchor(&self) -> Result<Flush, Fault> {
        let active = self.active_segment();
        active.settle_indexes()?;
        let flush = self.begin_flush()?;
        if active.size() == 0 {
            return Ok(flush);
        }
        let producers = snapshot::encode(&self.producers.store());
        flush.with_anchor(active, producers)
    }

    /// Stores the anchor of a flush that has ended: not before, for it vouches for the indexes.
    pub(super) fn drop_anchor(&mut self, at: Place, producers: &[u8]) -> Result<(), Fault> {
        let path = snapshot::put(self.cache.disk(), &self.folder, at.offset, producers)?;
        self.flush.wrote(path);
        self.flush.anchors.add(at);
        Ok(())
    }

    /// Notes that the snapshot where the log ends is an anchor, as an orderly stop leaves it.
    pub(super) fn is_anchored_at_its_end(&mut self) {
        let active = self.active_segment();
        let place = Place {
            offset: self.log_end_offset(),
            segment_base: active.base_offset,
            position: active.size(),
        };
        if place.position > 0 {
            self.flush.anchors.add(place);
        }
    }

    /// Notes that a recovery point is stored: the anchors go that it makes useless.
    pub(crate) fn checkpointed(&mut self, recovery_point: i64) -> Result<(), Fault> {
        let last = recovery_point.saturating_sub(1);
        let segment = &self.segments[floor(&self.segments, last).unwrap_or(0)];
        let outdone = self
            .flush
            .anchors
            .take_outdone(recovery_point, segment.base_offset);
        for anchor in outdone {
            self.remove_anchor(anchor)?;
        }
        Ok(())
    }

    fn remove_anchor(&self, anchor: Place) -> Result<(), Fault> {
        if self
            .segments
            .iter()
            .any(|one| one.base_offset == anchor.offset)
        {
            return Ok(());
        }
        let path = layout::path(&self.folder, anchor.offset, Kind::Snapshot);
        match self.cache.disk().remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(&path),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_stays_until_a_later_one_is_below_the_stored_recovery_point() {
        let place = |offset, segment_base| Place {
            offset,
            segment_base,
            position: 1,
        };
        let mut anchors = Anchors::default();
        for offset in [5, 7, 9] {
            anchors.add(place(offset, 0));
        }
        assert_eq!(anchors.take_outdone(6, 0), []);
        assert_eq!(anchors.take_outdone(8, 0), [place(5, 0)]);
        anchors.add(place(12, 10));
        assert_eq!(anchors.take_outdone(9, 0), [place(7, 0)]);
        assert_eq!((anchors.position_in(10), anchors.position_in(0)), (1, 0));
        assert_eq!(anchors.take_outdone(11, 10), [place(9, 0)]);
        assert_eq!(anchors.take_outdone(12, 10), []);
        assert_eq!(anchors.take_outdone(20, 15), [place(12, 10)]);
        assert!(anchors.0.is_empty());
    }
}
