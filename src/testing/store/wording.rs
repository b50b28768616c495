//! The words in which servers refuse, which differ by version. The first of them do not, and are
//! what clients go by.

use super::call::Refusal;
use super::version::{Since, Version};

/// Subcommands are commands of their own, and scripts' errors begin with the command's.
const SUBCOMMANDS: Since = Since::redis([7, 0]);
/// Who has no right is named.
const NAMED_USERS: Since = Since::redis([7, 2]);
/// A client that has not logged in learns nothing, not even that there is no such command.
const LOGIN_FIRST: Since = Since { redis: None, valkey: Some([9, 0]) };
/// Scripts are run by engines.
const ENGINES: Since = Since { redis: None, valkey: Some([9, 0]) };
/// The push that all keys are gone comes before the reply to the client that deleted them.
const FLUSH_FIRST: Since = Since { redis: Some([8, 0]), valkey: None };

impl Version {
    pub(super) fn has_subcommands(self) -> bool {
        self.knows(SUBCOMMANDS)
    }

    pub(super) fn asks_login_first(self) -> bool {
        self.is_valkey() && self.knows(LOGIN_FIRST)
    }

    pub(super) fn tells_flush_first(self) -> bool {
        self.is_redis() && self.knows(FLUSH_FIRST)
    }

    fn has_engines(self) -> bool {
        self.is_valkey() && self.knows(ENGINES)
    }

    pub(super) fn unknown_command(self, words: &[&[u8]]) -> Refusal {
        let text = |word: &[u8]| String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
        let name = text(words.first().copied().unwrap_or_default());
        let (open, close, between) =
            if self.has_subcommands() { ("'", "'", " ") } else { ("`", "`", ", ") };
        let mut line =
            format!("ERR unknown command {open}{name}{close}, with args beginning with: ");
        for word in words.iter().skip(1).take(20) {
            line.push_str(&format!("{open}{}{close}{between}", text(word)));
        }
        Refusal::new(line)
    }

    /// A script says what is no command.
    pub(super) fn unknown_in_script(self, line: Option<u32>) -> Refusal {
        self.in_script(["Unknown Redis command", "Unknown command"], "called from", line)
    }

    /// A script says a command with too few words, or too many.
    pub(super) fn arity_in_script(self, line: Option<u32>) -> Refusal {
        let what = "Wrong number of args calling Redis command";
        // The oldest write it so.
        let of = if self.has_subcommands() { "from" } else { "From" };
        self.in_script([what, "Wrong number of args calling command"], of, line)
    }

    /// A sentence about what a script does; the second wording is that of servers with engines.
    fn in_script(self, [what, later]: [&str; 2], of: &str, line: Option<u32>) -> Refusal {
        let what = if self.has_engines() { later } else { what };
        match self.has_subcommands() {
            true => Refusal::new(format!("ERR {what} {of} script")),
            false => at_line(line, &format!("{what} {of} Lua script")),
        }
    }

    /// `said` is the subcommand as it was said.
    pub(super) fn unknown_subcommand(self, command: &str, said: &str) -> Refusal {
        let what = match self.has_subcommands() {
            true => "unknown subcommand",
            false => "Unknown subcommand or wrong number of arguments for",
        };
        let command = command.to_ascii_uppercase();
        Refusal::new(format!("ERR {what} '{said}'. Try {command} HELP."))
    }

    /// A subcommand that counts its words itself has too many.
    pub(super) fn subcommand_syntax(self, command: &str, said: &[u8]) -> Refusal {
        let said = String::from_utf8_lossy(said);
        if !self.has_subcommands() {
            return self.unknown_subcommand(command, &said);
        }
        let command = command.to_ascii_uppercase();
        let what = "unknown subcommand or wrong number of arguments for";
        Refusal::new(format!("ERR {what} '{said}'. Try {command} HELP."))
    }

    pub(super) fn subcommand_arity(self, command: &str, said: &str) -> Refusal {
        match self.has_subcommands() {
            true => Refusal::arity(&format!("{command}|{}", said.to_ascii_lowercase())),
            false => self.unknown_subcommand(command, said),
        }
    }

    pub(super) fn wrong_expiry(self, command: &str) -> Refusal {
        Refusal::new(match self.has_subcommands() {
            true => format!("ERR invalid expire time in '{command}' command"),
            false => format!("ERR invalid expire time in {command}"),
        })
    }

    pub(super) fn unknown_parameter(self, name: &str) -> Refusal {
        Refusal::new(match self.has_subcommands() {
            true => format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"),
            false => format!("ERR Unsupported CONFIG parameter: {name}"),
        })
    }

    /// `HELLO` before the login.
    pub(super) fn login_missing(self) -> Refusal {
        let version = if self.knows(NAMED_USERS) { "<proto> " } else { "" };
        Refusal::new(format!(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO {version}AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time"
        ))
    }

