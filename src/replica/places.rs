//! In which directory each replica is, as the metadata shall say (AssignmentsManager, KIP-858).
//!
//! A replica's place is told when it differs from what the metadata says: a new one's, one's that
//! has moved. Directories that failed are told after the replicas that are no longer meant to be
//! there.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::agenda::Key;
use super::manager::Manager;
use super::partition::Partition;
use crate::base::{DirectoryId, TopicId};

/// Replicas whose place is to be told.
#[derive(Debug, Default)]
pub(super) struct Places {
    untold: Mutex<HashSet<Key>>,
    pub(super) wake: Notify,
}

/// What the controller is to be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub(crate) replicas: Vec<(TopicId, i32, DirectoryId)>,
    /// All directories that failed.
    pub(crate) failed: Vec<DirectoryId>,
}

impl Manager {
    /// Has a replica's place told if the metadata says something else.
    pub(super) fn tell_where(&self, partition: &Arc<Partition>) {
        let said = partition.registered();
        if said.is_some_and(|said| said != partition.belongs_in()) {
            self.places.untold.lock().insert(partition.key());
            self.places.wake.notify_one();
        }
    }

    /// Waits until there is something to tell.
    pub(crate) async fn moved(&self) {
        self.places.wake.notified().await;
    }

    /// What is to be told now, at most so many replicas at once.
    pub(crate) fn whereabouts(&self, most: usize) -> Whereabouts {
        let mut untold = self.places.untold.lock();
        let keys: Vec<Key> = untold.iter().copied().take(most).collect();
        for key in &keys {
            untold.remove(key);
        }
        if !untold.is_empty() {
            self.places.wake.notify_one();
        }
        drop(untold);
        let place = |key: Key| {
            let partition = self.partition(key.0, key.1)?;
            let belongs_in = partition.belongs_in();
            let is_news = partition.registered() != Some(belongs_in);
            is_news.then_some((key.0, key.1, belongs_in))
        };
        Whereabouts {
            replicas: keys.into_iter().filter_map(place).collect(),
            failed: self.dirs().failed(),
        }
    }

    /// What could not be told is told later.
    pub(crate) fn tell_again(&self, replicas: &[(TopicId, i32, DirectoryId)]) {
        let keys = replicas.iter().map(|(topic, index, _)| (*topic, *index));
        self.places.untold.lock().extend(keys);
        self.places.wake.notify_one();
    }
}
