//! The check that stands before a user's script in a guarded command: a part of the table in
//! `scripts`. Nodes inside the process run it by Lua alone.

use super::{Calls, FILES, SCRIPTS, Script, State, Words, all};

/// The check, and what stands for the user's script: it shows what it sees.
const CHECK: [(&str, &str); 2] = [
    ("check.lua", include_str!("../../../src/guarded/check.lua")),
    ("shows", "return {#KEYS, #ARGV, KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}\n"),
];

const GUARDED: Script = Script {
    name: "guarded",
    files: &["check.lua", "shows"],
    grids: &[all(&[WRITTEN, SECOND_WRITTEN])],
    words: guarded,
};

/// The files of the locks' scripts, and of the check.
pub(crate) fn all_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.into_iter().chain(CHECK)
}

/// The locks' scripts, and the check.
pub(crate) fn all_scripts() -> impl Iterator<Item = Script> {
    SCRIPTS.into_iter().chain([GUARDED])
}

/// Which fence has come with a command on `k`.
const WRITTEN: &[State] = &[
    ("none has come", "SET k data"),
    ("none has come, no data", ""),
    ("a lower one has", "SET f 41"),
    ("the same has", "SET f 42"),
    ("a higher one has", "SET f 43"),
    ("zero has", "SET f 0"),
    ("the highest has", "SET f 9007199254740991"),
    ("one beyond the highest", "SET f 9007199254740992"),
    ("one below zero", "SET f -1"),
    ("one with an exponent", "SET f 1e1"),
    ("one with more behind it", "SET f 41x"),
    ("one with more before it", "SET f x41"),
    ("an empty one", "SET f ''"),
    ("a hash", "HSET f a b"),
];

/// The same of `l`, which has its fence in `z`.
const SECOND_WRITTEN: &[State] = &[
    ("none with the second", ""),
    ("a lower one with the second", "SET z 7"),
    ("the same with the second", "SET z 42"),
    ("a higher one with the second", "SET z 100"),
];

fn guarded() -> Calls {
    let one = |fence, once| vec!["2", "k", "f", "word", fence, once];
    let two = |fence, once| vec!["4", "k", "l", "f", "z", "word", "more", fence, once];
    let usual: Vec<Words> = vec![one("42", "0"), one("42", "1"), two("42", "0"), two("42", "1")];
    let mut edges = vec![vec!["2", "k", "f", "42", "0"], vec!["4", "l", "k", "z", "f", "42", "1"]];
    for fence in ["0", "1", "9007199254740990", "9007199254740991"] {
        edges.extend([one(fence, "0"), one(fence, "1")]);
    }
    Calls { usual, edges }
}
