//! What the tokens of locks cost, whose clocks are the system's.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{ms, pass};
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::lease::alarm::watched;
use crate::lease::{LeaseContext, Notices};
use crate::link::HandshakeConfig;
use crate::lock::guard::LockGuard;
use crate::lock::locker::Locker;
use crate::lock::scripts::scripts;
use crate::options::{Address, Extend, Options};
use crate::quorum::{NodeSet, Parts};
use crate::testing::{Nodes, Reaction, When};

/// A client whose clocks are the system's.
fn client(options: Options) -> Locker {
    client_of(&Nodes::new(1), options)
}

/// As [`client`], of these nodes.
fn client_of(nodes: &Nodes, options: Options) -> Locker {
    let address = |node: usize| Address::parse(&format!("redis://node-{node}")).unwrap();
    let set = NodeSet::new(Parts {
        addresses: (0..nodes.len()).map(address).collect(),
        counted: true,
        options: options.link,
        clock: Clock::default(),
        observers: options.observers.clone(),
        entropy: Arc::new(Entropy::from_seed(1)),
        dial: Arc::new(nodes.clone()),
        handshake: HandshakeConfig { scripts: scripts(false), ..HandshakeConfig::default() },
    });
    Locker::of(LeaseContext::new(set, options, "test".into(), Notices::new("test")))
}

/// Waits for a condition.
async fn eventually(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            pass(ms(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("it does not come true");
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn what_is_looked_at_grows_with_the_locks_that_are_held_and_with_nothing_else() {
    let locker = client(Options::default());
    let guard = locker.lock("k").ttl(HOUR).await.unwrap();
    for _ in 0..5_000 {
        drop(guard.cancellation());
    }
    assert!(watched() < 500, "{} for one lock", watched());
    for key in 0..5_000 {
        let guard = locker.lock(format!("k{key}")).ttl(HOUR).await.unwrap();
        drop(guard.cancellation());
    }
    eventually(|| watched() < 500).await;
}

#[test]
#[cfg(target_os = "linux")]
fn a_token_keeps_nothing_of_a_runtime_that_has_ended() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for _ in 0..200 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let locker = client(Options::default());
            let guard = locker.lock("k").ttl(HOUR).await.unwrap();
            drop(guard.cancellation());
        });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(eventually(|| open() < before + 200));
}

/// A node that has lost the key brings the end nearer, and nothing looks at the lock but the alarm.
#[tokio::test]
async fn a_token_is_cancelled_in_time_when_the_end_has_come_nearer_and_the_runtime_is_blocked() {
    let nodes = Nodes::new(3);
    let locker = client_of(&nodes, Options::default());
    let guard =
        locker.lock("k").ttl(Duration::from_secs(1)).auto_extend(Extend::Off).await.unwrap();
    pass(ms(50)).await;
    // The third node stays with what it has granted, and a majority grants more.
    nodes[2].hang();
    guard.extend(Duration::from_secs(5)).await.unwrap();
    let token = guard.cancellation();
    assert!(nodes[0].command(["DEL", "k"]).as_integer().is_ok());
    assert!(guard.extend(Duration::from_secs(1)).await.is_err());
    cancelled_in_time_though_this_thread_is_blocked(&guard, &token);
}

/// The same by an extension that succeeds: the nodes grant less than what one of them has lost.
#[tokio::test]
async fn a_token_is_cancelled_in_time_when_an_extension_has_brought_the_end_nearer() {
    let nodes = Nodes::new(3);
    let locker = client_of(&nodes, Options::default());
    let guard =
        locker.lock("k").ttl(Duration::from_secs(1)).auto_extend(Extend::Off).await.unwrap();
    pass(ms(50)).await;
    let refusal = Reaction::Answer(b"-ERR not now\r\n".to_vec());
    nodes[2].add(When::before("extend").nth(1).then(refusal));
    guard.extend(Duration::from_secs(10)).await.unwrap();
    let token = guard.cancellation();
    assert!(nodes[0].command(["DEL", "k"]).as_integer().is_ok());
    // The second node keeps its ten seconds, and the third has one.
    guard.extend(Duration::from_secs(1)).await.unwrap();
    cancelled_in_time_though_this_thread_is_blocked(&guard, &token);
}

/// Waits for the token without giving back this thread, which is the only one of its runtime.
fn cancelled_in_time_though_this_thread_is_blocked(guard: &LockGuard, token: &CancellationToken) {
    let deadline = guard.deadline();
    assert!(deadline.elapsed().is_zero() && !token.is_cancelled(), "it is held still");
    let late = deadline + Duration::from_secs(2);
    while !token.is_cancelled() {
        assert!(late.elapsed().is_zero(), "the end is over, and the token is not cancelled");
        std::thread::yield_now();
    }
}

/// A caller's waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        // Without the report of a panic, which can take longer than other tests of the alarm wait.
        std::panic::resume_unwind(Box::new("a waker panics"));
    }
}

#[tokio::test]
async fn a_waker_that_panics_keeps_no_other_token_from_being_cancelled() {
    let locker = client(Options::default());
    let lock = |key: &'static str, ttl| locker.lock(key).ttl(ms(ttl)).auto_extend(Extend::Off);
    let guard = lock("first", 200).await.unwrap();
    let token = guard.cancellation();
    let mut waiting = pin!(token.cancelled());
    let waker = Waker::from(Arc::new(Panics));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let other = lock("second", 400).await.unwrap();
    cancelled_in_time_though_this_thread_is_blocked(&other, &other.cancellation());
    let later = lock("third", 200).await.unwrap();
    cancelled_in_time_though_this_thread_is_blocked(&later, &later.cancellation());
    assert!(token.is_cancelled() && !guard.is_valid());
}
