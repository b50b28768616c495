//! The end of a locker.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::time::Duration;

use super::Behaviour::Hangs;
use super::{World, ms, now, pass};
use crate::observe::Loss;
use crate::options::Extend;

#[tokio::test(start_paused = true)]
async fn a_shutdown_releases_what_is_held_and_tells_its_holders() {
    let world = World::ready(3).await;
    let first = world.locker.lock("a").await.unwrap();
    let second = world.locker.lock("b").await.unwrap();
    let began = now();
    let found = world.locker.clone().shutdown(ms(1_000)).await.unwrap();
    assert_eq!((found.released, found.left.len(), found.unknown), (2, 0, 0));
    assert!(found.is_complete() && found.nodes.len() == 3);
    first.lost().await;
    second.lost().await;
    assert!(!first.is_valid() && !second.is_valid());
    assert_eq!(now(), began, "nothing had to be waited for");
    assert_eq!((world.keys("a"), world.keys("b")), (0, 0));
    let losses: Vec<_> = world.told.losses().into_iter().map(|(_, loss)| loss).collect();
    assert_eq!(losses, [Loss::Closed; 2]);
    let error = first.extend(ms(1_000)).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    drop((first, second));
    pass(ms(60_000)).await;
    assert_eq!(world.got(0, "release").len(), 2, "once each");
}

#[tokio::test(start_paused = true)]
async fn waiters_for_the_loss_and_for_the_lock_are_told_of_a_shutdown_at_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut waiting = pin!(world.locker.lock("k").wait_forever().into_future());
    let (mut lost, mut pause) = (pin!(guard.lost()), pin!(pass(ms(5_000))));
    poll_fn(|cx| {
        assert!(waiting.as_mut().poll(cx).is_pending() && lost.as_mut().poll(cx).is_pending());
        pause.as_mut().poll(cx)
    })
    .await;
    let began = now();
    world.locker.shutdown(ms(1_000)).await.unwrap();
    let error = waiting.await.unwrap_err();
    assert!(error.is_closed(), "{error}");
    lost.await;
    assert_eq!(now(), began);
    let error = world.locker.lock("k").await.unwrap_err();
    assert!(error.is_closed(), "{error}");
    let error = world.locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_leaves_the_locks_leaves_their_keys() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let found = world.locker.shutdown_leaving(ms(1_000)).await.unwrap();
    assert_eq!((found.released, found.left.len(), found.unknown), (0, 1, 0));
    assert_eq!(found.left[0].key, b"k");
    assert!(!guard.is_valid());
    assert_eq!(guard.owner_token(), found.left[0].token);
    drop(guard);
    pass(ms(1_000)).await;
    assert_eq!(world.keys("k"), 3);
    assert_eq!(world.got(0, "release").len(), 0);
    let began = now();
    let guard = world.beside().locker.adopt("k", &found.left[0].token).await.unwrap();
    assert!(guard.is_valid(), "it goes on elsewhere");
    assert_eq!(now(), began, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_no_longer_than_it_may_and_says_what_it_does_not_know() {
    let world = World::ready(3).await;
    let _guard = world.locker.lock("k").await.unwrap();
    world.set(0..2, Hangs);
    let began = now();
    let found = world.locker.shutdown(ms(30)).await.unwrap();
    assert_eq!((found.released, found.unknown, found.is_complete()), (0, 1, false));
    let took = now().since(began);
    assert!(took >= ms(30) && took <= ms(31), "{took:?}");
}

/// The driver stays until the releases are answered: a node may ask for the script.
#[tokio::test(start_paused = true)]
async fn a_lock_that_ends_with_its_locker_is_released_where_the_script_was_forgotten() {
    let World { locker, nodes, .. } = World::ready(3).await;
    let guard = locker.lock("k").await.unwrap();
    nodes.iter().for_each(|node| node.forget_scripts());
    drop(locker);
    drop(guard);
    pass(ms(1)).await;
    assert!(nodes.iter().all(|node| node.value("k").is_none()));
}

/// Where the program has ended meanwhile, none would bring a script that is missing.
#[tokio::test(start_paused = true)]
async fn every_lock_ends_by_a_script_that_the_nodes_know() {
    let world = World::ready(3).await;
    for kind in ["one", "all", "read", "slot"] {
        let locker = &world.locker;
        let guard = match kind {
            "one" => locker.lock("k").await.unwrap(),
            "all" => locker.lock_all(["k", "l"]).await.unwrap(),
            "read" => locker.read("k").await.unwrap(),
            _ => locker.slots("k", 2).acquire().await.unwrap(),
        };
        world.nodes.iter().for_each(|node| node.clear_log());
        drop(guard);
        pass(ms(1)).await;
        for node in &world.nodes {
            let heard = node.heard();
            let scripts = heard.iter().map(|heard| heard.words[0].as_ref());
            assert!(scripts.eq([&b"EVALSHA"[..]]), "{kind}: {heard:?}");
            assert_eq!(node.command(["DBSIZE"]), quorlock_resp::Frame::Integer(0));
        }
    }
}

/// An extension in flight is behind by the time of the release.
#[tokio::test(start_paused = true)]
async fn a_shutdown_with_an_extension_in_flight_leaves_no_key() {
    let world = World::ready(3).await;
    let _guard = world.locker.lock("k").await.unwrap();
    world.set(0..3, Hangs);
    while world.got(0, "extend").is_empty() {
        pass(ms(10)).await;
    }
    let found = world.locker.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(found.unknown, 1);
    world.set(0..3, super::Behaviour::Grants);
    pass(ms(10)).await;
    assert_eq!(world.keys("k"), 0);
    let whats: Vec<_> = world.nodes[1].log().iter().map(|said| said.what).collect();
    assert_eq!(whats, ["SET", "extend", "release", "PING"]);
}

/// A lock that was lost before the shutdown is not lost again by it.
#[tokio::test(start_paused = true)]
async fn a_loss_before_the_shutdown_is_told_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    guard.lost().await;
    pass(ms(200)).await;
    assert_eq!(world.told.losses().len(), 1);
    let found = world.locker.shutdown(ms(1_000)).await.unwrap();
    assert_eq!(found.unknown, 0);
    let losses: Vec<_> = world.told.losses().into_iter().map(|(_, loss)| loss).collect();
    assert_eq!(losses, [Loss::Expired]);
}
