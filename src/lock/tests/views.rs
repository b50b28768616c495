//! What the work under a lock sees of it: `protect`, `run`, `Held`, tokens.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use super::Behaviour::Hangs;
use super::{World, assert_due, ms, now, pass, warning};
use crate::error::Error;
use crate::lock::{Held, Locker, OnLoss};
use crate::observe::Loss;
use crate::options::Extend;

/// Says that it was dropped.
struct Dropped(Arc<Mutex<bool>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = true;
    }
}

#[tokio::test(start_paused = true)]
async fn protected_work_is_dropped_when_the_lock_is_lost() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    assert_eq!(guard.protect(async { 7 }).await.unwrap(), 7);

    let due = warning(&guard, ms(10_000));
    world.set(0..3, Hangs);
    let dropped = Arc::new(Mutex::new(false));
    let mark = Dropped(dropped.clone());
    let work = async move {
        let _mark = mark;
        pass(ms(60_000)).await;
    };
    let error = guard.protect(work).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(error.to_string().contains("\"k\""), "{error}");
    assert_due(now(), due);
    assert!(*dropped.lock().unwrap());
    let error = guard.protect(async { panic!("not one step") }).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
}

/// After a stall the work takes no further step, though it is due before the keeper.
#[tokio::test(start_paused = true)]
async fn protected_work_takes_no_step_after_the_end() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let driven = world.driven.clone();
    let work = async {
        driven.suspend(ms(60_000));
        tokio::task::yield_now().await;
        panic!("a step with a lock that is gone");
    };
    assert!(guard.protect(work).await.unwrap_err().is_lost());
}

#[tokio::test(start_paused = true)]
async fn run_drops_its_work_on_loss_or_lets_it_go_on_as_asked() {
    let world = World::ready(3).await;
    let request = || world.locker.lock("k").auto_extend(Extend::Off);
    let done = request()
        .run(|_| async {
            pass(ms(60_000)).await;
            Ok::<_, Error>(1)
        })
        .await;
    assert!(done.unwrap_err().is_lost());

    let began = now();
    let request = request().on_loss(OnLoss::Signal);
    let done = request.run(|held: Held| async move {
        assert!(held.is_valid());
        held.lost().await;
        let told = now();
        pass(ms(60_000)).await;
        assert!(!held.is_valid() && held.remaining().is_zero());
        Ok::<_, Error>(told)
    });
    let told = done.await.unwrap();
    assert_due(told, began.plus(ms(10_000 - 102 - 100)));
}

#[tokio::test(start_paused = true)]
async fn run_releases_whatever_comes_of_the_work() {
    #[derive(Debug, PartialEq)]
    enum Failure {
        Work,
        Lock,
    }
    impl From<Error> for Failure {
        fn from(_: Error) -> Self {
            Self::Lock
        }
    }
    let world = World::ready(3).await;
    for wanted in [Ok(3), Err(Failure::Work)] {
        let result = match wanted {
            Ok(value) => Ok(value),
            Err(_) => Err(Failure::Work),
        };
        let done = world.locker.lock("k").run(|_| async move {
            pass(ms(20_000)).await;
            result
        });
        assert_eq!(done.await, wanted);
        assert_eq!(world.keys("k"), 0);
    }
}

/// A view that outlives its lock says that it is over, also when another lock has its place.
#[tokio::test(start_paused = true)]
async fn a_view_outlives_its_lock_without_harm() {
    let world = World::ready(3).await;
    let work = |held: Held| async move { Ok::<_, Error>(held) };
    let held = world.locker.lock("k").run(work).await.unwrap();
    assert!(!held.is_valid() && held.remaining().is_zero());
    held.lost().await;
    let guard = world.locker.lock("other").await.unwrap();
    assert!(!held.is_valid() && guard.is_valid());
    held.lost().await;
}

/// A task that waits for the loss is told of the release, too.
#[tokio::test(start_paused = true)]
async fn a_view_that_waits_is_told_of_the_release() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let held = Held::new(&guard);
    let began = now();
    let (_, released) = tokio::join!(held.lost(), async {
        pass(ms(5_000)).await;
        guard.release().await
    });
    assert!(released.unwrap().is_released());
    assert_due(now(), began.plus(ms(5_000)));
}

#[cfg(feature = "tokio-util")]
#[tokio::test(start_paused = true)]
async fn a_token_is_cancelled_when_the_end_is_near() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let (token, again) = (guard.cancellation(), guard.cancellation());
    let due = warning(&guard, ms(10_000));
    token.cancelled().await;
    assert_due(now(), due);
    assert!(again.is_cancelled() && !guard.is_valid());
    assert!(guard.cancellation().is_cancelled(), "also one that is asked for then");
}

#[cfg(feature = "tokio-util")]
#[tokio::test(start_paused = true)]
async fn a_token_is_cancelled_when_its_lock_ends() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let token = guard.cancellation();
    assert!(guard.release().await.unwrap().is_released());
    assert!(token.is_cancelled());

    let guard = world.locker.lock("k").await.unwrap();
    let token = guard.cancellation();
    assert!(!token.is_cancelled(), "each lock has its own");
    world.locker.shutdown(ms(100)).await.unwrap();
    assert!(token.is_cancelled() && guard.cancellation().is_cancelled());
}

