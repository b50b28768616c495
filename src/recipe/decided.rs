//! One try for a lock, repeated while none has it.
//!
//! Several that ask at the same time can divide the nodes between them, so that none of them has a
//! majority. A single try would be refused for each; but then none would do what one of them was
//! to do.

use std::time::Duration;

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::Error;
use crate::lock::{LockGuard, LockRequest};
use crate::report::{Holder, Outcome};

/// For how long a try is repeated that none has won.
const UNDECIDED_MAX: Duration = Duration::from_secs(10);

/// What lies between the first two such tries, at most; then twice as much each time, and no more
/// than the longest. The nodes may be near, and who is first with the next try has it.
const FIRST_PAUSE: Duration = Duration::from_millis(3);
const LONGEST_PAUSE: Duration = Duration::from_millis(24);

/// Who has the lock.
pub(super) enum Decided {
    Ours(LockGuard),
    Others(Holder),
}

/// Whether this try was one node short of a majority. Such a try is repeated sooner, so that those
/// who were further from it do not divide the nodes once more.
fn is_nearest(undecided: &Error) -> bool {
    let nodes = undecided.nodes();
    let granted = nodes.iter().filter(|node| node.outcome == Outcome::Granted).count();
    granted == nodes.len() / 2
}

/// Asks for the lock, and waits for no holder of it. The error is that of the last try where it was
/// never decided.
pub(super) async fn decided(request: impl Fn() -> LockRequest) -> Result<Decided, Error> {
    let clock = Clock::default();
    let until = clock.now().plus(UNDECIDED_MAX);
    let mut longest = FIRST_PAUSE;
    loop {
        let undecided = match request().wait(Duration::ZERO).await {
            Ok(guard) => return Ok(Decided::Ours(guard)),
            Err(error) if error.is_contended() => error,
            Err(error) => return Err(error),
        };
        if let Some(holder) = undecided.holder() {
            return Ok(Decided::Others(holder.clone()));
        }
        let now = clock.now();
        if now >= until || !clock.can_sleep() {
            return Err(undecided);
        }
        // Not for long: all of them may be that near.
        let (low, high) = match is_nearest(&undecided) && longest < LONGEST_PAUSE {
            true => (longest / 16, longest / 4),
            false => (longest / 4, longest),
        };
        let pause = Entropy::from_system()?.between(low, high);
        clock.sleep_until(now.plus(pause)).await;
        longest = (longest * 2).min(LONGEST_PAUSE);
    }
}
