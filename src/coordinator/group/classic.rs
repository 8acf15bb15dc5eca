//! The classic protocol: join, sync, heartbeat, leave, and what happens when somebody is late
//! (the classic half of org.apache.kafka.coordinator.group.GroupMetadataManager).
//!
//! A rebalance is a barrier: joins wait until every known member has joined, and end at once when
//! the last one does. The first barrier of a group waits for more members to come. With
//! `group.initial.rebalance.delay.ms` set it waits as Kafka's does; otherwise until nobody new has
//! come for a moment, so that a lone consumer starts at once and a hundred that start together
//! share one rebalance.

use std::sync::Arc;

use bytes::Bytes;

use super::ask::{Answer, Heartbeat, JoinGroup, Joined, LeaveGroup, LeavingMember};
use super::ask::{SyncGroup, Synced};
use super::classic_state::{ClassicGroup, Initial, Member, State};
use super::group::Group;
use super::records::{GroupMetadataValue, KEY_TEXT_MAX};
use super::{Deadline, GroupMachine, Turn};
use crate::machine::Ticket;
use crate::protocol::error::ErrorCode;

/// What a member says of itself is no longer than its record has room for, also as part of an id.
const TEXT_MAX: usize = KEY_TEXT_MAX - 64;

/// How long a join of a new member is held; its client is expected to ask again before.
const NEW_MEMBER_MS: i32 = 5 * 60 * 1000;

/// How long a first rebalance waits for the next member to come, when the options do not say.
const QUIET_MS: i32 = 30;

/// And how long it waits at most: Kafka's own default.
const QUIET_MAX_MS: i32 = 3000;

/// How a first rebalance waits.
#[derive(Clone, Copy)]
struct Patience {
    step_ms: i32,
    /// Everybody who comes begins a step anew; in Kafka the next step is taken when one is over.
    restarts: bool,
}

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

// The barrier.
impl GroupMachine {
    /// Begins a rebalance, or ends the one under way if everybody has come.
    fn rebalance_or_complete(&mut self, turn: &mut Turn, id: &Arc<str>) {
        match self.classic(id) {
            Some(group) if group.state == State::Preparing => self.complete_if_all(turn, id),
            Some(_) => self.rebalance(turn, id),
            None => {}
        }
    }

    /// Has everybody join again.
    pub(super) fn rebalance(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let patience = self.patience();
        let Some(group) = self.classic(id) else {
            return;
        };
        let is_initial = group.state == State::Empty;
        let released = match group.state {
            State::Completing => release_syncs(group, turn, ErrorCode::RebalanceInProgress),
            State::Empty | State::Preparing | State::Stable => Vec::new(),
        };
        group.enter(State::Preparing, turn.now.wall_ms);
        let ms = match is_initial {
            true => {
                let most = match patience.restarts {
                    true => QUIET_MAX_MS,
                    false => group.rebalance_timeout_ms(),
                };
                group.initial = Some(Initial {
                    has_more: false,
                    remaining_ms: most.saturating_sub(patience.step_ms).max(0),
                });
                patience.step_ms
            }
            false => group.rebalance_timeout_ms(),
        };
        self.timers.cancel(&Deadline::Sync(id.clone()));
        self.timers.set(Deadline::Join(id.clone()), turn.after(ms));
        self.begin_sessions(turn, id, released);
        if !is_initial {
            self.complete_if_all(turn, id);
        }
    }

    fn patience(&self) -> Patience {
        let config = self.config();
        let is_set = config
            .given
            .contains_key("group.initial.rebalance.delay.ms");
        match is_set {
            true => Patience {
                step_ms: config.group_initial_rebalance_delay_ms,
                restarts: false,
            },
            false => Patience {
                step_ms: QUIET_MS,
                restarts: true,
            },
        }
    }

    /// Somebody came during a first rebalance: more may follow.
    fn hold_initial(&mut self, turn: &Turn, id: &Arc<str>) {
        let patience = self.patience();
        let Some(group) = self.classic(id) else {
            return;
        };
        let since_ms = group.since_ms.unwrap_or(turn.now.wall_ms);
        let Some(initial) = &mut group.initial else {
            return;
        };
        initial.has_more = true;
        if patience.restarts {
            let waited = turn.now.wall_ms.saturating_sub(since_ms).max(0);
            let waited = i32::try_from(waited).unwrap_or(i32::MAX);
            let rest = QUIET_MAX_MS.saturating_sub(waited).max(0);
            let until = turn.after(patience.step_ms.min(rest));
            self.timers.set(Deadline::Join(id.clone()), until);
        }
    }

    fn complete_if_all(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let Some(group) = self.classic(id) else {
            return;
        };
        // A first rebalance waits for those whom nobody knows yet.
        let waits = group.state != State::Preparing || group.initial.is_some();
        if !waits && group.all_have_joined() {
            self.complete(turn, id);
        }
    }

