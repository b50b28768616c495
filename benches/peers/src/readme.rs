//! The README's tables, from the results. Pure but for the file.

use std::path::Path;

use crate::contest::Failure;
use crate::results::Results;
use crate::{hand_over, table};

/// The marks of a table: where it begins and where it ends.
type Marks = [&'static str; 2];

const PEERS: Marks = ["<!-- record:begin -->", "<!-- record:end -->"];
const HAND_OVER: Marks = ["<!-- hand-over:begin -->", "<!-- hand-over:end -->"];

/// Who is in it: by the beginning of the name, so that each peer's best way counts.
const FAMILIES: [&str; 6] = ["floor", "ours", "redis", "fred", "rustis", "rslock"];

/// The figures: of how many callers, which, and whether more of it is better.
const COLUMNS: [(usize, &str, bool); 5] = [
    (1, "p50 µs", false),
    (1, "p99 µs", false),
    (64, "cycles/s", true),
    (512, "cycles/s", true),
    (64, "CPU µs/cycle", false),
];

/// Writes between their marks the tables that these results have figures for: that of the peers
/// from the whole only.
pub(crate) fn rewrite(
    results: &Results,
    date: &str,
    whole: bool,
    record: &str,
) -> Result<(), Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let mut text = std::fs::read_to_string(&path)?;
    if whole {
        text = between(&text, PEERS, &section(results, date))?;
    }
    if let Some(table) = hand_over(results, record) {
        text = between(&text, HAND_OVER, &table)?;
    }
    Ok(std::fs::write(&path, text)?)
}

/// `text` with what stands between the marks replaced.
fn between(text: &str, [begin, end]: Marks, section: &str) -> Result<String, Failure> {
    let parts = text.split_once(begin).and_then(|(head, rest)| Some((head, rest.split_once(end)?)));
    let Some((head, (_, tail))) = parts else {
        return Err(format!("the README has no {begin} and {end}").into());
    };
    Ok(format!("{head}{begin}\n{section}{end}{tail}"))
}

/// Contestants that the README leaves out: they are for the record.
const NOT_IN_README: [&str; 3] = ["ours-again", "ours-fair", "ours-strict"];

/// From a release to the next holder in another process, if that was measured.
fn hand_over(results: &Results, record: &str) -> Option<String> {
    let figure = |name: &str, figure: &str| {
        let what = format!("5 nodes, hand-over, {name}, {figure}");
        Some(results.lines.iter().find(|line| line.what == what)?.interval.median)
    };
    let row = |name: &&str| {
        let [p50, p99] = [figure(name, "p50 µs")?, figure(name, "p99 µs")?];
        let beside = figure(name, "p50 against the floor")?;
        Some([(*name).to_owned(), format!("{p50:.0}"), format!("{p99:.0}"), format!("{beside:.2}")])
    };
    let shown = hand_over::CONTESTANTS.iter().filter(|name| !NOT_IN_README.contains(name));
    let rows: Vec<_> = shown.filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let head = ["client", "hand-over p50 µs", "p99 µs", "p50 beside the floor"];
    Some(format!(
        "{}\nFrom a release to the acquisition by a process that waits, five servers on loopback.\n\
         `floor`: bare sockets in the same queue; `ours-polling`: every 50 ms, without a queue.\n\
         More of it: [the record](benches/record/{record}).\n",
        table::align(&head, &rows)
    ))
}

fn section(results: &Results, date: &str) -> String {
    let mut rows = Vec::new();
    for runtime in ["thread", "current", "multi"] {
        for family in FAMILIES {
            let cells = COLUMNS.map(|column| best(results, family, runtime, column));
            if cells.iter().all(Option::is_none) {
                continue;
            }
            let [a, b, c, d, e] = cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
            rows.push([format!("{family}, {runtime}"), a, b, c, d, e]);
        }
    }
    let head = [
        "client, runtime",
        "acquire p50 µs",
        "p99 µs",
        "64 callers, cycles/s",
        "512 callers, cycles/s",
        "client CPU µs/cycle",
    ];
    format!(
        "{}\nFive servers on loopback, sharing the machine with the client; of each peer the best\n\
         of its ways counts, cell by cell; CPU with 64 callers. `floor`: bare sockets.\n\
         Versions, intervals, ratios, promises: [the record](benches/record/{date}-peers.md).\n\
         More nodes and callers: [the chart](benches/record/{date}-peers.svg).\n",
        table::align(&head, &rows)
    )
}

