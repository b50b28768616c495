//! Waiting for a lock in the order of tickets, which stands on every majority of the nodes.
//!
//! ```text
//!  ask for the highest ticket ──others wait, or one holds it──▶ ask with the next ticket ──▶ won
//!     └──free, and none waits──▶ won                              ▲   └──wait──┐
//!                                                                 └────────────┘
//!                                                a beat, a release, the end of the key's life
//! ```
//!
//! Each node gives the key to the lowest ticket that lives there. One that turns out not to have
//! the lowest gives the key back when it asks again, so each question is to all nodes, and only the
//! answers to the last one count (see `claim::ticketed`). The promise, which
//! [`fair_strict`](crate::LockRequest::fair_strict) makes, follows from majorities: any two have a
//! node in common, and there the later one is told the earlier ticket, and takes a higher one.
//!
//! A release hands the key over to the next on each node, and has that one told. So one that waits
//! hears from each node, and asks as soon as the first has told it; where others have the release
//! only later, they tell it then, and it asks once more.
//!
//! A slow node holds it up for [`LATE`] at most: then it goes by what the others have said.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::claim::{Claim, Standing, until_majority};
use super::command::NO_PLACE;
use super::context::LeaseContext;
use super::counters::Cause;
use super::key::Key;
use super::leases::Leases;
use super::notices::Registration;
use super::pause::MILLISECOND;
use super::queue::{ASKS_ALL_EVERY, Ended, Wait, Woken, attend};
use super::queue_plan::{HEARTBEAT, LATE, Plan};
use super::resource::Resource;
use super::watch;
use crate::clock::Moment;
use crate::error::Error;
use crate::quorum::{Election, NodeMask, Verdict};

/// How often it asks again while only a minority has granted the key: one with a higher ticket may
/// hold the other nodes, and gives them up when it asks next.
const REASKS_MAX: u32 = 3;

/// The pause before the first of these questions; each later one is twice as long.
const REASK_AFTER: Duration = MILLISECOND;

/// Asks for the lock, and waits until its ticket is the lowest and the lock is free.
pub(super) async fn wait(
    leases: Arc<Leases>,
    (resource, ttl): (Resource, Duration),
    mut wait: Wait,
) -> Result<Ended, Error> {
    let context = &leases.context;
    let clock = context.nodes.clock();
    let (mut asker, mut plan) = match enter(context, (resource, ttl), &wait).await? {
        Entered::Asks(asker, plan) => (asker, plan),
        Entered::Ended(ended) => return Ok(ended),
    };
    loop {
        // Also while a slow node is waited for.
        if !wait.renew_turn(context, plan.beat.max(clock.now().plus(HEARTBEAT))) {
            return Ok(Ended::Overtaken);
        }
        let until = wait.until_with(&plan);
        let woken = attend(context, (&asker.claim, &asker.registration), &plan, until).await?;
        let now = clock.now();
        match woken {
            Woken::Closed => return Ok(Ended::Over),
            Woken::HandedOver => {
                context.counters.note(Cause::HandedOver);
                asker.is_told = true;
            }
            Woken::Changed => {
                context.counters.note(Cause::Changed);
                // What the lock had left to live is out of date, if the answer comes only now.
                (plan.watching, plan.has_changed) = (None, true);
                plan.ask_at(now);
            }
            Woken::Watched => asker.note_lives(&mut plan, now),
            Woken::ByTime if now >= until => return Ok(Ended::Over),
            Woken::ByTime if !plan.is_asked && now < plan.ask => {
                plan.watch = Moment::NEVER;
                plan.watching = asker.watch(context)?;
            }
            Woken::ByTime if !plan.is_asked => {
                if !std::mem::take(&mut plan.has_changed) {
                    context.counters.note(Cause::ByTime);
                }
                asker.ask(&mut plan, now)?;
            }
            // All have answered, or enough of them: some nodes are slow.
            Woken::Answered | Woken::ByTime => match asker.judge() {
                Judged::Won => return Ok(asker.end(Verdict::Won)),
                Judged::LacksScript => asker.ask(&mut plan, now)?,
                Judged::Unknown if !asker.claim.election.is_complete() => plan.ask = late(now),
                Judged::Unknown if plan.may_be_late() && asker.claim.may_majority_answer() => {
                    plan.ask_late(now);
                }
                Judged::Unknown => return Ok(asker.end(Verdict::Lost)),
                Judged::Waits(standing) => {
                    wait.note_readers(standing.is_read, NO_PLACE);
                    context.note_wait(&asker.claim.resource, wait.untold.take(), now);
                    let poll = (!asker.claim.can_watch()).then_some(wait.pause);
                    plan.wait(standing.free_after, standing.is_holder_told, poll, now);
                    if !asker.note_minority(&standing, &mut plan, now) {
                        return Ok(asker.end(Verdict::Lost));
                    }
                }
            },
        }
        // The key was handed over while an answer was awaited that may be older.
        if asker.is_told && !plan.is_asked {
            asker.ask(&mut plan, now)?;
        }
    }
}

/// What has come of the first question.
enum Entered {
    /// Others are there, and it asks with a ticket.
    Asks(Asker, Plan),
    Ended(Ended),
}

/// Asks for the lock, and where others wait for it or hold it, takes a ticket.
async fn enter(
    context: &Arc<LeaseContext>,
    (resource, ttl): (Resource, Duration),
    wait: &Wait,
) -> Result<Entered, Error> {
    let sent = context.nodes.clock().now();
    if !wait.renew_turn(context, sent.plus(context.options.node_timeout(ttl))) {
        return Ok(Entered::Ended(Ended::Overtaken));
    }
    let claim = Claim::enter(context, resource, ttl, sent)?;
    let verdict = first_answers(context, &claim, sent).await?;
    let (ticket, key) = (claim.next_ticket(), claim.resource.keys().first().cloned());
    let Some((ticket, key)) = ticket.zip(key).filter(|_| verdict != Verdict::Won) else {
        return Ok(Entered::Ended(Ended::Asked { claim, verdict, sent }));
    };
    let (asker, plan) = Asker::new(context, claim, (ticket, &key))?;
    Ok(Entered::Asks(asker, plan))
}

