//! Being told when a key changes.
//!
//! `PTTL` with tracking returns the key's life and has the server report the next change, in one
//! step, so no change is missed after that.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use super::context::LeaseContext;
use super::key::Key;
use super::notices::Registration;
use super::queue_node;
use crate::clock::Moment;
use crate::error::Error;
use crate::link::ReplyKind;
use crate::quorum::{Election, NodeMask, NodeSet, Patience};

/// Registers for what this node tells of a key. `None` if it tells nothing: looked at after the
/// registration, for a node that stops telling says so once.
pub(super) fn register(context: &LeaseContext, node: usize, key: &Key) -> Option<Registration> {
    let registration =
        context.notices.register(&context.nodes.entropy().nonce(), key, NodeMask::only(node));
    context.nodes.tells_changes(node).then_some(registration)
}

/// Asks this node how long a key lives, and has it tell when the key changes.
pub(super) fn ask(context: &LeaseContext, node: usize, key: &Key) -> Result<Election, Error> {
    let (words, to) = ([b"PTTL", key.full()], NodeMask::only(node));
    // Changes are told on the node's first connection.
    context.ask(&words, ReplyKind::Tracked, 0, to, NodeSet::rule_of_one())
}

/// The same of all nodes; each has the other answers waited for.
pub(super) fn ask_each(context: &LeaseContext, key: &Key) -> Result<Election, Error> {
    let (words, rule) = ([b"PTTL", key.full()], context.nodes.rule(Patience::All));
    context.ask(&words, ReplyKind::Tracked, 0, NodeMask::ALL, rule)
}

/// A key that is watched, on the node that would keep its queue.
pub(crate) struct Watch {
    registration: Registration,
}

impl Watch {
    /// Once this is done, the next change is told, however soon it comes. `None` if the node tells
    /// none, or has not answered at `until`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watch.
    pub(crate) async fn begin(context: &LeaseContext, key: &Key, until: Moment) -> Option<Self> {
        let node = queue_node::first(context, key.affinity())?;
        let registration = register(context, node, key)?;
        let asked = ask(context, node, key).ok()?;
        let mut timer = context.nodes.sleep_until(until).ok()?;
        poll_fn(|cx| match asked.poll_verdict(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => Pin::new(&mut timer).poll(cx),
        })
        .await;
        asked.take_frame(node)?.as_integer().ok()?;
        Some(Self { registration })
    }
}

/// Waits until `until`, and no longer than until the watched key has changed, if one is watched, or
/// the locker is shut down.
///
/// # Errors
///
/// [`is_closed`](Error::is_closed) without a runtime, and after a shutdown.
///
/// # Cancel safety
///
/// Dropping the future ends the watch.
pub(crate) async fn changed(
    context: &LeaseContext,
    watch: Option<Watch>,
    until: Moment,
) -> Result<(), Error> {
    let mut timer = context.nodes.sleep_until(until)?;
    let mut closed = pin!(context.closed());
    let mut changed = pin!(async {
        match &watch {
            Some(watch) => watch.registration.changed().await,
            None => std::future::pending().await,
        }
    });
    poll_fn(|cx| {
        if closed.as_mut().poll(cx).is_ready() || changed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Pin::new(&mut timer).poll(cx)
    })
    .await;
    context.check_not_closed()
}
