//! Fetch: CPU time for each byte, from the page cache to a consumer that throws it away.

use std::io;

use super::produce::{THROUGHPUT, cpu};
use super::{Cell, Goal, Life, Taken, gigabytes, with_cpu};
use crate::bench::contestant::Contestant;
use crate::load::batch::Batch;
use crate::load::consume::{self, Drain};

pub(super) const LARGE: Cell = Cell {
    name: "fetch-1m",
    title: "Fetch, answers of 1 MiB, one consumer",
    figures: &[cpu(Goal::ratios(1.15, 0.65)), THROUGHPUT],
    life: Life::Shared,
    real_time: false,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, 1 << 20, 4_000_000_000),
};

pub(super) const SMALL: Cell = Cell {
    name: "fetch-64k",
    title: "Fetch, answers of 64 KiB, one consumer",
    figures: &[cpu(Goal::ratios(1.3, 0.45)), THROUGHPUT],
    life: Life::Shared,
    real_time: false,
    daily: 4,
    counts: false,
    others_work: false,
    without: &[],
    run: |contestant| sample(contestant, 64 << 10, 1_500_000_000),
};

/// 256 MiB of batches of 16 KiB.
const BATCHES: u64 = 16 << 10;

fn sample(contestant: &mut Contestant, fetch_bytes: i32, bytes: u64) -> io::Result<Taken> {
    let batch = Batch::new(16 << 10, 16);
    let drain = Drain {
        port: contestant.port,
        targets: vec![contestant.full_topic(&batch, BATCHES)?],
        batch,
        fetch_bytes,
        bytes,
    };
    let (cpu, done) = with_cpu(contestant, || consume::run(&drain))?;
    let spent = cpu.as_secs_f64();
    Ok(Taken {
        cpu,
        figures: vec![
            ("s_per_gb", spent / gigabytes(done.bytes)),
            ("us_per_request", spent * 1e6 / done.requests as f64),
            (
                "gb_per_s",
                gigabytes(done.bytes) / done.elapsed.as_secs_f64(),
            ),
        ],
    })
}

/// A second or so of both.
pub(super) fn warm(contestant: &mut Contestant) -> io::Result<()> {
    sample(contestant, 1 << 20, 1_000_000_000)?;
    sample(contestant, 64 << 10, 500_000_000).map(|_| ())
}
