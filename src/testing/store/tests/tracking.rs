//! Which reads are remembered, and who is told of a change.

use super::super::{Setup, Version};
use super::World;

/// Two connections in RESP3 of which the first tracks with these options.
struct Pair {
    world: World,
    other: i64,
}

impl Pair {
    fn tracking(options: &[&str]) -> Self {
        Self::of(Version::default(), options)
    }

    fn of(version: Version, options: &[&str]) -> Self {
        let mut world = World::with(Setup { version, ..Setup::default() });
        let other = world.store.connect();
        world.say(&["HELLO", "3"]);
        world.ok(&[&["CLIENT", "TRACKING", "ON"], options].concat());
        Self { world, other }
    }

    /// Whether the one that tracks is told when the other one sets the key.
    fn is_told(&mut self, key: &str) -> bool {
        let messages = self.world.effects(self.other, &["SET", key, "v"]).messages;
        messages.iter().any(|(to, _)| *to == self.world.me)
    }
}

#[test]
fn by_choice_only_the_reads_of_the_next_command_are_remembered() {
    let mut pair = Pair::tracking(&["OPTIN"]);
    pair.world.say(&["GET", "k"]);
    assert!(!pair.is_told("k"));
    pair.world.ok(&["CLIENT", "CACHING", "YES"]);
    pair.world.say(&["EXISTS", "k", "l"]);
    pair.world.say(&["GET", "m"]);
    assert_eq!(["k", "l", "m"].map(|key| pair.is_told(key)), [true, true, false]);
    assert!(!pair.is_told("k"), "once");
    // A command that is refused uses it up, and another of `CLIENT` does not.
    for between in [&["FOO"][..], &["GET"], &["PING"], &["CLIENT", "ID"]] {
        pair.world.ok(&["CLIENT", "CACHING", "YES"]);
        pair.world.say(between);
        pair.world.say(&["GET", "k"]);
        assert_eq!(pair.is_told("k"), between[0] == "CLIENT", "{between:?}");
    }
}

#[test]
fn by_choice_all_reads_of_the_next_script_are_remembered() {
    let mut pair = Pair::tracking(&["OPTIN"]);
    let release = |pair: &mut Pair| pair.world.say(&["EVAL", super::RELEASE, "1", "k", "none"]);
    release(&mut pair);
    assert!(!pair.is_told("k"));
    pair.world.ok(&["CLIENT", "CACHING", "YES"]);
    release(&mut pair);
    release(&mut pair);
    assert!(pair.is_told("k") && !pair.is_told("k"));
}

/// Before 7.2 a script that reads is remembered with all keys that it was given.
#[test]
fn older_servers_remember_all_keys_of_a_script() {
    for (version, is_told) in [("7.0.15", true), ("7.2.4", false)] {
        let mut pair = Pair::of(Version::redis(version).unwrap(), &[]);
        pair.world.say(&["EVAL", super::RELEASE, "2", "k", "l", "none"]);
        assert!(pair.is_told("k"));
        assert_eq!(pair.is_told("l"), is_told, "{version}");
    }
}

#[test]
fn reads_can_be_left_out() {
    let mut pair = Pair::tracking(&["OPTOUT"]);
    pair.world.say(&["GET", "k"]);
    pair.world.ok(&["CLIENT", "CACHING", "NO"]);
    pair.world.say(&["GET", "l"]);
    assert!(pair.is_told("k") && !pair.is_told("l"));
    assert!(pair.world.error(&["CLIENT", "CACHING", "YES"]).contains("only valid"));
}

/// As servers do it: what was read before is remembered, whatever was said since.
#[test]
fn who_tracks_again_is_told_of_what_it_had_read() {
    let mut pair = Pair::tracking(&[]);
    pair.world.say(&["GET", "k"]);
    pair.world.ok(&["CLIENT", "TRACKING", "OFF"]);
    pair.world.ok(&["CLIENT", "TRACKING", "ON"]);
    assert!(pair.is_told("k"));
    pair.world.say(&["GET", "k"]);
    pair.world.ok(&["CLIENT", "TRACKING", "OFF"]);
    assert!(!pair.is_told("k"));
    pair.world.ok(&["CLIENT", "TRACKING", "ON"]);
    assert!(!pair.is_told("k"), "that change was the one");
}

#[test]
fn ones_own_change_forgets_the_read_in_silence_with_noloop() {
    let mut pair = Pair::tracking(&["NOLOOP"]);
    pair.world.say(&["GET", "k"]);
    pair.world.ok(&["SET", "k", "v"]);
    assert!(!pair.is_told("k"));
    pair.world.say(&["GET", "k"]);
    pair.world.say(&["SET", "k", "v", "NX"]);
    assert!(pair.is_told("k"), "what is refused changes nothing");
    pair.world.say(&["SET", "k", "v", "NX"]);
    assert!(!pair.is_told("k"), "and is no read");
}

#[test]
fn in_resp2_nothing_is_told() {
    let mut pair = Pair::tracking(&[]);
    pair.world.say(&["HELLO", "2"]);
    pair.world.say(&["GET", "k"]);
    assert!(!pair.is_told("k"));
    pair.world.say(&["GET", "k"]);
    pair.world.say(&["HELLO", "3"]);
    assert!(pair.is_told("k"));
}
