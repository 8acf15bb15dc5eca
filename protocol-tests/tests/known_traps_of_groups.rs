//! Reports about classic groups and offsets, by their ids in the project's list, where the words on
//! the wire matter; the rules themselves have stories beside the machine.

use std::time::Duration;

use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use protocol_tests::tools::stock_tool;
use protocol_tests::wire::{Connection, frame, topic_name};
use protocol_tests::{Broker, Kind};

const OFFSETS_TOPIC: &[(&str, &str)] = &[
    ("offsets.topic.replication.factor", "1"),
    ("offsets.topic.num.partitions", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
];

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group(name: &str) -> GroupId {
    GroupId(text(name))
}

/// A connection on which the coordinator is known to be there, and the topic `t` with five
/// partitions.
fn connected(broker: &Broker) -> Connection {
    let mut asker = Connection::open(broker);
    asker.create_topic("t", 5);
    let find = FindCoordinatorRequest::default().with_key(text("g"));
    let beat = HeartbeatRequest::default()
        .with_group_id(group("g"))
        .with_member_id(text("nobody"));
    // Kafka makes the topics meanwhile: not available, loading, not here, not known.
    while asker.ask(2, &find).error_code == 15
        || [14, 15, 16].contains(&asker.ask(3, &beat).error_code)
        || committed(&mut asker, 8, &commit(8, &[(4, 0, None)])) == [3]
    {
        assert!(asker.is_silent(Duration::from_millis(50)));
    }
    asker
}

fn commit(version: i16, partitions: &[(i32, i64, Option<String>)]) -> OffsetCommitRequest {
    let partitions = partitions.iter().map(|(index, offset, metadata)| {
        let mut partition = offset_commit_request::OffsetCommitRequestPartition::default()
            .with_partition_index(*index)
            .with_committed_offset(*offset)
            .with_committed_metadata(metadata.as_deref().map(text));
        if version >= 6 {
            partition.committed_leader_epoch = 7;
        }
        partition
    });
    let topic = offset_commit_request::OffsetCommitRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(partitions.collect());
    OffsetCommitRequest::default()
        .with_group_id(group("g"))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic])
}

/// The codes of a commit's partitions, in their order.
fn committed(asker: &mut Connection, version: i16, request: &OffsetCommitRequest) -> Vec<i16> {
    let answer = asker.ask(version, request);
    let partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    // Kafka answers what it does not know first.
    let mut codes: Vec<_> = partitions
        .map(|it| (it.partition_index, it.error_code))
        .collect();
    codes.sort_unstable();
    codes.into_iter().map(|(_, code)| code).collect()
}

/// One partition in an answer: number, offset, leader epoch, metadata, code.
type Fetched = (i32, i64, i32, Option<String>, i16);

/// What is told of a group's offsets in any version, `None` for all topics; and the group's code.
fn fetched(
    asker: &mut Connection,
    version: i16,
    of: &str,
    partitions: Option<&[i32]>,
) -> (Vec<Fetched>, i16) {
    let words = |metadata: Option<StrBytes>| metadata.map(|metadata| metadata.to_string());
    if version >= 8 {
        let topics = partitions.map(|partitions| {
            let topic = offset_fetch_request::OffsetFetchRequestTopics::default()
                .with_name(topic_name("t"))
                .with_partition_indexes(partitions.to_vec());
            vec![topic]
        });
        let one = offset_fetch_request::OffsetFetchRequestGroup::default()
            .with_group_id(group(of))
            .with_topics(topics);
        let request = OffsetFetchRequest::default().with_groups(vec![one]);
        let answer = asker.ask(version, &request).groups.remove(0);
        let told = answer.topics.into_iter().flat_map(|topic| topic.partitions);
        let told = told.map(|it| {
            let epoch = it.committed_leader_epoch;
            (
                it.partition_index,
                it.committed_offset,
                epoch,
                words(it.metadata),
                it.error_code,
            )
        });
        return (told.collect(), answer.error_code);
    }
    let topics = partitions.map(|partitions| {
        let topic = offset_fetch_request::OffsetFetchRequestTopic::default()
            .with_name(topic_name("t"))
            .with_partition_indexes(partitions.to_vec());
        vec![topic]
    });
    let request = OffsetFetchRequest::default()
        .with_group_id(group(of))
        .with_topics(topics);
    let answer = asker.ask(version, &request);
    let told = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    let told = told.map(|it| {
        let epoch = it.committed_leader_epoch;
        (
            it.partition_index,
            it.committed_offset,
            epoch,
            words(it.metadata),
            it.error_code,
        )
    });
    (told.collect(), answer.error_code)
}

