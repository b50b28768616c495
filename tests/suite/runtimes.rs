//! On which runtimes a locker works, and what happens when one ends or is blocked.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use quorlock::{Driver, Event, Extend, LockGuard, Locker, Loss, Observer, Retry};
use support::{
    Fleet, Heard, Script, Scripted, Server, eventually, eventually_async, need_server, poll_times,
};
use tokio::runtime::{Builder, Runtime};

use crate::{builder, connected, single};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn cycle(locker: &Locker) {
    let guard = locker.lock("k").await.unwrap();
    let found = guard.release().await.unwrap();
    assert!(found.is_released(), "{found:?}");
}

#[test]
fn current_thread_spawned_and_blocked_on() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = builder(&fleet).build().unwrap();
    let run = |runtime: Runtime| {
        runtime.block_on(async {
            cycle(&locker).await;
            let spawned = locker.clone();
            tokio::spawn(async move { cycle(&spawned).await }).await.unwrap();
        });
    };
    run(current_thread());
    run(Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    run(current_thread());
}

#[test]
fn several_lockers_in_one_process_do_not_disturb_one_another() {
    need_server!();
    let fleet = Fleet::start(3);
    current_thread().block_on(async {
        let mut lockers = Vec::new();
        for _ in 0..8 {
            lockers.push(connected(builder(&fleet)).await);
        }
        for locker in &lockers {
            cycle(locker).await;
        }
        lockers.truncate(1);
        cycle(&lockers[0]).await;
    });
}

#[test]
fn a_driver_of_its_own_serves_many_runtimes_over_the_same_connection() {
    need_server!();
    let server = Server::start();
    let locker = single(server.url()).driver(Driver::Thread).build().unwrap();
    let accepted = || server.info("total_connections_received").unwrap().parse::<u64>().unwrap();
    current_thread().block_on(cycle(&locker));
    let before = accepted();
    for _ in 0..3 {
        current_thread().block_on(cycle(&locker));
    }
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let locker = locker.clone();
            thread::spawn(move || current_thread().block_on(cycle(&locker)))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(accepted(), before + 1, "one connection for all; the other one asked");
}

/// Waits as any executor does, on a thread that has no runtime.
fn without_runtime<F: Future>(future: F) -> F::Output {
    struct Parked(thread::Thread);
    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    assert!(tokio::runtime::Handle::try_current().is_err());
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_driver_of_its_own_needs_no_runtime_but_that() {
    need_server!();
    let fleet = Fleet::start(3);
    let new = || builder(&fleet).driver(Driver::Thread).build().unwrap();
    let (locker, other) = (new(), new());
    without_runtime(async {
        let long = Duration::from_secs(5);
        assert_eq!(locker.ready(long).await.unwrap().len(), 3);
        other.ready(long).await.unwrap();
        let guard = locker.lock("k").await.unwrap();
        let vain = other.lock("k").wait(Duration::from_millis(50)).await.unwrap_err();
        assert!(vain.is_contended(), "{vain}");
        let waiting = other.clone();
        let waiting = thread::spawn(move || without_runtime(waiting.lock("k").acquire()));
        guard.extend(Duration::from_secs(20)).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
        let guard = waiting.join().unwrap().unwrap();

        // Taken over while its guard lives: waited for, extended, and confirmed.
        let second = Duration::from_secs(1);
        let living = other.lock("k2").ttl(second).auto_extend(Extend::Off).await.unwrap();
        let adopted = locker.adopt("k2", &living.owner_token()).await.unwrap();
        assert!(adopted.is_valid() && !living.is_valid());
        locker.force_release("k2").await.unwrap();
        adopted.extend(2 * long).await.unwrap_err();
        adopted.lost().await;

        locker.force_release("k").await.unwrap();
        let work = guard.protect(std::future::pending::<()>());
        guard.extend(2 * long).await.unwrap_err();
        assert!(work.await.unwrap_err().is_lost());
        assert!(other.shutdown(long).await.unwrap().is_complete());
    });
    assert!(without_runtime(other.lock("k").acquire()).unwrap_err().is_closed());
    // On a runtime that is the caller's alone, nothing can be awaited without it.
    let on_runtime = builder(&fleet).build().unwrap();
    let error = without_runtime(on_runtime.lock("k").acquire()).unwrap_err();
    assert!(error.is_closed() && error.to_string().contains("no tokio runtime"), "{error}");
    assert!(without_runtime(on_runtime.ready(Duration::from_secs(5))).unwrap_err().is_closed());
}

/// Panics on the driver's thread when a node goes, once.
#[derive(Default)]
struct Panics(AtomicUsize);

impl Observer for Panics {
    fn on_event(&self, event: &Event<'_>) {
        if matches!(event, Event::NodeDown { .. }) && self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            panic!("an observer's own mistake");
        }
    }
}

