//! A lock that many tasks of one process want: from one to the next, and all of them together.

#![expect(clippy::disallowed_methods, reason = "a benchmark's callers are tasks of its own")]

use std::time::Duration;

use quorlock::{LockGuard, Locker};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use tokio::task::JoinSet;

use crate::args::Args;
use crate::clock;
use crate::contest::{Failure, Runtime, TTL, label};
use crate::crowd::Counts;
use crate::promise::{self, Promise};
use crate::results::{Kind, Results};
use crate::servers::{Servers, Transport};
use crate::stats::{Interval, bootstrap, median, paired_ratio};
use crate::table;

const KEY: &str = "line";
/// With `local_handover`, by a locker of its own: what others know of a key is not in its way.
const HANDED_ON_KEY: &str = "line-handed-on";

/// How long the nodes may take to be connected.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a task waits for all those before it.
const WAIT: Duration = Duration::from_secs(60);

/// How often the lock changes hands in a round.
const TIMES: usize = 50;

/// How long the first holder keeps the lock before it changes hands: a lock is handed on without
/// the nodes when all of them have answered, and not only a majority.
const SETTLING: Duration = Duration::from_millis(5);

/// Tasks that come at once.
const TASKS: usize = 1_000;

/// Requests that come at once, and how long each works with the lock.
const REQUESTS: usize = 200;
const WORK: Duration = Duration::from_micros(6_500);

/// Beside a release and the acquisition behind it.
const HAND_OVER_MAX: f64 = 1.1;
/// Without asking the nodes, in microseconds.
const HAND_ON_MAX_US: f64 = 5.0;
/// Beside the work of all.
const REQUESTS_MAX: f64 = 1.05;
/// Of 1,000 tasks: each asks each node once and releases once, if only one tries at a time.
const COMMANDS_MAX: f64 = 14.0;

/// What is measured in a round, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// From a release to the next task's acquisition.
    HandedOver,
    /// The same, with `local_handover`: no node is asked.
    HandedOn,
    /// A release, and an acquisition when that has been confirmed, by one task.
    OneByOne,
    /// That again: what differs is chance.
    OneByOneAgain,
}

const PARTS: [Part; 4] = [Part::HandedOver, Part::HandedOn, Part::OneByOne, Part::OneByOneAgain];

/// On both runtimes.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 0), (20, 0));
    let servers = Servers::start(args.nodes)?;
    let mut chance = StdRng::seed_from_u64(plan.seed);
    let mut rows = Vec::new();
    let mut promises = Vec::new();
    for runtime in [Runtime::Current, Runtime::Multi] {
        let figures = Figures::measure(&servers, runtime, plan.rounds, &mut chance)?;
        let who = label("ours", runtime);
        promises.extend(figures.promises(&who));
        rows.push(figures.row(&who));
        results.note(Kind::Figure, format!("{who}, {TASKS} tasks, cycles/s"), figures.tasks);
    }
    let head = [
        "runtime",
        "to the next task, p50 µs",
        "p99 µs",
        "with local_handover, p50 µs",
        "release and acquire, p50 µs",
        "again",
        "1,000 tasks, cycles/s",
        "200 requests, beyond their work, ms",
        "one after another",
        "their work, ms",
    ];
    let text = format!(
        "\n## {} nodes, many tasks of one process that want one lock\n\n{} rounds of {TIMES} \
         hand-overs between two tasks, and as many releases and acquisitions of one task; \
         {TASKS} tasks that come at once and hold the lock for a moment each; {REQUESTS} requests \
         that come at once and work {WORK:?} each with the lock (as measured: in a thread that \
         sleeps). The floor of these requests: one after another, so that none waits.\n\n{}{}",
        args.nodes,
        plan.rounds,
        table::align(&head, &rows),
        promise::tabulate(&promises)
    );
    results.promised(promises);
    Ok(text)
}

struct Figures {
    /// Of each part the middle of each round.
    p50: [Vec<f64>; PARTS.len()],
    /// Of each part all hand-overs, sorted.
    all: [Vec<f64>; PARTS.len()],
    tasks: Interval,
    /// What the servers were asked for each of those.
    commands: Interval,
    /// The time of all requests beyond what they have worked, and that, in milliseconds.
    requests: Vec<[f64; 2]>,
    /// The same with `local_handover`.
    requests_handed_on: Vec<[f64; 2]>,
    /// The same where each comes when the one before it is done.
    in_sequence: Vec<[f64; 2]>,
}

