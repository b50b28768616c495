//! What a link's lock guards: the bytes on their way, and the commands that await a reply.

use std::io;
use std::time::Duration;

use super::answer::ReplyKind;
use super::fifo::Fifo;
use super::native::DELIFEQ;
use super::outgoing::Outgoing;
use super::peer::RunId;
use super::pending::{Client, PendingUndos};
use super::pipeline::{Entry, Lapsed, Pipeline, Ticket};
use super::push::{CACHING_YES, TRACKING_ON};
use super::stream::Writer;
use super::undo::Undo;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Opening,
    Open,
    Orphaned,
    Closed,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) writer: Option<Writer>,
    /// Bytes that the kernel has not taken yet.
    pub(super) queued: Fifo,
    /// How many bytes the kernel has taken on this connection.
    pub(super) written: u64,
    /// The kernel takes no more for now; the driver waits until it does.
    pub(super) blocked: bool,
    /// How many replies came with the last read: how many callers are about to send again.
    pub(super) batch: usize,
    /// Writing failed; the driver ends the connection.
    pub(super) broken: Option<io::ErrorKind>,
    pub(super) pipeline: Pipeline,
    /// The present connection, as the server knows it.
    pub(super) client: Option<Client>,
    /// The `run_id` of the server behind the present connection.
    pub(super) run_id: Option<RunId>,
    /// It takes [native commands](super::native).
    pub(super) is_native: bool,
    /// [`TRACKING_ON`] was sent on it, or is queued.
    pub(super) is_tracking: bool,
    /// How long the latest answer took on it.
    pub(super) rtt: Option<Duration>,
    /// Where names are still missing in `queued`, of which nothing has been written yet.
    pub(super) holes: Vec<usize>,
    pub(super) pending: PendingUndos,
}

/// Bytes for which a connection has room from its beginning: enough for a few callers, so that
/// their operations allocate nothing.
pub(super) const QUEUED_CAPACITY: usize = 2_048;

/// A hole is its command's last argument: this far before the end it begins.
const HOLE_FROM_END: usize = size_of::<RunId>() + b"\r\n".len();

impl State {
    /// Whether so few callers use the link that each had better write for itself. A link that has
    /// just answered many at once is empty and not quiet: all of them are about to send, and the
    /// first would tear their batch apart.
    pub(super) fn is_quiet(&self, few: usize) -> bool {
        self.pipeline.len() <= few && self.batch <= few
    }

    /// Empties the link at the end of a connection, however that came: no task waits any more, and
    /// nothing that may have been applied, or was still to be undone, is forgotten.
    pub(super) fn end(&mut self, lapsed: &mut Vec<Lapsed>) {
        let mut left = Vec::new();
        self.pipeline.drain(self.written, lapsed, &mut left);
        self.pending.inherit(self.client.take(), left);
        self.queued.clear();
        self.holes.clear();
        (self.run_id, self.is_native, self.is_tracking) = (None, false, false);
        (self.written, self.batch, self.rtt) = (0, 0, None);
    }

    /// Notes an undo for the next connection. The orphaned connection carries it as well: it may be
    /// the last one, and to undo twice does no harm.
    pub(super) fn note_pending(&mut self, command: &Outgoing<'_>) {
        if !command.undo.is_nothing() {
            self.pending.add(command.undo);
        }
        if self.phase == Phase::Orphaned {
            self.queued.push(command.bytes);
            self.write();
        }
    }

    /// Puts what was queued before the connection stood behind what stands in it.
    pub(super) fn follow(&mut self, pipeline: Pipeline, queued: &[u8], holes: Vec<usize>) {
        let shift = self.queued.len();
        self.pipeline.append(pipeline, shift as u64);
        self.queued.push(queued);
        self.holes.extend(holes.into_iter().map(|hole| shift + hole));
        self.fill_holes();
    }

    /// Queues a command. Inlined, for every command passes through here.
    #[inline(always)]
    pub(super) fn append(&mut self, entry: Entry, bytes: &[u8], undo: Undo<'_>) {
        let begins = self.written.saturating_add(self.queued.len() as u64);
        self.pipeline.push(entry, begins, undo);
        self.queued.push(bytes);
    }

    /// As [`append`](Self::append), of an undo as a native command.
    #[inline(always)]
    pub(super) fn append_native(&mut self, entry: Entry, undo: Undo<'_>) {
        self.append(Entry { kind: ReplyKind::NativeUndo, ..entry }, DELIFEQ, undo);
        self.queued.push(undo.pair());
    }

    /// Queues [`CACHING_YES`], the first time behind [`TRACKING_ON`]. The read to be tracked must
    /// follow at once.
    pub(super) fn append_tracking(&mut self, read: Entry) {
        let entry = Entry { ticket: Ticket::UNAWAITED, kind: ReplyKind::TrackingRequest, ..read };
        if !std::mem::replace(&mut self.is_tracking, true) {
            self.append(entry, TRACKING_ON, Undo::NONE);
        }
        self.append(entry, CACHING_YES, Undo::NONE);
    }

    /// Whether the server's `run_id` is known, or will be before anything is written.
    pub(super) fn knows_run_id(&self) -> bool {
        self.run_id.is_some() || self.phase == Phase::Opening
    }

    /// Fills the hole at the end of the command that was queued last.
    pub(super) fn put_run_id(&mut self) {
        let Some(hole) = self.queued.len().checked_sub(HOLE_FROM_END) else { return };
        self.holes.push(hole);
        if self.run_id.is_some() {
            self.fill_holes();
        }
    }

    pub(super) fn fill_holes(&mut self) {
        let Some(name) = &self.run_id else { return };
        for hole in self.holes.drain(..) {
            if let Some(hole) = self.queued.get_mut(hole, name.len()) {
                hole.copy_from_slice(name);
            }
        }
    }

    /// Writes until nothing is queued or the kernel takes no more.
    pub(super) fn write(&mut self) {
        let Some(writer) = &self.writer else { return };
        while !self.queued.is_empty() && !self.blocked && self.broken.is_none() {
            match writer.try_write(self.queued.as_slice()) {
                Ok(0) => self.broken = Some(io::ErrorKind::WriteZero),
                Ok(count) => {
                    self.queued.advance(count);
                    self.written = self.written.saturating_add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.broken = Some(error.kind()),
            }
        }
    }
}
