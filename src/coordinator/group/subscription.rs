//! What a consumer group's subscriptions come to: topics that exist, the hash of what they look
//! like, and patterns looked up.
//!
//! The hash says whether a group must be assigned anew since its topics changed; its bytes are
//! Kafka's (`Utils.computeGroupHash` and `computeTopicHash` of 4.1), so that a group can go from
//! one broker to another without a rebalance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::assign::{Assignment, GroupSpec, MemberSpec};
use super::consumer_state::{ConsumerGroup, Member};
use super::re2::Pattern;
use crate::base::TopicId;
use crate::metadata::image::Image;
use crate::metadata::image::topics::Topic;

/// The first byte of what is hashed; another one would mean another recipe.
const RECIPE: u8 = 0;

/// The hash of all topics that a group is subscribed to and that exist; zero when there are none.
pub(super) fn group_hash(group: &ConsumerGroup, image: &Image) -> i64 {
    // Topics come by ascending name.
    let topics = group
        .subscribed()
        .filter_map(|name| image.topics.by_name(name));
    let mut all = Vec::new();
    for topic in topics {
        all.extend(topic_hash(topic, image).to_le_bytes());
    }
    match all.is_empty() {
        true => 0,
        false => XxHash3_64::oneshot(&all).cast_signed(),
    }
}

fn topic_hash(topic: &Topic, image: &Image) -> u64 {
    let mut out = vec![RECIPE];
    let (most, least) = topic.id.0.0.split_at(8);
    out.extend(most.iter().rev());
    out.extend(least.iter().rev());
    put_text(&mut out, &topic.name);
    put_count(&mut out, topic.partitions.len());
    for (index, partition) in topic.partitions.values().enumerate() {
        put_count(&mut out, index);
        let registrations = partition.replicas.iter();
        let registrations = registrations.filter_map(|id| image.brokers.registration(*id));
        let mut racks: Vec<_> = registrations.filter_map(|b| b.rack.as_deref()).collect();
        racks.sort_unstable();
        for rack in racks {
            put_count(&mut out, rack.encode_utf16().count());
            put_text(&mut out, rack);
        }
    }
    XxHash3_64::oneshot(&out)
}

/// A text as the hash library of Kafka takes it: its UTF-16 units, then how many.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    put_count(out, text.encode_utf16().count());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("names and partitions are few");
    out.extend(count.to_le_bytes());
}

/// What an assignor is told of a group.
pub(super) fn spec(group: &ConsumerGroup, image: &Image) -> GroupSpec {
    let mut spec = GroupSpec::default();
    let mut alike: Option<(&Member, Arc<BTreeSet<TopicId>>)> = None;
    for member in group.members.values() {
        // Members mostly want the same.
        let topics = match &alike {
            Some((other, topics))
                if other.topics == member.topics && other.pattern() == member.pattern() =>
            {
                topics.clone()
            }
            _ => Arc::new(wanted(group, member, image, &mut spec.partitions)),
        };
        alike = Some((member, topics.clone()));
        let target = group.target(&member.id);
        spec.members.push(MemberSpec {
            id: member.id.clone(),
            instance_id: member.instance.clone(),
            topics,
            target: existing(target, image),
        });
    }
    spec
}

fn wanted(
    group: &ConsumerGroup,
    member: &Member,
    image: &Image,
    partitions: &mut BTreeMap<TopicId, i32>,
) -> BTreeSet<TopicId> {
    let resolved = member.pattern().and_then(|regex| group.regexes.get(regex));
    let by_pattern = resolved.into_iter().flat_map(|resolved| &resolved.topics);
    let names = member.topics.iter().chain(by_pattern);
    let topics = names.filter_map(|name| image.topics.by_name(name));
    let noted = topics.map(|topic| {
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        partitions.insert(topic.id, count);
        topic.id
    });
    noted.collect()
}

/// A target without partitions that do not exist.
fn existing(mut target: Arc<Assignment>, image: &Image) -> Arc<Assignment> {
    let exists =
        |topic: &TopicId, partition: &i32| image.partition_by_id(*topic, *partition).is_some();
    let is_whole = target
        .iter()
        .all(|(topic, partitions)| partitions.iter().all(|p| exists(topic, p)));
    if !is_whole {
        let target = Arc::make_mut(&mut target);
        for (topic, partitions) in target.iter_mut() {
            partitions.retain(|partition| exists(topic, partition));
        }
        target.retain(|_, partitions| !partitions.is_empty());
    }
    target
}

