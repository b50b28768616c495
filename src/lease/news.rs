//! What the observers are told of a held lock, put down while its hold is worked on and told
//! afterwards: an observer may take its time, or panic.

use std::time::Duration;

use super::context::LeaseContext;
use super::extension::Extension;
use super::hold::Hold;
use super::resource::Resource;
use crate::clock::{Moment, Reading};
use crate::observe::{Event, Loss};
use crate::report::NodeReport;

/// What is to be told of a hold, once its mutex is released.
pub(super) struct News {
    pub(super) resource: Resource,
    /// For how long the lock had been held.
    pub(super) held: Duration,
    pub(super) what: What,
}

pub(super) enum What {
    Extended { remaining: Duration, votes: Vec<NodeReport> },
    Failed { remaining: Duration, votes: Vec<NodeReport> },
    Lost { reason: Loss, stalled: Option<Duration> },
    HeldTooLong { remaining: Duration },
    Revoked { remaining: Duration },
}

impl News {
    pub(super) fn tell(self, context: &LeaseContext) {
        let Self { resource, held, what } = self;
        let lock = context.subject(&resource);
        context.options.observers.tell(|| match what {
            What::Extended { remaining, votes } => Event::Extended { lock, held, remaining, votes },
            What::Failed { remaining, votes } => {
                Event::ExtensionFailed { lock, held, remaining, votes }
            }
            What::Lost { reason, stalled } => Event::Lost { lock, held, reason, stalled },
            What::HeldTooLong { remaining } => Event::HeldTooLong { lock, held, remaining },
            What::Revoked { remaining } => Event::Revoked { lock, held, remaining },
        });
    }
}

impl Hold {
    /// What has to be told of the hold now: that it is lost, that its holder is asked to let go of
    /// it, or that it lasts for too long. Each is taken once. The keeper may have been `stalled`.
    pub(super) fn take_news(
        &mut self,
        context: &LeaseContext,
        at: Reading,
        stalled: Option<Duration>,
    ) -> Option<News> {
        let what = if !self.is_valid(at.stamp) {
            What::Lost { reason: self.take_loss()?, stalled }
        } else if self.take_revocation() {
            What::Revoked { remaining: self.validity.remaining(at.stamp) }
        } else if self.take_overlong(at.now) {
            What::HeldTooLong { remaining: self.validity.remaining(at.stamp) }
        } else {
            return None;
        };
        self.news(context, at.now, what)
    }

    /// What an extension has brought.
    pub(super) fn extension_news(
        &mut self,
        context: &LeaseContext,
        extension: &Extension,
        at: Reading,
        succeeded: bool,
    ) -> Option<News> {
        if context.options.observers.is_empty() {
            return None;
        }
        let is_held = self.is_valid(at.stamp);
        let remaining = if is_held { self.validity.remaining(at.stamp) } else { Duration::ZERO };
        let votes = extension.report();
        let what = match succeeded {
            true => What::Extended { remaining, votes },
            false => What::Failed { remaining, votes },
        };
        self.news(context, at.now, what)
    }

    /// News of the hold; `None` while its lock is still being taken over, or without observers.
    pub(super) fn news(&self, context: &LeaseContext, now: Moment, what: What) -> Option<News> {
        let claim = self.claim.as_ref().filter(|claim| claim.was_owned())?;
        let is_told = !context.options.observers.is_empty();
        let held = now.since(self.began);
        is_told.then(|| News { resource: claim.resource.clone(), held, what })
    }
}
