//! Consumer groups (KIP-848) by raw requests: those that Apache Kafka wrote, and reports of what
//! brokers got wrong with them, by their ids in the project's list.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kafka_protocol::messages::consumer_group_describe_response::{DescribedGroup, Member};
use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    FindCoordinatorRequest, GroupId, IncrementalAlterConfigsRequest, JoinGroupRequest,
    OffsetCommitRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;
use protocol_tests::process::run;
use protocol_tests::wire::{Connection, topic_name};
use protocol_tests::{Broker, only_barnabas};
use uuid::Uuid;

const SETTINGS: &[(&str, &str)] = &[
    ("offsets.topic.replication.factor", "1"),
    ("offsets.topic.num.partitions", "2"),
    ("group.initial.rebalance.delay.ms", "0"),
];

const FENCED_INSTANCE_ID: i16 = 82;
const FENCED_MEMBER_EPOCH: i16 = 110;
const UNKNOWN_MEMBER_ID: i16 = 25;
const UNRELEASED_INSTANCE_ID: i16 = 111;
const GROUP_ID_NOT_FOUND: i16 = 69;
const INVALID_CONFIG: i16 = 40;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group_id(name: &str) -> GroupId {
    GroupId(text(name))
}

/// A heartbeat that says nothing new.
fn beat(group: &str, member: &str, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(text(member))
        .with_member_epoch(epoch)
        .with_rebalance_timeout_ms(-1)
        .with_subscribed_topic_names(None)
        .with_topic_partitions(None)
}

fn join(group: &str, member: &str, topic: &str) -> ConsumerGroupHeartbeatRequest {
    beat(group, member, 0)
        .with_rebalance_timeout_ms(30_000)
        .with_subscribed_topic_names(Some(vec![topic_name(topic)]))
        .with_topic_partitions(Some(Vec::new()))
}

fn owned(topic: Uuid, partitions: &[i32]) -> Option<Vec<TopicPartitions>> {
    let topic = TopicPartitions::default()
        .with_topic_id(topic)
        .with_partitions(partitions.to_vec());
    Some(vec![topic])
}

/// Partitions of the one topic that a member is assigned.
fn assigned(answer: &ConsumerGroupHeartbeatResponse) -> Vec<i32> {
    let assignment = answer.assignment.as_ref().expect("an assignment");
    let topics = assignment.topic_partitions.iter();
    topics.flat_map(|topic| topic.partitions.clone()).collect()
}

/// A topic, and a coordinator that answers for this group.
fn begin(broker: &Broker, group: &str, partitions: i32) -> (Connection, Uuid) {
    let mut connection = Connection::open(broker);
    let topic = connection.create_topic("t", partitions);
    for partition in 0..partitions {
        connection.end_offset("t", partition);
    }
    find_coordinator(&mut connection, group);
    (connection, topic)
}

fn find_coordinator(connection: &mut Connection, group: &str) {
    loop {
        let find = FindCoordinatorRequest::default().with_coordinator_keys(vec![text(group)]);
        let found = connection.ask(4, &find).coordinators.remove(0).error_code;
        let mut is_there = || {
            // Kafka says where it is before it has loaded.
            let probe = beat("nobody", "nobody", 1).with_group_id(group_id(group));
            let code = connection.ask(1, &probe).error_code;
            code == GROUP_ID_NOT_FOUND || code == UNKNOWN_MEMBER_ID
        };
        if found == 0 && is_there() {
            return;
        }
    }
}

fn described(connection: &mut Connection, group: &str) -> DescribedGroup {
    let ask = ConsumerGroupDescribeRequest::default().with_group_ids(vec![group_id(group)]);
    connection.ask(1, &ask).groups.remove(0)
}

fn partitions_of(member: &Member) -> BTreeSet<(String, i32)> {
    let topics = member.assignment.topic_partitions.iter();
    topics
        .flat_map(|topic| {
            let name = topic.topic_name.to_string();
            let partitions = topic.partitions.iter();
            partitions.map(move |partition| (name.clone(), *partition))
        })
        .collect()
}

