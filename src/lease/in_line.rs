//! An acquisition's place among those of this process that want the same key.

use std::future::poll_fn;
use std::num::NonZeroU64;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use super::counters::Cause;
use super::leases::Leases;
use super::resource::Resource;
use super::turns::{OVERTAKEN_AFTER, Rival, Ticket, Told, Turn};
use crate::clock::{Moment, Reading};

/// Whether an acquisition waits its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It waits behind others.
    InLine,
    /// It takes the turn if that is free, and tries without it if not: the caller says how often.
    Beside,
    /// It waits in a node's queue, and not for others of this process, which may have the lock,
    /// too.
    QueueOnly,
    /// It asks the node that keeps the queue, and does not wait there.
    QueueOnce,
    /// Neither a turn nor a queue: a lock of several keys, or a read lock that is tried once.
    Apart,
}

/// Which turn is an acquisition's, and how it comes by one.
pub(super) struct Order {
    turn: Option<Turn>,
    /// What it drew when it came, which keeps its place in line.
    number: Option<NonZeroU64>,
    kind: Kind,
    /// The line was let go, until the next try has said what the nodes say.
    is_let_go: bool,
}

impl Order {
    pub(super) fn new(kind: Kind) -> Self {
        Self { turn: None, number: None, kind, is_let_go: false }
    }

    /// Sees to it that the next try is in turn; `Some` if others are to be waited for.
    pub(super) fn line_up(
        &mut self,
        leases: &Leases,
        resource: &Resource,
        now: impl FnOnce() -> Moment,
    ) -> Option<Ticket> {
        let turns = leases.context.turns();
        match self.kind {
            Kind::InLine if !self.is_let_go => {}
            Kind::Beside if self.turn.is_none() => {
                self.turn = turns.begin(resource.affinity());
                return None;
            }
            _ => return None,
        }
        if self.turn.is_some_and(|turn| turns.renew(turn, now())) {
            return None;
        }
        let hash = resource.affinity();
        let lined = match self.number {
            None => turns.begin(hash).map_or_else(|| turns.line_up(hash, None), Ok),
            number => turns.line_up(hash, number),
        };
        match lined {
            Ok(turn) => {
                self.give(turn);
                None
            }
            Err(ticket) => {
                self.number = Some(ticket.number);
                Some(ticket)
            }
        }
    }

    pub(super) fn give(&mut self, turn: Turn) {
        self.turn = Some(turn);
        self.number.get_or_insert(turn.number);
    }

    /// Whether it may wait in a node's queue.
    pub(super) fn may_queue(&self) -> bool {
        match self.kind {
            Kind::InLine => self.turn.is_some(),
            Kind::QueueOnly | Kind::QueueOnce => true,
            Kind::Beside | Kind::Apart => false,
        }
    }

    /// Whether it does not wait there.
    pub(super) fn queues_once(&self) -> bool {
        self.kind == Kind::QueueOnce
    }

    pub(super) fn turn(&self) -> Option<Turn> {
        self.turn
    }

    /// The turn, for what was won by it.
    pub(super) fn take(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    /// Another has taken the turn. One whose line was let go tries without it: by this one it would
    /// ask for a place again and again, and lose it each time.
    pub(super) fn lose_turn(&mut self) {
        self.turn = None;
    }

    /// Passes the turn on.
    pub(super) fn pass(&mut self, leases: &Leases) {
        if let Some(turn) = self.turn.take() {
            leases.context.turns().pass(turn);
        }
    }

    /// Keeps the turn through a pause until then, of which the first second counts.
    pub(super) fn renew_for_pause(&self, leases: &Leases, now: Moment, until: Moment) {
        if let Some(turn) = self.turn {
            let until = until.min(now.plus(OVERTAKEN_AFTER.saturating_mul(2)));
            leases.context.turns().renew(turn, until);
        }
    }

    /// The line was let go.
    pub(super) fn see_for_itself(&mut self) {
        self.is_let_go = true;
    }

    /// What the nodes have said: whether they are there.
    pub(super) fn learn(&mut self, leases: &Leases, is_unavailable: bool) {
        match self.turn {
            Some(turn) if is_unavailable => leases.context.turns().let_go(turn),
            _ if !is_unavailable => self.is_let_go = false,
            _ => {}
        }
    }
}

/// What has come of standing in line.
pub(super) enum Ended {
    Turn(Turn),
    LetGo,
    /// The wait is over, or the locker was shut down.
    Over,
}

/// What has ended a sleep.
enum Woken {
    Told(Told),
    ByTime,
    /// The locker was shut down.
    Closed,
}

/// Whom the first in line saw before it last, and since when.
type Seen = Option<(Turn, Moment)>;

/// Stands in line until it is its turn, but not behind `until`.
pub(super) async fn stand(
    leases: Arc<Leases>,
    resource: Resource,
    ticket: Ticket,
    until: Moment,
) -> Ended {
    let context = &leases.context;
    let clock = context.nodes.clock();
    let mut closed = pin!(context.closed());
    let mut seen = None;
    loop {
        let at = clock.read();
        if at.now >= until {
            return Ended::Over;
        }
        let lapse = lapse(&leases, &resource, &ticket, &mut seen, at);
        if let Some((rival, lapse)) = lapse {
            if lapse <= at.now {
                ticket.overtake(rival);
            }
        }
        let wake = lapse.map_or(until, |(_, lapse)| lapse.min(until));
        let Ok(mut timer) = context.nodes.sleep_until(wake) else { return Ended::LetGo };
        let woken = poll_fn(|cx| {
            if closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Woken::Closed);
            }
            if let Poll::Ready(told) = ticket.poll(cx) {
                return Poll::Ready(Woken::Told(told));
            }
            Pin::new(&mut timer).poll(cx).map(|()| Woken::ByTime)
        });
        match woken.await {
            Woken::Closed => return Ended::Over,
            Woken::Told(Told::Turn(turn)) => {
                context.counters.note(Cause::InLine);
                return Ended::Turn(turn);
            }
            Woken::Told(Told::LetGo) => return Ended::LetGo,
            Woken::Told(Told::First) | Woken::ByTime => {}
        }
    }
}

/// Who has the turn, as the first in line sees it, and when that may be overtaken: half a second
/// behind its last sign of life, or when the lease of this very lock is over: another key may have
/// the same hash, and its lock is in no one's way.
fn lapse(
    leases: &Leases,
    resource: &Resource,
    ticket: &Ticket,
    seen: &mut Seen,
    at: Reading,
) -> Option<(Turn, Moment)> {
    let Rival { turn, alive, hold } = ticket.rival()?;
    if let Some(end) = hold.and_then(|hold| leases.held_until(hold, resource, at)) {
        return Some((turn, end));
    }
    let since = seen.filter(|(rival, _)| *rival == turn).map_or(at.now, |(_, since)| since);
    *seen = Some((turn, since));
    Some((turn, since.max(alive).plus(OVERTAKEN_AFTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a queue it would lose its place again and again, for it has no turn to keep.
    #[test]
    fn one_that_was_overtaken_where_the_line_was_let_go_waits_in_no_queue() {
        let mut order = Order::new(Kind::InLine);
        order.give(Turn::new(7, NonZeroU64::MIN));
        order.see_for_itself();
        assert!(order.may_queue());
        order.lose_turn();
        assert!(!order.may_queue());
    }
}
