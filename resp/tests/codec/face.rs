//! The public face: accessors, short replies, encoders, and what happens to deep frames.

use bytes::{Bytes, BytesMut};
use quorlock_resp::encode::{self, Argument, Template};
use quorlock_resp::{
    Attributed, Decoder, ErrorKind, Frame, FrameKind, Items, Limits, Pairs, Short,
};

use crate::{feed, wire};

fn bulk(text: &'static str) -> Frame {
    Frame::Bulk(Bytes::from_static(text.as_bytes()))
}

fn attributed(frame: Frame) -> Frame {
    let attributes = Pairs::from_iter([(bulk("ttl"), Frame::Integer(1))]);
    Frame::Attributed(Box::new(Attributed::new(attributes, frame)))
}

#[test]
fn accessors_name_what_they_expected_and_found() {
    let error = Frame::Integer(1).as_bytes().expect_err("no string");
    assert_eq!(error.to_string(), "expected a string, found an integer");
    assert_eq!((error.expected(), error.found()), ("a string", FrameKind::Integer));
    assert_eq!(
        bulk("x").as_integer().expect_err("none").to_string(),
        "expected an integer, found a bulk string"
    );
    assert_eq!(
        Frame::Null.as_str().expect_err("none").to_string(),
        "expected a string, found null"
    );
    assert_eq!(
        Frame::Bulk(Bytes::from_static(b"\xff")).as_str().expect_err("none").expected(),
        "a string of UTF-8"
    );
    assert!(Frame::Null.as_items().is_err() && Frame::Null.as_pairs().is_err());
    assert!(bulk("1").as_bool().is_err() && bulk("1").as_double().is_err());
}

#[test]
fn accessors_look_through_attributes() {
    assert_eq!(attributed(Frame::Integer(7)).as_integer(), Ok(7));
    assert_eq!(attributed(bulk("x")).as_str(), Ok("x"));
    assert_eq!(attributed(bulk("x")).into_bytes(), Ok(Bytes::from_static(b"x")));
    assert_eq!(attributed(Frame::Boolean(true)).as_bool(), Ok(true));
    assert_eq!(attributed(Frame::Integer(0)).as_bool(), Ok(false));
    assert_eq!(attributed(Frame::Double(0.5)).as_double(), Ok(0.5));
    assert!(attributed(Frame::Null).is_null() && !attributed(bulk("")).is_null());
    assert!(attributed(Frame::Simple(Bytes::from_static(b"OK"))).is_ok());
    let items = Items::from(vec![Frame::Null, Frame::Null]);
    assert_eq!(attributed(Frame::Set(items.clone())).as_items().map(<[_]>::len), Ok(2));
    assert_eq!(attributed(Frame::Array(items.clone())).into_items(), Ok(items));
    let error = attributed(Frame::Error(Bytes::from_static(b"MOVED 1 a:1")));
    assert_eq!(error.error_word(), Some(&b"MOVED"[..]));
    assert_eq!(attributed(Frame::Null).into_value(), Frame::Null);
}

#[test]
fn maps_are_searched_by_key() {
    let map = Frame::Map(Pairs::from_iter([
        (bulk("server"), bulk("redis")),
        (Frame::Simple(Bytes::from_static(b"proto")), Frame::Integer(3)),
    ]));
    let pairs = map.as_pairs().expect("a map");
    assert_eq!((pairs.len(), pairs.is_empty(), pairs.iter().len()), (2, false, 2));
    assert!(Pairs::from_iter([]).is_empty());
    assert_eq!(pairs.get(b"proto"), Some(&Frame::Integer(3)));
    assert_eq!(pairs.get(b"role"), None);
    let values: Vec<Frame> = pairs.clone().into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [bulk("redis"), Frame::Integer(3)]);
}

#[test]
fn attributes_in_a_row_are_one_list() {
    let twice = attributed(attributed(Frame::Null));
    let Frame::Attributed(both) = twice else { panic!("no attributes") };
    assert_eq!((both.attributes().len(), both.value()), (2, &Frame::Null));
}

#[test]
fn short_replies_are_read_where_they_stand() {
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = BytesMut::from(&b"+OK\r\n$-1\r\n_\r\n:7\r\n:-1\r\n-ERR x\r\n:10\r\n"[..]);
    let expected = [
        Short::Ok,
        Short::Null,
        Short::Null,
        Short::Integer(7),
        Short::Integer(-1),
        Short::Error(b"ERR x"),
    ];
    for short in expected {
        assert_eq!(decoder.peek(&buffer), Some(short));
        assert_eq!(decoder.decode_short(&mut buffer, |found| found == short), Some(true));
    }
    assert_eq!(decoder.peek(&buffer), None);
    assert_eq!(decoder.decode_short(&mut buffer, |_| ()), None);
    assert_eq!(decoder.decode(&mut buffer), Ok(Some(Frame::Integer(10))));
    assert_eq!(decoder.consumed(), 35);
}

