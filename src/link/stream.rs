//! The bytes below a link: TCP, a Unix socket, or memory; split into the half that reads and the
//! half that writes.
//!
//! The driver owns the [`Reader`]; the [`Writer`] is shared behind the link's lock, so that a
//! caller can write without waiting for the driver, and so that the socket outlives the driver.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, tcp};
#[cfg(unix)]
use tokio::net::{UnixStream, unix};

use super::address::Endpoint;
#[cfg(any(test, feature = "testing"))]
use super::memory;

/// Opens streams. A simulation brings its own.
pub(crate) trait Dial: Send + Sync {
    /// Resolves the name each time, since it may have moved.
    fn dial(&self, endpoint: Endpoint) -> Dialing;
}

/// A connection being made.
pub(crate) type Dialing = Pin<Box<dyn Future<Output = io::Result<(Reader, Writer)>> + Send>>;

/// Opens streams on the network.
#[derive(Debug)]
pub(crate) struct Network;

impl Dial for Network {
    fn dial(&self, endpoint: Endpoint) -> Dialing {
        Box::pin(async move {
            match endpoint {
                Endpoint::Tcp { host, port } => {
                    let stream = TcpStream::connect((host.as_str(), port)).await?;
                    tune(&stream)?;
                    let (reader, writer) = stream.into_split();
                    Ok((Reader::Tcp(reader), Writer::Tcp(writer)))
                }
                #[cfg(unix)]
                Endpoint::Unix { path } => {
                    let (reader, writer) = UnixStream::connect(path).await?.into_split();
                    Ok((Reader::Unix(reader), Writer::Unix(writer)))
                }
                #[cfg(not(unix))]
                Endpoint::Unix { .. } => {
                    Err(io::Error::new(io::ErrorKind::Unsupported, "no Unix sockets here"))
                }
            }
        })
    }
}

/// No delay: a lock command is small and alone, and Nagle's algorithm would hold it back for the
/// reply to the one before. Keepalive: an idle link behind a firewall that forgot it must not look
/// healthy for ever. The user timeout bounds how long sent bytes may stay unacknowledged, for
/// keepalive says nothing while bytes are outstanding.
fn tune(stream: &TcpStream) -> io::Result<()> {
    use std::time::Duration;
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5));
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(Duration::from_secs(30)))?;
    Ok(())
}

/// The half that reads.
#[derive(Debug)]
pub(crate) enum Reader {
    Tcp(tcp::OwnedReadHalf),
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
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let polled = match self {
            Self::Tcp(reader) => Pin::new(reader).poll_read(cx, &mut buffer),
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
    #[cfg(unix)]
    Unix(unix::OwnedWriteHalf),
    #[cfg(any(test, feature = "testing"))]
    Memory(memory::Writer),
}

impl Writer {
    /// Hands bytes to the kernel; `WouldBlock` when it takes none now. Works without a runtime.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(writer) => writer.try_write(bytes),
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
            // A Unix socket's bytes are in the peer's buffer already; nothing can be taken back.
            #[cfg(unix)]
            Self::Unix(writer) => writer.forget(),
            #[cfg(any(test, feature = "testing"))]
            Self::Memory(writer) => drop(writer),
        }
    }
}