impl Figures {
    fn measure(
        servers: &Servers,
        runtime: Runtime,
        rounds: usize,
        chance: &mut StdRng,
    ) -> Result<Self, Failure> {
        let nodes = servers.nodes(Transport::Tcp);
        let mut builder = match runtime {
            Runtime::Multi => tokio::runtime::Builder::new_multi_thread(),
            _ => tokio::runtime::Builder::new_current_thread(),
        };
        let tokio = builder.worker_threads(2).enable_all().build()?;
        let locker = Locker::quorum(&nodes.urls)?.ttl(TTL).build()?;
        let handing_on = Locker::quorum(&nodes.urls)?.ttl(TTL).local_handover(TTL).build()?;
        tokio.block_on(locker.ready(PATIENCE))?;
        tokio.block_on(handing_on.ready(PATIENCE))?;
        let (mut p50, mut all) = <([Vec<f64>; 4], [Vec<f64>; 4])>::default();
        let (mut tasks, mut commands) = (Vec::new(), Vec::new());
        let mut requests_handed_on = Vec::new();
        let (mut requests, mut in_sequence) = (Vec::new(), Vec::new());
        let mut order = [0, 1, 2, 3];
        for round in 0..=rounds {
            order.shuffle(chance);
            for at in order {
                let locker = if PARTS[at] == Part::HandedOn { &handing_on } else { &locker };
                let task = tokio.spawn(hand_overs(locker.clone(), PARTS[at]));
                let took = tokio.block_on(task)??;
                // The first round warms up, and brings the servers the scripts.
                if round > 0 {
                    p50[at].push(median(&took));
                    all[at].extend(took);
                }
            }
        }
        for _ in 0..rounds.div_ceil(4) {
            let before = Counts::of(servers);
            tasks.push(tokio.block_on(tokio.spawn(many(locker.clone())))??);
            commands.push(Counts::of(servers).since(&before).sent() as f64 / TASKS as f64);
            requests.push(tokio.block_on(tokio.spawn(serve(locker.clone())))??);
            let handed_on = serve(handing_on.clone());
            requests_handed_on.push(tokio.block_on(tokio.spawn(handed_on))??);
            in_sequence.push(tokio.block_on(tokio.spawn(serve_in_sequence(locker.clone())))??);
        }
        all.iter_mut().for_each(|took| took.sort_unstable_by(f64::total_cmp));
        let [tasks, commands] = [tasks, commands].map(|each| bootstrap(&each));
        Ok(Self { p50, all, tasks, commands, requests, requests_handed_on, in_sequence })
    }

    fn row(&self, who: &str) -> [String; 10] {
        let p50 = |part: Part| format!("{:.1}", median(&self.p50[part as usize]));
        let all = &self.all[Part::HandedOver as usize];
        let middle = |all: &[[f64; 2]], at: usize| {
            format!("{:.1}", median(&all.iter().map(|it| it[at]).collect::<Vec<_>>()))
        };
        [
            who.to_owned(),
            p50(Part::HandedOver),
            format!("{:.1}", all[all.len() * 99 / 100]),
            p50(Part::HandedOn),
            p50(Part::OneByOne),
            p50(Part::OneByOneAgain),
            format!("{:.0}", self.tasks.median),
            middle(&self.requests, 0),
            middle(&self.in_sequence, 0),
            middle(&self.requests, 1),
        ]
    }

