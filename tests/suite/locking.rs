//! One holder at a time, and a lock that comes free.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorlock::{Extend, Locker, Release, Retry};
use support::wait::PATIENCE;
use support::{Fleet, Reply, eventually, eventually_async, need_server};

use crate::{builder, connected};

const SIZES: [usize; 2] = [1, 5];

#[tokio::test]
async fn a_second_try_is_refused_while_held_and_granted_after_release() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let (ours, theirs) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
        let guard = ours.lock("k").await.unwrap();
        assert!(guard.is_valid());
        assert!(theirs.lock("k").try_acquire().await.unwrap().is_none());
        assert!(ours.lock("k").try_acquire().await.unwrap().is_none(), "no lock is reentrant");
        assert!(theirs.lock("other").try_acquire().await.unwrap().is_some());
        assert!(guard.release().await.unwrap().is_released());
        let again = theirs.lock("k").try_acquire().await.unwrap();
        assert!(again.is_some(), "{size} nodes: free after release");
    }
}

#[tokio::test]
async fn case_20_the_key_is_verbatim_and_the_value_is_one_plain_string_with_an_expiry() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet).prefix("pay:").owner("pay-api")).await;
        let name = "\0🐉\r\n";
        let guard = locker.lock(name).ttl(Duration::from_secs(7)).await.unwrap();
        assert_eq!(guard.key(), name.as_bytes());
        let full = [b"pay:", name.as_bytes()].concat();
        let token = guard.owner_token();
        let (random, owner) = token.as_str().split_once('@').unwrap();
        assert_eq!(random.len(), 40);
        assert!(random.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(owner, locker.owner());
        assert!(owner.starts_with("pay-api@"), "{owner}");
        // An early verdict does not wait for the last nodes: they have the key a little later.
        eventually_async("all nodes have the key", async || fleet.holders(&full).len() == size)
            .await;
        for server in fleet.iter() {
            assert_eq!(server.command(&[b"GET", &full[..]]), Reply::bulk(token.as_str()));
            let pttl = server.command(&[b"PTTL", &full[..]]).int();
            assert!((1..=7_000).contains(&pttl), "{pttl}");
        }
    }
}

#[tokio::test]
async fn every_attempt_has_a_value_of_its_own() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        let guard = locker.lock("k").await.unwrap();
        assert!(seen.insert(guard.owner_token()));
        assert!(guard.release().await.unwrap().is_released());
    }
}

#[tokio::test]
async fn case_08_a_release_that_comes_too_late_leaves_the_next_holders_key() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let request = locker.lock("k").ttl(Duration::from_millis(300)).auto_extend(Extend::Off);
        let guard = request.await.unwrap();
        let deadline = guard.deadline();
        let next = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
        assert!(!guard.is_valid(), "the next holder came while the first still believed to hold");
        assert_eq!(guard.remaining(), Duration::ZERO);
        assert!(deadline < next.deadline());
        let found = guard.release().await.unwrap();
        assert!(matches!(found, Release::Taken), "{found:?}");
        assert!(next.is_valid(), "a stale release took the lock from its holder");
        assert!(next.release().await.unwrap().is_released());
    }
}

#[tokio::test]
async fn case_07_a_release_says_that_the_lock_had_expired() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let request = locker.lock("k").ttl(Duration::from_millis(100)).auto_extend(Extend::Off);
        let guard = request.await.unwrap();
        eventually_async("the key expires", async || fleet.holders("k").is_empty()).await;
        let found = guard.release().await.unwrap();
        assert!(matches!(found, Release::Expired), "{found:?}");
    }
}

