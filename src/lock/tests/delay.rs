//! Locks whose lease ends before their keys do: others stay out for the delay.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Behaviour::{Grants, Hangs};
use super::{World, ms, now, pass};
use crate::lock::{LockGuard, LockRequest};
use crate::observe::Loss;
use crate::options::{Durability, Extend, Options};

/// The default.
const TTL: Duration = ms(10_000);
const DELAY: Duration = Duration::from_secs(7);

/// How long the node still keeps the key, in whole milliseconds: readers' ends are such.
fn left(world: &World, key: &str) -> Duration {
    let left = world.nodes[0].left(key).as_secs_f64() * 1e3;
    Duration::from_millis(left.ceil() as u64)
}

/// A lock with a delay of each kind, and the key that tells how long it lives.
fn requests(world: &World) -> [(LockRequest, &'static str); 5] {
    let locker = &world.locker;
    [
        (locker.lock("one"), "one"),
        (locker.lock("fenced").fenced(), "fenced"),
        (locker.lock_all(["a", "b"]), "b"),
        (locker.read("read"), "read"),
        (locker.slots("slot", 1).acquire(), "{slot}:slot:0"),
    ]
    .map(|(request, key)| (request.lock_delay(DELAY), key))
}

#[tokio::test(start_paused = true)]
async fn the_nodes_keep_it_for_the_delay_and_the_holder_does_not() {
    let world = World::ready(3).await;
    for (request, key) in requests(&world) {
        let guard = request.await.unwrap();
        assert!(guard.remaining() <= TTL);
        assert_eq!(left(&world, key), TTL + DELAY, "{key}");
        pass(TTL * 3).await;
        assert!(guard.is_valid() && guard.remaining() <= TTL);
        assert!(left(&world, key) > TTL / 2 + DELAY, "an extension has the delay, too: {key}");
        guard.extend(TTL * 2).await.unwrap();
        assert_eq!(left(&world, key), TTL * 2 + DELAY, "{key}");
        let release = guard.release().await.unwrap();
        assert!(release.is_released(), "{key}: {release:?}");
        assert_eq!(world.keys(key), 0, "a release waits for nothing: {key}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_downgraded_has_the_delay_still() {
    let world = World::ready(3).await;
    let writer = world.locker.lock("k").lock_delay(DELAY).await.unwrap();
    let reader = writer.downgrade().await.unwrap();
    assert!(reader.remaining() <= TTL);
    assert_eq!(left(&world, "k"), TTL + DELAY);
}

/// Its lease has expired: extension is off.
async fn expired(world: &World) -> LockGuard {
    let guard = world.locker.lock("k").lock_delay(DELAY).auto_extend(Extend::Off).await.unwrap();
    assert_eq!(guard.lost().await, Loss::Expired);
    guard
}

#[tokio::test(start_paused = true)]
async fn one_that_is_lost_and_dropped_keeps_others_out_for_the_delay() {
    let world = World::ready(3).await;
    let other = world.beside();
    let began = now();
    drop(expired(&world).await);
    assert_eq!(world.keys("k"), 3);
    other.locker.ready(ms(1_000)).await.unwrap();
    let next = other.locker.lock("k").wait_forever().await.unwrap();
    let took = now().since(began);
    assert!(took >= TTL + DELAY && took <= TTL + DELAY + ms(1_000), "{took:?}");
    assert!(next.release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn work_that_was_dropped_at_the_loss_keeps_others_out_as_well() {
    let world = World::ready(3).await;
    let request = world.locker.lock("k").lock_delay(DELAY).auto_extend(Extend::Off);
    let done = request.run(|_| std::future::pending::<Result<(), crate::Error>>()).await;
    assert!(done.unwrap_err().is_lost());
    assert_eq!(world.keys("k"), 3);
}

#[tokio::test(start_paused = true)]
async fn who_has_ended_all_of_it_releases_it_also_behind_the_loss() {
    let world = World::ready(3).await;
    let guard = expired(&world).await;
    assert!(guard.release().await.unwrap().is_released(), "the nodes had it still");
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_what_has_expired_to_its_delay() {
    for is_found in [true, false] {
        let world = World::ready(3).await;
        let request = world.locker.lock("k").lock_delay(DELAY).auto_extend(Extend::Off);
        let guard = request.await.unwrap();
        pass(TTL).await;
        if is_found {
            assert_eq!(guard.lost().await, Loss::Expired);
        }
        let found = world.locker.shutdown(ms(1_000)).await.unwrap();
        assert_eq!((found.released, found.lost, found.unknown), (0, 1, 0));
        assert_eq!((world.keys("k"), guard.lost().await), (3, Loss::Expired));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_while_it_is_held_is_free_at_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").lock_delay(DELAY).await.unwrap();
    pass(ms(100)).await;
    drop(guard);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn one_whose_keys_are_gone_leaves_nothing_that_could_keep_others_out() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").lock_delay(DELAY).await.unwrap();
    world.nodes[..2].iter().for_each(|node| node.flush());
    assert_eq!(guard.lost().await, Loss::Gone);
    drop(guard);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

/// A try that did not get it has no lease that could have ended.
#[tokio::test(start_paused = true)]
async fn a_failed_try_leaves_nothing() {
    let world = World::ready(3).await;
    world.nodes[..2].iter().for_each(|node| node.steal("k"));
    assert!(world.locker.lock("k").lock_delay(DELAY).try_acquire().await.unwrap().is_none());
    pass(ms(1)).await;
    assert!(world.nodes[2].value("k").is_none());
    world.set(0..2, Hangs);
    let error = world.locker.lock("l").lock_delay(DELAY).try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    world.set(0..2, Grants);
    pass(ms(1_000)).await;
    assert_eq!(world.keys("l"), 0);
}

/// The keys of the one live longer than those of the other.
#[tokio::test(start_paused = true)]
async fn a_lock_is_not_handed_on_to_who_asks_for_another_delay() {
    let options = Options { local_handover: ms(100), ..Options::default() };
    let world = World::with(3, options).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut next = pin!(world.locker.lock("k").lock_delay(DELAY).acquire());
    poll_fn(|cx| {
        assert!(next.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    drop(guard);
    let next = next.await.unwrap();
    assert_eq!(left(&world, "k"), TTL + DELAY);
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn what_the_keys_may_not_live_for_is_refused() {
    let durability = Durability::Volatile { longest_ttl: TTL + DELAY };
    let world = World::with(3, Options { durability, ..Options::default() }).await;
    let request = |ttl, delay| world.locker.lock("k").ttl(ttl).lock_delay(delay);
    let (weeks, second) = (Duration::from_secs(50 * 24 * 60 * 60), ms(1_000));
    for (request, reason) in [
        (request(TTL + second, DELAY), "the TTL and the lock-delay of 7s together"),
        (world.locker.lock("k").lock_delay(DELAY).ttl(TTL + second), "of 7s together"),
        (request(ms(0), DELAY), "TTL"),
        (request(TTL, weeks), "no more than 49 days"),
    ] {
        let error = request.await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains(reason), "{error}");
    }
    world.locker.initialise().await.unwrap();
    let guard = request(TTL, DELAY).await.unwrap();
    let error = guard.extend(TTL + second).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(guard.extend(ms(0)).await.unwrap_err().is_misuse());
    guard.extend(TTL).await.unwrap();
    // By what was said last, whatever the locker's own TTL is.
    for request in [
        world.locker.lock("l").lock_delay(DELAY * 2).ttl(ms(2_000)),
        world.locker.lock("l").ttl(ms(2_000)).lock_delay(DELAY * 2),
    ] {
        assert!(request.try_acquire().await.unwrap().is_some());
    }
}