#[test]
fn what_is_committed_is_told_in_every_version() {
    let broker = Broker::start_with(OFFSETS_TOPIC);
    let mut asker = connected(&broker);
    let long = "x".repeat(4097);
    let some = |text: &str| Some(text.to_owned());
    for version in 2..=9 {
        // B120: as it was, null as nothing, too long for one partition alone.
        let partitions = [
            (0, 10, some("x \0 ünï")),
            (1, 11, None),
            (2, 12, some("")),
            (3, 13, Some(long.clone())),
            (9, 14, None),
        ];
        let request = commit(version, &partitions);
        assert_eq!(committed(&mut asker, version, &request), [0, 0, 0, 12, 3]);
    }
    for version in 1..=9 {
        let epoch = if version >= 5 { 7 } else { -1 };
        let (told, code) = fetched(&mut asker, version, "g", Some(&[0, 1, 2, 3, 9]));
        // B121, B123
        let expected = [
            (0, 10, epoch, some("x \0 ünï"), 0),
            (1, 11, epoch, some(""), 0),
            (2, 12, epoch, some(""), 0),
            (3, -1, -1, some(""), 0),
            (9, -1, -1, some(""), 0),
        ];
        assert_eq!((told, code), (expected.to_vec(), 0), "version {version}");
        let (told, code) = fetched(&mut asker, version, "unknown", Some(&[0]));
        assert_eq!((told, code), (vec![(0, -1, -1, some(""), 0)], 0));
        if version >= 2 {
            let (mut told, _) = fetched(&mut asker, version, "g", None);
            told.sort();
            told.retain(|(partition, ..)| *partition < 4);
            assert_eq!(told, expected[..3]);
            assert_eq!(fetched(&mut asker, version, "unknown", None).0, []);
        }
    }
}

#[test]
fn without_a_coordinator_each_version_says_so_in_its_place() {
    let broker = Broker::start_with(OFFSETS_TOPIC);
    let mut asker = Connection::open(&broker);
    asker.create_topic("t", 1);
    // B122: nobody has asked for a coordinator yet, so that there is none.
    for version in 1..=9 {
        let (told, code) = fetched(&mut asker, version, "g", Some(&[0]));
        match version {
            1 => assert_eq!(told, [(0, -1, -1, Some(String::new()), 16)]),
            _ => assert_eq!((told, code), (Vec::new(), 16), "version {version}"),
        }
    }
}