/// When a node's answer is late.
fn late(now: Moment) -> Moment {
    now.plus(LATE)
}

/// Waits until all have answered the first question; or until some are late, and enough have, or
/// too many have told nothing.
async fn first_answers(
    context: &LeaseContext,
    claim: &Claim,
    sent: Moment,
) -> Result<Verdict, Error> {
    let mut timer = context.nodes.sleep_until(late(sent))?;
    let mut is_late = false;
    let verdict = poll_fn(|cx| {
        if let Poll::Ready(verdict) = claim.election.poll_verdict(cx) {
            return Poll::Ready(verdict);
        }
        is_late = is_late || Pin::new(&mut timer).poll(cx).is_ready();
        if is_late && (claim.next_ticket().is_some() || !claim.may_majority_tell()) {
            Poll::Ready(Verdict::Lost)
        } else {
            Poll::Pending
        }
    });
    Ok(verdict.await)
}

/// One that asks with its ticket.
struct Asker {
    claim: Claim,
    /// It was there before the nodes were told the ticket, so that no notice is missed.
    registration: Registration,
    ticket: u64,
    /// When the last question was asked.
    sent: Moment,
    /// A node has told that the key was handed over, since then.
    is_told: bool,
    /// It was asked once more at once, with the script.
    is_repeated: bool,
    /// Only a minority has granted the last question.
    has_minority: bool,
    /// How many questions in a row had that answer.
    reasks: u32,
    /// Since when it has had a minority, and nodes that it does not ask any more.
    stuck_since: Option<Moment>,
}

/// What the nodes' answers come to.
enum Judged {
    Won,
    /// A node did not know the script: the next question brings it.
    LacksScript,
    /// Too few nodes have told where it stands.
    Unknown,
    Waits(Standing),
}

impl Asker {
    /// Asks with this ticket for the first time.
    fn new(
        context: &Arc<LeaseContext>,
        claim: Claim,
        (ticket, key): (u64, &Key),
    ) -> Result<(Self, Plan), Error> {
        let registration = context.notices.register(claim.nonce(), key, NodeMask::ALL);
        let sent = context.nodes.clock().now();
        claim.note_scripts();
        let mut asker = Self {
            claim,
            registration,
            ticket,
            sent,
            is_told: false,
            is_repeated: false,
            has_minority: false,
            reasks: 0,
            stuck_since: None,
        };
        let mut plan = Plan::asked(sent);
        asker.ask(&mut plan, sent)?;
        Ok((asker, plan))
    }

    /// Asks all nodes once more.
    fn ask(&mut self, plan: &mut Plan, now: Moment) -> Result<(), Error> {
        plan.note_asked(now);
        plan.ask = late(now);
        (self.sent, self.is_told) = (now, false);
        self.claim.ask_with_ticket(self.ticket, now)
    }

    fn judge(&mut self) -> Judged {
        let is_lacked = self.claim.note_scripts();
        if self.claim.is_won() {
            return Judged::Won;
        }
        if is_lacked && !std::mem::replace(&mut self.is_repeated, true) {
            return Judged::LacksScript;
        }
        self.claim.standing().map_or(Judged::Unknown, Judged::Waits)
    }

    fn end(self, verdict: Verdict) -> Ended {
        Ended::Asked { claim: self.claim, verdict, sent: self.sent }
    }

    /// Where only a minority has granted the key, plans the next question: soon, and before what
    /// was granted ends. `false` when it has asked so for long, and some nodes count no more for
    /// this ticket: with another one they do.
    fn note_minority(&mut self, standing: &Standing, plan: &mut Plan, now: Moment) -> bool {
        self.has_minority = standing.has_minority;
        if !standing.has_minority {
            (self.reasks, self.stuck_since) = (0, None);
            return true;
        }
        if self.reasks < REASKS_MAX {
            plan.ask_at(now.plus(REASK_AFTER * (1 << self.reasks)));
        }
        self.reasks = self.reasks.saturating_add(1);
        plan.ask = plan.ask.min(now.plus(self.claim.ttl() / 2));
        if self.claim.unanswered().is_empty() {
            return true;
        }
        let since = *self.stuck_since.get_or_insert(now);
        now.since(since) < HEARTBEAT * ASKS_ALL_EVERY
    }

    /// Asks each node how long the lock lives, and has it tell when that changes.
    fn watch(&self, context: &LeaseContext) -> Result<Option<Election>, Error> {
        let key = self.claim.resource.keys().first();
        key.map(|key| watch::ask_each(context, key)).transpose()
    }

    /// Enters the lives that the nodes have told.
    fn note_lives(&self, plan: &mut Plan, now: Moment) {
        let Some(lives) = plan.watching.take() else { return };
        let left = |node| lives.take_frame(node)?.as_integer().ok();
        let own = self.claim.granted();
        let free_in = |node: usize| match left(node) {
            _ if own.has(node) => Some(0),
            Some(-2) => Some(0), // there is none
            left => left.and_then(|left| u64::try_from(left).ok()),
        };
        let lives = lives.granted().nodes().filter_map(free_in).collect();
        let Some(free_after) = until_majority(lives, self.claim.election.needed()) else { return };
        let planned = plan.ask;
        plan.ask_at(now.plus(free_after + MILLISECOND));
        if self.has_minority {
            plan.ask = plan.ask.min(planned);
        }
    }
}
