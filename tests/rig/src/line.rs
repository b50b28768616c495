//! What client processes and the supervisor tell each other, one line each.
//!
//! A client writes on its standard output:
//!
//! ```text
//! + HOLD KEY AT UNTIL    a lock was obtained before AT, and is claimed to be held until UNTIL
//! @ HOLD KEY AT UNTIL    the same of a read lock
//! % HOLD KEY SLOT,… AT UNTIL
//!                        the same of slots of the key, by their numbers
//! = HOLD AT UNTIL        it was still held after AT, and is claimed to be held until UNTIL
//! _ HOLD DELAY           others are to stay out for DELAY nanoseconds more if it ends by itself
//! - HOLD AT HOW          it is being given up, which began after AT; `expired`: it has ended by
//!                        itself
//! > HOLD SINCE AT UNTIL NODES SOURCE COPIES KEY TOKEN
//!                        at AT its token goes to another process; held since SINCE by NODES, and
//!                        claimed to be held until UNTIL
//! < DELIVERY HOLD AT WAITED TRIES
//!                        the delivered token was adopted as HOLD, after so many nanoseconds
//! x DELIVERY ASKED AT STALLED WHY
//!                        the delivered token, which came at ASKED, was not adopted; meanwhile the
//!                        process was not let run for STALLED nanoseconds
//! & BEGAN ENDED FROM AT WAITED…
//!                        a program ran from BEGAN to ENDED, and was not let run for WAITED
//!                        nanoseconds between FROM and AT, for each time that this was seen
//! # NAME TOLD BY-NODES LATE STALLED WORST MARGIN…
//!                        loss signals: how many came, how many too late, and how long before the
//!                        end the others came
//! . WHAT                 something happened that is worth counting: a cycle's end, a failure
//! , TIMES WHAT           the same, so many times
//! ^ VALUE WHAT           a value of which the greatest is kept
//! ( AT PARTY LATCH       a party is about to arrive at a latch
//! ) BEGAN ENDED MISSING PARTY LATCH
//!                        a call was told how many parties miss at a latch; `-` for a call by which
//!                        none arrived
//! / AT OVER-BY KEY       the holder of the key's lock at AT was asked to let go of it, and has it
//!                        until OVER-BY at the latest
//! ~ TOKEN                the key with this value may be left behind, as the client asked
//! ! WHY                  the library broke its word, by itself
//! ```
//!
//! The supervisor writes on a client's standard input, whose end is the client's end:
//!
//! ```text
//! adopt DELIVERY KEY TOKEN
//! ```
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`. A foreign client, in whatever language, writes the
//! same lines. A line that a killed client did not finish is no line.

use std::fmt;
use std::str::Split;

use crate::latches::LatchLook;

/// What a token that changes hands belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// A guard that was forgotten.
    Forgotten,
    /// A locker that was shut down and left its locks.
    Left,
    /// A guard that is still alive.
    Living,
}

/// To which clients a token goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// To one other client.
    One,
    /// To two other clients at once.
    Two,
    /// To one other client, and again a little later.
    Again,
}

/// A token that a client hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    pub(crate) hold: u64,
    /// When the lock was obtained.
    pub(crate) since: u64,
    pub(crate) at: u64,
    /// When the lock's time is over, as its guard claimed at that time.
    pub(crate) until: u64,
    /// The nodes that granted the lock, as a mask.
    pub(crate) nodes: u32,
    pub(crate) source: Source,
    pub(crate) copies: Copies,
    pub(crate) key: String,
    pub(crate) token: String,
}

/// Loss signals of one kind, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Which signal of which actor.
    pub(crate) name: String,
    /// How many came.
    pub(crate) told: u64,
    /// How many of these came long before the end, because nodes had lost the key.
    pub(crate) by_nodes: u64,
    /// How many came at the end or after it, though the process was let run.
    pub(crate) late: u64,
    /// How many came at the end or after it by a process that was not let run.
    pub(crate) stalled: u64,
    /// The latest of the late, in microseconds after the end.
    pub(crate) worst: u64,
    /// How long before the end the others came, in microseconds.
    pub(crate) margins: Vec<u64>,
}

/// What was seen of a program between two looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) from: u64,
    pub(crate) at: u64,
    /// For how long it was not let run, in nanoseconds.
    pub(crate) waited: u64,
}

/// The life of a program that a client has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) began: u64,
    pub(crate) ended: u64,
    /// The looks that found that it was not let run.
    pub(crate) looks: Vec<Look>,
}

/// What a hold has of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its lock.
    Whole,
    /// A read lock of it.
    Read,
    /// Slots of it.
    Slots(Vec<u16>),
}

/// One line of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Granted {
        hold: u64,
        key: String,
        part: Part,
        at: u64,
        until: u64,
    },
    Held {
        hold: u64,
        at: u64,
        until: u64,
    },
    /// Of a lock with a lock-delay.
    Delayed {
        hold: u64,
        delay: u64,
    },
    Ended {
        hold: u64,
        at: u64,
        how: String,
    },
    Handed(Handed),
    Adopted {
        delivery: u64,
        hold: u64,
        at: u64,
        waited: u64,
        tries: u64,
    },
    /// `earlier` are the answers to the tries before the last: `word@when,word@when`, or `none`.
    NotAdopted {
        delivery: u64,
        asked: u64,
        at: u64,
        stalled: u64,
        why: String,
        earlier: String,
    },
    Program(Program),
    Losses(Losses),
    Arriving {
        latch: String,
        party: String,
        at: u64,
    },
    Latch(LatchLook),
    Revoked {
        key: String,
        at: u64,
        over_by: u64,
    },
    Count(String),
    Many(u64, String),
    Most(u64, String),
    Spared(String),
    Broken(String),
}

impl Line {
    /// Reads one line without its end.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mark, rest) = text.split_at_checked(2)?;
        let mut words = Words(rest.split(' '));
        Some(match mark {
            "+ " | "@ " | "% " => {
                let (hold, key) = (words.number()?, words.word()?);
                let part = match mark {
                    "+ " => Part::Whole,
                    "@ " => Part::Read,
                    _ => Part::Slots(words.numbers()?),
                };
                Self::Granted { hold, key, part, at: words.number()?, until: words.number()? }
            }
            "= " => {
                Self::Held { hold: words.number()?, at: words.number()?, until: words.number()? }
            }
            "- " => Self::Ended { hold: words.number()?, at: words.number()?, how: words.word()? },
            "> " => Self::Handed(Handed::parse(&mut words)?),
            "< " => Self::Adopted {
                delivery: words.number()?,
                hold: words.number()?,
                at: words.number()?,
                waited: words.number()?,
                tries: words.number()?,
            },
            "x " => Self::NotAdopted {
                delivery: words.number()?,
                asked: words.number()?,
                at: words.number()?,
                stalled: words.number()?,
                why: words.word()?,
                earlier: words.word()?,
            },
            "& " => Self::Program(Program::parse(&mut words)?),
            "# " => Self::Losses(Losses::parse(&mut words)?),
            "( " => {
                Self::Arriving { at: words.number()?, party: words.word()?, latch: words.word()? }
            }
            ") " => Self::Latch(words.latch()?),
            "_ " => Self::Delayed { hold: words.number()?, delay: words.number()? },
            "/ " => {
                Self::Revoked { at: words.number()?, over_by: words.number()?, key: words.word()? }
            }
            ". " => Self::Count(rest.to_owned()),
            ", " => Self::Many(words.number()?, words.0.collect::<Vec<_>>().join(" ")),
            "^ " => Self::Most(words.number()?, words.0.collect::<Vec<_>>().join(" ")),
            "~ " => Self::Spared(rest.to_owned()),
            "! " => Self::Broken(rest.to_owned()),
            _ => return None,
        })
    }
}

/// The words of a line, one after the other.
struct Words<'a>(Split<'a, char>);

impl Words<'_> {
    fn word(&mut self) -> Option<String> {
        self.0.next().filter(|word| !word.is_empty()).map(String::from)
    }

    fn number(&mut self) -> Option<u64> {
        self.0.next()?.parse().ok()
    }

    fn latch(&mut self) -> Option<LatchLook> {
        Some(LatchLook {
            began: self.number()?,
            ended: self.number()?,
            missing: usize::try_from(self.number()?).ok()?,
            party: Some(self.word()?).filter(|party| party != "-"),
            latch: self.word()?,
        })
    }

    /// One or more, with commas between them.
    fn numbers(&mut self) -> Option<Vec<u16>> {
        self.0.next()?.split(',').map(|number| number.parse().ok()).collect()
    }
}

impl Handed {
    fn parse(words: &mut Words<'_>) -> Option<Self> {
        Some(Self {
            hold: words.number()?,
            since: words.number()?,
            at: words.number()?,
            until: words.number()?,
            nodes: u32::try_from(words.number()?).ok()?,
            source: Source::parse(&words.word()?)?,
            copies: Copies::parse(&words.word()?)?,
            key: words.word()?,
            token: words.word()?,
        })
    }
}

impl Program {
    fn parse(words: &mut Words<'_>) -> Option<Self> {
        let (began, ended) = (words.number()?, words.number()?);
        let numbers = words.0.by_ref().map(|word| word.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let (looks, rest) = numbers.as_chunks();
        let look = |[from, at, waited]: &[u64; 3]| Look { from: *from, at: *at, waited: *waited };
        let looks = looks.iter().map(look).collect();
        rest.is_empty().then_some(Self { began, ended, looks })
    }
}

impl Losses {
    fn parse(words: &mut Words<'_>) -> Option<Self> {
        let name = words.word()?;
        let [told, by_nodes, late, stalled, worst] = [(); 5].map(|()| words.number());
        let margins = words.0.by_ref().filter(|word| !word.is_empty()).map(|word| word.parse());
        Some(Self {
            name,
            told: told?,
            by_nodes: by_nodes?,
            late: late?,
            stalled: stalled?,
            worst: worst?,
            margins: margins.collect::<Result<_, _>>().ok()?,
        })
    }
}

impl Source {
    pub(crate) const ALL: [Self; 3] = [Self::Forgotten, Self::Left, Self::Living];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forgotten => "forgotten",
            Self::Left => "left",
            Self::Living => "living",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl Copies {
    pub(crate) const ALL: [Self; 3] = [Self::One, Self::Two, Self::Again];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Again => "again",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|copies| copies.name() == name)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { hold, key, part, at, until } => match part {
                Part::Whole => write!(f, "+ {hold} {key} {at} {until}"),
                Part::Read => write!(f, "@ {hold} {key} {at} {until}"),
                Part::Slots(numbers) => {
                    let numbers: Vec<_> = numbers.iter().map(u16::to_string).collect();
                    write!(f, "% {hold} {key} {} {at} {until}", numbers.join(","))
                }
            },
            Self::Held { hold, at, until } => write!(f, "= {hold} {at} {until}"),
            Self::Ended { hold, at, how } => write!(f, "- {hold} {at} {how}"),
            Self::Handed(Handed { hold, since, at, until, nodes, source, copies, key, token }) => {
                let (source, copies) = (source.name(), copies.name());
                write!(f, "> {hold} {since} {at} {until} {nodes} {source} {copies} {key} {token}")
            }
            Self::Adopted { delivery, hold, at, waited, tries } => {
                write!(f, "< {delivery} {hold} {at} {waited} {tries}")
            }
            Self::NotAdopted { delivery, asked, at, stalled, why, earlier } => {
                write!(f, "x {delivery} {asked} {at} {stalled} {why} {earlier}")
            }
            Self::Program(Program { began, ended, looks }) => {
                write!(f, "& {began} {ended}")?;
                looks
                    .iter()
                    .try_for_each(|Look { from, at, waited }| write!(f, " {from} {at} {waited}"))
            }
            Self::Losses(Losses { name, told, by_nodes, late, stalled, worst, margins }) => {
                write!(f, "# {name} {told} {by_nodes} {late} {stalled} {worst}")?;
                margins.iter().try_for_each(|margin| write!(f, " {margin}"))
            }
            Self::Arriving { latch, party, at } => write!(f, "( {at} {party} {latch}"),
            Self::Latch(LatchLook { latch, began, ended, missing, party }) => {
                let party = party.as_deref().unwrap_or("-");
                write!(f, ") {began} {ended} {missing} {party} {latch}")
            }
            Self::Delayed { hold, delay } => write!(f, "_ {hold} {delay}"),
            Self::Revoked { key, at, over_by } => write!(f, "/ {at} {over_by} {key}"),
            Self::Count(what) => write!(f, ". {what}"),
            Self::Many(times, what) => write!(f, ", {times} {what}"),
            Self::Most(value, what) => write!(f, "^ {value} {what}"),
            Self::Spared(token) => write!(f, "~ {token}"),
            Self::Broken(why) => write!(f, "! {why}"),
        }
    }
}

/// What the supervisor asks of a client: to adopt the lock of this key by this token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) delivery: u64,
    pub(crate) key: String,
    pub(crate) token: String,
}

impl Order {
    /// Reads one line without its end.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = Words(text.strip_prefix("adopt ")?.split(' '));
        Some(Self { delivery: words.number()?, key: words.word()?, token: words.word()? })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "adopt {} {} {}", self.delivery, self.key, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_comes_back_as_it_was() {
        let handed = Handed {
            hold: 3,
            since: 4,
            at: 5,
            until: 9,
            nodes: 0b10110,
            source: Source::Living,
            copies: Copies::Again,
            key: "h1".into(),
            token: "abc@name@host:7".into(),
        };
        let losses = Losses {
            name: "lost()".into(),
            told: 5,
            late: 2,
            margins: vec![9, 8],
            ..Losses::default()
        };
        let (one, two) = (Part::Slots(vec![1]), Part::Slots(vec![0, 12]));
        let lines = [
            Line::Granted { hold: 1, key: "k0".into(), part: Part::Whole, at: 5, until: 9 },
            Line::Granted { hold: 2, key: "k0".into(), part: Part::Read, at: 5, until: 9 },
            Line::Granted { hold: 3, key: "k0".into(), part: one, at: 5, until: 9 },
            Line::Granted { hold: 4, key: "k0".into(), part: two, at: 5, until: 9 },
            Line::Held { hold: 1, at: 6, until: 10 },
            Line::Ended { hold: 1, at: 7, how: "released".into() },
            Line::Handed(handed),
            Line::Adopted { delivery: 1, hold: 2, at: 3, waited: 4, tries: 5 },
            Line::NotAdopted {
                delivery: 1,
                asked: 2,
                at: 3,
                stalled: 4,
                why: "lost".into(),
                earlier: "contended@7".into(),
            },
            Line::Losses(losses),
            Line::Program(Program { began: 1, ended: 2, looks: vec![] }),
            Line::Program(Program {
                began: 1,
                ended: 9,
                looks: vec![Look { from: 2, at: 3, waited: 4 }, Look { from: 5, at: 6, waited: 7 }],
            }),
            Line::Losses(Losses { name: "token".into(), ..Losses::default() }),
            Line::Count("busy".into()),
            Line::Many(7, "granted".into()),
            Line::Most(7, "held at once".into()),
            Line::Spared("abc@host".into()),
            Line::Broken("a guard came late by 3 ms".into()),
        ];
        for line in lines {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
        let order = Order { delivery: 4, key: "h1".into(), token: "abc@host".into() };
        assert_eq!(Order::parse(&order.to_string()), Some(order));
    }

    #[test]
    fn lines_about_latches_and_revoked_locks_come_back_as_they_were() {
        let look = |missing, party: Option<&str>| {
            let (latch, party) = ("l1".into(), party.map(String::from));
            Line::Latch(LatchLook { latch, began: 1, ended: 2, missing, party })
        };
        let lines = [
            Line::Arriving { latch: "l1".into(), party: "p".into(), at: 5 },
            look(3, Some("p")),
            look(0, None),
            Line::Revoked { key: "k0".into(), at: 5, over_by: 9 },
            Line::Delayed { hold: 7, delay: 300 },
        ];
        for line in lines {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
    }

    #[test]
    fn half_a_line_is_none() {
        let halves = [
            "",
            "+",
            "+ 1",
            "+ 1 k0",
            "+ 1 k0 5",
            "% 1 k0 5 9",
            "% 1 k0 0, 5 9",
            "% 1 k0  5 9",
            "= 1 6",
            "- 1 7",
            "hello",
            "= x 1 2",
            "> 1 2 3 4 5 living one k",
            "> 1 2 3 4 5 dead one k t",
            "< 1 2 3 4",
            "x 1 2 3 4 ",
            "# name 1 2",
            "& 1",
            "& 1 9 2 3",
            "( 1 p",
            ") 1 2 3 -",
            "/ 1 2",
        ];
        for text in halves {
            assert_eq!(Line::parse(text), None, "{text}");
        }
        for text in ["adopt", "adopt 1 k", "adopt 1 k ", "release 1 k t"] {
            assert_eq!(Order::parse(text), None, "{text}");
        }
    }
}
