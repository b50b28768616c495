//! Why a node cannot be asked, and which step connecting to it has reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::humane::Humane;
use crate::server_error::ServerError;

/// Why there is no usable connection to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// No attempt has ended yet.
    #[non_exhaustive]
    Connecting {
        /// The attempt's step; `None` before the first.
        step: Option<ConnectStep>,
    },
    /// No server listens at the address.
    Refused,
    /// The name does not resolve, or the connection failed otherwise.
    #[non_exhaustive]
    Unreachable {
        /// The operating system's words.
        error: Box<str>,
    },
    /// Connecting did not end in time, or a command had no answer for so long that its connection
    /// was given up.
    #[non_exhaustive]
    Silent {
        /// How long was waited.
        after: Duration,
        /// The step of connecting; `None` for an established connection.
        step: Option<ConnectStep>,
    },
    /// TLS with the server failed: its certificate is not trusted, it does not trust ours, or it
    /// does not speak TLS.
    #[non_exhaustive]
    Tls {
        /// The cause, and what to do about it.
        error: Box<str>,
    },
    /// The server closed the connection.
    Closed,
    /// The password is missing or wrong, or the user may not connect.
    #[non_exhaustive]
    Authentication {
        /// The server's words.
        error: Box<str>,
    },
    /// The login was not available: what
    /// [`NodeOptions::credentials_async`](crate::NodeOptions::credentials_async) was given failed,
    /// panicked, or had no answer by the end of `connect_timeout`. It is asked again at the next
    /// attempt.
    #[non_exhaustive]
    Credentials {
        /// Its words.
        error: Box<str>,
    },
    /// The server refused a step of the handshake (the database's number, for one).
    #[non_exhaustive]
    Handshake {
        /// The server's words.
        error: Box<str>,
    },
    /// What came back is not RESP, or not an answer to what was asked.
    #[non_exhaustive]
    Protocol {
        /// What was wrong.
        error: Box<str>,
    },
    /// The server is a replica: its vote would count its master's twice.
    Replica,
    /// The server is a Cluster node or a Sentinel and cannot be a member of a quorum.
    #[non_exhaustive]
    Mode {
        /// `cluster` or `sentinel`.
        mode: Box<str>,
    },
    /// The server does not tell its `run_id` (of `INFO server`): the user may not
    /// ask for it, or a proxy hides it. Without it a restart goes unnoticed, and under
    /// [`Durability::Volatile`](crate::Durability::Volatile) the node cannot vote.
    Anonymous,
    /// The server is another member of this quorum under a second address.
    #[non_exhaustive]
    Duplicate {
        /// The address that counts.
        of: Arc<str>,
    },
}

/// The steps of connecting to a node, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectStep {
    /// The name is resolved, and the connection is made.
    Dialing,
    /// The TLS handshake, if the address asks for TLS.
    Securing,
    /// The callback for credentials is called, if there is one.
    LoggingIn,
    /// The server is asked who it is, and told who we are.
    Greeting,
}

/// What the step waits for, as a clause.
impl fmt::Display for ConnectStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dialing => "waits for its address or its connection",
            Self::Securing => {
                "waits for the handshake of TLS, which a port of plain text never answers"
            }
            Self::LoggingIn => "waits for the callback for credentials",
            Self::Greeting => "is connected, and waits for the answer to the handshake",
        })
    }
}

impl ConnectStep {
    /// The likely causes if this step does not end in time.
    fn hint(self) -> &'static str {
        match self {
            Self::Dialing => "is the address right, and no firewall between?",
            Self::Securing => "is this its TLS port? One of plain text waits like this",
            Self::LoggingIn => "the callback for credentials does not answer",
            Self::Greeting => "connected, but it hangs, or is no Redis or Valkey",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting { step: None } => f.write_str("is not connected yet"),
            Self::Connecting { step: Some(step) } => write!(f, "is not connected yet ({step})"),
            Self::Refused => f.write_str("refused the connection"),
            Self::Unreachable { error } => write!(f, "cannot be reached ({error})"),
            Self::Silent { after, step: None } => {
                write!(f, "was silent for {}", Humane(*after))
            }
            Self::Silent { after, step: Some(step) } => {
                write!(f, "was silent for {} while connecting ({})", Humane(*after), step.hint())
            }
            Self::Tls { error } => write!(f, "fails TLS: {error}"),
            Self::Closed => f.write_str("closed the connection"),
            Self::Authentication { error } | Self::Handshake { error } => f.write_str(&said(error)),
            Self::Credentials { error } => {
                write!(f, "cannot be logged in to (the callback for credentials: {error})")
            }
            Self::Protocol { error } => write!(f, "does not speak RESP as expected ({error})"),
            Self::Replica => f.write_str("is a replica (give its master's address)"),
            Self::Mode { mode } => {
                write!(f, "runs as a {mode} node (a quorum needs independent masters)")
            }
            Self::Anonymous => f.write_str(
                "does not tell its run_id, without which it cannot vote under \
                 `Durability::Volatile` (the user needs +info)",
            ),
            Self::Duplicate { of } => {
                write!(f, "is the same server as {of} (a quorum needs independent masters)")
            }
        }
    }
}

impl Fault {
    /// The port answers plain text with TLS.
    pub(crate) fn wants_tls() -> Self {
        Self::Tls { error: "its port answers plain text with TLS (write rediss:// for it)".into() }
    }
}

/// Lets a stream pass a fault on inside an `io::Error`.
impl std::error::Error for Fault {}

/// A server's error as a clause: its code and our advice, or its own text if we have none.
pub(super) fn said(error: &str) -> String {
    let code = error.split(' ').next().unwrap_or_default();
    match ServerError::new(error.as_bytes()).advice() {
        Some(advice) => format!("said {code} ({advice})"),
        None => format!("said {error:?}"),
    }
}
