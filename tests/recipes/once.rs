//! Sixteen replicas run the ticks of one schedule by clocks that are up to four seconds apart.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorlock::Locker;
use support::{Fleet, need_server, scratch::Scratch};

use crate::processes::{Group, Member, now, random, told};

const REPLICAS: u64 = 16;
const TICKS: u64 = 200;
const EVERY: Duration = Duration::from_millis(100);

/// A replica's clock is off by no more than this, to either side.
const CLOCKS_OFF: Duration = Duration::from_secs(2);

/// Above all by which one replica may be later than another: their clocks, a pause, a busy machine.
const AT_LEAST: Duration = Duration::from_secs(10);
const AT_MOST: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(400);

/// What one process does: it runs each tick that is due by its own clock, unless another does.
#[tokio::main(flavor = "current_thread")]
async fn replica(log: &Path) {
    let urls: String = told("URLS").unwrap();
    let locker = Locker::quorum(urls.split(',')).unwrap().build().unwrap();
    let (late, at_least): (u64, u64) = (told("LATE_MS").unwrap(), told("AT_LEAST_MS").unwrap());
    let begin = Duration::from_millis(told("BEGIN_MS").unwrap());
    let log = Arc::new(OpenOptions::new().append(true).open(log).unwrap());
    let mut ticks = tokio::task::JoinSet::new();
    for tick in 0..told("TICKS").unwrap() {
        let due = begin + EVERY * u32::try_from(tick).unwrap() + Duration::from_millis(late);
        let Some(wait) = due.checked_sub(now()) else { continue };
        tokio::time::sleep(wait).await;
        let once = locker.once(format!("tick:{tick}")).at_most(AT_MOST);
        let once = once.at_least(Duration::from_millis(at_least));
        let log = Arc::clone(&log);
        ticks.spawn(once.run(move |_held| note(log, tick)));
    }
    for ran in ticks.join_all().await {
        ran.unwrap();
    }
}

/// The job, which takes next to no time: a line in one write.
async fn note(log: Arc<File>, tick: u64) -> Result<(), quorlock::Error> {
    (&*log).write_all(format!("{tick}\n").as_bytes()).unwrap();
    Ok(())
}

/// How often each tick was run.
struct Outcome {
    runs: BTreeMap<u64, usize>,
    /// Those whose lock a process holds that was killed: it may have died before its job.
    cut_short: usize,
    kills: usize,
    pauses: usize,
}

fn run_all(test: &'static str, ticks: u64, at_least: Duration) -> Outcome {
    let (fleet, directory) = (Fleet::start(5), Scratch::new());
    let log = directory.path().join("log");
    File::create(&log).unwrap();
    // All have started by then.
    let begin = now() + Duration::from_secs(2);
    let range = 2 * CLOCKS_OFF.as_millis() as u64;
    let member = |number: u64| {
        let told = vec![
            ("LOG", log.display().to_string()),
            ("URLS", fleet.urls().join(",")),
            ("TICKS", ticks.to_string()),
            ("AT_LEAST_MS", at_least.as_millis().to_string()),
            ("BEGIN_MS", begin.as_millis().to_string()),
            // The first and the last are as far apart as may be.
            ("LATE_MS", (range * number / (REPLICAS - 1)).to_string()),
        ];
        Member::start(test, told)
    };
    let mut group = Group::new((0..REPLICAS).map(member).collect());
    let end = begin + EVERY * u32::try_from(ticks).unwrap() + 2 * CLOCKS_OFF;
    while now() < end {
        match random(2) {
            0 => group.kill_one(),
            _ => group.pause_one(PAUSE),
        }
        std::thread::sleep(Duration::from_millis(random(800)));
    }
    group.join(Duration::from_secs(60));

    let mut runs: BTreeMap<u64, usize> = (0..ticks).map(|tick| (tick, 0)).collect();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        *runs.get_mut(&line.parse().unwrap()).unwrap() += 1;
    }
    let is_cut_short = |tick: &u64| {
        let owner = fleet.command(&["GET", &format!("tick:{tick}")]);
        let is_of =
            |pid: &u32| owner.iter().any(|it| format!("{it:?}").contains(&format!(":{pid}")));
        group.killed.iter().any(is_of)
    };
    let not_run = runs.iter().filter(|(_, runs)| **runs == 0).map(|(tick, _)| tick);
    let cut_short = not_run.filter(|tick| is_cut_short(tick)).count();
    Outcome { runs, cut_short, kills: group.killed.len(), pauses: group.pauses }
}

/// Ticks that were run more than once, and those that none ran, though a replica lived that had to.
fn wrong(outcome: &Outcome) -> (usize, usize) {
    let count =
        |is_meant: fn(usize) -> bool| outcome.runs.values().filter(|runs| is_meant(**runs)).count();
    (count(|runs| runs > 1), count(|runs| runs == 0) - outcome.cut_short)
}

#[test]
fn each_tick_is_run_once_though_clocks_differ_and_replicas_die() {
    need_server!();
    if let Some(log) = told::<String>("LOG") {
        return replica(Path::new(&log));
    }
    let name = "once::each_tick_is_run_once_though_clocks_differ_and_replicas_die";
    let outcome = run_all(name, TICKS, AT_LEAST);
    let Outcome { cut_short, kills, pauses, .. } = outcome;
    println!("{TICKS} ticks, {kills} kills, {pauses} pauses, {cut_short} cut short by a kill");
    assert_eq!(wrong(&outcome), (0, 0), "{:?}", outcome.runs);
    assert!(kills > 5 && pauses > 5, "{kills} kills and {pauses} pauses");
}

/// What the minimum is for: the same, with a lock that ends with its job.
#[test]
fn without_a_minimum_the_same_replicas_run_ticks_again() {
    need_server!();
    if let Some(log) = told::<String>("LOG") {
        return replica(Path::new(&log));
    }
    let name = "once::without_a_minimum_the_same_replicas_run_ticks_again";
    let outcome = run_all(name, 10, Duration::ZERO);
    let (again, _) = wrong(&outcome);
    assert_eq!(again, 10, "each tick by each that was late: {:?}", outcome.runs);
}
