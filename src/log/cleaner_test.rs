//! Stories of a log that is compacted.

use std::collections::BTreeMap;

use bytes::Bytes;
use parking_lot::Mutex;

use super::cleaner::{self, Cleaned, Go, Job, Memory, Unfinished};
use super::config::LogConfig;
use super::log::Log;
use super::read::{Located, Want};
use super::testkit::*;
use super::txn_index::AbortedTxn;
use crate::os::disk::{Disk, TempDir};
use crate::os::sim_disk::{self, Failure};
use crate::protocol::records::batch::Batches;
use crate::protocol::records::iter::Records;

const LATER: i64 = NOW + 1000;
const RETENTION: i64 = 100;

fn config() -> LogConfig {
    LogConfig {
        compact: true,
        delete: false,
        min_cleanable_ratio: 0.0,
        delete_retention_ms: RETENTION,
        segment_bytes: 600,
        ..small()
    }
}

fn open(dir: &TempDir) -> Mutex<Log> {
    Mutex::new(open_crashed(dir.path(), config()))
}

fn append(log: &Mutex<Log>, records: &Bytes) {
    log.lock().append(records, client(0)).unwrap();
}

fn roll(log: &Mutex<Log>) {
    let mut log = log.lock();
    let end = log.log_end_offset();
    log.roll(end, NOW).unwrap();
}

fn clean_with(log: &Mutex<Log>, from: Option<i64>, now_ms: i64, slots: u64) -> Cleaned {
    try_clean(log, from, now_ms, slots).unwrap()
}

fn clean(log: &Mutex<Log>, now_ms: i64) -> Cleaned {
    clean_with(log, None, now_ms, 10_000)
}

/// All batches, in order, read as a consumer does.
fn batches(log: &Mutex<Log>) -> Vec<Vec<u8>> {
    let reader = log.lock().reader();
    let mut all = Vec::new();
    let mut offset = reader.log_start_offset();
    loop {
        let want = Want {
            offset,
            upper: reader.log_end_offset(),
            max_bytes: 300,
            min_one: true,
        };
        let Located::Slice(slice) = reader.locate(&want).unwrap() else {
            return all;
        };
        let mut bytes = vec![0; slice.len];
        slice
            .file
            .read_exact_at(&mut bytes, slice.position)
            .unwrap();
        for batch in Batches::new(&bytes) {
            // The last one may be cut.
            let Ok(batch) = batch else { break };
            batch.check_crc().unwrap();
            offset = batch.header.next_offset();
            all.push(batch.bytes().to_vec());
        }
    }
}

type Found = BTreeMap<i64, (String, Option<String>)>;

/// Key and value of every record of applications, by offset.
fn records(log: &Mutex<Log>) -> Found {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut found = Found::new();
    for bytes in batches(log) {
        let batch = Batches::new(&bytes).next().unwrap().unwrap();
        if batch.header.is_control() {
            continue;
        }
        for record in Records::of(&batch, 1 << 20).unwrap().iter() {
            let record = record.unwrap();
            let offset = batch.header.base_offset + i64::from(record.offset_delta);
            let key = record.key.map(text).unwrap_or_default();
            found.insert(offset, (key, record.value.map(text)));
        }
    }
    found
}

fn pairs(found: &Found) -> Vec<(i64, &str, Option<&str>)> {
    found
        .iter()
        .map(|(offset, (key, value))| (*offset, key.as_str(), value.as_deref()))
        .collect()
}

/// What a start after a crash finds is what was there.
fn reloads(dir: &TempDir, log: Mutex<Log>) -> Mutex<Log> {
    let before = batches(&log);
    let producers = log.lock().active_producers();
    drop(log);
    let again = open(dir);
    assert_eq!(batches(&again), before);
    assert_eq!(again.lock().active_producers(), producers);
    again
}

