//! Groups that change their protocol while they live (KIP-848): a classic group of consumers becomes
//! a consumer group with the first member that speaks the new protocol, and goes back when the
//! last one leaves.
//!
//! In between, members of the classic protocol join, sync and report as ever, each on its own: its
//! generation is its epoch, what it owns comes from the coordinator, and a heartbeat tells it when
//! to join again.

use std::sync::Arc;

use bytes::Bytes;

use super::ask::{
    Answer, Heartbeat, JoinGroup, Joined, LeaveGroup, LeavingMember, SyncGroup, Synced,
};
use super::assign::Assignment;
use super::classic_state::{self, ClassicGroup, State};
use super::consumer::{self, Context, Draft, Entry, Rules};
use super::consumer_state::{ConsumerGroup, Member, MemberState};
use super::group::Group;
use super::records::{ClassicMemberMetadata, ClassicProtocol, GroupRecord};
use super::subscription;
use super::{Deadline, GroupMachine, Turn, View};
use crate::base::TopicId;
use crate::config::BrokerConfig;
use crate::machine::{Now, Ticket};
use crate::metadata::image::Image;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::protocol::subscription::{
    Assignment as NamedAssignment, NamedPartitions, PROTOCOL_TYPE, Subscription,
};

/// Which ways groups may go (group.consumer.migration.policy).
fn allows(config: &BrokerConfig, way: &str) -> bool {
    let policy = config.group_consumer_migration_policy.to_ascii_lowercase();
    policy == "bidirectional" || policy == way
}

fn refused<T>(words: String) -> Result<T, Refusal> {
    Err(Refusal::new(ErrorCode::GroupIdNotFound, words))
}

/// The consumer group that a classic one becomes. One that is empty leaves nothing but its offsets.
pub(super) fn upgrade(
    classic: &ClassicGroup,
    config: &BrokerConfig,
    image: &Image,
) -> Result<Draft<'static>, Refusal> {
    let tombstone = GroupRecord::GroupMetadata(classic.key(), None);
    let mut draft = Draft::new(classic.id.clone(), vec![tombstone]);
    if classic.state == State::Empty {
        return Ok(draft);
    }
    check_upgrade(classic, config)?;
    let mut members = Vec::new();
    for (id, member) in &classic.members {
        members.push(of_classic(classic, id, member, image)?);
    }
    let group = classic.id.clone();
    for member in &members {
        draft.write(member.metadata_record(&group));
    }
    let hash = subscription::group_hash(&draft.group, image);
    draft.write(draft.group.epoch_record(classic.generation, hash));
    for member in &members {
        draft.write(draft.group.target_record(&member.id, &member.assigned));
    }
    draft.write(draft.group.target_epoch_record(classic.generation));
    for member in &members {
        draft.write(member.assignment_record(&group));
    }
    Ok(draft)
}

fn check_upgrade(classic: &ClassicGroup, config: &BrokerConfig) -> Result<(), Refusal> {
    let most = usize::try_from(config.group_consumer_max_size).unwrap_or(usize::MAX);
    let why = if !allows(config, "upgrade") {
        "online upgrade is disabled"
    } else if !classic.is_of_consumers() {
        "the group does not use the consumer embedded protocol"
    } else if classic.members.len() > most {
        "the group size exceeds the consumer group maximum size"
    } else {
        return Ok(());
    };
    refused(format!(
        "Cannot upgrade classic group {} to consumer group because {why}.",
        classic.id
    ))
}

