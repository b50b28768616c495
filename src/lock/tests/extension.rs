//! When a held lock is extended, and until when.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Behaviour::{After, Grants, Hangs};
use super::{News, World, assert_due, ms, now, pass, warning};
use crate::clock::{Moment, nanoseconds};
use crate::lock::LockGuard;
use crate::observe::Loss;
use crate::options::{Drift, Extend, Options};

const TTL: Duration = ms(10_000);

/// Between 4/15 and 1/3 of the TTL after the nodes were last told, by chance, less the margin for
/// drift and up to a 64th for the sake of batches; and then again.
#[tokio::test(start_paused = true)]
async fn a_lock_is_extended_at_a_third_of_its_ttl_again_and_again() {
    let world = World::ready(3).await;
    let began = now();
    let mut guards = Vec::new();
    for lock in 0..64 {
        guards.push(world.locker.lock(format!("k{lock}")).await.unwrap());
    }
    assert_eq!(now(), began);
    pass(TTL).await;
    let (early, late) = (TTL * 4 / 15 - Drift::default().of(TTL) - TTL / 64, TTL / 3);
    let mut firsts = BTreeSet::new();
    for lock in 0..64 {
        let of_lock = |said: &super::Said| said.key == format!("k{lock}");
        let sent: Vec<_> = world.got(0, "extend").into_iter().filter(of_lock).collect();
        let mut last = began;
        for said in &sent {
            let after = said.at.since(last);
            assert!(after >= early && after <= late + ms(1), "k{lock} after {after:?}");
            last = said.at;
        }
        assert!(sent.len() >= 2 && now().since(last) <= late, "k{lock}: {sent:?}");
        firsts.insert(sent[0].at);
    }
    assert!(firsts.len() > 3, "they come at different times: {firsts:?}");
    assert!(firsts.len() < 10, "and in batches: {firsts:?}");
    assert!(guards.iter().all(|guard| guard.remaining() >= TTL * 2 / 3 - ms(103)));
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_is_extended_for_as_long_as_it_is_held() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    for _ in 0..3_600 {
        pass(ms(1_000)).await;
        assert!(guard.remaining() > ms(6_000), "{:?}", guard.remaining());
    }
    assert_eq!((world.told.losses(), world.holders(&guard).len()), (vec![], 5));
    let told = world.told.extensions();
    assert!(told.len() >= 1_080 && told.iter().all(|(_, left)| *left == ms(10_000 - 102)));
    assert!(guard.release().await.unwrap().is_released());
    world.nodes[0].clear_log();
    pass(ms(60_000)).await;
    assert_eq!(world.nodes[0].log(), [], "a lock that was let go of is not extended");
}

/// After a stall all of them are due: they go out together.
#[tokio::test(start_paused = true)]
async fn locks_that_are_due_together_are_extended_in_one_batch() {
    let world = World::ready(3).await;
    let mut guards = Vec::new();
    for lock in 0..50 {
        guards.push(world.locker.lock(format!("k{lock}")).await.unwrap());
    }
    tokio::time::advance(ms(4_000)).await;
    pass(ms(1)).await;
    for node in 0..3 {
        let sent = world.got(node, "extend");
        let (moments, reads): (BTreeSet<_>, BTreeSet<_>) =
            sent.iter().map(|said| (said.at, said.read)).unzip();
        assert_eq!((sent.len(), moments.len()), (50, 1));
        assert!(reads.len() <= 2, "in {} pieces", reads.len());
    }
    assert!(guards.iter().all(|guard| guard.remaining() > ms(9_800)));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_not_to_be_extended_ends_on_time() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let due = warning(&guard, TTL);
    guard.lost().await;
    assert_due(now(), due);
    assert!(!guard.is_valid());
    pass(TTL).await;
    assert_eq!(world.got(0, "extend"), []);
    let losses = world.told.losses();
    assert!(matches!(losses[..], [(_, Loss::Expired)]), "{losses:?}");
    assert_due(losses[0].0, due);
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_extended_for_as_long_as_it_may_be_and_its_end_is_told_before() {
    let world = World::ready(3).await;
    let began = now();
    let longest = ms(25_000);
    let guard = world.locker.lock("k").auto_extend(Extend::For(longest)).await.unwrap();
    guard.lost().await;
    let (last, _) = *world.told.extensions().last().unwrap();
    assert!(last.since(began) < longest);
    assert_due(now(), last.plus(ms(10_000 - 102 - 100)));
    pass(TTL).await;
    let overlong = overlong(&world);
    assert_eq!(overlong.len(), 1, "{overlong:?}");
    let (told, remaining) = overlong[0];
    assert!(told.since(began) >= longest && told.since(began) <= longest + ms(3_334));
    assert_eq!(remaining, last.plus(ms(10_000 - 102)).since(told));
    assert!(matches!(world.told.losses()[..], [(_, Loss::Expired)]));
}

fn overlong(world: &World) -> Vec<(Moment, Duration)> {
    world.told.all(|news| match news {
        News::HeldTooLong { remaining } => Some(remaining),
        _ => None,
    })
}

/// The guard goes while an extension is on its way: no key is left, because the release stands
/// behind it on every connection.
#[tokio::test(start_paused = true)]
async fn a_release_stands_behind_the_extension_in_flight() {
    for waits in [false, true] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").await.unwrap();
        world.set(0..3, Hangs);
        while world.got(0, "extend").is_empty() {
            pass(ms(10)).await;
        }
        if waits {
            let release = guard.release();
            world.set(0..3, Grants);
            assert!(release.await.unwrap().is_released());
        } else {
            drop(guard);
            world.set(0..3, Grants);
        }
        pass(ms(1_000)).await;
        for node in 0..3 {
            let whats: Vec<_> = world.nodes[node].log().iter().map(|said| said.what).collect();
            assert_eq!(whats, ["SET", "extend", "release"], "on node {node}");
        }
        assert_eq!(world.keys("k"), 0);
        assert_eq!(world.told.losses(), [], "what was let go of is not lost");
    }
}

