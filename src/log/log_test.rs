//! Stories of one log: appended to, read, rolled, cut, trimmed, closed, crashed.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::checkpoint::{self, LEADER_EPOCHS};
use super::config::LogConfig;
use super::log::{AppendContext, AppendError, Appended, Log};
use super::read::{Located, LogReader, Slice, Want};
use super::recover::{self, Progress};
use super::testkit::*;
use crate::base::LeaderEpoch;
use crate::os::disk::{Disk, TempDir};
use crate::os::sim_disk::{self, Failure};
use crate::protocol::error::ErrorCode;
use crate::protocol::records::batch::{Batches, TimestampType};
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::compress::{Codec, Compression};

fn append(log: &mut Log, records: &Bytes) -> Appended {
    log.append(records, client(0)).unwrap()
}

fn refused(log: &mut Log, records: &Bytes) -> ErrorCode {
    match log.append(records, client(0)) {
        Err(AppendError::Rejected(rejection)) => rejection.refusal.code,
        other => panic!("{other:?}"),
    }
}

fn want(offset: i64, upper: i64) -> Want {
    Want {
        offset,
        upper,
        max_bytes: 1 << 20,
        min_one: true,
    }
}

fn slice(located: Located) -> Slice {
    let Located::Slice(slice) = located else {
        panic!("{located:?}");
    };
    slice
}

fn bytes(slice: &Slice) -> Vec<u8> {
    let mut bytes = vec![0; slice.len];
    slice
        .file
        .read_exact_at(&mut bytes, slice.position)
        .unwrap();
    bytes
}

/// The base offsets of the batches that a read gives.
fn bases(located: Located) -> Vec<i64> {
    let bytes = bytes(&slice(located));
    let base = |batch: Result<crate::protocol::records::batch::Batch<'_>, _>| {
        batch.unwrap().header.base_offset
    };
    Batches::new(&bytes).map(base).collect()
}

/// All batches of a log by reading it from its start, their bytes by base offset.
fn contents(reader: &LogReader) -> BTreeMap<i64, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut offset = reader.log_start_offset();
    while offset < reader.log_end_offset() {
        let read = bytes(&slice(reader.locate(&want(offset, i64::MAX)).unwrap()));
        for batch in Batches::new(&read).map(Result::unwrap) {
            batch.check_crc().unwrap();
            all.insert(batch.header.base_offset, batch.bytes().to_vec());
            offset = batch.header.next_offset();
        }
    }
    all
}

#[test]
fn a_tail_read_needs_no_file() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    for n in 0..50 {
        let done = append(&mut log, &batch(3, 100));
        assert_eq!((done.first_offset, done.last_offset), (n * 3, n * 3 + 2));
    }
    let reader = log.reader();
    for offset in 0..120 {
        let hot = slice(reader.locate_hot(&want(offset, 120)).unwrap());
        assert_eq!(hot.base_offset, offset - offset % 3);
    }
    let hot = |offset, upper| reader.locate_hot(&want(offset, upper)).unwrap();
    assert_eq!(bases(hot(0, 120)).len(), 40);
    assert!(matches!(hot(120, 120), Located::Empty));
    assert!(matches!(hot(150, 150), Located::Empty));
    assert!(matches!(hot(151, 150), Located::OutOfRange));
}

#[test]
fn a_cold_read_finds_what_a_hot_one_does() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for n in 0..60 {
        append(&mut log, &batch(1 + n % 4, 20 * (n % 7)));
    }
    let end = log.log_end_offset();
    let hot = log.reader();
    let again = open_crashed(dir.path(), small());
    assert!(again.reader().segments().len() > 3);
    let cold = again.reader();
    for offset in 0..end {
        for upper in [offset + 1, offset + 7, end] {
            let hot_one = hot.locate_hot(&want(offset, upper)).unwrap();
            assert!(cold.locate_hot(&want(offset, upper)).is_none());
            let cold_one = cold.locate(&want(offset, upper)).unwrap();
            match (hot_one, cold_one) {
                (Located::Empty, Located::Empty) => {}
                (Located::Slice(a), Located::Slice(b)) => {
                    assert_eq!((a.position, a.len), (b.position, b.len));
                    assert_eq!(a.base_offset, b.base_offset);
                    assert_eq!(bytes(&a), bytes(&b));
                }
                (a, b) => panic!("{offset} {upper}: {a:?} {b:?}"),
            }
        }
    }
}

