//! What the tokens of locks cost, whose clocks are the system's.

use std::sync::Arc;
use std::time::Duration;

use super::{ms, pass};
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::link::Greeting;
use crate::lock::alarm::watched;
use crate::lock::command;
use crate::lock::locker::{Inner, Locker};
use crate::options::{Address, Options};
use crate::quorum::{NodeSet, Parts};
use crate::testing::Nodes;

/// A client whose clocks are the system's.
fn client(options: Options) -> Locker {
    let set = NodeSet::new(Parts {
        addresses: vec![Address::parse("redis://node-0").unwrap()],
        counted: true,
        options: options.link,
        clock: Clock::default(),
        observers: options.observers.clone(),
        entropy: Arc::new(Entropy::from_seed(1)),
        dial: Arc::new(Nodes::new(1)),
        greeting: Greeting { scripts: command::SCRIPTS.to_vec(), ..Greeting::default() },
        undo_head: command::undo_head(),
    });
    Locker::from_inner(Inner::new(set, options, "test".into()))
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
