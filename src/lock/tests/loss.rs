//! How a holder learns that it has lost, and when.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Behaviour::{After, Down, Grants, Hangs};
use super::{GRAIN, World, assert_due, ms, now, pass, warning};
use crate::observe::Loss;
use crate::options::Extend;

const TTL: Duration = ms(10_000);

/// Later than any of these tests lasts.
const NEVER: Duration = ms(3_600_000);

/// The lock is held to its end, extending is tried again and again, and the holder is told before
/// the end, to the timer's millisecond.
#[tokio::test(start_paused = true)]
async fn while_a_majority_hangs_the_lock_is_kept_and_its_loss_told_before_its_end() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(20_000)).await;
    let end = now().plus(guard.remaining());
    let due = warning(&guard, TTL);
    world.set(0..3, Hangs);
    guard.lost().await;
    assert_due(now(), due);
    assert!(!guard.is_valid());
    pass(ms(1)).await;
    assert!(matches!(world.told.losses()[..], [(at, Loss::Expired)] if at <= due.plus(ms(1))));
    let failures = world.told.failures();
    assert!(failures.len() >= 6, "tried every tenth of the TTL: {failures:?}");
    for (at, remaining) in failures {
        assert_eq!(at.plus(remaining), end, "it is held as long as before");
    }
    pass(ms(99)).await;
    assert_eq!(world.told.losses().len(), 1, "told once");
}

#[tokio::test(start_paused = true)]
async fn every_ttl_is_warned_of_in_time() {
    for ttl in [ms(20), ms(100), ms(300), ms(301), ms(5_000), ms(600_000)] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").ttl(ttl).await.unwrap();
        let due = warning(&guard, ttl);
        world.set(0..3, Hangs);
        guard.lost().await;
        assert_due(now(), due);
        assert!(!guard.is_valid(), "{ttl:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_lives_on_when_the_nodes_answer_again_in_time() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.set(0..5, Hangs);
    pass(ms(8_000)).await;
    assert!(!world.told.failures().is_empty());
    world.set(0..5, Grants);
    pass(ms(1_000)).await;
    assert!(guard.remaining() > ms(8_800), "{:?}", guard.remaining());
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
    assert_eq!((world.told.losses(), world.holders(&guard).len()), (vec![], 5));
}

#[tokio::test(start_paused = true)]
async fn a_lock_lives_on_when_every_node_is_away_and_back_in_time() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.set(0..5, Down);
    pass(ms(7_000)).await;
    world.set(0..5, Grants);
    let back = now();
    pass(ms(2_000)).await;
    let extensions = world.told.extensions();
    assert!(extensions.iter().any(|(at, _)| *at >= back), "{extensions:?}");
    assert!(guard.is_valid());
    assert_eq!(world.told.losses(), []);
}

/// Whatever keeps the nodes from extending it, and however old it is: it counts as lost a margin
/// before the end, to the nanosecond, and its holder is told then, to the timer's ticks.
#[tokio::test(start_paused = true)]
async fn the_loss_is_told_before_the_end_whatever_the_nodes_do() {
    type Blow = fn(&World);
    let blows: [(&str, Blow); 6] = [
        ("a majority is killed", |world| world.set(0..3, Down)),
        ("all are killed", |world| world.set(0..5, Down)),
        ("a majority hangs", |world| world.set(2..5, Hangs)),
        ("all hang", |world| world.set(0..5, Hangs)),
        ("what a majority answers does not arrive", |world| world.set(1..4, After(NEVER))),
        ("what they answer does not arrive", |world| world.set(0..5, After(NEVER))),
    ];
    let lives = [(300, 0), (300, 950), (839, 2_345), (10_000, 12_345), (10_000, 23_456)];
    for (name, blow) in blows {
        for (ttl, age) in lives {
            let what = format!("{name}, a TTL of {ttl} ms at an age of {age} ms");
            let world = World::ready(5).await;
            let guard = world.locker.lock("k").ttl(ms(ttl)).await.unwrap();
            pass(ms(age)).await;
            blow(&world);
            let due = warning(&guard, ms(ttl));
            let mut lost = pin!(guard.lost());
            pass(due.since(now()) - ms(3)).await;
            tokio::time::advance(due.since(now()) - Duration::from_nanos(1)).await;
            let told = poll_fn(|cx| Poll::Ready(lost.as_mut().poll(cx).is_ready()));
            assert!(!told.await, "{what}: so early");
            assert!(guard.is_valid(), "{what}: one nanosecond is left");
            tokio::time::advance(Duration::from_nanos(1)).await;
            assert!(!guard.is_valid(), "{what}: it has ended");
            lost.await;
            // A time between two of the timer's ticks may have to wait for the second.
            assert!(now() <= due.plus(2 * GRAIN), "{what}: {:?}", now().since(due));
            pass(GRAIN).await;
            assert!(matches!(world.told.losses()[..], [(_, Loss::Expired)]), "{what}");
        }
    }
}

