//! Every vector, in every way it can arrive.

use crate::{feed, notation, wire};

#[test]
fn valid_vectors_give_their_frames() {
    for vector in wire::valid() {
        let outcome = feed::whole(&vector.bytes);
        assert_eq!(outcome.error, None, "{}", vector.place);
        assert_eq!(notation::frames(&outcome.frames), vector.expected, "{}", vector.place);
        let end = outcome.ends.last().copied();
        assert_eq!(end, Some(vector.bytes.len() as u64), "bytes left over: {}", vector.place);
    }
}

#[test]
fn invalid_vectors_fail_at_their_offset() {
    for vector in wire::invalid() {
        let outcome = feed::whole(&vector.bytes);
        let found = outcome.verdict().map(|(kind, offset)| format!("{kind:?} @{offset}"));
        assert_eq!(found.as_deref(), Some(vector.expected), "{}", vector.place);
    }
}

#[test]
fn incomplete_vectors_are_no_error() {
    for vector in wire::incomplete() {
        let outcome = feed::whole(&vector.bytes);
        assert_eq!(outcome.error, None, "{}", vector.place);
        assert_eq!(notation::frames(&outcome.frames), vector.expected, "{}", vector.place);
    }
}

#[test]
fn byte_by_byte_and_every_split_change_nothing() {
    for vector in wire::valid().into_iter().chain(wire::invalid()).chain(wire::incomplete()) {
        let whole = feed::whole(&vector.bytes);
        let trickled = feed::byte_by_byte(&vector.bytes);
        assert!(whole.same_as(&trickled), "{}: {whole:?} {trickled:?}", vector.place);
        for split in 0..=vector.bytes.len().min(2000) {
            let (head, tail) = vector.bytes.split_at(split);
            let halves = feed::pieces([head, tail]);
            assert!(whole.same_as(&halves), "split at {split}: {}", vector.place);
        }
    }
}

#[test]
fn every_chunking_of_short_vectors_changes_nothing() {
    for vector in wire::valid().into_iter().chain(wire::invalid()).chain(wire::incomplete()) {
        let bytes = &vector.bytes;
        if bytes.is_empty() || bytes.len() > 16 {
            continue;
        }
        let whole = feed::whole(bytes);
        // Bit n says whether there is a cut behind byte n.
        for cuts in 0..1_u32 << (bytes.len() - 1) {
            let mut pieces = Vec::new();
            let mut start = 0;
            for end in 1..=bytes.len() {
                if end == bytes.len() || cuts >> (end - 1) & 1 == 1 {
                    pieces.push(&bytes[start..end]);
                    start = end;
                }
            }
            let outcome = feed::pieces(pieces);
            assert!(whole.same_as(&outcome), "cuts {cuts:b}: {}", vector.place);
        }
    }
}

#[test]
fn every_prefix_of_a_valid_vector_is_whole_frames_and_then_incomplete() {
    for vector in wire::valid() {
        let whole = feed::whole(&vector.bytes);
        for length in 0..vector.bytes.len() {
            let outcome = feed::whole(&vector.bytes[..length]);
            let complete = whole.ends.iter().filter(|&&end| end <= length as u64).count();
            assert_eq!(outcome.error, None, "{length} bytes of {}", vector.place);
            assert_eq!(outcome.ends, whole.ends[..complete], "{length} bytes of {}", vector.place);
        }
    }
}

#[test]
fn attributes_are_dropped_unless_kept_and_change_nothing_else() {
    use bytes::BytesMut;
    use quorlock_resp::{Decoder, Limits};

    for vector in wire::valid() {
        let kept = feed::whole(&vector.bytes);
        let mut decoder = Decoder::new(Limits::default());
        let mut buffer = BytesMut::from(&vector.bytes[..]);
        for expected in kept.frames {
            let frame = decoder.decode(&mut buffer).expect("valid").expect("whole");
            assert_eq!(frame.kind(), expected.value().kind(), "{}", vector.place);
            assert!(!notation::frames(&[frame]).contains("attr"), "{}", vector.place);
        }
        assert_eq!(decoder.decode(&mut buffer), Ok(None));
    }
}
