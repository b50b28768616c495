//! When a future was woken last before the look at which it was ready.
//!
//! A runtime runs woken tasks one after the other. Where thousands are woken together, the last of
//! them runs much later, and that is neither the library's doing nor can it do anything about it:
//! its part ends when it wakes.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

/// Notes when it is woken, and wakes the task.
struct Note {
    state: Mutex<(Option<Instant>, Waker)>,
}

impl Note {
    /// Begins anew, for this task; returns when it was woken last since the last time.
    fn begin(&self, task: &Waker) -> Option<Instant> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.clone_from(task);
        state.0.take()
    }
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        let task = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.0 = Some(Instant::now());
            state.1.clone()
        };
        task.wake();
    }
}

/// Completes with the future, and with when it was woken for that.
pub(super) async fn woken<F: Future>(future: F) -> (F::Output, Instant) {
    let mut future = pin!(future);
    let note = Arc::new(Note { state: Mutex::new((None, Waker::noop().clone())) });
    let waker = Waker::from(note.clone());
    std::future::poll_fn(|cx| {
        let woken = note.begin(cx.waker());
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Poll::Ready((output, woken.unwrap_or_else(Instant::now))),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    use super::*;

    #[test]
    fn what_counts_is_the_wake_and_not_when_the_task_ran() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let sends = async {
                yield_now().await;
                sender.send(()).expect("it waits");
                let sent = Instant::now();
                while Instant::now() <= sent {}
                sent
            };
            let ((_, at), sent) = tokio::join!(woken(receiver), sends);
            assert!(at <= sent);
        });
    }

    #[test]
    fn what_is_ready_at_once_was_not_woken() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let began = Instant::now();
        let ((), at) = runtime.block_on(woken(async {}));
        assert!(at >= began);
    }
}
