//! Several log directories: where partitions are made, replicas that move between them while they are
//! written to, directories that are full, that fail, that cannot be used at the start.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kafka_protocol::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{
    AlterReplicaLogDirsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
};
use kafka_protocol::protocol::StrBytes;
use protocol_tests::tools::stock_tool;
use protocol_tests::wire::{Connection, produce, topic_name};
use protocol_tests::{Broker, Kind, only_barnabas, topics};

const LIMIT: Duration = Duration::from_secs(60);

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const INVALID_TOPIC: i16 = 17;
const KAFKA_STORAGE_ERROR: i16 = 56;
const LOG_DIR_NOT_FOUND: i16 = 57;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A broker with directories `data`, where the metadata is, and `other`.
fn prepare(settings: &[(&str, &str)]) -> Broker {
    let mut broker = Broker::prepare(settings);
    let dirs = format!("{},{}", broker.data().display(), other(&broker).display());
    broker.set("log.dirs", &dirs);
    broker
}

fn start(settings: &[(&str, &str)]) -> Broker {
    let mut broker = prepare(settings);
    broker.restart();
    broker
}

fn other(broker: &Broker) -> PathBuf {
    broker.folder().join("other")
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Asks for the move of partition 0 of a topic.
fn alter(asker: &mut Connection, topic: &str, to: &str) -> i16 {
    let topic = AlterReplicaLogDirTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![0]);
    let dir = AlterReplicaLogDir::default()
        .with_path(text(to))
        .with_topics(vec![topic]);
    let request = AlterReplicaLogDirsRequest::default().with_dirs(vec![dir]);
    asker.ask(2, &request).results[0].partitions[0].error_code
}

/// A replica as DescribeLogDirs tells of it.
#[derive(Clone, Debug, PartialEq)]
struct Replica {
    lag: i64,
    is_future: bool,
}

/// What is in a directory, by topic and partition; or its error.
type Described = Result<BTreeMap<(String, i32), Vec<Replica>>, i16>;

fn describe(asker: &mut Connection) -> BTreeMap<String, Described> {
    let request = DescribeLogDirsRequest::default().with_topics(None);
    let answer = asker.ask(4, &request);
    let mut dirs = BTreeMap::new();
    for dir in answer.results {
        let mut replicas: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for topic in &dir.topics {
            for one in &topic.partitions {
                let replica = Replica {
                    lag: one.offset_lag,
                    is_future: one.is_future_key,
                };
                let key = (topic.name.to_string(), one.partition_index);
                replicas.entry(key).or_default().push(replica);
            }
        }
        let described = match dir.error_code {
            0 => Ok(replicas),
            code => Err(code),
        };
        let path = Path::new(dir.log_dir.as_str()).file_name().unwrap();
        dirs.insert(path.to_string_lossy().into_owned(), described);
    }
    dirs
}

/// Where partition 0 of a topic is, and whether a copy of it is on its way.
fn whereabouts(asker: &mut Connection, topic: &str) -> (Option<String>, bool) {
    let mut place = None;
    let mut moves = false;
    for (dir, described) in describe(asker) {
        let replicas = described.unwrap_or_default();
        for replica in replicas.get(&(topic.to_owned(), 0)).into_iter().flatten() {
            match replica.is_future {
                true => moves = true,
                false => place = Some(dir.clone()),
            }
        }
    }
    (place, moves)
}

#[track_caller]
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[track_caller]
fn wait_moved(asker: &mut Connection, topic: &str, to: &str) {
    let arrived = (Some(to.to_owned()), false);
    wait(&format!("{topic} is in {to}"), || {
        whereabouts(asker, topic) == arrived
    });
}

/// Waits until the partition has its leader, which after a kill may take a moment.
#[track_caller]
fn wait_led(asker: &mut Connection, topic: &str) {
    let request = protocol_tests::wire::metadata(topic);
    wait("a leader", || {
        let answer = asker.ask(7, &request);
        let partition = answer.topics[0].partitions.first();
        partition.is_some_and(|partition| partition.leader_id.0 == 1)
    });
}

fn produced(asker: &mut Connection, topic: &str, value: &[u8]) -> i16 {
    let answer = asker.ask(9, &produce(topic, -1, &[value]));
    answer.responses[0].partition_responses[0].error_code
}

fn create(asker: &mut Connection, topic: &str, options: &[(&str, &str)]) {
    let request = topics::request(topic, 1, options);
    assert_eq!(asker.ask(7, &request).topics[0].error_code, 0);
    wait("the topic is there", || {
        whereabouts(asker, topic).0.is_some()
    });
}