/// Places are used again: what the last hold there had entered is not the next one's.
#[tokio::test(start_paused = true)]
async fn a_lock_that_follows_one_that_was_extended_is_held_too() {
    let world = World::ready(3).await;
    for _ in 0..3 {
        let guard = world.locker.lock("k").await.unwrap();
        assert!(guard.is_valid());
        pass(ms(5_000)).await;
        assert!(guard.is_valid());
        assert!(guard.release().await.unwrap().is_released());
    }
}

/// Until just behind a moment to which what is due is rounded, so that two locks with the same
/// chance are due equally long after they were acquired.
async fn pass_to_a_batch() {
    let grain = nanoseconds(2 * TTL / 64);
    let start = now().rounded_down(grain);
    while now().rounded_down(grain) == start {
        pass(ms(1)).await;
    }
    pass(ms(2)).await;
}

/// The last extension is on its way when the time is up.
#[tokio::test(start_paused = true)]
async fn that_a_lock_was_held_for_too_long_is_told_when_its_last_extension_is_late_too() {
    let world = World::behaving(&[After(ms(90)); 3]).await;
    pass_to_a_batch().await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(TTL).await;
    let sent = world.got(0, "extend")[0].at.since(world.got(0, "SET")[0].at);
    drop(guard);
    pass(ms(200)).await;

    // The same chance of the next lock is not known before: its limit is set when it is.
    let world = World::behaving(&[After(ms(90)); 3]).await;
    let longest = sent - ms(90) + ms(20);
    pass_to_a_batch().await;
    let guard = world.locker.lock("k").auto_extend(Extend::For(longest)).await.unwrap();
    guard.lost().await;
    pass(ms(1)).await;
    assert_eq!(world.told.extensions().len(), 1);
    assert_eq!(overlong(&world).len(), 1);
}

/// Many more than may be in flight at once.
#[tokio::test(start_paused = true)]
async fn thousands_of_locks_that_are_due_together_are_all_extended() {
    let world = World::ready(3).await;
    let mut guards = Vec::new();
    for lock in 0..3_000 {
        guards.push(world.locker.lock(format!("k{lock}")).await.unwrap());
    }
    tokio::time::advance(ms(4_000)).await;
    pass(ms(500)).await;
    assert!(guards.iter().all(|guard| guard.remaining() > ms(9_300)));
    assert_eq!((world.told.extensions().len(), world.told.failures().len()), (3_000, 0));
}

/// All are due within less than a second, and a node answers in a tenth of one.
#[tokio::test(start_paused = true)]
async fn no_more_extensions_are_in_flight_than_there_may_be() {
    const MOST: usize = 2;
    let options = Options { ttl: ms(10_000), extensions_max: MOST, ..Options::default() };
    let world = World::with(3, options).await;
    let mut guards = Vec::new();
    for lock in 0..40 {
        guards.push(world.locker.lock(format!("k{lock}")).await.unwrap());
    }
    world.set(0..3, After(ms(90)));
    pass(ms(6_000)).await;
    let sent: Vec<Moment> = world.got(0, "extend").iter().map(|said| said.at).collect();
    let in_flight =
        |at: Moment| sent.iter().filter(move |sent| **sent <= at && at.since(**sent) < ms(90));
    let most = sent.iter().map(|at| in_flight(*at).count()).max();
    assert_eq!((sent.len() >= 40, most), (true, Some(MOST)));
}

