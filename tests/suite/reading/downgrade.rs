//! A writer becomes a reader, without letting go between.

use std::time::Duration;

use support::wait::PATIENCE;
use support::{Fleet, Reply, eventually_async, need_process, need_server, poll_times};

use super::{can_read, can_write, release, waiting};
use crate::native::{self, valkey};
use crate::waiting::{hearing, waits};
use crate::{builder, connected, quorum};

#[tokio::test]
async fn a_writer_reads_on_and_lets_readers_in() {
    need_server!();
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let written = one.write("k").await.unwrap();
    assert!(!can_read(&other).await);
    let read = written.downgrade().await.unwrap();
    assert!(can_read(&other).await && !can_write(&other).await && read.is_valid());
    release(read).await;
    release(other.write("k").wait(PATIENCE).await.unwrap()).await;
}

/// Readers have none, and the next writer's is higher than its own was.
#[tokio::test]
async fn a_fenced_writer_becomes_a_reader_without_a_fence() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let written = locker.write("k").fenced().await.unwrap();
    let fence = written.fence().unwrap();
    let read = written.downgrade().await.unwrap();
    assert!(read.fence().is_none() && can_read(&locker).await);
    release(read).await;
    let next = locker.write("k").fenced().wait(PATIENCE).await.unwrap();
    assert!(next.fence().unwrap() > fence);
    release(next).await;
}

#[tokio::test]
async fn a_writer_that_would_be_deleted_natively_becomes_a_reader() {
    let nodes = [(); 3].map(|()| valkey("9.1.2"));
    let locker = connected(quorum(nodes.iter().map(native::url))).await;
    release(locker.write("k").await.unwrap()).await;
    eventually_async("each node has deleted it natively", async || {
        nodes.iter().all(|node| node.value("k").is_none() && node.calls("delifeq") == 1)
    })
    .await;
    for _ in 0..5 {
        let read = locker.write("k").wait(PATIENCE).await.unwrap().downgrade().await.unwrap();
        assert!(can_read(&locker).await && !can_write(&locker).await);
        release(read).await;
    }
}

/// Readers that wait join one that was a writer; the writer behind them does not.
#[tokio::test]
async fn a_writer_becomes_a_reader_without_letting_go() {
    need_process!();
    let fleet = Fleet::start(5);
    let mut lockers = Vec::new();
    for name in ["writer", "reader", "next"] {
        lockers.push(hearing(&fleet, name).await);
    }
    let [writer, reader, next] = lockers.try_into().ok().unwrap();
    let written = writer.write("k").await.unwrap();
    let reading = waiting(reader.read("k"));
    waits(&fleet, "k", 1).await;
    let writing = waiting(next.write("k"));
    waits(&fleet, "k", 2).await;
    assert!(!reading.is_finished());
    let value = written.owner_token().value().to_owned();
    let read = written.downgrade().await.unwrap();
    let shared = reading.await.unwrap();
    assert!(read.is_valid() && shared.is_valid() && !writing.is_finished());
    assert_eq!(read.owner_token().as_str(), format!("read:{value}"));
    read.extend(Duration::from_secs(30)).await.unwrap();
    release(read).await;
    assert!(shared.is_valid() && !writing.is_finished());
    release(shared).await;
    release(writing.await.unwrap()).await;
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}

/// What the nodes have said to it is not known: the lock is let go of, whichever it is there.
#[tokio::test]
async fn a_downgrade_that_is_dropped_leaves_nothing() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = hearing(&fleet, "one").await;
    for polls in 0.. {
        let written = locker.write("k").await.unwrap();
        let shared = poll_times(written.downgrade(), polls).await.completed().map(Result::unwrap);
        let is_done = shared.is_some();
        drop(shared);
        eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
        if is_done {
            break;
        }
    }
}

/// Of a key that is taken from it meanwhile: it is lost, and what another has is left alone.
#[tokio::test]
async fn a_downgrade_of_a_lock_that_a_majority_has_lost_says_so() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = hearing(&fleet, "one").await;
    let written = locker.write("k").await.unwrap();
    for node in 0..2 {
        fleet[node].command(&["SET", "k", "theirs", "PX", "60000"]);
    }
    let error = written.downgrade().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    let left = async || fleet.command(&["EXISTS", "k"]) == [1, 1, 0].map(Reply::Int);
    eventually_async("our own is let go of", left).await;
}

/// Which is as good as dropped then.
#[tokio::test]
async fn what_has_no_readers_is_not_downgraded_and_released() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = hearing(&fleet, "one").await;
    let refused = [
        locker.lock_all(["a", "b"]).await.unwrap(),
        locker.read("k").await.unwrap(),
        locker.lock("a}").await.unwrap(),
    ];
    for guard in refused {
        let error = guard.downgrade().await.unwrap_err();
        assert!(error.is_misuse(), "{error}");
    }
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
    for request in [locker.read("k").fenced(), locker.read("a}")] {
        let error = request.await.unwrap_err();
        assert!(error.is_misuse(), "{error}");
    }
    let fenced = connected(builder(&fleet).fenced(true)).await;
    let read = fenced.read("k").await.unwrap();
    assert!(read.fence().is_none());
    release(read).await;
}