/// The timers of those who wait without a runtime end with the driver's thread.
#[test]
fn who_waits_without_a_runtime_goes_on_when_the_drivers_thread_has_ended() {
    need_server!();
    let fleet = Fleet::start(3);
    let observer = Arc::new(Panics::default());
    let locker = builder(&fleet).driver(Driver::Thread).observer(observer.clone()).build().unwrap();
    let other = builder(&fleet).driver(Driver::Thread).build().unwrap();
    let held = without_runtime(other.lock("k").acquire()).unwrap();
    let mine = without_runtime(locker.lock("mine").acquire()).unwrap();
    let waiting = thread::spawn(move || {
        let request = locker.lock("k").retry(Retry::fixed(Duration::from_millis(20)));
        without_runtime(request.acquire())
    });
    let lost = thread::spawn(move || without_runtime(mine.lost()));
    fleet[2].stop();
    eventually("the thread has ended", || observer.0.load(Ordering::SeqCst) > 0);
    drop(held);
    assert!(waiting.join().unwrap().is_ok());
    delete(&fleet, "mine");
    assert_eq!(lost.join().unwrap(), Loss::Gone);
}

/// Deletes a key on every node that runs.
fn delete(fleet: &Fleet, key: &str) {
    for node in fleet.iter().filter(|node| node.is_running()) {
        node.command(&["DEL", key]);
    }
}

#[test]
fn a_driver_of_its_own_works_while_the_applications_runtime_is_blocked() {
    need_server!();
    let server = Server::start();
    let locker = single(server.url()).driver(Driver::Thread).build().unwrap();
    current_thread().block_on(async {
        let guard = locker.lock("k").await.unwrap();
        // The script is gone: the release needs a second command, which the driver must send.
        server.command(&["SCRIPT", "FLUSH"]);
        drop(guard);
        // This blocks the only thread of this runtime.
        eventually("released", || server.command(&["EXISTS", "k"]).int() == 0);
    });
}

#[tokio::test]
async fn a_task_that_drops_a_guard_and_computes_does_not_hold_the_release_back() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").await.unwrap();
    drop(guard);
    // This blocks the only thread of this runtime: only the drop itself can have written.
    eventually("released", || fleet.keys_left("").is_empty());
}

