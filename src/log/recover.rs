//! Opening a log (org.apache.kafka.storage.internals.log.LogLoader).
//!
//! After an orderly stop only the last batches are looked at. Otherwise everything from the recovery
//! point on is read: indexes, epochs and producers are made anew from what is whole, and the log ends
//! where the first batch is not. Below the recovery point the headers are read from the last anchor
//! on ([`super::resume`]), or from the start of the segment if it has none, for its indexes are not
//! made durable with its batches. Work that was cut short by the stop is undone or completed first.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use tracing::warn;

use super::anchor::Place;
use super::checkpoint::{self, LEADER_EPOCHS};
use super::config::LogConfig;
use super::epochs::Epochs;
use super::fault::{At, Fault};
use super::files::FileCache;
use super::flush;
use super::layout::{self, FileName, Kind};
use super::log::Log;
use super::producers::{CompletedTxn, Producers};
use super::read::Shared;
use super::rebuild::{Known, drop_snapshots, producers_at, replay};
use super::resume::{self, Resumed};
use super::roll::Active;
use super::scan::{Found, HEADERS, NEARBY, Scan, Stop, WHOLE};
use super::segment::{Appending, Segment};
use super::settle::Unmade;
use super::{snapshot, swap};
use crate::base::{LeaderEpoch, TopicId, TopicPartition};
use crate::protocol::records::batch::BadBatch;

/// Batches at least so large are worth skipping, to read the header of the next one only.
const SKIPPED: u64 = 4 * NEARBY as u64;
/// How often a long recovery tells of itself.
const PROGRESS_BYTES: u64 = 16 << 20;

type Segments = Vec<Arc<Segment>>;

/// What is known of a log before it is opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenLog {
    pub(crate) partition: TopicPartition,
    pub(crate) folder: PathBuf,
    pub(crate) cache: Arc<FileCache>,
    pub(crate) config: Arc<LogConfig>,
    /// Whether its directory was closed in order.
    pub(crate) is_clean: bool,
    /// As checkpointed; 0 when unknown.
    pub(crate) recovery_point: i64,
    /// As checkpointed; 0 when unknown.
    pub(crate) log_start: i64,
    pub(crate) now_ms: i64,
}

/// How far a recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) segment_base_offset: i64,
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
}

/// Opens a log; `progress` is told now and then while segments are read.
pub(crate) fn open(mut open: OpenLog, progress: &mut dyn FnMut(Progress)) -> Result<Log, Fault> {
    let Present { bases, snapshots } = tidy(&open)?;
    // Where something else is damaged more is read, and that is as durable as it was.
    let durable = match open.is_clean {
        true => i64::MAX,
        false => open.recovery_point,
    };
    let (mut segments, mut reindexed) = open_segments(&open, &bases)?;
    for segment in &segments {
        if !segment.txn_index.is_plausible(segment.base_offset)? {
            // Only reading everything again tells which transactions were aborted.
            open.is_clean = false;
            open.recovery_point = open.recovery_point.min(segment.base_offset);
        }
    }
    let stored = stored_epochs(&mut open)?;
    let mut epochs = Epochs::load(stored.iter().copied());
    let recovered = if open.is_clean {
        None
    } else {
        let present = (&mut segments, &snapshots);
        Some(recover(&open, present, durable, &mut epochs, progress)?)
    };
    let log_end = match &recovered {
        Some(recovered) => recovered.log_end,
        None => end_of_clean(&open, &segments, &mut reindexed)?,
    };
    let log_start = open.log_start.max(segments[0].base_offset);
    let mut log = assemble(&open, segments, (log_start, log_end), epochs);
    let is_as_stopped = match &recovered {
        Some(recovered) => recovered.is_as_anchored,
        None => true,
    };
    log.is_touched = !is_as_stopped || !reindexed.is_empty() || bases.is_empty();
    // Whoever wrote a batch had settled the folder before.
    log.is_settled = log_end > 0;
    for segment in reindexed {
        log.flush.sealed(segment);
    }
    if !open.is_clean {
        // Read back is not the same as durable.
        let from = first_unsure(&log.segments, open.recovery_point);
        for segment in &log.segments[from..log.segments.len() - 1] {
            log.flush.sealed(Arc::clone(segment));
        }
        log.flush.truncated(open.recovery_point);
    }
    log.shared.set_durable(log.flush.recovery_point());
    if log_end < log_start {
        // What was read is older than what may be read: begin anew where reading may begin.
        log.truncate_fully(log_start, open.now_ms)?.remove()?;
        return Ok(log);
    }
    settle_epochs(&mut log, &stored)?;
    match recovered {
        Some(recovered) => recovered.tell(&mut log, &snapshots)?,
        None => tell_stopped(&open, &mut log, &snapshots)?,
    }
    log.shared.set_first_open(log.producers.first_open());
    Ok(log)
}

