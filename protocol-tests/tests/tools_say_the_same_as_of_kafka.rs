//! Stock tools side by side: the same steps against our broker and against Apache Kafka, and what the
//! tools print and how they exit must be the same.
//!
//! Ports, ids and times are hidden before the comparison; everything else counts. Traps covered here:
//! B164, B165, B166, B182 (names), B042 (nulls), B088 (special timestamps through the tool), B025.

use std::fs;
use std::time::Duration;

use protocol_tests::stock::{Step, assert_no_difference, hide_after, step, step_with};
use protocol_tests::tools::{stock, stock_beside, stock_tool};
use protocol_tests::{Broker, Kind};

fn both() -> (Broker, Broker) {
    // With Kafka chosen it is compared with itself, which proves what is hidden.
    let ours = Broker::start_kind(Kind::chosen(), &[]);
    let theirs = Broker::start_kind(Kind::ApacheKafka, &[]);
    (ours, theirs)
}

fn normal(broker: &Broker, text: &str) -> String {
    let mut text: String = text
        .lines()
        // Where in the tool's code an exception came from.
        .filter(|line| !line.starts_with("\tat ") && !line.starts_with("\t... "))
        // Apache Kafka is given a listener for its controller, our node needs none.
        .filter(|line| !line.starts_with("CurrentVoters:"))
        .map(|line| format!("{line}\n"))
        .collect();
    text = text
        .replace(&broker.port().to_string(), "PORT")
        .replace(broker.folder().to_str().unwrap(), "FOLDER");
    // How far the metadata log has come depends on how many records each writes into it.
    for label in [
        "Cluster ID: ",
        "Epoch: ",
        "ClusterId:              ",
        "HighWatermark:          ",
        "TopicId: ",
        "CreateTime:",
        "LogAppendTime:",
        "topic id ",
        "directories=[",
    ] {
        text = hide_after(&text, label);
    }
    if text.starts_with("NodeId\t") {
        text = text.lines().map(without_positions).collect();
    }
    text
}

/// A row of kafka-metadata-quorum: how far a node is and when it was heard of is its own affair, and
/// widths follow from that.
fn without_positions(row: &str) -> String {
    let cells = row.split('\t').enumerate().map(|(column, cell)| {
        let is_figure = cell.starts_with(|first: char| first.is_ascii_digit());
        let is_own = matches!(column, 2 | 4 | 5) && is_figure;
        if is_own { "N" } else { cell.trim_end() }
    });
    let cells: Vec<_> = cells.collect();
    cells.join("|") + "\n"
}

fn topics(arguments: &str) -> Step {
    step(&format!(
        "kafka-topics --bootstrap-server {{bootstrap}} {arguments}"
    ))
}

#[test]
fn topics_console_and_get_offsets() {
    let (ours, theirs) = both();
    let steps = [
        topic_steps(),
        produce_steps(),
        consume_steps(),
        offset_steps(),
        end_steps(),
    ]
    .concat();
    assert_no_difference(&ours, &theirs, &steps, normal);
    replica_verification(&ours, &theirs);
}

