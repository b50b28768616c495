//! A node inside this process beside a real server of the same name and version: the same is said
//! to both, in RESP2 and in RESP3, and the bytes of their replies are the same but for what
//! [`mask`] lists.
//!
//! | file | what is said |
//! |---|---|
//! | `table` | commands, one behind the other |
//! | `dialogues` | commands of several connections by turns, and what each of them hears |
//! | `scripts`, `scripts_…` | the locks' scripts, on every state of their keys |
//! | `snippets`, `lua.txt` | other Lua: what a reply is to a script, and a value to a client |
//!
//! The tables of the last two are also those of the library's own tests, which run the scripts by
//! Lua on nodes.

mod dialogues;
mod mask;
mod raw;
mod scripts;
mod scripts_run;
mod snippets;
mod table;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorlock::testing::{Node, NodeBuilder};

use mask::masked;
use raw::Raw;
use support::in_process::{self, Inside};
use support::{Server, need_process, tools};
use table::Words;

/// A server, and a node that poses as it.
struct Pair {
    /// What both are, for who reads of a difference.
    name: String,
    server: Server,
    node: Inside,
    /// The connections so far: each side sees one that ends when it comes to it, and counts it
    /// until then.
    connected: RefCell<Vec<Raw>>,
}

impl Pair {
    fn start(
        program: PathBuf,
        server: impl FnOnce(support::server::Builder) -> support::server::Builder,
        node: impl FnOnce(NodeBuilder) -> NodeBuilder,
    ) -> Self {
        let server = server(Server::builder().program(program)).start();
        let (kind, numbers) = server.version();
        let version = numbers.map(|number| number.to_string()).join(".");
        let posing = match kind {
            "valkey" => Node::builder().valkey(&version),
            _ => Node::builder().redis(&version),
        };
        let node = in_process::serve(node(posing)).expect("a port is free");
        Self { name: format!("{kind} {version}"), server, node, connected: RefCell::default() }
    }

    /// Says it all to both, and returns what differs.
    fn compare(&self, hello: Option<&'static str>, said: Vec<Words>, drains: bool) -> Vec<String> {
        let mut theirs = Raw::connect(self.server.addr());
        let mut ours = Raw::connect(self.node.addr().expect("it listens"));
        let mut differences = Vec::new();
        let hello = hello.map(|version| vec!["HELLO", version]);
        for words in hello.into_iter().chain(said) {
            let call = |raw: &mut Raw| match drains {
                true => raw.call_and_drain(&words),
                false => raw.call(&words),
            };
            let (theirs, ours) = (call(&mut theirs), call(&mut ours));
            if masked(&words, &theirs) != masked(&words, &ours) {
                let shown: Words = words.iter().map(|word| &word[..word.len().min(40)]).collect();
                let [ours, theirs] = [ours, theirs].map(|bytes| bytes.escape_ascii().to_string());
                differences.push(format!("{}: {shown:?}\n  {ours}\n  {theirs}", self.name));
            }
        }
        self.connected.borrow_mut().extend([theirs, ours]);
        differences
    }
}

/// Compares on all servers there are, and says how much that was.
fn on_all(what: &str, compare: impl Fn(PathBuf) -> Vec<String>) {
    on_each(&tools::all_servers(), what, compare);
}

/// As [`on_all`], on the one server that `QUORLOCK_SERVER` names if it names one: for what takes
/// long and would be the same for each combination of `tests/matrix`.
fn on_named(what: &str, compare: impl Fn(PathBuf) -> Vec<String>) {
    match std::env::var_os("QUORLOCK_SERVER") {
        Some(program) => on_each(&[program.into()], what, compare),
        None => on_all(what, compare),
    }
}

fn on_each(servers: &[PathBuf], what: &str, compare: impl Fn(PathBuf) -> Vec<String>) {
    let differences: Vec<String> = servers.iter().cloned().flat_map(compare).collect();
    let count = differences.len();
    assert!(
        differences.is_empty(),
        "{count} replies differ, {what}; the node's first, the server's below it:\n{}",
        differences.join("\n")
    );
    assert!(!servers.is_empty());
}

