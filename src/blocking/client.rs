//! The protocol-level client.

use std::fmt;
use std::time::Duration;

use quorlock_resp::Frame;

use super::park;
use crate::client;
use crate::error::Error;
use crate::guarded;
use crate::options::IntoNode;
#[cfg(feature = "tls-rustls")]
use crate::options::Tls;

/// A connection to one node that carries any command but those that would change the connection
/// itself, as [`crate::Client`] does. Cheap to clone; all clones share it, and a thread of its own
/// serves it.
///
/// ```no_run
/// # fn example() -> Result<(), quorlock::Error> {
/// let client = quorlock::blocking::Client::new("redis://127.0.0.1:6379")?;
/// assert!(client.command(["SET", "greeting", "hello"])?.is_ok());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    client: client::Client,
}

impl Client {
    /// As [`crate::Client::new`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(node: impl IntoNode) -> Result<Self, Error> {
        Ok(Self { client: client::Client::on_a_thread(node)? })
    }

    /// As [`crate::Client::with_tls`].
    ///
    /// # Errors
    ///
    /// As there.
    #[cfg(feature = "tls-rustls")]
    pub fn with_tls(node: impl IntoNode, tls: &Tls) -> Result<Self, Error> {
        Ok(Self { client: client::Client::on_a_thread_with_tls(node, tls)? })
    }

    /// As [`crate::Client::timeout`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { client: self.client.timeout(timeout) }
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::command`], and [`is_misuse`](Error::is_misuse) on a thread that is
    /// polling futures.
    pub fn command<A>(&self, args: A) -> Result<Frame, Error>
    where
        A: IntoIterator,
        A::Item: AsRef<[u8]>,
    {
        park::wait(self.client.command(args))?
    }

    /// Sends a guarded command, as [`guarded::Command::send`] does, and waits for what the server
    /// answers.
    ///
    /// # Errors
    ///
    /// As there. On a thread that is polling futures, [`guarded::Error::Client`] with an error that
    /// [`is_misuse`](Error::is_misuse).
    pub fn send(&self, command: &guarded::Command) -> Result<Frame, guarded::Error> {
        command.outcome(self.command(command.words())?)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
