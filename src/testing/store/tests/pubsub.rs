//! Messages on channels: who gets which, in which form, and who may.

use quorlock_resp::Frame;

use super::super::call::{bulk, ok};
use super::super::{SessionId, Setup, User, Version};
use super::{World, by_rules};

fn push(words: &[&str], count: Option<i64>) -> Frame {
    let words = words.iter().map(bulk);
    Frame::Push(words.chain(count.map(Frame::Integer)).collect())
}

fn message(to: SessionId, channel: &str, text: &str) -> (SessionId, Frame) {
    (to, push(&["message", channel, text], None))
}

#[test]
fn a_message_goes_to_all_that_are_subscribed_and_to_no_other() {
    let mut world = World::new();
    let (me, other) = (world.me, world.store.connect());
    let both = world.effects(other, &["SUBSCRIBE", "x", "y"]).messages;
    let confirmed = |channel, count| (other, push(&["subscribe", channel], Some(count)));
    assert_eq!(both, [confirmed("x", 1), confirmed("y", 2)], "there is no other reply");
    assert_eq!(world.int(&["PUBLISH", "none", "hello"]), 0);
    let told = world.effects(me, &["PUBLISH", "x", "hello"]).messages;
    assert_eq!(told, [(me, Frame::Integer(1)), message(other, "x", "hello")]);
    let (reply, effects) = world.store.execute_as_operator(&[b"PUBLISH", b"y", b"hi"], world.now);
    assert_eq!((reply, effects.messages), (Frame::Integer(1), vec![message(other, "y", "hi")]));

    let left = world.effects(other, &["UNSUBSCRIBE", "x"]).messages;
    assert_eq!(left, [(other, push(&["unsubscribe", "x"], Some(1)))]);
    assert_eq!(world.int(&["PUBLISH", "x", "hello"]), 0);
    world.store.disconnect(other);
    assert_eq!(world.int(&["PUBLISH", "y", "hello"]), 0, "it is gone");
}

#[test]
fn a_subscriber_in_resp2_may_only_listen() {
    let mut world = World::new();
    assert_eq!(world.say(&["SUBSCRIBE", "x"]), push(&["subscribe", "x"], Some(1)));
    let refused = world.error(&["GET", "k"]);
    assert!(refused.starts_with("ERR Can't execute 'get': only "), "{refused}");
    let pong = Frame::Array(vec![bulk("pong"), bulk("")].into());
    assert_eq!(world.say(&["PING"]), pong);
    assert_eq!(world.say(&["RESET"]).as_str(), Ok("RESET"));
    assert_eq!(world.int(&["PUBLISH", "x", "hello"]), 0);
    world.say(&["HELLO", "3"]);
    world.say(&["SUBSCRIBE", "x"]);
    assert_eq!(world.say(&["GET", "k"]), Frame::Null, "in RESP3 it may say what it likes");
}

#[test]
fn what_a_connection_publishes_to_itself_comes_behind_the_reply_of_later_servers() {
    let valkey = Version::valkey("9.1.2").unwrap();
    for (version, is_behind) in [(Version::redis("7.0.15").unwrap(), false), (valkey, true)] {
        let mut world = World::with(Setup { version, runs_lua: true, ..Setup::default() });
        let me = world.me;
        world.say(&["HELLO", "3"]);
        world.say(&["SUBSCRIBE", "x"]);
        let script = "return redis.call('PUBLISH', 'x', 'hello')";
        for said in [&["PUBLISH", "x", "hello"][..], &["EVAL", script, "0"]] {
            let mut expected = [message(me, "x", "hello"), (me, Frame::Integer(1))];
            if is_behind {
                expected.reverse();
            }
            assert_eq!(world.effects(me, said).messages, expected, "{version:?} {said:?}");
        }
    }
}

#[test]
fn channels_need_a_right_also_in_scripts() {
    let me = by_rules("on nopass ~* &news:* +@all");
    let users = [("default".to_owned(), me)].into();
    let mut world = World::with(Setup { users, runs_lua: true, ..Setup::default() });
    assert_eq!(world.int(&["PUBLISH", "news:1", "hello"]), 0);
    let refused = "NOPERM No permissions to access a channel";
    assert_eq!(world.error(&["PUBLISH", "other", "hello"]), refused);
    assert_eq!(world.error(&["SUBSCRIBE", "news:1", "other"]), refused);
    let script = "return redis.call('PUBLISH', ARGV[1], 'hello')";
    assert_eq!(world.int(&["EVAL", script, "0", "news:1"]), 0);
    let told = world.error(&["EVAL", script, "0", "other"]);
    assert!(told.starts_with("ERR ACL failure in script: No permissions to access a channel"));
    assert_eq!(world.say(&["UNSUBSCRIBE", "other"]), push(&["unsubscribe", "other"], Some(0)));
}

#[test]
fn who_loses_a_right_to_its_channel_loses_its_connection() {
    let mut world = World::users(&[
        ("default", User::unlimited()),
        ("emil", by_rules("on nopass ~* &x &y +@all")),
    ]);
    let (x, y) = (world.store.connect(), world.store.connect());
    for (session, channel) in [(x, "x"), (y, "y")] {
        world.effects(session, &["AUTH", "emil", ""]);
        world.effects(session, &["SUBSCRIBE", channel]);
    }
    let effects = world.effects(world.me, &["ACL", "SETUSER", "emil", "resetchannels", "&y"]);
    assert_eq!((effects.messages, effects.ended), (vec![(world.me, ok())], vec![x]));
    let effects = world.effects(world.me, &["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(effects.ended, [y], "and not who listens to nothing");
}
