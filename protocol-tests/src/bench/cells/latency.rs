//! Latency at a fixed rate, from the intended time of each request.

use std::io;

use hdrhistogram::Histogram;

use super::{Cell, Figure, Goal, Life, Taken, with_cpu};
use crate::bench::contestant::Contestant;
use crate::load::batch::Batch;
use crate::load::paced::{self, Pace};
use crate::load::tail;

pub(super) const BUSY: Cell = Cell {
    name: "latency-16k",
    title: "Produce 16 KiB, acks=1, 5,000 a second",
    figures: &[
        p50(Goal::ratios(1.15, 0.7)),
        p99(Goal::ratios(1.3, 0.5)),
        p999(Goal::ratios(1.3, 0.5)),
        CPU,
    ],
    life: Life::Shared,
    real_time: true,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, &Batch::new(16 << 10, 16), 5000),
};

pub(super) const CALM: Cell = Cell {
    name: "latency-1k",
    title: "Produce 1 KiB, acks=1, 1,000 a second",
    figures: &[
        p50(Goal::ratios(1.15, 0.7)),
        p99(Goal::NONE),
        p999(Goal::NONE),
        CPU,
    ],
    life: Life::Shared,
    real_time: true,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, &Batch::new(1 << 10, 1), 1000),
};

pub(super) const TAIL: Cell = Cell {
    name: "tail-1k",
    title: "The same with a consumer at the end: from the intended time to the consumer",
    figures: &[p50(Goal::NONE), p99(Goal::NONE), p999(Goal::NONE), CPU],
    life: Life::Shared,
    real_time: true,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: follow,
};

const CPU: Figure = Figure {
    key: "us_per_request",
    title: "broker CPU",
    unit: "µs per request",
    goal: Goal::NONE,
};

const fn p50(goal: Goal) -> Figure {
    Figure {
        key: "p50",
        title: "p50",
        unit: "µs",
        goal,
    }
}

const fn p99(goal: Goal) -> Figure {
    Figure {
        key: "p99",
        title: "p99",
        unit: "µs",
        goal,
    }
}

const fn p999(goal: Goal) -> Figure {
    Figure {
        key: "p999",
        title: "p99.9",
        unit: "µs",
        goal,
    }
}

/// Seconds that count, after half a second that does not.
const SECONDS: u64 = 5;

fn pace(contestant: &mut Contestant, batch: &Batch, rate: u32) -> io::Result<(String, Pace)> {
    let (topic, targets) = contestant.new_topic(1)?;
    let warm_up = u64::from(rate) / 2;
    let pace = Pace {
        port: contestant.port,
        target: targets[0],
        batch: batch.clone(),
        acks: 1,
        rate,
        requests: u64::from(rate) * SECONDS + warm_up,
        warm_up,
    };
    Ok((topic, pace))
}

fn sample(contestant: &mut Contestant, batch: &Batch, rate: u32) -> io::Result<Taken> {
    let (topic, pace) = pace(contestant, batch, rate)?;
    let (cpu, latencies) = with_cpu(contestant, || paced::run(&pace))?;
    contestant.delete_topic(&topic)?;
    Ok(taken(cpu, &latencies, pace.requests))
}

fn follow(contestant: &mut Contestant) -> io::Result<Taken> {
    let (topic, pace) = pace(contestant, &Batch::new(1 << 10, 1), 1000)?;
    let (cpu, tail) = with_cpu(contestant, || tail::run(&pace))?;
    contestant.delete_topic(&topic)?;
    Ok(taken(cpu, &tail.received, pace.requests))
}

fn taken(cpu: std::time::Duration, latencies: &Histogram<u64>, requests: u64) -> Taken {
    let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
    Taken {
        cpu,
        figures: vec![
            ("p50", at(0.5)),
            ("p90", at(0.9)),
            ("p99", at(0.99)),
            ("p999", at(0.999)),
            ("max", latencies.max() as f64 / 1e3),
            ("us_per_request", cpu.as_secs_f64() * 1e6 / requests as f64),
        ],
    }
}
