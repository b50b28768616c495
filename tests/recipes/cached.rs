//! A cache whose readers are in eight processes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorlock::recipe::{CacheOptions, Cached, Until};
use quorlock::{Client, Error, Locker};
use support::{Fleet, Server, Watchdog, need_process, scratch::Scratch};
use tokio::task::JoinSet;

use crate::processes::{Group, Member, now, told};

const PROCESSES: usize = 8;

/// Of each process, for a key that none has computed yet.
const COLD_CALLERS: usize = 1_250;

/// Of each process, who each wait for the lock by themselves: 104 in all.
const UNTIL_CALLERS: usize = 13;

/// Of each process, for one key that ends all the time.
const HOT_CALLERS: usize = 8;
const HOT_TTL: Duration = Duration::from_secs(1);

/// For how long that is looked at in a plain run.
const HOT_TIME: u64 = 6;

/// So long before they ask the callers' threads stand still.
const TIMER: Duration = Duration::from_millis(5);

/// For so long none writes what it has measured.
const QUIET: Duration = Duration::from_secs(1);

const COMPUTATION: Duration = Duration::from_millis(200);
const LEASE: Duration = Duration::from_secs(1);

/// What processes write, a line each, and others read.
#[derive(Clone)]
struct Log(Arc<File>);

impl Log {
    fn say(&self, what: &str, at: Duration, number: u128) {
        let line = format!("{what} {} {number}\n", at.as_micros());
        (&*self.0).write_all(line.as_bytes()).unwrap();
    }
}

/// Computes for a while, and says when.
async fn compute(log: Log, time: Duration) -> Result<Option<Vec<u8>>, Error> {
    log.say("begins", now(), std::process::id().into());
    tokio::time::sleep(time).await;
    log.say("ends", now(), std::process::id().into());
    Ok(Some(b"a value".to_vec()))
}

/// A locker and the store's client, connected to all of their servers.
async fn servers() -> (Locker, Client) {
    let (urls, store): (String, String) = (told("URLS").unwrap(), told("STORE").unwrap());
    let locker = Locker::quorum(urls.split(',')).unwrap().ttl(LEASE).build().unwrap();
    let client = Client::new(store.as_str()).unwrap().timeout(Duration::from_secs(5));
    locker.ready(Duration::from_secs(5)).await.unwrap();
    assert!(client.command(["PING"]).await.is_ok());
    (locker, client)
}

async fn cache() -> Cached<Client, Error> {
    let (locker, client) = servers().await;
    let mut options = CacheOptions::default();
    (options.early, options.jitter, options.stale) = (0.0, 0.0, HOT_TTL);
    Cached::with_options(client, locker, options).unwrap()
}

/// What one process does: as it is told.
#[tokio::main(flavor = "current_thread")]
async fn process(log: &Path) {
    let log = Log(Arc::new(OpenOptions::new().append(true).open(log).unwrap()));
    match told::<String>("JOB").unwrap().as_str() {
        "cold" => {
            let (cache, ttl) = (cache().await, Duration::from_secs(60));
            let ask = |log| {
                let cache = cache.clone();
                async move {
                    let value = cache.get("cold", ttl, || compute(log, COMPUTATION)).await.unwrap();
                    assert_eq!(value.as_deref(), Some(b"a value".as_slice()));
                }
            };
            all_ask(&log, COLD_CALLERS, ask, async |_begin| {}).await;
        }
        // The same callers, who wait in their process for 200 ms, and for nothing else: what so
        // many cost this machine.
        "floor" => {
            let (tell, told) = tokio::sync::watch::channel(false);
            let ask = |_log| {
                let mut told = told.clone();
                async move { drop(told.wait_for(|told| *told).await.unwrap()) }
            };
            let tells = async |begin| {
                tokio::time::sleep(COMPUTATION.saturating_sub(now() - begin)).await;
                tell.send_replace(true);
            };
            all_ask(&log, COLD_CALLERS, ask, tells).await;
        }
        // By a lock and looks, each caller by itself.
        "until" => {
            let (locker, client) = servers().await;
            let ask = |log| until(locker.clone(), client.clone(), log);
            all_ask(&log, UNTIL_CALLERS, ask, async |_begin| {}).await;
        }
        "hot" => hot(&cache().await, &log).await,
        _ => {
            // The first that computes never ends it: it is killed.
            let time = if told("NEVER_ENDS").unwrap() { LEASE * 600 } else { Duration::ZERO };
            cache().await.get("killed", LEASE * 60, || compute(log, time)).await.unwrap();
        }
    }
}

