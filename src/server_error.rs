//! What a server's error means: for the command it answers, for an undo, for a connection, and for
//! people.
//!
//! A server's error begins with a word that says what is wrong. [`TABLE`] says what these words
//! mean here; a few texts without a word of their own stand below it. `WRONGTYPE`, which is about
//! one key's value, is read in `lease::inspect` and `link::handshake`.
//!
//! Pure: text in, meanings out.

/// What a word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    /// The command was refused before anything was applied.
    Refused,
    /// The server takes no writes for the moment, or has no memory for a value that is put back: an
    /// undo may be tried again later.
    NotNow,
    /// The user, the password or a right is missing or wrong.
    Denied,
    /// Nothing can be asked on this connection: no user is logged in, the server admits no client,
    /// or it answers nothing yet.
    Unusable,
    /// The server is a replica.
    Replica,
    /// The server does not know the script.
    NoScript,
}

struct Row {
    word: &'static str,
    says: &'static [Says],
    /// What to do about it, or what is wrong; empty where the server's own words say enough.
    advice: &'static str,
}

const TABLE: [Row; 17] = {
    use Says::{Denied, NoScript, NotNow, Refused, Replica, Unusable};
    const fn row(word: &'static str, says: &'static [Says], advice: &'static str) -> Row {
        Row { word, says, advice }
    }
    [
        row("NOAUTH", &[Refused, Denied, Unusable], "check the password"),
        row("WRONGPASS", &[Denied], "check the user and the password"),
        row(
            "NOPERM",
            &[Refused, Denied],
            "the user's ACL forbids a command or the key; see the manual for the list",
        ),
        row("DENIED", &[Unusable], "its protected mode takes no connection from here"),
        row("READONLY", &[Refused, NotNow, Replica], "it is a replica; give its master's address"),
        row("LOADING", &[Refused, NotNow, Unusable], "it is still loading its data"),
        row("BUSY", &[Refused, NotNow, Unusable], "it is busy with a slow script"),
        row("OOM", &[Refused, NotNow], "it is out of memory"),
        row("MISCONF", &[Refused, NotNow], "it cannot persist; look at its log"),
        row("NOREPLICAS", &[Refused, NotNow], "it has too few replicas to accept writes"),
        row("MASTERDOWN", &[Refused, NotNow], "its master is down"),
        row("CLUSTERDOWN", &[Refused, NotNow], "its cluster is down"),
        row("MOVED", &[Refused], ""),
        row("ASK", &[Refused], ""),
        row("CROSSSLOT", &[Refused], ""),
        row("TRYAGAIN", &[Refused], ""),
        row("NOSCRIPT", &[Refused, NoScript], ""),
    ]
};

/// How servers before version 6 refuse a login, for which they have no word.
const LOGIN_REFUSED: [&[u8]; 3] = [
    b"ERR invalid password",
    b"ERR Client sent AUTH, but no password is set",
    b"ERR AUTH <password> called without any password",
];

/// What a script is told whose user lacks a right, since Redis 7 and before.
const FORBIDDEN_IN_SCRIPT: [&str; 2] = ["ACL failure in script: ", "The user executing the script"];

/// How a server refuses a connection that is one too many.
const TOO_MANY_CLIENTS: &[u8] = b"ERR max number of clients";

/// An error of a server, by its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ServerError<'a>(&'a [u8]);