/// Values from the log's start on, all of them.
fn all(asker: &mut Connection, topic: &str) -> Vec<String> {
    let end = asker.end_offset(topic, 0);
    let mut values = Vec::new();
    while i64::try_from(values.len()).unwrap() < end {
        let at = i64::try_from(values.len()).unwrap();
        let found = asker.fetch(topic, at);
        assert!(!found.is_empty(), "nothing at {at} of {end}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let found = found.into_iter().filter(|(offset, _)| *offset >= at);
        values.extend(found.map(|(_, value)| text(&value)));
    }
    values
}

fn folders(dir: &Path, topic: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(topic)).collect();
    names.sort();
    names
}

#[test]
fn a_partition_is_made_where_the_fewest_are_and_the_metadata_knows() {
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    for topic in ["ta", "tb", "tc"] {
        create(&mut asker, topic, &[]);
    }
    let places: Vec<_> = ["ta", "tb", "tc"]
        .map(|topic| whereabouts(&mut asker, topic).0.unwrap())
        .to_vec();
    assert_eq!(places, ["data", "other", "data"]);
    let id = |path: &Path| {
        let text = fs::read_to_string(path.join("meta.properties")).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("directory.id="));
        line.unwrap().trim().to_owned()
    };
    let (first, second) = (id(&broker.data()), id(&other(&broker)));
    assert_eq!(alter(&mut asker, "tc", shown(&other(&broker))), 0);
    wait_moved(&mut asker, "tc", "other");
    broker.stop();
    let log = broker
        .data()
        .join("__cluster_metadata-0/00000000000000000000.log");
    let arguments = ["--cluster-metadata-decoder", "--files", shown(&log)];
    let dump = stock_tool("kafka-dump-log", &arguments, b"").expect_success();
    let dump = dump.text();
    let word = |line: &str, label: &str| {
        let rest = line.split_once(label)?.1;
        Some(rest.split('"').next()?.to_owned())
    };
    // What is said of a partition last counts.
    let mut places = BTreeMap::new();
    for line in dump
        .lines()
        .filter(|line| line.contains("PARTITION_CHANGE_RECORD"))
    {
        let topic = word(line, "\"topicId\":\"");
        if let (Some(topic), Some(place)) = (topic, word(line, "\"directories\":[\"")) {
            places.insert(topic, place);
        }
    }
    let topics = dump
        .lines()
        .filter(|line| line.contains("\"TOPIC_RECORD\""));
    let places: Vec<_> = topics
        .filter_map(|line| {
            let id = word(line, "\"topicId\":\"")?;
            Some((word(line, "\"name\":\"")?, places.get(&id)?.clone()))
        })
        .collect();
    let expected = [("ta", &first), ("tb", &second), ("tc", &second)];
    let expected = expected.map(|(topic, id)| (topic.to_owned(), id.clone()));
    assert_eq!(places, expected, "{dump}");
}

#[test]
fn the_errors_of_a_move_are_kafkas() {
    let broker = start(&[("auto.create.topics.enable", "false")]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "ta", &[]);
    let (data, other) = (broker.data(), other(&broker));
    let (data, other) = (shown(&data), shown(&other));
    assert_eq!(alter(&mut asker, "ta", "/nowhere"), LOG_DIR_NOT_FOUND);
    assert_eq!(alter(&mut asker, "ta", "other"), LOG_DIR_NOT_FOUND);
    assert_eq!(alter(&mut asker, "ta", ""), LOG_DIR_NOT_FOUND);
    let slash = format!("{other}/");
    assert_eq!(alter(&mut asker, "ta", &slash), LOG_DIR_NOT_FOUND);
    assert_eq!(alter(&mut asker, "ta", data), 0, "it is there");
    let long = "x".repeat(249);
    assert_eq!(alter(&mut asker, &long, other), INVALID_TOPIC);
    assert_eq!(alter(&mut asker, &long, "/nowhere"), INVALID_TOPIC);
    assert_eq!(
        alter(&mut asker, "unborn", other),
        UNKNOWN_TOPIC_OR_PARTITION
    );
    create(&mut asker, "unborn", &[]);
    let place = whereabouts(&mut asker, "unborn").0;
    assert_eq!(place.as_deref(), Some("other"), "it was remembered");
    create(&mut asker, "next", &[]);
    create(&mut asker, "and-next", &[]);
    assert_eq!(
        alter(&mut asker, "twice", other),
        UNKNOWN_TOPIC_OR_PARTITION
    );
    assert_eq!(alter(&mut asker, "twice", data), UNKNOWN_TOPIC_OR_PARTITION);
    create(&mut asker, "twice", &[]);
    let place = whereabouts(&mut asker, "twice").0;
    assert_eq!(place.as_deref(), Some("data"), "the last wish counts");
}

