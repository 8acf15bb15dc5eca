//! Start after kill -9 with everything behind the recovery point, out of the page cache, beside a
//! plain read of the same bytes with their checksum.

use std::io;

use super::machine::{drop_caches, files, median, read_and_sum, topic};
use super::{GIB, gib};
use crate::Broker;
use crate::bench::measure::cpu_time;
use crate::load::batch::Batch;
use crate::load::produce::{self, Load};

const PARTITIONS: i32 = 5;
const ROUNDS: usize = 3;

/// Runs it with so many GiB.
pub fn run(size: u64) -> io::Result<()> {
    let mut broker = Broker::start_with(&[]);
    // Nothing is flushed before a segment is full.
    let targets = topic(
        broker.port(),
        "killed",
        PARTITIONS,
        &[("segment.bytes", "2147483647")],
    );
    let batch = Batch::new(256 << 10, 256);
    let requests = size * GIB / batch.bytes.len() as u64 / targets.len() as u64;
    println!("writing {size} GiB");
    produce::run(&Load {
        port: broker.port(),
        targets,
        batch,
        acks: 1,
        depth: 2,
        requests,
    })?;
    let mut ratios = Vec::new();
    let mut seconds = Vec::new();
    for round in 0..ROUNDS {
        broker.kill();
        let logs = files(&broker.data(), ".log")?;
        drop_caches()?;
        let (plain, bytes) = read_and_sum(&logs)?;
        drop_caches()?;
        let launched = std::time::Instant::now();
        broker.restart();
        let recovered = launched.elapsed();
        let per_gib = |took: std::time::Duration| took.as_secs_f64() / gib(bytes);
        println!(
            "round {round}: {:.2} GiB, read plainly {:.2} s per GiB, recovered {:.2} s per GiB, {:.2} \
             s of CPU per GiB",
            gib(bytes),
            per_gib(plain),
            per_gib(recovered),
            per_gib(cpu_time(broker.process().pid())?),
        );
        ratios.push(recovered.as_secs_f64() / plain.as_secs_f64());
        seconds.push(per_gib(recovered));
    }
    println!(
        "recovery: {:.2} s per GiB, {:.2} times a plain cold read with its checksum",
        median(&seconds),
        median(&ratios)
    );
    Ok(())
}
