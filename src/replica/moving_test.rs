//! Replicas move between directories: copied while they are written to, given up, sent elsewhere,
//! crashed before any operation of the copy and of the change of places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manager::Manager;
use super::pace::Pace;
use super::partition::Partition;
use crate::base::{
    DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition, Uuid,
};
use crate::config::BrokerConfig;
use crate::config::options::Options;
use crate::log::dir::Identity;
use crate::log::dirs::LogDirs;
use crate::log::log::AppendContext;
use crate::log::read::{Located, Want};
use crate::log::testkit::{batch, client, coordinator, marker_batch, producer_batch};
use crate::metadata::changes::Changes;
use crate::metadata::image::Image;
use crate::metadata::record::{PartitionRecord, Record, TopicRecord};
use crate::os::clock;
use crate::os::disk::{Disk, TempDir};
use crate::os::sim_disk::{self, Failure};
use crate::os::tasks::Tasks;
use crate::protocol::error::ErrorCode;
use crate::protocol::records::batch::Batches;
use crate::protocol::records::build::BatchBuilder;

const ME: NodeId = NodeId(1);
/// Crashes before each operation; what is lost is another matter each time.
const CRASHES: usize = 1;
const TOPIC: TopicId = TopicId(Uuid::ONE);

pub(super) fn of() -> TopicPartition {
    TopicPartition::new("t", 0)
}

/// A node with two directories, `a` and `b`, and one partition, first in `a`.
pub(super) struct Node {
    pub(super) manager: Manager,
    tasks: Tasks,
    pace: Pace,
    epoch: i32,
}

fn paths(root: &Path) -> [PathBuf; 2] {
    [root.join("a"), root.join("b")]
}

fn image(registered: DirectoryId, epoch: i32) -> Arc<Image> {
    let mut image = Image::default();
    let topic = TopicRecord {
        name: "t".into(),
        topic_id: TOPIC,
    };
    let partition = PartitionRecord {
        partition_id: 0,
        topic_id: TOPIC,
        replicas: vec![ME],
        isr: vec![ME],
        leader: ME,
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(epoch),
        directories: vec![registered],
        ..Default::default()
    };
    image.replay(&Record::from(topic)).unwrap();
    image.replay(&Record::from(partition)).unwrap();
    Arc::new(image)
}

fn open(paths: &[PathBuf]) -> LogDirs {
    let identity = Identity {
        cluster_id: "QmFybmFiYXNGaXh0dXJlMQ".into(),
        node_id: ME.0,
    };
    LogDirs::open(Disk, paths, &identity, 16).0
}

impl Node {
    /// Starts on these directories; the metadata says that the partition is in `registered`.
    fn start(root: &Path, registered: Option<DirectoryId>, epoch: i32) -> Self {
        Self::start_on(&paths(root), registered, epoch)
    }

    pub(super) fn start_on(paths: &[PathBuf], registered: Option<DirectoryId>, epoch: i32) -> Self {
        let dirs = open(paths);
        let list: Vec<_> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let given = |name: &str, value: String| (name.to_owned(), value);
        let given = [
            given("log.dirs", list.join(",")),
            given("log.segment.bytes", "1048576".into()),
            given("log.index.size.max.bytes", "4096".into()),
        ];
        let (config, _) = BrokerConfig::from_properties(&given).unwrap();
        let registered = registered.unwrap_or_else(|| dirs.dirs()[0].id());
        let manager = Manager::new(ME, Arc::new(Options::new(config)), dirs);
        manager.load(&image(registered, epoch));
        Self {
            manager,
            tasks: Tasks::new(),
            pace: Pace::new(),
            epoch,
        }
    }

    pub(super) fn partition(&self) -> Arc<Partition> {
        self.manager.partition(TOPIC, 0).expect("it is here")
    }

    fn id(&self, at: usize) -> DirectoryId {
        self.manager.dirs().dirs()[at].id()
    }

