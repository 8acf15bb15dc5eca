//! The only door to the machine: clock, disk, network, chance, tasks, memory, and how much is
//! logged.
//!
//! Everything above asks here, so that a test can put another machine underneath.

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod disk;
pub(crate) mod limits;
pub(crate) mod log_levels;
pub(crate) mod net;
pub(crate) mod random;
pub(crate) mod residency;
#[cfg(test)]
pub(crate) mod sim_disk;
pub(crate) mod splice;
pub(crate) mod tasks;
