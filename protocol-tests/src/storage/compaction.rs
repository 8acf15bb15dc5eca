//! Compaction of many GiB of keyed records while another partition is produced to.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::machine::{ms, reset_peak, status_bytes, topic};
use super::{GIB, gib};
use crate::Broker;
use crate::bench::measure::{cpu_time, resident_bytes, rest};
use crate::chance::Chance;
use crate::load::batch::Batch;
use crate::load::frames::Target;
use crate::load::latencies;
use crate::load::paced::{self, Pace};
use crate::load::produce::Stream;
use crate::load::wrong;
use crate::topics;
use crate::wire::Connection;

const KEYS: usize = 1_000_000;
/// Bytes of a value, and records of a batch.
const VALUE: usize = 1000;
const RECORDS: u32 = 64;
const RATE: u32 = 500;
/// Seconds of a sample of the busy partition, and how many samples are taken without compaction.
const SAMPLE: u32 = 4;
const SAMPLES: usize = 5;
const LIMIT: Duration = Duration::from_secs(900);

/// Runs it with so many GiB.
pub fn run(size: u64) -> io::Result<()> {
    let broker = Broker::start_with(&[("log.cleaner.backoff.ms", "100")]);
    let pid = broker.process().pid();
    let options = [
        ("cleanup.policy", "compact"),
        ("min.compaction.lag.ms", "1000000000000"),
        ("segment.bytes", "104857600"),
    ];
    let keyed = topic(broker.port(), "keyed", 1, &options)[0];
    let hot = topic(broker.port(), "hot", 1, &[])[0];
    println!("writing {size} GiB of {KEYS} keys");
    fill(broker.port(), keyed, size * GIB)?;
    // What was written is on its way to the disk for a while.
    std::process::Command::new("sync").status()?;
    rest(Duration::from_secs(2));

    let mut alone = latencies();
    let (cpu, began) = (cpu_time(pid)?, Instant::now());
    for _ in 0..SAMPLES {
        alone.add(sample(broker.port(), hot)?).map_err(wrong)?;
    }
    let busy = cpu_time(pid)?.saturating_sub(cpu).as_secs_f64() / began.elapsed().as_secs_f64();
    let resident = resident_bytes(pid)?;
    told("without compaction", &alone);

    reset_peak(pid)?;
    let said = broker.process().lines().len();
    let (cpu, began) = (cpu_time(pid)?, Instant::now());
    let mut admin = Connection::open(&broker);
    topics::set(&mut admin, "keyed", "min.compaction.lag.ms", "0");
    let mut beside = latencies();
    let line = loop {
        beside.add(sample(broker.port(), hot)?).map_err(wrong)?;
        let lines = broker.process().lines();
        let done = lines
            .iter()
            .skip(said)
            .find(|line| line.contains("a log is compacted"));
        if let Some(line) = done {
            break line.clone();
        }
        if began.elapsed() > LIMIT {
            return Err(wrong("nothing was compacted"));
        }
    };
    let took = began.elapsed().as_secs_f64();
    let cpu = cpu_time(pid)?.saturating_sub(cpu).as_secs_f64() - busy * took;
    told("beside compaction ", &beside);
    println!("{line}");
    let peak = status_bytes(pid, "VmHWM")?;
    println!(
        "compaction: {:.2} s of CPU for each GiB of the log; {:.0} MiB of memory more than before, at \
         most; p99 of the busy partition {:.2} times that without",
        cpu / gib(size * GIB),
        peak.saturating_sub(resident) as f64 / f64::from(1 << 20),
        ms(&beside, 0.99) / ms(&alone, 0.99)
    );
    Ok(())
}

fn told(when: &str, latencies: &Histogram<u64>) {
    println!(
        "{when}: p50 {:.3} p99 {:.3} p99.9 {:.3} ms of {} requests",
        ms(latencies, 0.5),
        ms(latencies, 0.99),
        ms(latencies, 0.999),
        latencies.len()
    );
}

fn sample(port: u16, target: Target) -> io::Result<Histogram<u64>> {
    paced::run(&Pace {
        port,
        target,
        batch: Batch::new(1024, 1),
        acks: -1,
        rate: RATE,
        requests: u64::from(RATE * SAMPLE),
        warm_up: u64::from(RATE) / 4,
    })
}

fn fill(port: u16, target: Target, bytes: u64) -> io::Result<()> {
    let mut chance = Chance::announced("keys");
    let mut stream = Stream::open(port, target, -1)?;
    let mut written = 0;
    while written < bytes {
        let keys: Vec<u64> = (0..RECORDS).map(|_| chance.below(KEYS) as u64).collect();
        let batch = Batch::keyed(&keys, VALUE);
        written += batch.bytes.len() as u64;
        stream.send(&batch)?;
    }
    stream.finish()
}
