//! The password's variable, and removing logins from messages.
//!
//! Every user who lists processes sees a URL on the command line, but not a variable.

/// The variable that holds the password.
pub(crate) const VARIABLE: &str = "REDIS_PASSWORD";

/// The text without its possible secrets; `None` if it has none. These count as secrets: what
/// stands between a line's first `://` and its last `@`; a login that was cut off before its `@`;
/// and, in a word, a query string that has a `=`.
pub(crate) fn without_logins(text: &str) -> Option<String> {
    let hide = |line| without_cut_logins(&without_parameters(&without_login(line)));
    let shown = text.split('\n').map(hide).collect::<Vec<_>>().join("\n");
    (shown != text).then_some(shown)
}

fn without_login(line: &str) -> String {
    let hidden = line.split_once("://").and_then(|(scheme, rest)| {
        let (login, place) = rest.rsplit_once('@')?;
        // Behind a "?", the "@" may be a parameter's.
        let place = match place.find(char::is_whitespace) {
            _ if !login.contains('?') => format!("@{place}"),
            Some(end) => place[end..].into(),
            None => String::new(),
        };
        Some(format!("{scheme}://…{place}"))
    });
    hidden.unwrap_or_else(|| line.into())
}

/// Cuts each word behind the two parts that `find` returns; leaves it as it is for `None`.
fn in_words(line: &str, find: impl Fn(&str) -> Option<(&str, &str)>) -> String {
    let hide = |word: &str| match find(word) {
        Some((place, mark)) => {
            let blank = if word.ends_with(char::is_whitespace) { " " } else { "" };
            format!("{place}{mark}…{blank}")
        }
        None => word.into(),
    };
    line.split_inclusive(char::is_whitespace).map(hide).collect()
}

fn without_parameters(line: &str) -> String {
    in_words(line, |word| {
        let (place, query) = word.split_once('?')?;
        query.contains('=').then_some((place, "?"))
    })
}

fn without_cut_logins(line: &str) -> String {
    in_words(line, |word| {
        // A list may stand in one word, and any of its URLs be cut off.
        let mut places = word.match_indices("://");
        let (at, mark) = places.find(|(at, mark)| is_cut_login(&word[at + mark.len()..]))?;
        Some((&word[..at], mark))
    })
}

/// Whether it begins with a name and a colon that no port number follows.
fn is_cut_login(rest: &str) -> bool {
    let place = rest.split(|c: char| c.is_whitespace() || "/?#'\"`),".contains(c)).next();
    let port =
        place.filter(|place| !place.starts_with('[')).and_then(|place| place.split_once(':'));
    port.is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_taken_out_of_what_is_said() {
        let cases = [
            ("no URL: a@b\n", None),
            ("redis://h/1 is fine", None),
            ("bad 'redis://:p@w@h'\n\nUsage\n", Some("bad 'redis://…@h'\n\nUsage\n")),
            ("a redis://u:p@a,redis://:p w@b 'x'", Some("a redis://…@b 'x'")),
            ("one unix://:p@/s\ntwo redis://p@h", Some("one unix://…@/s\ntwo redis://…@h")),
            ("is it there?", None),
            ("a redis://me:p?a and redis://u:p", Some("a redis://… and redis://…")),
            ("bad redis://h:1,redis://:p there", Some("bad redis://h:1,redis://… there")),
            ("bad 'redis://h:6379', 'redis://[::1]:1' and redis://h: there", None),
            ("bad 'redis://h?password=p' there", Some("bad 'redis://h?… there")),
            ("bad 'redis://h?mail=p@p' there", Some("bad 'redis://… there")),
            ("bad redis://:p?w=p@h there", Some("bad redis://… there")),
        ];
        for (said, shown) in cases {
            assert_eq!(without_logins(said).as_deref(), shown);
        }
    }
}
