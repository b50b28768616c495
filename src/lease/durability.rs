//! Servers that may forget: the epoch that each node keeps, and who may vote.
//!
//! A node that comes back without its keys could grant again what another client still holds. So
//! under [`Durability::Volatile`] each node keeps, behind the locker's prefix,
//!
//! | key | value | expiry |
//! |---|---|---|
//! | `quorlock:epoch` | the server process's `run_id`, a space, the longest TTL in ms | none |
//! | `quorlock:quarantine` | the `run_id` | the longest TTL |
//!
//! and locks are acquired by a script that looks at both. An epoch that is missing (`FLUSHALL`, a
//! restart without data) or another process's (a restart from a snapshot, a failover) says that
//! grants may have been forgotten: the script sets both keys and grants nothing while the
//! quarantine lives. Every lock that the node can have forgotten has ended by then, for none is
//! longer than the longest TTL. That is why the longest TTL stands in the epoch, and why one node
//! on which it is another is enough for a locker to acquire nothing at all: with a majority
//! restarted, a client with a shorter one would open the quarantine too early. The epoch has no
//! expiry: it is no lock, and an idle deployment must not fall back into quarantine.
//!
//! The keys share the prefix, so that an ACL for the locks covers them, a `{hash tag}` in it keeps
//! them in the locks' slot, and `FLUSHDB` takes them along with the locks. Lockers of overlapping
//! prefixes would have two epochs for one lock; all clients of a lock have the same prefix.
//!
//! What goes unnoticed: a process that is made a replica and a master again, of its own former
//! replica, before any client has acquired from that one. Nodes stand alone, without a failover.
//!
//! A [`Durability::Persistent`] locker acquires nothing either while it finds an epoch: its votes
//! on a restarted node would ignore the quarantine.

use std::time::Duration;

use quorlock_resp::encode;

use super::key::{EPOCH, QUARANTINE};
use super::wire::put_millis;
use crate::error::Error;
use crate::link::{Admission, AdmissionPolicy, EpochValue, Peer, RunId};
use crate::node_vote::NodeVote;
use crate::options::{Durability, Options};
use crate::quorum::Election;
use crate::report::{Fault, Humane, Outcome, ServerInfo};

/// The placeholder that each link replaces by its server's `run_id`.
const HOLE: &RunId = &[b'0'; size_of::<RunId>()];

/// What a locker for servers that may forget adds to its commands.
pub(crate) struct Volatile {
    /// The epoch's and the quarantine's key, encoded.
    keys: Box<[u8]>,
    longest_ttl: Duration,
}

impl Volatile {
    /// How many keys and how many arguments it adds to a script's call.
    pub(super) const KEYS: usize = 2;
    pub(super) const ARGUMENTS: usize = 2;

    /// `None` for servers that forget nothing.
    pub(crate) fn new(options: &Options) -> Option<Self> {
        let Durability::Volatile { longest_ttl } = options.durability else { return None };
        let mut keys = Vec::new();
        for name in [EPOCH, QUARANTINE] {
            encode::bulk(&mut keys, &[&options.prefix[..], name].concat());
        }
        Some(Self { keys: keys.into_boxed_slice(), longest_ttl })
    }

    pub(super) fn longest_ttl(&self) -> Duration {
        self.longest_ttl
    }

    /// Puts the keys that it adds to a script's call, before the lock's own.
    pub(super) fn put_keys(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.keys);
    }

    /// Puts the arguments that it adds to a script's call, behind all others.
    pub(super) fn put_arguments(&self, out: &mut Vec<u8>) {
        put_millis(out, self.longest_ttl);
        encode::bulk(out, HOLE);
    }

    /// Looks at what the nodes have answered to an acquisition, whatever its verdict: an error when
    /// one of them belongs to another deployment.
    pub(crate) fn check(&self, election: &Election) -> Result<(), Error> {
        let mut votes = election.votes();
        match votes.find(|(_, vote)| *vote == NodeVote::DurabilityMismatch) {
            Some((node, _)) => Err(self.mismatch(node, &election.outcome(node).0, election)),
            None => Ok(()),
        }
    }

    fn mismatch(&self, node: usize, outcome: &Outcome, election: &Election) -> Error {
        let nodes = election.report();
        let name = nodes.get(node).map(|report| report.node.clone()).unwrap_or_default();
        let ours = Durability::Volatile { longest_ttl: self.longest_ttl };
        Error::misuse(format!("{name} {}", differs(outcome, ours))).with_nodes(nodes)
    }
}

/// What a locker wants of a server that has shaken hands.
#[derive(Debug)]
pub(crate) struct Epoch {
    key: Box<[u8]>,
    durability: Durability,
}

impl Epoch {
    pub(crate) fn new(options: &Options) -> Self {
        let key = [&options.prefix[..], EPOCH].concat().into_boxed_slice();
        Self { key, durability: options.durability }
    }
}

