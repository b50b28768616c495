//! What several connections say by turns, and what each of them hears then: messages, pushes, and
//! ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use support::need_process;

use super::mask::masked;
use super::raw::Raw;
use super::table::{ACQUIRE_ALL, RELEASE, Words};
use super::{Pair, on_all};

/// A title, and lines: a connection's name, and what it says at once, with `;` between commands.
/// `$release` and the like are the scripts.
type Dialogue = (&'static str, &'static str);

const DIALOGUES: [Dialogue; 12] = [
    (
        "channels in RESP2",
        "a SUBSCRIBE x y x
        b PUBLISH x hello ; PUBLISH none hello ; PUBSUB NUMSUB x none y ; PUBSUB NUMSUB
        b PUBSUB CHANNELS x* ; PUBSUB CHANNELS none ; PUBSUB NUMPAT ; PUBSUB CHANNELS x y
        b PUBSUB DANCE ; PUBSUB ; PUBSUB NUMPAT x ; PUBLISH ; PUBLISH x ; PUBLISH x y z ; SUBSCRIBE
        a PING ; PING hi ; GET k ; SET k v ; CLIENT GETNAME ; ECHO a ; EVAL x 0 ; PUBLISH x y
        a FOO ; GET ; SUBSCRIBE ; CLIENT DANCE ; CLIENT SETNAME ; CONFIG SET maxmemory ; RESET x
        a HELLO 3
        a UNSUBSCRIBE none x
        b PUBLISH x hello ; PUBLISH y hello
        a UNSUBSCRIBE ; UNSUBSCRIBE ; UNSUBSCRIBE none ; GET k
        b PUBLISH y hello
        a SUBSCRIBE x ; QUIT
        b PUBLISH x gone ; PUBSUB CHANNELS",
    ),
    (
        "channels in RESP3",
        "a HELLO 3
        a SUBSCRIBE x y x
        b PUBLISH x hello ; PUBLISH none hello ; PUBSUB NUMSUB x none y
        a PING ; PING hi ; GET none ; SET k v ; PUBLISH none y ; PUBSUB NUMSUB x ; PUBSUB CHANNELS y
        a PUBLISH x mine
        a PUBLISH x mine ; PING
        a UNSUBSCRIBE none x
        b PUBLISH x hello ; PUBLISH y hello
        a HELLO 2
        a GET k
        b PUBLISH y hello
        a UNSUBSCRIBE ; UNSUBSCRIBE
        a HELLO 3
        a UNSUBSCRIBE ; UNSUBSCRIBE none ; GET k",
    ),
    (
        "channels and databases, and several who listen",
        "a HELLO 3
        a SELECT 1 ; SUBSCRIBE x
        b SUBSCRIBE x
        c SELECT 2 ; PUBLISH x one ; PUBLISH x two ; PUBSUB NUMSUB x ; PUBSUB CHANNELS
        c FLUSHALL ; PUBLISH x three",
    ),
    (
        "who resets a connection",
        "a SUBSCRIBE x
        a RESET
        b PUBLISH x hello
        a CLIENT SETNAME me ; SELECT 3 ; SET k three
        a HELLO 3
        a CLIENT TRACKING ON ; GET k
        a RESET
        a CLIENT GETNAME ; GET k ; CLIENT CACHING YES
        b SELECT 3 ; DEL k ; RESET ; DEL k",
    ),
    (
        "rights to channels",
        "a ACL SETUSER dora reset on nopass ~* +@all
        a ACL SETUSER emil reset on nopass ~* resetchannels &news:* &one +@all
        a ACL SETUSER fred reset on nopass ~* allchannels +@all -publish
        a ACL SETUSER gina reset on nopass ~* resetchannels +@all
        a ACL SETUSER emil &* ; ACL SETUSER emil &two ; ACL SETUSER emil allchannels &two
        a ACL SETUSER emil resetchannels &news:* &one ; ACL SETUSER emil &
        b AUTH dora x ; SUBSCRIBE x
        b UNSUBSCRIBE ; PUBLISH x hello
        c AUTH emil x ; SUBSCRIBE one ; PUBLISH one hello
        c SUBSCRIBE news:1 one ; SUBSCRIBE news:1 other ; UNSUBSCRIBE other ; SUBSCRIBE news:2
        c UNSUBSCRIBE one news:1 news:2
        c PUBLISH news:1 hello ; PUBLISH other hello ; PUBSUB CHANNELS
        d AUTH fred x ; PUBLISH x hello ; SUBSCRIBE x
        e AUTH gina x ; SUBSCRIBE x ; PUBLISH x hello ; PUBSUB CHANNELS ; UNSUBSCRIBE x",
    ),
    (
        "rights that are taken away",
        "a ACL SETUSER emil reset on nopass ~* resetchannels &news:* &one +@all
        b AUTH emil x ; SUBSCRIBE one
        c AUTH emil x ; SUBSCRIBE news:1
        d AUTH emil x
        e AUTH emil x ; GET none
        e HELLO 3
        e SUBSCRIBE one
        a ACL SETUSER emil &two
        a ACL SETUSER emil resetchannels &news:*
        a PUBLISH one hello ; PUBLISH news:1 hello",
    ),
    (
        "who is killed by type",
        "a SUBSCRIBE x
        b HELLO 3
        b SUBSCRIBE x
        c PING
        d CLIENT KILL TYPE pubsub
        d PUBLISH x hello
        d CLIENT KILL TYPE normal",
    ),
    (
        "tracking by choice",
        "a HELLO 3
        a CLIENT CACHING YES ; CLIENT CACHING ; CLIENT CACHING MAYBE
        a CLIENT TRACKING ON OPTIN OPTOUT ; CLIENT TRACKING ON OPTIN BCAST
        a CLIENT TRACKING ON BCAST OPTOUT ; CLIENT TRACKING ON OPTIN OPTOUT BCAST
        a CLIENT TRACKING ON OPTIN ; CLIENT TRACKING ON OPTOUT ; CLIENT TRACKING ON OPTIN OPTIN
        a CLIENT TRACKING ON BCAST ; CLIENT CACHING NO ; CLIENT CACHING MAYBE ; CLIENT CACHING
        b SET k v
        a GET k
        b DEL k
        a CLIENT CACHING YES ; GET k
        b SET k v
        b DEL k
        a CLIENT CACHING YES ; GET k ; GET l
        b SET k v ; SET l v ; DEL l
        a CLIENT CACHING YES ; PING ; GET k
        b SET k w
        a CLIENT CACHING YES ; FOO ; GET k
        b SET k w
        a CLIENT CACHING YES ; GET ; GET k
        b SET k w
        a CLIENT CACHING YES ; CLIENT GETNAME ; GET k
        b SET k w
        a CLIENT CACHING YES ; CLIENT CACHING MAYBE ; CLIENT SETNAME a\u{1} ; GET k
        b SET k w
        a CLIENT CACHING YES ; CLIENT TRACKING ON OPTIN ; GET k
        b SET k w
        a CLIENT CACHING YES ; CLIENT TRACKING OFF ; CLIENT TRACKING ON OPTIN ; GET k
        b SET k w
        a CLIENT CACHING YES ; SET k x NX
        b SET k w
        a CLIENT CACHING YES ; EXISTS k l
        b DEL k ; SET l v
        a CLIENT CACHING YES ; PTTL k
        b SET k v
        a CLIENT CACHING YES ; GET k ; CLIENT TRACKING ON
        b SET k w
        a CLIENT CACHING YES ; GET l ; CLIENT TRACKING ON NOLOOP OPTIN
        a GET k
        b SET k w ; SET l w",
    ),
    (
        "tracking by choice, in scripts",
        "a HELLO 3
        a CLIENT TRACKING ON OPTIN
        a EVAL $release 1 k other
        b SET k v
        a CLIENT CACHING YES ; EVAL $release 1 k other
        b SET k w
        a CLIENT CACHING YES ; EVAL $release 1 k other ; GET l
        b SET k v ; SET l v
        a CLIENT CACHING YES ; EVAL $acquire_all 2 k l mine 10000
        b SET l w
        b SET k w
        a CLIENT CACHING YES ; EVAL $acquire_all 2 none l mine 10000
        b SET none w
        b SET l w
        a CLIENT CACHING YES ; EVAL $release 2 k m w
        b SET m w
        a CLIENT CACHING YES ; EVAL $release 1 k w
        b SET k v
        a CLIENT TRACKING ON ; CLIENT CACHING YES ; EVAL $release 1 k other
        b DEL k",
    ),
    (
        "tracking unless it is refused",
        "a HELLO 3
        a CLIENT TRACKING ON OPTOUT ; CLIENT CACHING YES ; CLIENT TRACKING ON OPTIN
        a GET k
        b SET k v
        a CLIENT CACHING NO ; GET k ; GET l
        b SET k w ; SET l w
        a CLIENT CACHING NO ; EVAL $release 1 k other ; GET k
        b DEL k
        a CLIENT CACHING NO ; EVAL $release 1 k other
        b SET k v
        a CLIENT TRACKING ON ; CLIENT CACHING NO ; GET k
        b DEL k",
    ),
    (
        "tracking what others and oneself change",
        "a HELLO 3
        a CLIENT TRACKING ON NOLOOP
        a GET k
        a SET k v
        b DEL k
        a GET k
        b SET k v
        a SET k x NX
        b DEL k
        a GET k ; CLIENT TRACKING OFF
        b SET k v
        a CLIENT TRACKING ON
        b DEL k
        a GET k ; CLIENT TRACKING OFF ; CLIENT TRACKING ON NOLOOP
        b SET k v
        a CLIENT TRACKING OFF ; CLIENT TRACKING ON
        a ZCARD z ; ZSCORE y m
        b ZADD z 1 m ; ZADD y XX 1 m ; ZADD y 1 m
        a ZRANGE z 0 -1
        b ZADD z 1 m ; ZADD z NX 2 m ; ZREM z none ; ZREMRANGEBYSCORE z 7 9 ; ZADD z 2 m
        a ZRANK z m ; ZCOUNT y 0 1
        b ZREM z m ; ZREMRANGEBYSCORE y -inf inf
        a ZREVRANGE z 0 -1 ; ZRANGEBYSCORE y 0 1
        a ZADD z 1 m
        a ZRANGE z 0 -1 ; ZADD z CH 1 m ; PING",
    ),
    (
        "tracking in RESP2",
        "a CLIENT TRACKING ON ; GET k
        b SET k v
        a GET k
        a HELLO 3
        b SET k w
        a GET k
        b SET k v
        a GET k
        a HELLO 2
        b SET k w ; FLUSHALL
        a CLIENT TRACKING OFF ; CLIENT TRACKING ON BCAST
        b SET k v
        a HELLO 3
        b SET k w",
    ),
];

