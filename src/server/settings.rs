//! What the quorum and the controller take from the options.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::rules::Tables;
use crate::base::{DirectoryId, NodeId};
use crate::config::BrokerConfig;
use crate::config::options::Options;
use crate::os::random;
use crate::{controller, quorum};

/// The quorum's settings. Without voters in the options this node is the only one.
pub(super) fn quorum(
    config: &BrokerConfig,
    cluster_id: &str,
    directory_id: DirectoryId,
    dir: PathBuf,
) -> quorum::Settings {
    let me = NodeId(config.node_id);
    let voters: Vec<NodeId> = config.voters.iter().map(|voter| NodeId(voter.id)).collect();
    quorum::Settings {
        cluster_id: cluster_id.to_owned(),
        voters: if voters.is_empty() { vec![me] } else { voters },
        segment_bytes: u64::try_from(config.metadata_log_segment_bytes).unwrap_or(1 << 30),
        snapshot_bytes: u64::try_from(config.metadata_log_max_record_bytes_between_snapshots)
            .unwrap_or(20 << 20),
        snapshot_interval: millis(config.metadata_log_max_snapshot_interval_ms),
        election_timeout: millis(config.controller_quorum_election_timeout_ms.into()),
        ..quorum::Settings::alone(me, directory_id, dir)
    }
}

/// The controller's settings.
pub(super) fn controller(
    config: &BrokerConfig,
    cluster_id: &str,
    options: &Arc<Options>,
) -> controller::state::Settings {
    let node_id = NodeId(config.node_id);
    let others = config
        .voters
        .iter()
        .map(|voter| NodeId(voter.id))
        .filter(|id| *id != node_id);
    controller::state::Settings {
        node_id,
        cluster_id: cluster_id.to_owned(),
        voters: others.collect(),
        session_timeout: millis(config.broker_session_timeout_ms.into()),
        num_partitions: config.num_partitions,
        default_replication_factor: config.default_replication_factor.try_into().unwrap_or(1),
        min_insync_replicas: config.min_insync_replicas,
        unclean_leader_election: config.unclean_leader_election_enable,
        balance_interval: None,
        unclean_election_interval: millis(config.unclean_leader_election_interval_ms),
        // An idle node writes nothing: an only voter has nobody to prove its liveness to.
        max_idle: None,
        rules: Box::new(Tables {
            options: options.clone(),
        }),
        uuid: Box::new(random::uuid),
        below: Box::new(random::below),
    }
}

/// Milliseconds of an option; negative ones count as none.
pub(super) fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
