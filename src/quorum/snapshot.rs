//! `.checkpoint` files: the image's records between a header and a footer (KIP-630,
//! org.apache.kafka.snapshot.Snapshots).
//!
//! A file is named after the offset where it ends and the epoch of the batch before, is written
//! under another name, made durable and then renamed, so that whatever bears the name is whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::metadata::record::Record;
use crate::os::disk::{Disk, Open, with_suffix};
use crate::protocol::records::batch::{Batch, Batches};
use crate::protocol::records::control::ControlRecord;
use crate::protocol::records::iter::Records;

use super::control::{self, INFLATE_MAX, place};
use super::entry::Members;
use super::fault::{At, Fault};
use super::log::Basis;

const BOOTSTRAP: &str = "bootstrap.checkpoint";
const SUFFIX: &str = ".checkpoint";
const PART: &str = ".part";
const DELETED: &str = ".deleted";
/// Records in a batch, as Kafka's writer puts together (RaftSnapshotWriter).
const BATCH_RECORDS: usize = 1024;

/// Names a snapshot: it holds what was committed before this offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SnapshotId {
    /// The offset after the last record that it holds.
    pub(crate) end_offset: i64,
    /// The epoch of that record.
    pub(crate) epoch: i32,
}

/// A finished snapshot in the folder.
#[derive(Clone, Debug)]
pub(super) struct SnapshotFile {
    pub(super) id: SnapshotId,
    pub(super) path: PathBuf,
}

/// What stands in a snapshot.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) records: Vec<Record>,
    pub(super) last_timestamp: i64,
    /// The voters, where the snapshot names them.
    pub(super) members: Option<Members>,
    pub(super) kraft_version: i16,
}

/// What goes in front of the records.
#[derive(Clone, Debug)]
pub(super) struct Preface {
    /// The timestamp of the newest batch that the snapshot replaces.
    pub(super) last_timestamp: i64,
    /// The voters, which are written down unless they are those of the configuration.
    pub(super) basis: Basis,
}

impl SnapshotId {
    /// The file's name.
    pub(crate) fn file_name(self) -> String {
        format!("{:020}-{:010}{SUFFIX}", self.end_offset, self.epoch)
    }

    fn parse(name: &str) -> Option<Self> {
        let (offset, epoch) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        let whole = offset.len() == 20 && epoch.len() == 10;
        whole.then_some(Self {
            end_offset: offset.parse().ok()?,
            epoch: epoch.parse().ok()?,
        })
    }
}

/// The snapshots of a folder, oldest first.
pub(super) fn list(disk: Disk, dir: &Path) -> Result<Vec<SnapshotId>, Fault> {
    let files = disk.list(dir).at("list", dir)?;
    let ids = files
        .iter()
        .filter_map(|entry| SnapshotId::parse(&entry.name));
    Ok(ids.collect())
}

/// Removes what a crash left half written or half deleted, here or in Kafka.
pub(super) fn tidy(disk: Disk, dir: &Path) -> Result<(), Fault> {
    for entry in disk.list(dir).at("list", dir)? {
        if [PART, DELETED, ".tmp"]
            .iter()
            .any(|end| entry.name.ends_with(end))
        {
            let path = dir.join(&entry.name);
            disk.remove_file(&path).at("remove", &path)?;
        }
    }
    Ok(())
}

/// Removes all but the newest `kept` snapshots; says which is the oldest left.
pub(super) fn forget_old(disk: Disk, dir: &Path, kept: usize) -> Result<Option<SnapshotId>, Fault> {
    let ids = list(disk, dir)?;
    let old = ids.len().saturating_sub(kept);
    for id in &ids[..old] {
        let path = dir.join(id.file_name());
        let deleted = with_suffix(&path, DELETED);
        disk.rename(&path, &deleted).at("rename", &path)?;
        disk.remove_file(&deleted).at("remove", &deleted)?;
    }
    Ok(ids.get(old).copied())
}

