//! Whether nodes run the locks' scripts by Lua, as servers do: they do, unless a test asks for the
//! functions that stand in for them on the nodes of users' tests. And whether they run the right
//! ones.

use std::cell::Cell;

thread_local! {
    static BY_LUA: Cell<bool> = const { Cell::new(true) };
    static ONLY_FIRST_KEY: Cell<bool> = const { Cell::new(false) };
}

/// Whether the nodes of this thread run scripts by Lua.
pub(super) fn are_run_by_lua() -> bool {
    BY_LUA.get()
}

/// Has the nodes of this thread look at the first key only from now on, or at each, before they set
/// several: to see whether the oracle notices.
pub(super) fn look_at_first_key_only(only: bool) {
    ONLY_FIRST_KEY.set(only);
}

/// What a node loads and runs instead of this script, if it is to be a wrong one. (It does not know
/// the right one by its digest then, and is sent it whole each time.)
pub(super) fn wrong_instead_of(script: &[u8]) -> Option<String> {
    const ACQUIRE: &str = include_str!("../lock/script/acquire_all.lua");
    const EACH: &str = "for n = before + 1, #KEYS do\n  local held";
    const FIRST: &str = "for n = before + 1, before + 1 do\n  local held";
    if !ONLY_FIRST_KEY.get() || !script.ends_with(ACQUIRE.as_bytes()) {
        return None;
    }
    let script = str::from_utf8(script).unwrap();
    assert!(script.contains(EACH), "the script is another one by now");
    Some(script.replace(EACH, FIRST))
}

/// Has the nodes of this thread run scripts by Lua from now on, or by the functions.
pub(super) fn run_by_lua(lua: bool) {
    BY_LUA.set(lua);
}
