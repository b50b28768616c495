//! The error of every operation: whose doing it was, what happened to state, what to do.
//!
//! [`Error`] is opaque; [`Error::kind`] and its predicates tell the causes apart, and
//! [`Error::nodes`] has each node's own outcome. `Debug` reads as `Display` does, because people
//! return errors from `main`.

use std::fmt;
use std::time::Duration;

use crate::loss::Loss;
use crate::report::{ANOTHER, Holder, Humane, NodeReport, Outcome, listed};

/// Why an operation failed. `Display` is one line that says what to do.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    /// The key as the caller gave it, printable; absent where no key was involved.
    key: Option<Box<str>>,
    nodes: Vec<NodeReport>,
    effort: Option<Effort>,
}

/// What was spent before giving up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) tries: u32,
    pub(crate) elapsed: Duration,
}

/// What kind of error it was. What else is known of it the [`Error`] has: its
/// [`holder`](Error::holder), its [`loss`](Error::loss), its [`nodes`](Error::nodes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another client holds the lock: [`Error::is_contended`].
    Contended,
    /// Too few nodes could be asked, or answered in time: [`Error::is_unavailable`].
    Unavailable,
    /// Too many nodes refused our user, password or rights: [`Error::is_authentication`].
    Authentication,
    /// Too many commands wait for their replies already: [`Error::is_full`].
    Full,
    /// The lock was granted too late to be of use: [`Error::is_too_slow`].
    TooSlow,
    /// Something that no lock wrote stands under the key: [`Error::is_foreign`], and
    /// [`Error::is_misuse`] too.
    Foreign,
    /// The lock was held and is no longer: [`Error::is_lost`].
    Lost,
    /// Whether a client's command was executed is not known: [`Error::is_unknown`].
    Unknown,
    /// The locker was shut down, or there is no runtime: [`Error::is_closed`].
    Closed,
    /// The caller's mistake: [`Error::is_misuse`], which is true of [`Foreign`](Self::Foreign) too.
    Misuse,
    /// The lock cannot be extended, for its holder was asked to let go: [`Error::is_revoked`].
    Revoked,
    /// A party of a barrier has waited for long enough, and no party passes:
    /// [`Error::is_broken`].
    Broken,
}

impl ErrorKind {
    /// In one word, in lower case: for a metric's label, as `error.type` in traces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contended => "contended",
            Self::Unavailable => "unavailable",
            Self::Authentication => "authentication",
            Self::Full => "full",
            Self::TooSlow => "too_slow",
            Self::Foreign => "foreign",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
            Self::Closed => "closed",
            Self::Misuse => "misuse",
            Self::Revoked => "revoked",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug)]
pub(crate) enum Kind {
    Contended { holder: Option<Holder> },
    NoSlot { count: u16 },
    Unavailable { needed: usize },
    Authentication { needed: usize },
    Full { needed: usize },
    TooSlow { ttl: Duration, elapsed: Duration },
    Foreign { what: Box<str> },
    Lost { reason: Option<Loss> },
    Revoked,
    Unknown,
    MayHaveCounted,
    Broken,
    Closed { why: &'static str },
    Misuse { what: Box<str> },
}

impl Kind {
    /// Why so few nodes did what was asked that there is no majority of `needed`.
    pub(crate) fn no_quorum(nodes: &[NodeReport], needed: usize) -> Self {
        // So many of one kind leave no majority, whatever the others say.
        let enough = nodes.len().saturating_sub(needed) + 1;
        let count = |is: fn(&Outcome) -> bool| nodes.iter().filter(|n| is(&n.outcome)).count();
        if count(Outcome::is_authentication) >= enough {
            Self::Authentication { needed }
        } else if count(|outcome| *outcome == Outcome::Full) >= enough {
            Self::Full { needed }
        } else if count(|outcome| *outcome == Outcome::Revoked) >= enough {
            Self::Revoked
        } else {
            Self::Unavailable { needed }
        }
    }
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Self {
        Self(Box::new(Inner { kind, key: None, nodes: Vec::new(), effort: None }))
    }

    pub(crate) fn misuse(what: impl Into<Box<str>>) -> Self {
        Self::new(Kind::Misuse { what: what.into() })
    }

    pub(crate) fn closed(why: &'static str) -> Self {
        Self::new(Kind::Closed { why })
    }

    /// There is nothing here that could wake a waiting task.
    pub(crate) fn no_runtime() -> Self {
        Self::closed(
            "no tokio runtime here to work on; call this from async code that runs on one, or give \
             the locker a thread of its own (`Driver::Thread`)",
        )
    }

