//! The order of the files: a file takes names only from files below it.
//!
//! A file stands above every file that defines a name it takes. Taken names are imports and paths
//! in the code, followed through re-exports to the file of the definition: `use super::X`, where
//! `room/mod.rs` has `X` from `room/x.rs`, ties to `room/x.rs`. A `mod` line is no tie, and a `pub
//! use` is one only if the file's own code names what it passes on: a `mod.rs` that introduces its
//! room is above nothing by that. Nor is the import of a module; the names taken by it are.
//!
//! Methods called on values are not seen; the import of their type is, where there is one. So a
//! file that implements a type of another file stands above that file, and its methods may be
//! called from below.
//!
//! Tests are left out: they may take what they like. So is the manual, which is text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::items::{Import, Mention, Module, Outline};
use crate::rooms::module_of;
use crate::source::Source;

/// The crates whose files have an order, the lowest first.
const CRATES: [&str; 3] = ["resp/", "", "cli/"];

/// What ties one file to another: the names, each with the first line that takes it.
type Ties = BTreeMap<String, usize>;

/// The ties of each file to those that it takes names from.
type Edges = BTreeMap<String, BTreeMap<String, Ties>>;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(Module),
    /// A definition: its file and its name.
    Item(String, String),
}

/// What each module of a crate holds.
#[derive(Default)]
struct Names {
    definitions: BTreeMap<Module, BTreeMap<String, BTreeSet<Target>>>,
    imports: BTreeMap<Module, Vec<Import>>,
}

/// The names that are being looked up, for imports that lead back to themselves.
type Pending = Vec<(Module, String)>;

impl Names {
    fn add(&mut self, path: &str, outline: &Outline<'_>) {
        for definition in outline.definitions() {
            let target = if definition.is_module {
                let mut module = definition.scope.clone();
                module.push(definition.name.clone());
                Target::Module(module)
            } else {
                Target::Item(path.into(), definition.name.clone())
            };
            let names = self.definitions.entry(definition.scope).or_default();
            names.entry(definition.name).or_default().insert(target);
        }
        for import in outline.imports() {
            self.imports.entry(import.scope.clone()).or_default().push(import);
        }
    }

    /// What the path stands for in the module `scope`. Two builds may have two definitions of one
    /// name, so there can be several; there is none for a name of another crate.
    fn resolve(&self, scope: &[String], path: &[String]) -> BTreeSet<Target> {
        self.follow(scope, path, &mut Pending::new())
    }

    fn follow(&self, scope: &[String], path: &[String], pending: &mut Pending) -> BTreeSet<Target> {
        let Some((first, rest)) = path.split_first() else { return BTreeSet::new() };
        let parent = |module: &[String]| match module {
            [above @ .., _] => Target::Module(above.to_vec()),
            [] => Target::Module(Module::new()),
        };
        let mut targets = match first.as_str() {
            "crate" => BTreeSet::from([Target::Module(Module::new())]),
            "self" => BTreeSet::from([Target::Module(scope.to_vec())]),
            "super" => BTreeSet::from([parent(scope)]),
            name => self.look_up(scope, name, pending),
        };
        for name in rest {
            let next = targets.into_iter().flat_map(|target| match target {
                Target::Module(module) if name == "super" => BTreeSet::from([parent(&module)]),
                Target::Module(module) => self.look_up(&module, name, pending),
                // A variant, or what belongs to a type.
                item @ Target::Item(..) => BTreeSet::from([item]),
            });
            targets = next.collect();
        }
        targets
    }

    /// What the name stands for in the module: a definition of its own, an import, or what a glob
    /// brings in.
    fn look_up(&self, module: &[String], name: &str, pending: &mut Pending) -> BTreeSet<Target> {
        let key = (module.to_vec(), name.to_string());
        if pending.contains(&key) {
            return BTreeSet::new();
        }
        pending.push(key);
        let defined = self.definitions.get(module).and_then(|names| names.get(name));
        let mut targets = defined.cloned().unwrap_or_default();
        let imports = self.imports.get(module).map(Vec::as_slice).unwrap_or_default();
        for import in imports.iter().filter(|import| import.name.as_deref() == Some(name)) {
            targets.extend(self.follow(module, &import.path, pending));
        }
        // A name of its own hides those that globs bring in.
        let hides = !targets.is_empty();
        for glob in imports.iter().filter(|import| import.name.is_none() && !hides) {
            let path = [glob.path.as_slice(), &[name.to_string()]].concat();
            let found = self.follow(module, &path, pending);
            // All that is known of another file's `enum` is its name.
            let is_that =
                |target: &Target| !matches!(target, Target::Item(_, item) if item != name);
            targets.extend(found.into_iter().filter(is_that));
        }
        pending.pop();
        targets
    }
}

