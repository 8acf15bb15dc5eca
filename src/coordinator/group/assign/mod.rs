//! Who reads what: the server-side assignors of consumer groups (KIP-848).
//!
//! - `range`: neighbouring partitions of each topic, the same ones across topics.
//! - `uniform`: balanced and sticky.
//!
//! An assignor is given all members and the topics that exist, and says what each member shall own.
//! The same input always gives the same answer: members and topics are taken in ascending order.

mod heterogeneous;
mod range;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::TopicId;

/// Partitions by topic; a topic without partitions is left out.
pub(crate) type Assignment = BTreeMap<TopicId, BTreeSet<i32>>;

/// What is known of one member.
#[derive(Clone, Debug)]
pub(crate) struct MemberSpec {
    pub(crate) id: Arc<str>,
    pub(crate) instance_id: Option<Arc<str>>,
    /// Topics that it is subscribed to and that exist.
    pub(crate) topics: Arc<BTreeSet<TopicId>>,
    /// What it should own so far; only partitions that exist.
    pub(crate) target: Arc<Assignment>,
}

/// What is known of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupSpec {
    /// The members, by ascending id.
    pub(crate) members: Vec<MemberSpec>,
    /// How many partitions each topic has that a member is subscribed to.
    pub(crate) partitions: BTreeMap<TopicId, i32>,
}

impl GroupSpec {
    fn partitions_of(&self, topic: TopicId) -> i32 {
        self.partitions.get(&topic).copied().unwrap_or(0)
    }

    /// Whether all members are subscribed to the same topics.
    fn is_homogeneous(&self) -> bool {
        let mut sets = self.members.iter().map(|member| &member.topics);
        let Some(first) = sets.next() else {
            return true;
        };
        sets.all(|topics| Arc::ptr_eq(topics, first) || topics == first)
    }
}

/// A server-side assignor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignor {
    Uniform,
    Range,
}

impl Assignor {
    /// The assignor that a member or an option names.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "uniform" => Some(Self::Uniform),
            "range" => Some(Self::Range),
            _ => None,
        }
    }

    /// What each member shall own, in the order of the members.
    pub(crate) fn assign(self, group: &GroupSpec) -> Vec<Arc<Assignment>> {
        match self {
            Self::Range => range::assign(group),
            Self::Uniform if group.is_homogeneous() => uniform::assign(group),
            Self::Uniform => heterogeneous::assign(group),
        }
    }
}

#[cfg(test)]
#[path = "assign_test.rs"]
mod tests;
