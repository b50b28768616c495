//! Other people's failures, and what we do about each.
//!
//! None of the projects named here is careless: their own developers found and fixed most of these
//! defects, and several tests below exist because others wrote down what had happened to them. A
//! version is the one that was read or that the report names. If a test of ours shows the point,
//! its name follows in brackets.
//!
//! # Another caller's reply
//!
//! RESP has no request numbers: only its position ties a reply to its command. If the order slips
//! by one, each caller gets its neighbour's reply, and a lock takes another command's `+OK` for a
//! grant.
//!
//! - **`redis-py` up to 4.5.3, CVE-2023-28858 and -28859.** A cancelled asynchronous command left
//!   its reply on the connection, and the next command read it. The first fix covered pipelines
//!   only. *Here* each connection has one reader; a dropped caller's place stays in the queue, and
//!   the reply is consumed there (`no_reply_reaches_another_than_its_caller`,
//!   `a_dropped_requests_reply_reaches_no_other_caller`).
//! - **Bun, issue 27861.** The queue of commands under way outlived the connection; after a
//!   reconnect, replies went to callers of the old one, and the author of a fix reports broken
//!   distributed locks. *Here* the queue ends with its connection, every caller is told, and
//!   nothing is sent again (`the_end_of_the_connection_tells_what_may_have_been_applied`).
//! - **`go-redis` before 9.5.5, 9.6.3 and 9.7.3, CVE-2025-29923.** When the optional
//!   `CLIENT SETINFO` timed out in the handshake, its reply was still to come on a connection that
//!   was then used. *Here* a handshake succeeds as a whole, or the connection is dropped.
//! - **Redis 7.2 to 8, issue 15640.** The error of a failing `AUTH` that is not the first of its
//!   batch is not sent at all. *Here* `HELLO` or `AUTH` goes first, alone, and is awaited
//!   (`the_login_goes_first_alone_and_is_awaited`).
//! - **`redis-rs`, issue 1252; Jedis 2.1, issue 359.** A connection on which a command had timed
//!   out was used again, and the late reply answered the next command. *Here* a command that timed
//!   out keeps its place until its reply has come
//!   (`an_expired_command_is_told_once_and_still_owns_its_reply`), and a connection whose oldest
//!   reply is 5 s late is closed (if a deadline is still to come, at that deadline).
//! - **Redisson, pull request 7304; Bun, pull request 33441.** One kind of RESP3 reply was not
//!   skipped completely; a push behind an attribute was taken for the next command's reply. *Here*
//!   one parser reads what is wanted and what is skipped
//!   (`attributes_are_dropped_unless_kept_and_change_nothing_else`), and each command knows the
//!   form of its reply. Any other reply ends the connection
//!   (`a_reply_that_cannot_be_ends_the_connection_and_grants_nothing`,
//!   `a_reply_too_many_ends_the_connection`).
//!
//! # Hostile bytes
//!
//! - **hiredis, CVE-2021-32765 and issue 1357.** A length from the wire is multiplied, or
//!   allocated, before any byte that it announces has come; a header of a dozen bytes asks for 68
//!   GB. *Here* memory grows with what has arrived (`lengths_beyond_belief_allocate_nothing`).
//! - **hiredis (pull requests 1336 to 1340), `redis-py` issue 4116, `redis-rs` pull request 1346.**
//!   `*1` within `*1` within `*1`: the parser, or the destructor, recurses until the stack
//!   overflows. *Here* depth is bounded for all kinds, and nothing recurses, not even dropping
//!   (`endless_depth_is_refused_at_once`, `deep_frames_made_by_hand_do_not_overflow`).
//! - **`node-redis` 2.6 to 3.1.0, CVE-2021-29469.** A regular expression needed exponential time
//!   for some lines. *Here* time is linear, however the bytes are cut
//!   (`one_line_one_byte_at_a_time`).
//!
//! # Locks not held, or not released
//!
//! - **`redlock` 5.0.0-beta.2 (npm), four nodes, two against two.** It waits for three votes for,
//!   or three against; neither comes, and the call never returns. *Here* a try ends as soon as a
//!   majority is impossible
//!   (`case_01_four_nodes_split_two_two_refuse_at_once_and_nothing_is_left_behind`).
//! - **The same: no look at the clock.** `acquire` returns a lock whose time is over. *Here* the
//!   clock is read after the deciding reply (`a_grant_that_comes_too_late_for_its_ttl_is_refused`).
//! - **The same: leftovers of a try.** The keys of a failed try block the next. *Here* every try
//!   has a value of its own, and is undone before the pause
//!   (`case_04_a_failed_attempt_leaves_no_key_and_does_not_block_its_own_retry`).
//! - **The same: a signal that depends on an answer.** `using` aborts its signal when an extension
//!   has *failed*. While a majority hangs, it neither succeeds nor fails. *Here* `lost()` depends
//!   on a clock of this machine, not on a reply.
//! - **The same, issue 309: a release that retries.** A lock that had expired is "released" for two
//!   to three seconds, because each refusal is tried again. *Here* "gone" is a final answer
//!   (`case_07_a_release_says_that_the_lock_had_expired`).
//! - **`rslock` 0.10.0: too late, and not undone.** When a try took longer than the TTL,
//!   `TtlExceeded` is returned without a release. It also waits for each node's answer or
//!   time-out, so one slow node delays every caller. *Here* a dropped claim is always undone, and
//!   no call waits for a minority (`case_02_a_hung_minority_does_not_slow_an_acquisition`).
//! - **`rslock` 0.10.0: a dropped guard keeps its key** until the TTL, as its documentation says.
//!   *Here* `Drop` writes the release, on any thread, and without a runtime
//!   (`a_dropped_guards_key_is_gone`, `case_15_a_guard_dropped_on_a_plain_thread_releases`,
//!   `case_15_a_guard_dropped_after_its_runtime_has_gone_releases`).
//! - **`redis-py`, issue 3847.** A cancelled asynchronous `release()` had already forgotten the
//!   token; the key stayed, and no call could release it. Fixed since. *Here* the drop sends what
//!   was not sent yet (`case_14_a_release_dropped_at_every_poll_leaves_no_key`,
//!   `case_14_an_acquire_dropped_at_every_poll_leaves_no_key`).
//! - **Redisson 3.51 and 4.4.0, issue 7272; RedLock.net, issue 68.** Renewal went on after the end
//!   of the lock: in the first by a race between starting and stopping the renewal, in the second
//!   for days. *Here* the guard owns its extension, and `Extend::For` bounds it
//!   (`case_13_renewal_stops_when_the_guard_goes`).
//! - **RedLock.net's `Extend.lua`; `redlock-rb` unless told otherwise.** A missing key is set
//!   again. *Here* the extending script compares first, and creates nothing; a node that came back
//!   empty gets the key only when a majority without it holds the lock.
//! - **`redis-semaphore` 5.8.0, Redlock semaphore.** K permits by majority admit more than K
//!   holders. *We* have no semaphore yet; it will be K locks.
//!
//! # Found on the way
//!
//! Seen when running servers and cutting connections:
//!
//! - **A dead connection can still deliver.** With packets dropped, a `SET` was sent, the
//!   connection closed, and the undo answered "nothing there" on a new one; when the network
//!   recovered, the kernel delivered the old bytes, and the key appeared. *So* the next connection
//!   first has the server end the old one (`a_set_that_arrives_after_its_undo_leaves_no_key`; its
//!   counterpart shows that the key appears without it:
//!   `without_ending_the_old_connection_the_key_would_appear`).
//! - **`NOREPLICAS` refuses the release as well.** A server that lost its replicas accepts no
//!   writes, not even a release. *So* a release that is refused for now is tried again
//!   (`a_release_that_the_server_refuses_for_now_is_tried_again`).
//! - **A master can become a replica under an open connection.** *So* `READONLY` ends the
//!   connection, and the name is resolved again
//!   (`a_master_that_became_a_replica_is_left_and_looked_up_again`).
//! - **A stall of our process looks like a dead node.** After it, all time-outs have expired while
//!   the replies wait in the sockets. *So* a timer that fires late extends the deadlines once; see
//!   [`hot_path`](super::hot_path).
//! - **Ten thousand waiters reconnect at once** if each of them may. *So* each connection has one
//!   attempt at a time, however many wait
//!   (`case_19_ten_thousand_waiters_and_five_dead_servers_make_no_storm_of_connects`).
