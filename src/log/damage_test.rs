//! Stories of files that were damaged while nobody watched: what can be found out again is, and the
//! rest is missed by those alone who ask for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::log::Log;
use super::read::{Located, LogReader, Want};
use super::recover;
use super::testkit::*;
use crate::base::LeaderEpoch;
use crate::os::disk::{Disk, Open, TempDir};
use crate::protocol::records::batch::Batches;

/// A log of 40 batches in several segments, the later half of another epoch, closed in order.
fn closed_log(dir: &TempDir) -> (i64, BTreeMap<i64, Vec<u8>>) {
    let mut log = open_crashed(dir.path(), small());
    for n in 0..40 {
        log.append(&batch(2, 60), client(n / 20)).unwrap();
    }
    log.close().unwrap();
    (log.log_end_offset(), contents(&log.reader()))
}

fn open_clean(dir: &TempDir, recovery_point: i64) -> Log {
    let mut open = opening(dir.path(), small());
    open.is_clean = true;
    open.recovery_point = recovery_point;
    recover::open(open, &mut |_| ()).unwrap()
}

/// The batch that a reader of an offset gets, if it gets one.
fn read(reader: &LogReader, offset: i64) -> Option<(i64, Vec<u8>)> {
    let want = Want {
        offset,
        upper: i64::MAX,
        max_bytes: 1,
        min_one: true,
    };
    let located = match reader.locate(&want) {
        Ok(located) => located,
        Err(fault) if fault.is_damage() => return None,
        Err(fault) => panic!("{fault}"),
    };
    let Located::Slice(slice) = located else {
        panic!("{located:?}");
    };
    let mut bytes = vec![0; slice.len];
    let read = slice.file.read_exact_at(&mut bytes, slice.position);
    read.unwrap();
    let batch = Batches::new(&bytes).next().unwrap().unwrap();
    batch.check_crc().unwrap();
    Some((batch.header.base_offset, batch.bytes().to_vec()))
}

fn contents(reader: &LogReader) -> BTreeMap<i64, Vec<u8>> {
    let mut all = BTreeMap::new();
    for offset in 0..reader.log_end_offset() {
        let (base, bytes) = read(reader, offset).unwrap();
        assert!((base..base + 2).contains(&offset), "{base} for {offset}");
        all.insert(base, bytes);
    }
    all
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let names = Disk.list(folder).unwrap().into_iter();
    let names = names.filter(|entry| entry.name.ends_with(ending));
    names.map(|entry| folder.join(entry.name)).collect()
}

fn write(path: &Path, at: usize, byte: u8) {
    let file = Disk.open(path, Open::Write).unwrap();
    file.write_all_at(&[byte], at as u64).unwrap();
}

#[test]
fn an_index_entry_that_is_wrong_is_gone_by() {
    let dir = TempDir::new();
    let (end, wanted) = closed_log(&dir);
    let indexes = files(dir.path(), ".index");
    assert!(indexes.len() > 2);
    for path in [&indexes[0], &indexes[1], indexes.last().unwrap()] {
        let good = Disk.read(path).unwrap();
        for at in 0..good.len() {
            write(path, at, good[at] ^ 0x41);
            let log = open_clean(&dir, end);
            assert_eq!(contents(&log.reader()), wanted, "{path:?} at {at}");
            Disk.replace(path, &good).unwrap();
        }
    }
}

#[test]
fn a_last_batch_that_is_cut_short_is_cut_off_also_after_an_orderly_stop() {
    let dir = TempDir::new();
    let (end, mut wanted) = closed_log(&dir);
    let last = files(dir.path(), ".log").pop().unwrap();
    let file = Disk.open(&last, Open::Write).unwrap();
    file.set_len(file.len().unwrap() - 10).unwrap();
    let mut log = open_clean(&dir, end);
    assert_eq!(log.log_end_offset(), end - 2);
    wanted.pop_last();
    assert_eq!(contents(&log.reader()), wanted);
    log.append(&batch(2, 60), client(1)).unwrap();
    let wanted = contents(&log.reader());
    assert_eq!(wanted.len(), 40);
    drop(log);
    assert_eq!(
        contents(&open_crashed(dir.path(), small()).reader()),
        wanted
    );
}

