//! How tests' clients reach the servers: the environment chooses, so that the whole suite runs on
//! every protocol and transport (`tests/matrix`).
//!
//! | variable | values | without it |
//! |---|---|---|
//! | `QUORLOCK_PROTOCOL` | `2`, `3` | what the library takes |
//! | `QUORLOCK_TRANSPORT` | `tcp`, `unix` | `tcp` |
//!
//! Scripted servers are not concerned: what they hear and say is their tests' business.

use std::net::SocketAddr;
use std::path::Path;

/// Where one server can be reached.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub addr: SocketAddr,
    pub socket: &'a Path,
    /// What a client says of itself, as in a URL: nothing, `:password` or `user:password`.
    pub login: &'a str,
}

/// What clients connect with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    Tcp,
    Unix,
}

impl Transport {
    /// The one that the environment chooses.
    pub fn chosen() -> Self {
        match choice("QUORLOCK_TRANSPORT").as_deref() {
            None | Some("tcp") => Self::Tcp,
            Some("unix") => Self::Unix,
            Some(other) => panic!("QUORLOCK_TRANSPORT takes tcp or unix, not {other:?}"),
        }
    }
}

impl Place<'_> {
    /// The URL by the transport and the protocol that the environment chooses.
    pub fn url(self) -> String {
        self.url_by(Transport::chosen())
    }

    /// The URL by this transport, whatever the environment chooses.
    pub fn url_by(self, transport: Transport) -> String {
        let at = if self.login.is_empty() { "" } else { "@" };
        let login = format!("{}{at}", self.login);
        in_chosen_protocol(match transport {
            Transport::Tcp => format!("redis://{login}{}", self.addr),
            Transport::Unix => format!("unix://{login}{}", self.socket.display()),
        })
    }

    /// How a report names the server.
    pub fn label(self) -> String {
        match Transport::chosen() {
            Transport::Tcp => self.addr.to_string(),
            Transport::Unix => self.socket.display().to_string(),
        }
    }
}

/// The URL with the protocol that the environment chooses.
pub fn in_chosen_protocol(url: String) -> String {
    match choice("QUORLOCK_PROTOCOL").as_deref() {
        None => url,
        Some(protocol @ ("2" | "3")) => with(&url, &format!("protocol={protocol}")),
        Some(other) => panic!("QUORLOCK_PROTOCOL takes 2 or 3, not {other:?}"),
    }
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
