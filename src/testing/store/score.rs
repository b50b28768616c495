//! Scores of sorted sets: how servers read, order and print them.

use std::cmp::Ordering;

use super::call::{Refusal, float};
use super::version::{Since, Version};

/// Numbers are printed with as few digits as tell them apart; before, with seventeen.
const SHORTEST: Since = Since::redis([7, 2]);

/// Zero has no sign.
const ONE_ZERO: Since = Since::redis([7, 0]);
/// Bounds are decimal numbers, without blanks; before, whatever the C library reads.
const DECIMAL_BOUNDS: Since = Since { redis: Some([8, 0]), valkey: Some([9, 0]) };
/// Scores, too.
const DECIMAL_SCORES: Since = Since { redis: None, valkey: Some([9, 0]) };

/// Up to here, those servers print a whole number as such.
const WHOLE_MAX: f64 = (i64::MAX / 2) as f64;

/// The digits that older servers print.
const DIGITS: usize = 17;

/// What a member of a sorted set is sorted by. Never NaN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Score(f64);

impl Score {
    /// Reads one as `ZADD` does.
    pub(super) fn read(word: &[u8], version: Version) -> Result<Self, Refusal> {
        let wrong = Refusal::of("ERR value is not a valid float");
        let is_framed = word.first().is_none_or(u8::is_ascii_whitespace);
        let number = number(word, version.knows(DECIMAL_SCORES));
        let number = number.filter(|_| !is_framed).ok_or_else(|| wrong.clone())?;
        let number = if version.knows(ONE_ZERO) { number + 0.0 } else { number };
        // What is too large for a number, or too small, is refused.
        let is_named = word.iter().any(|byte| matches!(byte, b'n' | b'N'));
        let is_zero = !significand(word).iter().any(|byte| matches!(byte, b'1'..=b'9'));
        let fits = if number.is_infinite() { is_named } else { number != 0.0 || is_zero };
        Self::new(number).filter(|_| fits).ok_or(wrong)
    }

    /// `None` for NaN.
    pub(super) fn new(number: f64) -> Option<Self> {
        (!number.is_nan()).then_some(Self(number))
    }

    pub(super) fn number(self) -> f64 {
        self.0
    }
}

/// A number's digits before its exponent.
fn significand(word: &[u8]) -> &[u8] {
    let end = word.iter().position(|byte| matches!(byte, b'e' | b'E'));
    &word[..end.unwrap_or(word.len())]
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

/// The scores between two bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    min: Bound,
    max: Bound,
}

/// An end of a [`Span`]; one that is written behind `(` is outside of it.
#[derive(Clone, Copy, Debug)]
struct Bound {
    score: Score,
    is_outside: bool,
}

impl Span {
    pub(super) fn read(min: &[u8], max: &[u8], version: Version) -> Result<Self, Refusal> {
        let is_decimal = version.knows(DECIMAL_BOUNDS);
        let bounds = Bound::read(min, is_decimal).zip(Bound::read(max, is_decimal));
        let (min, max) = bounds.ok_or(Refusal::of("ERR min or max is not a float"))?;
        Ok(Self { min, max })
    }

    pub(super) fn contains(&self, score: Score) -> bool {
        let above =
            if self.min.is_outside { score > self.min.score } else { score >= self.min.score };
        let below =
            if self.max.is_outside { score < self.max.score } else { score <= self.max.score };
        above && below
    }
}

impl Bound {
    fn read(word: &[u8], is_decimal: bool) -> Option<Self> {
        let rest = word.strip_prefix(b"(");
        let score = number(rest.unwrap_or(word), is_decimal).and_then(Score::new)?;
        Some(Self { score, is_outside: rest.is_some() })
    }
}

/// A number: a decimal one, or whatever the C library reads.
fn number(word: &[u8], is_decimal: bool) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    // Nothing at all is a zero.
    match text.is_empty() {
        true => Some(0.0),
        false if is_decimal => text.parse().ok(),
        false => float(text.trim_start_matches(|c: char| c.is_ascii_whitespace())),
    }
}

/// A number as a server prints it.
pub(crate) fn text(number: f64, version: Version) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let size = number.abs();
    let text = match version.knows(SHORTEST) {
        _ if number.is_infinite() => "inf".into(),
        true if size.fract() == 0.0 && size <= WHOLE_MAX => format!("{size:.0}"),
        true => shortest(size),
        false => seventeen(size),
    };
    format!("{sign}{text}")
}

/// The digits of a number, without the zeros at their end, and the power of ten of the first.
fn digits(scientific: &str) -> (String, i32) {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let digits = digits.replace('.', "");
    let kept = digits.trim_end_matches('0').len().max(1);
    (digits[..kept].to_owned(), exponent.parse().unwrap_or_default())
}

