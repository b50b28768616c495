//! Mutation testing: does a test fail when a line of the library says something else?
//!
//! ```text
//! cargo run -p quorlock-mutants               judges the mutants of the sample that are left
//! cargo run -p quorlock-mutants -- 20         the next 20 of them
//! cargo run -p quorlock-mutants -- report     judges nothing: prints what has come of it
//! ```
//!
//! The sample is drawn by a seed from all mutants that cargo-mutants makes of
//! `src/{link,quorum,lease,lock}` and `resp/src`. [`weave`] puts them into one build, for
//! cargo-mutants builds everything anew for each; [`judge`](mod@judge) says which tests a mutant
//! meets. What has been judged is kept in `target/mutants`, so a run that was stopped goes on where
//! it was. It takes an hour, and so it is no part of `tests/run`.

mod judge;
mod mutant;
mod report;
mod tree;
mod verdicts;
mod weave;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use judge::{Verdict, judge, judge_all, stages};
use mutant::{Mutant, draw};
use tree::{Form, Tests, Tree};
use verdicts::{Judged, Verdicts};

type Failure = Box<dyn std::error::Error>;

const SEED: u64 = 13;
const WANTED: usize = 400;

/// What is prepared once for a commit.
#[derive(Serialize, Deserialize)]
struct Prepared {
    commit: String,
    /// How many mutants there are in all.
    of: usize,
    sample: Vec<(Form, Mutant)>,
    programs: BTreeMap<Tests, Vec<PathBuf>>,
}

impl Prepared {
    fn built(&self, tests: Tests) -> Result<Vec<PathBuf>, Failure> {
        Ok(self
            .programs
            .get(&tests)
            .ok_or("remove target/mutants: it is of an older build")?
            .clone())
    }
}

/// Where everything is kept.
struct Home {
    root: PathBuf,
    folder: PathBuf,
}

impl Home {
    fn new() -> Result<Self, Failure> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = package.ancestors().nth(2).ok_or("the package is not in tests/")?;
        let folder = root.join("target/mutants");
        fs::create_dir_all(&folder)?;
        Ok(Self { root: root.to_owned(), folder })
    }

    fn tree(&self, name: &str) -> Tree {
        Tree::new(&self.folder, name)
    }

    fn commit(&self) -> Result<String, Failure> {
        let mut git = Command::new("git");
        let output = git.current_dir(&self.root).args(["rev-parse", "--short", "HEAD"]).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn verdicts(&self) -> PathBuf {
        self.folder.join("verdicts")
    }

    /// Fetches cargo-mutants, unless that was done.
    fn tools(&self) -> Result<PathBuf, Failure> {
        let tools = self.root.join("target/tools");
        if !tools.join("bin/cargo-mutants").is_file() {
            eprintln!("fetching cargo-mutants into target/tools");
            let mut install = Command::new("cargo");
            install.args(["install", "--quiet", "--locked", "cargo-mutants", "--root"]).arg(&tools);
            if !install.status()?.success() {
                return Err("cargo-mutants cannot be fetched".into());
            }
        }
        Ok(tools)
    }

    fn prepared(&self) -> Result<Prepared, Failure> {
        let Ok(text) = fs::read(self.folder.join("prepared.json")) else {
            return self.prepare();
        };
        let prepared: Prepared = serde_json::from_slice(&text)?;
        if prepared.commit != self.commit()? {
            eprintln!("of {}; for the last commit's, remove target/mutants", prepared.commit);
        }
        Ok(prepared)
    }

    /// Draws mutants of the last commit and builds them.
    fn prepare(&self) -> Result<Prepared, Failure> {
        let (woven, alone) = (self.tree("woven"), self.tree("alone"));
        for tree in [&woven, &alone] {
            tree.unpack(&self.root)?;
        }
        let all = woven.mutants(&self.tools()?)?;
        let sample = draw(&all, WANTED, SEED);
        eprintln!("weaving {} of {} mutants into one build", sample.len(), all.len());
        let refused = woven.weave(&sample)?;
        eprintln!("trying each of {} alone", refused.len());
        let form = |mutant: Mutant| {
            let form = match refused.contains(&mutant.id) {
                false => Form::Woven,
                true if alone.compiles_with(&mutant)? => Form::Alone,
                true => Form::Unviable,
            };
            Ok((form, mutant))
        };
        let sample = sample.into_iter().map(form).collect::<Result<_, Failure>>()?;
        eprintln!("building the tests");
        let built = |tests: Tests| Ok((tests, woven.build(tests)?));
        let programs = Tests::ALL.map(built).into_iter().collect::<Result<_, Failure>>()?;
        let prepared = Prepared { commit: self.commit()?, of: all.len(), sample, programs };
        fs::write(self.folder.join("prepared.json"), serde_json::to_vec(&prepared)?)?;
        Ok(prepared)
    }
}

