//! Coordinators: the machines behind internal topics.
//!
//! - `router`: which partition of the topic a key belongs to, and the machine that runs for it.
//! - `journal`: a machine's records as batches of its partition. - `load`: and back again.
//! - `effects`: what machines want done beside their records.
//! - `group`: groups and their offsets, kept in `__consumer_offsets`.

mod effects;
pub(crate) mod group;
mod journal;
mod load;
pub(crate) mod router;
