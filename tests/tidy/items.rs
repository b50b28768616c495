//! What a file defines, what it imports, and which paths its code names.
//!
//! Items are found by their keywords, outside every block but that of an inline module. No types
//! are known here: a method that is called on a value leaves no trace, its type's import does.

use std::ops::Range;

use crate::rooms::branches;
use crate::source::{self, Source, is_word};

/// A module's path from the root of its crate.
pub(crate) type Module = Vec<String>;

/// An item with a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The module it stands in.
    pub(crate) scope: Module,
    pub(crate) name: String,
    /// It is a module, inline or in a file of its own.
    pub(crate) is_module: bool,
}

/// One name, or all names of a module, brought into a module by `use`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) at: usize,
    pub(crate) scope: Module,
    /// The path as it is written, `crate`, `self` and `super` included.
    pub(crate) path: Vec<String>,
    /// What it is called from then on; `None` for a glob.
    pub(crate) name: Option<String>,
    /// It is a `pub use`, of whatever reach: other files may be the only ones to use it.
    pub(crate) is_reexport: bool,
}

/// A path that the code names outside a `use`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) at: usize,
    pub(crate) scope: Module,
    pub(crate) path: Vec<String>,
}

/// A file's production code, cut into what the functions below look for.
pub(crate) struct Outline<'a> {
    source: &'a Source,
    module: &'a [String],
    /// The items that only a test build sees. A folder that is all test counts as code here.
    tests: Vec<Range<usize>>,
    /// The blocks of inline modules, with their names; the outer before the inner.
    modules: Vec<(Range<usize>, String)>,
    /// For each byte, whether no block is around it but those of modules.
    is_item_level: Vec<bool>,
}

impl<'a> Outline<'a> {
    /// Outlines the file that is the module `module`.
    pub(crate) fn new(source: &'a Source, module: &'a [String]) -> Self {
        let tests = source::test_items(&source.code);
        let (modules, is_item_level) = blocks(&source.code);
        Self { source, module, tests, modules, is_item_level }
    }

    /// Every item of the file that stands in a module, not in a function or an `impl`.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        let keywords = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
        let keywords = keywords.into_iter().chain(["macro_rules!"]);
        let found = keywords.flat_map(|keyword| self.find(keyword).map(move |at| (at, keyword)));
        let found = found.filter(|(at, _)| self.is_item_level[*at]).filter_map(|(at, keyword)| {
            let name = word(self.source.code[at + keyword.len()..].trim_start());
            // `const fn`, the type `fn()`, and an assertion in a constant without a name.
            let is_name = !["", "_", "fn", "unsafe", "async"].contains(&name);
            let is_lifetime = self.source.code[..at].ends_with('\'');
            (is_name && !is_lifetime).then(|| Definition {
                scope: self.scope(at),
                name: name.into(),
                is_module: keyword == "mod",
            })
        });
        found.collect()
    }

    /// Every name that a `use` brings in.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (at, tree) in self.uses() {
            // `use ::name` is another crate's.
            if tree.trim_start().starts_with("::") {
                continue;
            }
            let is_reexport = is_behind_pub(&self.source.code[..at]);
            for leaf in leaves(tree) {
                let (scope, path) = (self.scope(at), leaf.path);
                let name = leaf.alias.or_else(|| path.last().cloned());
                let name = name.filter(|_| !leaf.is_glob);
                imports.push(Import { at, scope, path, name, is_reexport });
            }
        }
        imports
    }

    /// Every path of the code that can lead to an item: those of two words and more, types, and
    /// functions and macros that are called.
    pub(crate) fn mentions(&self) -> Vec<Mention> {
        let code = &self.source.code;
        let uses: Vec<Range<usize>> =
            self.uses().map(|(at, tree)| at..at + "use".len() + tree.len()).collect();
        let mut mentions = Vec::new();
        let mut at = 0;
        while let Some(offset) = code[at..].find(is_word) {
            let start = at + offset;
            let path = written_path(&code[start..]);
            let end = start + path.len();
            at = end;
            let is_path = !code[..start].ends_with(['.', '\'', ':']) || is_after_colon(code, start);
            let is_left_out = uses.iter().chain(&self.tests).any(|range| range.contains(&start));
            if !is_path || is_left_out || !leads_to_item(code, start, end) {
                continue;
            }
            let path = path.split("::").map(String::from).collect();
            mentions.push(Mention { at: start, scope: self.scope(start), path });
        }
        mentions
    }

    /// The module at the byte.
    fn scope(&self, at: usize) -> Module {
        let inline = self.modules.iter().filter(|(range, _)| range.contains(&at));
        self.module.iter().chain(inline.map(|(_, name)| name)).cloned().collect()
    }

    /// Where the word stands in production code.
    fn find(&self, word: &'static str) -> impl Iterator<Item = usize> {
        let is_test = |at| self.tests.iter().any(|range| range.contains(&at));
        self.source.find(word).filter(move |at| !is_test(*at))
    }

    /// Every `use`, with the text between it and its semicolon.
    fn uses(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.source.code.as_str();
        self.find("use").filter_map(move |at| {
            let tree = &code[at + "use".len()..];
            let tree = &tree[..tree.find(';')?];
            // `impl Trait + use<'a>` is no import.
            (!tree.trim_start().starts_with('<')).then_some((at, tree))
        })
    }
}

