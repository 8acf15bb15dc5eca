//! Stories of a controller, told through the testkit.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, ProducerId, TopicId, Uuid};
use crate::machine::Now;
use crate::machine::testkit::{Rehearsed, Story};
use crate::metadata::bootstrap;
use crate::metadata::image::Image;
use crate::metadata::image::configs::{Options, Resource, ResourceType};
use crate::metadata::image::topics::{LeaderRecovery, Partition};
use crate::metadata::record::{
    Endpoint, NO_LEADER, PartitionChangeRecord, Record, RegisterBrokerRecord,
};
use crate::protocol::error::ErrorCode::{
    self, BrokerIdNotRegistered, DuplicateBrokerRegistration, ElectionNotNeeded,
    InconsistentClusterId, IneligibleReplica, InvalidConfig, InvalidPartitions,
    InvalidRegistration, InvalidReplicaAssignment, InvalidReplicationFactor, InvalidRequest,
    InvalidTopicException, InvalidUpdateVersion, NewLeaderElected, NoReassignmentInProgress,
    PolicyViolation, PreferredLeaderNotAvailable, StaleBrokerEpoch, TopicAlreadyExists,
    UnknownTopicOrPartition, UnsupportedVersion,
};
use crate::protocol::error::Refusal;

use super::ask::*;
use super::configs::ConfigRules;
use super::state::Settings;
use super::{Controller, features};

/// Rules for a handful of options.
struct FewRules;

impl ConfigRules for FewRules {
    fn validate(&self, _: &Resource, all: &Options, _: &Options) -> Result<(), Refusal> {
        let known = ["cleanup.policy", "min.insync.replicas", "retention.ms"];
        let known = [&known[..], &["unclean.leader.election.enable"]].concat();
        match all.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Refusal::new(
                InvalidConfig,
                format!("Unknown topic config name: {name}"),
            )),
        }
    }

    fn is_list(&self, _: ResourceType, name: &str) -> bool {
        name == "cleanup.policy"
    }

    fn default_value(&self, _: ResourceType, name: &str) -> Option<String> {
        (name == "cleanup.policy").then(|| "delete".to_owned())
    }
}

fn settings() -> Arc<Settings> {
    let next = AtomicU64::new(1000);
    Arc::new(Settings {
        node_id: NodeId(100),
        cluster_id: "a-cluster".to_owned(),
        voters: vec![NodeId(100)],
        session_timeout: secs(9),
        num_partitions: 1,
        default_replication_factor: 1,
        min_insync_replicas: 1,
        unclean_leader_election: false,
        balance_interval: Some(secs(300)),
        unclean_election_interval: secs(300),
        max_idle: None,
        rules: Box::new(FewRules),
        uuid: Box::new(move || id(next.fetch_add(1, Ordering::Relaxed))),
        below: Box::new(|_| 0),
    })
}

impl Rehearsed for Controller {
    type Hard = Image;

    fn hard(&self) -> Image {
        self.image().clone()
    }

    fn reloaded(&self, records: &[Record], now: Now) -> Self {
        let mut image = Image::default();
        for record in records {
            image.replay(record).unwrap();
        }
        Self::new(image, Arc::clone(&self.state.settings), now)
    }
}

/// A cluster as seen by its controller.
struct Cluster {
    story: Story<Controller>,
    incarnations: Cell<u64>,
}

/// A running broker process.
#[derive(Clone, Copy)]
struct Process {
    id: NodeId,
    epoch: i64,
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn id(number: u64) -> Uuid {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uuid(bytes)
}

fn nodes<const N: usize>(ids: [i32; N]) -> Vec<NodeId> {
    ids.map(NodeId).to_vec()
}

/// A new cluster without brokers.
fn cluster() -> Cluster {
    let mut story = Story::new(|now| Controller::new(Image::default(), settings(), now));
    story.writes(bootstrap::records(bootstrap::default_features(), 1));
    Cluster {
        story,
        incarnations: Cell::new(0),
    }
}

/// A cluster whose brokers are up.
fn cluster_of<const N: usize>(ids: [i32; N]) -> (Cluster, [Process; N]) {
    let mut cluster = cluster();
    let brokers = ids.map(|id| cluster.starts(id, -1));
    cluster.story.records();
    (cluster, brokers)
}

impl Cluster {
    fn ask<A: Ask>(&mut self, asked: A) -> Result<A::Reply, Refusal> {
        let ticket = self.story.says(asked.into_event());
        let answer = self.story.answer(ticket).expect("answered at once");
        A::reply(answer).expect("answered by its own kind")
    }

