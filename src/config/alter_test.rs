//! Alterations against what a node of Apache Kafka 4.1.2 answered, which had been started and
//! altered like the one of the description tests.

use super::alter::{self, Alteration, BrokerTarget, Operation, Resource};
use super::client_metrics::plausible_pattern;
use super::describe_test::{later, t1_later, values};
use super::{ConfigError, ErrorKind, Values};

const RECORDED: &str = include_str!("testdata/kafka-4.1.2-alterations.tsv");

/// Where we part from Kafka on purpose, or print another order of names.
const OURS: &[(&str, &str)] = &[
    // A cleaner may rest; Kafka divides by its threads.
    (
        "0~log.cleaner.threads~0",
        "42 Invalid value org.apache.kafka.common.config.ConfigException: \
      Log cleaner threads cannot be reduced to less than half the current value 2",
    ),
    // Scala's set of more than four names has an order of its own, ours is the alphabet's.
    (
        "0~node.id~2|0~broker.id~2|0~log.dir~a",
        "42 Cannot update these configs dynamically: \
      Set(broker.id, log.dir, node.id)",
    ),
    (
        "0~node.id~2|0~broker.id~2|0~log.dir~a|0~log.dirs~b|0~num.partitions~4|0~process.roles~x",
        "42 Cannot update these configs dynamically: HashSet(",
    ),
    (
        "0~ssl.keystore.location~x|0~ssl.keystore.type~JKS|0~ssl.key.password~x|\
      0~ssl.keystore.password~x|0~ssl.truststore.location~s",
        "42 These security configs can be dynamically updated only per-listener using the listener \
      prefix: HashSet(",
    ),
    // We have no class path to look into.
    ("0~metric.reporters~nosuch", "0 "),
];

fn alteration(resource: Resource, text: &str) -> Result<Alteration, ConfigError> {
    let mut parts = text.splitn(3, '~');
    let id: i8 = parts.next().unwrap().parse().unwrap();
    Ok(Alteration {
        name: parts.next().unwrap().to_owned(),
        operation: Operation::from_id(resource, id)?,
        value: parts.next().map(str::to_owned),
    })
}

fn own(kind: &str) -> Values {
    match kind {
        "topic" => t1_later(),
        "node" => later().node.0,
        "cluster" => later().cluster.0,
        "group" => values(&[("consumer.session.timeout.ms", "50000")]),
        _ => Values::new(),
    }
}

fn check(kind: &str, before: &Values, after: &Values) -> Result<(), ConfigError> {
    let (layers, config) = (later(), later().config().unwrap());
    match kind {
        "topic" => alter::check_topic(after, before, &config),
        "node" => alter::check_broker(BrokerTarget::Node, after, &layers, &config),
        "cluster" => alter::check_broker(BrokerTarget::Cluster, after, &layers, &config),
        "group" => alter::check_group(after, &config),
        _ => alter::check_client_metrics(after, &plausible_pattern).map(|_| ()),
    }
}

fn alter(kind: &str, text: &str) -> Result<(), ConfigError> {
    let resource = match kind {
        "topic" => Resource::Topic,
        "node" | "cluster" => Resource::Broker,
        "group" => Resource::Group,
        _ => Resource::ClientMetrics,
    };
    let alterations = text
        .split('|')
        .map(|one| alteration(resource, one))
        .collect::<Result<Vec<_>, _>>()?;
    alter::check_request(&alterations)?;
    let before = own(kind);
    let after = alter::apply(resource, &before, &alterations)?;
    check(kind, &before, &after)?;
    match kind {
        "node" => alter::check_elr(BrokerTarget::Node, &alterations),
        "cluster" => alter::check_elr(BrokerTarget::Cluster, &alterations),
        _ => Ok(()),
    }
}

fn pairs(text: &str) -> Vec<(String, Option<String>)> {
    let pair = |item: &str| match item.split_once('~') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (item.to_owned(), None),
    };
    text.split('|').map(pair).collect()
}

fn replace(kind: &str, text: &str) -> Result<(), ConfigError> {
    let after = alter::replacement(&pairs(text))?;
    check(kind, &own(kind), &after)
}

fn answer(result: Result<(), ConfigError>) -> String {
    match result {
        Ok(()) => "0 null".to_owned(),
        Err(ConfigError {
            kind: ErrorKind::UnknownServerError,
            ..
        }) => "-1 null".to_owned(),
        Err(ConfigError {
            kind: ErrorKind::InvalidConfig,
            message,
        }) => format!("40 {message}"),
        Err(ConfigError {
            kind: ErrorKind::InvalidRequest,
            message,
        }) => format!("42 {message}"),
    }
}

#[test]
fn every_recorded_alteration_is_answered_as_kafka_answered_it() {
    let mut wrong = Vec::new();
    for line in RECORDED.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [how, kind, text, code, message] = parts.as_slice() else {
            panic!("{line}")
        };
        let ours = answer(match *how {
            "alter" => alter(kind, text),
            "replace" => replace(kind, text),
            _ => alter::check_new_topic(&pairs(text), &later().config().unwrap()).map(|_| ()),
        });
        let expected = OURS
            .iter()
            .find(|(on, _)| on == text)
            .map(|(_, answer)| *answer);
        let as_expected = expected.is_some_and(|answer| ours.starts_with(answer));
        if ours != format!("{code} {message}") && !as_expected {
            wrong.push(format!(
                "{how} {kind} {text}\n  kafka: {code} {message}\n  ours:  {ours}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn appending_starts_from_the_default_and_adds_once() {
    let after = |own: &Values, text: &str| {
        let one = alteration(Resource::Topic, text).unwrap();
        alter::apply(Resource::Topic, own, &[one])
            .unwrap()
            .remove("cleanup.policy")
    };
    let none = Values::new();
    assert_eq!(
        after(&none, "2~cleanup.policy~compact").as_deref(),
        Some("delete,compact")
    );
    assert_eq!(
        after(&none, "2~cleanup.policy~delete").as_deref(),
        Some("delete")
    );
    assert_eq!(after(&none, "3~cleanup.policy~delete").as_deref(), Some(""));
    let both = values(&[("cleanup.policy", "compact,delete")]);
    assert_eq!(
        after(&both, "3~cleanup.policy~compact").as_deref(),
        Some("delete")
    );
    assert_eq!(after(&both, "1~cleanup.policy"), None);
}

#[test]
fn a_value_must_fit_into_a_record() {
    let one = Alteration {
        name: "leader.replication.throttled.replicas".to_owned(),
        operation: Operation::Append,
        value: Some("1:1,".repeat(10_000)),
    };
    let error = alter::apply(Resource::Topic, &Values::new(), &[one]);
    assert!(error.is_ok(), "the same pair counts once");
    let list: Vec<String> = (0..10_000).map(|n| format!("{n}:1")).collect();
    let one = Alteration {
        name: "leader.replication.throttled.replicas".to_owned(),
        operation: Operation::Append,
        value: Some(list.join(",")),
    };
    let error = alter::apply(Resource::Topic, &Values::new(), &[one]).unwrap_err();
    assert_eq!(
        error.message,
        "The configuration value cannot be added because it exceeds the maximum value size of \
         32767 bytes."
    );
}