fn topic_steps() -> Vec<Step> {
    let long = "x".repeat(249);
    let too_long = "x".repeat(250);
    let mut steps: Vec<Step> = [
        "--list",
        "--describe",
        "--create --topic a --partitions 3 --replication-factor 1",
        "--create --topic b",
        "--create --topic a --partitions 3",
        "--create --topic a --if-not-exists",
        "--create --topic dots.and_under --partitions 2 --config retention.ms=12345 --config cleanup.policy=compact,delete",
        // B164
        "--create --topic dots_and.under",
        "--create --topic low --config min.insync.replicas=2",
        "--create --topic assigned --replica-assignment 1,1",
        // B166
        "--create --topic w --config foo=bar",
        "--create --topic w --config retention.ms=abc",
        "--create --topic w --config cleanup.policy=foo",
        "--create --topic w --config compression.type=foo",
        "--create --topic w --config message.timestamp.type=x",
        // B081
        "--create --topic w --config segment.bytes=10",
        "--create --topic w --config segment.ms=0",
        "--create --topic w --config max.message.bytes=-1",
        "--create --topic w --config min.cleanable.dirty.ratio=1.5",
        "--create --topic w --config retention.ms=",
        "--create --topic w --config min.insync.replicas=0",
        "--create --topic w --config remote.storage.enable=true",
        "--create --topic w --config leader.replication.throttled.replicas=abc",
        "--create --topic w --config unclean.leader.election.enable=maybe",
        "--create --topic w --config message.format.version=2.0",
        "--create --topic w --replica-assignment 1:1",
        "--create --topic w --replica-assignment 7",
        "--create --topic w --replica-assignment 1,7",
        "--create --topic w --replica-assignment 1:7,1",
        "--create --topic w --replica-assignment -1",
        "--create --topic w --replication-factor 3",
        "--create --topic w --replication-factor 0",
        "--create --topic w --partitions 0",
        "--create --topic w --partitions -5",
        "--create --topic w --partitions 10001",
        // B182
        "--create --topic a/b",
        "--create --topic .",
        "--create --topic ..",
        "--create --topic 'a b'",
        "--create --topic ''",
        "--create --topic __consumer_offsets_not",
        "--create --topic __cluster_metadata",
        "@partitions a 3",
        "@partitions assigned 2",
        "@partitions low 1",
        "@partitions dots.and_under 2",
        "--describe",
        "--describe --topic a",
        "--describe --topic a|low",
        "--describe --topic missing",
        "--describe --topic missing --if-exists",
        "--describe --exclude-internal",
        "--describe --under-replicated-partitions",
        "--describe --unavailable-partitions",
        "--describe --at-min-isr-partitions",
        "--describe --under-min-isr-partitions",
        "--describe --topics-with-overrides",
        "--describe --partition-size-limit-per-response 1",
        "--describe --topic a --partition-size-limit-per-response 2",
        "--describe --topic-id {id:a}",
        "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAA",
        "--describe --topic-id 12345678901234567890zz",
        "--describe --topic-id bogus",
        "--list",
        "--list --exclude-internal",
        "--list --topic a.*",
        "--alter --topic a --partitions 5",
        "@partitions a 5",
        "--alter --topic a --partitions 5",
        "--alter --topic a --partitions 2",
        "--alter --topic a --partitions 0",
        "--alter --topic missing --partitions 2",
        "--alter --topic missing --partitions 2 --if-exists",
        "--alter --topic b --partitions 3 --replica-assignment 1,1,1",
        "@partitions b 3",
        "--alter --topic b --partitions 4 --replica-assignment 1,1,1,9",
        "--alter --topic b --partitions 5 --replica-assignment 1,1,1,1",
        "--describe --topic b",
        "--alter --topic low|assigned --partitions 4",
        "@partitions low 4",
        "@partitions assigned 4",
        "--describe --topic low",
        "--delete --topic missing",
        "--delete --topic missing --if-exists",
        "--delete --topic assigned",
        "@gone assigned",
        "--describe --topic assigned",
        "--create --topic assigned",
        "@partitions assigned 1",
    ]
    .iter()
    .map(|line| if line.starts_with('@') { step(line) } else { topics(line) })
    .collect();
    steps.push(topics(&format!("--create --topic {long}")));
    steps.push(topics(&format!("--create --topic {too_long}")));
    steps.push(step(&format!("@partitions {long} 1")));
    steps.push(topics(&format!("--delete --topic {long}")));
    steps.push(step(&format!("@gone {long}")));
    steps
}

fn produce(arguments: &str, input: &str) -> Step {
    let line = format!("kafka-console-producer --bootstrap-server {{bootstrap}} {arguments}");
    step_with(&line, input)
}

