//! Undos that are pending: what a connection may have left on its node, and how it is undone.
//!
//! A command that was sent and not answered may have been applied, or, worse, may be applied yet:
//! the kernels can deliver the bytes of a closed connection after the bytes of the next one. So the
//! next connection first has the server end the old one (`CLIENT KILL ID`), behind which nothing of
//! it can run any more, and then sends the undos. They are whole `EVAL`s, for a server that was
//! restarted knows no script. An undo that is wanted while there is no connection at all is kept in
//! the same way, and so is one that the server would not execute. What an undo is, and which of two
//! is meant, says [`undo`](super::undo).
//!
//! A [`PendingUndo`] is an undo that the server has not executed for good. [`PendingUndos`] owns
//! them all, in one [`Queue`] that is ordered by whose turn is next; there is one for each key and
//! value, in one of three states:
//!
//! ```text
//!              wanted without a connection,
//!              left by one, refused by the server
//!                           │
//!                           ▼     its turn has come
//!       ┌──────────────▶ Waiting ───────────────────▶ Sent ──executed──▶ settled
//!       │                                            │    │
//!       │ the server refuses it for the moment       │    │ the old connection cannot be ended
//!       │ (100 ms, doubling to 1 s), or the          │    ▼
//!       └─ connection ends (at once) ────────────────┘  Doubtful ─┐ sent again each 500 ms,
//!                                                         ▲  └────┘ whatever the answer
//!                                                         │
//!            sent on a connection without a name, or to a process that tells none
//! ```
//!
//! What has not reached the kernel can arrive nowhere: an undo that was queued for a connection
//! which never came about is in no doubt.
//!
//! From the first refusal, or the first doubt, an undo is kept for no longer than the key that it
//! deletes can live, which is when it ends in each state: what is left after that, its expiry ends.
//! As long as an undo is pending, no command is sent that would confirm the very key that the undo
//! deletes: the key might be deleted behind it.
//!
//! A *round* is what is sent at once, and bounded: a server that is back has other things to do.

mod item;
mod queue;
#[cfg(test)]
mod tests;

use std::time::Duration;

use quorlock_resp::encode;

use super::answer::ReplyKind;
use super::pipeline::{Entry, LeftUndo, Ticket};
use super::undo::{Kept, Undo};
use crate::clock::Moment;
use crate::options::LinkOptions;
use item::{PendingUndo, REPEAT, State};
use queue::Queue;

/// How long a settling command may take before its link is looked at as slow.
const DEADLINE: Duration = Duration::from_secs(1);

/// Undos that are sent in one round, and the pause before the next one.
const ROUND_MAX: usize = 1_000;
const ROUND_PAUSE: Duration = Duration::from_millis(10);

/// Connections remembered at most, the latest ones.
const CLIENTS_MAX: usize = 16;

/// A connection as the server knows it. A process never gives a number twice; another process (the
/// server was restarted, or the name leads elsewhere now) gives it to a stranger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Client {
    pub(crate) run_id: Box<str>,
    pub(crate) number: i64,
}

/// A connection that has ended, and may not have for the server.
#[derive(Debug)]
struct OldClient {
    client: Client,
    /// The server was told on the present connection to end it, and has not answered.
    asked: bool,
}

/// Undos that will not be sent: there were too many. Their keys end by themselves.
#[derive(Debug, Default)]
struct GivenUp {
    count: usize,
    /// `None` until a clock is read, which is when the next round is sent.
    until: Option<Moment>,
}

impl GivenUp {
    fn add(&mut self) {
        (self.count, self.until) = (self.count.saturating_add(1), None);
    }

    /// How many of the keys may still live.
    fn count(&self, now: Moment) -> usize {
        if self.until.is_some_and(|until| until <= now) { 0 } else { self.count }
    }

    fn handle_round(&mut self, now: Moment, horizon: Duration) {
        self.count = self.count(now);
        self.until.get_or_insert_with(|| now.plus(horizon));
    }
}

