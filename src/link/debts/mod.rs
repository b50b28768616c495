//! What a connection may have left on its node, and how it is settled.
//!
//! A command that was sent and not answered may have been applied, or, worse, may be applied yet:
//! the kernels can deliver the bytes of a closed connection after the bytes of the next one. So the
//! next connection first has the server end the old one (`CLIENT KILL ID`), behind which nothing of
//! it can run any more, and then sends the undos. They are whole `EVAL`s, for a server that was
//! restarted knows no script. An undo that is wanted while there is no connection at all is kept in
//! the same way, and so is one that the server would not execute. What an undo is, and which of two
//! is meant, says [`undo`](super::undo).
//!
//! A [`Debt`] is an undo that has not been settled. [`Debts`] owns them all, in one list that is
//! ordered by whose turn is next; there is one for each key and value, in one of three states:
//!
//! ```text
//!              wanted without a connection,
//!              left by one, refused by the server
//!                           │
//!                           ▼     its turn has come
//!       ┌──────────────▶  Owed  ────────────────────▶ Sent ──executed──▶ settled
//!       │                                            │    │
//!       │ the server refuses it for the moment       │    │ the old connection cannot be ended
//!       │ (100 ms, doubling to 1 s), or the          │    ▼
//!       └─ connection ends (at once) ────────────────┘  Doubtful ─┐ sent again each 500 ms,
//!                                                         ▲  └────┘ whatever the answer
//!                                                         │
//!            left by a connection without a name, or sent to a process that tells none
//! ```
//!
//! From the first refusal, or the first doubt, a debt is kept for no longer than the key that it
//! undoes can live, which is when it ends in each state: what is left after that, its expiry ends.
//! As long as there is a debt, no command is sent that would confirm the very key that the debt's
//! undo deletes: the key might be deleted behind it.
//!
//! A *round* is what is sent at once, and bounded: a server that is back has other things to do.

mod list;
#[cfg(test)]
mod tests;

use std::time::Duration;

use quorlock_resp::encode;

use super::answer::ReplyKind;
use super::pipeline::{Entry, Ticket};
use super::undo::{Kept, Undo};
use crate::clock::Moment;
use crate::options::LinkOptions;
use list::List;

/// How long a settling command may take before its link is looked at as slow.
const DEADLINE: Duration = Duration::from_secs(1);

/// How long an undo waits that the server would not execute: first, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long until an undo is sent again whose command may still arrive.
const REPEAT: Duration = Duration::from_millis(500);

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

/// One undo that is not settled.
#[derive(Debug)]
struct Debt {
    /// Without the head that is common to all.
    undo: Kept,
    /// How many debts came before it.
    age: u64,
    /// When it is to be sent; never while it is on its way.
    next: Moment,
    /// From then on it cannot matter.
    until: Moment,
    /// How long it waits if it is refused.
    pause: Duration,
    state: State,
}

/// See the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It is to be sent.
    Owed,
    /// It is on its way, on the present connection.
    Sent,
    /// It is to be sent again and again: what it undoes may still arrive.
    Doubtful,
}

impl Debt {
    /// It goes out; `certain` says that nothing can be executed behind it any more.
    fn handle_sent(&mut self, now: Moment, certain: bool, horizon: Duration) {
        match self.state {
            State::Owed | State::Sent if certain => {
                (self.state, self.next) = (State::Sent, Moment::NEVER);
            }
            _ => self.handle_doubt(now, horizon),
        }
    }

