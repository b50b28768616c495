//! The protocol-level client: any command to one node, over links as the locks have them.
//!
//! All callers share one connection, so [`shared`] refuses what would harm the others.

mod shared;
#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use quorlock_resp::{Frame, encode};

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::{Error, Kind};
use crate::link::{Dial, HandshakeConfig, Network, ReplyKind, Undo, Urgency};
use crate::observe::Observers;
use crate::options::{Address, Driver, IntoNode, LinkOptions, Tls, security};
use crate::quorum::{Command, Election, NodeMask, NodeSet, Parts};
use crate::report::Outcome;

/// How long a command may take, unless set otherwise.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A connection to one node that carries any command but those that would change the connection
/// itself: see [`command`](Self::command). Cheap to clone; all clones share it.
///
/// Commands of many callers are pipelined: each waits for its own reply only. An error that the
/// server answers is a reply, [`Frame::Error`]; an [`Error`] says that there is no reply.
///
/// ```no_run
/// # async fn example() -> Result<(), quorlock::Error> {
/// let client = quorlock::Client::new("redis://127.0.0.1:6379")?;
/// let reply = client.command(["SET", "greeting", "hello"]).await?;
/// assert!(reply.is_ok());
///
/// let mut pipeline = client.pipeline();
/// pipeline.command(["INCR", "visits"]).command(["GET", "greeting"]);
/// let replies = pipeline.run().await?;
/// assert_eq!(replies[1].as_str(), Ok("hello"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    nodes: Arc<NodeSet>,
    timeout: Duration,
    /// Whether commands may keep its connection waiting.
    blocking: bool,
}

impl Client {
    /// A client for the node at this URL, or with these [`NodeOptions`](crate::NodeOptions). Does
    /// no I/O; the first command connects.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when the address cannot be right.
    pub fn new(node: impl IntoNode) -> Result<Self, Error> {
        Self::at(Address::of(node)?, None, Driver::Runtime)
    }

    /// As [`Client::new`], for callers without a runtime.
    #[cfg(feature = "blocking")]
    pub(crate) fn on_a_thread(node: impl IntoNode) -> Result<Self, Error> {
        Self::at(Address::of(node)?, None, Driver::Thread)
    }

    /// As [`Client::with_tls`], for callers without a runtime.
    #[cfg(all(feature = "blocking", feature = "tls-rustls"))]
    pub(crate) fn on_a_thread_with_tls(node: impl IntoNode, tls: &Tls) -> Result<Self, Error> {
        Self::at(Address::of(node)?, Some(tls), Driver::Thread)
    }

    /// A client for this node, whose URL begins with `rediss://` or `valkeys://`, with something
    /// else to trust than what browsers do, or with a certificate of our own.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when the address cannot be right or asks for no TLS, and
    /// when a file that `tls` names cannot be used.
    #[cfg(feature = "tls-rustls")]
    pub fn with_tls(node: impl IntoNode, tls: &Tls) -> Result<Self, Error> {
        Self::at(Address::of(node)?, Some(tls), Driver::Runtime)
    }

    fn at(address: Address, tls: Option<&Tls>, driver: Driver) -> Result<Self, Error> {
        // Its commands are not undone, so it brings no script.
        let security = security(std::slice::from_ref(&address), tls)?;
        let handshake = HandshakeConfig { security, ..HandshakeConfig::default() };
        let options = LinkOptions { driver, ..LinkOptions::default() };
        let clock = Clock::default();
        let dial = Arc::new(Network::new(clock.clone(), options.connect_timeout));
        Self::of(address, clock, options, handshake, dial)
    }