    fn path(&self, at: usize) -> String {
        self.manager.dirs().paths()[at].display().to_string()
    }

    fn alter(&self, path: &str) -> ErrorCode {
        self.manager.alter_dirs(&[(of(), path.to_owned())])[0]
    }

    fn go_on(&self) {
        self.manager.go_on((TOPIC, 0), &self.tasks, &self.pace);
    }

    /// The metadata says what it is told.
    fn registers(&self) -> Option<DirectoryId> {
        let told = self.manager.whereabouts(10).replicas;
        let (_, _, id) = told.first()?;
        let mut changes = Changes::default();
        changes.partitions.entry(TOPIC).or_default().insert(0);
        self.manager.apply(&image(*id, self.epoch), &changes);
        Some(*id)
    }

    pub(super) fn append(&self, records: usize) {
        let partition = self.partition();
        partition.with_log(|log| {
            let bytes = batch(records, 100);
            log.append(&bytes, client(self.epoch)).unwrap();
        });
    }

    pub(super) fn end(&self) -> i64 {
        self.partition().reader().log_end_offset()
    }

    /// Where the partition is: `a` or `b`.
    fn place(&self) -> String {
        let dir = self.partition().dir();
        dir.path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }

    /// The folders of the partition, in both directories.
    fn folders(&self) -> Vec<String> {
        let list = |path: &PathBuf| {
            let dir = path.file_name().unwrap().to_string_lossy().into_owned();
            let entries = Disk.list(path).unwrap().into_iter();
            entries
                .filter(|entry| entry.is_dir && entry.name.starts_with("t-0"))
                .map(|entry| {
                    let name = entry.name.split('.').next().unwrap().to_owned();
                    let end = entry.name.rsplit_once('-').unwrap().1.to_owned();
                    match entry.name.contains('.') {
                        true => format!("{dir}/{name} {end}"),
                        false => format!("{dir}/{name}"),
                    }
                })
                .collect::<Vec<_>>()
        };
        self.manager.dirs().paths().iter().flat_map(list).collect()
    }
}

/// Every record of a partition: its offset and its value.
pub(super) fn records(partition: &Partition) -> BTreeMap<i64, Vec<u8>> {
    let reader = partition.reader();
    let mut found = BTreeMap::new();
    let mut offset = reader.log_start_offset();
    loop {
        let want = Want {
            offset,
            upper: reader.log_end_offset(),
            max_bytes: 4000,
            min_one: true,
        };
        let Located::Slice(slice) = reader.locate(&want).unwrap() else {
            return found;
        };
        let mut bytes = vec![0; slice.len];
        slice
            .file
            .read_exact_at(&mut bytes, slice.position)
            .unwrap();
        for batch in Batches::new(&bytes) {
            let Ok(batch) = batch else { break };
            batch.check_crc().unwrap();
            offset = batch.header.next_offset();
            found.insert(batch.header.base_offset, batch.records_bytes().to_vec());
        }
    }
}

#[test]
fn a_replica_moves_while_it_is_written_to() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    for _ in 0..50 {
        node.append(3);
    }
    let partition = node.partition();
    partition.with_log(|log| log.advance_log_start(40)).unwrap();
    let reader = partition.reader().clone();
    assert_eq!(node.alter(&node.path(1)), ErrorCode::None);
    assert_eq!(node.folders(), ["a/t-0", "b/t-0 future"]);
    let (copy, to) = partition.copy().unwrap();
    assert_eq!((copy.log_end_offset(), to.id()), (0, node.id(1)));
    node.go_on();
    assert_eq!((copy.log_start_offset(), copy.log_end_offset()), (40, 150));
    assert_eq!(node.place(), "a", "the metadata must say so first");
    node.append(7);
    assert_eq!(node.registers(), Some(node.id(1)));
    node.append(1);
    node.go_on();
    assert_eq!(node.place(), "b");
    assert_eq!(node.folders(), ["a/t-0 delete", "b/t-0"]);
    assert!(!partition.is_moving() && partition.copy().is_none());
    node.append(2);
    assert_eq!(
        (reader.log_start_offset(), reader.log_end_offset()),
        (40, 160)
    );
    let all = records(&partition);
    assert_eq!(all.len(), 50 - 13 + 3);
    assert_eq!(node.registers(), None, "the metadata knows");
    drop((node, partition, to));

    let dirs = open(&paths(dir.path()));
    let id = dirs.dirs()[1].id();
    drop(dirs);
    let node = Node::start(dir.path(), Some(id), 1);
    assert_eq!((node.place().as_str(), node.end()), ("b", 160));
    assert_eq!(node.partition().reader().log_start_offset(), 40);
    assert_eq!(records(&node.partition()), all);
}

