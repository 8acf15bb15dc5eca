//! The options of a client-metrics subscription (KIP-714): what clients report, how often, and
//! which clients are meant.

use super::error::ConfigError;
use super::key::config_keys;

/// The properties of a client that a subscription may match.
pub(crate) const MATCH_KEYS: &[&str] = &[
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

config_keys! {
    /// One subscription to the metrics of clients.
    ClientMetricsConfig in ClientMetrics, table CLIENT_METRICS_KEYS;

    /// How often clients push the metrics that were asked for.
    "interval.ms" interval_ms: i32 = "300000", Between(100, 3_600_000), Dynamic;
    /// Which clients are meant: pairs of a property and a pattern that must all fit; empty means
    /// every client.
    "match" match_: Vec<String> = "", ClientMatch, Dynamic;
    /// The beginnings of the names that are asked for; `*` for all, empty for none.
    "metrics" metrics: Vec<String> = "", Any, Dynamic;
}

impl ClientMetricsConfig {
    /// The property and pattern of every condition; `valid` says whether a pattern compiles.
    pub(crate) fn matches(
        &self,
        valid: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        parse_match(&self.match_, valid)
    }
}

/// Splits `property=pattern` conditions; `valid` says whether a pattern compiles.
pub(crate) fn parse_match(
    items: &[String],
    valid: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, ConfigError> {
    let condition = |item: &String| {
        let parts: Vec<&str> = item.split('=').map(str::trim).collect();
        match parts.as_slice() {
            [key, pattern] if MATCH_KEYS.contains(key) && !pattern.is_empty() && valid(pattern) => {
                Ok(((*key).to_owned(), (*pattern).to_owned()))
            }
            _ => Err(ConfigError::config(format!(
                "Illegal client matching pattern: {item}"
            ))),
        }
    };
    items.iter().map(condition).collect()
}