/// Judges as many as that of those that are left.
fn judge_some(home: &Home, prepared: &Prepared, most: usize) -> Result<(), Failure> {
    let mut verdicts = Verdicts::open(&home.verdicts())?;
    let (woven, alone) = (home.tree("woven"), home.tree("alone"));
    if verdicts.judged.is_empty() {
        judge_nothing(prepared, &woven)?;
    }
    let left = prepared.sample.iter().filter(|(_, mutant)| !verdicts.has(&mutant.name));
    let mut waiting = BTreeMap::<bool, Vec<&Mutant>>::new();
    let mut unviable = Vec::new();
    for (form, mutant) in left.take(most) {
        match form {
            Form::Unviable => unviable.push(Judged::unviable(&mutant.name)),
            form => waiting.entry(*form == Form::Woven).or_default().push(mutant),
        }
    }
    for judged in unviable {
        verdicts.add(judged)?;
    }
    let mut tell = |mutant: &Mutant, verdict: Verdict, stage: &str| {
        let judged = Judged::new(verdict, stage, &mutant.name);
        verdicts.add(judged.clone())?;
        println!("{} of {}  {judged}", verdicts.judged.len(), prepared.sample.len());
        Ok(())
    };
    let one = |mutant: &&Mutant| {
        judge(&stages(&mutant.file), &woven.sources, mutant.id, |tests| prepared.built(tests))
    };
    let many = waiting.remove(&true).unwrap_or_default();
    judge_all(many.into(), 2, one, |mutant, verdict, stage| tell(mutant, verdict, stage))?;
    for mutant in waiting.remove(&false).unwrap_or_default() {
        let judged = alone.with(mutant, || {
            judge(&stages(&mutant.file), &alone.sources, 0, |tests| alone.build(tests))
        });
        let (verdict, stage) = judged?;
        tell(mutant, verdict, stage)?;
    }
    Ok(())
}

/// What fails or is too slow without any mutant would judge nothing.
fn judge_nothing(prepared: &Prepared, woven: &Tree) -> Result<(), Failure> {
    for file in ["resp/src/lib.rs", "src/lib.rs"] {
        let (verdict, stage) =
            judge(&stages(file), &woven.sources, 0, |tests| prepared.built(tests))?;
        if verdict != Verdict::Missed {
            return Err(format!("the tests fail without a mutant ({stage}): {verdict:?}").into());
        }
    }
    Ok(())
}

fn run() -> Result<(), Failure> {
    let home = Home::new()?;
    let argument = std::env::args().nth(1);
    let most = match argument.as_deref() {
        None => usize::MAX,
        Some("report") => 0,
        Some(number) => number.parse().map_err(|_| "usage: [NUMBER | report]")?,
    };
    let prepared = home.prepared()?;
    if argument.as_deref() != Some("report") {
        judge_some(&home, &prepared, most)?;
    }
    let verdicts = Verdicts::open(&home.verdicts())?;
    print!("{}", report::report(&verdicts.judged, &prepared.commit, prepared.of));
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}
