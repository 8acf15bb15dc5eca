//! `__cluster_metadata-0`: the segments, and where each batch of it stands.
//!
//! The index of a batch is its ordinal, counted from the anchor; one place in memory a batch,
//! filled by the scan at opening. What is appended here is readable at once and durable after the
//! next sync of the newest segment, which is the caller's affair; only rolling, cutting and
//! resetting sync for themselves.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tracing::warn;

use crate::os::disk::{Disk, File};
use crate::protocol::records::batch::{Batch, Header};
use crate::protocol::records::control::ControlRecord;

use super::control;
use super::entry::Members;
use super::fault::{At, Fault};
use super::scan::{self, Expected};
use super::segment::{Segment, file_name, offset_in};
use super::side::Anchor;

const EPOCHS: &str = "leader-epoch-checkpoint";

/// Where the log lives and when it begins a new file.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) disk: Disk,
    pub(super) dir: PathBuf,
    pub(super) segment_bytes: u64,
}

/// What a snapshot says of the log that it replaces.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    pub(super) members: Members,
    /// Whether log or snapshot named the members; else they are those of the configuration.
    pub(super) named: bool,
    pub(super) kraft_version: i16,
}

/// Where a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    segment: i64,
    position: u64,
    size: u32,
    pub(super) base: i64,
    pub(super) last: i64,
    pub(super) epoch: i32,
}

/// The log.
#[derive(Debug)]
pub(super) struct MetadataLog {
    folder: Folder,
    segments: Vec<Segment>,
    anchor: Anchor,
    places: VecDeque<Place>,
    epochs: Vec<(i32, i64)>,
    end: i64,
    basis: Basis,
    /// The voters that batches of the log name, by index.
    members: Vec<(u64, Members)>,
    kraft_version: i16,
    roll_next: bool,
}

impl MetadataLog {
    /// Opens what stands in the folder: rebuilds the places and the indexes, cuts a torn tail,
    /// refuses damage before it. A folder without segments gives an empty log without files.
    pub(super) fn open(folder: Folder, basis: Basis) -> Result<Self, Fault> {
        let mut log = Self {
            folder,
            segments: Vec::new(),
            anchor: Anchor::START,
            places: VecDeque::new(),
            epochs: Vec::new(),
            end: 0,
            kraft_version: basis.kraft_version,
            basis,
            members: Vec::new(),
            roll_next: false,
        };
        let bases = log.bases()?;
        log.end = bases.first().copied().unwrap_or(0);
        // Counted from zero until `begin_at` is told the anchor.
        for (at, base) in bases.iter().enumerate() {
            let is_newest = at + 1 == bases.len();
            if !log.load(*base, is_newest)? {
                log.drop_empty(&bases[at + 1..])?;
                break;
            }
        }
        Ok(log)
    }

    fn bases(&self) -> Result<Vec<i64>, Fault> {
        let dir = &self.folder.dir;
        let files = self.folder.disk.list(dir).at("list", dir)?;
        let bases = files
            .iter()
            .filter_map(|entry| offset_in(&entry.name, "log"));
        Ok(bases.collect())
    }

    /// Takes in a segment; false when its end had to be cut, so that nothing may follow.
    fn load(&mut self, base: i64, is_newest: bool) -> Result<bool, Fault> {
        let mut segment = Segment::open(self.folder.disk, &self.folder.dir, base)?;
        let file = Arc::clone(&segment.file);
        let expected = self.expected();
        let valid = scan::batches(&file, expected, |batch| {
            let place = place_in(&segment, &batch.header);
            segment.found(&batch.header);
            self.take_in(place, batch);
        });
        let valid = valid.at("read", &segment.path)?;
        let whole = file.len().at("read", &segment.path)?;
        if valid < whole {
            self.check_tail(&segment, valid, is_newest)?;
            segment.cut(valid)?;
        }
        segment.write_indexes()?;
        self.segments.push(segment);
        Ok(valid == whole)
    }

    fn expected(&self) -> Expected {
        Expected {
            offset: self.end,
            epoch: self.last_epoch(),
        }
    }

