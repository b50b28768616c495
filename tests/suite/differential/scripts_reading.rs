//! The states and words of the scripts for readers: a part of the table in `scripts`.
//!
//! The lock is `k`, its readers `r`, its gate `g`, its queue `z`, its beats `b`. We are `v`, and
//! wait as `rv`. Ends are in 1970, or a while away by the clock of the server that is asked; where
//! time stands still, it stands at 1,000,000 seconds.

use super::{Calls, Grid, SERVICE, State, TTLS, Words, all, plain, usual};

/// What `read.lua` is run on.
pub(super) const READ: &[Grid] = &[
    all(&[LOCK, READERS]),
    usual(&[LOCK_EDGES, READERS_EDGES, GATE]),
    usual(&[LOCK_EDGES, WAITS]),
    plain(&[HELD, ENDS]),
    plain(&[HELD, GATE_EDGES]),
];

/// What it is run on behind `standing.lua`.
pub(super) const READ_WHERE_IT_VOTES: &[Grid] = &[usual(&[SERVICE, LOCK_EDGES, READERS_EDGES])];

/// What `read_extend.lua` is run on.
pub(super) const EXTENDED: &[Grid] = &[all(&[LOCK, READERS]), plain(&[HELD, ENDS])];

/// What `read_leave.lua` is run on.
pub(super) const LEFT: &[Grid] =
    &[all(&[LOCK, READERS]), usual(&[LOCK_EDGES, READERS_EDGES, WAITS]), plain(&[HELD, ENDS])];

/// What `downgrade.lua` is run on.
pub(super) const DOWNGRADED: &[Grid] =
    &[all(&[LOCK, READERS_EDGES]), usual(&[WRITTEN, WAITS]), plain(&[WRITTEN_AT_REST])];

const LOCK: &[State] = &[
    ("absent", ""),
    ("readers", "SET k quorlock:readers PX 60000"),
    ("readers, soon over", "SET k quorlock:readers PX 3000"),
    ("readers, longer", "SET k quorlock:readers PX 120000"),
    ("readers, without end", "SET k quorlock:readers"),
    ("readers, just expired", "SET k quorlock:readers PX 1 | PASS 2000"),
    ("a writer's", "SET k w PX 60000"),
    ("ours as a writer", "SET k v PX 60000"),
    ("ours as a writer, revoked", "SET k v! PX 60000"),
    ("a hash", "HSET k f v"),
    ("a list that ends", "RPUSH k v | PEXPIRE k 60000"),
];

const LOCK_EDGES: &[State] = &[
    ("absent", ""),
    ("readers", "SET k quorlock:readers PX 60000"),
    ("a writer's", "SET k w PX 60000"),
];

/// We have the lock as a writer.
const WRITTEN: &[State] = &[
    ("ours as a writer", "SET k v PX 60000"),
    ("ours as a writer, revoked", "SET k v! PX 60000"),
    ("ours, soon over", "SET k v PX 3000"),
    ("ours, without end", "SET k v"),
];

const WRITTEN_AT_REST: &[State] = &[
    ("ours at rest", "SET k v PX 60000 | FROZEN"),
    ("ours late in a second", "SET k v PX 60000 | FROZEN | PASS 999500"),
];

const HELD: &[State] = &[("readers", "SET k quorlock:readers PX 60000 | FROZEN")];

/// Who reads.
const READERS: &[State] = &[
    ("no reader", ""),
    ("we", "ZADD r +50000 v | PEXPIRE r 50000"),
    ("we, without end", "ZADD r +50000 v"),
    ("we, for long", "ZADD r +150000 v | PEXPIRE r 150000"),
    ("we, until long ago", "ZADD r 1 v"),
    ("she", "ZADD r +50000 w | PEXPIRE r 50000"),
    ("she, soon over", "ZADD r +3000 w | PEXPIRE r 3000"),
    ("she, until long ago", "ZADD r 1 w"),
    ("she and we", "ZADD r +50000 w +30000 v | PEXPIRE r 50000"),
    ("we and she", "ZADD r +30000 w +50000 v | PEXPIRE r 50000"),
    ("three of them", "ZADD r +30000 w +50000 v +45000 x | PEXPIRE r 50000"),
    ("we between two", "ZADD r +30000 w +45000 v +50000 x | PEXPIRE r 50000"),
    ("we before two", "ZADD r +30000 v +45000 w +50000 x | PEXPIRE r 50000"),
    ("a hash as readers", "HSET r f v"),
    ("a text as readers", "SET r v PX 60000"),
];

