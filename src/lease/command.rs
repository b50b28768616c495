//! What a lock says to a node, byte by byte.
//!
//! | | command | replies |
//! |---|---|---|
//! | acquire | `SET key value NX PX ttl` | `OK`, null |
//! | release | `EVALSHA` of `release.lua` | 1, 0, −1 |
//! | extend | `EVALSHA` of `extend.lua` | 1, 0, −1 |
//! | adopt | `EVAL` of `adopt.lua` | {1, ms}, 0, −1 |
//! | let expire | `EVAL` of `extend.lua`, `exactly` | 1, 0, −1 |
//! | put the former value back | `EVAL` of `release.lua` | 1, 0, −1 |
//! | put into service | `EVAL` of `initialise.lua` | 1, 0, {3…4, ms} |
//!
//! The scripts stand in `script/`. Where servers may forget, `standing.lua` goes before the script
//! that adopts, and before `acquire.lua`, which is the acquisition there (by `EVALSHA`; 1 or −1);
//! both then may answer {2…4, ms} as well.
//!
//! The key stands verbatim behind the prefix, the value is one plain string: 160 random bits in
//! hexadecimal, `@`, the owner's name. So any client that does `SET NX PX` and compare-and-delete
//! excludes us, and is excluded by us. The same bytes go to every node, but for the hole at the end
//! of the commands for servers that may forget, which each link fills with its server's `run_id`.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::ops::Range;
use std::time::Duration;

use quorlock_resp::encode;

use crate::entropy::Nonce;
use crate::link::{RunId, Undo, UndoScript};
use crate::weak::{self, Weakness::*};

/// Compare-and-delete.
pub(crate) const RELEASE: &str = include_str!("../lock/script/release.lua");
/// By this name a server that has loaded it knows it. (A test compares the two.)
macro_rules! release_sha1 {
    () => {
        "916642b5b6dd4b1989e91ed6ff2b86d233493ab3"
    };
}
#[cfg(test)]
pub(crate) const RELEASE_SHA1: &[u8] = release_sha1!().as_bytes();

/// What undoes an acquisition or an adoption.
pub(crate) const UNDO: UndoScript = UndoScript { text: RELEASE, keys: 1 };

/// Compare-and-extend.
pub(crate) const EXTEND: &str = include_str!("../lock/script/extend.lua");
pub(crate) const EXTEND_SHA1: &[u8] = b"38c4b48c016c265132124c20017671204b3fa277";

/// Set if not there, and if the node may vote.
pub(crate) const ACQUIRE: &str =
    concat!(include_str!("script/standing.lua"), include_str!("../lock/script/acquire.lua"));
const ACQUIRE_SHA1: &[u8] = b"35fb6f02cdc9860f155091e24b71c81b6ea5eb45";

/// Compare and set another value. Seldom sent, and so always in full.
pub(crate) const ADOPT: &str = include_str!("../lock/script/adopt.lua");

/// The same, if the node may vote.
const ADOPT_VOTE: &str =
    concat!(include_str!("script/standing.lua"), include_str!("../lock/script/adopt.lua"));

/// What a weak release and a weak extension run in their stead; see `weak`.
pub(crate) const WEAK_RELEASE: &[u8] = b"return redis.call('DEL', KEYS[1])";
pub(crate) const WEAK_EXTEND: &[u8] = b"local held = redis.call('GET', KEYS[1]) \
    if held and held ~= ARGV[1] then return -1 end \
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1";

/// What a weak adoption runs in its stead.
pub(crate) const WEAK_ADOPT: &[u8] = b"local left = redis.call('PTTL', KEYS[1]) \
    if left < 0 then return 0 end \
    redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(left, tonumber(ARGV[3]))) \
    return {1, left}";

/// Puts a node into service. Seldom sent, and so always in full.
const INITIALISE: &str = include_str!("script/initialise.lua");

/// What stands where a link puts the name of its server's process.
const HOLE: &RunId = &[b'0'; size_of::<RunId>()];

/// What every server is told on connecting.
pub(crate) const SCRIPTS: [&str; 2] = [RELEASE, EXTEND];

/// How many characters the random part of a value has.
const NONCE_HEX: usize = 2 * Nonce::BYTES;

