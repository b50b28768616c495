//! What a fence costs: the acquisition by one caller on fresh keys, cycles of 64 callers, and how
//! often the nodes had to be asked again.
//!
//! `cargo bench --bench fenced` prints tables in Markdown, on five servers, in interleaved rounds;
//! *plain* is run twice a round, so that its second row shows what two runs of the same differ by.
//! *By script* is a plain lock for servers that may forget, which a script acquires. The floors are
//! the same commands by bare sockets, in turn: what `SET` and the fences' script take without a
//! library.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it reads real time, and ends on the spot when it cannot be set up"
)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use quorlock::{Durability, Locker, LockerBuilder};
use support::{Fleet, tools};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const ACQUISITIONS: usize = 3_000;
const CYCLES: usize = 30_000;
const CALLERS: usize = 64;

const KINDS: [&str; 4] = ["plain", "plain, again", "by script", "fenced"];

/// What is sent by bare sockets.
const FLOORS: [&str; 2] = ["floor, plain", "floor, fenced"];

/// What acquires a fenced lock.
const FENCE: &str = include_str!("../src/lease/script/fence.lua");

/// `QUORLOCK_ROUNDS`, 7 without it.
fn rounds() -> usize {
    std::env::var("QUORLOCK_ROUNDS").map_or(7, |rounds| rounds.parse().unwrap())
}

fn builder(fleet: &Fleet, kind: &str) -> LockerBuilder {
    let builder = Locker::quorum(fleet.urls()).unwrap();
    match kind {
        "by script" => {
            builder.durability(Durability::Volatile { longest_ttl: Duration::from_secs(10) })
        }
        "fenced" => builder.fenced(true),
        _ => builder,
    }
}

/// A locker that is connected, and whose nodes know the scripts.
async fn locker(fleet: &Fleet, kind: &str) -> Locker {
    let locker = builder(fleet, kind).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    if kind == "by script" {
        locker.initialise().await.unwrap();
    }
    for warm in 0..100 {
        let guard = locker.lock(format!("warm-{warm}")).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
    }
    locker
}

/// The median time of an acquisition, in microseconds.
async fn one_caller(locker: &Locker, round: usize, kind: &str) -> f64 {
    let mut taken = Vec::with_capacity(ACQUISITIONS);
    for number in 0..ACQUISITIONS {
        let key = format!("{kind}-{round}-{number}");
        let began = Instant::now();
        let guard = locker.lock(&key).await.unwrap();
        taken.push(began.elapsed());
        assert!(guard.release().await.unwrap().is_released());
    }
    taken.sort_unstable();
    taken[ACQUISITIONS / 2].as_secs_f64() * 1e6
}

/// A connection to one node, without a library.
struct Bare(TcpStream);

