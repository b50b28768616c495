//! The commands of one connection that await a reply: first sent, first answered.
//!
//! An *entry* is one command without a reply; its *ticket* tells the sender which operation the
//! reply belongs to. Replies carry no identity, only their position: the oldest entry owns the next
//! frame, whether its sender still waits or not. An entry whose deadline has passed becomes a
//! *tombstone*: its sender has been told, its reply will be consumed. While a tombstone stands at
//! the front the connection is *suspect*. A frame that cannot be the reply to the oldest entry is a
//! *stray*: the stream is out of step and the connection must end.
//!
//! Beside the entries runs what would undo them (`undo`): if the connection ends first, these
//! commands may have been applied, and their undos are what the next connection must settle.
//!
//! No I/O, no clock: bytes and moments come in as arguments.

use std::collections::VecDeque;
use std::time::Duration;

use super::answer::{FollowUp, ReplyKind, Stray};
use super::fifo::Fifo;
use super::reply::Reply;
use super::undo::{Form, Kept, Undo};
use crate::clock::Moment;
use crate::report::printable;

/// The sender's name for an operation; this room only hands it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(pub(crate) u64);

impl Ticket {
    /// No task waits for this reply.
    pub(crate) const UNAWAITED: Self = Self(u64::MAX);
}

/// One command without a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) ticket: Ticket,
    pub(crate) kind: ReplyKind,
    /// When it was handed to the link: not after its first byte reached the kernel.
    pub(crate) sent: Moment,
    pub(crate) deadline: Moment,
}

impl Entry {
    /// The same, sent again with its script.
    pub(super) fn again(self, now: Moment) -> Self {
        let allowed = self.deadline.since(self.sent);
        let kind = match self.kind {
            ReplyKind::NativeUndo => ReplyKind::Undo,
            kind => kind,
        };
        Self { kind, sent: now, deadline: now.plus(allowed), ..self }
    }
}

#[derive(Debug)]
struct Waiting {
    entry: Entry,
    /// Where its first byte stands in the connection's stream.
    begins: u64,
    /// How many bytes of `Pipeline::undo` are its own.
    undo_len: usize,
    undo_form: Form,
    /// Its sender has been told that no reply came in time.
    tombstone: bool,
}

/// A reply that has found its operation.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) ticket: Ticket,
    pub(crate) kind: ReplyKind,
    pub(crate) reply: Reply,
    /// In nanoseconds: each vote carries it, and few are asked for it.
    pub(crate) rtt: u64,
}

/// What the connection's end leaves of one command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lapsed {
    pub(crate) ticket: Ticket,
    /// Whether any byte of it reached the kernel: if not, it was certainly not applied.
    pub(crate) sent: bool,
}

/// An undo that the server answered and did not execute.
#[derive(Debug)]
pub(crate) struct Unsettled {
    pub(crate) entry: Entry,
    pub(crate) undo: Kept,
    pub(crate) follow_up: FollowUp,
    /// What the server said, if that was an error.
    pub(crate) error: Option<Box<str>>,
}

/// What a connection that has ended leaves to be undone.
#[derive(Debug)]
pub(crate) struct LeftUndo {
    pub(crate) undo: Kept,
    /// What it undoes, or the undo itself, had reached the kernel, a part of it at least.
    pub(crate) was_sent: bool,
}

/// For how many commands a pipeline has room from its beginning, and for how many bytes of what
/// would undo them.
const FEW_COMMANDS: usize = 16;
const FEW_UNDOS: usize = 2_048;

/// The FIFO of one connection.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    waiting: VecDeque<Waiting>,
    /// The bytes of all `waiting`'s undos, in their order, each `undo_len` long. A command that
    /// needs no undo keeps its pair here; its form says so.
    undo: Fifo,
}

