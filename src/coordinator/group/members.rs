//! Consumer groups carried on: their heartbeats, farewells, deadlines and descriptions.
//!
//! What a heartbeat comes to is decided in `consumer`; here it is written, timed and answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::consumer::{self, Context, Draft, Rules, Step};
use super::consumer_ask::{
    ConsumerBeat, ConsumerHeartbeat, DescribeConsumerGroups, DescribedConsumer,
    DescribedConsumerGroup, TakeResolved,
};
use super::consumer_state::{AWAY, ConsumerGroup, LEFT, Member, MemberState};
use super::group::Group;
use super::migrate;
use super::records::GroupRecord;
use super::subscription;
use super::{Deadline, Effect, GroupMachine, Turn, View};
use crate::protocol::error::{ErrorCode, Refusal};

/// Members by group, to be removed together.
pub(super) type Fenced = BTreeMap<Arc<str>, Vec<Arc<str>>>;

impl GroupMachine {
    /// The consumer group of that name.
    pub(super) fn consumer(&self, id: &str) -> Option<&ConsumerGroup> {
        match self.groups.get(id) {
            Some(Group::Consumer(group)) => Some(group),
            Some(Group::Classic(_)) | None => None,
        }
    }

    /// The consumer group of that name, or why there is none.
    fn known_consumer(&self, id: &str) -> Result<&ConsumerGroup, Refusal> {
        let words = match self.groups.get(id) {
            Some(Group::Consumer(group)) => return Ok(group),
            Some(Group::Classic(_)) => format!("Group {id} is not a consumer group."),
            None => format!("Group {id} not found."),
        };
        Err(Refusal::new(ErrorCode::GroupIdNotFound, words))
    }

    pub(super) fn consumer_heartbeat(
        &mut self,
        turn: &mut Turn,
        ask: &ConsumerHeartbeat,
    ) -> Result<ConsumerBeat, Refusal> {
        let view = (self.settings.view)();
        let rules = Rules::of(self.config(), &view.image, &ask.group);
        consumer::check(ask, &rules)?;
        if matches!(ask.epoch, LEFT | AWAY) {
            return self.consumer_leave(turn, ask);
        }
        let known = self.known.get(&ask.group).copied().unwrap_or_default();
        let new_id = || Arc::from((self.settings.uuid)().to_string());
        let cx = Context {
            now: turn.now,
            view: &view,
            rules: &rules,
            known,
            new_id: &new_id,
        };
        let draft = self.open(ask, &view)?;
        let step = consumer::heartbeat(draft, ask, &cx)?;
        self.check_size(&step.records)?;
        Ok(self.take_step(turn, ask, step, &view, &rules))
    }

    /// Refuses what the topic would not take; nothing of it may be replayed.
    pub(super) fn check_size(&self, records: &[GroupRecord]) -> Result<(), Refusal> {
        match records.iter().all(|record| self.fits(record)) {
            true => Ok(()),
            false => {
                let words = "a record of the group would be larger than its topic allows";
                Err(Refusal::new(ErrorCode::UnknownServerError, words))
            }
        }
    }

    pub(super) fn fits(&self, record: &GroupRecord) -> bool {
        let value = record.value().map_or(0, |value| value.len());
        record.key().len() + value <= self.settings.record_bytes_max
    }

