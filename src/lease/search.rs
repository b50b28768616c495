//! Looking for free slots where no queue's node has chosen them.
//!
//! All nodes are asked what stands under the slots' names, and of those that may be free some are
//! asked for: what one node believes keeps no one from a slot, and no one asks for those that a
//! majority holds. It takes a round trip more than a choice by the queue's node.

use std::future::poll_fn;
use std::sync::Arc;

use super::leases::Leases;
use super::resource::Resource;
use crate::entropy::Entropy;
use crate::error::Error;
use crate::link::ReplyKind;
use crate::quorum::{NodeMask, Patience};

/// How often at once the slots are looked at again that were found held, after all.
const LOOKS_MAX: u16 = 3;

/// Where one looks for free slots.
#[derive(Clone, Copy)]
pub(super) struct Search {
    /// From this one on; `None` before the first look.
    start: Option<u16>,
    /// How often slots were found held that were thought to be free, since the last pause.
    missed: u16,
    /// The last look has said nothing: the slots are asked for one behind the other.
    is_blind: bool,
    /// All nodes are looked at next, past the queue.
    pub(super) is_past: bool,
    /// The user may not ask for slots in the queue.
    pub(super) is_denied: bool,
}

/// What a look has found.
pub(super) struct Found {
    /// Slots that may be free; none, if they are too few.
    pub(super) free: Vec<u16>,
    /// The nodes have said nothing.
    is_blind: bool,
}

impl Search {
    pub(super) const NOT_YET: Self =
        Self { start: None, missed: 0, is_blind: false, is_past: false, is_denied: false };

    /// From where to look, of so many: by chance at first, so that those who look at once do not
    /// meet.
    pub(super) fn start(&mut self, count: u16, entropy: &Entropy) -> u16 {
        *self.start.get_or_insert_with(|| entropy.below(count))
    }

    pub(super) fn note(&mut self, found: &Found) {
        self.is_blind = found.is_blind;
    }

    /// These were held that were thought to be free: the next look begins behind the first of them.
    pub(super) fn note_held(&mut self, slots: &[u16]) {
        self.start = slots.first().map(|slot| slot + 1).or(self.start);
    }

    /// Whether slots were found held that were thought to be free, since the last pause.
    pub(super) fn has_missed(&self) -> bool {
        self.missed > 0
    }

    /// Counts a miss, and says whether other slots, of so many, are looked for at once.
    pub(super) fn goes_on(&mut self, count: u16) -> bool {
        self.missed += 1;
        self.is_past = self.missed < if self.is_blind { count } else { LOOKS_MAX };
        self.is_past
    }

    /// A try has failed, and the next one begins anew.
    pub(super) fn note_pause(&mut self) {
        self.missed = 0;
    }
}

/// Looks at all nodes for slots that may be free, as many as are wanted, from where that says on.
pub(super) async fn look(leases: Arc<Leases>, resource: Resource) -> Result<Found, Error> {
    let context = &leases.context;
    let Some((count, query)) = resource.slots_to_choose().zip(resource.query()) else {
        return Ok(Found { free: Vec::new(), is_blind: true });
    };
    let mut words: Vec<&[u8]> = vec![b"MGET"];
    words.extend(resource.keys().iter().map(|key| key.full()));
    let (affinity, rule) = (resource.affinity(), context.nodes.rule(Patience::All));
    let asked = context.ask(&words, ReplyKind::Any, affinity, NodeMask::ALL, rule)?;
    poll_fn(|cx| asked.poll_verdict(cx)).await;
    let (mut told, mut held) = (0, vec![0; usize::from(count)]);
    for node in 0..context.nodes.len() {
        let Some(frame) = asked.take_frame(node) else { continue };
        let Ok(values) = frame.as_items() else { continue };
        told += 1;
        let stands = held.iter_mut().zip(values).filter(|(_, value)| !value.is_null());
        stands.for_each(|(held, _)| *held += 1);
    }
    let majority = context.nodes.majority();
    let slots = (0..count).map(|step| (query.start + step) % count);
    let may_be_free = slots.filter(|slot| held[usize::from(*slot)] < majority);
    let free: Vec<u16> = may_be_free.take(query.weight.into()).collect();
    let are_enough = free.len() == usize::from(query.weight);
    Ok(Found { free: if are_enough { free } else { Vec::new() }, is_blind: told == 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(free: &[u16], is_blind: bool) -> Found {
        Found { free: free.to_vec(), is_blind }
    }

    #[test]
    fn it_begins_by_chance_and_stays_there() {
        let entropy = Entropy::from_seed(1);
        let starts = (0..64).map(|_| {
            let mut search = Search::NOT_YET;
            let start = search.start(8, &entropy);
            assert_eq!(search.start(8, &entropy), start);
            start
        });
        let starts: std::collections::BTreeSet<u16> = starts.collect();
        assert!(starts.len() > 4 && starts.iter().all(|start| *start < 8), "{starts:?}");
    }

    #[test]
    fn it_goes_on_behind_what_was_held() {
        let (mut search, entropy) = (Search::NOT_YET, Entropy::from_seed(1));
        search.note_held(&[5, 6]);
        assert_eq!(search.start(8, &entropy), 6);
        search.note_held(&[]);
        assert_eq!(search.start(8, &entropy), 6, "nothing was asked for");
    }

    #[test]
    fn between_two_pauses_it_looks_a_few_times_and_where_no_node_answers_for_each_slot() {
        for (is_blind, looks) in [(false, LOOKS_MAX), (true, 16)] {
            let mut search = Search::NOT_YET;
            search.note(&found(&[1], is_blind));
            for _ in 0..2 {
                assert!(!search.has_missed());
                assert_eq!(
                    (0..20).take_while(|_| search.goes_on(16)).count() + 1,
                    usize::from(looks)
                );
                assert!(search.has_missed() && !search.is_past);
                search.note_pause();
            }
        }
    }
}
