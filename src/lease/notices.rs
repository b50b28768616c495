//! What the nodes tell this process unasked: that a key was handed over to it, that a key is waited
//! for which it holds, that it is asked to let go of one, and that one has changed which it
//! watches.
//!
//! The first three come by a channel that is the holder's own, so that one process alone is woken.
//! These messages are hints, and change no lock: a key that was handed over counts when the nodes
//! have been asked, one that is waited for is handed over when it is released, and one that has
//! changed is asked for again. A message that is lost delays a waiter a little.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::broadcast::{self, error::RecvError};

use super::key::Key;
use super::turns::Turns;
use crate::entropy::Nonce;
use crate::link::Listener;
use crate::quorum::NodeMask;
use crate::sync::{Mutex, lock};

/// How many digits of a value say which is meant: as many as `hand_on.lua` and `revoke.lua` tell.
const TAG_DIGITS: usize = 8;

/// The beginning of a value.
pub(super) type Tag = [u8; TAG_DIGITS];

/// How many revocations may be told before a task that waits for its own has looked at them. One
/// that misses its own is told by its next extension.
const REVOCATIONS: usize = 64;

/// Who of this process is woken when the nodes tell of a key.
pub(crate) struct Notices {
    channel: Box<[u8]>,
    turns: Arc<Turns>,
    waiting: Mutex<Waiting>,
    /// The locks of which holders are asked to let go.
    revoked: broadcast::Sender<Tag>,
}

/// Those that wait: by the beginning of their values, and by their keys.
#[derive(Default)]
struct Waiting {
    by_tag: HashMap<Tag, Arc<Signals>>,
    by_key: HashMap<Box<[u8]>, Vec<Arc<Signals>>>,
}

impl Waiting {
    /// All that are told by this node, in an order that is the same in each run of a simulation.
    fn at(&self, node: usize) -> Vec<Arc<Signals>> {
        let at_node = |(_, signals): &(_, &Arc<Signals>)| signals.nodes.has(node);
        let mut told: Vec<_> = self.by_tag.iter().filter(at_node).collect();
        told.sort_unstable_by_key(|(tag, _)| **tag);
        told.into_iter().map(|(_, signals)| signals.clone()).collect()
    }
}

/// What one that waits is told.
struct Signals {
    /// The nodes that tell it.
    nodes: NodeMask,
    /// The key was handed over to it.
    handed_over: Notify,
    /// The key may have changed.
    changed: Notify,
}

/// The place of one that waits. It is given back when this is dropped.
pub(super) struct Registration {
    notices: Arc<Notices>,
    tag: Tag,
    key: Box<[u8]>,
    signals: Arc<Signals>,
}

impl Notices {
    pub(crate) fn new(owner: &str) -> Arc<Self> {
        let channel = [b"quorlock:wake:", owner.as_bytes()].concat().into();
        let (turns, waiting) = (Turns::new(), Mutex::default());
        Arc::new(Self { channel, turns, waiting, revoked: broadcast::Sender::new(REVOCATIONS) })
    }

    /// Who of this process asks for a key next.
    pub(super) fn turns(&self) -> &Arc<Turns> {
        &self.turns
    }

    /// The value with this nonce is told from now on by these nodes when this key is handed over to
    /// it, or may have changed.
    pub(super) fn register(
        self: &Arc<Self>,
        nonce: &Nonce,
        key: &Key,
        nodes: NodeMask,
    ) -> Registration {
        let tag = tag_of(nonce);
        let key = Box::<[u8]>::from(key.full());
        let (handed_over, changed) = (Notify::new(), Notify::new());
        let signals = Arc::new(Signals { nodes, handed_over, changed });
        let mut waiting = lock(&self.waiting);
        waiting.by_tag.insert(tag, signals.clone());
        waiting.by_key.entry(key.clone()).or_default().push(signals.clone());
        drop(waiting);
        Registration { notices: self.clone(), tag, key, signals }
    }

