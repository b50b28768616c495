//! What is said, in which order, to a node and to a server.

pub(super) const RELEASE: &str = include_str!("../../../src/lock/script/release.lua");
const EXTEND: &str = include_str!("../../../src/lock/script/extend.lua");
const ACQUIRE: &str = concat!(
    include_str!("../../../src/lease/script/standing.lua"),
    include_str!("../../../src/lock/script/acquire.lua")
);
pub(super) const ACQUIRE_ALL: &str = include_str!("../../../src/lock/script/acquire_all.lua");
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
    said.extend(commands(SORTED));
    said.extend(commands(SCORES));
    said.extend(empty_scores());
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
    KEYS none* | HSET h f v | MGET a none h a | MGET none | MGET h
    SCRIPT EXISTS ffff | EVALSHA ffff 0 | EVALSHA ffff x | EVALSHA ffff 1 | EVALSHA ffff -1
    AUTH wrong | AUTH nobody wrong | AUTH default any | CLIENT KILL ID x
    CLIENT KILL ID 99999 | CLIENT KILL FOO bar | CLIENT KILL ID 99999 TYPE normal
    CLIENT KILL TYPE normal | CLIENT KILL ID 0 | CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME
    CLIENT SETNAME a\u{1} | CLIENT GETNAME | CLIENT ID | HELLO 4 | HELLO 1 | HELLO x | HELLO
    CLIENT PAUSE x | CLIENT PAUSE -1 | CLIENT PAUSE 1 SOME | CLIENT PAUSE 0 WRITE | CLIENT UNPAUSE
    CLIENT TRACKING | CLIENT TRACKING MAYBE | CLIENT TRACKING ON PREFIX a: | CLIENT TRACKING OFF
    CLIENT TRACKING ON | CLIENT TRACKING ON OPTIN | CLIENT CACHING YES | CLIENT TRACKING OFF OPTOUT
    CLIENT TRACKING OFF PREFIX a: | PUBLISH none hi | PUBSUB CHANNELS | PUBSUB NUMSUB a b
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
    CONFIG SET maxmemory | AUTH a b c | PUBLISH | PUBLISH c | PUBLISH c a b | PUBSUB | PUBSUB DANCE
    PUBSUB NUMPAT a | PUBSUB CHANNELS a b | SUBSCRIBE | MGET | CLIENT CACHING | CLIENT CACHING YES
    RESET a";