    /// Refuses to cut a segment if a valid batch follows in it, unless both are of an append that a
    /// crash tore: only to the newest segment may one have been under way.
    fn check_tail(&self, segment: &Segment, valid: u64, is_newest: bool) -> Result<(), Fault> {
        let Segment { file, path, .. } = segment;
        let next = scan::next_valid(file, valid, self.expected());
        let Some(next) = next.at("read", path)? else {
            return Ok(());
        };
        if is_newest && scan::is_unwritten(file, valid, next).at("read", path)? {
            warn!(path = %path.display(), position = valid, next, "an append was torn and is cut off");
            return Ok(());
        }
        Err(Fault::Damaged {
            path: path.clone(),
            position: valid,
            next_path: path.clone(),
            next,
        })
    }

    /// Removes the segments after a cut; they must hold no valid batch.
    fn drop_empty(&self, bases: &[i64]) -> Result<(), Fault> {
        let cut = self.segments.last().expect("one was just cut");
        for base in bases {
            let segment = Segment::open(self.folder.disk, &self.folder.dir, *base)?;
            let next = scan::next_valid(&segment.file, 0, self.expected());
            if let Some(next) = next.at("read", &segment.path)? {
                return Err(Fault::Damaged {
                    path: cut.path.clone(),
                    position: cut.size,
                    next_path: segment.path,
                    next,
                });
            }
            segment.delete(self.folder.disk)?;
        }
        Ok(())
    }

    /// Keeps in memory that a batch stands at the end.
    fn take_in(&mut self, place: Place, batch: &Batch<'_>) {
        if place.epoch > self.last_epoch() || self.epochs.is_empty() {
            self.epochs.push((place.epoch, place.base));
        }
        if let Some(members) = control::members_in(batch) {
            self.members.push((self.next_index(), members));
        }
        for record in control::control_records(batch) {
            if let ControlRecord::KraftVersion(version) = record {
                self.kraft_version = version;
            }
        }
        self.end = place.last + 1;
        self.places.push_back(place);
    }

    /// Says where counting begins; called once after opening. Batches before the anchor stay in
    /// their file and are counted no more.
    pub(super) fn begin_at(&mut self, anchor: Anchor) {
        let gone = self.forget_before(anchor.offset) as u64;
        let old = self.members.partition_point(|(index, _)| *index < gone);
        self.forget_members(old);
        for (index, _) in &mut self.members {
            *index = *index - gone + anchor.index;
        }
        self.anchor = anchor;
    }

    fn forget_before(&mut self, offset: i64) -> usize {
        let gone = self.places.partition_point(|place| place.base < offset);
        self.places.drain(..gone);
        gone
    }

    fn forget_members(&mut self, old: usize) {
        if let Some((_, members)) = self.members.drain(..old).next_back() {
            self.basis.members = members;
            self.basis.named = true;
        }
    }

    /// Makes the first segment of a new log, or the only one of a log that begins with a snapshot.
    /// What the folder held is deleted.
    pub(super) fn reset(&mut self, anchor: Anchor, basis: Basis) -> Result<(), Fault> {
        for segment in self.segments.drain(..) {
            segment.delete(self.folder.disk)?;
        }
        self.places.clear();
        self.epochs.clear();
        self.members.clear();
        self.kraft_version = basis.kraft_version;
        self.basis = basis;
        self.anchor = anchor;
        self.end = anchor.offset;
        self.new_segment()?;
        self.write_epochs()?;
        self.sync_dir()
    }

    /// Appends a batch that has its offset and epoch.
    pub(super) fn append(&mut self, batch: &[u8]) -> Result<(), Fault> {
        let parsed = Batch::parse(batch).ok();
        let batch = parsed.filter(|batch| {
            batch.header.base_offset == self.end
                && batch.header.partition_leader_epoch >= self.last_epoch()
        });
        let batch = batch.ok_or(Fault::Misplaced { end: self.end })?;
        if self.must_roll(&batch.header) {
            self.roll()?;
        }
        let segment = self.segments.last_mut().expect("a log has a segment");
        let place = place_in(segment, &batch.header);
        segment.append(&batch.header, batch.bytes())?;
        let known = self.epochs.len();
        self.take_in(place, &batch);
        if self.epochs.len() > known {
            self.write_epochs()?;
        }
        Ok(())
    }