/// 64 tasks on one key, until 2,000 acquisitions are made: the counter of those inside never
/// reaches two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_22_sixty_four_tasks_on_one_key_are_never_two_inside() {
    need_server!();
    const ACQUISITIONS: u32 = 2_000;
    for size in SIZES {
        let fleet = Fleet::start(size);
        let pause = Duration::from_micros(200);
        let builder =
            builder(&fleet).retry(Retry::full_jitter(pause, 10 * pause, 20 * pause)).wait_forever();
        // So many at once keep a slow machine's nodes behind for longer than one alone waits.
        let locker = connected(builder.node_timeout(6 * PATIENCE)).await;
        let (inside, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let (locker, inside, done) = (locker.clone(), inside.clone(), done.clone());
                tokio::spawn(async move {
                    while done.load(Ordering::SeqCst) < ACQUISITIONS {
                        let guard = locker.lock("k").await.unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two inside");
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                        let found = guard.release().await.unwrap();
                        assert!(found.is_released(), "{found:?}");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(done.load(Ordering::SeqCst) >= ACQUISITIONS);
        eventually("nothing is left", || fleet.keys_left("").is_empty());
    }
}

/// How exactly is for `src/lock/tests/min_hold.rs`.
#[tokio::test]
async fn a_lock_that_is_released_after_a_time_ends_then_on_the_servers() {
    need_server!();
    const MIN_HOLD: Duration = Duration::from_millis(1_000);
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let began = Instant::now();
        let guard = locker.lock("k").ttl(Duration::from_secs(60)).await.unwrap();
        assert!(guard.release_after(MIN_HOLD).await.unwrap().is_released());
        let next = locker.lock("k").wait(PATIENCE).await.unwrap();
        // A server counts from the millisecond that it had read last.
        assert!(began.elapsed() >= MIN_HOLD - Duration::from_millis(2));
        assert!(next.is_valid());
    }
}

#[tokio::test]
async fn a_waiter_that_gives_up_says_who_holds_the_lock() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let holder = connected(builder(&fleet).owner("pay-api")).await;
        let waiter = connected(builder(&fleet)).await;
        let _guard = holder.lock("order:42").await.unwrap();
        let waits = waiter.lock("order:42").wait(Duration::from_millis(300));
        let error = waits.await.unwrap_err();
        assert!(error.is_contended(), "{error}");
        let found = error.holder().unwrap();
        assert_eq!(found.owner.as_deref(), Some(holder.owner()));
        assert!(found.remaining > Duration::ZERO && found.remaining <= Duration::from_secs(10));
        let words = error.to_string();
        let start = format!("lock \"order:42\" is held by {}, ", holder.owner());
        assert!(words.starts_with(&start), "{words}");
        assert!(words.contains(" left; gave up after "), "{words}");
    }
}

#[tokio::test]
async fn run_gives_the_work_the_lock_and_releases_it_whatever_happens() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let ok: Result<u32, quorlock::Error> = locker
        .lock("k")
        .ttl(Duration::from_secs(60))
        .run(|held| async move {
            assert!(held.is_valid() && held.remaining() > Duration::from_secs(30));
            Ok(7)
        })
        .await;
    assert_eq!(ok.unwrap(), 7);
    eventually("released after success", || fleet.keys_left("").is_empty());

    let error: Result<(), Box<dyn std::error::Error>> =
        locker.lock("k").run(|_| async { Err("the work failed".into()) }).await;
    assert_eq!(error.unwrap_err().to_string(), "the work failed");
    eventually("released after failure", || fleet.keys_left("").is_empty());

    let mut counter = 0;
    let borrowed: Result<(), quorlock::Error> = locker
        .lock("k")
        .run_async(async |_| {
            counter += 1;
            Ok(())
        })
        .await;
    borrowed.unwrap();
    assert_eq!(counter, 1);

    let panicking = {
        let locker = locker.clone();
        tokio::spawn(async move {
            locker.lock("k").run(|_| async { panic!("the work panics, as it should here") }).await
        })
    };
    let joined: Result<Result<(), quorlock::Error>, _> = panicking.await;
    assert!(joined.unwrap_err().is_panic());
    eventually("released after a panic", || fleet.keys_left("").is_empty());
}

#[tokio::test]
async fn run_drops_work_that_outlasts_its_lock() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let request = locker.lock("k").ttl(Duration::from_millis(200)).auto_extend(Extend::Off);
    let error: Result<(), quorlock::Error> = request.run(|_| std::future::pending()).await;
    let error = error.unwrap_err();
    assert!(error.is_lost(), "{error}");
    eventually("nothing is left", || fleet.keys_left("").is_empty());
}

/// How soon is in `benches/record/`, by `benches/promises.rs`.
#[tokio::test]
async fn a_dropped_guards_key_is_gone() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        drop(locker.lock("k").await.unwrap());
        // This blocks the runtime: the drop itself has written, and the servers do the rest.
        eventually("released", || fleet.keys_left("").is_empty());
    }
}

