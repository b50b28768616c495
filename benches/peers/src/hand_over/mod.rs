//! From a release to the next holder's acquisition, in another process.
//!
//! Each contestant is two processes: this program, started again. Both are told over a pipe what to
//! do, and say when they did it, by the clock of the machine: so the pipe is in no figure.
//!
//! | file | owns |
//! |---|---|
//! | `child` | what such a process does |
//! | `foreign` | the same of clients in other languages |
//! | `bare` | the floor: bare sockets that wait in the same queue, with the same scripts |

mod bare;
mod child;
mod foreign;

use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

pub(crate) use bare::Bare;
pub(crate) use child::{BRIEF, KEY, run as run_child};
pub(crate) use foreign::Foreign;

use crate::contest::Failure;
use crate::servers::Nodes;
use crate::side::Side;

/// Who takes part. Ours stands twice: what differs between the two is chance.
pub(crate) const CONTESTANTS: [&str; 9] = [
    "floor",
    "ours",
    "ours-again",
    "ours-fair",
    "ours-strict",
    "ours-polling",
    "rslock",
    Foreign::NodeRedlock.name(),
    Foreign::Pottery.name(),
];

/// The word that starts this program as such a process.
pub(crate) const CHILD: &str = "hand-over-child";

/// How many hand-overs a contestant makes in a round: one that is woken, and one that polls.
const HAND_OVERS: usize = 100;
const HAND_OVERS_POLLED: usize = 20;

/// What each did: from a release to the other's acquisition, in microseconds, by rounds.
pub(crate) struct Heat {
    pub(crate) name: &'static str,
    pub(crate) rounds: Vec<Vec<f64>>,
}

/// Measures these, in rounds, each in random order.
pub(crate) fn run(
    nodes: &Nodes,
    contestants: &[&'static str],
    rounds: usize,
    seed: u64,
) -> Result<Vec<Heat>, Failure> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut pairs = Vec::new();
    for name in contestants {
        let sides = [start(name, nodes)?, start(name, nodes)?];
        pairs.push((Heat { name, rounds: Vec::new() }, sides));
    }
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.shuffle(&mut chance);
        for at in order {
            let (heat, sides) = &mut pairs[at];
            let is_foreign = Foreign::of(heat.name).is_some();
            let polls = is_foreign || matches!(heat.name, "ours-polling" | "rslock");
            let times = if polls { HAND_OVERS_POLLED } else { HAND_OVERS };
            heat.rounds.push(round(sides, times, &mut chance)?);
        }
    }
    Ok(pairs.into_iter().map(|(heat, _)| heat).collect())
}

/// Starts a process of this contestant.
pub(crate) fn start(name: &str, nodes: &Nodes) -> Result<Side, Failure> {
    match Foreign::of(name) {
        Some(library) => Side::of(library.command(nodes)?),
        None => Side::start(CHILD, name, nodes),
    }
}

/// Two processes take the lock by turns, so many times.
pub(crate) fn round(
    sides: &mut [Side; 2],
    times: usize,
    chance: &mut StdRng,
) -> Result<Vec<f64>, Failure> {
    let (mut took, [one, other]) = (Vec::new(), sides);
    let (mut holder, mut waiter) = (one, other);
    holder.say("a")?;
    holder.hear()?;
    for _ in 0..times {
        waiter.say("a")?;
        // It waits by then, and at no moment that any pause of a poll is a multiple of.
        thread::sleep(Duration::from_micros(chance.random_range(5_000..25_000)));
        holder.say("r")?;
        let released = holder.hear()?;
        let acquired = waiter.hear()?;
        took.push((acquired.saturating_sub(released)) as f64 / 1_000.0);
        (holder, waiter) = (waiter, holder);
    }
    holder.say("r")?;
    holder.hear()?;
    Ok(took)
}
