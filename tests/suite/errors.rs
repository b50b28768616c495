//! What an error says: which of the causes it was, and what each node did.

use std::time::Duration;

use quorlock::{
    Extend, Locker, Loss,
    report::{Fault, Outcome},
};
use support::{Fleet, Server, eventually_async, need_server};

use crate::{builder, connected};

/// More is asked at once than the connection may hold, and the server does not answer.
#[cfg(unix)]
#[tokio::test]
async fn a_connection_without_room_is_full_and_not_down() {
    need_server!();
    let server = Server::start();
    let locker = Locker::single(server.url()).unwrap().link_entries_max(2);
    let locker = connected(locker).await;
    server.pause();
    let ask = |key: &str| locker.lock(key).try_acquire();
    let (a, b, c, d) = tokio::join!(ask("a"), ask("b"), ask("c"), ask("d"));
    let errors = [a, b, c, d].map(Result::unwrap_err);
    let full: Vec<_> = errors.iter().filter(|error| error.is_full()).collect();
    assert!(!full.is_empty(), "{errors:?}");
    for error in full {
        assert!(error.is_retryable() && !error.is_unavailable(), "{error}");
        assert_eq!(error.nodes()[0].outcome, Outcome::Full);
        assert!(error.to_string().contains("too many commands waiting"), "{error}");
    }
    assert!(errors[0].is_unavailable(), "the first had room: {}", errors[0]);
    server.resume();
    eventually_async("there is room again, and nothing is left of before", async || {
        matches!(ask("a").await, Ok(Some(_)))
    })
    .await;
}

#[tokio::test]
async fn a_lost_lock_says_why() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let ms = Duration::from_millis;

    let guard = locker.lock("expires").ttl(ms(100)).auto_extend(Extend::Off).await.unwrap();
    let error = guard.protect(std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(error.loss(), Some(Loss::Expired));
    assert_eq!(error.to_string(), "lock \"expires\" was lost: its time ran out");

    let guard = locker.lock("deleted").await.unwrap();
    locker.force_release("deleted").await.unwrap();
    let error = guard.extend(ms(10_000)).await.unwrap_err();
    assert_eq!(error.loss(), Some(Loss::Gone), "{error}");
    assert!(error.nodes().iter().any(|node| node.outcome == Outcome::Gone), "{error}");

    let guard = locker.lock("closed").await.unwrap();
    locker.shutdown(ms(1_000)).await.unwrap();
    let error = guard.protect(std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(error.loss(), Some(Loss::Closed));
    assert!(error.is_lost() && error.retry_after().is_none());
}

#[tokio::test]
async fn on_success_each_nodes_part_and_its_time_are_known() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    fleet[2].stop();
    let is_down =
        |outcome: &Outcome| matches!(outcome, Outcome::Down { fault: Fault::Refused, .. });
    eventually_async("the stopped node is known to be down", async || {
        is_down(&locker.health()[2].outcome)
    })
    .await;
    let guard = locker.lock("k").await.unwrap();
    let (health, votes) = (locker.health(), guard.votes());
    for (index, (node, vote)) in health.iter().zip(&votes).enumerate() {
        let address = fleet[index].label();
        assert_eq!((&*node.node, &*vote.node), (&*address, &*address));
        assert_eq!(node.rtt.is_some(), index < 2, "the login has been answered: {node:?}");
    }
    for vote in &votes[..2] {
        assert_eq!(vote.outcome, Outcome::Granted);
        assert!(vote.rtt.is_some_and(|rtt| rtt > Duration::ZERO), "{vote:?}");
    }
    assert!(is_down(&votes[2].outcome) && votes[2].rtt.is_none(), "{votes:?}");
    assert_eq!(health[0].outcome, Outcome::Connected);
}

#[tokio::test]
async fn who_waits_for_its_own_lockers_lock_is_told_so() {
    need_server!();
    let fleet = Fleet::start(3);
    let (locker, namesake) = (
        connected(builder(&fleet).owner("me")).await,
        connected(builder(&fleet).owner("me")).await,
    );
    let guard = locker.lock("k").await.unwrap();
    for (asking, is_own) in [(&locker, true), (&namesake, false)] {
        let error = asking.lock("k").wait(Duration::ZERO).await.unwrap_err();
        let holder = error.holder().unwrap();
        assert_eq!((holder.is_own, holder.owner.is_some()), (is_own, true), "{error}");
        let words =
            if is_own { "is held by a guard of this very locker, " } else { "is held by me@" };
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(asking.inspect("k").await.unwrap().holder().unwrap().is_own, is_own);
    }
    // Beside a guard of an earlier lock of that key, which lives on and has lost it.
    locker.force_release("k").await.unwrap();
    guard.extend(Duration::from_secs(20)).await.unwrap_err();
    let second = locker.lock("k").await.unwrap();
    assert!(locker.inspect("k").await.unwrap().holder().unwrap().is_own);
    // No guard holds what is left to its expiry.
    drop(second.forget());
    let error = locker.lock("k").wait(Duration::ZERO).await.unwrap_err();
    assert!(!error.holder().unwrap().is_own, "{error}");
    drop(guard);
}

#[tokio::test]
async fn before_its_first_use_a_locker_is_not_connected() {
    let locker = Locker::single("redis://127.0.0.1:1").unwrap().build().unwrap();
    let health = locker.health();
    assert!(matches!(health[0].outcome.fault(), Some(Fault::Connecting { step: None, .. })));
}
