//! Groups in the hands of programs that people run as they come: kcat's balanced consumer, Kafka's
//! verifiable clients, a Kafka Streams application and Kafka Connect.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use protocol_tests::Broker;
use protocol_tests::process::Running;
use protocol_tests::tools::{
    connect_standalone, java_source_beside, kcat, kcat_with, stock, stock_beside,
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// The consumer protocol asks for no less than five seconds; some wait for a second member.
const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "3"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.consumer.min.heartbeat.interval.ms", "500"),
    ("group.consumer.heartbeat.interval.ms", "500"),
];

fn numbers(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

/// The same with the numbers as keys too, which spreads them over the partitions.
fn produce_keyed(broker: &Broker, range: std::ops::Range<usize>) {
    let lines: String = range.map(|number| format!("{number}:{number}\n")).collect();
    kcat_with(broker, &["-P", "-t", "t", "-K:"], lines.as_bytes());
}

#[test]
fn members_of_kcat_share_a_topic_and_go_on_where_they_were() {
    let broker = Broker::start_with(SETTINGS);
    produce_keyed(&broker, 0..300);
    let member = || {
        let mut command = Command::new("kcat");
        command.args(["-b", &broker.bootstrap(), "-G", "g", "-X"]);
        command.args(["auto.offset.reset=earliest", "-u", "-f", "%p %o %s\n", "t"]);
        Running::start("kcat", &mut command)
    };
    let first = member();
    let second = member();
    let got = |members: &[&Running], count: usize| {
        let end = Instant::now() + LIMIT;
        loop {
            let lines: Vec<_> = members.iter().flat_map(|member| read_by(member)).collect();
            let known: BTreeSet<_> = lines.iter().map(|(_, value)| *value).collect();
            if known.len() >= count {
                return lines;
            }
            assert!(Instant::now() < end, "{}", members[0].story());
            // It takes its time, so that this does not ask all the time.
            kcat(&broker, &["-L"]);
        }
    };
    got(&[&first, &second], 300);
    // One leaves in order, and the other goes on with all of it.
    first.signal(Signal::SIGTERM);
    first.wait_exit(LIMIT);
    produce_keyed(&broker, 300..600);
    let all = got(&[&first, &second], 600);
    let partitions: BTreeSet<_> = read_by(&second)
        .into_iter()
        .filter(|(_, value)| *value >= 300)
        .map(|(partition, _)| partition)
        .collect();
    second.signal(Signal::SIGTERM);
    second.wait_exit(LIMIT);
    assert_eq!(all.len(), 600, "each once: nobody was killed");
    assert_eq!(
        partitions.len(),
        3,
        "all partitions are read by the one that is left"
    );
    // What was committed as it left is where the next one begins.
    produce_keyed(&broker, 600..601);
    let third = kcat(
        &broker,
        &["-G", "g", "-c", "1", "-u", "-q", "-f", "%s\n", "t"],
    );
    assert_eq!(String::from_utf8_lossy(&third), "600\n");
}

/// What a member of kcat has read: partitions and numbers.
fn read_by(member: &Running) -> Vec<(i32, usize)> {
    let parse = |line: String| {
        let mut words = line.split(' ');
        let (partition, _, value) = (words.next()?, words.next()?, words.next()?);
        Some((partition.parse().ok()?, value.parse().ok()?))
    };
    member.lines().into_iter().filter_map(parse).collect()
}

#[test]
fn verifiable_clients_verify() {
    let broker = Broker::start_with(SETTINGS);
    let bootstrap = broker.bootstrap();
    kcat_with(&broker, &["-P", "-t", "t"], b"first\n");
    let consumer = |protocol: &str| {
        let server = ["--bootstrap-server", &bootstrap, "--topic", "t"];
        let group = ["--group-id", protocol, "--group-protocol", protocol];
        let reset = ["--reset-policy", "latest"];
        stock_beside(
            "kafka-verifiable-consumer",
            &[&server[..], &group, &reset].concat(),
        )
    };
    let groups: Vec<[Running; 2]> = ["classic", "consumer"]
        .map(|protocol| [consumer(protocol), consumer(protocol)])
        .into();
    for member in groups.iter().flatten() {
        member.wait_for_line(0, |line| line.contains("partitions_assigned"), LIMIT);
    }
    for group in &groups {
        settle(&broker, group, 3);
    }
    let arguments = [
        "--bootstrap-server",
        &bootstrap,
        "--topic",
        "t",
        "--max-messages",
        "1000",
        // Keys spread them over the partitions.
        "--repeating-keys",
        "100",
    ];
    let producer = stock_beside("kafka-verifiable-producer", &arguments);
    let ends = |line: &str| line.contains("tool_data");
    let told = event(&producer.wait_for_line(0, ends, LIMIT));
    assert_eq!(
        (&told["sent"], &told["acked"]),
        (&1000.into(), &1000.into())
    );
    assert!(producer.wait_exit(LIMIT).success());
    for group in groups {
        let end = Instant::now() + LIMIT;
        while group.iter().map(consumed).sum::<i64>() < 1000 {
            assert!(Instant::now() < end, "{}", group[0].story());
            kcat(&broker, &["-L"]);
        }
        for member in &group {
            member.signal(Signal::SIGTERM);
            member.wait_for_line(0, |line| line.contains("shutdown_complete"), LIMIT);
        }
        verify(&group);
    }
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or(Value::Null)
}

fn events(member: &Running, name: &str) -> Vec<Value> {
    let lines = member.lines().into_iter();
    lines
        .map(|line| event(&line))
        .filter(|it| it["name"] == name)
        .collect()
}

/// Waits until members have shared so many partitions among all of them.
fn settle(broker: &Broker, group: &[Running], partitions: usize) {
    let end = Instant::now() + LIMIT;
    loop {
        let owned: Vec<_> = group.iter().map(owned).collect();
        let all: BTreeSet<_> = owned.iter().flatten().collect();
        let apart = owned.iter().map(BTreeSet::len).sum::<usize>() == all.len();
        if apart && all.len() == partitions && owned.iter().all(|it| !it.is_empty()) {
            return;
        }
        assert!(Instant::now() < end, "{owned:?} {}", group[0].story());
        kcat(broker, &["-L"]);
    }
}

/// What a verifiable consumer says it owns.
fn owned(member: &Running) -> BTreeSet<i64> {
    let mut owned = BTreeSet::new();
    for line in member.lines() {
        let said = event(&line);
        let partitions = said["partitions"].as_array().into_iter().flatten();
        let partitions = partitions.filter_map(|it| it["partition"].as_i64());
        if said["name"] == "partitions_assigned" {
            owned.extend(partitions);
        } else if said["name"] == "partitions_revoked" {
            partitions.for_each(|partition| {
                owned.remove(&partition);
            });
        }
    }
    owned
}

fn consumed(member: &Running) -> i64 {
    let events = events(member, "records_consumed");
    events.iter().filter_map(|it| it["count"].as_i64()).sum()
}

/// Each record was consumed once, in order; all that was consumed is committed.
fn verify(group: &[Running]) {
    let mut next: BTreeMap<i64, i64> = BTreeMap::new();
    let mut committed: BTreeMap<i64, i64> = BTreeMap::new();
    for member in group {
        for consumed in events(member, "records_consumed") {
            for range in consumed["partitions"].as_array().into_iter().flatten() {
                let at = |name: &str| range[name].as_i64().expect("a number");
                let before = next.insert(at("partition"), at("maxOffset") + 1);
                let from = before.unwrap_or_else(|| at("minOffset"));
                assert_eq!(from, at("minOffset"), "{range}");
            }
        }
        for commit in events(member, "offsets_committed") {
            assert_eq!(commit["success"], true, "{commit}");
            for offset in commit["offsets"].as_array().into_iter().flatten() {
                let at = |name: &str| offset[name].as_i64().expect("a number");
                committed.insert(at("partition"), at("offset"));
            }
        }
    }
    assert_eq!(next, committed);
    assert_eq!(next.len(), 3);
}

/// Both with a repartition topic and a changelog. The store's folder is lost in between, so that the
/// counts come back from the changelog.
#[test]
fn a_word_count_of_streams_keeps_its_counts() {
    let broker = Broker::start_with(SETTINGS);
    let state = broker.folder().join("streams");
    let mut counts = BTreeMap::new();
    for (round, ending) in ["stop", "leave"].into_iter().enumerate() {
        let lines = lines(round);
        if round == 0 {
            kcat_with(&broker, &["-P", "-t", "lines"], lines.as_bytes());
        }
        let state = state.to_str().expect("a plain path");
        let mut counter = java_source_beside("WordCount.java", &broker, &[state]);
        if round > 0 {
            counter.wait_for_line(0, |line| line == "running", LIMIT);
            kcat_with(&broker, &["-P", "-t", "lines"], lines.as_bytes());
        }
        for word in lines.split_whitespace() {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
        for (word, count) in &counts {
            let wanted = format!("count {word} {count}");
            if lines.contains(word.as_str()) {
                counter.wait_for_line(0, |line| line == wanted, LIMIT);
            }
        }
        counter.tell(ending);
        assert!(counter.wait_exit(LIMIT).success(), "{}", counter.story());
        assert!(counter.lines().iter().any(|line| line == "closed"));
        fs::remove_dir_all(state).expect("the store's folder");
    }
    let told = kcat(
        &broker,
        &["-C", "-t", "counts", "-e", "-q", "-f", "%k %s\n"],
    );
    let told = String::from_utf8_lossy(&told).into_owned();
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for line in told.lines() {
        let (word, count) = line.split_once(' ').expect("a word and its count");
        let before = last.insert(word.to_owned(), count.parse().expect("a count"));
        assert_eq!(
            last[word],
            before.unwrap_or(0) + 1,
            "{word}: each count once"
        );
    }
    assert_eq!(last, counts);
    reset(&broker);
}

fn lines(round: usize) -> String {
    (0..50)
        .map(|number| format!("the word w{} of round{round}\n", number % 7))
        .collect()
}

const RESET: &str = "\
Reset-offsets for input topics [lines]
Following input topics offsets will be reset to (for consumer group word-count)
Topic: lines Partition: 0 Offset: 0
Topic: lines Partition: 1 Offset: 0
Topic: lines Partition: 2 Offset: 0
Done.
Deleting inferred internal topics [word-count-counts-store-changelog, word-count-words-repartition]
Done.";

/// As an operator lets the application begin anew.
fn reset(broker: &Broker) {
    let topics = || {
        let told = kcat(broker, &["-L", "-J"]);
        let told: Value = serde_json::from_slice(&told).expect("JSON");
        let topics = told["topics"].as_array().into_iter().flatten();
        let names = topics.filter_map(|topic| topic["topic"].as_str());
        let names = names.filter(|name| name.starts_with("word-count"));
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let internal = [
        "word-count-counts-store-changelog",
        "word-count-words-repartition",
    ];
    assert_eq!(topics(), internal.map(str::to_owned).into());
    let purged = ["--topic", internal[1], "--time", "earliest"];
    let purged = stock(broker, "kafka-get-offsets", &purged);
    assert!(
        purged.lines().any(|line| !line.ends_with(":0")),
        "records that were counted are deleted: {purged}"
    );
    let arguments = ["--application-id", "word-count", "--input-topics", "lines"];
    let told = stock(broker, "kafka-streams-application-reset", &arguments);
    assert_eq!(told.trim(), RESET);
    assert_eq!(topics(), BTreeSet::new());
    let told = stock(
        broker,
        "kafka-consumer-groups",
        &["--describe", "--group", "word-count"],
    );
    let lines = told.lines().filter(|line| line.starts_with("word-count"));
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 3, "{told}");
    assert!(rows.iter().all(|row| row[1] == "lines" && row[3] == "0"));
}

#[test]
fn connect_carries_a_file_to_a_file() {
    let broker = Broker::start_with(SETTINGS);
    let folder = broker.folder().join("connect");
    fs::create_dir(&folder).expect("a folder");
    let (from, to) = (folder.join("from.txt"), folder.join("to.txt"));
    let configs = connect_configs(&broker, &folder);
    for round in 1..=2 {
        fs::write(&from, numbers(0..100 * round)).expect("the source can be written to");
        let worker = connect_standalone(&configs);
        let end = Instant::now() + LIMIT;
        while fs::read_to_string(&to).unwrap_or_default().lines().count() < 100 * round {
            assert!(
                Instant::now() < end && worker.exit().is_none(),
                "{}",
                worker.story()
            );
            kcat(&broker, &["-L"]);
        }
        worker.signal(Signal::SIGTERM);
        worker.wait_exit(LIMIT);
        // It goes on where it was: nothing comes twice.
        let mut arrived: Vec<usize> = fs::read_to_string(&to)
            .expect("the sink has written")
            .lines()
            .map(|line| line.parse().expect("a number"))
            .collect();
        arrived.sort_unstable();
        assert_eq!(arrived, (0..100 * round).collect::<Vec<_>>());
    }
}

/// The worker, the source, the sink.
fn connect_configs(broker: &Broker, folder: &Path) -> [String; 3] {
    let put = |name: &str, lines: &[(&str, &str)]| {
        let path = folder.join(name);
        let lines: String = lines
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect();
        fs::write(&path, lines).expect("the folder can be written to");
        path.to_str().expect("a plain path").to_owned()
    };
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
    let converter = "org.apache.kafka.connect.storage.StringConverter";
    [
        put(
            "worker.properties",
            &[
                ("bootstrap.servers", &broker.bootstrap()),
                ("key.converter", converter),
                ("value.converter", converter),
                ("offset.storage.file.filename", &path("offsets")),
                ("offset.flush.interval.ms", "500"),
                ("listeners", "http://127.0.0.1:0"),
                // Looking through every class of every jar takes seconds.
                ("plugin.discovery", "service_load"),
            ],
        ),
        put(
            "source.properties",
            &[
                ("name", "source"),
                (
                    "connector.class",
                    "org.apache.kafka.connect.file.FileStreamSourceConnector",
                ),
                ("tasks.max", "1"),
                ("file", &path("from.txt")),
                ("topic", "carried"),
            ],
        ),
        put(
            "sink.properties",
            &[
                ("name", "sink"),
                (
                    "connector.class",
                    "org.apache.kafka.connect.file.FileStreamSinkConnector",
                ),
                ("tasks.max", "1"),
                ("file", &path("to.txt")),
                ("topics", "carried"),
                ("consumer.override.metadata.max.age.ms", "500"),
            ],
        ),
    ]
}