#[test]
fn memory_of_the_tail_is_bounded() {
    let dir = TempDir::new();
    let config = LogConfig {
        tail_batches: 16,
        ..small()
    };
    let mut log = open_crashed(dir.path(), config);
    for _ in 0..200 {
        append(&mut log, &batch(1, 50));
    }
    assert!(log.tail_batches <= 16);
    let reader = log.reader();
    assert!(reader.locate_hot(&want(199, 200)).is_some());
    assert!(reader.locate_hot(&want(100, 200)).is_none());
    assert_eq!(bases(reader.locate(&want(100, 101)).unwrap()), [100]);
}

#[test]
fn the_first_batch_comes_whole_if_asked() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    append(&mut log, &batch(1, 500));
    append(&mut log, &batch(1, 500));
    let reader = log.reader();
    let tiny = Want {
        max_bytes: 10,
        ..want(0, 2)
    };
    assert_eq!(bases(reader.locate_hot(&tiny).unwrap()), [0]);
    let none = Want {
        min_one: false,
        ..tiny
    };
    assert!(matches!(reader.locate_hot(&none), Some(Located::Empty)));
    let cut = Want {
        max_bytes: 900,
        ..want(0, 2)
    };
    assert_eq!(slice(reader.locate_hot(&cut).unwrap()).len, 900);
}

#[test]
fn bytes_that_wait_are_counted() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    let sizes: Vec<u64> = (0..20)
        .map(|_| append(&mut log, &batch(1, 300)).size as u64)
        .collect();
    let reader = log.reader();
    for from in 0..20 {
        for to in from..=20 {
            let wanted: u64 = sizes[from..to].iter().sum();
            let (from, to) = (from as i64, to as i64);
            assert_eq!(reader.bytes_between(from, to), wanted, "{from} {to}");
        }
    }
    assert_eq!(reader.size(), sizes.iter().sum::<u64>());
}

#[test]
fn segments_roll_by_size_age_and_index_space() {
    let dir = TempDir::new();
    let config = LogConfig {
        segment_ms: 500,
        ..small()
    };
    let mut log = open_crashed(dir.path(), config.clone());
    append(&mut log, &batch(1, 10));
    assert!(!append(&mut log, &batch(1, 10)).rolled);
    let later = single(BatchBuilder::new(0), 1600, None, None);
    assert!(append(&mut log, &later).rolled);
    assert!(!append(&mut log, &later).rolled);
    assert!(append(&mut log, &batch(1, 1900)).rolled);
    log.set_config(std::sync::Arc::new(LogConfig {
        index_interval_bytes: 0,
        segment_index_bytes: 40,
        ..config
    }));
    let rolled = (0..8)
        .filter(|_| append(&mut log, &batch(1, 0)).rolled)
        .count();
    assert!(rolled >= 2, "{rolled}");
    let infos = log.reader().segments();
    assert!(
        infos
            .windows(2)
            .all(|two| two[0].next_offset == two[1].base_offset)
    );
}

#[test]
fn a_refused_batch_changes_nothing() {
    let dir = TempDir::new();
    let config = LogConfig {
        max_message_bytes: 500,
        compact: true,
        ..LogConfig::default()
    };
    let mut log = open_crashed(dir.path(), config);
    append(&mut log, &batch(2, 10));
    assert_eq!(
        refused(&mut log, &batch(1, 600)),
        ErrorCode::MessageTooLarge
    );
    let keyless = single(BatchBuilder::new(0), 1, None, None);
    assert_eq!(refused(&mut log, &keyless), ErrorCode::InvalidRecord);
    assert_eq!(
        refused(&mut log, &marker_batch(1, true)),
        ErrorCode::InvalidRecord
    );
    let mut damaged = batch(1, 10).to_vec();
    damaged[65] ^= 1;
    let damaged = Bytes::from(damaged);
    assert_eq!(refused(&mut log, &damaged), ErrorCode::CorruptMessage);
    assert_eq!(log.log_end_offset(), 2);
    assert_eq!(append(&mut log, &batch(1, 1)).first_offset, 2);
}

