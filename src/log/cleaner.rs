//! Compaction of one log (org.apache.kafka.storage.internals.log.Cleaner; KIP-58, KIP-534): of
//! each key the newest record stays, and a tombstone for as long as readers may need it.
//!
//! 1. The dirty part is read: the newest offset of every key goes into a map of bounded size.
//! 2. Everything up to where the map reaches is read again, neighbours together, and what the map
//!    does not supersede is written to new segments.
//! 3. Each new segment takes the place of those it was made from.
//!
//! All this runs beside appends and reads; the log's lock is taken for a few renames only. What may
//! be compacted is decided in [`super::cleanable`].

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cleanable::{self, Bounds, Cleanable, Closed, Part, Standing, Wishes};
use super::cleaned_txns::{CleanedTxns, MarkerFate};
use super::fault::{At, Fault};
use super::filter::{self, Filtered, INFLATED_BYTES_MAX, Kept, Verdict};
use super::log::{Doomed, Log, read_marker};
use super::offset_map::OffsetMap;
use super::producers::LastRecord;
use super::read::LogReader;
use super::scan::{Found, Scan};
use super::segment::{Appending, Segment};
use super::upgrade;
use crate::os::disk::File;
use crate::protocol::records::batch::{BadBatch, Batch, Header};
use crate::protocol::records::iter::{BadRecord, Records};
use crate::protocol::records::legacy::{self, LegacyBatch};

/// At least so many bytes are read and written at once.
const IO_BYTES_MIN: usize = 64 << 10;

/// One log to compact.
pub(crate) struct Job<'a> {
    pub(crate) log: &'a Mutex<Log>,
    pub(crate) part: Cleanable,
    pub(crate) memory: Memory,
    pub(crate) now_ms: i64,
    /// Told of bytes read and written; holds the work up, or says that it is to be given up.
    pub(crate) pace: &'a mut dyn FnMut(u64) -> Go,
    /// Takes the old segments, renamed, of each step.
    pub(crate) old: &'a mut dyn FnMut(Doomed),
}

/// What a cleaning may hold in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    /// For the newest offsets of keys.
    pub(crate) map_bytes: u64,
    /// How full that may get.
    pub(crate) load_factor: f64,
    /// Read and written at once, each.
    pub(crate) io_bytes: usize,
}

/// Whether work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// What a cleaning did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cleaned {
    /// Everything below is compacted.
    pub(crate) up_to: i64,
    pub(crate) map_records_read: u64,
    pub(crate) map_bytes_read: u64,
    pub(crate) map_utilization: f64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) records_read: u64,
    pub(crate) records_written: u64,
    /// Without a key, in a log that was not compacted before.
    pub(crate) keyless: u64,
}

/// Why a cleaning did not come to its end. What it finished stays.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// It was told to stop, or the log changed under it.
    GivenUp,
    Fault(Fault),
}

