//! What has come of the sample, as a Markdown record.

use std::collections::BTreeMap;

use crate::verdicts::{Judged, Outcome};

/// Wilson's interval: it holds the true share in 95 of 100 samples.
fn interval(caught: f64, all: f64) -> [f64; 2] {
    let z = 1.96;
    let (share, width) = (caught / all, 1.0 + z * z / all);
    let middle = (share + z * z / (2.0 * all)) / width;
    let half = z * (share * (1.0 - share) / all + z * z / (4.0 * all * all)).sqrt() / width;
    [middle - half, middle + half].map(|end| 100.0 * end)
}

/// `commit` is what they are mutants of, and `of` how many there are in all.
pub(crate) fn report(judged: &[Judged], commit: &str, of: usize) -> String {
    let count = |outcome: Outcome| judged.iter().filter(|one| one.outcome == outcome).count();
    let (failed, hung) = (count(Outcome::Caught), count(Outcome::TooSlow));
    let (caught, missed) = (failed + hung, count(Outcome::Missed));
    let viable = caught + missed;
    let mut text = format!(
        "Of commit `{commit}`: {viable} viable mutants judged, of {of} in all; {} more did not \
         compile.\n\n",
        count(Outcome::Unviable)
    );
    if viable == 0 {
        return text;
    }
    let exact = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let [low, high] = interval(exact(caught), exact(viable));
    let share = 100.0 * exact(caught) / exact(viable);
    text.push_str(&format!(
        "**{caught} caught, {share:.1} % [{low:.1}–{high:.1}]**, {hung} of them by hanging; \
         {missed} missed.\n\n| caught by | mutants |\n|---|---:|\n"
    ));
    let mut stages = BTreeMap::<&str, u32>::new();
    for one in judged.iter().filter(|one| one.outcome.is_caught()) {
        *stages.entry(&one.stage).or_default() += 1;
    }
    for (stage, count) in stages {
        text.push_str(&format!("| {stage} | {count} |\n"));
    }
    let mut names: Vec<&str> =
        judged.iter().filter(|one| one.outcome == Outcome::Missed).map(|one| &*one.name).collect();
    names.sort_unstable();
    text.push_str("\nMissed:\n\n");
    for name in names {
        text.push_str(&format!("- `{name}`\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_one_of_the_tables() {
        // 95 of 100: Wilson's interval, as in Newcombe 1998.
        let [low, high] = interval(95.0, 100.0);
        assert!((low - 88.8).abs() < 0.1 && (high - 97.8).abs() < 0.1, "{low} {high}");
    }

    #[test]
    fn what_does_not_compile_is_not_counted() {
        let one = |outcome, name: &str| Judged {
            outcome,
            stage: "suite".to_owned(),
            test: "a::b".to_owned(),
            name: name.to_owned(),
        };
        let judged =
            [one(Outcome::Caught, "x"), one(Outcome::Missed, "y"), one(Outcome::Unviable, "z")];
        let text = report(&judged, "0123abc", 9);
        assert!(text.contains("2 viable mutants judged, of 9 in all; 1 more"), "{text}");
        assert!(text.contains("**1 caught, 50.0 %") && text.contains("- `y`"), "{text}");
    }
}
