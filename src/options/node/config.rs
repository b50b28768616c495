//! Deserializing a node from a configuration: its URL, or its parts.
//!
//! serde's own errors repeat the value that they found, and that may be a password, such as one of
//! digits without its quotes. So values of every type are accepted here first, and all errors are
//! ours.

use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::NodeOptions;
use super::url::{PORT, parse_number, parse_protocol};
use crate::error::Error;

impl<'de> Deserialize<'de> for NodeOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = match Value::deserialize(deserializer)? {
            Value::Text(url) => url.parse(),
            Value::Fields(fields) => of_fields(fields),
            _ => Err(bad("must be a URL or a map of its parts")),
        };
        node.map_err(D::Error::custom)
    }
}

/// A value of any type. Not `Debug`: it may be a password.
enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    Fields(Vec<(String, Self)>),
    /// An explicit null, which counts as absent.
    Nothing,
    /// A value of a type that no field has.
    Other,
}

fn of_fields(fields: Vec<(String, Value)>) -> Result<NodeOptions, Error> {
    let (mut host, mut port, mut path) = (None, None, None);
    // The place is set below, when it is known.
    let mut node = NodeOptions::tcp("", PORT);
    let mut seen = Vec::new();
    for (field, value) in fields {
        if seen.contains(&field) {
            return Err(bad("has a field twice; leave one of them out"));
        }
        match (field.as_str(), value) {
            (_, Value::Nothing) => {}
            ("host", Value::Text(text)) => host = Some(text),
            ("port", value) => port = Some(number(value, "`port` that is no port")?),
            ("path", Value::Text(text)) => path = Some(text),
            ("tls", Value::Flag(flag)) => node = node.tls(flag),
            ("username", Value::Text(text)) => node = node.username(text),
            ("password", Value::Text(text)) => node = node.password(text),
            ("database", value) => {
                node = node.database(number(value, "`database` that is no number")?);
            }
            ("protocol", Value::Number(2)) => node = node.protocol(parse_protocol("2")?),
            ("protocol", Value::Number(3)) => node = node.protocol(parse_protocol("3")?),
            ("protocol", Value::Text(text)) => node = node.protocol(parse_protocol(&text)?),
            ("name", Value::Text(text)) => node = node.name(text),
            ("tls", _) => return Err(bad("has a `tls` that is neither true nor false")),
            ("protocol", _) => return Err(bad("has a `protocol` that is neither 2 nor 3")),
            ("host" | "path" | "username" | "password" | "name", _) => {
                return Err(bad(&format!("has a `{field}` that is no text; put it in quotes")));
            }
            _ => {
                return Err(bad(
                    "has a field that is not known; known are host, port, path, tls, username, \
                     password, database, protocol and name",
                ));
            }
        }
        seen.push(field);
    }
    let place = match (host, port, path) {
        (Some(host), port, None) => NodeOptions::tcp(host, port.unwrap_or(PORT)),
        (None, None, Some(path)) => NodeOptions::unix(path),
        _ => return Err(bad("must have a `host`, with or without a `port`, or else a `path`")),
    };
    node.endpoint = place.endpoint;
    node.normal()
}

/// A number, with or without quotes.
fn number<N: TryFrom<u64>>(value: Value, what: &str) -> Result<N, Error> {
    let number = match value {
        Value::Number(number) => Some(number),
        Value::Text(text) => parse_number(&text),
        _ => None,
    };
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| bad(&format!("has a {what}; write it in digits")))
}

fn bad(what: &str) -> Error {
    Error::misuse(format!("a node's configuration {what}"))
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Accepts a value of any type.
struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node's URL or a map of its parts")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(u64::try_from(number).map_or(Value::Other, Value::Number))
    }

    fn visit_i128<E>(self, _: i128) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Value::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<NodeOptions, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn a_node_is_read_from_its_url_or_its_parts() {
        let all = r#"{"host": "H", "port": 7000, "tls": true, "username": "me", "database": 3,
            "password": "p@ss", "protocol": 2, "name": "web"}"#;
        let cases = [
            (r#""redis://:p%40@h:7000/3""#, "redis://:p%40@h:7000/3"),
            (all, "rediss://me:p%40ss@h:7000/3?protocol=2&name=web"),
            (r#"{"host": "::1"}"#, "redis://[::1]:6379"),
            (r#"{"host": "h", "port": "7000", "database": "1"}"#, "redis://h:7000/1"),
            (r#"{"host": "h", "password": null, "path": null}"#, "redis://h"),
            (r#"{"path": "/run/s", "protocol": "resp2"}"#, "unix:///run/s?protocol=2"),
            (r#"{"host": "h", "protocol": 3, "tls": false}"#, "redis://h"),
        ];
        for (json, url) in cases {
            let node = read(json).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert!(node == url.parse().unwrap(), "{json}: {node:?}");
        }
        let several: Vec<NodeOptions> =
            serde_json::from_str(r#"["redis://a", {"host": "b"}]"#).unwrap();
        assert_eq!(several.len(), 2);
    }

    #[test]
    fn what_cannot_be_right_is_refused_and_not_repeated() {
        let cases = [
            (r#""canary""#, "no scheme"),
            (r#""redis://:canary@h:x""#, "bad port"),
            ("123454321", "a URL or a map"),
            ("-123454321", "a URL or a map"),
            ("1.23454321", "a URL or a map"),
            (r#"["canary"]"#, "a URL or a map"),
            ("null", "a URL or a map"),
            ("{}", "must have a `host`"),
            (r#"{"port": 1}"#, "must have a `host`"),
            (r#"{"host": "canary", "path": "/canary"}"#, "must have a `host`"),
            (r#"{"path": "/canary", "port": 1}"#, "must have a `host`"),
            (r#"{"host": "h", "password": 123454321}"#, "`password` that is no text"),
            (r#"{"host": "h", "password": ["canary"]}"#, "`password` that is no text"),
            (r#"{"host": "h", "password": {"canary": "canary"}}"#, "`password` that is no text"),
            (r#"{"host": 1, "password": "canary"}"#, "`host` that is no text"),
            (r#"{"host": "h", "port": "canary"}"#, "`port` that is no port"),
            (r#"{"host": "h", "port": 123454321}"#, "`port` that is no port"),
            (r#"{"host": "h", "port": 0}"#, "bad port"),
            (r#"{"host": "h", "database": "canary"}"#, "`database` that is no number"),
            (r#"{"host": "h", "database": -1}"#, "`database` that is no number"),
            (r#"{"host": "h", "protocol": "canary"}"#, "it takes 2 or 3"),
            (r#"{"host": "h", "protocol": 4}"#, "neither 2 nor 3"),
            (r#"{"host": "h", "tls": "canary"}"#, "neither true nor false"),
            (r#"{"host": "h", "canary": "canary"}"#, "field that is not known"),
            (r#"{"host": "h", "passwort": "canary"}"#, "known are host, port"),
            (r#"{"host": "h", "host": "canary"}"#, "a field twice"),
            (r#"{"host": "can ary"}"#, "host that cannot be one"),
            (r#"{"path": "/canary", "tls": true}"#, "TLS over a Unix socket"),
        ];
        for (json, words) in cases {
            let line = read(json).expect_err(json).to_string();
            assert!(line.contains(words), "{json}: {line}");
            assert!(!line.contains("anary") && !line.contains("23454321"), "{json}: {line}");
        }
    }
}