impl From<Fault> for Unfinished {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl LogReader {
    /// What of the log could be compacted, and whether that is worth it. Of the dirty segments the
    /// first batch is read where `max.compaction.lag.ms` is set.
    pub(crate) fn cleanable(
        &self,
        last_stable: i64,
        cleaned_to: Option<i64>,
        now_ms: i64,
    ) -> Result<Cleanable, Fault> {
        let config = self.config();
        let segments = self.live();
        let (active, closed) = segments.split_last().expect("a log has a segment");
        let wants_first = config.max_compaction_lag_ms != i64::MAX;
        let describe = |segment: &Arc<Segment>| {
            let newest_ms = match config.min_compaction_lag_ms > 0 {
                true => segment.newest_ms()?,
                false => -1,
            };
            let is_dirty = cleaned_to.is_none_or(|offset| segment.base_offset >= offset);
            let first = match wants_first && is_dirty {
                true => segment.first()?,
                false => None,
            };
            Ok(Closed {
                base_offset: segment.base_offset,
                size: segment.size(),
                newest_ms,
                first_ms: first.map(|first| first.max_timestamp),
            })
        };
        let closed: Result<Vec<Closed>, Fault> = closed.iter().map(describe).collect();
        let wishes = Wishes {
            min_ratio: config.min_cleanable_ratio,
            min_lag_ms: config.min_compaction_lag_ms,
            max_lag_ms: config.max_compaction_lag_ms,
        };
        let standing = Standing {
            log_start: self.log_start_offset(),
            last_stable,
            active_base: active.base_offset,
            log_end: self.log_end_offset(),
            cleaned_to,
            now_ms,
        };
        Ok(cleanable::cleanable(&closed?, wishes, standing))
    }
}

/// Compacts one log.
pub(crate) fn clean(mut job: Job<'_>) -> Result<Cleaned, Unfinished> {
    let reader = job.log.lock().reader();
    let segments = reader.live();
    let end = job.part.first_uncleanable;
    let closed = &segments[..segments.len() - 1];
    let mut stats = Cleaned::default();
    if end <= job.part.first_dirty {
        stats.up_to = job.part.first_dirty;
        return Ok(stats);
    }
    let map = build_map(&mut job, &reader, closed, &mut stats)?;
    stats.map_utilization = map.utilization();
    stats.up_to = map.latest_offset() + 1;
    let below = closed.partition_point(|segment| segment.base_offset < stats.up_to);
    let mut rest = &closed[..below];
    let beyond = segments[below].base_offset;
    let config = reader.config();
    let bounds = Bounds {
        segment_bytes: config.segment_bytes.min(i32::MAX as u64),
        index_bytes: config.segment_index_bytes as u64,
        end,
    };
    let dirty = segments.partition_point(|segment| segment.base_offset < job.part.first_dirty);
    let legacy_horizon_ms = match segments[..dirty].last() {
        Some(clean) => clean
            .modified_ms()?
            .saturating_sub(config.delete_retention_ms),
        None => 0,
    };
    let parts: Vec<Part> = rest.iter().map(|segment| part(segment)).collect();
    let mut round = Round {
        map: &map,
        reader: &reader,
        txns: CleanedTxns::default(),
        stats,
        producers: HashMap::new(),
        now_ms: job.now_ms,
        new_horizon_ms: job.now_ms.saturating_add(config.delete_retention_ms),
        end,
        legacy_horizon_ms,
        keeps_legacy_tombstones: true,
    };
    for count in cleanable::groups(&parts, bounds) {
        let (group, after) = rest.split_at(count);
        // Also beyond what may be compacted: of the last segment everything is written anew.
        let next = after.first().map_or(beyond, |segment| segment.base_offset);
        clean_group(&mut job, &mut round, group, next)?;
        rest = after;
    }
    Ok(round.stats)
}

fn part(segment: &Segment) -> Part {
    Part {
        base_offset: segment.base_offset,
        size: segment.size(),
        offset_index_bytes: segment.offset_index.raw().len() as u64 * 8,
        time_index_bytes: segment.time_index.raw().len() as u64 * 12,
    }
}

/// Reads the dirty part until the map is full.
fn build_map(
    job: &mut Job<'_>,
    reader: &LogReader,
    closed: &[Arc<Segment>],
    stats: &mut Cleaned,
) -> Result<OffsetMap, Unfinished> {
    let (start, end) = (job.part.first_dirty, job.part.first_uncleanable);
    // There are no more keys than offsets.
    let offsets = u64::try_from(end - start).unwrap_or(0);
    let mut map = OffsetMap::new(job.memory.map_bytes, job.memory.load_factor, offsets);
    let mut txns = CleanedTxns::default();
    txns.add(reader.aborted_between(start, end)?);
    let first = super::read::floor(closed, start).unwrap_or(0);
    for (at, segment) in closed.iter().enumerate().skip(first) {
        if segment.base_offset >= end {
            break;
        }
        let next = closed.get(at + 1).map_or(end, |next| next.base_offset);
        let mut mapping = Mapping {
            map: &mut map,
            txns: &mut txns,
            stats,
            start,
        };
        if !mapping.segment(job, segment)? {
            break;
        }
        // Offsets that compaction left out are known too.
        map.reach(next.min(end) - 1);
    }
    Ok(map)
}

struct Mapping<'a> {
    map: &'a mut OffsetMap,
    txns: &'a mut CleanedTxns,
    stats: &'a mut Cleaned,
    start: i64,
}

