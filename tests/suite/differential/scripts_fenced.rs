//! What a fence can hold, and what is said about it: a part of the table in `scripts`.

use super::{Calls, Grid, LOCK, SERVICE, State, TTLS, Words, all, usual};

pub(super) const RISES: &[Grid] = &[
    all(&[FENCE, HELD]),
    all(&[FENCE, BOTH_HELD]),
    all(&[FENCE, FREE]),
    usual(&[LOW_FENCE, LOCK]),
];

pub(super) const RISES_WHERE_IT_VOTES: &[Grid] = &[
    all(&[SERVICE, LOW_FENCE, FREE]),
    usual(&[SERVICE, FENCE]),
    usual(&[SERVICE, LOW_FENCE, LOCK]),
];

/// A free lock.
const FREE: &[State] = &[("absent", "")];

/// A lock that is ours.
const HELD: &[State] = &[("ours", "SET k v PX 60000")];

/// A lock of two keys that is ours, and the second one's fence.
const BOTH_HELD: &[State] =
    &[("both ours, the second fenced", "SET k v PX 60000 | SET l v PX 60000 | SET g 1000")];

/// What a lock's fence can hold.
const FENCE: &[State] = &[
    ("no fence", "FROZEN"),
    ("a fence", "SET f 1000"),
    ("a fence that ends", "SET f 1000 PX 60000"),
    ("a fence, just expired", "SET f 1000 PX 1 | PASS 2000 | FROZEN"),
    ("no fence but zero", "SET f 0"),
    ("the highest fence", "SET f 9007199254740991"),
    ("a fence below the highest", "SET f 9007199254740990 | FROZEN"),
    ("a fence far below the highest", "SET f 9007199254739990 | FROZEN"),
    ("a fence beyond the highest", "SET f 9007199254740992"),
    ("a fence with too many digits", "SET f 00000000000001000"),
    ("a fence below zero", "SET f -1"),
    ("a fence with an exponent", "SET f 1e3"),
    ("a fence in hexadecimal", "SET f 0x10"),
    ("an empty fence", "SET f ''"),
    ("a fence of words", "SET f none~at~all"),
    ("a fence that is a hash", "HSET f a b"),
];

/// A fence that most tokens are above.
const LOW_FENCE: &[State] = &[("a fence", "SET f 1000")];

pub(super) fn rises() -> Calls {
    let words = |value, token, ahead| vec!["2", "f", "k", value, token, ahead, "1000"];
    let acquires = |token, ttl| vec!["2", "f", "k", "v", token, "10000000", "0", ttl];
    let mut usual: Vec<Words> = ["v", "w"].map(|value| words(value, "2000", "10000000")).into();
    usual.extend(["500", "2000"].map(|token| acquires(token, "10000")));
    let tokens = [
        "",
        "x",
        "0",
        "1",
        "1000",
        "1001",
        "-1",
        "1.5",
        "1e4",
        "0x7d0",
        "9007199254740990",
        "9007199254740991",
        "9007199254740992",
        "00000000000002000",
    ];
    let mut edges: Vec<Words> = tokens.map(|token| words("v", token, "10000000")).into();
    edges.extend(["", "x", "0", "-1", "9007199254740991"].map(|ahead| words("v", "2000", ahead)));
    let steps = ["", "x", "0", "-1", "1", "999", "9007199254740991"];
    edges.extend(steps.map(|step| vec!["2", "f", "k", "v", "9007199254740990", "0", step]));
    edges.push(vec!["4", "f", "g", "k", "l", "v", "2000", "10000000", "1000"]);
    edges.extend(tokens.map(|token| acquires(token, "10000")));
    edges.extend(TTLS.map(|ttl| acquires("2000", ttl)));
    Calls { usual, edges }
}

pub(super) fn rises_where_it_votes() -> Calls {
    let words =
        |ttl, name| vec!["4", "e", "q", "f", "k", "v", "2000", "10000000", "0", ttl, "30000", name];
    let edges = TTLS.map(|ttl| words(ttl, "abc")).into();
    Calls { usual: ["abc", "def"].map(|name| words("10000", name)).into(), edges }
}
