//! Histograms of latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Latencies are kept to three digits, up to a minute; what takes longer counts as a minute.
const DIGITS: u8 = 3;
const MAX: Duration = Duration::from_secs(60);

/// An empty histogram, in nanoseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    let max = u64::try_from(MAX.as_nanos()).unwrap_or(u64::MAX);
    let bounded = Histogram::new_with_bounds(1, max, DIGITS);
    let Ok(histogram) = bounded else { unreachable!("these bounds are in order") };
    histogram
}