/// The epochs as they are stored. That was done by rename, so a crash leaves them whole; broken ones
/// are made anew from all batches.
fn stored_epochs(open: &mut OpenLog) -> Result<Vec<(i32, i64)>, Fault> {
    let path = open.folder.join(LEADER_EPOCHS);
    match checkpoint::read_epochs(open.cache.disk(), &path) {
        Err(fault @ Fault::Malformed { .. }) => {
            warn!(partition = %open.partition, %fault, "the epochs of a log are read from its batches");
            open.is_clean = false;
            open.recovery_point = 0;
            Ok(Vec::new())
        }
        stored => stored,
    }
}

/// Tells a log that was closed in order of its producers.
fn tell_stopped(open: &OpenLog, log: &mut Log, snapshots: &BTreeSet<i64>) -> Result<(), Fault> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let newest = snapshots.range(..=end).next_back().copied();
    drop_snapshots(log, snapshots, newest)?;
    let known = load_producers(open, &log.segments, snapshots, (start, end))?;
    log.producers = known.producers;
    log.is_touched |= end > 0 && known.snapshot != Some(end);
    if known.snapshot == Some(end) {
        log.is_anchored_at_its_end();
    }
    Ok(())
}

/// Makes an empty log in a new folder. Nothing of it is durable before its first batch is written.
pub(crate) fn create(open: &OpenLog) -> Result<Log, Fault> {
    let segment = new_segment(open)?;
    let ends = (segment.base_offset, segment.base_offset);
    let mut log = assemble(open, vec![segment], ends, Epochs::default());
    // What was reserved is given back when it is closed, also if nothing is ever written.
    log.is_touched = open.config.preallocate;
    Ok(log)
}

/// An empty log of which nothing is on disk: its folder is made when it is written to.
pub(crate) fn unmade(open: &OpenLog, topic_id: Option<TopicId>) -> Result<Log, Fault> {
    let index_bytes = open.config.segment_index_bytes;
    let segment = Segment::open(&open.cache, &open.folder, 0, index_bytes)?;
    let mut log = assemble(open, vec![Arc::new(segment)], (0, 0), Epochs::default());
    log.unmade = Some(Unmade { topic_id });
    Ok(log)
}

fn new_segment(open: &OpenLog) -> Result<Arc<Segment>, Fault> {
    let base = open.log_start.max(0);
    let index_bytes = open.config.segment_index_bytes;
    let segment = Segment::open(&open.cache, &open.folder, base, index_bytes)?;
    segment.create_files()?;
    segment.reserve(&open.config)?;
    for file in segment.lazy_files() {
        file.release();
    }
    Ok(Arc::new(segment))
}

/// A log of these segments, with no word yet of its producers and of what was done to it.
fn assemble(open: &OpenLog, segments: Segments, ends: (i64, i64), epochs: Epochs) -> Log {
    let config = Arc::clone(&open.config);
    Log {
        partition: open.partition.clone(),
        folder: open.folder.clone(),
        cache: Arc::clone(&open.cache),
        shared: Shared::new(segments.clone(), ends, epochs.clone(), config),
        segments,
        producers: Producers::default(),
        epochs,
        active: Active::new(&open.config, open.now_ms),
        flush: flush::State::new(ends.1),
        tail_batches: 0,
        is_touched: false,
        is_settled: false,
        owes_epoch: false,
        unmade: None,
    }
}