    /// Completes when a node tells from now on that the holder of the value that begins so is asked
    /// to let go of its lock.
    pub(super) fn revoked(&self, tag: Tag) -> impl Future<Output = ()> + use<> {
        let mut told = self.revoked.subscribe();
        async move {
            loop {
                match told.recv().await {
                    Ok(one) if one == tag => return,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        }
    }
}

/// How the value with this nonce begins.
pub(super) fn tag_of(nonce: &Nonce) -> Tag {
    let mut tag = Tag::default();
    for (two, byte) in tag.chunks_exact_mut(2).zip(nonce.0) {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default() as u8;
        (two[0], two[1]) = (digit(byte >> 4), digit(byte & 15));
    }
    tag
}

impl Listener for Notices {
    fn channel(&self) -> &[u8] {
        &self.channel
    }

    fn hear(&self, node: usize, said: &[u8]) {
        let signals = |tag: &[u8]| lock(&self.waiting).by_tag.get(tag).cloned();
        if let Some(tag) = said.strip_prefix(b"yours ") {
            signals(tag).inspect(|signals| signals.handed_over.notify_one());
        } else if let Some(tag) = said.strip_prefix(b"first ") {
            signals(tag).inspect(|signals| signals.changed.notify_one());
        } else if let Some(key) = said.strip_prefix(b"wanted ") {
            self.turns.note_wanted(Key::hash(key), node);
        } else if let Some(tag) = said.strip_prefix(b"revoked ") {
            if let Ok(tag) = tag.try_into() {
                let _ = self.revoked.send(tag); // fails where no task waits for any
            }
        }
    }

    fn hear_change(&self, node: usize, key: Option<&[u8]>) {
        let waiting = lock(&self.waiting);
        let told: Vec<_> = match key {
            Some(key) => waiting.by_key.get(key).into_iter().flatten().cloned().collect(),
            None => waiting.at(node),
        };
        // A waker may run a task, and drop a registration.
        drop(waiting);
        told.iter().for_each(|signals| signals.changed.notify_one());
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

impl Registration {
    /// Completes when the key was handed over, also if that was before.
    pub(super) async fn handed_over(&self) {
        self.signals.handed_over.notified().await;
    }

    /// Completes when the key may have changed, also if that was before.
    pub(super) async fn changed(&self) {
        self.signals.changed.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut waiting = lock(&self.notices.waiting);
        waiting.by_tag.remove(&self.tag);
        if let Some(others) = waiting.by_key.get_mut(&self.key) {
            others.retain(|other| !Arc::ptr_eq(other, &self.signals));
            if others.is_empty() {
                waiting.by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(future).poll(&mut cx).is_ready()
    }

    fn two_that_wait() -> (Arc<Notices>, Registration, Registration) {
        let notices = Notices::new("me@h:1");
        let key = |name: &[u8]| Key::new(&[], name).unwrap();
        let nonce = |byte| Nonce([byte; Nonce::BYTES]);
        let (one, other) = (
            notices.register(&nonce(0xa7), &key(b"k"), NodeMask::only(0)),
            notices.register(&nonce(0xb0), &key(b"l"), NodeMask::only(2)),
        );
        (notices, one, other)
    }

    #[test]
    fn a_key_that_is_handed_over_wakes_the_one_that_waits_for_it_and_once() {
        let (notices, one, other) = two_that_wait();
        assert_eq!(notices.channel(), b"quorlock:wake:me@h:1");
        for said in ["yours a7a7a7a7", "yours a7a7a7a", "yours c1c1c1c1", "yours", "b0b0b0b0"] {
            notices.hear(0, said.as_bytes());
        }
        assert!(is_ready(one.handed_over()) && !is_ready(one.handed_over()));
        assert!(!is_ready(other.handed_over()) && !is_ready(one.changed()));
        drop((one, other));
        let waiting = lock(&notices.waiting);
        assert!(waiting.by_tag.is_empty() && waiting.by_key.is_empty());
    }

    #[test]
    fn one_that_has_come_to_be_first_asks_again() {
        let (notices, one, other) = two_that_wait();
        notices.hear(0, b"first a7a7a7a7");
        assert!(is_ready(one.changed()) && !is_ready(one.changed()));
        assert!(!is_ready(one.handed_over()) && !is_ready(other.changed()));
    }

    #[test]
    fn a_key_that_changes_wakes_those_that_wait_for_it() {
        let (notices, one, other) = two_that_wait();
        notices.hear_change(0, Some(b"k"));
        notices.hear_change(0, Some(b"m"));
        assert!(is_ready(one.changed()) && !is_ready(one.changed()) && !is_ready(other.changed()));
        notices.hear_change(0, None);
        assert!(is_ready(one.changed()) && !is_ready(other.changed()), "each has a node");
        notices.hear_change(2, None);
        assert!(!is_ready(one.changed()) && is_ready(other.changed()));
        assert!(!is_ready(one.handed_over()));
    }

    #[test]
    fn one_that_all_nodes_tell_is_woken_when_any_of_them_tells_no_more() {
        let notices = Notices::new("me@h:1");
        let key = Key::new(&[], b"k").unwrap();
        let one = notices.register(&Nonce([0xa7; Nonce::BYTES]), &key, NodeMask::ALL);
        for node in 0..3 {
            notices.hear_change(node, None);
            assert!(is_ready(one.changed()) && !is_ready(one.changed()));
        }
    }

    /// What is run when a task is woken may be anything, a task's end among it.
    struct Looks(Arc<Notices>);

    impl std::task::Wake for Looks {
        fn wake(self: Arc<Self>) {
            assert!(self.0.waiting.try_lock().is_ok(), "woken under the lock");
        }
    }

    #[test]
    fn no_lock_is_held_while_a_task_is_woken() {
        let (notices, one, other) = two_that_wait();
        let waker = Waker::from(Arc::new(Looks(notices.clone())));
        let mut cx = Context::from_waker(&waker);
        let (mut handed_over, mut changed) = (pin!(one.handed_over()), pin!(other.changed()));
        assert!(handed_over.as_mut().poll(&mut cx).is_pending());
        assert!(changed.as_mut().poll(&mut cx).is_pending());
        notices.hear(0, b"yours a7a7a7a7");
        notices.hear_change(0, Some(b"l"));
        assert!(handed_over.poll(&mut cx).is_ready() && changed.poll(&mut cx).is_ready());
        let mut changed = pin!(other.changed());
        assert!(changed.as_mut().poll(&mut cx).is_pending());
        notices.hear_change(2, None);
        assert!(changed.poll(&mut cx).is_ready());
    }
}
