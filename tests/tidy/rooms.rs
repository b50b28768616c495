//! Who may import whom: the ranks of the rooms.
//!
//! A room is a folder of `src` (or a file of that name); the files of rank 1 make one room. A file
//! may name its own room and those of a lower rank. The face, `lib.rs`, names all of them, and a
//! name taken from the face counts as taken from the room that the face has it from.

use crate::source::{Fault, Source, is_word, item_end};

/// The ranks. A room of `src` that is not here has no place yet, and that is a fault.
const RANKS: [(&str, u8); 24] = [
    ("options", BASE),
    ("error", BASE),
    ("fence", BASE),
    ("loss", BASE),
    ("report", BASE),
    ("server_error", BASE),
    ("clock", BASE),
    ("entropy", BASE),
    ("sync", BASE),
    ("slab", BASE),
    ("observe", BASE),
    ("node_vote", BASE),
    ("link", 2),
    ("node", 3),
    ("quorum", 4),
    ("lease", 5),
    ("lock", 6),
    ("client", 6),
    ("latch", 7),
    ("guarded", 7),
    ("recipe", 7),
    ("blocking", 8),
    ("testing", 8),
    ("simulation", 9),
];

/// The rank whose files make one room together.
const BASE: u8 = 1;

/// What a room's tests that stand in files of their own may use, whatever their rank: nodes.
const FOR_TESTS: &str = "testing";

/// Whose insides are closed to whom: from this rank on, only the room's own face is open.
const CLOSED: [(&str, u8); 2] = [("link", 6), ("node", 7)];

/// Rooms that have of those below them, the lowest rank aside, what any user of the library has.
const ON_THE_FACE: [&str; 1] = ["recipe"];

/// What the codec must do without: it is bytes to frames, and anybody's.
const CLOSED_TO_CODEC: [&str; 10] = [
    "tokio",
    "async",
    "await",
    "quorlock",
    "std::fs",
    "std::io",
    "std::net",
    "std::thread",
    "std::time",
    "SystemTime",
];

/// The one file of the codec that knows a runtime's traits: behind a feature, whose trait asks for
/// `std::io::Error`.
const CODEC_ADAPTER: &str = "resp/src/codec.rs";

/// The names in the crate's root that stand for items of a room: `(name, room)`.
pub(crate) type Face = Vec<(String, String)>;

/// Reads the face out of `src/lib.rs`.
pub(crate) fn face(lib: &Source) -> Face {
    let mut face = Face::new();
    for at in lib.find("use") {
        let end = item_end_of_use(&lib.code, at);
        let tree = lib.code[at + "use".len()..end].trim_start();
        let tree = tree.strip_prefix("crate::").unwrap_or(tree);
        for path in paths(tree) {
            if let [room, .., name] = path.as_slice() {
                face.push((name.clone(), room.clone()));
            }
        }
    }
    face
}

/// Every import that goes up, sideways, or past a room's face.
pub(crate) fn faults(source: &Source, face: &Face) -> Vec<Fault> {
    if source.path.starts_with("resp/src/") {
        return codec_faults(source);
    }
    if source.path.starts_with("cli/src/") {
        return program_faults(source);
    }
    let Some(module) = module_of(&source.path) else { return Vec::new() };
    let Some(room) = module.first() else { return Vec::new() };
    if room == "manual" {
        return Vec::new();
    }
    let Some(own_rank) = rank(room) else {
        return vec![source.fault(0, format!("room `{room}` has no rank in tests/tidy/rooms.rs"))];
    };

    let mut faults = Vec::new();
    for (at, path) in crate_paths(source, &module) {
        let Some(first) = path.first() else { continue };
        let from_face = face.iter().find(|(name, _)| name == first).map(|(_, room)| room);
        let target = if rank(first).is_some() { first } else { from_face.unwrap_or(first) };
        let for_tests = target == FOR_TESTS && module[1..].iter().any(|part| part == "tests");
        if target == room || target == "manual" || for_tests {
            continue;
        }
        // Names of other crates that the face passes on, and names of no room at all.
        let Some(target_rank) = rank(target) else {
            if from_face.is_none() {
                faults.push(source.fault(at, format!("`crate::{first}` is in no room")));
            }
            continue;
        };
        let allowed = target_rank < own_rank || (target_rank == own_rank && own_rank == BASE);
        if !allowed {
            let what = format!(
                "`{room}` (rank {own_rank}) may not know `{target}` (rank {target_rank}): \
                 only its own room and lower ranks"
            );
            faults.push(source.fault(at, what));
        }
        let is_on_face = face.iter().any(|(name, of)| of == target && path.get(1) == Some(name));
        if allowed && ON_THE_FACE.contains(&room.as_str()) && target_rank > BASE && !is_on_face {
            let what = format!("`{room}` is built on the face, which has no `{}`", path.join("::"));
            faults.push(source.fault(at, what));
        }
        let closed = CLOSED.iter().any(|(closed, rank)| target == *closed && own_rank >= *rank);
        let inner = path.len() > 2 && path[1].starts_with(char::is_lowercase);
        if allowed && closed && inner {
            let what = format!("`{room}` uses `{target}` by its face, not by `{}`", path[1]);
            faults.push(source.fault(at, what));
        }
    }
    faults
}

