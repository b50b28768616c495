//! A node of [`testing`], as these tests drive it, and what it was told, as they read it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Moment;
use crate::lease::{AcquireBy, Adopt, Primitive, Script};
use crate::lock::all::ALL;
use crate::lock::mutex::MUTEX;
use crate::testing::{self, Heard, Nodes, Reaction, When};

/// How a node serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Behaviour {
    /// At once.
    Grants,
    /// What it has got it executes when this ends.
    Hangs,
    /// At once, and answers so late.
    After(Duration),
    /// It does not listen, and every connection has ended.
    Down,
}

/// A command that a node has got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    /// When it came.
    pub(super) at: Moment,
    /// Connections of one process have numbers.
    pub(super) connection: i64,
    /// Commands that came together have the same number.
    pub(super) read: u64,
    /// `SET`, `extend`, `EXTEND` (the whole script), `release`, `RELEASE`, `adopt`, `put back`,
    /// `DEL` and so on.
    pub(super) what: &'static str,
    pub(super) key: String,
}

/// One node.
pub(super) struct Node {
    node: testing::Node,
    /// Whether it ends connections that it is told to end.
    kills: AtomicBool,
}

impl Deref for Node {
    type Target = testing::Node;

    fn deref(&self) -> &testing::Node {
        &self.node
    }
}

impl Node {
    /// All nodes of a network.
    pub(super) fn all(nodes: &Nodes) -> Vec<Arc<Self>> {
        let node = |node: &testing::Node| Self { node: node.clone(), kills: AtomicBool::new(true) };
        nodes.iter().map(|inside| Arc::new(node(inside))).collect()
    }

    pub(super) fn set(&self, behaviour: Behaviour) {
        self.clear_rules();
        if !self.kills.load(Ordering::SeqCst) {
            let denied = Reaction::Answer(b"-NOPERM no permission\r\n".to_vec());
            self.add(When::before("CLIENT").key("KILL").then(denied));
        }
        match behaviour {
            Behaviour::Down => return self.stop(),
            Behaviour::Hangs => return self.hang(),
            Behaviour::After(late) => self.add(When::after_any().then(Reaction::Delay(late))),
            Behaviour::Grants => {}
        }
        self.resume();
        if !self.is_running() {
            self.restart(true).unwrap();
        }
    }

    /// Empties it.
    pub(super) fn flush(&self) {
        assert!(self.command(["FLUSHALL"]).is_ok());
    }

    pub(super) fn delete(&self, key: &str) {
        self.command(["DEL", key]);
    }

    /// Gives the key to another client, for an hour.
    pub(super) fn steal(&self, key: &str) {
        assert!(self.command(["SET", key, "thief", "PX", "3600000"]).is_ok());
    }

    pub(super) fn forget_scripts(&self) {
        assert!(self.command(["SCRIPT", "FLUSH"]).is_ok());
    }

    /// It ends no connection that it is told to end.
    pub(super) fn forbid_kill(&self) {
        self.kills.store(false, Ordering::SeqCst);
        self.set(Behaviour::Grants);
    }

    /// It refuses to execute scripts, or no longer does.
    pub(super) fn set_busy(&self, busy: bool) {
        self.set(Behaviour::Grants);
        if busy {
            self.refuse_scripts("BUSY running a script");
        }
    }

    /// It answers this error to every script, and executes none.
    pub(super) fn refuse_scripts(&self, error: &str) {
        for script in ["EVAL", "EVALSHA"] {
            let refusal = Reaction::Answer(format!("-{error}\r\n").into_bytes());
            self.add(When::before(script).then(refusal));
        }
    }

    /// How long the key lives still.
    pub(super) fn left(&self, key: &str) -> Duration {
        self.remaining(key).unwrap_or_default()
    }

    /// What it has got since [`Node::clear_log`], without the handshakes.
    pub(super) fn log(&self) -> Vec<Said> {
        self.heard().iter().filter_map(said).collect()
    }

    pub(super) fn clear_log(&self) {
        self.forget_heard();
    }
}

fn said(heard: &Heard) -> Option<Said> {
    let words: Vec<&[u8]> = heard.words.iter().map(AsRef::as_ref).collect();
    let (what, key) = match words[..] {
        [b"SET", key, ..] => ("SET", key),
        [b"GET", key] => ("GET", key),
        [b"PTTL", key] => ("PTTL", key),
        [b"DEL", key] => ("DEL", key),
        [b"PING"] => ("PING", &b""[..]),
        [name @ (b"EVALSHA" | b"EVAL"), script, keys, ref rest @ ..] => {
            let keys: usize = std::str::from_utf8(keys).unwrap().parse().unwrap();
            let primitive = if keys > 1 { &ALL } else { &MUTEX };
            (script_of(primitive, name, script, rest.len() - keys), rest[0])
        }
        [b"HELLO" | b"TIME" | b"INFO" | b"CONFIG" | b"CLIENT" | b"SCRIPT", ..] => return None,
        _ => panic!("no lock says such a thing: {words:?}"),
    };
    let key = String::from_utf8(key.into()).unwrap();
    Some(Said { at: heard.at, connection: heard.connection, read: heard.read, what, key })
}

/// What a script's call is for, by its name or its text and how many arguments it has.
fn script_of(primitive: &Primitive, name: &[u8], script: &[u8], arguments: usize) -> &'static str {
    let is_whole = name == b"EVAL";
    let is = |known: &Script| script == if is_whole { known.text } else { known.sha1() }.as_bytes();
    match (primitive, is_whole, arguments) {
        (Primitive { extend, .. }, false, _) if is(extend) => "extend",
        (Primitive { extend, .. }, true, _) if is(extend) => "EXTEND",
        (Primitive { release, .. }, false, _) if is(release) => "release",
        (Primitive { release, .. }, true, 1) if is(release) => "RELEASE",
        (Primitive { release, .. }, true, 2) if is(release) => "put back",
        (Primitive { acquire: AcquireBy::Script(acquire, _), .. }, false, _) if is(acquire) => {
            "acquire"
        }
        (Primitive { acquire: AcquireBy::Script(acquire, _), .. }, true, _) if is(acquire) => {
            "ACQUIRE"
        }
        (Primitive { adopt: Adopt::Scripts { plain, .. }, .. }, true, _)
            if script == plain.as_bytes() =>
        {
            "adopt"
        }
        _ => panic!("no lock runs such a script: {}", script.escape_ascii()),
    }
}