fn settle_epochs(log: &mut Log, stored: &[(i32, i64)]) -> Result<(), Fault> {
    let mut epochs = log.epochs.clone();
    epochs.truncate_end(log.log_end_offset());
    epochs.truncate_start(log.log_start_offset());
    if epochs.entries() != stored {
        log.store_epochs(epochs)?;
    }
    Ok(())
}

/// What a folder has, by offset.
struct Present {
    /// Where segments begin.
    bases: BTreeSet<i64>,
    snapshots: BTreeSet<i64>,
}

/// Undoes or completes what was cut short; gives what is there then. A folder is listed only once
/// where nothing was cut short: there may be thousands.
fn tidy(open: &OpenLog) -> Result<Present, Fault> {
    let disk = open.cache.disk();
    let folder = &open.folder;
    let list = || {
        let names = disk.list(folder).at(folder)?.into_iter();
        let parsed = names.map(|entry| (FileName::parse(&entry.name), entry.name));
        Ok::<Vec<_>, Fault>(parsed.collect())
    };
    let mut files = list()?;
    let is_of_swap =
        |name: &FileName| matches!(name, FileName::Cleaned { .. } | FileName::Swap { .. });
    if files.iter().any(|(name, _)| is_of_swap(name)) {
        swap::complete(disk, folder)?;
        files = list()?;
    }
    let mut live = Vec::new();
    for (name, text) in files {
        let path = folder.join(text);
        match name {
            FileName::Leftover => disk.remove_file(&path).at(&path)?,
            FileName::Live { offset, kind } => live.push((offset, kind)),
            FileName::Cleaned { .. } | FileName::Swap { .. } | FileName::Other => {}
        }
    }
    let of = |wanted| {
        let files = live.iter().filter(move |(_, kind)| *kind == wanted);
        files.map(|(offset, _)| *offset).collect::<BTreeSet<i64>>()
    };
    let (bases, snapshots) = (of(Kind::Log), of(Kind::Snapshot));
    for (offset, kind) in live {
        if kind != Kind::Snapshot && !bases.contains(&offset) {
            let path = layout::path(folder, offset, kind);
            disk.remove_file(&path).at(&path)?;
        }
    }
    Ok(Present { bases, snapshots })
}

/// The first segment that may not be whole on the disk: that of the last record below the recovery
/// point. Its batches are, but its indexes are synced only after it is closed, and it may have been
/// closed since.
fn first_unsure(segments: &[Arc<Segment>], recovery_point: i64) -> usize {
    super::read::floor(segments, recovery_point.saturating_sub(1)).unwrap_or(0)
}

/// The segments, and those of them whose indexes had to be made anew.
fn open_segments(open: &OpenLog, bases: &BTreeSet<i64>) -> Result<(Segments, Segments), Fault> {
    let index_bytes = open.config.segment_index_bytes;
    let at = |base| Segment::open(&open.cache, &open.folder, base, index_bytes);
    if bases.is_empty() {
        return Ok((vec![new_segment(open)?], Vec::new()));
    }
    let mut reindexed = Vec::new();
    let mut segments = Vec::with_capacity(bases.len());
    let first_read = bases.range(..open.recovery_point).next_back().copied();
    for base in bases.iter().copied() {
        let segment = Arc::new(at(base)?);
        // What lies beyond is made anew anyway, and may not be whole.
        let trusted = open.is_clean || first_read.is_some_and(|first| base < first);
        if trusted && !has_good_indexes(&segment, open.is_clean)? {
            reindex(&segment, &open.config)?;
            reindexed.push(Arc::clone(&segment));
        }
        segments.push(segment);
    }
    Ok((segments, reindexed))
}

