//! One folder with compacted topics, written by Apache Kafka 4.1.2, compacted by both: what stays is
//! the same, batch by batch, and kafka-dump-log finds no fault in either. Another is of formats before
//! 0.11, written by Kafka's own classes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{GroupId, OffsetFetchRequest};
use kafka_protocol::protocol::StrBytes;
use protocol_tests::process::run;
use protocol_tests::tools::{java_source_alone, kcat, python, stock, stock_tool};
use protocol_tests::wire::{self, Connection};
use protocol_tests::{Broker, Kind, only_barnabas, topics};

const LIMIT: Duration = Duration::from_secs(120);

const TOPICS: &[&str] = &[
    "compacted-none",
    "compacted-gzip",
    "compacted-snappy",
    "compacted-lz4",
    "compacted-zstd",
    "compacted-transactions",
];

/// Topics of which kafka-dump-log looks at every file.
const DUMPED: &[&str] = &["trimmed", "__consumer_offsets"];

const SETTINGS: &[(&str, &str)] = &[
    ("transaction.state.log.num.partitions", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("log.cleaner.backoff.ms", "50"),
    ("log.message.timestamp.after.max.ms", "9223372036854775807"),
];

fn copy(from: &Path, to: &Path) {
    let mut cp = Command::new("cp");
    cp.arg("-a").arg(from).arg(to);
    run("cp", &mut cp, b"", Duration::from_secs(60)).expect_success();
}

/// A broker of a kind on a copy of a folder.
fn on_copy(kind: Kind, folder: &Path, cleans: bool) -> Broker {
    let mut broker = Broker::prepare(SETTINGS);
    broker.speak_like_kafka();
    broker.switch_to(kind);
    broker.set("log.cleaner.enable", if cleans { "true" } else { "false" });
    copy(folder, &broker.data());
    broker
}

fn checkpoint(broker: &Broker, topic: &str) -> Option<i64> {
    let path = broker.data().join("cleaner-offset-checkpoint");
    let text = std::fs::read_to_string(path).ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{topic} ")))?;
    line.split(' ').nth(2)?.parse().ok()
}

/// Waits until every topic is compacted up to its active segment.
fn wait_until_clean(broker: &Broker, topics: &[&str]) {
    let mut client = Connection::open(broker);
    for topic in topics {
        let active = bases(&broker.data().join(format!("{topic}-0")))
            .pop()
            .unwrap_or(0);
        let end = Instant::now() + LIMIT;
        while checkpoint(broker, topic) != Some(active) {
            assert!(
                Instant::now() < end,
                "{topic} is compacted up to {:?} of {active}\n{}",
                checkpoint(broker, topic),
                broker.story()
            );
            client.api_versions();
        }
    }
}

/// The base offsets of the segments in a folder.
fn bases(folder: &Path) -> Vec<i64> {
    let mut bases: Vec<i64> = files(folder, ".log")
        .iter()
        .filter_map(|path| path.file_stem()?.to_str()?.parse().ok())
        .collect();
    bases.sort_unstable();
    bases
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .collect();
    found.sort();
    found
}

/// What kafka-dump-log says of every file of the topics; it must find no fault.
fn dump(broker: &Broker) -> String {
    dump_of(broker, &[TOPICS, DUMPED].concat())
}

fn dump_of(broker: &Broker, topics: &[&str]) -> String {
    let mut all = Vec::new();
    for topic in topics {
        let folder = broker.data().join(format!("{topic}-0"));
        for ending in [".log", ".index", ".timeindex", ".txnindex", ".snapshot"] {
            all.extend(files(&folder, ending));
        }
    }
    let names: Vec<&str> = all.iter().filter_map(|path| path.to_str()).collect();
    let arguments = ["--print-data-log", "--files", &names.join(",")];
    let dumped = stock_tool("kafka-dump-log", &arguments, b"").expect_success();
    // Gaps are what compaction leaves.
    let gap = |line: &str| {
        line.starts_with("Non-consecutive offsets in ") || line.contains(" is followed by ")
    };
    for line in dumped.stderr.lines() {
        assert!(gap(line), "{line}");
    }
    let text = dumped.text();
    for fault in [
        "Mismatches in",
        "Found timestamp mismatch",
        "Found out of order",
        "not found in the log",
        "Could not",
        "isvalid: false",
    ] {
        assert!(!text.contains(fault), "{fault}: {text}");
    }
    text
}

/// The lines without what differs from run to run: folders, times of the day, compressed sizes and
/// what follows from them.
fn comparable(text: &str) -> String {
    let hidden = ["position:", "size:", "crc:", "deleteHorizonMs:"];
    let is_index = |line: &str| line.starts_with("offset:") && line.contains("position:");
    let mut out = String::new();
    for line in text.lines().filter(|line| !is_index(line)) {
        if let Some(path) = line.strip_prefix("Dumping ") {
            let name = path.rsplit('/').take(2).collect::<Vec<_>>();
            out += &format!("Dumping {} {}\n", name[1], name[0]);
            continue;
        }
        let mut words = line.split(' ');
        while let Some(word) = words.next() {
            out += word;
            out.push(' ');
            if hidden.contains(&word) {
                let value = words.next().unwrap_or_default();
                // Whether there is a horizon counts, not which.
                out += if value.contains("OptionalLong.empty") {
                    "none "
                } else {
                    "some "
                };
            }
        }
        out.push('\n');
    }
    out
}

/// Only of the `.log` files of compacted topics: indexes of compressed batches lie where these do.
fn logs_of(text: &str) -> String {
    let mut out = String::new();
    let mut is_log = false;
    for line in comparable(text).lines() {
        if line.starts_with("Dumping ") {
            let is_wanted = line.ends_with(".log") || line.ends_with(".txnindex");
            is_log = is_wanted && line.starts_with("Dumping compacted-");
        }
        if is_log {
            out += line;
            out.push('\n');
        }
    }
    out
}

fn assert_same(ours: &str, theirs: &str) {
    for (number, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(a, b, "line {number}: ours above");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

/// Both compact a copy of a folder; gives the folders.
fn both_compact(folder: &Path) -> (Broker, Broker) {
    let mut pair = [Kind::Barnabas, Kind::ApacheKafka].map(|kind| {
        let mut broker = on_copy(kind, folder, true);
        // Everything is dirty again.
        let _ = std::fs::remove_file(broker.data().join("cleaner-offset-checkpoint"));
        broker.restart();
        wait_until_clean(&broker, TOPICS);
        broker
    });
    for broker in &mut pair {
        broker.stop();
    }
    let [ours, theirs] = pair;
    let (our_text, their_text) = (dump(&ours), dump(&theirs));
    assert_same(&logs_of(&our_text), &logs_of(&their_text));
    (ours, theirs)
}

/// Kinds of logs of old formats that any broker reads, some of those that `OldFormats.java` writes:
/// the others are in `src/log/testdata`, as Kafka left them.
const OLD: &[&str] = &[
    "compacted-gaps0",
    "compacted-gaps1",
    "compacted-inner-magic",
    "compacted-magic0-lz4",
    "compacted-magic0-none",
    "compacted-magic1-appended-snappy",
    "compacted-magic1-gzip",
    "compacted-mixed",
    "compacted-unusual",
];

/// Of these, what a stock consumer reads. It insists on one format in a wrapper.
const CONSUMED: &[&str] = &[
    "compacted-magic0-lz4",
    "compacted-magic1-appended-snappy",
    "compacted-magic1-gzip",
    "compacted-mixed",
];

/// Kinds that end the compaction of their log in Kafka and in our broker.
const UNREADABLE: &[&str] = &[
    "bad-codec",
    "bad-cut",
    "bad-gzip",
    "bad-nested",
    "bad-time",
    "bad-value-size",
];

/// A group with an offset in the first of the old ones.
const GROUP: &str = "old";

/// The time of the first record of the old formats.
const OLD_START: i64 = 1_600_000_000_000;

/// A folder of Kafka's with the topics of old formats, its segments exchanged for what is written
/// here.
fn old_folder() -> Broker {
    let mut origin = Broker::prepare(SETTINGS);
    origin.speak_like_kafka();
    origin.switch_to(Kind::ApacheKafka);
    origin.set("log.cleaner.enable", "false");
    origin.restart();
    let mut client = Connection::open(&origin);
    let options = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("index.interval.bytes", "100"),
        ("file.delete.delay.ms", "100"),
    ];
    for topic in OLD.iter().chain(UNREADABLE) {
        let made = client.ask(7, &topics::request(topic, 1, &options));
        assert_eq!(made.topics[0].error_code, 0, "{topic}");
        let end = Instant::now() + LIMIT;
        while !origin.data().join(format!("{topic}-0")).exists() {
            assert!(Instant::now() < end, "{topic} is not there");
            client.api_versions();
        }
    }
    let reset = ["--group", GROUP, "--topic", OLD[0], "--reset-offsets"];
    let reset = [&reset[..], &["--to-earliest", "--execute"]].concat();
    stock(&origin, "kafka-consumer-groups", &reset);
    origin.stop();
    age_offsets(&origin);
    let written = origin.folder().join("written");
    java_source_alone(
        "OldFormats.java",
        &[shown(&written), &OLD_START.to_string()],
    );
    for topic in OLD.iter().chain(UNREADABLE) {
        let to = origin.data().join(format!("{topic}-0"));
        for file in files(&to, "").iter().filter(|file| is_of_log(file)) {
            std::fs::remove_file(file).unwrap();
        }
        let kind = topic.trim_start_matches("compacted-");
        for file in files(&written.join(format!("{kind}-0")), "") {
            std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
    // They know of offsets that are no more.
    for checkpoint in files(&origin.data(), "-checkpoint") {
        std::fs::remove_file(checkpoint).unwrap();
    }
    origin
}

/// What the group committed is of an old format, too.
fn age_offsets(broker: &Broker) {
    let folders = files(&broker.data(), "").into_iter();
    let folders = folders.filter(|path| shown(path).contains("/__consumer_offsets-"));
    let logs = folders.flat_map(|folder| files(&folder, ".log"));
    let written = |log: &PathBuf| std::fs::metadata(log).unwrap().len() > 0;
    let logs: Vec<PathBuf> = logs.filter(written).collect();
    assert!(!logs.is_empty());
    let names: Vec<&str> = logs.iter().map(|log| shown(log)).collect();
    java_source_alone("OldFormats.java", &[&["convert"], &names[..]].concat());
    for log in logs {
        for index in ["index", "timeindex"] {
            std::fs::remove_file(log.with_extension(index)).unwrap();
        }
    }
}

/// What the group has committed, once its coordinator knows.
fn committed(client: &mut Connection) -> i64 {
    let topic = OffsetFetchRequestTopic::default()
        .with_name(wire::topic_name(OLD[0]))
        .with_partition_indexes(vec![0]);
    let group = GroupId(StrBytes::from_static_str(GROUP));
    let request = OffsetFetchRequest::default()
        .with_group_id(group)
        .with_topics(Some(vec![topic]));
    let until = Instant::now() + LIMIT;
    loop {
        let answer = client.ask(7, &request);
        if answer.error_code == 0 {
            return answer.topics[0].partitions[0].committed_offset;
        }
        assert!(Instant::now() < until, "{answer:?}");
    }
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn is_of_log(file: &Path) -> bool {
    !file.ends_with("partition.metadata")
}

/// What clients see of the old formats.
struct Seen {
    /// The bytes from each offset on.
    bytes: Vec<String>,
    /// The records, and the offsets by time.
    records: Vec<String>,
}

/// The log's end, once somebody leads it.
fn end_of(client: &mut Connection, topic: &str) -> i64 {
    let until = Instant::now() + LIMIT;
    loop {
        let answer = client.ask(7, &wire::list_offsets(topic, 0, -1));
        let row = &answer.topics[0].partitions[0];
        if row.error_code == 0 {
            return row.offset;
        }
        assert!(Instant::now() < until, "{topic}: {row:?}");
    }
}

fn seen(broker: &Broker) -> Seen {
    let mut client = Connection::open(broker);
    let (mut bytes, mut records) = (Vec::new(), Vec::new());
    for topic in OLD {
        for offset in 0..end_of(&mut client, topic) {
            let answer = client.ask(12, &wire::fetch(topic, offset));
            let partition = &answer.responses[0].partitions[0];
            assert_eq!(partition.error_code, 0, "{topic} {offset}");
            let fetched = partition.records.clone().unwrap_or_default();
            bytes.push(format!("{topic} {offset} {fetched:?}"));
        }
        let times = (-1..30).map(|step| OLD_START + step * 3500);
        for time in times.chain([0, OLD_START + 600_000, -3, -2]) {
            let answer = client.ask(7, &wire::list_offsets(topic, 0, time));
            let row = &answer.topics[0].partitions[0];
            assert_eq!(row.error_code, 0, "{topic} {time}");
            let found = (row.offset, row.timestamp, row.leader_epoch);
            records.push(format!("{topic} at {time}: {found:?}"));
        }
        if !CONSUMED.contains(topic) {
            continue;
        }
        let format = ["-f", "%o %T %k=%s\n", "-Z", "-e", "-q"];
        let consumed = kcat(broker, &[&["-C", "-t", topic], &format[..]].concat());
        records.push(format!("{topic}\n{}", String::from_utf8_lossy(&consumed)));
    }
    Seen { bytes, records }
}

/// Which logs are told to be compacted no more, each once.
fn given_up(broker: &Broker) -> Vec<String> {
    let words = match broker.kind() {
        Kind::Barnabas => "a log is not compacted any more",
        Kind::ApacheKafka => "as uncleanable",
    };
    let lines = broker.process().lines();
    let told = lines.iter().filter(|line| line.contains(words));
    let topic = |line: &String| {
        let named = UNREADABLE
            .iter()
            .find(|topic| line.contains(&format!("{topic}-0")));
        (*named.unwrap_or_else(|| panic!("{line}"))).to_owned()
    };
    let mut topics: Vec<String> = told.map(topic).collect();
    topics.sort();
    topics
}

#[test]
fn old_formats_are_served_and_compacted_the_same() {
    if !only_barnabas() {
        return;
    }
    let origin = old_folder();
    let [ours, theirs] = [Kind::Barnabas, Kind::ApacheKafka].map(|kind| {
        let mut broker = on_copy(kind, &origin.data(), false);
        broker.restart();
        assert_eq!(committed(&mut Connection::open(&broker)), 0, "{kind:?}");
        let before = seen(&broker);
        broker.stop();
        broker.set("log.cleaner.enable", "true");
        broker.restart();
        wait_until_clean(&broker, OLD);
        let mut client = Connection::open(&broker);
        while given_up(&broker).len() < UNREADABLE.len() {
            client.api_versions();
        }
        assert_eq!(given_up(&broker), UNREADABLE, "{kind:?}");
        let after = seen(&broker);
        broker.stop();
        // What is compressed anew need not have the same bytes.
        (broker, [before.bytes, before.records, after.records])
    });
    for (ours, theirs) in ours.1.iter().zip(&theirs.1) {
        assert_same(&ours.join("\n"), &theirs.join("\n"));
    }
    let text = |broker: &Broker| logs_of(&dump_of(broker, OLD));
    assert_same(&text(&ours.0), &text(&theirs.0));
}

#[test]
fn what_stays_is_the_same() {
    if !only_barnabas() {
        return;
    }
    let mut origin = Broker::prepare(SETTINGS);
    origin.speak_like_kafka();
    origin.switch_to(Kind::ApacheKafka);
    origin.set("log.cleaner.enable", "false");
    origin.restart();
    python("compacted.py", &origin, &["write"]);
    let newest = python("compacted.py", &origin, &["read"]);
    origin.stop();
    // Tombstones and markers get their horizon, then they go, then what is left is put together.
    let (mut ours, mut theirs) = both_compact(&origin.data());
    for _ in 0..2 {
        (ours, theirs) = both_compact(&theirs.data());
    }
    drop(theirs);
    // We serve what is left, and so does Kafka after us.
    for kind in [Kind::Barnabas, Kind::ApacheKafka] {
        ours.switch_to(kind);
        ours.restart();
        assert_eq!(python("compacted.py", &ours, &["read"]), newest);
        ours.stop();
    }
    ours.switch_to(Kind::Barnabas);
    ours.restart();
    goes_on(ours);
}

/// Appends to the folder, trims and commits; everything is there after another compaction, after a
/// stop, and for Kafka.
fn goes_on(mut ours: Broker) {
    python("compacted.py", &ours, &["more"]);
    let newest = python("compacted.py", &ours, &["read"]);
    wait_until_clean(&ours, TOPICS);
    assert_eq!(python("compacted.py", &ours, &["read"]), newest);
    ours.stop();
    dump(&ours);
    for kind in [Kind::Barnabas, Kind::ApacheKafka] {
        ours.switch_to(kind);
        ours.restart();
        assert_eq!(python("compacted.py", &ours, &["read"]), newest);
        ours.stop();
        dump(&ours);
    }
}
