//! What the quorum must be told.

use std::path::PathBuf;
use std::time::Duration;

use crate::base::{DirectoryId, NodeId};

/// The quorum's part of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// node.id.
    pub(crate) node_id: NodeId,
    /// The directory id in the meta.properties of the folder below.
    pub(crate) directory_id: DirectoryId,
    /// metadata.log.dir: the folder in which `__cluster_metadata-0` stands or is made.
    pub(crate) dir: PathBuf,
    /// The cluster's id; told to other voters, never written here.
    pub(crate) cluster_id: String,
    /// controller.quorum.voters: who votes as long as neither log nor snapshot says so.
    pub(crate) voters: Vec<NodeId>,
    /// metadata.log.segment.bytes.
    pub(crate) segment_bytes: u64,
    /// metadata.log.max.record.bytes.between.snapshots.
    pub(crate) snapshot_bytes: u64,
    /// metadata.log.max.snapshot.interval.ms.
    pub(crate) snapshot_interval: Duration,
    /// controller.quorum.election.timeout.ms: how long a follower waits for its leader at least;
    /// at most it waits twice as long. Means nothing to an only voter.
    pub(crate) election_timeout: Duration,
}

impl Settings {
    /// Kafka's defaults for an only voter.
    pub(crate) fn alone(node_id: NodeId, directory_id: DirectoryId, dir: PathBuf) -> Self {
        Self {
            node_id,
            directory_id,
            dir,
            cluster_id: String::new(),
            voters: vec![node_id],
            segment_bytes: 1 << 30,
            snapshot_bytes: 20 << 20,
            snapshot_interval: Duration::from_secs(3600),
            election_timeout: Duration::from_millis(300),
        }
    }
}
