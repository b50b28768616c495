//! How often a lock is extended at most, where little of its TTL is left to do it in, and how often
//! the keeper looks.

use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Builder;

use super::{World, ms, now};
use crate::options::{Drift, Extend, Options};

/// Lets time pass in small steps, and every task have many turns in each: also tasks that would
/// never let it pass by themselves.
async fn step(step: Duration, count: usize) {
    for _ in 0..count {
        for _ in 0..40 {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(step).await;
    }
}

#[tokio::test(start_paused = true)]
async fn extensions_are_a_twentieth_of_the_lease_apart_at_least() {
    let wide = Drift { permille: 334, floor: ms(2) };
    let cases = [
        (ms(10_000), wide, ms(10)),
        (ms(1_000), Drift { permille: 980, floor: ms(2) }, ms(1)),
        (ms(6), Drift::default(), Duration::from_micros(50)),
        (ms(8), Drift::default(), Duration::from_micros(50)),
    ];
    for (ttl, drift, pace) in cases {
        let options = Options { ttl, drift, ..Options::default() };
        let lease = ttl - drift.of(ttl);
        let world = World::with(3, options).await;
        let mut last = now();
        let guard = world.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
        step(pace, 1_000).await;
        let sent = world.got(0, "extend");
        // Of a lease of 4 ms, 3 are the margin of its warning, and a timer's grain is 1 ms.
        let is_too_short = ttl == ms(6) && !guard.is_valid();
        assert!(sent.len() >= 4 || is_too_short, "{ttl:?}: {sent:?}");
        for said in sent {
            let gap = said.at.since(last);
            assert!(gap >= lease / 20, "{ttl:?}: extended again after {gap:?}");
            last = said.at;
        }
    }
}

/// Of many locks something is due all the time. Time stands still here while a task has something
/// to do: a keeper that does not wait between its looks would never let it pass.
#[test]
fn the_keeper_waits_between_looks_at_many_locks() {
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let world = World::with(1, Options::default()).await;
            let mut guards = Vec::new();
            for index in 0..40 {
                let request = world.locker.lock(format!("k{index}"));
                guards.push(request.auto_extend(Extend::Off).await.unwrap());
                // Not a timer's grain, but less.
                tokio::time::advance(Duration::from_micros(100)).await;
            }
            for guard in &guards {
                guard.lost().await;
            }
        });
        done.send(()).unwrap();
    });
    waiting.recv_timeout(Duration::from_secs(60)).expect("time goes on");
}