    fn must_roll(&self, header: &Header) -> bool {
        let segment = self.segments.last().expect("a log has a segment");
        let wanted = self.roll_next
            || segment.size + header.size() as u64 > self.folder.segment_bytes
            || header.last_offset() - segment.base > i64::from(i32::MAX);
        wanted && segment.size > 0
    }

    fn roll(&mut self) -> Result<(), Fault> {
        self.roll_next = false;
        let full = self.segments.last_mut().expect("a log has a segment");
        full.close()?;
        self.write_producers()?;
        self.new_segment()?;
        self.sync_dir()
    }

    fn new_segment(&mut self) -> Result<(), Fault> {
        let segment = Segment::create(self.folder.disk, &self.folder.dir, self.end)?;
        self.segments.push(segment);
        Ok(())
    }

    /// Lets the next batch begin a segment, so that the files before it can soon be deleted.
    pub(super) fn roll_at_next(&mut self) {
        self.roll_next = true;
    }

    /// Cuts off the batch at `index` and all that follow.
    pub(super) fn truncate(&mut self, index: u64) -> Result<(), Fault> {
        let Some(place) = self.place(index).copied() else {
            return Ok(());
        };
        let kept = self.segments.partition_point(|s| s.base <= place.segment);
        if kept < self.segments.len() {
            for segment in self.segments.drain(kept..).rev() {
                segment.delete(self.folder.disk)?;
            }
            // What is cut next must not be found with batches that follow it.
            self.sync_dir()?;
        }
        let old = self.segments.pop().expect("a place names a segment");
        old.cut(place.position)?;
        let kept = usize::try_from(index - self.anchor.index).expect("a place has a slot");
        self.places.truncate(kept);
        self.members.retain(|(at, _)| *at < index);
        self.epochs.retain(|(_, start)| *start < place.base);
        self.end = place.base;
        self.reopen(old.base)?;
        self.write_epochs()?;
        self.sync_dir()
    }

    /// Opens a segment whose batches are known, to find what its indexes should hold.
    fn reopen(&mut self, base: i64) -> Result<(), Fault> {
        let mut segment = Segment::open(self.folder.disk, &self.folder.dir, base)?;
        let file = Arc::clone(&segment.file);
        let from = Expected {
            offset: base,
            epoch: 0,
        };
        scan::batches(&file, from, |batch| segment.found(&batch.header))
            .at("read", &segment.path)?;
        segment.write_indexes()?;
        self.segments.push(segment);
        Ok(())
    }

    /// Counts from `anchor` on and deletes the segments that lie wholly before it; the anchor is
    /// already durable.
    pub(super) fn purge(&mut self, anchor: Anchor) -> Result<(), Fault> {
        self.forget_before(anchor.offset);
        let old = self
            .members
            .partition_point(|(index, _)| *index < anchor.index);
        self.forget_members(old);
        self.anchor = anchor;
        while self.segments.len() > 1 && self.segments[1].base <= anchor.offset {
            let segment = self.segments.remove(0);
            segment.delete(self.folder.disk)?;
        }
        self.tidy_producers()
    }

    /// Reads the batches of a range of indexes, whole, the first always and more up to
    /// `bytes_max`.
    pub(super) fn read(
        &self,
        from: u64,
        until: u64,
        bytes_max: usize,
    ) -> Result<Vec<(Place, Bytes)>, Fault> {
        let mut batches = Vec::new();
        let mut total = 0;
        let mut at = from.max(self.anchor.index);
        while at < until.min(self.next_index()) && (total < bytes_max || batches.is_empty()) {
            let run = self.run(at, until, bytes_max.saturating_sub(total));
            let bytes = self.read_run(&run)?;
            total += bytes.len();
            at += run.len() as u64;
            split(&run, bytes, &mut batches);
        }
        Ok(batches)
    }

    /// Neighbouring batches of one segment, from `from` on: at least one.
    fn run(&self, from: u64, until: u64, bytes_max: usize) -> Vec<Place> {
        let skip = usize::try_from(from - self.anchor.index).expect("a place has a slot");
        let count = usize::try_from(until - from).unwrap_or(usize::MAX);
        let mut size = 0;
        let mut segment = None;
        let places = self.places.iter().skip(skip).take(count);
        let run = places.take_while(|place| {
            let first = segment.is_none();
            size += place.size as usize;
            let one_file = *segment.get_or_insert(place.segment) == place.segment;
            first || (one_file && size <= bytes_max)
        });
        run.copied().collect()
    }

