//! Opening the folder `__cluster_metadata-0`: a new one is made, one of ours or of Apache Kafka is
//! taken as it is.
//!
//! Voters come from the newest snapshot or the log (kraft.version 1), otherwise from the
//! configuration. They are handed to openraft as applied state; nothing is ever initialized, so
//! that the first batch of a new log is a leader change, as with Kafka.

use std::path::{Path, PathBuf};

use crate::os::disk::Disk;

use super::entry::fixed_members;
use super::fault::{At, Fault};
use super::log::{Basis, Folder, MetadataLog};
use super::settings::Settings;
use super::side::{Anchor, Election, QuorumState, Side};
use super::snapshot::{self, Content, SnapshotId};

const FOLDER: &str = "__cluster_metadata-0";
const PARTITION_METADATA: &str = "partition.metadata";
/// The topic id of `__cluster_metadata`, which is the same everywhere.
const PARTITION_METADATA_TEXT: &str = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ";

/// What was found or made.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) dir: PathBuf,
    pub(super) log: MetadataLog,
    pub(super) election: Election,
    pub(super) snapshot: Option<(SnapshotId, Content)>,
}

/// Opens the folder or makes it.
pub(super) fn open(settings: &Settings, disk: Disk) -> Result<Opened, Fault> {
    let dir = settings.dir.join(FOLDER);
    disk.create_dir_all(&dir).at("create", &dir)?;
    snapshot::tidy(disk, &dir)?;
    write_partition_metadata(disk, &dir)?;
    let snapshot = newest_snapshot(disk, &dir)?;
    let basis = basis_of(settings, snapshot.as_ref());
    let folder = Folder {
        disk,
        dir: dir.clone(),
        segment_bytes: settings.segment_bytes,
    };
    let mut log = MetadataLog::open(folder, basis.clone())?;
    if settings.voters.len() > 1 {
        // Read back is not durable, and other voters are told that this one has it. An only voter
        // begins with a batch of its own, whose sync covers all.
        log.sync()?;
    }
    let newest = snapshot.as_ref().map(|(id, _)| *id);
    begin(&mut log, &basis, newest, disk, &dir)?;
    log.write_epochs()?;
    log.tidy_producers()?;
    let election = election(&log, newest, QuorumState::read(disk, &dir)?);
    Ok(Opened {
        dir,
        log,
        election,
        snapshot,
    })
}

/// Written without a sync: its content never changes, and an empty one is written anew.
fn write_partition_metadata(disk: Disk, dir: &Path) -> Result<(), Fault> {
    let path = dir.join(PARTITION_METADATA);
    let text = PARTITION_METADATA_TEXT.as_bytes();
    if disk.read(&path).is_ok_and(|there| !there.is_empty()) {
        return Ok(());
    }
    disk.replace(&path, text).at("write", &path)
}

fn newest_snapshot(disk: Disk, dir: &Path) -> Result<Option<(SnapshotId, Content)>, Fault> {
    match snapshot::list(disk, dir)?.pop() {
        Some(id) => Ok(Some((id, snapshot::read(disk, dir, id)?))),
        None => Ok(None),
    }
}

fn basis_of(settings: &Settings, snapshot: Option<&(SnapshotId, Content)>) -> Basis {
    let content = snapshot.map(|(_, content)| content);
    let named = content.and_then(|content| content.members.clone());
    Basis {
        named: named.is_some(),
        members: named.unwrap_or_else(|| fixed_members(&settings.voters)),
        kraft_version: content.map_or(0, |content| content.kraft_version),
    }
}

/// Settles where counting begins, and replaces a log that ends before its newest snapshot.
fn begin(
    log: &mut MetadataLog,
    basis: &Basis,
    newest: Option<SnapshotId>,
    disk: Disk,
    dir: &Path,
) -> Result<(), Fault> {
    let side = Side::read(disk, dir)?;
    let start = beginning(log, side, newest);
    let reached = newest.map_or(0, |id| id.end_offset);
    if start.anchor.offset > reached {
        return Err(Fault::NoSnapshot {
            start: start.anchor.offset,
        });
    }
    let settled = Side {
        anchor: (start.anchor != Anchor::START).then_some(start.anchor),
        pending: None,
    };
    if start.replaces_log {
        let pending = (side.pending.is_some()).then_some(start.anchor);
        settle(disk, dir, side, Side { pending, ..settled })?;
        log.reset(start.anchor, basis.clone())?;
        return settle(disk, dir, Side { pending, ..settled }, settled);
    }
    settle(disk, dir, side, settled)?;
    log.begin_at(start.anchor);
    Ok(())
}

fn settle(disk: Disk, dir: &Path, from: Side, to: Side) -> Result<(), Fault> {
    if from == to {
        return Ok(());
    }
    to.write(disk, dir)
}

/// Where a log begins to be counted.
struct Beginning {
    anchor: Anchor,
    replaces_log: bool,
}

fn beginning(log: &MetadataLog, side: Side, newest: Option<SnapshotId>) -> Beginning {
    let is_of = |anchor: &Anchor, id: SnapshotId| anchor.offset == id.end_offset;
    let Some(first) = log.first_base() else {
        let kept = newest.map_or(Anchor::START, |id| {
            let known = [side.pending, side.anchor].into_iter().flatten();
            let mut known = known.filter(|anchor| is_of(anchor, id));
            known.next().unwrap_or_else(|| adopt(id))
        });
        return replacing(kept);
    };
    if let Some(id) = newest {
        // The snapshot was received and the log that it replaces may still stand there. A log that
        // holds its end needs no replacing: the install was refused, or the log has caught up.
        let pending = side.pending.filter(|pending| is_of(pending, id));
        if let Some(pending) = pending.filter(|pending| !log.holds_end_of(pending)) {
            return replacing(pending);
        }
        if id.end_offset > log.end_offset() {
            let known = side.anchor.filter(|anchor| is_of(anchor, id));
            return replacing(known.unwrap_or_else(|| adopt(id)));
        }
    }
    let fits = |anchor: &Anchor| anchor.offset >= first && anchor.offset <= log.end_offset();
    let anchor = match side.anchor.filter(fits) {
        Some(anchor) => anchor,
        None if first == 0 => Anchor::START,
        None => {
            let before = newest
                .filter(|id| id.end_offset == first)
                .map(|id| id.epoch);
            Anchor::adopt(first, before.or_else(|| log.first_epoch()).unwrap_or(0))
        }
    };
    Beginning {
        anchor,
        replaces_log: false,
    }
}

fn replacing(anchor: Anchor) -> Beginning {
    Beginning {
        anchor,
        replaces_log: true,
    }
}

/// A snapshot of offset 0, which `kafka-storage format` writes, only names the voters.
fn adopt(id: SnapshotId) -> Anchor {
    if id.end_offset == 0 {
        Anchor::START
    } else {
        Anchor::adopt(id.end_offset, id.epoch)
    }
}

/// What the file says, never below the newest batch: an older file would let this node vote in an
/// epoch whose leader it already followed.
fn election(log: &MetadataLog, newest: Option<SnapshotId>, found: Option<Election>) -> Election {
    let of_snapshot = newest.map_or(0, |id| id.epoch);
    let at_least = log.last_epoch().max(of_snapshot);
    match found {
        Some(found) if found.epoch >= at_least => found,
        Some(_) | None => Election {
            epoch: at_least,
            ..Election::default()
        },
    }
}
