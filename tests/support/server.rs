//! One real server process.
//!
//! ```text
//!             ┌── pause ──▶ Paused ── resume ──┐
//! start ──▶ Running ◀───────────────────────────┘
//!             │  ▲
//!             └─ stop ──▶ Stopped ── restart ──▶ Running (same port, no data, a new run_id)
//! ```
//!
//! A server keeps nothing on disk: `restart` is what a crash without persistence looks like.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::acl;
use super::port::Port;
use super::process::{Process, tied};
use super::reach::{Place, Transport, in_chosen_protocol};
use super::scratch::Scratch;
use super::terminator::{Behaviour, Terminator};
use super::tls::{self, Identity};
use super::tools;
use super::wait::Watchdog;
use super::wire::{Client, Reply};

/// How long a server may take to answer its first PING: long, for the machine may be building.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How often another port is tried. Two in a row being taken is rare; ten are a broken machine.
const PORT_TRIES: usize = 10;

/// What a server is started with.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    program: Option<PathBuf>,
    args: Vec<String>,
    password: Option<String>,
    /// Speaks TLS by itself, and the authority whose clients it serves.
    tls: Option<(Identity, Option<String>)>,
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
    pub fn start(self) -> Server {
        let program = self.program.clone().map_or_else(tools::find_server, Ok);
        let program = program.unwrap_or_else(|why| panic!("{why}; open with need_server!()"));
        let dir = Scratch::new();
        for _ in 0..PORT_TRIES {
            let port = Port::claim();
            let wants_tls = self.tls.is_some() || tls::everywhere().is_some();
            let tls_port = wants_tls.then(Port::claim);
            match launch(&program, &self, (&port, tls_port.as_ref()), &dir) {
                Ok(process) => {
                    let state = Mutex::new(State::Running(process));
                    let front = Mutex::default();
                    let server = Server { state, front, program, spec: self, port, tls_port, dir };
                    server.put_up_front();
                    return server;
                }
                Err(Refusal::PortTaken) => {}
                Err(Refusal::Other(why)) => panic!("{} did not start: {why}", program.display()),
            }
        }
        panic!("{PORT_TRIES} ports in a row were taken while the server started");
    }
}

#[derive(Debug)]
enum State {
    Running(Process),
    Paused(Process),
    Stopped,
}

/// A running server, killed and removed when dropped.
#[derive(Debug)]
pub struct Server {
    // First, so that the process is dead before its directory goes.
    state: Mutex<State>,
    /// What speaks TLS for it, where it does not do so itself.
    front: Mutex<Option<Terminator>>,
    program: PathBuf,
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
    /// (see [`reach`](super::reach) and [`acl`]). `rediss` if it
    /// speaks TLS.
    pub fn url(&self) -> String {
        self.url_as(&self.login())
    }

    /// As [`url`](Self::url), as somebody else: `user:password`, or nobody.
    pub fn url_as(&self, login: &str) -> String {
        if let Some(addr) = self.tls_addr() {
            let at = if login.is_empty() { "" } else { "@" };
            return in_chosen_protocol(format!("rediss://{login}{at}{addr}"));
        }
        Place { addr: self.addr(), socket: &self.socket_path(), login }.url()
    }

    /// As [`url`](Self::url), over TCP whatever the environment chooses.
    pub fn tcp_url(&self) -> String {
        let login = self.login();
        let place = Place { addr: self.addr(), socket: &self.socket_path(), login: &login };
        place.url_by(Transport::Tcp)
    }

    /// How a report names it when its [`url`](Self::url) was given.
    pub fn label(&self) -> String {
        match self.tls_addr() {
            Some(addr) => addr.to_string(),
            None => Place { addr: self.addr(), socket: &self.socket_path(), login: "" }.label(),
        }
    }