/// The worker that runs it may be the one that polled the sockets, and the other one asleep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_lets_go_of_a_guard_and_computes_does_not_hold_up_the_others() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let (cycles, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let others: Vec<_> = (0..2)
        .map(|caller| {
            let (locker, cycles, stop) = (locker.clone(), cycles.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let guard = locker.lock(format!("other-{caller}")).await.unwrap();
                    assert!(guard.release().await.unwrap().is_released());
                    cycles.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let computing = async move {
        for round in 0..400 {
            let guard = locker.lock(format!("k{round}")).await.unwrap();
            match round % 2 {
                0 => drop(guard),
                _ => drop(poll_times(guard.release(), 1).await),
            }
            let enough = cycles.load(Ordering::SeqCst) + 10;
            eventually("the others go on", || cycles.load(Ordering::SeqCst) >= enough);
        }
    };
    let computed = tokio::spawn(computing).await;
    stop.store(true, Ordering::SeqCst);
    computed.unwrap();
    for other in others {
        other.await.unwrap();
    }
}

/// The keeper of a locker's first lock begins on the worker that computes from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_extended_while_its_holder_computes_and_another_worker_is_free() {
    need_server!();
    let fleet = Fleet::start(3);
    for _ in 0..5 {
        let extended = Arc::new(Extensions::default());
        let locker = connected(builder(&fleet).observer(extended.clone())).await;
        let holding = async move {
            let guard = locker.lock("k").ttl(Duration::from_secs(1)).await.unwrap();
            eventually("it is extended", || extended.0.load(Ordering::SeqCst) > 0);
            assert!(guard.release().await.unwrap().is_released());
        };
        tokio::spawn(holding).await.unwrap();
    }
}

/// How many extensions have succeeded.
#[derive(Default)]
struct Extensions(AtomicUsize);

impl Observer for Extensions {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Extended { .. } = event {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn an_operation_whose_runtime_ends_is_told_and_the_next_connects_anew() {
    let server = Scripted::start_sequence([
        Script::greeting().expect("SET").stall(),
        // The next connection settles what that one left, and serves.
        Script::greeting().answer_all(|command| match &command[0][..] {
            b"SET" => b"+OK\r\n".to_vec(),
            _ => b":1\r\n".to_vec(),
        }),
    ]);
    let locker = single(server.url()).build().unwrap();
    let first = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    first.block_on(locker.ready(Duration::from_secs(5))).unwrap();
    let waiting = {
        let locker = locker.clone();
        let asks = async move { locker.lock("k").try_acquire().await.unwrap_err() };
        thread::spawn(move || current_thread().block_on(asks))
    };
    // The operation is under way on the first runtime's connection when that runtime ends.
    server.wait_for_command("SET", 1);
    drop(first);
    let error = waiting.join().unwrap();
    assert!(error.is_unavailable(), "{error}");
    current_thread().block_on(cycle(&locker));
    let heard = server.heard();
    // What the old connection had still to say may be heard behind the new one's first words.
    let next: Vec<_> = heard.iter().filter(|heard| heard.connection == 1).collect();
    let first = |is: fn(&Heard) -> bool| next.iter().position(|heard| is(heard)).unwrap();
    let (kill, undo) = (first(|heard| heard.word(1) == "KILL"), first(|h| h.name() == "EVAL"));
    assert!(kill < undo && undo < first(|heard| heard.name() == "EVALSHA"), "{heard:?}");
}

/// A machine that takes two thirds of this from one extension to the next has not failed a test.
const TTL: Duration = Duration::from_secs(3);

/// Counts losses, and keeps the longest stall that one names.
#[derive(Default)]
struct Losses(Mutex<(usize, Option<Duration>)>);

impl Observer for Losses {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Lost { stalled, .. } = event {
            let mut losses = self.0.lock().unwrap();
            *losses = (losses.0 + 1, losses.1.max(*stalled));
        }
    }
}

/// Holds a lock on a runtime that is then blocked until `condition` is true of the guard and the
/// deadline that it had; what is lost, and is the guard valid.
fn hold_through_a_block(
    driver: Driver,
    condition: impl Fn(&LockGuard, Instant) -> bool,
) -> ((usize, Option<Duration>), bool) {
    let fleet = Fleet::start(5);
    let losses = Arc::new(Losses::default());
    let builder = builder(&fleet).driver(driver).ttl(TTL).observer(losses.clone());
    let valid = current_thread().block_on(async {
        let locker = connected(builder).await;
        let guard = locker.lock("k").await.unwrap();
        let first = guard.deadline();
        // This blocks the only thread of this runtime.
        eventually("the runtime is let go of", || condition(&guard, first));
        let valid = guard.is_valid();
        if !valid {
            let told = async || losses.0.lock().unwrap().0 > 0;
            eventually_async("the loss is told", told).await;
        }
        valid
    });
    let found = *losses.0.lock().unwrap();
    (found, valid)
}

#[test]
fn a_driver_thread_extends_through_a_blocked_runtime() {
    need_server!();
    let outlived = |_: &LockGuard, first| Instant::now() > first;
    assert_eq!(hold_through_a_block(Driver::Thread, outlived), ((0, None), true));
}

#[test]
fn a_blocked_runtime_loses_its_lock_and_the_loss_names_the_stall() {
    need_server!();
    let ended = |guard: &LockGuard, _| !guard.is_valid();
    let ((count, stalled), valid) = hold_through_a_block(Driver::Runtime, ended);
    assert_eq!((count, valid), (1, false));
    // It was due at a third of the lease, and looked at when that had ended.
    assert!(stalled > Some(TTL / 2), "{stalled:?}");
}

/// Nothing looks at the lock any more but the token's own thread.
#[cfg(feature = "tokio-util")]
#[test]
fn a_token_is_cancelled_when_the_runtime_that_extended_its_lock_has_ended() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).ttl(Duration::from_millis(700)).build().unwrap();
    let extending = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    extending.block_on(async { locker.ready(Duration::from_secs(5)).await.unwrap() });
    extending.block_on(cycle(&locker));
    let other = current_thread();
    let (guard, token) = other.block_on(async {
        let guard = locker.lock("k").await.unwrap();
        let token = guard.cancellation();
        (guard, token)
    });
    drop(extending);
    other.block_on(async {
        eventually_async("the token is cancelled", async || token.is_cancelled()).await;
    });
    assert!(!guard.is_valid());
}

#[cfg(feature = "tokio-util")]
#[test]
fn a_token_is_cancelled_while_the_runtime_is_blocked() {
    need_server!();
    let fleet = Fleet::start(3);
    current_thread().block_on(async {
        let locker = connected(builder(&fleet).ttl(Duration::from_millis(700))).await;
        let guard = locker.lock("k").await.unwrap();
        let token = guard.cancellation();
        eventually("the token is cancelled", || token.is_cancelled());
        assert!(!guard.is_valid());
    });
}
