//! What is said, in which order, to a node and to a server.

const RELEASE: &str = include_str!("../../../src/lock/script/release.lua");
const EXTEND: &str = include_str!("../../../src/lock/script/extend.lua");
const ACQUIRE: &str = concat!(
    include_str!("../../../src/lease/script/standing.lua"),
    include_str!("../../../src/lock/script/acquire.lua")
);
const INITIALISE: &str = include_str!("../../../src/lease/script/initialise.lua");

pub(super) type Words = Vec<&'static str>;

/// Commands in lines, or between bars.
fn commands(text: &'static str) -> Vec<Words> {
    let lines = text.split(['\n', '|']).map(|line| line.split_whitespace().collect());
    lines.filter(|words: &Words| !words.is_empty()).collect()
}

/// Where no password is asked for.
pub(super) fn open() -> Vec<Words> {
    let mut said = commands(PLAIN);
    said.extend(commands(LATER));
    said.extend(commands(ARITY));
    said.extend(released_and_extended());
    said.extend(by_digest());
    said.extend(epochs());
    for ttl in ["", "x", "0", "-1", "1.5", "1e9", "30001"] {
        said.extend([vec!["FLUSHALL"], vec!["SET", "e", "abc 30000"], vec!["SET", "k", "v"]]);
        said.push(vec!["EVAL", ACQUIRE, "3", "e", "q", "l", "v", ttl, "30000", "abc"]);
        said.push(vec!["EVAL", INITIALISE, "2", "e", "q", "look", ttl, "abc"]);
        said.push(vec!["DBSIZE"]);
    }
    said.extend(commands(MEMORY));
    said.extend(starved());
    said
}

const PLAIN: &str = "
    PING | PING hello | ECHO hello | GET | GET a b | FOO | foo a b c | SET k | CLIENT DANCE
    SELECT x | SELECT 99 | SELECT -1 | SELECT 3 | SET k three | SELECT 0 | GET k
    SET k v NX PX 60000 | SET k w NX | SET k w XX GET | SET none w XX | SET k w NX XX | SET k w PX
    SET k w PX 0 | SET k w PX -1 | SET k w PX x | SET k w PX 1.5 | SET k w PX 9223372036854775807
    SET k w EX 9223372036854775807 | SET k w EX 0 | SET k w EX 1 PX 1 | SET k w PX 1 EX 1
    SET k w KEEPTTL EX 1 | SET k w EX 1 KEEPTTL | SET k w FOO | GET k | TTL k | SET k x EX 60
    TTL k | PTTL k | PERSIST k | PTTL k | PERSIST k | PTTL none | PEXPIRE none 9 | PEXPIRE k x
    PEXPIRE k 1.5 | PEXPIRE k 9223372036854775807 | PEXPIRE k -9223372036854775807
    SET k x | EXPIRE k 9223372036854775807 | EXPIRE k 60 | TTL k | PEXPIRE k 60000 | TTL k
    EXISTS k k none | TYPE k | TYPE none | STRLEN k | STRLEN none | INCR k | SET n 41 | INCR n
    GET n | SET n 9223372036854775807 | INCR n | SET n 007 | INCR n
    SET x v PXAT 1 | EXISTS x | SET x v EXAT 9999999999 | TTL none | DEL x | SET x v PXAT -5
    PEXPIRE n -1 | EXISTS n | HSET h f v g w | HSET h f | HSET h f v | GET h | TYPE h | INCR h
    SET h v NX PX 9 | SET h v GET | STRLEN h | PTTL h | RPUSH h a | RPUSH l a b | TYPE l | GET l
    HSET l f v | DEL h l none | UNLINK k | DBSIZE | SET a 1 | SET b 2 | KEYS b* | KEYS ?
    KEYS none*
    SCRIPT EXISTS ffff | EVALSHA ffff 0 | EVALSHA ffff x | EVALSHA ffff 1 | EVALSHA ffff -1
    AUTH wrong | AUTH nobody wrong | AUTH default any | CLIENT KILL ID x | CLIENT KILL ID 0
    CLIENT KILL ID 99999 | CLIENT KILL FOO bar | CLIENT KILL ID 99999 TYPE normal
    CLIENT KILL TYPE normal | CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME
    CLIENT SETNAME a\u{1} | CLIENT GETNAME | CLIENT ID | HELLO 4 | HELLO 1 | HELLO x | HELLO
    CLIENT PAUSE x | CLIENT PAUSE -1 | CLIENT PAUSE 1 SOME | CLIENT PAUSE 0 WRITE | CLIENT UNPAUSE
    CLIENT TRACKING | CLIENT TRACKING MAYBE | CLIENT TRACKING ON PREFIX a: | CLIENT TRACKING OFF
    CONFIG GET maxmemory | CONFIG GET maxmemory-policy | CONFIG GET none | CONFIG GET appendonly
    CONFIG GET appendfsync | CONFIG GET save | CONFIG SET none 1 | ROLE | TIME
    INFO server | INFO persistence | INFO replication | INFO memory | INFO none | FLUSHDB | DBSIZE
    SET a 1 | FLUSHALL | DBSIZE | FLUSHALL ASYNC | FLUSHALL FOO | FLUSHDB SYNC";

