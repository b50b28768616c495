//! What the hand-overs of a run have shown, in numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{DELIVERED_LATE, NOT_LET_RUN};
use crate::line::Source;

/// Of how many tokens one may go without an adopter because of the rig's own slowness, and how many
/// in any case. The library causes neither a late delivery nor a processor that is busy: what they
/// take from a run is evidence. With nine of ten tokens judged as usual it shows what it is for.
const SLOW_OF: u64 = 10;
const SLOW_MIN: u64 = 2;

/// The hand-overs that are judged, and the waits of all adoptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    sources: BTreeMap<Source, Counts>,
    /// Why tokens were adopted by none.
    never: BTreeMap<String, u64>,
    /// For how long clients were to hand over, for the rate.
    pub(crate) lasted: Duration,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    handed: u64,
    once: u64,
    never: u64,
    twice: u64,
    /// Nothing was in the way of these.
    clear: u64,
    clear_once: u64,
    tries: u64,
    /// From the first try to the guard, in nanoseconds.
    waits: Vec<u64>,
}

impl Summary {
    /// An adoption succeeded after so long and so many tries.
    pub(super) fn wait(&mut self, source: Source, waited: u64, tries: u64) {
        let counts = self.sources.entry(source).or_default();
        counts.waits.push(waited);
        counts.tries += tries;
    }

    /// A hand-over was judged.
    pub(super) fn judged(&mut self, source: Source, adoptions: usize, obstacle: Option<&str>) {
        let counts = self.sources.entry(source).or_default();
        counts.handed += 1;
        counts.clear += u64::from(obstacle.is_none());
        match adoptions {
            0 => {
                counts.never += 1;
                let why = obstacle.unwrap_or("**nothing explains it**");
                *self.never.entry(why.into()).or_default() += 1;
            }
            1 => {
                counts.once += 1;
                counts.clear_once += u64::from(obstacle.is_none());
            }
            _ => counts.twice += 1,
        }
    }

    /// Why the run shows too little, if the rig was too slow for too many tokens.
    pub(crate) fn is_too_slow(&self) -> Option<String> {
        let times = |why: &str| self.never.get(why).copied().unwrap_or(0);
        let [late, waiting] = [DELIVERED_LATE, NOT_LET_RUN].map(times);
        let handed = self.handed();
        let is_much = late + waiting > SLOW_MIN.max(handed / SLOW_OF);
        is_much.then(|| {
            format!(
                "of {handed} tokens {late} were {DELIVERED_LATE} and {waiting} had adopters that \
                 were {NOT_LET_RUN}: this machine is too busy for the run to show anything"
            )
        })
    }

    pub(crate) fn handed(&self) -> u64 {
        self.sources.values().map(|counts| counts.handed).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.handed() == 0 {
            return Ok(());
        }
        let minutes = self.lasted.as_secs_f64() / 60.0;
        let rate = self.handed() as f64 / minutes.max(f64::EPSILON);
        writeln!(f, "\n## Hand-overs\n\n{} tokens, {rate:.0} a minute.\n", self.handed())?;
        writeln!(
            f,
            "| token of | handed over | adopted once | by none | twice | clear way | of \
                     these once | tries | p50 | p99 | most |"
        )?;
        writeln!(f, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        for source in Source::ALL {
            let Some(counts) = self.sources.get(&source) else { continue };
            let Counts { handed, once, never, twice, clear, clear_once, tries, waits } = counts;
            let mut waits = waits.clone();
            waits.sort_unstable();
            let name = source.name();
            write!(f, "| {name} | {handed} | {once} | {never} | {twice} | {clear} ")?;
            let tries = *tries as f64 / (waits.len().max(1)) as f64;
            write!(f, "| {clear_once} | {tries:.2} ")?;
            for share in [50, 99, 100] {
                let at = (waits.len() * share / 100).min(waits.len().saturating_sub(1));
                match waits.get(at) {
                    Some(wait) => write!(f, "| {:.1} ms ", *wait as f64 / 1e6)?,
                    None => write!(f, "| ")?,
                }
            }
            writeln!(f, "|")?;
        }
        writeln!(
            f,
            "\n*Clear way*: no fault met giver, adopter or more of the granting nodes than \
                     a majority can\nspare, for one copy at least. *Tries* are the adopter's, a \
                     token; the times are from its first\ntry to its guard. *Delivered late* and \
                     *not let run* are the rig's own slowness.\n"
        )?;
        writeln!(f, "| adopted by none, because of | times |\n|---|---:|")?;
        self.never.iter().try_for_each(|(why, times)| writeln!(f, "| {why} | {times} |"))
    }
}
