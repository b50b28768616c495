//! The `tokio-util` face: the same frames, and an end inside a frame is an error.

use bytes::BytesMut;
use quorlock_resp::{Codec, CodecError, Decoder, Limits};
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::{feed, wire};

#[test]
fn the_codec_decodes_and_encodes_as_the_decoder_does() {
    for vector in wire::valid() {
        let expected = feed::whole(&vector.bytes).frames;
        let mut codec = Codec::from(Decoder::new(Limits::default()).keep_attributes(true));
        let mut input = BytesMut::from(&vector.bytes[..]);
        let mut out = BytesMut::new();
        for frame in &expected {
            let found = codec.decode(&mut input).expect("valid").expect("whole");
            assert_eq!(format!("{found:?}"), format!("{frame:?}"), "{}", vector.place);
            codec.encode(frame, &mut out).expect("infallible");
            codec.encode(found, &mut out).expect("infallible");
        }
        assert!(matches!(codec.decode_eof(&mut input), Ok(None)), "{}", vector.place);
        assert_eq!(feed::whole(&out).frames.len(), 2 * expected.len(), "{}", vector.place);
    }
}

#[test]
fn an_end_inside_a_frame_is_an_error() {
    let mut codec = Codec::new(Limits::default());
    let mut input = BytesMut::from(&b"+OK\r\n$3\r\nab"[..]);
    assert!(
        codec.decode_eof(&mut input).is_ok_and(|frame| frame.is_some_and(|frame| frame.is_ok()))
    );
    let error = codec.decode_eof(&mut input).expect_err("half a frame");
    assert!(
        matches!(&error, CodecError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof)
    );
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_protocol_error_is_told_from_an_end() {
    let mut codec = Codec::default();
    let mut input = BytesMut::from(&b"x"[..]);
    let error = codec.decode(&mut input).expect_err("no type");
    assert!(matches!(error, CodecError::Decode(_)), "{error}");
}
