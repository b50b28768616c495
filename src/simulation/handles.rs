//! Two handles of a lock: it is held until the last of them ends, whichever that is.

use super::chance::{self, Chance};
use super::counts::Action;
use super::hold::Hold;
use super::violation::Kind;
use super::worker::Worker;
use crate::{LockGuard, Release};

impl Worker {
    /// Some take another handle of their lock and let go of one of them: they hold it as before.
    pub(super) async fn change_handles(&self, guard: LockGuard, hold: &Hold) -> LockGuard {
        let seed = self.hub.with(|world| world.plan.seed);
        let mut chance = Chance::new(seed, chance::HANDLES + hold.number);
        if !chance.percent(20) {
            return guard;
        }
        let other = guard.share();
        let (ends, stays) = if chance.percent(50) { (guard, other) } else { (other, guard) };
        self.count(Action::HandleEnded);
        if chance.percent(50) {
            return stays; // the other one is dropped
        }
        let was_valid = ends.is_valid();
        let told = ends.release().await;
        let is_right = match &told {
            Ok(release) => was_valid && matches!(release, Release::Shared),
            Err(error) => !was_valid && error.is_lost(),
        };
        if !is_right {
            let number = hold.number;
            let what = format!("a handle of guard {number}, which has another one: {told:?}");
            self.hub.with(|world| world.oracle.violate(Kind::FalseRelease, what));
        }
        stays
    }
}
