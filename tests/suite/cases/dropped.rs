//! Extensions dropped anywhere: what the guard claims is never more than what the nodes hold.

use std::pin::pin;
use std::time::{Duration, Instant};

use quorlock::{LockGuard, Locker};
use support::wait::PATIENCE;
use support::{
    Fleet, PollTimes, Proxy, Server, Watchdog, eventually_async, need_server, poll_times,
};

use super::{granted_by_all, hold_unextended, proxies, through};
use crate::connected;

const TTL: Duration = Duration::from_secs(20);
const LONGER: Duration = Duration::from_secs(120);

/// More polls than an extension ever needs.
const POLLS_MAX: usize = 16;

/// How long a poll is waited for that may never come: the nodes are in trouble.
const BRIEFLY: Duration = Duration::from_millis(20);

/// Well below the drift margin of these TTLs, by which the nodes hold a key for longer than we say.
const MOMENT: Duration = Duration::from_millis(50);

/// What happens to the nodes while an extension is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    Healthy,
    /// The network delivers later, in both directions.
    Slow,
    /// Half of the nodes were stopped before.
    Stopped,
    /// Half of the nodes are stopped after those polls, and the extension is polled on.
    StoppedHalfWay,
}

/// Nodes, each behind a proxy.
struct World {
    fleet: Fleet,
    proxies: Vec<Proxy>,
}

impl World {
    fn start(size: usize) -> Self {
        let fleet = Fleet::start(size);
        let proxies = proxies(&fleet);
        Self { fleet, proxies }
    }

    fn half(&self) -> impl Iterator<Item = &Server> {
        self.fleet.iter().step_by(2)
    }

    /// Until when the nodes hold the key for sure, a majority of them: the q-th latest of their own
    /// expiries. A node that is stopped holds it until `old`, for it has executed nothing since. An
    /// expiry is known to lie behind the reading of our clock that went before the question, and is
    /// asked for again until that says something.
    fn majority_holds_until(&self, old: Instant) -> Instant {
        let expiry = |server: &Server| {
            if !server.is_running() {
                return old;
            }
            let watchdog = Watchdog::new("a server's answer in a moment");
            loop {
                let now = Instant::now();
                let left = server.command(&["PTTL", "k"]).int();
                if now.elapsed() < MOMENT {
                    return now + Duration::from_millis(u64::try_from(left).unwrap_or(0));
                }
                watchdog.pause();
            }
        };
        let mut expiries: Vec<_> = self.fleet.iter().map(expiry).collect();
        expiries.sort_unstable();
        let majority = expiries.len() / 2 + 1;
        expiries[expiries.len() - majority]
    }

    /// Fails if the guard claims more than a majority of the nodes holds.
    fn check(&self, guard: &LockGuard, old: Instant, what: &str) {
        let claimed = Instant::now() + guard.remaining();
        let held = self.majority_holds_until(old);
        assert!(claimed <= held, "{what}: claims {:?} too much", claimed - held);
        assert!(guard.is_valid(), "{what}: the old validity is lost");
    }
}

/// Polls an extension so many times in trouble, and drops it. Whether it had finished.
async fn extend_in_trouble(
    world: &World,
    guard: &LockGuard,
    trouble: Trouble,
    polls: usize,
) -> bool {
    let mut extension = pin!(guard.extend(LONGER));
    // Nodes that are well answer, sooner or later.
    let patience = if trouble == Trouble::Healthy { PATIENCE } else { BRIEFLY };
    let first = tokio::time::timeout(patience, poll_times(extension.as_mut(), polls)).await;
    if let Ok(PollTimes::Completed(extended)) = first {
        assert!(trouble != Trouble::Slow, "nothing gets through");
        return extended.is_ok();
    }
    if trouble == Trouble::StoppedHalfWay {
        world.half().for_each(Server::pause);
        if polls > 0 {
            let rest = tokio::time::timeout(BRIEFLY, extension.as_mut()).await;
            return matches!(rest, Ok(Ok(())));
        }
    }
    false
}

async fn drop_extension(world: &World, locker: &Locker, trouble: Trouble, polls: usize) -> bool {
    let what = format!("{} nodes, {trouble:?}, {polls} polls", world.fleet.len());
    let guard = granted_by_all(async || hold_unextended(locker, TTL).await).await;
    let old = Instant::now() + TTL;
    match trouble {
        Trouble::Slow => world.proxies.iter().for_each(Proxy::freeze),
        Trouble::Stopped => world.half().for_each(Server::pause),
        Trouble::Healthy | Trouble::StoppedHalfWay => {}
    }
    let extended = extend_in_trouble(world, &guard, trouble, polls).await;
    if trouble == Trouble::StoppedHalfWay {
        // What they had executed before they were stopped is seen when they go on.
        world.half().for_each(Server::resume);
    }
    world.check(&guard, old, &what);
    assert!(!extended || guard.remaining() > TTL, "{what}: it had finished");
    world.half().for_each(Server::resume);
    world.proxies.iter().for_each(Proxy::thaw);
    // The answers come in now, and no task waits for them.
    locker.inspect("k").await.unwrap();
    world.check(&guard, old, &what);
    assert!(extended || guard.remaining() <= TTL, "{what}: dropped, and claimed all the same");
    drop(guard);
    let gone = async || world.fleet.holders("k").is_empty();
    eventually_async(&format!("{what}: no key is left"), gone).await;
    extended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_14_an_extension_dropped_at_every_poll_claims_nothing_and_leaves_no_key() {
    need_server!();
    for size in [1, 3, 5] {
        let world = World::start(size);
        let locker = connected(through(&world.proxies)).await;
        let mut polls = 0;
        while !drop_extension(&world, &locker, Trouble::Healthy, polls).await {
            polls += 1;
            assert!(polls < POLLS_MAX, "an extension of healthy nodes ends");
        }
        for trouble in [Trouble::Slow, Trouble::Stopped, Trouble::StoppedHalfWay] {
            for polls in 0..=polls + 2 {
                drop_extension(&world, &locker, trouble, polls).await;
            }
        }
    }
}
