//! What a partition takes from the options: its topic's, over the broker's.

use std::sync::Arc;

use crate::config::options::{Effective, Options};
use crate::config::{BrokerConfig, CompressionType, TimestampType, TopicConfig, Values};
use crate::log::config::LogConfig;
use crate::metadata::image::Image;
use crate::metadata::image::configs::Resource;
use crate::protocol::records::batch;
use crate::protocol::records::compress::{Codec, Compression};

/// What the records of one batch may inflate to: as much as a request may bring uncompressed,
/// and not less than 128 MiB.
const INFLATED_BYTES: u64 = 128 << 20;

/// A log's settings from its topic's options.
pub(super) fn log_config(topic: &TopicConfig, broker: &BrokerConfig) -> LogConfig {
    let cleanup = topic.cleanup();
    let request_bytes = u64::try_from(broker.socket_request_max_bytes).unwrap_or(0);
    LogConfig {
        segment_bytes: u64::try_from(topic.segment_size()).unwrap_or(u64::MAX),
        segment_ms: segment_ms(topic),
        segment_jitter_ms: topic.segment_jitter_ms,
        segment_index_bytes: usize::try_from(topic.segment_index_bytes).unwrap_or(usize::MAX),
        index_interval_bytes: u64::try_from(topic.index_interval_bytes).unwrap_or(0),
        max_message_bytes: usize::try_from(topic.max_message_bytes).unwrap_or(0),
        inflated_bytes_max: INFLATED_BYTES.max(request_bytes),
        timestamp_type: match topic.timestamps() {
            TimestampType::CreateTime => batch::TimestampType::CreateTime,
            TimestampType::LogAppendTime => batch::TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: topic.message_timestamp_before_max_ms,
        timestamp_after_max_ms: topic.message_timestamp_after_max_ms,
        compression: compression(topic),
        compact: cleanup.compact,
        delete: cleanup.delete,
        retention_ms: topic.retention_ms,
        retention_bytes: topic.retention_bytes,
        file_delete_delay_ms: topic.file_delete_delay_ms,
        delete_retention_ms: topic.delete_retention_ms,
        min_cleanable_ratio: topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms: topic.min_compaction_lag_ms,
        max_compaction_lag_ms: topic.max_compaction_lag_ms,
        flush_messages: topic.flush_messages,
        flush_ms: topic.flush_ms,
        preallocate: topic.preallocate,
        producer_id_expiration_ms: i64::from(broker.producer_id_expiration_ms),
        ..LogConfig::default()
    }
}

/// A segment is compacted only once it is closed, so one that must be compacted soon is closed soon
/// (LogConfig.maxSegmentMs).
fn segment_ms(topic: &TopicConfig) -> i64 {
    match topic.cleanup().compact {
        true => topic.segment_ms.min(topic.max_compaction_lag_ms),
        false => topic.segment_ms,
    }
}

fn compression(topic: &TopicConfig) -> Option<Compression> {
    let at = |codec, level| {
        Some(Compression {
            codec,
            level: Some(level),
        })
    };
    match topic.compression() {
        CompressionType::Producer => None,
        CompressionType::Uncompressed => Some(Codec::None.into()),
        CompressionType::Gzip => at(Codec::Gzip, topic.compression_gzip_level),
        CompressionType::Snappy => Some(Codec::Snappy.into()),
        CompressionType::Lz4 => at(Codec::Lz4, topic.compression_lz4_level),
        CompressionType::Zstd => at(Codec::Zstd, topic.compression_zstd_level),
    }
}

/// What one topic's partitions are told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) log: Arc<LogConfig>,
    pub(crate) min_in_sync: usize,
}

/// The settings of a topic's partitions, from what is set on it in `image` and on this node.
pub(crate) fn of_topic(options: &Options, image: &Image, topic: &str) -> Told {
    let current = options.current();
    let own = image.configs.of(&Resource::topic(topic));
    let own = own.map_or_else(Values::new, |own| Values::clone(own));
    told(&current, &own).unwrap_or_else(|| {
        // What is set was checked when it was set; a later release may know more than this one.
        tracing::warn!(
            topic,
            "options of a topic cannot be read, it runs with the defaults"
        );
        told(&current, &Values::new()).expect("the broker's own options were read at its start")
    })
}

fn told(current: &Effective, own: &Values) -> Option<Told> {
    let topic = current.config.topic(own).ok()?;
    Some(Told {
        log: Arc::new(log_config(&topic, &current.config)),
        min_in_sync: usize::try_from(topic.min_insync_replicas).unwrap_or(1),
    })
}