#[test]
fn a_move_is_given_up_or_turned_elsewhere() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    node.append(3);
    assert_eq!(node.alter("/nowhere"), ErrorCode::LogDirNotFound);
    assert_eq!(node.alter(&node.path(0)), ErrorCode::None);
    assert!(node.partition().copy().is_none());
    assert_eq!(node.alter(&node.path(1)), ErrorCode::None);
    assert_eq!(node.alter(&node.path(1)), ErrorCode::None);
    node.go_on();
    assert_eq!(node.registers(), Some(node.id(1)));
    assert_eq!(node.alter(&node.path(0)), ErrorCode::None);
    assert!(node.partition().copy().is_none());
    assert_eq!(node.folders(), ["a/t-0", "b/t-0 delete"]);
    node.go_on();
    assert_eq!(node.place(), "a");
    assert_eq!(node.registers(), Some(node.id(0)), "the metadata is told");
}

#[test]
fn a_partition_that_is_not_here_yet_is_made_where_it_shall_be() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    let wishes = [(TopicPartition::new("t", 1), node.path(1))];
    let codes = node.manager.alter_dirs(&wishes);
    assert_eq!(codes, [ErrorCode::UnknownTopicOrPartition]);
    let mut image = Image::clone(&image(node.id(0), 0));
    let partition = PartitionRecord {
        partition_id: 1,
        topic_id: TOPIC,
        replicas: vec![ME],
        isr: vec![ME],
        leader: ME,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        directories: vec![DirectoryId::UNASSIGNED],
        ..Default::default()
    };
    image.replay(&Record::from(partition)).unwrap();
    let mut changes = Changes::default();
    changes.partitions.entry(TOPIC).or_default().insert(1);
    node.manager.apply(&Arc::new(image), &changes);
    let made = node.manager.partition(TOPIC, 1).unwrap();
    assert_eq!(made.dir().id(), node.id(1));
    let told = node.manager.whereabouts(10).replicas;
    assert_eq!(told, [(TOPIC, 1, node.id(1))]);
    let long = TopicPartition::new("x".repeat(249), 0);
    let codes = node.manager.alter_dirs(&[(long, node.path(1))]);
    assert_eq!(codes, [ErrorCode::InvalidTopicException]);
}

#[test]
fn new_partitions_go_where_the_fewest_are() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    let dirs = node.manager.dirs();
    let make = |index| {
        let of = TopicPartition::new("u", index);
        let made = dirs.create(&of, None, Arc::default(), None, 0).unwrap();
        made.dir.path().file_name().unwrap().to_owned()
    };
    let places: Vec<_> = (0..5).map(make).collect();
    assert_eq!(places, ["b", "a", "b", "a", "b"]);
}

