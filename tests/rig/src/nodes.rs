//! The servers, and their clocks.

use std::time::Duration;

use support::{Fleet, Server};

use crate::Failure;
use crate::args::{Args, Durability};
use crate::shim::{Clock, Shim};
use crate::tools;

/// All of them.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) fleet: Fleet,
    clocks: Vec<Clock>,
    /// Holds the clocks' files; nothing without a C compiler.
    shim: Option<Shim>,
}

impl Nodes {
    pub(crate) fn start(args: &Args) -> Result<Self, Failure> {
        let program = tools::server(&args.server)?;
        let shim = Shim::build().map_err(|why| eprintln!("the servers have one clock: {why}")).ok();
        let (mut programs, mut clocks) = (vec![program.clone(); args.nodes], Vec::new());
        if let Some(shim) = &shim {
            for (number, wrapped) in programs.iter_mut().enumerate() {
                let (script, clock) = shim.wrap(&program, number)?;
                *wrapped = script;
                clocks.push(clock);
            }
        }
        let fleet = Fleet::start_with(args.nodes, |number, builder| {
            let builder = builder.program(programs[number].clone());
            let builder = match args.durability {
                Durability::Persistent => builder.args(
                    [
                        ["--appendonly", "yes"],
                        ["--appendfsync", "always"],
                        ["--auto-aof-rewrite-min-size", "4mb"],
                    ]
                    .concat(),
                ),
                Durability::Volatile | Durability::Forgetful => builder,
            };
            match args.inside {
                // The namespace is ours alone, and its other interfaces lead to the clients.
                true => builder.args(["--bind", "0.0.0.0", "--protected-mode", "no"]),
                false => builder,
            }
        });
        Ok(Self { fleet, clocks, shim })
    }

    pub(crate) fn have_clocks(&self) -> bool {
        self.shim.is_some()
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.fleet.iter().map(Server::port).collect()
    }

    /// The nodes of a mask.
    pub(crate) fn of(&self, mask: u32) -> impl Iterator<Item = &Server> {
        self.fleet.iter().enumerate().filter(move |(n, _)| mask >> n & 1 == 1).map(|(_, it)| it)
    }

    /// The clocks of a mask.
    pub(crate) fn clocks(&mut self, mask: u32) -> impl Iterator<Item = &mut Clock> {
        let clocks = self.clocks.iter_mut().enumerate();
        clocks.filter(move |(n, _)| mask >> n & 1 == 1).map(|(_, clock)| clock)
    }

    /// The clocks go on.
    pub(crate) fn pass(&mut self, elapsed: Duration) -> Result<(), Failure> {
        self.clocks.iter_mut().try_for_each(|clock| clock.pass(elapsed))
    }
}
