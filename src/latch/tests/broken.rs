//! `Barrier::pass_or_break`.

use std::sync::Arc;

use super::cancelled::cut;
use super::{Running, ended_within, is_gone, locker, ms, now, pass};
use crate::clock::Driven;
use crate::entropy::Entropy;
use crate::latch::Barrier;
use crate::testing::{Nodes, Reaction, When};
use crate::{Durability, Error};

/// A barrier of a process of its own.
fn barrier(nodes: &Nodes, parties: usize) -> Barrier {
    locker(nodes).barrier("b", parties).unwrap()
}

/// What a party was told: that it has passed, or that the round is broken.
fn has_passed(told: Result<u64, Error>) -> bool {
    told.map_or_else(|error| !assert_broken(&error), |_| true)
}

fn assert_broken(error: &Error) -> bool {
    assert!(error.is_broken() && !error.is_retryable(), "{error}");
    true
}

#[tokio::test(start_paused = true)]
async fn all_pass_when_the_last_one_comes_in_time_round_by_round() {
    let nodes = Nodes::new(1);
    let mut barriers: Vec<_> = (0..3).map(|_| barrier(&nodes, 3)).collect();
    for round in 0..3 {
        let (last, others) = barriers.split_last_mut().unwrap();
        let mut waits: Vec<Running<'_, Result<u64, Error>>> = Vec::new();
        for (number, barrier) in others.iter_mut().enumerate() {
            let name = number.to_string();
            waits.push(Box::pin(async move { barrier.pass_or_break(name, ms(2_000)).await }));
        }
        assert_eq!(ended_within(ms(1_990), &mut waits).await, [false; 2]);
        // It waits for none, and need not: it is the last.
        assert_eq!(last.pass_or_break("last", ms(0)).await.unwrap(), round);
        assert_eq!(ended_within(ms(5), &mut waits).await, [true; 2]);
        drop(waits);
        assert!(barriers.iter().all(|barrier| barrier.round() == round + 1), "all have passed");
    }
    let mut late = barrier(&nodes, 3).at_round(2);
    assert_eq!(late.pass_or_break("2", ms(0)).await.unwrap(), 2, "it stays passed");
}

