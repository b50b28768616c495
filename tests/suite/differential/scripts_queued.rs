//! The states and words of the scripts that keep a queue: a part of the table in `scripts`.
//!
//! The lock is `k`, its queue `z`, its beats `b`. We are `v`. A value names its owner behind digits
//! and an `@`: `her` is listened to ([`HEARD`](super::HEARD)), `him` is not.
//!
//! Beats end in 1970, or soon by the clock of the server that is asked. Where time stands still, it
//! stands at 1,000,000 seconds.

use super::{Calls, Grid, SERVICE, State, TTLS, Words, all, plain, usual};

/// What `turn_ask.lua` is run on.
pub(super) const ASKED: &[Grid] = &[
    usual(&[LOCK, QUEUE]),
    all(&[LOCK_EDGES, QUEUE_EDGES]),
    plain(&[OWNERS, QUEUE_EDGES]),
    plain(&[LOCK_EDGES, ODD]),
    plain(&[LOCK_EDGES, NOW]),
    plain(&[ABSENT, CROWDS]),
    plain(&[LOCK_EDGES, READERS_WAIT]),
];

/// What it is run on behind `standing.lua`.
pub(super) const ASKED_WHERE_IT_VOTES: &[Grid] = &[usual(&[SERVICE, LOCK_EDGES, QUEUE_EDGES])];

/// What `turn_leave.lua` is run on.
pub(super) const LEFT: &[Grid] = &[
    all(&[LOCK, QUEUE]),
    plain(&[OURS, OWNERS_WAIT]),
    plain(&[LOCK_EDGES, ODD]),
    plain(&[LOCK_EDGES, NOW]),
    plain(&[OURS, CROWDS]),
    plain(&[LOCK_EDGES, READERS_WAIT]),
];

pub(super) const ABSENT: &[State] = &[("absent", "")];
const OURS: &[State] = &[("ours", "SET k v PX 60000")];

pub(super) const LOCK: &[State] = &[
    ("absent", ""),
    ("ours", "SET k v PX 60000"),
    ("hers", "SET k c0ffee123@her PX 60000"),
    ("ours, revoked", "SET k v! PX 60000"),
    ("hers, revoked", "SET k c0ffee123@her! PX 60000"),
    ("hers, without end", "SET k c0ffee123@her"),
    ("hers, just expired", "SET k c0ffee123@her PX 1 | PASS 2000"),
    ("his", "SET k d1@him PX 60000"),
    ("a word", "SET k w PX 60000"),
    ("readers", "SET k quorlock:readers PX 60000"),
    ("a hash", "HSET k f v"),
];

pub(super) const LOCK_EDGES: &[State] = &[
    ("absent", ""),
    ("ours", "SET k v PX 60000"),
    ("hers", "SET k c0ffee123@her PX 60000"),
    ("empty", "SET k '' PX 60000"),
    ("readers", "SET k quorlock:readers PX 60000"),
    ("a list that ends", "RPUSH k v | PEXPIRE k 60000"),
];

/// Who else can hold the lock.
pub(super) const OWNERS: &[State] = &[
    ("more before the digits", "SET k xd1@her PX 60000"),
    ("no digits", "SET k @her PX 60000"),
    ("digits alone", "SET k d1 PX 60000"),
    ("an owner of two words", "SET k D1@a@b PX 60000"),
    ("an owner without a name", "SET k d1@ PX 60000"),
    ("a revoked one without a name", "SET k d1@! PX 60000"),
    ("an owner with a mark in its name", "SET k d1@h!er PX 60000"),
];

/// Who else can wait.
pub(super) const OWNERS_WAIT: &[State] = &[
    ("more before the digits", "ZADD z 1 xd1@her | ZADD b +1000 xd1@her"),
    ("no digits", "ZADD z 1 @her | ZADD b +1000 @her"),
    ("digits alone", "ZADD z 1 d1 | ZADD b +1000 d1"),
    ("an owner of two words", "ZADD z 1 D1@a@b | ZADD b +1000 D1@a@b"),
    ("an owner without a name", "ZADD z 1 d1@ | ZADD b +1000 d1@"),
    ("nothing at all", "ZADD z 1 '' | ZADD b +1000 ''"),
];

/// Who waits, and who of them lives.
pub(super) const QUEUE: &[State] = &[
    ("none waits", ""),
    ("we wait", "ZADD z 1 v | ZADD b +1000 v | PEXPIRE z 60000 | PEXPIRE b 60000"),
    ("we wait, without a beat", "ZADD z 1 v"),
    ("we wait, our beat is over", "ZADD z 1 v | ZADD b 1 v"),
    ("we before her", "ZADD z 1 v 2 c0ffee123@her | ZADD b +1000 c0ffee123@her +1100 v"),
    ("she before us", "ZADD z 1 c0ffee123@her 2 v | ZADD b +1000 v +1100 c0ffee123@her"),
    ("she waits", "ZADD z 5 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    (
        "she before him and another",
        "ZADD z 1 c0ffee123@her 2 d1@him 3 w | \
         ZADD b +1000 w +1100 c0ffee123@her +2500 d1@him",
    ),
    ("he waits", "ZADD z 1 d1@him | ZADD b +1000 d1@him"),
    ("a word waits", "ZADD z 1 w | ZADD b +1000 w"),
    ("a dead one before us", "ZADD z 1 x 2 v | ZADD b 1 x +1000 v"),
    ("two dead ones before her", "ZADD z 1 x 2 y 3 c0ffee123@her | ZADD b 1 x +1000 c0ffee123@her"),
    ("two dead ones", "ZADD z 1 x 2 y | ZADD b 1 x 2 y"),
    ("a beat of hers, but none waits", "ZADD b +1000 c0ffee123@her"),
    ("a hash as queue", "HSET z f v"),
    ("a text as beats", "SET b v PX 60000"),
    ("she waits, a list as beats", "ZADD z 1 c0ffee123@her | RPUSH b v"),
];