/// What only later servers know.
const LATER: &str = "
    FLUSHALL | SET k v PX 60000 | DELIFEQ k w | DELIFEQ k v | DELIFEQ k v | DELIFEQ k
    HSET h f v | DELIFEQ h v | SET h v IFEQ v | SET k v IFEQ v | SET k v | SET k w IFEQ x
    SET k w IFEQ v GET | SET k x IFEQ w PX 60000 | TTL k | SET k y IFEQ x KEEPTTL | TTL k
    SET k y IFEQ y NX | SET k y NX IFEQ y | GET k | SET k z NX GET | SET m z NX GET | GET m
    CLIENT SETINFO LIB-NAME quorlock | CLIENT SETINFO LIB-VER | PEXPIRE m 9000 XX
    PEXPIRE m 9000 NX | PEXPIRE m 9000 NX
    PEXPIRE m 8000 GT | PEXPIRE m 9999 GT | PEXPIRE m 90000 LT | PEXPIRE m 1 FOO
    EXPIRETIME none | PEXPIRETIME m | DEL m";

/// Each command without a word, and some with one too many.
const ARITY: &str = "
    AUTH | CLIENT | ECHO | PING a b | SELECT | CONFIG | DBSIZE a | KEYS | TIME a | EVAL | EVAL a
    EVALSHA | EVALSHA a | SCRIPT | DEL | UNLINK | EXISTS | HSET h | INCR | RPUSH l | SET | STRLEN
    TYPE | EXPIRE k | PERSIST | PEXPIRE k | PEXPIREAT k | PTTL | TTL | ECHO a b | SELECT 1 2
    GET a b c | INCR a b | TYPE a b | PTTL a b | CLIENT ID 1 | CLIENT KILL | CLIENT SETNAME
    CLIENT PAUSE | SCRIPT LOAD | SCRIPT DANCE | SCRIPT EXISTS | CONFIG GET | CONFIG DANCE
    CONFIG SET maxmemory | AUTH a b c";

/// A key is set while there is no memory left.
const MEMORY: &str = "
    FLUSHALL | SET a 1 | SET b v PX 90000 | CONFIG SET maxmemory 1 | SET a 2 | SET c 1 | INCR a
    HSET h f v | GET a | PEXPIRE a 90000 | DEL a";

/// Scripts without memory: one that only deletes, and one that would set a key.
fn starved() -> Vec<Words> {
    let released = vec!["EVAL", RELEASE, "1", "b", "v"];
    let extended = vec!["EVAL", EXTEND, "1", "b", "v", "99000"];
    let acquired = vec!["EVAL", ACQUIRE, "3", "e", "q", "c", "v", "10000", "30000", "abc"];
    let mut said = vec![extended, acquired, released];
    said.extend(commands("DBSIZE | CONFIG SET maxmemory 0 | SET a 2 | FLUSHALL"));
    said
}