fn produce_steps() -> Vec<Step> {
    let mut steps = vec![
        topics("--create --topic c --partitions 1"),
        topics("--create --topic appended --config message.timestamp.type=LogAppendTime"),
        step("@partitions c 1"),
        step("@partitions appended 1"),
        produce("--topic c", "plain\n\nthird ünï\n"),
        produce(
            "--topic c --property parse.key=true --property key.separator=|",
            "k|v\nk2|\n|v3\n",
        ),
        produce(
            "--topic c --property parse.key=true --property parse.headers=true",
            "h:1,i:2\tk\tv\n",
        ),
        produce(
            "--topic c --property parse.key=true --property null.marker=NULL",
            "NULL\tv\nk\tNULL\n",
        ),
        produce("--topic c --sync --request-required-acks 1", "sync\n"),
        produce(
            "--topic c --request-required-acks 0 --producer-property enable.idempotence=false",
            "none\n",
        ),
        produce("--topic appended", "now\n"),
        // It is made as it is written to.
        produce("--topic made", "made\n"),
        produce("--topic 'a b' --max-block-ms 3000", "never\n"),
    ];
    for codec in ["gzip", "snappy", "lz4", "zstd", "none"] {
        steps.push(produce(
            &format!("--topic c --compression-codec {codec}"),
            codec,
        ));
    }
    steps
}

fn consume_steps() -> Vec<Step> {
    [
        "--topic c --partition 0 --from-beginning --max-messages 15",
        "--topic c --partition 0 --offset earliest --max-messages 2",
        "--topic c --partition 0 --offset 4 --max-messages 3 --property print.key=true",
        "--topic c --partition 0 --offset latest --timeout-ms 300",
        "--topic c --partition 0 --offset 1000 --timeout-ms 1500",
        "--topic c --partition 0 --from-beginning --timeout-ms 1000 --property print.key=true --property print.offset=true --property print.partition=true --property print.headers=true --property print.timestamp=true",
        "--topic c --partition 0 --from-beginning --max-messages 9 --property print.key=true --property print.value=false --property key.separator=@ --property line.separator=! --property null.literal=NIL",
        "--topic c --partition 0 --offset 6 --max-messages 1 --property print.headers=true --property headers.separator=;",
        "--topic c --partition 0 --from-beginning --max-messages 15 --isolation-level read_committed",
        "--topic c --partition 0 --from-beginning --max-messages 2 --formatter org.apache.kafka.tools.consumer.LoggingMessageFormatter",
        "--topic c --partition 0 --from-beginning --max-messages 2 --formatter org.apache.kafka.tools.consumer.NoOpMessageFormatter",
        "--topic c --partition 0 --offset 3 --max-messages 1 --property print.key=true --property key.deserializer=org.apache.kafka.common.serialization.StringDeserializer",
        "--topic c --partition 0 --offset 3 --max-messages 2 --property print.epoch=true --property print.headers=true --property headers.deserializer=org.apache.kafka.common.serialization.StringDeserializer",
        "--topic c --partition 0 --offset 3 --max-messages 2 --property value.deserializer=org.apache.kafka.common.serialization.StringDeserializer --skip-message-on-error",
        "--topic c --partition 0 --offset 3 --max-messages 1 --formatter-property print.offset=true --command-property fetch.max.bytes=1",
        "--topic c --partition 9 --from-beginning --timeout-ms 1000",
        "--topic appended --partition 0 --from-beginning --max-messages 1 --property print.timestamp=true",
        "--topic made --partition 0 --from-beginning --max-messages 1",
    ]
    .iter()
    .map(|line| step(&format!("kafka-console-consumer --bootstrap-server {{bootstrap}} {line}")))
    .collect()
}

