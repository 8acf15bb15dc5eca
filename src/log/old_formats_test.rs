//! Segments of magic 0 and 1: what Apache Kafka 4.1.2 made of them, recovering and compacting, and
//! what we make of them.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::cleaner::{Cleaned, Unfinished};
use super::config::LogConfig;
use super::fault::Fault;
use super::log::Log;
use super::read::{Located, Want};
use super::recover;
use super::testkit::*;
use crate::os::disk::{Disk, Open, TempDir};
use crate::protocol::records::batch::{Batches, Header};
use crate::protocol::records::iter::Records;

const OLD_FORMATS: &[u8] = include_bytes!("testdata/old-formats.tar.gz");

const DAY: i64 = 86_400_000;

/// What Kafka compacts as well; the others end a log's compaction there, too.
const READABLE: [&str; 2] = ["bad-magic", "bad-dropped-value-size"];

struct Archive(TempDir);

impl Archive {
    fn unpack() -> Self {
        let dir = TempDir::new();
        unpack(OLD_FORMATS, dir.path());
        Self(dir)
    }

    fn of(&self, part: &str, kind: &str) -> PathBuf {
        self.0.path().join(part).join(format!("{kind}-0"))
    }

    /// The kinds of logs that a part of the archive has.
    fn kinds(&self, part: &str) -> Vec<String> {
        let entries = Disk.list(&self.0.path().join(part)).unwrap();
        let kinds = entries
            .into_iter()
            .map(|entry| entry.name.trim_end_matches("-0").to_owned());
        kinds.collect()
    }

    /// A folder with the segments of a kind and nothing else.
    fn old(&self, kind: &str) -> TempDir {
        let dir = TempDir::new();
        for (name, content) in files_of(&self.of("old", kind)) {
            Disk.replace(&dir.path().join(name), &content).unwrap();
        }
        dir
    }
}

fn config() -> LogConfig {
    LogConfig {
        compact: true,
        delete: false,
        min_cleanable_ratio: 0.0,
        delete_retention_ms: DAY,
        index_interval_bytes: 100,
        ..LogConfig::default()
    }
}

/// Opens a log as after an orderly stop, when nobody looks into it.
fn open_unread(dir: &Path) -> Mutex<Log> {
    for (name, _) in files_of(dir) {
        for index in ["index", "timeindex"] {
            let path = dir.join(name.replace("log", index));
            Disk.replace(&path, b"").unwrap();
        }
    }
    let mut open = opening(dir, config());
    open.is_clean = true;
    open.recovery_point = i64::MAX;
    Mutex::new(recover::open(open, &mut |_| ()).unwrap())
}

fn clean(log: &Mutex<Log>, from: Option<i64>, now_ms: i64) -> Result<Cleaned, Unfinished> {
    try_clean(log, from, now_ms, 10_000)
}

/// What a segment says, whatever its codec's bytes are.
fn told(segment: &[u8]) -> Vec<String> {
    let mut told = Vec::new();
    for batch in Batches::new(segment) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        let header = Header {
            crc: 0,
            batch_length: 0,
            ..batch.header
        };
        told.push(format!("{header:?}"));
        let records = Records::of(&batch, 1 << 20).unwrap();
        told.extend(
            records
                .iter()
                .map(|record| format!("{:?}", record.unwrap())),
        );
    }
    told
}

/// When Kafka compacted what it did: its tombstones may go a day later.
fn compacted_at(segment: &[u8]) -> i64 {
    let horizons =
        Batches::new(segment).filter_map(|batch| batch.unwrap().header.delete_horizon_ms());
    horizons.last().map_or(NOW, |horizon| horizon - DAY)
}

#[test]
fn what_is_recovered_has_the_indexes_that_kafka_wrote() {
    let archive = Archive::unpack();
    for kind in archive.kinds("recovered") {
        let dir = archive.old(&kind);
        open_crashed(dir.path(), config()).close().unwrap();
        let ours = files_of(dir.path());
        for (name, content) in files_of(&archive.of("recovered", &kind)) {
            let file = ours.iter().find(|(ours, _)| *ours == name);
            assert_eq!(file.map(|(_, ours)| ours), Some(&content), "{kind} {name}");
        }
        for (name, content) in files_of(&archive.of("old", &kind)) {
            assert!(ours.contains(&(name, content)), "{kind}");
        }
    }
}

