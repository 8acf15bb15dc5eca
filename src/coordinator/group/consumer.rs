//! What a heartbeat of the consumer protocol comes to (KIP-848; the modern half of
//! org.apache.kafka.coordinator.group.GroupMetadataManager).
//!
//! One heartbeat goes through these steps, each of which sees what the ones before it write:
//! the member, as it joins or changes; the group's epoch, raised when members, subscriptions or
//! topics changed; what everybody shall own, when the epoch went ahead of it; and what this member
//! owns, one step nearer to that.
//!
//! All here is a function of the group, the cluster's metadata and the time; `members` carries it
//! out.

use std::borrow::Cow;
use std::sync::Arc;

use super::View;
use super::assign::Assignor;
use super::consumer_ask::{ConsumerBeat, ConsumerHeartbeat};
use super::consumer_state::{AWAY, ConsumerGroup, Known, Member, MemberState};
use super::re2::Pattern;
use super::reconcile::{self, Owned, Target};
use super::records::{GroupRecord, KEY_TEXT_MAX};
use super::subscription;
use crate::config::BrokerConfig;
use crate::machine::Now;
use crate::metadata::image::Image;
use crate::metadata::image::configs::{Resource, ResourceType};
use crate::protocol::error::{ErrorCode, Refusal};

/// Patterns that are known are not looked up again before so long.
const LOOK_UP_AGAIN_MS: i64 = 10_000;

/// And new ones not before so long after the last, however many a client makes up.
const LOOK_UP_NEW_MS: i64 = 1000;

/// What holds for a group: the broker's options, and those set on the group over them.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) session_timeout_ms: i32,
    pub(super) interval_ms: i32,
    pub(super) size_max: usize,
    /// The names that members may ask for, the one for those who do not care first.
    pub(super) assignors: Vec<(Arc<str>, Assignor)>,
    pub(super) regex_refresh_ms: i64,
}

impl Rules {
    pub(super) fn of(config: &BrokerConfig, image: &Image, group: &str) -> Self {
        let resource = Resource::new(ResourceType::Group, group);
        let set = |name, broker| {
            let own = image.configs.value(&resource, name);
            own.and_then(|value| value.parse().ok()).unwrap_or(broker)
        };
        let assignors = config.group_consumer_assignors.iter();
        Self {
            session_timeout_ms: set(
                "consumer.session.timeout.ms",
                config.group_consumer_session_timeout_ms,
            ),
            interval_ms: set(
                "consumer.heartbeat.interval.ms",
                config.group_consumer_heartbeat_interval_ms,
            ),
            size_max: usize::try_from(config.group_consumer_max_size).unwrap_or(usize::MAX),
            assignors: assignors.filter_map(|name| configured(name)).collect(),
            regex_refresh_ms: config.group_consumer_regex_refresh_interval_ms.into(),
        }
    }

    fn assignor(&self, name: &str) -> Option<Assignor> {
        let known = self.assignors.iter().find(|(known, _)| **known == *name);
        known.map(|(_, assignor)| *assignor)
    }

    /// The name of the assignor that a group uses.
    pub(super) fn assignor_of(&self, group: &ConsumerGroup) -> Arc<str> {
        let preferred = group.preferred_assignor();
        let default = || self.assignors.first().map(|(name, _)| name.clone());
        let name = preferred.cloned().or_else(default);
        name.unwrap_or_else(|| Arc::from("uniform"))
    }
}

/// An assignor by its name, or by its class in Kafka, as options may have it.
fn configured(name: &str) -> Option<(Arc<str>, Assignor)> {
    let name = match name {
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor" => "uniform",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor" => "range",
        name => name,
    };
    Some((name.into(), Assignor::named(name)?))
}

/// What a decision may know beside the group.
pub(super) struct Context<'a> {
    pub(super) now: Now,
    pub(super) view: &'a View,
    pub(super) rules: &'a Rules,
    pub(super) known: Known,
    /// Makes the id of a member that brings none.
    pub(super) new_id: &'a dyn Fn() -> Arc<str>,
}

/// A group and the records about it so far, which it has taken in.
pub(super) struct Draft<'a> {
    pub(super) group: Cow<'a, ConsumerGroup>,
    pub(super) records: Vec<GroupRecord>,
    /// It was not a consumer group before.
    is_new: bool,
}

impl<'a> Draft<'a> {
    /// Nothing is written yet.
    pub(super) fn of(group: &'a ConsumerGroup) -> Self {
        Self {
            group: Cow::Borrowed(group),
            records: Vec::new(),
            is_new: false,
        }
    }

