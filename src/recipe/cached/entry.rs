//! What a cache puts into its store: a value, and what it takes to refresh it in time. Pure.
//!
//! ```text
//!  1 byte    8 bytes                 8 bytes               the rest
//!  kind      microseconds that it    milliseconds that it  the value
//!            took to compute it      may be stale
//! ```
//!
//! No date stands there: how fresh a value is follows from how long the store still keeps it, and
//! so the clocks of those who read and of those who wrote need not agree.

use std::sync::Arc;
use std::time::Duration;

use super::store::Stored;

const SOME: u8 = b'v';
const NONE: u8 = b'n';
const HEAD: usize = 17;

/// A value as it was computed: `None` says that there is none, which is remembered too.
pub(super) type Value = Option<Arc<[u8]>>;

/// A value that was read from the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// How long it took to compute it.
    pub(super) took: Duration,
    /// How long it is fresh still; zero when it is stale.
    pub(super) fresh: Duration,
}

/// The bytes to be stored.
pub(super) fn encode(value: &Value, took: Duration, stale: Duration) -> Vec<u8> {
    let bytes = value.as_deref().unwrap_or_default();
    let mut out = Vec::with_capacity(HEAD + bytes.len());
    out.push(if value.is_some() { SOME } else { NONE });
    out.extend_from_slice(&u64::try_from(took.as_micros()).unwrap_or(u64::MAX).to_le_bytes());
    out.extend_from_slice(&u64::try_from(stale.as_millis()).unwrap_or(u64::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
    out
}

/// What was stored; `None` for what is no entry of ours, as of another version.
pub(super) fn decode(stored: &Stored) -> Option<Entry> {
    let (kind, rest) = stored.value.split_first()?;
    let (took, rest) = rest.split_first_chunk()?;
    let (stale, rest) = rest.split_first_chunk()?;
    let value = match *kind {
        SOME => Some(rest.into()),
        NONE if rest.is_empty() => None,
        _ => return None,
    };
    let stale = Duration::from_millis(u64::from_le_bytes(*stale));
    Some(Entry {
        value,
        took: Duration::from_micros(u64::from_le_bytes(*took)),
        fresh: stored.remaining.saturating_sub(stale),
    })
}

impl Entry {
    /// Whether this reader, who has drawn a number above 0 and up to 1, computes the value anew
    /// before it ends: the likelier, the longer that takes and the nearer the end is. `beta` above
    /// 1 does it earlier. The optimum of A. Vattani, F. Chierichetti and K. Lowenstein, *Optimal
    /// Probabilistic Cache Stampede Prevention*, VLDB 2015.
    pub(super) fn is_due(&self, beta: f64, drawn: f64) -> bool {
        -drawn.ln() * beta * self.took.as_secs_f64() >= self.fresh.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_is_stored_is_read_and_what_is_not_ours_is_none() {
        for value in [Some(b"value".as_slice().into()), Some([].into()), None] {
            let bytes = encode(&value, ms(200), ms(3_000));
            let read = |remaining| decode(&Stored { value: bytes.clone(), remaining }).unwrap();
            let entry = Entry { value: value.clone(), took: ms(200), fresh: ms(7_000) };
            assert_eq!(read(ms(10_000)), entry);
            assert_eq!(read(ms(2_000)).fresh, Duration::ZERO, "it is stale");
        }
        for foreign in ["", "v", "v1234567", "n12345678123456781", "x1234567812345678"] {
            let stored = Stored { value: foreign.into(), remaining: ms(1) };
            assert_eq!(decode(&stored), None, "{foreign}");
        }
    }

    #[test]
    fn a_value_is_computed_anew_the_likelier_the_nearer_its_end_is() {
        let entry = |fresh| Entry { value: None, took: ms(100), fresh };
        let share = |fresh, beta| {
            let drawn = (1..=1_000).map(|n| f64::from(n) / 1_000.0);
            drawn.filter(|drawn| entry(fresh).is_due(beta, *drawn)).count()
        };
        assert_eq!(share(Duration::ZERO, 1.0), 1_000, "at its end by each");
        // Of the exponential distribution, e^-(fresh / (beta took)).
        assert_eq!(share(ms(100), 1.0), 367);
        assert_eq!(share(ms(500), 1.0), 6);
        assert_eq!(share(ms(500), 5.0), 367);
        assert_eq!(share(ms(500), 0.0), 0);
    }
}