#[test]
fn a_move_goes_on_after_a_restart() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    node.append(3);
    let (a, b) = (node.id(0), node.id(1));
    assert_eq!(node.alter(&node.path(1)), ErrorCode::None);
    node.go_on();
    node.append(2);
    node.manager.close(7);
    drop(node);
    let node = Node::start(dir.path(), Some(a), 1);
    assert_eq!(node.folders(), ["a/t-0", "b/t-0 future"]);
    assert_eq!(node.partition().copy().unwrap().0.log_end_offset(), 3);
    node.go_on();
    // The metadata says where it is to be, and the node ends before it is there.
    assert_eq!(node.registers(), Some(b));
    drop(node);
    let node = Node::start(dir.path(), Some(b), 2);
    assert_eq!(node.place(), "a");
    node.go_on();
    assert_eq!((node.place().as_str(), node.end()), ("b", 5));
    assert_eq!(node.folders(), ["a/t-0 delete", "b/t-0"]);
}

#[test]
fn the_partitions_of_a_directory_that_fails_are_offline_and_the_rest_goes_on() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    node.append(3);
    let (a, b) = (node.id(0), node.id(1));
    assert_eq!(node.alter(&node.path(1)), ErrorCode::None);
    node.go_on();
    assert_eq!(node.registers(), Some(b));
    let fault = |path: PathBuf| crate::log::fault::Fault::Malformed { path, why: "test" };
    let to = node.manager.dirs().dirs()[1].clone();
    node.manager.lose_dir(&to, fault(to.path().to_owned()));
    assert!(!node.partition().is_offline() && !node.partition().is_moving());
    let told = node.manager.whereabouts(10);
    assert_eq!(told.replicas, [(TOPIC, 0, a)], "it stays where it is");
    assert_eq!(told.failed, [b]);
    assert_eq!(node.alter(&node.path(1)), ErrorCode::KafkaStorageError);
    node.append(1);
    drop(node);

    // One that is not there at the start hides what it holds.
    Disk.rename(&dir.path().join("a"), &dir.path().join("c"))
        .unwrap();
    Disk.replace(&dir.path().join("a"), b"no directory")
        .unwrap();
    let node = Node::start(dir.path(), Some(a), 1);
    let found = node.manager.find(TOPIC, 0).err();
    assert_eq!(found, Some(ErrorCode::KafkaStorageError));
    assert_eq!(node.alter(&node.path(1)), ErrorCode::KafkaStorageError);
    assert_eq!(
        node.folders_of_b(),
        ["b/t-0 future"],
        "kept, for what it is a copy of may come back"
    );
}

impl Node {
    fn folders_of_b(&self) -> Vec<String> {
        let entries = Disk.list(&self.manager.dirs().paths()[1]).unwrap();
        let folders = entries.into_iter().filter(|entry| entry.is_dir);
        let ends = folders.map(|entry| entry.name.rsplit_once('-').unwrap().1.to_owned());
        ends.map(|end| format!("b/t-0 {end}")).collect()
    }
}

#[test]
fn producers_and_transactions_move_along() {
    let dir = TempDir::new();
    let node = Node::start(dir.path(), None, 0);
    // Producers are forgotten after a day without a record.
    let idempotent = |sequence| {
        let mut builder = BatchBuilder::new(0).producer(9, 0, sequence);
        builder.append(clock::wall_ms(), None, Some(b"v"), &[]);
        bytes::Bytes::from(builder.build().unwrap())
    };
    let transactional = |producer| producer_batch(producer, 0, 1, true);
    let partition = node.partition();
    let append = |bytes: &bytes::Bytes, context| {
        partition.with_log(|log| log.append(bytes, context).unwrap())
    };
    let now = AppendContext {
        now_ms: clock::wall_ms(),
        ..client(0)
    };
    append(&idempotent(0), now);
    append(&idempotent(1), now);
    append(&transactional(7), coordinator(0));
    append(&marker_batch(7, false), coordinator(0));
    append(&transactional(8), coordinator(0));
    // The producer's records go, the producer stays.
    partition.with_log(|log| log.advance_log_start(2)).unwrap();
    let known = |partition: &Partition| {
        let mut known = partition.with_log(|log| log.active_producers());
        known.retain(|one| one.producer_id != 7);
        known
    };
    let before = known(&partition);
    assert_eq!(before.len(), 2);
    assert_eq!(node.alter(&node.path(1)), ErrorCode::None);
    node.go_on();
    node.registers();
    node.go_on();
    assert_eq!(node.place(), "b");
    assert!(append(&idempotent(1), now).is_duplicate);
    assert_eq!(partition.offsets().last_stable, 4);
    let b = node.id(1);
    node.manager.close(7);
    drop((node, partition));
    for crash in [false, true] {
        if crash {
            let _ = Disk.remove_file(&dir.path().join("b/.kafka_cleanshutdown"));
        }
        let node = Node::start(dir.path(), Some(b), 0);
        let partition = node.partition();
        // Apache Kafka makes producers anew from the records after a crash, and knows only one then.
        assert_eq!(known(&partition), before, "{crash}");
        let want = Want {
            offset: 2,
            upper: 5,
            max_bytes: 1000,
            min_one: true,
        };
        let Located::Slice(slice) = partition.reader().locate(&want).unwrap() else {
            panic!("there are records");
        };
        let aborted = partition.reader().aborted(2, &slice).unwrap();
        assert_eq!((aborted.len(), aborted[0].producer_id), (1, 7));
    }
}

