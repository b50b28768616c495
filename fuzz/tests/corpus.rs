//! Every target over the whole corpus, and over a little generated input.

use quorlock_fuzz::{Generator, TARGETS, corpus};

#[test]
fn targets_hold_over_the_corpus() {
    let corpus = corpus();
    assert!(corpus.len() > 100, "{} inputs", corpus.len());
    for (_, body) in TARGETS {
        corpus.iter().for_each(|input| body(input));
    }
}

#[test]
fn targets_hold_over_generated_input() {
    let mut generator = Generator::new(1, corpus());
    for _ in 0..2_000 {
        let input = generator.input();
        for (_, body) in TARGETS {
            body(&input);
        }
    }
}

/// An explanation that nothing needs is a difference that has gone, or never was.
#[cfg(feature = "differential")]
#[test]
fn every_explanation_is_needed() {
    use std::collections::BTreeSet;

    let mut generator = Generator::new(1, corpus());
    let mut needed: BTreeSet<_> =
        corpus().iter().flat_map(|input| quorlock_fuzz::differences(input)).collect();
    for _ in 0..50_000 {
        needed.extend(quorlock_fuzz::differences(&generator.input()));
    }
    let stale: Vec<_> =
        quorlock_fuzz::explanations().filter(|known| !needed.contains(known)).collect();
    assert!(stale.is_empty(), "{stale:#?}");
}