#[test]
fn a_replica_moves_while_it_is_written_and_outlives_kills() {
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "moving", &[("segment.bytes", "1048576")]);
    let mut expected = Vec::new();
    let mut write = |asker: &mut Connection, count: usize| {
        for _ in 0..count {
            let value = format!("{:06}{}", expected.len(), "x".repeat(20_000));
            assert_eq!(produced(asker, "moving", value.as_bytes()), 0);
            expected.push(value);
        }
        expected.clone()
    };
    let both = [other(&broker), broker.data()];
    write(&mut asker, 150);
    for to in both.iter().chain(&both) {
        assert_eq!(alter(&mut asker, "moving", shown(to)), 0);
        write(&mut asker, 20);
        let name = to.file_name().unwrap().to_string_lossy();
        wait_moved(&mut asker, "moving", &name);
        write(&mut asker, 5);
    }
    assert_eq!(all(&mut asker, "moving"), write(&mut asker, 0));
    for round in 0..4 {
        let to = &both[round % 2];
        assert_eq!(alter(&mut asker, "moving", shown(to)), 0);
        let written = write(&mut asker, 4 * round);
        broker.kill();
        broker.restart();
        asker = Connection::open(&broker);
        wait_led(&mut asker, "moving");
        assert_eq!(all(&mut asker, "moving"), written, "round {round}");
        assert_eq!(alter(&mut asker, "moving", shown(to)), 0);
        let name = to.file_name().unwrap().to_string_lossy();
        wait_moved(&mut asker, "moving", &name);
        assert_eq!(all(&mut asker, "moving"), written, "round {round}");
    }
    let live = |dir: &Path| {
        let names = folders(dir, "moving-0");
        names.iter().filter(|name| *name == "moving-0").count()
    };
    assert_eq!(live(&both[0]) + live(&both[1]), 1);
    broker.stop();
    let folder = both.iter().map(|dir| dir.join("moving-0"));
    let folder = folder.into_iter().find(|path| path.exists()).unwrap();
    let paths = fs::read_dir(folder).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    let files: Vec<String> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "log" || end == "index")
        })
        .map(|path| shown(&path).to_owned())
        .collect();
    let files = files.join(",");
    let arguments = ["--deep-iteration", "--files", &files];
    let dump = stock_tool("kafka-dump-log", &arguments, b"").expect_success();
    let dump = dump.text();
    assert!(
        dump.contains("isvalid: true") && !dump.contains("Found"),
        "{dump}"
    );
}

/// Sets how fast replicas may move.
/// A segment of magic 0 and 1 with offsets 0 to 5, as Kafka wrote it.
const OLD: &[u8] = include_bytes!("../../src/log/testdata/magic0-1.log");

#[test]
fn batches_of_old_formats_move_as_they_are() {
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "old", &[]);
    let (first, _) = whereabouts(&mut asker, "old");
    broker.stop();
    let (data, other) = (broker.data(), other(&broker));
    let (from, to) = match first.as_deref() {
        Some("other") => (other, data),
        _ => (data, other),
    };
    for name in folders(&from.join("old-0"), "0") {
        fs::remove_file(from.join("old-0").join(name)).unwrap();
    }
    let segment = "old-0/00000000000000000000.log";
    fs::write(from.join(segment), OLD).unwrap();
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait_led(&mut asker, "old");
    let fetched = |asker: &mut Connection| {
        let answer = asker.ask(12, &protocol_tests::wire::fetch("old", 0));
        answer.responses[0].partitions[0].records.clone()
    };
    assert_eq!(fetched(&mut asker).as_deref(), Some(OLD));
    assert_eq!(alter(&mut asker, "old", shown(&to)), 0);
    let name = to.file_name().unwrap().to_string_lossy();
    wait_moved(&mut asker, "old", &name);
    assert_eq!(fetched(&mut asker).as_deref(), Some(OLD));
    assert_eq!(asker.end_offset("old", 0), 6);
    assert_eq!(produced(&mut asker, "old", b"new"), 0);
    broker.stop();
    assert!(fs::read(to.join(segment)).unwrap().starts_with(OLD));
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait_led(&mut asker, "old");
    assert_eq!(asker.end_offset("old", 0), 7);
}

