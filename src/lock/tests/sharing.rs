//! Several handles of one hold.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::{World, ms, pass};
use crate::Release;
use crate::lock::LockGuard;
use crate::observe::Loss;

const TTL: Duration = ms(10_000);

/// A lock of each kind; how many keys its release deletes on a node.
async fn locks(world: &World) -> Vec<(LockGuard, i64)> {
    let locker = &world.locker;
    vec![
        (locker.lock("one").await.unwrap(), 1),
        (locker.lock("fenced").fenced().await.unwrap(), 1), /* its fence stays */
        (locker.lock_all(["a", "b"]).await.unwrap(), 2),
        (locker.read("read").await.unwrap(), 2),
        (locker.slots("slot", 2).acquire().await.unwrap(), 1),
    ]
}

fn count(world: &World) -> i64 {
    world.nodes[0].command(["DBSIZE"]).as_integer().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_released_with_its_last_handle() {
    let world = World::ready(3).await;
    for (guard, keys) in locks(&world).await {
        let all = count(&world);
        let (second, third) = (guard.share(), guard.share());
        assert_eq!((second.key(), second.fence()), (guard.key(), guard.fence()));
        assert_eq!(second.owner_token().value(), guard.owner_token().value());
        assert!(matches!(guard.release().await, Ok(Release::Shared)));
        drop(third);
        let fourth = second.share();
        drop(second);
        pass(TTL * 2).await;
        assert!(fourth.is_valid(), "it is extended as long as there is one");
        assert_eq!(count(&world), all);
        assert!(fourth.release().await.unwrap().is_released());
        assert_eq!(all - count(&world), keys);
    }
}

#[tokio::test(start_paused = true)]
async fn handles_that_are_dropped_at_once_on_threads_release_it_once() {
    let world = World::ready(3).await;
    for _ in 0..100 {
        let guard = world.locker.lock("k").await.unwrap();
        let handles: Vec<_> = (0..4).map(|_| guard.share()).collect();
        drop(guard);
        assert!(handles[0].is_valid());
        std::thread::scope(|scope| {
            for handle in handles {
                scope.spawn(move || drop(handle));
            }
        });
        pass(ms(1)).await;
        assert_eq!(world.keys("k"), 0);
    }
    assert_eq!(world.got(0, "release").len(), 100);
}

#[tokio::test(start_paused = true)]
async fn who_has_it_in_hand_has_it_again_without_asking() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes.iter().for_each(|node| node.clear_log());
    let inner = world.locker.lock("k").within(&guard).await.unwrap();
    let innermost = world.locker.read("k").within(&inner).await.unwrap();
    assert!(world.nodes.iter().all(|node| node.heard().is_empty()));
    drop(innermost);
    assert!(matches!(inner.release().await, Ok(Release::Shared)));
    assert!(guard.release().await.unwrap().is_released());
    let both = world.locker.lock_all(["a", "b"]).await.unwrap();
    let one = world.locker.lock("b").within(&both).await.unwrap();
    let all = world.locker.lock_all(["b", "a"]).within(&both).await.unwrap();
    drop((both, one));
    assert!(all.release().await.unwrap().is_released());
    let reader = world.locker.read("k").await.unwrap();
    let again = world.locker.read("k").within(&reader).await.unwrap();
    drop(reader);
    assert!(again.release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn what_the_guard_does_not_have_is_acquired() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let other = world.locker.lock("other").within(&guard).await.unwrap();
    assert_eq!((world.keys("k"), world.keys("other")), (3, 3));
    drop(other);
    // Of a locker of its own it is another's.
    let beside = world.beside();
    beside.locker.ready(ms(1_000)).await.unwrap();
    let request = beside.locker.lock("k").wait(ms(100));
    assert!(request.within(&guard).await.unwrap_err().is_contended());
    // What is lost is not had.
    world.nodes.iter().for_each(|node| node.delete("k"));
    assert_eq!(guard.lost().await, Loss::Gone);
    let anew = world.locker.lock("k").within(&guard).await.unwrap();
    assert!(anew.is_valid());
    let slots = world.locker.slots("k", 2);
    let first = slots.acquire().await.unwrap();
    let second = slots.acquire().within(&first).await.unwrap();
    assert_ne!(first.slots(), second.slots());
}

#[tokio::test(start_paused = true)]
async fn what_would_wait_for_the_guard_itself_is_refused() {
    let world = World::ready(3).await;
    let (one, read) =
        (world.locker.lock("k").await.unwrap(), world.locker.read("r").await.unwrap());
    for (request, guard, reason) in [
        (world.locker.lock_all(["k", "l"]), &one, "and not all of these keys"),
        (world.locker.lock("k").fenced(), &one, "the guard has no fence"),
        (world.locker.lock("r"), &read, "the guard has a read lock"),
        (world.locker.write("r"), &read, "the guard has a read lock"),
    ] {
        let error = request.within(guard).await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains(reason), "{error}");
    }
    let slots = world.locker.slots("k", 2);
    let slot = slots.acquire().await.unwrap();
    let error = slots.acquire_many(2).within(&slot).await.unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("not so many slots"), "{error}");
    let fenced = world.locker.lock("f").fenced().await.unwrap();
    let inner = world.locker.lock("f").fenced().within(&fenced).await.unwrap();
    assert_eq!(inner.fence(), fenced.fence());
}

#[tokio::test(start_paused = true)]
async fn what_ends_the_hold_ends_it_for_all() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let other = guard.share();
    let error = guard.downgrade().await.unwrap_err();
    assert!(error.is_misuse() && other.is_valid(), "{error}");
    let third = other.share();
    assert!(matches!(third.release_after(TTL * 2).await, Ok(Release::Shared)));
    assert!(other.is_valid());
    let (fourth, fifth) = (other.share(), other.share());
    drop(other.forget());
    assert_eq!(fourth.lost().await, Loss::Released);
    assert!(fourth.release().await.unwrap_err().is_lost(), "though it is not the last");
    assert!(fifth.release().await.unwrap_err().is_lost());
    assert_eq!(world.keys("k"), 3);
}

/// Not begun, begun and dropped, and dropped behind the last one's end.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_ends_its_handle_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    drop(guard.share().release());
    assert!(guard.is_valid());
    let (one, other) = (guard.share(), guard);
    {
        let mut releasing = pin!(one.release());
        let polled = poll_fn(|cx| Poll::Ready(releasing.as_mut().poll(cx))).await;
        assert!(matches!(polled, Poll::Ready(Ok(Release::Shared))));
    }
    assert!(other.is_valid());
    {
        let mut releasing = pin!(other.release());
        let polled = poll_fn(|cx| Poll::Ready(releasing.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
    }
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}
