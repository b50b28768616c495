//! The part of an acquisition that slots have: first some are chosen, by the node that keeps their
//! queue or by a look at all nodes, and then all nodes are asked for those.

use super::{Done, Step, Tries};
use crate::clock::Moment;
use crate::error::Error;
use crate::lease::acquire_spec::AcquireSpec;
use crate::lease::claim::Claim;
use crate::lease::resource::Resource;
use crate::lease::search::{self, Found};

impl Tries {
    /// Asks the node that keeps the queue for some of so many slots. Where there is none, all nodes
    /// are looked at.
    #[inline(never)]
    pub(super) fn begin_with_slots(
        &mut self,
        spec: &AcquireSpec,
        count: u16,
        started: Moment,
    ) -> Done {
        let context = &spec.leases.context;
        self.waiting.until = spec.until(started);
        let is_past = std::mem::take(&mut self.queueing.search.is_past);
        if !is_past && context.check_can_sleep().is_ok() {
            self.queueing.was_refused = false;
            let drawn = spec.draw(1).unwrap_or_default();
            if let Some(queued) = self.queue(spec, drawn, Some(started))? {
                return self.go_on(Step::Queued { queued, drawn });
            }
        }
        let resource = self.with_query(spec, count);
        let searching = Box::pin(search::look(spec.leases.clone(), resource));
        self.go_on(Step::Searching(searching))
    }

    /// It is known which slots may be free: all nodes are asked for them.
    #[inline(never)]
    pub(super) fn ask_for_found(
        &mut self,
        spec: &AcquireSpec,
        found: Result<Found, Error>,
        started: Moment,
    ) -> Done {
        let (found, context) = (found?, &spec.leases.context);
        self.queueing.search.note(&found);
        let sent = context.nodes.clock().now();
        // A look behind a choice that came to nothing is a part of the same try.
        if !(found.free.is_empty() && self.queueing.search.has_missed()) {
            self.count = self.count.saturating_add(1);
        }
        (self.waiting.tried, self.step) = (sent, Step::Start);
        if !found.free.is_empty() {
            let count = spec.resource.slots_to_choose().unwrap_or_default();
            let resource = self.with_query(spec, count).choosing(&found.free);
            self.step = Step::Asking(Claim::ask(context, resource, None, spec.ttl, sent)?);
            return Ok(None);
        }
        if self.queueing.has_kept() {
            return Ok(None); // it waits on in the queue
        }
        self.fail(spec, spec.contended(), started)
    }

    /// Whether other slots are looked for at once, where those were held that were thought to be
    /// free.
    pub(super) fn goes_on_searching(&mut self, spec: &AcquireSpec, failure: &Error) -> bool {
        let Some(count) = spec.resource.slots_to_choose().filter(|_| failure.is_contended()) else {
            return false;
        };
        self.queueing.search.goes_on(count) || self.queueing.has_kept()
    }

    /// The slots that it wants, and where it looks for them.
    pub(super) fn with_query(&mut self, spec: &AcquireSpec, count: u16) -> Resource {
        let search = &mut self.queueing.search;
        let start = search.start(count, spec.leases.context.nodes.entropy());
        spec.resource.with_query(start, !self.order.queues_once(), !search.is_denied)
    }
}
