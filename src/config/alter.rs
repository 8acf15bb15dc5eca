//! What AlterConfigs and IncrementalAlterConfigs accept: first the request itself, then the
//! operations, then what they result in. The rules and texts are those of Kafka's
//! `ConfigAdminManager`, `ConfigurationControlManager` and `DynamicBrokerConfig`.

use super::Values;
use super::broker::{Given, base_name};
use super::broker_keys::{BROKER_KEYS, BrokerConfig};
use super::client_metrics::{self, CLIENT_METRICS_KEYS, ClientMetricsConfig};
use super::describe::{self, Layers};
use super::error::ConfigError;
use super::group::GROUP_KEYS;
use super::key::{self, ConfigType, Key, Mode};
use super::quota::DYNAMIC_ONLY_KEYS;
use super::topic::{self, TOPIC_KEYS};
use super::value::{self, Field};

/// What happens to an option; the numbers are those of IncrementalAlterConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    /// The operation of that number. Over an unknown one Kafka's controller fails without a text;
    /// brokers' options are looked at by the broker first, which has one.
    pub(crate) fn from_id(resource: Resource, id: i8) -> Result<Self, ConfigError> {
        let unknown = format!("Unknown operations type {id}");
        match (id, resource) {
            (0, _) => Ok(Self::Set),
            (1, _) => Ok(Self::Delete),
            (2, _) => Ok(Self::Append),
            (3, _) => Ok(Self::Subtract),
            (_, Resource::Broker) => Err(ConfigError::request(unknown)),
            (_, Resource::Topic | Resource::Group | Resource::ClientMetrics) => {
                Err(ConfigError::unknown(unknown))
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Delete => "DELETE",
            Self::Append => "APPEND",
            Self::Subtract => "SUBTRACT",
        }
    }
}

/// One option of a resource that a request alters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alteration {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) value: Option<String>,
}

/// A resource whose options can be altered, loggers aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Topic,
    /// A named broker, or all of them.
    Broker,
    Group,
    ClientMetrics,
}

impl Resource {
    fn table(self) -> &'static [Key] {
        match self {
            Self::Topic => TOPIC_KEYS,
            Self::Broker => BROKER_KEYS,
            Self::Group => GROUP_KEYS,
            Self::ClientMetrics => CLIENT_METRICS_KEYS,
        }
    }

    /// Kafka knows which options are lists for topics and brokers only.
    fn list(self, name: &str) -> Option<&'static Key> {
        match self {
            Self::Topic | Self::Broker => {
                key::find(self.table(), name).filter(|key| key.kind == ConfigType::List)
            }
            Self::Group | Self::ClientMetrics => None,
        }
    }
}

/// Refuses a request that names an option twice, or gives no value where one is needed.
pub(crate) fn check_request(alterations: &[Alteration]) -> Result<(), ConfigError> {
    let mut names: Vec<&str> = alterations.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    if names
        .windows(2)
        .any(|pair| matches!(pair, [one, next] if one == next))
    {
        return Err(ConfigError::request("Error due to duplicate config keys"));
    }
    let missing = |one: &&Alteration| one.operation != Operation::Delete && one.value.is_none();
    let nulls = alterations
        .iter()
        .filter(missing)
        .map(|one| one.name.as_str());
    refuse_nulls(&nulls.collect::<Vec<_>>())
}

fn refuse_nulls(names: &[&str]) -> Result<(), ConfigError> {
    match names.is_empty() {
        true => Ok(()),
        false => Err(ConfigError::request(format!(
            "Null value not supported for : {}",
            names.join(", ")
        ))),
    }
}

/// The settings that AlterConfigs gives in place of all that are there.
pub(crate) fn replacement(given: &[(String, Option<String>)]) -> Result<Values, ConfigError> {
    refuse_nulls(&nulls(given))?;
    Ok(without_nulls(given))
}

