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
