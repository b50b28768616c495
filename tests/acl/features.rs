//! What the library can do, each as a function that says whether it could.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use quorlock::{
    Client, Durability, LockGuard, LockRequest, Locker, LockerBuilder, OwnerToken, Retry,
    report::{KeyState, ServerInfo},
};
use support::reach::with;
use support::{Proxy, Reply, Server};

mod latches;
mod members;

use latches::{latch, wait_for_latch};
use members::{lock_all, read, read_in_turn, slots, slots_in_turn};

type Outcome = Result<(), String>;
type Trying<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// A feature, by the name of its row in the manual's table.
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    try_out: for<'a> fn(&'a Server, &'a str) -> Trying<'a>,
}

impl Feature {
    /// Whether it works on this server, as the user of this URL.
    pub(crate) fn run(&self, server: &Server, url: &str) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let limit = tokio::time::timeout(Duration::from_secs(30), (self.try_out)(server, url));
            limit.await.unwrap_or_else(|_| Err("took too long".into()))
        })
    }
}

macro_rules! features {
    ($($name:literal => $function:ident,)*) => {
        [$(Feature { name: $name, try_out: |server, url| Box::pin($function(server, url)) },)*]
    };
}

pub(crate) const FEATURES: [Feature; 31] = features![
    "acquire and release, by release or by dropping" => acquire_and_release,
    "extend, by extend or by itself" => extend,
    "lock_all, and extend its lock" => lock_all,
    "wait for a lock, and be told who holds it" => wait,
    "wait in a queue, and be handed the lock" => be_handed_over,
    "fair_strict: wait by a ticket, and be handed the lock" => be_handed_over_by_ticket,
    "wait for a lock of another library, without polling" => watch,
    "inspect, quorlock status" => inspect,
    "inspect a key that no lock wrote" => inspect_foreign,
    "forget and adopt" => adopt,
    "release_by_token, quorlock release" => release_by_token,
    "revoke, quorlock revoke" => revoke,
    "Slots::revoke, quorlock revoke --slot" => revoke_slot,
    "be told at once that a lock is revoked, and revoke it so" => be_told_of_revocation,
    "force_release" => force_release,
    "quorlock release --force" => look_and_force_release,
    "acquire a lock with a fence" => fenced,
    "read and write, extend and downgrade" => read,
    "wait as a reader, and for readers" => read_in_turn,
    "slots, one and several, and extend them" => slots,
    "wait in the queue of slots, and be woken" => slots_in_turn,
    "latch and barrier" => latch,
    "wait for a latch, without polling" => wait_for_latch,
    "Durability::Volatile, with initialise" => volatile,
    "undo exactly what a dead connection left" => undo_exactly,
    "the same over RESP2" => undo_exactly_resp2,
    "health, quorlock ping: run_id, eviction, log, clock" => health,
    "health, quorlock ping: appendfsync and save" => health_of_persistence,
    "a database other than 0" => database,
    "?name= in CLIENT LIST" => name,
    "a Client: what it is told to send, as here PING" => client,
];

fn said(error: quorlock::Error) -> String {
    error.to_string()
}

fn check(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn builder(url: &str) -> LockerBuilder {
    // Generous, for a slow machine must not make a right look needed.
    let builder = Locker::single(url).unwrap().node_timeout(Duration::from_secs(5));
    let builder = builder.prefix("pay:").wait(Duration::ZERO);
    builder.reconnect(Duration::from_millis(1), Duration::from_millis(2))
}

async fn ready(builder: LockerBuilder) -> Result<Locker, String> {
    let locker = builder.build().unwrap();
    locker.ready(Duration::from_secs(5)).await.map_err(said)?;
    Ok(locker)
}

async fn acquire(locker: &Locker) -> Result<LockGuard, String> {
    let acquired = locker.lock("k").try_acquire().await.map_err(said)?;
    acquired.ok_or_else(|| "the lock is held".into())
}

async fn release(guard: LockGuard) -> Outcome {
    let found = guard.release().await.map_err(said)?;
    check(found.is_released(), "it was not released")
}

fn is_gone(server: &Server) -> bool {
    server.command(&["EXISTS", "pay:k"]) == Reply::Int(0)
}

/// Looks for a while: whatever works here works within milliseconds, on an idle machine.
async fn soon(what: &str, condition: impl Fn() -> bool) -> Outcome {
    looks(1_500, what, condition).await
}

/// As [`soon`], for as long as so many looks take.
async fn looks(count: usize, what: &str, condition: impl Fn() -> bool) -> Outcome {
    for _ in 0..count {
        if condition() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err(format!("not soon: {what}"))
}

async fn acquire_and_release(server: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url)).await?;
    // The server has never seen a script: a drop must be as good as any later one.
    drop(acquire(&locker).await?);
    for _ in 0..2 {
        release(acquire(&locker).await?).await?;
        drop(acquire(&locker).await?);
        soon("a lock that was dropped is gone", || is_gone(server)).await?;
        // The second time on a server that has forgotten what it was given.
        server.command(&["SCRIPT", "FLUSH"]);
    }
    Ok(())
}