impl Pipeline {
    /// Makes room for a few callers' commands, so that theirs allocate nothing.
    pub(crate) fn reserve(&mut self) {
        self.waiting.reserve(FEW_COMMANDS);
        self.undo.reserve(FEW_UNDOS);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a command whose first byte stands at `begins` in the stream.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry, begins: u64, undo: Undo<'_>) {
        self.undo.push(undo.bytes);
        let (undo_len, undo_form) = (undo.bytes.len(), undo.form);
        self.waiting.push_back(Waiting { entry, begins, undo_len, undo_form, tombstone: false });
    }

    /// Appends another connection's commands, none of which has been sent; they begin `shift` bytes
    /// later here.
    pub(crate) fn append(&mut self, other: Self, shift: u64) {
        self.undo.push(other.undo.as_slice());
        let later = |waiting: Waiting| Waiting { begins: waiting.begins + shift, ..waiting };
        self.waiting.extend(other.waiting.into_iter().map(later));
    }

    /// Replaces the undos that this one supersedes by this one.
    pub(crate) fn undo_instead(&mut self, undo: Undo<'_>) {
        if !self.undos().any(|own| undo.supersedes(own)) {
            return;
        }
        let known = std::mem::take(&mut self.undo);
        let mut rest = known.as_slice();
        for waiting in &mut self.waiting {
            let (bytes, behind) = rest.split_at(waiting.undo_len);
            let own = Undo { bytes, form: waiting.undo_form };
            let chosen = if undo.supersedes(own) { undo } else { own };
            self.undo.push(chosen.bytes);
            (waiting.undo_len, waiting.undo_form) = (chosen.bytes.len(), chosen.form);
            rest = behind;
        }
    }

    /// Gives the next reply to the oldest command. An undo that the server did not execute comes
    /// back in `unsettled`.
    pub(crate) fn answer(
        &mut self,
        reply: Reply,
        now: Moment,
        unsettled: &mut Vec<Unsettled>,
    ) -> Result<Option<Completion>, Stray> {
        let Some(&Waiting { entry, undo_len, undo_form, tombstone, .. }) = self.waiting.front()
        else {
            return Err(Stray);
        };
        if !entry.kind.accepts(&reply) {
            return Err(Stray);
        }
        self.waiting.pop_front();
        let follow_up = FollowUp::after(entry.kind, undo_form, &reply);
        if let Some(follow_up) = follow_up {
            let undo = Undo { bytes: &self.undo.as_slice()[..undo_len], form: undo_form };
            let is_told = tombstone || follow_up == FollowUp::Repeat;
            let ticket = if is_told { Ticket::UNAWAITED } else { entry.ticket };
            let (entry, error) = (Entry { ticket, ..entry }, reply.as_error().map(printable));
            unsettled.push(Unsettled { entry, undo: undo.kept(), follow_up, error });
        }
        self.undo.advance(undo_len);
        if follow_up.is_some_and(FollowUp::is_answered_later) {
            return Ok(None); // its sender waits for the reply to that one
        }
        let Entry { ticket, kind, sent, .. } = entry;
        let rtt = now.as_nanos().saturating_sub(sent.as_nanos());
        Ok(Some(Completion { ticket, kind, reply, rtt }))
    }

    /// Tells which operations have waited beyond their deadline, each once, and returns the
    /// earliest deadline that is still to come.
    pub(crate) fn expire(&mut self, now: Moment, expired: &mut Vec<Ticket>) -> Moment {
        let mut next = Moment::NEVER;
        for waiting in &mut self.waiting {
            if waiting.tombstone {
                continue;
            }
            if waiting.entry.deadline <= now {
                waiting.tombstone = true;
                expired.push(waiting.entry.ticket);
            } else {
                next = next.min(waiting.entry.deadline);
            }
        }
        next
    }

    /// Whether the oldest command has been given up: the node is late with a reply, and whatever
    /// is sent now stands behind it.
    pub(crate) fn is_suspect(&self) -> bool {
        self.waiting.front().is_some_and(|waiting| waiting.tombstone)
    }