/// The blocks of inline modules, and for each byte whether it is in no other block.
fn blocks(code: &str) -> (Vec<(Range<usize>, String)>, Vec<bool>) {
    let (mut modules, mut is_item_level) = (Vec::new(), Vec::with_capacity(code.len()));
    let (mut header_from, mut others) = (0, 0_usize);
    // Where each open block begins; whether it is a module's.
    let mut open: Vec<bool> = Vec::new();
    for (at, byte) in code.bytes().enumerate() {
        is_item_level.push(others == 0);
        match byte {
            b'{' => {
                let words: Vec<&str> = code[header_from..at].split_whitespace().collect();
                let module = match words.as_slice() {
                    [.., "mod", name] => Some((*name).to_string()),
                    _ => None,
                };
                open.push(module.is_some());
                others += usize::from(module.is_none());
                modules.extend(module.map(|name| (at..source::block_end(code, at), name)));
            }
            b'}' => others -= usize::from(open.pop() == Some(false)),
            _ => {}
        }
        if matches!(byte, b'{' | b'}' | b';') {
            header_from = at + 1;
        }
    }
    (modules, is_item_level)
}

/// The word that the text begins with.
fn word(text: &str) -> &str {
    &text[..text.find(|character| !is_word(character)).unwrap_or(text.len())]
}

/// The words with `::` between them that the text begins with.
fn written_path(text: &str) -> &str {
    let mut end = word(text).len();
    while let Some(rest) = text[end..].strip_prefix("::") {
        let next = word(rest).len();
        if next == 0 {
            break;
        }
        end += "::".len() + next;
    }
    &text[..end]
}

/// Whether the colon before the byte is a single one, as before a type.
fn is_after_colon(code: &str, at: usize) -> bool {
    code[..at].ends_with(':') && !code[..at].ends_with("::")
}

/// Whether the words from `start` to `end` can name an item of another file: a variable, a field
/// or a name that is being defined cannot.
fn leads_to_item(code: &str, start: usize, end: usize) -> bool {
    let path = &code[start..end];
    if path.contains("::") {
        return true;
    }
    let is_defined = ["fn", "type", "const"].iter().any(|keyword| {
        let before = code[..start].trim_end();
        before.len() < start && before.ends_with(keyword)
    });
    let is_called = code[end..].starts_with(['(', '!']);
    !is_defined && (is_called || path.starts_with(char::is_uppercase))
}

/// Whether the text ends with `pub`, of whatever reach.
fn is_behind_pub(before: &str) -> bool {
    let before = before.trim_end();
    let before = match before.strip_suffix(')').and_then(|inner| inner.rfind('(')) {
        Some(open) => &before[..open],
        None => before,
    };
    before.ends_with("pub")
}

/// One name of a `use`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Leaf {
    path: Vec<String>,
    alias: Option<String>,
    is_glob: bool,
}

/// The names of a `use`: `a::{self, b as c, d::*}` has three.
fn leaves(tree: &str) -> Vec<Leaf> {
    let (mut path, mut rest) = (Vec::new(), tree.trim_start());
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let inner = branches(group).into_iter().flat_map(leaves);
            return inner.map(|leaf| beneath(&path, leaf)).collect();
        }
        if rest.starts_with('*') {
            return vec![Leaf { path, alias: None, is_glob: true }];
        }
        let name = word(rest);
        path.push(name.to_string());
        rest = &rest[name.len()..];
        match rest.strip_prefix("::") {
            Some(more) => rest = more.trim_start(),
            None => break,
        }
    }
    let alias = rest.trim_start().strip_prefix("as ").map(|name| word(name.trim_start()).into());
    vec![Leaf { path, alias, is_glob: false }]
}

