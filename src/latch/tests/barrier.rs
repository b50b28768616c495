//! `Locker::barrier`.

use super::{Running, ended_within, locker, ms};
use crate::Error;
use crate::testing::Nodes;

#[tokio::test(start_paused = true)]
async fn no_party_is_a_round_ahead_of_another() {
    let nodes = Nodes::new(5);
    let mut barriers: Vec<_> = (0..3).map(|_| locker(&nodes).barrier("b", 3).unwrap()).collect();
    for round in 0..4 {
        let (last, others) = barriers.split_last_mut().unwrap();
        let mut waits: Vec<Running<'_, Result<u64, Error>>> = Vec::new();
        for (number, barrier) in others.iter_mut().enumerate() {
            waits.push(Box::pin(async move { barrier.pass(number.to_string()).await }));
        }
        assert_eq!(ended_within(ms(1_500), &mut waits).await, [false; 2]);
        assert_eq!(last.pass("last").await.unwrap(), round);
        assert_eq!(ended_within(ms(50), &mut waits).await, [true; 2]);
        drop(waits);
        assert!(barriers.iter().all(|barrier| barrier.round() == round + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_party_that_begins_anew_resumes_at_its_round() {
    let nodes = Nodes::new(3);
    let mut one = locker(&nodes).barrier("b", 2).unwrap().ttl(ms(5_000)).unwrap().at_round(7);
    {
        let mut waits: Vec<Running<'_, Result<u64, Error>>> = vec![Box::pin(one.pass("one"))];
        assert_eq!(ended_within(ms(100), &mut waits).await, [false]);
    }
    assert_eq!(one.round(), 7, "it was dropped, and is to pass again");
    let mut two = locker(&nodes).barrier("b", 2).unwrap().at_round(7);
    assert_eq!(two.pass("two").await.unwrap(), 7, "what has arrived has arrived");
    assert_eq!(one.pass("one").await.unwrap(), 7);
    assert!(nodes.iter().all(|node| node.keys() == [b"b/7"]));
}

/// Its round has ended, and the others wait for it at the next one.
#[tokio::test(start_paused = true)]
async fn a_party_that_was_away_for_longer_than_the_ttl_finds_the_others_at_the_next_round() {
    let nodes = Nodes::new(3);
    let new = || locker(&nodes).barrier("b", 2).unwrap().ttl(ms(1_000)).unwrap();
    let (mut one, mut two) = (new(), new());
    {
        let mut waits: Vec<Running<'_, Result<u64, Error>>> = vec![Box::pin(one.pass("one"))];
        assert_eq!(ended_within(ms(100), &mut waits).await, [false]);
    }
    assert_eq!(two.pass("two").await.unwrap(), 0);
    let mut waits: Vec<Running<'_, Result<u64, Error>>> = vec![Box::pin(two.pass("two"))];
    assert_eq!(ended_within(ms(10_000), &mut waits).await, [false]);
    assert_eq!(one.pass("one").await.unwrap(), 0, "it is passed");
    assert_eq!(one.pass("one").await.unwrap(), 1);
    assert_eq!(ended_within(ms(50), &mut waits).await, [true]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_with_a_reason() {
    let nodes = Nodes::new(1);
    let locker = locker(&nodes);
    let long = "k".repeat(4_090);
    for (key, parties) in [("b", 0), ("", 1), (&long, 1)] {
        assert!(locker.barrier(key, parties).unwrap_err().is_misuse(), "{parties}");
    }
    assert!(locker.barrier("b", 1).unwrap().ttl(ms(0)).unwrap_err().is_misuse());
}
