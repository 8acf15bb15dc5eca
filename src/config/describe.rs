//! What DescribeConfigs answers: every option of a resource with its value, where it comes from,
//! and all the values it could have. The rules are those of Kafka's `ConfigHelper`; what
//! CreateTopics tells of a new topic follows the slightly different ones of `KafkaConfigSchema`.

use super::Values;
use super::broker::{self, Given, base_name};
use super::broker_keys::{BROKER_KEYS, BrokerConfig};
use super::client_metrics::CLIENT_METRICS_KEYS;
use super::error::ConfigError;
use super::group::GROUP_KEYS;
use super::key::{self, ConfigType, Key};
use super::order;
use super::quota::DYNAMIC_ONLY_KEYS;
use super::topic::TOPIC_KEYS;

/// Where a value comes from; the numbers are those of DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum Source {
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
    DynamicBrokerLogger = 6,
    ClientMetrics = 7,
    Group = 8,
}

impl Source {
    /// The number on the wire.
    pub(crate) fn id(self) -> i8 {
        self as i8
    }
}

/// One option of a described resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Nothing for a null and for a secret.
    pub(crate) value: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) source: Source,
    pub(crate) sensitive: bool,
    pub(crate) kind: ConfigType,
    pub(crate) documentation: Option<&'static str>,
    pub(crate) synonyms: Vec<Alternative>,
}

/// A value that the option has, or would have if those before it were not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alternative {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) source: Source,
}

/// Where a broker's options come from, the nearest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layers {
    /// The file the broker started with, as [`BrokerConfig::from_properties`] completed it.
    pub(crate) file: Given,
    /// Set while running, for all brokers.
    pub(crate) cluster: Given,
    /// Set while running, for this broker.
    pub(crate) node: Given,
}

impl Layers {
    /// All layers in one. A nearer option puts away the farther ones that mean the same in
    /// another unit, so that precedence among layers goes before precedence among units.
    pub(crate) fn merged(&self) -> Values {
        let mut merged = self.file.0.clone();
        for (name, value) in self.cluster.iter().chain(self.node.iter()) {
            for synonym in units_of(name) {
                merged.remove(*synonym);
            }
            merged.insert(name.clone(), value.clone());
        }
        merged
    }

    /// The broker as all layers make it.
    pub(crate) fn config(&self) -> Result<BrokerConfig, ConfigError> {
        BrokerConfig::from_values(self.merged())
    }

    /// The broker as all layers make it, without the dynamic values that it cannot read, and the
    /// names of those.
    pub(crate) fn readable_config(&self) -> Result<(BrokerConfig, Vec<String>), ConfigError> {
        let (cluster, mut unreadable) = readable(&self.cluster);
        let (node, more) = readable(&self.node);
        unreadable.extend(more);
        let layers = Self {
            file: self.file.clone(),
            cluster: Given(cluster),
            node: Given(node),
        };
        let config = layers
            .config()
            .or_else(|_| BrokerConfig::from_values(self.file.0.clone()))?;
        Ok((config, unreadable))
    }

    fn named(&self) -> [(&Values, Source); 3] {
        [
            (&self.node, Source::DynamicBroker),
            (&self.cluster, Source::DynamicDefaultBroker),
            (&self.file, Source::StaticBroker),
        ]
    }

    /// The values of some broker options, layer by layer, from the first one of that name on.
    fn alternatives(&self, primary: &str, names: &[&str], sensitive: bool) -> Vec<Alternative> {
        let mut found = Vec::new();
        for (layer, source) in self.named() {
            for name in names {
                if let Some(value) = layer.get(*name) {
                    found.push(alternative(name, value, source, sensitive));
                }
            }
        }
        for name in names {
            let default = key::find(BROKER_KEYS, name).and_then(Key::default_text);
            if let Some(value) = default {
                found.push(alternative(name, value, Source::Default, sensitive));
            }
        }
        let first = found
            .iter()
            .position(|one| one.name == primary)
            .unwrap_or(found.len());
        found.split_off(first)
    }
}

fn readable(layer: &Values) -> (Values, Vec<String>) {
    let mut unreadable = Vec::new();
    let mut kept = layer.clone();
    kept.retain(|name, value| {
        let fits = definition(name).is_none_or(|key| key.read_as(name, value).is_ok());
        if !fits {
            unreadable.push(name.clone());
        }
        fits
    });
    (kept, unreadable)
}