/// How the two commands of every lock begin. (A test compares them with what `encode` makes.)
const SET: &[u8] = b"*6\r\n$3\r\nSET\r\n";
const EVALSHA_RELEASE: &[u8] =
    concat!("*5\r\n$7\r\nEVALSHA\r\n$40\r\n", release_sha1!(), "\r\n$1\r\n1\r\n").as_bytes();
const NX_PX: &[u8] = b"$2\r\nNX\r\n$2\r\nPX\r\n";

/// What a key holds: one plain string, drawn for one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) nonce: Nonce,
    pub(crate) owner: &'a str,
}

impl Value<'_> {
    fn put(self, out: &mut Vec<u8>) {
        let len = NONCE_HEX + 1 + self.owner.len();
        out.push(b'$');
        out.extend_from_slice(decimal(len as u64, &mut [0; DECIMAL_MAX]));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&hexadecimal(self.nonce));
        out.push(b'@');
        out.extend_from_slice(self.owner.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hexadecimal(self.nonce).iter().try_for_each(|digit| f.write_char((*digit).into()))?;
        write!(f, "@{}", self.owner)
    }
}

/// An encoded command.
pub(crate) struct Encoded<'a> {
    pub(crate) bytes: &'a [u8],
    /// What undoes it, and the key and the value that it is about.
    pub(crate) undo: Undo<'a>,
}

/// Encodes an acquisition into this thread's buffer and hands it to `send`.
pub(crate) fn with_acquire<R>(
    key: &[u8],
    value: Value<'_>,
    ttl: Duration,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        out.extend_from_slice(SET);
        let pair = put_key_and_value(out, key, value);
        out.extend_from_slice(NX_PX);
        put_millis(out, ttl);
        send(Encoded { bytes: out, undo: Undo::delete(UNDO, &out[pair]) })
    })
}

/// Encodes a release into this thread's buffer and hands it to `send`.
pub(crate) fn with_release<R>(
    key: &[u8],
    value: Value<'_>,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        if weak::is(DeleteWithoutCompare) {
            encode::array_header(out, 5);
            [b"EVAL", WEAK_RELEASE, b"1"].into_iter().for_each(|word| encode::bulk(out, word));
        } else {
            out.extend_from_slice(EVALSHA_RELEASE);
        }
        let pair = put_key_and_value(out, key, value);
        send(Encoded { bytes: out, undo: Undo::delete(UNDO, &out[pair]) })
    })
}

/// The encoded key and value, which say what a command is about.
pub(crate) fn pair_of(key: &[u8], value: &str) -> Vec<u8> {
    let mut pair = Vec::new();
    encode::bulk(&mut pair, key);
    encode::bulk(&mut pair, value.as_bytes());
    pair
}

/// Encodes a release of the key under a value that is not this locker's, and hands it to `send`.
pub(crate) fn with_release_of<R>(
    key: &[u8],
    value: &str,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    let pair = pair_of(key, value);
    with_scratch(|out| {
        out.extend_from_slice(EVALSHA_RELEASE);
        out.extend_from_slice(&pair);
        send(Encoded { bytes: out, undo: Undo::delete(UNDO, &pair) })
    })
}

/// Encodes what puts the `former` value back where an adoption has set `value`, and hands it to
/// `send`.
pub(crate) fn with_put_back<R>(
    key: &[u8],
    value: Value<'_>,
    former: &str,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        encode::array_header(out, 6);
        [b"EVAL", RELEASE.as_bytes(), b"1"].into_iter().for_each(|word| encode::bulk(out, word));
        let pair = put_key_and_value(out, key, value);
        encode::bulk(out, former.as_bytes());
        let undo = Undo::put_back(UNDO, &out[pair.start..], pair.len());
        send(Encoded { bytes: out, undo })
    })
}

/// A lock that is taken over: by its key, the value it has, and the one it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handover<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) former: &'a str,
    pub(crate) value: Value<'a>,
    pub(crate) ttl: Duration,
}

/// Encodes an adoption into this thread's buffer and hands it to `send`.
pub(crate) fn with_adopt<R>(handover: Handover<'_>, send: impl FnOnce(Encoded<'_>) -> R) -> R {
    with_scratch(|out| {
        let script = if weak::is(AdoptWithoutCompare) { WEAK_ADOPT } else { ADOPT.as_bytes() };
        encode::array_header(out, 7);
        [b"EVAL", script, b"1"].into_iter().for_each(|word| encode::bulk(out, word));
        let (undo, pair_len) = put_handover(out, handover);
        send(Encoded { bytes: out, undo: Undo::put_back(UNDO, &out[undo], pair_len) })
    })
}

