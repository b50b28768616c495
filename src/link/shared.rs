//! The half of a connection that callers share, behind one short lock.

use std::{collections::HashSet, io, mem, time::Duration};

use super::answer::{FollowUp, ReplyKind, Stray};
use super::fifo::Fifo;
use super::needs_flush::NeedsFlush;
use super::outgoing::{Outgoing, Sent, Urgency};
use super::peer::RunId;
use super::pending::{Client, PendingUndos};
use super::pipeline::{Completion, Entry, Lapsed, Pipeline, Ticket, Unsettled};
use super::reply::Reply;
use super::state::{Phase, QUEUED_CAPACITY, State};
use super::stream::Writer;
use super::undo::Undo;
use crate::clock::Moment;
use crate::options::LinkOptions;
use crate::sync::{Mutex, lock};

/// What the replies of a pass ask for.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Something was sent again, or is to be: [`Link::expire`] and [`Link::retry`] must be called.
    pub(super) is_due: bool,
    /// The server rejects [native commands](super::native), and said this: the first time on this
    /// connection.
    pub(super) rejected: Option<Box<str>>,
    /// The server refuses to track what is read on this connection.
    pub(super) refuses_tracking: bool,
}

/// The shared half of a connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) state: Mutex<State>,
    pub(super) needs_flush: NeedsFlush,
    options: LinkOptions,
}

impl Link {
    /// A link whose first connection has not been tried.
    pub(crate) fn new(options: LinkOptions) -> Self {
        let state = State {
            phase: Phase::Opening,
            writer: None,
            queued: Fifo::default(),
            written: 0,
            blocked: false,
            batch: 0,
            broken: None,
            pipeline: Pipeline::default(),
            client: None,
            run_id: None,
            is_native: false,
            is_tracking: false,
            rtt: None,
            holes: Vec::new(),
            pending: PendingUndos::new(&options),
        };
        Self { state: Mutex::new(state), needs_flush: NeedsFlush::new(), options }
    }

    /// Hands a command to the link. Its entry stands in the pipeline before its first byte reaches
    /// the kernel.
    pub(crate) fn send(&self, command: &Outgoing<'_>) -> Sent {
        let mut state = lock(&self.state);
        let undoing = command.urgency != Urgency::Usual;
        match state.phase {
            Phase::Opening | Phase::Open => {}
            Phase::Orphaned | Phase::Closed => {
                if undoing {
                    state.note_pending(command);
                }
                return Sent::Closed;
            }
        }
        if !undoing && (state.pipeline.is_suspect() || state.pending.concern(command.undo)) {
            return Sent::Suspect;
        }
        if !undoing && self.is_full(&state, command.bytes.len()) {
            return Sent::Full;
        }
        if command.entry.kind.names_server() && !state.knows_run_id() {
            return Sent::Closed;
        }
        if command.entry.kind == ReplyKind::Tracked {
            state.append_tracking(command.entry);
        }
        let kind = command.entry.kind;
        match state.is_native && kind == ReplyKind::Undo && command.undo.has_native_form() {
            true => state.append_native(command.entry, command.undo),
            false => state.append(command.entry, command.bytes, command.undo),
        }
        if kind.names_server() {
            state.put_run_id();
        }
        let direct = match command.urgency {
            Urgency::Usual | Urgency::Undo => state.is_quiet(self.options.direct_writes),
            Urgency::Drop => true,
        };
        if direct {
            state.write();
        }
        if state.queued.is_empty() {
            return Sent::Written;
        }
        self.needs_flush.set();
        Sent::Queued
    }

    fn is_full(&self, state: &State, more: usize) -> bool {
        state.pipeline.len() >= self.options.entries_max
            || state.queued.len().saturating_add(more) > self.options.bytes_max
    }

    /// Whether the driver has something to write here.
    pub(crate) fn is_dirty(&self) -> bool {
        self.needs_flush.is_set()
    }

    /// Whether nothing is queued, every reply has come, and no undo is pending.
    pub(crate) fn is_settled(&self) -> bool {
        let state = lock(&self.state);
        state.queued.is_empty() && state.pipeline.is_empty() && state.pending.is_empty()
    }