async fn extend(server: &Server, url: &str) -> Outcome {
    acquire_and_release(server, url).await?;
    let locker = ready(builder(url)).await?;
    let guard = acquire(&locker).await?;
    guard.extend(Duration::from_secs(20)).await.map_err(said)?;
    server.command(&["SCRIPT", "FLUSH"]);
    guard.extend(Duration::from_secs(30)).await.map_err(said)?;
    check(guard.remaining() > Duration::from_secs(25), "it was not extended")?;
    release(guard).await
}

async fn wait(server: &Server, url: &str) -> Outcome {
    acquire_and_release(server, url).await?;
    let value = format!("{}@them@host:1", "ab".repeat(20));
    server.command(&["SET", "pay:k", &value, "PX", "60000"]);
    let locker = ready(builder(url).retry(Retry::fixed(Duration::from_millis(5)))).await?;
    let waited = locker.lock("k").wait(Duration::from_millis(20)).await;
    let Err(error) = waited else { return Err("it is held".into()) };
    let holder = error.holder().ok_or_else(|| error.to_string())?;
    check(holder.owner.as_deref() == Some("them@host:1"), "the holder is told")?;
    check(holder.remaining > Duration::from_secs(50), "its time is told")
}

/// One that does not get the lock by polling: its pauses are longer than it waits.
fn patient(url: &str) -> LockerBuilder {
    builder(url).wait(Duration::from_millis(600)).retry(Retry::fixed(Duration::from_secs(60)))
}

/// Another process waits, says the server.
async fn is_waited_for(server: &Server) -> Outcome {
    stands_in(server, "{pay:k}:quorlock:queue").await
}

async fn stands_in(server: &Server, queue: &str) -> Outcome {
    let count = || server.command(&["ZCARD", queue]) == Reply::Int(1);
    looks(250, "it stands in the queue", count).await
}

async fn be_handed_over(server: &Server, url: &str) -> Outcome {
    be_handed(server, url, |request| request).await
}

async fn be_handed_over_by_ticket(server: &Server, url: &str) -> Outcome {
    be_handed(server, url, LockRequest::fair_strict).await
}

async fn be_handed(server: &Server, url: &str, order: fn(LockRequest) -> LockRequest) -> Outcome {
    let (holder, waiter) = (ready(patient(url)).await?, ready(patient(url)).await?);
    let held = order(holder.lock("k")).await.map_err(said)?;
    let waiting = async { order(waiter.lock("k")).await.map_err(said) };
    let releasing = async {
        is_waited_for(server).await?;
        // What the server has told the holder before comes before this answer.
        holder.inspect("k").await.map_err(said)?;
        release(held).await
    };
    let (guard, released) = tokio::join!(waiting, releasing);
    released?;
    let guard = guard?;
    check(waiter.stats().handed_over == 1, "it was handed over")?;
    release(guard).await?;
    check(
        server.command(&["EXISTS", "{pay:k}:quorlock:queue"]) == Reply::Int(0),
        "nothing is left of the queue",
    )
}

async fn watch(server: &Server, url: &str) -> Outcome {
    server.command(&["SET", "pay:k", "theirs", "PX", "60000"]);
    let waiter = ready(patient(url)).await?;
    let waiting = async { waiter.lock("k").await.map_err(said) };
    let releasing = async {
        is_waited_for(server).await?;
        let is_watched = || server.info("tracking_total_keys").as_deref() == Some("1");
        looks(250, "it is watched", is_watched).await?;
        server.command(&["DEL", "pay:k"]);
        Ok::<_, String>(())
    };
    let (guard, released) = tokio::join!(waiting, releasing);
    released?;
    let guard = guard?;
    check(waiter.stats().changed == 1, "it was told of the change")?;
    release(guard).await
}

