//! Parsing a node's URL.
//!
//! `redis://user:password@host:port/database?protocol=2&name=web`, the same with `valkey:`, over
//! TLS with `rediss:` and `valkeys:`, and `unix:///path?db=1` (also `redis+unix:`,
//! `valkey+unix:`). A part that we do not know is an error, and so is one that is given twice or
//! is empty where it should not be: a misspelt option, or a variable that was not set when the URL
//! was put together, must not pass for a working one. Written by hand because the usual crate
//! brings 36 others for one split.
//!
//! No error repeats the URL or a part of it, because a misplaced part may be a piece of a password
//! that was not percent-encoded.

use std::str::FromStr;

use super::{NodeOptions, Protocol};
use crate::error::Error;

/// Where servers listen unless told otherwise.
pub(super) const PORT: u16 = 6379;

/// What a node can be given as: its URL, or its [`NodeOptions`].
pub trait IntoNode {
    /// The node's parts.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when they cannot be right.
    fn into_node(self) -> Result<NodeOptions, Error>;
}

/// A URL.
impl<U: AsRef<str>> IntoNode for U {
    fn into_node(self) -> Result<NodeOptions, Error> {
        self.as_ref().parse()
    }
}

impl IntoNode for NodeOptions {
    fn into_node(self) -> Result<NodeOptions, Error> {
        Ok(self)
    }
}

impl IntoNode for &NodeOptions {
    fn into_node(self) -> Result<NodeOptions, Error> {
        Ok(self.clone())
    }
}

/// Parses a URL.
impl FromStr for NodeOptions {
    type Err = Error;

    /// A user whose password is not there yet is taken; it is refused when the node is used.
    fn from_str(url: &str) -> Result<Self, Error> {
        if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(bad(
                "has a blank, a line end or a control character in it; remove it, or write it as \
                 %20 and the like",
            ));
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(bad("has no scheme; write redis://host:port or unix:///path"));
        };
        let (rest, query) = match rest.split_once('?') {
            // A query has no login in it, so this mark was a password's.
            Some((_, query)) if query.contains('@') => {
                return Err(bad("has an \"@\" behind its \"?\"; in a password write \"?\" as %3F"));
            }
            Some((rest, query)) => (rest, query),
            None => (rest, ""),
        };
        let (node, database) = match scheme.to_ascii_lowercase().as_str() {
            "redis" | "valkey" => parse_tcp(rest)?,
            "rediss" | "valkeys" => {
                let (node, database) = parse_tcp(rest)?;
                (node.tls(true), database)
            }
            "unix" | "redis+unix" | "valkey+unix" => (parse_unix(rest)?, None),
            _ => return Err(bad("has an unknown scheme; write redis, rediss, valkey or unix")),
        };
        with_parameters(node, query, database)?.normal()
    }
}

/// A node at a host, and the database behind it.
fn parse_tcp(rest: &str) -> Result<(NodeOptions, Option<u32>), Error> {
    // The last `@` ends the login, so that a password may hold one.
    let (login, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    if rest.contains('#') {
        return Err(bad("has a \"#\" behind its host; in a password write it as %23"));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains(',') {
        return Err(bad("names several hosts; give one URL for each node"));
    }
    let (host, port) = parse_host_and_port(authority)?;
    let database = if path.is_empty() { None } else { Some(parse_database(path)?) };
    Ok((with_login(NodeOptions::tcp(host, port), login)?, database))
}

fn parse_unix(rest: &str) -> Result<NodeOptions, Error> {
    // A path may hold an `@`, and where one begins there is no login.
    let (login, path) = match rest.rsplit_once('@') {
        Some((login, path)) if !rest.starts_with('/') => (login, path),
        _ => ("", rest),
    };
    with_login(NodeOptions::unix(decode(path)?), login)
}

fn with_login(node: NodeOptions, login: &str) -> Result<NodeOptions, Error> {
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    Ok(node.username(decode(user)?).password(decode(password)?))
}

fn parse_host_and_port(authority: &str) -> Result<(String, u16), Error> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let Some((host, behind)) = rest.split_once(']') else {
                return Err(bad("has a \"[\" without its \"]\"; write redis://[::1]:6379"));
            };
            let port = behind.strip_prefix(':');
            if !host.contains(':') || (port.is_none() && !behind.is_empty()) {
                return Err(bad(
                    "has brackets that do not hold an IPv6 address, or something behind them that \
                     is no port; write redis://[::1]:6379",
                ));
            }
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) => parse_number(port).filter(|port| *port != 0).ok_or_else(|| {
            bad("has a bad port; write host:port with 1 to 65535, an IPv6 address in brackets")
        })?,
        None => PORT,
    };
    Ok((decode(host)?, port))
}

