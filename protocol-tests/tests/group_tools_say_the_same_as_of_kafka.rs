//! The stock tools for groups, side by side: the same steps against our broker and against Apache
//! Kafka, with groups that are empty, active and gone; what the tools print and how they exit must be
//! the same. Ids of members and times are hidden before the comparison.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use protocol_tests::process::Running;
use protocol_tests::stock::{Step, assert_no_difference, hide_after, step, step_with};
use protocol_tests::tools::stock_beside;
use protocol_tests::{Broker, Kind};

const LIMIT: Duration = Duration::from_secs(60);

/// Kafka's defaults ask for three brokers and wait three seconds.
const SETTINGS: &[(&str, &str)] = &[
    ("offsets.topic.replication.factor", "1"),
    ("offsets.topic.num.partitions", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
];

fn both() -> (Broker, Broker) {
    let ours = Broker::start_kind(Kind::chosen(), SETTINGS);
    let theirs = Broker::start_kind(Kind::ApacheKafka, SETTINGS);
    (ours, theirs)
}

fn normal(broker: &Broker, text: &str) -> String {
    let text: String = text
        .lines()
        // Where in the tool's code an exception came from.
        .filter(|line| !line.starts_with("\tat ") && !line.starts_with("\t... "))
        // A set of Java's, in another order each time.
        .map(|line| line.split(" Valid states are:").next().unwrap_or(line))
        // Columns are as wide as what stands in them.
        .map(|line| format!("{}\n", line.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    let mut text = text
        .replace(&broker.port().to_string(), "PORT")
        .replace(broker.folder().to_str().unwrap(), "FOLDER");
    for label in [
        "console-consumer-",
        "topicId\":\"",
        "commitTimestamp\":",
        "currentStateTimestamp\":",
        "CreateTime:",
    ] {
        text = hide_after(&text, label);
    }
    hide_ids(&text)
}

/// Members of the consumer protocol are named by 22 characters of base64.
fn hide_ids(text: &str) -> String {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut hidden = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if is_of_id(c) {
            word.push(c);
            continue;
        }
        hidden.push_str(if word.len() == 22 { "ID" } else { &word });
        word.clear();
        hidden.push(c);
    }
    hidden
}

fn steps(tool: &str, lines: &[&str]) -> Vec<Step> {
    lines
        .iter()
        .map(|line| step(&format!("{tool} --bootstrap-server {{bootstrap}} {line}")))
        .collect()
}

fn groups(lines: &[&str]) -> Vec<Step> {
    steps("kafka-consumer-groups", lines)
}

fn topics_with_records() -> Vec<Step> {
    let produce = |topic: &str, input: &str| {
        let line = format!(
            "kafka-console-producer --bootstrap-server {{bootstrap}} --topic {topic} \
             --property parse.key=true --property key.separator=:"
        );
        step_with(&line, input)
    };
    let mut all = steps(
        "kafka-topics",
        &["--create --topic ta --partitions 2", "--create --topic tb"],
    );
    all.push(step("@partitions ta 2"));
    all.push(step("@partitions tb 1"));
    all.push(produce("ta", "k:one\nk:two\nk:three\n"));
    all.push(produce("tb", "k:one\nk:two\nk:three\nk:four\n"));
    all
}

#[test]
fn empty_groups_and_their_offsets() {
    let (ours, theirs) = both();
    let exported = ours.folder().join("offsets.csv");
    fs::write(&exported, "tb,0,3\n").unwrap();
    let file = exported.to_str().unwrap();
    let all = [
        topics_with_records(),
        groups(&[
            "--list",
            "--describe --group missing",
            "--describe --all-groups",
        ]),
        steps(
            "kafka-console-consumer",
            &[
                "--topic tb --group cg --from-beginning --max-messages 4",
                "--topic tb --group cg --timeout-ms 2000",
            ],
        ),
        steps("kafka-groups", &GROUP_LISTS),
        groups(&LISTS),
        groups(&DESCRIPTIONS),
        groups(&RESETS),
        groups(&[
            &format!("--group cg --reset-offsets --from-file {file} --dry-run"),
            &format!("--group cg --reset-offsets --from-file {file} --execute"),
            "--describe --group cg",
        ]),
        steps("kafka-streams-application-reset", &STREAMS_RESETS),
        groups(&DELETIONS),
        steps("kafka-groups", &["--list"]),
        steps("kafka-console-consumer", &FORMATTERS),
    ];
    assert_no_difference(&ours, &theirs, &all.concat(), normal);
}

const GROUP_LISTS: [&str; 6] = [
    "--list",
    "--list --consumer",
    "--list --share",
    "--list --group-type classic",
    "--list --group-type consumer",
    "--list --protocol consumer",
];

const LISTS: [&str; 13] = [
    "--list",
    "--list --state",
    "--list --state Empty",
    "--list --state empty,stable",
    "--list --state Stable",
    "--list --state Dead",
    "--list --state bogus",
    "--list --type",
    "--list --type classic",
    "--list --type consumer",
    "--list --type bogus",
    "--list --state --type",
    "--list --state Empty --type Classic",
];

const DESCRIPTIONS: [&str; 12] = [
    "--describe --group cg",
    "--describe --group cg --offsets",
    "--describe --group cg --offsets --verbose",
    "--describe --group cg --members",
    "--describe --group cg --members --verbose",
    "--describe --group cg --state",
    "--describe --group cg --state --verbose",
    "--describe --all-groups",
    "--describe --all-groups --state",
    "--describe --group cg --group missing",
    "--describe --group missing --members",
    "--describe --group missing --state",
];

const RESETS: [&str; 28] = [
    "--group cg --reset-offsets --topic tb --to-earliest",
    "--group cg --reset-offsets --topic tb --to-earliest --dry-run",
    "--describe --group cg",
    "--group cg --reset-offsets --topic tb --to-earliest --execute",
    "--describe --group cg",
    "--group cg --reset-offsets --topic tb --to-offset 2 --execute",
    "--group cg --reset-offsets --topic tb --to-offset 99 --execute",
    "--group cg --reset-offsets --topic tb --shift-by -1 --execute",
    "--group cg --reset-offsets --topic tb --shift-by -99 --execute",
    "--group cg --reset-offsets --topic tb:0 --shift-by 2 --execute",
    "--group cg --reset-offsets --topic tb --to-current --execute",
    "--group cg --reset-offsets --topic tb --to-latest --execute",
    "--group cg --reset-offsets --topic tb --to-datetime 2020-01-01T00:00:00.000 --execute",
    "--group cg --reset-offsets --topic tb --to-datetime 2099-01-01T00:00:00.000 --execute",
    "--group cg --reset-offsets --topic tb --by-duration PT1H --execute",
    "--group cg --reset-offsets --topic tb --by-duration PT0S --execute",
    "--group cg --reset-offsets --all-topics --to-earliest --execute",
    "--group cg --reset-offsets --topic ta --to-earliest --execute",
    "--group cg --reset-offsets --topic ta:0,1 --to-latest --execute",
    "--group cg --reset-offsets --topic missing --to-latest --execute",
    "--group cg --reset-offsets --all-topics --to-current --export --dry-run",
    "--group new --reset-offsets --topic tb --to-earliest --execute",
    "--all-groups --reset-offsets --topic tb --to-latest --execute",
    "--describe --group new",
    "--describe --all-groups",
    "--list --state",
    "--group cg --delete-offsets --topic ta:1",
    "--describe --group cg",
];

const STREAMS_RESETS: [&str; 3] = [
    "--application-id cg --input-topics tb",
    "--application-id cg --input-topics tb --to-latest",
    "--application-id missing --input-topics tb --dry-run",
];

const DELETIONS: [&str; 10] = [
    "--group cg --delete-offsets --topic ta",
    "--group cg --delete-offsets --topic ta:9",
    "--group cg --delete-offsets --topic missing",
    "--group missing --delete-offsets --topic ta",
    "--describe --group cg",
    "--group missing --delete",
    "--group cg --delete",
    "--group new --group missing --delete",
    "--list",
    "--describe --group cg",
];

/// B133: what the topic of groups holds is read by Kafka's own schemas; a consumer without a group
/// would add to it.
const FORMATTERS: [&str; 2] = [
    "--topic __consumer_offsets --partition 0 --offset earliest --timeout-ms 1500 --formatter \
     org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
    "--topic __consumer_offsets --partition 0 --offset earliest --timeout-ms 1500 --formatter \
     org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter",
];

#[test]
fn active_groups() {
    let (ours, theirs) = both();
    assert_no_difference(&ours, &theirs, &topics_with_records(), normal);
    let members = [&ours, &theirs].map(reader);
    let all = [
        groups(&[
            "--list --state",
            "--describe --group active",
            "--describe --group active --members",
            "--describe --group active --members --verbose",
            "--describe --group active --state",
            "--describe --all-groups",
            "--group active --delete",
            "--group active --delete-offsets --topic tb",
            "--group active --delete-offsets --topic ta",
            "--group active --reset-offsets --topic tb --to-earliest --execute",
        ]),
        steps("kafka-groups", &["--list"]),
        steps(
            "kafka-streams-application-reset",
            &[
                "--application-id active --input-topics tb",
                "--application-id active --input-topics tb --force",
            ],
        ),
        groups(&["--describe --group active --state"]),
    ];
    assert_no_difference(&ours, &theirs, &all.concat(), normal);
    drop(members);
}

#[test]
fn active_groups_of_the_consumer_protocol() {
    let (ours, theirs) = both();
    assert_no_difference(&ours, &theirs, &topics_with_records(), normal);
    let members = [&ours, &theirs].map(|broker| reader_by(broker, "group.protocol=consumer"));
    let configs = |lines: &[&str]| steps("kafka-configs", lines);
    let all = [
        groups(&[
            "--list --state",
            "--list --type",
            "--list --type consumer",
            "--list --state stable --type consumer",
            "--describe --group active",
            "--describe --group active --offsets --verbose",
            "--describe --group active --members",
            "--describe --group active --members --verbose",
            "--describe --group active --state",
            "--describe --group active --state --verbose",
            "--describe --all-groups --members",
            "--group active --delete",
            "--group active --delete-offsets --topic tb",
            "--group active --delete-offsets --topic ta",
            "--group active --reset-offsets --topic tb --to-earliest --execute",
        ]),
        steps(
            "kafka-groups",
            &[
                "--list",
                "--list --consumer",
                "--list --group-type consumer",
            ],
        ),
        configs(&[
            "--describe --entity-type groups",
            "--describe --entity-type groups --entity-name active",
            "--describe --entity-type groups --entity-name active --all",
            "--alter --entity-type groups --entity-name active --add-config \
             consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000",
            "--describe --entity-type groups --entity-name active",
            "--describe --entity-type groups",
            "--alter --entity-type groups --entity-name active --add-config \
             consumer.session.timeout.ms=1",
            "--alter --entity-type groups --entity-name active --add-config no.such=1",
            "--alter --entity-type groups --entity-name active --delete-config \
             consumer.session.timeout.ms",
            "--describe --entity-type groups --entity-name active",
        ]),
        steps(
            "kafka-streams-application-reset",
            &["--application-id active --input-topics tb"],
        ),
    ];
    assert_no_difference(&ours, &theirs, &all.concat(), normal);
    for member in members {
        member.signal(Signal::SIGTERM);
        member.wait_exit(LIMIT);
    }
    let after = groups(&[
        "--describe --group active",
        "--describe --group active --members",
        "--describe --group active --state",
        "--group active --reset-offsets --topic tb --to-earliest --execute",
        "--list --state",
        "--group active --delete",
        "--list",
    ]);
    assert_no_difference(&ours, &theirs, &after, normal);
}

/// A member of the group `active` that has read all of `tb`.
fn reader(broker: &Broker) -> Running {
    reader_by(broker, "group.protocol=classic")
}

fn reader_by(broker: &Broker, protocol: &str) -> Running {
    let bootstrap = broker.bootstrap();
    let arguments = [
        "--bootstrap-server",
        &bootstrap,
        "--topic",
        "tb",
        "--group",
        "active",
        "--from-beginning",
        "--consumer-property",
        "auto.commit.interval.ms=100",
        "--consumer-property",
        protocol,
    ];
    let member = stock_beside("kafka-console-consumer", &arguments);
    member.wait_for_line(0, |line| line == "four", LIMIT);
    member
}
