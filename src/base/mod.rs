//! What every layer shares: identifiers, deadlines and rates as data, variable-length integers.
//!
//! Nothing here does I/O, reads a clock or draws a random number.

pub(crate) mod ids;
pub(crate) mod rate;
pub(crate) mod timers;
pub(crate) mod varint;

use std::collections::HashMap;

/// A map that every request asks: its hash is seeded, and several times cheaper than SipHash.
pub(crate) type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

pub(crate) use ids::{
    DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, ProducerId, TopicId, TopicPartition, Uuid,
};
