//! The newest offset of each key, in a memory of fixed size: what a cleaning knows of the records
//! that it has not compacted before (org.apache.kafka.storage.internals.log.SkimpyOffsetMap).
//!
//! A key is known by 128 bits of a hash with a secret of this map, so nobody who can write records
//! can make two keys look the same.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Two words of hash, then the offset plus one; 0 where the slot is free.
type Slot = [u64; 3];

/// The bytes of one slot: as many as Kafka needs, so that a size means the same.
const SLOT_BYTES: u64 = 24;

/// Newest offsets by key.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    slots: Vec<Slot>,
    keys: usize,
    keys_max: usize,
    hashers: [RandomState; 2],
    latest_offset: i64,
}

impl OffsetMap {
    /// A map within `bytes` of memory, filled up to `load_factor`; it takes less when no more than
    /// `keys_wanted` can come.
    pub(crate) fn new(bytes: u64, load_factor: f64, keys_wanted: u64) -> Self {
        let most = (bytes / SLOT_BYTES).max(2);
        let load = load_factor.clamp(0.01, 1.0);
        let enough = (to_f64(keys_wanted) / load).ceil() + 2.0;
        let slots = to_f64(most).min(enough);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 2 and what was an integer before"
        )]
        let (slots, keys_max) = (slots as usize, (slots * load) as usize);
        Self {
            slots: vec![[0; 3]; slots],
            keys: 0,
            // One slot stays free, or a search would not end.
            keys_max: keys_max.clamp(1, slots - 1),
            hashers: [RandomState::new(), RandomState::new()],
            latest_offset: -1,
        }
    }

    /// Whether no other key fits.
    pub(crate) fn is_full(&self) -> bool {
        self.keys >= self.keys_max
    }

    /// Notes that a key has a record at an offset, which must not be below those noted before. The
    /// map must not be full.
    pub(crate) fn put(&mut self, key: &[u8], offset: i64) {
        let (at, [high, low]) = self.find(key);
        if self.slots[at][2] == 0 {
            self.keys += 1;
        }
        self.slots[at] = [high, low, offset.cast_unsigned() + 1];
        self.reach(offset);
    }

    /// The newest offset of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<i64> {
        let (at, _) = self.find(key);
        self.slots[at][2].checked_sub(1).map(u64::cast_signed)
    }

    /// Notes that everything up to an offset is known.
    pub(crate) fn reach(&mut self, offset: i64) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    /// The last offset up to which everything is known; -1 at first.
    pub(crate) fn latest_offset(&self) -> i64 {
        self.latest_offset
    }

    /// How many keys it knows.
    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    /// How much of it is used.
    pub(crate) fn utilization(&self) -> f64 {
        to_f64(self.keys as u64) / to_f64(self.slots.len() as u64)
    }

    /// The slot of a key, or the free one where it belongs.
    fn find(&self, key: &[u8]) -> (usize, [u64; 2]) {
        let hash = [self.hashers[0].hash_one(key), self.hashers[1].hash_one(key)];
        let count = self.slots.len() as u64;
        let mut at = usize::try_from(hash[0] % count).unwrap_or(0);
        while self.slots[at][2] != 0 && self.slots[at][..2] != hash {
            at = (at + 1) % self.slots.len();
        }
        (at, hash)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of memory and counts of keys, where the last bits do not matter"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_offset_of_a_key_is_known() {
        let mut map = OffsetMap::new(1 << 20, 0.9, 1000);
        for round in 0..3 {
            for n in 0..300_i64 {
                map.put(format!("key-{n}").as_bytes(), round * 300 + n);
            }
        }
        assert_eq!(map.len(), 300);
        assert_eq!(map.latest_offset(), 899);
        assert_eq!(map.get(b"key-7"), Some(607));
        assert_eq!(map.get(b"other"), None);
        assert_eq!(map.get(b""), None);
        map.put(b"", 900);
        assert_eq!(map.get(b""), Some(900));
    }

    #[test]
    fn a_full_map_says_so_and_finds_everything() {
        let mut map = OffsetMap::new(100 * SLOT_BYTES, 0.9, u64::MAX);
        let mut n = 0_i64;
        while !map.is_full() {
            map.put(&n.to_be_bytes(), n);
            n += 1;
        }
        assert_eq!(n, 90);
        assert!((0..90_i64).all(|n| map.get(&n.to_be_bytes()) == Some(n)));
        assert!((map.utilization() - 0.9).abs() < 0.001);
    }

    #[test]
    fn no_more_memory_is_taken_than_keys_can_need() {
        let map = OffsetMap::new(u64::MAX, 0.5, 10);
        assert_eq!(map.slots.len(), 22);
        let smallest = OffsetMap::new(0, 0.9, 0);
        assert!(!smallest.is_full());
    }
}