/// Encodes an adoption for servers that may forget into this thread's buffer and hands it to
/// `send`. `companions` are the encoded keys of the node's epoch and quarantine.
pub(crate) fn with_adopt_vote<R>(
    companions: &[u8],
    handover: Handover<'_>,
    longest_ttl: Duration,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        encode::array_header(out, 11);
        [b"EVAL", ADOPT_VOTE.as_bytes(), b"3"].into_iter().for_each(|word| encode::bulk(out, word));
        out.extend_from_slice(companions);
        let (undo, pair_len) = put_handover(out, handover);
        put_millis(out, longest_ttl);
        encode::bulk(out, HOLE);
        send(Encoded { bytes: out, undo: Undo::put_back(UNDO, &out[undo], pair_len) })
    })
}

/// The key, the new value and the former one, which undo the adoption, and the TTL. Says where the
/// undo stands, and how long its pair is.
fn put_handover(out: &mut Vec<u8>, handover: Handover<'_>) -> (Range<usize>, usize) {
    let pair = put_key_and_value(out, handover.key, handover.value);
    encode::bulk(out, handover.former.as_bytes());
    let undo = pair.start..out.len();
    put_millis(out, handover.ttl);
    (undo, pair.len())
}

/// How an extension names its script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptForm {
    /// By its digest, which a server knows that has loaded it.
    Digest,
    /// In full, for a server that has forgotten it.
    Whole,
}

/// Encodes an extension into this thread's buffer and hands it to `send`.
pub(crate) fn with_extend<R>(
    form: ScriptForm,
    key: &[u8],
    value: Value<'_>,
    ttl: Duration,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        let (name, script): (&[u8], _) = match form {
            _ if weak::is(ExtensionRecreates) => (b"EVAL", WEAK_EXTEND),
            ScriptForm::Digest => (b"EVALSHA", EXTEND_SHA1),
            ScriptForm::Whole => (b"EVAL", EXTEND.as_bytes()),
        };
        encode::array_header(out, 6);
        encode::bulk(out, name);
        encode::bulk(out, script);
        encode::bulk(out, b"1");
        let pair = put_key_and_value(out, key, value);
        put_millis(out, ttl);
        send(Encoded { bytes: out, undo: Undo::nothing(&out[pair]) })
    })
}

/// Encodes what lets a key live for exactly `left` more, and hands it to `send`. Seldom sent, and
/// so always in full.
pub(crate) fn with_expiry<R>(
    key: &[u8],
    value: Value<'_>,
    left: Duration,
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        encode::array_header(out, 7);
        [b"EVAL", EXTEND.as_bytes(), b"1"].into_iter().for_each(|word| encode::bulk(out, word));
        let pair = put_key_and_value(out, key, value);
        put_millis(out, left);
        encode::bulk(out, b"exactly");
        send(Encoded { bytes: out, undo: Undo::nothing(&out[pair]) })
    })
}

/// Encodes an acquisition for servers that may forget into this thread's buffer and hands it to
/// `send`. `companions` are the encoded keys of the node's epoch and quarantine.
pub(crate) fn with_vote<R>(
    form: ScriptForm,
    companions: &[u8],
    key: &[u8],
    value: Value<'_>,
    [ttl, longest_ttl]: [Duration; 2],
    send: impl FnOnce(Encoded<'_>) -> R,
) -> R {
    with_scratch(|out| {
        let (name, script): (&[u8], _) = match form {
            ScriptForm::Digest => (b"EVALSHA", ACQUIRE_SHA1),
            ScriptForm::Whole => (b"EVAL", ACQUIRE.as_bytes()),
        };
        encode::array_header(out, 10);
        encode::bulk(out, name);
        encode::bulk(out, script);
        encode::bulk(out, b"3");
        out.extend_from_slice(companions);
        let pair = put_key_and_value(out, key, value);
        put_millis(out, ttl);
        put_millis(out, longest_ttl);
        encode::bulk(out, HOLE);
        send(Encoded { bytes: out, undo: Undo::delete(UNDO, &out[pair]) })
    })
}

/// Encodes what puts a node into service, or looks whether it is, and hands it to `send`.
pub(crate) fn with_initialise<R>(
    companions: &[u8],
    act: &[u8],
    longest_ttl: Duration,
    send: impl FnOnce(&[u8]) -> R,
) -> R {
    with_scratch(|out| {
        encode::array_header(out, 8);
        encode::bulk(out, b"EVAL");
        encode::bulk(out, INITIALISE.as_bytes());
        encode::bulk(out, b"2");
        out.extend_from_slice(companions);
        encode::bulk(out, act);
        put_millis(out, longest_ttl);
        encode::bulk(out, HOLE);
        send(out)
    })
}

/// Whose value it is, if one of ours or of the same form.
pub(crate) fn owner_of(value: &[u8]) -> Option<&str> {
    let (nonce, owner) = value.split_at_checked(NONCE_HEX)?;
    let owner = owner.strip_prefix(b"@")?;
    nonce.iter().all(u8::is_ascii_hexdigit).then(|| std::str::from_utf8(owner).ok()).flatten()
}

fn put_key_and_value(out: &mut Vec<u8>, key: &[u8], value: Value<'_>) -> Range<usize> {
    let start = out.len();
    encode::bulk(out, key);
    value.put(out);
    start..out.len()
}

/// Each byte's two digits: looked up at once, because every command spells 20 of them.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 0x0f]];
        byte += 1;
    }
    pairs
};

