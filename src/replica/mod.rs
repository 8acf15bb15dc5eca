//! The partitions that this node has replicas of.
//!
//! - `manager`: all of them; applies the metadata's changes.
//! - `partition`: one: role, append, offsets. - `isr`: high watermark and in-sync replicas.
//! - `wait`, `commit`: waiting for a partition to change, for records to be committed.
//! - `background`: checkpoints, flushes, removal of what was deleted, directories that fail.
//! - `progress`: what a long recovery says.
//! - `moving`: replicas on their way to another directory. - `places`: where replicas are, and how
//!   the metadata gets to know. - `pace`: bytes a second at most.
//! - `agenda`, `retention`, `cleaning`: which partitions a round looks at; deleting what is too old
//!   or too much; compacting. - `cleaner_stats`: what compaction tells of itself.
//! - `durable`: flushes that acknowledgements wait for, one for all that wait.
//! - `config`: what a partition takes from the options. - `fault`: trouble of this layer.

mod agenda;
pub(crate) mod background;
pub(crate) mod cleaner_stats;
mod cleaning;
pub(crate) mod commit;
mod config;
pub(crate) mod durable;
pub(crate) mod fault;
mod isr;
pub(crate) mod manager;
mod moving;
mod pace;
pub(crate) mod partition;
pub(crate) mod places;
mod progress;
mod retention;
mod wait;

#[cfg(test)]
mod moving_test;
#[cfg(test)]
mod restart_test;
#[cfg(test)]
pub(crate) mod testkit;
