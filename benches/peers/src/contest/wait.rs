//! How a peer that has no quorum of its own is given one: all replies, or enough of them.

use std::future::Future;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::Failure;

/// Whose replies are awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// All nodes'.
    All,
    /// A majority's; the futures of the others are dropped. No task is spawned for it: that is
    /// slower by a third and more.
    Quorum,
}

impl Wait {
    /// Awaits the replies of so many nodes. Fewer good ones than a majority are a failure.
    pub(crate) async fn gather<T>(
        self,
        nodes: usize,
        asked: impl Iterator<Item = impl Future<Output = T>>,
        is_good: impl Fn(&T) -> bool,
    ) -> Result<(), Failure> {
        let majority = nodes / 2 + 1;
        let agreed = match self {
            Self::All => join_all(asked).await.iter().filter(|reply| is_good(reply)).count(),
            Self::Quorum => first(majority, asked, is_good).await,
        };
        match agreed >= majority {
            true => Ok(()),
            false => Err(format!("only {agreed} nodes agreed").into()),
        }
    }
}

/// How many were good when the first `enough` were, or when all had come.
async fn first<T>(
    enough: usize,
    asked: impl Iterator<Item = impl Future<Output = T>>,
    is_good: impl Fn(&T) -> bool,
) -> usize {
    let mut replies: FuturesUnordered<_> = asked.collect();
    let mut good = 0;
    while good < enough {
        let Some(reply) = replies.next().await else { break };
        good += usize::from(is_good(&reply));
    }
    good
}