/// A topic's options with these settings of its own. `config` is the broker that `layers` make.
pub(crate) fn topic(own: &Values, layers: &Layers, config: &BrokerConfig) -> Vec<Entry> {
    let shown = |key: &&Key| !key.internal() || own.contains_key(key.name);
    let mut entries: Vec<Entry> = TOPIC_KEYS
        .iter()
        .filter(shown)
        .map(|key| topic_entry(key, own, layers, config))
        .collect();
    order::like_kafka(&mut entries, |entry| &entry.name);
    entries
}

fn topic_entry(key: &'static Key, own: &Values, layers: &Layers, config: &BrokerConfig) -> Entry {
    let value = effective(key, own, config);
    let mut synonyms = match key.synonyms.first() {
        Some(primary) => {
            let names: Vec<&str> = key.synonyms.iter().map(|synonym| synonym.name).collect();
            layers.alternatives(primary.name, &names, key.sensitive())
        }
        None => Vec::new(),
    };
    if own.contains_key(key.name) {
        let text = value.as_deref().unwrap_or_default();
        synonyms.insert(
            0,
            alternative(key.name, text, Source::Topic, key.sensitive()),
        );
    }
    entry(key, key.name, value, false, synonyms)
}

/// The value of a topic's or group's option, read and printed again.
fn effective(key: &Key, own: &Values, config: &BrokerConfig) -> Option<String> {
    let supplied = || {
        config
            .supplied(key)
            .or_else(|| key.default_text().map(str::to_owned))
    };
    let text = own.get(key.name).cloned().or_else(supplied)?;
    Some(key.read(&text).map_or(text, |value| value.print()))
}

/// The options of the broker that was asked.
pub(crate) fn node(layers: &Layers, config: &BrokerConfig) -> Vec<Entry> {
    let merged = layers.merged();
    let table = BROKER_KEYS
        .iter()
        .filter(|key| !key.internal())
        .map(|key| key.name);
    let mut names: Vec<&str> = table.chain(merged.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let mut entries: Vec<Entry> = names
        .into_iter()
        .map(|name| {
            let known = key::find(BROKER_KEYS, name).is_some();
            let value = if known {
                config.print(name)
            } else {
                merged.get(name).cloned()
            };
            broker_entry(name, value, layers)
        })
        .collect();
    order::like_kafka(&mut entries, |entry| &entry.name);
    entries
}

/// The options that were set for all brokers at once.
pub(crate) fn cluster_default(layers: &Layers) -> Vec<Entry> {
    let one = |(name, value): (&String, &String)| {
        let mut entry = broker_entry(name, Some(value.clone()), layers);
        entry
            .synonyms
            .retain(|synonym| synonym.source == Source::DynamicDefaultBroker);
        entry.source = entry
            .synonyms
            .first()
            .map_or(Source::Default, |first| first.source);
        entry
    };
    let mut entries: Vec<Entry> = layers.cluster.iter().map(one).collect();
    order::like_kafka(&mut entries, |entry| &entry.name);
    entries
}

fn broker_entry(name: &str, value: Option<String>, layers: &Layers) -> Entry {
    let units = units_of(name);
    let names: Vec<&str> = match base_name(name) {
        Some(base) => vec![name, base],
        None if units.is_empty() => vec![name],
        None => units.to_vec(),
    };
    let definition = definition(name);
    let sensitive = definition.is_none_or(Key::sensitive);
    let synonyms = layers.alternatives(name, &names, sensitive);
    // Only the table's own names count as dynamic, and the rates of replication do not.
    let read_only = !key::find(BROKER_KEYS, name).is_some_and(Key::dynamic);
    match definition {
        Some(key) => entry(key, name, value, read_only, synonyms),
        None => Entry {
            name: name.to_owned(),
            value: None,
            read_only,
            source: source_of(&synonyms),
            sensitive,
            kind: ConfigType::Unknown,
            documentation: None,
            synonyms,
        },
    }
}

/// The row that says what a broker's option is, under whatever name it is given.
pub(super) fn definition(name: &str) -> Option<&'static Key> {
    broker::option(name).or_else(|| key::find(DYNAMIC_ONLY_KEYS, name))
}

