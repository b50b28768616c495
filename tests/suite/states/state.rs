//! One state: how a server comes into it, and what a lock says of a node in it.

use quorlock::report::Outcome;
use support::server::Builder;
use support::{Gate, Script};

use super::tested_node::TestedNode;

/// One state.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// Its name in the manual.
    pub(super) name: &'static str,
    pub(super) node: Node,
    /// As whom the locker logs in.
    pub(super) login: &'static str,
    /// The locker is for servers that may forget, and always was.
    pub(super) volatile: bool,
    /// Makes a fresh server ready for the rest.
    pub(super) prepare: fn(&TestedNode),
    pub(super) enter: fn(&TestedNode),
    pub(super) leave: fn(&TestedNode),
    /// The connections end once it is in the state: what counts is how the next ones fare.
    pub(super) cut: bool,
    /// What an acquisition, an extension and a release say of the node.
    pub(super) says: [Said; 3],
    /// A release says so of the script: a native command is granted.
    pub(super) by_script: bool,
    /// What an acquisition says where the node is one of three, if that is something else.
    pub(super) in_quorum: Option<Said>,
    /// What an acquisition says under `Volatile`, where it is a script, if that is asked at all.
    pub(super) vote: Option<Said>,
    pub(super) left: Left,
}

/// What the node is.
#[derive(Clone, Copy)]
pub(super) enum Node {
    Real(fn(Builder) -> Builder),
    /// What it does on its first connection and on later ones; the gate is the state's door.
    Scripted(fn(&Gate) -> [Script; 2]),
}

/// What becomes of a key that was set, once the server is out of the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// It is deleted, however long its TTL.
    Nothing,
    /// No client may delete it: it ends with its TTL.
    UntilExpiry,
}

/// What is said of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    Granted,
    /// Refused: another holds it.
    Held,
    /// Refused: it is not there.
    Gone,
    /// A definite no, in words that hold this one.
    Refused(&'static str),
    /// Open, in words that hold this one.
    Failed(&'static str),
    /// Open: no answer in time.
    Silent,
    /// Nothing was sent, for a reason that holds these words.
    NotSent(&'static str),
    /// There is no such operation in this state.
    Never,
}

/// What most states have in common.
pub(super) const STATE: State = State {
    name: "",
    node: Node::Real(|server| server),
    login: "",
    volatile: false,
    prepare: |_| {},
    enter: |_| {},
    leave: |_| {},
    cut: false,
    says: [Said::Granted; 3],
    by_script: false,
    in_quorum: None,
    vote: None,
    left: Left::Nothing,
};

impl Said {
    pub(super) fn is(self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Self::Granted, Outcome::Granted)
            | (Self::Held, Outcome::Held)
            | (Self::Gone, Outcome::Gone)
            | (Self::Silent, Outcome::Silent { .. }) => true,
            (Self::Refused(word), Outcome::Refused { error, .. })
            | (Self::Failed(word), Outcome::Failed { error, .. }) => error.contains(word),
            (Self::NotSent(words), Outcome::Down { fault, .. }) => {
                fault.to_string().contains(words)
            }
            _ => false,
        }
    }

    /// Whether the command may have been applied, so that it has to be undone.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Failed(_) | Self::Silent)
    }

    /// The manual's words for it.
    pub(super) fn words(self) -> String {
        match self {
            Self::Granted => "yes".into(),
            Self::Held => "no: held".into(),
            Self::Gone => "no: gone".into(),
            Self::Refused(word) => format!("no: {word}"),
            Self::Failed(word) => format!("open: {word}"),
            Self::Silent => "open: silent".into(),
            Self::NotSent(words) => format!("not sent: {words}"),
            Self::Never => "–".into(),
        }
    }
}
