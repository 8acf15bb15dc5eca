//! OffsetCommit: versions 2-9. OffsetFetch: versions 1-9. OffsetDelete: version 0.
//!
//! - OffsetCommit: v2-4 a retention of its own · v6 leader epochs (KIP-320) · v7 instances
//!   (KIP-345) · v8 flexible · v9 member epochs, GROUP_ID_NOT_FOUND (KIP-848)
//! - OffsetFetch: v2 an error of the group, null for all topics · v5 leader epochs · v6 flexible ·
//!   v7 RequireStable (KIP-447) · v8 many groups (KIP-709) · v9 member ids and epochs (KIP-848)
//! - Topics are looked up here; what a group may commit is for the coordinator to say.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse,
    OffsetFetchRequest, OffsetFetchResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::groups::{kept, kept_if, told};
use super::serve::{Refuse, Reply};
use crate::base::TopicId;
use crate::coordinator::group::ask::{
    CommitOffsets, CommittedPartition, CommittedTopic, DeleteOffsets, FetchOffsets, FetchedOffset,
    FetchedTopic, WantedTopic,
};
use crate::protocol::error::{ErrorCode, Refusal};

/// A retention or epoch that is not given.
const NOT_GIVEN: i64 = -1;

fn has_many_groups(version: i16) -> bool {
    version >= 8
}

fn has_group_error(version: i16) -> bool {
    version >= 2
}

fn has_leader_epoch(version: i16) -> bool {
    version >= 5
}

// Commit.

impl Refuse for OffsetCommitRequest {
    type Response = OffsetCommitResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> OffsetCommitResponse {
        commit_response(self, |_, _| refusal.code)
    }
}

/// Commits offsets of topics that there are.
pub(super) async fn commit(
    ctx: Context,
    request: Arc<OffsetCommitRequest>,
) -> Result<Reply<OffsetCommitResponse>, Refusal> {
    let topics = request.topics.iter();
    let mut codes: Vec<Vec<ErrorCode>> = topics
        .map(|topic| vec![ErrorCode::UnknownTopicOrPartition; topic.partitions.len()])
        .collect();
    let (places, known) = known_topics(&ctx, &request.topics);
    if !known.is_empty() {
        let committed = commit_known(&ctx, &request, known).await;
        for (at, (topic, partitions)) in places.into_iter().enumerate() {
            for (nth, partition) in partitions.into_iter().enumerate() {
                let one = committed.as_ref().map_err(|code| *code);
                let one = one.and_then(|told| told[at][nth]);
                codes[topic][partition] = one.err().unwrap_or(ErrorCode::None);
            }
        }
    }
    let response = commit_response(&request, |topic, partition| codes[topic][partition]);
    Ok(response.into())
}

/// Where in a request the partitions of a topic are that are known.
type Places = Vec<(usize, Vec<usize>)>;

/// What of a request there is, and where in it that stands.
fn known_topics(
    ctx: &Context,
    topics: &[OffsetCommitRequestTopic],
) -> (Places, Vec<CommittedTopic>) {
    let mut places = Vec::new();
    let mut known = Vec::new();
    for (at, topic) in topics.iter().enumerate() {
        let Some(found) = ctx.image().topics.by_name(&topic.name) else {
            continue;
        };
        let partitions = topic.partitions.iter().enumerate();
        let (indexes, partitions): (Vec<_>, Vec<_>) = partitions
            .filter(|(_, it)| found.partitions.contains_key(&it.partition_index))
            .map(|(nth, it)| {
                let one = CommittedPartition {
                    partition: it.partition_index,
                    offset: it.committed_offset,
                    leader_epoch: it.committed_leader_epoch,
                    metadata: kept_if(it.committed_metadata.as_ref())
                        .unwrap_or_else(|| Arc::from("")),
                };
                (nth, one)
            })
            .unzip();
        if !indexes.is_empty() {
            places.push((at, indexes));
            known.push(CommittedTopic {
                name: Arc::from(&*found.name),
                // Kafka keeps the id only where the request names it, which none does before v10.
                id: TopicId::ZERO,
                partitions,
            });
        }
    }
    (places, known)
}

