//! Members of the classic protocol come and go (the classic half of
//! org.apache.kafka.coordinator.group.GroupMetadataManager). What a group does about it is in
//! `rebalance`.

use std::sync::Arc;

use bytes::Bytes;

use super::ask::{Answer, JoinGroup, Joined, LeaveGroup, LeavingMember};
use super::classic_state::{ClassicGroup, Member, State};
use super::group::Group;
use super::rebalance::joined;
use super::records::{GroupMetadataValue, KEY_TEXT_MAX};
use super::{Deadline, GroupMachine, Turn};
use crate::machine::Ticket;
use crate::protocol::error::ErrorCode;

/// What a member says of itself is no longer than its record has room for, also as part of an id.
const TEXT_MAX: usize = KEY_TEXT_MAX - 64;

/// How long a join of a new member is held; its client is expected to ask again before.
const NEW_MEMBER_MS: i32 = 5 * 60 * 1000;

// Entering: joins.
impl GroupMachine {
    pub(super) fn join(&mut self, turn: &mut Turn, ticket: Ticket, ask: JoinGroup) {
        if let Err(error) = self.check_join(&ask) {
            let refused = Joined::refused(error, ask.member);
            turn.answer(ticket, Answer::JoinGroup(refused));
            return;
        }
        match self
            .consumer(&ask.group)
            .map(|group| group.members.is_empty())
        {
            Some(true) => self.dissolve_consumer(turn, &ask.group),
            Some(false) => {
                self.join_consumer(turn, ticket, &ask);
                return;
            }
            None => {}
        }
        let is_new = ask.member.is_empty();
        let exists = self.groups.contains_key(&ask.group);
        if !exists {
            let mut made = ClassicGroup::new(ask.group.clone(), Some(turn.now.wall_ms));
            made.is_unwritten = true;
            self.groups
                .insert(ask.group.clone(), Group::Classic(Box::new(made)));
        }
        let most = self.group_size_max();
        let Some(group) = self.classic(&ask.group) else {
            return;
        };
        if !accepts(group, &ask.member, most) {
            group.remove(&ask.member);
            let session = Deadline::Session(ask.group.clone(), ask.member.clone());
            self.timers.cancel(&session);
            let refused = Joined::refused(ErrorCode::GroupMaxSizeReached, Arc::from(""));
            turn.answer(ticket, Answer::JoinGroup(refused));
            self.complete_if_all(turn, &ask.group);
        } else if is_new {
            self.join_new(turn, ticket, ask);
        } else {
            self.join_again(turn, ticket, ask);
        }
    }

