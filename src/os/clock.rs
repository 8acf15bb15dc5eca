//! Time: wall milliseconds for records, monotonic instants for deadlines, sleeping.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by the wall clock; may jump.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    since.as_millis().try_into().unwrap_or(i64::MAX)
}

/// The monotonic clock; under a paused runtime it is the runtime's.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Sleeps until `at` on the runtime's clock.
pub(crate) async fn sleep_until(at: Instant) {
    tokio::time::sleep_until(at.into()).await;
}

/// Sleeps for `span` on the runtime's clock.
pub(crate) async fn sleep(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Holds this thread up for `span`; not on a runtime's thread.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(crate) fn hold_up(span: Duration) {
    std::thread::sleep(span);
}
