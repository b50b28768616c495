//! One pending undo: when it is sent, when again, and when it cannot matter any more.

use std::time::Duration;

use super::super::undo::Kept;
use crate::clock::Moment;

/// How long an undo waits that the server would not execute: first, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long until an undo is sent again whose command may still arrive.
pub(super) const REPEAT: Duration = Duration::from_millis(500);

/// One undo that the server has not executed for good.
#[derive(Debug)]
pub(super) struct PendingUndo {
    /// Without the head that is common to all.
    pub(super) undo: Kept,
    /// How many came before it.
    pub(super) age: u64,
    /// When it is to be sent; never while it is on its way.
    pub(super) next: Moment,
    /// From then on it cannot matter.
    pub(super) until: Moment,
    /// How long it waits if it is refused.
    pub(super) pause: Duration,
    pub(super) state: State,
}

/// Where a pending undo stands; see the head of [`pending`](super).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It is to be sent.
    Waiting,
    /// It is on its way, on the present connection.
    Sent,
    /// It is to be sent again and again: what it undoes may still arrive.
    Doubtful,
}

impl PendingUndo {
    pub(super) fn new(undo: Kept, age: u64) -> Self {
        let (next, until) = (Moment::default(), Moment::NEVER);
        Self { undo, age, next, until, pause: PAUSE, state: State::Waiting }
    }

    /// It goes out; `certain` says that nothing can be executed behind it any more.
    pub(super) fn handle_sent(&mut self, now: Moment, certain: bool, horizon: Duration) {
        match self.state {
            State::Waiting | State::Sent if certain => {
                (self.state, self.next) = (State::Sent, Moment::NEVER);
            }
            _ => self.handle_doubt(now, horizon),
        }
    }

    /// The server would not execute it.
    pub(super) fn handle_refused(&mut self, now: Moment, horizon: Duration) {
        if self.state == State::Sent {
            self.state = State::Waiting;
            self.wait(now, self.pause, horizon);
            self.pause = self.pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }

    /// What it undoes may arrive behind it.
    pub(super) fn handle_doubt(&mut self, now: Moment, horizon: Duration) {
        self.state = State::Doubtful;
        self.wait(now, REPEAT, horizon);
    }

    /// The connection that carried it, or what it undoes, has ended. `certain` says that it can be
    /// ended for the server, too, as one without a name cannot, or that nothing was sent on it.
    pub(super) fn handle_end(&mut self, certain: bool) {
        match self.state {
            State::Doubtful => return,
            State::Waiting | State::Sent if certain => self.state = State::Waiting,
            State::Waiting | State::Sent => self.state = State::Doubtful,
        }
        self.next = Moment::default();
    }

    fn wait(&mut self, now: Moment, pause: Duration, horizon: Duration) {
        self.until = self.until.min(now.plus(horizon));
        // At its end it is looked at once more, and dropped.
        self.next = now.plus(pause).min(self.until);
    }
}
