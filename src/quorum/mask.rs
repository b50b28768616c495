//! Some of the nodes of a node set.

/// A set of nodes of one node set, by their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct NodeMask(u16);

impl NodeMask {
    pub(crate) const ALL: Self = Self(u16::MAX);
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn only(node: usize) -> Self {
        Self(1 << node)
    }

    /// The first `count` nodes.
    pub(super) const fn first(count: usize) -> Self {
        Self(((1_u32 << count) - 1) as u16)
    }

    pub(super) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Whether a node is in it, for each in their order.
    pub(crate) fn each(self) -> impl Iterator<Item = bool> {
        let mut rest = self.0;
        std::iter::repeat_with(move || {
            let is_in = rest & 1 != 0;
            rest >>= 1;
            is_in
        })
    }

    /// How many of the first `nodes` are in it.
    pub(super) fn count(self, nodes: usize) -> usize {
        self.and(Self::first(nodes)).nodes().count()
    }

    /// The nodes, in their order.
    pub(crate) fn nodes(self) -> impl Iterator<Item = usize> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let node = (!rest.is_empty()).then(|| rest.0.trailing_zeros() as usize)?;
            rest = rest.without(node);
            Some(node)
        })
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

    /// Those that are in both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, node: usize) -> Self {
        self.except(Self::only(node))
    }

    /// Those that are not among the others.
    pub(crate) const fn except(self, others: Self) -> Self {
        Self(self.0 & !others.0)
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
        assert_eq!(NodeMask::first(4).except(mask), NodeMask::only(0).with(2));
        assert!(mask.each().take(4).eq([false, true, false, true]));
        assert!(mask.nodes().eq([1, 3]) && NodeMask::first(15).nodes().eq(0..15));
    }
}
