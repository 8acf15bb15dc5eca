//! Where replicas of new partitions go: striped over racks and brokers
//! (org.apache.kafka.metadata.placement.StripedReplicaPlacer).
//!
//! Each partition begins one rack and one broker further than the one before. The first replica is
//! on a broker that is not fenced, so that the partition has a leader; others may be on fenced ones
//! when nothing else is left. After as many partitions as there are live brokers all is shuffled.

use crate::base::NodeId;
use crate::protocol::error::{ErrorCode, Refusal};

/// A broker that may get replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Usable<'a> {
    pub(super) id: NodeId,
    pub(super) rack: Option<&'a str>,
    pub(super) fenced: bool,
}

/// A random number below a bound.
pub(super) type Below<'a> = &'a dyn Fn(u64) -> u64;

/// The replicas of each of `partitions` new partitions.
pub(super) fn place(
    brokers: &[Usable<'_>],
    partitions: usize,
    replication_factor: i16,
    below: Below<'_>,
) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let mut racks = Racks::new(brokers, below);
    let refuse = |words: String| Err(Refusal::new(ErrorCode::InvalidReplicationFactor, words));
    let Ok(replicas @ 1..) = usize::try_from(replication_factor) else {
        return refuse(format!(
            "Invalid replication factor {replication_factor}: the replication factor must be \
             positive."
        ));
    };
    if racks.unfenced == 0 {
        return refuse("All brokers are currently fenced.".to_owned());
    }
    if replicas > brokers.len() {
        return refuse(format!(
            "The target replication factor of {replication_factor} cannot be reached because only \
             {} broker(s) are registered.",
            brokers.len()
        ));
    }
    Ok((0..partitions).map(|_| racks.place(replicas)).collect())
}

/// Brokers of one rack and one kind, walked from an offset that moves with each partition.
#[derive(Default)]
struct Ring {
    brokers: Vec<NodeId>,
    index: usize,
    offset: usize,
    epoch: usize,
}

impl Ring {
    fn next(&mut self, epoch: usize) -> Option<NodeId> {
        if self.brokers.is_empty() {
            return None;
        }
        if self.epoch != epoch {
            self.epoch = epoch;
            self.index = 0;
            self.offset = (self.offset + 1) % self.brokers.len();
        }
        if self.index >= self.brokers.len() {
            return None;
        }
        let broker = self.brokers[(self.index + self.offset) % self.brokers.len()];
        self.index += 1;
        Some(broker)
    }
}

#[derive(Default)]
struct Rack<'a> {
    name: Option<&'a str>,
    unfenced: Ring,
    fenced: Ring,
}

impl Rack<'_> {
    fn next(&mut self, epoch: usize) -> Option<NodeId> {
        self.unfenced
            .next(epoch)
            .or_else(|| self.fenced.next(epoch))
    }
}

struct Racks<'a> {
    racks: Vec<Rack<'a>>,
    unfenced: usize,
    epoch: usize,
    offset: usize,
    below: Below<'a>,
}

