//! What a log is told by its topic's configuration; replaceable while it runs.

use crate::protocol::records::batch::TimestampType;
use crate::protocol::records::compress::Compression;

/// The settings of one log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogConfig {
    /// `segment.bytes`
    pub(crate) segment_bytes: u64,
    /// `segment.ms`
    pub(crate) segment_ms: i64,
    /// `segment.jitter.ms`
    pub(crate) segment_jitter_ms: i64,
    /// `segment.index.bytes`
    pub(crate) segment_index_bytes: usize,
    /// `index.interval.bytes`
    pub(crate) index_interval_bytes: u64,
    /// `max.message.bytes`
    pub(crate) max_message_bytes: usize,
    /// What the records of one batch may inflate to.
    pub(crate) inflated_bytes_max: u64,
    /// `message.timestamp.type`
    pub(crate) timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub(crate) timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub(crate) timestamp_after_max_ms: i64,
    /// `compression.type` with its level; `None` keeps the producer's.
    pub(crate) compression: Option<Compression>,
    /// Whether `cleanup.policy` has `compact`: every record needs a key.
    pub(crate) compact: bool,
    /// Whether it has `delete`: old segments go by age and size.
    pub(crate) delete: bool,
    /// `retention.ms`; negative for ever.
    pub(crate) retention_ms: i64,
    /// `retention.bytes`; negative without limit.
    pub(crate) retention_bytes: i64,
    /// `file.delete.delay.ms`
    pub(crate) file_delete_delay_ms: i64,
    /// `delete.retention.ms`: how long a compacted log keeps tombstones and markers.
    pub(crate) delete_retention_ms: i64,
    /// `min.cleanable.dirty.ratio`
    pub(crate) min_cleanable_ratio: f64,
    /// `min.compaction.lag.ms`
    pub(crate) min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`
    pub(crate) max_compaction_lag_ms: i64,
    /// `flush.messages`
    pub(crate) flush_messages: i64,
    /// `flush.ms`
    pub(crate) flush_ms: i64,
    /// `preallocate`: a new segment takes its full size at once.
    pub(crate) preallocate: bool,
    /// `producer.id.expiration.ms`
    pub(crate) producer_id_expiration_ms: i64,
    /// How many batches a log remembers in memory; 16 bytes each.
    pub(crate) tail_batches: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            max_message_bytes: 1_048_588,
            inflated_bytes_max: 128 << 20,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compression: None,
            compact: false,
            delete: true,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            file_delete_delay_ms: 60_000,
            delete_retention_ms: 86_400_000,
            min_cleanable_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            preallocate: false,
            producer_id_expiration_ms: 86_400_000,
            tail_batches: 16_384,
        }
    }
}
