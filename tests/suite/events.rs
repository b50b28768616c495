//! What an observer is told: each thing once, in its order, and outside every lock.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use quorlock::{
    Event, Extend, Locker, LockerBuilder, Loss, Observer, Retry,
    report::{Fault, Outcome},
};
use support::{Fleet, Port, Server, eventually, eventually_async, need_server};

use crate::{builder, connected, quorum, single};

const MS: Duration = Duration::from_millis(1);
const CLASS: &str = "orders";

/// Keeps each event as a line: what, of which key or node, and what there is to count or to name.
#[derive(Default)]
struct Recorder {
    lines: Mutex<Vec<String>>,
    /// Asked in the middle of each event: code that holds a mutex meanwhile never returns.
    locker: OnceLock<Locker>,
}

impl Observer for Recorder {
    fn on_event(&self, event: &Event<'_>) {
        let health = self.locker.get().map(Locker::health).unwrap_or_default();
        // What a test's own servers forget is told with each connection; a test of its own says so.
        if matches!(event, Event::Forgets { .. }) {
            return;
        }
        // Of the class that the locker gives to its locks, and of another one.
        let lock = event.lock().map(|lock| {
            assert!(lock.owner.starts_with("me@"));
            let key = std::str::from_utf8(lock.key).unwrap();
            if lock.class == CLASS { key.to_owned() } else { format!("{}/{key}", lock.class) }
        });
        let lock = lock.as_deref().unwrap_or_else(|| {
            assert_eq!(event.class(), CLASS);
            ""
        });
        let line = match event {
            Event::Acquired { tries, votes, .. } => {
                assert!(!votes.is_empty());
                format!("acquired {lock} at try {tries}")
            }
            Event::Waiting { holder, .. } => {
                let owner = holder.and_then(|holder| holder.owner.as_deref()).unwrap_or("?");
                format!("waiting for {lock}, held by {}", &owner[..2])
            }
            Event::Retrying { tries, pause, error, .. } => {
                assert!(!pause.is_zero() && error.is_contended());
                format!("retrying {lock} after try {tries}")
            }
            Event::GaveUp { tries, error, .. } => {
                assert!(error.is_contended());
                format!("gave up {lock} after try {tries}")
            }
            Event::Extended { remaining, votes, .. } => {
                assert!(!remaining.is_zero() && !votes.is_empty());
                format!("extended {lock}")
            }
            Event::Lost { reason, .. } => format!("lost {lock}: {reason:?}"),
            Event::Released { .. } => format!("released {lock}"),
            Event::NodeDown { node, fault, .. } => {
                let seen = health.iter().find(|report| *report.node == **node);
                let is_down =
                    |seen: &quorlock::report::NodeHealth| seen.outcome != Outcome::Connected;
                assert!(seen.is_none_or(is_down), "{seen:?}");
                assert!(!matches!(fault, Fault::Connecting { .. }));
                format!("down {node}")
            }
            Event::NodeUp { node, .. } => format!("up {node}"),
            other => format!("{other:?}"),
        };
        self.lines.lock().unwrap().push(line);
    }
}

impl Recorder {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn clear(&self) {
        self.lines.lock().unwrap().clear();
    }

    fn has(&self, line: &str) -> bool {
        self.lines().iter().any(|told| told == line)
    }
}

async fn observed(builder: LockerBuilder) -> (Locker, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let locker = connected(builder.owner("me").class(CLASS).observer(recorder.clone())).await;
    recorder.locker.set(locker.clone()).unwrap();
    (locker, recorder)
}

#[tokio::test]
async fn a_wait_in_vain_is_told_try_by_try() {
    need_server!();
    let fleet = Fleet::start(3);
    let others = connected(builder(&fleet).owner("you")).await;
    let _held = others.lock("k").await.unwrap();
    let (locker, recorder) = observed(builder(&fleet)).await;
    let request = locker.lock("k").retry(Retry::fixed(5 * MS).tries_max(3));
    request.await.unwrap_err();
    let expected = [
        "waiting for k, held by yo",
        "retrying k after try 1",
        "retrying k after try 2",
        "gave up k after try 3",
    ];
    assert_eq!(recorder.lines(), expected);
}

