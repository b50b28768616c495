//! Undos that are owed to a node: until they are settled, it is not counted on.

use super::Behaviour::{After, Down, Grants, Hangs};
use super::panics::Bomb;
use super::{World, ms, pass};
use crate::lease::Release;
use crate::lock::guard::LockGuard;
use crate::observe::Event;
use crate::options::{Extend, Options};
use crate::report::{Fault, Outcome};

/// The nodes that hold the key for as long as the guard says at least.
fn keep_the_promise(world: &World, guard: &LockGuard) -> usize {
    let kept = |node: &&usize| world.nodes[**node].left("k") >= guard.remaining();
    world.holders(guard).iter().filter(kept).count()
}

/// Node 3 has set the key, and its reply is lost.
async fn acquired_but_for_a_reply(world: &World, extend: Extend) -> LockGuard {
    world.nodes[3].set(After(ms(90)));
    world.nodes[4].set(Hangs);
    let guard = world.locker.lock("k").auto_extend(extend).await.unwrap();
    pass(ms(10)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2, 3]);
    world.nodes[3].set(Grants);
    world.nodes[3].cut();
    guard
}

/// The driver has gone with the connection, and the extension starts the next one: it must not come
/// to the node before the undo, and be granted a key that the undo then deletes.
#[tokio::test(start_paused = true)]
async fn an_extension_does_not_count_a_node_whose_undo_is_owed() {
    let mut options = Options::default();
    let bomb = Bomb::new(|event| matches!(event, Event::NodeDown { .. }));
    options.observers.add(bomb.clone());
    let world = World::with(5, options).await;
    let guard = acquired_but_for_a_reply(&world, Extend::Off).await;
    pass(ms(1)).await;
    assert!(bomb.has_gone_off(), "the driver has ended");
    let left = guard.remaining();
    world.nodes[2].set(Hangs);

    let error = guard.extend(ms(20_000)).await.unwrap_err();
    assert!(error.is_unavailable(), "two of five have extended it: {error}");
    assert!(guard.remaining() < left);
    pass(ms(1)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2], "it was undone on node 3");
    assert_eq!(keep_the_promise(&world, &guard), 3);

    world.nodes[2].set(Grants);
    pass(ms(1_000)).await;
    guard.extend(ms(20_000)).await.unwrap();
    assert!(guard.remaining() > ms(19_000) && keep_the_promise(&world, &guard) >= 3);
}

/// Where old connections cannot be ended, undos are repeated: a key that was set again meanwhile
/// would be deleted by the next one.
#[tokio::test(start_paused = true)]
async fn no_key_is_set_again_where_it_may_still_be_undone() {
    let world = World::ready(5).await;
    world.nodes[3].forbid_kill();
    let guard = acquired_but_for_a_reply(&world, Extend::Forever).await;
    let horizon = Options::default().link.undo_horizon;
    pass(horizon).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    let undone = world.got(3, "RELEASE").len();
    assert!(undone > 30, "undone {undone} times only");
    assert_eq!(world.got(3, "SET").len(), 1);
    pass(ms(5_000)).await;
    let undone = world.got(3, "RELEASE").len();
    for _ in 0..60 {
        assert_eq!(world.holders(&guard), [0, 1, 2, 3], "set again for good");
        pass(ms(500)).await;
    }
    assert_eq!(world.got(3, "RELEASE").len(), undone);
}

/// A release that a server refuses is tried again with pauses, and no longer than its key lives.
#[tokio::test(start_paused = true)]
async fn a_refused_release_is_repeated_for_as_long_as_the_key_can_live() {
    let world = World::ready(3).await;
    world.nodes[0].set_busy(true);
    drop(world.locker.lock("k").await.unwrap());
    pass(Options::default().link.undo_horizon).await;
    let tried = world.got(0, "RELEASE").len();
    assert!((20..30).contains(&tried), "{tried} times");
    pass(ms(60_000)).await;
    assert_eq!((world.got(0, "RELEASE").len(), world.keys("k")), (tried, 0));

    // One that was asked for with a longer life, or was given it later.
    let guards = [
        world.locker.lock("long").ttl(ms(120_000)).await.unwrap(),
        world.locker.lock("longer").await.unwrap(),
    ];
    world.nodes[0].set_busy(false);
    guards[1].extend(ms(300_000)).await.unwrap();
    world.nodes[0].set_busy(true);
    drop(guards);
    pass(ms(100_000)).await;
    assert_eq!((world.keys("long"), world.keys("longer")), (1, 1), "it refuses still");
    world.nodes[0].set_busy(false);
    pass(ms(1_100)).await;
    assert_eq!((world.keys("long"), world.keys("longer")), (0, 0));
}

