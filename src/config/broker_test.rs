//! Starts against what Apache Kafka 4.1.2 says of the same options, and what options mean.

use super::broker_keys::BrokerConfig;
use super::properties;
use super::{ConfigError, Values};

const STARTS: &str = include_str!("testdata/kafka-4.1.2-starts.tsv");

/// A broker whose controller is elsewhere.
const BROKER: &str = "process.roles~broker|node.id~1|controller.quorum.voters~2@h:1|\
                      controller.listener.names~C|";
/// The same with every protocol spelled out.
const SECURE: &str = "listener.security.protocol.map~C:PLAINTEXT,PLAINTEXT:PLAINTEXT,\
                      SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL|";

/// Where we part from Kafka on purpose: what is left out has a value here, a node can be its own
/// quorum, and what cannot work is refused at once.
const OURS: &[(&str, &str)] = &[
    ("process.roles~broker", "If using process.roles, either"),
    ("node.id~1", "OK"),
    ("process.roles~broker,controller|node.id~1", "OK"),
    (
        "process.roles~|node.id~1|controller.quorum.voters~2@h:1|controller.listener.names~C|\
         listeners~PLAINTEXT://:9092",
        "Missing required configuration \"process.roles\"",
    ),
    (
        "process.roles~broker,controller|node.id~1|controller.quorum.voters~|\
         controller.listener.names~C|listeners~PLAINTEXT://:9092,C://:9093",
        "OK",
    ),
    ("B|log.cleaner.threads~0", "OK"),
    // Clients are told the address that they reached.
    ("B|listeners~PLAINTEXT://0.0.0.0:9092", "OK"),
    (
        "B|listeners~PLAINTEXT://a:99999",
        "Error creating broker listeners from",
    ),
    (
        "B|listeners~PLAINTEXT://a:-1",
        "Error creating broker listeners from",
    ),
];

fn start(text: &str) -> Result<BrokerConfig, ConfigError> {
    let pair = |item: &str| {
        let (name, value) = item.split_once('~').unwrap();
        (name.to_owned(), value.to_owned())
    };
    let text = match (text.strip_prefix("B|"), text.strip_prefix("S|")) {
        (Some(rest), _) => format!("{BROKER}{rest}"),
        (_, Some(rest)) => format!("{BROKER}{SECURE}{rest}"),
        (None, None) => text.to_owned(),
    };
    let pairs: Vec<_> = text.split('|').map(pair).collect();
    BrokerConfig::from_properties(&pairs).map(|(config, _)| config)
}

