//! What a request costs in things that can be counted: system calls, copied bytes, allocations. No
//! clock is read, so that a busy machine changes nothing; the bounds are for the design of the data
//! path, which shows here first when something slips into it.

use std::io;

use protocol_tests::bench::measure::{count_calls, trace};
use protocol_tests::load::batch::Batch;
use protocol_tests::load::commits::Groups;
use protocol_tests::load::consume::{self, Drain};
use protocol_tests::load::frames::Target;
use protocol_tests::load::produce::{self, Load};
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, only_barnabas};

const BATCH: usize = 16 << 10;
const REQUESTS: u64 = 2048;
const FETCH: i32 = 1 << 20;

/// A tenth more than was counted when they were set.
const PRODUCE_ALLOCATIONS: f64 = 14.0;
const FETCH_ALLOCATIONS: f64 = 24.0;

fn load(broker: &Broker, batch: Batch, depth: usize) -> Load {
    let topic = Connection::open(broker).create_topic(&format!("depth-{depth}"), 1);
    let target = Target {
        topic,
        partition: 0,
    };
    let mut load = Load {
        port: broker.port(),
        targets: vec![target],
        batch,
        acks: 1,
        depth,
        requests: 64,
    };
    // The first requests open files and reserve what the later ones use.
    produce::run(&load).unwrap();
    load.requests = REQUESTS;
    load
}

fn drain(load: &Load, bytes: u64) -> Drain {
    Drain {
        port: load.port,
        targets: load.targets.clone(),
        batch: load.batch.clone(),
        fetch_bytes: FETCH,
        bytes,
    }
}

/// System calls of the broker for each of so many requests. Waiting is left out, with the read before
/// it that found nothing: how often that happens is up to the machine, not to the broker.
fn calls(broker: &Broker, requests: u64, work: impl FnOnce() -> io::Result<()>) -> f64 {
    let pid = broker.process().pid();
    let (counts, ()) = count_calls(pid, broker.folder(), work).unwrap();
    let of = |name| counts.get(name).copied().unwrap_or(0);
    let waits = of("epoll_wait");
    let in_vain = of("recvfrom").saturating_sub(requests).min(waits);
    let all = counts.values().sum::<u64>();
    let each = (all - waits - in_vain) as f64 / requests as f64;
    println!("{each:.2} system calls for each request: {counts:?}");
    each
}

#[test]
fn a_request_takes_few_system_calls() {
    if !only_barnabas() {
        return;
    }
    let broker = Broker::start();
    let alone = load(&broker, Batch::new(BATCH, 16), 1);
    let each = calls(&broker, REQUESTS, || produce::run(&alone).map(|_| ()));
    assert!(each <= 3.5, "{each:.2} for a Produce of 16 KiB");

    let pipelined = load(&broker, Batch::new(BATCH, 16), 8);
    let each = calls(&broker, REQUESTS, || produce::run(&pipelined).map(|_| ()));
    assert!(
        each <= 3.0,
        "{each:.2} for a Produce of 16 KiB among others"
    );

    let fetches = 256;
    let drain = drain(&alone, fetches << 20);
    let each = calls(&broker, fetches, || consume::run(&drain).map(|_| ()));
    // Near the log's end one more, which asks where that is.
    assert!(each <= 5.0, "{each:.2} for a Fetch of 1 MiB");
}

#[test]
fn a_commit_takes_few_system_calls() {
    if !only_barnabas() {
        return;
    }
    let broker = Broker::start();
    Connection::open(&broker).create_topic("t", 1);
    let mut one = Groups::join(broker.port(), 1, "t").unwrap();
    one.commit_at_once(64).unwrap();
    let alone = u32::try_from(REQUESTS).unwrap();
    let each = calls(&broker, REQUESTS, || one.commit_at_once(alone));
    assert!(each <= 3.2, "{each:.2} for a commit alone");
    one.leave().unwrap();

    let mut many = Groups::join(broker.port(), 256, "t").unwrap();
    many.commit_at_once(4).unwrap();
    let each = calls(&broker, 8 * 256, || many.commit_at_once(8));
    assert!(each <= 4.5, "{each:.2} for a commit among others");
}

