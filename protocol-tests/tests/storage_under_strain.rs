//! What `scripts/storage` strains for minutes, in short: nothing is lost where a log is compacted
//! beside a busy one, and an acknowledgement that must wait for the disk does. What kills leave is in
//! `nothing_acknowledged_is_lost`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::records::Record;
use protocol_tests::bench::measure::{bytes_read, trace};
use protocol_tests::wire::{self, Connection, produce};
use protocol_tests::{Broker, Chance, only_barnabas, topics};

const LIMIT: Duration = Duration::from_secs(60);
const KEYS: usize = 300;
const BATCHES: usize = 250;
const RECORDS: usize = 20;

/// Requests of each kind whose way to the disk is watched.
const WATCHED: usize = 20;

/// A record whose value says its key and its number.
fn record(at: usize, key: usize, number: usize) -> Record {
    let value = format!("{key} {number} {}", "x".repeat(1000));
    Record {
        key: Some(Bytes::from(key.to_string())),
        ..wire::record(i32::try_from(at).unwrap(), value.as_bytes())
    }
}

fn send(client: &mut Connection, topic: &str, records: &[Record]) -> i64 {
    let mut request = produce(topic, -1, &[b""]);
    request.topic_data[0].partition_data[0].records = Some(wire::encode(records));
    let answer = client.ask(9, &request);
    let row = &answer.responses[0].partition_responses[0];
    assert_eq!(row.error_code, 0, "{row:?}");
    row.base_offset
}

/// Key and number of every record, by offset.
fn read(client: &mut Connection, topic: &str) -> BTreeMap<i64, (usize, usize)> {
    let end = client.end_offset(topic, 0);
    let mut all = BTreeMap::new();
    let mut offset = 0;
    while offset < end {
        let (found, next) = client.fetch_on(topic, offset);
        assert!(next > offset, "{topic} ends at {offset} and not at {end}");
        offset = next;
        for (offset, value) in found {
            let text = String::from_utf8_lossy(&value).into_owned();
            let mut words = text.split(' ').map(|word| word.parse().ok());
            let mut word = || words.next().flatten().expect("a number");
            all.insert(offset, (word(), word()));
        }
    }
    all
}

/// How far a topic is compacted, as the checkpoint says.
fn cleaned_to(broker: &Broker, topic: &str) -> i64 {
    checkpointed(broker, "cleaner-offset-checkpoint", topic)
}

/// What a checkpoint says of a topic.
fn checkpointed(broker: &Broker, name: &str, topic: &str) -> i64 {
    let text = fs::read_to_string(broker.data().join(name));
    let text = text.unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{topic} 0 ")));
    line.and_then(|offset| offset.parse().ok()).unwrap_or(-1)
}

/// Ends the busy one when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn compaction_beside_a_busy_partition_loses_nothing() {
    let broker = Broker::start_with(&[("log.cleaner.backoff.ms", "50")]);
    let mut client = Connection::open(&broker);
    let options = [
        ("cleanup.policy", "compact"),
        ("segment.bytes", "1048576"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ];
    topics::create(&mut client, "keyed", &options);
    topics::create(&mut client, "busy", &[]);
    let mut chance = Chance::announced("keys");
    let is_over = AtomicBool::new(false);
    let mut written = BTreeMap::new();
    let busy = thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let mut client = Connection::open(&broker);
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                let offset = send(&mut client, "busy", &[record(0, 0, count)]);
                assert_eq!(offset, i64::try_from(count).unwrap());
                count += 1;
            }
            count
        });
        // Also when an assertion fails, or the scope would wait for ever.
        let over = Over(&is_over);
        for batch in 0..BATCHES {
            let records: Vec<_> = (0..RECORDS)
                .map(|at| record(at, chance.below(KEYS), batch * RECORDS + at))
                .collect();
            let base = send(&mut client, "keyed", &records);
            for (offset, record) in (base..).zip(&records) {
                let key = record.key.as_ref().map(|key| String::from_utf8_lossy(key));
                let key: usize = key.unwrap().parse().unwrap();
                written.insert(offset, (key, usize::try_from(offset).unwrap()));
            }
        }
        // All but the last segment of some 900 records.
        let end = Instant::now() + LIMIT;
        let due = i64::try_from(BATCHES * RECORDS - 1100).unwrap();
        while cleaned_to(&broker, "keyed") < due {
            assert!(Instant::now() < end, "{}", broker.story());
            client.api_versions();
        }
        drop(over);
        busy.join().unwrap()
    });
    let left = read(&mut client, "keyed");
    let mut newest = BTreeMap::new();
    for (offset, (key, _)) in &written {
        newest.insert(*key, *offset);
    }
    for (key, offset) in &newest {
        assert!(left.contains_key(offset), "{offset} is the newest of {key}");
    }
    for (offset, found) in &left {
        assert_eq!(written.get(offset), Some(found), "{offset}");
    }
    let cleaned = cleaned_to(&broker, "keyed");
    assert!(
        left.range(..cleaned).count() <= KEYS,
        "of each key one is left"
    );
    let numbers: Vec<usize> = read(&mut client, "busy")
        .values()
        .map(|row| row.1)
        .collect();
    assert_eq!(numbers, Vec::from_iter(0..busy));
}

