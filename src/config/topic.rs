//! The options of a topic: what each partition's log obeys.

use super::error::ConfigError;
use super::key::config_keys;

/// What `cleanup.policy` may name.
pub(crate) const CLEANUP_POLICIES: &[&str] = &["compact", "delete"];
/// What `compression.type` may name.
pub(crate) const COMPRESSION_TYPES: &[&str] =
    &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
/// What `message.timestamp.type` may name.
pub(crate) const TIMESTAMP_TYPES: &[&str] = &["CreateTime", "LogAppendTime"];

config_keys! {
    /// Everything a topic obeys, its own settings over the broker's over the defaults.
    TopicConfig in Topic, table TOPIC_KEYS;

    /// What becomes of old records: `delete` by age and size, `compact` by key, or both.
    "cleanup.policy" cleanup_policy: Vec<String> = "delete", OneOf(CLEANUP_POLICIES), Dynamic
        from ["log.cleanup.policy"];
    /// How batches are compressed on disk: in one way for all, or as the `producer` sent them.
    "compression.type" compression_type: String = "producer", OneOf(COMPRESSION_TYPES), Dynamic
        from ["compression.type"];
    /// How hard gzip tries, where the broker compresses; -1 for its own default.
    "compression.gzip.level" compression_gzip_level: i32 = "-1", BetweenOr(1, 9, -1), Dynamic
        from ["compression.gzip.level"];
    /// How hard lz4 tries, where the broker compresses.
    "compression.lz4.level" compression_lz4_level: i32 = "9", Between(1, 17), Dynamic
        from ["compression.lz4.level"];
    /// How hard zstd tries, where the broker compresses.
    "compression.zstd.level" compression_zstd_level: i32 = "3", Between(-131_072, 22), Dynamic
        from ["compression.zstd.level"];
    /// How long deletions stay readable in a compacted log.
    "delete.retention.ms" delete_retention_ms: i64 = "86400000", AtLeast(0), Dynamic
        from ["log.cleaner.delete.retention.ms"];
    /// How long a dropped segment's files stay under another name before they are removed.
    "file.delete.delay.ms" file_delete_delay_ms: i64 = "60000", AtLeast(0), Dynamic
        from ["log.segment.delete.delay.ms"];
    /// After how many records a log is forced to the disk.
    "flush.messages" flush_messages: i64 = "9223372036854775807", AtLeast(1), Dynamic
        from ["log.flush.interval.messages"];
    /// How long a record may wait to be forced to the disk.
    "flush.ms" flush_ms: i64 = "9223372036854775807", AtLeast(0), Dynamic
        from ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];
    /// The replicas whose copying is slowed on the followers' side, each as `partition:broker`, or
    /// `*`.
    "follower.replication.throttled.replicas"
        follower_replication_throttled_replicas: Vec<String> = "", ThrottledReplicas, Dynamic;
    /// How many bytes of records go between two entries of an index.
    "index.interval.bytes" index_interval_bytes: i32 = "4096", AtLeast(0), Dynamic
        from ["log.index.interval.bytes"];
    /// The size of segments, for tests that need smaller ones than `segment.bytes` allows.
    "internal.segment.bytes" internal_segment_bytes: Option<i32> = Null, Any, Dynamic, Internal;
    /// The replicas whose copying is slowed on the leaders' side, each as `partition:broker`, or
    /// `*`.
    "leader.replication.throttled.replicas"
        leader_replication_throttled_replicas: Vec<String> = "", ThrottledReplicas, Dynamic;
    /// The size of what would stay on local disks of a tiered log; -2 for all that is kept.
    "local.retention.bytes" local_retention_bytes: i64 = "-2", AtLeast(-2), Dynamic
        from ["log.local.retention.bytes"], Inert;
    /// The age of what would stay on local disks of a tiered log; -2 for all that is kept.
    "local.retention.ms" local_retention_ms: i64 = "-2", AtLeast(-2), Dynamic
        from ["log.local.retention.ms"], Inert;
    /// The age at which a record must be compacted, worthwhile or not.
    "max.compaction.lag.ms" max_compaction_lag_ms: i64 = "9223372036854775807", AtLeast(1), Dynamic
        from ["log.cleaner.max.compaction.lag.ms"];
    /// The largest batch that is taken, as it arrives.
    "max.message.bytes" max_message_bytes: i32 = "1048588", AtLeast(0), Dynamic
        from ["message.max.bytes"];
    /// How far in the future a producer's timestamp may lie.
    "message.timestamp.after.max.ms"
        message_timestamp_after_max_ms: i64 = "3600000", AtLeast(0), Dynamic
        from ["log.message.timestamp.after.max.ms"];
    /// How far in the past a producer's timestamp may lie.
    "message.timestamp.before.max.ms"
        message_timestamp_before_max_ms: i64 = "9223372036854775807", AtLeast(0), Dynamic
        from ["log.message.timestamp.before.max.ms"];
    /// Whose clock dates records: the producer's, or the broker's when it appends.
    "message.timestamp.type"
        message_timestamp_type: String = "CreateTime", OneOf(TIMESTAMP_TYPES), Dynamic
        from ["log.message.timestamp.type"];
    /// The share of a log that must be uncompacted to make compacting worthwhile.
    "min.cleanable.dirty.ratio"
        min_cleanable_dirty_ratio: f64 = "0.5", BetweenReal(0.0, 1.0), Dynamic
        from ["log.cleaner.min.cleanable.ratio"];
    /// The age that a record must reach to be compacted.
    "min.compaction.lag.ms" min_compaction_lag_ms: i64 = "0", AtLeast(0), Dynamic
        from ["log.cleaner.min.compaction.lag.ms"];
    /// How many replicas must have a record before a producer that asked for all is told so.
    "min.insync.replicas" min_insync_replicas: i32 = "1", AtLeast(1), Dynamic
        from ["min.insync.replicas"];
    /// Whether a new segment takes its full size on the disk at once.
    "preallocate" preallocate: bool = "false", Any, Dynamic from ["log.preallocate"];
    /// Whether a tiered topic would stop to copy segments elsewhere.
    "remote.log.copy.disable" remote_log_copy_disable: bool = "false", Any, Dynamic, Inert;
    /// Whether what is stored elsewhere would go when tiering ends.
    "remote.log.delete.on.disable"
        remote_log_delete_on_disable: bool = "false", Any, Dynamic, Inert;
    /// Whether the topic would be tiered; no broker here is.
    "remote.storage.enable" remote_storage_enable: bool = "false", Any, Dynamic, Inert;
    /// The size above which a partition loses its oldest segments; -1 for no limit.
    "retention.bytes" retention_bytes: i64 = "-1", Any, Dynamic from ["log.retention.bytes"];
    /// How long records are kept where old ones are deleted; -1 for ever.
    "retention.ms" retention_ms: i64 = "604800000", AtLeast(-1), Dynamic
        from [
            "log.retention.ms",
            "log.retention.minutes" * 60_000,
            "log.retention.hours" * 3_600_000
        ];
    /// The size at which a log goes on in a new segment.
    "segment.bytes" segment_bytes: i32 = "1073741824", AtLeast(1_048_576), Dynamic
        from ["log.segment.bytes"];
    /// The size at which an index is full and its segment ends.
    "segment.index.bytes" segment_index_bytes: i32 = "10485760", AtLeast(4), Dynamic
        from ["log.index.size.max.bytes"];
    /// How much earlier than `segment.ms`, by chance, so that not all logs roll at once.
    "segment.jitter.ms" segment_jitter_ms: i64 = "0", AtLeast(0), Dynamic
        from ["log.roll.jitter.ms", "log.roll.jitter.hours" * 3_600_000];
    /// The age at which a log goes on in a new segment.
    "segment.ms" segment_ms: i64 = "604800000", AtLeast(1), Dynamic
        from ["log.roll.ms", "log.roll.hours" * 3_600_000];
    /// Whether a replica that lags may lead when no other is left, at the price of lost records.
    "unclean.leader.election.enable" unclean_leader_election_enable: bool = "false", Any, Dynamic
        from ["unclean.leader.election.enable"];
}

