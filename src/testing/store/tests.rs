//! What a node answers. That real servers answer the same is for `tests/suite/differential`, which
//! shares two tables with the tests here.
//!
//! | file | asks |
//! |---|---|
//! | `tests` | commands, one by one |
//! | `sorted_sets` | sorted sets: what clients and scripts get, and what is left |
//! | `pubsub` | messages: who gets which, in which form, and who may |
//! | `tracking` | which reads are remembered, and who is told of a change |
//! | `scripts` | the functions that stand in for the scripts, beside the Lua itself |
//! | `mutants` | is every line of every script needed? |
//! | `bench` | a node on which a script is run in every way |

mod bench;
mod mutants;
mod pubsub;
mod scripts;
#[path = "../../../tests/suite/differential/snippets.rs"]
mod snippets;
mod sorted_sets;
#[path = "../../../tests/suite/differential/scripts.rs"]
mod table;
mod tracking;

use std::time::Duration;

use quorlock_resp::Frame;

use super::call::{bulk, ok};
use super::*;

const RELEASE: &str = include_str!("../../lock/script/release.lua");
const RELEASE_SHA1: &str = "0be1dcf15509e3cc5178dcb10f9ae8085a5b7aa0";
const EXTEND: &str = include_str!("../../lock/script/extend.lua");
const ACQUIRE: &str = concat!(
    include_str!("../../lease/script/standing.lua"),
    include_str!("../../lock/script/acquire.lua")
);
const INITIALISE: &str = include_str!("../../lease/script/initialise.lua");

/// A node, a connection, and a clock.
struct World {
    store: Store,
    me: SessionId,
    now: Duration,
}

impl World {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let mut store = Store::new(setup);
        let me = store.connect();
        Self { store, me, now: Duration::from_secs(1_000_000) }
    }

    fn users(users: &[(&str, User)]) -> Self {
        let users = users.iter().map(|(name, user)| ((*name).to_owned(), user.clone()));
        Self::with(Setup { users: users.collect(), ..Setup::default() })
    }

    fn effects(&mut self, session: SessionId, words: &[&str]) -> Effects {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.store.execute(session, &words, self.now)
    }

    /// The reply, where there is nothing but one.
    #[track_caller]
    fn say(&mut self, words: &[&str]) -> Frame {
        let effects = self.effects(self.me, words);
        assert!(effects.ended.is_empty(), "{effects:?}");
        let [(to, reply)] = &effects.messages[..] else { panic!("{effects:?}") };
        assert_eq!(*to, self.me);
        reply.clone()
    }

    #[track_caller]
    fn error(&mut self, words: &[&str]) -> String {
        let reply = self.say(words);
        let error = reply.as_error().unwrap_or_else(|| panic!("{words:?}: {reply:?}"));
        String::from_utf8(error.to_vec()).unwrap()
    }

    #[track_caller]
    fn int(&mut self, words: &[&str]) -> i64 {
        self.say(words).as_integer().unwrap()
    }

    #[track_caller]
    fn ok(&mut self, words: &[&str]) {
        assert_eq!(self.say(words), ok(), "{words:?}");
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }
}

fn by_rules(rules: &str) -> User {
    User::by_rules(rules, Version::default()).unwrap()
}

