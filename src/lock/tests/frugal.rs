//! What is not done: no node is asked needlessly, and no reply waits for its node's turn.

use super::Behaviour::Down;
use super::{World, ms, now, pass};

#[tokio::test(start_paused = true)]
async fn no_node_is_asked_who_holds_a_lock_that_no_majority_can_give() {
    let world = World::ready(3).await;
    world.set(0..2, Down);
    pass(ms(1)).await;
    world.nodes[2].clear_log();
    assert!(world.locker.lock("k").await.unwrap_err().is_unavailable());
    assert!(world.got(2, "SET").len() > 1, "it was tried again and again");
    assert_eq!(world.got(2, "GET"), []);
}

/// The driver begins each of its passes with another node.
#[tokio::test(start_paused = true)]
async fn no_reply_waits_whichever_node_is_served_first() {
    let world = World::ready(5).await;
    let began = now();
    for cycle in 0..25 {
        let guard = world.locker.lock("k").await.unwrap();
        assert_eq!(guard.votes().iter().filter(|vote| vote.rtt.is_some()).count(), 5, "{cycle}");
        assert!(guard.release().await.unwrap().is_released());
        assert_eq!(now(), began, "{cycle}");
    }
}