    fn check_join(&self, ask: &JoinGroup) -> Result<(), ErrorCode> {
        if ask.group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let protocols = ask.protocols.iter().map(|(name, _)| name);
        let instance = ask.instance.iter();
        let written = [&ask.member, &ask.client.id, &ask.protocol_type].into_iter();
        let mut written = written.chain(instance).chain(protocols);
        if written.any(|text| text.len() > TEXT_MAX) {
            // Kafka does not even read such a request.
            return Err(ErrorCode::InvalidRequest);
        }
        let config = self.config();
        let allowed = config.group_min_session_timeout_ms..=config.group_max_session_timeout_ms;
        if !allowed.contains(&ask.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        match self.groups.get(&ask.group) {
            Some(Group::Consumer(group)) if !group.members.is_empty() => Ok(()),
            None | Some(Group::Consumer(_)) if !ask.member.is_empty() => {
                Err(ErrorCode::UnknownMemberId)
            }
            None | Some(Group::Consumer(_))
                if ask.protocol_type.is_empty() || ask.protocols.is_empty() =>
            {
                Err(ErrorCode::InconsistentGroupProtocol)
            }
            Some(Group::Classic(_) | Group::Consumer(_)) | None => Ok(()),
        }
    }

    fn group_size_max(&self) -> usize {
        usize::try_from(self.config().group_max_size).unwrap_or(usize::MAX)
    }

    fn join_new(&mut self, turn: &mut Turn, ticket: Ticket, ask: JoinGroup) {
        let uuid = (self.settings.uuid)();
        let Some(group) = self.classic(&ask.group) else {
            return;
        };
        if !group.supports(&ask.protocol_type, &ask.protocols) {
            let error = ErrorCode::InconsistentGroupProtocol;
            turn.answer(
                ticket,
                Answer::JoinGroup(Joined::refused(error, Arc::from(""))),
            );
            return;
        }
        let prefix = ask.instance.as_ref().unwrap_or(&ask.client.id);
        let id: Arc<str> = format!("{prefix}-{}", uuid::Uuid::from(uuid)).into();
        let known = ask.instance.as_ref();
        let known = known.and_then(|instance| group.instance(instance).cloned());
        match known {
            Some(old) => self.replace_static(turn, ticket, ask, &old, id),
            None if ask.instance.is_none() && ask.needs_member_id => {
                group.pending.insert(id.clone());
                self.hold_initial(turn, &ask.group);
                let until = turn.after(ask.session_timeout_ms);
                self.timers
                    .set(Deadline::Session(ask.group, id.clone()), until);
                let refused = Joined::refused(ErrorCode::MemberIdRequired, id);
                turn.answer(ticket, Answer::JoinGroup(refused));
            }
            None => self.add(turn, ticket, ask, id),
        }
    }

    fn join_again(&mut self, turn: &mut Turn, ticket: Ticket, mut ask: JoinGroup) {
        let Some(group) = self.classic(&ask.group) else {
            return;
        };
        let id = ask.member.clone();
        let is_pending = group.pending.contains(&id);
        let checked = if !group.supports(&ask.protocol_type, &ask.protocols) {
            Err(ErrorCode::InconsistentGroupProtocol)
        } else if is_pending {
            Ok(())
        } else {
            group.check_member(&id, ask.instance.as_deref())
        };
        if let Err(error) = checked {
            turn.answer(ticket, Answer::JoinGroup(Joined::refused(error, id)));
            return;
        }
        if is_pending {
            // Only a member without an instance is given an id to come back with.
            ask.instance = None;
            self.add(turn, ticket, ask, id);
            return;
        }
        let has_changed = group.members.get(&id).is_some_and(|member| {
            // The order counts: it is how a member votes.
            member.protocols != ask.protocols
        });
        let rejoins = match group.state {
            State::Preparing => true,
            State::Completing => has_changed,
            // The leader rejoins to have topics that changed assigned anew.
            State::Stable => has_changed || group.is_leader(&id),
            State::Empty => {
                let refused = Joined::refused(ErrorCode::UnknownMemberId, id);
                turn.answer(ticket, Answer::JoinGroup(refused));
                return;
            }
        };
        if rejoins {
            update(group, turn, &id, ticket, ask.clone());
            self.rebalance_or_complete(turn, &ask.group);
        } else {
            // It may have missed the first answer.
            let joined = joined(group, &id);
            turn.answer(ticket, Answer::JoinGroup(joined));
        }
    }

    fn add(&mut self, turn: &mut Turn, ticket: Ticket, ask: JoinGroup, id: Arc<str>) {
        let Some(group) = self.classic(&ask.group) else {
            return;
        };
        let member = Member {
            instance: ask.instance,
            client: ask.client,
            session_timeout_ms: ask.session_timeout_ms,
            rebalance_timeout_ms: ask.rebalance_timeout_ms,
            protocols: ask.protocols,
            assignment: Bytes::new(),
            joining: Some(ticket),
            syncing: None,
            is_new: true,
        };
        if std::mem::take(&mut group.is_unwritten) {
            turn.write(group.reserving_record());
        }
        group.add(id.clone(), member, &ask.protocol_type);
        // Its client does not know its id yet and cannot be heard of; nor is its going away seen.
        self.timers.set(
            Deadline::Session(ask.group.clone(), id),
            turn.after(NEW_MEMBER_MS),
        );
        self.hold_initial(turn, &ask.group);
        self.rebalance_or_complete(turn, &ask.group);
    }

    /// A static member comes back without its id (KIP-345, KIP-814).
    fn replace_static(
        &mut self,
        turn: &mut Turn,
        ticket: Ticket,
        ask: JoinGroup,
        old: &Arc<str>,
        id: Arc<str>,
    ) {
        let Some(group) = self.classic(&ask.group) else {
            return;
        };
        let leader_before = group.leader.clone();
        let Some(member) = group.replace(old, id.clone()) else {
            return;
        };
        fence(member, turn, old);
        let session = turn.after(ask.session_timeout_ms);
        let skips = ask.may_skip_assignment;
        update(group, turn, &id, ticket, ask.clone());
        let stays = group.state == State::Stable && group.elected_protocol() == group.protocol;
        if stays {
            if let Some(member) = group.members.get_mut(&id) {
                member.joining = None;
            }
            turn.write(group.record(|_, member| member.assignment.clone()));
            let mut joined = joined(group, &id);
            let leads = group.is_leader(&id);
            if skips {
                joined.skip_assignment = leads;
            } else {
                // It must not assign anew: the leader that it is told of is the one it was.
                joined.leader = leader_before.unwrap_or_else(|| Arc::from(""));
                joined.members = Vec::new();
            }
            turn.answer(ticket, Answer::JoinGroup(joined));
        }
        self.timers
            .cancel(&Deadline::Session(ask.group.clone(), old.clone()));
        self.timers
            .set(Deadline::Session(ask.group.clone(), id), session);
        if !stays {
            self.rebalance_or_complete(turn, &ask.group);
        }
    }
}

// Leaving, on purpose or not.
impl GroupMachine {
    pub(super) fn leave(&mut self, turn: &mut Turn, ask: LeaveGroup) -> Vec<Result<(), ErrorCode>> {
        if self.consumer(&ask.group).is_some() {
            return self.leave_consumer(turn, &ask);
        }
        let left: Vec<_> = ask
            .members
            .iter()
            .map(|leaving| self.leave_one(turn, &ask.group, leaving))
            .collect();
        if left.iter().any(Result::is_ok) {
            self.after_removal(turn, &ask.group);
        }
        left
    }

