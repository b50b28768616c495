//! One PostgreSQL, with data of its own: for what fences guard.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::port::Port;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::unprivileged;
use crate::wait::Watchdog;

/// A running PostgreSQL, stopped and removed when dropped.
#[derive(Debug)]
pub struct Postgres {
    // First, so that the process is dead before its directory goes.
    process: Process,
    port: Port,
    dir: Scratch,
}

impl Postgres {
    /// Starts this program, `postgres`, beside which its others are, and returns when it answers.
    #[track_caller]
    pub fn start(program: &Path) -> Self {
        let (dir, port) = (Scratch::new(), Port::claim());
        unprivileged::give(dir.path());
        let data = dir.path().join("data");
        let mut initdb = unprivileged::command(&program.with_file_name("initdb"));
        initdb.arg("--pgdata").arg(&data);
        run(initdb.args(["--username", "quorlock", "--auth", "trust", "--no-sync"]).args([
            "--encoding",
            "UTF8",
            "--locale",
            "C",
        ]));

        let mut command = unprivileged::command(program);
        command.arg("-D").arg(&data).arg("-k").arg(dir.path()).args(["-h", "127.0.0.1"]);
        command.args(["-p", &port.number().to_string(), "-c", "fsync=off"]);
        command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        let process = Process::spawn(command).expect("it starts");
        let server = Self { process, port, dir };
        server.wait_until_ready(&program.with_file_name("pg_isready"));
        server
    }

    /// Its address as drivers take it, with the user and the database.
    pub fn url(&self) -> String {
        format!("postgres://quorlock@127.0.0.1:{}/postgres", self.port.number())
    }

    /// The same by its socket in the file system, which is reached from every network namespace.
    pub fn socket(&self) -> String {
        let (dir, port) = (self.dir.path().display(), self.port.number());
        format!("host={dir} port={port} user=quorlock dbname=postgres")
    }

    fn wait_until_ready(&self, pg_isready: &Path) {
        let watchdog = Watchdog::new("PostgreSQL to answer");
        let port = self.port.number().to_string();
        let is_ready = || {
            let mut asked = Command::new(pg_isready);
            asked.args(["-q", "-h", "127.0.0.1", "-p", &port]);
            asked.status().is_ok_and(|status| status.success())
        };
        while !is_ready() {
            watchdog.pause();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its other processes end with it; killed, it would leave them to find out by themselves.
        if self.process.exited().is_none() {
            self.process.signal(Signal::QUIT);
        }
        let watchdog = Watchdog::new("PostgreSQL to end");
        while self.process.exited().is_none() && !std::thread::panicking() {
            watchdog.pause();
        }
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let said = command.stdin(Stdio::null()).output().expect("it starts");
    assert!(said.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said.stderr));
}
