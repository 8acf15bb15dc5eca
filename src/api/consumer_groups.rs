//! Consumer groups (KIP-848): ConsumerGroupHeartbeat: versions 0-1. ConsumerGroupDescribe: versions
//! 0-1.
//!
//! - ConsumerGroupHeartbeat: v1 a member makes its own id, and may subscribe by pattern
//! - ConsumerGroupDescribe: v1 which protocol a member speaks (KIP-1099)
//! - Both are refused with UNSUPPORTED_VERSION while group.version is 0, or options leave the
//!   protocol out.

use std::sync::Arc;

use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment as ToldAssignment, DescribedGroup, Member, TopicPartitions as ToldPartitions,
};
use kafka_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse, GroupId, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::access::{ALL_GROUP_OPERATIONS, NOT_ASKED};
use super::context::Context;
use super::groups::{kept, kept_if, per_group, told, told_if};
use super::serve::{Refuse, Reply};
use crate::base::TopicId;
use crate::coordinator::group::consumer_ask::{
    ConsumerBeat, ConsumerHeartbeat, DescribeConsumerGroups, DescribedConsumer,
    DescribedConsumerGroup,
};
use crate::metadata::image::Image;
use crate::metadata::image::features::GROUP_VERSION;
use crate::protocol::error::{ErrorCode, Refusal};

type Owned = std::collections::BTreeMap<TopicId, std::collections::BTreeSet<i32>>;

/// Refuses while the protocol is not in use.
fn check_enabled(ctx: &Context) -> Result<(), Refusal> {
    let protocols = &ctx
        .parts
        .options
        .file()
        .group_coordinator_rebalance_protocols;
    let is_wanted = protocols.iter().any(|name| name == "consumer");
    if is_wanted && ctx.image().features.level(GROUP_VERSION) > 0 {
        Ok(())
    } else {
        Err(ErrorCode::UnsupportedVersion.into())
    }
}

impl Refuse for ConsumerGroupHeartbeatRequest {
    type Response = ConsumerGroupHeartbeatResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> ConsumerGroupHeartbeatResponse {
        ConsumerGroupHeartbeatResponse::default()
            .with_error_code(refusal.code.code())
            .with_error_message(refusal.message.as_deref().map(told))
    }
}

/// Takes a member's heartbeat, with which it joins, reports and leaves.
pub(super) async fn heartbeat(
    ctx: Context,
    request: Arc<ConsumerGroupHeartbeatRequest>,
) -> Result<Reply<ConsumerGroupHeartbeatResponse>, Refusal> {
    check_enabled(&ctx)?;
    let topics = request.subscribed_topic_names.as_ref();
    let owned = request.topic_partitions.as_ref();
    let ask = ConsumerHeartbeat {
        group: kept(&request.group_id),
        member: kept(&request.member_id),
        epoch: request.member_epoch,
        instance: kept_if(request.instance_id.as_ref()),
        rack: kept_if(request.rack_id.as_ref()),
        rebalance_timeout_ms: Some(request.rebalance_timeout_ms).filter(|ms| *ms != -1),
        topics: topics.map(|names| names.iter().map(|name| kept(name)).collect()),
        regex: kept_if(request.subscribed_topic_regex.as_ref()),
        assignor: kept_if(request.server_assignor.as_ref()),
        owned: owned.map(|topics| {
            let topics = topics.iter();
            topics
                .map(|topic| (TopicId(topic.topic_id.into()), topic.partitions.clone()))
                .collect()
        }),
        client: ctx.client(),
        must_have_id: ctx.version >= 1,
    };
    let group = ask.group.clone();
    let beat = ctx.parts.groups.ask(&group, ask).await??;
    Ok(beaten(&beat).into())
}

