//! Directories that Apache Kafka 4.1.2 wrote must read as Kafka's clients read them, after an
//! orderly stop and after a crash, and must be left as Kafka would leave them.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::Value;

use super::checkpoint::{self, LOG_STARTS, RECOVERY_POINTS};
use super::config::LogConfig;
use super::log::Log;
use super::read::{Located, LogReader, Want};
use super::recover;
use super::testkit::{self, CLEAN, CLEAN_JSON, CRASH, CRASH_JSON, NOW, files_of, gunzip, opening};
use crate::base::TopicPartition;
use crate::os::disk::{Disk, TempDir};
use crate::protocol::records::batch::{Batch, Batches, TimestampType};
use crate::protocol::records::iter::{Records, walk};

struct Folder {
    dir: TempDir,
    partitions: Vec<(TopicPartition, Value, LogConfig)>,
    producers: Value,
    recovery_points: BTreeMap<TopicPartition, i64>,
    log_starts: BTreeMap<TopicPartition, i64>,
    is_clean: bool,
}

impl Folder {
    fn unpack(archive: &[u8], json: &[u8], is_clean: bool) -> Self {
        let dir = TempDir::new();
        testkit::unpack(archive, dir.path());
        let json: Value = serde_json::from_slice(&gunzip(json)).unwrap();
        let mut partitions = Vec::new();
        for topic in json["topics"].as_array().unwrap() {
            let name = topic["name"].as_str().unwrap();
            for partition in topic["partitions"].as_array().unwrap() {
                let number = partition["partition"].as_i64().unwrap();
                let of = TopicPartition::new(name, number.try_into().unwrap());
                partitions.push((of, partition.clone(), config(&topic["configs"])));
            }
        }
        let offsets = |name: &str| {
            let path = dir.path().join(name);
            let read = checkpoint::read_offsets(Disk, &path).unwrap();
            read.into_iter().collect::<BTreeMap<_, _>>()
        };
        Self {
            recovery_points: offsets(RECOVERY_POINTS),
            log_starts: offsets(LOG_STARTS),
            producers: json["producers"].clone(),
            dir,
            partitions,
            is_clean,
        }
    }

    fn path(&self, of: &TopicPartition) -> std::path::PathBuf {
        self.dir.path().join(of.to_string())
    }

    fn open(&self, of: &TopicPartition, config: &LogConfig) -> Log {
        let offset = |map: &BTreeMap<_, i64>| map.get(of).copied().unwrap_or(0);
        let mut open = opening(&self.path(of), config.clone());
        open.partition = of.clone();
        open.is_clean = self.is_clean;
        open.recovery_point = offset(&self.recovery_points);
        open.log_start = offset(&self.log_starts);
        recover::open(open, &mut |_| ()).unwrap()
    }
}

fn config(of: &Value) -> LogConfig {
    let number = |key: &str| of[key].as_str().map(|text| text.parse::<usize>().unwrap());
    LogConfig {
        segment_index_bytes: number("segment.index.bytes").unwrap_or(8192),
        index_interval_bytes: number("index.interval.bytes").unwrap_or(4096) as u64,
        producer_id_expiration_ms: 10 * 365 * 86_400_000,
        ..LogConfig::default()
    }
}

/// All bytes of a log from `from` to `upper`, fetched in pieces.
fn fetch_all(reader: &LogReader, from: i64, upper: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut offset = from;
    while offset < upper {
        let want = Want {
            offset,
            upper,
            max_bytes: 3000,
            min_one: true,
        };
        let Located::Slice(slice) = reader.locate(&want).unwrap() else {
            break;
        };
        let mut piece = vec![0; slice.len];
        slice
            .file
            .read_exact_at(&mut piece, slice.position)
            .unwrap();
        let last = Batches::new(&piece).map(Result::unwrap).last().unwrap();
        let whole: usize = Batches::new(&piece)
            .map(|one| one.unwrap().bytes().len())
            .sum();
        bytes.extend(&piece[..whole]);
        offset = last.header.next_offset();
    }
    bytes
}

fn check_records(of: &TopicPartition, bytes: &[u8], wanted: &[Value], from: i64) {
    let mut wanted = wanted.iter();
    for batch in Batches::new(bytes).map(Result::unwrap) {
        batch.check_crc().unwrap();
        walk(&batch, u64::MAX, |_| ()).unwrap();
        if batch.header.is_control() {
            continue;
        }
        let records = Records::of(&batch, u64::MAX).unwrap();
        for record in records.iter().map(Result::unwrap) {
            let offset = batch.header.base_offset + i64::from(record.offset_delta);
            if offset < from {
                continue;
            }
            let wanted = wanted.next().unwrap();
            assert_eq!(offset, wanted["offset"], "{of}");
            check_record(of, &batch, &record, wanted);
        }
    }
    assert_eq!(wanted.next(), None, "{of}");
}

