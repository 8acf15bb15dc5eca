//! Which partitions a round has to look at: those in which something happened, and those whose
//! time has come. Nothing is done for any other, and nothing at all while there is none.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::TopicId;
use crate::base::timers::Timers;
use crate::os::clock;

/// A partition by its topic and index.
pub(super) type Key = (TopicId, i32);

/// A wall clock may be set, so a time far off is looked at again before.
const FAR: Duration = Duration::from_secs(24 * 3600);

/// Partitions in which something happened since the last round.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    stirred: Mutex<HashSet<Key>>,
    wake: Notify,
}

impl Agenda {
    /// Puts a partition on the agenda.
    pub(super) fn add(&self, key: Key) {
        let mut stirred = self.stirred.lock();
        if stirred.is_empty() {
            self.wake.notify_one();
        }
        stirred.insert(key);
    }

    /// Waits until something is on the agenda.
    pub(super) async fn stirred(&self) {
        while self.stirred.lock().is_empty() {
            self.wake.notified().await;
        }
    }

    fn take(&self) -> HashSet<Key> {
        std::mem::take(&mut *self.stirred.lock())
    }
}

/// When partitions are to be looked at again though nothing happens in them.
#[derive(Debug, Default)]
pub(super) struct Due(Timers<Key>);

impl Due {
    /// Waits for the earliest.
    pub(super) async fn come(&self) {
        match self.0.next() {
            Some(at) => clock::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// What is to be looked at now; it has no time of its own any more.
    pub(super) fn take(&mut self, agenda: &Agenda, now: Instant) -> HashSet<Key> {
        let mut keys = agenda.take();
        for key in &keys {
            self.0.cancel(key);
        }
        while let Some(key) = self.0.pop_due(now) {
            keys.insert(key);
        }
        keys
    }

    /// Looks at a partition again when the wall clock, which shows `wall_ms` now, shows `at_ms`.
    pub(super) fn set(&mut self, key: Key, at_ms: i64, (now, wall_ms): (Instant, i64)) {
        let wait = u64::try_from(at_ms.saturating_sub(wall_ms)).unwrap_or(0);
        self.0.set(key, now + Duration::from_millis(wait).min(FAR));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Uuid;

    #[test]
    fn what_was_stirred_or_is_due_is_looked_at_once() {
        let (agenda, mut due) = (Agenda::default(), Due::default());
        let key = |index| (TopicId(Uuid::ONE), index);
        let now = clock::now();
        due.set(key(1), 1500, (now, 1000));
        due.set(key(2), 9000, (now, 1000));
        due.set(key(3), 1200, (now, 1000));
        agenda.add(key(3));
        agenda.add(key(4));
        assert_eq!(due.take(&agenda, now), HashSet::from([key(3), key(4)]));
        let later = now + Duration::from_secs(1);
        assert_eq!(due.take(&agenda, later), HashSet::from([key(1)]));
        assert_eq!(due.take(&agenda, later), HashSet::new());
    }
}
