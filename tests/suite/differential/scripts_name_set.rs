//! The states and words of the script that asks for a set of names: a part of the table in
//! `scripts`.
//!
//! The set is `z`, `pv` is what is added, and `pu` is what keeps it out.

use super::{Calls, Grid, SERVICE, State, TTLS, Words, all};

/// What `name_set.lua` is run on.
pub(super) const ASKED: &[Grid] = &[all(&[SET])];

/// What it is run on behind `standing.lua`.
pub(super) const ASKED_WHERE_IT_VOTES: &[Grid] = &[all(&[SERVICE, SET])];

/// What the set can hold.
const SET: &[State] = &[
    ("no set", ""),
    ("a name", "ZADD z 0 pa | PEXPIRE z 60000"),
    ("ours", "ZADD z 0 pv | PEXPIRE z 60000"),
    ("three names, ours among them", "ZADD z 0 pa 0 pv 0 pw | PEXPIRE z 60000"),
    ("a name, and what keeps others out", "ZADD z 0 pa 0 pu | PEXPIRE z 60000"),
    ("what keeps others out, for longer", "ZADD z 0 pu | PEXPIRE z 120000"),
    ("what keeps others out, just the TTL", "ZADD z 0 pu | PEXPIRE z 90000 | FROZEN"),
    ("ours, and what keeps others out", "ZADD z 0 pv 0 pu | PEXPIRE z 60000"),
    ("a name, for longer", "ZADD z 0 pa | PEXPIRE z 120000"),
    ("a name, soon over", "ZADD z 0 pa | PEXPIRE z 3000"),
    ("a name, just the TTL", "ZADD z 0 pa | PEXPIRE z 90000 | FROZEN"),
    ("a name, in its last millisecond", "ZADD z 0 pa | PEXPIRE z 1 | PASS 500 | FROZEN"),
    ("names, just expired", "ZADD z 0 pa 0 pb | PEXPIRE z 1 | PASS 2000"),
    ("names without end", "ZADD z 0 pa 0 pv"),
    ("names by their scores", "ZADD z 5 pa 3 pv 4 pw | PEXPIRE z 60000"),
    ("a lock", "SET z v PX 60000"),
    ("a string without end", "SET z v"),
    ("a hash", "HSET z f v"),
    ("a list that ends", "RPUSH z v | PEXPIRE z 60000"),
];

pub(super) fn ask() -> Calls {
    let words = |name, unless, ttl| vec!["1", "z", name, unless, ttl];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("pv", "pu", ttl)).into();
    edges.extend(TTLS.map(|ttl| words("", "pu", ttl)));
    edges.extend(["50000", "60001", "80000", "150000"].map(|ttl| words("pv", "pu", ttl)));
    // At the edge where time stands still.
    edges.extend(["89999", "90000", "90001"].map(|ttl| words("pa", "pu", ttl)));
    edges.extend(["89999", "90001"].map(|ttl| words("pv", "pu", ttl)));
    edges.extend([words("open", "broken", "120000"), words("pv", "", "90000")]);
    // Each keeps the other out.
    edges.extend([words("pu", "pv", "90000"), words("pv", "pv", "90000")]);
    Calls { usual: vec![words("pv", "pu", "90000"), words("", "pu", "90000")], edges }
}

pub(super) fn ask_where_it_votes() -> Calls {
    let words = |name, ttl, process| vec!["3", "e", "q", "z", name, "pu", ttl, "30000", process];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("pv", ttl, "abc")).into();
    edges.extend([words("pv", "30000", "abc"), words("pv", "30001", "abc")]);
    let usual = ["pv", ""].map(|name| words(name, "20000", "abc"));
    Calls { usual: usual.into(), edges }
}