/// At each instant the guard, a token and those who wait for the loss say the same.
#[cfg(feature = "tokio-util")]
#[tokio::test(start_paused = true)]
async fn a_guard_a_token_and_a_waiter_agree_on_the_instant_of_the_loss() {
    for extend in [Extend::Off, Extend::Forever] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").ttl(ms(1_000)).auto_extend(extend).await.unwrap();
        let token = guard.cancellation();
        let mut lost = pin!(guard.lost());
        world.set(0..3, Hangs);
        let mut is_lost = false;
        for _ in 0..2_000 {
            pass(ms(1)).await;
            tokio::task::yield_now().await;
            let told = poll_fn(|cx| Poll::Ready(is_lost || lost.as_mut().poll(cx).is_ready()));
            let told = told.await;
            let looks = [told, token.is_cancelled(), !guard.is_valid()];
            assert!(looks == [told; 3], "told, cancelled, invalid: {looks:?}");
            assert!(told || !is_lost, "lost is final");
            is_lost = told;
        }
        assert!(is_lost);
    }
}

/// What has been told is not taken back, though the nodes hold the lock for a margin still.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_told_to_be_lost_can_be_extended_no_more() {
    for early in [0, 1, 50, 99, 150, 160, 174] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
        pass(guard.remaining() - ms(early)).await;
        world.set(0..3, After(ms(60)));
        let (told, extended) = tokio::join!(
            async {
                tokio::select! { _ = guard.lost() => true, () = pass(ms(1_000)) => false }
            },
            guard.extend(TTL)
        );
        assert_ne!(told, extended.is_ok(), "{early} ms before the end");
        assert_ne!(told, guard.is_valid(), "{early} ms before the end");
    }
}

/// Each lock stays extended until its own time is over, and the losses wait for no extension.
#[cfg(feature = "tokio-util")]
#[tokio::test(start_paused = true)]
async fn losses_do_not_wait_behind_extensions() {
    use crate::lock::held::Held;
    use crate::options::Options;
    let options = Options { ttl: ms(1_000), extensions_max: 1, ..Options::default() };
    let world = World::with(3, options).await;
    let mut held = Vec::new();
    for key in 0..100 {
        let guard = world.locker.lock(format!("k{key}")).await.unwrap();
        let (token, view) = (guard.cancellation(), Held::new(&guard));
        held.push((guard, token, view, None));
    }
    world.set(0..3, After(ms(45)));
    let mut late = ms(0);
    for _ in 0..2_000 {
        pass(ms(1)).await;
        tokio::task::yield_now().await;
        for (_, token, view, lost_since) in &mut held {
            // The guard itself is not asked: it would tell of the loss that it finds.
            if view.looks_valid() {
                assert!(!token.is_cancelled(), "told too early");
            } else if !token.is_cancelled() {
                late = late.max(now().since(*lost_since.get_or_insert(now())));
            }
        }
    }
    let lost = held.iter().filter(|(guard, ..)| !guard.is_valid()).count();
    assert!(lost > 0, "too few to be served in time");
    assert_eq!(world.told.losses().len(), lost);
    assert!(late <= GRAIN, "told {late:?} late");
}