fn parse_database(text: &str) -> Result<u32, Error> {
    parse_number(text).ok_or_else(|| {
        bad("has a bad database; write its number, as in redis://host:port/0 or unix:///path?db=0")
    })
}

/// Digits only: the standard library's numbers may have a sign.
pub(super) fn parse_number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

/// What stands behind the `?`.
fn with_parameters(
    mut node: NodeOptions,
    query: &str,
    mut database: Option<u32>,
) -> Result<NodeOptions, Error> {
    let (mut protocol, mut name) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (parameter, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_twice = match parameter {
            "protocol" => protocol.replace(parse_protocol(value)?).is_some(),
            "db" => database.replace(parse_database(value)?).is_some(),
            "name" if value.is_empty() => {
                return Err(bad("has an empty ?name=; leave it out, or write the name"));
            }
            "name" => name.replace(decode(value)?).is_some(),
            _ => {
                return Err(bad(&format!(
                    "has an unknown parameter{}; known are protocol, db and name",
                    shown(pair)
                )));
            }
        };
        if is_twice {
            return Err(bad(&format!("says {parameter} twice; leave one of them out")));
        }
    }
    node.database = database.unwrap_or(node.database);
    node.protocol = protocol.unwrap_or(node.protocol);
    node.name = name;
    Ok(node)
}

pub(super) fn parse_protocol(text: &str) -> Result<Protocol, Error> {
    match text {
        "2" | "resp2" => Ok(Protocol::Resp2),
        "3" | "resp3" => Ok(Protocol::Resp3),
        _ => Err(bad("has a bad protocol; it takes 2 or 3")),
    }
}

/// Decodes percent-encoding.
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
    String::from_utf8(bytes)
        .map_err(|_| bad("has percent-encoded bytes that are not UTF-8; encode its UTF-8 bytes"))
}

/// A parameter's name, if it cannot be a piece of a password.
fn shown(pair: &str) -> String {
    let is_name = |name: &str| name.len() <= 32 && name.bytes().all(|b| b.is_ascii_lowercase());
    match pair.split_once('=') {
        Some((name, _)) if is_name(name) => format!(" \"{name}\""),
        _ => String::new(),
    }
}

