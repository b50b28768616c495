//! Every script on every state of its keys, with every argument at its edges, and with whatever a
//! server can refuse it: one table, for the nodes beside real servers (`tests/suite/differential`)
//! and for the functions of the nodes beside the Lua itself (`src/testing/store/tests`).
//!
//! Another script is another row of [`SCRIPTS`], and its files are rows of [`FILES`].
//!
//! In the states commands stand between bars, `~` is a blank, `''` an empty word, and `+n` the time
//! that is so many milliseconds away, by the clock of the server that is asked. Three words are no
//! commands: `PASS n` lets so many microseconds pass, `FROZEN` leaves the state to nodes
//! whose time stands still, and `CROWD n` puts so many into the queue `z` that have no beat.

#![allow(dead_code, reason = "either user of the table leaves out a part of it")]

#[path = "scripts_fenced.rs"]
mod fenced;
#[path = "scripts_guarded.rs"]
pub(crate) mod guarded;
#[path = "scripts_hindrance.rs"]
mod hindrance;
#[path = "scripts_name_set.rs"]
mod name_set;
#[path = "scripts_queued.rs"]
mod queued;
#[path = "scripts_reading.rs"]
mod reading;
#[path = "scripts_revoke.rs"]
mod revoke;
#[path = "scripts_several.rs"]
mod several;
#[path = "scripts_slotted.rs"]
mod slotted;
#[path = "scripts_standing.rs"]
mod standing;
#[path = "scripts_ticketed.rs"]
mod ticketed;

use guarded::all_files;
use hindrance::KEYS;
pub(crate) use hindrance::{Hindrance, users};
use queued::{ask, ask_where_it_votes, leave};
use several::SECOND;
use standing::{EPOCH, QUARANTINE, SERVICE, acquire, initialise};

/// A command's words.
pub(crate) type Words = Vec<&'static str>;

/// The files with Lua in them, below the `script` of `src/lock`, `src/lease` and `src/link`.
pub(crate) const FILES: [(&str, &str); 23] = [
    ("acquire.lua", include_str!("../../../src/lock/script/acquire.lua")),
    ("acquire_all.lua", include_str!("../../../src/lock/script/acquire_all.lua")),
    ("adopt.lua", include_str!("../../../src/lock/script/adopt.lua")),
    ("downgrade.lua", include_str!("../../../src/lock/script/downgrade.lua")),
    ("extend.lua", include_str!("../../../src/lock/script/extend.lua")),
    ("extend_all.lua", include_str!("../../../src/lock/script/extend_all.lua")),
    ("fence.lua", include_str!("../../../src/lease/script/fence.lua")),
    ("hand_on.lua", include_str!("../../../src/lock/script/hand_on.lua")),
    ("initialise.lua", include_str!("../../../src/lease/script/initialise.lua")),
    ("may_delifeq.lua", include_str!("../../../src/link/script/may_delifeq.lua")),
    ("name_set.lua", include_str!("../../../src/lease/script/name_set.lua")),
    ("read.lua", include_str!("../../../src/lock/script/read.lua")),
    ("read_extend.lua", include_str!("../../../src/lock/script/read_extend.lua")),
    ("read_leave.lua", include_str!("../../../src/lock/script/read_leave.lua")),
    ("release.lua", include_str!("../../../src/lock/script/release.lua")),
    ("release_all.lua", include_str!("../../../src/lock/script/release_all.lua")),
    ("revoke.lua", include_str!("../../../src/lease/script/revoke.lua")),
    ("slot_ask.lua", include_str!("../../../src/lock/script/slot_ask.lua")),
    ("slot_leave.lua", include_str!("../../../src/lock/script/slot_leave.lua")),
    ("standing.lua", include_str!("../../../src/lease/script/standing.lua")),
    ("ticket_ask.lua", include_str!("../../../src/lock/script/ticket_ask.lua")),
    ("turn_ask.lua", include_str!("../../../src/lock/script/turn_ask.lua")),
    ("turn_leave.lua", include_str!("../../../src/lock/script/turn_leave.lua")),
];

