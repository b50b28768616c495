//! The states and words of the scripts for locks of several slots: a part of the table in
//! `scripts`.
//!
//! The slots are `k`, `l` and `f`, of some locks also `g`; their queue is `z`, its beats `b`. We
//! are `v`. Who waits, and by when, is as in `queued`.

use super::queued::{CROWDS, NOW, ODD, OWNERS_WAIT, QUEUE, QUEUE_EDGES};
use super::{Calls, Grid, SERVICE, State, TTLS, Words, all, plain, usual};

/// What `slot_ask.lua` is run on.
pub(super) const ASKED: &[Grid] = &[
    all(&[SLOTS_EDGES, QUEUE_EDGES]),
    usual(&[SLOTS, WAITS]),
    plain(&[FIRST, SECOND, THIRD]),
    plain(&[SLOTS, QUEUE]),
    plain(&[FREE_AND_FULL, ODD]),
    plain(&[FREE_AND_FULL, NOW]),
    plain(&[FREE_AND_FULL, CROWDS]),
    plain(&[FREE_AND_FULL, BEATS]),
    plain(&[NEARLY_FREE, QUEUE_EDGES]),
    plain(&[FREE, OWNERS_WAIT_BEHIND_US]),
];

/// What it is run on behind `standing.lua`.
pub(super) const ASKED_WHERE_IT_VOTES: &[Grid] = &[usual(&[SERVICE, SLOTS_EDGES, WAITS])];

/// What `slot_leave.lua` is run on.
pub(super) const LEFT: &[Grid] = &[
    all(&[SLOTS_EDGES, QUEUE_EDGES]),
    usual(&[SLOTS, WAITS]),
    plain(&[FIRST, SECOND, THIRD]),
    plain(&[SLOTS, QUEUE]),
    plain(&[OURS, OWNERS_WAIT]),
    plain(&[OURS, ODD]),
    plain(&[OURS, NOW]),
    plain(&[OURS, CROWDS]),
];

const FREE: &[State] = &[("all free", "")];
const OURS: &[State] = &[("one ours", "SET k v PX 60000")];

const FREE_AND_FULL: &[State] = &[
    ("all free", ""),
    ("all taken", "SET k w PX 60000 | SET l x PX 30000 | SET f y PX 90000 | SET g y PX 90000"),
];

const NEARLY_FREE: &[State] = &[(
    "all taken, one in its last millisecond",
    "SET k w PX 60000 | SET l x PX 30000 | SET f y PX 1 | SET g y PX 90000 | PASS 500 | FROZEN",
)];

/// What the slots can hold together.
const SLOTS: &[State] = &[
    ("all free", ""),
    ("one taken", "SET k w PX 60000"),
    ("two taken", "SET k w PX 60000 | SET l x PX 30000"),
    ("all taken", "SET k w PX 60000 | SET l x PX 30000 | SET f y PX 90000 | SET g y PX 80000"),
    ("all taken, without end", "SET k w | SET l x PX 30000 | SET f y | SET g y"),
    ("one ours", "SET l v PX 60000"),
    ("one ours, the others taken", "SET k w PX 60000 | SET l v PX 5000 | SET f y PX 90000"),
    ("two ours", "SET l v PX 60000 | SET f v"),
    ("all ours", "SET k v PX 60000 | SET l v PX 5000 | SET f v PX 90000 | SET g v PX 90000"),
    ("just expired", "SET k w PX 1 | SET l v PX 1 | SET f x PX 30000 | PASS 2000"),
    ("other types", "HSET k f v | RPUSH l v | PEXPIRE l 60000"),
];

const SLOTS_EDGES: &[State] = &[
    ("all free", ""),
    ("two taken", "SET k w PX 60000 | SET l x PX 30000"),
    ("one ours, one taken", "SET l v PX 60000 | SET f x PX 30000"),
];

/// What each of them can hold.
const FIRST: &[State] = &[
    ("first free", ""),
    ("first ours", "SET k v PX 20000"),
    ("first another's", "SET k w PX 60000"),
    ("first without end", "SET k w"),
    ("first a hash", "HSET k f v"),
];

const SECOND: &[State] = &[
    ("second free", ""),
    ("second ours", "SET l v PX 60000"),
    ("second ours, without end", "SET l v"),
    ("second ours, revoked", "SET l v! PX 60000"),
    ("second another's", "SET l x PX 30000"),
    ("second a list that ends", "RPUSH l v | PEXPIRE l 45000"),
];

