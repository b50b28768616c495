//! Makes text from servers and callbacks safe to print: secrets are removed, the length is capped,
//! and control and non-ASCII bytes are escaped.
//!
//! Servers repeat what they were sent, proxies and callbacks for credentials put whole URLs into
//! their errors. Everything that looks like a login is removed; in doubt, too much rather than too
//! little.

/// Replaces a secret.
const REDACTED: &[u8] = b"(redacted)";

/// The most bytes that are examined: far more than are shown.
const LENGTH_MAX: usize = 4_096;

/// The text without what looks like a secret, escaped and shortened.
pub(crate) fn printable(text: &[u8]) -> Box<str> {
    const SHOWN_MAX: usize = 160;
    let text = discreet(text);
    let cut = text.get(..SHOWN_MAX).unwrap_or(&text);
    let mut printable = cut.escape_ascii().to_string().replace("\\'", "'").replace("\\\"", "\"");
    if text.len() > SHOWN_MAX {
        printable.push('…');
    }
    printable.into()
}

/// Removes a known secret from a text; `None` if the text does not contain it. Finds it with any of
/// its bytes escaped or percent-encoded, and also if only its beginning is there.
pub(crate) fn without_secret(text: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    /// A beginning of this length is removed like the whole secret.
    const GIVEN_AWAY: usize = 8;
    let mut rest = text.get(..LENGTH_MAX).unwrap_or(text);
    let (mut shown, mut is_there) = (Vec::new(), false);
    while let Some((first, tail)) = rest.split_first() {
        let (count, end) = beginning(rest, secret);
        if count > 0 && count >= secret.len().min(GIVEN_AWAY) {
            shown.extend_from_slice(REDACTED);
            rest = rest.get(end..).unwrap_or_default();
            is_there = true;
        } else {
            shown.push(*first);
            rest = tail;
        }
    }
    is_there.then_some(shown)
}

/// How many bytes of `secret` the text begins with, and where they end.
fn beginning(text: &[u8], secret: &[u8]) -> (usize, usize) {
    // The possible ends of the match: a text can be ambiguous (is "%25" three bytes of a secret, or
    // a percent sign?).
    let mut ends = vec![0];
    for (count, byte) in secret.iter().enumerate() {
        let read = |&end: &usize| {
            let rest = text.get(end..).unwrap_or_default();
            spellings(rest, *byte).map(move |length| end + length)
        };
        let mut next: Vec<usize> = ends.iter().flat_map(read).collect();
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return (count, ends.into_iter().max().unwrap_or(0));
        }
        ends = next;
    }
    (secret.len(), ends.into_iter().max().unwrap_or(0))
}

/// The lengths of the spellings of `byte` at the beginning of the text: the byte itself, `%40`,
/// `\x40`, `\n` and `\"`, and a blank instead of a control byte.
fn spellings(text: &[u8], byte: u8) -> impl Iterator<Item = usize> {
    let hexadecimal = |mark: &[u8]| {
        let digits = text.strip_prefix(mark)?.get(..2)?;
        let value = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        (value == byte).then_some(mark.len() + digits.len())
    };
    let escaped = match text {
        [b'\\', b'n', ..] => byte == b'\n',
        [b'\\', b'r', ..] => byte == b'\r',
        [b'\\', b't', ..] => byte == b'\t',
        [b'\\', b'a', ..] => byte == b'\x07',
        [b'\\', b'b', ..] => byte == b'\x08',
        [b'\\', mark, ..] => !mark.is_ascii_alphanumeric() && *mark == byte,
        _ => false,
    };
    let itself =
        text.first().is_some_and(|is| *is == byte || (*is == b' ' && byte.is_ascii_control()));
    [hexadecimal(b"%"), hexadecimal(b"\\x"), escaped.then_some(2), itself.then_some(1)]
        .into_iter()
        .flatten()
}

/// Removes what looks like a secret: the arguments of a command that a server does not know (a
/// password may be among them), the random value by which a lock can be released, and a URL's login
/// and parameters.
fn discreet(text: &[u8]) -> Vec<u8> {
    const ARGUMENTS: &[u8] = b", with args beginning with";
    let text = text.get(..LENGTH_MAX).unwrap_or(text);
    let end = find(text, ARGUMENTS).unwrap_or(text.len());
    let text = without_values(text.get(..end).unwrap_or_default());
    without_cut_logins(&without_parameters(&without_login(&text)))
}

/// Removes the random part of locks' values, and keeps the owner behind the `@`.
fn without_values(text: &[u8]) -> Vec<u8> {
    const VALUE_HEX: usize = 40;
    let mut shown = Vec::new();
    for &byte in text {
        if byte == b'@' {
            let digits = shown.iter().rev().take_while(|byte| u8::is_ascii_hexdigit(byte)).count();
            if digits >= VALUE_HEX {
                shown.truncate(shown.len() - digits);
                shown.extend_from_slice(REDACTED);
            }
        }
        shown.push(byte);
    }
    shown
}

