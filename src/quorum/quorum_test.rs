//! Stories of a whole quorum of one voter, on real files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::{DirectoryId, LeaderEpoch, NodeId, Uuid};
use crate::machine::journal::{Committed, Journal, Lost};
use crate::metadata::image::Image;
use crate::metadata::record::{ConfigRecord, Record};
use crate::os::clock;
use crate::os::disk::{Disk, TempDir};
use crate::os::tasks::Tasks;
use crate::protocol::records::batch::Batches;
use crate::protocol::records::iter::Records;

use super::{Fault, Leadership, Quorum, QuorumJournal, Settings};
use super::{control, entry, open};

/// A node that is the only voter.
struct Node {
    quorum: Quorum,
    journal: QuorumJournal,
    epoch: LeaderEpoch,
    tasks: Tasks,
}

fn settings(dir: &Path) -> Settings {
    Settings::alone(NodeId(1), DirectoryId(Uuid::ONE), dir.to_owned())
}

impl Node {
    async fn start(dir: &Path) -> Self {
        Self::start_with(settings(dir)).await
    }

    async fn start_with(settings: Settings) -> Self {
        let tasks = Tasks::new();
        let quorum = Quorum::start(settings, Disk, &tasks, None).await.unwrap();
        let epoch = leads(&quorum).await;
        let (journal, _) = quorum.lead(epoch).unwrap();
        Self {
            quorum,
            journal,
            epoch,
            tasks,
        }
    }

    async fn append(&mut self, records: &[Record]) -> Committed {
        self.journal.append(records).await.unwrap()
    }

    /// Sets an option of the cluster's default and waits until that is committed.
    async fn set(&mut self, name: &str, value: usize) {
        self.append(&[option(name, value)]).await.await.unwrap();
    }

    fn image(&self) -> Arc<Image> {
        self.quorum.image().borrow().image.clone()
    }

    async fn stop(self) {
        self.quorum.stop().await.unwrap();
        self.tasks.stop_and_wait().await;
    }
}

async fn leads(quorum: &Quorum) -> LeaderEpoch {
    let mut leadership = quorum.leadership();
    let mine = |now: &Leadership| now.leader == Some(NodeId(1));
    let now = *leadership.wait_for(mine).await.unwrap();
    now.epoch
}

fn option(name: &str, value: usize) -> Record {
    Record::Config(ConfigRecord {
        resource_type: 4,
        resource_name: String::new(),
        name: name.to_owned(),
        value: Some(value.to_string()),
    })
}

fn value_of(image: &Image, name: &str) -> Option<usize> {
    let records = image.records().into_iter();
    let mut values = records.filter_map(|record| {
        let Record::Config(config) = record else {
            return None;
        };
        (config.name == name).then(|| config.value?.parse().ok())?
    });
    values.next()
}

fn folder(dir: &Path) -> PathBuf {
    dir.join("__cluster_metadata-0")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/quorum/testdata")
        .join(name)
}

fn text(dir: &Path, name: &str) -> String {
    fs::read_to_string(folder(dir).join(name)).unwrap()
}

#[tokio::test]
async fn a_new_node_leads_at_once_and_keeps_what_it_acknowledged() {
    let dir = TempDir::new();
    let began = clock::now();
    let mut node = Node::start(dir.path()).await;
    println!("start of a new node: {:?}", began.elapsed());
    assert_eq!(node.epoch, LeaderEpoch(1));
    assert_eq!(node.journal.end_offset(), 1);
    node.append(&[option("a", 1), option("b", 2)])
        .await
        .await
        .unwrap();
    assert_eq!(node.journal.end_offset(), 3);
    assert_eq!(value_of(&node.image(), "b"), Some(2));
    assert_eq!(*node.quorum.committed().borrow(), 3);
    let description = node.quorum.describe();
    assert_eq!(description.high_watermark, 3);
    assert_eq!(description.voters.len(), 1);
    assert_eq!(description.voters[0].log_end_offset, 3);
    node.stop().await;

    let began = clock::now();
    let node = Node::start(dir.path()).await;
    println!("start on its own folder: {:?}", began.elapsed());
    assert_eq!(node.epoch, LeaderEpoch(2));
    assert_eq!(node.journal.end_offset(), 4);
    assert_eq!(value_of(&node.image(), "a"), Some(1));
    node.stop().await;
    assert_eq!(
        text(dir.path(), "leader-epoch-checkpoint"),
        "0\n2\n1 0\n2 3\n"
    );
    assert_eq!(
        text(dir.path(), "quorum-state"),
        r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#
    );
}

