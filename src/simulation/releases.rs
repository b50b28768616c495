//! What releases found on the nodes, beside what they told.

use std::collections::BTreeMap;

use super::node::{Found, Observation};
use crate::Release;

/// The releases that are under way: of each value, what was found on each node; `None` where only a
/// native command has looked, and found something else.
#[derive(Default)]
pub(super) struct Releases {
    open: BTreeMap<String, BTreeMap<usize, Option<Found>>>,
}

impl Releases {
    /// From here on it counts what a release of this value finds.
    pub(super) fn begin(&mut self, value: &str) {
        self.open.insert(value.into(), BTreeMap::new());
    }

    /// The outcome of a release is no longer awaited.
    pub(super) fn abandon(&mut self, value: &str) {
        self.open.remove(value);
    }

    /// Whether no node has executed a release of this value yet, if it counts them.
    pub(super) fn is_unseen(&self, value: &str) -> bool {
        self.open.get(value).is_some_and(BTreeMap::is_empty)
    }

    /// A node has executed a command, about each key of a lock. Of several releases, the first
    /// finds what was there. A lock of several keys is held where each is; else another's key
    /// counts for more than one that is gone.
    pub(super) fn see(&mut self, observations: &[Observation]) {
        let [first, ..] = observations else { return };
        let Some(found) = self.open.get_mut(&first.value).filter(|_| first.is_release) else {
            return;
        };
        let Some(worst) = observations.iter().map(Observation::released).max() else { return };
        let is_last_word = !first.is_native || worst == Found::Ours;
        let entry = found.entry(first.node).or_default();
        *entry = entry.or(is_last_word.then_some(worst));
    }

    /// A release has told this. Returns what is wrong with it, if anything is.
    pub(super) fn end(&mut self, value: &str, told: &Release, majority: usize) -> Option<String> {
        let found = self.open.remove(value)?;
        let count = |what| found.values().filter(|found| **found == Some(what)).count();
        let [ours, gone, others] = [Found::Ours, Found::Gone, Found::Others].map(count);
        let is_true = match told {
            Release::Released => ours >= majority,
            Release::Expired => ours < majority && gone > 0,
            Release::Taken => ours < majority && others > 0,
            // No lock has several handles there.
            Release::Shared => false,
            Release::Unknown(_) => true,
        };
        let told = if let Release::Unknown(_) = told { "Unknown" } else { &format!("{told:?}") };
        let nodes = format!("{ours} nodes held its key, {gone} none, {others} another's");
        (!is_true).then(|| format!("it told {told}, where a majority is {majority}; {nodes}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release of `v` by a script, which found this.
    fn release(node: usize, before: Found, after: Found) -> Observation {
        let (stood, stands) = (None, None);
        let (value, is_release, is_native) = ("v".to_owned(), true, false);
        Observation { node, value, before, after, is_release, is_native, stood, stands }
    }

    /// What is wrong with `told`, when the nodes' releases found this.
    fn judge(told: &Release, found: &[Found]) -> Option<String> {
        let mut releases = Releases::default();
        releases.begin("v");
        for (node, before) in found.iter().enumerate() {
            releases.see(&[release(node, *before, Found::Gone)]);
        }
        releases.end("v", told, 2)
    }

    #[test]
    fn a_release_is_held_to_what_the_nodes_had() {
        use Found::{Gone, Others, Ours};
        assert_eq!(judge(&Release::Released, &[Ours, Ours, Gone]), None);
        assert!(judge(&Release::Released, &[Ours, Gone, Gone]).is_some());
        assert!(judge(&Release::Released, &[Ours]).is_some(), "one node is no majority");
        assert_eq!(judge(&Release::Expired, &[Ours, Gone, Gone]), None);
        assert!(judge(&Release::Expired, &[Ours, Ours, Gone]).is_some(), "a majority had it");
        assert!(judge(&Release::Expired, &[Others, Others]).is_some(), "it was gone nowhere");
        assert_eq!(judge(&Release::Taken, &[Gone, Others, Others]), None);
        assert!(judge(&Release::Taken, &[Ours, Ours, Others]).is_some());
        assert!(judge(&Release::Taken, &[Gone, Gone, Gone]).is_some(), "no node has it");
        assert_eq!(judge(&Release::Unknown(Vec::new()), &[Ours, Ours, Ours]), None);
    }

    #[test]
    fn a_key_that_is_still_there_was_not_released() {
        let mut releases = Releases::default();
        releases.begin("v");
        for node in 0..2 {
            releases.see(&[release(node, Found::Ours, Found::Ours)]);
        }
        assert!(releases.end("v", &Release::Released, 2).is_some());
    }

    /// The key may be another's by the time the script asks, or may be gone.
    #[test]
    fn behind_a_native_command_that_has_deleted_nothing_the_script_has_the_last_word() {
        use Found::{Gone, Others, Ours};
        let judge = |told, natively, then| {
            let mut releases = Releases::default();
            releases.begin("v");
            for node in 0..2 {
                releases.see(&[Observation { is_native: true, ..release(node, natively, Gone) }]);
                assert!(!releases.is_unseen("v"));
                releases.see(&[release(node, then, Gone)]);
            }
            releases.end("v", &told, 2)
        };
        assert_eq!(judge(Release::Taken, Gone, Others), None);
        assert!(judge(Release::Expired, Gone, Others).is_some());
        assert_eq!(judge(Release::Released, Ours, Gone), None);
    }
}