    fn registration(&self, broker: i32, previous_broker_epoch: i64) -> RegisterBroker {
        self.incarnations.set(self.incarnations.get() + 1);
        RegisterBroker {
            cluster_id: "a-cluster".to_owned(),
            broker_id: NodeId(broker),
            incarnation_id: id(self.incarnations.get()),
            endpoints: vec![Endpoint {
                name: "PLAINTEXT".to_owned(),
                host: format!("host{broker}"),
                port: 9092,
                security_protocol: 0,
            }],
            features: features::supported(),
            rack: None,
            is_migrating_zk_broker: false,
            directories: vec![directory(broker)],
            previous_broker_epoch,
        }
    }

    /// A broker process starts, registers and is unfenced.
    fn starts(&mut self, broker: i32, previous_broker_epoch: i64) -> Process {
        let asked = self.registration(broker, previous_broker_epoch);
        let epoch = self.ask(asked).unwrap();
        let process = Process {
            id: NodeId(broker),
            epoch,
        };
        assert!(!self.beats(process).is_fenced);
        process
    }

    fn heartbeat(&self, broker: Process) -> Heartbeat {
        Heartbeat {
            broker_id: broker.id,
            broker_epoch: broker.epoch,
            metadata_offset: self.story.end_offset() - 1,
            want_fence: false,
            want_shut_down: false,
            offline_directories: Vec::new(),
        }
    }

    fn beats(&mut self, broker: Process) -> HeartbeatReply {
        let heartbeat = self.heartbeat(broker);
        self.ask(heartbeat).unwrap()
    }

    /// A broker wants to stop, and is told what to do.
    fn wants_to_stop(&mut self, broker: Process) -> HeartbeatReply {
        let mut heartbeat = self.heartbeat(broker);
        heartbeat.want_shut_down = true;
        self.ask(heartbeat).unwrap()
    }

    /// A broker stops; all others learn of it.
    fn stops(&mut self, broker: Process) {
        if self.wants_to_stop(broker).should_shut_down {
            return;
        }
        let others: Vec<_> = self
            .story
            .machine
            .image()
            .alive_brokers()
            .map(|other| Process {
                id: other.id,
                epoch: other.epoch,
            })
            .filter(|other| other.id != broker.id)
            .collect();
        for other in others {
            self.beats(other);
        }
        assert!(self.wants_to_stop(broker).should_shut_down);
    }

    fn creates(&mut self, topic: NewTopic) -> Result<CreatedTopic, Refusal> {
        let asked = CreateTopics {
            topics: vec![topic],
            validate_only: false,
        };
        self.ask(asked).map(|mut reply| reply.remove(0).1)?
    }

    fn partition(&self, topic: &str, index: i32) -> Arc<Partition> {
        let image = self.story.machine.image();
        Arc::clone(image.partition(topic, index).expect("it exists"))
    }

    fn sets(&mut self, resource: Resource, name: &str, value: Option<&str>) -> Result<(), Refusal> {
        let change = ConfigChange {
            name: name.to_owned(),
            op: value.map_or(ConfigOp::Delete, |_| ConfigOp::Set),
            value: value.map(str::to_owned),
        };
        self.changes(resource, change)
    }

    fn changes(&mut self, resource: Resource, change: ConfigChange) -> Result<(), Refusal> {
        let asked = IncrementalAlterConfigs {
            resources: vec![(resource, vec![change])],
            validate_only: false,
        };
        self.ask(asked).unwrap().remove(0).1
    }

