//! The log on disk, byte for byte Kafka's: a partition is a folder of segments, a segment a file of
//! batches with sparse indexes. Everything here is synchronous.
//!
//! - [`log`], [`settle`], [`roll`], [`truncate`], [`flush`]: a partition's log, what its owner calls;
//!   [`read`]: what readers call without it
//! - [`append`], [`producers`], [`epochs`], [`config`]: the rules, as functions of values;
//!   [`snapshot`]: producers as bytes; [`rebuild`]: those of a log at an offset
//! - [`recover`]: opening, after an orderly stop or not; [`resume`]: from an [`anchor`]
//!   inside a segment on
//! - [`retention`]: deleting what is old
//! - [`cleaner`]: compaction, by [`cleanable`], [`offset_map`], [`cleaned_txns`], [`filter`] and,
//!   of old formats, [`upgrade`]; [`swap`]: its result in the place of what it came from
//! - [`segment`], [`scan`], [`tail`]: one segment, going over it, its newest batches in memory
//! - [`index`], [`offset_index`], [`time_index`], [`txn_index`]: its indexes
//! - [`dirs`], [`dir`]: the directories that hold partitions; [`damaged`]: logs that cannot be opened;
//!   [`futures`], [`relocate`]: logs that
//!   move from one to another; [`checkpoint`], [`layout`]: files and names
//! - [`files`]: which files are open; [`fault`]: what goes wrong below

mod anchor;
pub(crate) mod append;
pub(crate) mod checkpoint;
pub(crate) mod cleanable;
pub(crate) mod cleaned_txns;
pub(crate) mod cleaner;
pub(crate) mod config;
pub(crate) mod damaged;
pub(crate) mod dir;
pub(crate) mod dirs;
pub(crate) mod epochs;
pub(crate) mod fault;
pub(crate) mod files;
pub(crate) mod filter;
pub(crate) mod flush;
pub(crate) mod futures;
pub(crate) mod index;
pub(crate) mod layout;
#[expect(
    clippy::module_inception,
    reason = "the folder is the engine, the file is one log"
)]
pub(crate) mod log;
pub(crate) mod offset_index;
pub(crate) mod offset_map;
pub(crate) mod producers;
pub(crate) mod read;
mod rebuild;
pub(crate) mod recover;
pub(crate) mod relocate;
mod resume;
pub(crate) mod retention;
mod roll;
pub(crate) mod scan;
pub(crate) mod segment;
mod settle;
pub(crate) mod snapshot;
pub(crate) mod swap;
pub(crate) mod tail;
pub(crate) mod time_index;
pub(crate) mod truncate;
pub(crate) mod txn_index;
pub(crate) mod upgrade;

#[cfg(test)]
mod cleaner_test;
#[cfg(test)]
mod crash_test;
#[cfg(test)]
mod crash_world_test;
#[cfg(test)]
mod damage_test;
#[cfg(test)]
mod kafka_folders_test;
#[cfg(test)]
mod log_test;
#[cfg(test)]
mod old_formats_test;
#[cfg(test)]
mod resume_test;
#[cfg(test)]
pub(crate) mod testkit;