fn released_and_extended() -> Vec<Words> {
    let mut said = Vec::new();
    for state in [&["DEL", "k"][..], &["SET", "k", "v", "PX", "60000"], &["HSET", "k", "f", "v"]] {
        for script in [RELEASE, EXTEND] {
            for value in ["other", "v"] {
                said.extend([vec!["FLUSHALL"], state.to_vec()]);
                said.push(vec!["EVAL", script, "1", "k", value, "90000"]);
                said.push(vec!["TTL", "k"]);
            }
        }
    }
    for ttl in ["x", "-1", "0", "1.5", ""] {
        said.extend([vec!["FLUSHALL"], vec!["SET", "k", "v", "PX", "60000"]]);
        said.push(vec!["EVAL", EXTEND, "1", "k", "v", ttl]);
        said.push(vec!["TTL", "k"]);
    }
    said
}

/// Scripts by their names, which a server must have learned.
fn by_digest() -> Vec<Words> {
    let mut said = commands("FLUSHALL | SCRIPT FLUSH | SCRIPT FLUSH ASYNC | SCRIPT FLUSH FOO");
    for (script, name) in [(RELEASE, RELEASE_SHA1), (EXTEND, EXTEND_SHA1)] {
        let upper: &'static str = String::leak(name.to_ascii_uppercase());
        said.extend([
            vec!["SCRIPT", "EXISTS", name],
            vec!["EVALSHA", name, "1", "k", "v", "90000"],
            vec!["SCRIPT", "LOAD", script],
            vec!["SCRIPT", "EXISTS", name, upper, "ffff"],
            vec!["EVALSHA", name, "1", "k", "v", "90000"],
            vec!["SET", "k", "v", "PX", "60000"],
            vec!["EVALSHA", upper, "1", "k", "w", "90000"],
            vec!["EVALSHA", upper, "1", "k", "v", "90000"],
            vec!["TTL", "k"],
            vec!["EVALSHA", name, "2", "k"],
            vec!["EVALSHA", name, "-1", "k"],
            vec!["EVALSHA", name, "x", "k"],
            vec!["EVAL", script, "x", "k"],
            vec!["EVAL", script, "3", "k", "v"],
            vec!["SCRIPT", "FLUSH"],
            vec!["EVALSHA", name, "1", "k", "v", "90000"],
        ]);
    }
    said
}

pub(super) const RELEASE_SHA1: &str = "916642b5b6dd4b1989e91ed6ff2b86d233493ab3";
pub(super) const EXTEND_SHA1: &str = "38c4b48c016c265132124c20017671204b3fa277";

fn epochs() -> Vec<Words> {
    let mut said = Vec::new();
    let epochs = ["abc 30000", "def 30000", "abc 9000", "none at all", "abc", " 30000"];
    for epoch in epochs.map(|epoch| vec!["SET", "e", epoch]).into_iter().chain([vec!["DEL", "e"]]) {
        for act in ["acquire", "look", "write"] {
            for quarantine in [&["DEL", "q"][..], &["SET", "q", "for ever"], &["RPUSH", "q", "a"]] {
                said.extend([vec!["FLUSHALL"], epoch.clone(), quarantine.to_vec()]);
                for _ in 0..2 {
                    said.push(match act {
                        "acquire" => {
                            vec!["EVAL", ACQUIRE, "3", "e", "q", "k", "v", "10000", "30000", "abc"]
                        }
                        act => vec!["EVAL", INITIALISE, "2", "e", "q", act, "30000", "abc"],
                    });
                    said.extend([vec!["GET", "e"], vec!["TTL", "q"], vec!["TTL", "k"]]);
                }
            }
        }
    }
    said
}

/// The users of [`guarded`], with their rules.
pub(super) const USERS: [(&str, &str); 3] = [
    ("alice", "on >pw ~lock:* +@all -info -client +client|id +client|getname"),
    ("bob", "on >pw ~* +eval +evalsha +get +echo"),
    ("carol", "off >pw ~* +@all"),
];

/// The password of the usual user of [`guarded`].
pub(super) const PASSWORD: &str = "open-sesame";

