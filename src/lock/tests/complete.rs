//! What a shutdown says of what it leaves: complete means that nothing is owed.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::Behaviour::{After, Down, Grants, Hangs};
use super::panics::Bomb;
use super::{World, ms, pass};
use crate::lease::Shutdown;
use crate::observe::Event;
use crate::options::{Extend, Options};

/// What a shutdown finds that waits for so long.
async fn found(world: &World, deadline: u64) -> Shutdown {
    world.locker.clone().shutdown(ms(deadline)).await.unwrap()
}

/// The nodes serve again: what was owed is settled, and then no key is left.
async fn is_complete_once_the_nodes_are_back(world: &World, what: &str) {
    world.set(0..world.nodes.len(), Grants);
    let found = found(world, 60_000).await;
    assert!(found.is_complete() && found.owed == 0, "{what}: {found:?}");
    assert_eq!(world.keys("k"), 0, "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_waits_for_a_connection_is_owed() {
    let world = World::ready(1).await;
    let guard = world.locker.lock("k").ttl(ms(60_000)).await.unwrap();
    world.nodes[0].set(Down);
    pass(ms(10)).await;
    drop(guard);
    let told = found(&world, 200).await;
    assert_eq!((told.owed, told.unknown, told.is_complete()), (1, 0, false));
    world.nodes[0].restart(true).unwrap();
    assert_eq!(world.keys("k"), 1, "a key was left");
    is_complete_once_the_nodes_are_back(&world, "away").await;
}

#[tokio::test(start_paused = true)]
async fn what_a_node_has_not_answered_is_owed() {
    let world = World::ready(1).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[0].set(Hangs);
    drop(guard);
    // On its way on a connection that stands, then one that was given up.
    for deadline in [200, 10_000] {
        let told = found(&world, deadline).await;
        assert_eq!((told.owed, told.is_complete()), (1, false), "{deadline}");
    }
    is_complete_once_the_nodes_are_back(&world, "hangs").await;
}

/// The majority says that it is released, and one node has not deleted its key.
#[tokio::test(start_paused = true)]
async fn one_node_of_many_is_enough_to_be_owed() {
    for behaviour in [Down, Hangs] {
        let world = World::ready(3).await;
        let _guard = world.locker.lock("k").await.unwrap();
        world.nodes[2].set(behaviour);
        pass(ms(10)).await;
        let told = found(&world, 200).await;
        assert_eq!((told.released, told.unknown, told.owed), (1, 0, 1), "{behaviour:?}");
        assert!(!told.is_complete(), "{behaviour:?}");
        is_complete_once_the_nodes_are_back(&world, "one of three").await;
    }
}

/// The acquisition has no reply, and neither has the release behind it: that is one key.
#[tokio::test(start_paused = true)]
async fn each_key_is_owed_once_on_each_node() {
    let world = World::ready(3).await;
    world.set(2..3, Hangs);
    let guards = [world.locker.lock("k").await.unwrap(), world.locker.lock("other").await.unwrap()];
    world.set(1..2, Hangs);
    drop(guards);
    let told = found(&world, 50).await;
    assert_eq!(told.owed, 4, "{told:?}");
    is_complete_once_the_nodes_are_back(&world, "two keys").await;
    assert_eq!(world.keys("other"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_is_not_answered_is_owed() {
    let world = World::ready(3).await;
    world.set(0..3, Hangs);
    assert!(world.locker.lock("k").try_acquire().await.is_err());
    let told = found(&world, 50).await;
    assert_eq!((told.owed, told.unknown, told.is_complete()), (3, 0, false));
    is_complete_once_the_nodes_are_back(&world, "an acquisition").await;
}

#[tokio::test(start_paused = true)]
async fn what_a_server_refuses_to_execute_is_owed() {
    let world = World::ready(1).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[0].set_busy(true);
    drop(guard);
    let told = found(&world, 1_000).await;
    assert_eq!((told.owed, told.is_complete()), (1, false));
    is_complete_once_the_nodes_are_back(&world, "busy").await;
}

/// The old connection cannot be ended: what it sent may still arrive.
#[tokio::test(start_paused = true)]
async fn what_is_in_doubt_is_owed_until_it_can_no_longer_matter() {
    let world = World::ready(3).await;
    world.nodes[0].forbid_kill();
    world.nodes[0].set(After(ms(50)));
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.nodes[0].set(Grants);
    world.nodes[0].cut();
    pass(ms(100)).await;
    drop(guard);
    let told = found(&world, 5_000).await;
    assert_eq!((told.owed, told.is_complete(), world.keys("k")), (1, false, 0));
    is_complete_once_the_nodes_are_back(&world, "in doubt").await;
}

/// The first connection does not come about, and what was queued for it has been given up before.
#[tokio::test(start_paused = true)]
async fn what_was_queued_for_a_connection_that_never_came_about_is_in_no_doubt() {
    let known = World::ready(1).await;
    known.nodes[0].set(Down);
    let world = known.beside();
    let mut locking = Box::pin(world.locker.lock("k").into_future());
    assert!(poll_fn(|cx| Poll::Ready(locking.as_mut().poll(cx).is_pending())).await);
    drop(locking);
    let told = found(&world, 200).await;
    assert_eq!((told.owed, told.is_complete()), (1, false));
    world.nodes[0].set(Grants);
    let told = found(&world, 5_000).await;
    assert!(told.is_complete(), "{told:?}");
}

/// The driver has ended: releases are written on connections that are read by no task.
#[tokio::test(start_paused = true)]
async fn what_an_orphaned_connection_carries_is_owed() {
    let mut options = Options::default();
    let bomb = Bomb::new(|event| matches!(event, Event::NodeDown { .. }));
    options.observers.add(bomb.clone());
    let world = World::with(3, options).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[2].cut();
    pass(ms(1)).await;
    assert!(bomb.has_gone_off(), "the driver has ended");
    drop(guard);
    let told = found(&world, 0).await;
    assert_eq!((told.owed, told.is_complete()), (3, false));
    is_complete_once_the_nodes_are_back(&world, "orphaned").await;
}

/// Of too many releases the oldest are given up: their keys live on when all others are settled.
#[tokio::test(start_paused = true)]
async fn what_was_given_up_is_owed_for_as_long_as_its_key_can_live() {
    let mut options = Options::default();
    options.link.entries_max = 4;
    let world = World::with(1, options).await;
    let mut guards = Vec::new();
    for key in 0..6 {
        let request = world.locker.lock(format!("k{key}")).ttl(ms(10_000));
        guards.push(request.auto_extend(Extend::Off).await.unwrap());
    }
    world.nodes[0].set(Down);
    pass(ms(10)).await;
    drop(guards);
    assert_eq!(found(&world, 200).await.owed, 6);
    world.nodes[0].set(Grants);
    let left = || (0..6).filter(|key| world.keys(&format!("k{key}")) > 0).count();
    let told = found(&world, 5_000).await;
    assert_eq!((told.owed, told.is_complete(), left()), (2, false, 2));
    pass(Options::default().link.undo_horizon).await;
    let told = found(&world, 0).await;
    assert_eq!((told.owed, told.is_complete(), left()), (0, true, 0));
}

/// Its future is not polled: on a thread that is busy, or behind the shutdown's.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_being_downgraded_is_held_still() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut downgrading = pin!(guard.downgrade());
    assert!(poll_fn(|cx| Poll::Ready(downgrading.as_mut().poll(cx).is_pending())).await);
    let told = found(&world, 1_000).await;
    assert_eq!((told.unknown, told.owed, told.is_complete()), (1, 0, false));
    assert_eq!(world.keys("k"), 3);
    // It learns that the locker is closed, and lets go.
    assert!(downgrading.await.unwrap_err().is_closed());
    let told = found(&world, 1_000).await;
    assert!(told.is_complete(), "{told:?}");
    assert_eq!(world.keys("k"), 0);
}

/// As its future is dropped while the shutdown waits.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_downgrade_that_is_under_way() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut downgrading = Box::pin(guard.downgrade());
    assert!(poll_fn(|cx| Poll::Ready(downgrading.as_mut().poll(cx).is_pending())).await);
    let end = async {
        pass(ms(100)).await;
        drop(downgrading);
    };
    let (told, ()) = tokio::join!(found(&world, 1_000), end);
    assert!(told.is_complete(), "{told:?}");
    assert_eq!(world.keys("k"), 0);
}
