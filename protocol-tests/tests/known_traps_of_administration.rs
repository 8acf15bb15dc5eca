//! Reports about administration and about many topics, by their ids in the project's list; what is
//! expected is what Apache Kafka 4.1.2 does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::messages::alter_configs_request::{
    AlterConfigsResource as ReplacedResource, AlterableConfig as Replaced,
};
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterPartitionReassignmentsRequest, ApiVersionsRequest, BrokerId,
    CreateTopicsRequest, DescribeConfigsRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, MetadataRequest, UpdateFeaturesRequest,
};
use kafka_protocol::protocol::StrBytes;
use protocol_tests::broker::free_port;
use protocol_tests::wire::{Connection, create_topics, topic_name};
use protocol_tests::{Broker, Kind, only_barnabas};

const TOPIC: i8 = 2;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// Topics of one partition, made at once.
fn create(connection: &mut Connection, names: &[String]) {
    let topics = names.iter().map(|name| {
        CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(1)
            .with_replication_factor(1)
    });
    let request = CreateTopicsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(60_000);
    let answer = connection.ask(7, &request);
    assert!(answer.topics.iter().all(|row| row.error_code == 0));
    for name in names {
        connection.end_offset(name, 0);
    }
}

fn named(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}-{number}"))
        .collect()
}

fn group_version(connection: &mut Connection) -> Option<i16> {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("raw"))
        .with_client_software_version(text("1"));
    let answer = connection.ask(4, &request);
    assert_eq!(answer.error_code, 0);
    let mut rows = answer.finalized_features.iter();
    let row = rows.find(|row| row.name.as_str() == "group.version")?;
    Some(row.max_version_level)
}

#[test]
fn versions_and_features_are_told_as_they_are_at_each_question() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let mut before = Connection::open(&broker);
    // B013: as often as it is asked, between others.
    assert_eq!(group_version(&mut before), Some(1));
    create(&mut before, &named("between", 1));
    assert_eq!(group_version(&mut before), Some(1));
    // B016: nothing is kept from one question to the next.
    let lower = FeatureUpdateKey::default()
        .with_feature(text("group.version"))
        .with_max_version_level(0)
        .with_upgrade_type(2);
    let request = UpdateFeaturesRequest::default()
        .with_feature_updates(vec![lower])
        .with_timeout_ms(10_000);
    let answer = connection.ask(1, &request);
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    for connection in [&mut before, &mut Connection::open(&broker)] {
        let end = Instant::now() + Duration::from_secs(10);
        while broker.kind() == Kind::ApacheKafka
            && group_version(connection).is_some()
            && Instant::now() < end
        {}
        assert_eq!(group_version(connection), None);
    }
}

#[test]
fn every_list_of_topics_is_whole() {
    // B028
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let count = match broker.kind() {
        Kind::Barnabas => 500,
        Kind::ApacheKafka => 20,
    };
    create(&mut connection, &named("listed", count));
    let all = MetadataRequest::default().with_topics(None);
    for _ in 0..100 {
        let answer = connection.ask(12, &all);
        assert_eq!(answer.topics.len(), count);
        assert!(answer.topics.iter().all(|row| row.error_code == 0));
    }
}

/// A topic's own options.
fn own(connection: &mut Connection, topic: &str) -> Vec<(String, String)> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text(topic));
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let answer = connection.ask(4, &request);
    let rows = answer.results[0].configs.iter();
    let mut own: Vec<_> = rows
        .filter(|row| row.config_source == 1)
        .map(|row| {
            (
                row.name.to_string(),
                row.value.as_ref().unwrap().to_string(),
            )
        })
        .collect();
    own.sort();
    own
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// Kafka's broker hears of a change some answers later.
#[track_caller]
fn expect_own(broker: &Broker, connection: &mut Connection, topic: &str, wanted: &[(&str, &str)]) {
    let end = Instant::now() + Duration::from_secs(10);
    let mut found = own(connection, topic);
    while broker.kind() == Kind::ApacheKafka && found != pairs(wanted) && Instant::now() < end {
        found = own(connection, topic);
    }
    assert_eq!(found, pairs(wanted));
}

