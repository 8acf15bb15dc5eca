//! Three voters in one process.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::base::{DirectoryId, LeaderEpoch, NodeId, Uuid};
use crate::machine::journal::Journal;
use crate::metadata::record::{ConfigRecord, Record};
use crate::os::clock;
use crate::os::disk::{Disk, TempDir};
use crate::os::tasks::Tasks;

use super::transport::{Answer, Exchange};
use super::{Quorum, Settings};

/// Carries messages between the voters that are up.
#[derive(Clone, Default)]
struct Room(Arc<Mutex<BTreeMap<i32, Arc<Quorum>>>>);

impl Exchange for Room {
    fn ask(&self, voter: NodeId, message: Bytes) -> Answer {
        let there = self.0.lock().get(&voter.0).cloned();
        Box::pin(async move {
            let Some(there) = there else {
                return Err(io::ErrorKind::ConnectionRefused.into());
            };
            there.receive(&message).await.map_err(io::Error::other)
        })
    }
}

impl Room {
    async fn start(&self, dir: &Path, id: i32) {
        let settings = Settings {
            voters: [1, 2, 3].map(NodeId).to_vec(),
            dir: dir.join(id.to_string()),
            ..Settings::alone(NodeId(id), DirectoryId(Uuid::ONE), dir.to_owned())
        };
        let room: Arc<dyn Exchange> = Arc::new(self.clone());
        let started = Quorum::start(settings, Disk, &Tasks::new(), Some(room)).await;
        self.0.lock().insert(id, Arc::new(started.unwrap()));
    }

    async fn stop(&self, id: i32) {
        let quorum = self.0.lock().remove(&id).unwrap();
        let quorum = last_holder(quorum).await;
        quorum.stop().await.unwrap();
    }

    /// Waits for a voter that leads and is ready to append.
    async fn leader(&self) -> (Arc<Quorum>, i32, LeaderEpoch) {
        for _ in 0..2000 {
            let here: Vec<_> = self.0.lock().clone().into_iter().collect();
            for (id, quorum) in here {
                let now = *quorum.leadership().borrow();
                if now.leader == Some(NodeId(id)) {
                    return (quorum, id, now.epoch);
                }
            }
            clock::sleep(Duration::from_millis(5)).await;
        }
        panic!("nobody leads");
    }
}

async fn last_holder(mut quorum: Arc<Quorum>) -> Quorum {
    loop {
        match Arc::try_unwrap(quorum) {
            Ok(quorum) => return quorum,
            Err(held) => quorum = held,
        }
        clock::sleep(Duration::from_millis(1)).await;
    }
}

async fn append(quorum: &Quorum, epoch: LeaderEpoch, value: i32) {
    let (mut journal, _) = quorum.lead(epoch).unwrap();
    let record = Record::Config(ConfigRecord {
        resource_type: 4,
        name: "a".to_owned(),
        value: Some(value.to_string()),
        ..ConfigRecord::default()
    });
    journal.append(&[record]).await.unwrap().await.unwrap();
}

fn log_of(dir: &Path, id: i32) -> Vec<u8> {
    let name = "__cluster_metadata-0/00000000000000000000.log";
    fs::read(dir.join(id.to_string()).join(name)).unwrap()
}

#[tokio::test]
async fn three_voters_keep_one_log_through_the_loss_of_their_leader() {
    let dir = TempDir::new();
    let room = Room::default();
    for id in 1..=3 {
        room.start(dir.path(), id).await;
    }
    let (quorum, first, epoch) = room.leader().await;
    for value in 0..20 {
        append(&quorum, epoch, value).await;
    }
    let voters = quorum.describe().voters;
    assert_eq!(voters.len(), 3);
    drop(quorum);
    room.stop(first).await;
    let (quorum, _, next) = room.leader().await;
    assert!(next > epoch);
    append(&quorum, next, 20).await;
    room.start(dir.path(), first).await;
    append(&quorum, next, 21).await;
    let end = *quorum.committed().borrow();
    let all = room.0.lock().clone();
    for other in all.into_values() {
        let mut committed = other.committed();
        let reached = committed.wait_for(|offset| *offset >= end);
        let reached = tokio::time::timeout(Duration::from_secs(20), reached).await;
        reached.expect("every voter gets everything").unwrap();
    }
    drop(quorum);
    for id in 1..=3 {
        room.stop(id).await;
    }
    assert_eq!(log_of(dir.path(), 1), log_of(dir.path(), 2));
    assert_eq!(log_of(dir.path(), 2), log_of(dir.path(), 3));
}
