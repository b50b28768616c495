//! What the terminal shows.

use crate::contest::Runtime;
use crate::rounds::{Heat, Standing};
use crate::stats::{Interval, median, paired_ratio};

/// Prints the figures of all, and what ours are beside the others'.
pub(crate) fn print(heat: &Heat) {
    println!("\n{} callers", heat.callers);
    println!(
        "{:24} {:>8} {:>8} {:>8} {:>8} {:>9} {:>10} {:>8}",
        "", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs", "cycles/s", "CPU µs"
    );
    for standing in &heat.standings {
        let quantile = |quantile| standing.quantile_us(quantile);
        println!(
            "{:24} {:8.1} {:8.1} {:8.1} {:8.1} {:9.1} {:10.0} {:8.2}",
            name(standing),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            quantile(1.0),
            median(&standing.column(|round| round.cycles_per_s)),
            median(&standing.column(|round| round.cpu_us)),
        );
    }
    println!("\npaired ratios, median [95 %]: p50, p99, cycles/s, CPU per cycle");
    for ours in
        heat.standings.iter().filter(|standing| ["ours", "ours-body"].contains(&standing.name))
    {
        for theirs in &heat.standings {
            let comparable = [ours.runtime, Runtime::Thread].contains(&theirs.runtime);
            if !comparable || std::ptr::eq(ours, theirs) {
                continue;
            }
            let ratio = |figure| paired_ratio(&ours.column(figure), &theirs.column(figure));
            println!(
                "{:16} / {:24} {} {} {} {}",
                name(ours),
                name(theirs),
                show(ratio(|round| round.p50_us)),
                show(ratio(|round| round.p99_us)),
                show(ratio(|round| round.cycles_per_s)),
                show(ratio(|round| round.cpu_us)),
            );
        }
    }
}

fn name(standing: &Standing) -> String {
    format!("{}/{}", standing.name, standing.runtime.label())
}

fn show(Interval { median, low, high }: Interval) -> String {
    format!("{median:5.2} [{low:5.2}–{high:5.2}]")
}