/// What the borrowed lane says is what the decoder says, or nothing.
#[test]
fn short_replies_agree_with_frames() {
    for vector in wire::valid().into_iter().chain(wire::invalid()).chain(wire::incomplete()) {
        let mut decoder = Decoder::new(Limits::default());
        let mut buffer = BytesMut::from(&vector.bytes[..]);
        let Some(short) = decoder.peek(&buffer) else { continue };
        let expected = match short {
            Short::Ok => Frame::Simple(Bytes::from_static(b"OK")),
            Short::Null => Frame::Null,
            Short::Integer(value) => Frame::Integer(value),
            Short::Error(text) => Frame::Error(Bytes::copy_from_slice(text)),
            other => panic!("{other:?}"),
        };
        assert_eq!(decoder.decode(&mut buffer), Ok(Some(expected)), "{}", vector.place);
    }
}

/// In the middle of a frame the first bytes of the buffer are not a reply's.
#[test]
fn short_replies_wait_for_the_frame_before_them() {
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = BytesMut::from(&b"|1\r\n"[..]);
    assert_eq!(decoder.decode(&mut buffer), Ok(None));
    assert_eq!(decoder.peek(&buffer), None);
    buffer.clear();
    buffer.extend_from_slice(b"x");
    let mut failed = Decoder::new(Limits::default());
    let error = failed.decode(&mut buffer).expect_err("no type");
    assert_eq!(error.to_string(), "unknown type byte at byte 0 of the stream");
    buffer.clear();
    buffer.extend_from_slice(b"+OK\r\n");
    assert_eq!(failed.peek(&buffer), None);
    assert_eq!(failed.decode(&mut buffer), Err(error));
}

#[test]
fn an_ok_in_pieces_is_static_too() {
    let outcome = feed::byte_by_byte(b"+OK\r\n");
    assert_eq!(outcome.frames, [Frame::Simple(Bytes::from_static(b"OK"))]);
}

#[test]
fn templates_write_what_command_writes() {
    use Argument::{Fixed, Hole};
    let template =
        Template::<3>::new(&[Fixed(b"SET"), Hole, Hole, Fixed(b"NX"), Fixed(b"PX"), Hole])
            .expect("three holes");
    let (long, holes) = (vec![b'k'; 12_345], [&b""[..], &b"a\r\nb"[..], &b"10000"[..]]);
    for holes in [holes, [&long, &long, b"0"]] {
        let [key, value, time] = holes;
        let args: [&[u8]; 6] = [b"SET", key, value, b"NX", b"PX", time];
        let (mut plain, mut filled) = (Vec::new(), BytesMut::new());
        encode::command(&mut plain, &args);
        template.encode(&mut filled, holes);
        assert_eq!(plain, filled);
        assert_eq!(encode::command_len(&args), plain.len());
        assert_eq!(template.encoded_len(holes), plain.len());
    }
    assert!(Template::<0>::new(&[Fixed(b"PING")]).is_ok());
    assert!(Template::<2>::new(&[Hole, Hole]).is_ok());
    let error = Template::<2>::new(&[Hole]).expect_err("one hole");
    assert_eq!(error.to_string(), "expected 2 holes in the template, found 1");
    assert!(format!("{template:?}").contains("SET\\r\\n▢\\r\\n▢\\r\\n$2"));
}

#[test]
fn lengths_are_exact_at_every_number_of_digits() {
    for power in 0..7 {
        for length in [10_usize.pow(power) - 1, 10_usize.pow(power), 10_usize.pow(power) + 1] {
            let (mut out, bytes) = (Vec::new(), vec![0; length]);
            encode::bulk(&mut out, &bytes);
            assert_eq!(out.len(), encode::bulk_len(length));
        }
    }
}

/// Text made by hand must not break out of its line.
#[test]
fn text_with_line_ends_is_written_with_a_length() {
    let mut out = Vec::new();
    let hostile = Bytes::from_static(b"OK\r\n:1");
    let frames = [Frame::Simple(hostile.clone()), Frame::Error(hostile.clone())];
    for frame in &frames {
        let before = out.len();
        encode::frame(&mut out, frame);
        assert_eq!(out.len() - before, encode::frame_len(frame));
    }
    let back = feed::whole(&out).frames;
    assert_eq!(back, [Frame::Bulk(hostile.clone()), Frame::BulkError(hostile)]);
}

#[test]
fn detached_frames_let_the_buffer_go() {
    let mut decoder = Decoder::new(Limits::default()).keep_attributes(true);
    let mut buffer = BytesMut::with_capacity(1 << 16);
    buffer.extend_from_slice(b"|1\r\n+a\r\n:1\r\n*2\r\n%1\r\n$1\r\nk\r\n=5\r\ntxt:v\r\n,1.5\r\n");
    let frame = decoder.decode(&mut buffer).expect("valid").expect("whole");
    assert!(!buffer.try_reclaim(1 << 16), "the frame holds the buffer");
    let detached = frame.clone().detach();
    assert_eq!(detached, frame);
    drop(frame);
    assert!(buffer.try_reclaim(1 << 16), "nothing holds the buffer");
}

