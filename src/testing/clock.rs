//! A node's own clock: it can be stepped, and it can run at another speed.

use std::time::Duration;

use crate::clock::{Clock, Moment};

const MILLION: i128 = 1_000_000;

/// Tells a node's time out of the process's.
#[derive(Clone, Debug)]
pub(crate) struct NodeClock {
    /// At this moment of the process …
    moment: Moment,
    /// … it showed this time.
    time: Duration,
    /// By how many millionths it is too fast.
    drift_ppm: i32,
}

impl NodeClock {
    /// One that shows the right time.
    pub(super) fn new() -> Self {
        Self::showing(Clock::wall_origin())
    }

    /// One that showed this time at the moment zero.
    pub(crate) fn showing(time: Duration) -> Self {
        Self { moment: Moment::default(), time, drift_ppm: 0 }
    }

    pub(crate) fn read(&self, now: Moment) -> Duration {
        let elapsed = i128::from(now.as_nanos()) - i128::from(self.moment.as_nanos());
        after(self.time, elapsed * (MILLION + i128::from(self.drift_ppm)) / MILLION)
    }

    /// When it will show this time; now, if it has.
    pub(super) fn moment(&self, time: Duration, now: Moment) -> Moment {
        let left = time.saturating_sub(self.read(now)).as_nanos() as i128;
        let speed = (MILLION + i128::from(self.drift_ppm)).max(1);
        // Rounded up, so that the time has come by then.
        let left = (left * MILLION + speed - 1) / speed;
        now.plus(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)))
    }

    /// Sets it ahead, or back.
    pub(crate) fn step(&mut self, now: Moment, millis: i64) {
        let time = after(self.read(now), i128::from(millis) * MILLION);
        *self = Self { moment: now, time, ..*self };
    }

    /// From now on it is too fast by so many millionths, or too slow.
    pub(crate) fn drift(&mut self, now: Moment, ppm: i32) {
        *self = Self { moment: now, time: self.read(now), drift_ppm: ppm };
    }
}

fn after(time: Duration, nanos: i128) -> Duration {
    let size = u64::try_from(nanos.unsigned_abs()).unwrap_or(u64::MAX);
    let size = Duration::from_nanos(size);
    if nanos < 0 { time.saturating_sub(size) } else { time.saturating_add(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_steps_and_drifts_and_goes_on_from_there() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (mut clock, beginning) = (NodeClock::new(), Clock::wall_origin());
        let shown = |clock: &NodeClock, seconds| (clock.read(at(seconds)) - beginning).as_millis();
        assert_eq!(shown(&clock, 10), 10_000);
        clock.step(at(10), -2_500);
        assert_eq!(shown(&clock, 10), 7_500);
        clock.drift(at(10), 100_000);
        assert_eq!(shown(&clock, 20), 18_500);
        let time = beginning + Duration::from_millis(29_500);
        assert_eq!(clock.moment(time, at(20)), at(30));
        assert_eq!(clock.moment(beginning, at(20)), at(20), "it has come");
        clock.drift(at(20), 0);
        assert_eq!(shown(&clock, 21), 19_500);
    }
}
