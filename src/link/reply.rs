//! One reply, as a link hands it on: small where it is one that a lock gets.
//!
//! A lock's replies are one word each. They are read where they stand, and pass from the socket to
//! the vote without becoming a [`Frame`], which is thrice as large and whose text must be dropped.

use bytes::Bytes;
use quorlock_resp::{Frame, Short};

/// A reply.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// `OK`.
    Ok,
    Null,
    Integer(i64),
    /// Any other.
    Whole(Box<Frame>),
}

impl Reply {
    pub(crate) fn into_frame(self) -> Frame {
        match self {
            Self::Ok => Frame::Simple(Bytes::from_static(b"OK")),
            Self::Null => Frame::Null,
            Self::Integer(value) => Frame::Integer(value),
            Self::Whole(frame) => *frame,
        }
    }

    /// The text of an error.
    pub(crate) fn as_error(&self) -> Option<&[u8]> {
        match self {
            Self::Whole(frame) => frame.as_error(),
            _ => None,
        }
    }
}

impl From<Frame> for Reply {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Null => Self::Null,
            Frame::Integer(value) => Self::Integer(value),
            frame if frame.is_ok() => Self::Ok,
            frame => Self::Whole(Box::new(frame)),
        }
    }
}

impl From<Short<'_>> for Reply {
    #[inline]
    fn from(short: Short<'_>) -> Self {
        match short {
            Short::Ok => Self::Ok,
            Short::Null => Self::Null,
            Short::Integer(value) => Self::Integer(value),
            other => Self::Whole(Box::new(other.into_frame())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_the_same_however_it_was_read() {
        let frames = [
            Frame::Simple("OK".into()),
            Frame::Null,
            Frame::Integer(-1),
            Frame::Error("BUSY a script".into()),
        ];
        let shorts = [Short::Ok, Short::Null, Short::Integer(-1), Short::Error(b"BUSY a script")];
        for (frame, short) in frames.into_iter().zip(shorts) {
            let reply = Reply::from(frame.clone());
            assert_eq!(reply, Reply::from(short));
            assert_eq!(reply.into_frame(), frame);
        }
        assert_ne!(Reply::from(Frame::Bulk("OK".into())), Reply::Ok, "a value is not a status");
    }
}
