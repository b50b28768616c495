//! What lies beneath every lease: the nodes, the options, and whether the locker was shut down.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorlock_resp::encode;
use tokio::sync::Notify;

use super::class::Classes;
use super::command::Encoded;
use super::contention::Contention;
use super::counters::Counters;
use super::durability::Volatile;
use super::fence::{Tokens, ahead};
use super::key::Key;
use super::notices::Notices;
use super::primitive::{AcquireBy, Primitive, ScriptForm};
use super::resource::Resource;
use super::turns::Turns;
use super::validity;
use crate::clock::Moment;
use crate::error::Error;
use crate::link::{ReplyKind, Undo, Urgency};
use crate::node_vote::NodeVote;
use crate::observe::{Event, Subject};
use crate::options::Options;
use crate::quorum::{Command, Election, NodeMask, NodeSet, Rule};
use crate::report::{Holder, WaitStats};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A server tells the time left in whole milliseconds, rounded down.
pub(super) const GRAIN: Duration = Duration::from_millis(1);

/// What every command needs to be sent: the nodes, the options, the holder's name.
pub(crate) struct LeaseContext {
    pub(crate) nodes: Arc<NodeSet>,
    pub(crate) options: Options,
    /// What locks are acquired with where the servers may forget.
    pub(crate) volatile: Option<Volatile>,
    /// The holder's full name, as it stands in each value.
    pub(crate) owner: Arc<str>,
    /// The classes of the locker's locks.
    pub(crate) classes: Classes,
    /// Whether a node has lacked the script of an acquisition.
    lacked: LackedScript,
    /// The same of a script that the node of a queue alone is sent. It must not take the flag of
    /// the others, which would never be sent theirs whole.
    lacked_queue: LackedScript,
    /// The same of the script that acquires with a fence.
    pub(super) lacked_fence: LackedScript,
    /// How many locks are held.
    pub(super) held: AtomicUsize,
    /// How many of them are being downgraded, and are in no guard meanwhile.
    pub(super) downgrading: AtomicUsize,
    /// The locker was shut down.
    pub(super) closing: AtomicBool,
    /// Tells those who wait that it was.
    on_close: Notify,
    /// Which keys were wanted by several a moment ago.
    pub(super) contention: Contention,
    /// Who of this process is woken when another hands a key over.
    pub(super) notices: Arc<Notices>,
    pub(super) counters: Arc<Counters>,
    /// Which token a fenced lock tries next.
    pub(super) tokens: Tokens,
}

/// Whether a node has not known a script: the next command brings it whole.
#[derive(Default)]
pub(super) struct LackedScript(AtomicBool);

impl LackedScript {
    /// How the next command names the script.
    pub(super) fn next_form(&self) -> ScriptForm {
        // Ordering: a task that misses the flag sends the digest, and sets the flag again.
        let is_lacked = self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed);
        if is_lacked { ScriptForm::Whole } else { ScriptForm::Digest }
    }

    /// Notes, and returns, whether a node has not known it.
    pub(super) fn note(&self, election: &Election) -> bool {
        let lacks_script = |(node, vote)| vote == NodeVote::Refused && election.lacks_script(node);
        let is_lacked = election.votes().any(lacks_script);
        if is_lacked {
            self.0.store(true, Ordering::Relaxed);
        }
        is_lacked
    }
}

impl LeaseContext {
    pub(crate) fn new(
        nodes: NodeSet,
        options: Options,
        owner: Arc<str>,
        notices: Arc<Notices>,
    ) -> Self {
        let (lacked, lacked_fence) = (LackedScript::default(), LackedScript::default());
        let lacked_queue = LackedScript::default();
        let (closing, on_close) = (AtomicBool::new(false), Notify::new());
        let contention = Contention::new();
        let (nodes, volatile) = (Arc::new(nodes), Volatile::new(&options));
        let tokens = Tokens::new(ahead(volatile.as_ref().map(Volatile::longest_ttl)));
        let classes = Classes::new(options.observers.class);
        Self {
            nodes,
            options,
            volatile,
            owner,
            classes,
            lacked,
            lacked_queue,
            lacked_fence,
            held: AtomicUsize::new(0),
            downgrading: AtomicUsize::new(0),
            closing,
            on_close,
            contention,
            notices,
            counters: Arc::default(),
            tokens,
        }
    }

    /// How acquisitions have waited.
    pub(crate) fn stats(&self) -> WaitStats {
        self.counters.read()
    }

