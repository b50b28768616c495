//! TLS over a TCP stream, in two halves that keep to the order of the bytes as TCP's do.
//!
//! A [`Session`] is rustls' state machine for one connection, which serves both directions: writes
//! and reads advance the same cipher state. It stands behind a short lock that the two halves
//! share, so that a caller, or a `Drop` on a thread without a runtime, still writes by itself: it
//! encrypts, and hands the ciphertext to the kernel before it returns. The order of commands is the
//! order in which they were encrypted, and the link's own lock is held around that. Under the
//! session's lock no task waits, no socket is read, and no code of the user's runs.
//!
//! ```text
//!  caller: link's lock ─▶ Writer::try_write ─▶ session's lock: encrypt, write to the socket
//!  driver: Reader::poll_read: read the socket ─▶ session's lock: decrypt, answer the protocol
//! ```

mod fault;
mod session;
#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::options::Security;
use crate::report::Fault;
use crate::sync::{Mutex, lock};
use session::{Incoming, Session, Taken};

/// Puts TLS onto a TCP stream that was just made to `host`. Nothing is sent before
/// [`Reader::poll_handshake`].
pub(super) fn layer(
    (reader, writer): (OwnedReadHalf, OwnedWriteHalf),
    security: &Security,
    host: &str,
) -> Result<(Reader, Writer), Fault> {
    let connection = security.connect(host).map_err(|error| fault::of(&error))?;
    let session = Arc::new(Mutex::new(Session::new(connection)));
    let incoming = Incoming::default();
    let reader = Reader { half: reader, session: session.clone(), incoming, ended: None };
    Ok((reader, Writer { half: Some(writer), session }))
}

/// How a stream has ended.
#[derive(Clone, Debug)]
enum Ended {
    /// In order, or cut off: a reply carries its own length, and one that was cut off counts for
    /// nothing, so that there is no need to tell the two apart.
    Eof,
    /// TLS itself has failed.
    Failed(Fault),
}

/// The half that reads.
#[derive(Debug)]
pub(crate) struct Reader {
    half: OwnedReadHalf,
    session: Arc<Mutex<Session>>,
    incoming: Incoming,
    ended: Option<Ended>,
}

impl Reader {
    /// Shakes hands: then the server is who it should be, and the keys are agreed on.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        loop {
            let mut session = lock(&self.session);
            let shaken = session.shake(&mut self.incoming);
            let pushed = session.push(self.half.as_ref());
            let is_done = !session.is_handshaking();
            drop(session);
            // The alert that tells the peer is on its way already.
            shaken.map_err(|error| fault::of(&error))?;
            match pushed {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let writable = ready!(self.half.as_ref().poll_write_ready(cx));
                    writable.map_err(fault::of_handshake)?;
                    continue;
                }
                // Also where our last message could not be sent: the next read says why.
                _ if is_done => return Poll::Ready(Ok(())),
                // The peer may have said why before it closed: that is read next.
                Ok(()) | Err(_) => {}
            }
            if ready!(self.poll_incoming(cx)).map_err(fault::of_handshake)? == 0 {
                return Poll::Ready(Err(fault::closed()));
            }
        }
    }

    /// Reads into `buffer` what the peer's ciphertext holds, as any stream does.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut session = lock(&self.session);
            match session.take(&mut self.incoming, buffer) {
                Ok(Taken::Plaintext(count)) => return Poll::Ready(Ok(count)),
                Ok(Taken::Nothing) => {}
                Ok(Taken::End) => self.ended = Some(Ended::Eof),
                // What it had decrypted before came out first.
                Err(error) => self.ended = Some(Ended::Failed(fault::of_stream(&error))),
            }
            let pushed = session.push_messages(self.half.as_ref());
            drop(session);
            match &self.ended {
                Some(Ended::Eof) => return Poll::Ready(Ok(0)),
                Some(Ended::Failed(fault)) => {
                    let fault = io::Error::new(io::ErrorKind::InvalidData, fault.clone());
                    return Poll::Ready(Err(fault));
                }
                None => {}
            }
            let is_full = pushed.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            // No other task waits for room for a message that no caller has written.
            if is_full && self.half.as_ref().poll_write_ready(cx).is_ready() {
                continue;
            }
            if ready!(self.poll_incoming(cx))? == 0 {
                self.ended = Some(Ended::Eof);
            }
        }
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.half.as_ref().poll_write_ready(cx)
    }

    /// Reads ciphertext, once all that was read before has been decrypted.
    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { half, incoming, .. } = self;
        incoming.fill(|bytes| {
            let mut buffer = ReadBuf::new(bytes);
            ready!(Pin::new(half).poll_read(cx, &mut buffer))?;
            Poll::Ready(Ok(buffer.filled().len()))
        })
    }
}

/// The half that writes, without waiting.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Gone once the stream was aborted.
    half: Option<OwnedWriteHalf>,
    session: Arc<Mutex<Session>>,
}

impl Writer {
    /// As [`Session::try_write`]. Works without a runtime.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.half {
            Some(half) => lock(&self.session).try_write(half.as_ref(), bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the connection as a TCP stream that is aborted: nothing more is delivered, and that
    /// holds for a farewell as well.
    pub(super) fn abort(mut self) {
        if let Some(half) = self.half.take() {
            // Failure leaves a normal close, which the server's `CLIENT KILL` makes up for.
            let _ = half.as_ref().set_zero_linger();
            half.forget();
        }
    }
}

impl Drop for Writer {
    /// Says goodbye, so that the server does not take the end for an attack. What the kernel has
    /// not taken stays untold: it counts as never sent.
    fn drop(&mut self) {
        if let Some(half) = &self.half {
            lock(&self.session).close(half.as_ref());
        }
    }
}
