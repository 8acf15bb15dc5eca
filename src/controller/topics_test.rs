//! Stories: topics are made, grow and go.

use crate::base::{NodeId, TopicId};
use crate::metadata::record::Record;
use crate::protocol::error::ErrorCode::{
    InvalidConfig, InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor,
    InvalidRequest, InvalidTopicException, PolicyViolation, TopicAlreadyExists,
};
use crate::protocol::error::Refusal;

use super::ask::{
    Assignment, CreatePartitions, CreateTopics, CreatedTopic, DeleteTopics, MorePartitions,
    NewTopic, TopicRef,
};
use super::story::{Cluster, assigned, cluster_of, id, nodes, refused, topic};

#[test]
fn a_topic_is_made_once_and_under_a_good_name() {
    let (mut cluster, [_]) = cluster_of([1]);
    let created = cluster.creates(topic("a.b", -1, -1)).unwrap();
    assert_eq!((created.num_partitions, created.replication_factor), (1, 1));
    let words = |cluster: &mut Cluster, name: &str| refused(cluster.creates(topic(name, 1, 1)));
    assert_eq!(
        words(&mut cluster, "a.b"),
        (TopicAlreadyExists, "Topic 'a.b' already exists.".to_owned())
    );
    assert_eq!(
        words(&mut cluster, "a_b"),
        (
            InvalidTopicException,
            "Topic 'a_b' collides with existing topic: a.b".to_owned()
        )
    );
    assert_eq!(
        words(&mut cluster, "__cluster_metadata"),
        (
            InvalidRequest,
            "Creation of internal topic __cluster_metadata is prohibited.".to_owned()
        )
    );
    assert_eq!(words(&mut cluster, "a b").0, InvalidTopicException);
    let asked = CreateTopics {
        topics: vec![topic("x", 1, 1), topic("y", 1, 1), topic("x", 2, 1)],
        validate_only: false,
    };
    let reply = cluster.ask(asked).unwrap();
    assert_eq!(reply.len(), 2);
    assert!(reply[0].0 == "y" && reply[0].1.is_ok());
    assert_eq!(
        refused(reply[1].1.clone()),
        (InvalidRequest, "Duplicate topic name.".to_owned())
    );
    cluster.ends();
}

#[test]
fn a_topic_that_cannot_be_placed_is_refused_in_kafkas_words() {
    let (mut cluster, [_]) = cluster_of([1]);
    let cases = [
        (
            topic("t", 0, 1),
            InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            topic("t", 1, 0),
            InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            topic("t", 1, 2),
            InvalidReplicationFactor,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 \
             cannot be reached because only 1 broker(s) are registered.",
        ),
        (
            topic("t", 10_001, 1),
            PolicyViolation,
            "Excessively large number of partitions per request.",
        ),
        (
            topic("t", 10_000, 1),
            PolicyViolation,
            "Unable to perform excessively large batch operation.",
        ),
        (
            assigned("t", [9]),
            InvalidReplicaAssignment,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            assigned("t", [1, 1]),
            InvalidReplicaAssignment,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            assigned("t", []),
            InvalidReplicaAssignment,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            NewTopic {
                num_partitions: 1,
                ..assigned("t", [1])
            },
            InvalidRequest,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic {
                assignments: vec![Assignment {
                    partition: 1,
                    replicas: nodes([1]),
                }],
                ..topic("t", -1, -1)
            },
            InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic {
                configs: vec![("retention.ms".to_owned(), None)],
                ..topic("t", 1, 1)
            },
            InvalidConfig,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            NewTopic {
                configs: vec![("no.such".to_owned(), Some("1".to_owned()))],
                ..topic("t", 1, 1)
            },
            InvalidConfig,
            "Unknown topic config name: no.such",
        ),
    ];
    for (asked, code, words) in cases {
        assert_eq!(refused(cluster.creates(asked)), (code, words.to_owned()));
    }
    assert!(cluster.story.records().is_empty());
    cluster.ends();
}

#[test]
fn nothing_is_made_of_a_request_that_only_validates() {
    let (mut cluster, [_]) = cluster_of([1]);
    let asked = CreateTopics {
        topics: vec![topic("t", 3, 1)],
        validate_only: true,
    };
    let reply = cluster.ask(asked).unwrap();
    assert_eq!(reply[0].1.as_ref().unwrap().num_partitions, 3);
    assert!(cluster.story.records().is_empty());
    cluster.ends();
}

