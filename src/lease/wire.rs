//! The words of which commands are made: values, numbers, and the buffer that they are written in.
//!
//! A lock's value is one plain string: 160 random bits in hexadecimal, `@`, the owner's name. So
//! any client that does `SET NX PX` and compare-and-delete excludes us, and is excluded by us.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::time::Duration;

use quorlock_resp::encode;

use crate::entropy::Nonce;

/// How many characters the random part of a value has.
const NONCE_HEX: usize = 2 * Nonce::BYTES;

/// What a key holds: one plain string.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// Drawn for one attempt of this locker's.
    Drawn { nonce: Nonce, owner: &'a str },
    /// As a token tells it: it need not be this locker's.
    Told(&'a str),
}

impl Value<'_> {
    #[inline(always)] // a plain lock's commands have it twice
    pub(super) fn put(self, out: &mut Vec<u8>) {
        let (nonce, owner) = match self {
            Self::Drawn { nonce, owner } => (nonce, owner),
            Self::Told(value) => return encode::bulk(out, value.as_bytes()),
        };
        out.push(b'$');
        out.extend_from_slice(decimal((NONCE_HEX + 1 + owner.len()) as u64, &mut [0; DECIMAL_MAX]));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&hexadecimal(nonce));
        out.push(b'@');
        out.extend_from_slice(owner.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nonce, owner) = match self {
            Self::Drawn { nonce, owner } => (*nonce, owner),
            Self::Told(value) => return f.write_str(value),
        };
        hexadecimal(nonce).iter().try_for_each(|digit| f.write_char((*digit).into()))?;
        write!(f, "@{owner}")
    }
}

/// What `revoke.lua` puts behind a value.
pub(super) const REVOKED: &[u8] = b"!";

/// Whose value it is, if one of ours or of the same form.
pub(crate) fn owner_of(value: &[u8]) -> Option<&str> {
    let (nonce, owner) = value.split_at_checked(NONCE_HEX)?;
    let owner = owner.strip_prefix(b"@")?;
    nonce.iter().all(u8::is_ascii_hexdigit).then(|| std::str::from_utf8(owner).ok()).flatten()
}

/// Each byte's two digits: looked up at once, because every command spells 20 of them.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 0x0f]];
        byte += 1;
    }
    pairs
};

fn hexadecimal(nonce: Nonce) -> [u8; NONCE_HEX] {
    let mut hex = [0; NONCE_HEX];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(nonce.0) {
        pair.copy_from_slice(&HEX[usize::from(byte)]);
    }
    hex
}

/// A time in milliseconds, as an argument.
pub(super) fn put_millis(out: &mut Vec<u8>, time: Duration) {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    encode::bulk(out, decimal(millis, &mut [0; DECIMAL_MAX]));
}

pub(super) const DECIMAL_MAX: usize = 20;

pub(super) fn decimal(mut number: u64, digits: &mut [u8; DECIMAL_MAX]) -> &[u8] {
    let mut start = DECIMAL_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

/// Lends this thread's buffer, empty. A thread that is ending has none; then a fresh one serves.
pub(super) fn with_scratch<R>(body: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let taken = SCRATCH.try_with(|scratch| scratch.take());
    let mut buffer = taken.unwrap_or_default();
    buffer.clear();
    let result = body(&mut buffer);
    // On a thread that is ending there is nowhere to put it back.
    let _ = SCRATCH.try_with(|scratch| scratch.replace(buffer));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_its_owner_and_others_values_name_none() {
        let drawn = Value::Drawn { nonce: Nonce([0xab; Nonce::BYTES]), owner: "me@h:1" };
        let value = "abababababababababababababababababababab@me@h:1";
        assert_eq!(drawn.to_string(), value);
        assert_eq!(owner_of(value.as_bytes()), Some("me@h:1"));
        for foreign in [&b""[..], b"abc", b"3f2c", &[b'x'; 41], &[0xff; 60]] {
            assert_eq!(owner_of(foreign), None);
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 1_000, u64::MAX] {
            let mut digits = [0; DECIMAL_MAX];
            assert_eq!(decimal(number, &mut digits), number.to_string().as_bytes());
        }
    }
}
