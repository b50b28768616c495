//! What the keeper tells the observers, put down while it works on a hold and told afterwards: an
//! observer may take its time, or panic.

use std::time::Duration;

use super::super::extension::Extension;
use super::super::hold::Body;
use super::super::key::Key;
use super::super::locker::LeaseContext;
use crate::clock::{Moment, Reading};
use crate::observe::{Event, Loss};
use crate::report::NodeReport;

/// What is to be told of a hold, once its lock is no longer taken.
pub(super) struct News {
    key: Key,
    held: Duration,
    what: What,
}

pub(super) enum What {
    Extended { remaining: Duration, votes: Vec<NodeReport> },
    Failed { remaining: Duration, votes: Vec<NodeReport> },
    Lost(Loss),
    HeldTooLong { remaining: Duration },
}

impl Body {
    /// What has to be told of the hold now: that it is lost, or that it lasts for too long. Each is
    /// taken once.
    pub(super) fn take_news(&mut self, locker: &LeaseContext, at: Reading) -> Option<News> {
        let Reading { now, stamp } = at;
        if !self.is_valid(stamp) {
            let is_new = !std::mem::replace(&mut self.observed, true);
            let what = What::Lost(self.loss().unwrap_or(Loss::Expired));
            return is_new.then(|| self.news(locker, now, what)).flatten();
        }
        let is_new = !self.extending
            && self.is_overlong(now)
            && !std::mem::replace(&mut self.overlong, true);
        let remaining = self.lease.remaining(stamp);
        is_new.then(|| self.news(locker, now, What::HeldTooLong { remaining })).flatten()
    }

    /// News of the hold; `None` while its lock is still being taken over, or without observers.
    pub(super) fn news(&self, locker: &LeaseContext, now: Moment, what: What) -> Option<News> {
        let ownership = self.ownership.as_ref().filter(|ownership| ownership.is_owned())?;
        let is_told = !locker.options.observers.is_empty();
        is_told.then(|| News { key: ownership.key.clone(), held: now.since(self.began), what })
    }
}

/// What each node has answered; empty without observers.
pub(super) fn report_of(extension: &Extension, locker: &LeaseContext) -> Vec<NodeReport> {
    if locker.options.observers.is_empty() { Vec::new() } else { extension.report() }
}

pub(super) fn tell(locker: &LeaseContext, news: News, stalled: Option<Duration>) {
    let News { key, held, what } = news;
    let lock = locker.subject(&key);
    locker.options.observers.tell(|| match what {
        What::Extended { remaining, votes } => Event::Extended { lock, held, remaining, votes },
        What::Failed { remaining, votes } => {
            Event::ExtensionFailed { lock, held, remaining, votes }
        }
        What::Lost(reason) => Event::Lost { lock, held, reason, stalled },
        What::HeldTooLong { remaining } => Event::HeldTooLong { lock, held, remaining },
    });
}