/// What becomes of records that are old or superseded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CleanupPolicy {
    pub(crate) compact: bool,
    pub(crate) delete: bool,
}

impl CleanupPolicy {
    /// The policy that a list of names spells.
    pub(crate) fn from_names(names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|given| given == name);
        Self {
            compact: has("compact"),
            delete: has("delete"),
        }
    }
}

/// How batches are stored: as the producer sent them, or compressed in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompressionType {
    Producer,
    Uncompressed,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl CompressionType {
    /// The type of that name, where there is one.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "producer" => Some(Self::Producer),
            "uncompressed" => Some(Self::Uncompressed),
            "gzip" => Some(Self::Gzip),
            "snappy" => Some(Self::Snappy),
            "lz4" => Some(Self::Lz4),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Whose clock dates a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampType {
    CreateTime,
    LogAppendTime,
}

impl TopicConfig {
    /// Whether old records are dropped, superseded ones, or both.
    pub(crate) fn cleanup(&self) -> CleanupPolicy {
        CleanupPolicy::from_names(&self.cleanup_policy)
    }

    /// How batches are to be compressed.
    pub(crate) fn compression(&self) -> CompressionType {
        CompressionType::from_name(&self.compression_type).expect("the row allows known names only")
    }

    /// Whose clock dates a record.
    pub(crate) fn timestamps(&self) -> TimestampType {
        match self.message_timestamp_type == "LogAppendTime" {
            true => TimestampType::LogAppendTime,
            false => TimestampType::CreateTime,
        }
    }

    /// The size at which a segment is rolled: the internal option lets tests go below the minimum.
    pub(crate) fn segment_size(&self) -> i32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }

    /// Conditions among several options; `was_remote` says whether the topic was tiered before.
    pub(crate) fn check(&self, tiering: bool, was_remote: bool) -> Result<(), ConfigError> {
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms {
            return Err(ConfigError::config(format!(
                "conflict topic config setting min.compaction.lag.ms ({}) > \
                 max.compaction.lag.ms ({})",
                self.min_compaction_lag_ms, self.max_compaction_lag_ms
            )));
        }
        match self.remote_storage_enable {
            true => self.check_tiered(tiering),
            false if was_remote && !self.remote_log_delete_on_disable => {
                Err(ConfigError::config(KEEPS_REMOTE_DATA))
            }
            false => Ok(()),
        }
    }

    fn check_tiered(&self, tiering: bool) -> Result<(), ConfigError> {
        if !tiering {
            return Err(ConfigError::config(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be \
                 configured with remote log storage.",
            ));
        }
        let cleanup = self.cleanup();
        if cleanup.compact || !cleanup.delete {
            return Err(ConfigError::config(
                "Remote log storage only supports topics with cleanup.policy=delete",
            ));
        }
        check_local(
            ("local.retention.bytes", self.local_retention_bytes),
            ("retention.bytes", self.retention_bytes),
        )?;
        check_local(
            ("local.retention.ms", self.local_retention_ms),
            ("retention.ms", self.retention_ms),
        )?;
        self.check_copying_stopped()
    }

    fn check_copying_stopped(&self) -> Result<(), ConfigError> {
        let differs = |local: i64, total: i64| local != -2 && local != total;
        let name = match self.remote_log_copy_disable {
            true if differs(self.local_retention_bytes, self.retention_bytes) => "bytes",
            true if differs(self.local_retention_ms, self.retention_ms) => "ms",
            true | false => return Ok(()),
        };
        Err(ConfigError::config(format!(
            "When `remote.log.copy.disable` is set to true, the `local.retention.{name}` and \
             `retention.{name}` must be set to the identical value because there will be no more \
             logs copied to the remote storage."
        )))
    }
}

