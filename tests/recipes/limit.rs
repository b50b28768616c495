//! 64 callers in four processes share one limit.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorlock::Client;
use quorlock::recipe::{Limit, Taken};
use support::{Server, need_process, scratch::Scratch};

use crate::processes::{Group, Member, now, told};

const PROCESSES: u64 = 4;
const CALLERS: u64 = 16;
const COUNT: u32 = 200;
const PER: Duration = Duration::from_secs(1);
const BURST: u32 = 20;
const TIME: Duration = Duration::from_secs(4);

/// What one process does: its callers ask as fast as they can, and say what passed, and when they
/// asked and were told.
#[tokio::main(flavor = "current_thread")]
async fn process(log: &Path) {
    let url: String = told("URL").unwrap();
    let limit = Limit::new(Client::new(url.as_str()).unwrap(), "k", COUNT, PER).unwrap();
    let limit = limit.burst(BURST).unwrap();
    let log = Arc::new(OpenOptions::new().append(true).open(log).unwrap());
    let end = now() + TIME;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (limit, log) = (limit.clone(), Arc::clone(&log));
        callers.spawn(async move {
            while now() < end {
                let asked = now();
                if let Taken::Passed { .. } = limit.take().await.unwrap() {
                    let line = format!("{} {}\n", asked.as_micros(), now().as_micros());
                    (&*log).write_all(line.as_bytes()).unwrap();
                }
            }
        });
    }
    callers.join_all().await;
}

#[test]
fn callers_in_four_processes_never_exceed_the_rate_by_more_than_the_burst() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return process(Path::new(&log));
    }
    let (server, directory) = (Server::start(), Scratch::new());
    let log = directory.path().join("log");
    File::create(&log).unwrap();
    let member = |_| {
        let name = "limit::callers_in_four_processes_never_exceed_the_rate_by_more_than_the_burst";
        Member::start(name, vec![("LOG", log.display().to_string()), ("URL", server.url())])
    };
    Group::new((0..PROCESSES).map(member).collect()).join(Duration::from_secs(60));

    let text = std::fs::read_to_string(&log).unwrap();
    let micros = |line: &str| {
        let (asked, told) = line.split_once(' ').unwrap();
        (asked.parse().unwrap(), told.parse().unwrap())
    };
    let mut passed: Vec<(u64, u64)> = text.lines().map(micros).collect();
    passed.sort_unstable();
    // The server has let each of them pass at some time between the two.
    for (first, (begin, _)) in passed.iter().enumerate() {
        let mut ends: Vec<u64> = passed[first..].iter().map(|(_, told)| *told).collect();
        ends.sort_unstable();
        for (count, end) in (1_u64..).zip(ends) {
            let rate = (end - begin) * u64::from(COUNT) / PER.as_micros() as u64;
            let most = u64::from(BURST) + rate + 1;
            assert!(count <= most, "{count} in {} us, where {most} may pass", end - begin);
        }
    }
    println!("{} passed in {TIME:?}", passed.len());
    // How many is for a record; that it goes on behind the burst, for this.
    assert!(passed.len() > 2 * BURST as usize, "too few passed: {}", passed.len());
}
