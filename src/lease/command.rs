//! What a lock says to a node, byte by byte.
//!
//! | | command | replies |
//! |---|---|---|
//! | acquire | `SET key value NX PX ttl`, or a script | `OK`, null; 1, −n |
//! | release | `EVALSHA` of a script | 1, 0, −1 |
//! | extend | `EVALSHA` of a script | 1, 0, −1 |
//! | adopt | `EVAL` of a script | {1, ms}, 0, −1 |
//! | let expire | `EVAL` of the extension, `exactly` | 1, 0, −1 |
//! | put the former value back | `EVAL` of the release | 1, 0, −1 |
//! | put into service | `EVAL` of `initialise.lua` | 1, 0, {3…4, ms} |
//!
//! Which scripts these are is the lock's [`Primitive`]. Where servers may forget, `standing.lua`
//! goes before the script that adopts, and before the one that acquires, which is by `EVALSHA`
//! there; both then may answer {2…4, ms} as well.
//!
//! The keys stand verbatim behind the prefix. The same bytes go to every node, but for the hole at
//! the end of the commands for servers that may forget, which each link fills with its server's
//! `run_id`.

use std::ops::Range;
use std::time::Duration;

use quorlock_resp::encode;

use super::key::Resource;
use super::primitive::{Primitive, Script, ScriptForm};
use super::wire::{DECIMAL_MAX, Value, decimal, put_millis, with_scratch};
use crate::link::{RunId, Undo, UndoScript};

/// Puts a node into service. Seldom sent, and so always in full.
const INITIALISE: &str = include_str!("script/initialise.lua");

/// What stands where a link puts the name of its server's process.
const HOLE: &RunId = &[b'0'; size_of::<RunId>()];

const SET: &[u8] = b"*6\r\n$3\r\nSET\r\n";
const NX_PX: &[u8] = b"$2\r\nNX\r\n$2\r\nPX\r\n";

/// What a lock's commands are about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) primitive: &'static Primitive,
    pub(crate) resource: &'a Resource,
    pub(crate) value: Value<'a>,
}

/// An encoded command.
pub(crate) struct Encoded<'a> {
    pub(crate) bytes: &'a [u8],
    /// What undoes it, and the keys and the value that it is about.
    pub(crate) undo: Undo<'a>,
}

/// What the deployment of a `Volatile` locker adds to a command.
#[derive(Clone, Copy)]
pub(crate) struct Standing<'a> {
    /// The encoded keys of the node's epoch and quarantine.
    pub(crate) companions: &'a [u8],
    pub(crate) longest_ttl: Duration,
}

impl Standing<'_> {
    /// How many keys and how many arguments it adds.
    const KEYS: usize = 2;
    const ARGUMENTS: usize = 2;

    fn put_arguments(self, out: &mut Vec<u8>) {
        put_millis(out, self.longest_ttl);
        encode::bulk(out, HOLE);
    }
}

