//! Classic groups: JoinGroup: versions 0-9. SyncGroup: versions 0-5. Heartbeat: versions 0-4.
//! LeaveGroup: versions 0-5. And what operators see of all groups: ListGroups: versions 0-5.
//! DescribeGroups: versions 0-6. DeleteGroups: versions 0-2.
//!
//! - JoinGroup: v1 a rebalance timeout of its own · v4 new members come back with an id (KIP-394) ·
//!   v5 instances (KIP-345) · v6 flexible · v7 protocol type and name · v8 a reason · v9
//!   SkipAssignment (KIP-814)
//! - SyncGroup: v3 instances · v4 flexible · v5 protocol type and name (KIP-559)
//! - LeaveGroup: v3 many members, an error for each · v4 flexible · v5 a reason
//! - ListGroups: v4 states (KIP-518) · v5 types (KIP-848)
//! - DescribeGroups: v3 authorized operations · v4 instances · v5 flexible · v6 GROUP_ID_NOT_FOUND
//!   with words (KIP-1043)

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{
    DescribedGroup as ToldGroup, DescribedGroupMember,
};
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::list_groups_response::ListedGroup as ListedTold;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    GroupId, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::access::{ALL_GROUP_OPERATIONS, NOT_ASKED};
use super::context::{Context, canonical};
use super::serve::{Refuse, Reply};
use crate::coordinator::group::GroupMachine;
use crate::coordinator::group::ask::{
    Client, DeleteGroups, DescribeGroups, DescribedGroup, Heartbeat, JoinGroup, Joined, LeaveGroup,
    LeavingMember, ListGroups, SyncGroup, Synced,
};
use crate::machine::ask::Ask;
use crate::protocol::error::{ErrorCode, Refusal};

/// A string of a request, without the frame that it came in.
pub(super) fn kept(text: &StrBytes) -> Arc<str> {
    Arc::from(text.as_str())
}

/// The same of one that may be null.
pub(super) fn kept_if(text: Option<&StrBytes>) -> Option<Arc<str>> {
    text.map(kept)
}

/// A string of ours for a response.
pub(super) fn told(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(super) fn told_if(text: Option<&Arc<str>>) -> Option<StrBytes> {
    text.map(|text| told(text))
}

/// Bytes of a request, without the frame that they came in.
fn kept_bytes(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

impl Context {
    /// The client as operators are told of it.
    pub(super) fn client(&self) -> Client {
        Client {
            id: self.client_id.as_ref().map_or_else(|| Arc::from(""), kept),
            host: format!("/{}", canonical(self.session.peer.ip())).into(),
        }
    }
}

// Members.

impl Refuse for JoinGroupRequest {
    type Response = JoinGroupResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> JoinGroupResponse {
        let member = kept(&self.member_id);
        joined(version, &Joined::refused(refusal.code, member))
    }
}

/// Joins a group; the answer comes when everybody has joined.
pub(super) async fn join(
    ctx: Context,
    request: Arc<JoinGroupRequest>,
) -> Result<Reply<JoinGroupResponse>, Refusal> {
    let version = ctx.version;
    let protocols = request.protocols.iter();
    let ask = JoinGroup {
        group: kept(&request.group_id),
        member: kept(&request.member_id),
        instance: kept_if(request.group_instance_id.as_ref()),
        client: ctx.client(),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: match version {
            0 => request.session_timeout_ms,
            _ => request.rebalance_timeout_ms,
        },
        protocol_type: kept(&request.protocol_type),
        protocols: protocols
            .map(|it| (kept(&it.name), kept_bytes(&it.metadata)))
            .collect(),
        needs_member_id: version >= 4,
        may_skip_assignment: version >= 9,
    };
    Ok(Reply::InTurn(Box::pin(async move {
        let group = ask.group.clone();
        match until_stop(&ctx, ctx.parts.groups.ask(&group, ask)).await {
            Ok(told) => joined(version, &told),
            Err(code) => request.refuse(version, &code.into()),
        }
    })))
}

/// Members wait for each other for minutes; a node that stops sends them away.
async fn until_stop<T>(
    ctx: &Context,
    answer: impl Future<Output = Result<T, ErrorCode>>,
) -> Result<T, ErrorCode> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = ctx.parts.stopping.stopped() => Err(ErrorCode::NotCoordinator),
    }
}

