//! The manual's tables of what goes with which kind of lock: each *yes* names a test, and each *no*
//! is refused for the reason that is given.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quorlock::{Error, Locker, OwnerToken};
use support::{Fleet, need_server};

use crate::{builder, connected};

const MANUAL: &str = include_str!("../../src/manual/combinations.rs");

/// What there is, and what each kind of lock must answer to. A row or a column that is missing in
/// the manual is a hole, and so is one that it has and this has not.
const WITH: [&str; 16] = [
    "`Durability::Volatile`",
    "`adopt`",
    "`release_by_token`",
    "`blocking`",
    "a `Client` beside it",
    "TLS",
    "`quorlock lock`",
    "`release_after`",
    "`lock_delay`",
    "`share`",
    "`within`",
    "`downgrade`",
    "`fair`",
    "`fair_strict`",
    "`revoke`",
    "`shutdown_leaving`",
];
const KINDS: [&str; 7] =
    ["one key", "several keys", "waiting", "fenced", "native", "read", "slots"];

/// The same of latches and barriers, which are no locks.
const WITH_LATCHES: [&str; 6] = [
    "`Durability::Volatile`",
    "`blocking`",
    "a `Client` beside it",
    "TLS",
    "a lock of the same key",
    "`shutdown`",
];

/// A table's rows, each with its cells.
type Table = Vec<Vec<String>>;

/// The manual's tables, without their headings' rules.
fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut is_inside = false;
    for line in MANUAL.lines() {
        let row = line.strip_prefix("//! | ").and_then(|row| row.strip_suffix(" |"));
        if row.is_some() && !is_inside {
            tables.push(Table::new());
        }
        let is_rule = line.starts_with("//! |-");
        is_inside = row.is_some() || is_rule;
        if let (Some(row), Some(table)) = (row, tables.last_mut()) {
            table.push(row.split(" | ").map(str::to_owned).collect());
        }
    }
    tables
}

/// The manual's answers: what is said of each thing with each kind.
fn answers() -> BTreeMap<(String, String), String> {
    let tables = tables();
    let [heading, rows @ ..] = &tables[0][..] else { panic!("the table has a heading") };
    assert_eq!(heading[1..], KINDS, "the kinds of locks");
    let things: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(things, WITH, "what goes with them");
    let mut answers = BTreeMap::new();
    for row in rows {
        assert_eq!(row.len(), heading.len(), "{row:?}: an empty cell is a hole");
        for (kind, answer) in KINDS.iter().zip(&row[1..]) {
            answers.insert((row[0].clone(), (*kind).to_owned()), answer.clone());
        }
    }
    answers
}

/// The rows of a table that names tests.
fn rows_of(table: &Table) -> &[Vec<String>] {
    let [heading, rows @ ..] = &table[..] else { panic!("the table has a heading") };
    assert_eq!(heading[..], ["with", "the test"]);
    rows
}

/// Which file holds the tests of these modules, of a test program: a path that begins with none
/// means the suite.
fn file_of(modules: &[&str]) -> PathBuf {
    let (folder, modules) = match modules {
        ["tls", modules @ ..] => ("tests/tls", modules),
        ["program", modules @ ..] => ("cli/tests/program", modules),
        modules => ("tests/suite", modules),
    };
    let mut folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut file = folder.join("main.rs");
    for module in modules {
        let parent = std::fs::read_to_string(&file).unwrap();
        let is_there = parent.lines().any(|line| line == format!("mod {module};"));
        assert!(is_there, "{}: mod {module}", file.display());
        file = folder.join(module).with_extension("rs");
        folder = folder.join(module);
        if !file.exists() {
            file = folder.join("mod.rs");
        }
    }
    file
}

/// Whether a source has a test of this name that is run.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let heads = [format!("fn {name}("), format!("async fn {name}(")];
    let Some(at) = lines.iter().position(|line| heads.iter().any(|head| line.starts_with(head)))
    else {
        return false;
    };
    let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    let attributes: Vec<&&str> = attributes.collect();
    let is_test = |line: &&&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    attributes.iter().any(is_test) && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

