//! The one owner of a key and its random value, from the moment the acquisition is sent.
//!
//! A [`Claim`] undoes itself: when it is dropped, wherever that happens, the compare-and-delete
//! goes out to every node that may hold the key, behind the acquisition on the same connection, so
//! that it can never overtake it. Nothing is awaited for that. The acquiring future holds a claim;
//! once the lock is held, it rests in the locker's holds, where the guard and the keeper find it,
//! and is taken out when the hold ends. Dropping the future or the guard leaves no key behind.
//!
//! ```text
//!  one node asked ──▶ OneAsked ──let_go──▶ Released
//!                        └─all nodes are asked─▶ Owned
//!  acquired ─────────────▶ Owned ──release, let_go──▶ Released
//!                           ▲  │                        ▲ let_go_after_all
//!                           │  └──leave, expire, downgrade──▶ Left
//!                          own
//!                           │
//!  taken over ─────────▶ Adopting ──────let_go──────▶ PutBack
//! ```

mod downgraded;
mod fenced;
mod leaving;
mod one_first;
mod queued;
mod slotted;
mod ticketed;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

pub(super) use queued::Reply;
pub(super) use slotted::Picked;
pub(super) use ticketed::{Standing, until_majority};

use super::command::{Encoded, Subject};
use super::context::LeaseContext;
use super::fencing::Fencing;
use super::key::Key;
use super::primitive::Adopt;
use super::queue_node::QueueNode;
use super::release::Releasing;
use super::resource::Resource;
use super::token::{self, OwnerToken};
use super::turns::Turn;
use super::validity;
use super::wire::Value;
use crate::clock::{Moment, Stamp, nanoseconds};
use crate::entropy::Nonce;
use crate::error::{Error, Kind};
use crate::link::Urgency;
use crate::node_vote::NodeVote;
use crate::observe::Loss;
use crate::quorum::{Command, Election, NodeMask, Patience};

/// A key that is ours, or is being acquired or let go of: its name, its value, and which nodes may
/// have it.
pub(crate) struct Claim {
    context: Arc<LeaseContext>,
    pub(crate) resource: Resource,
    nonce: Nonce,
    /// In nanoseconds: smaller than a `Duration`, and cheaper to compute with.
    pub(super) ttl_nanos: u64,
    /// The clocks, read before the first byte was handed over.
    pub(crate) sent: Stamp,
    pub(crate) election: Election,
    state: State,
    /// Nodes that may have the key whatever the election says: given later than others, or before.
    healed: NodeMask,
    /// What few claims have.
    aside: Option<Box<Aside>>,
    /// The number of its turn among those of this process that want the key: it is passed on when
    /// nothing is held any more, behind what lets go of the key.
    turn: Option<NonZeroU64>,
}

/// A claim is moved several times. With 264 bytes, an acquisition and its release take 1.3 % more
/// instructions (see *What was tried* in [`hot_path`](crate::manual::hot_path)).
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Claim>() <= 256);

/// What few claims have: with a box for it, the others stay small.
#[derive(Default)]
struct Aside {
    /// What the lock is or was taken over from.
    former: Option<Former>,
    /// The node that keeps the key's queue, if it is known to be waited for, or was waited for.
    queue_node: Option<QueueNode>,
    /// Of a lock that is fenced.
    fencing: Option<Fencing>,
    /// Its lease has ended, and others are to stay out for a while still: letting go leaves it.
    is_delayed: bool,
    /// Of one that asks with a ticket: nodes that have left a question unanswered.
    unanswered: NodeMask,
}

/// Whether the lock is ours, and what has become of its key if it is not any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// One node alone was asked: that which keeps the key's queue, and may have the value there, or
    /// that which is asked first. Letting go leaves the queue.
    OneAsked,
    /// It is being taken over, and is not ours yet: letting go puts the former value back.
    Adopting,
    /// It was acquired, or has been taken over: letting go deletes the key.
    Owned,
    /// It was ours, and its key is left: to its expiry, an adopter, the read lock it has become.
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