    fn alters_isr(
        &mut self,
        leader: Process,
        topic: &str,
        isr: &[(i32, i64)],
    ) -> Result<PartitionState, ErrorCode> {
        let partition = self.partition(topic, 0);
        let topic = self.story.machine.image().topics.id(topic).unwrap();
        let new = NewIsr {
            partition: 0,
            leader_epoch: partition.leader_epoch,
            isr: isr
                .iter()
                .map(|(id, epoch)| (NodeId(*id), *epoch))
                .collect(),
            leader_recovery_state: 0,
            partition_epoch: partition.partition_epoch,
        };
        let asked = AlterPartition {
            broker_id: leader.id,
            broker_epoch: leader.epoch,
            topics: vec![(topic, vec![new])],
        };
        self.ask(asked).unwrap().remove(0).1.remove(0).1
    }

    fn reassigns(&mut self, topic: &str, replicas: Option<Vec<NodeId>>) -> Result<(), Refusal> {
        let asked = AlterReassignments {
            topics: vec![(
                topic.to_owned(),
                vec![Reassignment {
                    partition: 0,
                    replicas,
                }],
            )],
            allow_replication_factor_change: true,
        };
        self.ask(asked).unwrap().remove(0).1.remove(0).1
    }

    fn ends(mut self) {
        self.story.reloads();
        crate::metadata::image::tests::rebuild(self.story.machine.image());
    }
}

fn directory(broker: i32) -> DirectoryId {
    DirectoryId(id(500 + u64::try_from(broker).unwrap()))
}

fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        assignments: Vec::new(),
        configs: Vec::new(),
    }
}

