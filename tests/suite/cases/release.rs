//! Releases: of what is no longer ours, over an extension, and for good.

use std::pin::pin;
use std::time::Duration;

use quorlock::{Extend, LockGuard, Release};
use support::{Fleet, Proxy, Reply, Script, Scripted, eventually, eventually_async, need_server};

use super::{
    begin, expired, extended, granted_by_all, held_by_all, held_by_none, hold_unextended, proxies,
    through,
};
use crate::{builder, connected, single};

/// The node says that the key has gone: one command, one answer, and that was it.
#[tokio::test]
async fn case_07_a_release_of_an_expired_lock_is_one_command_and_no_retry() {
    let server = Scripted::start(
        Script::greeting()
            .expect("SET")
            .reply("+OK\r\n")
            .expect("EVALSHA")
            .reply(":0\r\n")
            .answer_all(|_| b"_\r\n".to_vec()),
    );
    let locker = single(server.url()).build().unwrap();
    let guard = hold_unextended(&locker, Duration::from_millis(500)).await;
    eventually_async("the lease ends", async || !guard.is_valid()).await;
    let found = guard.release().await.unwrap();
    assert!(matches!(found, Release::Expired), "{found:?}");
    // Asked over the same connection: whatever was sent before this has been heard when this has.
    locker.inspect("k").await.unwrap();
    server.wait_for_command("PTTL", 1);
    let names = server.names();
    let since = names.iter().position(|name| name == "SET").unwrap();
    assert_eq!(names[since..], ["SET", "EVALSHA", "GET", "PTTL", "GET"]);
}

#[tokio::test]
async fn case_08_a_release_leaves_a_key_that_another_has_taken() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = locker.lock("k").await.unwrap();
        held_by_all(&fleet).await;
        fleet.command(&["SET", "k", "theirs", "PX", "60000"]);
        let found = guard.release().await.unwrap();
        assert!(matches!(found, Release::Taken), "{found:?}");
        locker.inspect("k").await.unwrap();
        for server in &fleet {
            assert_eq!(server.command(&["GET", "k"]), Reply::bulk("theirs"));
        }
    }
}

/// How a holder lets go.
#[derive(Clone, Copy, Debug)]
enum LetGo {
    Release,
    Drop,
    Abort,
}

impl LetGo {
    const ALL: [Self; 3] = [Self::Release, Self::Drop, Self::Abort];

    /// What was sent is on its way when this returns.
    async fn of(self, guard: LockGuard) {
        match self {
            Self::Release => {
                // It waits for the nodes; what they say is known from what is left on them.
                let releasing = tokio::spawn(guard.release());
                tokio::task::yield_now().await;
                drop(releasing);
            }
            Self::Drop => drop(guard),
            Self::Abort => {
                let holder = tokio::spawn(async move {
                    guard.lost().await;
                });
                tokio::task::yield_now().await;
                holder.abort();
                assert!(holder.await.unwrap_err().is_cancelled());
            }
        }
    }
}

/// The network holds an extension back, the guard goes, and the network delivers.
#[tokio::test]
async fn case_11_a_release_over_an_extension_in_flight_leaves_no_key() {
    need_server!();
    for size in [1, 3] {
        let fleet = Fleet::start(size);
        let proxies = proxies(&fleet);
        let locker = connected(through(&proxies)).await;
        for (round, let_go) in (1..).zip(LetGo::ALL) {
            let ttl = Duration::from_secs(30);
            let guard = granted_by_all(async || hold_unextended(&locker, ttl).await).await;
            proxies.iter().for_each(Proxy::freeze);
            begin(pin!(guard.extend(Duration::from_secs(60)))).await;
            let waits = async || proxies.iter().all(|proxy| proxy.waiting() > 0);
            eventually_async("the extension is in flight", waits).await;
            let_go.of(guard).await;
            proxies.iter().for_each(Proxy::thaw);
            held_by_none(&fleet).await;
            for server in &fleet {
                let extensions = server.calls().of("pexpire");
                assert_eq!(extensions, round, "{let_go:?}: the extension came first");
            }
        }
    }
}

/// The same with an extension of the keeper's, which comes at a third of the TTL.
#[tokio::test]
async fn case_11_a_release_over_an_extension_by_itself_leaves_no_key() {
    need_server!();
    let leaves_none = async |size| {
        let fleet = Fleet::start(size);
        let proxies = proxies(&fleet);
        let locker = connected(through(&proxies)).await;
        for let_go in LetGo::ALL {
            let request = || locker.lock("k").ttl(Duration::from_secs(6));
            let guard = granted_by_all(async || request().await.unwrap()).await;
            proxies.iter().for_each(Proxy::freeze);
            let waits = async || proxies.iter().all(|proxy| proxy.waiting() > 0);
            eventually_async("an extension is in flight", waits).await;
            let_go.of(guard).await;
            proxies.iter().for_each(Proxy::thaw);
            held_by_none(&fleet).await;
            assert_eq!(expired(&fleet), 0, "{let_go:?}: deleted, and not left to expiry");
        }
    };
    tokio::join!(leaves_none(1), leaves_none(3));
}

/// A key that is put back under the same value, as if a release had been lost, must expire: the
/// keeper of a guard that has gone would extend it forever.
#[tokio::test]
async fn case_13_renewal_stops_when_the_guard_goes() {
    const TTL: Duration = Duration::from_secs(3);
    need_server!();
    let stops = async |size: usize, let_go: LetGo| {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = locker.lock("k").ttl(TTL).auto_extend(Extend::Forever).await.unwrap();
        let token = guard.owner_token();
        extended(&guard, TTL).await;
        let_go.of(guard).await;
        held_by_none(&fleet).await;
        for reply in fleet.command(&["SET", "k", token.as_str(), "NX", "PX", "1500"]) {
            assert_eq!(reply, Reply::ok());
        }
        let what = format!("{size} nodes, {let_go:?}: it is not extended");
        eventually_async(&what, async || fleet.holders("k").is_empty()).await;
    };
    let [released, dropped, aborted] = LetGo::ALL;
    tokio::join!(stops(1, released), stops(1, dropped), stops(1, aborted));
    tokio::join!(stops(3, released), stops(3, dropped), stops(3, aborted));
}

#[tokio::test]
async fn case_13_renewal_stops_when_the_lock_is_forgotten() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let ttl = Duration::from_secs(3);
    let guard = locker.lock("k").ttl(ttl).await.unwrap();
    extended(&guard, ttl).await;
    let _token = guard.forget();
    held_by_none(&fleet).await;
}

/// The runtime ends with its tasks, and whatever extended the lock ends with it.
#[test]
fn case_13_renewal_stops_with_its_runtime() {
    need_server!();
    let fleet = Fleet::start(3);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let locker = runtime.block_on(connected(builder(&fleet)));
    let request = locker.lock("k").ttl(Duration::from_millis(450)).auto_extend(Extend::Forever);
    let guard = runtime.block_on(request.into_future()).unwrap();
    drop(runtime);
    eventually("the lease ends", || !guard.is_valid());
    eventually("it is not extended", || fleet.holders("k").is_empty());
}
