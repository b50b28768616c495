//! What a node's connections share: its store, its clock, its rules, and whether it runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::clock::NodeClock;
use super::fault::{Point, Reaction, Rule};
use super::first::first;
use super::outbox::Outbox;
use super::store::{Effects, SessionId, Setup, Store, script_name};
use super::wire;
use crate::clock::{Clock, Moment};
use crate::sync::{Mutex, lock};

/// The connection is none of the node's any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gone;

/// How a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    Runs,
    /// Connections are accepted, bytes are taken, nothing is executed.
    Hangs,
    /// There is no process.
    Stopped,
}

/// The state of a node.
pub(super) struct State {
    pub(super) store: Store,
    pub(super) clock: NodeClock,
    pub(super) rules: Vec<Rule>,
    pub(super) life: Life,
    /// How many processes there were before this one.
    pub(super) process: u64,
    /// Where the present process's connections are written to.
    outboxes: BTreeMap<SessionId, Arc<Outbox>>,
    /// What has come, for tests that look into it.
    #[cfg(test)]
    pub(super) heard: Vec<Heard>,
    /// How often bytes have come.
    #[cfg(test)]
    pub(super) reads: u64,
}

/// A command that has come on a connection, whether it is executed or not.
#[cfg(test)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Moment,
    pub(crate) connection: SessionId,
    /// Commands that came together have the same number.
    pub(crate) read: u64,
    pub(crate) words: Vec<Bytes>,
}

/// A node, as its connections have it.
pub(super) struct Shared {
    state: Mutex<State>,
    /// The state has changed in a way that a task may wait for.
    changed: Notify,
}

/// What keeps a connection from going on.
enum Blocked {
    Gone,
    Unknown,
    Until(Moment),
}

impl Shared {
    pub(super) fn new(setup: Setup) -> Self {
        let state = State {
            store: Store::new(setup),
            clock: NodeClock::new(),
            rules: Vec::new(),
            life: Life::Runs,
            process: 0,
            outboxes: BTreeMap::new(),
            #[cfg(test)]
            heard: Vec::new(),
            #[cfg(test)]
            reads: 0,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut lock(&self.state))
    }

    /// As [`Shared::with`]; tasks that wait for a change look again.
    pub(super) fn change<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let result = self.with(work);
        self.changed.notify_waiters();
        result
    }

    /// Remembers what has come.
    #[cfg(test)]
    pub(super) fn note(&self, connection: SessionId, at: Moment, words: &[Bytes]) {
        self.with(|state| {
            let (read, words) = (state.reads, words.to_vec());
            state.heard.push(Heard { at, connection, read, words });
        });
    }

    /// Takes in a new connection, unless there is no process.
    pub(super) fn admit(&self) -> Option<(SessionId, u64, Arc<Outbox>)> {
        self.with(|state| {
            if state.life == Life::Stopped {
                return None;
            }
            let (session, outbox) = (state.store.connect(), Arc::new(Outbox::default()));
            state.outboxes.insert(session, outbox.clone());
            Some((session, state.process, outbox))
        })
    }

    pub(super) fn leave(&self, session: SessionId, process: u64) {
        self.with(|state| {
            if state.process == process {
                state.store.disconnect(session);
                state.outboxes.remove(&session);
            }
        });
    }

    /// Ends every connection: nothing of what is under way is executed any more.
    pub(super) fn cut(&self) {
        self.change(State::cut);
    }

    /// Another process takes the place of this one; see [`Store::restart`].
    pub(super) fn restart(&self, keeps_data: bool) {
        self.change(|state| {
            state.cut();
            state.process += 1;
            let run_id = run_id(&state.store.setup().run_id);
            state.store.restart(run_id, keeps_data);
            state.life = Life::Runs;
        });
    }

    /// Waits while the node hangs, or is paused for such a command.
    pub(super) async fn gate(&self, process: u64, words: &[Bytes]) -> Result<(), Gone> {
        loop {
            let changed = self.changed.notified();
            match self.with(|state| state.blocked(process, words)) {
                None => return Ok(()),
                Some(Blocked::Gone) => return Err(Gone),
                Some(Blocked::Unknown) => changed.await,
                Some(Blocked::Until(moment)) => {
                    first(Clock::default().sleep_until(moment), changed).await;
                }
            }
        }
    }

    /// What the rules say of a command at this point.
    pub(super) fn judge(&self, point: Point, words: &[Bytes]) -> Vec<Reaction> {
        self.with(|state| {
            if state.rules.is_empty() {
                return Vec::new();
            }
            let names = names(words);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let judged = state.rules.iter_mut().map(|rule| rule.judge(point, &names, words));
            judged.flatten().collect()
        })
    }

    /// Executes a command; returns the bytes of its reply. What is to be said to others is sent.
    pub(super) fn execute(
        &self,
        session: SessionId,
        process: u64,
        words: &[Bytes],
    ) -> Result<Vec<u8>, Gone> {
        let executed = self.with(|state| {
            if state.process != process || !state.store.is_connected(session) {
                return Err(Gone);
            }
            let now = state.now();
            let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
            let (end, was_pausing) = (state.store.next_end(), state.store.is_pausing());
            let effects = state.store.execute(session, &words, now);
            let paused = was_pausing || state.store.is_pausing();
            let timed = paused || end != state.store.next_end();
            Ok((state.deliver(effects, Some(session)), timed))
        });
        let (reply, timed) = executed?;
        if timed {
            self.changed.notify_waiters();
        }
        Ok(reply)
    }

    /// Behind the reply to its last command, a connection that was told to end ends.
    pub(super) fn release(&self, session: SessionId) {
        self.with(|state| {
            if !state.store.is_connected(session) {
                if let Some(outbox) = state.outboxes.remove(&session) {
                    outbox.close();
                }
            }
        });
    }

    /// Applies a reaction to the node as a whole.
    pub(super) fn apply(&self, reaction: &Reaction) {
        match reaction {
            Reaction::Hang => self.change(State::hang),
            Reaction::Restart { keeps_data } => self.restart(*keeps_data),
            Reaction::StepClock { millis } => {
                self.change(|state| state.clock.step(Clock::default().now(), *millis));
            }
            Reaction::DriftClock { ppm } => {
                self.change(|state| state.clock.drift(Clock::default().now(), *ppm));
            }
            // The rest is about one command.
            _ => {}
        }
    }

    /// Pushes the ends of keys when they come, while this process lives and a client tracks.
    pub(super) async fn keep_time(&self, process: u64) {
        loop {
            let changed = self.changed.notified();
            let next = self.with(|state| match state.process == process {
                true if state.life == Life::Runs => state.advance(),
                _ => None,
            });
            match next {
                Some(moment) => first(Clock::default().sleep_until(moment), changed).await,
                None => changed.await,
            }
        }
    }
}

