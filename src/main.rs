//! Barnabas: a Kafka broker in one small binary.
#![expect(
    dead_code,
    reason = "the layers arrive bottom up; this line goes with the first caller"
)]

mod config;

fn main() {}
