//! System calls for each request, as strace counts them.

use std::io;
use std::time::Duration;

use super::{Cell, Figure, Goal, Life, Taken};
use crate::bench::contestant::Contestant;
use crate::bench::measure::count_calls;
use crate::load::batch::Batch;
use crate::load::consume::{self, Drain};
use crate::load::produce::{self, Load};

pub(super) const CALLS: Cell = Cell {
    name: "calls",
    title: "System calls",
    figures: &[
        figure("produce", "for a Produce of 16 KiB, alone", Goal::most(5.0)),
        figure("pipelined", "for the same, 8 in flight", Goal::most(3.0)),
        figure("fetch", "for a Fetch of 1 MiB", Goal::NONE),
    ],
    life: Life::Shared,
    real_time: false,
    daily: 1,
    counts: true,
    others_work: false,
    without: &[],
    run: sample,
};

const fn figure(key: &'static str, title: &'static str, goal: Goal) -> Figure {
    Figure {
        key,
        title,
        unit: "each",
        goal,
    }
}

const REQUESTS: u64 = 4096;
const FETCHES: u64 = 512;

fn sample(contestant: &mut Contestant) -> io::Result<Taken> {
    let batch = Batch::new(16 << 10, 16);
    let (topic, targets) = contestant.new_topic(1)?;
    let mut load = Load {
        port: contestant.port,
        targets,
        batch: batch.clone(),
        acks: 1,
        depth: 1,
        requests: REQUESTS,
    };
    let alone = each(contestant, REQUESTS, || produce::run(&load).map(|_| ()))?;
    load.depth = 8;
    let pipelined = each(contestant, REQUESTS, || produce::run(&load).map(|_| ()))?;
    let drain = Drain {
        port: contestant.port,
        targets: load.targets,
        batch,
        fetch_bytes: 1 << 20,
        bytes: FETCHES << 20,
    };
    let fetch = each(contestant, FETCHES, || consume::run(&drain).map(|_| ()))?;
    contestant.delete_topic(&topic)?;
    Ok(Taken {
        cpu: Duration::ZERO,
        figures: vec![
            ("produce", alone),
            ("pipelined", pipelined),
            ("fetch", fetch),
        ],
    })
}

fn each(
    contestant: &Contestant,
    requests: u64,
    work: impl FnOnce() -> io::Result<()>,
) -> io::Result<f64> {
    let (counts, ()) = count_calls(contestant.pid(), &contestant.folder, work)?;
    Ok(counts.values().sum::<u64>() as f64 / requests as f64)
}
