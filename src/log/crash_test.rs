//! What a crash may leave: tails cut anywhere, zeros and garbage, indexes and snapshots missing or
//! wrong. A log opens again with every whole batch below the damage, and goes on.

use std::path::{Path, PathBuf};

use super::config::LogConfig;
use super::log::Log;
use super::read::{Located, Want};
use super::recover::{self, OpenLog};
use super::testkit::*;
use crate::os::disk::{Disk, Open, TempDir};
use crate::os::random::Dice;
use crate::os::sim_disk::{self, Failure};
use crate::protocol::records::batch::Batches;

fn write(path: &Path, content: &[u8]) {
    let file = Disk.open(path, Open::Write).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(content, 0).unwrap();
}

/// Puts a folder back as it was.
fn restore(folder: &Path, files: &[(String, Vec<u8>)]) {
    for entry in Disk.list(folder).unwrap() {
        Disk.remove_file(&folder.join(entry.name)).unwrap();
    }
    for (name, content) in files {
        write(&folder.join(name), content);
    }
}

/// The bytes of all batches of a log.
fn everything(log: &Log) -> Vec<u8> {
    let reader = log.reader();
    let mut all = Vec::new();
    let mut offset = reader.log_start_offset();
    while offset < reader.log_end_offset() {
        let want = Want {
            offset,
            upper: reader.log_end_offset(),
            max_bytes: 1 << 20,
            min_one: true,
        };
        let Located::Slice(slice) = reader.locate(&want).unwrap() else {
            panic!("{offset} is missing");
        };
        let mut bytes = vec![0; slice.len];
        slice
            .file
            .read_exact_at(&mut bytes, slice.position)
            .unwrap();
        offset = Batches::new(&bytes)
            .last()
            .unwrap()
            .unwrap()
            .header
            .next_offset();
        all.extend(bytes);
    }
    all
}

/// A folder of several segments with producers and transactions, not closed.
fn busy(dir: &TempDir) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
    let mut log = open_crashed(dir.path(), small());
    for n in 0..12 {
        log.append(&producer_batch(7, n * 2, 2, true), client(0))
            .unwrap();
        log.append(&batch(2, 80), client(0)).unwrap();
        if n % 3 == 2 {
            log.append(&marker_batch(7, n % 2 == 0), coordinator(0))
                .unwrap();
        }
    }
    (files_of(dir.path()), everything(&log))
}

fn last_segment(files: &[(String, Vec<u8>)]) -> (String, Vec<u8>) {
    let is_log = |file: &&(String, Vec<u8>)| file.0.ends_with(".log");
    files.iter().rfind(is_log).unwrap().clone()
}

/// Opens as after a crash; what is there must be a prefix of what was, and appendable. Now and
/// then it is closed too, which costs a wait for the disk.
fn reopens(folder: &Path, all: &[u8], close: bool) -> usize {
    let mut log = open_crashed(folder, small());
    let found = everything(&log);
    assert!(all.starts_with(&found));
    let next = log.log_end_offset();
    let done = log.append(&batch(1, 10), client(0)).unwrap();
    assert_eq!(done.first_offset, next);
    if close {
        log.close().unwrap();
    }
    assert_eq!(everything(&log).len(), found.len() + done.size);
    found.len()
}

#[test]
fn a_tail_cut_at_any_byte_loses_only_what_is_not_whole() {
    let dir = TempDir::new();
    let (files, all) = busy(&dir);
    let (name, content) = last_segment(&files);
    let sealed = all.len() - content.len();
    let ends: Vec<usize> = Batches::new(&content)
        .scan(0, |end, batch| {
            *end += batch.unwrap().bytes().len();
            Some(*end)
        })
        .collect();
    for cut in 0..content.len() {
        restore(dir.path(), &files);
        write(&dir.path().join(&name), &content[..cut]);
        let whole = ends.iter().rfind(|end| **end <= cut).copied().unwrap_or(0);
        assert_eq!(
            reopens(dir.path(), &all, cut % 64 == 0),
            sealed + whole,
            "{cut}"
        );
    }
}