fn assigned<const N: usize>(name: &str, replicas: [i32; N]) -> NewTopic {
    NewTopic {
        assignments: vec![Assignment {
            partition: 0,
            replicas: nodes(replicas),
        }],
        ..topic(name, -1, -1)
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (ErrorCode, String) {
    let refusal = result.unwrap_err();
    (refusal.code, refusal.words().to_owned())
}

fn changes(records: &[Record]) -> usize {
    let is_change = |record: &&Record| matches!(record, Record::PartitionChange(_));
    records.iter().filter(is_change).count()
}

#[test]
fn a_one_node_cluster_restarts_with_the_records_that_kafka_writes() {
    let (mut cluster, [broker]) = cluster_of([1]);
    cluster.creates(topic("t", 1, 1)).unwrap();
    let created = cluster.story.records();
    let Record::Partition(partition) = &created[1] else {
        panic!("{created:?}");
    };
    assert_eq!(partition.directories, [directory(1)]);
    assert_eq!(
        (partition.leader_epoch.0, partition.partition_epoch.0),
        (0, 0)
    );

    let reply = cluster.wants_to_stop(broker);
    assert!(reply.in_controlled_shutdown && !reply.should_shut_down && !reply.is_fenced);
    let stopping = cluster.story.records();
    let Record::BrokerRegistrationChange(change) = &stopping[0] else {
        panic!("{stopping:?}");
    };
    assert_eq!(
        (change.in_controlled_shutdown, stopping[0].version()),
        (1, 1)
    );
    let expected = PartitionChangeRecord {
        partition_id: 0,
        topic_id: partition.topic_id,
        isr: Some(vec![]),
        leader: NO_LEADER,
        eligible_leader_replicas: Some(nodes([1])),
        last_known_elr: Some(nodes([1])),
        ..Default::default()
    };
    assert_eq!(stopping[1..], [expected.into()]);
    let reply = cluster.wants_to_stop(broker);
    assert!(reply.should_shut_down && reply.is_fenced);
    assert_eq!(cluster.story.records().len(), 1);

    cluster.starts(1, broker.epoch);
    let started = cluster.story.records();
    assert!(matches!(
        started[0],
        Record::RegisterBroker(RegisterBrokerRecord { fenced: true, .. })
    ));
    let expected = PartitionChangeRecord {
        partition_id: 0,
        topic_id: partition.topic_id,
        isr: Some(nodes([1])),
        leader: NodeId(1),
        eligible_leader_replicas: Some(vec![]),
        last_known_elr: Some(vec![]),
        ..Default::default()
    };
    assert_eq!(started[2..], [expected.into()]);
    let partition = cluster.partition("t", 0);
    assert_eq!(partition.leader_epoch, LeaderEpoch(2));
    assert_eq!(partition.partition_epoch, PartitionEpoch(2));
    cluster.ends();
}

#[test]
fn a_broker_epoch_is_the_offset_of_its_record() {
    let mut cluster = cluster();
    let end = cluster.story.end_offset();
    let asked = cluster.registration(1, -1);
    assert_eq!(cluster.ask(asked.clone()), Ok(end));
    // The same process again keeps its epoch.
    assert_eq!(cluster.ask(asked), Ok(end));
    let broker = Process {
        id: NodeId(1),
        epoch: end,
    };
    let mut heartbeat = cluster.heartbeat(broker);
    heartbeat.metadata_offset = end - 1;
    let reply = cluster.ask(heartbeat.clone()).unwrap();
    assert!(!reply.is_caught_up && reply.is_fenced);
    heartbeat.metadata_offset = end;
    heartbeat.want_fence = true;
    assert!(cluster.ask(heartbeat.clone()).unwrap().is_fenced);
    heartbeat.want_fence = false;
    assert!(!cluster.ask(heartbeat.clone()).unwrap().is_fenced);
    heartbeat.broker_epoch = 99;
    let words = format!("Expected broker epoch {end}, but got broker epoch 99");
    assert_eq!(refused(cluster.ask(heartbeat)), (StaleBrokerEpoch, words));
    cluster.ends();
}

#[test]
fn a_second_broker_of_the_same_id_waits_for_the_first_ones_session() {
    let (mut cluster, [_]) = cluster_of([1]);
    let asked = cluster.registration(1, -1);
    assert_eq!(
        refused(cluster.ask(asked.clone())).0,
        DuplicateBrokerRegistration
    );
    cluster.story.sleeps(secs(10));
    cluster.ask(asked).unwrap();
    let mut asked = cluster.registration(2, -1);
    asked.directories = vec![directory(1)];
    assert_eq!(refused(cluster.ask(asked.clone())).0, InvalidRegistration);
    asked.directories = vec![directory(2)];
    asked.cluster_id = "another".to_owned();
    assert_eq!(refused(cluster.ask(asked.clone())).0, InconsistentClusterId);
    asked.cluster_id = "a-cluster".to_owned();
    asked
        .features
        .retain(|feature| feature.name != "group.version");
    assert_eq!(
        refused(cluster.ask(asked)),
        (
            UnsupportedVersion,
            "Unable to register because the broker does not support finalized version 1 of \
             group.version. The broker wants a version between 0 and 0, inclusive."
                .to_owned()
        )
    );
    cluster.ends();
}

#[test]
fn a_silent_broker_is_fenced_and_its_partitions_are_led_by_others() {
    let (mut cluster, [one, two]) = cluster_of([1, 2]);
    cluster.creates(assigned("both", [1, 2])).unwrap();
    cluster.creates(assigned("alone", [1])).unwrap();
    cluster.story.sleeps(secs(5));
    cluster.beats(two);
    cluster.story.sleeps(secs(5));
    let both = cluster.partition("both", 0);
    assert_eq!((both.leader, &both.isr), (NodeId(2), &nodes([2])));
    let alone = cluster.partition("alone", 0);
    assert_eq!(
        (alone.leader, &alone.isr, &alone.elr),
        (NO_LEADER, &vec![], &nodes([1]))
    );
    assert!(!cluster.story.machine.image().is_alive(NodeId(1)));

    // It was only slow: back it leads what nobody else could.
    assert!(!cluster.beats(one).is_fenced);
    assert_eq!(cluster.partition("alone", 0).leader, NodeId(1));
    assert_eq!(cluster.partition("both", 0).isr, nodes([2]));
    cluster.ends();
}

#[test]
fn a_new_controller_gives_everybody_one_session_more() {
    let (mut cluster, [one]) = cluster_of([1]);
    cluster.story.sleeps(secs(8));
    cluster.story.reloads();
    cluster.story.sleeps(secs(8));
    assert!(cluster.story.machine.image().is_alive(one.id));
    cluster.story.sleeps(secs(2));
    assert!(!cluster.story.machine.image().is_alive(one.id));
    cluster.ends();
}

#[test]
fn a_stopping_broker_waits_until_all_others_know_its_successors() {
    let (mut cluster, [one, two]) = cluster_of([1, 2]);
    cluster.creates(assigned("t", [1, 2])).unwrap();
    let behind = cluster.heartbeat(two);
    assert!(cluster.wants_to_stop(one).in_controlled_shutdown);
    assert_eq!(cluster.partition("t", 0).leader, NodeId(2));
    cluster.ask(behind).unwrap();
    assert!(!cluster.wants_to_stop(one).should_shut_down);
    cluster.beats(two);
    assert!(cluster.wants_to_stop(one).should_shut_down);
    assert_eq!(cluster.partition("t", 0).isr, nodes([2]));
    cluster.ends();
}

#[test]
fn a_broker_that_did_not_stop_cleanly_is_no_longer_eligible() {
    let (mut cluster, [one, two]) = cluster_of([1, 2]);
    let mut created = assigned("t", [1, 2]);
    created
        .configs
        .push(("min.insync.replicas".into(), Some("2".into())));
    cluster.creates(created).unwrap();
    cluster.stops(one);
    assert_eq!(cluster.partition("t", 0).elr, nodes([1]));
    cluster.stops(two);
    let partition = cluster.partition("t", 0);
    assert_eq!(
        (partition.leader, &partition.elr),
        (NO_LEADER, &nodes([1, 2]))
    );
    assert_eq!(partition.last_known_elr, nodes([2]));

    // The first comes back after a crash: it may not lead, the second may.
    cluster.starts(1, -1);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.elr), (NO_LEADER, &nodes([2])));
    cluster.starts(2, two.epoch);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr), (NodeId(2), &nodes([2])));
    assert_eq!(partition.recovery, LeaderRecovery::Recovered);
    cluster.ends();
}

