//! Clocks that leap, step and stall.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::runtime::Handle;

use super::{News, World, assert_due, ms, now, pass, warning};
use crate::clock::Clock;
use crate::lock::LockGuard;
use crate::observe::Loss;
use crate::options::Extend;

const HOUR_NANOS: i64 = 3_600_000_000_000;

/// A suspension of ten TTLs: the first instruction after it knows.
#[tokio::test(start_paused = true)]
async fn after_a_suspension_the_lock_is_invalid_at_once_and_its_loss_is_told_within_a_tick() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(1_000)).await;
    world.driven.suspend(ms(100_000));
    assert!(!guard.is_valid());
    let began = now();
    guard.lost().await;
    assert_eq!(now(), began, "a task that asks then is told at once");
    pass(ms(101)).await;
    let stalls = stalls(&world);
    assert!(matches!(stalls[..], [Some(stall)] if stall >= ms(100_000)), "{stalls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_loss_is_woken_within_a_tick_after_a_suspension() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut lost = pin!(guard.lost());
    wait_on(lost.as_mut(), ms(1_000)).await;
    world.driven.suspend(ms(100_000));
    let began = now();
    lost.await;
    assert!(now().since(began) <= ms(102));
}

/// Lets time pass for a task that waits for a loss, which does not come.
async fn wait_on(mut lost: Pin<&mut impl Future>, duration: Duration) {
    let mut pause = pin!(pass(duration));
    poll_fn(|cx| {
        assert!(lost.as_mut().poll(cx).is_pending(), "nothing is lost yet");
        pause.as_mut().poll(cx)
    })
    .await;
}

/// The keeper has woken it by then, to set its timer anew: the loss needs no keeper any more.
#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_loss_needs_no_keeper_a_tick_after_a_suspension() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let mut lost = pin!(guard.lost());
    wait_on(lost.as_mut(), ms(1_000)).await;
    world.driven.suspend(ms(5_000));
    wait_on(lost.as_mut(), ms(101)).await;
    world.driven.end_runtime();
    let due = warning(&guard, ms(10_000));
    lost.await;
    assert_due(now(), due);
}

/// A suspension that the lease outlives loses nothing: the lock is extended after it.
#[tokio::test(start_paused = true)]
async fn a_lock_that_outlives_a_suspension_is_extended_within_a_tick_of_it() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(1_000)).await;
    world.driven.suspend(ms(5_000));
    assert!(guard.is_valid() && guard.remaining() < ms(4_000));
    pass(ms(101)).await;
    assert!(guard.remaining() > ms(9_700), "{:?}", guard.remaining());
    assert_eq!(world.told.losses(), []);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_loses_nothing_and_one_set_ahead_loses_early() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    for _ in 0..30 {
        world.driven.step_wall(-HOUR_NANOS);
        pass(ms(1_000)).await;
        assert!(guard.is_valid(), "a backward step loses no lock");
    }
    world.driven.step_wall(HOUR_NANOS);
    assert!(!guard.is_valid(), "a forward step loses early");
    world.driven.step_wall(-HOUR_NANOS);
    assert!(!guard.is_valid(), "what was lost stays lost");
}

/// Two clients, and the wall clock of one steps by an hour each second, ahead and back: they never
/// hold the lock together.
#[tokio::test(start_paused = true)]
async fn wall_clocks_that_step_never_let_two_hold() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let (mut ours, mut theirs) = ((&world, None, 0), (&other, None, 0));
    for second in 0..600 {
        let step = if second % 2 == 0 { HOUR_NANOS } else { -HOUR_NANOS };
        world.driven.step_wall(step);
        for (_, guard, _) in [&mut ours, &mut theirs] {
            // The holder lets go of it every seventh second.
            if second % 7 == 0 || !is_valid(guard) {
                drop(guard.take());
            }
        }
        let (first, next) = match second / 7 % 2 {
            0 => (&mut ours, &mut theirs),
            _ => (&mut theirs, &mut ours),
        };
        for (client, guard, turns) in [first, next] {
            if guard.is_none() {
                *guard = client.locker.lock("k").try_acquire().await.unwrap();
                *turns += u32::from(guard.is_some());
            }
        }
        for _ in 0..10 {
            assert!(!(is_valid(&ours.1) && is_valid(&theirs.1)), "both hold it: {second}");
            pass(ms(100)).await;
        }
    }
    assert!(ours.2 > 30 && theirs.2 > 30, "both had their turns: {} and {}", ours.2, theirs.2);
}

fn is_valid(guard: &Option<LockGuard>) -> bool {
    guard.as_ref().is_some_and(LockGuard::is_valid)
}

/// A runtime that was blocked for 30 s, with a TTL of 5 s: the loss is told, and why.
#[tokio::test(start_paused = true)]
async fn a_runtime_that_was_blocked_loses_the_lock_and_says_for_how_long_it_was() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").ttl(ms(5_000)).await.unwrap();
    pass(ms(500)).await;
    tokio::time::advance(ms(30_000)).await;
    assert!(!guard.is_valid());
    guard.lost().await;
    pass(ms(1)).await;
    assert!(matches!(world.told.losses()[..], [(_, Loss::Expired)]));
    let stalls = stalls(&world);
    assert!(matches!(stalls[..], [Some(stall)] if stall >= ms(29_900)), "{stalls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_loss_without_a_stall_names_none() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.set(0..3, super::Behaviour::Hangs);
    guard.lost().await;
    pass(ms(1)).await;
    assert_eq!(stalls(&world), [None]);
}

/// While nothing is held there is no timer: an hour passes in a few steps. While something is, the
/// clocks are compared ten times a second.
#[tokio::test(start_paused = true)]
async fn the_keeper_sleeps_while_nothing_is_held() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    assert!(parks(ms(60_000)).await >= 600);
    assert!(guard.release().await.unwrap().is_released());
    pass(ms(2_000)).await;
    assert!(parks(ms(3_600_000)).await <= 10);

    // It wakes again for the next lock.
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn the_keeper_is_not_woken_by_each_lock_that_comes_and_goes() {
    let world = World::ready(3).await;
    for _ in 0..50 {
        let guard = world.locker.lock("k").await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
        pass(ms(50)).await; // nothing is held whenever the keeper looks
    }
    assert!(parks(ms(500)).await >= 5, "its timer goes on: the next lock need not wake it");
}

/// How often the runtime slept while the time passed.
async fn parks(duration: Duration) -> u64 {
    let count = || Handle::current().metrics().worker_park_count(0);
    let before = count();
    pass(duration).await;
    count() - before
}

fn stalls(world: &World) -> Vec<Option<Duration>> {
    let stalls = world.told.all(|news| match news {
        News::Lost { stalled, .. } => Some(stalled),
        _ => None,
    });
    stalls.into_iter().map(|(_, stalled)| stalled).collect()
}

/// The clock that the tests drive is the one that the nodes go by.
#[tokio::test(start_paused = true)]
async fn a_nodes_keys_end_by_the_driven_clock() {
    let world = World::ready(1).await;
    let guard = world.locker.lock("k").ttl(ms(1_000)).await.unwrap();
    guard.forget();
    assert_eq!(world.nodes[0].left("k"), ms(1_000));
    pass(ms(999)).await;
    assert_eq!(world.keys("k"), 1);
    pass(ms(1)).await;
    assert_eq!((world.keys("k"), Clock::default().can_sleep()), (0, true));
}
