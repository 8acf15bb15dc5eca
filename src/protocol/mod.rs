//! Frames, messages, record batches and error codes: the bytes on the wire and in the log.

pub(crate) mod codec;
pub(crate) mod error;
pub(crate) mod records;
