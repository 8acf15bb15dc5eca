//! What tests of this layer and those above share: a partition that needs no manager.

use std::sync::Arc;

use super::background::Background;
use super::partition::{Partition, Role};
use crate::base::{NodeId, TopicId, TopicPartition, Uuid};
use crate::log::config::LogConfig;
use crate::log::dir::Identity;
use crate::log::dirs::LogDirs;
use crate::log::testkit::NOW;
use crate::os::disk::{Disk, TempDir};

/// A partition that this node leads, with these options.
pub(crate) fn leader(dir: &TempDir, config: LogConfig) -> Arc<Partition> {
    let identity = Identity {
        cluster_id: "QmFybmFiYXNGaXh0dXJlMQ".into(),
        node_id: 1,
    };
    let (dirs, failed) = LogDirs::open(Disk, &[dir.path().to_owned()], &identity, 16);
    assert!(failed.is_empty());
    let of = TopicPartition::new("t", 0);
    let id = TopicId(Uuid::ONE);
    let config = Arc::new(config);
    let log = dirs.create(&of, Some(id), config, None, NOW).unwrap();
    let partition = Partition::new(id, NodeId(1), of, log, Arc::new(Background::default()));
    partition.take_role(Role::alone(NodeId(1))).unwrap();
    Arc::new(partition)
}
