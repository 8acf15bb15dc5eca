//! The uniform assignor where all members are subscribed to the same topics
//! (`UniformHomogeneousAssignmentBuilder` of 4.1).
//!
//! Balance comes first: no member has over one partition more than another. Then stickiness: a
//! member keeps what it has up to its quota. One pass over the members finds what is over or
//! foreign, a second hands the free partitions to those below their quota.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::base::TopicId;

use super::{Assignment, GroupSpec};

/// Assigns partitions of topics that every member is subscribed to.
pub(super) fn assign(group: &GroupSpec) -> Vec<Arc<Assignment>> {
    let Some(first) = group.members.first() else {
        return Vec::new();
    };
    if first.topics.is_empty() {
        return vec![Arc::default(); group.members.len()];
    }
    let mut builder = Builder::new(group, &first.topics);
    builder.keep();
    builder.hand_out();
    builder.assignments
}

struct Builder<'a> {
    group: &'a GroupSpec,
    topics: &'a BTreeSet<TopicId>,
    free: Vec<(TopicId, i32)>,
    /// Members below their quota, and by how much.
    unfilled: Vec<(usize, usize)>,
    assignments: Vec<Arc<Assignment>>,
    /// What every member gets at least.
    quota: usize,
    /// How many members still get one more.
    extras: usize,
}

impl<'a> Builder<'a> {
    fn new(group: &'a GroupSpec, topics: &'a BTreeSet<TopicId>) -> Self {
        let assigned: HashSet<(TopicId, i32)> = group
            .members
            .iter()
            .flat_map(|member| member.target.iter())
            .flat_map(|(topic, partitions)| partitions.iter().map(|p| (*topic, *p)))
            .collect();
        let all = topics.iter().flat_map(|topic| {
            let partitions = 0..group.partitions_of(*topic);
            partitions.map(|partition| (*topic, partition))
        });
        let total = all.clone().count();
        let members = group.members.len();
        Self {
            group,
            topics,
            free: all.filter(|free| !assigned.contains(free)).collect(),
            unfilled: Vec::new(),
            assignments: Vec::with_capacity(members),
            quota: total / members,
            extras: total % members,
        }
    }

    /// Lets every member keep what it has, up to its quota.
    fn keep(&mut self) {
        let members = self.group.members.len();
        for (index, member) in self.group.members.iter().enumerate() {
            let mut may_have_extra = self.extras > 0;
            let mut room = self.quota + usize::from(may_have_extra);
            let kept = self.keep_within(&member.target, &mut room);
            // A member that does not fill its extra place leaves it to the ones after it, unless
            // all of those will have one.
            if room > 0 && may_have_extra && members - index > self.extras {
                room -= 1;
                may_have_extra = false;
            }
            if room > 0 {
                self.unfilled.push((index, room));
            }
            self.extras -= usize::from(may_have_extra);
            self.assignments.push(kept);
        }
    }

    /// The part of `target` that is subscribed to and within `room`; the rest becomes free.
    fn keep_within(&mut self, target: &Arc<Assignment>, room: &mut usize) -> Arc<Assignment> {
        let mut kept = Arc::clone(target);
        for (topic, partitions) in target.iter() {
            if !self.topics.contains(topic) {
                Arc::make_mut(&mut kept).remove(topic);
                continue;
            }
            let stay = partitions.len().min(*room);
            *room -= stay;
            if stay == partitions.len() {
                continue;
            }
            let over = partitions.iter().skip(stay).map(|p| (*topic, *p));
            self.free.extend(over);
            let kept = Arc::make_mut(&mut kept);
            if stay == 0 {
                kept.remove(topic);
            } else {
                kept.insert(*topic, partitions.iter().take(stay).copied().collect());
            }
        }
        kept
    }

    fn hand_out(&mut self) {
        let mut free = std::mem::take(&mut self.free).into_iter();
        for (member, room) in std::mem::take(&mut self.unfilled) {
            let assignment = Arc::make_mut(&mut self.assignments[member]);
            for (topic, partition) in free.by_ref().take(room) {
                assignment.entry(topic).or_default().insert(partition);
            }
        }
        debug_assert_eq!(free.len(), 0, "the quotas add up to all partitions");
    }
}