/// B076
#[test]
fn of_each_key_the_newest_record_stays_where_it_was() {
    let dir = TempDir::new();
    let log = open(&dir);
    for n in 0..60 {
        let (a, b) = (format!("k{}", n % 7), format!("other-{}", n / 6));
        let value = format!("v{n}");
        append(&log, &keyed(&[(&a, Some(&value)), (&b, Some("x"))]));
    }
    let segments = log.lock().reader().segments();
    let active = segments.last().unwrap().base_offset;
    assert!(segments.len() > 5);
    let before = records(&log);
    let newest: BTreeMap<&str, i64> = before
        .iter()
        .filter(|(offset, _)| **offset < active)
        .map(|(offset, (key, _))| (key.as_str(), *offset))
        .collect();
    let cleaned = clean(&log, LATER);
    assert_eq!(cleaned.up_to, active);
    assert!(cleaned.bytes_written < cleaned.bytes_read);
    let after = records(&log);
    for (offset, pair) in &before {
        let stays = *offset >= active || newest[pair.0.as_str()] == *offset;
        assert_eq!(after.get(offset), stays.then_some(pair), "{offset}");
    }
    let log = reloads(&dir, log);
    // A second time there is nothing left to do but to put small segments together.
    let all = batches(&log);
    let again = clean(&log, LATER);
    assert_eq!(again.bytes_written, again.bytes_read);
    assert_eq!(batches(&log), all);
    assert!(log.lock().reader().segments().len() < segments.len());
    reloads(&dir, log);
}

/// B072
#[test]
fn a_tombstone_stays_as_long_as_a_reader_may_need_it() {
    let dir = TempDir::new();
    let log = open(&dir);
    append(&log, &keyed(&[("a", Some("1")), ("b", Some("1"))]));
    append(&log, &keyed(&[("a", None)]));
    append(&log, &keyed(&[("z", Some("1"))]));
    roll(&log);
    clean(&log, LATER);
    let all = [(1, "b", Some("1")), (2, "a", None), (3, "z", Some("1"))];
    assert_eq!(pairs(&records(&log)), all);
    clean(&log, LATER + RETENTION - 1);
    assert_eq!(pairs(&records(&log)), all);
    let log = reloads(&dir, log);
    clean(&log, LATER + RETENTION);
    assert_eq!(pairs(&records(&log)), [all[0], all[2]]);
}

fn aborted(log: &Mutex<Log>) -> Vec<AbortedTxn> {
    let reader = log.lock().reader();
    reader.aborted_between(0, i64::MAX).unwrap()
}

/// The offsets of the markers that are left.
fn markers(log: &Mutex<Log>) -> Vec<i64> {
    let header = |bytes: &Vec<u8>| Batches::new(bytes).next().unwrap().unwrap().header;
    let headers = batches(log).iter().map(header).collect::<Vec<_>>();
    let markers = headers.iter().filter(|header| header.is_control());
    markers.map(|header| header.base_offset).collect()
}

/// B070, B071
#[test]
fn aborted_records_go_at_once_and_their_marker_when_it_marks_nothing() {
    let dir = TempDir::new();
    let log = open(&dir);
    let transactional =
        |id, sequence, key, value| filled(transaction(id, sequence), [(key, Some(value))]);
    let end = |id, committed| {
        let marker = marker_batch(id, committed);
        log.lock().append(&marker, coordinator(0)).unwrap();
    };
    append(&log, &keyed(&[("a", Some("old"))]));
    append(&log, &transactional(7, 0, "a", "aborted"));
    append(&log, &transactional(8, 0, "b", "committed"));
    end(7, false);
    end(8, true);
    // Later batches of both, so that neither is kept for its producer's sake.
    append(&log, &transactional(7, 1, "c", "x"));
    append(&log, &transactional(8, 1, "d", "x"));
    end(7, true);
    end(8, true);
    append(&log, &keyed(&[("z", Some("1"))]));
    roll(&log);
    clean(&log, LATER);
    let left = pairs(&records(&log))
        .into_iter()
        .map(|one| one.0)
        .collect::<Vec<_>>();
    assert_eq!(left, [0, 2, 5, 6, 9]);
    assert_eq!(markers(&log), [3, 4, 7, 8]);
    assert_eq!(aborted(&log).len(), 1);
    let index = dir.path().join("00000000000000000000.txnindex");
    assert_eq!(Disk.read(&index).unwrap().len(), 34);
    // Nothing of the aborted transaction is left: its marker has a horizon now.
    clean(&log, LATER);
    assert_eq!(markers(&log), [3, 4, 7, 8]);
    assert_eq!(aborted(&log).len(), 0);
    let log = reloads(&dir, log);
    clean(&log, LATER + RETENTION);
    assert_eq!(markers(&log), [4, 7, 8]);
    reloads(&dir, log);
}

