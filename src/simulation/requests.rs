//! The requests for a lock of one key that are under way.

use std::collections::BTreeMap;

/// Which machine asks for which key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Request {
    pub(super) machine: usize,
    pub(super) key: String,
}

/// The requests that are under way, and when others have ended, in nanoseconds of true time.
#[derive(Default)]
pub(super) struct Requests {
    /// By the numbers of their tasks, and since when.
    under_way: BTreeMap<u64, (Request, u64)>,
    ended: BTreeMap<Request, u64>,
}

impl Requests {
    /// Whether such a request was under way at this time, and none has ended since.
    pub(super) fn go_on(&self, request: &Request, at: u64) -> bool {
        let mut under_way = self.under_way.values();
        self.ended.get(request).is_none_or(|ended| *ended < at)
            && under_way.any(|(other, since)| other == request && *since < at)
    }

    /// A task asks for a lock.
    pub(super) fn begin(&mut self, task: u64, request: Request, now: u64) {
        self.under_way.insert(task, (request, now));
    }

    /// It has it, or has given up.
    pub(super) fn end(&mut self, task: u64, now: u64) {
        if let Some((request, _)) = self.under_way.remove(&task) {
            self.ended.insert(request, now);
        }
    }
}