fn offset_steps() -> Vec<Step> {
    [
        "",
        "--topic c",
        "--topic c --time earliest",
        "--topic c --time latest",
        "--topic c --time -1",
        "--topic c --time -2",
        "--topic c --time max-timestamp",
        "--topic c --time -4",
        "--topic c --time earliest-local",
        "--topic c --time latest-tiered",
        "--topic c --time 0",
        "--topic c --time 99999999999999",
        "--topic c --time -6",
        "--topic c --time bogus",
        "--topic b --time max-timestamp",
        "--topic b --partitions 0,2",
        "--topic b --partitions 9",
        "--topic-partitions a:0,b:1-,dots.*:0-2",
        "--topic-partitions c",
        "--topic missing",
        "--exclude-internal-topics",
    ]
    .iter()
    .map(|line| {
        step(&format!(
            "kafka-get-offsets --bootstrap-server {{bootstrap}} {line}"
        ))
    })
    .collect()
}

fn end_steps() -> Vec<Step> {
    vec![
        topics("--delete --topic (low|dots.*)"),
        step("@gone low"),
        step("@gone dots.and_under"),
        topics("--list"),
    ]
}

/// kafka-replica-verification reads every replica as a debugging consumer and has nothing to say.
fn replica_verification(ours: &Broker, theirs: &Broker) {
    let first_report = |broker: &Broker| {
        let arguments = [
            "--broker-list",
            &broker.bootstrap(),
            "--report-interval-ms",
            "1000",
        ];
        let tool = stock_beside("kafka-replica-verification", &arguments);
        let line = tool.wait_for_line(0, |line| line.contains("max lag"), Duration::from_secs(30));
        let after = line
            .split_once(": ")
            .map_or(line.as_str(), |(_, after)| after);
        // Which of the partitions is named is by chance; all of them have no lag.
        let (lag, _) = after.split_once(" for partition").unwrap_or((after, ""));
        let (_, among) = after.rsplit_once(" among ").unwrap_or(("", after));
        format!("{lag} among {among}")
    };
    assert_eq!(first_report(ours), first_report(theirs));
}

#[test]
fn the_metadata_shell_shows_the_same_tree() {
    let (ours, theirs) = both();
    let create = [
        topics("--create --topic shown --partitions 2 --config retention.ms=1234"),
        step("@partitions shown 2"),
    ];
    assert_no_difference(&ours, &theirs, &create, normal);
    let (our_log, their_log) = (copied_log(&ours), copied_log(&theirs));
    for line in [
        "ls /image",
        "ls /image/topics/byName",
        "ls /image/configs",
        "cat /image/configs/TOPIC:shown/retention.ms",
        "cat /image/topics/byName/shown/0",
        "ls /image/cluster/brokers",
        "tree /image/features",
    ] {
        // On a busy machine the shell answers before it has read the whole log.
        let same = (0..5).any(|_| shell(&ours, &our_log, line) == shell(&theirs, &their_log, line));
        assert!(
            same,
            "{line}\nBarnabas: {}\nApache Kafka: {}",
            shell(&ours, &our_log, line),
            shell(&theirs, &their_log, line)
        );
    }
}

/// A copy of the broker's metadata log: the shell locks the folder that it reads.
fn copied_log(broker: &Broker) -> String {
    let copy = broker.folder().join("copy/__cluster_metadata-0");
    fs::create_dir_all(&copy).unwrap();
    let name = "00000000000000000000.log";
    let log = broker.data().join("__cluster_metadata-0").join(name);
    fs::copy(log, copy.join(name)).unwrap();
    copy.join(name).to_str().unwrap().to_owned()
}

fn shell(broker: &Broker, log: &str, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let arguments = [&["--snapshot", log], &words[..]].concat();
    let output = stock_tool("kafka-metadata-shell", &arguments, b"");
    format!("{}\n{}", output.status, normal(broker, &output.text()))
}

