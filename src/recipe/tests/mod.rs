//! Recipes on nodes in memory, under a paused clock: where a promise names a time, it is exact.

mod elect;
mod limit;
mod once;
mod until;

use std::time::Duration;

use crate::clock::Clock;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets time pass, and all that is due in it be done.
async fn pass(time: Duration) {
    let clock = Clock::default();
    clock.sleep_until(clock.now().plus(time)).await;
}