#[test]
fn the_last_known_leader_leads_again_after_a_crash_of_all() {
    let (mut cluster, [_]) = cluster_of([1]);
    cluster.creates(topic("t", 1, 1)).unwrap();
    cluster.story.sleeps(secs(10));
    assert_eq!(cluster.partition("t", 0).elr, nodes([1]));
    let one = cluster.starts(1, -1);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr), (NodeId(1), &nodes([1])));
    assert_eq!(partition.recovery, LeaderRecovery::Recovering);
    assert!(partition.elr.is_empty() && partition.last_known_elr.is_empty());
    let state = cluster.alters_isr(one, "t", &[(1, one.epoch)]).unwrap();
    assert_eq!(state.leader_recovery_state, 0);
    cluster.ends();
}

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

#[test]
fn producer_ids_come_in_blocks_that_nobody_shares() {
    let (mut cluster, [one]) = cluster_of([1]);
    let asked = AllocateProducerIds {
        broker_id: one.id,
        broker_epoch: one.epoch,
    };
    let block = |first| ProducerIdBlock {
        first: ProducerId(first),
        len: 1000,
    };
    assert_eq!(cluster.ask(asked.clone()), Ok(block(0)));
    cluster.story.reloads();
    assert_eq!(cluster.ask(asked.clone()), Ok(block(1000)));
    let stale = AllocateProducerIds {
        broker_epoch: -1,
        ..asked
    };
    assert_eq!(refused(cluster.ask(stale)).0, StaleBrokerEpoch);
    cluster.ends();
}

