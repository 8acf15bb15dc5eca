//! A folder goes back and forth between Apache Kafka 4.1.2 and our binary, with one
//! `server.properties` for both: each starts on what the other left and serves all of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use protocol_tests::process::run;
use protocol_tests::tools::{python, stock_tool};
use protocol_tests::{Broker, Kind, only_barnabas};

/// What the folders were made with, as far as both brokers need it. Nothing is compacted, deleted
/// or aborted meanwhile, so that Kafka's answers stay those of the day.
const SETTINGS: &[(&str, &str)] = &[
    ("broker.rack", "rack-a"),
    ("offsets.topic.num.partitions", "2"),
    ("transaction.state.log.num.partitions", "2"),
    ("log.index.size.max.bytes", "8192"),
    ("log.retention.ms", "-1"),
    ("delegation.token.secret.key", "fixture-secret"),
    ("log.cleaner.enable", "false"),
    ("log.segment.delete.delay.ms", "1800000"),
    (
        "group.coordinator.rebalance.protocols",
        "classic,consumer,streams,share",
    ),
    ("group.min.session.timeout.ms", "1000"),
    (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "3600000",
    ),
];

fn beside(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A broker on one of the folders that Kafka wrote.
fn adopted(folder: &str) -> Broker {
    let mut broker = Broker::prepare(SETTINGS);
    broker.speak_like_kafka();
    std::fs::create_dir(broker.data()).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("xzf")
        .arg(beside(&format!("../src/log/testdata/{folder}.tar.gz")));
    tar.arg("-C").arg(broker.data());
    run("tar", &mut tar, b"", Duration::from_secs(10)).expect_success();
    broker
}

fn there_and_back(folder: &str) {
    if !only_barnabas() {
        return;
    }
    let known = beside(&format!("fixtures/{folder}.json.gz"));
    let known = known.to_str().unwrap();
    let mut broker = adopted(folder);
    broker.restart();
    python("kafka_folder.py", &broker, &["check", known]);
    python("kafka_folder.py", &broker, &["append", known]);
    broker.kill();
    broker.restart();
    python("kafka_folder.py", &broker, &["check", known, "appended"]);
    broker.stop();
    broker.switch_to(Kind::ApacheKafka);
    broker.restart();
    python("kafka_folder.py", &broker, &["check", known, "appended"]);
    broker.stop();
    broker.switch_to(Kind::Barnabas);
    broker.restart();
    python("kafka_folder.py", &broker, &["check", known, "appended"]);
    broker.stop();
}

#[test]
fn after_an_orderly_stop() {
    there_and_back("clean");
}

#[test]
fn after_a_crash() {
    there_and_back("crash");
}

#[test]
fn kafka_starts_on_a_folder_that_we_made() {
    if !only_barnabas() {
        return;
    }
    let mut broker = Broker::prepare(&[]);
    broker.speak_like_kafka();
    broker.restart();
    python("properties.py", &broker, &["write"]);
    broker.stop();
    broker.switch_to(Kind::ApacheKafka);
    broker.restart();
    python("properties.py", &broker, &["read"]);
    broker.stop();
    broker.switch_to(Kind::Barnabas);
    broker.restart();
    python("properties.py", &broker, &["read"]);
}

/// The features and the credential of `kafka-storage format` are the cluster's first records, as
/// Kafka would have written them.
#[test]
fn a_folder_that_kafka_storage_formatted_begins_as_it_says() {
    if !only_barnabas() {
        return;
    }
    for voters in [&[][..], &["--standalone"]] {
        let mut broker = Broker::prepare(&[]);
        broker.speak_like_kafka();
        if !voters.is_empty() {
            broker.without_static_voters();
        }
        let config = broker.write_properties();
        let mut arguments = vec![
            "format",
            "-t",
            "JcR5cyqYRb6uV7VINHmQ1g",
            "-c",
            config.to_str().unwrap(),
            "-f",
            "share.version=1",
            "-S",
            "SCRAM-SHA-256=[name=ann,password=secret]",
        ];
        arguments.extend(voters);
        stock_tool("kafka-storage", &arguments, b"").expect_success();
        broker.restart();
        let log = broker
            .data()
            .join("__cluster_metadata-0/00000000000000000000.log");
        let arguments = [
            "--cluster-metadata-decoder",
            "--files",
            log.to_str().unwrap(),
        ];
        let dumped = stock_tool("kafka-dump-log", &arguments, b"");
        let dumped = dumped.expect_success().text();
        for wanted in [
            "\"name\":\"share.version\",\"featureLevel\":1",
            "\"name\":\"metadata.version\",\"featureLevel\":27",
            "\"type\":\"USER_SCRAM_CREDENTIAL_RECORD\",\"version\":0,\"data\":{\"name\":\"ann\"",
        ] {
            assert!(dumped.contains(wanted), "{wanted} is not in\n{dumped}");
        }
        broker.stop();
        broker.switch_to(Kind::ApacheKafka);
        broker.restart();
        broker.stop();
    }
}