fn bad(what: &str) -> Error {
    Error::misuse(format!("a node's URL {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = "h:6379 tls=false user=None password=None db=0 Resp3 name=None";

    /// All parts on one line.
    fn parts(url: &str) -> String {
        let node: NodeOptions = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
        let NodeOptions { tls, username, password, database, protocol, name, .. } = &node;
        format!(
            "{} tls={tls} user={username:?} password={password:?} db={database} {protocol:?} \
             name={name:?}",
            node.label(),
        )
    }

    /// The usual parts but for these.
    fn usual_but(changes: &[(&str, &str)]) -> String {
        changes.iter().fold(USUAL.to_owned(), |parts, (usual, changed)| {
            assert!(parts.contains(usual), "{usual}");
            parts.replace(usual, changed)
        })
    }

    #[test]
    fn every_part_of_a_url_is_taken() {
        let (password, user) = ("password=None", "user=None");
        let cases: &[(&str, &[(&str, &str)])] = &[
            // Schemes.
            ("redis://h", &[]),
            ("valkey://h", &[]),
            ("REDIS://h", &[]),
            ("rediss://h", &[("tls=false", "tls=true")]),
            ("valkeys://h", &[("tls=false", "tls=true")]),
            ("unix:///run/s", &[("h:6379", "/run/s")]),
            ("redis+unix:///run/s", &[("h:6379", "/run/s")]),
            ("valkey+unix:///run/s", &[("h:6379", "/run/s")]),
            // Hosts and ports.
            ("redis://H.Example:7000", &[("h:6379", "h.example:7000")]),
            ("redis://h.example./", &[("h:6379", "h.example.:6379")]),
            ("redis://h:65535", &[("6379", "65535")]),
            ("redis://127.0.0.1:1", &[("h:6379", "127.0.0.1:1")]),
            ("redis://under_score", &[("h:", "under_score:")]),
            ("redis://%68", &[]),
            ("redis://[::1]", &[("h:6379", "[::1]:6379")]),
            ("redis://[::1]:7000/", &[("h:6379", "[::1]:7000")]),
            ("redis://[0:0:0:0:0:0:0:1]", &[("h:6379", "[::1]:6379")]),
            ("redis://[2001:DB8::A]", &[("h:6379", "[2001:db8::a]:6379")]),
            ("redis://[fe80::1%25eth0]:1", &[("h:6379", "[fe80::1%eth0]:1")]),
            // Logins.
            ("redis://:pw@h", &[(password, "password=Some(\"pw\")")]),
            (
                "redis://me:pw@h",
                &[(user, "user=Some(\"me\")"), (password, "password=Some(\"pw\")")],
            ),
            ("redis://me@h", &[(user, "user=Some(\"me\")")]),
            ("redis://@h", &[]),
            ("redis://:@h", &[]),
            ("redis://:p%40%3A%2F%3F%23%25w@h", &[(password, "password=Some(\"p@:/?#%w\")")]),
            ("redis://:p@s:s/w#[]@h", &[(password, "password=Some(\"p@s:s/w#[]\")")]),
            ("redis://:%C3%BC%20@h", &[(password, "password=Some(\"\u{fc} \")")]),
            ("redis://:ü@h", &[(password, "password=Some(\"\u{fc}\")")]),
            ("redis://:p+w@h", &[(password, "password=Some(\"p+w\")")]),
            ("unix://:pw@/run/s", &[("h:6379", "/run/s"), (password, "password=Some(\"pw\")")]),
            ("unix:///run/a@b", &[("h:6379", "/run/a@b")]),
            ("unix:///run/a%20b%3F", &[("h:6379", "/run/a b?")]),
            // Databases and parameters.
            ("redis://h/", &[]),
            ("redis://h/3", &[("db=0", "db=3")]),
            ("redis://h/0?", &[]),
            ("redis://h?db=3", &[("db=0", "db=3")]),
            ("unix:///run/s?db=3", &[("h:6379", "/run/s"), ("db=0", "db=3")]),
            ("redis://h?protocol=2", &[("Resp3", "Resp2")]),
            ("redis://h?protocol=resp2", &[("Resp3", "Resp2")]),
            ("redis://h?protocol=3", &[]),
            ("redis://h?name=a", &[("name=None", "name=Some(\"a\")")]),
            ("redis://h?name=a%40b", &[("name=None", "name=Some(\"a@b\")")]),
            (
                "redis://h/1?protocol=2&&name=w-1&",
                &[("db=0", "db=1"), ("Resp3", "Resp2"), ("name=None", "name=Some(\"w-1\")")],
            ),
        ];
        for (url, changes) in cases {
            assert_eq!(parts(url), usual_but(changes), "{url}");
        }
    }

    /// URLs, and what is said about them.
    const REFUSED: &[(&str, &str)] = &[
        ("", "no scheme"),
        ("canary", "no scheme"),
        ("canary:6379", "no scheme"),
        ("redis:canary", "no scheme"),
        ("redis:/canary", "no scheme"),
        ("://canary", "unknown scheme"),
        ("canary://h", "unknown scheme"),
        ("http://:canary@h", "unknown scheme"),
        ("redis ://canary", "a blank"),
        ("redis://canary\n", "a blank"),
        ("redis://:can ary@h", "a blank"),
        ("redis://:canary@h\0", "a blank"),
        // Hosts and ports.
        ("redis://", "has no host"),
        ("redis://:canary@", "has no host"),
        ("redis://:canary@:6379", "has no host"),
        ("redis:///canary", "bad database"),
        ("redis://:canary@/0", "has no host"),
        ("redis://:canary@h:", "bad port"),
        ("redis://:canary@h:0", "bad port"),
        ("redis://:canary@h:65536", "bad port"),
        ("redis://:canary@h:+80", "bad port"),
        ("redis://:canary@h:-1", "bad port"),
        ("redis://h:canary", "bad port"),
        ("redis://:canary@::1", "bad port"),
        ("redis://:canary@[::1", "without its"),
        ("redis://:canary@[::1]x", "something behind"),
        ("redis://:canary@[::1]:x", "bad port"),
        ("redis://[canary]", "do not hold an IPv6"),
        ("redis://[127.0.0.1]", "do not hold an IPv6"),
        ("redis://[canary::1]", "no IPv6 address"),
        ("redis://[::1%25]", "no IPv6 address"),
        ("redis://[fe80::1%25can%20ary]", "no IPv6 address"),
        ("redis://canary!", "host that cannot be one"),
        ("redis://can%2Fary", "host that cannot be one"),
        ("redis://canary%00", "host that cannot be one"),
        ("redis://canary%c3%bc", "write its xn-- form"),
        ("redis://canary\u{fc}", "write its xn-- form"),
        ("redis://canary,b:6379,c", "one URL for each node"),
        ("redis://h#canary", "as %23"),
        ("redis://h/0#canary", "as %23"),
        // Databases and parameters.
        ("redis://:canary@h/one", "bad database"),
        ("redis://h/canary", "bad database"),
        ("redis://h/1/canary", "bad database"),
        ("redis://h/+1", "bad database"),
        ("redis://h/-1", "bad database"),
        ("redis://h/4294967296", "bad database"),
        ("redis://h?db=", "bad database"),
        ("redis://h?db=canary", "bad database"),
        ("redis://h/1?db=1", "says db twice"),
        ("redis://h?db=1&db=1", "says db twice"),
        ("redis://h?protocol=2&protocol=3", "says protocol twice"),
        ("redis://h?name=canary&name=b", "says name twice"),
        ("redis://h?protocol=canary", "it takes 2 or 3"),
        ("redis://h?protocol", "it takes 2 or 3"),
        ("redis://h?name=", "empty ?name="),
        ("redis://h?name=canary%20b", "name with blanks"),
        ("redis://h?name=canary%C3%BC", "name with blanks"),
        ("redis://h?timeout=canary", "unknown parameter \"timeout\"; known are"),
        ("redis://h?password=canary", "unknown parameter \"password\"; known are"),
        ("redis://h?canary", "unknown parameter; known are"),
        ("redis://h?Canary=1", "unknown parameter; known are"),
        ("redis://h?Protocol=2", "unknown parameter; known are"),
        ("redis://:p?canary@h", "as %3F"),
        ("redis://:p?db=canary@h", "as %3F"),
        // Percent signs.
        ("redis://:canary%@h", "two hexadecimal digits"),
        ("redis://:canary%4@h", "two hexadecimal digits"),
        ("redis://:canary%zz@h", "two hexadecimal digits"),
        ("redis://:canary%+1@h", "two hexadecimal digits"),
        ("redis://:canary%ff@h", "not UTF-8"),
        // Sockets.
        ("unix://canary/s", "absolute path"),
        ("unix://:canary@run/s", "absolute path"),
        ("unix://", "absolute path"),
        ("unix:///canary%00", "control characters"),
        ("unix:///canary%0a", "control characters"),
    ];

    #[test]
    fn what_cannot_be_right_is_refused_in_a_line_that_says_what_to_do_and_repeats_nothing() {
        for (url, words) in REFUSED {
            let error = url.parse::<NodeOptions>().expect_err(url);
            let line = error.to_string();
            assert!(error.is_misuse() && line.contains(words), "{url}: {line}");
            assert!(!line.contains("anary") && !line.contains('\n'), "{url}: {line}");
        }
    }
}