impl State {
    /// What the node's clock shows.
    pub(super) fn now(&self) -> Duration {
        self.clock.read(Clock::default().now())
    }

    pub(super) fn hang(&mut self) {
        if self.life == Life::Runs {
            self.life = Life::Hangs;
        }
    }

    pub(super) fn cut(&mut self) {
        for (session, outbox) in std::mem::take(&mut self.outboxes) {
            self.store.disconnect(session);
            outbox.abort();
        }
    }

    fn blocked(&self, process: u64, words: &[Bytes]) -> Option<Blocked> {
        if self.process != process || self.life == Life::Stopped {
            return Some(Blocked::Gone);
        }
        if self.life == Life::Hangs {
            return Some(Blocked::Unknown);
        }
        let until = self.store.paused_until(words.first()?)?;
        let now = Clock::default().now();
        if until <= self.clock.read(now) {
            return None;
        }
        Some(Blocked::Until(self.clock.moment(until, now)))
    }

    /// Sends what the effects say to others; returns the reply's bytes.
    pub(super) fn deliver(&mut self, effects: Effects, caller: Option<SessionId>) -> Vec<u8> {
        let mut reply = Vec::new();
        for (to, frame) in effects.messages {
            let mut bytes = Vec::new();
            wire::put(&mut bytes, &frame, self.store.dialect(to));
            if caller == Some(to) {
                reply.append(&mut bytes);
            } else if let Some(outbox) = self.outboxes.get(&to) {
                outbox.send(&bytes);
            }
        }
        // The caller's own connection ends behind the reply.
        for session in effects.ended.into_iter().filter(|session| caller != Some(*session)) {
            if let Some(outbox) = self.outboxes.remove(&session) {
                outbox.close();
            }
        }
        reply
    }

    /// Removes what has ended by now; when a client tracks, returns the moment of the next end.
    fn advance(&mut self) -> Option<Moment> {
        if !self.store.is_tracked() {
            return None;
        }
        let effects = self.store.advance(self.now());
        self.deliver(effects, None);
        let now = Clock::default().now();
        self.store.next_end().map(|end| self.clock.moment(end, now))
    }
}

/// What a command goes by: its name, and its script's.
fn names(words: &[Bytes]) -> Vec<String> {
    let name = words.first().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase());
    let script = name.as_deref().and_then(|name| match name {
        "eval" | "evalsha" => script_name(words.get(1)?),
        _ => None,
    });
    name.into_iter().chain(script.map(str::to_owned)).collect()
}

/// The name of the process behind the one that has this name.
fn run_id(last: &str) -> String {
    let (name, count) = last.split_at(last.len().saturating_sub(8));
    let count = u32::from_str_radix(count, 16).unwrap_or(0).wrapping_add(1);
    format!("{name}{count:08x}")
}