fn of_classic(
    classic: &ClassicGroup,
    id: &Arc<str>,
    member: &classic_state::Member,
    image: &Image,
) -> Result<Member, Refusal> {
    let malformed = || {
        let words = format!(
            "Cannot upgrade classic group {} to consumer group because the embedded consumer \
             protocol is malformed.",
            classic.id
        );
        Refusal::new(ErrorCode::GroupIdNotFound, words)
    };
    // The group may not have chosen one yet.
    let protocol = classic
        .protocol
        .clone()
        .or_else(|| classic.elected_protocol());
    let metadata = member.metadata(protocol.as_deref().unwrap_or(""));
    let (_, subscription) = Subscription::decode(&metadata).map_err(|_| malformed())?;
    let mut new = Member::new(id.clone());
    new.epoch = classic.generation;
    new.previous_epoch = classic.generation;
    new.instance = member.instance.clone();
    new.rack = subscription.rack_id.filter(|rack| !rack.is_empty());
    new.rebalance_timeout_ms = member.rebalance_timeout_ms;
    new.client = member.client.clone();
    new.topics = subscription.topics.into_iter().collect();
    new.classic = Some(classic_metadata(
        member.session_timeout_ms,
        &member.protocols,
    ));
    // A member that never synced has none.
    if !member.assignment.is_empty() {
        let assignment = NamedAssignment::decode(&member.assignment).map_err(|_| {
            let words = "the assignment of a member cannot be read";
            Refusal::new(ErrorCode::UnknownServerError, words)
        })?;
        if assignment.user_data.is_some_and(|data| !data.is_empty()) {
            return refused(format!(
                "Cannot upgrade classic group {} to consumer group because an unsupported custom \
                 assignor is in use. Please refer to the documentation or switch to a default \
                 assignor before re-attempting the upgrade.",
                classic.id
            ));
        }
        new.assigned = by_id(&assignment.assigned_partitions, image);
    }
    Ok(new)
}

fn classic_metadata(
    session_timeout_ms: i32,
    protocols: &[(Arc<str>, Bytes)],
) -> ClassicMemberMetadata {
    let protocol = |(name, metadata): &(Arc<str>, Bytes)| ClassicProtocol {
        name: name.clone(),
        metadata: metadata.clone(),
    };
    ClassicMemberMetadata {
        session_timeout_ms,
        supported_protocols: protocols.iter().map(protocol).collect(),
    }
}

fn by_id(named: &[NamedPartitions], image: &Image) -> Assignment {
    let mut assignment = Assignment::new();
    for topic in named.iter().filter(|topic| !topic.partitions.is_empty()) {
        if let Some(id) = image.topics.id(&topic.topic) {
            let partitions = topic.partitions.iter().copied();
            assignment.entry(id).or_default().extend(partitions);
        }
    }
    assignment
}

/// An assignment as a member of the classic protocol reads it.
fn by_name(assignment: &Assignment, version: i16, image: &Image) -> Bytes {
    let named = assignment.iter().filter_map(|(id, partitions)| {
        Some(NamedPartitions {
            topic: image.topics.by_id(*id)?.name.clone(),
            partitions: partitions.iter().copied().collect(),
        })
    });
    let assignment = NamedAssignment {
        assigned_partitions: named.collect(),
        user_data: None,
    };
    assignment.encode(version).into()
}

/// Whether a group goes back to the classic protocol once these members are gone, or replaced by
/// one of that protocol.
pub(super) fn may_downgrade(
    group: &ConsumerGroup,
    leaving: &[Arc<str>],
    joining: Option<&Member>,
    config: &BrokerConfig,
) -> bool {
    let left = group.members.len() - leaving.len();
    let is_classic = |id: &&Arc<str>| group.members[*id].is_classic();
    let classic = group.classic_members() - leaving.iter().filter(is_classic).count();
    let joining = usize::from(joining.is_some());
    let most = usize::try_from(config.group_max_size).unwrap_or(usize::MAX);
    classic == left && left + joining > 0 && allows(config, "downgrade") && left + joining <= most
}

impl GroupMachine {
    /// A consumer group without members makes room for a classic one.
    pub(super) fn dissolve_consumer(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let tombstones = self.groups.remove(id).map(|group| group.tombstones());
        for record in tombstones.unwrap_or_default() {
            turn.write(record);
        }
        self.known.remove(id);
    }

