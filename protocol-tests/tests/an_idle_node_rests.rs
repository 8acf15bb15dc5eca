//! What a node does that nobody uses: its system calls, counted by strace.

use std::process::Command;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use protocol_tests::process::Running;
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, only_barnabas};

const CONNECTIONS: usize = 1000;
const PARTITIONS: i32 = 1000;

/// Long enough for five heartbeats.
const WATCHED: &str = "10.5";

/// System calls of a broker while it is watched.
fn calls(broker: &Broker) -> u64 {
    let pid = broker.process().pid().to_string();
    let counts = broker.folder().join("strace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-c", "-o"])
        .arg(&counts)
        .args(["-p", &pid]);
    let strace = Running::start("strace", &mut strace);
    let limit = Duration::from_secs(20);
    strace.wait_for_line(0, |line| line.contains("attached"), limit);
    // A program that ends by itself after that time: nothing here sleeps.
    let watch = Running::start("sleep", Command::new("sleep").arg(WATCHED));
    watch.wait_exit(limit);
    strace.signal(Signal::SIGINT);
    strace.wait_exit(limit);
    let table = std::fs::read_to_string(&counts).unwrap();
    println!("{table}");
    let total = table
        .lines()
        .find(|line| line.trim_end().ends_with("total"));
    let calls = total.and_then(|line| line.split_whitespace().nth(3));
    calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
}

#[test]
fn partitions_and_connections_add_no_system_calls() {
    if !only_barnabas() {
        return;
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(100_000), hard).unwrap();

    // The one look at partitions in which something happened falls into the first watch.
    let settings = [("log.initial.task.delay.ms", "5000")];
    let empty = Broker::start_with(&settings);
    let full = Broker::start_with(&settings);
    let mut client = Connection::open(&full);
    for part in 0..10 {
        client.create_topic(&format!("many-{part}"), PARTITIONS / 10);
    }
    client.produce("many-0", 1, &[b"one"]);
    let mut idle: Vec<Connection> = (0..CONNECTIONS)
        .map(|_| {
            let mut connection = Connection::open(&full);
            connection.api_versions();
            connection
        })
        .collect();
    // What the start and the topic leave to be done in the background is over with the first look.
    calls(&full);
    let (of_empty, of_full) = (calls(&empty), calls(&full));
    println!("system calls in {WATCHED} seconds: {of_empty} empty, {of_full} full");
    assert!(of_empty > 0);
    // One heartbeat more may fall into the time, which is four or five calls.
    assert!(of_full * 10 <= of_empty * 11 + 50 && of_empty < 60);
    for connection in &mut idle {
        connection.api_versions();
    }
}
