//! A proxy between a client and a server that can hold back what the client sends.
//!
//! It stands for a network that delivers late: bytes of a connection that the client has given up
//! long ago still arrive, as kernels do it when packets were lost and are sent again (`hold`). And
//! for one that delivers nothing for a while, in either direction, and loses nothing (`freeze`).

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::port::Port;
use crate::reach::{self, Transport};
use crate::server::Server;

/// A proxy on a free loopback port.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    /// How its URL begins, and as whom clients log in.
    scheme: &'static str,
    login: String,
    state: Arc<State>,
    _port: Port,
}

#[derive(Debug)]
struct State {
    server: SocketAddr,
    holding: AtomicBool,
    accepted: AtomicUsize,
    stopping: AtomicBool,
    frozen: Mutex<bool>,
    thawed: Condvar,
    /// The client's bytes that wait until the network thaws.
    waiting: AtomicUsize,
    /// The client's bytes that were held back, and the connection to deliver them on.
    held: Mutex<Vec<(TcpStream, Vec<u8>)>>,
    clients: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts one before this server, for clients that speak with it as the environment asks: TLS
    /// passes as it is.
    pub fn before(server: &Server) -> Self {
        if Transport::chosen() == Transport::Unix {
            reach::aside("a network that is late: over TCP");
        }
        let mut proxy = Self::start(server.tcp_addr());
        proxy.login = server.login();
        if server.tls_addr().is_some() {
            proxy.scheme = "rediss";
        }
        proxy
    }

    /// Starts one before `server`.
    pub fn start(server: SocketAddr) -> Self {
        let port = Port::claim();
        let listener = TcpListener::bind(port.addr()).expect("a claimed port is free");
        let addr = port.addr();
        let state = Arc::new(State {
            server,
            holding: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            frozen: Mutex::new(false),
            thawed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            held: Mutex::default(),
            clients: Mutex::default(),
        });
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let state = shared.clone();
                thread::spawn(move || state.serve(client.expect("loopback works")));
            }
        });
        Self { addr, scheme: "redis", login: String::new(), state, _port: port }
    }

    /// The server's URL, but for the address.
    pub fn url(&self) -> String {
        let url = reach::url(self.scheme, &self.login, &self.addr.to_string());
        reach::in_chosen_protocol(url)
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many connections were made.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }

    /// From now on nothing gets through, either way, until the network thaws. What is sent
    /// meanwhile waits.
    pub fn freeze(&self) {
        *self.state.frozen.lock().expect("no thread panics under it") = true;
    }

    /// What waits is delivered, in order, and everything gets through again.
    pub fn thaw(&self) {
        *self.state.frozen.lock().expect("no thread panics under it") = false;
        self.state.thawed.notify_all();
    }

    /// How many bytes of clients have arrived at the frozen network and wait.
    pub fn waiting(&self) -> usize {
        self.state.waiting.load(Ordering::SeqCst)
    }

    /// From now on keeps what clients send on the connections that are open, and does not deliver
    /// it. Connections made later pass.
    pub fn hold(&self) {
        self.state.holding.store(true, Ordering::SeqCst);
    }

    /// How many bytes are kept.
    pub fn held(&self) -> usize {
        self.state
            .held
            .lock()
            .expect("no thread panics under it")
            .iter()
            .map(|(_, bytes)| bytes.len())
            .sum()
    }

    /// Lets new connections pass again; those that were held stay so.
    pub fn pass(&self) {
        self.state.holding.store(false, Ordering::SeqCst);
    }

    /// Closes the clients' sides of all connections; the server does not notice.
    pub fn cut_clients(&self) {
        for client in self.state.clients.lock().expect("no thread panics under it").drain(..) {
            // A connection that is closed already needs no closing.
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    /// Delivers what was kept, on the connections on which it was sent.
    pub fn deliver(&self) {
        for (mut server, bytes) in
            self.state.held.lock().expect("no thread panics under it").drain(..)
        {
            // The server may have ended that connection: just that is to be found out.
            let _ = server.write_all(&bytes);
        }
    }
}

impl State {
    fn serve(self: &Arc<Self>, client: TcpStream) {
        self.accepted.fetch_add(1, Ordering::SeqCst);
        // A server that is down is no fault of a test's: the client's connection ends.
        let Ok(server) = TcpStream::connect(self.server) else { return };
        server.set_nodelay(true).expect("loopback works");
        client.set_nodelay(true).expect("loopback works");
        self.clients
            .lock()
            .expect("no thread panics under it")
            .push(client.try_clone().expect("loopback works"));
        let (mut from, mut to) = (
            server.try_clone().expect("loopback works"),
            client.try_clone().expect("loopback works"),
        );
        let state = self.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                state.wait_until_thawed();
                if to.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            // The server has ended the connection: so does its client's side.
            let _ = to.shutdown(Shutdown::Both);
        });
        self.forward(client, server);
    }

    /// Returns when the network is not frozen.
    fn wait_until_thawed(&self) {
        let frozen = self.frozen.lock().expect("no thread panics under it");
        drop(self.thawed.wait_while(frozen, |frozen| *frozen).expect("no thread panics under it"));
    }

    fn forward(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut buffer = [0; 4_096];
        let mut kept = false;
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            self.waiting.fetch_add(count, Ordering::SeqCst);
            self.wait_until_thawed();
            self.waiting.fetch_sub(count, Ordering::SeqCst);
            kept |= self.holding.load(Ordering::SeqCst);
            if kept {
                let copy = server.try_clone().expect("loopback works");
                self.held
                    .lock()
                    .expect("no thread panics under it")
                    .push((copy, buffer[..count].to_vec()));
            } else if server.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
        if !kept {
            // An ordinary end is passed on.
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        self.cut_clients();
        self.thaw();
        self.state.held.lock().expect("no thread panics under it").clear();
        // Wakes the listener, which looks whether it shall stop.
        let _ = TcpStream::connect(self.addr);
    }
}
