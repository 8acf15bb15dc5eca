//! Durability that acknowledgements wait for (`flush.messages`), and that a time is set for
//! (`flush.ms`).
//!
//! One flush of a partition runs at a time, and makes everything durable that was appended before
//! it began: those who wait meanwhile share the next. A flush that fails is final for its directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use super::partition::Partition;
use crate::log::fault::Fault;
use crate::log::flush::{Flush, Wish};
use crate::log::log::{Appended, Log};
use crate::os::{clock, tasks};
use crate::protocol::error::ErrorCode;

/// So much that is durable a recovery goes over at most, by its headers.
const ANCHOR_BYTES: u64 = 4 << 20;

/// What of a partition is to be made durable.
#[derive(Debug, Default)]
pub(super) struct Durability {
    /// Nobody is told of records below before they are durable.
    owed: AtomicI64,
    /// A flush has its time.
    is_planned: AtomicBool,
    /// Held by who flushes.
    turn: tokio::sync::Mutex<()>,
}

impl Partition {
    /// Notes when what was appended must be durable.
    pub(super) fn wish_flush(&self, appended: &Appended) {
        match appended.flush {
            Wish::Now => {
                let end = appended.last_offset + 1;
                self.durability.owed.fetch_max(end, Ordering::AcqRel);
            }
            Wish::Within(ms) => {
                self.plan_flush(Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
            }
            Wish::Sometime => {}
        }
    }

    fn plan_flush(&self, after: Duration) {
        if !self.durability.is_planned.swap(true, Ordering::AcqRel) {
            self.background.flush_at(clock::now() + after, &self.name);
        }
    }

    /// Flushes in the background, for nobody who waits.
    pub(crate) fn flush_soon(&self) {
        self.background.flush(&self.name);
    }

    /// Whether records below `end` must be made durable before anybody is told of them.
    pub(crate) fn owes_flush(&self, end: i64) -> bool {
        self.durability.owed.load(Ordering::Acquire) >= end && self.reader().durable_offset() < end
    }

    /// How far others may see what was appended. Kafka flushes within the append, before the high
    /// watermark can move (UnifiedLog.append): so many records as `flush.messages` says are never
    /// seen before they are durable.
    pub(super) fn seen_up_to(&self) -> i64 {
        let reader = self.reader();
        let undurable = reader.config().flush_messages.max(1) - 1;
        let most = reader.durable_offset().saturating_add(undurable);
        reader.log_end_offset().min(most)
    }

    /// Waits until records below `end` are durable, if they have to be.
    pub(crate) async fn made_durable(self: &Arc<Self>, end: i64) -> Result<(), ErrorCode> {
        if !self.owes_flush(end) {
            return Ok(());
        }
        let _turn = self.durability.turn.lock().await;
        if !self.owes_flush(end) {
            // Another's flush took these along.
            return Ok(());
        }
        let this = self.clone();
        let flushed = tasks::blocking(move || this.flush_now()).await;
        flushed.unwrap_or(Err(ErrorCode::UnknownServerError))
    }

    /// Makes everything durable that is appended. Waits for the disk.
    pub(super) fn flush_now(&self) -> Result<(), ErrorCode> {
        self.flush_by(|log| log.begin_flush())
    }

    /// Lets a recovery begin behind what is durable of a long segment. Waits for the disk.
    pub(super) fn anchor_if_due(&self) {
        if self.with_log(|log| log.is_anchor_due(ANCHOR_BYTES)) {
            // Trouble is reported where it is met.
            let _ = self.flush_by(|log| log.begin_anchor());
        }
    }

    fn flush_by(
        &self,
        begin: impl FnOnce(&mut Log) -> Result<Flush, Fault>,
    ) -> Result<(), ErrorCode> {
        if self.is_offline() {
            // What a failed sync did not write another would not tell of.
            return Err(ErrorCode::KafkaStorageError);
        }
        self.durability.is_planned.store(false, Ordering::Release);
        let flush = self.with_log(begin);
        let flushed = flush.and_then(|flush| match flush.sync() {
            Ok(()) => self.with_log(|log| log.end_flush(&flush)),
            // It went on in another folder meanwhile, where all of it is durable.
            Err(fault) if fault.is_not_found() && self.with_log(|log| !log.is_of(&flush)) => Ok(()),
            Err(fault) => Err(fault),
        });
        match flushed {
            Ok(()) => {
                self.advance();
                Ok(())
            }
            Err(fault) => {
                // A log that was deleted meanwhile took its files along.
                self.fail(&fault.into());
                Err(ErrorCode::KafkaStorageError)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::config::LogConfig;
    use crate::log::producers::Origin;
    use crate::log::testkit::batch;
    use crate::os::disk::TempDir;
    use crate::replica::testkit::leader;

    #[tokio::test]
    async fn who_asks_for_every_record_to_be_durable_waits_for_one_flush_of_all() {
        let dir = TempDir::new();
        let config = LogConfig {
            flush_messages: 1,
            ..LogConfig::default()
        };
        let partition = leader(&dir, config);
        for _ in 0..5 {
            let appended = partition
                .append(batch(1, 10), false, Origin::Client, true)
                .await;
            assert_eq!(appended.unwrap().flush, Wish::Now);
        }
        assert!(partition.owes_flush(1) && partition.owes_flush(5));
        assert_eq!(partition.high_watermark(), 0, "nobody sees them before");
        partition.made_durable(2).await.unwrap();
        assert_eq!(partition.high_watermark(), 5);
        assert!(!partition.owes_flush(5));
        assert_eq!(partition.reader().durable_offset(), 5);
        assert_eq!(partition.with_log(|log| log.recovery_point()), 5);
    }

    #[tokio::test]
    async fn what_a_directory_that_failed_holds_is_not_synced_again() {
        let dir = TempDir::new();
        let partition = leader(&dir, LogConfig::default());
        let append = || partition.append(batch(1, 10), false, Origin::Client, true);
        append().await.unwrap();
        partition.flush_now().unwrap();
        append().await.unwrap();
        partition.take_offline();
        assert_eq!(partition.flush_now(), Err(ErrorCode::KafkaStorageError));
        assert_eq!(partition.with_log(|log| log.recovery_point()), 1);
    }

    #[tokio::test]
    async fn nobody_waits_unless_the_topic_asks_for_it() {
        let dir = TempDir::new();
        let config = LogConfig {
            flush_messages: 3,
            flush_ms: 1000,
            ..LogConfig::default()
        };
        let partition = leader(&dir, config);
        let append = || partition.append(batch(1, 10), false, Origin::Client, true);
        assert_eq!(append().await.unwrap().flush, Wish::Within(1000));
        assert!(!partition.owes_flush(1));
        let planned = partition.background.next_due().unwrap();
        assert!(planned > clock::now() && planned <= clock::now() + Duration::from_secs(1));
        append().await.unwrap();
        assert_eq!(partition.high_watermark(), 2);
        assert_eq!(append().await.unwrap().flush, Wish::Now);
        assert!(partition.owes_flush(3));
        assert_eq!(
            partition.high_watermark(),
            2,
            "the third is seen once all are durable"
        );
        partition.flush_now().unwrap();
        assert!(!partition.owes_flush(3));
        assert_eq!(partition.high_watermark(), 3);
    }
}