#[test]
fn the_administrative_tools() {
    let (ours, theirs) = both();
    let mut steps = vec![
        topics("--create --topic ta --partitions 2"),
        topics("--create --topic tb"),
        topics("--create --topic compacted --config cleanup.policy=compact"),
        step("@partitions ta 2"),
        step("@partitions tb 1"),
        step("@partitions compacted 1"),
    ];
    // With a key: without one the producer draws the partition. A producer a record: the size of a
    // batch of several depends on how long they took to come.
    for record in ["k:one\n", "k:two\n", "k:three\n"] {
        let keyed = "--topic ta --property parse.key=true --property key.separator=:";
        steps.push(produce(keyed, record));
    }
    for record in ["one\n", "two\n", "three\n", "four\n"] {
        steps.push(produce("--topic tb", record));
    }
    steps.extend(config_steps());
    steps.extend(other_steps());
    let deletions = ours.folder().join("deletions.json");
    let file = deletions.to_str().unwrap();
    steps.extend(delete_records_steps(file));
    assert_no_difference(&ours, &theirs, &steps, normal);
    api_versions(&ours, &theirs);
}

/// kafka-broker-api-versions: what is served has Kafka's versions and is told in Kafka's words.
fn api_versions(ours: &Broker, theirs: &Broker) {
    let told = |broker: &Broker| {
        let text = stock(broker, "kafka-broker-api-versions", &[]);
        let text = normal(broker, &text);
        // The last of a list has no comma.
        let lines = text
            .lines()
            .map(|line| line.trim_end_matches(',').to_owned());
        lines.collect::<Vec<_>>()
    };
    let (ours, theirs) = (told(ours), told(theirs));
    let (unserved, served): (Vec<_>, Vec<_>) = ours
        .into_iter()
        .partition(|line| line.ends_with("UNSUPPORTED"));
    for line in &served {
        assert!(theirs.contains(line), "Kafka does not say {line}");
    }
    assert!(served.len() > 25, "{served:#?}");
    println!("{} APIs are not served: {unserved:#?}", unserved.len());
}

fn config_steps() -> Vec<Step> {
    [
        "--entity-type topics --entity-name ta --describe",
        "--entity-type topics --entity-name ta --describe --all",
        "--entity-type topics --entity-name ta --alter --add-config retention.ms=9999,max.message.bytes=2000000",
        "--entity-type topics --entity-name ta --describe",
        "--topic ta --describe",
        "--entity-type topics --entity-name ta --alter --add-config cleanup.policy=[compact,delete]",
        "--entity-type topics --entity-name ta --alter --delete-config max.message.bytes",
        "--entity-type topics --entity-name ta --alter --delete-config max.message.bytes",
        "--entity-type topics --entity-name ta --alter --delete-config nothing.known",
        "--entity-type topics --entity-name ta --alter --add-config retention.ms=abc",
        "--entity-type topics --entity-name ta --alter --add-config foo.bar=1",
        "--entity-type topics --entity-name ta --alter --add-config cleanup.policy=foo",
        "--entity-type topics --entity-name ta --alter --add-config retention.ms=1,segment.ms=0",
        "--entity-type topics --entity-name ta --describe",
        "--entity-type topics --describe",
        "--entity-type topics --entity-name missing --describe",
        "--entity-type topics --entity-name missing --alter --add-config retention.ms=1",
        "--entity-type brokers --entity-name 1 --describe",
        "--entity-type brokers --entity-default --describe",
        "--entity-type brokers --describe",
        "--entity-type brokers --entity-name 1 --alter --add-config log.retention.ms=77777",
        "--entity-type brokers --entity-default --alter --add-config log.retention.ms=88888,background.threads=11",
        "--entity-type brokers --entity-name 1 --describe",
        "--entity-type brokers --entity-default --describe",
        "--entity-type topics --entity-name tb --describe --all",
        "--entity-type brokers --entity-name 1 --alter --delete-config log.retention.ms",
        "--entity-type brokers --entity-default --alter --delete-config log.retention.ms,background.threads",
        "--entity-type brokers --entity-name 1 --alter --add-config node.id=7",
        "--entity-type brokers --entity-name 1 --alter --add-config num.partitions=7",
        "--entity-type brokers --entity-name 1 --alter --add-config num.io.threads=0",
        "--entity-type brokers --entity-name 1 --alter --add-config foo.bar=7",
        "--entity-type brokers --entity-name 9 --describe",
        "--entity-type brokers --entity-name abc --describe",
        "--entity-type broker-loggers --entity-name 1 --alter --add-config kafka.nothing=DEBUG",
        "--entity-type broker-loggers --entity-name 1 --alter --add-config kafka.server.KafkaApis=LOUD",
        "--entity-type groups --entity-name g --alter --add-config consumer.session.timeout.ms=50000",
        "--entity-type groups --entity-name g --alter --add-config consumer.session.timeout.ms=1",
        "--entity-type client-metrics --entity-name m --alter --add-config interval.ms=10000,metrics=[a.,b.]",
        "--entity-type client-metrics --entity-name m --describe",
        "--entity-type client-metrics --describe",
        "--entity-type client-metrics --entity-name m --alter --add-config interval.ms=1",
    ]
    .iter()
    .map(|line| step(&format!("kafka-configs --bootstrap-server {{bootstrap}} {line}")))
    .collect()
}

