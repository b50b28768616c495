//! Each example runs and does what it says. (`unit_test` is a test by itself, and the web service a
//! package of its own: `examples/web_service`; and so is `examples/fenced_order`, with its
//! database.)

#![expect(clippy::expect_used, reason = "what is not there shall fail the test")]

use std::path::PathBuf;
use std::process::Command;

use support::{Fleet, need_server};

/// What the example prints. It is built with the tests, unless only some of those are.
fn run(name: &str) -> String {
    run_on(name, &[])
}

/// As [`run`], on these nodes.
fn run_on(name: &str, urls: &[String]) -> String {
    let test = std::env::current_exe().expect("a test has a path");
    let built = test.ancestors().nth(2).map(PathBuf::from).unwrap_or_default();
    let example = built.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(example.exists(), "not built: cargo build --examples --all-features");
    let output = Command::new(example).args(urls).output().expect("it starts");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {complaints}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
#[cfg(feature = "blocking")]
fn plain_threads_lose_no_deposit() {
    assert_eq!(run("plain_threads"), "100 of 100 deposits\n");
}

#[test]
fn a_scheduler_goes_on_when_its_process_dies() {
    let told = run("scheduler");
    let jobs_of = |line: &str| -> Vec<u64> {
        let words = line.split([' ', ',']).filter_map(|word| word.parse().ok());
        words.collect()
    };
    let lines: Vec<Vec<u64>> = told.lines().map(jobs_of).collect();
    assert_eq!(lines.len(), 3, "{told}");
    let mut last = 0;
    for line in lines {
        assert!(matches!(line[..], [first, until, 10] if last < first && first < until), "{told}");
        last = line[1];
    }
}

#[test]
fn addresses_show_no_password() {
    let told = run("addresses");
    assert!(told.contains("valkey.sock") && !told.contains("a/b@c"), "{told}");
}

/// On nodes of its own, and on real servers.
fn run_twice(name: &str, prints: &str) {
    assert_eq!(run(name), prints);
    let fleet = Fleet::start(3);
    assert_eq!(run_on(name, &fleet.urls()), prints, "{name}, on servers");
}

#[test]
fn a_leader_is_followed_by_another_and_terms_rise() {
    need_server!();
    let line = |place| format!("the {place} leader: its term is above the last, true\n");
    run_twice("leader", &["first", "second", "third"].map(line).concat());
}

#[test]
fn a_page_is_rendered_once_for_all_who_ask() {
    need_server!();
    run_twice("cached_page", "200 of 200 served, rendered 1 time\n");
}

#[test]
fn no_piece_is_sold_twice_and_none_is_left() {
    need_server!();
    run_twice("segments", "160 sold and 0 left of 160\n");
}
