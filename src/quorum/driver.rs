//! The driver: one task that reads all nodes' sockets, casts the votes and wakes the callers.
//!
//! One wake-up of the reactor serves every socket that is ready. A pass reads all, votes, wakes,
//! and then writes what callers have queued. Before it writes it yields once if anything is queued:
//! the callers that it has just woken, and those that are runnable anyway, add their commands, and
//! one system call carries them all. (Without the yield, the multi-threaded scheduler runs the
//! driver right after the first of them.)
//!
//! The driver runs on the runtime where the locker was first used. When that runtime ends, the
//! driver's `Drop` writes what is queued, tells every waiting caller, and leaves the links able to
//! take undos; the next use from a living runtime starts another driver.
//!
//! No lock is held while a caller is woken: replies are collected, the lock released, then votes
//! are cast.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Sleep;

use super::decided::Decided;
use super::node_set::NodeSet;
use super::ready_flag::ReadyFlag;
use super::shared::Shared;
use super::slots::Slots;
use crate::clock::Moment;
use crate::error::Error;
use crate::link::{Lapsed, Push, Ticket};
use crate::node::{Node, Pass, Session};
use crate::node_vote::NodeVote;
use crate::options::Driver;
use crate::sync::atomic::Ordering;
use crate::sync::lock;

/// How long the driver goes on for replies once the nodes are no longer used.
const LINGER: Duration = Duration::from_millis(500);

/// A timer that comes later than this was held up by this process or its machine, not by a node:
/// tokio's own timers are at most 2 ms late.
const STALL: Duration = Duration::from_millis(5);

/// What commands that would have expired during a stall are given, so that the replies that wait in
/// the sockets, and those to what could not be written meanwhile, still count.
const GRACE: Duration = Duration::from_millis(10);

/// The system gives no more threads or descriptors.
const NO_THREAD: &str = "the driver's thread could not be started; see the limits of this process";

/// What a driver reads into.
const STAGING: usize = 16 << 10;

impl NodeSet {
    /// Starts the driver if there is none.
    pub(crate) fn ensure_driver(&self) -> Result<(), Error> {
        let driver = &self.shared.driver;
        if driver.running.load(Ordering::Acquire) {
            return Ok(());
        }
        let _starting = lock(&driver.starting);
        if driver.running.load(Ordering::Acquire) {
            return Ok(());
        }
        let home = Home::find(self.shared.options.driver)?;
        {
            let mut running = lock(&driver.home);
            *running = home.handle();
            driver.generation.fetch_add(1, Ordering::AcqRel);
        }
        driver.timer.restart(|| self.shared.nodes.iter().for_each(Node::reopen));
        driver.running.store(true, Ordering::Release);
        let task = Task::new(self.shared.clone(), home.handle());
        home.run(task);
        Ok(())
    }
}

impl NodeSet {
    /// Runs a future where the driver runs, for as long as that runtime lives. Without a driver it
    /// is dropped.
    pub(crate) fn spawn(&self, beside: impl Future<Output = ()> + Send + 'static) {
        // The runtime of an earlier driver may be gone; a new one starts here, if there is one.
        let _ = self.ensure_driver();
        let home = lock(&self.shared.driver.home).clone();
        if let Some(home) = home {
            drop(home.spawn(self.clock().attend(beside)));
        }
    }
}

/// Where a driver runs.
enum Home {
    Runtime(Handle),
    Thread(OwnRuntime),
}

/// A runtime that may be dropped anywhere, also on another runtime, where waiting is not allowed.
struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Home {
    fn find(driver: Driver) -> Result<Self, Error> {
        match driver {
            Driver::Runtime => {
                Handle::try_current().map(Self::Runtime).map_err(|_| Error::no_runtime())
            }
            Driver::Thread => {
                let runtime = Builder::new_current_thread().enable_all().build();
                let own = runtime.map(|runtime| Self::Thread(OwnRuntime(Some(runtime))));
                own.map_err(|_| Error::closed(NO_THREAD))
            }
        }
    }

    fn handle(&self) -> Option<Handle> {
        match self {
            Self::Runtime(handle) => Some(handle.clone()),
            Self::Thread(own) => own.0.as_ref().map(|runtime| runtime.handle().clone()),
        }
    }

    fn run(self, task: Task) {
        match self {
            // The task ends by itself, once the nodes are no longer used.
            Self::Runtime(runtime) => drop(runtime.spawn(task.pass.clock.clone().attend(task))),
            Self::Thread(own) => {
                // Without a thread the task is dropped, which tells waiting callers that nothing
                // was sent; the next use tries again.
                let drive = move || own.0.as_ref().map(|runtime| runtime.block_on(task));
                drop(thread::Builder::new().name("quorlock-driver".into()).spawn(drive));
            }
        }
    }
}