/// Whether indexes are there, and, unless they were closed in order, end as they should.
fn has_good_indexes(segment: &Segment, is_clean: bool) -> Result<bool, Fault> {
    let (offsets, times) = (&segment.offset_index, &segment.time_index);
    // A closed time index is empty only where no record has a time.
    let timed = times.raw().len() > 0 || segment.size() == 0;
    if !timed || (offsets.raw().len() == 0 && !offsets.file().exists()) {
        return Ok(false);
    }
    Ok(is_clean || (offsets.is_plausible(segment.size())? && times.is_plausible()?))
}

/// Makes the indexes of a segment anew whose batches are trusted.
fn reindex(segment: &Segment, config: &LogConfig) -> Result<(), Fault> {
    segment.reset_indexes();
    let mut scan = segment.scan_from(0, HEADERS)?;
    let mut last_indexed = 0;
    loop {
        match segment.step(&mut scan) {
            Ok(Some(found)) => index(segment, &found, &mut last_indexed, config)?,
            Ok(None) => break,
            // Who asks for what lies there is told.
            Err(fault) if fault.is_damage() => {
                warn!(%fault, "the index of a damaged segment ends before the damage");
                break;
            }
            Err(fault) => return Err(fault),
        }
    }
    segment.seal()
}

fn index(
    segment: &Segment,
    found: &Found,
    last_indexed: &mut u64,
    config: &LogConfig,
) -> Result<(), Fault> {
    let indexed = found.position - *last_indexed > config.index_interval_bytes;
    if indexed {
        *last_indexed = found.position;
    }
    segment.index(
        found.position,
        Appending {
            base_offset: found.base_offset,
            last_offset: found.last_offset,
            max_timestamp: found.max_timestamp,
            indexed,
        },
    )
}

/// What reading the segments gave.
struct Recovered {
    producers: Producers,
    /// Written anew, not durable yet.
    snapshots: Vec<PathBuf>,
    completed: Vec<CompletedTxn>,
    /// Where it began, if that was inside a segment.
    anchor: Option<Place>,
    /// There was nothing to read, and nothing was changed.
    is_as_anchored: bool,
    log_end: i64,
}

impl Recovered {
    /// Tells the log of it.
    fn tell(self, log: &mut Log, snapshots: &BTreeSet<i64>) -> Result<(), Fault> {
        log.producers = self.producers;
        if let Some(anchor) = self.anchor {
            log.flush.anchors.add(anchor);
        }
        for path in self.snapshots {
            log.flush.wrote(path);
        }
        for done in self.completed {
            log.shared
                .add_undecided(done.first_offset, done.last_offset);
        }
        let anchor = self.anchor.map(|anchor| anchor.offset);
        match drop_snapshots(log, snapshots, anchor)? {
            // One of what was lost would vouch for what is written in its place.
            true => log.cache.disk().sync_dir(&log.folder).at(&log.folder),
            false => Ok(()),
        }
    }
}