#[test]
fn zeros_and_garbage_behind_the_end_are_cut_off() {
    let dir = TempDir::new();
    let (files, all) = busy(&dir);
    let (name, content) = last_segment(&files);
    let seed = 0x5eed_0003;
    println!("seed {seed:#x}");
    let mut dice = Dice(seed);
    for len in [1, 11, 12, 16, 17, 60, 61, 62, 100, 4096, 70_000] {
        for zeros in [true, false] {
            restore(dir.path(), &files);
            let mut longer = content.clone();
            longer.extend((0..len).map(|_| match zeros {
                true => 0,
                false => dice.roll().to_le_bytes()[0],
            }));
            write(&dir.path().join(&name), &longer);
            assert_eq!(reopens(dir.path(), &all, zeros), all.len(), "{len} {zeros}");
        }
    }
}

#[test]
fn a_damaged_batch_ends_the_log_and_later_segments_go() {
    let dir = TempDir::new();
    let (files, all) = busy(&dir);
    let seed = 0x5eed_0004;
    println!("seed {seed:#x}");
    let mut dice = Dice(seed);
    let logs: Vec<_> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".log"))
        .collect();
    assert!(logs.len() > 2);
    for _ in 0..60 {
        restore(dir.path(), &files);
        let (name, content) = logs[dice.below(logs.len())];
        let mut bad = content.clone();
        let at = dice.below(bad.len());
        bad[at] ^= 1 << dice.below(8);
        write(&dir.path().join(name), &bad);
        let left = open_crashed(dir.path(), small());
        let found = everything(&left);
        // Flips in base offset or leader epoch are not seen by any checksum.
        let field = found.len() <= all.len();
        assert!(field, "{name} {at}");
    }
}

#[test]
fn a_cut_that_a_crash_undid_does_not_hide_what_was_written_after_it() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    for _ in 0..3 {
        log.append(&batch(2, 30), client(0)).unwrap();
    }
    let first = dir.path().join("00000000000000000000.log");
    let before = Disk.read(&first).unwrap();
    log.truncate_to(2, NOW).unwrap();
    log.roll(2, NOW).unwrap();
    log.append(&batch(3, 40), client(0)).unwrap();
    let all = everything(&log);
    drop(log);
    // The new segment was written back, the cut of the old one not.
    write(&first, &before);
    let log = open_crashed(dir.path(), LogConfig::default());
    assert_eq!((log.log_end_offset(), everything(&log)), (5, all));
}

#[test]
fn what_lies_below_the_recovery_point_is_known_by_its_headers() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), LogConfig::default());
    // Some are skipped, some are read along.
    for n in 0..60 {
        let len = if n % 3 == 0 { 50_000 } else { 300 };
        log.append(&producer_batch(7, n, 1, true), client(0))
            .unwrap();
        log.append(&batch(1, len), client(0)).unwrap();
        if n % 10 == 9 {
            let marker = marker_batch(7, n % 20 == 9);
            log.append(&marker, coordinator(0)).unwrap();
        }
    }
    let end = log.log_end_offset();
    let producers = log.active_producers();
    let aborted = log.reader().aborted_between(0, end).unwrap();
    assert_eq!(aborted.len(), 3);
    drop(log);
    let files = files_of(dir.path());
    let (name, content) = last_segment(&files);
    let batches = || Batches::new(&content).map(|batch| batch.unwrap());
    let damaged = |offset: i64| {
        let before = batches().take_while(|batch| batch.header.base_offset < offset);
        let at: usize = before.map(|batch| batch.bytes().len()).sum();
        let mut bad = content.clone();
        bad[at + 70] ^= 1;
        bad
    };
    let open = |recovery_point| {
        let mut open = opening(dir.path(), LogConfig::default());
        open.recovery_point = recovery_point;
        recover::open(open, &mut |_| ()).unwrap()
    };
    for (recovery_point, bad, found) in [(end, 43, end), (43, 43, 43), (42, 80, 80), (44, 43, end)]
    {
        restore(dir.path(), &files);
        write(&dir.path().join(&name), &damaged(bad));
        let log = open(recovery_point);
        assert_eq!(log.log_end_offset(), found, "{bad} of {recovery_point}");
        if found == end {
            assert_eq!(log.active_producers(), producers);
            let again = log.reader().aborted_between(0, end).unwrap();
            assert_eq!(again, aborted);
        }
    }
    restore(dir.path(), &files);
    assert_eq!(everything(&open(end)), content);
    // Headers that make no sense end the log there too.
    let mut bad = content.clone();
    bad[8] ^= 0xff;
    write(&dir.path().join(&name), &bad);
    assert_eq!(open(end).log_end_offset(), 0);
}

