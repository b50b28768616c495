//! A node that is a server's process: started on a free port, killed and reaped when dropped.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use quorlock::Client;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use socket2::{Domain, Socket, Type};

use crate::exit::{Cause, Failure};
use crate::runtime::random;
use crate::{clock, tied};

/// The ports tried. They are below the ephemeral ports: a client that keeps dialling a dead node's
/// port is sooner or later given that very port as its own, and connects to itself.
const PORTS: std::ops::Range<u16> = 10_000..20_000;

/// How long a server may take to answer: long, because the machine may be busy.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// The interval at which it is polled.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Process {
    /// The node's name.
    name: char,
    port: u16,
    log: PathBuf,
    process: Child,
}

impl Process {
    /// Starts a server without persistence, and does not wait for it.
    pub(super) fn start(name: char, program: &Path, dir: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::internal(&format!("cannot start node {name}"), &error);
        let port = free_port().map_err(failed)?;
        let log = dir.join(format!("{name}.log"));
        let output = File::create(&log).map_err(failed)?;
        let process = tied::command(program.as_os_str())
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"])
            .arg(dir)
            .current_dir(dir)
            // So that Ctrl-C reaches only us; we end the servers.
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(output.try_clone().map_err(failed)?)
            .stdout(output)
            .spawn()
            .map_err(failed)?;
        Ok(Self { name, port, log, process })
    }

    /// Waits until it answers; `false` when another process took its port before it could.
    pub(super) async fn answers(&mut self) -> Result<bool, Failure> {
        let client = Client::new(self.url())?;
        let began = clock::now();
        // Another server on the port would answer too; the process id shows that it is ours.
        let ours = format!("process_id:{}\r\n", self.process.id());
        loop {
            let info = client.command(["INFO", "server"]).await;
            let text = info.as_ref().ok().and_then(|frame| frame.as_str().ok());
            if text.is_some_and(|text| text.contains(&ours)) {
                return Ok(true);
            }
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                if log.contains("Address already in use") || log.contains("Failed listening") {
                    return Ok(false);
                }
                return Err(self.refused(log.lines().last().unwrap_or("it said nothing")));
            }
            if clock::now().saturating_duration_since(began) > START_PATIENCE {
                return Err(self.refused("it did not answer in time"));
            }
            clock::sleep(LOOK_EVERY).await;
        }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }

    /// Kills and reaps it: a crash.
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        ended.map(drop).map_err(|error| Failure::internal("cannot end a server", &error))
    }

    /// Suspends it: the kernel still accepts connections and bytes, but no answer comes.
    pub(super) fn hang(&self) -> Result<(), Failure> {
        let id = Pid::from_child(&self.process);
        let stopped = kill_process(id, Signal::STOP).and_then(|()| {
            // Waits until it has stopped, or ended: then it never stops.
            let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(id), options)
        });
        stopped.map(drop).map_err(|error| Failure::internal("cannot stop a server", &error.into()))
    }

    fn refused(&self, why: &str) -> Failure {
        Failure::new(Cause::Internal, format!("node {} did not start: {why}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It fails only if the process has been reaped already.
        let _ = self.kill();
    }
}

/// A port without a listener. We bind it for a moment but never listen on it: a child forked right
/// now holds our socket a little longer than we do.
fn free_port() -> io::Result<u16> {
    let count = PORTS.end - PORTS.start;
    // A random start, so that two demos at a time rarely try the same ports.
    let start = (random() % u64::from(count)) as u16;
    let ports = (0..count).map(|step| PORTS.start + (start + step) % count);
    let free = |port: &u16| {
        let bound = Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| {
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, *port)).into())
        });
        bound.is_ok()
    };
    let none = || io::Error::new(io::ErrorKind::AddrInUse, "no port is free");
    ports.into_iter().find(free).ok_or_else(none)
}
