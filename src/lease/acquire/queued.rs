//! The part of an acquisition that nodes' queues have.

use std::time::Duration;

use super::{Done, Queued, Step, Tries};
use crate::clock::Moment;
use crate::error::Error;
use crate::lease::acquire_spec::AcquireSpec;
use crate::lease::pause;
use crate::lease::queue::{self, HEARTBEAT, Place, Wait};
use crate::lease::retry::{Known, within};
use crate::lease::{slotted, ticketed};

impl Tries {
    /// A place in a queue, if a node keeps one.
    fn place(&mut self, spec: &AcquireSpec) -> Result<Option<Place>, Error> {
        let Some(count) = spec.resource.slots_to_choose() else {
            return self.queueing.place(&spec.leases, &spec.resource, spec.ttl);
        };
        let resource = self.with_query(spec, count);
        self.queueing.place(&spec.leases, &resource, spec.ttl)
    }

    /// A place in the queue of those who wait for other lockers, if a node keeps one. `untold`: the
    /// observers have not been told that it waits, since then.
    pub(super) fn queue(
        &mut self,
        spec: &AcquireSpec,
        pause: Duration,
        untold: Option<Moment>,
    ) -> Result<Option<Queued>, Error> {
        if !self.order.may_queue() {
            return Ok(None);
        }
        let turn = self.order.turn();
        let is_by_ticket = spec.resource.is_by_ticket();
        let place = if is_by_ticket { None } else { self.place(spec)? };
        let (until, is_fenced, is_fair) = (self.waiting.until, spec.fenced, spec.fair);
        let has_met_readers = self.queueing.has_met_readers;
        let is_once = self.order.queues_once();
        let gate = self.queueing.gate(&spec.leases, &spec.resource);
        let wait =
            Wait { turn, has_met_readers, gate, until, pause, untold, is_fenced, is_fair, is_once };
        let leases = spec.leases.clone();
        if is_by_ticket {
            let asked = (spec.resource.clone(), spec.ttl);
            return Ok(Some(Box::pin(ticketed::wait(leases, asked, wait))));
        }
        Ok(place.map(|place| match spec.resource.slots_to_choose() {
            None => Box::pin(queue::wait(leases, place, wait)) as Queued,
            Some(_) => Box::pin(slotted::wait(leases, place, wait)),
        }))
    }

    /// The nodes have been asked in turn, or are to be asked by themselves, or it has waited long
    /// enough.
    #[inline(never)]
    pub(super) fn step_out_of_queue(
        &mut self,
        spec: &AcquireSpec,
        ended: Result<queue::Ended, Error>,
        drawn: Duration,
        started: Moment,
    ) -> Done {
        self.step = Step::Start;
        match ended? {
            queue::Ended::Asked { claim, verdict, sent } => {
                self.count = self.count.saturating_add(1);
                (self.waiting.tried, self.queueing.was_refused) = (sent, true);
                if claim.has_ticket() {
                    self.waiting.note_quorum();
                }
                self.step = Step::Asking(claim);
                if spec.fenced {
                    return Ok(None); // which gets its fence first
                }
                return self.decide(spec, Ok(verdict), started);
            }
            queue::Ended::Past(place) => {
                let is_best = place.is_at_best(&spec.leases, &spec.resource);
                if is_best || spec.resource.slots_to_choose().is_none() {
                    self.queueing.keep(place);
                    self.queueing.search.is_past = true;
                }
            }
            // The user has no right to the queue on any node.
            queue::Ended::Denied => {
                (self.queueing.search.is_past, self.queueing.search.is_denied) = (true, true);
            }
            queue::Ended::Overtaken => self.order.lose_turn(),
            // By that node alone: the others may know better.
            queue::Ended::Refused => self.queueing.search.is_past = true,
            queue::Ended::NoQueue(node) if spec.resource.slots_to_choose().is_some() => {
                self.queueing.avoid(node); // and the next one's is tried, if there is time
                let now = spec.leases.context.nodes.clock().now();
                self.queueing.search.is_past = self.waiting.until <= now;
            }
            queue::Ended::NoQueue(node) => {
                self.queueing.avoid(node);
                if self.count == 0 {
                    // The lock may be free. Who comes next need not ask this node first.
                    spec.forget_contention();
                    return Ok(None);
                }
                if let Some(queued) = self.queue(spec, drawn, None)? {
                    return self.go_on(Step::Queued { queued, drawn }); // at the next node
                }
                self.queueing.has_found_none = true;
                let left = self.waiting.until.since(spec.leases.context.nodes.clock().now());
                let pause = within(drawn.min(HEARTBEAT), Known::default(), left);
                let pausing = pause::plain(spec.leases.clone(), pause);
                return self.go_on(Step::Pausing(Box::pin(pausing)));
            }
            queue::Ended::Over => {
                spec.leases.context.check_open()?;
                self.failure.get_or_insert_with(|| spec.contended());
                return self.go_on(spec.look(&self.waiting, true, None));
            }
        }
        Ok(None)
    }
}
