//! The supervisor: starts everything, lets the faults come, listens, and judges.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use support::skip;
use tokio::runtime::{Builder, Runtime};

use crate::Failure;
use crate::args::{self, Args, GUARDED, LATCH_PARTIES, SATURATED};
use crate::clock;
use crate::collector::Collector;
use crate::commands::Commands;
use crate::disturbances::Disturbances;
use crate::faults::{Fault, Kind, Means, Schedule};
use crate::foreign;
use crate::handovers::Handovers;
use crate::history::History;
use crate::latches::Latches;
use crate::leftovers;
use crate::network::Network;
use crate::nodes::Nodes;
use crate::paths::{Path, Paths, Way};
use crate::processes::{News, Processes};
use crate::random::Random;
use crate::report::Report;
use crate::stores::{Stores, Written};

/// How often the clocks go on and everything is looked at.
const TICK: Duration = Duration::from_millis(20);

/// How often the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_secs(5);

/// How long the clients may take to end, when all faults are over.
const ENDING: Duration = Duration::from_secs(60);

/// For how long replies to `saturated` come late, and then at once: long enough to lose locks whose
/// extensions come late, and to take as many again.
const LATE_SPELL: Duration = Duration::from_millis(2_500);

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
    let stores = args.actors.iter().any(|actor| actor == GUARDED);
    let stores = stores.then(|| Stores::start(args.compares)).transpose()?;
    let address = stores.as_ref().map(Stores::address);
    let processes = Processes::start(&args, &network, address.as_ref(), sender)?;
    let report = Report::new(&args, &kinds, &nodes, &processes);
    let node_timeout = args::node_timeout(args.node_timeout_ms, args.ttl);
    let (handovers, random) =
        (Handovers::new(args.nodes, node_timeout), Random::new(args.seed, 11));
    let began = clock::now();
    let collector = Collector {
        args: args.clone(),
        processes,
        news,
        history: History::default(),
        latches: Latches::new(LATCH_PARTIES, clock::nanos(args.ttl / 100 * 98)),
        commands: Commands::new(args.ttl),
        disturbances: Disturbances::default(),
        handovers,
        deliveries: Vec::new(),
        random,
        counts: BTreeMap::new(),
        ended: 0,
        spared: Vec::new(),
        report,
        signalled: false,
    };
    let mut supervisor = Supervisor {
        args,
        nodes,
        stores,
        network,
        schedule: schedule.peekable(),
        active: Vec::new(),
        collector,
        began,
        replies_are_late: false,
    };
    supervisor.apply_paths()?;
    supervisor.work()?;
    // The proxies' tasks end with their runtime; nothing in them is worth waiting for.
    runtime.shutdown_background();
    Ok(supervisor.collector.report)
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
    /// What fenced locks protect, if any are.
    stores: Option<Stores>,
    network: Network,
    schedule: Peekable<Schedule>,
    /// The faults that are not over, and when they will be.
    active: Vec<(Duration, Fault)>,
    collector: Collector,
    began: u64,
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
        while self.now() < end && !self.collector.report.is_broken() && !self.collector.signalled {
            self.collector.listen(TICK);
            let now = self.now();
            self.nodes.pass(now - passed)?;
            passed = now;
            self.faults(now)?;
            self.collector.deliver();
            self.collector.judge(false);
            for (slot, status) in self.collector.processes.ended() {
                self.collector.report.broken(format!("client {slot} ended by itself: {status}"));
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
        let over = std::mem::take(&mut self.active);
        for (_, fault) in &over {
            self.end(fault)?;
        }
        self.replies_are_late = false;
        self.apply_paths()?;
        self.collector.calm(&over);
        self.collector.processes.tell_to_end();
        let told = self.now();
        while self.collector.processes.is_at_work() && self.now() < told + ENDING {
            self.collector.listen(TICK);
            for (slot, status) in self.collector.processes.ended() {
                if !status.success() {
                    self.collector.report.broken(format!("client {slot} ended: {status}"));
                }
            }
        }
        if self.collector.processes.is_at_work() {
            self.collector.report.broken(format!("a client did not end within {ENDING:?}"));
        }
        for slot in 0..self.collector.processes.len() {
            self.collector.processes.kill(slot);
        }
        // A process is gone before the last of what it told has been read.
        while self.collector.ended < self.collector.processes.lives()
            && self.now() < told + 2 * ENDING
        {
            self.collector.listen(TICK);
        }
        for slot in 0..self.collector.processes.len() {
            let library = self.collector.processes.library(slot);
            let was =
                |what: &str| self.collector.counts.contains_key(&format!("{library}: {what}"));
            if !["granted", "read", "slot"].into_iter().any(was) && !self.collector.signalled {
                let why = "was never granted a lock, so this run shows nothing of it";
                self.collector.report.broken(format!("{library} {why}"));
            }
        }
        if self.args.with.is_empty() && !self.collector.report.is_broken() {
            let left = leftovers::look(
                &self.nodes,
                &self.collector.processes.killed,
                &self.collector.spared,
            );
            left.into_iter().for_each(|key| self.collector.report.broken(key));
        }
        self.collector.conclude();
        self.look_at_stores()?;
        let now = self.now();
        self.show(now);
        self.collector.report.finish(
            [worked, now],
            &self.collector.history,
            &self.collector.counts,
            self.collector.handovers.summary(),
        );
        Ok(())
    }

    /// Counts what was written under fenced locks. Where fences are compared nothing may be stale.
    fn look_at_stores(&mut self) -> Result<(), Failure> {
        let Some(stores) = &self.stores else { return Ok(()) };
        let found = stores.look(self.args.keys)?;
        for (store, Written { writes, stale }) in ["PostgreSQL", "Redis"].into_iter().zip(found) {
            let counts = &mut self.collector.counts;
            counts.insert(format!("{GUARDED}: writes that stand in {store}"), writes);
            counts.insert(format!("{GUARDED}: of these stale, in {store}"), stale);
            if writes == 0 || self.args.compares && stale > 0 {
                let what = format!("{stale} of {writes} writes in {store} are stale");
                self.collector.report.broken(what);
            }
        }
        Ok(())
    }

    /// Ends the faults that are over, and lets those come whose time it is.
    fn faults(&mut self, now: Duration) -> Result<(), Failure> {
        let all = std::mem::take(&mut self.active);
        let (over, active): (Vec<_>, Vec<_>) = all.into_iter().partition(|(end, _)| *end <= now);
        self.active = active;
        let mut paths_change = over.iter().any(|(_, fault)| fault.path.is_some());
        for (_, fault) in &over {
            self.end(fault)?;
        }
        while let Some(fault) = self.schedule.next_if(|fault| fault.at <= now) {
            if let Some(fault) = self.begin(fault)? {
                paths_change |= fault.path.is_some();
                self.active.push((now + fault.lasts, fault));
            }
        }
        let is_odd = now.as_millis() / LATE_SPELL.as_millis() % 2 == 1;
        let late = is_odd && self.args.replies_late_ms > 0;
        if std::mem::replace(&mut self.replies_are_late, late) != late || paths_change {
            self.apply_paths()?;
        }
        self.collector.calm(&over);
        Ok(())
    }

    /// Begins a fault for those that no other of its sort has met already; nothing if there are
    /// none.
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
        self.collector.report.fault(&fault);
        self.collector.disturbances.begin(&fault, clock::now());
        let (slots, nodes) = (slots(fault.clients), &self.nodes);
        match fault.kind {
            Kind::FreezeServer => {
                self.collector.meanwhile(|| nodes.of(fault.nodes).for_each(|node| node.pause()));
            }
            Kind::KillServer => {
                self.collector.meanwhile(|| nodes.of(fault.nodes).for_each(|node| node.stop()));
            }
            Kind::FreezeClient => slots.for_each(|slot| self.collector.processes.freeze(slot)),
            Kind::KillClient => slots.for_each(|slot| self.collector.processes.kill(slot)),
            Kind::Cut => self.collector.meanwhile(|| {
                for node in nodes.of(fault.nodes).filter(|node| node.is_running()) {
                    node.cut_clients();
                }
            }),
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

    /// Ends a fault; that of a path ends when the paths are applied anew.
    fn end(&mut self, fault: &Fault) -> Result<(), Failure> {
        match fault.kind {
            Kind::FreezeServer => self.nodes.of(fault.nodes).for_each(|node| node.resume()),
            Kind::KillServer => {
                let nodes = &self.nodes;
                self.collector.meanwhile(|| nodes.of(fault.nodes).for_each(|node| node.restart()));
            }
            Kind::FreezeClient => {
                slots(fault.clients).for_each(|slot| self.collector.processes.thaw(slot))
            }
            Kind::KillClient => {
                for slot in slots(fault.clients) {
                    self.collector.processes.spawn(slot, &self.network)?;
                }
            }
            Kind::ClockRate => {
                self.nodes.clocks(fault.nodes).for_each(|clock| clock.set_rate(0));
            }
            // Else they would be further apart each time.
            Kind::ClockLeap => {
                for clock in self.nodes.clocks(fault.nodes) {
                    clock.step(-fault.amount)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_paths(&mut self) -> Result<(), Failure> {
        let mut paths = Paths::clear(self.collector.processes.len(), self.args.nodes);
        for (_, fault) in &self.active {
            if let Some(path) = fault.path {
                paths.add(fault.clients, fault.nodes, path);
            }
        }
        if self.args.replies_late_ms > 0 && self.replies_are_late {
            let late = Path { to: Way::Clear, from: Way::Late(self.args.replies_late_ms) };
            let saturated = |slot: &usize| self.collector.processes.library(*slot) == SATURATED;
            let clients = (0..self.collector.processes.len()).filter(saturated);
            paths.add(clients.fold(0, |mask, slot| mask | 1 << slot), u32::MAX, late);
        }
        let network = &self.network;
        self.collector.meanwhile(|| network.apply(&paths))
    }

    fn show(&self, now: Duration) {
        let (holds, faults) = (self.collector.history.holds, self.collector.report.faults());
        let broken = self.collector.report.violations();
        let seconds = now.as_secs();
        eprintln!("{seconds:5} s: {holds} holds, {faults} faults, {broken} violations");
    }
}

/// The places of a mask.
fn slots(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |slot| mask >> slot & 1 == 1)
}
