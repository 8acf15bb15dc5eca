//! What the cluster knows of itself: the records of the metadata log and the image they add up to.
//!
//! - `record`: every record and its bytes.
//! - `image`: the state that the records add up to.
//! - `changes`: which parts of it a batch touched, for those who follow.
//! - `view`: what handlers ask of it.
//! - `bootstrap`: the first records of a cluster.

pub(crate) mod bootstrap;
pub(crate) mod changes;
pub(crate) mod image;
pub(crate) mod record;
pub(crate) mod view;
