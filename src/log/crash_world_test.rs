//! A log under everything at once, on a disk that loses what was not made durable: appended to,
//! rolled, flushed, compacted, trimmed, cut, and crashed before any operation. What was promised is
//! there afterwards, nothing else than was written is, and the log goes on: one of the crashes is
//! the beginning of another life, in which the recovery may be crashed too.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parking_lot::Mutex;

use super::checkpoint::{self, LOG_STARTS, RECOVERY_POINTS};
use super::cleaner::{self, Go, Job, Memory};
use super::config::LogConfig;
use super::log::{AppendError, Doomed, Log};
use super::read::{Located, Want};
use super::recover::{self, OpenLog};
use super::testkit::*;
use crate::base::TopicPartition;
use crate::os::disk::{Disk, TempDir};
use crate::os::random::Dice;
use crate::os::sim_disk::{self, Crashed, Failure, Journal};
use crate::protocol::records::batch::Batches;
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::iter::Records;

/// Worlds in an ordinary run, how often each is begun, and crashes in each of its lives.
const SEEDS: u64 = 40;
const LIVES: usize = 3;
const CRASHES: usize = 6;
const STEPS: usize = 60;

/// A record as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    key: String,
    value: Option<String>,
    producer: i64,
}

/// What holds after a step.
#[derive(Clone, Debug, Default)]
struct Promise {
    /// Everything below is durable.
    durable: i64,
    log_start: i64,
    is_compacted: bool,
    /// As far as a checkpoint tells after a crash.
    cleaned_to: Option<i64>,
    records: BTreeMap<i64, Told>,
    /// Aborted transactions: producer, first record, marker.
    aborted: Vec<(i64, i64, i64)>,
}

struct World {
    root: PathBuf,
    dice: Dice,
    config: LogConfig,
    log: Mutex<Log>,
    now: Promise,
    promises: Vec<Promise>,
    /// Every version of a record, for offsets that were given twice.
    versions: HashMap<i64, Vec<Told>>,
    /// Open transactions by producer: their first record.
    open: BTreeMap<i64, i64>,
    truncates: bool,
    /// Nothing below is cut: a leader's log is the same there.
    agreed: i64,
    /// The highest start that the log ever had: a producer that wrote only below may be forgotten.
    highest_start: i64,
    now_ms: i64,
    doomed: Vec<Doomed>,
    /// Whether the log cannot be used after a failure, whatever it was.
    is_lost: bool,
    /// Where batches begin.
    bases: Vec<i64>,
    /// Of each batch of a producer that, its last sequence and its last offset.
    sequences: Vec<(i64, i32, i64)>,
    count: usize,
}

fn folder(root: &Path) -> PathBuf {
    root.join("t-0")
}

fn of() -> TopicPartition {
    TopicPartition::new("t", 0)
}

/// Opens the log as after a crash, by what the checkpoints say.
fn open(root: &Path, config: &LogConfig) -> Log {
    recover::open(opening_crashed(root, config), &mut |_| ()).unwrap()
}

fn opening_crashed(root: &Path, config: &LogConfig) -> OpenLog {
    let offset = |name| {
        let found = checkpoint::read_offsets(Disk, &root.join(name)).unwrap();
        found.first().map_or(0, |(_, offset)| *offset)
    };
    OpenLog {
        partition: of(),
        folder: folder(root),
        recovery_point: offset(RECOVERY_POINTS),
        log_start: offset(LOG_STARTS),
        ..opening(&folder(root), config.clone())
    }
}

impl World {
    fn new(root: &Path, seed: u64) -> Self {
        let mut dice = Dice(seed);
        sim_disk::begin();
        Disk.create_dir_all(root).unwrap();
        Disk.create_dir_all(&folder(root)).unwrap();
        let config = LogConfig {
            compact: true,
            min_cleanable_ratio: 0.0,
            delete_retention_ms: 5,
            delete: dice.one_in(4),
            retention_bytes: 4000,
            retention_ms: -1,
            producer_id_expiration_ms: i64::MAX,
            segment_bytes: 900 + dice.below(900) as u64,
            ..small()
        };
        let log = Mutex::new(open(root, &config));
        Self {
            root: root.to_owned(),
            truncates: dice.one_in(3),
            dice,
            config,
            log,
            now: Promise::default(),
            promises: Vec::new(),
            versions: HashMap::new(),
            open: BTreeMap::new(),
            agreed: 0,
            highest_start: 0,
            now_ms: NOW,
            doomed: Vec::new(),
            is_lost: false,
            bases: Vec::new(),
            sequences: Vec::new(),
            count: 0,
        }
    }