#[test]
fn each_combination_is_answered_and_each_yes_has_a_test() {
    let answers = answers();
    for ((with, kind), answer) in &answers {
        let is_answered = answer == "yes" || answer.starts_with("no: ");
        assert!(is_answered, "{with} with {kind} is said to be \"{answer}\"");
    }
    let tables = tables();
    let (of_locks, of_latches) = tables[1..].split_at(KINDS.len());
    for (kind, table) in KINDS.iter().zip(of_locks) {
        let tested: Vec<&str> = rows_of(table).iter().map(|row| &*row[0]).collect();
        let is_yes = |with: &&str| answers[&((*with).to_owned(), (*kind).to_owned())] == "yes";
        let expected: Vec<&str> = WITH.into_iter().filter(is_yes).collect();
        assert_eq!(tested, expected, "{kind}: each yes has a test, and nothing else");
    }
    let [of_latches] = of_latches else { panic!("one table more, of latches and barriers") };
    let with: Vec<&str> = rows_of(of_latches).iter().map(|row| &*row[0]).collect();
    assert_eq!(with, WITH_LATCHES);
    for row in tables[1..].iter().flat_map(rows_of) {
        let path: Vec<&str> = row[1].trim_matches('`').split("::").collect();
        let [modules @ .., name] = &path[..] else { panic!("{path:?} is no test's path") };
        let file = file_of(modules);
        let source = std::fs::read_to_string(&file).unwrap();
        assert!(has_test(&source, name), "{} has no test `{name}`", file.display());
    }
}

/// What a refused combination says. One that is not here is a hole.
async fn refusal(locker: &Locker, with: &str, kind: &str) -> Error {
    if with == "`fair_strict`" {
        let request = match kind {
            "read" => locker.read("a"),
            "slots" => locker.slots("a", 2).acquire(),
            _ => locker.lock_all(["a", "b"]),
        };
        return request.fair_strict().await.unwrap_err();
    }
    let guard = match kind {
        "several keys" => locker.lock_all(["a", "b"]).await,
        "read" => locker.read("a").await,
        "slots" => locker.slots("a", 2).acquire().await,
        _ => panic!("{kind} refuses nothing"),
    };
    let guard = guard.unwrap();
    if with == "`downgrade`" {
        return guard.downgrade().await.unwrap_err();
    }
    let token = guard.forget();
    // As it reaches another process.
    let token = OwnerToken::from(token.as_str().to_owned());
    let refused = match with {
        "`adopt`" => locker.adopt("a", &token).await.unwrap_err(),
        "`release_by_token`" => locker.release_by_token("a", &token).await.unwrap_err(),
        "`fair`" => locker.lock_all(["a", "b"]).fair().await.unwrap_err(),
        "`revoke`" => locker.revoke("a").await.unwrap_err(),
        _ => panic!("nothing shows that {with} is refused with {kind}"),
    };
    for key in ["a", "b"] {
        locker.force_release(key).await.unwrap();
    }
    refused
}

#[tokio::test]
async fn each_no_is_refused_as_misuse_for_the_reason_that_the_manual_gives() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let mut refused = 0;
    for ((with, kind), answer) in answers() {
        let Some(reason) = answer.strip_prefix("no: ") else { continue };
        let error = refusal(&locker, &with, &kind).await;
        assert!(error.is_misuse(), "{with} with {kind}: {error}");
        assert!(error.to_string().contains(reason), "{with} with {kind}: {error}");
        refused += 1;
    }
    assert!(refused > 0, "a test of refusals that sees none proves nothing");
}

#[test]
fn a_function_that_is_no_test_and_one_that_is_ignored_are_not_taken_for_tests() {
    let source = "#[test]\nfn a() {}\n\nfn b() {}\n\n#[tokio::test]\nasync fn c() {}\n\n\
                  #[test]\n#[ignore]\nfn d() {}\n\n#[tokio::test(flavor = \"x\")]\nasync fn e() {}";
    let found = ["a", "b", "c", "d", "e", "f"].map(|name| has_test(source, name));
    assert_eq!(found, [true, false, true, false, true, false]);
}
