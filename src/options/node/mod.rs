//! One node: its address, login, and handshake options.
//!
//! [`NodeOptions`] has the parts, which can also come from a URL (`url`) or a configuration
//! (`config`); [`IntoNode`] accepts each of these. An [`Address`] is the validated result, from
//! which connections are made.

mod address;
#[cfg(feature = "serde")]
mod config;
mod url;

use std::fmt;
use std::future::Future;
use std::net::Ipv6Addr;
use std::path::PathBuf;

pub(crate) use address::{Address, security};
pub use url::IntoNode;

use super::credentials::{CredentialSource, Credentials};
use super::tcp::TcpOptions;
use crate::error::Error;

/// One node: where it is and how to log in there, as a URL says it, part by part.
///
/// For programs that have the parts (a configuration file, a secret in a file of its own, a
/// password that changes) and would otherwise percent-encode them into a URL. Accepted wherever a
/// URL is, and made from one by `parse`. `Debug` shows no login.
///
/// ```
/// use quorlock::{Locker, NodeOptions};
///
/// # fn main() -> Result<(), quorlock::Error> {
/// # let secret = || String::from("p@ss/word");
/// let node = NodeOptions::tcp("a.internal", 6379).username("locker").password(secret());
/// let other = "redis://b.internal/3".parse::<NodeOptions>()?.password(secret());
/// let locker = Locker::quorum([node, other, NodeOptions::unix("/run/valkey.sock")])?.build()?;
/// # Ok(()) }
/// ```
///
/// With the feature `serde` it is read from a configuration: a URL, or a map of `host` and `port`
/// or of `path`, with `tls`, `username`, `password`, `database`, `protocol` (2 or 3) and `name`.
/// It is not written to one, for it would take the password along.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeOptions {
    pub(crate) endpoint: Endpoint,
    pub(crate) tls: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) source: Option<CredentialSource>,
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    pub(crate) name: Option<String>,
    pub(crate) tcp: Option<TcpOptions>,
}

/// Where a node listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: PathBuf },
}

/// The protocol to speak to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// RESP3 where the server has it, RESP2 elsewhere.
    #[default]
    Resp3,
    /// RESP2, for a proxy that accepts `HELLO` without speaking RESP3. Servers show such a
    /// connection less of themselves, so it takes two more commands to shake hands.
    Resp2,
}

