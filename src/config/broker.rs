//! What a broker's options mean together: the typed configuration of a node, and what its
//! topics, groups and listeners take from it. What it refuses is in [`super::start`].

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use super::Values;
use super::broker_keys::{BROKER_KEYS, BrokerConfig};
use super::error::ConfigError;
use super::group::GroupConfig;
use super::key::{self, Key};
use super::listeners::Endpoints;
use super::properties;
use super::topic::{CleanupPolicy, TopicConfig};
use super::value::parse_list;

/// What a node does in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Roles {
    pub(crate) broker: bool,
    pub(crate) controller: bool,
}

/// Options word for word. It keeps its secrets when printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Given(pub(crate) Values);

impl Deref for Given {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// One member of `controller.quorum.voters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Voter {
    pub(crate) id: i32,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What a node should be told about its file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Warnings {
    /// Options nobody knows.
    pub(crate) unknown: Vec<String>,
    /// Options that are accepted and change nothing.
    pub(crate) without_effect: Vec<String>,
}

impl BrokerConfig {
    /// Reads a node's options. Of an option given twice, the last one counts.
    pub(crate) fn from_properties(
        properties: &[(String, String)],
    ) -> Result<(Self, Warnings), ConfigError> {
        let given = complete(properties::last_wins(properties));
        let warnings = warnings(&given);
        Ok((Self::from_values(given)?, warnings))
    }

    /// Reads options that are complete, such as a file's with what was set on the running node.
    pub(crate) fn from_values(given: Values) -> Result<Self, ConfigError> {
        let mut config = Self::read(&|name| given.get(name).map(|text| text.as_str().into()))?;
        config.given = Given(given);
        config.roles = roles(&config.process_roles)?;
        config.voters = voters(&config.controller_quorum_voters)?;
        config.endpoints = Endpoints::read(&config)?;
        config.check()?;
        Ok(config)
    }

    /// The same node as one of its listeners sees it: `listener.name.<listener>.<option>` stands
    /// before `<option>`, and with a SASL mechanism between the two, before both.
    pub(crate) fn on_listener(
        &self,
        listener: &str,
        mechanism: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let prefix = format!("listener.name.{}.", listener.to_lowercase());
        let nearer = mechanism.map(|name| format!("{prefix}{}.", name.to_lowercase()));
        let mut seen = Self::read(&|name| {
            let near = nearer
                .as_ref()
                .and_then(|near| self.given.get(&format!("{near}{name}")));
            let found = near.or_else(|| self.given.get(&format!("{prefix}{name}")));
            found
                .or_else(|| self.given.get(name))
                .map(|text| text.as_str().into())
        })?;
        seen.given = self.given.clone();
        seen.roles = self.roles;
        seen.voters = self.voters.clone();
        seen.endpoints = self.endpoints.clone();
        Ok(seen)
    }

    /// What a topic obeys that has these settings of its own.
    pub(crate) fn topic(&self, own: &Values) -> Result<TopicConfig, ConfigError> {
        TopicConfig::read(&|name| self.under(super::topic::TOPIC_KEYS, own, name))
    }

    /// What a group obeys that has these settings of its own.
    pub(crate) fn group(&self, own: &Values) -> Result<GroupConfig, ConfigError> {
        GroupConfig::read(&|name| self.under(super::group::GROUP_KEYS, own, name))
    }

