//! What one that waits in a queue awaits, and when it asks next: the node that keeps the queue, or
//! all nodes, where each keeps one.
//!
//! Pure, but for the answer that is awaited.

use std::time::Duration;

use super::pause::MILLISECOND;
use crate::clock::Moment;
use crate::quorum::Election;

/// How often one that waits says that it lives: a third of the time that `turn_ask.lua` gives it.
/// No pause is longer behind a place that was lost.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(500);

/// How often the queue's node is asked between two beats, at most, because the lock has changed or
/// has ended: others may change it all the time, and never let go of it.
const ASKS_MAX: u32 = 16;

/// After this pause the first in the queue watches a key whose holder was told that it is waited
/// for. It saves the watch where the holder releases the lock sooner.
const WATCHED_AFTER: Duration = Duration::from_millis(10);

/// When a queue's node is asked again that has not answered in time; and how long one is waited for
/// that is slower than the others.
pub(super) const LATE: Duration = Duration::from_millis(100);

/// What is awaited, and what is done next, and when.
pub(super) struct Plan {
    /// The queue's node's answer is awaited.
    pub(super) is_asked: bool,
    /// When the queue's node is asked again; or counts as silent, if it was.
    pub(super) ask: Moment,
    /// When the lock is watched.
    pub(super) watch: Moment,
    /// The answer is awaited that says how long it lives.
    pub(super) watching: Option<Election>,
    /// How often the queue's node was asked since the last beat.
    pub(super) asks: u32,
    /// It is asked next because the lock has changed.
    pub(super) has_changed: bool,
    /// The queue's node has said that it is to wait, so there is a place to lose.
    pub(super) has_place: bool,
    /// It is the first in the queue, as of the last answer.
    pub(super) is_first: bool,
    /// The queue's node has not answered the last time.
    pub(super) is_late: bool,
    pub(super) beat: Moment,
}

impl Plan {
    /// The queue's node has just been asked.
    pub(super) fn asked(now: Moment) -> Self {
        let beat = now.plus(HEARTBEAT);
        Self {
            is_asked: true,
            ask: beat,
            watch: Moment::NEVER,
            watching: None,
            asks: 1,
            has_changed: false,
            has_place: false,
            is_first: false,
            is_late: false,
            beat,
        }
    }

    /// The queue's node is asked then, or at the next heartbeat if that comes first; after
    /// [`ASKS_MAX`] questions only at the heartbeat.
    pub(super) fn ask_at(&mut self, at: Moment) {
        self.ask = if self.asks < ASKS_MAX { at.min(self.beat) } else { self.beat };
    }

    /// The queue's node is asked. Whether that is a beat.
    pub(super) fn note_asked(&mut self, now: Moment) -> bool {
        let is_beat = now >= self.beat;
        if is_beat {
            (self.beat, self.asks) = (now.plus(HEARTBEAT), 0);
        }
        (self.is_asked, self.ask, self.watch) = (true, now.plus(HEARTBEAT), Moment::NEVER);
        // Its answer is the newer one, and how long the lock lives says nothing of when it comes.
        self.watching = None;
        self.asks += 1;
        is_beat
    }

    /// Whether the queue's node is asked once more that has not answered in time: it has answered
    /// before.
    pub(super) fn may_be_late(&self) -> bool {
        self.has_place && !self.is_late
    }

    pub(super) fn ask_late(&mut self, now: Moment) {
        (self.is_asked, self.is_late, self.ask) = (false, true, now.plus(LATE));
    }

    /// It is to wait, says the queue's node. Where the lock cannot be watched, it is asked for
    /// again after this pause if the holder has not heard.
    pub(super) fn wait(
        &mut self,
        left: Option<Duration>,
        is_heard: bool,
        poll: Option<Duration>,
        now: Moment,
    ) {
        (self.is_asked, self.has_place, self.is_late) = (false, true, false);
        self.is_first = left.is_some() || !is_heard;
        let expiry = left.map_or(self.beat, |left| now.plus(left + MILLISECOND));
        self.ask_at(expiry);
        match poll {
            None if !is_heard => self.watch = now,
            None if left.is_some() => self.watch = now.plus(WATCHED_AFTER),
            // As often as the request says: what is bounded is how often changes are followed.
            Some(pause) if !is_heard => {
                self.ask = self.ask.min(now.plus(pause.max(MILLISECOND))).min(self.beat);
            }
            _ => {}
        }
    }

    /// The watched lock lives for so many milliseconds; −1: it has no end, −2: it is free.
    pub(super) fn watched(&mut self, millis: i64, now: Moment) {
        match u64::try_from(millis) {
            Ok(millis) => self.ask_at(now.plus(Duration::from_millis(millis) + MILLISECOND)),
            Err(_) if millis == -2 => self.ask_at(now),
            Err(_) => {}
        }
    }
}