fn hexadecimal(nonce: Nonce) -> [u8; NONCE_HEX] {
    let mut hex = [0; NONCE_HEX];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(nonce.0) {
        pair.copy_from_slice(&HEX[usize::from(byte)]);
    }
    hex
}

/// A time in milliseconds, as an argument.
fn put_millis(out: &mut Vec<u8>, time: Duration) {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    encode::bulk(out, decimal(millis, &mut [0; DECIMAL_MAX]));
}

const DECIMAL_MAX: usize = 20;

fn decimal(mut number: u64, digits: &mut [u8; DECIMAL_MAX]) -> &[u8] {
    let mut start = DECIMAL_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

/// Lends this thread's buffer, empty. A thread that is ending has none; then a fresh one serves.
fn with_scratch<R>(body: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let taken = SCRATCH.try_with(|scratch| scratch.take());
    let mut buffer = taken.unwrap_or_default();
    buffer.clear();
    let result = body(&mut buffer);
    // On a thread that is ending there is nowhere to put it back.
    let _ = SCRATCH.try_with(|scratch| scratch.replace(buffer));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = Nonce([0xab; Nonce::BYTES]);
    const DRAWN: Value<'static> = Value { nonce: NONCE, owner: "me@h:1" };
    const VALUE: &str = "abababababababababababababababababababab@me@h:1";

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn acquire_is_set_nx_px_and_carries_its_undo() {
        let ttl = Duration::from_millis(10_000);
        with_acquire(b"pay:k", DRAWN, ttl, |encoded| {
            let undo = format!("$5\r\npay:k\r\n$47\r\n{VALUE}\r\n");
            assert_eq!(
                text(encoded.bytes),
                format!("*6\r\n$3\r\nSET\r\n{undo}$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n")
            );
            assert_eq!(encoded.undo, Undo::delete(UNDO, undo.as_bytes()));
        });
    }

    #[test]
    fn release_is_a_script_by_digest_and_its_undo_completes_the_head() {
        with_release(b"k", DRAWN, |encoded| {
            let sha = text(RELEASE_SHA1);
            let head = format!("*5\r\n$7\r\nEVALSHA\r\n$40\r\n{sha}\r\n$1\r\n1\r\n");
            assert_eq!(text(encoded.bytes), format!("{head}$1\r\nk\r\n$47\r\n{VALUE}\r\n"));
            let whole = encoded.undo.whole();
            let mut expected = Vec::new();
            let args: [&[u8]; 5] = [b"EVAL", RELEASE.as_bytes(), b"1", b"k", VALUE.as_bytes()];
            encode::command(&mut expected, &args);
            assert_eq!(whole, expected);
        });
    }

    #[test]
    fn extend_is_a_script_by_digest_or_in_full() {
        let ttl = Duration::from_secs(30);
        for (form, name, script) in [
            (ScriptForm::Digest, "EVALSHA", EXTEND_SHA1),
            (ScriptForm::Whole, "EVAL", EXTEND.as_bytes()),
        ] {
            let mut expected = Vec::new();
            let args: [&[u8]; 6] =
                [name.as_bytes(), script, b"1", b"k", VALUE.as_bytes(), b"30000"];
            encode::command(&mut expected, &args);
            with_extend(form, b"k", DRAWN, ttl, |encoded| {
                assert_eq!(encoded.bytes, expected);
                let pair = pair_of(b"k", VALUE);
                assert_eq!(encoded.undo, Undo::nothing(&pair), "an extension is not undone");
            });
        }
    }

    #[test]
    fn a_vote_is_a_script_that_carries_its_undo_and_ends_in_a_hole() {
        let ttls = [Duration::from_secs(10), Duration::from_secs(30)];
        let (mut companions, hole) = (Vec::new(), "0".repeat(40));
        encode::bulk(&mut companions, b"p:e");
        encode::bulk(&mut companions, b"p:q");
        for (form, name, script) in [
            (ScriptForm::Digest, "EVALSHA", text(ACQUIRE_SHA1)),
            (ScriptForm::Whole, "EVAL", ACQUIRE.to_owned()),
        ] {
            let args = [name, &script, "3", "p:e", "p:q", "p:k", VALUE, "10000", "30000", &hole];
            let mut expected = Vec::new();
            encode::command(&mut expected, &args.map(str::as_bytes));
            with_vote(form, &companions, b"p:k", DRAWN, ttls, |encoded| {
                assert_eq!(text(encoded.bytes), text(&expected));
                assert_eq!(encoded.undo, Undo::delete(UNDO, &pair_of(b"p:k", VALUE)));
                assert!(encoded.bytes.ends_with(format!("$40\r\n{hole}\r\n").as_bytes()));
            });
        }
        let args = ["EVAL", INITIALISE, "2", "p:e", "p:q", "look", "30000", &hole];
        let mut expected = Vec::new();
        encode::command(&mut expected, &args.map(str::as_bytes));
        with_initialise(&companions, b"look", ttls[1], |bytes| {
            assert_eq!(text(bytes), text(&expected));
        });
    }

    #[test]
    fn an_adoption_carries_what_puts_the_former_value_back() {
        let ttls = [10, 30].map(Duration::from_secs);
        let handover = Handover { key: b"p:k", former: "old", value: DRAWN, ttl: ttls[0] };
        let back = format!("$3\r\np:k\r\n$47\r\n{VALUE}\r\n$3\r\nold\r\n");
        let (mut companions, hole) = (Vec::new(), "0".repeat(40));
        encode::bulk(&mut companions, b"p:e");
        encode::bulk(&mut companions, b"p:q");
        let plain = ["EVAL", ADOPT, "1", "p:k", VALUE, "old", "10000"];
        let vote = ["p:e", "p:q", "p:k", VALUE, "old", "10000", "30000", &hole];
        let vote = [&["EVAL", ADOPT_VOTE, "3"][..], &vote].concat();
        let encode = |words: &[&str]| {
            let mut bytes = Vec::new();
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            encode::command(&mut bytes, &words);
            text(&bytes)
        };
        let check = |expected: String| {
            let back = back.clone();
            move |encoded: Encoded<'_>| {
                assert_eq!(text(encoded.bytes), expected);
                let pair_len = pair_of(b"p:k", VALUE).len();
                assert_eq!(encoded.undo, Undo::put_back(UNDO, back.as_bytes(), pair_len));
            }
        };
        with_adopt(handover, check(encode(&plain)));
        with_adopt_vote(&companions, handover, ttls[1], check(encode(&vote)));
        let put_back = ["EVAL", RELEASE, "1", "p:k", VALUE, "old"];
        with_put_back(b"p:k", DRAWN, "old", check(encode(&put_back)));
        with_release_of(b"p:k", "old", |encoded| {
            let pair = pair_of(b"p:k", "old");
            assert_eq!(encoded.bytes, [EVALSHA_RELEASE, &pair].concat());
            assert_eq!(encoded.undo, Undo::delete(UNDO, &pair));
        });
    }

    #[test]
    fn a_value_names_its_owner_and_others_values_name_nobody() {
        assert_eq!(DRAWN.to_string(), VALUE);
        assert_eq!(owner_of(VALUE.as_bytes()), Some("me@h:1"));
        for foreign in [&b""[..], b"abc", b"3f2c", &[b'x'; 41], &[0xff; 60]] {
            assert_eq!(owner_of(foreign), None);
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 1_000, u64::MAX] {
            assert_eq!(text(decimal(number, &mut [0; DECIMAL_MAX])), number.to_string());
        }
    }
}