    fn under<'a>(&self, table: &[Key], own: &'a Values, name: &str) -> Option<Cow<'a, str>> {
        if let Some(text) = own.get(name) {
            return Some(text.as_str().into());
        }
        self.supplied(key::find(table, name)?).map(Cow::Owned)
    }

    /// The value that a topic's or group's option takes from this broker.
    pub(crate) fn supplied(&self, key: &Key) -> Option<String> {
        let set = |synonym: &key::Synonym| Some((self.print(synonym.name)?, synonym.factor));
        let (text, factor) = key.synonyms.iter().find_map(set)?;
        if key.name == "retention.ms" {
            return Some(self.retention_ms().to_string());
        }
        match text.parse::<i64>() {
            Ok(number) if factor != 1 => Some(number.saturating_mul(factor).to_string()),
            Ok(_) | Err(_) => Some(text),
        }
    }

    /// How long records are kept; -1 is for ever.
    pub(crate) fn retention_ms(&self) -> i64 {
        let minutes = self
            .log_retention_minutes
            .map(|minutes| i64::from(minutes) * MINUTE_MS);
        let hours = i64::from(self.log_retention_hours) * HOUR_MS;
        self.log_retention_ms.or(minutes).unwrap_or(hours).max(-1)
    }

    /// The age at which a segment is rolled.
    pub(crate) fn roll_ms(&self) -> i64 {
        self.log_roll_ms
            .unwrap_or_else(|| i64::from(self.log_roll_hours) * HOUR_MS)
    }

    /// How much earlier than that a segment may be rolled, by chance.
    pub(crate) fn roll_jitter_ms(&self) -> i64 {
        self.log_roll_jitter_ms
            .unwrap_or_else(|| i64::from(self.log_roll_jitter_hours) * HOUR_MS)
    }

    /// How long a record may wait to be forced to the disk.
    pub(crate) fn flush_ms(&self) -> i64 {
        self.log_flush_interval_ms
            .unwrap_or(self.log_flush_scheduler_interval_ms)
    }

    /// The directories that hold partitions.
    pub(crate) fn data_dirs(&self) -> Vec<String> {
        let list = self.log_dirs.as_deref().unwrap_or(&self.log_dir);
        parse_list(list)
            .into_iter()
            .filter(|dir| !dir.is_empty())
            .collect()
    }

    /// The directory that holds the metadata log: its own, or the first of all.
    pub(crate) fn metadata_dir(&self) -> Option<String> {
        self.metadata_log_dir
            .clone()
            .or_else(|| self.data_dirs().into_iter().next())
    }

    /// Whether old records are dropped, superseded ones, or both, where a topic does not say.
    pub(crate) fn cleanup(&self) -> CleanupPolicy {
        CleanupPolicy::from_names(&self.log_cleanup_policy)
    }

    /// Whether groups of that protocol (`classic`, `consumer`, `share`, `streams`) are served.
    pub(crate) fn serves_protocol(&self, protocol: &str) -> bool {
        self.group_coordinator_rebalance_protocols
            .iter()
            .any(|one| one == protocol)
    }

    /// How many connections an address may have, by address, where that differs from the rest.
    pub(crate) fn connections_per_address(&self) -> Result<Vec<(String, i32)>, ConfigError> {
        let items = parse_list(&self.max_connections_per_ip_overrides);
        items.iter().map(|item| address_limit(item)).collect()
    }

    /// Who may do everything (`super.users`, an option of Kafka's authorizer).
    pub(crate) fn super_users(&self) -> Vec<String> {
        let list = self.given.get("super.users").map_or("", String::as_str);
        let users = list
            .split(';')
            .map(str::trim)
            .filter(|user| !user.is_empty());
        users.map(str::to_owned).collect()
    }

    /// Whether a resource without any ACL is open to all (an option of Kafka's authorizer).
    pub(crate) fn allow_everyone_if_no_acl_found(&self) -> bool {
        let given = self.given.get("allow.everyone.if.no.acl.found");
        given.is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
    }
}

/// `node.id` and `broker.id` stand for each other. A node told nothing at all is the first of its
/// cluster and plays both roles; Kafka asks for both options, its image sets them.
fn complete(mut given: Values) -> Values {
    let id = given
        .get("node.id")
        .or_else(|| given.get("broker.id"))
        .cloned();
    let id = id.unwrap_or_else(|| "1".to_owned());
    given
        .entry("node.id".to_owned())
        .or_insert_with(|| id.clone());
    given.entry("broker.id".to_owned()).or_insert(id);
    given
        .entry("process.roles".to_owned())
        .or_insert_with(|| "broker,controller".to_owned());
    given
}

