//! Locks from their acquisition to their end, whatever that is.

use std::time::Duration;

use quorlock::{Client, Error, Extend, Locker, LockerBuilder, OnLoss};
use support::{Fleet, eventually_async};

use crate::print::{fails, look, observed, show, show_error};
use crate::{ENCODED, PASSWORD, Tokens, random_values, with_memory};

const MS: Duration = Duration::from_millis(1);

/// All nodes with the right password, and a deadline that a busy machine keeps.
pub(crate) fn builder(fleet: &Fleet) -> LockerBuilder {
    hasty(fleet).node_timeout(5_000 * MS)
}

/// With the library's own deadlines, for nodes that hang.
fn hasty(fleet: &Fleet) -> LockerBuilder {
    let login = format!("redis://:{ENCODED}@");
    let urls = fleet.iter().map(|server| format!("{login}{}", server.addr()));
    observed(Locker::quorum(urls).unwrap()).owner("me").wait(300 * MS)
}

/// Servers with the password, that remember what they were told.
pub(crate) fn fleet(size: usize) -> Fleet {
    Fleet::start_with(size, |_, server| with_memory(server).password(PASSWORD))
}

pub(crate) async fn run(tokens: &mut Tokens) {
    let fleet = fleet(3);
    held_and_released(&fleet).await;
    several(&fleet).await;
    divided(&fleet).await;
    slots(&fleet).await;
    latch(&fleet).await;
    revoked(&fleet).await;
    contended(&fleet).await;
    lost(&fleet).await;
    panicked(&fleet).await;
    hung(&fleet).await;
    by_client(&fleet).await;
    tokens.extend(fleet.iter().flat_map(random_values));
}

async fn held_and_released(fleet: &Fleet) {
    let locker = show(builder(fleet).build().unwrap());
    look(locker.ready(Duration::from_secs(5)).await.unwrap());
    look(show(locker.lock("k")).into_future());
    let guard = show(locker.lock("k").await.unwrap());
    look(guard.votes());
    look(guard.owner_token());
    guard.extend(Duration::from_secs(5)).await.unwrap();
    look(show(locker.inspect("k").await.unwrap()).nodes.remove(0));
    look(locker.inspect("k").await.unwrap().nodes[0].state.clone());
    look(guard.release().await.unwrap());
    let done: Result<(), Error> = locker
        .lock("k")
        .run(|held| async move {
            look(held);
            Ok(())
        })
        .await;
    done.unwrap();
    let token = show(locker.lock("k").await.unwrap().forget());
    look(show(locker.adopt("k", &token).await.unwrap()).forget());
    look(locker.force_release("k").await.unwrap());
    fails(locker.adopt("k", &token).await);
    look(locker.health());
    let guard = locker.lock("left").await.unwrap();
    for left in show(locker.shutdown_leaving(Duration::from_secs(2)).await.unwrap()).left {
        look(left);
    }
    drop(guard);
    look(locker.shutdown(Duration::from_secs(2)).await.unwrap());
    fails(locker.lock("k").await);
}

async fn several(fleet: &Fleet) {
    let locker = builder(fleet).build().unwrap();
    look(show(locker.lock_all(["a", "b"])).into_future());
    let guard = show(locker.lock_all(["a", "b"]).fenced().await.unwrap());
    look(guard.fence().unwrap());
    look(guard.keys());
    look(guard.key());
    look(guard.votes());
    guard.extend(Duration::from_secs(5)).await.unwrap();
    fails(locker.lock_all(["b", "c"]).await);
    fails(locker.lock_all(["c", "c"]).await);
    fails(locker.adopt("a", &show(guard.owner_token())).await);
    look(guard.release().await.unwrap());
    let token = show(locker.lock_all(["a", "b"]).await.unwrap().forget());
    fails(locker.release_by_token("a", &token).await);
    let guard = locker.lock_all(["stays", "too"]).await.unwrap();
    for left in show(locker.shutdown_leaving(Duration::from_secs(2)).await.unwrap()).left {
        look(left);
    }
    drop(guard);
    for key in ["a", "b", "stays", "too"] {
        fleet.command(&["DEL", key]);
    }
}

async fn divided(fleet: &Fleet) {
    let segments = show(builder(fleet).build().unwrap().segments("stock", 4));
    look(segments.of_part("customer:42").await.unwrap().release().await.unwrap());
    fails(builder(fleet).build().unwrap().segments("stock", 0).all().await);
}

async fn slots(fleet: &Fleet) {
    let locker = builder(fleet).build().unwrap();
    let slots = show(locker.slots("calls", 3));
    look(show(slots.acquire()).into_future());
    let (one, two) = (show(slots.acquire().await.unwrap()), slots.acquire_many(2).await.unwrap());
    look(one.slots());
    look(two.votes());
    let token = show(one.owner_token());
    fails(locker.adopt("calls", &token).await);
    fails(locker.release_by_token("{calls}:slot:0", &token).await);
    look(locker.inspect("{calls}:slot:0").await.unwrap());
    two.extend(Duration::from_secs(5)).await.unwrap();
    fails(slots.acquire().await);
    fails(locker.slots("calls", 0).acquire().await);
    fails(slots.acquire().fenced().await);
    fails(two.downgrade().await);
    look(slots.revoke(one.slots()[0]).await.unwrap());
    fails(slots.revoke(3).await);
    look(one.release().await.unwrap());
    let done: Result<(), Error> = slots
        .acquire()
        .run(|held| async move {
            look(held);
            Ok(())
        })
        .await;
    done.unwrap();
    let guard = slots.acquire().await.unwrap();
    for left in show(locker.shutdown_leaving(Duration::from_secs(2)).await.unwrap()).left {
        look(left);
    }
    drop(guard);
    fleet.command(&["DEL", "{calls}:slot:0", "{calls}:slot:1", "{calls}:slot:2"]);
}

