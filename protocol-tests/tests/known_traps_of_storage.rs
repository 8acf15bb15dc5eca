//! Reports about logs that are compacted, trimmed and recovered, by their ids in the project's list;
//! what is expected is what Apache Kafka 4.1.2 does.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::{
    DeleteRecordsRequest, FindCoordinatorRequest, GroupId, OffsetCommitRequest, OffsetFetchRequest,
};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use protocol_tests::topics::{create, set};
use protocol_tests::wire::{Connection, fetch, list_offsets, produce, topic_name};
use protocol_tests::{Broker, Kind};

const LIMIT: Duration = Duration::from_secs(60);
const OUT_OF_RANGE: i16 = 1;

/// Cleans as soon as it can.
const EAGER: &[(&str, &str)] = &[
    ("log.cleaner.backoff.ms", "50"),
    ("log.retention.check.interval.ms", "100"),
    ("log.initial.task.delay.ms", "100"),
    ("log.message.timestamp.after.max.ms", "9223372036854775807"),
    ("offsets.topic.num.partitions", "1"),
    ("offsets.topic.replication.factor", "1"),
];

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A record with a key, of a producer or of none.
fn keyed(key: &str, value: Option<&str>, timestamp: i64, producer: Option<(i64, i32)>) -> Record {
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: producer.map_or(-1, |(id, _)| id),
        producer_epoch: if producer.is_some() { 0 } else { -1 },
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: producer.map_or(-1, |(_, sequence)| sequence),
        timestamp,
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())),
        headers: [(text("h"), Some(Bytes::copy_from_slice(key.as_bytes())))]
            .into_iter()
            .collect(),
    }
}

/// Sends one record in a batch of its own; the error and its offset.
fn send(client: &mut Connection, topic: &str, record: &Record) -> (i16, i64) {
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, [record], &options).unwrap();
    let mut request = produce(topic, -1, &[b""]);
    request.topic_data[0].partition_data[0].records = Some(bytes.freeze());
    let answer = client.ask(9, &request);
    let row = &answer.responses[0].partition_responses[0];
    (row.error_code, row.base_offset)
}

/// Everything from an offset to the end: offset, key, value, time.
type Row = (i64, String, Option<String>, i64);

fn read(client: &mut Connection, topic: &str, from: i64) -> Vec<Row> {
    let end = client.end_offset(topic, 0);
    let mut rows = Vec::new();
    let mut offset = from;
    while offset < end {
        let answer = client.ask(12, &fetch(topic, offset).with_max_wait_ms(100));
        let row = &answer.responses[0].partitions[0];
        assert_eq!(row.error_code, 0, "{topic} at {offset}");
        let mut bytes = row.records.clone().unwrap_or_default();
        let mut past = offset;
        let mut rest = &bytes[..];
        // Batches without records take the reader on as well.
        while let Some(header) = rest.get(..61) {
            let field = |at: usize| i32::from_be_bytes(header[at..at + 4].try_into().unwrap());
            let base = i64::from_be_bytes(header[..8].try_into().unwrap());
            past = past.max(base + i64::from(field(23)) + 1);
            rest = rest
                .get(12 + usize::try_from(field(8)).unwrap()..)
                .unwrap_or_default();
        }
        assert!(past > offset, "{topic}: nothing comes from {offset} on");
        let words =
            |bytes: Option<Bytes>| bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        for set in RecordBatchDecoder::decode_all(&mut bytes).unwrap() {
            for record in set
                .records
                .into_iter()
                .filter(|record| record.offset >= offset)
            {
                let header = record.headers.values().next().cloned().flatten();
                assert_eq!(header, record.key, "its header is its own");
                let key = words(record.key).unwrap_or_default();
                rows.push((record.offset, key, words(record.value), record.timestamp));
            }
        }
        offset = past;
    }
    rows
}

fn delete_before(client: &mut Connection, topic: &str, offset: i64) -> i64 {
    let partition = DeleteRecordsPartition::default().with_offset(offset);
    let deleted = DeleteRecordsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![deleted])
        .with_timeout_ms(10_000);
    let answer = client.ask(2, &request);
    let row = &answer.topics[0].partitions[0];
    assert_eq!(row.error_code, 0, "DeleteRecords before {offset}");
    row.low_watermark
}

/// How far a topic is compacted, as the checkpoint says.
fn cleaned_to(broker: &Broker, topic: &str) -> i64 {
    let path = broker.data().join("cleaner-offset-checkpoint");
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{topic} 0 ")));
    line.and_then(|offset| offset.parse().ok()).unwrap_or(-1)
}