#[test]
fn what_kafka_refuses_to_start_with_is_refused_in_the_same_words() {
    let mut wrong = Vec::new();
    for line in STARTS.lines() {
        let (given, kafka) = line.split_once('\t').unwrap();
        let ours = start(given).map_or_else(|error| error.message, |_| "OK".to_owned());
        let expected = OURS
            .iter()
            .find(|(on, _)| *on == given)
            .map(|(_, text)| *text);
        let as_expected = expected.is_some_and(|text| ours.starts_with(text));
        if ours != kafka && !as_expected {
            wrong.push(format!("{given}\n  kafka: {kafka}\n  ours:  {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_node_without_any_option_serves_alone() {
    let (config, warnings) = BrokerConfig::from_properties(&[]).unwrap();
    assert_eq!((config.node_id, config.broker_id), (1, 1));
    assert!(config.roles.broker && config.roles.controller);
    assert_eq!(config.endpoints.listeners.len(), 1);
    assert!(config.endpoints.controllers.is_empty() && config.voters.is_empty());
    assert_eq!(config.data_dirs(), ["/tmp/kafka-logs"]);
    assert_eq!(warnings, super::Warnings::default());
}

#[test]
fn the_default_node_is_that_of_the_official_image() {
    let given = properties::over_single_node_defaults(&[]);
    let (config, warnings) = BrokerConfig::from_properties(&given).unwrap();
    assert_eq!(
        super::listeners::print(&config.endpoints.listeners),
        "PLAINTEXT://localhost:9092"
    );
    assert_eq!(
        super::listeners::print(&config.endpoints.advertised),
        "PLAINTEXT://localhost:9092"
    );
    assert_eq!(config.offsets_topic_replication_factor, 1);
    assert_eq!(config.transaction_state_log_min_isr, 1);
    assert_eq!(config.share_coordinator_state_topic_min_isr, 1);
    assert_eq!(warnings, super::Warnings::default());
}

#[test]
fn the_last_of_two_values_counts() {
    let given = properties::parse("num.partitions=2\nnum.partitions=3\n");
    let (config, _) = BrokerConfig::from_properties(&given).unwrap();
    assert_eq!(config.num_partitions, 3);
}

#[test]
fn an_id_may_come_under_its_older_name() {
    let config = start("broker.id~7").unwrap();
    assert_eq!((config.node_id, config.broker_id), (7, 7));
}

#[test]
fn unknown_options_and_those_without_effect_are_named() {
    let given = properties::parse(
        "zookeeper.connect=x\nsuper.users=User:a;User:b\nsasl.kerberos.service.name=kafka\n\
         listener.name.plaintext.max.connections=5\nlistener.name.plaintext.nope=5\n\
         num.io.threads=8\nnum.network.threads=9\n",
    );
    let (config, warnings) = BrokerConfig::from_properties(&given).unwrap();
    assert_eq!(
        warnings.unknown,
        ["listener.name.plaintext.nope", "zookeeper.connect"]
    );
    assert_eq!(
        warnings.without_effect,
        ["num.network.threads", "sasl.kerberos.service.name"]
    );
    assert_eq!(config.super_users(), ["User:a", "User:b"]);
}

#[test]
fn a_listeners_option_stands_before_the_brokers() {
    let given = properties::parse(
        "sasl.jaas.config=all\nlistener.name.plaintext.sasl.jaas.config=plain listener\n\
         listener.name.plaintext.scram-sha-256.sasl.jaas.config=scram\n\
         listener.name.plaintext.max.connections=5\n",
    );
    let (config, _) = BrokerConfig::from_properties(&given).unwrap();
    let secret = |listener, mechanism| {
        let seen = config.on_listener(listener, mechanism).unwrap();
        seen.sasl_jaas_config.unwrap().reveal().to_owned()
    };
    assert_eq!(secret("OTHER", None), "all");
    assert_eq!(secret("PLAINTEXT", Some("PLAIN")), "plain listener");
    assert_eq!(secret("PLAINTEXT", Some("SCRAM-SHA-256")), "scram");
    assert_eq!(
        config
            .on_listener("PLAINTEXT", None)
            .unwrap()
            .max_connections,
        5
    );
    assert_eq!(config.max_connections, i32::MAX);
}

#[test]
fn a_topic_takes_what_it_does_not_set_from_the_broker() {
    let given = properties::parse(
        "log.retention.minutes=500\nlog.roll.hours=2\nmessage.max.bytes=77\nlog.cleanup.policy=compact\n",
    );
    let (config, _) = BrokerConfig::from_properties(&given).unwrap();
    let own = Values::from([("segment.ms".to_owned(), "9".to_owned())]);
    let topic = config.topic(&own).unwrap();
    assert_eq!((topic.retention_ms, topic.segment_ms), (30_000_000, 9));
    assert_eq!(topic.max_message_bytes, 77);
    assert_eq!(topic.flush_ms, i64::MAX);
    assert!(topic.cleanup().compact && !topic.cleanup().delete);
    assert_eq!(config.topic(&Values::new()).unwrap().segment_ms, 7_200_000);
}

#[test]
fn fields_are_named_like_their_options() {
    let source = include_str!("broker_keys.rs");
    let rows = source
        .lines()
        .filter(|line| line.starts_with("    \""))
        .count();
    assert_eq!(rows, super::broker_keys::BROKER_KEYS.len());
    for key in super::broker_keys::BROKER_KEYS {
        assert!(
            source.contains(&format!("{}: ", key.name.replace('.', "_"))),
            "{}",
            key.name
        );
    }
}

#[test]
fn secrets_do_not_show_when_printed() {
    let given = properties::parse("ssl.key.password=hush\nlistener.name.x.sasl.jaas.config=hush\n");
    let (config, _) = BrokerConfig::from_properties(&given).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    assert_eq!(config.ssl_key_password.unwrap().reveal(), "hush");
}
