//! Which node keeps the queue of a key.
//!
//! Every client finds the same one without asking: of the nodes that it is connected to, the one
//! whose process ranks highest for this key (rendezvous hashing, Thaler and Ravishankar 1998). A
//! node that is lost moves the queues of its own keys to others, and no other key's. Clients that
//! are connected to different nodes may choose different ones: then the order suffers, and nothing
//! else, for what is granted is for a majority to say.

use super::context::LeaseContext;
use super::resource::Resource;
use crate::quorum::NodeMask;

/// The node that keeps the queue of a key.
pub(super) struct QueueNode {
    pub(super) node: usize,
    /// What the queue is called, by all clients alike: how the process of its node ranks for this
    /// key.
    pub(super) name: u64,
    /// The key, and those of its queue.
    pub(super) resource: Resource,
}

impl QueueNode {
    /// The node that ranks highest but for those avoided. `None` where there is no other, or this
    /// kind of lock has no queue.
    pub(super) fn of(
        context: &LeaseContext,
        resource: &Resource,
        avoided: NodeMask,
    ) -> Option<Self> {
        let ranks = ranks(context, resource.affinity()).filter(|(_, node)| !avoided.has(*node));
        Self::at(ranks.max()?, resource)
    }

    /// This node, with the queue of this name.
    pub(super) fn at((name, node): (u64, usize), resource: &Resource) -> Option<Self> {
        Some(Self { node, name, resource: resource.queued()? })
    }
}

/// The node that ranks highest for a key.
pub(super) fn first(context: &LeaseContext, key: u64) -> Option<usize> {
    ranks(context, key).max().map(|(_, node)| node)
}

/// The nodes that may keep a queue, and how each ranks for this key.
fn ranks(context: &LeaseContext, key: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
    let processes = context.nodes.processes().enumerate();
    processes.filter_map(move |(node, process)| Some((rank(key, process?.as_bytes()), node)))
}

/// How a process ranks for a key: the hash of both, mixed so that each bit depends on all of both
/// (the finaliser of SplitMix64, Steele, Lea and Flood 2014).
fn rank(key: u64, process: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut mixed = process.iter().fold(key, fold);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::rank;

    /// The position of the highest rank.
    fn first(key: u64, processes: &[String]) -> usize {
        let rank = |at: &usize| rank(key, processes[*at].as_bytes());
        (0..processes.len()).max_by_key(rank).unwrap()
    }

    #[test]
    fn keys_are_spread_evenly_and_only_those_of_a_lost_node_move() {
        let processes: Vec<_> = (0..5).map(|number| format!("{number:040x}")).collect();
        let mut kept = [0; 5];
        for key in 0..10_000 {
            let at = first(key, &processes);
            kept[at] += 1;
            let left: Vec<_> = processes[..4].to_vec();
            assert!(at == 4 || first(key, &left) == at);
        }
        assert!(kept.iter().all(|count| (1_800..2_200).contains(count)), "{kept:?}");
    }
}
