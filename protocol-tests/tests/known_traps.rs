//! Inputs that other brokers were reported to have got wrong, by their ids in the project's list; what
//! is expected is what Apache Kafka 4.1.2 does. Which id is covered where is told in the README.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopicConfig, CreateTopicsRequest};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, DeleteRecordsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeTopicPartitionsRequest, FetchRequest,
    MetadataRequest, ResponseHeader, TransactionalId,
};
use kafka_protocol::protocol::{Decodable, StrBytes};
use protocol_tests::tools::python;
use protocol_tests::wire::{
    Connection, batch, create_topics, fetch, frame, list_offsets, metadata, produce, raw_frame,
    topic_name,
};
use protocol_tests::{Broker, Kind};
use uuid::Uuid;

#[test]
fn batches_that_no_library_makes_are_stored_or_refused_as_by_kafka() {
    python("batches.py", &Broker::start(), &[]);
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// Kafka needs a moment before a new topic has its leader.
fn topic(connection: &mut Connection, name: &str, partitions: i32) -> Uuid {
    let id = connection.create_topic(name, partitions);
    for partition in 0..partitions {
        connection.end_offset(name, partition);
    }
    id
}

#[test]
fn versions_and_features_are_told_as_by_kafka() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);

    // B002: the refusal of a version has one row, in the oldest layout; and the connection goes on.
    connection.send(&raw_frame(18, 99, true, &[])).unwrap();
    let mut answer = connection.receive().unwrap().expect("an answer");
    ResponseHeader::decode(&mut answer, 0).unwrap();
    let refused = ApiVersionsResponse::decode(&mut answer, 0).unwrap();
    assert!(answer.is_empty());
    let rows = |answer: &ApiVersionsResponse| -> Vec<(i16, i16, i16)> {
        let rows = answer.api_keys.iter();
        rows.map(|row| (row.api_key, row.min_version, row.max_version))
            .collect()
    };
    assert_eq!((refused.error_code, rows(&refused)), (35, vec![(18, 0, 4)]));

    // B012: what is no name of a client.
    let named = |name: &str, version: &str| {
        ApiVersionsRequest::default()
            .with_client_software_name(text(name))
            .with_client_software_version(text(version))
    };
    for (name, version, error_code) in [
        ("bad name!", "1", 42),
        ("", "1", 42),
        ("good", "", 42),
        ("-bad", "1", 42),
        ("good.name-1", "1.2-beta.3", 0),
    ] {
        let answer = connection.ask(3, &named(name, version));
        assert_eq!(answer.error_code, error_code, "{name:?} {version:?}");
    }

    // B015: what is finalized, on a new node.
    let answer = connection.ask(4, &named("good", "1"));
    let mut finalized: Vec<(String, i16, i16)> = answer
        .finalized_features
        .iter()
        .map(|row| {
            (
                row.name.to_string(),
                row.min_version_level,
                row.max_version_level,
            )
        })
        .collect();
    finalized.sort();
    let wanted = [
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("metadata.version", 27),
        ("transaction.version", 2),
    ];
    let wanted = wanted.map(|(name, level)| (name.to_owned(), level, level));
    assert_eq!(finalized, wanted);
    assert!(answer.finalized_features_epoch >= 0);

    // B004, B091, B108: versions of old end the connection; Metadata 0 is still served.
    for (key, version) in [(0, 0), (0, 2), (1, 2), (1, 3), (2, 0), (19, 1)] {
        let mut old = Connection::open(&broker);
        old.send(&raw_frame(key, version, false, &[0; 40])).unwrap();
        old.expect_closed(&format!("api {key} v{version}"));
    }
    let all = MetadataRequest::default().with_topics(Some(Vec::new()));
    assert_eq!(connection.ask(0, &all).brokers.len(), 1);
}

fn correlation_id(answer: &Bytes) -> i32 {
    i32::from_be_bytes(answer[..4].try_into().unwrap())
}