    fn login(&self) -> String {
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

    /// Its address for plain text.
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

    /// The program it runs.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its process id; panics when it is stopped.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        match &*self.state() {
            State::Running(process) | State::Paused(process) => process.pid(),
            State::Stopped => panic!("a stopped server has no process"),
        }
    }

    /// Whether it can answer: neither stopped nor paused by the test.
    pub fn is_running(&self) -> bool {
        matches!(*self.state(), State::Running(_))
    }

    /// Kills it with SIGKILL and reaps it: a crash. Connections break and new ones are refused.
    pub fn stop(&self) {
        let mut state = self.state();
        if let State::Running(process) | State::Paused(process) = &mut *state {
            process.kill();
        }
        *state = State::Stopped;
        drop(state);
        *self.front() = None;
    }

    /// Stops its process with SIGSTOP: it hangs. The kernel still accepts connections and bytes.
    pub fn pause(&self) {
        self.change(|state| match state {
            State::Running(process) => {
                process.pause();
                State::Paused(process)
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
            other => other,
        });
    }

    /// Starts it again on the same port, empty; stops it first if it still runs.
    #[track_caller]
    pub fn restart(&self) {
        self.stop();
        let watchdog = Watchdog::new("a stopped server's port to be free again");
        loop {
            let ports = (&self.port, self.tls_port.as_ref());
            match launch(&self.program, &self.spec, ports, &self.dir) {
                Ok(process) => {
                    *self.state() = State::Running(process);
                    self.put_up_front();
                    return;
                }
                Err(Refusal::PortTaken) => watchdog.pause(),
                Err(Refusal::Other(why)) => panic!("the server did not come back: {why}"),
            }
        }
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

    /// Everything it has logged since it was last started.
    pub fn log(&self) -> String {
        read_log(&self.dir)
    }

    /// Puts TLS before it, if all servers are to speak that and it does not do so itself.
    fn put_up_front(&self) {
        let (Some(port), None) = (&self.tls_port, &self.spec.tls) else { return };
        let config = tls::authority().server().server_config(None, rustls::ALL_VERSIONS);
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

/// Why a process did not become a server.
enum Refusal {
    PortTaken,
    Other(String),
}

/// Runs the program and waits until it answers.
fn launch(
    program: &Path,
    spec: &Builder,
    (port, tls_port): (&Port, Option<&Port>),
    dir: &Scratch,
) -> Result<Process, Refusal> {
    let log = File::create(log_path(dir)).expect("our own directory takes a file");
    let mut command = tied(program);
    command
        .args(["--port", &port.number().to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(dir.path())
        .args(&spec.args)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stderr(log.try_clone().expect("a file handle can be cloned"))
        .stdout(log);
    if acl::is_least() {
        command.args(["--user", "least"]).args(acl::least().split(' '));
    }
    if cfg!(unix) {
        command.arg("--unixsocket").arg(socket_path(dir));
    }
    if let (Some((identity, clients)), Some(port)) = (&spec.tls, tls_port) {
        let file = |name: &str, pem: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, pem).expect("our own directory takes a file");
            path
        };
        command
            .args(["--tls-port", &port.number().to_string()])
            .arg("--tls-cert-file")
            .arg(file("server.crt", &identity.certificate))
            .arg("--tls-key-file")
            .arg(file("server.key", &identity.key))
            .args(["--tls-auth-clients", if clients.is_some() { "yes" } else { "no" }]);
        if let Some(authority) = clients {
            command.arg("--tls-ca-cert-file").arg(file("clients.crt", authority));
        }
    }
    let mut process = Process::spawn(command).map_err(|error| Refusal::Other(error.to_string()))?;

    let what = format!("{} to answer PING on {}", program.display(), port.addr());
    let watchdog = Watchdog::with_patience(what, START_PATIENCE);
    loop {
        if process.exited().is_some() {
            let log = read_log(dir);
            let taken = log.contains("already in use") || log.contains("Failed listening");
            return Err(if taken { Refusal::PortTaken } else { Refusal::Other(log) });
        }
        if answers(port.addr()) {
            return Ok(process);
        }
        watchdog.pause();
    }
}

/// Whether a server is there and ready. One that asks for a password is.
fn answers(addr: SocketAddr) -> bool {
    let reply = Client::connect(addr).and_then(|mut client| client.call(&["PING"]));
    match reply {
        Ok(Reply::Error(why)) => !why.starts_with("LOADING"),
        Ok(_) => true,
        Err(_) => false,
    }
}

fn socket_path(dir: &Scratch) -> PathBuf {
    dir.path().join("server.sock")
}

fn log_path(dir: &Scratch) -> PathBuf {
    dir.path().join("server.log")
}

fn read_log(dir: &Scratch) -> String {
    let bytes = std::fs::read(log_path(dir)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
