//! Deletion by age and by size, changed while the broker runs, as clients see it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use kafka_protocol::records::Record;
use protocol_tests::Broker;
use protocol_tests::topics::{create, set};
use protocol_tests::wire::{self, Connection, fetch, list_offsets, produce};

const HOUR: i64 = 3_600_000;
const LIMIT: Duration = Duration::from_secs(30);
const OFFSET_OUT_OF_RANGE: i16 = 1;
const EARLIEST: i64 = -2;

fn start() -> Broker {
    Broker::start_with(&[
        ("log.retention.check.interval.ms", "100"),
        ("log.initial.task.delay.ms", "100"),
        ("log.message.timestamp.after.max.ms", "9223372036854775807"),
    ])
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// One record of a size and a time; -1 has none.
fn record(timestamp: i64, size: usize) -> Bytes {
    wire::encode(&[Record {
        timestamp,
        ..wire::record(0, &vec![7; size])
    }])
}

fn send(client: &mut Connection, topic: &str, records: Bytes) -> i64 {
    let mut request = produce(topic, -1, &[b""]);
    request.topic_data[0].partition_data[0].records = Some(records);
    let answer = client.ask(9, &request);
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, 0, "{partition:?}");
    partition.base_offset
}

fn earliest(client: &mut Connection, topic: &str) -> i64 {
    let answer = client.ask(7, &list_offsets(topic, 0, EARLIEST));
    answer.topics[0].partitions[0].offset
}

/// Asks until the log begins at an offset.
#[track_caller]
fn begins_at(client: &mut Connection, topic: &str, offset: i64) {
    let end = Instant::now() + LIMIT;
    loop {
        let found = earliest(client, topic);
        if found == offset {
            return;
        }
        assert!(
            Instant::now() < end,
            "{topic} begins at {found}, not {offset}"
        );
    }
}

#[test]
fn old_records_go_when_they_are_too_old_and_the_log_goes_on() {
    let broker = start();
    let mut client = Connection::open(&broker);
    let rolls = ("segment.ms", "1000");
    create(&mut client, "aged", &[rolls, ("retention.ms", "-1")]);
    create(&mut client, "future", &[rolls, ("retention.ms", "1")]);
    create(&mut client, "timeless", &[rolls, ("retention.ms", "-1")]);
    // Of the future nothing goes, whatever the limit, and nothing that stands behind it.
    send(&mut client, "future", record(now_ms() + 10 * HOUR, 10));
    send(&mut client, "future", record(now_ms() + 11 * HOUR, 10));
    send(&mut client, "timeless", record(-1, 10));
    for n in 0..5 {
        let at = now_ms() - 10 * HOUR + n * HOUR;
        assert_eq!(send(&mut client, "aged", record(at, 10)), n);
    }
    assert_eq!(earliest(&mut client, "aged"), 0);
    // Three are older than seven and a half hours; the segments of the others stay.
    set(
        &mut client,
        "aged",
        "retention.ms",
        &(15 * HOUR / 2).to_string(),
    );
    begins_at(&mut client, "aged", 3);
    let answer = client.ask(12, &fetch("aged", 0));
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, OFFSET_OUT_OF_RANGE);
    assert_eq!(client.fetch("aged", 3).len(), 1);
    // The active segment goes too, and the next offset is the next.
    set(&mut client, "aged", "retention.ms", &HOUR.to_string());
    begins_at(&mut client, "aged", 5);
    assert_eq!(client.end_offset("aged", 0), 5);
    assert_eq!(send(&mut client, "aged", record(now_ms(), 10)), 5);
    assert_eq!(earliest(&mut client, "aged"), 5);
    // A record without a time is as old as its file.
    set(&mut client, "timeless", "retention.ms", &HOUR.to_string());
    set(&mut client, "aged", "retention.ms", "1");
    begins_at(&mut client, "aged", 6);
    assert_eq!(earliest(&mut client, "timeless"), 0);
    set(&mut client, "timeless", "retention.ms", "1");
    begins_at(&mut client, "timeless", 1);
    assert_eq!(earliest(&mut client, "future"), 0);
}

#[test]
fn a_log_that_grows_too_large_loses_its_oldest_segments() {
    let broker = start();
    let mut client = Connection::open(&broker);
    let size = ("retention.bytes", "250000");
    create(&mut client, "sized", &[("segment.ms", "1000"), size]);
    let start = now_ms();
    for n in 0..10 {
        send(&mut client, "sized", record(start + n * 2000, 100_000));
    }
    // A segment goes only if what is left is not below the limit.
    begins_at(&mut client, "sized", 7);
    set(&mut client, "sized", "retention.bytes", "0");
    begins_at(&mut client, "sized", 10);
    assert_eq!(send(&mut client, "sized", record(start, 10)), 10);
}

#[test]
fn what_was_deleted_stays_deleted_after_a_kill() {
    let mut broker = start();
    let mut client = Connection::open(&broker);
    create(&mut client, "killed", &[("segment.ms", "1000")]);
    for n in 0..4 {
        send(
            &mut client,
            "killed",
            record(now_ms() - 10 * HOUR + n * HOUR, 10),
        );
    }
    set(
        &mut client,
        "killed",
        "retention.ms",
        &(17 * HOUR / 2).to_string(),
    );
    begins_at(&mut client, "killed", 2);
    broker.kill();
    broker.restart();
    let mut client = Connection::open(&broker);
    assert_eq!(client.end_offset("killed", 0), 4);
    begins_at(&mut client, "killed", 2);
}
