//! Barnabas: a Kafka broker in one small binary.

mod api;
mod base;
mod cli;
mod config;
mod controller;
mod log;
mod machine;
mod metadata;
mod net;
mod os;
mod protocol;
mod quorum;
mod replica;
mod security;
mod server;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

// Counts on the wire may ask for more memory than there is; jemalloc only reserves addresses for
// them, where other allocators end the process.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::run()
}
