//! What a broker tells of itself at the address that `--metrics` names.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use protocol_tests::tools::{kcat_with, python_at};
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, only_barnabas, topics};

const LIMIT: Duration = Duration::from_secs(60);

fn start(settings: &[(&str, &str)]) -> (Broker, u16) {
    let mut broker = Broker::prepare(settings);
    let port = protocol_tests::broker::free_port();
    broker.set_argument(&format!("--metrics=127.0.0.1:{port}"));
    broker.restart();
    (broker, port)
}

/// Every sample as Prometheus' own library reads it.
fn samples(port: u16) -> BTreeMap<String, f64> {
    let url = format!("http://127.0.0.1:{port}/metrics");
    let client = python_at("metrics.py", &url, &[]);
    let exit = client.wait_exit(LIMIT);
    assert!(exit.success(), "{}", client.story());
    let lines = client.lines().into_iter();
    let parsed = lines.map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let [_kind, name, labels, value] = words[..] else {
            panic!("four words: {line}");
        };
        (format!("{name} {labels}"), value.parse().unwrap())
    });
    parsed.collect()
}

#[test]
fn compaction_tells_of_its_last_round() {
    if !only_barnabas() {
        return;
    }
    let (broker, port) = start(&[("log.cleaner.backoff.ms", "50")]);
    let before = samples(port);
    let since = "kafka_log_logcleanermanager_time_since_last_run_ms -";
    assert_eq!(before["kafka_log_logcleaner_max_clean_time_secs -"], 0.0);
    let uncleanable = format!(
        "kafka_log_logcleanermanager_uncleanable_partitions_count logDirectory={}",
        broker.data().display()
    );
    assert_eq!(before[&uncleanable], 0.0, "{before:?}");

    let options = [
        ("cleanup.policy", "compact"),
        ("segment.bytes", "1048576"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ];
    topics::create(&mut Connection::open(&broker), "keyed", &options);
    let lines: String = (0..3000)
        .map(|number| format!("{}:{}\n", number % 10, "x".repeat(1000)))
        .collect();
    kcat_with(&broker, &["-P", "-t", "keyed", "-K:"], lines.as_bytes());

    let started = Instant::now();
    let after = loop {
        let after = samples(port);
        if after["kafka_utils_throttler_cleaner_io_total -"] > 0.0
            && after["kafka_log_logcleaner_max_clean_time_secs -"] > 0.0
        {
            break after;
        }
        assert!(started.elapsed() < LIMIT, "{after:?}");
    };
    assert!(after[since] >= 0.0, "{after:?}");
    let recopied = after["kafka_log_logcleaner_cleaner_recopy_percent -"];
    assert!((0.0..50.0).contains(&recopied), "{after:?}");
    assert!(after["kafka_log_logcleanermanager_max_dirty_percent -"] > 50.0);
    assert!(after["kafka_log_logcleaner_max_buffer_utilization_percent -"] <= 100.0);
}

#[test]
fn who_asks_wrongly_is_told_and_harms_nobody() {
    if !only_barnabas() {
        return;
    }
    let (broker, port) = start(&[]);
    let ask = |bytes: &[u8]| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        // It may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(b"DELETE /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(b"\x00\x00\x00\x10\x00\x12\r\n\r\n").starts_with("HTTP/1.1 400 "));
    ask(&vec![b'x'; 1 << 20]);
    ask(b"");
    // Those who say nothing hold no place for ever, and one is left for who speaks.
    let _silent: Vec<_> = (0..7)
        .map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap())
        .collect();
    assert!(ask(b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert!(broker.is_alive());
    assert!(broker.story().contains("something else than a GET"));
}
