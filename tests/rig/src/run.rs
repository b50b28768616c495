//! The supervisor: starts everything, lets the faults come, listens, and judges.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::args::{self, Args, SATURATED};
use crate::clock;
use crate::crew::{Crew, News};
use crate::dice::Dice;
use crate::disturbances::Disturbances;
use crate::faults::{Fault, Kind, Means, Schedule};
use crate::foreign;
use crate::handovers::{Delivery, Handovers, deliveries};
use crate::history::{History, Who};
use crate::leftovers;
use crate::line::{Handed, Line};
use crate::network::Network;
use crate::nodes::Nodes;
use crate::report::Report;
use crate::support::skip;
use crate::weather::{Path, Way, Weather};

/// How often the clocks go on and everything is looked at.
const TICK: Duration = Duration::from_millis(20);

/// How often the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_secs(5);

/// How long the clients may take to end, when all faults are over.
const ENDING: Duration = Duration::from_secs(60);

/// For how long replies to `saturated` come late, and then at once: long enough to lose locks whose
/// extensions come late, and to take as many again.
const LATE_SPELL: Duration = Duration::from_millis(2_500);

/// For how long faults are remembered that may explain what is judged later.
const REMEMBERED: Duration = Duration::from_secs(120);

/// How often a guard may come whose time is over: a process can be stopped between the library's
/// last look at the clock and its own first one, though that takes microseconds. In each ten
/// minutes it may happen once more.
const LATE_MAX: u64 = 2;

/// Runs to the end, or to the first thing that must not be.
pub(crate) fn run(args: &Args) -> Result<Report, Failure> {
    let with = foreign::present(&args.with, skip::servers_are_required(), lacks)?;
    let args = Args { with, ..args.clone() };
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (sender, news) = channel();
    listen_for_signals(&runtime, sender.clone());
    Network::prepare(args.inside)?;
    let nodes = Nodes::start(&args)?;
    let places = args.clients + args.actors.len() + args.with.len();
    if args.replies_late_ms > 0 && args.inside {
        return Err("--replies-late-ms needs --network proxy".into());
    }
    let network = Network::build(args.inside, places, &nodes.ports(), runtime.handle())?;
    let means = Means { namespaces: args.inside, shim: nodes.have_clocks() };
    let kinds = kinds(&args, means)?;
    let seats = (places, args.nodes);
    let schedule = Schedule::new(args.seed, &kinds, args.fault_rate, seats, args.ttl);
    let crew = Crew::start(&args, &network, sender)?;
    let report = Report::new(&args, &kinds, &nodes, &crew);
    let node_deadline = args::node_deadline(args.node_deadline_ms, args.ttl);
    let (handovers, dice) = (Handovers::new(args.nodes, node_deadline), Dice::new(args.seed, 11));
    let began = clock::now();
    let mut supervisor = Supervisor {
        args,
        nodes,
        network,
        crew,
        news,
        schedule: schedule.peekable(),
        active: Vec::new(),
        history: History::default(),
        disturbances: Disturbances::default(),
        handovers,
        deliveries: Vec::new(),
        dice,
        counts: BTreeMap::new(),
        spared: Vec::new(),
        report,
        began,
        signalled: false,
        ended: 0,
        replies_are_late: false,
    };
    supervisor.change_weather()?;
    supervisor.work()?;
    // The proxies' tasks end with their runtime; nothing in them is worth waiting for.
    runtime.shutdown_background();
    Ok(supervisor.report)
}

/// What a library lacks; a Python that was given up by name is noted as other tests do it.
fn lacks(library: &str) -> Option<Failure> {
    let why = foreign::lacks(library)?;
    if why.to_string() == skip::NO_PYTHON {
        skip::skip("the rig with pottery", skip::NO_PYTHON);
    }
    Some(why)
}

fn kinds(args: &Args, means: Means) -> Result<Vec<Kind>, Failure> {
    let Some(named) = &args.faults else { return Ok(Kind::usual(means)) };
    for kind in named {
        if let Some(lacking) = kind.lacks(means) {
            return Err(format!("{} needs {lacking}", kind.name()).into());
        }
    }
    Ok(named.clone())
}

/// The run ends in order when it is interrupted.
fn listen_for_signals(runtime: &Runtime, news: Sender<News>) {
    use tokio::signal::unix::{SignalKind, signal};
    runtime.handle().spawn(async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        let [Ok(mut interrupt), Ok(mut terminate)] = kinds else { return };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // A supervisor that has gone needs no telling.
        let _ = news.send(News::Signal);
    });
}

struct Supervisor {
    args: Args,
    nodes: Nodes,
    network: Network,
    crew: Crew,
    news: Receiver<News>,
    schedule: Peekable<Schedule>,
    /// The faults that are not over, and when they will be.
    active: Vec<(Duration, Fault)>,
    history: History,
    disturbances: Disturbances,
    handovers: Handovers,
    /// Copies of tokens that are still to be sent, and when.
    deliveries: Vec<(u64, Delivery)>,
    dice: Dice,
    counts: BTreeMap<String, u64>,
    /// How many of the processes have told their end.
    ended: u64,
    /// Values of keys that clients have left on purpose.
    spared: Vec<String>,
    report: Report,
    began: u64,
    signalled: bool,
    /// Replies to `saturated` come late now; every other time they come at once.
    replies_are_late: bool,
}