#[test]
fn compaction_leaves_what_kafka_leaves() {
    let archive = Archive::unpack();
    let kinds = archive.kinds("cleaned");
    assert!(kinds.len() > 15, "{kinds:?}");
    for kind in kinds {
        let dir = archive.old(&kind);
        let log = open_unread(dir.path());
        let theirs: Vec<_> = files_of(&archive.of("cleaned", &kind));
        let at = compacted_at(&theirs[1].1);
        let cleaned = clean(&log, None, at).unwrap();
        assert!(cleaned.map_records_read >= cleaned.records_written);
        let ours = files_of(dir.path());
        for (name, content) in &theirs[..3] {
            let (_, file) = ours.iter().find(|(ours, _)| ours == name).unwrap();
            if name.ends_with(".log") {
                assert_eq!(told(file), told(content), "{kind}");
            }
            if kind.ends_with("none") {
                assert_eq!(file, content, "{kind} {name}");
            }
        }
        // It is an ordinary log now.
        let end = log.lock().log_end_offset();
        drop(log);
        let log = Mutex::new(open_crashed(dir.path(), config()));
        assert_eq!(log.lock().log_end_offset(), end);
        let again = clean(&log, None, at).unwrap();
        assert_eq!(again.bytes_written, again.bytes_read, "{kind}");
        let emptier = clean(&log, None, at + DAY).unwrap();
        assert!(emptier.bytes_written <= again.bytes_written);
    }
}

#[test]
fn old_tombstones_go_by_the_age_of_their_segment() {
    let archive = Archive::unpack();
    for kind in archive.kinds("tombstones") {
        let dir = archive.old(&kind);
        let log = open_unread(dir.path());
        let theirs = files_of(&archive.of("tombstones", &kind));
        let at = compacted_at(&theirs[0].1);
        // Compacted up to 33, the segment of which is older by more than tombstones are kept.
        for (base, age) in [(0, 0), (16, 0), (33, 2 * DAY), (51, DAY / 24)] {
            let name = format!("{base:020}.log");
            let path = dir.path().join(name);
            let file = Disk.open(&path, Open::Write).unwrap();
            file.set_modified_ms(at - age).unwrap();
        }
        clean(&log, Some(33), at).unwrap();
        let ours = files_of(dir.path());
        let (_, ours) = ours.iter().find(|(name, _)| *name == theirs[0].0).unwrap();
        assert_eq!(told(ours), told(&theirs[0].1), "{kind}");
    }
}

#[test]
fn what_cannot_be_read_is_not_compacted_and_stays_as_it_is() {
    let archive = Archive::unpack();
    let mut refused = 0;
    for kind in archive.kinds("old") {
        if !kind.starts_with("bad-")
            || READABLE.contains(&kind.as_str())
            || kind == "bad-keyless-end"
        {
            continue;
        }
        let dir = archive.old(&kind);
        let log = open_unread(dir.path());
        let cleaned = clean(&log, None, NOW);
        assert!(
            matches!(&cleaned, Err(Unfinished::Fault(fault)) if !matches!(fault, Fault::Disk { .. })),
            "{kind}: {cleaned:?}"
        );
        let old = files_of(&archive.of("old", &kind));
        let now = files_of(dir.path());
        assert!(old.iter().all(|file| now.contains(file)), "{kind}");
        refused += 1;
    }
    assert_eq!(refused, 17);
}

/// Apache Kafka gives up on such a log: "Empty batches are only supported for magic v2 and above".
#[test]
fn the_last_old_batch_leaves_its_offset() {
    let archive = Archive::unpack();
    let dir = archive.old("bad-keyless-end");
    let log = open_unread(dir.path());
    let cleaned = clean(&log, None, NOW).unwrap();
    assert_eq!((cleaned.up_to, cleaned.keyless), (2, 1));
    let segment = Disk
        .read(&dir.path().join("00000000000000000000.log"))
        .unwrap();
    let headers: Vec<Header> = Batches::new(&segment)
        .map(|batch| batch.unwrap().header)
        .collect();
    assert_eq!(headers.len(), 2);
    assert_eq!((headers[1].base_offset, headers[1].last_offset()), (1, 1));
    assert_eq!((headers[1].records_count, headers[1].producer_id), (0, -1));
}

