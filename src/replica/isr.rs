//! High watermark and in-sync replicas, computed.

use crate::base::NodeId;

/// What a leader knows of the partition's replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) all: Vec<NodeId>,
    pub(crate) in_sync: Vec<NodeId>,
    /// `min.insync.replicas` of the topic.
    pub(crate) min_in_sync: usize,
}

impl Replicas {
    /// How many replicas must be in sync for acks=all: never more than there are (KAFKA-15579).
    pub(crate) fn needed(&self) -> usize {
        self.min_in_sync.min(self.all.len())
    }

    /// Whether enough replicas are in sync.
    pub(crate) fn suffice(&self) -> bool {
        self.in_sync.len() >= self.needed()
    }

    /// The high watermark of leader `me` whose log ends at `log_end`; `others` tells how far a
    /// replica has fetched. It stands still while too few replicas are in sync (KIP-966).
    pub(crate) fn high_watermark(
        &self,
        me: NodeId,
        log_end: i64,
        before: i64,
        others: impl Fn(NodeId) -> i64,
    ) -> i64 {
        if !self.suffice() {
            return before;
        }
        let ends = self
            .in_sync
            .iter()
            .map(|id| if *id == me { log_end } else { others(*id) });
        ends.min().unwrap_or(before).min(log_end).max(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(all: &[i32], in_sync: &[i32], min_in_sync: usize) -> Replicas {
        let ids = |ids: &[i32]| ids.iter().copied().map(NodeId).collect();
        Replicas {
            all: ids(all),
            in_sync: ids(in_sync),
            min_in_sync,
        }
    }

    #[test]
    fn a_lone_replica_commits_what_it_writes() {
        let alone = replicas(&[1], &[1], 2);
        assert_eq!(alone.high_watermark(NodeId(1), 7, 3, |_| 0), 7);
    }

    #[test]
    fn the_slowest_in_sync_replica_decides() {
        let three = replicas(&[1, 2, 3], &[1, 2], 1);
        assert_eq!(three.high_watermark(NodeId(1), 7, 3, |_| 5), 5);
        assert_eq!(three.high_watermark(NodeId(1), 7, 6, |_| 5), 6);
    }

    #[test]
    fn too_few_in_sync_replicas_hold_the_watermark() {
        let few = replicas(&[1, 2, 3], &[1], 2);
        assert!(!few.suffice());
        assert_eq!(few.high_watermark(NodeId(1), 7, 3, |_| 0), 3);
    }
}
