//! The codec beside its peers: the same bytes in, the same values out.
//!
//! A *workload* is a stream of whole replies. A *peer* is one library's decoder with its own read
//! buffer, fed the way it is fed in production. Before anything is measured, the values that each
//! peer makes of each workload are compared ([`check`]).

pub mod callgrind;
pub mod encode;
pub mod interleave;
pub mod peers;
pub mod plain;
pub mod workload;

use peers::{Peer, all};
use plain::Plain;
use workload::Workload;

/// Panics unless every peer makes the same values of every workload, whole and in chunks.
pub fn check() {
    for workload in [workload::ok(), workload::lock_replies(), workload::mixed()] {
        for mut peer in all() {
            let expected = values(&workload);
            assert_eq!(expected.len(), workload.ends.len(), "a malformed workload");
            let found = peer.values(&workload);
            assert!(found == expected, "{} differs on {}", peer.name(), workload.name);
            assert_eq!(peer.drain(&workload), expected.len(), "{}", peer.name());
        }
    }
    let large = workload::large();
    for mut peer in all() {
        assert!(peer.values(&large) == values(&large), "{} differs on {}", peer.name(), large.name);
        for size in [1, 1024, 65_536] {
            assert_eq!(peer.chunked(&large, size), large.body, "{} by {size}", peer.name());
        }
    }
    encode::check();
}

/// What ours makes of a workload, which the others are compared with.
fn values(workload: &Workload) -> Vec<Plain> {
    peers::Ours::default().values(workload)
}
