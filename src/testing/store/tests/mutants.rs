//! Is every line of every script needed? Each is changed in every small way, and the table of cases
//! must notice: in the reply, in what others hear, in what is left, or in more commands than the
//! script says. No server runs.

mod mutate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::super::sha1::digest;
use super::super::{Version, lua};
use super::bench::{Bench, Node, Outcome};
use super::table::guarded::{all_files, all_scripts};
use super::table::{Case, Script};
use mutate::{Mutant, code_lines, mutants};

/// A mutant that does what the script does, in whichever file the code stands.
struct Equivalent {
    /// What the line holds.
    code: &'static str,
    what: &'static str,
    /// Why nothing tells it from the script.
    reason: &'static str,
}

const EQUIVALENTS: [Equivalent; 71] = [
    equivalent(
        "if not string.match(ttl, '^%d+$')",
        "match → find (1)",
        "either says whether it fits, and nothing else is asked",
    ),
    equivalent("not string.match(longest, '^%d+$')", "match → find (2)", "as the one before it"),
    equivalent("if not string.match(longest, '^%d+$')", "match → find", "as in `standing.lua`"),
    equivalent(WRONG_TYPE, "find → match", "the word is no pattern, so either finds it"),
    equivalent(WRONG_TYPE, "true → false", "the word is no pattern"),
    equivalent(WRONG_TYPE, "1 → 0", "Lua takes no place before the first"),
    equivalent(WRONG_TYPE, "'WRONGTYPE' → 'RONGTYPE'", "no error holds one without the other"),
    equivalent(WRONG_TYPE, "'WRONGTYPE' → 'WRONGTYP'", "no error holds one without the other"),
    equivalent(
        "redis.call('SET', KEYS[1], own)",
        "call → pcall",
        "in `standing.lua`: what refuses it has refused the SET before it, which ends the script",
    ),
    equivalent("if quarantine >= 0 then", "0 → -1", "-1 was answered for above"),
    equivalent("if not string.match(ARGV[3], '^%d+$')", "match → find", "as in `standing.lua`"),
    equivalent("math.max(left, tonumber(", "tonumber → nothing", "`math.max` reads digits itself"),
    equivalent("redis.pcall('ZREM', ", "the two lines swapped", "neither depends on the other"),
    equivalent(
        "redis.call('ZREM', queue, ",
        "the two lines swapped",
        "what refuses one refuses the other",
    ),
    equivalent(
        "redis.call('ZREM', beats, ",
        "call → pcall",
        "what refuses it has refused the ZREM before it, which ends the script",
    ),
    equivalent(
        "redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')",
        "call → pcall",
        "what refuses it has refused the first ZRANGE of the same key, which ends the script",
    ),
    equivalent(OWN_END, "0 → 1", "our own beat ends later than that"),
    equivalent(OWN_END, "0 → -1", "our own beat ends later than that"),
    equivalent(
        "redis.call('PEXPIREAT', beats, ends)",
        "the two lines swapped",
        "neither is refused: the ZADD and the PEXPIREAT before them were not",
    ),
    equivalent(
        "redis.call('PEXPIREAT', beats, ends)",
        "call → pcall",
        "the second of them: what refuses it has refused the first, which ends the script",
    ),
    equivalent(NEXT_PLACE, "call → pcall", "what refuses it has refused the ZADD before it"),
    equivalent(NEXT_PLACE, "tonumber → nothing", "`+` reads digits itself"),
    equivalent(
        "redis.call('PEXPIREAT', queue, ends)",
        "call → pcall",
        "what refuses it has refused the PEXPIREAT before it",
    ),
    equivalent("'^(%x+)@(.*)$')", "'^(%x+)@(.*)$' → '^(%x+)@(.*)'", "`.*` takes all there is"),
    equivalent("'^r?(%x+)@(.*)$')", "'^r?(%x+)@(.*)$' → '^r?(%x+)@(.*)'", "as the one before it"),
    equivalent(", '^%x+@(.-)!?$'), 0", "0 → -1", "either way it is not above 0"),
    equivalent("queue, 0, 0)[1]", "call → pcall", "an error of this kind has come before"),
    equivalent("queue, 0, 0)[1]", "0 → 1 (2)", "what counts is whether there is a first one"),
    equivalent("queue, 0, 0)[1]", "0 → -1 (2)", "what counts is whether there is a first one"),
    equivalent("if time[1] and", "1 → 2", "TIME tells both numbers or an error"),
    equivalent("#ARGV[n] > 16", "match → find", "as in `standing.lua`"),
    equivalent("#fence > 16", "match → find", "as in `standing.lua`"),
    equivalent("if #ARGV > 5 then", "5 → 6", "there are four, five or seven"),
    equivalent("local highest, missing = 0, false", "0 → -1", "no fence is below zero"),
    equivalent("accepted = redis.call('GET', KEYS[n]), -1", "1 → 2", "either is below every fence"),
    equivalent("if not string.match(found,", "match → find", "as in `standing.lua`"),
    equivalent("for n = keys + 1, #KEYS do", "1 → 0", "of a key nothing is below"),
    equivalent(
        "return {#KEYS, #ARGV,",
        "call → pcall",
        "the user's script, and no part of the check",
    ),
    equivalent("string.sub(nonce, 1, 8)", "1 → 0", "Lua takes no place before the first"),
    equivalent("string.sub(one, 1, 1)", "1 → 0 (1)", "as the one before it"),
    equivalent("string.sub(found, 1, 1)", "1 → 0 (1)", "as the one before it"),
    equivalent("string.sub(found[1], 1, 1)", "1 → 0 (3)", "as the one before it"),
    equivalent("string.sub(head, 1, 1)", "1 → 0 (1)", "as the one before it"),
    equivalent("if not string.match(ARGV[2],", "match → find", "as in `standing.lua`"),
    equivalent(
        "redis.call('PEXPIREAT', readers,",
        "call → pcall",
        "the last of them: what refuses it has refused one before it, which ends the script",
    ),
    equivalent("ZRANGE', readers, -2, -1", "2 → 3", "one reader more that ends before the others"),
    equivalent(
        "redis.call('PEXPIREAT', lock,",
        "the two lines swapped",
        "in `read_leave.lua`: what refuses one refuses the other",
    ),
    equivalent("own, last, found = nil, 0, {}", "0 → 1", "either is long over"),
    equivalent("own, last, found = nil, 0, {}", "0 → -1", "either is long over"),
    equivalent(
        "if redis.call('PTTL', lock) < last",
        "call → pcall",
        "in `read.lua`: what refuses it has refused the PTTL before it, which ends the script",
    ),
    equivalent(
        "redis.call('PEXPIRE', set, life)",
        "call → pcall",
        "the second of them: what refuses it has refused the first, which ends the script",
    ),
    equivalent("for n = 1, #found do", "1 → 0", "a table of Lua begins at 1"),
    equivalent("if not (time[1] or", "1 → 2", "TIME tells both numbers or an error"),
    equivalent("now = time[1] and", "1 → 2 (1)", "TIME tells both numbers or an error"),
    equivalent("queue, 0, looks - 1)", "1 → 0", "one more than are looked at"),
    equivalent("local before = #ARGV > 2", "2 → 3 (1)", "there are two, or four"),
    equivalent("local before = #ARGV > 3", "3 → 4", "there are three, or five"),
    equivalent("local before = #ARGV > 3", "ARGV → KEYS", "there are as many keys"),
    equivalent("if not found[1] then", "1 → 2", "there is a value and its ticket, or neither"),
    equivalent("math.max(0, math.min(last[2]", "0 → -1 (2)", "either way it is not above 0"),
    equivalent("own < first)) then", "< → <= (2)", "what is our own has the least ticket already"),
    equivalent("queue, 1, 1)[1] and", "call → pcall", "an error of this kind has come before"),
    equivalent("queue, 1, 1)[1] and", "1 → 2 (3)", "what counts is whether there is a second one"),
    equivalent("string.match(first or '',", "'' → 'X'", "neither is a value with an owner"),
    equivalent("#KEYS - before > 3", "3 → 4", "there are three, or five"),
    equivalent("local before = #ARGV > 5", "5 → 6", "there are five, or seven"),
    equivalent("for n = 1, count do", "1 → 0", "of no slot nothing is held"),
    equivalent("(queue, beats, '', now)", "'' → 'X'", "neither is the value of one that waits"),
    equivalent(
        "until_last = redis.call('ZRANGE', beats, -1, -1",
        "call → pcall",
        "in `slot_ask.lua`: what refuses it has refused the ZRANGE before it",
    ),
    equivalent("if time[1] then", "1 → 2", "TIME tells both numbers or an error"),
    equivalent(
        "(first or not dead[1])",
        "1 → 2 (2)",
        "differs behind one dead and 127 living readers, by a question that need not be asked",
    ),
];

