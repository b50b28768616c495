//! Waiters that give up or are dropped, on real servers: they leave nothing behind, and what they
//! were called for goes on to the next one.

use std::time::Duration;

use quorlock::Locker;
use quorlock::report::{KeyState, NodeReport, Outcome};
use support::{Fleet, Reply, Watchdog, eventually_async, need_process};

use super::{hasty, holders_of, is_everywhere, listening, wait, waits};

async fn process(fleet: &Fleet, name: &str) -> Locker {
    listening(hasty(fleet.urls(), name).ttl(Duration::from_secs(30))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_24_a_waiter_that_is_dropped_when_it_was_called_passes_that_on() {
    need_process!();
    let fleet = Fleet::start(5);
    let holder = process(&fleet, "holder").await;
    let (first, second) = (process(&fleet, "first").await, process(&fleet, "second").await);
    for is_ours in [true, false] {
        for _ in 0..20 {
            let _watchdog = Watchdog::new("the second one that waits");
            let guard = match is_ours {
                true => {
                    let guard = holder.lock("k").await.unwrap();
                    is_everywhere(&fleet, &guard).await;
                    Some(guard)
                }
                false => {
                    fleet.command(&["SET", "k", "theirs", "PX", "60000"]);
                    None
                }
            };
            let cancelled = tokio::spawn(first.lock("k").wait_forever().acquire());
            waits(&fleet, "k", 1).await;
            let waiting = wait(&second, "k");
            waits(&fleet, "k", 2).await;
            match guard {
                Some(guard) => assert!(guard.release().await.unwrap().is_released()),
                None => drop(fleet.command(&["DEL", "k"])),
            }
            // It was called by now, and may have got the lock: that ends with it.
            cancelled.abort();
            drop(cancelled.await);
            assert!(waiting.await.unwrap().release().await.unwrap().is_released());
            eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
        }
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_whose_first_question_is_unanswered_leaves_nothing_when_the_node_is_back() {
    need_process!();
    let fleet = Fleet::start(5);
    let (first, second) = (process(&fleet, "first").await, process(&fleet, "second").await);
    for is_dropped in [true, false] {
        let _watchdog = Watchdog::new("the node that was silent");
        let guard = second.lock("k").await.unwrap();
        is_everywhere(&fleet, &guard).await;
        let waiting = wait(&first, "k");
        waits(&fleet, "k", 1).await;
        let queues = fleet.command(&["EXISTS", "{k}:quorlock:queue"]);
        let queue_node = queues.iter().position(|it| *it == Reply::Int(1)).unwrap();
        // Who has met others a moment ago asks the node with the queue, and it alone.
        assert!(guard.release().await.unwrap().is_released());
        let guard = waiting.await.unwrap();
        // Not all need have it: where the release came last, it was refused.
        let is_pending = |vote: &NodeReport| vote.outcome == Outcome::Pending;
        let all = async || !guard.votes().iter().any(is_pending);
        eventually_async("all have answered", all).await;
        let holders = holders_of(&fleet, "k", &guard);
        fleet[queue_node].pause();
        if is_dropped {
            let waiting = tokio::spawn(second.lock("k").wait_forever().acquire());
            let waits = async || second.stats().waiting == 1;
            eventually_async("it waits for the silent node", waits).await;
            waiting.abort();
            assert!(waiting.await.is_err());
        } else {
            let error = second.lock("k").wait(Duration::from_millis(50)).await.unwrap_err();
            assert!(error.is_contended(), "{error}");
            // Named is who holds it on a majority, as far as that answers.
            let seen = holders.iter().filter(|node| **node != queue_node).count();
            let name = error.holder().and_then(|holder| holder.owner.as_deref());
            assert!(name == Some(first.owner()) || seen < 3 && name.is_none(), "{error}");
        }
        fleet[queue_node].resume();
        // An answer of the node comes behind the question, and behind what takes it back.
        eventually_async("the node answers again", async || {
            let seen = second.inspect("k").await.unwrap();
            !seen.nodes.iter().any(|node| matches!(node.state, KeyState::Unknown(_)))
        })
        .await;
        let left = fleet.keys_left("");
        assert!(left.iter().map(|(_, key)| key).all(|key| key == "k"), "{left:?}");
        assert_eq!(holders_of(&fleet, "k", &guard), holders);
        assert!(guard.is_valid() && guard.release().await.unwrap().is_released());
        eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
    }
}
