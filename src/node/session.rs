//! The driver's work on one link: connect, read, end, wait, connect again, forever.
//!
//! One attempt is in flight per link, and no other code retries a lost connection: callers only
//! ever see a link that takes commands or one that does not.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::Node;
use super::backoff::Backoff;
use super::connect::{Connected, Connecting, broken, connect};
use crate::clock::{Clock, Moment};
use crate::entropy::Entropy;
use crate::link::{
    Client, Completion, Dial, Ended, HandshakeConfig, Inbound, Lapsed, Link, Peer, Push, Ticket,
};
use crate::observe::{Event, Observers};
use crate::options::LinkOptions;
use crate::report::Fault;

/// The resources of a session and its outputs, shared by all sessions of a driver.
pub(crate) struct Pass {
    pub(crate) clock: Clock,
    pub(crate) entropy: Arc<Entropy>,
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) handshake: HandshakeConfig,
    pub(crate) options: LinkOptions,
    /// The observers of nodes that disconnect and reconnect. They are called without any lock.
    pub(crate) observers: Observers,
    /// Where sockets are read into.
    pub(crate) staging: Box<[u8]>,
    /// Replies, matched with their operations.
    pub(crate) completions: Vec<Completion>,
    /// Operations whose connection has ended.
    pub(crate) lapsed: Vec<Lapsed>,
    /// Operations whose deadline has passed.
    pub(crate) expired: Vec<Ticket>,
    /// What the servers said unasked.
    pub(crate) pushes: Vec<Push>,
    /// A connection was made or has ended: health has changed, and a timer may have to be set.
    pub(crate) changed: bool,
}

/// The driver's half of one link.
pub(crate) struct Session {
    state: State,
    /// It is the one of its node that listens, if the locker does.
    listens: bool,
    backoff: Backoff,
}

enum State {
    Connecting(Connecting),
    Open { inbound: Box<Inbound>, since: Moment },
    Waiting { until: Moment },
}

impl Session {
    /// Starts the first attempt of a driver.
    pub(crate) fn start(node: &Node, pass: &Pass, listens: bool) -> Self {
        Self {
            state: State::Connecting(attempt(node, pass, listens)),
            listens,
            backoff: Backoff::new(pass.options.reconnect_first, pass.options.reconnect_cap),
        }
    }

