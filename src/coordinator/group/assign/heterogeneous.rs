//! The uniform assignor where members are subscribed to different topics
//! (`UniformHeterogeneousAssignmentBuilder` of 4.1).
//!
//! Members keep what they have and still want. What is free goes to the least loaded subscriber of
//! its topic, the topics with most partitions a subscriber first. Then partitions move from the most
//! to the least loaded subscribers, topic by topic, until a whole round moves nothing. Where
//! subscriptions overlap the outcome may be a little off balance, and rounds are limited.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::base::TopicId;

use super::{Assignment, GroupSpec};

const MAX_ROUNDS: usize = 16;

/// Assigns partitions to whoever is subscribed to their topic.
pub(super) fn assign(group: &GroupSpec) -> Vec<Arc<Assignment>> {
    let mut builder = Builder::new(group);
    builder.keep();
    builder.hand_out();
    builder.balance();
    builder.assignments
}

/// A topic: who wants it, and who has each of its partitions.
struct Topic {
    subscribers: Vec<usize>,
    owners: Vec<Option<usize>>,
}

struct Builder<'a> {
    group: &'a GroupSpec,
    topics: BTreeMap<TopicId, Topic>,
    /// How many partitions each member has.
    sizes: Vec<usize>,
    assignments: Vec<Arc<Assignment>>,
}

impl<'a> Builder<'a> {
    fn new(group: &'a GroupSpec) -> Self {
        let mut topics: BTreeMap<TopicId, Topic> = BTreeMap::new();
        for (index, member) in group.members.iter().enumerate() {
            for id in member.topics.iter() {
                let topic = topics.entry(*id).or_insert_with(|| {
                    let partitions = usize::try_from(group.partitions_of(*id)).unwrap_or(0);
                    Topic {
                        subscribers: Vec::new(),
                        owners: vec![None; partitions],
                    }
                });
                topic.subscribers.push(index);
            }
        }
        Self {
            group,
            topics,
            sizes: vec![0; group.members.len()],
            assignments: Vec::with_capacity(group.members.len()),
        }
    }

    /// Most partitions a subscriber first, then fewest subscribers, then the lowest id.
    fn sorted(&self, topics: impl Iterator<Item = TopicId>) -> Vec<TopicId> {
        let mut sorted: Vec<TopicId> = topics.collect();
        sorted.sort_by(|left, right| {
            let (left, right) = (&self.topics[left], &self.topics[right]);
            // Compared as fractions, without dividing.
            let by_share = (right.owners.len() * left.subscribers.len())
                .cmp(&(left.owners.len() * right.subscribers.len()));
            by_share.then(left.subscribers.len().cmp(&right.subscribers.len()))
        });
        sorted
    }

    fn keep(&mut self) {
        for (index, member) in self.group.members.iter().enumerate() {
            let mut kept = Arc::clone(&member.target);
            for (id, partitions) in member.target.iter() {
                if !member.topics.contains(id) {
                    Arc::make_mut(&mut kept).remove(id);
                    continue;
                }
                let topic = self.topics.get_mut(id).expect("every wanted topic is here");
                self.sizes[index] += partitions.len();
                for partition in partitions {
                    topic.owners[place(*partition)] = Some(index);
                }
            }
            self.assignments.push(kept);
        }
    }

    fn hand_out(&mut self) {
        let has_free = |topic: &Topic| topic.owners.iter().any(Option::is_none);
        let topics = self.topics.iter().filter(|(_, topic)| has_free(topic));
        for id in self.sorted(topics.map(|(id, _)| *id)) {
            let topic = &self.topics[&id];
            let mut members = Ranked::new(&topic.subscribers, &self.sizes);
            let owners = topic.owners.iter().enumerate();
            let free: Vec<usize> = owners
                .filter_map(|(partition, owner)| owner.is_none().then_some(partition))
                .collect();
            for partition in free {
                let member = members.next_least(&self.sizes);
                self.give(id, partition, member);
            }
        }
    }

    fn balance(&mut self) {
        let shared = self.topics.iter();
        let shared = shared.filter(|(_, topic)| topic.subscribers.len() >= 2);
        let topics = self.sorted(shared.map(|(id, _)| *id));
        let mut last_moved = None;
        for _ in 0..MAX_ROUNDS {
            for (at, id) in topics.iter().enumerate() {
                if last_moved == Some(at) {
                    return;
                }
                let moved = self.balance_topic(*id);
                if moved || last_moved.is_none() {
                    last_moved = Some(at);
                }
            }
        }
    }