#[track_caller]
fn until(broker: &Broker, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    let mut client = Connection::open(broker);
    while !is_so() {
        assert!(Instant::now() < end, "{what}\n{}", broker.story());
        client.api_versions();
    }
}

const COMPACTED: &[(&str, &str)] = &[
    ("cleanup.policy", "compact,delete"),
    ("retention.ms", "-1"),
    ("segment.ms", "1000"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("file.delete.delay.ms", "100"),
];

#[test]
fn a_log_trimmed_above_its_first_dirty_offset_is_compacted_from_its_start() {
    let broker = Broker::start_with(EAGER);
    let mut client = Connection::open(&broker);
    // B073, B076: each record closes a segment; four of five keys come again.
    create(&mut client, "trimmed", COMPACTED);
    set(
        &mut client,
        "trimmed",
        "min.compaction.lag.ms",
        "9000000000000",
    );
    let start = now_ms() - 1_000_000;
    for n in 0..20 {
        let record = keyed(
            &format!("k{}", n % 5),
            Some(&format!("v{n}")),
            start + n * 2000,
            None,
        );
        assert_eq!(send(&mut client, "trimmed", &record), (0, n));
    }
    assert_eq!(delete_before(&mut client, "trimmed", 10), 10);
    set(&mut client, "trimmed", "min.compaction.lag.ms", "0");
    until(&broker, "it is compacted", || {
        cleaned_to(&broker, "trimmed") == 19
    });
    let row = |n: i64| {
        (
            n,
            format!("k{}", n % 5),
            Some(format!("v{n}")),
            start + n * 2000,
        )
    };
    // The last one is in the active segment, and what it supersedes stays.
    let left: Vec<Row> = [14, 15, 16, 17, 18, 19].map(row).into();
    assert_eq!(read(&mut client, "trimmed", 10), left);
    let answer = client.ask(12, &fetch("trimmed", 9));
    assert_eq!(answer.responses[0].partitions[0].error_code, OUT_OF_RANGE);

    // B074: the policy changes while there are holes; readers go on, and deletion begins at once.
    set(&mut client, "trimmed", "cleanup.policy", "delete");
    assert_eq!(read(&mut client, "trimmed", 10), left);
    assert_eq!(delete_before(&mut client, "trimmed", 16), 16);
    assert_eq!(read(&mut client, "trimmed", 16), left[2..]);
    set(&mut client, "trimmed", "retention.ms", "1000");
    until(&broker, "the old is deleted", || {
        let answer = client.ask(7, &list_offsets("trimmed", 0, -2));
        answer.topics[0].partitions[0].offset == 20
    });
    let mut client = Connection::open(&broker);
    set(&mut client, "trimmed", "retention.ms", "-1");
    set(&mut client, "trimmed", "cleanup.policy", "compact");
    for n in 20..26 {
        let record = keyed("k", Some(&format!("v{n}")), start + n * 2000, None);
        assert_eq!(send(&mut client, "trimmed", &record), (0, n));
    }
    until(&broker, "it is compacted again", || {
        cleaned_to(&broker, "trimmed") == 25
    });
    let offsets: Vec<i64> = read(&mut client, "trimmed", 20)
        .iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(offsets, [24, 25]);
}

#[test]
fn records_that_come_while_others_are_deleted_are_kept() {
    let broker = Broker::start_with(EAGER);
    let mut client = Connection::open(&broker);
    create(
        &mut client,
        "busy",
        &[("segment.bytes", "1048576"), ("file.delete.delay.ms", "1")],
    );
    // B218: one deletes all there is again and again, one appends.
    let kept = thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let mut client = Connection::open(&broker);
            let value = "x".repeat(100_000);
            (0..200).for_each(|n| {
                let record = keyed("k", Some(&value), now_ms(), None);
                assert_eq!(send(&mut client, "busy", &record), (0, n), "offsets go on");
            });
        });
        let mut low = 0;
        while !producer.is_finished() {
            let now = delete_before(&mut client, "busy", -1);
            assert!(now >= low);
            low = now;
        }
        producer.join().unwrap();
        low
    });
    assert_eq!(client.end_offset("busy", 0), 200);
    let offsets: Vec<i64> = read(&mut client, "busy", kept)
        .iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(offsets, Vec::from_iter(kept..200));
}

fn commit(client: &mut Connection, offset: i64, partitions: i32, metadata: &str) {
    let partitions = (0..partitions).map(|index| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(-1)
            .with_committed_metadata(Some(text(metadata)))
    });
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name("committed"))
        .with_partitions(partitions.collect());
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    until_loaded(|| {
        let answer = client.ask(8, &request);
        answer.topics[0]
            .partitions
            .iter()
            .map(|one| one.error_code)
            .max()
            .unwrap_or(0)
    });
}

