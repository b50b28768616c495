//! Many callers of one key that may share it: readers and writers beside one lock, and slots beside
//! the semaphore of the npm package `redis-semaphore`. A record, and not a test.
//!
//! `cargo bench -p quorlock --bench many` prints two tables in Markdown, on five servers; with five
//! rounds of five seconds for each row it takes under four minutes. `QUORLOCK_ROUNDS` sets another
//! number of rounds. The one lock and the slots stand twice: what differs between such two rows is
//! the machine's noise. A caller holds for 5 ms, lets go, and asks again. One that still waits when
//! a round ends counts with what it has waited so far.
//!
//! The callers on `redis-semaphore` are a process of Node.js (`benches/many.cjs`), where that is
//! installed and `tests/rig/tools` has fetched the package; else its row says why it is absent. As
//! ours they are 64 on eight sets of connections. Segments beside one lock are in
//! `benches/segments.rs`.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, runs callers as tasks, and ends when it cannot be set up"
)]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorlock::Locker;
use support::{Fleet, tools};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The lockers, each as in a process of its own, and the callers of all of them.
const LOCKERS: usize = 8;
const CALLERS: usize = 64;

/// These come first. Under slots and one lock they are callers like the others.
const WRITERS: usize = 8;

const SLOTS: u16 = 16;
const HOLD: Duration = Duration::from_millis(5);
const ROUND: Duration = Duration::from_secs(5);

/// Long enough to connect and warm up, behind a round.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the callers hold the key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lock,
    ReadersAndWriters,
    Slots,
    Semaphore,
}

use Kind::*;

const CONTENDERS: [(&str, Kind); 6] = [
    ("one lock", Lock),
    ("one lock, again", Lock),
    ("readers and writers", ReadersAndWriters),
    ("16 slots", Slots),
    ("16 slots, again", Slots),
    ("`redis-semaphore`, 16 permits", Semaphore),
];

/// The rows of each table, of which the first is what the others stand beside.
const TABLES: [&[usize]; 2] = [&[0, 1, 2], &[3, 4, 5]];

/// What came of a round.
#[derive(Clone, Copy, Default)]
struct Round {
    acquired: u64,
    /// The longest wait of a writer, and of any other; where a process tells one wait, both are it.
    longest: [Duration; 2],
    /// How many held the key at most at once.
    most: u64,
}

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let rounds = std::env::var("QUORLOCK_ROUNDS").ok().map_or(5, |rounds| rounds.parse().unwrap());
    let fleet = Fleet::start(5);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut results = CONTENDERS.map(|_| Ok(Vec::new()));
    let lockers = runtime.block_on(async {
        let mut lockers = Vec::new();
        for _ in 0..LOCKERS {
            let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
            locker.ready(Duration::from_secs(5)).await.unwrap();
            lockers.push(locker);
        }
        // The servers get the scripts.
        for kind in [Lock, ReadersAndWriters, Slots] {
            play(&lockers, kind, "warm", ROUND / 20).await;
        }
        lockers
    });
    for round in 0..rounds {
        for turn in 0..CONTENDERS.len() {
            let index = (round + turn) % CONTENDERS.len();
            let (kind, key) = (CONTENDERS[index].1, format!("many-{round}-{turn}"));
            let Ok(all) = &mut results[index] else { continue };
            let played = match kind {
                Semaphore => semaphore(&fleet, &key),
                _ => Ok(runtime.block_on(play(&lockers, kind, &key, ROUND))),
            };
            match played {
                Ok(round) => all.push(round),
                Err(why) => results[index] = Err(why),
            }
        }
    }
    TABLES.iter().for_each(|rows| table(rows, &results));
}

