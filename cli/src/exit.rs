//! Exit codes, and the causes that they stand for.
//!
//! If `sysexits.h` has a number for a cause, we use it; a command's own code is passed on
//! unchanged. None of our codes is a small number, so that "busy" is not mistaken for a failed
//! command.

#[cfg(unix)]
use quorlock::recipe::StoreError;

/// Why the program ends without success. Each has an exit code of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The command line is invalid.
    Usage,
    /// Too few nodes could be reached, or answered in time.
    Unavailable,
    /// Another client holds the lock.
    Busy,
    /// Another machine runs the job, or has run it.
    Skipped,
    /// The nodes refused our user, password or rights.
    Denied,
    /// No nodes, an invalid address, or a key that something else uses.
    Configuration,
    /// The lock ended before the command did.
    Lost,
    /// Whether the command was run before is not known.
    Unknown,
    /// An assertion about a measurement failed.
    Assertion,
    /// A bug, or an error of the operating system that is not expected.
    Internal,
    /// The command exists but cannot be run.
    CannotRun,
    /// The command does not exist.
    NotFound,
    /// A signal ended the wait.
    Signal(u8),
}

impl Cause {
    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        self.code_and_word().0
    }

    /// The word for it in `--json`.
    pub(crate) const fn word(self) -> &'static str {
        self.code_and_word().1
    }

    const fn code_and_word(self) -> (u8, &'static str) {
        match self {
            Self::Usage => (64, "usage"),
            Self::Unavailable => (69, "unavailable"),
            Self::Busy => (75, "busy"),
            Self::Skipped => (0, "skipped"),
            Self::Denied => (77, "denied"),
            Self::Configuration => (78, "configuration"),
            Self::Lost => (79, "lost"),
            Self::Unknown => (80, "unknown"),
            Self::Assertion => (99, "assertion"),
            Self::Internal => (125, "internal"),
            Self::CannotRun => (126, "cannot run"),
            Self::NotFound => (127, "not found"),
            // As shells do; real-time signals end at 64.
            Self::Signal(number) => (128_u8.saturating_add(number), "interrupted"),
        }
    }
}

/// Why a command of the program failed, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) what: String,
}

impl Failure {
    pub(crate) fn new(cause: Cause, what: impl Into<String>) -> Self {
        Self { cause, what: what.into() }
    }

    /// As `from`, but a misuse is the command line's fault: the nodes' URLs have been checked
    /// before. A foreign value under a key still counts as configuration.
    pub(crate) fn of_options(error: quorlock::Error) -> Self {
        let is_option = error.is_misuse() && !error.is_foreign();
        let failure = Self::from(error);
        if is_option { Self { cause: Cause::Usage, ..failure } } else { failure }
    }

    /// The system refused something.
    pub(crate) fn internal(what: &str, error: &std::io::Error) -> Self {
        Self::new(Cause::Internal, format!("{what}: {error}"))
    }
}

impl From<quorlock::Error> for Failure {
    fn from(error: quorlock::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&quorlock::Error> for Failure {
    fn from(error: &quorlock::Error) -> Self {
        let cause = if error.is_contended() {
            Cause::Busy
        } else if error.is_authentication() {
            Cause::Denied
        } else if error.is_misuse() {
            Cause::Configuration
        } else if error.is_lost() {
            Cause::Lost
        } else if error.is_closed() {
            Cause::Internal
        } else {
            // Too few nodes, or all of them too slow to be of use.
            Cause::Unavailable
        };
        Self::new(cause, error.to_string())
    }
}

#[cfg(unix)]
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let refused = |what: &str| match what.split(' ').next() {
            Some("NOPERM" | "NOAUTH" | "WRONGPASS") => Cause::Denied,
            Some("WRONGTYPE") => Cause::Configuration,
            // What a script has met is told behind a word of the script's.
            _ if what.contains("WRONGTYPE") || what.contains("something else") => {
                Cause::Configuration
            }
            _ if what.contains("ACL") => Cause::Denied,
            _ => Cause::Unavailable,
        };
        let cause = match &error {
            // The URLs were checked before: what is left to be wrong is an option.
            StoreError::Client(error) if error.is_misuse() => {
                return Self::new(Cause::Usage, error.to_string());
            }
            StoreError::Client(error) => return Self::from(&**error),
            StoreError::Rejected(what) => refused(what),
            StoreError::Unexpected(_) => Cause::Configuration,
            _ => Cause::Internal,
        };
        Self::new(cause, format!("the first node refused: {error}"))
    }
}