    /// When the oldest command was sent.
    pub(crate) fn oldest(&self) -> Option<Moment> {
        self.waiting.front().map(|waiting| waiting.entry.sent)
    }

    /// What would undo the commands that are not answered, in their order.
    pub(crate) fn undos(&self) -> impl Iterator<Item = Undo<'_>> {
        let mut rest = self.undo.as_slice();
        let undos = self.waiting.iter().map(move |waiting| {
            let (bytes, behind) = rest.split_at(waiting.undo_len.min(rest.len()));
            rest = behind;
            Undo { bytes, form: waiting.undo_form }
        });
        undos.filter(|undo| !undo.is_nothing())
    }

    /// When a node that answers nothing more is given up: once its oldest command has waited for
    /// `age_max`, and no deadline is still to come. Only the first is looked at before it has
    /// passed. An undo's deadline counts only at the front: undos are sent to a suspect node, too,
    /// and must not keep a dead connection open.
    pub(crate) fn given_up(&self, now: Moment, age_max: Duration) -> Option<Moment> {
        let oldest = self.waiting.front()?.entry;
        let overdue = oldest.sent.plus(age_max);
        if overdue > now {
            return Some(overdue);
        }
        let waiting = self.waiting.iter().map(|waiting| waiting.entry);
        let deadlines = waiting.filter(|entry| !entry.kind.is_undo()).map(|entry| entry.deadline);
        Some(deadlines.fold(overdue.max(oldest.deadline), Moment::max))
    }

    /// Empties the FIFO at the connection's end, of which `written` bytes had reached the kernel:
    /// every operation goes to `lapsed`, the undos of those that may have been applied to `left`.
    pub(crate) fn drain(
        &mut self,
        written: u64,
        lapsed: &mut Vec<Lapsed>,
        left: &mut Vec<LeftUndo>,
    ) {
        for waiting in self.waiting.drain(..) {
            let was_sent = waiting.begins < written;
            // An unsent command needs no undo; an undo that was not sent is still pending.
            let pending = was_sent || waiting.entry.kind.is_undo();
            let bytes = &self.undo.as_slice()[..waiting.undo_len];
            let undo = Undo { bytes, form: waiting.undo_form };
            if pending && !undo.is_nothing() {
                left.push(LeftUndo { undo: undo.kept(), was_sent });
            }
            self.undo.advance(waiting.undo_len);
            lapsed.push(Lapsed { ticket: waiting.entry.ticket, sent: was_sent });
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorlock_resp::Frame;

    use super::*;
    use crate::link::UndoScript;

    const SCRIPT: (&UndoScript, u16) =
        (&UndoScript { text: "a script", compares_and_deletes: true, for_first_key: None }, 1);

    fn entry(ticket: u64, kind: ReplyKind, deadline: u64) -> Entry {
        Entry {
            ticket: Ticket(ticket),
            kind,
            sent: Moment::from_nanos(0),
            deadline: Moment::from_nanos(deadline),
        }
    }

    fn simple(text: &'static str) -> Frame {
        Frame::Simple(Bytes::from_static(text.as_bytes()))
    }

    fn error(text: &'static str) -> Frame {
        Frame::Error(Bytes::from_static(text.as_bytes()))
    }

    fn answer(pipeline: &mut Pipeline, frame: Frame) -> Result<u64, Stray> {
        let completion = pipeline.answer(frame.into(), Moment::from_nanos(5), &mut Vec::new())?;
        Ok(completion.map_or(u64::MAX, |completion| completion.ticket.0))
    }

    #[test]
    fn replies_go_to_the_oldest_command_first() {
        let mut pipeline = Pipeline::default();
        pipeline.push(entry(1, ReplyKind::Status, 9), 0, Undo::delete(SCRIPT, b"undo-1"));
        pipeline.push(entry(2, ReplyKind::Undo, 9), 10, Undo::delete(SCRIPT, b"undo-2"));
        assert_eq!(answer(&mut pipeline, simple("OK")), Ok(1));
        assert_eq!(answer(&mut pipeline, Frame::Integer(0)), Ok(2));
        assert!(pipeline.is_empty());
    }

    #[test]
    fn a_reply_of_another_shape_or_without_a_command_is_a_stray() {
        let strays = [
            (ReplyKind::Status, Frame::Integer(1)),
            (ReplyKind::Status, simple("PONG")),
            (ReplyKind::Status, Frame::Bulk(Bytes::from_static(b"OK"))),
            (ReplyKind::Undo, simple("OK")),
            (ReplyKind::Undo, Frame::Integer(2)),
            (ReplyKind::Undo, Frame::Null),
            (ReplyKind::Script, reason(&[2, 9])),
            (ReplyKind::Vote, reason(&[2])),
            (ReplyKind::Vote, simple("OK")),
            (ReplyKind::Vote, Frame::Null),
            (ReplyKind::Adopt, Frame::Integer(1)),
            (ReplyKind::Adopt, reason(&[2, 9])),
        ];
        for (kind, frame) in strays {
            let mut pipeline = Pipeline::default();
            pipeline.push(entry(1, kind, 9), 0, Undo::NONE);
            assert_eq!(answer(&mut pipeline, frame), Err(Stray));
        }
        assert_eq!(answer(&mut Pipeline::default(), simple("OK")), Err(Stray));
    }

    fn reason(numbers: &[i64]) -> Frame {
        Frame::Array(numbers.iter().map(|number| Frame::Integer(*number)).collect())
    }

    #[test]
    fn a_vote_may_be_refused_for_a_reason() {
        for frame in [Frame::Integer(1), Frame::Integer(-1), reason(&[2, 9]), error("NOPERM no")] {
            let mut pipeline = Pipeline::default();
            pipeline.push(entry(1, ReplyKind::Vote, 9), 0, Undo::NONE);
            assert_eq!(answer(&mut pipeline, frame), Ok(1));
        }
    }

    #[test]
    fn an_undo_takes_the_place_of_those_it_supersedes_and_of_no_others() {
        let mut pipeline = Pipeline::default();
        let (delete, others) =
            (Undo::delete(SCRIPT, b"pair"), Undo::put_back(SCRIPT, b"pair-former", 5));
        let back = Undo::put_back(SCRIPT, b"pair-former", 4);
        let nothing = Undo::nothing(b"pair");
        for (ticket, undo) in (1..).zip([others, back, nothing, delete, others, back]) {
            pipeline.push(entry(ticket, ReplyKind::Adopt, 9), 0, undo);
        }
        pipeline.undo_instead(delete);
        let (mut lapsed, mut left) = (Vec::new(), Vec::new());
        pipeline.drain(1, &mut lapsed, &mut left);
        let undos: Vec<_> = left.iter().map(|left| left.undo.lent()).collect();
        assert_eq!(undos, [others, delete, delete, others, delete]);
    }

    #[test]
    fn an_expired_command_is_told_once_and_still_owns_its_reply() {
        let mut pipeline = Pipeline::default();
        pipeline.push(entry(1, ReplyKind::Status, 3), 0, Undo::NONE);
        pipeline.push(entry(2, ReplyKind::Status, 8), 4, Undo::NONE);
        let mut expired = Vec::new();
        assert_eq!(pipeline.expire(Moment::from_nanos(4), &mut expired), Moment::from_nanos(8));
        assert_eq!(pipeline.expire(Moment::from_nanos(5), &mut expired), Moment::from_nanos(8));
        assert_eq!(expired, [Ticket(1)]);
        assert_eq!(answer(&mut pipeline, simple("OK")), Ok(1));
        assert_eq!(answer(&mut pipeline, Frame::Null), Ok(2));
    }

    #[test]
    fn a_silent_node_is_given_up_at_its_age_and_not_before_a_deadline() {
        let at = Moment::from_nanos;
        let given_up = |entries: &[Entry], now| {
            let mut pipeline = Pipeline::default();
            entries.iter().for_each(|entry| pipeline.push(*entry, 0, Undo::NONE));
            pipeline.given_up(at(now), Duration::from_nanos(50)).map(Moment::as_nanos)
        };
        let (short, long) = (entry(1, ReplyKind::Status, 10), entry(2, ReplyKind::Any, 70));
        let undo = entry(3, ReplyKind::Undo, 90);
        assert_eq!(given_up(&[], 60), None);
        assert_eq!(given_up(&[short], 60), Some(50));
        assert_eq!(given_up(&[long], 60), Some(70), "its own deadline is kept");
        assert_eq!(given_up(&[short, long], 60), Some(70), "so is that of one behind it");
        assert_eq!(given_up(&[short, long], 40), Some(50), "looked at again then");
        assert_eq!(given_up(&[short, undo], 60), Some(50), "an undo keeps nothing open");
        assert_eq!(given_up(&[undo, short], 60), Some(90), "but the oldest command does");
    }

    #[test]
    fn a_forgotten_script_gives_its_undo_back() {
        let mut pipeline = Pipeline::default();
        pipeline.push(entry(1, ReplyKind::Undo, 9), 0, Undo::delete(SCRIPT, b"tail"));
        let mut forgotten = Vec::new();
        let reply = error("NOSCRIPT No matching script.");
        assert!(
            pipeline.answer(reply.into(), Moment::default(), &mut forgotten).unwrap().is_none()
        );
        assert_eq!(forgotten[0].undo.lent(), Undo::delete(SCRIPT, b"tail"));
        assert_eq!(forgotten[0].follow_up, FollowUp::WithScript);
        assert_eq!(forgotten[0].entry.ticket, Ticket(1));
    }

    #[test]
    fn an_undo_that_is_refused_for_now_is_told_and_comes_back() {
        let mut pipeline = Pipeline::default();
        pipeline.push(entry(1, ReplyKind::Undo, 9), 0, Undo::delete(SCRIPT, b"tail"));
        let mut unsettled = Vec::new();
        let reply = error("BUSY Redis is busy running a script.");
        let told = pipeline.answer(reply.into(), Moment::default(), &mut unsettled).unwrap();
        assert_eq!(told.unwrap().ticket, Ticket(1));
        assert_eq!(unsettled[0].follow_up, FollowUp::Later);
    }

    #[test]
    fn the_end_of_the_connection_tells_what_may_have_been_applied() {
        let mut pipeline = Pipeline::default();
        pipeline.push(entry(1, ReplyKind::Status, 9), 0, Undo::delete(SCRIPT, b"undo-1"));
        pipeline.push(entry(2, ReplyKind::Any, 9), 10, Undo::NONE);
        pipeline.push(entry(3, ReplyKind::Status, 9), 20, Undo::delete(SCRIPT, b"undo-3"));
        pipeline.push(entry(4, ReplyKind::Status, 9), 30, Undo::delete(SCRIPT, b"undo-4"));
        pipeline.push(entry(5, ReplyKind::Undo, 9), 40, Undo::delete(SCRIPT, b"undo-5"));
        assert_eq!(answer(&mut pipeline, simple("OK")), Ok(1));
        let (mut lapsed, mut left) = (Vec::new(), Vec::new());
        pipeline.drain(21, &mut lapsed, &mut left);
        let told: Vec<_> = lapsed.iter().map(|lapsed| (lapsed.ticket.0, lapsed.sent)).collect();
        assert_eq!(told, [(2, true), (3, true), (4, false), (5, false)]);
        // The fourth was never sent. The fifth was not sent either, and is an undo itself.
        let undos: Vec<_> = left.iter().map(|left| (left.undo.lent(), left.was_sent)).collect();
        let [third, fifth] = [b"undo-3", b"undo-5"].map(|pair| Undo::delete(SCRIPT, pair));
        assert_eq!(undos, [(third, true), (fifth, false)]);
    }
}