/// A script: what it is made of, and what it is run on.
pub(crate) struct Script {
    /// As nodes name it.
    pub(crate) name: &'static str,
    /// The files that make up its text, in their order.
    pub(crate) files: &'static [&'static str],
    grids: &'static [Grid],
    words: fn() -> Calls,
}

/// Lists of states, of each list one in every combination, and what is said there.
struct Grid {
    lists: &'static [&'static [State]],
    said: Said,
}

/// What is said in the states of a grid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// All words, and the usual ones behind every hindrance.
    All,
    /// The usual words, also behind every hindrance.
    Usual,
    /// The usual words, and nothing hinders them.
    Plain,
}

/// A grid on which all is said.
const fn all(lists: &'static [&'static [State]]) -> Grid {
    Grid { lists, said: Said::All }
}

const fn usual(lists: &'static [&'static [State]]) -> Grid {
    Grid { lists, said: Said::Usual }
}

const fn plain(lists: &'static [&'static [State]]) -> Grid {
    Grid { lists, said: Said::Plain }
}

/// Keys and arguments, as `EVAL` takes them.
struct Calls {
    /// As the library says them: also with what a server can refuse.
    usual: Vec<Words>,
    /// With each argument at its edges.
    edges: Vec<Words>,
}

/// A name, and the commands that lead there.
type State = (&'static str, &'static str);