#[test]
fn a_leader_shrinks_and_grows_its_isr() {
    let (mut cluster, [one, two, three]) = cluster_of([1, 2, 3]);
    let mut created = assigned("t", [1, 2, 3]);
    created
        .configs
        .push(("min.insync.replicas".into(), Some("2".into())));
    cluster.creates(created).unwrap();
    let state = cluster.alters_isr(one, "t", &[(1, one.epoch)]).unwrap();
    assert_eq!(
        (state.isr, state.leader_epoch),
        (nodes([1]), LeaderEpoch(0))
    );
    assert_eq!(state.partition_epoch, PartitionEpoch(1));
    assert_eq!(cluster.partition("t", 0).elr, nodes([2, 3]));
    let both = [(1, one.epoch), (3, three.epoch)];
    cluster.alters_isr(one, "t", &both).unwrap();
    assert!(cluster.partition("t", 0).elr.is_empty());

    assert_eq!(
        cluster.alters_isr(one, "t", &[(1, -1), (2, 0)]),
        Err(IneligibleReplica)
    );
    assert_eq!(
        cluster.alters_isr(one, "t", &[(3, -1)]),
        Err(InvalidRequest)
    );
    assert_eq!(
        cluster.alters_isr(one, "t", &[(1, -1), (7, -1)]),
        Err(InvalidRequest)
    );
    assert_eq!(
        cluster.alters_isr(two, "t", &[(1, -1)]),
        Err(InvalidRequest)
    );
    cluster.stops(two);
    assert_eq!(
        cluster.alters_isr(one, "t", &[(1, -1), (2, -1)]),
        Err(IneligibleReplica)
    );
    cluster.ends();
}

#[test]
fn leaders_go_back_to_the_preferred_replica() {
    let (mut cluster, [one, two]) = cluster_of([1, 2]);
    cluster.creates(assigned("t", [1, 2])).unwrap();
    cluster.stops(one);
    let one = cluster.starts(1, one.epoch);
    let elect = |cluster: &mut Cluster, election| {
        let asked = ElectLeaders {
            election,
            partitions: Some(vec![("t".to_owned(), vec![0])]),
        };
        cluster.ask(asked).unwrap().remove(0).1.remove(0).1
    };
    let result = elect(&mut cluster, Election::Preferred);
    assert_eq!(refused(result).0, PreferredLeaderNotAvailable);
    cluster
        .alters_isr(two, "t", &[(2, -1), (1, one.epoch)])
        .unwrap();
    assert_eq!(elect(&mut cluster, Election::Preferred), Ok(()));
    assert_eq!(cluster.partition("t", 0).leader, NodeId(1));
    assert_eq!(
        refused(elect(&mut cluster, Election::Preferred)).0,
        ElectionNotNeeded
    );
    assert_eq!(
        refused(elect(&mut cluster, Election::Unclean)).0,
        ElectionNotNeeded
    );
    let asked = ElectLeaders {
        election: Election::Preferred,
        partitions: None,
    };
    assert_eq!(cluster.ask(asked).unwrap(), [("t".to_owned(), vec![])]);
    cluster.ends();
}

#[test]
fn the_clock_brings_leaders_back() {
    let (mut cluster, [one, two]) = cluster_of([1, 2]);
    cluster.creates(assigned("t", [1, 2])).unwrap();
    cluster.stops(one);
    let one = cluster.starts(1, one.epoch);
    cluster.alters_isr(two, "t", &[(2, -1), (1, -1)]).unwrap();
    for _ in 0..61 {
        cluster.story.sleeps(secs(5));
        cluster.beats(one);
        cluster.beats(two);
    }
    assert_eq!(cluster.partition("t", 0).leader, NodeId(1));
    cluster.ends();
}

#[test]
fn an_unclean_topic_is_led_by_whoever_is_alive() {
    let (mut cluster, [one, two]) = cluster_of([1, 2]);
    let mut created = assigned("t", [1, 2]);
    created
        .configs
        .push(("unclean.leader.election.enable".into(), Some("true".into())));
    cluster.creates(created).unwrap();
    cluster.alters_isr(one, "t", &[(1, -1)]).unwrap();
    cluster.story.sleeps(secs(5));
    cluster.beats(two);
    cluster.story.sleeps(secs(5));
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr), (NodeId(2), &nodes([2])));
    assert_eq!(partition.recovery, LeaderRecovery::Recovering);
    cluster.ends();
}