#[test]
fn indexes_are_made_anew_when_missing_or_wrong() {
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..40 {
        log.append(&batch(2, 100), client(0)).unwrap();
    }
    log.close().unwrap();
    let all = everything(&log);
    drop(log);
    let files = files_of(dir.path());
    let open = || {
        let mut open = opening(dir.path(), small());
        open.is_clean = true;
        open.recovery_point = 80;
        recover::open(open, &mut |_| ()).unwrap()
    };
    for ending in [".index", ".timeindex"] {
        for (name, content) in files.iter().filter(|(name, _)| name.ends_with(ending)) {
            let path = dir.path().join(name);
            let zeros = vec![0; content.len() + 80];
            let mut half = content.clone();
            half.truncate(content.len() / 2 + 3);
            restore(dir.path(), &files);
            write(&path, &half);
            assert_eq!(everything(&open()), all, "{name}");
            for wrong in [None, Some(zeros)] {
                restore(dir.path(), &files);
                match wrong {
                    None => Disk.remove_file(&path).unwrap(),
                    Some(wrong) => write(&path, &wrong),
                }
                let log = open();
                assert_eq!(everything(&log), all, "{name}");
                let first = log.reader().offset_by_time(1000, i64::MAX).unwrap();
                assert_eq!(first.unwrap().offset, 0);
            }
        }
    }
}

#[test]
fn producers_survive_a_torn_or_missing_snapshot() {
    let dir = TempDir::new();
    let (files, all) = busy(&dir);
    let wanted = open_crashed(dir.path(), small()).active_producers();
    let snapshots: Vec<PathBuf> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".snapshot"))
        .map(|(name, _)| dir.path().join(name))
        .collect();
    assert!(snapshots.len() >= 2);
    for damage in 0..3 {
        restore(dir.path(), &files);
        for path in &snapshots {
            match damage {
                0 => Disk.remove_file(path).unwrap(),
                1 => write(path, &[0; 40]),
                _ => write(path, &Disk.read(path).unwrap()[..9]),
            }
        }
        let mut open = opening(dir.path(), small());
        open.recovery_point = 50;
        let log = recover::open(open, &mut |_| ()).unwrap();
        assert_eq!(log.active_producers(), wanted);
        assert_eq!(everything(&log), all);
    }
}

#[test]
fn a_wrong_transaction_index_is_made_anew() {
    let dir = TempDir::new();
    let (files, _) = busy(&dir);
    let txn: Vec<_> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".txnindex"))
        .collect();
    assert!(!txn.is_empty());
    for (name, content) in txn {
        let path = dir.path().join(name);
        for wrong in [0xff, 0] {
            restore(dir.path(), &files);
            let end = open_crashed(dir.path(), small()).log_end_offset();
            write(&path, &vec![wrong; content.len()]);
            let mut open = opening(dir.path(), small());
            open.recovery_point = end;
            recover::open(open, &mut |_| ()).unwrap();
            assert_eq!(Disk.read(&path).unwrap(), *content, "{name}");
        }
    }
}

#[test]
fn a_lost_tail_below_the_log_start_begins_anew_there() {
    let dir = TempDir::new();
    let (files, _) = busy(&dir);
    restore(dir.path(), &files[..0]);
    for (name, content) in &files {
        if name.starts_with("00000000000000000000.") {
            write(&dir.path().join(name), content);
        }
    }
    let mut open = opening(dir.path(), LogConfig::default());
    open.log_start = 45;
    let mut log = recover::open(open, &mut |_| ()).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (45, 45));
    assert_eq!(
        log.append(&batch(1, 1), client(0)).unwrap().first_offset,
        45
    );
}

