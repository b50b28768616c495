//! Every known difference, and its reason.

use quorlock_resp::{ErrorKind, Frame};

use super::peers::Peer;
use super::{Case, Verdict};

/// A difference: whose, when, why.
struct Difference {
    peer: Option<Peer>,
    when: fn(&Case<'_>) -> bool,
    why: &'static str,
}

/// The reason for a difference, if there is a known one.
pub(super) fn explain(case: &Case<'_>) -> Option<&'static str> {
    let of_peer = |peer: Option<Peer>| peer.is_none_or(|peer| peer == case.peer);
    let mut known = EXPLAINED.iter();
    known.find(|known| of_peer(known.peer) && (known.when)(case)).map(|known| known.why)
}

/// Every explanation there is.
pub fn explanations() -> impl Iterator<Item = &'static str> {
    EXPLAINED.iter().map(|known| known.why)
}

const EXPLAINED: &[Difference] = &[
    // Where we refuse, and they do not, or not yet.
    Difference {
        peer: None,
        when: |case| case.refusal.is_some() && *case.theirs == Verdict::More,
        why: "we refuse at the first byte that can not be right; they when a line, a string or a \
              frame has ended",
    },
    Difference {
        peer: None,
        when: |case| case.refusal == Some(ErrorKind::Number),
        why: "we read integers and lengths by the grammar; they by the standard library, some \
              trimmed: blanks, leading zeros, signs before lengths, and only at the line's end",
    },
    Difference {
        peer: None,
        when: |case| case.refusal == Some(ErrorKind::LineEnd),
        why: "we refuse a lone CR or LF in a line, and anything behind a null, when we see it; \
              they search for CR LF and take what stands before",
    },
    Difference {
        peer: None,
        when: |case| case.refusal == Some(ErrorKind::Double),
        why: "we read doubles by the grammar; they by the standard library, which takes .5 and \
              5. and infinity in any case",
    },
    Difference {
        peer: None,
        when: |case| case.refusal == Some(ErrorKind::BigNumber),
        why: "they do not look at the digits of a big number",
    },
    Difference {
        peer: None,
        when: |case| case.refusal == Some(ErrorKind::Verbatim),
        why: "redis splits a verbatim string at its first colon, wherever; redis-protocol takes \
              any byte for the colon; neither minds the length before the text is there",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| case.refusal == Some(ErrorKind::Terminator),
        why: "redis-protocol takes any two bytes behind a string for its line end",
    },
    Difference {
        peer: None,
        when: |case| case.refusal == Some(ErrorKind::NestedPush),
        why: "they take a push for a value like any other",
    },
    // Where we wait, and they refuse.
    Difference {
        peer: Some(Peer::Redis),
        when: |case| case.is_more() && case.is_refused() && has_text(case),
        why: "redis looks at the first byte of the line end behind a string; we wait for both",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| case.is_refused() && has(case, b"|"),
        why: "redis-protocol hashes attributes, takes none behind another, and none on a null",
    },
    Difference {
        peer: Some(Peer::Redis),
        when: |case| case.is_refused() && str::from_utf8(case.bytes).is_err(),
        why: "redis wants UTF-8 in lines",
    },
    // Where we give a value, and they do not, or another.
    Difference {
        peer: Some(Peer::Redis),
        when: |case| has(case, b"?\r\n"),
        why: "redis knows no streams",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| has(case, b"?\r\n"),
        why: "redis-protocol gives the pieces of a stream one by one, and none inside a frame",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| has(case, b"$-1\r\n") || has(case, b"*-1\r\n"),
        why: "redis-protocol's RESP3 decoder does not take the nulls of RESP2",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| case.is_refused() && has(case, b"="),
        why: "redis-protocol knows two formats of verbatim strings",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| case.is_refused() && (has(case, b"%") || has(case, b"~")),
        why: "redis-protocol refuses a key of a map and a value of a set that it can not hash",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| {
            any(case, |frame| matches!(frame, Frame::Map(_) | Frame::Set(_) | Frame::Attributed(_)))
        },
        why: "redis-protocol hashes maps, sets and attributes: of equal keys one stays, and \
              a key that can not be hashed is refused",
    },
    Difference {
        peer: Some(Peer::Redis),
        when: |case| {
            any(case, |frame| match frame {
                Frame::Simple(text) | Frame::Error(text) | Frame::BigNumber(text) => {
                    str::from_utf8(text).is_err()
                }
                Frame::Verbatim { text, .. } => str::from_utf8(text).is_err(),
                _ => false,
            })
        },
        why: "redis wants UTF-8 in lines and makes it of verbatim strings",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| case.is_refused() && has(case, b"-") && str::from_utf8(case.bytes).is_err(),
        why: "redis-protocol wants UTF-8 in errors",
    },
    Difference {
        peer: Some(Peer::Redis),
        when: |case| {
            any(case, |frame| {
                let Frame::Verbatim { format, .. } = frame else { return false };
                format.contains(&b':') || str::from_utf8(format).is_err()
            })
        },
        why: "redis splits a verbatim string at its first colon, wherever",
    },
    Difference {
        peer: Some(Peer::Redis),
        when: |case| any(case, |frame| matches!(frame, Frame::Push(_))),
        why: "redis reads a push's first item as text, and refuses others; it gives one to an \
              empty push",
    },
    Difference {
        peer: Some(Peer::RedisProtocol),
        when: |case| case.refusal == Some(ErrorKind::Stream),
        why: "redis-protocol gives the pieces of a stream one by one, in or out of one",
    },
];

/// Whether any value inside the frame we give fulfils `test`.
fn any(case: &Case<'_>, test: fn(&Frame) -> bool) -> bool {
    case.frame.is_some_and(|frame| any_in(frame, test))
}

fn any_in(frame: &Frame, test: fn(&Frame) -> bool) -> bool {
    test(frame)
        || match frame {
            Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => {
                items.iter().any(|frame| any_in(frame, test))
            }
            Frame::Map(pairs) => pairs.as_frames().iter().any(|frame| any_in(frame, test)),
            Frame::Attributed(attributed) => {
                any_in(attributed.value(), test)
                    || attributed.attributes().as_frames().iter().any(|frame| any_in(frame, test))
            }
            _ => false,
        }
}

/// Whether a string with a length may be in the bytes.
fn has_text(case: &Case<'_>) -> bool {
    case.bytes.iter().any(|byte| b"$!=".contains(byte))
}

/// Whether `text` stands anywhere in the bytes.
fn has(case: &Case<'_>, text: &[u8]) -> bool {
    case.bytes.windows(text.len()).any(|window| window == text)
}
