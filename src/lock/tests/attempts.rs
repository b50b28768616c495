//! Attempts to break what is promised of hand-overs, losses and what is left behind.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::Behaviour::{After, Down, Grants, Hangs};
use super::panics::Bomb;
use super::{World, ms, pass};
use crate::observe::{Event, Loss};
use crate::options::{Durability, Extend, Options};
use crate::testing::{Nodes, Reaction, When};

fn other(world: &World, seed: u64, options: Options) -> World {
    World::client(&world.network, seed, options)
}

#[tokio::test(start_paused = true)]
async fn a_locker_that_extends_nothing_adopts_the_lock_of_a_living_guard() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let b = other(&world, 9, Options { extend: Extend::Off, ..Options::default() });
    let adopted = b.locker.adopt("k", &guard.owner_token()).await;
    assert!(!guard.is_valid());
    assert!(adopted.unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn the_time_that_an_adoption_waits_does_not_count_as_held() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").ttl(ms(60_000)).auto_extend(Extend::Off).await.unwrap();
    let b = other(&world, 9, Options { extend: Extend::For(ms(30_000)), ..Options::default() });
    let adopted = b.locker.adopt("k", &guard.owner_token()).await;
    assert!(!guard.is_valid());
    assert!(adopted.unwrap().is_valid());
}

/// Where servers may forget, a snapshot brings the former value back, and the former guard extends
/// it there: a node in quarantine counts for an extension.
#[tokio::test(start_paused = true)]
async fn nodes_that_come_back_from_before_an_adoption_give_the_former_guard_nothing() {
    let nodes = Nodes::new(3);
    let longest = ms(10_000);
    let volatile = || {
        let durability = Durability::Volatile { longest_ttl: longest };
        nodes.locker().durability(durability).ttl(longest).build().unwrap()
    };
    let (a, b) = (volatile(), volatile());
    a.ready(ms(1_000)).await.unwrap();
    b.ready(ms(1_000)).await.unwrap();
    a.initialise().await.unwrap();
    let guard = a.lock("k").auto_extend(Extend::Off).await.unwrap();
    let token = guard.owner_token();
    pass(ms(7_900)).await;
    let left = nodes[0].remaining("k").unwrap().as_millis().to_string();
    let mut adopting = pin!(b.adopt("k", &token));
    let begun = poll_fn(|cx| Poll::Ready(adopting.as_mut().poll(cx).is_pending())).await;
    assert!(begun);
    pass(ms(1)).await;
    let waits = poll_fn(|cx| Poll::Ready(adopting.as_mut().poll(cx).is_pending())).await;
    assert!(waits);
    pass(ms(1)).await;
    assert_ne!(nodes[0].value("k").unwrap(), token.value().as_bytes());
    // Two nodes come back from a snapshot that they made before.
    for node in 0..2 {
        nodes[node].restart(true).unwrap();
        assert!(nodes[node].command(["SET", "k", token.value(), "PX", &left]).is_ok());
    }
    let mut both = false;
    pass(ms(1_000)).await;
    // It may succeed or not.
    let _ = guard.extend(longest).await;
    for _ in 0..2_000 {
        pass(ms(10)).await;
        if let Poll::Ready(adopted) = poll_fn(|cx| Poll::Ready(adopting.as_mut().poll(cx))).await {
            both = adopted.is_ok_and(|adopted| adopted.is_valid()) && guard.is_valid();
            break;
        }
    }
    assert!(!both, "two valid guards");
}