/// A small generator, the same on every machine (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound.max(1) as u64).unwrap()
    }
}

/// What holds at a moment of the story.
#[derive(Clone, Debug)]
struct Promise {
    durable: i64,
    log_start: i64,
    registered: DirectoryId,
}

/// The story of one move, with a promise after each of its steps.
struct Story {
    node: Node,
    promises: Vec<Promise>,
    registered: DirectoryId,
    /// Every record that ever was.
    all: BTreeMap<i64, Vec<u8>>,
}

impl Story {
    fn promise(&mut self) {
        let partition = self.node.partition();
        let (durable, log_start) =
            partition.with_log(|log| (log.recovery_point(), log.log_start_offset()));
        self.all.extend(records(&partition));
        sim_disk::mark(self.promises.len());
        self.promises.push(Promise {
            durable,
            log_start,
            registered: self.registered,
        });
    }

    fn append(&mut self, count: usize) {
        for _ in 0..count {
            self.node.append(2);
        }
        self.promise();
    }

    fn flush(&mut self) {
        // A directory that failed is not used any more.
        let _ = self.node.partition().flush_now();
        self.promise();
    }

    fn go_on(&mut self) {
        self.node.go_on();
        self.promise();
    }

    fn register(&mut self) {
        if let Some(id) = self.node.registers() {
            self.registered = id;
        }
        self.promise();
    }

    /// The whole of it, with a failure on the way or without.
    fn run(root: &Path, failure: Option<(usize, Failure)>) -> Self {
        sim_disk::begin();
        let node = Node::start(root, None, 0);
        let registered = node.id(0);
        let mut story = Self {
            node,
            promises: Vec::new(),
            registered,
            all: BTreeMap::new(),
        };
        story.append(4);
        let partition = story.node.partition();
        partition.with_log(|log| log.advance_log_start(3)).unwrap();
        story.flush();
        let _ = story.node.manager.dirs().checkpoint();
        story.promise();
        if let Some((after, failure)) = failure {
            sim_disk::fail_after(after, failure);
        }
        let to = story.node.path(1);
        story.node.alter(&to);
        story.promise();
        if failure.is_none() {
            story.append(2);
        }
        story.go_on();
        if failure.is_none() {
            story.append(2);
            story.flush();
        }
        story.register();
        story.go_on();
        story.register();
        if failure.is_none() {
            story.append(2);
            story.flush();
            let _ = story.node.manager.dirs().checkpoint();
            story.promise();
        }
        story
    }
}

