//! Producers and consumers at a log's end while another consumer reads what is not in memory, all
//! within a control group whose memory holds neither; beside that, what it costs them when a bare
//! program reads the same files there.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::machine::{MemoryBound, drop_caches, files, median, ms, read_by_threads, topic};
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
const REQUESTS: u64 = 3000;
/// How often the bare program is told to read the files, so that it does not end.
const AGAIN: usize = 30;

/// Who reads what is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Nobody,
    Consumer,
    Bare,
}

const READERS: [Reader; 3] = [Reader::Nobody, Reader::Consumer, Reader::Bare];

struct Machine {
    broker: Broker,
    bound: MemoryBound,
    cold: Target,
    batch: Batch,
    files: Vec<PathBuf>,
}

/// Runs so many rounds of it.
pub fn run(rounds: usize) -> io::Result<()> {
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
    let machine = Machine {
        files: files(&broker.data().join("cold-0"), ".log")?,
        broker,
        bound,
        cold,
        batch,
    };
    let mut ratios = Ratios::default();
    for round in 0..rounds {
        // Each comes first, second and last in turn.
        let mut found = [None, None, None];
        for step in 0..READERS.len() {
            let at = (round + step) % READERS.len();
            found[at] = Some(machine.sample(&format!("hot-{round}-{at}"), READERS[at])?);
        }
        if let [Some(alone), Some(consumer), Some(bare)] = found {
            ratios.add(&alone, &consumer, &bare);
        }
    }
    println!("read from the disk by threads:");
    for (name, bytes) in read_by_threads(pid)? {
        println!(
            "  {name:<16} {:>10.1} MiB",
            bytes as f64 / f64::from(1 << 20)
        );
    }
    ratios.tell();
    drop(priority);
    // The group can be removed once its processes have ended.
    let Machine { broker, bound, .. } = machine;
    drop(broker);
    drop(bound);
    Ok(())
}

/// 99th percentiles over those without a reader, of each round.
#[derive(Default)]
struct Ratios {
    consumer: (Vec<f64>, Vec<f64>),
    bare: (Vec<f64>, Vec<f64>),
}

impl Ratios {
    fn add(&mut self, alone: &Tail, consumer: &Tail, bare: &Tail) {
        let p99 = |tail: &Tail| (ms(&tail.acknowledged, 0.99), ms(&tail.received, 0.99));
        let (acknowledged, received) = p99(alone);
        for (tail, into) in [(consumer, &mut self.consumer), (bare, &mut self.bare)] {
            let (a, r) = p99(tail);
            into.0.push(a / acknowledged);
            into.1.push(r / received);
        }
    }

    fn tell(&self) {
        for (who, ratios) in [
            ("a consumer", &self.consumer),
            ("a bare reader", &self.bare),
        ] {
            println!(
                "p99 beside {who} of what is not in memory over p99 without: acknowledged {:.2}, \
                 received {:.2}",
                median(&ratios.0),
                median(&ratios.1)
            );
        }
    }
}

/// A program that reads files in a control group until it is dropped.
struct Bare(Child);

impl Bare {
    fn start(files: &[PathBuf], bound: &MemoryBound) -> io::Result<Self> {
        let all = (0..AGAIN).flat_map(|_| files);
        let child = Command::new("cat")
            .args(all)
            .stdout(Stdio::null())
            .spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let bare = Self(child);
        bound.take(pid)?;
        Ok(bare)
    }

    fn bytes(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.0.id()));
        let text = text.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
        line.and_then(|line| line.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    fn sample(&self, name: &str, reader: Reader) -> io::Result<Tail> {
        let broker = &self.broker;
        let hot = topic(broker.port(), name, 1, &[])[0];
        let bare = match reader {
            Reader::Bare => Some(Bare::start(&self.files, &self.bound)?),
            Reader::Nobody | Reader::Consumer => None,
        };
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
            if reader == Reader::Consumer {
                let drain = Drain {
                    port: broker.port(),
                    targets: vec![self.cold],
                    batch: self.batch.clone(),
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
        if let Some(bare) = bare {
            bytes.store(bare.bytes(), Ordering::Relaxed);
        }
        println!(
            "{:<9} acknowledged p50 {:.3} p99 {:.3} ms, received p50 {:.3} p99 {:.3} ms, {:.2} GiB cold, \
         {:.0} % of a core",
            format!("{reader:?}"),
            ms(&tail.acknowledged, 0.5),
            ms(&tail.acknowledged, 0.99),
            ms(&tail.received, 0.5),
            ms(&tail.received, 0.99),
            gib(bytes.load(Ordering::Relaxed)),
            cpu * 100.0
        );
        Ok(tail)
    }
}
