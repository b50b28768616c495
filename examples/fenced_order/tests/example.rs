//! The example does what it says, on a real PostgreSQL.

use std::process::Command;

use support::{Postgres, need_postgres};

#[test]
fn who_was_stopped_sells_nothing() {
    let server = Postgres::start(&need_postgres!());
    let mut example = Command::new(env!("CARGO_BIN_EXE_quorlock-example-fenced-order"));
    let said = example.arg(server.url()).output().expect("it starts");
    let (out, complaints) =
        (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{complaints}");
    let lines: Vec<&str> = out.lines().collect();
    let begin = [
        "alice has the lock with fence ",
        "bob has the lock with fence ",
        "alice goes on, and sells nothing: refused under fence ",
        "9 left",
    ];
    let as_told = lines.iter().zip(begin).all(|(line, begin)| line.starts_with(begin));
    assert!(lines.len() == begin.len() && as_told, "{out}");
    assert!(lines[1].ends_with("and sells: 9 left"), "{out}");
}

#[test]
fn without_a_database_it_says_what_to_give() {
    let mut example = Command::new(env!("CARGO_BIN_EXE_quorlock-example-fenced-order"));
    let said = example.output().expect("it starts");
    assert!(!said.status.success());
    assert!(String::from_utf8_lossy(&said.stderr).contains("give the URL of a PostgreSQL"));
}