    fn read_run(&self, run: &[Place]) -> Result<BytesMut, Fault> {
        let size: usize = run.iter().map(|place| place.size as usize).sum();
        let mut bytes = BytesMut::zeroed(size);
        if let Some(first) = run.first() {
            let segment = self.segment_of(first);
            segment
                .file
                .read_exact_at(&mut bytes, first.position)
                .at("read", &segment.path)?;
        }
        Ok(bytes)
    }

    fn segment_of(&self, place: &Place) -> &Segment {
        let at = self.segments.partition_point(|s| s.base < place.segment);
        &self.segments[at]
    }

    /// The place of the batch at `index`.
    pub(super) fn place(&self, index: u64) -> Option<&Place> {
        let slot = index.checked_sub(self.anchor.index)?;
        self.places.get(usize::try_from(slot).ok()?)
    }

    /// The index of the batch that holds `offset`, or of the next one.
    pub(super) fn index_of(&self, offset: i64) -> u64 {
        let slot = self.places.partition_point(|place| place.last < offset);
        self.anchor.index + slot as u64
    }

    /// Index and epoch of the last batch that ends at `offset` or before; `None` when that lies
    /// before the first batch of all.
    pub(super) fn batch_before(&self, offset: i64) -> Option<(u64, i32)> {
        let slots = self.places.partition_point(|place| place.last < offset);
        match slots.checked_sub(1) {
            Some(slot) => Some((self.anchor.index + slot as u64, self.places[slot].epoch)),
            None => self.before_anchor(),
        }
    }

    /// Whether a batch of the anchor's epoch ends where the anchor lies.
    pub(super) fn holds_end_of(&self, anchor: &Anchor) -> bool {
        let before = self.batch_before(anchor.offset);
        before.is_some_and(|(index, epoch)| {
            epoch == anchor.epoch && self.end_of(index) == Some(anchor.offset)
        })
    }

    /// Index and epoch of the batch before the first that is counted.
    pub(super) fn before_anchor(&self) -> Option<(u64, i32)> {
        let index = self.anchor.index.checked_sub(1)?;
        Some((index, self.anchor.epoch))
    }

    /// Index and epoch of the newest batch, also of one that a snapshot replaced.
    pub(super) fn newest(&self) -> Option<(u64, i32)> {
        match self.places.back() {
            Some(place) => Some((self.next_index() - 1, place.epoch)),
            None => self.before_anchor(),
        }
    }

    /// The offset after the batch at `index`.
    pub(super) fn end_of(&self, index: u64) -> Option<i64> {
        if index + 1 == self.anchor.index {
            return Some(self.anchor.offset);
        }
        self.place(index).map(|place| place.last + 1)
    }

    /// The index that the next batch will get.
    pub(super) fn next_index(&self) -> u64 {
        self.anchor.index + self.places.len() as u64
    }

    /// The first offset that can be read.
    pub(super) fn start_offset(&self) -> i64 {
        self.anchor.offset
    }

    /// Where the files begin.
    pub(super) fn first_base(&self) -> Option<i64> {
        self.segments.first().map(|segment| segment.base)
    }

    /// The epoch of the first batch that a file holds.
    pub(super) fn first_epoch(&self) -> Option<i32> {
        self.epochs.first().map(|(epoch, _)| *epoch)
    }

    /// The offset that the next record will get.
    pub(super) fn end_offset(&self) -> i64 {
        self.end
    }

    /// The epoch of the newest batch.
    pub(super) fn last_epoch(&self) -> i32 {
        let of_anchor = self.anchor.epoch;
        self.epochs.last().map_or(of_anchor, |(epoch, _)| *epoch)
    }

    /// The newest epoch up to `epoch` and the offset where it ends.
    pub(super) fn end_of_epoch(&self, epoch: i32) -> Option<(i32, i64)> {
        let known = self.epochs.partition_point(|(start, _)| *start <= epoch);
        let (found, _) = self.epochs.get(known.checked_sub(1)?)?;
        let end = self.epochs.get(known).map_or(self.end, |(_, start)| *start);
        Some((*found, end))
    }