    /// Begins again on what a crash left.
    fn reborn(mut self, root: &Path, left: Survived) -> Self {
        let was = &self.promises[left.mark];
        let found = left.found;
        self.now = Promise {
            durable: left.durable,
            log_start: was.log_start,
            is_compacted: self.now.is_compacted,
            // The checkpoint may be lost, and then all is compacted anew.
            cleaned_to: was.cleaned_to.filter(|_| self.dice.one_in(2)),
            aborted: std::mem::take(&mut self.now.aborted),
            records: BTreeMap::new(),
        };
        self.now
            .aborted
            .retain(|(_, _, last)| found.markers.contains(last));
        self.now.records = found
            .records
            .into_iter()
            .map(|(at, (told, _))| (at, told))
            .collect();
        self.bases = found.bases;
        self.doomed.clear();
        self.promises.clear();
        root.clone_into(&mut self.root);
        sim_disk::begin_on(root).unwrap();
        sim_disk::mark(0);
        self.promises.push(self.now.clone());
        let log = open(root, &self.config);
        let open = log.active_producers().into_iter();
        let open = open.filter_map(|one| Some((one.producer_id, one.txn_start_offset?)));
        self.open = open.collect();
        self.log = Mutex::new(log);
        assert!(self.checkpoint());
        self
    }

    /// Runs until the end or a fault; the notes of it.
    fn run(&mut self) -> Journal {
        self.promise();
        self.is_lost = false;
        let failure = match self.dice.below(8) {
            0 => Some(Failure::Broken),
            1 | 2 => Some(Failure::Full),
            _ => None,
        };
        if let Some(failure) = failure {
            sim_disk::fail_after(self.dice.below(600), failure);
        }
        for _ in 0..STEPS {
            self.now_ms += 1;
            let fails = !self.step();
            if fails && (self.is_lost || failure != Some(Failure::Full)) {
                // A directory that failed is not used any more; one that was full is.
                self.note_log_start();
                break;
            }
            self.promise();
        }
        sim_disk::end()
    }

    fn promise(&mut self) {
        self.now.durable = self.log.lock().recovery_point();
        self.note_log_start();
        sim_disk::mark(self.promises.len());
        self.promises.push(self.now.clone());
    }

    fn note_log_start(&mut self) {
        self.now.log_start = self.log.lock().log_start_offset();
        self.highest_start = self.highest_start.max(self.now.log_start);
    }

    fn step(&mut self) -> bool {
        match self.dice.below(20) {
            0..9 => self.append(),
            9..11 => self.end_transaction(),
            11..14 => self.flush(),
            14..16 => self.clean(),
            16 => self.delete_records(),
            17 => self.cut(),
            18 => self.roll(),
            _ if self.dice.one_in(3) => self.killed(),
            _ if self.dice.one_in(3) => self.stopped(),
            _ => self.remove_doomed(),
        }
    }

