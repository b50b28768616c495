//! Feeding a decoder: the same bytes in any pieces, and what comes out.

use bytes::BytesMut;
use quorlock_resp::{DecodeError, Decoder, ErrorKind, Frame, Limits};

/// All that a stream of bytes came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) frames: Vec<Frame>,
    /// Where each frame ended.
    pub(crate) ends: Vec<u64>,
    pub(crate) error: Option<DecodeError>,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Option<(ErrorKind, u64)> {
        self.error.map(|error| (error.kind(), error.offset()))
    }

    /// Whether two outcomes are one. Frames are compared as they print, because a double that is
    /// not a number does not equal itself.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.error == other.error
            && self.ends == other.ends
            && (self.frames == other.frames
                || format!("{:?}", self.frames) == format!("{:?}", other.frames))
    }
}

/// Decodes pieces as they come, with attributes kept and default limits.
pub(crate) fn pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    pieces_with(Limits::default(), pieces)
}

pub(crate) fn pieces_with<'a>(
    limits: Limits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let mut decoder = Decoder::new(limits).keep_attributes(true);
    let mut buffer = BytesMut::new();
    let mut outcome = Outcome { frames: Vec::new(), ends: Vec::new(), error: None };
    for piece in pieces {
        buffer.extend_from_slice(piece);
        drain(&mut decoder, &mut buffer, &mut outcome);
    }
    outcome
}

/// Takes every frame the buffer has, and checks on the way that an error stays.
pub(crate) fn drain(decoder: &mut Decoder, buffer: &mut BytesMut, outcome: &mut Outcome) {
    loop {
        match decoder.decode(buffer) {
            Ok(Some(frame)) => {
                assert!(outcome.error.is_none(), "a frame behind an error");
                outcome.frames.push(frame);
                outcome.ends.push(decoder.consumed());
            }
            Ok(None) => {
                assert!(outcome.error.is_none(), "an error was forgotten");
                return;
            }
            Err(error) => {
                assert!(outcome.error.is_none_or(|first| first == error), "an error changed");
                outcome.error = Some(error);
                return;
            }
        }
    }
}

pub(crate) fn whole(bytes: &[u8]) -> Outcome {
    pieces([bytes])
}

pub(crate) fn byte_by_byte(bytes: &[u8]) -> Outcome {
    pieces(bytes.chunks(1))
}
