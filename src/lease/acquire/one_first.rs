//! The tries for several keys that follow a refusal: one node is asked before the others.
//!
//! All clients with the same prefix find the same node, so of those that ask for keys in common at
//! the same time one alone asks the others, and the rest come to nothing at the cost of a command
//! each. The first try asks all nodes, for that is one round trip less; and so does every fourth
//! one behind refusals: a value that was left on the one node alone, as by a client that crashed
//! while it asked, must not keep others from keys that are free.
//!
//! What that node has granted counts from the moment at which it was asked.

use super::{Done, Step, Tries};
use crate::clock::Moment;
use crate::error::{Error, Kind};
use crate::lease::acquire_spec::{AcquireSpec, Waiting};
use crate::lease::claim::Claim;
use crate::lease::key::Key;
use crate::lease::queue_node;
use crate::quorum::Verdict;

/// Every fourth try asks all nodes at once.
const ALL_ASKED_EACH: u32 = 4;

impl Tries {
    /// The node that the next try asks first; `None` if all are asked at once.
    pub(super) fn one_to_ask_first(&self, spec: &AcquireSpec) -> Option<usize> {
        let context = &spec.leases.context;
        let is_due = self.failed_contended() && self.count % ALL_ASKED_EACH != 0;
        let are_several = spec.resource.keys().len() > 1 && context.nodes.len() > 1;
        (is_due && are_several)
            .then(|| queue_node::first(context, Key::hash(&context.options.prefix)))
            .flatten()
    }

    #[inline(never)]
    pub(super) fn ask_one_first(&mut self, spec: &AcquireSpec, node: usize, sent: Moment) -> Done {
        let (context, ttl) = (&spec.leases.context, spec.ttl);
        let claim = Claim::ask_one(context, spec.resource.clone(), (ttl, node), sent)?;
        self.go_on(Step::AskingOne(Box::new((claim, node))))
    }

    /// The node that was asked first has answered.
    #[inline(never)]
    pub(super) fn decide_one(
        &mut self,
        spec: &AcquireSpec,
        verdict: Verdict,
        started: Moment,
    ) -> Done {
        let Step::AskingOne(asked) = std::mem::replace(&mut self.step, Step::Start) else {
            return Ok(None);
        };
        let (mut claim, node) = *asked;
        if verdict == Verdict::Won {
            claim.ask_others(node, spec.leases.context.nodes.clock().now())?;
            if spec.fenced {
                claim.ask_fence()?;
            }
            return self.go_on(Step::Asking(claim));
        }
        if let Some(failure) = spec.judge_one(&mut claim, node, &mut self.waiting) {
            return self.fail(spec, failure, started);
        }
        // It is of no use now: all are asked, which is a part of the same try.
        drop(claim);
        self.waiting.tried = spec.leases.context.nodes.clock().now();
        self.go_on(Step::Asking(spec.ask(self.waiting.tried)?))
    }
}

impl AcquireSpec {
    /// The error of a try that this node has refused, because another holds one of the keys.
    fn judge_one(&self, claim: &mut Claim, node: usize, waiting: &mut Waiting) -> Option<Error> {
        waiting.note_votes(claim, self);
        if !claim.is_held_on(node) {
            return None;
        }
        waiting.note_key(claim, self);
        claim.note_refused();
        let error = Error::new(Kind::Contended { holder: None });
        Some(error.with_key(claim.key_in_the_way().given()).with_nodes(claim.election.report()))
    }
}