    /// The time to join is over.
    pub(super) fn joining_ends(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let patience = self.patience();
        let Some(group) = self.classic(id).filter(|it| it.state == State::Preparing) else {
            return;
        };
        if let Some(initial) = group.initial.as_mut().filter(|_| !patience.restarts)
            && initial.has_more
            && initial.remaining_ms > 0
        {
            let step = patience.step_ms.min(initial.remaining_ms);
            initial.has_more = false;
            initial.remaining_ms = initial.remaining_ms.saturating_sub(patience.step_ms).max(0);
            self.timers
                .set(Deadline::Join(id.clone()), turn.after(step));
            return;
        }
        self.complete(turn, id);
    }

    /// Ends the barrier with those who have joined; static members may be away for a while.
    fn complete(&mut self, turn: &mut Turn, id: &Arc<str>) {
        self.timers.cancel(&Deadline::Join(id.clone()));
        let Some(group) = self.classic(id) else {
            return;
        };
        let late = group
            .members
            .iter()
            .filter(|(_, member)| member.joining.is_none() && member.instance.is_none());
        let late: Vec<_> = late.map(|(id, _)| id.clone()).collect();
        for member in &late {
            group.remove(member);
        }
        let is_led = group.elect_joined_leader();
        let is_stuck = !is_led && !group.members.is_empty();
        let timeout_ms = group.rebalance_timeout_ms();
        if !is_stuck {
            group.next_generation(turn.now.wall_ms);
        }
        let is_empty = group.members.is_empty();
        if is_empty {
            turn.write(group.record(|_, _| Bytes::new()));
        }
        for member in late {
            self.timers.cancel(&Deadline::Session(id.clone(), member));
        }
        if is_stuck {
            // Only static members are left, and none has joined: their sessions decide.
            self.timers
                .set(Deadline::Join(id.clone()), turn.after(timeout_ms));
        } else if !is_empty {
            self.release_joins(turn, id);
            self.timers
                .set(Deadline::Sync(id.clone()), turn.after(timeout_ms));
        }
    }

    fn release_joins(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let Some(group) = self.classic(id) else {
            return;
        };
        group.unsynced = group.members.keys().cloned().collect();
        let mut sessions = Vec::with_capacity(group.members.len());
        let ids: Vec<_> = group.members.keys().cloned().collect();
        for member in ids {
            let told = joined(group, &member);
            let Some(found) = group.members.get_mut(&member) else {
                continue;
            };
            found.is_new = false;
            if let Some(ticket) = found.joining.take() {
                turn.answer(ticket, Answer::JoinGroup(told));
                sessions.push((member, found.session_timeout_ms));
            }
        }
        self.begin_sessions(turn, id, sessions);
    }
}

// Inside a generation: syncs and heartbeats.
impl GroupMachine {
    pub(super) fn sync(&mut self, turn: &mut Turn, ticket: Ticket, ask: SyncGroup) {
        if self.consumer(&ask.group).is_some() {
            let synced = self.sync_consumer(turn, &ask);
            turn.answer(ticket, Answer::SyncGroup(synced));
            return;
        }
        let record_bytes_max = self.settings.record_bytes_max;
        let state = match self.check_sync(&ask) {
            Ok(state) => state,
            Err(error) => {
                turn.answer(ticket, Answer::SyncGroup(Err(error)));
                return;
            }
        };
        let Some(group) = self.classic(&ask.group) else {
            return;
        };
        group.unsynced.remove(&ask.member);
        let leads = group.is_leader(&ask.member);
        let Some(member) = group.members.get_mut(&ask.member) else {
            return;
        };
        if state == State::Stable {
            let assignment = member.assignment.clone();
            turn.answer(ticket, Answer::SyncGroup(Ok(synced(group, assignment))));
            return;
        }
        if let Some(earlier) = member.syncing.replace(ticket) {
            // Its client has given up on the earlier call.
            let error = ErrorCode::RebalanceInProgress;
            turn.answer(earlier, Answer::SyncGroup(Err(error)));
        }
        if leads {
            let assigned = |id: &str| {
                let found = ask.assignments.iter().rev().find(|(of, _)| **of == *id);
                found.map(|(_, bytes)| bytes.clone()).unwrap_or_default()
            };
            let record = group.record(|id, _| assigned(id));
            if record.value().map_or(0, |value| value.len()) > record_bytes_max {
                let released = release_syncs(group, turn, ErrorCode::UnknownServerError);
                self.begin_sessions(turn, &ask.group, released);
                self.rebalance(turn, &ask.group);
                return;
            }
            turn.write(record);
            for (id, member) in &mut group.members {
                member.assignment = assigned(id);
            }
            self.propagate(turn, &ask.group);
        }
    }

