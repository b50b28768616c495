//! The states and words of the script that asks by tickets: a part of the table in `scripts`.
//!
//! Locks and queues are those of [`queued`](super::queued), where places are tickets.

use super::queued::{
    ABSENT, CROWDS, LOCK, LOCK_EDGES, NOW, ODD, OWNERS, OWNERS_WAIT, QUEUE, QUEUE_EDGES,
    READERS_WAIT,
};
use super::{Calls, Grid, SERVICE, State, TTLS, Words, all, plain, usual};

/// What `ticket_ask.lua` is run on.
pub(super) const ASKED: &[Grid] = &[
    usual(&[LOCK, QUEUE]),
    all(&[LOCK_EDGES, QUEUE_EDGES]),
    plain(&[OWNERS, QUEUE_EDGES]),
    plain(&[LOCK_EDGES, TICKETS]),
    plain(&[LOCK_EDGES, OWNERS_WAIT]),
    plain(&[LOCK_EDGES, ODD]),
    plain(&[LOCK_EDGES, NOW]),
    plain(&[ABSENT, CROWDS]),
    plain(&[LOCK_EDGES, READERS_WAIT]),
];

/// What it is run on behind `standing.lua`.
pub(super) const ASKED_WHERE_IT_VOTES: &[Grid] = &[usual(&[SERVICE, LOCK_EDGES, QUEUE_EDGES])];

/// Tickets beside ours, which is 5 where it is told.
const TICKETS: &[State] = &[
    ("hers is lower", "ZADD z 4 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    ("hers is the same", "ZADD z 5 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    ("hers is higher", "ZADD z 6 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    ("the same of one after us", "ZADD z 5 w | ZADD b +1000 w"),
    ("we stand after her", "ZADD z 4 c0ffee123@her 5 v | ZADD b +1000 v +1100 c0ffee123@her"),
    (
        "we stand before her, who has it",
        "SET k c0ffee123@her PX 60000 | ZADD z 5 v 6 c0ffee123@her
         | ZADD b +1000 v +1100 c0ffee123@her",
    ),
    (
        "she has it, and he waits before us",
        "SET k c0ffee123@her PX 60000 | ZADD z 3 c0ffee123@her 4 d1@him 5 v
         | ZADD b +1000 v +1100 c0ffee123@her +1200 d1@him",
    ),
    ("a high one that is dead", "ZADD z 9 x | ZADD b 1 x"),
];

pub(super) fn ask() -> Calls {
    let words = |value, ticket, ttl| vec!["3", "k", "z", "b", value, ticket, ttl];
    let usual = ["0", "5"].map(|ticket| words("v", ticket, "10000")).into();
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("v", "5", ttl)).into();
    edges.extend(TTLS.map(|ticket| words("v", ticket, "700")));
    edges.extend(["9007199254740991", "9007199254740992"].map(|it| words("v", it, "10000")));
    edges.extend(["", "a", "c0ffee123@her", "new"].map(|value| words(value, "5", "10000")));
    Calls { usual, edges }
}

pub(super) fn ask_where_it_votes() -> Calls {
    let words =
        |ticket, name| vec!["5", "e", "q", "k", "z", "b", "v", ticket, "10000", "30000", name];
    Calls { usual: vec![words("0", "abc"), words("5", "abc"), words("5", "def")], edges: vec![] }
}