/// The rank of a room.
fn rank(room: &str) -> Option<u8> {
    RANKS.iter().find(|(name, _)| *name == room).map(|(_, rank)| *rank)
}

/// The codec stands alone.
fn codec_faults(source: &Source) -> Vec<Fault> {
    if source.path == CODEC_ADAPTER {
        return Vec::new();
    }
    let found = CLOSED_TO_CODEC.iter().flat_map(|word| source.find(word).map(move |at| (at, word)));
    let found = found.filter(|(at, _)| !source.in_test(*at));
    found
        .map(|(at, word)| {
            source.fault(at, format!("the codec knows no `{word}`: no I/O, clock, task or lock"))
        })
        .collect()
}

/// The program stands on the public face: it must not take the library's files into itself.
fn program_faults(source: &Source) -> Vec<Fault> {
    let what = "the program uses the library's public face, and no file of it";
    source.find("#[path").map(|at| source.fault(at, what)).collect()
}

/// The module a file of `src` is: `src/link/stream/tcp.rs` is `link, stream, tcp`.
pub(crate) fn module_of(path: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut module: Vec<String> = inner.split('/').map(String::from).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    Some(module)
}

/// Every path that begins with `crate::` or `super::`, from the crate's root, and where it stands.
fn crate_paths(source: &Source, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for at in source.find("crate::") {
        let tree = &source.code[at + "crate::".len()..];
        found.extend(paths(tree).into_iter().map(|path| (at, path)));
    }
    for at in source.find("super::") {
        // The second `super` of a chain was read with the first.
        if source.code[..at].ends_with("super::") {
            continue;
        }
        let mut tree = &source.code[at..];
        let mut ups = 0;
        while let Some(rest) = tree.strip_prefix("super::") {
            (tree, ups) = (rest, ups + 1);
        }
        let inline = inline_modules_around(&source.code, at);
        let depth = (module.len() + inline).saturating_sub(ups);
        // Above an inline module is the file itself, whose own names need no look.
        if depth > module.len() {
            continue;
        }
        let base = &module[..depth];
        found.extend(paths(tree).into_iter().map(|path| (at, [base, &path].concat())));
    }
    found
}

/// How many `mod name { … }` the byte is in.
fn inline_modules_around(code: &str, at: usize) -> usize {
    let mods = code.match_indices("mod ").filter(|(open, _)| {
        let whole = !code[..*open].ends_with(is_word);
        let end = item_end(code, *open);
        whole && code[..end].ends_with('}') && (*open..end).contains(&at)
    });
    mods.count()
}

/// Where the `use` at `at` ends.
fn item_end_of_use(code: &str, at: usize) -> usize {
    code[at..].find(';').map_or(code.len(), |offset| at + offset)
}

/// The paths of a tree: `a::{b, c::d}` gives `a::b` and `a::c::d`; of any other text, the one path
/// it begins with.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let mut prefix: Vec<String> = Vec::new();
    let mut rest = tree.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let branches = branches(group).into_iter().flat_map(paths);
            return branches.map(|path| [prefix.as_slice(), &path].concat()).collect();
        }
        let name: String = rest.chars().take_while(|&c| is_word(c)).collect();
        rest = &rest[name.len()..];
        if !name.is_empty() && name != "self" {
            prefix.push(name);
        }
        // A renamed import goes by its new name in no path but the face's.
        if let Some(renamed) = rest.trim_start().strip_prefix("as ") {
            prefix.push(renamed.trim_start().chars().take_while(|&c| is_word(c)).collect());
            return vec![prefix];
        }
        match rest.strip_prefix("::") {
            Some(more) => rest = more.trim_start(),
            None => return vec![prefix],
        }
    }
}

