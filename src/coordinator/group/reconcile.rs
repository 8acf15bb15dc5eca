//! From what a member owns to what it shall own, step by step
//! (org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder).
//!
//! ```text
//!            has partitions to give up          gave them up
//!   Stable ────────────────────────────> Unrevoked ──────────┐
//!     │  ^                                                   │
//!     │  └──────────── got all that it shall own ────────────┤
//!     └─ a partition is not free ─> Unreleased <─────────────┘
//! ```
//!
//! A member keeps its epoch until it has given up what the next one does not grant; so no partition
//! has two owners.

use std::collections::BTreeSet;

use super::assign::Assignment;
use super::consumer_state::{Member, MemberState};
use crate::base::TopicId;
use crate::protocol::error::{ErrorCode, Refusal};

/// Partitions as a member lists them.
pub(super) type Owned = [(TopicId, Vec<i32>)];

/// What a member is to be reconciled with.
pub(super) struct Target<'a, F> {
    pub(super) epoch: i32,
    pub(super) assignment: &'a Assignment,
    /// Whether a partition has an owner.
    pub(super) is_owned: F,
    /// What the member says it owns, if it says.
    pub(super) reported: Option<&'a Owned>,
}

/// The member's next step; the member as it is when it cannot take one.
pub(super) fn next<F>(member: &Member, target: &Target<'_, F>) -> Result<Member, Refusal>
where
    F: Fn(TopicId, i32) -> bool,
{
    match member.state {
        MemberState::Stable if member.epoch == target.epoch => Ok(member.clone()),
        MemberState::Stable | MemberState::UnreleasedPartitions => {
            Ok(step(member, member.epoch, target))
        }
        MemberState::UnrevokedPartitions if holds(target.reported, &member.revoking) => {
            Ok(member.clone())
        }
        MemberState::UnrevokedPartitions => {
            Ok(step(member, member.epoch.saturating_add(1), target))
        }
        // It owns nothing for certain only when it says so.
        MemberState::Unknown if target.reported.is_none_or(|owned| !owned.is_empty()) => {
            let words = "The consumer group member is in a unknown state. The member must abandon \
                         all its partitions and rejoin.";
            Err(Refusal::new(ErrorCode::FencedMemberEpoch, words))
        }
        MemberState::Unknown => Ok(step(member, target.epoch, target)),
    }
}

/// Whether a member still has any of these; one that does not say has them all.
fn holds(reported: Option<&Owned>, partitions: &Assignment) -> bool {
    let Some(reported) = reported else {
        return true;
    };
    reported.iter().any(|(topic, owned)| {
        let given_up = partitions.get(topic);
        given_up.is_some_and(|given_up| owned.iter().any(|p| given_up.contains(p)))
    })
}

fn step<F>(member: &Member, epoch: i32, target: &Target<'_, F>) -> Member
where
    F: Fn(TopicId, i32) -> bool,
{
    let mut kept = Assignment::new();
    let mut revoking = Assignment::new();
    for (topic, partitions) in &member.assigned {
        let wanted = target.assignment.get(topic);
        let (stay, go): (BTreeSet<i32>, BTreeSet<i32>) = partitions
            .iter()
            .partition(|p| wanted.is_some_and(|wanted| wanted.contains(p)));
        put(&mut kept, *topic, stay);
        put(&mut revoking, *topic, go);
    }
    let mut next = member.clone();
    if !revoking.is_empty() && holds(target.reported, &revoking) {
        next.state = MemberState::UnrevokedPartitions;
        next.enter(epoch);
        next.assigned = kept;
        next.revoking = revoking;
        return next;
    }
    let mut waits = false;
    for (topic, partitions) in target.assignment {
        let owned = member.assigned.get(topic);
        let new = partitions
            .iter()
            .filter(|p| owned.is_none_or(|owned| !owned.contains(p)));
        let (taken, free): (BTreeSet<i32>, BTreeSet<i32>) =
            new.partition(|p| (target.is_owned)(*topic, **p));
        waits |= !taken.is_empty();
        if !free.is_empty() {
            kept.entry(*topic).or_default().extend(free);
        }
    }
    next.state = match waits {
        true => MemberState::UnreleasedPartitions,
        false => MemberState::Stable,
    };
    next.enter(target.epoch);
    next.assigned = kept;
    next.revoking = Assignment::new();
    next
}

fn put(assignment: &mut Assignment, topic: TopicId, partitions: BTreeSet<i32>) {
    if !partitions.is_empty() {
        assignment.insert(topic, partitions);
    }
}