fn joined(version: i16, told_of: &Joined) -> JoinGroupResponse {
    let members = told_of.members.iter().map(|member| {
        let instance = told_if(member.instance.as_ref()).filter(|_| version >= 5);
        JoinGroupResponseMember::default()
            .with_member_id(told(&member.member))
            .with_group_instance_id(instance)
            .with_metadata(member.metadata.clone())
    });
    let mut response = JoinGroupResponse::default()
        .with_error_code(told_of.error.code())
        .with_generation_id(told_of.generation)
        .with_leader(told(&told_of.leader))
        .with_member_id(told(&told_of.member))
        .with_members(members.collect());
    response.protocol_name = told_if(told_of.protocol.as_ref());
    if version >= 7 {
        response.protocol_type = told_if(told_of.protocol_type.as_ref());
    } else {
        response.protocol_name.get_or_insert_with(StrBytes::default);
    }
    if version >= 9 {
        response.skip_assignment = told_of.skip_assignment;
    }
    response
}

impl Refuse for SyncGroupRequest {
    type Response = SyncGroupResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> SyncGroupResponse {
        SyncGroupResponse::default().with_error_code(refusal.code.code())
    }
}

/// Gets a member its assignment, once the leader has brought those of all.
pub(super) async fn sync(
    ctx: Context,
    request: Arc<SyncGroupRequest>,
) -> Result<Reply<SyncGroupResponse>, Refusal> {
    let version = ctx.version;
    // From v5 on both names are required (KIP-559).
    let is_short = request.protocol_type.is_none() || request.protocol_name.is_none();
    if version >= 5 && is_short {
        return Err(ErrorCode::InconsistentGroupProtocol.into());
    }
    let assignments = request.assignments.iter();
    let ask = SyncGroup {
        group: kept(&request.group_id),
        generation: request.generation_id,
        member: kept(&request.member_id),
        instance: kept_if(request.group_instance_id.as_ref()),
        protocol_type: kept_if(request.protocol_type.as_ref()),
        protocol: kept_if(request.protocol_name.as_ref()),
        assignments: assignments
            .map(|it| (kept(&it.member_id), kept_bytes(&it.assignment)))
            .collect(),
    };
    Ok(Reply::InTurn(Box::pin(async move {
        let group = ask.group.clone();
        let synced = until_stop(&ctx, ctx.parts.groups.ask(&group, ask)).await;
        match synced.and_then(|told| told) {
            Ok(told) => assigned(version, &told),
            Err(code) => request.refuse(version, &code.into()),
        }
    })))
}

fn assigned(version: i16, synced: &Synced) -> SyncGroupResponse {
    let mut response = SyncGroupResponse::default().with_assignment(synced.assignment.clone());
    if version >= 5 {
        response.protocol_type = told_if(synced.protocol_type.as_ref());
        response.protocol_name = told_if(synced.protocol.as_ref());
    }
    response
}

impl Refuse for HeartbeatRequest {
    type Response = HeartbeatResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> HeartbeatResponse {
        HeartbeatResponse::default().with_error_code(refusal.code.code())
    }
}

/// Notes that a member is alive.
pub(super) async fn heartbeat(
    ctx: Context,
    request: Arc<HeartbeatRequest>,
) -> Result<Reply<HeartbeatResponse>, Refusal> {
    let ask = Heartbeat {
        group: kept(&request.group_id),
        generation: request.generation_id,
        member: kept(&request.member_id),
        instance: kept_if(request.group_instance_id.as_ref()),
    };
    let group = ask.group.clone();
    ctx.parts.groups.ask(&group, ask).await??;
    Ok(HeartbeatResponse::default().into())
}

