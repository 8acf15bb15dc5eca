//! Administrative requests change what the running node does, and what it serves on which listener.

use std::fs;
use std::time::{Duration, Instant};

use kafka_protocol::messages::create_topics_request::CreatableTopicConfig;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    IncrementalAlterConfigsRequest, MetadataRequest,
};
use kafka_protocol::protocol::StrBytes;
use protocol_tests::broker::free_port;
use protocol_tests::wire::{Connection, create_topics, frame, produce, topic_name};
use protocol_tests::{Broker, only_barnabas};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// Sets one option, or removes it; returns the error code.
fn alter(asker: &mut Connection, kind: i8, name: &str, key: &str, value: Option<&str>) -> i16 {
    let config = AlterableConfig::default()
        .with_name(text(key))
        .with_config_operation(i8::from(value.is_none()))
        .with_value(value.map(text));
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    asker.ask(1, &request).responses[0].error_code
}

fn produced(asker: &mut Connection, topic: &str, value: &[u8]) -> i16 {
    let answer = asker.ask(9, &produce(topic, -1, &[value]));
    answer.responses[0].partition_responses[0].error_code
}

#[test]
fn an_option_set_on_a_topic_or_on_all_brokers_holds_for_the_next_request() {
    let broker = Broker::start();
    let mut asker = Connection::open(&broker);
    asker.create_topic("t", 1);
    let large = [b'x'; 2_000];
    assert_eq!(produced(&mut asker, "t", &large), 0);

    assert_eq!(
        alter(&mut asker, TOPIC, "t", "max.message.bytes", Some("1000")),
        0
    );
    assert_eq!(produced(&mut asker, "t", &large), 10, "MESSAGE_TOO_LARGE");
    assert_eq!(alter(&mut asker, TOPIC, "t", "max.message.bytes", None), 0);
    assert_eq!(produced(&mut asker, "t", &large), 0);

    assert_eq!(
        alter(&mut asker, BROKER, "", "message.max.bytes", Some("1000")),
        0
    );
    assert_eq!(
        produced(&mut asker, "t", &large),
        10,
        "what holds for all holds for a topic"
    );
    assert_eq!(
        alter(&mut asker, BROKER, "1", "message.max.bytes", Some("5000")),
        0
    );
    assert_eq!(
        produced(&mut asker, "t", &large),
        0,
        "the broker's own counts more"
    );
}

#[test]
fn what_was_set_is_still_set_after_a_kill() {
    let mut broker = Broker::start();
    let mut asker = Connection::open(&broker);
    asker.create_topic("t", 1);
    assert_eq!(
        alter(&mut asker, TOPIC, "t", "max.message.bytes", Some("1000")),
        0
    );
    broker.kill();
    broker.restart();
    assert_eq!(
        produced(&mut Connection::open(&broker), "t", &[b'x'; 2_000]),
        10
    );
}

#[test]
fn topics_are_not_deleted_where_that_is_forbidden() {
    let broker = Broker::start_with(&[("delete.topic.enable", "false")]);
    let mut asker = Connection::open(&broker);
    asker.create_topic("t", 1);
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("t")])
        .with_timeout_ms(5_000);
    for (version, code) in [(1, 42), (3, 73), (5, 73)] {
        let answer = asker.ask(version, &request);
        assert_eq!(answer.responses[0].error_code, code, "version {version}");
    }
    assert_eq!(asker.describe("t").1, 1);
}

/// A topic whose segments hold one batch of this test each.
fn topic_of_small_segments(asker: &mut Connection) {
    let mut request = create_topics("t", 1);
    let config = |name: &str, value: &str| {
        CreatableTopicConfig::default()
            .with_name(text(name))
            .with_value(Some(text(value)))
    };
    request.topics[0].configs = vec![
        config("segment.bytes", "1048576"),
        config("file.delete.delay.ms", "100"),
    ];
    assert_eq!(asker.ask(7, &request).topics[0].error_code, 0);
}