#[tokio::test]
async fn a_lock_is_told_of_from_waiting_to_its_loss() {
    need_server!();
    let fleet = Fleet::start(3);
    let others = connected(builder(&fleet).owner("you")).await;
    let held = others.lock("k").await.unwrap();
    // Who says when to try does not wait in a queue.
    let (locker, recorder) = observed(builder(&fleet).retry(Retry::custom(|_| Some(5 * MS)))).await;
    let request = locker.lock("k").auto_extend(Extend::Off);
    let waiting = tokio::spawn(async move { request.await.unwrap() });
    eventually_async("it waits", async || recorder.has("retrying k after try 2")).await;
    assert!(held.release().await.unwrap().is_released());
    let guard = waiting.await.unwrap();
    guard.extend(20_000 * MS).await.unwrap();
    others.force_release("k").await.unwrap();
    assert_eq!(guard.extend(20_000 * MS).await.unwrap_err().loss(), Some(Loss::Gone));
    eventually_async("the loss is told", async || recorder.has("lost k: Gone")).await;

    let lines = recorder.lines();
    let tries = lines.len() - 3;
    let mut expected = vec!["waiting for k, held by yo".to_owned()];
    expected.extend((1..tries).map(|tries| format!("retrying k after try {tries}")));
    expected.push(format!("acquired k at try {tries}"));
    expected.extend(["extended k".to_owned(), "lost k: Gone".to_owned()]);
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_request_may_be_of_another_class_than_its_locker() {
    need_server!();
    let fleet = Fleet::start(3);
    let (locker, recorder) = observed(builder(&fleet)).await;
    let guard = locker.lock("k").class("payments").auto_extend(Extend::Off).await.unwrap();
    guard.extend(20_000 * MS).await.unwrap();
    locker.force_release("k").await.unwrap();
    guard.extend(20_000 * MS).await.unwrap_err();
    drop(guard);
    drop(locker.lock("l").class("").await.unwrap());
    let told = recorder.lines();
    let expected = [
        "acquired payments/k at try 1",
        "extended payments/k",
        "lost payments/k: Gone",
        "released payments/k",
        "acquired /l at try 1",
        "released /l",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_lock_that_is_never_in_anybodys_way_is_acquired_extended_and_released() {
    need_server!();
    let fleet = Fleet::start(1);
    let (locker, recorder) = observed(builder(&fleet)).await;
    let guard = locker.lock("k").ttl(6_000 * MS).await.unwrap();
    eventually_async("it is extended by itself", async || recorder.has("extended k")).await;
    drop(guard);
    let lines = recorder.lines();
    assert_eq!(lines.first().unwrap(), "acquired k at try 1");
    assert_eq!(lines.last().unwrap(), "released k");
    assert!(lines[1..lines.len() - 1].iter().all(|line| line == "extended k"), "{lines:?}");
}

/// Killed and restarted twice; the attempts in between are no news.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_goes_and_comes_is_told_of_once_each_time() {
    need_server!();
    // So many that each connection has some of them.
    let keys: Vec<_> = (0..32).map(|key| format!("k{key}")).collect();
    for connections in [1, 3] {
        let fleet = Fleet::start(3);
        let builder = builder(&fleet).connections_per_node(connections);
        let (locker, recorder) = observed(builder.reconnect(2 * MS, 10 * MS)).await;
        assert_eq!(recorder.lines(), [""; 0], "what comes up at the start is no news");
        let node = fleet[1].label();
        let (down, up) = (format!("down {node}"), format!("up {node}"));
        for _ in 0..2 {
            // A connection that is still on its way when its node stops is told of: up, and down.
            for key in &keys {
                let what = format!("the connection of {key} is there");
                eventually_async(&what, async || locker.inspect(key).await.unwrap().free() == 3)
                    .await;
            }
            fleet[1].stop();
            eventually("the node's end is told", || recorder.has(&down));
            eventually("its port refuses", || {
                locker.health()[1].outcome.fault() == Some(&Fault::Refused)
            });
            fleet[1].restart();
            eventually("its return is told", || recorder.has(&up));
            assert_eq!(recorder.lines(), [down.clone(), up.clone()]);
            assert_eq!(locker.health()[1].outcome, Outcome::Connected);
            recorder.clear();
        }
    }
}

#[tokio::test]
async fn a_node_that_was_never_there_is_told_of_once() {
    let port = Port::claim();
    let recorder = Arc::new(Recorder::default());
    let builder = single(format!("redis://127.0.0.1:{}", port.number()));
    let builder = builder.reconnect(MS, 2 * MS).class(CLASS).observer(recorder.clone());
    let locker = builder.build().unwrap();
    locker.ready(50 * MS).await.unwrap_err();
    let down = format!("down 127.0.0.1:{}", port.number());
    eventually_async("it is told of", async || recorder.has(&down)).await;
    // The tries that follow are not told of.
    locker.ready(50 * MS).await.unwrap_err();
    assert_eq!(recorder.lines(), [down]);
}

/// Connections end with the runtime that they belong to. The nodes have done nothing.
#[test]
fn a_runtime_that_ends_takes_the_connections_and_no_node_down() {
    need_server!();
    let fleet = Fleet::start(1);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (locker, recorder) = first.block_on(observed(builder(&fleet)));
    assert_eq!(locker.health()[0].outcome, Outcome::Connected);
    drop(first);
    assert!(matches!(locker.health()[0].outcome.fault(), Some(Fault::Connecting { .. })));
    let health = runtime().block_on(locker.ready(5_000 * MS)).unwrap();
    assert_eq!(health[0].outcome, Outcome::Connected);
    assert_eq!(recorder.lines(), [""; 0]);
}

#[tokio::test]
async fn a_node_that_deletes_keys_when_its_memory_is_full_is_told_of() {
    need_server!();
    let careful = Server::start();
    let careless = Server::builder().args(["--maxmemory-policy", "volatile-lru"]).start();
    let urls = [careful.url(), careless.url()];
    let (_locker, recorder) = observed(quorum(&urls)).await;
    let mut told = recorder.lines();
    told.retain(|line| line.starts_with("Evicts"));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("volatile-lru") && told[0].contains(&careless.label()));
}