    /// A client of the node that `dial` leads to.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn in_memory(dial: Arc<dyn Dial>) -> Result<Self, Error> {
        let (address, clock) = (Address::parse("redis://node-0")?, Clock::default());
        Self::of(address, clock, LinkOptions::default(), HandshakeConfig::default(), dial)
    }

    fn of(
        address: Address,
        clock: Clock,
        options: LinkOptions,
        handshake: HandshakeConfig,
        dial: Arc<dyn Dial>,
    ) -> Result<Self, Error> {
        let (addresses, counted, observers) = (vec![address], false, Observers::default());
        let entropy = Arc::new(Entropy::from_system()?);
        let parts =
            Parts { addresses, counted, options, clock, entropy, dial, handshake, observers };
        let nodes = Arc::new(NodeSet::new(parts));
        Ok(Self { nodes, timeout: TIMEOUT, blocking: false })
    }

    /// How long a command may take until it is given up. Default: 500 ms.
    ///
    /// A node that answers nothing more is given up after 5 s, or when the last command's time is
    /// over, if that is later.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// A client of the same node for commands that block: `BLPOP` and its kin, `XREAD` with
    /// `BLOCK`, `WAIT`.
    ///
    /// It has a connection of its own, shared with its clones and no other client: a command that
    /// blocks holds up all commands behind it on its connection. Make one for each caller that is
    /// to wait by itself. Choose a [`timeout`](Self::timeout) above the command's own: an element
    /// that the server takes out of a list later than that is lost.
    ///
    /// ```no_run
    /// # async fn example(client: quorlock::Client) -> Result<(), quorlock::Error> {
    /// use std::time::Duration;
    ///
    /// let worker = client.clone().allow_blocking().timeout(Duration::from_secs(30));
    /// let job = worker.command(["BLPOP", "jobs", "20"]).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn allow_blocking(self) -> Self {
        let nodes = Arc::new(self.nodes.apart());
        Self { nodes, blocking: true, ..self }
    }

    /// Sends one command and waits for its reply.
    ///
    /// All callers share the connection, so a command that would change it for the others is
    /// refused and not sent:
    ///
    /// - what has not one reply: `SUBSCRIBE` and its kin, `MONITOR`, `CLIENT REPLY`, replication;
    /// - what ends the connection, or changes its login, protocol or database: `QUIT`, `AUTH`,
    ///   `HELLO`, `RESET`, `SELECT`;
    /// - what changes the commands behind it: `MULTI` and its kin, `ASKING`, `READONLY`,
    ///   `READWRITE`, `CLIENT TRACKING`, `CACHING`, `NO-TOUCH`, `CAPA` and `IMPORT-SOURCE`;
    /// - what blocks, unless by [`allow_blocking`](Self::allow_blocking).
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable) and [`is_full`](Error::is_full) when nothing was
    /// sent, [`is_authentication`](Error::is_authentication), and
    /// [`is_unknown`](Error::is_unknown) when no reply came: the command may have been executed.
    /// [`is_misuse`](Error::is_misuse) for a command without a word, one that is refused (the line
    /// says what to do instead), and a timeout of zero.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not recall the command: it was sent at the first poll. Its reply is
    /// consumed and reaches no other caller.
    pub async fn command<A>(&self, args: A) -> Result<Frame, Error>
    where
        A: IntoIterator,
        A::Item: AsRef<[u8]>,
    {
        let election = self.send(&encoded(args, self.blocking)?)?;
        reply(&election).await
    }

    /// Commands to be sent together.
    pub fn pipeline(&self) -> Pipeline {
        Pipeline { client: self.clone(), commands: Ok(Vec::new()) }
    }

    fn send(&self, bytes: &[u8]) -> Result<Election, Error> {
        if self.timeout.is_zero() {
            return Err(Error::misuse("the timeout is 0; no node could ever answer in time"));
        }
        let command = Command {
            bytes,
            kind: ReplyKind::Any,
            undo: Undo::NONE,
            affinity: 0,
            sent: self.nodes.clock().now(),
            allowed: self.timeout,
            urgency: Urgency::Usual,
            to: NodeMask::only(0),
        };
        self.nodes.ask(&command, NodeSet::rule_of_one())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("node", &self.nodes).finish_non_exhaustive()
    }
}

/// Commands that are sent together and answered in their order.
#[must_use = "a pipeline does nothing until `run` is awaited"]
pub struct Pipeline {
    client: Client,
    /// The first bad command is told when the pipeline is run.
    commands: Result<Vec<Vec<u8>>, Error>,
}

impl Pipeline {
    /// Adds a command.
    pub fn command<A>(&mut self, args: A) -> &mut Self
    where
        A: IntoIterator,
        A::Item: AsRef<[u8]>,
    {
        if let Ok(commands) = &mut self.commands {
            match encoded(args, self.client.blocking) {
                Ok(command) => commands.push(command),
                Err(error) => self.commands = Err(error),
            }
        }
        self
    }

    /// Sends the commands one behind the other, and waits for all replies.
    ///
    /// # Errors
    ///
    /// As [`Client::command`]; then the commands before the one that failed have been executed, and
    /// those behind it may have been. After [`is_misuse`](Error::is_misuse) nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::command`].
    pub async fn run(self) -> Result<Vec<Frame>, Error> {
        let commands = self.commands?;
        let mut replies = Vec::with_capacity(commands.len());
        let sent: Result<Vec<_>, _> =
            commands.iter().map(|command| self.client.send(command)).collect();
        for election in sent? {
            replies.push(reply(&election).await?);
        }
        Ok(replies)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.commands.as_ref().map_or(0, Vec::len);
        f.debug_struct("Pipeline").field("commands", &count).finish_non_exhaustive()
    }
}

/// The bytes of a command that its connection can carry.
fn encoded<A>(args: A, blocking: bool) -> Result<Vec<u8>, Error>
where
    A: IntoIterator,
    A::Item: AsRef<[u8]>,
{
    let args: Vec<_> = args.into_iter().collect();
    let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
    if args.first().is_none_or(|name| name.is_empty()) {
        return Err(Error::misuse(
            "the command has no name; give its words, as in [\"GET\", \"k\"]",
        ));
    }
    shared::check(&args, blocking)?;
    let mut bytes = Vec::with_capacity(encode::command_len(&args));
    encode::command(&mut bytes, &args);
    Ok(bytes)
}

fn is_unsent(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Down { .. } | Outcome::Suspect | Outcome::Full)
}

async fn reply(election: &Election) -> Result<Frame, Error> {
    poll_fn(|cx| election.poll_verdict(cx)).await;
    if let Some(frame) = election.take_frame(0) {
        return Ok(frame);
    }
    let nodes = election.report();
    let is = |is: fn(&Outcome) -> bool| nodes.iter().any(|node| is(&node.outcome));
    let kind = match is(Outcome::is_authentication) || is(is_unsent) {
        true => Kind::no_quorum(&nodes, 1),
        false => Kind::Unknown,
    };
    Err(Error::new(kind).with_nodes(nodes))
}