/// Asks again while a coordinator is still loading, or not there yet.
fn until_loaded(mut ask: impl FnMut() -> i16) {
    let end = Instant::now() + LIMIT;
    loop {
        match ask() {
            0 => return,
            14..=16 if Instant::now() < end => {}
            code => panic!("error code {code}"),
        }
    }
}

fn committed(client: &mut Connection) -> Vec<(i32, i64, usize)> {
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(GroupId(text("g")))
        .with_topics(None);
    let request = OffsetFetchRequest::default().with_groups(vec![group]);
    let mut rows = Vec::new();
    until_loaded(|| {
        let group = client.ask(8, &request).groups.remove(0);
        let told = group.topics.into_iter().flat_map(|topic| topic.partitions);
        rows = told
            .map(|one| {
                let metadata = one.metadata.map_or(0, |text| text.len());
                (one.partition_index, one.committed_offset, metadata)
            })
            .collect();
        rows.sort_unstable();
        group.error_code
    });
    rows
}

#[test]
fn a_coordinator_loads_what_is_large_and_what_was_compacted() {
    let mut broker = Broker::prepare(EAGER);
    broker.set("offsets.topic.segment.bytes", "1048576");
    broker.restart();
    let mut client = Connection::open(&broker);
    client.create_topic("committed", 1000);
    let find = FindCoordinatorRequest::default().with_key(text("g"));
    until_loaded(|| client.ask(2, &find).error_code);
    // B078: 3 MB of offsets in one request, again and again, so that segments close and are compacted.
    let metadata = "m".repeat(3000);
    for offset in 1..=4 {
        commit(&mut client, offset, 1000, &metadata);
    }
    commit(&mut client, 5, 10, "");
    until(&broker, "the offsets are compacted", || {
        cleaned_to(&broker, "__consumer_offsets") > 2000
    });
    let mut wanted: Vec<_> = (0..1000).map(|index| (index, 4, 3000)).collect();
    wanted[..10]
        .iter_mut()
        .for_each(|row| (row.1, row.2) = (5, 0));
    assert_eq!(committed(&mut client), wanted);
    broker.kill();
    broker.restart();
    assert_eq!(committed(&mut Connection::open(&broker)), wanted);
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .collect();
    found.sort();
    found
}

#[test]
fn lost_and_wrong_side_files_are_made_anew_and_producers_known_again() {
    let mut broker = Broker::prepare(EAGER);
    broker.restart();
    let mut client = Connection::open(&broker);
    create(&mut client, "left", &[("segment.ms", "1000")]);
    let start = now_ms() - 100_000;
    for n in 0..30 {
        let sequence = i32::try_from(n).unwrap();
        let record = keyed(
            "k",
            Some(&format!("v{n}")),
            start + n * 2000,
            Some((77, sequence)),
        );
        assert_eq!(send(&mut client, "left", &record), (0, n));
    }
    let rows = read(&mut client, "left", 0);
    let by_time = |client: &mut Connection| -> Vec<i64> {
        let times = (0..30).map(|n| start + n * 2000 - 1);
        let ask = |at| client.ask(7, &list_offsets("left", 0, at)).topics[0].partitions[0].offset;
        times.map(ask).collect()
    };
    let found = by_time(&mut client);
    assert_eq!(found, Vec::from_iter(0..30));
    let folder = broker.data().join("left-0");
    // B214: each kind of file missing, full of zeros, of an odd size; B215: the last batch comes again.
    for (round, ending) in [".index", ".timeindex", ".snapshot"]
        .into_iter()
        .cycle()
        .take(9)
        .enumerate()
    {
        broker.kill();
        for path in files(&folder, ending) {
            match round / 3 {
                0 => fs::remove_file(path).unwrap(),
                1 => fs::write(path, [0; 200]).unwrap(),
                _ => fs::write(path, [0; 7]).unwrap(),
            }
        }
        broker.restart();
        let mut client = Connection::open(&broker);
        client.end_offset("left", 0);
        let last = keyed("k", Some("v29"), start + 29 * 2000, Some((77, 29)));
        assert_eq!(
            send(&mut client, "left", &last),
            (0, 29),
            "{ending} {round}"
        );
        assert_eq!(client.end_offset("left", 0), 30);
        assert_eq!(read(&mut client, "left", 0), rows, "{ending} {round}");
        assert_eq!(by_time(&mut client), found, "{ending} {round}");
        let gap = keyed("k", Some("gap"), now_ms(), Some((77, 31)));
        assert_eq!(send(&mut client, "left", &gap).0, 45, "{ending} {round}");
    }
    if broker.kind() == Kind::Barnabas {
        broker.stop();
    }
}
