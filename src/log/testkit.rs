//! What the tests of this folder share: directories that Kafka wrote, unpacked, and small batches.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::cleaner::{self, Cleaned, Go, Job, Memory, Unfinished};
use super::config::LogConfig;
use super::files::FileCache;
use super::log::{AppendContext, Log};
use super::producers::{Origin, Proof};
use super::recover::{self, OpenLog};
use crate::base::{LeaderEpoch, TopicPartition};
use crate::os::disk::{Disk, Open};
use crate::protocol::records::build::BatchBuilder;

pub(crate) const CLEAN: &[u8] = include_bytes!("testdata/clean.tar.gz");
pub(crate) const CLEAN_JSON: &[u8] = include_bytes!("testdata/clean.json.gz");
pub(crate) const CRASH: &[u8] = include_bytes!("testdata/crash.tar.gz");
pub(crate) const CRASH_JSON: &[u8] = include_bytes!("testdata/crash.json.gz");

/// A time later than all of the test data.
pub(crate) const NOW: i64 = 1_795_980_000_000;

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut out)
        .unwrap();
    out
}

/// Unpacks a tar archive, without what lies in `__cluster_metadata-0`.
pub(crate) fn unpack(archive: &[u8], into: &Path) {
    let tar = gunzip(archive);
    let mut at = 0;
    while tar[at] != 0 {
        let header = &tar[at..at + 512];
        let text = |range: std::ops::Range<usize>| {
            let field = &header[range];
            let end = field.iter().position(|byte| *byte == 0);
            String::from_utf8_lossy(&field[..end.unwrap_or(field.len())]).into_owned()
        };
        let name = text(0..100);
        let size = usize::from_str_radix(text(124..136).trim(), 8).unwrap();
        let path = into.join(name.trim_start_matches("./"));
        let content = &tar[at + 512..at + 512 + size];
        at += 512 + size.div_ceil(512) * 512;
        if name.contains("__cluster_metadata") {
            continue;
        }
        match header[156] {
            b'5' => Disk.create_dir_all(&path).unwrap(),
            b'0' | 0 => {
                let file = Disk.open(&path, Open::Write).unwrap();
                file.write_all_at(content, 0).unwrap();
            }
            kind => panic!("entry of kind {kind}"),
        }
    }
}

/// How a log of these tests is opened; change what the test is about.
pub(crate) fn opening(folder: &Path, config: LogConfig) -> OpenLog {
    OpenLog {
        partition: TopicPartition::new("t", 0),
        folder: folder.to_owned(),
        cache: FileCache::new(Disk, 16),
        config: Arc::new(config),
        is_clean: false,
        recovery_point: 0,
        log_start: 0,
        now_ms: NOW,
    }
}

/// Opens a log as after a crash.
pub(crate) fn open_crashed(folder: &Path, config: LogConfig) -> Log {
    recover::open(opening(folder, config), &mut |_| ()).unwrap()
}

/// A batch of one record, by whoever the builder is of.
pub(crate) fn single(
    mut builder: BatchBuilder,
    at_ms: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Bytes {
    builder.append(at_ms, key, value, &[]);
    Bytes::from(builder.build().unwrap())
}

/// A batch of these keys and values, by whoever the builder is of.
pub(crate) fn filled<'a>(
    mut builder: BatchBuilder,
    pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Bytes {
    for (key, value) in pairs {
        let value = value.map(str::as_bytes);
        builder.append(1000, Some(key.as_bytes()), value, &[(b"h", None)]);
    }
    Bytes::from(builder.build().unwrap())
}

/// The same by nobody.
pub(crate) fn keyed(pairs: &[(&str, Option<&str>)]) -> Bytes {
    filled(BatchBuilder::new(0), pairs.iter().copied())
}

/// A batch of `count` records of some length.
pub(crate) fn batch(count: usize, value_len: usize) -> Bytes {
    repeated(BatchBuilder::new(0), count, &vec![b'v'; value_len])
}

/// A batch of one transactional or idempotent producer.
pub(crate) fn producer_batch(id: i64, sequence: i32, count: usize, transactional: bool) -> Bytes {
    let builder = match transactional {
        true => transaction(id, sequence),
        false => BatchBuilder::new(0).producer(id, 0, sequence),
    };
    repeated(builder, count, b"v")
}

/// Begins a batch of a producer's transaction.
pub(crate) fn transaction(id: i64, sequence: i32) -> BatchBuilder {
    BatchBuilder::new(0)
        .producer(id, 0, sequence)
        .transactional()
}

fn repeated(mut builder: BatchBuilder, count: usize, value: &[u8]) -> Bytes {
    for n in 0..count {
        builder.append(1000 + n as i64, Some(b"k"), Some(value), &[]);
    }
    Bytes::from(builder.build().unwrap())
}

/// The end of a transaction.
pub(crate) fn marker_batch(id: i64, committed: bool) -> Bytes {
    let record = crate::protocol::records::control::ControlRecord::EndTransaction {
        committed,
        coordinator_epoch: 1,
    };
    let builder = transaction(id, -1).control();
    single(builder, 2000, Some(&record.key()), Some(&record.value()))
}

pub(crate) fn client(epoch: i32) -> AppendContext {
    AppendContext {
        origin: Origin::Client,
        leader_epoch: LeaderEpoch(epoch),
        now_ms: 1500,
        proof: Proof::NotNeeded,
    }
}

pub(crate) fn coordinator(epoch: i32) -> AppendContext {
    AppendContext {
        origin: Origin::Coordinator,
        ..client(epoch)
    }
}

/// A configuration with small segments and dense indexes.
pub(crate) fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 2000,
        segment_index_bytes: 1000,
        index_interval_bytes: 200,
        ..LogConfig::default()
    }
}

/// Compacts what is there to compact, at a time, with a map of so many slots.
pub(crate) fn try_clean(
    log: &Mutex<Log>,
    from: Option<i64>,
    now_ms: i64,
    slots: u64,
) -> Result<Cleaned, Unfinished> {
    let reader = log.lock().reader();
    let stable = reader.last_stable_offset(reader.log_end_offset());
    let part = reader.cleanable(stable, from, now_ms)?;
    let mut old = Vec::new();
    let cleaned = cleaner::clean(Job {
        log,
        part,
        memory: Memory {
            map_bytes: slots * 24,
            load_factor: 0.9,
            io_bytes: 0,
        },
        now_ms,
        pace: &mut |_| Go::On,
        old: &mut |doomed| old.push(doomed),
    });
    for doomed in old {
        doomed.remove()?;
    }
    cleaned
}

/// The files of a folder with their content.
pub(crate) fn files_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = Disk.list(folder).unwrap();
    entries
        .into_iter()
        .map(|entry| {
            let content = Disk.read(&folder.join(&entry.name)).unwrap();
            (entry.name, content)
        })
        .collect()
}
