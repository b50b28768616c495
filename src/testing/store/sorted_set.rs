//! Sorted sets: members, each with a score, in the order of their scores.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;

use super::score::{Score, Span};

/// A sorted set. Members of the same score are in the order of their bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct SortedSet {
    scores: BTreeMap<Bytes, Score>,
    /// The same members, by their scores.
    order: BTreeSet<(Score, Bytes)>,
}

impl SortedSet {
    /// Gives a member a score.
    pub(super) fn put(&mut self, member: Bytes, score: Score) {
        self.remove(&member);
        self.order.insert((score, member.clone()));
        self.scores.insert(member, score);
    }

    /// Whether there was such a member.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let Some((member, score)) = self.scores.remove_entry(member) else { return false };
        self.order.remove(&(score, member))
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<Score> {
        self.scores.get(member).copied()
    }

    /// How many members stand before this one.
    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        let (member, score) = self.scores.get_key_value(member)?;
        Some(self.order.range(..(*score, member.clone())).count())
    }

    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// The members with their scores, in their order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &(Score, Bytes)> {
        self.order.iter()
    }

    /// Those whose scores are in the span.
    pub(super) fn within(&self, span: Span) -> impl DoubleEndedIterator<Item = &(Score, Bytes)> {
        self.iter().filter(move |(score, _)| span.contains(*score))
    }

    /// The places from `start` to `stop`, either counted from the end if it is below zero.
    pub(super) fn places(&self, start: i64, stop: i64) -> Range<usize> {
        let count = i64::try_from(self.len()).unwrap_or(i64::MAX);
        let place = |number: i64| if number < 0 { count.saturating_add(number) } else { number };
        let start = place(start).clamp(0, count);
        let end = place(stop).saturating_add(1).clamp(start, count);
        let index = |place: i64| usize::try_from(place).unwrap_or_default();
        index(start)..index(end)
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.scores.keys().map(|member| member.len() + size_of::<f64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::Version;
    use super::*;

    fn set(members: &[(&'static str, f64)]) -> SortedSet {
        let mut set = SortedSet::default();
        for (member, score) in members {
            set.put(Bytes::from_static(member.as_bytes()), Score::new(*score).unwrap());
        }
        set
    }

    fn names<'a>(members: impl Iterator<Item = &'a (Score, Bytes)>) -> Vec<&'a [u8]> {
        members.map(|(_, member)| &member[..]).collect()
    }

    #[test]
    fn members_are_sorted_by_their_scores_and_then_by_their_bytes() {
        let mut set = set(&[("c", 1.0), ("b", 2.0), ("a", 2.0), ("d", f64::NEG_INFINITY)]);
        assert_eq!(names(set.iter()), [b"d", b"c", b"a", b"b"]);
        assert_eq!((set.rank(b"a"), set.rank(b"none")), (Some(2), None));
        set.put("d".into(), Score::new(3.0).unwrap());
        assert_eq!(names(set.iter()), [b"c", b"a", b"b", b"d"], "it has one score alone");
        assert_eq!((set.len(), set.bytes()), (4, 4 * 9));
        assert!(set.remove(b"a") && !set.remove(b"a"));
        assert_eq!((set.rank(b"d"), set.score(b"a")), (Some(2), None));
        let span = Span::read(b"(1", b"inf", Version::default()).unwrap();
        assert_eq!(names(set.within(span)), [b"b", b"d"]);
    }

    #[test]
    fn zeros_of_either_sign_are_one_place() {
        let mut set = set(&[("b", 0.0), ("a", -0.0)]);
        assert_eq!(names(set.iter()), [b"a", b"b"]);
        assert!(set.remove(b"b") && set.remove(b"a") && set.is_empty());
        assert_eq!(set.iter().count(), 0);
    }

    #[test]
    fn places_are_counted_from_either_end() {
        let set = set(&[("a", 1.0), ("b", 2.0), ("c", 3.0)]);
        for (start, stop, places) in [
            (0, -1, 0..3),
            (0, 0, 0..1),
            (-2, 99, 1..3),
            (-99, 1, 0..2),
            (2, 1, 2..2),
            (3, 9, 3..3),
            (0, -4, 0..0),
            (i64::MIN, i64::MAX, 0..3),
        ] {
            assert_eq!(set.places(start, stop), places, "{start} {stop}");
        }
    }
}
