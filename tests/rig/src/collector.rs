//! Where the clients' lines come in: takes them down, and delivers tokens.
//!
//! A token's time runs while it is on its way. So tokens are delivered as soon as their lines come,
//! also while something else takes its time, as a server's start does: see
//! [`Collector::meanwhile`].

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::args::{Args, PROGRAM};
use crate::clock;
use crate::commands::Commands;
use crate::disturbances::Disturbances;
use crate::faults::Fault;
use crate::handovers::{Delivery, Handovers, deliveries};
use crate::history::{History, Overlap, Who};
use crate::latches::Latches;
use crate::line::{Handed, Line, Part};
use crate::processes::{News, Processes};
use crate::random::Random;
use crate::report::Report;

/// For how long faults are remembered that may explain what is judged later.
const REMEMBERED: Duration = Duration::from_secs(120);

/// How often a guard may come whose time is over: a process can be stopped between the library's
/// last look at the clock and its own first one, though that takes microseconds. In each ten
/// minutes it may happen once more.
const LATE_MAX: u64 = 2;

/// How often it is looked at whether other work is done.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What the clients tell, and what is made of it.
pub(crate) struct Collector {
    pub(crate) args: Args,
    pub(crate) processes: Processes,
    pub(crate) news: Receiver<News>,
    pub(crate) history: History,
    pub(crate) latches: Latches,
    pub(crate) commands: Commands,
    pub(crate) disturbances: Disturbances,
    pub(crate) handovers: Handovers,
    /// Copies of tokens that are still to be sent, and when.
    pub(crate) deliveries: Vec<(u64, Delivery)>,
    pub(crate) random: Random,
    pub(crate) counts: BTreeMap<String, u64>,
    /// How many of the processes have told their end.
    pub(crate) ended: u64,
    /// Values of keys that clients have left on purpose.
    pub(crate) spared: Vec<String>,
    pub(crate) report: Report,
    pub(crate) signalled: bool,
}

impl Collector {
    /// Takes in what has come, for about so long.
    pub(crate) fn listen(&mut self, time: Duration) {
        let began = clock::now();
        loop {
            let passed = clock::between(began, clock::now());
            let Some(left) = time.checked_sub(passed) else { return };
            let Ok(news) = self.news.recv_timeout(left) else { return };
            match news {
                News::Signal => self.signalled = true,
                News::End(who) => {
                    self.ended += 1;
                    self.handovers.died(who, clock::now());
                    if let Err(overlap) = self.history.died(who) {
                        self.overlap(*overlap);
                    }
                }
                News::Line(who, line) => self.take_down(who, &line),
            }
        }
    }

    /// Two holders; that a command lives too long may be the machine's fault.
    fn overlap(&mut self, overlap: Overlap) {
        let is_command = self.processes.library(overlap.first.who.slot) == PROGRAM;
        let found = if is_command { self.commands.overlap(overlap) } else { Some(overlap) };
        found.into_iter().for_each(|overlap| self.report.overlap(overlap));
    }

    /// All is told: what was put aside is judged by what is known.
    pub(crate) fn conclude(&mut self) {
        self.judge(true);
        let revoked = self.history.revoked_for_too_long();
        let latches = self.latches.judge();
        revoked.into_iter().chain(latches).for_each(|what| self.report.broken(what));
        if self.args.latches > 0 {
            self.counts.insert("latches that opened".into(), self.latches.opened() as u64);
        }
        self.commands.rest().into_iter().for_each(|overlap| self.report.overlap(overlap));
        if self.commands.excused() > 0 {
            let what = format!("{PROGRAM}: outlived its lock, not let run");
            self.counts.insert(what, self.commands.excused() as u64);
        }
        if let Some(why) = self.handovers.summary().is_too_slow() {
            self.report.broken(why);
        }
    }

