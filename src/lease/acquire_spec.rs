//! What to acquire, and how: what the nodes' answers mean for it, and what observers are told.

use std::sync::Arc;
use std::time::Duration;

use super::claim::Claim;
use super::hold_ref::HoldRef;
use super::in_line;
use super::key::Key;
use super::leases::Leases;
use super::pause::Watched;
use super::primitive::{Holders, Primitive};
use super::resource::Resource;
use super::retry::{Known, draw};
use crate::clock::{Moment, Reading};
use crate::error::{Effort, Error, Kind};
use crate::node_vote::NodeVote;
use crate::observe::Event;
use crate::options::{Extend, Retry};
use crate::quorum::Verdict;
use crate::report::{Holder, Inspection, Outcome};

/// What to acquire, and how.
pub(crate) struct AcquireSpec {
    pub(crate) leases: Arc<Leases>,
    pub(crate) resource: Resource,
    pub(crate) ttl: Duration,
    /// How long to wait for the lock; `None` is forever.
    pub(crate) wait: Option<Duration>,
    /// How much of that may pass without a quorum.
    pub(crate) unavailable_wait: Duration,
    /// When to try again, where it is not as the locker says. In a box, for this is moved often.
    pub(crate) own_retry: Option<Box<Retry>>,
    pub(crate) extend: Extend,
    /// Whether it gets a fence.
    pub(crate) fenced: bool,
    /// Whether it waits its turn also where it has met no others.
    pub(crate) fair: bool,
}

/// How often an acquisition is sent again at once because nodes had forgotten its script, or had
/// never seen it. Once is enough unless others are in the same place.
const REPEATS_MAX: u32 = 3;

/// What the tries so far say about the next one: when it is made, whether at once, and until when.
pub(super) struct Waiting {
    /// When the last try began.
    pub(super) tried: Moment,
    /// When the tries began that have found no quorum, if the last one has not.
    unavailable: Option<Moment>,
    /// When the caller gives up, by what the last try failed of.
    pub(super) until: Moment,
    /// How many tries have found the lock held.
    contended: u32,
    /// Where the lock has no queue, the key that the last try has found held by another.
    pub(super) key: Option<Box<Key>>,
    /// A node that has refused what the queue's node had granted.
    pub(super) refused_by: Option<usize>,
    /// The try before that has found another key in the way.
    is_other_key: bool,
    /// A node did not know the script of the last try.
    lacks_script: bool,
    /// How many tries followed another at once because of that.
    repeats: u32,
    /// How many pauses in a row were cut short because a key had changed.
    pub(super) cuts: u32,
}

/// After so many tries that came to nothing because a key had changed, one pause is not cut short.
/// A key that changes all the time is asked for no more often than that.
const CUTS_MAX: u32 = 8;

impl Waiting {
    pub(super) const NOT_YET: Self = Self {
        tried: Moment::NEVER,
        unavailable: None,
        until: Moment::LAST,
        contended: 0,
        key: None,
        refused_by: None,
        is_other_key: false,
        lacks_script: false,
        repeats: 0,
        cuts: 0,
    };

    /// The last try of a caller who began at `started` has failed.
    pub(super) fn note(&mut self, failure: &Error, spec: &AcquireSpec, started: Moment) {
        self.contended += u32::from(failure.is_contended());
        let since = self.unavailable.unwrap_or(self.tried);
        let had_quorum = failure.is_contended() || failure.is_too_slow();
        self.unavailable = (!had_quorum).then_some(since);
        self.until = spec.until(started);
        if let Some(since) = self.unavailable {
            self.until = self.until.min(since.plus(spec.unavailable_wait));
        }
    }

    /// There was a quorum since the last try began: what was unavailable before is over.
    pub(super) fn note_quorum(&mut self) {
        self.unavailable = None;
    }

    /// Notes what the nodes say beside their votes: that one lacks the script.
    pub(super) fn note_votes(&mut self, claim: &Claim, spec: &AcquireSpec) {
        let (context, primitive) = (&spec.leases.context, spec.resource.primitive);
        let is_lacked = match claim.is_fenced_by_acquisition() {
            true => context.lacked_fence.note(&claim.election),
            false => context.note_scripts(primitive, &claim.election),
        };
        // Where others hold the lock on too many nodes, none that lacks the script changes that.
        let held = || claim.election.votes().filter(|(_, vote)| *vote == NodeVote::Held).count();
        self.lacks_script = is_lacked && held() + claim.election.needed() <= context.nodes.len();
    }

    /// Notes which key others hold, where the lock has no queue: that is watched.
    pub(super) fn note_key(&mut self, claim: &Claim, spec: &AcquireSpec) {
        if spec.resource.queued().is_none() {
            let key = claim.key_in_the_way();
            self.is_other_key = self.key.as_ref().is_none_or(|last| last.full() != key.full());
            self.key = Some(Box::new(key.clone()));
        }
    }

