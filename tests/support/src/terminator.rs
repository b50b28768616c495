//! TLS in front of a server that speaks plain text, and everything that can go wrong there.
//!
//! Each connection has two threads: one decrypts what the client sends, one encrypts what the
//! server answers. They share rustls' state, as a library under test may.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use crate::port::Port;
use crate::reach;

/// Where a connection stops, or is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// Nothing is wrong.
    Serve,
    /// It accepts, reads, and never says anything: what a stalled peer does behind `ClientHello`.
    Mute,
    /// It says half of what the handshake needs, and then nothing.
    HalfHandshake,
    /// As that, and then it closes.
    CutHandshake,
    /// It shakes hands, and never answers a command.
    Deaf,
}

/// A listener on a loopback port.
#[derive(Debug)]
pub struct Terminator {
    addr: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
    /// Its port, unless that is another's.
    own: Option<Port>,
}

#[derive(Debug)]
struct State {
    server: SocketAddr,
    config: Mutex<Arc<ServerConfig>>,
    behaviour: Behaviour,
    live: Mutex<Vec<Arc<Live>>>,
    stopping: AtomicBool,
    full: AtomicUsize,
    resumed: AtomicUsize,
}

/// A connection.
#[derive(Debug)]
struct Live {
    socket: TcpStream,
    tls: Mutex<ServerConnection>,
}

impl Terminator {
    /// Puts `config` before `server`.
    pub fn start(server: SocketAddr, config: Arc<ServerConfig>) -> Self {
        Self::with(server, config, Behaviour::Serve)
    }

    /// As [`Terminator::start`], with something wrong.
    pub fn with(server: SocketAddr, config: Arc<ServerConfig>, behaviour: Behaviour) -> Self {
        let port = Port::claim();
        let started = Self::on(port.addr(), server, config, behaviour);
        let mut started = started.expect("a claimed port is free");
        started.own = Some(port);
        started
    }

    /// As [`Terminator::with`], on this address.
    pub(crate) fn on(
        addr: SocketAddr,
        server: SocketAddr,
        config: Arc<ServerConfig>,
        behaviour: Behaviour,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let state = Arc::new(State {
            server,
            config: Mutex::new(config),
            behaviour,
            live: Mutex::default(),
            stopping: AtomicBool::new(false),
            full: AtomicUsize::new(0),
            resumed: AtomicUsize::new(0),
        });
        let shared = state.clone();
        let acceptor = thread::spawn(move || {
            for client in listener.incoming() {
                if shared.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let (state, client) = (shared.clone(), client.expect("loopback works"));
                // How a connection ends is the client's to judge.
                thread::spawn(move || state.serve(client).ok());
            }
        });
        Ok(Self { addr, state, acceptor: Some(acceptor), own: None })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How it is reached by this name.
    pub fn url(&self, host: &str) -> String {
        format!("rediss://{host}:{}", self.addr.port())
    }

    /// Has this for connections that are made from now on.
    pub fn rotate(&self, config: Arc<ServerConfig>) {
        *held(&self.state.config) = config;
    }

    /// How many hands were shaken, wholly and by resuming a session.
    pub fn handshakes(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (load(&self.state.full), load(&self.state.resumed))
    }

    /// Ends all connections without a farewell.
    pub fn cut(&self) {
        for live in held(&self.state.live).drain(..) {
            live.end();
        }
    }

    /// Ends all connections with a farewell.
    pub fn say_goodbye(&self) {
        for live in held(&self.state.live).drain(..) {
            let mut tls = held(&live.tls);
            tls.send_close_notify();
            // It may have gone already.
            let _ = tls.write_tls(&mut &live.socket);
            drop(tls);
            live.end();
        }
    }

    /// Says this on all connections, as it is.
    pub fn say_raw(&self, bytes: &[u8]) {
        for live in held(&self.state.live).iter() {
            let _tls = held(&live.tls); // not into the midst of a record
            // An earlier one may have gone already.
            let _ = (&live.socket).write_all(bytes);
        }
    }

    /// Takes new keys on all connections, and asks the clients to do the same.
    pub fn renew_keys(&self) {
        for live in held(&self.state.live).iter() {
            let mut tls = held(&live.tls);
            tls.refresh_traffic_keys().expect("hands are shaken");
            tls.write_tls(&mut &live.socket).expect("it goes");
        }
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener, which looks whether it shall stop. Once it has, the port is free.
        if TcpStream::connect(self.addr).is_ok() {
            // If it has panicked, it has said why.
            let _ = self.acceptor.take().map(JoinHandle::join);
        }
        self.cut();
        drop(self.own.take());
    }
}

impl State {
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let config = held(&self.config).clone();
        let mut tls = ServerConnection::new(config).expect("the configuration is whole");
        match self.behaviour {
            Behaviour::Mute => {
                let live = self.keep(Live { socket: client, tls: Mutex::new(tls) });
                return drain(&live.socket);
            }
            Behaviour::HalfHandshake | Behaviour::CutHandshake => {
                tls.read_tls(&mut &client)?;
                // What is wrong with it is the client's to find.
                let _ = tls.process_new_packets();
                let mut flight = Vec::new();
                tls.write_tls(&mut flight)?;
                (&client).write_all(&flight[..flight.len() / 2])?;
                if self.behaviour == Behaviour::CutHandshake {
                    return client.shutdown(Shutdown::Both);
                }
                let live = self.keep(Live { socket: client, tls: Mutex::new(tls) });
                return drain(&live.socket);
            }
            Behaviour::Serve | Behaviour::Deaf => {}
        }
        while tls.is_handshaking() || tls.wants_write() {
            tls.complete_io(&mut &client)?;
        }
        let count = match tls.handshake_kind() {
            Some(HandshakeKind::Resumed) => &self.resumed,
            _ => &self.full,
        };
        count.fetch_add(1, Ordering::SeqCst);
        let live = self.keep(Live { socket: client, tls: Mutex::new(tls) });
        if self.behaviour == Behaviour::Deaf {
            return drain(&live.socket);
        }
        let server = TcpStream::connect(self.server).inspect_err(|_| live.end())?;
        server.set_nodelay(true)?;
        let (there, back) = (live.clone(), server.try_clone()?);
        thread::spawn(move || {
            // Either end's end is both ends'.
            let _ = there.encrypt(back);
            there.end();
        });
        let ended = live.decrypt(&server);
        // It may have gone already.
        let _ = server.shutdown(Shutdown::Both);
        live.end();
        ended
    }

