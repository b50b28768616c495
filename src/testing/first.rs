//! Two futures at once, until one completes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Completes with whichever completes first.
pub(super) async fn first(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| match a.as_mut().poll(cx).is_ready() || b.as_mut().poll(cx).is_ready() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