    /// A classic group is about to become a consumer group: nobody waits for it any more.
    pub(super) fn dissolve_classic(&mut self, turn: &mut Turn, id: &Arc<str>) {
        self.timers.cancel(&Deadline::Join(id.clone()));
        self.timers.cancel(&Deadline::Sync(id.clone()));
        let Some(group) = self.classic(id) else {
            return;
        };
        tracing::info!(group = %id, "the group goes over to the consumer protocol");
        let error = ErrorCode::RebalanceInProgress;
        let mut gone: Vec<_> = group.pending.iter().cloned().collect();
        for (member_id, member) in &mut group.members {
            gone.push(member_id.clone());
            if let Some(ticket) = member.joining.take() {
                let refused = Joined::refused(error, member_id.clone());
                turn.answer(ticket, Answer::JoinGroup(refused));
            }
            if let Some(ticket) = member.syncing.take() {
                turn.answer(ticket, Answer::SyncGroup(Err(error)));
            }
        }
        for member in gone {
            self.timers.cancel(&Deadline::Session(id.clone(), member));
        }
    }

    /// A consumer group becomes a classic one, without those that leave and with the one that takes
    /// the place of one of them. It stands in the machine at once, for its members are to join
    /// again; its records say the same. One that would be too large to write stays as it is, and
    /// false is told.
    pub(super) fn downgrade(
        &mut self,
        turn: &mut Turn,
        id: &Arc<str>,
        leaving: &[Arc<str>],
        joining: Option<(Member, Arc<Assignment>)>,
        rebalances: bool,
    ) -> bool {
        let view = (self.settings.view)();
        let Some(group) = self.consumer(id) else {
            return false;
        };
        let mut members: Vec<(Arc<Member>, Arc<Assignment>)> = group
            .members
            .values()
            .filter(|member| !leaving.contains(&member.id))
            .map(|member| (member.clone(), group.target(&member.id)))
            .collect();
        members.extend(joining.map(|(member, target)| (Arc::new(member), target)));
        let classic = to_classic(group, &members, &view.image, turn.now);
        let record = classic.record(|_, member| member.assignment.clone());
        if !self.fits(&record) {
            return false;
        }
        for tombstone in group.tombstones() {
            turn.write(tombstone);
        }
        turn.write(record);
        let sessions: Vec<_> = classic
            .members
            .iter()
            .map(|(member, it)| (member.clone(), it.session_timeout_ms))
            .collect();
        let gone: Vec<_> = group.members.keys().cloned().collect();
        for member in &gone {
            for deadline in [
                Deadline::MemberJoin,
                Deadline::MemberSync,
                Deadline::Revocation,
            ] {
                self.timers.cancel(&deadline(id.clone(), member.clone()));
            }
        }
        for (member, ms) in sessions {
            self.timers
                .set(Deadline::Session(id.clone(), member), turn.after(ms));
        }
        self.known.remove(id);
        tracing::info!(group = %id, "the group goes back to the classic protocol");
        self.groups
            .insert(id.clone(), Group::Classic(Box::new(classic)));
        if rebalances {
            self.rebalance(turn, id);
        }
        true
    }
}

fn to_classic(
    group: &ConsumerGroup,
    members: &[(Arc<Member>, Arc<Assignment>)],
    image: &Image,
    now: Now,
) -> ClassicGroup {
    let mut classic = ClassicGroup::new(group.id.clone(), Some(now.wall_ms));
    classic.generation = group.epoch;
    let kind = Arc::from(PROTOCOL_TYPE);
    for (member, target) in members {
        let Some(metadata) = &member.classic else {
            continue;
        };
        let protocols = metadata.supported_protocols.iter();
        let protocols: Vec<_> = protocols
            .map(|protocol| (protocol.name.clone(), protocol.metadata.clone()))
            .collect();
        let version = protocols
            .first()
            .and_then(|(_, metadata)| Subscription::decode(metadata).ok())
            .map_or(0, |(version, _)| version);
        let it = classic_state::Member {
            instance: member.instance.clone(),
            client: member.client.clone(),
            session_timeout_ms: metadata.session_timeout_ms,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            protocols,
            assignment: by_name(target, version, image),
            joining: None,
            syncing: None,
            is_new: false,
        };
        classic.add(member.id.clone(), it, &kind);
    }
    classic.protocol = classic.elected_protocol();
    classic.enter(State::Stable, now.wall_ms);
    classic.subscribed = classic.compute_subscribed();
    classic
}

