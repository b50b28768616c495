//! The states and words of the scripts for locks of several keys: a part of the table in `scripts`.
//!
//! The keys are `k` and `l`. We are `v`.

use super::{Calls, State, TTLS, Words};

/// What the second key of a lock of several can hold.
pub(super) const SECOND: &[State] = &[
    ("second absent", ""),
    ("second ours", "SET l v PX 60000"),
    ("second ours, without end", "SET l v"),
    ("second ours, revoked", "SET l v! PX 60000"),
    ("second another's", "SET l w PX 60000"),
    ("second a hash", "HSET l f v"),
];

pub(super) fn acquire_all() -> Calls {
    let words = |ttl| vec!["2", "k", "l", "v", ttl];
    let mut edges: Vec<Words> = TTLS.map(words).into();
    edges.extend([vec!["1", "k", "v", "10000"], vec!["2", "l", "k", "v", "10000"]]);
    edges.push(vec!["2", "k", "l", "", "10000"]);
    edges.push(vec!["3", "k", "l", "e", "v", "10000"]);
    edges.push(vec!["2", "k", "l", "v", "10000", "more"]);
    Calls { usual: ["10000", "90000"].map(words).into(), edges }
}

pub(super) fn acquire_all_where_it_votes() -> Calls {
    let words = |ttl, name| vec!["4", "e", "q", "k", "l", "v", ttl, "30000", name];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words(ttl, "abc")).into();
    edges.push(vec!["3", "e", "q", "k", "v", "10000", "30000", "abc"]);
    Calls { usual: ["abc", "def"].map(|name| words("10000", name)).into(), edges }
}

pub(super) fn extend_all() -> Calls {
    let words = |value, ttl| vec!["2", "k", "l", value, ttl];
    let exactly = |value, ttl| vec!["2", "k", "l", value, ttl, "exactly"];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("v", ttl)).into();
    edges.extend(TTLS.map(|ttl| exactly("v", ttl)));
    edges.extend([words("", "90000"), words("w", "x"), words("v", "60000"), words("v", "61000")]);
    edges.push(vec!["1", "k", "v", "90000"]);
    let usual =
        vec![words("v", "90000"), words("w", "90000"), words("v", "50"), exactly("v", "50")];
    Calls { usual, edges }
}

pub(super) fn release_all() -> Calls {
    let words = |value| vec!["2", "k", "l", value];
    let edges = vec![words(""), vec!["1", "k", "v"], vec!["2", "l", "k", "v"]];
    Calls { usual: ["v", "w"].map(words).into(), edges }
}
