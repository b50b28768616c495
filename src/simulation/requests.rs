//! The requests for a lock of one key that are under way.

use std::collections::BTreeMap;
use std::ops::Range;

/// Which machine asks for which key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Request {
    pub(super) machine: usize,
    pub(super) key: String,
}

/// The requests that are under way, and when others have ended, in nanoseconds of true time.
#[derive(Default)]
pub(super) struct Requests {
    /// By the numbers of their tasks, since when, and until when they go on in any case.
    under_way: BTreeMap<u64, (Request, Range<u64>)>,
    ended: BTreeMap<Request, u64>,
}

impl Requests {
    /// Whether such a request has gone on from the first of these times to the second.
    pub(super) fn go_on(&self, request: &Request, (from, now): (u64, u64)) -> bool {
        let mut under_way = self.under_way.values();
        self.ended.get(request).is_none_or(|ended| *ended < from)
            && under_way
                .any(|(other, times)| other == request && times.start < from && now < times.end)
    }

    /// A task asks for a lock.
    pub(super) fn begin(&mut self, task: u64, request: Request, times: Range<u64>) {
        self.under_way.insert(task, (request, times));
    }

    /// It has it, or has given up.
    pub(super) fn end(&mut self, task: u64, now: u64) {
        if let Some((request, _)) = self.under_way.remove(&task) {
            self.ended.insert(request, now);
        }
    }
}