// Members of the classic protocol in a consumer group.
impl GroupMachine {
    pub(super) fn join_consumer(&mut self, turn: &mut Turn, ticket: Ticket, ask: &JoinGroup) {
        if let Err(error) = self.try_join_consumer(turn, ticket, ask) {
            let refused = Joined::refused(error.code, Arc::from(""));
            turn.answer(ticket, Answer::JoinGroup(refused));
        }
    }

    fn try_join_consumer(
        &mut self,
        turn: &mut Turn,
        ticket: Ticket,
        ask: &JoinGroup,
    ) -> Result<(), Refusal> {
        let view = (self.settings.view)();
        let rules = Rules::of(self.config(), &view.image, &ask.group);
        let Some(group) = self.consumer(&ask.group) else {
            return Err(ErrorCode::UnknownMemberId.into());
        };
        let is_new = ask.member.is_empty();
        let id = match is_new {
            true => Arc::from((self.settings.uuid)().to_string()),
            false => ask.member.clone(),
        };
        consumer::refuse_if_full(group, &id, &rules)?;
        if !supports(group, ask) {
            return Err(ErrorCode::InconsistentGroupProtocol.into());
        }
        if is_new && ask.instance.is_none() && ask.needs_member_id {
            let refused = Joined::refused(ErrorCode::MemberIdRequired, id);
            turn.answer(ticket, Answer::JoinGroup(refused));
            return Ok(());
        }
        let metadata = ask.protocols.first().map(|(_, metadata)| metadata.as_ref());
        let (_, subscription) = Subscription::decode(metadata.unwrap_or_default())
            .map_err(|_| ErrorCode::InconsistentGroupProtocol)?;
        let known = self.known.get(&ask.group).copied().unwrap_or_default();
        let cx = Context {
            now: turn.now,
            view: &view,
            rules: &rules,
            known,
            new_id: &|| Arc::from(""),
        };
        let mut draft = Draft::of(group);
        let entry = Entry {
            member: &id,
            instance: ask.instance.as_ref(),
            joins: ask.instance.is_none() || is_new,
            is_classic: true,
        };
        let replaced = ask.instance.as_ref().and_then(|it| group.instance(it));
        let replaced = replaced
            .cloned()
            .filter(|old| old.id != id || !old.is_classic());
        let member = consumer::find(&mut draft, &entry, |_| Ok(()))?;
        let mut updated = member.clone();
        updated.instance = ask.instance.clone().or(updated.instance);
        updated.rack = subscription
            .rack_id
            .filter(|rack| !rack.is_empty())
            .or(updated.rack);
        if ask.rebalance_timeout_ms != -1 {
            updated.rebalance_timeout_ms = ask.rebalance_timeout_ms;
        }
        updated.topics = subscription.topics.into_iter().collect();
        updated.client = ask.client.clone();
        updated.classic = Some(classic_metadata(ask.session_timeout_ms, &ask.protocols));
        let owned: Vec<(TopicId, Vec<i32>)> = by_id(&subscription.owned_partitions, &view.image)
            .into_iter()
            .map(|(topic, partitions)| (topic, partitions.into_iter().collect()))
            .collect();
        let goes_back = replaced.as_ref().is_some_and(|old| {
            let leaving = std::slice::from_ref(&old.id);
            !old.is_classic() && may_downgrade(group, leaving, Some(&updated), self.config())
        });
        if let (true, Some(old)) = (goes_back, replaced) {
            let rebalances = updated.topics != old.topics;
            let target = group.target(&old.id);
            let generation = group.epoch;
            let joining = Some((updated.clone(), target));
            let leaving = std::slice::from_ref(&old.id);
            if self.downgrade(turn, &ask.group, leaving, joining, rebalances) {
                self.answer_join(turn, ticket, ask, id, generation);
                return Ok(());
            }
            return Err(ErrorCode::UnknownServerError.into());
        }
        let look_up = consumer::subscribe(&mut draft, &member, &updated, &cx)?;
        let settled = consumer::settle(&mut draft, &updated, Some(&owned), &cx)?;
        let records = draft.records;
        self.check_size(&records)?;
        self.note_known(turn, &ask.group, &view, look_up);
        for record in records {
            turn.write(record);
        }
        self.timers
            .cancel(&Deadline::MemberJoin(ask.group.clone(), id.clone()));
        self.timers
            .cancel(&Deadline::Revocation(ask.group.clone(), id.clone()));
        self.timers.set(
            Deadline::Session(ask.group.clone(), id.clone()),
            turn.after(ask.session_timeout_ms),
        );
        self.timers.set(
            Deadline::MemberSync(ask.group.clone(), id.clone()),
            turn.after(settled.rebalance_timeout_ms),
        );
        self.answer_join(turn, ticket, ask, id, settled.epoch);
        Ok(())
    }

