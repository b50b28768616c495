//! What `--help` says of the commands, beside their options.

pub(super) const NODES: &str = "\
Nodes: --node, else QUORLOCK_NODES, else REDIS_URL. One URL is a single server; several are a
quorum, of which a majority must agree. A URL without a password takes the one in REDIS_PASSWORD,
or the one typed for --askpass.

  redis://user:password@host:port/database   (or valkey://)
  unix:///run/redis.sock?db=0";

pub(super) const CODES: &str = "\
Exit codes: the command's own, or 128 and the number of the signal that ended it; else
   64  the command line is wrong
   69  no quorum: too few nodes could be reached (within 1s at the start) or answered
   75  another client holds the lock (see -E)
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
   79  the lock was lost while the command ran, whatever the command's own code is
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

pub(super) const LIFE: &str = "\
The lock is extended at a third of its TTL for as long as the command runs, unless --no-extend or
--max-hold ends that. It is lost when its time runs out because too few nodes could be reached to
extend it, or when a majority of them no longer holds it. When another client asks for it (quorlock
revoke), the command gets TERM; the lock is extended no more, and ends with its time.

The command starts without a shell, in a process group of its own. INT, TERM, HUP, QUIT, USR1 and
USR2 are passed on to it; a second INT kills it. On Linux it is killed when quorlock dies. Its
environment has QUORLOCK_KEY, QUORLOCK_TOKEN (the value that the nodes hold), QUORLOCK_FENCE with
--fenced, QUORLOCK_SLOT with --slots, and QUORLOCK_DEADLINE_MS (since the epoch): the first
deadline, which moves on with each extension.

With --key given several times all of the keys are locked or none of them: where another client
holds one, quorlock waits for it and holds no other meanwhile. The lock excludes every other lock on
any of these keys. QUORLOCK_KEY has a line for each of them. Such a lock cannot be released by its
token: it ends with its command, or with its TTL.

With --shared, commands that share a lock run at once, and none beside a command that does not.
QUORLOCK_TOKEN begins with \"read:\" then; by it such a lock cannot be released either.

With --slots, no more commands run at once than the key has slots, and each is told its own, a
number from 0 on, by QUORLOCK_SLOT. All of them must give the same number of slots. The slots have
nothing to do with the lock of the key itself. QUORLOCK_TOKEN begins with \"slot:\" then; by it a
slot cannot be released either.

A separate thread writes messages to stderr: neither the lock nor the command waits for it. While
stderr is blocked (a pipe that is not read), 16 lines are kept and the rest are dropped; one line
says how many. At the end quorlock waits up to 2s for stderr, then exits with the same code.

When stdin is a terminal, the command stays in the terminal's foreground group, so that it can read
and Ctrl-Z works. The terminal then sends it INT and QUIT, and quorlock does not pass these on.";

pub(super) const ONCE: &str = "\
For a crontab that several machines have: the first of them runs the command, and the others find
its lock and end with code 0. The lock is kept for --at-least, counted from the start, so that a
machine whose clock is late does not run the command again; also when the command failed. Where the
machine dies that runs it, no other does before --at-most is over, and only if it starts it anew.

  0 3 * * *  quorlock once --per 1d nightly -- /usr/local/bin/nightly

The command is started as by \"quorlock lock\", with the same environment.";

pub(super) const ONCE_CODES: &str = "\
Exit codes: the command's own, or 128 and the number of the signal that ended it; else
    0  another machine runs it, or has run it (see -E)
   64  the command line is wrong
   69  no quorum: too few nodes could be reached (within 1s at the start) or answered
   75  several machines went on dividing the nodes between them, and none could run it
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
   79  its lock was lost, or its time was over, while the command ran, whatever its own code is
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

pub(super) const ELECT: &str = "\
Start it on each machine. One of them runs the command, and the others wait for its place. When the
command ends, it is started again where it ran: after 100ms, and after twice as long each time up to
30s, until it has run for 10s. When its machine dies, the command is started on another after the
TTL. A machine that cannot reach its nodes ends the command in time: TERM a little before another
may start it, then KILL; KILL at once where the nodes no longer hold its lock.

INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to the command. After INT, TERM or QUIT it is not
started again: quorlock ends with its code, and another machine goes on at once.

The environment has QUORLOCK_KEY, QUORLOCK_FENCE (the number of the term: above that of every leader
before) and QUORLOCK_DEADLINE_MS, as with \"quorlock lock\".

  quorlock elect scheduler -- /usr/local/bin/scheduler";

pub(super) const ELECT_CODES: &str = "\
Exit codes: the command's own, when it was to end, or could not be run (126, 127); else
   64  the command line is wrong
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
  125  quorlock itself failed
  128 and a signal's number, when that ended it while it did not lead";

pub(super) const CACHED: &str = "\
The output (stdout, up to 4 MiB) of a command that ends with 0 is kept on the first of the nodes:
all machines must name the same one first. Of all that ask for it at once and find none, one runs
the command and the others wait for it. Shortly before its time is over, one of those who ask runs
the command again, more likely the longer that takes. A little is taken off each time by chance, so
that outputs that were kept together do not end together. Where the command fails, its output and
code are passed on, and nothing is kept; within --stale the output of before is given instead.

  quorlock cached --ttl 5m --stale 1h report -- ./slow-report

The command has QUORLOCK_KEY in its environment, and gets the signals as with \"quorlock lock\".";

