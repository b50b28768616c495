//! Five candidates for one role, which are killed, stopped, cut off, and resign.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use quorlock::recipe::Term;
use quorlock::{Error, Held, Locker};
use support::proxy::Proxy;
use support::{Fleet, Watchdog, need_process, scratch::Scratch};

use crate::processes::{Group, Member, now, random, told};

const CANDIDATES: usize = 5;
const NODES: usize = 5;
const TTL: Duration = Duration::from_millis(600);
const LOCK_DELAY: Duration = Duration::from_millis(200);

/// How many leaders are killed in a plain run.
const KILLS: usize = 12;

/// How many reigns are looked at where none is in trouble.
const CALM: usize = 150;

/// How often a leader says that it leads.
const EVERY: Duration = Duration::from_millis(2);

/// A leader that is left alone resigns within so long.
const REIGN_MAX: u64 = 400;

/// What one process does: it stands, leads, says so, resigns, and stands again.
#[tokio::main(flavor = "current_thread")]
async fn candidate(log: &Path) {
    let urls: String = told("URLS").unwrap();
    let locker = Locker::quorum(urls.split(',')).unwrap().ttl(TTL).build().unwrap();
    let lock_delay = Duration::from_millis(told("LOCK_DELAY_MS").unwrap());
    let election = locker.elect("role").ttl(TTL).lock_delay(lock_delay);
    let log = OpenOptions::new().append(true).open(log).unwrap();
    let (log, longest) = (&log, told("REIGN_MAX_MS").unwrap());
    loop {
        let led: Result<(), Error> = if told::<bool>("BY_ELECTION").unwrap() {
            let lead = async |term: Term| {
                reign(log, longest, term.fence().number(), || term.is_valid()).await;
                Ok(())
            };
            election.lead(lead).await
        } else {
            let lead = async |held: Held| {
                // It has no fence, and all read the same clock.
                reign(log, longest, now().as_nanos() as u64, || held.is_valid()).await;
                Ok(())
            };
            locker.lock("role").wait_forever().run_async(lead).await
        };
        led.unwrap();
    }
}

/// Says that it leads for as long as it does: when that was, it reads before the lease's clocks.
async fn reign(mut log: &File, longest: u64, term: u64, leads: impl Fn() -> bool) {
    let (begun, reign) = (now(), Duration::from_millis(random(longest)));
    let mut say = |word: &str, at: Duration| {
        let line = format!("{word} {term} {} {}\n", std::process::id(), at.as_nanos());
        log.write_all(line.as_bytes()).unwrap();
    };
    while now() < begun + reign {
        let at = now();
        if leads() {
            say("leads", at);
        }
        tokio::time::sleep(EVERY).await;
    }
    let at = now();
    if leads() {
        say("resigns", at);
    }
}

/// What a leader has said: since when, until when, and whether it ended by resigning.
#[derive(Debug)]
struct Reign {
    term: u64,
    process: u32,
    first: Duration,
    last: Duration,
    resigned: bool,
}

/// What all of them have said so far.
struct Reigns {
    log: BufReader<File>,
    /// A line that is not there as a whole yet.
    begun: String,
    all: Vec<Reign>,
}

impl Reigns {
    fn of(log: &Path) -> Self {
        let log = BufReader::new(File::open(log).unwrap());
        Self { log, begun: String::new(), all: Vec::new() }
    }

    /// Reads on, and returns them in the order in which their first words were written.
    fn read(&mut self) -> &[Reign] {
        while self.log.read_line(&mut self.begun).unwrap() > 0 && self.begun.ends_with('\n') {
            let mut words = self.begun.split_whitespace();
            let mut next = || words.next().unwrap();
            let resigned = next() == "resigns";
            let [term, process, at] = [next(), next(), next()].map(|it| it.parse::<u64>().unwrap());
            let at = Duration::from_nanos(at);
            match self.all.iter_mut().rev().find(|reign| reign.term == term) {
                Some(reign) => {
                    (reign.last, reign.resigned) = (reign.last.max(at), resigned);
                    assert_eq!(u64::from(reign.process), process, "two lead by term {term}");
                }
                None => {
                    let process = u32::try_from(process).unwrap();
                    self.all.push(Reign { term, process, first: at, last: at, resigned });
                }
            }
            self.begun.clear();
        }
        &self.all
    }

