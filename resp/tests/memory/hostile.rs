//! Hostile input: memory in proportion to what came, and nothing for what was only claimed.

use bytes::{Buf, BytesMut};
use quorlock_resp::{Decoder, ErrorKind, Frame, Limits};

use crate::{counter, wire};

/// Elements among `bytes`: lines that start with a type byte.
fn elements(bytes: &[u8]) -> usize {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines.filter(|line| line.first().is_some_and(is_type)).count()
}

fn is_type(byte: &u8) -> bool {
    b"+-:$*_#,(!=%~>|;.".contains(byte)
}

/// The bound for so many bytes received, of which so many are elements.
fn bound(received: usize, elements: usize) -> isize {
    (2 * received + 2 * size_of::<Frame>() * elements + 4096) as isize
}

#[test]
fn memory_follows_what_came_at_every_prefix_of_every_vector() {
    let vectors = wire::valid().into_iter().chain(wire::invalid()).chain(wire::incomplete());
    for vector in vectors.filter(|vector| vector.bytes.len() < 4000) {
        for length in 0..=vector.bytes.len() {
            let input = &vector.bytes[..length];
            counter::start();
            let mut buffer = BytesMut::from(input);
            let mut decoder = Decoder::new(Limits::default()).keep_attributes(true);
            while let Ok(Some(_)) = decoder.decode(&mut buffer) {}
            let peak = counter::now().peak;
            let bound = bound(length, elements(input));
            assert!(peak <= bound, "{peak} > {bound} at {length} of {}", vector.place);
        }
    }
}

/// The same, arriving byte by byte into a buffer that grows by doubling, and kept.
#[test]
fn memory_follows_what_came_when_it_trickles() {
    let streams: Vec<Vec<u8>> = vec![
        b"*?\r\n".iter().copied().chain(b"_\r\n".repeat(20_000)).collect(),
        b"*1000000\r\n".iter().copied().chain(b"$0\r\n\r\n".repeat(20_000)).collect(),
        b"*1000000\r\n".iter().copied().chain(b"$1\r\na\r\n".repeat(20_000)).collect(),
        b"$?\r\n".iter().copied().chain(b";1\r\na\r\n".repeat(20_000)).collect(),
        b"*1000000\r\n".iter().copied().chain(b"*1\r\n*1\r\n:1\r\n".repeat(20_000)).collect(),
        b"|500000\r\n".iter().copied().chain(b"*0\r\n".repeat(20_000)).collect(),
        b"|0\r\n".repeat(20_000),
        b"$1000000\r\n".iter().copied().chain(b"x".repeat(200_000)).collect(),
        b"*1\r\n".repeat(128),
    ];
    for stream in streams {
        counter::start();
        let mut buffer = BytesMut::new();
        let mut decoder = Decoder::new(Limits::default());
        let (mut elements, mut before) = (0, b'\n');
        for (received, &byte) in (1..).zip(&stream) {
            buffer.extend_from_slice(&[byte]);
            elements += usize::from(before == b'\n' && is_type(&byte));
            before = byte;
            assert_eq!(decoder.decode(&mut buffer), Ok(None));
            let peak = counter::now().peak;
            assert!(peak <= bound(received, elements), "{peak} at {received}");
        }
    }
}

/// The moment a large frame is complete: the tape, the frames and the bytes exist side by side.
#[test]
fn memory_is_bounded_when_a_large_frame_completes() {
    let frames: Vec<(Vec<u8>, usize)> = vec![
        (b"*50000\r\n".iter().copied().chain(b"_\r\n".repeat(50_000)).collect(), 50_001),
        (b"*50000\r\n".iter().copied().chain(b"$1\r\na\r\n".repeat(50_000)).collect(), 50_001),
        (b"*20000\r\n".iter().copied().chain(b"*1\r\n:1\r\n".repeat(20_000)).collect(), 40_001),
        ("*1\r\n".repeat(128).into_bytes().into_iter().chain(*b":1\r\n").collect(), 129),
        (
            b"*?\r\n".iter().copied().chain(b"_\r\n".repeat(50_000)).chain(*b".\r\n").collect(),
            50_001,
        ),
    ];
    for (input, elements) in frames {
        counter::start();
        let mut buffer = BytesMut::from(&input[..]);
        let mut decoder = Decoder::new(Limits::default());
        let frame = decoder.decode(&mut buffer).expect("sound").expect("whole");
        let peak = counter::now().peak;
        let bound = bound(input.len(), elements);
        assert!(peak <= bound, "{peak} > {bound} for {}", input.len());
        drop((frame, decoder, buffer));
        assert_eq!(counter::now().held, 0);
    }
}

#[test]
fn lengths_beyond_belief_allocate_nothing() {
    let claims: [&[u8]; 8] = [
        b"*4294967295\r\n",
        b"%4611686018427387904\r\n",
        b"*3000000000\r\n",
        b"$9223372036854775807\r\n",
        b"*1048576\r\n",
        b"$536870912\r\n",
        b"~1048576\r\n",
        b"=536870912\r\n",
    ];
    for claim in claims {
        let mut buffer = BytesMut::from(claim);
        let mut decoder = Decoder::new(Limits::default());
        counter::start();
        let result = decoder.decode(&mut buffer);
        let heap = counter::now();
        match result {
            Err(error) => assert!(error.kind().is_limit() && heap.calls == 0, "{heap:?}"),
            // Within the limits: room for the first few levels and tokens, whatever it claims.
            Ok(frame) => assert!(frame.is_none() && heap.peak <= 256, "{heap:?}"),
        }
    }
}

/// Ten million levels are refused at the first that is too deep, and nothing behind it is read.
#[test]
fn endless_depth_is_refused_at_once() {
    let input = "*1\r\n".repeat(10_000_000);
    let mut buffer = BytesMut::from(input.as_bytes());
    let mut decoder = Decoder::new(Limits::default());
    counter::start();
    let error = decoder.decode(&mut buffer).expect_err("too deep");
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Depth, 4 * 128));
    assert!(counter::now().peak <= 8192, "{:?}", counter::now());
    // In pieces, the bytes that were needed to see it are all that was needed.
    let mut decoder = Decoder::new(Limits::default());
    let mut received = 0;
    for piece in input.as_bytes().chunks(3) {
        received += piece.len();
        buffer.clear();
        buffer.extend_from_slice(&input.as_bytes()[..received]);
        if decoder.decode(&mut buffer).is_err() {
            break;
        }
    }
    assert!(received <= 4 * 129 + 3, "{received} bytes read");
}

/// Whatever is returned, the buffer's bytes leave it only with a frame.
#[test]
fn an_error_leaves_the_buffer_alone() {
    let mut buffer = BytesMut::from(&b"+OK\r\n*1\r\n?\r\n"[..]);
    let mut decoder = Decoder::new(Limits::default());
    assert!(decoder.decode(&mut buffer).expect("sound").is_some());
    let error = decoder.decode(&mut buffer).expect_err("no type");
    assert_eq!((error.offset(), buffer.remaining()), (9, 7));
    assert_eq!(size_of_val(&error), 16);
}
