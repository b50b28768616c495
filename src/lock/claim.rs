//! The one owner of a key and its random value, from the moment the acquisition is sent.
//!
//! A [`Claim`] undoes itself: when it is dropped, wherever that happens, the compare-and-delete
//! goes out to every node that may hold the key, behind the acquisition on the same connection, so
//! that it can never overtake it. Nothing is awaited for that. The acquiring future holds a claim,
//! then the guard does; whoever drops either leaves no key behind.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::command::{self, Encoded};
use super::key::Key;
use super::lease::Lease;
use super::locker::Inner;
use crate::clock::Moment;
use crate::entropy::Nonce;
use crate::error::Error;
use crate::link::{Shape, Urgency};
use crate::quorum::{Command, Election, NodeMask, Patience, Verdict};
use crate::report::NodeReport;

/// An acquisition, sent.
pub(crate) struct Claim {
    locker: Arc<Inner>,
    key: Key,
    nonce: Nonce,
    ttl: Duration,
    /// The clock, read before the first byte was handed over.
    sent: Moment,
    election: Election,
    /// Dropping it releases.
    armed: bool,
}

impl Claim {
    /// Sends an acquisition with a value that no attempt ever had.
    /// `sent` is the clock, read before this.
    pub(crate) fn ask(
        locker: &Arc<Inner>,
        key: Key,
        ttl: Duration,
        sent: Moment,
    ) -> Result<Self, Error> {
        let nonce = locker.nodes.entropy().nonce();
        let ask = |Encoded { bytes, undo }: Encoded<'_>| {
            let command = Command {
                bytes,
                shape: Shape::Status,
                undo,
                affinity: key.affinity(),
                sent,
                allowed: locker.options.node_deadline(ttl),
                urgency: Urgency::Usual,
                to: NodeMask::ALL,
            };
            locker.nodes.ask(&command, locker.nodes.rule(Patience::Early))
        };
        let election = command::with_acquire(key.full(), nonce, &locker.owner, ttl, ask)?;
        Ok(Self { locker: locker.clone(), key, nonce, ttl, sent, election, armed: true })
    }

    pub(crate) fn poll_verdict(&self, cx: &mut Context<'_>) -> Poll<Verdict> {
        self.election.poll_verdict(cx)
    }

    /// For how long the lock is held, if the verdict is that it is.
    pub(crate) fn lease(&self) -> Lease {
        Lease::new(self.sent, self.ttl, self.locker.options.drift)
    }

    /// Sends the release to every node that may hold the key; its verdict tells what it found.
    pub(crate) fn release(mut self) -> Result<Election, Error> {
        let rule = self.locker.nodes.rule(Patience::All);
        let asked =
            self.with_undo(Urgency::Undo, |command| self.locker.nodes.ask(command, rule))?;
        self.armed = false;
        Ok(asked) // without a runtime to ask on, the drop of `self` has told the nodes
    }

    /// Leaves the key to its expiry.
    pub(crate) fn forget(mut self) {
        self.armed = false;
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The value as text.
    pub(crate) fn value(&self) -> String {
        command::value(self.nonce, &self.locker.owner)
    }

    pub(crate) fn now(&self) -> Moment {
        self.locker.nodes.clock().now()
    }

    pub(crate) fn locker(&self) -> &Arc<Inner> {
        &self.locker
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn sent(&self) -> Moment {
        self.sent
    }

    pub(crate) fn report(&self) -> Vec<NodeReport> {
        self.election.report()
    }

    fn with_undo<R>(&self, urgency: Urgency, send: impl FnOnce(&Command<'_>) -> R) -> R {
        command::with_release(self.key.full(), self.nonce, &self.locker.owner, |encoded| {
            send(&Command {
                bytes: encoded.bytes,
                shape: Shape::Undo,
                undo: encoded.undo,
                affinity: self.key.affinity(),
                sent: self.now(),
                allowed: self.locker.options.node_deadline(self.ttl),
                urgency,
                to: self.election.touched(),
            })
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.armed {
            self.with_undo(Urgency::Drop, |command| self.locker.nodes.tell(command));
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("key", &self.key).finish_non_exhaustive()
    }
}
