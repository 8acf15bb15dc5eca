//! A recovery that begins inside a segment finds what one from its start does, and reads less.

use std::path::Path;

use super::config::LogConfig;
use super::log::Log;
use super::recover::{self, OpenLog};
use super::testkit::*;
use crate::os::disk::{Disk, Open, TempDir};

/// Segments that hold everything of a story.
fn roomy() -> LogConfig {
    LogConfig {
        segment_bytes: 1 << 20,
        segment_index_bytes: 4000,
        producer_id_expiration_ms: i64::MAX,
        ..small()
    }
}

fn append(log: &mut Log, bytes: &bytes::Bytes) {
    log.append(bytes, coordinator(0)).unwrap();
}

fn anchor(log: &mut Log) {
    let flush = log.begin_anchor().unwrap();
    flush.sync().unwrap();
    log.end_flush(&flush).unwrap();
}

/// A transaction that is aborted, an open one, and records around them.
fn history(log: &mut Log, sequence: i32) {
    for _ in 0..12 {
        append(log, &batch(2, 100));
    }
    append(log, &producer_batch(7, sequence, 2, true));
    append(log, &producer_batch(8, sequence, 1, true));
    append(log, &batch(1, 300));
    append(log, &marker_batch(7, false));
    append(log, &marker_batch(8, true));
    append(log, &producer_batch(9, sequence, 3, false));
}

/// Opens it as after a kill; with it, how many bytes of batches were gone over.
fn killed(folder: &Path, recovery_point: i64) -> (Log, u64) {
    let mut total = 0;
    let open = OpenLog {
        recovery_point,
        ..opening(folder, roomy())
    };
    let log = recover::open(open, &mut |told| total = told.bytes_total).unwrap();
    (log, total)
}

fn copied(from: &Path) -> TempDir {
    let to = TempDir::new();
    for (name, content) in files_of(from) {
        let file = Disk.open(&to.path().join(name), Open::Write).unwrap();
        file.write_all_at(&content, 0).unwrap();
    }
    to
}

/// The files but snapshots inside a segment, which another way to recover leaves elsewhere.
fn lasting(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = files_of(folder);
    files.retain(|(name, _)| !name.ends_with(".snapshot"));
    files
}

fn snapshots(folder: &Path) -> Vec<String> {
    let names = files_of(folder).into_iter().map(|(name, _)| name);
    names.filter(|name| name.ends_with(".snapshot")).collect()
}

#[test]
fn a_recovery_begins_at_the_anchor_and_finds_the_same() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), roomy());
    history(&mut log, 0);
    append(&mut log, &producer_batch(10, 0, 1, true));
    anchor(&mut log);
    let (anchored, before) = (log.recovery_point(), log.reader().size());
    history(&mut log, 3);
    log.flush_now().unwrap();
    let point = log.recovery_point();
    history(&mut log, 6);
    let size = log.reader().size();
    drop(log);
    let from_the_start = copied(dir.path());
    let (mut whole, read) = killed(from_the_start.path(), 0);
    assert_eq!(read, size);
    let (mut log, read) = killed(dir.path(), point);
    assert_eq!(read, size - before);
    assert_eq!(snapshots(dir.path()), [format!("{anchored:020}.snapshot")]);
    assert_eq!(log.log_end_offset(), whole.log_end_offset());
    assert_eq!(log.active_producers(), whole.active_producers());
    assert_eq!(log.epochs.entries(), whole.epochs.entries());
    let (reader, other) = (log.reader(), whole.reader());
    assert_eq!(
        reader.aborted_between(0, i64::MAX).unwrap(),
        other.aborted_between(0, i64::MAX).unwrap()
    );
    let end = log.log_end_offset();
    assert_eq!(
        reader.last_stable_offset(end),
        other.last_stable_offset(end)
    );
    assert_eq!(
        reader.last_stable_offset(end),
        anchored - 1,
        "one is still open"
    );
    for log in [&mut log, &mut whole] {
        history(log, 9);
        log.close().unwrap();
    }
    let (one, other) = (lasting(dir.path()), lasting(from_the_start.path()));
    for (one, other) in one.iter().zip(&other) {
        // An anchor closes the time index as a segment's end does.
        assert!(
            one == other || one.0.ends_with(".timeindex"),
            "{} differs",
            one.0
        );
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn an_anchor_beyond_the_recovery_point_says_nothing() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), roomy());
    history(&mut log, 0);
    anchor(&mut log);
    let (anchored, size) = (log.recovery_point(), log.reader().size());
    drop(log);
    let (log, read) = killed(dir.path(), anchored - 1);
    assert_eq!(read, size);
    assert_eq!(log.log_end_offset(), anchored);
    assert_eq!(
        snapshots(dir.path()),
        [""; 0],
        "its indexes are not those that were synced"
    );
}

