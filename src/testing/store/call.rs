//! One command: what it may be, who may say it, and why it is refused.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::version::{Since, Version};
use super::{OPERATOR, SessionId, Store, acl, connection, expiry, info, script, server, strings};

/// A command under way.
pub(super) struct Call<'a> {
    pub(super) session: SessionId,
    /// Its name is the first.
    pub(super) words: &'a [&'a [u8]],
    pub(super) now: Duration,
    /// A script says it, in this line.
    pub(super) line: Option<u32>,
}

impl<'a> Call<'a> {
    /// The words behind the name.
    pub(super) fn arguments(&self) -> &'a [&'a [u8]] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The argument of this number, from 0; empty where there is none.
    pub(super) fn argument(&self, number: usize) -> &'a [u8] {
        self.arguments().get(number).copied().unwrap_or_default()
    }

    /// The command's name, in lower case.
    pub(super) fn name(&self) -> String {
        lower(self.words.first().copied().unwrap_or_default())
    }
}

/// What a command is answered.
pub(super) type Reply = Result<Frame, Refusal>;

/// An error reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal(pub(super) Cow<'static, str>);

impl Refusal {
    pub(super) const fn of(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(super) fn new(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    pub(super) fn into_frame(self) -> Frame {
        Frame::Error(Bytes::from(self.0.into_owned()))
    }

    pub(super) const SYNTAX: Self = Self::of("ERR syntax error");
    pub(super) const NUMBER: Self = Self::of("ERR value is not an integer or out of range");
    pub(super) const TYPE: Self =
        Self::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    const READ_ONLY: Self = Self::of("READONLY You can't write against a read only replica.");
    const MEMORY: Self = Self::of("OOM command not allowed when used memory > 'maxmemory'.");
    const LOGIN: Self = Self::of("NOAUTH Authentication required.");

    pub(super) fn arity(command: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{command}' command"))
    }
}

pub(super) fn ok() -> Frame {
    Frame::Simple(Bytes::from_static(b"OK"))
}

pub(super) fn bulk(text: impl AsRef<[u8]>) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_ref()))
}

pub(super) fn count(number: usize) -> Frame {
    Frame::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn lower(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_lowercase()
}

/// A whole number as servers read one: without a plus, without leading zeros.
pub(super) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    let text = std::str::from_utf8(word).map_err(|_| Refusal::NUMBER)?;
    let number: i64 = text.parse().map_err(|_| Refusal::NUMBER)?;
    if number.to_string() == text { Ok(number) } else { Err(Refusal::NUMBER) }
}

/// Which words of a command are keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    None,
    First,
    All,
    /// As many as its second argument says, behind that.
    Counted,
}

/// What a command does to keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// Nothing, or what is not about single keys.
    Other,
    Reads,
    Writes,
    /// Writes, and needs memory for it.
    Grows,
    /// May be said before the login.
    Opens,
}