impl Mapping<'_> {
    /// Takes in a segment; whether there was room for all of it.
    fn segment(&mut self, job: &mut Job<'_>, segment: &Segment) -> Result<bool, Unfinished> {
        let chunk = job.memory.io_bytes.max(IO_BYTES_MIN);
        let mut scan = match segment.base_offset < self.start {
            true => segment.scan_for(self.start, chunk)?,
            false => segment.scan_from(0, chunk)?,
        };
        while let Some(found) = segment.step(&mut scan)? {
            if (job.pace)(found.size) == Go::Stop {
                return Err(Unfinished::GivenUp);
            }
            self.stats.map_bytes_read += found.size;
            if !self.batch(segment, &mut scan, &found)? {
                return Ok(false);
            }
            if found.last_offset >= self.start {
                self.map.reach(found.last_offset);
            }
        }
        Ok(true)
    }

    fn batch(&mut self, segment: &Segment, scan: &mut Scan, found: &Found) -> Result<bool, Fault> {
        let Some(header) = found.header else {
            return self.legacy_batch(segment, scan, found);
        };
        let batch = parse(segment, scan, found)?;
        if header.is_control() {
            let marker = read_marker(&header, batch.records_bytes()).flatten();
            self.txns.meet_marker(&header, marker);
            return Ok(true);
        }
        let count = u64::try_from(header.records_count).unwrap_or(0);
        if self.txns.meet(&header) {
            self.stats.map_records_read += count;
            return Ok(true);
        }
        let bad = |source| bad_records(segment, found, source);
        let records = Records::of(&batch, INFLATED_BYTES_MAX).map_err(bad)?;
        for record in records.iter() {
            let record = record.map_err(bad)?;
            let offset = header.base_offset + i64::from(record.offset_delta);
            if let Some(key) = record.key.filter(|_| offset >= self.start) {
                if self.map.is_full() {
                    return Ok(false);
                }
                self.map.put(key, offset);
            }
            self.stats.map_records_read += 1;
        }
        Ok(true)
    }

    fn legacy_batch(
        &mut self,
        segment: &Segment,
        scan: &mut Scan,
        found: &Found,
    ) -> Result<bool, Fault> {
        let batch = parse_legacy(segment, scan, found)?;
        let bad = |source| bad_records(segment, found, source);
        let messages = batch.messages(legacy::INFLATED_BYTES_MAX).map_err(bad)?;
        for message in messages.iter() {
            let message = message.map_err(bad)?;
            let key = message.key().map_err(|source| bad(source.into()))?;
            // What lies beyond its batch is refused when it is written.
            let is_dirty = (self.start..=found.last_offset).contains(&message.offset);
            if let Some(key) = key.filter(|_| is_dirty) {
                if self.map.is_full() {
                    return Ok(false);
                }
                self.map.put(key, message.offset);
            }
            self.stats.map_records_read += 1;
        }
        Ok(true)
    }
}

/// What one cleaning knows while it writes.
struct Round<'a> {
    map: &'a OffsetMap,
    reader: &'a LogReader,
    txns: CleanedTxns,
    stats: Cleaned,
    /// What must stay for producers to be known again.
    producers: HashMap<i64, LastRecord>,
    now_ms: i64,
    new_horizon_ms: i64,
    /// The last batch before it is not lost, so that the log's last offset is not.
    end: i64,
    /// Tombstones of magic 0 and 1 have no horizon of their own. They stay in segments that were
    /// written to after this time, which is some time before the clean part was.
    legacy_horizon_ms: i64,
    /// Whether they stay in the segment that is being read.
    keeps_legacy_tombstones: bool,
}

/// Writes what stays of neighbours to one new segment and puts it in their place.
fn clean_group(
    job: &mut Job<'_>,
    round: &mut Round<'_>,
    group: &[Arc<Segment>],
    next: i64,
) -> Result<(), Unfinished> {
    let last = group.last().expect("a group has a segment");
    let (cleaned, disk) = {
        let log = job.log.lock();
        round.producers = log.producers.last_records();
        let cleaned = log.create_cleaned(group[0].base_offset)?;
        (Arc::new(cleaned), log.cache.disk())
    };
    let written = write_group(job, round, group, next, &cleaned).and_then(|()| {
        // The age of what stays is that of what it came from.
        let modified_ms = last.modified_ms()?;
        let file = cleaned.log.write()?;
        file.set_modified_ms(modified_ms).at(&cleaned.log.path())?;
        cleaned.seal()?;
        cleaned.ready_to_swap(disk)?;
        Ok(())
    });
    if let Err(unfinished) = written {
        // What cannot be removed now is at the next start.
        let _ = cleaned.discard(disk);
        return Err(unfinished);
    }
    let (replaced, folder) = {
        let mut log = job.log.lock();
        (log.replace(group, &cleaned)?, log.folder.clone())
    };
    let Some(doomed) = replaced else {
        cleaned.discard(disk)?;
        return Err(Unfinished::GivenUp);
    };
    disk.sync_dir(&folder).at(&folder)?;
    let folder = {
        let log = job.log.lock();
        log.finish_swap(&cleaned)?;
        log.folder.clone()
    };
    disk.sync_dir(&folder).at(&folder)?;
    (job.old)(doomed);
    Ok(())
}

