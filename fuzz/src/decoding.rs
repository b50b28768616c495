//! The targets that need no other codec: `decode`, `decode_split`, `round_trip`.

use bytes::{Bytes, BytesMut};
use quorlock_resp::{DecodeError, Decoder, Frame, Limits, Short, encode};

/// What a stream came to: its frames, where each ended, and its error.
#[derive(Debug)]
struct Outcome {
    frames: Vec<Frame>,
    ends: Vec<u64>,
    error: Option<DecodeError>,
}

/// Small enough that a few bytes can pass each of them.
fn tight() -> Limits {
    Limits::default().depth(3).elements(8).bulk_bytes(16).line_bytes(32).frame_bytes(64)
}

fn feed<'a>(mut decoder: Decoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut buffer = BytesMut::new();
    let mut outcome = Outcome { frames: Vec::new(), ends: Vec::new(), error: None };
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let before = buffer.len();
            match decoder.decode(&mut buffer) {
                Ok(Some(frame)) => {
                    assert!(outcome.error.is_none(), "a frame behind an error");
                    assert!(buffer.len() < before, "a frame of no bytes");
                    outcome.frames.push(frame);
                    outcome.ends.push(decoder.consumed());
                }
                Ok(None) => {
                    assert!(outcome.error.is_none(), "an error was forgotten");
                    assert_eq!(buffer.len(), before, "bytes taken without a frame");
                    break;
                }
                Err(error) => {
                    assert!(outcome.error.is_none_or(|first| first == error), "an error changed");
                    assert_eq!(buffer.len(), before, "bytes taken with an error");
                    outcome.error = Some(error);
                    break;
                }
            }
        }
    }
    outcome
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    // Printed, because a double that is not a number does not equal itself.
    a.ends == b.ends
        && a.error == b.error
        && (a.frames == b.frames || format!("{:?}", a.frames) == format!("{:?}", b.frames))
}

/// Any bytes: no panic, offsets within the input, and the borrowed lane agrees.
pub fn decode(data: &[u8]) {
    for limits in [Limits::default(), tight()] {
        for keep in [false, true] {
            let outcome = feed(Decoder::new(limits).keep_attributes(keep), [data]);
            let end = outcome.ends.last().copied().unwrap_or(0);
            assert!(end <= data.len() as u64);
            if let Some(error) = outcome.error {
                assert!((end..=data.len() as u64).contains(&error.offset()), "{error}");
            }
            assert!(outcome.frames.iter().all(|frame| keep || !has_attributes(frame)));
        }
    }
    if let Some(short) = Decoder::default().peek(data) {
        let expected = match short {
            Short::Ok => Frame::Simple(Bytes::from_static(b"OK")),
            Short::Integer(value) => Frame::Integer(value),
            Short::Error(text) => Frame::Error(Bytes::copy_from_slice(text)),
            _ => Frame::Null,
        };
        let outcome = feed(Decoder::default(), [data]);
        assert_eq!(outcome.frames.first(), Some(&expected));
    }
}

fn has_attributes(frame: &Frame) -> bool {
    matches!(frame, Frame::Attributed(_))
        || frame.as_items().is_ok_and(|items| items.iter().any(has_attributes))
        || frame.as_pairs().is_ok_and(|pairs| pairs.as_frames().iter().any(has_attributes))
}

/// The first byte says how many bytes behind it are lengths of pieces, used in turn for the rest.
/// In pieces or whole, the outcome is one.
pub fn decode_split(data: &[u8]) {
    let Some((&count, rest)) = data.split_first() else { return };
    let (lengths, stream) = rest.split_at(rest.len().min(usize::from(count % 8)));
    let mut pieces = Vec::new();
    let mut left = stream;
    let mut turn = lengths.iter().chain([&1]).cycle();
    while !left.is_empty() {
        let length = turn.next().map_or(1, |&length| usize::from(length).clamp(1, left.len()));
        let (piece, behind) = left.split_at(length);
        pieces.push(piece);
        left = behind;
    }
    for limits in [Limits::default(), tight()] {
        let decoder = || Decoder::new(limits).keep_attributes(true);
        let (whole, split) = (feed(decoder(), [stream]), feed(decoder(), pieces.clone()));
        assert!(same(&whole, &split), "whole {whole:?}, split {split:?}");
    }
}

/// What was decoded, encoded, decodes to the same, and encodes to the same bytes.
pub fn round_trip(data: &[u8]) {
    let first = feed(Decoder::default().keep_attributes(true), [data]);
    let bytes = encoded(&first.frames);
    let second = feed(Decoder::default().keep_attributes(true), [&bytes[..]]);
    assert_eq!(second.error, None, "{}", bytes.escape_ascii());
    assert_eq!(format!("{:?}", first.frames), format!("{:?}", second.frames));
    assert_eq!(encoded(&second.frames), bytes);
    let detached: Vec<Frame> = second.frames.into_iter().map(Frame::detach).collect();
    assert_eq!(encoded(&detached), bytes);
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        let before = out.len();
        encode::frame(&mut out, frame);
        assert_eq!(out.len() - before, encode::frame_len(frame), "{frame:?}");
    }
    out
}
