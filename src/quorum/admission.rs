//! Which servers may vote, as far as that depends on the other nodes.

use quorlock_resp::Frame;

use super::shared::Shared;
use crate::link::{Admission, Peer, time_of_refusal};
use crate::report::{Fault, Mode};

impl Shared {
    /// Whether a server may vote: an independent master, no other node of this set, and one on the
    /// locker's terms.
    pub(super) fn admit(&self, index: usize, peer: &Peer) -> Result<(), Fault> {
        self.admit_alone(index, peer)?;
        let fit =
            self.handshake.policy.as_ref().map_or(Admission::Admitted, |policy| policy.judge(peer));
        let mismatch = match fit {
            Admission::Admitted => None,
            Admission::Mismatch(why) => Some(why),
            Admission::Unusable(fault) => return Err(fault),
        };
        self.mismatches.set(index, mismatch);
        Ok(())
    }

    /// A node has refused a vote for good: as if it had been found when it was connected to.
    pub(super) fn note_mismatch(&self, index: usize, reply: &Frame) {
        let why =
            self.handshake.policy.as_ref().map(|policy| policy.explain(time_of_refusal(reply)));
        self.mismatches.set(index, why);
    }

    fn admit_alone(&self, index: usize, peer: &Peer) -> Result<(), Fault> {
        if !self.counted {
            return if peer.is_replica() { Err(Fault::Replica) } else { Ok(()) };
        }
        if let Some(mode @ (Mode::Cluster | Mode::Sentinel)) = peer.server.mode {
            return Err(Fault::Mode { mode: mode.to_string().into() });
        }
        if peer.is_replica() {
            return Err(Fault::Replica);
        }
        let Some(run_id) = &peer.server.run_id else { return Ok(()) };
        let mut others = self.nodes.iter().enumerate().filter(|(other, _)| *other != index);
        let twin = others.find(|(_, node)| {
            node.fault().is_none() && node.run_id().as_deref() == Some(&**run_id)
        });
        twin.map_or(Ok(()), |(_, node)| Err(Fault::Duplicate { of: node.label() }))
    }
}
