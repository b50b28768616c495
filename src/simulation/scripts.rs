//! Whether nodes run the locks' scripts by Lua, as servers do: they do, unless a test asks for the
//! functions that stand in for them on the nodes of users' tests. And whether they run the right
//! ones.

use std::cell::Cell;

thread_local! {
    static BY_LUA: Cell<bool> = const { Cell::new(true) };
    static MUTATION: Cell<Option<Mutation>> = const { Cell::new(None) };
}

/// A deliberate error in a script, which the oracle must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mutation {
    /// A node looks at the first of several keys only before it sets all.
    FirstKeyOnly,
    /// A node takes a token that is not above its fence.
    FenceNotCompared,
    /// A node treats a missing fence as zero, and not as its own time.
    FenceFromZero,
    /// A node makes a reader of one that asks while a writer has the lock.
    ReaderBesideWriter,
    /// The key of a lock that readers have ends with the one that came last.
    KeyOfTheNewestReader,
    /// The key is deleted with the first reader that leaves.
    FirstReaderDeletes,
    /// A reader that is extended does not take the key with it.
    KeyNotExtended,
    /// The last reader that leaves tells none of those that wait.
    LastReaderTellsNone,
    /// A node counts the slots that are held, and gives the one of that number.
    SlotByCounter,
    /// A node does not look whether there is a slot already.
    HeldSlotTaken,
    /// A node gives a slot for half the time that was asked for.
    SlotEndsEarly,
    /// A node lets go of a slot for one that has lost it.
    SlotsNotCompared,
    /// One that lets go of a slot tells none of those that wait.
    SlotTellsNone,
    /// A node deletes the key of a lock that is revoked.
    RevokedIsDeleted,
    /// A node extends a lock that was revoked.
    RevokedIsExtended,
    /// A release finds no value of its own in one that was revoked.
    RevokedIsLeft,
    /// A reader ends early, by a second for each machine before its own: as if its end were counted
    /// by clients' clocks, each a second behind the one before.
    ReaderEndsEarly,
    /// A node gives a lock to one whose ticket is not the least.
    TicketsNotCompared,
    /// A node gives a free lock to any that asks for its turn.
    TurnsNotCompared,
    /// A node puts one that comes before all that wait.
    LastInIsFirst,
    /// A lock is handed over to the one that came last.
    HandedToTheLast,
    /// A node waits for one that is dead, as long as its ticket stands.
    DeadTicketsCount,
    /// One in strict order counts as alive for too long, unless it is the first machine's: as if
    /// that were counted by clients' clocks, of which the others are 1.4 s ahead.
    TicketLivesLong,
    /// A node waits for one in the queue that is dead, as long as it stands there.
    DeadWaitersCount,
    /// A node adds a name to a set beside the one that keeps it out.
    NamesBesideOneAnother,
}

impl Mutation {
    /// The script, the text to replace, and its replacement.
    const fn change(self) -> [&'static str; 3] {
        const ACQUIRE_ALL: &str = include_str!("../lock/script/acquire_all.lua");
        const EXTEND: &str = include_str!("../lock/script/extend.lua");
        const FENCE: &str = include_str!("../lease/script/fence.lua");
        const NAME_SET: &str = include_str!("../lease/script/name_set.lua");
        const RELEASE: &str = include_str!("../lock/script/release.lua");
        const REVOKE: &str = include_str!("../lease/script/revoke.lua");
        const TICKET_ASK: &str = include_str!("../lock/script/ticket_ask.lua");
        const TURN_ASK: &str = include_str!("../lock/script/turn_ask.lua");
        const TURN_LEAVE: &str = include_str!("../lock/script/turn_leave.lua");
        match self {
            Self::FirstKeyOnly => [
                ACQUIRE_ALL,
                "for n = before + 1, #KEYS do\n  local held",
                "for n = before + 1, before + 1 do\n  local held",
            ],
            Self::FenceNotCompared => [FENCE, "rises = set > highest and set", "rises = set"],
            Self::FenceFromZero => [FENCE, "fence or now", "fence or 0"],
            Self::RevokedIsDeleted => [
                REVOKE,
                "redis.call('SET', KEYS[1], revoked, 'XX', 'KEEPTTL')",
                "redis.call('DEL', KEYS[1])",
            ],
            Self::RevokedIsExtended => {
                [EXTEND, "is_revoked and (is_short or not ARGV[3])", "false"]
            }
            Self::RevokedIsLeft => {
                [RELEASE, "is_revoked = held == ARGV[1] .. '!'", "is_revoked = false"]
            }
            Self::TicketsNotCompared => [TICKET_ASK, "takes = is_least and", "takes = true and"],
            Self::TurnsNotCompared => [TURN_ASK, "(first == own and not held)", "not held"],
            Self::LastInIsFirst => [TURN_ASK, "tonumber(last[2] or 0) + 1", "-now"],
            Self::HandedToTheLast => {
                [TURN_LEAVE, "'ZRANGE', queue, n, n", "'ZREVRANGE', queue, n, n"]
            }
            Self::DeadTicketsCount => [
                TICKET_ASK,
                "elseif not ends or tonumber(ends) < now or tonumber(ends) > latest then",
                "elseif false then",
            ],
            Self::TicketLivesLong => [
                TICKET_ASK,
                "local next_beat = now +",
                "local next_beat = now + 1400 * math.min(1, string.match(own, '@m(%d+)')) +",
            ],
            Self::DeadWaitersCount => [
                TURN_ASK,
                "if not ends or tonumber(ends) < now or tonumber(ends) > latest then",
                "if false then",
            ],
            Self::NamesBesideOneAnother => [NAME_SET, " or found[n] == ARGV[2]", ""],
            Self::ReaderBesideWriter
            | Self::KeyOfTheNewestReader
            | Self::FirstReaderDeletes
            | Self::KeyNotExtended
            | Self::LastReaderTellsNone
            | Self::ReaderEndsEarly
            | Self::SlotByCounter
            | Self::HeldSlotTaken
            | Self::SlotEndsEarly
            | Self::SlotsNotCompared
            | Self::SlotTellsNone => self.change_of_shared(),
        }
    }

