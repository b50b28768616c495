//! The one owner of a key and its random value, from the moment the acquisition is sent.
//!
//! A [`Claim`] undoes itself: when it is dropped, wherever that happens, the compare-and-delete
//! goes out to every node that may hold the key, behind the acquisition on the same connection, so
//! that it can never overtake it. Nothing is awaited for that. The acquiring future holds a claim;
//! once the lock is held, the claim's [`Tie`] rests in the locker's holds, where the guard and the
//! keeper find it, and becomes a claim again when the hold ends. Whoever drops either leaves no key
//! behind.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::command::{self, Encoded, ScriptForm, Value};
use super::key::Key;
use super::lease;
use super::locker::Inner;
use crate::clock::{Moment, Stamp};
use crate::entropy::Nonce;
use crate::error::{Error, Kind};
use crate::link::{Shape, Urgency};
use crate::observe::Loss;
use crate::quorum::{Command, Election, NodeMask, Patience, Verdict};
use crate::report::NodeReport;
use crate::weak::{self, Weakness::*};

/// What holds a key to us: its name, its value, and which nodes may have it.
pub(crate) struct Tie {
    pub(crate) key: Key,
    value: OwnValue,
    pub(crate) ttl: Duration,
    /// The clocks, read before the first byte was handed over.
    pub(crate) sent: Stamp,
    pub(crate) election: Election,
    /// Nodes that were given the key later than the others.
    healed: NodeMask,
    /// The nodes have been told to delete the key, or it is left to its expiry.
    released: bool,
}

/// A value, without what is the locker's.
enum OwnValue {
    Drawn(Nonce),
    Given(Box<str>),
}

impl Tie {
    fn new(key: Key, value: OwnValue, ttl: Duration, sent: Stamp, election: Election) -> Self {
        Self { key, value, ttl, sent, election, healed: NodeMask::NONE, released: false }
    }

    pub(crate) fn value<'a>(&'a self, locker: &'a Inner) -> Value<'a> {
        match &self.value {
            OwnValue::Drawn(nonce) => Value::Drawn { nonce: *nonce, owner: &locker.owner },
            OwnValue::Given(text) => Value::Given(text),
        }
    }

    /// The nodes on which the key is, or may be, or may yet come to be.
    fn touched(&self) -> NodeMask {
        match self.value {
            OwnValue::Drawn(_) => self.election.touched().or(self.healed),
            // Whoever held it before may have left it anywhere.
            OwnValue::Given(_) => NodeMask::ALL,
        }
    }

    /// These nodes are about to be sent the key, too.
    pub(crate) fn touch(&mut self, nodes: NodeMask) {
        self.healed = self.healed.or(nodes);
    }

    /// Until when a node holds the key that was sent at `sent`.
    pub(crate) fn end_of(&self, sent: Stamp, locker: &Inner) -> Stamp {
        let first = match weak::is(StartAtFirstReply) {
            true => (0..locker.nodes.len()).filter_map(|node| self.election.outcome(node).1).min(),
            false => None,
        };
        lease::end(sent.plus(first.unwrap_or_default()), self.ttl, locker.options.drift)
    }

    /// A number by chance, the same for each question.
    pub(crate) fn chance(&self) -> u8 {
        match &self.value {
            OwnValue::Drawn(nonce) => nonce.0[0],
            OwnValue::Given(_) => 0,
        }
    }

    /// Whether the nodes have been told to delete the key, or it is left to its expiry.
    pub(crate) fn is_released(&self) -> bool {
        self.released
    }

    /// Tells every node that may hold the key to delete it, and gathers what they found.
    pub(crate) fn release(&mut self, locker: &Inner) -> Result<Election, Error> {
        let rule = locker.nodes.rule(Patience::All);
        let asked =
            self.with_undo(locker, Urgency::Undo, |command| locker.nodes.ask(command, rule))?;
        self.released = true;
        Ok(asked)
    }

    /// The key is left to its expiry.
    pub(crate) fn leave(&mut self) {
        self.released = true;
    }

    /// As [`Tie::release`], and waits for nothing.
    fn let_go(&self, locker: &Inner) {
        if !self.released {
            self.with_undo(locker, Urgency::Drop, |command| locker.nodes.tell(command));
        }
    }

