//! How a locker picks the tokens that it asks nodes to take as a lock's fence, and why a fence
//! rises with every holder.
//!
//! Each node keeps a fence beside the lock. A token is put to all nodes with the acquisition, or
//! behind it, and a node takes it only if the lock is held there and the fence is below it
//! (`fence.lua`). A token that a majority has taken is the holder's fence. Two such majorities
//! share a node, on which one came after the other and was above it: so no two holders have the
//! same fence, and who asks after another has got its own gets a higher one. That holds whatever
//! the clocks say and however long the locks last; the clock only picks a token that is likely to
//! be high enough. Where it was not, the answers say what is.
//!
//! A node whose fence is missing puts its own time in its place, in microseconds: so a fence may be
//! dropped once that time is past it (a week past it, for clocks that are set back), and a node
//! that has forgotten all its fences does not begin at zero.
//!
//! `tests/fence_model.rs` looks at every order of events with few clients, and shows what happens
//! where a node takes a token that is not above its fence, where a token counts that no majority
//! has taken, and where a node that has forgotten begins at zero or votes at once.

use std::time::Duration;

use crate::fence::Fence;
use crate::sync::{Mutex, lock};

/// How far ahead of a node's clock a token may lie; a first one half as far. By that half the
/// clocks of clients may be ahead without a round trip more, and those of nodes may be apart.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// What a locker begins with: more than a command takes to a node whose clock is the same.
const LEAD_FIRST: Duration = Duration::from_millis(10);

/// Which of the fences that nodes have told the next token is to be above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// Above as many as are needed, and those that are near them: a node whose clock runs far ahead
    /// does not carry the others with it.
    Near,
    /// Above as many as are needed, and no more: the others may be too far ahead for these.
    Lowest,
    /// Above all: it may be the lower ones that are too far behind.
    Highest,
}

/// Which token a locker tries next.
pub(super) struct Tokens {
    known: Mutex<Known>,
    /// How far ahead of this process's clock tokens may be, because other clocks are ahead of it:
    /// half of what a node takes.
    lead_max: u64,
}

struct Known {
    /// The last token that was tried.
    last: u64,
    /// How far ahead of this process's clock the tokens are, in microseconds.
    lead: u64,
}

impl Tokens {
    /// For nodes that take tokens so far [`ahead`] of their clocks.
    pub(super) fn new(ahead: u64) -> Self {
        let lead_max = ahead / 2;
        let known = Known { last: 0, lead: micros(LEAD_FIRST).min(lead_max) };
        Self { known: Mutex::new(known), lead_max }
    }

    /// A token of this time, above all that were picked before.
    pub(super) fn pick(&self, now: Duration) -> Fence {
        let mut known = lock(&self.known);
        let token = micros(now).saturating_add(known.lead).max(known.last.saturating_add(1));
        let token = Fence::from_number(token).unwrap_or(Fence::MAX);
        known.last = token.number();
        token
    }

    /// The token that was put to the nodes at this time was too low: those that have told it stand
    /// at these fences, and so many must take the next one. `None` where none has told.
    pub(super) fn next(
        &self,
        put: Duration,
        fences: &mut [Fence],
        needed: usize,
        aim: Aim,
    ) -> Option<Fence> {
        fences.sort_unstable();
        let enough = fences.get(needed.saturating_sub(1)).or_else(|| fences.last())?.number();
        let reach = match aim {
            Aim::Near => self.lead_max,
            Aim::Lowest => 0,
            Aim::Highest => u64::MAX,
        };
        let near = |fence: &&Fence| fence.number() <= enough.saturating_add(reach);
        let highest = fences.iter().rfind(near).map_or(enough, |fence| fence.number());
        // What would have been enough when it was sent. If clients took more, each would push the
        // leads of the others up; nor is one node whose clock is wrong to be followed.
        if aim != Aim::Highest {
            let lead = (highest + 1).saturating_sub(micros(put)).min(self.lead_max);
            let mut known = lock(&self.known);
            known.lead = known.lead.max(lead);
        }
        Fence::from_number(highest + 1)
    }
}