    fn take_down(&mut self, who: Who, line: &Line) {
        self.count(who.slot, line);
        if let Err(overlap) = self.history.record(who, line) {
            self.overlap(*overlap);
        }
        match line {
            Line::Arriving { latch, party, at } => self.latches.arriving(latch, party, *at),
            Line::Latch(look) => self.latches.looked(look),
            _ => {}
        }
        if let Line::Program(life) = line {
            let found = self.commands.ended(who, life);
            found.into_iter().for_each(|overlap| self.report.overlap(overlap));
        }
        if let Err(twice) = self.handovers.record(who, line) {
            self.report.broken(twice);
        }
        if let Line::Handed(handed) = line {
            self.hand_over(who, handed);
        }
    }

    /// Draws who gets a token, and sends what is to be sent at once.
    fn hand_over(&mut self, who: Who, handed: &Handed) {
        let number = self.handovers.given(who, handed);
        let seats = (who.slot, self.args.clients);
        let all = deliveries(&mut self.random, number, seats, handed.copies, self.args.ttl);
        let now = clock::now();
        self.deliveries.extend(all.into_iter().map(|it| (now + clock::nanos(it.after), it)));
        self.deliver();
    }

    /// Sends the copies of tokens whose time it is.
    pub(crate) fn deliver(&mut self) {
        let now = clock::now();
        let all = std::mem::take(&mut self.deliveries);
        let (due, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| *at <= now);
        self.deliveries = later;
        for (_, delivery) in due {
            // A place whose process is being started again has none to ask.
            let (slot, gone) = (delivery.slot, Who { slot: delivery.slot, life: 0 });
            let who = self.processes.who(slot).unwrap_or(gone);
            let Some(order) = self.handovers.send(delivery.handover, who, now) else { continue };
            if who == gone || !self.processes.ask(slot, &order) {
                self.handovers.unsendable(order.delivery, now);
            }
        }
    }

    pub(crate) fn judge(&mut self, at_last: bool) {
        let now = clock::now();
        let broken = self.handovers.judge(now, &self.disturbances, at_last);
        broken.into_iter().for_each(|what| self.report.broken(what));
        self.disturbances.forget_before(now.saturating_sub(clock::nanos(REMEMBERED)));
    }

    fn count(&mut self, slot: usize, line: &Line) {
        let library = self.processes.library(slot);
        let what = match line {
            Line::Granted { part, .. } => match part {
                Part::Whole => "granted",
                Part::Read => "read",
                Part::Slots(numbers) if numbers.len() == 1 => "slot",
                Part::Slots(_) => "several slots",
            },
            Line::Delayed { .. } => "delayed",
            Line::Ended { .. } => "ended",
            Line::Held { .. } => "looked",
            Line::Handed(_) => "handed over",
            // What became of it has a table of its own.
            Line::Adopted { .. } | Line::NotAdopted { .. } => return,
            Line::Program(_) => return,
            Line::Losses(losses) => return self.report.losses(losses),
            Line::Many(times, what) => {
                *self.counts.entry(format!("{library}: {what}")).or_default() += times;
                return;
            }
            Line::Most(value, what) => {
                let most = self.counts.entry(format!("{library}: {what}")).or_default();
                *most = (*most).max(*value);
                return;
            }
            Line::Arriving { .. } => "arriving",
            Line::Latch(look) if look.missing == 0 => "latch-open",
            Line::Latch(_) => "latch-closed",
            Line::Revoked { .. } => "revoked",
            Line::Count(what) => what,
            Line::Spared(token) => {
                self.spared.push(token.clone());
                "spared"
            }
            Line::Broken(why) => {
                self.report.broken(format!("client {slot}: {why}"));
                "broken"
            }
        };
        let count = self.counts.entry(format!("{library}: {what}")).or_default();
        *count += 1;
        if what == "late" && *count > LATE_MAX + self.args.seconds / 600 {
            self.report.broken(format!("{count} guards came whose time was over"));
        }
    }

    /// These faults have ended, and nothing of what they did is there any more.
    pub(crate) fn calm(&mut self, over: &[(Duration, Fault)]) {
        let now = clock::now();
        over.iter().for_each(|(_, fault)| self.disturbances.end(fault, now));
    }

    /// Does what may take a while on another thread, and listens until it is done.
    pub(crate) fn meanwhile<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                self.listen(LOOK_EVERY);
                self.deliver();
            }
            working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
