//! Keys, durations and holders as people read them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::Duration;

use quorlock::report::{ClockSkew, Holder, NodeHealth};

/// A duration with its unit: `3.2 s`, `100 ms`, `2.5 ms`, `85 µs`.
pub(crate) struct Humane(pub(crate) Duration);

impl fmt::Display for Humane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(duration) = self;
        match duration.as_micros() {
            micros @ 0..1_000 => write!(f, "{micros} µs"),
            micros @ 1_000..10_000 if micros % 1_000 != 0 => {
                write!(f, "{:.1} ms", duration.as_secs_f64() * 1e3)
            }
            micros @ 1_000..1_000_000 => write!(f, "{} ms", micros / 1_000),
            _ => write!(f, "{:.1} s", duration.as_secs_f64()),
        }
    }
}

/// `12,345 µs`: always microseconds, so that a column is easy to compare.
pub(crate) fn micros(duration: Duration) -> String {
    format!("{} µs", grouped(duration.as_micros()))
}

/// `12,345`.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 node`, `5 nodes`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `held by NAME, 3.2 s left`.
pub(crate) fn held(holder: &Holder) -> String {
    format!("held by {holder}")
}

/// A warning that names the nodes which may lose locks, and says what to do about it.
pub(crate) fn forgets<'a>(nodes: impl IntoIterator<Item = &'a NodeHealth>) -> Option<String> {
    let named = nodes.into_iter().filter(|node| node.contradicts_durability).filter_map(|node| {
        let persistence = &node.server.as_ref()?.persistence;
        Some(format!("{} ({persistence})", node.node))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| {
        format!(
            "a lock that is held may be forgotten, and another client can have it then, by {}: set \
             appendonly yes and appendfsync always, or say --longest-ttl in every client",
            named.join(", ")
        )
    })
}

/// What fenced locks come to whose nodes' clocks are far from ours.
pub(crate) fn far_clocks<'a>(nodes: impl IntoIterator<Item = &'a NodeHealth>) -> Option<String> {
    let named = nodes.into_iter().filter_map(|node| {
        let clock = node.server.as_ref()?.clock.filter(ClockSkew::is_far)?;
        Some(format!("{} ({clock})", node.node))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| {
        format!(
            "a fenced lock can be slow or unavailable by the clock of {}: have NTP set it",
            named.join(", ")
        )
    })
}

/// A key in quotes, whatever its bytes are.
pub(crate) fn quoted(key: &OsStr) -> String {
    match key.to_str() {
        Some(text) => format!("{text:?}"),
        None => format!("\"{}\"", key.as_encoded_bytes().escape_ascii()),
    }
}

/// Each key in quotes, with commas between.
pub(crate) fn all_quoted(keys: &[OsString]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        let cases = [
            (85, "85 µs", "85 µs"),
            (2_510, "2.5 ms", "2,510 µs"),
            (2_000, "2 ms", "2,000 µs"),
            (100_000, "100 ms", "100,000 µs"),
            (3_210_000, "3.2 s", "3,210,000 µs"),
        ];
        for (count, humane, column) in cases {
            let duration = Duration::from_micros(count);
            assert_eq!(Humane(duration).to_string(), humane);
            assert_eq!(micros(duration), column);
        }
    }

    #[test]
    fn keys_stand_in_quotes() {
        assert_eq!(quoted(OsStr::new("a\n\"b\"")), r#""a\n\"b\"""#);
        assert_eq!(all_quoted(&["a, b".into(), "c".into()]), r#""a, b", "c""#);
    }
}