/// The next extension finds it, and tasks that wait are told with the deciding answer.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_gone_from_a_majority_is_lost_at_once() {
    type Harm = fn(&super::Node);
    let harms: [(&str, Harm); 3] = [
        ("deleted", |node| node.delete("k")),
        ("flushed", |node| node.flush()),
        ("stolen", |node| node.steal("k")),
    ];
    let harms = harms.into_iter().flat_map(|harm| [0, 12_345, 23_456].map(|age| (harm, age)));
    for ((name, harm), age) in harms {
        let world = World::ready(5).await;
        let guard = world.locker.lock("k").await.unwrap();
        pass(ms(age)).await;
        world.nodes[0].clear_log();
        world.nodes[1..4].iter().for_each(|node| harm(node));
        let end = now().plus(guard.remaining());
        guard.lost().await;
        let sent = world.got(0, "extend");
        assert_eq!((sent.len(), now()), (1, sent[0].at), "{name}: with the first extension");
        assert!(now() < end, "{name}: long before its end");
        assert!(!guard.is_valid() && guard.remaining().is_zero(), "{name}");
        assert!(matches!(world.told.losses()[..], [(_, Loss::Gone)]), "{name}");
        let error = guard.extend(TTL).await.unwrap_err();
        assert!(error.is_lost(), "{name}: {error}");
        pass(ms(60_000)).await;
        assert_eq!(world.got(2, "SET").len(), 1, "{name}: what is lost is never made again");
        assert_eq!(world.told.losses().len(), 1, "{name}");
    }
}

/// Until the end of validity another client cannot have it; from then on it can, and the first one
/// has been told.
#[tokio::test(start_paused = true)]
async fn a_holder_that_is_cut_off_is_told_before_another_can_hold_the_lock() {
    let world = World::ready(5).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(20_000)).await;
    let end = now().plus(guard.remaining());
    // The client's frames no longer reach any node: its extensions wait in the network.
    world.set(0..5, Down);
    guard.lost().await;
    let told = now();
    assert!(told < end);
    world.set(0..5, Grants);
    drop(guard);
    let theirs = other.locker.lock("k").wait(ms(20_000)).await.unwrap();
    assert!(now() >= told && theirs.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_can_be_extended_no_more_and_nothing_is_created() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    pass(TTL).await;
    assert_eq!(world.keys("k"), 0);
    let error = guard.extend(TTL).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(!guard.is_valid());
    assert_eq!(world.keys("k"), 0);
}

/// A release says what it found.
#[tokio::test(start_paused = true)]
async fn the_release_of_a_lock_that_was_lost_says_so_at_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    pass(TTL).await;
    let began = now();
    let found = guard.release().await.unwrap();
    assert!(matches!(found, crate::Release::Expired), "{found:?}");
    assert_eq!(now(), began);

    let guard = world.locker.lock("k").await.unwrap();
    world.nodes.iter().for_each(|node| node.steal("k"));
    let found = guard.release().await.unwrap();
    assert!(matches!(found, crate::Release::Taken), "{found:?}");
    assert_eq!(world.keys("k"), 3, "another's keys are left");
}

/// Neither a node that refused the acquisition, and is not asked, nor one that does not answer, is
/// taken for one that holds another's key.
#[tokio::test(start_paused = true)]
async fn nodes_not_asked_or_silent_are_not_taken_for_anothers_holders() {
    let world = World::ready(5).await;
    world.nodes[0].steal("k");
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.nodes[1].delete("k");
    world.nodes[2..4].iter().for_each(|node| node.steal("k"));
    let found = guard.release().await.unwrap();
    assert!(matches!(found, crate::Release::Expired), "{found:?}");

    let guard = world.locker.lock("free").auto_extend(Extend::Off).await.unwrap();
    world.set(0..2, Hangs);
    world.nodes[2..4].iter().for_each(|node| node.delete("free"));
    let found = guard.release().await.unwrap();
    assert!(matches!(found, crate::Release::Unknown(_)), "{found:?}");
}

