//! Tasks of one process that want the same key: one at a time asks the nodes, in their order.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::Mutex;
use std::task::Poll;

use tokio::task::JoinHandle;

use super::Behaviour::{After, Grants, Hangs};
use super::{GRAIN, World, ms, now, pass};
use crate::lock::acquire::Acquire;
use crate::lock::guard::LockGuard;
use crate::options::{Extend, Options, Retry};
use crate::testing::{Reaction, When};

#[expect(clippy::disallowed_methods, reason = "a caller's own tasks")]
fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}

/// Polls it once.
async fn begin(acquire: &mut Pin<&mut Acquire>) {
    poll_fn(|cx| {
        assert!(acquire.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Polls until it is done, or a millisecond has passed.
async fn soon(acquire: &mut Pin<&mut Acquire>) -> Option<LockGuard> {
    let until = now().plus(ms(1));
    let mut late = pin!(pass(until.since(now())));
    poll_fn(|cx| match acquire.as_mut().poll(cx) {
        Poll::Ready(guard) => Poll::Ready(Some(guard.unwrap())),
        Poll::Pending => late.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_make_one_try_each_and_one_at_a_time() {
    let world = World::ready(5).await;
    world.nodes.iter().for_each(|node| node.clear_log());
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..1_000)
        .map(|task| {
            let (locker, order) = (world.locker.clone(), order.clone());
            run(async move {
                let guard = locker.lock("k").wait_forever().await.unwrap();
                order.lock().unwrap().push(task);
                pass(ms(1)).await;
                drop(guard);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(order.lock().unwrap().iter().copied().eq(0..1_000), "{order:?}");
    for node in 0..5 {
        let log = world.nodes[node].log();
        let words: Vec<_> = log.iter().map(|said| said.what).collect();
        let expected = ["SET", "release"].into_iter().cycle().take(2_000);
        assert!(words.iter().copied().eq(expected), "{words:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_ones_command_comes_right_behind_the_release_on_the_same_connection() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut next = pin!(world.locker.lock("k").acquire());
    begin(&mut next).await;
    world.nodes.iter().for_each(|node| node.clear_log());
    world.set(0..3, After(ms(10)));
    drop(guard);
    let began = now();
    let next = next.await.unwrap();
    assert!(now().since(began) <= ms(10) + GRAIN, "one round trip for both");
    for node in 0..3 {
        let log = world.nodes[node].log();
        let said: Vec<_> = log.iter().map(|said| (said.what, said.connection)).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!((said[0].0, said[1].0), ("release", "SET"));
        assert_eq!(said[0].1, said[1].1, "the same connection");
    }
    assert!(next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_line_leaves_nothing_behind_and_hands_its_turn_on() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let mut third = pin!(world.locker.lock("k").acquire());
    {
        let mut second = pin!(world.locker.lock("k").acquire());
        begin(&mut second).await;
        begin(&mut third).await;
        // Its turn has come when it goes, without having been polled.
        drop(guard);
    }
    let third = soon(&mut third).await.expect("the turn was handed on");
    assert!(third.release().await.unwrap().is_released());
    let mut fourth = pin!(world.locker.lock("k").acquire());
    assert!(soon(&mut fourth).await.is_some(), "the turn is free");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_in_line_names_the_holder_and_asks_for_nothing() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    world.nodes.iter().for_each(|node| node.clear_log());
    let began = now();
    let error = world.locker.lock("k").wait(ms(300)).await.unwrap_err();
    assert!(now().since(began) <= ms(300) + GRAIN);
    assert!(error.is_contended() && error.holder().is_some_and(|holder| holder.is_own), "{error}");
    assert!(world.got(0, "SET").is_empty());
    drop(guard);
    assert!(world.locker.lock("k").wait(ms(300)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_something_else_is_overtaken_and_comes_first_when_it_is_back() {
    let world = World::ready(3).await;
    let beside = world.beside();
    beside.locker.ready(ms(1_000)).await.unwrap();
    let foreign = beside.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    let retry = Retry::fixed(ms(100));
    let mut idle = pin!(world.locker.lock("k").retry(retry.clone()).wait_forever().acquire());
    begin(&mut idle).await;
    assert!(soon(&mut idle).await.is_none(), "it waits for the other process");
    let mut next = pin!(world.locker.lock("k").retry(retry.clone()).wait_forever().acquire());
    let mut last = pin!(world.locker.lock("k").retry(retry).wait_forever().acquire());
    begin(&mut next).await;
    begin(&mut last).await;
    assert!(foreign.release().await.unwrap().is_released());
    let began = now();
    let guard = next.as_mut().await.unwrap();
    // Its last sign of life says that the next one comes in half a second.
    assert!(now().since(began) <= ms(1_000), "{:?}", now().since(began));
    assert!(soon(&mut idle).await.is_none() && soon(&mut last).await.is_none());
    drop(guard);
    assert!(soon(&mut last).await.is_none(), "it came later");
    assert!(soon(&mut idle).await.is_some(), "it came first");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_ends_by_itself_is_asked_for_when_it_has() {
    let world = World::ready(3).await;
    let options = ms(2_000);
    let guard = world.locker.lock("k").ttl(options).auto_extend(Extend::Off).await.unwrap();
    let end = now().plus(options);
    let next = world.locker.lock("k").wait_forever().await.unwrap();
    assert!(now() <= end.plus(ms(100)), "{:?} behind the end", now().since(end));
    assert!(!guard.is_valid() && next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn without_a_quorum_all_find_out_by_themselves_and_as_soon_as_alone() {
    let world = World::with(3, Options::default()).await;
    let guard = world.locker.lock("k").await.unwrap();
    let waiting = (0..20).map(|_| run(world.locker.lock("k").wait(ms(60_000)).acquire()));
    let waiting: Vec<_> = waiting.collect();
    pass(ms(1)).await;
    world.set(1..3, Hangs);
    drop(guard);
    let began = now();
    for acquire in waiting {
        let error = acquire.await.unwrap().unwrap_err();
        assert!(error.is_unavailable(), "{error}");
    }
    assert!(now().since(began) <= ms(2_500), "{:?}", now().since(began));
    world.set(1..3, Grants);
}

/// During the outage it tries after its own pauses, and not when the one with the turn does.
#[tokio::test(start_paused = true)]
async fn who_was_let_go_asks_by_itself_until_the_nodes_answer_and_then_gets_in_line_again() {
    let world = World::ready(3).await;
    let beside = world.beside();
    let _foreign = beside.locker.lock("k").auto_extend(Extend::Forever).await.unwrap();
    world.nodes.iter().for_each(|node| node.clear_log());
    let began = now();
    for pause in [ms(1_000), ms(100)] {
        let lock = world.locker.lock("k").wait_forever().unavailable_wait(ms(60_000));
        run(lock.retry(Retry::fixed(pause)).acquire());
        pass(ms(10)).await;
    }
    // From the second try of who has the turn on, for half a second.
    pass(ms(500)).await;
    let outage = When::before("SET").then(Reaction::Answer(b"-OOM out of memory\r\n".to_vec()));
    world.nodes.iter().for_each(|node| node.add(outage.clone()));
    pass(ms(950)).await;
    world.set(0..3, Grants);
    pass(ms(2_000)).await;
    let asked = world.got(0, "SET").into_iter().map(|said| said.at.since(began).as_millis() / 10);
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked, [0, 100, 100, 110, 120, 130, 140, 150, 200, 300], "in 10 ms");
}

/// Two keys with one FNV-1a hash, found by search.
const ALIKE: [&str; 2] = ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"];

#[tokio::test(start_paused = true)]
async fn a_key_with_the_hash_of_one_that_is_held_is_acquired_all_the_same() {
    let world = World::ready(3).await;
    let held = world.locker.lock(ALIKE[0]).auto_extend(Extend::Forever).await.unwrap();
    let began = now();
    let other = world.locker.lock(ALIKE[1]).wait(ms(1_000)).await.unwrap();
    assert!(now().since(began) <= ms(500) + GRAIN, "{:?}", now().since(began));
    assert!(held.is_valid() && other.is_valid());
}
