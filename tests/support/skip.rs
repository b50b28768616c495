//! Skipping a test that lacks a program, so that everybody sees it.
//!
//! A test opens with `need_server!();` (or `need_redis_cli!()`, `need_python!()`). Without the
//! program it says `skipped: <test>: <why>` and returns; under `QUORLOCK_REQUIRE_SERVERS=1`, as
//! `tests/run` sets it, it panics instead. `QUORLOCK_SKIPPED` may name a file to collect the lines.
//! The one skip allowed even there is a Python given up by name, with `QUORLOCK_PYTHON=none`.

use std::fs::OpenOptions;
use std::io::Write;

/// Why a test with redis-py is skipped where there is no Python at all.
pub const NO_PYTHON: &str = "no Python here (QUORLOCK_PYTHON=none)";

/// Reports that `test` is skipped for want of `why`, or panics where nothing may be skipped.
pub fn skip(test: &str, why: &str) {
    let required = std::env::var_os("QUORLOCK_REQUIRE_SERVERS").is_some_and(|value| value == "1");
    let allowed = why == NO_PYTHON;
    assert!(
        allowed || !required,
        "{test} cannot be skipped under QUORLOCK_REQUIRE_SERVERS=1: {why}"
    );

    let line = format!("skipped: {test}: {why}\n");
    // Not `eprintln!`: the harness swallows what the print macros write in a test that passes.
    std::io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
    if let Some(path) = std::env::var_os("QUORLOCK_SKIPPED") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("it opens");
        file.write_all(line.as_bytes()).expect("it takes a line");
    }
}

/// Cuts what the compiler adds to the path of a function inside a test down to the test's name.
pub fn tidy_name(path: &'static str) -> &'static str {
    let path = path.strip_suffix("::here").unwrap_or(path);
    path.trim_end_matches("::{{closure}}")
}

/// The path of the test this stands in, also in an async one.
///
/// The thread's name would not do: with one test thread the harness runs tests on `main`.
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::support::skip::tidy_name(std::any::type_name_of_val(&here))
    }};
}

/// The path of a real server's program, or skips the test.
macro_rules! need_server {
    () => {
        match $crate::support::tools::find_server() {
            Ok(path) => path,
            Err(why) => {
                $crate::support::skip::skip($crate::support::test_name!(), &why);
                return;
            }
        }
    };
}

/// The path of a real server's program that was built with TLS, or skips the test.
macro_rules! need_tls_server {
    () => {
        match $crate::support::tools::find_tls_server() {
            Ok(path) => path,
            Err(why) => {
                $crate::support::skip::skip($crate::support::test_name!(), &why);
                return;
            }
        }
    };
}

/// The path of `redis-cli`, or skips the test.
macro_rules! need_redis_cli {
    () => {
        match $crate::support::tools::find_redis_cli() {
            Ok(path) => path,
            Err(why) => {
                $crate::support::skip::skip($crate::support::test_name!(), &why);
                return;
            }
        }
    };
}

/// A `Command` that runs a Python which can `import redis`, or skips the test.
macro_rules! need_python {
    () => {
        match $crate::support::tools::find_python() {
            Ok(python) => python,
            Err(why) => {
                $crate::support::skip::skip($crate::support::test_name!(), &why);
                return;
            }
        }
    };
}

pub(crate) use {need_python, need_redis_cli, need_server, need_tls_server, test_name};
