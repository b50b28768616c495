//! Faults as rules: a condition and a reaction.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::store::{command_names, script_names};

/// At which point of a command's way a rule looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Point {
    Connecting,
    Before,
    After,
}

/// When a node misbehaves: the condition of a [`Rule`].
///
/// Names are those of commands (`SET`, in any case) or of the locks' own scripts, whether they come
/// whole or by digest: `release`, `extend`, `acquire` (under
/// [`Durability::Volatile`](crate::Durability::Volatile); otherwise a lock is acquired by `SET`),
/// `initialise`. A name that a node does not know is refused at once, for a rule about it would
/// never hold.
///
/// ```
/// use quorlock::testing::{Nodes, Reaction, When};
///
/// let nodes = Nodes::new(5);
/// // The node has set the key, and no client hears of it; once.
/// nodes[0].add(When::after("SET").nth(1).then(Reaction::Drop));
/// // One in a hundred commands of any kind takes a second.
/// let slow = When::before_any().chance(10, 42);
/// nodes[1].add(slow.then(Reaction::Delay(std::time::Duration::from_secs(1))));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a condition does nothing until it has a reaction, and is added to a node"]
pub struct When {
    point: Point,
    name: Option<String>,
    key: Option<Vec<u8>>,
    first: u64,
    count: u64,
    /// Out of a thousand, and the state of the generator that draws.
    chance: Option<(u32, u64)>,
}

impl When {
    #[track_caller]
    fn at(point: Point, name: Option<&str>) -> Self {
        let name = name.map(known_name);
        Self { point, name, key: None, first: 1, count: u64::MAX, chance: None }
    }

    /// Before a command of this name is executed.
    ///
    /// # Panics
    ///
    /// With a name of no command and no script.
    #[track_caller]
    pub fn before(name: &str) -> Self {
        Self::at(Point::Before, Some(name))
    }

    /// Before any command is executed, those of the handshake included.
    pub fn before_any() -> Self {
        Self::at(Point::Before, None)
    }

    /// When a command of this name has been executed, and before its reply is sent.
    ///
    /// # Panics
    ///
    /// With a name of no command and no script.
    #[track_caller]
    pub fn after(name: &str) -> Self {
        Self::at(Point::After, Some(name))
    }

    /// When any command has been executed, and before its reply is sent.
    pub fn after_any() -> Self {
        Self::at(Point::After, None)
    }

    /// When a client connects.
    pub fn connecting() -> Self {
        Self::at(Point::Connecting, None)
    }

    /// Only for commands that have this word among their arguments: a key, with its prefix.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Only the time of this number, from 1, that all else fits.
    pub fn nth(self, number: u64) -> Self {
        self.from(number).times(1)
    }

    /// From the time of this number on, from 1, that all else fits.
    pub fn from(mut self, number: u64) -> Self {
        self.first = number;
        self
    }

    /// At most so often.
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// With a probability, in 1/1,000. The same seed draws the same times.
    pub fn chance(mut self, permille: u32, seed: u64) -> Self {
        self.chance = Some((permille, seed));
        self
    }

    /// What the node does then.
    ///
    /// # Panics
    ///
    /// Where that can never come about: a client that connects has named no key, and is answered
    /// nothing.
    #[track_caller]
    pub fn then(self, reaction: Reaction) -> Rule {
        let connects = self.point == Point::Connecting;
        assert!(!connects || self.key.is_none(), "who connects has named no key; leave it out");
        assert!(
            !connects || !matches!(reaction, Reaction::Answer(_)),
            "who connects is answered nothing; say `Drop` to refuse him, or take `When::before`"
        );
        Rule { when: self, reaction, fitted: 0 }
    }
}

/// The name as nodes have it; panics where they have none such.
#[track_caller]
pub(super) fn known_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if !script_names().any(|known| known == lower) {
        return known_command(name);
    }
    lower
}

/// The name of a command, in small letters; what is none is a mistake of the test's.
#[track_caller]
pub(super) fn known_command(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if !command_names().any(|known| known == lower) {
        let mut commands: Vec<String> = command_names().map(str::to_ascii_uppercase).collect();
        commands.sort_unstable();
        let mut scripts: Vec<&str> = script_names().collect();
        scripts.dedup(); // one stands behind `standing.lua` as well
        panic!(
            "{name:?} is no command or script of an in-process node; its commands are {}, its \
             scripts {}",
            commands.join(", "),
            scripts.join(", ")
        );
    }
    lower
}

