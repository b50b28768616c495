//! The nodes: real servers on loopback, without persistence, dead when dropped.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use support::{Fleet, Reply, Server, tls, tools};

use crate::clock;
use crate::contest::Failure;

/// How a node is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    Tcp,
    Unix,
    /// TLS over TCP: the URLs say so, the endpoints are those of plain text.
    Tls,
}

/// Where a node is.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// A blocking connection, without Nagle's delay.
    pub(crate) fn connect(&self) -> std::io::Result<Socket> {
        match self {
            Self::Tcp(addr) => {
                let socket = Socket::new(Domain::for_address(*addr), Type::STREAM, None)?;
                socket.connect(&(*addr).into())?;
                socket.set_tcp_nodelay(true)?;
                Ok(socket)
            }
            Self::Unix(path) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.connect(&SockAddr::unix(path)?)?;
                Ok(socket)
            }
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Tcp(addr) => format!("redis://{addr}"),
            Self::Unix(path) => format!("unix://{}", path.display()),
        }
    }
}

/// Where all nodes are, in order.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) urls: Vec<String>,
}

impl Nodes {
    pub(crate) fn new(endpoints: Vec<Endpoint>) -> Self {
        let urls = endpoints.iter().map(Endpoint::url).collect();
        Self { endpoints, urls }
    }

    /// Loads a script on every node; returns its digest.
    pub(crate) fn load(&self, script: &str) -> Result<Vec<u8>, Failure> {
        let command =
            format!("*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n${}\r\n{script}\r\n", script.len());
        let mut digest = Vec::new();
        for endpoint in &self.endpoints {
            let mut socket = endpoint.connect()?;
            socket.set_read_timeout(Some(Duration::from_secs(2)))?;
            socket.write_all(command.as_bytes())?;
            let mut reply = [0; DIGEST_REPLY];
            socket.read_exact(&mut reply)?;
            let bulk = reply.strip_prefix(b"$40\r\n").and_then(|it| it.strip_suffix(b"\r\n"));
            digest = bulk.ok_or("a node does not load the script")?.to_vec();
        }
        Ok(digest)
    }
}

/// `$40`, 40 hexadecimal digits, and the two line ends.
const DIGEST_REPLY: usize = 5 + 40 + 2;

/// The running servers.
pub(crate) struct Servers {
    fleet: Fleet,
    program: PathBuf,
}

impl Servers {
    /// Starts so many.
    pub(crate) fn start(count: usize) -> Result<Self, Failure> {
        let program = find()?;
        let fleet = Fleet::start_with(count, |_, server| server.program(&program));
        Ok(Self { fleet, program })
    }

    /// Starts so many that speak TLS as well.
    pub(crate) fn start_with_tls(count: usize) -> Result<Self, Failure> {
        let program = tools::find_tls_server()?;
        let identity = tls::authority().server();
        let fleet = Fleet::start_with(count, |_, server| {
            server.program(&program).tls(identity.clone(), None)
        });
        Ok(Self { fleet, program })
    }

    /// How they are reached by this transport.
    pub(crate) fn nodes(&self, transport: Transport) -> Nodes {
        let endpoint = |server: &Server| match transport {
            Transport::Tcp | Transport::Tls => Endpoint::Tcp(server.addr()),
            Transport::Unix => Endpoint::Unix(server.socket_path()),
        };
        let mut nodes = Nodes::new(self.fleet.iter().map(endpoint).collect());
        if transport == Transport::Tls {
            nodes.urls = self.fleet.urls();
        }
        nodes
    }

    /// Their TCP addresses, in order.
    pub(crate) fn addrs(&self) -> Vec<SocketAddr> {
        self.fleet.iter().map(Server::addr).collect()
    }

    /// Hangs the last so many, until they are to [`Servers::resume`].
    pub(crate) fn pause(&self, count: usize) {
        self.fleet.iter().rev().take(count).for_each(Server::pause);
    }

    /// Lets the hung ones go on.
    pub(crate) fn resume(&self) {
        self.fleet.iter().for_each(Server::resume);
    }

    /// Their program and its version.
    pub(crate) fn version(&self) -> String {
        let (kind, [major, minor, patch]) = self.fleet[0].version();
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        format!("{kind} {major}.{minor}.{patch} ({program})")
    }

    /// What each says to this, as text.
    pub(crate) fn ask_each<'a>(&'a self, command: &'a [&str]) -> impl Iterator<Item = String> + 'a {
        self.fleet.iter().map(move |server| server.command(command).text())
    }

    /// Waits until no node has a key, letting `settle` bring in what is still under way. Where
    /// keys do not go, returns how many are left on all nodes together, and removes them.
    pub(crate) fn left_behind(
        &self,
        patience: Duration,
        mut settle: impl FnMut() -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let began = clock::now();
        loop {
            settle()?;
            let left: u64 = self.fleet.iter().map(keys).sum::<Result<_, _>>()?;
            if left == 0 {
                return Ok(0);
            }
            if began.elapsed() > patience {
                self.fleet.command(&["FLUSHALL"]);
                return Ok(left);
            }
        }
    }
}

/// How many keys a server has.
fn keys(server: &Server) -> Result<u64, Failure> {
    match server.command(&["DBSIZE"]) {
        Reply::Int(count) => Ok(u64::try_from(count)?),
        other => Err(format!("a server does not count its keys: {other:?}").into()),
    }
}

/// The program: by the variable, on the path, or among those that `tests/servers` fetched.
fn find() -> Result<PathBuf, Failure> {
    const NAMES: [&str; 2] = ["redis-server", "valkey-server"];
    if let Some(path) = std::env::var_os("QUORLOCK_SERVER").map(PathBuf::from) {
        return match path.is_file() {
            true => Ok(path),
            false => Err(format!("QUORLOCK_SERVER names no file: {}", path.display()).into()),
        };
    }
    let on_path = NAMES.iter().find_map(|name| tools::on_path(name));
    let found = on_path.or_else(|| fetched(&NAMES).into_iter().next());
    found.ok_or_else(|| "no redis-server or valkey-server (run tests/servers)".into())
}

/// The fetched ones, the newest first.
fn fetched(names: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut homes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    homes.sort_unstable_by(|a, b| b.cmp(a));
    let programs =
        homes.iter().flat_map(|home| names.iter().map(|name| home.join("bin").join(name)));
    programs.filter(|path| path.is_file()).collect()
}