impl Refuse for LeaveGroupRequest {
    type Response = LeaveGroupResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> LeaveGroupResponse {
        LeaveGroupResponse::default().with_error_code(refusal.code.code())
    }
}

/// Removes members from their group.
pub(super) async fn leave(
    ctx: Context,
    request: Arc<LeaveGroupRequest>,
) -> Result<Reply<LeaveGroupResponse>, Refusal> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::InvalidGroupId.into());
    }
    let has_many = ctx.version >= 3;
    let one = [MemberIdentity::default().with_member_id(request.member_id.clone())];
    let members: &[MemberIdentity] = if has_many { &request.members } else { &one };
    let leaving = members.iter().map(|it| LeavingMember {
        member: kept(&it.member_id),
        instance: kept_if(it.group_instance_id.as_ref()),
    });
    let ask = LeaveGroup {
        group: kept(&request.group_id),
        members: leaving.collect(),
    };
    let group = ask.group.clone();
    let left = ctx.parts.groups.ask(&group, ask).await?;
    let code = |left: &Result<(), ErrorCode>| left.err().map_or(0, ErrorCode::code);
    if !has_many {
        let code = left.first().map_or(0, code);
        return Ok(LeaveGroupResponse::default().with_error_code(code).into());
    }
    let told = members.iter().zip(&left).map(|(member, left)| {
        MemberResponse::default()
            .with_member_id(member.member_id.clone())
            .with_group_instance_id(member.group_instance_id.clone())
            .with_error_code(code(left))
    });
    Ok(LeaveGroupResponse::default()
        .with_members(told.collect())
        .into())
}

// Operators.

impl Refuse for ListGroupsRequest {
    type Response = ListGroupsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> ListGroupsResponse {
        ListGroupsResponse::default().with_error_code(refusal.code.code())
    }
}

/// Lists the groups that this broker keeps.
pub(super) async fn list(
    ctx: Context,
    request: Arc<ListGroupsRequest>,
) -> Result<Reply<ListGroupsResponse>, Refusal> {
    let lower = |all: &[StrBytes]| all.iter().map(|it| it.to_lowercase()).collect();
    let ask = ListGroups {
        states: lower(&request.states_filter),
        types: lower(&request.types_filter),
    };
    let shards = ctx.parts.groups.ask_all(&ask).await?;
    let groups = shards.into_iter().flatten().map(|group| {
        let mut listed = ListedTold::default()
            .with_group_id(GroupId(told(&group.group)))
            .with_protocol_type(told(&group.protocol_type));
        if ctx.version >= 4 {
            listed.group_state = StrBytes::from_static_str(group.state);
        }
        if ctx.version >= 5 {
            listed.group_type = StrBytes::from_static_str(group.kind);
        }
        listed
    });
    Ok(ListGroupsResponse::default()
        .with_groups(groups.collect())
        .into())
}

impl Refuse for DescribeGroupsRequest {
    type Response = DescribeGroupsResponse;

    fn refuse(&self, version: i16, refusal: &Refusal) -> DescribeGroupsResponse {
        let groups = self.groups.iter();
        let groups = groups.map(|group| not_described(version, group, refusal));
        DescribeGroupsResponse::default().with_groups(groups.collect())
    }
}

/// Describes classic groups with their members.
pub(super) async fn describe(
    ctx: Context,
    request: Arc<DescribeGroupsRequest>,
) -> Result<Reply<DescribeGroupsResponse>, Refusal> {
    let groups: Vec<Arc<str>> = request.groups.iter().map(|group| kept(group)).collect();
    let described = per_group(&ctx, &groups, |groups| DescribeGroups { groups }).await;
    let told = request
        .groups
        .iter()
        .zip(described)
        .map(|(group, described)| {
            let mut told = match described.map_err(Refusal::bare).and_then(|it| it) {
                Ok(described) => in_full(ctx.version, group, &described),
                Err(refusal) => not_described(ctx.version, group, &refusal),
            };
            if ctx.version >= 3 {
                let is_known = told.error_code == ErrorCode::None.code();
                let asked = request.include_authorized_operations && is_known;
                told.authorized_operations = if asked {
                    ALL_GROUP_OPERATIONS
                } else {
                    NOT_ASKED
                };
            }
            told
        });
    Ok(DescribeGroupsResponse::default()
        .with_groups(told.collect())
        .into())
}