/// What a node does when a [`When`] holds.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaction {
    /// The network takes so long, counted from when the command came or was answered. Before: the
    /// command is executed so late. After: its reply arrives so late, and the node has gone on
    /// meanwhile. On connecting: it takes so long until there is a connection. What stands behind
    /// it on the same connection waits as well, and what came together is late together.
    Delay(Duration),
    /// The network loses what is under way, and all that comes behind it in the same direction on
    /// the same connection, for a stream has no gaps. Before: the command, which is not executed.
    /// After: its reply. On connecting: the connection is refused (over TCP: ended at once).
    Drop,
    /// The node [hangs](super::Node::hang) until it is resumed. A command that it has executed is
    /// answered then, one that it has not is executed then.
    Hang,
    /// The connection ends, after so many bytes of the reply if the command has been executed.
    Cut {
        /// How many bytes are sent first.
        after_bytes: usize,
    },
    /// These bytes are sent in the place of the reply; before, the command is not executed.
    Answer(Vec<u8>),
    /// The process ends and another one starts, as with [`Node::restart`](super::Node::restart).
    Restart {
        /// Whether it still has its keys.
        keeps_data: bool,
    },
    /// The node's clock is set by so many milliseconds, ahead or back: keys end sooner, or later.
    StepClock {
        /// Above zero, keys end sooner.
        millis: i64,
    },
    /// The node's clock runs too fast from then on, or too slow.
    DriftClock {
        /// By how many millionths; above zero, keys end sooner.
        ppm: i32,
    },
}

impl fmt::Debug for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(delay) => write!(f, "Delay({delay:?})"),
            Self::Drop => f.write_str("Drop"),
            Self::Hang => f.write_str("Hang"),
            Self::Cut { after_bytes } => write!(f, "Cut after {after_bytes} bytes"),
            Self::Answer(bytes) => write!(f, "Answer({:?})", String::from_utf8_lossy(bytes)),
            Self::Restart { keeps_data } => write!(f, "Restart, keeps data: {keeps_data}"),
            Self::StepClock { millis } => write!(f, "StepClock by {millis} ms"),
            Self::DriftClock { ppm } => write!(f, "DriftClock by {ppm} ppm"),
        }
    }
}

/// A fault: made by [`When::then`], added to a node by [`Node::add`](super::Node::add).
#[derive(Clone, Debug)]
#[must_use = "a rule does nothing until it is added to a node"]
pub struct Rule {
    when: When,
    reaction: Reaction,
    /// How often its condition held, but for the number.
    fitted: u64,
}

impl Rule {
    /// What is to be done at this point of a command's way; `names` are all that it goes by.
    pub(super) fn judge(
        &mut self,
        point: Point,
        names: &[&str],
        words: &[Bytes],
    ) -> Option<Reaction> {
        let When { first, count, .. } = self.when;
        let is_named = self.when.name.as_deref().is_none_or(|name| names.contains(&name));
        let key = self.when.key.as_ref();
        let has_key = key.is_none_or(|key| words.iter().skip(1).any(|word| word[..] == key[..]));
        if self.when.point != point || !is_named || !has_key {
            return None;
        }
        if let Some((permille, state)) = &mut self.when.chance {
            if draw(state) % 1_000 >= u64::from(*permille) {
                return None;
            }
        }
        self.fitted += 1;
        let is_due = self.fitted >= first && self.fitted - first < count;
        is_due.then(|| self.reaction.clone())
    }
}

/// The next number of a sequence that its seed repeats: SplitMix64, of G. Steele, D. Lea and C.
/// Flood (2014), small, fast, and good enough to choose faults by.
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_known() {
        for (name, known) in [("set", true), ("EvalSha", true), ("release", true), ("SETT", false)]
        {
            let made = std::panic::catch_unwind(|| When::before(name));
            let Err(panic) = made else {
                assert!(known, "{name}");
                continue;
            };
            let told = panic.downcast_ref::<String>().unwrap();
            assert!(!known && told.starts_with("\"SETT\" is no command or script"), "{told}");
            assert!(
                told.contains(" AUTH, CLIENT, ") && told.ends_with("name_set, revoke, may_delifeq"),
                "{told}"
            );
        }
    }

    fn times(when: When, of: usize) -> Vec<usize> {
        let mut rule = when.then(Reaction::Drop);
        let words = ["SET".into(), "k".into()];
        let fires = |_: &usize| rule.judge(Point::Before, &["set"], &words).is_some();
        (1..=of).filter(fires).collect()
    }

    #[test]
    fn each_condition_counts() {
        assert_eq!(times(When::before("set"), 3), [1, 2, 3]);
        assert_eq!(times(When::before_any().nth(2), 3), [2]);
        assert_eq!(times(When::before("SET").from(2).times(2), 5), [2, 3]);
        assert_eq!(times(When::before("SET").key("k").nth(1), 3), [1]);
        for none in [When::before("GET"), When::after("SET"), When::before("SET").key("SET")] {
            assert_eq!(times(none, 3), [0; 0]);
        }
        let some = times(When::before_any().chance(500, 7), 1_000);
        assert!((400..600).contains(&some.len()), "{}", some.len());
        assert_eq!(some, times(When::before_any().chance(500, 7), 1_000));
        assert_eq!(times(When::before_any().chance(0, 7), 100), [0; 0]);
    }
}
