//! What a claim for slots hears of the node that chooses them, and how it asks for those.
//!
//! That node sets them as it chooses them. It counts as every node does that has set a lock, from
//! the moment at which it was asked the last time; the others are asked for the same slots then.

use std::time::Duration;

use super::Claim;

/// What the node that keeps the queue says to one that asks for slots.
pub(in crate::lease) enum Picked {
    /// It has set these, counted from 0.
    Slots(Vec<u16>),
    /// They are too few. To the first in the queue: when there may be enough, if that is known.
    TooFew { left: Option<Duration> },
}

impl Claim {
    /// What the node that keeps the queue has answered, if it can be that.
    pub(in crate::lease) fn picked(&self) -> Option<Picked> {
        let count = self.resource.slots_to_choose()?;
        let weight = usize::from(self.resource.query()?.weight);
        let numbers = self.election.numbers(self.queue_node()?.node)?;
        match numbers[..] {
            [1, ref picked @ ..] => {
                let slot = |number: &i64| u16::try_from(*number - 1).ok().filter(|at| *at < count);
                let slots: Vec<u16> = picked.iter().map(slot).collect::<Option<_>>()?;
                let is_each_once = (1..slots.len()).all(|at| !slots[..at].contains(&slots[at]));
                (slots.len() == weight && is_each_once).then_some(Picked::Slots(slots))
            }
            [-1, left] => {
                Some(Picked::TooFew { left: u64::try_from(left).ok().map(Duration::from_millis) })
            }
            _ => None,
        }
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
