//! The client processes: started, killed, and read.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::Sender;

use support::process::Process;

use crate::Failure;
use crate::args::{Args, ClientArgs, Durability, GUARDED, PROGRAM};
use crate::foreign;
use crate::history::Who;
use crate::line::{Line, Order};
use crate::network::Network;
use crate::stores::Address;

/// What the supervisor hears.
#[derive(Debug)]
pub(crate) enum News {
    Line(Who, Line),
    /// A client's output has ended.
    End(Who),
    /// A signal asks the run to end.
    Signal,
}

/// One place for a client, and the process in it.
#[derive(Debug)]
struct Place {
    args: ClientArgs,
    life: u32,
    process: Option<Process>,
    /// Open as long as the client is to go on.
    input: Option<PipeWriter>,
}

/// All clients, ours first.
#[derive(Debug)]
pub(crate) struct Processes {
    places: Vec<Place>,
    news: Sender<News>,
    program: PathBuf,
    /// The process ids of clients that were killed: what they leave behind is no error.
    pub(crate) killed: HashSet<u32>,
}

impl Processes {
    /// Starts all of them.
    pub(crate) fn start(
        args: &Args,
        network: &Network,
        store: Option<&Address>,
        news: Sender<News>,
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let libraries = vec!["ours"; args.clients].into_iter().map(String::from);
        let libraries = libraries.chain(args.actors.iter().chain(&args.with).cloned());
        // Where a build puts it: beside the rig.
        let beside = || program.with_file_name("quorlock");
        let quorlock = args.program.clone().unwrap_or_else(beside);
        if args.actors.iter().any(|actor| actor == PROGRAM) && !quorlock.is_file() {
            let how = "build it with `cargo build --package quorlock-cli`";
            return Err(format!("no program {}: {how}", quorlock.display()).into());
        }
        let place = |(slot, library): (usize, String)| {
            let clients = args.clients.max(1) as f64;
            let store = store.filter(|_| library == GUARDED).map(Address::words);
            let args = ClientArgs {
                library,
                slot,
                seed: args.seed,
                urls: network.urls(slot),
                prefix: foreign::PREFIX.into(),
                keys: args.keys,
                rate: args.rate / clients,
                ttl_ms: args.ttl.as_millis() as u64,
                node_timeout_ms: args.node_timeout_ms,
                volatile: args.durability == Durability::Volatile,
                long: args.with.is_empty(),
                readers: args.readers,
                fair: args.fair,
                strict: args.strict,
                delayed: args.delayed,
                handles: args.handles,
                latches: args.latches,
                several: args.several,
                revoked: args.revoked,
                slots: args.slots,
                handovers: args.handovers / clients,
                handing: args.handing.clone(),
                locks: args.locks,
                program: quorlock.clone(),
                store,
            };
            Place { args, life: 0, process: None, input: None }
        };
        let places = libraries.enumerate().map(place).collect();
        let mut processes = Self { places, news, program, killed: HashSet::new() };
        for slot in 0..processes.places.len() {
            processes.spawn(slot, network)?;
        }
        Ok(processes)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The library that works in a place.
    pub(crate) fn library(&self, slot: usize) -> &str {
        &self.places[slot].args.library
    }

    /// Starts another process in a place.
    pub(crate) fn spawn(&mut self, slot: usize, network: &Network) -> Result<(), Failure> {
        let place = &mut self.places[slot];
        let (theirs, input) = std::io::pipe()?;
        let (output, ours) = std::io::pipe()?;
        let mut command = foreign::command(&place.args.library, &self.program, |program| {
            network.command(slot, program)
        })?;
        command.args(place.args.words()).stdin(theirs).stdout(ours);
        place.life += 1;
        place.process = Some(Process::spawn(command)?);
        place.input = Some(input);
        let (who, news) = (Who { slot, life: place.life }, self.news.clone());
        std::thread::spawn(move || read(who, output, &news));
        Ok(())
    }

    /// The process in a place now, if there is one.
    pub(crate) fn who(&self, slot: usize) -> Option<Who> {
        let place = &self.places[slot];
        place.process.as_ref().map(|_| Who { slot, life: place.life })
    }

    /// Asks the process in a place for something; false if it cannot be asked any more.
    pub(crate) fn ask(&mut self, slot: usize, order: &Order) -> bool {
        let Some(input) = &mut self.places[slot].input else { return false };
        input.write_all(format!("{order}\n").as_bytes()).is_ok()
    }

    /// Stops a process where it stands.
    pub(crate) fn freeze(&self, slot: usize) {
        if let Some(process) = &self.places[slot].process {
            process.pause();
        }
    }

    pub(crate) fn thaw(&self, slot: usize) {
        if let Some(process) = &self.places[slot].process {
            process.resume();
        }
    }

    /// Kills a process.
    pub(crate) fn kill(&mut self, slot: usize) {
        if let Some(mut process) = self.places[slot].process.take() {
            self.killed.insert(process.pid());
            process.kill();
        }
        self.places[slot].input = None;
    }

    /// Tells all clients to end in their own time.
    pub(crate) fn tell_to_end(&mut self) {
        for place in &mut self.places {
            place.input = None;
        }
    }

    /// Those that have ended by themselves, and how; none, until they are told to.
    pub(crate) fn ended(&mut self) -> Vec<(usize, ExitStatus)> {
        let places = self.places.iter_mut().enumerate();
        let ended = places.filter_map(|(slot, place)| {
            let status = place.process.as_mut()?.exited()?;
            place.process = None;
            Some((slot, status))
        });
        ended.collect()
    }

    /// How many processes were started, each of which tells its end.
    pub(crate) fn lives(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.life)).sum()
    }

    /// Whether any is still there.
    pub(crate) fn is_at_work(&self) -> bool {
        self.places.iter().any(|place| place.process.is_some())
    }
}

/// Passes on what a client tells, to its end.
fn read(who: Who, output: PipeReader, news: &Sender<News>) {
    for text in BufReader::new(output).lines().map_while(Result::ok) {
        // Half a line is what a killed client leaves; any other nonsense shows in the counts.
        let line = Line::parse(&text).unwrap_or_else(|| Line::Count("no-line".into()));
        if news.send(News::Line(who, line)).is_err() {
            return;
        }
    }
    // Without a supervisor no task needs to know.
    let _ = news.send(News::End(who));
}