    /// Takes one of the few immediate repeats, if the try failed because a node lacked the script:
    /// the next one brings it, or comes behind one that does.
    pub(super) fn take_repeat(&mut self, failure: &Error) -> bool {
        let may_be_won = failure.is_unavailable() || failure.is_contended();
        let is_worth_it = self.lacks_script && self.repeats < REPEATS_MAX && may_be_won;
        self.repeats += u32::from(is_worth_it);
        is_worth_it
    }

    /// What is watched during the next pause.
    pub(super) fn watched(&mut self, resource: &Resource) -> Option<Watched> {
        let key = match self.refused_by {
            Some(_) => resource.keys().first(),
            None => self.key.as_deref(),
        };
        let key = key.filter(|_| self.cuts < CUTS_MAX).cloned();
        if key.is_none() {
            self.cuts = 0;
        }
        key.map(|key| Watched { key, on: self.refused_by })
    }

    /// Whether the wait for a holder begins: the try before has not found the lock held, or has
    /// found another of its keys in the way.
    pub(super) fn begins(&self, failure: &Error) -> bool {
        failure.is_contended() && (self.contended == 1 || self.is_other_key)
    }
}

/// A hold that no guard has yet: it ends when this is dropped, as when an observer panics.
struct Unguarded<'a>(&'a HoldRef);

impl Drop for Unguarded<'_> {
    fn drop(&mut self) {
        self.0.end(&mut None);
    }
}

impl AcquireSpec {
    /// The clocks, if the lock is held and time is left of it. They are read after the deciding
    /// reply.
    pub(super) fn judge(
        &self,
        claim: &Claim,
        verdict: Result<Verdict, Error>,
        waiting: &mut Waiting,
    ) -> Result<Reading, Error> {
        waiting.note_votes(claim, self);
        let context = &self.leases.context;
        let at = context.nodes.clock().read();
        if let Some(volatile) = &context.volatile {
            volatile.check(&claim.election)?;
        }
        if verdict? == Verdict::Won {
            if at.stamp.is_before(claim.warning()) {
                return Ok(at);
            }
            let elapsed = at.stamp.since(claim.sent);
            return Err(claim.error(Kind::TooSlow { ttl: self.ttl, elapsed }));
        }
        let nodes = claim.election.report();
        let needed = context.nodes.majority();
        let count =
            |is: fn(&Outcome) -> bool| nodes.iter().filter(|node| is(&node.outcome)).count();
        let is_held = count(|outcome| *outcome == Outcome::Held) > 0;
        // The verdict may be known before all have answered. Those that never do are told next
        // time.
        let may_answer = count(|outcome| outcome.is_answer() || *outcome == Outcome::Pending);
        let contended = is_held && may_answer >= needed;
        if contended {
            waiting.note_key(claim, self);
            context.contention.note(self.resource.affinity(), at.now);
        }
        let (kind, key) = if let Some(count) = self.resource.slots_to_choose().filter(|_| contended)
        {
            (Kind::NoSlot { count }, self.resource.given())
        } else if contended {
            (Kind::Contended { holder: None }, claim.key_in_the_way().given())
        } else {
            (Kind::no_quorum(&nodes, needed), self.resource.given())
        };
        Err(Error::new(kind).with_key(key).with_nodes(nodes))
    }

    /// When to try again.
    pub(super) fn retry(&self) -> &Retry {
        self.own_retry.as_deref().unwrap_or(&self.leases.context.options.retry)
    }

    /// The pause after so many tries; `None` gives up.
    pub(super) fn draw(&self, tries: u32) -> Option<Duration> {
        let entropy = self.leases.context.nodes.entropy();
        draw(self.retry(), tries, |low, high| entropy.between(low, high))
    }

    /// What was found in the way: how long it lives still, if it is a lock.
    pub(super) fn learn(
        &self,
        seen: &Inspection,
        waiting: &Waiting,
        failure: &mut Option<Error>,
    ) -> Result<Known, Error> {
        if let Some(what) = seen.foreign() {
            let key = waiting.key.as_deref().map_or_else(|| self.resource.given(), Key::given);
            return Err(Error::new(Kind::Foreign { what: what.into() }).with_key(key));
        }
        let holder = seen.holder();
        if let (Some(failure), Some(holder)) = (failure, holder) {
            failure.name_holder(holder.clone());
        }
        Ok(Known { holder: holder.map(|holder| holder.remaining), ..Known::default() })
    }

    /// Asks all nodes. Inlined, for a claim that is made where it is wanted is not copied there.
    #[inline(always)]
    pub(super) fn ask(&self, sent: Moment) -> Result<Claim, Error> {
        let (context, resource) = (&self.leases.context, self.resource.clone());
        if self.fenced && resource.count() == 1 {
            return Claim::ask_fenced(context, resource, self.ttl, sent);
        }
        let mut claim = Claim::ask(context, resource, None, self.ttl, sent)?;
        if self.fenced {
            claim.ask_fence()?;
        }
        Ok(claim)
    }