    /// Moves partitions of one topic; whether any moved.
    fn balance_topic(&mut self, id: TopicId) -> bool {
        let topic = &self.topics[&id];
        let mut members = Ranked::new(&topic.subscribers, &self.sizes);
        if members.spread(&self.sizes) <= 1 {
            return false;
        }
        // What each member may give, the highest partition first.
        let mut gifts: HashMap<usize, Vec<usize>> = HashMap::new();
        for (partition, owner) in topic.owners.iter().enumerate() {
            if let Some(owner) = owner {
                gifts.entry(*owner).or_default().push(partition);
            }
        }
        let mut moved = false;
        while !members.is_level() {
            let Some(partition) = members.next_gift(&mut gifts, &self.sizes) else {
                break;
            };
            let member = members.next_least(&self.sizes);
            if members.is_level() {
                break;
            }
            self.give(id, partition, member);
            moved = true;
        }
        moved
    }

    fn give(&mut self, id: TopicId, partition: usize, member: usize) {
        let topic = self
            .topics
            .get_mut(&id)
            .expect("every wanted topic is here");
        let before = topic.owners[partition].replace(member);
        let partition = i32::try_from(partition).expect("partitions are counted in int32");
        if let Some(before) = before {
            self.sizes[before] -= 1;
            let assignment = Arc::make_mut(&mut self.assignments[before]);
            if let Some(partitions) = assignment.get_mut(&id) {
                partitions.remove(&partition);
                if partitions.is_empty() {
                    assignment.remove(&id);
                }
            }
        }
        self.sizes[member] += 1;
        let assignment = Arc::make_mut(&mut self.assignments[member]);
        assignment.entry(id).or_default().insert(partition);
    }
}

fn place(partition: i32) -> usize {
    usize::try_from(partition).expect("targets hold only partitions that exist")
}

/// Members of a topic, the least loaded first, with two growing ranges: from the left the members
/// that are filled level by level, from the right those that are emptied level by level. Members on
/// the right that have nothing of the topic drop out behind the range.
///
/// ```text
///            least           most
///           [ ...-> ] . . [ <-... ] x x
/// ```
struct Ranked {
    members: Vec<usize>,
    least_end: usize,
    least_level: usize,
    least_next: usize,
    most_start: usize,
    most_end: usize,
    most_level: usize,
    /// One past the next member to take from.
    most_next: usize,
}

impl Ranked {
    /// Ranks the members of a topic; there is at least one.
    fn new(members: &[usize], sizes: &[usize]) -> Self {
        let mut members = members.to_vec();
        members.sort_by_key(|member| (sizes[*member], *member));
        let least = sizes[members[0]];
        let most = sizes[members[members.len() - 1]];
        let count = members.len();
        Self {
            members,
            least_end: 0,
            // Levels are counted from one, so that one below no partitions is a level too. This
            // one is raised before the first member is taken.
            least_level: least,
            least_next: 0,
            most_start: count,
            most_end: count,
            // Lowered before the first member is taken.
            most_level: most + 2,
            most_next: count,
        }
    }

    fn spread(&self, sizes: &[usize]) -> usize {
        let (least, most) = (self.members[0], self.members[self.members.len() - 1]);
        sizes[most] - sizes[least]
    }

    fn is_level(&self) -> bool {
        self.most_level <= self.least_level + 1
    }

    /// The member that gets the next partition.
    fn next_least(&mut self, sizes: &[usize]) -> usize {
        if self.least_next >= self.least_end {
            self.least_level += 1;
            while let Some(member) = self.members.get(self.least_end)
                && sizes[*member] + 1 == self.least_level
            {
                self.least_end += 1;
            }
            self.least_next = 0;
        }
        let member = self.members[self.least_next];
        self.least_next += 1;
        member
    }

    /// The partition that the most loaded member with any of the topic gives away.
    fn next_gift(
        &mut self,
        gifts: &mut HashMap<usize, Vec<usize>>,
        sizes: &[usize],
    ) -> Option<usize> {
        loop {
            let at = self.next_most(sizes)?;
            if let Some(partition) = gifts.get_mut(&self.members[at]).and_then(Vec::pop) {
                return Some(partition);
            }
            self.members.swap(at, self.most_end - 1);
            self.most_end -= 1;
        }
    }

    fn next_most(&mut self, sizes: &[usize]) -> Option<usize> {
        if self.most_next <= self.most_start {
            if self.most_end <= self.most_start && self.most_start > 0 {
                // Everybody in the range dropped out: the next level is that of the next member.
                self.most_level = sizes[self.members[self.most_start - 1]] + 1;
            } else {
                self.most_level = self.most_level.saturating_sub(1);
            }
            while self.most_start > 0
                && sizes[self.members[self.most_start - 1]] + 1 == self.most_level
            {
                self.most_start -= 1;
            }
            self.most_next = self.most_end;
        }
        self.most_next = self.most_next.checked_sub(1)?;
        Some(self.most_next)
    }
}
