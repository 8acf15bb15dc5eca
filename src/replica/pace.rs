//! The pace of work in the background: bytes a second at most, however many work at it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::os::clock;
use crate::os::tasks::Tasks;

/// A hold-up is so long at most, so that a stop is heard.
const HOLD_UP: Duration = Duration::from_millis(100);

/// What work in the background has cost so far, shared by all who do it.
pub(super) struct Pace {
    /// When the bytes so far are paid for.
    paid: Mutex<Instant>,
}

impl Pace {
    /// Nothing was done yet.
    pub(super) fn new() -> Self {
        Self {
            paid: Mutex::new(clock::now()),
        }
    }

    /// Waits until so many more bytes are paid for, or until the group stops or `is_over`.
    pub(super) fn hold_up(&self, bytes: u64, rate: f64, tasks: &Tasks, is_over: impl Fn() -> bool) {
        let until = {
            let mut paid = self.paid.lock();
            *paid = (*paid).max(clock::now()) + cost(bytes, rate);
            *paid
        };
        while !tasks.is_stopping() && !is_over() {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            clock::hold_up(left.min(HOLD_UP));
        }
    }
}

/// How long so many bytes take.
#[expect(clippy::cast_precision_loss, reason = "a time needs no last bits")]
fn cost(bytes: u64, rate: f64) -> Duration {
    let secs = match rate > 0.0 {
        true => (bytes as f64 / rate).min(60.0),
        false => 60.0,
    };
    Duration::from_secs_f64(secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cost_time_by_the_rate() {
        assert_eq!(cost(1 << 20, f64::MAX), Duration::ZERO);
        assert_eq!(cost(1000, 10_000.0), Duration::from_millis(100));
        assert_eq!(cost(1000, 0.0), Duration::from_secs(60));
    }
}