/// All are due within a second, and to extend each takes twice as long as until the first are due
/// again: those must not go before the last.
#[tokio::test(start_paused = true)]
async fn the_lock_whose_end_is_nearest_is_extended_first() {
    let options = Options { ttl: ms(10_000), extensions_max: 2, ..Options::default() };
    let world = World::with(3, options).await;
    let mut guards = Vec::new();
    for lock in 0..200 {
        guards.push(world.locker.lock(format!("k{lock}")).await.unwrap());
    }
    world.set(0..3, After(ms(40)));
    pass(ms(4_000)).await;
    // One that cannot wait until all who came before it have been served.
    guards.push(world.locker.lock("short").ttl(ms(1_000)).await.unwrap());
    pass(ms(60_000)).await;
    let held = guards.iter().filter(|guard| guard.is_valid()).count();
    assert_eq!((held, world.told.losses().len()), (201, 0));
}

/// Two locks are due, and no more than one extension may be in flight: the nodes have got the one
/// and not answered it, and the other waits for room.
async fn one_extended_and_one_to_be(extend: Extend) -> (World, [LockGuard; 2]) {
    let options = Options { ttl: TTL, extend, extensions_max: 1, ..Options::default() };
    let world = World::with(3, options).await;
    let guards = [world.locker.lock("a").await.unwrap(), world.locker.lock("b").await.unwrap()];
    world.set(0..3, Hangs);
    tokio::time::advance(ms(4_000)).await;
    pass(ms(1)).await;
    assert_eq!(world.got(0, "extend").len(), 1);
    (world, guards)
}

/// The first event after the suspension makes room for its extension, which must not be sent: the
/// lock is lost, and another client may wait for its key to end.
#[tokio::test(start_paused = true)]
async fn a_lock_that_ends_while_it_waits_to_be_extended_is_told_and_not_extended() {
    let (world, guards) = one_extended_and_one_to_be(Extend::Forever).await;
    world.driven.suspend(TTL);
    world.set(0..3, Grants);
    let began = now();
    pass(ms(1)).await;
    let losses = world.told.losses();
    assert!(matches!(losses[..], [(_, Loss::Expired), (_, Loss::Expired)]), "{losses:?}");
    assert!(losses.iter().all(|(at, _)| *at == began), "at once: {losses:?}");
    assert!(guards.iter().all(|guard| !guard.is_valid()));
    assert_eq!(world.got(0, "extend").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_time_is_up_while_it_waits_to_be_extended_is_told_and_not_extended() {
    let (world, _guards) = one_extended_and_one_to_be(Extend::For(ms(4_010))).await;
    pass(ms(20)).await;
    world.set(0..3, Grants);
    pass(ms(1)).await;
    assert_eq!((world.told.extensions().len(), overlong(&world).len()), (1, 2));
    assert_eq!(world.got(0, "extend").len(), 1);
}

/// A guard keeps what extends it.
#[tokio::test(start_paused = true)]
async fn a_lock_is_extended_after_its_locker_was_dropped() {
    let World { locker, nodes, .. } = World::ready(3).await;
    let guard = locker.lock("k").await.unwrap();
    drop(locker);
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
    drop(guard);
    pass(ms(1_000)).await;
    assert!(nodes.iter().all(|node| node.value("k").is_none()));
}

/// Each time too few nodes, and yet, one time with another, a majority.
#[tokio::test(start_paused = true)]
async fn extensions_that_fail_can_make_a_lock_last_longer_and_tell_how_long() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    world.set(2..5, Hangs);
    pass(ms(5_000)).await;
    assert_eq!(guard.remaining(), ms(10_000 - 102 - 5_000));
    world.set(0..2, Hangs);
    world.set(2..3, Grants);
    pass(ms(1_500)).await;
    assert_eq!(world.told.extensions(), [], "not one has succeeded");
    let (at, told) = *world.told.failures().last().unwrap();
    assert_eq!(told - now().since(at), guard.remaining());
    assert!(guard.remaining() > ms(10_000 - 102 - 5_000), "{:?}", guard.remaining());
}
