//! Nodes that are stopped, hung, restarted, late, or split between two clients.

use std::time::{Duration, Instant};

use quorlock::report::{Fault, Outcome};
use support::wait::PATIENCE;
use support::{
    Fleet, Port, Reply, Script, Scripted, Server, Watchdog, eventually, eventually_async,
    need_server,
};

use crate::{builder, connected, hasty, quorum, single};

#[tokio::test]
async fn two_of_five_stopped_and_the_lock_is_acquired() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    fleet[1].stop();
    fleet[3].stop();
    for _ in 0..20 {
        let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
        assert!(guard.release().await.unwrap().is_released());
    }
    // And for a locker that has never seen them up.
    let late = builder(&fleet).build().unwrap();
    assert!(late.lock("k").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn three_of_five_stopped_is_unavailable_and_names_each_nodes_reason() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    for index in [0, 2, 4] {
        fleet[index].stop();
    }
    let down = async || {
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        let faults = error.nodes().iter().map(|node| match &node.outcome {
            Outcome::Down { fault: Fault::Refused, .. } => 'r',
            Outcome::Granted | Outcome::Held | Outcome::Pending => '.',
            _ => '?',
        });
        faults.collect::<String>() == "r.r.r"
    };
    eventually_async("the driver has tried to reconnect", down).await;
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable() && error.is_retryable(), "{error}");
    let words = error.to_string();
    assert!(words.starts_with("no quorum for \"k\": "), "{words}");
    assert!(words.contains("of 5 nodes answered, 3 needed; "), "{words}");
    for index in [0, 2, 4] {
        let reason = format!("{} refused the connection", fleet[index].label());
        assert!(words.contains(&reason), "{words}");
    }
    let none_left = || fleet[1].command(&["EXISTS", "k"]) == Reply::Int(0);
    eventually("what was granted is released", none_left);
}

#[tokio::test]
async fn case_01_four_nodes_split_two_two_refuse_at_once_and_nothing_is_left_behind() {
    need_server!();
    let fleet = Fleet::start(4);
    let locker = connected(builder(&fleet)).await;
    for index in [0, 2] {
        fleet[index].command(&["SET", "k", "theirs", "NX", "PX", "60000"]);
    }
    // That this costs no waiting is shown under a driven clock, in `src/lock/tests`.
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    eventually("ours are released", || fleet.holders("k") == [0, 2]);
}

#[cfg(unix)]
#[tokio::test]
async fn case_02_a_hung_minority_does_not_slow_an_acquisition() {
    need_server!();
    let fleet = Fleet::start(5);
    // Had anybody waited for the hung ones, that would have been for so long.
    let locker = connected(builder(&fleet).node_timeout(6 * PATIENCE)).await;
    fleet[0].pause();
    fleet[4].pause();
    for _ in 0..100 {
        let watchdog = Watchdog::new("a cycle with two hung nodes");
        let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
        assert!(guard.release().await.unwrap().is_released());
        watchdog.check();
    }
    fleet[0].resume();
    fleet[4].resume();
    eventually("the hung nodes settle", || fleet.keys_left("").is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn case_02_a_hung_majority_is_unavailable_within_the_deadline_and_leaves_nothing() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(hasty(&fleet)).await;
    for index in 0..3 {
        fleet[index].pause();
    }
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains("was silent for 100 ms"), "{error}");

    // Suspects are not waited for again: the next refusal costs nothing.
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("has not answered an earlier command yet"), "{error}");

    for index in 0..3 {
        fleet[index].resume();
    }
    eventually("late grants are undone", || fleet.keys_left("").is_empty());
    // And a suspect is asked again from its first reply on.
    eventually_async("all five are asked again", async || {
        let Ok(Some(guard)) = locker.lock("k").try_acquire().await else { return false };
        guard.votes().iter().all(|v| matches!(v.outcome, Outcome::Granted | Outcome::Pending))
    })
    .await;
}

#[tokio::test]
async fn a_locker_built_with_every_node_down_works_when_they_come_up() {
    need_server!();
    let fleet = Fleet::start(5);
    for server in fleet.iter() {
        server.stop();
    }
    let locker = builder(&fleet).build().unwrap();
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    for server in fleet.iter() {
        server.restart();
    }
    let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
}

