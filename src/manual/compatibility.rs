//! The servers it is tested with, the rights a user needs, and what managed services forbid.
//!
//! ```sh
//! quorlock ping    # with your nodes in QUORLOCK_NODES: what they are, and what they do not tell
//! ```
//!
//! # What was tried
//!
//! The whole acceptance suite (`tests/suite`) and the test of rights below run on each of these: in
//! RESP2 and RESP3 over each transport, and in both with the least rights (over TCP only: rights do
//! not depend on the transport):
//!
//! | server | TCP | Unix socket | TLS | least rights |
//! |---|---|---|---|---|
//! | Redis 6.2.14 | yes | yes | by a terminator | yes |
//! | Redis 7.0.15 | yes | yes | its own | yes |
//! | Redis 8.2.3 | yes | yes | by a terminator | yes |
//! | Valkey 9.1.2 | yes | yes | by a terminator | yes |
//!
//! ```sh
//! tests/servers all     # fetches them
//! tests/matrix          # all of it, a line for each combination
//! ```
//!
//! Of these, only Debian's Redis 7.0 is built with TLS. The others run behind the tests' own
//! terminator, which is rustls: that tests our TLS with that version behind it, not its TLS. Faulty
//! certificates and peers are tested in `tests/tls`.
//!
//! RESP3 is used where the server has it; `?protocol=2` selects RESP2, and so does a server (or a
//! proxy) that does not know `HELLO`. That costs only the round trip of the `HELLO`.
//!
//! Redis before 6.2 is not tested. Compatible servers (KeyDB, Dragonfly, Kvrocks, Garnet) are not
//! tested either: they need `SET … NX PX` and scripts that run as one step. A proxy that spreads
//! keys over several servers (twemproxy, Envoy's) is not supported: a node of a quorum is *one*
//! server, and an undo must reach the server that got the command.
//!
//! # The handshake
//!
//! Connecting takes two round trips: first `HELLO 3 AUTH …` alone, then everything else in one
//! batch. One timeout covers all of it (`connect_timeout`), and a step that stalls ends the
//! connection. The second batch is optional, except `SELECT`; each part may be refused. That costs:
//!
//! - `INFO`: two addresses of one server are not detected; what a lost connection may have left is
//!   undone repeatedly, not exactly; there is no warning of an eviction policy that deletes locks,
//!   and no `Durability::Volatile`.
//! - `CONFIG GET`: `health` does not show `appendfsync` and `save`.
//! - `TIME`: nothing; `INFO` has the time too.
//! - `SUBSCRIBE`: that node keeps no queue for this process, which polls if none does.
//! - `CLIENT TRACKING OFF`: a lock that another library holds is polled. (Tracking is switched on
//!   when such a lock is first waited for.)
//! - `CLIENT SETNAME`, `CLIENT SETINFO`: `CLIENT LIST` shows neither name nor library.
//! - `SCRIPT LOAD`: one more round trip. `EVAL` without a key loads the scripts; it fails before it
//!   does anything.
//! - `GET` on `quorlock:epoch` behind the prefix: a locker of the wrong durability is detected at
//!   its first lock, not when it connects.
//!
//! A server writes each refusal to its `ACL LOG`, a few lines for each connection. Grant the
//! rights, or expect those lines.
//!
//! # Which rights a user needs
//!
//! `tests/acl.rs` finds them: on every server above, it removes one right after another until only
//! the needed ones remain, and compares those with this table. `pay:` is the locker's prefix.
//! `HELLO` and `AUTH` need no right. Before Redis 7.0, `~` is written for `%R~` and `%W~`.
//!
#![doc = include_str!("acl.md")]
//!
//! So for a service that takes, extends and waits for locks on a quorum:
//!
//! ```text
//! ACL SETUSER locker on >password ~pay:* ~{pay:* resetchannels &quorlock:wake:* -@all
//!     +set +get +del +pexpire +pttl +eval +evalsha +script|load +info
//!     +time +zadd +zrange +zscore +zrem +pexpireat +subscribe +publish
//!     +client|kill +client|id +client|setname +client|tracking +client|caching
//! ```
//!
//! and, from Redis 7.2 on and on Valkey, `+client|setinfo`; with slots also `+mget` and `+exists`.
//! Advice on the rest:
//!
//! - A queue's keys are `{pay:order:42}:quorlock:queue` and `{pay:order:42}:quorlock:beats`, so
//!   that all are in one slot of a cluster, and need a rule beside the prefix's own. Those of a key
//!   that has a `{tag}` are that key with `/quorlock:queue` and `/quorlock:beats` behind it. Where
//!   a right to the queue is missing, processes poll: each waits up to a second longer, and every
//!   node has more to do. They release their locks all the same.
//! - The keys of slots, and of their queue, are `{pay:calls}:slot:3` and
//!   `{pay:calls}:slots:4:quorlock:queue`. Where a right to the queue is missing, each looks for
//!   free slots by itself: see [`slots`](super::slots).
//! - A fence's key is `{pay:order:42}:quorlock:fence`, beside those of the queue. A key of a
//!   [`guarded::Command`](crate::guarded::Command) has its own, `{stock:7}:quorlock:written`.
//! - `+delifeq`, on a Valkey from 9.0 on, halves what a lock costs the server. Without the right
//!   the script is sent, and the server has nothing to complain of.
//! - `+client|kill` lets a user end *any* connection. Without it, what a dead connection may have
//!   left is undone again and again for a node timeout and two TTLs, which is nearly as good.
//! - `+config|get` shows the server's passwords among other things. Do not grant it to a service;
//!   `quorlock ping` can log in as another user.
//! - The right to `EVAL` allows any script on the keys that the user may touch. Only the keys
//!   protect other services: give each service a prefix of its own.
//! - `quorlock bench` measures bare sockets beside the locks, and those need `+script|load`. It
//!   counts the keys by `+info`.
//!
//! An operation without its right fails with
//! [`is_authentication`](crate::Error::is_authentication), and names `NOPERM` and the node.
//!
//! # What managed services forbid
//!
//! **None of these was tested**: this is what their documentation says (read in November 2026; page
//! names in brackets), and what it means here. Nearly all of them replicate and fail over by
//! themselves. Such a node can forget a granted lock whatever it persists. So it serves a
//! [`single`](crate::Locker::single) locker with that weakness, not a quorum of independent
//! masters: see [`choosing`](super::choosing).
//!
//! - **Amazon ElastiCache** ("Restricted commands", for Redis OSS): `CONFIG`, `DEBUG`, and commands
//!   for persistence and replication. So `appendfsync` and `save` are not shown.
//! - **Amazon MemoryDB** ("Restricted commands"): the same, and changing ACLs.
//! - **Google Memorystore for Redis** ("Product constraints"): `CLIENT`, `CONFIG`, `ACL`,
//!   `COMMAND`, `OBJECT`, `MONITOR`, and persistence commands. So there is no exact undo, and no
//!   name in lists.
//! - **Aiven for Caching** ("Restricted commands"): `CONFIG`, `ACL`, `ROLE`, `COMMAND`,
//!   `MONITOR`, and persistence and replication commands. The role is taken from `HELLO` or
//!   `INFO`, so this costs what it costs on ElastiCache.
//! - **Oracle OCI Cache** ("Unsupported Valkey and Redis Commands"): `CONFIG SET`, `ACL`,
//!   `CLUSTER`; on sharded ones also `EVAL`, `EVALSHA` and `SCRIPT`. So a sharded one cannot be
//!   used: locks are released by script.
//! - **Tencent Cloud Redis** ("Connection Group", and its differences from the original): RESP3
//!   and ACL users are not supported, nor `CLIENT KILL` and `CLIENT LIST`. `HELLO` is there, so
//!   give `?protocol=2`; there is no exact undo.
//! - **Redis Cloud, Redis Software** ("Connection management commands compatibility", "Scripting
//!   commands compatibility"): `CLIENT PAUSE`, shared databases and changing ACLs are not
//!   supported; `CLIENT ID`, `CLIENT KILL`, `CLIENT SETINFO` and scripts are. A proxy stands
//!   before the server, and `CLIENT ID` is not increasing across its nodes.
//! - **Others** were not looked up. `quorlock ping` shows what they allow.
//!
//! These services often show fewer fields of `INFO` than a server of your own. A missing field
//! stays unknown, and is never taken for a value.
//!
//! Proxies: twemproxy is documented to know `EVAL` and `EVALSHA` but no `SCRIPT` and no `SELECT`,
//! and it spreads keys; Envoy's describes itself as a best-effort cache that partitions commands.
//! Neither is supported. A proxy that passes bytes (HAProxy, stunnel, a service mesh in TCP mode)
//! is no different from a network, if all connections through it reach *one* server.
