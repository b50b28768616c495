//! Scripts that run only on a node that may vote.

/// Puts `standing.lua` before a script.
macro_rules! behind_standing {
    ($script:literal) => {
        concat!(include_str!("../lease/script/standing.lua"), include_str!($script))
    };
}
pub(super) use behind_standing;