    fn leave_one(
        &mut self,
        turn: &mut Turn,
        id: &Arc<str>,
        leaving: &LeavingMember,
    ) -> Result<(), ErrorCode> {
        let group = self.classic(id).ok_or(ErrorCode::UnknownMemberId)?;
        let member = if leaving.member.is_empty() {
            // An operator removes whoever is that instance now.
            let instance = leaving.instance.as_deref();
            let known = instance.and_then(|instance| group.instance(instance));
            known.cloned().ok_or(ErrorCode::UnknownMemberId)?
        } else {
            if !group.pending.contains(&leaving.member) {
                group.check_member(&leaving.member, leaving.instance.as_deref())?;
            }
            leaving.member.clone()
        };
        self.remove(turn, id, &member);
        Ok(())
    }

    /// Removes a member; whoever waits in its name is told.
    fn remove(&mut self, turn: &mut Turn, id: &Arc<str>, member: &Arc<str>) {
        let removed = self.classic(id).and_then(|group| group.remove(member));
        let error = ErrorCode::UnknownMemberId;
        if let Some(removed) = removed {
            if let Some(ticket) = removed.joining {
                let refused = Joined::refused(error, Arc::from(""));
                turn.answer(ticket, Answer::JoinGroup(refused));
            }
            if let Some(ticket) = removed.syncing {
                turn.answer(ticket, Answer::SyncGroup(Err(error)));
            }
        }
        let session = Deadline::Session(id.clone(), member.clone());
        self.timers.cancel(&session);
    }

    /// What a group does when somebody is gone.
    fn after_removal(&mut self, turn: &mut Turn, id: &Arc<str>) {
        match self.classic(id).map(|group| group.state) {
            Some(State::Preparing) => self.complete_if_all(turn, id),
            Some(State::Completing | State::Stable) => self.rebalance(turn, id),
            Some(State::Empty) => self.forget_if_unwritten(id),
            None => {}
        }
    }

    /// Forgets a group of which nothing is left but the ids that it gave out, once these are gone.
    fn forget_if_unwritten(&mut self, id: &Arc<str>) {
        let has_offsets = self.offsets.has_any(id);
        let is_nothing = |group: &mut ClassicGroup| {
            group.is_unwritten && group.pending.is_empty() && group.members.is_empty()
        };
        if !has_offsets && self.classic(id).is_some_and(is_nothing) {
            self.groups.remove(id);
        }
    }

