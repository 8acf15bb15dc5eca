//! A compacted segment takes the place of those it was made from, so that a crash at any moment
//! leaves the old ones or the new one (UnifiedLog.replaceSegments, LogLoader).
//!
//! ```text
//! names of the new files   on a start after a crash
//! .cleaned                 removed: they may not be whole
//! .swap                    whole and durable: what they replace is removed, they get their names
//! without suffix           done
//! ```
//!
//! Each line is durable before the next begins. While any file of a segment still is `.cleaned`,
//! its `.swap` files count for nothing.

use std::path::Path;
use std::sync::Arc;

use super::fault::{At, Fault};
use super::layout::{self, CLEANED, FileName, Kind, SWAP};
use super::log::{Doomed, Log};
use super::scan::Scan;
use super::segment::Segment;
use crate::os::disk::{Disk, Open, with_suffix};

/// Bytes read at once when only headers are wanted.
const HEADERS: usize = 64 << 10;

impl Log {
    /// Begins a segment that is to take the place of others, the first of which begins at
    /// `base_offset`.
    pub(crate) fn create_cleaned(&self, base_offset: i64) -> Result<Segment, Fault> {
        let disk = self.cache.disk();
        self.remove_cleaned()?;
        let index_bytes = self.config().segment_index_bytes;
        let segment =
            Segment::open_as(&self.cache, &self.folder, base_offset, index_bytes, CLEANED)?;
        if let Err(fault) = segment.create_files() {
            // On a full disk there may be room for the first of them only.
            let _ = segment.discard(disk);
            return Err(fault);
        }
        Ok(segment)
    }

    /// Removes what attempts left that were given up and could not do it themselves: a log is
    /// compacted by one at a time.
    fn remove_cleaned(&self) -> Result<(), Fault> {
        let disk = self.cache.disk();
        for entry in disk.list(&self.folder).at(&self.folder)? {
            if matches!(FileName::parse(&entry.name), FileName::Cleaned { .. }) {
                remove_if_exists(disk, &self.folder.join(&entry.name))?;
            }
        }
        Ok(())
    }

    /// Publishes a segment in the place of others, whose files are renamed away. `None` when the
    /// log has changed since: some of them were deleted, or its folder was moved.
    pub(crate) fn replace(
        &mut self,
        old: &[Arc<Segment>],
        new: &Arc<Segment>,
    ) -> Result<Option<Doomed>, Fault> {
        let first = |segment: &Arc<Segment>| Arc::ptr_eq(segment, &old[0]);
        let Some(at) = self.segments.iter().position(first) else {
            return Ok(None);
        };
        let present = self.segments.get(at..at + old.len());
        let same =
            |present: &[Arc<Segment>]| present.iter().zip(old).all(|(a, b)| Arc::ptr_eq(a, b));
        let is_active = at + old.len() >= self.segments.len();
        let is_here = new.log.path().parent() == Some(&self.folder);
        if is_active || !is_here || !present.is_some_and(same) {
            return Ok(None);
        }
        self.is_touched = true;
        let gone = self.segments.splice(at..at + old.len(), [Arc::clone(new)]);
        let gone = gone.collect();
        self.shared.set_segments(self.segments.clone());
        self.doom_but(gone, Some(new.base_offset)).map(Some)
    }

    /// Gives the files of a segment that is in place their names for good. The batches first: what
    /// is still to be renamed after a crash only follows them.
    pub(crate) fn finish_swap(&self, new: &Arc<Segment>) -> Result<(), Fault> {
        if !self.segments.iter().any(|one| Arc::ptr_eq(one, new)) {
            // Deleted since.
            return Ok(());
        }
        for (file, kind) in new.lazy_files().into_iter().zip(Kind::ALL) {
            file.rename_if_exists(layout::path(&self.folder, new.base_offset, kind))?;
        }
        Ok(())
    }
}

