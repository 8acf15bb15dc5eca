//! Stories: brokers come, beat, stop and are lost.

use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch};
use crate::metadata::image::topics::LeaderRecovery;
use crate::metadata::record::{NO_LEADER, PartitionChangeRecord, Record, RegisterBrokerRecord};
use crate::protocol::error::ErrorCode;
use crate::protocol::error::ErrorCode::{
    BrokerIdNotRegistered, DuplicateBrokerRegistration, InconsistentClusterId, InvalidRegistration,
    StaleBrokerEpoch, UnknownTopicOrPartition, UnsupportedVersion,
};

use super::ask::{AssignReplicas, UnregisterBroker};
use super::story::{
    Process, assigned, changes, cluster, cluster_of, directory, id, nodes, refused, secs, topic,
};

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

#[test]
fn a_replica_whose_directory_has_another_id_leads_as_soon_as_that_is_told() {
    let (mut cluster, [one]) = cluster_of([1]);
    let created = cluster.creates(topic("t", 1, 1)).unwrap();
    let assign = |one: Process, directory| AssignReplicas {
        broker_id: one.id,
        broker_epoch: one.epoch,
        directories: vec![(directory, vec![(created.topic_id, vec![0])])],
    };
    cluster.ask(assign(one, directory(1))).unwrap();
    cluster.stops(one);
    let other = DirectoryId(id(900));
    let mut asked = cluster.registration(1, one.epoch);
    asked.directories = vec![other];
    let one = Process {
        id: one.id,
        epoch: cluster.ask(asked).unwrap(),
    };
    cluster.beats(one);
    assert_eq!(cluster.partition("t", 0).leader, NO_LEADER);
    cluster.ask(assign(one, other)).unwrap();
    let partition = cluster.partition("t", 0);
    assert_eq!(partition.directories, [other]);
    assert_eq!((partition.leader, &partition.isr), (NodeId(1), &nodes([1])));
    cluster.ends();
}