/// Bytes that went through the process, and bytes that went around it by sendfile.
fn moved(broker: &Broker, work: impl FnOnce() -> io::Result<()>) -> (f64, f64) {
    const TRACED: &str = "trace=read,readv,pread64,preadv,preadv2,recvfrom,recvmsg,write,writev,\
                          pwrite64,pwritev,pwritev2,sendto,sendmsg,sendfile,splice";
    let options = ["-e", TRACED, "-s", "0"];
    let pid = broker.process().pid();
    let (text, ()) = trace(pid, broker.folder(), &options, work).unwrap();
    let (through, around) = bytes(&text);
    (through as f64, around as f64)
}

fn bytes(trace: &str) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in trace.lines() {
        let count = line.rsplit_once(" = ").map(|(_, result)| result);
        let count = count.and_then(|result| result.split(' ').next()?.parse::<u64>().ok());
        if line.contains("sendfile") || line.contains("splice") {
            sums.1 += count.unwrap_or(0);
        } else {
            sums.0 += count.unwrap_or(0);
        }
    }
    sums
}

#[test]
fn a_byte_is_copied_twice_on_its_way_in_and_never_on_its_way_out() {
    if !only_barnabas() {
        return;
    }
    let broker = Broker::start();
    let load = load(&broker, Batch::new(BATCH, 16), 4);
    let (through, around) = moved(&broker, || produce::run(&load).map(|_| ()));
    let each = through / (REQUESTS * BATCH as u64) as f64;
    println!("{each:.3} bytes through the process for each byte produced");
    // Once from the socket and once to the file, with the frames around.
    assert!((2.0..2.05).contains(&each) && around == 0.0, "{each:.3}");

    let wanted = 64 << 20;
    let drain = drain(&load, wanted);
    let (through, around) = moved(&broker, || consume::run(&drain).map(|_| ()));
    let (through, around) = (through / wanted as f64, around / wanted as f64);
    println!("{through:.4} bytes through the process for each byte fetched, {around:.3} around it");
    assert!(through < 0.001 && (1.0..1.05).contains(&around));
}

/// Allocations of a whole process that serves this, as jemalloc tells when it ends.
fn allocations(work: impl FnOnce(&Broker) -> io::Result<()>) -> f64 {
    let mut broker = Broker::prepare(&[]);
    broker.set_variable(
        "_RJEM_MALLOC_CONF",
        "stats_print:true,stats_print_opts:Jgablx",
    );
    broker.restart();
    work(&broker).unwrap();
    broker.stop();
    let story = broker.story();
    let line = story.lines().find(|line| line.starts_with("{\"jemalloc\""));
    let told: serde_json::Value = serde_json::from_str(line.expect("it tells")).unwrap();
    let merged = &told["jemalloc"]["stats.arenas"]["merged"];
    ["small", "large"]
        .map(|size| merged[size]["nrequests"].as_f64().expect("a number"))
        .iter()
        .sum()
}

#[test]
fn a_request_takes_few_allocations() {
    if !only_barnabas() {
        return;
    }
    let produced = |requests: u64| {
        allocations(|broker| {
            let mut load = load(broker, Batch::new(1024, 1), 16);
            load.requests = requests;
            produce::run(&load).map(|_| ())
        })
    };
    let each = (produced(20_000) - produced(2000)) / 18_000.0;
    println!("{each:.2} allocations for a Produce");
    assert!((1.0..PRODUCE_ALLOCATIONS).contains(&each), "{each:.2}");

    let fetched = |mib: u64| {
        allocations(|broker| {
            let load = load(broker, Batch::new(BATCH, 16), 4);
            produce::run(&load)?;
            let mut drain = drain(&load, mib << 20);
            drain.fetch_bytes = 64 << 10;
            consume::run(&drain).map(|_| ())
        })
    };
    let each = (fetched(640) - fetched(64)) / (576.0 * 16.0);
    println!("{each:.2} allocations for a Fetch");
    assert!((1.0..FETCH_ALLOCATIONS).contains(&each), "{each:.2}");
}

#[test]
fn bytes_of_a_trace_are_added() {
    let text = "\
1 recvfrom(7, \"\"..., 100, 0, NULL, NULL) = 100
1 pwritev(9, [{iov_base=\"\"..., iov_len=40}], 1, 0) = 40
2 sendfile(7, 9, [0] => [50], 100) = 50
2 recvfrom(7, \"\"..., 100, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
2 sendmsg(7, {msg_iov=[{iov_base=\"\"..., iov_len=3}]}, MSG_NOSIGNAL <unfinished ...>
2 <... sendmsg resumed>) = 3
";
    assert_eq!(bytes(text), (143, 50));
}
