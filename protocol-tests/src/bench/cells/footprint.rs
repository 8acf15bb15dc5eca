//! What a broker takes while nobody asks for anything: memory, and CPU time.

use std::io;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::{Cell, Figure, Goal, Life, Taken, with_cpu};
use crate::bench::contestant::{Contestant, Kind};
use crate::bench::measure::{resident_bytes, rest};
use crate::load::idle;

pub(super) const MEMORY: Cell = Cell {
    name: "memory",
    title: "Resident memory",
    figures: &[
        Figure {
            key: "idle_mib",
            title: "a node that has just started",
            unit: "MiB",
            goal: Goal::most_and_tuned(12.0, 0.03),
        },
        Figure {
            key: "kib_per_connection",
            title: "an idle connection",
            unit: "KiB",
            goal: Goal::most_and_tuned(2.5, 0.03),
        },
    ],
    life: Life::Own,
    real_time: false,
    daily: 2,
    counts: true,
    others_work: false,
    without: &[],
    run: memory,
};

pub(super) const IDLE: Cell = Cell {
    name: "idle",
    title: "CPU of an idle node: 9,000 partitions, 9,000 connections, 1,000 of them in a long poll",
    figures: &[Figure {
        key: "percent",
        title: "broker CPU",
        unit: "% of a core",
        goal: Goal::most_and_tuned(0.1, 0.05),
    }],
    life: Life::Own,
    real_time: false,
    daily: 1,
    // Hundredths of a percent: what neighbours add to them cannot be seen.
    counts: true,
    others_work: false,
    without: &[Kind::Control],
    run: idle,
};

const CONNECTIONS: usize = 9000;
const POLLS: usize = 1000;
const TOPICS: usize = 9;
const PARTITIONS: i32 = 1000;

/// How long a broker is left alone before it counts as idle, and how long it is watched.
const SETTLED: Duration = Duration::from_secs(8);
const WATCHED: Duration = Duration::from_secs(12);

fn memory(contestant: &mut Contestant) -> io::Result<Taken> {
    allow_many_files()?;
    contestant.start()?;
    rest(SETTLED / 2);
    let idle = resident_bytes(contestant.pid())?;
    // The first few bring in the code and the pools that any connection needs.
    let _first = idle::open(contestant.port, 32)?;
    let before = resident_bytes(contestant.pid())?;
    let connections = idle::open(contestant.port, CONNECTIONS)?;
    let after = resident_bytes(contestant.pid())?;
    drop(connections);
    let each = after.saturating_sub(before) as f64 / CONNECTIONS as f64;
    Ok(Taken {
        cpu: Duration::ZERO,
        figures: vec![
            ("idle_mib", idle as f64 / f64::from(1 << 20)),
            ("kib_per_connection", each / 1024.0),
        ],
    })
}

fn idle(contestant: &mut Contestant) -> io::Result<Taken> {
    allow_many_files()?;
    contestant.start()?;
    let mut targets = Vec::new();
    for _ in 0..TOPICS {
        targets.extend(contestant.new_topic(PARTITIONS)?.1);
    }
    // The last partition of each topic holds the record that showed that it is led.
    targets.retain(|target| target.partition < PARTITIONS - 1);
    let mut connections = idle::open(contestant.port, CONNECTIONS)?;
    idle::poll_long(&mut connections[..POLLS], &targets, 600_000)?;
    rest(SETTLED);
    let (cpu, ()) = with_cpu(contestant, || {
        rest(WATCHED);
        Ok(())
    })?;
    Ok(Taken {
        cpu,
        figures: vec![("percent", cpu.as_secs_f64() / WATCHED.as_secs_f64() * 100.0)],
    })
}

/// Both sides need a descriptor for each connection; the broker inherits the limit.
fn allow_many_files() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard.min(100_000), hard)?)
}
