//! Decoding: [`Decoder`] turns a growing buffer into frames.
//!
//! ```text
//!            first bytes are a lock's reply           Short ──> Frame, nothing allocated
//! buffer ──<
//!            anything else ──(scan)──> scalar ──> Frame
//!                                  └─> tape   ──(build)──> Frame
//! ```
//!
//! Bytes leave the buffer only together with the frame they make. Until then nothing but the tape
//! is kept, 16 bytes for each element that has come.

mod build;
mod short;

use bytes::{Buf, Bytes, BytesMut};

use self::build::Builder;
pub use self::short::Short;
use crate::error::{DecodeError, ErrorKind};
use crate::frame::Frame;
use crate::limits::Limits;
use crate::scan::{Fault, Scan, Scanned, Stop, Token};

const OK: &[u8] = b"+OK\r\n";

/// A resumable decoder of one connection's replies.
///
/// It keeps its place between calls, so one decoder belongs to one buffer: append to it, and take
/// nothing away and change nothing yourself. A clone keeps the same place.
///
/// ```
/// use bytes::BytesMut;
/// use quorlock_resp::{Decoder, Frame, Limits};
///
/// let mut decoder = Decoder::new(Limits::default());
/// let mut buffer = BytesMut::from(&b"+OK\r\n*2\r\n:1\r\n$3\r\nab"[..]);
/// assert!(decoder.decode(&mut buffer)?.is_some_and(|frame| frame.is_ok()));
/// assert_eq!(decoder.decode(&mut buffer)?, None); // not all of it is there
///
/// buffer.extend_from_slice(b"c\r\n");
/// let frame = decoder.decode(&mut buffer)?.unwrap_or(Frame::Null);
/// assert_eq!(frame.as_items().map(<[Frame]>::len), Ok(2));
/// # Ok::<(), quorlock_resp::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: Limits,
    keep_attributes: bool,
    /// A frame is half read, or decoding has failed: the short replies do not apply.
    midway: bool,
    failed: Option<DecodeError>,
    /// Bytes of the stream before the first byte of the buffer.
    consumed: u64,
    scan: Scan,
    builder: Builder,
}

