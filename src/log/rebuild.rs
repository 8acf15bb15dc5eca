//! The producers of a log as of an offset: the newest snapshot below, and what was written since
//! (org.apache.kafka.storage.internals.log.ProducerStateManager, UnifiedLog.rebuildProducerState).

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::fault::{At, Fault};
use super::layout::{self, FileName, Kind};
use super::log::{Log, read_marker};
use super::producers::{CompletedTxn, Producers};
use super::scan::{Found, HEADERS, Scan};
use super::segment::Segment;
use super::snapshot::StoredProducer;
use super::{read, snapshot};
use crate::os::disk::Disk;
use crate::protocol::records::batch::HEADER_LEN;

/// Applies one batch to the producers.
pub(super) fn replay(
    producers: &mut Producers,
    scan: &Scan,
    found: &Found,
) -> Result<Option<CompletedTxn>, Fault> {
    let Some(header) = found.header.filter(|header| header.has_producer_id()) else {
        return Ok(None);
    };
    if !header.is_control() {
        producers.apply(&header);
        return Ok(None);
    }
    let bytes = scan.bytes(found)?;
    let marker = bytes
        .get(HEADER_LEN..)
        .and_then(|records| read_marker(&header, records))
        .flatten();
    Ok(marker.and_then(|marker| producers.apply_marker(&header, marker)))
}

/// The producers of a log as it stands: the newest snapshot, and what was written since.
pub(super) fn rebuild_producers(log: &Log, now_ms: i64) -> Result<Producers, Fault> {
    let deadline = now_ms.saturating_sub(log.config().producer_id_expiration_ms);
    let disk = log.cache.disk();
    let known = producers_at(
        disk,
        &log.folder,
        &log.segments,
        &snapshots(disk, &log.folder)?,
        (log.log_start_offset(), log.log_end_offset()),
        deadline,
    )?;
    Ok(known.producers)
}

/// The producers as of some offset.
pub(super) struct Known {
    pub(super) producers: Producers,
    /// The snapshot that they were made from.
    pub(super) snapshot: Option<i64>,
}

/// The producers of these segments below `end`, without those last seen before `deadline`.
pub(super) fn producers_at(
    disk: Disk,
    folder: &Path,
    segments: &[Arc<Segment>],
    snapshots: &BTreeSet<i64>,
    (log_start, end): (i64, i64),
    deadline: i64,
) -> Result<Known, Fault> {
    let mut producers = Producers::default();
    let mut newest = None;
    for offset in snapshots.iter().copied().rev() {
        if offset > end || offset <= log_start {
            continue;
        }
        let path = layout::path(folder, offset, Kind::Snapshot);
        if let Some(stored) = read_snapshot(disk, &path)? {
            producers = Producers::load(stored, deadline);
            newest = Some(offset);
            break;
        }
        // A torn one is of no use; the log itself tells.
        remove(disk, &path)?;
    }
    let from = newest.unwrap_or(log_start);
    let first = read::floor(segments, from).unwrap_or(0);
    for segment in &segments[first.min(segments.len())..] {
        if from >= end || segment.base_offset >= end || segment.size() == 0 {
            continue;
        }
        let Some(start) = segment.find(from)? else {
            continue;
        };
        let mut scan = segment.scan_from(start.position, HEADERS)?;
        while let Some(found) = segment.step(&mut scan)? {
            if found.base_offset >= end {
                break;
            }
            // The log may begin inside a batch.
            if found.last_offset >= from {
                replay(&mut producers, &scan, &found)?;
            }
        }
    }
    Ok(Known {
        producers,
        snapshot: newest,
    })
}

fn read_snapshot(disk: Disk, path: &Path) -> Result<Option<Vec<StoredProducer>>, Fault> {
    match disk.read(path) {
        Ok(bytes) => Ok(snapshot::decode(&bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at(path),
    }
}

/// The offsets of the snapshots in a folder.
fn snapshots(disk: Disk, folder: &Path) -> Result<BTreeSet<i64>, Fault> {
    let mut offsets = BTreeSet::new();
    for entry in disk.list(folder).at(folder)? {
        match FileName::parse(&entry.name) {
            FileName::Live {
                offset,
                kind: Kind::Snapshot,
            } => {
                offsets.insert(offset);
            }
            FileName::Live { .. }
            | FileName::Swap { .. }
            | FileName::Cleaned { .. }
            | FileName::Leftover
            | FileName::Other => {}
        }
    }
    Ok(offsets)
}

/// Removes the snapshots that are of no use: outside the log, or neither at the start of a segment
/// nor where the log is anchored. Says whether there were any.
pub(super) fn drop_snapshots(
    log: &Log,
    snapshots: &BTreeSet<i64>,
    anchor: Option<i64>,
) -> Result<bool, Fault> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let begins_at = |offset| log.segments.iter().any(|one| one.base_offset == offset);
    remove_snapshots(log.cache.disk(), &log.folder, snapshots, |offset| {
        let useful = Some(offset) == anchor || begins_at(offset);
        offset > end || offset <= start || !useful
    })
}

/// Removes the snapshots of what was cut off, for good: they would vouch for indexes that are written
/// anew from now on.
pub(super) fn drop_snapshots_above(disk: Disk, folder: &Path, end: i64) -> Result<(), Fault> {
    let all = snapshots(disk, folder)?;
    match remove_snapshots(disk, folder, &all, |offset| offset > end)? {
        true => disk.sync_dir(folder).at(folder),
        false => Ok(()),
    }
}

fn remove_snapshots(
    disk: Disk,
    folder: &Path,
    snapshots: &BTreeSet<i64>,
    goes: impl Fn(i64) -> bool,
) -> Result<bool, Fault> {
    let mut any = false;
    for offset in snapshots.iter().copied().filter(|offset| goes(*offset)) {
        remove(disk, &layout::path(folder, offset, Kind::Snapshot))?;
        any = true;
    }
    Ok(any)
}

fn remove(disk: Disk, path: &Path) -> Result<(), Fault> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(path),
        Ok(()) | Err(_) => Ok(()),
    }
}