#[tokio::test(start_paused = true)]
async fn adoptions_that_met_one_another_do_not_say_lost_while_the_lock_stands() {
    let world = World::ready(2).await;
    let token = world.locker.lock("k").ttl(ms(60_000)).await.unwrap().forget();
    let (b, c) = (world.beside(), world.beside());
    b.locker.ready(ms(100)).await.unwrap();
    c.locker.ready(ms(100)).await.unwrap();
    // Each is the first on one node, and hears of the other one before that can put anything back.
    world.nodes[0].add(When::after("adopt").then(Reaction::Delay(ms(30))));
    world.nodes[1].add(When::before("adopt").nth(1).then(Reaction::Delay(ms(10))));
    let (by_b, by_c) = tokio::join!(b.locker.adopt("k", &token), async {
        pass(ms(1)).await;
        c.locker.adopt("k", &token).await
    });
    let errors = [by_b.unwrap_err(), by_c.unwrap_err()];
    pass(ms(100)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1]);
    assert!(b.locker.adopt("k", &token).await.is_ok());
    assert!(errors.iter().all(|error| !error.is_lost()), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_extension_a_keeper_took_with_it_is_extended_by_the_next() {
    let mut options = Options::default();
    let bomb = Bomb::new(|event| matches!(event, Event::Extended { .. }));
    options.observers.add(bomb.clone());
    let world = World::with(3, options).await;
    let _first = world.locker.lock("k0").await.unwrap();
    let guard = world.locker.lock("k1").await.unwrap();
    let late = When::after("extend").key("k1").then(Reaction::Delay(ms(80)));
    world.nodes.iter().for_each(|node| node.add(late.clone()));
    while !bomb.has_gone_off() {
        pass(ms(1)).await;
    }
    pass(ms(200)).await;
    let _next = world.locker.lock("next").await.unwrap();
    pass(ms(60_000)).await;
    assert!(guard.is_valid(), "{:?}", world.told.losses());
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_waits_finds_the_locker_closed() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let token = guard.owner_token();
    let b = world.beside();
    let (adopted, _) = tokio::join!(b.locker.adopt("k", &token), async {
        pass(ms(1_000)).await;
        b.locker.shutdown(ms(1_000)).await.unwrap();
    });
    let error = adopted.unwrap_err();
    pass(ms(100)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
    assert!(world.beside().locker.adopt("k", &token).await.is_ok());
    assert!(error.is_closed() && !error.is_lost(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_adoption_whose_own_time_ends_does_not_say_lost_while_the_token_can_be_tried() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").ttl(ms(60_000)).auto_extend(Extend::Off).await.unwrap();
    let token = guard.owner_token();
    let b = world.beside();
    let (adopted, _) = tokio::join!(b.locker.adopt("k", &token), async {
        pass(ms(1_000)).await;
        world.set(0..3, Hangs);
    });
    let error = adopted.unwrap_err();
    world.set(0..3, Grants);
    pass(ms(3_000)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
    assert!(world.beside().locker.adopt("k", &token).await.is_ok());
    assert!(!error.is_lost(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_former_value_is_put_back_behind_the_adoption_that_succeeded() {
    let world = World::ready(3).await;
    let hour = ms(3_600_000);
    let token = world.locker.lock("k").ttl(hour).await.unwrap().forget();
    let b = world.beside();
    b.locker.ready(ms(100)).await.unwrap();
    // The third node adopts, and its connection ends with the answer.
    world.nodes[2].set(After(ms(5)));
    let mut adopting = pin!(b.locker.adopt("k", &token));
    let first = poll_fn(|cx| Poll::Ready(adopting.as_mut().poll(cx).is_pending())).await;
    assert!(first);
    pass(ms(1)).await;
    world.nodes[2].set(Down);
    let guard = adopting.await.unwrap();
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    // When it is back its memory is full: it deletes, and sets nothing.
    world.nodes[2].clear_rules();
    let full = Reaction::Answer(b"-OOM command not allowed\r\n".to_vec());
    world.nodes[2].restart(true).unwrap();
    world.nodes[2].add(When::before("release").nth(1).then(full));
    pass(ms(3_000)).await;
    assert!(world.got(2, "put back").is_empty() && !world.got(2, "RELEASE").is_empty());
    world.set(2..3, Grants);
    pass(ms(3_000)).await;
    drop(guard);
    pass(ms(3_000)).await;
    assert_eq!(world.keys("k"), 0, "left: {:?}", world.nodes[2].left("k"));
}

#[tokio::test(start_paused = true)]
async fn what_an_adoption_undoes_is_owed_for_as_long_as_its_key_lives() {
    let world = World::ready(3).await;
    let hour = ms(3_600_000);
    let guard = world.locker.lock("k").ttl(hour).auto_extend(Extend::Off).await.unwrap();
    let token = guard.owner_token();
    let b = world.beside();
    b.locker.ready(ms(100)).await.unwrap();
    {
        let mut adopting = pin!(b.locker.adopt("k", &token));
        tokio::select! { _ = &mut adopting => panic!("so early"), () = pass(ms(100)) => {} }
        world.nodes.iter().for_each(|node| node.set_busy(true));
    }
    pass(ms(60_000)).await;
    world.nodes.iter().for_each(|node| node.set_busy(false));
    pass(ms(5_000)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn the_release_of_an_adopted_lock_is_owed_for_as_long_as_its_key_lives() {
    let world = World::ready(3).await;
    let hour = ms(3_600_000);
    let token = world.locker.lock("k").ttl(hour).await.unwrap().forget();
    let b = world.beside();
    let guard = b.locker.adopt("k", &token).await.unwrap();
    world.nodes.iter().for_each(|node| node.set_busy(true));
    drop(guard);
    pass(ms(60_000)).await;
    world.nodes.iter().for_each(|node| node.set_busy(false));
    pass(ms(5_000)).await;
    assert_eq!(world.keys("k"), 0);
}

/// The release found another value, and nothing tells the adoption of it.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_released_while_it_was_taken_over_can_be_adopted_and_ends_with_its_ttl() {
    let world = World::ready(3).await;
    let hour = ms(3_600_000);
    let guard = world.locker.lock("k").ttl(hour).auto_extend(Extend::Off).await.unwrap();
    let token = guard.owner_token();
    let b = world.beside();
    b.locker.ready(ms(100)).await.unwrap();
    {
        let mut adopting = pin!(b.locker.adopt("k", &token));
        tokio::select! { _ = &mut adopting => panic!("so early"), () = pass(ms(100)) => {} }
        drop(guard);
    }
    pass(ms(5_000)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
    assert!(world.nodes.iter().all(|node| node.left("k") < hour));
    let mut adopting = pin!(b.locker.adopt("k", &token));
    tokio::select! { _ = &mut adopting => panic!("so early"), () = pass(hour - ms(20_000)) => {} }
    assert!(adopting.await.unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_to_observers_also_when_its_guard_is_dropped_at_once() {
    for extend in [Extend::Off, Extend::Forever] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").auto_extend(extend).await.unwrap();
        world.set(0..3, Hangs);
        guard.lost().await;
        drop(guard);
        pass(ms(1_000)).await;
        assert!(
            matches!(world.told.losses()[..], [(_, Loss::Expired)]),
            "{:?}",
            world.told.losses()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_loss_of_run_is_told_to_observers() {
    for extend in [Extend::Off, Extend::Forever] {
        let world = World::ready(3).await;
        let work = async |_| {
            world.set(0..3, Hangs);
            pass(ms(100_000)).await;
            Ok::<(), crate::error::Error>(())
        };
        let error = world.locker.lock("k").auto_extend(extend).run_async(work).await.unwrap_err();
        assert!(error.is_lost());
        pass(ms(1_000)).await;
        assert!(
            matches!(world.told.losses()[..], [(_, Loss::Expired)]),
            "{:?}",
            world.told.losses()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_a_look_found_is_told_to_observers() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.driven.suspend(ms(20_000));
    assert!(!guard.is_valid());
    drop(guard);
    pass(ms(1_000)).await;
    assert!(matches!(world.told.losses()[..], [(_, Loss::Expired)]), "{:?}", world.told.losses());
}

#[tokio::test(start_paused = true)]
async fn no_loss_is_told_of_a_lock_that_was_never_taken_over() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let token = guard.owner_token();
    let b = world.beside();
    let (adopted, _) = tokio::join!(b.locker.adopt("k", &token), async {
        pass(ms(1_000)).await;
        b.locker.shutdown(ms(1_000)).await.unwrap();
    });
    assert!(adopted.is_err());
    assert!(b.told.losses().is_empty(), "{:?}", b.told.losses());
}

/// What tokens tell, and when.
#[cfg(feature = "tokio-util")]
mod tokens {
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake, Waker};

    use super::*;

    struct Looks<F>(F);
    impl<F: Fn() + Send + Sync> Wake for Looks<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_told_loss_and_a_cancelled_token_come_together() {
        for by_token in [false, true] {
            let world = World::ready(3).await;
            let guard = Arc::new(world.locker.lock("k").auto_extend(Extend::Off).await.unwrap());
            let token = guard.cancellation();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let look = {
                let (guard, token, seen) = (guard.clone(), token.clone(), seen.clone());
                move || {
                    let mut lost = pin!(guard.lost());
                    let noop = lost.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    seen.lock().unwrap().push([
                        noop.is_ready(),
                        !guard.is_valid(),
                        token.is_cancelled(),
                    ]);
                }
            };
            let waker = Waker::from(Arc::new(Looks(look)));
            let mut cx = Context::from_waker(&waker);
            let waiting = token.clone();
            let (mut lost, mut cancelled) = (pin!(guard.lost()), pin!(waiting.cancelled()));
            if by_token {
                assert!(cancelled.as_mut().poll(&mut cx).is_pending());
            } else {
                assert!(lost.as_mut().poll(&mut cx).is_pending());
            }
            // Another thread's look finds it.
            tokio::time::advance(guard.remaining() - ms(50)).await;
            assert!(!guard.is_valid());
            let seen = seen.lock().unwrap().clone();
            assert!(!seen.is_empty());
            assert_eq!(seen[0], [true; 3], "{by_token}: lost, invalid, cancelled");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_tells_of_each_loss_before_it_releases() {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").await.unwrap();
        pass(ms(1)).await;
        let token = guard.cancellation();
        let sent = Arc::new(Mutex::new(None));
        let look = {
            let (set, sent) = (world.set.clone(), sent.clone());
            move || {
                sent.lock().unwrap().get_or_insert(!set.upgrade().unwrap().is_settled());
            }
        };
        let waker = Waker::from(Arc::new(Looks(look)));
        let mut cancelled = pin!(token.cancelled());
        assert!(cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        world.locker.shutdown(ms(1_000)).await.unwrap();
        assert_eq!(*sent.lock().unwrap(), Some(false), "the release was on its way");
    }
}