#[test]
fn answers_come_in_the_order_of_their_requests() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "there", 1);

    // B009: the first waits for half a second, the others are ready.
    let waiting = fetch("there", 0).with_max_wait_ms(500);
    let mut frames = frame(12, 1, &waiting);
    for number in 2..=20 {
        frames.extend(frame(9, number, &metadata("there")));
    }
    connection.send(&frames).unwrap();
    let ids: Vec<i32> = (0..20)
        .map(|_| correlation_id(&connection.receive().unwrap().expect("an answer")))
        .collect();
    assert_eq!(ids, (1..=20).collect::<Vec<i32>>());

    // B010: without acks nothing is answered, and the next answer is not held up.
    let silent = produce("there", 0, &[b"silent"]);
    let frames = [frame(9, 21, &silent), frame(9, 22, &metadata("there"))].concat();
    connection.send(&frames).unwrap();
    let answer = connection.receive().unwrap().expect("an answer");
    assert_eq!(correlation_id(&answer), 22);
    assert_eq!(
        connection.fetch("there", 0),
        [(0, Bytes::from_static(b"silent"))]
    );
    // What cannot be answered ends the connection.
    let missing = produce("missing", 0, &[b"silent"]);
    connection.send(&frame(9, 23, &missing)).unwrap();
    connection.expect_closed("a refusal that has no answer");

    // B229: a fetch is woken by what it waits for.
    let mut reader = Connection::open(&broker);
    let mut writer = Connection::open(&broker);
    thread::scope(|scope| {
        let read = scope.spawn(move || {
            let got = reader.fetch("there", 1);
            (got, Instant::now())
        });
        thread::park_timeout(Duration::from_millis(200));
        writer.produce("there", -1, &[b"awaited"]);
        let written = Instant::now();
        let (got, at) = read.join().unwrap();
        assert_eq!(got, [(1, Bytes::from_static(b"awaited"))]);
        assert!(at.saturating_duration_since(written) < Duration::from_millis(500));
    });
}

#[test]
fn metadata_is_told_as_by_kafka() {
    let broker = Broker::start_with(&[("num.partitions", "2")]);
    let mut connection = Connection::open(&broker);

    // B025: without topics, the cluster all the same.
    let none = MetadataRequest::default().with_topics(Some(Vec::new()));
    let answer = connection.ask(5, &none);
    assert_eq!((answer.brokers.len(), answer.topics.len()), (1, 0));
    assert_eq!(answer.controller_id.0, 1);
    let described = connection.ask(0, &DescribeClusterRequest::default());
    assert_eq!(answer.cluster_id, Some(described.cluster_id));
    assert_eq!(described.controller_id.0, 1);

    // B018: both sides agree to make it.
    let wanted = |name: &str| {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        MetadataRequest::default()
            .with_topics(Some(vec![topic]))
            .with_allow_auto_topic_creation(true)
    };
    let first = connection.ask(8, &wanted("fresh")).topics[0].error_code;
    assert!([0, 3, 5].contains(&first), "{first}");
    assert_eq!(connection.describe("fresh").1, 2);
    let answer = connection.ask(8, &wanted("a b"));
    assert_eq!(answer.topics[0].error_code, 17);
    // B024: a row with an error has no partitions.
    assert!(answer.topics[0].partitions.is_empty());

    // B022: an id for life, and a new one for the next life.
    let id = topic(&mut connection, "known", 1);
    assert!(!id.is_nil());
    assert_eq!(connection.describe("known").0, id);
    assert_eq!(connection.describe("known").0, id);
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(vec![TopicRequest::default().with_name(topic_name("known"))])
        .with_response_partition_limit(10);
    assert_eq!(connection.ask(0, &request).topics[0].topic_id, id);
    delete(&mut connection, "known");
    assert_ne!(topic(&mut connection, "known", 1), id);

    // B020: one node has no gap between a topic and its leader.
    if broker.kind() == Kind::Barnabas {
        for number in 0..200 {
            let name = format!("at-once-{number}");
            connection.create_topic(&name, 1);
            let answer = connection.ask(9, &metadata(&name));
            let row = &answer.topics[0];
            assert_eq!((row.error_code, row.partitions.len()), (0, 1));
            let partition = &row.partitions[0];
            assert_eq!((partition.error_code, partition.leader_id.0), (0, 1));
        }
    }
}