#[test]
fn a_retry_is_answered_with_its_first_offset() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    append(&mut log, &producer_batch(7, 0, 2, false));
    append(&mut log, &producer_batch(7, 2, 2, false));
    for mut log in [log, open_crashed(dir.path(), LogConfig::default())] {
        let again = append(&mut log, &producer_batch(7, 0, 2, false));
        assert!(again.is_duplicate);
        assert_eq!((again.first_offset, again.last_offset), (0, 1));
        assert_eq!(again.log_append_time_ms, 1001);
        let gap = producer_batch(7, 5, 1, false);
        assert_eq!(refused(&mut log, &gap), ErrorCode::OutOfOrderSequenceNumber);
        assert_eq!(log.log_end_offset(), 4);
    }
}

#[test]
fn a_transaction_hides_what_follows_until_it_is_decided_everywhere() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    append(&mut log, &batch(2, 1));
    append(&mut log, &producer_batch(7, 0, 2, true));
    append(&mut log, &batch(1, 1));
    let reader = log.reader();
    assert_eq!(reader.last_stable_offset(5), 2);
    let done = log.append(&marker_batch(7, false), coordinator(0)).unwrap();
    assert_eq!(done.first_offset, 5);
    // The marker itself is not replicated yet.
    assert_eq!(reader.last_stable_offset(5), 2);
    assert_eq!(reader.last_stable_offset(6), 6);
    let read = slice(reader.locate_hot(&want(0, 6)).unwrap());
    assert!(reader.aborted_hot(&read).is_none());
    let aborted = reader.aborted(0, &read).unwrap();
    assert_eq!((aborted[0].first_offset, aborted[0].last_offset), (2, 5));
    let only_before = slice(reader.locate_hot(&want(0, 2)).unwrap());
    assert!(reader.aborted(0, &only_before).unwrap().is_empty());
    drop(log);
    let again = open_crashed(dir.path(), LogConfig::default());
    let read = slice(again.reader().locate(&want(0, 6)).unwrap());
    assert_eq!(again.reader().aborted(0, &read).unwrap(), aborted);
}

#[test]
fn a_topic_may_want_its_own_codec_and_clock() {
    let dir = TempDir::new();
    let config = LogConfig {
        compression: Some(Compression::from(Codec::Zstd)),
        timestamp_type: TimestampType::LogAppendTime,
        ..LogConfig::default()
    };
    let mut log = open_crashed(dir.path(), config);
    let done = append(&mut log, &batch(5, 200));
    assert_eq!(done.log_append_time_ms, 1500);
    let read = bytes(&slice(log.reader().locate_hot(&want(0, 5)).unwrap()));
    let batch = Batches::new(&read).next().unwrap().unwrap();
    batch.check_crc().unwrap();
    assert_eq!(batch.header.codec(), Ok(Codec::Zstd));
    assert_eq!(batch.header.timestamp_of(0), 1500);
    assert_eq!(batch.header.records_count, 5);
    let marker = log.append(&marker_batch(9, true), coordinator(0)).unwrap();
    let read = bytes(&slice(
        log.reader()
            .locate_hot(&want(marker.first_offset, 6))
            .unwrap(),
    ));
    let batch = Batches::new(&read).next().unwrap().unwrap();
    assert_eq!(batch.header.codec(), Ok(Codec::None));
}

