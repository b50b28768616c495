//! Observers that panic take a task with them, and no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;

use super::Behaviour::After;
use super::{World, ms, pass};
use crate::observe::{Event, Observer};
use crate::options::Options;

/// Panics when it is told of the first such event.
pub(super) struct Bomb {
    trigger: fn(&Event<'_>) -> bool,
    gone_off: AtomicBool,
}

impl Bomb {
    pub(super) fn new(trigger: fn(&Event<'_>) -> bool) -> Arc<Self> {
        Arc::new(Self { trigger, gone_off: AtomicBool::new(false) })
    }

    pub(super) fn has_gone_off(&self) -> bool {
        self.gone_off.load(Ordering::SeqCst)
    }
}

impl Observer for Bomb {
    fn on_event(&self, event: &Event<'_>) {
        if (self.trigger)(event) && !self.gone_off.swap(true, Ordering::SeqCst) {
            // As a panic, without the words.
            std::panic::resume_unwind(Box::new("an observer's panic"));
        }
    }
}

/// What the holder does next, which starts another keeper.
#[derive(Clone, Copy, Debug)]
enum Next {
    TakesAnother,
    Extends,
    WaitsForTheLoss,
}

/// Several extensions are in flight when the first that lands is told of.
#[tokio::test(start_paused = true)]
async fn locks_are_extended_again_after_an_observer_has_panicked() {
    for next in [Next::TakesAnother, Next::Extends, Next::WaitsForTheLoss] {
        let mut options = Options::default();
        let bomb = Bomb::new(|event| matches!(event, Event::Extended { .. }));
        options.observers.add(bomb.clone());
        let world = World::with(3, options).await;
        let mut guards = Vec::new();
        for lock in 0..8 {
            guards.push(world.locker.lock(format!("k{lock}")).await.unwrap());
        }
        world.set(0..3, After(ms(20)));
        tokio::time::advance(ms(4_000)).await;
        pass(ms(100)).await;
        assert!(bomb.has_gone_off(), "the keeper has ended");

        match next {
            Next::TakesAnother => guards.push(world.locker.lock("next").await.unwrap()),
            Next::Extends => guards[7].extend(ms(10_000)).await.unwrap(),
            Next::WaitsForTheLoss => {
                let early = guards[7].protect(pass(ms(1))).await;
                assert!(early.is_ok(), "{early:?}");
            }
        }
        for _ in 0..60 {
            pass(ms(1_000)).await;
            for guard in &guards {
                assert!(guard.remaining() > ms(5_000), "{next:?}: {guard:?}");
            }
        }
        assert_eq!(world.told.losses(), []);
    }
}

/// No guard has the lock yet when it is told of.
#[tokio::test(start_paused = true)]
async fn a_lock_is_let_go_when_an_observer_panics_at_its_acquisition() {
    let mut options = Options::default();
    options.observers.add(Bomb::new(|event| matches!(event, Event::Acquired { .. })));
    let world = World::with(3, options).await;
    let locker = world.locker.clone();
    let mut acquiring = JoinSet::new();
    acquiring.spawn(async move { locker.lock("k").await });
    assert!(acquiring.join_next().await.unwrap().unwrap_err().is_panic());
    pass(ms(1)).await;
    assert_eq!(world.keys("k"), 0);
    assert!(world.locker.lock("k").try_acquire().await.unwrap().is_some());
}

/// It is told by the driver, which all connections end with.
#[tokio::test(start_paused = true)]
async fn a_lock_lives_on_after_an_observer_has_panicked_at_a_nodes_end() {
    let mut options = Options::default();
    let bomb = Bomb::new(|event| matches!(event, Event::NodeDown { .. }));
    options.observers.add(bomb.clone());
    let world = World::with(3, options).await;
    let guard = world.locker.lock("k").await.unwrap();
    world.nodes[2].cut();
    pass(ms(1)).await;
    assert!(bomb.has_gone_off(), "the driver has ended");
    for _ in 0..60 {
        pass(ms(1_000)).await;
        assert!(guard.remaining() > ms(5_000), "{guard:?}");
    }
    assert_eq!(world.holders(&guard), [0, 1, 2]);
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.keys("k"), 0);
}
