//! Whether nodes run the locks' scripts by Lua, as servers do: they do, unless a test asks for the
//! functions that stand in for them on the nodes of users' tests.

use std::cell::Cell;

thread_local! {
    static BY_LUA: Cell<bool> = const { Cell::new(true) };
}

/// Whether the nodes of this thread run scripts by Lua.
pub(super) fn are_run_by_lua() -> bool {
    BY_LUA.get()
}

/// Has the nodes of this thread run scripts by Lua from now on, or by the functions.
pub(super) fn run_by_lua(lua: bool) {
    BY_LUA.set(lua);
}
