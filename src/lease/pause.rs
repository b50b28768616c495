//! The pause between two tries where no one hands the lock over; it may be cut short when a key
//! changes.
//!
//! A lock of several keys has no place in the queues of single ones: to be handed one of its keys
//! would block that for nothing while the others are held. So it watches the key that is in its
//! way, on the node that keeps that key's queue, and tries again when it changes. So does one that
//! was granted its key by the queue's node and refused it by the others, on one of these: they know
//! of a holder that the queue does not.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::counters::Cause;
use super::key::Key;
use super::leases::Leases;
use super::{queue_node, watch};
use crate::clock::Moment;

/// Those who wait for one key do not come back together when it changes: each lets so much of this
/// pass, by chance.
const SCATTER: Duration = Duration::from_millis(4);

/// Servers expire keys by the millisecond, and timers come by it.
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// Ends after the pause, or when the locker is shut down.
pub(super) async fn plain(leases: Arc<Leases>, pause: Duration) -> Cause {
    let context = &leases.context;
    let until = context.nodes.clock().now().plus(pause);
    // Without a driver no node can be asked either, as the next try will find.
    let Ok(mut timer) = context.nodes.sleep_until(until) else { return Cause::ByTime };
    let mut closed = pin!(context.closed());
    poll_fn(|cx| {
        if closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Pin::new(&mut timer).poll(cx)
    })
    .await;
    Cause::ByTime
}

/// What is watched during a pause.
pub(super) struct Watched {
    pub(super) key: Key,
    /// On this node; `None`: on the one that keeps the key's queue.
    pub(super) on: Option<usize>,
}

/// Ends when the key has changed or has ended, and after the pause at the latest; also when the
/// locker is shut down. Says what has ended it.
pub(super) async fn watching(leases: Arc<Leases>, watched: Watched, pause: Duration) -> Cause {
    let (context, Watched { key, on }) = (&leases.context, watched);
    let clock = context.nodes.clock();
    let until = clock.now().plus(pause);
    let node = on.or_else(|| queue_node::first(context, key.affinity()));
    let Some(node) = node else { return plain(leases, pause).await };
    let Some(registration) = watch::register(context, node, &key) else {
        return plain(leases, pause).await;
    };
    let mut watching = watch::ask(context, node, &key).ok();
    let scattered = || clock.now().plus(context.nodes.entropy().between(Duration::ZERO, SCATTER));
    // When the key ends, or has changed, and others are let go first.
    let (mut end, mut cause) = (until, Cause::ByTime);
    let mut changed = pin!(registration.changed());
    let mut closed = pin!(context.closed());
    loop {
        let Ok(mut timer) = context.nodes.sleep_until(end.min(until)) else { return cause };
        let woken = poll_fn(|cx| {
            if closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Woken::Over);
            }
            if matches!(cause, Cause::ByTime) && changed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Woken::Changed);
            }
            if watching.as_ref().is_some_and(|asked| asked.poll_verdict(cx).is_ready()) {
                return Poll::Ready(Woken::Told);
            }
            Pin::new(&mut timer).poll(cx).map(|()| Woken::Over)
        });
        match woken.await {
            Woken::Over => return cause,
            Woken::Changed => (end, cause) = (scattered(), Cause::Changed),
            Woken::Told => {
                let told = watching.take().and_then(|asked| asked.take_frame(node));
                match told.and_then(|left| left.as_integer().ok()) {
                    Some(-2) => (end, cause) = (scattered(), Cause::Changed),
                    Some(left) => end = end.min(end_of(left, clock.now())),
                    None => {}
                }
            }
        }
    }
}

/// What has ended a sleep.
enum Woken {
    Changed,
    /// It is known how long the key lives.
    Told,
    Over,
}

/// When a key ends that lives for so many milliseconds; one without an end never does.
fn end_of(left: i64, now: Moment) -> Moment {
    let left = u64::try_from(left).ok().map(Duration::from_millis);
    left.map_or(Moment::LAST, |left| now.plus(left + MILLISECOND))
}
