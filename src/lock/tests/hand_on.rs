//! A held lock that is handed on to the next task of the process.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::Behaviour::{After, Hangs};
use super::{GRAIN, World, ms, now, pass};
use crate::lock::acquire::Acquire;
use crate::lock::guard::LockGuard;
use crate::options::{Extend, Options};
use crate::{Loss, Release};

/// The default.
const TTL: Duration = ms(10_000);

async fn world() -> World {
    let world = World::with(3, Options { local_handover: ms(1_000), ..Options::default() }).await;
    world.locker.ready(ms(1_000)).await.unwrap();
    world
}

async fn begin(acquire: &mut Pin<&mut Acquire>) {
    poll_fn(|cx| {
        assert!(acquire.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// What it has without waiting for anything.
async fn now_held(acquire: &mut Pin<&mut Acquire>) -> Option<LockGuard> {
    poll_fn(|cx| match acquire.as_mut().poll(cx) {
        Poll::Ready(guard) => Poll::Ready(Some(guard.unwrap())),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn said(world: &World) -> Vec<&'static str> {
    world.nodes.iter().flat_map(|node| node.log()).map(|said| said.what).collect()
}

#[tokio::test(start_paused = true)]
async fn the_next_one_has_the_lock_at_once_and_no_node_is_asked() {
    let world = world().await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut next = pin!(world.locker.lock("k").acquire());
    begin(&mut next).await;
    pass(ms(100)).await;
    world.nodes.iter().for_each(|node| node.clear_log());
    let (deadline, began) = (guard.deadline(), now());
    assert!(matches!(guard.release().await, Ok(Release::Released)));
    let next = now_held(&mut next).await.expect("it was handed on");
    assert_eq!(now(), began);
    assert!(said(&world).is_empty());
    assert_eq!(next.deadline(), deadline, "with what is left of its time");
    assert!(next.is_valid() && next.votes().len() == 3);
    assert!(next.release().await.unwrap().is_released());
    assert!(said(&world).iter().all(|what| *what == "release"));
    assert_eq!(world.keys("k"), 0);
}

#[cfg(feature = "tokio-util")]
#[tokio::test(start_paused = true)]
async fn the_guard_has_ended_before_the_next_one_begins() {
    let world = world().await;
    let guard = world.locker.lock("k").await.unwrap();
    let token = guard.cancellation();
    let mut next = pin!(world.locker.lock("k").acquire());
    begin(&mut next).await;
    drop(guard);
    assert!(token.is_cancelled());
    let next = now_held(&mut next).await.unwrap();
    assert!(!next.cancellation().is_cancelled());
}

/// The guard lets go of the lock on the nodes, and the next one asks for it.
async fn is_released_instead(world: &World, ttl: Duration, before: impl AsyncFnOnce(&LockGuard)) {
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let mut next = pin!(world.locker.lock("k").ttl(ttl).acquire());
    begin(&mut next).await;
    before(&guard).await;
    world.nodes.iter().for_each(|node| node.clear_log());
    drop(guard);
    let next = next.await.unwrap();
    assert_eq!(said(world), ["release", "SET"].repeat(3));
    assert!(next.release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_value_was_told_is_released_instead() {
    let world = world().await;
    is_released_instead(&world, TTL, async |guard| drop(guard.owner_token())).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_has_gone_from_hand_to_hand_for_long_enough_is_released_instead() {
    let world = world().await;
    is_released_instead(&world, TTL, async |_| pass(ms(1_000)).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_released_for_one_who_wants_it_for_another_time() {
    let world = world().await;
    is_released_instead(&world, ms(5_000), async |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_acquisition_a_node_has_not_answered_is_released_instead() {
    let world = world().await;
    world.set(2..3, After(ms(50)));
    is_released_instead(&world, TTL, async |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn who_was_handed_the_lock_and_goes_away_releases_it() {
    let world = world().await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut third = pin!(world.locker.lock("k").acquire());
    {
        let mut second = pin!(world.locker.lock("k").acquire());
        begin(&mut second).await;
        begin(&mut third).await;
        world.nodes.iter().for_each(|node| node.clear_log());
        drop(guard);
    }
    let third = third.await.unwrap();
    assert_eq!(said(&world), ["release", "SET"].repeat(3));
    drop(third);
}

#[tokio::test(start_paused = true)]
async fn who_is_handed_the_lock_and_not_polled_is_overtaken() {
    let world = world().await;
    let guard = world.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    let mut idle = pin!(world.locker.lock("k").wait_forever().acquire());
    let mut next = pin!(world.locker.lock("k").wait_forever().acquire());
    begin(&mut idle).await;
    begin(&mut next).await;
    drop(guard);
    let began = now();
    let guard = next.await.unwrap();
    assert!(now().since(began) <= ms(500) + GRAIN, "{:?}", now().since(began));
    assert!(guard.is_valid() && now_held(&mut idle).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_releases_what_was_handed_on_to_one_who_never_looks() {
    let world = world().await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut idle = pin!(world.locker.lock("k").acquire());
    begin(&mut idle).await;
    drop(guard);
    assert_eq!(world.keys("k"), 3, "it was handed on");
    let found = world.locker.clone().shutdown(ms(100)).await.unwrap();
    assert!(found.is_complete());
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_is_not_handed_on() {
    let world = world().await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let mut next = pin!(world.locker.lock("k").wait_forever().acquire());
    begin(&mut next).await;
    world.locker.force_release("k").await.unwrap();
    assert_eq!(guard.extend(ms(10_000)).await.unwrap_err().loss(), Some(Loss::Gone));
    world.nodes.iter().for_each(|node| node.clear_log());
    drop(guard);
    assert!(next.await.unwrap().is_valid());
    assert!(said(&world).contains(&"SET"));
}

/// The first holder's TTL was a second; one node has missed the extension to ten.
#[tokio::test(start_paused = true)]
async fn a_node_that_missed_an_extension_does_not_count_for_the_next_one() {
    let world = world().await;
    let guard = world.locker.lock("k").ttl(ms(1_000)).auto_extend(Extend::Off).await.unwrap();
    pass(ms(100)).await;
    let mut next = pin!(world.locker.lock("k").auto_extend(Extend::Off).acquire());
    begin(&mut next).await;
    world.set(2..3, Hangs);
    guard.extend(TTL).await.unwrap();
    drop(guard);
    let next = now_held(&mut next).await.expect("it was handed on");
    pass(ms(2_000)).await;
    world.nodes[1].delete("k");
    next.extend(TTL).await.unwrap_err();
    assert!(!next.is_valid(), "one node of three has the key");
}
