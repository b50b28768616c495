//! Mutants of Lua: one small change each, in the lines of a script.
//!
//! No parser: a scanner that knows where Lua's words, numbers, texts and comments begin and end.
//! Line breaks stay where they are, so that an error tells the same line as before.

use std::ops::Range;

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mutant {
    /// The lines that it changes, from 1.
    pub(super) lines: Vec<usize>,
    pub(super) what: String,
    /// The whole text, changed.
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Word,
    Number,
    Text,
    Sign,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Token {
    kind: Kind,
    at: Range<usize>,
    line: usize,
}

/// A script's text in tokens, and the changes that were made to it.
struct Mutator<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    mutants: Vec<Mutant>,
}

/// What stands for what, one way each.
const SIGNS: [(&str, &[&str]); 11] = [
    ("==", &["~="]),
    ("~=", &["=="]),
    ("<", &["<=", ">"]),
    ("<=", &["<", ">="]),
    (">", &[">=", "<"]),
    (">=", &[">", "<="]),
    ("and", &["or"]),
    ("or", &["and"]),
    ("not", &[""]),
    ("true", &["false"]),
    ("false", &["true"]),
];

/// Other names for the like of them.
const NAMES: [(&str, &str); 7] = [
    ("call", "pcall"),
    ("pcall", "call"),
    ("KEYS", "ARGV"),
    ("ARGV", "KEYS"),
    ("tonumber", ""),
    ("match", "find"),
    ("find", "match"),
];

/// The lines that hold code.
pub(super) fn code_lines(text: &str) -> Vec<usize> {
    let mut lines: Vec<usize> = scan(text).iter().map(|token| token.line).collect();
    lines.dedup();
    lines
}

/// Every mutant of a text, each once.
pub(super) fn mutants(text: &str) -> Vec<Mutant> {
    let mut mutator = Mutator { text, tokens: scan(text), mutants: Vec::new() };
    mutator.lines();
    mutator.tokens_one_by_one();
    mutator.conditions();
    mutator.blocks();
    mutator.returns();
    mutator.locals();
    let mut mutants: Vec<Mutant> = Vec::new();
    for mutant in mutator.mutants {
        if mutant.text != text && mutants.iter().all(|other| other.text != mutant.text) {
            mutants.push(mutant);
        }
    }
    mutants
}

