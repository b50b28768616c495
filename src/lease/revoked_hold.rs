//! A lock whose holder was asked to let go of it, as the holder learns of it: see
//! [`revoke`](super::revoke).
//!
//! Nodes tell it in two ways: by the holder's channel at once, where that is listened to, and in
//! answer to the next extension. The first is a hint: the holder is told, and sets no key anew that
//! has ended. When a majority has answered so, the lock is not extended any more: it cannot be.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::claim::Claim;
use super::context::LeaseContext;
use super::extension::Extension;
use super::hold::Hold;
use super::hold_ref::HoldRef;
use super::keeper;
use super::notices::{Tag, tag_of};
use super::revoked::Revoked;

impl Hold {
    /// Enters how many nodes have said that the lock was revoked.
    pub(super) fn note_revoked(&mut self, extension: &Extension, context: &LeaseContext) {
        let enough = context.too_many_for_others();
        self.revoked = self.revoked.heard_from(extension.revoked(), enough);
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.revoked != Revoked::No
    }

    /// Whether it is known that no majority can extend the lock.
    pub(super) fn is_revoked_for_good(&self) -> bool {
        matches!(self.revoked, Revoked::ByMajority { .. })
    }

    /// Whether the observers have still to be told.
    pub(super) fn is_revocation_untold(&self) -> bool {
        self.is_revoked() && self.revoked.told() != self.revoked
    }

    /// Takes the duty to tell the observers.
    pub(super) fn take_revocation(&mut self) -> bool {
        let is_untold = self.is_revocation_untold();
        self.revoked = self.revoked.told();
        is_untold
    }
}

impl HoldRef {
    /// Whether the holder was asked to let go of the lock, as far as that is known here.
    pub(crate) fn is_revoked(&self) -> bool {
        self.with(|hold| hold.is_revoked()).unwrap_or(false)
    }

    /// Completes when the holder was asked to let go of the lock, when the lock is lost, and when
    /// the hold has ended.
    pub(crate) async fn revoked(&self) {
        keeper::ensure(self.leases());
        let Some(tag) = self.claim(|claim: &Claim| tag_of(claim.nonce())) else { return };
        let (mut lost, mut heard) = (pin!(self.lost()), pin!(self.hear_of_revocation(tag)));
        let mut noted = pin!(self.revocation_noted());
        poll_fn(|cx| {
            // By `|`, for each has to be polled: one that was not wakes no one.
            let is_over = heard.as_mut().poll(cx).is_ready()
                | noted.as_mut().poll(cx).is_ready()
                | lost.as_mut().poll(cx).is_ready();
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Completes when a node tells this process so.
    async fn hear_of_revocation(&self, tag: Tag) {
        self.leases().context.notices.revoked(tag).await;
        let one = |hold: &mut Hold| hold.revoked = hold.revoked.heard_from(1, usize::MAX);
        self.with(one);
        self.look_again();
    }

    /// Completes when it is known of the hold.
    async fn revocation_noted(&self) {
        loop {
            let mut changed = pin!(self.changed());
            changed.as_mut().enable();
            if self.with(|hold| hold.is_revoked()).unwrap_or(true) {
                return;
            }
            changed.await;
        }
    }
}
