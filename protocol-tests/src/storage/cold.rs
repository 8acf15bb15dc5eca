//! Producers and consumers at a log's end while another consumer reads what is not in memory, all
//! within a control group whose memory holds neither.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::machine::{MemoryBound, drop_caches, median, ms, read_by_threads, topic};
use super::{GIB, gib};
use crate::Broker;
use crate::bench::measure::{RealTime, cpu_time};
use crate::load::batch::Batch;
use crate::load::consume::{self, Drain};
use crate::load::frames::Target;
use crate::load::paced::Pace;
use crate::load::produce::{self, Load};
use crate::load::tail::{self, Tail};

/// What the cold reader reads, and the memory of the control group.
const COLD: u64 = 4 * GIB;
const MEMORY: u64 = 2 * GIB;
const RATE: u32 = 500;
const REQUESTS: u64 = 6000;
const ROUNDS: usize = 4;

/// Runs it.
pub fn run() -> io::Result<()> {
    let bound = MemoryBound::new(MEMORY)?;
    let broker = Broker::start_with(&[]);
    let pid = broker.process().pid();
    bound.take(pid)?;
    let cold = topic(broker.port(), "cold", 1, &[])[0];
    let batch = Batch::new(64 << 10, 64);
    println!("writing {} GiB", gib(COLD));
    produce::run(&Load {
        port: broker.port(),
        targets: vec![cold],
        batch: batch.clone(),
        acks: 1,
        depth: 2,
        requests: COLD / batch.bytes.len() as u64,
    })?;
    drop_caches()?;
    let priority = RealTime::of(pid);
    println!("real-time priority: {}", priority.granted);
    let mut ratios = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let samples = match round % 2 {
            0 => [false, true],
            _ => [true, false],
        };
        let mut found = [None, None];
        for with_cold in samples {
            let name = format!("hot-{round}-{with_cold}");
            let hot = topic(broker.port(), &name, 1, &[])[0];
            let sample = sample(&broker, hot, with_cold.then_some((cold, &batch)))?;
            found[usize::from(with_cold)] = Some(sample);
        }
        let [Some(alone), Some(beside)] = found else {
            continue;
        };
        let ratio = |one: fn(&Tail) -> f64| one(&beside) / one(&alone);
        let acknowledged = |tail: &Tail| ms(&tail.acknowledged, 0.99);
        let received = |tail: &Tail| ms(&tail.received, 0.99);
        ratios.0.push(ratio(acknowledged));
        ratios.1.push(ratio(received));
    }
    println!("read from the disk by threads:");
    for (name, bytes) in read_by_threads(pid)? {
        println!(
            "  {name:<16} {:>10.1} MiB",
            bytes as f64 / f64::from(1 << 20)
        );
    }
    println!(
        "p99 with a cold reader over p99 without: acknowledged {:.2}, received {:.2}",
        median(&ratios.0),
        median(&ratios.1)
    );
    drop(priority);
    drop(broker);
    drop(bound);
    Ok(())
}

fn sample(broker: &Broker, hot: Target, cold: Option<(Target, &Batch)>) -> io::Result<Tail> {
    let pace = Pace {
        port: broker.port(),
        target: hot,
        batch: Batch::new(1024, 1),
        acks: -1,
        rate: RATE,
        requests: REQUESTS,
        warm_up: u64::from(RATE),
    };
    let over = AtomicBool::new(false);
    let bytes = AtomicU64::new(0);
    let pid = broker.process().pid();
    let (cpu, began) = (cpu_time(pid)?, Instant::now());
    let tail = thread::scope(|scope| {
        if let Some((target, batch)) = cold {
            let drain = Drain {
                port: broker.port(),
                targets: vec![target],
                batch: batch.clone(),
                fetch_bytes: 4 << 20,
                bytes: COLD,
            };
            let (over, bytes) = (&over, &bytes);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match consume::run_until(&drain, over) {
                        Ok(drained) => bytes.fetch_add(drained.bytes, Ordering::Relaxed),
                        Err(error) => return eprintln!("the cold reader ended: {error}"),
                    };
                }
            });
        }
        let tail = tail::run(&pace);
        over.store(true, Ordering::Relaxed);
        tail
    })?;
    let cpu = cpu_time(pid)?.saturating_sub(cpu).as_secs_f64() / began.elapsed().as_secs_f64();
    println!(
        "{}: acknowledged p50 {:.3} p99 {:.3} ms, received p50 {:.3} p99 {:.3} ms, {:.2} GiB cold, \
         {:.0} % of a core",
        if cold.is_some() {
            "with a cold reader"
        } else {
            "without           "
        },
        ms(&tail.acknowledged, 0.5),
        ms(&tail.acknowledged, 0.99),
        ms(&tail.received, 0.5),
        ms(&tail.received, 0.99),
        gib(bytes.load(Ordering::Relaxed)),
        cpu * 100.0
    );
    Ok(tail)
}
