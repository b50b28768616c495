//! One connection's state on our side, for both of its halves.
//!
//! Two nouns. *Credit* is plaintext that has been encrypted, and whose ciphertext the kernel has
//! not wholly taken: the caller passes the same bytes again, and only then does it count as
//! written. So a link's account of what was sent stays exact, for a record that lacks a byte is one
//! that the peer cannot read. A *message* is what the protocol owes the peer and no caller has
//! written: an alert, an answer to a new key.

use std::io::{self, IoSlice, Read, Write};
use std::mem;
use std::task::{Poll, ready};

use rustls::ClientConnection;
use tokio::net::TcpStream;

/// The most plaintext that one record holds. No more is encrypted at once, so that credit is never
/// more than one record, of which the peer has either all or nothing.
pub(super) const RECORD_MAX: usize = 16 << 10;

/// What one reading of the socket brings at most. A lock's replies are small; of a larger record
/// the parts come one behind the other.
const INCOMING: usize = 8 << 10;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Session {
    connection: ClientConnection,
    /// Bytes of plaintext; at most [`RECORD_MAX`].
    credit: usize,
    /// What went wrong behind plaintext that has not been taken yet.
    failed: Option<rustls::Error>,
}

/// What was found in the ciphertext.
pub(super) enum Taken {
    Plaintext(usize),
    /// There must be more of it first.
    Nothing,
    /// The peer has said that it was all.
    End,
}

impl Session {
    pub(super) fn new(mut connection: ClientConnection) -> Self {
        // What waits here is bounded by the credit.
        connection.set_buffer_limit(None);
        Self { connection, credit: 0, failed: None }
    }

    /// Whether hands must still be shaken.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Gives what has come to the handshake.
    pub(super) fn shake(&mut self, incoming: &mut Incoming) -> Result<(), rustls::Error> {
        while self.is_handshaking() && !incoming.is_empty() {
            self.decrypt(incoming)?;
        }
        Ok(())
    }

    /// Decrypts into `plaintext` until something comes out. A failure comes behind what was
    /// decrypted before it, and stays.
    pub(super) fn take(
        &mut self,
        incoming: &mut Incoming,
        plaintext: &mut [u8],
    ) -> Result<Taken, rustls::Error> {
        loop {
            match (self.connection.reader().read(plaintext), self.failed.take()) {
                (Ok(0), _) => return Ok(Taken::End),
                (Ok(count), failed) => {
                    self.failed = failed;
                    return Ok(Taken::Plaintext(count));
                }
                (Err(_), Some(failed)) => return Err(failed),
                (Err(_), None) if incoming.is_empty() => return Ok(Taken::Nothing),
                (Err(_), None) => self.failed = self.decrypt(incoming).err(),
            }
        }
    }

    fn decrypt(&mut self, incoming: &mut Incoming) -> Result<(), rustls::Error> {
        match self.connection.read_tls(incoming) {
            // Behind the peer's farewell nothing counts.
            Ok(0) => incoming.clear(),
            Ok(_) => {}
            Err(error) => return Err(rustls::Error::General(error.to_string())),
        }
        self.connection.process_new_packets().map(drop)
    }

    /// Encrypts, and hands the ciphertext to the kernel. `WouldBlock` when the kernel does not take
    /// all of it now: then the caller comes again with the same bytes, and perhaps more behind
    /// them.
    pub(super) fn try_write(&mut self, socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        debug_assert!(
            self.credit <= bytes.len(),
            "a writer that was put off brings the same bytes"
        );
        if self.credit == 0 {
            let record = bytes.get(..RECORD_MAX).unwrap_or(bytes);
            self.credit = self.connection.writer().write(record)?;
        }
        self.push(socket)?;
        Ok(mem::take(&mut self.credit))
    }

    /// Hands messages to the kernel, where no credit stands before them: whether that was sent is
    /// for its writer to learn.
    pub(super) fn push_messages(&mut self, socket: &TcpStream) -> io::Result<()> {
        if self.credit > 0 { Ok(()) } else { self.push(socket) }
    }

    /// Hands all ciphertext to the kernel.
    pub(super) fn push(&mut self, socket: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut Kernel(socket))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Tells the peer that this was all, if the kernel takes it.
    pub(super) fn close(&mut self, socket: &TcpStream) {
        if self.credit == 0 {
            self.connection.send_close_notify();
            // The end of the stream follows and says the same.
            let _ = self.push(socket);
        }
    }
}

/// Writes to a socket that does not wait.
struct Kernel<'a>(&'a TcpStream);

impl Write for Kernel<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ciphertext that was read from the socket and is not decrypted yet.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl Default for Incoming {
    fn default() -> Self {
        Self { bytes: vec![0; INCOMING].into(), begin: 0, end: 0 }
    }
}

impl Incoming {
    fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    fn clear(&mut self) {
        self.begin = self.end;
    }

    /// Reads, when all that was read before is decrypted.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.is_empty(), "ciphertext is decrypted before more is read");
        let count = ready!(read(&mut self.bytes))?;
        (self.begin, self.end) = (0, count);
        Poll::Ready(Ok(count))
    }
}

impl Read for Incoming {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.bytes.get(self.begin..self.end).unwrap_or_default();
        let count = rest.read(into)?;
        self.begin += count;
        Ok(count)
    }
}
