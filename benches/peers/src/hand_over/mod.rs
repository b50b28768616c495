//! From a release to the next holder's acquisition, in another process.
//!
//! Each contestant is two processes: this program, started again. Both are told over a pipe what to
//! do, and say when they did it, by the clock of the machine: so the pipe is in no figure.
//!
//! | file | owns |
//! |---|---|
//! | `child` | what such a process does |
//! | `bare` | the floor: bare sockets that wait in the same queue, with the same scripts |

mod bare;
mod child;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

pub(crate) use child::run as run_child;

use crate::contest::Failure;
use crate::servers::Nodes;

/// Who takes part. Ours stands twice: what differs between the two is chance.
const CONTESTANTS: [&str; 5] = ["floor", "ours", "ours-again", "ours-polling", "rslock"];

/// The word that starts this program as such a process.
pub(crate) const CHILD: &str = "hand-over-child";

/// How many hand-overs a contestant makes in a round.
const HAND_OVERS: usize = 20;

/// What each did: from a release to the other's acquisition, in microseconds, by rounds.
pub(crate) struct Heat {
    pub(crate) name: &'static str,
    pub(crate) rounds: Vec<Vec<f64>>,
}

/// Measures all, in rounds, each in random order.
pub(crate) fn run(nodes: &Nodes, rounds: usize, seed: u64) -> Result<Vec<Heat>, Failure> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut pairs = Vec::new();
    for name in CONTESTANTS {
        let sides = [Side::start(name, nodes)?, Side::start(name, nodes)?];
        pairs.push((Heat { name, rounds: Vec::new() }, sides));
    }
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.shuffle(&mut chance);
        for at in order {
            let (heat, sides) = &mut pairs[at];
            heat.rounds.push(round(sides, &mut chance)?);
        }
    }
    Ok(pairs.into_iter().map(|(heat, _)| heat).collect())
}

/// Two processes take the lock by turns.
fn round(sides: &mut [Side; 2], chance: &mut StdRng) -> Result<Vec<f64>, Failure> {
    let (mut took, [one, other]) = (Vec::new(), sides);
    let (mut holder, mut waiter) = (one, other);
    holder.say('a')?;
    holder.hear()?;
    for _ in 0..HAND_OVERS {
        waiter.say('a')?;
        // It waits by then, and at no moment that any pause of a poll is a multiple of.
        thread::sleep(Duration::from_micros(chance.random_range(5_000..25_000)));
        holder.say('r')?;
        let released = holder.hear()?;
        let acquired = waiter.hear()?;
        took.push((acquired.saturating_sub(released)) as f64 / 1_000.0);
        (holder, waiter) = (waiter, holder);
    }
    holder.say('r')?;
    holder.hear()?;
    Ok(took)
}

/// One process.
struct Side {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Side {
    fn start(name: &str, nodes: &Nodes) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([CHILD, name])
            .args(&nodes.urls)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or("a process without pipes")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    fn say(&mut self, what: char) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{what}")?)
    }

    /// When it did that, in nanoseconds of the machine's clock.
    fn hear(&mut self) -> Result<u64, Failure> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        line.trim().parse().map_err(|_| format!("a contestant said `{}`", line.trim()).into())
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Its input ends with this, and so does it; what it leaves behind ends with the servers.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