#[test]
fn replicas_move_in_two_steps() {
    let (mut cluster, [one, two, _three]) = cluster_of([1, 2, 3]);
    cluster.creates(assigned("t", [1, 2])).unwrap();
    cluster.reassigns("t", Some(nodes([2, 3]))).unwrap();
    let partition = cluster.partition("t", 0);
    assert_eq!(partition.replicas, nodes([2, 3, 1]));
    assert_eq!(
        (&partition.adding, &partition.removing),
        (&nodes([3]), &nodes([1]))
    );
    let result = cluster.alters_isr(one, "t", &[(1, -1), (2, -1), (3, -1)]);
    assert_eq!(result, Err(NewLeaderElected));
    let partition = cluster.partition("t", 0);
    assert_eq!(
        (&partition.replicas, &partition.isr),
        (&nodes([2, 3]), &nodes([2, 3]))
    );
    assert_eq!(
        (partition.leader, partition.leader_epoch),
        (two.id, LeaderEpoch(1))
    );
    assert!(!partition.is_reassigning());

    assert_eq!(
        refused(cluster.reassigns("t", None)).0,
        NoReassignmentInProgress
    );
    cluster.reassigns("t", Some(nodes([1]))).unwrap();
    cluster.reassigns("t", None).unwrap();
    let partition = cluster.partition("t", 0);
    assert_eq!(
        (&partition.replicas, &partition.isr),
        (&nodes([2, 3]), &nodes([2, 3]))
    );
    assert!(!partition.is_reassigning());
    cluster.ends();
}

#[test]
fn options_change_by_kafkas_rules() {
    let (mut cluster, [_]) = cluster_of([1]);
    cluster.creates(topic("t", 1, 1)).unwrap();
    cluster.story.records();
    let t = || Resource::topic("t");
    cluster.sets(t(), "retention.ms", Some("5")).unwrap();
    cluster.sets(t(), "retention.ms", Some("5")).unwrap();
    assert_eq!(cluster.story.records().len(), 1);
    cluster.sets(t(), "min.insync.replicas", Some("1")).unwrap();
    assert_eq!(cluster.story.records().len(), 2);
    let append = |name: &str, op| ConfigChange {
        name: name.to_owned(),
        op,
        value: Some("compact".to_owned()),
    };
    cluster
        .changes(t(), append("cleanup.policy", ConfigOp::Append))
        .unwrap();
    let value = |cluster: &Cluster, name: &str| {
        let configs = &cluster.story.machine.image().configs;
        configs.value(&t(), name).map(str::to_owned)
    };
    assert_eq!(
        value(&cluster, "cleanup.policy").as_deref(),
        Some("delete,compact")
    );
    cluster
        .changes(t(), append("cleanup.policy", ConfigOp::Subtract))
        .unwrap();
    assert_eq!(value(&cluster, "cleanup.policy").as_deref(), Some("delete"));
    assert_eq!(
        refused(cluster.changes(t(), append("retention.ms", ConfigOp::Append))),
        (
            InvalidConfig,
            "Can't APPEND to key retention.ms because its type is not LIST.".to_owned()
        )
    );
    assert_eq!(
        refused(cluster.sets(Resource::topic("no.such"), "retention.ms", Some("1"))),
        (
            UnknownTopicOrPartition,
            "The topic 'no.such' does not exist.".to_owned()
        )
    );
    let broker = Resource::new(ResourceType::Broker, "1");
    let min_isr = "min.insync.replicas";
    assert_eq!(
        refused(cluster.sets(broker, min_isr, Some("1"))).1,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    );
    assert_eq!(
        refused(cluster.sets(Resource::all_brokers(), min_isr, None)).1,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    );
    let asked = AlterConfigs {
        resources: vec![(t(), vec![("retention.ms".to_owned(), Some("7".to_owned()))])],
        validate_only: false,
    };
    cluster.ask(asked).unwrap().remove(0).1.unwrap();
    assert_eq!(value(&cluster, "retention.ms").as_deref(), Some("7"));
    assert_eq!(value(&cluster, min_isr), None);
    cluster.ends();
}

