//! The decoder and encoder as a [`tokio_util::codec`]: [`Codec`] for `Framed` and its kin.
//!
//! The one file of this crate that names the standard library's input and output, and only their
//! error type: the traits demand that a codec's error can be made of it.

use core::fmt;
use std::error;
use std::io;

use bytes::BytesMut;
use tokio_util::codec;

use crate::decode::Decoder;
use crate::encode;
use crate::error::DecodeError;
use crate::frame::Frame;
use crate::limits::Limits;

/// Reads frames, and writes frames and commands, over anything `tokio_util` can frame.
///
/// ```
/// use bytes::BytesMut;
/// use quorlock_resp::{Codec, Limits};
/// use tokio_util::codec::{Decoder, Encoder};
///
/// let mut codec = Codec::new(Limits::default());
/// let mut out = BytesMut::new();
/// codec.encode(&[&b"GET"[..], b"key"][..], &mut out)?;
/// assert_eq!(out, &b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"[..]);
///
/// let mut input = BytesMut::from(&b"$5\r\nvalue\r\n"[..]);
/// let frame = codec.decode(&mut input)?;
/// assert!(frame.is_some_and(|frame| frame.as_str() == Ok("value")));
/// # Ok::<(), quorlock_resp::CodecError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Codec {
    decoder: Decoder,
}

impl Codec {
    /// A codec at the start of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self::from(Decoder::new(limits))
    }
}

impl From<Decoder> for Codec {
    /// A codec with a decoder that was set up before.
    fn from(decoder: Decoder) -> Self {
        Self { decoder }
    }
}

impl codec::Decoder for Codec {
    type Item = Frame;
    type Error = CodecError;

    fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, CodecError> {
        self.decoder.decode(input).map_err(CodecError::Decode)
    }

    fn decode_eof(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, CodecError> {
        match self.decode(input)? {
            None if !input.is_empty() => Err(CodecError::Io(io::ErrorKind::UnexpectedEof.into())),
            frame => Ok(frame),
        }
    }
}

impl codec::Encoder<&Frame> for Codec {
    type Error = CodecError;

    fn encode(&mut self, frame: &Frame, out: &mut BytesMut) -> Result<(), CodecError> {
        encode::frame(out, frame);
        Ok(())
    }
}

impl codec::Encoder<Frame> for Codec {
    type Error = CodecError;

    fn encode(&mut self, frame: Frame, out: &mut BytesMut) -> Result<(), CodecError> {
        encode::frame(out, &frame);
        Ok(())
    }
}

impl codec::Encoder<&[&[u8]]> for Codec {
    type Error = CodecError;

    fn encode(&mut self, command: &[&[u8]], out: &mut BytesMut) -> Result<(), CodecError> {
        encode::command(out, command);
        Ok(())
    }
}

/// Why a [`Codec`] stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum CodecError {
    /// Reading or writing failed, or the stream ended inside a frame.
    Io(io::Error),
    /// The peer broke the protocol.
    Decode(DecodeError),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io(_) => "the stream failed",
            Self::Decode(_) => "the peer broke the protocol",
        })
    }
}

impl error::Error for CodecError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Decode(error) => Some(error),
        }
    }
}

impl From<io::Error> for CodecError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DecodeError> for CodecError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