#[test]
fn several_connections_hear_on_a_node_what_they_hear_on_a_server() {
    need_process!();
    on_all("of several connections", |program: PathBuf| {
        let pair = Pair::start(program, |server| server, |node| node);
        DIALOGUES.iter().flat_map(|dialogue| pair.compare_dialogue(dialogue)).collect()
    });
}

impl Pair {
    fn compare_dialogue(&self, (title, text): &Dialogue) -> Vec<String> {
        let lines: Vec<&'static str> = text.lines().map(str::trim).collect();
        let theirs = play(self.server.addr(), &lines);
        let ours = play(self.node.addr().expect("it listens"), &lines);
        let mut differences = Vec::new();
        for (line, (ours, theirs)) in lines.iter().zip(ours.iter().zip(theirs)) {
            if *ours != theirs {
                let what = format!("{}: {title}: {line}", self.name);
                differences.push(format!("{what}\n  {ours}\n  {theirs}"));
            }
        }
        differences
    }
}

/// What each connection hears behind each line, the connections in the order of their names.
fn play(addr: SocketAddr, lines: &[&'static str]) -> Vec<String> {
    Raw::connect(addr).call(&["FLUSHALL"]);
    let mut connections = BTreeMap::new();
    let mut heard = Vec::new();
    for line in lines {
        let (speaker, said) = line.split_once(' ').expect("a name and what it says");
        let speaking = connections.entry(speaker).or_insert_with(|| Raw::connect(addr));
        let said: Vec<Words> = said.split(';').map(words).collect();
        let greets = said.iter().any(|words| words[0] == "HELLO");
        let answer = speaking.converse(&said);
        // Nothing but the greeting is in that line.
        let answer = if greets { masked(&["HELLO"], &answer) } else { answer };
        let mut told = BTreeMap::from([(speaker, answer)]);
        for (name, connection) in connections.iter_mut().filter(|(name, _)| **name != speaker) {
            told.insert(name, connection.converse(&[]));
        }
        let shown = told.iter().map(|(name, bytes)| format!("{name}: {}", bytes.escape_ascii()));
        heard.push(shown.collect::<Vec<_>>().join(" | "));
    }
    heard
}

fn words(said: &'static str) -> Words {
    let word = |word: &'static str| match word {
        "$release" => RELEASE,
        "$acquire_all" => ACQUIRE_ALL,
        word => word,
    };
    said.split_whitespace().map(word).collect()
}
