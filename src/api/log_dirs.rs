//! DescribeLogDirs: versions 1-4. AlterReplicaLogDirs: versions 1-2.
//!
//! - v3 of the former has an error of its own · v4 tells the space of the file system (KIP-827).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kafka_protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, DescribeLogDirsRequest,
    DescribeLogDirsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::metadata::topic_name;
use super::serve::{Refuse, Reply};
use crate::base::{DirectoryId, TopicPartition};
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
    let mut by_dir: HashMap<DirectoryId, Vec<(TopicPartition, Described)>> = HashMap::new();
    for partition in replicas.all() {
        if !wanted.contains(&partition) {
            continue;
        }
        let reader = partition.reader();
        let end = reader.log_end_offset();
        let mut add = |dir: &LogDir, described| {
            let here = by_dir.entry(dir.id()).or_default();
            here.push((partition.name.clone(), described));
        };
        let described = Described {
            size: reader.size(),
            lag: (partition.high_watermark() - end).max(0),
            is_future: false,
        };
        add(&partition.dir(), described);
        if let Some((copy, dir)) = partition.copy() {
            let described = Described {
                size: copy.size(),
                lag: end - copy.log_end_offset(),
                is_future: true,
            };
            add(&dir, described);
        }
    }
    let online = replicas.dirs().dirs();
    let describe = |path: &PathBuf| match online.iter().find(|dir| dir.path() == path) {
        Some(dir) => {
            let partitions = by_dir.remove(&dir.id()).unwrap_or_default();
            described(ctx.version, dir, partitions)
        }
        None => failed(path),
    };
    replicas.dirs().paths().iter().map(describe).collect()
}

/// One replica in a directory, or one on its way there.
struct Described {
    size: u64,
    lag: i64,
    is_future: bool,
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

fn described(
    version: i16,
    dir: &LogDir,
    partitions: Vec<(TopicPartition, Described)>,
) -> DescribeLogDirsResult {
    let mut topics: BTreeMap<Arc<str>, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for (of, described) in partitions {
        let topic = topics.entry(of.topic).or_default();
        topic.push(
            DescribeLogDirsPartition::default()
                .with_partition_index(of.partition)
                .with_partition_size(i64::try_from(described.size).unwrap_or(i64::MAX))
                .with_offset_lag(described.lag)
                .with_is_future_key(described.is_future),
        );
    }
    let topics = topics.into_iter().map(|(name, mut partitions)| {
        partitions.sort_by_key(|one| one.partition_index);
        DescribeLogDirsTopic::default()
            .with_name(topic_name(&name))
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

fn failed(path: &Path) -> DescribeLogDirsResult {
    DescribeLogDirsResult::default()
        .with_error_code(ErrorCode::KafkaStorageError.code())
        .with_log_dir(shown(path))
}

fn shown(path: &Path) -> StrBytes {
    StrBytes::from_string(path.display().to_string())
}

impl Refuse for AlterReplicaLogDirsRequest {
    type Response = AlterReplicaLogDirsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> AlterReplicaLogDirsResponse {
        altered(wishes(self).into_iter().map(|(of, _)| (of, refusal.code)))
    }
}

/// Has replicas move to other directories; they are copied in the background.
pub(super) async fn alter(
    ctx: Context,
    request: Arc<AlterReplicaLogDirsRequest>,
) -> Result<Reply<AlterReplicaLogDirsResponse>, Refusal> {
    let wishes = wishes(&request);
    let replicas = ctx.parts.replicas.clone();
    let work = tasks::blocking(move || {
        let codes = replicas.alter_dirs(&wishes);
        wishes.into_iter().map(|(of, _)| of).zip(codes)
    });
    let answers = work.await.map_err(|_| ErrorCode::UnknownServerError)?;
    Ok(altered(answers).into())
}

/// Where each replica shall go; of a partition that is named twice, where it was named last
/// (AlterReplicaLogDirsRequest.partitionDirs).
fn wishes(request: &AlterReplicaLogDirsRequest) -> Vec<(TopicPartition, String)> {
    let mut wishes: Vec<(TopicPartition, String)> = Vec::new();
    let mut known: HashMap<TopicPartition, usize> = HashMap::new();
    for dir in &request.dirs {
        for topic in &dir.topics {
            let name: Arc<str> = topic.name.as_str().into();
            for index in &topic.partitions {
                let of = TopicPartition::new(name.clone(), *index);
                let path = dir.path.as_str().to_owned();
                match known.entry(of.clone()) {
                    Entry::Occupied(at) => wishes[*at.get()].1 = path,
                    Entry::Vacant(at) => {
                        at.insert(wishes.len());
                        wishes.push((of, path));
                    }
                }
            }
        }
    }
    wishes
}

fn altered(
    answers: impl Iterator<Item = (TopicPartition, ErrorCode)>,
) -> AlterReplicaLogDirsResponse {
    let mut results: Vec<AlterReplicaLogDirTopicResult> = Vec::new();
    let mut known: HashMap<Arc<str>, usize> = HashMap::new();
    for (of, code) in answers {
        let at = *known.entry(of.topic.clone()).or_insert_with(|| {
            let result = AlterReplicaLogDirTopicResult::default();
            results.push(result.with_topic_name(topic_name(&of.topic)));
            results.len() - 1
        });
        results[at].partitions.push(
            AlterReplicaLogDirPartitionResult::default()
                .with_partition_index(of.partition)
                .with_error_code(code.code()),
        );
    }
    AlterReplicaLogDirsResponse::default().with_results(results)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::alter_replica_log_dirs_request::{
        AlterReplicaLogDir, AlterReplicaLogDirTopic,
    };

    use super::*;

    #[test]
    fn a_replica_goes_where_it_was_sent_last() {
        let dir = |path: &str, topic: &str, partitions: &[i32]| {
            let topic = AlterReplicaLogDirTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(partitions.to_vec());
            AlterReplicaLogDir::default()
                .with_path(StrBytes::from_string(path.to_owned()))
                .with_topics(vec![topic])
        };
        let dirs = vec![
            dir("/a", "t", &[0, 1]),
            dir("/b", "u", &[0]),
            dir("/b", "t", &[1, 1]),
        ];
        let request = AlterReplicaLogDirsRequest::default().with_dirs(dirs);
        let wishes = wishes(&request);
        let shown: Vec<_> = wishes.iter().map(|(of, to)| format!("{of} {to}")).collect();
        assert_eq!(shown, ["t-0 /a", "t-1 /b", "u-0 /b"]);
        let answer = altered(wishes.into_iter().map(|(of, _)| (of, ErrorCode::None)));
        let count = |at: usize| answer.results[at].partitions.len();
        assert_eq!((answer.results.len(), count(0), count(1)), (2, 2, 1));
    }
}