#[test]
fn a_damaged_batch_is_missed_by_who_asks_for_it_alone() {
    let dir = TempDir::new();
    let (end, wanted) = closed_log(&dir);
    let first = files(dir.path(), ".log").remove(0);
    // The length of the third batch.
    let at: usize = wanted.values().take(2).map(Vec::len).sum();
    write(&first, at + 8, 0x80);
    let mut log = open_clean(&dir, end);
    let reader = log.reader();
    assert!(read(&reader, 4).is_none() && read(&reader, 5).is_none());
    for offset in (0..4).chain(20..end) {
        assert!(read(&reader, offset).is_some(), "{offset}");
    }
    log.append(&batch(2, 60), client(1)).unwrap();
    log.close().unwrap();
}

#[test]
fn no_segment_is_too_old_on_the_word_of_an_index() {
    let dir = TempDir::new();
    let (end, wanted) = closed_log(&dir);
    let newest = |log: &Log| {
        let times = log.segments.iter().map(|one| one.newest().unwrap());
        times.map(|one| one.timestamp).collect::<Vec<_>>()
    };
    let times = newest(&open_clean(&dir, end));
    let now = times[0] + small().retention_ms;
    for path in files(dir.path(), ".timeindex") {
        let zeros = vec![0; Disk.read(&path).unwrap().len()];
        Disk.replace(&path, &zeros).unwrap();
    }
    let mut log = open_clean(&dir, end);
    log.reader().confirm_ages(now).unwrap();
    assert_eq!(newest(&log)[0], times[0]);
    assert!(log.retain(end, now).unwrap().plan.gone.is_empty());
    assert_eq!(contents(&log.reader()), wanted);
    log.reader().confirm_ages(now + 1000).unwrap();
    assert!(!log.retain(end, now + 1000).unwrap().plan.gone.is_empty());
}

#[test]
fn damaged_epochs_are_read_from_all_batches() {
    for is_clean in [true, false] {
        let dir = TempDir::new();
        let (end, wanted) = closed_log(&dir);
        let path = dir.path().join("leader-epoch-checkpoint");
        let good = Disk.read(&path).unwrap();
        assert_eq!(good, b"0\n2\n0 0\n1 40\n");
        for bad in [&b"0\n2\n0 0\n"[..], b"\xff\xff", b"0\n2\n0 0\n1 4x\n"] {
            Disk.replace(&path, bad).unwrap();
            let mut open = opening(dir.path(), small());
            open.is_clean = is_clean;
            open.recovery_point = end;
            let log = recover::open(open, &mut |_| ()).unwrap();
            assert_eq!(Disk.read(&path).unwrap(), good);
            assert_eq!(log.reader().epoch_of(39), Some(LeaderEpoch(0)));
            assert_eq!(contents(&log.reader()), wanted);
        }
    }
}

#[test]
fn nothing_is_cut_off_because_more_had_to_be_read() {
    for (is_clean, is_header) in [(true, false), (true, true), (false, false), (false, true)] {
        let dir = TempDir::new();
        let (end, wanted) = closed_log(&dir);
        let logs = files(dir.path(), ".log");
        let before: Vec<Vec<u8>> = logs.iter().map(|path| Disk.read(path).unwrap()).collect();
        // A byte of the first batch's records, or its magic.
        write(&logs[0], if is_header { 16 } else { 80 }, 0x55);
        Disk.replace(&dir.path().join("leader-epoch-checkpoint"), b"?")
            .unwrap();
        let mut open = opening(dir.path(), small());
        open.is_clean = is_clean;
        open.recovery_point = end;
        let opened = recover::open(open, &mut |_| ());
        match opened {
            Ok(log) => {
                assert!(!is_header);
                assert_eq!(log.log_end_offset(), end);
                for (base, bytes) in wanted.range(2..) {
                    assert_eq!(read(&log.reader(), *base), Some((*base, bytes.clone())));
                }
            }
            Err(fault) => assert!(is_header && fault.is_damage(), "{fault}"),
        }
        for (path, bytes) in logs.iter().zip(&before).skip(1) {
            assert!(Disk.read(path).unwrap() == *bytes, "{is_clean} {is_header}");
        }
    }
}