#[test]
fn pages_of_topic_partitions_come_to_an_end() {
    // B027
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let names = ["c", "a", "b"];
    for name in names {
        topic(&mut connection, name, 5);
    }
    let mut cursor: Option<Cursor> = None;
    let mut rows = Vec::new();
    for _ in 0..20 {
        let topics = names.map(|name| TopicRequest::default().with_name(topic_name(name)));
        let request = DescribeTopicPartitionsRequest::default()
            .with_topics(topics.to_vec())
            .with_response_partition_limit(1)
            .with_cursor(cursor.take());
        let answer = connection.ask(0, &request);
        for row in &answer.topics {
            assert_eq!(row.error_code, 0);
            let name = row.name.as_ref().unwrap().to_string();
            let partitions = row.partitions.iter();
            rows.extend(partitions.map(|partition| (name.clone(), partition.partition_index)));
        }
        let Some(next) = answer.next_cursor else {
            break;
        };
        cursor = Some(
            Cursor::default()
                .with_topic_name(next.topic_name)
                .with_partition_index(next.partition_index),
        );
    }
    let wanted: Vec<(String, i32)> = ["a", "b", "c"]
        .iter()
        .flat_map(|name| (0..5).map(|partition| ((*name).to_owned(), partition)))
        .collect();
    assert_eq!(rows, wanted);
}

#[test]
fn produce_is_refused_as_by_kafka() {
    let broker = Broker::start_with(&[("auto.create.topics.enable", "false")]);
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "there", 1);
    let mut error = |acks: i16, topic: &str, partition: i32| {
        let mut request = produce(topic, acks, &[b"x"]);
        request.topic_data[0].partition_data[0].index = partition;
        connection.ask(9, &request).responses[0].partition_responses[0].error_code
    };
    // B037
    for acks in [2, -2, i16::MAX] {
        assert_eq!(error(acks, "there", 0), 21, "acks {acks}");
    }
    // B048
    assert_eq!(error(-1, "there", 99), 3);
    assert_eq!(error(-1, "there", -1), 3);
    assert_eq!(error(-1, "missing", 0), 3);
    assert_eq!(connection.end_offset("there", 0), 0);

    // B038: no more replicas can be asked for than there are.
    let configs = [("min.insync.replicas", Some("2"))];
    create(&mut connection, "low", &configs, false, 0);
    connection.end_offset("low", 0);
    assert_eq!(connection.produce("low", -1, &[b"x"]), 0);
    assert_eq!(connection.produce("low", 1, &[b"x"]), 1);
}

#[test]
fn a_transactional_id_does_not_make_records_transactional() {
    // B050
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "there", 1);
    let id = TransactionalId(text("some-id"));
    let request = produce("there", -1, &[b"plain"]).with_transactional_id(Some(id));
    let row = &connection.ask(9, &request).responses[0].partition_responses[0];
    assert_eq!((row.error_code, row.base_offset), (0, 0));
}

#[test]
fn internal_topics_are_written_to_by_tools_only() {
    // B055
    let broker = Broker::start_with(&[("auto.create.topics.enable", "false")]);
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "__consumer_offsets", 1);
    let request = produce("__consumer_offsets", -1, &[b"x"]);
    for (client, error_code) in [("x", 17), ("__admin_client", 0), ("__admin_client2", 17)] {
        let answer = connection.ask_as(client, 9, &request);
        let row = &answer.responses[0].partition_responses[0];
        assert_eq!(row.error_code, error_code, "{client}");
    }
    assert_eq!(connection.end_offset("__consumer_offsets", 0), 1);
}

