//! The levels at which features are finalized (KIP-584), metadata.version among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::metadata::record::{FeatureLevelRecord, Record};

/// Decides which records may be written.
pub(crate) const METADATA_VERSION: &str = "metadata.version";
/// Whether eligible leader replicas are kept (KIP-966).
pub(crate) const ELIGIBLE_LEADER_REPLICAS_VERSION: &str = "eligible.leader.replicas.version";
/// Which group protocols may be used (KIP-848).
pub(crate) const GROUP_VERSION: &str = "group.version";
/// Whether share groups may be used (KIP-932).
pub(crate) const SHARE_VERSION: &str = "share.version";
/// How transactions are coordinated (KIP-890).
pub(crate) const TRANSACTION_VERSION: &str = "transaction.version";
/// How the quorum knows its voters (KIP-853); kept by the quorum itself, never in the image.
pub(crate) const KRAFT_VERSION: &str = "kraft.version";

/// The finalized level of every feature that is on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Features(Arc<BTreeMap<String, i16>>);

impl Features {
    /// The level of a feature; 0 when it is off or unknown.
    pub(crate) fn level(&self, name: &str) -> i16 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Every feature that is on, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i16)> {
        self.0.iter().map(|(name, level)| (name.as_str(), *level))
    }

    /// Whether eligible leader replicas are kept.
    pub(crate) fn elr_enabled(&self) -> bool {
        self.level(ELIGIBLE_LEADER_REPLICAS_VERSION) >= 1
    }

    pub(super) fn set(&mut self, name: &str, level: i16) {
        let features = Arc::make_mut(&mut self.0);
        if level == 0 {
            features.remove(name);
        } else {
            features.insert(name.to_owned(), level);
        }
    }

    /// metadata.version comes first: it says how to read what follows.
    pub(super) fn records(&self, out: &mut Vec<Record>) {
        let (first, others): (Vec<_>, Vec<_>) =
            self.iter().partition(|(name, _)| *name == METADATA_VERSION);
        for (name, feature_level) in first.into_iter().chain(others) {
            out.push(Record::FeatureLevel(FeatureLevelRecord {
                name: name.to_owned(),
                feature_level,
            }));
        }
    }
}
