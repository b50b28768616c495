//! Ports for servers that stop, and perhaps come back.
//!
//! They are taken below the range the kernel hands to outgoing connections: above it, a client that
//! keeps dialling a stopped server's port sooner or later gets that very port as its own source,
//! connects to itself, and the server cannot return. Nor does another server get the port of one
//! that is gone, whose clients may still be dialling it: ten thousand are given out in turn. Two
//! test processes do not meet on one port because each holds the UDP port of the same number, for
//! as long as it uses the TCP one.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use socket2::{Domain, Socket, Type};

/// The first port tried.
const FIRST: u16 = 10_000;

/// How many there are; a Cluster node takes the one 10,000 above as well, and no server is there.
const COUNT: u16 = 10_000;

/// A loopback TCP port that nothing listened on when it was claimed, ours until dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: UdpSocket,
}

impl Port {
    /// Claims a free port. Until something listens there, it refuses connections.
    pub fn claim() -> Self {
        let found = (0..COUNT).find_map(|_| Self::try_claim(next_candidate()));
        found.expect("one of ten thousand ports is free")
    }

    fn try_claim(number: u16) -> Option<Self> {
        let claim = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        // Bound and not listened on: a child being spawned at this moment holds the socket a little
        // longer than we do, and meanwhile no client must be able to connect to it.
        let probe = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
        // Elsewhere than on Unix this option would let us take a port that is in use.
        probe.set_reuse_address(cfg!(unix)).ok()?;
        probe.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, number)).into()).ok()?;
        Some(Self { number, _claim: claim })
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The port's address.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.number))
    }
}

/// Walks the range from a random start, so that parallel processes seldom try the same one.
fn next_candidate() -> u16 {
    // Ordering: a counter and nothing else; no memory is published through it.
    static STEP: AtomicU16 = AtomicU16::new(0);
    static START: OnceLock<u16> = OnceLock::new();
    let random = || (RandomState::new().hash_one(std::process::id()) % u64::from(COUNT)) as u16;
    let start = *START.get_or_init(random);
    let step = STEP.fetch_add(1, Ordering::Relaxed) % COUNT;
    FIRST + (start + step) % COUNT
}
