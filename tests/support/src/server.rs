//! One server: a real process, or a node inside this one (`in_process`) where there is no program.
//!
//! ```text
//!             ┌── pause ──▶ Paused ── resume ──┐
//! start ──▶ Running ◀───────────────────────────┘
//!             │  ▲
//!             └─ stop ──▶ Stopped ── restart ──▶ Running (same port, no data, a new run_id)
//! ```
//!
//! A server keeps nothing on disk: `restart` is what a crash without persistence looks like.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::acl;
use crate::calls::Calls;
use crate::launch::{Refusal, launch, socket_path};
use crate::port::Port;
use crate::process::Process;
use crate::reach::{self, Place};
use crate::scratch::Scratch;
use crate::terminator::{Behaviour, Terminator};
use crate::tls::{self, Identity};
use crate::tools::{self, Kind};
use crate::wait::Watchdog;
use crate::wire::{Client, Reply};

/// How often another port is tried. Two in a row being taken is rare; ten are a broken machine.
const PORT_TRIES: usize = 10;

/// What a server is started with.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    program: Option<PathBuf>,
    pub(crate) args: Vec<String>,
    password: Option<String>,
    /// Speaks TLS by itself, and the authority whose clients it serves.
    pub(crate) tls: Option<(Identity, Option<String>)>,
}

impl Builder {
    /// Adds arguments as on the command line: `["--maxmemory", "1mb"]`.
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Runs this program and not the default one.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Asks for `password`; [`Server::url`] and [`Server::command`] then give it.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.into());
        self.args(["--requirepass", password])
    }

    /// Adds an ACL user: `.user("alice", "on >secret ~* +@all")`.
    pub fn user(self, name: &str, rules: &str) -> Self {
        self.args(["--user", name]).args(rules.split_whitespace())
    }

    /// Lets it speak TLS itself, on a port beside the other one; with an authority's certificate,
    /// only to clients that have one of that authority's. [`tools::find_tls_server`] has a program
    /// that can.
    pub fn tls(mut self, identity: Identity, clients: Option<String>) -> Self {
        self.tls = Some((identity, clients));
        self
    }

    /// Makes it a replica of `master`.
    pub fn replica_of(self, master: &Server) -> Self {
        self.args(["--replicaof", "127.0.0.1", &master.port().to_string()])
    }

    /// Makes it a Cluster node, of a cluster it is alone in.
    pub fn cluster(self) -> Self {
        self.args(["--cluster-enabled", "yes"])
    }

    /// Starts it, and returns when it answers. Panics, with its log, where it does not.
    #[track_caller]
    pub fn start(mut self) -> Server {
        if self.program.is_none() {
            self = self.args(reach::missing_command());
        }
        let kind = self.program.clone().map(Kind::Process).map_or_else(tools::find_kind, Ok);
        let kind = kind.unwrap_or_else(|why| panic!("{why}; open with need_server!()"));
        if tls::is_everywhere() && self.tls.is_none() && kind.speaks_tls() {
            self.tls = Some((tls::identity().clone(), None));
        }
        let dir = Scratch::new();
        for _ in 0..PORT_TRIES {
            let port = Port::claim();
            let wants_tls = self.tls.is_some() || tls::is_everywhere();
            let tls_port = wants_tls.then(Port::claim);
            let started = match &kind {
                Kind::Process(program) => {
                    launch(program, &self, (&port, tls_port.as_ref()), &dir).map(State::Running)
                }
                Kind::InProcess => start_inside(&port, &self.args),
            };
            match started {
                Ok(state) => {
                    let (state, front) = (Mutex::new(state), Mutex::default());
                    let server = Server { state, front, kind, spec: self, port, tls_port, dir };
                    server.put_up_front();
                    return server;
                }
                Err(Refusal::PortTaken) => {}
                Err(Refusal::Other(why)) => panic!("{kind:?} did not start: {why}"),
            }
        }
        panic!("{PORT_TRIES} ports in a row were taken while the server started");
    }
}

#[cfg(feature = "in-process")]
#[track_caller]
fn start_inside(port: &Port, args: &[String]) -> Result<State, Refusal> {
    crate::in_process::start(port, args).map(State::Inside).ok_or(Refusal::PortTaken)
}

#[cfg(not(feature = "in-process"))]
fn start_inside(_: &Port, _: &[String]) -> Result<State, Refusal> {
    unreachable!("there is no such kind without the feature")
}