    /// A group that is new; these records were written before it.
    pub(super) fn new(id: Arc<str>, records: Vec<GroupRecord>) -> Self {
        Self {
            group: Cow::Owned(ConsumerGroup::new(id)),
            records,
            is_new: true,
        }
    }

    /// Writes a record and takes it in.
    pub(super) fn write(&mut self, record: GroupRecord) {
        self.group.to_mut().replay(&record);
        self.records.push(record);
    }

    /// Raises the group's epoch.
    pub(super) fn bump(&mut self, metadata_hash: i64) {
        let epoch = self.group.epoch.saturating_add(1);
        self.write(self.group.epoch_record(epoch, metadata_hash));
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, member: &Arc<str>) {
        for record in self.group.member_tombstones(member) {
            self.write(record);
        }
    }
}

/// What a heartbeat comes to.
pub(super) struct Step {
    pub(super) records: Vec<GroupRecord>,
    /// All members of a group that was none of this kind before.
    pub(super) taken_over: Vec<Arc<Member>>,
    pub(super) beat: ConsumerBeat,
    /// Whether the member was written anew, and where it stands then.
    pub(super) moved_to: Option<MemberState>,
    pub(super) rebalance_timeout_ms: i32,
    /// Patterns to look up.
    pub(super) look_up: Option<Vec<Arc<str>>>,
}

fn refuse<T>(code: ErrorCode, words: impl Into<Cow<'static, str>>) -> Result<T, Refusal> {
    Err(Refusal::new(code, words))
}

/// Refuses what no group would take, whatever its state.
pub(super) fn check(ask: &ConsumerHeartbeat, rules: &Rules) -> Result<(), Refusal> {
    let is_blank = |text: &Arc<str>| text.trim().is_empty();
    let invalid = |words: &'static str| refuse(ErrorCode::InvalidRequest, words);
    let must_have_id = ask.must_have_id || ask.epoch > 0 || ask.epoch == -1;
    if must_have_id && is_blank(&ask.member) {
        return invalid("MemberId can't be empty.");
    }
    if is_blank(&ask.group) {
        return invalid("GroupId can't be empty.");
    }
    if ask.instance.as_ref().is_some_and(is_blank) {
        return invalid("InstanceId can't be empty.");
    }
    if ask.rack.as_ref().is_some_and(is_blank) {
        return invalid("RackId can't be empty.");
    }
    let keys = [
        Some(&ask.group),
        Some(&ask.member),
        ask.instance.as_ref(),
        ask.regex.as_ref(),
    ];
    if keys.iter().flatten().any(|text| text.len() > KEY_TEXT_MAX) {
        return invalid("GroupId, MemberId, InstanceId or SubscribedTopicRegex is too long.");
    }
    match ask.epoch {
        0 => check_join(ask)?,
        AWAY if ask.instance.is_none() => return invalid("InstanceId can't be null."),
        ..AWAY => return invalid("MemberEpoch is invalid."),
        _ => {}
    }
    match &ask.assignor {
        Some(name) if rules.assignor(name).is_none() => {
            let known: Vec<_> = rules.assignors.iter().map(|(name, _)| &**name).collect();
            let words = format!(
                "ServerAssignor {name} is not supported. Supported assignors: {}.",
                known.join(", ")
            );
            refuse(ErrorCode::UnsupportedAssignor, words)
        }
        _ => Ok(()),
    }
}

fn check_join(ask: &ConsumerHeartbeat) -> Result<(), Refusal> {
    let words = if ask.rebalance_timeout_ms.is_none() {
        "RebalanceTimeoutMs must be provided in first request."
    } else if ask.owned.as_ref().is_none_or(|owned| !owned.is_empty()) {
        "TopicPartitions must be empty when (re-)joining."
    } else if ask.topics.is_none() && ask.regex.is_none() {
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    } else {
        return Ok(());
    };
    refuse(ErrorCode::InvalidRequest, words)
}