/// How often the log was made durable and an answer sent while records were produced one by one;
/// no answer may come between an append and its sync where `waits`.
fn watch(broker: &Broker, topic: &str, waits: bool) -> (usize, usize) {
    let options = ["-e", "trace=pwritev,fdatasync,sendmsg"];
    let pid = broker.process().pid();
    let mut client = Connection::open(broker);
    let work = || {
        for _ in 0..WATCHED {
            client.produce(topic, -1, &[b"v"]);
        }
        Ok(())
    };
    let (text, ()) = trace(pid, broker.folder(), &options, work).unwrap();
    let (mut syncs, mut answers, mut is_owed) = (0, 0, false);
    for line in text.lines() {
        if line.contains("pwritev(") {
            is_owed = true;
        } else if line.contains("fdatasync") && line.contains(" = 0") {
            (syncs, is_owed) = (syncs + 1, false);
        } else if line.contains("sendmsg(") {
            answers += 1;
            assert!(!(waits && is_owed), "an answer before its sync:\n{text}");
        }
    }
    (syncs, answers)
}

#[test]
fn an_acknowledgement_waits_for_the_disk_where_the_topic_asks_for_it() {
    if !only_barnabas() {
        return;
    }
    let broker = Broker::start_with(&[]);
    let mut client = Connection::open(&broker);
    topics::create(&mut client, "durable", &[("flush.messages", "1")]);
    topics::create(&mut client, "quick", &[]);
    // With its first batch the folder of a log is made durable.
    for topic in ["durable", "quick"] {
        client.produce(topic, -1, &[b"v"]);
    }
    let (syncs, answers) = watch(&broker, "durable", true);
    assert!(syncs >= WATCHED && answers >= WATCHED, "{syncs} {answers}");
    let (syncs, answers) = watch(&broker, "quick", false);
    assert!(syncs < WATCHED && answers >= WATCHED, "{syncs} {answers}");
}

#[test]
fn a_start_after_a_kill_reads_only_what_was_not_durable() {
    const MIB: u64 = 1 << 20;
    if !only_barnabas() {
        return;
    }
    let mut broker = Broker::start_with(&[("log.flush.offset.checkpoint.interval.ms", "300")]);
    let mut client = Connection::open(&broker);
    topics::create(&mut client, "flushed", &[("flush.ms", "100")]);
    let value = vec![b'v'; 1000];
    let values = [value.as_slice(); 20];
    for _ in 0..1200 {
        client.produce("flushed", -1, &values);
    }
    let written = client.end_offset("flushed", 0);
    let end = Instant::now() + LIMIT;
    while checkpointed(&broker, "recovery-point-offset-checkpoint", "flushed") < written {
        assert!(Instant::now() < end, "{}", broker.story());
        client.api_versions();
    }
    topics::set(&mut client, "flushed", "flush.ms", "9223372036854775807");
    for _ in 0..50 {
        client.produce("flushed", -1, &values);
    }
    broker.kill();
    broker.restart();
    let read = bytes_read(broker.process().pid()).unwrap();
    assert!(
        read > 1_000_000,
        "50 batches of 20 records were not durable: {read}"
    );
    assert!(read < 8 * MIB, "of some 24 MiB {read} bytes");
    let mut client = Connection::open(&broker);
    assert_eq!(client.end_offset("flushed", 0), written + 1000);
    let found = client.fetch("flushed", written - 1);
    assert!(found.iter().any(|(offset, _)| *offset == written - 1));
    assert_eq!(client.produce("flushed", -1, &[b"on"]), written + 1000);
}
