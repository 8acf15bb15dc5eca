//! A rebalance of the classic protocol: a barrier, and the assignment after it.
//!
//! Joins wait until every known member has joined, and end at once when the last one does. The
//! first barrier of a group waits for more members to come. With
//! `group.initial.rebalance.delay.ms` set it waits as Kafka's does; otherwise until nobody new has
//! come for a moment, so that a lone consumer starts at once and a hundred that start together
//! share one rebalance. Then syncs wait for what the leader assigns; who does not sync is out.

use std::sync::Arc;

use bytes::Bytes;

use super::ask::{Answer, Heartbeat, Joined, SyncGroup, Synced};
use super::classic_state::{ClassicGroup, Initial, State};
use super::{Deadline, GroupMachine, Turn};
use crate::machine::Ticket;
use crate::protocol::error::ErrorCode;

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

// The barrier.
impl GroupMachine {
    /// Begins a rebalance, or ends the one under way if everybody has come.
    pub(super) fn rebalance_or_complete(&mut self, turn: &mut Turn, id: &Arc<str>) {
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
    pub(super) fn hold_initial(&mut self, turn: &Turn, id: &Arc<str>) {
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

    pub(super) fn complete_if_all(&mut self, turn: &mut Turn, id: &Arc<str>) {
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
pub(super) fn joined(group: &ClassicGroup, member: &Arc<str>) -> Joined {
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
