//! Sorted sets: what a client gets, what a script gets, and what is left.

use quorlock_resp::Frame;

use super::super::call::bulk;
use super::super::{Setup, Version};
use super::World;

#[test]
fn a_set_is_there_as_long_as_it_has_members() {
    let mut world = World::new();
    assert_eq!(world.int(&["ZADD", "z", "1", "a", "2", "b"]), 2);
    assert_eq!(world.say(&["TYPE", "z"]).as_str(), Ok("zset"));
    assert_eq!(world.int(&["PEXPIRE", "z", "100"]), 1);
    assert_eq!(world.int(&["ZREM", "z", "a", "a"]), 1);
    assert_eq!(world.int(&["PTTL", "z"]), 100, "its end is kept");
    assert_eq!(world.int(&["ZREMRANGEBYSCORE", "z", "(1", "2"]), 1);
    assert_eq!(world.int(&["EXISTS", "z"]), 0);
    assert_eq!(world.int(&["ZADD", "z", "1", "a"]), 1);
    assert_eq!(world.int(&["PTTL", "z"]), -1);
    assert_eq!(world.int(&["ZREM", "z", "a"]), 1);
    assert_eq!(world.int(&["DBSIZE"]), 0);
    world.ok(&["SET", "s", "v"]);
    assert!(world.error(&["ZADD", "s", "1", "a"]).starts_with("WRONGTYPE "));
    world.int(&["ZADD", "z", "1", "a"]);
    assert!(world.error(&["GET", "z"]).starts_with("WRONGTYPE "));
}

#[test]
fn scores_are_numbers_to_clients_in_resp3_and_texts_to_scripts() {
    let mut world = World::with(Setup { runs_lua: true, ..Setup::default() });
    world.int(&["ZADD", "z", "1.5", "a", "inf", "b"]);
    assert_eq!(world.say(&["ZSCORE", "z", "a"]), Frame::Double(1.5));
    let flat = |world: &mut World| world.say(&["ZRANGE", "z", "0", "0", "WITHSCORES"]);
    let pair = || Frame::Array(vec![bulk("a"), Frame::Double(1.5)].into());
    assert_eq!(flat(&mut world), pair());
    world.say(&["HELLO", "3"]);
    assert_eq!(flat(&mut world), Frame::Array(vec![pair()].into()));
    for (lua, told) in [
        ("return redis.call('ZSCORE', 'z', 'a')", bulk("1.5")),
        ("return redis.call('ZRANGE', 'z', 1, 1, 'WITHSCORES')[2]", bulk("inf")),
        ("return redis.call('ZREVRANGE', 'z', 0, 0)[1]", bulk("b")),
        ("return redis.call('ZRANK', 'z', 'b')", Frame::Integer(1)),
        ("return redis.call('ZSCORE', 'z', 'none')", Frame::Null),
    ] {
        assert_eq!(world.say(&["EVAL", lua, "0"]), told, "{lua}");
    }
}

/// A client that has read a set is told when a member comes or goes, and not when none does.
#[test]
fn who_has_read_a_set_is_told_of_its_change() {
    let mut world =
        World::with(Setup { version: Version::redis("8.2.3").unwrap(), ..Setup::default() });
    let other = world.store.connect();
    world.say(&["HELLO", "3"]);
    world.ok(&["CLIENT", "TRACKING", "ON"]);
    for (said, is_told) in [
        (&["ZADD", "z", "1", "a"][..], true),
        (&["ZADD", "z", "1", "a"], false),
        (&["ZADD", "z", "NX", "2", "a"], false),
        (&["ZADD", "z", "2", "a"], true),
        (&["ZREM", "z", "none"], false),
        (&["ZREMRANGEBYSCORE", "z", "7", "9"], false),
        (&["ZREM", "z", "a"], true),
        (&["ZREM", "z", "a"], false),
    ] {
        world.say(&["ZCARD", "z"]);
        let messages = world.effects(other, said).messages;
        assert_eq!(messages.iter().any(|(to, _)| *to == world.me), is_told, "{said:?}");
    }
}
