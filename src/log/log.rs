//! A partition's log: append, truncate, trim, flush, close
//! (org.apache.kafka.storage.internals.log.UnifiedLog and LocalLog).
//!
//! Its owner holds it behind a mutex, never across an await. What it publishes to readers is in
//! [`super::read`]. After a fault of an append the log is as it was; whether its directory may
//! still be trusted is the caller's judgement.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::append::{self, Checked, Rejection, Rules};
use super::config::LogConfig;
use super::epochs::Epochs;
use super::fault::{At, Fault};
use super::files::FileCache;
use super::flush;
use super::layout::{self, Kind};
use super::producers::{
    ActiveProducer, Marker, Origin, Producers, Proof, Verdict, VerificationGuard,
};
use super::read::{LogReader, Shared};
use super::roll::Active;
use super::segment::{Appending, Segment};
use super::settle::Unmade;
use crate::base::{LeaderEpoch, TopicPartition};
use crate::protocol::error::ErrorCode;
use crate::protocol::records::batch::{BadBatch, Batch, Header};
use crate::protocol::records::control::ControlRecord;
use crate::protocol::records::iter::Records;
use crate::protocol::records::stored::{Stored, StoredBatches};

/// A marker's one record is a few bytes; more is not a marker.
const MARKER_BYTES_MAX: u64 = 1 << 16;

/// The log of one partition.
#[derive(Debug)]
pub(crate) struct Log {
    pub(super) partition: TopicPartition,
    pub(super) folder: PathBuf,
    pub(super) cache: Arc<FileCache>,
    pub(super) shared: Arc<Shared>,
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) producers: Producers,
    pub(super) epochs: Epochs,
    pub(super) active: Active,
    pub(super) flush: flush::State,
    /// How many batches the segments' tails hold.
    pub(super) tail_batches: usize,
    /// Whether anything was written since it was opened after an orderly stop.
    pub(super) is_touched: bool,
    /// Whether its folder and what that says of itself are durable; see [`Log::ready`].
    pub(super) is_settled: bool,
    /// Whether the file of epochs lacks the last one.
    pub(super) owes_epoch: bool,
    /// Set while nothing of it is on disk.
    pub(super) unmade: Option<Unmade>,
}

/// How a leader appends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendContext {
    pub(crate) origin: Origin,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) now_ms: i64,
    pub(crate) proof: Proof,
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) first_offset: i64,
    pub(crate) last_offset: i64,
    /// -1 where the producer's times count.
    pub(crate) log_append_time_ms: i64,
    pub(crate) log_start_offset: i64,
    /// The batch was here before; nothing was written.
    pub(crate) is_duplicate: bool,
    /// A segment was closed: a flush is due.
    pub(crate) rolled: bool,
    /// When what was written must be durable.
    pub(crate) flush: flush::Wish,
    /// Bytes written.
    pub(crate) size: usize,
}

/// Why an append did nothing.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// A client is told.
    Rejected(Box<Rejection>),
    /// A leader's batch does not belong here.
    Misplaced { base_offset: i64, log_end: i64 },
    /// A leader's batch is damaged.
    Corrupt(BadBatch),
    /// The disk.
    Fault(Fault),
}

impl From<Fault> for AppendError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Rejection> for AppendError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

/// Files that are renamed away and wait for their removal.
#[derive(Debug)]
pub(crate) struct Doomed {
    segments: Vec<Arc<Segment>>,
    others: Vec<PathBuf>,
    cache: Arc<FileCache>,
}

impl Doomed {
    /// Whether there is nothing to remove.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.others.is_empty()
    }

    /// Removes the files; those already gone are no trouble, and one that cannot be removed keeps
    /// none of the others.
    pub(crate) fn remove(self) -> Result<(), Fault> {
        let files = self.segments.iter().flat_map(|one| one.lazy_files());
        let paths = files.map(|file| file.path()).chain(self.others);
        let mut removed = Ok(());
        for path in paths {
            match self.cache.disk().remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    removed = removed.and_then(|()| Err(error).at(&path));
                }
                Ok(()) | Err(_) => {}
            }
        }
        removed
    }
}

