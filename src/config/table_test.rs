//! The tables against what Apache Kafka 4.1.2 itself said of its options.

use super::broker_keys::BROKER_KEYS;
use super::client_metrics::CLIENT_METRICS_KEYS;
use super::group::GROUP_KEYS;
use super::key::{Default, Key, Mode, Synonym};
use super::quota::{CLIENT_QUOTA_KEYS, DYNAMIC_ONLY_KEYS, IP_QUOTA_KEYS};
use super::topic::TOPIC_KEYS;

const KAFKA: &str = include_str!("testdata/kafka-4.1.2-configs.tsv");

fn tables() -> [(&'static str, &'static [Key]); 7] {
    [
        ("broker", BROKER_KEYS),
        ("broker-dynamic-only", DYNAMIC_ONLY_KEYS),
        ("topic", TOPIC_KEYS),
        ("group", GROUP_KEYS),
        ("client-metrics", CLIENT_METRICS_KEYS),
        ("quota user/client-id", CLIENT_QUOTA_KEYS),
        ("quota ip", IP_QUOTA_KEYS),
    ]
}

fn line(scope: &str, key: &Key) -> String {
    let default = match key.default {
        Default::Required => "<required>",
        Default::Null => "null",
        Default::Text("") => "\"\"",
        Default::Text(text) => text,
    };
    let mode = match key.mode {
        Mode::ReadOnly => "read-only",
        Mode::PerBroker => "per-broker",
        Mode::ClusterWide => "cluster-wide",
        Mode::Dynamic => "dynamic",
    };
    let synonym = |one: &Synonym| match one.factor {
        1 => one.name.to_owned(),
        factor => format!("{}(x{factor})", one.name),
    };
    let synonyms: Vec<String> = key.synonyms.iter().map(synonym).collect();
    [
        scope,
        key.name,
        key.kind.name(),
        default,
        &key.valid.describe(),
        mode,
        &key.sensitive().to_string(),
        &key.internal().to_string(),
        &if synonyms.is_empty() {
            "-".to_owned()
        } else {
            synonyms.join(" > ")
        },
    ]
    .join("\t")
}

#[test]
fn the_tables_equal_kafkas_in_every_column() {
    let mut ours: Vec<String> = tables()
        .iter()
        .flat_map(|(scope, table)| table.iter().map(|key| line(scope, key)))
        .collect();
    let mut kafkas: Vec<&str> = KAFKA.lines().skip(1).collect();
    ours.sort_unstable();
    kafkas.sort_unstable();
    assert_eq!(ours.len(), 391);
    for (our, kafka) in ours.iter().zip(kafkas) {
        assert_eq!(our, kafka);
    }
}

#[test]
fn every_default_is_of_its_type_and_in_its_bounds() {
    for key in tables().iter().flat_map(|(_, table)| *table) {
        if let Some(text) = key.default_text() {
            let value = key.read(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(value.print(), text, "{}", key.name);
        }
    }
}

#[test]
fn every_synonym_is_an_option_of_the_broker() {
    for synonym in TOPIC_KEYS
        .iter()
        .chain(GROUP_KEYS)
        .flat_map(|key| key.synonyms)
    {
        assert!(
            super::key::find(BROKER_KEYS, synonym.name).is_some(),
            "{}",
            synonym.name
        );
    }
}
#[test]
fn every_option_is_explained_in_a_sentence_of_its_own() {
    let keys: Vec<&Key> = tables().iter().flat_map(|(_, table)| *table).collect();
    for key in &keys {
        assert!(
            key.doc.len() > 20 && key.doc.ends_with('.'),
            "{}: {}",
            key.name,
            key.doc
        );
    }
}