fn throttle(asker: &mut Connection, bytes_per_second: &str) {
    let config = AlterableConfig::default()
        .with_name(text("replica.alter.log.dirs.io.max.bytes.per.second"))
        .with_value(Some(text(bytes_per_second)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(4)
        .with_resource_name(text("1"))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    assert_eq!(asker.ask(1, &request).responses[0].error_code, 0);
}

#[test]
fn a_slow_move_is_seen_given_up_and_ended_with_its_topic() {
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "slow", &[]);
    let value = vec![b'x'; 500_000];
    for _ in 0..10 {
        assert_eq!(produced(&mut asker, "slow", &value), 0);
    }
    throttle(&mut asker, "1");
    let (data, other) = (broker.data(), other(&broker));
    let copy_of = |asker: &mut Connection| {
        let described = describe(asker);
        let replicas = described["other"].clone().unwrap();
        let slow = replicas.get(&("slow".to_owned(), 0));
        slow.map(|replicas| replicas[0].clone())
    };
    assert_eq!(alter(&mut asker, "slow", shown(&other)), 0);
    wait("some of it is copied", || {
        copy_of(&mut asker).is_some_and(|copy| copy.is_future && (1..10).contains(&copy.lag))
    });
    assert_eq!(whereabouts(&mut asker, "slow").0.as_deref(), Some("data"));
    assert_eq!(alter(&mut asker, "slow", shown(&other)), 0, "it goes on");
    let future = folders(&other, "slow-0");
    assert!(future[0].ends_with("-future"), "{future:?}");
    assert_eq!(future[0].len(), "slow-0.".len() + 32 + "-future".len());

    assert_eq!(alter(&mut asker, "slow", shown(&data)), 0, "given up");
    assert_eq!(copy_of(&mut asker), None);
    assert!(
        folders(&other, "slow-0")
            .iter()
            .all(|name| name.ends_with("-delete")),
        "{:?}",
        folders(&other, "slow-0")
    );

    assert_eq!(alter(&mut asker, "slow", shown(&other)), 0);
    broker.stop();
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait("the move goes on after a restart", || {
        copy_of(&mut asker).is_some_and(|copy| copy.is_future)
    });
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("slow")])
        .with_timeout_ms(20_000);
    assert_eq!(asker.ask(5, &request).responses[0].error_code, 0);
    wait("its copy goes with the topic", || {
        let (data, other) = (folders(&data, "slow-0"), folders(&other, "slow-0"));
        let mut names = data.iter().chain(&other);
        names.all(|name| name.ends_with("-delete"))
    });
    create(&mut asker, "slow", &[]);
    assert_eq!(produced(&mut asker, "slow", b"new"), 0);
}

#[test]
fn a_directory_that_cannot_be_used_at_the_start_takes_its_partitions_along() {
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    for topic in ["ta", "tb"] {
        create(&mut asker, topic, &[]);
        assert_eq!(produced(&mut asker, topic, b"kept"), 0);
    }
    let other = other(&broker);
    // The metadata is told in the background.
    assert!(asker.is_silent(Duration::from_millis(300)));
    broker.stop();
    let aside = broker.folder().join("aside");
    fs::rename(&other, &aside).unwrap();
    fs::write(&other, "no directory").unwrap();
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait("the other is led", || {
        produced(&mut asker, "ta", b"more") == 0
    });
    // Apache Kafka does not know then that the partition should be here.
    let refused = match broker.kind() {
        Kind::Barnabas => KAFKA_STORAGE_ERROR,
        Kind::ApacheKafka => NOT_LEADER_OR_FOLLOWER,
    };
    assert_eq!(produced(&mut asker, "tb", b"lost"), refused);
    let described = describe(&mut asker);
    assert_eq!(described["other"], Err(KAFKA_STORAGE_ERROR));
    assert!(described["data"].is_ok());
    assert_eq!(alter(&mut asker, "ta", shown(&other)), KAFKA_STORAGE_ERROR);
    if broker.kind() == Kind::Barnabas {
        assert_eq!(
            alter(&mut asker, "tb", shown(&broker.data())),
            KAFKA_STORAGE_ERROR
        );
    }
    create(&mut asker, "tc", &[]);
    assert_eq!(produced(&mut asker, "tc", b"new"), 0);
    broker.stop();
    fs::remove_file(&other).unwrap();
    fs::rename(&aside, &other).unwrap();
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait("it is led again", || {
        produced(&mut asker, "tb", b"again") == 0
    });
    assert_eq!(all(&mut asker, "tb"), ["kept", "again"]);
}