fn check_record(
    of: &TopicPartition,
    batch: &Batch<'_>,
    record: &crate::protocol::records::iter::Record<'_>,
    wanted: &Value,
) {
    let header = &batch.header;
    let at = format!("{of} {}", wanted["offset"]);
    assert_eq!(
        header.timestamp_of(record.timestamp_delta),
        wanted["timestamp"],
        "{at}"
    );
    let kind = match header.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    };
    assert_eq!(kind, wanted["timestamp_type"], "{at}");
    assert_eq!(
        header.partition_leader_epoch, wanted["leader_epoch"],
        "{at}"
    );
    assert_eq!(
        record.key,
        wanted["key"].as_str().map(str::as_bytes),
        "{at}"
    );
    match wanted.get("value_crc32c") {
        Some(crc) => assert_eq!(
            crate::protocol::records::checksum::crc32c(record.value.unwrap()),
            *crc,
            "{at}"
        ),
        None => assert_eq!(
            record.value,
            wanted["value"].as_str().map(str::as_bytes),
            "{at}"
        ),
    }
    let headers = wanted["headers"].as_array().cloned().unwrap_or_default();
    let headers: Vec<_> = headers
        .iter()
        .map(|one| {
            let key = one[0].as_str().unwrap().as_bytes();
            (key, one[1].as_str().map(str::as_bytes))
        })
        .collect();
    assert_eq!(record.headers().collect::<Vec<_>>(), headers, "{at}");
}

/// The offsets that a read_committed consumer sees, fetch by fetch.
fn committed(reader: &LogReader, start: i64, stable: i64) -> Vec<i64> {
    let mut dropped = HashSet::new();
    let mut seen = Vec::new();
    let mut offset = start;
    while offset < stable {
        let want = Want {
            offset,
            upper: stable,
            max_bytes: 200,
            min_one: true,
        };
        let Located::Slice(slice) = reader.locate(&want).unwrap() else {
            break;
        };
        let aborted = reader.aborted(offset, &slice).unwrap();
        let mut bytes = vec![0; slice.len];
        slice
            .file
            .read_exact_at(&mut bytes, slice.position)
            .unwrap();
        for batch in Batches::new(&bytes).map(Result::unwrap) {
            let header = batch.header;
            let id = header.producer_id;
            offset = header.next_offset();
            let is_aborted = aborted.iter().any(|one| {
                let range = one.first_offset..one.last_offset;
                one.producer_id == id && range.contains(&header.base_offset)
            });
            if header.is_control() {
                dropped.remove(&id);
                continue;
            }
            if is_aborted {
                dropped.insert(id);
            }
            if !(header.is_transactional() && dropped.contains(&id)) {
                seen.extend(header.base_offset..=header.last_offset());
            }
        }
    }
    seen
}

fn check_log(of: &TopicPartition, log: &Log, wanted: &Value) {
    let reader = log.reader();
    let end = log.log_end_offset();
    assert_eq!(reader.log_start_offset(), wanted["log_start"], "{of}");
    assert_eq!(end, wanted["high_watermark"], "{of}");
    assert_eq!(
        reader.last_stable_offset(end),
        wanted["last_stable_offset"],
        "{of}"
    );
    let newest = reader.newest(end).unwrap();
    let newest = newest.map_or((-1, -1), |found| (found.timestamp, found.offset));
    assert_eq!(newest.0, wanted["max_timestamp"], "{of}");
    assert_eq!(newest.1, wanted["max_timestamp_offset"], "{of}");
    let start = reader.log_start_offset();
    if let Some(records) = wanted["records"].as_array() {
        check_records(of, &fetch_all(&reader, start, end), records, start);
        check_times(of, &reader, records);
    }
    if let Some(records) = wanted["records_committed"].as_array() {
        let offsets: Vec<_> = records
            .iter()
            .map(|one| one["offset"].as_i64().unwrap())
            .collect();
        let stable = reader.last_stable_offset(end);
        assert_eq!(committed(&reader, start, stable), offsets, "{of}");
    }
}

/// Every record is found by its time: the first that is not older.
fn check_times(of: &TopicPartition, reader: &LogReader, records: &[Value]) {
    if of.topic.contains("txn") {
        // Markers are found too, and no client saw them.
        return;
    }
    let time = |one: &Value| one["timestamp"].as_i64().unwrap();
    for record in records {
        let first = records
            .iter()
            .find(|one| time(one) >= time(record))
            .unwrap();
        let found = reader
            .offset_by_time(time(record), i64::MAX)
            .unwrap()
            .unwrap();
        assert_eq!(found.offset, first["offset"], "{of} {record}");
        assert_eq!(found.timestamp, first["timestamp"], "{of} {record}");
        assert_eq!(found.leader_epoch.0, first["leader_epoch"], "{of} {record}");
    }
}