    /// The group that a heartbeat is for: as it is, new, or made of a classic one.
    fn open(&self, ask: &ConsumerHeartbeat, view: &View) -> Result<Draft<'_>, Refusal> {
        let joins = ask.epoch == 0;
        let words = match self.groups.get(&ask.group) {
            Some(Group::Consumer(group)) => return Ok(Draft::of(group)),
            None if joins => return Ok(Draft::new(ask.group.clone(), Vec::new())),
            Some(Group::Classic(group)) if joins => {
                return migrate::upgrade(group, self.config(), &view.image);
            }
            Some(Group::Classic(_)) => format!("Group {} is not a consumer group.", ask.group),
            None => format!("Consumer group {} not found.", ask.group),
        };
        Err(Refusal::new(ErrorCode::GroupIdNotFound, words))
    }

    fn take_step(
        &mut self,
        turn: &mut Turn,
        ask: &ConsumerHeartbeat,
        step: Step,
        view: &View,
        rules: &Rules,
    ) -> ConsumerBeat {
        if matches!(self.groups.get(&ask.group), Some(Group::Classic(_))) {
            self.dissolve_classic(turn, &ask.group);
            for member in &step.taken_over {
                self.expect_member(turn, &ask.group, member, rules.session_timeout_ms);
            }
        }
        let member = step.beat.member.clone();
        self.note_known(turn, &ask.group, view, step.look_up);
        let session = Deadline::Session(ask.group.clone(), member.clone());
        self.timers
            .set(session, turn.after(rules.session_timeout_ms));
        // Who came over from the classic protocol joins and syncs no more.
        self.timers
            .cancel(&Deadline::MemberJoin(ask.group.clone(), member.clone()));
        self.timers
            .cancel(&Deadline::MemberSync(ask.group.clone(), member.clone()));
        let revocation = Deadline::Revocation(ask.group.clone(), member);
        match step.moved_to {
            Some(MemberState::UnrevokedPartitions) => {
                let until = turn.after(step.rebalance_timeout_ms);
                self.timers.set(revocation, until);
            }
            Some(_) => self.timers.cancel(&revocation),
            None => {}
        }
        for record in step.records {
            turn.write(record);
        }
        step.beat
    }

    /// Remembers which metadata the group was compared with, and has patterns looked up.
    pub(super) fn note_known(
        &mut self,
        turn: &mut Turn,
        group: &Arc<str>,
        view: &View,
        look_up: Option<Vec<Arc<str>>>,
    ) {
        let known = self.known.entry(group.clone()).or_default();
        known.version = Some(view.version);
        if let Some(patterns) = look_up {
            known.is_resolving = true;
            turn.outcome.effects.push(Effect::LookUp {
                group: group.clone(),
                patterns,
                view: view.clone(),
            });
        }
    }

    fn consumer_leave(
        &mut self,
        turn: &mut Turn,
        ask: &ConsumerHeartbeat,
    ) -> Result<ConsumerBeat, Refusal> {
        let group = self.known_consumer(&ask.group)?;
        let member = match &ask.instance {
            None => group.members.get(&ask.member).cloned(),
            Some(instance) => {
                let holder = group.instance(instance).cloned();
                Some(consumer::held_by(holder, instance, &ask.member)?)
            }
        };
        let member = member.ok_or_else(|| consumer::not_a_member(group, &ask.member))?;
        if ask.epoch == AWAY {
            let mut away = Member::clone(&member);
            away.epoch = AWAY;
            away.revoking.clear();
            turn.write(away.assignment_record(&ask.group));
            self.timers
                .cancel(&Deadline::Revocation(ask.group.clone(), member.id.clone()));
        } else {
            self.fence(turn, &ask.group, std::slice::from_ref(&member.id));
        }
        Ok(ConsumerBeat {
            member: member.id.clone(),
            epoch: ask.epoch,
            interval_ms: 0,
            assignment: None,
        })
    }

    /// Removes members; the group goes back to the classic protocol when only that is left.
    pub(super) fn fence(&mut self, turn: &mut Turn, id: &Arc<str>, members: &[Arc<str>]) {
        let Some(group) = self.consumer(id) else {
            return;
        };
        let known = members.iter().filter(|id| group.members.contains_key(*id));
        let known: Vec<Arc<str>> = known.cloned().collect();
        if known.is_empty() {
            return;
        }
        let goes_back = migrate::may_downgrade(group, &known, None, self.config());
        for member in &known {
            self.forget_deadlines(id, member);
        }
        if goes_back && self.downgrade(turn, id, &known, None, true) {
            return;
        }
        let view = (self.settings.view)();
        let Some(group) = self.consumer(id) else {
            return;
        };
        let mut draft = Draft::of(group);
        let mut patterns = Vec::new();
        for member in &known {
            patterns.extend(group.members[member].pattern().cloned());
            draft.remove(member);
        }
        patterns.sort_unstable();
        patterns.dedup();
        for pattern in &patterns {
            if draft.group.subscribers_of(pattern) == 0 {
                draft.write(draft.group.regex_record(pattern, None));
            }
        }
        let hash = subscription::group_hash(&draft.group, &view.image);
        draft.bump(hash);
        for record in draft.records {
            turn.write(record);
        }
    }

    fn forget_deadlines(&mut self, group: &Arc<str>, member: &Arc<str>) {
        let of = |make: fn(Arc<str>, Arc<str>) -> Deadline| make(group.clone(), member.clone());
        for deadline in [
            of(Deadline::Session),
            of(Deadline::Revocation),
            of(Deadline::MemberJoin),
            of(Deadline::MemberSync),
        ] {
            self.timers.cancel(&deadline);
        }
    }

    /// Whether a member has to go since this deadline has come.
    pub(super) fn is_overdue(&self, deadline: &Deadline) -> bool {
        let (Deadline::Session(group, member)
        | Deadline::Revocation(group, member)
        | Deadline::MemberJoin(group, member)
        | Deadline::MemberSync(group, member)) = deadline
        else {
            return false;
        };
        let member = self
            .consumer(group)
            .and_then(|group| group.members.get(member));
        let is_revocation = matches!(deadline, Deadline::Revocation(..));
        member.is_some_and(|member| !is_revocation || revokes(member))
    }

    /// Gives everybody who was loaded a whole session to be heard of.
    pub(super) fn begin_consumers(&mut self, turn: &Turn) {
        let view = (self.settings.view)();
        let mut loaded = Vec::new();
        for (id, group) in &self.groups {
            if let Group::Consumer(group) = group {
                let rules = Rules::of(self.config(), &view.image, id);
                let members = group.members.values();
                loaded.extend(members.map(|m| (id.clone(), m.clone(), rules.session_timeout_ms)));
            }
        }
        for (group, member, session_ms) in loaded {
            self.expect_member(turn, &group, &member, session_ms);
        }
    }

    /// Sets the deadlines of a member that did nothing just now.
    pub(super) fn expect_member(
        &mut self,
        turn: &Turn,
        group: &Arc<str>,
        member: &Member,
        session_ms: i32,
    ) {
        let classic = member.classic.as_ref();
        let session_ms = classic.map_or(session_ms, |classic| classic.session_timeout_ms);
        let session = Deadline::Session(group.clone(), member.id.clone());
        self.timers.set(session, turn.after(session_ms));
        if revokes(member) && classic.is_none() {
            let revocation = Deadline::Revocation(group.clone(), member.id.clone());
            let until = turn.after(member.rebalance_timeout_ms);
            self.timers.set(revocation, until);
        }
    }

    /// Takes in a record of a consumer group. Such a record makes the group; one that ends
    /// something has no meaning where the group is gone, or is of another kind by now.
    pub(super) fn replay_consumer(&mut self, record: &GroupRecord) {
        let id = record.group();
        if matches!(record, GroupRecord::ConsumerGroupMetadata(_, None)) {
            if self.consumer(id).is_some() {
                self.groups.remove(id);
                self.known.remove(id);
            }
            return;
        }
        if !matches!(self.groups.get(id), Some(Group::Consumer(_))) {
            if record.is_tombstone() {
                return;
            }
            let group = ConsumerGroup::new(id.clone());
            self.groups
                .insert(id.clone(), Group::Consumer(Box::new(group)));
        }
        if let Some(Group::Consumer(group)) = self.groups.get_mut(id) {
            group.replay(record);
        }
    }

    pub(super) fn take_resolved(&mut self, turn: &mut Turn, ask: TakeResolved) {
        let view = (self.settings.view)();
        let rules = Rules::of(self.config(), &view.image, &ask.group);
        let known = self.known.entry(ask.group.clone()).or_default();
        known.is_resolving = false;
        known.resolved = Some((ask.version, turn.now.wall_ms));
        let known = *known;
        let Some(group) = self.consumer(&ask.group) else {
            self.known.remove(&ask.group);
            return;
        };
        let cx = Context {
            now: turn.now,
            view: &view,
            rules: &rules,
            known,
            new_id: &|| Arc::from(""),
        };
        let draft = consumer::take_resolved(group, ask.resolved, ask.version, &cx);
        if let Err(refusal) = self.check_size(&draft.records) {
            tracing::warn!(group = %ask.group, %refusal, "topics of patterns are not taken");
            return;
        }
        for record in draft.records {
            turn.write(record);
        }
    }

    pub(super) fn describe_consumers(
        &self,
        ask: &DescribeConsumerGroups,
    ) -> Vec<Result<DescribedConsumerGroup, Refusal>> {
        let view = (self.settings.view)();
        let describe = |id: &Arc<str>| {
            let group = self.known_consumer(id)?;
            let rules = Rules::of(self.config(), &view.image, id);
            Ok(DescribedConsumerGroup {
                state: group.state(),
                epoch: group.epoch,
                assignment_epoch: group.target_epoch,
                assignor: rules.assignor_of(group),
                members: group
                    .members
                    .values()
                    .map(|m| described(group, m))
                    .collect(),
            })
        };
        ask.groups.iter().map(describe).collect()
    }
}

/// Whether a member has partitions to give up, and is there to do it.
fn revokes(member: &Member) -> bool {
    member.state == MemberState::UnrevokedPartitions && member.epoch != AWAY
}

fn described(group: &ConsumerGroup, member: &Member) -> DescribedConsumer {
    DescribedConsumer {
        member: member.id.clone(),
        instance: member.instance.clone(),
        rack: member.rack.clone(),
        epoch: member.epoch,
        client: member.client.clone(),
        topics: member.topics.iter().cloned().collect(),
        regex: member.regex.clone(),
        assigned: member.assigned.clone(),
        target: (*group.target(&member.id)).clone(),
        is_classic: member.is_classic(),
    }
}
