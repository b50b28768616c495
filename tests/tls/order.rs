//! What the hot path rests on holds over TLS: an undo stands behind its command on the same
//! connection, and the drop itself writes it, on any thread, without a runtime.

use std::pin::pin;
use std::thread;
use std::time::Duration;

use quorlock::rustls;
use quorlock::{Driver, Locker};
use support::in_process;
use support::tls::authority;
use support::{
    Behaviour, Proxy, Server, Terminator, eventually, eventually_async, need_process, need_server,
    need_tls_server, poll_times,
};

use crate::{builder, trusting};

/// A server that speaks TLS itself where there is one, else behind a terminator.
struct Node(Server, Option<Terminator>);

impl Node {
    fn start() -> Self {
        let server = Server::start();
        let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
        let terminator = Terminator::with(server.addr(), config, Behaviour::Serve);
        Self(server, Some(terminator))
    }

    fn url(&self) -> String {
        let url = |terminator: &Terminator| terminator.url("127.0.0.1");
        self.1.as_ref().map_or_else(|| self.0.url(), url)
    }

    async fn locker(&self) -> Locker {
        let locker = builder(&self.url(), trusting()).node_timeout(Duration::from_secs(5));
        let locker = locker.build().unwrap();
        locker.ready(Duration::from_secs(5)).await.unwrap();
        locker
    }

    fn is_empty(&self) -> bool {
        self.0.command(&["KEYS", "*"]).array().is_empty()
    }
}

