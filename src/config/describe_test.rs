//! Descriptions against those that a node of Apache Kafka 4.1.2 gave, with these properties and
//! after these alterations: entry for entry, synonym for synonym, in the same order.

use super::broker_keys::BrokerConfig;
use super::describe::{self, Alternative, Entry, Layers};
use super::properties;
use super::{Given, Values};

const PROPERTIES: &str = include_str!("testdata/described.properties");
const RECORDED: &str = include_str!("testdata/kafka-4.1.2-described.tsv");

pub(super) fn values(pairs: &[(&str, &str)]) -> Values {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The node as it started: eligible leader replicas set their minimum for all brokers.
fn at_first() -> Layers {
    let (config, _) = BrokerConfig::from_properties(&properties::parse(PROPERTIES)).unwrap();
    Layers {
        file: config.given,
        cluster: Given(values(&[("min.insync.replicas", "1")])),
        node: Given::default(),
    }
}

pub(super) fn later() -> Layers {
    Layers {
        file: at_first().file,
        cluster: Given(values(&[
            ("min.insync.replicas", "1"),
            ("log.retention.ms", "8000"),
            ("leader.replication.throttled.rate", "100"),
            ("unknown.k", "v"),
            ("log.cleaner.threads", "2"),
        ])),
        node: Given(values(&[
            ("log.retention.ms", "7000"),
            ("follower.replication.throttled.rate", "100"),
            ("unknown.k2", "v"),
            ("sasl.jaas.config", "pw"),
            ("max.connections", "50"),
            ("listener.name.plaintext.ssl.keystore.location", "/tmp/x"),
        ])),
    }
}

fn t1() -> Values {
    values(&[("cleanup.policy", "compact,delete"), ("segment.ms", "70")])
}

pub(super) fn t1_later() -> Values {
    let mut own = t1();
    own.insert("internal.segment.bytes".to_owned(), "1000".to_owned());
    own
}

fn subscription() -> Values {
    values(&[
        ("interval.ms", "1000"),
        ("match", "client_id=a.*"),
        ("metrics", "a,b"),
    ])
}

fn null(value: Option<&String>) -> &str {
    value.map_or("null", String::as_str)
}

fn line(entry: &Entry) -> String {
    let synonym = |one: &Alternative| {
        format!(
            "{}:{}={};",
            one.source.id(),
            one.name,
            null(one.value.as_ref())
        )
    };
    let synonyms: Vec<String> = entry.synonyms.iter().map(synonym).collect();
    [
        entry.name.clone(),
        null(entry.value.as_ref()).to_owned(),
        entry.read_only.to_string(),
        entry.source.id().to_string(),
        entry.sensitive.to_string(),
        entry.kind.id().to_string(),
        synonyms.join(" "),
    ]
    .join("\t")
}

/// What a client of CreateTopics sees.
fn short_line(entry: &Entry) -> String {
    line(entry)
        .split('\t')
        .take(5)
        .collect::<Vec<_>>()
        .join("\t")
}

fn recorded(title: &str) -> Vec<&'static str> {
    let title = format!("== {title}");
    let after = RECORDED.lines().skip_while(|line| *line != title).skip(1);
    after.take_while(|line| !line.starts_with("== ")).collect()
}

fn same(title: &str, entries: &[Entry]) {
    let ours: Vec<String> = entries.iter().map(line).collect();
    let kafkas = recorded(title);
    for (our, kafka) in ours.iter().zip(&kafkas) {
        assert_eq!(our, kafka, "{title}");
    }
    assert_eq!(ours.len(), kafkas.len(), "{title}");
}

#[test]
fn a_topic_is_described_as_kafka_describes_it() {
    let (layers, config) = (at_first(), at_first().config().unwrap());
    same("t1", &describe::topic(&t1(), &layers, &config));
    let (layers, config) = (later(), later().config().unwrap());
    same("t1 later", &describe::topic(&t1_later(), &layers, &config));
    same(
        "t2 later",
        &describe::topic(&Values::new(), &layers, &config),
    );
}

#[test]
fn the_keys_asked_for_are_described_alone() {
    let (layers, config) = (later(), later().config().unwrap());
    let asked = [
        "retention.ms",
        "segment.ms",
        "nope",
        "cleanup.policy",
        "retention.bytes",
    ];
    let entries = describe::topic(&t1_later(), &layers, &config);
    same(
        "t1 later, some keys",
        &describe::only(entries, &asked.map(str::to_owned)),
    );
    let entries = describe::client_metrics(&subscription());
    same(
        "subscription later, one key",
        &describe::only(entries, &["match".to_owned()]),
    );
}

#[test]
fn a_node_is_described_as_kafka_describes_it() {
    same(
        "node",
        &describe::node(&at_first(), &at_first().config().unwrap()),
    );
    same(
        "node later",
        &describe::node(&later(), &later().config().unwrap()),
    );
}

#[test]
fn the_cluster_default_shows_only_what_was_set() {
    same("cluster", &describe::cluster_default(&at_first()));
    same("cluster later", &describe::cluster_default(&later()));
}

#[test]
fn a_group_shows_the_brokers_values_as_its_defaults() {
    same(
        "group",
        &describe::group(&Values::new(), &at_first().config().unwrap()),
    );
    let own = values(&[("consumer.session.timeout.ms", "50000")]);
    same(
        "group later",
        &describe::group(&own, &later().config().unwrap()),
    );
}

#[test]
fn a_subscription_is_described_as_kafka_describes_it() {
    same("subscription", &describe::client_metrics(&Values::new()));
    same(
        "subscription later",
        &describe::client_metrics(&subscription()),
    );
}

#[test]
fn a_created_topic_is_told_its_values_in_any_unit() {
    for (title, own, layers) in [
        ("created t1", t1(), at_first()),
        ("created t2", Values::new(), later()),
    ] {
        let ours: Vec<String> = describe::created_topic(&own, &layers)
            .iter()
            .map(short_line)
            .collect();
        assert_eq!(ours, recorded(title), "{title}");
    }
}

#[test]
fn a_dynamic_value_nobody_can_read_is_left_out() {
    let mut layers = later();
    layers
        .node
        .0
        .insert("log.cleaner.threads".to_owned(), "many".to_owned());
    let (config, unreadable) = layers.readable_config().unwrap();
    assert_eq!(unreadable, ["log.cleaner.threads"]);
    assert_eq!(
        (config.log_cleaner_threads, config.log_retention_ms),
        (2, Some(7000))
    );
}