#[derive(Debug)]
enum State {
    Running(Process),
    Paused(Process),
    Stopped,
    /// It knows its own state.
    #[cfg(feature = "in-process")]
    Inside(crate::in_process::Inside),
}

/// A running server, killed and removed when dropped.
#[derive(Debug)]
pub struct Server {
    // First, so that the process is dead before its directory goes.
    state: Mutex<State>,
    /// What speaks TLS for it, where it does not do so itself.
    front: Mutex<Option<Terminator>>,
    kind: Kind,
    spec: Builder,
    port: Port,
    tls_port: Option<Port>,
    dir: Scratch,
}

impl Server {
    /// Starts the default server with nothing special.
    #[track_caller]
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server still to be described.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `redis://127.0.0.1:port`, with the password if there is one; or what the environment chooses
    /// (see [`reach`](crate::reach) and [`acl`]). `rediss` if it
    /// speaks TLS.
    pub fn url(&self) -> String {
        self.url_as(&self.login())
    }

    /// As [`url`](Self::url), with another login: `user:password`, or empty for none.
    pub fn url_as(&self, login: &str) -> String {
        self.place(&self.socket_path(), login).url()
    }

    /// As [`url`](Self::url), over TCP where the environment chooses a Unix socket.
    pub fn tcp_url(&self) -> String {
        self.place(&self.socket_path(), &self.login()).tcp_url()
    }

    /// How a report names it when its [`url`](Self::url) was given.
    pub fn label(&self) -> String {
        self.place(&self.socket_path(), "").label()
    }

    fn place<'a>(&self, socket: &'a Path, login: &'a str) -> Place<'a> {
        Place { addr: self.addr(), tls: self.tls_addr(), socket, login }
    }

    /// As whom the environment has clients log in.
    pub(crate) fn login(&self) -> String {
        match &self.spec.password {
            Some(password) => format!(":{password}"),
            None if acl::is_least() => acl::LOGIN.into(),
            None => String::new(),
        }
    }

