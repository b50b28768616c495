//! Runs a script's own text by Lua 5.1, with `redis.call` onto the store. Tests only.
//!
//! The nodes that users have in their tests bring no Lua: functions stand in for the locks' scripts
//! there (`script`). Here the text that servers get is run as they run it, so that a wrong line is
//! found without a server. One interpreter for each thread keeps what it has compiled of late.
//!
//! A script gets `KEYS`, `ARGV`, `redis` and the libraries `string`, `table` and `math`; whatever
//! else servers have is absent, and using it is an error. It can change nothing that outlasts it
//! but keys. What it has written before an error stays written, and time stands still for it.
//!
//! | file | job |
//! |---|---|
//! | `lua` | the interpreter, and how a script begins and ends |
//! | `lua/raised` | an error in a line of a script |
//! | `lua/redis` | the functions of `redis` |
//! | `lua/convert` | replies to Lua values, and values to replies |

mod convert;
mod raised;
mod redis;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mlua::{
    ChunkMode, Debug, Error, Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table,
    Value, VmState,
};

use super::call::{Call, Refusal, Reply};
use super::state::Store;
use super::version::Version;
use raised::{Raised, raise};

/// The name by which Lua knows a script's text, and as which it stands in errors.
const CHUNK: &str = "user_script";

/// The functions of Lua itself that scripts get.
const FUNCTIONS: [&str; 13] = [
    "assert", "error", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "select",
    "tonumber", "tostring", "type", "unpack",
];

/// How many scripts a thread keeps compiled: Lua has room for some thousands.
const COMPILED_MAX: usize = 1_000;

/// The interpreter of a thread.
struct Interpreter {
    lua: Lua,
    /// What scripts find by its name: written to from here alone.
    globals: Table,
    /// What scripts have in its place.
    environment: Table,
    /// The functions of `redis`, behind the table that scripts have.
    redis: Table,
    /// By the scripts' digests.
    compiled: RefCell<BTreeMap<String, Function>>,
    /// How many scripts it has run.
    runs: Cell<u64>,
}

/// Runs a script, by its digest and its text, with these keys and arguments.
pub(super) fn run(
    store: &mut Store,
    call: &Call<'_>,
    (digest, text): (&str, &[u8]),
    words: [&[&[u8]]; 2],
) -> Reply {
    let version = store.setup.version;
    let interpreter = interpreter()?;
    let function = interpreter.compile(digest, text)?;
    interpreter
        .execute(store, call, &function, words)
        .map_err(|error| ended(version, digest, &error))
}

/// Whether it is Lua at all.
pub(super) fn check(digest: &str, text: &[u8]) -> Result<(), Refusal> {
    interpreter()?.compile(digest, text).map(drop)
}

/// How many scripts this thread has run.
pub(crate) fn runs() -> u64 {
    interpreter().map(|interpreter| interpreter.runs.get()).unwrap_or_default()
}

/// Does some work; also returns the lines of scripts that run in this thread meanwhile.
pub(super) fn lines_run<T>(work: impl FnOnce() -> T) -> Result<(T, BTreeSet<usize>), Refusal> {
    let lua = &interpreter()?.lua;
    let lines: Rc<RefCell<BTreeSet<usize>>> = Rc::default();
    let seen = lines.clone();
    let note = move |_: &Lua, at: &Debug<'_>| {
        seen.borrow_mut().extend(at.current_line());
        Ok(VmState::Continue)
    };
    lua.set_hook(HookTriggers::EVERY_LINE, note).map_err(|error| broken(&error))?;
    let done = work();
    lua.remove_hook();
    Ok((done, lines.take()))
}

/// The interpreter of this thread.
fn interpreter() -> Result<Rc<Interpreter>, Refusal> {
    thread_local! {
        static OF_THREAD: RefCell<Option<Rc<Interpreter>>> = const { RefCell::new(None) };
    }
    OF_THREAD.with_borrow_mut(|kept| {
        if let Some(interpreter) = kept {
            return Ok(interpreter.clone());
        }
        let new = Rc::new(Interpreter::new().map_err(|error| broken(&error))?);
        Ok(kept.insert(new).clone())
    })
}

/// What only a fault of this file brings about.
fn broken(error: &Error) -> Refusal {
    Refusal::new(format!("ERR the interpreter failed: {error}"))
}

