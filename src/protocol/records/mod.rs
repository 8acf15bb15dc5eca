//! Record batches of message format 2 (KIP-98): the only form in which records are written and
//! received. What older versions of Kafka wrote is kept and sent as it is.
//!
//! - [`batch`]: the 61 bytes of a batch's header, its checks, several batches in one buffer
//! - [`iter`]: the records inside a batch, and a walk that checks them without copying any
//! - [`build`]: making batches
//! - [`compress`]: the codecs, each under a limit of what it may give out
//! - [`checksum`][]: CRC-32C
//! - [`legacy`]: batches of magic 0 and 1; [`stored`]: of all formats in one buffer
//! - [`control`]: the records that brokers write for brokers: markers, leaders, voters, snapshots
//!
//! Everything here is a function of bytes; no length in them is believed.

pub(crate) mod batch;
pub(crate) mod build;
pub(crate) mod checksum;
pub(crate) mod compress;
pub(crate) mod control;
pub(crate) mod iter;
pub(crate) mod legacy;
pub(crate) mod stored;

#[cfg(test)]
mod hostile_test;