/// The branches of a group, from behind its opening brace to the closing one.
pub(crate) fn branches(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut branches) = (0_usize, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let branch = group[from..at].trim();
                if !branch.is_empty() {
                    branches.push(branch);
                }
                from = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    branches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with `text` in `path`, where the face passes on two names.
    fn check(path: &str, text: &str) -> Vec<String> {
        let lib = "pub use lock::{Guard, Locker as Lock};\npub use crate::error::Error;";
        let face = face(&Source::new("src/lib.rs", lib));
        faults(&Source::new(path, text), &face).into_iter().map(|fault| fault.what).collect()
    }

    #[test]
    fn what_is_allowed() {
        let allowed = [
            ("src/lib.rs", "mod link; pub use lock::Guard;"),
            ("src/error.rs", "use crate::report::Outcome;"),
            ("src/link/stream.rs", "use crate::{clock::Clock, link::ring::Ring};"),
            ("src/link/stream.rs", "use super::ring::Ring; use super::super::error::Error;"),
            ("src/link/mod.rs", "use super::clock; fn f() -> crate::error::Error {}"),
            ("src/link/mod.rs", "// crate::lock\nconst S: &str = \"crate::lock\";"),
            ("src/link/ring.rs", "mod tests { use super::*; use super::super::mod_item; }"),
            ("src/quorum/driver.rs", "use crate::link::pipeline::Slot; use crate::Error;"),
            ("src/lock/guard.rs", "use crate::link::Address; use crate::quorum::ballot::Vote;"),
            (
                "src/blocking/fair.rs",
                "use crate::Guard; use crate::Lock; use crate::lock::guard::G;",
            ),
            ("src/manual/mod.rs", "use crate::testing::Node;"),
            ("src/lock/tests/node.rs", "use crate::testing::Node;"),
            ("cli/src/main.rs", "use crate::status; use quorlock::Locker;"),
            ("resp/src/frame.rs", "use std::fmt; // no tokio here"),
            ("tests/x.rs", "use crate::anything;"),
        ];
        for (path, text) in allowed {
            assert_eq!(check(path, text), Vec::<String>::new(), "{path}: {text}");
        }
    }

    #[test]
    fn what_is_not() {
        let forbidden = [
            ("src/error.rs", "use crate::link::Address;", "`link` (rank 2)"),
            ("src/clock.rs", "use super::node::Node;", "`node` (rank 3)"),
            ("src/link/ring.rs", "use crate::{clock::Clock, node::{Pool, Health}};", "`node`"),
            ("src/link/ring.rs", "use super::super::lock::Guard;", "`lock` (rank 6)"),
            ("src/link/mod.rs", "fn f() { crate::quorum::ballot::vote(); }", "`quorum`"),
            ("src/node/mod.rs", "use crate::Guard;", "`lock` (rank 6)"),
            ("src/node/mod.rs", "use crate::Lock;", "`lock` (rank 6)"),
            ("src/lock/mod.rs", "use crate::client::Client;", "`client` (rank 6)"),
            ("src/lock/mod.rs", "use crate::link::pipeline::Slot;", "not by `pipeline`"),
            ("src/blocking/mod.rs", "use crate::node::pool::Pool;", "not by `pool`"),
            ("src/blocking/mod.rs", "use crate::testing::Node;", "`testing` (rank 8)"),
            ("src/lock/guard.rs", "use crate::testing::Node;", "`testing` (rank 8)"),
            ("src/link/tests.rs", "use crate::lock::Guard;", "`lock` (rank 6)"),
            ("src/quorum/mod.rs", "mod tests { use super::super::lock::Guard; }", "`lock`"),
            ("src/link/mod.rs", "use crate::nothing::Known;", "in no room"),
            ("src/novel/mod.rs", "", "has no rank"),
            ("src/recipe/once.rs", "use crate::lease::Claim;", "no `lease::Claim`"),
            ("cli/src/main.rs", "#[path = \"x\"]\nmod x;", "public face"),
            ("resp/src/frame.rs", "use std::time::Duration;", "no `std::time`"),
            ("resp/src/frame.rs", "async fn f() {}", "no `async`"),
        ];
        for (path, text, what) in forbidden {
            let found = check(path, text);
            assert!(found.iter().any(|fault| fault.contains(what)), "{path}: {text}: {found:?}");
        }
    }

    #[test]
    fn trees_are_unfolded() {
        let path = |text: &str| -> Vec<String> {
            paths(text).iter().map(|path| path.join("::")).collect()
        };
        assert_eq!(path("a::b;"), ["a::b"]);
        assert_eq!(path("a::{self, b::{c, d}, e as f};"), ["a", "a::b::c", "a::b::d", "a::e::f"]);
        assert_eq!(path("a::b(c::d)"), ["a::b"]);
        assert_eq!(path("a::*;"), ["a"]);
    }
}
