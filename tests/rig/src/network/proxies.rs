//! A proxy for each client and node, in our own process: for machines without namespaces, and for
//! what packets in a namespace cannot do, which is to come late one by one.
//!
//! Each direction of a connection reads a piece, asks its path what becomes of it, and delivers
//! it or not. What waits at a dead way is delivered when it is clear again, also when the client
//! has gone meanwhile: so do networks. What a void has swallowed is a hole in the stream, so its
//! connection ends.

#![expect(clippy::disallowed_methods, reason = "a slow network stands for real time")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::Failure;
use crate::paths::{Path, Paths, Way};

/// One for each client and node.
#[derive(Debug)]
pub(crate) struct Proxies(Vec<Vec<Proxy>>);

#[derive(Debug)]
struct Proxy {
    addr: SocketAddr,
    path: watch::Sender<Path>,
}

impl Proxies {
    pub(super) async fn build(clients: usize, ports: &[u16]) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for _ in 0..clients {
            let mut row = Vec::new();
            for port in ports {
                row.push(Proxy::start(SocketAddr::from(([127, 0, 0, 1], *port))).await?);
            }
            all.push(row);
        }
        Ok(Self(all))
    }

    pub(super) fn urls(&self, client: usize) -> Vec<String> {
        self.0[client].iter().map(|proxy| format!("redis://{}", proxy.addr)).collect()
    }

    pub(super) fn apply(&self, paths: &Paths) {
        for (row, known) in self.0.iter().zip(&paths.by_client) {
            for (proxy, path) in row.iter().zip(known) {
                proxy.path.send_replace(*path);
            }
        }
    }
}

impl Proxy {
    async fn start(node: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let (path, seen) = watch::channel(Path::default());
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                Handle::current().spawn(serve(client, node, seen.clone()));
            }
        });
        Ok(Self { addr, path })
    }
}

/// Carries one connection both ways, until either ends.
async fn serve(client: TcpStream, node: SocketAddr, path: watch::Receiver<Path>) {
    // A node that is down: the client's connection ends.
    let Ok(server) = TcpStream::connect(node).await else { return };
    let quick = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    if quick.is_err() {
        return;
    }
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let (broken, on_break) = watch::channel(false);
    let broken = Arc::new(broken);
    let to = Carrier { path: path.clone(), to: true, broken: broken.clone() };
    let from = Carrier { path, to: false, broken };
    let both = async {
        tokio::join!(to.carry(client_read, server_write), from.carry(server_read, client_write))
    };
    tokio::select! {
        _ = both => {}
        () = until(on_break, |broken| *broken) => {}
    }
}

/// Waits until the value is so, or cannot change any more.
async fn until<T>(mut seen: watch::Receiver<T>, is_so: impl Fn(&T) -> bool) {
    // An error says that the sender has gone: there is nothing left to wait for.
    let _ = seen.wait_for(|value| is_so(value)).await;
}

/// One direction.
struct Carrier {
    path: watch::Receiver<Path>,
    /// Towards the node.
    to: bool,
    /// Ends the whole connection.
    broken: Arc<watch::Sender<bool>>,
}

/// A piece of a stream, and when it may arrive.
type Piece = (Instant, Vec<u8>);

impl Carrier {
    async fn carry(self, source: OwnedReadHalf, sink: OwnedWriteHalf) {
        // As long as a connection's kernel buffers let it be.
        let (under_way, arriving) = mpsc::unbounded_channel();
        tokio::join!(self.take(source, under_way), deliver(arriving, sink));
    }

    /// Takes up pieces, and sends those on their way that will arrive.
    async fn take(mut self, mut source: OwnedReadHalf, under_way: UnboundedSender<Piece>) {
        let mut buffer = [0; 4_096];
        let mut swallowed = false;
        loop {
            let count = source.read(&mut buffer).await.unwrap_or(0);
            let late = match self.wait().await {
                Way::Void if count > 0 => {
                    swallowed = true;
                    continue;
                }
                Way::Reset => break,
                Way::Late(millis) => Duration::from_millis(millis.into()),
                _ => Duration::ZERO,
            };
            let piece = (Instant::now() + late, buffer[..count].to_vec());
            if count == 0 || swallowed || under_way.send(piece).is_err() {
                break;
            }
        }
        // The other direction may have something on its way; an end is passed on like bytes.
        if swallowed || self.way() == Way::Reset {
            self.broken.send_replace(true);
        }
    }

    fn way(&self) -> Way {
        let path = *self.path.borrow();
        if self.to { path.to } else { path.from }
    }

    /// Waits while the way is dead, and says what it is then.
    async fn wait(&mut self) -> Way {
        while self.way() == Way::Dead {
            if self.path.changed().await.is_err() {
                return Way::Reset;
            }
        }
        self.way()
    }
}

/// Delivers each piece when it is time, and then the end.
async fn deliver(mut arriving: UnboundedReceiver<Piece>, mut sink: OwnedWriteHalf) {
    while let Some((at, piece)) = arriving.recv().await {
        sleep_until(at).await;
        if sink.write_all(&piece).await.is_err() {
            return;
        }
    }
    // The peer may have gone before.
    let _ = sink.shutdown().await;
}