async fn commit_known(
    ctx: &Context,
    request: &OffsetCommitRequest,
    topics: Vec<CommittedTopic>,
) -> Result<Vec<Vec<Result<(), ErrorCode>>>, ErrorCode> {
    let ask = CommitOffsets {
        group: kept(&request.group_id),
        generation: request.generation_id_or_member_epoch,
        member: kept(&request.member_id),
        instance: kept_if(request.group_instance_id.as_ref()),
        retention_ms: Some(request.retention_time_ms).filter(|ms| *ms != NOT_GIVEN),
        knows_epochs: ctx.version >= 9,
        producer: None,
        topics,
    };
    let group = ask.group.clone();
    let timeout = ctx.parts.options.file().offsets_commit_timeout_ms;
    let timeout = Duration::from_millis(u64::try_from(timeout).unwrap_or(0));
    let committed = tokio::time::timeout(timeout, ctx.parts.groups.ask(&group, ask));
    // It may be committed yet; the client is to find out.
    let too_late = Err(ErrorCode::CoordinatorNotAvailable);
    committed.await.unwrap_or(too_late)?
}

fn commit_response(
    request: &OffsetCommitRequest,
    code: impl Fn(usize, usize) -> ErrorCode,
) -> OffsetCommitResponse {
    let topics = request.topics.iter().enumerate().map(|(at, topic)| {
        let partitions = topic.partitions.iter().enumerate().map(|(nth, it)| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(it.partition_index)
                .with_error_code(code(at, nth).code())
        });
        OffsetCommitResponseTopic::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}

// Fetch.

/// A group's part of a request, whatever the version.
struct Asked<'a> {
    group: &'a StrBytes,
    member: Option<&'a StrBytes>,
    epoch: i32,
    topics: Option<Vec<(&'a TopicName, &'a [i32])>>,
}

impl Refuse for OffsetFetchRequest {
    type Response = OffsetFetchResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> OffsetFetchResponse {
        let answers = asked(self, version).into_iter();
        let answers = answers.map(|asked| {
            let refused = refused(version, &asked, refusal.code);
            (asked.group.clone(), refused)
        });
        fetch_response(version, answers.collect())
    }
}

/// Tells the offsets that groups have committed.
pub(super) async fn fetch(
    ctx: Context,
    request: Arc<OffsetFetchRequest>,
) -> Result<Reply<OffsetFetchResponse>, Refusal> {
    let mut answers = Vec::new();
    for asked in asked(&request, ctx.version) {
        let fetched = fetch_group(&ctx, &asked, request.require_stable).await;
        let fetched = match fetched {
            Ok(topics) => (topics, ErrorCode::None),
            Err(code) => refused(ctx.version, &asked, code),
        };
        answers.push((asked.group.clone(), fetched));
    }
    Ok(fetch_response(ctx.version, answers).into())
}

fn asked(request: &OffsetFetchRequest, version: i16) -> Vec<Asked<'_>> {
    if has_many_groups(version) {
        let groups = request.groups.iter().map(|group| Asked {
            group: &group.group_id,
            member: group.member_id.as_ref(),
            epoch: group.member_epoch,
            topics: group.topics.as_ref().map(|topics| {
                let topics = topics.iter();
                topics
                    .map(|it| (&it.name, &it.partition_indexes[..]))
                    .collect()
            }),
        });
        return groups.collect();
    }
    vec![Asked {
        group: &request.group_id,
        member: None,
        epoch: -1,
        topics: request.topics.as_ref().map(|topics| {
            let topics = topics.iter();
            topics
                .map(|it| (&it.name, &it.partition_indexes[..]))
                .collect()
        }),
    }]
}

async fn fetch_group(
    ctx: &Context,
    asked: &Asked<'_>,
    require_stable: bool,
) -> Result<Vec<FetchedTopic>, ErrorCode> {
    let wanted = |(name, partitions): &(&TopicName, &[i32])| WantedTopic {
        name: kept(name),
        id: ctx
            .image()
            .topics
            .by_name(name)
            .map_or(TopicId::ZERO, |topic| topic.id),
        partitions: partitions.to_vec(),
    };
    let ask = FetchOffsets {
        group: kept(asked.group),
        member: kept_if(asked.member),
        epoch: asked.epoch,
        topics: asked
            .topics
            .as_ref()
            .map(|topics| topics.iter().map(wanted).collect()),
        require_stable,
    };
    ctx.parts.groups.ask(asked.group, ask).await?
}

/// The answer about one group: its topics, and the error of the group.
type Fetched = (Vec<FetchedTopic>, ErrorCode);