const READERS_EDGES: &[State] = &[
    ("no reader", ""),
    ("we", "ZADD r +50000 v | PEXPIRE r 50000"),
    ("her with a name", "ZADD r +50000 c0ffee123@her | PEXPIRE r 50000"),
    ("she", "ZADD r +50000 w | PEXPIRE r 50000"),
];

/// Ends about now, where time stands still, and scores that only others can have given.
const ENDS: &[State] = &[
    ("we, late in a second", "ZADD r +5000 v | PASS 999500"),
    ("she, late in a second", "ZADD r +90000 w | PASS 999500"),
    ("she until the last of a second", "ZADD r 1000000999 w +5000 v | PASS 999500"),
    ("she until the next second", "ZADD r 1000001000 w +5000 v | PASS 999500"),
    ("we until now", "ZADD r 1000000000 v"),
    ("we until before", "ZADD r 999999999 v"),
    ("she until now", "ZADD r 1000000000 w +5000 v"),
    ("she until before", "ZADD r 999999999 w +5000 v"),
    ("she until after", "ZADD r 1000000001 w +5000 v"),
    ("she as long as we", "ZADD r 1000060000 w 1000060000 v"),
    ("we as long as is asked for", "ZADD r 1000010000 v"),
    ("a fraction", "ZADD r 1000005000.5 w 1000006000.5 v"),
    ("without end", "ZADD r inf w"),
    ("we without end", "ZADD r inf v"),
    ("before all time", "ZADD r -inf w +5000 v"),
];

const GATE: &[State] = &[
    ("the gate is open", ""),
    ("the gate is shut", "SET g shut PX 1500"),
    ("the gate is shut, without end", "SET g shut"),
    ("the gate is shut for too long", "SET g shut PX 60000"),
    ("the gate is shut from our queue", "SET g 77:shut PX 1500"),
    ("the gate is shut from our queue for too long", "SET g 77:shut PX 60000"),
    ("the gate is shut from another queue", "SET g 177:shut PX 1500"),
    ("the gate is shut from a longer queue", "SET g 777:shut PX 1500"),
    ("the gate is shut by a queue's name alone", "SET g 77 PX 1500"),
    ("the gate is shut by a colon", "SET g : PX 1500"),
    ("the gate is shut by a word with our queue in it", "SET g x77:shut PX 1500"),
    ("a list as gate", "RPUSH g a | PEXPIRE g 2000"),
];

/// The longest time for which a gate counts. A gate of one millisecond more comes to be such a one
/// while it is looked at, unless time stands still.
const GATE_EDGES: &[State] = &[
    ("the gate is shut for three seconds", "SET g shut PX 3000"),
    ("the gate is shut for longer", "SET g shut PX 3001 | FROZEN"),
];

/// Who waits.
const WAITS: &[State] = &[
    ("none waits", ""),
    ("we wait", "ZADD z 1 rv | ZADD b +1000 rv"),
    ("a writer waits", "ZADD z 1 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    ("a dead writer waits", "ZADD z 1 c0ffee123@her | ZADD b 1 c0ffee123@her"),
    (
        "a reader waits before a writer",
        "ZADD z 1 rc0ffee123@her 2 d1@him | ZADD b +1000 rc0ffee123@her +1000 d1@him",
    ),
    (
        "two readers wait",
        "ZADD z 1 rc0ffee123@her 2 rd1@her | ZADD b +1000 rc0ffee123@her +999 rd1@her",
    ),
    ("we wait as a writer, and a reader", WE_BEFORE_A_READER),
    ("we wait as a writer, and another", "ZADD z 1 v 2 d1@her | ZADD b +1000 v +1000 d1@her"),
    ("we and a reader wait", "ZADD z 1 rv 2 rc0ffee123@her | ZADD b +1000 rv +1000 rc0ffee123@her"),
    ("we wait before a writer", "ZADD z 1 rv 2 c0ffee123@her | ZADD b +1000 c0ffee123@her"),
    ("we wait before a writer and a reader", WE_BEFORE_BOTH),
    ("we wait before a dead writer and another", WE_BEFORE_A_DEAD_ONE),
    ("we wait before a reader, and a writer whose beat ends first", WE_BEFORE_AN_EARLIER_BEAT),
    ("a hash as queue", "HSET z f v"),
    ("a text as beats", "ZADD z 1 rv | SET b v PX 60000"),
];

/// Without one that is over while it is looked at, and one whose end is rounded to an even number
/// of milliseconds: two clocks may do that either way.
fn ttls() -> impl Iterator<Item = &'static str> {
    TTLS.into_iter().filter(|ttl| !["1", "9007199254740993"].contains(ttl))
}

