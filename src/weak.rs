//! The library with one of its precautions taken away, to see whether its tests notice.
//!
//! A test that finds nothing proves nothing until it has been seen to find something. So each rule
//! on which a lock's safety rests can be switched off, in a build that is never shipped: only
//! `RUSTFLAGS="--cfg quorlock_weak"` has the switch, and elsewhere [`is`] is the constant `false`.
//! Which rule is off is chosen at run time: `QUORLOCK_WEAKNESS=name` for a process, or
//! `choose` for a thread. Without a choice the build is as strong as any.

/// A precaution that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weakness {
    /// A lease lasts for its whole TTL, as if all clocks ran alike.
    NoDriftMargin,
    /// A lease counts from the first reply, not from when the command was sent.
    StartAtFirstReply,
    /// The clock is not read again after the deciding reply.
    NoRecheck,
    /// A release deletes whatever stands under the key.
    DeleteWithoutCompare,
    /// Only nodes that are known to have granted are released.
    ReleaseSkippedOnUnknown,
    /// One grant less than a majority is enough.
    MajorityLessOne,
    /// All attempts of a client have the same random value.
    TokenReused,
    /// A late vote counts for whatever operation has the slot by then.
    SlotWithoutGeneration,
    /// What awaited a reply when a connection ended still awaits one on the next connection.
    InFlightKept,
    /// An extension makes a key that is gone.
    ExtensionRecreates,
    /// An undo takes another connection than what it undoes.
    UndoElsewhere,
    /// A node that may have forgotten its locks votes at once.
    QuarantineOff,
    /// Adopting takes a key over whatever value it holds.
    AdoptWithoutCompare,
    /// The lock of a guard that may live is adopted at once.
    AdoptAtOnce,
    /// An adoption that fails deletes the keys that it has taken over.
    FailedAdoptionDeletes,
    /// An adoption that no majority has granted says that the lock is lost.
    LostThoughUnknown,
    /// An extension that was under way takes a loss by the clock back.
    LossTakenBack,
    /// A shutdown is complete, also while nodes are owed something.
    CompleteThoughOwed,
    /// The look that finds a loss cancels no token, and wakes none of those who wait for it.
    LossNotSignalled,
    /// Protected work takes a step before the clock is looked at.
    ProtectLooksLate,
    /// An adoption that waits for a guard's time to be over is not extended meanwhile.
    AdoptionNotExtended,
    /// A shutdown does not wait for what the nodes answer.
    ShutdownUnanswered,
}

/// Whether the library runs with this weakness.
#[cfg(not(quorlock_weak))]
pub(crate) const fn is(_: Weakness) -> bool {
    false
}

#[cfg(quorlock_weak)]
pub(crate) use switch::is;

#[cfg(all(test, quorlock_weak))]
pub(crate) use switch::{ALL, choose, name};

#[cfg(quorlock_weak)]
mod switch {
    use std::cell::Cell;
    use std::sync::OnceLock;

    use super::Weakness;
    use super::Weakness::*;

    pub(crate) const ALL: [Weakness; 22] = [
        NoDriftMargin,
        StartAtFirstReply,
        NoRecheck,
        DeleteWithoutCompare,
        ReleaseSkippedOnUnknown,
        MajorityLessOne,
        TokenReused,
        SlotWithoutGeneration,
        InFlightKept,
        ExtensionRecreates,
        UndoElsewhere,
        QuarantineOff,
        AdoptWithoutCompare,
        AdoptAtOnce,
        FailedAdoptionDeletes,
        LostThoughUnknown,
        LossTakenBack,
        CompleteThoughOwed,
        LossNotSignalled,
        ProtectLooksLate,
        AdoptionNotExtended,
        ShutdownUnanswered,
    ];

    /// The name by which it is chosen.
    pub(crate) const fn name(weakness: Weakness) -> &'static str {
        match weakness {
            NoDriftMargin => "no-drift-margin",
            StartAtFirstReply => "start-at-first-reply",
            NoRecheck => "no-recheck",
            DeleteWithoutCompare => "delete-without-compare",
            ReleaseSkippedOnUnknown => "release-skipped-on-unknown",
            MajorityLessOne => "majority-less-one",
            TokenReused => "token-reused",
            SlotWithoutGeneration => "slot-without-generation",
            InFlightKept => "in-flight-kept",
            ExtensionRecreates => "extension-recreates",
            UndoElsewhere => "undo-elsewhere",
            QuarantineOff => "quarantine-off",
            AdoptWithoutCompare => "adopt-without-compare",
            AdoptAtOnce => "adopt-at-once",
            FailedAdoptionDeletes => "failed-adoption-deletes",
            LostThoughUnknown => "lost-though-unknown",
            LossTakenBack => "loss-taken-back",
            CompleteThoughOwed => "complete-though-owed",
            LossNotSignalled => "loss-not-signalled",
            ProtectLooksLate => "protect-looks-late",
            AdoptionNotExtended => "adoption-not-extended",
            ShutdownUnanswered => "shutdown-unanswered",
        }
    }

    thread_local! {
        static CHOSEN: Cell<Option<Weakness>> = const { Cell::new(None) };
    }

    pub(crate) fn is(weakness: Weakness) -> bool {
        // A thread that is ending has no choice of its own left.
        let own = CHOSEN.try_with(Cell::get).ok().flatten();
        own.or_else(of_process) == Some(weakness)
    }

    /// The choice of this thread, before that of the process.
    #[cfg(test)]
    pub(crate) fn choose(weakness: Option<Weakness>) {
        CHOSEN.set(weakness);
    }

    fn of_process() -> Option<Weakness> {
        static OF_PROCESS: OnceLock<Option<Weakness>> = OnceLock::new();
        *OF_PROCESS.get_or_init(|| {
            let wanted = std::env::var("QUORLOCK_WEAKNESS").ok().filter(|name| !name.is_empty())?;
            let found = ALL.into_iter().find(|weakness| name(*weakness) == wanted);
            let names = || ALL.map(name).join(", ");
            assert!(found.is_some(), "QUORLOCK_WEAKNESS is `{wanted}`; it can be: {}", names());
            found
        })
    }
}

#[cfg(all(test, quorlock_weak))]
mod tests {
    use super::*;

    #[test]
    fn a_weakness_is_chosen_for_a_thread_and_alone() {
        for chosen in ALL {
            choose(Some(chosen));
            let found: Vec<_> = ALL.into_iter().filter(|weakness| is(*weakness)).collect();
            assert_eq!(found, [chosen], "{}", name(chosen));
        }
        choose(None);
        assert!(!ALL.into_iter().any(is));
    }
}