#[test]
fn an_anchor_that_the_indexes_do_not_bear_out_is_given_up() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 7] = [
        ("index", |bytes| bytes.truncate(0)),
        ("index", |bytes| bytes.fill(0)),
        ("index", |bytes| bytes.fill(0x7f)),
        ("index", |bytes| {
            bytes
                .iter_mut()
                .skip(7)
                .step_by(8)
                .for_each(|byte| *byte ^= 1)
        }),
        ("timeindex", |bytes| bytes.fill(0)),
        ("log", |bytes| bytes.truncate(3000)),
        ("snapshot", |bytes| bytes.truncate(20)),
    ];
    for (number, (kind, damage)) in damages.into_iter().enumerate() {
        let dir = TempDir::new();
        let mut log = open_crashed(dir.path(), roomy());
        history(&mut log, 0);
        anchor(&mut log);
        let point = log.recovery_point();
        let wanted = log.active_producers();
        drop(log);
        let offset = if kind == "snapshot" { point } else { 0 };
        let path = dir.path().join(format!("{offset:020}.{kind}"));
        let mut bytes = Disk.read(&path).unwrap();
        damage(&mut bytes);
        let file = Disk.open(&path, Open::Write).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let twin = copied(dir.path());
        let (mut log, read) = killed(dir.path(), point);
        let (mut whole, all) = killed(twin.path(), 0);
        assert_eq!(read, all, "{number}");
        assert_eq!(snapshots(dir.path()), [""; 0], "{number}");
        if kind != "log" {
            assert_eq!(log.active_producers(), wanted, "{number}");
        }
        log.close().unwrap();
        whole.close().unwrap();
        assert!(files_of(dir.path()) == files_of(twin.path()), "{number}");
    }
}

#[test]
fn what_a_client_may_send_again_is_known_behind_an_anchor() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), roomy());
    append(&mut log, &batch(2, 100));
    for sequence in 0..5 {
        append(&mut log, &producer_batch(7, sequence * 2, 2, false));
    }
    anchor(&mut log);
    let point = log.recovery_point();
    drop(log);
    let (mut log, read) = killed(dir.path(), point);
    assert_eq!(read, 0);
    for sequence in 0..5 {
        let again = log.append(&producer_batch(7, sequence * 2, 2, false), client(0));
        let again = again.unwrap();
        assert!(again.is_duplicate, "{sequence}");
        assert_eq!(again.first_offset, 2 + i64::from(sequence) * 2);
    }
    append(&mut log, &producer_batch(7, 10, 1, false));
}

#[test]
fn what_is_torn_behind_an_anchor_is_cut_off() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), roomy());
    history(&mut log, 0);
    anchor(&mut log);
    let (anchored, size) = (log.recovery_point(), log.reader().size());
    append(&mut log, &batch(1, 500));
    drop(log);
    let path = dir.path().join(format!("{:020}.log", 0));
    let file = Disk.open(&path, Open::Write).unwrap();
    file.write_all_at(&[0; 300], size).unwrap();
    let (log, read) = killed(dir.path(), anchored);
    assert!(read < 700, "{read}");
    assert_eq!(
        (log.log_end_offset(), log.reader().size()),
        (anchored, size)
    );
}

#[test]
fn one_anchor_is_kept_and_none_of_a_closed_segment() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), roomy());
    assert!(!log.is_anchor_due(1));
    for sequence in [0, 3, 6] {
        history(&mut log, sequence);
        let before = log.reader().size();
        assert!(!log.is_anchor_due(1), "nothing more is durable");
        log.flush_now().unwrap();
        assert!(log.is_anchor_due(1) && !log.is_anchor_due(before + 1));
        anchor(&mut log);
        assert!(!log.is_anchor_due(1));
        let at = log.recovery_point();
        log.checkpointed(at).unwrap();
        assert_eq!(snapshots(dir.path()), [format!("{at:020}.snapshot")]);
    }
    history(&mut log, 9);
    let end = log.log_end_offset();
    log.roll(end, NOW).unwrap();
    append(&mut log, &batch(1, 10));
    log.checkpointed(end).unwrap();
    assert_eq!(
        snapshots(dir.path()).len(),
        2,
        "until the new segment is durable"
    );
    log.flush_now().unwrap();
    log.checkpointed(end + 1).unwrap();
    assert_eq!(snapshots(dir.path()), [format!("{end:020}.snapshot")]);
    // That of an orderly stop is one too.
    log.close().unwrap();
    let end = log.log_end_offset();
    let open = OpenLog {
        is_clean: true,
        recovery_point: end,
        ..opening(dir.path(), roomy())
    };
    let mut log = recover::open(open, &mut |_| ()).unwrap();
    append(&mut log, &batch(1, 10));
    drop(log);
    let (mut log, read) = killed(dir.path(), end);
    assert_eq!(read, batch(1, 10).len() as u64);
    anchor(&mut log);
    log.checkpointed(end + 1).unwrap();
    let last = format!("{:020}.snapshot", end + 1);
    assert_eq!(snapshots(dir.path()).pop(), Some(last));
    assert_eq!(snapshots(dir.path()).len(), 2);
}

#[test]
fn a_log_that_is_cut_below_its_anchor_has_none() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), roomy());
    history(&mut log, 0);
    let middle = log.log_end_offset();
    history(&mut log, 3);
    let late = log.begin_anchor().unwrap();
    late.sync().unwrap();
    anchor(&mut log);
    let end = log.recovery_point();
    log.checkpointed(end).unwrap();
    assert_eq!(snapshots(dir.path()).len(), 1);
    log.truncate_to(middle, NOW).unwrap().remove().unwrap();
    assert_eq!(snapshots(dir.path()), [""; 0]);
    log.end_flush(&late).unwrap();
    assert_eq!(
        snapshots(dir.path()),
        [""; 0],
        "a flush that began before leaves none"
    );
    // Where entries of what was cut off stood, others stand now.
    for _ in 0..3 {
        append(&mut log, &batch(1, 900));
    }
    anchor(&mut log);
    let point = log.recovery_point();
    let size = log.reader().size();
    drop(log);
    let (log, read) = killed(dir.path(), point);
    assert_eq!(read, 0);
    assert_eq!((log.reader().size(), log.log_end_offset()), (size, point));
}