impl Log {
    /// What readers use.
    pub(crate) fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.shared))
    }

    /// Which partition it is of.
    pub(crate) fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The offset that the next record will get.
    pub(crate) fn log_end_offset(&self) -> i64 {
        self.shared.log_end()
    }

    /// The first offset that may be read.
    pub(crate) fn log_start_offset(&self) -> i64 {
        self.shared.log_start()
    }

    /// Everything below is durable.
    pub(crate) fn recovery_point(&self) -> i64 {
        self.flush.recovery_point()
    }

    /// The producers with records here, for DescribeProducers.
    pub(crate) fn active_producers(&self) -> Vec<ActiveProducer> {
        self.producers.active()
    }

    /// Forgets producers that are idle for too long.
    pub(crate) fn expire_producers(&mut self, now_ms: i64) {
        let deadline = now_ms.saturating_sub(self.config().producer_id_expiration_ms);
        self.producers.expire(deadline);
    }

    /// Begins to verify that the transaction of a batch includes this partition; `None` when no
    /// proof is needed.
    pub(crate) fn begin_verification(
        &mut self,
        header: &Header,
        bumps_epoch: bool,
        now_ms: i64,
    ) -> Option<VerificationGuard> {
        self.producers
            .begin_verification(header, bumps_epoch, now_ms)
    }

    /// The settings in force.
    pub(crate) fn config(&self) -> Arc<LogConfig> {
        self.shared.config()
    }

    /// Puts other settings in force.
    pub(crate) fn set_config(&self, config: Arc<LogConfig>) {
        let active = self.active_segment();
        let bytes = config.segment_index_bytes;
        active.offset_index.raw().set_max_bytes(bytes);
        active.time_index.raw().set_max_bytes(bytes);
        self.shared.set_config(config);
    }

    pub(super) fn active_segment(&self) -> &Arc<Segment> {
        self.segments.last().expect("a log has a segment")
    }

    /// A leader's append of one batch, checked here.
    pub(crate) fn append(
        &mut self,
        records: &Bytes,
        context: AppendContext,
    ) -> Result<Appended, AppendError> {
        let config = self.config();
        let checked = append::check(
            records,
            &Rules {
                config: &config,
                origin: context.origin,
                at: &self.partition,
                now_ms: context.now_ms,
                log_start_offset: self.log_start_offset(),
            },
        )?;
        self.append_checked(checked, context)
    }

    /// A leader's append of a batch that [`append::check`] has passed, which needs no lock.
    pub(crate) fn append_checked(
        &mut self,
        checked: Checked,
        context: AppendContext,
    ) -> Result<Appended, AppendError> {
        let mut header = checked.header;
        header.base_offset = self.log_end_offset();
        header.partition_leader_epoch = context.leader_epoch.0;
        let reject = |code: ErrorCode| Rejection::late(code, self.log_start_offset());
        let marker = read_marker(&header, &checked.records)
            .ok_or_else(|| reject(ErrorCode::InvalidRecord))?;
        if header.has_producer_id() {
            let verdict = match marker {
                Some(marker) => self
                    .producers
                    .check_marker(&header, marker)
                    .map(|()| Verdict::Append),
                None => self.producers.check(&header, context.origin, context.proof),
            };
            if let Verdict::Duplicate(known) = verdict.map_err(reject)? {
                return Ok(Appended {
                    first_offset: known.first_offset,
                    last_offset: known.last_offset,
                    log_append_time_ms: known.timestamp,
                    log_start_offset: self.log_start_offset(),
                    is_duplicate: true,
                    rolled: false,
                    flush: self.flush_wish(),
                    size: 0,
                });
            }
        }
        let head = header.to_bytes();
        let pieces: [&[u8]; 2] = [&head, &checked.records];
        let rolled = self.write(&header, &pieces, marker, context.now_ms)?;
        Ok(Appended {
            first_offset: header.base_offset,
            last_offset: header.last_offset(),
            log_append_time_ms: checked.log_append_time_ms,
            log_start_offset: self.log_start_offset(),
            is_duplicate: false,
            rolled,
            flush: self.flush_wish(),
            size: header.size(),
        })
    }

    /// A follower's append of what its leader sent; a cut batch at the end is left out.
    /// `None` when there was no whole batch.
    pub(crate) fn append_as_follower(
        &mut self,
        records: &Bytes,
        now_ms: i64,
    ) -> Result<Option<Appended>, AppendError> {
        let mut done: Option<Appended> = None;
        for batch in StoredBatches::new(records) {
            let batch = batch.map_err(AppendError::Corrupt)?;
            batch.check_crc().map_err(AppendError::Corrupt)?;
            let header = batch.header(self.log_end_offset());
            let base_offset = header.base_offset;
            let rolled = match self.begins_inside(&header)? {
                Some(start) => self.write_first_replica(&batch, start, now_ms)?,
                None => self.write_replica(&batch, now_ms)?,
            };
            let before = done.take();
            done = Some(Appended {
                first_offset: before.map_or(base_offset, |done| done.first_offset),
                last_offset: batch.last_offset(),
                log_append_time_ms: -1,
                log_start_offset: self.log_start_offset(),
                is_duplicate: false,
                rolled: rolled || before.is_some_and(|done| done.rolled),
                flush: self.flush_wish(),
                size: batch.bytes().len() + before.map_or(0, |done| done.size),
            });
        }
        Ok(done)
    }

    /// A batch must not lie below the log's end, but an empty log may begin inside one: records
    /// were deleted up to the middle of a batch (KAFKA-6975). Gives that beginning.
    fn begins_inside(&self, header: &Header) -> Result<Option<i64>, AppendError> {
        let (log_start, log_end) = (self.log_start_offset(), self.log_end_offset());
        if header.base_offset >= log_end {
            return Ok(None);
        }
        if log_start == log_end && header.last_offset() >= log_end {
            return Ok(Some(log_start));
        }
        Err(AppendError::Misplaced {
            base_offset: header.base_offset,
            log_end,
        })
    }

    /// The segment must begin where its first batch does; what may be read begins later.
    fn write_first_replica(
        &mut self,
        batch: &Stored<'_>,
        log_start: i64,
        now_ms: i64,
    ) -> Result<bool, AppendError> {
        let base_offset = batch.header(log_start).base_offset;
        self.truncate_fully(base_offset, now_ms)?.remove()?;
        let rolled = self.write_replica(batch, now_ms)?;
        self.advance_log_start(log_start)?;
        Ok(rolled)
    }

    fn write_replica(&mut self, batch: &Stored<'_>, now_ms: i64) -> Result<bool, AppendError> {
        let header = batch.header(self.log_end_offset());
        let marker = match batch {
            Stored::Current(batch) => read_marker(&header, batch.records_bytes()),
            Stored::Legacy(_) => None,
        };
        let marker = marker.unwrap_or_default();
        Ok(self.write(&header, &[batch.bytes()], marker, now_ms)?)
    }

    /// Writes a batch whose offsets are final, and publishes it; says whether a segment was
    /// closed before.
    fn write(
        &mut self,
        header: &Header,
        pieces: &[&[u8]],
        marker: Option<Marker>,
        now_ms: i64,
    ) -> Result<bool, Fault> {
        let config = self.config();
        let epoch = LeaderEpoch(header.partition_leader_epoch);
        self.ready(epoch, header.base_offset)?;
        self.is_touched = true;
        self.active.is_busy = true;
        let rolled = self.must_roll(header, &config, now_ms)?;
        if rolled {
            self.roll(header.base_offset, now_ms)?;
        }
        let segment = Arc::clone(self.active_segment());
        let completes = marker.and_then(|marker| self.producers.completes(header, marker));
        let aborted = completes.as_ref().and_then(|done| done.aborted());
        if let Some(aborted) = aborted {
            segment.txn_index.append(aborted)?;
        }
        let indexed = self.active.bytes_since_index > config.index_interval_bytes;
        let batch = Appending {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            indexed,
        };
        if let Err(fault) = segment.append(pieces, batch) {
            if aborted.is_some() {
                segment.txn_index.truncate_to(header.base_offset)?;
            }
            return Err(fault);
        }
        if indexed {
            self.active.bytes_since_index = 0;
        }
        self.active.bytes_since_index += header.size() as u64;
        if self.active.first_timestamp.is_none() && segment.size() == header.size() as u64 {
            self.active.first_timestamp = Some(header.max_timestamp);
        }
        self.bound_tails(config.tail_batches);
        self.take_over(header, marker);
        self.shared.set_log_end(header.next_offset());
        Ok(rolled)
    }

    /// Applies a batch that is in the log to its producers, before its offsets are published.
    pub(super) fn take_over(&mut self, header: &Header, marker: Option<Marker>) {
        if !header.has_producer_id() {
            return;
        }
        match marker {
            Some(marker) => {
                if let Some(done) = self.producers.apply_marker(header, marker) {
                    self.shared
                        .add_undecided(done.first_offset, done.last_offset);
                }
            }
            None if header.is_control() => {}
            None => self.producers.apply(header),
        }
        self.shared.set_first_open(self.producers.first_open());
    }

    /// Keeps what readers find in memory within its bound: the oldest segment's goes first.
    fn bound_tails(&mut self, most: usize) {
        self.tail_batches += 1;
        let mut all = self.segments.iter().peekable();
        while self.tail_batches > most
            && let Some(segment) = all.next()
        {
            let is_active = all.peek().is_none();
            self.tail_batches = self
                .tail_batches
                .saturating_sub(segment.forget_tail(!is_active));
        }
    }

    /// Raises the first offset that may be read, as DeleteRecords and retention do; segments that
    /// lie wholly below are for [`Log::delete_below`]. Says whether it rose.
    pub(crate) fn advance_log_start(&mut self, offset: i64) -> Result<bool, Fault> {
        if offset <= self.log_start_offset() || offset > self.log_end_offset() {
            return Ok(false);
        }
        self.is_touched = true;
        self.shared.set_log_start(offset);
        let mut epochs = self.epochs.clone();
        if epochs.truncate_start(offset) {
            match self.store_epochs(epochs.clone()) {
                // What makes room must need none. A start corrects what the file says too much.
                Err(fault) if fault.is_full() => self.take_epochs(epochs),
                stored => stored?,
            }
        }
        Ok(true)
    }

    /// Takes the closed segments that lie wholly below `offset` out of the log and renames their
    /// files; the log's start is raised to what is left.
    pub(crate) fn delete_below(&mut self, offset: i64) -> Result<Doomed, Fault> {
        let bases = self.segments.iter().skip(1);
        let count = bases.take_while(|next| next.base_offset <= offset).count();
        let gone: Vec<_> = self.segments.drain(..count).collect();
        self.shared.set_segments(self.segments.clone());
        let start = self.segments[0].base_offset;
        self.advance_log_start(start)?;
        self.doom(gone)
    }

    /// Renames the files of segments that are no longer the log's.
    pub(super) fn doom(&mut self, gone: Vec<Arc<Segment>>) -> Result<Doomed, Fault> {
        self.doom_but(gone, None)
    }

    /// The same, with the snapshot at an offset staying where another segment begins there.
    pub(super) fn doom_but(
        &mut self,
        gone: Vec<Arc<Segment>>,
        keep_snapshot: Option<i64>,
    ) -> Result<Doomed, Fault> {
        let mut others = Vec::new();
        for segment in &gone {
            self.tail_batches = self.tail_batches.saturating_sub(segment.forget_tail(true));
            self.flush.forget(segment);
            for file in segment.lazy_files() {
                file.release();
                // One that is not there gives up its name too: another segment may take it.
                file.rename_if_exists(suffixed(&file.path(), layout::DELETED))?;
            }
            let path = layout::path(&self.folder, segment.base_offset, Kind::Snapshot);
            let goes = keep_snapshot != Some(segment.base_offset);
            if goes && self.cache.disk().exists(&path) {
                let to = suffixed(&path, layout::DELETED);
                self.cache.disk().rename(&path, &to).at(&path)?;
                others.push(to);
            }
        }
        Ok(Doomed {
            segments: gone,
            others,
            cache: Arc::clone(&self.cache),
        })
    }

    /// Follows its folder, which was renamed.
    pub(crate) fn moved_to(&mut self, folder: &Path) {
        for segment in &self.segments {
            for file in segment.lazy_files() {
                file.moved_to(folder);
            }
        }
        self.flush.moved_to(folder);
        folder.clone_into(&mut self.folder);
    }
}

/// The end of a transaction that a batch marks: `Some(None)` for any other batch, `None` when a
/// control batch of a producer is no marker.
pub(super) fn read_marker(header: &Header, records: &[u8]) -> Option<Option<Marker>> {
    if !header.is_control() || !header.has_producer_id() {
        return Some(None);
    }
    let mut whole = header.to_bytes().to_vec();
    whole.extend_from_slice(records);
    let batch = Batch::parse(&whole).ok()?;
    let records = Records::of(&batch, MARKER_BYTES_MAX).ok()?;
    let record = records.iter().next()?.ok()?;
    match ControlRecord::read(record.key?, record.value?).ok()? {
        ControlRecord::EndTransaction {
            committed,
            coordinator_epoch,
        } => Some(Some(Marker {
            committed,
            coordinator_epoch,
        })),
        ControlRecord::LeaderChange(_)
        | ControlRecord::SnapshotHeader { .. }
        | ControlRecord::SnapshotFooter
        | ControlRecord::KraftVersion(_)
        | ControlRecord::Voters(_)
        | ControlRecord::Other(_) => None,
    }
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    crate::os::disk::with_suffix(path, suffix)
}