#[test]
fn a_node_answers_as_a_server_does() {
    need_process!();
    on_all("where no password is asked for", |program| {
        let pair = Pair::start(program, |server| server, |node| node);
        let mut differences = pair.compare(Some("2"), table::open(), false);
        differences.extend(pair.compare(Some("3"), table::open(), false));
        differences.extend(pair.compare(Some("3"), table::tracking(), true));
        assert_eq!(pair.node.calls("acquire"), 2 * (2 * 21 + 7 + 1));
        differences
    });
}

#[test]
fn a_node_that_asks_for_a_password_refuses_as_a_server_does() {
    need_process!();
    on_all("where a password is asked for", |program| {
        let pair = Pair::start(
            program,
            |server| {
                let users = table::USERS.iter();
                users.fold(server.password(table::PASSWORD), |it, (name, rules)| {
                    it.user(name, rules)
                })
            },
            |node| {
                let users = table::USERS.iter();
                users.fold(node.password(table::PASSWORD), |it, (name, rules)| it.user(name, rules))
            },
        );
        pair.compare(None, table::guarded(), false)
    });
}

#[test]
fn a_node_that_is_a_replica_refuses_as_a_server_does() {
    need_process!();
    on_all("on a replica", |program| {
        let master = Server::builder().program(&program).start();
        let pair = Pair::start(program, |server| server.replica_of(&master), |node| node.replica());
        ["2", "3"]
            .into_iter()
            .flat_map(|hello| pair.compare(Some(hello), table::replica(), false))
            .collect()
    });
}

#[test]
fn a_pause_keeps_waiting_what_it_does_on_a_server() {
    need_process!();
    on_all("of a pause", |program| {
        let pair = Pair::start(program, |server| server, |node| node);
        let paused = |addr| {
            let (mut teller, mut writer) = (Raw::connect(addr), Raw::connect(addr));
            let mut told = vec![teller.call(&["SET", "k", "old"]), writer.call(&["PING"])];
            told.push(teller.call(&["CLIENT", "PAUSE", "60000", "WRITE"]));
            writer.send(&["SET", "k", "new"]);
            writer.send(&["GET", "k"]);
            // Long enough for the other connection's words to have come.
            told.extend((0..100).map(|_| teller.call(&["GET", "k"])));
            told.push(teller.call(&["CLIENT", "UNPAUSE"]));
            told.extend([writer.reply(), writer.reply()]);
            let began = Instant::now();
            told.push(teller.call(&["CLIENT", "PAUSE", "50", "ALL"]));
            told.extend([teller.call(&["GET", "k"]), writer.call(&["PING"])]);
            assert!(began.elapsed() >= Duration::from_millis(45), "a reader waits, too");
            told
        };
        // A message goes to replicas, too, and so waits as a write does.
        let published = |addr| {
            let (mut teller, mut publisher) = (Raw::connect(addr), Raw::connect(addr));
            teller.call(&["HELLO", "3"]);
            let pause = vec!["CLIENT", "PAUSE", "60000", "WRITE"];
            let mut told = vec![teller.converse(&[vec!["SUBSCRIBE", "c"], pause])];
            publisher.send(&["PUBLISH", "c", "hi"]);
            told.extend((0..100).map(|_| teller.converse(&[vec!["GET", "k"]])));
            let unpaused = teller.converse(&[vec!["CLIENT", "UNPAUSE"]]);
            told.push(publisher.reply());
            told.push([unpaused, teller.converse(&[])].concat());
            told
        };
        let all = |addr| [paused(addr), published(addr)].concat();
        let theirs = all(pair.server.addr());
        let ours = all(pair.node.addr().expect("it listens"));
        let differs = (ours != theirs).then(|| format!("{}: {ours:?}, {theirs:?}", pair.name));
        differs.into_iter().collect()
    });
}