/// Before a URL's login.
const LOGIN: &[u8] = b"://";

/// Removes what stands between the first `://` and the last `@` behind it: a password that was not
/// encoded may contain either, and any other mark. If there is a `?` between them, that `@` may
/// belong to a parameter, and the rest of the word is removed too.
fn without_login(text: &[u8]) -> Vec<u8> {
    let Some(begin) = find(text, LOGIN).map(|at| at + LOGIN.len()) else { return text.to_vec() };
    let (before, behind) = text.split_at_checked(begin).unwrap_or((text, b""));
    let Some(end) = behind.iter().rposition(|byte| *byte == b'@') else { return text.to_vec() };
    let (login, place) = behind.split_at_checked(end).unwrap_or((behind, b""));
    let from = match login.contains(&b'?') {
        true => place.iter().position(u8::is_ascii_whitespace).unwrap_or(place.len()),
        false => 0,
    };
    [before, REDACTED, place.get(from..).unwrap_or_default()].concat()
}

/// Cuts each word at the index that `find` returns.
fn in_words(text: &[u8], find: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    let mut shown = Vec::new();
    for word in text.split_inclusive(u8::is_ascii_whitespace) {
        match find(word) {
            Some(at) => {
                shown.extend_from_slice(word.get(..at).unwrap_or(word));
                shown.extend_from_slice(REDACTED);
                shown.extend(word.last().filter(|last| last.is_ascii_whitespace()));
            }
            None => shown.extend_from_slice(word),
        }
    }
    shown
}

/// Removes what stands behind a `?` in a word, if it contains a `=`.
fn without_parameters(text: &[u8]) -> Vec<u8> {
    in_words(text, |word| {
        let query = word.iter().position(|byte| *byte == b'?')? + 1;
        word.get(query..)?.contains(&b'=').then_some(query)
    })
}