#[test]
fn lists_of_an_option_are_added_to_and_taken_from() {
    // B169
    const SET: i8 = 0;
    const APPEND: i8 = 2;
    const SUBTRACT: i8 = 3;
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    create(&mut connection, &named("lists", 1));
    let alter = |connection: &mut Connection, changes: &[(&str, i8, &str)]| {
        let configs = changes.iter().map(|(name, operation, value)| {
            AlterableConfig::default()
                .with_name(text(name))
                .with_config_operation(*operation)
                .with_value(Some(text(value)))
        });
        let resource = AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text("lists-0"))
            .with_configs(configs.collect());
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        connection.ask(1, &request).responses[0].error_code
    };
    for (changes, error_code, wanted) in [
        // From the default.
        (
            &[("cleanup.policy", APPEND, "compact")][..],
            0,
            &[("cleanup.policy", "delete,compact")][..],
        ),
        // What is there already is not added again.
        (
            &[("cleanup.policy", APPEND, "compact")],
            0,
            &[("cleanup.policy", "delete,compact")],
        ),
        (
            &[("cleanup.policy", SUBTRACT, "delete")],
            0,
            &[("cleanup.policy", "compact")],
        ),
        // What is not there is not missed.
        (
            &[("cleanup.policy", SUBTRACT, "delete")],
            0,
            &[("cleanup.policy", "compact")],
        ),
        (
            &[("retention.ms", APPEND, "1")],
            40,
            &[("cleanup.policy", "compact")],
        ),
        (
            &[("retention.ms", SUBTRACT, "1")],
            40,
            &[("cleanup.policy", "compact")],
        ),
        (
            &[("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            42,
            &[("cleanup.policy", "compact")],
        ),
    ] {
        let found = alter(&mut connection, changes);
        assert_eq!(found, error_code, "{changes:?}");
        expect_own(&broker, &mut connection, "lists-0", wanted);
    }
}

#[test]
fn replaced_options_leave_none_of_the_others() {
    // B170
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    create(&mut connection, &named("replaced", 1));
    let replace = |connection: &mut Connection, version: i16, options: &[(&str, &str)]| {
        let configs = options.iter().map(|(name, value)| {
            Replaced::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
        });
        let resource = ReplacedResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text("replaced-0"))
            .with_configs(configs.collect());
        let request = AlterConfigsRequest::default().with_resources(vec![resource]);
        connection.ask(version, &request).responses[0].error_code
    };
    let three = [
        ("max.message.bytes", "2000"),
        ("retention.bytes", "3000"),
        ("retention.ms", "1000"),
    ];
    for version in 0..=2 {
        assert_eq!(replace(&mut connection, version, &three), 0);
        expect_own(&broker, &mut connection, "replaced-0", &three);
        assert_eq!(
            replace(&mut connection, version, &[("retention.ms", "5")]),
            0
        );
        expect_own(
            &broker,
            &mut connection,
            "replaced-0",
            &[("retention.ms", "5")],
        );
    }
    assert_eq!(replace(&mut connection, 2, &[]), 0);
    expect_own(&broker, &mut connection, "replaced-0", &[]);
}

#[test]
fn reassignments_and_elections_of_one_node() {
    // B177
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    create(&mut connection, &named("moved", 1));
    for (what, replicas, error_code) in [
        ("a node that is not there", Some(vec![7]), 39),
        ("the same node twice", Some(vec![1, 1]), 39),
        ("no node", Some(vec![]), 39),
        ("a cancellation of nothing", None, 85),
        ("where it is", Some(vec![1]), 0),
    ] {
        let partition = ReassignablePartition::default()
            .with_partition_index(0)
            .with_replicas(replicas.map(|ids| ids.into_iter().map(BrokerId).collect()));
        let topic = ReassignableTopic::default()
            .with_name(topic_name("moved-0"))
            .with_partitions(vec![partition]);
        let request = AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        let answer = connection.ask(0, &request);
        assert_eq!(answer.error_code, 0, "{what}");
        let row = &answer.responses[0].partitions[0];
        assert_eq!(
            row.error_code, error_code,
            "{what}: {:?}",
            row.error_message
        );
    }
    let here = TopicPartitions::default()
        .with_topic(topic_name("moved-0"))
        .with_partitions(vec![0, 9]);
    for (election, wanted) in [(0, vec![(0, 84), (9, 3)]), (1, vec![(0, 84), (9, 3)])] {
        let request = ElectLeadersRequest::default()
            .with_election_type(election)
            .with_timeout_ms(10_000)
            .with_topic_partitions(Some(vec![here.clone()]));
        let answer = connection.ask(2, &request);
        assert_eq!(answer.error_code, 0);
        let rows = answer.replica_election_results[0].partition_result.iter();
        let rows: Vec<_> = rows.map(|row| (row.partition_id, row.error_code)).collect();
        assert_eq!(rows, wanted, "election {election}");
    }
    // All of them, of which those that need none are not told.
    let request = ElectLeadersRequest::default()
        .with_election_type(0)
        .with_timeout_ms(10_000)
        .with_topic_partitions(None);
    let answer = connection.ask(2, &request);
    assert_eq!(answer.error_code, 0);
    let rows: Vec<_> = answer
        .replica_election_results
        .iter()
        .map(|row| (row.topic.to_string(), row.partition_result.len()))
        .collect();
    assert_eq!(rows, [("moved-0".to_owned(), 0)]);
}