/// One command of the table.
struct Spec {
    name: &'static str,
    /// The least number of words, and the greatest.
    words: [usize; 2],
    keys: Keys,
    deed: Deed,
    run: fn(&mut Store, &Call<'_>) -> Reply,
}

const fn spec(
    name: &'static str,
    words: [usize; 2],
    keys: Keys,
    deed: Deed,
    run: fn(&mut Store, &Call<'_>) -> Reply,
) -> Spec {
    Spec { name, words, keys, deed, run }
}

const ANY: usize = usize::MAX;

/// All commands.
static TABLE: [Spec; 38] = [
    spec("acl", [2, ANY], Keys::None, Deed::Other, acl::command),
    spec("auth", [2, ANY], Keys::None, Deed::Opens, connection::auth),
    spec("hello", [1, ANY], Keys::None, Deed::Opens, connection::hello),
    spec("quit", [1, ANY], Keys::None, Deed::Opens, connection::quit),
    spec("client", [2, ANY], Keys::None, Deed::Other, connection::client),
    spec("echo", [2, 2], Keys::None, Deed::Other, connection::echo),
    spec("ping", [1, 2], Keys::None, Deed::Other, connection::ping),
    spec("select", [2, 2], Keys::None, Deed::Other, connection::select),
    spec("config", [2, ANY], Keys::None, Deed::Other, server::config),
    spec("dbsize", [1, 1], Keys::None, Deed::Other, server::dbsize),
    spec("flushall", [1, 2], Keys::None, Deed::Writes, server::flushall),
    spec("flushdb", [1, 2], Keys::None, Deed::Writes, server::flushdb),
    spec("info", [1, ANY], Keys::None, Deed::Other, info::info),
    spec("keys", [2, 2], Keys::None, Deed::Other, server::keys),
    spec("role", [1, 1], Keys::None, Deed::Other, server::role),
    spec("time", [1, 1], Keys::None, Deed::Other, server::time),
    spec("eval", [3, ANY], Keys::Counted, Deed::Other, script::eval),
    spec("evalsha", [3, ANY], Keys::Counted, Deed::Other, script::evalsha),
    spec("script", [2, ANY], Keys::None, Deed::Other, script::script),
    spec("del", [2, ANY], Keys::All, Deed::Writes, strings::del),
    spec("unlink", [2, ANY], Keys::All, Deed::Writes, strings::del),
    spec("delifeq", [3, 3], Keys::First, Deed::Writes, strings::delifeq),
    spec("exists", [2, ANY], Keys::All, Deed::Reads, strings::exists),
    spec("get", [2, 2], Keys::First, Deed::Reads, strings::get),
    spec("hset", [4, ANY], Keys::First, Deed::Grows, strings::hset),
    spec("incr", [2, 2], Keys::First, Deed::Grows, strings::incr),
    spec("rpush", [3, ANY], Keys::First, Deed::Grows, strings::rpush),
    spec("set", [3, ANY], Keys::First, Deed::Grows, strings::set),
    spec("strlen", [2, 2], Keys::First, Deed::Reads, strings::strlen),
    spec("type", [2, 2], Keys::First, Deed::Reads, strings::kind),
    spec("expire", [3, 4], Keys::First, Deed::Writes, expiry::expire),
    spec("expiretime", [2, 2], Keys::First, Deed::Reads, expiry::expiretime),
    spec("persist", [2, 2], Keys::First, Deed::Writes, expiry::persist),
    spec("pexpire", [3, 4], Keys::First, Deed::Writes, expiry::pexpire),
    spec("pexpireat", [3, 4], Keys::First, Deed::Writes, expiry::pexpireat),
    spec("pexpiretime", [2, 2], Keys::First, Deed::Reads, expiry::pexpiretime),
    spec("pttl", [2, 2], Keys::First, Deed::Reads, expiry::pttl),
    spec("ttl", [2, 2], Keys::First, Deed::Reads, expiry::ttl),
];

/// The subcommands, with the least number of words, the command's name included, and the greatest.
const SUBCOMMANDS: [(&str, &str, [usize; 2]); 16] = [
    ("acl", "setuser", [3, ANY]),
    ("acl", "whoami", [2, 2]),
    ("client", "getname", [2, 2]),
    ("client", "id", [2, 2]),
    ("client", "kill", [3, ANY]),
    ("client", "pause", [3, 4]),
    ("client", "setinfo", [4, 4]),
    ("client", "setname", [3, 3]),
    ("client", "tracking", [3, ANY]),
    ("client", "unpause", [2, 2]),
    ("config", "get", [3, ANY]),
    ("config", "resetstat", [2, 2]),
    ("config", "set", [4, ANY]),
    ("script", "exists", [3, ANY]),
    ("script", "flush", [2, 3]),
    ("script", "load", [3, 3]),
];

/// What only later servers know.
const LATER: [(&str, Since); 3] = [
    ("delifeq", Since { redis: None, valkey: Some([9, 0]) }),
    ("expiretime", Since::redis([7, 0])),
    ("pexpiretime", Since::redis([7, 0])),
];

/// `CLIENT SETINFO`
const SETINFO: Since = Since::redis([7, 2]);

/// A command by its name, in any case.
fn find(name: &[u8]) -> Option<&'static Spec> {
    TABLE.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

/// The names of all commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|spec| spec.name)
}

/// Whether a command of this name may write. Of a script it is unknown before it has run.
pub(super) fn may_write(name: &[u8]) -> bool {
    let writes = |spec: &Spec| matches!(spec.deed, Deed::Writes | Deed::Grows);
    find(name).is_some_and(|spec| writes(spec) || spec.keys == Keys::Counted)
}

impl Spec {
    /// The keys among a command's words.
    fn keys<'a>(&self, call: &Call<'a>) -> &'a [&'a [u8]] {
        let arguments = call.arguments();
        match self.keys {
            Keys::None => &[],
            Keys::First => arguments.get(..1).unwrap_or_default(),
            Keys::All => arguments,
            // A count that is none is refused when the command runs.
            Keys::Counted => script::split(arguments).map(|(keys, _)| keys).unwrap_or_default(),
        }
    }
}