#[test]
fn an_open_transaction_is_left_alone() {
    let dir = TempDir::new();
    let log = open(&dir);
    append(&log, &keyed(&[("a", Some("1"))]));
    append(&log, &keyed(&[("a", Some("2"))]));
    roll(&log);
    append(&log, &producer_batch(7, 0, 2, true));
    append(&log, &keyed(&[("a", Some("3"))]));
    roll(&log);
    let cleaned = clean(&log, LATER);
    assert_eq!(cleaned.up_to, 2);
    let offsets: Vec<i64> = records(&log).into_keys().collect();
    assert_eq!(offsets, [1, 2, 3, 4]);
}

/// B069
#[test]
fn a_producers_last_batch_leaves_its_sequence() {
    let dir = TempDir::new();
    let log = open(&dir);
    append(&log, &producer_batch(7, 0, 2, false));
    append(&log, &producer_batch(7, 2, 2, false));
    append(&log, &keyed(&[("k", Some("newer"))]));
    roll(&log);
    let before = log.lock().active_producers();
    clean(&log, LATER);
    let found = records(&log);
    assert_eq!(pairs(&found), [(4, "k", Some("newer"))]);
    let empty = batches(&log).into_iter().next().unwrap();
    let header = Batches::new(&empty).next().unwrap().unwrap().header;
    assert_eq!((header.records_count, header.base_offset), (0, 2));
    assert_eq!(header.last_sequence(), 3);
    let log = reloads(&dir, log);
    assert_eq!(log.lock().active_producers(), before);
    let next = log
        .lock()
        .append(&producer_batch(7, 4, 1, false), client(0));
    assert_eq!(next.unwrap().first_offset, 5);
}

/// B075
#[test]
fn a_full_map_leaves_the_rest_for_the_next_time() {
    let dir = TempDir::new();
    let log = open(&dir);
    for n in 0..80 {
        let key = format!("k{}", n % 40);
        append(&log, &keyed(&[(&key, Some(&n.to_string()))]));
    }
    roll(&log);
    let mut from = None;
    let mut rounds = 0;
    loop {
        let cleaned = clean_with(&log, from, LATER, 12);
        assert!(from < Some(cleaned.up_to));
        from = Some(cleaned.up_to);
        rounds += 1;
        if cleaned.up_to == 80 {
            break;
        }
    }
    assert!(rounds > 4);
    let offsets: Vec<i64> = records(&log).into_keys().collect();
    assert_eq!(offsets, (40..80).collect::<Vec<_>>());
}

/// B069
#[test]
fn the_end_of_what_is_compacted_is_not_lost() {
    let dir = TempDir::new();
    let log = open(&dir);
    append(&log, &keyed(&[("a", None)]));
    roll(&log);
    clean(&log, LATER);
    clean(&log, LATER + RETENTION);
    assert!(records(&log).is_empty());
    let kept = batches(&log);
    assert_eq!(kept.len(), 1);
    drop(log);
    assert_eq!(open(&dir).lock().log_end_offset(), 1);
}