#[test]
fn a_follower_writes_what_its_leader_sent_and_cuts_what_differs() {
    let leader_dir = TempDir::new();
    let mut leader = open_crashed(leader_dir.path(), LogConfig::default());
    for epoch in [0, 0, 2, 2, 5] {
        leader
            .append(&producer_batch(3, 0, 1, false), client(epoch))
            .ok();
        leader.append(&batch(2, 30), client(epoch)).unwrap();
    }
    let end = leader.log_end_offset();
    let sent = bytes(&slice(leader.reader().locate_hot(&want(0, end)).unwrap()));
    let dir = TempDir::new();
    let mut follower = open_crashed(dir.path(), small());
    let cut = Bytes::from(sent[..sent.len() - 5].to_vec());
    let done = follower.append_as_follower(&cut, 0).unwrap().unwrap();
    assert_eq!(done.first_offset, 0);
    let rest = bytes(&slice(
        leader
            .reader()
            .locate(&want(done.last_offset + 1, end))
            .unwrap(),
    ));
    follower.append_as_follower(&Bytes::from(rest), 0).unwrap();
    assert_eq!(contents(&follower.reader()), contents(&leader.reader()));
    assert_eq!(follower.epochs, leader.epochs);
    assert!(matches!(
        follower.append_as_follower(&Bytes::from(sent), 0),
        Err(AppendError::Misplaced { base_offset: 0, .. })
    ));
    let ends = leader.reader().epoch_end(LeaderEpoch(2));
    assert_eq!(ends.epoch, LeaderEpoch(2));
    let doomed = follower.truncate_to(ends.end_offset, 0).unwrap();
    doomed.remove().unwrap();
    assert_eq!(follower.log_end_offset(), ends.end_offset);
    assert_eq!(follower.epochs.latest(), Some(LeaderEpoch(2)));
    let mut wanted = contents(&leader.reader());
    wanted.split_off(&ends.end_offset);
    assert_eq!(contents(&follower.reader()), wanted);
    follower.close().unwrap();
    drop(follower);
    let again = open_crashed(dir.path(), small());
    assert_eq!(contents(&again.reader()), wanted);
}

#[test]
fn a_log_is_cut_at_every_offset() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for n in 0..30 {
        append(&mut log, &producer_batch(7, n * 2, 2, false));
        append(&mut log, &batch(1, 60));
    }
    let all = contents(&log.reader());
    for offset in (0..90).rev() {
        log.truncate_to(offset, 0).unwrap().remove().unwrap();
        assert_eq!(log.log_end_offset(), offset);
        let kept = all.range(..offset);
        // A batch that reaches the offset is gone as a whole.
        let kept: BTreeMap<_, _> = kept
            .filter(|(base, _)| **base % 3 == 2 || **base + 1 < offset)
            .map(|(base, bytes)| (*base, bytes.clone()))
            .collect();
        let mut seen = BTreeMap::new();
        for base in kept.keys() {
            let read = bytes(&slice(log.reader().locate(&want(*base, base + 2)).unwrap()));
            seen.insert(*base, read);
        }
        for (base, wanted) in &kept {
            assert!(seen[base].starts_with(wanted), "{offset} {base}");
        }
        let sequence = log.active_producers().first().map(|one| one.last_sequence);
        let batches = i32::try_from(offset / 3 + i64::from(offset % 3 == 2)).unwrap();
        assert_eq!(
            sequence,
            (batches > 0).then_some(batches * 2 - 1),
            "{offset}"
        );
    }
}

#[test]
fn old_segments_are_deleted_while_a_reader_holds_them() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..40 {
        append(&mut log, &batch(1, 200));
    }
    let reader = log.reader();
    let held = slice(reader.locate_hot(&want(0, 40)).unwrap());
    let before = bytes(&held);
    assert!(log.advance_log_start(17).unwrap());
    assert!(!log.advance_log_start(16).unwrap());
    let doomed = log.delete_below(17).unwrap();
    assert!(!doomed.is_empty());
    assert!(reader.segments()[0].base_offset <= 17);
    assert!(reader.segments()[0].next_offset > 17);
    let names = |dir: &TempDir| -> Vec<String> {
        let files = files_of(dir.path()).into_iter();
        files.map(|(name, _)| name).collect()
    };
    assert!(
        names(&dir)
            .iter()
            .any(|name| name.ends_with(".log.deleted"))
    );
    doomed.remove().unwrap();
    assert!(!names(&dir).iter().any(|name| name.ends_with(".deleted")));
    assert_eq!(bytes(&held), before);
    assert!(matches!(
        reader.locate(&want(3, 40)).unwrap(),
        Located::OutOfRange
    ));
    assert_eq!(bases(reader.locate(&want(17, 18)).unwrap()), [17]);
    assert_eq!(log.epochs.entries(), [(0, 17)]);
}

