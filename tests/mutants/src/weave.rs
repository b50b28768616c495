//! All mutants of a file in one text: a function's body becomes a choice between bodies.
//!
//! ```text
//! fn is_due(&self) -> bool {            fn is_due(&self) -> bool { match crate::the_mutant() {
//!     self.at <= self.now         →         17 => { self.at < self.now }
//! }                                         18 => { true }
//!                                           _ => { self.at <= self.now } } }
//! ```
//!
//! So one build holds them all, and the program is told which one to be: to judge a mutant takes as
//! long as its tests take. The method is known as mutant schemata (Untch, Offutt and Harrold 1993).
//! Where it does not do, in a `const fn` or outside of any function, a mutant is built alone.

use std::ops::RangeInclusive;

use proc_macro2::LineColumn;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::Failure;
use crate::mutant::{Mutant, Place, Span};

/// The name of the function that tells which mutant the program is.
pub(crate) const CHOICE: &str = "
#[doc(hidden)]
pub(crate) fn the_mutant() -> u32 {
    static MUTANT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let read = || std::env::var(\"QUORLOCK_MUTANT\").ok().and_then(|id| id.parse().ok());
    *MUTANT.get_or_init(|| read().unwrap_or(0))
}
";

/// A text with its mutants in it.
pub(crate) struct Woven {
    pub(crate) text: String,
    /// The lines of each mutant's body.
    pub(crate) arms: Vec<(RangeInclusive<usize>, u32)>,
    /// Those that are in no function that can choose.
    pub(crate) alone: Vec<u32>,
}

/// The text with one mutant in the place of what it changes.
pub(crate) fn apply(source: &str, mutant: &Mutant) -> Result<String, Failure> {
    let range = offset(source, mutant.span.start)?..offset(source, mutant.span.end)?;
    let mut text = source.to_owned();
    text.replace_range(range, &mutant.replacement);
    Ok(text)
}

pub(crate) fn weave(source: &str, mutants: &[&Mutant]) -> Result<Woven, Failure> {
    let mut bodies = Bodies::default();
    bodies.visit_file(&syn::parse_file(source)?);
    let mut woven = Woven { text: String::new(), arms: Vec::new(), alone: Vec::new() };
    let is_chosen = |mutant: &&&Mutant| bodies.0.iter().any(|body| body.holds(mutant.span));
    woven.alone = mutants.iter().filter(|mutant| !is_chosen(mutant)).map(|m| m.id).collect();
    let mut written = 0;
    for body in &bodies.0 {
        let range = offset(source, body.start)?..offset(source, body.end)?;
        let mut inside = mutants.iter().filter(|mutant| body.holds(mutant.span)).peekable();
        if inside.peek().is_none() {
            continue;
        }
        woven.text.push_str(&source[written..range.start]);
        woven.text.push_str("{ match crate::the_mutant() {\n");
        for mutant in inside {
            let first = woven.text.matches('\n').count() + 1;
            let start = offset(source, mutant.span.start)?;
            let end = offset(source, mutant.span.end)?;
            let (before, after) = (&source[range.start..start], &source[end..range.end]);
            let arm = format!("{} => {before}{}{after}\n", mutant.id, mutant.replacement);
            woven.text.push_str(&arm);
            woven.arms.push((first..=first + arm.matches('\n').count() - 1, mutant.id));
        }
        woven.text.push_str(&format!("_ => {}\n}} }}", &source[range.clone()]));
        written = range.end;
    }
    woven.text.push_str(&source[written..]);
    Ok(woven)
}

/// What stands there for the tests alone.
pub(crate) fn for_tests(source: &str) -> Result<Vec<Span>, Failure> {
    let mut tests = Tests::default();
    tests.visit_file(&syn::parse_file(source)?);
    Ok(tests.0)
}

#[derive(Default)]
struct Tests(Vec<Span>);

impl Tests {
    /// Says whether it is for all.
    fn is_for_all(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) -> bool {
        let is_for_tests = attributes.iter().any(|attribute| {
            let is_cfg = attribute.path().is_ident("cfg");
            let text = attribute.meta.to_token_stream().to_string();
            is_cfg && text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
        });
        if is_for_tests {
            self.0.push(span_of(item));
        }
        !is_for_tests
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if self.is_for_all(&item.attrs, item) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if self.is_for_all(&item.attrs, item) {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.is_for_all(&item.attrs, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.is_for_all(&item.attrs, item);
    }
}

fn span_of(item: &impl Spanned) -> Span {
    let place = |at: LineColumn| Place { line: at.line, column: at.column + 1 };
    let span = item.span();
    Span { start: place(span.start()), end: place(span.end()) }
}

/// The bodies of functions that are in no other's, as they stand in the file.
#[derive(Default)]
struct Bodies(Vec<Span>);

impl Bodies {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        if signature.constness.is_none() {
            self.0.push(span_of(body));
        }
    }
}

impl<'ast> Visit<'ast> for Bodies {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
    }
}

/// How many bytes are before a place.
fn offset(source: &str, place: Place) -> Result<usize, Failure> {
    let gone = || format!("there is no line {} and column {}", place.line, place.column);
    let line: usize = source.split_inclusive('\n').take(place.line - 1).map(str::len).sum();
    let rest = source.get(line..).ok_or_else(gone)?;
    let characters = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    Ok(line + characters.take(place.column).last().ok_or_else(gone)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "/// Ü\nfn f(a: u32) -> bool {\n    a < 1 // ü\n}\n\nconst A: u32 = 1 + 1;\n";

    fn mutant(id: u32, line: usize, columns: [usize; 2], replacement: &str) -> Mutant {
        let [start, end] = columns.map(|column| Place { line, column });
        Mutant {
            id,
            name: String::new(),
            file: String::new(),
            package: String::new(),
            span: Span { start, end },
            replacement: replacement.to_owned(),
        }
    }

    #[test]
    fn a_body_becomes_a_choice_and_nothing_else_changes() -> Result<(), Failure> {
        let [less, all] = [mutant(7, 3, [7, 8], "<="), mutant(8, 3, [5, 10], "true")];
        let woven = weave(SOURCE, &[&less, &all])?;
        let expected = "/// Ü\nfn f(a: u32) -> bool { match crate::the_mutant() {\n\
            7 => {\n    a <= 1 // ü\n}\n\
            8 => {\n    true // ü\n}\n\
            _ => {\n    a < 1 // ü\n}\n} }\n\nconst A: u32 = 1 + 1;\n";
        assert_eq!(woven.text, expected);
        assert_eq!(woven.arms, [(3..=5, 7), (6..=8, 8)]);
        syn::parse_file(&woven.text)?;
        Ok(())
    }

    #[test]
    fn what_is_there_for_the_tests_alone_is_known() -> Result<(), Failure> {
        let source = "#[cfg(all(test, unix))]\nmod tests {\n    fn f() {}\n}\n\
            #[cfg(feature = \"testing\")]\nfn g() {}\n\
            impl A {\n    #[cfg(test)]\n    fn h() {}\n}\n";
        let lines: Vec<[usize; 2]> =
            for_tests(source)?.iter().map(|span| [span.start.line, span.end.line]).collect();
        assert_eq!(lines, [[1, 4], [8, 9]]);
        Ok(())
    }

    #[test]
    fn what_is_in_no_function_that_can_choose_is_built_alone() -> Result<(), Failure> {
        let outside = mutant(9, 6, [18, 19], "*");
        let woven = weave(SOURCE, &[&outside])?;
        assert_eq!((woven.text.as_str(), woven.alone), (SOURCE, vec![9]));
        assert!(apply(SOURCE, &outside)?.contains("1 * 1"));
        Ok(())
    }
}
