//! A copy of the sources, and what is built of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Failure;
use crate::mutant::{self, Mutant};
use crate::weave::{self, CHOICE};

/// The folders whose code is changed.
const CHANGED: [&str; 5] =
    ["src/link/**", "src/quorum/**", "src/lease/**", "src/lock/**", "resp/src/**"];

const LIBRARY: [&str; 4] = ["--package", "quorlock", "--features", "testing,tokio-util,tls-rustls"];
const CODEC: [&str; 3] = ["--package", "quorlock-resp", "--all-features"];

/// Tests that are built together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) enum Tests {
    /// The library's own, and the simulation.
    Own,
    /// The suite, and those of TLS.
    Suite,
    Codec,
}

impl Tests {
    pub(crate) const ALL: [Self; 3] = [Self::Own, Self::Suite, Self::Codec];
}

/// What a mutant can be judged by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Form {
    /// It is one of those that are woven into one build.
    Woven,
    /// It is built alone.
    Alone,
    /// It does not compile.
    Unviable,
}

pub(crate) struct Tree {
    pub(crate) sources: PathBuf,
    built: PathBuf,
}

impl Tree {
    pub(crate) fn new(home: &Path, name: &str) -> Self {
        Self { sources: home.join(name), built: home.join(format!("{name}-built")) }
    }

    /// Makes it anew, of the last commit of `root`.
    pub(crate) fn unpack(&self, root: &Path) -> Result<(), Failure> {
        if self.sources.is_dir() {
            fs::remove_dir_all(&self.sources)?;
        }
        fs::create_dir_all(&self.sources)?;
        let mut archive = Command::new("git")
            .current_dir(root)
            .args(["archive", "HEAD"])
            .stdout(Stdio::piped())
            .spawn()?;
        let archived = archive.stdout.take().ok_or("git archive tells nothing")?;
        let mut unpack = Command::new("tar");
        // With the time of now, so that nothing built of another commit is taken for it.
        unpack.args(["-xm", "-C"]).arg(&self.sources).stdin(archived);
        let is_unpacked = unpack.status()?.success();
        if !(archive.wait()?.success() && is_unpacked) {
            return Err("the last commit cannot be unpacked".into());
        }
        Ok(())
    }