impl Bare {
    fn connect(url: &str) -> Self {
        let address = url.strip_prefix("redis://").unwrap().trim_end_matches('/');
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// What is read first: all of a reply of one line.
    fn reply(&mut self) -> String {
        let mut bytes = [0; 256];
        let length = self.0.read(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }
}

/// Sends all nodes a command, one after the other, and waits for the replies of the first three, in
/// their order; then for the others, untimed. All must be as expected.
fn ask(nodes: &mut [Bare], words: &[&str], expected: &str) -> Duration {
    let mut command = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| command += &format!("${}\r\n{word}\r\n", word.len()));
    let began = Instant::now();
    nodes.iter_mut().for_each(|node| node.0.write_all(command.as_bytes()).unwrap());
    let (first, others) = nodes.split_at_mut(3);
    first.iter_mut().for_each(|node| assert_eq!(node.reply(), expected));
    let took = began.elapsed();
    others.iter_mut().for_each(|node| assert_eq!(node.reply(), expected));
    took
}

/// The median time of an acquisition by bare sockets, in microseconds.
fn bare(fleet: &Fleet, round: usize, kind: &str) -> f64 {
    let mut nodes: Vec<Bare> = fleet.urls().iter().map(|url| Bare::connect(url)).collect();
    let digest = support::sha1::sha1_hex(FENCE.as_bytes());
    let loaded = format!("$40\r\n{digest}\r\n");
    ask(&mut nodes, &["SCRIPT", "LOAD", FENCE], &loaded);
    let mut taken = Vec::with_capacity(ACQUISITIONS);
    for number in 0..ACQUISITIONS {
        let (key, value) = (format!("{kind}-{round}-{number}"), "0".repeat(60));
        let fence = format!("{{{key}}}:quorlock:fence");
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() + 10_000;
        let token = now.to_string();
        let set = ["SET", &key, &value, "NX", "PX", "10000"];
        let numbers = [&token, "10000000", "0", "10000"];
        let fenced = [&["EVALSHA", &digest, "2", &fence, &key, &value][..], &numbers].concat();
        taken.push(match kind == FLOORS[0] {
            true => ask(&mut nodes, &set, "+OK\r\n"),
            false => ask(&mut nodes, &fenced, ":1\r\n"),
        });
        ask(&mut nodes, &["DEL", &key], ":1\r\n");
    }
    taken.sort_unstable();
    taken[ACQUISITIONS / 2].as_secs_f64() * 1e6
}

/// Cycles a second of many callers, each with a key of its own.
async fn many_callers(locker: &Locker) -> f64 {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let (locker, key) = (locker.clone(), format!("key-{caller}"));
        tasks.spawn(async move {
            for _ in 0..CYCLES / CALLERS {
                let guard = locker.lock(&key).await.unwrap();
                assert!(guard.release().await.unwrap().is_released());
            }
        });
    }
    tasks.join_all().await;
    CYCLES as f64 / began.elapsed().as_secs_f64()
}

/// How often the node that was sent most whole scripts, and not their digests, was sent one. Behind
/// the warming up it is sent them with a second token alone.
fn asked_again(fleet: &Fleet) -> u64 {
    (0..fleet.len()).map(|node| fleet[node].calls().of("eval")).max().unwrap_or_default()
}

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut latency = vec![Vec::new(); KINDS.len() + FLOORS.len()];
    let mut cycles = vec![Vec::new(); KINDS.len()];
    let mut again = 0;
    for round in 0..rounds() {
        for (place, kind) in KINDS.iter().enumerate() {
            let fleet = Fleet::start(5);
            runtime.block_on(async {
                let locker = locker(&fleet, kind).await;
                let before = asked_again(&fleet);
                latency[place].push(one_caller(&locker, round, kind).await);
                if *kind == "fenced" {
                    again += asked_again(&fleet) - before;
                }
                cycles[place].push(many_callers(&locker).await);
            });
        }
        for (place, kind) in FLOORS.iter().enumerate() {
            latency[KINDS.len() + place].push(bare(&Fleet::start(5), round, kind));
        }
    }
    table("p50 of an acquisition by one caller on fresh keys, µs", &mut latency, 1);
    table("cycles a second, 64 callers", &mut cycles, 0);
    let acquisitions = rounds() * ACQUISITIONS;
    println!(
        "Of {acquisitions} fenced locks on fresh keys, at least all but {again} took one token."
    );
}

fn table(what: &str, figures: &mut [Vec<f64>], digits: usize) {
    println!("\n| {what} | each round sorted | middle | beside plain |\n|---|---|---:|---:|");
    let middle = |figures: &[f64]| figures[figures.len() / 2];
    figures.iter_mut().for_each(|figures| figures.sort_unstable_by(f64::total_cmp));
    let plain = middle(&figures[0]);
    for (kind, figures) in KINDS.iter().chain(&FLOORS).zip(figures) {
        let each: Vec<String> = figures.iter().map(|it| format!("{it:.digits$}")).collect();
        let middle = middle(figures);
        println!("| {kind} | {} | {middle:.digits$} | {:.3} |", each.join(" "), middle / plain);
    }
    println!();
}