#[test]
fn who_reads_keeps_its_bytes_and_a_stop_leaves_all_as_it_was() {
    let dir = TempDir::new();
    let log = open(&dir);
    for n in 0..40 {
        append(&log, &keyed(&[("k", Some(&n.to_string()))]));
    }
    let reader = log.lock().reader();
    let want = Want {
        offset: 0,
        upper: 40,
        max_bytes: 1 << 20,
        min_one: true,
    };
    let Located::Slice(held) = reader.locate(&want).unwrap() else {
        panic!("nothing is there");
    };
    let read = || {
        let mut bytes = vec![0; held.len];
        held.file.read_exact_at(&mut bytes, held.position).unwrap();
        bytes
    };
    let (bytes, all, files) = (read(), batches(&log), files_of(dir.path()));
    let part = reader.cleanable(40, None, LATER).unwrap();
    let mut steps = 0;
    let stopped = cleaner::clean(Job {
        log: &log,
        part,
        memory: Memory {
            map_bytes: 1 << 16,
            load_factor: 0.9,
            io_bytes: 0,
        },
        now_ms: LATER,
        pace: &mut |_| {
            steps += 1;
            if steps > 38 { Go::Stop } else { Go::On }
        },
        old: &mut |_| panic!("nothing is replaced"),
    });
    assert!(matches!(stopped, Err(Unfinished::GivenUp)));
    assert_eq!(files_of(dir.path()), files);
    assert_eq!(batches(&log), all);
    clean(&log, LATER);
    assert!(batches(&log).len() < 10);
    assert_eq!(read(), bytes);
    let names = Disk.list(dir.path()).unwrap();
    assert!(
        names
            .iter()
            .all(|one| !one.name.ends_with("ed") && !one.name.ends_with("swap"))
    );
}

/// Compacts a log on a disk that is full after so many operations; says whether that was met.
fn is_stopped_by_a_full_disk(after: usize) -> bool {
    let dir = TempDir::new();
    let log = open(&dir);
    for n in 0..12 {
        let value = format!("value {n}");
        append(&log, &keyed(&[("a", Some(&value)), ("b", Some("same"))]));
        roll(&log);
    }
    let ending = |ending: &str| {
        let names = files_of(dir.path()).into_iter().map(|(name, _)| name);
        names.filter(|name| name.ends_with(ending)).count()
    };
    // What could not even be removed then goes the next time.
    let left = dir.path().join("00000000000000000999.log.cleaned");
    Disk.replace(&left, b"x").unwrap();
    let before = batches(&log);
    let reader = log.lock().reader();
    let part = reader.cleanable(24, None, NOW).unwrap();
    sim_disk::begin();
    sim_disk::fail_after(after, Failure::Full);
    let cleaned = cleaner::clean(Job {
        log: &log,
        part,
        memory: Memory {
            map_bytes: 24_000,
            load_factor: 0.9,
            io_bytes: 0,
        },
        now_ms: NOW,
        pace: &mut |_| Go::On,
        old: &mut |doomed| doomed.remove().unwrap(),
    });
    sim_disk::end();
    assert_eq!(ending(".cleaned"), 0, "after {after}");
    let is_stopped = cleaned.is_err();
    assert_eq!(batches(&log).last(), before.last(), "after {after}");
    let log = reloads(&dir, log);
    clean(&log, NOW);
    assert_eq!(ending(".cleaned") + ending(".swap"), 0);
    assert!(batches(&log).len() < before.len());
    is_stopped
}

#[test]
fn a_full_disk_leaves_nothing_of_what_was_begun() {
    let stopped = (0..40).filter(|after| is_stopped_by_a_full_disk(*after));
    assert!(stopped.count() > 10);
}

#[test]
fn what_was_deleted_meanwhile_does_not_come_back() {
    let dir = TempDir::new();
    let log = open(&dir);
    for n in 0..40 {
        append(&log, &keyed(&[("k", Some(&n.to_string()))]));
    }
    let reader = log.lock().reader();
    let part = reader.cleanable(40, None, LATER).unwrap();
    let mut steps = 0;
    let given_up = cleaner::clean(Job {
        log: &log,
        part,
        memory: Memory {
            map_bytes: 1 << 16,
            load_factor: 0.9,
            io_bytes: 0,
        },
        now_ms: LATER,
        pace: &mut |_| {
            steps += 1;
            if steps == 38 {
                let mut log = log.lock();
                log.advance_log_start(12).unwrap();
                log.delete_below(12).unwrap().remove().unwrap();
            }
            Go::On
        },
        old: &mut |_| (),
    });
    assert!(matches!(
        given_up,
        Err(Unfinished::GivenUp | Unfinished::Fault(_))
    ));
    assert_eq!(log.lock().log_start_offset(), 12);
    let first = *records(&log).first_key_value().unwrap().0;
    assert!(first >= 10, "{first}");
}