#[test]
fn many_topics_are_listed_while_records_flow() {
    // B226
    if !only_barnabas() {
        return;
    }
    const PARTITIONS: usize = 1_000;
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    for topics in named("many", 2_000).chunks(500) {
        create(&mut connection, topics);
    }
    connection.create_topic("wide", i32::try_from(PARTITIONS).unwrap());
    let all = MetadataRequest::default().with_topics(None);
    let done = AtomicBool::new(false);
    let slowest = thread::scope(|scope| {
        let pollers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Connection::open(&broker);
                    let mut polls = 0;
                    while !done.load(Ordering::Relaxed) {
                        let answer = connection.ask(12, &all);
                        assert_eq!(answer.topics.len(), 2_001);
                        polls += 1;
                    }
                    polls
                })
            })
            .collect();
        let slowest = (0..200)
            .map(|_| {
                let start = Instant::now();
                connection.produce("wide", -1, &[b"a record"]);
                start.elapsed()
            })
            .max();
        done.store(true, Ordering::Relaxed);
        for poller in pollers {
            assert!(poller.join().unwrap() > 0);
        }
        slowest.unwrap()
    });
    println!("the slowest of 200 records took {slowest:?}");
    // The machine is as busy with eight readers of large answers as it can be.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

#[test]
fn a_listener_of_both_families_is_reached_by_both() {
    // B230
    let mut broker = Broker::prepare(&[]);
    let (port, controller) = (broker.port(), free_port());
    let advertised = format!("PLAINTEXT://[::1]:{port}");
    for (key, value) in [
        (
            "listeners",
            format!("PLAINTEXT://[::]:{port},CONTROLLER://127.0.0.1:{controller}"),
        ),
        ("advertised.listeners", advertised),
        ("controller.listener.names", "CONTROLLER".to_owned()),
        (
            "listener.security.protocol.map",
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
        ),
        (
            "controller.quorum.voters",
            format!("1@127.0.0.1:{controller}"),
        ),
    ] {
        broker.set(key, &value);
    }
    broker.restart();
    for address in ["127.0.0.1", "::1"] {
        let mut connection = Connection::open_at(address, port);
        let all = MetadataRequest::default().with_topics(Some(Vec::new()));
        let answer = connection.ask(12, &all);
        let row = &answer.brokers[0];
        // Without the brackets.
        assert_eq!((row.host.as_str(), row.port), ("::1", i32::from(port)));
        let name = format!("by-{}", if address == "::1" { 6 } else { 4 });
        let answer = connection.ask(7, &create_topics(&name, 1));
        assert_eq!(answer.topics[0].error_code, 0);
        connection.end_offset(&name, 0);
        assert_eq!(connection.produce(&name, -1, &[b"x"]), 0);
    }
}

#[test]
fn without_advertised_listeners_a_client_is_told_the_address_it_reached() {
    // B230
    if !only_barnabas() {
        return;
    }
    let mut broker = Broker::prepare(&[]);
    let port = broker.port();
    broker.set("listeners", &format!("PLAINTEXT://[::]:{port}"));
    broker.restart();
    for address in ["127.0.0.1", "::1"] {
        let mut connection = Connection::open_at(address, port);
        let all = MetadataRequest::default().with_topics(Some(Vec::new()));
        let row = connection.ask(12, &all).brokers[0].clone();
        assert_eq!((row.host.as_str(), row.port), (address, i32::from(port)));
    }
}