async fn inspect(server: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url)).await?;
    let seen = locker.inspect("k").await.map_err(said)?;
    check(seen.free() == 1, "it is free")?;
    let value = format!("{}@them@host:1", "ab".repeat(20));
    server.command(&["SET", "pay:k", &value, "PX", "60000"]);
    let seen = locker.inspect("k").await.map_err(said)?;
    check(seen.holder().is_some(), "it is held")
}

async fn inspect_foreign(server: &Server, url: &str) -> Outcome {
    server.command(&["HSET", "pay:k", "field", "value"]);
    let locker = ready(builder(url)).await?;
    let seen = locker.inspect("k").await.map_err(said)?;
    match &seen.nodes[0].state {
        KeyState::Foreign { what, .. } => check(what.contains("hash"), what),
        other => Err(format!("{other:?}")),
    }
}

async fn adopt(server: &Server, url: &str) -> Outcome {
    acquire_and_release(server, url).await?;
    let locker = ready(builder(url)).await?;
    let token = acquire(&locker).await?.forget();
    server.command(&["SCRIPT", "FLUSH"]);
    release(locker.adopt("k", &token).await.map_err(said)?).await
}

async fn release_by_token(server: &Server, url: &str) -> Outcome {
    let value = format!("{}@me@host:1", "ab".repeat(20));
    let token = OwnerToken::from(value.clone());
    let locker = ready(builder(url)).await?;
    // By the script's digest, and by its text.
    for _ in 0..2 {
        server.command(&["SET", "pay:k", &value, "PX", "60000"]);
        let found = locker.release_by_token("k", &token).await.map_err(said)?;
        check(found.is_released(), "it is released")?;
        server.command(&["SCRIPT", "FLUSH"]);
    }
    Ok(())
}

async fn revoke(server: &Server, url: &str) -> Outcome {
    let value = held_by_others(server, "pay:k");
    let locker = ready(builder(url)).await?;
    let revoked = locker.revoke("k").await.map_err(said)?;
    check(revoked.is_some(), "it is held")?;
    check(server.command(&["GET", "pay:k"]) == marked(&value), "it is marked")
}

async fn revoke_slot(server: &Server, url: &str) -> Outcome {
    let value = held_by_others(server, "{pay:k}:slot:1");
    let locker = ready(builder(url)).await?;
    let revoked = locker.slots("k", 2).revoke(1).await.map_err(said)?;
    check(revoked.is_some(), "it is held")?;
    check(server.command(&["GET", "{pay:k}:slot:1"]) == marked(&value), "it is marked")
}

/// A lock of this library by another process; its value.
fn held_by_others(server: &Server, key: &str) -> String {
    let value = format!("{}@them@host:1", "ab".repeat(20));
    server.command(&["SET", key, &value, "PX", "60000"]);
    value
}

/// What stands under the key of a lock with this value once it was revoked.
fn marked(value: &str) -> Reply {
    Reply::Bulk(format!("{value}!").into_bytes())
}

/// Before the holder extends its lock.
async fn be_told_of_revocation(_: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url).ttl(Duration::from_secs(60))).await?;
    let guard = acquire(&locker).await?;
    let told = tokio::time::timeout(Duration::from_secs(2), guard.revoked());
    let (told, revoked) = tokio::join!(told, locker.revoke("k"));
    check(revoked.map_err(said)?.is_some(), "it is held")?;
    told.map_err(|_| "it is not told at once".to_owned())?;
    release(guard).await
}

async fn look_and_force_release(server: &Server, url: &str) -> Outcome {
    server.command(&["SET", "pay:k", "theirs", "PX", "60000"]);
    let locker = ready(builder(url)).await?;
    let seen = locker.inspect("k").await.map_err(said)?;
    check(seen.holder().is_some(), "its holder is seen")?;
    locker.force_release("k").await.map_err(said)?;
    check(is_gone(server), "it is gone")
}

async fn force_release(server: &Server, url: &str) -> Outcome {
    server.command(&["SET", "pay:k", "theirs", "PX", "60000"]);
    let locker = ready(builder(url)).await?;
    locker.force_release("k").await.map_err(said)?;
    check(is_gone(server), "it is gone")
}

