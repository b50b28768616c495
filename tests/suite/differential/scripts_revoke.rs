//! The states and words of the script that revokes a lock: a part of the table in `scripts`.
//!
//! The lock is `k`. As in the tables of queues, a value names its owner behind digits and an `@`,
//! and `her` is listened to.

use super::{Calls, Grid, LOCK, State, TTLS, Words, all, plain};

/// What `revoke.lua` is run on.
pub(super) const ASKED: &[Grid] = &[all(&[LOCK]), all(&[HERS]), plain(&[OWNERS])];

const HERS: &[State] = &[
    ("hers", "SET k c0ffee123@her PX 60000"),
    ("hers, revoked", "SET k c0ffee123@her! PX 60000"),
    ("hers, without end", "SET k c0ffee123@her"),
    ("hers, in its last millisecond", "SET k c0ffee123@her PX 1 | PASS 500 | FROZEN"),
];

/// Who else can hold the lock.
const OWNERS: &[State] = &[
    ("more before the digits", "SET k xd1@her PX 60000"),
    ("no digits", "SET k @her PX 60000"),
    ("digits alone", "SET k d1 PX 60000"),
    ("an owner of two words", "SET k D1@a@b PX 60000"),
    ("an owner without a name", "SET k d1@ PX 60000"),
];

pub(super) fn ask() -> Calls {
    let words = |value, least| vec!["1", "k", value, least];
    let values = ["v", "c0ffee123@her", "xd1@her", "@her", "d1", "D1@a@b", "d1@"];
    let mut usual: Vec<Words> = values.map(|value| words(value, "0")).into();
    usual.extend([words("v", "90000"), words("c0ffee123@her", "90000")]);
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("v", ttl)).into();
    edges.extend(["", "w", "v!"].map(|value| words(value, "0")));
    Calls { usual, edges }
}
