//! Readers beside everything else: what the manual's table says goes with them.

use std::time::Duration;

use quorlock::{Client, Durability, Locker};
use support::wait::PATIENCE;
use support::{Fleet, Reply, eventually_async, need_process, need_server};

use super::{can_read, can_write, release};
use crate::waiting::hearing;
use crate::{builder, connected};

#[tokio::test]
async fn on_servers_that_may_forget_readers_share_as_well() {
    need_server!();
    let fleet = Fleet::start(3);
    let durability = Durability::Volatile { longest_ttl: Duration::from_secs(10) };
    let locker = connected(builder(&fleet).durability(durability)).await;
    locker.initialise().await.unwrap();
    for _ in 0..5 {
        let reads = [locker.read("k").await.unwrap(), locker.read("k").await.unwrap()];
        assert!(!can_write(&locker).await);
        for shared in reads {
            shared.extend(Duration::from_secs(5)).await.unwrap();
            release(shared).await;
        }
        let written = locker.write("k").await.unwrap();
        assert!(!can_read(&locker).await);
        let read = written.downgrade().await.unwrap();
        assert!(can_read(&locker).await);
        release(read).await;
    }
}

#[cfg(feature = "blocking")]
#[test]
fn plain_threads_share_a_lock() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    let reads = [(); 2].map(|()| {
        let locker = locker.clone();
        std::thread::spawn(move || locker.read("k").acquire().unwrap()).join().unwrap()
    });
    assert!(locker.write("k").try_acquire().unwrap().is_none());
    for shared in reads {
        assert!(shared.release().unwrap().is_released());
    }
    let written = locker.write("k").acquire().unwrap();
    assert!(locker.read("k").try_acquire().unwrap().is_none());
    let read = written.downgrade().unwrap();
    assert!(locker.read("k").try_acquire().unwrap().is_some());
    assert!(read.release().unwrap().is_released());
}

/// On the same server, and each gets the answers to its own commands.
#[tokio::test]
async fn a_client_beside_readers_changes_neither() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let client = Client::new(fleet[0].url_as("")).unwrap().timeout(PATIENCE);
    for round in 1..=50 {
        let shared = locker.read("k").await.unwrap();
        let echoed = client.command(["ECHO", &format!("nonce-{round}")]).await.unwrap();
        assert_eq!(echoed.as_bytes().unwrap(), format!("nonce-{round}").as_bytes());
        assert!(!can_write(&locker).await && can_read(&locker).await);
        release(shared).await;
    }
}

/// Its own end it is, and not the lock's.
#[tokio::test]
async fn a_read_lock_released_after_a_time_ends_then() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let shared = locker.read("k").await.unwrap();
    assert!(shared.release_after(Duration::from_millis(300)).await.unwrap().is_released());
    assert!(!can_write(&locker).await);
    eventually_async("it has ended", async || fleet.keys_left("").is_empty()).await;
    let stays = locker.read("k").await.unwrap();
    let shared = locker.read("k").await.unwrap();
    assert!(shared.release_after(Duration::from_secs(5)).await.unwrap().is_released());
    release(stays).await;
    // A majority has said so; the other node may not have heard yet.
    let is_over_soon = async || {
        let left = fleet.command(&["PTTL", "k"]);
        left.iter().all(|left| (1..=5_000).contains(&left.int()))
    };
    eventually_async("the other's end counts", is_over_soon).await;
}

#[tokio::test]
async fn read_locks_that_a_shutdown_leaves_end_by_ttl() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let ttl = Duration::from_millis(700);
    let reads = [one.read("k").ttl(ttl).await.unwrap(), one.read("k").ttl(ttl).await.unwrap()];
    let found = one.shutdown_leaving(PATIENCE).await.unwrap();
    assert_eq!(found.left.len(), 2);
    drop(reads);
    assert!(!can_write(&two).await && can_read(&two).await);
    let error = two.adopt("k", &found.left[0].token).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    eventually_async("they have ended", async || fleet.keys_left("").is_empty()).await;
}

/// Its ACL is for the lock's keys and no others, or lacks a command that a reader needs.
#[tokio::test]
async fn who_may_not_be_a_reader_leaves_no_lock_behind_by_a_downgrade() {
    need_process!();
    for rights in ["~pay:* +@all", "~* +@all -time", "~* +@all -zadd", "~* +@all -pexpireat"] {
        let rules = format!("on >secret {rights}");
        let fleet = Fleet::start_with(1, |_, server| server.user("cashier", &rules));
        let url = format!("redis://cashier:secret@{}", fleet[0].addr());
        let locker = connected(Locker::single(url).unwrap()).await;
        let downgraded = locker.lock("pay:7").await.unwrap().downgrade().await;
        let error = downgraded.err().unwrap_or_else(|| panic!("{rights} are enough"));
        assert!(!error.is_misuse(), "{rights}: {error}");
        let is_gone = async || fleet.keys_left("").is_empty();
        eventually_async(&format!("{rights}: nothing is left"), is_gone).await;
    }
}

/// Of a key whose queue is kept where no reader is: the writer there is told of none.
#[tokio::test]
async fn a_writer_keeps_readers_out_that_are_on_the_other_nodes_alone() {
    need_process!();
    let fleet = Fleet::start(3);
    let (reader, writer) = (hearing(&fleet, "reader").await, hearing(&fleet, "writer").await);
    let read = reader.read("k").ttl(Duration::from_secs(60)).await.unwrap();
    // A majority is enough for it, and without the third one the writer would have one soon.
    let has_all = async || fleet.command(&["EXISTS", "k"]) == [1, 1, 1].map(Reply::Int);
    eventually_async("the reader is on all nodes", has_all).await;
    let queue = {
        let writer = writer.clone();
        tokio::spawn(async move { writer.write("k").wait(PATIENCE).await.unwrap() })
    };
    let queues = async || fleet.command(&["EXISTS", "{k}:quorlock:queue"]);
    let has_queue = async || queues().await.contains(&Reply::Int(1));
    eventually_async("it stands in a queue", has_queue).await;
    let node = queues().await.iter().position(|there| *there == Reply::Int(1)).unwrap();
    let others = |reply: Vec<Reply>| {
        let others = reply.into_iter().enumerate().filter(|(other, _)| *other != node);
        others.map(|(_, reply)| reply).collect::<Vec<_>>()
    };
    for other in (0..3).filter(|other| *other != node) {
        fleet[other].command(&["DEL", "{k}:quorlock:gate"]);
    }
    // Behind the others' gates: the writer that waits shuts them as soon as it is told of this.
    fleet[node].command(&["DEL", "k", "{k}:quorlock:readers", "{k}:quorlock:gate"]);
    let are_shut =
        async || others(fleet.command(&["EXISTS", "{k}:quorlock:gate"])) == [1, 1].map(Reply::Int);
    eventually_async("the others' gates are shut", are_shut).await;
    assert!(!can_read(&reader).await && !queue.is_finished());
    release(read).await;
    release(queue.await.unwrap()).await;
}