fn join(of: &str, member: &str, session_timeout_ms: i32) -> JoinGroupRequest {
    let protocol = join_group_request::JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(vec![0, 1].into());
    JoinGroupRequest::default()
        .with_group_id(group(of))
        .with_member_id(text(member))
        .with_session_timeout_ms(session_timeout_ms)
        .with_rebalance_timeout_ms(6_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

#[test]
fn limits_have_their_codes() {
    let broker = Broker::start_with(OFFSETS_TOPIC);
    let mut asker = connected(&broker);
    // B131
    assert_eq!(asker.ask(5, &join("g", "", 1_000)).error_code, 26);
    assert_eq!(asker.ask(5, &join("g", "", 7_200_000)).error_code, 26);
    assert_eq!(asker.ask(5, &join("", "", 10_000)).error_code, 24);
    let long = "g".repeat(30_000);
    let told = asker.ask(5, &join(&long, "", 10_000));
    assert_eq!(told.error_code, 79);
    assert!(told.member_id.len() > 36);
    assert_eq!(
        asker.ask(5, &join(&long, "somebody", 10_000)).error_code,
        25
    );
}

#[test]
fn a_socket_that_closes_while_its_join_is_parked_holds_nobody_for_long() {
    let broker = Broker::start_with(OFFSETS_TOPIC);
    let mut asker = connected(&broker);
    // B115: a member joins, and joins again with a socket that is closed while it waits.
    let id = asker.ask(5, &join("g", "", 6_000)).member_id;
    let alone = asker.ask(5, &join("g", &id, 6_000));
    assert_eq!((alone.error_code, alone.generation_id), (0, 1));
    let mut other = Connection::open(&broker);
    let parked = other.ask(5, &join("g", "", 6_000)).member_id;
    let waiting = frame(5, 7, &join("g", &parked, 6_000));
    other.send(&waiting).unwrap();
    assert!(other.is_silent(Duration::from_millis(200)));
    drop(other);
    // Both are in the next generation; the one that is gone leaves it after its session.
    let second = asker.ask(5, &join("g", &id, 6_000));
    assert_eq!((second.error_code, second.members.len()), (0, 2));
    asker.patience(Duration::from_secs(20));
    let sync = SyncGroupRequest::default()
        .with_group_id(group("g"))
        .with_generation_id(2)
        .with_member_id(id.clone());
    assert_eq!(asker.ask(3, &sync).error_code, 0);
    let beat = HeartbeatRequest::default()
        .with_group_id(group("g"))
        .with_generation_id(2)
        .with_member_id(id.clone());
    while asker.ask(3, &beat).error_code == 0 {
        assert!(asker.is_silent(Duration::from_millis(100)));
    }
    let third = asker.ask(5, &join("g", &id, 6_000));
    assert_eq!((third.error_code, third.generation_id), (0, 3));
    assert_eq!(third.members.len(), 1);
}

#[test]
fn a_broker_that_stops_sends_those_away_who_wait_for_each_other() {
    let mut broker = Broker::start_with(OFFSETS_TOPIC);
    let mut asker = connected(&broker);
    let id = asker.ask(5, &join("g", "", 30_000)).member_id;
    assert_eq!(asker.ask(5, &join("g", &id, 30_000)).error_code, 0);
    let mut other = Connection::open(&broker);
    let second = other.ask(5, &join("g", "", 30_000)).member_id;
    other.patience(Duration::from_secs(20));
    let parked = frame(5, 7, &join("g", &second, 30_000));
    other.send(&parked).unwrap();
    assert!(other.is_silent(Duration::from_millis(200)));
    broker.stop();
    // NOT_COORDINATOR, or nothing at all: the client looks for another one.
    if let Ok(Some(answer)) = other.receive() {
        assert_eq!(&answer[8..10], [0, 16]);
    }
}

#[test]
fn only_partitions_that_hold_groups_have_folders() {
    let mut broker = Broker::start();
    if broker.kind() != Kind::Barnabas {
        println!("not run: Apache Kafka makes all of them");
        return;
    }
    let mut asker = Connection::open(&broker);
    let find = FindCoordinatorRequest::default().with_key(text("g"));
    assert_eq!(asker.ask(2, &find).error_code, 0);
    asker.create_topic("t", 1);
    let folders = |broker: &Broker| {
        let names = std::fs::read_dir(broker.data()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.starts_with("__consumer_offsets"))
            .count()
    };
    assert_eq!(folders(&broker), 0);
    let request = commit(8, &[(0, 5, None)]);
    assert_eq!(committed(&mut asker, 8, &request), [0]);
    assert_eq!(folders(&broker), 1);
    let logs = |asker: &mut Connection| {
        let request = DescribeLogDirsRequest::default().with_topics(None);
        let topics = asker.ask(1, &request).results.remove(0).topics;
        let ours = topics
            .into_iter()
            .find(|topic| &*topic.name.0 == "__consumer_offsets");
        ours.map_or(0, |topic| topic.partitions.len())
    };
    assert_eq!(logs(&mut asker), 50);
    broker.kill();
    broker.restart();
    let mut asker = Connection::open(&broker);
    assert_eq!(fetched(&mut asker, 8, "g", Some(&[0])).0[0].1, 5);
    assert_eq!((folders(&broker), logs(&mut asker)), (1, 50));
}

#[test]
fn an_unknown_member_is_told_so_where_its_version_has_the_place() {
    let broker = Broker::start_with(OFFSETS_TOPIC);
    let mut asker = connected(&broker);
    let commit = commit(8, &[(0, 5, None)]);
    assert_eq!(committed(&mut asker, 8, &commit), [0]);
    for version in 0..=5 {
        // B014: the answer is decoded to its last byte; the first version has no throttle time.
        let mut request = LeaveGroupRequest::default().with_group_id(group("g"));
        if version < 3 {
            request.member_id = text("nobody");
        } else {
            let one = leave_group_request::MemberIdentity::default();
            request.members = vec![one.with_member_id(text("nobody"))];
        }
        let answer = asker.ask(version, &request);
        let told = answer.members.iter().map(|member| member.error_code);
        let told = (answer.error_code, told.collect::<Vec<_>>());
        match version {
            ..3 => assert_eq!(told, (25, vec![]), "version {version}"),
            _ => assert_eq!(told, (0, vec![25]), "version {version}"),
        }
    }
}

#[test]
fn offsets_are_read_back_from_compressed_records() {
    // B065: the broker reads a topic of its own, whatever it was compressed with.
    let mut options = OFFSETS_TOPIC.to_vec();
    options.push(("offsets.topic.compression.codec", "4"));
    let mut broker = Broker::start_with(&options);
    let mut asker = connected(&broker);
    let first = commit(8, &[(0, 5, Some("zstd".to_owned()))]);
    assert_eq!(committed(&mut asker, 8, &first), [0]);
    compress(&mut asker, "gzip");
    let second = commit(8, &[(1, 6, Some("gzip".to_owned()))]);
    assert_eq!(committed(&mut asker, 8, &second), [0]);
    broker.kill();
    let log = broker
        .data()
        .join("__consumer_offsets-0/00000000000000000000.log");
    let dumped = stock_tool(
        "kafka-dump-log",
        &["--files", log.to_str().unwrap(), "--offsets-decoder"],
        b"",
    );
    let dumped = dumped.expect_success().text();
    for codec in ["compresscodec: zstd", "compresscodec: gzip"] {
        assert!(dumped.contains(codec), "{codec} in {dumped}");
    }
    broker.restart();
    let mut asker = Connection::open(&broker);
    let all = [(0, 5, "zstd"), (1, 6, "gzip")];
    let all = all.map(|(partition, offset, words)| (partition, offset, 7, Some(words.into()), 0));
    let told = loop {
        let (told, code) = fetched(&mut asker, 8, "g", Some(&[0, 1]));
        if ![14, 15, 16].contains(&code) {
            break told;
        }
        // Kafka has not loaded it yet.
        assert!(asker.is_silent(Duration::from_millis(50)));
    };
    assert_eq!(told, all);
}

/// How the topic of groups is compressed from now on.
fn compress(asker: &mut Connection, codec: &str) {
    let config = incremental_alter_configs_request::AlterableConfig::default()
        .with_name(text("compression.type"))
        .with_value(Some(text(codec)));
    let resource = incremental_alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("__consumer_offsets"))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    assert_eq!(asker.ask(1, &request).responses[0].error_code, 0);
}