fn nulls(given: &[(String, Option<String>)]) -> Vec<&str> {
    let null = |(_, value): &&(String, Option<String>)| value.is_none();
    given
        .iter()
        .filter(null)
        .map(|(name, _)| name.as_str())
        .collect()
}

fn without_nulls(given: &[(String, Option<String>)]) -> Values {
    let pair = |(name, value): &(String, Option<String>)| Some((name.clone(), value.clone()?));
    given.iter().filter_map(pair).collect()
}

/// The settings of a resource after a request. A broker's lists are checked first by the broker
/// that the request reached, in words of its own.
pub(crate) fn apply(
    resource: Resource,
    own: &Values,
    alterations: &[Alteration],
) -> Result<Values, ConfigError> {
    let mut result = own.clone();
    for one in alterations {
        let value = one.value.as_deref().unwrap_or_default();
        let changed = match one.operation {
            Operation::Set => Some(value.to_owned()),
            Operation::Delete => None,
            Operation::Append | Operation::Subtract => {
                let key = list_key(resource, one)?;
                Some(change_list(key, own.get(&one.name), one.operation, value))
            }
        };
        match changed {
            Some(text) if text.len() > VALUE_MAX_BYTES => {
                return Err(ConfigError::config(format!(
                    "The configuration value cannot be added because it exceeds the maximum value \
                     size of {VALUE_MAX_BYTES} bytes."
                )));
            }
            Some(text) => result.insert(one.name.clone(), text),
            None => result.remove(&one.name),
        };
    }
    Ok(result)
}

fn list_key(resource: Resource, one: &Alteration) -> Result<&'static Key, ConfigError> {
    let (name, operation) = (&one.name, one.operation);
    if let Some(key) = resource.list(name) {
        return Ok(key);
    }
    if resource == Resource::Broker {
        let plain = [BROKER_KEYS, DYNAMIC_ONLY_KEYS]
            .iter()
            .any(|t| key::find(t, name).is_some());
        return Err(match plain {
            true => ConfigError::config(format!(
                "Config value {} is not allowed for config key: {name}",
                operation.name().to_lowercase()
            )),
            false => ConfigError::unknown(format!("key not found: {name}")),
        });
    }
    Err(ConfigError::config(format!(
        "Can't {} to key {name} because its type is not LIST.",
        operation.name()
    )))
}

/// Adds what is not yet there, or takes away; an unset list starts as its default.
fn change_list(key: &Key, own: Option<&String>, operation: Operation, value: &str) -> String {
    let old = own
        .map(String::as_str)
        .or_else(|| key.default_text())
        .unwrap_or_default();
    let mut items: Vec<&str> = old.split(',').filter(|item| !item.is_empty()).collect();
    for item in value.split(',') {
        match (operation, items.iter().position(|old| *old == item)) {
            (Operation::Append, None) => items.push(item),
            (Operation::Subtract, Some(at)) => {
                items.remove(at);
            }
            _ => {}
        }
    }
    items.join(",")
}

/// Checks the settings that a topic would have; `before` are those it has.
pub(crate) fn check_topic(
    after: &Values,
    before: &Values,
    broker: &BrokerConfig,
) -> Result<(), ConfigError> {
    known(TOPIC_KEYS, after, |name| {
        ConfigError::config(format!("Unknown topic config name: {name}"))
    })?;
    let was_remote = before
        .get("remote.storage.enable")
        .is_some_and(|text| text.eq_ignore_ascii_case("true"));
    broker
        .topic(after)?
        .check(broker.remote_log_storage_system_enable, was_remote)
}

/// Checks the options of a topic that is to be created.
pub(crate) fn check_new_topic(
    given: &[(String, Option<String>)],
    broker: &BrokerConfig,
) -> Result<Values, ConfigError> {
    let nulls = nulls(given);
    if !nulls.is_empty() {
        return Err(ConfigError::config(format!(
            "Null value not supported for topic configs: {}",
            nulls.join(",")
        )));
    }
    let own = without_nulls(given);
    check_topic(&own, &Values::new(), broker)?;
    Ok(own)
}