    fn append(&mut self) -> bool {
        let producer = match self.dice.below(4) {
            0 => 7 + self.dice.below(2) as i64,
            _ => -1,
        };
        let mut builder = BatchBuilder::new(0);
        if producer >= 0 {
            builder = builder.producer(producer, 0, self.next_sequence(producer));
            if !self.truncates {
                builder = builder.transactional();
            }
        }
        let mut told = Vec::new();
        for _ in 0..=self.dice.below(3) {
            self.count += 1;
            let key = format!("k{}", self.dice.below(9));
            // Some are larger than what a disk writes as a whole: only their headers may be there.
            let is_large = told.is_empty() && self.dice.one_in(4);
            let more = "x".repeat(if is_large { 550 } else { 0 });
            let value = (!self.dice.one_in(5)).then(|| format!("value {}{more}", self.count));
            let bytes = value.as_deref().map(str::as_bytes);
            builder.append(1000, Some(key.as_bytes()), bytes, &[]);
            told.push(Told {
                key,
                value,
                producer,
            });
        }
        let bytes = Bytes::from(builder.build().unwrap());
        if producer >= 0 {
            let last = told.len() as i64 - 1;
            let sequence = self.next_sequence(producer) + i32::try_from(last).unwrap();
            let offset = self.log.lock().log_end_offset() + last;
            self.sequences.push((producer, sequence, offset));
        }
        let done = self.log.lock().append(&bytes, coordinator(0));
        let first = match done {
            Ok(appended) => appended.first_offset,
            Err(AppendError::Fault(_)) => {
                // A crash may find it nevertheless.
                let end = self.log.lock().log_end_offset();
                for (offset, told) in (end..).zip(told) {
                    self.versions.entry(offset).or_default().push(told);
                }
                return false;
            }
            Err(other) => panic!("{other:?}"),
        };
        self.bases.push(first);
        if producer >= 0 && !self.truncates {
            self.open.entry(producer).or_insert(first);
        }
        for (offset, told) in (first..).zip(told) {
            self.versions.entry(offset).or_default().push(told.clone());
            self.now.records.insert(offset, told);
        }
        true
    }

    fn next_sequence(&self, producer: i64) -> i32 {
        let active = self.log.lock().active_producers();
        let known = active.iter().find(|one| one.producer_id == producer);
        known.map_or(0, |known| known.last_sequence + 1)
    }

    fn end_transaction(&mut self) -> bool {
        let Some((producer, first)) = self.open.pop_first() else {
            return true;
        };
        let committed = self.dice.one_in(2);
        let marker = marker_batch(producer, committed);
        match self.log.lock().append(&marker, coordinator(0)) {
            Ok(appended) if !committed => {
                self.now
                    .aborted
                    .push((producer, first, appended.last_offset));
                true
            }
            Ok(_) => true,
            Err(_) => {
                self.open.insert(producer, first);
                false
            }
        }
    }

    fn flush(&mut self) -> bool {
        let flush = match self.dice.one_in(2) {
            true => self.log.lock().begin_anchor(),
            false => self.log.lock().begin_flush(),
        };
        let Ok(flush) = flush else { return false };
        // What happens while it runs it does not cover.
        if !self.meanwhile() || flush.sync().is_err() || !self.meanwhile() {
            return false;
        }
        let ended = self.log.lock().end_flush(&flush);
        if ended.is_err() {
            return false;
        }
        !self.dice.one_in(2) || self.checkpoint()
    }

    fn meanwhile(&mut self) -> bool {
        match self.dice.below(12) {
            0..2 => self.append(),
            2 => self.roll(),
            3 => self.cut(),
            4 => self.delete_records(),
            _ => true,
        }
    }

    fn clean(&mut self) -> bool {
        let reader = self.log.lock().reader();
        let end = reader.log_end_offset();
        let stable = reader.last_stable_offset(end);
        let Ok(part) = reader.cleanable(stable, self.now.cleaned_to, self.now_ms) else {
            return false;
        };
        // What a crash in the middle finds may be compacted already.
        self.now.is_compacted = true;
        self.promise();
        let slots = 4 + self.dice.below(40) as u64;
        let mut old = Vec::new();
        let cleaned = cleaner::clean(Job {
            log: &self.log,
            part,
            memory: Memory {
                map_bytes: slots * 24,
                load_factor: 0.9,
                io_bytes: 0,
            },
            now_ms: self.now_ms,
            pace: &mut |_| Go::On,
            old: &mut |doomed| old.push(doomed),
        });
        self.doomed.append(&mut old);
        match cleaned {
            Ok(cleaned) => {
                self.now.cleaned_to = Some(cleaned.up_to);
                self.agreed = self.agreed.max(cleaned.up_to);
            }
            Err(_) => {
                // Some of it may be done.
                self.agreed = self.agreed.max(end);
                return false;
            }
        }
        self.retain()
    }

