//! What kinds of group there are, and every question whose answer depends on the kind.

use std::sync::Arc;

use super::classic_state::{ClassicGroup, State};
use super::consumer_state::ConsumerGroup;
use super::records::{GroupKey, GroupRecord, OffsetCommitValue};
use crate::protocol::error::ErrorCode;
use crate::protocol::subscription;

/// A group of any kind.
#[derive(Debug)]
pub(super) enum Group {
    /// Its members agree among themselves; the coordinator keeps the time.
    Classic(Box<ClassicGroup>),
    /// The coordinator assigns; each member goes towards that at its own pace (KIP-848).
    Consumer(Box<ConsumerGroup>),
}

/// Who commits, and from where in its group's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committer<'a> {
    pub(super) member: &'a str,
    pub(super) instance: Option<&'a str>,
    pub(super) generation: i32,
    pub(super) is_transactional: bool,
    /// See [`super::ask::CommitOffsets::knows_epochs`].
    pub(super) knows_epochs: bool,
}

/// From when on the age of a committed offset counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aging {
    /// It does not age.
    Never,
    /// From its commit.
    SinceCommit,
    /// From when the group lost its last member.
    Since(i64),
}

impl Aging {
    /// Whether an offset has outlived its time.
    pub(super) fn is_over(self, value: &OffsetCommitValue, now_ms: i64, keep_ms: i64) -> bool {
        let since = match self {
            Self::Never => return false,
            Self::SinceCommit => value.commit_timestamp,
            Self::Since(ms) => ms,
        };
        match value.expire_timestamp {
            super::records::NO_EXPIRY => now_ms.saturating_sub(since) >= keep_ms,
            own => now_ms >= own,
        }
    }
}

impl Group {
    /// The kind as clients are told.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Classic(_) => "classic",
            Self::Consumer(_) => "consumer",
        }
    }

    /// The state as clients are told.
    pub(super) fn state(&self) -> &'static str {
        match self {
            Self::Classic(group) => group.state.name(),
            Self::Consumer(group) => group.state(),
        }
    }

    /// The protocol type as clients are told.
    pub(super) fn protocol_type(&self) -> Arc<str> {
        match self {
            Self::Classic(group) => group.protocol_type.clone().unwrap_or_else(|| Arc::from("")),
            Self::Consumer(_) => Arc::from(subscription::PROTOCOL_TYPE),
        }
    }

    /// Whether it has no members, and may be removed.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Classic(group) => group.state == State::Empty,
            Self::Consumer(group) => group.members.is_empty(),
        }
    }

    /// Whether a member may read this topic.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match self {
            Self::Classic(group) => group.is_subscribed_to(topic),
            Self::Consumer(group) => group.is_subscribed_to(topic),
        }
    }

    /// Refuses a commit that does not come from a member of now.
    pub(super) fn check_commit(&self, from: Committer<'_>) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => check_classic_commit(group, from),
            Self::Consumer(group) => check_consumer_commit(group, from),
        }
    }

    /// Refuses to tell offsets to who claims to be a member and is not one of now.
    pub(super) fn check_fetch(&self, member: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match self {
            // Fetches of the classic protocol do not say whose they are.
            Self::Classic(_) => Ok(()),
            Self::Consumer(group) => match member {
                None if epoch < 0 => Ok(()),
                member => check_epoch(group, member.unwrap_or(""), epoch),
            },
        }
    }

    /// Refuses to forget offsets while members count on them.
    pub(super) fn check_delete_offsets(&self) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) if self.is_empty() || group.is_of_consumers() => Ok(()),
            Self::Classic(_) => Err(ErrorCode::NonEmptyGroup),
            // Those of topics that somebody reads are kept.
            Self::Consumer(_) => Ok(()),
        }
    }

    /// From when on its offsets age (ClassicGroup.offsetExpirationCondition).
    pub(super) fn aging(&self) -> Aging {
        match self {
            Self::Classic(group) => classic_aging(group),
            Self::Consumer(_) => Aging::SinceCommit,
        }
    }

    /// The records that remove it.
    pub(super) fn tombstones(&self) -> Vec<GroupRecord> {
        match self {
            Self::Classic(group) => {
                let key = GroupKey {
                    group: group.id.clone(),
                };
                vec![GroupRecord::GroupMetadata(key, None)]
            }
            Self::Consumer(group) => group.tombstones(),
        }
    }
}

fn check_classic_commit(group: &ClassicGroup, from: Committer<'_>) -> Result<(), ErrorCode> {
    let is_empty = group.state == State::Empty;
    if from.generation < 0 && is_empty {
        // An operator, or a consumer that assigns its partitions itself.
        return Ok(());
    }
    let claims = from.generation >= 0 || !from.member.is_empty() || from.instance.is_some();
    if claims {
        group.check_member(from.member, from.instance)?;
        if from.generation != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
    } else if !from.is_transactional && !is_empty {
        return Err(ErrorCode::UnknownMemberId);
    }
    if !from.is_transactional && group.state == State::Completing {
        // The member knows of the new generation and must get its assignment first.
        return Err(ErrorCode::RebalanceInProgress);
    }
    Ok(())
}

fn check_consumer_commit(group: &ConsumerGroup, from: Committer<'_>) -> Result<(), ErrorCode> {
    if from.generation < 0 && group.members.is_empty() {
        // An operator, or a consumer that assigns its partitions itself.
        return Ok(());
    }
    let claims = from.generation != -1 || !from.member.is_empty() || from.instance.is_some();
    if from.is_transactional && !claims {
        return Ok(());
    }
    let member = group.members.get(from.member);
    let is_modern = member.is_some_and(|member| !member.is_classic());
    if is_modern && !from.is_transactional && !from.knows_epochs {
        return Err(ErrorCode::UnsupportedVersion);
    }
    check_epoch(group, from.member, from.generation)
}

fn check_epoch(group: &ConsumerGroup, member: &str, epoch: i32) -> Result<(), ErrorCode> {
    let member = group
        .members
        .get(member)
        .ok_or(ErrorCode::UnknownMemberId)?;
    match member.epoch == epoch {
        true => Ok(()),
        false if member.is_classic() => Err(ErrorCode::IllegalGeneration),
        false => Err(ErrorCode::StaleMemberEpoch),
    }
}

fn classic_aging(group: &ClassicGroup) -> Aging {
    match group.state {
        _ if group.protocol_type.is_none() => Aging::SinceCommit,
        State::Empty => group.since_ms.map_or(Aging::SinceCommit, Aging::Since),
        State::Stable if group.subscribed.is_some() => Aging::SinceCommit,
        State::Stable | State::Preparing | State::Completing => Aging::Never,
    }
}
