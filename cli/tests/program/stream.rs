//! What a program writes, read as it comes.

#![expect(clippy::expect_used, reason = "a set-up that fails must fail its test on the spot")]

use std::cell::RefCell;
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};

use support::Watchdog;

/// One stream of a program.
pub(crate) struct Stream {
    pieces: Receiver<Vec<u8>>,
    /// What has come and was not taken yet.
    pending: RefCell<Vec<u8>>,
}

impl Stream {
    /// Reads on a thread of its own, so that the program never waits for us.
    pub(crate) fn read(mut stream: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            // A terminal whose other side has ended is an error, and an end.
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                // A test that no longer listens has seen enough.
                let _ = sender.send(piece[..length].to_vec());
            }
        });
        Self { pieces, pending: RefCell::default() }
    }

    /// A stream that a program does not have, or that a test reads by itself.
    pub(crate) fn empty() -> Self {
        Self::read(std::io::empty())
    }

    /// Takes what has come and comes until `end`, with it.
    #[track_caller]
    pub(crate) fn until(&self, end: &str) -> String {
        let watchdog = Watchdog::new(format!("{end:?} on a stream"));
        let mut pending = self.pending.borrow_mut();
        loop {
            let at = pending.windows(end.len()).position(|bytes| bytes == end.as_bytes());
            if let Some(at) = at {
                return text(pending.drain(..at + end.len()).collect());
            }
            watchdog.check();
            let left = watchdog.left().unwrap_or_default();
            if let Ok(piece) = self.pieces.recv_timeout(left) {
                pending.extend(piece);
            } else {
                panic!("no {end:?} on a stream, but {:?}", text(pending.clone()));
            }
        }
    }

    /// Takes all the rest, once the program has ended.
    pub(crate) fn rest(&self) -> String {
        let mut rest = self.pending.take();
        rest.extend(self.pieces.iter().flatten());
        text(rest)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("it is UTF-8")
}