/// Opens a folder of Kafka and gives the epoch that this node leads in, and the node.
async fn adopt(name: &str, dir: &Path) -> Node {
    copy(&testdata(name), &folder(dir));
    let began = clock::now();
    let node = Node::start(dir).await;
    println!("start on the folder {name} of Kafka: {:?}", began.elapsed());
    node
}

#[tokio::test]
async fn a_folder_that_kafka_stopped_starts_as_it_is() {
    let dir = TempDir::new();
    let mut node = adopt("clean", dir.path()).await;
    assert_eq!(node.epoch, LeaderEpoch(3));
    assert_eq!(node.journal.end_offset(), 263);
    let image = node.image();
    assert_same(&image, &replayed(&testdata("clean")));
    assert_eq!(image.topics.by_name("codecs").unwrap().partitions.len(), 5);
    node.set("mine", 7).await;
    node.stop().await;
    let epochs = text(dir.path(), "leader-epoch-checkpoint");
    assert_eq!(epochs, "0\n3\n1 0\n2 186\n3 262\n");

    let node = Node::start(dir.path()).await;
    assert_eq!(node.epoch, LeaderEpoch(4));
    assert_eq!(value_of(&node.image(), "mine"), Some(7));
    node.stop().await;
}

#[tokio::test]
async fn a_folder_that_kafka_left_in_a_crash_starts_as_it_is() {
    let dir = TempDir::new();
    let node = adopt("crash", dir.path()).await;
    assert_eq!(node.epoch, LeaderEpoch(2));
    let image = node.image();
    assert_same(&image, &replayed(&testdata("crash")));
    assert!(image.topics.by_name("to-delete").is_none());
    node.stop().await;
}

/// Two images are one, or the first record in which they differ is shown.
fn assert_same(one: &Image, other: &Image) {
    let (one, other) = (sorted(one), sorted(other));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(other) {
        assert_eq!(*one, other);
    }
}

/// Kafka's snapshots list the listeners of a broker in another order than its log does.
fn sorted(image: &Image) -> Vec<Record> {
    let mut records = image.records();
    for record in &mut records {
        if let Record::RegisterBroker(broker) = record {
            broker
                .end_points
                .sort_by(|one, other| one.name.cmp(&other.name));
        }
    }
    records
}

/// The image of a log alone, without the snapshots beside it.
fn replayed(folder: &Path) -> Image {
    let bytes = fs::read(folder.join("00000000000000000000.log")).unwrap();
    let mut image = Image::default();
    for batch in Batches::new(&bytes) {
        let batch = batch.unwrap();
        if batch.header.is_control() {
            continue;
        }
        for record in Records::of(&batch, 1 << 20).unwrap().iter() {
            let value = record.unwrap().value.unwrap();
            image.replay(&Record::decode(value).unwrap()).unwrap();
        }
    }
    image
}

#[test]
fn indexes_are_rebuilt_as_kafka_writes_them() {
    let dir = TempDir::new();
    copy(&testdata("clean"), &folder(dir.path()));
    let file = |suffix: &str| folder(dir.path()).join(format!("{:020}.{suffix}", 0));
    fs::write(file("index"), [0; 100]).unwrap();
    fs::remove_file(file("timeindex")).unwrap();
    let mut opened = open::open(&settings(dir.path()), Disk).unwrap();
    opened.log.close().unwrap();
    // Kafka was stopped and started after the second entry and counted its 4 KiB anew from there.
    for (suffix, entry) in [("index", 8), ("timeindex", 12)] {
        let kafkas = fs::read(testdata("clean").join(format!("{:020}.{suffix}", 0))).unwrap();
        let ours = fs::read(file(suffix)).unwrap();
        assert_eq!(ours[..2 * entry], kafkas[..2 * entry]);
        assert_eq!(ours[ours.len() - entry..], kafkas[kafkas.len() - entry..]);
    }
    for small in ["leader-epoch-checkpoint", "partition.metadata"] {
        let kafkas = fs::read_to_string(testdata("clean").join(small)).unwrap();
        assert_eq!(text(dir.path(), small), kafkas);
    }
}

