//! What the network does to each client's packets to and from each node: pure.

/// What happens on the way, one way. The worse is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Way {
    #[default]
    Clear,
    /// Everything comes so many milliseconds later.
    Late(u16),
    /// So many of a hundred packets are lost, and sent again by the kernel.
    Lossy(u8),
    /// Nothing comes through; what was sent may come when the way is clear again.
    Dead,
    /// Nothing comes through, and what was sent never will.
    Void,
    /// Every packet is answered by the end of its connection.
    Reset,
}

/// Both ways between a client and a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Path {
    /// From the client to the node.
    pub(crate) to: Way,
    /// From the node to the client.
    pub(crate) from: Way,
}

/// The paths between all clients and all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paths {
    /// Each client's paths, by node.
    pub(crate) by_client: Vec<Vec<Path>>,
}

impl Paths {
    /// Everything is clear.
    pub(crate) fn clear(clients: usize, nodes: usize) -> Self {
        Self { by_client: vec![vec![Path::default(); nodes]; clients] }
    }

    /// Adds a disturbance between the clients and the nodes of two masks.
    pub(crate) fn add(&mut self, clients: u32, nodes: u32, path: Path) {
        for (client, row) in self.by_client.iter_mut().enumerate() {
            for (node, known) in row.iter_mut().enumerate() {
                if clients >> client & 1 == 1 && nodes >> node & 1 == 1 {
                    known.to = known.to.max(path.to);
                    known.from = known.from.max(path.from);
                }
            }
        }
    }

    /// Each path that is not clear: client, node, path.
    pub(crate) fn disturbed(&self) -> impl Iterator<Item = (usize, usize, Path)> {
        let rows = self.by_client.iter().enumerate();
        let all = rows.flat_map(|(client, row)| {
            row.iter().enumerate().map(move |(node, path)| (client, node, *path))
        });
        all.filter(|(_, _, path)| *path != Path::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_add_up_to_the_worse_each_way() {
        let mut paths = Paths::clear(2, 3);
        paths.add(0b01, 0b110, Path { to: Way::Lossy(20), from: Way::Clear });
        paths.add(0b11, 0b100, Path { to: Way::Late(9), from: Way::Dead });
        let found: Vec<_> = paths.disturbed().collect();
        assert_eq!(
            found,
            [
                (0, 1, Path { to: Way::Lossy(20), from: Way::Clear }),
                (0, 2, Path { to: Way::Lossy(20), from: Way::Dead }),
                (1, 2, Path { to: Way::Late(9), from: Way::Dead }),
            ]
        );
    }
}
