//! Calls that have a better replacement here.
//!
//! Clippy's `disallowed-methods` says some of this as well, and sees through renamed imports; this
//! test knows the places where a call is right, and needs no attribute there.

use crate::source::{Fault, Source};

/// One rule.
struct Ban {
    /// What may not be written.
    call: &'static str,
    /// What to write in its stead, or why not.
    instead: &'static str,
    /// The paths it holds for, by their beginnings.
    within: &'static [&'static str],
    /// The paths where the call is right, by their beginnings.
    except: &'static [&'static str],
    /// Whether it holds for tests too.
    tests_too: bool,
}

const LIBRARY: &[&str] = &["src/", "resp/src/", "cli/src/"];
const EVERYWHERE: &[&str] = &[""];
const CLOCK: &[&str] = &["src/clock", "cli/src/"];
const TASKS: &[&str] = &[
    "src/quorum/decided",
    "src/quorum/driver",
    "src/quorum/handover",
    "src/lease/alarm",
    "src/lease/keeper",
    "src/simulation/",
    "src/testing/",
    "cli/src/",
];
const NO_TASK: &str = "the driver and the keeper are the only tasks that last, beside the brief \
    ones that wake callers and hand the driver over; the alarm is a thread";

const NO_SWITCH: &str = "the library's text knows of no weakened build: tests/weak has the patches";

const PROGRAM: &[&str] = &["cli/src/"];
const OUTPUT: &[&str] = &["cli/src/output/"];
const MAY_BLOCK: &str = "a write may block the thread that keeps a lock: cli/src/output/ writes";

const BANS: [Ban; 23] = [
    library("Instant::now", CLOCK, "src/clock.rs is the one place that reads time"),
    library("SystemTime::now", CLOCK, "validity never depends on the wall clock"),
    library("time::sleep", CLOCK, "sleep by src/clock.rs, which a simulation can drive"),
    library("thread::sleep", &[], "wait for what is meant, by src/clock.rs"),
    library("tokio::spawn", TASKS, NO_TASK),
    library("task::spawn", TASKS, NO_TASK),
    library(".spawn(", TASKS, NO_TASK),
    library("spawn_local", TASKS, NO_TASK),
    library(".unwrap()", &[], "return an error, or say with `let … else` why it cannot be"),
    library(".expect(", &[], "return an error, or say with `let … else` why it cannot be"),
    library("&& let ", &[], "the oldest Rust we build with, 1.85, has no chains of `let`"),
    switch("weak::"),
    switch("mod weak"),
    switch("quorlock_weak"),
    program("stderr()"),
    program("stdout()"),
    program("println!"),
    program("eprintln!"),
    program("eprint!"),
    everywhere("todo!", "write it, or leave out what needs it"),
    everywhere("unimplemented!", "write it, or return an error"),
    everywhere("dbg!", "remove it"),
    everywhere("#[ignore", "fix the test, or give what it lacks a `need_…!`"),
];

const fn library(
    call: &'static str,
    except: &'static [&'static str],
    instead: &'static str,
) -> Ban {
    Ban { call, instead, within: LIBRARY, except, tests_too: false }
}

/// Not in tests either: they run in the weakened builds, too.
const fn switch(call: &'static str) -> Ban {
    Ban { call, instead: NO_SWITCH, within: LIBRARY, except: &[], tests_too: true }
}

const fn program(call: &'static str) -> Ban {
    Ban { call, instead: MAY_BLOCK, within: PROGRAM, except: OUTPUT, tests_too: false }
}

const fn everywhere(call: &'static str, instead: &'static str) -> Ban {
    Ban { call, instead, within: EVERYWHERE, except: &[], tests_too: true }
}

/// Every banned call.
pub(crate) fn faults(source: &Source) -> Vec<Fault> {
    let begins = |paths: &[&str]| paths.iter().any(|path| source.path.starts_with(path));
    let mut faults = Vec::new();
    for ban in BANS.iter().filter(|ban| begins(ban.within) && !begins(ban.except)) {
        for at in source.find(ban.call).filter(|at| ban.tests_too || !source.in_test(*at)) {
            faults.push(source.fault(at, format!("`{}`: {}", ban.call, ban.instead)));
        }
    }
    faults.extend(unexplained_discards(source));
    faults
}

