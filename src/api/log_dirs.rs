//! DescribeLogDirs: versions 1-4.
//!
//! - v3 has an error of its own · v4 tells the space of the file system (KIP-827).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use crate::log::dir::LogDir;
use crate::os::tasks;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::replica::partition::Partition;

impl Refuse for DescribeLogDirsRequest {
    type Response = DescribeLogDirsResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> DescribeLogDirsResponse {
        let response = DescribeLogDirsResponse::default();
        if version >= 3 {
            response.with_error_code(refusal.code.code())
        } else {
            response
        }
    }
}

/// Tells the log directories and how large the replicas in them are.
pub(super) async fn describe(
    ctx: Context,
    request: Arc<DescribeLogDirsRequest>,
) -> Result<Reply<DescribeLogDirsResponse>, Refusal> {
    let looked = tasks::blocking(move || results(&ctx, &request)).await;
    let results = looked.map_err(|_| ErrorCode::UnknownServerError)?;
    Ok(DescribeLogDirsResponse::default()
        .with_results(results)
        .into())
}

/// Asks the file system, so not on the runtime.
fn results(ctx: &Context, request: &DescribeLogDirsRequest) -> Vec<DescribeLogDirsResult> {
    let replicas = &ctx.parts.replicas;
    let wanted = Wanted::of(request);
    let mut by_dir: HashMap<PathBuf, Vec<Arc<Partition>>> = HashMap::new();
    for partition in replicas.all() {
        if wanted.contains(&partition) {
            let dir = partition.dir.path().to_owned();
            by_dir.entry(dir).or_default().push(partition);
        }
    }
    let online = replicas.dirs().dirs();
    let mut results: Vec<_> = online
        .iter()
        .map(|dir| {
            let partitions = by_dir.remove(dir.path()).unwrap_or_default();
            described(ctx.version, dir, &partitions)
        })
        .collect();
    let offline = ctx.parts.options.file().data_dirs();
    let offline = offline
        .into_iter()
        .map(PathBuf::from)
        .filter(|path| online.iter().all(|dir| dir.path() != path));
    results.extend(offline.map(|path| failed(&path)));
    results
}

/// The partitions that were asked for.
enum Wanted<'a> {
    All,
    Only(HashSet<(&'a str, i32)>),
}

impl<'a> Wanted<'a> {
    fn of(request: &'a DescribeLogDirsRequest) -> Self {
        let Some(topics) = &request.topics else {
            return Self::All;
        };
        let partitions = topics.iter().flat_map(|topic| {
            let indexes = topic.partitions.iter();
            indexes.map(|index| (topic.topic.as_str(), *index))
        });
        Self::Only(partitions.collect())
    }

    fn contains(&self, partition: &Partition) -> bool {
        let of = &partition.name;
        match self {
            Self::All => true,
            Self::Only(wanted) => wanted.contains(&(&*of.topic, of.partition)),
        }
    }
}

fn described(version: i16, dir: &LogDir, partitions: &[Arc<Partition>]) -> DescribeLogDirsResult {
    let mut topics: BTreeMap<&str, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for partition in partitions {
        let topic = topics.entry(&partition.name.topic).or_default();
        topic.push(replica(partition));
    }
    let topics = topics.into_iter().map(|(name, mut partitions)| {
        partitions.sort_by_key(|one| one.partition_index);
        DescribeLogDirsTopic::default()
            .with_name(topic_name(name))
            .with_partitions(partitions)
    });
    let mut result = DescribeLogDirsResult::default()
        .with_log_dir(shown(dir.path()))
        .with_topics(topics.collect());
    if version >= 4 {
        // A file system that does not tell leaves the fields at "unknown".
        if let Ok(space) = dir.space() {
            result.total_bytes = i64::try_from(space.total).unwrap_or(i64::MAX);
            result.usable_bytes = i64::try_from(space.usable).unwrap_or(i64::MAX);
        }
    }
    result
}

fn replica(partition: &Partition) -> DescribeLogDirsPartition {
    let reader = partition.reader();
    let lag = partition.high_watermark() - reader.log_end_offset();
    DescribeLogDirsPartition::default()
        .with_partition_index(partition.name.partition)
        .with_partition_size(i64::try_from(reader.size()).unwrap_or(i64::MAX))
        .with_offset_lag(lag.max(0))
}

fn failed(path: &Path) -> DescribeLogDirsResult {
    DescribeLogDirsResult::default()
        .with_error_code(ErrorCode::KafkaStorageError.code())
        .with_log_dir(shown(path))
}

fn shown(path: &Path) -> StrBytes {
    StrBytes::from_string(path.display().to_string())
}