/// Takes a heartbeat that is not a farewell.
pub(super) fn heartbeat(
    mut draft: Draft<'_>,
    ask: &ConsumerHeartbeat,
    cx: &Context<'_>,
) -> Result<Step, Refusal> {
    refuse_if_full(&draft.group, &ask.member, cx.rules)?;
    let id = match ask.member.is_empty() {
        true => (cx.new_id)(),
        false => ask.member.clone(),
    };
    let entry = Entry {
        member: &id,
        instance: ask.instance.as_ref(),
        joins: ask.epoch == 0,
        is_classic: false,
    };
    let member = find(&mut draft, &entry, |member| check_epoch(member, ask))?;
    let updated = updated(&member, ask);
    let look_up = subscribe(&mut draft, &member, &updated, cx)?;
    let owned = ask.owned.as_deref();
    let settled = settle(&mut draft, &updated, owned, cx)?;
    let moved_to = (settled != updated).then_some(settled.state);
    let is_full = ask.rebalance_timeout_ms.is_some()
        && (ask.topics.is_some() || ask.regex.is_some())
        && ask.owned.is_some();
    let tells = ask.epoch == 0 || is_full || settled.assigned != member.assigned;
    let beat = ConsumerBeat {
        member: id,
        epoch: settled.epoch,
        interval_ms: cx.rules.interval_ms,
        assignment: tells.then(|| settled.assigned.clone()),
    };
    let taken_over = match draft.is_new {
        true => draft.group.members.values().cloned().collect(),
        false => Vec::new(),
    };
    Ok(Step {
        records: draft.records,
        taken_over,
        beat,
        moved_to,
        rebalance_timeout_ms: settled.rebalance_timeout_ms,
        look_up,
    })
}

/// Refuses a new member where there is no room.
pub(super) fn refuse_if_full(
    group: &ConsumerGroup,
    member: &str,
    rules: &Rules,
) -> Result<(), Refusal> {
    if group.members.len() < rules.size_max || group.members.contains_key(member) {
        return Ok(());
    }
    let words = format!(
        "The consumer group has reached its maximum capacity of {} members.",
        rules.size_max
    );
    refuse(ErrorCode::GroupMaxSizeReached, words)
}

/// Who speaks, and how.
pub(super) struct Entry<'a> {
    pub(super) member: &'a Arc<str>,
    pub(super) instance: Option<&'a Arc<str>>,
    /// It may be new.
    pub(super) joins: bool,
    pub(super) is_classic: bool,
}

/// The member that speaks: a known one that passes `check`, or a new one. A static member that
/// comes back under another id is given the place of the old one.
pub(super) fn find(
    draft: &mut Draft<'_>,
    entry: &Entry<'_>,
    check: impl Fn(&Member) -> Result<(), Refusal>,
) -> Result<Member, Refusal> {
    let Some(instance) = entry.instance else {
        let known = draft.group.members.get(entry.member);
        let member = match known {
            Some(member) => Member::clone(member),
            None if entry.joins => Member::new(entry.member.clone()),
            None => return Err(not_a_member(&draft.group, entry.member)),
        };
        check(&member)?;
        return Ok(member);
    };
    let holder = draft.group.instance(instance).cloned();
    if !entry.joins {
        let holder = held_by(holder, instance, entry.member)?;
        check(&holder)?;
        return Ok(Member::clone(&holder));
    }
    let Some(holder) = holder else {
        let known = draft.group.members.get(entry.member);
        let member = known.map(|member| Member::clone(member));
        return Ok(member.unwrap_or_else(|| Member::new(entry.member.clone())));
    };
    let is_released = entry.is_classic || holder.is_classic() || holder.epoch == AWAY;
    if !is_released {
        let words = format!(
            "Static member {} with instance id {instance} cannot join the group because the \
             instance id is owned by {} member.",
            entry.member, holder.id
        );
        return refuse(ErrorCode::UnreleasedInstanceId, words);
    }
    Ok(replace(draft, &holder, entry.member))
}

/// The member that an instance is, who must be the one that speaks.
pub(super) fn held_by(
    holder: Option<Arc<Member>>,
    instance: &str,
    member: &str,
) -> Result<Arc<Member>, Refusal> {
    let Some(holder) = holder else {
        let words = format!("Instance id {instance} is unknown.");
        return refuse(ErrorCode::UnknownMemberId, words);
    };
    if *holder.id != *member {
        let words = format!(
            "Static member {member} with instance id {instance} was fenced by member {}.",
            holder.id
        );
        return refuse(ErrorCode::FencedInstanceId, words);
    }
    Ok(holder)
}

/// What is said to who is no member.
pub(super) fn not_a_member(group: &ConsumerGroup, member: &str) -> Refusal {
    let words = format!("Member {member} is not a member of group {}.", group.id);
    Refusal::new(ErrorCode::UnknownMemberId, words)
}

