//! What is still to be sent on a connection, and when: [`Outbox`].

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::Notify;

use super::first::first;
use crate::clock::{Clock, Moment};
use crate::sync::{Mutex, lock};

/// What is still to be sent on a connection. Replies to commands that came together leave together,
/// as a server's do.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    content: Mutex<Content>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Content {
    /// What leaves at once, unless something late stands before it.
    bytes: Vec<u8>,
    /// What leaves later, and when: never before what stands in front of it.
    late: VecDeque<(Moment, Vec<u8>)>,
    /// The network loses whatever is sent from now on.
    is_muted: bool,
    /// The connection ends behind all this.
    closes: bool,
}

impl Content {
    /// Moves what is due by now to what leaves; the moment when the next is.
    fn advance(&mut self, now: Moment) -> Option<Moment> {
        while let Some((due, bytes)) = self.late.front_mut() {
            if *due > now {
                return Some(*due);
            }
            self.bytes.append(bytes);
            self.late.pop_front();
        }
        None
    }
}

impl Outbox {
    pub(super) fn send(&self, bytes: &[u8]) {
        self.send_late(bytes, Duration::ZERO);
    }

    /// What is sent arrives so late, and nothing that is sent after it arrives before it.
    pub(super) fn send_late(&self, bytes: &[u8], delay: Duration) {
        self.put(|content| {
            if content.closes || content.is_muted || bytes.is_empty() {
                return;
            }
            if delay.is_zero() && content.late.is_empty() {
                return content.bytes.extend_from_slice(bytes);
            }
            let due = Clock::default().now().plus(delay);
            let last = content.late.back().map_or(due, |(last, _)| *last);
            content.late.push_back((due.max(last), bytes.to_vec()));
        });
    }

    pub(super) fn mute(&self) {
        self.put(|content| content.is_muted = true);
    }

    /// The connection ends behind what is sent already.
    pub(super) fn close(&self) {
        self.put(|content| content.closes = true);
    }

    /// The connection ends; what would arrive later never does.
    pub(super) fn abort(&self) {
        self.put(|content| {
            content.late.clear();
            content.closes = true;
        });
    }

    fn put(&self, change: impl FnOnce(&mut Content)) {
        change(&mut lock(&self.content));
        self.filled.notify_one();
    }

    /// What there is to send, when there is anything; and whether that is the end.
    pub(super) async fn next(&self) -> (Vec<u8>, bool) {
        loop {
            let filled = self.filled.notified();
            let due = {
                let mut content = lock(&self.content);
                let due = match content.late.is_empty() {
                    true => None,
                    false => content.advance(Clock::default().now()),
                };
                let ends = content.closes && content.late.is_empty();
                if ends || !content.bytes.is_empty() {
                    return (std::mem::take(&mut content.bytes), ends);
                }
                due
            };
            match due {
                Some(due) => first(Clock::default().sleep_until(due), filled).await,
                None => filled.await,
            }
        }
    }
}
