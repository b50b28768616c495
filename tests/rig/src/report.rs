//! What a run has shown: on the terminal, and in a file.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::Failure;
use crate::args::{Args, Durability};
use crate::faults::{Fault, Kind};
use crate::handovers::Summary;
use crate::history::{History, Overlap, Who};
use crate::line::Losses;
use crate::nodes::Nodes;
use crate::processes::Processes;

/// A run's result.
#[derive(Debug)]
pub(crate) struct Report {
    /// What was run, each with its name.
    setting: Vec<(&'static str, String)>,
    seed: u64,
    faults: BTreeMap<Kind, u64>,
    /// Each fault as it came, in words.
    came: Vec<String>,
    counts: BTreeMap<String, u64>,
    handovers: Summary,
    /// Loss signals, by their names.
    losses: BTreeMap<String, Losses>,
    holds: u64,
    held: Duration,
    lasted: Duration,
    /// Two holders of a lock, each pair once, as far as it is known.
    overlaps: BTreeMap<[(Who, u64); 2], Overlap>,
    /// Everything else that must not be.
    broken: Vec<String>,
}

impl Report {
    pub(crate) fn new(args: &Args, kinds: &[Kind], nodes: &Nodes, processes: &Processes) -> Self {
        let (kind, [major, minor, patch]) = nodes.fleet[0].version();
        let libraries: Vec<&str> =
            (0..processes.len()).map(|slot| processes.library(slot)).collect();
        let network = if args.inside { "namespaces, veth and nft" } else { "proxies" };
        let durability = match args.durability {
            Durability::Persistent => "appendfsync always, `Durability::Persistent`",
            Durability::Volatile => "no persistence, `Durability::Volatile`",
            Durability::Forgetful => {
                "no persistence, `Durability::Persistent`: a broken assumption"
            }
        };
        let mut ttl = format!("{} ms", args.ttl.as_millis());
        if args.durability != Durability::Volatile && args.with.is_empty() {
            ttl += ", and 60 s on keys of their own";
        }
        let broken = args.durability == Durability::Forgetful || kinds.contains(&Kind::ClockLeap);
        let setting = vec![
            ("seed", args.seed.to_string()),
            ("servers", format!("{} of {kind} {major}.{minor}.{patch}", args.nodes)),
            ("clients", libraries.join(", ")),
            ("network", network.into()),
            ("durability", durability.into()),
            ("TTL", ttl),
            ("rate", format!("{} cycles/s, {} faults/s", args.rate, args.fault_rate)),
            ("readers", format!("{} of a hundred locks", args.readers)),
            ("fair", format!("{} of a hundred locks", args.fair)),
            ("strict order", format!("{} of a hundred locks of one key", args.strict)),
            ("lock-delays", format!("{} of a hundred locks of one key", args.delayed)),
            ("second handles", format!("{} of a hundred locks of one key", args.handles)),
            ("latches", format!("{} of a hundred turns", args.latches)),
            ("several keys", format!("{} of a hundred turns", args.several)),
            ("revoked", format!("{} of a hundred turns", args.revoked)),
            ("slots", format!("{} of a key", args.slots)),
            ("hand-overs", format!("{} wanted a minute", args.handovers)),
            ("assumptions", if broken { "broken" } else { "held" }.into()),
        ];
        let kinds = kinds.iter().map(|kind| (*kind, 0)).collect();
        let report = Self {
            setting,
            seed: args.seed,
            faults: kinds,
            came: Vec::new(),
            counts: BTreeMap::new(),
            handovers: Summary::default(),
            losses: BTreeMap::new(),
            holds: 0,
            held: Duration::ZERO,
            lasted: Duration::ZERO,
            overlaps: BTreeMap::new(),
            broken: Vec::new(),
        };
        for (name, value) in &report.setting {
            eprintln!("{name}: {value}");
        }
        report
    }

    pub(crate) fn fault(&mut self, fault: &Fault) {
        *self.faults.entry(fault.kind).or_default() += 1;
        self.came.push(fault.to_string());
    }