/// The undos that are pending on a link's node.
#[derive(Debug, Default)]
pub(super) struct PendingUndos {
    queue: Queue,
    /// Connections before which nothing is settled for certain.
    old_clients: Vec<OldClient>,
    /// No round begins earlier.
    not_before: Moment,
    /// How many there have been.
    count: u64,
    /// How many there may be.
    max: usize,
    /// Undos that were one too many, and until when their keys can live.
    given_up: GivenUp,
    /// For how long an undo may matter from the first refusal or doubt on.
    horizon: Duration,
}

impl PendingUndos {
    pub(super) fn new(options: &LinkOptions) -> Self {
        let (max, horizon) = (options.entries_max, options.undo_horizon);
        Self { max, horizon, ..Self::default() }
    }

    /// Keys may live for so long that undos matter for this long.
    pub(super) fn extend_horizon(&mut self, horizon: Duration) {
        self.horizon = self.horizon.max(horizon);
    }

    /// Whether everything is settled.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// What is to be undone, each once.
    pub(super) fn undos(&self) -> impl Iterator<Item = Undo<'_>> {
        self.queue.undos()
    }

    /// How many undos were given up, of keys that may still live.
    pub(super) fn given_up(&self, now: Moment) -> usize {
        self.given_up.count(now)
    }

    /// Whether a command with this undo is about a value that is still to be undone, or may be
    /// undone again. Its keys may be others: a lock is extended by its own key, where what is to be
    /// undone has asked in a queue.
    #[inline]
    pub(super) fn concern(&self, undo: Undo<'_>) -> bool {
        !self.is_empty() && self.queue.has_value(undo.value())
    }

    /// When there is something to settle on a connection that is open already.
    pub(super) fn due(&self) -> Option<Moment> {
        let first = self.queue.first()?;
        (first.next != Moment::NEVER).then(|| first.next.max(self.not_before))
    }

    /// A connection has ended and leaves these undos to be settled.
    pub(super) fn inherit(
        &mut self,
        client: Option<Client>,
        left: impl IntoIterator<Item = LeftUndo>,
    ) {
        self.old_clients.iter_mut().for_each(|old| old.asked = false);
        self.not_before = Moment::default();
        let (named, mut leaves) = (client.is_some(), false);
        for LeftUndo { undo, was_sent } in left {
            let mut item = self.take_or_new(undo);
            // A doubtful one is repeated anyway.
            leaves |= was_sent && item.state != State::Doubtful;
            item.handle_end(named || !was_sent);
            self.put(item);
        }
        if leaves {
            self.old_clients.extend(client.map(|client| OldClient { client, asked: false }));
            let excess = self.old_clients.len().saturating_sub(CLIENTS_MAX);
            self.old_clients.drain(..excess);
        }
        if self.is_empty() {
            // What the connections before this one left is settled, and they are ended.
            self.old_clients.clear();
        }
    }

    /// An undo that could not be sent.
    pub(super) fn add(&mut self, undo: Undo<'_>) {
        let item = self.take_or_new(undo.kept());
        self.put(item);
    }

    /// An undo takes the place of one that it supersedes, if that is pending.
    pub(super) fn undo_instead(&mut self, undo: Undo<'_>) {
        if self.queue.has(undo.pair()) {
            self.add(undo);
        }
    }

    /// The undo of a pair is no longer wanted: what it undoes is left to others.
    pub(super) fn withdraw(&mut self, pair: &[u8]) {
        drop(self.queue.take(pair));
    }

    /// Whether the undo of a pair is pending.
    pub(super) fn has(&self, pair: &[u8]) -> bool {
        self.queue.has(pair)
    }

    /// The pending undo of a pair, or a new one. An undo takes the place of one that it
    /// supersedes.
    fn take_or_new(&mut self, undo: Kept) -> PendingUndo {
        match self.queue.take(undo.lent().pair()) {
            Some(item) if undo.lent().supersedes(item.undo.lent()) => PendingUndo {
                undo,
                state: if item.state == State::Sent { State::Waiting } else { item.state },
                next: Moment::default(),
                ..item
            },
            Some(item) => item,
            None => self.new_item(undo),
        }
    }

    /// The server would not execute an undo now, which may be one that was not pending yet.
    pub(super) fn handle_refused(&mut self, undo: Kept, now: Moment) {
        let mut item = match self.queue.has(undo.lent().pair()) {
            true => self.take_or_new(undo),
            false => PendingUndo { state: State::Sent, ..self.new_item(undo) },
        };
        item.handle_refused(now, self.horizon);
        self.put(item);
    }

    /// The server has answered an undo for good.
    pub(super) fn handle_executed(&mut self, undo: Undo<'_>) {
        // A doubtful one is sent again, and one that took the answered one's place is still to be.
        let is_left =
            |item: &PendingUndo| item.state == State::Doubtful || item.undo.lent().supersedes(undo);
        let left = self.queue.take(undo.pair()).filter(is_left);
        left.into_iter().for_each(|item| self.queue.put(item));
    }

    /// The server has ended an old connection, the first of those it was told to.
    pub(super) fn handle_ended(&mut self) {
        if let Some(ended) = self.old_clients.iter().position(|old| old.asked) {
            self.old_clients.remove(ended);
        }
    }

    /// The server does not end an old connection. It may survive; undos may be overtaken, so retry
    /// them. (All on their way were sent behind the request: earlier ones have been answered.)
    pub(super) fn handle_not_ended(&mut self, now: Moment) {
        if let Some(old) = self.old_clients.iter_mut().find(|old| old.asked) {
            old.asked = false;
        }
        while self.queue.last().is_some_and(|item| item.state == State::Sent) {
            let Some(mut item) = self.queue.take_last() else { break };
            item.handle_doubt(now, self.horizon);
            self.queue.put(item);
        }
    }

    /// The node is late with its answers to the last round.
    pub(super) fn put_off(&mut self, now: Moment) {
        self.not_before = now.plus(REPEAT);
    }

    /// Gives `send` the commands of one round, each with its entry, its bytes, and what undoes it:
    /// the connection is to the process `run_id`. Should it end too, its pipeline hands back what
    /// is unsettled, and the old connections are still known.
    pub(super) fn settle(
        &mut self,
        run_id: Option<&str>,
        now: Moment,
        mut send: impl FnMut(Entry, &[u8], Undo<'_>),
    ) {
        let entry = |kind| Entry {
            ticket: Ticket::UNAWAITED,
            kind,
            sent: now,
            deadline: now.plus(DEADLINE),
        };
        self.not_before = now.plus(ROUND_PAUSE);
        self.given_up.handle_round(now, self.horizon);
        // Of another process none of them is left.
        self.old_clients.retain(|old| Some(&*old.client.run_id) == run_id);
        for old in self.old_clients.iter_mut().filter(|old| !old.asked) {
            let mut bytes = Vec::new();
            let number = old.client.number.to_string();
            encode::command(&mut bytes, &[b"CLIENT", b"KILL", b"ID", number.as_bytes()]);
            send(entry(ReplyKind::Ended), &bytes, Undo::NONE);
            old.asked = true;
        }
        // Of a process that does not tell its name, nothing is known to be left or not.
        let certain = run_id.is_some();
        for _ in 0..ROUND_MAX {
            let due = self.queue.first().is_some_and(|first| first.next <= now);
            let Some(mut item) = due.then(|| self.queue.take_first()).flatten() else { break };
            if item.until > now {
                let undo = item.undo.lent();
                send(entry(ReplyKind::PendingUndo), &undo.whole(), undo);
                item.handle_sent(now, certain, self.horizon);
                self.queue.put(item);
            }
        }
    }

    fn new_item(&mut self, undo: Kept) -> PendingUndo {
        self.count += 1;
        PendingUndo::new(undo, self.count)
    }

    /// Of too many the one whose turn is first is given up: of those that wait for a
    /// connection, it is the oldest, and its key's expiry the nearest.
    fn put(&mut self, item: PendingUndo) {
        self.queue.put(item);
        if self.queue.len() > self.max {
            self.queue.take_first();
            self.given_up.add();
        }
    }
}
