//! A source file, told apart into code, comments, strings and tests.
//!
//! No parser: a scanner that knows where Rust's comments and literals begin and end, and matches
//! braces in what is left. Formatted code, which ours is, gives it nothing to stumble over.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path from the root of the repository, with forward slashes.
    pub(crate) path: String,
    /// Its text as it is.
    pub(crate) text: String,
    /// Its text with the insides of comments and literals blanked, byte for byte as long.
    pub(crate) code: String,
    /// The byte ranges of items under `#[cfg(test)]`.
    pub(crate) tests: Vec<Range<usize>>,
}

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = blank(text);
        let whole = is_test_file(path).then_some(0..text.len());
        let tests = whole.into_iter().chain(test_items(&code)).collect();
        Self { path: path.into(), text: text.into(), code, tests }
    }

    /// The number of the line that holds the byte, from 1.
    pub(crate) fn line_at(&self, at: usize) -> usize {
        self.text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    /// Whether the byte is in a test.
    pub(crate) fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// A fault at the byte.
    pub(crate) fn fault(&self, at: usize, what: impl Into<String>) -> Fault {
        Fault { path: self.path.clone(), line: self.line_at(at), what: what.into() }
    }

    /// Where `needle` stands in the code as a whole word, so that `respawn` is no `spawn`.
    pub(crate) fn find<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code.match_indices(needle).map(|(at, _)| at).filter(move |&at| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + needle.len()..].chars().next();
            let glued_before = needle.starts_with(is_word) && before.is_some_and(is_word);
            let glued_after = needle.ends_with(is_word) && after.is_some_and(is_word);
            !glued_before && !glued_after
        })
    }
}

/// Every `.rs` file below `root/folder`, sorted by path.
pub(crate) fn read_all(root: &Path, folder: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inner = path.strip_prefix(root).unwrap_or(&path);
                let words: Vec<_> = inner.iter().map(|word| word.to_string_lossy()).collect();
                let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
                sources.push(Source::new(&words.join("/"), &text));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// Whether the character can be part of a name.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The end of the block whose opening brace is at `open`: behind its closing brace.
pub(crate) fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return open + offset + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The end of the item that begins at `from`: behind its block, or behind its semicolon.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    // `;` and `{` also stand in the brackets of array types and of attributes.
    let mut depth = 0_usize;
    for (offset, byte) in code.as_bytes()[from..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return block_end(code, from + offset),
            b';' if depth == 0 => return from + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Files that are nothing but tests.
fn is_test_file(path: &str) -> bool {
    let tests = ["tests", "tests.rs", "benches", "simulation"];
    path.split('/').any(|word| tests.contains(&word))
}

/// The items that only a test build sees.
pub(crate) fn test_items(code: &str) -> Vec<Range<usize>> {
    let attributes = code.match_indices("#[cfg(").filter_map(|(at, _)| {
        let close = at + code[at..].find(']')?;
        let words: Vec<&str> = code[at..close].split(|c| !is_word(c)).collect();
        let others_too = words.contains(&"any") || code[at..close].contains("not(test)");
        (words.contains(&"test") && !others_too).then(|| at..item_end(code, close + 1))
    });
    attributes.collect()
}

/// Blanks the insides of comments and literals, and keeps every line break.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(text, at);
        if let Some((inside, end)) = end {
            for byte in &mut code[inside] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end;
        } else {
            at += 1;
        }
    }
    // Whole characters are blanked, so this is UTF-8 still.
    String::from_utf8_lossy(&code).into_owned()
}

/// The comment or literal that begins at `at`: what to blank of it, and where it ends.
fn literal_end(text: &str, at: usize) -> Option<(Range<usize>, usize)> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    let glued = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => {
            let end = text[at..].find('\n').map_or(text.len(), |offset| at + offset);
            Some((at..end, end))
        }
        [b'/', b'*', ..] => {
            let end = block_comment_end(bytes, at);
            Some((at..end, end))
        }
        [b'"', ..] => {
            let end = quoted_end(bytes, at, b'"')?;
            Some((at + 1..end - 1, end))
        }
        [b'r', b'"' | b'#', ..] if !glued || (at > 0 && matches!(bytes[at - 1], b'b' | b'c')) => {
            let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
            let open = at + 1 + hashes;
            // A raw name such as `r#type` has no quote here.
            (bytes.get(open) == Some(&b'"')).then_some(())?;
            let close = format!("\"{}", "#".repeat(hashes));
            let inside_end = open + 1 + text[open + 1..].find(&close)?;
            Some((open + 1..inside_end, inside_end + close.len()))
        }
        [b'\'', b'\\', ..] => {
            let end = quoted_end(bytes, at, b'\'')?;
            Some((at + 1..end - 1, end))
        }
        [b'\'', ..] => {
            // One character and a quote; anything else after a quote is a lifetime.
            let character = text[at + 1..].chars().next()?;
            let close = at + 1 + character.len_utf8();
            (bytes.get(close) == Some(&b'\'')).then_some((at + 1..close, close + 1))
        }
        _ => None,
    }
}

/// Behind the closing quote of what opens at `at`.
fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> Option<usize> {
    let mut end = at + 1;
    while *bytes.get(end)? != quote {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    Some(end + 1)
}

/// Behind the end of the comment that opens at `at`; they nest.
fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut end) = (0_usize, at);
    while end < bytes.len() {
        match &bytes[end..] {
            [b'/', b'*', ..] => {
                depth += 1;
                end += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    return end;
                }
            }
            _ => end += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_kept() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x // y", 1)"#, r#"f("      ", 1)"#),
            (r##"f(r#"a"b"#, b)"##, r##"f(r#"   "#, b)"##),
            (r#"f("\"", 'x', '\'', b'{')"#, r#"f("  ", ' ', '  ', b' ')"#),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("let r#type = r;", "let r#type = r;"),
            ("\"ü\n\"", "\"  \n\""),
        ];
        for (text, code) in cases {
            assert_eq!(blank(text), code, "{text}");
        }
    }

    #[test]
    fn tests_are_told_from_code() {
        let text = "fn a() {}\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(all(test, not(loom)))]\n\
                    mod tests {\n fn d() { }\n}\nfn e() {}\n#[cfg(not(test))]\nfn f() {}\n\
                    #[cfg(any(test, loom))]\nfn g() {}";
        let source = Source::new("src/x.rs", text);
        let in_test = |needle: &str| source.in_test(text.find(needle).unwrap());
        let found = ["a()", "use b", "c()", "d()", "e()", "f()", "g()"].map(in_test);
        assert_eq!(found, [false, true, false, true, false, false, false]);
        assert_eq!(source.line_at(text.find("c()").unwrap()), 4);
        assert!(Source::new("resp/tests/x.rs", "fn a() {}").in_test(0));
        assert!(Source::new("src/link/tests.rs", "fn a() {}").in_test(0));
        assert!(!Source::new("src/testing/mod.rs", "fn a() {}").in_test(0));
    }

    #[test]
    fn words_are_found_whole() {
        let source = Source::new("src/x.rs", "respawn(); spawn(); spawned // spawn");
        assert_eq!(source.find("spawn").collect::<Vec<_>>(), [11]);
    }
}