fn roles(names: &[String]) -> Result<Roles, ConfigError> {
    let mut roles = Roles::default();
    for name in names {
        let role = match name.as_str() {
            "broker" => &mut roles.broker,
            "controller" => &mut roles.controller,
            other => {
                return Err(ConfigError::config(format!(
                    "Unknown process role '{other}' (only 'broker' and 'controller' are allowed \
                     roles)"
                )));
            }
        };
        if std::mem::replace(role, true) {
            return Err(ConfigError::config(format!(
                "Duplicate role names found in `process.roles`: ArrayBuffer({})",
                names.join(", ")
            )));
        }
    }
    if roles == Roles::default() {
        return Err(ConfigError::config(
            "Missing required configuration \"process.roles\" which has no default value.",
        ));
    }
    Ok(roles)
}

fn voters(items: &[String]) -> Result<Vec<Voter>, ConfigError> {
    items.iter().map(|item| voter(item)).collect()
}

fn voter(item: &str) -> Result<Voter, ConfigError> {
    let form = "Each entry should be in the form `{id}@{host}:{port}`.";
    let (id, address) = item.split_once('@').ok_or_else(|| {
        let option = "Invalid configuration value for controller.quorum.voters.";
        ConfigError::config(format!("{option} {form}"))
    })?;
    let id = id.trim().parse().map_err(|_| {
        ConfigError::config(format!("Failed to parse voter ID as an integer from {id}"))
    })?;
    let (host, port) = host_and_port(address).ok_or_else(|| {
        ConfigError::config(format!(
            "Failed to parse host name from entry {item} for the configuration \
             controller.quorum.voters. {form}"
        ))
    })?;
    let port = port
        .parse()
        .map_err(|_| ConfigError::config(format!("port out of range:{port}")))?;
    Ok(Voter {
        id,
        host: host.to_owned(),
        port,
    })
}

/// Splits `host:port`, where the port is a number and an IPv6 host stands in brackets or not.
pub(super) fn host_and_port(address: &str) -> Option<(&str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    Some((bare.unwrap_or(host), port))
}

fn address_limit(item: &str) -> Result<(String, i32), ConfigError> {
    let (address, limit) = item.rsplit_once(':').ok_or_else(|| {
        ConfigError::config(format!(
            "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, \
             end -1, length {}",
            item.len()
        ))
    })?;
    let (address, limit) = (address.trim(), limit.trim());
    let limit = limit
        .parse()
        .map_err(|_| ConfigError::config(format!("For input string: \"{limit}\"")))?;
    if !address
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-%._:".contains(c))
    {
        return Err(ConfigError::config(format!(
            "max.connections.per.ip.overrides contains invalid addresses : {address}"
        )));
    }
    Ok((address.to_owned(), limit))
}

fn warnings(given: &Values) -> Warnings {
    let mut warnings = Warnings::default();
    for (name, text) in given {
        match option(name) {
            Some(key) if key.has_effect() || key.default_text() == Some(text) => {}
            Some(_) => warnings.without_effect.push(name.clone()),
            None if understood_elsewhere(name) => {}
            None => warnings.unknown.push(name.clone()),
        }
    }
    warnings
}

/// The broker's option of that name, with or without the prefix of a listener and a mechanism.
pub(crate) fn option(name: &str) -> Option<&'static Key> {
    key::find(BROKER_KEYS, name).or_else(|| key::find(BROKER_KEYS, base_name(name)?))
}

/// The option that a name with a listener's prefix is about.
pub(crate) fn base_name(name: &str) -> Option<&str> {
    let (_, rest) = name.strip_prefix("listener.name.")?.split_once('.')?;
    let of_mechanism = |option: &&&str| rest.ends_with(**option);
    Some(
        MECHANISM_OPTIONS
            .iter()
            .find(of_mechanism)
            .copied()
            .unwrap_or(rest),
    )
}

/// Options that can differ between the SASL mechanisms of a listener.
const MECHANISM_OPTIONS: &[&str] = &[
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
    "sasl.server.max.receive.size",
];

/// Names outside of the table that have a meaning: the authorizer's and the providers'.
fn understood_elsewhere(name: &str) -> bool {
    let whole = [
        "super.users",
        "allow.everyone.if.no.acl.found",
        "config.providers",
    ];
    whole.contains(&name) || name.starts_with("config.providers.")
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