/// How far ahead of a node's clock a token may lie there. Where servers may forget, no further than
/// a node that has forgotten takes no part: then its time is past all that it may have taken, if
/// its clock was not set back.
pub(super) fn ahead(longest_ttl: Option<Duration>) -> u64 {
    micros(longest_ttl.map_or(AHEAD_MAX, |longest| longest.min(AHEAD_MAX)))
}

/// Of a time since 1970: below 2⁵³ until the year 2255.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);
    const SECOND: u64 = 1_000_000;

    fn fences(numbers: &[u64]) -> Vec<Fence> {
        numbers.iter().map(|number| Fence::from_number(*number).unwrap()).collect()
    }

    #[test]
    fn tokens_follow_the_clock_and_rise_when_it_does_not() {
        let tokens = Tokens::new(ahead(None));
        let first = tokens.pick(NOW);
        assert_eq!(first.number(), micros(NOW + LEAD_FIRST));
        assert_eq!(tokens.pick(NOW).number(), first.number() + 1);
        assert_eq!(tokens.pick(NOW - Duration::from_secs(5)).number(), first.number() + 2);
        let later = NOW + Duration::from_millis(1);
        assert_eq!(tokens.pick(later).number(), micros(later + LEAD_FIRST));
    }

    #[test]
    fn the_next_token_is_above_what_a_majority_has_told() {
        let tokens = Tokens::new(ahead(None));
        let now = micros(NOW);
        let next = |told: &[u64], needed| {
            let next = tokens.next(NOW, &mut fences(told), needed, Aim::Near);
            next.map(|fence| fence.number() - now)
        };
        assert_eq!(next(&[now + 7, now + 5, now + 3], 2), Some(8));
        assert_eq!(next(&[now + 3_600 * SECOND, now + 5, now + 3], 2), Some(6), "one is far ahead");
        assert_eq!(next(&[now + 5], 2), Some(6), "the others have told nothing");
        let told = [now + 7, now + 5, now + 3_600 * SECOND];
        let aims = [(Aim::Near, 8), (Aim::Lowest, 8), (Aim::Highest, 3_600 * SECOND + 1)];
        for (aim, above) in aims {
            let next = tokens.next(NOW, &mut fences(&told), 2, aim).unwrap();
            assert_eq!(next.number() - now, above, "{aim:?}");
        }
        let lowest = tokens.next(NOW, &mut fences(&[now + 7, now + 5, now + 3]), 2, Aim::Lowest);
        assert_eq!(lowest.map(Fence::number), Some(now + 6));
        assert_eq!(next(&[], 2), None);
    }

    #[test]
    fn what_was_too_low_is_learned_from_and_only_so_far() {
        let tokens = Tokens::new(ahead(None));
        tokens.next(NOW, &mut fences(&[micros(NOW) + SECOND]), 1, Aim::Near);
        assert_eq!(tokens.pick(NOW).number(), micros(NOW) + SECOND + 1);
        tokens.next(NOW, &mut fences(&[micros(NOW) + 3_600 * SECOND]), 1, Aim::Near);
        assert_eq!(tokens.pick(NOW).number(), micros(NOW) + 5 * SECOND);
    }

    #[test]
    fn no_token_is_above_the_highest_fence() {
        let tokens = Tokens::new(ahead(None));
        assert_eq!(tokens.next(NOW, &mut [Fence::MAX], 1, Aim::Near), None);
        assert_eq!(tokens.pick(Duration::from_secs(u64::MAX)), Fence::MAX);
    }

    /// A node that has forgotten takes no part for so long.
    #[test]
    fn no_token_lies_further_ahead_than_a_quarantine_lasts() {
        assert_eq!(ahead(None), 10 * SECOND);
        assert_eq!(ahead(Some(Duration::from_secs(30))), 10 * SECOND);
        assert_eq!(ahead(Some(Duration::from_millis(700))), 700_000);
    }
}
