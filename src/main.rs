//! Barnabas: a Kafka broker in one small binary.
#![expect(dead_code, reason = "the layers arrive bottom up; this line goes with the first caller")]

mod base;
mod config;
mod controller;
mod log;
mod machine;
mod metadata;
mod net;
mod os;
mod protocol;
mod security;
mod quorum;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {}