impl NodeOptions {
    /// A node at a host's port (6379 is the usual one). The host is a name, an IPv4 or an IPv6
    /// address, which needs no brackets here. A name is resolved at every connect, and all its
    /// addresses are tried.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        Self::at(Endpoint::Tcp { host: host.into(), port })
    }

    /// A node at the Unix socket of this path.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::at(Endpoint::Unix { path: path.into() })
    }

    fn at(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            tls: false,
            username: None,
            password: None,
            source: None,
            database: 0,
            protocol: Protocol::default(),
            name: None,
            tcp: None,
        }
    }

    /// Whether to use TLS, as `rediss://` does. Default: no.
    #[must_use]
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// Whether the node uses TLS: by [`tls`](Self::tls), or by its URL.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// A user of the server's ACL. Needs a password. Default: the server's `default` user.
    #[must_use]
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.username = Some(username.into()).filter(|username| !username.is_empty());
        self
    }

    /// The password, as it is: nothing in it is escaped. An empty one is none. Default: none.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into()).filter(|password| !password.is_empty());
        self
    }

    /// The password, unless a URL or [`password`](Self::password) has given one already: for a
    /// password that is common to all nodes but those that have their own.
    #[must_use]
    pub fn default_password(self, password: impl Into<String>) -> Self {
        if self.password.is_some() { self } else { self.password(password) }
    }

    /// A callback that is asked for the login at every connect: for passwords that are rotated. It
    /// takes precedence over [`password`](Self::password).
    ///
    /// It is called on the task that reads all connections, once the node has taken the
    /// connection, and must not block: read a variable or a cache, not a file or the network. For
    /// those, see [`credentials_async`](Self::credentials_async). Established connections do not
    /// log in again: servers keep them when a password changes.
    ///
    /// ```
    /// use std::sync::{Arc, RwLock};
    ///
    /// use quorlock::NodeOptions;
    ///
    /// let current = Arc::new(RwLock::new(String::from("first")));
    /// let of_node = current.clone();
    /// let node = NodeOptions::tcp("a", 6379)
    ///     .username("locker")
    ///     .credentials(move || of_node.read().map(|it| it.clone()).unwrap_or_default());
    /// *current.write().unwrap() = String::from("second"); // for the connections from now on
    /// ```
    #[must_use]
    pub fn credentials<C: Into<Credentials>>(
        mut self,
        ask: impl Fn() -> C + Send + Sync + 'static,
    ) -> Self {
        self.source = Some(CredentialSource::of(ask));
        self
    }

    /// As [`credentials`](Self::credentials), for an answer that has to be waited for, or that may
    /// be an error. Its time counts towards `connect_timeout`. An error's text appears in reports
    /// and events, so it must hold no secret; the connection is tried again as after any failure.
    #[must_use]
    pub fn credentials_async<Ask, Answer, C, E>(mut self, ask: Ask) -> Self
    where
        Ask: Fn() -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<C, E>> + Send + 'static,
        C: Into<Credentials>,
        E: fmt::Display,
    {
        self.source = Some(CredentialSource::of_async(ask));
        self
    }

    /// The database's number. Default: 0. A quorum's nodes each have their own.
    #[must_use]
    pub fn database(mut self, database: u32) -> Self {
        self.database = database;
        self
    }

    /// The protocol to speak. Default: [`Protocol::Resp3`].
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// What the server calls the connection in its lists (`CLIENT LIST`). Default: nothing.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into()).filter(|name| !name.is_empty());
        self
    }

    /// How the TCP connections to this node behave. Default: as the locker's
    /// [`tcp`](crate::LockerBuilder::tcp) says.
    #[must_use]
    pub fn tcp_options(mut self, tcp: TcpOptions) -> Self {
        self.tcp = Some(tcp);
        self
    }

    /// Normalises the parts, so that nodes of one meaning compare equal. Refuses invalid parts. A
    /// missing password is accepted: it may still be given.
    pub(crate) fn normal(mut self) -> Result<Self, Error> {
        match &mut self.endpoint {
            Endpoint::Tcp { port: 0, .. } => {
                return Err(bad("has a bad port; it takes 1 to 65535"));
            }
            Endpoint::Tcp { host, .. } => *host = normal_host(host)?,
            Endpoint::Unix { path } => {
                if !path.has_root() {
                    return Err(bad("needs an absolute path; write unix:///run/redis.sock"));
                }
                if path.to_string_lossy().chars().any(char::is_control) {
                    return Err(bad("has a path with control characters"));
                }
                if self.tls {
                    return Err(bad("asks for TLS over a Unix socket; leave one of them out"));
                }
            }
        }
        let is_printable = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.name.as_deref().is_none_or(is_printable) {
            return Err(bad(
                "has a name with blanks or characters beyond ASCII, which servers refuse; use \
                 letters, digits and -._",
            ));
        }
        Ok(self)
    }

    /// What is printed: host and port or path, never a login.
    pub(crate) fn label(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Endpoint::Tcp { host, port } => format!("{host}:{port}"),
            Endpoint::Unix { path } => path.to_string_lossy().into_owned(),
        }
    }
}

/// Shows that there is a login, and not which; and no host or path that cannot be one, for it may
/// be a URL with a login in it.
impl fmt::Debug for NodeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Redacted;
        impl fmt::Debug for Redacted {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("redacted")
            }
        }
        let Self { tls, username, password, source, database, .. } = self;
        let Self { protocol, name, tcp, .. } = self;
        let label = self.clone().normal().map(|node| node.label());
        f.debug_struct("NodeOptions")
            .field("address", &label.as_deref().unwrap_or("not valid"))
            .field("tls", tls)
            .field("username", &username.as_ref().map(|_| Redacted))
            .field("password", &password.as_ref().map(|_| Redacted))
            .field("credentials", &source.as_ref().map(|_| Redacted))
            .field("database", database)
            .field("protocol", protocol)
            .field("name", name)
            .field("tcp", tcp)
            .finish()
    }
}

/// The one spelling of a host's name or address.
fn normal_host(host: &str) -> Result<String, Error> {
    /// No name of the domain system is longer.
    const LENGTH_MAX: usize = 253;
    if host.is_empty() {
        return Err(bad("has no host; write redis://host:port"));
    }
    if host.contains(':') {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        return normal_ipv6(bare).ok_or_else(|| {
            bad("has no IPv6 address where one should be; write redis://[::1]:6379")
        });
    }
    if !host.is_ascii() {
        return Err(bad("has a host beyond ASCII; write its xn-- form"));
    }
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.len() > LENGTH_MAX || !host.bytes().all(belongs) {
        return Err(bad("has a host that cannot be one; write redis://host:port"));
    }
    Ok(host.to_ascii_lowercase())
}

/// With the interface that an address of one link only needs: `fe80::1%eth0`.
fn normal_ipv6(host: &str) -> Option<String> {
    let (address, zone) = match host.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (host, None),
    };
    let address: Ipv6Addr = address.parse().ok()?;
    let Some(zone) = zone else { return Some(address.to_string()) };
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (!zone.is_empty() && zone.bytes().all(belongs)).then(|| format!("{address}%{zone}"))
}

fn bad(what: &str) -> Error {
    Error::misuse(format!("a node's address {what}"))
}
