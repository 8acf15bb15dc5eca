//! What of a log is durable, and making it so without its lock.
//!
//! A flush is begun under the lock, synced without it, and ended under it again. The recovery
//! point rises only at the end of a flush that succeeded, and not past a truncation in between.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::anchor::{Anchors, Place};
use super::fault::{At, Fault};
use super::files::FileCache;
use super::log::Log;
use super::segment::Segment;
use super::snapshot;
use crate::os::disk::{File, Open};

/// When records must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Before they are acknowledged.
    Now,
    /// After so many milliseconds at most.
    Within(i64),
    /// When the operating system likes.
    Sometime,
}

/// When so many records that are not durable must be, by a topic's options.
pub(crate) fn wish(unflushed: i64, flush_messages: i64, flush_ms: i64) -> Wish {
    match (unflushed >= flush_messages, flush_ms) {
        _ if unflushed <= 0 => Wish::Sometime,
        (true, _) => Wish::Now,
        (false, i64::MAX) => Wish::Sometime,
        (false, ms) => Wish::Within(ms),
    }
}

/// What a log knows of its durability.
#[derive(Debug, Default)]
pub(super) struct State {
    recovery_point: i64,
    /// Closed since the last flush: their indexes must be durable before they are trusted. With the
    /// number of the change, for one may be closed again while a flush is under way.
    sealed: Vec<(u64, Arc<Segment>)>,
    /// Snapshots written since.
    snapshots: Vec<(u64, PathBuf)>,
    /// Counts what was closed and written.
    changes: u64,
    /// Another after each truncation, and none that any other log has.
    generation: u64,
    /// How much of the active segment is durable.
    durable: Place,
    pub(super) anchors: Anchors,
}

/// A flush under way.
#[derive(Debug)]
pub(crate) struct Flush {
    /// Files of the active segment.
    active: Vec<(PathBuf, Arc<File>)>,
    /// Where the log ended.
    place: Place,
    /// The producers there, as a snapshot, for an anchor.
    producers: Option<Vec<u8>>,
    sealed: Vec<Arc<Segment>>,
    snapshots: Vec<PathBuf>,
    folder: Option<PathBuf>,
    cache: Arc<FileCache>,
    changes: u64,
    generation: u64,
}

impl Flush {
    /// Waits until everything that was written before it began is durable, names included. A
    /// failure is final: what was written may be lost, and a second try would not tell.
    pub(crate) fn sync(&self) -> Result<(), Fault> {
        let disk = self.cache.disk();
        for (path, file) in &self.active {
            file.sync_data().at(path)?;
        }
        for segment in &self.sealed {
            let path = segment.log.path();
            match segment.files() {
                Ok(files) => files
                    .iter()
                    .try_for_each(|file| file.sync_data().at(&path))?,
                // Deleted meanwhile: it owes nothing.
                Err(fault) if fault.is_not_found() => {}
                Err(fault) => return Err(fault),
            }
        }
        for path in &self.snapshots {
            match disk.open(path, Open::Read) {
                Ok(file) => file.sync_data().at(path)?,
                // Deleted meanwhile, with its segment.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).at(path),
            }
        }
        match &self.folder {
            Some(folder) => disk.sync_dir(folder).at(folder),
            None => Ok(()),
        }
    }

    /// Takes the indexes of the active segment along, to leave an anchor.
    pub(super) fn with_anchor(
        mut self,
        active: &Segment,
        producers: Vec<u8>,
    ) -> Result<Self, Fault> {
        let path = active.log.path();
        let files = active.files()?.into_iter();
        self.active = files.map(|file| (path.clone(), file)).collect();
        self.producers = Some(producers);
        // The index of transactions may be new.
        self.folder = path.parent().map(Path::to_owned);
        Ok(self)
    }

    /// What it makes durable: everything below.
    pub(crate) fn up_to(&self) -> i64 {
        self.place.offset
    }
}