fn replace(draft: &mut Draft<'_>, old: &Member, id: &Arc<str>) -> Member {
    let new = Member {
        id: id.clone(),
        epoch: 0,
        previous_epoch: 0,
        ..old.clone()
    };
    let target = draft.group.target(&old.id);
    draft.remove(&old.id);
    let group = draft.group.id.clone();
    draft.write(new.metadata_record(&group));
    draft.write(draft.group.target_record(id, &target));
    draft.write(new.assignment_record(&group));
    new
}

/// Refuses a member that is not in the epoch that it says. One that missed the last answer is in
/// the epoch before, and owns nothing that it should not.
fn check_epoch(member: &Member, ask: &ConsumerHeartbeat) -> Result<(), Refusal> {
    let compared = match ask.epoch.cmp(&member.epoch) {
        _ if ask.epoch == 0 => return Ok(()),
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Greater => "greater",
        std::cmp::Ordering::Less => "smaller",
    };
    let missed_one = ask.epoch < member.epoch && ask.epoch == member.previous_epoch;
    if missed_one && owns_no_other(ask.owned.as_deref(), member) {
        return Ok(());
    }
    let words = format!(
        "The consumer group member has a {compared} member epoch ({}) than the one known by the \
         group coordinator ({}). The member must abandon all its partitions and rejoin.",
        ask.epoch, member.epoch
    );
    refuse(ErrorCode::FencedMemberEpoch, words)
}

fn owns_no_other(owned: Option<&Owned>, member: &Member) -> bool {
    owned.is_some_and(|owned| {
        owned.iter().all(|(topic, partitions)| {
            let assigned = member.assigned.get(topic);
            assigned.is_some_and(|assigned| partitions.iter().all(|p| assigned.contains(p)))
        })
    })
}

/// The member with what it says of itself.
fn updated(member: &Member, ask: &ConsumerHeartbeat) -> Member {
    let mut updated = member.clone();
    let or = |new: &Option<Arc<str>>, old: &Option<Arc<str>>| new.clone().or_else(|| old.clone());
    updated.instance = or(&ask.instance, &member.instance);
    updated.rack = or(&ask.rack, &member.rack);
    updated.regex = or(&ask.regex, &member.regex);
    updated.assignor = or(&ask.assignor, &member.assignor);
    if let Some(ms) = ask.rebalance_timeout_ms {
        updated.rebalance_timeout_ms = ms;
    }
    if let Some(topics) = &ask.topics {
        updated.topics = topics.iter().cloned().collect();
    }
    updated.client = ask.client.clone();
    updated.classic = None;
    updated
}

/// Writes what changed of a member's subscription, and raises the group's epoch when that or the
/// topics themselves ask for it. Gives the patterns to look up, if any.
pub(super) fn subscribe(
    draft: &mut Draft<'_>,
    member: &Member,
    updated: &Member,
    cx: &Context<'_>,
) -> Result<Option<Vec<Arc<str>>>, Refusal> {
    // A group that is new leaves epoch 0.
    let mut bumps = draft.group.epoch == 0;
    let (before, after) = (member.pattern(), updated.pattern());
    let mut unused = None;
    if before != after {
        unused = before.filter(|pattern| draft.group.subscribers_of(pattern) == 1);
        if let Some(pattern) = after {
            if draft.group.subscribers_of(pattern) == 0 {
                check_pattern(pattern)?;
            }
            bumps |= draft.group.regexes.contains_key(pattern);
        }
    }
    if updated != member {
        let group = draft.group.id.clone();
        draft.write(updated.metadata_record(&group));
        bumps |= updated.topics != member.topics;
    }
    if let Some(pattern) = unused {
        draft.write(draft.group.regex_record(pattern, None));
    }
    refresh(draft, bumps, cx);
    Ok(patterns_to_look_up(&draft.group, cx))
}

fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    Pattern::compile(pattern).map(drop).or_else(|invalid| {
        let words = format!(
            "SubscribedTopicRegex `{pattern}` is not a valid regular expression: {invalid}."
        );
        refuse(ErrorCode::InvalidRegularExpression, words)
    })
}

/// Raises the group's epoch, if it is to be or if its topics are not what they were.
fn refresh(draft: &mut Draft<'_>, bumps: bool, cx: &Context<'_>) {
    if !bumps && cx.known.version == Some(cx.view.version) {
        return;
    }
    let hash = subscription::group_hash(&draft.group, &cx.view.image);
    if bumps || hash != draft.group.metadata_hash {
        draft.bump(hash);
    }
    if draft.group.has_partition_metadata {
        // What 4.0 kept there is in the hash now.
        let key = draft.group.key();
        draft.write(GroupRecord::ConsumerGroupPartitionMetadata(key, None));
    }
}