fn shortest(number: f64) -> String {
    let (digits, exponent) = digits(&format!("{number:e}"));
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // How many zeros stand behind the digits, or how many digits behind the point.
    let zeros = exponent - count + 1;
    if (0..=7).contains(&zeros) || zeros < 0 && (zeros > -7 || exponent.abs() < 4) {
        return plain(&digits, exponent);
    }
    scientific(&digits, exponent, 1)
}

fn seventeen(number: f64) -> String {
    let (digits, exponent) = digits(&format!("{number:.*e}", DIGITS - 1));
    if (-4..DIGITS as i32).contains(&exponent) {
        return plain(&digits, exponent);
    }
    scientific(&digits, exponent, 2)
}

/// As in `1200`, `1.2` and `0.012`.
fn plain(digits: &str, exponent: i32) -> String {
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = usize::try_from(-1 - exponent).unwrap_or_default();
        return format!("0.{}{digits}", "0".repeat(zeros));
    };
    match digits.split_at_checked(whole + 1) {
        Some((digits, "")) => digits.to_owned(),
        Some((before, behind)) => format!("{before}.{behind}"),
        None => format!("{digits:0<width$}", width = whole + 1),
    }
}

/// As in `1.2e+300`, with at least so many digits of the exponent.
fn scientific(digits: &str, exponent: i32, width: usize) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:0width$}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> [Version; 3] {
        let redis = |version| Version::redis(version).unwrap();
        [redis("6.2.14"), redis("8.2.3"), Version::valkey("9.1.2").unwrap()]
    }

    fn read(word: &str, version: Version) -> Option<f64> {
        Score::read(word.as_bytes(), version).ok().map(Score::number)
    }

    fn span(min: &str, max: &str, version: Version) -> Option<Span> {
        Span::read(min.as_bytes(), max.as_bytes(), version).ok()
    }

    #[test]
    fn scores_are_numbers_that_fit_and_nothing_else() {
        let cases = [
            ("1", 1.0),
            ("+5", 5.0),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e3", 1_000.0),
            ("0e9", 0.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ];
        let wrong = ["", " 5", "5 ", "x", "nan", "1e999", "-1e999", "1e-999", "1_000", "(5", "0x"];
        for version in versions() {
            for (word, number) in cases {
                assert_eq!(read(word, version), Some(number), "{word}");
            }
            for wrong in wrong {
                assert_eq!(read(wrong, version), None, "{wrong:?}");
            }
        }
        let hexadecimal = versions().map(|version| read("-0x10", version));
        assert_eq!(hexadecimal, [Some(-16.0), Some(-16.0), None]);
        let signs = versions().map(|version| read("-0", version).unwrap().is_sign_negative());
        assert_eq!(signs, [true, false, false]);
    }

    #[test]
    fn a_span_has_its_bounds_unless_they_are_written_behind_a_bracket() {
        let holds = |min, max, number| {
            span(min, max, Version::default()).unwrap().contains(Score::new(number).unwrap())
        };
        assert!(holds("1", "2", 1.0) && holds("1", "2", 2.0) && !holds("1", "2", 2.5));
        assert!(!holds("(1", "2", 1.0) && !holds("1", "(2", 2.0) && holds("(1", "(2", 1.5));
        assert!(holds("-inf", "+inf", f64::INFINITY) && !holds("-inf", "(inf", f64::INFINITY));
        assert!(holds("", "1", 0.0) && !holds("(", "1", 0.0), "nothing is a zero");
        assert!(!holds("2", "1", 1.5));
        for version in versions() {
            for wrong in ["x", "((1", "nan", "1x", " ", "1 "] {
                assert!(span(wrong, "1", version).is_none(), "{wrong}");
            }
        }
        for word in [" 1", "0x1"] {
            let is_one = versions().map(|version| span(word, "1", version).is_some());
            assert_eq!(is_one, [true, false, false], "{word}");
        }
    }

    #[test]
    fn numbers_are_printed_as_servers_of_each_version_do() {
        let (old, new) = (Version::redis("7.0.15").unwrap(), Version::redis("8.2.3").unwrap());
        for (number, older, newer) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (3.0, "3", "3"),
            (-1.5, "-1.5", "-1.5"),
            (0.1, "0.10000000000000001", "0.1"),
            (1e-5, "1.0000000000000001e-05", "0.00001"),
            (1.5e-9, "1.5e-09", "1.5e-9"),
            (1e16, "10000000000000000", "10000000000000000"),
            (1e17, "1e+17", "100000000000000000"),
            (1e19, "1e+19", "1e+19"),
            (1.25e25, "1.2500000000000001e+25", "1.25e+25"),
            (12_345_678.125, "12345678.125", "12345678.125"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
        ] {
            assert_eq!((&*text(number, old), &*text(number, new)), (older, newer));
        }
    }
}