/// The bytes of all segments, one after the other.
fn all_bytes(dir: &Path) -> Vec<u8> {
    let logs = files_of(dir).into_iter();
    let logs = logs.filter(|(name, _)| name.ends_with(".log"));
    logs.flat_map(|(_, content)| content).collect()
}

#[test]
fn a_copy_has_the_same_bytes_at_the_same_offsets() {
    let archive = Archive::unpack();
    for kind in archive.kinds("recovered") {
        let (dir, to) = (archive.old(&kind), TempDir::new());
        let log = open_crashed(dir.path(), config());
        let small = LogConfig {
            segment_bytes: 700,
            ..config()
        };
        let mut copy = open_crashed(to.path(), small);
        while copy.log_end_offset() < log.log_end_offset() {
            let copied = copy.copy_from(&log.reader(), 300, NOW).unwrap();
            assert!(copied > 0, "{kind}");
        }
        assert_eq!(all_bytes(to.path()), all_bytes(dir.path()), "{kind}");
        let is_small = log.reader().size() <= 700;
        assert_ne!(copy.reader().segments().len() > 1, is_small, "{kind}");
        let end = log.log_end_offset();
        let again = open_crashed(to.path(), config());
        assert_eq!(again.log_end_offset(), end);
        for offset in 0..end {
            let place = |log: &Log| {
                let found = log.reader().locate(&Want {
                    offset,
                    upper: end,
                    max_bytes: 0,
                    min_one: true,
                });
                let Located::Slice(slice) = found.unwrap() else {
                    panic!("{kind} {offset}");
                };
                let mut bytes = vec![0; slice.len];
                slice
                    .file
                    .read_exact_at(&mut bytes, slice.position)
                    .unwrap();
                bytes
            };
            assert_eq!(place(&copy), place(&log), "{kind} {offset}");
            assert_eq!(place(&again), place(&log), "{kind} {offset}");
        }
        let newest = |log: &Log| log.reader().newest(end).unwrap();
        assert_eq!(newest(&copy), newest(&log));
    }
}

#[test]
fn a_copy_may_begin_within_a_wrapper() {
    let archive = Archive::unpack();
    let (dir, to) = (archive.old("magic1-gzip"), TempDir::new());
    let mut log = open_crashed(dir.path(), config());
    let mut copy = open_crashed(to.path(), config());
    // Offsets 6 to 9 are in one wrapper.
    log.advance_log_start(8).unwrap();
    while copy.log_end_offset() < log.log_end_offset() {
        copy.copy_from(&log.reader(), 300, NOW).unwrap();
    }
    assert_eq!(copy.log_start_offset(), 8);
    assert!(all_bytes(dir.path()).ends_with(&all_bytes(to.path())));
    let copy = Mutex::new(copy);
    let end = copy.lock().log_end_offset();
    clean(&copy, None, NOW).unwrap();
    assert_eq!(copy.lock().log_end_offset(), end);
}

/// UnifiedLog.searchOffsetInLocalLog, LogSegment.largestTimestamp
#[test]
fn messages_without_time_are_as_old_as_their_segment() {
    let archive = Archive::unpack();
    let dir = archive.old("magic0-none");
    let log = open_unread(dir.path());
    let modified = |at| {
        for (name, _) in files_of(dir.path()) {
            let file = Disk.open(&dir.path().join(name), Open::Write).unwrap();
            file.set_modified_ms(at).unwrap();
        }
    };
    let reader = log.lock().reader();
    let newest = reader.newest(i64::MAX).unwrap().unwrap();
    let found = || reader.offset_by_time(newest.timestamp, i64::MAX).unwrap();
    modified(newest.timestamp - 1);
    assert_eq!(found(), Some(newest));
    modified(newest.timestamp);
    assert_eq!(found(), None);
}