fn write_group(
    job: &mut Job<'_>,
    round: &mut Round<'_>,
    group: &[Arc<Segment>],
    next: i64,
    cleaned: &Segment,
) -> Result<(), Unfinished> {
    let interval = round.reader.config().index_interval_bytes;
    let mut out = Output::new(cleaned, interval, job.memory)?;
    for (at, segment) in group.iter().enumerate() {
        let upper = group.get(at + 1).map_or(next, |next| next.base_offset);
        let aborted = round.reader.aborted_between(segment.base_offset, upper)?;
        round.txns.add(aborted);
        round.keeps_legacy_tombstones = segment.modified_ms()? > round.legacy_horizon_ms;
        let mut scan = scan(segment, 0, job.memory)?;
        while let Some(found) = segment.step(&mut scan)? {
            let checked = scan.check_crc(&found);
            checked.map_err(|stop| stop.into_fault(segment.log.path()))?;
            let written = round.batch(segment, &mut scan, &found, &mut out)?;
            if (job.pace)(found.size + written) == Go::Stop {
                return Err(Unfinished::GivenUp);
            }
        }
    }
    out.finish()?;
    Ok(())
}

impl Round<'_> {
    /// Writes what stays of a batch; says how many bytes that is.
    fn batch(
        &mut self,
        segment: &Segment,
        scan: &mut Scan,
        found: &Found,
        out: &mut Output<'_>,
    ) -> Result<u64, Fault> {
        self.stats.bytes_read += found.size;
        let Some(header) = found.header else {
            return self.legacy_batch(segment, scan, found, out);
        };
        let batch = parse(segment, scan, found)?;
        self.stats.records_read += u64::try_from(header.records_count).unwrap_or(0);
        let verdict = self.verdict(&batch, out)?;
        let horizon = header.delete_horizon_ms();
        let keeps_tombstones = horizon.is_none_or(|horizon| self.now_ms < horizon);
        let filtered = filter::filter(&batch, verdict, |offset, record| {
            let is_needed = record.value.is_some() || keeps_tombstones;
            stays(
                self.map,
                &mut self.stats.keyless,
                offset,
                record.key,
                is_needed,
            )
        })
        .map_err(|source| bad_records(segment, found, source))?;
        if filtered.kept == Kept::Whole {
            return self.keep(batch.bytes(), filtered.records, appending(found), out);
        }
        self.keep_rewritten(segment, found, filtered, out)
    }

    /// The same of a batch of magic 0 or 1.
    fn legacy_batch(
        &mut self,
        segment: &Segment,
        scan: &mut Scan,
        found: &Found,
        out: &mut Output<'_>,
    ) -> Result<u64, Fault> {
        let batch = parse_legacy(segment, scan, found)?;
        let verdict = Verdict {
            discard: false,
            is_spent_marker: false,
            keep_empty: found.last_offset + 1 == self.end,
            new_horizon_ms: self.new_horizon_ms,
        };
        let filtered = upgrade::filter(&batch, verdict, |message| {
            self.stats.records_read += 1;
            let is_needed = message.has_value()? || self.keeps_legacy_tombstones;
            Ok(stays(
                self.map,
                &mut self.stats.keyless,
                message.offset,
                message.key()?,
                is_needed,
            ))
        })
        .map_err(|source| bad_records(segment, found, source))?;
        self.keep_rewritten(segment, found, filtered, out)
    }

    /// Writes a batch that was made anew, if there is one.
    fn keep_rewritten(
        &mut self,
        segment: &Segment,
        found: &Found,
        filtered: Filtered,
        out: &mut Output<'_>,
    ) -> Result<u64, Fault> {
        let Kept::Rewritten(bytes) = filtered.kept else {
            return Ok(0);
        };
        let header = Header::parse(&bytes).map_err(|source| bad_batch(segment, found, source))?;
        // Nobody has looked at the offsets within a wrapper so far. One that records were deleted
        // from may begin before its segment.
        let is_behind =
            header.base_offset >= out.next_offset && header.last_offset() >= segment.base_offset;
        if found.header.is_none() && !is_behind {
            let source = BadBatch::Offsets {
                base: header.base_offset,
                delta: header.last_offset_delta,
            };
            return Err(bad_batch(segment, found, source));
        }
        let of = Appending {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            indexed: false,
        };
        self.keep(&bytes, filtered.records, of, out)
    }

    fn keep(
        &mut self,
        bytes: &[u8],
        records: u64,
        of: Appending,
        out: &mut Output<'_>,
    ) -> Result<u64, Fault> {
        out.add(bytes, of)?;
        self.stats.records_written += records;
        self.stats.bytes_written += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }

    fn verdict(&mut self, batch: &Batch<'_>, out: &Output<'_>) -> Result<Verdict, Fault> {
        let header = &batch.header;
        let (discard, is_spent_marker) = if header.is_control() {
            let marker = read_marker(header, batch.records_bytes()).flatten();
            match self.txns.meet_marker(header, marker) {
                MarkerFate::Spent => {
                    let horizon = header.delete_horizon_ms();
                    let over = horizon.is_some_and(|horizon| horizon <= self.now_ms);
                    (over, true)
                }
                MarkerFate::Keep(aborted) => {
                    if let Some(aborted) = aborted {
                        out.segment.txn_index.append(aborted)?;
                    }
                    (false, false)
                }
            }
        } else {
            (self.txns.meet(header), false)
        };
        Ok(Verdict {
            discard,
            is_spent_marker,
            keep_empty: self.tells_of_producer(header) || header.next_offset() == self.end,
            new_horizon_ms: self.new_horizon_ms,
        })
    }

    /// Whether the batch is the last that tells of its producer: its sequence, or after a marker
    /// its epoch.
    fn tells_of_producer(&self, header: &Header) -> bool {
        if !header.has_producer_id() {
            return false;
        }
        let Some(last) = self.producers.get(&header.producer_id) else {
            return false;
        };
        match last.data_offset {
            Some(offset) => header.last_offset() == offset,
            None => header.is_control() && header.producer_epoch == last.epoch,
        }
    }
}

