//! What one node did with a command: the word that the link reads out of a reply, the quorum
//! counts, and the lease explains.

/// What a node did with a command, as far as it fits a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum NodeVote {
    /// No vote yet.
    None = 0,
    Granted,
    Held,
    Gone,
    Silent,
    Disconnected,
    Refused,
    Failed,
    Down,
    Suspect,
    Full,
    NotAsked,
    Quarantined,
    DurabilityMismatch,
    /// The lock is ours there, and its fence has not risen.
    Unfenced,
    /// The lock is ours there until its end, and its holder was asked to let go of it.
    Revoked,
}

impl NodeVote {
    /// All of them, each at the place of its number.
    pub(crate) const ALL: [Self; 16] = [
        Self::None,
        Self::Granted,
        Self::Held,
        Self::Gone,
        Self::Silent,
        Self::Disconnected,
        Self::Refused,
        Self::Failed,
        Self::Down,
        Self::Suspect,
        Self::Full,
        Self::NotAsked,
        Self::Quarantined,
        Self::DurabilityMismatch,
        Self::Unfenced,
        Self::Revoked,
    ];
}
