//! Locks that are kept for a while after their guard: `release_after`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Behaviour::{After, Down, Grants};
use super::panics::Bomb;
use super::{World, ms, now, pass};
use crate::lease::Release;
use crate::observe::Event;
use crate::options::{Durability, Extend, Options};
use crate::testing::Nodes;

const MIN_HOLD: Duration = ms(5_000);

#[tokio::test(start_paused = true)]
async fn no_other_has_the_lock_before_it_was_held_for_so_long_and_then_at_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let end = now().plus(MIN_HOLD);
    pass(ms(1_700)).await;
    let began = now();
    let released = guard.release_after(MIN_HOLD).await.unwrap();
    assert!(matches!(released, Release::Released), "{released:?}");
    assert_eq!(now(), began, "nothing was waited for");
    assert!(world.nodes.iter().all(|node| node.left("k") == ms(3_300)), "shortened");
    pass(ms(3_299)).await;
    assert!(world.locker.lock("k").try_acquire().await.unwrap().is_none());
    pass(end.since(now())).await;
    assert!(world.locker.lock("k").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn it_may_be_longer_than_the_ttl_and_no_process_is_needed_for_that() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    assert!(guard.release_after(ms(3_600_000)).await.unwrap().is_released());
    world.locker.shutdown(ms(1_000)).await.unwrap();
    let beside = world.beside();
    pass(ms(3_599_999)).await;
    assert!(beside.locker.lock("k").try_acquire().await.unwrap().is_none());
    pass(ms(1)).await;
    assert!(beside.locker.lock("k").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_held_for_so_long_already_is_released_at_once() {
    let world = World::ready(3).await;
    for min_hold in [Duration::ZERO, MIN_HOLD] {
        let guard = world.locker.lock("k").await.unwrap();
        pass(min_hold).await;
        assert!(guard.release_after(min_hold).await.unwrap().is_released());
        pass(ms(1)).await;
        assert_eq!(world.keys("k"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_millisecond_is_not_taken_off() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    assert!(guard.release_after(Duration::from_micros(1_001)).await.unwrap().is_released());
    assert!(world.nodes.iter().all(|node| node.left("k") == ms(2)));
}

/// It stands behind the extension on each connection, and no later one follows.
#[tokio::test(start_paused = true)]
async fn an_extension_on_its_way_does_not_outlast_it() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").ttl(ms(9_000)).await.unwrap();
    world.set(0..3, After(ms(50)));
    pass(ms(3_010)).await;
    assert_eq!(world.got(0, "extend").len(), 1, "it is on its way");
    assert!(guard.release_after(ms(4_000)).await.unwrap().is_released());
    assert!(world.nodes.iter().all(|node| node.left("k") <= ms(990)));
    pass(ms(60_000)).await;
    assert_eq!(world.got(0, "extend").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_gone_or_taken_is_told_and_left_as_it_is() {
    let world = World::ready(3).await;
    let request = || world.locker.lock("k").auto_extend(Extend::Off);
    let guard = request().await.unwrap();
    world.nodes[0].delete("k");
    world.nodes[1].delete("k");
    let found = guard.release_after(MIN_HOLD).await.unwrap();
    assert!(matches!(found, Release::Expired), "{found:?}");
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0, "the last node must not keep what is no lock");

    let guard = request().await.unwrap();
    world.nodes.iter().for_each(|node| node.steal("k"));
    let found = guard.release_after(MIN_HOLD).await.unwrap();
    assert!(matches!(found, Release::Taken), "{found:?}");
    assert!(world.nodes.iter().all(|node| node.left("k") > MIN_HOLD), "another's key");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_is_not_brought_back() {
    let world = World::ready(3).await;
    let request = world.locker.lock("k").ttl(ms(2_000)).auto_extend(Extend::Off);
    let guard = request.await.unwrap();
    guard.lost().await;
    assert_eq!(world.keys("k"), 3, "the margin is left of it");
    assert!(guard.release_after(MIN_HOLD).await.unwrap().is_released());
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_do_not_answer_keep_the_key_for_its_ttl() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").ttl(ms(20_000)).await.unwrap();
    world.set(0..2, Down);
    let found = guard.release_after(MIN_HOLD).await.unwrap();
    assert!(matches!(found, Release::Unknown(_)), "{found:?}");
    world.set(0..2, Grants);
    pass(MIN_HOLD).await;
    assert_eq!(world.keys("k"), 2, "nothing deletes them");
    assert!(world.locker.lock("k").try_acquire().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_kept_so_long_also_where_the_answers_are_not_awaited() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    {
        let mut releasing = pin!(guard.release_after(MIN_HOLD));
        let waits = poll_fn(|cx| Poll::Ready(releasing.as_mut().poll(cx).is_pending())).await;
        assert!(waits);
    }
    pass(MIN_HOLD - ms(1)).await;
    assert_eq!(world.keys("k"), 3);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
#[expect(
    clippy::disallowed_methods,
    reason = "a task, so that the panic ends that and not the test"
)]
async fn an_observer_that_panics_at_the_release_does_not_shorten_it() {
    let mut options = Options::default();
    let bomb = Bomb::new(|event| matches!(event, Event::Released { .. }));
    options.observers.add(bomb.clone());
    let world = World::with(3, options).await;
    let guard = world.locker.lock("k").await.unwrap();
    let released = tokio::spawn(guard.release_after(MIN_HOLD)).await;
    assert!(released.unwrap_err().is_panic() && bomb.has_gone_off());
    pass(MIN_HOLD - ms(1)).await;
    assert_eq!(world.keys("k"), 3);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

/// A node that forgets must have sat out every key that it may have had.
#[tokio::test(start_paused = true)]
async fn above_the_longest_ttl_it_is_refused_and_the_lock_left_to_its_ttl() {
    let nodes = Nodes::new(3);
    let durability = Durability::Volatile { longest_ttl: ms(30_000) };
    let locker = nodes.locker().durability(durability).build().unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    locker.initialise().await.unwrap();
    let guard = locker.lock("k").await.unwrap();
    let error = guard.release_after(ms(40_000)).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert_eq!(nodes.holding("k"), 3);
    pass(ms(10_000)).await;
    assert_eq!(nodes.holding("k"), 0);
}