    pub(crate) fn with_key(mut self, key: &[u8]) -> Self {
        self.0.key = Some(quoted(key));
        self
    }

    pub(crate) fn with_nodes(mut self, nodes: Vec<NodeReport>) -> Self {
        self.0.nodes = nodes;
        self
    }

    pub(crate) fn with_effort(mut self, effort: Effort) -> Self {
        self.0.effort = Some(effort);
        self
    }

    /// Adds who is in the way, once that is known.
    pub(crate) fn name_holder(&mut self, found: Holder) {
        if let Kind::Contended { holder } = &mut self.0.kind {
            *holder = Some(found);
        }
    }

    /// What kind of error it is: for a `match`, and for labels. The predicates below say what each
    /// kind means.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0.kind {
            Kind::Contended { .. } | Kind::NoSlot { .. } => ErrorKind::Contended,
            Kind::Unavailable { .. } => ErrorKind::Unavailable,
            Kind::Authentication { .. } => ErrorKind::Authentication,
            Kind::Full { .. } => ErrorKind::Full,
            Kind::TooSlow { .. } => ErrorKind::TooSlow,
            Kind::Foreign { .. } => ErrorKind::Foreign,
            Kind::Lost { .. } => ErrorKind::Lost,
            Kind::Revoked => ErrorKind::Revoked,
            Kind::Unknown | Kind::MayHaveCounted => ErrorKind::Unknown,
            Kind::Broken => ErrorKind::Broken,
            Kind::Closed { .. } => ErrorKind::Closed,
            Kind::Misuse { .. } => ErrorKind::Misuse,
        }
    }

    /// Another client holds the lock, or several hold parts of it. Nothing of ours was set on the
    /// nodes that said so; what others had granted is being released.
    #[must_use]
    pub fn is_contended(&self) -> bool {
        self.kind() == ErrorKind::Contended
    }

    /// Too few nodes could be asked or answered in time. An acquisition: what had been granted is
    /// being released, also where a node was silent and may have granted it. An extension: the lock
    /// is held as long as before. A command of [`Client`](crate::Client): nothing was sent.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.kind() == ErrorKind::Unavailable
    }

    /// So many nodes refused our user, password or rights that there can be no quorum. They applied
    /// nothing; what others had granted is being released.
    #[must_use]
    pub fn is_authentication(&self) -> bool {
        self.kind() == ErrorKind::Authentication
    }

    /// On so many nodes too many commands wait for their replies already that there can be no
    /// quorum: we ask more than they answer, or they hang. These nodes were sent nothing; what
    /// others had granted is being released. The bounds are
    /// [`link_entries_max`](crate::LockerBuilder::link_entries_max) and
    /// [`link_bytes_max`](crate::LockerBuilder::link_bytes_max).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind() == ErrorKind::Full
    }

    /// The lock was granted, but so late that nothing of its time was left. It is being released.
    #[must_use]
    pub fn is_too_slow(&self) -> bool {
        self.kind() == ErrorKind::TooSlow
    }

    /// The lock was held and is no longer: another client may hold it by now. What nodes still hold
    /// of it is deleted when its guard is dropped. [`loss`](Self::loss) says why.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.kind() == ErrorKind::Lost
    }

    /// The lock cannot be extended any more, nor adopted, for its holder was asked to let go of it
    /// ([`Locker::revoke`](crate::Locker::revoke)). It is held as long as before.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.kind() == ErrorKind::Revoked
    }

    /// The command was sent and no reply came: whether it was applied is not known. Only a
    /// [`Client`](crate::Client) says so, and [`Latch::count_down`](crate::Latch::count_down);
    /// locks undo what they do not know.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.kind() == ErrorKind::Unknown
    }

    /// The barrier's round is broken, for all its parties: the wait of one of them was over before
    /// all had come ([`Barrier::pass_or_break`](crate::Barrier::pass_or_break)). To ask again gets
    /// the same; begin anew at another key.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.kind() == ErrorKind::Broken
    }

    /// The locker cannot work any more, or not from here: it was shut down, or there is no runtime.
    /// An acquisition has left nothing behind; a release was written to the connections all the
    /// same; a lock that could not be extended is held as long as before.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.kind() == ErrorKind::Closed
    }

    /// The caller's mistake: a bad option, address or key, which was found before anything was
    /// sent; or a key that something else uses, which was left as it is. Asking again cannot help.
    #[must_use]
    pub fn is_misuse(&self) -> bool {
        matches!(self.kind(), ErrorKind::Misuse | ErrorKind::Foreign)
    }

    /// Something that no lock wrote stands under the key: a value of another type, or one that
    /// never expires. Also a misuse; asking again cannot help until it is removed.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.kind() == ErrorKind::Foreign
    }

    /// Asking again later may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Contended | ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::TooSlow
        )
    }

    /// Why the lock was lost, where it was and that is known.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        match self.0.kind {
            Kind::Lost { reason } => reason,
            _ => None,
        }
    }

    /// Who holds the lock, where that is known.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        match &self.0.kind {
            Kind::Contended { holder } => holder.as_ref(),
            _ => None,
        }
    }

    /// For how long asking again is certain to fail, because the nodes will refuse all clients, as
    /// in a quarantine; or, for a lock that is held, likely to fail: how long the holder's key
    /// still lived when it was looked at. Its holder may release it sooner, or extend it. `None`
    /// where nothing is known, and where asking again cannot help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.0.kind {
            Kind::Contended { holder } => holder.as_ref().map(|holder| holder.remaining),
            Kind::Unavailable { needed } => self.0.quarantine(*needed),
            _ => None,
        }
    }

    /// What each node did, in the order in which the nodes were given; empty where none was asked.
    #[must_use]
    pub fn nodes(&self) -> &[NodeReport] {
        &self.0.nodes
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0.key.as_deref().unwrap_or("the lock");
        match &self.0.kind {
            Kind::Contended { holder: Some(holder) } => {
                write!(f, "lock {key} is held by {holder}")?;
            }
            Kind::Contended { holder: None } => write!(f, "lock {key} is held by {ANOTHER}")?,
            Kind::NoSlot { count } => {
                write!(f, "too few of the {count} slots of {key} are free")?;
            }
            Kind::Unavailable { needed }
            | Kind::Authentication { needed }
            | Kind::Full { needed } => {
                self.write_no_quorum(f, *needed)?;
            }
            Kind::Revoked => {
                write!(f, "lock {key} was revoked: it is extended no more; release it")?;
            }
            Kind::TooSlow { ttl, elapsed } => write!(
                f,
                "lock {key} was granted after {}, too late for its TTL of {}; released it again",
                Humane(*elapsed),
                Humane(*ttl)
            )?,
            Kind::Foreign { what } => write!(
                f,
                "{key} holds a value that no lock wrote ({what}); use another key or a prefix"
            )?,
            Kind::Lost { reason: Some(reason) } => write!(f, "lock {key} was lost: {reason}")?,
            Kind::Lost { reason: None } => write!(f, "lock {key} was lost")?,
            Kind::Unknown => {
                write!(f, "whether the command was executed is not known: {}", self.unanswered())?;
            }
            Kind::MayHaveCounted => {
                write!(f, "{key} may have been counted down, or may not")?;
                if !self.0.nodes.is_empty() {
                    write!(f, ": {}", self.unanswered())?;
                }
            }
            Kind::Broken => write!(
                f,
                "barrier {key} is broken: a party's wait was over before all had come; begin anew \
                 at another key"
            )?,
            Kind::Closed { why } => f.write_str(why)?,
            Kind::Misuse { what } => f.write_str(what)?,
        }
        self.write_effort(f)
    }
}