/// Readers among those that wait.
pub(super) const READERS_WAIT: &[State] = &[
    ("a reader waits", "ZADD z 1 rc0ffee123@her | ZADD b +1000 rc0ffee123@her"),
    ("a dead reader waits", "ZADD z 1 rc0ffee123@her | ZADD b 1 rc0ffee123@her"),
    (
        "a reader waits before a writer",
        "ZADD z 1 rc0ffee123@her 2 d1@her | ZADD b +1000 rc0ffee123@her +1000 d1@her",
    ),
    (
        "a writer waits before a reader",
        "ZADD z 1 d1@her 2 rc0ffee123@her | ZADD b +1000 rc0ffee123@her +1000 d1@her",
    ),
    (
        "two readers and we",
        "ZADD z 1 rc0ffee123@her 2 rd1@her 3 v 4 rv
         | ZADD b +1000 rc0ffee123@her +1000 rd1@her +1000 v +1000 rv",
    ),
    ("nine dead readers", "ZADD z 1 ra 2 rb 3 rc 4 rd 5 re 6 rf 7 rg 8 rh 9 ri"),
    ("we as a reader", "ZADD z 1 rv | ZADD b +1000 rv"),
    ("a reader without a name", "ZADD z 1 r | ZADD b +1000 r"),
    ("a reader of no owner", "ZADD z 1 rd1 | ZADD b +1000 rd1"),
];

pub(super) const QUEUE_EDGES: &[State] = &[
    ("none waits", ""),
    ("a dead one before us", "ZADD z 1 x 2 v | ZADD b 1 x +1000 v"),
    ("she waits", "ZADD z 5 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
];

/// Scores that only others can have given.
pub(super) const ODD: &[State] = &[
    ("places with fractions", "ZADD z 1.5 x 2.5 v 3.5 w | ZADD b 1 x +1000.5 w"),
    ("the last place", "ZADD z inf c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    ("the place before the first", "ZADD z -inf x"),
    ("a large place", "ZADD z 9007199254740992 x"),
    ("a larger place", "ZADD z 1e25 x"),
    ("a beat without end", "ZADD z 1 c0ffee123@her | ZADD b inf c0ffee123@her"),
    ("a later beat", "ZADD z 1 c0ffee123@her | ZADD b +2500 c0ffee123@her"),
    ("a beat of tomorrow", "ZADD z 1 c0ffee123@her | ZADD b +86400000 c0ffee123@her"),
    ("a beat too far away", "ZADD z 1 c0ffee123@her | ZADD b 1e25 c0ffee123@her"),
    ("a beat before all time", "ZADD z 1 c0ffee123@her | ZADD b -inf c0ffee123@her"),
];

/// A beat that ends about now.
pub(super) const NOW: &[State] = &[
    (
        "a beat until now",
        "ZADD z 1 c0ffee123@her | ZADD b 1000000999 c0ffee123@her | PASS 999500 | FROZEN",
    ),
    (
        "a beat until before",
        "ZADD z 1 c0ffee123@her | ZADD b 1000000998 c0ffee123@her | PASS 999500 | FROZEN",
    ),
    ("a beat until the latest", "ZADD z 1 c0ffee123@her | ZADD b +3000 c0ffee123@her | FROZEN"),
    ("a beat until later", "ZADD z 1 c0ffee123@her | ZADD b +3001 c0ffee123@her | FROZEN"),
    ("a beat until our next", "ZADD z 1 c0ffee123@her | ZADD b 1000001501 c0ffee123@her | FROZEN"),
    (
        "a beat until before our next",
        "ZADD z 1 c0ffee123@her | ZADD b 1000001499 c0ffee123@her | FROZEN",
    ),
];

/// As many dead ones as are looked at, one fewer, and one more.
pub(super) const CROWDS: &[State] = &[
    ("127 dead ones before us", "CROWD 127 | ZADD z 200 v"),
    (
        "127 dead ones before her",
        "CROWD 127 | ZADD z 200 c0ffee123@her | ZADD b +1000 c0ffee123@her",
    ),
    (
        "128 dead ones before her",
        "CROWD 128 | ZADD z 200 c0ffee123@her | ZADD b +1000 c0ffee123@her",
    ),
    ("129 dead ones", "CROWD 129"),
];

pub(super) fn ask() -> Calls {
    let words = |value, ttl| vec!["3", "k", "z", "b", value, ttl];
    let reads = vec!["5", "k", "r", "g", "z", "b", "v", "10000"];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("v", ttl)).into();
    edges.extend([words("", "10000"), words("c0ffee123@her", "10000"), words("new", "10000")]);
    edges.push(vec!["5", "k", "r", "g", "z", "b", "new", "10000"]);
    Calls { usual: vec![words("v", "10000"), reads], edges }
}

pub(super) fn ask_where_it_votes() -> Calls {
    let words = |name| vec!["5", "e", "q", "k", "z", "b", "v", "10000", "30000", name];
    let reads = vec!["7", "e", "q", "k", "r", "g", "z", "b", "v", "10000", "30000", "abc"];
    Calls { usual: vec![words("abc"), words("def"), reads], edges: Vec::new() }
}

pub(super) fn leave() -> Calls {
    let words = |value| vec!["3", "k", "z", "b", value];
    Calls { usual: vec![words("v")], edges: ["", "w", "c0ffee123@her"].map(words).into() }
}
