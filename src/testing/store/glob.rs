//! Patterns with `*` and `?`, as `KEYS` and ACLs have them.

/// Whether the pattern is all of the text.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Where the last star stands, and how much of the text it has taken.
    let mut star = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == text[place] => {
                (at, place) = (at + 1, place + 1);
            }
            _ => {
                let Some((starred, taken)) = star else { return false };
                star = Some((starred, taken + 1));
                (at, place) = (starred + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_take_any_bytes_and_the_rest_is_literal() {
        let cases = [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("*b*d", "abcbd", true),
            ("h?llo", "hello", true),
            ("?", "", false),
            ("", "x", false),
            ("lock:*", "lock:", true),
        ];
        for (pattern, text, fits) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }
}
