//! The metadata log, its votes and its snapshots on a disk that loses what was not made durable:
//! appended to, cut, snapshotted, purged, replaced by a leader's snapshot, opened again by another
//! process, and crashed before any operation. What openraft was told is there afterwards, and the
//! node starts.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use openraft::Vote;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};

use crate::base::{DirectoryId, NodeId, Uuid};
use crate::metadata::image::Image;
use crate::metadata::record::{ConfigRecord, Record};
use crate::os::disk::{Disk, TempDir};
use crate::os::random::Dice;
use crate::os::sim_disk::{self, Crashed, Failure, Journal};
use crate::protocol::records::batch::Batch;
use crate::protocol::records::iter::Records;

use super::entry::{Content, Entry, RaftLog, fixed_members, log_id, term_of};
use super::log::Basis;
use super::node;
use super::open::{self, Opened};
use super::settings::Settings;
use super::shared::Shared;
use super::side::Election;
use super::snapshot::{self, Preface, SnapshotId};
use super::store::{Store, election_of};
use super::transport::Peers;
use super::wire::{Install, Point};
use super::{control, machine};

/// Worlds in an ordinary run, how often each is begun, and crashes in each of its lives.
const SEEDS: u64 = 40;
const LIVES: usize = 3;
const CRASHES: usize = 6;
const STEPS: usize = 40;
const NOW: i64 = 1_795_980_000_000;

/// What holds after a step.
#[derive(Clone, Debug, Default)]
struct Promise {
    vote: Election,
    /// The batch of each index from 0 on, whether a file or a snapshot has it.
    log: Vec<Bytes>,
    /// So many of them are durable, and so many are committed.
    durable: usize,
    committed: usize,
}

struct World {
    root: PathBuf,
    dice: Dice,
    settings: Settings,
    parts: Parts,
    now: Promise,
    promises: Vec<Promise>,
    /// Every batch that was ever written at an index.
    versions: HashMap<usize, Vec<Bytes>>,
    count: usize,
}

/// What runs on an open folder.
struct Parts {
    shared: Arc<Shared>,
    store: Store,
    peers: Peers,
}

impl Parts {
    fn on(settings: &Settings, opened: Opened) -> Self {
        let (shared, _, election) = node::share(settings, Disk, opened).unwrap();
        Self {
            store: Store::new(Arc::clone(&shared), election),
            peers: Peers::new(None, Arc::clone(&shared), ""),
            shared,
        }
    }

    /// Waits until the flusher has done all that it was asked for.
    async fn settle(&self) {
        let (done, waits) = tokio::sync::oneshot::channel();
        self.shared.flusher.run_later(Box::new(move || {
            let _ = done.send(());
        }));
        // After a failure nothing is run any more.
        let _ = waits.await;
    }
}

fn settings(root: &Path, voters: &[i32]) -> Settings {
    Settings {
        voters: voters.iter().copied().map(NodeId).collect(),
        segment_bytes: 1500,
        ..Settings::alone(NodeId(1), DirectoryId(Uuid::ONE), root.to_owned())
    }
}

impl World {
    fn new(root: &Path, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let voters: &[i32] = if dice.one_in(3) { &[1] } else { &[1, 2, 3] };
        let settings = settings(root, voters);
        sim_disk::begin();
        Disk.create_dir_all(root).unwrap();
        let parts = Parts::on(&settings, open::open(&settings, Disk).unwrap());
        Self {
            root: root.to_owned(),
            dice,
            settings,
            parts,
            now: Promise::default(),
            promises: Vec::new(),
            versions: HashMap::new(),
            count: 0,
        }
    }

    /// Begins again on what a crash left.
    fn reborn(self, root: &Path, left: Survived) -> Self {
        let settings = Settings {
            dir: root.to_owned(),
            ..self.settings
        };
        let mut now = self.promises[left.mark].clone();
        now.durable = left.durable;
        now.committed = now.committed.max(left.committed);
        now.log = left.log;
        sim_disk::begin_on(root).unwrap();
        sim_disk::mark(0);
        let promises = vec![now.clone()];
        let opened = open::open(&settings, Disk).unwrap();
        now.vote = opened.election;
        let mut world = Self {
            root: root.to_owned(),
            parts: Parts::on(&settings, opened),
            settings,
            now,
            promises,
            ..self
        };
        world.trust();
        world
    }

    /// The voters believe that whatever an open log holds is durable.
    fn trust(&mut self) {
        if !self.is_alone() {
            self.now.durable = self.now.log.len();
        }
    }

    fn is_alone(&self) -> bool {
        self.settings.voters.len() == 1
    }

