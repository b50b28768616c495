//! The locks' scripts, and Lua itself, on real servers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use support::sha1::sha1_hex;
use support::{Server, need_process};

use super::mask::masked;
use super::raw::Raw;
use super::scripts::{self, Case, HEARD, Hindrance, QUEUES, SCRIPTS, Script, Words};
use super::snippets;
use super::{Pair, on_all, on_named};

/// Of so many cases one is run on real servers. With `QUORLOCK_MANY_CASES`, as in the last step of
/// `tests/run long`, all are but those of slots, which would take minutes. An optimised build runs
/// all of them in the process, by the Lua and by the function. A prime leaves out no state always.
fn share_of(script: &str) -> usize {
    let are_many = std::env::var_os("QUORLOCK_MANY_CASES").is_some();
    match (script.starts_with("slot_"), are_many) {
        (true, true) => 7,
        (true, false) => 23,
        (false, true) => 1,
        (false, false) => 3,
    }
}

/// The shortest beat in a state lasts for 900 ms, and below 200 ms its time left would be compared.
const STATES_LAST: Duration = Duration::from_millis(700);

/// How many cases are run together: each in a database of its own.
const DATABASES: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

#[test]
fn a_script_does_on_a_node_what_it_does_on_a_server() {
    need_process!();
    on_named("of scripts on every state of their keys", |program| {
        let users = scripts::users();
        let pair = Pair::start(
            program,
            |server| users.iter().fold(server, |it, (name, rules)| it.user(name, rules)),
            |node| users.iter().fold(node, |it, (name, rules)| it.user(name, rules)),
        );
        SCRIPTS.iter().flat_map(|script| pair.compare_script(script)).collect()
    });
}

impl Pair {
    /// Runs a script in every way on both, and returns where the reply or what is left differs.
    fn compare_script(&self, script: &Script) -> Vec<String> {
        let digest: &str = sha1_hex(script.text().as_bytes()).leak();
        let mut theirs = Runner::connect(self.server.addr(), script);
        let mut ours = Runner::connect(self.node.addr().expect("it listens"), script);
        let mut differences = Vec::new();
        let cases = script.cases().into_iter().filter(|case| !case.frozen);
        let cases: Vec<Case> = cases.step_by(share_of(script.name)).collect();
        for cases in cases.chunks(DATABASES.len()) {
            let (theirs, ours) = (theirs.run(cases, digest), ours.run(cases, digest));
            let names = cases.iter().map(|case| case.name.clone());
            // What is heard comes behind all of them.
            let last = format!("heard from {} on", cases[0].name);
            for (name, (theirs, ours)) in names.chain([last]).zip(theirs.iter().zip(ours)) {
                if *theirs != ours {
                    let what = format!("{}: {}: {name}", self.name, script.name);
                    differences.push(format!("{what}\n  {ours:?}\n  {theirs:?}"));
                }
            }
        }
        differences
    }
}

/// A connection that runs a script, and one that listens meanwhile.
struct Runner {
    raw: Raw,
    listener: Raw,
    keys: Vec<&'static str>,
}

impl Runner {
    fn connect(addr: SocketAddr, script: &Script) -> Self {
        let (mut raw, mut listener) = (Raw::connect(addr), Raw::connect(addr));
        raw.call(&["SCRIPT", "LOAD", script.text()]);
        listener.converse(&[vec!["HELLO", "3"], [&["SUBSCRIBE"], &HEARD[..]].concat()]);
        Self { raw, listener, keys: script.keys() }
    }

    /// Runs the cases; returns for each the reply and what is left, without what may differ, and
    /// behind them what the listener has heard. Where this machine stalled, the states may have
    /// been over when the script came: they are made anew.
    fn run(&mut self, cases: &[Case], digest: &'static str) -> Vec<Vec<String>> {
        for _ in 0..100 {
            let began = Instant::now();
            let mut told = run(&mut self.raw, cases, (digest, &self.keys));
            let heard = self.listener.converse(&[]);
            if began.elapsed() < STATES_LAST {
                told.push(vec![String::from_utf8_lossy(&heard).into_owned()]);
                return told;
            }
        }
        panic!("{} and those after it took {STATES_LAST:?} a hundred times", cases[0].name);
    }
}

