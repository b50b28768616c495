//! How long a node may take.

use super::Behaviour::{After, Grants, Hangs};
use super::{World, ms, now, pass};
use crate::options::Options;
use crate::report::Outcome;

/// A client whose locks live for long enough to wait so long for a node.
async fn patient(count: usize) -> World {
    let options = Options {
        ttl: ms(120_000),
        wait: Some(ms(0)),
        node_timeout: Some(ms(20_000)),
        ..Options::default()
    };
    World::with(count, options).await
}

#[tokio::test(start_paused = true)]
async fn a_node_timeout_above_the_age_of_a_hung_nodes_replies_is_kept() {
    let world = patient(1).await;
    world.set(0..1, After(ms(7_000)));
    let began = now();
    let guard = world.locker.lock("k").await.unwrap();
    assert_eq!(now().since(began), ms(7_000));
    world.set(0..1, Grants);
    assert!(guard.release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_is_given_up_at_its_deadline_if_that_is_later() {
    let world = patient(1).await;
    world.set(0..1, Hangs);
    let began = now();
    let error = world.locker.lock("k").try_acquire().await.unwrap_err();
    let took = now().since(began);
    assert!(took >= ms(20_000) && took <= ms(20_001), "{took:?}");
    assert_eq!(error.nodes()[0].outcome, Outcome::Silent { after: ms(20_000) });
    pass(ms(1)).await;
    assert!(matches!(world.locker.health()[0].outcome, Outcome::Down { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_is_given_up_after_five_seconds_while_undos_are_still_sent() {
    let world = World::ready(1).await;
    let guards = [world.locker.lock("a").await.unwrap(), world.locker.lock("b").await.unwrap()];
    world.set(0..1, Hangs);
    let [first, second] = guards;
    drop(first);
    pass(ms(4_990)).await;
    drop(second);
    assert!(matches!(world.locker.health()[0].outcome, Outcome::Connected));
    pass(ms(11)).await;
    assert!(matches!(world.locker.health()[0].outcome, Outcome::Down { .. }));
}
