//! One command under way: who says it, its words, and its reply or refusal.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::Frame;

/// A connection, by the number that the node gives it.
pub(crate) type SessionId = i64;

/// The connection that is none.
pub(super) const NO_SESSION: SessionId = 0;

/// The user whose rights are not asked for. No user that can log in has such a name.
pub(super) const OPERATOR: &str = "";

/// A command under way.
pub(super) struct Call<'a> {
    pub(super) session: SessionId,
    /// Its name is the first.
    pub(super) words: &'a [&'a [u8]],
    pub(super) now: Duration,
    /// A script says it, in this line.
    pub(super) line: Option<u32>,
}

impl<'a> Call<'a> {
    /// The words behind the name.
    pub(super) fn arguments(&self) -> &'a [&'a [u8]] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The argument of this number, from 0; empty where there is none.
    pub(super) fn argument(&self, number: usize) -> &'a [u8] {
        self.arguments().get(number).copied().unwrap_or_default()
    }

    /// The command's name, in lower case.
    pub(super) fn name(&self) -> String {
        lower(self.words.first().copied().unwrap_or_default())
    }
}

/// What a command is answered.
pub(super) type Reply = Result<Frame, Refusal>;

/// An error reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal(pub(super) Cow<'static, str>);

impl Refusal {
    pub(super) const fn of(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(super) fn new(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    pub(super) fn into_frame(self) -> Frame {
        Frame::Error(Bytes::from(self.0.into_owned()))
    }

    pub(super) const SYNTAX: Self = Self::of("ERR syntax error");
    pub(super) const NUMBER: Self = Self::of("ERR value is not an integer or out of range");
    pub(super) const TYPE: Self =
        Self::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(super) const READ_ONLY: Self =
        Self::of("READONLY You can't write against a read only replica.");
    pub(super) const MEMORY: Self =
        Self::of("OOM command not allowed when used memory > 'maxmemory'.");
    pub(super) const LOGIN: Self = Self::of("NOAUTH Authentication required.");

    pub(super) fn arity(command: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{command}' command"))
    }
}

pub(super) fn ok() -> Frame {
    Frame::Simple(Bytes::from_static(b"OK"))
}

pub(super) fn bulk(text: impl AsRef<[u8]>) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_ref()))
}

pub(super) fn count(number: usize) -> Frame {
    Frame::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn lower(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_lowercase()
}

/// A whole number as servers read one: without a plus, without leading zeros.
pub(super) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    let text = std::str::from_utf8(word).map_err(|_| Refusal::NUMBER)?;
    let number: i64 = text.parse().map_err(|_| Refusal::NUMBER)?;
    if number.to_string() == text { Ok(number) } else { Err(Refusal::NUMBER) }
}

/// A number as the C library reads one, but for hexadecimal fractions.
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) else {
        return text.parse().ok();
    };
    // Rust would read a second sign.
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
    let number = u64::from_str_radix(digits, 16).ok()? as f64;
    Some(if text.starts_with('-') { -number } else { number })
}