/// Looks patterns up among the topics that may be seen. It takes time with many topics, and has no
/// place in a machine.
pub(crate) fn look_up(
    patterns: &[Arc<str>],
    image: &Image,
    may_see: impl Fn(&str) -> bool,
) -> Vec<(Arc<str>, BTreeSet<Arc<str>>)> {
    let look_up = |pattern: &Arc<str>| {
        // A pattern that a later release would have taken stands for nothing here.
        let compiled = Pattern::compile(pattern).ok();
        let topics = image.topics.iter().map(|topic| &topic.name);
        let matching = topics.filter(|name| {
            compiled
                .as_ref()
                .is_some_and(|pattern| pattern.matches(name))
                && may_see(name)
        });
        (pattern.clone(), matching.cloned().collect())
    };
    patterns.iter().map(look_up).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{LeaderEpoch, NodeId, Uuid};
    use crate::coordinator::group::records::{GroupRecord, MemberKey};
    use crate::metadata::record::{PartitionRecord, RegisterBrokerRecord, TopicRecord};

    fn image() -> Image {
        let mut image = Image::default();
        for (id, rack) in [(1, Some("rack-1")), (2, Some("rack-2")), (3, None)] {
            let broker = RegisterBrokerRecord {
                broker_id: NodeId(id),
                rack: rack.map(Into::into),
                ..Default::default()
            };
            image.replay(&broker.into()).unwrap();
        }
        let orders = TopicId(Uuid(std::array::from_fn(|at| {
            u8::try_from(at + 1).unwrap()
        })));
        let mut other = [0xff; 16];
        other[8..].copy_from_slice(&7u64.to_be_bytes());
        let other = TopicId(Uuid(other));
        for (name, topic_id) in [("orders", orders), ("a.b-c_1", other)] {
            let topic = TopicRecord {
                name: name.into(),
                topic_id,
            };
            image.replay(&topic.into()).unwrap();
        }
        let partitions = [
            (orders, 0, vec![2, 1, 3]),
            (orders, 1, vec![3]),
            (orders, 2, vec![3]),
            (other, 0, vec![1, 9]),
        ];
        for (topic_id, partition_id, replicas) in partitions {
            let partition = PartitionRecord {
                topic_id,
                partition_id,
                replicas: replicas.into_iter().map(NodeId).collect(),
                leader_epoch: LeaderEpoch(0),
                ..Default::default()
            };
            image.replay(&partition.into()).unwrap();
        }
        image
    }

    fn group(topics: &[&str]) -> ConsumerGroup {
        let mut member = Member::new("m".into());
        member.topics = topics.iter().map(|name| Arc::from(*name)).collect();
        let mut group = ConsumerGroup::new("g".into());
        group.replay(&member.metadata_record(&group.id.clone()));
        group
    }

    /// The numbers are those of Kafka 4.1.2's `Utils` for the same cluster.
    #[test]
    fn topics_hash_as_they_do_in_kafka() {
        assert_eq!(
            XxHash3_64::oneshot(&[1, 2, 3]).cast_signed(),
            -1_455_054_697_635_351_749
        );
        let image = image();
        let topic = |name: &str| topic_hash(image.topics.by_name(name).unwrap(), &image);
        assert_eq!(topic("orders").cast_signed(), -3_738_418_551_410_553_004);
        assert_eq!(topic("a.b-c_1").cast_signed(), 6_383_105_917_330_192_957);
        let both = group(&["orders", "nowhere", "a.b-c_1"]);
        assert_eq!(group_hash(&both, &image), -8_129_470_838_295_195_533);
        assert_eq!(
            group_hash(&group(&["orders"]), &image),
            1_677_476_909_914_352_566
        );
        assert_eq!(group_hash(&group(&["nowhere"]), &image), 0);
        let mut gone = both;
        gone.replay(&GroupRecord::ConsumerGroupMemberMetadata(
            MemberKey {
                group: "g".into(),
                member: "m".into(),
            },
            None,
        ));
        assert_eq!(group_hash(&gone, &image), 0);
    }

    #[test]
    fn patterns_stand_for_the_topics_that_may_be_seen() {
        let patterns = [Arc::from("o.*|a.*"), Arc::from("(")];
        let found = look_up(&patterns, &image(), |name| name != "orders");
        assert_eq!(found[0].1, [Arc::from("a.b-c_1")].into());
        assert!(found[1].1.is_empty());
    }
}
