//! All short strings: no panic, and one verdict however they arrive.

use bytes::BytesMut;
use quorlock_resp::{Decoder, Limits};

use crate::feed::{self, Outcome};

/// The type bytes, a line end and a digit.
const SYMBOLS: &[u8; 20] = b"+-:$*_#,(!=%~>|;.1\r\n";

#[test]
fn all_strings_of_up_to_five_symbols() {
    let letters: Vec<&[u8]> = SYMBOLS.chunks(1).collect();
    assert_eq!(visit_all(&letters, 5), 1 + 20 + 400 + 8_000 + 160_000 + 3_200_000);
}

/// Whole heads and elements in every order: what five symbols are too short to spell.
#[test]
fn all_strings_of_up_to_five_fragments() {
    let fragments: Vec<&[u8]> = vec![
        b"*?\r\n",
        b"%?\r\n",
        b"$?\r\n",
        b";1\r\na\r\n",
        b";0\r\n",
        b".\r\n",
        b"*2\r\n",
        b"%1\r\n",
        b"|1\r\n",
        b"|0\r\n",
        b">1\r\n",
        b"*0\r\n",
        b"+\r\n",
        b"$1\r\n\r\r\n",
    ];
    visit_all(&fragments, 5);
}

/// Visits every string over `letters`, and compares one decoder that was given the letters one
/// after the other with another that was given all at once. Returns how many there were.
fn visit_all(letters: &[&[u8]], length: usize) -> usize {
    let start = Trickle {
        decoder: Decoder::new(Limits::default()).keep_attributes(true),
        buffer: BytesMut::new(),
        outcome: Outcome { frames: Vec::new(), ends: Vec::new(), error: None },
    };
    let mut text = Vec::new();
    visit(letters, length, &mut text, &start)
}

/// A decoder in the middle of a string. Cloned at each branch, so that each string costs only
/// its last letter.
struct Trickle {
    decoder: Decoder,
    buffer: BytesMut,
    outcome: Outcome,
}

fn visit(letters: &[&[u8]], left: usize, text: &mut Vec<u8>, trickle: &Trickle) -> usize {
    let whole = feed::whole(text);
    let same = whole.same_as(&trickle.outcome);
    assert!(same, "{}: {whole:?} {:?}", text.escape_ascii(), trickle.outcome);
    if left == 0 {
        return 1;
    }
    let mut visited = 1;
    for letter in letters {
        let mut next = Trickle {
            decoder: trickle.decoder.clone(),
            buffer: trickle.buffer.clone(),
            outcome: Outcome {
                frames: trickle.outcome.frames.clone(),
                ends: trickle.outcome.ends.clone(),
                error: trickle.outcome.error,
            },
        };
        for byte in letter.chunks(1) {
            next.buffer.extend_from_slice(byte);
            feed::drain(&mut next.decoder, &mut next.buffer, &mut next.outcome);
        }
        text.extend_from_slice(letter);
        visited += visit(letters, left - 1, text, &next);
        text.truncate(text.len() - letter.len());
    }
    visited
}