fn check_producers(of: &TopicPartition, log: &Log, wanted: &Value) {
    let Some(wanted) = wanted[of.to_string()].as_array() else {
        return;
    };
    let active: BTreeMap<_, _> = log
        .active_producers()
        .into_iter()
        .map(|one| (one.producer_id, one))
        .collect();
    for wanted in wanted {
        let one = active[&wanted["producer_id"].as_i64().unwrap()];
        assert_eq!(one.epoch, wanted["epoch"], "{of}");
        assert_eq!(one.last_sequence, wanted["last_sequence"], "{of}");
        assert_eq!(one.coordinator_epoch, wanted["coordinator_epoch"], "{of}");
        assert_eq!(
            one.txn_start_offset.unwrap_or(-1),
            wanted["txn_start"],
            "{of}"
        );
    }
}

#[test]
fn a_directory_closed_in_order_reads_as_kafka_reads_it() {
    let folder = Folder::unpack(CLEAN, CLEAN_JSON, true);
    for (of, wanted, config) in &folder.partitions {
        let log = folder.open(of, config);
        check_log(of, &log, wanted);
        check_producers(of, &log, &folder.producers);
    }
}

#[test]
fn a_crashed_directory_recovers_to_what_kafka_had() {
    let folder = Folder::unpack(CRASH, CRASH_JSON, false);
    for (of, wanted, config) in &folder.partitions {
        let log = folder.open(of, config);
        check_log(of, &log, wanted);
        check_producers(of, &log, &folder.producers);
    }
}

#[test]
fn opening_and_closing_changes_no_byte() {
    let folder = Folder::unpack(CLEAN, CLEAN_JSON, true);
    for (of, _, config) in &folder.partitions {
        let path = folder.path(of);
        let before = files_of(&path);
        folder.open(of, config).close().unwrap();
        let after = files_of(&path);
        let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
            let names = files.iter().map(|(name, _)| name.clone());
            // Kafka drops snapshots that are of no use when it loads a log, and so do we.
            names.filter(|name| !name.ends_with(".snapshot")).collect()
        };
        assert_eq!(names(&before), names(&after), "{of}");
        for (name, content) in &after {
            let kafka = before.iter().find(|(other, _)| other == name).unwrap();
            let may_differ = name == "leader-epoch-checkpoint";
            assert!(may_differ || *content == kafka.1, "{of} {name}");
        }
    }
}

#[test]
fn a_recovered_log_has_the_indexes_that_kafka_wrote() {
    let crashed = Folder::unpack(CRASH, CRASH_JSON, false);
    let clean = Folder::unpack(CLEAN, CLEAN_JSON, true);
    let changed = ["keys-0", "txn-1", "__transaction_state-0"];
    let mut compared = 0;
    for (of, _, config) in &crashed.partitions {
        if changed.contains(&&*of.to_string()) || of.topic.starts_with("__consumer") {
            continue;
        }
        crashed.open(of, config).close().unwrap();
        let kafka: BTreeMap<_, _> = files_of(&clean.path(of)).into_iter().collect();
        for (name, content) in files_of(&crashed.path(of)) {
            if ["index", "log"].iter().any(|end| name.ends_with(end)) {
                assert_eq!(Some(&content), kafka.get(&name), "{of} {name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn an_old_segment_is_kept_and_served() {
    let dir = TempDir::new();
    let old = include_bytes!("testdata/magic0-1.log");
    Disk.write_atomically(&dir.path().join("00000000000000000000.log"), old)
        .unwrap();
    let log = testkit::open_crashed(dir.path(), LogConfig::default());
    assert_eq!(log.log_end_offset(), 6);
    let reader = log.reader();
    let want = Want {
        offset: 1,
        upper: 6,
        max_bytes: 1 << 20,
        min_one: true,
    };
    let Located::Slice(slice) = reader.locate(&want).unwrap() else {
        panic!("records are there");
    };
    assert!(slice.len < old.len() && slice.len > 100);
    let newest = reader.newest(6).unwrap().unwrap();
    assert_eq!((newest.timestamp, newest.offset), (1_700_000_000_002, 5));
    let by_time = |time: i64| reader.offset_by_time(1_700_000_000_000 + time, 6).unwrap();
    assert_eq!(by_time(-1).unwrap().offset, 3);
    let within = by_time(1).unwrap();
    assert_eq!((within.timestamp, within.offset), (1_700_000_000_001, 4));
    assert_eq!(within.leader_epoch.0, -1);
    assert_eq!(by_time(3), None);
}

#[test]
fn producers_expire_on_load_unless_their_transaction_is_open() {
    let folder = Folder::unpack(CLEAN, CLEAN_JSON, true);
    let of = TopicPartition::new("txn", 0);
    let path: &Path = &folder.path(&of);
    let mut open = opening(path, LogConfig::default());
    open.is_clean = true;
    open.recovery_point = 13;
    open.now_ms = NOW + 10 * 86_400_000;
    let log = recover::open(open, &mut |_| ()).unwrap();
    let left: Vec<_> = log
        .active_producers()
        .iter()
        .map(|one| one.producer_id)
        .collect();
    assert_eq!(left, [9]);
    assert_eq!(log.reader().last_stable_offset(13), 9);
}