/// The driver's future.
struct Task {
    shared: Arc<Shared>,
    sessions: Vec<Place>,
    pass: Pass,
    decided: Decided,
    /// Which session is served first; it moves on with each pass.
    first: usize,
    /// This pass writes; the one before yielded for the callers.
    yielded: bool,
    timer: Option<Pin<Box<Sleep>>>,
    armed: bool,
    /// Set when the timer must be polled.
    ready: ReadyFlag,
    /// This process stalled (the timer came late); deadlines were extended once.
    excused: bool,
    /// When to end, once the nodes are no longer used.
    last_call: Option<Moment>,
}

/// A session, whose it is, and whether it has something to do.
struct Place {
    node: usize,
    link: usize,
    session: Session,
    ready: ReadyFlag,
}

impl Task {
    /// `home` is the runtime on which it runs.
    fn new(shared: Arc<Shared>, home: Option<Handle>) -> Self {
        let pass = Pass {
            clock: shared.clock.clone(),
            entropy: shared.entropy.clone(),
            dial: shared.dial.clone(),
            handshake: shared.handshake.clone(),
            options: shared.options,
            observers: shared.observers.clone(),
            staging: vec![0; STAGING].into_boxed_slice(),
            completions: Vec::new(),
            lapsed: Vec::new(),
            expired: Vec::new(),
            pushes: Vec::new(),
            changed: false,
        };
        let mut sessions = Vec::new();
        for (index, node) in shared.nodes.iter().enumerate() {
            for link in 0..node.links().len() {
                let session = Session::start(node, &pass, link == 0);
                let ready = ReadyFlag::new(&shared.driver.waker);
                ready.set(); // its first poll is due
                sessions.push(Place { node: index, link, session, ready });
            }
        }
        let ready = ReadyFlag::new(&shared.driver.waker);
        Self {
            shared,
            sessions,
            pass,
            decided: Decided::new(home),
            first: 0,
            yielded: false,
            timer: None,
            armed: false,
            ready,
            excused: false,
            last_call: None,
        }
    }

