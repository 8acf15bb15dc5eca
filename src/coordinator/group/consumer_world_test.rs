//! Consumer groups in a world where everything happens at any time, from seeds: members of both
//! protocols join, stay, give up, leave, go away, fall silent, miss answers; topics grow; the
//! coordinator moves. No partition ever has two owners as its members see it, and once the world
//! is quiet everybody owns a fair share.

use std::collections::{BTreeMap, BTreeSet};

use super::assign::Assignment;
use super::consumer_ask::ConsumerHeartbeat;
use super::consumer_story::{beat, join, topic_id};
use super::story::{Told, arc, secs, shard};
use crate::base::TopicId;
use crate::protocol::error::ErrorCode;

/// A small generator of numbers (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A client, and what it knows.
#[derive(Clone)]
struct Client {
    epoch: i32,
    instance: Option<String>,
    /// What it reads.
    owned: Assignment,
    /// What it has been told to own.
    wanted: Assignment,
    topics: Vec<&'static str>,
    regex: Option<&'static str>,
    /// What it owns has not been said since it changed.
    is_untold: bool,
    /// It missed an answer, and says everything anew, as clients do.
    has_missed: bool,
}

struct World {
    group: Told,
    dice: Dice,
    clients: BTreeMap<String, Client>,
    /// Static members that went away, with what their place still holds.
    away: BTreeMap<String, Client>,
    made: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        println!("seed {seed:#x}");
        let group = shard(&[]);
        group.topic("t", 5);
        group.topic("u", 3);
        Self {
            group,
            dice: Dice(seed),
            clients: BTreeMap::new(),
            away: BTreeMap::new(),
            made: 0,
        }
    }

    fn some_client(&mut self) -> Option<String> {
        let count = u64::try_from(self.clients.len()).unwrap();
        if count == 0 {
            return None;
        }
        let nth = usize::try_from(self.dice.below(count)).unwrap();
        self.clients.keys().nth(nth).cloned()
    }

    fn joins(&mut self) {
        self.made += 1;
        let id = format!("m{}", self.made);
        let topics = match self.dice.below(4) {
            0 => vec!["t"],
            1 => vec!["u"],
            _ => vec!["t", "u"],
        };
        let regex = (self.dice.below(5) == 0).then_some("t|v.*");
        let place = self.away.keys().next().cloned();
        let instance = match self.dice.below(3) {
            0 => place.or_else(|| Some(format!("i{}", self.made))),
            _ => None,
        };
        if let Some(instance) = &instance {
            self.away.remove(instance);
        }
        let client = Client {
            epoch: 0,
            instance,
            owned: Assignment::new(),
            wanted: Assignment::new(),
            topics,
            regex,
            is_untold: false,
            has_missed: false,
        };
        self.clients.insert(id.clone(), client);
        self.beats(&id, false);
    }

    /// A client says where it is, and takes in the answer unless that is lost.
    fn beats(&mut self, id: &str, is_lost: bool) {
        let client = self.clients[id].clone();
        let owned = client.owned.iter();
        let owned = owned.map(|(topic, partitions)| (*topic, partitions.iter().copied().collect()));
        let says_all = client.epoch == 0 || client.has_missed;
        let mut ask = match says_all {
            true => join(id, &client.topics),
            false => beat(id, client.epoch),
        };
        ask.epoch = client.epoch;
        ask.instance = client.instance.as_deref().map(arc);
        if says_all {
            ask.regex = client.regex.map(arc);
        }
        if says_all || client.is_untold || self.dice.below(3) == 0 {
            ask.owned = Some(owned.collect());
        }
        let answer = self.group.beats_in_full(ask);
        if is_lost {
            self.clients.get_mut(id).unwrap().has_missed = true;
            return;
        }
        match answer {
            Ok(told) => {
                let client = self.clients.get_mut(id).unwrap();
                client.epoch = told.epoch;
                client.is_untold = false;
                client.has_missed = false;
                if let Some(assignment) = told.assignment {
                    client.wanted = assignment;
                    self.gives_up(id);
                }
            }
            Err(refusal) => self.is_refused(id, refusal.code),
        }
    }

    fn is_refused(&mut self, id: &str, code: ErrorCode) {
        let must_join = [ErrorCode::FencedMemberEpoch, ErrorCode::UnknownMemberId];
        let is_out = [
            ErrorCode::UnreleasedInstanceId,
            ErrorCode::FencedInstanceId,
            ErrorCode::GroupIdNotFound,
        ];
        if must_join.contains(&code) {
            let client = self.clients.get_mut(id).unwrap();
            client.owned.clear();
            client.wanted.clear();
            client.epoch = 0;
        } else {
            assert!(is_out.contains(&code), "{code:?}");
            self.clients.remove(id);
        }
    }

    /// A client stops reading what it is not to read, and says so; then it reads what is new.
    fn gives_up(&mut self, id: &str) {
        let client = self.clients.get_mut(id).unwrap();
        let wanted = client.wanted.clone();
        let has = |topic: &TopicId, p: &i32| wanted.get(topic).is_some_and(|it| it.contains(p));
        let before = client.owned.clone();
        for (topic, partitions) in &mut client.owned {
            partitions.retain(|p| has(topic, p));
        }
        client.owned.retain(|_, partitions| !partitions.is_empty());
        for (topic, partitions) in wanted {
            client.owned.entry(topic).or_default().extend(partitions);
        }
        client.is_untold |= client.owned != before;
        self.nothing_is_owned_twice();
    }

    fn nothing_is_owned_twice(&self) {
        let mut owned = BTreeSet::new();
        for client in self.clients.values() {
            for (topic, partitions) in &client.owned {
                for partition in partitions {
                    assert!(owned.insert((*topic, *partition)), "two owners");
                }
            }
        }
    }

    fn leaves(&mut self, id: &str, epoch: i32) {
        let client = self.clients.remove(id).unwrap();
        let mut ask: ConsumerHeartbeat = beat(id, epoch);
        ask.instance = client.instance.as_deref().map(arc);
        if let (-2, Some(instance)) = (epoch, client.instance.clone()) {
            self.away.insert(instance, client);
        }
        let _ = self.group.beats_in_full(ask);
    }

    fn happens(&mut self) {
        let Some(id) = self.some_client() else {
            return self.joins();
        };
        match self.dice.below(40) {
            0..3 => self.joins(),
            3 => self.leaves(&id, -1),
            4 if self.clients[&id].instance.is_some() => self.leaves(&id, -2),
            // Without a word; what it read, nobody reads until its session ends.
            5 => {
                self.clients.remove(&id);
            }
            6 => {
                let cluster = self.group.cluster.lock().image.clone();
                let topic = cluster.topics.by_name("t").unwrap();
                let count = i32::try_from(topic.partitions.len()).unwrap();
                if count < 12 {
                    self.group.topic("t", count + 1);
                }
            }
            7 => self.group.topic("v", 2),
            8 => self.group.reloads(),
            9 => self.beats(&id, true),
            10 => self.group.sleeps(secs(3)),
            11 => {
                self.group.looks_up();
            }
            12 => {
                // It lost its mind, and starts anew under its id.
                let client = self.clients.get_mut(&id).unwrap();
                client.owned.clear();
                client.wanted.clear();
                client.epoch = 0;
                self.beats(&id, false);
            }
            _ => self.beats(&id, false),
        }
        self.nothing_is_owned_twice();
    }

    fn calms(&mut self) {
        for _ in 0..40 {
            self.group.looks_up();
            let ids: Vec<_> = self.clients.keys().cloned().collect();
            for id in ids {
                self.beats(&id, false);
            }
            self.group.sleeps(secs(4));
        }
        self.nothing_is_owned_twice();
        if self.clients.is_empty() {
            return;
        }
        assert!(
            self.group.stands().starts_with("Stable"),
            "{}",
            self.group.stands()
        );
        let cluster = self.group.cluster.lock().image.clone();
        for (name, pattern) in [("t", true), ("u", false), ("v", true)] {
            let Some(topic) = cluster.topics.by_name(name) else {
                continue;
            };
            let wants = |client: &&Client| {
                client.topics.contains(&name) || (pattern && client.regex.is_some())
            };
            let readers = self.clients.values().filter(wants);
            if readers.count() == 0 {
                continue;
            }
            let owned: usize = self
                .clients
                .values()
                .filter_map(|client| client.owned.get(&topic_id(name)))
                .map(BTreeSet::len)
                .sum();
            assert_eq!(owned, topic.partitions.len(), "of {name}");
        }
        self.group.reloads();
    }
}

#[test]
fn whatever_happens_no_partition_has_two_owners_and_all_calms_down() {
    for seed in 1..=12 {
        let mut world = World::new(0x5eed_0848_0000 + seed);
        for _ in 0..6 {
            for _ in 0..60 {
                world.happens();
            }
            world.calms();
        }
    }
}