/// A group's options with these settings of its own.
pub(crate) fn group(own: &Values, config: &BrokerConfig) -> Vec<Entry> {
    let one = |key: &'static Key| {
        let value = effective(key, own, config);
        let source = if own.contains_key(key.name) {
            Source::Group
        } else {
            Source::Default
        };
        let text = value.as_deref().unwrap_or_default();
        let synonyms = vec![alternative(key.name, text, source, key.sensitive())];
        entry(key, key.name, value, false, synonyms)
    };
    let mut entries: Vec<Entry> = GROUP_KEYS.iter().map(one).collect();
    order::like_kafka(&mut entries, |entry| &entry.name);
    entries
}

/// The options of a client-metrics subscription; one that does not exist shows the defaults.
pub(crate) fn client_metrics(own: &Values) -> Vec<Entry> {
    let one = |key: &'static Key| {
        let given = own.get(key.name);
        let value = given.map(String::as_str).or_else(|| key.default_text());
        let synonyms = given
            .map(|text| vec![alternative(key.name, text, Source::ClientMetrics, false)])
            .unwrap_or_default();
        entry(key, key.name, value.map(str::to_owned), false, synonyms)
    };
    let mut entries: Vec<Entry> = CLIENT_METRICS_KEYS.iter().map(one).collect();
    order::like_kafka(&mut entries, |entry| &entry.name);
    entries
}

/// What CreateTopics tells of a new topic, by name. Here a value in another unit counts, and no
/// alternatives are told.
pub(crate) fn created_topic(own: &Values, layers: &Layers) -> Vec<Entry> {
    let one = |key: &'static Key| {
        let (value, source) = created_value(key, own, layers);
        Entry {
            source,
            ..entry(key, key.name, value, false, Vec::new())
        }
    };
    let public = TOPIC_KEYS.iter().filter(|key| !key.internal());
    let mut entries: Vec<Entry> = public.map(one).collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

fn created_value(key: &Key, own: &Values, layers: &Layers) -> (Option<String>, Source) {
    if let Some(text) = own.get(key.name) {
        return (Some(text.clone()), Source::Topic);
    }
    for (layer, source) in layers.named() {
        for synonym in key.synonyms {
            if let Some(text) = layer.get(synonym.name) {
                return (Some(in_unit(text, synonym.factor)), source);
            }
        }
    }
    (key.default_text().map(str::to_owned), Source::Default)
}

fn in_unit(text: &str, factor: i64) -> String {
    match text.trim().parse::<i64>() {
        Ok(number) if factor != 1 => number.saturating_mul(factor).to_string(),
        Ok(_) | Err(_) => text.to_owned(),
    }
}

fn entry(
    key: &'static Key,
    name: &str,
    value: Option<String>,
    read_only: bool,
    synonyms: Vec<Alternative>,
) -> Entry {
    Entry {
        name: name.to_owned(),
        value: value.filter(|_| !key.sensitive()),
        read_only,
        source: source_of(&synonyms),
        sensitive: key.sensitive(),
        kind: key.kind,
        documentation: Some(key.doc),
        synonyms,
    }
}

fn source_of(synonyms: &[Alternative]) -> Source {
    synonyms
        .first()
        .map_or(Source::Default, |first| first.source)
}

fn alternative(name: &str, value: &str, source: Source, sensitive: bool) -> Alternative {
    let value = (!sensitive).then(|| value.to_owned());
    Alternative {
        name: name.to_owned(),
        value,
        source,
    }
}

/// Keeps the options that were asked for; an empty list asks for all.
pub(crate) fn only(mut entries: Vec<Entry>, names: &[String]) -> Vec<Entry> {
    if !names.is_empty() {
        entries.retain(|entry| names.contains(&entry.name));
        order::like_kafka(&mut entries, |entry| &entry.name);
    }
    entries
}

/// The options that say the same as this one in different units, by precedence.
fn units_of(name: &str) -> &'static [&'static str] {
    let same = |units: &&&[&str]| units.contains(&name);
    match UNITS.iter().find(same) {
        // The scheduler's interval stands in for the flush interval, but not the other way round.
        Some(units) if name != "log.flush.scheduler.interval.ms" => units,
        Some(_) | None => &[],
    }
}

const UNITS: &[&[&str]] = &[
    &[
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ],
    &["log.roll.ms", "log.roll.hours"],
    &["log.roll.jitter.ms", "log.roll.jitter.hours"],
    &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"],
];
