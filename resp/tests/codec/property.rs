//! Both round trips, over frames and bytes that chance makes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use quorlock_resp::{Attributed, Frame, Items, Limits, Pairs, encode};

use crate::{feed, notation, wire};

fn text() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        "[ -~]{0,24}".prop_map(Bytes::from),
        vec(any::<u8>(), 0..24).prop_map(Bytes::from),
        Just(Bytes::from_static(b"+OK\r\n:1\r\n")),
    ]
}

fn line() -> impl Strategy<Value = Bytes> {
    text().prop_map(|text| text.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect())
}

fn scalar() -> impl Strategy<Value = Frame> {
    prop_oneof![
        line().prop_map(Frame::Simple),
        line().prop_map(Frame::Error),
        any::<i64>().prop_map(Frame::Integer),
        (-2_i64..3).prop_map(Frame::Integer),
        text().prop_map(Frame::Bulk),
        Just(Frame::Null),
        any::<bool>().prop_map(Frame::Boolean),
        any::<f64>().prop_map(Frame::Double),
        "[+-]?[0-9]{1,40}".prop_map(|digits| Frame::BigNumber(Bytes::from(digits))),
        text().prop_map(Frame::BulkError),
        (any::<[u8; 3]>(), text()).prop_map(|(format, text)| Frame::Verbatim { format, text }),
    ]
}

fn value() -> impl Strategy<Value = Frame> {
    scalar().prop_recursive(6, 64, 5, |inner| {
        let items = vec(inner.clone(), 0..5);
        let pairs = vec((inner.clone(), inner.clone()), 0..4);
        let some_pairs = vec((inner.clone(), inner.clone()), 1..3);
        prop_oneof![
            items.clone().prop_map(|items| Frame::Array(Items::from(items))),
            items.prop_map(|items| Frame::Set(items.into_iter().collect())),
            pairs.prop_map(|pairs| Frame::Map(Pairs::from_iter(pairs))),
            (some_pairs, inner).prop_map(|(pairs, value)| {
                Frame::Attributed(Box::new(Attributed::new(Pairs::from_iter(pairs), value)))
            }),
        ]
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let push = vec(value(), 0..5).prop_map(|items| Frame::Push(Items::from(items)));
    prop_oneof![4 => value(), 1 => push]
}

/// A valid vector with a few bytes changed, taken away or put in.
fn nearly_valid() -> impl Strategy<Value = Vec<u8>> {
    let vectors: Vec<Vec<u8>> = wire::valid().into_iter().map(|vector| vector.bytes).collect();
    let symbol = prop::sample::select(b"+-:$*_#,(!=%~>|;.?019tf\r\n\r\n".to_vec());
    let changes = vec((any::<prop::sample::Index>(), symbol, 0..3_u8), 0..4);
    (prop::sample::select(vectors), changes).prop_map(|(mut bytes, changes)| {
        for (place, symbol, change) in changes {
            let place = place.index(bytes.len().max(1));
            match change {
                0 if place < bytes.len() => bytes[place] = symbol,
                1 if place < bytes.len() => drop(bytes.remove(place)),
                _ => bytes.insert(place.min(bytes.len()), symbol),
            }
        }
        bytes
    })
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        let before = out.len();
        encode::frame(&mut out, frame);
        assert_eq!(out.len() - before, encode::frame_len(frame));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 512,
        ..ProptestConfig::default()
    })]

    #[test]
    fn frame_to_bytes_to_frame(frames in vec(frame(), 1..4), size in 1_usize..64) {
        let bytes = encoded(&frames);
        let outcome = feed::pieces(bytes.chunks(size));
        prop_assert_eq!(outcome.error, None);
        prop_assert_eq!(notation::frames(&outcome.frames), notation::frames(&frames));
    }

    #[test]
    fn bytes_to_frame_to_bytes_to_frame(bytes in nearly_valid(), size in 1_usize..8) {
        let first = feed::whole(&bytes);
        prop_assert!(first.same_as(&feed::pieces(bytes.chunks(size))));
        let again = feed::whole(&encoded(&first.frames));
        prop_assert_eq!(again.error, None);
        prop_assert_eq!(notation::frames(&again.frames), notation::frames(&first.frames));
    }

    #[test]
    fn limits_do_not_depend_on_the_pieces(bytes in nearly_valid(), size in 1_usize..8) {
        let limits =
            Limits::default().depth(2).elements(5).bulk_bytes(12).line_bytes(32).frame_bytes(40);
        let whole = feed::pieces_with(limits, [&bytes[..]]);
        prop_assert!(whole.same_as(&feed::pieces_with(limits, bytes.chunks(size))));
    }

    #[test]
    fn any_bytes_have_one_verdict(bytes in vec(any::<u8>(), 0..64), size in 1_usize..8) {
        prop_assert!(feed::whole(&bytes).same_as(&feed::pieces(bytes.chunks(size))));
    }
}
