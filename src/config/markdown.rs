//! The reference of all options, as `docs/config.md` prints it.

use std::fmt::Write;

use super::broker_keys::BROKER_KEYS;
use super::client_metrics::CLIENT_METRICS_KEYS;
use super::group::GROUP_KEYS;
use super::key::{Default, Key, Mode};
use super::quota::{CLIENT_QUOTA_KEYS, DYNAMIC_ONLY_KEYS, IP_QUOTA_KEYS};
use super::topic::TOPIC_KEYS;

/// One table for each kind of resource.
pub(crate) fn markdown() -> String {
    let mut text = String::from("# Options\n");
    for (title, table) in [
        ("Brokers and controllers", BROKER_KEYS),
        ("Brokers, only while running", DYNAMIC_ONLY_KEYS),
        ("Topics", TOPIC_KEYS),
        ("Groups", GROUP_KEYS),
        ("Client metrics", CLIENT_METRICS_KEYS),
        ("Quotas of users and client ids", CLIENT_QUOTA_KEYS),
        ("Quotas of addresses", IP_QUOTA_KEYS),
    ] {
        let _ = write!(
            text,
            "\n## {title}\n\n| name | type | default | valid | changes | meaning |\n\
             |---|---|---|---|---|---|\n"
        );
        for key in table {
            let _ = writeln!(text, "{}", row(key));
        }
    }
    text
}

fn row(key: &Key) -> String {
    let default = match key.default {
        Default::Required => "(required)",
        Default::Null => "(none)",
        Default::Text("") => "(empty)",
        Default::Text(text) => text,
    };
    let changes = match key.mode {
        Mode::ReadOnly => "at start",
        Mode::PerBroker => "per broker",
        Mode::ClusterWide => "cluster-wide",
        Mode::Dynamic => "any time",
    };
    let note = if key.has_effect() {
        ""
    } else {
        " *Accepted, without effect.*"
    };
    format!(
        "| `{}` | {} | {default} | {} | {changes} | {}{note} |",
        key.name,
        key.kind.name(),
        key.valid.describe(),
        key.doc
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_line() {
        let text = markdown();
        assert_eq!(
            text.lines().filter(|line| line.starts_with("| `")).count(),
            391
        );
        assert!(text.contains("| `segment.bytes` | INT | 1073741824 | [1048576,...] | any time |"));
    }
}
