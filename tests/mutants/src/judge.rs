//! Whether a test fails.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::tree::Tests;

/// How long one test program may take, whatever it says.
const LONGEST: Duration = Duration::from_secs(600);

/// What has come of a mutant, and in which stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// This test fails.
    Caught(String),
    /// The tests say nothing for far longer than any takes.
    TooSlow,
    Missed,
}

/// The tests of a stage.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    tests: Tests,
    arguments: Vec<&'static str>,
    /// Where the package is, in the sources.
    package: &'static str,
    /// How long none of them may say anything.
    silence: Duration,
}

/// The stages that a mutant meets, each only if it has survived the one before: the library's own
/// tests, the simulation, and the suite and the tests of TLS on nodes inside the process; or the
/// codec's tests. No server is needed.
pub(crate) fn stages(file: &str) -> Vec<Stage> {
    let package = if file.starts_with("resp/") { "resp" } else { "" };
    let stage = |name, tests, arguments: &[&'static str], silence| Stage {
        name,
        tests,
        arguments: arguments.to_vec(),
        package,
        silence: Duration::from_secs(silence),
    };
    if package == "resp" {
        return vec![stage("codec", Tests::Codec, &["--skip", "server::"], 20)];
    }
    // What plays whole worlds, or scripts in worlds of their own, is the second stage's.
    let worlds = ["--skip", "simulation::", "--skip", "testing::store::tests"];
    vec![
        stage("own tests", Tests::Own, &worlds, 30),
        stage("simulation", Tests::Own, &["simulation::"], 90),
        // Many at a time, for they mostly wait.
        stage("suite", Tests::Suite, &["--test-threads", "16"], 60),
    ]
}

/// Runs the stages with this mutant (none is zero) until one fails; `build` makes their programs.
pub(crate) fn judge(
    stages: &[Stage],
    sources: &Path,
    mutant: u32,
    build: impl Fn(Tests) -> Result<Vec<PathBuf>, Failure>,
) -> Result<(Verdict, &'static str), Failure> {
    let mut last = "no test";
    for stage in stages {
        last = stage.name;
        for program in &build(stage.tests)? {
            let run = Run { stage, program, sources, mutant };
            match run.judge()? {
                Verdict::Missed => {}
                verdict => return Ok((verdict, last)),
            }
        }
    }
    Ok((Verdict::Missed, last))
}

/// A test program with a mutant.
struct Run<'a> {
    stage: &'a Stage,
    program: &'a Path,
    sources: &'a Path,
    mutant: u32,
}

/// How a test program has ended.
enum Ended {
    Passed,
    /// The first test that failed; none where the program failed without a word.
    Failed(Option<String>),
    Silent,
}

impl Run<'_> {
    /// What has failed is run once more, for a test may fail because the machine is busy; and if it
    /// passes then, all are, once.
    fn judge(&self) -> Result<Verdict, Failure> {
        for _ in 0..2 {
            let failed = match self.run(&self.stage.arguments)? {
                Ended::Passed => return Ok(Verdict::Missed),
                Ended::Silent => return Ok(Verdict::TooSlow),
                Ended::Failed(None) => continue,
                Ended::Failed(Some(test)) => test,
            };
            match self.run(&["--exact", &failed])? {
                Ended::Passed => {}
                Ended::Silent => return Ok(Verdict::TooSlow),
                Ended::Failed(_) => return Ok(Verdict::Caught(failed)),
            }
        }
        Ok(Verdict::Caught("one that fails not always, or the whole program".to_owned()))
    }

    /// Nothing more is waited for after the first test that fails: many a mutant that fails one
    /// hangs others.
    #[expect(clippy::disallowed_methods, reason = "the time of a test program, not of a lease")]
    fn run(&self, arguments: &[&str]) -> Result<Ended, Failure> {
        let mut program = Guarded(self.start(arguments)?);
        let (lines, received) = channel();
        for pipe in [
            program.0.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            program.0.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ] {
            let lines = lines.clone();
            std::thread::spawn(move || pipe.map(|pipe| pass_on(pipe, &lines)));
        }
        drop(lines);
        let began = Instant::now();
        loop {
            match received.recv_timeout(self.stage.silence) {
                Ok(line) => {
                    if let Some(test) = failed(&line) {
                        return Ok(Ended::Failed(Some(test.to_owned())));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(Ended::Silent),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if began.elapsed() > LONGEST {
                return Ok(Ended::Silent);
            }
        }
        let status = program.0.wait()?;
        Ok(if status.success() { Ended::Passed } else { Ended::Failed(None) })
    }

    /// With twelve gigabytes at most: a mutant may ask for all there are.
    fn start(&self, arguments: &[&str]) -> Result<Child, Failure> {
        let mut command = Command::new("bash");
        command.args(["-c", "ulimit -v 12000000; exec \"$0\" \"$@\""]).arg(self.program);
        command.args(arguments).current_dir(self.sources.join(self.stage.package));
        command.env("QUORLOCK_MUTANT", self.mutant.to_string());
        // Nodes inside the process, few seeds, few losses.
        command.env("QUORLOCK_SERVER", "in-process").env("QUORLOCK_SEEDS", "30");
        command.env("QUORLOCK_LOSS_RUNS", "20");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command.spawn()?)
    }
}

/// A process that ends with its owner.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn pass_on(pipe: impl Read, lines: &Sender<String>) {
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if lines.send(line).is_err() {
            break;
        }
    }
}

/// The test that a line of libtest says has failed.
fn failed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Judges all of `waiting` with `workers` threads, and hands each verdict to `tell`.
pub(crate) fn judge_all<T: Send>(
    waiting: VecDeque<T>,
    workers: usize,
    judge: impl Fn(&T) -> Result<(Verdict, &'static str), Failure> + Sync,
    mut tell: impl FnMut(&T, Verdict, &'static str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let waiting = std::sync::Mutex::new(waiting);
    let next = || waiting.lock().ok()?.pop_front();
    std::thread::scope(|scope| {
        let (verdicts, received) = channel();
        for _ in 0..workers {
            let (verdicts, next, judge) = (verdicts.clone(), &next, &judge);
            scope.spawn(move || {
                while let Some(mutant) = next() {
                    let judged = judge(&mutant).map_err(|error| error.to_string());
                    if verdicts.send((mutant, judged)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(verdicts);
        for (mutant, judged) in received {
            let (verdict, stage) = judged?;
            tell(&mutant, verdict, stage)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_known_by_its_line() {
        assert_eq!(failed("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed("test a::b ... ok"), None);
        assert_eq!(failed("test result: FAILED. 1 passed"), None);
    }

    #[test]
    fn a_program_is_judged_by_what_it_says() -> Result<(), Failure> {
        let stage = |script: &'static str, silence| Stage {
            name: "script",
            tests: Tests::Own,
            arguments: vec!["-c", script],
            package: "",
            silence: Duration::from_millis(silence),
        };
        let bash = |_| Ok(vec!["bash".into()]);
        let verdict = |stage: Stage| Ok::<_, Failure>(judge(&[stage], Path::new("."), 0, bash)?.0);
        assert_eq!(verdict(stage("true", 60_000))?, Verdict::Missed);
        assert_eq!(verdict(stage("exec sleep 60", 100))?, Verdict::TooSlow);
        assert!(matches!(verdict(stage("false", 60_000))?, Verdict::Caught(_)));
        Ok(())
    }
}