/// Reads everything from the recovery point on, and cuts the log where a batch is not whole.
fn recover(
    open: &OpenLog,
    (segments, snapshots): (&mut Segments, &BTreeSet<i64>),
    durable: i64,
    epochs: &mut Epochs,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recovered, Fault> {
    let first = first_unsure(segments, open.recovery_point);
    let next = segments.get(first + 1).map(|next| next.base_offset);
    let mut resumed = resume::find(open, &segments[first], snapshots, next)?;
    let anchor = resumed.as_ref().map(|resumed| resumed.place);
    let start = anchor.map_or(segments[first].base_offset, |anchor| anchor.offset);
    let is_last = first + 1 == segments.len();
    let is_as_anchored = is_last && resumed.as_ref().is_some_and(|resumed| !resumed.has_more);
    let skipped = anchor.map_or(0, |anchor| anchor.position);
    let known = resumed
        .as_mut()
        .map(|resumed| std::mem::take(&mut resumed.producers));
    let mut work = Recovery {
        config: &open.config,
        producers: match known {
            Some(known) => known,
            None => load_producers(open, segments, snapshots, (open.log_start, start))?.producers,
        },
        completed: Vec::new(),
        epochs,
        durable,
        intact: match durable {
            i64::MAX => i64::MAX,
            _ => segments[first_unsure(segments, durable)].base_offset,
        },
        next: start,
        limit: i64::MAX,
        done: 0,
        total: segments[first..].iter().map(|one| one.size()).sum::<u64>() - skipped,
        progress,
    };
    let mut keep = segments.len();
    let mut written = Vec::new();
    for (at, segment) in segments.iter().enumerate().skip(first) {
        if at > first {
            // What is here may tell of records that the crash took from a segment before.
            let base = segment.base_offset;
            let disk = open.cache.disk();
            written.extend(snapshot::write(disk, &open.folder, base, &work.producers)?);
        }
        work.limit = segments
            .get(at + 1)
            .map_or(i64::MAX, |next| next.base_offset);
        if !work.segment(segment, resumed.take())? {
            keep = at + 1;
            break;
        }
    }
    let (producers, completed, log_end) = (work.producers, work.completed, work.next);
    let gone: Segments = segments.drain(keep..).collect();
    remove(open, &gone)?;
    let last = segments.last().expect("the first segment is kept");
    Ok(Recovered {
        producers,
        snapshots: written,
        completed,
        anchor,
        is_as_anchored,
        log_end: log_end.max(last.base_offset),
    })
}

/// Removes segments behind the end of the log, for good: a crash that brought one back would have it
/// follow what is written from now on.
fn remove(open: &OpenLog, gone: &[Arc<Segment>]) -> Result<(), Fault> {
    let disk = open.cache.disk();
    for file in gone.iter().flat_map(|segment| segment.lazy_files()) {
        if file.exists() {
            let path = file.path();
            disk.remove_file(&path).at(&path)?;
        }
    }
    match gone.is_empty() {
        true => Ok(()),
        false => disk.sync_dir(&open.folder).at(&open.folder),
    }
}

struct Recovery<'a> {
    config: &'a LogConfig,
    producers: Producers,
    completed: Vec<CompletedTxn>,
    epochs: &'a mut Epochs,
    /// Batches below are whole.
    durable: i64,
    /// The last segment with such batches begins here. Of those before a crash takes nothing: what is
    /// bad there is damaged, and nothing is cut off for it.
    intact: i64,
    /// The lowest offset that the next batch may have.
    next: i64,
    /// Where the next segment begins. Whatever this one has from there on was cut off before that
    /// was made, whose name may be durable when this one's new size is not.
    limit: i64,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(Progress),
}