/// A command's subcommand, in lower case; empty where it has none.
fn subcommand(name: &str, call: &Call<'_>) -> String {
    match SUBCOMMANDS.iter().any(|(command, ..)| *command == name) {
        true => lower(call.argument(0)),
        false => String::new(),
    }
}

impl Spec {
    /// Whether its subcommand is one, and has so many words.
    fn check_subcommand(&self, call: &Call<'_>, version: Version) -> Result<(), Refusal> {
        if !SUBCOMMANDS.iter().any(|(command, ..)| *command == self.name) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(call.argument(0));
        let is_it = |(command, name, _): &&(&str, &str, [usize; 2])| {
            *command == self.name && name.eq_ignore_ascii_case(&said)
        };
        let is_known = |name: &str| name != "setinfo" || version.knows(SETINFO);
        let Some((_, name, [least, most])) =
            SUBCOMMANDS.iter().find(is_it).filter(|(_, name, _)| is_known(name))
        else {
            return Err(version.unknown_subcommand(self.name, &said));
        };
        // Before they were commands of their own, two of them counted for themselves.
        let counts = !version.has_subcommands() && matches!(*name, "kill" | "exists");
        if counts || (*least..=*most).contains(&call.words.len()) {
            return Ok(());
        }
        Err(version.subcommand_arity(self.name, &said))
    }
}

impl Store {
    /// Executes one command, if it is one and may be said.
    pub(super) fn call(&mut self, call: &Call<'_>) -> Reply {
        let spec = self.recognise(call)?;
        let name = spec.name;
        let version = self.setup.version;
        let session = self.session(call)?;
        if !session.authenticated && spec.deed != Deed::Opens {
            return Err(Refusal::LOGIN);
        }
        let user = session.user.clone();
        let keys = spec.keys(call);
        if spec.deed != Deed::Opens && *user != *OPERATOR {
            self.check_rights(call, &user, name, keys)?;
        }
        let writes = matches!(spec.deed, Deed::Writes | Deed::Grows);
        if writes && self.setup.is_replica {
            return Err(version.refused(Refusal::READ_ONLY, call.line));
        }
        let is_starved = match call.line {
            Some(_) => self.script_is_starved,
            None => self.is_full(),
        };
        if spec.deed == Deed::Grows && is_starved {
            return Err(version.refused(Refusal::MEMORY, call.line));
        }
        self.script_is_starved &= !writes;
        if !version.has_subcommands() {
            spec.check_subcommand(call, version)?;
        }
        let subcommand = subcommand(name, call);
        *self.counts.calls.entry((name, subcommand)).or_default() += 1;
        let reply = (spec.run)(self, call);
        if spec.deed == Deed::Reads {
            keys.iter().for_each(|key| self.remember_reader(call.session, key));
        }
        reply
    }

    /// The command that is said, if there is one such, with so many words.
    fn recognise(&mut self, call: &Call<'_>) -> Result<&'static Spec, Refusal> {
        let version = self.setup.version;
        let is_known = |spec: &&Spec| {
            !self.setup.hidden.contains(spec.name)
                && LATER.iter().all(|(name, since)| *name != spec.name || version.knows(*since))
        };
        let said = call.words.first().copied().unwrap_or_default();
        let found = find(said).filter(is_known);
        let opens = found.is_some_and(|spec| spec.deed == Deed::Opens);
        if version.asks_login_first() && !opens && !self.session(call)?.authenticated {
            return Err(Refusal::LOGIN);
        }
        let Some(spec) = found else {
            return Err(match call.line {
                Some(_) => version.unknown_in_script(call.line),
                None => version.unknown_command(call.words),
            });
        };
        let [least, most] = spec.words;
        if !(least..=most).contains(&call.words.len()) {
            return Err(match call.line {
                Some(_) => version.arity_in_script(call.line),
                None => Refusal::arity(spec.name),
            });
        }
        if version.has_subcommands() {
            spec.check_subcommand(call, version)?;
        }
        Ok(spec)
    }

    fn check_rights(
        &self,
        call: &Call<'_>,
        user: &str,
        name: &str,
        keys: &[&[u8]],
    ) -> Result<(), Refusal> {
        let Some(rights) = self.setup.users.get(user) else { return Err(Refusal::LOGIN) };
        let (version, subcommand) = (self.setup.version, subcommand(name, call));
        if !rights.may_say(name, Some(&*subcommand).filter(|sub| !sub.is_empty())) {
            return Err(version.may_not_say(user, [name, &subcommand], call.line));
        }
        match keys.iter().all(|key| rights.may_touch(key)) {
            true => Ok(()),
            false => Err(version.may_not_touch(call.line)),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.memory_max > 0 && self.memory_used() > self.memory_max
    }
}
