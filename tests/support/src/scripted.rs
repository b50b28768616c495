//! A loopback server that plays a script, and records every command it hears.
//!
//! One thread accepts and one plays each connection. A command the script did not expect closes its
//! connection and is kept; dropping the server then panics with it, so that no test can overlook
//! it. Dropping also ends every connection and joins every thread.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::greeting::Handshake;
use crate::port::Port;
use crate::reach::{self, Transport};
use crate::script::{Command, Expectation, Gate, Script, Step};
use crate::terminator::Terminator;
use crate::tls;
use crate::wait::{PATIENCE, Watchdog};
use crate::wire;

/// One command, as a connection sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The connection's number, from 0 in the order of acceptance.
    pub connection: usize,
    /// The command's words.
    pub command: Command,
}

impl Heard {
    /// The command's name in upper case.
    pub fn name(&self) -> String {
        self.word(0).to_ascii_uppercase()
    }

    /// One of its words as text; empty where there are not so many.
    pub fn word(&self, index: usize) -> String {
        let word = self.command.get(index).map_or(&[][..], Vec::as_slice);
        String::from_utf8_lossy(word).into_owned()
    }
}

/// A scripted server on a free loopback port.
#[derive(Debug)]
pub struct Scripted {
    shared: Arc<Shared>,
    addr: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
    /// What speaks TLS for it, once its TLS address has been asked for.
    front: OnceLock<Terminator>,
    /// Its port, unless it took another's: no client of a server that is gone dials it.
    _port: Option<Port>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Opened when the server is dropped, so that no step outlasts it.
    stopping: Gate,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Heard>,
    /// How many connections were accepted.
    accepted: usize,
    /// The sockets of connections still being played, to end them from outside.
    open: HashMap<usize, TcpStream>,
    /// How many scripts have reached their end, or a step that lasts forever.
    played: usize,
    failures: Vec<String>,
    stopping: bool,
}

impl Scripted {
    /// Plays `script` on every connection.
    pub fn start(script: Script) -> Self {
        Self::start_sequence([script])
    }

    /// Plays the first script on the first connection and so on; the last on all that follow.
    pub fn start_sequence(scripts: impl IntoIterator<Item = Script>) -> Self {
        let port = Port::claim();
        Self::listen(port.number(), Some(port), scripts.into_iter().collect())
    }

    /// Plays `script` on every connection to this port, in the place of a server that was stopped.
    pub fn start_on(port: u16, script: Script) -> Self {
        Self::listen(port, None, vec![script])
    }