#[test]
fn a_flush_raises_the_recovery_point_only_at_its_end() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..30 {
        append(&mut log, &batch(1, 200));
    }
    let flush = log.begin_flush().unwrap();
    append(&mut log, &batch(1, 200));
    flush.sync().unwrap();
    assert_eq!(log.recovery_point(), 0);
    log.end_flush(&flush).unwrap();
    assert_eq!(log.recovery_point(), 30);
    let stale = log.begin_flush().unwrap();
    log.truncate_to(20, 0).unwrap().remove().unwrap();
    stale.sync().unwrap();
    log.end_flush(&stale).unwrap();
    assert_eq!(log.recovery_point(), 20);
}

#[test]
fn a_clean_start_recovers_nothing_and_goes_on() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..40 {
        append(&mut log, &batch(2, 100));
    }
    append(&mut log, &producer_batch(7, 0, 1, true));
    log.close().unwrap();
    let wanted = contents(&log.reader());
    let stable = log.reader().last_stable_offset(81);
    drop(log);
    let mut open = opening(dir.path(), small());
    open.is_clean = true;
    open.recovery_point = 81;
    let mut told = 0;
    let mut log = recover::open(open, &mut |_| told += 1).unwrap();
    assert_eq!(told, 0);
    assert_eq!(log.log_end_offset(), 81);
    assert_eq!(contents(&log.reader()), wanted);
    assert_eq!(log.reader().last_stable_offset(81), stable);
    for _ in 0..40 {
        append(&mut log, &batch(2, 100));
    }
    log.close().unwrap();
    log.checkpointed(161).unwrap();
    let closed = files_of(dir.path());
    drop(log);
    open_crashed(dir.path(), small()).close().unwrap();
    let recovered = files_of(dir.path());
    assert_eq!(closed.len(), recovered.len());
    for (one, other) in closed.iter().zip(&recovered) {
        assert!(one == other, "{} differs", one.0);
    }
}

#[test]
fn recovery_tells_how_far_it_is() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..40 {
        append(&mut log, &batch(2, 100));
    }
    let size = log.reader().size();
    drop(log);
    let mut told: Vec<Progress> = Vec::new();
    recover::open(opening(dir.path(), small()), &mut |one| told.push(one)).unwrap();
    let last = told.last().unwrap();
    assert_eq!((last.bytes_done, last.bytes_total), (size, size));
    assert!(told.is_sorted_by_key(|one| one.bytes_done));
    // Nothing below the recovery point is read.
    let mut open = opening(dir.path(), small());
    open.recovery_point = 79;
    let mut fewer: Vec<Progress> = Vec::new();
    let log = recover::open(open, &mut |one| fewer.push(one)).unwrap();
    assert_eq!(fewer.len(), 1);
    assert_eq!(contents(&log.reader()).len(), 40);
}

#[test]
fn a_closed_segment_is_not_kept_open() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..400 {
        append(&mut log, &batch(1, 300));
    }
    let count = Disk
        .list(std::path::Path::new("/proc/self/fd"))
        .unwrap()
        .len();
    assert!(log.reader().segments().len() > 50);
    assert!(count < 150, "{count} descriptors are open");
}

