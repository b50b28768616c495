//! One MariaDB, with data of its own: for what fences guard.

use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::port::Port;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::unprivileged;
use crate::wait::Watchdog;

/// It makes its files first, on a disk that others may use.
const START_MAX: Duration = Duration::from_secs(30);

/// A running MariaDB, stopped and removed when dropped. It checks no passwords: only its test
/// connects.
#[derive(Debug)]
pub struct Mariadb {
    // First, so that the process is dead before its directory goes.
    process: Process,
    port: Port,
    _dir: Scratch,
}

impl Mariadb {
    /// Starts this program, `mariadbd`, beside which its `share` is, and returns when it listens.
    #[track_caller]
    pub fn start(program: &Path) -> Self {
        let (dir, port) = (Scratch::new(), Port::claim());
        unprivileged::give(dir.path());
        let said = File::create(dir.path().join("log")).expect("the directory is ours");
        let share = program.parent().expect("a program is in a directory").join("../share/mysql");
        let at = |option: &str, path: &Path| format!("--{option}={}", path.display());
        let mut command = unprivileged::command(program);
        command.args(["--no-defaults", "--skip-grant-tables", "--bind-address=127.0.0.1"]);
        command.arg(format!("--port={}", port.number()));
        command.arg(at("datadir", dir.path())).arg(at("socket", &dir.path().join("socket")));
        command.arg(at("pid-file", &dir.path().join("pid")));
        command.arg(at("lc-messages-dir", &share));
        command.arg(at("character-sets-dir", &share.join("charsets")));
        // Nothing of it outlives its test.
        command.arg("--innodb-flush-log-at-trx-commit=0");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let mut process = Process::spawn(command).expect("it starts");
        let number = port.number();
        let watchdog = Watchdog::with_patience("MariaDB to listen", START_MAX);
        while TcpStream::connect(("127.0.0.1", number)).is_err() {
            let log = || std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
            assert!(process.exited().is_none(), "mariadbd has ended: {}", log());
            watchdog.pause();
        }
        Self { process, port, _dir: dir }
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port.number()
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        if self.process.exited().is_none() {
            self.process.signal(Signal::KILL);
        }
        let watchdog = Watchdog::new("MariaDB to end");
        while self.process.exited().is_none() && !std::thread::panicking() {
            watchdog.pause();
        }
    }
}