fn delete_records(asker: &mut Connection, offset: i64) -> (i16, i64) {
    let partition = DeleteRecordsPartition::default()
        .with_partition_index(0)
        .with_offset(offset);
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(5_000);
    let answer = asker.ask(2, &request);
    let partition = &answer.topics[0].partitions[0];
    (partition.error_code, partition.low_watermark)
}

#[test]
fn deleted_records_are_gone_and_whole_segments_with_them() {
    if !only_barnabas() {
        // Apache Kafka removes segments in a round of some minutes.
        return;
    }
    let mut broker = Broker::start();
    let mut asker = Connection::open(&broker);
    topic_of_small_segments(&mut asker);
    let value = vec![b'x'; 700_000];
    for offset in 0..4 {
        assert_eq!(asker.produce("t", -1, &[&value]), offset);
    }
    assert_eq!(delete_records(&mut asker, 2), (0, 2));
    assert_eq!(asker.fetch("t", 2)[0].0, 2);

    let files = || {
        let folder = fs::read_dir(broker.data().join("t-0")).expect("the partition's folder");
        let names = folder.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let end = Instant::now() + Duration::from_secs(20);
    while files()
        .iter()
        .any(|name| name.starts_with("00000000000000000000"))
    {
        assert!(
            Instant::now() < end,
            "the first segment is still there: {:?}",
            files()
        );
        // Each request gives the broker a moment.
        asker.api_versions();
    }
    assert!(
        files()
            .iter()
            .any(|name| name == "00000000000000000002.log")
    );

    broker.stop();
    broker.restart();
    let mut asker = Connection::open(&broker);
    assert_eq!(
        delete_records(&mut asker, 0),
        (0, 2),
        "it begins where it began"
    );
    assert_eq!(
        delete_records(&mut asker, 5),
        (1, -1),
        "OFFSET_OUT_OF_RANGE"
    );
}

#[test]
fn a_listener_of_controllers_serves_what_is_asked_of_controllers() {
    let (port, controller) = (free_port(), free_port());
    let listeners = format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}");
    let advertised = format!("PLAINTEXT://127.0.0.1:{port}");
    let voters = format!("1@127.0.0.1:{controller}");
    let _broker = Broker::start_with(&[
        ("listeners", &listeners),
        ("advertised.listeners", &advertised),
        ("controller.listener.names", "CONTROLLER"),
        ("controller.quorum.voters", &voters),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        ),
    ]);
    let mut asker = Connection::open_port(controller);
    let served = asker.ask(0, &ApiVersionsRequest::default()).api_keys;
    let is_served = |key: i16| served.iter().any(|row| row.api_key == key);
    for key in [18, 19, 20, 32, 33, 37, 43, 44, 45, 46, 55, 57, 60, 64] {
        assert!(is_served(key), "API {key}");
    }
    for key in [0, 2, 3, 21, 22, 35, 61, 74, 75] {
        assert!(!is_served(key), "API {key}");
    }

    let of_controllers = DescribeClusterRequest::default().with_endpoint_type(2);
    let answer = asker.ask(1, &of_controllers);
    assert_eq!((answer.error_code, answer.endpoint_type), (0, 2));
    assert_eq!(answer.controller_id.0, 1);
    assert_eq!(answer.brokers.len(), 1);
    assert_eq!(answer.brokers[0].port, i32::from(controller));
    let answer = asker.ask(1, &DescribeClusterRequest::default());
    assert_eq!(
        (answer.error_code, answer.endpoint_type),
        (114, 2),
        "MISMATCHED_ENDPOINT_TYPE"
    );
    let answer = Connection::open_port(port).ask(1, &of_controllers);
    assert_eq!((answer.error_code, answer.endpoint_type), (114, 1));

    let metadata = frame(12, 1, &MetadataRequest::default());
    asker.send(&metadata).expect("it is sent");
    asker.expect_closed("a request that controllers do not serve");
}
