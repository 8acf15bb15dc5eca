//! Addresses: where a node listens, where it says it can be reached, and which protocol each
//! listener speaks.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::broker_keys::BrokerConfig;
use super::error::ConfigError;
use super::value::parse_list;

/// One listener with its address. An empty host means every interface, or, where advertised, the
/// machine's own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) listener: String,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// How a listener speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    /// The protocol of that name, in any case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => Some(Self::Plaintext),
            "SSL" => Some(Self::Ssl),
            "SASL_PLAINTEXT" => Some(Self::SaslPlaintext),
            "SASL_SSL" => Some(Self::SaslSsl),
            _ => None,
        }
    }

    /// Kafka's name, which is also the number's meaning in registrations.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// Kafka's number, as brokers register it.
    pub(crate) fn id(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }

    /// Clients prove who they are by SASL.
    pub(crate) fn sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }

    /// The bytes are encrypted.
    pub(crate) fn tls(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }
}

/// Everything that the options say about addresses, read once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Endpoints {
    /// Where clients and brokers are served.
    pub(crate) listeners: Vec<Endpoint>,
    /// Where the controller is served; empty if nobody outside of the process may reach it.
    pub(crate) controllers: Vec<Endpoint>,
    /// What clients are told, without the controllers' listeners; empty for a mere controller.
    pub(crate) advertised: Vec<Endpoint>,
    /// The names of controllers' listeners, wherever those are.
    pub(crate) controller_names: Vec<String>,
    /// The listener that brokers use among themselves.
    pub(crate) inter_broker: String,
    protocols: BTreeMap<String, SecurityProtocol>,
}

impl Endpoints {
    /// Reads the options that name listeners; refuses what contradicts itself.
    pub(crate) fn read(config: &BrokerConfig) -> Result<Self, ConfigError> {
        let controller_names = names(config.controller_listener_names.as_deref());
        let protocols = protocols(config, &controller_names)?;
        let all = parse(&config.listeners, &protocols)?;
        check_ports(&config.listeners, &all)?;
        let is_controller = |endpoint: &Endpoint| controller_names.contains(&endpoint.listener);
        let (controllers, listeners): (Vec<_>, Vec<_>) =
            all.iter().cloned().partition(is_controller);
        let advertised = match &config.advertised_listeners {
            Some(text) => parse(text, &protocols)?,
            None => all,
        };
        let advertised = advertised
            .into_iter()
            .filter(|one| !is_controller(one))
            .collect();
        let inter_broker = inter_broker(config, &protocols)?;
        Ok(Self {
            listeners,
            controllers,
            advertised,
            controller_names,
            inter_broker,
            protocols,
        })
    }

    /// The protocol of a listener that the options name.
    pub(crate) fn protocol(&self, listener: &str) -> Option<SecurityProtocol> {
        self.protocols.get(&listener.to_uppercase()).copied()
    }
}

/// Reads a list of `NAME://host:port`; names are upper-cased, empty items skipped.
pub(crate) fn parse_endpoints(text: &str) -> Result<Vec<Endpoint>, ConfigError> {
    parse_list(text)
        .iter()
        .filter(|item| !item.is_empty())
        .map(|item| endpoint(item))
        .collect()
}

fn endpoint(item: &str) -> Result<Endpoint, ConfigError> {
    let refuse = || ConfigError::config(format!("Unable to parse {item} to a broker endpoint"));
    let (listener, address) = item.split_once("://").ok_or_else(refuse)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(refuse)?;
    let host = host.strip_prefix('[').unwrap_or(host);
    let host = host.strip_suffix(']').unwrap_or(host);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-%._:".contains(c);
    if !host.chars().all(plain) {
        return Err(refuse());
    }
    let port = port.parse().map_err(|_| refuse())?;
    Ok(Endpoint {
        listener: listener.to_uppercase(),
        host: host.to_owned(),
        port,
    })
}

fn parse(
    text: &str,
    protocols: &BTreeMap<String, SecurityProtocol>,
) -> Result<Vec<Endpoint>, ConfigError> {
    let wrap = |error: ConfigError| {
        let why = format!("Error creating broker listeners from '{text}': {error}");
        ConfigError::config(why)
    };
    let endpoints = parse_endpoints(text).map_err(wrap)?;
    for (at, one) in endpoints.iter().enumerate() {
        if !protocols.contains_key(&one.listener) {
            let why = format!("No security protocol defined for listener {}", one.listener);
            return Err(wrap(ConfigError::config(why)));
        }
        let namesake = |earlier: &Endpoint| earlier.listener == one.listener;
        if endpoints.iter().take(at).any(namesake) {
            return Err(ConfigError::requirement(format!(
                "Each listener must have a different name, listeners: {text}"
            )));
        }
    }
    Ok(endpoints)
}