/// Has all callers take the key and let go of it for so long.
async fn play(lockers: &[Locker], kind: Kind, key: &str, length: Duration) -> Round {
    static HELD: AtomicU64 = AtomicU64::new(0);
    static MOST: AtomicU64 = AtomicU64::new(0);
    let end = Instant::now() + length;
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        // A writer on each locker, and seven others.
        let (locker, key) = (lockers[caller % LOCKERS].clone(), key.to_owned());
        callers.spawn(async move {
            let (mut acquired, mut longest) = (0, Duration::ZERO);
            loop {
                let request = match kind {
                    ReadersAndWriters if caller >= WRITERS => locker.read(&key),
                    Slots => locker.slots(&key, SLOTS).acquire(),
                    _ => locker.lock(&key),
                };
                let began = Instant::now();
                let left = end.saturating_duration_since(began);
                let got = timeout(left, request.wait_forever().into_future()).await;
                longest = longest.max(began.elapsed());
                let Ok(guard) = got else { return (caller, acquired, longest) };
                let guard = guard.unwrap();
                acquired += 1;
                // Ordering: counters, read by the one thread that the callers run on.
                MOST.fetch_max(HELD.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(HOLD).await;
                HELD.fetch_sub(1, Ordering::Relaxed);
                assert!(guard.release().await.unwrap().is_released());
            }
        });
    }
    let mut round = Round::default();
    for (caller, acquired, longest) in callers.join_all().await {
        round.acquired += acquired;
        let of_its_sort = &mut round.longest[usize::from(caller >= WRITERS)];
        *of_its_sort = longest.max(*of_its_sort);
    }
    round.most = MOST.swap(0, Ordering::Relaxed);
    round
}

/// The same by `redis-semaphore`, or why not.
fn semaphore(fleet: &Fleet, key: &str) -> Result<Round, String> {
    let node = tools::on_path("node").ok_or("no Node.js")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join("target/rig/node");
    if !packages.join("node_modules/redis-semaphore").is_dir() {
        return Err("no redis-semaphore (run tests/rig/tools)".into());
    }
    let mut command = Command::new("timeout");
    command.arg((ROUND + PATIENCE).as_secs().to_string()).arg(node);
    command.arg(root.join("benches/many.cjs")).arg(packages).arg(key);
    let numbers = [LOCKERS, CALLERS, SLOTS.into()].map(|number| number as u128);
    let numbers = numbers.into_iter().chain([HOLD, ROUND].map(|time| time.as_millis()));
    let output = command.args(numbers.map(|number| number.to_string())).args(fleet.urls()).output();
    let output = output.map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stdout);
    let told: Vec<u64> = told.split_whitespace().flat_map(str::parse).collect();
    let [acquired, longest, most] = told[..] else {
        let errors = String::from_utf8_lossy(&output.stderr);
        let error = errors.lines().find(|line| line.contains("Error")).unwrap_or_default();
        return Err(format!("it failed, {}: {error}", output.status));
    };
    let longest = Duration::from_micros(longest);
    Ok(Round { acquired, longest: [longest; 2], most })
}

fn table(rows: &[usize], results: &[Result<Vec<Round>, String>]) {
    let rates = |rounds: &[Round]| {
        let rate = |round: &Round| round.acquired as f64 / ROUND.as_secs_f64();
        let mut rates: Vec<f64> = rounds.iter().map(rate).collect();
        rates.sort_unstable_by(f64::total_cmp);
        rates
    };
    let middle = |rates: &[f64]| rates[rates.len() / 2];
    let first = results[rows[0]].as_ref().map(|rounds| middle(&rates(rounds))).unwrap();
    println!(
        "| 5 nodes, {CALLERS} callers, {HOLD:?} | a second | least and most | beside the first \
         | longest wait of {WRITERS} | of the other {} | most at once |",
        CALLERS - WRITERS,
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for index in rows {
        let name = CONTENDERS[*index].0;
        let rounds = match &results[*index] {
            Ok(rounds) => rounds,
            Err(why) => {
                println!("| {name} | absent: {why} | | | | | |");
                continue;
            }
        };
        let rates = rates(rounds);
        let longest = |sort: usize| {
            let longest = rounds.iter().map(|round| round.longest[sort]).max().unwrap_or_default();
            format!("{:.0} ms", longest.as_secs_f64() * 1e3)
        };
        println!(
            "| {name} | {:.0} | {:.0} to {:.0} | {:.2} | {} | {} | {} |",
            middle(&rates),
            rates[0],
            rates[rates.len() - 1],
            middle(&rates) / first,
            longest(0),
            longest(1),
            rounds.iter().map(|round| round.most).max().unwrap_or_default(),
        );
    }
    println!();
}
