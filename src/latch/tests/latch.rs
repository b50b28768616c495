//! `Locker::latch`.

use super::{closed, ended_within, is_gone, latch, locker, ms, now, pass};
use crate::Error;
use crate::latch::{Latch, LatchState};
use crate::options::Durability;
use crate::testing::{Node, Nodes, Reaction, When};

#[tokio::test(start_paused = true)]
async fn it_opens_with_the_last_of_the_parties_and_counts_each_once() {
    for count in [1, 3, 5] {
        let nodes = Nodes::new(count);
        let (one, two) = (latch(&nodes, 3), latch(&nodes, 3));
        assert_eq!(one.state().await.unwrap(), closed(3));
        assert_eq!(one.arrive("a").await.unwrap(), closed(2));
        assert_eq!(two.arrive("b").await.unwrap(), closed(1));
        for again in ["a", "b", "a"] {
            assert_eq!(two.arrive(again).await.unwrap(), closed(1), "it has arrived");
        }
        assert_eq!(one.arrive("c").await.unwrap(), LatchState::Open);
        assert_eq!(two.state().await.unwrap(), LatchState::Open);
        assert_eq!(two.arrive("a fourth").await.unwrap(), LatchState::Open);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_of_the_last_arrival_and_asks_nothing_meanwhile() {
    let nodes = Nodes::new(5);
    let (waiting, arriving) = (latch(&nodes, 2), latch(&nodes, 2));
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> = vec![
        Box::pin(waiting.wait()),
        Box::pin(async {
            waiting.wait_timeout(ms(60_000)).await.map(|state| assert!(state.is_open()))
        }),
        Box::pin(async { arriving.arrive_and_wait("a").await }),
    ];
    assert_eq!(ended_within(ms(500), &mut waits).await, [false; 3]);
    let asked = || nodes.iter().map(|node| node.calls("eval")).sum::<u64>();
    let before = asked();
    assert_eq!(ended_within(ms(400), &mut waits).await, [false; 3]);
    assert_eq!(asked(), before, "a watch tells");
    let began = now();
    let last = latch(&nodes, 2);
    assert!(last.arrive("b").await.unwrap().is_open());
    assert_eq!(ended_within(ms(400), &mut waits).await, [true; 3]);
    assert!(now().since(began) < ms(5), "they were woken");
}

#[tokio::test(start_paused = true)]
async fn it_is_waited_for_where_no_node_tells_of_changes() {
    let nodes = Nodes::builder(3).each(|node| node.without("hello")).build();
    let waiting = latch(&nodes, 1);
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> = vec![Box::pin(waiting.wait())];
    assert_eq!(ended_within(ms(500), &mut waits).await, [false]);
    assert!(latch(&nodes, 1).arrive("a").await.unwrap().is_open());
    assert_eq!(ended_within(ms(110), &mut waits).await, [true]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_watched_node_missed_is_seen_within_a_second() {
    let nodes = Nodes::new(3);
    let waiting = latch(&nodes, 1);
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> = vec![Box::pin(waiting.wait())];
    assert_eq!(ended_within(ms(100), &mut waits).await, [false]);
    // Written past the node that is watched, whichever that is: as an arrival that it has missed.
    let asks = |node: &Node| node.calls("client");
    let watched = nodes.iter().map(asks).max().unwrap();
    for node in nodes.iter().filter(|node| asks(node) < watched) {
        node.command(["ZADD", "l", "0", "pa"]);
        node.command(["PEXPIRE", "l", "60000"]);
    }
    assert_eq!(ended_within(ms(800), &mut waits).await, [false]);
    assert_eq!(ended_within(ms(300), &mut waits).await, [true]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_says_how_many_are_missing() {
    let nodes = Nodes::new(3);
    let latch = latch(&nodes, 3);
    latch.arrive("a").await.unwrap();
    let began = now();
    assert_eq!(latch.wait_timeout(ms(700)).await.unwrap(), closed(2));
    let took = now().since(began);
    assert!(took >= ms(700) && took < ms(720), "{took:?}");
    assert_eq!(latch.wait_timeout(ms(0)).await.unwrap(), closed(2));
}

/// Two of five have the name: a look may find it by one of them, and the next one may not.
#[tokio::test(start_paused = true)]
async fn once_it_was_open_every_later_look_finds_it_open() {
    let nodes = Nodes::new(5);
    let latch = latch(&nodes, 1);
    for node in nodes.iter().take(2) {
        node.command(["ZADD", "l", "0", "pa"]);
        node.command(["PEXPIRE", "l", "60000"]);
    }
    nodes[3].hang();
    nodes[4].hang();
    assert!(latch.state().await.unwrap().is_open(), "one of the first three has told");
    nodes[3].resume();
    nodes[4].resume();
    pass(ms(10)).await;
    nodes[0].hang();
    nodes[1].hang();
    assert!(latch.state().await.unwrap().is_open(), "the mark was written to a majority");
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_it_is_not_told_and_to_arrive_again_is_right() {
    let nodes = Nodes::new(3);
    let locker = nodes.locker().unavailable_wait(ms(1_000)).build().unwrap();
    let latch = locker.latch("l", 2).unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    nodes[0].stop();
    nodes[1].stop();
    let error = latch.arrive("a").await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let began = now();
    let error = latch.arrive_and_wait("a").await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let took = now().since(began);
    assert!(took >= ms(1_000) && took < ms(2_000), "{took:?}");
    nodes[0].restart(true).unwrap();
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> =
        vec![Box::pin(latch.arrive_and_wait("a")), Box::pin(latch.arrive_and_wait("b"))];
    assert_eq!(ended_within(ms(5_000), &mut waits).await, [true; 2]);
}

#[tokio::test(start_paused = true)]
async fn an_arrival_lasts_for_its_ttl_or_as_long_as_its_party_waits() {
    let nodes = Nodes::new(3);
    let brief = latch(&nodes, 2).ttl(ms(3_000)).unwrap();
    brief.arrive("a").await.unwrap();
    pass(ms(2_990)).await;
    assert_eq!(brief.state().await.unwrap(), closed(1));
    pass(ms(1_520)).await;
    assert_eq!(brief.state().await.unwrap(), closed(2), "it is forgotten, and no key is left");
    assert!(is_gone(&nodes));
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> =
        vec![Box::pin(brief.arrive_and_wait("a"))];
    assert_eq!(ended_within(ms(20_000), &mut waits).await, [false]);
    assert_eq!(brief.state().await.unwrap(), closed(1), "it waits still");
    assert!(brief.arrive("b").await.unwrap().is_open());
    pass(ms(2_900)).await;
    assert!(brief.state().await.unwrap().is_open());
    drop(waits);
    pass(ms(4_510)).await;
    assert!(is_gone(&nodes), "all of it ends by itself");
}

/// Nodes come back without their keys, where that is declared.
#[tokio::test(start_paused = true)]
async fn nodes_that_forgot_are_not_asked_until_their_quarantine_ends() {
    let nodes = Nodes::new(3);
    let durability = Durability::Volatile { longest_ttl: ms(30_000) };
    let locker = nodes.locker().durability(durability).build().unwrap();
    locker.initialise().await.unwrap();
    let latch = locker.latch("l", 1).unwrap();
    nodes[2].hang();
    assert!(latch.arrive("a").await.unwrap().is_open());
    nodes[2].resume();
    nodes[1].restart(false).unwrap();
    pass(ms(1_000)).await;
    assert!(latch.state().await.unwrap().is_open(), "the other two are a majority");
    nodes[2].restart(false).unwrap();
    pass(ms(1_000)).await;
    let error = latch.state().await.unwrap_err();
    assert!(error.is_unavailable(), "two of three are in quarantine: {error}");
    pass(ms(31_000)).await;
    assert_eq!(latch.state().await.unwrap(), closed(1), "its TTL is over by then");
}

/// Each arrival of a party that waits comes in time, whatever wakes it meanwhile.
#[tokio::test(start_paused = true)]
async fn a_party_that_waits_counts_all_the_time_also_with_a_short_ttl() {
    let nodes = Nodes::new(3);
    let brief = latch(&nodes, 2).ttl(ms(300)).unwrap();
    let other = brief.clone();
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> = vec![
        Box::pin(brief.arrive_and_wait("a")),
        Box::pin(async {
            for number in 0..60 {
                pass(ms(97)).await;
                // A change that prolongs nothing.
                let name = format!("x{number}");
                nodes.iter().for_each(|node| drop(node.command(["ZADD", "l", "0", &name])));
                assert_eq!(other.state().await?, closed(1), "{number}");
            }
            Ok(())
        }),
    ];
    assert_eq!(ended_within(ms(7_000), &mut waits).await, [false, true]);
}

/// Many that wait do not keep one another awake.
#[tokio::test(start_paused = true)]
async fn an_arrival_that_is_repeated_wakes_none() {
    let nodes = Nodes::new(3);
    let latches: Vec<_> = (0..10).map(|_| latch(&nodes, 11)).collect();
    let wait = |(number, latch): (usize, &'static Latch)| -> super::Running<'static, _> {
        Box::pin(async move { latch.arrive_and_wait(number.to_string()).await })
    };
    let latches: &'static [Latch] = Vec::leak(latches);
    let mut waits: Vec<_> = latches.iter().enumerate().map(wait).collect();
    assert_eq!(ended_within(ms(2_000), &mut waits).await, [false; 10]);
    let asked = || nodes[0].calls("eval");
    let before = asked();
    assert_eq!(ended_within(ms(20_000), &mut waits).await, [false; 10]);
    // Each looks twice a second, and once more where one of them has prolonged it.
    let each = (asked() - before) / 10;
    assert!((38..=60).contains(&each), "{each} looks in 20 s");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_latch_is_told_and_left_as_it_is() {
    let nodes = Nodes::new(3);
    let locker = locker(&nodes);
    let guard = locker.lock("l").await.unwrap();
    let latch = locker.latch("l", 2).unwrap();
    for error in [latch.arrive("a").await.unwrap_err(), latch.wait().await.unwrap_err()] {
        assert!(error.is_misuse(), "{error}");
        assert_eq!(
            error.to_string(),
            "the key \"l\" holds something else; use another key, or a prefix"
        );
    }
    assert!(guard.release().await.unwrap().is_released());
    nodes.iter().for_each(|node| drop(node.command(["ZADD", "l", "0", "score"])));
    assert!(latch.arrive("a").await.unwrap_err().is_misuse(), "it never ends");
    assert_eq!(nodes[0].command(["ZCARD", "l"]), crate::Frame::Integer(1));
    nodes.iter().for_each(|node| drop(node.command(["DEL", "l"])));
    assert_eq!(latch.arrive("a").await.unwrap(), closed(1));
    let error = locker.lock("l").await.unwrap_err();
    assert!(error.is_foreign(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_with_a_reason() {
    let nodes = Nodes::new(1);
    let locker = locker(&nodes);
    for (key, parties) in [("", 1), ("l", 0), ("l", 1_001), ("quorlock:epoch", 1)] {
        assert!(locker.latch(key, parties).unwrap_err().is_misuse(), "{key} {parties}");
    }
    let latch = locker.latch("l", 1).unwrap();
    for name in ["", &"n".repeat(257)] {
        assert!(latch.arrive(name).await.unwrap_err().is_misuse());
    }
    assert!(latch.clone().ttl(ms(0)).unwrap_err().is_misuse());
    assert_eq!(nodes[0].calls("eval"), 0);
    locker.shutdown(ms(100)).await.unwrap();
    assert!(latch.wait().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_of_a_shutdown() {
    let nodes = Nodes::new(3);
    let locker = locker(&nodes);
    let latch = locker.latch("l", 1).unwrap();
    let mut waits: Vec<super::Running<'_, Result<(), Error>>> = vec![Box::pin(async {
        assert!(latch.wait().await.unwrap_err().is_closed());
        Ok(())
    })];
    assert_eq!(ended_within(ms(100), &mut waits).await, [false]);
    locker.shutdown(ms(100)).await.unwrap();
    assert_eq!(ended_within(ms(10), &mut waits).await, [true]);
}

/// The replies are lost: it has arrived, and is not told so.
#[tokio::test(start_paused = true)]
async fn one_that_arrives_again_because_the_answer_was_lost_counts_once() {
    let nodes = Nodes::new(3);
    let latch = latch(&nodes, 2);
    latch.state().await.unwrap();
    nodes.add(When::after("eval").times(1).then(Reaction::Cut { after_bytes: 0 }));
    assert!(latch.arrive("a").await.unwrap_err().is_unavailable());
    pass(ms(1_000)).await;
    assert_eq!(latch.arrive("a").await.unwrap(), closed(1));
}
