//! What a shutdown meets: verdicts that come behind it, nodes that are away, another shutdown.

use std::collections::BTreeSet;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::Behaviour::{After, Down, Grants, Hangs};
use super::panics::Bomb;
use super::{World, ms, now, pass};
use crate::lock::LockGuard;
use crate::observe::Event;
use crate::options::Options;
use crate::report::Outcome;

/// Sends what `take` asks the nodes, and shuts the locker down before they answer.
async fn shut_down_meanwhile<T>(world: &World, take: impl IntoFuture<Output = T>) -> T {
    let mut take = pin!(take.into_future());
    poll_fn(|cx| {
        assert!(take.as_mut().poll(cx).is_pending(), "so early?");
        Poll::Ready(())
    })
    .await;
    world.locker.shutdown(ms(1_000)).await.unwrap();
    take.await
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_won_behind_the_shutdown_is_let_go_of() {
    let world = World::behaving(&[After(ms(20)); 3]).await;
    let won = shut_down_meanwhile(&world, world.locker.lock("k").try_acquire()).await;
    let error = won.unwrap_err();
    assert!(error.is_closed(), "{error}");
    pass(ms(100)).await;
    assert_eq!((world.got(0, "SET").len(), world.keys("k")), (1, 0));

    let world = World::behaving(&[After(ms(20)); 3]).await;
    let error = shut_down_meanwhile(&world, world.locker.lock("k")).await.unwrap_err();
    assert!(error.is_closed(), "{error}");
    pass(ms(100)).await;
    assert_eq!((world.got(0, "SET").len(), world.keys("k")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_taken_over_behind_the_shutdown_is_put_back() {
    let world = World::behaving(&[After(ms(20)); 3]).await;
    let token = world.beside().locker.lock("k").await.unwrap().forget();
    let adopted = shut_down_meanwhile(&world, world.locker.adopt("k", &token)).await;
    let error = adopted.unwrap_err();
    assert!(error.is_closed(), "{error}");
    pass(ms(100)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
}

/// A command that undoes nothing must not be kept for a node as if it were an undo.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_away_at_the_shutdown_gets_whole_commands_when_it_is_back() {
    let mut options = Options::default();
    options.link.connections = 2;
    let world = World::with(3, options).await;
    let mut guards: Vec<LockGuard> = Vec::new();
    for key in 0..8 {
        guards.push(world.locker.lock(format!("k{key}")).await.unwrap());
    }
    world.nodes[0].set(Down);
    pass(ms(1)).await;
    let found = world.locker.clone().shutdown(ms(100)).await.unwrap();
    assert_eq!((found.released, found.unknown), (8, 0));
    for node in 1..3 {
        let pings = world.got(node, "PING");
        let connections: BTreeSet<_> = pings.iter().map(|said| said.connection).collect();
        assert_eq!((pings.len(), connections.len()), (2, 2), "one on each connection");
    }
    world.nodes[0].clear_log();
    world.nodes[0].set(Grants);
    pass(ms(2_000)).await;
    let whats: Vec<_> = world.nodes[0].log().iter().map(|said| said.what).collect();
    assert_eq!(whats, ["RELEASE"; 8]);
    // Half a command would swallow what comes next.
    let found = world.locker.clone().shutdown(ms(100)).await.unwrap();
    assert!(found.nodes.iter().all(|node| node.outcome == Outcome::Granted), "{found:?}");
    let whats: Vec<_> = world.nodes[0].log().iter().skip(8).map(|said| said.what).collect();
    assert_eq!(whats, ["PING"; 2]);
    assert!((0..8).all(|key| world.keys(&format!("k{key}")) == 0));
}

/// No undo is sent after its process has ended.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_a_node_that_hangs_or_is_away_is_owed() {
    for (behaviour, lasts) in [(Hangs, ms(1_000)), (Hangs, ms(8_000)), (Down, ms(1_000))] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").await.unwrap();
        world.set(0..1, behaviour);
        drop(guard);
        // A node that hangs has become suspect by then.
        pass(ms(600)).await;
        let began = now();
        let back = async {
            pass(lasts).await;
            world.set(0..1, Grants);
        };
        let (found, ()) = tokio::join!(world.locker.shutdown(ms(20_000)), back);
        assert!(found.is_ok());
        let took = now().since(began);
        assert!(took >= lasts && took <= lasts + ms(1_500), "{behaviour:?}: {took:?}");
        assert_eq!(world.keys("k"), 0, "{behaviour:?}");
    }
}

/// What may still arrive is undone again while it can: once our process ends, nothing undoes it.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_may_still_have_to_be_undone() {
    let world = World::ready(3).await;
    world.nodes[0].forbid_kill();
    world.nodes[0].set(After(ms(50)));
    let guard = world.locker.lock("k").await.unwrap();
    // The acquisition has no reply there, and the server lets no client end its connection.
    world.nodes[0].set(Grants);
    world.nodes[0].cut();
    pass(ms(100)).await;
    drop(guard);
    let began = now();
    world.locker.clone().shutdown(ms(60_000)).await.unwrap();
    let (took, horizon) = (now().since(began), Options::default().link.undo_horizon);
    assert!(took > horizon - ms(1_000) && took < horizon + ms(1_000), "{took:?}");
    let undone = world.got(0, "RELEASE").len();
    assert!(undone > 30, "undone {undone} times only");
}

/// The task that reads all connections can end while a shutdown waits.
#[tokio::test(start_paused = true)]
async fn a_shutdown_goes_on_when_its_driver_has_gone() {
    let mut options = Options::default();
    let is_second = |event: &Event<'_>| match event {
        Event::NodeDown { node, .. } => node.starts_with("node-1:"),
        _ => false,
    };
    let bomb = Bomb::new(is_second);
    options.observers.add(bomb.clone());
    let world = World::with(3, options).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[0].set(Down);
    drop(guard);
    pass(ms(1)).await;
    let back = async {
        pass(ms(500)).await;
        world.nodes[1].cut();
        pass(ms(500)).await;
        assert!(bomb.has_gone_off(), "the driver has ended");
        world.nodes[0].set(Grants);
    };
    let began = now();
    let (found, ()) = tokio::join!(world.locker.shutdown(ms(20_000)), back);
    assert!(found.is_ok());
    let took = now().since(began);
    assert!(took < ms(3_000), "{took:?}");
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_shutdown_has_left_stays_through_another_and_its_guards_release() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let other = world.locker.lock("other").await.unwrap();
    let found = world.locker.clone().shutdown_leaving(ms(1_000)).await.unwrap();
    assert_eq!((found.released, found.left.len()), (0, 2));
    let found = world.locker.clone().shutdown(ms(1_000)).await.unwrap();
    assert_eq!((found.released, found.left.len(), found.unknown, found.lost), (0, 0, 0, 0));
    assert_eq!(world.told.losses().len(), 2, "told once each");
    let error = guard.release().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    drop(other);
    pass(ms(1_000)).await;
    assert_eq!((world.keys("k"), world.keys("other")), (3, 3));
}

