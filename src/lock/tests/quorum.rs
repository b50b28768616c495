//! Acquiring, with nodes that hang, refuse, are late, or are down.

use super::Behaviour::{After, Down, Grants, Hangs};
use super::{News, World, ms, now, pass};
use crate::error::Error;
use crate::options::Extend;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_quorum_is_won_while_a_minority_hangs_in_no_time() {
    let world = World::behaving(&[Hangs, Grants, Grants, Hangs, Grants]).await;
    let began = now();
    let guard = world.locker.lock("k").await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_hung_majority_costs_one_node_timeout() {
    let world = World::behaving(&[Hangs, Grants, Grants, Hangs, Hangs]).await;
    let began = now();
    let error = world.locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let cost = now().since(began);
    // Timers have a grain of a millisecond.
    assert!(cost >= ms(100) && cost <= ms(102), "{cost:?}");
}

#[tokio::test(start_paused = true)]
async fn suspects_are_not_waited_for_again() {
    let world = World::behaving(&[Hangs, Grants, Grants, Hangs, Hangs]).await;
    world.locker.lock("k").try_acquire().await.unwrap_err();
    let began = now();
    for _ in 0..10 {
        let error = world.locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
    }
    assert_eq!(now().since(began), Duration::ZERO);
}

/// What a node executed when no task waited for it any more leaves no key either.
#[tokio::test(start_paused = true)]
async fn what_a_hung_majority_grants_later_is_undone() {
    let world = World::behaving(&[Hangs, Grants, Grants, Hangs, Hangs]).await;
    world.locker.lock("k").try_acquire().await.unwrap_err();
    world.set(0..5, Grants);
    pass(ms(1)).await;
    assert_eq!(world.got(0, "SET").len(), 1, "it was asked");
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_down_vote_at_once() {
    let world = World::of(&[Down, Grants, Down, Grants, Down]);
    // The first try waits for the connections' first attempts, which fail at once here.
    let began = now();
    for _ in 0..10 {
        let error = world.locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.to_string().contains("node-0:6379 refused the connection"), "{error}");
    }
    assert_eq!(now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_even_split_is_decided_without_waiting() {
    let world = World::behaving(&[Grants, Grants, Hangs, Grants]).await;
    world.nodes[0].steal("k");
    world.nodes[3].steal("k");
    let began = now();
    assert!(world.locker.lock("k").try_acquire().await.unwrap().is_none());
    assert_eq!(now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn validity_counts_from_sending_not_from_the_reply() {
    let world = World::behaving(&[After(ms(80)); 3]).await;
    let guard = world.locker.lock("k").await.unwrap();
    // 10 s, less the drift margin, less what the replies took (to a timer's millisecond).
    let whole = ms(10_000 - 102 - 80);
    assert!(guard.remaining() <= whole, "{:?}", guard.remaining());
    assert!(guard.remaining() >= whole - ms(2), "{:?}", guard.remaining());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_too_late_for_its_ttl_is_refused() {
    let world = World::behaving(&[After(ms(40)); 3]).await;
    let error = world.locker.lock("k").ttl(ms(30)).try_acquire().await.unwrap_err();
    assert!(error.is_too_slow(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_invalid_from_a_margin_before_its_deadline_on() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    pass(guard.remaining() - ms(105)).await;
    assert!(guard.is_valid());
    pass(ms(5)).await;
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_callers_time() {
    let world = World::ready(3).await;
    world.nodes.iter().for_each(|node| node.steal("k"));
    let began = now();
    let error = world.locker.lock("k").wait(ms(2_000)).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    let waited = now().since(began);
    assert!(waited >= ms(2_000) && waited <= ms(2_010), "{waited:?}");
}

/// However it was asked for.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_acquired_is_told_once_and_its_release_too() {
    let world = World::ready(3).await;
    drop(world.locker.lock("k").await.unwrap());
    drop(world.locker.lock("k").try_acquire().await.unwrap().unwrap());
    world.locker.lock("k").run(|_| async { Ok::<_, Error>(()) }).await.unwrap();
    let told: Vec<_> = world.told.all(Some).into_iter().map(|(_, news)| news).collect();
    assert_eq!(told, [News::Acquired, News::Released].repeat(3));
}

/// A connection ended with an acquisition in it that the node had executed: the next connection
/// first undoes it.
#[tokio::test(start_paused = true)]
async fn what_a_lost_connection_may_have_granted_is_undone_on_the_next_one() {
    let world = World::behaving(&[After(ms(60)), Hangs, Hangs]).await;
    tokio::select! {
        biased;
        acquired = world.locker.lock("k").try_acquire() => panic!("so early? {acquired:?}"),
        () = pass(ms(20)) => {}
    }
    assert_eq!(world.keys("k"), 1, "the node has executed it and not answered");
    world.nodes[0].cut();
    world.nodes[0].set(Grants);
    pass(ms(500)).await;
    assert!(world.keys("k") == 0 && !world.got(0, "RELEASE").is_empty());
}

/// A timer that was set for an earlier command, and is no longer needed, fires: the next command's
/// deadline must be kept all the same.
#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_after_a_timer_that_was_not_needed() {
    let world = World::ready(3).await;
    world.nodes[2].set(After(ms(150)));
    world.nodes[2].cut();
    pass(ms(100)).await;
    // Answered in 20 ms, and the timer is set to the 500 that it may take.
    world.nodes[0].set(After(ms(20)));
    world.nodes[1].set(After(ms(20)));
    let lock = || world.locker.lock("k").ttl(ms(60_000)).auto_extend(Extend::Off);
    drop(lock().await.unwrap().forget());
    // Meanwhile the third is connected: nothing is awaited now, and the timer fires needlessly.
    pass(ms(1_500)).await;
    world.behave(&[Hangs; 3]);
    tokio::select! {
        biased;
        late = lock().try_acquire() => assert!(late.unwrap_err().is_unavailable()),
        () = pass(ms(5_000)) => panic!("no node has answered, and none was given up"),
    }
}