/// The local part of a log cannot outlast the whole (KIP-405).
pub(super) fn check_local(local: (&str, i64), total: (&str, i64)) -> Result<(), ConfigError> {
    let why = match (local.1, total.1) {
        (-2, _) | (_, -1) => return Ok(()),
        (-1, _) => {
            format!(
                "Value must not be -1 as {} value is set as {}.",
                total.0, total.1
            )
        }
        (part, whole) if part > whole => {
            format!(
                "Value must not be more than {} property value: {whole}",
                total.0
            )
        }
        _ => return Ok(()),
    };
    Err(ConfigError::value(local.0, local.1, why))
}

const KEEPS_REMOTE_DATA: &str = "It is invalid to disable remote storage without deleting remote \
    data. If you want to keep the remote data and turn to read only, please set \
    `remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote \
    storage and delete all remote data, please set \
    `remote.storage.enable=false,remote.log.delete.on.disable=true`.";

/// The partitions whose replication is throttled on a broker: `None` for all of the topic's.
pub(crate) fn throttled_partitions(list: &[String], broker: i32) -> Option<Vec<i32>> {
    if list.iter().any(|item| item == "*") {
        return None;
    }
    let here = |item: &String| {
        let (partition, replica) = item.split_once(':')?;
        (replica.parse() == Ok(broker)).then(|| partition.parse().ok())?
    };
    Some(list.iter().filter_map(here).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BrokerConfig;

    fn tiered(more: &[(&str, &str)]) -> TopicConfig {
        let (broker, _) = BrokerConfig::from_properties(&[]).unwrap();
        let enable = [("remote.storage.enable", "true")];
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        broker
            .topic(&enable.iter().chain(more).map(pair).collect())
            .unwrap()
    }

    fn refusal(more: &[(&str, &str)]) -> String {
        tiered(more).check(true, false).unwrap_err().message
    }

    #[test]
    fn a_tiered_topic_keeps_locally_no_more_than_in_all() {
        assert_eq!(tiered(&[]).check(true, false), Ok(()));
        assert!(
            tiered(&[])
                .check(false, false)
                .unwrap_err()
                .message
                .starts_with("Tiered Storage")
        );
        assert_eq!(
            refusal(&[("retention.ms", "5"), ("local.retention.ms", "6")]),
            "Invalid value 6 for configuration local.retention.ms: Value must not be more than \
             retention.ms property value: 5"
        );
        assert_eq!(
            refusal(&[("retention.bytes", "5"), ("local.retention.bytes", "-1")]),
            "Invalid value -1 for configuration local.retention.bytes: Value must not be -1 as \
             retention.bytes value is set as 5."
        );
        assert!(refusal(&[("cleanup.policy", "compact")]).starts_with("Remote log storage only"));
        let stopped = [
            ("remote.log.copy.disable", "true"),
            ("local.retention.ms", "5"),
        ];
        assert!(refusal(&stopped).starts_with("When `remote.log.copy.disable` is set to true"));
    }

    #[test]
    fn tiering_ends_only_with_the_remote_data() {
        let kept = tiered(&[("remote.storage.enable", "false")]);
        assert_eq!(
            kept.check(true, true).unwrap_err().message,
            KEEPS_REMOTE_DATA
        );
        let gone = [
            ("remote.storage.enable", "false"),
            ("remote.log.delete.on.disable", "true"),
        ];
        assert_eq!(tiered(&gone).check(true, true), Ok(()));
    }

    #[test]
    fn throttled_replicas_are_those_of_the_broker_or_all() {
        let list = |items: &[&str]| {
            items
                .iter()
                .map(|&item| item.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            throttled_partitions(&list(&["0:1", "1:2", "2:1"]), 1),
            Some(vec![0, 2])
        );
        assert_eq!(throttled_partitions(&list(&["*"]), 1), None);
        assert_eq!(throttled_partitions(&[], 1), Some(Vec::new()));
    }

    #[test]
    fn tests_may_have_smaller_segments() {
        let small = tiered(&[("internal.segment.bytes", "1000")]);
        assert_eq!(
            (small.segment_bytes, small.segment_size()),
            (1_073_741_824, 1000)
        );
    }
}