const OWN_END: &str = "math.min(latest, until_last[2] or 0))";
const NEXT_PLACE: &str = "redis.call('ZADD', queue, 'NX', ";
const WRONG_TYPE: &str = ".err, 'WRONGTYPE', 1, true)";

const fn equivalent(code: &'static str, what: &'static str, reason: &'static str) -> Equivalent {
    Equivalent { code, what, reason }
}

/// A script on every case, and what comes of it.
struct Proof {
    script: Script,
    cases: Vec<Case>,
    benches: Vec<Arc<Bench>>,
    outcomes: Vec<Outcome>,
    /// How many commands the script says in each case.
    counts: Vec<u64>,
    /// The lines of the script that run in each case.
    lines: Vec<BTreeSet<usize>>,
}

impl Proof {
    fn new(script: Script) -> Self {
        let cases = script.cases();
        let benches = Node::new(Version::default(), true, script.text()).prepare(&cases);
        let run = |(bench, case): (&Arc<Bench>, &Case)| {
            let ((outcome, calls), lines) = lua::lines_run(|| bench.run(&case.words)).unwrap();
            (outcome, (calls.values().sum::<u64>(), lines))
        };
        let (outcomes, (counts, lines)) = benches.iter().zip(&cases).map(run).unzip();
        Self { script, cases, benches, outcomes, counts, lines }
    }

