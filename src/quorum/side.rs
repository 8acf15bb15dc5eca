//! The two small files beside the log: `quorum-state`, which is the vote, and `quorum-anchor`.
//!
//! `quorum-state` is Kafka's own file (org.apache.kafka.raft.FileQuorumStateStore): version 0 at
//! kraft.version 0, version 1 from kraft.version 1 on. `leaderId` names a leader that was
//! accepted, `votedId` a candidate that got this node's vote, neither an epoch that was seen.
//!
//! `quorum-anchor` is ours: the number of the first batch that is still counted, and a snapshot
//! whose installation was begun. Each is durable before the deletion or the installation that it
//! describes. No file means that counting begins with batch 0 at offset 0.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::{DirectoryId, NodeId, Uuid};
use crate::os::disk::Disk;

use super::fault::{At, Fault};

const QUORUM_STATE: &str = "quorum-state";
const ANCHOR: &str = "quorum-anchor";

/// Whom this node follows or voted for in the newest epoch that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Election {
    pub(super) epoch: i32,
    pub(super) leader: Option<NodeId>,
    pub(super) voted: Option<NodeId>,
}

/// The file `quorum-state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuorumState {
    pub(super) election: Election,
    pub(super) form: Form,
}

/// How the file is written; it follows kraft.version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Version 0, which lists the voters of the configuration.
    Static(Vec<NodeId>),
    /// Version 1; the directory is the one of this node, written when it voted for itself.
    Dynamic(DirectoryId),
}

impl QuorumState {
    /// Reads the file; `None` when it is absent or empty, as after a crash of the machine.
    pub(super) fn read(disk: Disk, dir: &Path) -> Result<Option<Election>, Fault> {
        let Some((path, bytes)) = read_small(disk, dir, QUORUM_STATE)? else {
            return Ok(None);
        };
        let file: StateFile =
            serde_json::from_slice(&bytes).map_err(|source| Fault::State { path, source })?;
        Ok(Some(Election {
            epoch: file.leader_epoch,
            leader: known(file.leader_id),
            voted: known(file.voted_id),
        }))
    }

    /// Makes the file durable.
    pub(super) fn write(&self, disk: Disk, dir: &Path) -> Result<(), Fault> {
        let path = dir.join(QUORUM_STATE);
        disk.write_atomically(&path, self.to_json().as_bytes())
            .at("write", &path)
    }

    fn to_json(&self) -> String {
        let leader_id = wire(self.election.leader);
        let voted_id = wire(self.election.voted);
        let leader_epoch = self.election.epoch;
        let text = match &self.form {
            Form::Static(voters) => serde_json::to_string(&StateV0 {
                cluster_id: "",
                leader_id,
                leader_epoch,
                voted_id,
                applied_offset: 0,
                current_voters: voters.iter().map(|id| Voter { voter_id: id.0 }).collect(),
                data_version: 0,
            }),
            Form::Dynamic(directory) => serde_json::to_string(&StateV1 {
                leader_id,
                leader_epoch,
                voted_id,
                voted_directory_id: match self.election.voted {
                    Some(_) => directory.to_string(),
                    None => Uuid::ZERO.to_string(),
                },
                data_version: 1,
            }),
        };
        text.expect("numbers and texts always become JSON")
    }
}

/// The first batch that is counted: its number, its offset and the epoch of the batch before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) index: u64,
    pub(super) offset: i64,
    pub(super) epoch: i32,
}

impl Anchor {
    /// The beginning of a log of which nothing was deleted.
    pub(super) const START: Self = Self {
        index: 0,
        offset: 0,
        epoch: 0,
    };

    /// Counting for a log that begins at `offset` and whose count nobody knows: the number is the
    /// offset, so that counting back from it never falls below zero.
    pub(super) fn adopt(offset: i64, epoch: i32) -> Self {
        Self {
            index: offset.max(0).cast_unsigned(),
            offset,
            epoch,
        }
    }
}

/// The file `quorum-anchor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Side {
    pub(super) anchor: Option<Anchor>,
    /// Where the log will begin once a received snapshot is in place.
    pub(super) pending: Option<Anchor>,
}

impl Side {
    /// Reads the file; absent means nothing was ever deleted.
    pub(super) fn read(disk: Disk, dir: &Path) -> Result<Self, Fault> {
        match read_small(disk, dir, ANCHOR)? {
            None => Ok(Self::default()),
            Some((path, bytes)) => {
                serde_json::from_slice(&bytes).map_err(|source| Fault::State { path, source })
            }
        }
    }

    /// Makes the file durable.
    pub(super) fn write(&self, disk: Disk, dir: &Path) -> Result<(), Fault> {
        let path = dir.join(ANCHOR);
        let text = serde_json::to_string(self).expect("numbers always become JSON");
        disk.write_atomically(&path, text.as_bytes())
            .at("write", &path)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateFile {
    leader_id: i32,
    leader_epoch: i32,
    #[serde(default = "none_id")]
    voted_id: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateV0 {
    cluster_id: &'static str,
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    applied_offset: i64,
    current_voters: Vec<Voter>,
    #[serde(rename = "data_version")]
    data_version: i16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Voter {
    voter_id: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateV1 {
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    voted_directory_id: String,
    #[serde(rename = "data_version")]
    data_version: i16,
}

fn none_id() -> i32 {
    -1
}

fn known(id: i32) -> Option<NodeId> {
    (id >= 0).then_some(NodeId(id))
}

fn wire(id: Option<NodeId>) -> i32 {
    id.map_or(-1, |id| id.0)
}

fn read_small(disk: Disk, dir: &Path, name: &str) -> Result<Option<(PathBuf, Vec<u8>)>, Fault> {
    let path = dir.join(name);
    if !disk.exists(&path) {
        return Ok(None);
    }
    let bytes = disk.read(&path).at("read", &path)?;
    Ok((!bytes.is_empty()).then_some((path, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::disk::TempDir;

    #[test]
    fn the_state_is_written_as_kafka_writes_it() {
        let election = Election {
            epoch: 2,
            leader: Some(NodeId(1)),
            voted: None,
        };
        let state = QuorumState {
            election,
            form: Form::Static(vec![NodeId(1)]),
        };
        assert_eq!(
            state.to_json(),
            r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#
        );
        let state = QuorumState {
            election,
            form: Form::Dynamic(DirectoryId(Uuid::ONE)),
        };
        assert_eq!(
            state.to_json(),
            r#"{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#
        );
    }

    #[test]
    fn both_files_survive_the_round_trip() {
        let dir = TempDir::new();
        assert_eq!(QuorumState::read(Disk, dir.path()).unwrap(), None);
        assert_eq!(Side::read(Disk, dir.path()).unwrap(), Side::default());
        let election = Election {
            epoch: 7,
            leader: None,
            voted: Some(NodeId(3)),
        };
        let form = Form::Dynamic(DirectoryId(Uuid::ONE));
        QuorumState { election, form }
            .write(Disk, dir.path())
            .unwrap();
        assert_eq!(QuorumState::read(Disk, dir.path()).unwrap(), Some(election));
        let side = Side {
            anchor: Some(Anchor::adopt(12, 3)),
            pending: None,
        };
        side.write(Disk, dir.path()).unwrap();
        assert_eq!(Side::read(Disk, dir.path()).unwrap(), side);
    }
}
