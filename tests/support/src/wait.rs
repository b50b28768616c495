//! Waiting for a condition, under a watchdog.
//!
//! A test never sleeps for a time and hopes: it names what it waits for, and fails with that name
//! when the watchdog barks. This is also the support's one place that reads the clock.

#![expect(
    clippy::disallowed_methods,
    reason = "tests measure real time; the library's clock is what they test"
)]

use std::time::{Duration, Instant};

/// How long a test waits for something that should take milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two looks at a condition: short beside what is waited for, long beside a look.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A deadline that panics with the name of what was waited for.
#[derive(Debug)]
pub struct Watchdog {
    what: String,
    began: Instant,
    patience: Duration,
}

impl Watchdog {
    /// Starts the time for `what`, within [`PATIENCE`].
    pub fn new(what: impl Into<String>) -> Self {
        Self::with_patience(what, PATIENCE)
    }

    /// Starts the time for `what`, within `patience`.
    pub fn with_patience(what: impl Into<String>, patience: Duration) -> Self {
        Self { what: what.into(), began: Instant::now(), patience }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time left, or nothing when it is over.
    pub fn left(&self) -> Option<Duration> {
        self.patience.checked_sub(self.elapsed())
    }

    /// Panics when the time is over.
    #[track_caller]
    pub fn check(&self) {
        assert!(
            self.left().is_some(),
            "gave up after {:?} waiting for: {}",
            self.patience,
            self.what
        );
    }

    /// Pauses the thread before the next look; panics when the time is over.
    #[track_caller]
    pub fn pause(&self) {
        self.check();
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Waits, blocking the thread, until `condition` holds; panics with `what` after [`PATIENCE`].
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let watchdog = Watchdog::new(what);
    while !condition() {
        watchdog.pause();
    }
}

/// Waits, letting other tasks run, until `condition` holds; panics with `what` after [`PATIENCE`].
///
/// The watchdog reads real time, so that it also barks under a paused tokio clock.
pub async fn eventually_async(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let watchdog = Watchdog::new(what);
    while !condition().await {
        watchdog.check();
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
