//! What a lock says to a node, byte by byte.
//!
//! | | command | replies |
//! |---|---|---|
//! | acquire | `SET key value NX PX ttl`, or a script | `OK`, null; 1, −n |
//! | release | `EVALSHA` of a script | 1, 0, −1 |
//! | extend | `EVALSHA` of a script | 1, 0, −1, −2 |
//! | adopt | `EVAL` of a script | {1, ms}, 0, −1, −2 |
//! | revoke | `EVAL` of `revoke.lua` | {1, ms}, 0, −1 |
//! | fence | `EVALSHA` of `fence.lua` | 1, 0, −f |
//! | acquire with a fence | the same, with a TTL | 1, 0, −f |
//! | let expire | `EVAL` of the extension, `exactly` | 1, 0, −1, −2 |
//! | make a reader of a writer | `EVAL` of a script | 1, 0, −1 |
//! | put the former value back | `EVAL` of the release | 1, 0, −1 |
//! | leave the queue | `ZREM queue value`, `ZREM beats value` | 1, 0 |
//! | shut a gate | `SET gate value PX 1500` | `OK` |
//! | open it | `EVAL` of the release | 1, 0, −1 |
//! | put into service | `EVAL` of `initialise.lua` | 1, 0, {3…4, ms} |
//!
//! Which scripts these are is the lock's [`Primitive`]. Where servers may forget, `standing.lua`
//! goes before the script that adopts, and before those that acquire, which is by `EVALSHA` there;
//! all then may answer {2…4, ms} as well.
//!
//! The keys stand verbatim behind the prefix. The same bytes go to every node, but for the hole at
//! the end of the commands for servers that may forget, which each link fills with its server's
//! `run_id`.

use std::ops::Range;
use std::time::Duration;

use quorlock_resp::encode;

use super::durability::Volatile;
use super::key::Key;
use super::primitive::{AcquireBy, Adopt, Script, ScriptForm, script};
use super::resource::{Resource, SlotQuery};
use super::wire::{DECIMAL_MAX, Value, decimal, put_millis, with_scratch};
use crate::error::Error;
use crate::fence::Fence;
use crate::link::{ReplyKind, Undo, UndoScript};

/// Puts a node into service. Seldom sent, and so always in full.
const INITIALISE: Script = Script { text: include_str!("script/initialise.lua"), by_digest: "" };

/// Adds to a set of names, and asks for it. Seldom sent, and so always in full.
const NAME_SET: Script = Script { text: include_str!("script/name_set.lua"), by_digest: "" };

/// The same where servers may forget.
const NAME_SET_VOTE: Script = Script {
    text: concat!(include_str!("script/standing.lua"), include_str!("script/name_set.lua")),
    by_digest: "",
};

/// Lets a fence rise. (A test compares the digest with the script.)
pub(crate) const FENCE: Script =
    script!(include_str!("script/fence.lua"), "94421759fcf080025823f1d85a90f8e7667e56c8");

/// The same where servers may forget, of an acquisition.
pub(crate) const FENCE_VOTE: Script = script!(
    concat!(include_str!("script/standing.lua"), include_str!("script/fence.lua")),
    "8f107f0cb4e534b61559187c955d40ca9ea46dc6"
);

/// Asks `ticket_ask.lua` for the lock if none waits, and else for the highest ticket. Of a reader:
/// its turn has come in no queue.
pub(super) const NO_PLACE: u64 = 0;

const SET: &[u8] = b"*6\r\n$3\r\nSET\r\n";
const ZREM: &[u8] = b"*3\r\n$4\r\nZREM\r\n";
const NX_PX: &[u8] = b"$2\r\nNX\r\n$2\r\nPX\r\n";

/// What a lock's commands are about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) value: Value<'a>,
}

/// An encoded command.
pub(crate) struct Encoded<'a> {
    pub(crate) bytes: &'a [u8],
    /// What a node replies to it.
    pub(crate) kind: ReplyKind,
    /// What undoes it, and the keys and the value that it is about.
    pub(crate) undo: Undo<'a>,
}

/// A token that nodes are asked to take as a lock's fence.
pub(crate) struct TokenOffer<'a> {
    /// The keys of the lock's fences.
    pub(crate) fences: &'a [Key],
    pub(crate) token: Fence,
    /// How far ahead of a node's clock it may lie, in microseconds.
    pub(crate) ahead: u64,
    /// How far above the node's fence it may lie where it is further ahead than that.
    pub(crate) step: u64,
}

