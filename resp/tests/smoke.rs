//! The face of the crate in a few lines.

use bytes::{Bytes, BytesMut};
use quorlock_resp::{Decoder, ErrorKind, Frame, Limits, encode};

fn all(input: &[u8]) -> (Vec<Frame>, Option<(ErrorKind, u64)>) {
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = BytesMut::from(input);
    let mut frames = Vec::new();
    loop {
        match decoder.decode(&mut buffer) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some((error.kind(), error.offset()))),
        }
    }
}

#[test]
fn lock_replies() {
    let (frames, error) = all(b"+OK\r\n$-1\r\n_\r\n:0\r\n:1\r\n:-1\r\n-ERR x\r\n");
    assert_eq!(error, None);
    let expected = [
        Frame::Simple(Bytes::from_static(b"OK")),
        Frame::Null,
        Frame::Null,
        Frame::Integer(0),
        Frame::Integer(1),
        Frame::Integer(-1),
        Frame::Error(Bytes::from_static(b"ERR x")),
    ];
    assert_eq!(frames, expected);
}

#[test]
fn streams_join_and_pushes_stand_alone() {
    let input = b"*2\r\n$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;2\r\nld\r\n;0\r\n$1\r\nx\r\n\
        |1\r\n$3\r\nttl\r\n:42\r\n>2\r\n+message\r\n*?\r\n:1\r\n.\r\n:2\r\n";
    let (frames, error) = all(input);
    assert_eq!(error, None);
    assert_eq!(frames.len(), 3);
    let mut out = Vec::new();
    frames.iter().for_each(|frame| encode::frame(&mut out, frame));
    assert_eq!(
        out.escape_ascii().to_string(),
        "*2\\r\\n$11\\r\\nHello world\\r\\n$1\\r\\nx\\r\\n>2\\r\\n+message\\r\\n*1\\r\\n:1\\r\\n:2\\r\\n"
    );
}

#[test]
fn faults_have_offsets() {
    assert_eq!(all(b"+OK\r\n:007\r\n").1, Some((ErrorKind::Number, 7)));
    assert_eq!(all(b"*1\r\n>1\r\n").1, Some((ErrorKind::NestedPush, 4)));
    assert_eq!(all(b"*4294967295\r\n").1, Some((ErrorKind::Elements, 1)));
    assert_eq!(all("*1\r\n".repeat(129).as_bytes()).1, Some((ErrorKind::Depth, 512)));
}
