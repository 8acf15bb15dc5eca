//! How many connections a listener takes on, and how fast: what the options in force say.

use std::collections::HashMap;
use std::net::IpAddr;

use tracing::warn;

use crate::config::BrokerConfig;
use crate::os::net;

/// The limits of one listener, with those that it shares with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Connections of all listeners together.
    pub(super) all: usize,
    /// Connections of this listener.
    pub(super) own: usize,
    per_ip: usize,
    per_ip_of: HashMap<IpAddr, usize>,
    /// New connections a second, of all listeners together.
    pub(super) all_rate: u32,
    /// New connections a second of this listener.
    pub(super) own_rate: u32,
}

impl Limits {
    /// The limits of `listener`: what stands behind its own prefix bounds it alone.
    pub(super) async fn of(config: &BrokerConfig, listener: &str) -> Self {
        let own = config.on_listener(listener, None);
        let own = own.as_ref().unwrap_or(config);
        let named = |name: &str| {
            let prefixed = format!("listener.name.{}.{name}", listener.to_lowercase());
            config.given.contains_key(&prefixed)
        };
        // An option without a prefix is the broker's and bounds no listener by itself.
        let bound = |name: &str, value: i32| if named(name) { value } else { i32::MAX };
        Self {
            all: count(config.max_connections),
            own: count(bound("max.connections", own.max_connections)),
            per_ip: count(config.max_connections_per_ip),
            per_ip_of: addresses(config).await,
            all_rate: config.max_connection_creation_rate.unsigned_abs(),
            own_rate: bound(
                "max.connection.creation.rate",
                own.max_connection_creation_rate,
            )
            .unsigned_abs(),
        }
    }

    /// How many connections an address may have.
    pub(super) fn of_address(&self, ip: IpAddr) -> usize {
        self.per_ip_of.get(&ip).copied().unwrap_or(self.per_ip)
    }
}

fn count(limit: i32) -> usize {
    usize::try_from(limit).unwrap_or(0)
}

/// `max.connections.per.ip.overrides`, whose hosts may be names.
async fn addresses(config: &BrokerConfig) -> HashMap<IpAddr, usize> {
    let mut limits = HashMap::new();
    for (host, limit) in config.connections_per_address().unwrap_or_default() {
        match net::resolve(&host, 0).await {
            Ok(address) => {
                limits.insert(address.ip().to_canonical(), count(limit));
            }
            Err(error) => warn!(
                %host,
                %error,
                "max.connections.per.ip.overrides names a host that has no address"
            ),
        }
    }
    limits
}