/// Writes a snapshot; when this returns it is durable.
pub(super) fn write(
    disk: Disk,
    dir: &Path,
    id: SnapshotId,
    preface: &Preface,
    records: &[Record],
    now_ms: i64,
) -> Result<SnapshotFile, Fault> {
    let path = dir.join(id.file_name());
    let part = with_suffix(&path, PART);
    let file = disk.open(&part, Open::Write).at("create", &part)?;
    file.set_len(0).at("cut", &part)?;
    let mut position = 0;
    let mut offset = 0;
    let mut put = |mut batch: Vec<u8>, count: usize| {
        place(&mut batch, offset, id.epoch);
        file.write_all_at(&batch, position).at("write", &part)?;
        position += batch.len() as u64;
        offset += i64::try_from(count).expect("an image has fewer records");
        Ok(())
    };
    let header = header_records(preface);
    put(control::control_batch(&header, now_ms), header.len())?;
    for chunk in records.chunks(BATCH_RECORDS) {
        put(control::data_batch(chunk, now_ms), chunk.len())?;
    }
    let footer = ControlRecord::SnapshotFooter;
    put(
        control::control_batch(&[(footer.key(), footer.value())], now_ms),
        1,
    )?;
    file.sync_data().at("sync", &part)?;
    disk.make_read_only(&part).at("protect", &part)?;
    disk.rename(&part, &path).at("rename", &part)?;
    disk.sync_dir(dir).at("sync", dir)?;
    Ok(SnapshotFile { id, path })
}

fn header_records(preface: &Preface) -> Vec<([u8; 4], Vec<u8>)> {
    let header = ControlRecord::SnapshotHeader {
        last_contained_log_timestamp: preface.last_timestamp,
    };
    let members = &preface.basis.members;
    if preface.basis.kraft_version == 0 {
        let mut value = header.value();
        if preface.basis.named {
            control::tag_members(&mut value, members);
        }
        return vec![(header.key(), value)];
    }
    let version = ControlRecord::KraftVersion(preface.basis.kraft_version);
    vec![
        (header.key(), header.value()),
        (version.key(), version.value()),
        control::voters_record(members),
    ]
}

/// Reads a snapshot; it must be whole and every checksum right.
pub(super) fn read(disk: Disk, dir: &Path, id: SnapshotId) -> Result<Content, Fault> {
    let path = dir.join(id.file_name());
    let bytes = disk.read(&path).at("read", &path)?;
    parse(&bytes).map_err(|reason| Fault::Snapshot { path, reason })
}

/// Reads what `kafka-storage format` left for the cluster's beginning: features and credentials
/// (org.apache.kafka.metadata.bootstrap.BootstrapDirectory). `None` where nobody has formatted.
pub(crate) fn formatted(disk: Disk, dir: &Path) -> Result<Option<Vec<Record>>, Fault> {
    let path = dir.join(BOOTSTRAP);
    let bytes = match disk.read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.at("read", &path)?,
    };
    match parse(&bytes) {
        Ok(content) => Ok(Some(content.records)),
        Err(reason) => Err(Fault::Snapshot { path, reason }),
    }
}

/// Reads a snapshot's bytes.
pub(super) fn parse(bytes: &[u8]) -> Result<Content, &'static str> {
    let mut content = Content::default();
    let mut ended = false;
    let mut batches = Batches::new(bytes);
    for batch in &mut batches {
        let batch = batch.map_err(|_| "a batch is not one of format 2")?;
        batch.check_crc().map_err(|_| "a checksum is wrong")?;
        if ended {
            return Err("a batch follows the footer");
        }
        if batch.header.is_control() {
            ended = take_control(&batch, &mut content)?;
        } else {
            take_records(&batch, &mut content.records)?;
        }
    }
    if ended && batches.rest().is_empty() {
        Ok(content)
    } else {
        Err("it ends before its footer")
    }
}