    /// Whether it waits its turn behind others of this process. Who says how often or when to try
    /// tries by that.
    pub(super) fn order(&self) -> in_line::Kind {
        let waits = self.wait.is_none_or(|wait| !wait.is_zero());
        let waits = waits && self.retry().is_open_ended();
        match self.order_of_one_try() {
            in_line::Kind::Beside if waits => in_line::Kind::InLine,
            in_line::Kind::Apart if waits && self.resource.primitive.holders.are_readers() => {
                in_line::Kind::QueueOnly
            }
            in_line::Kind::QueueOnce if waits => in_line::Kind::QueueOnly,
            kind => kind,
        }
    }

    /// As [`order`](Self::order), for one that tries once.
    pub(super) fn order_of_one_try(&self) -> in_line::Kind {
        // Who holds several keys stands in no line, nor in a queue, also where they are one;
        // readers stand in a queue alone, and for slots the node that keeps it is always asked.
        let Primitive { queued, holders, .. } = self.resource.primitive;
        match holders {
            Holders::One if queued.is_some() => in_line::Kind::Beside,
            Holders::One | Holders::Readers => in_line::Kind::Apart,
            Holders::Slots(_) => in_line::Kind::QueueOnce,
        }
    }

    /// Whether the queue is asked before all nodes: it is to be fair, or others were met at its key
    /// a moment ago.
    pub(super) fn queues_first(&self, now: impl FnOnce() -> Moment) -> bool {
        self.fair || self.leases.context.contention.is_recent(self.resource.affinity(), now)
    }

    /// An error for a lock that is to be fair, and stands in no queue.
    #[inline(never)]
    pub(crate) fn check_fair(&self) -> Result<(), Error> {
        let why = match self.order() {
            _ if self.resource.primitive.queued.is_none() => {
                "several keys as one stand in no queue; a fair lock is of one key"
            }
            _ if self.resource.queued().is_none() => {
                "a key with a brace that ends no tag has no queue; a fair lock needs another name"
            }
            in_line::Kind::Beside | in_line::Kind::Apart | in_line::Kind::QueueOnce => {
                "a request that does not wait, or says when to try, stands in no queue; give a \
                 `wait`, and leave `retry` as it is"
            }
            in_line::Kind::InLine | in_line::Kind::QueueOnly => return Ok(()),
        };
        Err(Error::misuse(why))
    }

    /// The next acquisition asks all nodes first.
    pub(super) fn forget_contention(&self) {
        self.leases.context.contention.forget(self.resource.affinity());
    }

    /// The error of an acquisition whose turn has not come in time.
    pub(super) fn contended(&self) -> Error {
        let kind = match self.resource.slots_to_choose() {
            Some(count) => Kind::NoSlot { count },
            None => Kind::Contended { holder: None },
        };
        Error::new(kind).with_key(self.resource.given())
    }

    /// The guard of this locker's that holds the lock. It is looked for if observers are told.
    pub(super) fn own_holder(&self) -> Option<Holder> {
        let is_told = !self.leases.context.options.observers.is_empty();
        let key = self.resource.keys().first().filter(|_| is_told);
        key.and_then(|key| self.leases.own_holder(key))
    }

    /// When the caller gives up who began at `started`.
    pub(super) fn until(&self, started: Moment) -> Moment {
        self.wait.map_or(Moment::LAST, |wait| started.plus(wait))
    }

    /// Adds attempts and elapsed time; emits `GaveUp`.
    pub(super) fn give_up(&self, error: Error, tries: u32, started: Moment) -> Error {
        let waited = self.leases.context.nodes.clock().now().since(started);
        let error = error.with_effort(Effort { tries, elapsed: waited });
        let lock = self.leases.context.subject(&self.resource);
        let event = || Event::GaveUp { lock, tries, waited, error: &error };
        self.leases.context.options.observers.tell(event);
        error
    }

    pub(super) fn tell_acquired(&self, hold: &HoldRef, tries: u32, started: Moment) {
        let unguarded = Unguarded(hold);
        self.leases.context.options.observers.tell(|| Event::Acquired {
            lock: self.leases.context.subject(&self.resource),
            tries,
            waited: self.leases.context.nodes.clock().now().since(started),
            fence: hold.claim(Claim::fence).flatten(),
            votes: hold.votes(),
        });
        std::mem::forget(unguarded);
    }

    pub(super) fn tell_retrying(&self, error: &Error, tries: u32, pause: Duration) {
        let lock = self.leases.context.subject(&self.resource);
        let event = || Event::Retrying { lock, tries, pause, error };
        self.leases.context.options.observers.tell(event);
    }
}