impl Supervisor {
    fn now(&self) -> Duration {
        clock::between(self.began, clock::now())
    }

    fn work(&mut self) -> Result<(), Failure> {
        let end = Duration::from_secs(self.args.seconds);
        let (mut shown, mut passed) = (Duration::ZERO, Duration::ZERO);
        while self.now() < end && !self.report.is_broken() && !self.signalled {
            self.listen(TICK);
            let now = self.now();
            self.nodes.pass(now - passed)?;
            passed = now;
            self.faults(now)?;
            self.deliver();
            self.judge(false);
            for (slot, status) in self.crew.ended() {
                self.report.broken(format!("client {slot} ended by itself: {status}"));
            }
            if now >= shown + SHOWN_EVERY {
                shown = now;
                self.show(now);
            }
        }
        self.finish()
    }

    /// Ends all faults, then the clients, and looks at what is left.
    fn finish(&mut self) -> Result<(), Failure> {
        let worked = self.now();
        for (_, fault) in std::mem::take(&mut self.active) {
            self.end(&fault)?;
        }
        self.replies_are_late = false;
        self.change_weather()?;
        self.crew.tell_to_end();
        let told = self.now();
        while self.crew.is_at_work() && self.now() < told + ENDING {
            self.listen(TICK);
            for (slot, status) in self.crew.ended() {
                if !status.success() {
                    self.report.broken(format!("client {slot} ended: {status}"));
                }
            }
        }
        if self.crew.is_at_work() {
            self.report.broken(format!("a client did not end within {ENDING:?}"));
        }
        for slot in 0..self.crew.len() {
            self.crew.kill(slot);
        }
        // A process is gone before the last of what it told has been read.
        while self.ended < self.crew.lives() && self.now() < told + 2 * ENDING {
            self.listen(TICK);
        }
        for slot in 0..self.crew.len() {
            let library = self.crew.library(slot);
            if !self.counts.contains_key(&format!("{library}: granted")) && !self.signalled {
                let why = "was never granted a lock, so this run shows nothing of it";
                self.report.broken(format!("{library} {why}"));
            }
        }
        if self.args.with.is_empty() && !self.report.is_broken() {
            let left = leftovers::look(&self.nodes, &self.crew.killed, &self.spared);
            left.into_iter().for_each(|key| self.report.broken(key));
        }
        self.judge(true);
        let now = self.now();
        self.show(now);
        self.report.finish([worked, now], &self.history, &self.counts, self.handovers.summary());
        Ok(())
    }

    /// Takes in what has come, for about so long.
    fn listen(&mut self, time: Duration) {
        let until = self.now() + time;
        loop {
            let Some(left) = until.checked_sub(self.now()) else { return };
            let Ok(news) = self.news.recv_timeout(left) else { return };
            match news {
                News::Signal => self.signalled = true,
                News::End(who) => {
                    self.ended += 1;
                    self.handovers.died(who, clock::now());
                    if let Err(overlap) = self.history.died(who) {
                        self.report.overlap(*overlap);
                    }
                }
                News::Line(who, line) => self.take_down(who, &line),
            }
        }
    }

