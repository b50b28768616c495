//! Waiting without a quorum: a limit of its own, beside that for a lock that is held.

use std::time::Duration;

use super::Behaviour::{After, Down, Grants};
use super::{World, assert_due, ms, now, pass};
use crate::lock::LockGuard;
use crate::options::Extend;

/// A world whose nodes have just gone away.
async fn world_without_nodes() -> World {
    let world = World::ready(3).await;
    world.set(0..3, Down);
    pass(ms(1)).await;
    world
}

/// A lock for a minute, and another client that is connected.
async fn held_and_wanted(world: &World) -> (LockGuard, World) {
    let holder = world.locker.lock("k").ttl(ms(60_000)).auto_extend(Extend::Off).await.unwrap();
    let waiter = world.beside();
    waiter.locker.ready(ms(1_000)).await.unwrap();
    (holder, waiter)
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_after_a_second_however_long_the_lock_is_waited_for() {
    let world = world_without_nodes().await;
    let lock = || world.locker.lock("k");
    for request in [lock(), lock().wait_forever(), lock().wait(ms(60_000))] {
        let began = now();
        let error = request.await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        assert_due(now(), began.plus(ms(1_000)));
        assert!(error.to_string().contains("gave up after"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_waited_for_as_long_as_is_asked_and_no_longer_than_the_lock() {
    let world = world_without_nodes().await;
    let lock = || world.locker.lock("k").unavailable_wait(ms(250));
    let forever = || lock().unavailable_wait(Duration::MAX);
    let cases = [
        (lock(), 250),
        (lock().wait(ms(100)), 100),
        (lock().unavailable_wait(Duration::ZERO), 0),
        (forever().wait(ms(5_000)), 5_000),
    ];
    for (request, millis) in cases {
        let began = now();
        assert!(request.await.unwrap_err().is_unavailable());
        assert_due(now(), began.plus(ms(millis)));
    }
    let (guard, ()) = tokio::join!(forever().wait_forever(), async {
        pass(ms(100_000)).await;
        world.set(0..3, Grants);
    });
    assert!(guard.unwrap().is_valid());
}

/// Each outage is shorter than a second, and all of them together are not.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_found_held_ends_the_time_of_an_outage() {
    let world = World::ready(3).await;
    let (holder, waiter) = held_and_wanted(&world).await;
    let (guard, ()) = tokio::join!(waiter.locker.lock("k").wait(ms(60_000)), async {
        for _ in 0..4 {
            pass(ms(3_000)).await;
            world.set(0..3, Down);
            pass(ms(500)).await;
            world.set(0..3, Grants);
        }
        pass(ms(3_000)).await;
        drop(holder);
    });
    assert!(guard.unwrap().is_valid());
}

/// The verdict is known as soon as the fast one has answered.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_is_waited_for_though_a_node_is_away_and_another_is_slow() {
    let world = World::ready(3).await;
    let (holder, waiter) = held_and_wanted(&world).await;
    world.nodes[0].set(Down);
    world.nodes[2].set(After(ms(1)));
    pass(ms(10)).await;
    let (guard, ()) = tokio::join!(waiter.locker.lock("k").wait_forever(), async {
        pass(ms(10_000)).await;
        drop(holder);
    });
    assert!(guard.unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn half_of_the_nodes_are_no_quorum_though_another_client_holds_them() {
    let world = World::ready(4).await;
    let (_holder, waiter) = held_and_wanted(&world).await;
    world.set(0..2, Down);
    pass(ms(10)).await;
    let began = now();
    let error = waiter.locker.lock("k").wait_forever().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert_due(now(), began.plus(ms(1_000)));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_found_held_behind_an_outage_is_told_to_be_waited_for_once() {
    let world = World::ready(3).await;
    let (holder, waiter) = held_and_wanted(&world).await;
    waiter.set(0..3, Down);
    pass(ms(1)).await;
    let (guard, ()) = tokio::join!(waiter.locker.lock("k").wait_forever(), async {
        pass(ms(300)).await;
        assert_eq!(waiter.told.waits(), []);
        waiter.set(0..3, Grants);
        pass(ms(5_000)).await;
        drop(holder);
    });
    assert!(guard.is_ok());
    let waits = waiter.told.waits();
    assert_eq!((waits.len(), waits[0].1), (1, false));
}
