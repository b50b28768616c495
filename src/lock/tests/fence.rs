//! How many round trips a lock takes to its fence, for clients whose clocks differ; and what
//! becomes of a lock that nodes grant without it.

use std::time::Duration;

use tokio::task::JoinSet;

use super::Behaviour::After;
use super::{World, ms, pass};
use crate::Locker;
use crate::lease::FENCE;
use crate::report::Outcome;

/// The clocks of clients differ by as much to both sides.
const APART: i64 = 50;

/// The nodes' time since 1970.
fn wall_of_nodes(world: &World) -> Duration {
    let time = world.nodes[0].command(["TIME"]);
    let words = time.as_items().unwrap();
    let number = |at: usize| words[at].as_str().unwrap().parse::<u64>().unwrap();
    Duration::new(number(0), u32::try_from(number(1)).unwrap() * 1_000)
}

/// Sets a client's wall clock to that of the nodes, and so many milliseconds ahead.
fn set_clock(world: &World, ahead: i64) {
    let nanos = wall_of_nodes(world).as_nanos() as i64 - world.driven.wall().as_nanos() as i64;
    world.driven.step_wall(nanos + ahead * 1_000_000);
}

/// How often nodes were asked again, with a higher token: without a TTL, for the lock is set.
fn asked_again(world: &World) -> usize {
    let is_again = |words: &[bytes::Bytes]| words.len() == 9 && words[1] == FENCE.text;
    let heard = world.nodes.iter().map(|node| node.heard());
    heard.map(|heard| heard.iter().filter(|heard| is_again(&heard.words)).count()).max().unwrap()
}

/// Nodes that answer within a millisecond, and clients of theirs with clocks apart.
async fn clients(count: i64, nodes: usize) -> Vec<World> {
    let first = World::behaving(&vec![After(ms(1)); nodes]).await;
    let mut clients: Vec<World> = (1..count).map(|_| first.beside()).collect();
    clients.push(first);
    for (index, client) in (0..).zip(&clients) {
        client.locker.ready(ms(1_000)).await.unwrap();
        set_clock(client, 2 * APART * index / (count - 1) - APART);
    }
    clients
}