#[test]
fn a_log_may_begin_within_a_batch() {
    // B109
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "there", 1);
    let values: Vec<Vec<u8>> = (0..10_u8).map(|number| vec![number; 50]).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    connection.produce("there", -1, &values);
    let partition = DeleteRecordsPartition::default().with_offset(3);
    let deleted = DeleteRecordsTopic::default()
        .with_name(topic_name("there"))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![deleted])
        .with_timeout_ms(10_000);
    let answer = connection.ask(2, &request);
    let row = &answer.topics[0].partitions[0];
    assert_eq!((row.error_code, row.low_watermark), (0, 3));
    for (offset, error_code, length) in [(3, 0, batch(&values).len()), (2, 1, 0)] {
        let answer = connection.ask(12, &fetch("there", offset).with_max_wait_ms(10));
        let row = &answer.responses[0].partitions[0];
        let records = row.records.as_ref().map_or(0, Bytes::len);
        assert_eq!((row.error_code, records), (error_code, length), "{offset}");
        if error_code == 0 {
            assert_eq!(row.log_start_offset, 3);
        }
    }
    let answer = connection.ask(7, &list_offsets("there", 0, -2));
    assert_eq!(answer.topics[0].partitions[0].offset, 3);
    assert_eq!(connection.produce("there", -1, &[b"next"]), 10);
}

#[test]
fn fetch_has_no_error_that_a_consumer_does_not_know() {
    // B097: of a partition, Java's consumer knows these and throws at all others.
    const KNOWN: [i16; 14] = [-1, 0, 1, 2, 3, 6, 9, 29, 56, 74, 75, 78, 100, 103];
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let id = topic(&mut connection, "there", 1);
    connection.produce("there", -1, &[b"x"]);
    let of = |change: &dyn Fn(&mut FetchPartition)| {
        let mut request = fetch("there", 0).with_max_wait_ms(10);
        change(&mut request.topics[0].partitions[0]);
        request
    };
    let requests: [(&str, FetchRequest, i16); 6] = [
        ("beyond", of(&|one| one.fetch_offset = 9), 1),
        ("no partition", of(&|one| one.partition = 7), 3),
        (
            "an old epoch",
            of(&|one| one.current_leader_epoch = i32::MIN),
            0,
        ),
        (
            "an epoch to come",
            of(&|one| one.current_leader_epoch = 99),
            75,
        ),
        ("no topic", fetch("missing", 0), 3),
        (
            "an epoch that was never",
            of(&|one| one.last_fetched_epoch = 98),
            1,
        ),
    ];
    for (what, request, wanted) in requests {
        let answer = connection.ask(12, &request);
        let row = &answer.responses[0].partitions[0];
        assert_eq!((answer.error_code, row.error_code), (0, wanted), "{what}");
        assert!(KNOWN.contains(&row.error_code), "{what}");
    }
    let mut by_id = fetch("", 0).with_max_wait_ms(10);
    for (topic_id, wanted) in [(id, 0), (Uuid::from_u128(9), 100), (Uuid::nil(), 100)] {
        by_id.topics[0].topic_id = topic_id;
        let answer = connection.ask(15, &by_id);
        let row = &answer.responses[0].partitions[0];
        assert_eq!(
            (answer.error_code, row.error_code),
            (0, wanted),
            "{topic_id}"
        );
    }
}