async fn latch(fleet: &Fleet) {
    let locker = builder(fleet).build().unwrap();
    let latch = show(locker.latch("latch", 1).unwrap());
    look(latch.state().await.unwrap());
    look(latch.arrive("a").await.unwrap());
    show(locker.barrier("barrier", 1).unwrap());
    show_error(&locker.lock("latch").await.unwrap_err());
}

async fn revoked(fleet: &Fleet) {
    let locker = builder(fleet).build().unwrap();
    look(locker.revoke("k").await.unwrap());
    let guard = locker.lock("k").await.unwrap();
    look(show(locker.revoke("k").await.unwrap().unwrap()).holder);
    look(locker.inspect("k").await.unwrap());
    fails(guard.extend(Duration::from_secs(60)).await);
    look(guard.release().await.unwrap());
    fleet.command(&["SET", "foreign", "v", "PX", "60000"]);
    fails(locker.revoke("foreign").await);
    fleet.command(&["DEL", "foreign"]);
}

async fn contended(fleet: &Fleet) {
    let (ours, theirs) = (builder(fleet).build().unwrap(), builder(fleet).build().unwrap());
    let guard = theirs.lock("k").await.unwrap();
    fails(ours.lock("k").await);
    look(ours.lock("k").try_acquire().await.unwrap());
    drop(guard);
    fleet.command(&["HSET", "foreign", "field", "value"]);
    fails(ours.lock("foreign").await);
    look(ours.inspect("foreign").await.unwrap());
}

async fn lost(fleet: &Fleet) {
    let locker = builder(fleet).ttl(500 * MS).build().unwrap();
    for on_loss in [OnLoss::Cancel, OnLoss::Signal] {
        let done: Result<(), Error> = locker
            .lock("lost")
            .on_loss(on_loss)
            .run(|held| async move {
                fleet.command(&["DEL", "lost"]);
                held.lost().await;
                look(held);
                std::future::pending::<()>().await;
                Ok(())
            })
            .await_at_most()
            .await;
        if let Err(error) = done {
            show_error(&error);
        }
    }
    let guard = locker.lock("lost").await.unwrap();
    fleet.command(&["SET", "lost", "another's", "PX", "60000"]);
    guard.lost().await;
    fails(guard.protect(std::future::pending::<()>()).await);
    fails(guard.extend(Duration::from_secs(1)).await);
    look(guard.key());
    look(show(guard).release().await.unwrap());
    // Held for too long, and gone by itself.
    let guard = locker.lock("old").auto_extend(Extend::For(50 * MS)).await.unwrap();
    guard.lost().await;
    look(guard.release().await.unwrap());
}

/// A bound for work that never ends.
trait AtMost: Future<Output = Result<(), Error>> + Sized {
    async fn await_at_most(self) -> Result<(), Error> {
        tokio::time::timeout(Duration::from_secs(2), self).await.unwrap_or(Ok(()))
    }
}

impl<F: Future<Output = Result<(), Error>>> AtMost for F {}

async fn panicked(fleet: &Fleet) {
    let locker = builder(fleet).build().unwrap();
    let theirs = locker.clone();
    let task = tokio::spawn(async move {
        let guard = theirs.lock("k").await.unwrap();
        let seen = theirs.lock("k").await;
        panic!("with {guard:?} of {theirs:?}: {}", seen.unwrap_err());
    });
    println!("{:?}", task.await.unwrap_err());
    let theirs = locker.clone();
    let task = tokio::spawn(async move { theirs.lock("").await.unwrap() });
    println!("{}", task.await.unwrap_err());
}

async fn hung(fleet: &Fleet) {
    let locker = hasty(fleet).ttl(600 * MS).build().unwrap();
    let guard = locker.lock("hung").await.unwrap();
    for server in &fleet.iter().collect::<Vec<_>>()[1..] {
        server.pause();
    }
    fails(locker.lock("another").await);
    fails(locker.lock("another").try_acquire().await);
    look(locker.inspect("hung").await.unwrap());
    guard.lost().await;
    look(guard.release().await.unwrap());
    look(locker.health());
    for server in fleet.iter() {
        server.resume();
    }
    fleet[0].stop();
    eventually_async("the lock to be had without the node that stopped", async || {
        locker.lock("k").try_acquire().await.is_ok_and(|guard| guard.is_some())
    })
    .await;
    fleet[0].restart();
}

async fn by_client(fleet: &Fleet) {
    let client = |login: &str| Client::new(format!("redis://{login}{}", fleet[1].addr())).unwrap();
    let right = show(client(&format!(":{ENCODED}@")));
    look(right.pipeline().command(["GET", "k"]));
    right.command(["PING"]).await.unwrap();
    fails(right.command([""]).await);
    fails(client(":wrong-c4n4ry@").command(["PING"]).await);
    fails(client("").command(["PING"]).await);
}