    fn answer_join(
        &self,
        turn: &mut Turn,
        ticket: Ticket,
        ask: &JoinGroup,
        member: Arc<str>,
        generation: i32,
    ) {
        let joined = Joined {
            error: ErrorCode::None,
            member,
            generation,
            protocol_type: Some(Arc::from(PROTOCOL_TYPE)),
            protocol: ask.protocols.first().map(|(name, _)| name.clone()),
            leader: Arc::from(""),
            skip_assignment: false,
            members: Vec::new(),
        };
        turn.answer(ticket, Answer::JoinGroup(joined));
    }

    /// The member of the classic protocol that a request is from, in the epoch that it says.
    fn classic_member(
        &self,
        group: &str,
        member: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> Result<(&ConsumerGroup, &Member), ErrorCode> {
        let group = self.consumer(group).ok_or(ErrorCode::UnknownMemberId)?;
        let found = match instance {
            None => group.members.get(member),
            Some(instance) => group.instance(instance),
        };
        let found = found.ok_or(ErrorCode::UnknownMemberId)?;
        if *found.id != *member {
            return Err(ErrorCode::FencedInstanceId);
        }
        if !found.is_classic() {
            return Err(ErrorCode::UnknownMemberId);
        }
        if found.epoch != generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        Ok((group, found))
    }

    pub(super) fn sync_consumer(
        &mut self,
        turn: &Turn,
        ask: &SyncGroup,
    ) -> Result<Synced, ErrorCode> {
        let instance = ask.instance.as_deref();
        let (group, member) =
            self.classic_member(&ask.group, &ask.member, instance, ask.generation)?;
        let Some(classic) = &member.classic else {
            return Err(ErrorCode::UnknownMemberId);
        };
        let protocol = classic.supported_protocols.first();
        let differs = |said: &Option<Arc<str>>, own: Option<&str>| {
            said.as_deref().is_some_and(|said| Some(said) != own)
        };
        let name = protocol.map(|protocol| &*protocol.name);
        if differs(&ask.protocol_type, Some(PROTOCOL_TYPE)) || differs(&ask.protocol, name) {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let session_ms = classic.session_timeout_ms;
        // One that gives partitions up has joined again already.
        let must_join =
            group.epoch > member.epoch && member.state != MemberState::UnrevokedPartitions;
        if must_join {
            let rebalance_ms = member.rebalance_timeout_ms;
            self.expect_join(turn, &ask.group, &ask.member, rebalance_ms);
            return Err(ErrorCode::RebalanceInProgress);
        }
        let version = protocol
            .and_then(|protocol| Subscription::decode(&protocol.metadata).ok())
            .map_or(0, |(version, _)| version);
        let view: View = (self.settings.view)();
        let assignment = by_name(&member.assigned, version, &view.image);
        self.timers
            .cancel(&Deadline::MemberSync(ask.group.clone(), ask.member.clone()));
        self.timers.set(
            Deadline::Session(ask.group.clone(), ask.member.clone()),
            turn.after(session_ms),
        );
        Ok(Synced {
            protocol_type: ask.protocol_type.clone(),
            protocol: ask.protocol.clone(),
            assignment,
        })
    }

    pub(super) fn heartbeat_consumer(
        &mut self,
        turn: &Turn,
        ask: &Heartbeat,
    ) -> Result<(), ErrorCode> {
        let instance = ask.instance.as_deref();
        let (group, member) =
            self.classic_member(&ask.group, &ask.member, instance, ask.generation)?;
        let must_join = member.epoch < group.epoch
            || match member.state {
                MemberState::UnrevokedPartitions => true,
                MemberState::UnreleasedPartitions => !waits_for_others(group, member),
                MemberState::Stable | MemberState::Unknown => false,
            };
        let rebalance_ms = member.rebalance_timeout_ms;
        let session_ms = member
            .classic
            .as_ref()
            .map_or(0, |it| it.session_timeout_ms);
        self.timers.set(
            Deadline::Session(ask.group.clone(), ask.member.clone()),
            turn.after(session_ms),
        );
        if must_join {
            self.expect_join(turn, &ask.group, &ask.member, rebalance_ms);
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }

    pub(super) fn leave_consumer(
        &mut self,
        turn: &mut Turn,
        ask: &LeaveGroup,
    ) -> Vec<Result<(), ErrorCode>> {
        let leaving = ask.members.iter();
        let leaving: Vec<_> = leaving
            .map(|leaving| self.leaving_consumer(&ask.group, leaving))
            .collect();
        let known: Vec<_> = leaving.iter().flatten().cloned().collect();
        self.fence(turn, &ask.group, &known);
        leaving.into_iter().map(|found| found.map(drop)).collect()
    }

    /// The member that leaves, to be removed with the others.
    fn leaving_consumer(
        &self,
        group: &str,
        leaving: &LeavingMember,
    ) -> Result<Arc<str>, ErrorCode> {
        let group = self.consumer(group).ok_or(ErrorCode::UnknownMemberId)?;
        let Some(instance) = &leaving.instance else {
            let known = group.members.get(&leaving.member);
            return known
                .map(|member| member.id.clone())
                .ok_or(ErrorCode::UnknownMemberId);
        };
        let holder = group.instance(instance).ok_or(ErrorCode::UnknownMemberId)?;
        // An operator names the instance alone.
        match leaving.member.is_empty() || leaving.member == holder.id {
            true => Ok(holder.id.clone()),
            false => Err(ErrorCode::FencedInstanceId),
        }
    }

    fn expect_join(&mut self, turn: &Turn, group: &Arc<str>, member: &Arc<str>, ms: i32) {
        let join = Deadline::MemberJoin(group.clone(), member.clone());
        if !self.timers.is_set(&join) {
            self.timers.set(join, turn.after(ms));
        }
    }
}

/// Whether every member of the classic protocol can follow one of these protocols.
fn supports(group: &ConsumerGroup, ask: &JoinGroup) -> bool {
    if *ask.protocol_type != *PROTOCOL_TYPE {
        return false;
    }
    let classic = || group.members.values().filter_map(|m| m.classic.as_ref());
    let is_common = |name: &str| {
        classic().all(|it| it.supported_protocols.iter().any(|own| *own.name == *name))
    };
    ask.protocols.iter().any(|(name, _)| is_common(name))
}

/// Whether partitions that a member shall own still belong to others.
fn waits_for_others(group: &ConsumerGroup, member: &Member) -> bool {
    let target = group.target(&member.id);
    target.iter().any(|(topic, partitions)| {
        let assigned = member.assigned.get(topic);
        let missing = partitions
            .iter()
            .filter(|p| assigned.is_none_or(|assigned| !assigned.contains(p)));
        missing
            .into_iter()
            .any(|partition| group.owner(*topic, *partition).is_some())
    })
}