    /// As `change`, of a script of readers or slots.
    const fn change_of_shared(self) -> [&'static str; 3] {
        const READ: &str = include_str!("../lock/script/read.lua");
        const READ_EXTEND: &str = include_str!("../lock/script/read_extend.lua");
        const READ_LEAVE: &str = include_str!("../lock/script/read_leave.lua");
        const SLOT_ASK: &str = include_str!("../lock/script/slot_ask.lua");
        const SLOT_LEAVE: &str = include_str!("../lock/script/slot_leave.lua");
        match self {
            Self::ReaderBesideWriter => [READ, "held and held ~= word", "false"],
            Self::KeyOfTheNewestReader => {
                [READ, "if redis.call('PTTL', lock) < last - now then", "do\n  last = ends"]
            }
            Self::FirstReaderDeletes => [READ_LEAVE, "(own and last <= now)", "own"],
            Self::KeyNotExtended => [READ_EXTEND, "redis.call('PTTL', lock) < last - now", "false"],
            Self::LastReaderTellsNone => {
                [READ_LEAVE, "found = next_in(queue, beats, place, now)", "found = {}"]
            }
            Self::SlotByCounter => [
                SLOT_ASK,
                "if not held[n] and redis.call('EXISTS', KEYS[before + n]) == 0 then",
                "local taken = 0\n  for one = 1, count do\n    \
                 taken = taken + (held[one] and 1 or 0)\n  end\n  \
                 if n > taken and held[n] ~= own then",
            ],
            Self::HeldSlotTaken => [
                SLOT_ASK,
                "not held[n] and redis.call('EXISTS', KEYS[before + n]) == 0",
                "held[n] ~= own",
            ],
            Self::SlotEndsEarly => {
                [SLOT_ASK, "own, 'PX', ARGV[5]", "own, 'PX', math.ceil(ARGV[5] / 2)"]
            }
            Self::SlotsNotCompared => [SLOT_LEAVE, "held == ARGV[1]", "type(held) == 'string'"],
            Self::SlotTellsNone => [SLOT_LEAVE, "tell(found, 'yours')", ""],
            Self::ReaderEndsEarly => [
                READ,
                "local ends = now + ARGV[3]",
                "local ends = now + ARGV[3] - 1000 * string.match(ARGV[1], '@m(%d+)')",
            ],
            _ => unreachable!(),
        }
    }
}

/// Whether the nodes of this thread run scripts by Lua.
pub(super) fn are_run_by_lua() -> bool {
    BY_LUA.get()
}

/// Has the nodes of this thread run scripts with this error from now on, or without any.
pub(super) fn mutate(mutation: Option<Mutation>) {
    MUTATION.set(mutation);
}

/// The script with its error, if it is to have one. (A node does not know the right one by its
/// digest then, and is sent it whole each time.)
pub(super) fn mutated(script: &[u8]) -> Option<String> {
    let [text, right, wrong] = MUTATION.get()?.change();
    if !script.ends_with(text.as_bytes()) {
        return None;
    }
    let script = str::from_utf8(script).unwrap();
    assert!(script.contains(right), "the script is another one by now");
    Some(script.replace(right, wrong))
}

/// Has the nodes of this thread run scripts by Lua from now on, or by the functions.
pub(super) fn run_by_lua(lua: bool) {
    BY_LUA.set(lua);
}