/// Nothing else is sent there that would notice it; and where all nodes hang, no answer of another
/// one wakes the driver.
#[tokio::test(start_paused = true)]
async fn a_connection_that_never_answers_a_dropped_guards_release_is_ended() {
    for hanging in 1..=3 {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
        pass(ms(1_000)).await;
        world.set(0..hanging, Hangs);
        drop(guard);
        let reply_age_max = Options::default().link.reply_age_max;
        pass(reply_age_max - ms(100)).await;
        assert!(world.locker.health().iter().all(|node| node.outcome == Outcome::Connected));
        pass(ms(200)).await;
        for node in world.locker.health().into_iter().take(hanging) {
            let Outcome::Down { fault } = node.outcome else { panic!("{node:?}") };
            assert!(matches!(fault, Fault::Silent { .. } | Fault::Connecting { .. }), "{fault:?}");
        }
    }
}

/// The next connection undoes the acquisition there whose answer was lost; the release behind that
/// finds no key. That the lock had expired is not known.
#[tokio::test(start_paused = true)]
async fn a_release_does_not_take_what_we_have_undone_for_expired() {
    let world = World::ready(5).await;
    world.nodes[3].set(After(ms(90)));
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    pass(ms(10)).await;
    world.nodes[2].delete("k");
    world.nodes[4].delete("k");
    assert_eq!(world.holders(&guard), [0, 1, 3]);
    world.nodes[3].cut();
    pass(ms(1)).await;
    while !world.locker.health()[3].is_connected() {
        pass(ms(1)).await;
    }
    let release = guard.release().await.unwrap();
    assert!(matches!(release, Release::Unknown(_)), "{release:?}");
    pass(ms(1_000)).await;
    assert_eq!(world.keys("k"), 0);
}

/// As before, where the key was given again to a node that had lost it, and that answer is lost.
#[tokio::test(start_paused = true)]
async fn a_release_does_not_take_a_healed_key_that_we_have_undone_for_expired() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    pass(ms(10)).await;
    world.nodes[3].delete("k");
    world.nodes[3].set(After(ms(90)));
    while !world.holders(&guard).contains(&3) {
        pass(ms(1)).await;
    }
    world.nodes[2].delete("k");
    world.nodes[4].delete("k");
    assert_eq!(world.holders(&guard), [0, 1, 3]);
    world.nodes[3].cut();
    pass(ms(1)).await;
    while !world.locker.health()[3].is_connected() {
        pass(ms(1)).await;
    }
    let release = guard.release().await.unwrap();
    assert!(matches!(release, Release::Unknown(_)), "{release:?}");
    pass(ms(1_000)).await;
    assert_eq!(world.keys("k"), 0);
}

/// Who adopts the lock would find fewer nodes than it was left on.
#[tokio::test(start_paused = true)]
async fn what_is_owed_of_a_lock_that_is_left_is_withdrawn() {
    let world = World::ready(5).await;
    world.nodes[3].set(After(ms(90)));
    world.nodes[4].set(Hangs);
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(10)).await;
    world.nodes[3].set(Down);
    pass(ms(1)).await;
    let token = guard.forget();
    world.nodes[3].clear_log();
    world.nodes[3].set(Grants);
    pass(ms(2_000)).await;
    let said: Vec<_> = world.nodes[3].log().iter().map(|said| said.what).collect();
    assert!(said.iter().all(|what| *what == "PING"), "{said:?}");
    assert_eq!(world.holders_of("k", &token), [0, 1, 2, 3]);
}

/// The driver of a locker that is dropped goes on for half a second, and the machine stands still
/// for longer: that time is not over when it goes on.
#[tokio::test(start_paused = true)]
async fn what_is_owed_when_a_locker_is_dropped_outlasts_a_stall() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[2].set(Down);
    pass(ms(1)).await;
    drop(guard);
    let World { nodes, driven, locker, .. } = world;
    drop(locker);
    pass(ms(1)).await;
    driven.stand_still(true);
    nodes[2].set(Grants);
    pass(ms(2_000)).await;
    assert!(nodes[2].value("k").is_some());
    driven.stand_still(false);
    pass(ms(1_000)).await;
    assert!(nodes[2].value("k").is_none(), "it was deleted behind the stall");
}