impl TokenOffer<'_> {
    /// How many arguments it comes to, the lock's value among them.
    const ARGUMENTS: usize = 4;
}

/// A script's call. Its arguments behind the value are `former`, `place`, `query`, `ttl`,
/// `exactly` and `volatile`, in this order.
struct Call<'a> {
    script: &'a Script,
    form: ScriptForm,
    kind: ReplyKind,
    /// The value that is taken over from, or put back.
    former: Option<&'a str>,
    /// Its place among those that wait, of a lock that [tells](Primitive::tells_place) it.
    place: Option<u64>,
    ttl: Option<Duration>,
    /// Which of the keys are to be chosen.
    query: Option<SlotQuery>,
    /// Whether the keys live for no longer than the `ttl`.
    exactly: bool,
    /// What is added where servers may forget.
    volatile: Option<&'a Volatile>,
}

impl<'a> Call<'a> {
    fn new(script: &'a Script, form: ScriptForm, kind: ReplyKind) -> Self {
        let (former, place, query, ttl) = (None, None, None, None);
        let (exactly, volatile) = (false, None);
        Self { script, form, kind, former, place, ttl, query, exactly, volatile }
    }
}

impl Subject<'_> {
    /// Encodes an acquisition and hands it to `send`.
    pub(crate) fn with_acquire<R>(
        &self,
        form: ScriptForm,
        ttl: Duration,
        volatile: Option<&Volatile>,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        self.with_acquire_at(NO_PLACE, form, ttl, volatile, send)
    }

    /// As [`with_acquire`](Self::with_acquire), with this place, if the lock tells it.
    pub(crate) fn with_acquire_at<R>(
        &self,
        place: u64,
        form: ScriptForm,
        ttl: Duration,
        volatile: Option<&Volatile>,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        let primitive = self.resource.primitive;
        let (script, kind) = match (volatile, &primitive.acquire) {
            (None, AcquireBy::SetIfAbsent) => return self.with_set(ttl, send),
            (None, AcquireBy::Script(script, kind)) => (script, *kind),
            (Some(_), _) => (&primitive.vote, primitive.vote_reply),
        };
        let place = primitive.tells_place.then_some(place);
        let query = self.resource.slots_to_choose().and_then(|_| self.resource.query());
        let call = Call::new(script, form, kind);
        self.with_call(Call { place, query, ttl: Some(ttl), volatile, ..call }, send)
    }

    /// Encodes an acquisition by `SET NX PX` and hands it to `send`. Of a lock of one key.
    fn with_set<R>(&self, ttl: Duration, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        with_scratch(|out| {
            out.extend_from_slice(SET);
            let pair = self.put_pair(out);
            out.extend_from_slice(NX_PX);
            put_millis(out, self.resource.life(ttl));
            send(Encoded { bytes: out, kind: ReplyKind::Status, undo: self.deletes(&out[pair]) })
        })
    }

    /// Encodes a release and hands it to `send`.
    pub(crate) fn with_release<R>(&self, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        let script = &self.resource.primitive.release;
        self.with_call(Call::new(script, ScriptForm::Digest, ReplyKind::Undo), send)
    }

    /// Encodes what deletes a [gate](Resource::gate), and hands it to `send`. A gate ends by
    /// itself, so no node is owed that, as a release is; and so it is always sent in full.
    pub(crate) fn with_open<R>(&self, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        let script = &self.resource.primitive.release;
        self.with_call(Call::new(script, ScriptForm::Whole, ReplyKind::Script), send)
    }

    /// Encodes what takes the value out of this key, which is a [queue's](Resource::queue), and
    /// hands it to `send`. A reader stands there with an `r` before its value.
    pub(crate) fn with_leave_queue<R>(&self, of: &Key, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        with_scratch(|out| {
            out.extend_from_slice(ZREM);
            encode::bulk(out, of.full());
            match self.resource.primitive.holders.are_readers() {
                true => encode::bulk(out, format!("r{}", self.value).as_bytes()),
                false => self.value.put(out),
            }
            send(Encoded { bytes: out, kind: ReplyKind::Any, undo: Undo::NONE })
        })
    }

    /// Encodes what puts the `former` value back where an adoption has set ours, and hands it to
    /// `send`.
    pub(crate) fn with_put_back<R>(&self, former: &str, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        let call = Call::new(&self.resource.primitive.release, ScriptForm::Whole, ReplyKind::Undo);
        self.with_call(Call { former: Some(former), ..call }, send)
    }

    /// Encodes an adoption from the `former` value, and hands it to `send`. An error for a lock
    /// that is not adopted.
    pub(crate) fn with_adopt<R>(
        &self,
        former: &str,
        ttl: Duration,
        volatile: Option<&Volatile>,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> Result<R, Error> {
        let (text, kind) = match (&self.resource.primitive.adopt, volatile) {
            (Adopt::Refused { why, .. }, _) => return Err(Error::misuse(*why)),
            (Adopt::Scripts { plain, .. }, None) => (plain, ReplyKind::Adopt),
            (Adopt::Scripts { vote, .. }, Some(_)) => (vote, ReplyKind::Vote),
        };
        let script = Script { text, by_digest: "" };
        let call = Call::new(&script, ScriptForm::Whole, kind);
        let call = Call { former: Some(former), ttl: Some(ttl), volatile, ..call };
        Ok(self.with_call(call, send))
    }

    /// Encodes what makes a reader of the writer with this value, and hands it to `send`. Seldom
    /// sent, and so always in full.
    pub(crate) fn with_downgrade<R>(
        &self,
        text: &'static str,
        ttl: Duration,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        let script = Script { text, by_digest: "" };
        // Not as to an undo: where one is refused, another follows in its place.
        let call = Call::new(&script, ScriptForm::Whole, ReplyKind::Keys);
        self.with_call(Call { ttl: Some(ttl), ..call }, send)
    }

    /// Encodes an extension and hands it to `send`.
    pub(crate) fn with_extend<R>(
        &self,
        form: ScriptForm,
        ttl: Duration,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        let call = Call::new(&self.resource.primitive.extend, form, ReplyKind::Script);
        self.with_call(Call { ttl: Some(ttl), ..call }, send)
    }

    /// Encodes what lets the keys live for exactly `left` more, and hands it to `send`. Seldom
    /// sent, and so always in full.
    pub(crate) fn with_expiry<R>(&self, left: Duration, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        let extend = &self.resource.primitive.extend;
        let call = Call::new(extend, ScriptForm::Whole, ReplyKind::Script);
        self.with_call(Call { ttl: Some(left), exactly: true, ..call }, send)
    }

    /// Encodes what lets the lock's fences rise, and hands it to `send`.
    pub(crate) fn with_fence<R>(
        &self,
        offer: &TokenOffer<'_>,
        form: ScriptForm,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        with_scratch(|out| {
            let keys = offer.fences.len() + self.resource.keys().len();
            put_call(out, &FENCE, form, keys, TokenOffer::ARGUMENTS);
            let pair = self.put_offer(out, offer);
            send(Encoded { bytes: out, kind: ReplyKind::Fence, undo: Undo::nothing(&out[pair]) })
        })
    }

    /// Encodes an acquisition that lets the lock's fence rise, and hands it to `send`. Of a lock of
    /// one key.
    pub(crate) fn with_acquire_fenced<R>(
        &self,
        offer: &TokenOffer<'_>,
        form: ScriptForm,
        ttl: Duration,
        volatile: Option<&Volatile>,
        send: impl FnOnce(Encoded<'_>) -> R,
    ) -> R {
        debug_assert_eq!(self.resource.count(), 1);
        let (script, kind) = match volatile {
            None => (&FENCE, ReplyKind::AcquireFenced),
            Some(_) => (&FENCE_VOTE, ReplyKind::AcquireFencedVote),
        };
        let keys = 2 + volatile.map_or(0, |_| Volatile::KEYS);
        let arguments = TokenOffer::ARGUMENTS + 1 + volatile.map_or(0, |_| Volatile::ARGUMENTS);
        with_scratch(|out| {
            put_call(out, script, form, keys, arguments);
            if let Some(volatile) = volatile {
                volatile.put_keys(out);
            }
            let pair = self.put_offer(out, offer);
            put_millis(out, self.resource.life(ttl));
            if let Some(volatile) = volatile {
                volatile.put_arguments(out);
            }
            send(Encoded { bytes: out, kind, undo: self.deletes(&out[pair]) })
        })
    }

    /// Encodes a script's call and hands it to `send`. Its undo follows from the reply's kind and
    /// the `former` value: an extension has none, a call with a former value puts that back, and
    /// any other deletes the keys.
    fn with_call<R>(&self, call: Call<'_>, send: impl FnOnce(Encoded<'_>) -> R) -> R {
        let Call { script, form, kind, former, place, query, ttl, exactly, volatile } = call;
        let keys = volatile.map_or(0, |_| Volatile::KEYS) + usize::from(self.resource.count());
        let arguments = 1
            + usize::from(former.is_some())
            + usize::from(place.is_some())
            + query.map_or(0, |_| SlotQuery::ARGUMENTS)
            + usize::from(ttl.is_some())
            + usize::from(exactly)
            + volatile.map_or(0, |_| Volatile::ARGUMENTS);
        with_scratch(|out| {
            put_call(out, script, form, keys, arguments);
            if let Some(volatile) = volatile {
                volatile.put_keys(out);
            }
            let pair = self.put_pair(out);
            if let Some(former) = former {
                encode::bulk(out, former.as_bytes());
            }
            let put_back = pair.start..out.len();
            if let Some(place) = place {
                encode::bulk(out, decimal(place, &mut [0; DECIMAL_MAX]));
            }
            if let Some(query) = query {
                query.put(out);
            }
            if let Some(ttl) = ttl {
                put_millis(out, if exactly { ttl } else { self.resource.life(ttl) });
            }
            if exactly {
                encode::bulk(out, b"exactly");
            }
            if let Some(volatile) = volatile {
                volatile.put_arguments(out);
            }
            let undo = match kind {
                ReplyKind::Script => Undo::nothing(&out[pair]),
                _ if former.is_none() => self.deletes(&out[pair]),
                _ => Undo::put_back(self.undo_script(), &out[put_back], pair.len()),
            };
            send(Encoded { bytes: out, kind, undo })
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
        (&self.resource.primitive.undo, self.resource.count())
    }

    /// The keys and arguments of `fence.lua`; where the pair stands.
    fn put_offer(&self, out: &mut Vec<u8>, offer: &TokenOffer<'_>) -> Range<usize> {
        offer.fences.iter().for_each(|fence| encode::bulk(out, fence.full()));
        let start = out.len();
        // `fence.lua` is given the lock's keys alone: what is kept beside them has no fence.
        self.resource.keys().iter().for_each(|key| encode::bulk(out, key.full()));
        self.value.put(out);
        let pair = start..out.len();
        for number in [offer.token.number(), offer.ahead, offer.step] {
            encode::bulk(out, decimal(number, &mut [0; DECIMAL_MAX]));
        }
        pair
    }

    fn put_pair(&self, out: &mut Vec<u8>) -> Range<usize> {
        let start = out.len();
        self.resource.put(out);
        self.value.put(out);
        start..out.len()
    }
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

/// Encodes what puts a node into service, or looks whether it is, and hands it to `send`.
pub(crate) fn with_initialise<R>(
    volatile: &Volatile,
    act: &[u8],
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        let (keys, arguments) = (Volatile::KEYS, 1 + Volatile::ARGUMENTS);
        put_call(out, &INITIALISE, ScriptForm::Whole, keys, arguments);
        volatile.put_keys(out);
        encode::bulk(out, act);
        volatile.put_arguments(out);
        send(Encoded { bytes: out, kind: ReplyKind::Vote, undo: Undo::NONE })
    })
}

/// What is added to a set of names.
#[derive(Clone, Copy)]
pub(crate) struct Addition<'a> {
    /// The name; without one the set is only read.
    pub(crate) name: Option<&'a [u8]>,
    /// Where this name is in the set, nothing is added.
    pub(crate) unless: &'a [u8],
    /// For how long the name stays at least, or the one that keeps it out.
    pub(crate) ttl: Duration,
}

/// Encodes what adds a name to the set at this key, and asks for all that are in it; hands it to
/// `send`.
pub(crate) fn with_name_set<R>(
    volatile: Option<&Volatile>,
    key: &Key,
    Addition { name, unless, ttl }: Addition<'_>,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    let (script, kind) = match volatile {
        Some(_) => (&NAME_SET_VOTE, ReplyKind::NameSetVote),
        None => (&NAME_SET, ReplyKind::NameSet),
    };
    with_scratch(|out| {
        let (keys, arguments) = volatile.map_or((0, 0), |_| (Volatile::KEYS, Volatile::ARGUMENTS));
        put_call(out, script, ScriptForm::Whole, keys + 1, arguments + 3);
        if let Some(volatile) = volatile {
            volatile.put_keys(out);
        }
        encode::bulk(out, key.full());
        encode::bulk(out, name.unwrap_or_default());
        encode::bulk(out, unless);
        put_millis(out, ttl);
        if let Some(volatile) = volatile {
            volatile.put_arguments(out);
        }
        send(Encoded { bytes: out, kind, undo: Undo::NONE })
    })
}