    /// Hands the command that lets go of the key to `send`.
    fn with_undo<R>(
        &self,
        locker: &Inner,
        urgency: Urgency,
        send: impl FnOnce(&Command<'_>) -> R,
    ) -> R {
        command::with_release(self.key.full(), self.value(locker), |encoded| {
            send(&Command {
                bytes: encoded.bytes,
                shape: Shape::Undo,
                undo: encoded.undo,
                affinity: self.key.affinity().wrapping_add(weak::is(UndoElsewhere).into()),
                sent: locker.nodes.clock().now(),
                allowed: locker.options.node_deadline(self.ttl),
                urgency,
                to: self.touched(),
            })
        })
    }
}

/// A key that is being acquired, or let go of.
pub(crate) struct Claim {
    locker: Arc<Inner>,
    /// Whoever takes it out takes over the duty to undo.
    tie: Option<Tie>,
}

impl Claim {
    /// Sends an acquisition with a value that no attempt ever had. `now` is the clock, read before
    /// this.
    pub(crate) fn ask(
        locker: &Arc<Inner>,
        key: Key,
        ttl: Duration,
        now: Moment,
    ) -> Result<Self, Error> {
        let drawn = locker.nodes.entropy().nonce();
        let nonce = if weak::is(TokenReused) { Nonce([7; Nonce::BYTES]) } else { drawn };
        let value = Value::Drawn { nonce, owner: &locker.owner };
        let sent = locker.nodes.clock().stamp();
        let ask = |shape, Encoded { bytes, undo }: Encoded<'_>| {
            let command = Command {
                bytes,
                shape,
                undo,
                affinity: key.affinity(),
                sent: now,
                allowed: locker.options.node_deadline(ttl),
                urgency: Urgency::Usual,
                to: NodeMask::ALL,
            };
            locker.nodes.ask(&command, locker.nodes.rule(Patience::Early))
        };
        let election = match &locker.volatile {
            None => command::with_acquire(key.full(), value, ttl, |set| ask(Shape::Status, set))?,
            Some(volatile) => {
                volatile.with_acquire(key.full(), value, ttl, |vote| ask(Shape::Vote, vote))?
            }
        };
        Ok(Self::of(locker.clone(), Tie::new(key, OwnValue::Drawn(nonce), ttl, sent, election)))
    }

    /// Extends a key that is held under a `value` that was handed over. Until that is known to have
    /// succeeded, the key is its holder's.
    pub(crate) fn adopt(
        locker: &Arc<Inner>,
        key: Key,
        value: &str,
        ttl: Duration,
    ) -> Result<Self, Error> {
        let sent = locker.nodes.clock().stamp();
        let (form, given) = (ScriptForm::Whole, Value::Given(value));
        let election = command::with_extend(form, key.full(), given, ttl, |encoded| {
            let command = Command {
                bytes: encoded.bytes,
                shape: Shape::Script,
                undo: encoded.undo,
                affinity: key.affinity(),
                sent: locker.nodes.clock().now(),
                allowed: locker.options.node_deadline(ttl),
                urgency: Urgency::Usual,
                to: NodeMask::ALL,
            };
            locker.nodes.ask(&command, locker.nodes.rule(Patience::Early))
        })?;
        let value = OwnValue::Given(value.into());
        let mut tie = Tie::new(key, value, ttl, sent, election);
        tie.leave();
        Ok(Self::of(locker.clone(), tie))
    }

    /// The key that was to be adopted is ours.
    pub(crate) fn own(&mut self) {
        if let Some(tie) = &mut self.tie {
            tie.released = false;
        }
    }

    /// A claim on what a tie holds.
    pub(crate) fn of(locker: Arc<Inner>, tie: Tie) -> Self {
        Self { locker, tie: Some(tie) }
    }

    /// Takes the tie out: its new owner lets go of the key.
    pub(crate) fn into_tie(mut self) -> Option<Tie> {
        self.tie.take()
    }

    pub(crate) fn poll_verdict(&self, cx: &mut Context<'_>) -> Poll<Verdict> {
        match &self.tie {
            Some(tie) => tie.election.poll_verdict(cx),
            None => Poll::Ready(Verdict::Lost),
        }
    }

    /// See [`Tie::release`]. Without a runtime to ask on, the drop of `self` tells the nodes.
    pub(crate) fn release(mut self) -> Result<Election, Error> {
        match &mut self.tie {
            Some(tie) if tie.released => Err(Error::new(Kind::Lost { reason: Some(Loss::Closed) })),
            Some(tie) => tie.release(&self.locker),
            None => Err(Error::new(Kind::Lost { reason: None })),
        }
    }

    /// Leaves the key to its expiry.
    pub(crate) fn forget(self) {
        drop(self.into_tie());
    }

    pub(crate) fn tie(&self) -> Option<&Tie> {
        self.tie.as_ref()
    }

    pub(crate) fn locker(&self) -> &Arc<Inner> {
        &self.locker
    }

    pub(crate) fn report(&self) -> Vec<NodeReport> {
        self.tie.as_ref().map(|tie| tie.election.report()).unwrap_or_default()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(tie) = &self.tie {
            tie.let_go(&self.locker);
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.tie.as_ref().map(|tie| &tie.key);
        f.debug_struct("Claim").field("key", &key).finish_non_exhaustive()
    }
}
