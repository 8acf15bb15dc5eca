//! Members of the classic protocol in a consumer group: they join, sync and report as ever, each on
//! its own. The generation of such a member is its epoch, what it owns comes from the coordinator,
//! and a heartbeat tells it when to join again. How groups come to have both kinds is in `migrate`.

use std::sync::Arc;

use super::ask::{
    Answer, Heartbeat, JoinGroup, Joined, LeaveGroup, LeavingMember, SyncGroup, Synced,
};
use super::consumer::{self, Context, Draft, Entry, Rules};
use super::consumer_state::{ConsumerGroup, Member, MemberState};
use super::migrate::{by_id, by_name, classic_metadata, may_downgrade};
use super::{Deadline, GroupMachine, Turn, View};
use crate::base::TopicId;
use crate::machine::Ticket;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::protocol::subscription::{PROTOCOL_TYPE, Subscription};

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
