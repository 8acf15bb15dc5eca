//! Waiting for a partition to change: a fetch for more records, a produce for its replicas.
//!
//! A waiter registers before it looks, and its registration goes when it is dropped. Nothing runs
//! while nobody waits, and nothing is swept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::FastMap;

/// Those who wait for one partition.
#[derive(Debug, Default)]
pub(crate) struct WaitList {
    waiting: Mutex<Waiting>,
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    wakers: FastMap<u64, Arc<Notify>>,
}

/// A place in a wait list, given up when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    list: Arc<WaitList>,
    key: u64,
}

impl WaitList {
    /// Has `waker` notified at each change from now on.
    pub(crate) fn register(self: &Arc<Self>, waker: &Arc<Notify>) -> Place {
        let mut waiting = self.waiting.lock();
        let key = waiting.next;
        waiting.next += 1;
        waiting.wakers.insert(key, waker.clone());
        self.count.store(waiting.wakers.len(), Ordering::SeqCst);
        Place {
            list: self.clone(),
            key,
        }
    }

    /// Tells everybody that something changed.
    pub(crate) fn wake(&self) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for waker in self.waiting.lock().wakers.values() {
            waker.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.list.waiting.lock();
        waiting.wakers.remove(&self.key);
        if waiting.wakers.is_empty() {
            waiting.wakers.shrink_to(4);
        }
        self.list
            .count
            .store(waiting.wakers.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiter_is_woken_and_leaves_nothing_behind() {
        let list = Arc::new(WaitList::default());
        let waker = Arc::new(Notify::new());
        let place = list.register(&waker);
        list.wake();
        waker.notified().await;
        drop(place);
        assert_eq!(list.count.load(Ordering::SeqCst), 0);
        assert!(list.waiting.lock().wakers.is_empty());
    }
}