/// What is left behind is adopted without the wait for its guard's end, so no other token may say
/// that it was.
#[tokio::test(start_paused = true)]
async fn only_a_lock_that_was_left_has_a_token_that_says_so() {
    for leaves in [true, false] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").await.unwrap();
        assert!(!guard.owner_token().is_left_behind());
        match leaves {
            true => drop(world.locker.clone().shutdown_leaving(ms(1_000)).await.unwrap()),
            false => drop(world.locker.clone().shutdown(ms(1_000)).await.unwrap()),
        }
        assert_eq!(world.keys("k"), if leaves { 3 } else { 0 });
        assert_eq!(guard.owner_token().is_left_behind(), leaves, "owner_token");
        let token = guard.owner_token();
        let forgotten = guard.forget();
        assert_eq!(forgotten.is_left_behind(), leaves, "forget");
        assert_eq!(forgotten, token);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_another_clients_by_then_counts_as_lost() {
    let world = World::ready(3).await;
    let guards = [world.locker.lock("a").await.unwrap(), world.locker.lock("b").await.unwrap()];
    world.nodes.iter().for_each(|node| node.steal("a"));
    let found = world.locker.clone().shutdown(ms(100)).await.unwrap();
    assert_eq!((found.released, found.lost, found.unknown), (1, 1, 0));
    drop(guards);
}