/// The first version has no error for the group: each partition has it.
fn refused(version: i16, asked: &Asked<'_>, code: ErrorCode) -> Fetched {
    if has_group_error(version) {
        return (Vec::new(), code);
    }
    let topics = asked.topics.iter().flatten().map(|(name, partitions)| {
        let partitions = partitions.iter().map(|index| (*index, Err(code)));
        FetchedTopic {
            name: kept(name),
            partitions: partitions.collect(),
        }
    });
    (topics.collect(), ErrorCode::None)
}

fn fetch_response(version: i16, answers: Vec<(StrBytes, Fetched)>) -> OffsetFetchResponse {
    if has_many_groups(version) {
        let groups = answers.into_iter().map(|(group, (topics, code))| {
            OffsetFetchResponseGroup::default()
                .with_group_id(group.into())
                .with_topics(topics.iter().map(fetched_topic).collect())
                .with_error_code(code.code())
        });
        return OffsetFetchResponse::default().with_groups(groups.collect());
    }
    let mut response = OffsetFetchResponse::default();
    for (_, (topics, code)) in answers {
        let topics = topics
            .iter()
            .map(|topic| fetched_topic_before_groups(version, topic));
        response.topics = topics.collect();
        if has_group_error(version) {
            response.error_code = code.code();
        }
    }
    response
}

fn fetched_topic(topic: &FetchedTopic) -> OffsetFetchResponseTopics {
    let partitions = topic.partitions.iter().map(|(index, fetched)| {
        let (offset, code) = offset_or_code(fetched);
        OffsetFetchResponsePartitions::default()
            .with_partition_index(*index)
            .with_committed_offset(offset.offset)
            .with_committed_leader_epoch(offset.leader_epoch)
            .with_metadata(Some(told(&offset.metadata)))
            .with_error_code(code)
    });
    OffsetFetchResponseTopics::default()
        .with_name(TopicName(told(&topic.name)))
        .with_partitions(partitions.collect())
}

fn fetched_topic_before_groups(version: i16, topic: &FetchedTopic) -> OffsetFetchResponseTopic {
    let partitions = topic.partitions.iter().map(|(index, fetched)| {
        let (offset, code) = offset_or_code(fetched);
        let mut partition = OffsetFetchResponsePartition::default()
            .with_partition_index(*index)
            .with_committed_offset(offset.offset)
            .with_metadata(Some(told(&offset.metadata)))
            .with_error_code(code);
        if has_leader_epoch(version) {
            partition.committed_leader_epoch = offset.leader_epoch;
        }
        partition
    });
    OffsetFetchResponseTopic::default()
        .with_name(TopicName(told(&topic.name)))
        .with_partitions(partitions.collect())
}

fn offset_or_code(fetched: &Result<FetchedOffset, ErrorCode>) -> (FetchedOffset, i16) {
    match fetched {
        Ok(offset) => (offset.clone(), ErrorCode::None.code()),
        Err(code) => (FetchedOffset::none(), code.code()),
    }
}

// Delete.

impl Refuse for OffsetDeleteRequest {
    type Response = OffsetDeleteResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> OffsetDeleteResponse {
        OffsetDeleteResponse::default().with_error_code(refusal.code.code())
    }
}

/// Forgets offsets of a group.
pub(super) async fn delete(
    ctx: Context,
    request: Arc<OffsetDeleteRequest>,
) -> Result<Reply<OffsetDeleteResponse>, Refusal> {
    let is_known = |topic: &str, index| ctx.image().partition(topic, index).is_some();
    let known = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|it| it.partition_index);
        let partitions = partitions.filter(|index| is_known(&topic.name, *index));
        (kept(&topic.name), partitions.collect::<Vec<_>>())
    });
    let ask = DeleteOffsets {
        group: kept(&request.group_id),
        topics: known.collect(),
    };
    if ask.group.is_empty() {
        return Err(ErrorCode::InvalidGroupId.into());
    }
    let group = ask.group.clone();
    let deleted = ctx.parts.groups.ask(&group, ask).await??;
    let topics = request.topics.iter().zip(deleted).map(|(topic, deleted)| {
        let mut deleted = deleted.into_iter();
        let partitions = topic.partitions.iter().map(|it| {
            let code = match is_known(&topic.name, it.partition_index) {
                true => deleted
                    .next()
                    .and_then(Result::err)
                    .unwrap_or(ErrorCode::None),
                false => ErrorCode::UnknownTopicOrPartition,
            };
            OffsetDeleteResponsePartition::default()
                .with_partition_index(it.partition_index)
                .with_error_code(code.code())
        });
        OffsetDeleteResponseTopic::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    Ok(OffsetDeleteResponse::default()
        .with_topics(topics.collect())
        .into())
}