impl Mutator<'_> {
    fn word(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &self.text[token.at.clone()])
    }

    /// Puts something in the place of some bytes, whose line breaks stay.
    fn replace(&mut self, at: Range<usize>, with: &str, what: String) {
        let breaks: String = self.text[at.clone()].chars().filter(|c| *c == '\n').collect();
        let first = self.text[..at.start].matches('\n').count() + 1;
        let text = [&self.text[..at.start], with, &breaks, &self.text[at.end..]].concat();
        let lines = if breaks.is_empty() { vec![first] } else { vec![first, first + breaks.len()] };
        self.mutants.push(Mutant { lines, what, text });
    }

    /// Leaves out each line, and swaps two that both say a command.
    fn lines(&mut self) {
        let mut start = 0;
        let mut former: Option<Range<usize>> = None;
        for line in self.text.split_inclusive('\n') {
            let at = start..start + line.trim_end_matches('\n').len();
            start += line.len();
            if self.tokens.iter().any(|token| at.contains(&token.at.start)) {
                self.replace(at.clone(), "", "the line left out".into());
            }
            let says = |at: &Range<usize>| self.text[at.clone()].trim_start().starts_with("redis.");
            if let Some(former) = former.filter(|former| says(former) && says(&at)) {
                let (first, second) = (&self.text[former.clone()], &self.text[at.clone()]);
                let rest = [&self.text[..former.start], second, "\n", first, &self.text[at.end..]];
                let line = self.text[..at.start].matches('\n').count() + 1;
                let text = rest.concat();
                let what = "the two lines swapped".to_owned();
                self.mutants.push(Mutant { lines: vec![line - 1, line], what, text });
            }
            former = Some(at);
        }
    }

    fn tokens_one_by_one(&mut self) {
        for (index, token) in self.tokens.clone().into_iter().enumerate() {
            let word = self.word(index).to_owned();
            let mut others: Vec<String> = Vec::new();
            match token.kind {
                Kind::Number => {
                    let number: i64 = word.parse().unwrap();
                    others.extend([number + 1, number - 1].map(|number| number.to_string()));
                }
                Kind::Text => others.extend(other_texts(&word)),
                Kind::Sign if word == "-" => others.push(String::new()),
                _ => {
                    let signs = SIGNS.iter().filter(|(sign, _)| *sign == word);
                    others.extend(signs.flat_map(|(_, others)| *others).map(|it| (*it).to_owned()));
                    let names = NAMES.iter().filter(|(name, _)| *name == word);
                    others.extend(names.map(|(_, other)| (*other).to_owned()));
                }
            }
            for other in others {
                let shown = if other.is_empty() { "nothing" } else { &*other };
                let place = self.place(index);
                self.replace(token.at.clone(), &other, format!("{word} → {shown}{place}"));
            }
        }
    }

    /// Which of its like in the line a token is, where there are several.
    fn place(&self, index: usize) -> String {
        let (token, word) = (&self.tokens[index], self.word(index));
        let like =
            |other: &usize| self.tokens[*other].line == token.line && self.word(*other) == word;
        let all = (0..self.tokens.len()).filter(like);
        let number = all.clone().take_while(|other| *other <= index).count();
        if all.count() == 1 { String::new() } else { format!(" ({number})") }
    }

    /// The index of the first token behind this one that is this word.
    fn next(&self, index: usize, wanted: &str) -> Option<usize> {
        (index + 1..self.tokens.len()).find(|next| self.word(*next) == wanted)
    }

    fn conditions(&mut self) {
        for index in 0..self.tokens.len() {
            let Some(then) = self.next(index, "then").filter(|_| self.word(index) == "if") else {
                continue;
            };
            let at = self.tokens[index + 1].at.start..self.tokens[then - 1].at.end;
            for constant in ["true", "false"] {
                self.replace(at.clone(), constant, format!("the condition → {constant}"));
            }
        }
    }

    /// Leaves out each block, from its `if`, `for` or `function` to its `end`, or from a `do` by
    /// itself.
    fn blocks(&mut self) {
        let mut open = Vec::new();
        for index in 0..self.tokens.len() {
            match self.word(index) {
                "if" | "for" | "function" => open.push(index),
                "do" if index == 0 || self.tokens[index - 1].line < self.tokens[index].line => {
                    open.push(index);
                }
                "else" => {
                    let at = self.tokens[index].at.clone();
                    self.replace(at, "elseif false then", "the other branch left out".into());
                }
                "end" => {
                    let start: usize = open.pop().unwrap();
                    let is_local = start > 0 && self.word(start - 1) == "local";
                    let start = if is_local { start - 1 } else { start };
                    let at = self.tokens[start].at.start..self.tokens[index].at.end;
                    self.replace(at, "", "the block left out".into());
                }
                _ => {}
            }
        }
    }

    /// Returns something else: `nil`, 0, 1.
    fn returns(&mut self) {
        for index in 0..self.tokens.len() {
            if self.word(index) != "return" {
                continue;
            }
            let line = self.tokens[index].line;
            let in_line = |token: &&Token| token.line == line;
            let Some(last) = self
                .tokens
                .iter()
                .rfind(in_line)
                .filter(|last| last.at.start > self.tokens[index].at.start)
            else {
                continue;
            };
            let at = self.tokens[index + 1].at.start..last.at.end;
            for other in ["nil", "0", "1"] {
                self.replace(at.clone(), other, format!("returns {other}"));
            }
        }
    }

    /// Reads `nil` in the place of each local variable.
    fn locals(&mut self) {
        let mut names: Vec<String> = Vec::new();
        let mut index = 0;
        while index < self.tokens.len() {
            if self.word(index) == "local" {
                let line = self.tokens[index].line;
                let in_line = self.tokens.iter().take_while(|token| token.line <= line).count();
                let assigned = self.next(index, "=").unwrap_or(in_line).min(in_line);
                let declared = index + 1..assigned;
                let words = declared.filter(|index| self.tokens[*index].kind == Kind::Word);
                names.extend(words.map(|index| self.word(index).to_owned()).collect::<Vec<_>>());
                index = assigned;
                continue;
            }
            let word = self.word(index).to_owned();
            let is_field = index > 0 && self.word(index - 1) == ".";
            if names.contains(&word) && !is_field {
                let (at, place) = (self.tokens[index].at.clone(), self.place(index));
                self.replace(at, "nil", format!("{word} → nil{place}"));
            }
            index += 1;
        }
    }
}

/// A text with more at its end, without its first character, without its last, and none.
fn other_texts(quoted: &str) -> Vec<String> {
    let quote = &quoted[..1];
    let inside = &quoted[1..quoted.len() - 1];
    let mut others = vec![format!("{inside}X")];
    if inside.len() > 1 {
        others.extend([inside[1..].to_owned(), inside[..inside.len() - 1].to_owned()]);
    }
    others.push(String::new());
    others.into_iter().map(|other| format!("{quote}{other}{quote}")).collect()
}

/// The tokens of a text, without its comments.
fn scan(text: &str) -> Vec<Token> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = |belongs: fn(char) -> bool| rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let (kind, length) = match first {
            '-' if rest.starts_with("--") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            blank if blank.is_whitespace() => {
                at += blank.len_utf8();
                continue;
            }
            digit if digit.is_ascii_digit() => (Kind::Number, length(|c| c.is_ascii_digit())),
            letter if letter.is_alphabetic() || letter == '_' => {
                (Kind::Word, length(|c| c.is_alphanumeric() || c == '_'))
            }
            quote @ ('\'' | '"') => (Kind::Text, rest[1..].find(quote).unwrap() + 2),
            _ if ["==", "~=", "<=", ">=", ".."].contains(&rest.get(..2).unwrap_or_default()) => {
                (Kind::Sign, 2)
            }
            sign => (Kind::Sign, sign.len_utf8()),
        };
        let line = text[..at].matches('\n').count() + 1;
        tokens.push(Token { kind, at: at..at + length, line });
        at += length;
    }
    tokens
}
