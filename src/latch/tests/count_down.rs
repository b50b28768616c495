//! `Latch::count_down`.

use super::cancelled::cut;
use super::{closed, latch, locker, ms, now, pass};
use crate::latch::LatchState;
use crate::testing::{Nodes, Reaction, When};

#[tokio::test(start_paused = true)]
async fn each_call_counts_once_and_a_name_beside_it_too() {
    let nodes = Nodes::new(1);
    let (one, two) = (latch(&nodes, 4), latch(&nodes, 4));
    assert_eq!(one.count_down().await.unwrap(), closed(3));
    assert_eq!(one.count_down().await.unwrap(), closed(2));
    assert_eq!(two.arrive("a").await.unwrap(), closed(1));
    assert_eq!(one.arrive("a").await.unwrap(), closed(1));
    assert_eq!(two.count_down().await.unwrap(), LatchState::Open);
    assert_eq!(one.state().await.unwrap(), LatchState::Open);
}

/// Or else the answers would grow with each call.
#[tokio::test(start_paused = true)]
async fn an_open_latch_is_prolonged_and_takes_no_further_names() {
    let nodes = Nodes::new(1);
    let brief = latch(&nodes, 2).ttl(ms(1_000)).unwrap();
    let names = || nodes[0].command(["ZCARD", "l"]);
    brief.count_down().await.unwrap();
    assert!(brief.count_down().await.unwrap().is_open());
    let before = names();
    for _ in 0..5 {
        pass(ms(900)).await;
        assert!(brief.count_down().await.unwrap().is_open(), "each of them has prolonged it");
        assert_eq!(names(), before);
    }
    pass(ms(1_510)).await;
    assert!(super::is_gone(&nodes), "it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_count_lasts_for_its_ttl_at_least_and_leaves_no_key() {
    let nodes = Nodes::new(1);
    let brief = latch(&nodes, 2).ttl(ms(1_000)).unwrap();
    brief.count_down().await.unwrap();
    pass(ms(1_000)).await;
    assert_eq!(brief.state().await.unwrap(), closed(1));
    pass(ms(510)).await;
    assert_eq!(brief.state().await.unwrap(), closed(2));
    assert!(super::is_gone(&nodes));
}

/// The server has counted, and its answer is lost: the call asks again by the same name.
#[tokio::test(start_paused = true)]
async fn a_command_that_is_sent_twice_counts_once() {
    let nodes = Nodes::new(1);
    let latch = latch(&nodes, 3);
    latch.state().await.unwrap();
    nodes.add(When::after("name_set").times(1).then(Reaction::Cut { after_bytes: 0 }));
    assert_eq!(latch.count_down().await.unwrap(), closed(2));
    assert_eq!(nodes[0].calls("name_set"), 3, "it was sent twice");
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_it_says_whether_it_may_have_counted() {
    let nodes = Nodes::new(1);
    let locker = nodes.locker().unavailable_wait(ms(700)).build().unwrap();
    let latch = locker.latch("l", 3).unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    nodes.add(When::after("name_set").then(Reaction::Cut { after_bytes: 0 }));
    let began = now();
    let error = latch.count_down().await.unwrap_err();
    assert!(error.is_unknown() && !error.is_retryable(), "{error}");
    assert!(error.to_string().starts_with("\"l\" may have been counted down, or may not: "));
    let took = now().since(began);
    assert!(took >= ms(700) && took < ms(1_000), "{took:?}");
    nodes[0].clear_rules();
    locker.ready(ms(1_000)).await.unwrap();
    assert_eq!(latch.state().await.unwrap(), closed(2), "it has, once");
    nodes[0].stop();
    pass(ms(10)).await;
    let error = latch.count_down().await.unwrap_err();
    assert!(error.is_unavailable() && error.is_retryable(), "{error}");
    nodes[0].restart(true).unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    assert_eq!(latch.state().await.unwrap(), closed(2), "it has not");
}

/// All have come, and the mark that says so does not reach the server.
#[tokio::test(start_paused = true)]
async fn a_count_that_was_the_last_is_told_so_though_the_latch_cannot_be_marked() {
    let nodes = Nodes::new(1);
    let latch = latch(&nodes, 1);
    latch.state().await.unwrap();
    nodes.add(When::before("name_set").nth(2).then(Reaction::Cut { after_bytes: 0 }));
    assert!(latch.count_down().await.unwrap().is_open());
    pass(ms(1_000)).await;
    assert!(latch.state().await.unwrap().is_open());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_at_any_poll_counts_once_at_most() {
    let mut counted = [false; 2];
    for polls in 1..12 {
        let nodes = Nodes::new(1);
        let latch = latch(&nodes, 3);
        cut(latch.count_down(), polls).await;
        pass(ms(10)).await;
        let state = latch.state().await.unwrap();
        let times = usize::from(state == closed(2));
        assert_eq!(state, closed(3 - times));
        counted[times] = true;
    }
    assert!(counted[1], "none of them was polled to its end");
}

#[tokio::test(start_paused = true)]
async fn several_servers_and_a_shutdown_are_refused_with_a_reason() {
    let nodes = Nodes::new(3);
    let error = latch(&nodes, 1).count_down().await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(error.to_string().contains("name each party"), "{error}");
    assert!(nodes.iter().all(|node| node.calls("name_set") == 0), "nothing was sent");
    let nodes = Nodes::new(1);
    let locker = locker(&nodes);
    let latch = locker.latch("l", 1).unwrap();
    locker.shutdown(ms(100)).await.unwrap();
    assert!(latch.count_down().await.unwrap_err().is_closed());
}
