//! Vectors: the data files' lines, and their bytes.

/// One line of a data file.
#[derive(Debug)]
pub(crate) struct Vector {
    /// Where it stands, for messages.
    pub(crate) place: String,
    pub(crate) bytes: Vec<u8>,
    /// What stands behind the arrow.
    pub(crate) expected: &'static str,
}

pub(crate) fn valid() -> Vec<Vector> {
    read("valid.txt", include_str!("../data/valid.txt"))
}

pub(crate) fn invalid() -> Vec<Vector> {
    read("invalid.txt", include_str!("../data/invalid.txt"))
}

pub(crate) fn incomplete() -> Vec<Vector> {
    read("incomplete.txt", include_str!("../data/incomplete.txt"))
}

fn read(name: &str, text: &'static str) -> Vec<Vector> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.starts_with("# ") && !["", "#"].contains(line));
    lines
        .map(|(number, line)| {
            let place = format!("{name}:{number}: {line}");
            let (wire, expected) =
                line.split_once("=>").unwrap_or_else(|| panic!("no arrow in {place}"));
            let bytes = repeated(wire.trim());
            Vector { place, bytes, expected: expected.trim() }
        })
        .collect()
}

/// `N times BYTES`, or `BYTES`.
fn repeated(wire: &str) -> Vec<u8> {
    match wire.split_once(" times ") {
        Some((count, once)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            let count = count.parse().unwrap_or_else(|_| panic!("a huge count: {wire}"));
            unescape(once).repeat(count)
        }
        _ => unescape(wire),
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (byte, false) => byte,
            (_, true) => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let digits: String = rest.by_ref().take(2).map(char::from).collect();
                    u8::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("\\x in {text}"))
                }
                other => panic!("escape {other:?} in {text}"),
            },
        });
    }
    bytes
}
