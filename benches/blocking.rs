//! What plain threads pay beside tasks: `quorlock::blocking` and the async face on a driver of its
//! own thread, the same five nodes, in turn. A record, and not a test.
//!
//! `cargo bench --bench blocking --features blocking` prints tables in Markdown; `benches/record/`
//! has those of the past. It takes about a minute. Tasks stand twice: what differs between those
//! two rows is the machine's noise.
//!
//! The floor is what waiting on a thread costs by itself: 64 threads that hand something to another
//! thread and park until that wakes them, twice a cycle, and nothing else. On a machine whose
//! processors are all busy, a cycle on threads takes at least a task's time and the floor's.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, and ends on the spot when it cannot be set up"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use quorlock::{Driver, Locker, LockerBuilder, blocking};
use support::{Fleet, tools};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 15;

/// How many cycles one caller runs in a round, and 64 callers together.
const ALONE: usize = 2_000;
const TOGETHER: usize = 19_200;
const CALLERS: usize = 64;

/// Who is measured.
const CONTENDERS: [&str; 3] = ["tasks", "tasks again", "threads"];

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let fleet = Fleet::start(5);
    let faces: [Face; 3] = [Face::tasks(&fleet), Face::tasks(&fleet), Face::threads(&fleet)];
    let mut alone: [Vec<Duration>; 3] = Default::default();
    let mut together: [Vec<f64>; 3] = Default::default();
    let mut floors = Vec::new();
    // The first round warms up.
    for round in 0..=ROUNDS {
        for turn in 0..faces.len() {
            let contender = (round + turn) % faces.len();
            let (took, rate) = (faces[contender].alone(), faces[contender].together());
            if round > 0 {
                alone[contender].extend(took);
                together[contender].push(rate);
            }
        }
        if round > 0 {
            floors.push(handovers());
        }
    }
    together.iter_mut().for_each(|rates| rates.sort_unstable_by(f64::total_cmp));
    floors.sort_unstable_by(f64::total_cmp);
    println!("| one caller | acquire, p50 | p99 | beside tasks |\n|---|---:|---:|---:|");
    let p50 = |took: &[Duration]| quantile(took, 0.50);
    alone.iter_mut().for_each(|took| took.sort_unstable());
    for (name, took) in CONTENDERS.iter().zip(&alone) {
        let ratio = p50(took) / p50(&alone[0]);
        println!("| {name} | {:.1} µs | {:.1} µs | {ratio:.2} |", p50(took), quantile(took, 0.99));
    }
    println!("\n| {CALLERS} callers | cycles/s | lowest | highest | beside tasks |");
    println!("|---|---:|---:|---:|---:|");
    let (tasks, floor) = (together[0][ROUNDS / 2], floors[ROUNDS / 2]);
    let rows = CONTENDERS.iter().zip(&together).chain([(&"floor: two waits", &floors)]);
    for (name, rates) in rows {
        let (middle, ratio) = (rates[ROUNDS / 2], rates[ROUNDS / 2] / tasks);
        let (lowest, highest) = (rates[0], rates[ROUNDS - 1]);
        println!("| {name} | {middle:.0} | {lowest:.0} | {highest:.0} | {ratio:.2} |");
    }
    let both = 1.0 / (1.0 / tasks + 1.0 / floor);
    println!("| a task's time and the floor's | {both:.0} | | | {:.2} |", both / tasks);
}

/// Of sorted times, in microseconds.
fn quantile(sorted: &[Duration], share: f64) -> f64 {
    sorted[(sorted.len() as f64 * share) as usize].as_secs_f64() * 1e6
}

/// How many cycles a second 64 threads make that wait twice in each for another thread, and do
/// nothing else.
fn handovers() -> f64 {
    let (hand, handed) = mpsc::channel::<(Thread, Arc<AtomicBool>)>();
    let waker = thread::spawn(move || {
        for (caller, is_done) in handed {
            is_done.store(true, Ordering::Release);
            caller.unpark();
        }
    });
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            let hand = hand.clone();
            scope.spawn(move || {
                let is_done = Arc::new(AtomicBool::new(false));
                for _ in 0..2 * TOGETHER / CALLERS {
                    hand.send((thread::current(), is_done.clone())).unwrap();
                    while !is_done.swap(false, Ordering::Acquire) {
                        thread::park();
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    drop(hand);
    waker.join().unwrap();
    TOGETHER as f64 / took.as_secs_f64()
}

/// A locker, and what runs its callers.
enum Face {
    Tasks { locker: Locker, one: Runtime, many: Runtime },
    Threads(blocking::Locker),
}

impl Face {
    fn builder(fleet: &Fleet) -> LockerBuilder {
        Locker::quorum(fleet.urls()).unwrap().driver(Driver::Thread)
    }

    fn tasks(fleet: &Fleet) -> Self {
        let one = Builder::new_current_thread().enable_all().build().unwrap();
        let many = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let locker = Self::builder(fleet).build().unwrap();
        one.block_on(locker.ready(Duration::from_secs(5))).unwrap();
        Self::Tasks { locker, one, many }
    }

    fn threads(fleet: &Fleet) -> Self {
        let locker = Self::builder(fleet).build_blocking().unwrap();
        locker.ready(Duration::from_secs(5)).unwrap();
        Self::Threads(locker)
    }

    /// How long each acquisition of one caller took.
    fn alone(&self) -> Vec<Duration> {
        let mut took = Vec::with_capacity(ALONE);
        match self {
            Self::Tasks { locker, one, .. } => one.block_on(async {
                for _ in 0..ALONE {
                    let began = Instant::now();
                    let guard = locker.lock("alone").await.unwrap();
                    took.push(began.elapsed());
                    assert!(guard.release().await.unwrap().is_released());
                }
            }),
            Self::Threads(locker) => {
                for _ in 0..ALONE {
                    let began = Instant::now();
                    let guard = locker.lock("alone").acquire().unwrap();
                    took.push(began.elapsed());
                    assert!(guard.release().unwrap().is_released());
                }
            }
        }
        took
    }

    /// How many cycles a second many callers make, each with a key of its own.
    fn together(&self) -> f64 {
        let keys: Vec<String> = (0..CALLERS).map(|caller| format!("together-{caller}")).collect();
        let began = Instant::now();
        match self {
            Self::Tasks { locker, many, .. } => {
                let caller = |key: String| {
                    let locker = locker.clone();
                    many.spawn(async move {
                        for _ in 0..TOGETHER / CALLERS {
                            let guard = locker.lock(&key).await.unwrap();
                            assert!(guard.release().await.unwrap().is_released());
                        }
                    })
                };
                let callers: Vec<_> = keys.into_iter().map(caller).collect();
                many.block_on(async {
                    for caller in callers {
                        caller.await.unwrap();
                    }
                });
            }
            Self::Threads(locker) => thread::scope(|scope| {
                for key in &keys {
                    scope.spawn(move || {
                        for _ in 0..TOGETHER / CALLERS {
                            let guard = locker.lock(key).acquire().unwrap();
                            assert!(guard.release().unwrap().is_released());
                        }
                    });
                }
            }),
        }
        TOGETHER as f64 / began.elapsed().as_secs_f64()
    }
}
