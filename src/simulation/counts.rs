//! How often each action happened: a simulation in which one never does proves nothing about it.

use std::fmt;

/// What clients do, and what comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// A token was handed to another machine.
    Handed,
    /// … to two at once.
    HandedTwice,
    /// … while its guard lived.
    HandedAlive,
    /// … by a shutdown that left its locks.
    HandedByShutdown,
    /// An adoption began after the TTL of the lock.
    AdoptedLate,
    AdoptionWon,
    AdoptionLost,
    /// Too few nodes answered.
    AdoptionUnknown,
    /// The locker was shut down, or belongs to another deployment.
    AdoptionRefused,
    AdoptionDropped,
    AdoptionRetried,
    Shutdown,
    ShutdownLeaving,
    ShutdownDropped,
    ShutdownComplete,
    ShutdownIncomplete,
    RuntimeEnded,
    /// A lock of more than one key.
    SeveralTaken,
    /// A lock in strict order.
    InOrder,
    /// A read lock.
    Read,
    /// … beside another reader's of the same key.
    ReadTogether,
    /// Slots of a key.
    SlotTaken,
    /// … more than one at once.
    SlotsTaken,
    /// … beside another's of the same key.
    SlotShared,
    /// A writer's lock has become a read lock.
    Downgraded,
    DowngradeFailed,
    DowngradeDropped,
    /// A handle has ended, and another one has the lock.
    HandleEnded,
    ReleaseDropped,
    Extended,
    ExtensionFailed,
    ExtensionDropped,
    Ran,
    RunFailed,
    RunLost,
    RunDropped,
    Protected,
    ProtectedLost,
    LossTold,
    /// A client of another library has taken a lock.
    Barged,
    /// … and never deletes it.
    BargedAndLeft,
    /// One that waits for long was dropped meanwhile.
    WaiterDropped,
    /// A lock was handed over to one that waits.
    HandedOver,
    /// A native command has deleted a key.
    DeletedNatively,
    /// … or nothing: it had another value, or there was none.
    NothingNatively,
    /// One that waits was told of a change.
    ToldOfChange,
    /// Its turn came behind others of its process.
    CameInLine,
    /// A lock was handed on inside its process, without the nodes.
    HandedOn,
    /// A latch was closed.
    LatchClosed,
    /// A latch was open.
    LatchOpen,
    /// … for one that had waited.
    LatchWaitedFor,
    LatchDropped,
    LatchFailed,
    /// A latch was counted down without a name.
    LatchCounted,
    /// … or may have been.
    LatchCountUnknown,
    /// A party has passed a barrier.
    BarrierPassed,
    /// … or was told that it is broken.
    BarrierBroken,
    BarrierDropped,
    BarrierFailed,
    Revoked,
    RevocationOfNone,
    RevocationFailed,
    RevocationDropped,
    RevocationHeeded,
    #[cfg(feature = "tokio-util")]
    TokenCancelled,
}

use Action::*;

impl Action {
    /// All, in the order of their numbers.
    pub(super) const ALL: &[Self] = &[
        Handed,
        HandedTwice,
        HandedAlive,
        HandedByShutdown,
        AdoptedLate,
        AdoptionWon,
        AdoptionLost,
        AdoptionUnknown,
        AdoptionRefused,
        AdoptionDropped,
        AdoptionRetried,
        Shutdown,
        ShutdownLeaving,
        ShutdownDropped,
        ShutdownComplete,
        ShutdownIncomplete,
        RuntimeEnded,
        SeveralTaken,
        InOrder,
        Read,
        ReadTogether,
        SlotTaken,
        SlotsTaken,
        SlotShared,
        Downgraded,
        DowngradeFailed,
        DowngradeDropped,
        HandleEnded,
        ReleaseDropped,
        Extended,
        ExtensionFailed,
        ExtensionDropped,
        Ran,
        RunFailed,
        RunLost,
        RunDropped,
        Protected,
        ProtectedLost,
        LossTold,
        Barged,
        BargedAndLeft,
        WaiterDropped,
        HandedOver,
        DeletedNatively,
        NothingNatively,
        ToldOfChange,
        CameInLine,
        HandedOn,
        LatchClosed,
        LatchOpen,
        LatchWaitedFor,
        LatchDropped,
        LatchFailed,
        LatchCounted,
        LatchCountUnknown,
        BarrierPassed,
        BarrierBroken,
        BarrierDropped,
        BarrierFailed,
        Revoked,
        RevocationOfNone,
        RevocationFailed,
        RevocationDropped,
        RevocationHeeded,
        #[cfg(feature = "tokio-util")]
        TokenCancelled,
    ];

    /// Whether it can only happen on a node that is alone: a latch that counts without names, and a
    /// barrier that breaks.
    pub(super) fn needs_one_node(self) -> bool {
        matches!(self, LatchCounted | LatchCountUnknown | BarrierBroken)
    }
}

/// How often each action happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Counts(Vec<u64>);

impl Default for Counts {
    fn default() -> Self {
        Self(vec![0; Action::ALL.len()])
    }
}

impl Counts {
    pub(super) fn add(&mut self, action: Action) {
        self.add_so_many(action, 1);
    }

    pub(super) fn add_so_many(&mut self, action: Action, times: u64) {
        self.0[action as usize] += times;
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum += more);
    }

    /// What has never happened.
    pub(super) fn missing(&self) -> Vec<Action> {
        let each = Action::ALL.iter().zip(&self.0);
        each.filter(|(_, count)| **count == 0).map(|(action, _)| *action).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (action, count) in Action::ALL.iter().zip(&self.0) {
            let between = if *action == Handed { "" } else { ", " };
            write!(f, "{between}{count} {action:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_a_count_of_its_own() {
        for (index, action) in Action::ALL.iter().enumerate() {
            assert_eq!(*action as usize, index, "{action:?} stands in another place of the list");
        }
        let mut counts = Counts::default();
        assert_eq!(counts.missing(), Action::ALL);
        Action::ALL.iter().skip(1).for_each(|action| counts.add(*action));
        counts.join(&counts.clone());
        assert_eq!(counts.missing(), [Handed]);
        assert!(counts.to_string().starts_with("0 Handed, 2 HandedTwice, "), "{counts}");
    }
}
