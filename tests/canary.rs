//! Nothing secret is shown: no password, no random value, no URL with a login in it.
//!
//! The test runs itself again, as a program that does whatever can be done with the library, well
//! and badly, and prints everything that it is handed: errors, events, logs, every public type by
//! `{:?}`, the words of its panics. What that program wrote is then searched for the canaries: the
//! passwords, which all hold one word, and the random values, which the servers tell.
//!
//! | file | holds |
//! |---|---|
//! | `canary/print` | printing what the library hands out |
//! | `canary/input` | what is refused before anything is sent |
//! | `canary/life` | locks from their acquisition to their end, whatever that is |
//! | `canary/servers` | servers that cannot be reached, refuse, hang, or repeat what they hear |

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a program of its own that runs tasks, and fails on the spot"
)]

#[path = "canary/input.rs"]
mod input;
#[path = "canary/life.rs"]
mod life;
#[path = "canary/print.rs"]
mod print;
#[path = "canary/servers.rs"]
mod servers;

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use support::process::tied;
use support::scratch::Scratch;
use support::{Reply, Server, need_process};

/// In every password here, and in nothing else.
const CANARY: &str = "c4n4ry";

/// A password that would break any URL that it was put into as it is.
const PASSWORD: &str = "p@:/c4n4ry?#%41 ü";

/// The same in a URL.
const ENCODED: &str = "p%40%3A%2Fc4n4ry%3F%23%2541%20%C3%BC";

/// Names the file into which the program writes the random values, and makes us that program.
const VARIABLE: &str = "QUORLOCK_CANARY_TOKENS";

/// What the program must have come to print, so that it is known to have done what it should.
const WELL_SHOWN: [&str; 12] = [
    "said NOAUTH",
    "said WRONGPASS",
    "refused the connection",
    "was silent for",
    "panicked at",
    "event: NodeDown",
    "event: Waiting",
    "event: Retrying",
    "event: ExtensionFailed",
    "event: HeldTooLong",
    "event: Lost",
    "event: Evicts",
];

/// What holds the application's own, or code of its own.
const NOT_OURS: [&str; 3] = ["Frame", "IntoNode", "Observer"];

/// A choice between words of ours: printed, inside of others, as the word alone.
const WORDS: [&str; 3] = ["Mode", "Role", "ServerKind"];

#[test]
fn no_password_no_random_value_and_no_url_is_shown() {
    need_process!();
    if let Some(path) = std::env::var_os(VARIABLE) {
        return run(Path::new(&path));
    }
    let directory = Scratch::new();
    let path = directory.path().join("tokens");
    let output = tied(&std::env::current_exe().unwrap())
        .args(["--exact", "no_password_no_random_value_and_no_url_is_shown", "--nocapture"])
        .env(VARIABLE, &path)
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(String::from_utf8);
    let shown = format!("{}\n{}", stdout.unwrap(), stderr.unwrap());
    assert!(output.status.success(), "{shown}");

    let tokens = std::fs::read_to_string(&path).unwrap();
    assert!(tokens.lines().count() > 20, "too few random values: {tokens}");
    for canary in tokens.lines().flat_map(pieces).chain(spellings(CANARY)) {
        let found: Vec<&str> = shown.lines().filter(|line| line.contains(&canary)).collect();
        assert!(found.is_empty(), "{canary} is shown:\n{}", found.join("\n"));
    }
    for name in public_types() {
        // By itself, or inside of another.
        let ways = [format!("\n{name}: "), format!(" {name} {{"), format!(" {name}(")];
        let is_shown = ways.iter().any(|way| shown.contains(way));
        assert!(is_shown, "no `{name}` was printed; print one in tests/canary");
    }
    for words in WELL_SHOWN {
        assert!(shown.contains(words), "`{words}` is not there: the program did too little");
    }
}

/// A part of a random value is as bad as a long part of it.
fn pieces(token: &str) -> Vec<String> {
    let (first, last) = (&token[..12], &token[token.len() - 12..]);
    [spellings(first), spellings(last)].concat()
}

/// As text, as a list of bytes, and in hexadecimal.
fn spellings(text: &str) -> Vec<String> {
    let list: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![text.to_owned(), list.join(", "), hex]
}

/// The types of the library's face.
fn public_types() -> Vec<String> {
    let lib = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let mut names = Vec::new();
    for item in lib.split("pub use ").skip(1) {
        let item = item.split(';').next().unwrap_or_default();
        let words = item.split(|c: char| !c.is_alphanumeric());
        let is_type = |word: &&str| word.starts_with(char::is_uppercase);
        names.extend(words.filter(is_type).map(String::from));
    }
    let of_features =
        [("TracingObserver", cfg!(feature = "tracing")), ("Tls", cfg!(feature = "tls-rustls"))];
    let is_on = |name: &String| !of_features.contains(&(name, false));
    let is_exempt = |name: &str| NOT_OURS.contains(&name) || WORDS.contains(&name);
    names.retain(|name| is_on(name) && !is_exempt(name));
    assert!(names.len() > 20, "{names:?}");
    names
}

/// Random values that the servers were told.
type Tokens = HashSet<String>;

/// The program.
fn run(tokens: &Path) {
    // No test waits for us forever.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(90));
        eprintln!("the program hangs");
        std::process::abort();
    });
    print::log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut found = Tokens::new();
    runtime.block_on(async {
        input::refused();
        life::run(&mut found).await;
        servers::run(&mut found).await;
    });
    std::fs::write(tokens, found.into_iter().collect::<Vec<_>>().join("\n")).unwrap();
}

/// A server that remembers every command.
fn with_memory(builder: support::server::Builder) -> support::server::Builder {
    builder.args(["--slowlog-log-slower-than", "0", "--slowlog-max-len", "100000"])
}

/// The random values of every command that the server has executed.
fn random_values(server: &Server) -> Vec<String> {
    fn words(reply: Reply) -> String {
        match reply {
            Reply::Array(items) => items.into_iter().map(words).collect::<Vec<_>>().join(" "),
            Reply::Int(number) => number.to_string(),
            Reply::Nil => String::new(),
            text => text.text(),
        }
    }
    values_in(&words(server.command(&["SLOWLOG", "GET", "100000"])))
}

/// The random values in a text: 40 hexadecimal digits before an `@`.
fn values_in(text: &str) -> Vec<String> {
    let is_value = |text: &&str| text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = text.split('@').filter_map(|part| part.get(part.len().saturating_sub(40)..));
    parts.filter(is_value).map(String::from).collect()
}
