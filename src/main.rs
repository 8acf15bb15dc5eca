//! Barnabas: a Kafka broker in one small binary.

// The engine below is built whole: followers, coordinators and the cleaner call what has no caller
// yet, and the layers that are allowed such code are named here.
mod api;
#[allow(dead_code, reason = "later callers: see the note above")]
mod base;
mod cli;
#[allow(dead_code, reason = "later callers: see the note above")]
mod config;
#[allow(dead_code, reason = "later callers: see the note above")]
mod controller;
#[allow(dead_code, reason = "later callers: see the note above")]
mod coordinator;
#[allow(dead_code, reason = "later callers: see the note above")]
mod log;
#[allow(dead_code, reason = "later callers: see the note above")]
mod machine;
#[allow(dead_code, reason = "later callers: see the note above")]
mod metadata;
mod net;
#[allow(dead_code, reason = "later callers: see the note above")]
mod os;
#[allow(dead_code, reason = "later callers: see the note above")]
mod protocol;
#[allow(dead_code, reason = "later callers: see the note above")]
mod quorum;
#[allow(dead_code, reason = "later callers: see the note above")]
mod replica;
mod security;
mod server;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: os::allocator::Allocator = os::allocator::Allocator;

fn main() -> ExitCode {
    cli::run()
}
