//! The loss of a lock, as its holder is told of it: final, and the same by every sign.
//!
//! Times are the machine's: while it stands still, no task there can be told.

use std::collections::BTreeMap;

use super::violation::{Kind, Violation};

/// What a holder sees of one guard at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    /// `lost()` has completed.
    pub(super) lost: bool,
    /// The cancellation token is cancelled; `None` if there is no token.
    pub(super) token: Option<bool>,
    /// `is_valid()` is false.
    pub(super) invalid: bool,
}

impl Seen {
    fn signs(self) -> [(&'static str, Option<bool>); 3] {
        [("lost()", Some(self.lost)), ("the token", self.token), ("is_valid()", Some(self.invalid))]
    }
}

/// When each sign of a guard's loss was seen first.
#[derive(Clone, Copy, Default)]
struct Told([Option<u64>; 3]);

impl Told {
    fn first(self) -> Option<u64> {
        self.0.into_iter().flatten().min()
    }
}

/// What was told of the losses of all guards.
#[derive(Default)]
pub(super) struct Finality(BTreeMap<u64, Told>);

impl Finality {
    /// A holder looks at its guard. One sign may trail another by `slack`.
    pub(super) fn see(&mut self, guard: u64, at: u64, seen: Seen, slack: u64) -> Vec<Violation> {
        let told = self.0.entry(guard).or_default();
        let mut wrong = Vec::new();
        for ((name, sign), first) in seen.signs().into_iter().zip(&mut told.0) {
            match (sign, *first) {
                (Some(true), None) => *first = Some(at),
                (Some(false), Some(_)) => {
                    let what = format!("guard {guard} was lost by {name}, which says held again");
                    wrong.push(Violation { kind: Kind::TakenBack, what });
                }
                _ => {}
            }
        }
        let Some(first) = told.first().filter(|first| first + slack < at) else { return wrong };
        for ((name, sign), _) in seen.signs().into_iter().zip(told.0).filter(|(_, at)| at.is_none())
        {
            if sign.is_some() {
                let others: Vec<&str> = seen
                    .signs()
                    .into_iter()
                    .zip(told.0)
                    .filter_map(|((other, _), at)| at.map(|_| other))
                    .collect();
                let others = others.join(", ");
                let what = format!("guard {guard} was lost by {others} at {first}; {name}: held");
                wrong.push(Violation { kind: Kind::Disagreement, what });
            }
        }
        wrong
    }

    /// An extension by hand has succeeded.
    pub(super) fn extended(&self, guard: u64) -> Option<Violation> {
        let first = self.0.get(&guard)?.first()?;
        let what = format!("guard {guard} was told lost at {first}, and extended after that");
        Some(Violation { kind: Kind::TakenBack, what })
    }

    /// The guard is gone.
    pub(super) fn end(&mut self, guard: u64) {
        self.0.remove(&guard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Seen = Seen { lost: false, token: Some(false), invalid: false };
    const LOST: Seen = Seen { lost: true, token: Some(true), invalid: true };

    /// The kinds of what is wrong with a guard that is seen like this, one instant after another.
    fn kinds(history: &[(u64, Seen)], slack: u64) -> Vec<Kind> {
        let mut finality = Finality::default();
        let wrong = history.iter().flat_map(|(at, seen)| finality.see(1, *at, *seen, slack));
        wrong.map(|violation| violation.kind).collect()
    }

    #[test]
    fn signs_that_agree_are_fine() {
        assert_eq!(kinds(&[(1, HELD), (2, LOST), (3, LOST)], 0), []);
        assert_eq!(kinds(&[(1, Seen { token: None, ..LOST }), (9, LOST)], 0), []);
        let one = Seen { lost: true, ..HELD };
        assert_eq!(kinds(&[(1, HELD), (2, one), (2, LOST)], 0), [], "at the same instant");
    }

    #[test]
    fn a_sign_that_stays_behind_is_found() {
        for behind in [
            Seen { lost: false, ..LOST },
            Seen { token: Some(false), ..LOST },
            Seen { invalid: false, ..LOST },
        ] {
            assert_eq!(kinds(&[(1, HELD), (2, behind)], 0), [], "{behind:?}: it may be on its way");
            assert_eq!(kinds(&[(2, behind), (3, behind)], 0), [Kind::Disagreement], "{behind:?}");
            assert_eq!(kinds(&[(2, behind), (102, behind)], 100), [], "{behind:?}");
            let late = kinds(&[(2, behind), (103, behind)], 100);
            assert_eq!(late, [Kind::Disagreement], "{behind:?}");
        }
    }

    #[test]
    fn a_loss_that_is_taken_back_is_found() {
        let back = Seen { invalid: false, ..LOST };
        assert_eq!(kinds(&[(1, LOST), (2, back)], 0), [Kind::TakenBack]);
        let mut finality = Finality::default();
        assert_eq!(finality.see(1, 1, HELD, 0), []);
        assert_eq!(finality.extended(1), None, "it was held when it was extended");
        finality.see(1, 2, Seen { lost: true, ..HELD }, 0);
        assert_eq!(finality.extended(1).map(|wrong| wrong.kind), Some(Kind::TakenBack));
        assert_eq!(finality.extended(2), None, "another guard");
        finality.end(1);
        assert_eq!(finality.extended(1), None, "its number is not used again");
    }
}
