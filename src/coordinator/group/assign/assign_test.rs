//! Assignors against those of Kafka, and what must hold whoever asks.

use crate::base::Uuid;

use super::*;

/// What Apache Kafka 4.1.2's assignors said, see testdata/README.md.
const KAFKA: &str = include_str!("../testdata/assignors.txt");

fn topic(number: u8) -> TopicId {
    let mut id = [0; 16];
    id[15] = number;
    TopicId(Uuid(id))
}

fn assignment(text: &str) -> Assignment {
    let topics = text.split(';').filter(|text| *text != "-");
    topics
        .map(|text| {
            let (id, partitions) = text.split_once(':').unwrap();
            let partitions = partitions.split(',').map(|p| p.parse().unwrap());
            (topic(id.parse().unwrap()), partitions.collect())
        })
        .collect()
}

#[test]
fn the_assignors_say_what_those_of_kafka_say() {
    let mut groups = 0;
    for story in KAFKA.split("group ").filter(|story| !story.is_empty()) {
        let mut lines = story.lines();
        let assignor = Assignor::named(lines.next().unwrap()).unwrap();
        let mut group = GroupSpec::default();
        let mut expected = Vec::new();
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            if words[0] == "topic" {
                let id = topic(words[1].parse().unwrap());
                group.partitions.insert(id, words[2].parse().unwrap());
                continue;
            }
            let topics = words[3].split(',').map(|id| topic(id.parse().unwrap()));
            group.members.push(MemberSpec {
                id: words[1].into(),
                instance_id: (words[2] != "-").then(|| words[2].into()),
                topics: Arc::new(topics.collect()),
                target: Arc::new(assignment(words[4])),
            });
            expected.push(Arc::new(assignment(words[5])));
        }
        assert_eq!(assignor.assign(&group), expected, "group {story}");
        groups += 1;
    }
    assert_eq!(groups, 24 * 7);
}

/// A small generator of numbers (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// A group whose members and topics come and go.
struct World {
    dice: Dice,
    group: GroupSpec,
    same_topics: bool,
}

impl World {
    fn new(seed: u64, same_topics: bool) -> Self {
        println!("seed {seed:#x}");
        let mut dice = Dice(seed);
        let mut group = GroupSpec::default();
        for number in 1..=1 + dice.below(6) {
            let partitions = i32::try_from(1 + dice.below(20)).unwrap();
            group
                .partitions
                .insert(topic(u8::try_from(number).unwrap()), partitions);
        }
        Self {
            dice,
            group,
            same_topics,
        }
    }

    fn some_topics(&mut self) -> Arc<BTreeSet<TopicId>> {
        let all: Vec<_> = self.group.partitions.keys().copied().collect();
        let some = all
            .iter()
            .filter(|_| self.same_topics || self.dice.below(3) > 0);
        Arc::new(some.copied().collect())
    }

    fn changes(&mut self) {
        match self.dice.below(3) {
            0 if self.group.members.len() > 1 => {
                let leaving = self.dice.below(self.group.members.len());
                self.group.members.remove(leaving);
            }
            1 => {
                let nth = self.dice.below(self.group.partitions.len());
                *self.group.partitions.values_mut().nth(nth).unwrap() += 3;
            }
            _ => {
                let topics = self.some_topics();
                let number = self.dice.below(1_000_000);
                self.group.members.push(MemberSpec {
                    id: format!("m{number}").into(),
                    instance_id: number
                        .is_multiple_of(3)
                        .then(|| format!("i{number}").into()),
                    topics,
                    target: Arc::default(),
                });
                self.group.members.sort_by(|a, b| a.id.cmp(&b.id));
            }
        }
    }

    fn assigns(&mut self, assignor: Assignor) -> usize {
        let mut moved = 0;
        let targets = assignor.assign(&self.group);
        for (member, target) in self.group.members.iter_mut().zip(targets) {
            for (topic, partitions) in member.target.iter() {
                let now = target.get(topic);
                let lost = |p: &&i32| now.is_none_or(|now| !now.contains(p));
                moved += partitions.iter().filter(lost).count();
            }
            member.target = target;
        }
        moved
    }

    fn sizes(&self) -> Vec<usize> {
        let size = |member: &MemberSpec| member.target.values().map(BTreeSet::len).sum();
        self.group.members.iter().map(size).collect()
    }

    /// Every partition that somebody wants has one owner, who wants it.
    fn everything_has_one_owner(&self) {
        let mut owned = BTreeSet::new();
        for member in &self.group.members {
            for (topic, partitions) in member.target.iter() {
                assert!(member.topics.contains(topic), "{member:?}");
                assert!(!partitions.is_empty());
                for partition in partitions {
                    assert!((0..self.group.partitions[topic]).contains(partition));
                    assert!(owned.insert((*topic, *partition)), "two owners");
                }
            }
        }
        let topics = self.group.members.iter().flat_map(|m| m.topics.iter());
        let wanted: BTreeSet<_> = topics.collect();
        let wanted: i32 = wanted.iter().map(|id| self.group.partitions[*id]).sum();
        assert_eq!(i32::try_from(owned.len()).unwrap(), wanted);
    }
}

#[test]
fn every_partition_has_one_owner_however_the_group_changes() {
    for assignor in [Assignor::Uniform, Assignor::Range] {
        for same_topics in [true, false] {
            let mut world = World::new(0x5eed_0848, same_topics);
            for _ in 0..400 {
                world.changes();
                world.assigns(assignor);
                world.everything_has_one_owner();
            }
        }
    }
}

#[test]
fn members_that_want_the_same_differ_by_one_partition_at_most() {
    let mut world = World::new(0x5eed_0849, true);
    for _ in 0..400 {
        world.changes();
        world.assigns(Assignor::Uniform);
        let sizes = world.sizes();
        if let (Some(least), Some(most)) = (sizes.iter().min(), sizes.iter().max()) {
            assert!(most - least <= 1, "{sizes:?}");
        }
    }
}

#[test]
fn nothing_moves_when_nothing_changed_and_little_when_little_did() {
    for same_topics in [true, false] {
        let mut world = World::new(0x5eed_084a, same_topics);
        for _ in 0..200 {
            world.changes();
            let before = world.group.members.len();
            let moved = world.assigns(Assignor::Uniform);
            if same_topics && before > 0 {
                let total: usize = world.sizes().iter().sum();
                assert!(moved <= total / before + 1, "{moved} of {total} moved");
            }
            assert_eq!(world.assigns(Assignor::Uniform), 0);
        }
    }
}

#[test]
fn topics_of_equal_size_are_cut_alike() {
    let member = |id: &str| MemberSpec {
        id: id.into(),
        instance_id: None,
        topics: Arc::new([topic(1), topic(2)].into()),
        target: Arc::default(),
    };
    let group = GroupSpec {
        members: ["a", "b", "c"].map(member).into(),
        partitions: [(topic(1), 7), (topic(2), 7)].into(),
    };
    for target in Assignor::Range.assign(&group) {
        assert_eq!(target[&topic(1)], target[&topic(2)]);
    }
}