    /// Does what there is to do; `Ready` when the driver has ended.
    fn advance(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.serve();
        if self.has_queued() {
            if !self.yielded {
                self.yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.flush();
        }
        self.yielded = false;
        if self.is_done() {
            return Poll::Ready(());
        }
        self.keep_time();
        Poll::Pending
    }

    /// Lets every session that has something to do, do it, casts the votes that this brings, and
    /// wakes the callers.
    fn serve(&mut self) {
        let Self { shared, sessions, pass, decided, first, .. } = self;
        let count = sessions.len();
        for offset in 0..count {
            let place = &mut sessions[(*first + offset) % count];
            if !place.ready.take() {
                continue;
            }
            let mut cx = Context::from_waker(place.ready.waker());
            let node = &shared.nodes[place.node];
            let link = &node.links()[place.link];
            let admit = |peer: &_| shared.admit(place.node, peer);
            place.session.poll(&mut cx, node, link, pass, admit);
            vote(shared, place.node, pass, decided);
            tell(shared, place.node, pass);
        }
        *first = (*first + 1) % count.max(1);
        decided.wake(shared); // before anything is written, which takes longer
    }

    /// Writes what is queued.
    fn flush(&mut self) {
        for place in &mut self.sessions {
            let node = &self.shared.nodes[place.node];
            let link = &node.links()[place.link];
            if link.is_dirty() {
                place.session.flush(place.ready.waker(), node, link, &mut self.pass);
                vote(&self.shared, place.node, &mut self.pass, &mut self.decided);
                tell(&self.shared, place.node, &mut self.pass);
            }
        }
    }

    fn has_queued(&self) -> bool {
        let links = |place: &Place| self.shared.nodes[place.node].links()[place.link].is_dirty();
        self.sessions.iter().any(links)
    }

    /// Does what time demands, and sets the timer for the next such moment.
    fn keep_time(&mut self) {
        // In any case: a timer that is no longer needed sets its flag, too.
        let fired = self.ready.take();
        let fired = match &mut self.timer {
            Some(timer) if self.armed && fired => {
                timer.as_mut().poll(&mut Context::from_waker(self.ready.waker())).is_ready()
            }
            _ => false,
        };
        let changed = std::mem::take(&mut self.pass.changed);
        if changed {
            self.shared.changed.notify_waiters();
        }
        let next = self.shared.driver.timer.set_anew(fired || changed, |due| {
            let now = self.pass.clock.now();
            if fired && now.since(due) > STALL && !std::mem::replace(&mut self.excused, true) {
                return now.plus(GRACE);
            }
            self.excused = false;
            let mut next = self.last_call.unwrap_or(Moment::NEVER);
            for place in &mut self.sessions {
                let node = &self.shared.nodes[place.node];
                let (link, waker) = (&node.links()[place.link], place.ready.waker());
                next = next.min(place.session.tick(now, waker, node, link, &mut self.pass));
                vote(&self.shared, place.node, &mut self.pass, &mut self.decided);
                tell(&self.shared, place.node, &mut self.pass);
            }
            next
        });
        if let Some(next) = next {
            self.arm(next);
        }
    }

    fn arm(&mut self, next: Moment) {
        self.armed = next != Moment::NEVER;
        if !self.armed {
            return;
        }
        let clock = &self.pass.clock;
        match &mut self.timer {
            Some(timer) => clock.reset(timer.as_mut(), next),
            None => self.timer = Some(clock.sleep_until(next)),
        }
        self.ready.set(); // the timer registers when it is polled
    }

    /// Whether the driver may end: the nodes are unused, and all they were sent has been answered.
    fn is_done(&mut self) -> bool {
        if !self.shared.driver.closing.load(Ordering::Acquire) {
            return false;
        }
        let now = self.pass.clock.now();
        let last_call = *self.last_call.get_or_insert_with(|| {
            self.shared.driver.timer.request_look();
            now.plus(LINGER)
        });
        let settled =
            |place: &Place| self.shared.nodes[place.node].links()[place.link].is_settled();
        if self.sessions.iter().all(settled) {
            return true;
        }
        if now.since(last_call) > STALL {
            // This process stood still: what it owes has not had that time. However often that
            // happens, an undo is given up when its key cannot live any more.
            self.last_call = Some(now.plus(LINGER));
            self.shared.driver.timer.request_look();
            return false;
        }
        now >= last_call
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.driver.waker.register(cx.waker());
        // Ordering: a count; a wrong one costs a spare task at most.
        self.shared.driver.passes.fetch_add(1, Ordering::Relaxed);
        let ended = self.advance(cx);
        let Self { decided, shared, .. } = &mut *self;
        decided.wake(shared);
        ended
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // From here on, sending fails and the next use starts another driver.
        self.shared.nodes.iter().for_each(Node::leave);
        for place in &self.sessions {
            self.shared.nodes[place.node].links()[place.link].orphan(&mut self.pass.lapsed);
            vote(&self.shared, place.node, &mut self.pass, &mut self.decided);
        }
        self.decided.wake_from_here(&self.shared.slots);
        self.shared.driver.running.store(false, Ordering::Release);
        self.shared.changed.notify_waiters();
    }
}

/// Tells the listener what one node said unasked, or that it will say nothing more: behind its
/// votes, as it came.
fn tell(shared: &Shared, node: usize, pass: &mut Pass) {
    if pass.pushes.is_empty() {
        return;
    }
    let listener = shared.handshake.listener.as_deref();
    for push in pass.pushes.drain(..) {
        let Some(listener) = listener else { continue };
        match push {
            Push::Message(said) => listener.hear(node, &said),
            Push::Changed(key) => listener.hear_change(node, key.as_deref()),
            Push::Subscribed => {}
        }
    }
}

/// Casts what one node's session has brought, and notes which operations are decided by it.
fn vote(shared: &Shared, node: usize, pass: &mut Pass, decided: &mut Decided) {
    let slots = &shared.slots;
    for completion in pass.completions.drain(..) {
        if completion.ticket == Ticket::UNAWAITED {
            continue;
        }
        let (vote, extra) = completion.kind.vote_of(completion.reply);
        if let Some(frame) = extra {
            if vote == NodeVote::DurabilityMismatch {
                // Before the vote, and also where no task waits for it any more.
                shared.note_mismatch(node, &frame);
            }
            slots.keep(completion.ticket, node, frame);
        }
        if slots.cast(completion.ticket, node, vote, completion.rtt) {
            decided.add(completion.ticket, slots);
        }
    }
    if !pass.expired.is_empty() || !pass.lapsed.is_empty() {
        vote_without_reply(slots, node, pass, decided);
    }
}

/// As [`vote`], for operations to which no reply has come.
#[cold]
fn vote_without_reply(slots: &Slots, node: usize, pass: &mut Pass, decided: &mut Decided) {
    let expired = pass.expired.drain(..).map(|ticket| (ticket, NodeVote::Silent));
    let lapsed = pass.lapsed.drain(..).map(|Lapsed { ticket, sent }| {
        (ticket, if sent { NodeVote::Disconnected } else { NodeVote::Down })
    });
    for (ticket, vote) in expired.chain(lapsed) {
        if ticket != Ticket::UNAWAITED && slots.cast(ticket, node, vote, 0) {
            decided.add(ticket, slots);
        }
    }
}
