//! The TCP options of a connection, with their reasons.

use std::time::Duration;

use crate::error::Error;

/// How a TCP connection to a node behaves.
///
/// It concerns a node, or a network, that is gone without notice: a machine that lost its power, a
/// cable, a firewall that forgot the connection. How fast a lock's vote is then depends on how soon
/// we notice. Operations have deadlines of their own
/// ([`node_timeout`](crate::LockerBuilder::node_timeout)) and a connection whose oldest reply is 5
/// s late is given up, or when the last command's time is over. So these options are about
/// connections on which *nothing is asked*, and about bytes that the kernel still tries to deliver.
///
/// ```
/// use std::time::Duration;
///
/// use quorlock::{Locker, TcpOptions};
///
/// # fn main() -> Result<(), quorlock::Error> {
/// // Behind a load balancer that forgets what was silent for 10 s.
/// let tcp = TcpOptions::new().keepalive(Duration::from_secs(5), Duration::from_secs(2));
/// let locker = Locker::single("redis://a")?.tcp(tcp).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TcpOptions {
    pub(crate) no_delay: bool,
    pub(crate) keepalive: Option<Keepalive>,
    pub(crate) user_timeout: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Keepalive {
    pub(crate) idle: Duration,
    pub(crate) interval: Duration,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            no_delay: true,
            keepalive: Some(Keepalive {
                idle: Duration::from_secs(15),
                interval: Duration::from_secs(5),
            }),
            user_timeout: Some(Duration::from_secs(30)),
        }
    }
}

impl TcpOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// `TCP_NODELAY`: each write leaves at once. Default: it does.
    ///
    /// Without it the kernel holds back a small write while an earlier one is not acknowledged
    /// (Nagle's algorithm), and a peer that acknowledges late makes that 40 ms and more for a
    /// command: longer than most locks are held. Turn it off only to measure that. It saves packets
    /// where many small writes follow one another, and the driver gathers those by itself.
    #[must_use]
    pub fn no_delay(mut self, no_delay: bool) -> Self {
        self.no_delay = no_delay;
        self
    }

    /// `SO_KEEPALIVE`: probes a connection that was silent for `idle`, then every `interval`, and
    /// ends it after as many unanswered probes as the system allows (9 on Linux, unless the user
    /// timeout comes first). Both in whole seconds. Default: 15 s and 5 s.
    ///
    /// Choose `idle` below what the strictest firewall, load balancer or NAT on the way takes for
    /// dead: it drops such a connection without notice, and the next lock then waits for a timeout
    /// instead of an answer. Clouds forget after 60 s to 350 s, some boxes after 30 s. Too short
    /// costs a packet each way for each connection and `idle`.
    #[must_use]
    pub fn keepalive(mut self, idle: Duration, interval: Duration) -> Self {
        self.keepalive = Some(Keepalive { idle, interval });
        self
    }

    /// Never probes a silent connection. A node that vanished then counts as connected until it is
    /// asked for something, which costs that operation a timeout.
    #[must_use]
    pub fn no_keepalive(mut self) -> Self {
        self.keepalive = None;
        self
    }

    /// `TCP_USER_TIMEOUT`: for how long sent bytes may stay unacknowledged, in whole milliseconds.
    /// On Linux only; elsewhere it does nothing. Default: 30 s.
    ///
    /// Keepalive is silent while bytes are under way, and the kernel goes on sending those for
    /// about 15 minutes. Choose it above the longest outage that a connection should outlive
    /// (`SYN` retries and a failover of the network take a few seconds), and not far below
    /// `idle + interval`: on Linux it ends a keepalive's patience as well.
    #[must_use]
    pub fn user_timeout(mut self, timeout: Duration) -> Self {
        self.user_timeout = Some(timeout);
        self
    }

    /// Leaves the limit for unacknowledged bytes to the system.
    #[must_use]
    pub fn no_user_timeout(mut self) -> Self {
        self.user_timeout = None;
        self
    }

    /// Refuses values that the kernel would refuse at each connect, or would change.
    pub(crate) fn check(&self) -> Result<(), Error> {
        /// What Linux takes at most, for both.
        const KEEPALIVE_MAX: Duration = Duration::from_secs(32_767);
        let keepalive = |time: Duration| (Duration::from_secs(1)..=KEEPALIVE_MAX).contains(&time);
        match self.keepalive {
            Some(Keepalive { idle, interval }) if !(keepalive(idle) && keepalive(interval)) => {
                return Err(Error::misuse(
                    "a keepalive's times must be 1 s to 32,767 s each (see `no_keepalive`)",
                ));
            }
            _ => {}
        }
        match self.user_timeout.map(|timeout| timeout.as_millis()) {
            Some(0) => {
                Err(Error::misuse("the user timeout must be at least 1 ms (see `no_user_timeout`)"))
            }
            // The kernel takes it for an `int`.
            Some(millis) if i32::try_from(millis).is_err() => {
                Err(Error::misuse("the user timeout must be below 24 days (see `no_user_timeout`)"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_would_refuse_is_refused_before() {
        let (new, second) = (TcpOptions::new(), Duration::from_secs(1));
        let good = [
            new,
            new.keepalive(second, second),
            new.no_keepalive().no_user_timeout().no_delay(false),
            new.user_timeout(Duration::from_millis(1)),
        ];
        for tcp in good {
            assert!(tcp.check().is_ok(), "{tcp:?}");
        }
        let bad = [
            (new.keepalive(Duration::ZERO, second), "1 s to 32,767 s"),
            (new.keepalive(second, Duration::from_millis(999)), "1 s to 32,767 s"),
            (new.keepalive(32_768 * second, second), "1 s to 32,767 s"),
            (new.user_timeout(Duration::ZERO), "at least 1 ms"),
            (new.user_timeout(Duration::from_micros(999)), "at least 1 ms"),
            (new.user_timeout(Duration::MAX), "below 24 days"),
        ];
        for (tcp, words) in bad {
            let error = tcp.check().unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains(words), "{tcp:?}: {error}");
        }
    }
}