#[test]
fn a_topic_is_written_with_its_options_before_its_partitions() {
    let (mut cluster, [_]) = cluster_of([1]);
    let mut created = topic("t", 2, 1);
    let option = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    created.configs = vec![
        option("retention.ms", "1"),
        option("min.insync.replicas", "1"),
        option("retention.ms", "2"),
    ];
    let created = cluster.creates(created).unwrap();
    assert_eq!(created.configs["retention.ms"], "2");
    let kinds: Vec<_> = cluster.story.records().iter().map(Record::kind).collect();
    // Topic, two options, the eligible replicas cleared, two partitions.
    assert_eq!(kinds, [2, 4, 4, 28, 3, 3]);
    cluster.ends();
}

#[test]
fn topics_are_removed_by_name_or_id() {
    let (mut cluster, [_]) = cluster_of([1]);
    let id_of = |created: CreatedTopic| created.topic_id;
    let a = cluster.creates(topic("a", 1, 1)).map(id_of).unwrap();
    cluster.creates(topic("b", 1, 1)).unwrap();
    let c = cluster.creates(topic("c", 1, 1)).map(id_of).unwrap();
    let name = |name: &str| TopicRef {
        name: Some(name.to_owned()),
        topic_id: None,
    };
    let by_id = |id| TopicRef {
        name: None,
        topic_id: Some(id),
    };
    let gone = TopicId(id(77));
    let topics = vec![
        by_id(a),
        name("b"),
        name("no.such"),
        by_id(gone),
        TopicRef::default(),
        name("twice"),
        name("twice"),
        name("c"),
        by_id(c),
        TopicRef {
            topic_id: Some(a),
            ..name("a")
        },
    ];
    let reply = cluster.ask(DeleteTopics { topics }).unwrap();
    let told: Vec<_> = reply
        .iter()
        .map(|deleted| match &deleted.result {
            Ok(()) => deleted.topic.name.clone().unwrap(),
            Err(refusal) => refusal.words().to_owned(),
        })
        .collect();
    assert_eq!(
        told,
        [
            "This server does not host this topic-partition.",
            "This server does not host this topic ID.",
            "Neither topic name nor id were specified.",
            "Duplicate topic name.",
            "You may not specify both topic name and topic id.",
            "a",
            "b",
            "The provided topic name maps to an ID that was already supplied.",
        ]
    );
    assert_eq!(cluster.story.machine.image().topics.len(), 1);
    cluster.ends();
}

#[test]
fn a_topic_gets_more_partitions() {
    let (mut cluster, [_]) = cluster_of([1]);
    cluster.creates(topic("t", 1, 1)).unwrap();
    let mut more = |count, assignments: Option<Vec<Vec<NodeId>>>| {
        let asked = CreatePartitions {
            topics: vec![MorePartitions {
                name: "t".to_owned(),
                count,
                assignments,
            }],
            validate_only: false,
        };
        cluster.ask(asked).map(|mut reply| reply.remove(0).1)
    };
    assert_eq!(more(3, None), Ok(Ok(())));
    let words = |result: Result<Result<(), Refusal>, Refusal>| refused(result.unwrap()).1;
    assert_eq!(words(more(3, None)), "Topic already has 3 partition(s).");
    assert_eq!(
        words(more(1, None)),
        "The topic t currently has 3 partition(s); 1 would not be an increase."
    );
    assert_eq!(
        words(more(6, Some(vec![nodes([1])]))),
        "Attempted to add 3 additional partition(s), but only 1 assignment(s) were specified."
    );
    assert_eq!(
        words(more(4, Some(vec![nodes([9])]))),
        "The manual partition assignment includes broker 9, but no such broker is registered."
    );
    assert_eq!(more(4, Some(vec![nodes([1])])), Ok(Ok(())));
    assert_eq!(
        more(20_000, None).unwrap().unwrap_err().code,
        PolicyViolation
    );
    assert_eq!(cluster.partition("t", 3).leader, NodeId(1));
    cluster.ends();
}