/// One node hangs, which decides the extension as soon as the second says that its key is gone. The
/// third says so later: then a majority is known to be gone.
#[tokio::test(start_paused = true)]
async fn a_majority_whose_last_word_comes_behind_the_verdict_is_lost_within_a_tick() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").ttl(ms(60_000)).await.unwrap();
    world.nodes[0].set(Hangs);
    // The first node has become suspect: no task waits for it again.
    guard.extend(ms(60_000)).await.unwrap();
    pass(ms(1_000)).await;
    world.nodes[2].set(After(ms(50)));
    world.nodes[1].flush();
    world.nodes[2].flush();
    world.nodes[2].clear_log();
    guard.lost().await;
    let asked = world.got(2, "extend")[0].at;
    assert!(now().since(asked) <= ms(50 + 101), "{:?} after asking", now().since(asked));
    assert!(matches!(world.told.losses()[..], [(_, Loss::Gone)]));
}

/// The loss has been told, and the holder may have stopped: it must not be taken back.
#[tokio::test(start_paused = true)]
async fn a_loss_that_was_told_is_not_taken_back_by_an_extension_by_hand() {
    for sent_before in [false, true] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
        let end = now().plus(guard.remaining());
        if sent_before {
            pass(guard.remaining() - ms(120)).await;
            world.set(0..3, After(ms(60)));
        } else {
            guard.lost().await;
            pass(ms(2)).await;
            assert_eq!(world.told.losses().len(), 1);
        }
        let error = guard.extend(TTL).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        assert_eq!(world.told.losses().len(), 1);
        pass(end.since(now())).await;
        assert!(!guard.is_valid());
    }
}

/// The connections end with the extension in them: it is tried again on the next ones.
#[tokio::test(start_paused = true)]
async fn an_extension_that_its_connections_took_with_them_is_tried_again() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.set(0..3, Hangs);
    while world.got(0, "extend").is_empty() {
        pass(ms(10)).await;
    }
    world.nodes.iter().for_each(|node| node.cut());
    world.set(0..3, Grants);
    pass(ms(2_000)).await;
    assert_eq!(world.told.failures().len(), 1);
    assert!(guard.remaining() > ms(8_500), "{:?}", guard.remaining());
    assert_eq!(world.holders(&guard), [0, 1, 2]);
}

/// What an extension by hand finds is told to all who wait.
#[tokio::test(start_paused = true)]
async fn a_loss_that_an_extension_by_hand_finds_is_told_to_the_waiters() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let began = now();
    world.nodes[0..2].iter().for_each(|node| node.flush());
    let (_, extended) = tokio::join!(guard.lost(), guard.extend(TTL));
    assert!(extended.unwrap_err().is_lost());
    assert_eq!(now(), began);
    pass(ms(1)).await;
    assert!(matches!(world.told.losses()[..], [(_, Loss::Gone)]));
}

/// The machine is suspended with an extension in flight whose answer comes afterwards: what is over
/// stays over.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_end_brings_nothing_back() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.set(0..3, Hangs);
    while world.got(0, "extend").is_empty() {
        pass(ms(10)).await;
    }
    world.driven.suspend(ms(8_000));
    world.set(0..3, Grants);
    pass(ms(200)).await;
    assert_eq!(world.nodes[0].left("k"), ms(9_800), "the nodes have extended it");
    assert!(!guard.is_valid() && world.told.losses().len() == 1);
    assert!(guard.extend(TTL).await.unwrap_err().is_lost());
}
