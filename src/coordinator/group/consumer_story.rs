//! What stories of consumer groups say and see; the stories are in the `_test` files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ask::Client;
use super::assign::Assignment;
use super::consumer_ask::{
    ConsumerBeat, ConsumerHeartbeat, DescribeConsumerGroups, DescribedConsumerGroup, TakeResolved,
};
use super::story::{Told, arc};
use super::subscription::look_up;
use super::{Effect, View};
use crate::base::{LeaderEpoch, NodeId, TopicId, Uuid};
use crate::metadata::image::Image;
use crate::metadata::record::{
    ConfigRecord, PartitionRecord, Record, RemoveTopicRecord, TopicRecord,
};
use crate::protocol::error::{ErrorCode, Refusal};

/// A heartbeat that says nothing new.
pub(super) fn beat(member: &str, epoch: i32) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        group: arc("g"),
        member: arc(member),
        epoch,
        instance: None,
        rack: None,
        rebalance_timeout_ms: None,
        topics: None,
        regex: None,
        assignor: None,
        owned: None,
        client: Client {
            id: arc("client"),
            host: arc("/127.0.0.1"),
        },
        must_have_id: true,
    }
}

/// A member that joins to read these topics.
pub(super) fn join(member: &str, topics: &[&str]) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        rebalance_timeout_ms: Some(30_000),
        topics: Some(topics.iter().map(|name| arc(name)).collect()),
        owned: Some(Vec::new()),
        ..beat(member, 0)
    }
}

/// The id of a topic in stories.
pub(super) fn topic_id(name: &str) -> TopicId {
    let mut id = [0; 16];
    id[..name.len()].copy_from_slice(name.as_bytes());
    TopicId(Uuid(id))
}

fn topic_name(id: TopicId) -> String {
    let name = id.0.0.iter().take_while(|byte| **byte != 0);
    String::from_utf8(name.copied().collect()).unwrap()
}

/// Partitions as stories write them: `t:0,1 u:2`, nothing for none.
pub(super) fn written(assignment: &Assignment) -> String {
    let topics: BTreeMap<String, _> = assignment
        .iter()
        .map(|(id, partitions)| (topic_name(*id), partitions))
        .collect();
    let topics = topics.into_iter().map(|(name, partitions)| {
        let partitions: Vec<_> = partitions.iter().map(ToString::to_string).collect();
        format!("{name}:{}", partitions.join(","))
    });
    topics.collect::<Vec<_>>().join(" ")
}

/// And back.
pub(super) fn read(text: &str) -> Vec<(TopicId, Vec<i32>)> {
    let topics = text.split(' ').filter(|topic| !topic.is_empty());
    let read = topics.map(|topic| {
        let (name, partitions) = topic.split_once(':').unwrap();
        let partitions = partitions.split(',').map(|p| p.parse().unwrap());
        (topic_id(name), partitions.collect())
    });
    read.collect()
}

/// An answer as stories expect it: the epoch and what is assigned, `5 = t:0,1`; the epoch alone
/// when that is as before; or the code of a refusal.
pub(super) fn told(answer: Result<ConsumerBeat, Refusal>) -> String {
    match answer {
        Ok(beat) => match beat.assignment {
            Some(assignment) => format!("{} = {}", beat.epoch, written(&assignment)),
            None => beat.epoch.to_string(),
        },
        Err(refusal) => refusal.code.name().to_owned(),
    }
}

impl Told {
    /// The cluster changes.
    pub(super) fn metadata(&self, records: Vec<Record>) {
        let mut cluster = self.cluster.lock();
        let mut image = Image::clone(&cluster.image);
        for record in records {
            image.replay(&record).unwrap();
            cluster.version += 1;
        }
        *cluster = View {
            image: Arc::new(image),
            version: cluster.version,
        };
    }

    /// A topic is created, or grows.
    pub(super) fn topic(&self, name: &str, partitions: i32) {
        let known = self.cluster.lock().image.topics.by_name(name).cloned();
        let mut records = Vec::new();
        let topic_id = topic_id(name);
        if known.is_none() {
            let name = name.into();
            records.push(TopicRecord { name, topic_id }.into());
        }
        let from = known.map_or(0, |topic| i32::try_from(topic.partitions.len()).unwrap());
        for partition_id in from..partitions {
            records.push(
                PartitionRecord {
                    topic_id,
                    partition_id,
                    replicas: vec![NodeId(1)],
                    isr: vec![NodeId(1)],
                    leader: NodeId(1),
                    leader_epoch: LeaderEpoch(0),
                    ..Default::default()
                }
                .into(),
            );
        }
        self.metadata(records);
    }

    pub(super) fn topic_goes(&self, name: &str) {
        let topic_id = topic_id(name);
        self.metadata(vec![RemoveTopicRecord { topic_id }.into()]);
    }

    /// An option is set on the group.
    pub(super) fn sets(&self, name: &str, value: &str) {
        let record = ConfigRecord {
            resource_type: 32,
            resource_name: "g".into(),
            name: name.into(),
            value: Some(value.into()),
        };
        self.metadata(vec![record.into()]);
    }

    pub(super) fn beats_in_full(
        &mut self,
        ask: ConsumerHeartbeat,
    ) -> Result<ConsumerBeat, Refusal> {
        self.asks(ask)
    }

    /// Says a heartbeat, and how it was answered.
    pub(super) fn says_beat(&mut self, ask: ConsumerHeartbeat) -> String {
        told(self.asks(ask))
    }

    /// A member joins to read these topics.
    pub(super) fn enters_consumer(&mut self, member: &str, topics: &[&str]) -> String {
        self.says_beat(join(member, topics))
    }

    /// A member is as before.
    pub(super) fn stays(&mut self, member: &str, epoch: i32) -> String {
        self.says_beat(beat(member, epoch))
    }

    /// A member says what it owns.
    pub(super) fn owns(&mut self, member: &str, epoch: i32, owned: &str) -> String {
        self.says_beat(ConsumerHeartbeat {
            owned: Some(read(owned)),
            ..beat(member, epoch)
        })
    }

    pub(super) fn described_consumer(&mut self) -> Result<DescribedConsumerGroup, Refusal> {
        let groups = vec![self.group.clone()];
        self.asks(DescribeConsumerGroups { groups }).remove(0)
    }

    /// State and epoch of the group: `Stable 3`.
    pub(super) fn stands(&mut self) -> String {
        match self.described_consumer() {
            Ok(group) => format!("{} {}", group.state, group.epoch),
            Err(refusal) => refusal.code.name().to_owned(),
        }
    }

    /// Patterns are looked up, if any are to be.
    pub(super) fn looks_up(&mut self) -> bool {
        let effects = self.story.effects();
        let any = !effects.is_empty();
        for effect in effects {
            let Effect::LookUp {
                group,
                patterns,
                view,
            } = effect;
            let resolved = look_up(&patterns, &view.image, |_| true);
            let version = view.version;
            self.asks(TakeResolved {
                group,
                version,
                resolved,
            });
        }
        any
    }

    /// The words and the code of a refusal.
    pub(super) fn refuses(&mut self, ask: ConsumerHeartbeat) -> (ErrorCode, String) {
        let refusal = self.beats_in_full(ask).unwrap_err();
        (refusal.code, refusal.words().to_owned())
    }
}
