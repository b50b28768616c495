//! What the keeper tells the observers, put down while it works on a hold and told afterwards: an
//! observer may take its time, or panic.

use std::time::Duration;

use crate::clock::{Moment, Reading};
use crate::lease::context::LeaseContext;
use crate::lease::extension::Extension;
use crate::lease::hold::Hold;
use crate::lease::key::Resource;
use crate::observe::{Event, Loss};
use crate::report::NodeReport;

/// What is to be told of a hold, once its lock is no longer taken.
pub(super) struct News {
    resource: Resource,
    held: Duration,
    what: What,
}

pub(super) enum What {
    Extended { remaining: Duration, votes: Vec<NodeReport> },
    Failed { remaining: Duration, votes: Vec<NodeReport> },
    Lost(Loss),
    HeldTooLong { remaining: Duration },
}

impl Hold {
    /// What has to be told of the hold now: that it is lost, or that it lasts for too long. Each is
    /// taken once.
    pub(super) fn take_news(&mut self, context: &LeaseContext, at: Reading) -> Option<News> {
        let Reading { now, stamp } = at;
        if !self.is_valid(stamp) {
            return self.take_loss().and_then(|why| self.news(context, now, What::Lost(why)));
        }
        let is_overlong = self.take_overlong(now);
        let remaining = self.validity.remaining(stamp);
        is_overlong.then(|| self.news(context, now, What::HeldTooLong { remaining })).flatten()
    }

    /// News of the hold; `None` while its lock is still being taken over, or without observers.
    pub(super) fn news(&self, context: &LeaseContext, now: Moment, what: What) -> Option<News> {
        let ownership = self.ownership.as_ref().filter(|ownership| ownership.is_owned())?;
        let is_told = !context.options.observers.is_empty();
        is_told.then(|| News {
            resource: ownership.resource.clone(),
            held: now.since(self.began),
            what,
        })
    }
}

/// What each node has answered; empty without observers.
pub(super) fn report_of(extension: &Extension, context: &LeaseContext) -> Vec<NodeReport> {
    if context.options.observers.is_empty() { Vec::new() } else { extension.report() }
}

pub(super) fn tell(context: &LeaseContext, news: News, stalled: Option<Duration>) {
    let News { resource, held, what } = news;
    let lock = context.subject(&resource);
    context.options.observers.tell(|| match what {
        What::Extended { remaining, votes } => Event::Extended { lock, held, remaining, votes },
        What::Failed { remaining, votes } => {
            Event::ExtensionFailed { lock, held, remaining, votes }
        }
        What::Lost(reason) => Event::Lost { lock, held, reason, stalled },
        What::HeldTooLong { remaining } => Event::HeldTooLong { lock, held, remaining },
    });
}