    /// A user has no right to a command. Line: of the script that says it.
    pub(super) fn may_not_say(
        self,
        user: &str,
        [name, subcommand]: [&str; 2],
        line: Option<u32>,
    ) -> Refusal {
        let bar = if subcommand.is_empty() { "" } else { "|" };
        let what = format!("'{name}{bar}{subcommand}' command");
        if !self.knows(NAMED_USERS) {
            if line.is_some() {
                return self.denied_in_script("run this command or subcommand", line);
            }
            return Refusal::new(match self.has_subcommands() {
                true => format!("NOPERM this user has no permissions to run the {what}"),
                false => format!(
                    "NOPERM this user has no permissions to run the '{name}' command or its \
                     subcommand"
                ),
            });
        }
        let whose = if line.is_some() { "ERR ACL failure in script: User" } else { "NOPERM User" };
        Refusal::new(format!("{whose} {user} has no permissions to run the {what}"))
    }

    pub(super) fn may_not_touch(self, line: Option<u32>) -> Refusal {
        match (self.knows(NAMED_USERS), line) {
            (true, None) => Refusal::of("NOPERM No permissions to access a key"),
            (true, _) => Refusal::of("ERR ACL failure in script: No permissions to access a key"),
            (false, None) => Refusal::of(
                "NOPERM this user has no permissions to access one of the keys used as arguments",
            ),
            (false, _) => self.denied_in_script(
                "access at least one of the keys mentioned in the command arguments",
                line,
            ),
        }
    }

    /// A user has no right to a channel.
    pub(super) fn may_not_use(self, line: Option<u32>) -> Refusal {
        match (self.knows(NAMED_USERS), line) {
            (true, None) => Refusal::of("NOPERM No permissions to access a channel"),
            (true, _) => {
                Refusal::of("ERR ACL failure in script: No permissions to access a channel")
            }
            (false, None) => Refusal::of(
                "NOPERM this user has no permissions to access one of the channels used as \
                 arguments",
            ),
            (false, _) => {
                self.denied_in_script("publish to the channel mentioned in the command", line)
            }
        }
    }

    /// What a connection in RESP2 may not say while it is subscribed.
    pub(super) fn only_listens(self, [name, subcommand]: [&str; 2]) -> Refusal {
        let (of, bar) = match self.has_subcommands() {
            true if subcommand.is_empty() => ("(P|S)", String::new()),
            true => ("(P|S)", format!("|{subcommand}")),
            false => ("(P)", String::new()),
        };
        Refusal::new(format!(
            "ERR Can't execute '{name}{bar}': only {of}SUBSCRIBE / {of}UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        ))
    }

    fn denied_in_script(self, what: &str, line: Option<u32>) -> Refusal {
        let text = format!("The user executing the script can't {what}");
        match self.has_subcommands() {
            true => Refusal::new(format!("ERR {text}")),
            false => at_line(line, &text),
        }
    }

    /// What the server itself says to a command, in a script or not.
    pub(super) fn refused(self, refusal: Refusal, line: Option<u32>) -> Refusal {
        match line.is_some() && !self.has_subcommands() {
            true => at_line(line, &format!("-{}", refusal.0)),
            false => refusal,
        }
    }

    pub(super) fn no_script(self) -> Refusal {
        Refusal::of(match self.has_engines() {
            true => "NOSCRIPT No matching script.",
            false => "NOSCRIPT No matching script. Please use EVAL.",
        })
    }

    /// The error with which a script of this digest ends.
    pub(super) fn raised(self, digest: &str, line: u32, error: &str) -> Refusal {
        if !self.has_subcommands() {
            return Refusal::new(format!(
                "ERR Error running script (call to f_{digest}): @user_script:{line}: {error}"
            ));
        }
        let of = if self.has_engines() { String::new() } else { format!("{digest}, ") };
        Refusal::new(format!("{error} script: {of}on @user_script:{line}."))
    }

    /// What Lua itself says.
    pub(super) fn lua(self, line: u32, error: &str) -> String {
        let error = format!("user_script:{line}: {error}");
        if self.has_subcommands() { format!("ERR {error}") } else { error }
    }

    /// What a script is told of its own call, in the words of the oldest servers, of later ones,
    /// and of those with engines.
    #[cfg(test)]
    pub(super) fn called_wrongly(self, [oldest, later, engine]: [&str; 3], line: u32) -> Refusal {
        match (self.has_subcommands(), self.has_engines()) {
            (_, true) => Refusal::new(format!("ERR {engine}")),
            (true, _) => Refusal::new(format!("ERR {later}")),
            (false, _) => at_line(Some(line), oldest),
        }
    }

    /// An error without its place.
    #[cfg(test)]
    pub(super) fn plain_in_script(self, error: &str) -> String {
        if self.has_subcommands() { format!("ERR {error}") } else { error.to_owned() }
    }

    /// `CLIENT KILL ID` with what is no number of a connection.
    pub(super) fn wrong_client(self, id: Result<i64, Refusal>) -> Refusal {
        match id {
            Err(_) if self.is_valkey() => Refusal::SYNTAX,
            Err(number) if !self.has_subcommands() => number,
            _ => Refusal::of("ERR client-id should be greater than 0"),
        }
    }
}

fn at_line(line: Option<u32>, text: &str) -> Refusal {
    Refusal::new(format!("@user_script: {}: {text}", line.unwrap_or_default()))
}