    /// How many have come.
    pub(crate) fn faults(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Two holders of a lock; told when they are found, and once more when all is known.
    pub(crate) fn overlap(&mut self, overlap: Overlap) {
        let pair = [&overlap.first, &overlap.second].map(|hold| (hold.who, hold.number));
        if !self.overlaps.contains_key(&pair) {
            eprintln!("VIOLATION (seed {}): {overlap}", self.seed);
        }
        self.overlaps.insert(pair, overlap);
    }

    /// Something that must not be; told at once.
    pub(crate) fn broken(&mut self, what: String) {
        eprintln!("VIOLATION (seed {}): {what}", self.seed);
        self.broken.push(what);
    }

    /// Loss signals that a client tells of; the late ones must not be.
    pub(crate) fn losses(&mut self, new: &Losses) {
        let known = self.losses.entry(new.name.clone()).or_default();
        known.told += new.told;
        known.by_nodes += new.by_nodes;
        known.late += new.late;
        known.stalled += new.stalled;
        known.worst = known.worst.max(new.worst);
        known.margins.extend(&new.margins);
        if new.late > 0 {
            let Losses { name, told, late, worst, .. } = new;
            let worst = Duration::from_micros(*worst);
            self.broken(format!(
                "{late} of {told} losses were told late by {name}, by {worst:?} at most"
            ));
        }
    }

    pub(crate) fn violations(&self) -> usize {
        self.overlaps.len() + self.broken.len()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.violations() > 0
    }

    /// What a failed run has found, in one line: the end of a log is what is seen of it first.
    pub(crate) fn verdict(&self) -> Option<String> {
        let overlaps = self.overlaps.values().map(Overlap::to_string);
        let found: Vec<String> = overlaps.chain(self.broken.iter().cloned()).collect();
        verdict(self.seed, &found)
    }

    pub(crate) fn finish(
        &mut self,
        [worked, lasted]: [Duration; 2],
        history: &History,
        counts: &BTreeMap<String, u64>,
        handovers: &Summary,
    ) {
        self.lasted = lasted;
        self.handovers = handovers.clone();
        self.handovers.lasted = worked;
        self.holds = history.holds;
        self.held = Duration::from_nanos(history.held);
        self.counts = counts.clone();
    }

    /// Writes the summary, and beside it the faults as they came.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, self.to_string())?;
        let mut faults = std::fs::File::create(path.with_extension("faults"))?;
        self.came.iter().try_for_each(|fault| writeln!(faults, "{fault}"))?;
        Ok(())
    }
}

impl Report {
    /// The table of the records of losses.
    fn write_losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.losses.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n## Losses\n")?;
        writeln!(
            f,
            "| signal | told | of these by the nodes | least | p1 | p50 | too late | worst \
                     | not let run |"
        )?;
        writeln!(f, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        for (name, losses) in &self.losses {
            let Losses { told, by_nodes, late, stalled, worst, .. } = losses;
            let mut margins = losses.margins.clone();
            margins.sort_unstable();
            write!(f, "| {name} | {told} | {by_nodes} ")?;
            for share in [0, 1, 50] {
                match margins.get(margins.len() * share / 100) {
                    Some(margin) => write!(f, "| {:.1} ms ", *margin as f64 / 1e3)?,
                    None => write!(f, "| ")?,
                }
            }
            writeln!(f, "| {late} | {:.1} ms | {stalled} |", *worst as f64 / 1e3)?;
        }
        Ok(())
    }
}

fn verdict(seed: u64, found: &[String]) -> Option<String> {
    let (first, others) = found.split_first()?;
    let first: Vec<&str> = first.lines().map(str::trim).collect();
    let more = match others.len() {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    };
    Some(format!("FAILED (seed {seed}): {}{more}", first.join("; ")))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# A run of the rig\n")?;
        for (name, value) in &self.setting {
            writeln!(f, "- {name}: {value}")?;
        }
        let (holds, seconds) = (self.holds, self.lasted.as_secs_f64());
        writeln!(f, "- lasted: {seconds:.1} s\n")?;
        let (overlaps, others) = (self.overlaps.len(), self.broken.len());
        writeln!(f, "**{overlaps} overlaps and {others} other violations** in {holds} holds, ")?;
        writeln!(f, "{:.1} s held in all, {} faults.\n", self.held.as_secs_f64(), self.faults())?;
        writeln!(f, "| fault | times |\n|---|---:|")?;
        for (kind, times) in &self.faults {
            writeln!(f, "| {} | {times} |", kind.name())?;
        }
        writeln!(f, "\n| what clients told | times |\n|---|---:|")?;
        for (what, times) in &self.counts {
            writeln!(f, "| {what} | {times} |")?;
        }
        write!(f, "{}", self.handovers)?;
        self.write_losses(f)?;
        let overlaps = self.overlaps.values().map(Overlap::to_string);
        for what in overlaps.chain(self.broken.iter().cloned()) {
            writeln!(f, "\n```text\n{what}\n```")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_says_in_one_line_what_it_found() {
        let found = ["two holders of k0:\n  client 0\n  client 1".into(), "left on node 1".into()];
        let told = verdict(7, &found).expect("it has failed");
        assert_eq!(told, "FAILED (seed 7): two holders of k0:; client 0; client 1 (and 1 more)");
        assert_eq!(verdict(7, &found[1..]).as_deref(), Some("FAILED (seed 7): left on node 1"));
        assert_eq!(verdict(7, &[]), None);
    }
}