fn next_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl State {
    pub(super) fn new(recovery_point: i64) -> Self {
        Self {
            recovery_point,
            generation: next_generation(),
            ..Self::default()
        }
    }

    pub(super) fn recovery_point(&self) -> i64 {
        self.recovery_point
    }

    /// How many bytes a recovery would read of what is durable.
    pub(super) fn bytes_behind_anchor(&self) -> u64 {
        let anchored = self.anchors.position_in(self.durable.segment_base);
        self.durable.position.saturating_sub(anchored)
    }

    pub(super) fn sealed(&mut self, segment: Arc<Segment>) {
        self.changes += 1;
        self.sealed.push((self.changes, segment));
    }

    pub(super) fn wrote(&mut self, snapshot: PathBuf) {
        self.changes += 1;
        self.snapshots.push((self.changes, snapshot));
    }

    /// A segment left the log.
    pub(super) fn forget(&mut self, segment: &Arc<Segment>) {
        self.sealed.retain(|(_, one)| !Arc::ptr_eq(one, segment));
    }

    /// The log was cut: a flush under way says nothing about what is written from now on.
    pub(super) fn truncated(&mut self, end: i64) {
        self.generation = next_generation();
        self.recovery_point = self.recovery_point.min(end);
        self.durable = Place::default();
        self.anchors.truncate(end);
    }

    pub(super) fn moved_to(&mut self, folder: &Path) {
        for (_, path) in &mut self.snapshots {
            if let Some(name) = path.file_name() {
                *path = folder.join(name);
            }
        }
    }

    pub(super) fn begin(
        &self,
        active: &Segment,
        log_end: i64,
        folder: &Path,
        cache: &Arc<FileCache>,
    ) -> Result<Flush, Fault> {
        let dirty = log_end > self.recovery_point && active.size() > 0;
        // New files come with a closed segment or a snapshot; the first one was made durable by
        // name when the log was made.
        let new_names = !self.sealed.is_empty() || !self.snapshots.is_empty();
        Ok(Flush {
            active: match dirty {
                true => vec![(active.log.path(), active.log.read()?)],
                false => Vec::new(),
            },
            place: Place {
                offset: log_end,
                segment_base: active.base_offset,
                position: active.size(),
            },
            producers: None,
            sealed: self.sealed.iter().map(|(_, one)| Arc::clone(one)).collect(),
            snapshots: self
                .snapshots
                .iter()
                .map(|(_, path)| path.clone())
                .collect(),
            folder: new_names.then(|| folder.to_owned()),
            cache: Arc::clone(cache),
            changes: self.changes,
            generation: self.generation,
        })
    }

    /// Takes over what a flush did; says whether that still counts.
    fn end(&mut self, flush: &Flush) -> bool {
        if flush.generation != self.generation {
            return false;
        }
        self.recovery_point = self.recovery_point.max(flush.place.offset);
        if flush.place.offset >= self.durable.offset {
            self.durable = flush.place;
        }
        self.sealed.retain(|(number, _)| *number > flush.changes);
        self.snapshots.retain(|(number, _)| *number > flush.changes);
        true
    }
}

impl Log {
    /// Stores the producers as of `offset`.
    pub(super) fn write_snapshot(&mut self, offset: i64) -> Result<(), Fault> {
        let disk = self.cache.disk();
        let written = snapshot::write(disk, &self.folder, offset, &self.producers)?;
        if let Some(path) = written {
            self.flush.wrote(path);
        }
        Ok(())
    }

    /// Begins a flush: what is to be synced, which needs no lock, and what it will make durable.
    pub(crate) fn begin_flush(&self) -> Result<Flush, Fault> {
        let active = self.active_segment();
        self.flush
            .begin(active, self.log_end_offset(), &self.folder, &self.cache)
    }

    /// Ends a flush that succeeded: the recovery point rises.
    pub(crate) fn end_flush(&mut self, flush: &Flush) -> Result<(), Fault> {
        if !self.flush.end(flush) {
            return Ok(());
        }
        self.shared.set_durable(self.flush.recovery_point());
        match &flush.producers {
            Some(producers) => self.drop_anchor(flush.place, producers),
            None => Ok(()),
        }
    }

    /// Whether a flush says anything of this log: it was neither cut nor moved elsewhere since.
    pub(crate) fn is_of(&self, flush: &Flush) -> bool {
        flush.generation == self.flush.generation
    }

    /// When what is not durable yet must be (`flush.messages`, `flush.ms`).
    pub(super) fn flush_wish(&self) -> Wish {
        let config = self.shared.config();
        let unflushed = self.log_end_offset() - self.flush.recovery_point();
        wish(unflushed, config.flush_messages, config.flush_ms)
    }

    /// Flushes here and now.
    pub(crate) fn flush_now(&mut self) -> Result<(), Fault> {
        let flush = self.begin_flush()?;
        flush.sync()?;
        self.end_flush(&flush)
    }

    /// Closes the log in order: indexes cut, producers stored, everything durable. It must not be
    /// appended to afterwards.
    pub(crate) fn close(&mut self) -> Result<(), Fault> {
        if !self.is_touched {
            return Ok(());
        }
        let active = Arc::clone(self.active_segment());
        active.seal()?;
        self.flush.sealed(active);
        let mut flush = self.begin_anchor()?;
        if flush.producers.is_some() {
            // The next makes names durable, with that of the anchor's snapshot.
            flush.folder = None;
        }
        flush.sync()?;
        self.end_flush(&flush)?;
        self.flush_now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_when_records_must_be_durable() {
        let max = i64::MAX;
        assert_eq!(wish(5, max, max), Wish::Sometime);
        assert_eq!(wish(0, 1, 5), Wish::Sometime);
        assert_eq!(wish(1, 1, max), Wish::Now);
        assert_eq!(wish(9, 10, 5), Wish::Within(5));
        assert_eq!(wish(10, 10, 5), Wish::Now);
    }
}