    fn promises(&self, who: &str) -> [Promise; 6] {
        let beside_one =
            |part: Part| paired_ratio(&self.p50[part as usize], &self.p50[Part::OneByOne as usize]);
        let beside_work = |all: &[[f64; 2]]| {
            let [beyond, work] = [0, 1].map(|at| all.iter().map(|it| it[at]).collect::<Vec<_>>());
            let all: Vec<f64> =
                beyond.iter().zip(&work).map(|(beyond, work)| beyond + work).collect();
            paired_ratio(&all, &work)
        };
        let promise = |what: &str, bound, measured| Promise {
            what: format!("{who}: {what}"),
            unit: "",
            bound,
            more_is_better: false,
            measured,
            floor: None,
        };
        let to_next = "to the next task, beside a release and an acquisition";
        [
            promise(to_next, HAND_OVER_MAX, beside_one(Part::HandedOver)),
            Promise {
                unit: " µs",
                ..promise(
                    "to the next task with `local_handover`",
                    HAND_ON_MAX_US,
                    bootstrap(&self.p50[Part::HandedOn as usize]),
                )
            },
            promise(
                "a release and an acquisition, measured again",
                HAND_OVER_MAX,
                beside_one(Part::OneByOneAgain),
            ),
            promise("1,000 tasks: commands each", COMMANDS_MAX, self.commands),
            Promise {
                // Without anyone who waits.
                floor: Some(beside_work(&self.in_sequence).median),
                ..promise(
                    "200 requests beside their work",
                    REQUESTS_MAX,
                    beside_work(&self.requests),
                )
            },
            promise(
                "200 requests with `local_handover` beside their work",
                REQUESTS_MAX,
                beside_work(&self.requests_handed_on),
            ),
        ]
    }
}

async fn acquire(locker: &Locker, key: &str) -> Result<LockGuard, Failure> {
    Ok(locker.lock(key).wait(WAIT).await?)
}

async fn release(guard: LockGuard) -> Result<(), Failure> {
    let found = guard.release().await?;
    if found.is_released() { Ok(()) } else { Err(format!("not released: {found:?}").into()) }
}

/// How long each took, in microseconds.
async fn hand_overs(locker: Locker, part: Part) -> Result<Vec<f64>, Failure> {
    let key = if part == Part::HandedOn { HANDED_ON_KEY } else { KEY };
    let mut took = Vec::new();
    let mut guard = acquire(&locker, key).await?;
    tokio::time::sleep(SETTLING).await;
    for _ in 0..TIMES {
        let is_to_next = matches!(part, Part::HandedOver | Part::HandedOn);
        let next = is_to_next.then(|| {
            let locker = locker.clone();
            tokio::spawn(async move {
                acquire(&locker, key).await.map(|guard| (clock::shared(), guard))
            })
        });
        while next.is_some() && locker.stats().waiting == 0 {
            tokio::task::yield_now().await;
        }
        let began = clock::shared();
        release(guard).await?;
        let ended;
        (ended, guard) = match next {
            Some(next) => next.await??,
            None => {
                let guard = acquire(&locker, key).await?;
                (clock::shared(), guard)
            }
        };
        took.push((ended - began) as f64 / 1e3);
    }
    release(guard).await?;
    Ok(took)
}

/// Tasks that come at once: how often the lock changes hands each second.
async fn many(locker: Locker) -> Result<f64, Failure> {
    let began = clock::now();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let locker = locker.clone();
        tasks.spawn(async move { release(acquire(&locker, KEY).await?).await });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(TASKS as f64 / began.elapsed().as_secs_f64())
}

/// Requests that come at once: how long they took beyond what they worked, and that.
async fn serve(locker: Locker) -> Result<[f64; 2], Failure> {
    let began = clock::now();
    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        requests.spawn(request(locker.clone()));
    }
    let mut worked = Duration::ZERO;
    while let Some(done) = requests.join_next().await {
        worked += done??;
    }
    Ok([began.elapsed() - worked, worked].map(|time| time.as_secs_f64() * 1e3))
}

/// The same of requests that come one after another, so that none waits.
async fn serve_in_sequence(locker: Locker) -> Result<[f64; 2], Failure> {
    let began = clock::now();
    let mut worked = Duration::ZERO;
    for _ in 0..REQUESTS {
        worked += request(locker.clone()).await?;
    }
    Ok([began.elapsed() - worked, worked].map(|time| time.as_secs_f64() * 1e3))
}

/// How long it has worked.
async fn request(locker: Locker) -> Result<Duration, Failure> {
    let guard = acquire(&locker, KEY).await?;
    let began = clock::now();
    // A timer of the runtime's would be late by up to a millisecond.
    tokio::task::spawn_blocking(|| std::thread::sleep(WORK)).await?;
    let worked = began.elapsed();
    release(guard).await?;
    Ok(worked)
}