/// Where a password is asked for, and users have rights.
pub(super) fn guarded() -> Vec<Words> {
    let mut said = commands(
        "GET k | PING | FOO | GET | SET k v | ECHO a | CLIENT ID | SELECT 1 | EVALSHA ffff 0
        HELLO 3 | HELLO 3 AUTH default wrong | HELLO 3 AUTH | HELLO 3 FOO | AUTH wrong
        AUTH carol pw | AUTH nobody pw | AUTH alice wrong | HELLO 9 AUTH alice pw
        GET k | AUTH open-sesame | SET k v | AUTH wrong
        GET k | HELLO 2 SETNAME me | CLIENT GETNAME | AUTH alice pw
        SET lock:1 v PX 60000 | GET lock:1 | GET k | SET k w | DEL lock:1 k | DEL lock:1 | INFO
        CLIENT ID | CLIENT GETNAME | CLIENT SETNAME x | CLIENT KILL ID 1 | CLIENT | CLIENT DANCE
        EXISTS k | AUTH carol pw | GET lock:1 | AUTH bob pw | GET k | SET k w | PTTL k | INFO
        SCRIPT LOAD x | CLIENT ID | FOO",
    );
    said.push(vec!["EVAL", RELEASE, "1", "k", "other"]);
    said.push(vec!["EVAL", RELEASE, "1", "k", "v"]);
    said.push(vec!["EVAL", EXTEND, "1", "k", "v", "9000"]);
    said.push(vec!["EVAL", ACQUIRE, "3", "e", "q", "l", "v", "1", "1", "abc"]);
    said.push(vec!["AUTH", "alice", "pw"]);
    said.push(vec!["EVAL", RELEASE, "1", "k", "v"]);
    said.push(vec!["EVAL", RELEASE, "1", "lock:1", "v"]);
    said.extend(commands("AUTH default open-sesame | GET k"));
    said.extend(commands(
        "ACL | ACL DANCE | ACL WHOAMI | ACL WHOAMI a | ACL SETUSER | ACL SETUSER dave
        AUTH dave x | ACL SETUSER dave on >x ~* +get +acl|whoami | AUTH dave x | ACL WHOAMI | GET k
        SET k v | ACL SETUSER dave +@all | AUTH default open-sesame | ACL SETUSER dave resetpass >y
        AUTH dave x | AUTH dave y | ACL WHOAMI | ACL SETUSER dave nopass | QUIT",
    ));
    said
}

/// On a replica, which takes no writes.
pub(super) fn replica() -> Vec<Words> {
    let mut said = commands(
        "ROLE | GET k | SET k v | SET k v NX PX 9000 | DEL k | PEXPIRE k 9 | INCR k | FLUSHALL
        INFO replication | HELLO",
    );
    said.push(vec!["EVAL", RELEASE, "1", "k", "v"]);
    said.push(vec!["EVAL", EXTEND, "1", "k", "v", "9000"]);
    said.push(vec!["EVAL", ACQUIRE, "3", "e", "q", "l", "v", "1", "1", "abc"]);
    said
}

/// On a connection that is told of changes, in RESP3 alone.
pub(super) fn tracking() -> Vec<Words> {
    let mut said = commands(
        "FLUSHALL | CLIENT TRACKING ON | SET k v PX 90000 | GET k | SET k w PX 90000
        SET k x PX 90000 | GET k | PEXPIRE k 80000 | GET k | DEL k | DEL k | GET k | SET k v
        GET k | EXISTS a b | SET a 1 | SET b 1 | GET a | FLUSHALL | GET a | INCR a | PTTL a | DEL a
        CLIENT TRACKING OFF | GET k | SET k v | CLIENT TRACKING ON NOLOOP | GET k | SET k w
        CLIENT TRACKING OFF | CLIENT TRACKING ON BCAST PREFIX lock: PREFIX x: | SET lock:1 v
        SET other v | SET x:1 v | DEL lock:1 | CLIENT TRACKING ON | CLIENT TRACKING OFF",
    );
    said.extend(commands("CLIENT TRACKING ON | SET k v PX 90000 | GET k"));
    said.push(vec!["EVAL", EXTEND, "1", "k", "v", "99000"]);
    said.push(vec!["EVAL", RELEASE, "1", "k", "w"]);
    said.push(vec!["EVAL", RELEASE, "1", "k", "v"]);
    said
}
