//! What a shutdown says of itself, beside what stands on the nodes.

use std::collections::BTreeSet;

use super::violation::{Kind, Violation};

/// Lockers that have said that nothing of theirs is left.
#[derive(Default)]
pub(super) struct Completeness(BTreeSet<String>);

impl Completeness {
    /// A locker's shutdown says that it is complete, while these `(node, key, value)` of its own
    /// stand that it did not leave on purpose. What futures that acquire have sent may come later.
    pub(super) fn tell(
        &mut self,
        owner: &str,
        stands: &[(usize, String, String)],
        is_acquiring: bool,
    ) -> Vec<Violation> {
        if !is_acquiring {
            self.0.insert(owner.into());
        }
        let wrong = stands.iter().map(|(node, key, value)| {
            let what =
                format!("{owner} is shut down completely, and `{key}` on n{node} is {value}");
            Violation { kind: Kind::Incomplete, what }
        });
        wrong.collect()
    }

    /// A command has put the value of this locker on a node where it was not.
    pub(super) fn see(&self, owner: &str, node: usize) -> Option<Violation> {
        let what =
            format!("{owner} is shut down completely, and its command reached n{node} later");
        self.0.contains(owner).then_some(Violation { kind: Kind::Incomplete, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_means_that_nothing_is_left_and_nothing_comes_later() {
        let mut completeness = Completeness::default();
        assert_eq!(completeness.see("m0.0", 2), None, "it is at work");
        assert_eq!(completeness.tell("m0.0", &[], true), []);
        assert_eq!(completeness.see("m0.0", 2), None, "a future that acquires has sent it");
        assert_eq!(completeness.tell("m0.0", &[], false), []);
        let later = completeness.see("m0.0", 2);
        assert_eq!(later.map(|wrong| wrong.kind), Some(Kind::Incomplete));
        assert_eq!(completeness.see("m0.1", 2), None, "the next locker of that machine");
        let wrong = completeness.tell("m1.0", &[(2, "k".into(), "v@m1.0".into())], true);
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].what.contains("`k` on n2 is v@m1.0"), "{wrong:?}");
    }
}