    /// The server would not execute it.
    fn handle_refused(&mut self, now: Moment, horizon: Duration) {
        if self.state == State::Sent {
            self.state = State::Owed;
            self.wait(now, self.pause, horizon);
            self.pause = self.pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }

    /// What it undoes may arrive behind it.
    fn handle_doubt(&mut self, now: Moment, horizon: Duration) {
        self.state = State::Doubtful;
        self.wait(now, REPEAT, horizon);
    }

    /// The connection that carried it, or what it undoes, has ended. One without a name cannot be
    /// ended for the server, too.
    fn handle_end(&mut self, named: bool) {
        match self.state {
            State::Doubtful => return,
            State::Owed | State::Sent if named => self.state = State::Owed,
            State::Owed | State::Sent => self.state = State::Doubtful,
        }
        self.next = Moment::default();
    }

    fn wait(&mut self, now: Moment, pause: Duration, horizon: Duration) {
        self.until = self.until.min(now.plus(horizon));
        // At its end it is looked at once more, and dropped.
        self.next = now.plus(pause).min(self.until);
    }
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

/// The debts of a link to its node.
#[derive(Debug, Default)]
pub(super) struct Debts {
    list: List,
    /// Connections before which nothing is settled for certain.
    old_clients: Vec<OldClient>,
    /// No round begins earlier.
    not_before: Moment,
    /// How many debts there have been.
    count: u64,
    /// How many there may be.
    max: usize,
    /// Debts that were one too many, and until when their keys can live.
    given_up: GivenUp,
    /// For how long a debt may matter from the first refusal or doubt on.
    horizon: Duration,
}

impl Debts {
    pub(super) fn new(options: &LinkOptions) -> Self {
        let (max, horizon) = (options.entries_max, options.undo_horizon);
        Self { max, horizon, ..Self::default() }
    }

    /// Keys may live for so long that debts matter for this long.
    pub(super) fn extend_horizon(&mut self, horizon: Duration) {
        self.horizon = self.horizon.max(horizon);
    }

    /// Whether everything is settled.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What is to be undone, each once.
    pub(super) fn undos(&self) -> impl Iterator<Item = Undo<'_>> {
        self.list.undos()
    }

    /// How many undos were given up, of keys that may still live.
    pub(super) fn given_up(&self, now: Moment) -> usize {
        self.given_up.count(now)
    }

    /// Whether a command with this undo is about a key and a value that are still to be undone, or
    /// may be undone again.
    #[inline]
    pub(super) fn concern(&self, undo: Undo<'_>) -> bool {
        !self.is_empty() && self.list.has(undo.pair())
    }

    /// When there is something to settle on a connection that is open already.
    pub(super) fn due(&self) -> Option<Moment> {
        let first = self.list.first()?;
        (first.next != Moment::NEVER).then(|| first.next.max(self.not_before))
    }

    /// A connection has ended and leaves `undos` to be settled.
    pub(super) fn inherit(
        &mut self,
        client: Option<Client>,
        undos: impl IntoIterator<Item = Kept>,
    ) {
        self.old_clients.iter_mut().for_each(|old| old.asked = false);
        self.not_before = Moment::default();
        let (named, mut leaves) = (client.is_some(), false);
        for undo in undos {
            let mut debt = self.take_or_owe(undo);
            // What is in doubt is repeated anyway.
            leaves |= debt.state != State::Doubtful;
            debt.handle_end(named);
            self.put(debt);
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
        let debt = self.take_or_owe(undo.kept());
        self.put(debt);
    }

    /// An undo takes the place of one that it supersedes, if that is owed.
    pub(super) fn owe_instead(&mut self, undo: Undo<'_>) {
        if self.list.has(undo.pair()) {
            self.add(undo);
        }
    }

    /// The undo of a pair is no longer wanted: what it undoes is left to others.
    pub(super) fn withdraw(&mut self, pair: &[u8]) {
        drop(self.list.take(pair));
    }

    /// Whether the undo of a pair is owed.
    pub(super) fn owes(&self, pair: &[u8]) -> bool {
        self.list.has(pair)
    }

    /// The debt of an undo's pair, or a new one. If the undo supersedes the one that is owed, it is
    /// owed instead.
    fn take_or_owe(&mut self, undo: Kept) -> Debt {
        match self.list.take(undo.lent().pair()) {
            Some(debt) if undo.lent().supersedes(debt.undo.lent()) => Debt {
                undo,
                state: if debt.state == State::Sent { State::Owed } else { debt.state },
                next: Moment::default(),
                ..debt
            },
            Some(debt) => debt,
            None => self.owed(undo),
        }
    }

    /// The server would not execute an undo now, which may be one that was no debt yet.
    pub(super) fn handle_refused(&mut self, undo: Kept, now: Moment) {
        let mut debt = match self.list.has(undo.lent().pair()) {
            true => self.take_or_owe(undo),
            false => Debt { state: State::Sent, ..self.owed(undo) },
        };
        debt.handle_refused(now, self.horizon);
        self.put(debt);
    }

    /// The server has answered an undo for good.
    pub(super) fn handle_executed(&mut self, undo: Undo<'_>) {
        // One in doubt is executed again, and one that took the answered one's place is to be yet.
        let is_left =
            |debt: &Debt| debt.state == State::Doubtful || debt.undo.lent().supersedes(undo);
        let left = self.list.take(undo.pair()).filter(is_left);
        left.into_iter().for_each(|debt| self.list.put(debt));
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
        while self.list.last().is_some_and(|debt| debt.state == State::Sent) {
            let Some(mut debt) = self.list.take_last() else { break };
            debt.handle_doubt(now, self.horizon);
            self.list.put(debt);
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
            let due = self.list.first().is_some_and(|first| first.next <= now);
            let Some(mut debt) = due.then(|| self.list.take_first()).flatten() else { break };
            if debt.until > now {
                let undo = debt.undo.lent();
                send(entry(ReplyKind::Owed), &undo.whole(), undo);
                debt.handle_sent(now, certain, self.horizon);
                self.list.put(debt);
            }
        }
    }

    fn owed(&mut self, undo: Kept) -> Debt {
        self.count += 1;
        Debt {
            undo,
            age: self.count,
            next: Moment::default(),
            until: Moment::NEVER,
            pause: PAUSE,
            state: State::Owed,
        }
    }

    /// Of too many debts the one whose turn is first is given up: of those that wait for a
    /// connection, it is the oldest, and its key's expiry the nearest.
    fn put(&mut self, debt: Debt) {
        self.list.put(debt);
        if self.list.len() > self.max {
            self.list.take_first();
            self.given_up.add();
        }
    }
}