#[test]
fn features_are_refused_in_kafkas_words() {
    let (mut cluster, [_]) = cluster_of([1]);
    let mut update = |name: &str, level, kind| {
        let updates = vec![FeatureUpdate {
            name: name.to_owned(),
            level,
            kind,
        }];
        cluster.ask(UpdateFeatures {
            updates,
            validate_only: false,
        })
    };
    use UpgradeType::*;
    let cases = [
        (
            ("no.such", 1, Upgrade),
            "Invalid update version 1 for feature no.such. Local controller 100 does not support \
             this feature.",
        ),
        (
            ("group.version", 9, Upgrade),
            "Invalid update version 9 for feature group.version. Local controller 100 only \
             supports versions 0-1",
        ),
        (
            ("group.version", 0, Upgrade),
            "Invalid update version 0 for feature group.version. Can't downgrade the version of \
             this feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            ("group.version", 1, Unknown),
            "Invalid update version 1 for feature group.version. The controller does not support \
             the given upgrade type.",
        ),
        (
            ("metadata.version", 20, UnsafeDowngrade),
            "Invalid metadata.version 20. Unsafe metadata downgrade is not supported in this \
             version.",
        ),
    ];
    for ((name, level, kind), words) in cases {
        let prefix =
            "The update failed for all features since the following feature had an error: ";
        let (code, told) = refused(update(name, level, kind));
        assert_eq!(
            (code, told),
            (InvalidUpdateVersion, format!("{prefix}{words}"))
        );
    }
    assert_eq!(update("metadata.version", 27, Upgrade), Ok(()));
    assert_eq!(update("share.version", 1, Upgrade), Ok(()));
    assert_eq!(update("group.version", 0, SafeDowngrade), Ok(()));
    let features = &cluster.story.machine.image().features;
    assert_eq!(features.level("share.version"), 1);
    assert_eq!(features.level("group.version"), 0);
    cluster.ends();
}

#[test]
fn a_forgotten_broker_is_in_no_isr() {
    let (mut cluster, [_, two]) = cluster_of([1, 2]);
    cluster.creates(assigned("t", [2, 1])).unwrap();
    cluster.stops(two);
    cluster.ask(UnregisterBroker { broker_id: two.id }).unwrap();
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr), (NodeId(1), &nodes([1])));
    assert_eq!(
        refused(cluster.ask(UnregisterBroker { broker_id: two.id })),
        (
            BrokerIdNotRegistered,
            "Broker ID 2 is not currently registered".to_owned()
        )
    );
    cluster.ends();
}

#[test]
fn a_lost_directory_takes_its_replicas_out_of_the_isr() {
    let mut cluster = cluster();
    let mut asked = cluster.registration(1, -1);
    let spare = DirectoryId(id(900));
    asked.directories.push(spare);
    let epoch = cluster.ask(asked).unwrap();
    let one = Process {
        id: NodeId(1),
        epoch,
    };
    cluster.beats(one);
    let created = cluster.creates(topic("t", 1, 1)).unwrap();
    assert_eq!(
        cluster.partition("t", 0).directories,
        [DirectoryId::UNASSIGNED]
    );
    let asked = AssignReplicas {
        broker_id: one.id,
        broker_epoch: one.epoch,
        directories: vec![(spare, vec![(created.topic_id, vec![0, 5])])],
    };
    let told = cluster.ask(asked).unwrap();
    assert_eq!(
        told[0].1[0].1,
        [(0, ErrorCode::None), (5, UnknownTopicOrPartition)]
    );
    assert_eq!(cluster.partition("t", 0).directories, [spare]);
    cluster.story.records();
    let mut heartbeat = cluster.heartbeat(one);
    heartbeat.offline_directories = vec![spare];
    cluster.ask(heartbeat.clone()).unwrap();
    assert_eq!(changes(&cluster.story.records()), 1);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.elr), (NO_LEADER, &nodes([1])));
    cluster.ask(heartbeat).unwrap();
    assert!(cluster.story.records().is_empty());
    cluster.ends();
}
