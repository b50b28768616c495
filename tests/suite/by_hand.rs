//! What people write in the place of a recipe, and what is wrong with it: each of these tests shows
//! the fault on a real server. `manual::recipes` tells of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorlock::{Client, Locker};
use support::{Server, need_process};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

async fn server() -> (Server, Client) {
    let server = Server::start();
    let client = Client::new(server.url()).unwrap();
    (server, client)
}

/// A counter for each second: so many before its end, and as many right behind it.
#[test]
fn a_counter_for_each_window_lets_twice_as_many_pass_at_its_edge() {
    need_process!();
    let server = Server::start();
    let passes = |at: Duration| {
        let window = format!("limit:{}", at.as_secs());
        server.command(&["INCR", &window]).int() <= 10
    };
    let (before, behind) = (Duration::from_millis(999), Duration::from_millis(1_001));
    let mut passed = 0;
    for at in [before, behind] {
        for _ in 0..20 {
            passed += u32::from(passes(at));
        }
    }
    assert_eq!(passed, 20, "twice ten in two milliseconds");
}

/// Look whether it was done, do it, and say so: both look before either says so.
#[tokio::test]
async fn a_look_before_the_work_lets_a_request_be_done_twice() {
    need_process!();
    let (_server, client) = server().await;
    let is_done = async || !client.command(["GET", "done:7"]).await.unwrap().is_null();
    let mut effects = 0;
    let (first, second) = (is_done().await, is_done().await);
    for was_done in [first, second] {
        if !was_done {
            effects += 1;
            assert!(client.command(["SET", "done:7", "1"]).await.unwrap().is_ok());
        }
    }
    assert_eq!(effects, 2);
}

/// Work that takes a while, counted.
async fn work(count: &AtomicU32) {
    count.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Read the cache, compute where it has nothing, and store it: all who miss it compute.
#[tokio::test]
async fn a_cache_without_a_lock_is_computed_by_each_that_misses_it() {
    need_process!();
    let (_server, client) = server().await;
    let (computed, looked) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(8)));
    let mut readers = JoinSet::new();
    for _ in 0..8 {
        let (client, computed, looked) = (client.clone(), computed.clone(), looked.clone());
        readers.spawn(async move {
            let page = client.command(["GET", "page"]).await.unwrap();
            // All ask at the same time.
            looked.wait().await;
            if page.is_null() {
                work(&computed).await;
                assert!(client.command(["SET", "page", "<h1>"]).await.unwrap().is_ok());
            }
        });
    }
    readers.join_all().await;
    assert_eq!(computed.load(Ordering::SeqCst), 8);
    assert!(!client.command(["GET", "page"]).await.unwrap().is_null());
}

/// A lock around it, and no second look: each that waits computes it again, one behind the other.
#[tokio::test]
async fn a_lock_without_a_second_look_has_each_that_waits_compute() {
    need_process!();
    let server = Server::start();
    let client = Client::new(server.url()).unwrap();
    let locker = Locker::single(server.url()).unwrap().build().unwrap();
    let (computed, looked) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(5)));
    let mut readers = JoinSet::new();
    for _ in 0..5 {
        let (client, computed, looked) = (client.clone(), computed.clone(), looked.clone());
        let locker = locker.clone();
        readers.spawn(async move {
            let report = client.command(["GET", "report"]).await.unwrap();
            looked.wait().await;
            if report.is_null() {
                let guard = locker.lock("lock:report").await.unwrap();
                work(&computed).await;
                assert!(client.command(["SET", "report", "x"]).await.unwrap().is_ok());
                assert!(guard.release().await.unwrap().is_released());
            }
        });
    }
    readers.join_all().await;
    assert_eq!(computed.load(Ordering::SeqCst), 5);
}

/// A key with a TTL that its leader prolongs by `EXPIRE`: one that was stopped prolongs another's.
#[tokio::test]
async fn a_leader_that_does_not_compare_prolongs_anothers_lead() {
    need_process!();
    let (server, client) = server().await;
    let stand = async |name: &str| {
        client.command(["SET", "leader", name, "NX", "PX", "60000"]).await.unwrap().is_ok()
    };
    assert!(stand("one").await);
    // The first is stopped until its time is over.
    server.command(&["DEL", "leader"]);
    assert!(stand("two").await);
    // It goes on: `EXPIRE` says that the key is there, and it leads, as it believes.
    assert_eq!(server.command(&["EXPIRE", "leader", "60"]).int(), 1);
    assert_eq!(server.command(&["GET", "leader"]).text(), "two", "there are two leaders");
}
