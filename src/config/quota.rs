//! Quotas: those of clients and addresses (KIP-13, KIP-546, KIP-612), which are set per entity,
//! and the rates of replication, which are set on brokers and only while they run (KIP-73).

use super::error::ConfigError;
use super::key::{self, ConfigType, config_keys};

config_keys! {
    /// The limits of a user, a client id or a pair of them.
    ClientQuota in ClientQuota, table CLIENT_QUOTA_KEYS;

    /// How many bytes a second may be produced to one broker before it slows the client down.
    "producer_byte_rate" producer_byte_rate: i64 = "9223372036854775807", Positive, Dynamic;
    /// How many bytes a second may be fetched from one broker before it slows the client down.
    "consumer_byte_rate" consumer_byte_rate: i64 = "9223372036854775807", Positive, Dynamic;
    /// How much of a broker's time requests may take, in percent of one thread.
    "request_percentage" request_percentage: f64 = "2.147483647E9", Positive, Dynamic;
    /// How many partitions a second may be created or deleted.
    "controller_mutation_rate" controller_mutation_rate: f64 = "2.147483647E9", Positive, Dynamic;
}

config_keys! {
    /// The limits of an address.
    IpQuota in IpQuota, table IP_QUOTA_KEYS;

    /// How many connections a second the address may open.
    "connection_creation_rate" connection_creation_rate: i32 = "2147483647", Positive, Dynamic;
}

config_keys! {
    /// The rates of replication on a broker.
    ReplicationRates in BrokerDynamicOnly, table DYNAMIC_ONLY_KEYS;

    /// How many bytes a second leaders on this broker send of throttled replicas.
    "leader.replication.throttled.rate"
        leader_replication_throttled_rate: i64 = "9223372036854775807", AtLeast(0), ClusterWide;
    /// How many bytes a second followers on this broker copy of throttled replicas.
    "follower.replication.throttled.rate"
        follower_replication_throttled_rate: i64 = "9223372036854775807", AtLeast(0), ClusterWide;
    /// How many bytes a second replicas move between this broker's directories.
    "replica.alter.log.dirs.io.max.bytes.per.second"
        replica_alter_log_dirs_io_max_bytes_per_second: i64 =
            "9223372036854775807", AtLeast(0), ClusterWide;
}

/// How far a whole-numbered quota may be off a whole number.
const TOLERANCE: f64 = 1e-6;

/// Refuses a quota that the entity does not know, or a value it cannot have.
pub(crate) fn check(table: &[key::Key], name: &str, value: f64) -> Result<(), ConfigError> {
    let Some(key) = key::find(table, name) else {
        return Err(ConfigError::request(format!(
            "Invalid configuration key {name}"
        )));
    };
    if value <= 0.0 {
        return Err(ConfigError::request(format!(
            "Quota {name} must be greater than 0"
        )));
    }
    if key.kind != ConfigType::Double && (value - value.round()).abs() > TOLERANCE {
        return Err(ConfigError::request(format!(
            "{name} cannot be a fractional value."
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(table: &[key::Key], name: &str, value: f64) -> String {
        check(table, name, value).unwrap_err().message
    }

    #[test]
    fn a_quota_is_positive_and_whole_where_it_counts_bytes() {
        let clients = CLIENT_QUOTA_KEYS;
        assert_eq!(check(clients, "producer_byte_rate", 1e6 + 1e-7), Ok(()));
        assert_eq!(check(clients, "request_percentage", 0.5), Ok(()));
        assert_eq!(
            refusal(clients, "producer_byte_rate", 0.0),
            "Quota producer_byte_rate must be greater than 0"
        );
        assert_eq!(
            refusal(IP_QUOTA_KEYS, "connection_creation_rate", 1.5),
            "connection_creation_rate cannot be a fractional value."
        );
        assert_eq!(
            refusal(IP_QUOTA_KEYS, "producer_byte_rate", 1.0),
            "Invalid configuration key producer_byte_rate"
        );
    }
}