#[test]
fn set_obeys_each_option() {
    let mut world = World::new();
    world.ok(&["SET", "k", "a", "NX", "PX", "100"]);
    assert_eq!(world.say(&["set", "k", "b", "nx"]), Frame::Null);
    assert_eq!(world.say(&["SET", "k", "b", "GET"]), bulk("a"));
    assert_eq!(world.int(&["PTTL", "k"]), -1, "a plain SET takes the end away");
    assert_eq!(world.say(&["SET", "none", "b", "XX"]), Frame::Null);
    world.ok(&["SET", "k", "c", "XX", "EX", "2"]);
    assert_eq!(world.int(&["PTTL", "k"]), 2_000);
    world.ok(&["SET", "k", "d", "IFEQ", "c", "KEEPTTL"]);
    assert_eq!(world.say(&["SET", "k", "e", "IFEQ", "c"]), Frame::Null);
    assert_eq!(world.say(&["SET", "none", "e", "IFEQ", "c"]), Frame::Null);
    assert_eq!(world.int(&["TTL", "k"]), 2);
    world.pass(2_000);
    assert_eq!(world.say(&["GET", "k"]), Frame::Null, "it ends when its time is over");
    for wrong in [&["NX", "XX"][..], &["PX"], &["PX", "1", "EX", "1"], &["IFEQ", "x", "NX"]] {
        let words = [&["SET", "k", "v"], wrong].concat();
        assert_eq!(world.error(&words), "ERR syntax error", "{wrong:?}");
    }
    for (millis, error) in [
        ("0", "ERR invalid expire time in 'set' command"),
        ("-1", "ERR invalid expire time in 'set' command"),
        ("9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("x", "ERR value is not an integer or out of range"),
        ("1.5", "ERR value is not an integer or out of range"),
    ] {
        assert_eq!(world.error(&["SET", "k", "v", "PX", millis]), error);
    }
    assert_eq!(world.int(&["EXISTS", "k"]), 0);
}

#[test]
fn keys_are_deleted_and_end_and_are_counted() {
    let mut world = World::new();
    world.ok(&["SET", "k", "v", "PX", "50"]);
    world.ok(&["SET", "l", "v"]);
    assert_eq!(world.int(&["PTTL", "none"]), -2);
    assert_eq!(world.int(&["PEXPIRE", "k", "80"]), 1);
    assert_eq!(world.int(&["PEXPIRE", "none", "80"]), 0);
    world.pass(79);
    assert_eq!(world.int(&["PTTL", "k"]), 1);
    world.pass(1);
    assert_eq!(world.int(&["PTTL", "k"]), -2);
    assert_eq!(world.int(&["DELIFEQ", "l", "w"]), 0);
    assert_eq!(world.int(&["DELIFEQ", "l", "v"]), 1);
    world.ok(&["SET", "a", "1"]);
    assert_eq!(world.int(&["INCR", "a"]), 2);
    assert_eq!(world.int(&["DEL", "a", "b", "a"]), 1);
    world.ok(&["SET", "gone", "v"]);
    assert_eq!(world.int(&["PEXPIRE", "gone", "-1"]), 1);
    assert_eq!(world.int(&["DBSIZE"]), 0);
    let info = world.say(&["INFO", "stats"]);
    assert!(info.as_str().unwrap().contains("expired_keys:2\r\n"), "{info:?}");
}

#[test]
fn other_types_are_no_locks() {
    let mut world = World::new();
    assert_eq!(world.int(&["HSET", "h", "f", "v", "g", "w"]), 2);
    assert_eq!(world.int(&["RPUSH", "l", "a"]), 1);
    for key in ["h", "l"] {
        for words in [&["GET", key][..], &["DELIFEQ", key, "v"], &["SET", key, "v", "IFEQ", "v"]] {
            assert!(world.error(words).starts_with("WRONGTYPE "), "{words:?}");
        }
        assert_eq!(world.say(&["SET", key, "v", "NX", "PX", "9"]), Frame::Null);
        assert_eq!(world.int(&["EVAL", RELEASE, "1", key, "v"]), -1);
    }
    assert_eq!(world.say(&["TYPE", "h"]).as_str(), Ok("hash"));
}

#[test]
fn what_is_no_command_is_refused_as_servers_do() {
    let mut world = World::new();
    assert_eq!(
        world.error(&["FOO", "a", "b"]),
        "ERR unknown command 'FOO', with args beginning with: 'a' 'b' "
    );
    assert_eq!(world.error(&["GET"]), "ERR wrong number of arguments for 'get' command");
    assert!(world.error(&["CLIENT", "DANCE"]).starts_with("ERR unknown subcommand"));
    assert_eq!(world.error(&["SELECT", "16"]), "ERR DB index is out of range");
    world.ok(&["SET", "k", "v"]);
    world.ok(&["SELECT", "7"]);
    assert_eq!(world.say(&["GET", "k"]), Frame::Null, "databases are apart");
}

/// As the servers themselves say it; all of it is compared with them in `tests/suite/differential`.
#[test]
fn each_version_refuses_in_its_own_words() {
    let cases = [
        (Version::redis("6.2.14"), "ERR unknown command `FOO`, with args beginning with: `a`, "),
        (Version::redis("7.0.15"), "ERR unknown command 'FOO', with args beginning with: 'a' "),
        (Version::valkey("9.1.2"), "ERR unknown command 'FOO', with args beginning with: 'a' "),
    ];
    for (version, unknown) in cases {
        let version = version.unwrap();
        let mut world = World::with(Setup { version, ..Setup::default() });
        assert_eq!(world.error(&["FOO", "a"]), unknown);
        let expiry = world.error(&["SET", "k", "v", "PX", "0"]);
        assert_eq!(expiry.ends_with("in 'set' command"), version.has_subcommands(), "{expiry}");
        let dance = world.error(&["CLIENT", "DANCE"]);
        assert_eq!(dance.starts_with("ERR unknown"), version.has_subcommands(), "{dance}");
        let lost = world.error(&["EVALSHA", RELEASE_SHA1, "0"]);
        assert_eq!(lost.ends_with("use EVAL."), !version.is_valkey(), "{lost}");
        world.ok(&["SET", "k", "v"]);
        let raised = world.error(&["EVAL", EXTEND, "1", "k", "v", "x"]);
        assert!(raised.contains("user_script:12: attempt to compare number with nil"), "{raised}");
        assert_eq!(raised.starts_with("ERR Error running"), !version.has_subcommands());
    }
}

#[test]
fn the_handshake_tells_who_is_there() {
    let mut world = World::with(Setup { run_id: "a7".repeat(20), ..Setup::default() });
    let hello = world.say(&["HELLO", "3", "SETNAME", "web"]);
    let fields = hello.as_pairs().unwrap();
    assert_eq!(fields.get(b"id"), Some(&Frame::Integer(world.me)));
    assert_eq!(fields.get(b"role"), Some(&bulk("master")));
    assert!(world.store.dialect(world.me).resp3);
    assert_eq!(world.say(&["CLIENT", "GETNAME"]), bulk("web"));
    assert_eq!(world.error(&["HELLO", "4"]), "NOPROTO unsupported protocol version");
    let info = world.say(&["INFO", "server"]);
    assert!(info.as_str().unwrap().contains(&format!("run_id:{}\r\n", "a7".repeat(20))));
    assert_eq!(world.say(&["TIME"]).as_items().unwrap()[0], bulk("1000000"));
    let next = world.store.connect();
    assert!(next > world.me);
    world.store.restart("b8".repeat(20), true);
    assert!(!world.store.is_connected(next), "a process takes its connections along");
    assert_eq!(world.store.connect(), 1);
}

#[test]
fn a_password_is_asked_for_and_rights_are_kept() {
    let alice = by_rules("on >pw ~lock:* +@all -info -eval");
    let boss = User::with_password("boss");
    let mut world = World::users(&[("default", boss), ("alice", alice)]);
    assert_eq!(world.error(&["GET", "k"]), "NOAUTH Authentication required.");
    assert!(world.error(&["HELLO", "3"]).starts_with("NOAUTH HELLO must be called"));
    assert!(world.error(&["AUTH", "wrong"]).starts_with("WRONGPASS "));
    world.ok(&["AUTH", "boss"]);
    world.ok(&["SET", "other", "v"]);
    assert!(world.say(&["HELLO", "3", "AUTH", "alice", "pw"]).as_pairs().is_ok());
    world.ok(&["SET", "lock:1", "v"]);
    assert_eq!(world.error(&["GET", "other"]), "NOPERM No permissions to access a key");
    assert_eq!(
        world.error(&["INFO"]),
        "NOPERM User alice has no permissions to run the 'info' command"
    );
    assert!(world.error(&["EVAL", RELEASE, "1", "lock:1", "v"]).starts_with("NOPERM "));
}

#[test]
fn only_our_own_scripts_run_and_only_known_ones_by_digest() {
    let mut world = World::new();
    let name = world.say(&["SCRIPT", "LOAD", RELEASE]);
    let name = name.as_str().unwrap().to_owned();
    world.ok(&["SET", "k", "v"]);
    assert_eq!(world.int(&["EVALSHA", &name, "1", "k", "w"]), -1);
    assert_eq!(world.int(&["EVALSHA", &name, "1", "k", "v"]), 1);
    assert_eq!(world.int(&["EVALSHA", &name, "1", "k", "v"]), 0);
    let unknown = "f".repeat(40);
    let known = world.say(&["SCRIPT", "EXISTS", &name, &unknown]);
    assert_eq!(known.as_items().unwrap(), [Frame::Integer(1), Frame::Integer(0)]);
    assert!(world.error(&["EVALSHA", &unknown, "0"]).starts_with("NOSCRIPT "));
    world.ok(&["SCRIPT", "FLUSH"]);
    assert!(world.error(&["EVALSHA", &name, "1", "k", "v"]).starts_with("NOSCRIPT "));
    assert!(world.error(&["EVAL", "return 1", "0"]).contains("quorlock's own scripts"));
    assert!(world.error(&["EVAL", RELEASE, "2", "k"]).contains("greater than number of args"));
}

#[test]
fn an_extension_neither_shortens_nor_creates() {
    let mut world = World::new();
    let extend = |world: &mut World, ttl: &str| world.int(&["EVAL", EXTEND, "1", "k", "v", ttl]);
    assert_eq!(extend(&mut world, "100"), 0);
    world.ok(&["SET", "k", "v", "PX", "50"]);
    assert_eq!(extend(&mut world, "100"), 1);
    assert_eq!(extend(&mut world, "10"), 1);
    assert_eq!(world.int(&["PTTL", "k"]), 100);
    assert!(world.error(&["EVAL", EXTEND, "1", "k", "v", "x"]).contains("number with nil"));
    world.ok(&["SET", "k", "w"]);
    assert_eq!(extend(&mut world, "100"), -1);
}

#[test]
fn a_life_that_is_set_exactly_is_shortened_too() {
    let mut world = World::new();
    let set =
        |world: &mut World, ttl: &str| world.int(&["EVAL", EXTEND, "1", "k", "v", ttl, "exactly"]);
    assert_eq!(set(&mut world, "10"), 0);
    world.ok(&["SET", "k", "v", "PX", "50"]);
    for ttl in [10, 100] {
        assert_eq!(set(&mut world, &ttl.to_string()), 1);
        assert_eq!(world.int(&["PTTL", "k"]), ttl);
    }
    world.ok(&["SET", "k", "w", "PX", "50"]);
    assert_eq!(set(&mut world, "10"), -1);
    assert_eq!(world.int(&["PTTL", "k"]), 50);
    // One that was revoked lives no longer by it.
    world.ok(&["SET", "k", "v!", "PX", "50"]);
    for (ttl, answer, left) in [(51, -2, 50), (10, 1, 10)] {
        assert_eq!(set(&mut world, &ttl.to_string()), answer);
        assert_eq!(world.int(&["PTTL", "k"]), left);
    }
}

#[test]
fn a_node_without_an_epoch_is_in_quarantine_first() {
    let mut world = World::new();
    let acquire = |world: &mut World, ttl: &str, longest: &str, name: &str| {
        world.say(&["EVAL", ACQUIRE, "3", "e", "q", "k", "v", ttl, longest, name])
    };
    let initialise = |world: &mut World, act: &str| {
        world.say(&["EVAL", INITIALISE, "2", "e", "q", act, "300", "abc"])
    };
    let reason =
        |code, millis| Frame::Array(vec![Frame::Integer(code), Frame::Integer(millis)].into());
    assert_eq!(initialise(&mut world, "look"), Frame::Integer(0));
    assert_eq!(acquire(&mut world, "100", "300", "abc"), reason(2, 300));
    world.pass(100);
    assert_eq!(acquire(&mut world, "100", "300", "abc"), reason(2, 200));
    world.pass(200);
    assert_eq!(acquire(&mut world, "100", "300", "abc"), Frame::Integer(1));
    assert_eq!(acquire(&mut world, "100", "300", "abc"), Frame::Integer(-1));
    assert_eq!(initialise(&mut world, "look"), Frame::Integer(1));
    assert_eq!(acquire(&mut world, "100", "301", "abc"), reason(3, 300));
    assert_eq!(acquire(&mut world, "100", "300", "def"), reason(2, 300), "another process");
    assert_eq!(initialise(&mut world, "write"), Frame::Integer(1));
    assert_eq!(world.int(&["EXISTS", "q"]), 0);
    assert!(acquire(&mut world, "400", "300", "abc").as_error().is_some());
    assert!(acquire(&mut world, "1.5", "300", "abc").as_error().is_some());
    world.ok(&["SET", "q", "forever"]);
    assert_eq!(acquire(&mut world, "100", "300", "abc"), reason(4, 0));
    world.ok(&["SET", "e", "no epoch at all"]);
    assert_eq!(initialise(&mut world, "look"), reason(4, 0));
}

#[test]
fn a_script_meets_the_rights_and_the_memory_where_a_command_would() {
    let rules = "on nopass ~* +@all -pttl";
    let mut world = World::users(&[("default", by_rules(rules))]);
    world.ok(&["SET", "k", "v", "PX", "50"]);
    assert_eq!(world.int(&["EVAL", EXTEND, "1", "k", "v", "90"]), 1, "set blindly");
    let refused = world.error(&["EVAL", ACQUIRE, "3", "e", "q", "l", "v", "1", "1", "abc"]);
    assert!(refused.starts_with("ERR ACL failure in script"), "{refused}");
    world.ok(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(world.error(&["SET", "l", "v"]).starts_with("OOM "));
    assert_eq!(world.int(&["EVAL", RELEASE, "1", "k", "v"]), 1, "a release needs no memory");
    let mut replica = World::with(Setup { is_replica: true, ..Setup::default() });
    assert!(replica.error(&["SET", "l", "v"]).starts_with("READONLY "));
}

#[test]
fn who_has_read_a_key_is_told_once_of_its_change() {
    let mut world = World::new();
    let (me, other) = (world.me, world.store.connect());
    for session in [me, other] {
        world.effects(session, &["HELLO", "3"]);
    }
    world.ok(&["CLIENT", "TRACKING", "ON", "NOLOOP"]);
    world.ok(&["SET", "k", "v", "PX", "100"]);
    world.say(&["GET", "k"]);
    world.ok(&["SET", "k", "w", "PX", "100"]);
    world.say(&["GET", "k"]);
    let told = |key| (me, Frame::Push(vec![bulk("invalidate"), key].into()));
    let k = || Frame::Array(vec![bulk("k")].into());
    let by_other = world.effects(other, &["SET", "k", "x", "PX", "100"]);
    assert_eq!(by_other.messages, [(other, ok()), told(k())]);
    assert_eq!(world.effects(other, &["DEL", "k"]).messages.len(), 1, "it was told already");

    world.effects(other, &["SET", "k", "x", "PX", "100"]);
    world.say(&["EVAL", RELEASE, "1", "k", "another's"]);
    world.pass(100);
    assert_eq!(world.store.next_end(), Some(world.now));
    assert_eq!(world.store.advance(world.now).messages, [told(k())], "its end has come");
    assert_eq!(world.effects(other, &["FLUSHALL"]).messages, [(other, ok()), told(Frame::Null)]);
    assert!(world.error(&["CLIENT", "TRACKING", "ON", "BCAST"]).contains("BCAST mode on/off"));
    world.ok(&["CLIENT", "TRACKING", "OFF"]);
    world.ok(&["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a:"]);
    assert_eq!(world.effects(other, &["SET", "b:1", "v"]).messages.len(), 1);
    assert_eq!(world.effects(other, &["SET", "a:1", "v"]).messages.len(), 2);
    world.ok(&["CLIENT", "TRACKING", "OFF"]);
    assert_eq!(world.effects(other, &["SET", "a:1", "w"]).messages.len(), 1);
}

#[test]
fn connections_end_when_they_are_killed_and_nothing_more_is_executed_for_them() {
    let mut world = World::new();
    let (me, other) = (world.me, world.store.connect());
    let id = other.to_string();
    let effects = world.effects(me, &["CLIENT", "KILL", "ID", &id]);
    assert_eq!(effects.messages, [(me, Frame::Integer(1))]);
    assert_eq!(effects.ended, [other]);
    assert_eq!(world.int(&["CLIENT", "KILL", "ID", &id]), 0);
    assert_eq!(world.effects(other, &["SET", "k", "v"]), Effects::default());
    assert_eq!(world.int(&["DBSIZE"]), 0);
    let effects = world.effects(me, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"]);
    assert_eq!((effects.messages.len(), effects.ended), (1, vec![me]));
}

#[test]
fn of_two_pauses_the_longer_and_the_wider_count() {
    let mut world = World::new();
    let until = |world: &World, name: &str| {
        let until = world.store.paused_until(name.as_bytes())?;
        Some((until - world.now).as_millis())
    };
    for wrong in [&["CLIENT", "PAUSE", "x"][..], &["CLIENT", "PAUSE", "-1"]] {
        assert!(world.error(wrong).starts_with("ERR timeout is "), "{wrong:?}");
    }
    assert!(world.error(&["CLIENT", "PAUSE", "9", "SOME"]).contains("mode must be"));
    world.ok(&["CLIENT", "PAUSE", "20", "WRITE"]);
    for name in ["SET", "del", "EVAL", "evalsha", "FLUSHALL", "INCR"] {
        assert_eq!(until(&world, name), Some(20), "{name}");
    }
    for name in ["GET", "PING", "CLIENT", "SCRIPT", "INFO", "NONE"] {
        assert_eq!(until(&world, name), None, "{name}");
    }
    world.ok(&["CLIENT", "PAUSE", "10", "ALL"]);
    assert_eq!((until(&world, "SET"), until(&world, "GET")), (Some(20), Some(20)));
    world.pass(20);
    world.ok(&["CLIENT", "PAUSE", "5", "WRITE"]);
    assert_eq!((until(&world, "SET"), until(&world, "GET")), (Some(5), None), "the last is over");
    world.ok(&["CLIENT", "UNPAUSE"]);
    assert!(!world.store.is_pausing() && until(&world, "SET").is_none());
}

#[test]
fn a_node_can_be_looked_into_and_restarted() {
    let mut world = World::new();
    world.ok(&["SET", "k", "v", "PX", "100"]);
    for (keeps_data, keys) in [(true, 1), (false, 0)] {
        world.store.restart("c9".repeat(20), keeps_data);
        assert_eq!(world.store.setup().run_id, "c9".repeat(20));
        assert_eq!(world.store.keys().len(), keys);
        let end = world.now + Duration::from_millis(100);
        let text = world.store.text(b"k", world.now);
        assert_eq!(text, (keys == 1).then(|| ("v".into(), Some(end))));
        assert_eq!(world.store.text(b"k", end), None);
    }
}