pub(crate) const SCRIPTS: [Script; 29] = [
    Script {
        name: "acquire",
        files: &["standing.lua", "acquire.lua"],
        // Only a node in service looks at the lock.
        grids: &[all(&[EPOCH, QUARANTINE]), all(&[SERVICE, LOCK])],
        words: acquire,
    },
    Script { name: "adopt", files: &["adopt.lua"], grids: &[all(&[LOCK])], words: adopt },
    Script {
        name: "adopt",
        files: &["standing.lua", "adopt.lua"],
        grids: &[all(&[SERVICE, LOCK])],
        words: adopt_where_it_votes,
    },
    Script {
        name: "downgrade",
        files: &["hand_on.lua", "downgrade.lua"],
        grids: reading::DOWNGRADED,
        words: reading::downgrade,
    },
    Script { name: "extend", files: &["extend.lua"], grids: &[all(&[LOCK])], words: extend },
    Script {
        name: "initialise",
        files: &["initialise.lua"],
        grids: &[all(&[EPOCH, QUARANTINE])],
        words: initialise,
    },
    Script {
        name: "name_set",
        files: &["name_set.lua"],
        grids: name_set::ASKED,
        words: name_set::ask,
    },
    Script {
        name: "name_set",
        files: &["standing.lua", "name_set.lua"],
        grids: name_set::ASKED_WHERE_IT_VOTES,
        words: name_set::ask_where_it_votes,
    },
    Script { name: "release", files: &["release.lua"], grids: &[all(&[LOCK])], words: release },
    Script { name: "revoke", files: &["revoke.lua"], grids: revoke::ASKED, words: revoke::ask },
    Script {
        name: "acquire_all",
        files: &["acquire_all.lua"],
        grids: &[all(&[LOCK, SECOND])],
        words: several::acquire_all,
    },
    Script {
        name: "acquire_all",
        files: &["standing.lua", "acquire_all.lua"],
        grids: &[all(&[SERVICE, LOCK, SECOND])],
        words: several::acquire_all_where_it_votes,
    },
    Script {
        name: "extend_all",
        files: &["extend_all.lua"],
        grids: &[all(&[LOCK, SECOND])],
        words: several::extend_all,
    },
    Script {
        name: "release_all",
        files: &["release_all.lua"],
        grids: &[all(&[LOCK, SECOND])],
        words: several::release_all,
    },
    Script { name: "fence", files: &["fence.lua"], grids: fenced::RISES, words: fenced::rises },
    Script {
        name: "fence",
        files: &["standing.lua", "fence.lua"],
        grids: fenced::RISES_WHERE_IT_VOTES,
        words: fenced::rises_where_it_votes,
    },
    Script {
        name: "ticket_ask",
        files: &["ticket_ask.lua"],
        grids: ticketed::ASKED,
        words: ticketed::ask,
    },
    Script {
        name: "ticket_ask",
        files: &["standing.lua", "ticket_ask.lua"],
        grids: ticketed::ASKED_WHERE_IT_VOTES,
        words: ticketed::ask_where_it_votes,
    },
    Script { name: "turn_ask", files: &["turn_ask.lua"], grids: queued::ASKED, words: ask },
    Script {
        name: "turn_ask",
        files: &["standing.lua", "turn_ask.lua"],
        grids: queued::ASKED_WHERE_IT_VOTES,
        words: ask_where_it_votes,
    },
    Script {
        name: "turn_leave",
        files: &["hand_on.lua", "turn_leave.lua"],
        grids: queued::LEFT,
        words: leave,
    },
    Script {
        name: "read",
        files: &["hand_on.lua", "read.lua"],
        grids: reading::READ,
        words: reading::read,
    },
    Script {
        name: "read",
        files: &["standing.lua", "hand_on.lua", "read.lua"],
        grids: reading::READ_WHERE_IT_VOTES,
        words: reading::read_where_it_votes,
    },
    Script {
        name: "read_extend",
        files: &["read_extend.lua"],
        grids: reading::EXTENDED,
        words: reading::extend,
    },
    Script {
        name: "read_leave",
        files: &["hand_on.lua", "read_leave.lua"],
        grids: reading::LEFT,
        words: reading::leave,
    },
    Script {
        name: "slot_ask",
        files: &["hand_on.lua", "slot_ask.lua"],
        grids: slotted::ASKED,
        words: slotted::ask,
    },
    Script {
        name: "slot_ask",
        files: &["standing.lua", "hand_on.lua", "slot_ask.lua"],
        grids: slotted::ASKED_WHERE_IT_VOTES,
        words: slotted::ask_where_it_votes,
    },
    Script {
        name: "slot_leave",
        files: &["hand_on.lua", "slot_leave.lua"],
        grids: slotted::LEFT,
        words: slotted::leave,
    },
    Script {
        name: "may_delifeq",
        files: &["may_delifeq.lua"],
        grids: &[all(&[LOCK])],
        words: may_delifeq,
    },
];

/// What a lock's key can hold. Ours is `v`.
const LOCK: &[State] = &[
    ("absent", ""),
    ("ours", "SET k v PX 60000"),
    ("ours, longer", "SET k v PX 120000"),
    ("ours, soon over", "SET k v PX 3000"),
    ("ours, just the TTL", "SET k v PX 90000 | FROZEN"),
    ("ours, in its last millisecond", "SET k v PX 1 | PASS 500 | FROZEN"),
    ("ours, without end", "SET k v"),
    ("ours, just expired", "SET k v PX 1 | PASS 2000"),
    ("empty", "SET k '' PX 60000"),
    ("another's", "SET k w PX 60000"),
    ("another's, without end", "SET k w"),
    ("ours and more", "SET k vv PX 60000"),
    ("ours, revoked", "SET k v! PX 60000"),
    ("ours, revoked, just the TTL", "SET k v! PX 90000 | FROZEN"),
    ("ours, revoked, without end", "SET k v!"),
    ("ours, revoked twice", "SET k v!! PX 60000"),
    ("a number", "SET k 1 PX 60000"),
    ("a hash", "HSET k f v"),
    ("a list that ends", "RPUSH k v | PEXPIRE k 60000"),
];

