//! What a node in memory holds and does: keys with values and ends, and the two scripts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::super::command::{EXTEND, EXTEND_SHA1, RELEASE, RELEASE_SHA1};
use super::ms;
use super::node::{Behaviour, Said};
use crate::clock::{Clock, Moment};

/// The state of one node.
pub(super) struct State {
    pub(super) behaviour: Behaviour,
    run_id: String,
    pub(super) keys: HashMap<String, Entry>,
    /// The digests of the scripts that it knows.
    pub(super) scripts: HashSet<&'static [u8]>,
    pub(super) reads: u64,
    pub(super) connections: u64,
    /// Whether it ends connections that it is told to end.
    pub(super) kills: bool,
    /// Whether it executes scripts at present.
    pub(super) busy: bool,
    pub(super) log: Vec<Said>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) value: Vec<u8>,
    pub(super) end: Moment,
}

impl State {
    pub(super) fn new(index: usize, behaviour: Behaviour) -> Self {
        Self {
            behaviour,
            run_id: format!("node-{index}"),
            keys: HashMap::new(),
            scripts: HashSet::new(),
            reads: 0,
            connections: 0,
            kills: true,
            busy: false,
            log: Vec::new(),
        }
    }

    /// The key is this value's until then, whosever it was.
    pub(super) fn put(&mut self, key: &str, value: &[u8], end: Moment) {
        self.keys.insert(key.into(), Entry { value: value.into(), end });
    }

    pub(super) fn live(&self, key: &str) -> Option<&Entry> {
        let now = Clock::default().now();
        self.keys.get(key).filter(|entry| now < entry.end)
    }

    pub(super) fn note(&mut self, words: &[Vec<u8>], connection: u64, at: Moment) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let (what, key) = match words[..] {
            [b"SET", key, ..] => ("SET", key),
            [b"GET", key] => ("GET", key),
            [b"PTTL", key] => ("PTTL", key),
            [b"DEL", key] => ("DEL", key),
            [b"PING"] => ("PING", &b""[..]),
            [b"EVALSHA", EXTEND_SHA1, _, key, ..] => ("extend", key),
            [b"EVALSHA", RELEASE_SHA1, _, key, ..] => ("release", key),
            [b"EVAL", script, _, key, ..] if script == EXTEND.as_bytes() => ("EXTEND", key),
            [b"EVAL", script, _, key, ..] if script == RELEASE.as_bytes() => ("RELEASE", key),
            [b"HELLO" | b"TIME" | b"INFO" | b"CONFIG" | b"CLIENT" | b"SCRIPT", ..] => return,
            _ => ("?", &b""[..]),
        };
        self.log.push(Said { at, connection, read: self.reads, what, key: text(key) });
    }

    pub(super) fn execute(&mut self, words: &[&[u8]]) -> String {
        match words {
            [b"HELLO", ..] => "%2\r\n+id\r\n:7\r\n+mode\r\n+standalone\r\n".into(),
            [b"INFO", ..] => bulk(&format!("run_id:{}\r\n", self.run_id)),
            [b"CLIENT", b"KILL", ..] if !self.kills => "-NOPERM no permission\r\n".into(),
            [b"CLIENT", ..] => ":1\r\n".into(),
            [b"PING"] => "+PONG\r\n".into(),
            [b"SCRIPT", b"LOAD", script] => {
                self.scripts.extend(digest(script));
                "+loaded\r\n".into()
            }
            [b"GET", key] => {
                let found = self.live(&text(key));
                found.map_or_else(|| "_\r\n".into(), |entry| bulk(&text(&entry.value)))
            }
            [b"PTTL", key] => {
                let found = self.live(&text(key));
                let left = found.map(|entry| entry.end.since(Clock::default().now()).as_millis());
                left.map_or_else(|| ":-2\r\n".into(), |left| format!(":{left}\r\n"))
            }
            [b"DEL", key] => {
                let key = text(key);
                let deleted = self.live(&key).is_some();
                self.keys.remove(&key);
                format!(":{}\r\n", u8::from(deleted))
            }
            [b"SET", key, value, b"NX", b"PX", ttl] => self.set(text(key), value, millis(ttl)),
            [b"EVALSHA" | b"EVAL", ..] if self.busy => "-BUSY running a script\r\n".into(),
            [b"EVALSHA", digest, ..] if !self.scripts.contains(digest) => {
                "-NOSCRIPT No matching script. Please use EVAL.\r\n".into()
            }
            [b"EVALSHA", digest, b"1", key, rest @ ..] => self.script(digest, &text(key), rest),
            [b"EVAL", script, b"1", key, rest @ ..] => {
                let Some(digest) = digest(script) else { return "-ERR a syntax error\r\n".into() };
                self.scripts.insert(digest);
                self.script(digest, &text(key), rest)
            }
            _ => "-ERR unknown command\r\n".into(),
        }
    }

    fn set(&mut self, key: String, value: &[u8], ttl: Duration) -> String {
        if self.live(&key).is_some() {
            return "_\r\n".into();
        }
        let end = Clock::default().now().plus(ttl);
        self.keys.insert(key, Entry { value: value.into(), end });
        "+OK\r\n".into()
    }

    /// What the two scripts do.
    fn script(&mut self, digest: &[u8], key: &str, arguments: &[&[u8]]) -> String {
        let Some(held) = self.live(key).cloned() else { return ":0\r\n".into() };
        match arguments {
            [value, ..] if held.value != *value => ":-1\r\n".into(),
            [_] if digest == RELEASE_SHA1 => {
                self.keys.remove(key);
                ":1\r\n".into()
            }
            [_, ttl] if digest == EXTEND_SHA1 => {
                let end = held.end.max(Clock::default().now().plus(millis(ttl)));
                self.keys.insert(key.into(), Entry { end, ..held });
                ":1\r\n".into()
            }
            _ => "-ERR wrong arguments\r\n".into(),
        }
    }
}

fn digest(script: &[u8]) -> Option<&'static [u8]> {
    let known = [(EXTEND, EXTEND_SHA1), (RELEASE, RELEASE_SHA1)];
    known.into_iter().find(|(text, _)| text.as_bytes() == script).map(|(_, digest)| digest)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.into()).unwrap()
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn millis(number: &[u8]) -> Duration {
    ms(text(number).parse().unwrap())
}