impl Inner {
    /// How long fewer than `needed` nodes are out of quarantine; `None` when enough are.
    fn quarantine(&self, needed: usize) -> Option<Duration> {
        let remaining = |node: &NodeReport| match node.outcome {
            Outcome::Quarantined { remaining } => Some(remaining),
            _ => None,
        };
        let mut times: Vec<_> = self.nodes.iter().filter_map(remaining).collect();
        times.sort_unstable();
        let missing = needed.checked_sub(self.nodes.len() - times.len())?;
        times.get(missing.checked_sub(1)?).copied()
    }
}

impl Error {
    fn write_no_quorum(&self, f: &mut fmt::Formatter<'_>, needed: usize) -> fmt::Result {
        let key = self.0.key.as_ref().map(|key| format!(" for {key}")).unwrap_or_default();
        let count = self.0.nodes.len();
        if count > 0 && self.0.nodes.iter().all(|node| node.outcome.is_answer()) {
            // They have, and did not do what was asked.
            let refused = self.0.nodes.iter().filter(|node| node.outcome != Outcome::Granted);
            return write!(f, "no quorum{key}: {}", listed(refused));
        }
        if count == 1 {
            return write!(f, "no answer{key}: {}", self.unanswered());
        }
        let answered = self.0.nodes.iter().filter(|node| node.outcome.is_answer()).count();
        write!(f, "no quorum{key}: {answered} of {count} nodes answered, {needed} needed; ")?;
        f.write_str(&self.unanswered())
    }

    /// The nodes without an answer that counts, each with its reason.
    fn unanswered(&self) -> String {
        listed(self.0.nodes.iter().filter(|node| !node.outcome.is_answer()))
    }

