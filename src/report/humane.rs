//! How durations are written for people.

use std::fmt;
use std::time::Duration;

/// A duration as people write it: `3.2 s`, `100 ms`, `85 µs`.
pub(crate) struct Humane(pub(crate) Duration);

impl fmt::Display for Humane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            0..1_000 => write!(f, "{micros} µs"),
            1_000..10_000 if micros % 1_000 != 0 => {
                write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3)
            }
            1_000..1_000_000 => write!(f, "{} ms", micros / 1_000),
            _ => write!(f, "{:.1} s", self.0.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        let cases = [
            (Duration::from_micros(85), "85 µs"),
            (Duration::from_micros(2_010), "2.0 ms"),
            (Duration::from_millis(2), "2 ms"),
            (Duration::from_millis(100), "100 ms"),
            (Duration::from_millis(3_210), "3.2 s"),
        ];
        for (duration, words) in cases {
            assert_eq!(Humane(duration).to_string(), words);
        }
    }
}