/// The type of errors is the caller's; one that cannot be is none.
#[tokio::test(start_paused = true)]
async fn protected_work_keeps_its_own_result() {
    let world = World::ready(1).await;
    let guard = world.locker.lock("k").await.unwrap();
    let done = guard.protect(async { Ok::<_, Infallible>("done") }).await.unwrap();
    assert_eq!(done, Ok("done"));
}

#[cfg(feature = "tokio-util")]
#[tokio::test(start_paused = true)]
async fn a_token_that_is_asked_for_after_the_loss_is_cancelled() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    guard.lost().await;
    pass(ms(1)).await;
    assert!(guard.cancellation().is_cancelled());
}

/// What `run` lends can do what the guard can, but end the lock.
#[tokio::test(start_paused = true)]
async fn what_is_lent_extends_and_says_its_key_and_its_votes() {
    let world = World::ready(3).await;
    let lock = world.locker.lock("order:42").auto_extend(Extend::Off);
    let lent = lock.run_async(async |held: Held| {
        assert_eq!(held.key().to_string(), "order:42");
        assert_eq!(held.votes().len(), 3);
        held.extend(ms(60_000)).await?;
        assert!(held.remaining() > ms(50_000));
        Ok::<_, Error>(held)
    });
    let held = lent.await.unwrap();
    assert!(!held.is_valid() && held.votes().is_empty());
    assert_eq!(held.key().to_string(), "order:42");
    assert_eq!(held.lost().await, Loss::Released);
    assert!(held.extend(ms(1_000)).await.unwrap_err().is_lost());
}

/// The guard ends with the work, before a task of its own looks: it was a loss all the same.
#[tokio::test(start_paused = true)]
async fn what_outlives_a_lost_lock_says_why_it_was_lost() {
    let world = World::ready(3).await;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let request = world.locker.lock("k").auto_extend(Extend::Off);
    let lost = request.run_async(async |held: Held| {
        assert!(sender.send(held).is_ok());
        std::future::pending::<Result<(), Error>>().await
    });
    assert!(lost.await.unwrap_err().is_lost());
    let held = receiver.await.unwrap();
    assert_eq!(held.lost().await, Loss::Expired);
    let guard = world.locker.lock("k").await.unwrap();
    assert_eq!(held.lost().await, Loss::Expired, "the place is another lock's");
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_loss_says_why_to_those_who_wait_for_it() {
    let world = World::ready(3).await;
    let guards = [
        world.locker.lock("a").auto_extend(Extend::Off).await.unwrap(),
        world.locker.lock("b").await.unwrap(),
        world.locker.lock("c").await.unwrap(),
    ];
    assert_eq!(guards[0].lost().await, Loss::Expired);
    world.nodes[..2].iter().for_each(|node| node.delete("b"));
    assert_eq!(guards[1].lost().await, Loss::Gone);
    world.locker.shutdown(ms(1_000)).await.unwrap();
    assert_eq!(guards[2].lost().await, Loss::Closed);
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_and_a_lock_that_is_lost_are_one_result() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let works = guard.try_protect(async { Ok::<_, Error>(1) });
    assert_eq!(works.await.unwrap(), 1);
    let fails = guard.try_protect(async { Err::<u32, _>(Error::misuse("no")) });
    assert!(fails.await.unwrap_err().is_misuse());
    let never = guard.try_protect(std::future::pending::<Result<u32, Error>>());
    assert!(never.await.unwrap_err().is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_request_is_a_future_for_what_takes_no_other() {
    let world = World::ready(3).await;
    let requests = ["a", "b"].map(|key| world.locker.lock(key).acquire());
    let guards = tokio::task::JoinSet::from_iter(requests).join_all().await;
    assert!(guards.iter().all(|guard| guard.as_ref().unwrap().is_valid()));
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_of_a_lock_names_it_and_not_its_value() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    let held = Held::new(&guard);
    let shown =
        [format!("{guard:?}"), format!("{held:?}"), format!("{:?}", world.locker.lock("k"))];
    for shown in shown {
        assert!(shown.contains("\"k\""), "{shown}");
        assert!(!shown.contains(guard.owner_token().as_str()), "{shown}");
    }
    assert_eq!(format!("{guard:?} {held:?}").matches("remaining: 9.").count(), 2);
    let shown = format!("{:?}", guard.owner_token());
    assert_eq!(shown, "OwnerToken { is_left_behind: false, .. }");
    let shown = format!("{:?}", Locker::single("redis://:canary@a").unwrap());
    assert!(shown.contains("a:6379") && !shown.contains("canary"), "{shown}");
    let shown = format!("{:?}", world.locker);
    assert!(shown.contains("\"node-2:6379\"") && shown.contains("test1"), "{shown}");
}

/// It waits all the same: another future of its task may hold the lock, and let go of it.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_lock_of_its_own_locker_is_told_so_at_once() {
    let world = World::ready(3).await;
    let _guard = world.locker.lock("k").await.unwrap();
    let (other, began) = (world.beside(), now());
    for (world, is_own) in [(&world, true), (&other, false)] {
        let error = world.locker.lock("k").wait(ms(200)).await.unwrap_err();
        assert_eq!(error.to_string().contains("a guard of this very locker"), is_own, "{error}");
        let waits = world.told.waits();
        assert_eq!((waits.len(), waits[0].1), (1, is_own));
    }
    assert_eq!(world.told.waits()[0].0, began);
}