/// What a TTL can be, and cannot.
const TTLS: [&str; 22] = [
    "10000",
    "1",
    "0",
    "-1",
    "",
    "x",
    "x5",
    "5x",
    "1.5",
    "1e9",
    "0x10",
    "007",
    " 5 ",
    "+5",
    "nan",
    "inf",
    "infinity",
    "9007199254740993",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999",
];

fn release() -> Calls {
    let words = |value| vec!["1", "k", value];
    let put_back = |value, former| vec!["1", "k", value, former];
    let mut usual: Vec<Words> = ["v", "w"].map(words).into();
    usual.push(put_back("v", "former"));
    let edges = vec![words(""), put_back("w", "former"), put_back("v", ""), put_back("v", "v")];
    Calls { usual, edges }
}

fn adopt() -> Calls {
    let words = |former, ttl| vec!["1", "k", "new", former, ttl];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("v", ttl)).into();
    edges.extend([words("", "90000"), words("w", "x"), words("v", "60000"), words("v", "61000")]);
    Calls { usual: vec![words("v", "90000"), words("w", "90000"), words("v", "50")], edges }
}

fn adopt_where_it_votes() -> Calls {
    let words = |ttl, name| vec!["3", "e", "q", "k", "new", "v", ttl, "30000", name];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words(ttl, "abc")).into();
    edges.extend([words("30000", "abc"), words("30001", "abc")]);
    Calls { usual: ["abc", "def"].map(|name| words("10000", name)).into(), edges }
}

fn extend() -> Calls {
    let words = |value, ttl| vec!["1", "k", value, ttl];
    let mut edges: Vec<Words> = TTLS.map(|ttl| words("v", ttl)).into();
    edges.extend([words("", "90000"), words("w", "x"), words("v", "60000"), words("v", "61000")]);
    let exactly = |value, ttl| vec!["1", "k", value, ttl, "exactly"];
    edges.extend(TTLS.map(|ttl| exactly("v", ttl)));
    edges.extend([exactly("", "90000"), exactly("w", "x"), exactly("v", "50000")]);
    let mut usual = vec![words("v", "90000"), words("w", "90000"), words("v", "50")];
    usual.extend([exactly("v", "90000"), exactly("w", "90000"), exactly("v", "50")]);
    Calls { usual, edges }
}

fn may_delifeq() -> Calls {
    Calls {
        usual: vec![vec!["0", "k"]],
        edges: vec![vec!["0", ""], vec!["0"], vec!["1", "k", "l"]],
    }
}

/// The keys that hold sorted sets.
pub(crate) const QUEUES: [&str; 3] = ["z", "b", "r"];

/// The channels on which another connection listens: those of some owners of values.
pub(crate) const HEARD: [&str; 3] = ["quorlock:wake:her", "quorlock:wake:", "quorlock:wake:a@b"];

/// One run of a script.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) state: Vec<Words>,
    pub(crate) hindrance: Hindrance,
    /// Its keys and arguments, with the number of the keys before them.
    pub(crate) words: Words,
    /// What the state is, for who reads of a difference.
    pub(crate) name: String,
    /// Only where time stands still unless it is told to pass.
    pub(crate) frozen: bool,
    /// What it leaves may be over before it is looked at, but where time stands still.
    pub(crate) fleeting: bool,
}