/// The ties between the files of one crate, whose paths begin with `folder`.
fn edges(sources: &[Source], folder: &str) -> Edges {
    let moved: BTreeMap<String, Module> = sources.iter().flat_map(moved_modules).collect();
    let modules: Vec<(&Source, Module)> = sources
        .iter()
        .filter(|source| is_ordered(&source.path))
        .filter_map(|source| {
            let module = moved.get(&source.path).cloned();
            Some((source, module.or_else(|| module_of(source.path.strip_prefix(folder)?))?))
        })
        .collect();
    let outlines: Vec<(&Source, Outline<'_>)> =
        modules.iter().map(|(source, module)| (*source, Outline::new(source, module))).collect();

    let mut names = Names::default();
    outlines.iter().for_each(|(source, outline)| names.add(&source.path, outline));
    let tied = outlines.iter().map(|(source, outline)| {
        (source.path.clone(), ties(source, &outline.imports(), &outline.mentions(), &names))
    });
    tied.collect()
}

/// The ties of one file.
fn ties(
    source: &Source,
    imports: &[Import],
    mentions: &[Mention],
    names: &Names,
) -> BTreeMap<String, Ties> {
    let imported = imports.iter().filter(|import| !import.is_reexport);
    let imported = imported.map(|import| (import.at, &import.scope, &import.path));
    let mentioned = mentions.iter().map(|mention| (mention.at, &mention.scope, &mention.path));
    let mut tied: BTreeMap<String, Ties> = BTreeMap::new();
    for (at, scope, path) in imported.chain(mentioned) {
        let targets = names.resolve(scope, path);
        let is_own =
            |target: &Target| matches!(target, Target::Item(file, _) if *file == source.path);
        if targets.iter().any(is_own) {
            continue;
        }
        for target in targets {
            if let Target::Item(file, name) = target {
                let line = source.line_at(at);
                tied.entry(file).or_default().entry(name).or_insert(line);
            }
        }
    }
    tied
}

/// Whether the file has a place in the order.
fn is_ordered(path: &str) -> bool {
    let left_out = ["tests", "tests.rs", "manual"];
    !path.split('/').any(|word| left_out.contains(&word))
}

/// The files that a `#[path]` makes a module of another name, with that module.
fn moved_modules(source: &Source) -> Vec<(String, Module)> {
    let moved = source.find("#[path").filter(|at| !source.in_test(*at)).filter_map(|at| {
        let file = source.text[at..].split('"').nth(1)?;
        let (_, name) = source.code[at..].split_once("mod ")?;
        let (folder, _) = source.path.rsplit_once('/')?;
        let mut module = module_of(&source.path)?;
        module.push(name.split(';').next()?.into());
        Some((format!("{folder}/{file}"), module))
    });
    moved.collect()
}

/// The files in their order, the lowest first, each group with the number of files below it. A
/// group of more than one is a circle.
fn order(edges: &Edges) -> Vec<(usize, Vec<&str>)> {
    // A file that reaches another one has all that one's reach, and files that reach each other
    // have the same: so the number of files reached is the order, and equal reach is a circle.
    let mut groups: BTreeMap<(usize, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
    for file in edges.keys() {
        let reached = reach(edges, file);
        groups.entry((reached.len(), reached)).or_default().push(file);
    }
    groups.into_iter().map(|((count, _), files)| (count - files.len(), files)).collect()
}

/// The file, and all files below it.
fn reach<'a>(edges: &'a Edges, file: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::from([file]), vec![file]);
    while let Some(file) = next.pop() {
        let tied = edges.get(file).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        next.extend(tied.filter(|&file| reached.insert(file)));
    }
    reached
}

