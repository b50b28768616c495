//! A lock whose holder hands nothing over: a client of another library, and a process that was
//! killed.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use socket2::Socket;

use crate::args::Args;
use crate::clock;
use crate::contest::Failure;
use crate::hand_over::{self, BRIEF, CHILD, KEY};
use crate::promise::{self, Promise};
use crate::results::Results;
use crate::servers::{Nodes, Servers, Transport};
use crate::side::Side;
use crate::stats::{Interval, bootstrap, median, paired_ratio};

/// How often a foreign holder lets go of it in a round.
const TIMES: usize = 10;

/// Keys with an end that each server has beside: it looks for those that are over by chance.
const OTHERS: u32 = 200_000;

/// Beside the hand-over between two of ours.
const RELEASED_MAX: f64 = 2.0;
/// Milliseconds after the key's end.
const KILLED_MAX_MS: f64 = 20.0;

/// Measures both.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 0), (20, 0));
    let mut chance = StdRng::seed_from_u64(plan.seed);
    let servers = Servers::start(args.nodes)?;
    let nodes = servers.nodes(Transport::Tcp);
    let mut ours = [Side::start(CHILD, "ours", &nodes)?, Side::start(CHILD, "ours", &nodes)?];
    let mut holders: [(&str, Box<dyn Holder>, Vec<f64>); 2] = [
        ("bare sockets (DEL)", Box::new(Foreign::connect(&nodes)?), Vec::new()),
        ("rslock", Box::new(Side::start(CHILD, "rslock", &nodes)?), Vec::new()),
    ];
    let mut between_two = Vec::new();
    for _ in 0..plan.rounds {
        between_two.push(median(&hand_over::round(&mut ours, 2 * TIMES, &mut chance)?));
        for (_, holder, released) in &mut holders {
            released.push(median(&round(holder.as_mut(), &mut ours[0], &mut chance)?));
        }
    }
    for reply in servers.ask_each(&["EVAL", &populate(), "0"]) {
        if reply != "OK" {
            return Err(format!("a server does not take the other keys: {reply}").into());
        }
    }
    let mut late = Vec::new();
    for _ in 0..plan.rounds {
        late.push(killed(&nodes, &mut ours[0])?);
    }
    let longest = late.iter().copied().fold(f64::MIN, f64::max);
    let mut text = format!(
        "\n## {} nodes, a holder that hands nothing over\n\n{} rounds. From the release to the \
         acquisition by a process of ours that waits, between two of ours: {:.0} µs (p50)",
        args.nodes,
        plan.rounds,
        median(&between_two)
    );
    let mut promises = Vec::new();
    for (name, _, released) in &holders {
        text += &format!("; where {name} held it: {:.0} µs", median(released));
        let what = format!("released by {name}, beside a hand-over between two of ours");
        let measured = paired_ratio(released, &between_two);
        promises.push(promise(&what, "", RELEASED_MAX, measured));
    }
    let exactly = Interval { median: longest, low: longest, high: longest };
    let killed = [("p50", bootstrap(&late)), ("the longest", exactly)];
    promises.extend(killed.map(|(which, measured)| {
        let what = format!("its holder killed, after the TTL's end: {which}");
        promise(&what, " ms", KILLED_MAX_MS, measured)
    }));
    text += &format!(
        ". A holder with a TTL of {BRIEF:?} that was killed (`kill -9`), with {OTHERS} other keys \
         with an end on each server: the waiting process has the lock {:.2} ms after the TTL's end \
         (p50), {longest:.2} ms at most, of {}; the TTL counts from before the holder asked.\n{}",
        median(&late),
        late.len(),
        promise::tabulate(&promises)
    );
    results.promised(promises);
    Ok(text)
}

fn promise(what: &str, unit: &'static str, bound: f64, measured: Interval) -> Promise {
    Promise { what: what.to_owned(), unit, bound, more_is_better: false, measured, floor: None }
}

fn populate() -> String {
    format!(
        "for n = 1, {OTHERS} do redis.call('SET', 'other-' .. n, n, 'PX', 600000 + n) end \
         return redis.status_reply('OK')"
    )
}

/// A process is killed that holds the lock: how late another one has it, in milliseconds.
fn killed(nodes: &Nodes, waiter: &mut Side) -> Result<f64, Failure> {
    let mut holder = Side::start(CHILD, "ours-brief", nodes)?;
    // It has nothing to release, and says so when it is connected.
    holder.say("r")?;
    holder.hear()?;
    let asked = clock::shared();
    holder.say("a")?;
    holder.hear()?;
    waiter.say("a")?;
    thread::sleep(Duration::from_millis(100));
    holder.kill()?;
    let acquired = waiter.hear()?;
    waiter.say("r")?;
    waiter.hear()?;
    let since_asked = Duration::from_nanos(acquired - asked);
    Ok((since_asked.as_secs_f64() - BRIEF.as_secs_f64()) * 1e3)
}

/// A client that knows of no queue.
trait Holder {
    fn take(&mut self) -> Result<(), Failure>;

    /// Begins to let go at the moment that it returns.
    fn let_go(&mut self) -> Result<u64, Failure>;
}

/// It takes the lock, and lets go of it while another process waits; how long that one then took,
/// in microseconds.
fn round(
    holder: &mut dyn Holder,
    waiter: &mut Side,
    chance: &mut StdRng,
) -> Result<Vec<f64>, Failure> {
    let mut took = Vec::new();
    for _ in 0..TIMES {
        holder.take()?;
        waiter.say("a")?;
        thread::sleep(Duration::from_micros(chance.random_range(5_000..25_000)));
        let released = holder.let_go()?;
        let acquired = waiter.hear()?;
        waiter.say("r")?;
        waiter.hear()?;
        took.push(acquired.saturating_sub(released) as f64 / 1e3);
    }
    Ok(took)
}

impl Holder for Side {
    fn take(&mut self) -> Result<(), Failure> {
        self.say("a")?;
        self.hear().map(|_| ())
    }

    fn let_go(&mut self) -> Result<u64, Failure> {
        self.say("r")?;
        self.hear()
    }
}

impl Holder for Foreign {
    fn take(&mut self) -> Result<(), Failure> {
        self.exchange(&format!("SET {KEY} foreign NX PX 10000\r\n"), "+OK\r\n")
    }

    fn let_go(&mut self) -> Result<u64, Failure> {
        let released = clock::shared();
        self.exchange(&format!("DEL {KEY}\r\n"), ":1\r\n")?;
        Ok(released)
    }
}

/// Bare sockets that know of no queue.
struct Foreign(Vec<Socket>);

impl Foreign {
    fn connect(nodes: &Nodes) -> Result<Self, Failure> {
        let sockets = nodes.endpoints.iter().map(|endpoint| {
            let socket = endpoint.connect()?;
            socket.set_read_timeout(Some(Duration::from_secs(2)))?;
            Ok(socket)
        });
        Ok(Self(sockets.collect::<std::io::Result<_>>()?))
    }

    fn exchange(&mut self, command: &str, expected: &str) -> Result<(), Failure> {
        for socket in &mut self.0 {
            socket.write_all(command.as_bytes())?;
        }
        for socket in &mut self.0 {
            let mut reply = vec![0; expected.len()];
            socket.read_exact(&mut reply)?;
            if reply != expected.as_bytes() {
                return Err(format!("a node says {}", reply.escape_ascii()).into());
            }
        }
        Ok(())
    }
}
