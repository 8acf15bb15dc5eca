//! Groups that change their protocol while they live (KIP-848): a classic group of consumers becomes
//! a consumer group with the first member that speaks the new protocol, and goes back when the
//! last one leaves.
//!
//! In between there are members of both: see `mixed`.

use std::sync::Arc;

use bytes::Bytes;

use super::ask::{Answer, Joined};
use super::assign::Assignment;
use super::classic_state::{self, ClassicGroup, State};
use super::consumer::Draft;
use super::consumer_state::{ConsumerGroup, Member};
use super::group::Group;
use super::records::{ClassicMemberMetadata, ClassicProtocol, GroupRecord};
use super::subscription;
use super::{Deadline, GroupMachine, Turn};
use crate::config::BrokerConfig;
use crate::machine::Now;
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

/// What a consumer group keeps of a member of the classic protocol.
pub(super) fn classic_metadata(
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

/// Partitions that a member of the classic protocol names, as far as they are known.
pub(super) fn by_id(named: &[NamedPartitions], image: &Image) -> Assignment {
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
pub(super) fn by_name(assignment: &Assignment, version: i16, image: &Image) -> Bytes {
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
