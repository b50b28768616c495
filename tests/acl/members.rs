//! Locks of other kinds than the plain one: of several keys, shared by readers, and slots.

use std::time::Duration;

use quorlock::{LockGuard, Locker};
use support::{Reply, Server};

use super::{
    Outcome, acquire, builder, check, is_waited_for, patient, ready, release, said, soon, stands_in,
};

pub(super) async fn lock_all(server: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url)).await?;
    // The second time on a server that has forgotten what it was given.
    for _ in 0..2 {
        let all = locker.lock_all(["k", "l"]).try_acquire().await.map_err(said)?;
        let all = all.ok_or("the lock is held")?;
        all.extend(Duration::from_secs(20)).await.map_err(said)?;
        check(acquire(&locker).await.is_err(), "it excludes the lock of one of its keys")?;
        release(all).await?;
        server.command(&["SCRIPT", "FLUSH"]);
    }
    drop(locker.lock_all(["k", "l"]).await.map_err(said)?);
    let keys = ["EXISTS", "pay:k", "pay:l"];
    soon("what was dropped is gone", || server.command(&keys) == Reply::Int(0)).await
}

pub(super) async fn read(_: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url)).await?;
    let shared = async || {
        let shared = locker.read("k").try_acquire().await.map_err(said)?;
        shared.ok_or_else(|| "there is no read lock".to_owned())
    };
    let (one, two) = (shared().await?, shared().await?);
    one.extend(Duration::from_secs(20)).await.map_err(said)?;
    drop(one);
    release(two).await?;
    let read = acquire(&locker).await?.downgrade().await.map_err(said)?;
    release(shared().await?).await?;
    release(read).await
}

/// A reader waits for a writer, and a writer for that reader.
pub(super) async fn read_in_turn(server: &Server, url: &str) -> Outcome {
    let (one, two) = (ready(patient(url)).await?, ready(patient(url)).await?);
    let written = acquire(&one).await?;
    let releasing = async |guard: LockGuard, of: &Locker| {
        is_waited_for(server).await?;
        // What the server has told the holder before comes before this answer.
        of.inspect("k").await.map_err(said)?;
        release(guard).await
    };
    let reading = async { two.read("k").await.map_err(said) };
    let (shared, released) = tokio::join!(reading, releasing(written, &one));
    released?;
    let shared = shared?;
    // One that joins, too.
    release(one.read("k").await.map_err(said)?).await?;
    let writing = async { one.write("k").await.map_err(said) };
    let (written, released) = tokio::join!(writing, releasing(shared, &two));
    released?;
    check(one.stats().handed_over + two.stats().handed_over == 2, "each was told")?;
    release(written?).await
}

pub(super) async fn slots(server: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url)).await?;
    let some = async |weight| {
        let some = locker.slots("k", 3).acquire_many(weight).try_acquire().await.map_err(said)?;
        some.ok_or_else(|| "too few are free".to_owned())
    };
    // The second time on a server that has forgotten what it was given.
    for _ in 0..2 {
        let (one, two) = (some(1).await?, some(2).await?);
        check(some(1).await.is_err(), "no more than three")?;
        for guard in [&one, &two] {
            guard.extend(Duration::from_secs(20)).await.map_err(said)?;
        }
        release(one).await?;
        release(two).await?;
        server.command(&["SCRIPT", "FLUSH"]);
    }
    drop(some(3).await?);
    let slots = ["EXISTS", "{pay:k}:slot:0", "{pay:k}:slot:1", "{pay:k}:slot:2"];
    soon("those that were dropped are gone", || server.command(&slots) == Reply::Int(0)).await
}

/// One waits for two slots, is passed by no other that waits, and is told of their end.
pub(super) async fn slots_in_turn(server: &Server, url: &str) -> Outcome {
    let (one, two) = (ready(patient(url)).await?, ready(patient(url)).await?);
    let own = one.slots("k", 2);
    let (first, second) = (own.acquire().await, own.acquire().await);
    let (first, second) = (first.map_err(said)?, second.map_err(said)?);
    let waiting = async { two.slots("k", 2).acquire_many(2).await.map_err(said) };
    let releasing = async {
        stands_in(server, "{pay:k}:slots:2:quorlock:queue").await?;
        release(first).await?;
        let passing = own.acquire().wait(Duration::from_millis(50)).await;
        check(passing.is_err(), "the free one is kept for the first")?;
        release(second).await
    };
    let (guard, released) = tokio::join!(waiting, releasing);
    released?;
    let guard = guard?;
    check(two.stats().handed_over >= 1, "it was told")?;
    release(guard).await?;
    let queue = ["EXISTS", "{pay:k}:slots:2:quorlock:queue", "{pay:k}:slots:2:quorlock:beats"];
    check(server.command(&queue) == Reply::Int(0), "nothing is left of the queue")
}