impl Subject<'_> {
    /// Encodes an acquisition by `SET NX PX` and hands it to `send`. Of a lock of one key.
    pub(crate) fn with_set<R>(&self, ttl: Duration, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        with_scratch(|out| {
            out.extend_from_slice(SET);
            let pair = self.put_pair(out);
            out.extend_from_slice(NX_PX);
            put_millis(out, ttl);
            send(Encoded { bytes: out, undo: self.deletes(&out[pair]) })
        })
    }

    /// Encodes an acquisition by `script` and hands it to `send`.
    pub(crate) fn with_script<R>(
        &self,
        (script, form): (&Script, ScriptForm),
        ttl: Duration,
        standing: Option<Standing<'_>>,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        with_scratch(|out| {
            let keys = standing.map_or(0, |_| Standing::KEYS);
            let arguments = standing.map_or(0, |_| Standing::ARGUMENTS);
            self.put_call(out, script, form, keys, 2 + arguments);
            if let Some(standing) = standing {
                out.extend_from_slice(standing.companions);
            }
            let pair = self.put_pair(out);
            put_millis(out, ttl);
            if let Some(standing) = standing {
                standing.put_arguments(out);
            }
            send(Encoded { bytes: out, undo: self.deletes(&out[pair]) })
        })
    }

    /// Encodes a release and hands it to `send`.
    pub(crate) fn with_release<R>(&self, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        with_scratch(|out| {
            self.put_call(out, &self.primitive.release, ScriptForm::Digest, 0, 1);
            let pair = self.put_pair(out);
            send(Encoded { bytes: out, undo: self.deletes(&out[pair]) })
        })
    }

    /// Encodes what puts the `former` value back where an adoption has set ours, and hands it to
    /// `send`.
    pub(crate) fn with_put_back<R>(&self, former: &str, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        with_scratch(|out| {
            self.put_call(out, &self.primitive.release, ScriptForm::Whole, 0, 2);
            let pair = self.put_pair(out);
            encode::bulk(out, former.as_bytes());
            let undo = Undo::put_back(self.undo_script(), &out[pair.start..], pair.len());
            send(Encoded { bytes: out, undo })
        })
    }

    /// Encodes an adoption from the `former` value by the script `text`, and hands it to `send`.
    pub(crate) fn with_adopt<R>(
        &self,
        text: &'static str,
        former: &str,
        ttl: Duration,
        standing: Option<Standing<'_>>,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        with_scratch(|out| {
            let script = Script { text, by_digest: "" };
            let keys = standing.map_or(0, |_| Standing::KEYS);
            let arguments = standing.map_or(0, |_| Standing::ARGUMENTS);
            self.put_call(out, &script, ScriptForm::Whole, keys, 3 + arguments);
            if let Some(standing) = standing {
                out.extend_from_slice(standing.companions);
            }
            let pair = self.put_pair(out);
            encode::bulk(out, former.as_bytes());
            let undo = pair.start..out.len();
            put_millis(out, ttl);
            if let Some(standing) = standing {
                standing.put_arguments(out);
            }
            let undo = Undo::put_back(self.undo_script(), &out[undo], pair.len());
            send(Encoded { bytes: out, undo })
        })
    }

    /// Encodes an extension and hands it to `send`.
    pub(crate) fn with_extend<R>(
        &self,
        form: ScriptForm,
        ttl: Duration,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        with_scratch(|out| {
            self.put_call(out, &self.primitive.extend, form, 0, 2);
            let pair = self.put_pair(out);
            put_millis(out, ttl);
            send(Encoded { bytes: out, undo: Undo::nothing(&out[pair]) })
        })
    }

    /// Encodes what lets the keys live for exactly `left` more, and hands it to `send`. Seldom
    /// sent, and so always in full.
    pub(crate) fn with_expiry<R>(&self, left: Duration, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        with_scratch(|out| {
            self.put_call(out, &self.primitive.extend, ScriptForm::Whole, 0, 3);
            let pair = self.put_pair(out);
            put_millis(out, left);
            encode::bulk(out, b"exactly");
            send(Encoded { bytes: out, undo: Undo::nothing(&out[pair]) })
        })
    }

    /// An undo that deletes the keys of this pair.
    pub(crate) fn deletes<'a>(&self, pair: &'a [u8]) -> Undo<'a> {
        Undo::delete(self.undo_script(), pair)
    }

    /// The encoded keys and value, which say what a command is about.
    pub(crate) fn pair(&self) -> Vec<u8> {
        let mut pair = Vec::new();
        self.put_pair(&mut pair);
        pair
    }

    fn undo_script(&self) -> (&'static UndoScript, u16) {
        undo_script(self.primitive, self.resource)
    }

    fn put_pair(&self, out: &mut Vec<u8>) -> Range<usize> {
        let start = out.len();
        self.resource.put(out);
        self.value.put(out);
        start..out.len()
    }

    /// Puts a script's call up to its keys: the lock's and so many more before them, and so many
    /// arguments behind them.
    fn put_call(
        &self,
        out: &mut Vec<u8>,
        script: &Script,
        form: ScriptForm,
        more_keys: usize,
        arguments: usize,
    ) {
        put_call(out, script, form, more_keys + usize::from(self.resource.count()), arguments);
    }
}

/// Encodes a release of the keys under a value that need not be this locker's, and hands it to
/// `send`.
pub(crate) fn with_release_of<R>(
    primitive: &'static Primitive,
    resource: &Resource,
    value: &str,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    let pair = pair_of(resource, value);
    with_scratch(|out| {
        put_call(out, &primitive.release, ScriptForm::Digest, resource.count().into(), 1);
        out.extend_from_slice(&pair);
        send(Encoded { bytes: out, undo: Undo::delete(undo_script(primitive, resource), &pair) })
    })
}

fn undo_script(primitive: &'static Primitive, resource: &Resource) -> (&'static UndoScript, u16) {
    (&primitive.undo, resource.count())
}

/// Puts a script's call up to its keys.
fn put_call(out: &mut Vec<u8>, script: &Script, form: ScriptForm, keys: usize, arguments: usize) {
    encode::array_header(out, 3 + keys + arguments);
    match form {
        ScriptForm::Digest => out.extend_from_slice(script.by_digest.as_bytes()),
        ScriptForm::Whole => {
            encode::bulk(out, b"EVAL");
            encode::bulk(out, script.text.as_bytes());
        }
    }
    match keys {
        1 => out.extend_from_slice(b"$1\r\n1\r\n"),
        keys => encode::bulk(out, decimal(keys as u64, &mut [0; DECIMAL_MAX])),
    }
}

/// The encoded keys and a value that need not be this locker's.
pub(crate) fn pair_of(resource: &Resource, value: &str) -> Vec<u8> {
    let mut pair = Vec::new();
    resource.put(&mut pair);
    encode::bulk(&mut pair, value.as_bytes());
    pair
}

/// Encodes what puts a node into service, or looks whether it is, and hands it to `send`.
pub(crate) fn with_initialise<R>(
    standing: Standing<'_>,
    act: &[u8],
    send: impl FnOnce(&[u8]) -> R,
) -> R {
    with_scratch(|out| {
        encode::array_header(out, 8);
        encode::bulk(out, b"EVAL");
        encode::bulk(out, INITIALISE.as_bytes());
        encode::bulk(out, b"2");
        out.extend_from_slice(standing.companions);
        encode::bulk(out, act);
        standing.put_arguments(out);
        send(out)
    })
}
