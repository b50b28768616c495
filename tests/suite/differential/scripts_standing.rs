//! The states and words of the scripts that look at whether a node may vote: a part of the table in
//! `scripts`.

use super::{Calls, State, TTLS, Words};

/// What a node's epoch can hold. Its process is `abc`, the deployment's longest TTL 30000.
pub(super) const EPOCH: &[State] = &[
    ("no epoch", ""),
    ("own epoch", "SET e abc~30000"),
    ("own epoch that ends", "SET e abc~30000 PX 60000"),
    ("own epoch, just expired", "SET e abc~30000 PX 1 | PASS 2000"),
    ("another process's epoch", "SET e def~30000"),
    ("another longest TTL", "SET e abc~9000"),
    ("another process's, another longest TTL", "SET e def~9000"),
    ("a longest TTL that is no number of Lua", "SET e abc~9007199254740993"),
    ("an epoch of no server", "SET e ~30000"),
    ("words", "SET e none~at~all"),
    ("a name alone", "SET e abc"),
    ("an epoch and more", "SET e abc~30000x"),
    ("two blanks", "SET e abc~~30000"),
    ("more before the name", "SET e ab-c~30000"),
    ("no digits", "SET e abc~x"),
    ("an empty epoch", "SET e ''"),
    ("a hash as epoch", "HSET e f v"),
    ("a list as epoch", "RPUSH e a"),
];

/// What a node's quarantine can hold.
pub(super) const QUARANTINE: &[State] = &[
    ("no quarantine", ""),
    ("quarantine", "SET q abc PX 20000"),
    ("quarantine, soon over", "SET q abc PX 3000"),
    ("quarantine, in its last millisecond", "SET q abc PX 1 | PASS 500 | FROZEN"),
    ("quarantine, just expired", "SET q abc PX 1 | PASS 2000"),
    ("quarantine without end", "SET q abc"),
    ("a list as quarantine", "RPUSH q a"),
    ("a list that ends as quarantine", "RPUSH q a | PEXPIRE q 20000"),
];

/// Whether a node is in service.
pub(super) const SERVICE: &[State] = &[
    ("in service", "SET e abc~30000"),
    ("in quarantine", "SET e abc~30000 | SET q abc PX 20000"),
    ("out of quarantine", "SET e abc~30000 | SET q abc PX 1 | PASS 2000"),
    ("of another process", "SET e def~30000"),
];

pub(super) fn acquire() -> Calls {
    let words = |ttl, longest, name| vec!["3", "e", "q", "k", "v", ttl, longest, name];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words(ttl, "30000", "abc")).into();
    edges.extend(["29999", "30000", "30001"].map(|ttl| words(ttl, "30000", "abc")));
    edges.extend(TTLS.map(|longest| words("0", longest, "abc")));
    edges.extend([("9", "10"), ("10", "9"), ("1", "1")].map(|(ttl, most)| words(ttl, most, "abc")));
    edges.push(words("10000", "30000", ""));
    let usual = ["abc", "def"].map(|name| words("10000", "30000", name));
    Calls { usual: usual.into(), edges }
}

pub(super) fn initialise() -> Calls {
    let words = |act, longest, name| vec!["2", "e", "q", act, longest, name];
    let mut edges = Vec::new();
    for act in ["look", "write"] {
        edges.extend(TTLS.map(|longest| words(act, longest, "abc")));
        edges.extend(["def", ""].map(|name| words(act, "30000", name)));
    }
    edges.extend(["", "LOOK", "Write"].map(|act| words(act, "30000", "abc")));
    Calls { usual: ["look", "write"].map(|act| words(act, "30000", "abc")).into(), edges }
}
