//! The controller is told in which directory each replica is, and which directories have failed
//! (AssignmentsManager, BrokerLifecycleManager.propagateDirectoryFailure, KIP-858).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{debug, warn};

use super::lifecycle::Member;
use crate::base::{DirectoryId, TopicId};
use crate::controller::ask::{AssignReplicas, Partitions};
use crate::os::clock;
use crate::os::tasks::Tasks;
use crate::replica::manager::Manager;
use crate::replica::places::Whereabouts;

/// Replicas in one request (AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST).
const REPLICAS: usize = 2250;
/// When the controller is asked again after it refused.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Directories that have failed, for the next heartbeat.
pub(super) type Failed = watch::Receiver<Vec<DirectoryId>>;

/// Tells of every change until the group stops.
pub(super) fn tell(member: &Member, replicas: &Arc<Manager>, tasks: &Tasks) -> Failed {
    let (failed, told) = watch::channel(Vec::new());
    let (member, replicas, group) = (member.clone(), replicas.clone(), tasks.clone());
    tasks.spawn("replica-places", async move {
        loop {
            tokio::select! {
                biased;
                () = group.stopped() => return,
                () = replicas.moved() => {}
            }
            let Whereabouts {
                replicas: moved,
                failed: now,
            } = replicas.whereabouts(REPLICAS);
            if !moved.is_empty() && !assign(&member, &moved).await {
                replicas.tell_again(&moved);
                clock::sleep(TRY_AGAIN).await;
                continue;
            }
            // After what is said of replicas: one that is not there any more loses no leader.
            failed.send_if_modified(|before| {
                let is_news = *before != now;
                *before = now;
                is_news
            });
        }
    });
    told
}

async fn assign(member: &Member, moved: &[(TopicId, i32, DirectoryId)]) -> bool {
    let mut directories: BTreeMap<DirectoryId, BTreeMap<TopicId, Vec<i32>>> = BTreeMap::new();
    for (topic, index, directory) in moved {
        let topics = directories.entry(*directory).or_default();
        topics.entry(*topic).or_default().push(*index);
    }
    let partitions = |topics: BTreeMap<TopicId, Vec<i32>>| topics.into_iter().collect();
    let directories = directories
        .into_iter()
        .map(|(directory, topics)| -> (_, Partitions) { (directory, partitions(topics)) });
    debug!(
        replicas = moved.len(),
        "the controller is told where replicas are"
    );
    let asked = member.controller.ask(AssignReplicas {
        broker_id: member.node,
        broker_epoch: member.epoch,
        directories: directories.collect(),
    });
    match asked.await {
        // A partition that is refused was deleted, or is another broker's.
        Ok(_) => true,
        Err(refusal) => {
            warn!(%refusal, "the controller does not take in where replicas are");
            false
        }
    }
}