fn other_steps() -> Vec<Step> {
    [
        "kafka-cluster cluster-id --bootstrap-server {bootstrap}",
        "kafka-cluster list-endpoints --bootstrap-server {bootstrap}",
        "kafka-cluster list-endpoints --bootstrap-server {bootstrap} --include-fenced-brokers",
        "kafka-cluster unregister --bootstrap-server {bootstrap} --id 9",
        "kafka-features --bootstrap-server {bootstrap} describe",
        "kafka-features --bootstrap-server {bootstrap} upgrade --feature group.version=9",
        "kafka-features --bootstrap-server {bootstrap} upgrade --feature nothing=1",
        "kafka-features --bootstrap-server {bootstrap} upgrade --feature group.version=1 --dry-run",
        "kafka-features --bootstrap-server {bootstrap} version-mapping --release-version 4.1",
        "kafka-features --bootstrap-server {bootstrap} feature-dependencies --feature group.version=1",
        "kafka-features --bootstrap-server {bootstrap} downgrade --feature group.version=0 --dry-run",
        "kafka-features --bootstrap-server {bootstrap} disable --feature group.version --dry-run",
        "kafka-features --bootstrap-server {bootstrap} downgrade --feature metadata.version=99",
        "kafka-metadata-quorum --bootstrap-server {bootstrap} describe --status",
        "kafka-metadata-quorum --bootstrap-server {bootstrap} describe --replication",
        "kafka-metadata-quorum --bootstrap-server {bootstrap} describe --replication --human-readable",
        "kafka-metadata-quorum --bootstrap-server {bootstrap} describe",
        "kafka-log-dirs --bootstrap-server {bootstrap} --describe",
        "kafka-log-dirs --bootstrap-server {bootstrap} --describe --topic-list ta,missing --broker-list 1",
        "kafka-log-dirs --bootstrap-server {bootstrap} --describe --broker-list 9",
    ]
    .iter()
    .map(|line| step(line))
    .collect()
}

/// kafka-delete-records, with the files that it reads.
fn delete_records_steps(file: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let deletions = [
        r#"{"partitions":[{"topic":"ta","partition":0,"offset":1}],"version":1}"#,
        r#"{"partitions":[{"topic":"tb","partition":0,"offset":-1}],"version":1}"#,
        r#"{"partitions":[{"topic":"tb","partition":0,"offset":99}],"version":1}"#,
        r#"{"partitions":[{"topic":"tb","partition":0,"offset":2}],"version":1}"#,
        r#"{"partitions":[{"topic":"compacted","partition":0,"offset":0}],"version":1}"#,
    ];
    for (number, text) in deletions.iter().enumerate() {
        let file = format!("{file}.{number}");
        fs::write(&file, text).unwrap();
        steps.push(step(&format!(
            "kafka-delete-records --bootstrap-server {{bootstrap}} --offset-json-file {file}"
        )));
    }
    // B090
    for time in ["earliest", "latest"] {
        steps.push(step(&format!(
            "kafka-get-offsets --bootstrap-server {{bootstrap}} --topic tb --time {time}"
        )));
    }
    steps
}
