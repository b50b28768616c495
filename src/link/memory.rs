//! Streams in memory: a pair of connected ends with a bounded buffer each way.
//!
//! The seam through which a simulation and the nodes inside a process bring their own network.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::io::ReadBuf;

#[cfg(any(test, feature = "testing"))]
pub(crate) use super::stream::Dialing;

use crate::sync::{Mutex, lock};

/// One direction of a pair.
#[derive(Debug, Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

type Shared = Arc<Mutex<Pipe>>;

/// Two connected ends; each direction holds at most `capacity` bytes.
pub(crate) fn pair(capacity: usize) -> ((Reader, Writer), (Reader, Writer)) {
    let pipe = || Arc::new(Mutex::new(Pipe { capacity, ..Pipe::default() }));
    let (there, back) = (pipe(), pipe());
    let end = |from: &Shared, to: &Shared| {
        (Reader { from: from.clone(), to: to.clone() }, Writer { to: to.clone() })
    };
    (end(&back, &there), end(&there, &back))
}

/// Reads what the other end wrote; knows its own direction's pipe to wait for room.
#[derive(Debug)]
pub(crate) struct Reader {
    from: Shared,
    to: Shared,
}

impl Reader {
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.from);
        if pipe.bytes.is_empty() && !pipe.closed {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buffer.remaining().min(pipe.bytes.len());
        for byte in pipe.bytes.drain(..count) {
            buffer.put_slice(&[byte]);
        }
        wake(pipe.writer.take());
        Poll::Ready(Ok(count))
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = lock(&self.to);
        if pipe.bytes.len() < pipe.capacity || pipe.closed {
            return Poll::Ready(Ok(()));
        }
        pipe.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        close(&self.from);
    }
}

/// Writes to the other end.
#[derive(Debug)]
pub(crate) struct Writer {
    to: Shared,
}

impl Writer {
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = lock(&self.to);
        if pipe.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = pipe.capacity - pipe.bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = room.min(bytes.len());
        pipe.bytes.extend(&bytes[..count]);
        wake(pipe.reader.take());
        Ok(count)
    }

    /// Waits until the other end has taken something, or is gone.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut pipe = lock(&self.to);
        if pipe.bytes.len() < pipe.capacity || pipe.closed {
            return Poll::Ready(());
        }
        pipe.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        close(&self.to);
    }
}

fn close(pipe: &Shared) {
    let mut pipe = lock(pipe);
    pipe.closed = true;
    wake(pipe.reader.take());
    wake(pipe.writer.take());
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::super::stream;
    use super::*;

    #[tokio::test]
    async fn bytes_pass_the_bound_holds_and_the_end_is_seen() {
        let ((reader, writer), (far_reader, far_writer)) = pair(4);
        let mut far = stream::Reader::Memory(far_reader);
        assert_eq!(writer.try_write(b"abcdef").unwrap(), 4);
        let full = writer.try_write(b"ef").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(reader.poll_write_ready(&mut cx).is_pending());

        let mut buffer = [0; 16];
        let count = poll_fn(|cx| far.poll_read(cx, &mut buffer)).await.unwrap();
        assert_eq!(&buffer[..count], b"abcd");
        poll_fn(|cx| reader.poll_write_ready(cx)).await.unwrap();

        assert_eq!(writer.try_write(b"abcd").unwrap(), 4);
        let is_ready = |poll: Poll<()>| Poll::Ready(poll.is_ready());
        assert!(!poll_fn(|cx| is_ready(writer.poll_ready(cx))).await, "it is full again");
        assert_eq!(poll_fn(|cx| far.poll_read(cx, &mut buffer)).await.unwrap(), 4);
        poll_fn(|cx| writer.poll_ready(cx)).await;

        drop(writer);
        assert_eq!(poll_fn(|cx| far.poll_read(cx, &mut buffer)).await.unwrap(), 0);
        drop(reader);
        assert!(far_writer.try_write(b"x").is_err());
    }
}
