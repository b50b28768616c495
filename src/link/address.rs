//! Where a node is and how to log in there: the URL, taken apart.
//!
//! `redis://user:password@host:port/database?protocol=2&name=web`, the same with `valkey:`, over
//! TLS with `rediss:` and `valkeys:`, and `unix:///path?db=1` (also `redis+unix:`,
//! `valkey+unix:`). A part that we do not know is an error: a misspelt option must not pass for a
//! working one. Written by hand because the usual crate brings 36 others for one split.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::options::{Security, Tls};

/// One node's address and login.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) endpoint: Endpoint,
    /// Everything is said over TLS, and nothing before it. Only where the endpoint is TCP.
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    /// Told to the server with `CLIENT SETNAME`, for its operator's lists.
    pub(crate) name: Option<String>,
    /// What is printed: host and port or path, never a login.
    pub(crate) label: Arc<str>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: PathBuf },
}

/// The protocol to speak: RESP3 where the server has it, unless RESP2 is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Resp3,
    Resp2,
}

const PORT: u16 = 6379;

/// Whether this build can speak TLS.
const SPEAKS_TLS: bool = cfg!(feature = "tls-rustls");

impl Address {
    /// Takes a URL apart.
    ///
    /// The error never repeats the URL: it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let address = Self::take_apart(url)?;
        if address.tls && !SPEAKS_TLS {
            return Err(bad(
                "asks for TLS, which needs quorlock's feature `tls-rustls`; build with it, or \
                 write redis:// where the network is trusted",
            ));
        }
        Ok(address)
    }

    /// The parts of a URL, whatever this build can do with them.
    fn take_apart(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(bad("has no scheme; write redis://host:port or unix:///path"));
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let mut address = match scheme {
            "redis" | "valkey" => Self::parse_tcp(rest)?,
            "rediss" | "valkeys" => Self { tls: true, ..Self::parse_tcp(rest)? },
            "unix" | "redis+unix" | "valkey+unix" => Self::parse_unix(rest)?,
            _ => return Err(bad("has an unknown scheme; write redis, rediss, valkey or unix")),
        };
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            address.set_parameter(pair)?;
        }
        Ok(address)
    }

    fn parse_tcp(rest: &str) -> Result<Self, Error> {
        let (login, rest) = split_login(rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = parse_host_and_port(authority)?;
        let label =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut address = Self::at(Endpoint::Tcp { host, port }, label);
        address.set_login(login)?;
        if !path.is_empty() {
            address.database = parse_database(path)?;
        }
        Ok(address)
    }

    fn parse_unix(rest: &str) -> Result<Self, Error> {
        let (login, path) = split_login(rest);
        let path = decode(path)?;
        if !path.starts_with('/') {
            return Err(bad("needs an absolute path; write unix:///run/redis.sock"));
        }
        let mut address = Self::at(Endpoint::Unix { path: PathBuf::from(&path) }, path);
        address.set_login(login)?;
        Ok(address)
    }

    fn at(endpoint: Endpoint, label: String) -> Self {
        Self {
            endpoint,
            tls: false,
            user: None,
            password: None,
            database: 0,
            protocol: Protocol::Resp3,
            name: None,
            label: label.into(),
        }
    }

    fn set_login(&mut self, login: Option<&str>) -> Result<(), Error> {
        let Some(login) = login else { return Ok(()) };
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        self.user = some_text(decode(user)?);
        self.password = password.map(decode).transpose()?.and_then(some_text);
        if self.user.is_some() && self.password.is_none() {
            return Err(bad("has a user without a password; write redis://user:password@host"));
        }
        Ok(())
    }

    fn set_parameter(&mut self, pair: &str) -> Result<(), Error> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (name, value) {
            ("protocol", "2" | "resp2") => self.protocol = Protocol::Resp2,
            ("protocol", "3" | "resp3") => self.protocol = Protocol::Resp3,
            ("protocol", _) => return Err(bad("has a bad ?protocol=; it takes 2 or 3")),
            ("db", database) => self.database = parse_database(database)?,
            ("name", name) => self.name = some_text(decode(name)?),
            (unknown, _) => {
                return Err(bad(&format!(
                    "has an unknown parameter{}; known are protocol, db and name",
                    shown(unknown)
                )));
            }
        }
        match &self.name {
            Some(name) if name.chars().any(|c| c.is_whitespace() || c.is_control()) => {
                Err(bad("has a ?name= with blanks, which servers refuse"))
            }
            _ => Ok(()),
        }
    }
}

/// Whom to trust, for the nodes among `addresses` that ask for TLS; `None` if none does.
pub(crate) fn security(
    addresses: &[Address],
    tls: Option<&Tls>,
) -> Result<Option<Security>, Error> {
    let hosts = addresses.iter().filter(|address| address.tls);
    let hosts = hosts.filter_map(|address| match &address.endpoint {
        Endpoint::Tcp { host, .. } => Some(host),
        Endpoint::Unix { .. } => None,
    });
    let mut hosts = hosts.peekable();
    if hosts.peek().is_none() {
        return match tls {
            None => Ok(None),
            Some(_) => Err(Error::misuse(
                "`Tls` was given, and no node's URL asks for it; write rediss:// for those that \
                 speak it, or leave it out",
            )),
        };
    }
    let security = Security::of(tls)?;
    hosts.try_for_each(|host| security.check(host))?;
    Ok(Some(security))
}