/// Asks about many groups, those of one partition together; the answers in the order asked.
pub(super) async fn per_group<A, T>(
    ctx: &Context,
    groups: &[Arc<str>],
    ask: impl Fn(Vec<Arc<str>>) -> A,
) -> Vec<Result<T, ErrorCode>>
where
    A: Ask<GroupMachine, Reply = Vec<T>>,
{
    let router = &ctx.parts.groups;
    let mut answers: Vec<Result<T, ErrorCode>> = Vec::with_capacity(groups.len());
    answers.resize_with(groups.len(), || Err(ErrorCode::UnknownServerError));
    for places in router.together(groups) {
        let Some(first) = places.first() else {
            continue;
        };
        let named = places.iter().map(|at| groups[*at].clone()).collect();
        match router.ask(&groups[*first], ask(named)).await {
            Ok(replies) => {
                for (at, reply) in places.into_iter().zip(replies) {
                    answers[at] = Ok(reply);
                }
            }
            Err(code) => {
                for at in places {
                    answers[at] = Err(code);
                }
            }
        }
    }
    answers
}

fn in_full(version: i16, group: &GroupId, described: &DescribedGroup) -> ToldGroup {
    let members = described.members.iter().map(|member| {
        let instance = told_if(member.instance.as_ref()).filter(|_| version >= 4);
        DescribedGroupMember::default()
            .with_member_id(told(&member.member))
            .with_group_instance_id(instance)
            .with_client_id(told(&member.client.id))
            .with_client_host(told(&member.client.host))
            .with_member_metadata(member.metadata.clone())
            .with_member_assignment(member.assignment.clone())
    });
    ToldGroup::default()
        .with_group_id(group.clone())
        .with_group_state(StrBytes::from_static_str(described.state))
        .with_protocol_type(told(&described.protocol_type))
        .with_protocol_data(told(&described.protocol))
        .with_members(members.collect())
}

/// A group that is not there is Dead; before v6 that is no error.
fn not_described(version: i16, group: &GroupId, refusal: &Refusal) -> ToldGroup {
    let mut told_of = ToldGroup::default().with_group_id(group.clone());
    if refusal.code == ErrorCode::GroupIdNotFound {
        told_of.group_state = StrBytes::from_static_str("Dead");
        if version < 6 {
            return told_of;
        }
    }
    told_of.error_code = refusal.code.code();
    if version >= 6 {
        told_of.error_message = refusal.message.as_deref().map(told);
    }
    told_of
}

impl Refuse for DeleteGroupsRequest {
    type Response = DeleteGroupsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> DeleteGroupsResponse {
        let groups = self.groups_names.iter();
        let results = groups.map(|group| deletion(group, Err(refusal.code)));
        DeleteGroupsResponse::default().with_results(results.collect())
    }
}

/// Forgets groups without members, with their offsets.
pub(super) async fn delete(
    ctx: Context,
    request: Arc<DeleteGroupsRequest>,
) -> Result<Reply<DeleteGroupsResponse>, Refusal> {
    let names = &request.groups_names;
    let groups: Vec<Arc<str>> = names.iter().map(|group| kept(group)).collect();
    let deleted = per_group(&ctx, &groups, |groups| DeleteGroups { groups }).await;
    let results = names
        .iter()
        .zip(deleted)
        .map(|(group, deleted)| deletion(group, deleted.and_then(|it| it)));
    Ok(DeleteGroupsResponse::default()
        .with_results(results.collect())
        .into())
}

fn deletion(group: &GroupId, deleted: Result<(), ErrorCode>) -> DeletableGroupResult {
    DeletableGroupResult::default()
        .with_group_id(group.clone())
        .with_error_code(deleted.err().map_or(0, ErrorCode::code))
}
