//! What is shown on the way: the time since the start, and what runs now.

use std::sync::OnceLock;
use std::time::Instant;

use crate::clock;

static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Shows what begins now.
pub(crate) fn step(what: &str) {
    let seconds = BEGAN.get_or_init(clock::now).elapsed().as_secs();
    eprintln!("{:3}:{:02} {what}", seconds / 60, seconds % 60);
}

/// How long it has been since the first step, in minutes.
pub(crate) fn minutes() -> f64 {
    BEGAN.get_or_init(clock::now).elapsed().as_secs_f64() / 60.0
}
