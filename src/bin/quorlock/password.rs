//! The password from the environment, put into a URL that has none; and logins that are not to be
//! shown.
//!
//! A URL on the command line is seen by everybody who lists processes; a variable is not. The
//! library takes logins by URL only, so the password goes in there, percent-encoded: whatever its
//! characters are, none can end the login, the host or the path.

/// The variable that holds the password.
pub(crate) const VARIABLE: &str = "REDIS_PASSWORD";

/// `url` with `password`, or as it is when it has a password of its own. What is no URL stays as it
/// is too: the library says what is wrong with it, without repeating it.
pub(crate) fn into_url(url: &str, password: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    // As the library reads it: the last "@" ends the login, its first ":" the user; where a path
    // begins there is no login.
    let (login, place) = match place.rsplit_once('@') {
        Some(parts) if !place.starts_with('/') => parts,
        _ => ("", place),
    };
    let (user, own) = login.split_once(':').unwrap_or((login, ""));
    if !own.is_empty() {
        return url.into();
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{user}:{}@{place}{query}", encode(password))
}

/// Percent-encodes every byte that is not a letter, a digit or one of `-._~`.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// What is between each line's `://` and its last `@`, taken out; nothing if there is nothing.
pub(crate) fn without_logins(text: &str) -> Option<String> {
    let hide = |line: &str| {
        let (scheme, rest) = line.split_once("://")?;
        let (_, place) = rest.rsplit_once('@')?;
        Some(format!("{scheme}://…@{place}"))
    };
    let is_there = text.lines().any(|line| hide(line).is_some());
    let shown = |line: &str| hide(line).unwrap_or_else(|| line.into());
    is_there.then(|| text.split('\n').map(shown).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_password_gets_one() {
        let cases = [
            ("redis://h", "redis://:pw@h"),
            ("redis://h:7000/3?protocol=2", "redis://:pw@h:7000/3?protocol=2"),
            ("redis://me@h", "redis://me:pw@h"),
            ("redis://me:@h", "redis://me:pw@h"),
            ("redis://:@[::1]:7000", "redis://:pw@[::1]:7000"),
            ("unix:///run/redis.sock?db=1", "unix://:pw@/run/redis.sock?db=1"),
            ("unix:///run/a@b", "unix://:pw@/run/a@b"),
            ("redis://h?name=a@b", "redis://:pw@h?name=a@b"),
        ];
        for (url, with) in cases {
            assert_eq!(into_url(url, "pw"), with);
        }
    }

    #[test]
    fn a_password_of_its_own_wins_and_what_is_no_url_is_left_alone() {
        for url in ["redis://:own@h", "redis://me:p@ss:w@h/1?db=2", "h:6379", "", "://", "redis:/h"]
        {
            let with = into_url(url, "pw");
            assert!(with == url || url == "://", "{url}: {with}");
        }
    }

    #[test]
    fn a_login_is_taken_out_of_what_is_said() {
        let cases = [
            ("no URL: a@b\n", None),
            ("redis://h/1 is fine", None),
            ("bad 'redis://:p@w@h'\n\nUsage\n", Some("bad 'redis://…@h'\n\nUsage\n")),
            ("a redis://u:p@a,redis://:p w@b 'x'", Some("a redis://…@b 'x'")),
            ("one unix://:p@/s\ntwo redis://p@h", Some("one unix://…@/s\ntwo redis://…@h")),
        ];
        for (said, shown) in cases {
            assert_eq!(without_logins(said).as_deref(), shown);
        }
    }

    #[test]
    fn every_byte_of_a_password_survives() {
        assert_eq!(encode("aZ0-._~"), "aZ0-._~");
        assert_eq!(encode("p@ss:w/?#[]%,& ü\n"), "p%40ss%3Aw%2F%3F%23%5B%5D%25%2C%26%20%C3%BC%0A");
        // The library understands what we wrote.
        for byte in 0..128_u8 {
            let url = into_url("redis://me@host:7000/3", &char::from(byte).to_string());
            assert!(quorlock::Locker::single(&url).is_ok(), "{byte:#x}");
        }
    }
}
