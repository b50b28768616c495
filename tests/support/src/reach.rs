//! How tests' clients reach the servers: the environment chooses, so that the whole suite runs on
//! every protocol and transport (`tests/matrix`).
//!
//! | variable | values | without it |
//! |---|---|---|
//! | `QUORLOCK_PROTOCOL` | `2`, `3` | what the library takes |
//! | `QUORLOCK_TRANSPORT` | `tcp`, `unix`, `tls` | `tcp` |
//! | `QUORLOCK_LATE` | milliseconds, with `tls` | none |
//! | `QUORLOCK_WITHOUT` | a command's name | servers have all their commands |
//!
//! For `tls`, `SSL_CERT_FILE=DIR/ca.crt` says where the tests' authority keeps its certificate: the
//! tests make it, and lockers find it there as they find the platform's own (all features).
//!
//! `QUORLOCK_LATE` finds tests that take a verdict, which needs a majority, for the last node's
//! answer: the terminators of a third of the servers pass on what clients send so much later, those
//! of another third twice as much. (Servers that speak TLS themselves are never late.) Three tests
//! send more than passes so slowly:
//!
//! ```text
//! QUORLOCK_LATE=4 tests/matrix redis-6.2 resp2 tls full -- --skip=case_22_ \
//!     --skip=whatever_else_ --skip=a_release_that_was_queued_
//! ```
//!
//! Proxies and scripted servers speak TLS like everything else, but listen on no Unix socket. What
//! is reached by something else than the environment asks for says so by [`aside`], and why: it is
//! written to the file that `QUORLOCK_ASIDE` names, and counted.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Where one server can be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Where it speaks plain text.
    pub(crate) addr: SocketAddr,
    /// Where it speaks TLS, if it does: then nothing else is asked of it.
    pub(crate) tls: Option<SocketAddr>,
    /// Its Unix socket.
    pub(crate) socket: &'a Path,
    /// What a client says of itself, as in a URL: nothing, `:password` or `user:password`.
    pub(crate) login: &'a str,
}

/// What clients connect with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Plain text over TCP.
    Tcp,
    /// A Unix socket.
    Unix,
    /// TLS over TCP.
    Tls,
}

impl Transport {
    /// The one that the environment chooses.
    pub fn chosen() -> Self {
        match choice("QUORLOCK_TRANSPORT").as_deref() {
            None | Some("tcp") => Self::Tcp,
            Some("unix") => Self::Unix,
            Some("tls") => Self::Tls,
            Some(other) => panic!("QUORLOCK_TRANSPORT takes tcp, unix or tls, not {other:?}"),
        }
    }
}

impl Place<'_> {
    /// The URL by the transport and the protocol that the environment chooses.
    pub(crate) fn url(self) -> String {
        match (self.tls, Transport::chosen()) {
            (None, Transport::Unix) => {
                let place = self.socket.display().to_string();
                in_chosen_protocol(url("unix", self.login, &place))
            }
            _ => self.tcp_url(),
        }
    }

    /// The URL over TCP, also where the environment chooses a Unix socket; with TLS if that is
    /// there.
    pub(crate) fn tcp_url(self) -> String {
        let (scheme, addr) = match self.tls {
            Some(addr) => ("rediss", addr),
            None => ("redis", self.addr),
        };
        in_chosen_protocol(url(scheme, self.login, &addr.to_string()))
    }

    /// How a report names the server.
    pub(crate) fn label(self) -> String {
        match (self.tls, Transport::chosen()) {
            (Some(addr), _) => addr.to_string(),
            (None, Transport::Unix) => self.socket.display().to_string(),
            (None, _) => self.addr.to_string(),
        }
    }
}

/// How much later than at once a server on this port is told what clients send.
pub(crate) fn lateness(port: u16) -> Duration {
    let unit = choice("QUORLOCK_LATE").map_or(0, |ms| ms.parse().expect("it is milliseconds"));
    Duration::from_millis(unit) * u32::from(port / 2 % 3) // a server for TLS has two ports
}

/// `scheme://login@place`
pub fn url(scheme: &str, login: &str, place: &str) -> String {
    let at = if login.is_empty() { "" } else { "@" };
    format!("{scheme}://{login}{at}{place}")
}

/// Says that something is reached by another transport than the environment asks for, and why. It
/// asks for none but by name: TCP is what it gets where it says nothing.
pub fn aside(why: &str) {
    let Some(path) = choice("QUORLOCK_ASIDE") else { return };
    if Transport::chosen() == Transport::Tcp {
        return;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("it opens");
    file.write_all(format!("{why}\n").as_bytes()).expect("it takes a line");
}

/// The URL with the protocol that the environment chooses.
pub fn in_chosen_protocol(url: String) -> String {
    match choice("QUORLOCK_PROTOCOL").as_deref() {
        None => url,
        Some(protocol @ ("2" | "3")) => with(&url, &format!("protocol={protocol}")),
        Some(other) => panic!("QUORLOCK_PROTOCOL takes 2 or 3, not {other:?}"),
    }
}

/// What a server's command line says to take away the command that the environment names.
pub(crate) fn missing_command() -> Vec<String> {
    let command = choice("QUORLOCK_WITHOUT");
    command.map(|name| vec!["--rename-command".into(), name, String::new()]).unwrap_or_default()
}

/// The URL with this parameter, and not with another one of its name: `with(url, "db=3")`.
pub fn with(url: &str, parameter: &str) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    let others = query.split('&').filter(|pair| !pair.is_empty() && name(pair) != name(parameter));
    let pairs: Vec<&str> = others.chain([parameter]).collect();
    format!("{place}?{}", pairs.join("&"))
}

/// A variable's value; an empty one chooses nothing.
fn choice(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}