/// The ties between the files of a circle, a line for each two files.
fn describe(circle: &[&str], edges: &Edges) -> String {
    let mut text = format!("a circle of {}: {}\n", circle.len(), circle.join(", "));
    for (file, tied) in edges.iter().filter(|(file, _)| circle.contains(&file.as_str())) {
        for (below, ties) in tied.iter().filter(|(below, _)| circle.contains(&below.as_str())) {
            let ties: Vec<String> =
                ties.iter().map(|(name, line)| format!("`{name}` (line {line})")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {file} -> {below}: {}", ties.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::read_all;

    #[test]
    fn no_two_files_take_names_from_each_other() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut circles = Vec::new();
        for folder in CRATES {
            let sources = read_all(root, &format!("{folder}src"));
            let edges = edges(&sources, folder);
            assert!(edges.values().any(|tied| !tied.is_empty()), "`{folder}` has no ties");
            println!("\n{folder}src: each file, and the number of files below it");
            for (below, files) in order(&edges) {
                files.iter().for_each(|file| println!("{below:>5} {file}"));
                if files.len() > 1 {
                    circles.push(describe(&files, &edges));
                }
            }
        }
        assert!(circles.is_empty(), "{} circles:\n{}", circles.len(), circles.join("\n"));
    }

    /// The ties between snippets, as `file > file: names`.
    fn tied(files: &[(&str, &str)]) -> Vec<String> {
        let mut found = Vec::new();
        for (file, tied) in snippets(files) {
            for (below, ties) in tied {
                let names: Vec<&str> = ties.keys().map(String::as_str).collect();
                found.push(format!("{file} > {below}: {}", names.join(" ")));
            }
        }
        found
    }

    /// The ties between snippets. A root with a `mod` line for each is added where none is given.
    fn snippets(files: &[(&str, &str)]) -> Edges {
        let mods = files.iter().filter_map(|(path, _)| path.split(['/', '.']).next());
        let mods: BTreeSet<String> = mods.map(|name| format!("mod {name};")).collect();
        let root = Some(Source::new("src/lib.rs", &Vec::from_iter(mods).concat()));
        let root = root.filter(|_| files.iter().all(|(path, _)| *path != "lib.rs"));
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(&format!("src/{path}"), text))
            .chain(root)
            .collect();
        let short = |path: String| path.replace("src/", "");
        let edges = edges(&sources, "").into_iter().map(|(file, tied)| {
            (short(file), tied.into_iter().map(|(file, ties)| (short(file), ties)).collect())
        });
        edges.collect()
    }

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let edges = snippets(files);
        let groups = order(&edges).into_iter().filter(|(_, files)| files.len() > 1);
        groups.map(|(_, files)| describe(&files, &edges)).collect()
    }

    /// A room whose face passes on the struct `X` and the function `f` of `room/x.rs`.
    const FACE: (&str, &str) =
        ("room/mod.rs", "mod x; mod y; pub(crate) use x::X; pub use self::x::f as g; fn own() {}");
    const X: (&str, &str) = ("room/x.rs", "pub struct X; pub fn f() {} pub enum E { V }");

    #[test]
    fn names_are_followed_to_the_file_that_defines_them() {
        let cases = [
            ("use super::X;", "room/x.rs: X"),
            ("use crate::room::{X as Z, g};", "room/x.rs: X f"),
            ("fn h() { super::g(); }", "room/x.rs: f"),
            ("fn h() { crate::room::x::f(); }", "room/x.rs: f"),
            ("use super::x; fn h() { x::E::V }", "room/x.rs: E"),
            ("use super::*; fn h() -> X { own() }", "room/mod.rs: own,room/x.rs: X"),
            ("use super::x::E::V;", "room/x.rs: E"),
            ("use super::x::E; fn h() { E::V }", "room/x.rs: E"),
            (
                "fn h() { self::i::j(super::own) } mod i { use super::super::X; }",
                "room/mod.rs: own,room/x.rs: X",
            ),
            ("impl super::X { fn own(&self) { self.f() } }", "room/x.rs: X"),
            ("pub(crate) use super::X;", ""),
            ("pub(crate) use super::X; type Y = X;", "room/x.rs: X"),
            ("use super::x; use std::fmt::X; use other::g;", ""),
            ("#[cfg(test)]\nmod tests { use super::super::X; }", ""),
            ("/// See [`X`](super::X).\nfn h() { \"super::own()\" }", ""),
        ];
        for (text, files) in cases {
            let found = tied(&[FACE, X, ("room/y.rs", text)]);
            let expected = files.split(',').filter(|file| !file.is_empty());
            let expected: Vec<_> = expected.map(|file| format!("room/y.rs > {file}")).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_face_is_tied_by_what_its_own_code_names() {
        let cases = [
            ("mod x; pub use x::X;", ""),
            ("mod x; pub use x::X; fn f(_: X) {}", "room/mod.rs > room/x.rs: X"),
            ("mod x; use x::X;", "room/mod.rs > room/x.rs: X"),
            ("mod x; fn f() { x::f() }", "room/mod.rs > room/x.rs: f"),
        ];
        for (text, expected) in cases {
            let found = tied(&[("room/mod.rs", text), X]);
            assert_eq!(found.join(","), expected, "{text}");
        }
    }

    #[test]
    fn a_reexport_may_lead_nowhere_and_back_to_itself() {
        let found = tied(&[
            ("lib.rs", "mod a; mod b; pub use rustls; pub use a::*;"),
            ("a.rs", "pub use crate::b::*; pub fn f() { g() }"),
            ("b.rs", "pub use crate::a::*; use crate::rustls;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_module_may_have_two_files() {
        let face = "#[cfg(one)]\nmod tls;\n#[cfg(not(one))]\n#[path = \"no_tls.rs\"]\nmod tls;\n\
                    use tls::Tls;";
        let found = tied(&[
            ("options/mod.rs", face),
            ("options/tls.rs", "pub struct Tls;"),
            ("options/no_tls.rs", "pub enum Tls {}"),
        ]);
        let expected =
            ["no_tls", "tls"].map(|file| format!("options/mod.rs > options/{file}.rs: Tls"));
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_and_the_manual_have_no_place() {
        let found = tied(&[
            ("a.rs", "fn f() {}"),
            ("a/tests.rs", "use super::f;"),
            ("b/tests/c.rs", "use crate::a::f;"),
            ("manual/mod.rs", "use crate::a::f;"),
            ("simulation/d.rs", "use crate::a::f;"),
        ]);
        assert_eq!(found, ["simulation/d.rs > a.rs: f"]);
    }

    #[test]
    fn the_lowest_file_comes_first() {
        let edges = snippets(&[
            ("a.rs", "use crate::b::B; use crate::d::D;"),
            ("b.rs", "pub struct B(crate::c::C);"),
            ("c.rs", "pub struct C;"),
            ("d.rs", "pub struct D(crate::c::C);"),
        ]);
        let found = order(&edges);
        let found: Vec<(usize, &str)> = found.iter().map(|(below, f)| (*below, f[0])).collect();
        assert_eq!(found, [(0, "c.rs"), (0, "lib.rs"), (1, "b.rs"), (1, "d.rs"), (3, "a.rs")]);
    }

    #[test]
    fn a_circle_of_two_is_found() {
        let found = circles(&[
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "pub struct B;\nfn f() { crate::a::A }"),
            ("c.rs", "use crate::a::A;"),
        ]);
        assert_eq!(
            found,
            ["a circle of 2: a.rs, b.rs\n  a.rs -> b.rs: `B` (line 1)\n  \
                            b.rs -> a.rs: `A` (line 2)\n"]
        );
    }

    #[test]
    fn a_circle_of_three_is_found_through_a_reexport() {
        let found = circles(&[
            ("room/mod.rs", "mod a; mod b; mod c; pub(crate) use c::C;"),
            ("room/a.rs", "use super::b::B;\npub struct A;"),
            ("room/b.rs", "use super::C;\npub struct B;"),
            ("room/c.rs", "pub struct C(super::a::A);"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("a circle of 3: room/a.rs, room/b.rs, room/c.rs\n"));
        assert!(found[0].contains("room/b.rs -> room/c.rs: `C` (line 1)\n"));
    }
}