/// Whether a record is the newest of its key, and `is_needed`: no tombstone whose time is over.
fn stays(
    map: &OffsetMap,
    keyless: &mut u64,
    offset: i64,
    key: Option<&[u8]>,
    is_needed: bool,
) -> bool {
    if offset > map.latest_offset() {
        return true;
    }
    let Some(key) = key else {
        *keyless += 1;
        return false;
    };
    is_needed && map.get(key).is_none_or(|newest| offset >= newest)
}

fn scan(segment: &Segment, from: u64, memory: Memory) -> Result<Scan, Fault> {
    segment.scan_from(from, memory.io_bytes.max(IO_BYTES_MIN))
}

fn parse<'a>(segment: &Segment, scan: &'a mut Scan, found: &Found) -> Result<Batch<'a>, Fault> {
    Batch::parse(scan.lend(found)?).map_err(|source| bad_batch(segment, found, source))
}

fn parse_legacy<'a>(
    segment: &Segment,
    scan: &'a mut Scan,
    found: &Found,
) -> Result<LegacyBatch<'a>, Fault> {
    LegacyBatch::parse(scan.lend(found)?).map_err(|source| bad_batch(segment, found, source))
}

fn bad_batch(segment: &Segment, found: &Found, source: BadBatch) -> Fault {
    Fault::Batch {
        path: segment.log.path(),
        position: found.position,
        source,
    }
}

fn bad_records(segment: &Segment, found: &Found, source: BadRecord) -> Fault {
    Fault::Records {
        path: segment.log.path(),
        position: found.position,
        source,
    }
}

fn appending(found: &Found) -> Appending {
    Appending {
        base_offset: found.base_offset,
        last_offset: found.last_offset,
        max_timestamp: found.max_timestamp,
        indexed: false,
    }
}

/// A new segment being written, in large pieces.
struct Output<'a> {
    segment: &'a Segment,
    file: Arc<File>,
    buffer: Vec<u8>,
    /// Written to the file.
    done: u64,
    /// Behind the last batch.
    next_offset: i64,
    bytes_since_index: u64,
    index_interval_bytes: u64,
    buffer_bytes: usize,
}

impl<'a> Output<'a> {
    fn new(segment: &'a Segment, interval: u64, memory: Memory) -> Result<Self, Fault> {
        Ok(Self {
            segment,
            file: segment.log.write()?,
            buffer: Vec::new(),
            done: 0,
            next_offset: 0,
            bytes_since_index: 0,
            index_interval_bytes: interval,
            buffer_bytes: memory.io_bytes.max(IO_BYTES_MIN),
        })
    }

    fn add(&mut self, bytes: &[u8], mut batch: Appending) -> Result<(), Fault> {
        batch.indexed = self.bytes_since_index > self.index_interval_bytes;
        if batch.indexed {
            self.bytes_since_index = 0;
        }
        self.bytes_since_index += bytes.len() as u64;
        self.next_offset = batch.last_offset.saturating_add(1);
        let position = self.done + self.buffer.len() as u64;
        self.segment.index(position, batch)?;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= self.buffer_bytes {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Fault> {
        self.file
            .write_all_at(&self.buffer, self.done)
            .at(&self.segment.log.path())?;
        self.done += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), Fault> {
        self.write()?;
        self.segment.set_size(self.done)
    }
}
