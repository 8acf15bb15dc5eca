//! Frames, messages, record batches and error codes: the bytes on the wire and in the log.
//!
//! - `frame`, `header`: what surrounds every message.
//! - `chunk`, `fetch`: responses whose records stay in the log's files. - `produce`: its responses.
//! - `records`: record batches and what is inside them.
//! - `codec`: the fields of the record schemas that the message library lacks.
//! - `error`: the codes and refusals.
//! - `subscription`: what members of a "consumer" group tell each other.

pub(crate) mod chunk;
pub(crate) mod codec;
pub(crate) mod error;
pub(crate) mod fetch;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod produce;
pub(crate) mod records;
pub(crate) mod subscription;
