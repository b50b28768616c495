//! How a claim gets its fence: a token is put to the nodes with what acquires the lock, or behind
//! it, and higher ones until a majority has taken one.
//!
//! A lock of one key that all nodes are asked for at once is set and fenced by one script, and its
//! election is won when a majority has done both. Where too few have, those that have granted the
//! lock without its fence count for the lock, and a higher token is put to all.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::super::command::TokenOffer;
use super::super::context::LeaseContext;
use super::super::durability::Volatile;
use super::super::fence::ahead;
use super::super::fencing::Fencing;
use super::super::key::Key;
use super::super::primitive::ScriptForm;
use super::super::resource::Resource;
use super::{Aside, Claim, State};
use crate::clock::Moment;
use crate::error::{Error, Kind};
use crate::fence::Fence;
use crate::quorum::{Election, NodeMask, Patience, Verdict};

impl Claim {
    /// Asks every node for the key, which is one, as [`ask`](Self::ask) does, and to take a first
    /// token. Not inlined: most locks have no fence.
    #[inline(never)]
    pub(in crate::lease) fn ask_fenced(
        context: &Arc<LeaseContext>,
        resource: Resource,
        ttl: Duration,
        now: Moment,
    ) -> Result<Self, Error> {
        let keys = resource.fences()?.into_boxed_slice();
        let put = context.nodes.clock().stamp().wall();
        let token = context.tokens.pick(put);
        let fencing = Some(Fencing::new(keys, (token, put), None));
        let aside = Some(Box::new(Aside { fencing, ..Aside::default() }));
        let (form, volatile) = (context.lacked_fence.next_form(), context.volatile.as_ref());
        Self::send(context, resource, (ttl, State::Owned), aside, |subject, aside| {
            let fencing = aside.and_then(|aside| aside.fencing.as_ref());
            let fences = fencing.map(|fencing| &*fencing.keys).unwrap_or_default();
            let offer = first_offer(context, fences, token);
            subject.with_acquire_fenced(&offer, form, ttl, volatile, |encoded| {
                let command = context.command(encoded, subject.resource.affinity(), ttl, now);
                context.nodes.ask(&command, context.nodes.rule(Patience::Early))
            })
        })
    }

    /// Asks the nodes to take a first token, behind what was said to them before.
    pub(in crate::lease) fn ask_fence(&mut self) -> Result<(), Error> {
        let keys = self.resource.fences()?.into_boxed_slice();
        let put = self.wall();
        let token = self.context.tokens.pick(put);
        let offer = first_offer(&self.context, &keys, token);
        let election = self.put_token(&offer, ScriptForm::Digest)?;
        let fencing = Fencing::new(keys, (token, put), Some(election));
        self.aside.get_or_insert_default().fencing = Some(fencing);
        Ok(())
    }

    /// Waits for the votes on the acquisition and, if it is to have a fence, for that. Won when a
    /// majority has granted both.
    #[inline]
    pub(in crate::lease) fn poll_verdict(
        &mut self,
        is_fenced: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Verdict, Error>> {
        let verdict = ready!(self.election.poll_verdict(cx));
        if is_fenced { self.poll_fenced(verdict, cx) } else { Poll::Ready(Ok(verdict)) }
    }

    /// As [`poll_verdict`](Self::poll_verdict), behind the verdict on the acquisition. Not inlined:
    /// most locks have no fence.
    #[inline(never)]
    fn poll_fenced(
        &mut self,
        verdict: Verdict,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Verdict, Error>> {
        if verdict != Verdict::Won && !self.may_be_granted() {
            return Poll::Ready(Ok(verdict));
        }
        let fenced = ready!(self.poll_fence(cx));
        let is_held = self.granted().nodes().count() >= self.election.needed();
        Poll::Ready(match fenced {
            Ok(()) => Ok(Verdict::Won),
            // It is the lock that too few have granted, and not its fence.
            Err(error) if error.is_unavailable() && !is_held => Ok(Verdict::Lost),
            Err(error) => Err(error),
        })
    }

    /// The nodes that have granted the lock by now, with its fence or without.
    pub(in crate::lease) fn granted(&self) -> NodeMask {
        let granted = self.election.granted();
        match self.fencing().filter(|fencing| fencing.came_with_acquisition()) {
            None => granted,
            // A node that takes a later token holds the lock: by this acquisition, for its value
            // was told with no other command.
            Some(fencing) => {
                let fenced = fencing.votes_of(&self.election).granted();
                granted.or(self.election.unfenced()).or(fenced)
            }
        }
    }

    /// Whether enough nodes have granted the lock, or may yet, though too few with its fence.
    fn may_be_granted(&self) -> bool {
        let (unanswered, _) = self.election.untold();
        let is_granted = !self.election.unfenced().is_empty();
        is_granted && self.granted().or(unanswered).nodes().count() >= self.election.needed()
    }

    /// The script that acquires it also fences it.
    pub(in crate::lease) fn is_fenced_by_acquisition(&self) -> bool {
        self.fencing().is_some_and(Fencing::came_with_acquisition)
    }

    /// Waits for the fence of a lock that a majority has granted, or still may. Another poll after
    /// the end says the same.
    pub(in crate::lease) fn poll_fence(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            let (acquisition, aside) = (&self.election, self.aside.as_mut());
            let fencing = aside.and_then(|aside| aside.fencing.as_mut());
            match fencing.map(|fencing| fencing.poll_taken(acquisition, cx)) {
                None => self.ask_fence()?,
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(true)) => return Poll::Ready(Ok(())),
                Some(Poll::Ready(false)) => self.ask_higher_fence()?,
            }
        }
    }

