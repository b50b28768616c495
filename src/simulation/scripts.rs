//! Whether nodes run the locks' scripts by Lua, as servers do: they do, unless a test asks for the
//! functions that stand in for them on the nodes of users' tests. And whether they run the right
//! ones.

use std::cell::Cell;

thread_local! {
    static BY_LUA: Cell<bool> = const { Cell::new(true) };
    static WRONG: Cell<Option<Wrong>> = const { Cell::new(None) };
}

/// What nodes do that run a wrong script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    /// They look at the first of several keys only before they set all.
    FirstKeyOnly,
    /// They take a token that is not above their fence.
    FenceNotCompared,
    /// A fence that they have forgotten stands at zero, and not at their time.
    FenceFromZero,
}

impl Wrong {
    /// The script that is a wrong one, and the lines that are, as they are and as they become.
    const fn change(self) -> [&'static str; 3] {
        const ACQUIRE_ALL: &str = include_str!("../lock/script/acquire_all.lua");
        const FENCE: &str = include_str!("../lease/script/fence.lua");
        match self {
            Self::FirstKeyOnly => [
                ACQUIRE_ALL,
                "for n = before + 1, #KEYS do\n  local held",
                "for n = before + 1, before + 1 do\n  local held",
            ],
            Self::FenceNotCompared => [FENCE, "rises = set > highest and set", "rises = set"],
            Self::FenceFromZero => [FENCE, "fence or now", "fence or 0"],
        }
    }
}

/// Whether the nodes of this thread run scripts by Lua.
pub(super) fn are_run_by_lua() -> bool {
    BY_LUA.get()
}

/// Has the nodes of this thread run a wrong script from now on, or the right ones: to see whether
/// the oracle notices.
pub(super) fn run_wrong(wrong: Option<Wrong>) {
    WRONG.set(wrong);
}

/// What a node loads and runs instead of this script, if it is to be a wrong one. (It does not know
/// the right one by its digest then, and is sent it whole each time.)
pub(super) fn wrong_instead_of(script: &[u8]) -> Option<String> {
    let [text, right, wrong] = WRONG.get()?.change();
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