    fn check_sync(&mut self, ask: &SyncGroup) -> Result<State, ErrorCode> {
        if ask.group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let group = self.classic(&ask.group);
        let group = group.ok_or(ErrorCode::UnknownMemberId)?;
        group.check_member(&ask.member, ask.instance.as_deref())?;
        if ask.generation != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs =
            |told: &Option<Arc<str>>, own: &Option<Arc<str>>| told.is_some() && told != own;
        if differs(&ask.protocol_type, &group.protocol_type)
            || differs(&ask.protocol, &group.protocol)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        match group.state {
            State::Empty => Err(ErrorCode::UnknownMemberId),
            State::Preparing => Err(ErrorCode::RebalanceInProgress),
            State::Completing | State::Stable => Ok(group.state),
        }
    }

    /// Gives everybody who waits its assignment: the group is stable.
    fn propagate(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let Some(group) = self.classic(id) else {
            return;
        };
        let mut told = Vec::new();
        for (member_id, member) in &mut group.members {
            if let Some(ticket) = member.syncing.take() {
                let assignment = member.assignment.clone();
                told.push((
                    ticket,
                    assignment,
                    member_id.clone(),
                    member.session_timeout_ms,
                ));
            }
        }
        group.enter(State::Stable, turn.now.wall_ms);
        let all_synced = group.unsynced.is_empty();
        let mut sessions = Vec::with_capacity(told.len());
        for (ticket, assignment, member, session_ms) in told {
            turn.answer(ticket, Answer::SyncGroup(Ok(synced(group, assignment))));
            sessions.push((member, session_ms));
        }
        self.begin_sessions(turn, id, sessions);
        if all_synced {
            self.timers.cancel(&Deadline::Sync(id.clone()));
        }
    }

    /// The time to sync is over: who has not is out.
    pub(super) fn syncing_ends(&mut self, turn: &mut Turn, id: &Arc<str>) {
        let Some(group) = self.classic(id) else {
            return;
        };
        let is_due = matches!(group.state, State::Completing | State::Stable);
        if !is_due || group.unsynced.is_empty() {
            return;
        }
        let late = std::mem::take(&mut group.unsynced);
        for member in &late {
            group.remove(member);
        }
        for member in late {
            self.timers.cancel(&Deadline::Session(id.clone(), member));
        }
        self.rebalance(turn, id);
    }

    pub(super) fn heartbeat(&mut self, turn: &Turn, ask: &Heartbeat) -> Result<(), ErrorCode> {
        if ask.group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if self.consumer(&ask.group).is_some() {
            return self.heartbeat_consumer(turn, ask);
        }
        let group = self.classic(&ask.group);
        let group = group.ok_or(ErrorCode::UnknownMemberId)?;
        group.check_member(&ask.member, ask.instance.as_deref())?;
        if ask.generation != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let state = group.state;
        if state == State::Empty {
            return Err(ErrorCode::UnknownMemberId);
        }
        self.hear_of(turn, &ask.group, &ask.member);
        match state {
            State::Preparing => Err(ErrorCode::RebalanceInProgress),
            State::Empty | State::Completing | State::Stable => Ok(()),
        }
    }

    /// Members that waited for an answer have it, and must speak again within their sessions: while
    /// they waited nothing was expected of them, and a session may be long over.
    fn begin_sessions(&mut self, turn: &Turn, group: &Arc<str>, members: Vec<(Arc<str>, i32)>) {
        for (member, ms) in members {
            let session = Deadline::Session(group.clone(), member);
            self.timers.set(session, turn.after(ms));
        }
    }

    /// A member was heard of: its session begins anew.
    pub(super) fn hear_of(&mut self, turn: &Turn, group: &Arc<str>, member: &Arc<str>) {
        let found = self.classic(group).and_then(|it| it.members.get(member));
        if let Some(ms) = found.map(|member| member.session_timeout_ms) {
            let session = Deadline::Session(group.clone(), member.clone());
            self.timers.set(session, turn.after(ms));
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

/// Sends those who wait for the leader's word back, without an assignment: who they are, and how
/// long their sessions last.
fn release_syncs(
    group: &mut ClassicGroup,
    turn: &mut Turn,
    error: ErrorCode,
) -> Vec<(Arc<str>, i32)> {
    let mut released = Vec::new();
    for (id, member) in &mut group.members {
        member.assignment = Bytes::new();
        if let Some(ticket) = member.syncing.take() {
            turn.answer(ticket, Answer::SyncGroup(Err(error)));
            released.push((id.clone(), member.session_timeout_ms));
        }
    }
    released
}

/// What a member is told of the generation it is in.
fn joined(group: &ClassicGroup, member: &Arc<str>) -> Joined {
    let members = match group.is_leader(member) {
        true => group.joined_members(),
        false => Vec::new(),
    };
    Joined {
        error: ErrorCode::None,
        member: member.clone(),
        generation: group.generation,
        protocol_type: group.protocol_type.clone(),
        protocol: group.protocol.clone(),
        leader: group.leader.clone().unwrap_or_else(|| Arc::from("")),
        skip_assignment: false,
        members,
    }
}

fn synced(group: &ClassicGroup, assignment: Bytes) -> Synced {
    Synced {
        protocol_type: group.protocol_type.clone(),
        protocol: group.protocol.clone(),
        assignment,
    }
}
