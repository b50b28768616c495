//! The target `differential`: ours beside the decoders of `redis` and `redis-protocol`.
//!
//! Given the same bytes, each takes one frame from their front: it gives a value, waits for more,
//! or refuses. Where two give values, they are the same and of the same length. Where they part,
//! [`explained`] must know why; a difference it does not know is a finding, in ours or in theirs.

mod explained;
mod peers;
mod plain;

use bytes::BytesMut;
use quorlock_resp::{Decoder, ErrorKind, Frame, Limits};

use self::explained::explain;
pub use self::explained::explanations;
use self::peers::Peer;
use self::plain::Plain;

/// What a decoder makes of the bytes.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    /// A value, and how many bytes it took.
    Value(Plain, usize),
    More,
    Refused,
}

/// One difference, to be explained.
#[derive(Debug)]
struct Case<'a> {
    peer: Peer,
    bytes: &'a [u8],
    /// Ours, if it gives a frame.
    frame: Option<&'a Frame>,
    /// Ours, if it refuses.
    refusal: Option<ErrorKind>,
    theirs: &'a Verdict,
}

impl Case<'_> {
    /// Whether ours waits for more.
    fn is_more(&self) -> bool {
        self.frame.is_none() && self.refusal.is_none()
    }

    /// Whether theirs refuses.
    fn is_refused(&self) -> bool {
        *self.theirs == Verdict::Refused
    }
}

/// Compares the first frame of `data` as the three decoders see it.
pub fn differential(data: &[u8]) {
    let _explained = differences(data);
}

/// As [`differential`]; gives the explanation of each difference found.
///
/// Deep and long input is left out: `redis-protocol` descends by recursion and aborts the process
/// at some thousand levels, and a length is a promise of memory to some.
///
/// # Panics
/// When a difference has no explanation.
#[must_use]
pub fn differences(data: &[u8]) -> Vec<&'static str> {
    if is_dangerous(data) {
        return Vec::new();
    }
    let mut buffer = BytesMut::from(data);
    let mut decoder = Decoder::new(Limits::default()).keep_attributes(true);
    let result = decoder.decode(&mut buffer);
    let taken = data.len() - buffer.len();
    let ours = match &result {
        Ok(Some(frame)) => Verdict::Value(Plain::of(frame), taken),
        Ok(None) => Verdict::More,
        Err(_) => Verdict::Refused,
    };
    let mut found = Vec::new();
    for peer in [Peer::Redis, Peer::RedisProtocol] {
        let theirs = peer.verdict(data);
        if theirs == ours {
            continue;
        }
        let case = Case {
            peer,
            bytes: data,
            frame: result.as_ref().ok().and_then(Option::as_ref),
            refusal: result.as_ref().err().map(|error| error.kind()),
            theirs: &theirs,
        };
        let why = explain(&case);
        let place = data.escape_ascii();
        found.push(why.unwrap_or_else(|| panic!("{place}\nours: {result:?}, {ours:?}\n{case:?}")));
    }
    found
}

/// More than 64 aggregates, or a number of more than five digits.
fn is_dangerous(data: &[u8]) -> bool {
    let aggregates = data.iter().filter(|byte| b"*%~>|".contains(byte)).count();
    let digits = data.split(|byte| !byte.is_ascii_digit()).any(|run| run.len() > 5);
    aggregates > 64 || digits
}
