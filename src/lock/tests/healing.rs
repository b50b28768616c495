//! Nodes that have lost the key or the scripts, and are given them again.

use std::time::Duration;

use super::Behaviour::{After, Down, Grants, Hangs};
use super::{World, ms, pass};

const TTL: Duration = ms(10_000);

/// When the first extension has been sent at the latest, and what follows it has been done.
const EXTENDED: Duration = ms(3_600);

#[tokio::test(start_paused = true)]
async fn a_minority_that_was_emptied_is_given_the_key_again() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(1_000)).await;
    world.nodes[0].flush();
    world.nodes[3].flush();
    assert_eq!(world.holders(&guard), [1, 2, 4]);
    pass(EXTENDED - ms(1_000)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2, 3, 4]);
    // They count from then on: a majority with them is enough.
    world.set(1..3, Down);
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
    world.set(1..3, Grants);
    pass(ms(1_000)).await;
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.keys("k"), 0, "also where it was set again");
}

/// The node's answer comes behind the verdict on the extension, and counts for the same one, though
/// the keeper has another lock to look at meanwhile.
#[tokio::test(start_paused = true)]
async fn a_slow_node_that_was_emptied_is_given_the_key_by_the_first_extension() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let _short = world.locker.lock("short").ttl(ms(90)).await.unwrap();
    world.nodes[0].flush();
    // Sooner than at the end of a node's time, and later than the other lock's next look.
    world.nodes[0].set(After(ms(40)));
    pass(EXTENDED).await;
    let extended = world.got(0, "extend").iter().filter(|said| said.key == "k").count();
    assert_eq!((extended, world.holders(&guard)), (1, vec![0, 1, 2]));
}

/// The nodes that still hold it must be a majority without the empty one, and have just said so.
#[tokio::test(start_paused = true)]
async fn no_key_is_set_again_before_a_majority_has_confirmed_it() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    pass(ms(1_000)).await;
    world.nodes[0].flush();
    world.set(3..5, Hangs);
    pass(ms(6_000)).await;
    assert!(guard.is_valid() && world.told.failures().len() >= 2);
    assert_eq!(world.got(0, "SET").len(), 1, "two of five have confirmed it, and two say nothing");
    world.set(3..5, Grants);
    pass(ms(1_500)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_never_set_again() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[0..3].iter().for_each(|node| node.flush());
    guard.lost().await;
    pass(ms(60_000)).await;
    for node in 0..5 {
        assert_eq!(world.got(node, "SET").len(), 1, "on node {node}");
    }
}

/// Another holds the key there: it is not taken from it, neither now nor by the release.
#[tokio::test(start_paused = true)]
async fn a_minority_that_is_anothers_is_left_to_it() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[0].steal("k");
    pass(ms(20_000)).await;
    assert!(guard.is_valid());
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.nodes[0].value("k").as_deref(), Some(&b"thief"[..]));
    assert_eq!((world.got(0, "SET").len(), world.keys("k")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_down_is_given_the_key_when_it_is_back() {
    let world = World::behaving(&[Down, Grants, Grants]).await;
    pass(ms(1)).await;
    let guard = world.locker.lock("k").await.unwrap();
    assert_eq!(world.holders(&guard), [1, 2]);
    world.nodes[0].set(Grants);
    pass(EXTENDED).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    // The lock outlives the loss of one of the two that it began with.
    world.nodes[1].set(Down);
    pass(ms(60_000)).await;
    assert!(guard.is_valid());
    world.nodes[1].set(Grants);
    pass(EXTENDED).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    world.nodes[1].set(Down);
    pass(ms(1)).await;
    drop(guard);
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 1, "only on the node that is down");
    world.nodes[1].set(Grants);
    pass(ms(1_000)).await;
    assert_eq!(world.keys("k"), 0, "and there, too, when it is back");
}

/// A server that was restarted without its data.
#[tokio::test(start_paused = true)]
async fn a_node_that_came_back_empty_is_given_the_key_again() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[2].flush();
    world.nodes[2].forget_scripts();
    world.nodes[2].cut();
    pass(EXTENDED).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
}

/// The key that is set again lives no longer than the others.
#[tokio::test(start_paused = true)]
async fn a_key_that_was_set_again_ends_when_it_is_not_extended() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[2].flush();
    pass(EXTENDED).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    guard.forget();
    assert!(world.nodes.iter().all(|node| node.left("k") <= TTL));
    pass(TTL).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_finds_its_scripts_forgotten_too() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes.iter().for_each(|node| node.forget_scripts());
    guard.extend(ms(60_000)).await.unwrap();
    assert_eq!(guard.remaining(), ms(60_000 - 602));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_forgot_the_scripts_are_told_them_in_full_once() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes.iter().for_each(|node| node.forget_scripts());
    pass(TTL * 6).await;
    assert!(guard.is_valid());
    assert_eq!((world.told.failures(), world.told.losses()), (vec![], vec![]));
    for node in 0..3 {
        assert_eq!(world.got(node, "EXTEND").len(), 1, "loaded once");
        assert!(world.got(node, "extend").len() >= 18);
    }
    world.nodes.iter().for_each(|node| node.forget_scripts());
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.keys("k"), 0);
}

/// A majority knows the script, and the lock is extended; the others must not lose their keys.
#[tokio::test(start_paused = true)]
async fn a_minority_that_forgot_the_scripts_is_told_them_too() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[1].forget_scripts();
    world.nodes[4].forget_scripts();
    pass(TTL * 3).await;
    assert_eq!(world.holders(&guard), [0, 1, 2, 3, 4]);
    assert_eq!((world.got(1, "SET").len(), world.got(1, "EXTEND").len()), (1, 1));
}

/// Two are down, so the first that has forgotten its script decides; all three are told.
#[tokio::test(start_paused = true)]
async fn a_bare_majority_that_forgot_the_scripts_is_told_them_before_it_counts() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.set(0..2, Down);
    pass(ms(1)).await;
    world.set(3..5, After(ms(20)));
    world.nodes.iter().for_each(|node| node.forget_scripts());
    guard.extend(ms(60_000)).await.unwrap();
    assert!(guard.remaining() >= ms(60_000 - 602 - 42), "{:?}", guard.remaining());
    world.nodes.iter().for_each(|node| node.forget_scripts());
    pass(TTL * 6).await;
    assert_eq!((world.told.failures(), world.told.losses()), (vec![], vec![]));
}