/// B216
#[test]
fn an_append_that_fails_halfway_leaves_no_trace() {
    for ending in ["index", "timeindex"] {
        let dir = TempDir::new();
        let mut log = open_crashed(dir.path(), small());
        append(&mut log, &batch(2, 200));
        // Let go of the files, and put something in the way of one.
        log.rest();
        log.rest();
        let path = dir.path().join(format!("00000000000000000000.{ending}"));
        let aside = dir.path().join("aside");
        Disk.rename(&path, &aside).unwrap();
        Disk.create_dir_all(&path).unwrap();
        for n in 0..20 {
            let sent = producer_batch(n, 0, 2, true);
            assert!(matches!(
                log.append(&sent, client(0)),
                Err(AppendError::Fault(_))
            ));
        }
        assert_eq!(log.log_end_offset(), 2);
        assert!(log.active_producers().is_empty());
        let size = log.reader().size();
        let file = dir.path().join("00000000000000000000.log");
        assert_eq!(Disk.read(&file).unwrap().len() as u64, size);
        Disk.remove_dir_all(&path).unwrap();
        Disk.rename(&aside, &path).unwrap();
        for _ in 0..20 {
            append(&mut log, &batch(2, 200));
        }
        let all = contents(&log.reader());
        log.close().unwrap();
        drop(log);
        assert_eq!(contents(&open_crashed(dir.path(), small()).reader()), all);
    }
}

#[test]
fn a_segment_that_could_not_be_begun_hides_nothing() {
    for is_clean in [true, false] {
        let dir = TempDir::new();
        let mut log = open_crashed(dir.path(), small());
        for _ in 0..6 {
            append(&mut log, &batch(2, 100));
        }
        let end = log.log_end_offset();
        let path = dir.path().join(format!("{end:020}.index"));
        Disk.create_dir_all(&path).unwrap();
        for value_len in [900, 1] {
            // The second would find room, but a start would look for it in the next segment.
            let sent = batch(1, value_len);
            assert!(matches!(
                log.append(&sent, client(0)),
                Err(AppendError::Fault(_))
            ));
        }
        Disk.remove_dir_all(&path).unwrap();
        append(&mut log, &batch(1, 1));
        append(&mut log, &batch(1, 900));
        let all = contents(&log.reader());
        assert_eq!(all.len(), 8);
        log.close().unwrap();
        let mut open = opening(dir.path(), small());
        open.is_clean = is_clean;
        open.recovery_point = end + 2;
        let log = recover::open(open, &mut |_| ()).unwrap();
        assert_eq!(contents(&log.reader()), all);
    }
}

#[test]
fn a_segment_takes_its_full_size_at_once_where_the_topic_wants_that() {
    let dir = TempDir::new();
    let config = LogConfig {
        preallocate: true,
        ..small()
    };
    let len = |base: i64| {
        let path = dir.path().join(format!("{base:020}.log"));
        Disk.read(&path).unwrap().len() as u64
    };
    let mut log = open_crashed(dir.path(), config.clone());
    for _ in 0..12 {
        append(&mut log, &batch(2, 100));
    }
    let segments = log.reader().segments();
    let (last, closed) = segments.split_last().unwrap();
    assert!(!closed.is_empty() && last.size < 2000);
    assert_eq!(len(last.base_offset), 2000);
    for segment in closed {
        assert_eq!(len(segment.base_offset), segment.size);
    }
    let wanted = contents(&log.reader());
    drop(log);
    let mut log = open_crashed(dir.path(), config);
    assert_eq!(contents(&log.reader()), wanted);
    assert_eq!(len(last.base_offset), last.size);
    append(&mut log, &batch(2, 100));
    log.close().unwrap();
    assert_eq!(contents(&log.reader()).len(), wanted.len() + 1);
    // Also where nothing is ever written.
    let dir = TempDir::new();
    let unused = LogConfig {
        preallocate: true,
        ..small()
    };
    let mut log = recover::create(&opening(dir.path(), unused.clone())).unwrap();
    assert_eq!(files_of(dir.path())[1].1.len(), 2000);
    log.close().unwrap();
    let mut open = opening(dir.path(), unused);
    open.is_clean = true;
    assert_eq!(
        recover::open(open, &mut |_| ()).unwrap().log_end_offset(),
        0
    );
}