impl Recovery<'_> {
    /// Recovers one segment, all of it or from a place on; says whether all that was read is whole.
    fn segment(&mut self, segment: &Segment, resumed: Option<Resumed>) -> Result<bool, Fault> {
        let (from, mut last_indexed) = match resumed {
            Some(resumed) if !resumed.has_more => return Ok(true),
            Some(resumed) => (resumed.place.position, resumed.last_indexed),
            None => {
                segment.reset_indexes();
                segment.txn_index.reset()?;
                (0, 0)
            }
        };
        self.next = self.next.max(segment.base_offset);
        let mut scan = segment.scan_from(from, NEARBY)?;
        let mut told = from;
        let mut valid = from;
        let whole = loop {
            match self.batch(segment, &mut scan, &mut last_indexed) {
                Ok(Some(end)) => valid = end,
                Ok(None) => break true,
                // What stands behind all that can be here was cut off, whole or not.
                Err(Stop::Bad { .. }) if self.next == self.limit => break true,
                Err(Stop::Bad {
                    source: BadBatch::CutShort { .. },
                    ..
                }) => break false,
                Err(stop @ Stop::Bad { .. }) if self.next < self.intact => {
                    return Err(stop.into_fault(segment.log.path()));
                }
                Err(Stop::Bad { .. }) => break false,
                Err(Stop::Fault(fault)) => return Err(fault),
            }
            if valid - told >= PROGRESS_BYTES {
                told = valid;
                self.tell(segment, valid - from);
            }
        };
        if valid < segment.size() {
            segment.set_size(valid)?;
        }
        segment.seal()?;
        self.tell(segment, valid - from);
        self.done += valid - from;
        Ok(whole)
    }

    /// Takes over the next batch; gives where it ends, or nothing when there is none below the limit.
    fn batch(
        &mut self,
        segment: &Segment,
        scan: &mut Scan,
        last_indexed: &mut u64,
    ) -> Result<Option<u64>, Stop> {
        let Some(found) = scan.next()? else {
            return Ok(None);
        };
        if found.base_offset >= self.limit {
            return Ok(None);
        }
        let relative = found.last_offset.saturating_sub(segment.base_offset);
        let in_order = found
            .header
            .is_none_or(|header| header.base_offset >= self.next)
            && (self.next..self.limit).contains(&found.last_offset);
        if !in_order || relative > i64::from(i32::MAX) {
            let source = BadBatch::Offsets {
                base: found.base_offset,
                delta: found.header.map_or(0, |header| header.last_offset_delta),
            };
            let position = found.position;
            return Err(Stop::Bad { position, source });
        }
        let is_durable = found.last_offset < self.durable;
        scan.read_at_once(match is_durable {
            true if found.size >= SKIPPED => NEARBY,
            true => HEADERS,
            false => WHOLE,
        });
        if !is_durable {
            scan.check_crc(&found)?;
        }
        index(segment, &found, last_indexed, self.config).map_err(Stop::Fault)?;
        self.next = found.last_offset.saturating_add(1);
        if let Some(header) = &found.header {
            let epoch = LeaderEpoch(header.partition_leader_epoch);
            if epoch.0 >= 0 && self.epochs.latest().is_none_or(|latest| epoch > latest) {
                self.epochs.assign(epoch, header.base_offset);
            }
            let done = replay(&mut self.producers, scan, &found).map_err(Stop::Fault)?;
            if let Some(done) = done {
                if let Some(aborted) = done.aborted() {
                    segment.txn_index.append(aborted).map_err(Stop::Fault)?;
                }
                self.completed.push(done);
            }
        }
        Ok(Some(found.end()))
    }

    fn tell(&mut self, segment: &Segment, read: u64) {
        (self.progress)(Progress {
            segment_base_offset: segment.base_offset,
            bytes_done: self.done + read,
            bytes_total: self.total,
        });
    }
}

fn load_producers(
    open: &OpenLog,
    segments: &[Arc<Segment>],
    snapshots: &BTreeSet<i64>,
    ends: (i64, i64),
) -> Result<Known, Fault> {
    let disk = open.cache.disk();
    producers_at(
        disk,
        &open.folder,
        segments,
        snapshots,
        ends,
        deadline(open),
    )
}

/// Producers last seen before are forgotten.
pub(super) fn deadline(open: &OpenLog) -> i64 {
    open.now_ms
        .saturating_sub(open.config.producer_id_expiration_ms)
}

/// Where a log ends that was closed in order: behind its last batch. Whatever the checkpoints say,
/// nothing is promised that is not there.
fn end_of_clean(
    open: &OpenLog,
    segments: &[Arc<Segment>],
    reindexed: &mut Segments,
) -> Result<i64, Fault> {
    let last = segments.last().expect("a log has a segment");
    let mut end = last.base_offset;
    if last.size() == 0 {
        return Ok(end);
    }
    let mut scan = last.scan_for(last.offset_index.last()?.offset, NEARBY)?;
    loop {
        match scan.next() {
            Ok(Some(found)) => end = found.last_offset.saturating_add(1),
            Ok(None) => return Ok(end),
            Err(Stop::Bad {
                position,
                source: BadBatch::CutShort { have, .. },
            }) => {
                // What would be appended behind it could not be read.
                warn!(
                    partition = %open.partition,
                    at = position,
                    bytes = have,
                    "the last batch of a log that was closed in order is cut short, it is cut off"
                );
                last.set_size(position)?;
                reindex(last, &open.config)?;
                reindexed.push(Arc::clone(last));
                return Ok(end);
            }
            Err(stop) => return Err(stop.into_fault(last.log.path())),
        }
    }
}