impl<'a> ServerError<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The word that it begins with.
    fn word(self) -> &'a [u8] {
        self.answered().0.split(|byte| *byte == b' ').next().unwrap_or_default()
    }

    /// The error that a script's command was told, where this one wraps it; otherwise itself. Redis
    /// 6.2 does so: `ERR Error running script (call to f_…): @user_script:7: @user_script: 7:
    /// -READONLY You …`.
    pub(crate) fn cause(self) -> Self {
        const WRAPPED: &[u8] = b"ERR Error running script";
        const INNER: &[u8] = b": -";
        if self.0.starts_with(WRAPPED) {
            if let Some(at) = self.0.windows(INNER.len()).position(|bytes| bytes == INNER) {
                return Self(&self.0[at + INNER.len()..]);
            }
        }
        self
    }

    /// Without the script's name, which Redis 6.2 puts before an error that a script was told and
    /// has answered: `@user_script: 7: -READONLY You …`.
    fn answered(self) -> Self {
        let number = self.0.strip_prefix(b"@user_script: ").unwrap_or_default();
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let error = number.get(digits..).and_then(|rest| rest.strip_prefix(b": -"));
        error.filter(|_| digits > 0).map_or(self, Self)
    }

    /// Whether it says that nothing was applied. A word that is not known leaves it open, and so
    /// does an error that has ended a script: what the script did before that has been applied.
    /// Ours answer errors only before they have done anything.
    pub(crate) fn was_refused(self) -> bool {
        self.says(Says::Refused) && !self.has_ended_script()
    }

    /// Whether it has ended a script, and was not answered by one.
    fn has_ended_script(self) -> bool {
        const OF_SCRIPT: &[u8] = b"@user_script";
        self.answered().0.windows(OF_SCRIPT.len()).any(|part| part == OF_SCRIPT)
    }

    /// Whether an undo that was answered so may be tried again later.
    pub(crate) fn is_for_now(self) -> bool {
        self.says(Says::NotNow)
    }

    /// Whether the server does not know the command's script.
    pub(crate) fn lacks_script(self) -> bool {
        self.says(Says::NoScript)
    }

    /// Whether a server, or a proxy before it, does not know the command.
    pub(crate) fn is_unknown_command(self) -> bool {
        let text = String::from_utf8_lossy(self.0).to_ascii_lowercase();
        text.contains("unknown command") || text.contains("unsupported command")
    }

    /// Whether no such command is executed for this user, whatever it is about.
    pub(crate) fn rejects_command(self) -> bool {
        const TO_SAY: &[u8] = b"permissions to run";
        let may_not_say = || self.0.windows(TO_SAY.len()).any(|words| words == TO_SAY);
        (self.word() == b"NOPERM" && may_not_say()) || self.is_unknown_command()
    }

    /// Whether the server is a replica.
    pub(crate) fn is_of_replica(self) -> bool {
        self.says(Says::Replica)
    }

    /// Whether nothing can be asked on the connection that brought it.
    pub(crate) fn leaves_nothing_usable(self) -> bool {
        self.says(Says::Unusable) || self.0.starts_with(TOO_MANY_CLIENTS)
    }

    /// Whether a script was told that its user lacks a right, whatever it had done by then.
    pub(crate) fn is_forbidden_in_script(self) -> bool {
        let text = String::from_utf8_lossy(self.0);
        FORBIDDEN_IN_SCRIPT.iter().any(|words| text.contains(words))
    }

    /// Whether the user, the password or a right is missing or wrong.
    pub(crate) fn is_authentication(self) -> bool {
        self.says(Says::Denied) || LOGIN_REFUSED.iter().any(|words| self.0.starts_with(words))
    }

    /// What to do about it, or what is wrong, for people.
    pub(crate) fn advice(self) -> Option<&'static str> {
        self.row().map(|row| row.advice).filter(|advice| !advice.is_empty())
    }

    fn says(self, what: Says) -> bool {
        self.row().is_some_and(|row| row.says.contains(&what))
    }

    fn row(self) -> Option<&'static Row> {
        let word = self.word();
        TABLE.iter().find(|row| row.word.as_bytes() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of the table that say so.
    fn words(say: impl Fn(ServerError<'static>) -> bool) -> Vec<&'static str> {
        let words = TABLE.iter().map(|row| row.word);
        words.filter(|word| say(ServerError::new(word.as_bytes()))).collect()
    }

    #[test]
    fn each_meaning_belongs_to_these_words_and_no_others() {
        let refused = "NOAUTH NOPERM READONLY LOADING BUSY OOM MISCONF NOREPLICAS MASTERDOWN \
                       CLUSTERDOWN MOVED ASK CROSSSLOT TRYAGAIN NOSCRIPT";
        let for_now = "READONLY LOADING BUSY OOM MISCONF NOREPLICAS MASTERDOWN CLUSTERDOWN";
        assert_eq!(words(ServerError::was_refused).join(" "), refused);
        assert_eq!(words(ServerError::is_for_now).join(" "), for_now);
        assert_eq!(words(ServerError::is_authentication), ["NOAUTH", "WRONGPASS", "NOPERM"]);
        let unusable = ["NOAUTH", "DENIED", "LOADING", "BUSY"];
        assert_eq!(words(ServerError::leaves_nothing_usable), unusable);
        assert_eq!(words(ServerError::is_of_replica), ["READONLY"]);
        assert_eq!(words(ServerError::lacks_script), ["NOSCRIPT"]);
        let unadvised = ["MOVED", "ASK", "CROSSSLOT", "TRYAGAIN", "NOSCRIPT"];
        assert_eq!(words(|error| error.advice().is_none()), unadvised);
    }

    /// Errors, and whether they say that nothing was applied.
    const REFUSALS: [(&str, bool); 18] = [
        ("OOM command not allowed when used memory > 'maxmemory'.", true),
        ("NOSCRIPT No matching script.", true),
        ("BUSY", true),
        // A word that is unknown, or known and open, or only begins or ends like a refusal.
        ("ERR syntax error", false),
        ("WRONGPASS invalid username-password pair", false),
        ("DENIED Redis is running in protected mode", false),
        ("EXECABORT Transaction discarded because of previous errors.", false),
        ("BUSYGROUP Consumer Group name already exists", false),
        ("oom in lower case", false),
        (" OOM", false),
        ("", false),
        // Inside a script: of Redis 7 on, of Redis 6.2, and by its own hand.
        ("OOM command not allowed script: f_67, on @user_script:7.", false),
        ("ERR Error running script (call to f_67): @user_script:7: -OOM command", false),
        ("NOPERM @user_script: 3: no", false),
        // Answered by a script, which has done nothing then: of Redis 6.2, and what is none.
        ("@user_script: 48: -READONLY You can't write against a read only replica.", true),
        ("@user_script: 48: -ERR no", false),
        ("@user_script: : -READONLY", false),
        ("@user_script: 4: -OOM @user_script: 5: -OOM", false),
    ];

    #[test]
    fn only_a_known_word_from_outside_a_script_says_that_nothing_was_applied() {
        for (text, refused) in REFUSALS {
            assert_eq!(ServerError::new(text.as_bytes()).was_refused(), refused, "{text}");
        }
    }

    #[test]
    fn the_word_of_an_error_is_found_where_an_old_server_has_wrapped_it() {
        let wrapped = "ERR Error running script (call to f_67c605): @user_script:7: \
                       @user_script: 7: -NOREPLICAS Not enough good replicas to write.";
        let cases = [
            (wrapped, "NOREPLICAS"),
            (
                "ERR Error running script (call to f_67c6): @user_script:7: @user_script: 7: \
                 -READONLY You can't write against a read only replica.",
                "READONLY",
            ),
            (
                "NOREPLICAS Not enough good replicas to write. script: f, on @user_script:7.",
                "NOREPLICAS",
            ),
            ("BUSY a script", "BUSY"),
            ("ERR Error running script (call to f_67c605): @user_script:7: no such thing", "ERR"),
            ("ERR no: -OOM of a script", "ERR"),
            ("", ""),
        ];
        for (text, word) in cases {
            let cause = ServerError::new(text.as_bytes()).cause();
            assert_eq!(cause.word(), word.as_bytes(), "{text}");
        }
        assert!(ServerError::new(wrapped.as_bytes()).cause().is_for_now());
        assert!(!ServerError::new(wrapped.as_bytes()).is_for_now());
    }

    #[test]
    fn errors_without_a_word_of_their_own_are_known_by_how_they_begin() {
        for text in LOGIN_REFUSED {
            assert!(ServerError::new(text).is_authentication());
        }
        assert!(
            !ServerError::new(b"ERR invalid password".split_last().unwrap().1).is_authentication()
        );
        let full = ServerError::new(b"ERR max number of clients reached");
        assert!(full.leaves_nothing_usable() && !full.is_authentication() && !full.was_refused());
    }
}
