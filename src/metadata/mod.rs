//! What the cluster knows of itself: the records of the metadata log and the image they add up to.
//!
//! - `record`: every record and its bytes.

pub(crate) mod record;
