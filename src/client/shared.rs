//! Which commands a connection that many callers share cannot carry.
//!
//! On a client's connection every command has one reply, and the replies come in the order of the
//! commands: position alone says whose a reply is. Nothing that one caller sends may break that, or
//! change what another caller's command does. [`TABLE`] lists the commands that would, by the harm
//! that they do; a command that is not listed is passed on, also one that is not known here.
//!
//! These are passed on, because their effect on other callers is none, or the same from whichever
//! connection they come: `CLIENT SETNAME`, `SETINFO` and `NO-EVICT` (no command is executed or
//! answered in another way for them, but for `CLIENT GETNAME`); `CLIENT PAUSE`, `SAVE` and `DEBUG
//! SLEEP` (they hold up all of the server's clients); `CLIENT KILL` and `SHUTDOWN` (callers are
//! told that the connection has ended, as after any failure); `PUBLISH`, scripts and functions (one
//! reply; a server lets no script leave anything behind on its connection).
//!
//! Pure: words in, a verdict out.

use crate::error::Error;

/// What a command does to the other callers of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    /// It has no reply, or several, or a stream of them: later replies reach the wrong callers.
    Replies,
    /// The server closes the connection: what others have sent is lost.
    Ends,
    /// The commands behind it are executed or answered in another way.
    Alters,
    /// The replies to the commands behind it wait until it is done.
    Blocks,
}

/// Commands that do the same harm, and what to do instead.
struct Row {
    harm: Harm,
    instead: &'static str,
    /// A name, or a name and a subcommand.
    commands: &'static [&'static str],
}

const TABLE: [Row; 10] = [
    Row {
        harm: Harm::Replies,
        instead: "subscribe on a connection of another library",
        // RESP3 confirms them by pushes alone, RESP2 once for each channel.
        commands: &[
            "SUBSCRIBE",
            "PSUBSCRIBE",
            "SSUBSCRIBE",
            "UNSUBSCRIBE",
            "PUNSUBSCRIBE",
            "SUNSUBSCRIBE",
        ],
    },
    Row {
        harm: Harm::Replies,
        instead: "use the server's own tools for it",
        // Streams of commands or of data; an acknowledgement of a replica is not answered at all;
        // a debugger answers the next script of any caller.
        commands: &["MONITOR", "SYNC", "PSYNC", "REPLCONF", "CLUSTER SYNCSLOTS", "SCRIPT DEBUG"],
    },
    Row {
        harm: Harm::Replies,
        instead: "leave it out and drop the reply",
        commands: &["CLIENT REPLY"],
    },
    Row {
        harm: Harm::Ends,
        instead: "drop the client and its clones, which closes it",
        // The last two are what servers take for a web browser that was sent to them.
        commands: &["QUIT", "POST", "HOST:"],
    },
    Row {
        harm: Harm::Alters,
        instead: "give the login and the protocol in the node's URL or `NodeOptions`",
        // A reset logs the connection out, and takes it back to RESP2.
        commands: &["AUTH", "HELLO", "RESET"],
    },
    Row {
        harm: Harm::Alters,
        instead: "give the database in the node's URL or `NodeOptions`",
        commands: &["SELECT"],
    },
    Row {
        harm: Harm::Alters,
        instead: "send the commands as one script, with `EVAL`",
        // What others send goes into the transaction, and is answered `QUEUED`.
        commands: &["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"],
    },
    Row {
        harm: Harm::Alters,
        instead: "a `Client` is for one node, and follows no redirection",
        // The first is about the very next command, which may be another caller's.
        commands: &["ASKING", "READONLY", "READWRITE", "CLIENT CAPA"],
    },
    Row {
        harm: Harm::Alters,
        instead: "use a connection of another library",
        // What others read would be tracked (and its invalidation told to no reader), would not
        // count as used, or would not expire.
        commands: &["CLIENT TRACKING", "CLIENT CACHING", "CLIENT NO-TOUCH", "CLIENT IMPORT-SOURCE"],
    },
    Row {
        harm: Harm::Blocks,
        instead: "send it on a client of its own, by `Client::allow_blocking`",
        commands: &[
            "BLPOP",
            "BRPOP",
            "BRPOPLPUSH",
            "BLMOVE",
            "BLMPOP",
            "BZPOPMIN",
            "BZPOPMAX",
            "BZMPOP",
            "WAIT",
            "WAITAOF",
            // Only with `BLOCK`: see `blocks`.
            "XREAD",
            "XREADGROUP",
        ],
    },
];