#[test]
fn work_cut_short_is_undone_or_completed() {
    let dir = TempDir::new();
    let (files, all) = busy(&dir);
    let (first, content) = files
        .iter()
        .find(|(name, _)| name.ends_with(".log"))
        .unwrap();
    let path = |name: &str| dir.path().join(name);
    // A compaction not yet complete, and a deletion not yet carried out.
    write(&path(&format!("{first}.cleaned")), b"half of something");
    write(&path("00000000000000000000.log.deleted"), content);
    assert_eq!(everything(&open_crashed(dir.path(), small())), all);
    let names = |dir: &TempDir| Disk.list(dir.path()).unwrap();
    assert!(names(&dir).iter().all(|entry| !entry.name.ends_with("ed")));
    // A complete one takes the place of what it replaces.
    let batches = Batches::new(content).map(|batch| batch.unwrap().bytes().len());
    let without_last: usize = batches.clone().sum::<usize>() - batches.last().unwrap();
    write(&path(&format!("{first}.swap")), &content[..without_last]);
    write(&path("00000000000000000000.index.swap"), b"");
    let log = open_crashed(dir.path(), small());
    assert!(
        names(&dir)
            .iter()
            .all(|entry| !entry.name.ends_with(".swap"))
    );
    assert_eq!(
        log.reader().size(),
        (all.len() - (content.len() - without_last)) as u64
    );
}

#[test]
fn hostile_files_are_refused_or_read() {
    let dir = TempDir::new();
    let (files, _) = busy(&dir);
    let seed = 0x5eed_0005;
    println!("seed {seed:#x}");
    let mut dice = Dice(seed);
    for _ in 0..150 {
        restore(dir.path(), &files);
        for _ in 0..=dice.below(3) {
            let (name, content) = &files[dice.below(files.len())];
            let mut bad = content.clone();
            for _ in 0..=dice.below(6) {
                if !bad.is_empty() {
                    let at = dice.below(bad.len());
                    bad[at] = dice.roll().to_le_bytes()[0];
                }
            }
            write(&dir.path().join(name), &bad);
        }
        let mut open = opening(dir.path(), small());
        open.is_clean = dice.below(2) == 0;
        open.recovery_point = i64::try_from(dice.below(60)).unwrap();
        open.log_start = i64::try_from(dice.below(10)).unwrap();
        let Ok(mut log) = recover::open(open, &mut |_| ()) else {
            continue;
        };
        let reader = log.reader();
        for offset in reader.log_start_offset()..reader.log_end_offset().min(70) {
            let want = Want {
                offset,
                upper: offset + 9,
                max_bytes: 500,
                min_one: true,
            };
            if let Ok(Located::Slice(slice)) = reader.locate(&want) {
                let _ = reader.aborted(offset, &slice);
            }
        }
        let _ = reader.offset_by_time(1001, i64::MAX);
        let _ = reader.newest(i64::MAX);
        let _ = log.append(&batch(1, 1), client(3));
        let _ = log.truncate_to(20, 0);
        let _ = log.close();
    }
}

#[test]
fn what_was_cut_off_before_a_roll_stays_away() {
    // Crash world, seed 4118: the name of the next segment is durable, the new size of this one not.
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    for _ in 0..3 {
        log.append(&batch(2, 80), client(0)).unwrap();
    }
    let first = dir.path().join("00000000000000000000.log");
    let uncut = Disk.read(&first).unwrap();
    log.truncate_to(2, NOW).unwrap().remove().unwrap();
    log.roll(2, NOW).unwrap();
    log.append(&batch(1, 10), client(0)).unwrap();
    let all = everything(&log);
    let files = files_of(dir.path());
    for end in uncut.len() / 3..=uncut.len() {
        restore(dir.path(), &files);
        write(&first, &uncut[..end]);
        let log = open_crashed(dir.path(), small());
        assert_eq!(everything(&log), all, "{end}");
        let ends = log.reader().segments().into_iter();
        let ends: Vec<_> = ends.map(|one| (one.base_offset, one.next_offset)).collect();
        assert_eq!(ends, [(0, 2), (2, 3)], "{end}");
    }
}