const THIRD: &[State] = &[
    ("third free", ""),
    ("third ours", "SET f v PX 120000"),
    ("third another's", "SET f y PX 90000"),
    ("third empty", "SET f '' PX 50000"),
    ("third just expired", "SET f v PX 1 | PASS 2000"),
];

/// Who waits, where much can be in its way.
const WAITS: &[State] = &[
    ("none waits", ""),
    ("we before her", "ZADD z 1 v 2 c0ffee123@her | ZADD b +1000 c0ffee123@her +1100 v"),
    ("a dead one before us", "ZADD z 1 x 2 v | ZADD b 1 x +1000 v"),
    ("she waits", "ZADD z 5 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
];

/// Beats that are over, and what else they can be.
const BEATS: &[State] = &[
    (
        "nine dead ones",
        "ZADD z 1 a 2 c 3 d 4 e 5 h 6 i 7 j 8 m 9 n | ZADD b 1 a 2 c 3 d 4 e 5 h 6 i 7 j 8 m 9 n",
    ),
    ("our beat is over, and another's", "ZADD z 1 v 2 x | ZADD b 1 v 2 x"),
    ("our beat is over before hers", "ZADD z 1 v 2 c0ffee123@her | ZADD b 1 v +1000 c0ffee123@her"),
    ("dead ones that do not wait", "ZADD b 1 x 2 y"),
    ("a later beat with a fraction", "ZADD z 1 c0ffee123@her | ZADD b +2000.25 c0ffee123@her"),
];

/// Who else can wait behind us.
const OWNERS_WAIT_BEHIND_US: &[State] = &[
    ("an owner", "ZADD z 1 v 2 c0ffee123@her | ZADD b +1000 c0ffee123@her +1100 v"),
    ("an owner who is dead", "ZADD z 1 v 2 c0ffee123@her | ZADD b 1 c0ffee123@her +1100 v"),
    ("no owner", "ZADD z 1 v 2 d1 | ZADD b +1000 d1 +1100 v"),
];

pub(super) fn ask() -> Calls {
    let words =
        |act, weight, start| vec!["5", "k", "l", "f", "z", "b", "v", act, weight, start, "10000"];
    let lives = |ttl| vec!["5", "k", "l", "f", "z", "b", "v", "wait", "1", "1", ttl];
    let four = |weight, start| {
        vec!["6", "k", "l", "f", "g", "z", "b", "v", "wait", weight, start, "10000"]
    };
    let one = |act| vec!["3", "k", "z", "b", "v", act, "1", "0", "10000"];
    let mut edges: Vec<Words> = TTLS.map(lives).into();
    for weight in ["0", "1", "2", "3", "4"] {
        edges.extend(["0", "1", "2"].map(|start| words("wait", weight, start)));
    }
    edges.extend(["3", "4", "1000001", "-1"].map(|start| words("try", "2", start)));
    edges.extend(["", "WAIT", "waits"].map(|act| words(act, "3", "0")));
    edges.extend([four("1", "3"), four("4", "2"), one("wait"), one("try")]);
    let of = |value| vec!["5", "k", "l", "f", "z", "b", value, "wait", "2", "2", "10000"];
    edges.extend(["", "w", "new", "c0ffee123@her"].map(of));
    let usual = vec![words("wait", "2", "1"), words("try", "1", "2"), four("3", "0")];
    Calls { usual, edges }
}

pub(super) fn ask_where_it_votes() -> Calls {
    let words = |act, name| {
        let slots = ["7", "e", "q", "k", "l", "f", "z", "b", "v"];
        [&slots[..], &[act, "2", "1", "10000", "30000", name]].concat()
    };
    Calls { usual: vec![words("wait", "abc"), words("try", "def")], edges: Vec::new() }
}

pub(super) fn leave() -> Calls {
    let words = |value| vec!["5", "k", "l", "f", "z", "b", value];
    let mut edges: Vec<Words> = ["", "w", "x", "c0ffee123@her"].map(words).into();
    edges.extend([vec!["3", "l", "z", "b", "v"], vec!["4", "f", "k", "z", "b", "v"]]);
    Calls { usual: vec![words("v")], edges }
}