/// Exact, for the processes' clocks are driven, and no node takes any time.
#[tokio::test(start_paused = true)]
async fn the_shortest_wait_breaks_the_round_for_all_at_its_end_and_not_before() {
    let nodes = Nodes::new(1);
    let driven = |seed: u64| {
        let (clock, _) = Driven::clock();
        let locker = nodes.locker().owner(seed.to_string());
        let locker = locker.build_on(clock, Entropy::from_seed(seed), Arc::new(nodes.clone()));
        locker.unwrap().barrier("b", 3).unwrap()
    };
    let [mut one, mut two, mut late] = [1, 2, 3].map(driven);
    let began = now();
    let mut waits: Vec<Running<'_, Result<(), Error>>> = vec![
        Box::pin(async { one.pass_or_break("one", ms(1_000)).await.map(drop) }),
        Box::pin(async {
            let told = two.pass_or_break("two", ms(5_000)).await;
            assert_eq!(now().since(began), ms(1_000), "it is told at once");
            told.map(drop)
        }),
    ];
    assert_eq!(ended_within(ms(999), &mut waits).await, [false; 2]);
    let told = tokio::join!(waits.remove(0), waits.remove(0));
    assert!(assert_broken(&told.0.unwrap_err()) && assert_broken(&told.1.unwrap_err()));
    assert_eq!(now().since(began), ms(1_000));
    drop(waits);
    assert_eq!((one.round(), two.round()), (0, 0));
    assert!(assert_broken(&late.pass_or_break("late", ms(5_000)).await.unwrap_err()));
    let error = late.pass("late").await.unwrap_err();
    assert!(assert_broken(&error), "nor does it wait without an end");
    assert_eq!(now().since(began), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn one_that_passes_without_a_limit_is_told_that_another_has_broken_the_round() {
    let nodes = Nodes::builder(1).each(|node| node.without("hello")).build();
    let (mut one, mut two) = (barrier(&nodes, 3), barrier(&nodes, 3));
    let mut waits: Vec<Running<'_, Result<u64, Error>>> = vec![Box::pin(one.pass("one"))];
    assert_eq!(ended_within(ms(500), &mut waits).await, [false]);
    let error = two.pass_or_break("two", ms(100)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "barrier \"b/0\" is broken: a party's wait was over before all had come; begin anew at \
         another key"
    );
    // No node tells of changes, so it looks by itself.
    assert_eq!(ended_within(ms(110), &mut waits).await, [true]);
    drop(waits);
    assert!(assert_broken(&one.pass("one").await.unwrap_err()));
}

/// The last one comes about when the wait of another is over, and the commands cross.
#[tokio::test(start_paused = true)]
async fn all_are_told_the_same_however_close_the_last_one_comes_to_the_end() {
    let mut outcomes = [false; 2];
    for (reply, after) in (0..4).flat_map(|reply| (0..24).map(move |after| (reply, after))) {
        let nodes = Nodes::new(1);
        nodes.add(When::before("name_set").then(Reaction::Delay(ms(3))));
        nodes.add(When::after("name_set").then(Reaction::Delay(ms(reply))));
        let mut barriers: Vec<_> = (0..3).map(|_| barrier(&nodes, 3)).collect();
        let [one, two, last] = &mut barriers[..] else { unreachable!() };
        let told = tokio::join!(
            one.pass_or_break("one", ms(500)),
            two.pass_or_break("two", ms(507)),
            async {
                pass(ms(485 + after)).await;
                last.pass_or_break("last", ms(50)).await
            }
        );
        let told: [bool; 3] = [told.0, told.1, told.2].map(has_passed);
        assert_eq!(told, [told[0]; 3], "{reply} {after}");
        let mut asks = barrier(&nodes, 3);
        let again = asks.pass_or_break("one", ms(0)).await;
        assert_eq!(has_passed(again), told[0], "{reply} {after}");
        outcomes[usize::from(told[0])] = true;
    }
    assert_eq!(outcomes, [true; 2], "it is passed and broken, in one run or another");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_before_its_wait_is_over_breaks_nothing() {
    for polls in 1..40 {
        let nodes = Nodes::new(1);
        let (mut one, mut two) = (barrier(&nodes, 2), barrier(&nodes, 2));
        assert!(!cut(one.pass_or_break("one", ms(60_000)), polls).await);
        assert_eq!(one.round(), 0);
        let (one, two) =
            tokio::join!(one.pass_or_break("one", ms(500)), two.pass_or_break("two", ms(500)));
        assert_eq!((one.unwrap(), two.unwrap()), (0, 0), "{polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_when_its_wait_is_over_leaves_one_outcome_for_all() {
    let mut outcomes = [false; 2];
    for polls in 1..16 {
        let nodes = Nodes::new(1);
        let (mut one, mut two) = (barrier(&nodes, 2), barrier(&nodes, 2));
        let ended = cut(one.pass_or_break("one", ms(0)), polls).await;
        let told = two.pass_or_break("two", ms(100)).await;
        let passed = has_passed(told);
        assert!(!(ended && passed), "it was told that it is broken");
        let again = one.pass_or_break("one", ms(0)).await;
        assert_eq!(has_passed(again), passed, "{polls}");
        outcomes[usize::from(passed)] = true;
    }
    assert!(outcomes[0], "none of them was polled for long enough to break the round");
}

#[tokio::test(start_paused = true)]
async fn a_round_stays_broken_for_the_ttl_from_each_call_and_ends_by_itself() {
    let nodes = Nodes::new(1);
    let new = || barrier(&nodes, 2).ttl(ms(1_000)).unwrap();
    let (mut one, mut two) = (new(), new());
    assert!(assert_broken(&one.pass_or_break("one", ms(50)).await.unwrap_err()));
    for _ in 0..5 {
        pass(ms(990)).await;
        assert!(assert_broken(&two.pass_or_break("two", ms(9_000)).await.unwrap_err()));
    }
    pass(ms(1_510)).await;
    assert!(is_gone(&nodes), "no key is left");
    let (one, two) =
        tokio::join!(one.pass_or_break("one", ms(500)), two.pass_or_break("two", ms(500)));
    assert_eq!((one.unwrap(), two.unwrap()), (0, 0), "when it has ended it can be used again");
}

/// Its round has ended, and the others are at the next one, or have broken that.
#[tokio::test(start_paused = true)]
async fn one_that_was_away_for_longer_than_the_ttl_finds_the_others_at_the_next_round() {
    for is_broken in [false, true] {
        let nodes = Nodes::new(1);
        let new = || barrier(&nodes, 2).ttl(ms(1_000)).unwrap();
        let (mut one, mut two) = (new(), new());
        assert!(!cut(one.pass_or_break("one", ms(60_000)), 20).await);
        assert_eq!(two.pass_or_break("two", ms(0)).await.unwrap(), 0);
        let wait = if is_broken { ms(8_900) } else { ms(60_000) };
        let mut waits: Vec<Running<'_, Result<u64, Error>>> =
            vec![Box::pin(two.pass_or_break("two", wait))];
        assert_eq!(ended_within(ms(9_000), &mut waits).await, [is_broken]);
        assert_eq!(one.pass_or_break("one", ms(0)).await.unwrap(), 0, "it is passed");
        assert_eq!(has_passed(one.pass_or_break("one", ms(0)).await), !is_broken);
    }
}

/// It cannot say how the round stands, and the next call is told.
#[tokio::test(start_paused = true)]
async fn without_an_answer_at_the_end_the_next_call_is_told() {
    for is_executed in [true, false] {
        let nodes = Nodes::new(1);
        let (mut one, mut two) = (barrier(&nodes, 2), barrier(&nodes, 2));
        let lost = Reaction::Cut { after_bytes: 0 };
        // Its arrival, its look at the next round, and what breaks the round.
        let third = if is_executed { When::after("name_set") } else { When::before("name_set") };
        nodes.add(third.nth(3).then(lost));
        let error = one.pass_or_break("one", ms(0)).await.unwrap_err();
        assert!(error.is_unavailable() && error.is_retryable(), "{error}");
        pass(ms(1_000)).await;
        let passed = has_passed(two.pass_or_break("two", ms(0)).await);
        assert_eq!(passed, !is_executed);
        assert_eq!(has_passed(one.pass_or_break("one", ms(0)).await), passed);
    }
}

/// A node that has lost its keys gives no vote before all that it may have told is over.
#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_and_says_so_tells_none_the_contrary() {
    let nodes = Nodes::new(1);
    let durability = Durability::Volatile { longest_ttl: ms(10_000) };
    let locker = nodes.locker().durability(durability).build().unwrap();
    locker.initialise().await.unwrap();
    let mut one = locker.barrier("b", 2).unwrap().ttl(ms(10_000)).unwrap();
    let mut two = one.clone();
    assert!(assert_broken(&one.pass_or_break("one", ms(0)).await.unwrap_err()));
    nodes[0].restart(false).unwrap();
    pass(ms(1_000)).await;
    for party in [&mut one, &mut two] {
        let error = party.pass_or_break("two", ms(0)).await.unwrap_err();
        assert!(error.is_unavailable(), "it is in quarantine: {error}");
    }
    pass(ms(10_100)).await;
    let (one, two) =
        tokio::join!(one.pass_or_break("one", ms(500)), two.pass_or_break("two", ms(500)));
    assert_eq!((one.unwrap(), two.unwrap()), (0, 0), "the TTL is over by then");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_with_a_reason() {
    let nodes = Nodes::new(3);
    let error = barrier(&nodes, 1).pass_or_break("one", ms(0)).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(error.to_string().contains("separate servers cannot decide"), "{error}");
    assert!(nodes.iter().all(|node| node.calls("name_set") == 0), "nothing was sent");
    let nodes = Nodes::new(1);
    let error = barrier(&nodes, 1).pass_or_break("", ms(0)).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    let locker = locker(&nodes);
    let mut one = locker.barrier("b", 2).unwrap();
    locker.shutdown(ms(100)).await.unwrap();
    assert!(one.pass_or_break("one", ms(0)).await.unwrap_err().is_closed());
    assert!(is_gone(&nodes));
}
