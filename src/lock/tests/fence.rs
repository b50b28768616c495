//! How many round trips a lock takes to its fence, for clients whose clocks differ.

use std::time::Duration;

use tokio::task::JoinSet;

use super::Behaviour::After;
use super::{World, ms};
use crate::Locker;
use crate::lease::FENCE;

/// The clocks of clients differ by as much to both sides.
const APART: i64 = 50;

/// Sets a client's wall clock to that of the nodes, and so many milliseconds ahead.
fn set_clock(world: &World, ahead: i64) {
    let time = world.nodes[0].command(["TIME"]);
    let words = time.as_items().unwrap();
    let number = |at: usize| words[at].as_str().unwrap().parse::<u64>().unwrap();
    let nodes = Duration::new(number(0), u32::try_from(number(1)).unwrap() * 1_000);
    let nanos = nodes.as_nanos() as i64 - world.driven.wall().as_nanos() as i64;
    world.driven.step_wall(nanos + ahead * 1_000_000);
}

/// How often nodes were asked again: with a higher token, or with the script that they lacked.
fn asked_again(world: &World) -> usize {
    let is_again = |words: &[bytes::Bytes]| words[0] == b"EVAL"[..] && words[1] == FENCE.text;
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