impl Segment {
    /// Says that its files are whole, all of them durable.
    pub(crate) fn ready_to_swap(&self, disk: Disk) -> Result<(), Fault> {
        let folder = self.log.path();
        let folder = folder.parent().unwrap_or_else(|| Path::new("."));
        for file in self.files()? {
            file.sync_data().at(folder)?;
        }
        for (file, kind) in self.lazy_files().into_iter().zip(Kind::ALL) {
            let path = layout::path(folder, self.base_offset, kind);
            file.rename_if_exists(with_suffix(&path, SWAP))?;
        }
        disk.sync_dir(folder).at(folder)
    }

    /// Removes its files: it was given up.
    pub(crate) fn discard(&self, disk: Disk) -> Result<(), Fault> {
        for file in self.lazy_files() {
            remove_if_exists(disk, &file.path())?;
        }
        Ok(())
    }
}

fn remove_if_exists(disk: Disk, path: &Path) -> Result<(), Fault> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at(path),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// After a crash: compactions that were not whole are removed, whole ones take their place. Says
/// whether there was any to complete.
pub(super) fn complete(disk: Disk, folder: &Path) -> Result<bool, Fault> {
    let mut live = Vec::new();
    let mut swaps = Vec::new();
    let mut cleaned = Vec::new();
    for entry in disk.list(folder).at(folder)? {
        match FileName::parse(&entry.name) {
            FileName::Cleaned { offset } => cleaned.push((offset, folder.join(&entry.name))),
            FileName::Swap { offset, kind } => swaps.push((offset, kind)),
            FileName::Live { offset, kind } => live.push((offset, kind)),
            FileName::Leftover | FileName::Other => {}
        }
    }
    let unfinished = cleaned.iter().map(|(offset, _)| *offset).min();
    let (void, swaps): (Vec<_>, Vec<_>) = swaps
        .into_iter()
        .partition(|(offset, _)| unfinished.is_some_and(|unfinished| *offset >= unfinished));
    for (offset, kind) in void {
        remove_if_exists(disk, &swapped(folder, offset, kind))?;
    }
    if !cleaned.is_empty() {
        // The void ones must be gone for good before what tells that they are void.
        disk.sync_dir(folder).at(folder)?;
    }
    for (_, path) in cleaned {
        remove_if_exists(disk, &path)?;
    }
    if swaps.is_empty() {
        return Ok(false);
    }
    take_place(disk, folder, &swaps, &live)?;
    Ok(true)
}

fn swapped(folder: &Path, offset: i64, kind: Kind) -> std::path::PathBuf {
    with_suffix(&layout::path(folder, offset, kind), SWAP)
}

/// A compaction that was complete takes the place of the segments it replaces.
fn take_place(
    disk: Disk,
    folder: &Path,
    swaps: &[(i64, Kind)],
    live: &[(i64, Kind)],
) -> Result<(), Fault> {
    for (base, _) in swaps.iter().filter(|(_, kind)| *kind == Kind::Log) {
        let path = swapped(folder, *base, Kind::Log);
        let file = Arc::new(disk.open(&path, Open::Read).at(&path)?);
        let len = file.len().at(&path)?;
        let mut scan = Scan::new(file, path.clone(), 0, len, HEADERS);
        let mut end = *base;
        while let Some(found) = scan.next().map_err(|stop| stop.into_fault(path.clone()))? {
            end = found.last_offset;
        }
        for (offset, kind) in live {
            let replaced = *kind != Kind::Snapshot && (*base..=end).contains(offset);
            if replaced {
                let path = layout::path(folder, *offset, *kind);
                disk.remove_file(&path).at(&path)?;
            }
        }
    }
    let is_log = |(_, kind): &&(i64, Kind)| *kind == Kind::Log;
    let logs = swaps.iter().filter(is_log);
    let others = swaps.iter().filter(|swap| !is_log(swap));
    for (offset, kind) in logs.chain(others) {
        let from = swapped(folder, *offset, *kind);
        let to = layout::path(folder, *offset, *kind);
        disk.rename(&from, &to).at(&from)?;
    }
    disk.sync_dir(folder).at(folder)
}