impl Interpreter {
    fn new() -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let (all, globals) = (lua.globals(), lua.create_table()?);
        for name in FUNCTIONS {
            globals.raw_set(name, all.raw_get::<Value>(name)?)?;
        }
        for name in ["string", "table", "math"] {
            globals.raw_set(name, read_only(&lua, &all.raw_get::<Table>(name)?)?)?;
        }
        let redis = lua.create_table()?;
        redis::install(&lua, &redis)?;
        globals.raw_set("redis", read_only(&lua, &redis)?)?;
        let environment = read_only(&lua, &globals)?;
        if let Some(meta) = environment.metatable() {
            let known = globals.clone();
            let find = move |lua: &Lua, (_, name): (Table, Value)| {
                let found = known.raw_get::<Value>(name.clone())?;
                if !found.is_nil() {
                    return Ok(found);
                }
                let name = name.to_string()?;
                let what = "Script attempted to access nonexistent global variable";
                Err(raise(lua, &format!("{what} '{name}'")))
            };
            meta.raw_set("__index", lua.create_function(find)?)?;
        }
        let (compiled, runs) = (RefCell::default(), Cell::default());
        Ok(Self { lua, globals, environment, redis, compiled, runs })
    }

    /// The script, ready to run.
    fn compile(&self, digest: &str, text: &[u8]) -> Result<Function, Refusal> {
        if let Some(function) = self.compiled.borrow().get(digest) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(text).set_name(format!("@{CHUNK}")).set_mode(ChunkMode::Text);
        let function = chunk.set_environment(self.environment.clone()).into_function();
        let function = function.map_err(|error| match error {
            Error::SyntaxError { message, .. } => {
                Refusal::new(format!("ERR Error compiling script (new function): {message}"))
            }
            other => broken(&other),
        })?;
        let mut compiled = self.compiled.borrow_mut();
        if compiled.len() >= COMPILED_MAX {
            compiled.clear();
        }
        compiled.insert(digest.to_owned(), function.clone());
        Ok(function)
    }

    fn execute(
        &self,
        store: &mut Store,
        call: &Call<'_>,
        function: &Function,
        [keys, arguments]: [&[&[u8]]; 2],
    ) -> mlua::Result<quorlock_resp::Frame> {
        self.runs.set(self.runs.get() + 1);
        let lua = &self.lua;
        let list = |words: &[&[u8]]| {
            let words = words.iter().map(|word| lua.create_string(word));
            lua.create_sequence_from(words.collect::<mlua::Result<Vec<_>>>()?)
        };
        self.globals.raw_set("KEYS", list(keys)?)?;
        self.globals.raw_set("ARGV", list(arguments)?)?;
        lua.set_app_data(store.setup.version);
        let (store, call_of) = (RefCell::new(store), call);
        lua.scope(|scope| {
            let say = |lua: &Lua, words: &MultiValue, is_caught| {
                let mut store = store.try_borrow_mut().map_err(Error::external)?;
                redis::say(lua, &mut store, call, words, is_caught)
            };
            let call = scope.create_function(move |lua, words| say(lua, &words, false))?;
            let pcall = scope.create_function(move |lua, words| say(lua, &words, true))?;
            self.redis.raw_set("call", call)?;
            self.redis.raw_set("pcall", pcall)?;
            let has_check = store.try_borrow().is_ok_and(|store| redis::has_acl_check_cmd(&store));
            let check = |_: &Lua, words: MultiValue| {
                let mut store = store.try_borrow_mut().map_err(Error::external)?;
                redis::acl_check_cmd(lua, &mut store, call_of, &words)
            };
            let check = has_check.then(|| scope.create_function(check)).transpose()?;
            self.redis.raw_set("acl_check_cmd", check)?;
            let values: MultiValue = function.call(())?;
            convert::to_frame(values.front().unwrap_or(&Value::Nil))
        })
    }
}

/// A table through which another can be read, and nothing be written.
fn read_only(lua: &Lua, table: &Table) -> mlua::Result<Table> {
    let (face, meta) = (lua.create_table()?, lua.create_table()?);
    meta.raw_set("__index", table.clone())?;
    let refuse = |lua: &Lua, _: MultiValue| -> mlua::Result<()> {
        Err(raise(lua, "Attempt to modify a readonly table"))
    };
    meta.raw_set("__newindex", lua.create_function(refuse)?)?;
    face.set_metatable(Some(meta))?;
    Ok(face)
}

/// How a script's error is told.
fn ended(version: Version, digest: &str, error: &Error) -> Refusal {
    if let Some(raised) = error.chain().find_map(|error| error.downcast_ref::<Raised>()) {
        return version.raised(digest, raised.line, &raised.text);
    }
    let Error::RuntimeError(text) = error else { return broken(error) };
    // Behind what Lua says stands where it was: the innermost line of the script comes first.
    let (text, trace) = text.split_once("\nstack traceback:").unwrap_or((text, ""));
    let text = text.strip_prefix(&format!("{CHUNK}:")).unwrap_or(text);
    let said = text.split_once(": ").and_then(|(line, what)| Some((line.parse().ok()?, what)));
    if let Some((line, what)) = said {
        return version.raised(digest, line, &version.lua(line, what));
    }
    let line = trace.split(&format!("{CHUNK}:")).nth(1).and_then(|rest| rest.split(':').next());
    let line = line.and_then(|line| line.parse().ok()).unwrap_or_default();
    version.raised(digest, line, &version.plain_in_script(text))
}
