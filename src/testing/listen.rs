//! A node's port.

use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::task::{Poll, Waker};

use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use super::fault::{Point, Reaction};
use super::serve::{Stream, serve};
use super::shared::Shared;
use crate::clock::Clock;
use crate::sync::{Mutex, lock};

/// Connections that wait to be accepted at most.
const BACKLOG: i32 = 1_024;

/// The port, open or not. Closing it takes effect at once, on whatever thread: a client that
/// connects afterwards is refused.
pub(super) struct Listening {
    addr: SocketAddr,
    runtime: Handle,
    door: Arc<Door>,
}

#[derive(Default)]
struct Door {
    open: Mutex<Option<TcpListener>>,
    /// Of the task that accepts.
    waiting: Mutex<Option<Waker>>,
}

impl Listening {
    /// Opens a port on the present runtime.
    pub(super) fn bind(addr: SocketAddr) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = open(addr)?;
        let addr = listener.local_addr()?;
        let door = Arc::new(Door::default());
        *lock(&door.open) = Some(TcpListener::from_std(listener)?);
        Ok(Self { addr, runtime, door })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Accepts connections for the node until the port is closed.
    pub(super) fn start(&self, node: &Arc<Shared>) {
        let (door, node) = (self.door.clone(), node.clone());
        self.runtime.spawn(accept(door, node, self.runtime.clone()));
    }

    pub(super) fn close(&self) {
        if let Some(listener) = lock(&self.door.open).take() {
            // A child that is being forked has a copy of it until it runs its program. Where a
            // listener can be ended for all copies (Linux), its port is free at once.
            let _ = SockRef::from(&listener).shutdown(Shutdown::Read);
        }
        if let Some(waker) = lock(&self.door.waiting).take() {
            waker.wake();
        }
    }

    /// Opens the same port again.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let listener = open(self.addr)?;
        let _entered = self.runtime.enter();
        *lock(&self.door.open) = Some(TcpListener::from_std(listener)?);
        Ok(())
    }
}

fn open(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    // Connections of the last process may still be ending.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

async fn accept(door: Arc<Door>, node: Arc<Shared>, runtime: Handle) {
    while let Some(stream) = door.next().await {
        let node = node.clone();
        runtime.spawn(async move {
            if meet(&node).await.is_ok() {
                serve(node, Stream::Tcp(stream)).await;
            }
        });
    }
}

impl Door {
    /// The next connection; `None` when the port is closed.
    async fn next(&self) -> Option<TcpStream> {
        poll_fn(|cx| {
            *lock(&self.waiting) = Some(cx.waker().clone());
            let open = lock(&self.open);
            let Some(listener) = open.as_ref() else { return Poll::Ready(None) };
            loop {
                match listener.poll_accept(cx) {
                    Poll::Ready(Ok((stream, _))) => return Poll::Ready(Some(stream)),
                    // That connection is gone already.
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }
}

/// What the rules say of a client that connects: an error to refuse it.
pub(super) async fn meet(node: &Shared) -> io::Result<()> {
    for reaction in node.judge(Point::Connecting, &[]) {
        match reaction {
            Reaction::Drop | Reaction::Cut { .. } => {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Reaction::Delay(delay) => {
                let clock = Clock::default();
                clock.sleep_until(clock.now().plus(delay)).await;
            }
            other => node.apply(&other),
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// As while another thread starts a process: between fork and exec the child has a copy.
    #[tokio::test]
    async fn a_closed_port_is_free_at_once_though_a_child_has_a_copy() {
        let port = Listening::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let copy = {
            let open = lock(&port.door.open);
            SockRef::from(open.as_ref().unwrap()).try_clone().unwrap()
        };
        port.close();
        let refused = std::net::TcpStream::connect(port.addr()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        port.reopen().unwrap();
        std::net::TcpStream::connect(port.addr()).unwrap();
        drop(copy);
    }
}