#[test]
fn voters_of_kraft_version_1_come_from_log_and_snapshot() {
    let dir = TempDir::new();
    copy(&testdata("dynamic"), &folder(dir.path()));
    let opened = open::open(&settings(dir.path()), Disk).unwrap();
    assert_eq!(opened.log.kraft_version(), 1);
    let voters = control::voters_of(opened.log.members());
    assert_eq!(
        voters.iter().map(|voter| voter.id).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(voters[0].endpoints[0].host, "localhost");
    assert_eq!(opened.election.epoch, 3);
}

#[tokio::test]
async fn a_folder_formatted_for_dynamic_voters_starts_with_the_voter_it_names() {
    let dir = TempDir::new();
    let formatted = "00000000000000000000-0000000000.checkpoint";
    fs::create_dir_all(folder(dir.path())).unwrap();
    fs::copy(
        testdata("dynamic").join(formatted),
        folder(dir.path()).join(formatted),
    )
    .unwrap();
    let mut node = Node::start(dir.path()).await;
    assert_eq!(node.epoch, LeaderEpoch(1));
    node.set("a", 1).await;
    node.stop().await;
    assert_eq!(
        text(dir.path(), "quorum-state"),
        r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#
    );
    Node::start(dir.path()).await.stop().await;
}

/// A stopped log of a few batches, and where its last batch begins.
async fn small_log(dir: &Path) -> (Vec<u8>, usize) {
    let mut node = Node::start(dir).await;
    for value in 0..5 {
        node.set("a", value).await;
    }
    node.stop().await;
    let bytes = fs::read(log_file(dir)).unwrap();
    let batches: Vec<_> = Batches::new(&bytes).map(Result::unwrap).collect();
    let last = bytes.len() - batches.last().unwrap().bytes().len();
    (bytes, last)
}

fn log_file(dir: &Path) -> PathBuf {
    folder(dir).join("00000000000000000000.log")
}

fn opened_end(dir: &Path, log: &[u8]) -> Result<i64, Fault> {
    fs::write(log_file(dir), log).unwrap();
    open::open(&settings(dir), Disk).map(|opened| opened.log.end_offset())
}

#[tokio::test]
async fn a_torn_tail_is_cut_wherever_it_was_torn() {
    let dir = TempDir::new();
    let (bytes, last) = small_log(dir.path()).await;
    assert_eq!(opened_end(dir.path(), &bytes).unwrap(), 6);
    for cut in last..bytes.len() {
        let mut torn = bytes[..cut].to_vec();
        assert_eq!(opened_end(dir.path(), &torn).unwrap(), 5, "cut at {cut}");
        assert_eq!(fs::read(log_file(dir.path())).unwrap().len(), last);
        torn.resize(bytes.len() + 4096, 0);
        // Zeros complete the batch where nothing but zeros was torn off.
        let end = if torn.starts_with(&bytes) { 6 } else { 5 };
        assert_eq!(
            opened_end(dir.path(), &torn).unwrap(),
            end,
            "zeros from {cut}"
        );
        torn.truncate(cut);
        torn.extend((1..999u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]));
        assert_eq!(
            opened_end(dir.path(), &torn).unwrap(),
            5,
            "garbage from {cut}"
        );
    }
    // A whole node takes it up as well, and its next batches follow what was kept.
    fs::write(log_file(dir.path()), &bytes[..last + 30]).unwrap();
    let mut node = Node::start(dir.path()).await;
    assert_eq!(value_of(&node.image(), "a"), Some(3));
    node.set("a", 9).await;
    node.stop().await;
    let node = Node::start(dir.path()).await;
    assert_eq!(value_of(&node.image(), "a"), Some(9));
    node.stop().await;
}

#[tokio::test]
async fn damage_before_valid_batches_refuses_to_start_and_says_where() {
    let dir = TempDir::new();
    let (bytes, last) = small_log(dir.path()).await;
    let batches: Vec<_> = Batches::new(&bytes).map(Result::unwrap).collect();
    let third: usize = batches[..2].iter().map(|batch| batch.bytes().len()).sum();
    for at in [third + 3, third + 16, third + 20, third + 70] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        match opened_end(dir.path(), &damaged) {
            Err(Fault::Damaged { position, .. }) => assert_eq!(position, third as u64),
            other => panic!("{at}: {other:?}"),
        }
        assert_eq!(fs::read(log_file(dir.path())).unwrap(), damaged);
    }
    // The last batch is a tail: it may never have been acknowledged.
    let mut torn = bytes;
    torn[last + 70] ^= 1;
    assert_eq!(opened_end(dir.path(), &torn).unwrap(), 5);
}

