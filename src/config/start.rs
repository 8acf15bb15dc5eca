//! What a node refuses to start with, and a running one to be altered to: conditions among several
//! options, in the words of Kafka's `KafkaConfig.validateValues` and of the classes it consults.

use super::broker::{Roles, host_and_port};
use super::broker_keys::BrokerConfig;
use super::error::ConfigError;
use super::listeners::SecurityProtocol;
use super::value::parse_list;

impl BrokerConfig {
    /// All conditions, in the order in which Kafka looks at them.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
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
        // Where nothing is advertised clients are told the address that they reached; Kafka would
        // tell them the wildcard, and so must refuse it.
        let told = self.advertised_listeners.is_some();
        require(
            !(told
                && self
                    .endpoints
                    .advertised
                    .iter()
                    .any(|one| one.host == "0.0.0.0")),
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
        if !protocol.is_some_and(SecurityProtocol::sasl) {
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

/// The assignors we have, under Kafka's short names; Kafka's classes are known, too.
const CONSUMER_ASSIGNORS: &[&str] = &["uniform", "range", "UniformAssignor", "RangeAssignor"];
const SHARE_ASSIGNORS: &[&str] = &["simple", "SimpleAssignor"];
const ASSIGNORS: &str = "org.apache.kafka.coordinator.group.assignor.";
