//! Real clients against the real binary: what the tests in `tests/` are written with.
//!
//! A test starts a [`Broker`] on a folder and a port of its own, drives it with stock clients
//! ([`tools`]) or with single frames ([`wire`]), and compares what it got with what it gave. With
//! `PROTOCOL_TESTS_BROKER=apache-kafka` the same tests run against Apache Kafka, which is how a test
//! itself is proved; the few that speak of our own binary alone then pass over themselves
//! ([`only_barnabas`]).
//!
//! Nothing here sleeps: a wait ends with a log line, an exit or an answer, or fails at its limit and
//! shows what the broker said.

pub mod bench;
pub mod broker;
pub mod chance;
pub mod first_message;
pub mod load;
pub mod probes;
pub mod process;
pub mod scale;
pub mod stock;
pub mod storage;
pub mod text;
pub mod tools;
pub mod topics;
pub mod wire;
pub mod witness;

pub use broker::{Broker, Kind, only_barnabas};
pub use chance::Chance;
