//! What a broker's options mean together: the typed configuration of a node, what is refused when
//! it starts, and what its topics, groups and listeners take from it.

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

    /// Conditions among several options, in the order and the words of Kafka's
    /// `KafkaConfig.validateValues`.
    fn check(&self) -> Result<(), ConfigError> {
        if self.node_id != self.broker_id {
            return Err(ConfigError::config(
                "You must set `node.id` to the same value as `broker.id`.",
            ));
        }
        self.check_groups()?;
        self.check_codecs()?;
        self.check_log()?;
        self.check_replication()?;
        self.check_bootstrap_servers()?;
        self.check_quorum()?;
        self.check_addresses()?;
        self.check_early_listeners()?;
        self.check_security()?;
        self.check_connections()
    }

    fn check_log(&self) -> Result<(), ConfigError> {
        require(
            self.roll_ms() >= 1,
            "log.roll.ms must be greater than or equal to 1",
        )?;
        require(
            self.roll_jitter_ms() >= 0,
            "log.roll.jitter.ms must be greater than or equal to 0",
        )?;
        require(
            self.retention_ms() != 0,
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        )?;
        require(
            !self.data_dirs().is_empty(),
            "At least one log directory must be defined via log.dirs or log.dir.",
        )?;
        // Kafka divides and so fails without threads; an idle cleaner needs no memory.
        let threads = i64::from(self.log_cleaner_threads.max(1));
        require(
            self.log_cleaner_dedupe_buffer_size / threads > 1024 * 1024,
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        )
    }

    fn check_replication(&self) -> Result<(), ConfigError> {
        let wait = self.replica_fetch_wait_max_ms;
        require(
            wait <= self.replica_socket_timeout_ms,
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to \
             prevent unnecessary socket timeouts",
        )?;
        require(
            i64::from(wait) <= self.replica_lag_time_max_ms,
            "replica.fetch.wait.max.ms should always be less than or equal to \
             replica.lag.time.max.ms to prevent frequent changes in ISR",
        )
    }

    /// A node that is broker and controller at once may go without any word about a quorum: it is
    /// its own. Kafka demands the words.
    fn check_quorum(&self) -> Result<(), ConfigError> {
        let alone = self.roles.broker && self.roles.controller;
        if self.no_quorum_named() && !alone {
            return Err(ConfigError::config(
                "If using process.roles, either controller.quorum.bootstrap.servers must contain \
                 the set of bootstrap controllers or controller.quorum.voters must contain a \
                 parseable set of controllers.",
            ));
        }
        let votes = self.voters.iter().any(|voter| voter.id == self.node_id);
        match (self.roles.controller, votes) {
            (true, false) if !self.voters.is_empty() => Err(ConfigError::requirement(format!(
                "If process.roles contains the 'controller' role, the node id {} must be included \
                 in the set of voters controller.quorum.voters={}",
                self.node_id,
                self.print_voters()
            ))),
            (false, true) => Err(ConfigError::requirement(format!(
                "If process.roles contains just the 'broker' role, the node id {} must not be \
                 included in the set of voters controller.quorum.voters={}",
                self.node_id,
                self.print_voters()
            ))),
            _ => Ok(()),
        }
    }

    fn no_quorum_named(&self) -> bool {
        self.voters.is_empty() && self.controller_quorum_bootstrap_servers.is_empty()
    }

    fn print_voters(&self) -> String {
        let ids: Vec<String> = self
            .voters
            .iter()
            .map(|voter| voter.id.to_string())
            .collect();
        format!("Set({})", ids.join(", "))
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        match self.roles {
            Roles {
                controller: true,
                broker,
            } => self.check_controller_listeners(broker)?,
            Roles {
                controller: false, ..
            } => self.check_remote_controllers()?,
        }
        if self.roles.broker {
            self.check_advertised()?;
        }
        require(
            !self
                .endpoints
                .advertised
                .iter()
                .any(|endpoint| endpoint.host == "0.0.0.0"),
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable \
             IP address.",
        )
    }

    fn check_controller_listeners(&self, broker: bool) -> Result<(), ConfigError> {
        let endpoints = &self.endpoints;
        if broker && endpoints.controller_names.is_empty() && self.no_quorum_named() {
            return Ok(());
        }
        let inter_broker = &endpoints.inter_broker;
        require(
            broker
                || self.inter_broker_listener_name.is_none()
                || !endpoints.controller_names.contains(inter_broker),
            "controller.listener.names must not contain an explicitly set \
             inter.broker.listener.name configuration value when process.roles=controller'",
        )?;
        require(
            broker || endpoints.listeners.is_empty(),
            "The listeners config must only contain KRaft controller listeners from \
             controller.listener.names when process.roles=controller",
        )?;
        require(
            !endpoints.controllers.is_empty(),
            "controller.listener.names must contain at least one value appearing in the \
             'listeners' configuration when running the KRaft controller role",
        )?;
        let listens = |name: &String| endpoints.controllers.iter().any(|c| c.listener == *name);
        require(
            endpoints.controller_names.iter().all(listens),
            "controller.listener.names must only contain values appearing in the 'listeners' \
             configuration when running the KRaft controller role",
        )
    }

    fn check_remote_controllers(&self) -> Result<(), ConfigError> {
        let endpoints = &self.endpoints;
        require(
            !endpoints.controller_names.is_empty(),
            "controller.listener.names must contain at least one value when running KRaft with \
             just the broker role",
        )?;
        require(
            endpoints.controllers.is_empty(),
            "controller.listener.names must not contain a value appearing in the 'listeners' \
             configuration when running KRaft with just the broker role",
        )?;
        match endpoints
            .controller_names
            .iter()
            .find(|name| endpoints.protocol(name).is_none())
        {
            Some(name) => Err(ConfigError::config(format!(
                "Controller listener with name {name} defined in controller.listener.names not \
                 found in listener.security.protocol.map  (an explicit security mapping for each \
                 controller listener is required if listener.security.protocol.map is non-empty, \
                 or if there are security protocols other than PLAINTEXT in use)"
            ))),
            None => Ok(()),
        }
    }

    fn check_advertised(&self) -> Result<(), ConfigError> {
        let endpoints = &self.endpoints;
        let advertised: Vec<&str> = endpoints
            .advertised
            .iter()
            .map(|one| one.listener.as_str())
            .collect();
        let listening: Vec<&str> = endpoints
            .listeners
            .iter()
            .chain(&endpoints.controllers)
            .map(|one| one.listener.as_str())
            .collect();
        require(
            !advertised.is_empty(),
            "There must be at least one broker advertised listener. Perhaps all listeners appear \
             in controller.listener.names?",
        )?;
        require(
            advertised.contains(&endpoints.inter_broker.as_str()),
            &format!(
                "inter.broker.listener.name must be a listener name defined in \
                 advertised.listeners. The valid options based on currently configured listeners \
                 are {}",
                advertised.join(",")
            ),
        )?;
        require(
            advertised.iter().all(|name| listening.contains(name)),
            &format!(
                "advertised.listeners listener names must be equal to or a subset of the ones \
                 defined in listeners. Found {}. The valid options based on the current \
                 configuration are {}",
                advertised.join(","),
                listening.join(",")
            ),
        )
    }

    fn check_security(&self) -> Result<(), ConfigError> {
        let protocol = self.endpoints.protocol(&self.endpoints.inter_broker);
        if !protocol.is_some_and(super::SecurityProtocol::sasl) {
            return Ok(());
        }
        let seen = self.on_listener(&self.endpoints.inter_broker, None)?;
        require(
            seen.sasl_enabled_mechanisms
                .contains(&self.sasl_mechanism_inter_broker_protocol),
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms \
             when SASL is used for inter-broker communication",
        )
    }

    fn check_connections(&self) -> Result<(), ConfigError> {
        require(
            self.queued_max_request_bytes <= 0
                || self.queued_max_request_bytes >= i64::from(self.socket_request_max_bytes),
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        )?;
        let limits = self.connections_per_address()?;
        require(
            self.max_connections_per_ip != 0 || !limits.is_empty(),
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides \
             property is set.",
        )?;
        let delay = i64::from(self.connection_failed_authentication_delay_ms);
        require(
            self.connections_max_idle_ms < 0 || delay < self.connections_max_idle_ms,
            &format!(
                "connection.failed.authentication.delay.ms={delay} should always be less than \
                 connections.max.idle.ms={} to prevent failed authentication responses from \
                 timing out",
                self.connections_max_idle_ms
            ),
        )
    }

    /// The bounds that groups get, each against the others (`GroupCoordinatorConfig`,
    /// `ShareGroupConfig`).
    fn check_groups(&self) -> Result<(), ConfigError> {
        if !self.serves_protocol("classic") {
            return Err(ConfigError::config(
                "Disabling the 'classic' protocol is not supported.",
            ));
        }
        for kind in ["consumer", "share", "streams"] {
            let name = |rest: &str| format!("group.{kind}.{rest}");
            let (heartbeat, session) = (name("heartbeat.interval.ms"), name("session.timeout.ms"));
            for (own, span) in [
                (&heartbeat, "heartbeat.interval.ms"),
                (&session, "session.timeout.ms"),
            ] {
                let (least, most) = (name(&format!("min.{span}")), name(&format!("max.{span}")));
                self.at_least(&most, &least)?;
                self.at_least(own, &least)?;
                self.at_most(own, &most)?;
            }
            if self.number(&heartbeat) >= self.number(&session) {
                return Err(ConfigError::config(format!(
                    "{heartbeat} must be less than {session}"
                )));
            }
        }
        let lock = "group.share.record.lock.duration.ms";
        self.at_least(lock, "group.share.min.record.lock.duration.ms")?;
        self.at_least("group.share.max.record.lock.duration.ms", lock)?;
        self.at_least("group.share.max.share.sessions", "group.share.max.size")?;
        self.at_most(
            "group.streams.num.standby.replicas",
            "group.streams.max.standby.replicas",
        )?;
        self.check_assignors()
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.print(name).and_then(|text| text.parse().ok())
    }

    fn at_least(&self, name: &str, least: &str) -> Result<(), ConfigError> {
        match self.number(name) < self.number(least) {
            true => Err(ConfigError::config(format!(
                "{name} must be greater than or equal to {least}"
            ))),
            false => Ok(()),
        }
    }

    fn at_most(&self, name: &str, most: &str) -> Result<(), ConfigError> {
        match self.number(name) > self.number(most) {
            true => Err(ConfigError::config(format!(
                "{name} must be less than or equal to {most}"
            ))),
            false => Ok(()),
        }
    }

    fn check_assignors(&self) -> Result<(), ConfigError> {
        let [consumer, share] = [&self.group_consumer_assignors, &self.group_share_assignors];
        let unknown = |known: &'static [&str]| {
            move |name: &&String| !known.contains(&name.trim_start_matches(ASSIGNORS))
        };
        let stranger = consumer.iter().find(unknown(CONSUMER_ASSIGNORS));
        if let Some(name) = stranger.or_else(|| share.iter().find(unknown(SHARE_ASSIGNORS))) {
            return Err(ConfigError::config(format!("Class {name} cannot be found")));
        }
        match share.len() {
            1 => Ok(()),
            count => Err(ConfigError::config(format!(
                "group.share.assignors must contain exactly one assignor, but found {count}"
            ))),
        }
    }

    /// The codecs of internal topics, by Kafka's numbers: none, gzip, snappy, lz4, zstd.
    fn check_codecs(&self) -> Result<(), ConfigError> {
        let codecs = [
            self.offsets_topic_compression_codec,
            self.share_coordinator_state_topic_compression_codec,
        ];
        match codecs.iter().find(|codec| !(0..=4).contains(*codec)) {
            Some(codec) => Err(ConfigError::config(format!(
                "Unknown compression type id: {codec}"
            ))),
            None => Ok(()),
        }
    }

    fn check_early_listeners(&self) -> Result<(), ConfigError> {
        let endpoints = &self.endpoints;
        let known = |name: &str| {
            let listens = endpoints.listeners.iter().chain(&endpoints.controllers);
            listens
                .map(|one| &one.listener)
                .chain(&endpoints.controller_names)
                .any(|n| n == name)
        };
        let early = parse_list(self.early_start_listeners.as_deref().unwrap_or_default());
        let early = early
            .iter()
            .map(|name| name.to_uppercase())
            .filter(|name| !name.is_empty());
        match early.into_iter().find(|name| !known(name)) {
            Some(name) => Err(ConfigError::config(format!(
                "early.start.listeners contains listener {name}, but this is not contained in \
                 listeners or controller.listener.names"
            ))),
            None => Ok(()),
        }
    }

    fn check_bootstrap_servers(&self) -> Result<(), ConfigError> {
        let bad = |server: &&String| host_and_port(server).is_none();
        match self.controller_quorum_bootstrap_servers.iter().find(bad) {
            Some(server) => Err(ConfigError::config(format!(
                "Failed to parse host name from {server} for the configuration \
                 controller.quorum.bootstrap.servers. Each entry should be in the form \
                 \"{{host}}:{{port}}\""
            ))),
            None => Ok(()),
        }
    }
}

fn require(holds: bool, message: &str) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError::requirement(message))
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
fn host_and_port(address: &str) -> Option<(&str, &str)> {
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

/// The assignors we have, under Kafka's short names; Kafka's classes are known, too.
const CONSUMER_ASSIGNORS: &[&str] = &["uniform", "range", "UniformAssignor", "RangeAssignor"];
const SHARE_ASSIGNORS: &[&str] = &["simple", "SimpleAssignor"];
const ASSIGNORS: &str = "org.apache.kafka.coordinator.group.assignor.";

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
