//! What all connections together may hold: bytes of requests (`queued.max.request.bytes`) and
//! requests being executed (`queued.max.requests`).
//!
//! A frame asks once, for all its bytes, as soon as its size is known, and gets them while any are
//! left: the last one may overdraw. So nobody holds a part and waits for the rest, and the largest
//! frame fits the smallest budget (org.apache.kafka.common.memory.SimpleMemoryPool, not strict).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// The budget of a node's connections.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Bytes left; negative when overdrawn. `None` without a limit.
    left: Option<AtomicI64>,
    freed: Notify,
    requests: Semaphore,
}

/// A frame's bytes, given back when dropped.
#[derive(Debug)]
pub(super) struct Taken {
    budget: Arc<Budget>,
    bytes: i64,
}

impl Budget {
    /// So many bytes, none for no limit, and so many requests at once.
    pub(crate) fn new(bytes: i64, requests: i32) -> Arc<Self> {
        let requests = usize::try_from(requests).unwrap_or(1);
        Arc::new(Self {
            left: (bytes > 0).then(|| AtomicI64::new(bytes)),
            freed: Notify::new(),
            requests: Semaphore::new(requests.clamp(1, Semaphore::MAX_PERMITS)),
        })
    }

    /// Takes the bytes of a frame, unless none are left.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let wanted = i64::try_from(bytes).ok()?;
        if let Some(left) = &self.left {
            let taken = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                (left > 0).then_some(left - wanted)
            });
            taken.ok()?;
        }
        Some(Taken {
            budget: Arc::clone(self),
            bytes: wanted,
        })
    }

    /// Ends when some bytes are left.
    pub(super) async fn some_left(&self) {
        loop {
            // Made before the look: a frame that ends in between is not missed.
            let freed = self.freed.notified();
            let left = self.left.as_ref();
            if left.is_none_or(|left| left.load(Ordering::Acquire) > 0) {
                return;
            }
            freed.await;
        }
    }

    /// Waits for a request's turn to be executed.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        match self.requests.try_acquire() {
            Ok(permit) => Some(permit),
            // It is never closed.
            Err(_) => self.requests.acquire().await.ok(),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(left) = &self.budget.left {
            let before = left.fetch_add(self.bytes, Ordering::AcqRel);
            if before <= 0 {
                self.budget.freed.notify_waiters();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_frame_may_overdraw_and_the_next_waits() {
        let budget = Budget::new(100, 1);
        let small = budget.take(99).unwrap();
        let large = budget.take(5000).unwrap();
        assert!(budget.take(1).is_none());
        drop(small);
        assert!(budget.take(1).is_none());
        tokio::join!(biased; budget.some_left(), async { drop(large) });
        assert_eq!(budget.left.as_ref().unwrap().load(Ordering::Acquire), 100);
    }

    #[tokio::test]
    async fn without_a_limit_nothing_waits() {
        for none in [-1, 0] {
            let budget = Budget::new(none, 1);
            let _first = budget.take(usize::MAX >> 1).unwrap();
            let _second = budget.take(usize::MAX >> 1).unwrap();
            budget.some_left().await;
        }
    }
}
