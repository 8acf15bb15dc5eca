//! Where a recovery begins inside a segment: at the last anchor below the recovery point
//! ([`super::anchor`]).

use std::collections::BTreeSet;

use super::anchor::Place;
use super::config::LogConfig;
use super::fault::{At, Fault};
use super::layout::{self, Kind};
use super::producers::Producers;
use super::recover::{OpenLog, deadline};
use super::scan::{HEADERS, NEARBY, Stop};
use super::segment::Segment;
use super::snapshot;

/// So far back batches are looked for that a client may send again.
const RESENT: u64 = 64 << 10;

/// A place from which on a segment is to be read.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) place: Place,
    /// The producers there.
    pub(super) producers: Producers,
    /// The position of the last index entry below.
    pub(super) last_indexed: u64,
    /// Whether the segment's files have anything beyond.
    pub(super) has_more: bool,
}

/// The last anchor of a segment below the recovery point, if there is one that its indexes bear out;
/// they are cut to it. `next` is where the next segment begins.
pub(super) fn find(
    open: &OpenLog,
    segment: &Segment,
    snapshots: &BTreeSet<i64>,
    next: Option<i64>,
) -> Result<Option<Resumed>, Fault> {
    let disk = open.cache.disk();
    let least = segment.base_offset.max(open.log_start) + 1;
    for offset in snapshots.range(least..).rev() {
        if *offset > open.recovery_point {
            continue;
        }
        if Some(*offset) == next {
            // One that is made when a segment is closed says nothing of indexes; but a crash that
            // took the name of the next segment would have it say so of those that are made now.
            disk.sync_dir(&open.folder).at(&open.folder)?;
            continue;
        }
        let path = layout::path(&open.folder, *offset, Kind::Snapshot);
        let stored = snapshot::decode(&disk.read(&path).at(&path)?);
        if let Some(stored) = stored
            && let Some((position, last_indexed)) = position_of(segment, *offset, &open.config)?
        {
            let mut producers = Producers::load(stored, deadline(open));
            if !producers.is_empty() {
                producers.take_up_batches(before(segment, position)?);
            }
            let has_more = position < segment.size() || !segment.has_exact_indexes()?;
            return Ok(Some(Resumed {
                place: Place {
                    offset: *offset,
                    segment_base: segment.base_offset,
                    position,
                },
                producers,
                last_indexed,
                has_more,
            }));
        }
        // The indexes are made anew, and it must not vouch for those.
        disk.remove_file(&path).at(&path)?;
        disk.sync_dir(&open.folder).at(&open.folder)?;
    }
    Ok(None)
}

/// The producers of the batches that end at `position`, of the last few: a snapshot tells of the last
/// one of each producer only, and a client may send again what it was not answered.
fn before(segment: &Segment, position: u64) -> Result<Producers, Fault> {
    let mut recent = Producers::default();
    let from = position.saturating_sub(RESENT);
    let from = match segment.offset_index.offset_at_or_after(from)? {
        Some(offset) if from > 0 => segment.offset_index.floor(offset)?.position.into(),
        Some(_) | None => 0,
    };
    if position - from > 2 * RESENT {
        return Ok(recent);
    }
    let mut scan = segment.scan_from(from, HEADERS)?;
    while scan.position() < position {
        let Some(found) = segment.step(&mut scan)? else {
            break;
        };
        if let Some(header) = found.header.filter(|header| !header.is_control())
            && header.has_producer_id()
        {
            recent.apply(&header);
        }
    }
    Ok(recent)
}

/// Where the batches below `offset` end by the segment's indexes, which are cut there, with the
/// position of the last entry; nothing when they do not agree with the batches.
fn position_of(
    segment: &Segment,
    offset: i64,
    config: &LogConfig,
) -> Result<Option<(u64, u64)>, Fault> {
    // A restart counts the bytes from the last entry on anew. With more between, entries are missing.
    let unindexed_max = config.index_interval_bytes.saturating_mul(2);
    let entry = segment.cut_indexes(offset)?;
    let last_indexed = u64::from(entry.position);
    if segment.time_index.raw().len() == 0 || last_indexed >= segment.size() {
        return Ok(None);
    }
    let mut scan = segment.scan_from(last_indexed, NEARBY)?;
    let mut below = None;
    loop {
        let found = match scan.next() {
            Ok(found) => found,
            // What lies beyond the anchor may be torn.
            Err(Stop::Bad { .. }) => None,
            Err(Stop::Fault(fault)) => return Err(fault),
        };
        let is_first = below.is_none();
        match found {
            Some(found) if found.last_offset < offset => {
                let is_indexed = last_indexed == 0 || found.last_offset == entry.offset;
                let is_near = is_first || found.position - last_indexed <= unindexed_max;
                if (is_first && !is_indexed) || !is_near {
                    return Ok(None);
                }
                below = Some(found);
            }
            Some(found) if found.base_offset < offset => return Ok(None),
            Some(_) => return Ok(below.map(|below| (below.end(), last_indexed))),
            None => {
                let end = below.filter(|below| below.last_offset == offset - 1);
                return Ok(end.map(|below| (below.end(), last_indexed)));
            }
        }
    }
}