/// Prints where the node is, and never the login.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.label)
    }
}

/// The last `@` ends the login, so that a password may hold one.
fn split_login(rest: &str) -> (Option<&str>, &str) {
    match rest.rsplit_once('@') {
        Some((login, rest)) => (Some(login), rest),
        None => (None, rest),
    }
}

fn parse_host_and_port(authority: &str) -> Result<(String, u16), Error> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let Some((host, port)) = rest.split_once(']') else {
                return Err(bad("has a \"[\" without its \"]\""));
            };
            (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some("")))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("")),
        },
    };
    let port = match port {
        Some("") => PORT,
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
            bad("has a bad port; write host:port with 1 to 65535, an IPv6 address in brackets")
        })?,
        None => return Err(bad("has something behind the \"]\" that is no port")),
    };
    let host = decode(host)?;
    if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(bad("has no host; write redis://host:port"));
    }
    Ok((host.to_ascii_lowercase(), port))
}

fn parse_database(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| bad("has a bad database; write its number, as in redis://host:port/0"))
}

fn some_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Resolves `%40` and its like.
fn decode(text: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| {
                bad("has a \"%\" that two hexadecimal digits do not follow; write %25")
            })?;
        bytes.push(byte);
        rest = rest.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| bad("has percent-encoded bytes that are not UTF-8"))
}

/// A parameter's name, if it can be one: behind a `?` that should have been `%3F` stands the rest
/// of a password.
fn shown(name: &str) -> String {
    let is_name = name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_name { format!(" \"{name}\"") } else { " (a \"?\" in a password is written %3F)".into() }
}

fn bad(what: &str) -> Error {
    Error::misuse(format!("a node's URL {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    fn refusal(url: &str) -> String {
        Address::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn every_part_of_a_url_is_taken() {
        let address = parse("redis://me:p%40ss@Host:7000/3?protocol=2&name=web");
        assert_eq!(address.endpoint, Endpoint::Tcp { host: "host".into(), port: 7000 });
        assert_eq!(address.user.as_deref(), Some("me"));
        assert_eq!(address.password.as_deref(), Some("p@ss"));
        assert_eq!(address.database, 3);
        assert_eq!(address.protocol, Protocol::Resp2);
        assert_eq!(address.name.as_deref(), Some("web"));
        assert_eq!(&*address.label, "host:7000");
    }

    #[test]
    fn what_is_left_out_has_its_usual_value() {
        let address = parse("valkey://h");
        assert_eq!(address.endpoint, Endpoint::Tcp { host: "h".into(), port: 6379 });
        assert_eq!((address.user, address.password, address.database), (None, None, 0));
        assert_eq!(parse("redis://:secret@h").password.as_deref(), Some("secret"));
        assert_eq!(&*parse("redis://[::1]:7000").label, "[::1]:7000");
        assert_eq!(&*parse("redis://[::1]").label, "[::1]:6379");
    }

    #[test]
    fn two_schemes_ask_for_tls() {
        let tls = |url: &str| Address::take_apart(url).unwrap().tls;
        assert!(tls("rediss://h") && tls("valkeys://h"));
        assert!(!tls("redis://h") && !tls("valkey://h") && !tls("unix:///run/redis.sock"));
    }

    #[test]
    fn unix_sockets_have_a_path_and_may_have_a_database() {
        let address = parse("unix:///run/redis.sock?db=2");
        assert_eq!(address.endpoint, Endpoint::Unix { path: "/run/redis.sock".into() });
        assert_eq!(address.database, 2);
    }

    #[test]
    fn what_cannot_be_right_is_refused_with_what_to_do() {
        let cases = [
            ("host:6379", "has no scheme"),
            ("http://h", "unknown scheme"),
            ("rediss://h", "`tls-rustls`"),
            ("valkeys://h", "`tls-rustls`"),
            ("redis://", "has no host"),
            ("redis://h:0", "bad port"),
            ("redis://h:65536", "bad port"),
            ("redis://::1", "bad port"),
            ("redis://[::1", "without its"),
            ("redis://[::1]x", "no port"),
            ("redis://h/one", "bad database"),
            ("redis://h?timeout=3", "unknown parameter \"timeout\""),
            ("redis://h?protocol=4", "it takes 2 or 3"),
            ("redis://h?name=a%20b", "blanks"),
            ("redis://h%zz", "two hexadecimal digits"),
            ("redis://h%+1", "two hexadecimal digits"),
            ("redis://user@h", "user without a password"),
            ("unix://run/redis.sock", "absolute path"),
        ];
        for (url, words) in cases {
            assert!(refusal(url).contains(words), "{url}: {}", refusal(url));
        }
    }

    #[test]
    fn no_error_and_no_debug_shows_the_login() {
        assert_eq!(format!("{:?}", parse("redis://me:canary@h")), "Address(h:6379)");
        for url in ["redis://me:canary@h:x", "ftp://me:canary@h", "redis://me:p?canary@h"] {
            assert!(!refusal(url).contains("canary"), "{}", refusal(url));
        }
    }
}
