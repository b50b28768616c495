//! How a locker's acquisitions wait for others.

/// How the acquisitions of a locker and its clones have waited for others since it was built: from
/// [`Locker::stats`](crate::Locker::stats). An acquisition counts from when it stands in line or in
/// a queue, or pauses, also if the nodes then grant its first try; one that does neither is not
/// counted here.
///
/// The numbers are counted one by one: they need not fit one another to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WaitStats {
    /// How many wait now.
    pub waiting: u64,
    /// How many have waited and do no longer, whether they have the lock or gave up.
    pub ended: u64,
    /// How often those have asked all nodes; what is asked of the node with the queue alone does
    /// not count. Divided by `ended`: tries per acquisition.
    pub tries: u64,
    /// Wake-ups of the first in a queue because another locker handed the lock over, or left the
    /// queue when it was free.
    pub handed_over: u64,
    /// Wake-ups because a server told that the key had changed, or can tell nothing any more.
    pub changed: u64,
    /// Wake-ups because another task of this locker was done with the lock, or was not polled for
    /// half a second.
    pub in_line: u64,
    /// Wake-ups because a time had come: the end of the key's life, a sign of life that was due, or
    /// the end of a pause where nothing tells that the lock is free.
    pub by_time: u64,
}
