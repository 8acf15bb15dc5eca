//! Stories: in-sync replicas change, leaders are elected, replicas move.

use crate::base::{LeaderEpoch, NodeId, PartitionEpoch};
use crate::metadata::image::topics::LeaderRecovery;
use crate::protocol::error::ErrorCode::{
    ElectionNotNeeded, IneligibleReplica, InvalidRequest, NewLeaderElected,
    NoReassignmentInProgress, PreferredLeaderNotAvailable,
};

use super::ask::{ElectLeaders, Election};
use super::story::{Cluster, assigned, cluster_of, nodes, refused, secs};

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
