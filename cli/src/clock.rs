//! The program's one place where time is read and slept.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time.
#[expect(clippy::disallowed_methods, reason = "the library's clock is not on its public face")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Sleeps until `moment`; up to 2 ms longer, never less.
#[cfg(unix)]
pub(crate) async fn sleep_until(moment: Instant) {
    tokio::time::sleep_until(moment.into()).await;
}

/// Sleeps for `duration`.
#[cfg(unix)]
pub(crate) async fn sleep(duration: Duration) {
    sleep_until(now() + duration).await;
}

/// The wall clock's time since the epoch: no lease is measured by it.
#[expect(clippy::disallowed_methods, reason = "told to the child, and what periods are counted by")]
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The wall clock's time in `duration`, in milliseconds since the epoch: a child process can
/// compare it with its own clock.
pub(crate) fn epoch_ms_in(duration: Duration) -> u128 {
    since_epoch().saturating_add(duration).as_millis()
}
