//! What can be found wrong.

/// What can be found wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// Two guards of one key are held at the same time.
    Overlap,
    /// A guard was given for a lock that was not held.
    NotHeld,
    /// Two attempts had the same value.
    SameValue,
    /// A lock that was over is held again.
    HeldAgain,
    /// A release told something else than what the nodes had.
    FalseRelease,
    /// A lock was lost, and its holder was not told in time.
    LossNotTold,
    /// A task waited for longer than was asked for.
    LongWait,
    /// A loss was taken back: its guard was extended, or valid again.
    TakenBack,
    /// One sign of a loss says lost, and another one does not.
    Disagreement,
    /// Protected work took a step without the lock.
    Unprotected,
    /// Two adoptions of one token have succeeded.
    AdoptedTwice,
    /// A machine deleted the key of a guard that another machine has.
    DeletedByAnother,
    /// An adoption failed and deleted a key.
    DeletedByFailure,
    /// An adoption told *lost* where a majority held the lock.
    FalseLoss,
    /// An adoption or a shutdown failed though there had been no fault.
    Failed,
    /// A shutdown was complete, and something was left.
    Incomplete,
    /// A task did not end.
    Endless,
    /// A key was left behind.
    LeftBehind,
    /// A lock was free for long, and a task that waited for it did not get it.
    Forgotten,
    /// A place in a queue was left by none, or a queue would last forever.
    PlaceLeft,
    /// Two holders had the same fence.
    FenceTwice,
    /// Who asked for a lock when another one had its fence got no higher one.
    FenceTooLow,
    /// A store that compares fences has done a write that came too late.
    LateWrite,
    /// A lock was revoked, and its holder had it for longer than was told.
    RevokedLasts,
    /// A latch was open before so many had arrived.
    OpenEarly,
    /// A latch that was open was closed for a later look.
    ClosedAgain,
    /// A look at a latch missed a party that had arrived.
    PartyMissed,
    /// A lock in strict order was had before one whose ticket stood before it.
    OutOfOrder,
    /// A barrier's round was passed for one party, and broken for another one.
    BrokenAndPassed,
    /// A node was sent a command that it does not know.
    Unknown,
    /// The world never came to rest.
    NeverAtRest,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Violation {
    pub(super) kind: Kind,
    pub(super) what: String,
}