pub(super) const CACHED_CODES: &str = "\
Exit codes: 0 with an output that is kept; the command's own, or 128 and the number of the signal
that ended it; else
   64  the command line is wrong
   69  the first node did not answer
   75  another machine ran the command for longer than --wait
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else uses
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

pub(super) const IDEMPOTENT: &str = "\
For what must not be done twice, though it is asked for several times: by several machines, or by
one that does not know whether it has done it. The first runs the command; its exit code and its
output (stdout, up to 4 MiB) are kept on the first of the nodes, and are what the others end with.
All machines must name the same node first. A command that fails has been run: its code is kept,
too. Where it was begun and no code was kept, as its machine died or a signal ended it, it is not
run again, and the exit code is 80.

  quorlock idempotent invoice:2026-11:customer-7 -- ./send-invoice 7

The command has QUORLOCK_KEY in its environment, and gets the signals as with \"quorlock lock\".";

pub(super) const IDEMPOTENT_CODES: &str = "\
Exit codes: the command's own, now or before, or 128 and the number of the signal that ended it now;
else
   64  the command line is wrong
   69  too few nodes could be reached, or the first node did not answer
   75  another machine ran the command for longer than --wait
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else uses
   80  the command was begun before, and whether it was done is not known
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

pub(super) const LIMIT: &str = "\
In any period at most its share of --rate and one burst may start, on all machines together. The
count is kept on the first of the nodes, by that node's time: all machines must name the same one
first. If the node forgets it, as in a restart without persistence, one burst more may start. The
command takes the place of quorlock, with its process id.

  quorlock limit --rate 10/1h -w 1m mail -- ./send-mail";

pub(super) const LIMIT_CODES: &str = "\
Exit codes: the command's own; else
   64  the command line is wrong
   69  the first node did not answer
   75  it may not run yet (see -E)
   77  the node refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else uses
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

pub(super) const RELEASE: &str = "\
With a token the key is deleted only where it holds that token's value: another client's lock is
left as it is. With --force any lock under the key is deleted; a value that no lock wrote is left.
Neither stops the holder: it learns of the loss at its next extension, within a third of its TTL, or
at its deadline where it is not extended. Until then two clients may hold the lock. End the holder
first, or wait for the TTL.

Other users of this machine can see a token on the command line, but not one in QUORLOCK_TOKEN.";

pub(super) const RELEASE_CODES: &str = "\
Exit codes: 0 when a majority of the nodes deleted it; with --force, when a majority answered, also
where it held nothing; else
   64  the command line is wrong, or there is no token
   69  a majority of the nodes did not answer
   75  the lock is held by another token
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
   79  the lock had ended before
  125  quorlock itself failed";

pub(super) const REVOKE: &str = "\
The lock is extended no more: it ends when its time is over, or when its holder releases it before.
Until then it keeps all others out. quorlock lock sends its command TERM when it is asked. This
cannot be taken back.

The lock of a key has nothing to do with its slots. Of commands with --slots, the one whose
QUORLOCK_SLOT is 2 is asked by --slot 2, and no other. A holder of several slots as one lock is
asked for all of them, by any one.

  quorlock revoke encode --slot 2";

pub(super) const REVOKE_CODES: &str = "\
Exit codes: 0 when a majority of the nodes has been asked, also where the lock is free; else
   64  the command line is wrong
   69  a majority of the nodes did not answer
   75  one holder followed another meanwhile
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that readers or a client other than quorlock hold
  125  quorlock itself failed";

pub(super) const STATUS_CODES: &str = "\
Exit codes: 0, whether a key is held or free; else
   64  the command line is wrong
   69  a majority of the nodes did not answer for one of the keys
   77  the nodes refused the password, the user or a right
   78  no nodes, or a bad URL
  125  quorlock itself failed";

pub(super) const BENCH: &str = "\
A cycle acquires a key that no other cycle uses and releases it; each step waits for a majority. Two
contestants take turns in short rounds, so that other load on the machine affects both: ours, the
library with its default options, and the floor, the same commands on bare sockets without any
handling of failures. The first round of each is dropped. The duration is that of the whole run;
with --rate it may be up to twice as long if the nodes do not keep up.

Nothing is written to nodes that hold keys, unless --force is given: a run puts full load on them.
Keys have a random prefix and live for at most 10s; each is released, and those that an error leaves
behind are deleted at the end. The two release scripts stay in the nodes' script caches.

Assertions apply to our figures, and must hold with every number of callers: p50, p90, p99, p99.9
and max of acquiring with < or <=, cycles (a second) with > or >=. If one fails, the exit code is
99.";

pub(super) const PING: &str = "\
The nodes are asked one after another, never in parallel. A round trip is what a caller of the
library waits for; p99.9 is meaningful with a --count of several thousand. What the user has no
right to read (INFO, CONFIG GET, TIME) is shown as not told. The node's clock is compared with this
machine's: a constant difference is harmless to a lock, a changing one is not.

A maxmemory-policy other than noeviction is a warning: such a node deletes locks when it is full.
Anything but appendonly yes and appendfsync always is a warning too, unless --longest-ttl is given:
such a node may lose locks when it stops.

Exit codes: 0 when a majority answered, with or without warnings; else
   64  the command line is wrong
   69  no quorum: too few nodes could be reached, or answered
   77  the nodes refused the password, the user or a right
   78  no nodes, or a bad URL
  125  quorlock itself failed
  128 and a signal's number, when that ended it early";