    fn write_effort(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.effort {
            Some(Effort { tries, elapsed }) if tries > 1 => {
                write!(f, "; gave up after {tries} tries in {}", Humane(elapsed))
            }
            // It has waited in a queue.
            Some(Effort { elapsed, .. }) if self.is_contended() && elapsed >= WAITED => {
                write!(f, "; gave up after {}", Humane(elapsed))
            }
            _ => Ok(()),
        }
    }
}

/// Who gave up later than this has waited, also behind a single try.
const WAITED: Duration = Duration::from_millis(1);

/// A key in quotes, whatever its bytes are, and of bounded length.
fn quoted(key: &[u8]) -> Box<str> {
    const LENGTH_MAX: usize = 80;
    let (head, more) = match key.get(..LENGTH_MAX) {
        Some(head) if key.len() > LENGTH_MAX => (head, "…"),
        _ => (key, ""),
    };
    match std::str::from_utf8(head) {
        Ok(text) => format!("{text:?}{more}").into(),
        Err(_) => format!("\"{}\"{more}", head.escape_ascii()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fault, printable};

    fn node(name: &str, outcome: Outcome) -> NodeReport {
        NodeReport { node: name.into(), outcome, rtt: None }
    }

    #[test]
    fn who_gives_up_at_once_has_not_waited() {
        let after = |tries, elapsed| {
            let error = Error::new(Kind::Contended { holder: None }).with_key(b"k");
            error.with_effort(Effort { tries, elapsed }).to_string()
        };
        let (at_once, later) = (Duration::from_micros(300), Duration::from_millis(300));
        assert_eq!(after(1, at_once), "lock \"k\" is held by another client");
        assert_eq!(after(1, later), "lock \"k\" is held by another client; gave up after 300 ms");
    }

    #[test]
    fn contention_names_the_holder_and_the_effort() {
        let holder = Holder {
            owner: Some("pay-api@web-7:812".into()),
            remaining: Duration::from_millis(3_200),
            is_shared: false,
            is_own: false,
            is_revoked: false,
        };
        let error = Error::new(Kind::Contended { holder: Some(holder) })
            .with_key(b"order:42")
            .with_effort(Effort { tries: 5, elapsed: Duration::from_secs(2) });
        let words = "lock \"order:42\" is held by pay-api@web-7:812, 3.2 s left; \
                     gave up after 5 tries in 2.0 s";
        assert_eq!(error.to_string(), words);
        assert_eq!(format!("{error:?}"), words);
        assert!(error.is_contended() && error.is_retryable());
        let error = Error::new(Kind::Contended { holder: None }).with_key(b"k");
        assert_eq!(error.to_string(), "lock \"k\" is held by another client");
    }

    #[test]
    fn no_quorum_names_each_node_that_did_not_answer() {
        let error =
            Error::new(Kind::Unavailable { needed: 3 }).with_key(b"order:42").with_nodes(vec![
                node("a:6379", Outcome::Granted),
                node("b:6379", Outcome::Held),
                node("c:6379", Outcome::Down { fault: Fault::Refused }),
                node("d:6379", Outcome::Silent { after: Duration::from_millis(100) }),
                node("e:6379", Outcome::Refused { error: printable(b"NOAUTH Authentication") }),
            ]);
        assert_eq!(
            error.to_string(),
            "no quorum for \"order:42\": 2 of 5 nodes answered, 3 needed; \
             c:6379 refused the connection, d:6379 was silent for 100 ms, \
             e:6379 said NOAUTH (check the password)"
        );
    }

    #[test]
    fn where_all_nodes_answered_no_quorum_names_those_that_did_not_do_it() {
        let told = |nodes: Vec<NodeReport>| {
            let needed = nodes.len() / 2 + 1;
            let error = Error::new(Kind::Unavailable { needed }).with_key(b"k").with_nodes(nodes);
            error.to_string()
        };
        let gone = || node("a:1", Outcome::Gone);
        assert_eq!(told(vec![gone()]), "no quorum for \"k\": a:1 no longer has it");
        let (granted, held) = (node("b:1", Outcome::Granted), node("c:1", Outcome::Held));
        let three = told(vec![gone(), granted, held]);
        assert!(three.starts_with("no quorum for \"k\": a:1 no longer has it, c:1 "), "{three}");
    }

    #[test]
    fn a_quarantine_says_until_when_a_majority_is_away() {
        let away =
            |secs| node("a:1", Outcome::Quarantined { remaining: Duration::from_secs(secs) });
        let vain = |nodes: Vec<NodeReport>| {
            let needed = nodes.len() / 2 + 1;
            let error = Error::new(Kind::no_quorum(&nodes, needed)).with_nodes(nodes);
            error.retry_after().map(|time| time.as_secs())
        };
        let other = || node("b:1", Outcome::Pending);
        assert_eq!(vain(vec![away(7)]), Some(7));
        assert_eq!(vain(vec![away(9), away(7), other()]), Some(7));
        assert_eq!(vain(vec![away(9), away(7), away(8)]), Some(8));
        assert_eq!(vain(vec![away(9), other(), other()]), None);
        assert_eq!(vain(vec![other(), other(), other()]), None);
        let error = Error::new(Kind::Unavailable { needed: 1 }).with_nodes(vec![away(7)]);
        assert_eq!(
            error.to_string(),
            "no answer: a:1 has lost its keys and gives no vote for 7.0 s"
        );
    }

    #[test]
    fn a_loss_says_why_where_that_is_known() {
        let lost = |reason| Error::new(Kind::Lost { reason }).with_key(b"k");
        let expired = lost(Some(Loss::Expired));
        assert_eq!(expired.to_string(), "lock \"k\" was lost: its time ran out");
        assert_eq!(expired.loss(), Some(Loss::Expired));
        assert_eq!(lost(None).to_string(), "lock \"k\" was lost");
        assert!(lost(None).is_lost() && !lost(None).is_retryable());
    }

    #[test]
    fn a_missing_quorum_is_named_by_what_alone_prevents_it() {
        let denied = || Outcome::Refused { error: printable(b"NOPERM no") };
        let (full, held, granted) = (Outcome::Full, Outcome::Held, Outcome::Granted);
        let cases = [
            (vec![full.clone(), full.clone(), granted.clone()], "Full"),
            (vec![full.clone(), held, granted.clone()], "Unavailable"),
            (vec![denied(), denied(), full.clone()], "Authentication"),
            (vec![denied(), full.clone(), granted], "Unavailable"),
            (vec![full], "Full"),
        ];
        for (outcomes, kind) in cases {
            let nodes: Vec<_> = outcomes.into_iter().map(|outcome| node("n", outcome)).collect();
            let found = format!("{:?}", Kind::no_quorum(&nodes, nodes.len() / 2 + 1));
            assert!(found.starts_with(kind), "{found}, not {kind}: {nodes:?}");
        }
        let nodes = vec![node("a:6379", Outcome::Full)];
        let error = Error::new(Kind::no_quorum(&nodes, 1)).with_key(b"k").with_nodes(nodes);
        assert!(error.is_full() && error.is_retryable() && !error.is_unavailable());
        assert_eq!(
            error.to_string(),
            "no answer for \"k\": a:6379 has too many commands waiting (see `link_entries_max`)"
        );
    }

    #[test]
    fn a_foreign_value_is_a_misuse() {
        let error = Error::new(Kind::Foreign { what: "a hash, without expiry".into() })
            .with_key(b"order:42");
        assert_eq!(
            error.to_string(),
            "\"order:42\" holds a value that no lock wrote (a hash, without expiry); \
             use another key or a prefix"
        );
        assert!(error.is_misuse() && error.is_foreign() && !error.is_retryable());
        assert!(!Error::misuse("a bad option").is_foreign());
    }

    #[test]
    fn a_broken_barrier_and_a_count_in_doubt_say_what_is_known() {
        let error = Error::new(Kind::Broken).with_key(b"rebuild/7");
        assert_eq!(
            error.to_string(),
            "barrier \"rebuild/7\" is broken: a party's wait was over before all had come; \
             begin anew at another key"
        );
        assert!(error.is_broken() && !error.is_retryable() && !error.is_misuse());
        assert_eq!(error.kind().as_str(), "broken");
        let error = Error::new(Kind::MayHaveCounted).with_key(b"l");
        let words = "\"l\" may have been counted down, or may not";
        assert_eq!(error.to_string(), words);
        let silent = Outcome::Silent { after: Duration::from_millis(100) };
        let error = error.with_nodes(vec![node("a:6379", silent)]);
        assert_eq!(error.to_string(), format!("{words}: a:6379 was silent for 100 ms"));
        assert!(error.is_unknown() && !error.is_retryable());
    }

    #[test]
    fn keys_of_any_bytes_are_printable_and_short() {
        assert_eq!(&*quoted(b"\0\xff"), "\"\\x00\\xff\"");
        assert_eq!(&*quoted("🐉\r\n".as_bytes()), "\"🐉\\r\\n\"");
        assert!(quoted(&[b'k'; 4_096]).chars().count() < 90);
    }
}
