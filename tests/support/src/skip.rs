//! Skipping a test that lacks a program, so that everybody sees it.
//!
//! A test opens with `need_server!();`, for which a node inside this process will do where there is
//! no server's program, or where `QUORLOCK_SERVER=in-process` asks for it. One that needs more than
//! a node opens with `need_process!()`, `need_redis_cli!()` or `need_python!()`. Without the
//! program it says `skipped: <test>: <why>` and returns; under `QUORLOCK_REQUIRE_SERVERS=1`, as
//! `tests/run` sets it, it panics instead. `QUORLOCK_SKIPPED` may name a file to collect the lines.
//! What was given up by name may be skipped even there: a Python, with `QUORLOCK_PYTHON=none`, a
//! MariaDB, with `QUORLOCK_MARIADB=none`, and processes, with `QUORLOCK_SERVER=in-process`.

use std::fs::OpenOptions;
use std::io::Write;

/// Why a test with redis-py is skipped where there is no Python at all.
pub const NO_PYTHON: &str = "no Python here (QUORLOCK_PYTHON=none)";

/// Why a test with MariaDB is skipped where there is none to be had.
pub(crate) const NO_MARIADB: &str = "no MariaDB here (QUORLOCK_MARIADB=none)";

/// Why a test that needs a process is skipped where nodes inside this one are asked for.
pub(crate) const NO_PROCESS: &str = "it needs a real server (QUORLOCK_SERVER=in-process)";

/// Reports that `test` is skipped for want of `why`, or panics where nothing may be skipped.
pub fn skip(test: &str, why: &str) {
    let allowed = [NO_PYTHON, NO_MARIADB, NO_PROCESS].contains(&why);
    assert!(
        allowed || !servers_are_required(),
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

/// Whether nothing may be skipped, and nothing stand in for a server, unless it was given up by
/// name.
pub fn servers_are_required() -> bool {
    std::env::var_os("QUORLOCK_REQUIRE_SERVERS").is_some_and(|value| value == "1")
}

/// Cuts what the compiler adds to the path of a function inside a test down to the test's name.
pub fn tidy_name(path: &'static str) -> &'static str {
    let path = path.strip_suffix("::here").unwrap_or(path);
    path.trim_end_matches("::{{closure}}")
}

/// The path of the test this stands in, also in an async one.
///
/// The thread's name would not do: with one test thread the harness runs tests on `main`.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::skip::tidy_name(std::any::type_name_of_val(&here))
    }};
}

/// A server of any kind, or skips the test.
#[macro_export]
macro_rules! need_server {
    () => {
        if let Err(why) = $crate::tools::find_kind() {
            $crate::skip::skip($crate::test_name!(), &why);
            return;
        }
    };
}

/// The path of a real server's program, or skips the test.
#[macro_export]
macro_rules! need_process {
    () => {
        match $crate::tools::find_server() {
            Ok(path) => path,
            Err(why) => {
                $crate::skip::skip($crate::test_name!(), &why);
                return;
            }
        }
    };
}

/// The path of a real server's program that was built with TLS, or skips the test.
#[macro_export]
macro_rules! need_tls_server {
    () => {
        match $crate::tools::find_tls_server() {
            Ok(path) => path,
            Err(why) => {
                $crate::skip::skip($crate::test_name!(), &why);
                return;
            }
        }
    };
}

/// The path of `redis-cli`, or skips the test.
#[macro_export]
macro_rules! need_redis_cli {
    () => {
        match $crate::tools::find_redis_cli() {
            Ok(path) => path,
            Err(why) => {
                $crate::skip::skip($crate::test_name!(), &why);
                return;
            }
        }
    };
}

/// A `Command` that runs a Python which can `import redis`, or skips the test.
#[macro_export]
macro_rules! need_python {
    () => {
        match $crate::tools::find_python() {
            Ok(python) => python,
            Err(why) => {
                $crate::skip::skip($crate::test_name!(), &why);
                return;
            }
        }
    };
}

/// The path of the program `postgres`, or skips the test.
#[macro_export]
macro_rules! need_postgres {
    () => {
        match $crate::tools::find_postgres() {
            Ok(path) => path,
            Err(why) => {
                $crate::skip::skip($crate::test_name!(), &why);
                return;
            }
        }
    };
}

/// The path of the program `mariadbd`, or skips the test.
#[macro_export]
macro_rules! need_mariadb {
    () => {
        match $crate::tools::find_mariadb() {
            Ok(path) => path,
            Err(why) => {
                $crate::skip::skip($crate::test_name!(), &why);
                return;
            }
        }
    };
}
