//! Produce: CPU time for each byte and each request, a connection with some requests in flight.

use std::io;

use super::{Cell, Figure, Goal, Life, Taken, gigabytes, with_cpu};
use crate::bench::contestant::Contestant;
use crate::load::batch::Batch;
use crate::load::produce::{self, Load, Produced};

pub(super) const LARGE: Cell = Cell {
    name: "produce-256k",
    title: "Produce, requests of 256 KiB, 4 in flight",
    figures: &[cpu(Goal::ratios(1.3, 0.55)), THROUGHPUT],
    life: Life::Shared,
    real_time: false,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, Size::Large),
};

pub(super) const MIDDLE: Cell = Cell {
    name: "produce-16k",
    title: "Produce, requests of 16 KiB, 5 in flight",
    figures: &[cpu(Goal::ratios(1.3, 0.3)), THROUGHPUT],
    life: Life::Shared,
    real_time: false,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, Size::Middle),
};

pub(super) const SMALL: Cell = Cell {
    name: "produce-1k",
    title: "Produce, requests of 1 KiB, 32 in flight",
    figures: &[Figure {
        key: "us_per_request",
        title: "broker CPU",
        unit: "µs per request",
        goal: Goal::ratios(1.3, 0.15),
    }],
    life: Life::Shared,
    real_time: false,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, Size::Small),
};

pub(super) const THROUGHPUT: Figure = Figure {
    key: "gb_per_s",
    title: "throughput beside it",
    unit: "GB/s",
    goal: Goal::NONE,
};

pub(super) const fn cpu(goal: Goal) -> Figure {
    Figure {
        key: "s_per_gb",
        title: "broker CPU",
        unit: "s per GB",
        goal,
    }
}

#[derive(Clone, Copy)]
enum Size {
    Large,
    Middle,
    Small,
}

impl Size {
    /// Batch, requests in flight, requests of a sample.
    fn load(self) -> (Batch, usize, u64) {
        match self {
            Self::Large => (Batch::new(256 << 10, 256), 4, 4000),
            Self::Middle => (Batch::new(16 << 10, 16), 5, 25_000),
            Self::Small => (Batch::new(1 << 10, 1), 32, 60_000),
        }
    }
}

fn sample(contestant: &mut Contestant, size: Size) -> io::Result<Taken> {
    let (topic, targets) = contestant.new_topic(1)?;
    let (batch, depth, requests) = size.load();
    let load = Load {
        port: contestant.port,
        targets,
        batch,
        acks: 1,
        depth,
        requests,
    };
    let (cpu, done) = with_cpu(contestant, || produce::run(&load))?;
    contestant.delete_topic(&topic)?;
    Ok(taken(cpu, &done))
}

fn taken(cpu: std::time::Duration, done: &Produced) -> Taken {
    let spent = cpu.as_secs_f64();
    Taken {
        cpu,
        figures: vec![
            ("s_per_gb", spent / gigabytes(done.bytes)),
            ("us_per_request", spent * 1e6 / done.requests as f64),
            (
                "gb_per_s",
                gigabytes(done.bytes) / done.elapsed.as_secs_f64(),
            ),
        ],
    }
}

/// A second or two of all sizes.
pub(super) fn warm(contestant: &mut Contestant) -> io::Result<()> {
    let (topic, targets) = contestant.new_topic(1)?;
    for size in [Size::Large, Size::Middle, Size::Small] {
        let (batch, depth, requests) = size.load();
        produce::run(&Load {
            port: contestant.port,
            targets: targets.clone(),
            batch,
            acks: 1,
            depth,
            requests: requests / 4,
        })?;
    }
    contestant.delete_topic(&topic)
}