/// Refuses a command that would do harm to the other callers of its connection. One that only
/// blocks is let through where `blocking` says so.
pub(super) fn check(words: &[&[u8]], blocking: bool) -> Result<(), Error> {
    let Some((row, command)) = find(words) else { return Ok(()) };
    let harm = match row.harm {
        Harm::Blocks if blocking || !blocks(words) => return Ok(()),
        Harm::Blocks => "keeps the other callers of its connection waiting",
        Harm::Replies => "has not one reply, so all later ones would reach the wrong callers",
        Harm::Ends => "ends the connection of all callers",
        Harm::Alters => "changes what the other callers' commands do",
    };
    Err(Error::misuse(format!("`{command}` {harm}; {}", row.instead)))
}

/// The row of a command, and its name there.
fn find(words: &[&[u8]]) -> Option<(&'static Row, &'static str)> {
    let is_it = |command: &&'static &'static str| {
        let mut parts = command.split(' ');
        let mut words = words.iter();
        parts.all(|part| words.next().is_some_and(|word| is(word, part)))
    };
    TABLE.iter().find_map(|row| Some((row, *row.commands.iter().find(is_it)?)))
}

/// Whether a command that can block does. Reads of streams do so with an option, which stands
/// before the streams' names.
fn blocks(words: &[&[u8]]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return false };
    if !is(name, "XREAD") && !is(name, "XREADGROUP") {
        return true;
    }
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        let values = match option {
            option if is(option, "BLOCK") => return true,
            option if is(option, "STREAMS") => return false,
            option if is(option, "GROUP") => 2,
            option if is(option, "COUNT") || is(option, "CLAIM") => 1,
            _ => 0,
        };
        arguments.by_ref().take(values).for_each(drop);
    }
    false
}

/// Servers take names and options in any case.
fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(command: &str, blocking: bool) -> Option<String> {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let error = check(&words, blocking).err()?;
        assert!(error.is_misuse(), "{command}: {error}");
        Some(error.to_string())
    }

    #[test]
    fn a_refusal_names_the_command_the_harm_and_the_way_out() {
        let said = [
            ("subscribe c", "`SUBSCRIBE` has not one reply"),
            ("sunsubscribe", "`SUNSUBSCRIBE` has not one reply"),
            ("Client Reply OFF", "`CLIENT REPLY` has not one reply"),
            ("quit", "`QUIT` ends the connection"),
            ("host: x", "`HOST:` ends the connection"),
            ("select 1", "in the node's URL"),
            ("AUTH pw", "the login"),
            ("mUlTi", "as one script"),
            ("client no-touch on", "`CLIENT NO-TOUCH` changes what"),
            ("blpop k 0", "`BLPOP` keeps the other callers of its connection waiting; send it on"),
        ];
        for (command, words) in said {
            let line = refusal(command, false).unwrap();
            assert!(line.contains(words) && !line.contains('\n'), "{command}: {line}");
        }
    }

    #[test]
    fn all_other_commands_pass() {
        let passed = [
            "GET SUBSCRIBE",
            "SET k MULTI",
            "PUBLISH c m",
            "CLIENT",
            "CLIENT LIST",
            "CLIENT NO-EVICT on",
            "CLIENT SETNAME REPLY",
            "CLIENT PAUSE 1",
            "SCRIPT LOAD x",
            "CLUSTER INFO",
            "DEBUG SLEEP 0",
            "EVAL x 0",
            "PUBSUB CHANNELS",
            "LMOVE a b LEFT RIGHT",
            "SUBSCRIBES",
            "SUBSCRIB",
            "NO.SUCH",
        ];
        for command in passed {
            assert_eq!(refusal(command, false), None, "{command}");
        }
        assert!(check(&[], false).is_ok());
    }

    #[test]
    fn reads_of_streams_block_by_their_option_alone() {
        let blocking = [
            "XREAD BLOCK 0 STREAMS s $",
            "xread count 1 block 5 streams s $",
            "XREADGROUP GROUP BLOCK c BLOCK 1 STREAMS s >",
            "XREADGROUP GROUP g STREAMS NOACK BLOCK 1 STREAMS s >",
            "XREADGROUP GROUP g c CLAIM 9 BLOCK 1 STREAMS s >",
        ];
        for command in blocking {
            assert!(refusal(command, false).is_some(), "{command}");
            assert_eq!(refusal(command, true), None, "{command}");
        }
        let not = [
            "XREAD STREAMS BLOCK 0",
            "XREAD COUNT BLOCK STREAMS s 0",
            "XREADGROUP GROUP BLOCK BLOCK STREAMS s >",
            "XREADGROUP GROUP g c NOACK STREAMS BLOCK >",
            "XREAD",
        ];
        for command in not {
            assert_eq!(refusal(command, false), None, "{command}");
        }
    }

    #[test]
    fn a_client_that_may_block_may_do_no_other_harm() {
        for row in &TABLE {
            for command in row.commands.iter().filter(|name| !name.starts_with("XREAD")) {
                assert!(refusal(command, false).is_some(), "{command}");
                assert_eq!(refusal(command, true).is_none(), row.harm == Harm::Blocks, "{command}");
            }
        }
    }
}
