//! The races of a link's `needs_flush` with the driver that flushes and callers that do.
//!
//! The link is the library's own, on a stream in memory. The driver is the part of its pass that
//! writes: it flushes a link whose flag is set, and waits for room where the stream is full.
//! Run them with `RUSTFLAGS="--cfg quorlock_models" cargo test --profile checks --lib loom_`.

use std::io;
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::thread;
use tokio::io::ReadBuf;

use super::super::*;
use crate::clock::Moment;
use crate::options::LinkOptions;
use crate::sync::models::{Flag, must_fail};
use crate::sync::{AtomicWaker, lock};

const NOW: Moment = Moment::from_nanos(1);

/// A command's bytes.
const COMMAND: &[u8] = b"SET\r\n";

const LEFT: &str = "bytes stay queued, and no flush is to come";

type Flush = fn(&Link) -> Result<bool, io::ErrorKind>;
type Nudge = fn(&Link) -> bool;

/// What a driver shares with its callers.
struct Shared {
    link: Link,
    waker: AtomicWaker,
}

impl Shared {
    /// A link without a connection. Callers write up to `direct` commands themselves.
    fn new(direct: usize) -> Arc<Self> {
        let options = LinkOptions { direct_writes: direct, ..LinkOptions::default() };
        Arc::new(Self { link: Link::new(options), waker: AtomicWaker::new() })
    }

    /// What a caller does, as `NodeSet::ask` does it.
    fn ask(&self) {
        let (ticket, kind, deadline) = (Ticket(1), ReplyKind::Status, Moment::NEVER);
        let entry = Entry { ticket, kind, sent: NOW, deadline };
        let command = Outgoing { entry, bytes: COMMAND, undo: Undo::NONE, urgency: Urgency::Usual };
        if self.link.send(&command) == Sent::Queued {
            self.waker.wake();
        }
    }

    /// What a caller does that gives up, as `Election`'s drop does it.
    fn give_up(&self, nudge: Nudge) {
        if nudge(&self.link) {
            self.waker.wake();
        }
    }
}

/// The driver of one link, and the server at its other end.
struct Driver {
    shared: Arc<Shared>,
    flag: Arc<Flag>,
    /// The driver's flush found the stream full: the driver waits for room.
    waits: bool,
    far: Option<(memory::Reader, memory::Writer)>,
    near: Option<memory::Reader>,
}

impl Driver {
    fn new(shared: &Arc<Shared>) -> Self {
        let (shared, flag) = (shared.clone(), Arc::new(Flag::default()));
        Self { shared, flag, waits: false, far: None, near: None }
    }

    /// Puts a connection behind the link that takes `room` bytes until the server reads.
    fn open(&mut self, room: usize) {
        let ((near, writer), far) = memory::pair(room);
        self.shared.link.open(Writer::Memory(writer), (None, None), false, NOW);
        (self.far, self.near) = (Some(far), Some(near));
    }

    fn pass(&mut self, flush: Flush) {
        self.shared.waker.register(&self.flag.clone().into());
        if self.waits && self.drain() {
            self.waits = false;
            self.shared.link.unblock();
        }
        if self.shared.link.is_dirty() {
            self.waits |= flush(&self.shared.link).unwrap();
        }
    }

    /// The server reads. `true`: it has read something.
    fn drain(&mut self) -> bool {
        let mut buffer = [0; 64];
        let mut buffer = ReadBuf::new(&mut buffer);
        let (reader, _) = self.far.as_mut().unwrap();
        reader.poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer).is_ready()
    }

    /// A pass, and the next one if there is a reason for it by then.
    fn drive(&mut self, flush: Flush) {
        self.pass(flush);
        if self.flag.take() || self.waits {
            self.pass(flush);
        }
    }

    /// Runs the passes for which there is a reason, and checks that all bytes are written by then.
    fn assert_written(&mut self, flush: Flush) {
        while self.flag.take() || self.waits {
            self.pass(flush);
        }
        assert!(lock(&self.shared.link.state).queued.is_empty(), "{LEFT}");
    }
}

/// Callers queue commands while the driver flushes an earlier one.
fn queued_while_the_driver_flushes<const CALLERS: usize>(flush: Flush) {
    let shared = Shared::new(0);
    let mut driver = Driver::new(&shared);
    driver.open(1 << 10);
    shared.ask();
    let callers: [_; CALLERS] = std::array::from_fn(|_| {
        let shared = shared.clone();
        thread::spawn(move || shared.ask())
    });
    driver.drive(flush);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    driver.assert_written(flush);
}

#[test]
fn loom_queued_while_the_driver_flushes() {
    loom::model(|| queued_while_the_driver_flushes::<1>(Link::flush));
}

#[test]
fn loom_queued_by_two_while_the_driver_flushes() {
    loom::model(|| queued_while_the_driver_flushes::<2>(Link::flush));
}

/// The flag is cleared behind the writing.
fn flush_and_clear(link: &Link) -> Result<bool, io::ErrorKind> {
    let blocked = link.write_queued();
    link.needs_flush.clear();
    blocked
}

#[test]
fn loom_queued_while_the_driver_flushes_weakened() {
    must_fail(LEFT, || queued_while_the_driver_flushes::<1>(flush_and_clear));
}

/// A caller gives up and flushes a stream that has no room for all, while the driver flushes.
fn given_up_while_the_driver_flushes(nudge: Nudge) {
    let shared = Shared::new(1);
    let mut driver = Driver::new(&shared);
    driver.open(COMMAND.len() + 1);
    shared.link.flush().unwrap();
    shared.ask();
    let caller = thread::spawn(move || {
        shared.ask();
        shared.give_up(nudge);
    });
    driver.drive(Link::flush);
    caller.join().unwrap();
    driver.assert_written(Link::flush);
}

#[test]
fn loom_given_up_while_the_driver_flushes() {
    loom::model(|| given_up_while_the_driver_flushes(Link::nudge));
}

/// The flag that the flush has cleared is not set again.
#[test]
fn loom_given_up_while_the_driver_flushes_weakened() {
    must_fail(LEFT, || {
        given_up_while_the_driver_flushes(|link| link.is_dirty() && link.flush() != Ok(false));
    });
}

/// A caller gives up and flushes while the driver opens the connection.
fn given_up_while_the_driver_opens(nudge: Nudge) {
    let shared = Shared::new(0);
    let mut driver = Driver::new(&shared);
    let caller = thread::spawn(move || {
        shared.ask();
        shared.give_up(nudge);
    });
    driver.open(1 << 10);
    driver.drive(Link::flush);
    caller.join().unwrap();
    driver.assert_written(Link::flush);
}

#[test]
fn loom_given_up_while_the_driver_opens() {
    loom::model(|| given_up_while_the_driver_opens(Link::nudge));
}

/// The caller's flush clears the flag behind its look at a link that was not open then.
#[test]
fn loom_given_up_while_the_driver_opens_weakened() {
    must_fail(LEFT, || {
        given_up_while_the_driver_opens(|link| {
            let left = link.is_dirty() && flush_and_clear(link) != Ok(false);
            if left {
                link.needs_flush.set();
            }
            left
        });
    });
}
