//! Runs that strain the storage engine, by hand; `scripts/storage` builds what they need.

use std::io;
use std::process::ExitCode;

use protocol_tests::storage::{cold, compaction, durability, recovery, start};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let size = |text: &str| text.parse::<u64>().map_err(io::Error::other);
    let done = match &words[..] {
        ["compaction"] => compaction::run(5),
        ["compaction", gib] => size(gib).and_then(compaction::run),
        ["recovery"] => recovery::run(5),
        ["recovery", gib] => size(gib).and_then(recovery::run),
        ["cold"] => cold::run(6),
        ["cold", rounds] => rounds.parse().map_err(io::Error::other).and_then(cold::run),
        ["start"] => start::run(),
        ["durability"] => durability::run(8),
        _ => {
            eprintln!("storage compaction|recovery [GIB] | cold [ROUNDS] | start | durability");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("storage: {error}");
            ExitCode::FAILURE
        }
    }
}