const WE_BEFORE_BOTH: &str = "ZADD z 1 rv 2 c0ffee123@her 3 rd1@him | \
    ZADD b +1000 rv +1000 c0ffee123@her +1000 rd1@him";

const WE_BEFORE_AN_EARLIER_BEAT: &str = "ZADD z 1 rv 2 rd1@him 3 c0ffee123@her | \
    ZADD b +1000 rv +1100 rd1@him +900 c0ffee123@her";

const WE_BEFORE_A_DEAD_ONE: &str =
    "ZADD z 1 rv 2 d1@him 3 c0ffee123@her | ZADD b 1 d1@him +1000 c0ffee123@her";

const WE_BEFORE_A_READER: &str =
    "ZADD z 1 v 2 rc0ffee123@her | ZADD b +1000 v +1000 rc0ffee123@her";

pub(super) fn read() -> Calls {
    let words = |value, place, ttl| vec!["5", "k", "r", "g", "z", "b", value, place, ttl];
    let mut edges: Vec<Words> = ttls().map(|ttl| words("v", "0", ttl)).collect();
    edges.extend([words("", "0", "10000"), words("w", "0", "10000"), words("w", "77", "10000")]);
    edges.extend([words("v", "", "10000"), words("v", "7", "10000")]);
    let usual = [("0", "10000"), ("77", "10000"), ("0", "90000")];
    Calls { usual: usual.map(|(place, ttl)| words("v", place, ttl)).into(), edges }
}

pub(super) fn read_where_it_votes() -> Calls {
    let words = |place, name| {
        vec!["7", "e", "q", "k", "r", "g", "z", "b", "v", place, "10000", "30000", name]
    };
    Calls {
        usual: ["abc", "def"].map(|name| words("0", name)).into(),
        edges: vec![words("77", "abc")],
    }
}

pub(super) fn extend() -> Calls {
    let words = |value, ttl| vec!["5", "k", "r", "g", "z", "b", value, ttl];
    let exactly = |value, ttl| vec!["5", "k", "r", "g", "z", "b", value, ttl, "exactly"];
    let mut edges: Vec<Words> = ttls().map(|ttl| words("v", ttl)).collect();
    edges.extend(["0", "x", "60000"].map(|ttl| exactly("v", ttl)));
    edges.extend([words("", "10000"), words("w", "10000"), exactly("w", "10000")]);
    let mut usual: Vec<Words> = ["10000", "90000"].map(|ttl| words("v", ttl)).into();
    usual.extend(["50", "90000"].map(|ttl| exactly("v", ttl)));
    Calls { usual, edges }
}

pub(super) fn downgrade() -> Calls {
    let words = |value, ttl| vec!["5", "k", "r", "g", "z", "b", value, ttl];
    let mut edges: Vec<Words> = ttls().map(|ttl| words("v", ttl)).collect();
    edges.extend([words("", "10000"), words("w", "10000")]);
    Calls { usual: ["10000", "90000"].map(|ttl| words("v", ttl)).into(), edges }
}

pub(super) fn leave() -> Calls {
    let words = |value| vec!["5", "k", "r", "g", "z", "b", value];
    Calls {
        usual: ["v", "c0ffee123@her"].map(words).into(),
        edges: ["", "w", "x"].map(words).into(),
    }
}
