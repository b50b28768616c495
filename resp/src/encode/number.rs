//! Numbers as text, written on the stack.

use core::fmt::{self, Write};

/// Type byte, sign, 20 digits and CR LF fit, and so does every double in its shortest form.
const ROOM: usize = 32;

/// A short piece of text on the stack, filled from its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    text: [u8; ROOM],
    start: usize,
}

impl Decimal {
    fn empty() -> Self {
        Self { text: [0; ROOM], start: ROOM }
    }

    /// Type byte, count, CR LF.
    #[inline]
    pub(super) fn header(kind: u8, count: usize) -> Self {
        let mut decimal = Self::empty();
        decimal.line_end();
        decimal.digits(u64::try_from(count).unwrap_or(u64::MAX));
        decimal.push(kind);
        decimal
    }

    /// A colon, the integer, CR LF.
    #[inline]
    pub(super) fn integer(value: i64) -> Self {
        let mut decimal = Self::empty();
        decimal.line_end();
        decimal.digits(value.unsigned_abs());
        if value < 0 {
            decimal.push(b'-');
        }
        decimal.push(b':');
        decimal
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.text.get(self.start..).unwrap_or_default()
    }

    fn line_end(&mut self) {
        self.push(b'\n');
        self.push(b'\r');
    }

    #[inline]
    fn digits(&mut self, mut value: u64) {
        loop {
            let digit = u8::try_from(value.wrapping_rem(10)).unwrap_or_default();
            self.push(digit | b'0');
            value = value.wrapping_div(10);
            if value == 0 {
                break;
            }
        }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(place) = self.text.get_mut(self.start) {
            *place = byte;
        }
    }
}

/// How many digits `value` has.
#[inline]
pub(super) fn decimal_len(value: usize) -> usize {
    match value {
        0..=9 => 1,
        10..=99 => 2,
        100..=999 => 3,
        larger => larger
            .checked_ilog10()
            .and_then(|log| usize::try_from(log).ok())
            .map_or(1, |log| log.saturating_add(1)),
    }
}

/// The text of a double, without type byte and line end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Double {
    text: [u8; ROOM],
    len: usize,
}

impl Double {
    pub(super) fn new(value: f64) -> Self {
        let mut double = Self { text: [0; ROOM], len: 0 };
        // Both forms are the shortest that read back as the same number. Writing them fails only
        // for want of room, and the longest (sign, 17 digits, point, exponent) leaves some.
        let plain = value == 0.0 || (1e-5..1e16).contains(&value.abs());
        let written = if value.is_nan() {
            double.write_str("nan")
        } else if value.is_infinite() {
            double.write_str(if value < 0.0 { "-inf" } else { "inf" })
        } else if plain {
            write!(double, "{value}")
        } else {
            write!(double, "{value:e}")
        };
        debug_assert!(written.is_ok(), "no room for {value:e}");
        double
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

impl Write for Double {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len.saturating_add(text.len());
        let place = self.text.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
