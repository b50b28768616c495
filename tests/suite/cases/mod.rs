//! What goes wrong in other lock libraries, case by case: each is a test that names it.
//!
//! | case | asks | where |
//! |---|---|---|
//! | 1 | an even split ends at once | `faults` |
//! | 2 | a hung minority costs nothing, a hung majority is bounded | `faults` |
//! | 3, 4, 6 | what was granted late, in part, or too slowly is undone | `verdict` |
//! | 5, 21 | every mask of nodes; the quorum's shortest lease decides | `masks`, `verdict` |
//! | 7, 8 | a release of what has expired, or is another's | `release`, `locking` |
//! | 9, 10 | an extension that fails | `extend` |
//! | 11, 13 | nothing outlives the release | `release` |
//! | 12 | `lost()` resolves before the validity ends | `lost` |
//! | 14, 15 | futures and guards dropped anywhere | `dropped`, `cancel`, `locking` |
//! | 16, 17 | nodes that have forgotten keys or scripts | `forgetful`, `faults` |
//! | 18, 19 | servers that are away | `faults` |
//! | 20, 22 | names; one holder at a time | `verdict`, `locking` |
//! | 23 to 26 | no wake-up is lost, and none is in vain | `waiting` |
//! | 30 | the end of a locker | `shutdown` |

#[cfg(unix)]
mod dropped;
mod extend;
mod forgetful;
#[cfg(unix)]
mod lost;
#[cfg(unix)]
mod masks;
mod release;
mod shutdown;
mod verdict;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use quorlock::{Extend, LockGuard, Locker, report::Outcome};
use support::{Fleet, Proxy, Server, Watchdog, eventually_async};

use crate::{quorum, single};

/// A lock that only the test extends.
async fn hold_unextended(locker: &Locker, ttl: Duration) -> LockGuard {
    locker.lock("k").ttl(ttl).auto_extend(Extend::Off).await.unwrap()
}

/// A lock that every node has granted, and has said so: nothing of it is under way any more. A node
/// that what went before has left suspect is not asked at first.
async fn granted_by_all(acquire: impl AsyncFn() -> LockGuard) -> LockGuard {
    let watchdog = Watchdog::new("a lock that all nodes have granted");
    loop {
        let guard = acquire().await;
        let has = |outcome| guard.votes().iter().any(|vote| vote.outcome == outcome);
        eventually_async("all nodes have answered", async || !has(Outcome::Pending)).await;
        if guard.votes().iter().all(|vote| vote.outcome == Outcome::Granted) {
            return guard;
        }
        assert!(guard.release().await.is_ok());
        watchdog.check();
    }
}

/// A proxy before each node.
fn proxies(fleet: &Fleet) -> Vec<Proxy> {
    fleet.iter().map(Proxy::before).collect()
}

/// A locker's builder on these proxies.
fn through(proxies: &[Proxy]) -> quorlock::LockerBuilder {
    match proxies {
        [only] => single(only.url()),
        many => quorum(many.iter().map(Proxy::url)),
    }
}

/// Polls a future once, so that it sends what it has to send; it must not be done by that.
async fn begin<F: Future<Output: std::fmt::Debug>>(mut future: Pin<&mut F>) {
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        assert!(polled.is_pending(), "it waits for the nodes, and got {polled:?}");
        Poll::Ready(())
    })
    .await;
}

/// Waits until every node has the key: an early verdict does not wait for the last ones.
async fn held_by_all(fleet: &Fleet) {
    let all = async || fleet.holders("k").len() == fleet.len();
    eventually_async("all nodes have the key", all).await;
}

/// Waits until no node has the key.
async fn held_by_none(fleet: &Fleet) {
    eventually_async("no node has the key", async || fleet.holders("k").is_empty()).await;
}

/// How many keys have ever expired on a fleet's nodes, by their own count.
fn expired(fleet: &Fleet) -> u64 {
    let count = |server: &Server| server.info("expired_keys").unwrap().parse::<u64>().unwrap();
    fleet.iter().map(count).sum()
}

/// Waits until the keeper has extended a lock of this TTL.
async fn extended(guard: &LockGuard, ttl: Duration) {
    let first = guard.deadline();
    // It is told by reading a clock twice: only a good step is an extension. What has ended has the
    // present for a deadline.
    let moved = async || guard.deadline() > first + ttl / 6 && guard.is_valid();
    eventually_async("the lock is extended", moved).await;
}