    /// The cases that a mutant can change: those in which a line of it runs. All cases where that
    /// is unknown: a line with `else` has no code that runs, and some lines may never run.
    fn reached(&self, file: &str, mutant: &Mutant) -> Vec<usize> {
        let before = self.script.files.iter().take_while(|name| **name != file);
        let text = |name: &str| all_files().find(|(file, _)| *file == name).unwrap().1;
        let before: usize = before.map(|name| text(name).lines().count()).sum();
        let all = 0..self.cases.len();
        let has_else = |line: &usize| text(file).lines().nth(line - 1).unwrap().contains("else");
        let runs = |line: &usize, case: usize| self.lines[case].contains(&(before + line));
        let runs_any = |case: &usize| mutant.lines.iter().any(|line| runs(line, *case));
        let reached: Vec<usize> = all.clone().filter(runs_any).collect();
        let is_told = !reached.is_empty() && !mutant.lines.iter().any(has_else);
        if is_told { reached } else { all.collect() }
    }

    /// The first case that tells a mutant of a file from the file as it is: by what comes of it, or
    /// by more commands. Fewer commands tell nothing: if the same comes of them, the others are not
    /// needed.
    fn catch(&self, file: &str, mutant: &Mutant) -> Option<String> {
        let script = &self.script;
        let text =
            script.text_with(
                |name, text| {
                    if name == file { mutant.text.clone() } else { text.to_owned() }
                },
            );
        let digest: &str = digest(text.as_bytes()).leak();
        let text = Bytes::from(text);
        let told = |index: &usize| {
            let (bench, words) = (&self.benches[*index], &self.cases[*index].words);
            let (outcome, calls) = bench.run_as(digest, &text, words);
            outcome != self.outcomes[*index] || calls.values().sum::<u64>() > self.counts[*index]
        };
        let index = self.reached(file, mutant).into_iter().find(told)?;
        Some(format!("{}: {}", script.name, self.cases[index].name))
    }
}

/// What became of a mutant.
struct Verdict {
    file: &'static str,
    code: String,
    mutant: Mutant,
    /// The case that told it from the script.
    caught_by: Option<String>,
}

impl Verdict {
    /// Why nothing can tell it from the script, if that is known.
    fn reason(&self) -> Option<&'static str> {
        EQUIVALENTS.iter().find(|it| it.is(self)).map(|it| it.reason)
    }
}

/// The mutants of a file that are Lua.
fn viable(file: &str, text: &str) -> Vec<Mutant> {
    let parses =
        |mutant: &Mutant| {
            all_scripts().filter(|script| script.files.contains(&file)).all(|script| {
                let text = script.text_with(|name, text| {
                    if name == file { mutant.text.clone() } else { text.to_owned() }
                });
                lua::check(&digest(text.as_bytes()), text.as_bytes()).is_ok()
            })
        };
    mutants(text).into_iter().filter(parses).collect()
}

/// Of so many mutants one is run, unless `QUORLOCK_ALL_MUTANTS` is set, as `tests/run full` does:
/// all of them take minutes.
const SHARE: usize = 17;

fn share() -> usize {
    if std::env::var_os("QUORLOCK_ALL_MUTANTS").is_some() { 1 } else { SHARE }
}

/// Runs one in so many mutants, on all processors.
fn judge(share: usize) -> Vec<Verdict> {
    let proofs: Vec<Proof> = all_scripts().map(Proof::new).collect();
    let all = all_files().flat_map(|(file, text)| {
        viable(file, text).into_iter().map(move |mutant| {
            let code = text.lines().nth(mutant.lines[0] - 1).unwrap().trim().to_owned();
            (file, code, mutant)
        })
    });
    let all: Vec<(&str, String, Mutant)> = all.step_by(share).collect();
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Ordering: the numbers need only differ.
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some((file, code, mutant)) = all.get(index) else { return };
                    let of_file = |proof: &&Proof| proof.script.files.contains(file);
                    let mut of_file = proofs.iter().filter(of_file);
                    let caught_by = of_file.find_map(|proof| proof.catch(file, mutant));
                    let (code, mutant) = (code.clone(), mutant.clone());
                    let verdict = Verdict { file, code, mutant, caught_by };
                    verdicts.lock().unwrap().insert(index, verdict);
                }
            });
        }
    });
    verdicts.into_inner().unwrap().into_values().collect()
}