impl Claim {
    /// Asks every node for the key, with a value that no attempt ever had; where there is a
    /// `former` one, only in its place: until the lock is [owned](Self::own), letting go puts that
    /// back. `now` is the clock, read before this.
    pub(crate) fn ask(
        context: &Arc<LeaseContext>,
        resource: Resource,
        former: Option<&str>,
        ttl: Duration,
        now: Moment,
    ) -> Result<Self, Error> {
        // Of an adoption: what the nodes hold is known best when all have answered.
        let (patience, state) = match former {
            None => (Patience::Early, State::Owned),
            Some(_) => (Patience::All, State::Adopting),
        };
        let aside = former.map(|former| {
            let former = Some(Former { value: former.into(), was_held: None });
            Box::new(Aside { former, ..Aside::default() })
        });
        let volatile = context.volatile.as_ref();
        Self::send(context, resource, (ttl, state), aside, |subject, _| {
            let ask = |encoded: Encoded<'_>| {
                let command = context.command(encoded, subject.resource.affinity(), ttl, now);
                context.nodes.ask(&command, context.nodes.rule(patience))
            };
            match former {
                None => {
                    let form = context.script_form(subject.resource.primitive);
                    subject.with_acquire(form, ttl, volatile, ask)
                }
                Some(former) => subject.with_adopt(former, ttl, volatile, ask)?,
            }
        })
    }

    /// Sends what asks for the key, with a value that no attempt ever had. Inlined, for a claim
    /// that is made where it is wanted is not copied there.
    #[inline(always)]
    fn send(
        context: &Arc<LeaseContext>,
        resource: Resource,
        (ttl, state): (Duration, State),
        aside: Option<Box<Aside>>,
        ask: impl FnOnce(&Subject<'_>, Option<&Aside>) -> Result<Election, Error>,
    ) -> Result<Self, Error> {
        let nonce = context.nodes.entropy().nonce();
        let value = Value::Drawn { nonce, owner: &context.owner };
        let sent = context.nodes.clock().stamp();
        let election = ask(&Subject { resource: &resource, value }, aside.as_deref())?;
        let (context, ttl_nanos) = (context.clone(), nanoseconds(ttl));
        let (healed, turn) = (NodeMask::NONE, None);
        Ok(Self { context, resource, nonce, ttl_nanos, sent, election, state, healed, aside, turn })
    }

    pub(super) fn context(&self) -> &Arc<LeaseContext> {
        &self.context
    }

    fn former(&self) -> Option<&Former> {
        self.aside.as_ref()?.former.as_ref()
    }

    fn queue_node(&self) -> Option<&QueueNode> {
        self.aside.as_ref()?.queue_node.as_ref()
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl_nanos)
    }

    pub(crate) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl_nanos = nanoseconds(ttl);
    }

    /// What its commands are about.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject { resource: &self.resource, value: self.value() }
    }

    /// The key under which another's value stands in the way: the one that most nodes name.
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

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    pub(crate) fn value(&self) -> Value<'_> {
        Value::Drawn { nonce: self.nonce, owner: &self.context.owner }
    }

    /// The nodes on which the key is, or may be, or may yet come to be.
    fn touched(&self) -> NodeMask {
        match self.state {
            State::OneAsked => self.healed,
            _ => self.election.touched().or(self.healed),
        }
    }

    /// These nodes are about to be sent the key, too.
    pub(crate) fn touch(&mut self, nodes: NodeMask) {
        self.healed = self.healed.or(nodes);
    }

    /// Until when a node holds the key that was sent at `sent`.
    pub(crate) fn end_of(&self, sent: Stamp) -> Stamp {
        validity::end(sent, self.ttl_nanos, self.context.options.drift)
    }

    /// Until when the lock is held that was granted by now, if nothing extends it.
    pub(crate) fn warning(&self) -> Stamp {
        self.end_of(self.sent).less_nanos(self.context.margin(self.ttl_nanos))
    }

    /// A number by chance, the same for each question.
    pub(crate) fn chance(&self) -> u8 {
        self.nonce.0[0]
    }

    /// The lock that was taken over is ours: its former value is not put back any more. Nodes that
    /// have not said what they hold are told to delete the former value, which may stand there.
    pub(crate) fn own(&mut self) {
        if self.state != State::Adopting {
            return;
        }
        self.state = State::Owned;
        let has_answered =
            |vote: NodeVote| matches!(vote, NodeVote::Granted | NodeVote::Held | NodeVote::Gone);
        let silent = self.election.votes().filter(|(_, vote)| !has_answered(*vote));
        let to = silent.fold(NodeMask::NONE, |mask, (node, _)| mask.with(node));
        // Where a connection ends, our own value is deleted, and the former one not put back.
        let subject = self.subject();
        let pair = subject.pair();
        let undo = subject.deletes(&pair);
        self.context.nodes.undo_instead(self.resource.affinity(), undo);
        self.delete_former(to);
    }

    /// Tells these nodes to delete the value that the lock was taken over from, where it stands
    /// still. Says whether there is such a value.
    fn delete_former(&self, to: NodeMask) -> bool {
        let Some(former) = self.former().filter(|_| self.state == State::Owned) else {
            return false;
        };
        let subject = Subject { value: Value::Told(&former.value), ..self.subject() };
        let send = |encoded: Encoded<'_>| {
            self.context.nodes.tell(&self.command(encoded, Urgency::Drop, to))
        };
        subject.with_release(send);
        true
    }

    /// These nodes hold another value now. Of a lock that was taken over, the former one is deleted
    /// there; says whether that was so.
    pub(crate) fn settle(&mut self, others: NodeMask) -> bool {
        let former = self.aside.as_mut().and_then(|aside| aside.former.as_mut());
        if let Some(former) = former.filter(|_| self.state == State::Owned) {
            former.was_held = Some(!others.is_empty());
        }
        !others.is_empty() && self.delete_former(others)
    }

    /// Whether the value that the lock was taken over from may stand on a node again: where another
    /// adoption puts it back, where the acquisition arrives behind ours and found no key yet, or
    /// where a node has not answered. (One that cannot be asked is no matter of waiting a little.)
    pub(crate) fn may_former_return(&self) -> bool {
        let Some(former) = self.former().filter(|_| self.state == State::Owned) else {
            return false;
        };
        former.was_held.unwrap_or_else(|| {
            let may = |vote| matches!(vote, NodeVote::Held | NodeVote::Gone | NodeVote::None);
            self.election.votes().any(|(_, vote)| may(vote))
        })
    }

    /// An error of this kind, with what each node did with the acquisition.
    pub(crate) fn error(&self, kind: Kind) -> Error {
        Error::new(kind).with_key(self.resource.given()).with_nodes(self.election.report())
    }

    /// Whether another hold may go on with it: the lock is ours, was not taken over, and every node
    /// has said what it did.
    pub(super) fn is_settled(&self) -> bool {
        let (in_flight, lost) = self.election.untold();
        let is_told = in_flight.is_empty() && lost.is_empty();
        self.state == State::Owned && self.former().is_none() && is_told
    }

    /// Whether nothing is to be let go of any more: the key is deleted, left, or put back.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Left | State::Released | State::PutBack)
    }

    /// Fails if the lock is not owned any more.
    fn check_owned(&self) -> Result<(), Error> {
        match self.state {
            State::Owned => Ok(()),
            _ => Err(Error::new(Kind::Lost { reason: Some(Loss::Closed) })),
        }
    }

    /// Tells every node that may hold the key to delete it, and gathers what they found. Fails if
    /// the lock is not owned any more.
    pub(crate) fn release(&mut self) -> Result<Releasing, Error> {
        self.check_owned()?;
        if let Some(aside) = &mut self.aside {
            aside.is_delayed = false; // whether or not there is a runtime to ask on
        }
        let unsure = self.unsure();
        self.look_for_waiters();
        let election = self.with_undo(Urgency::Undo, |commands| self.ask_each(commands))?;
        self.state = State::Released;
        self.pass_turn();
        Ok(Releasing { election, unsure })
    }

    /// Its turn among those of this process that want the key, if it has one.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.turn.map(|number| Turn::new(self.resource.affinity(), number))
    }

    /// It was won by this turn, if by one.
    pub(super) fn set_turn(&mut self, turn: Option<Turn>) {
        self.turn = turn.map(|turn| turn.number);
    }

    pub(super) fn take_turn(&mut self) -> Option<Turn> {
        let turn = self.turn();
        self.turn = None;
        turn
    }

    /// The next one of this process may ask for the key.
    pub(super) fn pass_turn(&mut self) {
        if let Some(turn) = self.take_turn() {
            self.context.turns().pass(turn);
        }
    }

    /// Nodes on which a release that finds no key says nothing: where the answer to the acquisition
    /// is lost with its connection, or to a key that was given later, the next connection deletes
    /// the key before the release comes.
    fn unsure(&self) -> NodeMask {
        let (in_flight, lost) = self.election.untold();
        if lost.or(self.healed).is_empty() {
            return in_flight;
        }
        let pending =
            |pair: Vec<u8>| self.context.nodes.pending_on(self.resource.affinity(), &pair);
        self.pairs().map(pending).fold(in_flight, NodeMask::or)
    }

    /// What its commands are about: on most nodes, and on the one that keeps the key's queue.
    fn pairs(&self) -> impl Iterator<Item = Vec<u8>> {
        let subject = self.subject();
        let queued = self
            .queue_node()
            .map(|queue_node| Subject { resource: &queue_node.resource, ..subject }.pair());
        [Some(subject.pair()), queued].into_iter().flatten()
    }

    /// What it takes to adopt the lock, now or when its guard has ended. It says that the lock was
    /// left behind only if it was: such a lock is adopted without waiting.
    pub(crate) fn token(&self) -> OwnerToken {
        let kind = match (&self.resource.primitive.adopt, &self.state) {
            (Adopt::Refused { token, .. }, _) => *token,
            (_, State::Left) => token::Kind::Left,
            _ => token::Kind::Held,
        };
        OwnerToken::new(kind, self.value())
    }

    /// Whether the lock is or was ours: not while it is being taken over, and not once put back.
    pub(crate) fn was_owned(&self) -> bool {
        !matches!(self.state, State::OneAsked | State::Adopting | State::PutBack)
    }

    /// Tells the nodes to delete the key, or to put the former value back, unless the claim has
    /// ended. Waits for nothing.
    pub(crate) fn let_go(&mut self) {
        let next = match self.state {
            State::Owned if self.aside.as_ref().is_some_and(|aside| aside.is_delayed) => {
                return drop(self.leave());
            }
            State::OneAsked | State::Owned => State::Released,
            State::Adopting => State::PutBack,
            State::Left | State::Released | State::PutBack => return,
        };
        self.look_for_waiters();
        self.with_undo(Urgency::Drop, |commands| self.tell(commands));
        self.state = next;
        self.pass_turn();
    }

    /// Hands the commands that let go of the key to `send`.
    fn with_undo<R>(&self, urgency: Urgency, send: impl FnOnce(&[Command<'_>]) -> R) -> R {
        let (subject, touched) = (self.subject(), self.touched());
        match (self.former().filter(|_| self.state == State::Adopting), self.queue_node()) {
            (Some(former), _) => subject
                .with_put_back(&former.value, |undo| send(&[self.command(undo, urgency, touched)])),
            (_, Some(queue_node)) if touched.has(queue_node.node) => {
                let queued = Subject { resource: &queue_node.resource, ..subject };
                let one = NodeMask::only(queue_node.node);
                let others = touched.without(queue_node.node);
                queued.with_release(|leave| {
                    subject.with_release(|release| {
                        send(&[
                            self.command(leave, urgency, one),
                            self.command(release, urgency, others),
                        ])
                    })
                })
            }
            _ => subject.with_release(|release| send(&[self.command(release, urgency, touched)])),
        }
    }

    fn tell(&self, commands: &[Command<'_>]) {
        commands.iter().for_each(|command| self.context.nodes.tell(command));
    }

    #[inline]
    fn command<'a>(&self, encoded: Encoded<'a>, urgency: Urgency, to: NodeMask) -> Command<'a> {
        let (affinity, now) = (self.resource.affinity(), self.context.nodes.clock().now());
        let command = self.context.command(encoded, affinity, self.ttl(), now);
        Command { urgency, to, ..command }
    }

    /// Asks, and waits for all answers.
    fn ask_each(&self, commands: &[Command<'_>]) -> Result<Election, Error> {
        self.context.nodes.ask_each(commands, self.context.nodes.rule(Patience::All))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.let_go();
    }
}
