//! An error that a script raises, and the line that it stands in.

use std::fmt;

use mlua::{Error, Lua};

use super::super::version::Version;

/// An error that ends a script, in a line of it.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    pub(super) line: u32,
    pub(super) text: String,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl std::error::Error for Raised {}

/// The line of the script that has called the function that is running.
pub(super) fn line(lua: &Lua) -> u32 {
    let line = lua.inspect_stack(1, |caller| caller.current_line()).flatten();
    line.and_then(|line| u32::try_from(line).ok()).unwrap_or_default()
}

/// An error of Lua itself, in the line that is running.
pub(super) fn raise(lua: &Lua, what: &str) -> Error {
    let line = line(lua);
    Error::external(Raised { line, text: version(lua).lua(line, what) })
}

/// Which server the node poses as whose script is running.
pub(super) fn version(lua: &Lua) -> Version {
    lua.app_data_ref::<Version>().map(|version| *version).unwrap_or_default()
}
