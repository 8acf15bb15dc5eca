//! A node's beginning: the first start, and the start after it was killed with much unwritten.

use std::io;
use std::time::{Duration, Instant};

use super::{Cell, Figure, Goal, Life, Taken};
use crate::bench::contestant::Contestant;
use crate::bench::measure::{cpu_time, rest};
use crate::load::batch::Batch;
use crate::load::consume::{self, Drain};
use crate::load::frames::Target;
use crate::load::produce::{self, Load};
use crate::wire::Connection;

pub(super) const START: Cell = Cell {
    name: "start",
    title: "From the first start on an empty folder to a record produced and consumed",
    figures: &[Figure {
        key: "ms",
        title: "formatting included",
        unit: "ms",
        goal: Goal::most_and_tuned(25.0, 0.02),
    }],
    life: Life::Own,
    real_time: false,
    daily: 5,
    counts: false,
    others_work: false,
    without: &[],
    run: start,
};

pub(super) const CRASH: Cell = Cell {
    name: "crash",
    title: "Start after kill -9 with 4 GiB in 8 partitions: until the last record of each is fetched",
    figures: &[Figure {
        key: "s_per_gib",
        title: "",
        unit: "s per GiB",
        goal: Goal::ratios(1.3, 0.3),
    }],
    life: Life::Own,
    real_time: false,
    daily: 3,
    counts: false,
    others_work: true,
    without: &[],
    run: crash,
};

/// How long a question that found no broker waits before it is asked again.
const AGAIN: Duration = Duration::from_micros(500);
const LIMIT: Duration = Duration::from_secs(240);

fn start(contestant: &mut Contestant) -> io::Result<Taken> {
    let formatted = contestant.format()?;
    let began = contestant.launch()?;
    until_open(contestant.port, began)?;
    let (_, targets) = contestant.new_topic(1)?;
    let batch = Batch::new(200, 1);
    fetch_one(contestant.port, targets[0], batch)?;
    let elapsed = began.elapsed() + formatted;
    Ok(Taken {
        cpu: cpu_time(contestant.pid())?,
        figures: vec![
            ("ms", elapsed.as_secs_f64() * 1e3),
            ("format_ms", formatted.as_secs_f64() * 1e3),
        ],
    })
}

const PARTITIONS: i32 = 8;
const BYTES: u64 = 4 << 30;

fn crash(contestant: &mut Contestant) -> io::Result<Taken> {
    contestant.start()?;
    let (_, targets) = contestant.new_topic(PARTITIONS)?;
    let batch = Batch::new(256 << 10, 256);
    let requests = BYTES / (256 << 10) / targets.len() as u64;
    produce::run(&Load {
        port: contestant.port,
        targets: targets.clone(),
        batch: batch.clone(),
        acks: 1,
        depth: 2,
        requests,
    })?;
    contestant.kill();
    let began = contestant.launch()?;
    until_open(contestant.port, began)?;
    // An offset close to the end: each partition has one record more, before the rest.
    let records = requests * u64::from(batch.records);
    let last = i64::try_from(records).expect("few records") - i64::from(batch.records);
    for target in targets {
        until_fetched(contestant.port, target, last, began)?;
    }
    let gib = BYTES as f64 / f64::from(1 << 30);
    Ok(Taken {
        cpu: cpu_time(contestant.pid())?,
        figures: vec![
            ("s_per_gib", began.elapsed().as_secs_f64() / gib),
            (
                "cpu_s_per_gib",
                cpu_time(contestant.pid())?.as_secs_f64() / gib,
            ),
        ],
    })
}

/// Until somebody accepts on the port.
fn until_open(port: u16, began: Instant) -> io::Result<()> {
    while let Err(error) = std::net::TcpStream::connect(("127.0.0.1", port)) {
        if began.elapsed() > LIMIT {
            return Err(error);
        }
        rest(AGAIN);
    }
    Connection::open_port(port).api_versions();
    Ok(())
}

fn until_fetched(port: u16, target: Target, offset: i64, began: Instant) -> io::Result<()> {
    loop {
        match consume::fetch_once(port, target, offset) {
            Ok(bytes) if bytes > 0 => return Ok(()),
            Err(error) if began.elapsed() > LIMIT => return Err(error),
            Ok(_) | Err(_) => rest(AGAIN * 4),
        }
    }
}

fn fetch_one(port: u16, target: Target, batch: Batch) -> io::Result<()> {
    consume::run(&Drain {
        port,
        targets: vec![target],
        batch,
        fetch_bytes: 1 << 20,
        bytes: 1,
    })
    .map(|_| ())
}