/// The leaf of a group, behind the path of the group.
fn beneath(path: &[String], leaf: Leaf) -> Leaf {
    let itself = leaf.path == ["self"];
    let inner = if itself { &[] } else { leaf.path.as_slice() };
    Leaf { path: [path, inner].concat(), ..leaf }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn with<T>(text: &str, look: impl FnOnce(&Outline<'_>) -> T) -> T {
        let (source, module) = (Source::new("src/x.rs", text), vec!["x".to_string()]);
        look(&Outline::new(&source, &module))
    }

    fn definitions(text: &str) -> BTreeSet<String> {
        with(text, |outline| {
            let found = outline.definitions().into_iter().map(|definition| {
                let mark = if definition.is_module { "/" } else { "" };
                format!("{}::{}{mark}", definition.scope.join("::"), definition.name)
            });
            found.collect()
        })
    }

    fn imports(text: &str) -> Vec<String> {
        with(text, |outline| {
            let found = outline.imports().into_iter().map(|import| {
                let name = import.name.as_deref().unwrap_or("*");
                let mark = if import.is_reexport { "pub " } else { "" };
                format!("{mark}{}: {name}", import.path.join("::"))
            });
            found.collect()
        })
    }

    fn mentions(text: &str) -> Vec<String> {
        with(text, |outline| {
            outline.mentions().into_iter().map(|mention| mention.path.join("::")).collect()
        })
    }

    #[test]
    fn items_of_a_module_are_defined() {
        let cases: [(&str, &[&str]); 9] = [
            ("pub(crate) struct A<T>(T); enum B {}", &["x::A", "x::B"]),
            ("pub const fn a() {} async fn b() {}", &["x::a", "x::b"]),
            ("const A: u8 = 1; static B: &'static C = &C; const _: () = ();", &["x::A", "x::B"]),
            ("type A = fn(u8); trait B { type C; fn d(); }", &["x::A", "x::B"]),
            ("fn a() { fn b() {} struct C; } impl A { fn d() {} }", &["x::a"]),
            (
                "mod a;\npub mod b { mod c { fn d() {} } struct E; }",
                &["x::b::c::d", "x::b::E", "x::a/", "x::b/", "x::b::c/"],
            ),
            ("#[cfg(test)]\nmod a { fn b() {} }\nfn c() {}", &["x::c"]),
            ("macro_rules! a { () => { fn b() {} } }", &["x::a"]),
            ("// fn a() {}\nconst A: &str = \"fn b() {}\";", &["x::A"]),
        ];
        for (text, names) in cases {
            let names = names.iter().map(|name| (*name).to_string()).collect();
            assert_eq!(definitions(text), names, "{text}");
        }
    }

    #[test]
    fn uses_are_unfolded_with_their_new_names() {
        let cases: [(&str, &[&str]); 7] = [
            ("use super::a::B;", &["super::a::B: B"]),
            (
                "use crate::{a, b::{self, C as D}, e::*};",
                &["crate::a: a", "crate::b: b", "crate::b::C: D", "crate::e: *"],
            ),
            (
                "pub use a::B; pub(crate) use a::C; pub(in crate::d) use a::D;",
                &["pub a::B: B", "pub a::C: C", "pub a::D: D"],
            ),
            ("use a::B as _;", &["a::B: _"]),
            ("use ::a::B;", &[]),
            ("#[cfg(test)]\nuse a::B;", &[]),
            ("fn f<'a>() -> impl A + use<'a> { use self::b; }", &["self::b: b"]),
        ];
        for (text, names) in cases {
            assert_eq!(imports(text), names, "{text}");
        }
    }

    #[test]
    fn paths_types_and_calls_are_mentioned() {
        let cases: [(&str, &[&str]); 7] = [
            ("a::b::c(d, e)", &["a::b::c"]),
            ("f(A::<B>::new(), x.g(), h!())", &["f", "A", "B", "h"]),
            ("let a: A = b.c; A { d: E }", &["A", "A", "E"]),
            ("impl A { type B = C; const D: F = 1; fn g() {} }", &["A", "C", "F"]),
            ("use a::B; C", &["C"]),
            ("&'A B, <C as d::E>::F", &["B", "C", "d::E"]),
            ("#[cfg(test)]\nfn a() { B } C", &["C"]),
        ];
        for (text, names) in cases {
            assert_eq!(mentions(text), names, "{text}");
        }
    }

    #[test]
    fn a_mention_knows_its_module() {
        let text = "A mod b { C mod d { E } F }";
        let scopes = with(text, |outline| {
            let found = outline.mentions().into_iter();
            found.map(|mention| mention.scope.join("::")).collect::<Vec<_>>()
        });
        assert_eq!(scopes, ["x", "x::b", "x::b::d", "x::b"]);
    }
}
