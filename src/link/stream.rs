//! The bytes below a link: TCP, TLS over it, a Unix socket, or memory; split into the half that
//! reads and the half that writes.
//!
//! The driver owns the [`Reader`]; the [`Writer`] is shared behind the link's lock, so that a
//! caller can write without waiting for the driver, and so that the socket outlives the driver.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp;
#[cfg(unix)]
use tokio::net::unix;

use super::handshake::HandshakeConfig;
#[cfg(any(test, feature = "testing"))]
use super::memory;
#[cfg(feature = "tls-rustls")]
use super::tls;
use crate::options::Address;
#[cfg(feature = "tls-rustls")]
use crate::options::Endpoint;
use crate::report::Fault;

/// Opens streams. A simulation brings its own.
pub(crate) trait Dial: Send + Sync {
    /// Resolves the name each time, since it may have moved. The stream carries plain text;
    /// [`secure`] is for an address that asks for TLS.
    fn dial(&self, address: &Address) -> Dialing;
}

/// A connection being made.
pub(crate) type Dialing = Pin<Box<dyn Future<Output = io::Result<(Reader, Writer)>> + Send>>;

/// Puts TLS onto a stream that was just dialled for an address that asks for it. There is no way
/// from such an address to plain text: what cannot be secured is an error.
#[cfg(feature = "tls-rustls")]
pub(crate) async fn secure(
    streams: (Reader, Writer),
    address: &Address,
    config: &HandshakeConfig,
) -> Result<(Reader, Writer), Fault> {
    let (Endpoint::Tcp { host, .. }, Some(security)) = (&address.endpoint, &config.security) else {
        return Err(Fault::Tls { error: "nothing says whom to trust".into() });
    };
    let (Reader::Tcp(reader), Writer::Tcp(writer)) = streams else {
        return Err(Fault::Tls { error: "it goes over TCP alone".into() });
    };
    let (mut reader, writer) = tls::layer((reader, writer), security, host)?;
    std::future::poll_fn(|cx| reader.poll_handshake(cx)).await?;
    Ok((Reader::Tls(Box::new(reader)), Writer::Tls(writer)))
}

#[cfg(not(feature = "tls-rustls"))]
pub(crate) async fn secure(
    _: (Reader, Writer),
    _: &Address,
    config: &HandshakeConfig,
) -> Result<(Reader, Writer), Fault> {
    match &config.security {
        None => Err(Fault::Tls { error: "this build cannot speak it".into() }),
        Some(security) => match *security {},
    }
}

/// The half that reads.
#[derive(Debug)]
pub(crate) enum Reader {
    Tcp(tcp::OwnedReadHalf),
    #[cfg(feature = "tls-rustls")]
    Tls(Box<tls::Reader>),
    #[cfg(unix)]
    Unix(unix::OwnedReadHalf),
    #[cfg(any(test, feature = "testing"))]
    Memory(memory::Reader),
}

impl Reader {
    /// Reads into `buffer`; `Ok(0)` is the end of the stream.
    ///
    /// A read that comes back short has cleared the socket's readiness without registering the
    /// waker: the caller polls again until `Pending`, which costs no system call.
    // Called twice for each reply, from a room that is compiled apart.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let polled = match self {
            Self::Tcp(reader) => Pin::new(reader).poll_read(cx, &mut buffer),
            #[cfg(feature = "tls-rustls")]
            Self::Tls(reader) => return reader.poll_read(cx, buffer.initialized_mut()),
            #[cfg(unix)]
            Self::Unix(reader) => Pin::new(reader).poll_read(cx, &mut buffer),
            #[cfg(any(test, feature = "testing"))]
            Self::Memory(reader) => return reader.poll_read(cx, &mut buffer),
        };
        polled.map_ok(|()| buffer.filled().len())
    }

    /// Waits until the writer can take bytes again. The driver alone does, on the half it owns:
    /// a socket remembers one waker for each direction.
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(reader) => reader.as_ref().poll_write_ready(cx),
            #[cfg(feature = "tls-rustls")]
            Self::Tls(reader) => reader.poll_write_ready(cx),
            #[cfg(unix)]
            Self::Unix(reader) => reader.as_ref().poll_write_ready(cx),
            #[cfg(any(test, feature = "testing"))]
            Self::Memory(reader) => reader.poll_write_ready(cx),
        }
    }
}

/// The half that writes, without waiting.
#[derive(Debug)]
pub(crate) enum Writer {
    Tcp(tcp::OwnedWriteHalf),
    #[cfg(feature = "tls-rustls")]
    Tls(tls::Writer),
    #[cfg(unix)]
    Unix(unix::OwnedWriteHalf),
    #[cfg(any(test, feature = "testing"))]
    Memory(memory::Writer),
}

impl Writer {
    /// Hands bytes to the kernel; `WouldBlock` when it takes none now: then the caller passes the
    /// same bytes again, and perhaps more behind them. Works without a runtime.
    // Called for each command, as above.
    #[inline]
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(writer) => writer.try_write(bytes),
            #[cfg(feature = "tls-rustls")]
            Self::Tls(writer) => writer.try_write(bytes),
            #[cfg(unix)]
            Self::Unix(writer) => writer.try_write(bytes),
            #[cfg(any(test, feature = "testing"))]
            Self::Memory(writer) => writer.try_write(bytes),
        }
    }

    /// Ends the connection without delivering what is still under way.
    ///
    /// A socket that is closed normally goes on delivering: a `SET` of a dead link could arrive
    /// after the undo that the next link sent for it. The socket itself closes with its reader.
    pub(crate) fn abort(self) {
        match self {
            Self::Tcp(writer) => {
                // Failure leaves a normal close, which the server's `CLIENT KILL` makes up for.
                let _ = writer.as_ref().set_zero_linger();
                writer.forget();
            }
            #[cfg(feature = "tls-rustls")]
            Self::Tls(writer) => writer.abort(),
            // A Unix socket's bytes are in the peer's buffer already; nothing can be taken back.
            #[cfg(unix)]
            Self::Unix(writer) => writer.forget(),
            #[cfg(any(test, feature = "testing"))]
            Self::Memory(writer) => drop(writer),
        }
    }
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use std::future::poll_fn;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Our kernel drops what it has not delivered, and tells the far end by a reset.
    #[tokio::test]
    async fn an_abort_resets_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let (far, _writer) = far.into_split();
        let (reader, writer) = near.into_split();
        Writer::Tcp(writer).abort();
        drop(Reader::Tcp(reader));
        let mut far = Reader::Tcp(far);
        let error = poll_fn(|cx| far.poll_read(cx, &mut [0])).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