impl Equivalent {
    fn is(&self, verdict: &Verdict) -> bool {
        verdict.caught_by.is_none()
            && verdict.mutant.what == self.what
            && verdict.code.contains(self.code)
    }
}

#[test]
fn every_line_of_every_script_is_needed() {
    let share = share();
    let verdicts = judge(share);
    all_files().for_each(|(file, text)| print(file, text, &verdicts));
    let survivors = verdicts.iter().filter(|verdict| verdict.caught_by.is_none());
    let (listed, unlisted): (Vec<&Verdict>, Vec<&Verdict>) =
        survivors.partition(|verdict| verdict.reason().is_some());
    println!("\n{} mutants, of which {} are equivalent", verdicts.len(), listed.len());
    let shown = |verdict: &&Verdict| {
        let Verdict { file, code, mutant, .. } = verdict;
        format!("{file}:{:?}: {}: {code}", mutant.lines, mutant.what)
    };
    let unlisted: Vec<String> = unlisted.iter().map(shown).collect();
    assert!(unlisted.is_empty(), "not caught:\n{}", unlisted.join("\n"));
    for (file, text) in all_files() {
        let all = mutants(text);
        for line in code_lines(text) {
            let is_of_line = |it: &Mutant| it.lines.contains(&line);
            assert!(all.iter().any(is_of_line), "{file}:{line} has no mutant");
        }
    }
    if share > 1 {
        return; // an equivalent one may not have been among them
    }
    let stale = EQUIVALENTS.iter().filter(|it| !listed.iter().any(|verdict| it.is(verdict)));
    let stale: Vec<_> = stale.map(|it| (it.code, it.what)).collect();
    assert!(stale.is_empty(), "listed as equivalent, but caught or not there: {stale:?}");
}

/// The table of a file: line by line, the changes that one case tells from the script.
fn print(file: &str, text: &str, verdicts: &[Verdict]) {
    println!("\n## {file}\n\n| line | code | changes | caught by |\n|---:|---|---|---|");
    let lines: Vec<&str> = text.lines().collect();
    for line in code_lines(text) {
        let is_of_line = |it: &&Verdict| it.file == file && it.mutant.lines.contains(&line);
        let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
        for verdict in verdicts.iter().filter(is_of_line) {
            let caught = match (&verdict.caught_by, verdict.reason()) {
                (Some(case), _) => case.clone(),
                (None, Some(reason)) => format!("*equivalent*: {reason}"),
                (None, None) => "**not caught**".to_owned(),
            };
            match rows.iter_mut().find(|(by, _)| *by == caught) {
                Some((_, changes)) => changes.push(&verdict.mutant.what),
                None => rows.push((caught, vec![&verdict.mutant.what])),
            }
        }
        let code = lines[line - 1].trim();
        for (caught, changes) in rows {
            println!("| {line} | `{code}` | {} | {caught} |", changes.join("; "));
        }
    }
}

#[test]
fn mutants_change_one_thing_and_leave_the_lines_where_they_are() {
    let text = "local a = redis.call('GET', KEYS[1]) -- not a\nif not a then\n  return -1\nend\n";
    assert_eq!(code_lines(text), [1, 2, 3, 4]);
    let all = mutants(text);
    let of = |line: usize| -> Vec<&str> {
        let of_line = all.iter().filter(|mutant| mutant.lines.contains(&line));
        of_line.map(|mutant| &*mutant.what).collect()
    };
    assert_eq!(
        of(1),
        [
            "the line left out",
            "call → pcall",
            "'GET' → 'GETX'",
            "'GET' → 'ET'",
            "'GET' → 'GE'",
            "'GET' → ''",
            "KEYS → ARGV",
            "1 → 2",
            "1 → 0",
        ]
    );
    assert_eq!(
        of(2),
        [
            "the line left out",
            "not → nothing",
            "the condition → true",
            "the condition → false",
            "the block left out",
            "a → nil",
        ]
    );
    assert_eq!(of(4), ["the line left out", "the block left out"]);
    assert!(of(3).contains(&"- → nothing") && of(3).contains(&"returns nil"));
    assert!(all.iter().all(|mutant| mutant.text.lines().count() == 4 && mutant.text != text));
}
