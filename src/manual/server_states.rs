//! What happens to a lock in each state of a server.
//!
//! Each row was seen on real servers, from Redis 6.2 to Valkey 9 (except *proxy*, *protected* and
//! the unknown error, which were simulated). A lock on one node does what the row says; with that
//! node as one of three, it is acquired, extended and released as usual, and the row is the node's
//! part in [`votes`](crate::LockGuard::votes) and in [`Error::nodes`](crate::Error::nodes).
//!
//! | in a cell | [`Outcome`](crate::report::Outcome) | the key |
//! |---|---|---|
//! | yes | `Granted` | set, extended or deleted |
//! | no: … | `Refused`, `Held`, `Gone` | certainly untouched; nothing is undone |
//! | open: … | `Failed`, `Silent`, `Disconnected` | perhaps; an acquisition is undone at once |
//! | not sent: … | `Down` | untouched; a release is sent by the next connection |
//!
//! An extension that is not granted leaves the lock valid until its deadline, unless the node says
//! that the key is gone or another's. A release that is not granted is repeated if the server may
//! grant it later; the key is then deleted when the state is over. Otherwise the key ends with its
//! TTL: after `no evalsha`, `no eval` with a forgotten script, `no get`, `no del`,
//! `no right to the key`, and the same commands renamed. No key is ever without a TTL.
//!
//! The rows are about scripts. A server that [deletes
//! natively](crate::report::NodeHealth::deletes_natively) needs none for a release, which it grants
//! without `eval`, `evalsha`, `get` and `del`, too.
//!
//! # Login and connection
//!
//! | state | acquire | extend | release |
//! |---|---|---|---|
//! | no password was given | not sent: NOAUTH | not sent: NOAUTH | not sent: NOAUTH |
//! | the password is wrong | not sent: WRONGPASS | not sent: WRONGPASS | not sent: WRONGPASS |
//! | the password was changed while connected | yes | yes | yes |
//! | the user was deleted | not sent: WRONGPASS | not sent: WRONGPASS | not sent: WRONGPASS |
//! | `maxclients` reached | not sent: clients | not sent: clients | not sent: clients |
//! | protected mode | not sent: DENIED | not sent: DENIED | not sent: DENIED |
//! | `HELLO` hidden by a proxy | yes | yes | yes |
//! | `HELLO`, `INFO`, `CLIENT` renamed | yes | yes | yes |
//!
//! # Rights and names of commands
//!
//! | state | acquire | extend | release |
//! |---|---|---|---|
//! | no `set` | no: NOPERM | yes | yes |
//! | no `evalsha` | yes | no: NOPERM | no: NOPERM |
//! | no `eval`, script known | yes | yes | yes |
//! | no `eval`, script forgotten | yes | no: NOPERM | no: NOPERM |
//! | no `get` | yes | open: script | open: script |
//! | no `del` | yes | yes | open: script |
//! | no `pexpire` | yes | open: script | yes |
//! | no `pttl` | yes | yes | yes |
//! | no `info`, `client`, `script` | yes | yes | yes |
//! | no right to the key | no: NOPERM | no: NOPERM | no: NOPERM |
//! | `SET` renamed | open: unknown command | – | – |
//! | `EVALSHA` renamed | yes | open: unknown command | open: unknown command |
//! | `EVAL` renamed | yes | yes | yes |
//! | `SCRIPT` renamed | yes | yes | yes |
//! | `GET` renamed | yes | open: script | open: script |
//! | `DEL` renamed | yes | yes | open: script |
//! | `PEXPIRE` renamed | yes | open: script | yes |
//!
//! A lock with a fence is acquired by a script: not without `evalsha`, `set`, `get` and `time`.
//!
//! # Temporary refusals, and servers of the wrong kind
//!
//! | state | acquire | extend | release |
//! |---|---|---|---|
//! | a replica | not sent: replica | not sent: replica | not sent: replica |
//! | became a replica | no: READONLY | open: READONLY | open: READONLY |
//! | a replica that lost its master | no: READONLY | no: MASTERDOWN | no: MASTERDOWN |
//! | loading | no: LOADING | no: LOADING | no: LOADING |
//! | busy with a script | no: BUSY | no: BUSY | no: BUSY |
//! | busy when connected to | not sent: BUSY | not sent: BUSY | not sent: BUSY |
//! | out of memory | no: OOM | yes | yes |
//! | too few replicas | no: NOREPLICAS | open: NOREPLICAS | open: NOREPLICAS |
//! | cannot save | no: MISCONF | open: MISCONF | open: MISCONF |
//! | a Cluster's slot is down | no: CLUSTERDOWN | no: CLUSTERDOWN | no: CLUSTERDOWN |
//! | a Cluster's slot has moved | no: MOVED | no: MOVED | no: MOVED |
//! | a Cluster's slot is moving | no: ASK | yes | yes |
//! | a Cluster, `Volatile`, no hash tag | no: CROSSSLOT | – | – |
//! | `CLIENT PAUSE … WRITE` | open: silent | open: silent | open: silent |
//! | `CLIENT PAUSE … ALL` | open: silent | open: silent | open: silent |
//! | hung | open: silent | open: silent | open: silent |
//! | stopped | not sent: refused | not sent: refused | not sent: refused |
//! | an error of no known kind | open: ODD | open: ODD | open: ODD |
//!
//! Cluster nodes are for [`Locker::single`](crate::Locker::single): a quorum takes none.
//!
//! # The state of the key
//!
//! | state | acquire | extend | release |
//! |---|---|---|---|
//! | the script was forgotten | yes | yes | yes |
//! | the key was deleted | yes | no: gone | no: gone |
//! | the key is another's | no: held | no: held | no: held |
//! | the key has another type | no: held | no: held | no: held |
//! | another's key without expiry | no: held | no: held | no: held |
//! | our key has lost its expiry | yes | yes | yes |
//!
//! # Under `Volatile`
//!
//! There an acquisition is a script. If one of its commands is refused, what the earlier ones did
//! is open. It sets the key last, and is undone all the same.
//!
//! | state | acquire |
//! |---|---|
//! | no `set` | open: script |
//! | no `evalsha` | no: NOPERM |
//! | no `get` | open: script |
//! | no `pttl` | open: script |
//! | no right to the key | no: NOPERM |
//! | became a replica | open: READONLY |
//! | loading | no: LOADING |
//! | busy with a script | no: BUSY |
//! | out of memory | open: OOM |
//! | too few replicas | open: NOREPLICAS |
//! | cannot save | open: MISCONF |
//! | `CLIENT PAUSE … WRITE` | open: silent |
//! | the script was forgotten | yes |
//! | another's key without expiry | no: held |
//!
//! # What to do
//!
//! | word | what to do |
//! |---|---|
//! | NOAUTH, WRONGPASS | correct the user or the password in the URL |
//! | clients | raise `maxclients`, or find out who opens so many connections |
//! | DENIED | give the server a password, or connect to it over its loopback |
//! | NOPERM, script | give the user the right: the list is in the [`runbook`](super::runbook) |
//! | unknown command | undo the renaming, and restrict users by ACL instead |
//! | replica, READONLY | after a failover: point the address at the master |
//! | MASTERDOWN | the same, or bring the master back |
//! | LOADING | wait |
//! | BUSY | `SCRIPT KILL`, and fix the script |
//! | OOM | more memory, or fewer keys; held locks are not affected |
//! | NOREPLICAS | bring the replicas back, or lower `min-replicas-to-write` |
//! | MISCONF | the server cannot write its snapshot: disk, rights; its log says more |
//! | CLUSTERDOWN, MOVED, ASK | lock on a server that stands alone; no redirection is followed |
//! | CROSSSLOT | put a `{hash tag}` in the prefix |
//! | cluster node | a quorum needs servers that stand alone |
//! | silent | a pause, a hung server, or the network; it votes again once it answers |
//! | refused | start the server, or correct the port |
//! | ODD | look at the server's log, and report the unknown error to us |
//! | held | the key is another's; the [`runbook`](super::runbook) says how to find whose |
//! | gone | the lock was lost: find out who deletes keys there |