/// Patterns that nobody looked up yet; else all of them, when the cluster changed a while ago or
/// they are old.
fn patterns_to_look_up(group: &ConsumerGroup, cx: &Context<'_>) -> Option<Vec<Arc<str>>> {
    if cx.known.is_resolving {
        return None;
    }
    let all = || group.patterns().cloned();
    let new: Vec<_> = all().filter(|p| !group.regexes.contains_key(p)).collect();
    if !new.is_empty() {
        let last = cx.known.resolved.map(|(_, at_ms)| at_ms);
        let is_soon = |at_ms: i64| cx.now.wall_ms.saturating_sub(at_ms) < LOOK_UP_NEW_MS;
        return (!last.is_some_and(is_soon)).then_some(new);
    }
    let written = group.regexes.values();
    let (version, at_ms) = written
        .map(|resolved| (resolved.version, resolved.timestamp_ms))
        .chain(cx.known.resolved)
        .max()?;
    let age_ms = cx.now.wall_ms.saturating_sub(at_ms);
    let is_stale = version < cx.view.version && age_ms > LOOK_UP_AGAIN_MS;
    (is_stale || age_ms > cx.rules.regex_refresh_ms).then(|| all().collect())
}

/// Computes what everybody shall own if the group's epoch went ahead of it, and takes the member
/// one step towards it.
pub(super) fn settle(
    draft: &mut Draft<'_>,
    member: &Member,
    owned: Option<&Owned>,
    cx: &Context<'_>,
) -> Result<Member, Refusal> {
    if draft.group.epoch > draft.group.target_epoch {
        assign(draft, cx);
    }
    reconcile(draft, member, owned)
}

fn assign(draft: &mut Draft<'_>, cx: &Context<'_>) {
    let spec = subscription::spec(&draft.group, &cx.view.image);
    let name = cx.rules.assignor_of(&draft.group);
    // Options may have changed since the member named it.
    let assignor = cx.rules.assignor(&name).unwrap_or(Assignor::Uniform);
    let targets = assignor.assign(&spec);
    for (member, target) in spec.members.iter().zip(targets) {
        if draft.group.targets.get(&member.id) != Some(&target) {
            draft.write(draft.group.target_record(&member.id, &target));
        }
    }
    draft.write(draft.group.target_epoch_record(draft.group.epoch));
}

/// Takes the member one step towards what it shall own.
fn reconcile(
    draft: &mut Draft<'_>,
    member: &Member,
    owned: Option<&Owned>,
) -> Result<Member, Refusal> {
    if member.is_reconciled_to(draft.group.target_epoch) {
        return Ok(member.clone());
    }
    let group = &draft.group;
    let target = Target {
        epoch: group.target_epoch,
        assignment: &group.target(&member.id),
        is_owned: |topic, partition| group.owner(topic, partition).is_some(),
        reported: owned,
    };
    let next = reconcile::next(member, &target)?;
    if next != *member {
        // The last record of a heartbeat: the draft need not take it in, and a group of which
        // nothing else changes is not copied.
        let record = next.assignment_record(&draft.group.id);
        draft.records.push(record);
    }
    Ok(next)
}

/// Takes in what patterns stand for.
pub(super) fn take_resolved<'a>(
    group: &'a ConsumerGroup,
    resolved: Vec<(Arc<str>, std::collections::BTreeSet<Arc<str>>)>,
    version: i64,
    cx: &Context<'_>,
) -> Draft<'a> {
    let mut draft = Draft::of(group);
    let mut changed = false;
    for (pattern, topics) in resolved {
        let before = draft.group.regexes.get(&pattern);
        let is_same = before.is_some_and(|before| before.topics == topics);
        // Nobody may want it any more.
        if is_same || draft.group.subscribers_of(&pattern) == 0 {
            continue;
        }
        changed |= before.map_or(!topics.is_empty(), |before| before.topics != topics);
        let resolved = super::consumer_state::Resolved {
            topics,
            version,
            timestamp_ms: cx.now.wall_ms,
        };
        draft.write(draft.group.regex_record(&pattern, Some(resolved)));
    }
    let hash = subscription::group_hash(&draft.group, &cx.view.image);
    if changed || hash != draft.group.metadata_hash {
        draft.bump(hash);
    }
    draft
}
