//! What a mutant is, and which of them are drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Failure;

/// A place in a source; both begin with 1, and a column counts characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// From its first character to behind its last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Place,
    pub(crate) end: Place,
}

impl Span {
    pub(crate) fn holds(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// One change of one place, as cargo-mutants lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mutant {
    /// What tells the program that it is this one; zero is none.
    #[serde(default)]
    pub(crate) id: u32,
    /// Its file, line and column, and what it does.
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) package: String,
    pub(crate) span: Span,
    pub(crate) replacement: String,
}

impl Mutant {
    /// Its name without the place, which every line that is added above moves.
    fn what(&self) -> String {
        let text = self.name.splitn(4, ':').nth(3).unwrap_or(&self.name);
        format!("{}:{text}", self.file)
    }
}

/// Those of cargo-mutants' list, numbered.
pub(crate) fn parse(json: &[u8]) -> Result<Vec<Mutant>, Failure> {
    let mut all: Vec<Mutant> = serde_json::from_slice(json)?;
    all.sort_by(|a, b| (&a.file, a.span.start, &a.name).cmp(&(&b.file, b.span.start, &b.name)));
    for (mutant, id) in all.iter_mut().zip(1..) {
        mutant.id = id;
    }
    Ok(all)
}

/// What each is called by in every commit that has it: what it does, and which one of those that do
/// the same in its file.
fn keys(all: &[Mutant]) -> Vec<String> {
    let mut counts = BTreeMap::<String, u32>::new();
    let key = |mutant: &Mutant| {
        let count = counts.entry(mutant.what()).or_default();
        *count += 1;
        format!("{} ({count})", mutant.what())
    };
    all.iter().map(key).collect()
}

/// As many as are `wanted`, whichever the seed says. Each is drawn by its key alone, so another
/// commit's sample has the same mutants but for those that came or went.
pub(crate) fn draw(all: &[Mutant], wanted: usize, seed: u64) -> Vec<Mutant> {
    let mut drawn: Vec<(u64, &Mutant)> =
        keys(all).iter().map(|key| hash(seed, key)).zip(all).collect();
    drawn.sort_by_key(|(hash, mutant)| (*hash, mutant.id));
    drawn.into_iter().take(wanted).map(|(_, mutant)| mutant.clone()).collect()
}

/// FNV-1a, stirred once more so that keys that differ at their end alone are far apart.
fn hash(seed: u64, text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, step);
    let hash = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(name: &str) -> Mutant {
        let place = |column| Place { line: 1, column };
        Mutant {
            id: 0,
            name: name.to_owned(),
            file: "src/a.rs".to_owned(),
            package: "quorlock".to_owned(),
            span: Span { start: place(1), end: place(2) },
            replacement: String::new(),
        }
    }

    #[test]
    fn a_line_that_is_added_above_changes_no_sample() {
        let at = |line: usize| -> Vec<Mutant> {
            let name = |what: usize| format!("src/a.rs:{}:5: replace f{what}", line + what);
            (0..50).map(|what| mutant(&name(what))).collect()
        };
        let names = |drawn: Vec<Mutant>| -> Vec<String> {
            drawn.iter().map(|mutant| mutant.what()).collect()
        };
        assert_eq!(names(draw(&at(10), 7, 13)), names(draw(&at(20), 7, 13)));
        assert_ne!(names(draw(&at(10), 7, 13)), names(draw(&at(10), 7, 14)));
    }

    #[test]
    fn those_that_do_the_same_are_told_apart() {
        let all = [mutant("src/a.rs:1:5: delete !"), mutant("src/a.rs:9:5: delete !")];
        assert_eq!(keys(&all), ["src/a.rs: delete ! (1)", "src/a.rs: delete ! (2)"]);
    }
}
