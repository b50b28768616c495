//! The one owner of a key and its random value, from the moment the acquisition is sent.
//!
//! A [`Claim`] undoes itself: when it is dropped, wherever that happens, the compare-and-delete
//! goes out to every node that may hold the key, behind the acquisition on the same connection, so
//! that it can never overtake it. Nothing is awaited for that. The acquiring future holds a claim;
//! once the lock is held, the claim's [`Ownership`] rests in the locker's holds, where the guard
//! and the keeper find it, and becomes a claim again when the hold ends. Dropping the future or the
//! guard leaves no key behind.
//!
//! ```text
//!  acquired ─────────────▶ Owned ──release, let_go──▶ Released
//!                           ▲  └──leave, expire─────▶ Left
//!                          own
//!                           │
//!  taken over ─────────▶ Adopting ──────let_go──────▶ PutBack
//! ```

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::command::{Encoded, Subject, with_release_of};
use super::context::LeaseContext;
use super::key::{Key, Resource};
use super::primitive::{AcquireBy, Adopt, Primitive};
use super::token::OwnerToken;
use super::validity;
use super::wire::Value;
use crate::clock::{Moment, Stamp, nanoseconds};
use crate::entropy::Nonce;
use crate::error::{Error, Kind};
use crate::link::{ReplyKind, Urgency};
use crate::node_vote::NodeVote;
use crate::observe::Loss;
use crate::quorum::{Command, Election, Found, NodeMask, Patience, Verdict};
use crate::report::NodeReport;

/// What holds a key to us: its name, its value, and which nodes may have it.
pub(crate) struct Ownership {
    pub(crate) primitive: &'static Primitive,
    pub(crate) resource: Resource,
    nonce: Nonce,
    /// In nanoseconds: a claim is to stay small.
    ttl: u64,
    /// The clocks, read before the first byte was handed over.
    pub(crate) sent: Stamp,
    pub(crate) election: Election,
    state: State,
    /// Nodes that were given the key later than the others.
    healed: NodeMask,
}

/// Whether the lock is ours, and what has become of its key if it is not any more.
enum State {
    /// It is being taken over, and is not ours yet: letting go puts the `former` value back.
    Adopting { former: Box<Former> },
    /// It was acquired, or has been taken over from the `former` value: letting go deletes the key.
    Owned { former: Option<Box<Former>> },
    /// It was ours, and its key is left to its expiry, or to who adopts it.
    Left,
    /// It was ours, and the nodes have been told to delete its key.
    Released,
    /// It never was ours, and the nodes have been told to put the former value back.
    PutBack,
}

/// The value that a lock was taken over from.
struct Former {
    value: Box<str>,
    /// Whether a node held another value than ours when the nodes were last asked, if they were
    /// asked since: an adoption beside ours may hold it there, and put the former value back.
    was_held: Option<bool>,
}

