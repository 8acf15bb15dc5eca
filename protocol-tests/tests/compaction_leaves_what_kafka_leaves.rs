//! One folder with compacted topics, written by Apache Kafka 4.1.2, compacted by both: what stays is
//! the same, batch by batch, and kafka-dump-log finds no fault in either.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use protocol_tests::process::run;
use protocol_tests::tools::{python, stock_tool};
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, Kind, only_barnabas};

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
fn wait_until_clean(broker: &Broker) {
    let mut client = Connection::open(broker);
    for topic in TOPICS {
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
    let mut all = Vec::new();
    for topic in TOPICS.iter().chain(DUMPED) {
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
        wait_until_clean(&broker);
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
    wait_until_clean(&ours);
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
