//! Many processes that want one lock, all the time.
//!
//! Each is this program, started again: a process holds the lock as long as it is told, releases
//! it, and wants it at once again. All begin and end at the same moments of the machine's clock.
//! The first second, in which they come together, is not counted.
//!
//! | file | owns |
//! |---|---|
//! | `child` | what such a process does |
//! | `shift` | what it is told, and what it says afterwards |
//! | `counts` | what the servers have counted of it |

mod child;
mod counts;
mod shift;

use std::thread;
use std::time::Duration;

pub(crate) use child::run as run_child;
pub(crate) use counts::Counts;
pub(crate) use shift::{Shift, Tally};

use crate::clock;
use crate::contest::Failure;
use crate::servers::{Servers, Transport};
use crate::side::Side;

/// The word that starts this program as such a process.
pub(crate) const CHILD: &str = "crowd-child";

/// What is not counted of a round.
const WARM_UP: Duration = Duration::from_secs(1);

/// What they hold the lock for, and how often they extend it meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Work {
    pub(crate) hold: Duration,
    pub(crate) extensions: u32,
}

/// What they have done.
pub(crate) struct Round {
    pub(crate) time: Duration,
    pub(crate) tallies: Vec<Tally>,
    /// What the servers have counted in that time.
    pub(crate) counts: Counts,
}

/// Has so many processes do that for so long.
pub(crate) fn run(
    servers: &Servers,
    name: &str,
    processes: usize,
    time: Duration,
    work: Work,
) -> Result<Round, Failure> {
    let nodes = servers.nodes(Transport::Tcp);
    let start = |_| Side::start(CHILD, name, &nodes);
    let mut sides = (0..processes).map(start).collect::<Result<Vec<_>, _>>()?;
    for side in &mut sides {
        side.hear()?;
    }
    let lead = Duration::from_millis(100 + processes as u64);
    let begin = clock::shared() + lead.as_nanos() as u64;
    let count = begin + WARM_UP.as_nanos() as u64;
    let end = count + time.as_nanos() as u64;
    let shift = Shift { begin, count, end, work };
    for side in &mut sides {
        side.say(&shift.to_string())?;
    }
    sleep_until(count);
    let before = Counts::of(servers);
    sleep_until(end);
    let counts = Counts::of(servers).since(&before);
    let tally = |side: &mut Side| side.hear_line()?.parse();
    let tallies = sides.iter_mut().map(tally).collect::<Result<_, Failure>>()?;
    Ok(Round { time, tallies, counts })
}

/// Until that moment of the machine's clock.
fn sleep_until(moment: u64) {
    thread::sleep(Duration::from_nanos(moment.saturating_sub(clock::shared())));
}

impl Round {
    pub(crate) fn acquisitions(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.acquisitions).sum()
    }

    /// What one process did beside another, at most.
    pub(crate) fn spread(&self) -> f64 {
        let each = || self.tallies.iter().map(|tally| tally.acquisitions);
        let (most, least) = (each().max().unwrap_or(0), each().min().unwrap_or(0));
        most as f64 / least as f64
    }

    pub(crate) fn longest_wait(&self) -> Duration {
        Duration::from_nanos(self.tallies.iter().map(|tally| tally.longest).max().unwrap_or(0))
    }
}