#[test]
fn a_directory_that_fails_while_it_runs_takes_its_partitions_along() {
    let broker = start(&[]);
    let mut asker = Connection::open(&broker);
    let small = [("segment.bytes", "1048576")];
    for topic in ["ta", "tb"] {
        create(&mut asker, topic, &small);
        assert_eq!(produced(&mut asker, topic, b"kept"), 0);
    }
    let other = other(&broker);
    // What is open goes on, what is to be made cannot be.
    fs::rename(&other, broker.folder().join("aside")).unwrap();
    let value = vec![b'x'; 600_000];
    let mut code = 0;
    for _ in 0..4 {
        code = produced(&mut asker, "tb", &value);
        if code != 0 {
            break;
        }
    }
    assert_eq!(code, KAFKA_STORAGE_ERROR);
    wait("the directory is out of use", || {
        describe(&mut asker)["other"] == Err(KAFKA_STORAGE_ERROR)
    });
    assert_eq!(produced(&mut asker, "tb", b"lost"), KAFKA_STORAGE_ERROR);
    for _ in 0..4 {
        assert_eq!(produced(&mut asker, "ta", &value), 0);
    }
    let request = protocol_tests::wire::metadata("tb");
    wait("the cluster knows", || {
        let answer = asker.ask(7, &request);
        let partition = &answer.topics[0].partitions[0];
        partition.leader_id.0 == -1 && partition.offline_replicas.len() == 1
    });
    create(&mut asker, "tc", &[]);
    assert_eq!(produced(&mut asker, "tc", b"new"), 0);
}

#[test]
fn a_new_partition_is_made_elsewhere_when_its_directory_fails() {
    if !only_barnabas() {
        // Apache Kafka answers KAFKA_STORAGE_ERROR until it is started again.
        return;
    }
    let broker = start(&[]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "ta", &[]);
    fs::rename(other(&broker), broker.folder().join("aside")).unwrap();
    create(&mut asker, "tb", &[]);
    wait_led(&mut asker, "tb");
    assert_eq!(produced(&mut asker, "tb", b"kept"), 0);
    let place = whereabouts(&mut asker, "tb").0;
    assert_eq!(place.as_deref(), Some("data"));
    wait("the directory is out of use", || {
        describe(&mut asker)["other"] == Err(KAFKA_STORAGE_ERROR)
    });
}

#[test]
fn a_folder_that_is_taken_away_concerns_its_partition_alone() {
    if !only_barnabas() {
        // Apache Kafka ends with the next segment.
        return;
    }
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    for topic in ["ta", "tb", "tc"] {
        create(&mut asker, topic, &[("segment.bytes", "1048576")]);
        assert_eq!(produced(&mut asker, topic, b"kept"), 0);
    }
    fs::remove_dir_all(broker.data().join("ta-0")).unwrap();
    let value = vec![b'x'; 600_000];
    wait("the next segment is begun", || {
        produced(&mut asker, "ta", &value) == KAFKA_STORAGE_ERROR
    });
    assert_eq!(produced(&mut asker, "tc", b"kept"), 0);
    assert_eq!(produced(&mut asker, "tb", b"kept"), 0);
    assert_eq!(produced(&mut asker, "ta", b"lost"), KAFKA_STORAGE_ERROR);
    broker.stop();
    broker.restart();
    let mut asker = Connection::open(&broker);
    for (topic, kept) in [("ta", 0), ("tb", 2), ("tc", 2)] {
        wait_led(&mut asker, topic);
        assert_eq!(all(&mut asker, topic).len(), kept);
        assert_eq!(produced(&mut asker, topic, b"new"), 0);
    }
}

#[test]
fn a_directory_that_lost_its_id_is_served_under_another() {
    if !only_barnabas() {
        // Apache Kafka does not start before it is formatted again.
        return;
    }
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    for topic in ["ta", "tb"] {
        create(&mut asker, topic, &[]);
        assert_eq!(produced(&mut asker, topic, b"kept"), 0);
    }
    broker.stop();
    for dir in [broker.data(), other(&broker)] {
        fs::remove_file(dir.join("meta.properties")).unwrap();
        broker.restart();
        let mut asker = Connection::open(&broker);
        for topic in ["ta", "tb"] {
            wait_led(&mut asker, topic);
            assert_eq!(all(&mut asker, topic), ["kept"]);
        }
        broker.stop();
    }
}