    /// All mutants that cargo-mutants makes of it.
    pub(crate) fn mutants(&self, tools: &Path) -> Result<Vec<Mutant>, Failure> {
        let mut list = Command::new(tools.join("bin/cargo-mutants"));
        list.current_dir(&self.sources).args(["mutants", "--list", "--json"]);
        list.args(["--package", "quorlock", "--package", "quorlock-resp"]);
        list.args(CHANGED.iter().flat_map(|folder| ["-f", folder]));
        let output = list.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err("cargo-mutants lists none".into());
        }
        let mut tests = BTreeMap::new();
        let mut all = mutant::parse(&output.stdout)?;
        for mutant in &all {
            if !tests.contains_key(&mutant.file) {
                let spans = weave::for_tests(&self.read(&mutant.file)?)?;
                tests.insert(mutant.file.clone(), spans);
            }
        }
        // It leaves out what is under `cfg(test)`, and no other words that mean as much.
        all.retain(|mutant| !tests[&mutant.file].iter().any(|span| span.holds(mutant.span)));
        Ok(all)
    }

    fn read(&self, file: &str) -> Result<String, Failure> {
        Ok(fs::read_to_string(self.sources.join(file))?)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        Ok(fs::write(self.sources.join(file), text)?)
    }

    /// Writes all of `mutants` into it that compile, and says which do not, or are in no function
    /// that can choose.
    pub(crate) fn weave(&self, mutants: &[Mutant]) -> Result<BTreeSet<u32>, Failure> {
        for file in ["src/lib.rs", "resp/src/lib.rs"] {
            self.write(file, &(self.read(file)? + CHOICE))?;
        }
        let mut files = BTreeMap::<&str, Vec<&Mutant>>::new();
        for mutant in mutants {
            files.entry(&mutant.file).or_default().push(mutant);
        }
        let original: BTreeMap<&str, String> = files
            .keys()
            .map(|file| Ok((*file, self.read(file)?)))
            .collect::<Result<_, Failure>>()?;
        let mut refused = BTreeSet::new();
        loop {
            let mut arms = BTreeMap::new();
            for (file, source) in &original {
                let left: Vec<&Mutant> =
                    files[file].iter().filter(|m| !refused.contains(&m.id)).copied().collect();
                let woven = weave::weave(source, &left)?;
                refused.extend(woven.alone);
                self.write(file, &woven.text)?;
                arms.insert((*file).to_owned(), woven.arms);
            }
            let errors = self.errors()?;
            if errors.is_empty() {
                return Ok(refused);
            }
            let of = |(file, line): &(String, usize)| {
                let mut arms = arms.get(file).into_iter().flatten();
                arms.find(|(lines, _)| lines.contains(line)).map(|(_, id)| *id)
            };
            let found: BTreeSet<u32> =
                errors.iter().filter_map(|places| places.iter().find_map(of)).collect();
            if found.is_empty() {
                return Err(format!("what is woven does not compile: {errors:?}").into());
            }
            eprintln!("{} more do not compile among the others", found.len());
            refused.extend(found);
        }
    }

    /// Whether it compiles with this mutant.
    pub(crate) fn compiles_with(&self, mutant: &Mutant) -> Result<bool, Failure> {
        self.with(mutant, || Ok(self.errors()?.is_empty()))
    }

    /// What `judge` says of the programs with this mutant.
    pub(crate) fn with<T>(
        &self,
        mutant: &Mutant,
        judge: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let original = self.read(&mutant.file)?;
        self.write(&mutant.file, &weave::apply(&original, mutant)?)?;
        let judged = judge();
        self.write(&mutant.file, &original)?;
        judged
    }

    /// What the compiler says is wrong, in both packages: the places of each error.
    fn errors(&self) -> Result<Vec<Vec<(String, usize)>>, Failure> {
        let mut errors = Vec::new();
        for package in [&LIBRARY[..], &CODEC[..]] {
            // With the tests, which see more of the library than its users do.
            let output = self.cargo("check", &[package, &["--lib", "--tests"]].concat())?;
            let failed = errors.len();
            let is_error = |message: &Value| message["message"]["level"] == "error";
            let found = messages(&output.stdout).filter(is_error);
            errors.extend(found.map(|message| places(&message["message"])));
            if !output.status.success() && errors.len() == failed {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
        }
        Ok(errors)
    }

    /// Builds tests, and says which programs they are.
    pub(crate) fn build(&self, tests: Tests) -> Result<Vec<PathBuf>, Failure> {
        let (package, targets): (&[&str], &[&str]) = match tests {
            Tests::Own => (&LIBRARY, &["--lib"]),
            Tests::Suite => (&LIBRARY, &["--test", "suite", "--test", "tls"]),
            Tests::Codec => (&CODEC, &["--lib", "--tests"]),
        };
        let output = self.cargo("test", &[package, targets, &["--no-run"]].concat())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let is_test = |message: &Value| message["profile"]["test"] == true;
        let path = |message: Value| message["executable"].as_str().map(PathBuf::from);
        Ok(messages(&output.stdout).filter(is_test).filter_map(path).collect())
    }

    /// Without debug symbols, which take longest, and somewhat optimised: the simulation is much
    /// of what runs.
    fn cargo(&self, command: &str, arguments: &[&str]) -> Result<std::process::Output, Failure> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.sources).args([command, "--quiet", "--message-format", "json"]);
        cargo.args(arguments).env("CARGO_TARGET_DIR", &self.built);
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        Ok(cargo.output()?)
    }
}

fn messages(output: &[u8]) -> impl Iterator<Item = Value> + '_ {
    output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The places that a message of the compiler names: first where it is wrong, then what has to do
/// with it.
fn places(message: &Value) -> Vec<(String, usize)> {
    let spans = || message["spans"].as_array().into_iter().flatten();
    let primary = spans().filter(|span| span["is_primary"] == true);
    let place = |span: &Value| {
        let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
        Some((span["file_name"].as_str()?.to_owned(), line))
    };
    let children = message["children"].as_array().into_iter().flatten();
    primary.chain(spans()).filter_map(place).chain(children.flat_map(places)).collect()
}