    /// Runs until the end or a fault; the notes of it.
    async fn run(&mut self) -> Journal {
        self.promise();
        if self.dice.one_in(4) {
            let failure = match self.dice.one_in(2) {
                true => Failure::Full,
                false => Failure::Broken,
            };
            sim_disk::fail_after(self.dice.below(300), failure);
        }
        for _ in 0..STEPS {
            let went_on = self.step().await;
            self.parts.settle().await;
            // A node whose metadata log failed stops.
            if !went_on || self.parts.shared.fault.borrow().is_some() {
                break;
            }
            self.promise();
        }
        self.parts.shared.flusher.stop();
        sim_disk::end()
    }

    fn promise(&mut self) {
        sim_disk::mark(self.promises.len());
        self.promises.push(self.now.clone());
    }

    async fn step(&mut self) -> bool {
        match self.dice.below(16) {
            0..7 => self.append().await,
            7 => self.elect().await,
            8..11 => self.commit(),
            11 => self.cut().await,
            12 => self.snapshot(),
            13 => self.purge().await,
            14 => self.install().await,
            _ => self.killed(),
        }
    }

    async fn append(&mut self) -> bool {
        let mut entries = Vec::new();
        for _ in 0..=self.dice.below(4) {
            let batch = self.batch();
            entries.push(self.entry(batch));
        }
        self.write(entries).await
    }

    async fn write(&mut self, entries: Vec<Entry>) -> bool {
        let done = self.parts.store.blocking_append(entries).await.is_ok();
        if done {
            self.now.durable = self.now.log.len();
        }
        done
    }

    /// A batch that follows all that is there.
    fn batch(&mut self) -> Vec<u8> {
        let record = |world: &mut Self| {
            world.count += 1;
            let long = match world.dice.below(4) {
                0 => world.dice.below(1200),
                _ => 0,
            };
            Record::Config(ConfigRecord {
                resource_type: 4,
                resource_name: String::new(),
                name: format!("k{}", world.dice.below(7)),
                value: Some(format!("{}{}", world.count, "x".repeat(long))),
            })
        };
        let records: Vec<_> = (0..=self.dice.below(2)).map(|_| record(self)).collect();
        control::data_batch(&records, NOW)
    }

    /// The entry of a batch at the end, in the epoch of the vote.
    fn entry(&mut self, mut batch: Vec<u8>) -> Entry {
        let epoch = self.now.vote.epoch.max(1);
        control::place(&mut batch, end_of(&self.now.log), epoch);
        let bytes = Bytes::from(batch);
        let index = self.now.log.len();
        self.versions.entry(index).or_default().push(bytes.clone());
        self.now.log.push(bytes.clone());
        Entry {
            id: log_id(epoch, index as u64),
            content: Content::Stored(bytes, None),
        }
    }

    /// Another epoch begins: a vote, perhaps a leader, and if that is this node its first batch.
    async fn elect(&mut self) -> bool {
        let term = term_of(self.now.vote.epoch) + 1;
        let whom = if self.is_alone() {
            1
        } else {
            1 + i32::from(self.dice.one_in(2))
        };
        if !self.vote(Vote::new(term, whom)).await {
            return false;
        }
        if !self.is_alone() && self.dice.one_in(3) {
            return true;
        }
        if !self.vote(Vote::new_committed(term, whom)).await {
            return false;
        }
        if whom != 1 {
            return true;
        }
        let members = fixed_members(&self.settings.voters);
        let entry = self.entry(control::leader_change(1, &members, NOW));
        self.write(vec![entry]).await
    }

    async fn vote(&mut self, vote: Vote<i32>) -> bool {
        // Until it is durable either may be found.
        if !self
            .promises
            .last()
            .is_some_and(|last| last.vote == self.now.vote)
        {
            self.promise();
        }
        self.now.vote = election_of(&vote);
        self.parts.store.save_vote(&vote).await.is_ok()
    }

    fn commit(&mut self) -> bool {
        let open = self.now.durable - self.now.committed;
        self.now.committed += self.dice.below(open + 1);
        true
    }

    /// A new leader has other batches where nothing is committed.
    async fn cut(&mut self) -> bool {
        let open = self.now.log.len() - self.now.committed;
        if self.is_alone() || open == 0 {
            return true;
        }
        let term = term_of(self.now.vote.epoch) + 1;
        if !self.vote(Vote::new_committed(term, 2)).await {
            return false;
        }
        let from = self.now.committed + self.dice.below(open);
        let id = self.id_of(from);
        self.now.log.truncate(from);
        self.now.durable = self.now.durable.min(from);
        self.parts.store.truncate(id).await.is_ok()
    }

    fn id_of(&self, index: usize) -> RaftLog {
        log_id(epoch_in(&self.now.log[index]), index as u64)
    }

    fn snapshot(&self) -> bool {
        let Some(id) = snapshot_of(&self.now.log[..self.now.committed]) else {
            return true;
        };
        let records = records_in(&self.now.log[..self.now.committed]);
        let image = image_of(&records);
        let preface = self.preface();
        machine::write(&self.parts.shared, id, &preface, &image).is_ok()
    }

