//! Apache Kafka 4.1.2's own tools: topics, console clients, offsets, and kafka-dump-log over every
//! file of the log directory.

use std::fs;
use std::path::{Path, PathBuf};

use protocol_tests::text::{assert_same, awkward};
use protocol_tests::tools::{stock, stock_tool};
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, Chance};

const PERF_RECORDS: usize = 30_000;

#[test]
fn the_stock_tools_work_and_dump_log_finds_no_fault() {
    let mut broker = Broker::start();
    create_list_describe(&broker);
    let text = console(&broker);
    let expected_log_lines = perf(&broker);
    broker.stop();
    dump_log_finds_no_fault(&broker, expected_log_lines);

    // What was dumped is also what is served.
    broker.restart();
    let got = consume(
        &broker,
        &["--topic", "console", "--partition", "0"],
        text.iter().filter(|b| **b == b'\n').count(),
    );
    assert_same(got.as_bytes(), &text, "the console's text after a restart");
    delete(&broker);
    broker.stop();
    assert!(
        !exists(&broker.data(), "deleted-0"),
        "the folder of a deleted topic is gone"
    );
}

fn create_list_describe(broker: &Broker) {
    let create = |topic: &str, more: &[&str]| {
        let arguments = [
            &["--create", "--topic", topic, "--replication-factor", "1"],
            more,
        ]
        .concat();
        let said = stock(broker, "kafka-topics", &arguments);
        assert_eq!(said, format!("Created topic {topic}.\n"));
    };
    create("console", &["--partitions", "1"]);
    create(
        "perf",
        &["--partitions", "3", "--config", "segment.bytes=1048576"],
    );
    create("deleted", &["--partitions", "2"]);

    let again = [
        "--bootstrap-server",
        &broker.bootstrap(),
        "--create",
        "--topic",
        "console",
    ];
    let refused = stock_tool("kafka-topics", &again, b"");
    assert_eq!(
        refused.status.code(),
        Some(1),
        "a topic is not created twice"
    );
    assert_eq!(
        refused.text(),
        "Error while executing topic command : Topic 'console' already exists.\n"
    );

    assert_eq!(
        stock(broker, "kafka-topics", &["--list"]),
        "console\ndeleted\nperf\n"
    );

    let (id, _) = Connection::open(broker).describe("perf");
    let described = stock(broker, "kafka-topics", &["--describe", "--topic", "perf"]);
    let mut lines = described.lines();
    let head = lines.next().unwrap_or_default();
    let start = format!(
        "Topic: perf\tTopicId: {}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: ",
        base64(id.as_bytes())
    );
    assert!(
        head.starts_with(&start),
        "{head}\ndoes not start with\n{start}"
    );
    assert!(head.contains("segment.bytes=1048576"), "{head}");
    for partition in 0..3 {
        let row = format!(
            "\tTopic: perf\tPartition: {partition}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        );
        assert_eq!(lines.next(), Some(row.as_str()), "{described}");
    }
    assert_eq!(lines.next(), None, "{described}");
}

/// A text through the console producer and back through the console consumer.
fn console(broker: &Broker) -> Vec<u8> {
    // The console producer ends its lines at a carriage return too.
    let mut text = awkward(&mut Chance::announced("console"), 2 << 20);
    text.retain(|byte| *byte != b'\r');
    let bootstrap = broker.bootstrap();
    let producer = ["--bootstrap-server", &bootstrap, "--topic", "console"];
    stock_tool("kafka-console-producer", &producer, &text).expect_success();
    // The consumer ends each of its lines, the last one too.
    text.push(b'\n');
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(
        stock(broker, "kafka-get-offsets", &["--topic", "console"]),
        format!("console:0:{lines}\n")
    );
    let got = consume(broker, &["--topic", "console", "--partition", "0"], lines);
    assert_same(got.as_bytes(), &text, "the console's text");

    let properties = [
        "--property",
        "parse.key=true",
        "--property",
        "parse.headers=true",
    ];
    let row = "h:1,h:2,ü:é\tkey\tvalue\n";
    stock_tool(
        "kafka-console-producer",
        &[&producer[..], &properties].concat(),
        row.as_bytes(),
    )
    .expect_success();
    let from = lines.to_string();
    let shown = [
        "print.offset",
        "print.partition",
        "print.headers",
        "print.key",
    ]
    .map(|key| format!("{key}=true"));
    let mut arguments = vec!["--topic", "console", "--partition", "0", "--offset", &from];
    for property in &shown {
        arguments.extend(["--property", property]);
    }
    let got = consume_from(broker, &arguments, 1);
    assert_eq!(
        got,
        format!("Partition:0\tOffset:{lines}\th:1,h:2,ü:é\tkey\tvalue\n")
    );
    text
}

fn consume(broker: &Broker, arguments: &[&str], records: usize) -> String {
    consume_from(
        broker,
        &[arguments, &["--from-beginning"]].concat(),
        records,
    )
}

fn consume_from(broker: &Broker, arguments: &[&str], records: usize) -> String {
    let records = records.to_string();
    let limits = ["--max-messages", &records, "--timeout-ms", "20000"];
    stock(
        broker,
        "kafka-console-consumer",
        &[arguments, &limits].concat(),
    )
}

/// Fills several segments with idempotent batches; returns how many records the dump must show.
fn perf(broker: &Broker) -> usize {
    let bootstrap = format!("bootstrap.servers={}", broker.bootstrap());
    let records = PERF_RECORDS.to_string();
    let arguments = [
        "--topic",
        "perf",
        "--num-records",
        &records,
        "--record-size",
        "200",
        "--throughput",
        "-1",
        "--producer-props",
        &bootstrap,
        "compression.type=lz4",
        "acks=all",
    ];
    let said = stock_tool("kafka-producer-perf-test", &arguments, b"")
        .expect_success()
        .text();
    let start = format!("{PERF_RECORDS} records sent, ");
    assert!(
        said.lines()
            .last()
            .is_some_and(|line| line.starts_with(&start)),
        "{said}"
    );

    let ends = offsets(&stock(broker, "kafka-get-offsets", &["--topic", "perf"]));
    assert_eq!(ends.len(), 3, "a row for each partition");
    assert_eq!(
        ends.iter().sum::<usize>(),
        PERF_RECORDS,
        "the ends of the partitions: {ends:?}"
    );
    let starts = offsets(&stock(
        broker,
        "kafka-get-offsets",
        &["--topic", "perf", "--time", "earliest"],
    ));
    assert_eq!(starts, [0, 0, 0]);
    PERF_RECORDS
}

fn offsets(rows: &str) -> Vec<usize> {
    rows.lines()
        .map(|row| row.rsplit(':').next().unwrap().parse().unwrap())
        .collect()
}

fn delete(broker: &Broker) {
    assert_eq!(
        stock(broker, "kafka-topics", &["--delete", "--topic", "deleted"]),
        ""
    );
    let listed = stock(broker, "kafka-topics", &["--list", "--exclude-internal"]);
    assert_eq!(listed, "console\nperf\n");
}

fn dump_log_finds_no_fault(broker: &Broker, perf_records: usize) {
    let files = files_below(&broker.data());
    let (metadata, data): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|file| file.to_str().unwrap().contains("/__cluster_metadata-0/"));

    let logs = ending(&data, ".log");
    let perf_logs = logs.iter().filter(|log| log.contains("/perf-")).count();
    assert!(
        perf_logs > 3,
        "the perf topic has more than one segment in a partition: {logs:?}"
    );
    let dumped = dump(&["--deep-iteration"], &logs);
    let batches = dumped
        .lines()
        .filter(|line| line.starts_with("baseOffset: "));
    assert!(batches.clone().count() > 0, "batches are listed");
    assert_eq!(
        batches
            .clone()
            .find(|line| !line.contains(" isvalid: true")),
        None,
        "a batch is not valid"
    );
    let records: usize = batches
        .clone()
        .map(|line| number_after(line, " count: "))
        .sum();
    assert!(records > perf_records, "{records} records in the dump");
    let idempotent = batches
        .filter(|line| number_after(line, " producerId: ") < usize::MAX)
        .count();
    assert!(
        idempotent > 0,
        "the batches of an idempotent producer carry its id"
    );

    for suffix in [".index", ".timeindex"] {
        let indexes = ending(&data, suffix);
        assert_eq!(
            indexes.len(),
            logs.len(),
            "each log has its {suffix}: {indexes:?}"
        );
        let entries = dump(&[], &indexes);
        let entry = if suffix == ".index" {
            "offset: "
        } else {
            "timestamp: "
        };
        assert!(
            entries.lines().any(|line| line.starts_with(entry)),
            "an entry of {suffix} is listed"
        );
        let sane = dump(&["--index-sanity-check"], &indexes);
        let passed = sane
            .lines()
            .filter(|line| line.ends_with(" passed sanity check.") || line.ends_with(" is empty."));
        assert_eq!(passed.count(), indexes.len(), "{sane}");
        dump(&["--verify-index-only"], &indexes);
    }

    let snapshots = ending(&data, ".snapshot");
    assert!(
        !snapshots.is_empty(),
        "a clean stop leaves snapshots of the producers"
    );
    let producers = dump(&[], &snapshots);
    assert!(
        producers
            .lines()
            .any(|line| line.starts_with("producerId: ")),
        "{producers}"
    );

    let metadata_logs = ending(&metadata, ".log");
    assert!(!metadata_logs.is_empty(), "the metadata has a log");
    let decoded = dump(&["--cluster-metadata-decoder"], &metadata_logs);
    assert_eq!(
        decoded
            .lines()
            .find(|line| line.starts_with("baseOffset: ") && !line.contains(" isvalid: true")),
        None
    );
    for wanted in [
        r#""type":"TOPIC_RECORD","version":0,"data":{"name":"console","#,
        r#""type":"TOPIC_RECORD","version":0,"data":{"name":"perf","#,
        r#""type":"PARTITION_RECORD""#,
        r#""name":"segment.bytes","value":"1048576""#,
        r#""type":"REGISTER_BROKER_RECORD""#,
        r#""type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","#,
    ] {
        let found = decoded.contains(wanted) || checkpoints(&metadata).contains(wanted);
        assert!(
            found,
            "{wanted} is not in the dump of __cluster_metadata-0:\n{}",
            head(&decoded)
        );
    }
}