fn commit(connection: &mut Connection, group: &str, member: &Member, topic: &str) -> i16 {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(3)
        .with_committed_metadata(Some(text("once more")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let ask = OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(member.member_id.clone())
        .with_generation_id_or_member_epoch(member.member_epoch)
        .with_topics(vec![topic]);
    connection.ask(9, &ask).topics[0].partitions[0].error_code
}

/// A member that Kafka took in goes on as if nothing had happened: same epoch, same partitions, no
/// rebalance, which also shows that both hash the metadata of topics alike.
#[test]
fn members_that_kafka_wrote_go_on_where_they_were() {
    if !only_barnabas() {
        return;
    }
    let mut broker = Broker::prepare(&[
        ("broker.rack", "rack-a"),
        ("offsets.topic.num.partitions", "2"),
        ("log.retention.ms", "-1"),
        ("delegation.token.secret.key", "fixture-secret"),
        (
            "group.coordinator.rebalance.protocols",
            "classic,consumer,streams,share",
        ),
    ]);
    broker.speak_like_kafka();
    std::fs::create_dir(broker.data()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/log/testdata/clean.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(folder).arg("-C").arg(broker.data());
    run("tar", &mut tar, b"", Duration::from_secs(10)).expect_success();
    broker.restart();

    let mut connection = Connection::open(&broker);
    find_coordinator(&mut connection, "live-consumer");
    let empty = described(&mut connection, "consumer-group");
    assert_eq!((empty.error_code, &*empty.group_state), (0, "Empty"));
    let converted = described(&mut connection, "mixed-group");
    assert_eq!(converted.error_code, GROUP_ID_NOT_FOUND);

    let before = described(&mut connection, "live-consumer");
    assert_eq!((before.error_code, &*before.group_state), (0, "Stable"));
    let [member] = &before.members[..] else {
        panic!("{before:?}");
    };
    let all: BTreeSet<_> = (0..4)
        .map(|partition| ("grp".to_owned(), partition))
        .collect();
    assert_eq!(partitions_of(member), all);
    let goes_on = beat("live-consumer", &member.member_id, member.member_epoch);
    let answer = connection.ask(1, &goes_on);
    assert_eq!((answer.error_code, answer.assignment), (0, None));
    assert_eq!(answer.member_epoch, member.member_epoch);
    assert_eq!(commit(&mut connection, "live-consumer", member, "grp"), 0);

    // It lives through a restart of ours as well.
    broker.kill();
    broker.restart();
    let mut connection = Connection::open(&broker);
    find_coordinator(&mut connection, "live-consumer");
    let after = described(&mut connection, "live-consumer");
    assert_eq!(after.group_epoch, before.group_epoch);
    assert_eq!(partitions_of(&after.members[0]), all);
    assert_eq!(
        connection.ask(1, &goes_on).member_epoch,
        member.member_epoch
    );
}

#[test]
fn a_fenced_member_joins_again_under_its_id() {
    let broker = Broker::start_with(SETTINGS);
    let (mut connection, topic) = begin(&broker, "g", 2);
    assert_eq!(connection.ask(1, &join("g", "ann", "t")).member_epoch, 1);
    connection.ask(1, &join("g", "bob", "t"));
    let kept = assigned(&connection.ask(
        1,
        &beat("g", "ann", 1).with_topic_partitions(owned(topic, &[0, 1])),
    ));
    let told = beat("g", "ann", 1).with_topic_partitions(owned(topic, &kept));
    assert_eq!(connection.ask(1, &told).member_epoch, 2);

    // B137: an epoch of the past is fenced; the one before is not, for a member that owns no more
    // than it should and may have missed the answer.
    let old = connection.ask(1, &beat("g", "ann", 1));
    assert_eq!(old.error_code, FENCED_MEMBER_EPOCH, "B137");
    let missed = connection.ask(1, &told);
    assert_eq!((missed.error_code, missed.member_epoch), (0, 2), "B137");
    let ahead = connection.ask(1, &beat("g", "ann", 7));
    assert_eq!(ahead.error_code, FENCED_MEMBER_EPOCH, "B137");
    // Kafka 4.1.2 fences the rejoin too when the member is two epochs on, until its session ends;
    // we take it at once (KAFKA-19233).
    if only_barnabas() {
        let again = connection.ask(1, &join("g", "ann", "t"));
        assert_eq!((again.error_code, again.member_epoch), (0, 2), "B137");
        assert_eq!(assigned(&again), kept, "B137");
    }

    // B139: who leaves is gone at once, also with partitions in its hands.
    let left = connection.ask(1, &beat("g", "bob", -1));
    assert_eq!((left.error_code, left.member_epoch), (0, -1), "B139");
    let stale = connection.ask(1, &beat("g", "bob", 2));
    assert_eq!(stale.error_code, UNKNOWN_MEMBER_ID, "B139");
    let unknown = connection.ask(1, &beat("h", "bob", 2));
    assert_eq!(unknown.error_code, GROUP_ID_NOT_FOUND, "B139");
    let back = connection.ask(1, &join("g", "bob", "t"));
    assert_eq!((back.error_code, back.member_epoch), (0, 4), "B139");
}

fn static_classic(group: &str, member: &str) -> JoinGroupRequest {
    let mut metadata = vec![0, 1, 0, 0, 0, 1, 0, 1, b't'];
    metadata.extend([0xff; 4]);
    metadata.extend([0; 4]);
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(metadata.into());
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(text(member))
        .with_group_instance_id(Some(text("i")))
        .with_protocol_type(text("consumer"))
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(30_000)
        .with_protocols(vec![protocol])
}

#[test]
fn a_static_member_changes_its_protocol_in_its_place() {
    let broker = Broker::start_with(SETTINGS);
    let (mut connection, _) = begin(&broker, "g", 2);
    let joined = connection.ask(9, &static_classic("g", ""));
    assert_eq!(joined.error_code, 0);
    let mut all = vec![0, 1, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 2];
    all.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    all.extend([0xff; 4]);
    let assignment = SyncGroupRequestAssignment::default()
        .with_member_id(joined.member_id.clone())
        .with_assignment(all.into());
    let sync = SyncGroupRequest::default()
        .with_group_id(group_id("g"))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id)
        .with_group_instance_id(Some(text("i")))
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
        .with_assignments(vec![assignment]);
    assert_eq!(connection.ask(5, &sync).error_code, 0);

    // B138: the instance goes over to the new protocol without a farewell, and keeps what it had.
    let over = join("g", "new", "t").with_instance_id(Some(text("i")));
    let answer = connection.ask(1, &over);
    assert_eq!(answer.error_code, 0, "B138");
    assert_eq!(assigned(&answer).len(), 2, "B138");
    // Of two with the new protocol the first one stays, until it says that it goes.
    let third = join("g", "newer", "t").with_instance_id(Some(text("i")));
    let refused = connection.ask(1, &third);
    assert_eq!(refused.error_code, UNRELEASED_INSTANCE_ID, "B138");
    let away = beat("g", "new", -2).with_instance_id(Some(text("i")));
    assert_eq!(connection.ask(1, &away).member_epoch, -2, "B138");
    let taken = connection.ask(1, &third);
    assert_eq!(taken.error_code, 0, "B138");
    assert_eq!(assigned(&taken).len(), 2, "B138");
    let old = beat("g", "new", answer.member_epoch).with_instance_id(Some(text("i")));
    assert_eq!(
        connection.ask(1, &old).error_code,
        FENCED_INSTANCE_ID,
        "B138"
    );
    // And back again: the classic member takes the place, and the group is a classic one.
    let back = connection.ask(9, &static_classic("g", ""));
    assert_eq!(back.error_code, 0, "B138");
    let gone = described(&mut connection, "g");
    assert_eq!(gone.error_code, GROUP_ID_NOT_FOUND, "B138");
}

#[test]
fn a_group_has_intervals_of_its_own_within_bounds() {
    let broker = Broker::start_with(SETTINGS);
    let (mut connection, _) = begin(&broker, "g", 1);
    let mut set = |name: &str, value: &str| {
        let config = AlterableConfig::default()
            .with_name(text(name))
            .with_value(Some(text(value)));
        let resource = AlterConfigsResource::default()
            .with_resource_type(32)
            .with_resource_name(text("g"))
            .with_configs(vec![config]);
        let ask = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        connection.ask(1, &ask).responses[0].error_code
    };
    // B141: a session shorter than the interval, or outside of the broker's bounds.
    assert_eq!(
        set("consumer.session.timeout.ms", "4000"),
        INVALID_CONFIG,
        "B141"
    );
    assert_eq!(
        set("consumer.session.timeout.ms", "90000"),
        INVALID_CONFIG,
        "B141"
    );
    assert_eq!(
        set("consumer.heartbeat.interval.ms", "1"),
        INVALID_CONFIG,
        "B141"
    );
    assert_eq!(set("consumer.session.timeout.ms", "50000"), 0, "B141");
    assert_eq!(set("consumer.heartbeat.interval.ms", "6000"), 0, "B141");
    connection.ask(1, &join("g", "ann", "t"));
    // A broker hears of options a moment after they are set.
    let mut told = 0;
    for _ in 0..1000 {
        told = connection
            .ask(1, &beat("g", "ann", 1))
            .heartbeat_interval_ms;
        if told == 6000 {
            break;
        }
    }
    assert_eq!(told, 6000, "B141");
}
