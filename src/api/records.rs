//! DeleteRecords: versions 0-2.
//!
//! - Only the first offset that can be read moves, at once; whole segments below it go later.
//! - Refused for topics that are compacted alone, and for Kafka's own
//!   (ReplicaManager.deleteRecordsOnLocalLog).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use super::context::Context;
use super::list_offsets::hosted;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use crate::config::{ConfigError, TopicConfig, Values};
use crate::metadata::image::configs::Resource;
use crate::metadata::names;
use crate::protocol::error::{ErrorCode, Refusal};

impl Refuse for DeleteRecordsRequest {
    type Response = DeleteRecordsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> DeleteRecordsResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter();
            let refused = partitions.map(|one| deleted(one.partition_index, Err(refusal.code)));
            DeleteRecordsTopicResult::default()
                .with_name(topic.name.clone())
                .with_partitions(refused.collect())
        });
        DeleteRecordsResponse::default().with_topics(topics.collect())
    }
}

/// Deletes the records before an offset.
pub(super) async fn delete(
    ctx: Context,
    request: Arc<DeleteRecordsRequest>,
) -> Result<Reply<DeleteRecordsResponse>, Refusal> {
    // The last offset of a partition that is named twice counts, as in Kafka's map.
    let mut wanted: BTreeMap<&str, BTreeMap<i32, i64>> = BTreeMap::new();
    for topic in &request.topics {
        let offsets = topic
            .partitions
            .iter()
            .map(|one| (one.partition_index, one.offset));
        wanted
            .entry(topic.name.as_str())
            .or_default()
            .extend(offsets);
    }
    let mut response = DeleteRecordsResponse::default();
    for (topic, offsets) in wanted {
        let mut partitions = Vec::with_capacity(offsets.len());
        for (index, offset) in offsets {
            let result = delete_before(&ctx, topic, index, offset).await;
            partitions.push(deleted(index, result));
        }
        let topic = DeleteRecordsTopicResult::default()
            .with_name(topic_name(topic))
            .with_partitions(partitions);
        response.topics.push(topic);
    }
    Ok(response.into())
}

async fn delete_before(
    ctx: &Context,
    topic: &str,
    index: i32,
    offset: i64,
) -> Result<i64, ErrorCode> {
    let partition = match hosted(ctx, topic, index) {
        Err(ErrorCode::UnknownTopicOrPartition) => return Err(ErrorCode::UnknownTopicOrPartition),
        _ if names::is_internal(topic) => return Err(ErrorCode::InvalidTopicException),
        partition => partition?,
    };
    partition.check_leader(-1)?;
    // What is set was checked when it was set.
    let options = options_of(ctx, topic).map_err(|_| ErrorCode::UnknownServerError)?;
    // Where nothing is deleted by age, the last record of each key is kept.
    let cleanup = options.cleanup();
    if cleanup.compact && !cleanup.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    let delay = u64::try_from(options.file_delete_delay_ms).unwrap_or(0);
    partition
        .delete_records(offset, Duration::from_millis(delay))
        .await
}

fn options_of(ctx: &Context, topic: &str) -> Result<TopicConfig, ConfigError> {
    let own = ctx.image().configs.of(&Resource::topic(topic));
    let own = own.map_or_else(Values::new, |own| Values::clone(own));
    ctx.parts.options.current().config.topic(&own)
}

fn deleted(index: i32, result: Result<i64, ErrorCode>) -> DeleteRecordsPartitionResult {
    let answer = DeleteRecordsPartitionResult::default().with_partition_index(index);
    match result {
        Ok(low_watermark) => answer.with_low_watermark(low_watermark),
        Err(code) => answer.with_low_watermark(-1).with_error_code(code.code()),
    }
}