#[test]
fn what_makes_room_needs_none() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for n in 0..20 {
        log.append(&batch(2, 100), client(n / 10)).unwrap();
    }
    let end = log.log_end_offset();
    sim_disk::begin();
    for offset in [15, 25] {
        sim_disk::fail_after(0, Failure::Full);
        assert!(log.advance_log_start(offset).unwrap());
        log.delete_below(offset).unwrap().remove().unwrap();
    }
    sim_disk::end();
    let reader = log.reader();
    assert_eq!(reader.log_start_offset(), 25);
    assert_eq!(reader.epoch_of(25), Some(LeaderEpoch(1)));
    let first = reader.segments()[0].base_offset;
    assert!(first > 13, "{first}");
    drop(log);
    let log = open_crashed(dir.path(), small());
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (first, end));
    let path = dir.path().join("leader-epoch-checkpoint");
    let epochs = String::from_utf8(Disk.read(&path).unwrap()).unwrap();
    assert!(epochs.contains(&format!("1 {}", first.max(20))), "{epochs}");
}

#[test]
fn a_log_that_could_not_begin_anew_still_has_a_segment() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    append(&mut log, &batch(2, 100));
    let path = dir.path().join("00000000000000000005.index");
    Disk.create_dir_all(&path).unwrap();
    assert!(log.truncate_fully(5, 0).is_err());
    assert!(log.close().is_err());
    Disk.remove_dir_all(&path).unwrap();
    log.truncate_fully(5, 0).unwrap().remove().unwrap();
    append(&mut log, &batch(2, 100));
    assert_eq!(contents(&log.reader()).into_keys().collect::<Vec<_>>(), [5]);
}

/// B216
#[test]
fn offsets_too_far_apart_for_one_segment_begin_another() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    let far = i64::from(i32::MAX) + 5;
    for base in [3, far, far + 1, far * 3] {
        let sent = single(BatchBuilder::new(base), 1, Some(b"k"), None);
        log.append_as_follower(&sent, 0).unwrap();
    }
    let bases: Vec<_> = log
        .reader()
        .segments()
        .iter()
        .map(|one| one.base_offset)
        .collect();
    assert_eq!(bases, [0, far, far * 3]);
    let all = contents(&log.reader());
    assert_eq!(all.len(), 4);
    log.close().unwrap();
    drop(log);
    assert_eq!(
        contents(&open_crashed(dir.path(), LogConfig::default()).reader()),
        all
    );
}

#[test]
fn a_follower_may_begin_inside_a_batch() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    log.truncate_fully(3, 0).unwrap().remove().unwrap();
    let sent = batch(10, 20);
    let done = log.append_as_follower(&sent, 0).unwrap().unwrap();
    assert_eq!((done.first_offset, done.last_offset), (0, 9));
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (3, 10));
    let reader = log.reader();
    assert_eq!(bases(reader.locate(&want(3, 10)).unwrap()), [0]);
    assert!(matches!(
        reader.locate(&want(2, 10)).unwrap(),
        Located::OutOfRange
    ));
    assert!(matches!(
        log.append_as_follower(&sent, 0),
        Err(AppendError::Misplaced {
            base_offset: 0,
            log_end: 10
        })
    ));
}

#[test]
fn records_without_a_time_are_as_old_as_their_file() {
    let dir = TempDir::new();
    let config = LogConfig {
        retention_ms: 3_600_000,
        ..small()
    };
    let mut log = open_crashed(dir.path(), config);
    let written_ms = crate::os::clock::wall_ms();
    let timeless = single(BatchBuilder::new(0), -1, Some(b"k"), Some(&[7; 900]));
    for _ in 0..5 {
        append(&mut log, &timeless);
    }
    let early = log.retain(5, written_ms + 3_500_000).unwrap();
    assert!(early.plan.gone.is_empty());
    let again_ms = early.plan.next_ms.unwrap();
    // Files are dated by a coarser clock.
    assert!((written_ms - 100..written_ms + 100_000).contains(&(again_ms - 3_600_001)));
    let late = log.retain(5, written_ms + 3_700_000).unwrap();
    assert_eq!(late.plan.gone.len(), 3);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (5, 5));
}