#[tokio::test]
async fn snapshots_let_go_of_the_log_and_a_start_needs_only_what_is_left() {
    let dir = TempDir::new();
    let small = Settings {
        segment_bytes: 4096,
        snapshot_bytes: 8192,
        ..settings(dir.path())
    };
    let mut node = Node::start_with(small.clone()).await;
    for value in 0..600 {
        node.set(&format!("option-{}", value % 7), value).await;
    }
    let start = wait_for_purge(&node).await;
    assert!(node.quorum.read(0, 1).unwrap().is_none());
    let bytes = node.quorum.read(start, 1 << 20).unwrap().unwrap();
    let first = Batches::new(&bytes).next().unwrap().unwrap();
    assert_eq!(first.header.base_offset, start);
    let image = node.image();
    let end = node.journal.end_offset();
    let crashed = TempDir::new();
    copy(&folder(dir.path()), &folder(crashed.path()));
    node.stop().await;

    for dir in [&dir, &crashed] {
        let names: Vec<_> = Disk.list(&folder(dir.path())).unwrap();
        let count = |suffix: &str| names.iter().filter(|e| e.name.ends_with(suffix)).count();
        assert_eq!(count(".checkpoint"), 2, "{names:?}");
        assert!(count(".log") < 10, "{names:?}");
        assert!(count(".snapshot") <= count(".log") + 1, "{names:?}");
        let small = Settings {
            dir: dir.path().to_owned(),
            ..small.clone()
        };
        let mut node = Node::start_with(small.clone()).await;
        assert_same(&node.image(), &image);
        assert_eq!(node.journal.end_offset(), end + 1);
        assert!(node.quorum.start_offset() >= start);
        for value in 600..900 {
            node.set(&format!("option-{}", value % 7), value).await;
        }
        node.stop().await;
        let node = Node::start_with(small).await;
        assert_eq!(value_of(&node.image(), "option-3"), Some(899));
        node.stop().await;
    }
}