    fn take_down(&mut self, who: Who, line: &Line) {
        self.count(who.slot, line);
        if let Err(overlap) = self.history.record(who, line) {
            self.report.overlap(*overlap);
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
        let all = deliveries(&mut self.dice, number, seats, handed.copies, self.args.ttl);
        let now = clock::now();
        self.deliveries.extend(all.into_iter().map(|it| (now + clock::nanos(it.after), it)));
        self.deliver();
    }

    /// Sends the copies of tokens whose time it is.
    fn deliver(&mut self) {
        let now = clock::now();
        let all = std::mem::take(&mut self.deliveries);
        let (due, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| *at <= now);
        self.deliveries = later;
        for (_, delivery) in due {
            // A place whose process is being started again has none to ask.
            let (slot, gone) = (delivery.slot, Who { slot: delivery.slot, life: 0 });
            let who = self.crew.who(slot).unwrap_or(gone);
            let Some(order) = self.handovers.send(delivery.handover, who, now) else { continue };
            if who == gone || !self.crew.ask(slot, &order) {
                self.handovers.unsendable(order.delivery, now);
            }
        }
    }

    fn judge(&mut self, at_last: bool) {
        let now = clock::now();
        let broken = self.handovers.judge(now, &self.disturbances, at_last);
        broken.into_iter().for_each(|what| self.report.broken(what));
        self.disturbances.forget_before(now.saturating_sub(clock::nanos(REMEMBERED)));
    }

    fn count(&mut self, slot: usize, line: &Line) {
        let library = self.crew.library(slot);
        let what = match line {
            Line::Granted { .. } => "granted",
            Line::Ended { .. } => "ended",
            Line::Held { .. } => "looked",
            Line::Handed(_) => "handed over",
            // What became of it has a table of its own.
            Line::Adopted { .. } | Line::NotAdopted { .. } => return,
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

    /// Ends the faults that are over, and lets those come whose time it is.
    fn faults(&mut self, now: Duration) -> Result<(), Failure> {
        let all = std::mem::take(&mut self.active);
        let (over, active): (Vec<_>, Vec<_>) = all.into_iter().partition(|(end, _)| *end <= now);
        self.active = active;
        let mut weather_changes = over.iter().any(|(_, fault)| fault.path.is_some());
        for (_, fault) in &over {
            self.end(fault)?;
        }
        while let Some(fault) = self.schedule.next_if(|fault| fault.at <= now) {
            if let Some(fault) = self.begin(fault)? {
                weather_changes |= fault.path.is_some();
                self.active.push((now + fault.lasts, fault));
            }
        }
        let late = now.as_millis() / LATE_SPELL.as_millis() % 2 == 1;
        if std::mem::replace(&mut self.replies_are_late, late) != late || weather_changes {
            self.change_weather()?;
        }
        Ok(())
    }

    /// Begins a fault for those whom no other of its sort has met already; nothing if that is
    /// nobody.
    fn begin(&mut self, mut fault: Fault) -> Result<Option<Fault>, Failure> {
        for (_, other) in &self.active {
            if fault.kind.is_of_servers() && other.kind.is_of_servers() {
                fault.nodes &= !other.nodes;
            }
            if fault.kind.is_of_clients() && other.kind.is_of_clients() {
                fault.clients &= !other.clients;
            }
        }
        if fault.nodes == 0 || fault.clients == 0 {
            return Ok(None);
        }
        self.report.fault(&fault);
        self.disturbances.begin(&fault, clock::now());
        let slots = slots(fault.clients);
        match fault.kind {
            Kind::FreezeServer => self.nodes.of(fault.nodes).for_each(|node| node.pause()),
            Kind::KillServer => self.nodes.of(fault.nodes).for_each(|node| node.stop()),
            Kind::FreezeClient => slots.for_each(|slot| self.crew.freeze(slot)),
            Kind::KillClient => slots.for_each(|slot| self.crew.kill(slot)),
            Kind::Cut => {
                for node in self.nodes.of(fault.nodes).filter(|node| node.is_running()) {
                    // A server that cannot answer now is cut off anyhow.
                    let _ = node.try_command(&["CLIENT", "KILL", "TYPE", "normal"]);
                }
            }
            Kind::ClockRate => {
                self.nodes.clocks(fault.nodes).for_each(|clock| clock.set_rate(fault.amount));
            }
            Kind::ClockStep | Kind::ClockLeap => {
                for clock in self.nodes.clocks(fault.nodes) {
                    clock.step(fault.amount)?;
                }
            }
            _ => {}
        }
        Ok(Some(fault))
    }

    fn end(&mut self, fault: &Fault) -> Result<(), Failure> {
        self.disturbances.end(fault, clock::now());
        match fault.kind {
            Kind::FreezeServer => self.nodes.of(fault.nodes).for_each(|node| node.resume()),
            Kind::KillServer => self.nodes.of(fault.nodes).for_each(|node| node.restart()),
            Kind::FreezeClient => slots(fault.clients).for_each(|slot| self.crew.thaw(slot)),
            Kind::KillClient => {
                for slot in slots(fault.clients) {
                    self.crew.spawn(slot, &self.network)?;
                }
            }
            Kind::ClockRate => {
                self.nodes.clocks(fault.nodes).for_each(|clock| clock.set_rate(0));
            }
            _ => {}
        }
        Ok(())
    }

    fn change_weather(&self) -> Result<(), Failure> {
        let mut weather = Weather::clear(self.crew.len(), self.args.nodes);
        for (_, fault) in &self.active {
            if let Some(path) = fault.path {
                weather.add(fault.clients, fault.nodes, path);
            }
        }
        if self.args.replies_late_ms > 0 && self.replies_are_late {
            let late = Path { to: Way::Clear, from: Way::Late(self.args.replies_late_ms) };
            let saturated = |slot: &usize| self.crew.library(*slot) == SATURATED;
            let clients = (0..self.crew.len()).filter(saturated);
            weather.add(clients.fold(0, |mask, slot| mask | 1 << slot), u32::MAX, late);
        }
        self.network.apply(&weather)
    }

    fn show(&self, now: Duration) {
        let (holds, faults) = (self.history.holds, self.report.faults());
        let broken = self.report.violations();
        let seconds = now.as_secs();
        eprintln!("{seconds:5} s: {holds} holds, {faults} faults, {broken} violations");
    }
}

/// The places of a mask.
fn slots(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |slot| mask >> slot & 1 == 1)
}