#[test]
fn a_damaged_log_is_refused_alone() {
    if !only_barnabas() {
        // Apache Kafka does not start with either of these.
        return;
    }
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    for topic in ["ta", "tb", "tc"] {
        create(&mut asker, topic, &[]);
        assert_eq!(produced(&mut asker, topic, b"kept"), 0);
    }
    broker.stop();
    // The length of the first batch, and whose the log is.
    let log = broker.data().join("ta-0/00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[8] = 0x80;
    fs::write(&log, bytes).unwrap();
    fs::write(broker.data().join("tc-0/partition.metadata"), "x").unwrap();
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait_led(&mut asker, "tb");
    assert_eq!(all(&mut asker, "tb"), ["kept"]);
    for topic in ["ta", "tc"] {
        assert_eq!(produced(&mut asker, topic, b"more"), KAFKA_STORAGE_ERROR);
    }
    assert!(broker.story().contains("a log is damaged"));
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("tc")])
        .with_timeout_ms(10_000);
    assert_eq!(asker.ask(3, &request).responses[0].error_code, 0);
    wait("it is gone", || {
        folders(&broker.data(), "tc-0")
            .iter()
            .all(|name| name.ends_with("-delete"))
    });
    broker.stop();
}

#[test]
fn the_failure_of_the_metadata_directory_ends_the_node() {
    let broker = start(&[]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "ta", &[("segment.bytes", "1048576")]);
    fs::rename(broker.data(), broker.folder().join("aside")).unwrap();
    let value = vec![b'x'; 600_000];
    for _ in 0..4 {
        let request = protocol_tests::wire::frame(9, 7, &produce("ta", -1, &[&value]));
        if asker.send(&request).is_err() || !matches!(asker.receive(), Ok(Some(_))) {
            break;
        }
    }
    wait("the node has ended", || !broker.is_alive());
    fs::create_dir_all(broker.data()).unwrap();
    if broker.kind() == Kind::Barnabas {
        assert!(
            broker.story().contains("metadata log"),
            "{}",
            broker.story()
        );
        // A disk that is not mounted is no new cluster.
        fs::rename(
            broker.folder().join("aside"),
            broker.folder().join("aside2"),
        )
        .unwrap();
        broker.process().wait_exit(LIMIT);
    }
}

/// A file system in memory, for as long as it is held.
struct Small(PathBuf);