#[test]
fn what_is_too_old_goes_and_the_log_goes_on() {
    let dir = TempDir::new();
    let config = LogConfig {
        retention_ms: 1000,
        ..small()
    };
    let mut log = open_crashed(dir.path(), config.clone());
    for _ in 0..8 {
        append(&mut log, &batch(1, 900));
    }
    let reader = log.reader();
    let held = slice(reader.locate(&want(0, 8)).unwrap());
    let before = bytes(&held);
    // The records are of the times 1000 and later; the last committed one is the fifth.
    let some = log.retain(5, 2500).unwrap();
    assert_eq!(some.plan.gone.len(), 2);
    assert_eq!(log.log_start_offset(), 4);
    assert!(matches!(
        reader.locate(&want(3, 8)).unwrap(),
        Located::OutOfRange
    ));
    some.doomed.remove().unwrap();
    assert_eq!(bytes(&held), before);
    let rest = log.retain(8, 2500).unwrap();
    assert_eq!(rest.plan.gone.len(), 2);
    assert_eq!(reader.segments().len(), 1);
    assert_eq!(append(&mut log, &batch(1, 10)).first_offset, 8);
    // Nothing is removed before its time, but a start finds it, and removes it.
    drop(log);
    let again = open_crashed(dir.path(), config);
    assert_eq!((again.log_start_offset(), again.log_end_offset()), (8, 9));
    let names = Disk.list(dir.path()).unwrap();
    assert!(names.iter().all(|entry| !entry.name.contains("deleted")));
}

/// B222
#[test]
fn a_clock_that_goes_back_hides_nothing_and_keeps_what_is_young() {
    let dir = TempDir::new();
    let config = LogConfig {
        timestamp_type: TimestampType::LogAppendTime,
        retention_ms: 30_000,
        ..small()
    };
    let mut log = open_crashed(dir.path(), config.clone());
    let time = |n: i64| match n {
        0..20 => 1_000_000 + n * 1000,
        _ => 500_000 + n * 1000,
    };
    for n in 0..40 {
        let at = AppendContext {
            now_ms: time(n),
            ..client(0)
        };
        assert_eq!(log.append(&batch(1, 100), at).unwrap().first_offset, n);
    }
    let found = |log: &Log| -> Vec<Option<i64>> {
        let times = [0, 520_000, 1_000_000, 1_010_500, 1_019_000, 1_019_001];
        let ask = |at| log.reader().offset_by_time(at, i64::MAX).unwrap();
        times.map(|at| ask(at).map(|one| one.offset)).into()
    };
    let by_time = [Some(0), Some(0), Some(0), Some(11), Some(19), None];
    assert_eq!(found(&log), by_time);
    log.close().unwrap();
    drop(log);
    let mut log = open_crashed(dir.path(), config);
    assert_eq!(found(&log), by_time);
    // What was written last is the oldest by its time, and stays behind what is young.
    assert!(log.retain(40, 1_025_000).unwrap().plan.gone.is_empty());
    let later = log.retain(40, 1_050_000).unwrap();
    later.doomed.remove().unwrap();
    assert_eq!(log.log_start_offset(), 40);
}

#[test]
fn a_leaders_epoch_is_stored_with_its_first_batch() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    append(&mut log, &batch(1, 10));
    let stored = || checkpoint::read_epochs(Disk, &dir.path().join(LEADER_EPOCHS)).unwrap();
    assert_eq!(stored(), [(0, 0)]);
    sim_disk::begin();
    log.begin_epoch(LeaderEpoch(4), 1).unwrap();
    assert_eq!(
        sim_disk::end().len(),
        0,
        "a leader that only serves reads writes nothing"
    );
    assert_eq!(log.reader().latest_epoch(), Some(LeaderEpoch(4)));
    assert!(!log.is_settled(), "the next append waits for the disk");
    log.append(&batch(1, 10), client(4)).unwrap();
    assert_eq!(stored(), [(0, 0), (4, 1)]);
    assert!(log.is_settled());
}
