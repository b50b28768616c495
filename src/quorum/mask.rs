//! Some of the nodes of a node set.

/// A set of nodes of one node set, by their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeMask(u16);

impl NodeMask {
    pub(crate) const ALL: Self = Self(u16::MAX);
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn only(node: usize) -> Self {
        Self(1 << node)
    }

    /// How many of the first `nodes` are in it.
    pub(super) fn count(self, nodes: usize) -> usize {
        (0..nodes).filter(|node| self.has(*node)).count()
    }

    pub(crate) const fn has(self, node: usize) -> bool {
        self.0 & 1 << node != 0
    }

    pub(crate) const fn with(self, node: usize) -> Self {
        Self(self.0 | 1 << node)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, node: usize) -> Self {
        Self(self.0 & !(1 << node))
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::NodeMask;

    #[test]
    fn a_node_is_in_a_mask_once_and_stays_in_it() {
        let mask = NodeMask::NONE.with(1).with(3).with(1);
        assert_eq!(mask, NodeMask::only(1).or(NodeMask::only(3)));
        assert_eq!(mask.or(mask), mask);
        assert!([1, 3].into_iter().all(|node| mask.has(node)) && !mask.has(0) && !mask.has(2));
        assert_eq!((mask.count(4), mask.count(3), mask.is_empty()), (2, 1, false));
        assert!(NodeMask::NONE.is_empty() && NodeMask::ALL.count(15) == 15);
    }
}