impl Small {
    fn mount(path: &Path, size: &str) -> Self {
        fs::create_dir_all(path).unwrap();
        let option = format!("size={size}");
        run_as_root(&["mount", "-t", "tmpfs", "-o", &option, "tmpfs", shown(path)]);
        Self(path.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run_as_root(&["umount", "-l", shown(&self.0)]);
    }
}

fn run_as_root(words: &[&str]) {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let words = match is_root {
        true => words.to_vec(),
        false => [&["sudo", "-n"], words].concat(),
    };
    let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(
        status.success(),
        "{words:?}: the tests run as root or with sudo"
    );
}

fn delete_records(asker: &mut Connection, topic: &str) -> i16 {
    let partition = DeleteRecordsPartition::default().with_offset(-1);
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(20_000);
    asker.ask(2, &request).topics[0].partitions[0].error_code
}

#[test]
fn a_full_disk_refuses_records_and_takes_them_again_once_there_is_room() {
    if !only_barnabas() {
        // Apache Kafka takes the directory out of use, and ends when it was the last.
        return;
    }
    let mut broker = Broker::prepare(&[("log.index.size.max.bytes", "4096")]);
    let small = Small::mount(&broker.data(), "16m");
    broker.restart();
    let mut asker = Connection::open(&broker);
    let options = [("segment.bytes", "1048576"), ("file.delete.delay.ms", "0")];
    create(&mut asker, "full", &options);
    let value = |at: usize| format!("{at:06}{}", "x".repeat(100_000));
    let mut count = 0;
    let fill = |asker: &mut Connection, count: &mut usize| loop {
        match produced(asker, "full", value(*count).as_bytes()) {
            0 => *count += 1,
            code => {
                assert_eq!(code, KAFKA_STORAGE_ERROR);
                return;
            }
        }
    };
    fill(&mut asker, &mut count);
    assert!(count > 50, "{count}");
    for _ in 0..20 {
        assert_eq!(
            produced(&mut asker, "full", value(count).as_bytes()),
            KAFKA_STORAGE_ERROR
        );
    }
    assert!(describe(&mut asker)["data"].is_ok());
    let expected: Vec<String> = (0..count).map(value).collect();
    assert_eq!(
        all(&mut asker, "full"),
        expected,
        "all that was acknowledged"
    );
    assert_eq!(asker.end_offset("full", 0), i64::try_from(count).unwrap());
    assert_eq!(delete_records(&mut asker, "full"), 0);
    wait("there is room again", || {
        produced(&mut asker, "full", b"room") == 0
    });
    broker.stop();
    broker.restart();
    let mut asker = Connection::open(&broker);
    let end = usize::try_from(asker.end_offset("full", 0)).unwrap();
    assert_eq!(end, count + 1);
    let last = asker.fetch("full", i64::try_from(count).unwrap());
    assert_eq!(last[0].1, "room");
    drop(small);
}

#[test]
fn a_new_partition_is_made_where_there_is_room() {
    if !only_barnabas() {
        // Apache Kafka takes the full directory out of use.
        return;
    }
    let mut broker = prepare(&[]);
    let small = Small::mount(&other(&broker), "1m");
    broker.restart();
    let filling = other(&broker).join("filling");
    let mut file = fs::File::create(&filling).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let mut asker = Connection::open(&broker);
    for topic in ["ta", "tb", "tc"] {
        create(&mut asker, topic, &[]);
        let place = whereabouts(&mut asker, topic).0;
        assert_eq!(place.as_deref(), Some("data"));
        assert_eq!(produced(&mut asker, topic, b"kept"), 0);
    }
    drop(file);
    fs::remove_file(&filling).unwrap();
    create(&mut asker, "td", &[]);
    let place = whereabouts(&mut asker, "td").0;
    assert_eq!(place.as_deref(), Some("other"));
    broker.stop();
    drop(small);
}

/// Starts a node that must not start; what it said.
#[track_caller]
fn refused(broker: &mut Broker) -> String {
    broker.launch();
    let (exit, said) = broker.ended();
    assert_eq!(exit.code(), Some(1), "{said}");
    said
}

fn rewrite(dir: &Path, key: &str, value: &str) {
    let path = dir.join("meta.properties");
    let text = fs::read_to_string(&path).unwrap();
    let line = |line: &str| match line.split_once('=') {
        Some((name, _)) if name == key => format!("{key}={value}\n"),
        _ => format!("{line}\n"),
    };
    fs::write(&path, text.lines().map(line).collect::<String>()).unwrap();
}

fn property(dir: &Path, key: &str) -> String {
    let text = fs::read_to_string(dir.join("meta.properties")).unwrap();
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let found = lines.find(|(name, _)| *name == key);
    found.expect("it is set").1.to_owned()
}

#[test]
fn directories_of_others_are_refused_in_kafkas_words() {
    for (key, value) in [
        ("cluster.id", "QmFybmFiYXNGaXh0dXJlMQ"),
        ("node.id", "2"),
        ("directory.id", "same"),
    ] {
        let mut broker = start(&[]);
        broker.stop();
        let (data, other) = (broker.data(), other(&broker));
        let own = property(&data, key);
        let value = if value == "same" { &own } else { value };
        rewrite(&other, key, value);
        let said = refused(&mut broker);
        let (file, shown_data, shown_other) =
            (other.join("meta.properties"), shown(&data), shown(&other));
        let file = shown(&file);
        let words = match key {
            "cluster.id" => {
                format!("Invalid cluster.id in: {file}. Expected {own}, but read {value}")
            }
            "node.id" => format!("Stored node id 2 doesn't match previous node id 1 in {file}."),
            _ => format!("found. It was the ID of {shown_data}, but also of {shown_other}"),
        };
        assert!(said.contains(&words), "{words}\n{said}");
    }
}

#[test]
fn a_directory_that_is_in_use_or_given_twice_is_refused() {
    let broker = start(&[]);
    let mut second = Broker::prepare(&[]);
    if second.kind() == Kind::ApacheKafka {
        second.write_properties();
    }
    let own = second.data();
    second.restart();
    second.stop();
    let theirs = other(&broker);
    let id = property(&theirs, "cluster.id");
    rewrite(&own, "cluster.id", &id);
    second.set("log.dirs", &format!("{},{}", shown(&own), shown(&theirs)));
    let said = refused(&mut second);
    let words = format!(
        "Failed to acquire lock on file .lock in {}. A Kafka instance in another process or thread \
         is using this directory.",
        shown(&theirs)
    );
    assert!(said.contains(&words), "{said}");
    let twice = format!("{},{}/", shown(&own), shown(&own));
    let mut third = Broker::prepare(&[]);
    third.set("log.dirs", &format!("{0},{0}/.", shown(&third.data())));
    if third.kind() == Kind::Barnabas {
        let said = refused(&mut third);
        assert!(
            said.contains("Duplicate log directory found: "),
            "{twice} {said}"
        );
    }
}

#[test]
fn nothing_starts_where_no_directory_can_be_used() {
    if !only_barnabas() {
        return;
    }
    let mut broker = prepare(&[]);
    for path in [broker.data(), other(&broker)] {
        fs::write(path, "no directory").unwrap();
    }
    let said = refused(&mut broker);
    let data = broker.data();
    assert!(said.contains("metadata log directory"), "{said}");
    assert!(said.contains(shown(&data)), "{said}");

    // A disk that is not mounted holds no new cluster.
    let mut broker = start(&[]);
    broker.stop();
    fs::remove_dir_all(broker.data()).unwrap();
    fs::create_dir(broker.data()).unwrap();
    let said = refused(&mut broker);
    assert!(said.contains("No `meta.properties` found in"), "{said}");
    assert!(fs::read_dir(broker.data()).unwrap().next().is_none());
}

#[test]
fn a_new_node_that_ended_at_once_starts_again() {
    if !only_barnabas() {
        // Apache Kafka starts where a tool was run before.
        return;
    }
    let mut broker = prepare(&[]);
    let dirs = format!("{},{}", other(&broker).display(), broker.data().display());
    broker.set("log.dirs", &dirs);
    broker.set("metadata.log.dir", shown(&broker.data()));
    fs::write(broker.data(), "no directory").unwrap();
    let said = refused(&mut broker);
    assert!(said.contains("metadata log directory"), "{said}");
    assert!(!other(&broker).join("meta.properties").exists());
    fs::remove_file(broker.data()).unwrap();
    broker.restart();
    assert!(other(&broker).join("meta.properties").exists());
}

#[test]
fn a_directory_of_the_metadata_alone_is_locked_and_looked_at_as_the_others() {
    let metadata = |broker: &Broker| broker.folder().join("metadata");
    let mut broker = Broker::prepare(&[]);
    let path = metadata(&broker);
    broker.set("metadata.log.dir", shown(&path));
    broker.restart();
    let mut second = Broker::prepare(&[]);
    second.set("metadata.log.dir", shown(&path));
    if second.kind() == Kind::Barnabas {
        let said = refused(&mut second);
        let words = format!(
            "Failed to acquire lock on file .lock in {}. A Kafka instance in another process or \
             thread is using this directory.",
            shown(&path)
        );
        assert!(said.contains(&words), "{said}");
    }
    broker.stop();
    assert!(!path.join(".lock").exists());
    rewrite(&path, "node.id", "2");
    let said = refused(&mut broker);
    assert!(said.contains("Stored node id 2 doesn't match"), "{said}");
    rewrite(&path, "node.id", "1");
    let own = property(&broker.data(), "directory.id");
    rewrite(&path, "directory.id", &own);
    let said = refused(&mut broker);
    assert!(said.contains("Duplicate directory ID"), "{said}");
}

#[test]
fn foreign_folders_in_a_directory_do_no_harm() {
    if !only_barnabas() {
        // Apache Kafka does not start beside them.
        return;
    }
    let mut broker = start(&[]);
    let mut asker = Connection::open(&broker);
    create(&mut asker, "a.b-delete", &[]);
    assert_eq!(produced(&mut asker, "a.b-delete", b"kept"), 0);
    broker.stop();
    // Trap B220.
    fs::create_dir(other(&broker).join("lost+found")).unwrap();
    fs::create_dir(broker.data().join("lost+found")).unwrap();
    broker.restart();
    let mut asker = Connection::open(&broker);
    wait("a leader", || {
        produced(&mut asker, "a.b-delete", b"more") == 0
    });
    assert_eq!(all(&mut asker, "a.b-delete"), ["kept", "more"]);
    assert!(other(&broker).join("lost+found").exists());
}
