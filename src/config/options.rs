//! The options in force: what the file says, with what was set on the running node.

use std::sync::Arc;

use parking_lot::RwLock;

use super::broker_keys::BrokerConfig;
use super::describe::Layers;

/// The node's options: what its file says, with what was set on it while it runs.
pub(crate) struct Options {
    file: BrokerConfig,
    current: RwLock<Arc<Effective>>,
}

/// The options in force, and the layers they come from.
pub(crate) struct Effective {
    pub(crate) layers: Layers,
    pub(crate) config: BrokerConfig,
}

impl Effective {
    /// How many bytes a second replicas may move between directories: what is set on this broker,
    /// else what is set on all.
    pub(crate) fn move_bytes_per_second(&self) -> i64 {
        const NAME: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
        let Layers { node, cluster, .. } = &self.layers;
        let set = node.get(NAME).or_else(|| cluster.get(NAME));
        set.and_then(|text| text.trim().parse().ok())
            .unwrap_or(i64::MAX)
    }
}

impl Options {
    /// The options of a file, with nothing set yet.
    pub(crate) fn new(file: BrokerConfig) -> Self {
        let layers = Layers {
            file: file.given.clone(),
            ..Layers::default()
        };
        let current = Effective {
            layers,
            config: file.clone(),
        };
        Self {
            file,
            current: RwLock::new(Arc::new(current)),
        }
    }

    /// The options as the file has them; for those that do not change while running.
    pub(crate) fn file(&self) -> &BrokerConfig {
        &self.file
    }

    /// The options in force now.
    pub(crate) fn current(&self) -> Arc<Effective> {
        self.current.read().clone()
    }

    /// Puts other options in force.
    pub(crate) fn replace(&self, effective: Effective) {
        *self.current.write() = Arc::new(effective);
    }
}