    /// Who of this process asks for a key next.
    pub(super) fn turns(&self) -> &Arc<Turns> {
        self.notices.turns()
    }

    /// Refuses to acquire for a locker that was shut down, and beside a node of another deployment.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.check_not_closed()?;
        self.nodes.check_fit()
    }

    /// Refuses to work for a locker that was shut down.
    pub(crate) fn check_not_closed(&self) -> Result<(), Error> {
        match self.is_closed() {
            true => Err(Error::closed("the locker was shut down; build another one")),
            false => Ok(()),
        }
    }

    /// Refuses to wait where there is no timer to wait by.
    pub(crate) fn check_can_sleep(&self) -> Result<(), Error> {
        if self.nodes.can_sleep() { Ok(()) } else { Err(Error::no_runtime()) }
    }

    /// Refuses a TTL that no lock of this locker can have; what has to be known of a longer one
    /// than usual is told to the nodes.
    pub(crate) fn admit_ttl(&self, ttl: Duration) -> Result<(), Error> {
        self.options.check_ttl(ttl)?;
        if ttl > self.options.ttl {
            self.nodes.extend_horizon(self.options.undo_horizon(ttl));
        }
        Ok(())
    }

    /// As [`admit_ttl`](Self::admit_ttl), with the lock-delay for which the keys live longer.
    #[inline(never)]
    pub(crate) fn admit_life(&self, ttl: Duration, resource: &Resource) -> Result<(), Error> {
        self.options.check_ttl(ttl)?;
        let (delay, life) = (resource.lock_delay(), resource.life(ttl));
        self.admit_ttl(life).map_err(|error| {
            Error::misuse(format!("the TTL and the lock-delay of {delay:?} together: {error}"))
        })
    }

    /// A key, as the caller gives it.
    #[inline]
    pub(crate) fn key(&self, given: &[u8]) -> Result<Key, Error> {
        Key::new(&self.options.prefix, given)
    }

    /// The resource of a lock of this kind, on this key.
    #[inline]
    pub(crate) fn resource(
        &self,
        primitive: &'static Primitive,
        given: &[u8],
    ) -> Result<Resource, Error> {
        Ok(Resource::one(primitive, self.key(given)?))
    }

    /// The resource of a read lock of this kind on this key.
    pub(crate) fn read_resource(
        &self,
        primitive: &'static Primitive,
        given: &[u8],
    ) -> Result<Resource, Error> {
        Resource::read(primitive, self.key(given)?)
    }

    /// The resource of slots of this key, of which there are `count`.
    pub(crate) fn slots_resource(
        &self,
        primitive: &'static Primitive,
        given: &[u8],
        (count, weight): (u16, u16),
    ) -> Result<Resource, Error> {
        Resource::slots(primitive, self.key(given)?, (count, weight))
    }

    /// The key of one slot of this key, of which there are `count`, by its number from 0 on.
    pub(crate) fn slot_key(&self, given: &[u8], count: u16, number: u16) -> Result<Key, Error> {
        Resource::slot(self.key(given)?, count, number)
    }

    /// The resource of a lock of this kind, on these keys.
    pub(crate) fn resources<K: AsRef<[u8]>>(
        &self,
        primitive: &'static Primitive,
        given: impl IntoIterator<Item = K>,
    ) -> Result<Resource, Error> {
        let keys = given.into_iter().map(|key| self.key(key.as_ref())).collect::<Result<_, _>>()?;
        Resource::several(primitive, keys)
    }

    /// What observers are told of which lock it is.
    pub(crate) fn subject<'a>(&'a self, resource: &'a Resource) -> Subject<'a> {
        Subject::new(resource.given(), &self.owner, self.classes.name(resource.class))
    }

    /// Tells the observers that one waits for a lock, and for whom, if that is known.
    pub(super) fn tell_waiting(
        &self,
        resource: &Resource,
        holder: Option<&Holder>,
        waited: Duration,
    ) {
        let event = || Event::Waiting { lock: self.subject(resource), holder, waited };
        self.options.observers.tell(event);
    }

    /// One waits for others at this lock; since when, if the observers have not been told.
    pub(super) fn note_wait(&self, resource: &Resource, untold: Option<Moment>, now: Moment) {
        self.contention.note(resource.affinity(), now);
        if let Some(began) = untold {
            self.tell_waiting(resource, None, now.since(began));
        }
    }

    /// A command for all nodes, which may be refused for want of room. `sent` is the clock, read
    /// before this; it may take as long as is allowed with this TTL.
    pub(super) fn command<'a>(
        &self,
        Encoded { bytes, kind, undo }: Encoded<'a>,
        affinity: u64,
        ttl: Duration,
        sent: Moment,
    ) -> Command<'a> {
        let allowed = self.options.node_timeout(ttl);
        let (urgency, to) = (Urgency::Usual, NodeMask::ALL);
        Command { bytes, kind, undo, affinity, sent, allowed, urgency, to }
    }

    /// Asks these nodes; the command needs no undo.
    pub(super) fn ask(
        &self,
        words: &[&[u8]],
        kind: ReplyKind,
        affinity: u64,
        to: NodeMask,
        rule: Rule,
    ) -> Result<Election, Error> {
        let mut bytes = Vec::new();
        encode::command(&mut bytes, words);
        let encoded = Encoded { bytes: &bytes, kind, undo: Undo::NONE };
        let command = self.command(encoded, affinity, self.options.ttl, self.nodes.clock().now());
        self.nodes.ask(&Command { to, ..command }, rule)
    }

    /// For how long a majority can still have what stood on the nodes that have granted this, by
    /// the lives that they told, and by clocks that differ.
    pub(super) fn majority_life(&self, granted: &Election) -> Duration {
        let told = granted.granted().nodes().filter_map(|node| granted.time(node));
        self.by_other_clocks(self.majority_end(told).unwrap_or(self.options.ttl))
    }

    /// How long a life lasts at most that a node has told, by a clock that may be slower.
    pub(super) fn by_other_clocks(&self, life: Duration) -> Duration {
        life + GRAIN + self.options.drift.of(life)
    }

    /// When no majority can have any more what lives on some nodes for so long, and on the others
    /// for a time that is not known. Of any majority one node is among as many of those as make a
    /// majority, so that the last of these to end bounds it.
    pub(super) fn majority_end(&self, lives: impl Iterator<Item = Duration>) -> Option<Duration> {
        let mut lives: Vec<_> = lives.collect();
        lives.sort_unstable();
        lives.get(self.nodes.majority() - 1).or_else(|| lives.last()).copied()
    }

    /// As many nodes as leave the others no majority.
    pub(super) fn too_many_for_others(&self) -> usize {
        self.nodes.len() - self.nodes.majority() + 1
    }

    /// Whether a lock of this kind is acquired by a script, which nodes may lack.
    fn acquires_by_script(&self, primitive: &Primitive) -> bool {
        self.volatile.is_some() || matches!(primitive.acquire, AcquireBy::Script(..))
    }

    /// How the next acquisition of such a lock names its script, if it is by one.
    pub(super) fn script_form(&self, primitive: &Primitive) -> ScriptForm {
        match self.acquires_by_script(primitive) {
            true => self.lacked.next_form(),
            false => ScriptForm::Digest,
        }
    }

    /// As [`script_form`](Self::script_form), for the node that keeps the queue.
    pub(super) fn queue_script_form(&self, primitive: &Primitive) -> ScriptForm {
        match self.acquires_by_script(primitive) {
            true => self.lacked_queue.next_form(),
            false => ScriptForm::Digest,
        }
    }

    /// Notes, and returns, whether the node that keeps the queue has not known its script.
    pub(super) fn note_queue_script(&self, primitive: &Primitive, election: &Election) -> bool {
        self.acquires_by_script(primitive) && self.lacked_queue.note(election)
    }

    /// Notes, and returns, whether a node has not known the script of such a lock's acquisition.
    pub(super) fn note_scripts(&self, primitive: &Primitive, election: &Election) -> bool {
        self.acquires_by_script(primitive) && self.lacked.note(election)
    }

    /// How long before its end a lock with this TTL counts as lost: both in nanoseconds.
    pub(crate) fn margin(&self, ttl: u64) -> u64 {
        validity::margin(ttl, self.options.drift, self.held.load(Ordering::SeqCst))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Completes when the locker is shut down.
    pub(crate) async fn closed(&self) {
        let mut closed = pin!(self.on_close.notified());
        closed.as_mut().enable();
        if !self.is_closed() {
            closed.await;
        }
    }

    pub(crate) fn close(&self) {
        // Ordering: before the holds are looked through; see `HoldRef::begin`.
        self.closing.store(true, Ordering::SeqCst);
        self.on_close.notify_waiters();
    }
}
