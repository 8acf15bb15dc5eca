//! What a long recovery says of itself: a line a second, and none in its first.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::info;

use crate::base::TopicPartition;
use crate::log::recover::Progress;

/// How long a recovery is silent.
const SILENT: Duration = Duration::from_secs(1);

/// Speaks for all logs that are recovered at once.
pub(super) struct Voice {
    started: Instant,
    told_at: Mutex<Instant>,
}

impl Voice {
    /// A recovery begins.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            started: now,
            told_at: Mutex::new(now),
        }
    }

    /// Tells how far a log is, when it is time to.
    pub(super) fn tell(&self, now: Instant, of: &TopicPartition, progress: Progress) {
        let Some(since) = self.turn(now) else {
            return;
        };
        let Progress {
            segment_base_offset,
            bytes_done,
            bytes_total,
        } = progress;
        info!(
            partition = %of,
            segment = segment_base_offset,
            done_mib = bytes_done >> 20,
            total_mib = bytes_total >> 20,
            seconds = since.as_secs(),
            "recovering a log"
        );
    }

    /// Whether it is time to speak: how long the recovery has taken so far.
    fn turn(&self, now: Instant) -> Option<Duration> {
        let mut told_at = self.told_at.lock();
        if now.saturating_duration_since(*told_at) < SILENT {
            return None;
        }
        *told_at = now;
        Some(now.saturating_duration_since(self.started))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::clock;

    #[test]
    fn a_recovery_speaks_once_a_second_and_a_short_one_never() {
        let start = clock::now();
        let voice = Voice::new(start);
        let at = |ms| voice.turn(start + Duration::from_millis(ms));
        let spoken: Vec<_> = (0..45).filter_map(|tenths| at(tenths * 100)).collect();
        assert_eq!(spoken, [1, 2, 3, 4].map(Duration::from_secs));
        // Nothing was to be told for a while, and then much.
        assert_eq!(at(9_700), Some(Duration::from_millis(9_700)));
        assert_eq!(at(10_600), None);
        assert_eq!(at(10_700), Some(Duration::from_millis(10_700)));
    }
}