    fn retain(&mut self) -> bool {
        let mut log = self.log.lock();
        let end = log.log_end_offset();
        let retained = log.retain(end, self.now_ms);
        drop(log);
        match retained {
            Ok(retained) => {
                self.doomed.push(retained.doomed);
                true
            }
            Err(_) => false,
        }
    }

    fn delete_records(&mut self) -> bool {
        let mut log = self.log.lock();
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let room = usize::try_from(end - start).unwrap();
        let to = start + self.dice.below(room / 3 + 1) as i64;
        let done = log.advance_log_start(to).and_then(|_| log.delete_below(to));
        drop(log);
        match done {
            Ok(doomed) => {
                self.doomed.push(doomed);
                true
            }
            Err(_) => false,
        }
    }

    /// Only what was not compacted can differ from a leader's log.
    fn cut(&mut self) -> bool {
        if !self.truncates {
            return true;
        }
        let mut log = self.log.lock();
        let from = self.agreed.max(log.log_start_offset());
        // Leaders and followers agree on whole batches.
        let all = self.bases.partition_point(|base| *base < from);
        let Some(at) = (self.bases.len() - all).checked_sub(1) else {
            return true;
        };
        let at = all + self.dice.below(at + 1);
        let to = self.bases[at];
        self.bases.truncate(at);
        let cut = log.truncate_to(to, self.now_ms);
        let (end, point) = (log.log_end_offset(), log.recovery_point());
        drop(log);
        self.now.records.split_off(&end);
        self.now.durable = self.now.durable.min(point);
        let Ok(doomed) = cut else {
            self.is_lost = true;
            return false;
        };
        self.doomed.push(doomed);
        let path = self.root.join(RECOVERY_POINTS);
        let stored = checkpoint::write_offsets(Disk, &path, [(&of(), point)]).is_ok()
            && self.log.lock().checkpointed(point).is_ok();
        // Nothing may be appended before.
        self.is_lost = !stored;
        stored
    }

    fn roll(&self) -> bool {
        let mut log = self.log.lock();
        let end = log.log_end_offset();
        log.roll(end, self.now_ms).is_ok()
    }

    /// An orderly stop, and the next start.
    fn stopped(&mut self) -> bool {
        self.doomed.clear();
        self.is_lost = true;
        if self.log.lock().close().is_err() || !self.checkpoint() {
            return false;
        }
        let clean = OpenLog {
            is_clean: true,
            ..opening_crashed(&self.root, &self.config)
        };
        match recover::open(clean, &mut |_| ()) {
            Ok(log) => self.log = Mutex::new(log),
            Err(_) => return false,
        }
        self.is_lost = false;
        true
    }

    fn checkpoint(&self) -> bool {
        let mut log = self.log.lock();
        let (point, start) = (log.recovery_point(), log.log_start_offset());
        let write = |name, offset| {
            checkpoint::write_offsets(Disk, &self.root.join(name), [(&of(), offset)])
        };
        write(RECOVERY_POINTS, point).is_ok()
            && log.checkpointed(point).is_ok()
            && write(LOG_STARTS, start).is_ok()
    }

    /// The process ends and another begins: nothing is lost, and nothing got durable by that.
    fn killed(&mut self) -> bool {
        self.doomed.clear();
        let Ok(log) = recover::open(opening_crashed(&self.root, &self.config), &mut |_| ()) else {
            self.is_lost = true;
            return false;
        };
        self.now.durable = self.now.durable.min(log.recovery_point());
        self.log = Mutex::new(log);
        // A checkpoint beyond the log's end must not be believed once more is appended.
        self.checkpoint()
    }

    fn remove_doomed(&mut self) -> bool {
        self.doomed.drain(..).all(|doomed| doomed.remove().is_ok())
    }
}

/// What a reader finds in an open log.
#[derive(Debug, Default)]
struct Found {
    /// The records, and whether a reader is told that they were aborted.
    records: BTreeMap<i64, (Told, bool)>,
    markers: Vec<i64>,
    bases: Vec<i64>,
    /// Of each producer the last sequence and its offset.
    sequences: BTreeMap<i64, (i32, i64)>,
}

/// What a crash left, seen through an open log.
struct Survived {
    found: Found,
    durable: i64,
    /// The last promise before it.
    mark: usize,
}