    fn listen(port: u16, own: Option<Port>, scripts: Vec<Script>) -> Self {
        assert!(!scripts.is_empty(), "a scripted server needs a script");
        if Transport::chosen() == Transport::Unix {
            reach::aside("a scripted server: over TCP");
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        let addr = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::<Shared>::default();
        let for_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &scripts, &for_acceptor));
        Self { shared, addr, acceptor: Some(acceptor), front: OnceLock::new(), _port: own }
    }

    /// `redis://127.0.0.1:port`; or `rediss`, where the environment asks for TLS.
    pub fn url(&self) -> String {
        if !tls::is_everywhere() {
            return format!("redis://{}", self.addr);
        }
        let config = || tls::identity().server_config(None, rustls::ALL_VERSIONS);
        let front = self.front.get_or_init(|| Terminator::start(self.addr, config()));
        front.url("127.0.0.1")
    }

    /// Its address for plain text.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything heard so far, handshakes included, in the order of hearing.
    pub fn heard(&self) -> Vec<Heard> {
        self.shared.lock().log.clone()
    }

    /// The commands heard so far, without their connections.
    pub fn commands(&self) -> Vec<Command> {
        self.heard().into_iter().map(|heard| heard.command).collect()
    }

    /// The commands of this name heard so far.
    pub fn commands_named(&self, name: &str) -> Vec<Command> {
        let wanted = self.heard().into_iter().filter(|heard| heard.name() == name);
        wanted.map(|heard| heard.command).collect()
    }

    /// The names of the commands heard so far, in upper case.
    pub fn names(&self) -> Vec<String> {
        self.heard().iter().map(Heard::name).collect()
    }

    /// How many connections it has accepted.
    pub fn accepted(&self) -> usize {
        self.shared.lock().accepted
    }

    /// Waits until what was heard satisfies `condition`; panics with the log otherwise.
    #[track_caller]
    fn wait_for(&self, condition: impl Fn(&[Heard]) -> bool) {
        self.shared.wait_until("heard", |state| condition(&state.log));
    }

    /// Waits until `count` commands of this name were heard.
    #[track_caller]
    pub fn wait_for_command(&self, name: &str, count: usize) {
        self.wait_for(|log| log.iter().filter(|heard| heard.name() == name).count() >= count);
    }

    /// Waits until `count` connections were accepted.
    #[track_caller]
    pub fn wait_for_accepted(&self, count: usize) {
        self.shared.wait_until("accepted", |state| state.accepted >= count);
    }

    /// Waits until no connection is open: the client has hung up, or was cut off.
    #[track_caller]
    pub fn wait_for_closed(&self) {
        self.shared.wait_until("closed", |state| state.accepted > 0 && state.open.is_empty());
    }

    /// Waits until `count` connections have reached their script's end.
    #[track_caller]
    pub fn wait_for_played(&self, count: usize) {
        self.shared.wait_until("played", |state| state.played >= count);
    }

    /// Ends every open connection now, whatever its script says.
    pub fn cut_all(&self) {
        self.shared.lock().shut_all();
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.stopping = true;
            state.shut_all();
        }
        self.shared.stopping.open();
        // Wakes the acceptor; where that fails it has already gone.
        drop(TcpStream::connect_timeout(&self.addr, PATIENCE));
        let joined = self.acceptor.take().map(JoinHandle::join);
        if std::thread::panicking() {
            return;
        }
        assert!(matches!(joined, Some(Ok(()))), "the scripted server itself panicked");
        let failures = &self.shared.lock().failures;
        assert!(failures.is_empty(), "the script was not followed: {failures:#?}");
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, step: impl FnOnce(&mut State)) {
        step(&mut self.lock());
        self.changed.notify_all();
    }

    /// Enters a connection, unless the server is stopping.
    fn enter(&self, number: usize, outside: TcpStream) -> bool {
        let mut state = self.lock();
        if !state.stopping {
            state.accepted += 1;
            state.open.insert(number, outside);
        }
        self.changed.notify_all();
        !state.stopping
    }

    #[track_caller]
    fn wait_until(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let watchdog = Watchdog::new(what);
        let mut state = self.lock();
        while !condition(&state) {
            let Some(left) = watchdog.left() else {
                panic!("gave up waiting until {what}; the server's side: {state:#?}");
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn shut_all(&self) {
        for stream in self.open.values() {
            // It may have been closed by the other side in this very moment.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Accepts until told to stop, then waits for each player.
fn accept(listener: &TcpListener, scripts: &[Script], shared: &Arc<Shared>) {
    let mut players = Vec::new();
    for number in 0.. {
        let (stream, _) = listener.accept().expect("a loopback listener accepts");
        stream.set_nodelay(true).expect("a fresh socket takes options");
        let outside = stream.try_clone().expect("a socket can be cloned");
        // Looked at and entered under one lock, so that a stop ends every connection or none.
        if !shared.enter(number, outside) {
            break;
        }
        let script = scripts[number.min(scripts.len() - 1)].clone();
        let port = listener.local_addr().map_or(0, |addr| addr.port());
        let for_player = Arc::clone(shared);
        players.push(std::thread::spawn(move || {
            let handshake =
                script.greeting.map(|greeting| Handshake::new(greeting, number + 1, port));
            let stream = BufReader::new(stream);
            Player { number, handshake, stream, shared: for_player }.play(script.steps);
        }));
    }
    for player in players {
        player.join().expect("a player does not panic");
    }
}

/// Why a connection ended before its script.
enum End {
    /// The client, the test, or the script closed it.
    Closed,
    /// The client did what the script does not allow.
    Failed(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Failed(error.to_string()),
            _ => Self::Closed,
        }
    }
}

/// One connection being played.
struct Player {
    number: usize,
    handshake: Option<Handshake>,
    stream: BufReader<TcpStream>,
    shared: Arc<Shared>,
}

impl Player {
    fn play(mut self, steps: Vec<Step>) {
        let end = steps.into_iter().try_for_each(|step| self.step(step));
        let end = end.and_then(|()| self.answer_all(|_| Vec::new()));
        let number = self.number;
        self.shared.change(|state| {
            if let Err(End::Failed(why)) = end {
                state.failures.push(format!("connection {number}: {why}"));
            }
            // The clone goes first, so that dropping the player closes the socket, or resets it.
            state.open.remove(&number);
        });
    }

    fn step(&mut self, step: Step) -> Result<(), End> {
        match step {
            Step::Expect(expected) => self.expect(&expected)?,
            Step::Send(bytes) => self.send(&bytes)?,
            Step::SendInPieces(bytes, size) => {
                bytes.chunks(size).try_for_each(|piece| self.send(piece))?;
            }
            Step::Delay(time) => {
                self.shared.stopping.wait_for(time);
            }
            Step::Wait(gate) => {
                let briefly = Duration::from_millis(5);
                while !gate.wait_for(briefly) && !self.shared.lock().stopping {}
            }
            Step::AnswerAll(respond) => self.answer_all(&*respond)?,
            Step::Stall => self.listen()?,
            Step::Deaf => {
                self.shared.change(|state| state.played += 1);
                while !self.shared.stopping.wait_for(PATIENCE) {}
                return Err(End::Closed);
            }
            Step::Cut => {
                self.shared.change(|state| state.played += 1);
                self.stream.get_ref().shutdown(Shutdown::Both)?;
                return Err(End::Closed);
            }
            Step::Reset => {
                self.shared.change(|state| state.played += 1);
                // With no time to linger, closing sends RST and not FIN.
                let socket = socket2::SockRef::from(self.stream.get_ref());
                socket.set_linger(Some(Duration::ZERO))?;
                return Err(End::Closed);
            }
        }
        Ok(())
    }

    /// Reads on until the expected command comes.
    fn expect(&mut self, expected: &Expectation) -> Result<(), End> {
        loop {
            let command = self.hear()?;
            if expected.greets && (expected.matches)(&command) {
                return Ok(());
            }
            if let Some(reply) = self.greet(&command) {
                self.send(&reply)?;
            } else if (expected.matches)(&command) {
                return Ok(());
            } else {
                let what = &expected.what;
                let words: Vec<String> =
                    command.iter().map(|word| word.escape_ascii().to_string()).collect();
                return Err(End::Failed(format!("expected {what}, heard {}", words.join(" "))));
            }
        }
    }

    fn answer_all(&mut self, respond: impl Fn(&[Vec<u8>]) -> Vec<u8>) -> Result<(), End> {
        self.shared.change(|state| state.played += 1);
        loop {
            let command = self.hear()?;
            let reply = self.greet(&command).unwrap_or_else(|| respond(&command));
            self.send(&reply)?;
        }
    }

    /// Reads and records forever.
    fn listen(&mut self) -> Result<(), End> {
        self.shared.change(|state| state.played += 1);
        loop {
            self.hear()?;
        }
    }

    /// The handshake's reply to a command, if it has one.
    fn greet(&mut self, command: &[Vec<u8>]) -> Option<Vec<u8>> {
        self.handshake.as_mut().and_then(|own| own.answer(command))
    }

    /// Reads one command and records it.
    fn hear(&mut self) -> Result<Command, End> {
        let command = wire::read_command(&mut self.stream)?.ok_or(End::Closed)?;
        let heard = Heard { connection: self.number, command: command.clone() };
        self.shared.change(|state| state.log.push(heard));
        Ok(command)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        self.stream.get_mut().write_all(bytes).map_err(End::from)
    }
}
