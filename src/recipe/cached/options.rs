//! How a cache treats its values.

use std::time::Duration;

use crate::error::Error;

/// How much of a value's time is taken off at most, by chance, unless set otherwise.
const JITTER: f64 = 0.1;

/// The longest time of a value, and for which it may be stale.
pub(super) const TIME_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How a [`Cached`](super::Cached) treats its values:
/// [`Cached::with_options`](super::Cached::with_options).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheOptions {
    /// How early a value is computed anew that took a second to compute, in seconds, in the mean of
    /// the earliest of many readers (*beta* of XFetch). 0: not before its end. Default: 1.
    pub early: f64,
    /// For how long behind its end a value may be given to readers while one of them computes it
    /// anew. Default: not at all.
    pub stale: Duration,
    /// How much of its time a value is given less, at most, by chance: so values that were stored
    /// together do not end together. From 0 to 1. Default: 0.1.
    pub jitter: f64,
    /// How long it is remembered that there is no value. Default: as long as a value.
    pub negative_ttl: Option<Duration>,
    /// What is done where no lock can be had, because too few of its nodes can be reached.
    pub on_unavailable: OnUnavailable,
}

/// What a [`Cached`](super::Cached) does where no lock can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnUnavailable {
    /// Computes without: once in each process that asks.
    #[default]
    Compute,
    /// Gives a value that is stale, or nearly, where there is one; else it fails.
    Stale,
    /// Fails, unless the value is fresh.
    Fail,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            early: 1.0,
            stale: Duration::ZERO,
            jitter: JITTER,
            negative_ttl: None,
            on_unavailable: OnUnavailable::default(),
        }
    }
}

impl CacheOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        let misuse = |what: String| Err(Error::misuse(what));
        let Self { early, stale, jitter, negative_ttl, .. } = self;
        if !(early.is_finite() && *early >= 0.0) {
            return misuse(format!("`early` is {early}; give 0 or a number above"));
        }
        if !(0.0..=1.0).contains(jitter) {
            return misuse(format!("`jitter` is {jitter}; give a number from 0 to 1"));
        }
        let times = [Some(*stale), *negative_ttl];
        if let Some(time) = times.into_iter().flatten().find(|time| *time > TIME_MAX) {
            return misuse(format!("a value is kept for {time:?}; give at most ten years"));
        }
        Ok(())
    }
}