/// Has so many callers, who are there before, ask at the moment that was told, and says how long
/// each took from then on.
async fn all_ask<Fut: Future<Output = ()> + 'static>(
    log: &Log,
    callers: usize,
    ask: impl Fn(Log) -> Fut,
    meanwhile: impl AsyncFnOnce(Duration),
) {
    let begin = Duration::from_millis(told("BEGIN_MS").unwrap());
    let local = tokio::task::LocalSet::new();
    let mut asking = JoinSet::new();
    for _ in 0..callers {
        let asks = ask(log.clone());
        asking.spawn_local_on(
            async move {
                asks.await;
                now() - begin
            },
            &local,
        );
    }
    // They are there, and run from then on. The runtime's timers come up to 2 ms late.
    tokio::time::sleep(begin.saturating_sub(now() + TIMER)).await;
    std::thread::sleep(begin.saturating_sub(now()));
    let took = local.run_until(async {
        meanwhile(begin).await;
        asking.join_all().await
    });
    let took = took.await;
    // What is written takes the machine from those that are not done yet.
    tokio::time::sleep((begin + QUIET).saturating_sub(now())).await;
    for took in took {
        log.say("took", begin, took.as_micros());
    }
}

/// Works under the lock, unless another has.
async fn until(locker: Locker, client: Client, log: Log) {
    let look = || async {
        let found = client.command(["GET", "report"]).await?;
        Ok::<_, Error>((!found.is_null()).then_some(()))
    };
    if let Until::Held(guard) = locker.lock("report").until(look).await.unwrap() {
        compute(log, COMPUTATION / 2).await.unwrap();
        assert!(client.command(["SET", "report", "x"]).await.unwrap().is_ok());
        assert!(guard.release().await.unwrap().is_released());
    }
}

/// Reads one key all the time, and says how long each look took.
async fn hot(cache: &Cached<Client, Error>, log: &Log) {
    let end = now() + Duration::from_secs(told("SECONDS").unwrap());
    let mut callers = JoinSet::new();
    for _ in 0..HOT_CALLERS {
        let (cache, log) = (cache.clone(), log.clone());
        callers.spawn(async move {
            while now() < end {
                let (began, own) = (now(), log.clone());
                cache.get("hot", HOT_TTL, || compute(own, COMPUTATION)).await.unwrap();
                log.say("took", began, (now() - began).as_micros());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    callers.join_all().await;
}

/// Servers, and processes on them that write to one log.
struct Stage {
    fleet: Fleet,
    store: Server,
    directory: Scratch,
}

impl Stage {
    fn set() -> Self {
        let stage =
            Self { fleet: Fleet::start(5), store: Server::start(), directory: Scratch::new() };
        File::create(stage.log()).unwrap();
        stage
    }

    fn log(&self) -> std::path::PathBuf {
        self.directory.path().join("log")
    }

    fn member(&self, test: &'static str, job: &str, more: (&'static str, String)) -> Member {
        let told = vec![
            ("LOG", self.log().display().to_string()),
            ("URLS", self.fleet.urls().join(",")),
            ("STORE", self.store.url()),
            ("JOB", job.into()),
            more,
        ];
        Member::start(test, told)
    }

    /// What was said with this word: when, and a number.
    fn said(&self, word: &str) -> Vec<(u64, u64)> {
        let text = std::fs::read_to_string(self.log()).unwrap();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
        let meant = words.filter(|words| words[0] == word);
        let mut said: Vec<_> =
            meant.map(|it| (it[1].parse().unwrap(), it[2].parse().unwrap())).collect();
        said.sort_unstable();
        said
    }
}

fn percentile(mut micros: Vec<u64>, percent: usize) -> Duration {
    micros.sort_unstable();
    Duration::from_micros(micros[(micros.len() * percent / 100).min(micros.len() - 1)])
}

#[test]
fn ten_thousand_callers_of_a_cold_key_wait_for_one_computation() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return process(Path::new(&log));
    }
    let test = "cached::ten_thousand_callers_of_a_cold_key_wait_for_one_computation";
    for job in ["floor", "cold"] {
        let stage = Stage::set();
        let begin = Duration::from_millis((now() + Duration::from_secs(2)).as_millis() as u64);
        let begin_ms = begin.as_millis().to_string();
        let member = |_| stage.member(test, job, ("BEGIN_MS", begin_ms.clone()));
        Group::new((0..PROCESSES).map(member).collect()).join(Duration::from_secs(60));
        let took: Vec<u64> = stage.said("took").into_iter().map(|(_, took)| took).collect();
        assert_eq!(took.len(), PROCESSES * COLD_CALLERS);
        assert_eq!(stage.said("begins").len(), usize::from(job == "cold"), "computations");
        let [p50, p99] = [50, 99].map(|percent| percentile(took.clone(), percent));
        let computed = ["begins", "ends"].map(|word| {
            stage.said(word).first().map(|(at, _)| Duration::from_micros(*at).saturating_sub(begin))
        });
        println!(
            "{job}: {} callers, {COMPUTATION:?}: p50 {p50:?}, p99 {p99:?}; computed {computed:?}",
            took.len()
        );
    }
}

#[test]
fn a_hundred_callers_wait_for_one_that_works() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return process(Path::new(&log));
    }
    let stage = Stage::set();
    let begin_ms = (now() + Duration::from_secs(2)).as_millis().to_string();
    let test = "cached::a_hundred_callers_wait_for_one_that_works";
    let member = |_| stage.member(test, "until", ("BEGIN_MS", begin_ms.clone()));
    Group::new((0..PROCESSES).map(member).collect()).join(Duration::from_secs(60));
    let took: Vec<u64> = stage.said("took").into_iter().map(|(_, took)| took).collect();
    assert_eq!((stage.said("begins").len(), took.len()), (1, PROCESSES * UNTIL_CALLERS));
    let [p50, p99] = [50, 99].map(|percent| percentile(took.clone(), percent));
    println!(
        "until: {} callers, work of {:?}: p50 {p50:?}, p99 {p99:?}",
        took.len(),
        COMPUTATION / 2
    );
}