impl Ownership {
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl)
    }

    pub(crate) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl = nanoseconds(ttl);
    }

    /// What its commands are about.
    pub(super) fn subject<'a>(&'a self, context: &'a LeaseContext) -> Subject<'a> {
        let (primitive, resource) = (self.primitive, &self.resource);
        Subject { primitive, resource, value: self.value(context) }
    }

    /// The key in whose way another's value stands, of a lock that is held by another: the one that
    /// most nodes name.
    pub(crate) fn key_in_the_way(&self) -> &Key {
        let keys = self.resource.keys();
        if let [key] = keys {
            return key;
        }
        let mut named = vec![0; keys.len()];
        let nodes = self.election.votes().filter(|(_, vote)| *vote == NodeVote::Held);
        for (node, _) in nodes {
            let count = self.election.key_in_the_way(node).and_then(|key| named.get_mut(key));
            *count.unwrap_or(&mut 0) += 1;
        }
        // Of several with as many, the first.
        let most = named.iter().max();
        let most = named.iter().position(|count| Some(count) == most);
        &keys[most.unwrap_or_default()]
    }

    pub(crate) fn value<'a>(&self, context: &'a LeaseContext) -> Value<'a> {
        Value { nonce: self.nonce, owner: &context.owner }
    }

    /// The nodes on which the key is, or may be, or may yet come to be.
    fn touched(&self) -> NodeMask {
        self.election.touched().or(self.healed)
    }

    /// These nodes are about to be sent the key, too.
    pub(crate) fn touch(&mut self, nodes: NodeMask) {
        self.healed = self.healed.or(nodes);
    }

    /// Until when a node holds the key that was sent at `sent`.
    pub(crate) fn end_of(&self, sent: Stamp, context: &LeaseContext) -> Stamp {
        validity::end(sent, self.ttl(), context.options.drift)
    }

    /// Until when the lock is held that was granted by now, if nothing extends it.
    pub(crate) fn warning(&self, context: &LeaseContext) -> Stamp {
        self.end_of(self.sent, context).less(context.margin(self.ttl()))
    }

    /// A number by chance, the same for each question.
    pub(crate) fn chance(&self) -> u8 {
        self.nonce.0[0]
    }

    /// The lock that was taken over is ours: its former value is not put back any more. Nodes that
    /// have not said what they hold are told to delete the former value, which may stand there.
    pub(crate) fn own(&mut self, context: &LeaseContext) {
        let state = std::mem::replace(&mut self.state, State::Owned { former: None });
        let State::Adopting { former } = state else {
            self.state = state;
            return;
        };
        self.state = State::Owned { former: Some(former) };
        let has_answered =
            |vote: NodeVote| matches!(vote, NodeVote::Granted | NodeVote::Held | NodeVote::Gone);
        let silent = self.election.votes().filter(|(_, vote)| !has_answered(*vote));
        let to = silent.fold(NodeMask::NONE, |mask, (node, _)| mask.with(node));
        // Where a connection ends, our own value is deleted, and the former one not put back.
        let subject = self.subject(context);
        let pair = subject.pair();
        context.nodes.undo_instead(self.resource.affinity(), subject.deletes(&pair));
        self.delete_former(context, to);
    }

    /// Tells these nodes to delete the value that the lock was taken over from, where it stands
    /// still. Says whether there is such a value.
    fn delete_former(&self, context: &LeaseContext, to: NodeMask) -> bool {
        let State::Owned { former: Some(former) } = &self.state else { return false };
        with_release_of(self.primitive, &self.resource, &former.value, |encoded| {
            context.nodes.tell(&self.undoing(context, encoded, Urgency::Drop, to));
        });
        true
    }

    /// These nodes hold another value now. Of a lock that was taken over, the former one is deleted
    /// there; says whether that was so.
    pub(crate) fn settle(&mut self, context: &LeaseContext, others: NodeMask) -> bool {
        if let State::Owned { former: Some(former) } = &mut self.state {
            former.was_held = Some(!others.is_empty());
        }
        !others.is_empty() && self.delete_former(context, others)
    }

    /// Whether the value that the lock was taken over from may stand on a node again: where another
    /// adoption puts it back, where the acquisition arrives behind ours and found no key yet, or
    /// where a node has not answered. (One that cannot be asked is no matter of waiting a little.)
    pub(crate) fn may_former_return(&self) -> bool {
        let State::Owned { former: Some(former) } = &self.state else { return false };
        former.was_held.unwrap_or_else(|| {
            let may = |vote| matches!(vote, NodeVote::Held | NodeVote::Gone | NodeVote::None);
            self.election.votes().any(|(_, vote)| may(vote))
        })
    }

    /// Whether nothing is to be let go of any more: the key is deleted, left, or put back.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Left | State::Released | State::PutBack)
    }

    /// Tells every node that may hold the key to delete it, and gathers what they found. Fails if
    /// the lock is not owned any more.
    pub(crate) fn release(&mut self, context: &LeaseContext) -> Result<Releasing, Error> {
        if !matches!(self.state, State::Owned { .. }) {
            return Err(Error::new(Kind::Lost { reason: Some(Loss::Closed) }));
        }
        let rule = context.nodes.rule(Patience::All);
        let unsure = self.unsure(context);
        let asked =
            self.with_undo(context, Urgency::Undo, |command| context.nodes.ask(command, rule))?;
        self.state = State::Released;
        Ok(Releasing { election: asked, unsure })
    }

    /// Nodes on which a release that finds no key says nothing: where the acquisition's answer is
    /// lost with its connection, the next connection deletes the key before the release comes.
    fn unsure(&self, context: &LeaseContext) -> NodeMask {
        let (in_flight, lost) = self.election.untold();
        if lost.is_empty() {
            return in_flight;
        }
        let pair = self.subject(context).pair();
        in_flight.or(context.nodes.pending_on(self.resource.affinity(), &pair))
    }

    /// Leaves the key to its expiry, `left` from now on each node, and gathers what they found.
    /// Fails if the lock is not owned any more. Where it cannot be sent the key keeps its life.
    pub(crate) fn expire(
        &mut self,
        context: &LeaseContext,
        left: Duration,
    ) -> Result<Releasing, Error> {
        if !matches!(self.state, State::Owned { .. }) {
            return Err(Error::new(Kind::Lost { reason: Some(Loss::Closed) }));
        }
        let unsure = self.unsure(context);
        drop(self.leave(context));
        let rule = context.nodes.rule(Patience::All);
        let election = self.subject(context).with_expiry(left, |encoded| {
            let command = self.undoing(context, encoded, Urgency::Usual, self.touched());
            context.nodes.ask(&Command { kind: ReplyKind::Script, ..command }, rule)
        })?;
        Ok(Releasing { election, unsure })
    }

    /// The key of an owned lock is left to its expiry, or to who adopts it: what is still to be
    /// undone of it is not any more, where that can be stopped. Another lock stays as it is. The
    /// token says which it was.
    pub(crate) fn leave(&mut self, context: &LeaseContext) -> OwnerToken {
        if matches!(self.state, State::Owned { .. }) {
            self.state = State::Left;
            let pair = self.subject(context).pair();
            context.nodes.withdraw(self.resource.affinity(), &pair);
        }
        self.token(context)
    }

    /// What it takes to adopt the lock, now or when its guard has ended. It says that the lock was
    /// left behind only if it was: such a lock is adopted without waiting.
    pub(crate) fn token(&self, context: &LeaseContext) -> OwnerToken {
        let value = self.value(context);
        match (&self.primitive.adopt, &self.state) {
            (Adopt::Refused(_), _) => OwnerToken::several(value),
            (_, State::Left) => OwnerToken::left(value),
            _ => OwnerToken::held(value),
        }
    }

    /// Whether the lock is ours or has been: it was acquired, or has been taken over.
    pub(crate) fn is_owned(&self) -> bool {
        !matches!(self.state, State::Adopting { .. } | State::PutBack)
    }

    /// Tells the nodes to delete the key, or to put the former value back, unless the ownership has
    /// ended. Waits for nothing.
    pub(crate) fn let_go(&mut self, context: &LeaseContext) {
        let next = match self.state {
            State::Owned { .. } => State::Released,
            State::Adopting { .. } => State::PutBack,
            State::Left | State::Released | State::PutBack => return,
        };
        self.with_undo(context, Urgency::Drop, |command| context.nodes.tell(command));
        self.state = next;
    }

    /// As [`let_go`](Self::let_go), of a key that was left.
    fn let_go_after_all(&mut self, context: &LeaseContext) {
        if matches!(self.state, State::Left) {
            self.with_undo(context, Urgency::Drop, |command| context.nodes.tell(command));
            self.state = State::Released;
        }
    }

    /// Hands the command that lets go of the key to `send`.
    fn with_undo<R>(
        &self,
        context: &LeaseContext,
        urgency: Urgency,
        send: impl FnOnce(&Command<'_>) -> R,
    ) -> R {
        let subject = self.subject(context);
        let send =
            |encoded: Encoded<'_>| send(&self.undoing(context, encoded, urgency, self.touched()));
        match &self.state {
            State::Adopting { former } => subject.with_put_back(&former.value, send),
            _ => subject.with_release(send),
        }
    }

    fn undoing<'a>(
        &self,
        context: &LeaseContext,
        Encoded { bytes, undo }: Encoded<'a>,
        urgency: Urgency,
        to: NodeMask,
    ) -> Command<'a> {
        let command = context.command(bytes, ReplyKind::Undo, self.resource.affinity(), self.ttl());
        Command { undo, urgency, to, ..command }
    }
}