#[tokio::test]
async fn case_18_a_server_that_goes_and_comes_back_is_used_again() {
    need_server!();
    let server = Server::start();
    let locker = connected(single(server.url())).await;
    for _ in 0..3 {
        server.stop();
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        server.restart();
        let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_17_a_flushed_script_cache_is_no_obstacle_to_a_release() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").await.unwrap();
    fleet.command(&["SCRIPT", "FLUSH"]);
    assert!(guard.release().await.unwrap().is_released());
    let guard = locker.lock("k").await.unwrap();
    fleet.command(&["SCRIPT", "FLUSH"]);
    drop(guard);
    eventually("released by a drop too", || fleet.keys_left("").is_empty());
}

#[tokio::test]
async fn ready_names_the_node_that_is_not() {
    need_server!();
    let fleet = Fleet::start(3);
    fleet[1].stop();
    let locker = builder(&fleet).build().unwrap();
    eventually_async("all that are up are connected, and the other one is named", async || {
        let ready = locker.ready(Duration::from_millis(200)).await;
        let up = |node: &quorlock::report::NodeReport| node.outcome == Outcome::Connected;
        ready.is_ok_and(|nodes| nodes.iter().map(up).eq([true, false, true]))
    })
    .await;
    fleet[2].stop();
    let locker = builder(&fleet).build().unwrap();
    let error = locker.ready(Duration::from_millis(200)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().starts_with("no quorum: "), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_killed_by_the_server_leaves_no_key() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    for _ in 0..10 {
        let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
        fleet.cut_clients();
        drop(guard);
    }
    // What a dead link could not deliver is settled by the next one: `src/link/pending`.
    eventually("no key is left", || fleet.keys_left("").is_empty());
}

/// Ten thousand callers wait while every server is gone: the nodes see one attempt at a time, with
/// the pauses of the schedule between them, and when they are back every caller is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_19_ten_thousand_waiters_and_five_dead_servers_make_no_storm_of_connects() {
    need_server!();
    let pause = Duration::from_millis(20);
    let fleet = Fleet::start(5);
    // Nodes inside this process are unoptimised where this test is: at ten thousand, each round
    // would take them longer than any client waits for an answer, and so forever.
    let waiters = if fleet[0].is_process() { 10_000 } else { 1_000 };
    // The impostors listen on the servers' ports, whatever the others of this suite go through.
    let builder = quorum(fleet.iter().map(Server::tcp_url)).node_timeout(6 * PATIENCE);
    let locker = connected(builder.reconnect(pause, 10 * pause).wait_forever()).await;
    for server in fleet.iter() {
        server.stop();
    }
    // On each node's port an impostor closes every connection, and counts them.
    let impostors: Vec<_> = fleet
        .iter()
        .map(|server| Scripted::start_on(server.tcp_addr().port(), Script::bare().cut()))
        .collect();
    let waiters: Vec<_> = (0..waiters)
        .map(|index| {
            let locker = locker.clone();
            tokio::spawn(async move { locker.lock(format!("k{index}")).await.map(drop) })
        })
        .collect();
    let tried = |least: [usize; 5]| {
        let counts = impostors.iter().map(Scripted::accepted);
        counts.zip(least).all(|(accepted, least)| accepted >= least)
    };
    // So many callers that try again and again leave a slow machine little time for the driver.
    let patience = 12 * PATIENCE;
    let watchdog = Watchdog::with_patience("each node was tried some times", patience);
    eventually_within(&watchdog, || tried([5; 5])).await;
    // The clock is read first and last: a machine that is late makes it look slower than it was.
    let began = Instant::now();
    let before: [usize; 5] = std::array::from_fn(|node| impostors[node].accepted());
    let more = before.map(|before| before + 10);
    let watchdog = Watchdog::with_patience("each node was tried ten times more", patience);
    eventually_within(&watchdog, || tried(more)).await;
    for (impostor, before) in impostors.iter().zip(before) {
        let attempts = (impostor.accepted() - before) as u128;
        // One that had begun before, and one that begins each time that a pause is over.
        let allowed = began.elapsed().as_millis() / pause.as_millis() + 2;
        assert!(attempts <= allowed, "{attempts} attempts, {allowed} allowed");
    }
    drop(impostors);
    for server in fleet.iter() {
        server.restart();
    }
    let watchdog = Watchdog::with_patience("every caller is served", patience);
    for waiter in waiters {
        eventually_within(&watchdog, || waiter.is_finished()).await;
        waiter.await.unwrap().unwrap();
    }
    eventually("no key is left", || fleet.keys_left("").is_empty());
}

/// However long two nodes hang, what waits for them stays within the bounds.
#[cfg(unix)]
#[tokio::test]
async fn hung_nodes_cost_no_more_than_the_bounds() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet).link_entries_max(100)).await;
    fleet[0].pause();
    fleet[1].pause();
    let (mut full, mut suspect) = (false, false);
    for round in 0..2_000 {
        let guard = locker.lock(format!("k{round}")).try_acquire().await.unwrap().unwrap();
        for vote in guard.votes() {
            full |= vote.outcome == Outcome::Full;
            suspect |= vote.outcome == Outcome::Suspect;
        }
        assert!(guard.release().await.unwrap().is_released());
    }
    assert!(full || suspect, "the hung nodes were asked 2,000 times");
    fleet[0].resume();
    fleet[1].resume();
    eventually_async("no key is left", async || fleet.keys_left("").is_empty()).await;
}

#[tokio::test]
async fn a_closed_port_is_refused_at_once() {
    let port = Port::claim();
    let locker = single(format!("redis://127.0.0.1:{}", port.number()));
    let error = locker.build().unwrap().lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains("refused the connection"), "{error}");
}

async fn eventually_within(watchdog: &Watchdog, condition: impl Fn() -> bool) {
    while !condition() {
        watchdog.check();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