async fn drop_and_acquire(node: &Node) {
    let locker = node.locker().await;
    for turn in 0..300 {
        let guard = locker.lock("k").try_acquire().await.unwrap();
        drop(guard.unwrap_or_else(|| panic!("turn {turn}: the one before was dropped")));
    }
    let same = locker.clone();
    eventually_async("no key is left", async || node.is_empty()).await;
    drop(same);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_keys_are_one_lock_over_tls() {
    need_server!();
    let node = Node::start();
    let locker = node.locker().await;
    let keys: Vec<String> = (0..64).map(|key| format!("{key:0>200}")).collect();
    for turn in 0..50 {
        let guard = locker.lock_all(&keys).try_acquire().await.unwrap();
        let guard = guard.unwrap_or_else(|| panic!("turn {turn}: the one before was dropped"));
        assert!(locker.lock(&keys[turn]).try_acquire().await.unwrap().is_none());
        guard.extend(Duration::from_secs(10)).await.unwrap();
        drop(guard);
    }
    let same = locker.clone();
    eventually_async("no key is left", async || node.is_empty()).await;
    drop(same);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_deleted_natively_over_tls() {
    let valkey = in_process::serve(quorlock::testing::Node::builder().valkey("9.1.2")).unwrap();
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let terminator = Terminator::with(valkey.addr().unwrap(), config, Behaviour::Serve);
    let locker = builder(&terminator.url("127.0.0.1"), trusting()).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    for _ in 0..300 {
        drop(locker.lock("k").await.unwrap());
    }
    assert!(locker.lock("k").await.unwrap().release().await.unwrap().is_released());
    assert_eq!((valkey.calls("delifeq"), valkey.calls("release")), (301, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_has_its_fence_over_tls() {
    let node = in_process::serve(quorlock::testing::Node::builder()).unwrap();
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let terminator = Terminator::with(node.addr().unwrap(), config, Behaviour::Serve);
    let locker = builder(&terminator.url("127.0.0.1"), trusting()).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    let mut last = None;
    for _ in 0..20 {
        let guard = locker.lock("k").fenced().await.unwrap();
        assert!(guard.fence() > last);
        last = guard.fence();
        assert!(guard.release().await.unwrap().is_released());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_share_a_lock_over_tls() {
    let node = in_process::serve(quorlock::testing::Node::builder()).unwrap();
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let terminator = Terminator::with(node.addr().unwrap(), config, Behaviour::Serve);
    let locker = builder(&terminator.url("127.0.0.1"), trusting()).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    for _ in 0..20 {
        let reads = [locker.read("k").await.unwrap(), locker.read("k").await.unwrap()];
        assert!(locker.write("k").try_acquire().await.unwrap().is_none());
        for read in reads {
            assert!(read.release().await.unwrap().is_released());
        }
    }
}

#[tokio::test]
async fn a_key_has_its_slots_over_tls() {
    let node = in_process::serve(quorlock::testing::Node::builder()).unwrap();
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let terminator = Terminator::with(node.addr().unwrap(), config, Behaviour::Serve);
    let locker = builder(&terminator.url("127.0.0.1"), trusting()).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    for _ in 0..20 {
        let slots = locker.slots("k", 3);
        let (one, two) = (slots.acquire().await.unwrap(), slots.acquire_many(2).await.unwrap());
        assert!(slots.acquire().try_acquire().await.unwrap().is_none());
        for guard in [one, two] {
            assert!(guard.release().await.unwrap().is_released());
        }
    }
}

#[tokio::test]
async fn a_latch_opens_over_tls() {
    need_server!();
    let node = Node::start();
    let (one, other) = (node.locker().await, node.locker().await);
    for round in 0..20 {
        let key = format!("l:{round}");
        let (waiting, arriving) = (one.latch(&key, 2).unwrap(), other.latch(&key, 2).unwrap());
        assert!(!waiting.arrive("a").await.unwrap().is_open());
        let (told, arrived) = tokio::join!(waiting.wait(), arriving.arrive("b"));
        told.unwrap();
        assert!(arrived.unwrap().is_open());
    }
}

/// The wake-up comes on a connection on which nothing was asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_handed_over_to_the_one_that_waits_over_tls() {
    need_process!();
    let node = Node::start();
    let (holder, waiter) = (node.locker().await, node.locker().await);
    for locker in [&holder, &waiter] {
        eventually_async("the node tells of hand-overs", async || {
            locker.health()[0].tells_hand_overs
        })
        .await;
    }
    let held = holder.lock("k").await.unwrap();
    let request = waiter.lock("k").wait(Duration::from_secs(5));
    let waiting = tokio::spawn(async move { request.await.unwrap() });
    eventually_async("the key is watched", async || {
        node.0.info("tracking_total_keys").as_deref() == Some("1")
    })
    .await;
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().release().await.unwrap().is_released());
    let woken = waiter.stats();
    assert!(woken.handed_over + woken.changed >= 1, "{woken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_guard_is_released_before_the_next_request() {
    need_server!();
    drop_and_acquire(&Node::start()).await;
}

#[tokio::test]
async fn a_real_servers_tls_keeps_the_order_too() {
    let program = need_tls_server!();
    let server = Server::builder().program(program).tls(authority().server(), None).start();
    drop_and_acquire(&Node(server, None)).await;
}

#[tokio::test]
async fn a_dropped_attempt_leaves_no_key() {
    need_server!();
    let node = Node::start();
    let locker = node.locker().await;
    for polls in 1..=3 {
        for _ in 0..20 {
            let mut attempt = pin!(locker.lock("k").try_acquire());
            // Whether it is done by then is the machine's affair.
            let _ = poll_times(&mut attempt, polls).await;
        }
    }
    let guard = locker.lock("k").try_acquire().await.unwrap();
    assert!(guard.is_some(), "all the attempts before are undone");
    drop(guard);
    eventually_async("no key is left", async || node.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_may_be_dropped_on_a_thread_without_a_runtime() {
    need_server!();
    let node = Node::start();
    let locker = node.locker().await;
    for _ in 0..50 {
        let guard = locker.lock("k").try_acquire().await.unwrap().expect("it is free");
        thread::spawn(move || drop(guard)).join().unwrap();
    }
    assert!(locker.lock("k").try_acquire().await.unwrap().is_some());
}

#[test]
fn a_guard_may_be_dropped_when_its_runtime_is_gone() {
    need_server!();
    let node = Node::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.block_on(async {
        let locker = node.locker().await;
        locker.lock("k").try_acquire().await.unwrap().expect("it is free")
    });
    drop(runtime);
    assert!(!node.is_empty());
    drop(guard);
    eventually("the release was written", || node.is_empty());
}

/// A thread of many callers writes into a connection that does not move; then it moves again.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_socket_holds_up_goes_on_in_order() {
    need_server!();
    let server = Server::start();
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let terminator = Terminator::start(server.addr(), config);
    let proxy = Proxy::start(terminator.addr());
    let url = proxy.url().replace("redis://", "rediss://");
    let locker = builder(&url, trusting())
        .node_timeout(Duration::from_secs(20))
        .driver(Driver::Thread)
        .build()
        .unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    proxy.freeze();
    let key = |n: usize| format!("{n}-{}", "k".repeat(4_000));
    let mut callers = Vec::new();
    for n in 0..2_000 {
        let locker = locker.clone();
        callers.push(tokio::spawn(async move {
            let guard = locker.lock(key(n)).try_acquire().await.unwrap();
            drop(guard.expect("no other client has this key"));
        }));
    }
    // More than both kernels' buffers hold is under way when the first byte has arrived.
    eventually_async("the connection is full", async || proxy.waiting() > 0).await;
    proxy.thaw();
    for caller in callers {
        caller.await.unwrap();
    }
    eventually_async("no key is left", async || {
        server.command(&["DBSIZE"]) == support::Reply::Int(0)
    })
    .await;
    assert_eq!(terminator.handshakes(), (1, 0), "all on one connection");
}