    /// The fence, once a majority has taken it.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.fencing()?.fence()
    }

    fn fencing(&self) -> Option<&Fencing> {
        self.aside.as_ref()?.fencing.as_ref()
    }

    /// Nodes that had not granted the lock, and so refused the token, are asked for it again.
    pub(super) fn forget_fence(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.fencing = None;
        }
    }

    fn fencing_mut(&mut self) -> Option<&mut Fencing> {
        self.aside.as_mut()?.fencing.as_mut()
    }

    /// Too few nodes have taken the last token: asks them to take another one, in full, for one may
    /// lack the script. An error where too few could take any.
    fn ask_higher_fence(&mut self) -> Result<(), Error> {
        let put = self.wall();
        let Some(fencing) = self.fencing() else { return Ok(()) };
        let Some(token) = fencing.next(&self.election, &self.context.tokens) else {
            let nodes = fencing.report(&self.election);
            let kind = Kind::no_quorum(&nodes, self.election.needed());
            return Err(Error::new(kind).with_key(self.resource.given()).with_nodes(nodes));
        };
        let offer = later_offer(&self.context, &fencing.keys, token);
        let election = self.put_token(&offer, ScriptForm::Whole)?;
        if let Some(fencing) = self.fencing_mut() {
            fencing.put((token, put), election);
        }
        Ok(())
    }

    fn put_token(&self, offer: &TokenOffer<'_>, form: ScriptForm) -> Result<Election, Error> {
        let context = &self.context;
        self.subject().with_fence(offer, form, |encoded| {
            let (affinity, now) = (self.resource.affinity(), context.nodes.clock().now());
            let command = context.command(encoded, affinity, self.ttl(), now);
            context.nodes.ask(&command, context.nodes.rule(Patience::Early))
        })
    }

    /// This process's time since 1970.
    fn wall(&self) -> Duration {
        self.context.nodes.clock().stamp().wall()
    }
}

/// A first token is of this process's clock, which may be wrong. Nodes take it half as far ahead of
/// theirs as a later one: so wherever their clocks are no further apart than the other half, a
/// token above what all have told is not too far ahead of any, whatever clients' clocks say.
fn first_offer<'a>(context: &LeaseContext, fences: &'a [Key], token: Fence) -> TokenOffer<'a> {
    TokenOffer { fences, token, ahead: ahead_of(context) / 2, step: 0 }
}

/// A later token follows what nodes have told. It may lie a little above a fence that is too far
/// ahead itself, for those of several nodes may be as far apart; a first one may not, for a clock
/// that runs fast would carry the fences with it.
fn later_offer<'a>(context: &LeaseContext, fences: &'a [Key], token: Fence) -> TokenOffer<'a> {
    TokenOffer { fences, token, ahead: ahead_of(context), step: 1_000 }
}

/// How far ahead of a node's clock a token may lie, in microseconds.
fn ahead_of(context: &LeaseContext) -> u64 {
    ahead(context.volatile.as_ref().map(Volatile::longest_ttl))
}