fn read(log: &Log) -> Found {
    let reader = log.reader();
    let mut found = Found::default();
    let mut offset = reader.log_start_offset();
    loop {
        let want = Want {
            offset,
            upper: reader.log_end_offset(),
            max_bytes: 500,
            min_one: true,
        };
        let Located::Slice(slice) = reader.locate(&want).unwrap() else {
            return found;
        };
        let aborted = reader.aborted(offset, &slice).unwrap();
        let mut bytes = vec![0; slice.len];
        let read = slice.file.read_exact_at(&mut bytes, slice.position);
        read.unwrap();
        for batch in Batches::new(&bytes) {
            let Ok(batch) = batch else { break };
            batch.check_crc().unwrap();
            let header = batch.header;
            assert!(header.next_offset() > offset, "reading goes on");
            offset = header.next_offset();
            found.bases.push(header.base_offset);
            if header.is_control() {
                found.markers.push(header.base_offset);
                continue;
            }
            if header.has_producer_id() {
                found.sequences.insert(
                    header.producer_id,
                    (header.last_sequence(), header.last_offset()),
                );
            }
            for record in Records::of(&batch, 1 << 20).unwrap().iter() {
                let record = record.unwrap();
                let at = header.base_offset + i64::from(record.offset_delta);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let told = Told {
                    key: record.key.map(text).unwrap(),
                    value: record.value.map(text),
                    producer: header.producer_id,
                };
                let is_aborted = aborted.iter().any(|one| {
                    one.producer_id == header.producer_id
                        && (one.first_offset..one.last_offset).contains(&at)
                });
                if at >= reader.log_start_offset() {
                    found.records.insert(at, (told, is_aborted));
                }
            }
        }
    }
}

/// What must hold in a log that was opened after a crash; how much of it was durable.
fn check(world: &World, log: &Log, mark: usize) -> (Found, i64) {
    let before = &world.promises[mark];
    // The step under way may have come to its end.
    let after = world.promises.get(mark + 1).unwrap_or(&world.now);
    let durable = before.durable.min(
        after
            .durable
            .max(if world.truncates { 0 } else { i64::MAX }),
    );
    let end = log.log_end_offset();
    let start = log.log_start_offset();
    assert!(
        end >= durable,
        "of what was durable up to {durable} there is {start}..{end}"
    );
    let most = before
        .log_start
        .max(after.log_start)
        .max(world.now.log_start);
    assert!(start <= most, "more is deleted than was asked for");
    let found = read(log);
    check_producers(world, log, &found);
    let is_compacted = before.is_compacted || after.is_compacted;
    let is_aborted = |offset: i64, told: &Told| {
        before
            .aborted
            .iter()
            .chain(&after.aborted)
            .any(|(id, first, last)| *id == told.producer && (*first..*last).contains(&offset))
    };
    let mut newest: HashMap<&str, i64> = HashMap::new();
    for (offset, told) in &after.records {
        if !is_aborted(*offset, told) {
            newest.insert(&told.key, *offset);
        }
    }
    for (offset, told) in before.records.range(start.min(durable)..durable) {
        match found.records.get(offset) {
            Some((stays, _)) => assert_eq!(stays, told, "{offset}"),
            None => {
                assert!(is_compacted, "{offset} is gone: {told:?}");
                let superseded = newest.get(told.key.as_str()).is_none_or(|new| new > offset);
                let may_go = told.value.is_none() || superseded || is_aborted(*offset, told);
                let segments = log.reader().segments();
                assert!(
                    may_go,
                    "{offset} is gone: {told:?}, of {segments:?}, {start} {durable}"
                );
            }
        }
    }
    for (offset, (told, hidden)) in &found.records {
        let known = &world.versions[offset];
        assert!(known.contains(told), "{offset} was never written: {told:?}");
        // A marker that was not durable may be lost though later records are not.
        let ended = before.aborted.iter().find(|(id, first, last)| {
            *id == told.producer && (*first..*last).contains(offset) && found.markers.contains(last)
        });
        if ended.is_some() && !world.truncates {
            let known = log.reader().aborted_between(0, i64::MAX).unwrap();
            assert!(
                hidden,
                "{offset} was aborted: {told:?}, {ended:?}, known are {known:?}"
            );
        }
    }
    (found, durable)
}

