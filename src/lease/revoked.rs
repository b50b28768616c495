//! What is known of a holder that was asked to let go of its lock.

/// Whether a holder was asked to let go of its lock, and whether the observers know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Revoked {
    No,
    /// Some node has said so. Whether the lock can be extended is not known.
    ByOne {
        is_told: bool,
    },
    /// So many have said so that no majority is left: it ends where it stands.
    ByMajority {
        is_told: bool,
    },
}

impl Revoked {
    /// What is known when so many nodes have said so, of which `needed` leave no majority.
    pub(super) fn heard_from(self, count: usize, needed: usize) -> Self {
        match self {
            Self::No if count == 0 => Self::No,
            Self::No if count < needed => Self::ByOne { is_told: false },
            Self::No => Self::ByMajority { is_told: false },
            Self::ByOne { is_told } if count >= needed => Self::ByMajority { is_told },
            known => known,
        }
    }

    /// The observers are told.
    pub(super) fn told(self) -> Self {
        match self {
            Self::No => Self::No,
            Self::ByOne { .. } => Self::ByOne { is_told: true },
            Self::ByMajority { .. } => Self::ByMajority { is_told: true },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_majority_has_said_is_final_and_told_once() {
        let one = Revoked::No.heard_from(1, 2);
        assert_eq!(one, Revoked::ByOne { is_told: false });
        assert_eq!(Revoked::No.heard_from(0, 2), Revoked::No);
        assert_eq!(Revoked::No.told(), Revoked::No);
        assert_eq!(one.told().heard_from(1, 2), Revoked::ByOne { is_told: true });
        let majority = one.told().heard_from(2, 2);
        assert_eq!(majority, Revoked::ByMajority { is_told: true });
        assert_eq!(majority.heard_from(0, 2), majority, "it is not taken back");
        assert_eq!(Revoked::No.heard_from(2, 2).told(), majority);
    }
}