/// After a crash: one log, with all that was promised, and the move comes to its end.
fn check(root: &Path, promises: &[Promise], mark: Option<usize>, all: &BTreeMap<i64, Vec<u8>>) {
    let Some(at) = mark else {
        return;
    };
    let before = &promises[at];
    let after = promises.get(at + 1).unwrap_or(before);
    let mut registered = vec![before.registered, after.registered];
    registered.dedup();
    for registered in registered {
        let copy = TempDir::new();
        // Noted and thrown away: nobody waits for the disk.
        sim_disk::begin();
        copy_tree(root, copy.path());
        let node = Node::start(copy.path(), Some(registered), 1);
        let partition = node.partition();
        assert!(!partition.is_offline());
        let (start, end) = (partition.reader().log_start_offset(), node.end());
        assert!(end >= before.durable, "{} of {before:?}", end);
        assert!(start <= after.log_start.max(before.log_start));
        let found = records(&partition);
        for (offset, bytes) in &found {
            assert_eq!(all.get(offset), Some(bytes), "at {offset}");
        }
        let promised = all.range(start..before.durable);
        for (offset, _) in promised.skip(1) {
            assert!(found.contains_key(offset), "{offset} of {before:?}");
        }
        let live = |name: &&String| !name.contains(' ');
        assert_eq!(node.folders().iter().filter(live).count(), 1);
        // It goes on, wherever it is, or is asked for again.
        let path = node.path(1);
        assert_eq!(node.alter(&path), ErrorCode::None);
        for _ in 0..3 {
            node.go_on();
            node.registers();
        }
        assert_eq!(node.place(), "b");
        assert_eq!(records(&node.partition()), found);
        assert_eq!(node.folders().iter().filter(live).count(), 1);
        sim_disk::end();
    }
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in Disk.list(from).unwrap() {
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        if entry.is_dir {
            Disk.create_dir_all(&to).unwrap();
            copy_tree(&from, &to);
        } else {
            Disk.replace(&to, &Disk.read(&from).unwrap()).unwrap();
        }
    }
}

#[test]
fn a_crash_before_any_operation_of_a_move_leaves_one_log_that_is_whole() {
    let dir = TempDir::new();
    let root = dir.path().join("node");
    Disk.create_dir_all(&root).unwrap();
    let story = Story::run(&root, None);
    assert_eq!(story.node.place(), "b");
    let Story {
        node,
        promises,
        all,
        ..
    } = story;
    drop(node);
    let journal = sim_disk::end();
    let left = dir.path().join("crashed");
    let mut dice = Dice(11);
    for at in 1..=journal.len() {
        for _ in 0..CRASHES {
            let crashed = journal.crash(at, &mut |bound| dice.below(bound));
            crashed.restore(&root, &left).unwrap();
            let checked = std::panic::catch_unwind(|| check(&left, &promises, crashed.mark, &all));
            if let Err(panic) = checked {
                println!("crash before {at}:\n{}", journal.describe(at, 12));
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn an_operation_of_a_move_that_fails_costs_a_directory_and_no_record() {
    let dir = TempDir::new();
    for failure in [Failure::Broken, Failure::Full] {
        for after in (0..60).step_by(2) {
            let root = dir.path().join(format!("{failure:?}-{after}"));
            Disk.create_dir_all(&root).unwrap();
            let story = Story::run(&root, Some((after, failure)));
            let partition = story.node.partition();
            assert_eq!(records(&partition).len(), 4 - 1, "after {after}");
            let journal = sim_disk::end();
            let Story {
                node,
                promises,
                all,
                ..
            } = story;
            drop((node, partition));
            let mut dice = Dice(after as u64);
            let left = dir.path().join("crashed");
            let crashed = journal.crash(journal.len(), &mut |bound| dice.below(bound));
            crashed.restore(&root, &left).unwrap();
            let checked = std::panic::catch_unwind(|| check(&left, &promises, crashed.mark, &all));
            if let Err(panic) = checked {
                println!(
                    "{failure:?} after {after}:\n{}",
                    journal.describe(journal.len(), 30)
                );
                std::panic::resume_unwind(panic);
            }
        }
    }
}