/// The best figure of a family on a runtime.
fn best(
    results: &Results,
    family: &str,
    runtime: &str,
    (callers, figure, more_is_better): (usize, &str, bool),
) -> Option<String> {
    let setting = crate::budget::setting(5, callers);
    let mine = |what: &str| {
        let rest = what.strip_prefix(&format!("{setting}, {family}"))?;
        let (way, rest) = rest.split_once('/')?;
        // Ourselves again is chance, and a body is another question; the floor decides early.
        let counts = way.is_empty() || !["ours", "floor"].contains(&family);
        (counts && rest == format!("{runtime}, {figure}")).then_some(())
    };
    let found = results.lines.iter().filter(|line| mine(&line.what).is_some());
    let values = found.map(|line| line.interval.median);
    let best = values.reduce(if more_is_better { f64::max } else { f64::min })?;
    Some(if figure == "cycles/s" { format!("{best:.0}") } else { format!("{best:.1}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Kind;
    use crate::stats::Interval;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let [begin, end] = PEERS;
        let text = format!("head\n{begin}\nold\n{end}\ntail\n");
        let new = between(&text, PEERS, "new\n").unwrap();
        assert_eq!(new, format!("head\n{begin}\nnew\n{end}\ntail\n"));
        assert!(between("head\ntail\n", PEERS, "new\n").is_err());
    }

    #[test]
    fn the_readme_has_the_marks() {
        let readme = include_str!("../../../README.md");
        for marks in [PEERS, HAND_OVER] {
            let new = between(readme, marks, "table\n").unwrap();
            assert!(new.contains(&format!("table\n{}", marks[1])));
        }
    }

    #[test]
    fn hand_overs_are_shown_if_they_were_measured() {
        let mut results = Results::default();
        assert_eq!(hand_over(&results, "today.md"), None);
        let exactly = Interval { median: 7.25, low: 7.25, high: 7.25 };
        for figure in ["p50 µs", "p99 µs", "p50 against the floor"] {
            results.note(Kind::Figure, format!("5 nodes, hand-over, ours, {figure}"), exactly);
        }
        let text = hand_over(&results, "today.md").unwrap();
        assert!(text.contains("| ours") && text.contains("7.25") && text.contains("/today.md"));
        assert!(!text.contains("| floor"));
    }

    #[test]
    fn the_best_way_of_a_peer_counts_and_ours_is_ours() {
        let mut results = Results::default();
        let figures = [
            ("5 nodes, 64 callers, redis-all/current, cycles/s", 3.0),
            ("5 nodes, 64 callers, redis-quorum/current, cycles/s", 5.0),
            ("5 nodes, 64 callers, redis-quorum/multi, cycles/s", 7.0),
            ("5 nodes, 512 callers, redis-all/current, cycles/s", 8.0),
            ("5 nodes, 64 callers, ours/current, cycles/s", 10.0),
            ("5 nodes, 64 callers, ours-again/current, cycles/s", 11.0),
        ];
        for (what, value) in figures {
            let exactly = Interval { median: value, low: value, high: value };
            results.note(Kind::Figure, what.to_owned(), exactly);
        }
        let cycles = (64, "cycles/s", true);
        assert_eq!(best(&results, "redis", "current", cycles).as_deref(), Some("5"));
        assert_eq!(best(&results, "ours", "current", cycles).as_deref(), Some("10"));
        assert_eq!(best(&results, "rslock", "current", cycles), None);
        assert!(section(&results, "today").contains("record/today-peers.md"));
    }
}
