//! The thread that writes to stderr, and may block there.
//!
//! It starts with the first line, so that a quiet program has no second thread.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::queue::Queue;
use super::room::{wait_for_foreground, wait_for_room};

/// Lines for one stream, and the thread that writes them.
#[derive(Debug)]
pub(super) struct Writer {
    /// Locked briefly, never during a write.
    queue: Mutex<Queue>,
    /// A line was added.
    added: Condvar,
    /// All lines are written.
    done: Condvar,
    has_thread: AtomicBool,
}

impl Writer {
    pub(super) const fn new() -> Self {
        Self {
            queue: Mutex::new(Queue::new()),
            added: Condvar::new(),
            done: Condvar::new(),
            has_thread: AtomicBool::new(false),
        }
    }

    /// Waits until all lines are written, and at most for `grace`.
    pub(super) fn finish(&self, grace: Duration) {
        // Ordering: the flag only saves a second thread; the lines are under the mutex.
        if self.has_thread.load(Ordering::Relaxed) {
            let busy = |queue: &mut Queue| !queue.is_done();
            // After the grace the program ends in any case.
            let _ = self.done.wait_timeout_while(self.lock(), grace, busy);
        }
    }

    /// Adds to the queue, and wakes or starts the thread that writes.
    pub(super) fn queue(&'static self, add: impl FnOnce(&mut Queue)) {
        add(&mut self.lock());
        self.added.notify_one();
        if !self.has_thread.swap(true, Ordering::Relaxed) {
            let thread = std::thread::Builder::new().name("stderr".into());
            if thread.spawn(|| self.run(write)).is_err() {
                // A later line tries again.
                self.has_thread.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Writes what comes, until the process ends.
    fn run(&self, mut write: impl FnMut(&[u8])) {
        loop {
            let mut queue = self.lock();
            let line = loop {
                if let Some(line) = queue.take() {
                    break line;
                }
                self.done.notify_all();
                queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            write(line.as_bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic never leaves a change half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes to stderr, however long that takes. Gives up if stderr is closed.
fn write(mut rest: &[u8]) {
    let mut stderr = io::stderr();
    while !rest.is_empty() {
        wait_for_foreground();
        match stderr.write(rest) {
            Ok(0) => return,
            Ok(length) => rest = rest.get(length..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && wait_for_room().is_ok() => {}
            Err(_) => return,
        }
    }
}