impl AdmissionPolicy for Epoch {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn judge(&self, peer: &Peer) -> Admission {
        let found = match &peer.epoch {
            EpochValue::Untold | EpochValue::Absent => None,
            EpochValue::Text(text) => Some(longest_ttl_of(text)),
            EpochValue::Other => Some(None),
        };
        match (self.durability, found) {
            (Durability::Volatile { .. }, _) if peer.run_id().is_none() => {
                Admission::Unusable(Fault::Anonymous)
            }
            (Durability::Volatile { longest_ttl }, Some(found)) if found != Some(longest_ttl) => {
                self.mismatch(found)
            }
            // A value that is no epoch is a lock of that name.
            (Durability::Persistent, Some(Some(found))) => self.mismatch(Some(found)),
            _ => Admission::Admitted,
        }
    }

    fn may_be_forgotten(&self, server: &ServerInfo) -> bool {
        self.durability == Durability::Persistent && server.persistence.may_forget() == Some(true)
    }

    fn explain(&self, longest_ttl: Option<Duration>) -> Box<str> {
        differs(&Outcome::DurabilityMismatch { longest_ttl }, self.durability).into()
    }
}

impl Epoch {
    fn mismatch(&self, longest_ttl: Option<Duration>) -> Admission {
        Admission::Mismatch(self.explain(longest_ttl))
    }
}

/// In words, behind the node's name: what it is, and what this locker is.
fn differs(found: &Outcome, ours: Durability) -> String {
    let ours = match ours {
        Durability::Persistent => "`Durability::Persistent`".to_owned(),
        Durability::Volatile { longest_ttl } => {
            format!("a longest TTL of {}", Humane(longest_ttl))
        }
    };
    format!(
        "{found}, and this locker has {ours}; durability belongs to the deployment, and all its \
         clients must have the same"
    )
}

/// The longest TTL that an epoch tells.
fn longest_ttl_of(epoch: &[u8]) -> Option<Duration> {
    let (process, millis) = std::str::from_utf8(epoch).ok()?.split_once(' ')?;
    let is_name = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_number = millis.bytes().all(|byte| byte.is_ascii_digit());
    let millis = millis.parse().ok().filter(|_| is_name && is_number)?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Persistence;

    const LONGEST: Duration = Duration::from_secs(30);

    fn judged(durability: Durability, run_id: Option<&str>, epoch: EpochValue) -> Admission {
        let options = Options { durability, prefix: b"pay:".to_vec(), ..Options::default() };
        let policy = Epoch::new(&options);
        assert_eq!(policy.key(), b"pay:quorlock:epoch");
        let server = ServerInfo { run_id: run_id.map(Into::into), ..ServerInfo::default() };
        let peer = Peer { server, epoch, ..Peer::default() };
        policy.judge(&peer)
    }

    fn text(text: &str) -> EpochValue {
        EpochValue::Text(text.as_bytes().into())
    }

    #[test]
    fn volatile_wants_a_name_and_its_own_longest_ttl_or_none_yet() {
        let name = "0f".repeat(20);
        let judged = |run_id: Option<&str>, epoch| {
            judged(Durability::Volatile { longest_ttl: LONGEST }, run_id, epoch)
        };
        for epoch in [
            EpochValue::Absent,
            EpochValue::Untold,
            text("abc 30000"),
            text(&format!("{name} 30000")),
        ] {
            assert_eq!(judged(Some(&name), epoch), Admission::Admitted);
        }
        for epoch in
            [text("abc 29999"), text("abc"), text("abc x"), text(" 30000"), EpochValue::Other]
        {
            let fit = judged(Some(&name), epoch.clone());
            assert!(matches!(fit, Admission::Mismatch(_)), "{epoch:?}: {fit:?}");
        }
        for nameless in [None, Some("short")] {
            assert_eq!(judged(nameless, EpochValue::Absent), Admission::Unusable(Fault::Anonymous));
        }
    }

    #[test]
    fn persistent_wants_no_epoch_and_minds_nothing_else() {
        let judged = |epoch| judged(Durability::Persistent, None, epoch);
        for epoch in [EpochValue::Absent, EpochValue::Untold, EpochValue::Other, text("a lock")] {
            assert_eq!(judged(epoch), Admission::Admitted);
        }
        let Admission::Mismatch(why) = judged(text("abc 30000")) else {
            panic!("an epoch was found")
        };
        assert!(why.starts_with("belongs to a `Volatile` deployment"), "{why}");
        assert!(why.contains("a longest TTL of 30.0 s, and this locker has `Durability::Pers"));
    }

    #[test]
    fn only_who_relies_on_it_is_told_of_a_server_that_says_that_it_forgets() {
        let told = |durability, persistence: Persistence| {
            let policy = Epoch::new(&Options { durability, ..Options::default() });
            policy.may_be_forgotten(&ServerInfo { persistence, ..ServerInfo::default() })
        };
        let [keeps, forgets] = ["always", "everysec"].map(|when| Persistence {
            appendonly: Some(true),
            appendfsync: Some(when.into()),
            save: None,
        });
        let volatile = Durability::Volatile { longest_ttl: LONGEST };
        assert!(told(Durability::Persistent, forgets.clone()));
        assert!(!told(Durability::Persistent, keeps));
        assert!(!told(Durability::Persistent, Persistence::default()), "it has not said");
        assert!(!told(volatile, forgets));
    }

    #[test]
    fn a_locker_for_servers_that_forget_nothing_has_no_epoch() {
        assert!(Volatile::new(&Options::default()).is_none());
    }
}