impl<'a> Racks<'a> {
    fn new(brokers: &[Usable<'a>], below: Below<'a>) -> Self {
        let mut brokers = brokers.to_vec();
        brokers.sort_by_key(|broker| (broker.rack, broker.id));
        let mut racks: Vec<Rack<'a>> = Vec::new();
        for broker in &brokers {
            if racks.last().is_none_or(|rack| rack.name != broker.rack) {
                racks.push(Rack {
                    name: broker.rack,
                    ..Rack::default()
                });
            }
            let rack = racks.last_mut().expect("one was just pushed");
            let ring = if broker.fenced {
                &mut rack.fenced
            } else {
                &mut rack.unfenced
            };
            ring.brokers.push(broker.id);
        }
        for rack in &mut racks {
            for ring in [&mut rack.fenced, &mut rack.unfenced] {
                ring.offset = random_index(ring.brokers.len(), below);
            }
        }
        let offset = random_index(racks.len(), below);
        Self {
            racks,
            unfenced: brokers.iter().filter(|broker| !broker.fenced).count(),
            epoch: 0,
            offset,
            below,
        }
    }

    fn place(&mut self, replicas: usize) -> Vec<NodeId> {
        // With a single live broker the epoch must go on, or its ring would never begin again.
        if self.epoch == self.unfenced && self.unfenced > 1 {
            self.shuffle();
            self.epoch = 0;
        }
        if self.offset == self.racks.len() {
            self.offset = 0;
        }
        let (leader, mut leaders_rack) = self.leader();
        let mut placed = vec![leader];
        let mut at = self.offset;
        while placed.len() < replicas {
            // The leader's rack had its turn.
            if leaders_rack == Some(at) {
                leaders_rack = None;
            } else if let Some(broker) = self.racks[at].next(self.epoch) {
                placed.push(broker);
            }
            at = (at + 1) % self.racks.len();
        }
        self.epoch += 1;
        self.offset += 1;
        placed
    }

    fn leader(&mut self) -> (NodeId, Option<usize>) {
        let mut at = self.offset;
        loop {
            if let Some(broker) = self.racks[at].unfenced.next(self.epoch) {
                return (broker, Some(at));
            }
            at = (at + 1) % self.racks.len();
        }
    }

    fn shuffle(&mut self) {
        shuffle(&mut self.racks, self.below);
        for rack in &mut self.racks {
            shuffle(&mut rack.fenced.brokers, self.below);
            shuffle(&mut rack.unfenced.brokers, self.below);
        }
    }
}

fn random_index(len: usize, below: Below<'_>) -> usize {
    if len == 0 {
        return 0;
    }
    let bound = u64::try_from(len).expect("brokers are few");
    usize::try_from(below(bound)).expect("below the number of brokers")
}

fn shuffle<T>(items: &mut [T], below: Below<'_>) {
    for last in (1..items.len()).rev() {
        items.swap(last, random_index(last + 1, below));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn broker(id: i32, rack: Option<&str>, fenced: bool) -> Usable<'_> {
        Usable {
            id: NodeId(id),
            rack,
            fenced,
        }
    }

    #[test]
    fn each_partition_begins_one_broker_further() {
        let brokers: Vec<_> = (0..4).map(|id| broker(id, None, false)).collect();
        let placed = place(&brokers, 4, 3, &|_| 0).unwrap();
        let ids: Vec<Vec<i32>> = placed
            .iter()
            .map(|p| p.iter().map(|id| id.0).collect())
            .collect();
        assert_eq!(ids, [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1]]);
    }

    #[test]
    fn replicas_are_spread_over_racks_and_led_by_live_brokers() {
        let racks = ["a", "b", "c"];
        let brokers: Vec<_> = (0..9)
            .map(|id| broker(id, Some(racks[usize::try_from(id).unwrap() % 3]), id == 4))
            .collect();
        // Knuth's generator; any will do.
        let state = Cell::new(1u64);
        let below = |bound| {
            let next = state
                .get()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.set(next);
            (next >> 33) % bound
        };
        let mut leads: BTreeMap<NodeId, usize> = BTreeMap::new();
        for replicas in place(&brokers, 64, 3, &below).unwrap() {
            let used: BTreeSet<_> = replicas.iter().map(|id| id.0 % 3).collect();
            assert_eq!(used.len(), 3, "{replicas:?}");
            *leads.entry(replicas[0]).or_default() += 1;
        }
        assert_eq!(leads.len(), 8);
        assert!(!leads.contains_key(&NodeId(4)));
    }

    #[test]
    fn a_single_live_broker_leads_everything() {
        let brokers = [broker(1, None, false), broker(2, None, true)];
        for replicas in place(&brokers, 10, 2, &|_| 0).unwrap() {
            assert_eq!(replicas, [NodeId(1), NodeId(2)]);
        }
    }

    #[test]
    fn what_cannot_be_placed_is_refused_in_kafkas_words() {
        let brokers = [broker(1, None, false)];
        let words = |brokers: &[Usable<'_>], rf| {
            let refusal = place(brokers, 1, rf, &|_| 0).unwrap_err();
            refusal.words().to_owned()
        };
        assert_eq!(
            words(&brokers, 2),
            "The target replication factor of 2 cannot be reached because only 1 broker(s) are \
             registered."
        );
        assert_eq!(words(&[], 1), "All brokers are currently fenced.");
        assert_eq!(
            words(&[broker(1, None, true)], 1),
            "All brokers are currently fenced."
        );
    }
}