#[test]
fn fetch_returns_a_batch_that_is_larger_than_every_limit() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let configs = [("max.message.bytes", Some("67108864"))];
    create(&mut connection, "large", &configs, false, 0);
    connection.end_offset("large", 0);
    // B053, B093
    let large = vec![7; 20 << 20];
    assert_eq!(connection.produce("large", -1, &[&large]), 0);
    assert_eq!(connection.produce("large", -1, &[b"small"]), 1);
    let mut request = fetch("large", 0).with_max_bytes(1);
    request.topics[0].partitions[0].partition_max_bytes = 1;
    let mut ask = |request: FetchRequest| {
        let answer = connection.ask(12, &request);
        let row = &answer.responses[0].partitions[0];
        (row.error_code, row.records.clone().unwrap_or_default())
    };
    let (error_code, records) = ask(request);
    assert_eq!(error_code, 0);
    let whole = batch(&[&large]).len();
    assert_eq!(records.len(), whole, "one batch");

    // B094: the first batch comes whole; of the next one a part, or nothing.
    let mut request = fetch("large", 0);
    request.topics[0].partitions[0].partition_max_bytes = i32::try_from(whole + 10).unwrap();
    let (_, records) = ask(request);
    assert!(
        (whole..=whole + 10).contains(&records.len()),
        "{}",
        records.len()
    );
    // Of two partitions that have too much, the first is served.
    connection.create_topic("two", 2);
    let data = |index: i32| {
        let records = batch(&[&vec![7; 500_000]]);
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(records))
    };
    for partition in 0..2 {
        connection.end_offset("two", partition);
    }
    let mut request = produce("two", -1, &[]);
    request.topic_data[0].partition_data = vec![data(0), data(1)];
    let answer = connection.ask(9, &request);
    assert!(
        answer.responses[0]
            .partition_responses
            .iter()
            .all(|row| row.error_code == 0)
    );
    let mut request = fetch("two", 0).with_max_bytes(1);
    let second = request.topics[0].partitions[0].clone().with_partition(1);
    request.topics[0].partitions.push(second);
    let answer = connection.ask(12, &request);
    let lengths: Vec<usize> = answer.responses[0]
        .partitions
        .iter()
        .map(|row| row.records.as_ref().map_or(0, Bytes::len))
        .collect();
    assert!(lengths[0] > 500_000 && lengths[1] == 0, "{lengths:?}");
}

#[test]
fn fetch_beyond_the_ends_names_the_partition() {
    // B095, B096
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "there", 3);
    connection.produce("there", -1, &[b"one", b"two"]);
    let mut request = fetch("there", 0);
    let of = |partition: i32, offset: i64| -> FetchPartition {
        let row = fetch("there", offset).topics[0].partitions[0].clone();
        row.with_partition(partition)
    };
    request.topics[0].partitions = vec![of(0, 1), of(1, 1), of(2, 0), of(9, 0)];
    let answer = connection.ask(12, &request);
    let rows: Vec<(i32, i16, i64, i64, i64, bool)> = answer.responses[0]
        .partitions
        .iter()
        .map(|row| {
            let empty = row.records.as_ref().is_none_or(Bytes::is_empty);
            (
                row.partition_index,
                row.error_code,
                row.high_watermark,
                row.last_stable_offset,
                row.log_start_offset,
                empty,
            )
        })
        .collect();
    let wanted = [
        (0, 0, 2, 2, 0, false),
        (1, 1, -1, -1, -1, true),
        (2, 0, 0, 0, 0, true),
        (9, 3, -1, -1, -1, true),
    ];
    assert_eq!(rows, wanted);
    for (offset, error_code) in [(2, 0), (3, 1), (-1, 1), (i64::MAX, 1)] {
        let answer = connection.ask(12, &fetch("there", offset).with_max_wait_ms(10));
        let row = &answer.responses[0].partitions[0];
        assert_eq!(row.error_code, error_code, "at {offset}");
        assert!(
            row.records.as_ref().is_none_or(Bytes::is_empty),
            "at {offset}"
        );
    }
}

#[test]
fn one_fetch_reads_twelve_hundred_partitions() {
    // B105
    const EACH: i32 = 300;
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let topics = match broker.kind() {
        Kind::Barnabas => ["w1", "w2", "w3", "w4"].as_slice(),
        // It takes its time to make them, and the test is proved by fewer.
        Kind::ApacheKafka => &["w1"],
    };
    let mut request = fetch("none", 0);
    let first = request.topics[0].partitions[0].clone();
    request.topics.clear();
    for name in topics {
        topic(&mut connection, name, EACH);
        let mut wide = produce(name, -1, &[]);
        wide.topic_data[0].partition_data = (0..EACH)
            .map(|index| {
                let records = batch(&[&index.to_be_bytes()]);
                PartitionProduceData::default()
                    .with_index(index)
                    .with_records(Some(records))
            })
            .collect();
        let answer = connection.ask(9, &wide);
        let rows = &answer.responses[0].partition_responses;
        assert!(rows.iter().all(|row| row.error_code == 0));
        let mut all = fetch(name, 0).topics.remove(0);
        all.partitions = (0..EACH)
            .map(|partition| first.clone().with_partition(partition))
            .collect();
        request.topics.push(all);
    }
    let answer = connection.ask(12, &request);
    let rows = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let has_records = |row: &&PartitionData| {
        let records = row.records.as_ref();
        records.is_some_and(|records| !records.is_empty())
    };
    assert_eq!(rows.filter(has_records).count(), 300 * topics.len());
}