/// Sorted sets: options, places, and other types.
const SORTED: &str = "
    FLUSHALL | ZADD z 1 a | ZADD z 1 a | ZADD z 2 b 3 c 2 b | ZADD z CH 5 a 3 c 9 d | TYPE z
    ZADD z NX 7 a 7 e | ZADD z XX 8 a 8 f | ZADD z XX CH 9 a | ZADD z GT 1 a 10 b | ZSCORE z a
    ZADD z LT 1 a 99 b 4 g | ZADD z GT CH 50 h 0 a | ZADD z LT CH GT 1 a | ZADD z NX XX 1 a
    ZADD z NX GT 1 a | ZADD z NX LT 1 a | ZADD z NX NX 6 a | ZADD z XX GT CH 60 a 1 b
    ZADD z INCR 2 a | ZADD z INCR 2 new | ZADD z NX INCR 2 a | ZADD z XX INCR 2 none
    ZADD z GT INCR -1 a | ZADD z LT INCR -1 a | ZADD z INCR 1 a 2 b | ZADD z INCR x a
    ZADD z 1 | ZADD z 1 a 2 | ZADD z NX | ZADD z NX 1 | ZADD z FOO 1 a | ZADD z x a | ZADD z 1 a x b
    ZADD z a 1 | ZADD none XX 1 a | EXISTS none | ZADD none XX INCR 1 a
    ZCARD z | ZCARD none | ZSCORE z none | ZSCORE none a | ZRANK z a | ZRANK z none | ZRANK none a
    ZRANK z a x | ZRANK z a x y | ZRANGE z 0 -1 | ZRANGE z 0 -1 WITHSCORES | ZRANGE z 1 2
    ZRANGE z -2 -1 withscores | ZRANGE z 2 1 | ZRANGE z -99 99 | ZRANGE z 99 100 | ZRANGE z x 1
    ZRANGE z 0 1.5 | ZRANGE z 0 -1 FOO | ZRANGE none 0 -1 | ZRANGE none 0 -1 WITHSCORES
    ZRANGE none x 1 | ZRANGE z 0 1 REV | ZRANGE z 0 1 REV WITHSCORES | ZRANGE z 0 1 REV REV
    ZRANGE z 0 1 LIMIT 0 1 | ZRANGE z 0 1 LIMIT 0 -1 | ZRANGE z 0 1 LIMIT 0 | ZRANGE z 0 1 LIMIT x 1
    ZRANGE z 1 9 BYSCORE | ZRANGE z 9 1 BYSCORE REV LIMIT 1 2 | ZRANGE z (1 (9 BYSCORE WITHSCORES
    ZREVRANGE z 0 -1 | ZREVRANGE z 0 1 WITHSCORES | ZREVRANGE z 0 1 REV | ZREVRANGE z 5 1
    ZREVRANGE none 0 -1 | ZREVRANGE z 0 x | ZREVRANGE z 0 1 LIMIT 0 1 | ZREVRANGE z -1 -1
    ZRANGEBYSCORE z 0 9 | ZRANGEBYSCORE z (4 9 | ZRANGEBYSCORE z 4 (9 WITHSCORES
    ZRANGEBYSCORE z -inf +inf WITHSCORES | ZRANGEBYSCORE z 9 0 | ZRANGEBYSCORE z -inf inf LIMIT 1 2
    ZRANGEBYSCORE z -inf inf LIMIT -1 2 | ZRANGEBYSCORE z -inf inf LIMIT 1 -1
    ZRANGEBYSCORE z 0 9 LIMIT 1 | ZRANGEBYSCORE z 0 9 LIMIT x 1 | ZRANGEBYSCORE z 0 9 REV
    ZRANGEBYSCORE z 0 9 LIMIT 1 0 | ZRANGEBYSCORE z 0 inf LIMIT 9 9 WITHSCORES
    ZRANGEBYSCORE z x 9 | ZRANGEBYSCORE z 0 (x | ZRANGEBYSCORE z ( 9 | ZRANGEBYSCORE z nan 9
    ZRANGEBYSCORE z ((1 9 | ZRANGEBYSCORE none 0 9 | ZRANGEBYSCORE none x 9 | ZRANGEBYSCORE z [1 9
    ZCOUNT z 0 9 | ZCOUNT z (9 inf | ZCOUNT z -inf +inf | ZCOUNT none 0 9 | ZCOUNT z x 9
    ZCOUNT none x 9 | ZCOUNT z 0x5 9 | ZCOUNT z 1e1 1e999 | ZCOUNT z -1e999 1e-999
    ZADD same 0 c 0 a 0 b -0 d | ZRANGE same 0 -1 | ZRANK same d | ZREVRANGE same 0 -1
    ZREM z none | ZREM z a none b a | ZREM none a | ZREMRANGEBYSCORE z (9 60 | ZRANGE z 0 -1
    ZREMRANGEBYSCORE z 99 100 | ZREMRANGEBYSCORE z x 1 | ZREMRANGEBYSCORE none 0 1
    ZREMRANGEBYSCORE none x 1 | PEXPIRE z 90000 | ZADD z 1 late | ZREM z g | TTL z
    ZREMRANGEBYSCORE z -inf inf | EXISTS z | ZADD z 1 a | TTL z | ZREM z a | EXISTS z | TYPE z
    SET s v | HSET h f v | RPUSH l a | ZADD z 1 a | GET z | SET z v NX | SET z v GET | STRLEN z
    INCR z | HSET z f v | RPUSH z a | SET z v XX | TYPE z | DEL z | ZADD s 1 a | ZADD s XX 1 a
    ZREM s a | ZSCORE h f | ZCARD l | ZRANK s a | ZRANGE s 0 1 | ZRANGE s x 1 | ZREVRANGE s 0 1
    ZRANGEBYSCORE s 0 1 | ZRANGEBYSCORE s x 1 | ZREMRANGEBYSCORE s 0 1 | ZCOUNT s 0 1
    ZADD s x a | ZADD s INCR x a | ZADD | ZADD z | ZADD z 1 | ZCARD | ZCARD a b | ZCOUNT z 1
    ZCOUNT z 1 2 3 | ZRANGE z 1 | ZRANGEBYSCORE z 1 | ZRANK z | ZREM z | ZREMRANGEBYSCORE z 1
    ZREMRANGEBYSCORE z 1 2 3 | ZREVRANGE z 1 | ZSCORE z | ZSCORE z a b";

/// Scores as they are read and printed.
const SCORES: &str = "
    FLUSHALL | ZADD z 1.5 a | ZSCORE z a | ZADD z 0.1 a | ZSCORE z a | ZADD z -0 b | ZSCORE z b
    ZADD z 1e3 a | ZSCORE z a | ZADD z +5 a | ZSCORE z a | ZADD z .5 a | ZSCORE z a | ZADD z 5. a
    ZSCORE z a | ZADD z 1e16 a | ZSCORE z a | ZADD z 1e17 a | ZSCORE z a | ZADD z 1e18 a
    ZSCORE z a
    ZADD z 1e19 a | ZSCORE z a | ZADD z 1e20 a | ZSCORE z a | ZADD z 1e21 a | ZSCORE z a
    ZADD z 12345678901234567890 a | ZSCORE z a | ZADD z 1.25e25 a | ZSCORE z a
    ZADD z 9007199254740993 a | ZSCORE z a | ZADD z 1732345678901.25 a | ZSCORE z a
    ZADD z 4611686018427387904 a | ZSCORE z a | ZADD z 4611686018427389952 a | ZSCORE z a
    ZADD z 1e-5 a | ZSCORE z a | ZADD z 1.5e-9 a | ZSCORE z a | ZADD z 1e-7 a | ZSCORE z a
    ZADD z 0.00012 a | ZSCORE z a | ZADD z 123456.789e-12 a | ZSCORE z a | ZADD z 1e-300 a
    ZSCORE z a
    ZADD z 5e-324 a | ZSCORE z a | ZADD z 1.7976931348623157e308 a | ZSCORE z a
    ZADD z -3.14159 a | ZSCORE z a | ZADD z 100 a | ZSCORE z a | ZADD z -1e15 a | ZSCORE z a
    ZADD z inf a | ZSCORE z a | ZADD z -inf a | ZSCORE z a | ZADD z Infinity a | ZSCORE z a
    ZADD z +inf a | ZSCORE z a | ZADD z INCR -inf a | ZSCORE z a | ZADD z nan a | ZADD z -nan a
    ZADD z 1e999 a | ZADD z -1e999 a | ZADD z 1e-999 a | ZADD z 0e999 a | ZADD z 1_000 a
    ZADD z 1x a | ZADD z infx a | ZADD z . a | ZADD z - a | ZADD z 1e a | ZADD z --1 a
    ZADD z 0x10 a
    ZRANGE z 0 -1 WITHSCORES | DEL z";

/// Scores that have blanks, or nothing.
fn empty_scores() -> Vec<Words> {
    let mut said = commands("FLUSHALL | ZADD z 0 a 1 b");
    for score in ["", " ", " 1", "1 ", "\t1"] {
        said.push(vec!["ZADD", "y", score, "a"]);
        said.push(vec!["ZCOUNT", "z", score, "9"]);
        said.push(vec!["ZCOUNT", "z", "-1", score]);
    }
    said.push(vec!["ZADD", "y", "1", ""]);
    said.push(vec!["ZSCORE", "y", ""]);
    said
}

/// A key is set while there is no memory left.
const MEMORY: &str = "
    FLUSHALL | SET a 1 | SET b v PX 90000 | CONFIG SET maxmemory 1 | SET a 2 | SET c 1 | INCR a
    HSET h f v | ZADD z 1 a | ZREM z a | ZREMRANGEBYSCORE z 0 1 | ZCARD z | GET a | PEXPIRE a 90000
    DEL a";

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

pub(super) const RELEASE_SHA1: &str = "0be1dcf15509e3cc5178dcb10f9ae8085a5b7aa0";
pub(super) const EXTEND_SHA1: &str = "47a7a3f4432b1c2d83c8db5f3bd25b1884a04164";

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
        ZADD z 1 a | ZREM z a | ZREMRANGEBYSCORE z 0 1 | ZRANGE z 0 -1 | PUBLISH c hi
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
