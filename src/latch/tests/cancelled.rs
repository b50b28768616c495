//! Waits that are dropped, at each of their polls.

use std::future::{Future, poll_fn};
use std::task::Poll;

use super::{Latch, is_gone, latch, locker, ms, now, pass};
use crate::testing::Nodes;

/// Polls it so often, and drops it; whether it had ended.
pub(super) async fn cut<T>(future: impl Future<Output = T>, polls: u32) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    let mut passed = Box::pin(pass(ms(5_000)));
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        if future.as_mut().poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        passed.as_mut().poll(cx).map(|()| false)
    })
    .await
}

/// What holds for the latch whatever was dropped: those who wait are woken, and nothing stays.
async fn assert_still_works(nodes: &Nodes, latch: &Latch) {
    pass(ms(10)).await;
    assert!(latch.arrive("a").await.unwrap() == super::closed(1), "it has counted once at most");
    let began = now();
    let other = locker(nodes).latch("l", 2).unwrap();
    assert!(other.arrive("b").await.unwrap().is_open());
    latch.wait().await.unwrap();
    assert!(now().since(began) < ms(100));
    pass(ms(15_010)).await;
    assert!(is_gone(nodes), "no key is left");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_at_any_poll_leaves_nothing_behind() {
    for polls in 1..40 {
        let nodes = Nodes::new(3);
        let waiting = latch(&nodes, 2);
        assert!(!cut(waiting.arrive_and_wait("a"), polls).await);
        assert_still_works(&nodes, &waiting).await;
        let (nodes, polls) = (Nodes::new(3), polls);
        let waiting = latch(&nodes, 2);
        assert!(!cut(waiting.wait(), polls).await);
        assert_still_works(&nodes, &waiting).await;
    }
}
