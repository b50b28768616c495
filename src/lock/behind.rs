//! The scripts that run behind others.

/// A script that runs only where the node may vote.
macro_rules! behind_standing {
    ($script:literal) => {
        concat!(include_str!("../lease/script/standing.lua"), include_str!($script))
    };
}
pub(super) use behind_standing;

/// A script that lets go of a lock, behind the one that says who comes next.
macro_rules! behind_hand_on {
    ($script:literal) => {
        concat!(include_str!("script/hand_on.lua"), include_str!($script))
    };
}
pub(super) use behind_hand_on;