    /// A member was not heard of for as long as its session lasts.
    pub(super) fn session_ends(&mut self, turn: &mut Turn, id: &Arc<str>, member: &Arc<str>) {
        let Some(group) = self.classic(id) else {
            return;
        };
        let is_pending = group.pending.contains(member);
        let is_waiting = group.members.get(member).is_some_and(|found| {
            // One that waits for the others is not expected to speak, unless it is new and its
            // client may be long gone.
            !found.is_new && (found.joining.is_some() || found.syncing.is_some())
        });
        if is_waiting || !(is_pending || group.members.contains_key(member)) {
            return;
        }
        self.remove(turn, id, member);
        if is_pending {
            self.complete_if_all(turn, id);
            self.forget_if_unwritten(id);
        } else {
            self.after_removal(turn, id);
        }
    }
}

// Records.
impl GroupMachine {
    /// The classic group of that name.
    pub(super) fn classic(&mut self, id: &str) -> Option<&mut ClassicGroup> {
        match self.groups.get_mut(id) {
            Some(Group::Classic(group)) => Some(group),
            Some(Group::Consumer(_)) | None => None,
        }
    }

    /// Takes in the record of a classic group. One that runs here knows more than its record, and
    /// wrote it itself.
    pub(super) fn replay_classic(&mut self, id: &Arc<str>, value: Option<&GroupMetadataValue>) {
        let Some(value) = value else {
            if self.classic(id).is_some() {
                self.groups.remove(id);
            }
            return;
        };
        let is_loading = self.is_loading;
        match self.classic(id) {
            Some(group) if !is_loading => group.written = Some(value.clone()),
            _ => {
                let group = ClassicGroup::of_record(id.clone(), value);
                self.groups
                    .insert(id.clone(), Group::Classic(Box::new(group)));
            }
        }
    }

    /// Every member that was loaded gets a whole session to be heard of; a group that is larger
    /// than it may be has to join again.
    pub(super) fn begin_classic(&mut self, turn: &mut Turn) {
        let most = self.group_size_max();
        let mut sessions = Vec::new();
        let mut too_large = Vec::new();
        for (id, group) in &self.groups {
            let Group::Classic(group) = group else {
                continue;
            };
            for (member, it) in &group.members {
                sessions.push((id.clone(), member.clone(), it.session_timeout_ms));
            }
            if group.members.len() > most {
                too_large.push(id.clone());
            }
        }
        for (id, member, ms) in sessions {
            self.timers
                .set(Deadline::Session(id, member), turn.after(ms));
        }
        for id in too_large {
            self.rebalance(turn, &id);
        }
    }
}

/// Whether a group has room for a join (GroupMetadataManager.acceptJoiningMember).
fn accepts(group: &ClassicGroup, member: &str, most: usize) -> bool {
    match group.state {
        State::Empty => true,
        // Those who have joined count, so that the last to come back are those left out.
        State::Preparing => {
            let known = group.members.get(member);
            known.is_some_and(|it| it.joining.is_some()) || group.joining() < most
        }
        State::Completing | State::Stable => {
            group.members.contains_key(member) || group.members.len() < most
        }
    }
}

/// Takes over what a member says of itself, and has it wait for the others.
fn update(
    group: &mut ClassicGroup,
    turn: &mut Turn,
    id: &Arc<str>,
    ticket: Ticket,
    ask: JoinGroup,
) {
    let Some(member) = group.members.get_mut(id) else {
        return;
    };
    member.client = ask.client;
    member.session_timeout_ms = ask.session_timeout_ms;
    member.rebalance_timeout_ms = ask.rebalance_timeout_ms;
    member.protocols = ask.protocols;
    if let Some(earlier) = member.joining.replace(ticket) {
        // Its client has given up on the earlier call.
        let refused = Joined::refused(ErrorCode::RebalanceInProgress, id.clone());
        turn.answer(earlier, Answer::JoinGroup(refused));
    }
}

/// Whoever waits under the id that a static member had is told that another took its place.
fn fence(member: &mut Member, turn: &mut Turn, old: &Arc<str>) {
    let error = ErrorCode::FencedInstanceId;
    if let Some(ticket) = member.joining.take() {
        let refused = Joined::refused(error, old.clone());
        turn.answer(ticket, Answer::JoinGroup(refused));
    }
    if let Some(ticket) = member.syncing.take() {
        turn.answer(ticket, Answer::SyncGroup(Err(error)));
    }
}