    /// Its address for TLS, if it speaks that.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls_port.as_ref().map(Port::addr)
    }

    /// How many hands the terminator before it has shaken, if there is one.
    pub fn handshakes(&self) -> Option<usize> {
        self.front().as_ref().map(|front| front.handshakes().0)
    }

    /// Its address for clients over TCP: for TLS, if it speaks that.
    pub fn tcp_addr(&self) -> SocketAddr {
        self.tls_addr().unwrap_or_else(|| self.addr())
    }

    /// Its address for plain text, where tests themselves look at it.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The Unix socket it listens on as well.
    pub fn socket_path(&self) -> PathBuf {
        socket_path(&self.dir)
    }

    /// The program it runs; panics for a node inside this process.
    #[track_caller]
    fn program(&self) -> &Path {
        match &self.kind {
            Kind::Process(program) => program,
            Kind::InProcess => panic!("a node has no program: open with need_process!()"),
        }
    }

    /// Whether it is a process of its own, which runs any Lua.
    pub fn is_process(&self) -> bool {
        self.kind != Kind::InProcess
    }

    /// Its process id; panics when it is stopped, and for a node inside this process.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        match &*self.state() {
            State::Running(process) | State::Paused(process) => process.pid(),
            State::Stopped => panic!("a stopped server has no process"),
            #[cfg(feature = "in-process")]
            State::Inside(_) => panic!("a node is no process: open with need_process!()"),
        }
    }

    /// Whether it can answer: neither stopped nor paused by the test.
    pub fn is_running(&self) -> bool {
        match &*self.state() {
            State::Running(_) => true,
            State::Paused(_) | State::Stopped => false,
            #[cfg(feature = "in-process")]
            State::Inside(node) => node.is_running(),
        }
    }

    /// Kills it with SIGKILL and reaps it: a crash. Connections break and new ones are refused.
    pub fn stop(&self) {
        self.change(|state| match state {
            State::Running(mut process) | State::Paused(mut process) => {
                process.kill();
                State::Stopped
            }
            State::Stopped => State::Stopped,
            #[cfg(feature = "in-process")]
            State::Inside(node) => {
                node.stop();
                State::Inside(node)
            }
        });
        *self.front() = None;
    }

    /// Stops its process with SIGSTOP: it hangs. The kernel still accepts connections and bytes.
    pub fn pause(&self) {
        self.change(|state| match state {
            State::Running(process) => {
                process.pause();
                State::Paused(process)
            }
            #[cfg(feature = "in-process")]
            State::Inside(node) => {
                node.hang();
                State::Inside(node)
            }
            other => other,
        });
    }

    /// Lets a paused server go on, and answer what it was sent meanwhile.
    pub fn resume(&self) {
        self.change(|state| match state {
            State::Paused(process) => {
                process.resume();
                State::Running(process)
            }
            #[cfg(feature = "in-process")]
            State::Inside(node) => {
                node.resume();
                State::Inside(node)
            }
            other => other,
        });
    }

    /// Starts it again on the same port, empty; stops it first if it still runs.
    #[track_caller]
    pub fn restart(&self) {
        self.stop();
        let watchdog = Watchdog::new("a stopped server's port to be free again");
        loop {
            match self.launch_again() {
                Ok(()) => {
                    self.put_up_front();
                    return;
                }
                Err(Refusal::PortTaken) => watchdog.pause(),
                Err(Refusal::Other(why)) => panic!("the server did not come back: {why}"),
            }
        }
    }

    fn launch_again(&self) -> Result<(), Refusal> {
        #[cfg(feature = "in-process")]
        if let State::Inside(node) = &*self.state() {
            return node.restart(false).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Refusal::PortTaken,
                _ => Refusal::Other(error.to_string()),
            });
        }
        let ports = (&self.port, self.tls_port.as_ref());
        let process = launch(self.program(), &self.spec, ports, &self.dir)?;
        *self.state() = State::Running(process);
        Ok(())
    }

    /// Sends one command over a connection of its own; panics where no reply comes.
    #[track_caller]
    pub fn command<A: AsRef<[u8]>>(&self, args: &[A]) -> Reply {
        self.try_command(args).unwrap_or_else(|error| panic!("{}: {error}", self.addr()))
    }

    /// Sends one command over a connection of its own.
    pub fn try_command<A: AsRef<[u8]>>(&self, args: &[A]) -> io::Result<Reply> {
        self.connect()?.call(args)
    }

    /// Ends every connection but the one that says so; those that listen to a channel are of a type
    /// of their own. A server that cannot answer now ends none.
    pub fn cut_clients(&self) {
        let Ok(mut client) = self.connect() else { return };
        for kind in ["normal", "pubsub"] {
            drop(client.call(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]));
        }
    }

    /// A connection to it, authenticated.
    pub fn connect(&self) -> io::Result<Client> {
        let mut client = Client::connect(self.addr())?;
        if let Some(password) = &self.spec.password {
            let reply = client.call(&["AUTH", password])?;
            assert_eq!(reply, Reply::ok(), "the server knows the password it was started with");
        }
        Ok(client)
    }

    /// One field of `INFO`, such as `run_id`, `role` or `connected_clients`.
    #[track_caller]
    pub fn info(&self, field: &str) -> Option<String> {
        let text = self.command(&["INFO"]).text();
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| *name == field).map(|(_, value)| value.to_owned())
    }

    /// How often it has executed each command.
    #[track_caller]
    pub fn calls(&self) -> Calls {
        Calls::read(&self.command(&["INFO", "commandstats"]))
    }

    /// Its kind and version, such as `("valkey", [9, 1, 2])`.
    #[track_caller]
    pub fn version(&self) -> (&'static str, [u32; 3]) {
        let (kind, text) = match self.info("valkey_version") {
            Some(text) => ("valkey", text),
            None => ("redis", self.info("redis_version").expect("every server says its version")),
        };
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        (kind, std::array::from_fn(|_| parts.next().unwrap_or(0)))
    }

    /// Puts TLS before it, if all servers are to speak that and it does not do so itself.
    fn put_up_front(&self) {
        let (Some(port), None) = (&self.tls_port, &self.spec.tls) else { return };
        let config = tls::identity().server_config(None, rustls::ALL_VERSIONS);
        let watchdog = Watchdog::new("the port for TLS to be free");
        let front = loop {
            match Terminator::on(port.addr(), self.addr(), config.clone(), Behaviour::Serve) {
                Ok(front) => break front,
                Err(_) => watchdog.pause(),
            }
        };
        *self.front() = Some(front);
    }

    fn front(&self) -> MutexGuard<'_, Option<Terminator>> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked with the lock held must not hide its own message behind this one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, step: impl FnOnce(State) -> State) {
        let mut state = self.state();
        *state = step(std::mem::replace(&mut *state, State::Stopped));
    }
}
