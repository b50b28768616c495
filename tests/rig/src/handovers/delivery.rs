//! To which clients a token goes, and when: pure.

use std::time::Duration;

use crate::line::Copies;
use crate::random::Random;

/// One copy of a token that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) handover: u64,
    /// How long after the hand-over.
    pub(crate) after: Duration,
    /// The client's place.
    pub(crate) slot: usize,
}

/// Draws the copies of a token that the client in place `giver` of so many hands over.
pub(crate) fn deliveries(
    random: &mut Random,
    handover: u64,
    (giver, clients): (usize, usize),
    copies: Copies,
    ttl: Duration,
) -> Vec<Delivery> {
    // Where there is but one client, it hands over to itself.
    let others = clients.saturating_sub(1).max(1) as u64;
    let other = |steps: u64| (giver + 1 + (steps % others) as usize) % clients.max(1);
    let first = random.below(others);
    let at = |after, slot| Delivery { handover, after, slot };
    let now = at(Duration::ZERO, other(first));
    match copies {
        Copies::One => vec![now],
        Copies::Two => vec![now, at(Duration::ZERO, other(first + 1))],
        Copies::Again => {
            let later = random.between(Duration::ZERO, ttl * 3 / 2);
            vec![now, at(later, other(first + random.below(2)))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(1);

    #[test]
    fn two_copies_go_to_two_others() {
        let mut random = Random::new(1, 1);
        for giver in 0..8 {
            let copies = deliveries(&mut random, 5, (giver, 8), Copies::Two, TTL);
            let [first, second] = copies[..] else { panic!("two copies: {copies:?}") };
            assert!(first.slot != second.slot && first.slot != giver && second.slot != giver);
            assert_eq!((first.after, second.after), (Duration::ZERO, Duration::ZERO));
        }
    }

    #[test]
    fn a_lone_client_hands_over_to_itself() {
        let mut random = Random::new(1, 1);
        for copies in [Copies::One, Copies::Two, Copies::Again] {
            let copies = deliveries(&mut random, 5, (0, 1), copies, TTL);
            assert!(copies.iter().all(|copy| copy.slot == 0), "{copies:?}");
        }
    }
}
