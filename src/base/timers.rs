//! Deadlines as data: a pure machine says when it wants to be asked again, and nobody owns a task.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Instant;

use super::FastMap;

/// One deadline per key, the earliest first.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    by_key: FastMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self {
            by_key: FastMap::default(),
            by_time: BTreeSet::new(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Timers<K> {
    /// Sets or moves the deadline of `key`.
    pub(crate) fn set(&mut self, key: K, at: Instant) {
        self.cancel(&key);
        self.by_time.insert((at, key.clone()));
        self.by_key.insert(key, at);
    }

    /// Forgets the deadline of `key`, if it has one.
    pub(crate) fn cancel(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }

    /// Whether `key` has a deadline.
    pub(crate) fn is_set(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes the earliest key whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_moved_deadline_fires_once_and_in_order() {
        // Any instant will do; pure code never asks for the time.
        #[expect(clippy::disallowed_methods, reason = "an arbitrary origin")]
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let mut timers = Timers::default();
        timers.set("a", at(1));
        timers.set("b", at(2));
        timers.set("a", at(3));
        assert_eq!(timers.next(), Some(at(2)));
        assert_eq!(timers.pop_due(at(1)), None);
        assert_eq!(timers.pop_due(at(3)), Some("b"));
        assert_eq!(timers.pop_due(at(3)), Some("a"));
        assert_eq!(timers.pop_due(at(9)), None);
    }
}