#[tokio::test(start_paused = true)]
async fn on_fresh_keys_one_fence_of_a_hundred_at_most_takes_a_second_round_trip() {
    let clients = clients(3, 5).await;
    for round in 0..1_000 {
        for (index, client) in clients.iter().enumerate() {
            let guard = client.locker.lock(format!("{index}-{round}")).fenced().await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
    }
    let again = asked_again(&clients[0]);
    assert!(again <= 3_000 / 100, "{again} of 3,000");
    assert!(again >= 1, "the clocks are apart, and nodes have to tell");
}

#[tokio::test(start_paused = true)]
async fn for_many_on_one_key_one_of_ten_at_most_takes_a_second_round_trip() {
    let clients = clients(64, 3).await;
    let take = async |locker: Locker| {
        for _ in 0..30 {
            let guard = locker.lock("k").fenced().wait_forever().await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
    };
    let lockers = clients.iter().map(|client| client.locker.clone());
    JoinSet::from_iter(lockers.map(take)).join_all().await;
    let again = asked_again(&clients[0]);
    assert!(again <= 1_920 / 10, "{again} of 1,920");
}

/// It takes the lock more than once in each millisecond that its clock gains.
#[tokio::test(start_paused = true)]
async fn a_client_whose_clock_runs_fast_does_not_carry_the_fences_with_it() {
    let world = World::behaving(&[After(ms(0)); 3]).await;
    world.locker.ready(ms(1_000)).await.unwrap();
    set_clock(&world, 4_000);
    let (mut highest, began) = (0, wall_of_nodes(&world));
    for _ in 0..4_000 {
        world.driven.step_wall(500_000);
        let guard = world.locker.lock("k").fenced().await.unwrap();
        highest = guard.fence().unwrap().number();
        assert!(guard.release().await.unwrap().is_released());
    }
    let passed = (wall_of_nodes(&world) - began).as_micros() as u64;
    let ahead = highest - began.as_micros() as u64 - passed;
    assert!((4_900_000..5_010_000).contains(&ahead), "{ahead} µs");
}

/// Nodes whose clocks are five seconds apart at most take tokens above all that they have told,
/// also while clients with other clocks have come before, and come between.
#[tokio::test(start_paused = true)]
async fn clients_whose_clocks_are_wrong_do_not_keep_others_from_fences() {
    let clients = clients(3, 2).await;
    for (client, ahead) in clients.iter().zip([-8_000, 4_900, 9_900]) {
        set_clock(client, ahead);
    }
    clients[0].nodes[1].step_clock(-4_900);
    for round in 0..100 {
        let client = &clients[round % 3];
        let guard = client.locker.lock("k").fenced().wait(ms(0)).await.unwrap();
        assert!(guard.release().await.unwrap().is_released(), "{round}");
    }
}

/// Where a lock's fence stands.
const FENCE_OF_K: &str = "{k}:quorlock:fence";

/// Fences of these nodes that no token is above.
fn end_fences(world: &World, nodes: &[usize]) {
    for node in nodes {
        world.nodes[*node].command(["SET", FENCE_OF_K, "9007199254740991"]);
    }
}

fn hold_by_another(world: &World, nodes: &[usize]) {
    for node in nodes {
        world.nodes[*node].command(["SET", "k", "another's", "PX", "60000"]);
    }
}

/// Nodes that answer within a millisecond, and a client that knows them and whose clock is theirs.
async fn world(nodes: usize) -> World {
    let world = World::behaving(&vec![After(ms(1)); nodes]).await;
    world.locker.ready(ms(1_000)).await.unwrap();
    set_clock(&world, 0);
    world
}

/// The nodes that still hold a value of this client's.
fn left(world: &World) -> Vec<usize> {
    let is_left = |node: &usize| world.nodes[*node].value("k").is_some_and(|it| it.contains(&b'@'));
    (0..world.nodes.len()).filter(is_left).collect()
}

#[tokio::test(start_paused = true)]
async fn one_script_sets_the_lock_and_its_fence() {
    let world = world(3).await;
    let guard = world.locker.lock("k").fenced().await.unwrap();
    assert!(guard.fence().is_some());
    for node in &world.nodes {
        let heard = node.heard();
        assert!(heard.iter().all(|heard| heard.words[0] != b"SET"[..]), "{heard:?}");
    }
}

/// A node whose fence cannot rise counts for the lock, and not for its fence.
#[tokio::test(start_paused = true)]
async fn a_node_that_grants_the_lock_without_its_fence_is_let_go_of_as_well() {
    let world = world(3).await;
    end_fences(&world, &[0]);
    hold_by_another(&world, &[2]);
    let error = world.locker.lock("k").fenced().wait(ms(0)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    pass(ms(10)).await;
    assert!(left(&world).is_empty(), "too few have taken a token");
    world.nodes[2].command(["DEL", "k"]);
    let guard = world.locker.lock("k").fenced().await.unwrap();
    pass(ms(10)).await;
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    let granted = guard.votes().iter().filter(|vote| vote.outcome == Outcome::Granted).count();
    assert_eq!(granted, 3);
    assert!(guard.release().await.unwrap().is_released());
    pass(ms(10)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn fences_that_cannot_rise_leave_no_lock_and_say_so() {
    let world = world(3).await;
    end_fences(&world, &[0, 1]);
    let error = world.locker.lock("k").fenced().wait(ms(0)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let stands = |node: &usize| match error.nodes()[*node].outcome {
        Outcome::Unfenced { fence, .. } => fence == 9_007_199_254_740_991,
        _ => false,
    };
    assert_eq!((0..3).filter(stands).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(error.to_string().matches("stands at 9007199254740991 (is its clock").count(), 2);
    pass(ms(10)).await;
    assert_eq!(world.keys("k"), 0);
}

/// Of what a node without a fence grants, others hold the rest.
#[tokio::test(start_paused = true)]
async fn a_lock_that_others_hold_is_told_as_contended_whatever_a_fence_says() {
    let world = world(3).await;
    end_fences(&world, &[0]);
    hold_by_another(&world, &[1, 2]);
    for slow in [0, 1, 2] {
        world.behave(&[After(ms(1)); 3]);
        world.nodes[slow].set(After(ms(20)));
        let error = world.locker.lock("k").fenced().wait(ms(0)).await.unwrap_err();
        assert!(error.is_contended(), "{slow}: {error}");
        pass(ms(50)).await;
        assert!(left(&world).is_empty(), "{slow}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_whose_future_is_dropped_while_a_higher_token_is_on_its_way_leaves_no_lock() {
    let world = world(3).await;
    end_fences(&world, &[0, 1]);
    for dropped in 1..20 {
        let acquiring = world.locker.lock("k").fenced();
        drop(tokio::time::timeout(ms(dropped), acquiring.acquire()).await);
        pass(ms(20)).await;
        assert_eq!(world.keys("k"), 0, "dropped after {dropped} ms");
    }
}

/// The third node's key stands in the way, and one of the two others does not know the script.
#[tokio::test(start_paused = true)]
async fn a_node_without_the_script_is_sent_it_though_another_refuses() {
    let world = world(3).await;
    let other = world.locker.lock("other").fenced().await.unwrap();
    assert!(other.release().await.unwrap().is_released());
    hold_by_another(&world, &[2]);
    world.nodes[0].command(["SCRIPT", "FLUSH"]);
    let guard = world.locker.lock("k").fenced().try_acquire().await.unwrap();
    assert!(guard.is_some_and(|guard| guard.fence().is_some()));
}