    /// Does what can be done now. `admit` decides whether a server that has shaken hands may vote.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
        link: &Link,
        pass: &mut Pass,
        admit: impl FnOnce(&Peer) -> Result<(), Fault>,
    ) {
        match &mut self.state {
            State::Connecting(connecting) => match connecting.poll(cx) {
                Poll::Pending => node.note_step(connecting.step()),
                Poll::Ready(connected) => {
                    let admitted = connected.and_then(|connected| match admit(&connected.peer) {
                        Ok(()) => Ok(connected),
                        Err(fault) => {
                            node.note_refused(connected.peer);
                            Err(fault)
                        }
                    });
                    match admitted {
                        Ok(connected) => self.open(connected, node, link, pass),
                        Err(fault) => self.fail(fault, node, link, pass),
                    }
                    // The new state has registered no waker yet.
                    cx.waker().wake_by_ref();
                }
            },
            State::Open { inbound, .. } => {
                let Pass { clock, staging, completions, pushes, .. } = pass;
                let polled = inbound.poll(cx, link, clock, staging, completions);
                pushes.append(&mut inbound.pushes);
                let is_due = std::mem::take(&mut inbound.is_due);
                if let Some(error) = inbound.rejected.take() {
                    let (node, class) = (&*node.address().label, pass.observers.class);
                    pass.observers.tell(|| Event::NativeRejected { node, class, error: &error });
                }
                let refuses_tracking = std::mem::take(&mut inbound.refuses_tracking);
                if refuses_tracking && node.note_tracking_refused() {
                    // Who waits for word of a change would wait for nothing.
                    pass.pushes.push(Push::Changed(None));
                }
                if let Poll::Ready(ended) = polled {
                    self.fail(fault(ended), node, link, pass);
                } else if is_due {
                    pass.changed = true; // a timer must be set for it
                }
            }
            State::Waiting { .. } => {}
        }
    }

    /// Writes what callers have queued. `waker` has this session polled.
    pub(crate) fn flush(&mut self, waker: &Waker, node: &Node, link: &Link, pass: &mut Pass) {
        let State::Open { inbound, .. } = &mut self.state else { return };
        match link.flush() {
            Ok(blocked) => {
                if blocked && !inbound.blocked {
                    inbound.blocked = true;
                    waker.wake_by_ref(); // so that the next pass registers for writability
                }
            }
            Err(kind) => self.fail(fault(Ended::Io(kind)), node, link, pass),
        }
    }

    /// Does what is due at `now`, and returns when something will be due next. `waker` has this
    /// session polled.
    pub(crate) fn tick(
        &mut self,
        now: Moment,
        waker: &Waker,
        node: &Node,
        link: &Link,
        pass: &mut Pass,
    ) -> Moment {
        if let State::Waiting { until } = self.state {
            if until > now {
                return until;
            }
            self.state = State::Connecting(attempt(node, pass, self.listens));
            waker.wake_by_ref();
        }
        let next = link.expire(now, &mut pass.expired);
        let State::Open { .. } = self.state else { return next };
        let next = match link.retry(now) {
            // What is tried again has a deadline, too, and is to be written.
            Some(retry) => {
                waker.wake_by_ref();
                next.min(retry).min(link.expire(now, &mut pass.expired))
            }
            None => next,
        };
        let Some(given_up) = link.given_up(now) else { return next };
        if given_up <= now {
            let after = link.oldest().map_or(Duration::ZERO, |oldest| now.since(oldest));
            self.fail(Fault::Silent { after, step: None }, node, link, pass);
            return now;
        }
        next.min(given_up)
    }

    fn open(&mut self, connected: Connected, node: &Node, link: &Link, pass: &mut Pass) {
        let Connected { inbound, writer, peer } = connected;
        let is_native = peer.is_native;
        let now = pass.clock.now();
        // Without the `run_id`, the client id could be one of another server process.
        let client = peer.client_id.zip(peer.server.run_id.clone());
        let client = client.map(|(number, run_id)| Client { run_id, number });
        link.open(writer, (client, peer.run_id()), is_native, now);
        self.state = State::Open { inbound: Box::new(inbound), since: now };
        pass.changed = true;
        let eviction = peer.eviction().map(Box::<str>::from);
        let policy = pass.handshake.policy.as_deref().filter(|_| !pass.observers.is_empty());
        let forgets = policy.is_some_and(|policy| policy.may_be_forgotten(&peer.server))
            && node.is_new_to_forget(peer.server.run_id.as_deref());
        let forgets = forgets.then(|| peer.server.persistence.clone());
        let was_down = node.set_peer(peer, self.listens);
        let (node, class) = (&*node.address().label, pass.observers.class);
        if was_down {
            pass.observers.tell(|| Event::NodeUp { node, class });
        }
        if let Some(persistence) = forgets {
            pass.observers.tell(|| Event::Forgets { node, class, persistence: &persistence });
        }
        if let Some(policy) = eviction {
            pass.observers.tell(|| Event::Evicts { node, class, policy: &policy });
        }
    }

    /// Ends the connection or the attempt; callers are told at once, and what may have been applied
    /// is kept for the next connection.
    fn fail(&mut self, fault: Fault, node: &Node, link: &Link, pass: &mut Pass) {
        pass.changed = true;
        let now = pass.clock.now();
        let mut was_open = false;
        if let State::Open { since, .. } = self.state {
            was_open = true;
            if now.since(since) >= pass.options.reconnect_first {
                self.backoff.reset();
            }
        }
        if was_open && self.listens {
            pass.pushes.push(Push::Changed(None)); // of which nothing will be told any more
        }
        // The fault is set before the votes, so that a task that reads a vote finds the reason.
        let is_news = node.set_fault(fault.clone(), was_open, self.listens);
        link.close(&mut pass.lapsed);
        let pause = self.backoff.next(|low, high| pass.entropy.between(low, high));
        // This drops the reader, and with it closes the socket.
        self.state = State::Waiting { until: now.plus(pause) };
        if is_news {
            let (node, class) = (&*node.address().label, pass.observers.class);
            pass.observers.tell(|| Event::NodeDown { node, class, fault: &fault });
        }
    }
}

fn attempt(node: &Node, pass: &Pass, listens: bool) -> Connecting {
    let mut handshake = pass.handshake.clone();
    handshake.listener = handshake.listener.filter(|_| listens);
    connect(
        pass.dial.clone(),
        node.address().clone(),
        handshake,
        pass.clock.clone(),
        pass.options.connect_timeout,
    )
}

fn fault(ended: Ended) -> Fault {
    match ended {
        Ended::Eof => Fault::Closed,
        Ended::Io(kind) => broken(kind.into()),
        Ended::Fault(fault) => fault,
        Ended::Undecodable(error) => Fault::Protocol { error: error.to_string().into() },
        Ended::Demoted => Fault::Replica,
        Ended::Stray => Fault::Protocol { error: "a reply that answers no command".into() },
    }
}
