//! The options of a group, of every protocol but the classic one (KIP-848, KIP-932, KIP-1071).

use super::broker_keys::BrokerConfig;
use super::error::ConfigError;
use super::key::config_keys;
use super::value::parse_duration_ms;

config_keys! {
    /// Everything a group obeys, its own settings over the broker's.
    GroupConfig in Group, table GROUP_KEYS;

    /// How often a member of the consumer group is told to report.
    "consumer.heartbeat.interval.ms" consumer_heartbeat_interval_ms: i32 = "5000", AtLeast(1), Dynamic
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
    "share.record.lock.duration.ms" share_record_lock_duration_ms: i32 = "30000", AtLeast(1000), Dynamic
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
        for (name, value, least, most) in self.bounded(broker) {
            if least.is_some_and(|(_, least)| value < least) {
                let bound = least.map_or("", |(bound, _)| bound);
                return Err(ConfigError::config(format!(
                    "{name} must be greater than or equal to {bound}"
                )));
            }
            if value > most.1 {
                return Err(ConfigError::config(format!(
                    "{name} must be less than or equal to {}",
                    most.0
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

    /// Each bounded option with the broker's bounds, in the order Kafka checks them.
    fn bounded(&self, broker: &BrokerConfig) -> [Bounded; 8] {
        [
            (
                "consumer.heartbeat.interval.ms",
                self.consumer_heartbeat_interval_ms,
                Some((
                    "group.consumer.min.heartbeat.interval.ms",
                    broker.group_consumer_min_heartbeat_interval_ms,
                )),
                (
                    "group.consumer.max.heartbeat.interval.ms",
                    broker.group_consumer_max_heartbeat_interval_ms,
                ),
            ),
            (
                "consumer.session.timeout.ms",
                self.consumer_session_timeout_ms,
                Some((
                    "group.consumer.min.session.timeout.ms",
                    broker.group_consumer_min_session_timeout_ms,
                )),
                (
                    "group.consumer.max.session.timeout.ms",
                    broker.group_consumer_max_session_timeout_ms,
                ),
            ),
            (
                "share.heartbeat.interval.ms",
                self.share_heartbeat_interval_ms,
                Some((
                    "group.share.min.heartbeat.interval.ms",
                    broker.group_share_min_heartbeat_interval_ms,
                )),
                (
                    "group.share.max.heartbeat.interval.ms",
                    broker.group_share_max_heartbeat_interval_ms,
                ),
            ),
            (
                "share.session.timeout.ms",
                self.share_session_timeout_ms,
                Some((
                    "group.share.min.session.timeout.ms",
                    broker.group_share_min_session_timeout_ms,
                )),
                (
                    "group.share.max.session.timeout.ms",
                    broker.group_share_max_session_timeout_ms,
                ),
            ),
            (
                "share.record.lock.duration.ms",
                self.share_record_lock_duration_ms,
                Some((
                    "group.share.min.record.lock.duration.ms",
                    broker.group_share_min_record_lock_duration_ms,
                )),
                (
                    "group.share.max.record.lock.duration.ms",
                    broker.group_share_max_record_lock_duration_ms,
                ),
            ),
            (
                "streams.heartbeat.interval.ms",
                self.streams_heartbeat_interval_ms,
                Some((
                    "group.streams.min.heartbeat.interval.ms",
                    broker.group_streams_min_heartbeat_interval_ms,
                )),
                (
                    "group.streams.max.heartbeat.interval.ms",
                    broker.group_streams_max_heartbeat_interval_ms,
                ),
            ),
            (
                "streams.session.timeout.ms",
                self.streams_session_timeout_ms,
                Some((
                    "group.streams.min.session.timeout.ms",
                    broker.group_streams_min_session_timeout_ms,
                )),
                (
                    "group.streams.max.session.timeout.ms",
                    broker.group_streams_max_session_timeout_ms,
                ),
            ),
            (
                "streams.num.standby.replicas",
                self.streams_num_standby_replicas,
                None,
                (
                    "group.streams.max.standby.replicas",
                    broker.group_streams_max_standby_replicas,
                ),
            ),
        ]
    }
}

/// An option's name and value, its least and its greatest value with the options that say so.
type Bounded = (&'static str, i32, Option<Bound>, Bound);
type Bound = (&'static str, i32);
