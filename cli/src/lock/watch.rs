//! The library's events about the lock: written to stderr, and kept for `--json`.
//!
//! The observer is called on the thread that extends the lock, so it only queues lines. There are
//! few of them: consecutive failed extensions are reported once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quorlock::{
    Event, Loss, Observer,
    report::{NodeReport, Outcome},
};

use crate::args::LockArgs;
use crate::exit::{Cause, Failure};
use crate::output;
use crate::words::{self, Humane};

/// An observer of one lock.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The keys of the lock, as they are shown.
    keys: String,
    /// Whether lines are written at all: not with `--json`, unless `--verbose` is given too.
    speaks: bool,
    /// Whether a line says who holds the lock that we wait for.
    tells_of_waiting: bool,
    /// Whether it is one of several slots, which others hold.
    is_slot: bool,
    extensions: AtomicU64,
    /// The last extension has failed, and a line has said so.
    fails: AtomicBool,
    overlong: AtomicBool,
    loss: OnceLock<Loss>,
}

impl Watch {
    pub(crate) fn new(args: &LockArgs) -> Self {
        Self {
            keys: words::all_quoted(args.keys()),
            speaks: args.verbose || !args.json,
            tells_of_waiting: args.verbose || (!args.json && output::is_terminal()),
            is_slot: args.slots.is_some(),
            extensions: AtomicU64::new(0),
            fails: AtomicBool::new(false),
            overlong: AtomicBool::new(false),
            loss: OnceLock::new(),
        }
    }

    /// How often the lock was extended.
    pub(crate) fn extensions(&self) -> u64 {
        self.extensions.load(Ordering::Relaxed)
    }

    /// Whether the lock has been held for its `--max-hold`.
    pub(crate) fn is_overlong(&self) -> bool {
        self.overlong.load(Ordering::Relaxed)
    }

    /// Why the lock was lost, if an event has said so.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.loss.get().copied()
    }

    /// Whether a line has already reported this failure, the loss of the lock.
    pub(crate) fn has_told(&self, failure: &Failure) -> bool {
        failure.cause == Cause::Lost && self.speaks && self.loss.get().is_some()
    }

    fn fail(&self, remaining: Duration, votes: &[NodeReport]) {
        if !self.fails.swap(true, Ordering::Relaxed) {
            let (left, nodes) = (Humane(remaining), in_the_way(votes));
            self.say(format_args!("could not be extended, {left} left; {nodes}"));
        }
    }

    fn lose(&self, reason: Loss, stalled: Option<Duration>) {
        if self.loss.set(reason).is_err() {
            return;
        }
        let stall = |stall| format!(" (quorlock was stopped for {})", Humane(stall));
        let stalled = stalled.map(stall).unwrap_or_default();
        self.say(format_args!("was lost: {reason}{stalled}"));
    }

    fn say(&self, what: std::fmt::Arguments<'_>) {
        if self.speaks {
            output::say(format_args!("lock {} {what}", self.keys));
        }
    }
}

impl Observer for Watch {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Waiting { holder, .. } if self.tells_of_waiting => match holder {
                Some(holder) => self.say(format_args!("is held by {holder}; waiting for it")),
                None if self.is_slot => {
                    self.say(format_args!("has no free slot; waiting for one"));
                }
                None => self.say(format_args!("is held by another client; waiting for it")),
            },
            Event::Extended { .. } => {
                self.extensions.fetch_add(1, Ordering::Relaxed);
                if self.fails.swap(false, Ordering::Relaxed) {
                    self.say(format_args!("is extended again"));
                }
            }
            Event::ExtensionFailed { remaining, votes, .. } => self.fail(*remaining, votes),
            Event::HeldTooLong { remaining, .. } => {
                self.overlong.store(true, Ordering::Relaxed);
                let left = Humane(*remaining);
                self.say(format_args!("has been held for its --max-hold; it ends in {left}"));
            }
            Event::Revoked { remaining, .. } => {
                let left = Humane(*remaining);
                self.say(format_args!("is asked for by another client; it ends in {left}"));
            }
            Event::Lost { reason, stalled, .. } => self.lose(*reason, *stalled),
            _ => {}
        }
    }
}

/// The nodes that did not extend the lock, each with its reason.
fn in_the_way(votes: &[NodeReport]) -> String {
    let others = votes.iter().filter(|vote| vote.outcome != Outcome::Granted);
    others.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The word for a loss in `--json`.
pub(crate) const fn word(loss: Loss) -> &'static str {
    match loss {
        Loss::Expired => "expired",
        Loss::Closed => "closed",
        Loss::Revoked => "revoked",
        _ => "gone",
    }
}
