//! Taking locks over by their tokens, and by force.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::Behaviour::{After, Down, Grants, Hangs};
use super::{World, ms, now, pass};
use crate::lease::OwnerToken;
use crate::options::Extend;
use crate::report::Outcome;

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_left_is_adopted_at_once_and_held() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    pass(ms(8_000)).await;
    let (other, began) = (world.beside(), now());
    let guard = other.locker.adopt("k", &token).await.unwrap();
    assert_eq!(now(), began);
    assert_eq!(guard.remaining(), ms(10_000 - 102));
    assert_ne!(guard.owner_token().value(), token.value());
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
    assert_eq!(other.holders(&guard), [0, 1, 2]);
    drop(guard);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_adopted_once() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let (second, third) = (world.beside(), world.beside());
    let guard = second.locker.adopt("k", &token).await.unwrap();
    let error = third.locker.adopt("k", &token).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(world.holders(&guard), [0, 1, 2], "the other adoption has changed nothing");
    let next = guard.forget();
    let guard = third.locker.adopt("k", &next).await.unwrap();
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_lost());
    assert!(guard.release().await.unwrap().is_released());
    assert!(third.locker.adopt("k", &next).await.unwrap_err().is_lost(), "it was released");
}

/// Both are asked at the same time, and each node decides for itself.
#[tokio::test(start_paused = true)]
async fn of_two_adoptions_at_once_one_succeeds_at_most_and_the_token_lasts_until_then() {
    let world = World::ready(5).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let (second, third) = (world.beside(), world.beside());
    for locker in [&second, &third] {
        locker.locker.ready(ms(100)).await.unwrap();
    }
    let mut adopted = 0;
    while adopted == 0 {
        let both = (second.locker.adopt("k", &token), third.locker.adopt("k", &token));
        let (a, b) = tokio::join!(both.0, both.1);
        adopted += u32::from(a.is_ok()) + u32::from(b.is_ok());
        pass(ms(1)).await;
        assert!(world.keys("k") <= 5);
    }
    assert_eq!(adopted, 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_takes_nothing_over_and_leaves_the_key() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let left = world.nodes[0].left("k");
    let wrong = OwnerToken::from("0".repeat(40) + "@other");
    let error = world.locker.adopt("k", &wrong).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    pass(ms(1)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert_eq!(world.nodes[0].left("k"), left - ms(1), "nor does it live on for that");
    let error = world.locker.adopt("free", &wrong).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(world.keys("free"), 0, "nothing is created");
}

/// Polls a future so often at most, and lets time pass in between.
async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..times {
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        pass(ms(7)).await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_is_dropped_at_any_poll_can_be_made_again() {
    for living in [false, true] {
        for times in 0..20 {
            let world = World::behaving(&[After(ms(5)), After(ms(20)), After(ms(30))]).await;
            let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
            let (token, guard) = match living {
                true => (guard.owner_token(), Some(guard)),
                false => (guard.forget(), None),
            };
            let other = world.beside();
            other.locker.ready(ms(1_000)).await.unwrap();
            let left = world.nodes[0].left("k");
            let adopted = polled(times, other.locker.adopt("k", &token)).await;
            if let Some(adopted) = adopted {
                assert!(!living && adopted.unwrap().is_valid());
                continue;
            }
            pass(ms(100)).await;
            assert_eq!(world.holders_of("k", &token), [0, 1, 2], "{living} {times}");
            assert!(world.nodes[0].left("k") > left - ms(1_000), "{living} {times}");
            assert!(other.locker.adopt("k", &token).await.unwrap().is_valid());
            assert!(guard.is_none_or(|guard| !guard.is_valid()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_no_majority_answers_says_so_and_puts_the_value_back() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    world.set(0..2, Hangs);
    let error = world.locker.adopt("k", &token).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    world.set(0..2, Grants);
    pass(ms(100)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
    assert!(world.locker.adopt("k", &token).await.is_ok());
}

/// The connections of the failed adoption have ended, so what it may have done is still owed.
#[tokio::test(start_paused = true)]
async fn an_adoption_that_lost_its_connections_puts_the_value_back_on_the_next() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let other = world.beside();
    other.locker.ready(ms(100)).await.unwrap();
    world.set(0..3, After(ms(50)));
    let adopted = tokio::join!(other.locker.adopt("k", &token), async {
        pass(ms(10)).await;
        world.set(0..3, Down);
    });
    let error = adopted.0.unwrap_err();
    assert!(!error.is_lost(), "{error}");
    world.set(0..3, Grants);
    pass(ms(2_000)).await;
    assert_eq!(world.holders_of("k", &token), [0, 1, 2]);
    assert!(world.nodes.iter().all(|node| node.left("k") > ms(1_000)));
    assert!(other.locker.adopt("k", &token).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_adoption_says_lost_only_where_too_few_nodes_can_hold_the_token() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    world.nodes[1].delete("k");
    world.nodes[2].set(Hangs);
    let error = world.locker.adopt("k", &token).await.unwrap_err();
    assert!(error.is_unavailable() && !error.is_lost(), "{error}");
    world.nodes[2].set(Grants);
    pass(ms(100)).await;
    assert_eq!(world.holders_of("k", &token), [0, 2]);
    world.nodes[2].delete("k");
    let error = world.locker.adopt("k", &token).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_adoption_never_shortens_a_life_and_putting_back_keeps_it() {
    let world = World::ready(3).await;
    let hour = ms(3_600_000);
    let token = world.locker.lock("k").ttl(hour).await.unwrap().forget();
    pass(ms(1_000)).await;
    let guard = world.beside().locker.adopt("k", &token).await.unwrap();
    assert_eq!(guard.remaining(), ms(10_000 - 102), "what was asked for");
    assert_eq!(world.nodes[0].left("k"), hour - ms(1_000));
    let token = guard.forget();
    world.set(0..2, Hangs);
    assert!(world.locker.adopt("k", &token).await.is_err());
    world.set(0..2, Grants);
    pass(ms(1)).await;
    assert!(world.nodes[2].left("k") > hour - ms(3_000));
}

/// An adoption that fails leaves the nodes as they were: a value that it had set where there was
/// none would be no former one's, and a connection that ends deletes such a value.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_being_taken_over_is_healed_when_it_is_ours() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let (other, token) = (world.beside(), guard.owner_token());
    other.locker.ready(ms(1_000)).await.unwrap();
    world.nodes[2].delete("k");
    let (adopted, ()) = tokio::join!(other.locker.adopt("k", &token), async {
        pass(ms(9_000)).await;
        assert!(other.got(0, "extend").len() > 1);
        assert_eq!(world.nodes[2].value("k"), None);
    });
    let adopted = adopted.unwrap();
    pass(ms(3_600)).await;
    assert_eq!(world.holders(&adopted), [0, 1, 2]);
}

/// A node that lost the key meanwhile is given it by the new holder.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_taken_over_is_healed_too() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    world.nodes[1].flush();
    let guard = world.locker.adopt("k", &token).await.unwrap();
    pass(ms(3_600)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.keys("k"), 0);
}

/// An adoption beside ours has put it back behind what we deleted: no adoption could tell that the
/// token is worth nothing for as long as it stood there.
#[tokio::test(start_paused = true)]
async fn the_former_value_is_deleted_where_another_adoption_has_put_it_back() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let (second, third) = (world.beside(), world.beside());
    third.locker.ready(ms(1_000)).await.unwrap();
    let guard = second.locker.adopt("k", &token).await.unwrap();
    assert!(world.nodes[2].command(["SET", "k", token.value(), "PX", "100000"]).is_ok());
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_contended());
    pass(ms(3_600)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_lost());
    // What is neither ours nor the former one is another's.
    world.nodes[2].steal("k");
    pass(ms(10_000)).await;
    assert_eq!(world.holders(&guard), [0, 1]);
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.keys("k"), 1);
}

/// Both adoptions meet on a node: there the other one's value stands when the former one is
/// deleted, and the former one is put back behind that.
#[tokio::test(start_paused = true)]
async fn adoptions_that_have_met_part_soon() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let (second, third) = (world.beside(), world.beside());
    for world in [&second, &third] {
        world.locker.ready(ms(1_000)).await.unwrap();
    }
    // The third one was here first; what the second one sends comes behind that, before its undo.
    assert!(world.nodes[2].command(["SET", "k", "third", "PX", "100000"]).is_ok());
    world.nodes[2].set(After(ms(20)));
    let guard = second.locker.adopt("k", &token).await.unwrap();
    assert_eq!(guard.votes()[2].outcome, Outcome::Pending);
    pass(ms(50)).await;
    assert_eq!(guard.votes()[2].outcome, Outcome::Held);
    assert!(world.nodes[2].command(["SET", "k", token.value(), "PX", "100000"]).is_ok());
    world.nodes[2].set(Grants);
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_contended());
    // Two looks: what the last node says to the first one is read at the second.
    pass(ms(2 * 10_000 / 64 + 5)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_lost());
}

/// The former holder's acquisition reaches a node behind the adoption, which found no key there.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_set_behind_its_adoption_is_deleted_soon() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let (second, third) = (world.beside(), world.beside());
    for world in [&second, &third] {
        world.locker.ready(ms(1_000)).await.unwrap();
    }
    assert_eq!(world.nodes[2].command(["DEL", "k"]).as_integer(), Ok(1));
    let guard = second.locker.adopt("k", &token).await.unwrap();
    pass(ms(1)).await;
    assert_eq!(guard.votes()[2].outcome, Outcome::Gone);
    assert!(world.nodes[2].command(["SET", "k", token.value(), "PX", "100000"]).is_ok());
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_contended());
    // Two looks, as above.
    pass(ms(2 * 10_000 / 64 + 5)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert!(third.locker.adopt("k", &token).await.unwrap_err().is_lost());
}

/// The former holder may have set its key there, too.
#[tokio::test(start_paused = true)]
async fn the_former_value_is_deleted_where_an_adopted_lock_could_not_be_asked_for() {
    for away in [Down, Hangs] {
        let world = World::ready(3).await;
        let token = world.locker.lock("k").await.unwrap().forget();
        let other = world.beside();
        other.locker.ready(ms(1_000)).await.unwrap();
        world.nodes[2].set(away);
        other.locker.inspect("k").await.unwrap();
        pass(ms(200)).await;
        let guard = other.locker.adopt("k", &token).await.unwrap();
        let outcome = &guard.votes()[2].outcome;
        assert!(matches!(outcome, Outcome::Down { .. } | Outcome::Suspect), "{outcome:?}");
        assert!(guard.release().await.unwrap().is_released());
        assert_eq!(world.keys("k"), 1, "{away:?}");
        world.nodes[2].set(Grants);
        pass(ms(2_000)).await;
        assert_eq!(world.keys("k"), 0, "{away:?}");
    }
}

/// The former holder owes a node a release; it arrives after the lock was adopted.
#[tokio::test(start_paused = true)]
async fn what_the_former_holder_still_owes_deletes_nothing_of_an_adopted_lock() {
    let world = World::ready(3).await;
    world.nodes[2].set(After(ms(5)));
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.nodes[2].set(Down);
    pass(ms(10)).await;
    assert_eq!(world.holders(&guard).len(), 3);
    let token = guard.owner_token();
    drop(guard); // so a release is owed to the third node
    pass(ms(10)).await;
    assert_eq!(world.holders_of("k", &token), [2]);
    let other = world.beside();
    for node in 0..2 {
        // As if the release had not been made there: what matters is the one that is owed.
        assert!(world.nodes[node].command(["SET", "k", token.value(), "PX", "5000"]).is_ok());
    }
    let left = OwnerToken::from(format!("left:{}", token.as_str()));
    let adopted = other.locker.adopt("k", &left).await.unwrap();
    world.nodes[2].set(Grants);
    pass(ms(5_000)).await;
    assert_eq!(world.holders(&adopted), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_release_by_force_deletes_anybodys_key_and_its_holder_is_told() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[2].delete("k");
    let nodes = world.beside().locker.force_release("k").await.unwrap();
    let outcomes: Vec<_> = nodes.into_iter().map(|node| node.outcome).collect();
    assert_eq!(outcomes, [Outcome::Granted, Outcome::Granted, Outcome::Gone]);
    assert_eq!(world.keys("k"), 0);
    guard.lost().await;
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_release_by_force_without_a_majority_says_so() {
    let world = World::behaving(&[Hangs, Hangs, Grants]).await;
    let error = world.locker.force_release("k").await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_release_by_a_token_ends_no_other_guard_of_that_key_or_value() {
    let world = World::ready(3).await;
    let gone = world.locker.lock("k").await.unwrap().forget();
    world.nodes.iter().for_each(|node| node.delete("k"));
    let guard = world.locker.lock("k").await.unwrap();
    let found = world.locker.release_by_token("k", &gone).await.unwrap();
    assert!(!found.is_released() && guard.is_valid(), "the key has another value now");
    let found = world.locker.release_by_token("other", &guard.owner_token()).await.unwrap();
    assert!(!found.is_released() && guard.is_valid(), "that is another key");
    assert!(world.locker.release_by_token("k", &guard.owner_token()).await.unwrap().is_released());
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn an_adopted_lock_whose_former_value_is_gone_is_extended_as_any_other() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    let guard = world.locker.adopt("k", &token).await.unwrap();
    world.nodes.iter().for_each(|node| node.clear_log());
    pass(ms(30_000)).await;
    let extended = world.got(0, "extend").len();
    assert!(guard.is_valid() && (8..=11).contains(&extended), "{extended} times in three TTLs");
}