#[test]
fn list_offsets_knows_its_versions_and_refuses_twins() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    topic(&mut connection, "there", 1);
    connection.produce("there", -1, &[b"x"]);
    // B088: special times, and the version that brought each.
    for (timestamp, since, wanted) in [(-3, 7, 0), (-4, 8, 0), (-5, 9, -1)] {
        for version in [since - 1, since] {
            let answer = connection.ask(version, &list_offsets("there", 0, timestamp));
            let row = &answer.topics[0].partitions[0];
            let wanted = if version < since {
                (35, -1)
            } else {
                (0, wanted)
            };
            assert_eq!(
                (row.error_code, row.offset),
                wanted,
                "{timestamp} in v{version}"
            );
        }
    }
    for timestamp in [-6, -7, i64::MIN] {
        let answer = connection.ask(10, &list_offsets("there", 0, timestamp));
        assert_eq!(answer.topics[0].partitions[0].error_code, 35, "{timestamp}");
    }
    // B091
    let mut request = list_offsets("there", 0, -1);
    let twin = request.topics[0].partitions[0].clone();
    request.topics[0].partitions.push(twin);
    let answer = connection.ask(6, &request);
    let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    assert!(partitions.clone().count() > 0);
    for row in partitions {
        assert_eq!(row.error_code, 42);
    }
}

fn create_request(
    name: &str,
    configs: &[(&str, Option<&str>)],
    only_check: bool,
) -> CreateTopicsRequest {
    let mut request = create_topics(name, 1).with_validate_only(only_check);
    request.topics[0].configs = configs
        .iter()
        .map(|(key, value)| {
            CreatableTopicConfig::default()
                .with_name(text(key))
                .with_value(value.map(text))
        })
        .collect();
    request
}

#[track_caller]
fn create(
    connection: &mut Connection,
    name: &str,
    configs: &[(&str, Option<&str>)],
    only_check: bool,
    error_code: i16,
) -> Option<StrBytes> {
    let answer = connection.ask(7, &create_request(name, configs, only_check));
    let row = &answer.topics[0];
    assert_eq!(
        row.error_code, error_code,
        "{name} {configs:?}: {:?}",
        row.error_message
    );
    row.error_message.clone()
}

fn delete(connection: &mut Connection, name: &str) {
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![
            DeleteTopicState::default().with_name(Some(topic_name(name))),
        ])
        .with_timeout_ms(10_000);
    assert_eq!(
        connection.ask(6, &request).responses[0].error_code,
        0,
        "{name}"
    );
}