fn checkpoints(metadata: &[PathBuf]) -> String {
    let files = ending(metadata, ".checkpoint");
    if files.is_empty() {
        String::new()
    } else {
        dump(&["--cluster-metadata-decoder"], &files)
    }
}

/// kafka-dump-log over the files, with every word by which it reports a fault ruled out.
#[track_caller]
fn dump(options: &[&str], files: &[String]) -> String {
    let output = stock_tool(
        "kafka-dump-log",
        &[options, &["--files", &files.join(",")]].concat(),
        b"",
    )
    .expect_success();
    let text = output.text();
    assert_eq!(output.stderr, "", "kafka-dump-log {options:?} {files:?}");
    let mut dumped = 0;
    for line in text.lines() {
        dumped += usize::from(line.starts_with("Dumping "));
        for fault in [
            "Mismatches in",
            "Found timestamp mismatch",
            "Found out of order",
            "not found in the log",
            "Non-consecutive",
            "Could not",
            "Error",
            "error at",
            "trailing bytes",
            "unsupported",
        ] {
            assert!(!line.contains(fault), "kafka-dump-log {options:?}: {line}");
        }
    }
    assert_eq!(dumped, files.len(), "every file is dumped: {}", head(&text));
    text
}

fn head(text: &str) -> String {
    text.lines()
        .take(100)
        .map(|line| format!("{}\n", line.chars().take(300).collect::<String>()))
        .collect()
}

/// The number behind a label; the largest for a negative one.
fn number_after(line: &str, label: &str) -> usize {
    let rest = line
        .split(label)
        .nth(1)
        .unwrap_or_else(|| panic!("{label:?} is not in {line}"));
    rest.split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(usize::MAX)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path))
        } else {
            files.push(path)
        }
    }
    files.sort();
    files
}

fn ending(files: &[PathBuf], suffix: &str) -> Vec<String> {
    files
        .iter()
        .map(|file| file.to_str().unwrap().to_owned())
        .filter(|file| file.ends_with(suffix))
        .collect()
}

fn exists(folder: &Path, name: &str) -> bool {
    folder.join(name).exists()
}

/// How Kafka prints an id: base64 for addresses, without padding.
fn base64(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let number = u128::from_be_bytes(*bytes);
    (0..22_u32)
        .map(|digit| {
            // 128 bits are 21 digits of 6 bits and one of 2, which stand at its top.
            let bits = if digit < 21 {
                number >> (122 - 6 * digit)
            } else {
                number << 4
            };
            char::from(DIGITS[(bits & 63) as usize])
        })
        .collect()
}