fn beaten(beat: &ConsumerBeat) -> ConsumerGroupHeartbeatResponse {
    let assignment = beat.assignment.as_ref().map(|assignment| {
        let topics = assignment.iter().map(|(topic, partitions)| {
            TopicPartitions::default()
                .with_topic_id(topic.0.into())
                .with_partitions(partitions.iter().copied().collect())
        });
        Assignment::default().with_topic_partitions(topics.collect())
    });
    ConsumerGroupHeartbeatResponse::default()
        .with_member_id(Some(told(&beat.member)))
        .with_member_epoch(beat.epoch)
        .with_heartbeat_interval_ms(beat.interval_ms)
        .with_assignment(assignment)
}

impl Refuse for ConsumerGroupDescribeRequest {
    type Response = ConsumerGroupDescribeResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> ConsumerGroupDescribeResponse {
        let groups = self.group_ids.iter();
        let groups = groups.map(|group| not_described(group, refusal));
        ConsumerGroupDescribeResponse::default().with_groups(groups.collect())
    }
}

/// Describes consumer groups with their members.
pub(super) async fn describe(
    ctx: Context,
    request: Arc<ConsumerGroupDescribeRequest>,
) -> Result<Reply<ConsumerGroupDescribeResponse>, Refusal> {
    check_enabled(&ctx)?;
    let ids = &request.group_ids;
    let groups: Vec<Arc<str>> = ids.iter().map(|group| kept(group)).collect();
    let described = per_group(&ctx, &groups, |groups| DescribeConsumerGroups { groups }).await;
    let told = ids.iter().zip(described).map(|(id, described)| {
        let described = match id.is_empty() {
            true => Err(ErrorCode::InvalidGroupId.into()),
            false => described.map_err(Refusal::bare).and_then(|it| it),
        };
        match described {
            Err(refusal) => not_described(id, &refusal),
            Ok(group) => in_full(&ctx, id, &group).with_authorized_operations(
                match request.include_authorized_operations {
                    true => ALL_GROUP_OPERATIONS,
                    false => NOT_ASKED,
                },
            ),
        }
    });
    Ok(ConsumerGroupDescribeResponse::default()
        .with_groups(told.collect())
        .into())
}

fn not_described(id: &GroupId, refusal: &Refusal) -> DescribedGroup {
    DescribedGroup::default()
        .with_group_id(id.clone())
        .with_error_code(refusal.code.code())
        .with_error_message(refusal.message.as_deref().map(told))
}

fn in_full(ctx: &Context, id: &GroupId, group: &DescribedConsumerGroup) -> DescribedGroup {
    let members = group
        .members
        .iter()
        .map(|it| member(ctx.version, ctx.image(), it));
    DescribedGroup::default()
        .with_group_id(id.clone())
        .with_group_state(StrBytes::from_static_str(group.state))
        .with_group_epoch(group.epoch)
        .with_assignment_epoch(group.assignment_epoch)
        .with_assignor_name(told(&group.assignor))
        .with_members(members.collect())
}

fn member(version: i16, image: &Image, it: &DescribedConsumer) -> Member {
    let topics = it.topics.iter().map(|name| TopicName(told(name)));
    let mut member = Member::default()
        .with_member_id(told(&it.member))
        .with_instance_id(told_if(it.instance.as_ref()))
        .with_rack_id(told_if(it.rack.as_ref()))
        .with_member_epoch(it.epoch)
        .with_client_id(told(&it.client.id))
        .with_client_host(told(&it.client.host))
        .with_subscribed_topic_names(topics.collect())
        .with_subscribed_topic_regex(told_if(it.regex.as_ref()))
        .with_assignment(assignment(image, &it.assigned))
        .with_target_assignment(assignment(image, &it.target));
    if version >= 1 {
        member.member_type = i8::from(!it.is_classic);
    }
    member
}

/// An assignment with the names of its topics; those that are gone are left out.
fn assignment(image: &Image, owned: &Owned) -> ToldAssignment {
    let topics = owned.iter().filter_map(|(id, partitions)| {
        let topic = image.topics.by_id(*id)?;
        let told = ToldPartitions::default()
            .with_topic_id(id.0.into())
            .with_topic_name(TopicName(told(&topic.name)))
            .with_partitions(partitions.iter().copied().collect());
        Some(told)
    });
    ToldAssignment::default().with_topic_partitions(topics.collect())
}