    /// The file that the newest batch was written to.
    pub(super) fn newest_file(&self) -> Arc<File> {
        Arc::clone(&self.segments.last().expect("a log has a segment").file)
    }

    /// The voters after the newest batch.
    pub(super) fn members(&self) -> &Members {
        let named = self.members.last().map(|(_, members)| members);
        named.unwrap_or(&self.basis.members)
    }

    /// The newest voters that stand at `index` or before, and the batch that names them.
    pub(super) fn members_at(&self, index: Option<u64>) -> (Option<u64>, &Members) {
        let named = self.members.iter().rev();
        let mut named = named.filter(|(at, _)| Some(*at) <= index);
        match named.next() {
            Some((at, members)) => (Some(*at), members),
            None => (None, &self.basis.members),
        }
    }

    /// Whether the voters are those of log or snapshot and not of the configuration.
    pub(super) fn names_members(&self) -> bool {
        self.basis.named || !self.members.is_empty()
    }

    /// The newest kraft.version of log and snapshot.
    pub(super) fn kraft_version(&self) -> i16 {
        self.kraft_version
    }

    /// Makes all batches durable.
    pub(super) fn sync(&self) -> Result<(), Fault> {
        self.segments.last().map_or(Ok(()), Segment::sync)
    }

    /// Ends the log as Kafka does at a clean stop.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        if let Some(segment) = self.segments.last_mut() {
            segment.close()?;
        }
        self.write_producers()?;
        self.sync_dir()
    }

    /// Kafka's snapshot of producers, of which the metadata log never has any.
    fn write_producers(&self) -> Result<(), Fault> {
        if self.end == 0 {
            return Ok(());
        }
        let path = self.folder.dir.join(file_name(self.end, "snapshot"));
        let none = 0i32.to_be_bytes();
        let mut content = Vec::with_capacity(10);
        content.put_i16(1);
        content.put_u32(crate::protocol::records::checksum::crc32c(&none));
        content.extend_from_slice(&none);
        self.folder.disk.replace(&path, &content).at("write", &path)
    }

    /// Removes snapshots of producers that Kafka would not keep either: beyond the end, or
    /// neither the newest nor at the base of a segment.
    pub(super) fn tidy_producers(&self) -> Result<(), Fault> {
        let (disk, dir) = (self.folder.disk, &self.folder.dir);
        let files = disk.list(dir).at("list", dir)?;
        let offsets = files
            .iter()
            .filter_map(|entry| offset_in(&entry.name, "snapshot"));
        let (kept, beyond): (Vec<i64>, Vec<i64>) = offsets.partition(|at| *at <= self.end);
        let stray = kept
            .iter()
            .rev()
            .skip(1)
            .filter(|at| !self.segments.iter().any(|segment| segment.base == **at));
        for offset in stray.chain(&beyond) {
            let path = dir.join(file_name(*offset, "snapshot"));
            disk.remove_file(&path).at("remove", &path)?;
        }
        Ok(())
    }

    /// Written without a sync: it is rebuilt from the batches, by Kafka too.
    pub(super) fn write_epochs(&self) -> Result<(), Fault> {
        let mut text = format!("0\n{}\n", self.epochs.len());
        for (epoch, start) in &self.epochs {
            text.push_str(&format!("{epoch} {start}\n"));
        }
        let path = self.folder.dir.join(EPOCHS);
        self.folder
            .disk
            .replace(&path, text.as_bytes())
            .at("write", &path)
    }

    fn sync_dir(&self) -> Result<(), Fault> {
        let dir = &self.folder.dir;
        self.folder.disk.sync_dir(dir).at("sync", dir)
    }
}

fn place_in(segment: &Segment, header: &Header) -> Place {
    Place {
        segment: segment.base,
        position: segment.size,
        size: u32::try_from(header.size()).expect("a batch's length has 31 bits"),
        base: header.base_offset,
        last: header.last_offset(),
        epoch: header.partition_leader_epoch,
    }
}

fn split(run: &[Place], mut bytes: BytesMut, into: &mut Vec<(Place, Bytes)>) {
    for place in run {
        into.push((*place, bytes.split_to(place.size as usize).freeze()));
    }
}