#[test]
fn a_hot_key_is_computed_once_each_time_it_ends() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return process(Path::new(&log));
    }
    let stage = Stage::set();
    let seconds = std::env::var("QUORLOCK_HOT_SECONDS").map_or(HOT_TIME, |it| it.parse().unwrap());
    let test = "cached::a_hot_key_is_computed_once_each_time_it_ends";
    let member = |_| stage.member(test, "hot", ("SECONDS", seconds.to_string()));
    Group::new((0..PROCESSES).map(member).collect())
        .join(Duration::from_secs(seconds) + Duration::from_secs(60));

    let (begun, ended, took) = (stage.said("begins"), stage.said("ends"), stage.said("took"));
    let fresh = HOT_TTL.as_micros() as u64;
    for (before, next) in begun.iter().zip(&begun[1..]) {
        assert!(next.0 - before.0 >= fresh, "two computations within {HOT_TTL:?}: {begun:?}");
    }
    assert!(begun.len() as u64 >= seconds / 2, "it was computed too rarely: {begun:?}");
    // The first computation had nothing to give meanwhile; of each other, one reader is its own.
    let first_end = ended[0].0;
    let is_refreshed =
        |at: &u64| begun.iter().zip(&ended).any(|(begun, ended)| (begun.0..ended.0).contains(at));
    let later = took.iter().filter(|(at, _)| *at > first_end);
    let (during, between): (Vec<(u64, u64)>, Vec<_>) = later.partition(|(at, _)| is_refreshed(at));
    let computation = COMPUTATION.as_micros() as u64;
    let waited = during.iter().chain(&between).filter(|(_, took)| *took >= computation).count();
    let p99 = |took: &[(u64, u64)]| percentile(took.iter().map(|(_, took)| *took).collect(), 99);
    println!(
        "{} computations in {seconds} s, for which {waited} readers waited; p99 of {} hits during \
         one {:?}, of {} others {:?}",
        begun.len(),
        during.len(),
        p99(&during),
        between.len(),
        p99(&between)
    );
}

#[test]
fn where_the_one_that_computes_is_killed_the_next_one_does() {
    need_process!();
    if let Some(log) = told::<String>("LOG") {
        return process(Path::new(&log));
    }
    let stage = Stage::set();
    let test = "cached::where_the_one_that_computes_is_killed_the_next_one_does";
    let member = |never: bool| stage.member(test, "killed", ("NEVER_ENDS", never.to_string()));
    let begins = |count: usize| {
        let watchdog = Watchdog::new("a computation to begin");
        while stage.said("begins").len() < count {
            watchdog.pause();
        }
    };
    let mut killed = Group::new(vec![member(true)]);
    begins(1);
    let mut next = Group::new(vec![member(false)]);
    let at = now();
    killed.end();
    begins(2);
    next.join(Duration::from_secs(30));
    let begun = Duration::from_micros(stage.said("begins")[1].0);
    println!("computed anew {:?} behind the kill, with a lease of {LEASE:?}", begun - at);
}
