//! Acknowledgements that wait for the disk (`flush.messages=1`), beside one fdatasync of the same
//! disk at the same rate.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::machine::{median, ms, topic};
use crate::Broker;
use crate::bench::measure::{RealTime, rest};
use crate::load::batch::Batch;
use crate::load::paced::{self, Pace};
use crate::load::{latencies, note, wrong};

const SIZE: usize = 1024;
/// Requests a second of each producer, and how many in a sample.
const RATE: u32 = 40;
const REQUESTS: u64 = 400;
const WARM_UP: u64 = 20;
const ROUNDS: usize = 4;

/// Runs it; the ratio for one producer, and for so many at once.
pub fn run(producers: usize) -> io::Result<()> {
    let broker = Broker::start_with(&[]);
    let priority = RealTime::of(broker.process().pid());
    println!("real-time priority: {}", priority.granted);
    let mut ratios = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let bare = sync(&broker.folder().join(format!("bare-{round}")))?;
        let one = produce(&broker, &format!("one-{round}"), 1)?;
        let many = produce(&broker, &format!("many-{round}"), producers)?;
        let again = sync(&broker.folder().join(format!("again-{round}")))?;
        let base = f64::midpoint(ms(&bare, 0.99), ms(&again, 0.99));
        let of = |found: &Histogram<u64>| ms(found, 0.99) / base;
        println!(
            "round {round}: fdatasync p50 {:.2} p99 {:.2} and {:.2} ms, one producer p50 {:.2} p99 \
             {:.2} ms ({:.2} times), {producers} producers p50 {:.2} p99 {:.2} ms ({:.2} times)",
            ms(&bare, 0.5),
            ms(&bare, 0.99),
            ms(&again, 0.99),
            ms(&one, 0.5),
            ms(&one, 0.99),
            of(&one),
            ms(&many, 0.5),
            ms(&many, 0.99),
            of(&many),
        );
        ratios.0.push(of(&one));
        ratios.1.push(of(&many));
    }
    println!(
        "p99 of an acknowledgement over p99 of one fdatasync: {:.2} with one producer, {:.2} with \
         {producers} on one partition",
        median(&ratios.0),
        median(&ratios.1)
    );
    Ok(())
}

/// Appends and syncs as the broker must at least.
fn sync(path: &Path) -> io::Result<Histogram<u64>> {
    let file = OpenOptions::new().create_new(true).write(true).open(path)?;
    let content = [7; SIZE];
    let mut found = latencies();
    let gap = Duration::from_secs(1) / RATE;
    for number in 0..REQUESTS {
        let began = Instant::now();
        file.write_all_at(&content, number * SIZE as u64)?;
        file.sync_data()?;
        if number >= WARM_UP {
            note(&mut found, began.elapsed());
        }
        rest(gap.saturating_sub(began.elapsed()));
    }
    Ok(found)
}

fn produce(broker: &Broker, name: &str, producers: usize) -> io::Result<Histogram<u64>> {
    let target = topic(broker.port(), name, 1, &[("flush.messages", "1")])[0];
    let pace = Pace {
        port: broker.port(),
        target,
        batch: Batch::new(SIZE, 1),
        acks: -1,
        rate: RATE,
        requests: REQUESTS,
        warm_up: WARM_UP,
    };
    let mut all = latencies();
    thread::scope(|scope| {
        let running: Vec<_> = (0..producers)
            .map(|_| scope.spawn(|| paced::run(&pace)))
            .collect();
        for one in running {
            let one = one.join().unwrap_or_else(|_| Err(wrong("a panic")))?;
            all.add(one).map_err(wrong)?;
        }
        Ok(all)
    })
}