    fn keep(&self, live: Live) -> Arc<Live> {
        let live = Arc::new(live);
        held(&self.live).push(live.clone());
        live
    }
}

impl Live {
    /// From the client to the server.
    fn decrypt(&self, mut server: &TcpStream) -> io::Result<()> {
        let late = reach::lateness(server.peer_addr()?.port());
        let (mut cipher, mut plain) = (vec![0; 32 << 10], Vec::new());
        let mut begun = 0; // what came with the handshake is inside already
        loop {
            let mut unread = &cipher[..begun];
            loop {
                let mut tls = held(&self.tls);
                if !unread.is_empty() {
                    tls.read_tls(&mut unread)?;
                }
                let state = tls.process_new_packets().map_err(|error| {
                    // It tells the client why, if that listens.
                    let _ = tls.write_tls(&mut &self.socket);
                    io::Error::other(error)
                })?;
                plain.resize(state.plaintext_bytes_to_read(), 0);
                tls.reader().read_exact(&mut plain)?;
                while tls.wants_write() {
                    tls.write_tls(&mut &self.socket)?;
                }
                drop(tls);
                if !plain.is_empty() {
                    thread::sleep(late);
                }
                server.write_all(&plain)?;
                if state.peer_has_closed() {
                    return Ok(());
                }
                if unread.is_empty() {
                    break;
                }
            }
            begun = (&self.socket).read(&mut cipher)?;
            if begun == 0 {
                return Ok(());
            }
        }
    }

    /// From the server to the client.
    fn encrypt(&self, mut server: TcpStream) -> io::Result<()> {
        let mut plain = vec![0; 16 << 10];
        loop {
            let count = server.read(&mut plain)?;
            if count == 0 {
                return Ok(());
            }
            let mut tls = held(&self.tls);
            tls.writer().write_all(&plain[..count])?;
            while tls.wants_write() {
                tls.write_tls(&mut &self.socket)?;
            }
        }
    }

    fn end(&self) {
        // It may have gone already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Reads until the client goes.
fn drain(mut client: &TcpStream) -> io::Result<()> {
    let mut bytes = [0; 1_024];
    while client.read(&mut bytes)? > 0 {}
    Ok(())
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked must not hide its message behind another one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
