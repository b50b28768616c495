//! A node on which a script is run in every way, and what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::keyspace::Entry;
use super::super::sha1::digest;
use super::super::{SessionId, Setup, Store, User, Version};
use super::table::{Case, HEARD, Hindrance, Words, at, users};

/// A node in some state, and who is about to run its script there.
pub(super) struct Bench {
    store: Store,
    session: SessionId,
    now: Duration,
    digest: &'static str,
}

/// What has come of a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Outcome {
    pub(super) reply: Frame,
    /// What the other connection has heard.
    pub(super) heard: Vec<Frame>,
    /// What the keys hold, and until when.
    pub(super) left: Vec<(Bytes, Entry)>,
}

/// How often each command was executed, by its name and its subcommand.
pub(super) type Calls = BTreeMap<(&'static str, String), u64>;

/// A node that poses as some server and knows a script.
pub(super) struct Node {
    /// By who is to run the script: the node with that user, and the user's connection.
    by_user: BTreeMap<&'static str, (Store, SessionId)>,
    digest: &'static str,
}

/// The user who may do everything.
const DEFAULT: &str = "default";

impl Node {
    pub(super) fn new(version: Version, runs_lua: bool, script: &str) -> Self {
        let mut by_user = BTreeMap::new();
        for (name, rules) in users().iter().chain([&(DEFAULT, "on nopass ~* &* +@all")]) {
            let mut setup = Setup { version, runs_lua, ..Setup::default() };
            setup.users.insert((*name).to_owned(), User::by_rules(rules, version).unwrap());
            let mut store = Store::new(setup);
            let session = store.connect();
            for words in [&["SCRIPT", "LOAD", script][..], &["AUTH", name, ""]] {
                let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                let said = store.execute(session, &words, Duration::ZERO);
                assert!(said.messages[0].1.as_error().is_none(), "{name}: {said:?}");
            }
            listen(&mut store);
            by_user.insert(*name, (store, session));
        }
        Self { by_user, digest: digest(script.as_bytes()).leak() }
    }

    /// The node in the state of each case: one for those in a row that share it.
    pub(super) fn prepare(&self, cases: &[Case]) -> Vec<Arc<Bench>> {
        let mut benches: Vec<Arc<Bench>> = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let former = index.checked_sub(1).map(|former| &cases[former]);
            let is_same =
                |former: &Case| (&former.state, former.hindrance) == (&case.state, case.hindrance);
            let bench = match benches.last().filter(|_| former.is_some_and(is_same)) {
                Some(bench) => bench.clone(),
                None => Arc::new(self.prepare_one(case)),
            };
            benches.push(bench);
        }
        benches
    }

    fn prepare_one(&self, case: &Case) -> Bench {
        let user = if let Hindrance::User(name) = case.hindrance { name } else { DEFAULT };
        let (store, session) = &self.by_user[user];
        let mut store = store.clone();
        let mut now = Duration::from_secs(1_000_000);
        let mut say = |words: &[&str], now: Duration| {
            let words = at(now.as_millis(), words);
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let (reply, _) = store.execute_as_operator(&words, now);
            assert!(reply.as_error().is_none(), "{words:?}: {reply:?}");
        };
        for words in &case.state {
            match words[..] {
                ["PASS", micros] => now += Duration::from_micros(micros.parse().unwrap()),
                _ => say(words, now),
            }
        }
        if case.hindrance == Hindrance::Starved {
            say(&["CONFIG", "SET", "maxmemory", "1"], now);
        }
        Bench { store, session: *session, now, digest: self.digest }
    }
}

/// Has another connection listen.
fn listen(store: &mut Store) {
    let listener = store.connect();
    let subscribe: Vec<&[u8]> = ["SUBSCRIBE"].into_iter().chain(HEARD).map(str::as_bytes).collect();
    for words in [&[&b"HELLO"[..], b"3"][..], &subscribe] {
        let said = store.execute(listener, words, Duration::ZERO);
        assert!(said.messages[0].1.as_error().is_none(), "{said:?}");
    }
}

impl Bench {
    /// The keys without an end.
    pub(super) fn without_end(&self) -> BTreeSet<Bytes> {
        let is_without = |key: &Bytes| {
            self.store.keys.get(&(0, key.clone())).is_some_and(|entry| entry.end.is_none())
        };
        self.store.keys().into_iter().filter(is_without).collect()
    }

    /// Runs the script, with these keys and arguments.
    pub(super) fn run(&self, words: &Words) -> (Outcome, Calls) {
        self.run_in(self.store.clone(), self.digest, words)
    }

    /// Runs another script in its place: its digest and its text.
    pub(super) fn run_as(
        &self,
        digest: &'static str,
        text: &Bytes,
        words: &Words,
    ) -> (Outcome, Calls) {
        let mut store = self.store.clone();
        store.scripts.insert(digest.to_owned(), text.clone());
        let (outcome, calls) = self.run_in(store, digest, words);
        // Some servers tell the digest with an error.
        let Frame::Error(text) = &outcome.reply else { return (outcome, calls) };
        let text = String::from_utf8_lossy(text).replace(digest, self.digest);
        (Outcome { reply: Frame::Error(text.into()), ..outcome }, calls)
    }

    fn run_in(&self, mut store: Store, digest: &str, words: &Words) -> (Outcome, Calls) {
        let words = [&["EVALSHA", digest], &words[..]].concat();
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let effects = store.execute(self.session, &words, self.now);
        let (own, heard): (Vec<_>, Vec<_>) =
            effects.messages.into_iter().partition(|(to, _)| *to == self.session);
        let [(_, reply)] = &own[..] else { panic!("{own:?}") };
        let heard = heard.into_iter().map(|(_, frame)| frame).collect();
        let entry = |key: Bytes| (key.clone(), store.keys.get(&(0, key)).unwrap().clone());
        let left = store.keys().into_iter().map(entry).collect();
        (Outcome { reply: reply.clone(), heard, left }, store.counts.calls)
    }
}
