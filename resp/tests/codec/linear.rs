//! Long input in the smallest pieces: each takes a moment if every byte is looked at a constant
//! number of times, and hours if an unfinished frame is read again for each byte.

use quorlock_resp::Limits;

use crate::feed;

const LENGTH: usize = 1 << 20;

fn trickle(stream: &[u8]) -> feed::Outcome {
    let limits = Limits::default().line_bytes(2 * LENGTH);
    feed::pieces_with(limits, stream.chunks(1))
}

fn with_ends(head: &str, body: u8, tail: &str) -> Vec<u8> {
    let mut stream = head.as_bytes().to_vec();
    stream.resize(head.len() + LENGTH, body);
    stream.extend_from_slice(tail.as_bytes());
    stream
}

#[test]
fn one_line_one_byte_at_a_time() {
    for (head, body) in [("+", b'x'), ("-", b'x'), ("(", b'7'), (",", b'0')] {
        let outcome = trickle(&with_ends(head, body, "\r\n"));
        assert_eq!((outcome.error, outcome.frames.len()), (None, 1), "{head}");
    }
}

#[test]
fn one_string_one_byte_at_a_time() {
    for head in [format!("${LENGTH}\r\n"), format!("!{LENGTH}\r\n"), format!("$?\r\n;{LENGTH}\r\n")]
    {
        let tail = if head.contains('?') { "\r\n;0\r\n" } else { "\r\n" };
        let outcome = trickle(&with_ends(&head, b'x', tail));
        assert_eq!((outcome.error, outcome.frames.len()), (None, 1), "{head}");
    }
}

#[test]
fn many_elements_one_byte_at_a_time() {
    let elements = 200_000;
    for element in [":1\r\n", "$1\r\nx\r\n", "*1\r\n_\r\n", "+\r\n"] {
        let stream = format!("*{elements}\r\n{}", element.repeat(elements));
        let outcome = trickle(stream.as_bytes());
        assert_eq!((outcome.error, outcome.frames.len()), (None, 1), "{element:?}");
    }
}