    fn preface(&self) -> Preface {
        Preface {
            last_timestamp: NOW,
            basis: Basis {
                members: fixed_members(&self.settings.voters),
                named: false,
                kraft_version: 0,
            },
        }
    }

    /// Lets go of what the oldest snapshot holds.
    async fn purge(&mut self) -> bool {
        let ids = snapshot::list(Disk, &self.parts.shared.dir).unwrap();
        let held = ids
            .first()
            .map_or(0, |oldest| held_by(&self.now.log, *oldest));
        let first = self.first_index();
        match held.checked_sub(1).filter(|last| *last >= first) {
            Some(last) => {
                let id = self.id_of(last);
                self.parts.store.purge(id).await.is_ok()
            }
            None => true,
        }
    }

    /// The first index that the log counts.
    fn first_index(&self) -> usize {
        let before = self.parts.shared.log.lock().before_anchor();
        before.map_or(0, |(index, _)| usize::try_from(index).unwrap() + 1)
    }

    /// A leader that has let go of what this node lacks sends its snapshot.
    async fn install(&mut self) -> bool {
        if self.is_alone() || self.now.log.len() > self.now.committed {
            return true;
        }
        for _ in 0..=self.dice.below(5) {
            let batch = self.batch();
            self.entry(batch);
        }
        self.now.committed = self.now.log.len();
        let id = snapshot_of(&self.now.log).unwrap();
        let Some(file) = self.made_elsewhere(id) else {
            return false;
        };
        let message = Install {
            cluster_id: String::new(),
            ballot: (&Vote::new(term_of(id.epoch), 2)).into(),
            last: Point {
                index: self.now.log.len() as i64 - 1,
                epoch: id.epoch,
                end_offset: id.end_offset,
            },
            file,
        };
        let last = self.id_of(self.now.log.len() - 1);
        let kept = self.parts.peers.keep(&message);
        if kept.is_err() || self.parts.store.purge(last).await.is_err() {
            return false;
        }
        self.now.durable = self.now.log.len();
        true
    }

    /// The snapshot of everything, as another node made it.
    fn made_elsewhere(&self, id: SnapshotId) -> Option<Bytes> {
        let elsewhere = TempDir::new();
        let records = image_of(&records_in(&self.now.log)).records();
        let made = snapshot::write(Disk, elsewhere.path(), id, &self.preface(), &records, NOW);
        Some(Disk.read(&made.ok()?.path).unwrap().into())
    }

    /// The process ends with something appended that nobody waited for, and another begins.
    fn killed(&mut self) -> bool {
        for _ in 0..self.dice.below(3) {
            let batch = self.batch();
            let Content::Stored(bytes, _) = self.entry(batch).content else {
                return true;
            };
            if self.parts.shared.log.lock().append(&bytes).is_err() {
                return false;
            }
        }
        self.parts.shared.flusher.stop();
        let Ok(opened) = open::open(&self.settings, Disk) else {
            return false;
        };
        assert_eq!(opened.log.next_index(), self.now.log.len() as u64);
        assert!(opened.election.epoch >= self.now.vote.epoch || self.is_alone());
        self.now.vote = opened.election;
        self.parts = Parts::on(&self.settings, opened);
        self.trust();
        true
    }
}

fn header(batch: &Bytes) -> crate::protocol::records::batch::Header {
    Batch::parse(batch).unwrap().header
}

fn epoch_in(batch: &Bytes) -> i32 {
    header(batch).partition_leader_epoch
}

fn end_of(log: &[Bytes]) -> i64 {
    log.last().map_or(0, |last| header(last).next_offset())
}

fn snapshot_of(log: &[Bytes]) -> Option<SnapshotId> {
    log.last().map(|last| SnapshotId {
        end_offset: end_of(log),
        epoch: epoch_in(last),
    })
}

/// How many batches a snapshot holds.
fn held_by(log: &[Bytes], id: SnapshotId) -> usize {
    log.partition_point(|batch| header(batch).next_offset() <= id.end_offset)
}

fn records_in(log: &[Bytes]) -> Vec<Record> {
    let mut all = Vec::new();
    for bytes in log {
        let batch = Batch::parse(bytes).unwrap();
        if batch.header.is_control() {
            continue;
        }
        for record in Records::of(&batch, 1 << 20).unwrap().iter() {
            all.push(Record::decode(record.unwrap().value.unwrap()).unwrap());
        }
    }
    all
}

fn image_of(records: &[Record]) -> Image {
    let mut image = Image::default();
    for record in records {
        image.replay(record).unwrap();
    }
    image
}

