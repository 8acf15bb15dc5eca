//! How often something happens, over a sliding window, with the time passed in
//! (org.apache.kafka.common.metrics.stats.Rate as quotas use it).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The window moves in steps of this.
const SAMPLE: Duration = Duration::from_secs(1);
/// So many samples are remembered.
const SAMPLES: usize = 11;

/// Counts events over the last seconds.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// When each sample began, and what it counted.
    samples: VecDeque<(Instant, u32)>,
}

impl Rate {
    /// Counts one event; how long to wait until the rate is back at `most` a second.
    pub(crate) fn record(&mut self, now: Instant, most: u32) -> Duration {
        self.forget(now);
        match self.samples.back_mut() {
            Some((began, count)) if now.duration_since(*began) < SAMPLE => *count += 1,
            Some(_) | None => self.samples.push_back((now, 1)),
        }
        self.excess(now, most)
    }

    fn forget(&mut self, now: Instant) {
        let window = SAMPLE * u32::try_from(SAMPLES).unwrap_or(1);
        while let Some((began, _)) = self.samples.front()
            && now.duration_since(*began) >= window
        {
            self.samples.pop_front();
        }
    }

    /// A young window counts as a whole one, so that a burst is let through first.
    fn excess(&self, now: Instant, most: u32) -> Duration {
        let began = self.samples.front().map_or(now, |(began, _)| *began);
        let whole = SAMPLE.as_secs_f64() * (SAMPLES - 1) as f64;
        let elapsed = now.duration_since(began).as_secs_f64().max(whole);
        let count: u32 = self.samples.iter().map(|(_, count)| count).sum();
        let most = f64::from(most.max(1));
        let rate = f64::from(count) / elapsed;
        if rate <= most {
            return Duration::ZERO;
        }
        Duration::from_secs_f64((rate - most) / most * elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events at these milliseconds, at most five a second; what the last one has to wait.
    fn waits(at_ms: impl IntoIterator<Item = u64>) -> Duration {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let mut rate = Rate::default();
        let at = at_ms.into_iter();
        at.map(|ms| rate.record(start + Duration::from_millis(ms), 5))
            .last()
            .unwrap()
    }

    #[test]
    fn a_steady_rate_waits_for_nothing() {
        assert_eq!(waits((0..600).map(|n| n * 210)), Duration::ZERO);
    }

    #[test]
    fn a_burst_waits_once_it_fills_the_window() {
        assert_eq!(waits((0..50).map(|_| 0)), Duration::ZERO);
        assert_eq!(waits((0..51).map(|_| 0)), Duration::from_millis(200));
    }

    #[test]
    fn what_left_the_window_is_forgotten() {
        assert_eq!(waits((0..51).map(|_| 0).chain([11_000])), Duration::ZERO);
    }
}