    fn wait_for_more_than(&mut self, count: usize) {
        let watchdog = Watchdog::with_patience("another leader", Duration::from_secs(30));
        while self.read().len() <= count {
            watchdog.pause();
        }
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// Five candidates, each with routes of its own to five nodes, and what they say.
struct Contest {
    _fleet: Fleet,
    _directory: Scratch,
    routes: Vec<Vec<Proxy>>,
    group: Group,
    reigns: Reigns,
}

impl Contest {
    fn begin(lock_delay: Duration, by_election: bool, reign_max: u64) -> Self {
        let (fleet, directory) = (Fleet::start(NODES), Scratch::new());
        let log = directory.path().join("log");
        File::create(&log).unwrap();
        let route = || fleet.iter().map(Proxy::before).collect();
        let routes: Vec<Vec<Proxy>> = (0..CANDIDATES).map(|_| route()).collect();
        let member = |route: &Vec<Proxy>| {
            let urls: Vec<String> = route.iter().map(Proxy::url).collect();
            let told = vec![
                ("LOG", log.display().to_string()),
                ("URLS", urls.join(",")),
                ("LOCK_DELAY_MS", lock_delay.as_millis().to_string()),
                ("BY_ELECTION", by_election.to_string()),
                ("REIGN_MAX_MS", reign_max.to_string()),
            ];
            Member::start(NAME, told)
        };
        let group = Group::new(routes.iter().map(member).collect());
        Self { _fleet: fleet, routes, group, reigns: Reigns::of(&log), _directory: directory }
    }

    /// Kills leaders, so many; stops and cuts off any. Returns when each leader was killed.
    fn trouble(&mut self, kills: usize) -> Vec<(u32, Duration)> {
        let (mut killed, mut cuts) = (Vec::new(), 0);
        while killed.len() < kills {
            let seen = self.reigns.read().len();
            self.reigns.wait_for_more_than(seen);
            match random(4) {
                0 => self.group.pause_one(TTL + LOCK_DELAY),
                1 => {
                    let route = &self.routes[random(CANDIDATES as u64) as usize];
                    route.iter().for_each(Proxy::freeze);
                    std::thread::sleep(TTL + LOCK_DELAY);
                    route.iter().for_each(Proxy::thaw);
                    cuts += 1;
                }
                _ => {
                    let leader = self.reigns.read().last().unwrap();
                    let at = now();
                    if !leader.resigned && self.group.kill_process(leader.process) {
                        killed.push((leader.process, at));
                    }
                }
            }
        }
        println!("{} kills, {} pauses, {cuts} cuts", killed.len(), self.group.pauses);
        killed
    }

    /// What all have said, now that none says more.
    fn end(mut self) -> Vec<Reign> {
        self.group.end();
        self.reigns.read();
        self.reigns.all.sort_by_key(|reign| reign.first);
        self.reigns.all
    }
}

const NAME: &str = "elect::there_are_never_two_leaders_and_terms_rise";

#[test]
fn there_are_never_two_leaders_and_terms_rise() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return candidate(Path::new(&log));
    }
    // Left alone, beside five processes that take turns with a lock.
    for (by, by_election) in [("locks", false), ("elections", true)] {
        let mut contest = Contest::begin(Duration::ZERO, by_election, REIGN_MAX / 20);
        contest.reigns.wait_for_more_than(CALM);
        print!("left alone, by {by}: ");
        judge(&contest.end(), &[], Duration::ZERO);
    }
    let kills = std::env::var("QUORLOCK_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    for lock_delay in [Duration::ZERO, LOCK_DELAY] {
        let mut contest = Contest::begin(lock_delay, true, REIGN_MAX);
        let killed = contest.trouble(kills);
        judge(&contest.end(), &killed, lock_delay);
    }
}

fn judge(reigns: &[Reign], killed: &[(u32, Duration)], lock_delay: Duration) {
    let (mut resigned, mut dead) = (Vec::new(), Vec::new());
    for pair in reigns.windows(2) {
        let [old, new] = pair else { unreachable!() };
        assert!(old.last < new.first, "two leaders at once: {old:?} and {new:?}");
        assert!(old.term < new.term, "a term that does not rise: {old:?} and {new:?}");
        // Killed or lost: the lock has outlived the last word by the delay.
        assert!(old.resigned || new.first - old.last >= lock_delay, "{old:?} and {new:?}");
        let was_killed = killed.iter().find(|(process, _)| *process == old.process);
        match was_killed {
            _ if old.resigned => resigned.push(new.first - old.last),
            Some((_, at)) if new.first > *at => dead.push(new.first - *at),
            _ => {}
        }
    }
    resigned.sort();
    dead.sort();
    let [half, most] = [50, 99].map(|percent| percentile(&resigned, percent));
    println!(
        "{} reigns; {} resigned, and the next led after {half:?} (p50), {most:?} (p99)",
        reigns.len(),
        resigned.len()
    );
    if killed.is_empty() {
        return;
    }
    assert!(dead.len() > killed.len() / 2, "{} of {} were followed", dead.len(), killed.len());
    let [half, most] = [50, 100].map(|percent| percentile(&dead, percent));
    println!(
        "{} were killed, and the next led after {half:?} (p50), {most:?} (the longest); TTL \
         {TTL:?}, delay {lock_delay:?}",
        dead.len()
    );
}