/// Producers are known by the newest batch that the log ever had below its end. Compaction may have
/// taken that batch when a later one was there, which the crash took. What ever lay below the log's
/// start may be forgotten, also when a crash or a kill brought that back: a log that is cut knows its
/// producers from its start on (UnifiedLog.rebuildProducerState), and says so in its snapshots.
fn check_producers(world: &World, log: &Log, found: &Found) {
    let producers = log.active_producers();
    let kept = found
        .sequences
        .iter()
        .filter(|(_, (_, last))| *last >= world.highest_start);
    for (id, (sequence, at)) in kept {
        let known = producers.iter().find(|one| one.producer_id == *id);
        let known = known.map_or(-1, |one| one.last_sequence);
        assert!(
            known >= *sequence,
            "producer {id} is known by {known}, not {sequence} at {at}, with batches at {:?} of {:?}",
            found.bases,
            log.reader().segments()
        );
    }
    for one in producers.iter().filter(|one| one.last_sequence >= 0) {
        let end = log.log_end_offset();
        let is_it = |(id, sequence, last): &(i64, i32, i64)| {
            (*id, *sequence) == (one.producer_id, one.last_sequence) && *last < end
        };
        assert!(
            world.sequences.iter().any(is_it),
            "{one:?} is of what was lost"
        );
    }
}

/// It goes on, and an orderly stop and a start find the same.
fn goes_on(log: &mut Log, root: &Path, config: &LogConfig) {
    let end = log.log_end_offset();
    assert_eq!(
        log.append(&batch(1, 10), client(9)).unwrap().first_offset,
        end
    );
    log.close().unwrap();
    let mut clean = opening(&folder(root), config.clone());
    (clean.is_clean, clean.recovery_point) = (true, end + 1);
    clean.log_start = log.log_start_offset();
    let again = recover::open(clean, &mut |_| ()).unwrap();
    assert_eq!(again.log_end_offset(), end + 1);
    assert_eq!(again.active_producers(), log.active_producers());
}

/// Lives the lives of a world; of a failure so many operations are shown.
fn run(seed: u64, shown: usize) {
    let dir = TempDir::new();
    let root = |life: usize| dir.path().join(format!("life-{life}"));
    let mut world = World::new(&root(0), seed);
    let mut dice = Dice(seed ^ 0xc0ff_ee00);
    for life in 0..LIVES {
        let journal = world.run();
        let mut left = None;
        for crash in 0..CRASHES {
            let lived = journal.len() - journal.found();
            let at = match crash {
                0 => journal.len(),
                _ => journal.found() + dice.below(lived + 1),
            };
            let crashed = journal.crash(at, &mut |bound| dice.below(bound));
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                survives(&world, &crashed, &dir.path().join("after"), crash % 4 == 0)
            }));
            match checked {
                Ok(survived) => left = survived.map(|survived| (crashed, survived)).or(left),
                Err(panic) => {
                    println!("seed {seed}, life {life}, crash {crash} before operation {at}");
                    println!("{}", journal.describe(at, shown));
                    std::panic::resume_unwind(panic);
                }
            }
        }
        let Some((crashed, survived)) = left else {
            return;
        };
        crashed.restore(&world.root, &root(life + 1)).unwrap();
        world = world.reborn(&root(life + 1), survived);
    }
    sim_disk::end();
}

/// Opens what a crash left, if it came after the first promise.
fn survives(world: &World, crashed: &Crashed, at: &Path, goes_on: bool) -> Option<Survived> {
    let mark = crashed.mark?;
    crashed.restore(&world.root, at).unwrap();
    let mut log = open(at, &world.config);
    let (found, durable) = check(world, &log, mark);
    if goes_on {
        self::goes_on(&mut log, at, &world.config);
    }
    Some(Survived {
        found,
        durable,
        mark,
    })
}

/// B219
#[test]
fn what_was_promised_survives_a_crash_at_any_moment() {
    sim_disk::worlds(SEEDS, run);
}
