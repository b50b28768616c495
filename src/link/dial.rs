//! Connecting on the network: a name becomes a stream.

use std::io;

use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::address::{Address, Endpoint};
use super::stream::{Dial, Dialing, Reader, Writer};

/// Opens streams on the network.
#[derive(Debug)]
pub(crate) struct Network;

impl Dial for Network {
    fn dial(&self, address: &Address) -> Dialing {
        let Address { endpoint, .. } = address.clone();
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