async fn wait_for_purge(node: &Node) -> i64 {
    for _ in 0..500 {
        let start = node.quorum.start_offset();
        let snapshots = node.quorum.newest_snapshot().unwrap();
        if start > 100 && snapshots.is_some_and(|(id, _)| id.end_offset > 400) {
            return start;
        }
        clock::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was purged");
}

#[tokio::test]
async fn a_log_without_its_snapshot_is_refused() {
    let dir = TempDir::new();
    let small = Settings {
        segment_bytes: 4096,
        snapshot_bytes: 8192,
        ..settings(dir.path())
    };
    let mut node = Node::start_with(small.clone()).await;
    for value in 0..600 {
        node.set("a", value).await;
    }
    wait_for_purge(&node).await;
    node.stop().await;
    for entry in Disk.list(&folder(dir.path())).unwrap() {
        if entry.name.ends_with(".checkpoint") {
            fs::remove_file(folder(dir.path()).join(entry.name)).unwrap();
        }
    }
    let refused = Quorum::start(small, Disk, &Tasks::new(), None).await;
    assert!(matches!(refused.err(), Some(Fault::NoSnapshot { .. })));
}

#[tokio::test]
async fn a_follower_learns_of_everything_in_as_few_pieces_as_it_likes() {
    let dir = TempDir::new();
    let mut node = adopt("clean", dir.path()).await;
    let mut follower = node.quorum.follow();
    let first = follower.next().await.unwrap();
    assert!(first.changes.features && first.changes.partitions.len() > 10);
    node.set("a", 1).await;
    node.set("b", 2).await;
    let second = follower.next().await.unwrap();
    assert_eq!(second.changes.configs.len(), 1);
    assert!(second.changes.partitions.is_empty());
    assert_eq!(second.published.end_offset, 265);
    assert_eq!(second.published.epoch, 3);
    node.stop().await;
    assert!(follower.next().await.is_none());
}

#[tokio::test]
async fn only_the_leadership_it_was_made_for_can_use_a_journal() {
    let dir = TempDir::new();
    let mut node = Node::start(dir.path()).await;
    assert!(node.quorum.lead(LeaderEpoch(7)).is_none());
    // A proposal that was still on its way when the next leadership began is not written.
    let running = &node.quorum.running;
    let fate = entry::Fate::default();
    let stale = entry::Proposal {
        epoch: 0,
        base: 1,
        batch: control::data_batch(&[option("a", 1)], 0),
        fate: fate.clone(),
    };
    let answer = running.raft.client_write_ff(stale).await.unwrap();
    answer.await.unwrap().unwrap();
    assert!(fate.is_refused());
    assert_eq!(value_of(&node.image(), "a"), None);
    assert_eq!(*node.quorum.committed().borrow(), 2);
    // The journal expected that offset for itself; its owner begins again.
    let lost = node.append(&[option("a", 2)]).await;
    assert_eq!(lost.await, Err(Lost));
    running_again(&mut node).await;
    node.set("a", 3).await;
    assert_eq!(value_of(&node.image(), "a"), Some(3));
    node.quorum.running.tail.end();
    assert!(node.journal.append(&[option("a", 4)]).await.is_err());
    node.stop().await;
}

async fn running_again(node: &mut Node) {
    let end = node.quorum.running.shared.log.lock().end_offset();
    node.quorum.running.tail.begin(node.epoch.0, end);
    node.journal = node.quorum.lead(node.epoch).unwrap().0;
}

#[tokio::test]
async fn a_fault_stops_the_node() {
    let dir = TempDir::new();
    let mut node = Node::start(dir.path()).await;
    // The file system gives the batch no room: its place is taken away under the log.
    let shared = &node.quorum.running.shared;
    shared.report(Fault::Ended);
    node.tasks.stopped().await;
    assert!(node.quorum.fault().borrow().is_some());
    // What is in progress may end either way; the stop tells of the fault.
    let _ = node.journal.append(&[option("a", 1)]).await;
    assert!(node.quorum.stop().await.is_err());
}

#[tokio::test]
async fn many_appends_at_once_are_committed_in_order() {
    let dir = TempDir::new();
    let mut node = Node::start(dir.path()).await;
    let began = clock::now();
    let mut waiting = Vec::new();
    for value in 0..2000 {
        waiting.push(node.append(&[option("a", value)]).await);
    }
    for committed in waiting {
        committed.await.unwrap();
    }
    println!("2,000 appends at once: {:?}", began.elapsed());
    let began = clock::now();
    for value in 0..100 {
        node.set("a", value).await;
    }
    println!("100 appends one by one: {:?}", began.elapsed());
    assert_eq!(node.journal.end_offset(), 2101);
    node.stop().await;
}

/// Set for the process that is to be killed: the folder to write in.
const VICTIM: &str = "BARNABAS_QUORUM_VICTIM";

/// Not a test of its own: appends and tells each number on standard output once it is committed.
#[tokio::test]
async fn victim() {
    let Ok(dir) = std::env::var(VICTIM) else {
        return;
    };
    let small = Settings {
        segment_bytes: 8192,
        snapshot_bytes: 20_000,
        ..settings(Path::new(&dir))
    };
    let mut node = Node::start_with(small).await;
    let first = value_of(&node.image(), "n").map_or(0, |last| last + 1);
    for value in first.. {
        node.set("n", value).await;
        println!("\ncommitted {value}");
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let dir = TempDir::new();
    let mut acknowledged = None;
    for round in 0..8u64 {
        let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "quorum::quorum_test::victim", "--nocapture"])
            .env(VICTIM, dir.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let told = lines.map_while(Result::ok).filter_map(|line| {
            let number = line.strip_prefix("committed ")?;
            number.parse::<usize>().ok()
        });
        for (count, number) in (0..40 + 37 * round).zip(told) {
            acknowledged = Some(number);
            if count + 1 == 40 + 37 * round {
                victim.kill().unwrap();
            }
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        let copied = TempDir::new();
        copy(&folder(dir.path()), &folder(copied.path()));
        let node = Node::start(copied.path()).await;
        assert!(value_of(&node.image(), "n") >= acknowledged, "{round}");
        node.stop().await;
    }
    println!("acknowledged by killed processes: {acknowledged:?}");
}