impl Script {
    /// The script's text.
    pub(crate) fn text(&self) -> &'static str {
        self.text_with(|_, text| text.to_owned()).leak()
    }

    /// The script's text, each of its files as `change` makes it of the file's name and text.
    pub(crate) fn text_with(&self, change: impl Fn(&str, &str) -> String) -> String {
        let file = |name: &&str| all_files().find(|(file, _)| file == name);
        let files = self.files.iter().map(|name| file(name).unwrap_or_else(|| panic!("{name}")));
        files.map(|(name, text)| change(name, text)).collect()
    }

    /// Everything that it is run on.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let Calls { usual, edges } = (self.words)();
        let hindrances = hindrance::of(self.text(), &self.keys());
        let mut cases = Vec::new();
        for Grid { lists, said } in self.grids {
            for state in combinations(lists) {
                let edges = edges.iter().filter(|_| *said == Said::All);
                let words = usual.iter().chain(edges);
                cases.extend(words.map(|words| case(&state, Hindrance::None, words)));
                for hindrance in hindrances.iter().filter(|_| *said != Said::Plain) {
                    cases.extend(usual.iter().map(|words| case(&state, *hindrance, words)));
                }
            }
        }
        cases
    }

    /// The keys that it is given.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        let usual = (self.words)().usual;
        let is_given = |key: &&str| usual.iter().any(|words| words.contains(key));
        KEYS.into_iter().filter(is_given).collect()
    }
}

fn case(state: &[State], hindrance: Hindrance, words: &Words) -> Case {
    let mut commands: Vec<Words> = state.iter().flat_map(|(_, text)| read(text)).collect();
    let frozen = commands.iter().any(|words| words[..] == ["FROZEN"]);
    commands.retain(|words| words[..] != ["FROZEN"]);
    let mut names: Vec<&str> = state.iter().map(|(name, _)| *name).collect();
    let lacks;
    match hindrance {
        Hindrance::None => {}
        Hindrance::Starved => names.push("no memory"),
        Hindrance::User(right) => {
            lacks = format!("no right to {right}");
            names.push(&lacks);
        }
    }
    let shown = words.iter().map(|word| if word.is_empty() { "''" } else { word });
    let shown: Vec<&str> = shown.collect();
    let name = format!("{}: {}", names.join(", "), shown.join(" "));
    // The two numbers behind these words are no times.
    let is_time = |at: usize| {
        !words[at.saturating_sub(2)..at].iter().any(|word| matches!(*word, "wait" | "try"))
    };
    let is_short =
        |at: usize| words[at].parse().is_ok_and(|millis: u64| (1..=1_000).contains(&millis));
    let fleeting = (1..words.len()).any(|at| is_time(at) && is_short(at));
    Case { state: commands, hindrance, words: words.clone(), name, frozen, fleeting }
}

/// One state of each list, in all ways.
fn combinations(lists: &[&[State]]) -> Vec<Vec<State>> {
    let mut all = vec![Vec::new()];
    for list in lists {
        let longer =
            |chosen: Vec<State>| list.iter().map(move |state| [&chosen[..], &[*state]].concat());
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// The words with each `+n` among them as a time, in milliseconds since 1970, where it is `now`.
pub(crate) fn at(now: u128, words: &[&str]) -> Vec<String> {
    let time = |word: &str| {
        let millis = word.strip_prefix('+').and_then(|millis| millis.parse::<f64>().ok())?;
        Some((now as f64 + millis).to_string())
    };
    words.iter().map(|word| time(word).unwrap_or_else(|| (*word).to_owned())).collect()
}

/// Commands between bars.
pub(crate) fn read(text: &'static str) -> Vec<Words> {
    let lines = text.split('|').map(line);
    lines.filter(|words| !words.is_empty()).collect()
}

/// A command's words.
fn line(text: &'static str) -> Words {
    let word = |word: &'static str| -> &'static str {
        match word {
            "''" => "",
            word if word.contains('~') => word.replace('~', " ").leak(),
            word => word,
        }
    };
    let words: Words = text.split_whitespace().map(word).collect();
    match words[..] {
        ["CROWD", count] => crowd(count.parse().unwrap()),
        _ => words,
    }
}

/// The command that puts so many into the queue.
fn crowd(count: usize) -> Words {
    let scored = (1..=count).flat_map(|place| [place.to_string(), format!("x{place}")]);
    let scored = scored.map(|word| -> &'static str { word.leak() });
    ["ZADD", "z"].into_iter().chain(scored).collect()
}