/// Checks the settings that a group would have.
pub(crate) fn check_group(after: &Values, broker: &BrokerConfig) -> Result<(), ConfigError> {
    known(GROUP_KEYS, after, |name| {
        ConfigError::config(format!("Unknown group config name: {name}"))
    })?;
    broker.group(after)?.check(broker)
}

/// Checks the settings that a client-metrics subscription would have; `valid` says whether a
/// pattern compiles.
pub(crate) fn check_client_metrics(
    after: &Values,
    valid: &dyn Fn(&str) -> bool,
) -> Result<ClientMetricsConfig, ConfigError> {
    known(CLIENT_METRICS_KEYS, after, |name| {
        ConfigError::request(format!("Unknown client metrics configuration: {name}"))
    })?;
    if let Some(text) = after.get("interval.ms") {
        let interval = i32::take(value::parse(ConfigType::Int, "interval.ms", text)?);
        if !(100..=3_600_000).contains(&interval) {
            return Err(ConfigError::request(format!(
                "Invalid value {interval} for interval.ms, interval must be between 100 and \
                 3600000 (1 hour)"
            )));
        }
    }
    let config =
        ClientMetricsConfig::read(&|name| after.get(name).map(|text| text.as_str().into()))?;
    client_metrics::parse_match(&config.match_, valid)?;
    Ok(config)
}

fn known(
    table: &[Key],
    given: &Values,
    refusal: impl Fn(&str) -> ConfigError,
) -> Result<(), ConfigError> {
    match given.keys().find(|name| key::find(table, name).is_none()) {
        Some(name) => Err(refusal(name)),
        None => Ok(()),
    }
}

/// Whose options of brokers are altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrokerTarget {
    /// The broker that was asked.
    Node,
    /// All brokers.
    Cluster,
}

/// Checks the options that one broker, or all, would have while running. `layers` are the present
/// ones and `current` is what they make. Every refusal is INVALID_REQUEST (KAFKA-13609).
pub(crate) fn check_broker(
    target: BrokerTarget,
    after: &Values,
    layers: &Layers,
    current: &BrokerConfig,
) -> Result<(), ConfigError> {
    check_broker_names(target, after).map_err(ConfigError::into_request)?;
    let mut next = layers.clone();
    match target {
        BrokerTarget::Node => next.node = Given(after.clone()),
        BrokerTarget::Cluster => next.cluster = Given(after.clone()),
    }
    let next = next.config().map_err(ConfigError::into_request)?;
    check_step(current, &next).map_err(|error| wrapped(&error).into_request())
}

fn check_broker_names(target: BrokerTarget, after: &Values) -> Result<(), ConfigError> {
    let plain =
        |name: &str, test: &dyn Fn(&Key) -> bool| key::find(BROKER_KEYS, name).is_some_and(test);
    refuse_names(
        after,
        "Set",
        "Cannot update these configs dynamically",
        &|name| plain(name, &|key| !key.dynamic()),
    )?;
    refuse_names(
        after,
        "HashSet",
        "These security configs can be dynamically updated only per-listener using the listener \
         prefix",
        &|name| LISTENERS_ONLY.contains(&name),
    )?;
    for (name, text) in after {
        if let Some(key) = describe::definition(name) {
            let base = base_name(name).unwrap_or(name);
            let read = key.read_as(base, text);
            // Next to the plain option, the listener's is only seen by the listener, whose refusal
            // comes wrapped.
            let hidden = base != name && after.contains_key(base);
            read.map_err(|error| if hidden { wrapped(&error) } else { error })?;
        }
    }
    if target == BrokerTarget::Node {
        return Ok(());
    }
    let only_named = |name: &str| match base_name(name) {
        Some(base) => !FOR_ALL_LISTENERS.contains(&base),
        None => plain(name, &|key| key.mode == Mode::PerBroker),
    };
    refuse_names(
        after,
        "Set",
        "Cannot update these configs at default cluster level, broker id must be specified",
        &only_named,
    )
}