/// The options that records add up to.
fn options(records: &[Record]) -> BTreeMap<&str, &str> {
    let mut options = BTreeMap::new();
    for record in records {
        if let Record::Config(config) = record {
            options.insert(config.name.as_str(), config.value.as_deref().unwrap());
        }
    }
    options
}

/// What a crash left, seen by a node that starts.
struct Survived {
    log: Vec<Bytes>,
    durable: usize,
    /// So many batches must be, for a snapshot holds them.
    committed: usize,
    /// The last promise before it.
    mark: usize,
}

/// Opens what a crash left, if it came after the first promise.
fn survives(world: &World, crashed: &Crashed, at: &Path) -> Option<Survived> {
    let mark = crashed.mark?;
    crashed.restore(&world.root, at).unwrap();
    let settings = Settings {
        dir: at.to_owned(),
        ..world.settings.clone()
    };
    let opened = open::open(&settings, Disk).unwrap();
    let before = &world.promises[mark];
    // The step under way may have come to its end.
    let after = world.promises.get(mark + 1).unwrap_or(&world.now);
    check_vote(&opened.election, before, after, world.is_alone());
    let durable = before.durable.min(after.durable);
    let (log, committed) = check_log(world, &opened, before, after, durable);
    Some(Survived {
        log,
        durable,
        committed,
        mark,
    })
}

fn check_vote(found: &Election, before: &Promise, after: &Promise, is_alone: bool) {
    if is_alone {
        // Nobody else can be promised anything; the epoch is in the log once something is.
        let promised = before.log[..before.durable].last().map_or(0, epoch_in);
        assert!(found.epoch >= promised, "{found:?} after {before:?}");
        return;
    }
    assert!(
        found.epoch >= before.vote.epoch,
        "{found:?} after {:?}",
        before.vote
    );
    let whom = |vote: &Election| vote.leader.or(vote.voted);
    if found.epoch == before.vote.epoch && before.vote.epoch > 0 {
        let known = [before, after].map(|promise| promise.vote);
        let mut known = known.iter().filter(|vote| vote.epoch == found.epoch);
        assert!(
            known.any(|vote| whom(vote) == whom(found)),
            "{found:?} after {:?}",
            before.vote
        );
    }
}

/// What was durable is there, nothing is that was never written, and log and snapshot add up. Gives
/// the whole log, and how much of it the snapshot holds.
fn check_log(
    world: &World,
    opened: &Opened,
    before: &Promise,
    after: &Promise,
    durable: usize,
) -> (Vec<Bytes>, usize) {
    let first = opened.log.before_anchor().map_or(0, |(index, _)| index + 1);
    let first = usize::try_from(first).unwrap();
    let found = opened.log.read(0, u64::MAX, usize::MAX).unwrap();
    let end = first + found.len();
    assert!(
        end >= durable,
        "of {durable} batches there are {first}..{end}"
    );
    let committed = &after.log[..after.committed];
    assert!(first <= committed.len(), "more is gone than was committed");
    let mut log = committed[..first].to_vec();
    for (index, (_, bytes)) in (first..).zip(found) {
        if index < durable {
            assert_eq!(bytes, before.log[index], "batch {index}");
        }
        assert!(world.versions[&index].contains(&bytes), "batch {index}");
        log.push(bytes);
    }
    let mut records = Vec::new();
    let mut held = 0;
    if let Some((id, content)) = &opened.snapshot {
        held = held_by(committed, *id);
        assert_eq!(snapshot_of(&committed[..held]), Some(*id));
        let whole = records_in(&committed[..held]);
        assert_eq!(
            options(&content.records),
            options(&whole),
            "the snapshot {id:?}"
        );
        records.clone_from(&content.records);
    }
    assert!(
        first <= held,
        "the log begins at {first} and the snapshot ends at {held}"
    );
    records.extend(records_in(&log[held..]));
    assert_eq!(options(&records), options(&records_in(&log)));
    (log, held)
}

async fn run(seed: u64, shown: usize) {
    let dir = TempDir::new();
    let root = |life: usize| dir.path().join(format!("life-{life}"));
    let mut world = World::new(&root(0), seed);
    let mut dice = Dice(seed ^ 0xc0ff_ee00);
    for life in 0..LIVES {
        let journal = world.run().await;
        let mut left = None;
        for crash in 0..CRASHES {
            let lived = journal.len() - journal.found();
            let at = match crash {
                0 => journal.len(),
                _ => journal.found() + dice.below(lived + 1),
            };
            let crashed = journal.crash(at, &mut |bound| dice.below(bound));
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                survives(&world, &crashed, &dir.path().join("after"))
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
    world.parts.shared.flusher.stop();
    sim_disk::end();
}

#[test]
fn what_the_quorum_was_told_survives_a_crash_at_any_moment() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    sim_disk::worlds(SEEDS, |seed, shown| runtime.block_on(run(seed, shown)));
}