    /// How many undos no answer has confirmed: the pending ones, those of commands that are not
    /// answered, and those given up, while their keys may live.
    pub(crate) fn owed(&self, now: Moment) -> usize {
        let state = lock(&self.state);
        // A command that may have been applied, and the undo behind it, are about one pair.
        let undos = state.pending.undos().chain(state.pipeline.undos());
        let pairs: HashSet<&[u8]> = undos.map(Undo::pair).collect();
        pairs.len() + state.pending.given_up(now)
    }

    /// Writes what is queued. `Ok(true)` says that the kernel takes no more: the driver waits for
    /// writability and calls [`Link::unblock`].
    pub(crate) fn flush(&self) -> Result<bool, io::ErrorKind> {
        self.needs_flush.clear();
        self.write_queued()
    }

    pub(super) fn write_queued(&self) -> Result<bool, io::ErrorKind> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open && !state.blocked {
            state.write();
        }
        match state.broken {
            Some(kind) => Err(kind),
            None => Ok(state.blocked),
        }
    }

    /// Writes what is queued from a caller's thread, as far as the kernel takes it now. `true`: the
    /// driver must see to the rest.
    pub(crate) fn nudge(&self) -> bool {
        let left = self.is_dirty() && self.flush() != Ok(false);
        if left {
            self.needs_flush.set();
        }
        left
    }

    /// The socket is writable again.
    pub(crate) fn unblock(&self) {
        lock(&self.state).blocked = false;
        self.needs_flush.set();
    }

    /// Gives replies to the commands they answer. A stray poisons the connection: those
    /// before it stand, it and those after it are dropped.
    pub(crate) fn answer(
        &self,
        replies: &mut Vec<Reply>,
        now: Moment,
        completions: &mut Vec<Completion>,
    ) -> Result<Answered, Stray> {
        let mut unsettled = Vec::new(); // allocates only when a server refused an undo
        let mut state = lock(&self.state);
        state.batch = replies.len();
        let mut answered = Answered::default();
        let result = replies.drain(..).try_for_each(|reply| {
            if let Some(completion) = state.pipeline.answer(reply, now, &mut unsettled)? {
                completions.push(completion);
            }
            Ok(())
        });
        let latest = completions.last().map(|latest| Duration::from_nanos(latest.rtt));
        state.rtt = latest.or(state.rtt);
        for Unsettled { entry, undo, follow_up, error } in unsettled {
            if matches!(follow_up, FollowUp::WithoutNative | FollowUp::Repeat) {
                answered.rejected = error.filter(|_| state.is_native).or(answered.rejected);
                state.is_native = false;
            }
            match follow_up {
                FollowUp::WithScript | FollowUp::WithoutNative | FollowUp::Repeat => {
                    let undo = undo.lent();
                    state.append(entry.again(now), &undo.whole(), undo);
                    self.needs_flush.set();
                }
                FollowUp::ForFirstKey => {
                    state.pending.handle_executed(undo.lent());
                    if let Some(first) = undo.lent().for_first_key() {
                        let entry = Entry { kind: ReplyKind::Undo, ..entry.again(now) };
                        state.append(entry, &first.lent().whole(), first.lent());
                        self.needs_flush.set();
                    }
                }
                FollowUp::TrackingFailed => state.is_tracking = false,
                // Not where it follows from a request before it that has failed.
                FollowUp::TrackingRefused => {
                    answered.refuses_tracking |= mem::take(&mut state.is_tracking);
                }
                FollowUp::Settled => state.pending.handle_executed(undo.lent()),
                FollowUp::Ended => state.pending.handle_ended(),
                FollowUp::Doubt => state.pending.handle_not_ended(now),
                FollowUp::Later => state.pending.handle_refused(undo, now),
            }
            answered.is_due |= follow_up.has_sent_or_will();
        }
        result.map(|()| answered)
    }

    /// When undos are to be tried again that the server would not execute; `None` if there are
    /// none. Tries those that are due.
    pub(crate) fn retry(&self, now: Moment) -> Option<Moment> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open && state.pending.due()? <= now {
            if state.pipeline.is_suspect() {
                state.pending.put_off(now); // it has not answered the last ones yet
            } else {
                self.settle(&mut state, now);
            }
        }
        state.pending.due()
    }

    /// Replaces the undos that this one supersedes by this one.
    pub(crate) fn undo_instead(&self, undo: Undo<'_>) {
        let mut state = lock(&self.state);
        state.pipeline.undo_instead(undo);
        state.pending.undo_instead(undo);
    }

    /// Withdraws the pending undo of a pair. One that is on its way is executed.
    pub(crate) fn withdraw(&self, pair: &[u8]) {
        lock(&self.state).pending.withdraw(pair);
    }

    /// Whether the undo of a pair is pending.
    pub(crate) fn has_pending(&self, pair: &[u8]) -> bool {
        lock(&self.state).pending.has(pair)
    }

    /// How long the latest answer on the present connection took.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        lock(&self.state).rtt
    }

    /// Whether it sends [native commands](super::native).
    pub(crate) fn is_native(&self) -> bool {
        lock(&self.state).is_native
    }

    /// See [`Pipeline::expire`].
    pub(crate) fn expire(&self, now: Moment, expired: &mut Vec<Ticket>) -> Moment {
        lock(&self.state).pipeline.expire(now, expired)
    }

    /// When the command was sent whose reply is next.
    pub(crate) fn oldest(&self) -> Option<Moment> {
        lock(&self.state).pipeline.oldest()
    }

    /// When the connection is to be given up for want of replies; see [`Pipeline::given_up`].
    pub(crate) fn given_up(&self, now: Moment) -> Option<Moment> {
        lock(&self.state).pipeline.given_up(now, self.options.reply_age_max)
    }

    /// Puts a connection behind the link that has shaken hands, and sends the pending undos.
    pub(crate) fn open(
        &self,
        writer: Writer,
        (client, run_id): (Option<Client>, Option<RunId>),
        is_native: bool,
        now: Moment,
    ) {
        let mut state = lock(&self.state);
        (state.written, state.blocked, state.broken) = (0, false, None);
        state.writer = Some(writer);
        (state.client, state.run_id, state.is_native) = (client, run_id, is_native);
        state.phase = Phase::Open;
        // What the earlier connections left comes first: an undo may not follow a command whose
        // grant counts on the key that the undo deletes.
        let (pipeline, holes) = (mem::take(&mut state.pipeline), mem::take(&mut state.holes));
        let queued = state.queued.take();
        state.queued.reserve(QUEUED_CAPACITY);
        state.pipeline.reserve();
        self.settle(&mut state, now);
        state.follow(pipeline, &queued, holes);
    }

    fn settle(&self, state: &mut State, now: Moment) {
        let mut pending = mem::take(&mut state.pending);
        let run_id = state.client.as_ref().map(|client| client.run_id.clone());
        pending.settle(run_id.as_deref(), now, |entry, bytes, undo| {
            state.append(entry, bytes, undo);
        });
        state.pending = pending;
        self.needs_flush.set();
    }

    /// The node will be given keys that live for longer than was said before: their undos stay
    /// pending for as long. See [`LinkOptions::undo_horizon`].
    pub(crate) fn extend_horizon(&self, horizon: Duration) {
        lock(&self.state).pending.extend_horizon(horizon);
    }

    /// Ends the connection: everything in flight goes to `lapsed`, and what may have been applied
    /// is to be undone on the next connection.
    pub(crate) fn close(&self, lapsed: &mut Vec<Lapsed>) {
        let mut state = lock(&self.state);
        state.phase = Phase::Closed;
        if let Some(writer) = state.writer.take() {
            writer.abort();
        }
        state.end(lapsed);
        self.needs_flush.clear();
    }

    /// The driver is gone, and no task reads replies. Writes what is queued; undos are still
    /// written at once, so that a guard dropped later leaves no key.
    pub(crate) fn orphan(&self, lapsed: &mut Vec<Lapsed>) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open {
            state.write();
        }
        let is_clear = state.queued.is_empty() && state.broken.is_none();
        if state.phase == Phase::Open && is_clear {
            state.phase = Phase::Orphaned;
        } else {
            // Half a command stands in the stream, or no stream is there: nothing can follow.
            state.phase = Phase::Closed;
            state.writer = None;
        }
        state.end(lapsed);
    }

    /// A driver starts: commands may queue for its first connection. An orphaned connection is
    /// closed normally, so that what it wrote is still delivered.
    pub(crate) fn reopen(&self) {
        let mut state = lock(&self.state);
        debug_assert!(state.pipeline.is_empty(), "ending a connection empties its pipeline");
        // What the orphaned one did not take is pending, and no entry awaits replies to it.
        state.queued.clear();
        (state.written, state.blocked, state.broken) = (0, false, None);
        state.writer = None;
        state.phase = Phase::Opening;
    }
}
