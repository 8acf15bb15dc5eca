//! The options of a group, of every protocol but the classic one (KIP-848, KIP-932, KIP-1071).

use super::broker_keys::BrokerConfig;
use super::error::ConfigError;
use super::key::config_keys;
use super::value::parse_duration_ms;

config_keys! {
    /// Everything a group obeys, its own settings over the broker's.
    GroupConfig in Group, table GROUP_KEYS;

    /// How often a member of the consumer group is told to report.
    "consumer.heartbeat.interval.ms"
        consumer_heartbeat_interval_ms: i32 = "5000", AtLeast(1), Dynamic
        from ["group.consumer.heartbeat.interval.ms"];
    /// After how long without a report a member leaves the consumer group.
    "consumer.session.timeout.ms" consumer_session_timeout_ms: i32 = "45000", AtLeast(1), Dynamic
        from ["group.consumer.session.timeout.ms"];
    /// Where a share group begins in a partition: `latest`, `earliest`, or `by_duration:` and how
    /// far back.
    "share.auto.offset.reset" share_auto_offset_reset: String = "latest", OffsetReset, Dynamic;
    /// How often a member of the share group is told to report.
    "share.heartbeat.interval.ms" share_heartbeat_interval_ms: i32 = "5000", AtLeast(1), Dynamic
        from ["group.share.heartbeat.interval.ms"];
    /// Whether the share group sees records of open and aborted transactions.
    "share.isolation.level"
        share_isolation_level: String =
            "read_uncommitted", OneOf(&["read_committed", "read_uncommitted"]), Dynamic;
    /// How long a member holds a record before others may have it.
    "share.record.lock.duration.ms"
        share_record_lock_duration_ms: i32 = "30000", AtLeast(1000), Dynamic
        from ["group.share.record.lock.duration.ms"];
    /// After how long without a report a member leaves the share group.
    "share.session.timeout.ms" share_session_timeout_ms: i32 = "45000", AtLeast(1), Dynamic
        from ["group.share.session.timeout.ms"];
    /// How often a member of the streams group is told to report.
    "streams.heartbeat.interval.ms" streams_heartbeat_interval_ms: i32 = "5000", AtLeast(1), Dynamic
        from ["group.streams.heartbeat.interval.ms"];
    /// How many standby copies each task of the streams group has.
    "streams.num.standby.replicas" streams_num_standby_replicas: i32 = "0", AtLeast(0), Dynamic
        from ["group.streams.num.standby.replicas"];
    /// After how long without a report a member leaves the streams group.
    "streams.session.timeout.ms" streams_session_timeout_ms: i32 = "45000", AtLeast(1), Dynamic
        from ["group.streams.session.timeout.ms"];
}

/// Where a share partition begins that nobody has read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetReset {
    Latest,
    Earliest,
    /// At the first record not older than so many milliseconds.
    ByDuration(i64),
}

impl GroupConfig {
    /// Where a share partition begins that nobody has read yet.
    pub(crate) fn offset_reset(&self) -> OffsetReset {
        match self
            .share_auto_offset_reset
            .strip_prefix("by_duration:")
            .map(parse_duration_ms)
        {
            Some(Some(ms)) => OffsetReset::ByDuration(ms),
            Some(None) => unreachable!("the row allows readable durations only"),
            None if self.share_auto_offset_reset == "earliest" => OffsetReset::Earliest,
            None => OffsetReset::Latest,
        }
    }

    /// Whether share consumers see only what transactions have committed.
    pub(crate) fn read_committed(&self) -> bool {
        self.share_isolation_level == "read_committed"
    }

    /// The broker's bounds, then the order of heartbeat and session in each protocol.
    pub(crate) fn check(&self, broker: &BrokerConfig) -> Result<(), ConfigError> {
        for name in BOUNDED {
            let (kind, rest) = name
                .split_once('.')
                .expect("an option begins with its protocol");
            let (least, most) = (
                format!("group.{kind}.min.{rest}"),
                format!("group.{kind}.max.{rest}"),
            );
            // Standby replicas have no least number; the option's name drops `num.` in the most.
            let most = most.replace(".max.num.", ".max.");
            let value = number(self.print(name));
            if number(broker.print(&least)).is_some_and(|least| value < Some(least)) {
                return Err(ConfigError::config(format!(
                    "{name} must be greater than or equal to {least}"
                )));
            }
            if value > number(broker.print(&most)) {
                return Err(ConfigError::config(format!(
                    "{name} must be less than or equal to {most}"
                )));
            }
        }
        self.check_order()
    }

    fn check_order(&self) -> Result<(), ConfigError> {
        for (kind, session, heartbeat) in [
            (
                "consumer",
                self.consumer_session_timeout_ms,
                self.consumer_heartbeat_interval_ms,
            ),
            (
                "share",
                self.share_session_timeout_ms,
                self.share_heartbeat_interval_ms,
            ),
            (
                "streams",
                self.streams_session_timeout_ms,
                self.streams_heartbeat_interval_ms,
            ),
        ] {
            if session <= heartbeat {
                return Err(ConfigError::config(format!(
                    "{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
                )));
            }
        }
        Ok(())
    }
}

fn number(text: Option<String>) -> Option<i64> {
    text.and_then(|text| text.parse().ok())
}

/// The options that a broker bounds, in the order in which Kafka checks them.
const BOUNDED: &[&str] = &[
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Values;

    fn group(name: &str, value: &str) -> GroupConfig {
        let (broker, _) = BrokerConfig::from_properties(&[]).unwrap();
        broker
            .group(&Values::from([(name.to_owned(), value.to_owned())]))
            .unwrap()
    }

    #[test]
    fn a_share_group_may_begin_at_an_age() {
        let reset = |value| group("share.auto.offset.reset", value).offset_reset();
        assert_eq!(reset("latest"), OffsetReset::Latest);
        assert_eq!(reset("earliest"), OffsetReset::Earliest);
        assert_eq!(reset("by_duration:PT1M"), OffsetReset::ByDuration(60_000));
    }

    #[test]
    fn every_bounded_option_has_a_most_in_the_broker() {
        let (broker, _) = BrokerConfig::from_properties(&[]).unwrap();
        for name in BOUNDED {
            let error = group(name, "2147483647").check(&broker).unwrap_err();
            assert!(
                error
                    .message
                    .starts_with(&format!("{name} must be less than")),
                "{error}"
            );
        }
    }
}