/// A result thrown away needs its reason beside it, or above it.
fn unexplained_discards(source: &Source) -> Vec<Fault> {
    let lines: Vec<&str> = source.text.lines().collect();
    let discards: Vec<usize> = source.find("let _ =").map(|at| source.line_at(at)).collect();
    let explained = |line: usize| {
        let commented = |number: usize| lines.get(number - 1).is_some_and(|l| l.contains("//"));
        // One comment may stand above several in a row.
        let first = (1..=line).rev().find(|number| !discards.contains(number)).unwrap_or(0);
        commented(line) || (first > 0 && commented(first))
    };
    let faults = source.find("let _ =").filter(|at| !explained(source.line_at(*at)));
    faults
        .map(|at| source.fault(at, "`let _ =`: say in a comment why the result does not matter"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> usize {
        faults(&Source::new(path, text)).len()
    }

    #[test]
    fn each_ban_holds_and_has_its_exceptions() {
        let cases = [
            ("src/lease/validity.rs", "let now = Instant::now();", 1),
            ("src/clock.rs", "let now = Instant::now();", 0),
            ("src/lease/validity.rs", "// not Instant::now()", 0),
            ("src/lease/validity.rs", "tokio::time::sleep(d).await;", 1),
            ("src/node/mod.rs", "std::thread::sleep(d);", 1),
            ("src/node/mod.rs", "tokio::spawn(f);", 1),
            ("src/node/mod.rs", "tokio::task::spawn(f);", 1),
            ("src/quorum/driver.rs", "tokio::spawn(f);", 0),
            ("src/lease/keeper.rs", "tokio::spawn(f);", 0),
            ("src/link/mod.rs", "x.unwrap(); y.unwrap_or(1); z.expect(\"why\");", 2),
            ("resp/src/scan.rs", "x.unwrap();", 1),
            ("src/link/mod.rs", "#[cfg(test)]\nmod tests { fn f() { x.unwrap(); } }", 0),
            ("resp/tests/x.rs", "x.unwrap();", 0),
            ("src/quorum/tally.rs", "use crate::weak::{self, Weakness}; weak::is(x)", 2),
            ("src/lib.rs", "mod weak;\n#[cfg(quorlock_weak)]\nmod y;", 2),
            ("src/lease/tests/x.rs", "if crate::weak::is(x) {}", 1),
            ("src/lease/x.rs", "use std::sync::Weak; x.compare_exchange_weak(); Weak::new()", 0),
            ("tests/weak/shared/src/weak.rs", "crate::weak::is(x)", 0),
            ("cli/src/lock/mod.rs", "io::stderr(); anstream::stdout()", 2),
            ("cli/src/lock/mod.rs", "eprintln!(); println!(); eprint!()", 3),
            ("cli/src/lock/mod.rs", "command.stderr(file)", 0),
            ("cli/src/output/mod.rs", "io::stderr(); io::stdout()", 0),
            ("tests/x.rs", "todo!(); unimplemented!()", 2),
            ("tests/x.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}", 1),
            ("benches/x.rs", "dbg!(1);", 1),
        ];
        for (path, text, count) in cases {
            assert_eq!(check(path, text), count, "{path}: {text}");
        }
    }

    #[test]
    fn a_discard_needs_its_reason() {
        assert_eq!(check("src/x.rs", "f();\nlet _ = g();"), 1);
        assert_eq!(check("src/x.rs", "let _ = g();"), 1);
        assert_eq!(check("src/x.rs", "let _ = g(); // it may be gone"), 0);
        assert_eq!(check("src/x.rs", "// It may be gone.\nlet _ = g();\nlet _ = h();"), 0);
        assert_eq!(check("src/x.rs", "let _guard = g();"), 0);
    }
}