#[test]
fn a_recovery_tells_anew_what_producers_did_before_each_segment() {
    // Crash world, seed 3933: of a segment the end is lost, and the next with its snapshot is not.
    let dir = TempDir::new();
    let mut log = open_crashed(dir.path(), small());
    log.append(&producer_batch(8, 0, 1, true), client(0))
        .unwrap();
    let first = dir.path().join("00000000000000000000.log");
    let without_marker = Disk.read(&first).unwrap();
    log.append(&marker_batch(8, true), coordinator(0)).unwrap();
    log.roll(2, NOW).unwrap();
    log.append(&producer_batch(8, 1, 1, true), client(0))
        .unwrap();
    write(&first, &without_marker);
    let begun = |log: &Log| log.active_producers()[0].txn_start_offset;
    let log = open_crashed(dir.path(), small());
    assert_eq!(begun(&log), Some(0));
    let later = OpenLog {
        recovery_point: 3,
        ..opening(dir.path(), small())
    };
    let log = recover::open(later, &mut |_| ()).unwrap();
    assert_eq!(
        begun(&log),
        Some(0),
        "the transaction goes on from where it began"
    );
}

#[test]
fn a_segment_that_finds_no_room_leaves_nothing_that_ends_the_log() {
    for writes in 0..8 {
        let dir = TempDir::new();
        let mut log = open_crashed(dir.path(), small());
        for sequence in 0..8 {
            log.append(&producer_batch(7, sequence, 1, true), client(0))
                .unwrap();
        }
        sim_disk::begin();
        sim_disk::fail_after(writes, Failure::Full);
        let too_large_for_it = batch(1, 1900);
        let refused = log.append(&too_large_for_it, client(0)).is_err();
        sim_disk::end();
        if refused {
            let names = files_of(dir.path()).into_iter().map(|(name, _)| name);
            let of_another = names.filter(|name| name.contains("00008"));
            assert_eq!(of_another.count(), 0, "{writes}");
        }
        // What fits goes on where it was.
        for _ in 0..3 {
            log.append(&batch(1, 10), client(0)).unwrap();
        }
        let all = everything(&log);
        drop(log);
        assert_eq!(
            everything(&open_crashed(dir.path(), small())),
            all,
            "{writes}"
        );
    }
}

#[test]
fn a_segment_that_recovery_removed_does_not_come_back() {
    let dir = TempDir::new();
    let (_, all) = busy(&dir);
    // Crash world, seed 2852: there are none, so that nothing else makes the folder durable.
    for (name, _) in files_of(dir.path()) {
        if name.ends_with(".snapshot") {
            Disk.remove_file(&dir.path().join(name)).unwrap();
        }
    }
    let first = dir.path().join("00000000000000000000.log");
    let mut bytes = Disk.read(&first).unwrap();
    bytes.truncate(bytes.len() - 1);
    write(&first, &bytes);
    sim_disk::begin_on(dir.path()).unwrap();
    let mut log = open_crashed(dir.path(), small());
    assert!(everything(&log).len() < all.len());
    let more = batch(1, 10);
    log.append(&more, client(0)).unwrap();
    log.flush_now().unwrap();
    let (kept, end) = (everything(&log), log.log_end_offset());
    drop(log);
    let journal = sim_disk::end();
    // Of what was not made durable nothing is there.
    let crashed = journal.crash(journal.len(), &mut |_| 0);
    let after = TempDir::new();
    crashed.restore(dir.path(), after.path()).unwrap();
    let open = OpenLog {
        recovery_point: end,
        ..opening(after.path(), small())
    };
    let log = recover::open(open, &mut |_| ()).unwrap();
    assert!(everything(&log) == kept);
}