#[test]
fn topics_are_made_and_refused_as_by_kafka() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    // B166: a bad literal is an answer that names the key.
    for (key, value) in [
        ("compression.type", "foo"),
        ("cleanup.policy", "foo"),
        ("message.timestamp.type", "x"),
        ("retention.ms", "abc"),
        ("foo.bar", "1"),
        // B081
        ("segment.bytes", "10"),
        ("segment.ms", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.insync.replicas", "0"),
        ("unclean.leader.election.enable", "maybe"),
        ("max.message.bytes", "99999999999"),
        ("retention.ms", ""),
        ("leader.replication.throttled.replicas", "1-2"),
    ] {
        for only_check in [true, false] {
            let said = create(
                &mut connection,
                "refused",
                &[(key, Some(value))],
                only_check,
                40,
            );
            let said = said.expect("a message");
            assert!(said.contains(key), "{key}={value}: {said}");
        }
    }
    // B168
    create(
        &mut connection,
        "refused",
        &[("retention.ms", None)],
        false,
        40,
    );
    // B081: the least that is allowed.
    for (key, value) in [("segment.bytes", "1048576"), ("segment.ms", "1")] {
        create(&mut connection, key, &[(key, Some(value))], false, 0);
    }
    // B165: to check is not to do.
    create(&mut connection, "checked", &[], true, 0);
    create(&mut connection, "checked", &[], false, 0);
    create(&mut connection, "checked", &[], true, 36);
    // B164
    create(&mut connection, "dots.and_under", &[], false, 0);
    create(&mut connection, "dots_and.under", &[], false, 17);
    // B182
    for name in ["", ".", "..", "a/b", "a b", &"x".repeat(250)] {
        create(&mut connection, name, &[], false, 17);
    }
    // B174: made and deleted again and again.
    for _ in 0..50 {
        create(&mut connection, "again", &[], false, 0);
        delete(&mut connection, "again");
    }
    let mut error = |name: Option<&str>, id: Uuid| {
        let state = DeleteTopicState::default()
            .with_name(name.map(topic_name))
            .with_topic_id(id);
        let request = DeleteTopicsRequest::default()
            .with_topics(vec![state])
            .with_timeout_ms(10_000);
        let answer = connection.ask(6, &request);
        answer.responses.first().map(|row| row.error_code)
    };
    assert_eq!(error(Some("missing"), Uuid::nil()), Some(3));
    assert_eq!(error(None, Uuid::from_u128(7)), Some(100));
    assert_eq!(error(Some("checked"), Uuid::from_u128(7)), Some(42));
    assert_eq!(error(None, Uuid::nil()), Some(42));
    assert_eq!(connection.describe("checked").1, 1);
}

#[test]
fn configs_are_described_as_by_kafka() {
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let compact = [("cleanup.policy", Some("compact"))];
    create(&mut connection, "compacted", &compact, false, 0);
    connection.end_offset("compacted", 0);
    let mut describe = |kind: i8, name: &str, keys: Option<Vec<&str>>| {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configuration_keys(keys.map(|keys| keys.into_iter().map(text).collect()));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let answer = connection.ask(4, &request);
        answer.results[0].clone()
    };
    // B173
    let found = describe(2, "compacted", Some(vec!["cleanup.policy", "retention.ms"]));
    let rows: Vec<(String, Option<String>, i8)> = found
        .configs
        .iter()
        .map(|row| {
            let value = row.value.as_ref().map(ToString::to_string);
            (row.name.to_string(), value, row.config_source)
        })
        .collect();
    let row =
        |name: &str, value: &str, source: i8| (name.to_owned(), Some(value.to_owned()), source);
    let wanted = [
        row("cleanup.policy", "compact", 1),
        row("retention.ms", "604800000", 5),
    ];
    assert_eq!(rows.len(), 2);
    for row in wanted {
        assert!(rows.contains(&row), "{row:?} is not in {rows:?}");
    }
    // B171: all of them.
    assert_eq!(describe(2, "compacted", None).configs.len(), 33);
    assert!(describe(4, "1", None).configs.len() > 200);
    // B172
    for (kind, name, error_code) in [
        (2, "nope", 3),
        (4, "99", 42),
        (4, "abc", 42),
        (2, "a b", 17),
        (2, "", 17),
    ] {
        let found = describe(kind, name, None);
        assert_eq!(found.error_code, error_code, "{kind} {name:?}");
        assert!(found.configs.is_empty());
    }
    assert_eq!(describe(77, "x", None).error_code, 42);
}

#[test]
fn an_idle_connection_is_ended_in_order() {
    // B223
    let broker = Broker::start_with(&[("connections.max.idle.ms", "1500")]);
    let mut connection = Connection::open(&broker);
    connection.api_versions();
    let start = Instant::now();
    connection.expect_closed("a while of nothing");
    let waited = start.elapsed();
    assert!(
        (Duration::from_millis(1400)..Duration::from_secs(8)).contains(&waited),
        "{waited:?}"
    );
}
