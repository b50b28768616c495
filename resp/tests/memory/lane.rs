//! The replies of a lock allocate nothing, and neither does encoding into a buffer with room.

use bytes::BytesMut;
use quorlock_resp::encode::{self, Argument, Template};
use quorlock_resp::{Decoder, Frame, Limits};

use crate::counter;

#[test]
fn short_replies_allocate_nothing() {
    let input = b"+OK\r\n$-1\r\n_\r\n:0\r\n:1\r\n:-1\r\n".repeat(1000);
    let mut buffer = BytesMut::from(&input[..]);
    counter::start();
    let mut decoder = Decoder::new(Limits::default());
    let mut frames = 0;
    while let Some(frame) = decoder.decode(&mut buffer).expect("sound") {
        assert!(matches!(frame, Frame::Simple(_) | Frame::Null | Frame::Integer(_)));
        frames += 1;
    }
    assert_eq!((counter::now().calls, frames), (0, 6000));
    // Still a vector of its own, not a shared one: its room can be used again without asking.
    assert!(buffer.try_reclaim(input.len()));
}

/// A reply that comes in two reads, and integers too long for the lane.
#[test]
fn replies_in_pieces_and_longer_integers_allocate_nothing() {
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = BytesMut::with_capacity(4096);
    counter::start();
    for reply in [&b"+OK\r\n"[..], b"$-1\r\n", b"_\r\n", b":1\r\n", b":-12345\r\n", b"#t\r\n"] {
        for split in 1..reply.len() {
            let (head, tail) = reply.split_at(split);
            buffer.extend_from_slice(head);
            assert_eq!(decoder.decode(&mut buffer), Ok(None));
            buffer.extend_from_slice(tail);
            assert!(decoder.decode(&mut buffer).expect("sound").is_some());
        }
    }
    assert_eq!(counter::now().calls, 0);
}

/// To share the buffer's bytes takes an allocation. A text without bytes has nothing to share,
/// whatever its type and wherever it stands.
#[test]
fn empty_texts_take_no_share_in_the_buffer() {
    let calls = |reply: &str| {
        let mut buffer = BytesMut::from(reply.as_bytes());
        let mut decoder = Decoder::new(Limits::default());
        counter::start();
        let frame = decoder.decode(&mut buffer).expect("sound").expect("whole");
        let calls = counter::now().calls;
        drop(frame);
        calls
    };
    let none = calls("*2\r\n:1\r\n_\r\n");
    for empty in ["$0\r\n\r\n", "+\r\n", "-\r\n", "!0\r\n\r\n"] {
        assert_eq!(calls(&format!("*2\r\n:1\r\n{empty}")), none, "{empty:?}");
        assert_eq!(calls(&format!("*2\r\n{empty}{empty}")), none, "{empty:?}, twice");
    }
    let shared = none + 1;
    for texts in ["$1\r\na\r\n+\r\n", "+\r\n$1\r\na\r\n", "-E\r\n+a\r\n"] {
        assert_eq!(calls(&format!("*2\r\n{texts}")), shared, "{texts:?}");
    }
}

#[test]
fn short_errors_read_in_place_allocate_nothing() {
    let mut buffer = BytesMut::from(&b"-NOSCRIPT No matching script. Please use EVAL.\r\n"[..]);
    let mut decoder = Decoder::new(Limits::default());
    counter::start();
    let known =
        decoder.decode_short(&mut buffer, |reply| format_args!("{reply:?}").as_str().is_none());
    assert_eq!((known, counter::now().calls), (Some(true), 0));
}

#[test]
fn encoding_into_room_allocates_nothing() {
    use Argument::{Fixed, Hole};
    let template =
        Template::<3>::new(&[Fixed(b"SET"), Hole, Hole, Fixed(b"NX"), Fixed(b"PX"), Hole])
            .expect("three holes");
    let holes: [&[u8]; 3] = [b"lock:order:42", b"0123456789abcdef@pay", b"10000"];
    let args: [&[u8]; 3] = [b"GET", b"key", b"value"];
    let mut vector = Vec::with_capacity(4096);
    let mut buffer = BytesMut::with_capacity(4096);
    counter::start();
    template.encode(&mut vector, holes);
    template.encode(&mut buffer, holes);
    encode::command(&mut vector, &args);
    encode::command(&mut buffer, &args);
    encode::frame(&mut vector, &Frame::Integer(i64::MIN));
    encode::frame(&mut buffer, &Frame::Double(f64::MIN_POSITIVE));
    assert_eq!(counter::now().calls, 0);
}
