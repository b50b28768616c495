//! The face for plain threads: it waits where it may, and refuses where it must not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use quorlock::blocking::{Client, LockGuard, Locker};
use quorlock::{Error, Loss, OwnerToken};
use support::{Fleet, Reply, Server, eventually, need_server};
use tokio::runtime::Builder;

use crate::builder;

const LONG: Duration = Duration::from_secs(5);

fn locker(fleet: &Fleet) -> Locker {
    let locker = builder(fleet).build_blocking().unwrap();
    assert_eq!(locker.ready(LONG).unwrap().len(), fleet.len());
    locker
}

#[test]
fn everything_works_on_a_plain_thread() {
    need_server!();
    let fleet = Fleet::start(3);
    let (ours, theirs) = (locker(&fleet), locker(&fleet));
    let guard = ours.lock("k").acquire().unwrap();
    assert!(guard.is_valid() && guard.remaining() > Duration::ZERO);
    assert_eq!((guard.key().to_string(), guard.votes().len()), ("k".to_owned(), 3));
    assert!(theirs.lock("k").try_acquire().unwrap().is_none());
    let vain = theirs.lock("k").wait(Duration::from_millis(50)).acquire().unwrap_err();
    assert!(vain.is_contended(), "{vain}");
    assert!(theirs.inspect("k").unwrap().holder().is_some());
    guard.extend(Duration::from_secs(20)).unwrap();
    assert_eq!(guard.wait_for_loss(Duration::from_millis(20)).unwrap(), None);
    assert!(guard.release().unwrap().is_released());

    let done = ours.lock("k").run(|guard: &LockGuard| {
        assert!(guard.is_valid());
        Ok::<_, Error>(7)
    });
    assert_eq!(done.unwrap(), 7);

    let guard = ours.lock("k").acquire().unwrap();
    theirs.force_release("k").unwrap();
    assert!(guard.extend(Duration::from_secs(20)).unwrap_err().is_lost());
    assert_eq!(guard.wait_for_loss(LONG).unwrap(), Some(Loss::Gone));
    drop(guard);

    let token: OwnerToken = ours.lock("k").acquire().unwrap().forget();
    let adopted = theirs.adopt("k", &token).unwrap();
    let token = adopted.forget();
    assert!(ours.release_by_token("k", &token).unwrap().is_released());
    assert!(ours.shutdown(LONG).unwrap().is_complete());
    assert!(ours.lock("k").acquire().unwrap_err().is_closed());
    assert_eq!(theirs.health().len(), 3);
}

#[test]
fn a_plain_thread_waits_in_strict_order() {
    need_server!();
    let fleet = Fleet::start(3);
    let (ours, theirs) = (locker(&fleet), locker(&fleet));
    let guard = ours.lock("k").fair_strict().acquire().unwrap();
    let waiting = thread::spawn(move || theirs.lock("k").fair_strict().wait(LONG).acquire());
    eventually("one stands in the queue of each node", || {
        let places = fleet.command(&["ZCARD", "{k}:quorlock:queue"]);
        places.iter().map(Reply::int).sum::<i64>() == 3
    });
    assert!(guard.release().unwrap().is_released());
    assert!(waiting.join().unwrap().unwrap().release().unwrap().is_released());
    eventually("nothing is left", || fleet.keys_left("").is_empty());
}

#[test]
fn several_keys_are_one_lock_on_a_plain_thread() {
    need_server!();
    let fleet = Fleet::start(3);
    let (ours, theirs) = (locker(&fleet), locker(&fleet));
    let guard = ours.lock_all(["b", "a"]).acquire().unwrap();
    assert_eq!(guard.keys(), ["a", "b"]);
    assert_eq!(guard.key(), "a, b");
    assert!(theirs.lock("b").try_acquire().unwrap().is_none());
    let vain = theirs.lock_all(["b", "c"]).wait(Duration::ZERO).acquire().unwrap_err();
    assert!(vain.is_contended() && vain.to_string().contains("\"b\""), "{vain}");
    let beside = theirs.lock_all(["c", "d"]).try_acquire().unwrap().unwrap();
    guard.extend(Duration::from_secs(20)).unwrap();
    assert!(guard.release().unwrap().is_released());
    drop(beside);
    eventually("both are released", || fleet.keys_left("").is_empty());
    let keys = ours.lock_all(["a", "b"]).run(|guard| Ok::<_, Error>(guard.keys().len()));
    assert_eq!(keys.unwrap(), 2);
    let refused = ours.lock_all(["a", "a"]).acquire().unwrap_err();
    assert!(refused.is_misuse(), "{refused}");
}

/// One at a time, and no thread is forgotten.
#[test]
fn threads_take_turns() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = locker(&fleet);
    let (inside, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            let (locker, inside, most, done) = (locker.clone(), &inside, &most, &done);
            scope.spawn(move || {
                for _ in 0..5 {
                    let guard = locker.lock("k").wait_forever().acquire().unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    drop(guard);
                }
            });
        }
    });
    assert_eq!((most.into_inner(), done.into_inner()), (1, 40));
}

/// Whether it waits here, or says that it must not.
fn waits(locker: &Locker) -> bool {
    match locker.lock("k").acquire() {
        Ok(guard) => guard.release().unwrap().is_released(),
        Err(error) => {
            assert!(error.is_misuse() && error.to_string().contains("spawn_blocking"), "{error}");
            false
        }
    }
}

#[test]
fn a_thread_that_polls_futures_is_refused_and_any_other_is_served() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = Arc::new(locker(&fleet));
    let many = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    for runtime in [&many, &one] {
        runtime.block_on(async {
            assert!(!waits(&locker), "the body of block_on");
            let ours = locker.clone();
            assert!(!tokio::spawn(async move { waits(&ours) }).await.unwrap(), "a task");
            let ours = locker.clone();
            let blocking = tokio::task::spawn_blocking(move || waits(&ours));
            assert!(blocking.await.unwrap(), "a thread for what blocks");
            // The budget that was looked at is there as before.
            for _ in 0..100 {
                tokio::task::consume_budget().await;
            }
        });
        let _inside = runtime.enter();
        assert!(waits(&locker), "a plain thread that knows a runtime");
    }
    many.block_on(async {
        let ours = locker.clone();
        let placed = tokio::spawn(async move { tokio::task::block_in_place(|| waits(&ours)) });
        assert!(placed.await.unwrap(), "a worker that has handed on its tasks");
    });
}

#[test]
fn a_guard_is_dropped_and_released_where_nothing_may_wait() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = locker(&fleet);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for drops in [true, false] {
        let guard = locker.lock("k").acquire().unwrap();
        runtime.block_on(async {
            match drops {
                true => drop(guard),
                false => assert!(guard.release().unwrap_err().is_misuse()),
            }
        });
        eventually("it is released", || fleet.keys_left("").is_empty());
    }
}

#[test]
fn a_client_sends_commands() {
    need_server!();
    let server = Server::start();
    let client = Client::new(server.url()).unwrap().timeout(LONG);
    assert!(client.command(["SET", "k", "v"]).unwrap().is_ok());
    let clone = client.clone();
    let read = thread::spawn(move || clone.command(["GET", "k"]).unwrap());
    assert_eq!(read.join().unwrap().as_str(), Ok("v"));
}
