//! What a claim for slots hears of the node that chooses them, and how it asks for those.
//!
//! That node sets them as it chooses them. It counts as every node does that has set a lock, from
//! the moment at which it was asked the last time; the others are asked for the same slots then.

use std::time::Duration;

use super::Claim;

/// What the node that keeps the queue says to one that asks for slots.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::lease) enum Picked {
    /// It has set these, counted from 0.
    Slots(Vec<u16>),
    /// They are too few. The first in the queue is told when there may be enough, if that is known.
    TooFew { is_first: bool, left: Option<Duration> },
}

/// To one that is not the first in the queue.
const BEHIND_OTHERS: i64 = -1;

/// To the first, where what stands in its way has no end.
const NO_END: i64 = -2;

impl Picked {
    /// What these numbers say to one that asks for so many of so many slots; `None` if no script of
    /// ours can have said that.
    fn read(numbers: &[i64], (weight, count): (u16, u16)) -> Option<Self> {
        match *numbers {
            [1, ref picked @ ..] => {
                let slot = |number: &i64| u16::try_from(*number - 1).ok().filter(|at| *at < count);
                let slots: Vec<u16> = picked.iter().map(slot).collect::<Option<_>>()?;
                let is_each_once = (1..slots.len()).all(|at| !slots[..at].contains(&slots[at]));
                let are_all = slots.len() == usize::from(weight) && is_each_once;
                are_all.then_some(Self::Slots(slots))
            }
            [-1, BEHIND_OTHERS] => Some(Self::TooFew { is_first: false, left: None }),
            [-1, NO_END] => Some(Self::TooFew { is_first: true, left: None }),
            [-1, left] => {
                let left = Duration::from_millis(u64::try_from(left).ok()?);
                Some(Self::TooFew { is_first: true, left: Some(left) })
            }
            _ => None,
        }
    }
}

impl Claim {
    /// What the node that keeps the queue has answered, if it can be that.
    pub(in crate::lease) fn picked(&self) -> Option<Picked> {
        let count = self.resource.slots_to_choose()?;
        let weight = self.resource.query()?.weight;
        let numbers = self.election.numbers(self.queue_node()?.node)?;
        Picked::read(&numbers, (weight, count))
    }

    /// These slots were chosen.
    pub(in crate::lease) fn choose(&mut self, numbers: &[u16]) {
        self.resource = self.resource.choosing(numbers);
        let queued = self.resource.queued();
        let queue_node = self.aside.as_mut().and_then(|aside| aside.queue_node.as_mut());
        if let Some((queue_node, queued)) = queue_node.zip(queued) {
            queue_node.resource = queued;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_as_many_different_slots_as_were_asked_for() {
        let read = |numbers: &[i64]| Picked::read(numbers, (2, 4));
        assert_eq!(read(&[1, 1, 4]), Some(Picked::Slots(vec![0, 3])));
        for other in [&[1][..], &[1, 2], &[1, 2, 2], &[1, 0, 1], &[1, 1, 5], &[1, 1, 2, 3], &[]] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }

    #[test]
    fn only_the_first_in_the_queue_is_told_when_there_may_be_enough() {
        let read = |left| Picked::read(&[-1, left], (1, 4));
        let too_few = |is_first, left: Option<u64>| {
            Some(Picked::TooFew { is_first, left: left.map(Duration::from_millis) })
        };
        assert_eq!(read(-1), too_few(false, None));
        assert_eq!(read(-2), too_few(true, None));
        assert_eq!(read(7), too_few(true, Some(7)));
        assert_eq!(read(0), too_few(true, Some(0)));
        assert_eq!(read(-3), None);
    }
}
