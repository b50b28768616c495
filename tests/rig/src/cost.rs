//! What an adoption costs: round trips and commands, without faults, every reply late.
//!
//! Each node's replies come [`LATE`] later than it gave them, so a time divided by that is a number
//! of round trips that had to wait for one another. `MONITOR` on each node counts the commands that
//! name the key; those that a script calls cross no network and are left out.

#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use quorlock::{Extend, LockGuard, Locker, OwnerToken};
use tokio::runtime::Builder;

use crate::Failure;
use crate::args::Args;
use crate::line::Source;
use crate::network::Network;
use crate::nodes::Nodes;
use crate::paths::{Path, Paths, Way};

/// How late each reply comes.
const LATE: Duration = Duration::from_millis(100);

/// How many adoptions of each source, of which the middle one counts.
const TIMES: usize = 11;

/// Far above what a command needs to be seen.
const SEEN: Duration = Duration::from_secs(5);

/// What one adoption took.
#[derive(Clone, Copy, Debug)]
struct Sample {
    took: Duration,
    /// How long the lock was still held under the old token when its adoption began.
    left: Duration,
    /// Commands to all nodes together.
    commands: usize,
}

/// Measures, and writes the table.
pub(crate) fn run(args: &Args) -> Result<String, Failure> {
    let args = Args { inside: false, ..args.clone() };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let nodes = Nodes::start(&args)?;
    let network = Network::build(false, 2, &nodes.ports(), runtime.handle())?;
    let mut paths = Paths::clear(2, args.nodes);
    let late = Way::Late(u16::try_from(LATE.as_millis())?);
    paths.add(u32::MAX, u32::MAX, Path { to: Way::Clear, from: late });
    network.apply(&paths)?;
    let (kind, [major, minor, patch]) = nodes.fleet[0].version();
    let mut text = format!(
        "{} nodes of {kind} {major}.{minor}.{patch}, each reply {LATE:?} late, TTL {:?}, {TIMES} \
         adoptions of each source, the middle one.\n\n\
         | token of | adoption took | in round trips | left of the old lease | commands a node |\n\
         |---|---:|---:|---:|---:|\n",
        args.nodes, args.ttl
    );
    for source in Source::ALL {
        let mut samples = Vec::new();
        for time in 0..TIMES {
            let urls = [network.urls(0), network.urls(1)];
            let key = format!("{}{time}", source.name());
            samples.push(runtime.block_on(measure(&args, &nodes, &urls, source, &key))?);
        }
        samples.sort_by_key(|sample| sample.took);
        let Sample { took, left, commands } = samples[TIMES / 2];
        let (trips, each) = (took.div_duration_f64(LATE), commands as f64 / args.nodes as f64);
        let name = source.name();
        writeln!(text, "| {name} | {took:.1?} | {trips:.2} | {left:.1?} | {each:.1} |")?;
    }
    runtime.shutdown_background();
    Ok(text)
}

async fn measure(
    args: &Args,
    nodes: &Nodes,
    urls: &[Vec<String>; 2],
    source: Source,
    key: &str,
) -> Result<Sample, Failure> {
    // An adopter that waits for the end of the old lease extends its own meanwhile.
    let locker = |urls: &Vec<String>, extend| {
        Locker::quorum(urls)?.ttl(args.ttl).node_timeout(LATE * 10).auto_extend(extend).build()
    };
    let giver = locker(&urls[0], Extend::Off)?;
    let adopter = locker(&urls[1], Extend::default())?;
    giver.ready(SEEN).await?;
    adopter.ready(SEEN).await?;
    // Scripts are loaded by now, as in a process that has worked for a while.
    drop(adopter.adopt(key, &OwnerToken::from(String::from("none"))).await);
    let guard = giver.lock(key).await?;
    let deadline = guard.deadline();
    let (token, living) = give(&giver, guard, source).await?;
    let monitors = nodes.ports().into_iter().map(monitor).collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let adopted = adopter.adopt(key, &token).await?;
    let took = began.elapsed();
    let left = deadline.saturating_duration_since(began);
    let mut commands = 0;
    for (seen, mut end) in monitors {
        end.write_all(b"ECHO the-end\r\n")?;
        commands += seen.recv_timeout(SEEN)?;
    }
    drop((adopted, living));
    Ok(Sample { took, left, commands })
}

/// The token of a lock that was given up, or is not.
async fn give(
    giver: &Locker,
    guard: LockGuard,
    source: Source,
) -> Result<(OwnerToken, Option<LockGuard>), Failure> {
    Ok(match source {
        Source::Forgotten => (guard.forget(), None),
        Source::Living => (guard.owner_token(), Some(guard)),
        Source::Left => {
            let token = giver.shutdown_leaving(SEEN).await?.left.swap_remove(0).token;
            (token, Some(guard))
        }
    })
}

/// Counts a node's commands until one comes that ends it, which the second connection may send.
fn monitor(port: u16) -> Result<(Receiver<usize>, TcpStream), Failure> {
    let mut watching = TcpStream::connect(("127.0.0.1", port))?;
    watching.write_all(b"MONITOR\r\n")?;
    let mut lines = BufReader::new(watching).lines();
    // Its own answer says that all that follows is seen.
    lines.next().ok_or("MONITOR got no answer")??;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let lines = lines.map_while(Result::ok).take_while(|line| !line.contains("the-end"));
        let commands = lines.filter(|line| !line.contains(" lua] ") && !line.contains("the-end"));
        // A measurement that has failed hears nothing.
        let _ = sender.send(commands.filter(|line| line.contains("] \"")).count());
    });
    Ok((receiver, TcpStream::connect(("127.0.0.1", port))?))
}
