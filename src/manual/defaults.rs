//! Every default, why it is what it is, how to choose another, and what goes wrong.
//!
//! The setters are on [`LockerBuilder`](crate::LockerBuilder); those of
//! [`ttl`](crate::LockRequest::ttl) and waiting are on the single request as well. What cannot work
//! is refused by [`build`](crate::LockerBuilder::build) with a reason, and nothing is sent.
//!
//! # The lease
//!
//! | option | default | in other words |
//! |---|---|---|
//! | `ttl` | 10 s | how long others wait after a crash |
//! | `auto_extend` | `Extend::For(1 h)` | how long one task may hold at most |
//! | `drift` | 1 % of the TTL, and 2 ms | how much faster a server's clock may run |
//! | `on_loss` of `run` | the work is dropped | what a loss does to the work |
//! | durability | (below) | what a restarted node still knows |
//!
//! **`ttl`.** Between the 8 and the 30 s that libraries of this kind have as defaults, and two to
//! three times the longest usual critical section. *Shorter:* a crash costs others less, and a
//! pause of the process, a slow step or a lost extension costs you the lock. *Longer:* the reverse.
//! It is sent in whole milliseconds; a TTL that the drift margin would use up is refused.
//!
//! **`auto_extend`.** Extension is on because a TTL that fits the usual case fails in the unusual
//! one. It begins when a third of the TTL is gone, as Redisson's does, so that a failed try can be
//! repeated. It ends after an hour because a task that hangs cannot be told from one that works;
//! the event *held too long* says so, and the lock then ends with its TTL. *Too low a limit:* long
//! work loses its lock in the middle. *`Forever`:* a hung task holds until the process ends.
//!
//! **`drift`.** The figure that the specification's implementations agree on. A quartz clock is off
//! by some 0.01 %, and `ntpd` corrects a clock by 0.05 % at most (and steps it beyond 128 ms): 1 %
//! is plenty for these, and costs 102 ms of a lease of 10 s. It is *not* enough for `chronyd` by
//! default: its `maxslewrate` lets a clock run 8.3 % fast or slow until the error is gone. Set
//! `maxslewrate 1000` on servers and clients, or a drift of 90 permille. *Lower:* a few
//! milliseconds are gained. No margin covers a clock that is *stepped*.
//!
//! **`on_loss`.** Work without its lock should not take another step. `OnLoss::Signal` is for work
//! that must tidy up first; it must then check the signal.
//!
//! # Waiting for the lock
//!
//! | option | default | in other words |
//! |---|---|---|
//! | `wait` | 10 s | how long `.await` tries |
//! | `unavailable_wait` | 1 s | how much of that without a quorum |
//! | `retry` | `Retry::full_jitter`, 50–200 ms, doubling to 1 s | the pause between two tries |
//! | `local_handover` | 0 | how long tasks of one locker pass a lock on without the nodes |
//! | `fenced` | no | whether every lock gets a [fence](super::fencing) |
//!
//! **`wait`.** No call waits forever unless it asks to
//! ([`wait_forever`](crate::LockerBuilder::wait_forever)). In a server, stay below the time limit
//! of the request that waits; what is left must be enough for the work. Zero means one try.
//!
//! **`unavailable_wait`.** A held lock becomes free; an outage may last. So a call that finds no
//! quorum fails after a second, while there is time for something else, and not at the end of
//! `wait`. A second is longer than a lost connection takes to come back, or a failover of the
//! network. *Shorter:* a restart of two nodes is reported as an outage. *Longer:* callers pile up.
//! [`Duration::MAX`](std::time::Duration::MAX) is for callers that have no alternative, such as the
//! start of a leader. A quarantine (see `durability`) counts as an outage too.
//!
//! **`local_handover`.** Off, for other processes wait as long: none of them has the lock before
//! the budget is over, or no task of this locker wants it. With it, the next task has the lock in
//! microseconds. Choose a few times the length of the work.
//!
//! **`fenced`.** No, for each node runs a script then where `SET` would do, and writes a second
//! key; and it is of use only where what is written to compares. Then ask for it with each lock, or
//! here for all. A fenced lock is not handed on without the nodes.
//!
//! **`retry`.** A process that waits in a queue for another (see [`choosing`](super::choosing))
//! does not poll; the pause is for where there is none. It is drawn between 50 ms and a ceiling
//! that doubles from 200 ms to 1 s: callers that were refused together do not retry together. It is
//! never longer than the caller's remaining time, nor, where the holder's key could be read, than
//! that key lives. A failed try's grants are released before the pause, so no caller blocks itself.
//! *Shorter:* a free lock is noticed sooner, and each waiter sends every node more commands: 1,000
//! processes at 20 ms are 50,000 commands a second and node. *Longer:* the lock stays free.
//!
//! | policy | for whom |
//! |---|---|
//! | [`Retry::full_jitter`] | every caller; other bounds for other holding times |
//! | [`Retry::exponential`] | holding times from milliseconds to minutes |
//! | [`Retry::fixed`] | one waiter, or tests; many would retry in step |
//! | [`Retry::custom`] | callers that know more than the time; `None` gives up |
//!
//! Each takes [`tries_max`](crate::Retry::tries_max), a number of tries that ends the waiting
//! before its time does. A pause of zero, a lower bound above the upper one, a cap below the first
//! pause and no tries at all are refused. A caller that retries by itself, without `wait`, finds
//! the holder's remaining time in [`Error::retry_after`](crate::Error::retry_after), where it is
//! known.
//!
//! [`Retry::full_jitter`]: crate::Retry::full_jitter
//! [`Retry::exponential`]: crate::Retry::exponential
//! [`Retry::fixed`]: crate::Retry::fixed
//! [`Retry::custom`]: crate::Retry::custom
//!
//! # The nodes
//!
//! | option | default | in other words |
//! |---|---|---|
//! | `node_timeout` | 1 % of the TTL, 50 to 500 ms | what a hung majority costs |
//! | `connect_timeout` | 1 s | connecting and the handshake, in the background |
//! | `reconnect` | 20 ms, growing to 200 ms | the pause before a dead node is tried again |
//! | (fixed) | 5 s, or the last deadline | a reply that is older ends its connection |
//!
//! **`node_timeout`.** After it a node's vote counts as *unknown*, and is undone. A healthy
//! majority decides in one round trip and never meets it. It must be far below the TTL, because it
//! is taken out of the lease. *Too short:* a busy server's pause (a fork for a snapshot, a slow
//! script) is taken for a failure, and the client undoes what was granted. *Too long:* with a
//! majority hung, each try takes that long. A node that exceeds it is *suspect*, and is not waited
//! for again until it answers.
//!
//! **`connect_timeout`.** Far above a round trip between continents. No caller waits for it: a
//! node without a connection votes at once. It covers resolving the name, which is done anew each
//! time, connecting, TLS, asking for the login, and the whole handshake. A name with several
//! addresses is tried at the next one as soon as one fails, and after 250 ms where one is silent
//! (sooner where there are more than three), both families in turn; the first to connect is used.
//!
//! **`reconnect`.** Back in use soon after the server is, without a storm: jittered, one attempt at
//! a time for each connection, without end. The longest pause is 200 ms so that those who wait for
//! a lock have it again within 300 ms of a majority's return. *Shorter:* a starting server gets
//! more attempts. *Longer:* a restarted node stays out of the quorum longer than it must. A first
//! pause below 1 ms is refused: it would never grow, and would keep a core busy.
//!
//! # The connections
//!
//! | option | default | in other words |
//! |---|---|---|
//! | `connections_per_node` | 1 | sockets to each node |
//! | `direct_writes` | 2 | replies outstanding up to which a caller writes itself |
//! | `link_entries_max` | 65,536 | commands without a reply, on one connection |
//! | `link_bytes_max` | 8 MiB | bytes that the kernel has not taken |
//! | `driver` | `Driver::Runtime` | where the connections are read |
//! | `native_commands` | on | whether `DELIFEQ` releases locks where a server has it |
//! | `tcp` | no delay; keepalive 15 s, then 5 s; user timeout 30 s | what the kernel is told |
//!
//! **`connections_per_node`.** One carries more commands than one core of a server executes. All
//! commands about one key use the same connection; that order is what undoing relies on. *More:*
//! for servers with I/O threads, if you have measured a gain; each one costs a socket on both
//! sides.
//!
//! **`direct_writes`.** A caller that writes saves the hop to the driver; a driver that writes for
//! many saves system calls. Two is the smallest value that saves a lone caller the hop
//! (`benches/record/2026-11-21-direct-writes.md`). Change it only if you measure the effect.
//!
//! **`link_entries_max`, `link_bytes_max`.** What a node that hangs may cost in memory. A
//! connection without room votes *not sent*, and there is nothing to undo; the other nodes decide.
//! *Too low:* bursts find a healthy node full. *Too high:* a hung node under load fills the memory.
//!
//! **`driver`.** See [`choosing`](super::choosing).
//!
//! **`native_commands`.** Valkey has `DELIFEQ` from 9.0 on, for which it runs no script to compare
//! and delete: a cycle costs such a server half as much (`benches/record/native-2026-11-25.md`).
//! Each connection learns whether its server has it and whether the user may send it;
//! [`NodeHealth`](crate::report::NodeHealth) shows what was found. *On:* a user with few rights
//! needs `+delifeq`, and gets the script without it. *Off:* where a release that finds nothing is
//! frequent, which costs a second round trip then. An extension stays a script, for no one command
//! extends a key's life, never shortens it, and does so only for the lock's own value. Redis has
//! `DELEX` from 8.4 on: it is not used, for no such server is among those that the tests run on.
//!
//! **`tcp`.** `TCP_NODELAY`, because a lock's command is small and alone, and would otherwise wait
//! for the acknowledgement of the one before. Keepalive, because a firewall drops a silent
//! connection without notice: choose the first time below the limit of the strictest one on the
//! way. *Too long:* the first lock after a quiet hour waits for a timeout. *Too short:* a packet
//! each way, for each connection, that often. The user timeout (Linux), because keepalive says
//! nothing while bytes are under way, and the kernel would try to deliver those for a quarter of an
//! hour. *Too short:* a failover of the network ends connections that would have survived it.
//! [`TcpOptions`](crate::TcpOptions) has the figures.
//!
//! # Names
//!
//! | option | default | in other words |
//! |---|---|---|
//! | `prefix` | nothing | stands before every key, verbatim |
//! | `owner` | `host:pid` | who holds the lock, for people |
//!
//! **`prefix`.** Give one: `lock:` or `pay:lock:`. It keeps your keys apart from others', lets an
//! ACL say `~pay:lock:*`, and lets you find them. All clients of a lock need the same one; a
//! different prefix is a different lock, silently, and has an epoch of its own under
//! `Durability::Volatile`. No key may end in `quorlock:epoch`, `quorlock:quarantine`,
//! `quorlock:queue`, `quorlock:beats`, `quorlock:fence` or `quorlock:written`: those are the nodes'
//! own, behind this prefix or another. A `{hash tag}` in the prefix keeps them in one slot with the
//! locks. Keys are bytes, compared one by one, prefix included at most 4,096 of them.
//!
//! **`owner`.** Give a service's name; host and process are added to it. It stands in the value
//! behind the random part, so it shows in `quorlock status`, in errors of those who wait, and in
//! `GET`. At most 128 bytes, no control characters, **never a secret**.
//!
//! # Durability
//!
//! `Durability::Persistent` says that a node which answers has forgotten nothing: `appendfsync
//! always`. `Durability::Volatile` says that it may have, and keeps it out for the longest TTL
//! after it was empty. If you choose *Persistent* wrongly, a restart can give a held lock to
//! another client. If you choose *Volatile* without need, a restarted node is missing for the
//! longest TTL, and each acquisition costs a script. When in doubt: *Volatile*. It must be the same
//! for all clients of a deployment. *Persistent* is the default all the same: *Volatile* needs a
//! longest TTL, which only you can know, and new nodes would not vote before it is over. The
//! longest TTL is at least that of any lock; a minute is plenty for TTLs of 10 to 30 s.
//!
//! # The program
//!
//! `quorlock lock` has the library's defaults, and three of its own.
//!
//! | | | why |
//! |---|---|---|
//! | reaching a quorum at the start | `--unavailable-wait`, 1 s | reports a wrong address early |
//! | `TERM` before the end | a tenth, 50 ms to 2 s | time for an orderly end |
//! | a node's timeout in `status` | 500 ms | an inspection delays no client |
//!
//! # What is fixed
//!
//! A quorum has 1 to 15 nodes and a majority of N/2 + 1. The random value has 160 bits and is new
//! for each try. A server's text is cut after 160 bytes in errors, and its control characters are
//! escaped. If you need another value, please tell us about your use.
