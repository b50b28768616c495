//! Requests that each of eight processes repeats, while processes are killed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorlock::recipe::Done;
use quorlock::{Client, Locker};
use support::{Fleet, Server, need_process, scratch::Scratch};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::processes::{Group, Member, told};

const PROCESSES: u64 = 8;
const REQUESTS: u32 = 1_000;
const KILLS: usize = 20;

/// How many requests a process has under way.
const AT_ONCE: usize = 4;

const KEEP: Duration = Duration::from_secs(600);

/// Above the TTL of one that was killed, many times.
const WAIT: Duration = Duration::from_secs(60);

type Error = Box<dyn std::error::Error + Send + Sync>;

fn locker(urls: &str) -> Locker {
    let ttl = Duration::from_millis(800);
    Locker::quorum(urls.split(',')).unwrap().ttl(ttl).build().unwrap()
}

/// What one process does: it brings all requests, in their order.
#[tokio::main(flavor = "current_thread")]
async fn process(log: &Path) {
    let (urls, store): (String, String) = (told("URLS").unwrap(), told("STORE").unwrap());
    let (locker, client) = (locker(&urls), Client::new(store.as_str()).unwrap());
    let client = client.timeout(Duration::from_secs(5));
    let log = Arc::new(OpenOptions::new().append(true).open(log).unwrap());
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut requests = JoinSet::new();
    for request in 0..REQUESTS {
        let permit = Arc::clone(&room).acquire_owned().await.unwrap();
        let idempotent = locker.idempotent(&client, format!("request:{request}"), KEEP).wait(WAIT);
        let log = Arc::clone(&log);
        requests.spawn(async move {
            let _permit = permit;
            idempotent.run::<_, _, Error>(|| effect(log, request)).await.unwrap();
        });
    }
    requests.join_all().await;
}

/// A line in one write; the outcome is its process.
async fn effect(log: Arc<File>, request: u32) -> Result<Vec<u8>, Error> {
    let process = std::process::id().to_string();
    tokio::time::sleep(Duration::from_millis(20)).await;
    (&*log).write_all(format!("{request} {process}\n").as_bytes()).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(process.into_bytes())
}

#[test]
fn each_request_has_one_effect_or_is_unknown_though_processes_die() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return process(Path::new(&log));
    }
    let (fleet, store, directory) = (Fleet::start(3), Server::start(), Scratch::new());
    let log = directory.path().join("log");
    File::create(&log).unwrap();
    let urls = fleet.urls().join(",");
    let member = |_| {
        let name = "idempotent::each_request_has_one_effect_or_is_unknown_though_processes_die";
        let told = [("LOG", log.display().to_string()), ("URLS", urls.clone())];
        Member::start(name, [&told[..], &[("STORE", store.url())]].concat())
    };
    let mut group = Group::new((0..PROCESSES).map(member).collect());
    for _ in 0..KILLS {
        std::thread::sleep(Duration::from_millis(50));
        group.kill_one();
    }
    group.join(Duration::from_secs(120));

    let mut effects: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        let (request, process) = line.split_once(' ').unwrap();
        effects.entry(request.parse().unwrap()).or_default().push(process.into());
    }
    let twice: Vec<_> = effects.iter().filter(|(_, by)| by.len() > 1).collect();
    assert!(twice.is_empty(), "done more than once: {twice:?}");
    let unknown = unknown(&urls, &store, &effects);
    assert!(unknown > 0, "no process was killed in the middle of a request");
    println!("{} of {REQUESTS} done once, {unknown} unknown, {KILLS} kills", effects.len());
}

/// Brings each request once more: it has the outcome of its one effect, or is unknown.
#[tokio::main(flavor = "current_thread")]
async fn unknown(urls: &str, store: &Server, effects: &BTreeMap<u32, Vec<String>>) -> usize {
    let (locker, client) = (locker(urls), Client::new(store.url()).unwrap());
    let mut unknown = 0;
    for request in 0..REQUESTS {
        let idempotent = locker.idempotent(&client, format!("request:{request}"), KEEP);
        let none = || async { Err::<Vec<u8>, Error>("it is not begun again".into()) };
        match idempotent.run::<_, _, Error>(none).await.unwrap() {
            Done::Again(process) => {
                assert_eq!(effects[&request], [String::from_utf8(process).unwrap()]);
            }
            Done::Unknown => unknown += 1,
            other => panic!("request {request}: {other:?}"),
        }
    }
    unknown
}
