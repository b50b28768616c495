//! Extensions by hand.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use super::Behaviour::Hangs;
use super::{World, assert_due, ms, now, pass, warning};
use crate::options::Extend;

const TTL: Duration = ms(10_000);

#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_moves_the_deadline_and_counts_from_then_on() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(1_000)).await;
    guard.extend(ms(60_000)).await.unwrap();
    assert_eq!(guard.remaining(), ms(60_000 - 602));
    assert_eq!(world.nodes[0].left("k"), ms(60_000));
    world.nodes[0].clear_log();
    pass(ms(15_000)).await;
    assert_eq!(world.got(0, "extend"), [], "a quarter of the new TTL has passed");
    pass(ms(5_000)).await;
    assert_eq!(world.got(0, "extend").len(), 1, "a third of the new TTL has passed");
    assert!(guard.remaining() > ms(55_000));
}

#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_never_shortens() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    guard.extend(ms(2_000)).await.unwrap();
    assert_eq!(guard.remaining(), ms(10_000 - 102));
    assert_eq!(world.nodes[0].left("k"), TTL);
    pass(ms(9_000)).await;
    assert!(guard.is_valid());
    guard.extend(ms(2_000)).await.unwrap();
    assert_eq!(guard.remaining(), ms(2_000 - 22));
}

#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_that_fails_leaves_the_deadline() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let deadline = guard.deadline();
    world.set(0..2, Hangs);
    let error = guard.extend(ms(30_000)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(guard.is_valid());
    assert_eq!(guard.deadline(), deadline);
}

/// The warning is a share of the TTL that the lock has, not of the one that it was not given.
#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_that_fails_leaves_the_warning() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let due = warning(&guard, TTL);
    world.set(0..2, Hangs);
    guard.extend(ms(3_600_000)).await.unwrap_err();
    guard.lost().await;
    assert_due(now(), due);
}

/// The lease became shorter than it was when the waiting began.
#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_that_finds_less_is_told_by_the_new_end() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let first = guard.deadline();
    world.nodes[2].set(Hangs);
    guard.extend(ms(60_000)).await.unwrap();
    let (mut lost, mut pause) = (pin!(guard.lost()), pin!(pass(ms(1_000))));
    poll_fn(|cx| {
        assert!(lost.as_mut().poll(cx).is_pending());
        pause.as_mut().poll(cx)
    })
    .await;
    world.nodes[0].flush();
    let error = guard.extend(ms(60_000)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(guard.is_valid());
    assert_eq!(guard.deadline(), first, "node 2 has promised no more than that");
    let due = warning(&guard, ms(60_000));
    lost.await;
    assert_due(now(), due);
    assert!(!guard.is_valid());
    pass(ms(1_000)).await;
    assert_eq!(world.told.losses().len(), 1);
}
