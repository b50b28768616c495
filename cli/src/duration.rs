//! Durations as people type them: `2s`, `500ms`, `1.5m`, and bare seconds: `0.5`.

use std::time::Duration;

/// The units, and the seconds in each.
const UNITS: [(&str, f64); 8] = [
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];

/// The longest that is taken, so that sums cannot overflow.
const MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Any duration, zero too.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    // Digits first: `f64` would also take "inf", "1e9" and signs.
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| explain())?;
    let unit = unit.trim();
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(explain)?;
    let duration = Duration::try_from_secs_f64(number * seconds).ok();
    duration.filter(|duration| *duration <= MAX).ok_or_else(|| "at most ten years".into())
}

/// A lock's TTL: at least 1 ms, because servers count whole milliseconds.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse(text)?;
    if ttl < Duration::from_millis(1) {
        return Err("a lock must be held for at least 1ms".into());
    }
    Ok(ttl)
}

/// A measurement's time: long enough for a few rounds, at most an hour.
pub(crate) fn parse_run(text: &str) -> Result<Duration, String> {
    let time = parse(text)?;
    if !(Duration::from_millis(100)..=Duration::from_secs(3_600)).contains(&time) {
        return Err("a measurement takes 100ms to 1h".into());
    }
    Ok(time)
}

fn explain() -> String {
    "write a number and a unit, as in 500ms, 2s, 1.5m, 1h or 1d (without a unit: seconds)".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_taken() {
        let cases = [
            ("2s", 2_000_000),
            ("500ms", 500_000),
            ("0.5", 500_000),
            ("100 ms", 100_000),
            (".25s", 250_000),
            ("250us", 250),
            ("250µs", 250),
            ("1.5m", 90_000_000),
            ("1h", 3_600_000_000),
            ("1d", 86_400_000_000),
            ("0", 0),
        ];
        for (text, micros) in cases {
            assert_eq!(parse(text), Ok(Duration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1s", "+1s", "1e3", "inf", "NaN", "1w", "1.2.3", "2s3", "999999999h"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_ttl("0.5ms").is_err() && parse_ttl("0").is_err());
        assert_eq!(parse_ttl("1ms"), Ok(Duration::from_millis(1)));
        assert!(parse_run("99ms").is_err() && parse_run("61m").is_err());
        assert_eq!(parse_run("100ms"), Ok(Duration::from_millis(100)));
    }
}
