//! Locks in strict order on nodes that hang, are slow, or were away: on nodes in the process, under
//! a paused clock.

use quorlock::testing::{Nodes, Reaction, When};
use tokio::time::Instant;

use super::{bring_the_script, calls, comes, has, ms, places, process, processes};

/// A node that hangs holds up neither a question nor a turn: the next of the same process would
/// take that, with a higher ticket.
#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_costs_no_one_its_place() {
    let nodes = Nodes::new(5);
    let builder = |name: &str| nodes.locker().owner(name).ttl(ms(60_000)).node_timeout(ms(800));
    let [holder, one, other] =
        ["holder", "one", "other"].map(|name| builder(name).build().unwrap());
    for locker in [&holder, &one, &other] {
        locker.ready(ms(1_000)).await.unwrap();
    }
    let held = holder.lock("k").fair_strict().await.unwrap();
    let [first, next] = [comes(&one).await, comes(&one).await];
    let last = comes(&other).await;
    tokio::time::sleep(ms(900)).await;
    nodes[4].add(When::before("ticket_ask").nth(1).then(Reaction::Hang));
    tokio::time::sleep(ms(2_000)).await;
    let began = Instant::now();
    assert!(held.release().await.unwrap().is_released());
    let guard = has(first).await;
    assert!(began.elapsed() < ms(300), "{:?}", began.elapsed());
    assert!(!next.is_finished() && !last.is_finished());
    drop(guard);
    drop(has(last).await);
    drop(has(next).await);
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_is_kept_though_a_node_hangs() {
    let nodes = Nodes::new(5);
    let builder = nodes.locker().owner("one").node_timeout(ms(2_000)).ttl(ms(60_000));
    let (locker, other) = (builder.build().unwrap(), process(&nodes, "other").await);
    locker.ready(ms(1_000)).await.unwrap();
    let held = other.lock("k").await.unwrap();
    nodes[0].hang();
    let began = Instant::now();
    let error = locker.lock("k").fair_strict().wait(ms(50)).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    assert!(began.elapsed() < ms(300), "{:?}", began.elapsed());
    drop(held);
}

/// What was unavailable once, and is not any more, does not count against a later outage.
#[tokio::test(start_paused = true)]
async fn an_outage_that_is_over_ends_no_later_wait() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    nodes.iter().for_each(|node| node.stop());
    let request = locker.lock("k").fair_strict().wait_forever().unavailable_wait(ms(2_000));
    let waiting = tokio::spawn(request.acquire());
    tokio::time::sleep(ms(500)).await;
    for node in nodes.iter() {
        node.restart(true).unwrap();
        assert!(node.command(["SET", "k", "foreign", "PX", "20000"]).is_ok());
    }
    tokio::time::sleep(ms(8_000)).await;
    assert_eq!(places(&nodes), [1; 3]);
    nodes.iter().take(2).for_each(|node| node.stop());
    tokio::time::sleep(ms(700)).await;
    for node in nodes.iter().take(2) {
        node.restart(true).unwrap();
    }
    tokio::time::sleep(ms(3_000)).await;
    assert!(!waiting.is_finished(), "{:?}", waiting.await.unwrap().map(drop));
    drop(has(waiting).await);
}

/// Its own key on one node, which lives for long, is no reason to wait for long.
#[tokio::test(start_paused = true)]
async fn one_that_has_a_node_waits_for_no_more_than_it_lacks() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    assert!(nodes[1].command(["SET", "k", "foreign", "NX", "PX", "100"]).is_ok());
    assert!(nodes[2].command(["SET", "k", "foreign", "NX", "PX", "60000"]).is_ok());
    let began = Instant::now();
    drop(has(comes(&locker).await).await);
    assert!((ms(100)..=ms(105)).contains(&began.elapsed()), "{:?}", began.elapsed());
}

/// A node that was too slow once counts no more for that ticket. Where it is needed, another ticket
/// is taken.
#[tokio::test(start_paused = true)]
async fn one_that_lacks_a_node_that_was_slow_takes_another_ticket() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    // The first node is another client's, for good.
    assert!(nodes[0].command(["SET", "k", "foreign"]).is_ok());
    let held = holder.lock("k").await.unwrap();
    let waiting = comes(&waiter).await;
    nodes[2].add(When::before("ticket_ask").nth(1).then(Reaction::Delay(ms(400))));
    tokio::time::sleep(ms(2_000)).await;
    assert!(held.release().await.unwrap().is_released());
    drop(has(waiting).await);
}

/// The lock is held on one node, and the others tell nothing: that is no reason to ask without a
/// pause.
#[tokio::test(start_paused = true)]
async fn one_that_a_node_refuses_for_another_reason_asks_with_pauses() {
    let nodes = Nodes::new(3);
    let [one] = processes(&nodes).await;
    bring_the_script(&one).await;
    assert!(nodes[0].command(["SET", "k", "foreign", "NX", "PX", "60000"]).is_ok());
    let busy = Reaction::Answer(b"-BUSY a script runs\r\n".to_vec());
    nodes[1].add(When::before("ticket_ask").then(busy));
    nodes[2].stop();
    tokio::time::sleep(ms(5)).await;
    let asked = calls(&nodes, "ticket_ask");
    let error = one.lock("k").fair_strict().wait(ms(2_000)).await.unwrap_err();
    assert!(error.is_contended() || error.is_unavailable(), "{error}");
    let asked = calls(&nodes, "ticket_ask") - asked;
    assert!(asked < 50, "{asked}");
}

/// What a slow node grants late, it is told to delete: it would keep the lock from others.
#[tokio::test(start_paused = true)]
async fn what_is_granted_late_is_let_go_of() {
    let nodes = Nodes::new(3);
    let [waiter] = processes(&nodes).await;
    bring_the_script(&waiter).await;
    for node in nodes.iter().skip(1) {
        assert!(node.command(["SET", "k", "foreign", "NX", "PX", "60000"]).is_ok());
    }
    nodes[0].add(When::before("ticket_ask").nth(1).then(Reaction::Delay(ms(300))));
    let waiting = comes(&waiter).await;
    tokio::time::sleep(ms(1_000)).await;
    assert!(nodes[0].value("k").is_none());
    assert!(!waiting.is_finished());
    waiting.abort();
}
