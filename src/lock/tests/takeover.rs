//! Taking locks over by their tokens, and by force.

use super::Behaviour::{After, Down, Grants, Hangs};
use super::{World, ms, pass};
use crate::lock::OwnerToken;
use crate::report::Outcome;

#[tokio::test(start_paused = true)]
async fn whoever_has_the_token_takes_the_lock_over_and_holds_it() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    pass(ms(8_000)).await;
    let other = world.beside();
    let guard = other.locker.adopt("k", &token).await.unwrap();
    assert_eq!(guard.owner_token(), token);
    assert_eq!(guard.remaining(), ms(10_000 - 102));
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
    assert_eq!(other.holders(&guard), [0, 1, 2]);
    drop(guard);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_takes_nothing_over_and_leaves_the_key() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let left = world.nodes[0].left("k");
    let wrong = OwnerToken::from("0".repeat(40) + "@nobody");
    let error = world.locker.adopt("k", &wrong).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    pass(ms(1)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert_eq!(world.nodes[0].left("k"), left - ms(1), "nor does it live on for that");
    let error = world.locker.adopt("free", &wrong).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(world.keys("free"), 0, "nothing is created");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_is_dropped_half_way_leaves_the_lock_to_its_holder() {
    let world = World::behaving(&[After(ms(20)); 3]).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    tokio::select! {
        biased;
        adopted = world.locker.adopt("k", &token) => panic!("so early? {adopted:?}"),
        () = pass(ms(10)) => {}
    }
    pass(ms(1_000)).await;
    assert_eq!(world.keys("k"), 3);
    assert_eq!(world.got(0, "release").len() + world.got(0, "RELEASE").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_no_majority_answers_says_so_and_leaves_the_lock() {
    let world = World::ready(3).await;
    let token = world.locker.lock("k").await.unwrap().forget();
    world.set(0..2, Hangs);
    let error = world.locker.adopt("k", &token).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    world.set(0..2, Grants);
    pass(ms(100)).await;
    assert_eq!(world.keys("k"), 3);
}

/// A node that lost the key meanwhile is given it by the one who has taken the lock over.
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

/// Whoever held the lock before may have set its key there, too.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_taken_over_is_released_where_nobody_could_be_asked() {
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