/// Runs the cases; returns for each the reply and what is left under the keys, without what may
/// differ.
fn run(
    raw: &mut Raw,
    cases: &[Case],
    (digest, keys): (&'static str, &[&'static str]),
) -> Vec<Vec<String>> {
    let now = u128::from(clock(raw) / 1_000);
    let mut said = vec![vec!["FLUSHALL".to_owned()]];
    for (case, database) in cases.iter().zip(DATABASES) {
        said.push(vec!["SELECT".to_owned(), database.to_owned()]);
        let state = case.state.iter().filter(|words| words[0] != "PASS");
        said.extend(state.map(|words| scripts::at(now, words)));
    }
    let said: Vec<Vec<&str>> =
        said.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    raw.call_all(&said);
    let passes = cases.iter().flat_map(|case| &case.state).filter(|words| words[0] == "PASS");
    if let Some(longest) = passes.map(|words| words[1].parse::<u64>().unwrap()).max() {
        let began = clock(raw);
        while clock(raw) < began + longest {}
    }
    let asked = |(case, database)| asked(case, database, (digest, keys));
    let runs = cases.iter().zip(DATABASES).map(asked);
    let (mut said, mut lengths) = (Vec::new(), Vec::new());
    for run in runs {
        lengths.push(run.len());
        said.extend(run);
    }
    let mut replies = raw.call_all(&said).into_iter().zip(&said);
    let mut told = Vec::new();
    for (case, length) in cases.iter().zip(lengths) {
        let all = replies.by_ref().take(length);
        let told_of = |words: &Words| match words[0] {
            "EVALSHA" => true,
            "TYPE" | "GET" | "PTTL" | "ZRANGE" => !case.fleeting,
            _ => false,
        };
        let all = all
            .filter(|(_, words)| told_of(words))
            .map(|(reply, words)| String::from_utf8_lossy(&masked(words, &reply)).into_owned());
        told.push(all.collect());
    }
    told
}

/// What is said to run a case and to look at what it leaves.
fn asked(
    case: &Case,
    database: &'static str,
    (digest, keys): (&'static str, &[&'static str]),
) -> Vec<Words> {
    let script = [&["EVALSHA", digest], &case.words[..]].concat();
    let mut said = vec![vec!["SELECT", database]];
    said.extend(match case.hindrance {
        Hindrance::None => vec![script],
        Hindrance::User(name) => {
            vec![vec!["AUTH", name, ""], script, vec!["AUTH", "default", ""]]
        }
        Hindrance::Starved => {
            let memory = |bytes| vec!["CONFIG", "SET", "maxmemory", bytes];
            vec![memory("1"), script, memory("0")]
        }
    });
    for key in keys {
        said.extend(["TYPE", "GET", "PTTL"].map(|look| vec![look, key]));
    }
    let queues = QUEUES.iter().filter(|key| keys.contains(key));
    said.extend(queues.map(|key| vec!["ZRANGE", key, "0", "-1", "WITHSCORES"]));
    said
}

/// A server's clock, in microseconds.
fn clock(raw: &mut Raw) -> u64 {
    let reply = String::from_utf8(raw.call(&["TIME"])).unwrap();
    let numbers: Vec<u64> = reply.lines().filter_map(|line| line.parse().ok()).collect();
    numbers[0] * 1_000_000 + numbers[1]
}

#[test]
fn lua_replies_on_a_server_as_the_table_says() {
    need_process!();
    on_all("of Lua", |program: PathBuf| {
        let server = Server::builder().program(program).start();
        let (kind, numbers) = server.version();
        let version = numbers.map(|number| number.to_string()).join(".");
        let Some(place) = snippets::place(kind, numbers) else { return Vec::new() };
        let mut raw = Raw::connect(server.addr());
        let mut differences = Vec::new();
        for snippet in snippets::all() {
            raw.call_all(&scripts::read(snippet.setup));
            let reply = raw.call(&["EVAL", &snippet.lua, "1", "k1", "a1", "a2"]);
            let reply = snippets::shown(&reply, &sha1_hex(snippet.lua.as_bytes()));
            if reply != snippet.reply(place) {
                let told = snippet.reply(place);
                let what = format!("{kind} {version}: {}", snippet.lua);
                differences.push(format!("{what}\n  {told}\n  {reply}"));
            }
        }
        differences
    });
}