/// Takes in a control batch; true when it ends the snapshot.
fn take_control(batch: &Batch<'_>, content: &mut Content) -> Result<bool, &'static str> {
    let mut ended = false;
    let records = Records::of(batch, INFLATE_MAX).map_err(|_| "a control batch is malformed")?;
    for record in records.iter() {
        let record = record.map_err(|_| "a control record is malformed")?;
        let (Some(key), Some(value)) = (record.key, record.value) else {
            return Err("a control record has no key or no value");
        };
        let control =
            ControlRecord::read(key, value).map_err(|_| "a control record is malformed")?;
        match control {
            ControlRecord::SnapshotHeader {
                last_contained_log_timestamp,
            } => {
                content.last_timestamp = last_contained_log_timestamp;
                content.members = control::tagged_members(&control, value);
            }
            ControlRecord::SnapshotFooter => ended = true,
            ControlRecord::KraftVersion(version) => content.kraft_version = version,
            ControlRecord::Voters(_) => content.members = control::members_of_control(key, value),
            ControlRecord::EndTransaction { .. }
            | ControlRecord::LeaderChange(_)
            | ControlRecord::Other(_) => {}
        }
    }
    Ok(ended)
}

fn take_records(batch: &Batch<'_>, into: &mut Vec<Record>) -> Result<(), &'static str> {
    let records = Records::of(batch, INFLATE_MAX).map_err(|_| "a batch is malformed")?;
    for record in records.iter() {
        let value = record.ok().and_then(|record| record.value);
        let record = value.and_then(|value| Record::decode(value).ok());
        into.push(record.ok_or("a record cannot be read")?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NodeId;
    use crate::metadata::record::{ConfigRecord, NoOpRecord};
    use crate::os::disk::TempDir;
    use crate::quorum::entry::fixed_members;

    fn preface(kraft_version: i16, named: bool) -> Preface {
        Preface {
            last_timestamp: 77,
            basis: Basis {
                members: fixed_members(&[NodeId(1), NodeId(2)]),
                named,
                kraft_version,
            },
        }
    }

    #[test]
    fn a_snapshot_gives_back_what_was_written() {
        let dir = TempDir::new();
        let config = |value: usize| {
            Record::Config(ConfigRecord {
                value: Some(value.to_string()),
                ..ConfigRecord::default()
            })
        };
        let records: Vec<_> = (0..2500).map(config).collect();
        for (kraft_version, names) in [(0, false), (0, true), (1, false)] {
            let id = SnapshotId {
                end_offset: 100 + i64::from(kraft_version),
                epoch: 3,
            };
            let preface = preface(kraft_version, names);
            write(Disk, dir.path(), id, &preface, &records, 99).unwrap();
            let content = read(Disk, dir.path(), id).unwrap();
            assert_eq!(content.records, records);
            assert_eq!(content.last_timestamp, 77);
            assert_eq!(content.kraft_version, kraft_version);
            let named = (kraft_version == 1 || names).then_some(preface.basis.members);
            assert_eq!(content.members, named);
        }
    }

    #[test]
    fn a_cut_snapshot_is_refused() {
        let dir = TempDir::new();
        let id = SnapshotId {
            end_offset: 5,
            epoch: 1,
        };
        let records = [Record::NoOp(NoOpRecord::default())];
        let file = write(Disk, dir.path(), id, &preface(0, false), &records, 1).unwrap();
        let bytes = Disk.read(&file.path).unwrap();
        assert!(parse(&bytes).is_ok());
        for cut in 1..bytes.len() {
            assert!(parse(&bytes[..bytes.len() - cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn the_newest_two_are_kept() {
        let dir = TempDir::new();
        for end_offset in [3, 20, 100] {
            let id = SnapshotId {
                end_offset,
                epoch: 1,
            };
            write(Disk, dir.path(), id, &preface(0, false), &[], 1).unwrap();
        }
        let oldest = forget_old(Disk, dir.path(), 2).unwrap().unwrap();
        assert_eq!(oldest.end_offset, 20);
        assert_eq!(list(Disk, dir.path()).unwrap().len(), 2);
    }
}