/// A release on its way.
pub(crate) struct Releasing {
    pub(crate) election: Election,
    /// Nodes on which we may have deleted the key before.
    unsure: NodeMask,
}

impl Releasing {
    /// What the nodes have found by now.
    pub(crate) fn found(&self) -> Found {
        self.election.found(self.unsure)
    }
}

/// A key that is being acquired, or let go of.
pub(crate) struct Claim {
    context: Arc<LeaseContext>,
    /// Code that takes it out takes over the duty to undo.
    ownership: Option<Ownership>,
}

impl Claim {
    /// Sends an acquisition with a value that no attempt ever had. `now` is the clock, read before
    /// this.
    pub(crate) fn ask(
        context: &Arc<LeaseContext>,
        primitive: &'static Primitive,
        resource: Resource,
        ttl: Duration,
        now: Moment,
    ) -> Result<Self, Error> {
        let nonce = context.nodes.entropy().nonce();
        let value = Value { nonce, owner: &context.owner };
        let subject = Subject { primitive, resource: &resource, value };
        let sent = context.nodes.clock().stamp();
        let ask = |kind, Encoded { bytes, undo }: Encoded<'_>| {
            let command = Command {
                bytes,
                kind,
                undo,
                affinity: resource.affinity(),
                sent: now,
                allowed: context.options.node_timeout(ttl),
                urgency: Urgency::Usual,
                to: NodeMask::ALL,
            };
            context.nodes.ask(&command, context.nodes.rule(Patience::Early))
        };
        let election = match (&primitive.acquire, &context.volatile) {
            (AcquireBy::SetIfAbsent, None) => {
                subject.with_set(ttl, |encoded| ask(ReplyKind::Status, encoded))?
            }
            (AcquireBy::Script(script), None) => {
                let call = (script, context.script_form());
                subject.with_script(call, ttl, None, |encoded| ask(ReplyKind::Keys, encoded))?
            }
            (_, Some(volatile)) => {
                let call = (&primitive.vote, context.script_form());
                let standing = Some(volatile.standing());
                let reply = primitive.vote_reply;
                subject.with_script(call, ttl, standing, |encoded| ask(reply, encoded))?
            }
        };
        let ownership = Ownership {
            primitive,
            resource,
            nonce,
            ttl: nanoseconds(ttl),
            sent,
            election,
            state: State::Owned { former: None },
            healed: NodeMask::NONE,
        };
        Ok(Self::of(context.clone(), ownership))
    }

    /// Asks every node to give the key a value that no attempt ever had in place of the `former`
    /// one. Until the lock is [owned](Ownership::own), letting go puts that back.
    pub(crate) fn adopt(
        context: &Arc<LeaseContext>,
        primitive: &'static Primitive,
        resource: Resource,
        former: &str,
        ttl: Duration,
    ) -> Result<Self, Error> {
        let (plain, vote) = match primitive.adopt {
            Adopt::Scripts { plain, vote } => (plain, vote),
            Adopt::Refused(why) => return Err(Error::misuse(why)),
        };
        let nonce = context.nodes.entropy().nonce();
        let value = Value { nonce, owner: &context.owner };
        let subject = Subject { primitive, resource: &resource, value };
        let sent = context.nodes.clock().stamp();
        let ask = |kind, Encoded { bytes, undo }: Encoded<'_>| {
            let command = context.command(bytes, kind, resource.affinity(), ttl);
            // What the nodes hold is known best when all have answered.
            context.nodes.ask(&Command { undo, ..command }, context.nodes.rule(Patience::All))
        };
        let election = match &context.volatile {
            None => subject
                .with_adopt(plain, former, ttl, None, |adopt| ask(ReplyKind::Adopt, adopt))?,
            Some(volatile) => {
                let standing = Some(volatile.standing());
                subject
                    .with_adopt(vote, former, ttl, standing, |adopt| ask(ReplyKind::Vote, adopt))?
            }
        };
        let former = Box::new(Former { value: former.into(), was_held: None });
        let ownership = Ownership {
            primitive,
            resource,
            nonce,
            ttl: nanoseconds(ttl),
            sent,
            election,
            state: State::Adopting { former },
            healed: NodeMask::NONE,
        };
        Ok(Self::of(context.clone(), ownership))
    }

    /// A claim on what an ownership holds.
    pub(crate) fn of(context: Arc<LeaseContext>, ownership: Ownership) -> Self {
        Self { context, ownership: Some(ownership) }
    }

    /// Takes the ownership out: its new owner lets go of the key.
    pub(crate) fn into_ownership(mut self) -> Option<Ownership> {
        self.ownership.take()
    }

    pub(crate) fn poll_verdict(&self, cx: &mut Context<'_>) -> Poll<Verdict> {
        match &self.ownership {
            Some(ownership) => ownership.election.poll_verdict(cx),
            None => Poll::Ready(Verdict::Lost),
        }
    }

    /// See [`Ownership::release`]. Without a runtime to ask on, the drop of `self` tells the nodes.
    pub(crate) fn release(mut self) -> Result<Releasing, Error> {
        match &mut self.ownership {
            Some(ownership) => ownership.release(&self.context),
            None => Err(Error::new(Kind::Lost { reason: None })),
        }
    }

    /// See [`Ownership::expire`].
    pub(crate) fn expire(&mut self, left: Duration) -> Result<Releasing, Error> {
        match &mut self.ownership {
            Some(ownership) => ownership.expire(&self.context, left),
            None => Err(Error::new(Kind::Lost { reason: None })),
        }
    }

    /// Deletes what is left of a key that was left to its expiry, and turned out to be lost.
    pub(crate) fn let_go_after_all(&mut self) {
        if let Some(ownership) = &mut self.ownership {
            ownership.let_go_after_all(&self.context);
        }
    }

    /// See [`Ownership::leave`].
    pub(crate) fn forget(mut self) -> OwnerToken {
        self.ownership.as_mut().map(|ownership| ownership.leave(&self.context)).unwrap_or_default()
    }

    pub(crate) fn ownership(&self) -> Option<&Ownership> {
        self.ownership.as_ref()
    }

    pub(crate) fn report(&self) -> Vec<NodeReport> {
        self.ownership.as_ref().map(|ownership| ownership.election.report()).unwrap_or_default()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(ownership) = &mut self.ownership {
            ownership.let_go(&self.context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cycle moves claims some ten times. Up to this size a move is a straight line of
    /// instructions, and above it a loop that takes twice as many.
    #[test]
    fn a_claim_is_moved_cheaply() {
        assert!(size_of::<Option<Claim>>() <= 256, "{}", size_of::<Option<Claim>>());
    }
}
