//! How one of ours waits for a lock, by its name among the contestants.

use std::time::Duration;

use quorlock::{LockRequest, Retry};

/// The pause of what polls.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
pub(crate) enum Waiting {
    /// By the library's defaults.
    Usual,
    /// In no queue.
    Polling,
    /// Always in the order of arrival.
    Fair,
    /// The same, also when a node is lost.
    Strict,
}

impl Waiting {
    /// `None`: none of ours has this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "ours" | "ours-again" => Some(Self::Usual),
            "ours-polling" => Some(Self::Polling),
            "ours-fair" => Some(Self::Fair),
            "ours-strict" => Some(Self::Strict),
            _ => None,
        }
    }

    pub(crate) fn ask(self, request: LockRequest) -> LockRequest {
        match self {
            Self::Usual => request,
            Self::Polling => request.retry(Retry::custom(|_| Some(PAUSE))),
            Self::Fair => request.fair(),
            Self::Strict => request.fair_strict(),
        }
    }
}