/// Many levels cost no stack: neither to encode nor to drop.
#[test]
fn deep_frames_made_by_hand_do_not_overflow() {
    let work = || {
        for shape in 0..4 {
            let mut frame = Frame::Integer(1);
            for _ in 0..200_000 {
                frame = match shape {
                    0 => Frame::Array(Items::from(vec![frame])),
                    1 => Frame::Push(Items::from(vec![Frame::Null, frame])),
                    2 => Frame::Map(Pairs::from_iter([(frame, Frame::Null)])),
                    _ => attributed(Frame::Set(Items::from(vec![frame]))),
                };
            }
            let mut out = Vec::new();
            encode::frame(&mut out, &frame);
            assert_eq!(out.len(), encode::frame_len(&frame));
            drop(frame.detach());
        }
    };
    let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(work);
    thread.expect("a thread").join().expect("no overflow");
}

/// The deepest frame any limits allow can be cloned, compared and printed on an ordinary stack.
#[test]
fn the_deepest_decoded_frame_is_ordinary() {
    let limits = Limits::default().depth(usize::MAX);
    let mut input = "*1\r\n".repeat(512);
    input.push_str(":1\r\n");
    let outcome = feed::pieces_with(limits, [input.as_bytes()]);
    let frame = outcome.frames.first().expect("a frame");
    assert_eq!(frame, &frame.clone());
    assert!(format!("{frame:?}").starts_with("Array([Array([Array(["));
    input.insert_str(0, "*1\r\n");
    let outcome = feed::pieces_with(limits, [input.as_bytes()]);
    assert_eq!(outcome.verdict(), Some((ErrorKind::Depth, 2048)));
}

/// Limits hold at their exact value, whole and in pieces.
#[test]
fn limits_are_exact() {
    let limits =
        Limits::default().depth(2).elements(4).bulk_bytes(40).line_bytes(32).frame_bytes(64);
    let bulk = |length: usize| format!("${length}\r\n{}\r\n", "b".repeat(length));
    let line = |length: usize| format!("+{}\r\n", "l".repeat(length));
    let cases = [
        ("*1\r\n*1\r\n:1\r\n".to_owned(), None),
        ("*1\r\n*1\r\n*1\r\n:1\r\n".to_owned(), Some((ErrorKind::Depth, 8))),
        ("*1\r\n$?\r\n;1\r\na\r\n;0\r\n".to_owned(), None),
        ("*1\r\n*1\r\n$?\r\n".to_owned(), Some((ErrorKind::Depth, 8))),
        ("*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n".to_owned(), None),
        ("*5\r\n".to_owned(), Some((ErrorKind::Elements, 1))),
        ("*2\r\n%1\r\n:1\r\n:1\r\n:1\r\n".to_owned(), None),
        ("*2\r\n%2\r\n".to_owned(), Some((ErrorKind::Elements, 5))),
        ("*?\r\n:1\r\n:1\r\n:1\r\n:1\r\n.\r\n".to_owned(), None),
        ("*?\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n".to_owned(), Some((ErrorKind::Elements, 20))),
        (format!("*?\r\n{}.\r\n", bulk(1).repeat(4)), None),
        (format!("*?\r\n{}.\r\n", bulk(1).repeat(5)), Some((ErrorKind::Elements, 32))),
        ("*?\r\n%1\r\n:1\r\n:1\r\n:1\r\n.\r\n".to_owned(), None),
        ("*?\r\n%2\r\n".to_owned(), Some((ErrorKind::Elements, 5))),
        (format!("{}+a\r\n", "|0\r\n".repeat(4)), None),
        ("|0\r\n".repeat(5), Some((ErrorKind::Elements, 17))),
        ("|1\r\n:1\r\n:1\r\n+a\r\n".to_owned(), None),
        ("|2\r\n".to_owned(), Some((ErrorKind::Elements, 1))),
        (bulk(40), None),
        (bulk(41), Some((ErrorKind::BulkBytes, 1))),
        (line(32), None),
        (line(33), Some((ErrorKind::LineBytes, 33))),
        (format!("*2\r\n{}{}", line(32), line(22)), None),
        (format!("*2\r\n{}{}", line(32), line(23)), Some((ErrorKind::FrameBytes, 64))),
        (format!("*2\r\n{}{}", line(32), bulk(18)), None),
        (format!("*2\r\n{}{}", line(32), bulk(19)), Some((ErrorKind::FrameBytes, 40))),
    ];
    for (input, expected) in cases {
        // A frame behind it must not change the verdict.
        let input = input + "+OK\r\n";
        let whole = feed::pieces_with(limits, [input.as_bytes()]);
        assert_eq!(whole.verdict(), expected, "{input:?}");
        assert!(whole.same_as(&feed::pieces_with(limits, input.as_bytes().chunks(1))), "{input:?}");
        if let Some((kind, _)) = expected {
            assert!(kind.is_limit());
        }
    }
}
