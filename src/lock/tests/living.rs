//! Taking over the lock of a guard that lives: the adoption waits until the guard's time is over.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Behaviour::{Grants, Hangs};
use super::{World, assert_due, ms, now, pass};
use crate::error::Error;
use crate::lease::OwnerToken;
use crate::lock::LockGuard;
use crate::observe::Loss;
use crate::options::{Extend, Options};
use crate::report::Outcome;

/// Two guards, and at no instant are both valid; the first has heard nothing of the adoption.
#[tokio::test(start_paused = true)]
async fn the_lock_of_a_living_guard_is_adopted_when_its_time_is_over() {
    for extend in [Extend::Off, Extend::Forever] {
        let world = World::ready(3).await;
        let guard = world.locker.lock("k").auto_extend(extend).await.unwrap();
        let other = world.beside();
        pass(ms(1_000)).await;
        let token = OwnerToken::from(guard.owner_token().as_str().to_owned());
        let (began, mut adopted) = (now(), pin!(other.locker.adopt("k", &token)));
        let mut lost_at = None;
        let adopted: LockGuard = loop {
            let step = poll_fn(|cx| Poll::Ready(adopted.as_mut().poll(cx))).await;
            if !guard.is_valid() {
                lost_at.get_or_insert_with(now);
            }
            if let Poll::Ready(adopted) = step {
                break adopted.unwrap();
            }
            pass(ms(1)).await;
        };
        let (lost_at, now) = (lost_at.unwrap(), now());
        assert!(!guard.is_valid() && adopted.is_valid());
        assert!(lost_at < now, "one at a time");
        let waited = now.since(began);
        assert!(waited >= ms(9_000) && waited < ms(9_100), "the former value's time: {waited:?}");
        drop(guard);
        pass(ms(60_000)).await;
        assert!(adopted.is_valid());
        assert_eq!(world.holders(&adopted), [0, 1, 2]);
    }
}

/// Servers tell whole milliseconds, and their clocks may drift from ours.
#[tokio::test(start_paused = true)]
async fn adopting_a_held_lock_waits_for_its_remaining_time_and_the_drift() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let (other, began) = (world.beside(), now());
    let _adopted = other.locker.adopt("k", &guard.owner_token()).await.unwrap();
    let drift = ms(100) + ms(2);
    assert_due(now(), began.plus(ms(10_000) + ms(1) + drift));
    assert_eq!(other.told.extensions(), [], "it was extended while it was not ours yet");
}

/// The token's value is put back then, so the lock is not lost.
#[tokio::test(start_paused = true)]
async fn an_adoption_that_waits_is_told_of_the_shutdown_of_its_locker() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let (other, third) = (world.beside(), world.beside());
    let token = guard.owner_token();
    let (adopted, shut_down) = tokio::join!(other.locker.adopt("k", &token), async {
        pass(ms(100)).await;
        other.locker.shutdown(ms(1_000)).await.unwrap()
    });
    let error = adopted.unwrap_err();
    assert!(error.is_closed() && !error.is_lost(), "{error}");
    assert!(shut_down.is_complete());
    assert_eq!(world.holders(&guard), [0, 1, 2], "the token's value is back");
    assert!(third.locker.adopt("k", &token).await.is_ok());
}

/// Harms an adoption while it waits for a living guard's time to end, and returns its error.
async fn adopted_while(pause: Duration, harm: impl FnOnce(&World)) -> Error {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let (other, token) = (world.beside(), guard.owner_token());
    let (adopted, ()) = tokio::join!(other.locker.adopt("k", &token), async {
        pass(pause).await;
        harm(&world);
    });
    adopted.unwrap_err()
}

fn outcomes(error: &Error) -> Vec<Outcome> {
    error.nodes().iter().map(|node| node.outcome.clone()).collect()
}

/// Before it is found by an extension of the keeper's, and before the confirmation.
const WHILE_IT_WAITS: [Duration; 2] = [ms(1_000), ms(10_095)];

#[tokio::test(start_paused = true)]
async fn an_adoption_that_nodes_refuse_while_it_waits_names_them_and_says_why() {
    for pause in WHILE_IT_WAITS {
        let refuse = |world: &World| {
            world.nodes[..2].iter().for_each(|node| node.refuse_scripts("NOAUTH who are you"));
        };
        let error = adopted_while(pause, refuse).await;
        assert!(error.is_authentication(), "{pause:?}: {error}");
        let refused = || Outcome::Refused { error: "NOAUTH who are you".into() };
        assert_eq!(outcomes(&error), [refused(), refused(), Outcome::Granted], "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_adoption_whose_nodes_fall_silent_while_it_waits_names_them() {
    for pause in WHILE_IT_WAITS {
        let error = adopted_while(pause, |world| world.set(0..2, Hangs)).await;
        assert!(error.is_unavailable(), "{pause:?}: {error}");
        let [first, second, third] = &outcomes(&error)[..] else { panic!("{pause:?}: {error}") };
        for silent in [first, second] {
            use Outcome::{Down, Silent, Suspect};
            assert!(matches!(silent, Silent { .. } | Suspect | Down { .. }), "{pause:?}: {error}");
        }
        assert!(matches!(third, Outcome::Granted | Outcome::Pending), "{pause:?}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_adoption_whose_keys_vanish_while_it_waits_names_the_nodes() {
    for pause in WHILE_IT_WAITS {
        let vanish = |world: &World| world.nodes[..2].iter().for_each(|node| node.delete("k"));
        let error = adopted_while(pause, vanish).await;
        assert_eq!(error.loss(), Some(Loss::Gone), "{pause:?}: {error}");
        assert_eq!(outcomes(&error), [Outcome::Gone, Outcome::Gone, Outcome::Granted], "{pause:?}");
    }
}

/// Some nodes had not answered, and others lose the key: a majority may hold the lock still, also
/// where it is a bare one, and the next try finds it.
#[tokio::test(start_paused = true)]
async fn an_adoption_that_loses_a_node_while_others_are_silent_is_not_told_that_the_lock_is_lost() {
    for (count, gone) in [(5, 1), (5, 2), (3, 1)] {
        let world = World::ready(count).await;
        let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
        let (other, token) = (world.beside(), guard.owner_token());
        other.locker.ready(ms(1_000)).await.unwrap();
        let silent = count / 2 + 1..count;
        world.set(silent.clone(), Hangs);
        let (adopted, ()) = tokio::join!(other.locker.adopt("k", &token), async {
            pass(ms(1_000)).await;
            world.nodes[..gone].iter().for_each(|node| node.delete("k"));
        });
        let error = adopted.unwrap_err();
        assert!(!error.is_lost() && error.is_unavailable(), "{gone} of {count}: {error}");
        world.set(silent, Grants);
        pass(ms(100)).await;
        assert!(other.locker.adopt("k", &token).await.is_ok(), "{gone} of {count}");
    }
}

/// It would be valid no longer than its TTL without being extended while it waits.
#[tokio::test(start_paused = true)]
async fn a_short_lock_is_extended_while_it_waits_for_a_long_one_to_end() {
    let options = Options { ttl: ms(500), ..Options::default() };
    let world = World::with(3, options).await;
    let guard = world.locker.lock("k").ttl(ms(30_000)).auto_extend(Extend::Off).await.unwrap();
    let began = now();
    let adopted = world.locker.adopt("k", &guard.owner_token()).await.unwrap();
    assert!(now().since(began) > ms(30_000));
    assert!(adopted.is_valid() && !guard.is_valid());
}