async fn fenced(server: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url).fenced(true)).await?;
    let mut last = None;
    for _ in 0..2 {
        let guard = acquire(&locker).await?;
        check(guard.fence() > last, "the fence has risen")?;
        last = guard.fence();
        release(guard).await?;
        server.command(&["SCRIPT", "FLUSH"]);
    }
    Ok(())
}

async fn volatile(server: &Server, url: &str) -> Outcome {
    let longest_ttl = Duration::from_secs(30);
    let builder = builder(url).durability(Durability::Volatile { longest_ttl });
    let locker = ready(builder).await?;
    locker.initialise().await.map_err(said)?;
    for _ in 0..2 {
        release(acquire(&locker).await?).await?;
        server.command(&["SCRIPT", "FLUSH"]);
    }
    Ok(())
}

async fn undo_exactly(server: &Server, url: &str) -> Outcome {
    undo_on_the_next_connection(server, url, "protocol=3").await
}

async fn undo_exactly_resp2(server: &Server, url: &str) -> Outcome {
    undo_on_the_next_connection(server, url, "protocol=2").await
}

/// The network holds an acquisition back and the connection ends: the next one must have the server
/// end the first, for what was held back may still be delivered.
async fn undo_on_the_next_connection(server: &Server, url: &str, protocol: &str) -> Outcome {
    acquire_and_release(server, url).await?;
    let proxy = Proxy::start(server.addr());
    let through = format!("redis://tried:pw@{}", proxy.addr());
    let locker = ready(builder(&with(&through, protocol))).await?;
    let before = connections(server);
    proxy.hold();
    let trying = locker.lock("k").try_acquire();
    let cutting = async {
        soon("the network holds the acquisition", || proxy.held() > 0).await?;
        proxy.pass();
        proxy.cut_clients();
        Ok::<_, String>(())
    };
    let (tried, cut) = tokio::join!(trying, cutting);
    cut?;
    check(tried.is_err(), "it was answered by no server")?;
    locker.ready(Duration::from_secs(5)).await.map_err(said)?;
    let is_ended = || connections(server).iter().all(|id| !before.contains(id));
    soon("the old connection was ended", is_ended).await?;
    proxy.deliver();
    soon("no key is left", || is_gone(server)).await
}

/// The numbers of the tried user's connections, as the server has them.
fn connections(server: &Server) -> Vec<String> {
    let list = server.command(&["CLIENT", "LIST"]).text();
    let ours = list.lines().filter(|line| line.contains(" user=tried "));
    ours.filter_map(|line| line.strip_prefix("id=")?.split(' ').next()).map(String::from).collect()
}

async fn told(url: &str) -> Result<ServerInfo, String> {
    let locker = ready(builder(url)).await?;
    let node = locker.health().remove(0);
    check(node.is_connected(), "it is connected")?;
    node.server.ok_or_else(|| "nothing is known".into())
}

async fn health(_: &Server, url: &str) -> Outcome {
    let told = told(url).await?;
    let is_told = told.run_id.is_some() && told.version.is_some() && told.role.is_some();
    let is_set_up = told.maxmemory_policy.is_some() && told.persistence.appendonly.is_some();
    check(is_told && is_set_up && told.clock.is_some(), "something is not told")
}

async fn health_of_persistence(_: &Server, url: &str) -> Outcome {
    let persistence = told(url).await?.persistence;
    check(persistence.appendfsync.is_some() && persistence.save.is_some(), "something is not told")
}

async fn database(server: &Server, url: &str) -> Outcome {
    let _locker = ready(builder(&with(url, "db=3"))).await?;
    // Its server looks at database 0, where nothing is.
    acquire_and_release(server, &with(url, "db=3")).await
}

async fn name(server: &Server, url: &str) -> Outcome {
    let _locker = ready(builder(&with(url, "name=web"))).await?;
    let list = server.command(&["CLIENT", "LIST"]).text();
    check(list.contains(" name=web "), "it has no name")
}

async fn client(_: &Server, url: &str) -> Outcome {
    let client = Client::new(url).unwrap();
    let reply = client.command(["PING"]).await.map_err(said)?;
    check(reply.as_error().is_none(), "it was refused")
}
