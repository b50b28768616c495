//! A node's address and login, for the floor's own sockets.
//!
//! The library does not expose the parts of a URL, so it is parsed again here. The library has
//! accepted the URL before, so this parser does not validate it.

use crate::exit::{Cause, Failure};
use crate::nodes::Node;

/// One node's parts, from its URL. Not `Debug`: it holds the password.
pub(crate) struct Place {
    pub(crate) endpoint: Endpoint,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: String,
    /// Whether to send `HELLO 3`.
    pub(crate) resp3: bool,
    /// What is printed: host and port or path, never a login.
    pub(crate) label: String,
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(String),
}

const PORT: u16 = 6379;

impl Place {
    /// `label` is how the library calls the node.
    pub(crate) fn of(node: &Node, label: &str) -> Result<Self, Failure> {
        Self::parse(&node.url, &node.password, label).ok_or_else(|| {
            let what = "a node's URL cannot be read; write redis://host:port";
            Failure::new(Cause::Configuration, what)
        })
    }

    /// `password` is for a URL without one.
    fn parse(url: &str, password: &str, label: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // The last "@" ends the login, its first ":" the user; a path alone has none.
        let (login, rest) = match rest.rsplit_once('@') {
            Some(parts) if !rest.starts_with('/') => parts,
            _ => ("", rest),
        };
        let (user, own) = login.split_once(':').unwrap_or((login, ""));
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let user = text(decode(user)?);
        let password = text(decode(own)?).or_else(|| text(password.into()));
        let is_path = scheme.to_ascii_lowercase().ends_with("unix");
        let (place, mut database) = match rest.split_once('/') {
            Some((place, database)) if !is_path => (place, decode(database)?),
            _ => (rest, String::new()),
        };
        let endpoint = if is_path { Endpoint::Unix(decode(place)?) } else { tcp(place)? };
        let mut resp3 = true;
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "db" => database = value.into(),
                "protocol" => resp3 = value.ends_with('3'),
                _ => {}
            }
        }
        Some(Self { endpoint, user, password, database, resp3, label: label.into() })
    }
}

fn tcp(place: &str) -> Option<Endpoint> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => match place.find(':') {
            Some(colon) => place.split_at(colon),
            None => (place, ""),
        },
    };
    let port = match port.strip_prefix(':').unwrap_or(port) {
        "" => PORT,
        port => port.parse().ok()?,
    };
    Some(Endpoint::Tcp { host: decode(host)?, port })
}

/// Decodes percent-encoding.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_url_is_found() {
        let place =
            Place::parse("redis://me:p%40@s:s@Host:7000/3?protocol=2&name=x", "", "l").unwrap();
        assert_eq!(place.endpoint, Endpoint::Tcp { host: "Host".into(), port: 7000 });
        assert_eq!(
            (place.user.as_deref(), place.password.as_deref()),
            (Some("me"), Some("p@@s:s"))
        );
        assert_eq!((&*place.database, place.resp3, &*place.label), ("3", false, "l"));
        let place = Place::parse("valkey+unix:///run/redis.sock?db=1", "p%", "").unwrap();
        assert_eq!(place.endpoint, Endpoint::Unix("/run/redis.sock".into()));
        assert_eq!((&*place.database, place.user, place.resp3), ("1", None, true));
        assert_eq!(place.password.as_deref(), Some("p%"));
        let place = Place::parse("redis://[::1]:7", "", "").unwrap();
        assert_eq!(place.endpoint, Endpoint::Tcp { host: "::1".into(), port: 7 });
    }
}