/// Two listeners share a port only as one IPv4 and one IPv6 address; the texts are those of
/// `CoreUtils.listenerListToEndPoints`. Port 0 is any free port.
fn check_ports(text: &str, endpoints: &[Endpoint]) -> Result<(), ConfigError> {
    for one in endpoints.iter().filter(|one| one.port != 0) {
        let sharing = endpoints.iter().filter(|other| other.port == one.port);
        let (addresses, names): (Vec<_>, Vec<_>) = sharing
            .map(|other| other.host.parse::<IpAddr>())
            .partition(Result::is_ok);
        if addresses.len() + names.len() < 2 {
            continue;
        }
        let port = one.port;
        let pair = format!(
            "If you have two listeners on the same port then one needs to be IPv4 and the other \
             IPv6, listeners: {text}, port: {port}"
        );
        let differ = matches!(addresses.as_slice(), [Ok(a), Ok(b)] if a.is_ipv4() != b.is_ipv4());
        match (addresses.len(), names.len()) {
            (_, 2..) => {
                return Err(ConfigError::requirement(format!(
                    "Each listener must have a different port, listeners: {text}"
                )));
            }
            (2, _) if !differ => return Err(ConfigError::requirement(pair)),
            (2, 1) => return Err(ConfigError::config(pair)),
            (0 | 2, _) => {}
            _ => {
                return Err(ConfigError::config(format!(
                    "Each listener must have a different port unless exactly one listener has an \
                     IPv4 address and the other IPv6 address, listeners: {text}, port: {port}"
                )));
            }
        }
    }
    Ok(())
}

/// Prints endpoints as the options spell them.
pub(crate) fn print(endpoints: &[Endpoint]) -> String {
    let one = |endpoint: &Endpoint| {
        let host = match endpoint.host.contains(':') {
            true => format!("[{}]", endpoint.host),
            false => endpoint.host.clone(),
        };
        format!("{}://{host}:{}", endpoint.listener, endpoint.port)
    };
    endpoints.iter().map(one).collect::<Vec<_>>().join(",")
}

fn names(list: Option<&str>) -> Vec<String> {
    let items = list.map(parse_list).unwrap_or_default();
    items
        .iter()
        .filter(|item| !item.is_empty())
        .map(|item| item.to_uppercase())
        .collect()
}

/// The map that is configured. Left alone, it also knows the controllers' listeners as plaintext,
/// as long as nothing in sight asks for TLS or SASL.
fn protocols(
    config: &BrokerConfig,
    controller_names: &[String],
) -> Result<BTreeMap<String, SecurityProtocol>, ConfigError> {
    let mut map = BTreeMap::new();
    for item in parse_list(&config.listener_security_protocol_map) {
        if item.is_empty() {
            continue;
        }
        let (listener, protocol) = item.rsplit_once(':').ok_or_else(|| {
            ConfigError::config(format!(
                "Error parsing configuration property 'listener.security.protocol.map': begin 0, \
                 end -1, length {}",
                item.len()
            ))
        })?;
        map.insert(
            listener.trim().to_uppercase(),
            known_protocol(protocol.trim())?,
        );
    }
    if config.given.contains_key("listener.security.protocol.map") {
        return Ok(map);
    }
    let guarded = |name: &str| {
        SecurityProtocol::from_name(name).is_some_and(|one| one != SecurityProtocol::Plaintext)
    };
    // What cannot be read is refused by who reads it next, in the words for it.
    let listening = parse_endpoints(&config.listeners).unwrap_or_default();
    if !controller_names
        .iter()
        .chain(listening.iter().map(|one| &one.listener))
        .any(|n| guarded(n))
    {
        let plain = |name: &String| (name.clone(), SecurityProtocol::Plaintext);
        map.extend(controller_names.iter().map(plain));
    }
    Ok(map)
}

fn known_protocol(name: &str) -> Result<SecurityProtocol, ConfigError> {
    SecurityProtocol::from_name(name).ok_or_else(|| {
        ConfigError::config(format!(
            "Invalid security protocol `{name}` defined in listener.security.protocol.map"
        ))
    })
}

fn inter_broker(
    config: &BrokerConfig,
    protocols: &BTreeMap<String, SecurityProtocol>,
) -> Result<String, ConfigError> {
    let Some(name) = &config.inter_broker_listener_name else {
        return Ok(config.security_inter_broker_protocol.clone());
    };
    if config.given.contains_key("security.inter.broker.protocol") {
        return Err(ConfigError::config(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be \
             set.",
        ));
    }
    let name = name.to_uppercase();
    match protocols.contains_key(&name) {
        true => Ok(name),
        false => Err(ConfigError::config(format!(
            "Listener with name {name} defined in inter.broker.listener.name not found in \
             listener.security.protocol.map."
        ))),
    }
}