#[tokio::test]
async fn case_15_a_guard_dropped_on_a_plain_thread_releases() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = locker.lock("k").await.unwrap();
        thread::spawn(move || drop(guard)).join().unwrap();
        eventually("released", || fleet.keys_left("").is_empty());
    }
}

#[test]
fn case_15_a_guard_dropped_after_its_runtime_has_gone_releases() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (locker, guard) = runtime.block_on(async {
            let locker = connected(builder(&fleet)).await;
            let guard = locker.lock("k").await.unwrap();
            (locker, guard)
        });
        eventually("all nodes have the key", || fleet.holders("k").len() == size);
        drop(runtime);
        drop(guard);
        eventually("released", || fleet.keys_left("").is_empty());

        // And the locker works again from the next runtime.
        let next = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let released = next.block_on(async {
            let guard = locker.lock("k").await?;
            guard.release().await
        });
        assert!(released.unwrap().is_released());
    }
}

#[test]
fn without_a_runtime_there_is_a_clear_error_and_no_hang() {
    let locker = Locker::single("redis://127.0.0.1:1").unwrap().build().unwrap();
    let acquire = IntoFuture::into_future(locker.lock("k"));
    let mut acquire = std::pin::pin!(acquire);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = Future::poll(acquire.as_mut(), &mut cx) else {
        panic!("it should have ended at once");
    };
    assert!(error.is_closed(), "{error}");
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[tokio::test]
async fn a_forgotten_lock_stays_until_its_ttl() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let token = locker.lock("k").ttl(Duration::from_secs(3)).await.unwrap().forget();
    assert_eq!(fleet.command(&["GET", "k"]), [Reply::bulk(token.value())]);
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    eventually_async("the key expires", async || fleet.keys_left("").is_empty()).await;
}

#[tokio::test]
async fn votes_name_every_node_with_its_round_trip() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").await.unwrap();
    eventually_async("all have answered", async || {
        guard.votes().iter().all(|vote| vote.outcome == quorlock::report::Outcome::Granted)
    })
    .await;
    let votes = guard.votes();
    assert_eq!(votes.len(), 5);
    for (vote, server) in votes.iter().zip(fleet.iter()) {
        assert_eq!(*vote.node, server.label());
        assert!(vote.rtt.is_some_and(|rtt| rtt > Duration::ZERO));
    }
}

#[tokio::test]
async fn inspect_tells_each_nodes_holder_and_the_majority() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet).owner("pay-api")).await;
    assert_eq!(locker.inspect("k").await.unwrap().free(), 5);
    let _guard = locker.lock("k").await.unwrap();
    let seen = locker.inspect("k").await.unwrap();
    assert_eq!(seen.nodes.len(), 5);
    assert_eq!(seen.majority, 3);
    assert_eq!(seen.holder().unwrap().owner.as_deref(), Some(locker.owner()));
}

/// The lock outlives its TTL while its guard lives, and not its guard. How often and how exactly it
/// is extended is in `src/lock/tests/extension.rs`, under a driven clock.
#[tokio::test]
async fn a_held_lock_outlives_its_ttl() {
    const TTL: Duration = Duration::from_secs(3);
    need_server!();
    let outlives = async |size| {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = locker.lock("k").ttl(TTL).await.unwrap();
        let first = guard.deadline();
        for half in [1, 2] {
            let extended = async || guard.deadline() > first + half * TTL / 2;
            eventually_async("it is extended", extended).await;
        }
        assert!(guard.is_valid());
        // A majority has extended it, and a majority will delete it; one that is late follows.
        eventually_async("all hold it", async || fleet.holders("k").len() == size).await;
        assert!(guard.release().await.unwrap().is_released());
        eventually_async("no node has it", async || fleet.holders("k").is_empty()).await;
    };
    tokio::join!(outlives(SIZES[0]), outlives(SIZES[1]));
}

/// What a locker keeps of a hold is used again by the next one: nothing of the first may be left.
#[tokio::test]
async fn a_lock_taken_after_an_extended_one_is_held() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        for round in 0..3 {
            let guard = locker.lock("k").await.unwrap();
            assert!(guard.is_valid(), "{size} nodes, round {round}");
            guard.extend(Duration::from_secs(20)).await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
    }
}
