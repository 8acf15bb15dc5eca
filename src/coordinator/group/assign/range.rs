//! The range assignor (`RangeAssignor` of 4.1): each topic is cut into as many ranges as it has
//! subscribers, longer ones first.
//!
//! Members take ranges in one order, static members by instance id before all others, so that
//! topics of equal size and equal subscribers are co-partitioned and a static member that comes
//! back finds its place. Racks do not matter, nor does what was assigned before.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::TopicId;

use super::{Assignment, GroupSpec, MemberSpec};

/// Assigns ranges.
pub(super) fn assign(group: &GroupSpec) -> Vec<Arc<Assignment>> {
    let mut topics = cuts(group);
    let mut order: Vec<usize> = (0..group.members.len()).collect();
    order.sort_by_key(|index| place(&group.members[*index]));
    let mut assignments = vec![Arc::default(); group.members.len()];
    for index in order {
        let member = &group.members[index];
        let ranges = member.topics.iter().filter_map(|topic| {
            let range = topics.get_mut(topic)?.next_range();
            (!range.is_empty()).then(|| (*topic, range.collect()))
        });
        assignments[index] = Arc::new(ranges.collect());
    }
    assignments
}

/// Static members come first, by instance id; then the others, by member id.
fn place(member: &MemberSpec) -> (bool, &str) {
    match &member.instance_id {
        Some(instance) => (false, instance),
        None => (true, &member.id),
    }
}

/// How a topic is cut.
struct Cut {
    next: i32,
    quota: i32,
    /// How many of the next ranges are one longer.
    longer: i32,
}

impl Cut {
    fn next_range(&mut self) -> std::ops::Range<i32> {
        let extra = i32::from(self.longer > 0);
        self.longer -= extra;
        let start = self.next;
        self.next += self.quota + extra;
        start..self.next
    }
}

fn cuts(group: &GroupSpec) -> BTreeMap<TopicId, Cut> {
    let mut subscribers: BTreeMap<TopicId, i32> = BTreeMap::new();
    for topic in group.members.iter().flat_map(|m| m.topics.iter()) {
        *subscribers.entry(*topic).or_default() += 1;
    }
    let cut = |(topic, subscribers): (TopicId, i32)| {
        let partitions = group.partitions_of(topic);
        let cut = Cut {
            next: 0,
            quota: partitions / subscribers,
            longer: partitions % subscribers,
        };
        (topic, cut)
    };
    subscribers.into_iter().map(cut).collect()
}
