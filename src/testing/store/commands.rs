//! The table of all commands: their names, how many words they have, which of those are keys.

use super::call::{Call, Refusal, Reply, lower};
use super::state::Store;
use super::version::{Since, Version};
use super::{acl, connection, expiry, info, pubsub, script, server, sorted_sets, strings};

/// Which words of a command are keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    First,
    All,
    /// As many as its second argument says, behind that.
    Counted,
}

/// What a command does to keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
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
pub(super) struct Spec {
    pub(super) name: &'static str,
    /// The least number of words, and the greatest.
    pub(super) words: [usize; 2],
    pub(super) keys: Keys,
    pub(super) access: Access,
    pub(super) run: fn(&mut Store, &Call<'_>) -> Reply,
}

const fn spec(
    name: &'static str,
    words: [usize; 2],
    keys: Keys,
    access: Access,
    run: fn(&mut Store, &Call<'_>) -> Reply,
) -> Spec {
    Spec { name, words, keys, access, run }
}

const ANY: usize = usize::MAX;

/// All commands.
static TABLE: [Spec; 54] = [
    spec("acl", [2, ANY], Keys::None, Access::Other, acl::command),
    spec("auth", [2, ANY], Keys::None, Access::Opens, connection::auth),
    spec("hello", [1, ANY], Keys::None, Access::Opens, connection::hello),
    spec("quit", [1, ANY], Keys::None, Access::Opens, connection::quit),
    spec("client", [2, ANY], Keys::None, Access::Other, connection::client),
    spec("echo", [2, 2], Keys::None, Access::Other, connection::echo),
    spec("ping", [1, 2], Keys::None, Access::Other, connection::ping),
    spec("reset", [1, 1], Keys::None, Access::Opens, connection::reset),
    spec("select", [2, 2], Keys::None, Access::Other, connection::select),
    spec("config", [2, ANY], Keys::None, Access::Other, server::config),
    spec("dbsize", [1, 1], Keys::None, Access::Other, server::dbsize),
    spec("flushall", [1, 2], Keys::None, Access::Writes, server::flushall),
    spec("flushdb", [1, 2], Keys::None, Access::Writes, server::flushdb),
    spec("info", [1, ANY], Keys::None, Access::Other, info::info),
    spec("keys", [2, 2], Keys::None, Access::Other, server::keys),
    spec("role", [1, 1], Keys::None, Access::Other, server::role),
    spec("time", [1, 1], Keys::None, Access::Other, server::time),
    spec("eval", [3, ANY], Keys::Counted, Access::Other, script::eval),
    spec("evalsha", [3, ANY], Keys::Counted, Access::Other, script::evalsha),
    spec("script", [2, ANY], Keys::None, Access::Other, script::script),
    spec("publish", [3, 3], Keys::None, Access::Other, pubsub::publish),
    spec("pubsub", [2, ANY], Keys::None, Access::Other, pubsub::pubsub),
    spec("subscribe", [2, ANY], Keys::None, Access::Other, pubsub::subscribe),
    spec("unsubscribe", [1, ANY], Keys::None, Access::Other, pubsub::unsubscribe),
    spec("del", [2, ANY], Keys::All, Access::Writes, strings::del),
    spec("unlink", [2, ANY], Keys::All, Access::Writes, strings::del),
    spec("delifeq", [3, 3], Keys::First, Access::Writes, strings::delifeq),
    spec("exists", [2, ANY], Keys::All, Access::Reads, strings::exists),
    spec("get", [2, 2], Keys::First, Access::Reads, strings::get),
    spec("hset", [4, ANY], Keys::First, Access::Grows, strings::hset),
    spec("incr", [2, 2], Keys::First, Access::Grows, strings::incr),
    spec("mget", [2, ANY], Keys::All, Access::Reads, strings::mget),
    spec("rpush", [3, ANY], Keys::First, Access::Grows, strings::rpush),
    spec("set", [3, ANY], Keys::First, Access::Grows, strings::set),
    spec("strlen", [2, 2], Keys::First, Access::Reads, strings::strlen),
    spec("type", [2, 2], Keys::First, Access::Reads, strings::kind),
    spec("expire", [3, 4], Keys::First, Access::Writes, expiry::expire),
    spec("expiretime", [2, 2], Keys::First, Access::Reads, expiry::expiretime),
    spec("persist", [2, 2], Keys::First, Access::Writes, expiry::persist),
    spec("pexpire", [3, 4], Keys::First, Access::Writes, expiry::pexpire),
    spec("pexpireat", [3, 4], Keys::First, Access::Writes, expiry::pexpireat),
    spec("pexpiretime", [2, 2], Keys::First, Access::Reads, expiry::pexpiretime),
    spec("pttl", [2, 2], Keys::First, Access::Reads, expiry::pttl),
    spec("ttl", [2, 2], Keys::First, Access::Reads, expiry::ttl),
    spec("zadd", [4, ANY], Keys::First, Access::Grows, sorted_sets::zadd),
    spec("zcard", [2, 2], Keys::First, Access::Reads, sorted_sets::zcard),
    spec("zcount", [4, 4], Keys::First, Access::Reads, sorted_sets::zcount),
    spec("zrange", [4, ANY], Keys::First, Access::Reads, sorted_sets::zrange),
    spec("zrangebyscore", [4, ANY], Keys::First, Access::Reads, sorted_sets::zrangebyscore),
    spec("zrank", [3, ANY], Keys::First, Access::Reads, sorted_sets::zrank),
    spec("zrem", [3, ANY], Keys::First, Access::Writes, sorted_sets::zrem),
    spec("zremrangebyscore", [4, 4], Keys::First, Access::Writes, sorted_sets::zremrangebyscore),
    spec("zrevrange", [4, ANY], Keys::First, Access::Reads, sorted_sets::zrevrange),
    spec("zscore", [3, 3], Keys::First, Access::Reads, sorted_sets::zscore),
];

/// The subcommands, with the least number of words, the command's name included, and the greatest.
const SUBCOMMANDS: [(&str, &str, [usize; 2]); 20] = [
    ("acl", "setuser", [3, ANY]),
    ("acl", "whoami", [2, 2]),
    ("client", "caching", [3, 3]),
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
    ("pubsub", "channels", [2, ANY]),
    ("pubsub", "numpat", [2, 2]),
    ("pubsub", "numsub", [2, ANY]),
    ("script", "exists", [3, ANY]),
    ("script", "flush", [2, 3]),
    ("script", "load", [3, 3]),
];

/// What only later servers know.
pub(super) const LATER: [(&str, Since); 3] = [
    ("delifeq", Since { redis: None, valkey: Some([9, 0]) }),
    ("expiretime", Since::redis([7, 0])),
    ("pexpiretime", Since::redis([7, 0])),
];

/// `CLIENT SETINFO`
const SETINFO: Since = Since::redis([7, 2]);

/// A command by its name, in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    TABLE.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

/// The names of all commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|spec| spec.name)
}

/// Whether a command of this name may write, or be told to replicas as if it did. Of a script it is
/// unknown before it has run.
pub(super) fn may_write(name: &[u8]) -> bool {
    let writes = |spec: &Spec| matches!(spec.access, Access::Writes | Access::Grows);
    let tells = |spec: &Spec| spec.keys == Keys::Counted || spec.name == "publish";
    find(name).is_some_and(|spec| writes(spec) || tells(spec))
}

impl Spec {
    /// The keys among a command's words.
    pub(super) fn keys<'a>(&self, call: &Call<'a>) -> &'a [&'a [u8]] {
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

impl Spec {
    /// The channels among a command's words that a user needs a right to.
    pub(super) fn channels<'a>(&self, call: &Call<'a>) -> &'a [&'a [u8]] {
        match self.name {
            "subscribe" => call.arguments(),
            "publish" => call.arguments().get(..1).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// A command's subcommand, in lower case; empty where it has none.
pub(super) fn subcommand(name: &str, call: &Call<'_>) -> String {
    match SUBCOMMANDS.iter().any(|(command, ..)| *command == name) {
        true => lower(call.argument(0)),
        false => String::new(),
    }
}

impl Spec {
    /// Whether its subcommand is one, and has so many words.
    pub(super) fn check_subcommand(
        &self,
        call: &Call<'_>,
        version: Version,
    ) -> Result<(), Refusal> {
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
