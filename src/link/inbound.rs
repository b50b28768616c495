//! The driver's half of a connection: reads, decodes, and hands frames to the shared half.

use std::io;
use std::task::{Context, Poll};

use bytes::BytesMut;
use quorlock_resp::{Decoder, Frame, Limits};

use super::answer::Stray;
use super::pipeline::Completion;
use super::push::Push;
use super::reply::Reply;
use super::shared::{Answered, Link};
use super::stream::Reader;
use crate::clock::Clock;
use crate::report::Fault;
use crate::server_error::ServerError;

/// How often one socket is read in a pass before the others are.
const READS_MAX: usize = 8;

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The server closed it.
    Eof,
    /// The operating system did.
    Io(io::ErrorKind),
    /// The stream said itself what is wrong, as TLS does.
    Fault(Fault),
    /// What came is not RESP.
    Undecodable(quorlock_resp::DecodeError),
    /// A reply came that answers nothing that was asked.
    Stray,
    /// The server was a master and is a replica now: its name may lead elsewhere by now.
    Demoted,
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.downcast() {
            Ok(fault) => Self::Fault(fault),
            Err(error) => Self::Io(error.kind()),
        }
    }
}

/// The reading half of a connection.
#[derive(Debug)]
pub(crate) struct Inbound {
    reader: Reader,
    /// Bytes of a frame that is not complete yet.
    buffer: BytesMut,
    decoder: Decoder,
    /// Replies of one pass; kept for its capacity.
    replies: Vec<Reply>,
    /// What the server said unasked, until the session takes it.
    pub(crate) pushes: Vec<Push>,
    /// The link's writer was full; wait until it is not.
    pub(crate) blocked: bool,
    /// Something was sent again, or is to be; the session sees to its timer.
    pub(crate) is_due: bool,
    /// The server rejects [native commands](super::native), and said this; until the session takes
    /// it.
    pub(crate) rejected: Option<Box<str>>,
    /// The server refuses to track what is read; until the session takes it.
    pub(crate) refuses_tracking: bool,
}

impl Inbound {
    /// Takes over behind a handshake, with what it had read beyond its own replies.
    pub(crate) fn new(reader: Reader, buffer: BytesMut, decoder: Decoder) -> Self {
        Self {
            reader,
            buffer,
            decoder,
            replies: Vec::new(),
            pushes: Vec::new(),
            blocked: false,
            is_due: false,
            rejected: None,
            refuses_tracking: false,
        }
    }

    /// A decoder with the bounds that a lock's replies keep to; `Client` asks for any reply, so
    /// they are the protocol's usual ones.
    pub(crate) fn decoder() -> Decoder {
        Decoder::new(Limits::default())
    }

    /// Reads what has come, through `staging`, and gives each reply to its command. `Pending` says
    /// that the socket is drained and the waker registered.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        link: &Link,
        clock: &Clock,
        staging: &mut [u8],
        completions: &mut Vec<Completion>,
    ) -> Poll<Ended> {
        if self.blocked && self.reader.poll_write_ready(cx).is_ready() {
            self.blocked = false;
            link.unblock();
        }
        // A handshake may have read more than its own replies.
        let mut ended = self.decode(&[]).err();
        let mut reads = 0;
        let ended = loop {
            if ended.is_some() {
                break ended;
            }
            match self.reader.poll_read(cx, staging) {
                Poll::Pending => break None,
                Poll::Ready(Ok(0)) => break Some(Ended::Eof),
                Poll::Ready(Ok(count)) => {
                    ended = self.decode(staging.get(..count).unwrap_or_default()).err();
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(Err(error)) => break Some(error.into()),
            }
            reads += 1;
            if reads == READS_MAX {
                cx.waker().wake_by_ref(); // there is more; the others first
                break None;
            }
        };
        // Replies that came before the end still count.
        match self.answer(link, clock, completions).err().or(ended) {
            Some(ended) => Poll::Ready(ended),
            None => Poll::Pending,
        }
    }

    /// Makes replies of what was read. As a rule they are a lock's, and all whole: those are taken
    /// where they stand, and the buffer stays empty.
    fn decode(&mut self, mut read: &[u8]) -> Result<(), Ended> {
        if self.buffer.is_empty() {
            while let Some(short) = self.decoder.take_short(&mut read) {
                self.replies.push(short.into());
            }
        }
        self.buffer.extend_from_slice(read);
        while !self.buffer.is_empty() {
            match self.decoder.decode(&mut self.buffer) {
                // It answers no command.
                Ok(Some(push @ Frame::Push(_))) => self.pushes.extend(Push::parse(&push)),
                Ok(Some(frame)) => self.replies.push(frame.into()),
                Ok(None) => break,
                Err(error) => return Err(Ended::Undecodable(error)),
            }
        }
        Ok(())
    }

    /// Gives each reply to its command.
    fn answer(
        &mut self,
        link: &Link,
        clock: &Clock,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Ended> {
        if self.replies.is_empty() {
            return Ok(());
        }
        let answered = link.answer(&mut self.replies, clock.now(), completions);
        let answered = answered.map_err(|Stray| Ended::Stray)?;
        let Answered { is_due, rejected, refuses_tracking } = answered;
        self.is_due |= is_due;
        self.refuses_tracking |= refuses_tracking;
        self.rejected = self.rejected.take().or(rejected);
        let is_of_replica = |text| ServerError::new(text).cause().is_of_replica();
        match completions.iter().any(|answer| answer.reply.as_error().is_some_and(is_of_replica)) {
            true => Err(Ended::Demoted),
            false => Ok(()),
        }
    }
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::super::memory;
    use super::*;
    use crate::options::LinkOptions;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_socket_that_always_has_more_yields_after_so_many_reads() {
        let ((near, _writer), (_reader, far)) = memory::pair(64);
        assert_eq!(far.try_write(b"$100\r\nand so on").unwrap(), 15);
        let (link, clock) = (Link::new(LinkOptions::default()), Clock::default());
        let mut inbound = Inbound::new(Reader::Memory(near), BytesMut::new(), Inbound::decoder());
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let mut cx = Context::from_waker(&waker);
        for (read, woken) in [(READS_MAX, 1), (15, 1)] {
            let polled = inbound.poll(&mut cx, &link, &clock, &mut [0], &mut Vec::new());
            assert!(polled.is_pending());
            assert_eq!((inbound.buffer.len(), wakes.0.load(Ordering::Relaxed)), (read, woken));
        }
    }
}