impl Decoder {
    /// A decoder at the start of a stream. Allocates nothing.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            keep_attributes: false,
            midway: false,
            failed: None,
            consumed: 0,
            scan: Scan::default(),
            builder: Builder::default(),
        }
    }

    /// Whether attributes are handed out, as [`Frame::Attributed`]. By default they are checked
    /// like everything else and then dropped, so that a reply has one shape with or without them.
    ///
    /// Those of a push are dropped either way: a push is always a [`Frame::Push`].
    #[must_use]
    pub fn keep_attributes(mut self, keep: bool) -> Self {
        self.keep_attributes = keep;
        self
    }

    /// Takes the next frame from the front of `buf`, or `None` if it is not all there yet.
    ///
    /// # Errors
    /// When the bytes are not RESP or pass a limit. The stream is then out of step for good:
    /// every further call gives the same error, and `buf` is left as it is.
    // Always, because the lane for short replies then makes the frame where the caller wants it:
    // measured, a third less time for a reply that comes alone.
    #[inline(always)]
    pub fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Frame>, DecodeError> {
        if !self.midway {
            if let Some((short, len)) = short::constant(buf) {
                self.consume(buf, len);
                return Ok(Some(short.into_frame()));
            }
        }
        self.decode_any(buf)
    }

    /// Takes the next frame from the front of `buf` if it is a [`Short`] one and all there, and
    /// hands it to `read` without making a frame of it. `None` says nothing about the stream: the
    /// next frame is longer, incomplete or wrong, and [`decode`](Self::decode) tells which.
    ///
    /// Nothing is allocated, also for an error with its text.
    ///
    /// ```
    /// # use bytes::BytesMut;
    /// # use quorlock_resp::{Decoder, Limits, Short};
    /// let mut decoder = Decoder::new(Limits::default());
    /// let mut buffer = BytesMut::from(&b"-NOSCRIPT No matching script.\r\n"[..]);
    /// let reload = decoder.decode_short(&mut buffer, |reply| match reply {
    ///     Short::Error(text) => text.starts_with(b"NOSCRIPT "),
    ///     _ => false,
    /// });
    /// assert_eq!(reload, Some(true));
    /// assert!(buffer.is_empty());
    /// ```
    #[inline]
    pub fn decode_short<R>(
        &mut self,
        buf: &mut BytesMut,
        read: impl FnOnce(Short<'_>) -> R,
    ) -> Option<R> {
        if self.midway {
            return None;
        }
        let (short, len) = short::any(buf, &self.limits)?;
        let result = read(short);
        self.consume(buf, len);
        Some(result)
    }

    /// As [`decode_short`](Self::decode_short), of bytes that stand in no buffer: takes the next
    /// frame from the front of `bytes` if it is a [`Short`] one and all there. What is left when it
    /// is not goes into the buffer, for [`decode`](Self::decode); until that is empty again, the
    /// bytes that follow belong there.
    ///
    /// ```
    /// # use bytes::BytesMut;
    /// # use quorlock_resp::{Decoder, Frame, Limits, Short};
    /// let mut decoder = Decoder::new(Limits::default());
    /// let mut read = &b"+OK\r\n:1\r\n$2\r\nab\r\n"[..];
    /// assert_eq!(decoder.take_short(&mut read), Some(Short::Ok));
    /// assert_eq!(decoder.take_short(&mut read), Some(Short::Integer(1)));
    /// assert_eq!(decoder.take_short(&mut read), None);
    ///
    /// let mut buffer = BytesMut::from(read);
    /// assert_eq!(decoder.decode(&mut buffer)?, Some(Frame::Bulk("ab".into())));
    /// assert_eq!(decoder.consumed(), 17);
    /// # Ok::<(), quorlock_resp::DecodeError>(())
    /// ```
    #[inline]
    pub fn take_short<'b>(&mut self, bytes: &mut &'b [u8]) -> Option<Short<'b>> {
        if self.midway {
            return None;
        }
        let (short, len) = short::any(bytes, &self.limits)?;
        *bytes = bytes.get(len..).unwrap_or_default();
        self.count(len);
        Some(short)
    }

    /// The next frame, left where it is, if it is a [`Short`] one and all there.
    #[inline]
    #[must_use]
    pub fn peek<'b>(&self, buf: &'b [u8]) -> Option<Short<'b>> {
        if self.midway {
            return None;
        }
        short::any(buf, &self.limits).map(|(short, _)| short)
    }

    /// Bytes taken from the stream so far: the offset of the first byte of the buffer.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    fn decode_any(&mut self, buf: &mut BytesMut) -> Result<Option<Frame>, DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if buf.len() < self.scan.need().max(1) {
            return Ok(None);
        }
        // What stands beyond the longest frame must have no part in the verdict about this one.
        let limit = self.limits.frame_bytes;
        let view = buf.get(..limit).unwrap_or(buf);
        match self.scan.run(view, &self.limits) {
            Ok(Scanned::Scalar(token, len)) => {
                let frame = self.take_scalar(buf, token, len);
                self.scan.reset();
                self.midway = false;
                Ok(Some(frame))
            }
            Ok(Scanned::Tape(len)) => self.take_tape(buf, len).map(Some),
            Err(Stop::More { .. }) if buf.len() >= limit => {
                Err(self.fail(Fault { kind: ErrorKind::FrameBytes, at: limit }))
            }
            Err(Stop::More { .. }) => {
                // At the very start there is no place to keep, and the next bytes may be short.
                self.midway = !buf.is_empty();
                Ok(None)
            }
            Err(Stop::Fault(fault)) => Err(self.fail(fault)),
        }
    }

    /// Makes a frame of one scalar. Takes no share in the buffer unless there is text to share.
    fn take_scalar(&mut self, buf: &mut BytesMut, token: Token, len: usize) -> Frame {
        let is_ok = len == OK.len() && buf.starts_with(OK);
        if is_ok {
            // It came in pieces, or it would have been taken as a short reply.
            self.consume(buf, len);
            return Short::Ok.into_frame();
        }
        if let Token::Text { len: 1.., .. } = token {
            let bytes = buf.split_to(len).freeze();
            self.count(len);
            return build::scalar(token, &bytes);
        }
        self.consume(buf, len);
        build::scalar(token, &Bytes::new())
    }

    /// Makes a frame of the tape.
    fn take_tape(&mut self, buf: &mut BytesMut, len: usize) -> Result<Frame, DecodeError> {
        let bytes = if self.scan.has_text() {
            let mut bytes = buf.split_to(len);
            self.count(len);
            if self.scan.has_chunks() {
                build::join_chunks(&mut bytes, self.scan.tape_mut());
            }
            bytes.freeze()
        } else {
            self.consume(buf, len);
            Bytes::new()
        };
        let frame = self.builder.build(self.scan.tape(), &bytes, self.keep_attributes);
        self.scan.reset();
        self.midway = false;
        frame.ok_or_else(|| self.fail(Fault { kind: ErrorKind::Internal, at: 0 }))
    }

    fn fail(&mut self, fault: Fault) -> DecodeError {
        let at = u64::try_from(fault.at).unwrap_or(u64::MAX);
        let error = DecodeError::new(fault.kind, self.consumed.saturating_add(at));
        self.midway = true;
        self.failed = Some(error);
        self.scan.reset();
        error
    }

    /// Drops `len` bytes that the buffer has.
    #[inline]
    fn consume(&mut self, buf: &mut BytesMut, len: usize) {
        buf.advance(len);
        self.count(len);
    }

    #[inline]
    fn count(&mut self, len: usize) {
        self.consumed = self.consumed.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}