/// Removes logins that were cut off before their `@`, where no port number follows the colon.
fn without_cut_logins(text: &[u8]) -> Vec<u8> {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"/?#'\"`),".contains(byte);
    let is_login = |behind: &[u8]| {
        let place = behind.split(is_end).next()?;
        let port = place.get(find(place, b":")? + 1..)?;
        Some(!place.starts_with(b"[") && !port.iter().all(u8::is_ascii_digit))
    };
    in_words(text, |word| {
        // A list may stand in one word, and any of its URLs be cut off.
        let logins = (0..word.len()).filter(|at| word[*at..].starts_with(LOGIN));
        let mut logins = logins.map(|at| at + LOGIN.len());
        logins.find(|login| is_login(&word[*login..]) == Some(true))
    })
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::Entropy;

    #[test]
    fn a_servers_text_is_without_what_it_repeats_of_a_command() {
        let value = "0123456789abcdef0123456789abcdef01234567@me@h:1";
        let cases = [
            (
                "ERR unknown command `AUTH`, with args beginning with: `pw`, ",
                "ERR unknown command `AUTH`",
            ),
            (
                "ERR no SET k 0123456789abcdef0123456789abcdef01234567@me@h:1",
                "ERR no SET k (redacted)@me@h:1",
            ),
            ("ERR 0123456789abcdef@me", "ERR 0123456789abcdef@me"),
        ];
        for (said, shown) in cases {
            assert_eq!(&*printable(said.as_bytes()), shown);
        }
        let far = format!("{}{value}", "x".repeat(100));
        assert!(!printable(far.as_bytes()).contains("0123"));
    }

    #[test]
    fn a_url_is_without_its_login_and_its_parameters() {
        let cases = [
            ("no redis://h:1/2 there", "no redis://h:1/2 there"),
            ("no redis://u:p@h:1 there", "no redis://(redacted)@h:1 there"),
            ("redis://:p@s://w/#@h/3 away", "redis://(redacted)@h/3 away"),
            ("redis://:p?w@h/3 away", "redis://(redacted) away"),
            ("redis://:p w@h", "redis://(redacted)@h"),
            ("https://v/a?token=t&b=c: 403", "https://v/a?(redacted) 403"),
            ("GET /a?token=t\nfailed", "GET /a?(redacted)\\nfailed"),
            ("https://u:p@v/a?mail=a@b.c failed", "https://(redacted) failed"),
            ("redis://me:pa, redis://:p", "redis://(redacted) redis://(redacted)"),
            ("redis://h:1,redis://:p there", "redis://h:1,redis://(redacted) there"),
            ("(redis://h:1), redis://h: no", "(redis://h:1), redis://h: no"),
            ("redis://[::1]:1 is", "redis://[::1]:1 is"),
            ("is it there? no", "is it there? no"),
            ("me@h is no user?", "me@h is no user?"),
        ];
        for (said, shown) in cases {
            assert_eq!(&*printable(said.as_bytes()), shown);
        }
    }

    #[test]
    fn a_secret_is_found_in_each_spelling_and_by_its_beginning() {
        let cases: [(&str, &str, &str); 9] = [
            ("ERR pw, pw", "pw", "ERR (redacted), (redacted)"),
            ("ERR 'p%40s%2fw'", "p@s/w", "ERR '(redacted)'"),
            (r#"ERR "p\"w\x41\n""#, "p\"wA\n", r#"ERR "(redacted)""#),
            ("ERR a  b", "a\r\nb", "ERR (redacted)"),
            ("ERR %25", "%25", "ERR (redacted)"),
            ("ERR %25", "%", "ERR (redacted)"),
            ("ERR 12345678…", "1234567890", "ERR (redacted)…"),
            ("ERR 1234567 ", "1234567890", ""),
            ("ERR", "", ""),
        ];
        for (said, secret, shown) in cases {
            let found = without_secret(said.as_bytes(), secret.as_bytes()).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&found), shown, "{said}");
        }
    }

    /// Draws from what is hard: marks of URLs and of quotations, control bytes, bytes beyond ASCII.
    struct Draw(Entropy);

    impl Draw {
        fn below(&self, bound: usize) -> usize {
            self.0.nonce().0[0] as usize % bound
        }

        fn bytes(&self, length: usize) -> Vec<u8> {
            const HARD: &[u8] = b"@@@::/?#&=%%\\\"' \r\n\t[]()ZZ\x80\xffx0";
            (0..length).map(|_| HARD[self.below(HARD.len())]).collect()
        }

        /// The secret in a spelling that may occur.
        fn spelled(&self, secret: &[u8]) -> Vec<u8> {
            let spell = |byte: &u8| match self.below(5) {
                0 => format!("%{byte:02X}").into_bytes(),
                1 => format!("%{byte:02x}").into_bytes(),
                2 => format!("\\x{byte:02x}").into_bytes(),
                3 if byte.is_ascii() => byte.escape_ascii().to_string().into_bytes(),
                _ => vec![*byte],
            };
            secret.iter().flat_map(spell).collect()
        }
    }

    #[test]
    fn no_secret_survives_whatever_it_is_and_however_it_is_spelled() {
        let draw = Draw(Entropy::from_seed(1));
        for round in 0..3_000 {
            let secret = draw.bytes(1 + draw.below(20));
            let spelled = draw.spelled(&secret);
            let (before, behind) = (draw.bytes(draw.below(10)), draw.bytes(draw.below(10)));
            let said = [&before[..], &spelled, &behind].concat();
            let shown = without_secret(&said, &secret);
            let shown = shown.unwrap_or_else(|| panic!("{round}: {}", said.escape_ascii()));
            // The mark that stands for it may hold a short one.
            let mut rest = &shown[..];
            while let Some(at) = find(rest, REDACTED) {
                assert!(find(&rest[..at], &secret).is_none(), "{round}: {}", said.escape_ascii());
                rest = &rest[at + REDACTED.len()..];
            }
            assert!(find(rest, &secret).is_none(), "{round}: {}", said.escape_ascii());
        }
    }

    #[test]
    fn no_login_and_no_parameter_of_a_url_survives() {
        let draw = Draw(Entropy::from_seed(2));
        for round in 0..3_000 {
            // `Z` stands nowhere else.
            let password = [b"Z", &draw.bytes(draw.below(20))[..], b"Z"].concat();
            let value: Vec<u8> = draw.bytes(draw.below(9));
            let value: Vec<u8> = value.into_iter().filter(|byte| byte.is_ascii_graphic()).collect();
            let user: &[u8] = [&b""[..], b"me"][draw.below(2)];
            let login = [user, b":", &password, b"@"].concat();
            let login = if draw.below(4) == 0 { Vec::new() } else { login };
            let query = [b"?secret=Z", &value[..]].concat();
            let query = if draw.below(2) == 0 { Vec::new() } else { query };
            let said = [b"no answer of redis://", &login[..], b"h:1/2", &query, b" today"].concat();
            let shown = printable(&said);
            assert!(!shown.contains('Z'), "{round}: {} is shown as {shown}", said.escape_ascii());
            assert!(shown.starts_with("no answer of redis://"), "{shown}");
        }
    }

    #[test]
    fn a_servers_text_is_capped() {
        assert_eq!(printable(&[b'x'; 1_000]).chars().count(), 161);
    }
}