/// How a refusal looks that comes from a part of the broker that would have to change.
fn wrapped(error: &ConfigError) -> ConfigError {
    ConfigError::config(format!(
        "Invalid value org.apache.kafka.common.config.ConfigException: {error} for configuration \
         Invalid dynamic configuration"
    ))
}

/// Refuses all names of a kind at once, printed as the Scala set they are found in.
fn refuse_names(
    after: &Values,
    set: &str,
    why: &str,
    refused: &dyn Fn(&str) -> bool,
) -> Result<(), ConfigError> {
    let names: Vec<&str> = after
        .keys()
        .map(String::as_str)
        .filter(|name| refused(name))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    // Scala's small sets have a class of their own, which does not show its name.
    let set = if names.len() > 4 { "HashSet" } else { set };
    Err(ConfigError::config(format!(
        "{why}: {set}({})",
        names.join(", ")
    )))
}

/// What a running broker refuses to do at once: more than double its threads or less than half.
fn check_step(current: &BrokerConfig, next: &BrokerConfig) -> Result<(), ConfigError> {
    for name in THREADS {
        let number = |config: &BrokerConfig| config.print(name).and_then(|text| text.parse().ok());
        if let (Some(old), Some(new)) = (number(current), number(next)) {
            check_threads(name, old, new)?;
        }
    }
    let (old, new) = (current.log_cleaner_threads, next.log_cleaner_threads);
    if new < old / 2 {
        return Err(ConfigError::config(format!(
            "Log cleaner threads cannot be reduced to less than half the current value {old}"
        )));
    }
    if i64::from(new) > i64::from(old) * 2 {
        return Err(ConfigError::config(format!(
            "Log cleaner threads cannot be increased to more than double the current value {old}"
        )));
    }
    topic::check_local(
        ("log.local.retention.ms", next.log_local_retention_ms),
        ("log.retention.ms", next.retention_ms()),
    )?;
    topic::check_local(
        ("log.local.retention.bytes", next.log_local_retention_bytes),
        ("log.retention.bytes", next.log_retention_bytes),
    )
}

fn check_threads(name: &str, old: i64, new: i64) -> Result<(), ConfigError> {
    let why = match new {
        ..1 => "value should be at least 1".to_owned(),
        _ if new < old / 2 => format!("value should be at least half the current value {old}"),
        _ if new > old * 2 => {
            format!("value should not be greater than double the current value {old}")
        }
        _ => return Ok(()),
    };
    Err(ConfigError::config(format!(
        "Dynamic thread count update validation failed for {name}={new}, {why}"
    )))
}

/// What eligible leader replicas (KIP-966) forbid: they count on one minimum for the cluster.
pub(crate) fn check_elr(
    target: BrokerTarget,
    alterations: &[Alteration],
) -> Result<(), ConfigError> {
    let Some(one) = alterations
        .iter()
        .find(|one| one.name == "min.insync.replicas")
    else {
        return Ok(());
    };
    match (target, one.operation) {
        (BrokerTarget::Node, _) => Err(ConfigError::config(
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )),
        (BrokerTarget::Cluster, Operation::Delete) => Err(ConfigError::config(
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )),
        (BrokerTarget::Cluster, Operation::Set | Operation::Append | Operation::Subtract) => Ok(()),
    }
}

/// What a config record can hold of one value.
const VALUE_MAX_BYTES: usize = 32767;

/// Key material can change while running for a named listener only.
const LISTENERS_ONLY: &[&str] = &[
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
];

/// A listener's options that may be set for all brokers at once.
const FOR_ALL_LISTENERS: &[&str] = &[
    "max.connections",
    "max.connection.creation.rate",
    "num.network.threads",
];

const THREADS: &[&str] = &[
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
];
