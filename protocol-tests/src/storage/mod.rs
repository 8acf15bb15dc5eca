//! What the storage engine costs where it is strained: runs of minutes, by hand, with
//! `scripts/storage`. Each prints its samples as they come and its verdict at the end, as ratios to
//! what the same machine does without the strain, or as CPU time for each GiB.
//!
//! - `compaction`: beside a partition that is produced to. - `recovery`: after a kill.
//! - `cold`: a reader of what is not in memory beside those at the log's end.
//! - `start`: many partitions and segments. - `durability`: acknowledgements that wait for the disk.
//! - `machine`: topics with options, files, the page cache, control groups.

pub mod cold;
pub mod compaction;
pub mod durability;
mod machine;
pub mod recovery;
pub mod start;

/// Bytes of a GiB.
const GIB: u64 = 1 << 30;

fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB as f64
}
