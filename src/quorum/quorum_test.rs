//! Stories of a whole quorum of one voter, on real files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::base::{DirectoryId, LeaderEpoch, NodeId, Uuid};
use crate::machine::journal::{Committed, Journal, Lost};
use crate::metadata::image::Image;
use crate::metadata::record::{ConfigRecord, FeatureLevelRecord, Record};
use crate::os::clock;
use crate::os::disk::{Disk, TempDir};
use crate::os::tasks::Tasks;

use super::{Fault, Leadership, Quorum, QuorumJournal, Settings};

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

    fn image(&self) -> std::sync::Arc<Image> {
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
    let mut values = records.filter_map(|record| match record {
        Record::Config(config) if config.name == name => config.value?.parse().ok(),
        _ => None,
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
